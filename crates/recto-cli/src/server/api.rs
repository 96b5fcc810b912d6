//! The API under `/api/v1`: everything that the engine does, for programs in any language.
//!
//! [`table`] lists all there is. The router, the OpenAPI document and the tests are made from it, so none of them can
//! know of a route that the others don't.

#[macro_use]
mod shape; // what bodies and answers look like, as types that describe themselves
pub(super) mod table; // all routes
mod asked; // a request: its names, its parameters, its body
mod problem; // why something could not be done
mod settings; // model, window and policy, as a request names them
mod facts; // the version, policies, models
mod conversations; // making, listing, describing, erasing
mod entries; // reading and appending
mod search; // what was said about something
mod pages; // compile, preview, acknowledge, abandon
mod turns; // calls that were made, and what differs between their pages
mod money; // what calls cost with and without Recto
mod decisions; // what was decided, taken back, pinned, expanded
mod held; // what providers hold, what models have summarized
mod events; // what happens, as it happens
#[cfg(feature = "mcp")]
pub(super) mod tools; // what of it a model may use
mod openapi; // the whole of it, described

use super::Server;
use super::auth::Caller;
use super::setup::Setup;
use axum::body::Bytes;
use axum::http::request::Parts;
use axum::response::Response;
use recto_engine::Store;
use std::future::Future;
use std::sync::Arc;
use table::{Effect, Verb};

pub(super) use asked::Asked;
pub(super) use events::Streams;
pub(super) use money::Replays;
pub(super) use problem::problem;

/// Answers a request by what the table says of its route.
pub(super) async fn answer<S: Store>(
    server: Arc<Server<S>>,
    setup: Arc<Setup>,
    caller: Caller,
    at: usize,
    names: Vec<(String, String)>,
    parts: Parts,
    body: Bytes,
) -> Response {
    let route = &table::TABLE[at];
    let asked = Asked { server: server.clone(), setup, caller, names, parts, body };
    let answered = match route.effect {
        Effect::Reads => told(asked, route.verb).await,
        Effect::Writes => finished(&server, told(asked, route.verb)).await,
    };
    answered.unwrap_or_else(problem::defect)
}

/// Runs something to its end, also if whoever asked for it leaves: nothing is left half done.
async fn finished<S>(
    server: &Server<S>,
    work: impl Future<Output = Option<Response>> + Send + 'static,
) -> Option<Response> {
    let hold = server.closing.hold();
    let work = tokio::spawn(async move {
        let done = work.await;
        drop(hold);
        done
    });
    work.await.ok().flatten()
}

/// Answers, or tells why not; a conflict tells the newest entry as well.
async fn told<S: Store>(asked: Asked<S>, verb: Verb) -> Option<Response> {
    let (server, at) = (asked.server.clone(), asked.at());
    let problem = match led(asked, verb).await {
        Ok(response) => return Some(response),
        Err(problem) => problem,
    };
    let problem = match at {
        Some(at) if problem.is_conflict() => match server.engine.conversation(&at).await {
            Ok(row) => problem.with("head", &row.tally.head()),
            Err(_) => problem,
        },
        _ => problem,
    };
    if let Some(line) = problem.for_log() {
        server.tell(|| line.to_string());
    }
    Some(problem.response())
}

async fn led<S: Store>(asked: Asked<S>, verb: Verb) -> Result<Response, problem::Problem> {
    match verb {
        Verb::Openapi => openapi::document(&asked),
        Verb::Version => facts::version(&asked),
        Verb::Policies => facts::policies(&asked),
        Verb::Policy => facts::policy(&asked),
        Verb::Models => facts::models(&asked),
        Verb::Model => facts::model(&asked),
        Verb::ListConversations => conversations::list(&asked).await,
        Verb::CreateConversation => conversations::create(&asked).await,
        Verb::GetConversation => conversations::get(&asked).await,
        Verb::DescribeConversation => conversations::describe(&asked).await,
        Verb::EraseConversation => conversations::erase(&asked).await,
        Verb::ForkConversation => conversations::fork(&asked).await,
        Verb::Readers => conversations::readers(&asked).await,
        Verb::SearchAll => search::everywhere(&asked).await,
        Verb::Search => search::within(&asked).await,
        Verb::ReadEntries => entries::read(&asked).await,
        Verb::AppendEntries => entries::append(&asked).await,
        Verb::GetEntry => entries::one(&asked).await,
        Verb::GetOriginal => entries::original(&asked).await,
        Verb::EraseEntries => entries::erase(&asked).await,
        Verb::Compile => pages::compile(&asked).await,
        Verb::Preview => pages::preview(&asked).await,
        Verb::Acknowledge => pages::acknowledge(&asked).await,
        Verb::Abandon => pages::abandon(&asked).await,
        Verb::Turns => turns::list(&asked).await,
        Verb::Turn => turns::one(&asked).await,
        Verb::TurnRequest => turns::request(&asked).await,
        Verb::TurnPreview => turns::preview(&asked).await,
        Verb::Curve => money::curve(&asked).await,
        Verb::Replay => money::replay(&asked).await,
        Verb::Decisions => decisions::list(&asked).await,
        Verb::Revert => decisions::revert(&asked).await,
        Verb::Pin => decisions::pin(&asked).await,
        Verb::Unpin => decisions::unpin(&asked).await,
        Verb::Expand => decisions::expand(&asked).await,
        Verb::Sessions => held::sessions(&asked).await,
        Verb::Notes => held::notes(&asked).await,
        Verb::Wants => held::wants(&asked).await,
        Verb::ReaderEvents => events::of_reader(asked).await,
        Verb::TenantEvents => events::of_tenant(asked).await,
    }
}

/// Returns whether a path is one of those that answer as this API does.
pub(super) fn is_ours(path: &str) -> bool {
    path == "/openapi.json" || path == "/mcp" || path == "/api" || path.starts_with("/api/")
}
