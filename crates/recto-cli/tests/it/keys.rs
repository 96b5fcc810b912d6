//! `recto keys`.

use crate::run::{Folder, fails, mentions, recto, succeeds};
use serde_json::Value;

fn json(args: &[&str]) -> Value {
    serde_json::from_str(&succeeds(args).stdout).unwrap()
}

#[test]
fn keys_are_made_listed_and_revoked() {
    let folder = Folder::new();
    let store = folder.at("kept.db");
    let with = |args: &[&'static str]| -> Vec<String> {
        args.iter().map(|it| (*it).to_string()).chain(["--store".into(), store.clone()]).collect()
    };
    let run = |args: &[&'static str]| {
        let args = with(args);
        succeeds(&args.iter().map(String::as_str).collect::<Vec<_>>())
    };
    let laptop = run(&["keys", "add", "laptop"]);
    assert!(laptop.stdout.starts_with("recto_") && laptop.stdout.lines().count() == 1, "{}", laptop.stdout);
    mentions(&laptop.stderr, &["only time"]);
    let made = json(&["keys", "add", "ci", "--tenant", "team", "--policy", "safe", "--json", "--store", &store]);
    assert_eq!((&made["name"], &made["tenant"], &made["policy"]), (&"ci".into(), &"team".into(), &"safe".into()));
    assert_ne!(made["key"].as_str().unwrap(), laptop.stdout.trim());
    mentions(&run(&["keys", "list"]).stdout, &["ci      team    safe", "laptop  local   the server's"]);
    assert_eq!(run(&["keys", "revoke", "ci"]).stdout, "revoked ci\n");
    let listed = json(&["keys", "list", "--json", "--store", &store]);
    let names: Vec<&Value> = listed["keys"].as_array().unwrap().iter().map(|key| &key["name"]).collect();
    assert_eq!(names, ["ci", "laptop"]);
    assert!(listed["keys"][0]["revoked"].is_i64() && listed["keys"][1]["revoked"].is_null());
    for text in [listed.to_string(), run(&["keys", "list"]).stdout] {
        assert!(!text.contains("recto_"), "{text}");
    }
    mentions(&fails(3, &["keys", "revoke", "ci", "--store", &store]), &["error[R0350]", "recto keys list"]);
    mentions(&fails(3, &["keys", "add", "ci", "--store", &store]), &["error[R0351]", "key \"ci\" exists already"]);
}

#[test]
fn a_policy_of_a_key_is_one_that_holds_wherever_the_server_runs() {
    let folder = Folder::new();
    let store = folder.at("kept.db");
    let file = folder.file("mine.toml", succeeds(&["policy", "show", "safe"]).stdout);
    let made = json(&["keys", "add", "a", "--policy", &file, "--json", "--store", &store]);
    assert_eq!(made["policy"], Value::from(file));
    mentions(&fails(3, &["keys", "add", "b", "--policy", "saef", "--store", &store]), &["error[R0321]"]);
    assert_eq!(json(&["keys", "list", "--json", "--store", &store])["keys"].as_array().unwrap().len(), 1);
}

#[test]
fn what_is_missing_is_told() {
    let folder = Folder::new();
    mentions(&fails(3, &["keys", "list", "--store", &folder.at("gone.db")]), &["error[R0356]"]);
    for args in [&["keys"][..], &["keys", "add"], &["keys", "add", ""], &["keys", "steal", "a"]] {
        assert_eq!(recto(args).code, Some(2), "{args:?}");
    }
    assert_eq!(succeeds(&["keys", "add", "a", "--store", &folder.at("new.db")]).code, Some(0));
}
