//! Pages in every wire's format.

use crate::run::{FIXTURE, Folder, SMALL, fails, mentions, recto, succeeds};
use recto::wire::Wire;
use serde_json::Value;

/// Models whose own wire it is.
const MODELS: [(&str, Wire); 4] = [
    ("gpt-4o", Wire::OpenaiChat),
    ("gpt-5.2", Wire::OpenaiResponses),
    ("claude-sonnet-5", Wire::Anthropic),
    ("gemini-3.8-flash", Wire::Gemini),
];

fn json(text: &str) -> Value {
    serde_json::from_str(text).unwrap()
}

#[test]
fn a_model_is_spoken_to_in_its_own_format() {
    let folder = Folder::new();
    let chat = folder.file("chat.json", SMALL);
    for (model, wire) in MODELS {
        for settings in [&[][..], &["--window", "32k", "--policy", "first_chars"]] {
            for file in [FIXTURE, &chat] {
                let ran = succeeds(&[&["compile", file, "--for", model], settings].concat());
                assert_eq!(wire.validate(ran.stdout.trim_end().as_bytes()), [], "{model}");
                // Gemini's address names the model.
                let named = (wire != Wire::Gemini).then_some(model);
                assert_eq!(json(&ran.stdout)["model"].as_str(), named);
                mentions(&ran.stderr, &[&format!("page for {model}, policy ")]);
            }
        }
    }
}

#[test]
fn any_model_can_be_spoken_to_in_another_format() {
    let folder = Folder::new();
    let chat = folder.file("chat.json", SMALL);
    for (model, _) in MODELS {
        for wire in Wire::ALL {
            let ran = succeeds(&["compile", &chat, "--for", model, "--wire", wire.name()]);
            assert_eq!(wire.validate(ran.stdout.trim_end().as_bytes()), [], "{model} over {wire}");
            let checked = folder.file("body.json", &ran.stdout);
            let ran = succeeds(&["validate", &checked, "--wire", wire.name()]);
            assert_eq!(ran.stdout, format!("{checked}: valid {wire}\n"));
            succeeds(&["explain", &chat, "--for", model, "--wire", wire.name()]);
            let report = json(&succeeds(&["replay", &chat, "--for", model, "--wire", wire.name(), "--json"]).stdout);
            assert_eq!((&report["wire"], &report["target"]), (&wire.name().into(), &model.into()));
        }
    }
    let own = succeeds(&["compile", &chat, "--for", "claude-opus-5"]).stdout;
    assert_eq!(own, succeeds(&["compile", &chat, "--for", "claude-opus-5", "--wire", "anthropic"]).stdout);
    let told = fails(2, &["compile", &chat, "--wire", "antropic"]);
    mentions(&told, &["error[R0202]", "openai_chat, openai_responses, anthropic, gemini, ollama", "'anthropic'"]);
}

#[test]
fn pages_of_a_replay_are_openai_chat_whatever_the_wire() {
    let folder = Folder::new();
    let chat = folder.file("chat.json", SMALL);
    for wire in Wire::ALL {
        let pages = succeeds(&["replay", &chat, "--pages", "-", "--wire", wire.name()]).stdout;
        let last = json(pages.lines().last().unwrap());
        assert_eq!(last["messages"][1]["content"], "Read a.rs", "{wire}");
        assert_eq!(last["messages"][2]["tool_calls"][0]["function"]["name"], "read", "{wire}");
    }
}

#[test]
fn fields_of_a_request_pass_through_to_its_own_format_alone() {
    let folder = Folder::new();
    let format = r#"{"type":"json_schema","json_schema":{"name":"n","schema":{"type":"object","properties":{},"additionalProperties":false}}}"#;
    let body = format!(
        r#"{{"model":"gpt-4o","temperature":0.5,"user":"u1","response_format":{format},"messages":[{{"role":"user","content":"Hi"}}]}}"#
    );
    let file = folder.file("body.json", &body);
    let same = json(&succeeds(&["compile", &file, "--for", "gpt-4.1"]).stdout);
    assert_eq!((&same["model"], &same["temperature"], &same["user"]), (&"gpt-4.1".into(), &0.5.into(), &"u1".into()));
    assert_eq!(same["response_format"], json(format));
    let ran = succeeds(&["compile", &file, "--for", "gpt-4.1", "--wire", "openai_responses"]);
    mentions(&ran.stderr, &["fields of the request that only openai_chat has were left out: temperature, user\n"]);
    let other = json(&ran.stdout);
    assert_eq!((other.get("user"), &other["text"]["format"]["name"]), (None, &"n".into()));
}

#[test]
fn fields_that_the_provider_refuses_are_not_passed_on_in_silence() {
    let folder = Folder::new();
    let body = r#"{"model":"gpt-4o","temperature":0.5,"messages":[{"role":"user","content":"Hi"}]}"#;
    let file = folder.file("body.json", body);
    for args in [&["compile", &file, "--wire", "openai_chat"][..], &["convert", &file, "--to", "openai_chat"]] {
        let told = fails(3, &[args, &["--for", "gpt-5.2"]].concat());
        mentions(&told, &["error[R0318]", "cause: temperature: gpt-5.2 takes only the default, 1\n", "hint: remove"]);
        succeeds(&[args, &["--for", "gpt-4.1"]].concat());
    }
}

#[test]
fn nothing_known_about_a_model_is_no_failure() {
    let folder = Folder::new();
    let chat = folder.file("chat.json", SMALL);
    let recto::calibration::Calibration { factor, worst, .. } = recto::calibration::Calibration::unknown();
    let counted = format!(", times {factor} to {worst}; no prices\n");
    for command in ["compile", "explain", "replay"] {
        let ran = succeeds(&[command, &chat, "--for", "llama-9"]);
        mentions(
            &ran.stderr,
            &["warning: nothing is known about model \"llama-9\"; assumed: a window of 32 000 tokens"],
        );
        mentions(&ran.stderr, &["the wire openai_chat; tokens counted by ", &counted]);
        mentions(&ran.stderr, &["hint: the nearest known models: ", "under [models.\"llama-9\"] in recto.toml, or "]);
        assert_eq!(ran.stderr.matches("warning: nothing").count(), 1);
    }
    let ran = succeeds(&["compile", &chat, "--for", "gpt4o", "--window", "9k", "--wire", "anthropic"]);
    mentions(&ran.stderr, &["assumed: tokens counted by ", "nearest known models: gpt-4o, "]);
    assert_eq!(Wire::Anthropic.validate(ran.stdout.trim_end().as_bytes()), []);
    let claude = succeeds(&["compile", &chat, "--for", "claude-next"]);
    mentions(&claude.stderr, &["the wire anthropic; "]);
    mentions(&fails(3, &["explain", &chat, "--for", " "]), &["error[R0320]: unknown model", "recto models"]);
    let odd = recto(&["explain", &chat, "--for", "\u{1b}[31m"]);
    assert!(!odd.stderr.contains('\u{1b}') && !odd.stdout.contains('\u{1b}'), "{:?}", odd.stderr);
}
