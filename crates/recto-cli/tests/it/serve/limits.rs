use super::*;

const PATH: &str = "/v1/messages";

fn post(headers: &[&str], body: &str) -> String {
    request("POST", PATH, &[&["Host: localhost"], headers].concat(), body)
}

/// A request without a length of its own.
fn framed(headers: &str, body: &str) -> String {
    format!("POST {PATH} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n{headers}\r\n{body}")
}

fn chunked(body: &str) -> String {
    format!("{:x}\r\n{body}\r\n0\r\n\r\n", body.len())
}

#[test]
fn a_body_that_is_too_large_is_refused_and_the_largest_is_taken() {
    let place = Place::with("[server]\nbody_mib = 1\n");
    let served = place.serve(&[]);
    let of = |bytes: usize| format!("{{\"a\":\"{}\"}}", "x".repeat(bytes - 8));
    served.sends(post(&[], &of(1 << 20))).is_let_in();
    let answer = served.sends(post(&[], &of((1 << 20) + 1)));
    assert_eq!((answer.told(), &answer.json()["error"]["type"]), ((413, "too_large"), &"request_too_large".into()));
    served.sends(framed("Transfer-Encoding: chunked\r\n", &chunked(&of(1 << 20)))).is_let_in();
    let answer = served.sends(framed("Transfer-Encoding: chunked\r\n", &chunked(&of((1 << 20) + 1))));
    assert_eq!(answer.told(), (413, "too_large"));
    // Of what is only announced nothing is waited for.
    let announced = framed("Content-Length: 99999999999\r\nExpect: 100-continue\r\n", "");
    assert_eq!(served.sends(announced).told(), (413, "too_large"));
}

#[test]
fn a_body_that_is_nested_too_deep_is_refused() {
    let place = Place::new();
    let served = place.serve(&[]);
    let nested = |depth: usize| format!("{}{}", "[".repeat(depth), "]".repeat(depth));
    served.sends(post(&[], &nested(128))).is_let_in();
    for depth in [129, 1_000_000] {
        assert_eq!(served.sends(post(&[], &nested(depth))).told(), (400, "too_deep"), "{depth}");
    }
}

#[test]
fn a_compressed_body_is_refused() {
    let place = Place::new();
    let served = place.serve(&[]);
    for encoding in ["gzip", "zstd", "br", "identity, gzip", ""] {
        let answer = served.sends(post(&[&format!("Content-Encoding: {encoding}")], BODY));
        assert_eq!(answer.told(), (415, "content_encoding"), "{encoding}");
    }
    served.sends(post(&["Content-Encoding: Identity"], BODY)).is_let_in();
    let twice = ["Content-Encoding: identity", "Content-Encoding: gzip"];
    assert_eq!(served.sends(post(&twice, BODY)).told(), (415, "content_encoding"));
}

#[test]
fn a_request_whose_length_is_doubtful_is_refused_and_nothing_behind_it_is_heard() {
    let place = Place::new();
    let served = place.serve(&["--verbose"]);
    let (length, chunks) = (format!("Content-Length: {}\r\n", BODY.len()), "Transfer-Encoding: chunked\r\n");
    served.sends(framed(&length, BODY)).is_let_in();
    served.sends(framed(chunks, &chunked(BODY))).is_let_in();
    let smuggled = "GET /v1/models/smuggled HTTP/1.1\r\nHost: localhost\r\n\r\n";
    let doubtful = [
        framed(&format!("{length}{chunks}"), &chunked(BODY)),
        framed(&format!("{chunks}{length}"), &chunked(BODY)),
        framed(&format!("{length}{length}"), BODY),
        framed(&format!("{length}Content-Length: 1\r\n"), BODY),
        framed("Content-Length: 4, 4\r\n", "abcd"),
        framed("Content-Length: +4\r\n", "abcd"),
        framed("Content-Length: -4\r\n", "abcd"),
        framed("Content-Length : 4\r\n", "abcd"),
        framed("Transfer-Encoding: xchunked\r\n", &chunked(BODY)),
        framed("Transfer-Encoding: chunked, identity\r\n", &chunked(BODY)),
        framed(&format!("{chunks}A: b\nContent-Length: 4\r\n"), &chunked(BODY)),
        format!("POST {PATH} HTTP/1.0\r\nHost: localhost\r\n{chunks}\r\n{}", chunked(BODY)),
    ];
    for request in doubtful {
        let request = request.replace("Connection: close\r\n", "");
        let answer = served.sends(format!("{request}{smuggled}"));
        assert_eq!(answer.status, 400, "{request}: {answer:?}");
        assert!(!answer.body.contains("HTTP/1.1"), "one answer, not two: {answer:?}");
    }
    let ran = served.ends();
    assert!(!ran.stderr.contains("/v1/models"), "{}", ran.stderr);
}

#[test]
fn one_connection_takes_several_requests_however_their_bodies_come() {
    let place = Place::new();
    let served = place.serve(&[]);
    let mut stream = served.connect();
    let (length, chunks) = (format!("Content-Length: {}\r\n", BODY.len()), "Transfer-Encoding: chunked\r\n");
    let lasting = |headers: &str, body: &str| framed(headers, body).replace("Connection: close\r\n", "");
    let several = [
        lasting(chunks, &chunked(BODY)),
        lasting(&length, BODY),
        "GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n".into(),
        lasting(chunks, &chunked(BODY)),
    ];
    for request in several {
        stream.write_all(request.as_bytes()).unwrap();
        // The head is enough to see that the connection goes on, and bodies are short.
        let mut answer = Vec::new();
        while !ends_whole(&answer) {
            let mut piece = [0; 4096];
            let read = stream.read(&mut piece).unwrap();
            assert!(read > 0, "the connection ended: {}", String::from_utf8_lossy(&answer));
            answer.extend_from_slice(&piece[..read]);
        }
        assert!(!answer.starts_with(b"HTTP/1.1 400"), "{request}: {}", String::from_utf8_lossy(&answer));
    }
    // All at once: those with a length are answered, one in chunks is not known well enough.
    let together = [lasting(&length, BODY), lasting(chunks, &chunked(BODY))].concat();
    let answer = served.sends(together);
    assert!(answer.body.contains("HTTP/1.1 400"), "{answer:?}");
}

/// Whether an answer has all of its body.
fn ends_whole(answer: &[u8]) -> bool {
    let text = String::from_utf8_lossy(answer).to_lowercase();
    let Some((head, body)) = text.split_once("\r\n\r\n") else { return false };
    let length = head.lines().find_map(|line| line.strip_prefix("content-length: ")?.parse().ok());
    length.map_or(body.ends_with("0\r\n\r\n"), |length: usize| body.len() >= length)
}

#[test]
fn a_head_that_is_too_long_is_refused() {
    let place = Place::new();
    let served = place.serve(&[]);
    let many = |count: usize| (0..count).map(|at| format!("x-{at}: 1\r\n")).collect::<String>();
    let length = format!("Content-Length: {}\r\n", BODY.len());
    served.sends(framed(&format!("{length}{}", many(90)), BODY)).is_let_in();
    assert_eq!(served.sends(framed(&format!("{length}{}", many(101)), BODY)).status, 431);
    let long = |bytes: usize| format!("{length}x-long: {}\r\n", "x".repeat(bytes));
    served.sends(framed(&long(32 << 10), BODY)).is_let_in();
    assert_eq!(served.sends(framed(&long(70 << 10), BODY)).status, 431);
}

#[test]
fn one_tenant_cannot_take_the_places_of_another() {
    let place = Place::with("[server]\nrequests_per_tenant = 2\n");
    let [own, other] = ["local", "team"].map(|tenant| format!("x-api-key: {}", place.key(tenant, tenant)));
    let served = place.serve(&[]);
    // Once a key is known, whoever brings it has a place at once.
    assert_eq!(served.asks("GET", "/metrics", &[&other]).status, 404);
    let half = |key: &str| {
        let mut stream = served.connect();
        let request = post(&[key], BODY);
        stream.write_all(&request.as_bytes()[..request.len() - 1]).unwrap();
        stream
    };
    let mut waiting: Vec<TcpStream> = (0..2).map(|_| half(&other)).collect();
    let start = Instant::now();
    // Both have their places before anybody else asks; the third is the request for the numbers.
    while !served.asks("GET", "/metrics", &[&own]).body.contains("\nrecto_requests_in_flight 3\n") {
        assert!(start.elapsed() < PATIENCE);
    }
    let refused = served.asks("POST", PATH, &[&other]);
    assert_eq!(refused.told(), (429, "crowded"));
    assert!(refused.head.contains("retry-after: 1"), "{refused:?}");
    assert_eq!(refused.json()["error"]["type"], "rate_limit_error");
    served.asks("POST", PATH, &[&own]).is_let_in();
    // A place is free again once its request is answered, or its client has gone.
    let mut first = waiting.remove(0);
    first.write_all(&BODY.as_bytes()[BODY.len() - 1..]).unwrap();
    Answer::read(&mut first).is_let_in();
    drop(waiting);
    let start = Instant::now();
    while served.asks("GET", "/metrics", &[&own]).body.contains("\nrecto_requests_in_flight 2\n") {
        assert!(start.elapsed() < PATIENCE);
    }
    served.asks("POST", PATH, &[&other]).is_let_in();
}

#[test]
fn nonsense_is_answered_or_dropped_and_the_server_lives() {
    let place = Place::new();
    let served = place.serve(&[]);
    let nonsense: [&[u8]; 6] = [
        b"\x16\x03\x01\x02\x00\x01",
        b"GET\r\n\r\n",
        b"\r\n\r\n\r\n",
        b"POST / HTTP/9.9\r\n\r\n",
        b"\0\0\0\0",
        b"PRI * HTTP/2.0\r\n\r\n",
    ];
    for bytes in nonsense {
        let mut stream = served.connect();
        stream.write_all(bytes).unwrap();
        stream.shutdown(std::net::Shutdown::Write).unwrap();
        let mut answer = Vec::new();
        let _ = stream.read_to_end(&mut answer);
        assert!(
            answer.is_empty() || answer.starts_with(b"HTTP/1.1 4"),
            "{bytes:?}: {}",
            String::from_utf8_lossy(&answer)
        );
    }
    assert_eq!(served.get("/health").status, 200);
    served.ends();
}
