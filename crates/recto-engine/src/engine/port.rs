//! Export and import: everything that is kept of a conversation, line by line, and entries from elsewhere.
//!
//! An export is one JSON object a line: the conversation, its entries, what receipts refer to, its readers with their
//! decisions and calls, its records, and a last line that says that it is whole. Read back, it exports byte for byte
//! the same. A fork is written with all that it shares.

use super::{At, Engine, Opening, counter, now};
use crate::body;
use crate::call::Stored;
use crate::error::{Error, Kind};
use crate::lens;
use crate::store::{
    Batch, Commit, Conversation, ConversationId, DecisionKind, DecisionRow, Decisions, Expect, NewConversation, NewRow,
    ReaderName, ReaderRow, Record, RecordKind, Store, Tenant, TurnRow, Turns, Upto,
};
use recto::digest::Digest;
use recto::edit::{Edit, Reverted};
use recto::entry::{Millis, Text};
use recto::redact::Secrets;
use recto::{Entry, Seq, Tokens};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use std::collections::BTreeSet;

/// The version of the export format that is read and written.
pub const EXPORT_VERSION: u64 = 1;
/// How many rows are read or written at once.
const PAGE_ROWS: usize = 500;

/// What an import has done.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Imported {
    /// The conversation.
    pub conversation: ConversationId,
    /// How many entries were there already.
    pub known: u64,
    /// How many were added.
    pub added: u64,
}

/// One line of an export.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
enum Line {
    Conversation(Head),
    Entry {
        seq: Seq,
        entry: Entry,
    },
    Content {
        digest: Digest,
        text: Text,
    },
    Decision {
        reader: ReaderName,
        ordinal: u64,
        turn: u64,
        edit: Edit,
        policy: Digest,
    },
    Revert {
        reader: ReaderName,
        #[serde(flatten)]
        revert: Reverted,
        of: u64,
    },
    Call {
        reader: ReaderName,
        turn: u64,
        head: Option<Seq>,
        spared: Tokens,
        at: Millis,
        receipt: Box<RawValue>,
    },
    Record {
        kind: RecordKind,
        key: Text,
        version: u64,
        body: Text,
    },
    End {
        entries: u64,
        lines: u64,
    },
}

#[derive(Serialize, Deserialize)]
struct Head {
    recto: u64,
    id: ConversationId,
    tokenizer: Text,
    title: Text,
    meta: Box<RawValue>,
    created: Millis,
}

impl<S: Store> Engine<S> {
    /// Writes everything that is kept of a conversation, line by line. What is appended meanwhile is left out.
    pub async fn export(&self, at: &At, mut out: impl FnMut(&str) -> Result<(), Error>) -> Result<u64, Error> {
        // Readers first: what they have seen is then among the entries.
        let readers = self.store().readers(&at.tenant, &at.conversation).await?;
        let conversation = self.conversation(at).await?;
        let mut lines = 0;
        let mut put = |line: &Line| {
            lines += 1;
            out(&serde_json::to_string(line).expect("an export is plain data"))
        };
        put(&Line::Conversation(head(&conversation)?))?;
        let entries = self.export_entries(at, &conversation, &mut put).await?;
        let mut known = BTreeSet::new();
        for (name, row) in &readers {
            self.export_reader(at, name, *row, &mut known, &mut put).await?;
        }
        for kind in [RecordKind::Session, RecordKind::Note, RecordKind::Want] {
            for Record { kind, key, version, body } in self.store().kept(&at.tenant, &at.conversation, kind).await? {
                put(&Line::Record { kind, key, version, body })?;
            }
        }
        let lines = lines;
        out(&serde_json::to_string(&Line::End { entries, lines }).expect("an export is plain data"))?;
        Ok(entries)
    }

    async fn export_entries(
        &self,
        at: &At,
        conversation: &Conversation,
        put: &mut impl FnMut(&Line) -> Result<(), Error>,
    ) -> Result<u64, Error> {
        let (mut next, mut entries) = (Seq(0), 0);
        let Some(head) = conversation.tally.head() else { return Ok(0) };
        loop {
            let rows = self.store().forth(&at.tenant, &at.conversation, next, PAGE_ROWS).await?;
            for row in rows.iter().filter(|row| row.seq <= head) {
                put(&Line::Entry { seq: row.seq, entry: body::entry(row)? })?;
                entries += 1;
            }
            match rows.last() {
                Some(last) if last.seq < head => next = last.seq.next(),
                _ => return Ok(entries),
            }
        }
    }

    async fn export_reader(
        &self,
        at: &At,
        name: &ReaderName,
        row: ReaderRow,
        known: &mut BTreeSet<Digest>,
        put: &mut impl FnMut(&Line) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let (tenant, id) = (&at.tenant, &at.conversation);
        let upto = Upto { turn: row.turns, ordinal: row.ordinal };
        let mut ordinal = 0;
        while ordinal < row.ordinal {
            let which = Decisions::After { ordinal, rows: PAGE_ROWS };
            let rows = self.store().decisions(tenant, id, name, upto, which).await?;
            let Some(last) = rows.last() else { break };
            ordinal = last.ordinal;
            for row in rows {
                put(&line_of(name, row)?)?;
            }
        }
        // What stands in one of the contents, with others, is told with that.
        let mut bundled: BTreeSet<(Option<Digest>, Digest)> = BTreeSet::new();
        let mut turn = 0;
        while turn < row.turns {
            let rows = self.store().turns(tenant, id, name, upto, Turns::Since { turn, rows: PAGE_ROWS }).await?;
            let Some(last) = rows.last() else { break };
            turn = last.turn + 1;
            for row in rows {
                let stored = Stored::parse(&row.receipt)?;
                let is_within = |digest: &Digest| bundled.contains(&(stored.bundle, *digest));
                if stored.digests().iter().any(|digest| !known.contains(digest) && !is_within(digest)) {
                    let contents = self.contents(at, &stored).await?;
                    bundled.extend(stored.bundled(&contents)?.into_iter().map(|(digest, _)| (stored.bundle, digest)));
                    let apart = contents.into_iter().filter(|(digest, _)| !bundled.contains(&(stored.bundle, *digest)));
                    for (digest, text) in apart.filter(|(digest, _)| known.insert(*digest)) {
                        put(&Line::Content { digest, text })?;
                    }
                }
                let receipt = raw(&row.receipt)?;
                let TurnRow { turn, head, spared, at, .. } = row;
                put(&Line::Call { reader: name.clone(), turn, head, spared, at, receipt })?;
            }
        }
        Ok(())
    }

    /// Reads an export back, under its own name or another. What is there already is compared, not added again; so an
    /// import that broke off can be repeated. A file that differs from what is there is refused.
    pub async fn import(
        &self,
        tenant: &Tenant,
        name: Option<ConversationId>,
        lines: impl Iterator<Item = Result<String, Error>>,
    ) -> Result<Imported, Error> {
        let mut import: Option<Import<'_, S>> = None;
        let mut number = 0;
        for line in lines {
            let line = line?;
            number += 1;
            let wrong = |what: String| Error::from(recto::Error::input(format!("export, line {number}: {what}")));
            let line: Line = serde_json::from_str(&line).map_err(|error| wrong(error.to_string()))?;
            match (&mut import, line) {
                (None, Line::Conversation(head)) if head.recto == EXPORT_VERSION => {
                    import = Some(Import::begin(self, tenant, name.clone(), head).await?);
                }
                (None, Line::Conversation(head)) => {
                    return Err(wrong(format!("version {}; this version of Recto reads {EXPORT_VERSION}", head.recto)));
                }
                (None, _) => return Err(wrong("it doesn't begin with a conversation".into())),
                (Some(import), line) => {
                    if let Some(done) = import.take(line, number).await? {
                        return Ok(done);
                    }
                }
            }
        }
        Err(recto::Error::input("the export breaks off: its last line is missing").into())
    }

    /// Adds a transcript to a conversation, which is made if there is none: entries that stand there already are
    /// compared and not added again. One that differs from what is there is a conflict.
    pub async fn import_entries(&self, at: &At, opening: Opening, entries: Vec<Entry>) -> Result<Imported, Error> {
        if let Err(error) = self.open(at, opening).await
            && !error.is_exists()
        {
            return Err(error);
        }
        let conversation = self.conversation(at).await?;
        let entries = self.at_rest(&at.tenant, entries, &mut Secrets::default()).await?;
        let (mut next, mut known) = (Seq(0), 0_usize);
        while known < entries.len() {
            let rows = self.store().forth(&at.tenant, &at.conversation, next, PAGE_ROWS).await?;
            let Some(last) = rows.last() else { break };
            next = last.seq.next();
            for row in &rows {
                let Some(entry) = entries.get(known) else { break };
                if row.hash != body::hash_of(entry) {
                    return Err(differs(&at.conversation, row.seq));
                }
                known += 1;
            }
        }
        let counter = counter(&conversation)?;
        let (mut head, mut added) = (conversation.tally.head(), 0_u64);
        for some in entries[known..].chunks(PAGE_ROWS) {
            let append = super::Append::after(head, some);
            let batch = self.batch(at, append, &counter).await?;
            head = self.store().append(&at.tenant, &at.conversation, batch).await?.last;
            added += some.len() as u64;
        }
        self.inner.changed.notify_waiters();
        Ok(Imported { conversation: at.conversation.clone(), known: known as u64, added })
    }
}

/// An import that is under way.
struct Import<'e, S> {
    engine: &'e Engine<S>,
    at: At,
    conversation: Conversation,
    /// Entries up to here are there already.
    there: Option<Seq>,
    rows: Vec<NewRow>,
    known: u64,
    added: u64,
    lines: u64,
    contents: Vec<(Digest, Text)>,
    decisions: Vec<DecisionRow>,
    turns: Vec<TurnRow>,
    /// Which secrets it was told up to here.
    told: Secrets,
    /// Whose decisions and turns these are, and what was there of them.
    reader: Option<(ReaderName, ReaderRow)>,
}

impl<'e, S: Store> Import<'e, S> {
    async fn begin(
        engine: &'e Engine<S>,
        tenant: &Tenant,
        name: Option<ConversationId>,
        head: Head,
    ) -> Result<Import<'e, S>, Error> {
        let id = name.unwrap_or(head.id);
        let at = At { tenant: tenant.clone(), conversation: id.clone() };
        let (tokenizer, title, meta) = (head.tokenizer, head.title, head.meta.get().into());
        let new = NewConversation { id, tokenizer, title, meta, at: head.created, from: None };
        match engine.store().create(tenant, new).await {
            Err(error) if error.is_exists() => {}
            made => drop(made?),
        }
        let conversation = engine.conversation(&at).await?;
        let there = conversation.tally.head();
        let (rows, contents, decisions, turns) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        let (known, added, lines, reader) = (0, 0, 1, None);
        let told = engine.remembered(&at).await?.secrets;
        Ok(Import {
            engine,
            at,
            conversation,
            there,
            rows,
            known,
            added,
            lines,
            contents,
            decisions,
            turns,
            told,
            reader,
        })
    }

    /// Takes a line; returns what was done once it was the last.
    async fn take(&mut self, line: Line, number: u64) -> Result<Option<Imported>, Error> {
        let wrong = |what: &str| Error::from(recto::Error::input(format!("export, line {number}: {what}")));
        if let Line::End { entries, lines } = line {
            self.flush_entries().await?;
            self.flush_reader().await?;
            if (entries, lines) != (self.known + self.added, self.lines) {
                return Err(wrong("the export is not whole: lines are missing"));
            }
            self.engine.inner.changed.notify_waiters();
            let conversation = self.at.conversation.clone();
            return Ok(Some(Imported { conversation, known: self.known, added: self.added }));
        }
        self.lines += 1;
        match line {
            Line::Entry { seq, entry } if Some(seq) <= self.there => self.compare(seq, &entry).await?,
            Line::Entry { seq, entry } => {
                let counter = counter(&self.conversation)?;
                let told = std::mem::take(&mut self.told);
                let (rows, told) = self.engine.written_behind(&self.at.tenant, vec![entry], &counter, told).await?;
                self.told = told;
                self.rows.extend(rows.into_iter().map(|row| NewRow { seq: Some(seq), ..row }));
                if self.rows.len() >= PAGE_ROWS {
                    self.flush_entries().await?;
                }
            }
            Line::Content { digest, text } if Digest::of(text.as_bytes()) == digest => {
                self.contents.push((digest, text));
            }
            Line::Content { digest, .. } => return Err(wrong(&format!("content {digest} is another one"))),
            Line::Decision { reader, ordinal, turn, edit, policy } => {
                self.read_by(reader).await?;
                self.decisions.push(lens::rewritten(edit, policy, ordinal, turn));
            }
            Line::Revert { reader, revert, of } => {
                self.read_by(reader).await?;
                let row = ReaderRow { turns: revert.turn.0, ordinal: revert.ordinal.saturating_sub(1) };
                self.decisions.push(lens::revert(of, row));
            }
            Line::Call { reader, turn, head, spared, at, receipt } => {
                Stored::parse(receipt.get()).map_err(|error| wrong(&error.to_string()))?;
                self.read_by(reader).await?;
                self.turns.push(TurnRow { turn, head, spared, receipt: receipt.get().into(), at });
            }
            Line::Record { kind, key, version, body } => {
                let record = Record { kind, key, version, body };
                self.engine.store().adopt(&self.at.tenant, &self.at.conversation, record).await?;
            }
            Line::Conversation(_) | Line::End { .. } => return Err(wrong("a second conversation")),
        }
        if self.decisions.len() + self.turns.len() >= PAGE_ROWS {
            self.flush_reader().await?;
        }
        Ok(None)
    }

    async fn compare(&mut self, seq: Seq, entry: &Entry) -> Result<(), Error> {
        let resting = self.engine.at_rest(&self.at.tenant, vec![entry.clone()], &mut Secrets::default()).await?;
        let entry = resting.first().unwrap_or(entry);
        let rows = self.engine.store().rows(&self.at.tenant, &self.at.conversation, vec![seq]).await?;
        if rows.first().is_none_or(|row| row.hash != body::hash_of(entry)) {
            return Err(differs(&self.at.conversation, seq));
        }
        self.known += 1;
        Ok(())
    }

    async fn flush_entries(&mut self) -> Result<(), Error> {
        let rows = std::mem::take(&mut self.rows);
        let added = rows.len() as u64;
        if added > 0 {
            self.engine.remember(&self.at, &self.told).await?;
            let batch = Batch::new(Expect::Any, rows, now());
            self.engine.store().append(&self.at.tenant, &self.at.conversation, batch).await?;
            self.added += added;
        }
        Ok(())
    }

    /// Goes on with a reader; what belongs to another one is written first.
    async fn read_by(&mut self, reader: ReaderName) -> Result<(), Error> {
        self.flush_entries().await?;
        if self.reader.as_ref().is_some_and(|(known, _)| *known == reader) {
            return Ok(());
        }
        self.flush_reader().await?;
        let row = self.engine.store().reader(&self.at.tenant, &self.at.conversation, &reader).await?;
        self.reader = Some((reader, row));
        Ok(())
    }

    async fn flush_reader(&mut self) -> Result<(), Error> {
        let Some((reader, row)) = self.reader.clone() else { return Ok(()) };
        let decisions: Vec<_> = std::mem::take(&mut self.decisions);
        let decisions: Vec<_> = decisions.into_iter().filter(|it| it.ordinal > row.ordinal).collect();
        let turns: Vec<_> = std::mem::take(&mut self.turns).into_iter().filter(|it| it.turn >= row.turns).collect();
        let contents = std::mem::take(&mut self.contents);
        let then = ReaderRow {
            turns: turns.last().map_or(row.turns, |turn| turn.turn + 1),
            ordinal: decisions.last().map_or(row.ordinal, |decision| decision.ordinal),
        };
        let (erase, open, records) = (Vec::new(), None, Vec::new());
        let commit = Commit { expect: row, decisions, contents, turns, erase, open, records, at: now() };
        self.engine.store().commit(&self.at.tenant, &self.at.conversation, &reader, commit).await?;
        self.reader = Some((reader, then));
        Ok(())
    }
}

fn head(conversation: &Conversation) -> Result<Head, Error> {
    let Conversation { id, tokenizer, title, meta, created, .. } = conversation;
    let (id, tokenizer, title, meta) = (id.clone(), tokenizer.clone(), title.clone(), raw(meta)?);
    Ok(Head { recto: EXPORT_VERSION, id, tokenizer, title, meta, created: *created })
}

fn line_of(reader: &ReaderName, row: DecisionRow) -> Result<Line, Error> {
    let (reader, turn) = (reader.clone(), recto::edit::Turn(row.turn));
    if row.kind == DecisionKind::Revert {
        return Ok(Line::Revert { reader, revert: Reverted { ordinal: row.ordinal, turn }, of: row.about });
    }
    let (ordinal, turn) = (row.ordinal, row.turn);
    let decision = lens::made(vec![row])?.into_iter().next();
    let decision = decision.ok_or_else(|| Kind::Defect { what: format!("decision {ordinal} can't be read") })?;
    Ok(Line::Decision { reader, ordinal, turn, edit: decision.edit, policy: decision.policy })
}

fn raw(json: &str) -> Result<Box<RawValue>, Error> {
    let json = if json.is_empty() { "{}" } else { json };
    RawValue::from_string(json.into()).map_err(|error| Kind::Corrupt { what: format!("no JSON: {error}") }.into())
}

fn differs(id: &ConversationId, seq: Seq) -> Error {
    let what = format!("entry {seq} of conversation {:?} is another than the one to import", id.as_str());
    let hint = "import it under another name".to_string();
    Kind::Conflict { what, hint }.into()
}
