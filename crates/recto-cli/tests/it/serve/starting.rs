use super::*;
use crate::run::mentions;

#[test]
fn a_server_says_where_it_is_and_ends_when_told() {
    let place = Place::new();
    let served = place.serve(&[]);
    assert!(served.at.port() != 0 && served.at.ip().is_loopback());
    assert_eq!((served.get("/health").status, served.get("/ready").status), (200, 200));
    assert_eq!(TcpStream::connect(served.at).map(drop).map_err(|error| error.kind()), Ok(()));
    let (url, at) = (served.url.clone(), served.at);
    let ran = served.ends();
    mentions(&ran.stderr, &["store: ", &format!("base_url = {url}/v1\n"), &format!("ANTHROPIC_BASE_URL={url}\n")]);
    assert!(TcpStream::connect(at).is_err());
}

#[test]
fn paths_and_methods_that_lead_nowhere_are_refused_as_providers_do() {
    let place = Place::new();
    let served = place.serve(&[]);
    for path in ["/index.html", "/v1", "/v1/chat", "/v1/embeddings", "/v1/chat/completions/", "/v2/messages"] {
        let answer = served.asks("POST", path, &[]);
        assert_eq!(answer.told(), (404, "not_found"), "{path}");
        assert_eq!(answer.json()["error"]["code"], "not_found");
    }
    let answer = served.asks("POST", "/v1/messages/batches", &[]);
    assert_eq!((answer.status, &answer.json()["type"]), (404, &Value::from("error")));
    assert_eq!(answer.json()["error"]["type"], "not_found_error");
    let routes = routes(&served);
    for (_, path) in &routes {
        for method in ["DELETE", "OPTIONS", "PUT"] {
            assert_eq!(served.asks(method, path, &[]).told(), (405, "method"), "{method} {path}");
        }
    }
    let help = help();
    for (_, path) in &routes {
        mentions(&help, &[&path.replace("a/b", "{*id}")]);
    }
}

#[test]
fn an_address_that_others_reach_needs_keys() {
    let place = Place::new();
    for address in ["0.0.0.0:0", "[::]:0"] {
        let ran = place.run(&["serve", "--listen", address]);
        assert_eq!((ran.code, &*ran.stdout), (Some(3), ""), "{address}");
        mentions(&ran.stderr, &["error[R0326]", "recto keys add"]);
    }
    let key = place.key("only", "local");
    let served = Served::of(place.command(&["serve", "--listen", "0.0.0.0:0"]));
    assert!(served.at.ip().is_loopback(), "it is reached from here: {}", served.url);
    assert_eq!(served.get("/v1/models").told(), (401, "no_key"));
    served.asks("GET", "/v1/models", &[&format!("x-api-key: {key}")]).is_let_in();
    served.sends(request("GET", "/v1/models", &["Host: any.test", &format!("x-api-key: {key}")], "")).is_let_in();
    // Its doors stay shut once the last key is gone.
    assert_eq!(place.run(&["keys", "revoke", "only"]).code, Some(0));
    let start = Instant::now();
    while served.asks("GET", "/v1/models", &[&format!("x-api-key: {key}")]).status != 401 {
        assert!(start.elapsed() < PATIENCE);
    }
    assert_eq!(served.get("/v1/models").told(), (401, "no_key"));
    assert_eq!(served.get("/metrics").told(), (401, "no_key"));
}

#[test]
fn a_port_that_is_taken_is_told() {
    let place = Place::new();
    let served = place.serve(&[]);
    let ran = place.run(&["serve", "--listen", &served.at.to_string()]);
    assert_eq!((ran.code, &*ran.stdout), (Some(1), ""));
    mentions(&ran.stderr, &["error[R0117]", &served.at.to_string(), "port 0"]);
    assert_eq!(served.get("/health").status, 200);
}

#[test]
fn the_configuration_says_where_it_listens_and_by_which_policy() {
    let place = Place::with("[server]\nlisten = '127.0.0.2:0'\n");
    let served = Served::of(place.command(&["serve"]));
    assert!(served.url.starts_with("http://127.0.0.2:"), "{}", served.url);
    assert_eq!(served.get("/ready").status, 200);
    drop(served);
    let ran = place.run(&["serve", "--policy", "saef"]);
    assert_eq!((ran.code, &*ran.stdout), (Some(3), ""));
    mentions(&ran.stderr, &["error[R0321]", "did you mean \"safe\"?"]);
}

#[test]
fn a_demo_keeps_nothing() {
    let place = Place::new();
    let served = place.serve(&["--demo", "--open"]);
    assert_eq!(served.get("/ready").status, 200);
    let ran = served.ends();
    mentions(&ran.stderr, &["late-fees", "nothing is kept"]);
    assert_eq!(place.folder.names(), ["recto.toml"]);
    assert_eq!(place.run(&["serve", "--demo", "--store", "a.db"]).code, Some(2));
}

#[test]
fn without_a_browser_it_goes_on() {
    let place = Place::new();
    let mut command = place.command(&["serve", "--listen", "127.0.0.1:0", "--open"]);
    command.env("PATH", place.folder.path.as_os_str());
    let served = Served::of(command);
    assert_eq!(served.get("/health").status, 200);
    mentions(&served.ends().stderr, &["no browser could be opened"]);
}

#[test]
fn each_request_is_told_of_only_where_that_is_wanted() {
    let place = Place::new();
    let quiet = place.serve(&[]);
    quiet.get("/v1/models?secret=word");
    let ran = quiet.ends();
    assert!(!ran.stderr.contains("/v1/models"), "{}", ran.stderr);
    let verbose = place.serve(&["--verbose"]);
    verbose.get("/v1/models/word?secret=word");
    verbose.get("/nowhere/word");
    let ran = verbose.ends();
    mentions(&ran.stderr, &["GET /v1/models/{*id} ", "GET unknown 404, "]);
    assert!(!ran.stderr.contains("word"), "{}", ran.stderr);
}

#[test]
fn numbers_tell_of_routes_and_statuses_and_of_nothing_that_was_said() {
    let place = Place::new();
    let served = place.serve(&[]);
    for _ in 0..3 {
        served.asks("GET", "/health", &["x-word: secret"]);
    }
    served.asks("POST", "/secret-path", &["x-word: secret"]);
    served.asks("POST", "/v1/chat/completions", &["Authorization: Bearer sk-secret"]);
    let text = served.get("/metrics").body;
    mentions(
        &text,
        &[
            "# TYPE recto_requests_total counter\n",
            "\nrecto_requests_total{route=\"/health\",status=\"200\"} 3\n",
            "\nrecto_requests_total{route=\"unknown\",status=\"404\"} 1\n",
            "recto_requests_total{route=\"/v1/chat/completions\",status=",
            "\nrecto_requests_in_flight 1\n",
            "\nrecto_replies_total{end=\"whole\"} 0\n",
            "\nrecto_forks_total 0\n",
        ],
    );
    for word in ["secret", "gpt-4o", "Hi"] {
        assert!(!text.contains(word), "{text}");
    }
}
