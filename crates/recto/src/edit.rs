//! What makes a page say less than the log: edits, their reasons, and the decisions they become.

use crate::digest::Digest;
use crate::entry::{CallId, Section, Seq, Span, Status, Text};
use crate::tokens::Tokens;
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::fmt;

/// The name of the pass that did something, as it stands on receipts.
pub type PassName = Cow<'static, str>;

/// The number of a reader's model call, from 0.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Turn(pub u64);

/// One part of one entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct PartAt {
    /// The entry.
    pub seq: Seq,
    /// Which of its parts.
    pub part: usize,
}

impl fmt::Display for PartAt {
    /// Writes the handle by which the original can be asked for.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.part == 0 { write!(f, "m{}", self.seq.0) } else { write!(f, "m{}.{}", self.seq.0, self.part) }
    }
}

/// What a marker calls an entry, or one part of it: `m42`, `m42.1`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Handle {
    /// The entry.
    pub seq: Seq,
    /// Which of its parts; `None` is the whole entry.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub part: Option<usize>,
}

impl Handle {
    /// Returns the handle of a whole entry.
    pub fn entry(seq: Seq) -> Handle {
        Handle { seq, part: None }
    }

    /// Reads a handle as models write it: `m42`, `m42.1`, `[m42]`, `id=m42`, `handle m42`, `#42`, or the number alone.
    pub fn parse(text: &str) -> Option<Handle> {
        let is_around = |c: char| c.is_whitespace() || "[](){}<>\"'`,;:.=".contains(c);
        let mut text = text.trim_matches(is_around);
        for word in ["recto_expand", "handle", "id"] {
            let start = text.get(..word.len()).filter(|start| start.eq_ignore_ascii_case(word));
            text = start.map_or(text, |_| text[word.len()..].trim_start_matches(is_around));
        }
        let text = text.strip_prefix(['m', 'M', '#']).unwrap_or(text);
        let number = |digits: &str| {
            let is_number = digits.bytes().all(|byte| byte.is_ascii_digit());
            digits.parse::<u64>().ok().filter(|_| is_number)
        };
        let (seq, part) = text.split_once('.').map_or((text, None), |(seq, part)| (seq, Some(part)));
        let part = match part {
            Some(part) => Some(usize::try_from(number(part)?).ok()?),
            None => None,
        };
        Some(Handle { seq: Seq(number(seq)?), part })
    }

    /// Returns whether a part is what it names, or lies in it.
    pub fn covers(&self, at: PartAt) -> bool {
        self.seq == at.seq && self.part.is_none_or(|part| part == at.part)
    }
}

impl From<Handle> for Span {
    fn from(handle: Handle) -> Span {
        Span::one(handle.seq)
    }
}

impl fmt::Display for Handle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "m{}", self.seq.0)?;
        self.part.map_or(Ok(()), |part| write!(f, ".{part}"))
    }
}

/// A change to what a reader is shown.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Change {
    /// The items that lie within are not shown.
    Hide(Span),
    /// A part is not shown.
    Omit(PartAt),
    /// Another text stands in a part's place.
    Replace {
        /// Which part.
        at: PartAt,
        /// What stands there now.
        text: Text,
    },
    /// Nothing below is shown but what the floor names.
    Floor(Floor),
    /// A call that was shown unanswered stays so; its result comes as a late note.
    Settle {
        /// The step that made the call.
        step: Seq,
        /// The call.
        call: CallId,
    },
    /// The items that touch it are never reduced.
    Pin(Span),
    /// The provider's cache is broken here: what was due behind it goes at once, and the rest is written again.
    Cut {
        /// The first item that changes.
        from: Seq,
        /// The tokens that the provider wrote again for all earlier ones, so that the newest knows the sum.
        #[serde(default)]
        written_before: Tokens,
    },
    /// What earlier edits hid, left out or replaced is shown again; later ones apply as usual.
    Expand {
        /// Which entry, or which part of one.
        at: Handle,
        /// What is shown of the part; `None` is all of it, as it was said.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        text: Option<Text>,
        /// The call from which on passes may reduce it again.
        until: Turn,
    },
}

impl Change {
    /// Returns the first entry it speaks of.
    pub fn seq(&self) -> Seq {
        match self {
            Change::Hide(span) | Change::Pin(span) => span.first,
            Change::Omit(at) | Change::Replace { at, .. } => at.seq,
            Change::Floor(floor) => floor.at,
            Change::Settle { step, .. } => *step,
            Change::Expand { at, .. } => at.seq,
            Change::Cut { from, .. } => *from,
        }
    }

    /// Returns whether it hides or shortens something.
    pub(crate) fn is_reduction(&self) -> bool {
        matches!(self, Change::Hide(_) | Change::Omit(_) | Change::Replace { .. } | Change::Floor(_))
    }

    /// Returns whether it makes a part say less.
    pub(crate) fn reduces(&self, part: PartAt) -> bool {
        match self {
            Change::Hide(span) => span.contains(part.seq),
            Change::Omit(at) | Change::Replace { at, .. } => *at == part,
            _ => false,
        }
    }
}

/// The place below which a reader is shown nothing but what is named here.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Floor {
    /// The first entry that is shown as a matter of course.
    pub at: Seq,
    /// Entries below that stay: instructions, pins, the first request, the last user words.
    pub keeps: Vec<Seq>,
    /// Calls below whose results are shown as late notes if they stand above.
    pub open: Vec<OpenCall>,
}

/// A call that lies below a floor, while a result of it may stand above.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct OpenCall {
    /// The call.
    pub call: CallId,
    /// The tool, if its step was read.
    pub tool: Option<Text>,
    /// The result that stood behind it; the same once more is a duplicate.
    pub answered: Option<Answered>,
}

/// The result that stood behind a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Answered {
    /// Where it stands.
    pub seq: Seq,
    /// What identifies it.
    pub digest: Digest,
}

/// A proposed change, with its reason and what it saves.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Edit {
    /// What changes.
    pub change: Change,
    /// The pass that proposes it.
    pub by: PassName,
    /// Why.
    pub why: Reason,
    /// What it costs without the change.
    pub before: Tokens,
    /// What it costs with it.
    pub after: Tokens,
    /// The call from which on it could have been made, if it waited for the moment when it pays.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub due: Option<Turn>,
}

/// An edit that was committed: a durable row of its reader.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Decision {
    /// Its number among the reader's decisions and reverts, from 1.
    pub ordinal: u64,
    /// The call before which it was made.
    pub turn: Turn,
    /// What was decided.
    pub edit: Edit,
    /// The policy that led to it.
    pub policy: Digest,
    /// When it was taken back.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reverted: Option<Reverted>,
}

/// When a decision was taken back.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reverted {
    /// The number of the revert among the reader's decisions and reverts.
    pub ordinal: u64,
    /// The call before which it was taken back.
    pub turn: Turn,
}

/// Why an entry has the fate it has; text is made in `Display`, once.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "reason", rename_all = "snake_case")]
#[non_exhaustive]
pub enum Reason {
    /// Nothing spoke against it.
    Selected,
    /// Instructions are always shown.
    System,
    /// Somebody pinned it.
    Pinned,
    /// The policy keeps the first request.
    FirstRequest,
    /// The last user words are always shown.
    LastUserWords,
    /// The floor names it among what stays.
    KeptByFloor {
        /// The floor.
        floor: Seq,
    },
    /// The newest item is what the model must answer.
    Newest,
    /// It did not end well.
    Status {
        /// How it ended.
        status: Status,
    },
    /// A rule of the policy says that it stays.
    Rule {
        /// The word or name that made it one.
        word: Text,
    },
    /// It stands in a section that was not selected.
    OtherSection {
        /// The section.
        section: Section,
    },
    /// It stands in a section that is full.
    SectionCap {
        /// The section.
        section: Section,
        /// How much of it is shown.
        cap: Tokens,
    },
    /// It is a trace of work that is not the current run's.
    Trace,
    /// A summary of the host stands for it.
    Folded {
        /// The summary. In a row of a receipt its own name is taken by the pass.
        #[serde(rename = "summary", alias = "by")]
        by: Seq,
    },
    /// Its author is named in the text.
    Named {
        /// The author.
        author: Text,
    },
    /// It is longer than any output may be.
    OverCap {
        /// How many characters it has.
        chars: usize,
        /// How many may be shown.
        cap: usize,
    },
    /// It is not among the newest of its kind.
    NotNewest {
        /// How many of them stay.
        keep: usize,
    },
    /// A pass of the host's own left it out or changed it.
    Own {
        /// What that pass says.
        what: Text,
    },
    /// A later entry says that nothing before it is shown.
    BeforeEdge {
        /// That entry.
        edge: Seq,
    },
    /// The provider holds it already.
    BeforeCursor {
        /// The last entry the provider acknowledged.
        acked: Seq,
    },
    /// The provider reads it in full, though it was decided shorter since.
    RemoteStale {
        /// The last entry the provider acknowledged.
        acked: Seq,
        /// How much more than the page would show it reads, by our count.
        tokens: Tokens,
    },
    /// It lies below the floor.
    BelowFloor {
        /// The floor.
        floor: Seq,
    },
    /// The history had grown past its trigger.
    TooLong {
        /// What the history cost.
        cost: Tokens,
        /// What there was room for.
        room: Tokens,
        /// How far down it should go.
        target: Tokens,
    },
    /// Somebody asked to see it again.
    Expanded {
        /// The call before which they asked.
        turn: Turn,
        /// The call from which on passes may reduce it again.
        until: Turn,
        /// Why, in their own words.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        asked: Option<Text>,
    },
    /// It expired, and nothing of it stays.
    Removed {
        /// Its age in acknowledged calls.
        age: u64,
        /// The age it may reach.
        limit: u32,
    },
    /// It expired, and its beginning stays.
    Compacted {
        /// Its age in acknowledged calls.
        age: u64,
        /// The age it may reach.
        limit: u32,
        /// How many characters are shown.
        shown: usize,
        /// How many there are.
        of: usize,
    },
    /// It expired, and both its ends stay.
    EndsKept {
        /// Its age in acknowledged calls.
        age: u64,
        /// The age it may reach.
        limit: u32,
        /// How many characters of its beginning are shown.
        head: usize,
        /// How many characters of its end are shown.
        tail: usize,
        /// How many there are.
        of: usize,
    },
    /// It expired, and a model's summary stands for it.
    Condensed {
        /// Its age in acknowledged calls.
        age: u64,
        /// The age it may reach.
        limit: u32,
        /// How many characters the summary has.
        shown: usize,
        /// How many there are.
        of: usize,
        /// The model that made it.
        model: Text,
    },
    /// It expired, and its beginning stays, because there is no summary of it.
    NotCondensed {
        /// Its age in acknowledged calls.
        age: u64,
        /// The age it may reach.
        limit: u32,
        /// How many characters are shown.
        shown: usize,
        /// How many there are.
        of: usize,
        /// Why there is none.
        why: Text,
    },
    /// A model's note stands here for whole exchanges.
    Summarized {
        /// The entries that it stands for.
        #[serde(rename = "stands_for", alias = "span")]
        span: Span,
        /// What identifies their words; the next note goes on from there.
        words: Digest,
        /// The model that made it.
        model: Text,
    },
    /// It is old, and the lines of it stay that say what nothing else does.
    Excerpted {
        /// Its age in acknowledged calls.
        age: u64,
        /// How many lines are shown.
        kept: usize,
        /// How many there are.
        of: usize,
    },
    /// Waiting has cost as much as breaking the provider's cache does; in tokens at the price of plain input.
    Pays {
        /// What waiting has cost.
        rent: Tokens,
        /// What breaking the cache costs.
        cost: Tokens,
    },
    /// The page would not have fitted.
    MustFit,
    /// The provider's cache holds nothing of the page, so changing it is free.
    CacheIsCold,
    /// The same result stands on the page already.
    Duplicate {
        /// The result that is shown.
        of: Seq,
    },
    /// A later call asked for the same, or wrote the file.
    Superseded {
        /// The result of that call.
        #[serde(rename = "newer", alias = "by")]
        by: Seq,
    },
    /// A later result of the same tool is nearly the same.
    Similar {
        /// That result.
        to: Seq,
        /// How much of the two is the same, in percent.
        percent: u32,
    },
    /// What was said lately has little to do with it.
    Irrelevant {
        /// Its age in acknowledged calls.
        age: u64,
        /// How much they have in common, in percent.
        percent: u32,
    },
    /// A result whose call is nowhere to be seen.
    OrphanResult {
        /// The call it names.
        call: CallId,
    },
    /// A result that came after its call had been shown without one, or a second time.
    LateResult {
        /// The call it answers.
        call: CallId,
    },
    /// Its words were erased.
    Erased {
        /// How long they were, in bytes.
        bytes: u64,
    },
    /// Nothing in it could be shown.
    Empty,
    /// It is the current input, which stands at the end.
    DuplicateInput,
    /// It is bound to what stood before it, and that has changed.
    PrefixChanged,
    /// It is bound to what stood before it, and nobody recorded that.
    PrefixUnknown,
    /// It is told in a block.
    InBlock {
        /// The block.
        block: Text,
    },
    /// The block that tells of the rest has no words for it.
    NotInBlock {
        /// The block.
        block: Text,
    },
    /// The block that would tell of it has no room for more.
    OutOfBudget {
        /// The block.
        block: Text,
    },
    /// It lies further back than is read.
    Unread,
    /// It has words that could be taken for structure of the page.
    Escaped,
    /// The target takes no such thing.
    NotTaken {
        /// What it doesn't take.
        what: Text,
    },
}

impl Reason {
    /// The age that something had to exceed to expire, if that is why it was reduced.
    pub(crate) fn expiry_limit(&self) -> Option<u32> {
        match self {
            Reason::Removed { limit, .. }
            | Reason::Compacted { limit, .. }
            | Reason::EndsKept { limit, .. }
            | Reason::Condensed { limit, .. }
            | Reason::NotCondensed { limit, .. } => Some(*limit),
            _ => None,
        }
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Reason::Selected => write!(f, "selected"),
            Reason::System => write!(f, "instructions"),
            Reason::Pinned => write!(f, "pinned"),
            Reason::FirstRequest => write!(f, "first request"),
            Reason::LastUserWords => write!(f, "last user words"),
            Reason::KeptByFloor { floor } => write!(f, "kept by the floor at {floor}"),
            Reason::Newest => write!(f, "newest"),
            Reason::Status { status } => write!(f, "status {}", format!("{status:?}").to_lowercase()),
            Reason::Rule { word } => write!(f, "a rule: {word}"),
            Reason::OtherSection { section } => write!(f, "section {section} was not selected"),
            Reason::SectionCap { section, cap } => write!(f, "section {section} shows its newest {cap} tokens"),
            Reason::Trace => write!(f, "a trace of another run"),
            Reason::Folded { by } => write!(f, "the summary {by} stands for it"),
            Reason::Named { author } => write!(f, "said by {author}"),
            Reason::OverCap { chars, cap } => write!(f, "{chars} characters, {cap} are shown"),
            Reason::NotNewest { keep } => write!(f, "not among the newest {keep}"),
            Reason::Own { what } => write!(f, "{what}"),
            Reason::BeforeEdge { edge } => write!(f, "before the edge at {edge}"),
            Reason::BeforeCursor { acked } => write!(f, "the provider holds all up to {acked}"),
            Reason::RemoteStale { acked, tokens } => {
                write!(f, "the provider holds all up to {acked}, and this with {tokens} tokens more than was decided")
            }
            Reason::BelowFloor { floor } => write!(f, "below the floor at {floor}"),
            Reason::TooLong { cost, room, target } => write!(f, "history {cost}, room {room}: down to {target}"),
            Reason::Expanded { turn, asked: None, .. } => write!(f, "expanded before call {}, on request", turn.0),
            Reason::Expanded { turn, asked: Some(asked), .. } => {
                write!(f, "expanded before call {}: {asked}", turn.0)
            }
            Reason::Removed { age, limit } => write!(f, "expired after {age} calls (limit {limit})"),
            Reason::Compacted { age, limit, shown, of } => {
                write!(f, "expired after {age} calls (limit {limit}): first {shown} of {of} characters")
            }
            Reason::EndsKept { age, limit, head, tail, of } => {
                write!(f, "expired after {age} calls (limit {limit}): first {head} and last {tail} of {of} characters")
            }
            Reason::Condensed { age, limit, shown, of, model } => {
                write!(f, "expired after {age} calls (limit {limit}): {shown} characters by {model} for {of}")
            }
            Reason::NotCondensed { age, limit, shown, of, why } => {
                write!(
                    f,
                    "expired after {age} calls (limit {limit}): first {shown} of {of} characters, no summary: {why}"
                )
            }
            Reason::Summarized { span, model, .. } => write!(f, "a note by {model} stands for {span}"),
            Reason::Excerpted { age, kept, of } => write!(f, "{kept} of {of} lines, after {age} calls"),
            Reason::Pays { rent, cost } => write!(f, "waiting has cost {rent}, breaking the cache costs {cost}"),
            Reason::MustFit => write!(f, "it would not fit"),
            Reason::CacheIsCold => write!(f, "the cache is cold"),
            Reason::Duplicate { of } => write!(f, "same as the result {of}"),
            Reason::Superseded { by } => write!(f, "superseded by {by}"),
            Reason::Similar { to, percent } => write!(f, "{percent}% the same as the result {to}"),
            Reason::Irrelevant { age, percent } => {
                write!(f, "{age} calls old, and {percent}% of it has to do with what was said lately")
            }
            Reason::OrphanResult { call } => write!(f, "no call {call}"),
            Reason::LateResult { call } => write!(f, "late result of call {call}"),
            Reason::Erased { bytes } => write!(f, "erased, {bytes} bytes"),
            Reason::Empty => write!(f, "empty"),
            Reason::DuplicateInput => write!(f, "is the current input"),
            Reason::PrefixUnknown => write!(f, "it is not known what stood before it when it was made"),
            Reason::PrefixChanged => write!(f, "what stood before it when it was made has changed"),
            Reason::NotTaken { what } => write!(f, "the target takes no {what}"),
            of_blocks => f.write_str(&crate::block::told_why(of_blocks)),
        }
    }
}
