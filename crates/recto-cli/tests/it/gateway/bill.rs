//! What the provider bills for long conversations, with and without a policy, beside what `recto replay` predicts.

use super::asking::{Client, Talk};
use super::world::World;
use crate::run::{Folder, succeeds};
use recto::tokens::Count as _;
use recto::{Tokenizer, wire::Wire};
use recto_testkit::fake::{Count, Exchange, Reply, Server, Settings};
use recto_testkit::shared;
use serde_json::{Value, json};
use std::collections::HashMap;

/// Long conversations, of more than 30 000 tokens each.
const CONVERSATIONS: [&str; 4] = [
    "cli-claude-36ba8a60-f1f6",
    "cli-claude-4f8c1176-7025",
    "oh-my-posh-claude-597d17fc-8ee0",
    "cli-claude-f8190a9b-031b",
];
/// What a message costs beside its words.
const MESSAGE_TOKENS: u64 = 3;
/// How far the bill may be from the prediction.
const APART_MAX: f64 = 0.02;

/// A model, and its prices: of what is not cached, what is written to the cache, and what is read from it.
struct Model {
    wire: Wire,
    name: &'static str,
    prices: [f64; 3],
}

const MODELS: [Model; 2] = [
    Model { wire: Wire::OpenaiChat, name: "gpt-4.1", prices: [2.0, 2.0, 0.5] },
    Model { wire: Wire::Anthropic, name: "claude-opus-4-6", prices: [5.0, 6.25, 0.5] },
];

impl Model {
    /// Returns what the input of a call costs.
    fn bills(&self, call: &Exchange) -> f64 {
        let of = |place: &str| call.usage.pointer(place).and_then(Value::as_u64).unwrap_or(0) as f64;
        let tokens = match self.wire {
            Wire::Anthropic => {
                [of("/input_tokens"), of("/cache_creation_input_tokens"), of("/cache_read_input_tokens")]
            }
            _ => {
                let cached = of("/prompt_tokens_details/cached_tokens");
                [of("/prompt_tokens") - cached, 0.0, cached]
            }
        };
        tokens.iter().zip(self.prices).map(|(tokens, price)| tokens * price / 1e6).sum()
    }
}

/// A conversation as its client lives through it: it keeps what it was told, with the provider's names of calls.
struct Life {
    talk: Talk,
    /// The names of calls in the script, and those that the provider gave them.
    calls: HashMap<String, String>,
}

impl Life {
    fn new(model: &Model) -> Life {
        let talk = Talk::new(model.wire).beside("model", model.name.into());
        Life { talk, calls: HashMap::new() }
    }

    /// Takes a message of the user, or the result of a call.
    fn takes(&mut self, message: &Value) {
        let mut message = message.clone();
        if message["role"] == "tool" {
            message["tool_call_id"] = self.calls[message["tool_call_id"].as_str().unwrap()].as_str().into();
        }
        if self.talk.wire == Wire::OpenaiChat {
            return self.talk.list.push(message);
        }
        let block = match message["role"].as_str().unwrap() {
            "tool" => {
                json!({"type": "tool_result", "tool_use_id": message["tool_call_id"], "content": message["content"]})
            }
            _ => json!({"type": "text", "text": message["content"]}),
        };
        match self.talk.list.last_mut().filter(|last| last["role"] == "user") {
            Some(last) => last["content"].as_array_mut().unwrap().push(block),
            None => self.talk.list.push(json!({"role": "user", "content": [block]})),
        }
    }

    /// Asks, and is told what the script says.
    #[track_caller]
    fn asks(&mut self, client: &Client, world: &World, message: &Value) {
        let text = message["content"].as_str().filter(|text| !text.is_empty());
        let calls = message["tool_calls"].as_array().cloned().unwrap_or_default();
        let reply = text.map_or(Reply::default(), |text| Reply::default().text(text));
        let reply = calls.iter().fold(reply, |reply, call| {
            let function = &call["function"];
            reply.call(function["name"].as_str().unwrap(), function["arguments"].as_str().unwrap())
        });
        world.fake.push(reply);
        let answer = client.asks(&self.marked());
        assert_eq!(answer.status, 200, "{}", answer.text());
        self.talk = self.talk.clone().heard(&answer);
        let last = self.talk.list.last().unwrap();
        let given: Vec<&Value> = match self.talk.wire {
            Wire::Anthropic => {
                last["content"].as_array().unwrap().iter().filter(|it| it["type"] == "tool_use").collect()
            }
            _ => last["tool_calls"].as_array().into_iter().flatten().collect(),
        };
        assert_eq!(given.len(), calls.len());
        let named = calls.iter().zip(given);
        let named = named.map(|(old, new)| [&old["id"], &new["id"]].map(|id| id.as_str().unwrap().to_string()));
        self.calls.extend(named.map(|[old, new]| (old, new)));
    }

    /// The talk as it is sent: with marks behind its last two messages of the user, where nothing is cached without.
    fn marked(&self) -> Talk {
        let mut talk = self.talk.clone();
        if talk.wire == Wire::Anthropic {
            for message in talk.list.iter_mut().rev().filter(|it| it["role"] == "user").take(2) {
                let last = message["content"].as_array_mut().unwrap().last_mut().unwrap();
                last["cache_control"] = json!({"type": "ephemeral"});
            }
        }
        talk
    }
}

/// Counts what a model reads of a message: of calls and results their words, not the JSON around them.
fn tokens(text: &str) -> u64 {
    let of = |text: &str| Tokenizer::O200k.count(text).0;
    let value: Value = serde_json::from_str(text).unwrap_or_default();
    let call = |it: &Value| {
        let (name, arguments) = (it["function"]["name"].as_str()?, it["function"]["arguments"].as_str()?);
        Some(of(name) + of(arguments))
    };
    let words = match value["type"].as_str() {
        Some("tool_use") => of(value["name"].as_str().unwrap()) + of(&value["input"].to_string()),
        Some("tool_result") => of(value["content"].as_str().unwrap()),
        _ => {
            let calls: Option<u64> = value.as_array().and_then(|calls| calls.iter().map(call).sum());
            calls.filter(|_| value[0].is_object()).unwrap_or_else(|| of(text))
        }
    };
    words + MESSAGE_TOKENS
}

/// Lives through a script under a policy, and returns what was billed and what was said.
fn lived(script: &[Value], model: &Model, policy: &str) -> (f64, Talk) {
    let count = Count::by(tokens);
    let mut world = World::before(Server::with(Settings { count, ..Settings::default() }), "");
    world.serve(policy);
    let (client, mut life) = (Client::of(&world), Life::new(model));
    for message in script {
        match message["role"] == "assistant" {
            true => life.asks(&client, &world, message),
            false => life.takes(message),
        }
    }
    let calls = world.calls();
    let billed = calls.iter().map(|call| model.bills(call)).sum();
    assert_eq!(world.names().len(), 1, "one conversation");
    world.stop();
    world.run(&["doctor"]);
    (billed, life.talk)
}

/// What `recto replay` predicts for a conversation.
fn predicted(file: &str, model: &Model, policy: &str) -> f64 {
    let report = succeeds(&["replay", file, "--for", model.name, "--policy", policy, "--json"]).stdout;
    let report: Value = serde_json::from_str(&report).unwrap();
    report["total"]["usd"].as_f64().unwrap()
}

/// What was said in a conversation of the shared data, as chat, with an answer at its end.
fn script(folder: &str, conversation: &str) -> Vec<Value> {
    let only = ["--conversation", conversation, "--policy", "none", "--window", "0", "--pages", "-"];
    let pages = succeeds(&[&["replay", folder][..], &only].concat()).stdout;
    let last: Value = serde_json::from_str(pages.lines().last().unwrap()).unwrap();
    let mut script = last["messages"].as_array().unwrap().clone();
    script.push(json!({"role": "assistant", "content": "That is all."}));
    script
}

fn check(conversation: &str) {
    let test = format!("the bill of {conversation}");
    let Some(data) = shared::folder("data/conversations", &test) else { return };
    let (folder, script) = (Folder::new(), script(data.to_str().unwrap(), conversation));
    for model in &MODELS {
        let (full, talk) = lived(&script, model, "none");
        let (less, same) = lived(&script, model, "default");
        assert_eq!(talk.list, same.list, "the client keeps the same");
        let file = folder.file("said.json", talk.body().to_string());
        let [full_predicted, less_predicted] = ["none", "default"].map(|policy| predicted(&file, model, policy));
        let (billed, predicted) = (less / full, less_predicted / full_predicted);
        let told = format!(
            "{conversation}, {}: billed {less:.4} of {full:.4} ({billed:.4}), predicted {less_predicted:.4} of \
             {full_predicted:.4} ({predicted:.4})",
            model.name
        );
        assert!((billed / predicted - 1.0).abs() <= APART_MAX, "{told}");
        assert!(billed < 0.95, "{told}");
    }
}

#[test]
fn the_bill_of_one_conversation_falls_as_predicted() {
    check(CONVERSATIONS[0]);
}

#[test]
fn the_bill_of_another_falls_as_predicted() {
    check(CONVERSATIONS[1]);
}

#[test]
fn the_bill_of_a_third_falls_as_predicted() {
    check(CONVERSATIONS[2]);
}

#[test]
fn the_bill_of_a_fourth_falls_as_predicted() {
    check(CONVERSATIONS[3]);
}
