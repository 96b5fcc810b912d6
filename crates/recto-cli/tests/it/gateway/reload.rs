//! SIGHUP: the configuration is read again, requests that run keep theirs, and what can't be used changes nothing.

use super::asking::{Client, Talk, path};
use super::world::World;
use recto::wire::Wire;
use recto_testkit::fake::{Gate, Reply, Server};

const RELOADED: &str = "recto_config_reloads_total{result=\"ok\"}";
const REFUSED: &str = "recto_config_reloads_total{result=\"failed\"}";

fn world(more: &str) -> World {
    let mut world = World::before(Server::start(), "");
    add(&world, more);
    world.serve_by(world.command(&["serve", "--listen", "127.0.0.1:0"]));
    world
}

/// Adds lines to the configuration.
fn add(world: &World, more: &str) {
    let before = std::fs::read_to_string(world.folder.at("recto.toml")).unwrap();
    world.folder.file("recto.toml", format!("{before}{more}"));
}

fn asks(client: &Client, words: &str) -> u16 {
    client.asks(&Talk::new(Wire::OpenaiChat).user(words)).status
}

#[test]
fn a_new_provider_is_asked_and_a_request_that_runs_keeps_the_old_one() {
    let mut world = world("");
    let (client, gate, other) = (Client::of(&world), Gate::default(), Server::start());
    world.fake.push(Reply::default().text("From the old one.").waiting_after(1, &gate));
    let coming = client.streams(&Talk::new(Wire::OpenaiChat).user("Runs."));
    gate.reached();
    world.lead_to(&other.url(), "");
    world.signal("HUP");
    client.until(RELOADED, 1);
    other.push(Reply::default().text("From the new one."));
    let new = client.asks(&Talk::new(Wire::OpenaiChat).user("Comes after."));
    assert!(new.text().contains("From the new one."), "{}", new.text());
    gate.open();
    let old = coming.whole();
    assert!(old.is_whole && old.text().contains("old"), "{}", old.text());
    assert_eq!((world.fake.log().len(), other.log().len()), (1, 1));
    let said = world.logged();
    assert!(said.contains("the configuration was read again"), "{said}");
    assert!(!said.contains("restart"), "{said}");
    assert_eq!(world.names().len(), 2, "both are kept");
}

#[test]
fn a_file_that_can_not_be_used_changes_nothing() {
    let mut world = world("");
    let client = Client::of(&world);
    let good = std::fs::read_to_string(world.folder.at("recto.toml")).unwrap();
    let wrong = [
        ("[server\n", "line "),
        ("[server]\nbody_mib = 'many'\n", "line "),
        ("[defaults]\npolicy = 'saef'\n", "did you mean \"safe\"?"),
        (
            "[upstream.new]\nurl = 'http://127.0.0.1:1/v1'\nwire = 'openai_chat'\nkey_env = 'RECTO_NO_SUCH_KEY'\n",
            "RECTO_NO_SUCH_KEY",
        ),
    ];
    for (count, (lines, _)) in wrong.iter().enumerate() {
        world.folder.file("recto.toml", format!("{good}{lines}"));
        world.signal("HUP");
        client.until(REFUSED, count as u64 + 1);
        world.fake.push(Reply::default().text("Yes."));
        assert_eq!(asks(&client, &format!("{count}")), 200);
    }
    client.until(RELOADED, 0);
    let said = world.logged();
    for (lines, why) in wrong {
        let is_told = |line: &str| line.contains("the old configuration holds") && line.contains(why);
        assert!(said.lines().any(is_told), "{lines}: {said}");
    }
}

#[test]
fn limits_policies_models_and_hosts_are_taken_and_what_needs_a_restart_is_named() {
    let mut world = world("[server]\nbody_mib = 2\n");
    let client = Client::of(&world);
    // What stands before a body counts, and says nothing.
    let talk = Talk::new(Wire::OpenaiChat).user("Hi.");
    let long = || client.sends(path(talk.wire), format!("{}{}", " ".repeat(3 << 19), talk.body())).whole().status;
    world.fake.push(Reply::default().text("Yes."));
    assert_eq!(long(), 200);
    let of_host = || client.asked_for_host("recto.test");
    assert_eq!(of_host(), 421);
    assert!(client.gets("/api/v1/models/own-model").text().contains("\"known\":false"));
    let config = std::fs::read_to_string(world.folder.at("recto.toml")).unwrap();
    let config = config.replace("body_mib = 2", "body_mib = 1\nhosts = ['recto.test']\nlisten = '127.0.0.1:1'");
    let more =
        "[defaults]\npolicy = 'none'\n[store]\nredact_at_rest = ['secrets']\n[models.own-model]\nwindow = 9000\n";
    world.folder.file("recto.toml", format!("{config}{more}"));
    world.signal("HUP");
    client.until(RELOADED, 1);
    assert_eq!(long(), 413);
    assert_eq!(of_host(), 200);
    assert!(client.gets("/api/v1/models/own-model").text().contains("\"known\":true"));
    assert!(client.gets("/api/v1/version").text().contains("\"policy\":\"none\""));
    let said = world.logged();
    assert!(said.contains("only after a restart: [server] listen, [store] redact_at_rest\n"), "{said}");
}
