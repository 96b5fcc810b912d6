//! What goes wrong: the client is told as it would be without Recto, and what is recorded is what there was.

use super::asking::{Answer, Client, Talk, path};
use super::plain::Plain;
use super::said::Said;
use super::world::World;
use crate::run::Folder;
use recto::wire::Wire;
use recto_testkit::fake::{Gate, Reply, Server};
use recto_testkit::shared::skipped;
use serde_json::{Value, json};
use std::io::{Read, Write};
use std::process::Command;
use std::sync::mpsc::channel;

/// An answer that is told in several pieces.
const LONG: &str = "An answer of many words, which are told one after the other, in pieces.";
/// What of it is heard, at least, before something goes wrong.
const HEARD: &str = "An answer of";
/// After so many events some of it was heard, and some was not, in every format.
const EVENTS: usize = 5;
/// A disk that is soon full.
const DISK: &str = "4m";
/// What lies on that disk besides, and can be taken away.
const BALLAST_BYTES: usize = 1 << 20;
/// More turns than the disk can hold.
const TURNS_MAX: usize = 400;

/// A conversation in which one call went well.
struct Scene {
    world: World,
    client: Client,
    /// With what is said next.
    talk: Talk,
    name: String,
}

impl Scene {
    /// The lines are added to the configuration of each upstream.
    fn with(wire: Wire, lines: &str) -> Scene {
        let mut world = World::before(Server::start(), lines);
        world.serve("default");
        let client = Client::of(&world);
        let talk = Talk::new(wire).user("First.");
        world.fake.push(Reply::default().text("One."));
        let first = client.asks(&talk);
        let talk = talk.heard(&first).user("Second.");
        Scene { name: first.conversation(), world, client, talk }
    }

    fn new(wire: Wire) -> Scene {
        Scene::with(wire, "")
    }

    /// How the entries behind the first call stand: role, status, and text.
    fn behind(&self) -> Vec<[String; 3]> {
        let shown = self.world.json(&["show", &self.name, "--json"]);
        let entries = shown["entries"].as_array().unwrap().iter().skip(2);
        let text = |value: &Value| value.as_str().unwrap_or_default().to_string();
        let entries = entries.map(|it| &it["entry"]);
        entries.map(|it| [text(&it["role"]), text(&it["status"]), text(&it["parts"][0]["text"])]).collect()
    }

    /// Fails unless only the user's words are there.
    #[track_caller]
    fn has_no_reply(&self) {
        assert_eq!(self.behind(), [["user", "sent", "Second."].map(String::from)]);
    }

    /// Fails unless a part of the answer is there, as what it is.
    #[track_caller]
    fn has_part(&self, status: &str) {
        let behind = self.behind();
        let [_, [role, told, text]] = &behind[..] else { panic!("{behind:?}") };
        assert_eq!((role.as_str(), told.as_str()), ("assistant", status));
        assert!(LONG.starts_with(text) && text.len() < LONG.len() && text.starts_with(HEARD), "{text:?}");
    }

    /// Fails unless the store is in order, and the client's next requests are answered: the same again, and more.
    #[track_caller]
    fn goes_on(mut self) {
        self.world.run(&["doctor"]);
        self.world.fake.push(Reply::default().text("Two."));
        self.world.fake.push(Reply::default().text("Three."));
        let client = Client::of(&self.world);
        let again = client.asks(&self.talk);
        let talk = self.talk.heard(&again).user("Third.");
        let last = client.asks(&talk);
        assert_eq!((last.status, last.conversation()), (200, again.conversation()));
        let said = ["First.", "One.", "Second.", "Two.", "Third.", "Three."].into_iter().enumerate();
        let said =
            said.map(|(at, text)| if at % 2 == 0 { Said::User(text.into()) } else { Said::Assistant(text.into()) });
        assert_eq!(self.world.said(&last.conversation()), said.collect::<Vec<Said>>());
        self.world.stop();
        self.world.run(&["doctor"]);
    }

    /// Begins an answer that stands still in the middle.
    fn half_heard(&self, gate: &Gate) -> super::asking::Coming {
        self.world.fake.push(Reply::default().text(LONG).waiting_after(EVENTS, gate));
        let mut coming = self.client.streams(&self.talk);
        gate.reached();
        coming.until(HEARD);
        coming
    }
}

/// How a reply ended, as the server's number calls it.
fn ended(how: &str) -> String {
    format!("recto_replies_total{{end=\"{how}\"}}")
}

#[test]
fn a_stream_that_the_provider_breaks_off_breaks_off_for_the_client_and_is_kept_as_such() {
    for wire in Wire::CLIENTS {
        let scene = Scene::new(wire);
        scene.world.fake.push(Reply::default().text(LONG).broken_after(EVENTS));
        let heard = scene.client.streams(&scene.talk).whole();
        assert_eq!((heard.status, heard.is_whole), (200, false), "{wire}");
        assert!(heard.text().contains(HEARD));
        scene.client.until(&ended("broken_off"), 1);
        scene.has_part("error");
        scene.goes_on();
    }
}

#[test]
fn wherever_a_stream_breaks_off_nothing_is_kept_as_whole_that_was_not() {
    for wire in Wire::CLIENTS {
        let scene = Scene::new(wire);
        let whole = scene.world.fake.log().len();
        scene.world.fake.push(Reply::default().text(LONG));
        scene.client.streams(&scene.talk).whole();
        let events = scene.world.fake.log()[whole].answer.matches("data: ").count();
        for cut in 0..events {
            let scene = Scene::new(wire);
            scene.world.fake.push(Reply::default().text(LONG).broken_after(cut));
            assert!(scene.client.streams(&scene.talk).ends_cut(), "{wire}: {cut}");
            scene.client.until("recto_requests_in_flight", 1);
            for [_, status, text] in scene.behind().into_iter().filter(|it| it[0] == "assistant") {
                // Once all is said, with why it ends there, only the end of the stream is missing.
                let is_all_said = text == LONG && cut + 1 >= events;
                assert!(status == "error" || is_all_said, "{wire}: {status} after {cut} of {events} events: {text:?}");
            }
            scene.world.run(&["doctor"]);
        }
    }
}

#[test]
fn garbage_in_a_stream_goes_through_and_what_was_heard_before_is_kept_as_broken() {
    for wire in Wire::CLIENTS {
        let scene = Scene::new(wire);
        scene.world.fake.push(Reply::default().text(LONG).garbled_after(EVENTS));
        let heard = scene.client.streams(&scene.talk).whole();
        assert_eq!((heard.status, heard.is_whole), (200, true), "{wire}");
        assert!(heard.text().contains("data: {\"type\": \"mess\n\n"));
        scene.client.until(&ended("broken_off"), 1);
        scene.has_part("error");
        scene.goes_on();
    }
}

#[test]
fn a_stream_that_stands_still_is_broken_off_after_a_while() {
    for wire in Wire::CLIENTS {
        let scene = Scene::with(wire, "timeout_seconds = 1\n");
        let gate = Gate::default();
        let heard = scene.half_heard(&gate).whole();
        assert!(!heard.is_whole);
        scene.client.until(&ended("broken_off"), 1);
        scene.has_part("error");
        gate.open();
        scene.goes_on();
    }
}

#[test]
fn an_answer_that_does_not_begin_is_not_waited_for() {
    for wire in Wire::CLIENTS {
        let scene = Scene::with(wire, "timeout_seconds = 1\n");
        let gate = Gate::default();
        scene.world.fake.push(Reply::default().text(LONG).waiting_after(0, &gate));
        assert_eq!(scene.client.asks(&scene.talk).told(), (504, "upstream_timeout"));
        gate.open();
        scene.client.until(&ended("unanswered"), 1);
        scene.has_no_reply();
        scene.goes_on();
    }
}

#[test]
fn a_refusal_comes_back_as_it_is_and_nothing_is_kept_of_it() {
    for wire in Wire::CLIENTS {
        for (at, status) in [400, 401, 429, 500, 503, 529].into_iter().enumerate() {
            let scene = Scene::new(wire);
            let body =
                json!({"error": {"type": "some_error", "message": "Not now: né\u{1F600}", "z": 1.0, "a": [null]}});
            let refusal = Reply::error(status, body.clone()).header("retry-after", "7").header("x-request-id", "r-1");
            scene.world.fake.push(refusal);
            let coming =
                if at % 2 == 0 { scene.client.streams(&scene.talk).whole() } else { scene.client.asks(&scene.talk) };
            assert_eq!((coming.told(), coming.text()), ((status, ""), body.to_string()), "{wire}");
            assert_eq!((coming.header("retry-after"), coming.header("x-request-id")), (Some("7"), Some("r-1")));
            scene.client.until(&ended("refused"), 1);
            scene.has_no_reply();
            scene.goes_on();
        }
    }
}

#[test]
fn a_body_that_is_cut_is_no_answer() {
    for wire in Wire::CLIENTS {
        let scene = Scene::new(wire);
        scene.world.fake.push(Reply::default().text(LONG).broken_after(1));
        assert_eq!(scene.client.asks(&scene.talk).told(), (502, "upstream"), "{wire}");
        scene.client.until(&ended("broken_off"), 1);
        scene.has_no_reply();
        scene.goes_on();
    }
}

#[test]
fn nobody_there_is_told_as_such() {
    let mut world = World::before(Server::start(), "");
    world.lead_to("http://127.0.0.1:1", "");
    world.serve("default");
    for wire in Wire::CLIENTS {
        let talk = Talk::new(wire).user("First.");
        assert_eq!(Client::of(&world).asks(&talk).told(), (502, "upstream"), "{wire}");
    }
    world.stop();
    world.run(&["doctor"]);
}

#[test]
fn a_client_that_leaves_in_the_middle_leaves_what_it_heard_as_cancelled() {
    for wire in Wire::CLIENTS {
        let scene = Scene::new(wire);
        let gate = Gate::default();
        scene.half_heard(&gate).leaves();
        scene.client.until(&ended("client_left"), 1);
        gate.open();
        scene.has_part("cancelled");
        scene.goes_on();
    }
}

#[test]
fn the_provider_is_hung_up_on_when_the_client_leaves() {
    let (told, heard) = channel();
    let first =
        "data: {\"choices\":[{\"index\":0,\"delta\":{\"role\":\"assistant\",\"content\":\"An answer of\"}}]}\n\n";
    let plain = Plain::answering(move |_, stream| {
        let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n";
        stream.write_all(format!("{head}{first}").as_bytes()).unwrap();
        // It says nothing more, and listens until the other end is gone.
        told.send(stream.read(&mut [0; 1])).unwrap();
    });
    let mut world = World::before(Server::start(), "");
    world.lead_to(&plain.url(), "");
    world.serve("default");
    let client = Client::of(&world);
    let mut coming = client.streams(&Talk::new(Wire::OpenaiChat).user("First."));
    coming.until(HEARD);
    assert!(heard.try_recv().is_err(), "it is not hung up on before");
    coming.leaves();
    assert!(matches!(heard.recv().unwrap(), Ok(0)), "the connection was closed");
    client.until(&ended("client_left"), 1);
    world.stop();
    world.run(&["doctor"]);
}

#[test]
fn a_client_that_leaves_before_the_answer_begins_leaves_its_words() {
    for (wire, streams) in Wire::CLIENTS.into_iter().flat_map(|wire| [(wire, true), (wire, false)]) {
        let scene = Scene::new(wire);
        let gate = Gate::default();
        scene.world.fake.push(Reply::default().text(LONG).waiting_after(0, &gate));
        let coming = match streams {
            true => scene.client.streams(&scene.talk),
            false => scene.client.sends(path(wire), scene.talk.body().to_string()),
        };
        gate.reached();
        coming.leaves();
        scene.client.until(&ended("client_left"), 1);
        gate.open();
        scene.has_no_reply();
        scene.goes_on();
    }
}

#[test]
fn an_answer_that_runs_when_the_server_is_to_end_comes_to_its_end() {
    for wire in Wire::CLIENTS {
        let mut scene = Scene::new(wire);
        let gate = Gate::default();
        let coming = scene.half_heard(&gate);
        scene.world.signal("TERM");
        scene.client.until_closed();
        gate.open();
        let heard = coming.whole();
        assert!(heard.is_whole, "{wire}");
        assert_eq!(scene.world.gone(), Some(0));
        assert_eq!(scene.behind()[1], ["assistant", "sent", LONG].map(String::from));
        scene.world.run(&["doctor"]);
        scene.world.serve("default");
        let client = Client::of(&scene.world);
        let mut talk = scene.talk.clone();
        let content = if wire == Wire::OpenaiResponses { "output_text" } else { "text" };
        talk.list.push(json!({"role": "assistant", "content": [{"type": content, "text": LONG}]}));
        let next = client.asks(&talk.user("Third."));
        assert_eq!((next.status, next.conversation()), (200, scene.name.clone()), "{}", next.text());
        assert_eq!(scene.behind().len(), 4);
    }
}

#[test]
fn a_second_signal_cuts_an_answer_and_it_is_kept_as_broken() {
    for wire in Wire::CLIENTS {
        let mut scene = Scene::new(wire);
        let gate = Gate::default();
        let coming = scene.half_heard(&gate);
        scene.world.signal("TERM");
        scene.client.until_closed();
        scene.world.signal("TERM");
        let heard = coming.whole();
        assert!(!heard.is_whole, "{wire}");
        assert_eq!(scene.world.gone(), Some(0));
        gate.open();
        scene.has_part("error");
        scene.world.serve("default");
        scene.goes_on();
    }
}

#[test]
fn a_server_that_is_killed_in_the_middle_leaves_no_reply_and_the_next_goes_on() {
    for wire in Wire::CLIENTS {
        let mut scene = Scene::new(wire);
        let gate = Gate::default();
        let coming = scene.half_heard(&gate);
        scene.world.signal("KILL");
        assert!(!coming.whole().is_whole);
        assert_eq!(scene.world.gone(), None, "it was killed");
        gate.open();
        scene.has_no_reply();
        scene.world.run(&["doctor"]);
        scene.world.serve("default");
        let name = scene.name.clone();
        let again = Client::of(&scene.world).asks(&scene.talk);
        assert_eq!((again.status, again.conversation()), (200, name), "nothing has come of it, so it is no fork");
        scene.world.stop();
        scene.world.run(&["doctor"]);
    }
}

#[test]
fn when_the_disk_is_full_nothing_is_sent_and_later_it_goes_on() {
    let is_permitted = Command::new("unshare").args(["-rm", "true"]).output().is_ok_and(|done| done.status.success());
    if !is_permitted {
        return skipped("the gateway on a full disk: `unshare -rm` is not there (util-linux) or not permitted");
    }
    let folder = Folder::new();
    let child = "gateway::faults::on_a_small_disk --exact --nocapture";
    let done = Command::new("unshare")
        .args(["-rm", "sh", "-c", &format!("mount -t tmpfs -o size={DISK} tmpfs \"$1\" && exec \"$2\" {child}"), "sh"])
        .arg(&folder.path)
        .arg(std::env::current_exe().unwrap())
        .env("RECTO_FULL_DISK", &folder.path)
        .output()
        .unwrap();
    let told = String::from_utf8_lossy(&done.stdout);
    assert!(done.status.success(), "{told}\n{}", String::from_utf8_lossy(&done.stderr));
    assert!(told.contains("1 passed"), "{told}");
}

/// What happens on the small disk; only for a parent that says where.
#[test]
fn on_a_small_disk() {
    let Some(disk) = std::env::var_os("RECTO_FULL_DISK").map(std::path::PathBuf::from) else { return };
    let (store, ballast) = (disk.join("kept.db"), disk.join("ballast"));
    std::fs::write(&ballast, vec![1; BALLAST_BYTES]).unwrap();
    let mut world = World::before(Server::start(), "");
    let mut command = world.command(&["serve", "--listen", "127.0.0.1:0", "--policy", "none"]);
    command.env("RECTO_STORE", &store);
    world.serve_by(command);
    let client = Client::of(&world);
    let words = |turn: usize| format!("{turn} {}", "many words ".repeat(4_000));
    let mut talk = Talk::new(Wire::OpenaiChat);
    let (mut turns, mut name) = (0, String::new());
    let refused: Answer = loop {
        assert!(turns < TURNS_MAX, "the disk takes anything");
        talk = talk.user(&words(turns));
        let calls = world.calls().len();
        let answer = client.asks(&talk);
        if answer.status != 200 {
            assert_eq!(world.calls().len(), calls, "nothing was sent");
            break answer;
        }
        name = answer.conversation();
        talk = talk.heard(&answer);
        turns += 1;
    };
    assert_eq!(refused.told(), (503, "store"), "{}", refused.text());
    assert!(turns > 5, "only {turns} turns went in");
    let calls = world.calls().len();
    assert_eq!(client.asks(&talk).told(), (503, "store"));
    assert_eq!(world.calls().len(), calls, "nothing was sent");
    std::fs::remove_file(&ballast).unwrap();
    let again = client.asks(&talk);
    assert_eq!((again.status, again.conversation()), (200, name.clone()));
    talk = talk.heard(&again).user("And on.");
    assert_eq!(client.asks(&talk).conversation(), name);
    world.stop();
    let store = store.to_str().unwrap();
    world.run(&["doctor", "--store", store]);
    let kept = Said::all_kept(&world.json(&["show", &name, "--json", "--store", store]));
    let said = Said::all(Wire::OpenaiChat, &talk.body());
    assert_eq!(kept[..said.len()], said[..], "everything once, in order");
    assert_eq!(kept.len(), said.len() + 1, "with the last answer");
}
