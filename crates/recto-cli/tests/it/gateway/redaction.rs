//! What a policy redacts reaches no provider, whatever field it stands in, and nothing that is told of it.

use super::asking::{Answer, Client, Talk, path};
use super::world::World;
use recto::wire::Wire;
use recto_testkit::fake::{Reply, Server};
use serde_json::{Value, json};

const GUARDED: &str = r#"
schema_version = 1
name = "guarded"

[redact]
find = ["all"]
patterns = { badge = "ACME-[0-9]{6}" }
"#;
const RESULTS: &str =
    "schema_version = 1\nname = \"results\"\n\n[redact]\nfind = [\"secrets\"]\nwithin = \"results\"\n";
const BADGE: &str = "ACME-004711";

/// A key that looks real and is none; no file holds it as one piece.
fn canary() -> String {
    ["ghp", "_", "wJ4kQ8ZtB2", "xV7nL5cR9m", "Y1pH3sD6fG", "0aKe8u"].concat()
}

fn mail() -> String {
    ["jo.doe", "@", "company.io"].concat()
}

fn leaks(text: &str) -> bool {
    let (canary, mail) = (canary(), mail());
    [&canary[4..], mail.as_str(), BADGE].iter().any(|it| text.contains(it)) || text.contains(&canary[10..22])
}

fn world(policy: &str) -> World {
    let mut world = World::before(Server::start(), "");
    world.folder.file("guarded.toml", GUARDED);
    world.folder.file("results.toml", RESULTS);
    let mut command = world.command(&["serve", "--listen", "127.0.0.1:0", "--policy", policy, "--verbose"]);
    if policy == "none" {
        command = world.command(&["serve", "--listen", "127.0.0.1:0", "--policy", policy]);
    }
    world.serve_by(command);
    world
}

/// A talk with a canary in every field that a client has.
fn begun(wire: Wire) -> Talk {
    let (canary, mail) = (canary(), mail());
    let said = format!("user {canary} {mail} {BADGE}");
    let schema = json!({"type": "object", "properties": {"q": {"type": "string", "description": said}}});
    let talk = Talk::new(wire);
    match wire {
        Wire::OpenaiChat => {
            let mut talk = talk.beside("user", said.as_str().into()).beside("metadata", json!({"who": said})).beside(
                "tools",
                json!([{"type": "function", "function": {"name": "look", "description": said,
                    "parameters": schema}}]),
            );
            talk.list.push(json!({"role": "system", "content": format!("system {said}")}));
            talk.list.push(json!({"role": "user", "content": [{"type": "text", "text": said}]}));
            talk
        }
        Wire::OpenaiResponses => talk
            .beside("instructions", format!("system {said}").into())
            .beside("metadata", json!({"who": said}))
            .beside("tools", json!([{"type": "function", "name": "look", "description": said, "parameters": schema}]))
            .user(&said),
        Wire::Anthropic => talk
            .beside("system", json!([{"type": "text", "text": format!("system {said}")}]))
            .beside("metadata", json!({"user_id": said}))
            .beside("tools", json!([{"name": "look", "description": said, "input_schema": schema}]))
            .user(&said),
        Wire::Gemini | Wire::Ollama => unreachable!("no client is heard in it"),
    }
}

/// The result of the call that an answer makes.
fn result(talk: Talk, answer: &Answer, text: &str) -> Talk {
    let (mut talk, body) = (talk.heard(answer), answer.json());
    let item = match talk.wire {
        Wire::OpenaiChat => {
            let id = &body["choices"][0]["message"]["tool_calls"][0]["id"];
            json!({"role": "tool", "tool_call_id": id, "content": text})
        }
        Wire::OpenaiResponses => {
            let call = body["output"].as_array().unwrap().iter().find(|it| it["type"] == "function_call").unwrap();
            json!({"type": "function_call_output", "call_id": call["call_id"], "output": text})
        }
        Wire::Anthropic => {
            let content = body["content"].as_array().unwrap();
            let call = content.iter().find(|it| it["type"] == "tool_use").unwrap();
            let block = json!({"type": "tool_result", "tool_use_id": call["id"], "content": text, "is_error": true});
            json!({"role": "user", "content": [block]})
        }
        Wire::Gemini | Wire::Ollama => unreachable!("no client is heard in it"),
    };
    talk.list.push(item);
    talk
}

/// Lives through a talk of three requests, and returns all bodies that the provider got, all that the server and the
/// commands say about them, and the conversation as it is printed.
fn lived(world: &mut World, wire: Wire) -> (Vec<String>, String, String) {
    let client = Client::of(world);
    // A model that says a secret itself, and one that gives a placeholder to a tool.
    let arguments = format!(r#"{{"q":"a {} b"}}"#, canary());
    world.fake.push(Reply::default().text("I look.").call("look", &arguments));
    world.fake.push(Reply::default().text("Done."));
    world.fake.push(Reply::default().text("Bye."));
    let talk = begun(wire);
    let first = client.asks(&talk);
    let nested = json!({"env": {"token": canary(), "to": mail(), "badge": BADGE}}).to_string();
    let talk = result(talk, &first, &json!({"stdout": nested}).to_string());
    let second = client.asks(&talk);
    let talk = talk.heard(&second).user(&format!("Again: {}", canary()));
    let third = client.streams(&talk).whole();
    assert_eq!(third.status, 200, "{}", third.text());
    let mut said = client.metrics();
    if wire == Wire::Anthropic {
        let mut body = talk.body();
        body.as_object_mut().unwrap().remove("max_tokens");
        client.sends("/v1/messages/count_tokens", body.to_string()).whole();
    }
    // A body that nobody can understand, and one that is no JSON.
    let odd = client.sends(path(wire), json!({"model": "gpt-4o", "odd": canary()}).to_string()).whole();
    let broken = client.sends(path(wire), format!("{{\"model\": \"{} {}", canary(), mail())).whole();
    assert!(odd.status >= 400 && broken.status >= 400);
    let name = first.conversation();
    let bodies = world.fake.log().iter().map(|it| String::from_utf8_lossy(&it.request.body).into_owned()).collect();
    said += &world.logged();
    said += &world.run(&["list", "--json"]);
    said += &world.run(&["turns", &name, "--json"]);
    said += &world.run(&["decisions", &name, "--json"]);
    let shown = world.run(&["show", &name, "--json"]) + &world.run(&["show", &name]);
    (bodies, said, shown)
}

#[test]
fn a_canary_in_every_field_reaches_no_provider_and_is_told_nowhere() {
    for wire in Wire::CLIENTS {
        let mut guarded = world("guarded.toml");
        let (bodies, said, shown) = lived(&mut guarded, wire);
        assert!(bodies.len() >= 5, "{wire}: the provider was asked");
        for body in &bodies {
            assert!(!leaks(body), "{wire}: {body}");
        }
        let placeholders: usize = bodies.iter().map(|body| body.matches("[secret:github_token#").count()).sum();
        assert!(placeholders > 15, "{wire}: {placeholders}");
        assert!(!leaks(&said) && said.contains("recto_redacted_total 3\n"), "{wire}: {said}");
        assert!(!shown.contains(&canary()[4..]) && shown.contains("[secret:github_token#"), "{wire}: {shown}");
        // The log keeps the original, for whoever asks for it.
        let name = guarded.names().remove(0);
        assert!(leaks(&guarded.run(&["export", &name])), "{wire}");
    }
}

#[test]
fn without_redaction_every_field_goes_through_byte_for_byte() {
    for wire in Wire::CLIENTS {
        let mut open = world("none");
        let (bodies, _, shown) = lived(&mut open, wire);
        let first: Value = serde_json::from_str(&bodies[0]).unwrap();
        assert_eq!(first, begun(wire).body(), "{wire}");
        let found: usize = bodies.iter().map(|body| body.matches(&canary()[4..]).count()).sum();
        assert!(found > 15, "{wire}: the canary is where it is expected, {found} times");
        // What is printed for people holds no secrets even so; an address is none.
        assert!(!shown.contains(&canary()[4..]) && shown.contains(&mail()), "{wire}");
    }
}

#[test]
fn what_people_say_goes_through_where_only_results_are_redacted() {
    for wire in Wire::CLIENTS {
        let mut world = world("results.toml");
        let client = Client::of(&world);
        world.fake.push(Reply::default().call("look", "{}"));
        world.fake.push(Reply::default().text("Done."));
        let talk = begun(wire);
        let first = client.asks(&talk);
        assert_eq!(first.header("x-recto-page"), Some("as_sent"), "{wire}");
        let talk = result(talk, &first, &format!("KEY={}", canary()));
        let second = client.asks(&talk);
        assert_eq!(second.header("x-recto-page"), Some("compiled"), "{wire}");
        let calls = world.calls();
        let body = String::from_utf8_lossy(&calls[1].request.body).into_owned();
        assert!(body.contains(&format!("user {}", canary())), "{wire}: {body}");
        assert!(!body.contains(&format!("KEY={}", canary())) && body.contains("KEY=[secret:github_token#"), "{wire}");
        client.until("recto_redacted_total", 1);
        world.stop();
    }
}

#[test]
fn a_placeholder_that_a_model_says_goes_to_the_client_as_it_is() {
    let mut world = world("guarded.toml");
    let client = Client::of(&world);
    world.fake.push(Reply::default().call("look", r#"{"q":"[secret:github_token#k7q2m]"}"#));
    let answer = client.asks(&begun(Wire::OpenaiChat));
    let call = answer.json()["choices"][0]["message"]["tool_calls"][0]["function"]["arguments"].to_string();
    assert!(call.contains("[secret:github_token#k7q2m]"), "{call}");
    world.stop();
}

#[test]
fn a_body_that_is_no_text_is_refused_where_something_may_have_to_be_redacted() {
    for policy in ["guarded.toml", "none"] {
        let mut world = world(policy);
        let answer = Client::of(&world).sends(path(Wire::OpenaiChat), [b'{', 0xff, 0xfe]).whole();
        let asked = world.fake.log().len();
        match policy {
            "none" => assert_eq!(asked, 1, "its provider says what is wrong with it"),
            _ => assert_eq!((answer.status, asked), (400, 0), "{}", answer.text()),
        }
        world.stop();
    }
}
