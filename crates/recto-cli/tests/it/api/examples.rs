//! What the documentation shows is run as it stands there, against a server.

use super::live::Live;
use recto_testkit::shared::skipped;
use serde_json::json;
use std::process::Command;

const PAGE: &str = include_str!("../../../../../docs/api.md");
/// What the documentation says of where the server is.
const ADDRESS: &str = "http://127.0.0.1:7676";
/// What a provider answers.
const REPLY: &str = r#"{"id":"r","object":"chat.completion","model":"gpt-4o","choices":[{"index":0,"finish_reason":"stop",
    "message":{"role":"assistant","content":"Paris."}}],"usage":{"prompt_tokens":14,"completion_tokens":2,"total_tokens":16}}"#;

/// Returns the examples in a language, those of one page together.
fn examples(language: &str, live: &Live) -> String {
    let fence = format!("```{language}\n");
    let blocks = PAGE.split(&fence).skip(1).map(|rest| rest.split("```").next().unwrap());
    let own = blocks.filter(|block| !block.starts_with("recto serve"));
    own.collect::<Vec<_>>().join("\n").replace(ADDRESS, &live.url())
}

/// Runs examples with a program, if it is there; returns what it printed.
fn run(program: &str, file: &str, language: &str, more: &[&str]) -> Option<(Live, String)> {
    run_as(program, file, language, more, |live| examples(language, live))
}

/// The same with what was made of them.
fn run_as(
    program: &str,
    file: &str,
    language: &str,
    more: &[&str],
    made: impl Fn(&Live) -> String,
) -> Option<(Live, String)> {
    for program in more.iter().chain([&program]) {
        if Command::new(program).arg("--version").output().is_err() {
            skipped(&format!("examples in {language}: there is no {program}"));
            return None;
        }
    }
    let live = Live::new();
    live.place.folder.file("reply.json", REPLY);
    let file = live.place.folder.file(file, made(&live));
    let output = Command::new(program).arg(&file).current_dir(&live.place.folder.path).output().unwrap();
    let [stdout, stderr] = [output.stdout, output.stderr].map(|it| String::from_utf8_lossy(&it).into_owned());
    assert!(output.status.success(), "{stdout}{stderr}");
    Some((live, stdout))
}

#[test]
fn the_examples_of_the_documentation_do_what_they_say() {
    let Some((live, _)) = run("sh", "example.sh", "sh", &["curl", "jq"]) else { return };
    let calls = live.get("/conversations/monday/readers/main/turns")["calls"].clone();
    assert_eq!((calls.as_array().unwrap().len(), &calls[0]["reported"]), (1, &json!(14)), "{calls}");
    assert_eq!(live.get("/conversations/monday/entries/1")["entry"]["parts"][0]["text"], "Paris.");
}

#[test]
fn the_example_in_python_makes_three_calls() {
    let Some((live, printed)) = run("python3", "example.py", "python", &[]) else { return };
    assert_eq!(live.get("/conversations/python/readers/main/turns")["calls"].as_array().unwrap().len(), 3, "{printed}");
}

/// `RECTO_TSC` is the compiler of TypeScript, which also finds what has a wrong type.
#[test]
fn the_example_in_typescript_makes_three_calls() {
    let Some(compiler) = std::env::var_os("RECTO_TSC") else {
        return skipped("examples in TypeScript: no compiler (set RECTO_TSC)");
    };
    let compiled = |live: &Live| {
        let options = ["--strict", "--target", "es2022", "--module", "nodenext", "--lib", "es2022,dom", "--types", ""];
        let file = live.place.folder.file("example.mts", examples("ts", live));
        let output = Command::new(&compiler).args(options).arg(&file).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
        std::fs::read_to_string(file.replace(".mts", ".mjs")).unwrap()
    };
    let Some((live, printed)) = run_as("node", "example.mjs", "ts", &[], compiled) else { return };
    assert_eq!(live.get("/conversations/node/readers/main/turns")["calls"].as_array().unwrap().len(), 3, "{printed}");
}
