//! Decisions: listed, taken back, made by hand.

use super::asked::{Asked, json, limited};
use super::pages::usual_call;
use super::problem::Problem;
use super::settings::{PolicyGiven, SettingsGiven};
use crate::codes::Code;
use axum::response::Response;
use recto::edit::{Decision, Handle};
use recto::entry::Text;
use recto::expand::{Ask, Range, What};
use recto::wire::Wire;
use recto::{Seq, Span, Tokens};
use recto_engine::{ConversationId, Give, ReaderName, Store};

/// How many decisions one page holds.
const DECISIONS_USUAL: usize = 200;
const DECISIONS_MAX: usize = 1_000;

given! {
    /// Which decisions.
    struct DecisionsGiven {
        /// Only those after this one.
        after: Option<u64>,
        /// At most so many: 200, up to 1000.
        limit: Option<u64>,
    }
}

told! {
    /// What was decided.
    struct DecisionsTold {
        /// The conversation.
        conversation: ConversationId,
        /// Whose pages they are about.
        reader: ReaderName,
        /// The decisions, in order.
        decisions: Vec<Decision>,
        /// Where to go on, if there are more.
        next: Option<u64>,
    }
}

told! {
    /// A decision that was taken back.
    struct Reverted {
        /// The conversation.
        conversation: ConversationId,
        /// Whose page it was about.
        reader: ReaderName,
        /// Its number.
        reverted: u64,
    }
}

given! {
    /// A stretch of entries.
    struct PinGiven {
        /// The first.
        first: Seq,
        /// The last.
        last: Seq,
    }
}

told! {
    /// Entries that are never reduced from now on.
    struct Pinned {
        /// The conversation.
        conversation: ConversationId,
        /// For whom.
        reader: ReaderName,
        /// The first.
        first: Seq,
        /// The last.
        last: Seq,
        /// That they are.
        pinned: bool,
    }
}

told! {
    /// Pins that were taken back.
    struct Unpinned {
        /// The conversation.
        conversation: ConversationId,
        /// For whom.
        reader: ReaderName,
        /// The first entry.
        first: Seq,
        /// The last entry.
        last: Seq,
        /// How many pins there were.
        removed: usize,
    }
}

given! {
    /// What is asked back.
    struct ExpandGiven {
        /// Its handle, such as `m42` or `m42.1`.
        handle: Option<String>,
        /// Instead of a handle: the index of its message on the page of the newest call, from 0.
        message_index as "messageIndex": Option<usize>,
        /// Only these lines, from 1, both ends included.
        lines: Option<[usize; 2]>,
        /// Only these items of a JSON array, from 0, both ends included.
        items: Option<[usize; 2]>,
        /// Only lines that hold this, and a few around them.
        search: Option<Text>,
        /// Why, in words of your own.
        reason: Option<String>,
        /// Whether it is to stand on the next pages again.
        in_place: Option<bool>,
        /// A policy by its name, or as data.
        policy: Option<PolicyGiven>,
        /// The model.
        model: Option<String>,
        /// The format it is spoken to in.
        wire: Option<Wire>,
        /// Its window in tokens; 0 is without end.
        window: Option<Tokens>,
        /// How many tokens stay free for the answer.
        reserve: Option<Tokens>,
    }
}

told! {
    /// What was asked back.
    struct Expanded {
        /// Its handle.
        handle: String,
        /// What it says.
        text: Text,
        /// Whether the next pages show it.
        in_place: bool,
        /// What it costs on the page now.
        tokens_before: Tokens,
        /// What it costs if it is shown.
        tokens_after: Tokens,
    }
}

/// Lists decisions.
pub(super) async fn list<S: Store>(asked: &Asked<S>) -> Result<Response, Problem> {
    let DecisionsGiven { after, limit } = asked.query()?;
    let limit = limited(limit, DECISIONS_USUAL, DECISIONS_MAX)?;
    let ((at, _), reader) = (asked.conversation().await?, asked.reader()?);
    // One that was taken back says so wherever that stands, so all are read.
    let mut decisions = asked.engine().decisions(&at, &reader).await?;
    decisions.retain(|it| after.is_none_or(|after| it.ordinal > after));
    let more = decisions.len() > limit;
    decisions.truncate(limit);
    let next = decisions.last().filter(|_| more).map(|it| it.ordinal);
    json(&DecisionsTold { conversation: at.conversation, reader, decisions, next })
}

/// Takes a decision back.
pub(super) async fn revert<S: Store>(asked: &Asked<S>) -> Result<Response, Problem> {
    let ordinal = asked.number("ordinal")?;
    let ((at, _), reader) = (asked.conversation().await?, asked.reader()?);
    asked.engine().revert(&at, &reader, ordinal).await?;
    json(&Reverted { conversation: at.conversation, reader, reverted: ordinal })
}

/// Pins entries.
pub(super) async fn pin<S: Store>(asked: &Asked<S>) -> Result<Response, Problem> {
    let PinGiven { first, last } = asked.body()?;
    let ((at, _), reader) = (asked.conversation().await?, asked.reader()?);
    asked.engine().pin(&at, &reader, Span { first, last }).await?;
    json(&Pinned { conversation: at.conversation, reader, first, last, pinned: true })
}

/// Takes pins back.
pub(super) async fn unpin<S: Store>(asked: &Asked<S>) -> Result<Response, Problem> {
    let PinGiven { first, last } = asked.query()?;
    let ((at, _), reader) = (asked.conversation().await?, asked.reader()?);
    let removed = asked.engine().unpin(&at, &reader, Span { first, last }).await?;
    json(&Unpinned { conversation: at.conversation, reader, first, last, removed })
}

/// Gives back what the next page would not show.
pub(super) async fn expand<S: Store>(asked: &Asked<S>) -> Result<Response, Problem> {
    json(&expanded(asked, &asked.body()?).await?)
}

/// Returns what the next page would not show.
pub(super) async fn expanded<S: Store>(asked: &Asked<S>, given: &ExpandGiven) -> Result<Expanded, Problem> {
    let ask = given.ask()?;
    let ((at, conversation), reader) = (asked.conversation().await?, asked.reader()?);
    let ExpandGiven { policy, model, wire, window, reserve, in_place, .. } = given;
    let (wire, window, reserve) = (*wire, *window, *reserve);
    let settings = SettingsGiven { policy: policy.as_ref(), model: model.as_deref(), wire, window, reserve };
    let call = usual_call(reader, &conversation, settings.settled(asked)?);
    let in_place = *in_place == Some(true);
    let give = if in_place { Give::InPlace } else { Give::AsText };
    let expansion = asked.engine().expand(&at, &call, &ask, give).await?;
    let expansion = expansion
        .map_err(|refusal| Problem::of(Code::Refused, refusal.to_string()).with("refusal", &refusal.code()))?;
    Ok(Expanded {
        handle: expansion.handle.to_string(),
        text: expansion.text,
        in_place: in_place && expansion.is_in_place,
        tokens_before: expansion.tokens_before,
        tokens_after: expansion.tokens_after,
    })
}

impl ExpandGiven {
    fn ask(&self) -> Result<Ask, Problem> {
        let what = match (&self.handle, self.message_index) {
            (Some(handle), None) => {
                let no_handle = || Problem::bad(format!("handle: {handle:?} is none; one is such as m42 or m42.1"));
                What::Handle(Handle::parse(handle).ok_or_else(no_handle)?)
            }
            (None, Some(index)) => What::Index(index),
            (Some(_), Some(_)) => return Err(Problem::bad("only one of `handle` and `messageIndex`")),
            (None, None) => return Err(Problem::bad("no message is named: give its `handle` or its `messageIndex`")),
        };
        let range = match (self.lines, self.items, &self.search) {
            (None, None, None) => Range::Whole,
            (Some([first, last]), None, None) => Range::Lines(first..=last),
            (None, Some([first, last]), None) => Range::Items(first..=last),
            (None, None, Some(text)) => Range::Search(text.clone()),
            _ => return Err(Problem::bad("only one of `lines`, `items` and `search`")),
        };
        Ok(Ask { what, range, reason: self.reason.as_deref().map(Into::into), calls: None })
    }
}
