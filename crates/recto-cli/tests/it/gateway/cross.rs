//! Clients of one format and models that are spoken to in another: agents written with the official packages talk for
//! twenty turns with tools, and the strict provider takes every body.

mod faults; // what goes wrong, and what is refused

use super::asking::{Answer, Client, Talk};
use super::clients::{Language, Mode, talks_to};
use super::expansion::AT_ONCE;
use super::said::{Said, repeated};
use super::world::World;
use recto::wire::Wire;
use recto_testkit::fake::{Exchange, Reply, Server};
use serde_json::{Value, json};

/// How often the user speaks. Every second time the model calls tools before it answers.
const TURNS: usize = 20;
const CLAUDE: &str = "claude-sonnet-5-5";
const GPT: &str = "gpt-4o";
const NEWER_GPT: &str = "gpt-5.5";
/// A picture of one pixel.
const PIXEL: &str = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";

/// A world in which every model has one upstream, whose format is the model's own.
fn world(policy: &str, lines: &str) -> World {
    let mut world = World::before(Server::start(), "");
    let url = world.fake.url();
    let upstream = |name: &str, wire: Wire, models: &str| {
        let version = if wire == Wire::Anthropic { "" } else { "/v1" };
        format!(
            "[upstream.{name}]\nurl = '{url}{version}'\nwire = '{wire}'\nmodels = ['{models}']\nretries = 0\n{lines}"
        )
    };
    let claude = upstream("claude", Wire::Anthropic, "claude-*");
    let gpt = upstream("gpt", Wire::OpenaiChat, "gpt-4*");
    let newer = upstream("newer", Wire::OpenaiResponses, "gpt-5*");
    world.folder.file("recto.toml", format!("{claude}{gpt}{newer}"));
    world.folder.file("at_once.toml", AT_ONCE);
    world.serve(policy);
    world
}

/// The format in which a model is spoken to.
fn spoken(model: &str) -> Wire {
    match model {
        CLAUDE => Wire::Anthropic,
        GPT => Wire::OpenaiChat,
        _ => Wire::OpenaiResponses,
    }
}

fn path(wire: Wire) -> &'static str {
    super::asking::path(wire)
}

/// What the user says, and what is answered: in every second turn with calls before, of which some come in pairs.
fn script() -> (Vec<String>, Vec<Reply>) {
    let (mut words, mut replies) = (Vec::new(), Vec::new());
    for turn in 0..TURNS {
        words.push(format!("WORDS-{turn}. What about it? ä😀"));
        let thinks = || Reply::default().thinking(&format!("THOUGHT-{turn}."));
        let read = format!(r#"{{"path":"{turn}.txt"}}"#);
        match turn % 4 {
            1 => replies.push(thinks().text(&format!("LOOKING-{turn}.")).call("read_file", &read)),
            3 => replies
                .push(thinks().call("read_file", &read).call("list_folder", &format!(r#"{{"folder":"{turn}"}}"#))),
            _ => {}
        }
        replies.push(Reply::default().text(&format!("ANSWER-{turn}. \"All\" of it\nis übersichtlich 😀.")));
    }
    (words, replies)
}

/// The tokens that the provider's cache held of a call.
fn cached(call: &Exchange) -> u64 {
    let places =
        ["/prompt_tokens_details/cached_tokens", "/input_tokens_details/cached_tokens", "/cache_read_input_tokens"];
    places.iter().find_map(|place| call.usage.pointer(place)?.as_u64()).expect("usage")
}

/// What the client's own package says that was used: all input, what was cached of it, and the output.
fn used(wire: Wire, usage: &Value) -> [u64; 3] {
    let of = |place: &str| usage.pointer(place).and_then(Value::as_u64).unwrap_or_else(|| panic!("{place}: {usage}"));
    match wire {
        Wire::OpenaiChat => {
            [of("/prompt_tokens"), of("/prompt_tokens_details/cached_tokens"), of("/completion_tokens")]
        }
        Wire::OpenaiResponses => [of("/input_tokens"), of("/input_tokens_details/cached_tokens"), of("/output_tokens")],
        Wire::Anthropic => {
            let cached = of("/cache_read_input_tokens");
            [of("/input_tokens") + cached + of("/cache_creation_input_tokens"), cached, of("/output_tokens")]
        }
        Wire::Gemini | Wire::Ollama => unreachable!("no client is heard in it"),
    }
}

/// The words of a reply, as the client's own package tells them, and why it ended.
fn heard(wire: Wire, reply: &Value) -> (String, String) {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_string();
    match wire {
        Wire::OpenaiChat => {
            let choice = &reply["choices"][0];
            (text(&choice["message"]["content"]), text(&choice["finish_reason"]))
        }
        Wire::OpenaiResponses => {
            let items = reply["output"].as_array().unwrap().iter().filter(|it| it["type"] == "message");
            let texts = items.flat_map(|it| it["content"].as_array().unwrap()).map(|part| text(&part["text"]));
            (texts.collect(), text(&reply["status"]))
        }
        Wire::Anthropic => {
            let blocks = reply["content"].as_array().unwrap().iter().filter(|it| it["type"] == "text");
            (blocks.map(|block| text(&block["text"])).collect(), text(&reply["stop_reason"]))
        }
        Wire::Gemini | Wire::Ollama => unreachable!("no client is heard in it"),
    }
}

/// An agent of one format talks to a model of another, and everybody is content.
fn check(language: Language, wire: Wire, model: &str, mode: Mode, policy: &str) {
    let mut world = world(policy, "");
    let (words, replies) = script();
    let count = replies.len();
    replies.into_iter().for_each(|reply| world.fake.push(reply));
    let Some(saw) = talks_to(model, &words, language, wire, mode, &world) else { return };
    // None was refused, and all came in the format of the model.
    let calls = world.calls();
    assert_eq!((saw.len(), calls.len()), (count, count));
    assert!(calls.iter().all(|call| call.request.path == path(spoken(model))));
    for (at, (saw, call)) in saw.iter().zip(&calls).enumerate() {
        assert_eq!(used(wire, &saw["reply"]["usage"]), used(spoken(model), &call.usage), "call {at}");
    }
    let ended = [("stop", "tool_calls"), ("completed", "completed"), ("end_turn", "tool_use")];
    let (end, calling) = ended[Wire::CLIENTS.iter().position(|it| *it == wire).unwrap()];
    let heard: Vec<(String, String)> = saw.iter().map(|it| heard(wire, &it["reply"])).collect();
    let answers: Vec<&(String, String)> = heard.iter().filter(|(text, _)| text.starts_with("ANSWER")).collect();
    assert_eq!(answers.len(), TURNS);
    for (turn, (text, why)) in answers.into_iter().enumerate() {
        assert_eq!(
            (text.as_str(), why.as_str()),
            (&*format!("ANSWER-{turn}. \"All\" of it\nis übersichtlich 😀."), end)
        );
    }
    let looking = heard.iter().filter(|(text, why)| !text.starts_with("ANSWER") && why == calling);
    assert_eq!(looking.count(), TURNS / 2);
    // From the third call on, the cache holds nearly all of the page before; one provider's in steps.
    let step = if model == NEWER_GPT { 2048 } else { 128 };
    for (at, pair) in calls.windows(2).enumerate().skip(2) {
        let [before, _, _] = used(spoken(model), &pair[0].usage);
        assert!((cached(&pair[1]) + step) * 10 >= before * 9, "call {}: {} of {before}", at + 1, cached(&pair[1]));
    }
    let mut expected = Said::all(spoken(model), &calls.last().expect("calls").request.json());
    expected.push(Said::Assistant(format!("ANSWER-{}. \"All\" of it\nis übersichtlich 😀.", TURNS - 1)));
    let kept = world.kept();
    assert_eq!(kept.len(), 1, "one conversation");
    assert_eq!(kept[0], expected, "everything once, in order");
    let said: Vec<Said> = kept[0].iter().filter(|it| !matches!(it, Said::Thought(_))).cloned().collect();
    assert_eq!(repeated(&said), Vec::<&Said>::new());
    let users = said.iter().filter(|it| matches!(it, Said::User(_))).count();
    assert_eq!((users, said.len()), (TURNS, TURNS * 2 + TURNS / 4 * 7));
}

#[test]
fn a_python_agent_on_chat_completions_talks_to_claude_for_twenty_turns() {
    check(Language::Python, Wire::OpenaiChat, CLAUDE, Mode::Whole, "default");
    check(Language::Python, Wire::OpenaiChat, CLAUDE, Mode::Streams, "default");
}

#[test]
fn a_python_agent_on_messages_talks_to_gpt_for_twenty_turns() {
    check(Language::Python, Wire::Anthropic, GPT, Mode::Whole, "default");
    check(Language::Python, Wire::Anthropic, GPT, Mode::Streams, "none");
}

#[test]
fn a_python_agent_on_messages_talks_to_a_model_of_responses_for_twenty_turns() {
    check(Language::Python, Wire::Anthropic, NEWER_GPT, Mode::Whole, "none");
    check(Language::Python, Wire::Anthropic, NEWER_GPT, Mode::Streams, "default");
}

#[test]
fn a_python_agent_on_responses_talks_to_claude_for_twenty_turns() {
    check(Language::Python, Wire::OpenaiResponses, CLAUDE, Mode::Whole, "default");
    check(Language::Python, Wire::OpenaiResponses, CLAUDE, Mode::Streams, "none");
}

#[test]
fn node_agents_talk_across_formats_for_twenty_turns() {
    check(Language::Node, Wire::OpenaiChat, CLAUDE, Mode::Streams, "none");
    check(Language::Node, Wire::Anthropic, GPT, Mode::Streams, "default");
}

/// A talk with a model, whatever its format.
fn talk(wire: Wire, model: &str) -> Talk {
    let talk = Talk::new(wire).beside("model", model.into());
    if wire == Wire::OpenaiResponses { talk.beside("store", false.into()) } else { talk }
}

#[test]
fn pictures_are_shown_in_the_format_of_the_model() {
    let world = world("default", "");
    let client = Client::of(&world);
    (0..2).for_each(|_| world.fake.push(Reply::default().text("A pixel.")));
    let url = format!("data:image/png;base64,{PIXEL}");
    let mut chat = talk(Wire::OpenaiChat, CLAUDE);
    chat.list.push(json!({"role": "user", "content": [{"type": "text", "text": "What is this?"},
        {"type": "image_url", "image_url": {"url": url}}]}));
    assert_eq!(client.asks(&chat).json()["choices"][0]["message"]["content"], "A pixel.");
    let mut messages = talk(Wire::Anthropic, GPT);
    messages.list.push(json!({"role": "user", "content": [{"type": "text", "text": "And this?"},
        {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PIXEL}}]}));
    assert_eq!(client.asks(&messages).json()["content"][0]["text"], "A pixel.");
    let calls = world.calls();
    let [claude, gpt] = &calls[..] else { panic!("{}", calls.len()) };
    let source = json!({"type": "base64", "media_type": "image/png", "data": PIXEL});
    let blocks = claude.request.json()["messages"][0]["content"].clone();
    let without_marks = |block: &Value| json!({"type": block["type"], "source": block["source"]});
    assert_eq!(without_marks(&blocks[1]), json!({"type": "image", "source": source}));
    assert_eq!(gpt.request.json()["messages"][0]["content"][1]["image_url"]["url"], url);
}

/// A model asks back what its page leaves out, and its client, of another format, sees nothing of it.
fn check_asking_back(wire: Wire, model: &str, mode: Mode) {
    let mut world = world("at_once.toml", "");
    let handle = r#"{"handle":"m2","reason":"I need all of it."}"#;
    world.fake.push(Reply::default().call("read_file", r#"{"path":"a.txt"}"#));
    world.fake.push(Reply::default().text("ANSWER-0. Seen."));
    world.fake.push(Reply::default().text("ANSWER-1. I look again. ").call("recto_expand", handle));
    world.fake.push(Reply::default().text("It was there."));
    world.fake.push(Reply::default().text("ANSWER-2."));
    let words = ["WORDS-0.", "WORDS-1.", "WORDS-2."];
    let Some(saw) = talks_to(model, &words, Language::Node, wire, mode, &world) else { return };
    let calls = world.calls();
    assert_eq!((saw.len(), calls.len()), (4, 5), "one round was unseen");
    let told: Vec<String> = saw.iter().map(|it| heard(wire, &it["reply"]).0).collect();
    assert_eq!(told[2], "ANSWER-1. I look again. It was there.", "{wire} {mode:?}");
    assert!(saw.iter().all(|it| !it.to_string().contains("recto_expand")));
    let has_original = |at: usize| String::from_utf8_lossy(&calls[at].request.body).contains("39: path a.txt");
    assert!(!has_original(2) && has_original(3), "it was left out, and given back");
    let sums = used(spoken(model), &calls[2].usage).into_iter().zip(used(spoken(model), &calls[3].usage));
    let both: Vec<u64> = sums.map(|(one, other)| one + other).collect();
    assert_eq!(used(wire, &saw[2]["reply"]["usage"]).to_vec(), both, "{wire} {mode:?}");
    assert_eq!(world.kept().len(), 1, "one conversation");
}

#[test]
fn what_a_model_asks_back_is_answered_unseen_across_formats_too() {
    for mode in [Mode::Whole, Mode::Streams] {
        check_asking_back(Wire::OpenaiChat, CLAUDE, mode);
        check_asking_back(Wire::Anthropic, GPT, mode);
    }
}

#[test]
fn tokens_are_counted_here_for_models_of_another_format() {
    let world = world("none", "");
    let body = talk(Wire::Anthropic, GPT).user("How long is this?").body();
    let answer = Client::of(&world).sends("/v1/messages/count_tokens", body.to_string()).whole();
    assert_eq!((answer.status, answer.header("x-recto-counted")), (200, Some("estimate")), "{}", answer.text());
    assert!(answer.json()["input_tokens"].as_u64().is_some_and(|tokens| (3..60).contains(&tokens)));
    assert!(world.fake.log().is_empty());
}

/// Which format a model was asked in, as the answer tells.
fn asked_in(answer: &Answer) -> Option<&str> {
    answer.header("x-recto-wire")
}

#[test]
fn who_answers_is_decided_by_the_model_and_the_configuration_alone() {
    let world = world("none", "");
    let client = Client::of(&world);
    (0..4).for_each(|_| world.fake.push(Reply::default().text("Yes.")));
    let asked = |wire: Wire, model: &str| {
        let answer = client.asks(&talk(wire, model).user(&format!("{wire} {model}?")));
        assert_eq!(answer.status, 200, "{}", answer.text());
        asked_in(&answer).map(str::to_string)
    };
    assert_eq!(asked(Wire::OpenaiChat, CLAUDE).as_deref(), Some("anthropic"));
    assert_eq!(asked(Wire::Anthropic, NEWER_GPT).as_deref(), Some("openai_responses"));
    assert_eq!(asked(Wire::Anthropic, CLAUDE), None, "in its own words");
    assert_eq!(asked(Wire::OpenaiResponses, NEWER_GPT), None);
    let paths: Vec<String> = world.calls().into_iter().map(|call| call.request.path).collect();
    assert_eq!(paths, ["/v1/messages", "/v1/responses", "/v1/messages", "/v1/responses"]);
}
