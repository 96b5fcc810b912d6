//! Whether the server lives, and whether it can work.

use super::Server;
use super::error::{Envelope, refusal};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use recto_engine::{Store, Tenant};

/// Answers that the process lives.
pub(super) fn alive() -> Response {
    "ok\n".into_response()
}

/// Answers whether requests are taken and the store answers.
pub(super) async fn ready<S: Store>(server: &Server<S>) -> Response {
    let not = |kind, why: &str| refusal(Envelope::Openai, StatusCode::SERVICE_UNAVAILABLE, kind, why);
    if server.closing.is_begun() {
        return not("closing", "the server is about to end");
    }
    match server.engine.list(&Tenant::default(), None, 1).await {
        Ok(_) => "ready\n".into_response(),
        // What a store says may name files; that is for the log.
        Err(error) => {
            server.tell(|| format!("not ready: {error}"));
            not("store", "the store does not answer")
        }
    }
}

/// Answers with all numbers.
pub(super) fn metrics<S: Store>(server: &Server<S>) -> Response {
    let kind = [("content-type", "text/plain; version=0.0.4; charset=utf-8")];
    (kind, server.metrics.text(&server.engine.store().vitals())).into_response()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Config;
    use crate::server::Setup;
    use recto_engine::Engine;
    use recto_engine::store::any::Any;
    use recto_engine::store::memory::Memory;

    #[tokio::test]
    async fn a_server_that_ends_is_not_ready_but_alive() {
        let at = ([127, 0, 0, 1], 0).into();
        let setup = Setup::of(Config::default());
        let server = Server::new(Engine::over(Any::Memory(Memory::default())), setup, Default::default(), at);
        assert_eq!(ready(&server).await.status(), 200);
        assert!(server.closing.advance());
        assert_eq!(ready(&server).await.status(), 503);
        assert_eq!(alive().status(), 200);
        assert!(server.closing.advance());
        server.closing.cut().await;
        assert!(!server.closing.advance());
    }
}
