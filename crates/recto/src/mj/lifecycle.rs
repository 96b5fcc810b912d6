//! Events and metadata under MemberJunction's names, and the lines its agents log.

use crate::edit::{Change, Decision, Reason, Turn};
use crate::entry::{EntryKind, Part, Role, Text};
use crate::event::{Event, EventKind, Why};
use crate::expiry::{Expiry, ExpiryAction, ExpiryMode};
use crate::item::result_text;
use crate::log::{Counted, Log};
use crate::page::Page;
use crate::reader::Reader;
use crate::tokens::Tokens;
use crate::transcript::time;
use serde::Serialize;
use serde_json::{Map, Value, json};

/// An event as the callback `onMessageLifecycle` gets it.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Lifecycle {
    /// What has happened.
    #[serde(rename = "type")]
    pub name: &'static str,
    /// The call before which it happened.
    pub turn: u64,
    /// The place of the message on a page, if it stands there.
    pub message_index: Option<usize>,
    /// The message: role, content and metadata.
    pub message: Value,
    /// Why.
    pub reason: String,
    /// How many tokens it saves in every call, if it saves any.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tokens_saved: Option<u64>,
}

impl Lifecycle {
    /// Returns the name of a kind of events, if MemberJunction has one for it.
    pub fn name_of(kind: EventKind) -> Option<&'static str> {
        match kind {
            EventKind::Added => Some("message-added"),
            EventKind::Expired => Some("message-expired"),
            EventKind::Compacted => Some("message-compacted"),
            EventKind::Removed => Some("message-removed"),
            EventKind::Expanded => Some("message-expanded"),
            _ => None,
        }
    }

    /// Returns an event under its names; nothing of one that it has no name for. The page is the one that the model reads
    /// next, on which messages have their places.
    pub fn of(event: &Event, reader: &Reader, log: &Log, page: Option<&Page>) -> Option<Lifecycle> {
        let name = Lifecycle::name_of(event.kind)?;
        let entry = log.get(event.seq?)?;
        let place = |page: &Page| page.messages.iter().position(|message| message.seq == event.seq);
        let content = shortened(entry, reader).unwrap_or_else(|| text_of(entry));
        let metadata = metadata(entry, reader, entry.original().expiry);
        let message = json!({"role": entry.role(), "content": &*content, "metadata": metadata});
        let tokens_saved = Some(event.saved().0).filter(|saved| *saved > 0);
        let (turn, message_index, reason) = (event.turn.0, page.and_then(place), reason(event));
        Some(Lifecycle { name, turn, message_index, message, reason, tokens_saved })
    }
}

fn reason(event: &Event) -> String {
    let expired = match &event.why {
        Why::Decided { reason } => expired(reason),
        _ => None,
    };
    match (event.kind, &event.why, expired) {
        (EventKind::Added, Why::Appended { kind: Some(EntryKind::ActionResult), results, .. }, _) => {
            format!("Action results from {results} action(s)")
        }
        (EventKind::Expired, _, Some((age, limit, _))) => format!("Expired after {age} turns (limit: {limit})"),
        (EventKind::Removed, _, Some(_)) => "Removed due to expiration".to_string(),
        (EventKind::Expanded, Why::Decided { reason: Reason::Expanded { asked, .. } }, _) => {
            asked.as_deref().unwrap_or("Agent requested expansion").to_string()
        }
        (EventKind::Compacted, _, Some((_, _, mode))) => {
            format!("Compacted using {mode} (saved {} tokens)", event.saved())
        }
        (_, why, _) => why.to_string(),
    }
}

/// The age and the limit of what has expired, and how it was shortened.
fn expired(reason: &Reason) -> Option<(u64, u32, &'static str)> {
    match reason {
        Reason::Removed { age, limit } => Some((*age, *limit, "Remove")),
        Reason::Compacted { age, limit, .. } => Some((*age, *limit, "First N Chars")),
        Reason::EndsKept { age, limit, .. } => Some((*age, *limit, "Head and Tail")),
        Reason::Condensed { age, limit, .. } => Some((*age, *limit, "AI Summary")),
        Reason::NotCondensed { age, limit, .. } => Some((*age, *limit, "First N Chars")),
        _ => None,
    }
}

/// Returns what MemberJunction keeps with a message, read off the log and the reader's decisions. The expiry is the one
/// that holds for it; [`Expire::expiry_of`](crate::reduce::Expire::expiry_of) tells which.
pub fn metadata(entry: &Counted, reader: &Reader, expiry: Option<Expiry>) -> Map<String, Value> {
    let fact = entry.original();
    let mut metadata = Map::new();
    let mut put = |key: &str, value: Value| drop(metadata.insert(key.to_string(), value));
    if let Some(kind) = message_type(fact.kind_held(), entry.role()) {
        put("messageType", kind.into());
    }
    for key in ["actionId", "agentActionId", "stepId"] {
        fact.meta.get(key).into_iter().for_each(|id| put(key, id.clone()));
    }
    put("turnAdded", reader.turn_at_age(entry.seq, 0).0.into());
    if let Some(at) = fact.at {
        put("timestamp", time::written(at).into());
    }
    if let Some(Expiry { after, action }) = expiry {
        let mode = match action.mode() {
            ExpiryMode::Never => "None",
            ExpiryMode::Remove => "Remove",
            ExpiryMode::Compact => "Compact",
        };
        put("expirationTurns", if action == ExpiryAction::Never { Value::Null } else { after.into() });
        put("expirationMode", mode.into());
        let compact = match action {
            ExpiryAction::FirstChars(chars) => Some(("First N Chars", chars)),
            ExpiryAction::Summary { chars } => Some(("AI Summary", chars)),
            _ => None,
        };
        if let Some((mode, chars)) = compact {
            put("compactMode", mode.into());
            put("compactLength", chars.into());
        }
    }
    let live = reductions(entry, reader);
    let is_expired = live.iter().any(|it| expired(&it.edit.why).is_some());
    let is_compacted = live.iter().any(|it| matches!(it.edit.change, Change::Replace { .. }));
    if is_expired {
        put("isExpired", true.into());
    }
    put("wasCompacted", is_compacted.into());
    put("canExpand", (!live.is_empty()).into());
    if is_compacted {
        let original = text_of(entry);
        put("originalLength", original.chars().count().into());
        put("originalContent", (&*original).into());
        put("tokensSaved", live.iter().map(|it| it.edit.before - it.edit.after).sum::<Tokens>().0.into());
    }
    metadata
}

fn message_type(kind: Option<EntryKind>, role: Role) -> Option<&'static str> {
    match (kind, role) {
        (Some(EntryKind::ToolResult | EntryKind::ActionResult | EntryKind::LoopResult), _) => Some("action-result"),
        (Some(EntryKind::SubRunResult), _) => Some("sub-agent-result"),
        (Some(EntryKind::RetryContext), _) => Some("retry-context"),
        (Some(EntryKind::Injection), _) | (None, Role::System) => Some("system"),
        (None, Role::User) => Some("user-input"),
        (None, _) => None,
    }
}

/// The decisions by which an entry is not shown as it is: those since it was last expanded.
fn reductions<'r>(entry: &Counted, reader: &'r Reader) -> Vec<&'r Decision> {
    let newest_first = reader.live(entry.seq).rev();
    let since = newest_first.take_while(|it| !matches!(it.edit.change, Change::Expand { text: None, .. }));
    let reduces = |change: &Change| matches!(change, Change::Hide(_) | Change::Omit(_) | Change::Replace { .. });
    since.filter(|it| reduces(&it.edit.change)).collect()
}

/// What stands in the place of an entry.
fn shortened(entry: &Counted, reader: &Reader) -> Option<Text> {
    reductions(entry, reader).into_iter().find_map(|it| match &it.edit.change {
        Change::Replace { text, .. } => Some(text.clone()),
        _ => None,
    })
}

/// An entry as one text, without what was redacted.
fn text_of(entry: &Counted) -> Text {
    let texts = entry.shown().iter().filter_map(|part| match part {
        Part::Text { text } => Some(text.clone()),
        Part::Result(result) => Some(result_text(result)),
        Part::Image(_) => Some("[image]".into()),
        _ => None,
    });
    texts.collect::<Vec<_>>().join("\n").into()
}

/// Returns the line that is logged before a call if something was shortened or removed.
pub fn pruning_line(events: &[Event], turn: Turn) -> Option<String> {
    let of = |kind| events.iter().filter(move |event| event.turn == turn && event.kind == kind);
    let (compacted, removed) = (of(EventKind::Compacted).count(), of(EventKind::Removed).count());
    let saved: Tokens = of(EventKind::Compacted).map(Event::saved).sum();
    let line =
        format!("[Turn {}] Message pruning: {compacted} compacted (saved ~{saved} tokens), {removed} removed", turn.0);
    (compacted + removed > 0).then_some(line)
}

/// Returns the line that is logged when a message is expanded.
pub fn expanded_line(turn: Turn, index: usize) -> String {
    format!("[Turn {}] Expanded message at index {index}", turn.0)
}

/// Returns what a host may tell the model when a message was expanded.
pub fn expanded_notice(index: usize) -> String {
    format!("[Expanded message {index} to full content at agent's request]")
}
