//! What providers that remember hold of a conversation, and what models have made of it.

use super::asked::{Asked, json};
use super::pages::usual_call;
use super::problem::Problem;
use super::settings::{PolicyGiven, SettingsGiven};
use axum::response::Response;
use recto::edit::Reason;
use recto::entry::{Millis, Text};
use recto::note::Want;
use recto::session::Lost;
use recto::wire::Wire;
use recto::{Seq, Tokens};
use recto_engine::summarize::Noted;
use recto_engine::{At, ConversationId, ReaderName, Store};

/// The most that is told of each: sessions, stale entries of one, notes, wants.
const TOLD_MAX: usize = 1_000;

told! {
    /// What providers that remember hold.
    struct SessionsTold {
        /// The conversation.
        conversation: ConversationId,
        /// Their sessions.
        sessions: Vec<SessionTold>,
    }
}

told! {
    /// What a provider holds for a reader.
    struct SessionTold {
        /// The provider.
        provider: Text,
        /// The reader.
        reader: ReaderName,
        /// What the provider calls it.
        id: Option<Text>,
        /// What it belongs to.
        workspace: Text,
        /// The last entry up to which it has everything.
        acked: Option<Seq>,
        /// The newest entry of the conversation.
        head: Option<Seq>,
        /// The call that told it everything.
        seeded: Option<u64>,
        /// Why it holds nothing any more.
        lost: Option<Lost>,
        /// The call that was sent and not acknowledged.
        sent: Option<SentTold>,
        /// What it reads in full though it was decided shorter, as the newest call to it found that; told if that is among the
        /// reader's newest thousand.
        stale: Vec<StaleTold>,
    }
}

told! {
    /// A call that was sent and not acknowledged.
    struct SentTold {
        /// When its page was made.
        since: Millis,
        /// When it is over at the latest.
        until: Millis,
        /// Whether it is known to have come to nothing.
        is_over: bool,
    }
}

told! {
    /// Entries that a provider reads in full though they were decided shorter.
    struct StaleTold {
        /// The first.
        first: Seq,
        /// The last.
        last: Seq,
        /// How much more than the page would show it reads.
        tokens: Tokens,
    }
}

told! {
    /// Summaries that models made.
    struct NotesTold {
        /// The conversation.
        conversation: ConversationId,
        /// The notes; at most a thousand.
        notes: Vec<Noted>,
    }
}

given! {
    /// Under which settings.
    struct WantsGiven {
        /// A policy by its name.
        policy: Option<String>,
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
    /// Summaries that would help the next page.
    struct WantsTold {
        /// The conversation.
        conversation: ConversationId,
        /// Whose page.
        reader: ReaderName,
        /// The wants; at most a thousand.
        wants: Vec<Want>,
    }
}

/// Tells what providers hold.
pub(super) async fn sessions<S: Store>(asked: &Asked<S>) -> Result<Response, Problem> {
    let (at, row) = asked.conversation().await?;
    let mut sessions = Vec::new();
    for (provider, reader, held) in asked.engine().sessions(&at).await?.into_iter().take(TOLD_MAX) {
        let session = &held.session;
        sessions.push(SessionTold {
            stale: stale(asked, &at, &reader, &provider).await?,
            provider,
            reader,
            id: held.id.clone(),
            workspace: held.workspace.clone(),
            acked: session.acked(),
            head: row.tally.head(),
            seeded: session.seeded().map(|turn| turn.0),
            lost: session.lost(),
            sent: held.sent.as_ref().map(|it| SentTold { since: it.since, until: it.until, is_over: it.is_over }),
        });
    }
    json(&SessionsTold { conversation: at.conversation, sessions })
}

/// What the newest call of a reader to a provider found that to read in full.
async fn stale<S: Store>(
    asked: &Asked<S>,
    at: &At,
    reader: &ReaderName,
    provider: &Text,
) -> Result<Vec<StaleTold>, Problem> {
    let readers = asked.engine().readers(at).await?;
    let turns = readers.into_iter().find(|(name, _)| name == reader).map_or(0, |(_, row)| row.turns);
    let newest = asked.engine().turns(at, reader, turns.saturating_sub(TOLD_MAX as u64), TOLD_MAX).await?;
    let last = newest.iter().rev().find(|call| call.provider.as_ref() == Some(provider));
    let Some(last) = last else { return Ok(Vec::new()) };
    let fates = asked.engine().again(at, reader, last.turn).await?.compiled.receipt.fates;
    let stale = fates.into_iter().filter_map(|row| match row.why {
        Reason::RemoteStale { tokens, .. } => Some(StaleTold { first: row.span.first, last: row.span.last, tokens }),
        _ => None,
    });
    Ok(stale.take(TOLD_MAX).collect())
}

/// Lists notes.
pub(super) async fn notes<S: Store>(asked: &Asked<S>) -> Result<Response, Problem> {
    let (at, _) = asked.conversation().await?;
    let mut notes = asked.engine().noted(&at).await?;
    notes.truncate(TOLD_MAX);
    json(&NotesTold { conversation: at.conversation, notes })
}

/// Lists wants.
pub(super) async fn wants<S: Store>(asked: &Asked<S>) -> Result<Response, Problem> {
    let WantsGiven { policy, model, wire, window, reserve } = asked.query()?;
    let policy = policy.as_deref().map(PolicyGiven::named);
    let ((at, conversation), reader) = (asked.conversation().await?, asked.reader()?);
    let given = SettingsGiven { policy: policy.as_ref(), model: model.as_deref(), wire, window, reserve };
    let call = usual_call(reader.clone(), &conversation, given.settled(asked)?);
    let mut wants = asked.engine().wants(&at, &call).await?;
    wants.truncate(TOLD_MAX);
    json(&WantsTold { conversation: at.conversation, reader, wants })
}
