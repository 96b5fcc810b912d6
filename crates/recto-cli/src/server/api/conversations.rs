//! Conversations: listed, made, described, forked, erased.

use super::asked::{Asked, checked_name, json, limited, made};
use super::problem::Problem;
use crate::entries;
use crate::table;
use axum::response::Response;
use recto::entry::{Millis, Text};
use recto::{Role, Seq, Tokenizer, Tokens};
use recto_engine::engine::Opening;
use recto_engine::store::{ForkPoint, ReaderRow};
use recto_engine::{At, ConversationId, Error, Forks, ReaderName, Store};
use serde_json::{Map, Value};

/// How many conversations one page holds.
const LIST_USUAL: usize = 50;
const LIST_MAX: usize = 200;
/// How many are looked through for one page, and how many are read at once.
pub(super) const LOOKED_AT_MAX: usize = 10_000;
pub(super) const LOOKED_AT_ONCE: usize = 1_000;
/// How many readers of a conversation are told in full.
const READERS_MAX: usize = 100;
/// How many entries are looked at for what the user said first, and how much of it is told.
const FIRST_ENTRIES: usize = 8;
const TITLE_WIDTH_MAX: usize = 60;
/// The longest title, in bytes.
const TITLE_BYTES_MAX: usize = 1_000;
/// How much chance is in a name that nobody gave.
const NAME_BYTES: usize = 12;

words! {
    /// The order of conversations.
    enum ListOrder {
        /// What was written to last comes first.
        #[default]
        Updated = "updated",
        /// By name.
        Name = "name",
    }
}

given! {
    /// Which conversations.
    struct ListGiven {
        /// Only those with this in their name or title, in any case.
        search: Option<String>,
        /// Only those whose names begin so.
        prefix: Option<String>,
        /// `updated`: newest first; or `name`.
        order: Option<ListOrder>,
        /// Only those that come after this one: the `next` of the page before.
        after: Option<String>,
        /// At most so many: 50, up to 200.
        limit: Option<u64>,
    }
}

told! {
    /// Conversations.
    struct Listed {
        /// The conversations.
        conversations: Vec<Listing>,
        /// Where to go on, if there are more.
        next: Option<String>,
        /// Whether all conversations were looked at.
        is_complete: bool,
    }
}

told! {
    /// A conversation, in short.
    struct Listing {
        /// Its name.
        conversation: ConversationId,
        /// What a person calls it, else the first words that the user said.
        title: String,
        /// How many entries it has.
        entries: u64,
        /// What they cost together.
        tokens: Tokens,
        /// Its newest entry.
        head: Option<Seq>,
        /// What counts its entries.
        tokenizer: String,
        /// When it was made.
        created: Millis,
        /// When something was last written.
        updated: Millis,
        /// Where it goes on from, if it is a fork.
        from: Option<ForkPoint>,
        /// Rises with everything that is written to it.
        version: u64,
        /// Who reads it.
        readers: Vec<ReaderTold>,
    }
}

told! {
    /// A conversation.
    struct Conversation {
        /// Its name.
        conversation: ConversationId,
        /// What a person calls it, else the first words that the user said.
        title: String,
        /// How many entries it has.
        entries: u64,
        /// What they cost together.
        tokens: Tokens,
        /// Its newest entry.
        head: Option<Seq>,
        /// What counts its entries.
        tokenizer: String,
        /// When it was made.
        created: Millis,
        /// When something was last written.
        updated: Millis,
        /// Where it goes on from, if it is a fork.
        from: Option<ForkPoint>,
        /// Rises with everything that is written to it.
        version: u64,
        /// Who reads it.
        readers: Vec<ReaderTold>,
        /// The host's own data.
        meta: Map<String, Value>,
    }
}

told! {
    /// A reader.
    struct ReaderTold {
        /// Its name.
        reader: ReaderName,
        /// How many calls were acknowledged.
        turns: u64,
        /// The number of its newest decision or revert.
        decisions: u64,
        /// From where on events tell what is new.
        mark: String,
        /// Its newest call.
        last: Option<LastTold>,
    }
}

told! {
    /// A call, in short.
    struct LastTold {
        /// Its number.
        turn: u64,
        /// When it was acknowledged.
        at: Millis,
        /// What its input cost, in tokens.
        tokens: Tokens,
        /// How many of them the provider's cache was expected to hold.
        cached: Tokens,
        /// What it cost in US dollars.
        usd: f64,
        /// How many tokens less it had than all that was said.
        less: Tokens,
        /// What was saved up to it in US dollars.
        usd_so_far: Option<f64>,
    }
}

told! {
    /// The readers of a conversation.
    struct ReadersTold {
        /// The conversation.
        conversation: ConversationId,
        /// Its readers, by name; the first hundred.
        readers: Vec<ReaderTold>,
    }
}

given! {
    /// A conversation that is to be made.
    struct NewGiven {
        /// Its name; left out, it gets one.
        conversation: Option<String>,
        /// What a person calls it.
        title: Option<String>,
        /// The host's own data.
        meta: Option<Map<String, Value>>,
        /// What counts its entries.
        tokenizer: Option<Tokenizer>,
    }
}

given! {
    /// What is said anew of a conversation; what is left out stays.
    struct DescriptionGiven {
        /// What a person calls it.
        title: Option<String>,
        /// The host's own data.
        meta: Option<Map<String, Value>>,
    }
}

given! {
    /// How a conversation is erased.
    struct ErasingGiven {
        /// Whether those that go on from it are erased, too.
        with_forks: Option<bool>,
    }
}

given! {
    /// A fork.
    struct ForkGiven {
        /// The name of the new conversation.
        conversation: String,
        /// The last entry that both have; left out, it is the newest.
        upto: Option<Seq>,
    }
}

told! {
    /// A fork that was made.
    struct Forked {
        /// The new conversation.
        conversation: ConversationId,
        /// The one it goes on from.
        from: ConversationId,
        /// The last entry that both have.
        upto: Option<Seq>,
        /// How many entries it has.
        entries: u64,
    }
}

/// Lists conversations.
pub(super) async fn list<S: Store>(asked: &Asked<S>) -> Result<Response, Problem> {
    json(&listed(asked, asked.query()?).await?)
}

/// Returns conversations.
pub(super) async fn listed<S: Store>(asked: &Asked<S>, given: ListGiven) -> Result<Listed, Problem> {
    let ListGiven { search, prefix, order, after, limit } = given;
    let limit = limited(limit, LIST_USUAL, LIST_MAX)?;
    let order = order.unwrap_or_default();
    let search = search.map(|it| it.to_lowercase());
    let is_wanted = |it: &recto_engine::Conversation| {
        let name = it.id.as_str();
        let holds = |it: &str| search.as_deref().is_none_or(|search| it.to_lowercase().contains(search));
        prefix.as_deref().is_none_or(|prefix| name.starts_with(prefix)) && (holds(name) || holds(&it.title))
    };
    let (mut found, is_complete, reached) = match order {
        ListOrder::Name => looked_through(asked, after.as_deref(), limit + 1, is_wanted).await?,
        ListOrder::Updated => {
            let (mut all, is_complete, _) = looked_through(asked, None, usize::MAX, is_wanted).await?;
            all.sort_by(|one, other| other.updated.cmp(&one.updated).then_with(|| one.id.cmp(&other.id)));
            if let Some(after) = &after {
                let (updated, name) = newest_mark(after)?;
                all.retain(|it| it.updated < updated || it.updated == updated && it.id.as_str() > name);
            }
            (all, is_complete, None)
        }
    };
    let more = found.len() > limit;
    found.truncate(limit);
    let last = found.last().filter(|_| more).map(|it| match order {
        ListOrder::Name => it.id.to_string(),
        ListOrder::Updated => mark(it.updated, &it.id),
    });
    // Where not all were looked at, the next page goes on where this one stopped.
    let next = last.or(reached.filter(|_| !is_complete));
    let mut conversations = Vec::with_capacity(found.len());
    for row in &found {
        conversations.extend(Error::unless_gone(listing(asked, row).await)?);
    }
    Ok(Listed { conversations, next, is_complete })
}

/// Returns conversations in the order of their names, whether all were looked at, and the last that was.
async fn looked_through<S: Store>(
    asked: &Asked<S>,
    after: Option<&str>,
    rows: usize,
    is_wanted: impl Fn(&recto_engine::Conversation) -> bool,
) -> Result<(Vec<recto_engine::Conversation>, bool, Option<String>), Problem> {
    let (mut found, mut after) = (Vec::new(), after.map(ConversationId::from));
    for _ in 0..LOOKED_AT_MAX / LOOKED_AT_ONCE {
        let page = asked.engine().list(&asked.caller.tenant, after.as_ref(), LOOKED_AT_ONCE).await?;
        let Some(last) = page.last() else { return Ok((found, true, None)) };
        let is_last = page.len() < LOOKED_AT_ONCE;
        after = Some(last.id.clone());
        found.extend(page.into_iter().filter(&is_wanted));
        if is_last || found.len() >= rows {
            return Ok((found, true, None));
        }
    }
    Ok((found, false, after.map(|id| id.to_string())))
}

/// Returns what a page begins after, of those that begin with what was written to last.
pub(super) fn mark(updated: Millis, name: &ConversationId) -> String {
    format!("{}.{name}", updated.0)
}

fn newest_mark(after: &str) -> Result<(Millis, &str), Problem> {
    let (updated, name) = after.split_once('.').ok_or_else(|| Problem::bad("after: not the `next` of a page"))?;
    let updated = updated.parse().map_err(|_| Problem::bad("after: not the `next` of a page"))?;
    Ok((Millis(updated), name))
}

/// Makes a conversation.
pub(super) async fn create<S: Store>(asked: &Asked<S>) -> Result<Response, Problem> {
    let NewGiven { conversation, title, meta, tokenizer } = asked.body()?;
    let name = conversation.map_or_else(new_name, Ok)?;
    let at = At::new(&asked.caller.tenant, checked_name("conversation", &name)?);
    let opening =
        Opening { title: checked_title(title)?.unwrap_or_default(), meta: meta.unwrap_or_default(), tokenizer };
    let row = asked.engine().open(&at, opening).await?;
    // It is new, so there is nothing more to read; and somebody may erase it at once.
    made(&whole(bare(&row), &row), &name)
}

/// Returns a conversation.
pub(super) async fn get<S: Store>(asked: &Asked<S>) -> Result<Response, Problem> {
    let (_, row) = asked.conversation().await?;
    json(&whole(listing(asked, &row).await?, &row))
}

/// Says anew what a conversation is called.
pub(super) async fn describe<S: Store>(asked: &Asked<S>) -> Result<Response, Problem> {
    let DescriptionGiven { title, meta } = asked.body()?;
    let (at, row) = asked.conversation().await?;
    let title = checked_title(title)?.unwrap_or_else(|| row.title.to_string());
    let meta = meta.unwrap_or_else(|| meta_of(&row.meta));
    asked.engine().describe(&at, &title, meta).await?;
    let (_, row) = asked.conversation().await?;
    json(&whole(listing(asked, &row).await?, &row))
}

/// Erases a conversation.
pub(super) async fn erase<S: Store>(asked: &Asked<S>) -> Result<Response, Problem> {
    let ErasingGiven { with_forks } = asked.query()?;
    let (at, _) = asked.conversation().await?;
    let forks = if with_forks == Some(true) { Forks::Erase } else { Forks::Refuse };
    json(&asked.engine().erase(&at, forks).await?)
}

/// Forks a conversation.
pub(super) async fn fork<S: Store>(asked: &Asked<S>) -> Result<Response, Problem> {
    let ForkGiven { conversation: new, upto } = asked.body()?;
    let (at, _) = asked.conversation().await?;
    let row = asked.engine().fork(&at, checked_name("conversation", &new)?, upto).await?;
    let (upto, entries) = (row.from.and_then(|from| from.upto), row.tally.sums().entries);
    made(&Forked { conversation: row.id, from: at.conversation, upto, entries }, &new)
}

/// Lists readers.
pub(super) async fn readers<S: Store>(asked: &Asked<S>) -> Result<Response, Problem> {
    let (at, row) = asked.conversation().await?;
    json(&ReadersTold { readers: readers_of(asked, &at, row.tally.head()).await?, conversation: at.conversation })
}

fn whole(listing: Listing, row: &recto_engine::Conversation) -> Conversation {
    let Listing { conversation, title, entries, tokens, head, tokenizer, created, updated, from, version, readers } =
        listing;
    Conversation {
        conversation,
        title,
        entries,
        tokens,
        head,
        tokenizer,
        created,
        updated,
        from,
        version,
        readers,
        meta: meta_of(&row.meta),
    }
}

async fn listing<S: Store>(asked: &Asked<S>, row: &recto_engine::Conversation) -> Result<Listing, Error> {
    let at = At { tenant: asked.caller.tenant.clone(), conversation: row.id.clone() };
    let title = match row.title.trim() {
        // Words of entries are never kept as a title: they would outlive the entry when that is erased.
        "" => first_words(asked, &at).await?,
        title => title.into(),
    };
    let readers = readers_of(asked, &at, row.tally.head()).await?;
    Ok(Listing { title, readers, ..bare(row) })
}

/// What a conversation's own row tells.
fn bare(row: &recto_engine::Conversation) -> Listing {
    let sums = row.tally.sums();
    Listing {
        conversation: row.id.clone(),
        title: row.title.trim().into(),
        entries: sums.entries,
        tokens: sums.tokens,
        head: row.tally.head(),
        tokenizer: row.tokenizer.to_string(),
        created: row.created,
        updated: row.updated,
        from: row.from.clone(),
        version: row.version,
        readers: Vec::new(),
    }
}

async fn first_words<S: Store>(asked: &Asked<S>, at: &At) -> Result<String, Error> {
    let first = asked.engine().read(at, Seq(0), FIRST_ENTRIES).await?;
    let said = first.iter().find(|entry| entry.role() == Role::User).or(first.first());
    Ok(said.map_or(String::new(), |entry| table::cut(&entries::line_of(entry.shown()), TITLE_WIDTH_MAX)))
}

async fn readers_of<S: Store>(asked: &Asked<S>, at: &At, head: Option<Seq>) -> Result<Vec<ReaderTold>, Error> {
    let mut told = Vec::new();
    for (reader, ReaderRow { turns, ordinal }) in asked.engine().readers(at).await?.into_iter().take(READERS_MAX) {
        let last = match turns.checked_sub(1) {
            Some(last) => asked.engine().turns(at, &reader, last, 1).await?.into_iter().next(),
            None => None,
        };
        let last = last.map(|it| LastTold {
            turn: it.turn,
            at: it.at,
            tokens: it.totals.tokens,
            cached: it.totals.cached,
            usd: it.totals.usd,
            less: it.ticket.less,
            usd_so_far: it.totals.usd_so_far,
        });
        let next = head.map_or(0, |head| head.next().0);
        told.push(ReaderTold { reader, turns, decisions: ordinal, mark: format!("{ordinal}.{turns}.{next}"), last });
    }
    Ok(told)
}

fn meta_of(meta: &Text) -> Map<String, Value> {
    serde_json::from_str(meta).unwrap_or_default()
}

fn checked_title(title: Option<String>) -> Result<Option<String>, Problem> {
    match title {
        Some(title) if title.len() > TITLE_BYTES_MAX => {
            Err(Problem::of(crate::codes::Code::TooMuch, format!("a title of more than {TITLE_BYTES_MAX} bytes")))
        }
        title => Ok(title),
    }
}

fn new_name() -> Result<String, Problem> {
    let mut bytes = [0; NAME_BYTES];
    getrandom::fill(&mut bytes).map_err(|error| Problem::of(crate::codes::Code::StoreFailed, error.to_string()))?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}
