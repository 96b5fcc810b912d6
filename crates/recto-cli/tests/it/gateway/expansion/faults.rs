//! What goes wrong in a round that the client doesn't see, and what becomes of it when the client goes back.

use super::super::asking::{Answer, Client, Talk, path};
use super::super::said::Said;
use super::super::world::World;
use super::offered::talk;
use super::{ORIGINAL, asking, world};
use recto::wire::Wire;
use recto_testkit::fake::{Gate, Reply};
use serde_json::{Value, json};

/// How many rounds a response has at most.
const ROUNDS_MAX: usize = 9;
/// An answer that is told in several pieces, and what of it is heard before something goes wrong.
const LONG: &str = "An answer of many words, which are told one after the other, in pieces.";
const HEARD: &str = "An answer of";
/// After so many events some of it was heard, and some was not, in every format.
const EVENTS: usize = 5;

/// A conversation whose page leaves something out.
struct Scene {
    world: World,
    client: Client,
    /// With what is said next.
    talk: Talk,
    name: String,
}

impl Scene {
    #[track_caller]
    fn new(wire: Wire) -> Scene {
        let world = world();
        let client = Client::of(&world);
        let talk = talk(wire).user("First.");
        world.fake.push(Reply::default().call("read_file", "{}"));
        world.fake.push(Reply::default().text("One."));
        let first = client.asks(&talk);
        let talk = answered(talk.heard(&first), &first);
        let second = client.asks(&talk);
        let talk = talk.heard(&second).user("Second.");
        Scene { name: first.conversation(), world, client, talk }
    }

    /// What stands behind the user's last words: role, status, and the first text.
    fn behind(&self) -> Vec<[String; 3]> {
        let shown = self.world.json(&["show", &self.name, "--json"]);
        let entries = shown["entries"].as_array().unwrap().iter().skip(5);
        let text = |value: &Value| value.as_str().unwrap_or_default().to_string();
        let entries = entries.map(|it| &it["entry"]);
        entries.map(|it| [text(&it["role"]), text(&it["status"]), text(&it["parts"][0]["text"])]).collect()
    }

    /// Begins an answer that stands still in the middle of the round that the client doesn't see.
    #[track_caller]
    fn half_heard(&self, gate: &Gate) -> super::super::asking::Coming {
        self.world.fake.push(asking(Reply::default(), "m2"));
        self.world.fake.push(Reply::default().text(LONG).waiting_after(EVENTS, gate));
        let mut coming = self.client.streams(&self.talk);
        gate.reached();
        coming.until(HEARD);
        coming
    }

    /// Fails unless a step, what was given back, and a part of the answer are there, as what they are.
    #[track_caller]
    fn has_part(&self, status: &str) {
        let behind = self.behind();
        let [[step, ..], [result, ..], [role, told, text]] = &behind[..] else { panic!("{behind:?}") };
        assert_eq!([step, result, role, told], ["assistant", "tool", "assistant", status]);
        assert!(LONG.starts_with(text.as_str()) && text.len() < LONG.len() && text.starts_with(HEARD), "{text:?}");
    }

    /// Fails unless the store is in order, and the client's next requests are answered: the same again, and more.
    #[track_caller]
    fn goes_on(mut self) {
        self.world.run(&["doctor"]);
        self.world.fake.push(asking(Reply::default(), "m2"));
        self.world.fake.push(Reply::default().text("Two."));
        self.world.fake.push(Reply::default().text("Three."));
        let client = Client::of(&self.world);
        let again = client.asks(&self.talk);
        let talk = self.talk.heard(&again).user("Third.");
        let last = client.asks(&talk);
        assert_eq!((last.status, last.conversation()), (200, again.conversation()), "{}", last.text());
        let said = self.world.said(&last.conversation());
        let words = said.iter().filter_map(|it| match it {
            Said::User(text) | Said::Assistant(text) => Some(text.as_str()),
            _ => None,
        });
        assert_eq!(words.collect::<Vec<_>>(), ["First.", "One.", "Second.", "Two.", "Third.", "Three."]);
        self.world.stop();
        self.world.run(&["doctor"]);
    }
}

/// Adds the result of the call that an answer makes.
fn answered(mut talk: Talk, answer: &Answer) -> Talk {
    let body = answer.json();
    let text: String = (0..60).map(|line| format!("{line}: path a.txt\n")).collect();
    assert!(text.contains(ORIGINAL));
    talk.list.push(match talk.wire {
        Wire::OpenaiChat => {
            let id = &body["choices"][0]["message"]["tool_calls"][0]["id"];
            json!({"role": "tool", "tool_call_id": id, "content": text})
        }
        Wire::OpenaiResponses => {
            json!({"type": "function_call_output", "call_id": body["output"][0]["call_id"], "output": text})
        }
        Wire::Anthropic => {
            let result = json!({"type": "tool_result", "tool_use_id": body["content"][0]["id"], "content": text});
            json!({"role": "user", "content": [result]})
        }
        Wire::Gemini | Wire::Ollama => unreachable!("no client is heard in it"),
    });
    talk
}

/// How a reply ended, as the server's number calls it.
fn ended(how: &str) -> String {
    format!("recto_replies_total{{end=\"{how}\"}}")
}

#[test]
fn a_model_that_asks_on_and_on_is_told_and_then_its_response_ends() {
    for (wire, streams) in Wire::CLIENTS.into_iter().flat_map(|wire| [(wire, true), (wire, false)]) {
        let mut scene = Scene::new(wire);
        for _ in 0..ROUNDS_MAX {
            scene.world.fake.push(asking(Reply::default().text("Hm. "), "m2"));
        }
        scene.world.fake.push(Reply::default().text("Two."));
        let before = scene.world.calls().len();
        let heard = match streams {
            true => scene.client.streams(&scene.talk).whole(),
            false => scene.client.asks(&scene.talk),
        };
        assert_eq!((heard.status, heard.is_whole), (200, true), "{}", heard.text());
        assert!(!heard.text().contains("recto_expand"), "{}", heard.text());
        let calls = scene.world.calls();
        assert_eq!(calls.len() - before, ROUNDS_MAX);
        let last = String::from_utf8_lossy(&calls[calls.len() - 1].request.body).into_owned();
        assert!(last.contains("Nothing more can be expanded in this answer."), "{last}");
        scene.client.until("recto_expansions_total", ROUNDS_MAX as u64 - 2);
        scene.client.until("recto_expansions_refused_total", 2);
        if !streams {
            let next = scene.client.asks(&scene.talk.clone().heard(&heard).user("Third."));
            assert_eq!((next.status, next.conversation()), (200, scene.name.clone()), "{}", next.text());
            scene.world.calls();
        }
        scene.world.stop();
        scene.world.run(&["doctor"]);
    }
}

#[test]
fn a_refusal_of_the_provider_is_the_clients_to_hear() {
    for wire in Wire::CLIENTS {
        let scene = Scene::new(wire);
        scene.world.fake.push(asking(Reply::default(), "m2"));
        scene.world.fake.push(Reply::error(400, json!({"error": {"message": "No.", "type": "invalid"}})));
        let heard = scene.client.asks(&scene.talk);
        assert_eq!((heard.status, &heard.json()["error"]["message"]), (400, &json!("No.")), "{}", heard.text());
        assert_eq!(scene.behind().len(), 2, "the step, and what was given back");

        scene.goes_on();
        let scene = Scene::new(wire);
        scene.world.fake.push(asking(Reply::default().text(HEARD), "m2"));
        scene.world.fake.push(Reply::error(400, json!({"error": {"message": "No.", "type": "invalid"}})));
        let heard = scene.client.streams(&scene.talk).whole();
        assert!(heard.text().contains(HEARD) && heard.text().contains("No."), "{}", heard.text());
        assert!(!heard.text().contains("[DONE]"), "it is no end: {}", heard.text());
        scene.goes_on();
    }
}

#[test]
fn a_round_that_breaks_off_is_kept_as_what_there_was() {
    for wire in Wire::CLIENTS {
        let scene = Scene::new(wire);
        scene.world.fake.push(asking(Reply::default(), "m2"));
        scene.world.fake.push(Reply::default().text(LONG).broken_after(EVENTS));
        let heard = scene.client.streams(&scene.talk).whole();
        assert!(!heard.is_whole && heard.text().contains("An"), "{}", heard.text());
        scene.client.until(&ended("broken_off"), 1);
        scene.has_part("error");
        scene.goes_on();

        let scene = Scene::new(wire);
        scene.world.fake.push(asking(Reply::default(), "m2"));
        scene.world.fake.push(Reply::default().text(LONG).broken_after(1));
        assert_eq!(scene.client.asks(&scene.talk).told(), (502, "upstream"), "{wire}");
        assert_eq!(scene.behind().len(), 2, "the step, and what was given back");
        scene.goes_on();
    }
}

#[test]
fn a_client_that_leaves_in_a_round_that_it_does_not_see_leaves_what_it_heard_as_cancelled() {
    for wire in Wire::CLIENTS {
        let scene = Scene::new(wire);
        let gate = Gate::default();
        scene.half_heard(&gate).leaves();
        scene.client.until(&ended("client_left"), 1);
        gate.open();
        scene.has_part("cancelled");
        scene.goes_on();

        let scene = Scene::new(wire);
        let gate = Gate::default();
        scene.world.fake.push(asking(Reply::default(), "m2"));
        scene.world.fake.push(Reply::default().text(LONG).waiting_after(0, &gate));
        let coming = scene.client.sends(path(wire), scene.talk.body().to_string());
        gate.reached();
        coming.leaves();
        scene.client.until(&ended("client_left"), 1);
        gate.open();
        assert_eq!(scene.behind().len(), 2, "the step, and what was given back");
        scene.goes_on();
    }
}

#[test]
fn a_server_that_ends_in_a_round_that_nobody_sees_leaves_a_log_that_goes_on() {
    for (wire, signals) in Wire::CLIENTS.into_iter().flat_map(|wire| [(wire, &["KILL"][..]), (wire, &["TERM", "TERM"])])
    {
        let mut scene = Scene::new(wire);
        let gate = Gate::default();
        let coming = scene.half_heard(&gate);
        for (at, signal) in signals.iter().enumerate() {
            scene.world.signal(signal);
            if at + 1 < signals.len() {
                scene.client.until_closed();
            }
        }
        assert!(!coming.whole().is_whole);
        scene.world.gone();
        gate.open();
        match signals.len() {
            1 => assert_eq!(scene.behind().len(), 2, "the step, and what was given back"),
            _ => scene.has_part("error"),
        }
        scene.world.serve("at_once.toml");
        scene.goes_on();
    }
}

#[test]
fn a_client_that_goes_back_behind_what_was_asked_back_gets_a_fork_that_has_it() {
    for wire in Wire::CLIENTS {
        let mut scene = Scene::new(wire);
        scene.world.fake.push(asking(Reply::default().text("Hm. "), "m2"));
        for words in ["Two.", "Three.", "Four."] {
            scene.world.fake.push(Reply::default().text(words));
        }
        let second = scene.client.asks(&scene.talk);
        let talk = scene.talk.clone().heard(&second);
        let third = scene.client.asks(&talk.clone().user("Third."));
        let other = scene.client.asks(&talk.user("Something else."));
        let name = &scene.name;
        assert_eq!([second.conversation(), third.conversation()], [name.clone(), name.clone()], "{wire}");
        assert!(other.conversation().starts_with(&format!("{name}~")), "{wire}: {}", other.conversation());
        let calls = scene.world.calls();
        for call in &calls[calls.len() - 2..] {
            let body = String::from_utf8_lossy(&call.request.body).into_owned();
            assert!(body.contains(ORIGINAL) && body.contains("I need all of it."), "{wire}: {body}");
        }
        scene.world.stop();
        scene.world.run(&["doctor"]);
    }
}

#[test]
fn a_client_that_sends_only_what_is_new_gets_everything_put_back_as_well() {
    for wire in Wire::CLIENTS {
        let mut world = world();
        let client = Client::of(&world).with("x-recto-conversation", "monday");
        world.fake.push(Reply::default().call("read_file", "{}"));
        world.fake.push(Reply::default().text("One."));
        world.fake.push(asking(Reply::default().text("Hm. "), "m2"));
        for words in ["Two.", "Three."] {
            world.fake.push(Reply::default().text(words));
        }
        let first = client.asks(&talk(wire).user("First."));
        assert_eq!(first.status, 200, "{}", first.text());
        let more = [answered(talk(wire), &first), talk(wire).user("Second."), talk(wire).user("Third.")];
        for talk in more {
            let answer = client.asks(&talk);
            assert_eq!((answer.status, &*answer.conversation()), (200, "monday"), "{wire}: {}", answer.text());
        }
        let calls = world.calls();
        assert_eq!(calls.len(), 5);
        let body = String::from_utf8_lossy(&calls[4].request.body).into_owned();
        assert!(body.contains(ORIGINAL) && body.contains("I need all of it."), "{wire}: {body}");
        world.stop();
        world.run(&["doctor"]);
    }
}
