use crate::run::{Folder, Ran, SMALL, mentions, recto, recto_reading, succeeds};
use recto::wire::Wire;
use serde_json::Value;

const CHAT: &str = r#"{"model":"gpt-4o","messages":[{"role":"user","content":"Hi"}]}"#;
const BROKEN: &str =
    r#"{"messages":[{"role":"user","content":"Hi"},{"role":"tool","tool_call_id":"x","content":"y"}]}"#;

#[track_caller]
fn broken(ran: &Ran) {
    assert_eq!(ran.code, Some(3), "{}", ran.stderr);
    mentions(&ran.stderr, &["error[R0340]: "]);
}

#[test]
fn a_body_without_faults_is_said_to_be_valid() {
    let folder = Folder::new();
    let file = folder.file("body.json", CHAT);
    let ran = succeeds(&["validate", "--wire", "openai_chat", &file]);
    assert_eq!((ran.stdout, ran.stderr), (format!("{file}: valid openai_chat\n"), String::new()));
    let ran = recto_reading(CHAT, &["validate", "-"]);
    assert_eq!((ran.code, &*ran.stdout), (Some(0), "stdin: valid openai_chat\n"));
    assert_eq!(ran.stderr, "stdin is taken for a request of openai_chat; --wire says otherwise\n");
}

#[test]
fn every_violation_is_printed_with_its_place() {
    let folder = Folder::new();
    let file = folder.file("body.json", BROKEN);
    let ran = recto(&["validate", "--wire", "openai_chat", &file]);
    broken(&ran);
    let expected = Wire::OpenaiChat.validate(BROKEN.as_bytes());
    assert!(expected.len() > 1);
    let lines: Vec<String> = expected.iter().map(ToString::to_string).collect();
    assert_eq!(ran.stdout.trim_end(), lines.join("\n"));
    mentions(&ran.stdout, &["model: missing\n", "messages"]);
    mentions(&ran.stderr, &[&format!("body.json breaks {} rules of openai_chat\n", expected.len())]);
}

#[test]
fn json_says_the_same() {
    let folder = Folder::new();
    let file = folder.file("body.json", BROKEN);
    let ran = recto(&["validate", &file, "--json"]);
    broken(&ran);
    let told: Value = serde_json::from_str(&ran.stdout).unwrap();
    assert_eq!((&told["wire"], &told["guessed"], &told["valid"]), (&"openai_chat".into(), &true.into(), &false.into()));
    assert_eq!(told["file"], file);
    let expected = Wire::OpenaiChat.validate(BROKEN.as_bytes());
    let violations = told["violations"].as_array().unwrap();
    assert_eq!(violations.len(), expected.len());
    for (told, expected) in violations.iter().zip(&expected) {
        assert_eq!((&told["at"], &told["what"]), (&expected.at.as_str().into(), &(*expected.what).into()));
    }
    let good = folder.file("good.json", CHAT);
    let told: Value = serde_json::from_str(&succeeds(&["validate", &good, "--json"]).stdout).unwrap();
    assert_eq!((&told["valid"], &told["violations"]), (&true.into(), &Value::Array(Vec::new())));
}

#[test]
fn what_compile_prints_is_valid_and_taken_for_what_it_is() {
    let folder = Folder::new();
    let chat = folder.file("chat.json", SMALL);
    for (model, wire) in [
        ("gpt-4o", "openai_chat"),
        ("gpt-5.2", "openai_responses"),
        ("claude-sonnet-5", "anthropic"),
        ("gemini-3.8-flash", "gemini"),
        ("qwen3", "ollama"),
    ] {
        let body = succeeds(&["compile", &chat, "--for", model, "--wire", wire]).stdout;
        let ran = recto_reading(&body, &["validate", "-"]);
        assert_eq!((ran.code, ran.stdout), (Some(0), format!("stdin: valid {wire}\n")), "{}", ran.stderr);
        mentions(&ran.stderr, &[&format!("taken for a request of {wire}")]);
    }
}

#[test]
fn what_is_no_body_is_told() {
    for (text, word) in [("{\"model\":", "line 1"), ("", "body"), ("[]", ""), ("7", ""), ("{\"input\":7}", "input")] {
        let ran = recto_reading(text, &["validate", "-"]);
        broken(&ran);
        mentions(&ran.stdout, &[word]);
        for wire in Wire::ALL {
            broken(&recto_reading(text, &["validate", "-", "--wire", wire.name()]));
        }
    }
    let folder = Folder::new();
    let gone = recto(&["validate", &folder.at("gone.json")]);
    assert_eq!((gone.code, &*gone.stdout), (Some(1), ""));
    let latin = folder.file("latin1.json", b"{\"a\":\"\xe9\"}");
    mentions(&recto(&["validate", &latin]).stderr, &["error[R0304]", "line 1, column 7"]);
    mentions(&recto(&["validate", folder.path.to_str().unwrap()]).stderr, &["is a folder", "name a JSON file in it"]);
    assert_eq!(recto(&["validate", "-", "--wire", "chat"]).code, Some(2));
}

#[test]
fn contents_of_a_body_do_not_steer_the_terminal() {
    let ran = recto_reading(
        "{\"model\":\"m\",\"messages\":[{\"role\":\"\\u001b[31m\",\"content\":\"x\"}]}",
        &["validate", "-"],
    );
    broken(&ran);
    assert!(!ran.stdout.contains('\u{1b}'), "{:?}", ran.stdout);
}
