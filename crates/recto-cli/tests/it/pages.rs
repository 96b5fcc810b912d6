//! Pages of kept conversations: those of their files, and those of recorded calls.

use crate::import::Stored;
use crate::run::{FIXTURE, SMALL, mentions, succeeds};
use recto::{Entry, Policy, Target};
use recto_engine::store::sqlite::Sqlite;
use recto_engine::{Answer, Append, At, Call, Engine, Opening, Tenant};
use serde_json::Value;

/// A request of Anthropic with tools, marks, thinking settings and fields of its own.
const ANTHROPIC: &str = r#"{"model":"claude-sonnet-5","max_tokens":900,"stop_sequences":["END"],"metadata":{"user_id":"u"},
"system":[{"type":"text","text":"You are terse.","cache_control":{"type":"ephemeral"}}],
"tools":[{"name":"read","description":"Reads a file","input_schema":{"type":"object","properties":{"b":{"type":"string"},"a":{"type":"number"}}}}],
"messages":[{"role":"user","content":"Read a.rs"},
{"role":"assistant","content":[{"type":"text","text":"So be it."},{"type":"tool_use","id":"t1","name":"read","input":{"b":"a.rs"}}]},
{"role":"user","content":[{"type":"tool_result","tool_use_id":"t1","content":"fn main() {}","cache_control":{"type":"ephemeral"}}]},
{"role":"assistant","content":"It is empty."},{"role":"user","content":"And b.rs?"}]}"#;

/// A request of OpenAI that wants an answer of a certain form.
const FORMAT: &str = r#"{"model":"gpt-4o","seed":7,"temperature":0.1,"response_format":{"type":"json_schema","json_schema":
{"name":"answer","strict":true,"schema":{"type":"object","properties":{"z":{"type":"string"},"a":{"type":"string"}},"required":["z","a"],"additionalProperties":false}}},
"tools":[{"type":"function","function":{"name":"read","parameters":{"type":"object","properties":{}}}}],
"messages":[{"role":"developer","content":"Be brief."},{"role":"user","content":"What is in a.rs?"}]}"#;

/// A conversation that its assistant ends.
const ANSWERED: &str = r#"[{"role":"user","content":"Hi"},{"role":"assistant","content":"Hello"},
{"role":"user","content":"Bye"},{"role":"assistant","content":"See you"}]"#;

#[track_caller]
fn check_same(stored: &Stored, verb: &str, file: &str, name: &str, args: &[&str]) {
    let of_file = succeeds(&[&[verb, file], args].concat()).stdout;
    let of_store = stored.run(&[&[verb, name], args].concat()).stdout;
    assert_eq!(of_store, of_file, "{verb} {name} {args:?}");
}

#[test]
fn small_conversations_of_every_format_give_the_pages_of_their_files() {
    let stored = Stored::new();
    let chat = stored.folder.file("chat.json", SMALL);
    stored.folder.file("anthropic.json", ANTHROPIC);
    stored.folder.file("format.json", FORMAT);
    stored.folder.file("answered.json", ANSWERED);
    for format in ["claude_code", "codex", "openai_responses", "recto"] {
        let converted = stored.folder.at(&format!("as-{format}.json"));
        succeeds(&["convert", &chat, "--to", format, "-o", &converted]);
    }
    let names: Vec<(String, String)> =
        stored.folder.names().iter().map(|file| (stored.folder.at(file), file.replace(".json", ""))).collect();
    for (file, name) in &names {
        stored.run(&["import", file, "--as", name]);
    }
    assert_eq!(names.len(), 8);
    for (file, name) in &names {
        for policy in ["default", "none"] {
            for args in
                [&["--for", "gpt-4o"][..], &["--for", "claude-sonnet-5"], &["--for", "gpt-5.2", "--input", "Why?"]]
            {
                check_same(&stored, "compile", file, name, &[args, &["--policy", policy]].concat());
            }
        }
    }
    check_same(&stored, "explain", &stored.folder.at("answered.json"), "answered", &["--turn", "0"]);
}

#[test]
fn a_long_conversation_gives_the_pages_of_its_file_in_every_format() {
    let stored = Stored::new();
    for (format, model) in
        [("openai_chat", "gpt-4o"), ("anthropic", "claude-sonnet-5"), ("openai_responses", "gpt-5.2")]
    {
        let file = stored.folder.at(&format!("{format}.json"));
        succeeds(&["convert", FIXTURE, "--to", format, "--for", model, "-o", &file]);
        stored.run(&["import", &file]);
        for verb in ["compile", "explain"] {
            check_same(&stored, verb, &file, format, &["--for", model, "--window", "32k"]);
        }
        check_same(&stored, "compile", &file, format, &["--for", model, "--policy", "none"]);
    }
    let file = stored.folder.at("openai_chat.json");
    check_same(&stored, "compile", &file, "openai_chat", &["--turn", "40", "--window", "32k"]);
}

/// Makes a conversation `lived` with three recorded calls, and returns the bodies that were sent.
fn lived(store: &str) -> Vec<String> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    runtime.block_on(async {
        let engine = Engine::over(Sqlite::open(store).unwrap());
        let at = At::new(&Tenant::default(), "lived");
        engine.open(&at, Opening::default()).await.unwrap();
        let target = Target::named("gpt-4o").unwrap();
        let call = Call::new("main", Policy::usual(), target.clone());
        let mut sent = Vec::new();
        for turn in 0..3 {
            let said = Entry::user(format!("Question {turn}"));
            engine.append(&at, Append::any([said])).await.unwrap();
            let compiled = engine.compile(&at, &call).await.unwrap();
            sent.push(String::from_utf8(target.wire.encode(&compiled.page, &target)).unwrap());
            let entries = vec![Entry::assistant(format!("Answer {turn}"))];
            let answer = Answer { entries, reported: Some(recto::Tokens(40)), ..Answer::default() };
            engine.acknowledge(&at, &compiled.receipt.ticket, answer).await.unwrap();
        }
        sent
    })
}

#[test]
fn the_pages_of_recorded_calls_are_made_again() {
    let stored = Stored::new();
    let sent = lived(&stored.store);
    for (turn, body) in sent.iter().enumerate() {
        let again = stored.run(&["compile", "lived", "--turn", &turn.to_string(), "--policy", "none"]);
        assert_eq!(again.stdout, format!("{body}\n"), "turn {turn}");
        assert!(!again.stderr.contains("warning"), "{}", again.stderr);
    }
    let last = stored.run(&["compile", "lived"]);
    assert_eq!(last.stdout, format!("{}\n", sent[2]));
    mentions(&last.stderr, &["the page of the last call (2)"]);
    mentions(&stored.fails(3, &["compile", "lived", "--turn", "3"]), &["error[R0350]", "call 3", "made 3"]);
    let next: Value = serde_json::from_str(&stored.run(&["compile", "lived", "--input", "And?"]).stdout).unwrap();
    assert_eq!(next["messages"].as_array().map(Vec::len), Some(7));
}

#[test]
fn recorded_calls_are_listed_with_what_they_came_to() {
    let stored = Stored::new();
    lived(&stored.store);
    let turns = stored.json(&["turns", "lived", "--from", "1", "--count", "1"]);
    assert_eq!((&turns["calls"][0]["turn"], &turns["more"]), (&1.into(), &true.into()));
    assert_eq!((&turns["calls"][0]["reported"], &turns["calls"][0]["totals"]["shown"]), (&40.into(), &3.into()));
    let told = stored.run(&["turns", "lived"]).stdout;
    mentions(&told, &["call", "tokens", "cached", "reported", "USD", "40"]);
    assert_eq!(told.lines().count(), 4);
    // Somebody else has made no calls, so it is the replay that a file gets.
    let other = stored.run(&["compile", "lived", "--reader", "critic", "--turn", "0"]).stdout;
    mentions(&other, &["Question 0"]);
    assert!(!other.contains("Answer 0"));
}
