//! The engine: one façade over a store and the compiler. Command line and server call only this.

mod aged;
mod asked;
mod driven;
mod erase;
mod keys;
mod exchange;
mod live;
mod pages;
mod port;
mod recalled;
mod secrets;
mod sessions;
mod wanted;
mod warm;

use crate::body;
use crate::error::{Error, Kind};
use crate::lens::{self, Lens};
use crate::session::Tasks;
use crate::store::any::Any;
use crate::store::sqlite::{Report, Sqlite};
use crate::store::{
    Appended, BATCH_ENTRIES_MAX, Back, Commit, Conversation, ConversationId, DecisionRow, Decisions, Expect, ForkPoint,
    NewConversation, ReaderName, ReaderRow, Row, State, Store, Tenant, Upto,
};
use crate::summarize::Summarizer;
use recto::digest::Digest;
use recto::edit::{Change, Decision, Edit, Reason};
use recto::entry::{Millis, Text};
use recto::log::Counted;
use recto::redact::Redact;
use recto::{Count, Entry, Seq, Span, Tokenizer, Tokens};
use serde_json::Value;
use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::{SystemTime, UNIX_EPOCH};
use tokio::sync::{Notify, OnceCell};

pub use aged::{Aged, LOOKED_MAX, Looked};
pub use asked::Asked;
pub use driven::{Driven, How};
pub use erase::Gone;
pub use exchange::{Beginning, Begun, Behind, Finished, Saying};
pub use keys::KEY_PREFIX;
pub use live::{Subscription, Told};
pub use pages::{Again, Answer, Give, Turned};
pub use port::{EXPORT_VERSION, Imported};
pub use recalled::{Hit, Searched};
pub use wanted::{Became, Begin};

/// Of how many conversations it is remembered what counts them.
const TOKENIZERS_MAX: usize = 10_000;
/// How often a change is tried again when somebody else was quicker.
const TRIES_MAX: usize = 64;

/// Where a conversation is: whose, and what it is called.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct At {
    /// Whose it is.
    pub tenant: Tenant,
    /// What it is called.
    pub conversation: ConversationId,
}

impl At {
    /// Returns the place of a conversation.
    pub fn new(tenant: &Tenant, conversation: impl Into<ConversationId>) -> At {
        At { tenant: tenant.clone(), conversation: conversation.into() }
    }
}

/// A conversation that is to be made.
#[derive(Clone, Debug, Default)]
pub struct Opening {
    /// What a person calls it.
    pub title: String,
    /// The host's own data.
    pub meta: serde_json::Map<String, Value>,
    /// What counts its entries; `None` is the vocabulary of current OpenAI models.
    pub tokenizer: Option<Tokenizer>,
}

/// Entries to append, at once or not at all.
#[derive(Clone, Debug)]
pub struct Append {
    /// The entries.
    pub entries: Vec<Entry>,
    /// What must hold.
    pub expect: Expect,
    /// The caller's name for this append: the same again is answered with the first result.
    pub key: Option<Text>,
}

impl Append {
    /// Returns an append that goes behind whatever is there.
    pub fn any(entries: impl Into<Vec<Entry>>) -> Append {
        Append { entries: entries.into(), expect: Expect::Any, key: None }
    }

    /// Returns an append that is refused unless this is the newest entry.
    pub fn after(head: Option<Seq>, entries: impl Into<Vec<Entry>>) -> Append {
        Append { entries: entries.into(), expect: Expect::Head(head), key: None }
    }

    /// Names it, so that it can be repeated safely.
    #[must_use]
    pub fn keyed(self, key: impl Into<Text>) -> Append {
        Append { key: Some(key.into()), ..self }
    }
}

/// The façade. Cloning is cheap and shares everything.
pub struct Engine<S> {
    inner: Arc<Inner<S>>,
    /// Who makes summaries, if anybody does.
    summarizer: Option<Summarizer>,
    /// What is not even written down.
    at_rest: Option<Redact>,
}

struct Inner<S> {
    store: S,
    /// Wakes subscribers in this process.
    changed: Notify,
    /// What counts the entries of conversations that were appended to; for a conversation that never changes.
    tokenizers: Mutex<HashMap<At, Tokenizer>>,
    pages: pages::Cache,
    /// What was read for the last calls.
    warmth: warm::Warmth,
    /// What in this process goes on with sessions.
    tasks: Arc<Tasks>,
    /// The conversations whose entries are being made findable.
    indexing: recalled::Indexing,
    /// What the store has drawn for the placeholders of secrets, once it was asked for.
    secret: OnceCell<Digest>,
    screens: secrets::Screens,
}

impl<S> Clone for Engine<S> {
    fn clone(&self) -> Engine<S> {
        Engine { inner: self.inner.clone(), summarizer: self.summarizer.clone(), at_rest: self.at_rest.clone() }
    }
}

impl<S> std::fmt::Debug for Engine<S> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Engine")
    }
}

impl<S: Store> Engine<S> {
    /// Returns an engine over a store.
    pub fn over(store: S) -> Engine<S> {
        Engine {
            summarizer: None,
            at_rest: None,
            inner: Arc::new(Inner {
                store,
                changed: Notify::new(),
                tokenizers: Mutex::default(),
                pages: pages::Cache::default(),
                warmth: warm::Warmth::default(),
                tasks: Arc::default(),
                indexing: recalled::Indexing::default(),
                secret: OnceCell::new(),
                screens: secrets::Screens::default(),
            }),
        }
    }

    /// Returns its store, for upkeep.
    pub fn store(&self) -> &S {
        &self.inner.store
    }

    /// Makes a conversation; one of this name that exists is an error.
    pub async fn open(&self, at: &At, opening: Opening) -> Result<Conversation, Error> {
        let new = self.new_conversation(at, &opening).await?;
        self.store().create(&at.tenant, new).await
    }

    /// Returns a conversation's row; one that was erased is an error.
    pub async fn conversation(&self, at: &At) -> Result<Conversation, Error> {
        let row = self.store().conversation(&at.tenant, &at.conversation).await?;
        if row.state == State::Live {
            return Ok(row);
        }
        Err(Kind::Erased { conversation: at.conversation.clone() }.into())
    }

    /// Says anew what a person calls a conversation, and what data of the host's goes with it.
    pub async fn describe(&self, at: &At, title: &str, meta: serde_json::Map<String, Value>) -> Result<(), Error> {
        let (mut title, mut meta) = (Text::from(title), Text::from(Value::Object(meta).to_string()));
        if let Some(rest) = self.rest_screen(&at.tenant).await? {
            (title, meta) = (rest.text(&title).into(), rest.json(&meta).into());
        }
        self.store().describe(&at.tenant, &at.conversation, title, meta).await?;
        self.inner.changed.notify_waiters();
        Ok(())
    }

    /// Lists conversations in the order of their names, after one of them.
    pub async fn list(
        &self,
        tenant: &Tenant,
        after: Option<&ConversationId>,
        rows: usize,
    ) -> Result<Vec<Conversation>, Error> {
        self.store().list(tenant, after, rows).await
    }

    /// Lists the readers of a conversation.
    pub async fn readers(&self, at: &At) -> Result<Vec<(ReaderName, ReaderRow)>, Error> {
        self.store().readers(&at.tenant, &at.conversation).await
    }

    /// Appends entries. When this returns, they are on disk.
    pub async fn append(&self, at: &At, append: Append) -> Result<Appended, Error> {
        let counter = self.counter_of(at).await?;
        let batch = self.batch(at, append, &counter).await?;
        let appended = self.store().append(&at.tenant, &at.conversation, batch).await?;
        self.inner.changed.notify_waiters();
        Ok(appended)
    }

    /// What counts the entries of a conversation, which is read only once.
    async fn counter_of(&self, at: &At) -> Result<Arc<dyn Count>, Error> {
        let known = self.inner.tokenizers.lock().ok().and_then(|known| known.get(at).copied());
        if let Some(tokenizer) = known {
            return Ok(Arc::new(tokenizer));
        }
        let tokenizer = tokenizer(&self.conversation(at).await?)?;
        if let Ok(mut known) = self.inner.tokenizers.lock() {
            if known.len() >= TOKENIZERS_MAX {
                known.clear();
            }
            known.insert(at.clone(), tokenizer);
        }
        Ok(Arc::new(tokenizer))
    }

    /// Reads entries in order, from a place on. What they show holds no secrets; their originals do.
    pub async fn read(&self, at: &At, from: Seq, rows: usize) -> Result<Vec<Arc<Counted>>, Error> {
        let rows: Vec<Row> = self.store().forth(&at.tenant, &at.conversation, from, rows).await?;
        self.shown(at, &rows).await
    }

    /// Reads entries from the newest back, or from those before a place.
    pub async fn read_back(&self, at: &At, below: Option<Seq>, rows: usize) -> Result<Vec<Arc<Counted>>, Error> {
        let back = Back { strands: Vec::new(), below, rows, tokens: Tokens(u64::MAX) };
        let rows: Vec<Row> = self.store().back(&at.tenant, &at.conversation, back).await?;
        self.shown(at, &rows).await
    }

    async fn shown(&self, at: &At, rows: &[Row]) -> Result<Vec<Arc<Counted>>, Error> {
        let (counter, screen) = (self.counter_of(at).await?, self.strict_screen(&at.tenant, &Redact::nothing()).await?);
        rows.iter().map(|row| body::read(row, &screen, &*counter)).collect()
    }

    /// Forks a conversation behind an entry, or at its end. Nothing is copied.
    pub async fn fork(
        &self,
        at: &At,
        new: impl Into<ConversationId>,
        upto: Option<Seq>,
    ) -> Result<Conversation, Error> {
        let parent = self.conversation(at).await?;
        let from = ForkPoint { conversation: at.conversation.clone(), upto: upto.or_else(|| parent.tally.head()) };
        let Conversation { tokenizer, title, meta, .. } = parent;
        let new = NewConversation { id: new.into(), tokenizer, title, meta, at: now(), from: Some(from) };
        let told = self.remembered(at).await?.secrets;
        let made = self.store().create(&at.tenant, new).await?;
        if !told.is_empty() {
            self.remember(&At { conversation: made.id.clone(), ..at.clone() }, &told).await?;
        }
        Ok(made)
    }

    /// Returns the decisions of a reader after one of them, and what was taken back, in order.
    pub async fn decisions(&self, at: &At, reader: &ReaderName) -> Result<Vec<Decision>, Error> {
        let mut rows: Vec<DecisionRow> = Vec::new();
        loop {
            let which = Decisions::After { ordinal: rows.last().map_or(0, |row| row.ordinal), rows: BATCH_ENTRIES_MAX };
            let page = self.store().decisions(&at.tenant, &at.conversation, reader, Upto::NOW, which).await?;
            if page.is_empty() {
                return lens::made(rows);
            }
            rows.extend(page);
        }
    }

    /// Keeps a stretch of entries from ever being reduced for a reader.
    pub async fn pin(&self, at: &At, reader: &ReaderName, span: Span) -> Result<(), Error> {
        let head = self.conversation(at).await?.tally.head();
        if span.first > span.last || Some(span.last) > head {
            let head = head.map_or("empty".to_string(), |head| format!("at {head}"));
            return Err(recto::Error::input(format!("{span} can't be pinned: the log ends {head}")).into());
        }
        let (before, after, due) = (Tokens(0), Tokens(0), None);
        let edit = Edit { change: Change::Pin(span), by: "pin".into(), why: Reason::Pinned, before, after, due };
        self.decide(at, reader, |row| Ok(lens::written(std::slice::from_ref(&edit), Digest::default(), row))).await
    }

    /// Takes back every pin of a reader that touches a stretch, and returns how many there were.
    pub async fn unpin(&self, at: &At, reader: &ReaderName, span: Span) -> Result<usize, Error> {
        let touches = |it: &Decision| {
            let is_pin = matches!(it.edit.change, Change::Pin(pin) if pin.first <= span.last && span.first <= pin.last);
            is_pin && it.reverted.is_none()
        };
        let pins: Vec<u64> =
            self.decisions(at, reader).await?.iter().filter(|it| touches(it)).map(|it| it.ordinal).collect();
        for ordinal in &pins {
            self.revert(at, reader, *ordinal).await?;
        }
        Ok(pins.len())
    }

    /// Takes a decision back; it stays on record, and what it touched is not reduced again.
    pub async fn revert(&self, at: &At, reader: &ReaderName, ordinal: u64) -> Result<(), Error> {
        let about = |what: String| Error::from(recto::Error::input(what));
        let none = || about(format!("reader {:?} has no decision {ordinal}", reader.as_str()));
        let before = ordinal.checked_sub(1).ok_or_else(none)?;
        for _ in 0..TRIES_MAX {
            let row = self.store().reader(&at.tenant, &at.conversation, reader).await?;
            let which = Decisions::After { ordinal: before, rows: BATCH_ENTRIES_MAX };
            let rows = self.store().decisions(&at.tenant, &at.conversation, reader, Upto::NOW, which).await?;
            let decision = lens::made(rows)?.into_iter().find(|it| it.ordinal == ordinal).ok_or_else(none)?;
            if decision.reverted.is_some() {
                return Err(about(format!("decision {ordinal} was reverted already")));
            }
            match self.commit(at, reader, row, vec![lens::revert(ordinal, row)]).await {
                Err(error) if error.is_conflict() => continue,
                done => return done,
            }
        }
        Err(too_busy())
    }

    /// Records decisions that are made from a reader's row as it is.
    async fn decide(
        &self,
        at: &At,
        reader: &ReaderName,
        decisions: impl Fn(ReaderRow) -> Result<Vec<DecisionRow>, Error>,
    ) -> Result<(), Error> {
        for _ in 0..TRIES_MAX {
            let row = self.store().reader(&at.tenant, &at.conversation, reader).await?;
            match self.commit(at, reader, row, decisions(row)?).await {
                Err(error) if error.is_conflict() => continue,
                done => return done,
            }
        }
        Err(too_busy())
    }

    async fn commit(
        &self,
        at: &At,
        reader: &ReaderName,
        expect: ReaderRow,
        decisions: Vec<DecisionRow>,
    ) -> Result<(), Error> {
        let (contents, turns, erase, open, records) = (Vec::new(), Vec::new(), Vec::new(), None, Vec::new());
        let commit = Commit { expect, decisions, contents, turns, erase, open, records, at: now() };
        self.store().commit(&at.tenant, &at.conversation, reader, commit).await?;
        self.inner.changed.notify_waiters();
        Ok(())
    }

    /// A conversation that is about to be made. Its title is read by many, so it holds no secrets.
    async fn new_conversation(&self, at: &At, opening: &Opening) -> Result<NewConversation, Error> {
        let screen = self.strict_screen(&at.tenant, &Redact::nothing()).await?;
        let title = screen.text(&opening.title).into();
        let meta = serde_json::to_string(&opening.meta).expect("a map of values is plain data");
        let meta = match self.rest_screen(&at.tenant).await? {
            Some(rest) => rest.json(&meta).into(),
            None => meta.into(),
        };
        let tokenizer = opening.tokenizer.unwrap_or(Tokenizer::O200k).as_str().into();
        Ok(NewConversation { id: at.conversation.clone(), tokenizer, title, meta, at: now(), from: None })
    }

    async fn lens<'a>(&'a self, at: &'a At, reader: &'a ReaderName, upto: Upto) -> Result<Lens<'a, S>, Error> {
        Lens::open(self.store(), &at.tenant, &at.conversation, reader, upto).await
    }
}

impl Engine<Sqlite> {
    /// Checks everything that is stored; `progress` hears how many entries were looked at.
    pub async fn check(&self, progress: impl FnMut(u64) + Send + 'static) -> Result<Report, Error> {
        self.store().check(body::hash_now, progress).await
    }
}

impl Engine<Any> {
    /// Checks everything that is stored; `progress` hears how many entries were looked at.
    pub async fn check(&self, progress: impl FnMut(u64) + Send + 'static) -> Result<Report, Error> {
        self.store().check(body::hash_now, progress).await
    }
}

/// What counts entries, by the name that a conversation has for it.
fn counter_named(name: &str) -> Result<Arc<dyn Count>, Error> {
    let tokenizer: Tokenizer =
        name.parse().map_err(|_| Kind::Corrupt { what: format!("a conversation is counted by {name:?}") })?;
    Ok(Arc::new(tokenizer))
}

/// What counts the entries of a conversation.
fn counter(conversation: &Conversation) -> Result<Arc<dyn Count>, Error> {
    Ok(Arc::new(tokenizer(conversation)?))
}

fn tokenizer(conversation: &Conversation) -> Result<Tokenizer, Error> {
    let (id, name) = (conversation.id.as_str(), &*conversation.tokenizer);
    let what = || format!("conversation {id:?} is counted by {name:?}");
    Ok(name.parse().map_err(|_| Kind::Corrupt { what: what() })?)
}

fn too_busy() -> Error {
    let what = format!("somebody else was quicker {TRIES_MAX} times");
    Kind::Busy { what }.into()
}

fn now() -> Millis {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_millis());
    Millis(i64::try_from(since).unwrap_or(i64::MAX))
}
