//! What the server says on stderr of requests: one line each, for people or for programs, and nothing that was said in
//! them.

use super::asking::{Client, Talk};
use super::world::World;
use recto::wire::Wire;
use recto_testkit::fake::{Reply, Server};
use serde_json::{Value, json};

fn world(options: &[&str]) -> World {
    let mut world = World::before(Server::start(), "");
    let command = world.command(&[&["serve", "--listen", "127.0.0.1:0"], options].concat());
    world.serve_by(command);
    world
}

/// Lives through an answer, a stream, a refusal and a path that leads nowhere; returns the conversation and what the
/// provider has counted.
fn lived(world: &World) -> (String, Vec<Value>) {
    let client = Client::of(world).with("authorization", "Bearer sk-CREDENTIAL").with("x-word", "HEADER-WORD");
    world.fake.push(Reply::default().text("ANSWER-WORD"));
    let talk = Talk::new(Wire::OpenaiChat).user("ASKED-WORD");
    let first = client.asks(&talk);
    let talk = talk.heard(&first).user("AGAIN-WORD");
    world.fake.push(Reply::default().text("STREAM-WORD"));
    let talk = talk.beside("stream_options", json!({"include_usage": true}));
    assert!(client.streams(&talk).whole().is_whole);
    world.fake.push(Reply::error(503, json!({"error": {"message": "REFUSAL-WORD"}})));
    assert_eq!(
        client.asks(&Talk::new(Wire::Anthropic).user("THIRD-WORD").beside("model", json!("ODD WORD"))).status,
        503
    );
    client.gets("/nowhere/PATH-WORD?query=QUERY-WORD");
    (first.conversation(), world.fake.log().into_iter().map(|it| it.usage).collect())
}

#[test]
fn each_request_is_one_object_for_programs() {
    let mut world = world(&["--log-format", "json", "--verbose"]);
    let (conversation, usage) = lived(&world);
    let said = world.logged();
    // The address on stdout is for whoever started it.
    let lines = said.lines().filter(|line| !line.starts_with("http://"));
    let all: Vec<Value> = lines.map(|line| serde_json::from_str(line).unwrap_or_else(|_| panic!("{line}"))).collect();
    for line in &all {
        let is_time = line["time"].as_str().is_some_and(|time| time.len() == 24 && time.ends_with('Z'));
        assert!(is_time && line["event"].is_string() && line["message"].is_string(), "{line}");
        assert!(["info", "warn"].contains(&line["level"].as_str().unwrap()), "{line}");
    }
    let requests: Vec<&Value> = all.iter().filter(|line| line["event"] == "request").collect();
    assert_eq!(requests.len(), 4, "{said}");
    for (line, usage) in requests[..2].iter().zip(&usage) {
        let expected = [
            ("method", json!("POST")),
            ("route", json!("/v1/chat/completions")),
            ("status", json!(200)),
            ("tenant", json!("local")),
            ("conversation", json!(conversation)),
            ("upstream", json!("fake_openai_chat")),
            ("model", json!("gpt-4o")),
            ("end", json!("whole")),
            ("input_tokens", usage["prompt_tokens"].clone()),
            ("output_tokens", usage["completion_tokens"].clone()),
        ];
        for (name, value) in expected {
            assert_eq!(line[name], value, "{name}: {line}");
        }
        assert!(line["duration_ms"].as_f64().unwrap() > 0.0 && line["usd"].as_f64().unwrap() > 0.0, "{line}");
    }
    let refused = requests[2];
    assert_eq!(
        (&refused["status"], &refused["level"], &refused["end"]),
        (&json!(503), &json!("warn"), &json!("refused"))
    );
    assert_eq!((&requests[3]["route"], &requests[3]["status"]), (&json!("unknown"), &json!(404)));
    for word in ["WORD", "CREDENTIAL"] {
        assert!(!said.contains(word), "{word} in {said}");
    }
}

#[test]
fn each_request_is_one_line_for_people() {
    let mut world = world(&["--verbose"]);
    let (conversation, _) = lived(&world);
    let said = world.logged();
    let line = said.lines().find(|line| line.starts_with("POST /v1/chat/completions 200, ")).expect("a line");
    for part in [&*format!(", conversation {conversation}"), ", tenant local", ", model gpt-4o", ", input_tokens "] {
        assert!(line.contains(part), "{part} in {line}");
    }
    assert!(!said.contains("WORD") && !said.contains("CREDENTIAL"), "{said}");
}

#[test]
fn what_matters_less_than_the_level_is_not_said() {
    let mut world = world(&["--verbose", "--log-level", "warn"]);
    lived(&world);
    let said = world.logged();
    let lines: Vec<&str> = said.lines().filter(|line| !line.starts_with("http://")).collect();
    assert_eq!(lines.len(), 1, "{said}");
    assert!(lines[0].starts_with("POST /v1/messages 503, "), "{said}");
}

#[test]
fn a_failure_to_start_is_told_to_programs_too() {
    let world = World::before(Server::start(), "");
    world.folder.file("recto.toml", "[log]\nformat = 'json'\n");
    let ran = world.command(&["serve", "--listen", "0.0.0.0:0"]).output().unwrap();
    let said = String::from_utf8(ran.stderr).unwrap();
    let last: Value = serde_json::from_str(said.lines().last().unwrap()).unwrap();
    assert_eq!((ran.status.code(), &last["level"], &last["code"]), (Some(3), &json!("error"), &json!("R0326")));
    assert!(last["hints"][0].as_str().unwrap().contains("recto keys add"), "{last}");
}
