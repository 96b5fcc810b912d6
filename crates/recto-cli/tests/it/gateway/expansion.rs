//! What a page leaves out, asked back by the model and answered on the way: its client sees none of it.

mod faults; // what goes wrong in a round that the client doesn't see
mod offered; // where the tool is offered, and where not
mod program; // Claude Code

use super::clients::{Language, Mode, talks};
use super::said::{Said, repeated};
use super::world::World;
use recto::wire::Wire;
use recto_testkit::fake::{Exchange, Reply, Server};
use serde_json::Value;

/// What of a tool's result is only told by its original.
const ORIGINAL: &str = "39: path a.txt";
/// The last answer.
const LAST: &str = "ANSWER-7. That is all.";
/// A policy that leaves results of some tools out as soon as they were seen, and never what was asked back.
pub(super) const AT_ONCE: &str = r#"
schema_version = 1
name = "at_once"
apply = "immediately"

[[reduce]]
[reduce.expire]
after = 0
action = "never"
rules = [{ tool = "read_file", action = "remove" }, { tool = "Bash", action = "remove" }, { tool = "exec_command", action = "remove" }]
"#;

/// Returns a world whose server leaves things out at once.
fn world() -> World {
    let mut world = World::before(Server::start(), "");
    world.folder.file("at_once.toml", AT_ONCE);
    world.serve("at_once.toml");
    world
}

/// An answer that asks something back.
fn asking(reply: Reply, handle: &str) -> Reply {
    reply.call("recto_expand", &format!(r#"{{"handle":"{handle}","reason":"I need all of it."}}"#))
}

/// The answers of a conversation in which something is asked back alone, beside a call of the client's, and in vain.
fn script() -> [Reply; 8] {
    let reply = Reply::default;
    [
        reply().thinking("THOUGHT-0.").call("read_file", r#"{"path":"a.txt"}"#),
        reply().call("read_file", r#"{"path":"b.txt"}"#),
        reply().text("ANSWER-2. I have seen both."),
        asking(reply().thinking("THOUGHT-3.").text("ANSWER-3. I look again. "), "m2"),
        reply().thinking("THOUGHT-4.").text("ANSWER-4. It was there."),
        asking(reply().thinking("THOUGHT-5."), "m2").call("list_folder", r#"{"folder":"src"}"#),
        asking(reply().thinking("THOUGHT-6."), "m999"),
        reply().text(LAST),
    ]
}

/// The number at the first of these places that a usage has.
fn number(usage: &Value, places: &[&str]) -> u64 {
    places.iter().find_map(|place| usage.pointer(place)?.as_u64()).unwrap_or_else(|| panic!("{usage}"))
}

/// The tokens that the provider's cache held of a call.
fn cached(call: &Exchange) -> u64 {
    let places =
        ["/prompt_tokens_details/cached_tokens", "/input_tokens_details/cached_tokens", "/cache_read_input_tokens"];
    number(&call.usage, &places)
}

/// All tokens of a call's page.
fn input(wire: Wire, call: &Exchange) -> u64 {
    let of = |place: &str| number(&call.usage, &[place]);
    match wire {
        Wire::OpenaiChat => of("/prompt_tokens"),
        Wire::OpenaiResponses => of("/input_tokens"),
        Wire::Anthropic => of("/input_tokens") + of("/cache_read_input_tokens") + of("/cache_creation_input_tokens"),
        Wire::Gemini | Wire::Ollama => unreachable!("no client is heard in it"),
    }
}

/// How much less than all of a page a cache may hold because it keeps whole blocks only.
fn grid(wire: Wire) -> u64 {
    match wire {
        Wire::OpenaiChat => 128,
        Wire::OpenaiResponses => 2_048,
        Wire::Anthropic => 1,
        Wire::Gemini | Wire::Ollama => unreachable!("no client is heard in it"),
    }
}

/// Everything that a client was told in words, and the calls that it was to make.
fn shown(wire: Wire, reply: &Value) -> (String, Vec<String>) {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_string();
    let all = |list: &Value| list.as_array().cloned().unwrap_or_default();
    let of = |list: Vec<Value>, kind: &str| list.into_iter().filter(|it| it["type"] == kind).collect::<Vec<_>>();
    match wire {
        Wire::OpenaiChat => {
            let message = &reply["choices"][0]["message"];
            let calls = all(&message["tool_calls"]).iter().map(|it| text(&it["function"]["name"])).collect();
            (text(&message["content"]), calls)
        }
        Wire::OpenaiResponses => {
            let said = of(all(&reply["output"]), "message");
            let words = said.iter().flat_map(|it| all(&it["content"])).map(|it| text(&it["text"])).collect();
            (words, of(all(&reply["output"]), "function_call").iter().map(|it| text(&it["name"])).collect())
        }
        Wire::Anthropic => {
            let words = of(all(&reply["content"]), "text").iter().map(|it| text(&it["text"])).collect();
            (words, of(all(&reply["content"]), "tool_use").iter().map(|it| text(&it["name"])).collect())
        }
        Wire::Gemini | Wire::Ollama => unreachable!("no client is heard in it"),
    }
}

/// Fails unless every number of a usage is the sum of those in two others.
#[track_caller]
fn is_sum(usage: &Value, one: &Value, other: &Value) {
    for (name, value) in one.as_object().expect("an object") {
        match value {
            // At the end of a stream, Anthropic's format has no place for this.
            Value::Object(_) if name == "cache_creation" => {}
            Value::Object(_) => is_sum(&usage[name], value, &other[name]),
            Value::Number(number) => {
                let sum = number.as_u64().unwrap() + other[name].as_u64().unwrap();
                assert_eq!(usage[name].as_u64(), Some(sum), "{name}: {usage}");
            }
            _ => {}
        }
    }
}

/// What is on record must be what the provider was told, each thing once, but in full where its page left it out.
#[track_caller]
fn is_kept_once(kept: &[Said], told: &[Said]) {
    let is_same = |(kept, told): (&Said, &Said)| match (kept, told) {
        (Said::Result { call: one, .. }, Said::Result { call: other, text }) if text.contains("recto_expand m") => {
            one == other
        }
        (one, other) => one == other,
    };
    assert_eq!(kept.len(), told.len(), "{kept:#?}\n{told:#?}");
    for pair in kept.iter().zip(told) {
        assert!(is_same(pair), "{pair:#?}");
    }
    let mut twice = repeated(kept);
    // A thought that nobody may read says nothing.
    twice.retain(|it| !matches!(it, Said::Thought(text) if text.is_empty()));
    assert_eq!(twice, Vec::<&Said>::new());
}

fn check(language: Language, wire: Wire, mode: Mode) {
    let mut world = world();
    script().into_iter().for_each(|reply| world.fake.push(reply));
    let Some(saw) = talks(language, wire, mode, &world) else { return };
    let calls = world.calls();
    assert_eq!((saw.len(), calls.len()), (6, 8), "two rounds are not seen");

    let told = |at: usize| String::from_utf8_lossy(&calls[at].request.body).into_owned();
    assert!(told(1).contains(ORIGINAL), "it was told once");
    assert!(!told(3).contains(ORIGINAL) && told(3).contains("recto_expand m2"), "it was left out: {}", told(3));
    assert!(calls[3].answer.contains("recto_expand"), "it was asked back");
    assert!(told(4).contains(ORIGINAL), "and given: {}", told(4));
    assert!(told(7).contains("There is no message \\\"m999\\\""), "what is not there is refused: {}", told(7));

    for reply in &saw {
        assert!(!reply.to_string().contains("expand"), "the client sees none of it: {reply}");
    }
    let shown: Vec<_> = saw.iter().map(|it| shown(wire, &it["reply"])).collect();
    let called = |names: &[&str]| names.iter().map(ToString::to_string).collect::<Vec<_>>();
    assert_eq!(shown[3], ("ANSWER-3. I look again. ANSWER-4. It was there.".into(), called(&[])));
    assert_eq!(shown[4], (String::new(), called(&["list_folder"])));
    assert_eq!(shown[5], (LAST.into(), called(&[])));
    is_sum(&saw[3]["reply"]["usage"], &calls[3].usage, &calls[4].usage);
    is_sum(&saw[5]["reply"]["usage"], &calls[6].usage, &calls[7].usage);

    for at in [4, 5, 6, 7] {
        let (holds, was) = (cached(&calls[at]), input(wire, &calls[at - 1]));
        assert!(holds + grid(wire) > was, "{wire} {mode:?}: at call {at} the cache holds {holds} of {was}");
        assert_eq!(calls[at].dropped, 0, "no reasoning is lost at call {at}");
        let [before, now] = [at - 1, at].map(|at| Said::all(wire, &calls[at].request.json()));
        assert!(now.starts_with(&before), "{wire} {mode:?}: at call {at} {now:#?} begins as {before:#?}");
    }
    let client = super::asking::Client::of(&world);
    client.until("recto_expansions_total", 2);
    client.until("recto_expansions_refused_total", 1);
    let name = world.names().pop().expect("a conversation");
    assert_eq!(world.json(&["turns", &name, "--json"])["calls"].as_array().map(Vec::len), Some(8), "each round is one");
    let mut expected = Said::all(wire, &calls[7].request.json());
    expected.push(Said::Assistant(LAST.into()));
    let kept = world.kept();
    assert_eq!(kept.len(), 1, "one conversation");
    is_kept_once(&kept[0], &expected);
    world.run(&["doctor"]);
}

#[test]
fn a_python_agent_on_chat_completions_sees_nothing_of_what_is_asked_back() {
    [Mode::Whole, Mode::Streams].into_iter().for_each(|mode| check(Language::Python, Wire::OpenaiChat, mode));
}

#[test]
fn a_python_agent_on_responses_sees_nothing_of_what_is_asked_back() {
    [Mode::Whole, Mode::Streams].into_iter().for_each(|mode| check(Language::Python, Wire::OpenaiResponses, mode));
}

#[test]
fn a_python_agent_on_messages_sees_nothing_of_what_is_asked_back() {
    [Mode::Whole, Mode::Streams].into_iter().for_each(|mode| check(Language::Python, Wire::Anthropic, mode));
}

#[test]
fn a_node_agent_on_chat_completions_sees_nothing_of_what_is_asked_back() {
    [Mode::Whole, Mode::Streams].into_iter().for_each(|mode| check(Language::Node, Wire::OpenaiChat, mode));
}

#[test]
fn a_node_agent_on_responses_sees_nothing_of_what_is_asked_back() {
    [Mode::Whole, Mode::Streams].into_iter().for_each(|mode| check(Language::Node, Wire::OpenaiResponses, mode));
}

#[test]
fn a_node_agent_on_messages_sees_nothing_of_what_is_asked_back() {
    [Mode::Whole, Mode::Streams].into_iter().for_each(|mode| check(Language::Node, Wire::Anthropic, mode));
}
