//! What nobody thought of: Schemathesis makes requests from the description, right ones and wrong ones, and holds every
//! answer against it. `RECTO_SCHEMATHESIS` is a Python that has it.

use super::live::Live;
use recto_testkit::shared::skipped;
use serde_json::{Value, json};
use std::process::{Command, Output};

/// What starts it, wherever it was installed.
const START: &str = "from schemathesis.cli import schemathesis; schemathesis()";
/// How much it tries: every edge of every field once, and a few requests more of each route.
const USUAL: [&str; 4] = ["--phases", "coverage,fuzzing", "--max-examples", "4"];
/// With `RECTO_LONG`, until ten minutes are over, and also requests that go on from what others answered.
const LONG: [&str; 4] = ["--phases", "coverage,fuzzing,stateful", "--max-time", "600"];
/// No 5xx, and nothing that is not described: no status, type, header or body.
const CHECKS: &str = "not_a_server_error,status_code_conformance,content_type_conformance,\
                      response_headers_conformance,response_schema_conformance";

/// Runs it, or says loudly that the test is skipped.
fn run(live: &Live, more: &[&str]) -> Option<Output> {
    let Some(python) = std::env::var_os("RECTO_SCHEMATHESIS") else {
        skipped("requests that nobody thought of: no Schemathesis (set RECTO_SCHEMATHESIS)");
        return None;
    };
    let folder = &live.place.folder.path;
    let mut command = Command::new(python);
    command.args(["-c", START, "run"]).args(more).args(["--checks", CHECKS, "--request-timeout", "30", "--no-color"]);
    command.current_dir(folder).env("HOME", folder);
    Some(command.output().unwrap())
}

#[track_caller]
fn told(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr)
}

#[test]
fn whatever_is_asked_is_answered_as_it_is_described() {
    let live = Live::new();
    // Names that are made up are short.
    for name in ["monday", "0", "a"] {
        live.talk(name, "words", 3);
        live.post(&format!("/conversations/{name}/readers/main/pins"), json!({"first": 0, "last": 0}));
    }
    let much = if std::env::var_os("RECTO_LONG").is_some() { LONG } else { USUAL };
    let url = format!("{}/openapi.json", live.url());
    // Streams don't end by themselves; other tests hear them.
    let streams = ["--exclude-operation-id", "readerEvents", "--exclude-operation-id", "tenantEvents"];
    // One worker: two of them parse Python in two threads, which CPython 3.11 is not up to (`SystemError: AST constructor
    // recursion depth mismatch`, once in some eighty runs). Who asks at once is in `at_once.rs`.
    let how = [&*url, "--seed", "1", "--workers", "1", "--continue-on-failure"];
    let Some(output) = run(&live, &[&how[..], &much, &streams].concat()) else { return };
    let told = told(&output);
    assert_eq!(output.status.code(), Some(0), "{told}");
    let tested = told.lines().find_map(|line| line.trim().strip_prefix("Tested: ")?.parse::<usize>().ok());
    assert!(tested >= Some(37), "{told}");
    let doctor = live.place.command(&["doctor"]).output().unwrap();
    assert!(doctor.status.success(), "{}", String::from_utf8_lossy(&doctor.stdout));
    live.ends();
}

/// The control: an answer that is not as it is described is found.
#[test]
fn an_answer_that_is_described_otherwise_is_found() {
    let live = Live::new();
    let mut document = live.document.clone();
    let version = &mut document["components"]["schemas"]["VersionTold"];
    version["properties"]["tenant"] = json!({"type": "integer"});
    assert!(version["required"].as_array().is_some_and(|it| it.contains(&Value::from("tenant"))));
    let file = live.place.folder.file("wrong.json", document.to_string());
    let how = [&*file, "--url", &live.url(), "--include-operation-id", "version", "--phases", "coverage,fuzzing"];
    let Some(output) = run(&live, &[&how[..], &["--max-examples", "2"]].concat()) else { return };
    let told = told(&output);
    assert_eq!(output.status.code(), Some(1), "{told}");
    assert!(told.contains("Response violates schema"), "{told}");
}
