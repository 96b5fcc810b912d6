//! The provider that clients are answered by, the proxy that only passes on, and one that writes down what it passes on:
//! each a process of its own.

use crate::ledger::Ledger;
use crate::streams::{self, Slow};
use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::State;
use axum::http::header::{CONNECTION, CONTENT_LENGTH, CONTENT_TYPE, HOST, TRANSFER_ENCODING};
use axum::http::{HeaderMap, StatusCode};
use axum::response::Response;
use axum::routing::post;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

const PATH: &str = "/v1/chat/completions";
const BODY_BYTES_MAX: usize = 64 << 20;
/// Idle connections that the proxy keeps, as Recto does.
const IDLE_MAX: usize = 2_000;

#[derive(Clone, Copy)]
pub(crate) enum Role {
    Provider,
    Proxy,
    Recorder,
}

/// Returns the role that this process was started for.
pub(crate) fn asked(given: &[String]) -> Option<(Role, &[String])> {
    match given.split_first()? {
        (name, rest) if name == "provider" => Some((Role::Provider, rest)),
        (name, rest) if name == "proxy" => Some((Role::Proxy, rest)),
        (name, rest) if name == "recorder" => Some((Role::Recorder, rest)),
        _ => None,
    }
}

/// Serves until the process ends, and says where.
#[expect(clippy::print_stdout, reason = "whoever started this process reads the address")]
pub(crate) async fn play(role: Role, arguments: &[String]) {
    let router = match role {
        Role::Provider => Router::new().route(PATH, post(answer)),
        Role::Proxy => Router::new().route(PATH, post(pass)).with_state(passing(&arguments[0])),
        Role::Recorder => {
            let ledger = Ledger::open(arguments[1].as_ref());
            Router::new().route(PATH, post(record)).with_state((passing(&arguments[0]), ledger))
        }
    };
    let router = router.layer(axum::extract::DefaultBodyLimit::max(BODY_BYTES_MAX));
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    println!("http://{}", listener.local_addr().expect("a bound socket has an address"));
    axum::serve(listener, router).await.expect("it serves until it is ended");
}

/// Who passes on, and where to.
type Passing = (reqwest::Client, String);

fn passing(provider: &str) -> Passing {
    let client = reqwest::Client::builder().no_proxy().pool_max_idle_per_host(IDLE_MAX);
    (client.build().expect("a client"), format!("{provider}{PATH}"))
}

/// Writes a request down, passes it on, writes its answer down, and passes that back.
async fn record(State((passing, ledger)): State<(Passing, Ledger)>, headers: HeaderMap, body: Bytes) -> Response {
    ledger.write(body.clone()).await;
    let (head, answer) = pass(State(passing), headers, body).await.into_parts();
    let answer = axum::body::to_bytes(answer, BODY_BYTES_MAX).await.expect("a whole answer");
    ledger.write(answer.clone()).await;
    Response::from_parts(head, Body::from(answer))
}

/// Passes a request on, and its answer back.
async fn pass(State((client, url)): State<Passing>, mut headers: HeaderMap, body: Bytes) -> Response {
    for name in [HOST, CONTENT_LENGTH, CONNECTION, TRANSFER_ENCODING] {
        headers.remove(name);
    }
    let Ok(answer) = client.post(url).headers(headers).body(body).send().await else {
        let mut response = Response::default();
        *response.status_mut() = StatusCode::BAD_GATEWAY;
        return response;
    };
    let (status, mut headers) = (answer.status(), answer.headers().clone());
    headers.remove(TRANSFER_ENCODING);
    headers.remove(CONNECTION);
    let mut response = Response::new(Body::new(reqwest::Body::from(answer)));
    *response.status_mut() = status;
    *response.headers_mut() = headers;
    response
}

/// Answers with a call that has a name of its own; or with a slow stream, if the request says so.
async fn answer(headers: HeaderMap, body: Bytes) -> Response {
    let number = |name: &str| headers.get(name)?.to_str().ok()?.parse::<u64>().ok();
    let (kind, content) = match (number(streams::EVENTS), number(streams::PERIOD_MS)) {
        (Some(events), Some(period)) => {
            ("text/event-stream", Body::new(Slow::new(events, Duration::from_millis(period.max(1)))))
        }
        _ => ("application/json", Body::from(called(body.len()))),
    };
    let mut response = Response::new(content);
    response.headers_mut().insert(CONTENT_TYPE, kind.parse().expect("a header's value"));
    response
}

fn called(length: usize) -> String {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    format!(
        "{{\"id\":\"chatcmpl-{number}\",\"object\":\"chat.completion\",\"created\":1790000000,\"model\":\"gpt-4o\",\
         \"choices\":[{{\"index\":0,\"message\":{{\"role\":\"assistant\",\"content\":null,\"refusal\":null,\
         \"tool_calls\":[{{\"id\":\"call_{number}\",\"type\":\"function\",\"function\":{{\"name\":\"read_file\",\
         \"arguments\":\"{{\\\"path\\\":\\\"src/main.rs\\\"}}\"}}}}]}},\"logprobs\":null,\
         \"finish_reason\":\"tool_calls\"}}],\"usage\":{{\"prompt_tokens\":{0},\"completion_tokens\":12,\
         \"total_tokens\":{0}}}}}",
        length / 4
    )
}
