//! What is too old goes by itself: once when the server starts, each hour, and when the configuration was read again.

use super::Server;
use crate::aging::{Goes, Sweep};
use crate::clock;
use crate::config::Retention;
use crate::talk::{self, Level};
use recto_engine::Store;
use recto_engine::engine::Aged;
use serde_json::{Map, json};
use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::sleep;

/// How long it takes until it is looked again.
const PAUSE: Duration = Duration::from_secs(60 * 60);
/// How long requests have the store to themselves after some conversations were looked at.
const STEP_PAUSE: Duration = Duration::from_millis(50);

/// Erases what is too old, until the server ends.
pub(super) async fn keep_up<S: Store>(server: Arc<Server<S>>) {
    loop {
        let retention = server.setup().config.retention();
        if let Some(days) = retention.days {
            look(&server, &retention, days).await;
        }
        tokio::select! {
            () = sleep(PAUSE) => {}
            () = server.reloaded.notified() => {}
            () = server.closing.begun() => return,
        }
    }
}

async fn look<S: Store>(server: &Arc<Server<S>>, retention: &Retention, days: u32) {
    // What was begun is finished before the server ends.
    let hold = server.closing.hold();
    let since = Retention::since(days, clock::now());
    let sweep = Sweep { since, retention, goes: Goes::Away, pause: STEP_PAUSE };
    let swept = sweep.run(&server.engine, |at, row, aged| {
        if server.closing.is_begun() {
            return ControlFlow::Break(());
        }
        if let Aged::Old(_) = aged {
            let (tenant, name) = (at.tenant.as_str(), row.id.as_str());
            let text =
                format!("retention: erasing {name:?} of {tenant:?}, last written {}", clock::minute(row.updated));
            talk::event(Level::Info, "retention", &text, || {
                let fields = [("tenant", json!(tenant)), ("conversation", json!(name)), ("days", json!(days))];
                fields.into_iter().map(|(name, value)| (name.to_string(), value)).collect()
            });
        }
        ControlFlow::Continue(())
    });
    match swept.await {
        Ok(swept) => {
            server.metrics.aged.add(swept.conversations);
            server.metrics.looked_for_old(true);
            let text = format!(
                "retention: {} conversations erased with {} entries; {} stay for what goes on from them, {} by name",
                swept.conversations, swept.entries, swept.held, swept.kept
            );
            talk::event(Level::Info, "retention", &text, || {
                serde_json::to_value(&swept).ok().and_then(|it| it.as_object().cloned()).unwrap_or_else(Map::new)
            });
        }
        Err(error) => {
            server.metrics.looked_for_old(false);
            talk::warn(&format!("retention: {error}; it is tried again"));
        }
    }
    drop(hold);
}
