use crate::run::{FIXTURE, Folder, SMALL, TODAY, fails, mentions, recto_reading, succeeds};
use recto::transcript::{self, Format};
use recto::wire::Wire;
use serde_json::Value;
use std::fs;

const ID: &str = "0f8fad5b-d9cb-469f-a165-70867728950e";

fn json(text: &str) -> Value {
    serde_json::from_str(text).unwrap()
}

#[test]
fn a_conversation_becomes_a_request_in_every_format() {
    for (wire, model) in [
        (Wire::OpenaiChat, "gpt-4o"),
        (Wire::OpenaiResponses, "gpt-5.2"),
        (Wire::Anthropic, "claude-sonnet-5"),
        (Wire::Ollama, "qwen3"),
    ] {
        let ran = succeeds(&["convert", FIXTURE, "--to", wire.name()]);
        assert_eq!(wire.validate(ran.stdout.trim_end().as_bytes()), []);
        assert_eq!(json(&ran.stdout)["model"], model);
        mentions(&ran.stderr, &[&format!("the request is for {model}; --for names another model")]);
        let ran = succeeds(&["convert", FIXTURE, "--to", wire.name(), "--for", "my-own"]);
        assert_eq!(json(&ran.stdout)["model"], "my-own");
        mentions(&ran.stderr, &["nothing is known about model \"my-own\""]);
    }
    let body = json(&succeeds(&["convert", FIXTURE, "--to", "openai_chat"]).stdout);
    assert_eq!(body, json(&fs::read_to_string(FIXTURE).unwrap()), "nothing is shortened or lost");
}

#[test]
fn every_format_can_be_read_again() {
    let folder = Folder::new();
    let chat = folder.file("chat.json", SMALL);
    let said = |text: &str| {
        let all = transcript::read(text).unwrap();
        assert_eq!(all.len(), 1);
        let body = Format::Wire(Wire::OpenaiChat);
        let session = transcript::Session { id: ID.into(), folder: "/".into(), at: recto::entry::Millis(0) };
        let target = recto::Target::named("gpt-4o").unwrap();
        let conversation = transcript::Conversation { asked: None, ..all.into_iter().next().unwrap() };
        let body = body.write(conversation, &target, &session).unwrap().bytes;
        let texts: Vec<Value> = json(std::str::from_utf8(&body).unwrap())["messages"].as_array().unwrap().clone();
        texts
            .into_iter()
            .filter(|message| message["role"] != "system")
            .map(|it| it["content"].clone())
            .collect::<Vec<_>>()
    };
    for format in Format::ALL {
        let written = succeeds(&["convert", &chat, "--to", format.name()]).stdout;
        // Other programs have system prompts of their own: in their sessions the instructions are the user's first words.
        let again = said(&written);
        let skipped = usize::from(matches!(format, Format::ClaudeCode | Format::Codex) && again.len() == 6);
        assert_eq!(again[skipped..], said(SMALL), "{format}:\n{written}");
        let again = recto_reading(&written, &["convert", "-", "--to", "recto"]);
        assert_eq!(again.code, Some(0), "{format}: {}", again.stderr);
    }
}

#[test]
fn the_same_conversation_gets_the_same_id() {
    let folder = Folder::new();
    let chat = folder.file("chat.json", SMALL);
    let other = folder.file("other.json", SMALL.replace("b.rs", "c.rs"));
    let run = |file: &str, args: &[&str]| {
        succeeds(&[&["convert", file, "--to", "claude_code", "--cwd", "/srv/my work"], args].concat())
    };
    let first = run(&chat, &[]);
    assert_eq!(first.stdout, run(&chat, &[]).stdout);
    let line = json(first.stdout.lines().next().unwrap());
    let id = line["sessionId"].as_str().unwrap();
    assert_eq!((id.len(), &id[14..15]), (36, "8"), "{id}");
    assert_ne!(json(run(&other, &[]).stdout.lines().next().unwrap())["sessionId"], id);
    mentions(
        &first.stderr,
        &[&format!("~/.claude/projects/-srv-my-work/{id}.jsonl; then, in /srv/my work: claude --resume {id}")],
    );
    assert_eq!(line["cwd"], "/srv/my work");
    let named = run(&chat, &["--session-id", &ID.to_uppercase()]);
    assert_eq!(json(named.stdout.lines().next().unwrap())["sessionId"], ID);
    let date = TODAY.replace('-', "/");
    let codex = succeeds(&["convert", &chat, "--to", "codex", "--session-id", ID]);
    mentions(&codex.stderr, &[&format!("~/.codex/sessions/{date}/rollout-{TODAY}T00-00-00-{ID}.jsonl")]);
    mentions(&codex.stderr, &[&format!("codex resume {ID}")]);
    mentions(
        &fails(2, &["convert", &chat, "--to", "codex", "--session-id", "1"]),
        &["error[R0202]", "expected a UUID"],
    );
}

#[test]
fn a_session_belongs_to_the_current_folder_unless_another_is_named() {
    let folder = Folder::new();
    folder.file("chat.json", SMALL);
    let mut command = crate::run::command(&["convert", "chat.json", "--to", "codex"]);
    let output = command.current_dir(&folder.path).output().unwrap();
    let written = String::from_utf8(output.stdout).unwrap();
    assert_eq!(json(written.lines().next().unwrap())["payload"]["cwd"], folder.path.to_str().unwrap());
    let mut command = crate::run::command(&["convert", "chat.json", "--to", "codex", "--cwd", "."]);
    let output = command.current_dir(&folder.path).output().unwrap();
    assert_eq!(String::from_utf8(output.stdout).unwrap(), written);
}

#[test]
fn output_goes_to_a_file_whole_or_not_at_all() {
    let folder = Folder::new();
    let chat = folder.file("chat.json", SMALL);
    let out = folder.at("out.json");
    let ran = succeeds(&["convert", &chat, "--to", "recto", "-o", &out]);
    assert_eq!(ran.stdout, "");
    assert_eq!(fs::read_to_string(&out).unwrap(), succeeds(&["convert", &chat, "--to", "recto", "-o", "-"]).stdout);
    mentions(&fails(3, &["convert", &chat, "--to", "recto", "-o", &chat]), &["error[R0306]", "write to another file"]);
    mentions(&fails(1, &["convert", &chat, "--to", "recto", "-o", &folder.at("no/out")]), &["cannot write"]);
    assert_eq!(fs::read_to_string(&chat).unwrap(), SMALL);
    assert_eq!(folder.names(), ["chat.json", "out.json"]);
}

#[test]
fn one_of_several_conversations_must_be_picked() {
    let folder = Folder::new();
    let line =
        |id: &str| format!("{{\"id\":\"{id}\",\"messages\":[{{\"role\":\"user\",\"content\":\"I am {id}\"}}]}}\n");
    let file = folder.file("two.jsonl", line("one") + &line("two"));
    for format in Format::ALL {
        mentions(&fails(3, &["convert", &file, "--to", format.name()]), &["error[R0312]", "one, two"]);
    }
    let ran = succeeds(&["convert", &file, "--to", "openai_chat", "--conversation", "two"]);
    mentions(&ran.stdout, &["I am two"]);
    mentions(&fails(3, &["convert", &file, "--to", "codex", "--conversation", "tow"]), &["error[R0313]"]);
}

#[test]
fn what_a_format_has_no_place_for_is_said() {
    let folder = Folder::new();
    let tool = r#"{"type":"function","function":{"name":"f","parameters":{"type":"object","properties":{}}}}"#;
    let body = format!(
        r#"{{"model":"gpt-4o","temperature":1,"tools":[{tool}],"messages":[{{"role":"user","content":"Hi"}}]}}"#
    );
    let file = folder.file("body.json", body);
    for format in ["recto", "claude_code", "codex"] {
        let ran = succeeds(&["convert", &file, "--to", format]);
        mentions(
            &ran.stderr,
            &[&format!("warning: {format} has no place for definitions of tools; 1 were left out\n")],
        );
    }
    let ran = succeeds(&["convert", &file, "--to", "anthropic"]);
    mentions(&ran.stderr, &["fields of the request that only openai_chat has were left out: temperature\n"]);
    mentions(&ran.stdout, &["\"input_schema\":{\"type\":\"object\""]);
}

#[test]
fn the_configured_model_is_taken_if_it_speaks_the_format() {
    let folder = Folder::new();
    let (chat, config) =
        (folder.file("chat.json", SMALL), folder.file("own.toml", "[defaults]\nfor = 'claude-opus-5'"));
    let model =
        |to: &str| json(&succeeds(&["convert", &chat, "--to", to, "--config", &config]).stdout)["model"].clone();
    assert_eq!((model("anthropic"), model("openai_chat")), ("claude-opus-5".into(), "gpt-4o".into()));
}

#[test]
fn formats_and_files_that_are_wrong_are_told() {
    let folder = Folder::new();
    let chat = folder.file("chat.json", SMALL);
    mentions(&fails(2, &["convert", &chat, "--to", "claude"]), &["error[R0202]", "claude_code, codex"]);
    mentions(&fails(2, &["convert", &chat]), &["error[R0203]", "--to <FORMAT>"]);
    let bad = folder.file("bad.json", "[{\"role\":\"usr\",\"content\":\"x\"}]");
    mentions(&fails(3, &["convert", &bad, "--to", "codex"]), &["error[R0310]", "line 1, column 10"]);
    let empty = folder.file("empty.json", "[]");
    for format in Format::ALL {
        let ran = crate::run::recto(&["convert", &empty, "--to", format.name()]);
        assert!(matches!(ran.code, Some(0 | 1 | 3)), "{format}: {:?} {}", ran.code, ran.stderr);
    }
}

#[test]
fn the_help_tells_where_sessions_lie() {
    let help = succeeds(&["convert", "--help"]).stdout;
    mentions(&help, &["~/.claude/projects/", "~/.codex/sessions/", "claude --resume ID", "codex resume ID"]);
    for format in Format::ALL {
        mentions(&help, &[format.name()]);
    }
}
