//! Agents written with the official packages: seven calls with tools, with the whole answer or its stream, straight to
//! the provider and through Recto. `RECTO_CLIENTS_PYTHON` is a Python that has the packages, `RECTO_CLIENTS_NODE` the
//! `node_modules` that has them.

use super::said::{Said, repeated};
use super::world::{Between, World};
use recto::wire::Wire;
use recto_testkit::fake::{Exchange, Reply};
use recto_testkit::shared::skipped;
use serde::Serialize;
use serde_json::{Value, json};
use std::io::Write;
use std::path::Path;
use std::process::{Command, Output, Stdio};

/// What the user says, each once the one before is answered.
pub(super) const WORDS: [&str; 3] =
    ["WORDS-0. Have a look at a.txt, please.", "WORDS-1. And around it?", "WORDS-2. Sum it up: ä😀."];
/// The last answer.
const LAST: &str = "ANSWER-6. \"All\" of it\nis übersichtlich 😀.";
/// Headers of one hop, and the one with which Recto asks for answers that it can read.
const NOT_COMPARED: [&str; 6] =
    ["host", "connection", "keep-alive", "content-length", "transfer-encoding", "accept-encoding"];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Language {
    Python,
    Node,
}

/// Whether answers come whole or as streams.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mode {
    Whole,
    Streams,
}

/// What came of one agent's run.
struct Run {
    /// Everything that it saw of each reply.
    saw: Vec<Value>,
    /// What reached the provider.
    calls: Vec<Exchange>,
    world: World,
}

/// The answers: thoughts, words with a call, two calls at once, a call without words, spelled oddly.
pub(super) fn script() -> Vec<Reply> {
    let replies = [
        Reply::default().thinking("THOUGHT-0.").text("ANSWER-0. I look.").call("read_file", r#"{"path":"a.txt"}"#),
        Reply::default().call("read_file", r#"{"path":"b.txt"}"#).call("list_folder", r#"{"folder":"src"}"#),
        Reply::default().text("ANSWER-2. It is there."),
        Reply::default().thinking("THOUGHT-3.").call("list_folder", "{ \"folder\" : \"tests\\/it\" }"),
        Reply::default().text("ANSWER-4. Those are the tests."),
        Reply::default().text("ANSWER-5. Once more.").call("read_file", r#"{"path":"a.txt"}"#),
        Reply::default().text(LAST),
    ];
    let named = |(at, reply): (usize, Reply)| {
        let id = format!("req_{at}");
        reply.header("request-id", &id).header("x-request-id", &id)
    };
    replies.into_iter().enumerate().map(named).collect()
}

/// Returns the command that runs an agent, or says loudly that the test is skipped.
fn agent(language: Language, folder: &Path) -> Option<Command> {
    match language {
        Language::Python => program(language, "RECTO_CLIENTS_PYTHON", "agent.py", folder),
        Language::Node => program(language, "RECTO_CLIENTS_NODE", "agent.mjs", folder),
    }
}

/// Returns the command that runs a script of the clients, or says loudly that the test is skipped. The variable names the
/// Python, or the `node_modules`, that has what the script needs.
pub(super) fn program(language: Language, variable: &str, script: &str, folder: &Path) -> Option<Command> {
    let scripts = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/clients");
    let Some(place) = std::env::var_os(variable) else {
        skipped(&format!("clients of the gateway: no packages for {language:?} (set {variable})"));
        return None;
    };
    let mut command = match language {
        Language::Python => {
            let mut command = Command::new(place);
            command.arg(format!("{scripts}/{script}"));
            command
        }
        Language::Node => {
            // Node looks for packages beside the script.
            let copy = folder.join(script);
            std::fs::copy(format!("{scripts}/{script}"), &copy).unwrap();
            std::os::unix::fs::symlink(place, folder.join("node_modules")).unwrap();
            let mut command = Command::new("node");
            command.arg(copy);
            command
        }
    };
    command.env_clear().env("PATH", std::env::var_os("PATH").unwrap_or_default()).env("HOME", folder);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    Some(command)
}

/// Has an agent talk to a world of its own.
fn run(language: Language, wire: Wire, mode: Mode, between: Between) -> Option<Run> {
    let world = World::new(between);
    script().into_iter().for_each(|reply| world.fake.push(reply));
    let saw = talks(language, wire, mode, &world)?;
    let calls = world.calls();
    assert_eq!((saw.len(), calls.len()), (7, 7));
    Some(Run { saw, calls, world })
}

/// What an agent is told to say in a world.
pub(super) fn plan(wire: Wire, mode: Mode, world: &World) -> Value {
    plan_to(usual_model(wire), &WORDS, wire, mode, world)
}

fn plan_to(model: &str, words: &[impl Serialize], wire: Wire, mode: Mode, world: &World) -> Value {
    let system = "IDENTITY. You help with files, and say little about it. ".repeat(120);
    json!({
        "base_url": world.url(), "wire": wire.to_string(), "streams": mode == Mode::Streams, "model": model,
        "system": system, "words": words,
    })
}

fn usual_model(wire: Wire) -> &'static str {
    match wire {
        Wire::OpenaiChat => "gpt-4o",
        Wire::OpenaiResponses => "gpt-5.5",
        Wire::Anthropic => "claude-sonnet-5-5",
        Wire::Gemini | Wire::Ollama => unreachable!("no client is heard in it"),
    }
}

/// Runs a program that is told what to do on its stdin.
pub(super) fn told(mut command: Command, plan: &Value) -> Output {
    let mut child = command.spawn().unwrap();
    child.stdin.take().unwrap().write_all(plan.to_string().as_bytes()).unwrap();
    child.wait_with_output().unwrap()
}

/// Has an agent say all its words in a world, and returns everything that it saw of each reply.
pub(super) fn talks(language: Language, wire: Wire, mode: Mode, world: &World) -> Option<Vec<Value>> {
    talks_to(usual_model(wire), &WORDS, language, wire, mode, world)
}

/// Has an agent say some words to a model.
pub(super) fn talks_to(
    model: &str,
    words: &[impl Serialize],
    language: Language,
    wire: Wire,
    mode: Mode,
    world: &World,
) -> Option<Vec<Value>> {
    let output = told(agent(language, &world.folder.path)?, &plan_to(model, words, wire, mode, world));
    let said = String::from_utf8_lossy(&output.stderr);
    let refused: Vec<_> = world.fake.log().into_iter().filter_map(|it| it.refusal).collect();
    assert!(output.status.success(), "{language:?} {wire} {mode:?}: {said} {refused:#?}");
    let lines = String::from_utf8(output.stdout).unwrap();
    Some(lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect())
}

/// What all clients must find: through Recto it is as without it, and what was said is kept once.
fn check(language: Language, wire: Wire) {
    for mode in [Mode::Whole, Mode::Streams] {
        let Some(direct) = run(language, wire, mode, Between::Nothing) else { return };
        let through = run(language, wire, mode, Between::Recto("none")).expect("it is there");
        for (at, (one, other)) in direct.saw.iter().zip(&through.saw).enumerate() {
            assert_eq!(one, other, "{mode:?}: reply {at} is what it is without Recto");
        }
        check_sent(&format!("{mode:?}"), &direct.calls, &through.calls);
        check_kept(wire, &through.calls, through.world);
    }
}

/// Fails unless the same calls reached the provider, to the byte, and its cache held as much of each.
#[track_caller]
pub(super) fn check_sent(what: &str, direct: &[Exchange], through: &[Exchange]) {
    assert_eq!(direct.len(), through.len(), "{what}");
    for (at, (one, other)) in direct.iter().zip(through).enumerate() {
        assert_eq!(one.request.path, other.request.path);
        assert!(one.request.body == other.request.body, "{what}: body {at} is the same to the byte");
        assert_eq!(one.usage, other.usage, "{what}: the cache holds as much at call {at}");
        assert_eq!(headers(one), headers(other), "{what}: call {at}");
    }
    assert!(cached(direct.last().expect("calls")) > 0, "{what}: the cache is used at all");
}

/// Under the policy that holds if nobody chooses one, nothing is refused, lost or doubled.
fn check_usual(language: Language, wire: Wire) {
    let Some(direct) = run(language, wire, Mode::Streams, Between::Nothing) else { return };
    let through = run(language, wire, Mode::Streams, Between::Recto("safe")).expect("it is there");
    for (one, other) in direct.saw.iter().zip(&through.saw) {
        assert_eq!(without_usage(&one["reply"]), without_usage(&other["reply"]));
    }
    check_kept(wire, &through.calls, through.world);
}

/// Fails unless one conversation was kept, of all that was said.
#[track_caller]
pub(super) fn check_kept(wire: Wire, calls: &[Exchange], mut world: World) {
    let mut expected = Said::all(wire, &calls.last().expect("calls").request.json());
    expected.push(Said::Assistant(LAST.into()));
    let kept = world.kept();
    assert_eq!(kept.len(), 1, "one conversation");
    assert_eq!(kept[0], expected, "everything once, in order");
    assert_eq!(repeated(&kept[0]), Vec::<&Said>::new());
}

fn headers(call: &Exchange) -> Vec<&(String, String)> {
    let mut headers: Vec<_> = call.request.headers.iter().collect();
    headers.retain(|(name, _)| !NOT_COMPARED.contains(&name.as_str()));
    headers.sort();
    headers
}

/// The tokens that the provider's cache held of a call.
fn cached(call: &Exchange) -> u64 {
    let places =
        ["/prompt_tokens_details/cached_tokens", "/input_tokens_details/cached_tokens", "/cache_read_input_tokens"];
    places.iter().find_map(|place| call.usage.pointer(place)?.as_u64()).expect("usage")
}

fn without_usage(reply: &Value) -> Value {
    let mut reply = reply.clone();
    reply["usage"] = Value::Null;
    reply
}

#[test]
fn a_python_agent_on_chat_completions_sees_what_it_would_without_recto() {
    check(Language::Python, Wire::OpenaiChat);
}

#[test]
fn a_python_agent_on_responses_sees_what_it_would_without_recto() {
    check(Language::Python, Wire::OpenaiResponses);
}

#[test]
fn a_python_agent_on_messages_sees_what_it_would_without_recto() {
    check(Language::Python, Wire::Anthropic);
}

#[test]
fn a_node_agent_on_chat_completions_sees_what_it_would_without_recto() {
    check(Language::Node, Wire::OpenaiChat);
}

#[test]
fn a_node_agent_on_responses_sees_what_it_would_without_recto() {
    check(Language::Node, Wire::OpenaiResponses);
}

#[test]
fn a_node_agent_on_messages_sees_what_it_would_without_recto() {
    check(Language::Node, Wire::Anthropic);
}

#[test]
fn under_the_usual_policy_nothing_is_refused_lost_or_doubled() {
    for wire in Wire::CLIENTS {
        check_usual(Language::Node, wire);
    }
}

#[test]
fn on_postgres_nothing_is_refused_lost_or_doubled() {
    for (language, wire) in [Language::Python, Language::Node, Language::Node].into_iter().zip(Wire::CLIENTS) {
        let Some(direct) = run(language, wire, Mode::Streams, Between::Nothing) else { return };
        let through = run(language, wire, Mode::Streams, Between::OnPostgres("none")).expect("it is there");
        assert_eq!(direct.saw, through.saw, "{wire}: it sees what it sees without Recto");
        let bodies = |run: &Run| run.calls.iter().map(|call| call.request.body.clone()).collect::<Vec<_>>();
        assert!(bodies(&direct) == bodies(&through), "{wire}: every body is the same to the byte");
        check_kept(wire, &through.calls, through.world);
    }
}

/// The control: without Recto an agent is itself alike twice, and what is said twice is seen to be.
#[test]
fn without_recto_two_runs_are_alike_and_a_doubled_message_is_noticed() {
    for wire in Wire::CLIENTS {
        let twice = [(); 2].map(|()| run(Language::Node, wire, Mode::Streams, Between::Nothing));
        let [Some(one), Some(other)] = twice else { return };
        assert_eq!(one.saw, other.saw);
        let mut said = Said::all(wire, &one.calls[6].request.json());
        assert_eq!(said.len(), if wire == Wire::OpenaiChat { 17 } else { 19 }, "{said:#?}");
        assert!(repeated(&said).is_empty());
        said.push(said[0].clone());
        assert_eq!(repeated(&said), [&said[0].clone()]);
    }
}
