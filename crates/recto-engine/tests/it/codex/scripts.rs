//! Programs in the place of Codex: what doesn't do its part is told about.

use super::{failed, said, settings, turn, unknown, uuid};
use crate::folder::TempFolder;
use recto::entry::Text;
use recto::{Role, Tokens};
use recto_engine::drive::codex::Codex;
use recto_engine::drive::{Heard, Settings};
use std::collections::BTreeMap;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::time::Duration;

/// A program in place of Codex.
fn script(folder: &TempFolder, text: &str) -> Codex {
    let path = folder.file("codex");
    std::fs::write(&path, format!("#!/bin/sh\n{text}\n")).unwrap();
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
    let mut settings = settings(folder, path);
    settings.silence_limit = Duration::from_millis(500);
    Codex::new(settings)
}

#[tokio::test]
async fn a_program_that_does_not_do_its_part_is_told_about() {
    let folder = TempFolder::new();
    let begun = format!(r#"echo '{{"type":"thread.started","thread_id":"{}"}}'"#, uuid());
    let told = r#"echo '{"type":"turn.completed","usage":{"input_tokens":1}}'"#;
    let cases = [
        ("echo 'Welcome to something else!'".to_string(), "Welcome to something else!"),
        ("exit 0".into(), "ended with code 0 and began no turn"),
        ("echo 'no key' >&2; exit 3".into(), "ended with code 3 and began no turn; it said: no key"),
        ("kill -9 $$".into(), "ended by a signal"),
        (begun.clone(), "ended with code 0 before its turn did"),
        (format!("{begun}\n{told}"), "gave no answer"),
        (format!("{begun}\necho '{{\"type\":\"error\",\"message\":\"lost the way\"}}'"), "lost the way"),
    ];
    for (text, expected) in cases {
        let codex = script(&folder, &text);
        let error = failed(turn(&codex, folder.path(), None, "", &[said(Role::User, "x")], &mut Vec::new()).await);
        assert!(error.is_program() && error.hint().is_some(), "{error}");
        assert!(error.to_string().contains(expected), "{error}");
    }
    let codex = script(&folder, "exec sleep 1000");
    let error = failed(turn(&codex, folder.path(), None, "", &[said(Role::User, "x")], &mut Vec::new()).await);
    assert!(error.is_timed_out(), "{error}");
    let missing = Codex::new(Settings { program: None, ..settings(&folder, PathBuf::new()) });
    let error = missing.version().await.unwrap_err();
    assert!(error.is_program() && error.hint().is_some_and(|hint| hint.contains("npm")), "{error}");
    let homeless = Settings { environment: BTreeMap::new(), ..settings(&folder, PathBuf::new()) };
    let empty = turn(&Codex::new(homeless), folder.path(), None, "", &[said(Role::User, "x")], &mut Vec::new()).await;
    assert!(failed(empty).hint().is_some_and(|hint| hint.contains("CODEX_HOME")));
}

#[tokio::test]
async fn a_program_that_goes_on_with_another_session_is_found_out() {
    let folder = TempFolder::new();
    let answer = r#"echo '{"type":"item.completed","item":{"id":"item_0","type":"agent_message","text":"hello"}}'
        echo '{"type":"turn.completed","usage":{"input_tokens":7,"output_tokens":2}}'"#;
    let codex =
        script(&folder, &format!("echo '{{\"type\":\"thread.started\",\"thread_id\":\"{}\"}}'\n{answer}", uuid()));
    let session: Text = uuid().into();
    codex.seed(&[said(Role::User, "one")], &session, folder.path()).unwrap();
    let words = [said(Role::User, "x")];
    let why = unknown(turn(&codex, folder.path(), Some(&session), "", &words, &mut Vec::new()).await);
    assert!(why.contains("instead of"), "{why}");
    // In a new one, what it prints is all there is: it has no rollout.
    let mut heard = Vec::new();
    let ran = turn(&codex, folder.path(), None, "", &words, &mut heard).await.unwrap();
    assert_eq!((ran.entries.len(), ran.mark, ran.usage.map(|it| it.input)), (1, None, Some(Tokens(7))));
    assert!(matches!(heard.last(), Some(Heard::Note(_))));
}

#[tokio::test]
async fn only_versions_that_are_known_to_work_are_taken() {
    let folder = TempFolder::new();
    let version = async |text: &str| script(&folder, text).version().await;
    assert_eq!(&*version("echo codex-cli 0.166.0").await.unwrap(), "0.166.0");
    assert_eq!(&*version("echo codex-cli 0.167.0-alpha.2").await.unwrap(), "0.167.0-alpha.2");
    let old = version("echo codex-cli 0.99.1").await.unwrap_err();
    assert!(old.to_string().contains("has version 0.99.1; at least 0.150.0 is needed"), "{old}");
    let odd = version("echo Welcome!").await.unwrap_err();
    assert!(odd.is_program() && odd.to_string().contains("Welcome!"), "{odd}");
    assert!(version("echo codex-cli 0.166.0; exit 1").await.unwrap_err().is_program());
}

#[tokio::test]
async fn it_is_told_to_be_quiet_unless_the_user_says_otherwise() {
    let folder = TempFolder::new();
    let printed = async |arguments: &[&str]| {
        let mut settings = script(&folder, r#"printf '%s\n' "$@" >&2; exit 1"#).settings().clone();
        settings.arguments = arguments.iter().map(|it| it.to_string()).collect();
        settings.model = Some("gpt-5.5".into());
        let words = [said(Role::User, "x")];
        failed(turn(&Codex::new(settings), folder.path(), None, "", &words, &mut Vec::new()).await).to_string()
    };
    let usual = printed(&[]).await;
    for expected in ["analytics.enabled=false", "check_for_update_on_startup=false", "--model=gpt-5.5", "--json"] {
        assert!(usual.contains(expected), "{usual}");
    }
    let theirs = printed(&["-c", "analytics.enabled=true"]).await;
    assert!(
        !theirs.contains("analytics.enabled=false") && theirs.contains("exec\n-c\nanalytics.enabled=true"),
        "{theirs}"
    );
}
