//! What may happen to a few conversations, and what it is in words that a store takes.

use crate::contract::make::*;
use proptest::prelude::*;
use recto::entry::{Millis, Text};
use recto::{Entry, Role, Seq, Tokens};
use recto_engine::Error;
use recto_engine::store::memory::Memory;
use recto_engine::store::{
    Acknowledge, Batch, Commit, ConversationId, DecisionKind, DecisionRow, EraseEntries, Expect, ForkPoint, Forks,
    NewConversation, NewRow, ReaderName, ReaderRow, Record, RecordKind, Remains, Store, Tenant, TurnRow,
};

pub(super) const CONVERSATIONS: usize = 6;
pub(super) const READERS: [&str; 2] = ["main", "other"];
pub(super) const TICKETS: u8 = 3;
pub(super) const KEYS: u8 = 3;
/// Divided by the number of conversations that are there, any of them is as likely.
const PICKS: usize = 600;
const PLACES: u8 = 12;
const REFUSED: &str = "refused: ";
const KINDS: [DecisionKind; 6] = [
    DecisionKind::Entry,
    DecisionKind::Floor,
    DecisionKind::Pin,
    DecisionKind::Cut,
    DecisionKind::Expand,
    DecisionKind::Revert,
];

/// Every verb that writes; a fork counts as one of its own.
pub(super) const VERBS: [&str; 9] =
    ["create", "fork", "append", "commit", "acknowledge", "abandon", "keep", "erase entries", "erase"];

/// Something that happens to a conversation; small numbers that mean something only where it happens.
#[derive(Clone, Debug)]
pub(super) struct Op {
    /// Which conversation; mostly one that is there.
    pick: usize,
    what: What,
}

#[derive(Clone, Debug)]
enum What {
    Create,
    Fork {
        of: usize,
        place: u8,
    },
    Append(Said),
    Commit {
        reader: usize,
        is_stale: bool,
        decisions: Vec<(usize, u8)>,
        turns: u8,
        open: Option<u8>,
        content: Option<char>,
    },
    Acknowledge {
        reader: usize,
        is_stale: bool,
        ticket: u8,
        said: Said,
        is_kept: bool,
    },
    Abandon {
        reader: usize,
        ticket: u8,
    },
    Keep {
        key: u8,
        is_stale: bool,
    },
    EraseEntries {
        places: Vec<u8>,
        decision: Option<(usize, u8)>,
    },
    Erase {
        forks: Forks,
    },
}

#[derive(Clone, Debug)]
struct Said {
    rows: Vec<(u8, u8)>,
    expect: u8,
    key: Option<(u8, bool)>,
}

/// Returns what every life begins with: a conversation in which something was said.
pub(super) fn beginning() -> [Op; 2] {
    let rows = vec![(0, 2), (1, 2), (2, 2), (3, 2), (5, 2), (0, 2)];
    [Op { pick: 1, what: What::Create }, Op { pick: 1, what: What::Append(Said { rows, expect: 9, key: None }) }]
}

/// Returns anything that may happen; what makes and fills is likelier than what erases.
pub(super) fn op() -> impl Strategy<Value = Op> {
    let reader = 0..READERS.len();
    let stale = prop::bool::weighted(0.1);
    let decisions = prop::collection::vec((0..KINDS.len(), 0..PLACES), 0..4);
    let content = prop::option::of(prop::char::range('x', 'z'));
    let what = prop_oneof![
        3 => Just(What::Create),
        4 => (0..PICKS, any::<u8>()).prop_map(|(of, place)| What::Fork { of, place }),
        10 => said().prop_map(What::Append),
        6 => (reader.clone(), stale, decisions, 0..3u8, prop::option::weighted(0.7, 0..TICKETS), content).prop_map(
            |(reader, is_stale, decisions, turns, open, content)| What::Commit {
                reader, is_stale, decisions, turns, open, content
            }
        ),
        5 => (reader.clone(), stale, 0..TICKETS, said(), any::<bool>()).prop_map(
            |(reader, is_stale, ticket, said, is_kept)| What::Acknowledge { reader, is_stale, ticket, said, is_kept }
        ),
        1 => (reader.clone(), 0..TICKETS).prop_map(|(reader, ticket)| What::Abandon { reader, ticket }),
        1 => (0..KEYS, stale).prop_map(|(key, is_stale)| What::Keep { key, is_stale }),
        2 => (prop::collection::vec(any::<u8>(), 0..3), prop::option::weighted(0.3, (reader, any::<u8>())))
            .prop_map(|(places, decision)| What::EraseEntries { places, decision }),
        1 => prop_oneof![3 => Just(Forks::Refuse), 1 => Just(Forks::Erase)].prop_map(|forks| What::Erase { forks }),
    ];
    (0..PICKS, what).prop_map(|(pick, what)| Op { pick, what })
}

fn said() -> impl Strategy<Value = Said> {
    let rows = prop::collection::vec((0..6u8, 0..12u8), 0..4);
    let key = prop::option::weighted(0.4, (0..KEYS, prop::bool::weighted(0.8)));
    (rows, 0..10u8, key).prop_map(|(rows, expect, key)| Said { rows, expect, key })
}

/// What is asked of a store.
#[derive(Debug)]
pub(super) enum Verb {
    Create(NewConversation),
    Append(ConversationId, Batch),
    Commit(ConversationId, ReaderName, Commit),
    Acknowledge(ConversationId, ReaderName, Acknowledge),
    Abandon(ConversationId, ReaderName, recto::digest::Digest),
    Keep(ConversationId, Record),
    EraseEntries(ConversationId, EraseEntries),
    Erase(ConversationId, Forks),
}

impl Verb {
    /// Asks it, and tells the answer, in words that don't depend on the store's.
    pub(super) async fn on<S: Store>(&self, store: &S, tenant: &Tenant) -> String {
        match self {
            Verb::Create(new) => {
                let made = store.create(tenant, new.clone()).await;
                answer(made.map(|it| (it.id, it.state, it.title, it.meta, it.tokenizer, it.from, it.tally, it.created)))
            }
            Verb::Append(id, batch) => answer(store.append(tenant, id, batch.clone()).await),
            Verb::Commit(id, reader, commit) => answer(store.commit(tenant, id, reader, commit.clone()).await),
            Verb::Acknowledge(id, reader, it) => answer(store.acknowledge(tenant, id, reader, it.clone()).await),
            Verb::Abandon(id, reader, ticket) => answer(store.abandon(tenant, id, reader, *ticket).await),
            Verb::Keep(id, record) => answer(store.keep(tenant, id, record.clone()).await),
            Verb::EraseEntries(id, erase) => {
                answer(store.erase_entries(tenant, id, erase.clone()).await.map(|it| it.entries))
            }
            Verb::Erase(id, forks) => answer(store.erase(tenant, id, *forks).await.map(|mut it| {
                it.conversations.sort();
                it
            })),
        }
    }

    /// Returns the conversation that it is asked of.
    pub(super) fn conversation(&self) -> ConversationId {
        match self {
            Verb::Create(NewConversation { id, .. })
            | Verb::Append(id, _)
            | Verb::Commit(id, ..)
            | Verb::Acknowledge(id, ..)
            | Verb::Abandon(id, ..)
            | Verb::Keep(id, _)
            | Verb::EraseEntries(id, _)
            | Verb::Erase(id, _) => id.clone(),
        }
    }

    pub(super) fn name(&self) -> &'static str {
        match self {
            Verb::Create(NewConversation { from: None, .. }) => "create",
            Verb::Create(_) => "fork",
            Verb::Append(..) => "append",
            Verb::Commit(..) => "commit",
            Verb::Acknowledge(..) => "acknowledge",
            Verb::Abandon(..) => "abandon",
            Verb::Keep(..) => "keep",
            Verb::EraseEntries(..) => "erase entries",
            Verb::Erase(..) => "erase",
        }
    }

    /// Returns whether its success is always something new; an append of nothing may or may not count as one.
    pub(super) fn must_write(&self) -> bool {
        match self {
            Verb::Append(_, batch) => !batch.rows.is_empty(),
            Verb::Commit(_, _, commit) => {
                !commit.decisions.is_empty() || !commit.turns.is_empty() || commit.open.is_some()
            }
            Verb::EraseEntries(..) => false,
            _ => true,
        }
    }
}

fn answer<T: std::fmt::Debug>(result: Result<T, Error>) -> String {
    match result {
        Ok(answer) => format!("{answer:?}"),
        Err(error) => {
            let kinds = [
                ("conflict", error.is_conflict()),
                ("not found", error.is_not_found()),
                ("exists", error.is_exists()),
                ("erased", error.is_erased()),
                ("input", error.is_input()),
                ("defect", error.is_defect()),
            ];
            let kind = kinds.iter().find(|(_, is_it)| *is_it).map_or_else(|| error.to_string(), |it| it.0.to_string());
            format!("{REFUSED}{kind} {:?}", error.forks())
        }
    }
}

/// Returns whether an answer is a refusal.
pub(super) fn is_refused(answer: &str) -> bool {
    answer.starts_with(REFUSED)
}

impl Op {
    /// Says what it is where the conversations are as the model has them.
    pub(super) async fn verb(&self, model: &Memory, tenant: &Tenant, step: usize) -> Verb {
        let at = Millis(NOW.0 + step as i64);
        let id = any_of(model, tenant, self.pick).await;
        let head = head(model, tenant, &id).await;
        match &self.what {
            What::Create => {
                Verb::Create(NewConversation { at, ..new(unused(model, tenant, self.pick).await.as_str()) })
            }
            What::Fork { of, place } => {
                let of = any_of(model, tenant, *of).await;
                let upto = within(*place, places_of(model, tenant, &of).await).checked_sub(1).map(Seq);
                let from = Some(ForkPoint { conversation: of, upto });
                Verb::Create(NewConversation { at, from, ..new(unused(model, tenant, self.pick).await.as_str()) })
            }
            What::Append(said) => Verb::Append(id, said.batch(head, at)),
            What::Commit { reader, .. } => {
                let reader = ReaderName::from(READERS[*reader]);
                let row = row_now(model, tenant, &id, &reader).await;
                Verb::Commit(id, reader, self.what.commit(row, head, at))
            }
            What::Acknowledge { reader, is_stale, ticket: number, said, is_kept } => {
                let reader = ReaderName::from(READERS[*reader]);
                let row = row_now(model, tenant, &id, &reader).await;
                let open = open_now(model, tenant, &id, &reader, *number).await;
                let (number, turn) = open.unwrap_or((*number, row.turns));
                let version = next_version(model, tenant, &id, "s").await;
                let records = is_kept.then(|| record(RecordKind::Session, "s", version)).into_iter().collect();
                let turn = turn_at(turn + u64::from(*is_stale), head, at);
                let ticket = ticket(&number.to_string());
                let produced = Batch { records, ..said.batch(head, at) };
                Verb::Acknowledge(id, reader, Acknowledge { ticket, unopened: None, turn, produced })
            }
            What::Abandon { reader, ticket: number } => {
                Verb::Abandon(id, ReaderName::from(READERS[*reader]), ticket(&number.to_string()))
            }
            What::Keep { key, is_stale } => {
                let key = key.to_string();
                let version = next_version(model, tenant, &id, &key).await + u64::from(*is_stale);
                Verb::Keep(id, record(RecordKind::Session, &key, version))
            }
            What::EraseEntries { places, decision } => {
                let all = places_of(model, tenant, &id).await;
                let places = places.iter().map(|place| within(*place, all)).collect();
                let reader = ReaderName::from(READERS[decision.map_or(0, |it| it.0)]);
                let row = row_now(model, tenant, &id, &reader).await;
                let decision = decision.map(|(_, ordinal)| (reader, within(ordinal, row.ordinal + 1)));
                Verb::EraseEntries(id.clone(), erasing(&id, places, decision))
            }
            What::Erase { forks } => Verb::Erase(id, *forks),
        }
    }
}

impl What {
    fn commit(&self, row: ReaderRow, head: Option<Seq>, at: Millis) -> Commit {
        let What::Commit { is_stale, decisions, turns, open, content, .. } = self else {
            panic!("{self:?} is no commit");
        };
        Commit {
            expect: ReaderRow { ordinal: row.ordinal + u64::from(*is_stale), ..row },
            decisions: (row.ordinal + 1..).zip(decisions).map(|(it, made)| decided(it, row, *made)).collect(),
            contents: content.iter().flat_map(|letter| long(*letter).large).collect(),
            turns: (row.turns..row.turns + u64::from(*turns)).map(|it| turn_at(it, head, at)).collect(),
            erase: Vec::new(),
            open: open.map(|ticket| call(&ticket.to_string(), row.turns + u64::from(*turns))),
            records: Vec::new(),
            at,
        }
    }
}

fn erasing(id: &ConversationId, places: Vec<u64>, quoting: Option<(ReaderName, u64)>) -> EraseEntries {
    let remains = |place: u64| Remains { seq: Seq(place), body: "{}".into(), counts: String::new() };
    let blank = |(reader, ordinal): (ReaderName, u64)| {
        let row = DecisionRow { body: "{}".into(), ..decision(ordinal, 0, KINDS[0], 0) };
        (id.clone(), reader, row)
    };
    EraseEntries {
        remains: places.into_iter().map(remains).collect(),
        decisions: quoting.map(blank).into_iter().collect(),
    }
}

impl Said {
    fn batch(&self, head: Option<Seq>, at: Millis) -> Batch {
        let mut next = head.map_or(0, |head| head.0 + 1);
        let rows = self.rows.iter().map(|(kind, gap)| {
            // Mostly the next place, sometimes one further on, rarely one that is taken.
            let seq = match gap {
                0 => Some(next + 2),
                1 => Some(next.saturating_sub(1)),
                _ => None,
            };
            next = seq.unwrap_or(next) + 1;
            NewRow { seq: seq.map(Seq), ..said_by(*kind) }
        });
        let rows: Vec<NewRow> = rows.collect();
        let expect = match self.expect {
            0 => Expect::Head(None),
            1 => Expect::Head(Some(Seq(2))),
            2..=4 => Expect::Head(head),
            _ => Expect::Any,
        };
        let key = self.key.map(|(key, is_same)| {
            let hash = if is_same { ticket("same") } else { ticket("another") };
            (Text::from(key.to_string()), hash)
        });
        Batch { key, ..Batch::new(expect, rows, at) }
    }
}

fn said_by(kind: u8) -> NewRow {
    match kind {
        0 => user("ask"),
        1 => trace("work"),
        2 => summary("so far"),
        3 => long('x'),
        4 => NewRow { is_erased: true, ..assistant("gone") },
        _ => row(Entry { role: Role::Tool, edge: true, ..Entry::user("found") }),
    }
}

fn decided(ordinal: u64, row: ReaderRow, (kind, about): (usize, u8)) -> DecisionRow {
    let about = match KINDS[kind] {
        // Only what is there can be taken back.
        DecisionKind::Revert => u64::from(about) % ordinal,
        _ => about.into(),
    };
    decision(ordinal, row.turns, KINDS[kind], about)
}

fn turn_at(number: u64, head: Option<Seq>, at: Millis) -> TurnRow {
    TurnRow { head, at, spared: Tokens(number), ..turn(number, None) }
}

pub(super) fn id_of(number: usize) -> ConversationId {
    name(&format!("c{number}"))
}

/// Returns a conversation that is there, or now and then any other.
async fn any_of(model: &Memory, tenant: &Tenant, pick: usize) -> ConversationId {
    let live = model.list(tenant, None, CONVERSATIONS).await.expect("they can be listed");
    match live.get(pick % live.len().max(1)) {
        Some(one) if !pick.is_multiple_of(19) => one.id.clone(),
        _ => id_of(pick % CONVERSATIONS),
    }
}

/// Returns the first name that nobody has, or now and then any other.
async fn unused(model: &Memory, tenant: &Tenant, pick: usize) -> ConversationId {
    for id in (0..CONVERSATIONS).map(id_of) {
        if !pick.is_multiple_of(7) && model.conversation(tenant, &id).await.is_err() {
            return id;
        }
    }
    id_of(pick % CONVERSATIONS)
}

/// Returns how many places there are, with one behind the head.
async fn places_of(model: &Memory, tenant: &Tenant, id: &ConversationId) -> u64 {
    head(model, tenant, id).await.map_or(1, |head| head.0 + 2)
}

fn within(number: u8, numbers: u64) -> u64 {
    u64::from(number) % (numbers + 1)
}

/// Returns an open call, the one with this number if it is.
async fn open_now(
    model: &Memory,
    tenant: &Tenant,
    id: &ConversationId,
    reader: &ReaderName,
    first: u8,
) -> Option<(u8, u64)> {
    for number in (0..TICKETS).map(|number| (first + number) % TICKETS) {
        if let Some(open) = model.open(tenant, id, reader, ticket(&number.to_string())).await.ok().flatten() {
            return Some((number, open.turn));
        }
    }
    None
}

async fn head(model: &Memory, tenant: &Tenant, id: &ConversationId) -> Option<Seq> {
    model.conversation(tenant, id).await.ok().and_then(|it| it.tally.head())
}

async fn row_now(model: &Memory, tenant: &Tenant, id: &ConversationId, reader: &ReaderName) -> ReaderRow {
    model.reader(tenant, id, reader).await.unwrap_or_default()
}

async fn next_version(model: &Memory, tenant: &Tenant, id: &ConversationId, key: &str) -> u64 {
    let kept = model.kept(tenant, id, RecordKind::Session).await.unwrap_or_default();
    kept.iter().find(|it| &*it.key == key).map_or(1, |it| it.version + 1)
}
