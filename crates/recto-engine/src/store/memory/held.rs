//! What is held: conversations with their own rows, and how a fork finds those of the ones it goes on from.

use super::index::Words;
use crate::error::{Error, Kind};
use crate::store::*;
use recto::Tokens;
use recto::entry::Millis;
use std::collections::BTreeMap;

/// All conversations of one tenant.
#[derive(Debug, Default)]
pub(super) struct Tenancy {
    pub(super) conversations: BTreeMap<ConversationId, Held>,
    pub(super) links: BTreeMap<(Digest, ConversationId), Seq>,
}

/// A conversation: its row, and what is its own and not that of the one it goes on from.
#[derive(Debug)]
pub(super) struct Held {
    pub(super) state: State,
    pub(super) tokenizer: Text,
    pub(super) title: Text,
    pub(super) meta: Text,
    pub(super) from: Option<ForkPoint>,
    pub(super) tally: Tally,
    pub(super) version: u64,
    pub(super) created: Millis,
    pub(super) updated: Millis,
    pub(super) rows: BTreeMap<Seq, HeldRow>,
    pub(super) keys: BTreeMap<Text, (Digest, Appended)>,
    pub(super) contents: BTreeMap<Digest, Content>,
    pub(super) readers: BTreeMap<ReaderName, Reader>,
    pub(super) records: BTreeMap<(RecordKind, Text), Record>,
    pub(super) words: Words,
}

/// A stored entry; its large texts are among the contents.
#[derive(Debug)]
pub(super) struct HeldRow {
    pub(super) strand: usize,
    pub(super) tally: Tally,
    pub(super) cost: Tokens,
    pub(super) counts: String,
    pub(super) hash: Digest,
    pub(super) bytes: u64,
    pub(super) body: String,
    pub(super) large: Vec<Digest>,
    pub(super) is_erased: bool,
}

/// A text, and how many rows refer to it; what a commit brought stays for good.
#[derive(Debug)]
pub(super) struct Content {
    pub(super) text: Text,
    pub(super) rows: u64,
    pub(super) is_kept: bool,
}

/// A reader. Decisions and calls up to its start are those of the conversation that this one goes on from.
#[derive(Debug, Default)]
pub(super) struct Reader {
    pub(super) start: ReaderRow,
    pub(super) row: ReaderRow,
    pub(super) decisions: BTreeMap<u64, DecisionRow>,
    pub(super) turns: BTreeMap<u64, TurnRow>,
    pub(super) open: BTreeMap<Digest, OpenCall>,
}

impl Held {
    pub(super) fn row(&self, id: &ConversationId) -> Conversation {
        Conversation {
            id: id.clone(),
            state: self.state,
            tokenizer: self.tokenizer.clone(),
            title: self.title.clone(),
            meta: self.meta.clone(),
            from: self.from.clone(),
            tally: self.tally.clone(),
            version: self.version,
            created: self.created,
            updated: self.updated,
        }
    }

    pub(super) fn reader(&self, name: &ReaderName) -> ReaderRow {
        self.readers.get(name).map(|reader| reader.row).unwrap_or_default()
    }

    pub(super) fn wrote(&mut self, at: Millis) {
        self.version += 1;
        self.updated = at;
    }

    /// Returns a row of its own as it is read.
    pub(super) fn read(&self, seq: Seq, row: &HeldRow) -> Row {
        let text = |digest: &Digest| self.contents.get(digest).map(|content| (*digest, content.text.clone()));
        Row {
            seq,
            strand: row.strand,
            tally: row.tally.clone(),
            counts: row.counts.clone(),
            hash: row.hash,
            bytes: row.bytes,
            body: row.body.clone(),
            large: row.large.iter().filter_map(text).collect(),
            is_erased: row.is_erased,
        }
    }
}

impl Tenancy {
    /// Returns a conversation, whatever became of it.
    pub(super) fn known(&self, id: &ConversationId) -> Result<&Held, Error> {
        self.conversations.get(id).ok_or_else(|| unknown(id))
    }

    /// Returns a conversation that was not erased.
    pub(super) fn live(&self, id: &ConversationId) -> Result<&Held, Error> {
        match self.known(id)? {
            held if held.state == State::Live => Ok(held),
            _ => Err(Kind::Erased { conversation: id.clone() }.into()),
        }
    }

    /// Returns a conversation that was not erased, to write to.
    pub(super) fn live_mut(&mut self, id: &ConversationId) -> Result<&mut Held, Error> {
        self.live(id)?;
        self.conversations.get_mut(id).ok_or_else(|| unknown(id))
    }

    /// Returns a conversation and those it goes on from, the oldest last, each with what it gives: places below this.
    fn lineage(&self, id: &ConversationId) -> Result<Vec<(&ConversationId, &Held, Seq)>, Error> {
        let (mut id, mut held) = self.conversations.get_key_value(id).ok_or_else(|| unknown(id))?;
        self.live(id)?;
        let mut below = Seq(u64::MAX);
        let mut lineage = vec![(id, held, below)];
        // It ends: a conversation goes on from one that was there before it.
        while let Some(from) = &held.from {
            (id, held) =
                self.conversations.get_key_value(&from.conversation).ok_or_else(|| unknown(&from.conversation))?;
            below = below.min(from.upto.map_or(Seq(0), Seq::next));
            lineage.push((id, held, below));
        }
        Ok(lineage)
    }

    /// Returns a conversation's rows from the newest back, each with the conversation whose own it is.
    pub(super) fn rows_back(
        &self,
        id: &ConversationId,
        below: Option<Seq>,
    ) -> Result<impl Iterator<Item = (&ConversationId, &Held, Seq, &HeldRow)>, Error> {
        let end = below.unwrap_or(Seq(u64::MAX));
        Ok(self.lineage(id)?.into_iter().flat_map(move |(id, held, limit)| {
            held.rows.range(..end.min(limit)).rev().map(move |(&seq, row)| (id, held, seq, row))
        }))
    }

    /// Returns what a conversation held up to and with a place.
    pub(super) fn tally_at(&self, id: &ConversationId, at: Seq) -> Result<Tally, Error> {
        Ok(self.rows_back(id, Some(at.next()))?.next().map(|(.., row)| row.tally.clone()).unwrap_or_default())
    }

    /// Returns a reader in a conversation and in those it goes on from, the oldest first, each with how far it reaches.
    pub(super) fn readings(
        &self,
        id: &ConversationId,
        name: &ReaderName,
    ) -> Result<Vec<(&ConversationId, &Reader, ReaderRow)>, Error> {
        let mut reach = ReaderRow { turns: u64::MAX, ordinal: u64::MAX };
        let mut readings = Vec::new();
        for (id, held, _) in self.lineage(id)? {
            let Some(reader) = held.readers.get(name) else { break };
            readings.push((id, reader, reach));
            reach.turns = reach.turns.min(reader.start.turns);
            reach.ordinal = reach.ordinal.min(reader.start.ordinal);
        }
        readings.reverse();
        Ok(readings)
    }

    /// Returns all decisions of a reader, in order.
    pub(super) fn all_decisions(&self, id: &ConversationId, name: &ReaderName) -> Result<Vec<&DecisionRow>, Error> {
        let readings = self.readings(id, name)?.into_iter();
        Ok(readings.flat_map(|(_, reader, reach)| reader.decisions.range(..=reach.ordinal)).map(|it| it.1).collect())
    }

    /// Returns all acknowledged calls of a reader, in order.
    pub(super) fn all_turns(&self, id: &ConversationId, name: &ReaderName) -> Result<Vec<&TurnRow>, Error> {
        let readings = self.readings(id, name)?.into_iter();
        Ok(readings.flat_map(|(_, reader, reach)| reader.turns.range(..reach.turns)).map(|it| it.1).collect())
    }

    /// Returns a text by its digest, from a conversation or those it goes on from.
    pub(super) fn content(&self, id: &ConversationId, digest: &Digest) -> Result<Option<Text>, Error> {
        let lineage = self.lineage(id)?;
        Ok(lineage.iter().find_map(|(_, held, _)| held.contents.get(digest)).map(|content| content.text.clone()))
    }

    /// Returns the conversations that see an entry which is another's own.
    pub(super) fn sharing(&self, owner: &ConversationId, seq: Seq) -> Vec<ConversationId> {
        let sees = |id: &&ConversationId| {
            let found = self.rows_back(id, Some(seq.next())).ok().and_then(|mut rows| rows.next());
            *id != owner && found.is_some_and(|(of, _, at, _)| of == owner && at == seq)
        };
        self.conversations.keys().filter(sees).cloned().collect()
    }

    /// Returns the conversations that go on from one and were not erased.
    pub(super) fn forks(&self, id: &ConversationId) -> Vec<ConversationId> {
        let goes_on = |held: &Held| held.from.as_ref().is_some_and(|from| from.conversation == *id);
        let live = self.conversations.iter().filter(|(_, held)| held.state == State::Live);
        live.filter(|(_, held)| goes_on(held)).map(|(fork, _)| fork.clone()).collect()
    }
}

fn unknown(id: &ConversationId) -> Error {
    Kind::NotFound { what: format!("conversation {:?}", id.as_str()) }.into()
}
