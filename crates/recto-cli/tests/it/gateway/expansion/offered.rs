//! Where the tool is offered, and where not.

use super::super::asking::{Client, Talk};
use super::super::world::{Between, World};
use super::world;
use recto::wire::Wire;
use recto_testkit::fake::Server;
use serde_json::{Value, json};

/// The name of a tool, wherever its wire has it.
fn name(tool: &Value) -> &str {
    tool["name"].as_str().or_else(|| tool["function"]["name"].as_str()).unwrap_or_default()
}

/// A tool in a wire's form.
fn tool(wire: Wire, name: &str) -> Value {
    let parameters = json!({"type": "object", "properties": {}});
    match wire {
        Wire::OpenaiChat => json!({"type": "function", "function": {"name": name, "parameters": parameters}}),
        Wire::OpenaiResponses => json!({"type": "function", "name": name, "parameters": parameters, "strict": false}),
        Wire::Anthropic => json!({"name": name, "input_schema": parameters}),
        Wire::Gemini | Wire::Ollama => unreachable!("no client is heard in it"),
    }
}

/// A talk of a client that keeps its history itself.
pub(super) fn talk(wire: Wire) -> Talk {
    match wire {
        Wire::OpenaiResponses => Talk::new(wire).beside("store", false.into()),
        _ => Talk::new(wire),
    }
}

/// Asks, and returns the body that reached the provider.
#[track_caller]
fn sent(world: &World, talk: &Talk) -> String {
    let answer = Client::of(world).asks(talk);
    assert_eq!(answer.status, 200, "{}", answer.text());
    String::from_utf8(world.calls().pop().expect("a call").request.body).unwrap()
}

#[test]
fn the_tool_stands_last_and_nothing_else_changes_from_the_first_request_on() {
    let world = world();
    for wire in Wire::CLIENTS {
        let mut last = None;
        let own = json!([tool(wire, "one"), tool(wire, "two")]);
        for tools in [None, Some(Value::Null), Some(json!([])), Some(own)] {
            let talk = talk(wire).user("First.");
            let talk = tools.iter().fold(talk, |talk, tools| talk.beside("tools", tools.clone()));
            let sent: Value = serde_json::from_str(&sent(&world, &talk)).unwrap();
            let (mut came, mut listed) = (talk.body(), sent["tools"].as_array().expect("tools").clone());
            let ours = listed.pop().expect("ours");
            assert_eq!(name(&ours), "recto_expand");
            assert_eq!(*last.get_or_insert(ours.clone()), ours, "always in the same words");
            assert_eq!(listed, tools.and_then(|it| it.as_array().cloned()).unwrap_or_default());
            came["tools"] = sent["tools"].clone();
            assert_eq!(sent, came);
        }
    }
}

#[test]
fn around_the_tool_every_byte_stays() {
    let world = world();
    let without = r#" { "messages" : [ {"role":"user", "content":"H\u00ef"} ],"max_tokens":9,  "model":"gpt-4o"  } "#;
    let with = r#"{"tools": [ {"type":"function","function":{"name":"one"} }  ] ,"model":"gpt-4o","messages":[{"role":"user","content":"Hi"}]}"#;
    for body in [without, with] {
        let answer = Client::of(&world).sends("/v1/chat/completions", body).whole();
        assert_eq!((answer.status, answer.header("x-recto-page")), (200, Some("offered")), "{}", answer.text());
        let sent = String::from_utf8(world.calls().pop().unwrap().request.body).unwrap();
        let same = body.bytes().zip(sent.bytes()).take_while(|(one, other)| one == other).count();
        let added = sent[same..].strip_suffix(&body[same..]).expect("all that came stands around it");
        assert!(added.contains(r#"{"type":"function","function":{"name":"recto_expand""#), "{added}");
    }
}

#[test]
fn where_it_could_not_be_answered_the_tool_is_not_offered() {
    let world = world();
    let chat = || talk(Wire::OpenaiChat).user("First.");
    let responses = |store: Value| Talk::new(Wire::OpenaiResponses).beside("store", store).user("First.");
    let own = |wire: Wire| talk(wire).user("First.").beside("tools", json!([tool(wire, "recto_expand")]));
    let cases = [
        ("a tool of the client's has its name", own(Wire::OpenaiChat)),
        ("a tool of the client's has its name", own(Wire::OpenaiResponses)),
        ("a tool of the client's has its name", own(Wire::Anthropic)),
        ("several answers are wanted", chat().beside("n", 2.into())),
        ("the provider keeps the answer", responses(true.into())),
        ("the provider keeps the answer", responses(Value::Null)),
    ];
    for (why, talk) in cases {
        let sent: Value = serde_json::from_str(&sent(&world, &talk)).unwrap();
        assert_eq!(sent, talk.body(), "{why}");
    }
}

#[test]
fn under_none_and_by_a_header_nothing_is_offered() {
    let (none, some) = (World::new(Between::Recto("none")), world());
    for wire in Wire::CLIENTS {
        let talk = talk(wire).user("First.");
        assert_eq!(sent(&none, &talk), talk.body().to_string());
        let answer = Client::of(&some).with("x-recto-policy", "none").asks(&talk);
        assert_eq!((answer.status, answer.header("x-recto-page")), (200, Some("as_sent")));
        assert_eq!(some.calls().pop().unwrap().request.body, talk.body().to_string().into_bytes());
    }
}

#[test]
fn tokens_are_counted_with_the_tool_where_it_is_offered() {
    let body = json!({"model": "claude-haiku-4-5", "messages": [{"role": "user", "content": "First."}]}).to_string();
    let counted = |world: &World| {
        let answer = Client::of(world).sends("/v1/messages/count_tokens", &body).whole();
        answer.json()["input_tokens"].as_u64().unwrap()
    };
    let (with, without) = (counted(&world()), counted(&World::new(Between::Recto("none"))));
    assert!(with > without + 50, "{with} {without}");
    let mut nobody = World::before(Server::start(), "");
    nobody.lead_to("http://127.0.0.1:1", "");
    nobody.serve("default");
    assert!(counted(&nobody) > 50, "by our own count as well");
}
