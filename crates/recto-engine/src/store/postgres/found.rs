//! A conversation as its row tells it.

use super::fault;
use super::pool::{Db, Statement};
use super::value::{Value, maybe_text, number, shared, text, values, whole};
use crate::error::{Error, Kind};
use crate::store::sqlite::found::{place, read_tally};
use crate::store::{Conversation, ConversationId, ForkPoint, NewConversation, State, Tenant};
use recto::Seq;
use recto::entry::{Lane, Millis, Role, Section};
use recto::log::Tally;
use tokio_postgres::Row;

/// The version of a conversation that was just made.
pub(super) const FIRST_VERSION: u64 = 1;

/// Selects all that is told of conversations.
macro_rules! conversations {
    ($which:literal) => {
        concat!(
            "SELECT conversation, state, tokenizer, title, meta, parent, upto, chain, created, seq, strands, tally, \
             version, updated FROM conversation ",
            $which
        )
    };
}

pub(super) const BY_NAME: &str = conversations!("WHERE tenant = $1 AND conversation = $2");
pub(super) const BY_NAME_LOCKED: &str = conversations!("WHERE tenant = $1 AND conversation = $2 FOR UPDATE");
const LISTED: &str =
    conversations!("WHERE tenant = $1 AND conversation > $2 AND state <> 2 ORDER BY conversation LIMIT $3");
const LISTED_FIRST: &str = conversations!("WHERE tenant = $1 AND state <> 2 ORDER BY conversation LIMIT $2");

/// A conversation, and where its past is kept.
pub(super) struct Found {
    pub(super) tenant: Tenant,
    pub(super) conversation: Conversation,
    /// Itself, then the conversations that it goes on from, each with the last place that is read there.
    pub(super) chain: Vec<Link>,
}

/// A conversation whose rows are read, up to a place.
#[derive(Clone, Debug)]
pub(super) struct Link {
    pub(super) id: ConversationId,
    pub(super) upto: i64,
}

impl Found {
    /// Finds a conversation, whatever became of it.
    pub(super) async fn any(db: &Db, tenant: &Tenant, id: &ConversationId) -> Result<Found, Error> {
        Found::of(&db.rows(BY_NAME, values![tenant.as_str(), id.as_str()]).await?, tenant, id)
    }

    /// Finds a conversation that was not erased.
    pub(super) async fn live(db: &Db, tenant: &Tenant, id: &ConversationId) -> Result<Found, Error> {
        Found::any(db, tenant, id).await?.living()
    }

    /// Finds a conversation that was not erased, and keeps all others from writing to it.
    pub(super) async fn locked(db: &Db, tenant: &Tenant, id: &ConversationId) -> Result<Found, Error> {
        Found::of(&db.rows(BY_NAME_LOCKED, values![tenant.as_str(), id.as_str()]).await?, tenant, id)?.living()
    }

    /// Finds a conversation that was not erased, and asks for more without waiting in between.
    pub(super) async fn live_and(
        db: &Db,
        sql: &'static str,
        (tenant, id): (&Tenant, &ConversationId),
        more: Vec<Statement<'_>>,
    ) -> Result<(Found, Vec<Vec<Row>>), Error> {
        let mut statements = vec![Statement::new(sql, values![tenant.as_str(), id.as_str()])];
        statements.extend(more);
        let mut answers = db.all(statements).await?.into_iter();
        let found = Found::of(&answers.next().unwrap_or_default(), tenant, id)?.living()?;
        Ok((found, answers.collect()))
    }

    pub(super) fn of(rows: &[Row], tenant: &Tenant, id: &ConversationId) -> Result<Found, Error> {
        let row = rows.first().ok_or_else(|| missing(id))?;
        let conversation = conversation(row)?;
        let mut chain = alone(&conversation.id);
        chain.extend(read_chain(&text(row, 7)?)?);
        Ok(Found { tenant: tenant.clone(), conversation, chain })
    }

    fn living(self) -> Result<Found, Error> {
        match self.conversation.state {
            State::Live => Ok(self),
            State::Erasing | State::Erased => Err(Kind::Erased { conversation: self.conversation.id }.into()),
        }
    }

    /// Returns a conversation that is being made and stands on no other.
    pub(super) fn made(tenant: &Tenant, new: &NewConversation) -> Found {
        let conversation = Conversation {
            id: new.id.clone(),
            state: State::Live,
            tokenizer: new.tokenizer.clone(),
            title: new.title.clone(),
            meta: new.meta.clone(),
            from: None,
            tally: Tally::default(),
            version: FIRST_VERSION,
            created: new.at,
            updated: new.at,
        };
        Found { tenant: tenant.clone(), chain: alone(&new.id), conversation }
    }

    /// Lists those that were not erased.
    pub(super) async fn list(
        db: &Db,
        tenant: &Tenant,
        after: Option<&ConversationId>,
        rows: usize,
    ) -> Result<Vec<Conversation>, Error> {
        let listed = match after {
            Some(after) => db.rows(LISTED, values![tenant.as_str(), after.as_str(), rows]).await?,
            None => db.rows(LISTED_FIRST, values![tenant.as_str(), rows]).await?,
        };
        listed.iter().map(conversation).collect()
    }

    pub(super) fn id(&self) -> &ConversationId {
        &self.conversation.id
    }

    /// Returns the version that the next write makes.
    pub(super) fn next_version(&self) -> i64 {
        crate::store::sqlite::found::integer(self.conversation.version + 1)
    }

    /// Begins the values of a statement about its own rows.
    pub(super) fn key(&self) -> Vec<Value<'_>> {
        values![self.tenant.as_str(), self.id().as_str()]
    }

    /// Begins the values of a statement about the rows of one conversation of its chain.
    pub(super) fn key_of<'f>(&'f self, link: &'f Link) -> Vec<Value<'f>> {
        values![self.tenant.as_str(), link.id.as_str()]
    }

    /// Returns a tally as a row spells it.
    pub(super) fn tally(&self, text: &str, seq: i64) -> Result<Tally, Error> {
        let strands = self.conversation.tally.strands();
        read_tally(text, seq, |at| strands.get(at).map(|it| (it.section.clone(), it.lane, it.role, it.first)))
    }
}

/// Joins the beginning of a statement's values with the rest.
pub(super) fn with<'v>(mut key: Vec<Value<'v>>, more: Vec<Value<'v>>) -> Vec<Value<'v>> {
    key.extend(more);
    key
}

fn conversation(row: &Row) -> Result<Conversation, Error> {
    let id = ConversationId::from(shared(row, 0)?);
    let state = state(number(row, 1)?, &id)?;
    let upto = place(number(row, 6)?);
    let from = maybe_text(row, 5)?.map(|parent| ForkPoint { conversation: parent.into(), upto });
    let tally = Strands::read(&text(row, 10)?, &id)?.tally(&text(row, 11)?, number(row, 9)?)?;
    Ok(Conversation {
        id,
        state,
        tokenizer: shared(row, 2)?,
        title: shared(row, 3)?,
        meta: shared(row, 4)?,
        from,
        tally,
        version: whole(row, 12)?,
        created: Millis(number(row, 8)?),
        updated: Millis(number(row, 13)?),
    })
}

fn state(number: i64, id: &ConversationId) -> Result<State, Error> {
    match number {
        0 => Ok(State::Live),
        1 => Ok(State::Erasing),
        2 => Ok(State::Erased),
        other => Err(fault::corrupt(format!("conversation {:?} has state {other}", id.as_str()))),
    }
}

fn missing(id: &ConversationId) -> Error {
    Kind::NotFound { what: format!("conversation {:?}", id.as_str()) }.into()
}

/// What the strands of a conversation are, in the order in which they began.
pub(super) struct Strands(Vec<(Section, Lane, Role, Seq)>);

impl Strands {
    fn read(names: &str, id: &ConversationId) -> Result<Strands, Error> {
        let names = if names.is_empty() { "[]" } else { names };
        let wrong = |error| fault::corrupt(format!("the strands of conversation {:?}: {error}", id.as_str()));
        Ok(Strands(serde_json::from_str(names).map_err(wrong)?))
    }

    /// Returns a tally as a row spells it.
    pub(super) fn tally(&self, text: &str, seq: i64) -> Result<Tally, Error> {
        read_tally(text, seq, |at| self.0.get(at).cloned())
    }
}

/// As much of a conversation that was not erased as it takes to read its own entries.
pub(super) struct Sketch {
    pub(super) strands: Strands,
    /// Whether it goes on from no other.
    pub(super) is_alone: bool,
}

impl Sketch {
    /// Reads it from the columns with the conversation's state, strands and chain.
    pub(super) fn of(row: Option<&Row>, columns: [usize; 3], id: &ConversationId) -> Result<Sketch, Error> {
        let row = row.ok_or_else(|| missing(id))?;
        let [told, strands, chain] = columns;
        if state(number(row, told)?, id)? != State::Live {
            return Err(Kind::Erased { conversation: id.clone() }.into());
        }
        Ok(Sketch { strands: Strands::read(&text(row, strands)?, id)?, is_alone: text(row, chain)?.is_empty() })
    }
}

/// Returns a conversation that shares no rows of others.
fn alone(id: &ConversationId) -> Vec<Link> {
    vec![Link { id: id.clone(), upto: i64::MAX }]
}

/// Spells the conversations that one goes on from. None of them can be erased before it, so they are told once.
pub(super) fn write_chain(links: &[Link]) -> Result<String, Error> {
    if links.is_empty() {
        return Ok(String::new());
    }
    let links: Vec<(&ConversationId, i64)> = links.iter().map(|link| (&link.id, link.upto)).collect();
    serde_json::to_string(&links).map_err(|error| Kind::Defect { what: format!("a chain: {error}") }.into())
}

/// Reads the conversations that one goes on from.
pub(super) fn read_chain(text: &str) -> Result<Vec<Link>, Error> {
    if text.is_empty() {
        return Ok(Vec::new());
    }
    let links: Vec<(ConversationId, i64)> =
        serde_json::from_str(text).map_err(|error| fault::corrupt(format!("the chain of a fork: {error}")))?;
    Ok(links.into_iter().map(|(id, upto)| Link { id, upto }).collect())
}
