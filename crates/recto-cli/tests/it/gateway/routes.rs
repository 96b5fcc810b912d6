//! What is asked beside conversations: how many tokens there are, and which models.

use super::asking::{Answer, Client};
use super::plain::Plain;
use super::world::World;
use recto_testkit::fake::Server;
use serde_json::json;
use std::io::Write;

const COUNT: &str = "/v1/messages/count_tokens";

/// A server in front of a provider that answers everything alike.
fn world(status: &'static str, body: &'static str) -> (World, Plain) {
    world_of("default", status, body)
}

fn world_of(policy: &str, status: &'static str, body: &'static str) -> (World, Plain) {
    let plain = Plain::answering(move |_, stream| {
        let head = format!("HTTP/1.1 {status}\r\nconnection: close\r\ncontent-length: {}", body.len());
        stream.write_all(format!("{head}\r\n\r\n{body}").as_bytes()).unwrap();
    });
    let mut world = World::before(Server::start(), "");
    world.lead_to(&plain.url(), "");
    world.serve(policy);
    (world, plain)
}

fn counted(world: &World, words: &str) -> Answer {
    let body =
        json!({"model": "claude-opus-5-5", "system": "Be brief.", "messages": [{"role": "user", "content": words}]});
    Client::of(world).sends(&format!("{COUNT}?beta=true"), body.to_string()).whole()
}

#[test]
fn tokens_are_counted_by_the_provider_where_it_does() {
    let (world, plain) = world("200 OK", "{\"input_tokens\":  7}");
    let answer = counted(&world, "Hello.");
    assert_eq!((answer.status, &*answer.text()), (200, "{\"input_tokens\":  7}"));
    assert_eq!(answer.header("x-recto-counted"), None);
    assert_eq!(plain.came().line, format!("POST {COUNT}?beta=true"));
    assert_eq!(world.names(), [""; 0], "to count is not to say");
}

#[test]
fn where_the_provider_does_not_count_we_do_and_say_so() {
    let (absent, _plain) = world_of("none", "404 Not Found", "{}");
    let nobody = {
        let mut world = World::before(Server::start(), "");
        world.lead_to("http://127.0.0.1:1", "");
        world.serve("none");
        world
    };
    for world in [absent, nobody] {
        let (short, long) = (counted(&world, "Hello."), counted(&world, &"Hello. ".repeat(1_000)));
        assert_eq!([short.header("x-recto-counted"), long.header("x-recto-counted")], [Some("estimate"); 2]);
        let [short, long] = [short, long].map(|answer| answer.json()["input_tokens"].as_u64().unwrap());
        assert!((5..60).contains(&short) && (2_000..6_000).contains(&long), "{short} {long}");
    }
    let (refusing, _plain) = world("400 Bad Request", "{\"type\":\"error\"}");
    let refused = counted(&refusing, "Hello.");
    assert_eq!((refused.status, &*refused.text()), (400, "{\"type\":\"error\"}"), "a refusal is the provider's");
}

#[test]
fn models_are_those_of_the_provider() {
    let (world, plain) = world("200 OK", "{\"data\": [ ]}");
    for path in ["/v1/models", "/v1/models/claude/opus?limit=2"] {
        let answer = Client::of(&world).gets(path);
        assert_eq!((answer.status, &*answer.text()), (200, "{\"data\": [ ]}"));
        assert_eq!(plain.came().line, format!("GET {path}"));
    }
}
