//! Clients' requests that go on to providers: bytes both ways, which headers and whose key go with them, and what
//! happens when somebody fails, is silent or leaves.

mod tls;

use crate::engine::block_on;
use bytes::Bytes;
use recto::wire::Wire;
use recto_engine::Error;
use recto_engine::drive::Heard;
use recto_engine::upstream::{
    ClientKey, Credential, Endpoint, Forward, Limits, Post, Repeat, Response, Settings, Upstream,
};
use recto_testkit::fake::{Gate, Reply, Server};
use reqwest::Method;
use reqwest::header::{HeaderMap, HeaderName, HeaderValue};
use serde_json::json;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::thread::JoinHandle;
use std::time::{Duration, SystemTime};

/// A variable that every test has, with a value that nothing else says.
const VARIABLE: &str = "CARGO_MANIFEST_DIR";
const LIMIT: Duration = Duration::from_millis(80);
/// How long a server waits for something that must happen before it gives the test up.
const PATIENCE: Duration = Duration::from_secs(60);
const CHAT: &str = r#"{"model": "gpt-4o", "stream":true,  "messages":[{"role":"user","content":"Hello?"}]}"#;

fn settings(url: &str, wire: Wire) -> Settings {
    Settings::new("fake", url, wire)
}

fn upstream(url: &str) -> Upstream {
    Upstream::of(settings(url, Wire::OpenaiChat)).unwrap()
}

fn headers(all: &[(&'static str, &str)]) -> HeaderMap {
    let mut headers = HeaderMap::new();
    for (name, value) in all {
        headers.append(HeaderName::from_static(name), HeaderValue::from_str(value).unwrap());
    }
    headers
}

fn post(path: &'static str, body: impl Into<Bytes>) -> Forward<'static> {
    Forward {
        method: Method::POST,
        path,
        query: None,
        headers: headers(&[("content-type", "application/json")]),
        body: body.into(),
        credential: Credential::Client,
        repeat: Repeat::WhenUnanswered,
    }
}

fn chat() -> Forward<'static> {
    post("chat/completions", CHAT)
}

/// Everything that comes of a body, and how it ends.
async fn read(response: &mut Response) -> (Vec<u8>, Option<Error>) {
    let mut all = Vec::new();
    loop {
        match response.chunk().await {
            Ok(Some(piece)) => all.extend_from_slice(&piece),
            Ok(None) => return (all, None),
            Err(error) => return (all, Some(error)),
        }
    }
}

/// An answer with its whole body.
type Answered = Result<(Response, Vec<u8>), Error>;

/// Passes a request on, and returns the answer and what was heard.
fn forward(upstream: &Upstream, request: Forward<'_>) -> (Answered, Vec<Heard>) {
    let mut heard = Vec::new();
    let answered = block_on(async {
        let mut response = upstream.forward(request, &mut |it| heard.push(it)).await?;
        match read(&mut response).await {
            (body, None) => Ok((response, body)),
            (_, Some(error)) => Err(error),
        }
    });
    (answered, heard)
}

/// A request as it came to a server.
struct Asked {
    first: String,
    headers: Vec<(String, String)>,
    body: Vec<u8>,
}

impl Asked {
    fn of(stream: impl Read) -> Asked {
        let mut reader = BufReader::new(stream);
        let mut line = || {
            let mut line = String::new();
            reader.read_line(&mut line).unwrap();
            line.trim_end().to_string()
        };
        let first = line();
        let head: Vec<String> = std::iter::from_fn(|| Some(line()).filter(|line| !line.is_empty())).collect();
        let split = |line: &String| line.split_once(": ").map(|(name, value)| (name.to_string(), value.to_string()));
        let headers: Vec<(String, String)> = head.iter().filter_map(split).collect();
        let mut asked = Asked { first, headers, body: Vec::new() };
        asked.body = vec![0; asked.all("content-length").first().map_or(0, |length| length.parse().unwrap())];
        reader.read_exact(&mut asked.body).unwrap();
        asked
    }

    fn all(&self, name: &str) -> Vec<&str> {
        self.headers.iter().filter(|(it, _)| it == name).map(|(_, value)| value.as_str()).collect()
    }

    fn names(&self) -> Vec<&str> {
        let mut names: Vec<&str> = self.headers.iter().map(|(name, _)| name.as_str()).collect();
        names.sort_unstable();
        names
    }
}

/// A server that does the same for each of so many connections, once it has read a request.
fn serving<T: Send + 'static>(
    connections: usize,
    mut serve: impl FnMut(Asked, TcpStream) -> T + Send + 'static,
) -> (String, JoinHandle<Vec<T>>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let serve_one = move |_| {
        let (stream, _) = listener.accept().unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        serve(Asked::of(&stream), stream)
    };
    (url, std::thread::spawn(move || (0..connections).map(serve_one).collect()))
}

/// A server that says these bytes to everybody, and hangs up.
fn saying(connections: usize, bytes: impl Into<Vec<u8>>) -> (String, JoinHandle<Vec<Asked>>) {
    let bytes = bytes.into();
    serving(connections, move |asked, mut stream| {
        // Somebody who has heard enough goes away.
        drop(stream.write_all(&bytes));
        asked
    })
}

fn ok(head: &str, body: &[u8]) -> Vec<u8> {
    let head = format!("HTTP/1.1 200 OK\r\n{head}content-length: {}\r\nconnection: close\r\n\r\n", body.len());
    [head.as_bytes(), body].concat()
}

#[test]
fn bytes_go_through_as_they_are_both_ways() {
    let odd: Vec<u8> = (0..=255).cycle().take(300_000).collect();
    let (url, served) = saying(1, ok("", &odd));
    let request = Forward { query: Some("beta=true&x=%2F"), ..post("messages/count_tokens", odd.clone()) };
    let (response, body) = forward(&upstream(&url), request).0.unwrap();
    assert_eq!((response.status(), body == odd), (200, true));
    let asked = &served.join().unwrap()[0];
    assert_eq!(asked.first, "POST /v1/messages/count_tokens?beta=true&x=%2F HTTP/1.1");
    assert!(asked.body == odd);
    assert_eq!(asked.all("content-length"), ["300000"]);
}

#[test]
fn a_request_without_a_body_gets_none() {
    let server = Server::start();
    let request = Forward { method: Method::GET, headers: HeaderMap::new(), ..post("models", Bytes::new()) };
    let (response, body) = forward(&upstream(&server.url()), request).0.unwrap();
    let log = server.log();
    assert_eq!((response.status(), String::from_utf8(body).unwrap()), (200, log[0].answer.clone()));
    assert_eq!((log[0].request.method.as_str(), log[0].request.path.as_str()), ("GET", "/v1/models"));
    assert_eq!([log[0].request.header("content-type"), log[0].request.header("content-length")], [None, None]);
}

#[test]
fn a_piece_arrives_before_the_next_is_made() {
    let server = Server::start();
    let gates = [Gate::default(), Gate::default()];
    let reply = Reply::default().text("some words that come in pieces");
    server.push(reply.waiting_after(2, &gates[0]).waiting_after(4, &gates[1]));
    let upstream = upstream(&server.url());
    let (all, ends) = block_on(async {
        let mut response = upstream.forward(chat(), &mut |_| {}).await.unwrap();
        assert_eq!(response.header("content-type"), Some("text/event-stream; charset=utf-8"));
        let (mut all, mut ends) = (Vec::new(), Vec::new());
        while let Some(piece) = response.chunk().await.unwrap() {
            all.extend_from_slice(&piece);
            let events = String::from_utf8_lossy(&all).matches("\n\n").count();
            ends.push(events);
            // Only who has what was said before a gate opens it: an answer that is kept back would never come.
            for (gate, said) in gates.iter().zip([2, 4]) {
                if events >= said {
                    gate.open();
                }
            }
        }
        (String::from_utf8(all).unwrap(), ends)
    });
    assert_eq!(all, server.log()[0].answer);
    assert!(ends.contains(&2) && ends.contains(&4), "{ends:?}");
    assert_eq!(server.log()[0].request.body, CHAT.as_bytes());
}

#[test]
fn headers_go_on_but_those_of_the_connection_of_the_browser_and_of_recto() {
    let (url, served) = saying(1, ok("", b""));
    let sent = headers(&[
        ("content-type", "application/json"),
        ("user-agent", "their-client/1"),
        ("anthropic-beta", "one-2025"),
        ("anthropic-beta", "two-2025"),
        ("anthropic-version", "2023-06-01"),
        ("openai-organization", "org-1"),
        ("x-stainless-retry-count", "0"),
        ("x-never-heard-of", "yes"),
        ("accept", "text/event-stream"),
        ("connection", "keep-alive, X-Hop"),
        ("connection", "x-hop-two"),
        ("x-hop", "1"),
        ("x-hop-two", "1"),
        ("keep-alive", "timeout=5"),
        ("proxy-authorization", "Basic c2VjcmV0"),
        ("proxy-connection", "keep-alive"),
        ("te", "trailers"),
        ("trailer", "x-late"),
        ("transfer-encoding", "chunked"),
        ("upgrade", "h2c"),
        ("expect", "100-continue"),
        ("host", "recto.example"),
        ("content-length", "7"),
        ("accept-encoding", "gzip, br"),
        ("cookie", "session=1"),
        ("origin", "https://evil.example"),
        ("referer", "https://evil.example/page"),
        ("x-recto-conversation", "c-1"),
        ("x-recto-key", "recto_secret"),
    ]);
    forward(&upstream(&url), Forward { headers: sent, ..chat() }).0.unwrap();
    let asked = &served.join().unwrap()[0];
    let expected = [
        "accept",
        "accept-encoding",
        "anthropic-beta",
        "anthropic-beta",
        "anthropic-version",
        "content-length",
        "content-type",
        "host",
        "openai-organization",
        "user-agent",
        "x-never-heard-of",
        "x-stainless-retry-count",
    ];
    assert_eq!(asked.names(), expected);
    assert_eq!(asked.all("anthropic-beta"), ["one-2025", "two-2025"]);
    assert_eq!(asked.all("accept-encoding"), ["identity"]);
    assert_eq!(asked.all("user-agent"), ["their-client/1"]);
    assert_eq!(asked.all("accept"), ["text/event-stream"]);
    assert_eq!(asked.all("host"), [url.strip_prefix("http://").unwrap()]);
    assert_eq!(asked.all("content-length"), [CHAT.len().to_string()]);
}

#[test]
fn headers_come_back_but_those_of_the_connection_and_of_the_providers_address() {
    let head = "content-type: application/json\r\nx-request-id: req_1\r\nx-many: 1\r\nx-many: 2\r\nretry-after: 3\r\n\
                connection: x-hop\r\nx-hop: 1\r\nkeep-alive: timeout=5\r\nproxy-authenticate: Basic\r\n\
                set-cookie: a=1\r\nset-cookie: b=2\r\nalt-svc: h3=\":443\"\r\nstrict-transport-security: max-age=1\r\n\
                access-control-allow-origin: *\r\nx-recto-receipt: forged\r\n";
    let (url, served) = saying(1, ok(head, b"{}"));
    let (response, _) = forward(&upstream(&url), chat()).0.unwrap();
    let back = response.headers_for_client();
    let mut names: Vec<&str> = back.keys().map(HeaderName::as_str).collect();
    names.sort_unstable();
    assert_eq!(names, ["content-length", "content-type", "retry-after", "x-many", "x-request-id"]);
    assert_eq!(back.get_all("x-many").iter().collect::<Vec<_>>(), ["1", "2"]);
    assert_eq!(back["content-length"], "2");
    assert_eq!(response.headers().get_all("set-cookie").iter().count(), 2, "as they came");
    served.join().unwrap();
}

#[test]
fn headers_of_the_settings_win_and_cannot_say_where_a_body_ends() {
    let (url, served) = saying(1, ok("", b""));
    let extra = |name: &str| [(name.to_string(), "ours".to_string())].into();
    let team = Settings { headers: extra("X-Team"), ..settings(&url, Wire::OpenaiChat) };
    let sent = headers(&[("x-team", "theirs"), ("x-team", "theirs too")]);
    forward(&Upstream::of(team).unwrap(), Forward { headers: sent, ..chat() }).0.unwrap();
    assert_eq!(served.join().unwrap()[0].all("x-team"), ["ours"]);
    for name in ["Content-Length", "transfer-encoding", "connection"] {
        let error = Upstream::of(Settings { headers: extra(name), ..settings(&url, Wire::OpenaiChat) }).unwrap_err();
        assert_eq!(error.to_string(), format!("can't send the header {name:?}"));
    }
}

/// Which keys a provider gets of a client who sends three.
fn keys_sent(wire: Wire, change: impl Fn(Settings) -> Settings, credential: Credential) -> Vec<(String, String)> {
    let (url, served) = saying(1, ok("", b""));
    let upstream = Upstream::of(change(settings(&url, wire))).unwrap();
    let sent = headers(&[("authorization", "Bearer theirs"), ("x-api-key", "theirs"), ("api-key", "theirs")]);
    forward(&upstream, Forward { headers: sent, credential, ..chat() }).0.unwrap();
    let asked = served.join().unwrap().remove(0);
    let is_key = |name: &str| ["authorization", "x-api-key", "api-key"].contains(&name);
    asked.headers.into_iter().filter(|(name, _)| is_key(name)).collect()
}

#[test]
fn the_clients_key_goes_on_where_there_is_no_other_and_is_replaced_where_there_is() {
    let own = std::env::var(VARIABLE).unwrap();
    let key = |name: &str, value: &str| vec![(name.to_string(), value.to_string())];
    let theirs = [key("authorization", "Bearer theirs"), key("x-api-key", "theirs"), key("api-key", "theirs")].concat();
    let nobodys = |it: Settings| it;
    let keyed = |it: Settings| Settings { key_env: Some(VARIABLE.into()), ..it };
    let lost = |it| Settings { key_env: Some("RECTO_NO_SUCH_KEY".into()), key_required: false, ..it };
    let passed = |it| Settings { client_key: Some(ClientKey::Pass), ..keyed(it) };
    let in_headers = |it| Settings { headers: [("Api-Key".to_string(), "ours".to_string())].into(), ..it };
    let (client, withheld) = (Credential::Client, Credential::Withheld);
    assert_eq!(keys_sent(Wire::OpenaiChat, nobodys, client), theirs);
    assert_eq!(keys_sent(Wire::OpenaiChat, lost, client), theirs);
    assert_eq!(keys_sent(Wire::OpenaiChat, passed, client), theirs);
    assert_eq!(keys_sent(Wire::OpenaiChat, nobodys, withheld), []);
    assert_eq!(keys_sent(Wire::OpenaiChat, lost, withheld), []);
    for credential in [client, withheld] {
        let bearer = key("authorization", &format!("Bearer {own}"));
        assert_eq!(keys_sent(Wire::OpenaiChat, keyed, credential), bearer);
        assert_eq!(keys_sent(Wire::Anthropic, keyed, credential), key("x-api-key", &own));
        assert_eq!(keys_sent(Wire::OpenaiChat, in_headers, credential), key("api-key", "ours"));
    }
    assert_eq!(keys_sent(Wire::Anthropic, passed, withheld), key("x-api-key", &own));
}

#[test]
fn keys_can_only_be_replaced_by_another() {
    let replaced =
        Settings { client_key: Some(ClientKey::Replace), ..settings("http://localhost:1", Wire::OpenaiChat) };
    let error = Upstream::of(replaced.clone()).unwrap_err();
    assert_eq!(error.to_string(), "the keys of clients can't be replaced for fake: there is no other");
    assert_eq!(error.hint().unwrap(), "name the variable with the key in `key_env`");
    let named = Settings { key_env: Some("RECTO_NO_SUCH_KEY".into()), key_required: false, ..replaced.clone() };
    assert_eq!(Upstream::of(named).unwrap_err().hint().unwrap(), "set RECTO_NO_SUCH_KEY to the key");
    let keyed = Settings { key_env: Some(VARIABLE.into()), ..replaced };
    assert_eq!(Upstream::of(keyed).unwrap().client_key(), ClientKey::Replace);
}

#[test]
fn no_key_is_in_an_error_whosever_it_is() {
    let own = std::env::var(VARIABLE).unwrap();
    for (key_env, key) in [(None, "sk-theirs"), (Some(VARIABLE.to_string()), own.as_str())] {
        let server = Server::start();
        let echo = json!({"error": {"message": format!("Incorrect API key provided: {key}"), "code": key}});
        server.push(Reply::error(401, echo.clone()));
        let keyed = Settings { key_env, ..settings(&server.url(), Wire::OpenaiChat) };
        let upstream = Upstream::of(keyed).unwrap();
        let request = || Forward { headers: headers(&[("authorization", "Bearer sk-theirs")]), ..chat() };
        let refused = block_on(async { upstream.forward(request(), &mut |_| {}).await.unwrap().into_refusal().await });
        assert_eq!(refused.to_string(), "fake refused the request (401): Incorrect API key provided: [key]");
        assert_eq!(refused.refusal(), (Some(401), Some("[key]")));
        assert!(!format!("{refused:?}").contains(key));
        server.push(Reply::error(401, echo));
        let (_, body) = forward(&upstream, request()).0.unwrap();
        assert!(String::from_utf8(body).unwrap().contains(key), "the client reads what the provider said");
    }
}

#[test]
fn redirects_go_back_to_the_client() {
    let server = Server::start();
    let location = format!("{}/v1/chat/completions", server.url());
    let (url, served) =
        saying(1, format!("HTTP/1.1 307 Temporary Redirect\r\nlocation: {location}\r\ncontent-length: 0\r\n\r\n"));
    let (response, _) = forward(&upstream(&url), chat()).0.unwrap();
    assert_eq!((response.status(), response.headers_for_client()["location"].to_str().unwrap()), (307, &*location));
    served.join().unwrap();
    assert_eq!(server.log().len(), 0);
}

#[test]
fn a_busy_provider_is_asked_again_a_few_times_and_each_is_told() {
    let past = httpdate::fmt_http_date(SystemTime::UNIX_EPOCH);
    for after in ["0", &past] {
        let server = Server::start();
        for _ in 0..4 {
            server.push(Reply::error(429, json!({"error": {"message": "busy"}})).header("retry-after", after));
        }
        let (answered, heard) = forward(&upstream(&server.url()), chat());
        let (response, body) = answered.unwrap();
        assert_eq!((response.status(), body.as_slice()), (429, br#"{"error":{"message":"busy"}}"#.as_slice()));
        let told = |nth| Heard::Note(format!("fake answered 429; trying again ({nth} of 2)").into());
        assert_eq!(heard, [told(1), told(2)]);
        let log = server.log();
        assert_eq!(log.len(), 3);
        assert!(log.iter().all(|it| it.request.body == CHAT.as_bytes()), "the same each time");
    }
    let far = httpdate::fmt_http_date(SystemTime::now() + Duration::from_secs(3600));
    let server = Server::start();
    server.push(Reply::error(503, json!({})).header("retry-after", &far));
    let (answered, heard) = forward(&upstream(&server.url()), chat());
    assert_eq!((answered.unwrap().0.status(), heard.len(), server.log().len()), (503, 0, 1), "nobody waits an hour");
}

#[test]
fn what_may_stand_twice_is_sent_again_only_if_nothing_was_done() {
    for (repeat, requests) in [(Repeat::WhenUnanswered, 2), (Repeat::WhenUnheard, 1)] {
        let server = Server::start();
        server.push(Reply::error(500, json!({})).header("retry-after", "0"));
        let (answered, _) = forward(&upstream(&server.url()), Forward { repeat, ..chat() });
        assert_eq!((answered.unwrap().0.status() == 200, server.log().len()), (requests == 2, requests));
    }
}

#[test]
fn silence_is_not_waited_for() {
    let limits = [
        Limits { first_byte: LIMIT, ..Limits::default() },
        Limits { whole: LIMIT, ..Limits::default() },
        Limits { silence: LIMIT, ..Limits::default() },
        Limits { forwarded: LIMIT, ..Limits::default() },
    ];
    for (limits, events) in limits.into_iter().zip([0, 0, 3, 3]) {
        let server = Server::start();
        server.push(Reply::default().text("some words that come in pieces").waiting_after(events, &Gate::default()));
        let upstream = Upstream::of(Settings { limits, ..settings(&server.url(), Wire::OpenaiChat) }).unwrap();
        let (answered, heard) = forward(&upstream, chat());
        let error = answered.unwrap_err();
        assert!(error.is_timed_out(), "{error}");
        assert_eq!((server.log().len(), heard.len()), (1, 0), "nothing is sent again");
    }
}

#[test]
fn an_answer_that_goes_on_to_a_client_may_take_longer_than_one_that_we_read() {
    let rest = |is_forwarded: bool| {
        let server = Server::start();
        let gate = Gate::default();
        server.push(Reply::default().text("some words that come in pieces").waiting_after(3, &gate));
        let upstream = upstream(&server.url());
        block_on(async {
            let asked = Post::new(CHAT.into(), Repeat::WhenUnanswered);
            let mut response = match is_forwarded {
                true => upstream.forward(chat(), &mut |_| {}).await.unwrap(),
                false => upstream.send(Endpoint::Answer, asked, &mut |_| {}).await.unwrap(),
            };
            tokio::time::pause();
            tokio::time::advance(Limits::default().whole * 2).await;
            tokio::time::resume();
            gate.open();
            read(&mut response).await
        })
    };
    let (body, error) = rest(true);
    assert!(error.is_none() && body.ends_with(b"data: [DONE]\n\n"), "{error:?}");
    assert!(rest(false).1.unwrap().is_timed_out());
}

#[test]
fn what_only_passes_through_may_be_longer_than_what_is_kept() {
    let mebibytes = 66;
    let (url, served) = serving(1, move |_, mut stream| {
        let head = format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n", mebibytes << 20);
        stream.write_all(head.as_bytes()).unwrap();
        (0..mebibytes).for_each(|_| stream.write_all(&[b'x'; 1 << 20]).unwrap());
    });
    assert_eq!(forward(&upstream(&url), chat()).0.unwrap().1.len(), 66 << 20);
    served.join().unwrap();
}

#[test]
fn what_came_before_an_answer_broke_off_is_there() {
    let head = "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n";
    let closed = format!("{head}5\r\nfirst\r\n6\r\nsec");
    let garbage = format!("{head}5\r\nfirst\r\nno chunk at all\r\n");
    let short = "HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nfirst".to_string();
    for (bytes, came) in [(closed, "firstsec"), (garbage, "first"), (short, "first")] {
        let (url, served) = saying(1, bytes);
        let upstream = upstream(&url);
        let mut heard = 0;
        let (body, error) = block_on(async {
            let mut response = upstream.forward(chat(), &mut |_| heard += 1).await.unwrap();
            read(&mut response).await
        });
        let error = error.unwrap();
        assert_eq!(String::from_utf8(body).unwrap(), came);
        assert!(error.is_refused() && error.to_string().starts_with("the answer of fake broke off: "), "{error}");
        assert_eq!(heard, 0, "nothing is sent again");
        served.join().unwrap();
    }
}

#[test]
fn an_answer_that_is_no_http_is_an_error() {
    let (url, served) = saying(1, "SSH-2.0-OpenSSH_9.6\r\n");
    let once = Settings { retries_max: 0, ..settings(&url, Wire::OpenaiChat) };
    let (answered, _) = forward(&Upstream::of(once).unwrap(), chat());
    assert!(answered.unwrap_err().is_refused());
    served.join().unwrap();
}

/// Returns whether the other side has hung up.
fn is_gone(mut stream: TcpStream) -> bool {
    match stream.read(&mut [0; 1]) {
        Ok(read) => read == 0,
        Err(error) => error.kind() == std::io::ErrorKind::ConnectionReset,
    }
}

#[test]
fn who_leaves_before_the_answer_begins_hangs_up() {
    let (tell, told) = tokio::sync::oneshot::channel();
    let mut tell = Some(tell);
    let (url, served) = serving(1, move |_, stream| {
        tell.take().unwrap().send(()).unwrap();
        is_gone(stream)
    });
    let upstream = upstream(&url);
    block_on(async {
        let mut listen = |_| {};
        tokio::select! {
            answered = upstream.forward(chat(), &mut listen) => panic!("{answered:?}"),
            heard = told => heard.unwrap(),
        }
        // The runtime has to live on for a moment: what hangs up is a task of its own.
        tokio::task::spawn_blocking(|| assert_eq!(served.join().unwrap(), [true])).await.unwrap();
    });
}

#[test]
fn who_leaves_in_the_middle_of_an_answer_hangs_up() {
    let (url, served) = serving(1, |_, mut stream| {
        stream.write_all(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n5\r\nfirst\r\n").unwrap();
        is_gone(stream)
    });
    let upstream = upstream(&url);
    block_on(async {
        let mut response = upstream.forward(chat(), &mut |_| {}).await.unwrap();
        assert_eq!(response.chunk().await.unwrap().unwrap(), "first");
        drop(response);
        tokio::task::spawn_blocking(|| assert_eq!(served.join().unwrap(), [true])).await.unwrap();
    });
}

#[test]
fn no_path_leads_out_of_the_url_of_the_settings() {
    let upstream = upstream("http://127.0.0.1:1/api/v1");
    for path in ["../admin", "models/../../admin", "models/%2e%2e/%2E%2E/admin", "../v1evil"] {
        let error = forward(&upstream, post(path, "")).0.unwrap_err();
        assert!(error.is_not_found(), "{path}: {error}");
    }
    let (url, served) = saying(1, ok("", b""));
    forward(&self::upstream(&url), post("models/a?b#c", "")).0.unwrap();
    assert_eq!(served.join().unwrap()[0].first, "POST /v1/models/a%3Fb%23c HTTP/1.1");
}
