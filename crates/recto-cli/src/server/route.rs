//! Which path leads where: one table, from which the router, the metrics and the hint of a 404 are made.

use super::api::table::Asks;
use super::auth::Caller;
use super::error::{Envelope, refusal};
use super::heads::Heads;
use super::limits::{self, Keeping};
use super::visit::{About, Visit};
use super::{Server, api, gateway, health, session};
use axum::Router;
use axum::body::Body;
use axum::extract::rejection::PathRejection;
use axum::extract::{Path, Request};
use axum::http::header::{CONNECTION, EXPECT};
use axum::http::request::Parts;
use axum::http::{HeaderValue, Method, StatusCode};
use axum::response::Response;
use axum::routing::{MethodFilter, on};
use recto::wire::Wire;
use recto_engine::{Store, Tenant};
use std::sync::Arc;

/// Something that can be asked for.
struct Route {
    method: Method,
    path: &'static str,
    leads_to: LeadsTo,
}

#[derive(Clone, Copy)]
enum LeadsTo {
    Answer(Wire),
    CountTokens,
    Models,
    Health,
    Ready,
    Metrics,
    /// The tools of agents' programs.
    #[cfg(feature = "mcp")]
    Mcp,
    /// The inspector.
    Web,
    /// Who looks at it.
    Session,
    /// A place in the table of the API.
    Api(usize),
    /// No path of ours.
    Nowhere,
    /// A path of ours, asked otherwise.
    WrongMethod,
}

/// All there is.
static ROUTES: &[Route] = &[
    Route { method: Method::POST, path: "/v1/chat/completions", leads_to: LeadsTo::Answer(Wire::OpenaiChat) },
    Route { method: Method::POST, path: "/v1/responses", leads_to: LeadsTo::Answer(Wire::OpenaiResponses) },
    Route { method: Method::POST, path: "/v1/messages", leads_to: LeadsTo::Answer(Wire::Anthropic) },
    Route { method: Method::POST, path: "/v1/messages/count_tokens", leads_to: LeadsTo::CountTokens },
    Route { method: Method::GET, path: "/v1/models", leads_to: LeadsTo::Models },
    // Names of models may have slashes.
    Route { method: Method::GET, path: "/v1/models/{*id}", leads_to: LeadsTo::Models },
    Route { method: Method::GET, path: "/health", leads_to: LeadsTo::Health },
    Route { method: Method::GET, path: "/ready", leads_to: LeadsTo::Ready },
    Route { method: Method::GET, path: "/metrics", leads_to: LeadsTo::Metrics },
    #[cfg(feature = "mcp")]
    Route { method: Method::POST, path: "/mcp", leads_to: LeadsTo::Mcp },
    Route { method: Method::GET, path: "/", leads_to: LeadsTo::Web },
    Route { method: Method::GET, path: "/assets/{file}", leads_to: LeadsTo::Web },
    Route { method: Method::GET, path: "/session", leads_to: LeadsTo::Session },
    Route { method: Method::POST, path: "/session", leads_to: LeadsTo::Session },
];
/// What stands for all paths that lead nowhere.
const NOWHERE: usize = ROUTES.len();

/// Returns what metrics call a route, by its place in the table.
pub(super) fn name(at: usize) -> &'static str {
    let of_api = || Some(api::table::TABLE.get(at.checked_sub(NOWHERE + 1)?)?.path);
    ROUTES.get(at).map(|route| route.path).or_else(of_api).unwrap_or("unknown")
}

/// Returns how many routes there are, with the one that stands for all others.
pub(super) fn count() -> usize {
    NOWHERE + 1 + api::table::TABLE.len()
}

/// What stands in a path, by name.
type Names = Result<Path<Vec<(String, String)>>, PathRejection>;

/// Returns what answers requests.
pub(super) fn router<S: Store>(server: &Arc<Server<S>>) -> Router {
    let to = |at: usize, leads_to: LeadsTo| {
        let server = server.clone();
        move |names: Names, request: Request| answered(server.clone(), at, leads_to, names, request)
    };
    let mut router = Router::new();
    for (at, route) in ROUTES.iter().enumerate() {
        let filter = if route.method == Method::POST { MethodFilter::POST } else { MethodFilter::GET };
        router = router.route(route.path, on(filter, to(at, route.leads_to)));
    }
    for (at, route) in api::table::TABLE.iter().enumerate() {
        let filter = match route.method {
            Asks::Get => MethodFilter::GET,
            Asks::Post => MethodFilter::POST,
            Asks::Patch => MethodFilter::PATCH,
            Asks::Delete => MethodFilter::DELETE,
        };
        router = router.route(route.path, on(filter, to(NOWHERE + 1 + at, LeadsTo::Api(at))));
    }
    let (nowhere, wrong_method) = (to(NOWHERE, LeadsTo::Nowhere), to(NOWHERE, LeadsTo::WrongMethod));
    router.fallback(nowhere).method_not_allowed_fallback(wrong_method)
}

/// Answers a request, and counts it until its answer has ended.
async fn answered<S: Store>(
    server: Arc<Server<S>>,
    at: usize,
    leads_to: LeadsTo,
    names: Names,
    request: Request,
) -> Response {
    let (parts, mut body) = request.into_parts();
    let visit = Visit::begun(server.clone(), at, &parts);
    // Who asks before sending has sent nothing yet.
    let is_sending = !parts.headers.contains_key(EXPECT);
    let answer = match Heads::refused(&parts) {
        None => led(server, &visit.about, leads_to, names, parts, &mut body).await,
        Some(refused) => Err(refused),
    };
    let response = match answer {
        Ok(response) => response,
        Err(mut refused) => {
            // What follows on this connection can't be trusted to be the next request.
            refused.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
            if is_sending {
                Box::pin(limits::drain(&mut body)).await;
            }
            refused
        }
    };
    visit.about.answered(response.status().as_u16());
    response.map(|body| Body::new(Keeping { body, kept: visit }))
}

/// Leads a request to what answers it. At the gateway it is known who asks, and the body is one that is taken.
///
/// All but the gateway's answers are boxed, so that the future of each request is no larger than that.
async fn led<S: Store>(
    server: Arc<Server<S>>,
    about: &Arc<About>,
    leads_to: LeadsTo,
    names: Names,
    parts: Parts,
    body: &mut Body,
) -> Result<Response, Response> {
    let caller = caller(&server, leads_to, &parts).await?;
    let names = match names {
        Ok(Path(names)) => names,
        Err(_) => return Err(unreadable(&parts)),
    };
    let tenant = caller.as_ref().map(|caller| &caller.tenant);
    if matches!(leads_to, LeadsTo::Metrics) && tenant != Some(&Tenant::default()) {
        // They tell of all tenants together, so they are for whom the server belongs to.
        return Err(not_found(&parts));
    }
    let seat = match tenant {
        Some(tenant) => {
            about.of(tenant);
            Some(server.crowd.seat(tenant).ok_or_else(|| limits::crowded(&server.metrics, &parts))?)
        }
        None => None,
    };
    let setup = server.setup();
    let (bytes, glance) = limits::body(&server, tenant, setup.settings.body_bytes_max, &parts, body).await?;
    if let (LeadsTo::Api(at), Some(caller)) = (leads_to, &caller) {
        let response = Box::pin(api::answer(server, setup, caller.clone(), at, names, parts, bytes)).await;
        return Ok(response.map(|body| Body::new(Keeping { body, kept: seat })));
    }
    #[cfg(feature = "mcp")]
    if let (LeadsTo::Mcp, Some(caller)) = (leads_to, &caller) {
        let response = Box::pin(super::mcp::answer(server, caller.clone(), parts, bytes)).await;
        return Ok(response.map(|body| Body::new(Keeping { body, kept: seat })));
    }
    if matches!(leads_to, LeadsTo::Session) {
        return Ok(Box::pin(session::answer(&server, &parts, &bytes)).await);
    }
    let Parts { uri, headers, .. } = parts;
    let asked = |caller, wire, uri, headers, body| {
        let (server, setup, about) = (server.clone(), setup.clone(), about.clone());
        gateway::Asked { server, setup, about, caller, wire, uri, headers, body, glance }
    };
    let response = match (leads_to, caller) {
        (LeadsTo::Web, _) => Box::pin(server.web.answer(names.first().map(|(_, file)| &**file), &headers)).await,
        (LeadsTo::Answer(wire), Some(caller)) => gateway::answer(asked(caller, wire, uri, headers, bytes)).await,
        (LeadsTo::CountTokens, Some(caller)) => {
            Box::pin(gateway::count_tokens(asked(caller, Wire::Anthropic, uri, headers, bytes))).await
        }
        (LeadsTo::Models, Some(caller)) => {
            let id = names.into_iter().next().map(|(_, id)| id);
            Box::pin(gateway::models(asked(caller, gateway::wire_of(&headers), uri, headers, bytes), id)).await
        }
        (LeadsTo::Metrics, _) => health::metrics(&server),
        (LeadsTo::Ready, _) => Box::pin(health::ready(&server)).await,
        _ => health::alive(),
    };
    Ok(response.map(|body| Body::new(Keeping { body, kept: seat })))
}

/// Says who asks, where that has to be known.
async fn caller<S: Store>(server: &Server<S>, leads_to: LeadsTo, parts: &Parts) -> Result<Option<Caller>, Response> {
    match leads_to {
        LeadsTo::Nowhere => Err(not_found(parts)),
        LeadsTo::WrongMethod => Err(wrong_method(parts)),
        LeadsTo::Health | LeadsTo::Ready => Ok(None),
        LeadsTo::Web | LeadsTo::Session => server.doors.refusal(parts).map_or(Ok(None), Err),
        LeadsTo::Api(at) => Box::pin(looking(server, at, parts)).await.map(Some),
        LeadsTo::Answer(_) | LeadsTo::CountTokens | LeadsTo::Models | LeadsTo::Metrics => {
            Caller::of(server, parts).await.map(Some)
        }
        #[cfg(feature = "mcp")]
        LeadsTo::Mcp => Caller::of(server, parts).await.map(Some),
    }
}

/// Says who asks the API; who came by a session of a browser may only look.
async fn looking<S: Store>(server: &Server<S>, at: usize, parts: &Parts) -> Result<Caller, Response> {
    let caller = Caller::looking(server, parts).await?;
    if caller.may_change() || !api::table::TABLE[at].changes() {
        return Ok(caller);
    }
    let message = "a browser's session may look, and change nothing; send the key itself as `x-recto-key`";
    Err(refusal(Envelope::of_path(parts.uri.path()), StatusCode::FORBIDDEN, "read_only", message))
}

fn not_found(parts: &Parts) -> Response {
    let all: Vec<String> = ROUTES.iter().map(|route| format!("{} {}", route.method, route.path)).collect();
    let message = match api::is_ours(parts.uri.path()) {
        true => "there is no such path; /openapi.json lists all of them".into(),
        false => format!("there is no such path; there are: {}", all.join(", ")),
    };
    refusal(Envelope::of_path(parts.uri.path()), StatusCode::NOT_FOUND, "not_found", &message)
}

fn unreadable(parts: &Parts) -> Response {
    let message = "the path is not percent-encoded UTF-8";
    refusal(Envelope::of_path(parts.uri.path()), StatusCode::BAD_REQUEST, "bad_request", message)
}

fn wrong_method(parts: &Parts) -> Response {
    let message = "this path is not asked with this method";
    refusal(Envelope::of_path(parts.uri.path()), StatusCode::METHOD_NOT_ALLOWED, "method", message)
}
