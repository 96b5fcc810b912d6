//! A conversation as its rows tell it, and how numbers, digests and tallies are spelled in them.

use super::db::Db;
use super::fault;
use super::lens::Lens;
use crate::error::{Error, Kind};
use crate::store::{
    Conversation, ConversationId, FORK_DEPTH_MAX, ForkPoint, NewConversation, ReaderName, State, Tenant,
};
use recto::digest::Digest;
use recto::entry::{Lane, Millis, Role, Section, Text};
use recto::log::{StrandTally, Sums, Tally};
use recto::{Seq, Tokens};
use rusqlite::{OptionalExtension, Row, params};

/// Selects all that is told of conversations.
macro_rules! conversations {
    ($which:literal) => {
        concat!(
            "SELECT c.n, c.id, c.state, c.tokenizer, a.body, a.counts, c.parent, p.id, c.upto, c.copied, c.depth, \
             c.created, h.seq, h.strands, coalesce(h.names, s.body), h.tally, h.version, h.updated \
             FROM conversation c JOIN text a ON a.id = c.about \
             LEFT JOIN conversation p ON p.n = c.parent \
             LEFT JOIN head h ON h.n = c.n LEFT JOIN text s ON s.id = h.strands ",
            $which
        )
    };
}

const BY_NAME: &str = conversations!("WHERE c.tenant = ?1 AND c.id = ?2");
const BY_NUMBER: &str = conversations!("WHERE c.n = ?1");
const LISTED: &str = conversations!("WHERE c.tenant = ?1 AND c.id > ?2 AND c.state <> 2 ORDER BY c.id LIMIT ?3");
const LISTED_FIRST: &str = conversations!("WHERE c.tenant = ?1 AND c.state <> 2 ORDER BY c.id LIMIT ?2");
const PARENT: &str = "SELECT parent, upto FROM conversation WHERE n = ?1 AND copied = 0 AND parent IS NOT NULL";
const PUT_TEXT: &str = "INSERT INTO text (body, counts) VALUES (?1, ?2)";
const EMPTY_TEXT: &str = "UPDATE text SET body = '', counts = '' WHERE id = ?1";

/// The place of a text that says nothing yet.
pub(super) const NO_TEXT: i64 = 0;

/// A conversation, its number, and where its past is kept.
pub(super) struct Found {
    pub(super) n: i64,
    pub(super) conversation: Conversation,
    pub(super) depth: usize,
    /// Where the names of its strands stand, if that is not in the head's row.
    pub(super) strands: i64,
    /// Itself, then the conversations that it goes on from, each with the last place that is read there.
    pub(super) chain: Vec<Link>,
    /// Whether it is being made, and has no head yet.
    pub(super) is_new: bool,
    /// Whether it may have readers.
    pub(super) has_readers: bool,
    /// Whether it may hold texts that are referred to by digest.
    pub(super) has_contents: bool,
    /// The reader that has written to it last, if that is known.
    pub(super) last: Option<(ReaderName, Lens)>,
}

/// A conversation whose rows are read, up to a place.
#[derive(Clone, Copy, Debug)]
pub(super) struct Link {
    pub(super) n: i64,
    pub(super) upto: i64,
}

impl Found {
    /// Finds a conversation, whatever became of it.
    pub(super) fn any(db: &Db<'_>, tenant: &Tenant, id: &ConversationId) -> Result<Found, Error> {
        let found = db.prepare_cached(BY_NAME)?.query_row(params![tenant.as_str(), id.as_str()], raw).optional()?;
        let missing = || Kind::NotFound { what: format!("conversation {:?}", id.as_str()) };
        found.ok_or_else(missing)?.found(db)
    }

    /// Finds a conversation that was not erased: as the last write has left it, or else in the file.
    pub(super) fn live(db: &Db<'_>, tenant: &Tenant, id: &ConversationId) -> Result<Found, Error> {
        if let Some(left) = db.take(tenant, id) {
            return Ok(left);
        }
        let found = Found::any(db, tenant, id)?;
        match found.conversation.state {
            State::Live => Ok(found),
            State::Erasing | State::Erased => Err(Kind::Erased { conversation: id.clone() }.into()),
        }
    }

    /// Returns a conversation that is being made and stands on no other.
    pub(super) fn made(n: i64, new: &NewConversation, version: u64) -> Found {
        let conversation = Conversation {
            id: new.id.clone(),
            state: State::Live,
            tokenizer: new.tokenizer.clone(),
            title: new.title.clone(),
            meta: new.meta.clone(),
            from: None,
            tally: Tally::default(),
            version,
            created: new.at,
            updated: new.at,
        };
        Found {
            n,
            conversation,
            depth: 0,
            strands: NO_TEXT,
            chain: alone(n),
            is_new: true,
            has_readers: false,
            has_contents: false,
            last: None,
        }
    }

    /// Finds a conversation by its number.
    pub(super) fn numbered(db: &Db<'_>, n: i64) -> Result<Found, Error> {
        let found = db.prepare_cached(BY_NUMBER)?.query_row([n], raw).optional()?;
        found.ok_or_else(|| fault::corrupt(format!("conversation {n} is gone")))?.found(db)
    }

    /// Lists those that were not erased.
    pub(super) fn list(
        db: &Db<'_>,
        tenant: &Tenant,
        after: Option<&ConversationId>,
        rows: usize,
    ) -> Result<Vec<Conversation>, Error> {
        let rows = i64::try_from(rows).unwrap_or(i64::MAX);
        let raws: Vec<Raw> = match after {
            Some(after) => {
                let mut statement = db.prepare_cached(LISTED)?;
                let listed = statement.query_map(params![tenant.as_str(), after.as_str(), rows], raw)?;
                listed.collect::<rusqlite::Result<_>>()?
            }
            None => {
                let mut statement = db.prepare_cached(LISTED_FIRST)?;
                let listed = statement.query_map(params![tenant.as_str(), rows], raw)?;
                listed.collect::<rusqlite::Result<_>>()?
            }
        };
        raws.into_iter().map(Raw::conversation).collect()
    }

    /// Finds one of its readers.
    pub(super) fn reader(&self, db: &Db<'_>, name: &ReaderName) -> Result<Option<Lens>, Error> {
        match &self.last {
            Some((last, lens)) if last == name => Ok(Some(*lens)),
            _ if !self.has_readers => Ok(None),
            _ => Lens::of(db, self.n, name),
        }
    }

    /// Notes how a reader was left.
    pub(super) fn read_by(&mut self, name: &ReaderName, lens: Lens) {
        self.has_readers = true;
        self.last = Some((name.clone(), lens));
    }

    /// Returns a tally as a row spells it.
    pub(super) fn tally(&self, text: &str, seq: i64) -> Result<Tally, Error> {
        let strands = self.conversation.tally.strands();
        read_tally(text, seq, |at| strands.get(at).map(|it| (it.section.clone(), it.lane, it.role, it.first)))
    }
}

/// A row as SQLite hands it out.
struct Raw {
    n: i64,
    id: String,
    state: i64,
    tokenizer: String,
    title: String,
    meta: String,
    parent_id: Option<String>,
    upto: i64,
    depth: i64,
    created: i64,
    head: Option<RawHead>,
}

struct RawHead {
    seq: i64,
    strands: i64,
    names: Option<String>,
    tally: String,
    version: i64,
    updated: i64,
}

fn raw(row: &Row<'_>) -> rusqlite::Result<Raw> {
    let head = match row.get::<_, Option<i64>>(12)? {
        None => None,
        Some(seq) => Some(RawHead {
            seq,
            strands: row.get(13)?,
            names: row.get(14)?,
            tally: row.get(15)?,
            version: row.get(16)?,
            updated: row.get(17)?,
        }),
    };
    Ok(Raw {
        n: row.get(0)?,
        id: row.get(1)?,
        state: row.get(2)?,
        tokenizer: row.get(3)?,
        title: row.get(4)?,
        meta: row.get(5)?,
        parent_id: row.get(7)?,
        upto: row.get(8)?,
        depth: row.get(10)?,
        created: row.get(11)?,
        head,
    })
}

impl Raw {
    fn found(self, db: &Db<'_>) -> Result<Found, Error> {
        let (n, depth) = (self.n, self.depth);
        let depth =
            usize::try_from(depth).map_err(|_| fault::corrupt(format!("conversation {n} has depth {depth}")))?;
        let strands = self.head.as_ref().map_or(0, |head| head.strands);
        let chain = if self.parent_id.is_some() { chain(db, n)? } else { alone(n) };
        let conversation = self.conversation()?;
        let (is_new, has_readers, has_contents, last) = (false, true, true, None);
        Ok(Found { n, conversation, depth, strands, chain, is_new, has_readers, has_contents, last })
    }

    fn conversation(self) -> Result<Conversation, Error> {
        let state = match self.state {
            0 => State::Live,
            1 => State::Erasing,
            2 => State::Erased,
            other => return Err(fault::corrupt(format!("conversation {} has state {other}", self.n))),
        };
        let from = self.parent_id.map(|id| ForkPoint { conversation: id.into(), upto: place(self.upto) });
        let (tally, version, updated) = match self.head {
            None => (Tally::default(), 0, self.created),
            Some(head) => {
                let names: Vec<(Section, Lane, Role, Seq)> =
                    serde_json::from_str(head.names.as_deref().unwrap_or("[]"))
                        .map_err(|error| fault::corrupt(format!("the strands of conversation {}: {error}", self.n)))?;
                let tally = read_tally(&head.tally, head.seq, |at| names.get(at).cloned())?;
                (tally, whole(head.version)?, head.updated)
            }
        };
        Ok(Conversation {
            id: self.id.into(),
            state,
            tokenizer: self.tokenizer.into(),
            title: self.title.into(),
            meta: self.meta.into(),
            from,
            tally,
            version,
            created: Millis(self.created),
            updated: Millis(updated),
        })
    }
}

/// Returns a conversation that shares no rows of others.
fn alone(n: i64) -> Vec<Link> {
    vec![Link { n, upto: i64::MAX }]
}

/// Returns a conversation and those whose rows it shares, nearest first.
fn chain(db: &Db<'_>, n: i64) -> Result<Vec<Link>, Error> {
    let mut links = alone(n);
    let mut last = links[0];
    while let Some((parent, upto)) =
        db.prepare_cached(PARENT)?.query_row([last.n], |row| Ok((row.get(0)?, row.get::<_, i64>(1)?))).optional()?
    {
        if links.len() > FORK_DEPTH_MAX {
            return Err(fault::corrupt(format!("conversation {n} stands on too many others")));
        }
        last = Link { n: parent, upto: last.upto.min(upto) };
        links.push(last);
    }
    Ok(links)
}

/// Returns the strands' names as they are stored.
pub(in crate::store) fn write_strands(tally: &Tally) -> Result<String, Error> {
    let names: Vec<_> = tally.strands().iter().map(|it| (&it.section, it.lane, it.role, it.first)).collect();
    serde_json::to_string(&names).map_err(|error| Kind::Defect { what: format!("strands: {error}") }.into())
}

/// Spells a tally: for each strand how many entries and tokens, and how far back its newest entry and edge are.
pub(in crate::store) fn write_tally(tally: &Tally, seq: i64) -> String {
    let mut text = String::new();
    for strand in tally.strands() {
        let back = |place: Seq| seq - integer(place.0);
        if !text.is_empty() {
            text.push(';');
        }
        push_number(&mut text, integer(strand.sums.entries));
        for number in [Some(integer(strand.sums.tokens.0)), Some(back(strand.last)), strand.edge.map(back)] {
            let Some(number) = number else { continue };
            text.push(' ');
            push_number(&mut text, number);
        }
    }
    text
}

/// Spells a number. Nearly all of them are small, and there are some in every row.
fn push_number(text: &mut String, number: i64) {
    match u8::try_from(number) {
        Ok(digit @ 0..=9) => text.push(char::from(b'0' + digit)),
        _ => text.push_str(&number.to_string()),
    }
}

/// Reads a tally; the names of its strands are kept elsewhere.
pub(in crate::store) fn read_tally(
    text: &str,
    seq: i64,
    name: impl Fn(usize) -> Option<(Section, Lane, Role, Seq)>,
) -> Result<Tally, Error> {
    let wrong = || fault::corrupt(format!("the tally of entry #{seq}: {text:?}"));
    let mut strands = Vec::new();
    for (at, strand) in text.split(';').filter(|strand| !strand.is_empty()).enumerate() {
        let numbers: Vec<i64> = strand.split(' ').map(str::parse).collect::<Result<_, _>>().map_err(|_| wrong())?;
        let (entries, tokens, back, edge) = match numbers[..] {
            [entries, tokens, back] => (entries, tokens, back, None),
            [entries, tokens, back, edge] => (entries, tokens, back, Some(edge)),
            _ => return Err(wrong()),
        };
        let (section, lane, role, first) = name(at).ok_or_else(wrong)?;
        let place = |back: i64| u64::try_from(seq - back).map(Seq).map_err(|_| wrong());
        let sums = Sums { entries: whole(entries)?, tokens: Tokens(whole(tokens)?) };
        let edge = edge.map(place).transpose()?;
        strands.push(StrandTally { section, lane, role, first, last: place(back)?, sums, edge });
    }
    Ok(Tally::of(strands))
}

/// Puts a text behind all others, and returns where it is.
pub(super) fn put_text(db: &Db<'_>, body: &str, counts: &str) -> Result<i64, Error> {
    db.prepare_cached(PUT_TEXT)?.execute(params![body, counts])?;
    Ok(db.last_insert_rowid())
}

/// Empties a text. Its row stays: to delete it would move others, and leave copies of them.
pub(super) fn empty_text(db: &Db<'_>, id: i64) -> Result<(), Error> {
    if id == NO_TEXT {
        return Ok(());
    }
    db.prepare_cached(EMPTY_TEXT)?.execute([id])?;
    Ok(())
}

/// Spells a number that is known to be one of ours; what is larger can't be there.
pub(in crate::store) fn integer(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

/// Reads a number that can't be negative.
pub(in crate::store) fn whole(number: i64) -> Result<u64, Error> {
    u64::try_from(number).map_err(|_| fault::corrupt(format!("{number} where no negative number can be")))
}

/// Spells a place, or that there is none.
pub(in crate::store) fn integer_or_none(place: Option<Seq>) -> i64 {
    place.map_or(-1, |seq| integer(seq.0))
}

/// Reads a place; a negative number is none.
pub(in crate::store) fn place(number: i64) -> Option<Seq> {
    u64::try_from(number).ok().map(Seq)
}

/// Spells a digest as its bytes.
pub(super) fn blob(digest: Digest) -> [u8; 16] {
    digest.to_bytes()
}

/// Reads a digest.
pub(in crate::store) fn digest(bytes: &[u8]) -> Result<Digest, Error> {
    let wrong = || fault::corrupt(format!("a digest of {} bytes", bytes.len()));
    Ok(Digest::from_bytes(bytes.try_into().map_err(|_| wrong())?))
}

/// Returns what a name is looked up by; names themselves are words, and stand in `text`.
pub(in crate::store) fn name_key(name: &str) -> [u8; 16] {
    blob(Digest::of(name.as_bytes()))
}

/// Returns a text as it is shared.
pub(super) fn shared(text: String) -> Text {
    text.into()
}
