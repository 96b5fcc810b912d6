//! Everything that can be read of a conversation, so that two stores can be compared.

use super::op::{CONVERSATIONS, KEYS, READERS, TICKETS, id_of};
use crate::contract::make::*;
use recto::digest::Digest;
use recto::entry::{Millis, Text};
use recto::log::Tally;
use recto::{Seq, Tokens};
use recto_engine::store::{
    Back, ConversationId, DecisionRow, Decisions, ForkPoint, OpenCall, ReaderName, ReaderRow, Record, RecordKind, Row,
    State, Store, Tenant, TurnRow, Turns, Upto,
};

const PLACES: u64 = 24;

/// What a conversation looks like to whoever reads all of it.
#[derive(Debug, PartialEq)]
pub(super) enum Seen {
    /// There is none.
    Unknown,
    /// It was erased; what is left of it.
    Erased(Tally, Text, Text),
    /// It is there.
    Live(Box<Live>),
}

#[derive(Debug, PartialEq)]
pub(super) struct Live {
    row: (Text, Text, Text, Option<ForkPoint>, Tally, Millis, Millis),
    rows: Vec<Row>,
    stretches: Vec<Vec<u64>>,
    tallies: Vec<Tally>,
    first: Vec<Option<Seq>>,
    readers: Vec<(ReaderName, ReaderRow)>,
    decisions: Vec<Vec<DecisionRow>>,
    turns: Vec<Vec<TurnRow>>,
    open: Vec<Option<OpenCall>>,
    contents: Vec<(Digest, Text)>,
    kept: Vec<Record>,
    forks: Vec<ConversationId>,
}

/// Reads all conversations.
pub(super) async fn seen<S: Store>(store: &S, tenant: &Tenant) -> Vec<Seen> {
    let mut all = Vec::new();
    for number in 0..CONVERSATIONS {
        all.push(Seen::of(store, tenant, id_of(number)).await);
    }
    all
}

impl Seen {
    pub(super) async fn of<S: Store>(store: &S, tenant: &Tenant, id: ConversationId) -> Seen {
        match store.conversation(tenant, &id).await {
            Err(error) if error.is_not_found() => Seen::Unknown,
            Err(error) => panic!("{error}"),
            Ok(told) if told.state != State::Live => Seen::Erased(told.tally, told.title, told.meta),
            Ok(told) => {
                let row = (told.tokenizer, told.title, told.meta, told.from, told.tally, told.created, told.updated);
                let at: Vec<Seq> = (0..PLACES).map(Seq).collect();
                let digests = ['x', 'y', 'z'].map(|letter| long(letter).hash);
                let mut contents = store.contents(tenant, &id, digests.to_vec()).await.unwrap();
                contents.sort();
                let rows = store.rows(tenant, &id, at.clone()).await.unwrap();
                let forth = store.forth(tenant, &id, Seq(0), usize::MAX).await.unwrap();
                assert!(rows.iter().all(|row| forth.contains(row)), "single rows are those of the whole");
                Seen::Live(Box::new(Live {
                    row,
                    rows: forth,
                    stretches: stretches(store, tenant, &id).await,
                    tallies: store.tallies(tenant, &id, at).await.unwrap(),
                    first: first(store, tenant, &id).await,
                    readers: store.readers(tenant, &id).await.unwrap(),
                    decisions: decisions(store, tenant, &id).await,
                    turns: turns(store, tenant, &id).await,
                    open: open(store, tenant, &id).await,
                    contents,
                    kept: store.kept(tenant, &id, RecordKind::Session).await.unwrap(),
                    forks: store.forks(tenant, &id).await.unwrap(),
                }))
            }
        }
    }
}

async fn stretches<S: Store>(store: &S, tenant: &Tenant, id: &ConversationId) -> Vec<Vec<u64>> {
    let asked = [
        all_back(),
        Back { strands: vec![0], ..all_back() },
        Back { strands: vec![1, 2], below: Some(Seq(5)), ..all_back() },
        Back { strands: vec![3, 0], rows: 2, ..all_back() },
        Back { below: Some(Seq(4)), tokens: Tokens(200), ..all_back() },
        Back { tokens: Tokens(1), ..all_back() },
    ];
    let mut stretches = Vec::new();
    for back in asked {
        stretches.push(places(&store.back(tenant, id, back).await.unwrap()));
    }
    for (from, rows) in [(0, 2), (3, 3), (6, 99)] {
        stretches.push(places(&store.forth(tenant, id, Seq(from), rows).await.unwrap()));
    }
    stretches
}

async fn first<S: Store>(store: &S, tenant: &Tenant, id: &ConversationId) -> Vec<Option<Seq>> {
    let mut first = Vec::new();
    for (strand, from) in [(0, 0), (0, 3), (1, 0), (1, 4), (2, 2), (3, 0), (9, 0)] {
        first.push(store.first(tenant, id, strand, Seq(from)).await.unwrap());
    }
    first
}

async fn decisions<S: Store>(store: &S, tenant: &Tenant, id: &ConversationId) -> Vec<Vec<DecisionRow>> {
    let asked = [
        Decisions::After { ordinal: 0, rows: usize::MAX },
        Decisions::After { ordinal: 2, rows: 2 },
        Decisions::Floors(1),
        Decisions::Floors(2),
        Decisions::Standing { from: Seq(4), turn: 2, since: 3 },
        Decisions::About(vec![Seq(1), Seq(2), Seq(5)]),
    ];
    let mut read = Vec::new();
    for reader in READERS.map(ReaderName::from) {
        for which in &asked {
            for ordinal in [i64::MAX as u64, 4] {
                let upto = Upto { ordinal, ..Upto::NOW };
                read.push(store.decisions(tenant, id, &reader, upto, which.clone()).await.unwrap());
            }
        }
    }
    read
}

async fn turns<S: Store>(store: &S, tenant: &Tenant, id: &ConversationId) -> Vec<Vec<TurnRow>> {
    let asked = [
        Turns::Since { turn: 0, rows: usize::MAX },
        Turns::Since { turn: 1, rows: 1 },
        Turns::From(Seq(2)),
        Turns::FirstWith(vec![Seq(4), Seq(0), Seq(1)]),
        Turns::One(1),
    ];
    let mut read = Vec::new();
    for reader in READERS.map(ReaderName::from) {
        for which in &asked {
            for turn in [i64::MAX as u64, 2] {
                let upto = Upto { turn, ..Upto::NOW };
                read.push(store.turns(tenant, id, &reader, upto, which.clone()).await.unwrap());
            }
        }
    }
    read
}

async fn open<S: Store>(store: &S, tenant: &Tenant, id: &ConversationId) -> Vec<Option<OpenCall>> {
    let mut read = Vec::new();
    for reader in READERS.map(ReaderName::from) {
        for number in 0..TICKETS.max(KEYS) {
            read.push(store.open(tenant, id, &reader, ticket(&number.to_string())).await.unwrap());
        }
    }
    read
}
