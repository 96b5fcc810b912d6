//! What the pages of a replay cost and forget, measured the same way whatever the model.
//!
//! **Cost.** A call pays the cached-read price for the messages that stood unchanged at the beginning of the page
//! before, and the cache-write price for the rest. A token is four bytes, so that policies can be compared across
//! models; what the target charges stands on its receipts.
//!
//! **Recall.** Whatever a reply says that was said before it is a *reference*: the agent took it from its history. A
//! reference is kept if the page that led to the reply holds it, in a line that the history holds, too. So words that
//! are merely listed somewhere are no memory.

use super::features::{self, Feature, hash_of};
use crate::digest::Digest;
use crate::entry::{Part, Piece, Role, Text};
use crate::log::Log;
use crate::page::{Message, Page};
use crate::tokens::Tokens;
use crate::wire::tool_name;
use serde::{Serialize, Serializer};
use std::borrow::Cow;
use std::collections::{HashMap, HashSet};
use std::hash::{BuildHasherDefault, Hasher};
use std::sync::Arc;

pub use super::features::Kind;

/// What a cached token costs, where one that isn't cached at all costs 1.
pub const READ_PRICE: f64 = 0.1;
/// What a token costs that is written to the cache.
pub const WRITE_PRICE: f64 = 1.25;
/// What every message costs beside its text.
const MESSAGE_TOKENS: u64 = 4;
const BYTES_PER_TOKEN: u64 = 4;

/// What calls cost, and how much of what was needed their pages held.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Score {
    /// How many pages were measured.
    pub calls: u64,
    /// What all pages hold.
    pub tokens: Tokens,
    /// How much of it stood unchanged at the beginning of the page before.
    pub cached: Tokens,
    /// The longest page.
    pub peak: Tokens,
    /// What the replies took from the history, by kind as in [`Kind::ALL`].
    #[serde(serialize_with = "by_kind")]
    pub references: [Kept; 5],
}

/// References of one kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Kept {
    /// How many stood on the page.
    pub kept: u64,
    /// How many there were.
    pub all: u64,
}

fn by_kind<S: Serializer>(references: &[Kept; 5], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_map(Kind::ALL.iter().map(|kind| kind.name()).zip(references))
}

impl Kept {
    /// Returns which part was kept; all of nothing.
    pub fn share(self) -> f64 {
        if self.all == 0 { 1.0 } else { self.kept as f64 / self.all as f64 }
    }
}

impl Score {
    /// Adds what other calls cost and kept.
    pub fn add(&mut self, other: &Score) {
        self.calls += other.calls;
        self.tokens += other.tokens;
        self.cached += other.cached;
        self.peak = self.peak.max(other.peak);
        for (own, more) in self.references.iter_mut().zip(other.references) {
            own.kept += more.kept;
            own.all += more.all;
        }
    }

    /// Returns what the calls cost, in uncached tokens.
    pub fn cost(&self) -> f64 {
        self.cached.0 as f64 * READ_PRICE + (self.tokens - self.cached).0 as f64 * WRITE_PRICE
    }

    /// Returns the cost as a part of another, such as that of the full history; 1 where that is nothing.
    pub fn cost_against(&self, full: &Score) -> f64 {
        if full.tokens == Tokens(0) { 1.0 } else { self.cost() / full.cost() }
    }

    /// Returns which part of the tokens was cached.
    pub fn cached_share(&self) -> f64 {
        self.cached.0 as f64 / self.tokens.0.max(1) as f64
    }

    /// Returns which part of the references was kept: the mean over the kinds.
    pub fn recall(&self) -> f64 {
        self.references.iter().map(|kept| kept.share()).sum::<f64>() / self.references.len() as f64
    }

    fn add_page(&mut self, tokens: Tokens, cached: Tokens) {
        self.calls += 1;
        self.tokens += tokens;
        self.cached += cached;
        self.peak = self.peak.max(tokens);
    }

    fn add_reference(&mut self, feature: Feature, is_kept: bool) {
        let kept = &mut self.references[feature.kind()];
        kept.all += 1;
        kept.kept += u64::from(is_kept);
    }
}

/// A message as it is measured; messages of one role that say the same share one number.
type Id = usize;
type HashedMap<K, V> = HashMap<K, V, BuildHasherDefault<Hashed>>;

/// Takes keys that are hashes already.
#[derive(Clone, Copy, Debug, Default)]
struct Hashed(u64);

impl Hasher for Hashed {
    fn write(&mut self, bytes: &[u8]) {
        self.0 = bytes.iter().fold(self.0, |hash, byte| hash.rotate_left(8) ^ u64::from(*byte));
    }

    fn write_u64(&mut self, hash: u64) {
        // The lowest bits tell the kind of a feature; tables look at those first.
        self.0 = hash.rotate_right(16);
    }

    fn finish(&self) -> u64 {
        self.0
    }
}

/// What a message holds.
#[derive(Debug)]
struct Held {
    tokens: Tokens,
    /// Each of its lines: a hash of it, and where in `by_line` its features end.
    lines: Vec<(u64, usize)>,
    by_line: Vec<Feature>,
    /// The features of all lines, each once.
    all: Vec<Feature>,
}

impl Held {
    fn of(text: &str) -> Held {
        let (mut lines, mut by_line, mut known) = (Vec::new(), Vec::new(), HashSet::new());
        for line in features::lines(text) {
            let hash = hash_of(&[line]);
            if known.insert(hash) {
                features::add(line, &mut by_line);
                lines.push((hash, by_line.len()));
            }
        }
        let mut all = by_line.clone();
        all.sort_unstable();
        all.dedup();
        let tokens = Tokens((text.len() as u64).div_ceil(BYTES_PER_TOKEN).max(1) + MESSAGE_TOKENS);
        Held { tokens, lines, by_line, all }
    }

    /// Returns what it holds in some of its lines, each feature once.
    fn within(&self, is_known: impl Fn(u64) -> bool) -> Vec<Feature> {
        let (mut found, mut start) = (Vec::new(), 0);
        for &(line, end) in &self.lines {
            if is_known(line) {
                found.extend_from_slice(&self.by_line[start..end]);
            }
            start = end;
        }
        found.sort_unstable();
        found.dedup();
        found
    }
}

/// A finished conversation: what its messages hold, and what its replies took from before.
#[derive(Debug, Default)]
struct History {
    /// The message at each place, and what all before it cost.
    places: Vec<(Id, Tokens)>,
    /// By id, as are the next.
    held: Vec<Held>,
    /// The first place where a message stands.
    first: Vec<usize>,
    by_text: HashedMap<u64, Id>,
    by_digest: HashMap<Digest, Id>,
    /// The first place where a line stands.
    lines: HashedMap<u64, usize>,
    replies: Vec<Reply>,
}

/// An assistant's message, and what it took from before.
#[derive(Debug)]
struct Reply {
    place: usize,
    references: Vec<Feature>,
}

impl History {
    fn of(log: &Log) -> History {
        let mut history = History::default();
        let mut entries: Vec<_> = log.back().collect();
        entries.reverse();
        let mut seen: HashSet<Feature, BuildHasherDefault<Hashed>> = HashSet::default();
        let mut before = Tokens(0);
        for (place, entry) in entries.into_iter().enumerate() {
            let id = history.id_of(entry.role(), entry.shown(), place);
            history.by_digest.insert(entry.digest, id);
            history.places.push((id, before));
            let held = &history.held[id];
            before += held.tokens;
            if entry.role() == Role::Assistant {
                let references = held.all.iter().copied().filter(|feature| seen.contains(feature)).collect();
                history.replies.push(Reply { place, references });
            }
            if history.first[id] == place {
                seen.extend(&held.all);
                for (line, _) in &held.lines {
                    history.lines.entry(*line).or_insert(place);
                }
            }
        }
        history
    }

    /// The number of what is said here; a new one where nobody said it before.
    fn id_of(&mut self, role: Role, parts: &[Part], place: usize) -> Id {
        let text = text_of(role, parts);
        let next = self.held.len();
        let id = *self.by_text.entry(text_hash(role, &text)).or_insert(next);
        if id == next {
            self.held.push(Held::of(&text));
            self.first.push(place);
        }
        id
    }

    fn tokens(&self) -> Tokens {
        self.places.last().map_or(Tokens(0), |(id, before)| *before + self.held[*id].tokens)
    }

    /// The replies that something stands before.
    fn answered(&self) -> impl Iterator<Item = &Reply> {
        self.replies.iter().filter(|reply| reply.place > 0)
    }
}

fn text_hash(role: Role, text: &str) -> u64 {
    hash_of(&[&role.to_string(), text])
}

/// Measures the pages of one conversation, turn by turn. A clone that has measured nothing yet measures another policy
/// without reading the conversation again.
///
/// ```
/// use recto::replay::recall::Measure;
/// use recto::{Entry, Log, Policy, Replay, Target};
///
/// let target = Target::eval();
/// let mut log = Log::counted_by(target.tokenizer);
/// log.append(Entry::user("Please read src/main.rs"))?;
/// log.append(Entry::assistant("There is no src/main.rs here."))?;
/// let policy = Policy::none();
/// let mut measure = Measure::new(&log);
/// for replayed in Replay::new(&log, &policy, &target) {
///     measure.page(replayed.turn, &replayed.compiled?.page);
/// }
/// assert_eq!(measure.finish().recall(), 1.0);
/// # Ok::<(), recto::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Measure {
    history: Arc<History>,
    /// Messages that no history holds, such as stubs; their numbers come after those of the history.
    stubs: Vec<Arc<Held>>,
    by_text: HashedMap<u64, Id>,
    by_digest: HashMap<Digest, Id>,
    page: Vec<Id>,
    /// How often each message stands on the page, and what it counts for.
    on_page: Vec<(u32, Counting)>,
    /// How many messages of the page hold a feature.
    holders: HashedMap<Feature, u32>,
    score: Score,
}

/// Which features of a message on the page count.
#[derive(Clone, Debug, Default)]
enum Counting {
    /// None: it isn't there.
    #[default]
    Nothing,
    /// Those of all its lines, for the history holds the message itself.
    Whole,
    /// Those of the lines that the history held when it came.
    Lines(Vec<Feature>),
}

impl Measure {
    /// Reads a conversation; no page of it is measured yet.
    pub fn new(log: &Log) -> Measure {
        let history = Arc::new(History::of(log));
        let on_page = vec![Default::default(); history.held.len()];
        Measure {
            history,
            stubs: Vec::new(),
            by_text: HashedMap::default(),
            by_digest: HashMap::new(),
            page: Vec::new(),
            on_page,
            holders: HashedMap::default(),
            score: Score::default(),
        }
    }

    /// Returns what the conversation itself holds.
    pub fn tokens(&self) -> Tokens {
        self.history.tokens()
    }

    /// Returns what it would cost to send everything that was said before, at every call.
    pub fn full(&self) -> Score {
        let (mut score, mut cached) = (Score::default(), Tokens(0));
        for reply in self.history.answered() {
            let (_, tokens) = self.history.places[reply.place];
            score.add_page(tokens, cached);
            reply.references.iter().for_each(|feature| score.add_reference(*feature, true));
            cached = tokens;
        }
        score
    }

    /// Measures the page that leads to an assistant message, counted from 0. Turns may be left out, but come in order;
    /// one that has no page counts for nothing.
    pub fn page(&mut self, turn: usize, page: &Page) {
        let history = Arc::clone(&self.history);
        let Some(reply) = history.replies.get(turn).filter(|reply| reply.place > 0) else { return };
        let ids: Vec<Id> = page.messages.iter().map(|message| self.id_of(message)).collect();
        let same = ids.iter().zip(&self.page).take_while(|(new, old)| new == old).count();
        let tokens = |ids: &[Id]| ids.iter().map(|id| self.held(*id).tokens).sum();
        let (all, cached) = (tokens(&ids), tokens(&ids[..same]));
        self.score.add_page(all, cached);
        self.turn_to(ids, same, reply.place);
        for feature in &reply.references {
            let is_kept = self.holders.get(feature).is_some_and(|holders| *holders > 0);
            self.score.add_reference(*feature, is_kept);
        }
    }

    /// Returns the score of the pages so far.
    pub fn finish(self) -> Score {
        self.score
    }

    fn held(&self, id: Id) -> &Held {
        let known = self.history.held.len();
        if id < known { &self.history.held[id] } else { &self.stubs[id - known] }
    }

    fn id_of(&mut self, message: &Message) -> Id {
        let known = self.history.by_digest.get(&message.digest).or_else(|| self.by_digest.get(&message.digest));
        if let Some(id) = known {
            return *id;
        }
        let text = text_of(message.role, &message.parts);
        let hash = text_hash(message.role, &text);
        let next = self.on_page.len();
        let id = match self.history.by_text.get(&hash) {
            Some(id) => *id,
            None => *self.by_text.entry(hash).or_insert(next),
        };
        if id == next {
            self.stubs.push(Arc::new(Held::of(&text)));
            self.on_page.push(Default::default());
        }
        self.by_digest.insert(message.digest, id);
        id
    }

    /// Replaces the page before, of which so many messages stay, by one that leads to the reply at a place.
    fn turn_to(&mut self, ids: Vec<Id>, same: usize, place: usize) {
        let old = std::mem::replace(&mut self.page, ids);
        for id in &old[same..] {
            self.on_page[*id].0 -= 1;
        }
        for at in same..self.page.len() {
            let id = self.page[at];
            self.on_page[id].0 += 1;
            if self.on_page[id].0 == 1 {
                self.count(id, place);
            }
        }
        for id in &old[same..] {
            if self.on_page[*id].0 == 0 {
                self.uncount(*id);
            }
        }
    }

    /// Counts what a message holds that has just come, or has come again.
    fn count(&mut self, id: Id, place: usize) {
        if matches!(self.on_page[id].1, Counting::Whole) {
            return;
        }
        self.uncount(id);
        let history = Arc::clone(&self.history);
        let was_before = |first: Option<&usize>| first.is_some_and(|first| *first < place);
        let counted = if was_before(history.first.get(id)) {
            Counting::Whole
        } else {
            Counting::Lines(self.held(id).within(|line| was_before(history.lines.get(&line))))
        };
        let features = match &counted {
            Counting::Lines(features) => features,
            Counting::Nothing | Counting::Whole => &history.held[id].all,
        };
        for feature in features {
            *self.holders.entry(*feature).or_insert(0) += 1;
        }
        self.on_page[id].1 = counted;
    }

    fn uncount(&mut self, id: Id) {
        let history = Arc::clone(&self.history);
        let counted = std::mem::take(&mut self.on_page[id].1);
        let features = match &counted {
            Counting::Nothing => return,
            Counting::Whole => &history.held[id].all,
            Counting::Lines(features) => features,
        };
        for feature in features {
            self.holders.entry(*feature).and_modify(|holders| *holders -= 1);
        }
    }
}

/// Returns what a message says, as its encoding for OpenAI chat holds it: a line each for every text, its reasoning,
/// and the name and arguments of every call.
pub fn text_of(role: Role, parts: &[Part]) -> String {
    let mut said: Vec<Cow<'_, str>> = Vec::new();
    let (mut thought, mut calls) = (String::new(), Vec::new());
    for part in parts {
        match part {
            Part::Reasoning(it) if role == Role::Assistant => thought.push_str(&it.text),
            Part::Call(call) if role == Role::Assistant => {
                calls.extend([tool_name(&call.name), call.arguments.as_str().into()]);
            }
            Part::Result(result) if role == Role::Tool => said.extend(result.content.iter().map(piece)),
            part => said.extend(shown(role, part)),
        }
    }
    said.retain(|text| !text.is_empty());
    if said.is_empty() && calls.is_empty() {
        // Content is null beside calls, else an empty text.
        said.push("".into());
    }
    if !thought.is_empty() {
        said.push(thought.into());
    }
    said.extend(calls);
    said.join("\n")
}

fn piece(piece: &Piece) -> Cow<'_, str> {
    match piece {
        Piece::Text { text } => (**text).into(),
        Piece::Image(_) => "[image]".into(),
    }
}

/// What stands for a part that is neither reasoning nor a call or its result.
fn shown(role: Role, part: &Part) -> Option<Cow<'_, str>> {
    let elsewhere = |url: &Text, kind: &str| (!url.starts_with("data:")).then(|| format!("[{kind}: {url}]").into());
    match part {
        Part::Text { text } => Some((**text).into()),
        _ if role != Role::User => None,
        Part::Image(_) => Some("[image]".into()),
        Part::Audio(it) => elsewhere(&it.url, "audio"),
        Part::Document(it) => elsewhere(&it.url, "document"),
        _ => None,
    }
}
