//! What was said about something, found by its words: in a conversation, or in all.

use super::asked::{Asked, json, limited};
use super::problem::Problem;
use crate::codes::Code;
use axum::response::Response;
use recto::entry::{Millis, Text};
use recto::recall::Query;
use recto::{Role, Seq, Tokens};
use recto_engine::engine::Searched;
use recto_engine::{At, ConversationId, Error, Store};

/// The longest question, in bytes.
const WORDS_BYTES_MAX: usize = 4_096;
/// How many tokens are told of a conversation.
const BUDGET_USUAL: Tokens = Tokens(300);
const BUDGET_MAX: Tokens = Tokens(16_000);
/// In how many conversations something is found for one answer.
const PLACES_USUAL: usize = 20;
const PLACES_MAX: usize = 100;
/// How many conversations are searched for one answer.
const SEARCHED_MAX: usize = 200;

given! {
    /// What is looked for in a conversation.
    struct SearchGiven {
        /// A question, a few words, a name.
        words: String,
        /// At most so many tokens: 300, up to 16000.
        budget: Option<Tokens>,
    }
}

given! {
    /// What is looked for in all conversations.
    struct SearchAllGiven {
        /// A question, a few words, a name.
        words: String,
        /// At most so many tokens of each conversation: 300, up to 16000.
        budget: Option<Tokens>,
        /// Only conversations whose names come after this one: the `next` of the page before.
        after: Option<String>,
        /// Of at most so many conversations: 20, up to 100.
        limit: Option<u64>,
    }
}

told! {
    /// What was found.
    struct SearchTold {
        /// Conversations by name, and what was found in each in the order in which it was said.
        found: Vec<Stretch>,
        /// Where to go on, if there are conversations that were not searched.
        next: Option<ConversationId>,
        /// How many of the words stand at more places than were looked at.
        cut: usize,
        /// How many entries can't be found yet.
        behind: u64,
    }
}

told! {
    /// A stretch of an entry.
    struct Stretch {
        /// The conversation.
        conversation: ConversationId,
        /// The entry.
        seq: Seq,
        /// Who said it.
        role: Role,
        /// Which agent or person.
        author: Option<Text>,
        /// When.
        at: Option<Millis>,
        /// What it says.
        text: String,
    }
}

/// Searches a conversation.
pub(super) async fn within<S: Store>(asked: &Asked<S>) -> Result<Response, Problem> {
    json(&found(asked, asked.query()?).await?)
}

/// Searches all conversations.
pub(super) async fn everywhere<S: Store>(asked: &Asked<S>) -> Result<Response, Problem> {
    json(&found_everywhere(asked, asked.query()?).await?)
}

/// Returns what a conversation says about something.
pub(super) async fn found<S: Store>(asked: &Asked<S>, given: SearchGiven) -> Result<SearchTold, Problem> {
    let (query, budget) = checked(given.words, given.budget)?;
    let (at, _) = asked.conversation().await?;
    let mut told = SearchTold { found: Vec::new(), next: None, cut: 0, behind: 0 };
    told.add(&at.conversation, asked.engine().search(&at, &query, budget).await?);
    Ok(told)
}

/// Returns what conversations say about something, in the order of their names.
pub(super) async fn found_everywhere<S: Store>(asked: &Asked<S>, given: SearchAllGiven) -> Result<SearchTold, Problem> {
    let (query, budget) = checked(given.words, given.budget)?;
    let limit = limited(given.limit, PLACES_USUAL, PLACES_MAX)?;
    let after = given.after.map(|after| ConversationId::from(after.as_str()));
    // One more than is searched says whether there are more.
    let mut rows = asked.engine().list(&asked.caller.tenant, after.as_ref(), SEARCHED_MAX + 1).await?;
    let is_cut = rows.len() > SEARCHED_MAX;
    rows.truncate(SEARCHED_MAX);
    let last = rows.last().map(|row| row.id.clone());
    let mut told = SearchTold { found: Vec::new(), next: last.clone().filter(|_| is_cut), cut: 0, behind: 0 };
    let mut places = 0;
    for row in rows {
        let at = At { tenant: asked.caller.tenant.clone(), conversation: row.id };
        let Some(searched) = Error::unless_gone(asked.engine().search(&at, &query, budget).await)? else { continue };
        places += usize::from(!searched.hits.is_empty());
        told.add(&at.conversation, searched);
        if places == limit {
            let is_last = last.as_ref() == Some(&at.conversation) && !is_cut;
            told.next = (!is_last).then_some(at.conversation);
            break;
        }
    }
    Ok(told)
}

impl SearchTold {
    fn add(&mut self, conversation: &ConversationId, searched: Searched) {
        let Searched { hits, cut_terms, behind } = searched;
        self.cut = self.cut.max(cut_terms);
        self.behind = self.behind.saturating_add(behind);
        self.found.extend(hits.into_iter().map(|hit| Stretch {
            conversation: conversation.clone(),
            seq: hit.pick.place.seq,
            role: hit.role,
            author: hit.author,
            at: hit.at,
            text: hit.text,
        }));
    }
}

fn checked(words: String, budget: Option<Tokens>) -> Result<(Query, Tokens), Problem> {
    if words.trim().is_empty() {
        return Err(Problem::bad("words: there is nothing to look for"));
    }
    if words.len() > WORDS_BYTES_MAX {
        let detail = format!("words: {} bytes, at most {WORDS_BYTES_MAX}", words.len());
        return Err(Problem::of(Code::TooMuch, detail));
    }
    match budget.unwrap_or(BUDGET_USUAL) {
        budget if budget == Tokens(0) || budget > BUDGET_MAX => {
            Err(Problem::bad(format!("budget: 1 to {} tokens", BUDGET_MAX.0)))
        }
        budget => Ok((Query::saying(words), budget)),
    }
}
