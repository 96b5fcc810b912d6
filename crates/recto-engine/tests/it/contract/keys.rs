//! Keys, which belong to tenants but are found without naming one.

use super::make::*;
use recto::digest::Digest;
use recto::entry::Millis;
use recto_engine::Engine;
use recto_engine::store::{AccessKey, NAME_BYTES_MAX, Store, Tenant};

fn key(name: &str, tenant: &str) -> AccessKey {
    let hash = Digest::of(name.as_bytes());
    AccessKey { hash, name: name.into(), tenant: tenant.into(), policy: Some("safe".into()), at: NOW, revoked: None }
}

pub(super) async fn a_key_is_found_by_what_identifies_it_and_by_nothing_else<S: Store>(store: S) {
    let engine = Engine::over(store);
    let (made, secret) = engine.add_key("ci", &Tenant::from("team"), None).await.unwrap();
    let (_, other) = engine.add_key("other", &Tenant::from("team"), Some("safe")).await.unwrap();
    assert!(secret.starts_with("recto_") && secret.len() >= "recto_".len() + 32 && secret != other);
    assert_eq!(engine.authenticate(&secret).await.unwrap(), Some(made.clone()));
    assert_eq!(engine.authenticate(&other).await.unwrap().unwrap().policy.as_deref(), Some("safe"));
    let prefix = &secret[..secret.len() - 1];
    for wrong in ["", "ci", "recto_", prefix, &secret.to_uppercase(), &made.hash.to_string()] {
        assert_eq!(engine.authenticate(wrong).await.unwrap(), None, "{wrong}");
    }
}

pub(super) async fn a_name_of_a_key_is_given_once<S: Store>(store: S) {
    store.add_key(key("ci", "team")).await.unwrap();
    let again = AccessKey { hash: Digest::of(b"another"), ..key("ci", "others") };
    assert!(store.add_key(again.clone()).await.unwrap_err().is_exists());
    assert!(store.revoke_key("ci", NOW).await.unwrap());
    assert!(store.add_key(again).await.unwrap_err().is_exists());
    assert!(store.add_key(AccessKey { name: "another".into(), ..key("ci", "team") }).await.unwrap_err().is_exists());
    assert_eq!(store.keys().await.unwrap().len(), 1);
}

pub(super) async fn a_revoked_key_stays_on_record<S: Store>(store: S) {
    let engine = Engine::over(store);
    assert!(!engine.has_keys().await.unwrap());
    let (made, secret) = engine.add_key("ci", &tenant(), None).await.unwrap();
    assert!(engine.has_keys().await.unwrap());
    engine.revoke_key("ci").await.unwrap();
    assert_eq!(engine.authenticate(&secret).await.unwrap(), None);
    assert!(!engine.has_keys().await.unwrap());
    let kept = engine.store().key(made.hash).await.unwrap().unwrap();
    assert!(kept.revoked.is_some());
    assert_eq!(AccessKey { revoked: None, ..kept.clone() }, made);
    // The first time is the one that counts.
    assert!(!engine.store().revoke_key("ci", Millis(1)).await.unwrap());
    assert_eq!(engine.keys().await.unwrap(), [kept]);
    for name in ["ci", "unknown"] {
        assert!(engine.revoke_key(name).await.unwrap_err().is_not_found());
    }
}

pub(super) async fn keys_of_all_tenants_are_listed_by_name<S: Store>(store: S) {
    for (name, tenant) in [("c", "team"), ("a", "others"), ("b", "team"), ("B", "team")] {
        store.add_key(AccessKey { policy: None, ..key(name, tenant) }).await.unwrap();
    }
    let listed = store.keys().await.unwrap();
    let names: Vec<&str> = listed.iter().map(|key| &*key.name).collect();
    assert_eq!(names, ["B", "a", "b", "c"]);
    assert_eq!(listed[1], AccessKey { policy: None, ..key("a", "others") });
}

pub(super) async fn a_key_with_a_name_that_is_too_long_is_refused<S: Store>(store: S) {
    let long = "n".repeat(NAME_BYTES_MAX + 1);
    let wrong =
        [key(&long, "team"), key("ci", &long), AccessKey { policy: Some(long.as_str().into()), ..key("ci", "team") }];
    for key in wrong {
        assert!(store.add_key(key).await.unwrap_err().is_input());
    }
    assert!(store.keys().await.unwrap().is_empty());
    store.add_key(key(&long[1..], "team")).await.unwrap();
}
