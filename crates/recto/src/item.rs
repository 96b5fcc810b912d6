//! Items: one thing a model may see, a message or a step joined with all its results.
//!
//! Because a step's calls and results are one item, nothing can part them; there is no repair pass.

use crate::block::Share;
use crate::edit::{OpenCall, PartAt, PassName, Reason};
use crate::entry::{Call, Part, Piece, Role, Seq, Text, ToolResult};
use crate::expiry::Held;
use crate::log::Counted;
use crate::tokens::{Count, Tokens};
use std::ops::{Deref, DerefMut};

/// What stands for the result of a call that has none.
pub const NO_RESULT: &str = "[No result: this call was not answered.]";

/// One thing a model may see.
#[derive(Clone, Debug)]
pub struct Item<'a> {
    pub(crate) entry: &'a Counted,
    pub(crate) kind: Kind,
    /// One for each call of a step, in the order of the calls.
    pub(crate) answers: Answers<'a>,
    /// Parts of `entry` that are shown otherwise than they are.
    pub(crate) changed: Vec<(usize, Changed)>,
    pub(crate) cost: Tokens,
    pub(crate) hidden: Option<(PassName, Reason)>,
    pub(crate) keep: Option<Reason>,
    /// Which of its entries were expanded, and why.
    pub(crate) expanded: Vec<(Seq, Reason)>,
    /// The call that a late result answers.
    pub(crate) late: Option<Box<OpenCall>>,
    /// What is told at the end of the message, beside its own parts.
    pub(crate) note: Option<Box<Changed>>,
    /// Where a layout in blocks puts it.
    pub(crate) laid: Laid,
}

/// Where a layout in blocks puts an item.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) enum Laid {
    /// A message at its place.
    #[default]
    Message,
    /// A message behind all blocks.
    Behind,
    /// No message: it is told in a block.
    Told(Share),
}

/// What kind of item it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Somebody's words.
    Message,
    /// A model's words, calls, and their results.
    Step,
    /// A result that came too late to stand behind its call.
    Late,
}

/// The answer to one call of a step.
#[derive(Clone, Debug)]
pub(crate) struct Answer<'a> {
    /// Which part of the step's entry makes the call.
    pub(crate) call: usize,
    pub(crate) result: Option<&'a Counted>,
    pub(crate) changed: Option<Box<Changed>>,
}

/// The answers to the calls of a step. Most steps make a single call, and a view has many of them.
#[derive(Clone, Debug)]
pub(crate) enum Answers<'a> {
    /// The only one.
    One([Answer<'a>; 1]),
    /// None, or several.
    Many(Vec<Answer<'a>>),
}

impl<'a> Answers<'a> {
    /// Returns one answer for each of some calls, told by the parts that make them.
    pub(crate) fn to(calls: impl Iterator<Item = usize> + Clone) -> Answers<'a> {
        let mut answers = calls.clone().map(|call| Answer { call, result: None, changed: None });
        match (answers.next(), calls.count()) {
            (Some(only), 1) => Answers::One([only]),
            (first, _) => Answers::Many(first.into_iter().chain(answers).collect()),
        }
    }
}

impl<'a> Deref for Answers<'a> {
    type Target = [Answer<'a>];

    fn deref(&self) -> &[Answer<'a>] {
        match self {
            Answers::One(only) => only,
            Answers::Many(all) => all,
        }
    }
}

impl DerefMut for Answers<'_> {
    fn deref_mut(&mut self) -> &mut Self::Target {
        match self {
            Answers::One(only) => only,
            Answers::Many(all) => all,
        }
    }
}

/// How a part is shown otherwise than it is.
#[derive(Clone, Debug)]
pub(crate) struct Changed {
    /// `None` where the part is left out.
    pub(crate) text: Option<Text>,
    pub(crate) cost: Tokens,
    pub(crate) by: PassName,
    pub(crate) why: Reason,
    /// Whether an edit changed it, recorded or about to be; each part is edited once.
    pub(crate) is_edit: bool,
}

/// A tool result on the page, as a pass sees it.
#[derive(Clone, Copy, Debug)]
pub struct ResultOf<'i> {
    /// Where it stands in the log.
    pub at: PartAt,
    /// The call it answers.
    pub call: &'i Call,
    /// What the tool said.
    pub result: &'i ToolResult,
    /// What holds for its expiry: its kind, its tool, and what its entry says.
    pub held: Held<'i>,
    /// What it costs as it is shown now.
    pub cost: Tokens,
    /// Whether an edit has changed it; another would not be taken.
    pub is_changed: bool,
}

impl<'a> Item<'a> {
    pub(crate) fn new(entry: &'a Counted, kind: Kind) -> Item<'a> {
        Item {
            entry,
            kind,
            answers: Answers::Many(Vec::new()),
            changed: Vec::new(),
            cost: Tokens(0),
            hidden: None,
            keep: None,
            expanded: Vec::new(),
            late: None,
            note: None,
            laid: Laid::Message,
        }
    }

    /// Returns where its first entry stands.
    pub fn seq(&self) -> Seq {
        self.entry.seq
    }

    /// Returns where its last entry stands.
    pub fn last_seq(&self) -> Seq {
        self.seqs().fold(self.entry.seq, Seq::max)
    }

    /// Returns where all its entries stand.
    pub fn seqs(&self) -> impl Iterator<Item = Seq> {
        let results = self.answers.iter().filter_map(|answer| answer.result.map(|entry| entry.seq));
        std::iter::once(self.entry.seq).chain(results)
    }

    /// Returns who speaks first.
    pub fn role(&self) -> Role {
        self.entry.role()
    }

    /// Returns what kind of item it is.
    pub fn kind(&self) -> Kind {
        self.kind
    }

    /// Returns whether it belongs to the conversation itself, not to another section.
    pub fn is_main(&self) -> bool {
        self.entry.original().section.is_messages()
    }

    /// Returns how many messages it makes on a page.
    pub fn messages(&self) -> usize {
        1 + self.answers.len()
    }

    /// Returns what one part of its first entry costs as it was said.
    pub fn part_cost(&self, part: usize) -> Tokens {
        self.entry.part_cost(part)
    }

    /// Returns what it costs as it is shown now.
    pub fn cost(&self) -> Tokens {
        if self.is_message() { self.cost } else { Tokens(0) }
    }

    /// Returns whether it is on the page.
    pub fn is_shown(&self) -> bool {
        self.hidden.is_none()
    }

    /// Whether it stands on the page as a message, and in no block.
    pub(crate) fn is_message(&self) -> bool {
        self.hidden.is_none() && !matches!(self.laid, Laid::Told(_))
    }

    /// Returns why it must not be reduced, if it mustn't.
    pub fn keep(&self) -> Option<&Reason> {
        self.keep.as_ref()
    }

    /// Returns whether an exchange begins here.
    pub fn opens_exchange(&self) -> bool {
        self.kind == Kind::Message && self.entry.original().is_user_words()
    }

    /// Returns what holds for the expiry of its first entry: its kind, its tool, and what it says itself.
    pub fn held(&self) -> Held<'_> {
        Held::of(self.entry.original(), self.late.as_ref().and_then(|call| call.tool.as_deref()))
    }

    /// Whether one of its entries says itself when it expires.
    pub(crate) fn has_own_expiry(&self) -> bool {
        let results = self.answers.iter().filter_map(|answer| answer.result);
        std::iter::once(self.entry).chain(results).any(|entry| entry.original().expiry.is_some())
    }

    /// Returns the parts of the first entry, without what was redacted.
    pub fn parts(&self) -> &[Part] {
        self.entry.shown()
    }

    /// Returns whether a part of its first entry is shown otherwise than it was said, or not at all. A pass leaves such
    /// a part alone: another edit of it would not be taken.
    pub fn is_changed(&self, part: usize) -> bool {
        self.changed_part(part).is_some()
    }

    /// Returns whether it counts among the newest messages: instructions and pins stand beside them.
    pub(crate) fn is_counted(&self) -> bool {
        self.is_shown() && self.is_main() && !matches!(self.keep, Some(Reason::System | Reason::Pinned))
    }

    /// Returns the results of its calls, as far as there are any.
    pub fn results(&self) -> impl Iterator<Item = ResultOf<'_>> {
        self.answers.iter().filter_map(|answer| {
            let entry = answer.result?;
            Some(ResultOf {
                at: PartAt { seq: entry.seq, part: 0 },
                call: self.call(answer),
                result: as_result(entry),
                held: Held::of(entry.original(), Some(&self.call(answer).name)),
                cost: answer.changed.as_ref().map_or(entry.cost, |changed| changed.cost),
                is_changed: answer.changed.as_ref().is_some_and(|changed| changed.is_edit),
            })
        })
    }

    /// Returns the call that a late result answers.
    pub fn late_call(&self) -> Option<&OpenCall> {
        self.late.as_deref()
    }

    /// Returns the calls that have no result on the page.
    pub fn unanswered(&self) -> impl Iterator<Item = &Call> {
        self.answers.iter().filter(|answer| answer.result.is_none()).map(|answer| self.call(answer))
    }

    pub(crate) fn call(&self, answer: &Answer<'_>) -> &'a Call {
        self.call_in(answer.call)
    }

    /// The call in a part that has one.
    pub(crate) fn call_in(&self, part: usize) -> &'a Call {
        match &self.entry.shown()[part] {
            Part::Call(call) => call,
            _ => unreachable!("an answer points at a call"),
        }
    }

    pub(crate) fn changed_part(&self, part: usize) -> Option<&Changed> {
        self.changed.iter().find(|(at, _)| *at == part).map(|(_, changed)| changed)
    }

    /// Why one of its entries is shown again, if it was reduced before.
    pub(crate) fn expanded_at(&self, seq: Seq) -> Option<&Reason> {
        self.expanded.iter().rev().find(|(at, _)| *at == seq).map(|(_, why)| why)
    }

    /// Whether anything would stand on the page.
    pub(crate) fn says_something(&self) -> bool {
        if self.note.is_some() {
            return true;
        }
        let parts = self.entry.shown().iter().enumerate();
        let mut left = parts.filter(|(at, _)| self.changed_part(*at).is_none_or(|changed| changed.text.is_some()));
        left.any(|(_, part)| match part {
            Part::Text { text } => !text.is_empty(),
            Part::Reasoning(it) => !it.text.is_empty() || it.is_sealed(),
            _ => true,
        })
    }

    /// Counts anew what it costs, every message with its overhead.
    pub(crate) fn recount(&mut self, overhead: Tokens, counter: &dyn Count) {
        let mut cost = self.entry.cost + overhead + self.note.as_ref().map_or(Tokens(0), |note| note.cost);
        for (part, changed) in &self.changed {
            cost = cost + changed.cost - self.entry.part_cost(*part);
        }
        for answer in self.answers.iter() {
            let own = match (&answer.changed, answer.result) {
                (Some(changed), _) => changed.cost,
                (None, Some(entry)) => entry.cost,
                (None, None) => counter.count(NO_RESULT),
            };
            cost += own + overhead;
        }
        self.cost = cost;
    }
}

/// The one result that a tool entry holds.
pub(crate) fn as_result(entry: &Counted) -> &ToolResult {
    match &**entry.shown() {
        [Part::Result(result)] => result,
        _ => unreachable!("a tool entry holds exactly one result"),
    }
}

/// Returns what a late result says at its own place.
pub(crate) fn late_note(result: &ToolResult, tool: Option<&str>) -> String {
    let tool = tool.map_or(String::new(), |tool| format!(" {tool}"));
    let error = if result.is_error { ", an error" } else { "" };
    format!("[Late result of call{tool} {}{error}]\n{}", result.call, result_text(result))
}

/// Returns the text of a result; pictures are named, not shown.
pub(crate) fn result_text(result: &ToolResult) -> Text {
    let of = |piece: &Piece| match piece {
        Piece::Text { text } => text.clone(),
        Piece::Image(_) => "[image]".into(),
    };
    match &*result.content {
        [piece] => of(piece),
        pieces => pieces.iter().map(of).collect::<Vec<_>>().join("\n").into(),
    }
}
