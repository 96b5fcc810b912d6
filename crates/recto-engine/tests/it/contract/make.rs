//! What the tests write, made short.

use recto::digest::Digest;
use recto::entry::{Millis, Section, Text};
use recto::{Entry, Lane, Seq, Tokens};
use recto_engine::Error;
use recto_engine::store::{
    Acknowledge, Appended, Back, Batch, Commit, Conversation, ConversationId, DecisionKind, DecisionRow, Expect,
    ForkPoint, LARGE_BYTES_MIN, NewConversation, NewRow, OpenCall, ReaderName, ReaderRow, Record, RecordKind, Row,
    Store, Tenant, TurnRow,
};

pub(crate) const NOW: Millis = Millis(1_700_000_000_000);

pub(crate) fn tenant() -> Tenant {
    Tenant::default()
}

pub(crate) fn name(name: &str) -> ConversationId {
    ConversationId::from(name)
}

pub(crate) fn reader() -> ReaderName {
    ReaderName::from("main")
}

pub(crate) fn new(id: &str) -> NewConversation {
    let (tokenizer, title, meta) = ("o200k_base".into(), format!("about {id}").into(), "{\"k\":1}".into());
    NewConversation { id: name(id), tokenizer, title, meta, at: NOW, from: None }
}

pub(crate) fn fork(id: &str, of: &str, upto: Option<u64>) -> NewConversation {
    NewConversation { from: Some(ForkPoint { conversation: name(of), upto: upto.map(Seq) }), ..new(id) }
}

/// Returns the row of an entry: one token a byte, and texts that are long are kept apart.
pub(crate) fn row(entry: Entry) -> NewRow {
    let whole = serde_json::to_string(&entry).expect("an entry can be written");
    let (hash, bytes) = (Digest::of(whole.as_bytes()), whole.len() as u64);
    let (body, large) = match whole.len() < LARGE_BYTES_MIN {
        true => (whole, Vec::new()),
        false => (format!("{{\"large\":\"{hash}\"}}"), vec![(hash, Text::from(whole))]),
    };
    let counts = format!("[{bytes}]");
    NewRow { seq: None, entry, cost: Tokens(bytes), counts, hash, bytes, body, large, is_erased: false }
}

pub(crate) fn user(text: &str) -> NewRow {
    row(Entry::user(text))
}

pub(crate) fn assistant(text: &str) -> NewRow {
    row(Entry::assistant(text))
}

pub(crate) fn trace(text: &str) -> NewRow {
    row(Entry { lane: Lane::Trace, ..Entry::assistant(text) })
}

pub(crate) fn summary(text: &str) -> NewRow {
    row(Entry { section: Section::from(Section::SUMMARY), edge: true, ..Entry::system(text) })
}

/// Returns an entry whose text is kept apart.
pub(crate) fn long(letter: char) -> NewRow {
    user(&letter.to_string().repeat(LARGE_BYTES_MIN + 1))
}

pub(crate) fn at(seq: u64, row: NewRow) -> NewRow {
    NewRow { seq: Some(Seq(seq)), ..row }
}

pub(crate) fn batch(rows: Vec<NewRow>) -> Batch {
    Batch::new(Expect::Any, rows, NOW)
}

pub(crate) fn keyed(key: &str, rows: Vec<NewRow>) -> Batch {
    let hashes: String = rows.iter().map(|row| row.hash.to_string()).collect();
    Batch { key: Some((key.into(), Digest::of(hashes.as_bytes()))), ..batch(rows) }
}

pub(crate) fn expecting(head: Option<u64>, rows: Vec<NewRow>) -> Batch {
    Batch { expect: Expect::Head(head.map(Seq)), ..batch(rows) }
}

pub(crate) fn decision(ordinal: u64, turn: u64, kind: DecisionKind, about: u64) -> DecisionRow {
    let body = if kind == DecisionKind::Revert { String::new() } else { format!("{{\"ordinal\":{ordinal}}}") };
    DecisionRow { ordinal, turn, kind, about, body }
}

pub(crate) fn turn(turn: u64, head: Option<u64>) -> TurnRow {
    let receipt = format!("{{\"turn\":{turn}}}");
    TurnRow { turn, head: head.map(Seq), spared: Tokens(turn * 10), receipt, at: NOW }
}

pub(crate) fn ticket(name: &str) -> Digest {
    Digest::of(name.as_bytes())
}

pub(crate) fn call(name: &str, turn: u64) -> OpenCall {
    let (receipt, input) = (format!("{{\"call\":\"{name}\"}}"), Some(format!("{{\"input\":\"{name}\"}}")));
    OpenCall { ticket: ticket(name), turn, receipt, input }
}

pub(crate) fn commit(expect: ReaderRow, decisions: Vec<DecisionRow>) -> Commit {
    let (contents, turns, erase, open, records) = (Vec::new(), Vec::new(), Vec::new(), None, Vec::new());
    Commit { expect, decisions, contents, turns, erase, open, records, at: NOW }
}

pub(crate) fn opening(expect: ReaderRow, name: &str) -> Commit {
    Commit { open: Some(call(name, expect.turns)), ..commit(expect, Vec::new()) }
}

pub(crate) fn answer(name: &str, number: u64, head: Option<u64>, produced: Batch) -> Acknowledge {
    Acknowledge { ticket: ticket(name), unopened: None, turn: turn(number, head), produced }
}

pub(crate) fn record(kind: RecordKind, key: &str, version: u64) -> Record {
    Record { kind, key: key.into(), version, body: format!("{{\"version\":{version}}}").into() }
}

pub(crate) fn all_back() -> Back {
    Back { strands: Vec::new(), below: None, rows: usize::MAX, tokens: Tokens(u64::MAX) }
}

pub(crate) fn appended(first: u64, last: u64) -> Appended {
    Appended { first: Some(Seq(first)), last: Some(Seq(last)), is_repeated: false }
}

pub(crate) fn places(rows: &[Row]) -> Vec<u64> {
    rows.iter().map(|row| row.seq.0).collect()
}

pub(crate) fn row_of(turns: u64, ordinal: u64) -> ReaderRow {
    ReaderRow { turns, ordinal }
}

/// The verbs on the usual tenant and reader, for what must succeed.
pub(crate) trait Told: Store {
    async fn make(&self, new: NewConversation) -> Conversation {
        self.create(&tenant(), new).await.expect("it can be made")
    }

    async fn say(&self, id: &str, rows: Vec<NewRow>) -> Appended {
        self.put(id, batch(rows)).await.expect("it can be appended")
    }

    async fn put(&self, id: &str, batch: Batch) -> Result<Appended, Error> {
        self.append(&tenant(), &name(id), batch).await
    }

    async fn told(&self, id: &str) -> Conversation {
        self.conversation(&tenant(), &name(id)).await.expect("it is there")
    }

    async fn all(&self, id: &str) -> Vec<Row> {
        self.forth(&tenant(), &name(id), Seq(0), usize::MAX).await.expect("it can be read")
    }

    async fn who(&self, id: &str) -> ReaderRow {
        self.reader(&tenant(), &name(id), &reader()).await.expect("it can be read")
    }

    async fn decide(&self, id: &str, what: Commit) -> Result<(), Error> {
        self.commit(&tenant(), &name(id), &reader(), what).await
    }

    async fn answered(&self, id: &str, what: Acknowledge) -> Result<Appended, Error> {
        self.acknowledge(&tenant(), &name(id), &reader(), what).await
    }
}

impl<S: Store> Told for S {}
