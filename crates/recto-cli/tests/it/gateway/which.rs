//! Which conversation a request goes on from.

use super::asking::{Answer, Client, Talk};
use super::said::Said;
use super::world::{Between, World};
use recto::wire::Wire;
use recto_testkit::fake::{Gate, Reply, Server};
use serde_json::{Value, json};
use std::sync::Barrier;

/// How many run alike at once.
const ALIKE: usize = 8;
/// How many turns each of them has.
const TURNS: usize = 3;

fn user(text: &str) -> Said {
    Said::User(text.into())
}

fn assistant(text: &str) -> Said {
    Said::Assistant(text.into())
}

/// A world under the policy `none`, with these answers waiting.
pub(super) fn world(answers: &[&str]) -> (World, Client) {
    let world = World::new(Between::Recto("none"));
    answers.iter().for_each(|text| world.fake.push(Reply::default().text(text)));
    let client = Client::of(&world);
    (world, client)
}

/// How many messages the provider was sent, call by call.
fn lengths(world: &World) -> Vec<usize> {
    let length = |body: Value| body.get("messages").or(body.get("input")).and_then(Value::as_array).map_or(1, Vec::len);
    world.calls().iter().map(|call| length(call.request.json())).collect()
}

fn chat() -> Talk {
    Talk::new(Wire::OpenaiChat)
}

#[test]
fn a_conversation_that_is_named_is_made_and_goes_on() {
    for wire in Wire::CLIENTS {
        let (world, client) = world(&["One.", "Two."]);
        let client = client.with("x-recto-conversation", "monday");
        let talk = Talk::new(wire).user("First.");
        let first = client.asks(&talk);
        let talk = talk.heard(&first).user("Second.");
        let second = client.asks(&talk);
        assert_eq!([first.conversation(), second.conversation()], ["monday", "monday"]);
        assert_eq!(world.names(), ["monday"]);
        assert_eq!(world.said("monday"), [user("First."), assistant("One."), user("Second."), assistant("Two.")]);
    }
}

#[test]
fn of_a_conversation_that_is_named_only_what_is_new_need_be_sent() {
    for wire in Wire::CLIENTS {
        let (world, client) = world(&["One.", "Two.", "Three."]);
        let client = client.with("x-recto-conversation", "monday");
        for words in ["First.", "Second.", "Third."] {
            assert_eq!(client.asks(&Talk::new(wire).user(words)).status, 200);
        }
        assert_eq!(lengths(&world), [1, 3, 5], "{wire}");
        let expected = ["First.", "Second.", "Third."].map(user).into_iter();
        let expected = expected.zip(["One.", "Two.", "Three."].map(assistant)).flat_map(|(one, two)| [one, two]);
        assert_eq!(world.said("monday"), expected.collect::<Vec<Said>>());
        assert_eq!(world.names(), ["monday"]);
        let sent = world.calls().last().unwrap().request.json();
        assert_eq!(Said::all(wire, &sent), world.said("monday")[..5]);
    }
}

#[test]
fn what_is_new_and_came_to_nothing_is_not_said_twice_when_it_is_sent_again() {
    let (world, client) = world(&["One."]);
    let client = client.with("x-recto-conversation", "monday");
    client.asks(&chat().user("First."));
    world.fake.push(Reply::error(500, json!({"error": {"message": "no"}})));
    assert_eq!(client.asks(&chat().user("Second.")).status, 500);
    world.fake.push(Reply::default().text("Two."));
    assert_eq!(client.asks(&chat().user("Second.")).status, 200);
    assert_eq!(lengths(&world), [1, 3, 3]);
    let said = [user("First."), assistant("One."), user("Second."), assistant("Two.")];
    assert_eq!(world.said("monday"), said);
    // Once it is answered, the same words are said again.
    assert_eq!(client.asks(&chat().user("Second.")).status, 200);
    assert_eq!(lengths(&world), [1, 3, 3, 5]);
    assert_eq!(world.said("monday").len(), 6);
}

#[test]
fn what_is_new_is_not_sent_alone_where_no_page_can_be_made_of_the_rest() {
    let (world, client) = world(&["One."]);
    let client = client.with("x-recto-conversation", "monday");
    // More than the window of the model, and under `none` nothing may go.
    let first = client.asks(&chat().user(&"word ".repeat(130_000)));
    assert_eq!((first.status, first.header("x-recto-page")), (200, Some("as_sent; no page could be made")));
    client.until("recto_fallbacks_total", 1);
    let second = client.asks(&chat().user("Second."));
    assert_eq!(second.told(), (400, "page"));
    assert_eq!(lengths(&world), [1], "the model was not asked without the rest");
    // A past that the client sends itself goes on as it came.
    world.fake.push(Reply::default().text("Two."));
    let talk = chat().user(&"word ".repeat(130_000)).heard(&first).user("Second.");
    let third = client.asks(&talk);
    assert_eq!((third.status, lengths(&world)), (200, vec![1, 3]));
    assert_eq!(world.said(&third.conversation())[1..], [assistant("One."), user("Second."), assistant("Two.")]);
}

#[test]
fn a_changed_past_under_a_name_is_a_fork_that_is_told_and_found_again() {
    let (world, client) = world(&["One.", "Two.", "Other two.", "Other three."]);
    let client = client.with("x-recto-conversation", "monday");
    let first = chat().user("First.");
    let answered = first.clone().heard(&client.asks(&first));
    client.asks(&answered.clone().user("Second."));
    let other = answered.user("Second, otherwise.");
    let told = client.asks(&other);
    let fork = told.conversation();
    assert!(fork.starts_with("monday~"), "{fork}");
    let again = client.asks(&other.heard(&told).user("Third."));
    assert_eq!(again.conversation(), fork);
    assert_eq!(world.names(), ["monday", &fork]);
    assert_eq!(world.said("monday"), [user("First."), assistant("One."), user("Second."), assistant("Two.")]);
    let told = [user("First."), assistant("One."), user("Second, otherwise."), assistant("Other two.")];
    assert_eq!(world.said(&fork), [&told[..], &[user("Third."), assistant("Other three.")]].concat());
    client.until("recto_forks_total", 1);
}

#[test]
fn a_past_under_a_name_of_which_nothing_is_known_is_a_fork() {
    let (world, client) = world(&["One.", "Two.", "Three."]);
    let client = client.with("x-recto-conversation", "monday");
    let first = chat().user("First.");
    client.asks(&first);
    let mut strange = chat().user("Elsewhere.");
    strange.list.push(json!({"role": "assistant", "content": "Said by another."}));
    let strange = strange.user("Go on.");
    let told = client.asks(&strange);
    let fork = told.conversation();
    assert!(fork.starts_with("monday~"), "{fork}");
    assert_eq!(client.asks(&strange.heard(&told).user("And on.")).conversation(), fork);
    assert_eq!(world.said("monday"), [user("First."), assistant("One.")]);
    assert_eq!(world.said(&fork).len(), 6);
}

/// Asks twice for the same, where nothing comes of the first; returns how many conversations there are, and all said.
fn first_asked_twice(client: impl Fn(Client) -> Client, talk: &Talk) -> (usize, Vec<Said>) {
    let (world, bare) = world(&[]);
    let client = client(bare);
    world.fake.push(Reply::error(503, json!({"error": {"message": "later"}})));
    assert_eq!(client.asks(talk).status, 503);
    assert_eq!(client.asks(talk).status, 200);
    let names = world.names();
    (names.len(), names.iter().flat_map(|name| world.said(name)).collect())
}

#[test]
fn a_first_request_that_is_sent_again_goes_on_only_with_a_mark_of_its_session() {
    let said = |list: usize| [user("First."), assistant(&format!("{list} messages, 0 tools"))];
    let first = |wire| Talk::new(wire).user("First.");
    let anthropic = first(Wire::Anthropic);
    let marked = first_asked_twice(|client| client.with("x-claude-code-session-id", "s-1"), &anthropic);
    assert_eq!(marked, (1, said(1).to_vec()));
    let by_user = anthropic.clone().beside("metadata", json!({"user_id": "u-1"}));
    assert_eq!(first_asked_twice(|client| client, &by_user), (1, said(1).to_vec()));
    for wire in [Wire::OpenaiChat, Wire::OpenaiResponses] {
        let by_key = first(wire).beside("prompt_cache_key", "k-1".into());
        assert_eq!(first_asked_twice(|client| client, &by_key), (1, said(1).to_vec()), "{wire}");
    }
    for wire in Wire::CLIENTS {
        let (conversations, said) = first_asked_twice(|client| client, &first(wire));
        assert_eq!((conversations, said.len()), (2, 3), "{wire}: it may be another who begins alike");
    }
}

#[test]
fn sessions_that_begin_alike_stay_apart() {
    let (world, client) = world(&[]);
    let talk = Talk::new(Wire::Anthropic).user("First.");
    let ask = |session: &str| client.with("x-claude-code-session-id", session).asks(&talk).conversation();
    let (one, two) = (ask("s-1"), ask("s-2"));
    assert_ne!(one, two);
    assert_eq!(world.names().len(), 2);
}

/// Runs the same at once, so many times, and returns what each run was told.
fn alike(client: &Client, wire: Wire) -> Vec<Vec<Answer>> {
    let begin = Barrier::new(ALIKE);
    let run = || {
        let (mut talk, mut heard) = (Talk::new(wire), Vec::new());
        for turn in 0..TURNS {
            talk = talk.user(&format!("Turn {turn}."));
            begin.wait();
            let answer = client.asks(&talk);
            talk = talk.heard(&answer);
            heard.push(answer);
        }
        heard
    };
    std::thread::scope(|scope| {
        let runs: Vec<_> = (0..ALIKE).map(|_| scope.spawn(run)).collect();
        runs.into_iter().map(|run| run.join().unwrap()).collect()
    })
}

#[test]
fn runs_that_are_alike_to_the_last_word_are_as_many_conversations() {
    for wire in [Wire::OpenaiChat, Wire::Anthropic] {
        let (world, client) = world(&[]);
        // The provider answers all alike, so that no run can be told from another.
        alike(&client, wire);
        let names = world.names();
        let all: Vec<_> = names.iter().map(|name| (name, world.said(name).len())).collect();
        assert_eq!(names.len(), ALIKE, "{wire}: {all:?}");
        let turn =
            |turn: usize| [user(&format!("Turn {turn}.")), assistant(&format!("{} messages, 0 tools", turn * 2 + 1))];
        let expected: Vec<Said> = (0..TURNS).flat_map(turn).collect();
        for name in &names {
            assert_eq!(world.said(name), expected, "{wire}: {name}");
        }
        client.until("recto_forks_total", 0);
    }
}

#[test]
fn runs_that_are_told_different_things_keep_their_own() {
    let answers: Vec<String> = (0..ALIKE * TURNS).map(|at| format!("Answer {at}.")).collect();
    let (world, client) = world(&answers.iter().map(String::as_str).collect::<Vec<&str>>());
    let runs = alike(&client, Wire::OpenaiChat);
    assert_eq!(world.names().len(), ALIKE);
    for run in runs {
        let name = run[0].conversation();
        assert!(run.iter().all(|answer| answer.conversation() == name));
        let told =
            run.iter().map(|answer| answer.json()["choices"][0]["message"]["content"].as_str().unwrap().to_string());
        let turn = |(turn, told): (usize, String)| [user(&format!("Turn {turn}.")), assistant(&told)];
        assert_eq!(world.said(&name), told.enumerate().flat_map(turn).collect::<Vec<Said>>());
    }
    client.until("recto_forks_total", 0);
}

/// What a client makes of its history from one call to the next, and that must not matter.
type Respelled = fn(Talk) -> Talk;

#[test]
fn a_history_that_is_spelled_otherwise_is_the_same() {
    let as_lists: Respelled = |mut talk| {
        let kind = if talk.wire == Wire::OpenaiResponses { "input_text" } else { "text" };
        for message in talk.list.iter_mut().filter(|it| it["role"] == "user" && it["content"].is_string()) {
            message["content"] = json!([{"type": kind, "text": message["content"]}]);
        }
        talk
    };
    let arguments: Respelled = |mut talk| {
        let spaced = json!("{ \"b\" : [1, 2],\n \"a\" : \"x\" }");
        for message in &mut talk.list {
            match talk.wire {
                Wire::OpenaiChat if message["tool_calls"].is_array() => {
                    message["tool_calls"][0]["function"]["arguments"] = spaced.clone();
                }
                Wire::OpenaiResponses if message["type"] == "function_call" => message["arguments"] = spaced.clone(),
                Wire::Anthropic if message["role"] == "assistant" => {
                    for block in
                        message["content"].as_array_mut().unwrap().iter_mut().filter(|it| it["type"] == "tool_use")
                    {
                        block["input"] = serde_json::from_str(spaced.as_str().unwrap()).unwrap();
                    }
                }
                _ => {}
            }
        }
        talk
    };
    let marked: Respelled = |mut talk| {
        if talk.wire == Wire::Anthropic {
            let last = talk.list.iter_mut().rfind(|it| it["role"] == "user").unwrap();
            if last["content"].is_string() {
                last["content"] = json!([{"type": "text", "text": last["content"]}]);
            }
            last["content"][0]["cache_control"] = json!({"type": "ephemeral"});
        }
        talk
    };
    let without_reasoning: Respelled = |mut talk| {
        talk.list.retain(|it| it["type"] != "reasoning");
        // A call that still has the provider's id would miss the reasoning before it.
        for item in talk.list.iter_mut().filter(|it| it["type"].is_string()) {
            item.as_object_mut().unwrap().remove("id");
        }
        for message in talk.list.iter_mut().filter(|it| it["content"].is_array()) {
            message["content"].as_array_mut().unwrap().retain(|it| it["type"] != "thinking");
        }
        talk
    };
    for (name, respell) in [
        ("as it was", (|talk| talk) as Respelled),
        ("lists", as_lists),
        ("arguments", arguments),
        ("marks", marked),
        ("reasoning", without_reasoning),
    ] {
        for wire in Wire::CLIENTS {
            respelled(wire, name, respell);
        }
    }
}

/// Three calls with a tool and reasoning; before each, the history is spelled otherwise.
fn respelled(wire: Wire, name: &str, respell: Respelled) {
    let (world, client) = world(&[]);
    let schema = json!({"type": "object", "properties": {}});
    let talk = Talk::new(wire);
    let talk = match wire {
        Wire::OpenaiChat => {
            talk.beside("tools", json!([{"type": "function", "function": {"name": "look", "parameters": schema}}]))
        }
        Wire::OpenaiResponses => talk
            .beside("model", "gpt-5.5".into())
            .beside("tools", json!([{"type": "function", "name": "look", "parameters": schema, "strict": false}])),
        Wire::Anthropic => talk
            .beside("max_tokens", 4_000.into())
            .beside("thinking", json!({"type": "enabled", "budget_tokens": 2_000}))
            .beside("tools", json!([{"name": "look", "input_schema": schema}])),
        Wire::Gemini | Wire::Ollama => unreachable!("no client is heard in it"),
    };
    let thinks = |reply: Reply| if wire == Wire::OpenaiChat { reply } else { reply.thinking("Let me see.") };
    world.fake.push(thinks(Reply::default()).call("look", r#"{"a":"x","b":[1,2]}"#));
    world.fake.push(thinks(Reply::default()).text("Seen."));
    world.fake.push(thinks(Reply::default()).text("Done."));
    let talk = talk.user("Look.");
    let first = client.asks(&talk);
    let mut talk = talk.heard(&first);
    let body = first.json();
    let result = match wire {
        Wire::OpenaiChat => {
            let call = &body["choices"][0]["message"]["tool_calls"][0]["id"];
            json!({"role": "tool", "tool_call_id": call, "content": "A view."})
        }
        Wire::OpenaiResponses => {
            let call = body["output"].as_array().unwrap().iter().find(|it| it["type"] == "function_call").unwrap();
            json!({"type": "function_call_output", "call_id": call["call_id"], "output": "A view."})
        }
        Wire::Anthropic => {
            let call = body["content"].as_array().unwrap().iter().find(|it| it["type"] == "tool_use").unwrap();
            let result = json!({"type": "tool_result", "tool_use_id": call["id"], "content": "A view."});
            json!({"role": "user", "content": [result]})
        }
        Wire::Gemini | Wire::Ollama => unreachable!("no client is heard in it"),
    };
    talk.list.push(result);
    // The provider wants reasoning back until the call's answer is told, so it stays until then.
    let second = client.asks(&if name == "reasoning" { talk.clone() } else { respell(talk.clone()) });
    assert_eq!(second.status, 200, "{wire}, {name}: {}", second.text());
    let third = client.asks(&respell(talk.heard(&second)).user("And now?"));
    assert_eq!(third.status, 200, "{wire}, {name}: {}", third.text());
    let names = world.names();
    assert_eq!(names.len(), 1, "{wire}, {name}");
    let mut said = world.said(&names[0]);
    said.retain(|it| !matches!(it, Said::Thought(_)));
    assert_eq!(said.len(), 6, "{wire}, {name}: {said:#?}");
    client.until("recto_forks_total", 0);
}

#[test]
fn a_changed_past_is_a_fork_and_is_counted() {
    for wire in Wire::CLIENTS {
        let (world, client) = world(&["One.", "Two.", "Otherwise."]);
        let first = Talk::new(wire).user("First.");
        let answered = first.clone().heard(&client.asks(&first));
        let name = client.asks(&answered.clone().user("Second.")).conversation();
        client.until("recto_forks_total", 0);
        let fork = client.asks(&answered.user("Changed.")).conversation();
        assert!(fork.starts_with(&format!("{name}~")), "{fork} of {name}");
        client.until("recto_forks_total", 1);
        assert_eq!(world.said(&name), [user("First."), assistant("One."), user("Second."), assistant("Two.")]);
        assert_eq!(world.said(&fork), [user("First."), assistant("One."), user("Changed."), assistant("Otherwise.")]);
    }
}

#[test]
fn to_ask_for_another_answer_is_a_fork() {
    let (world, client) = world(&["One.", "Two.", "Another two."]);
    let first = chat().user("First.");
    let second = first.clone().heard(&client.asks(&first)).user("Second.");
    let (name, fork) = (client.asks(&second).conversation(), client.asks(&second).conversation());
    assert_ne!(name, fork);
    client.until("recto_forks_total", 1);
    assert_eq!(world.said(&name)[3], assistant("Two."));
    assert_eq!(world.said(&fork), [user("First."), assistant("One."), user("Second."), assistant("Another two.")]);
}

#[test]
fn what_the_provider_holds_is_gone_on_from() {
    let (world, client) = world(&["One.", "Two.", "Other two."]);
    let first = client.asks(&Talk::new(Wire::OpenaiResponses).user("First."));
    let held = |text: &str| {
        Talk::new(Wire::OpenaiResponses).user(text).beside("previous_response_id", first.json()["id"].clone())
    };
    let second = client.asks(&held("Second."));
    assert_eq!(second.conversation(), first.conversation());
    assert_eq!(lengths(&world), [1, 1], "the provider holds the rest");
    let said = [user("First."), assistant("One."), user("Second."), assistant("Two.")];
    assert_eq!(world.said(&first.conversation()), said);
    let third = client.asks(&held("Second, otherwise."));
    assert_eq!(world.said(&third.conversation())[2..], [user("Second, otherwise."), assistant("Other two.")]);
    assert_eq!(world.said(&first.conversation()), said);
}

#[test]
fn two_requests_of_one_conversation_at_once_do_not_mix() {
    for named in [false, true] {
        let (world, client) = world(&["One."]);
        let client = if named { client.with("x-recto-conversation", "monday") } else { client };
        let first = chat().user("First.");
        let answered = first.clone().heard(&client.asks(&first));
        let gate = Gate::default();
        world.fake.push(Reply::default().text("Slow.").waiting_after(3, &gate));
        world.fake.push(Reply::default().text("Quick."));
        let slow = client.streams(&answered.clone().user("Second."));
        gate.reached();
        let quick = client.asks(&answered.user("Second, at once."));
        gate.open();
        let slow = slow.whole();
        assert_eq!((slow.status, quick.status), (200, 200));
        let (slow, quick) = (slow.conversation(), quick.conversation());
        assert_ne!(slow, quick);
        let said = |second: &str, two: &str| [user("First."), assistant("One."), user(second), assistant(two)];
        assert_eq!(world.said(&slow), said("Second.", "Slow."));
        assert_eq!(world.said(&quick), said("Second, at once.", "Quick."));
        assert_eq!(world.names().len(), 2);
    }
}

#[test]
fn who_answers_before_its_reply_is_recorded_is_waited_for() {
    let (world, client) = world(&["One."]);
    let gate = Gate::default();
    // The reason to stop is heard, and the end of the stream is not.
    let events = events_of("Two.");
    world.fake.push(Reply::default().text("Two.").waiting_after(events - 1, &gate));
    let first = chat().user("First.");
    let mut talk = first.clone().heard(&client.asks(&first)).user("Second.");
    let mut coming = client.streams(&talk);
    coming.until("\"finish_reason\":\"stop\"");
    talk.list.push(json!({"role": "assistant", "content": "Two."}));
    let next = std::thread::spawn({
        let (client, talk) = (client.clone(), talk.user("Third."));
        move || client.asks(&talk)
    });
    // The first, the second, and the one that asks.
    client.until("recto_requests_in_flight", 3);
    gate.open();
    let (first, second) = (coming.whole(), next.join().unwrap());
    assert_eq!((second.status, second.conversation()), (200, first.conversation()));
    assert_eq!(world.names().len(), 1);
    assert_eq!(world.said(&first.conversation()).len(), 6);
}

/// How many events an answer with this text has, as a stream of chat.
fn events_of(text: &str) -> usize {
    let fake = World::new(Between::Nothing);
    fake.fake.push(Reply::default().text(text));
    let answer = Client::of(&fake).streams(&chat().user("Hi")).whole();
    answer.text().matches("data: ").count()
}

#[test]
fn nobody_finds_or_changes_a_conversation_of_another_tenant() {
    let mut world = World::before(Server::start(), "");
    let key = |name: &str, tenant: &str| world.run(&["keys", "add", name, "--tenant", tenant]).trim().to_string();
    let (own, other) = (key("own", "local"), key("other", "team"));
    world.serve("none");
    let own = Client::of(&world).with("x-recto-key", &own).with("x-recto-conversation", "monday");
    let stranger = Client::of(&world).with("x-recto-key", &other);
    let named = stranger.with("x-recto-conversation", "monday");
    world.fake.push(Reply::default().text("The SECRET answer."));
    let first = chat().user("The SECRET question.").beside("prompt_cache_key", "k".into());
    let answered = first.clone().heard(&own.asks(&first));
    let kept = || {
        ["list", "show monday", "turns monday"]
            .map(|what| world.run(&what.split(' ').chain(["--json"]).collect::<Vec<&str>>()))
    };
    let before = kept();
    let calls = world.calls().len();
    // Only what is new, under the same name: nothing of the other's is put before it.
    let heard = named.asks(&chat().user("What was said?"));
    assert_eq!((heard.status, heard.conversation()), (200, "monday".into()));
    assert!(!format!("{heard:?}").contains("SECRET"));
    assert!(!String::from_utf8(world.calls()[calls].request.body.clone()).unwrap().contains("SECRET"));
    // The same beginning, with and without a name, and the same mark.
    for client in [&stranger, &named] {
        let heard = client.asks(&answered.clone().user("Go on."));
        assert_eq!(heard.status, 200);
        assert_ne!(heard.conversation(), "monday", "a fork of its own, or a new one");
        assert!(client.asks(&first).status == 200);
    }
    assert_eq!(kept(), before);
    // A negative control: its own tenant goes on in it.
    assert_eq!(own.asks(&answered.user("Go on.")).conversation(), "monday");
    assert_ne!(kept(), before);
}
