use super::*;
use std::fs;

/// How a key is presented.
const WAYS: [&str; 3] = ["Authorization: Bearer ", "x-api-key: ", "x-recto-key: "];

#[test]
fn every_route_asks_for_a_key_once_there_is_one() {
    let place = Place::new();
    let (own, other) = (place.key("own", "local"), place.key("other", "team"));
    let gone = place.key("gone", "local");
    assert_eq!(place.run(&["keys", "revoke", "gone"]).code, Some(0));
    let served = place.serve(&[]);
    for (method, path) in routes(&served) {
        let asks = |headers: &[&str]| served.asks(&method, &path, headers);
        if ["/health", "/ready", "/"].contains(&&*path) {
            assert_eq!(asks(&[]).status, 200, "{path}");
            continue;
        }
        // Files that hold nothing that is anybody's, and the door itself.
        if ["/assets/{file}", "/session"].contains(&&*path) {
            continue;
        }
        assert_eq!(asks(&[]).told(), (401, "no_key"), "{path}");
        assert_eq!(asks(&["Authorization: Bearer sk-1", "x-api-key: sk-2"]).told(), (401, "no_key"), "{path}");
        for way in WAYS {
            assert_eq!(asks(&[&format!("{way}recto_0")]).told(), (401, "unknown_key"), "{path}");
            assert_eq!(asks(&[&format!("{way}{gone}")]).told(), (401, "unknown_key"), "{path}");
            assert_eq!(asks(&[&format!("{way}{}", own.to_uppercase())]).status, 401, "{path}");
            asks(&[&format!("{way}{own}")]).is_let_in();
            match &*path {
                "/metrics" => assert_eq!(asks(&[&format!("{way}{other}")]).told(), (404, "not_found")),
                _ => asks(&[&format!("{way}{other}")]).is_let_in(),
            }
        }
    }
}

#[test]
fn a_refusal_is_spelled_as_the_provider_would() {
    let place = Place::new();
    place.key("own", "local");
    let served = place.serve(&[]);
    let anthropic = served.asks("POST", "/v1/messages", &[]).json();
    assert_eq!((&anthropic["type"], &anthropic["error"]["type"]), (&"error".into(), &"authentication_error".into()));
    let openai = served.asks("POST", "/v1/chat/completions", &[]).json();
    assert_eq!(
        (&openai["error"]["code"], &openai["error"]["type"]),
        (&"no_key".into(), &"authentication_error".into())
    );
    assert!(openai["error"]["message"].as_str().is_some_and(|message| message.contains("x-recto-key")));
}

#[test]
fn two_credentials_for_recto_are_refused() {
    let place = Place::new();
    let key = place.key("own", "local");
    let served = place.serve(&[]);
    let asks = |headers: &[&str]| served.asks("POST", "/v1/messages", headers);
    for (at, way) in WAYS.into_iter().enumerate() {
        let one = format!("{way}{key}");
        assert_eq!(asks(&[&one, &one]).told(), (400, "two_credentials"));
        for other in &WAYS[at + 1..] {
            assert_eq!(asks(&[&one, &format!("{other}{key}")]).told(), (400, "two_credentials"));
            assert_eq!(asks(&[&one, &format!("{other}recto_0")]).told(), (400, "two_credentials"));
        }
    }
    asks(&[&format!("x-recto-key: {key}"), "Authorization: Bearer sk-1", "x-api-key: sk-2"]).is_let_in();
}

#[test]
fn without_keys_everybody_on_this_machine_may_ask_but_not_with_a_key_that_is_none() {
    let place = Place::new();
    let served = place.serve(&[]);
    served.asks("GET", "/v1/models", &["Authorization: Bearer sk-1"]).is_let_in();
    assert_eq!(served.asks("GET", "/v1/models", &["Authorization: Bearer recto_0"]).told(), (401, "unknown_key"));
}

#[test]
fn keys_are_heeded_and_forgotten_while_the_server_runs() {
    let place = Place::new();
    let served = place.serve(&[]);
    let until = |what: &str, is: &dyn Fn() -> bool| {
        let start = Instant::now();
        while !is() {
            assert!(start.elapsed() < PATIENCE, "{what}");
        }
    };
    served.get("/v1/models").is_let_in();
    let key = format!("x-api-key: {}", place.key("new", "local"));
    served.asks("GET", "/v1/models", &[&key]).is_let_in();
    until("the first key shuts the doors", &|| served.get("/v1/models").told() == (401, "no_key"));
    served.asks("GET", "/v1/models", &[&key]).is_let_in();
    assert_eq!(place.run(&["keys", "revoke", "new"]).code, Some(0));
    until("a revoked key is refused", &|| served.asks("GET", "/v1/models", &[&key]).status == 401);
    until("without keys the doors are open", &|| served.get("/v1/models").status != 401);
}

#[test]
fn other_hosts_and_pages_of_others_are_refused() {
    let place = Place::with("[server]\nhosts = ['recto.test']\n");
    let served = place.serve(&[]);
    let with = |headers: &[&str]| served.sends(request("POST", "/v1/messages", headers, BODY));
    for host in ["localhost", "localhost:99", "127.0.0.1", "[::1]:7", "recto.test"] {
        with(&[&format!("Host: {host}")]).is_let_in();
    }
    for host in ["evil.test", "localhost.evil.test", "127.0.0.1.evil.test", "", "192.168.0.1"] {
        assert_eq!(with(&[&format!("Host: {host}")]).told(), (421, "host"), "{host}");
    }
    assert_eq!(with(&["Host: localhost", "Host: localhost"]).told(), (400, "host"));
    let absolute = request("POST", "http://evil.test/v1/messages", &["Host: localhost"], BODY);
    assert_eq!(served.sends(absolute).told(), (421, "host"));
    with(&["Host: localhost:7676", "Origin: http://localhost:7676"]).is_let_in();
    for origin in ["null", "http://evil.test", "http://localhost", "https://localhost:7677"] {
        assert_eq!(with(&["Host: localhost:7676", &format!("Origin: {origin}")]).told(), (403, "origin"), "{origin}");
    }
    let preflight = ["Host: localhost", "Origin: http://evil.test", "Access-Control-Request-Method: POST"];
    let answer = served.sends(request("OPTIONS", "/v1/messages", &preflight, ""));
    assert_eq!((answer.status, answer.head.contains("access-control")), (405, false));
    assert_eq!(served.sends(request("GET", "/metrics", &["Host: evil.test"], "")).told(), (421, "host"));
}

#[test]
fn a_key_is_shown_once_and_stands_nowhere() {
    let place = Place::new();
    let key = place.key("own", "local");
    let (_, random) = key.split_once('_').unwrap();
    assert!(random.len() >= 32, "{key}");
    let served = place.serve(&["--verbose"]);
    let client = "sk-client-0123456789";
    let mut heard = String::new();
    for way in WAYS {
        for path in ["/v1/messages", "/v1/chat/completions", "/v1/responses"] {
            let headers = [&*format!("{way}{key}"), &format!("x-other: {client}")];
            let answer = served.asks("POST", path, &headers);
            heard += &format!("{}{}", answer.head, answer.body);
        }
    }
    served.asks("POST", "/v1/messages", &[&format!("x-recto-key: {key}"), &format!("x-api-key: {client}")]);
    heard += &served.asks("POST", "/v1/messages", &[&format!("x-api-key: {key}0")]).body;
    heard += &served.asks("GET", "/metrics", &[&format!("x-api-key: {key}")]).body;
    let listed = place.run(&["keys", "list", "--json"]);
    heard += &served.ends().stderr;
    heard += &listed.stdout;
    assert!(!heard.contains(random) && !heard.contains(client), "{heard}");
    let mut files = 0;
    for name in place.folder.names() {
        let bytes = fs::read(place.folder.path.join(&name)).unwrap();
        let holds = |word: &str| bytes.windows(word.len()).any(|it| it == word.as_bytes());
        assert!(!holds(random) && !holds(&random[..32]) && !holds(client), "{name}");
        files += usize::from(holds("own"));
    }
    assert!(files > 0, "the name of the key is kept, so this looked at the right files");
}
