//! The verbs that write. Each checks everything first, and then writes: what is refused has changed nothing.

use super::held::{Content, Held, HeldRow, Reader, Tenancy};
use crate::error::{Error, Kind};
use crate::store::bounds::{check_batch, check_dense, check_name, check_receipt, check_version, next_place};
use crate::store::*;
use std::collections::BTreeMap;

const READ_AGAIN: &str = "another call came first; read again, then plan again";

impl Tenancy {
    pub(super) fn create(&mut self, mut new: NewConversation) -> Result<Conversation, Error> {
        check_name("conversation", new.id.as_str())?;
        if let Some(held) = self.conversations.get(&new.id) {
            let was = if held.state == State::Live { "" } else { ", though erased," };
            return Err(Kind::Exists { what: format!("conversation {:?}{was}", new.id.as_str()) }.into());
        }
        let (tally, readers) = match &new.from {
            None => Default::default(),
            Some(from) => (self.tally_of_fork(from)?, self.readers_of_fork(from)?),
        };
        // A free place is nobody's: the fork may fill it itself.
        new.from = new.from.map(|from| ForkPoint { upto: tally.head(), ..from });
        let held = Held {
            state: State::Live,
            tokenizer: new.tokenizer,
            title: new.title,
            meta: new.meta,
            from: new.from,
            tally,
            version: 1,
            created: new.at,
            updated: new.at,
            rows: BTreeMap::new(),
            keys: BTreeMap::new(),
            contents: BTreeMap::new(),
            readers,
            records: BTreeMap::new(),
            words: super::index::Words::default(),
        };
        let row = held.row(&new.id);
        self.conversations.insert(new.id, held);
        Ok(row)
    }

    fn tally_of_fork(&self, from: &ForkPoint) -> Result<Tally, Error> {
        let head = self.live(&from.conversation)?.tally.head();
        match from.upto {
            None => Ok(Tally::default()),
            Some(upto) if Some(upto) <= head => self.tally_at(&from.conversation, upto),
            Some(upto) => Err(no_entry(upto, &from.conversation)),
        }
    }

    fn readers_of_fork(&self, from: &ForkPoint) -> Result<BTreeMap<ReaderName, Reader>, Error> {
        let other = self.live(&from.conversation)?;
        let mut readers = BTreeMap::new();
        for (name, reader) in &other.readers {
            let turns = self.all_turns(&from.conversation, name)?;
            let turns = turns.iter().filter(|turn| turn.head <= from.upto).count() as u64;
            let decisions = self.all_decisions(&from.conversation, name)?;
            let made_before = decisions.iter().filter(|it| it.turn < turns).map(|it| it.ordinal).max();
            let at_head = (from.upto == other.tally.head()).then_some(reader.row.ordinal);
            let ordinal = at_head.or(made_before).unwrap_or_default();
            let start = ReaderRow { turns, ordinal };
            readers.insert(name.clone(), Reader { start, row: start, ..Reader::default() });
        }
        Ok(readers)
    }

    pub(super) fn append(&mut self, id: &ConversationId, mut batch: Batch) -> Result<Appended, Error> {
        let Some(new) = batch.create.take() else { return self.append_to(id, batch) };
        self.create(*new)?;
        let appended = self.append_to(id, batch);
        if appended.is_err() {
            self.conversations.remove(id);
        }
        appended
    }

    fn append_to(&mut self, id: &ConversationId, mut batch: Batch) -> Result<Appended, Error> {
        let links = std::mem::take(&mut batch.links);
        let held = self.live_mut(id)?;
        check_batch(&batch)?;
        if let Some(first) = held.repeated(&batch)? {
            return Ok(first);
        }
        let places = held.places(&batch)?;
        let appended = held.write(batch, &places);
        self.link(id, links, appended.last);
        Ok(appended)
    }

    fn link(&mut self, id: &ConversationId, links: Vec<Digest>, last: Option<Seq>) {
        let placed = links.into_iter().filter_map(|prefix| Some(((prefix, id.clone()), last?)));
        self.links.extend(placed);
    }

    pub(super) fn commit(&mut self, id: &ConversationId, name: &ReaderName, commit: Commit) -> Result<(), Error> {
        let held = self.live_mut(id)?;
        check_name("reader", name.as_str())?;
        let receipts = commit.turns.iter().map(|it| &it.receipt).chain(commit.open.iter().map(|it| &it.receipt));
        receipts.into_iter().try_for_each(|receipt| check_receipt(receipt))?;
        let row = held.reader(name);
        if row != commit.expect {
            let what = format!("reader {:?} has changed since its page was planned", name.as_str());
            return Err(Kind::Conflict { what, hint: READ_AGAIN.into() }.into());
        }
        check_dense("decision", row.ordinal + 1, commit.decisions.iter().map(|it| it.ordinal))?;
        check_dense("call", row.turns, commit.turns.iter().map(|it| it.turn))?;
        if let Some(missing) = commit.erase.iter().find(|it| !held.rows.contains_key(&it.seq)) {
            return Err(no_entry(missing.seq, id));
        }
        commit.records.iter().try_for_each(|record| check_name("record", &record.key))?;
        held.check_records(&commit.records)?;
        for remains in commit.erase {
            held.erase_entry(remains);
        }
        for (digest, text) in commit.contents {
            held.contents.entry(digest).or_insert(Content { text, rows: 0, is_kept: true }).is_kept = true;
        }
        let reader = held.readers.entry(name.clone()).or_default();
        reader.row.ordinal += commit.decisions.len() as u64;
        reader.row.turns += commit.turns.len() as u64;
        reader.decisions.extend(commit.decisions.into_iter().map(|it| (it.ordinal, it)));
        reader.turns.extend(commit.turns.into_iter().map(|it| (it.turn, it)));
        reader.open.extend(commit.open.map(|it| (it.ticket, it)));
        held.records.extend(commit.records.into_iter().map(|it| ((it.kind, it.key.clone()), it)));
        held.wrote(commit.at);
        Ok(())
    }

    pub(super) fn acknowledge(
        &mut self,
        id: &ConversationId,
        name: &ReaderName,
        acknowledge: Acknowledge,
    ) -> Result<Appended, Error> {
        let held = self.live_mut(id)?;
        let Acknowledge { ticket, unopened, turn, mut produced } = acknowledge;
        let links = std::mem::take(&mut produced.links);
        check_batch(&produced)?;
        check_receipt(&turn.receipt)?;
        if let Some(first) = held.repeated(&produced)? {
            return Ok(first);
        }
        let conflict = |what: String| Error::from(Kind::Conflict { what, hint: READ_AGAIN.into() });
        let open = held.readers.get(name).is_some_and(|reader| reader.open.contains_key(&ticket));
        if let Some(changed) = unopened.as_ref().filter(|it| it.expect != held.reader(name)) {
            return Err(conflict(format!("reader {:?} is not at {:?}", name.as_str(), changed.expect)));
        }
        if !open && unopened.is_none() {
            return Err(conflict(format!("no open call {ticket} of reader {:?}", name.as_str())));
        }
        let turns = held.reader(name).turns;
        if turn.turn != turns {
            return Err(conflict(format!("call {} is not the next one: {turns} were acknowledged", turn.turn)));
        }
        let places = held.places(&produced)?;
        let at = turn.at;
        for (digest, text) in unopened.into_iter().flat_map(|it| it.contents) {
            held.contents.entry(digest).or_insert(Content { text, rows: 0, is_kept: true }).is_kept = true;
        }
        let reader = held.readers.entry(name.clone()).or_default();
        reader.open.retain(|_, open| open.turn != turn.turn);
        reader.open.remove(&ticket);
        reader.row.turns += 1;
        reader.turns.insert(turn.turn, turn);
        let appended = held.write(produced, &places);
        held.updated = at;
        self.link(id, links, appended.last);
        Ok(appended)
    }

    pub(super) fn abandon(&mut self, id: &ConversationId, name: &ReaderName, ticket: Digest) -> Result<bool, Error> {
        let held = self.live_mut(id)?;
        let dropped = held.readers.get_mut(name).and_then(|reader| reader.open.remove(&ticket)).is_some();
        held.version += u64::from(dropped);
        Ok(dropped)
    }

    pub(super) fn describe(&mut self, id: &ConversationId, title: Text, meta: Text) -> Result<(), Error> {
        let held = self.live_mut(id)?;
        (held.title, held.meta) = (title, meta);
        held.version += 1;
        Ok(())
    }

    pub(super) fn keep(&mut self, id: &ConversationId, record: Record) -> Result<(), Error> {
        let held = self.live_mut(id)?;
        check_name("record", &record.key)?;
        held.check_records(std::slice::from_ref(&record))?;
        held.records.insert((record.kind, record.key.clone()), record);
        held.version += 1;
        Ok(())
    }

    pub(super) fn adopt(&mut self, id: &ConversationId, record: Record) -> Result<(), Error> {
        let held = self.live_mut(id)?;
        check_name("record", &record.key)?;
        let key = (record.kind, record.key.clone());
        if held.records.get(&key).is_none_or(|there| there.version < record.version) {
            held.records.insert(key, record);
            held.version += 1;
        }
        Ok(())
    }

    pub(super) fn erase(&mut self, id: &ConversationId, forks: Forks) -> Result<Erased, Error> {
        self.live(id)?;
        let direct = self.forks(id);
        if forks == Forks::Refuse && !direct.is_empty() {
            return Err(Kind::HasForks { conversation: id.clone(), forks: direct }.into());
        }
        let mut erased = Erased::default();
        let mut left = vec![id.clone()];
        while let Some(id) = left.pop() {
            left.extend(self.forks(&id));
            let held = self.live_mut(&id)?;
            erased.entries += held.rows.len() as u64;
            held.erase();
            self.links.retain(|(_, of), _| *of != id);
            erased.conversations.push(id);
        }
        erased.conversations.sort();
        Ok(erased)
    }

    pub(super) fn erase_entries(&mut self, id: &ConversationId, erase: EraseEntries) -> Result<Erased, Error> {
        let mut owners = Vec::new();
        for remains in &erase.remains {
            let newest = self.rows_back(id, Some(remains.seq.next()))?.next();
            let owner = newest.filter(|it| it.2 == remains.seq).map(|it| it.0.clone());
            owners.push(owner.ok_or_else(|| no_entry(remains.seq, id))?);
        }
        let mut deciders = Vec::new();
        for (id, reader, row) in &erase.decisions {
            let mut readings = self.readings(id, reader)?.into_iter();
            let own = readings.find(|it| row.ordinal <= it.2.ordinal && it.1.decisions.contains_key(&row.ordinal));
            let what = || format!("decision {} of reader {:?} in {:?}", row.ordinal, reader.as_str(), id.as_str());
            deciders.push(own.map(|it| it.0.clone()).ok_or_else(|| Kind::NotFound { what: what() })?);
        }
        let mut erased = Erased::default();
        for (owner, remains) in owners.iter().zip(erase.remains) {
            for reader in self.sharing(owner, remains.seq) {
                self.live_mut(&reader)?.version += 1;
            }
            erased.entries += u64::from(self.live_mut(owner)?.erase_entry(remains));
        }
        for (owner, (_, name, row)) in deciders.iter().zip(erase.decisions) {
            let held = self.live_mut(owner)?;
            held.readers.entry(name).or_default().decisions.insert(row.ordinal, row);
            held.version += 1;
        }
        self.live_mut(id)?.version += 1;
        Ok(erased)
    }
}

impl Held {
    /// Returns the first result of a batch that was written before.
    fn repeated(&self, batch: &Batch) -> Result<Option<Appended>, Error> {
        let Some((key, hash)) = &batch.key else { return Ok(None) };
        match self.keys.get(key) {
            None => Ok(None),
            Some((known, first)) if known == hash => Ok(Some(Appended { is_repeated: true, ..*first })),
            Some(_) => Err(Kind::KeyReused { key: key.to_string() }.into()),
        }
    }

    /// Returns the places of a batch, if it can be appended.
    fn places(&self, batch: &Batch) -> Result<Vec<Seq>, Error> {
        let mut head = self.tally.head();
        check_version(batch, self.version)?;
        if let Expect::Head(expected) = batch.expect
            && expected != head
        {
            return Err(Kind::HeadMoved { expected, head }.into());
        }
        let mut places = Vec::with_capacity(batch.rows.len());
        for row in &batch.rows {
            let seq = next_place(head, row.seq)?;
            places.push(seq);
            head = Some(seq);
        }
        self.check_records(&batch.records)?;
        Ok(places)
    }

    fn write(&mut self, batch: Batch, places: &[Seq]) -> Appended {
        for (&seq, new) in places.iter().zip(batch.rows) {
            let strand = self.tally.add(seq, &new.entry, new.cost);
            let large = new.large.iter().map(|(digest, _)| *digest).collect();
            for (digest, text) in new.large {
                self.contents.entry(digest).or_insert(Content { text, rows: 0, is_kept: false }).rows += 1;
            }
            let NewRow { cost, counts, hash, bytes, body, is_erased, .. } = new;
            let tally = self.tally.clone();
            self.rows.insert(seq, HeldRow { strand, tally, cost, counts, hash, bytes, body, large, is_erased });
        }
        let appended = Appended { first: places.first().copied(), last: self.tally.head(), is_repeated: false };
        self.keys.extend(batch.key.map(|(key, hash)| (key, (hash, appended))));
        self.records.extend(batch.records.into_iter().map(|it| ((it.kind, it.key.clone()), it)));
        self.wrote(batch.at);
        appended
    }

    fn check_records(&self, records: &[Record]) -> Result<(), Error> {
        let mut versions = BTreeMap::new();
        for record in records {
            let key = (record.kind, record.key.clone());
            let there = self.records.get(&key).map_or(0, |record| record.version);
            let there = versions.insert(key, record.version).unwrap_or(there);
            if record.version != there + 1 {
                let what = format!("record {:?} has version {there}, not the one before this", &*record.key);
                return Err(Kind::Conflict { what, hint: "read it again, then write again".into() }.into());
            }
        }
        Ok(())
    }

    fn erase(&mut self) {
        self.state = State::Erased;
        (self.title, self.meta, self.from) = (Text::from(""), Text::from(""), None);
        self.tally = Tally::default();
        self.version += 1;
        self.rows.clear();
        self.keys.clear();
        self.contents.clear();
        self.readers.clear();
        self.records.clear();
        self.words = super::index::Words::default();
    }

    /// Erases an entry's body; whether there was one.
    fn erase_entry(&mut self, remains: Remains) -> bool {
        let Some(row) = self.rows.get_mut(&remains.seq) else { return false };
        (row.body, row.counts) = (remains.body, remains.counts);
        self.words = super::index::Words::default();
        for digest in row.large.drain(..) {
            if let Some(content) = self.contents.get_mut(&digest) {
                content.rows -= 1;
            }
        }
        self.contents.retain(|_, content| content.rows > 0 || content.is_kept);
        self.version += 1;
        !std::mem::replace(&mut row.is_erased, true)
    }
}

fn no_entry(seq: Seq, id: &ConversationId) -> Error {
    Kind::NotFound { what: format!("entry {seq} in conversation {:?}", id.as_str()) }.into()
}
