//! What goes wrong between two formats: the client is told in its own, and what is recorded is what there was.

use super::super::asking::{Answer, Client, Talk};
use super::super::said::Said;
use super::super::world::World;
use super::{CLAUDE, GPT, NEWER_GPT, spoken, talk, world};
use recto::wire::Wire;
use recto_testkit::fake::Reply;
use serde_json::{Value, json};

/// An answer that is told in several pieces.
const LONG: &str = "An answer of many words, which are told one after the other, in pieces.";
/// Every way from one format to another.
const WAYS: [(Wire, &str); 4] =
    [(Wire::OpenaiChat, CLAUDE), (Wire::OpenaiResponses, CLAUDE), (Wire::Anthropic, GPT), (Wire::Anthropic, NEWER_GPT)];

/// An error as a provider of a format spells it.
fn error(wire: Wire, kind: &str, message: &str) -> Value {
    match wire {
        Wire::Anthropic => json!({"type": "error", "error": {"type": kind, "message": message}}),
        Wire::OpenaiChat | Wire::OpenaiResponses => {
            json!({"error": {"message": message, "type": kind, "param": null, "code": null}})
        }
        Wire::Gemini | Wire::Ollama => unreachable!("no client is heard in it"),
    }
}

/// What an error of a client's own provider says, in the form that its package reads.
#[track_caller]
fn told(wire: Wire, answer: &Answer) -> (String, String) {
    let body = answer.json();
    assert_eq!(body["type"] == "error", wire == Wire::Anthropic, "{body}");
    let text = |name: &str| body["error"][name].as_str().unwrap_or_else(|| panic!("{body}")).to_string();
    (text("type"), text("message"))
}

/// Asks again what was not answered, and fails unless it is answered in the same conversation.
#[track_caller]
fn goes_on(world: &mut World, talk: &Talk, user: &str) {
    let client = Client::of(world);
    world.fake.push(Reply::default().text("At last."));
    let answer = client.asks(talk);
    assert_eq!(answer.status, 200, "{}", answer.text());
    let expected = [Said::User(user.into()), Said::Assistant("At last.".into())];
    assert_eq!(world.said(&answer.conversation()), expected);
}

#[test]
fn a_refusal_of_the_provider_is_told_in_the_clients_form_with_its_status() {
    for (wire, model) in WAYS {
        let mut world = world("default", "");
        let client = Client::of(&world);
        let words = talk(wire, model).user("Hello.");
        for (status, kind) in [(429, "rate_limit_error"), (500, "api_error"), (503, "api_error")] {
            let body = error(spoken(model), kind, "Not now, please.");
            world.fake.push(Reply::error(status, body).header("retry-after", "7").header("request-id", "req_7"));
            let answer = client.asks(&words);
            assert_eq!((answer.status, answer.header("retry-after")), (status, Some("7")), "{wire}");
            let ids = [answer.header("request-id"), answer.header("x-request-id")];
            assert_eq!(ids, [Some("req_7"); 2]);
            let (told_kind, message) = told(wire, &answer);
            assert_eq!(message, "Not now, please.");
            assert_eq!(told_kind == "rate_limit_error", status == 429, "{told_kind}");
        }
        goes_on(&mut world, &words, "Hello.");
    }
}

#[test]
fn a_stream_that_breaks_off_breaks_off_in_the_clients_format_and_is_kept_as_such() {
    for (wire, model) in WAYS {
        let world = world("default", "");
        let client = Client::of(&world);
        world.fake.push(Reply::default().text(LONG).broken_after(5));
        let heard = client.streams(&talk(wire, model).user("Hello.")).whole();
        assert_eq!((heard.status, heard.is_whole), (200, false), "{wire} {model}");
        let text = heard.text();
        for end in ["[DONE]", "message_stop", "response.completed"] {
            assert!(!text.contains(end), "{text}");
        }
        client.until("recto_replies_total{end=\"broken_off\"}", 1);
        let shown = world.json(&["show", &heard.conversation(), "--json"]);
        let last = &shown["entries"][1]["entry"];
        assert_eq!((&last["role"], &last["status"]), (&json!("assistant"), &json!("error")), "{shown}");
        assert!(LONG.starts_with(last["parts"][0]["text"].as_str().unwrap()));
    }
}

#[test]
fn an_answer_that_is_no_stream_and_breaks_off_is_an_error_in_the_clients_form() {
    for (wire, model) in WAYS {
        let mut world = world("default", "");
        world.fake.push(Reply::default().text(LONG).broken_after(0));
        let words = talk(wire, model).user("Hello.");
        let answer = Client::of(&world).asks(&words);
        assert_eq!(answer.told(), (502, "upstream"), "{}", answer.text());
        told(wire, &answer);
        goes_on(&mut world, &words, "Hello.");
    }
}

#[test]
fn a_model_that_refuses_is_heard_to_refuse() {
    let world = world("default", "");
    let client = Client::of(&world);
    world.fake.push(Reply::default().refusal("I will not."));
    let chat = client.asks(&talk(Wire::OpenaiChat, CLAUDE).user("Do it."));
    assert_eq!(chat.json()["choices"][0]["finish_reason"], "content_filter");
    world.fake.push(Reply::default().refusal("I will not."));
    let words = talk(Wire::Anthropic, GPT).user("Do it.");
    let messages = client.asks(&words);
    let body = messages.json();
    assert_eq!((&body["stop_reason"], &body["content"][0]["text"]), (&json!("refusal"), &json!("I will not.")));
    // What it said goes on as what it was, in the same conversation.
    world.fake.push(Reply::default().text("Something else, then."));
    let next = client.asks(&words.heard(&messages).user("And now?"));
    assert_eq!((next.status, next.conversation()), (200, messages.conversation()));
    let sent = world.calls().pop().unwrap().request.json();
    assert!(sent["messages"][1].to_string().contains("I will not."), "{sent}");
}

#[test]
fn what_can_not_be_carried_over_is_refused_before_anything_is_said_or_kept() {
    let mut world = world("default", "");
    let client = Client::of(&world);
    let chat = || talk(Wire::OpenaiChat, CLAUDE).user("Hello.");
    let audio = json!([{"type": "input_audio", "input_audio": {"data": "AAAA", "format": "wav"}}]);
    let mut spoken = chat();
    spoken.list.push(json!({"role": "user", "content": audio}));
    let search = json!([{"type": "web_search_20250305", "name": "web_search"}]);
    let refused = [
        chat().beside("n", 2.into()),
        chat().beside("logprobs", true.into()),
        chat().beside("response_format", json!({"type": "json_object"})),
        spoken,
        talk(Wire::Anthropic, GPT).user("Hello.").beside("tools", search),
        talk(Wire::OpenaiResponses, CLAUDE).user("Hello.").beside("previous_response_id", "resp_1".into()),
    ];
    for words in refused {
        let answer = client.asks(&words);
        assert_eq!(answer.told(), (400, "other_format"), "{}: {}", words.body(), answer.text());
        assert!(told(words.wire, &answer).1.contains("hint: "), "{}", answer.text());
    }
    let nonsense =
        client.sends("/v1/chat/completions", r#"{"model":"claude-x","messages":[{"role":"nobody"}]}"#).whole();
    assert_eq!(nonsense.told(), (400, "body"), "{}", nonsense.text());
    assert!(world.fake.log().is_empty());
    assert!(world.kept().is_empty());
}

#[test]
fn what_is_dropped_is_told_and_counted() {
    let world = world("default", "");
    let client = Client::of(&world);
    world.fake.push(Reply::default().thinking("Hm.").text("Hi."));
    let answer = client.asks(&talk(Wire::OpenaiChat, CLAUDE).user("Hello.").beside("seed", 7.into()));
    assert_eq!(answer.header("x-recto-left-out"), Some("seed, signature"), "{answer:?}");
    world.fake.push(Reply::default().thinking("Hm.").text("Hi."));
    let stream = client.streams(&talk(Wire::OpenaiChat, CLAUDE).user("Hello!").beside("seed", 7.into())).whole();
    assert_eq!(stream.header("x-recto-left-out"), Some("seed"));
    assert!(stream.text().contains("\n: recto left out signature\n"), "{}", stream.text());
    assert!(!stream.text().contains("usage"), "nobody asked for it");
    client.until("recto_left_out_total", 4);
    client.until("recto_crossed_total", 2);
}

#[test]
fn the_key_of_a_client_goes_to_a_provider_of_another_format_only_if_that_is_said() {
    let ask = |lines: &str, wire: Wire, model: &str| {
        let world = world("none", lines);
        let (header, value) =
            if wire == Wire::Anthropic { ("x-api-key", "sk-mine") } else { ("authorization", "Bearer sk-mine") };
        let client = Client::of(&world).with(header, value).with("anthropic-beta", "x").with("x-stainless-os", "y");
        world.fake.push(Reply::default().text("Hi."));
        let answer = client.asks(&talk(wire, model).user("Hello."));
        let log = world.fake.log();
        let headers = log.first().map(|it| it.request.headers.clone()).unwrap_or_default();
        (answer.told().0, answer.told().1.to_string(), headers)
    };
    let value = |headers: &[(String, String)], name: &str| {
        headers.iter().find(|(key, _)| key == name).map(|(_, value)| value.clone())
    };
    for (wire, model, header, key) in
        [(Wire::OpenaiChat, CLAUDE, "x-api-key", "sk-mine"), (Wire::Anthropic, GPT, "authorization", "Bearer sk-mine")]
    {
        let (status, _, headers) = ask("", wire, model);
        assert_eq!(status, 200);
        assert!(!format!("{headers:?}").contains("sk-mine"), "{headers:?}");
        assert!(value(&headers, "anthropic-beta").is_none() && value(&headers, "x-stainless-os").is_none());
        assert_eq!(value(&headers, "anthropic-version").is_some(), model == CLAUDE);
        let (status, _, headers) = ask("client_key = 'pass'\n", wire, model);
        assert_eq!((status, value(&headers, header).as_deref()), (200, Some(key)));
    }
}

#[test]
fn without_a_key_for_a_provider_of_another_format_nothing_is_sent() {
    let mut world = World::before(recto_testkit::fake::Server::start(), "");
    world.folder.file("recto.toml", format!("[upstream.anthropic]\nurl = '{}'\n", world.fake.url()));
    world.serve("none");
    let client = Client::of(&world).with("authorization", "Bearer sk-mine");
    let answer = client.asks(&talk(Wire::OpenaiChat, CLAUDE).user("Hello."));
    assert_eq!(answer.told(), (403, "upstream_key"), "{}", answer.text());
    assert!(told(Wire::OpenaiChat, &answer).1.contains("ANTHROPIC_API_KEY"), "{}", answer.text());
    assert!(world.fake.log().is_empty());
}

#[test]
fn a_model_whose_format_clients_are_not_heard_in_is_refused_with_what_to_do_instead() {
    for wire in ["gemini", "ollama"] {
        let mut world = World::before(recto_testkit::fake::Server::start(), "");
        let fake = world.fake.url();
        let upstream = format!("[upstream.it]\nurl = '{fake}'\nwire = '{wire}'\nmodels = ['*']\nclient_key = 'pass'\n");
        world.folder.file("recto.toml", upstream);
        world.serve("none");
        let client = Client::of(&world).with("authorization", "Bearer sk-mine");
        for words in [talk(Wire::OpenaiChat, "some-model"), talk(Wire::Anthropic, "some-model")] {
            let words = words.user("Hello.");
            let answer = client.asks(&words);
            assert_eq!(answer.told(), (400, "other_format"), "{wire}: {}", answer.text());
            let said = told(words.wire, &answer).1;
            assert!(said.contains(wire) && said.contains("hint: "), "{said}");
        }
        assert!(world.fake.log().is_empty(), "nothing was sent");
        assert!(world.kept().is_empty(), "nothing is kept");
    }
}
