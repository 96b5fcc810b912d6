//! The log: facts in order, never changed, shared between forks, with running sums.
//!
//! A log is a handful of *strands*, one for each section, lane and role that occurs. A strand is a
//! persistent stack: every node points at the one before it and, by a second pointer, far back (skew-binary
//! jump pointers), so that any place is found in logarithmic time. Appending makes one node and copies
//! nothing; a clone or a fork shares all of the past; a long trace is not walked to find the talk around it.

mod counted;
mod partial;
mod shown;
mod tally;

use crate::entry::{Entry, Lane, Part, Role, Section, Seq, Span};
use crate::error::Error;
use crate::redact::{Redact, Screen, Secrets};
use crate::tokens::{Count, Tokens};
use counted::Lens;
pub use counted::{Counted, IMAGE_TOKENS, Kept, MEDIA_BYTES_PER_TOKEN};
pub(crate) use counted::{cost_of, digest_of};
pub(crate) use partial::Notes;
pub use partial::{Known, Missing, Newest};
use std::borrow::Cow;
use std::fmt;
use std::ops::{Add, AddAssign, Sub};
use std::sync::Arc;
pub use tally::{StrandTally, Tally};

/// The most parts one entry may have.
pub const PARTS_MAX: usize = 10_000;
/// The last place a log can have; larger numbers don't survive every reader of JSON.
pub const SEQ_MAX: Seq = Seq((1 << 53) - 1);
/// How much a stretch of log holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sums {
    /// How many entries.
    pub entries: u64,
    /// What their content costs.
    pub tokens: Tokens,
}

impl Add for Sums {
    type Output = Sums;
    fn add(self, other: Sums) -> Sums {
        Sums { entries: self.entries + other.entries, tokens: self.tokens + other.tokens }
    }
}

impl AddAssign for Sums {
    fn add_assign(&mut self, other: Sums) {
        *self = *self + other;
    }
}

impl Sub for Sums {
    type Output = Sums;
    fn sub(self, other: Sums) -> Sums {
        // What a part of a log doesn't know is nothing.
        Sums { entries: self.entries.saturating_sub(other.entries), tokens: self.tokens - other.tokens }
    }
}

/// The facts of a conversation, in order. Cloning is cheap and shares everything.
#[derive(Clone, Debug)]
pub struct Log {
    counter: Arc<dyn Count>,
    screen: Arc<Screen>,
    /// What was told in it that is a secret.
    secrets: Arc<Secrets>,
    /// Whether something was found in it that a screen could hide.
    has_found: bool,
    strands: Vec<Strand>,
    head: Option<Seq>,
    /// Of a part of a log, what is known of the rest.
    unread: Option<Arc<partial::Unread>>,
}

#[derive(Clone, Debug)]
struct Strand {
    section: Section,
    lane: Lane,
    role: Role,
    first: Seq,
    tip: Option<Arc<Node>>,
    /// What lies below its oldest node, in a part of a log.
    below: Option<StrandTally>,
}

/// A part of a log: one section or all, one lane or both, one role or all.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Scope {
    /// The section; `None` is all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub section: Option<Section>,
    /// The lane; `None` is both.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lane: Option<Lane>,
    /// The role; `None` is all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub role: Option<Role>,
}

impl Scope {
    /// Returns whether an entry lies within.
    pub fn contains(&self, entry: &Entry) -> bool {
        self.section.as_ref().is_none_or(|section| *section == entry.section)
            && self.lane.is_none_or(|lane| lane == entry.lane)
            && self.role.is_none_or(|role| role == entry.role)
    }
}

impl fmt::Display for Scope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let lane = match self.lane {
            None => "entries",
            Some(Lane::Talk) => "entries of talk",
            Some(Lane::Trace) => "traces",
        };
        match &self.section {
            Some(section) => write!(f, "{lane} in {section}"),
            None => write!(f, "{lane}"),
        }
    }
}

impl Strand {
    fn empty(section: Section, lane: Lane, role: Role, first: Seq) -> Strand {
        Strand { section, lane, role, first, tip: None, below: None }
    }

    fn sums(&self) -> Sums {
        let below = || self.below.as_ref().map_or(Sums::default(), |below| below.sums);
        self.tip.as_ref().map_or_else(below, |tip| tip.sums)
    }

    fn edge(&self) -> Option<Seq> {
        self.tip.as_ref().map_or_else(|| self.below.as_ref()?.edge, |tip| tip.edge)
    }

    fn is_in(&self, scope: &Scope) -> bool {
        scope.section.as_ref().is_none_or(|section| *section == self.section)
            && scope.lane.is_none_or(|lane| lane == self.lane)
            && scope.role.is_none_or(|role| role == self.role)
    }
}

#[derive(Debug)]
struct Node {
    counted: Arc<Counted>,
    previous: Option<Arc<Node>>,
    jump: Option<Arc<Node>>,
    /// How many nodes there are down to the oldest.
    depth: u64,
    /// Of this strand, up to and with this node, what was not read included.
    sums: Sums,
    /// The newest edge of this strand, up to and with this node.
    edge: Option<Seq>,
}

impl Log {
    /// Returns an empty log whose entries are counted by this tokenizer.
    pub fn counted_by(counter: impl Count + 'static) -> Log {
        Log {
            counter: Arc::new(counter),
            screen: Arc::default(),
            secrets: Arc::default(),
            has_found: false,
            strands: Vec::new(),
            head: None,
            unread: None,
        }
    }

    /// Returns the log as it is shown through a screen. Plan and compile do this by themselves for the policy that they
    /// are given, anew at each call: a host that makes many calls of a long log does it once, when the log is empty.
    #[must_use]
    pub fn through(self, screen: Screen) -> Log {
        if *self.screen == screen {
            return self;
        }
        let screen = Arc::new(screen);
        if !self.has_found && screen.redact().patterns.is_empty() {
            return Log { screen, ..self };
        }
        self.shown_anew(screen)
    }

    /// Returns the log with secrets that are known from elsewhere: those that were told in what it goes on from.
    #[must_use]
    pub fn knowing(self, secrets: Secrets) -> Log {
        Log { secrets: Arc::new(secrets), ..self }
    }

    /// Returns what stands between it and its readers.
    pub fn screen(&self) -> &Screen {
        &self.screen
    }

    /// Returns the secrets that were told in it so far.
    pub fn secrets(&self) -> &Secrets {
        &self.secrets
    }

    /// Returns something that was drafted for this log as it is shown here.
    pub(crate) fn shown_here(&self, draft: &Counted) -> Counted {
        draft.through(&self.lens())
    }

    /// Returns whether it is shown as a policy asks.
    pub(crate) fn is_shown_by(&self, redact: &Redact) -> bool {
        self.screen.redact() == redact
    }

    /// Returns whether it would look the same if it were shown as a policy asks.
    pub(crate) fn is_the_same_to(&self, redact: &Redact) -> bool {
        self.is_shown_by(redact) || (!self.has_found && redact.patterns.is_empty())
    }

    fn lens(&self) -> Lens<'_> {
        Lens { counter: &*self.counter, screen: &self.screen }
    }

    fn shown_anew(self, screen: Arc<Screen>) -> Log {
        let lens = Lens { counter: &*self.counter, screen: &screen };
        let anew = |strand: &Strand| {
            let nodes = std::iter::successors(strand.tip.as_deref(), |node| node.previous.as_deref());
            let mut entries: Vec<Counted> = nodes.map(|node| node.counted.through(&lens)).collect();
            let mut new = Strand { tip: None, ..strand.clone() };
            while let Some(counted) = entries.pop() {
                new.tip = Some(Arc::new(Node::on(new.tip.take(), Arc::new(counted), new.below.as_ref())));
            }
            new
        };
        let strands = self.strands.iter().map(anew).collect();
        let unread = self.unread.as_ref().map(|unread| Arc::new(unread.through(&lens)));
        Log { screen: screen.clone(), strands, unread, ..self }
    }

    /// Returns what counts its entries.
    pub fn counter(&self) -> &dyn Count {
        &*self.counter
    }

    /// Returns the place of the newest entry.
    pub fn head(&self) -> Option<Seq> {
        self.head
    }

    /// Returns how many entries there are.
    pub fn len(&self) -> u64 {
        self.strands.iter().map(|strand| strand.sums().entries).sum()
    }

    /// Returns whether nothing was appended yet.
    pub fn is_empty(&self) -> bool {
        self.head.is_none()
    }

    /// Appends a fact and returns its place. A fact that no page could hold is refused, and nothing changes.
    pub fn append(&mut self, entry: Entry) -> Result<Seq, Error> {
        self.append_at(self.head.map_or(Seq(0), Seq::next), entry)
    }

    /// Appends a fact at a place of the caller's choice, behind all others: whoever reads a log back that has lost
    /// entries keeps the places of the rest. The places between stay free for good.
    pub fn append_at(&mut self, seq: Seq, entry: Entry) -> Result<Seq, Error> {
        check(&entry)?;
        if let Some(head) = self.head.filter(|&head| seq <= head) {
            return Err(Error::input(format!("place {seq} is not behind {head}, the newest")));
        }
        if seq > SEQ_MAX {
            return Err(Error::input(format!("place {seq} is beyond {SEQ_MAX}, the last one")));
        }
        let (section, lane, role) = (entry.section.clone(), entry.lane, entry.role);
        let known = self.strands.iter().position(|s| s.role == role && s.lane == lane && s.section == section);
        let at = known.unwrap_or_else(|| {
            self.strands.push(Strand::empty(section, lane, role, seq));
            self.strands.len() - 1
        });
        let lens = Lens { counter: &*self.counter, screen: &self.screen };
        let mut secrets = Cow::Borrowed(&*self.secrets);
        let counted = Counted::new(seq, entry, &lens, &mut secrets);
        if let Cow::Owned(more) = secrets {
            self.secrets = Arc::new(more);
        }
        self.has_found = self.has_found || counted.has_found();
        let (strand, counted) = (&mut self.strands[at], Arc::new(counted));
        strand.tip = Some(Arc::new(Node::on(strand.tip.take(), counted, strand.below.as_ref())));
        self.head = Some(seq);
        Ok(seq)
    }

    /// Counts an entry without appending it: the input of a call that may still fail. An input that says nothing is
    /// refused, since no page would show it.
    pub fn draft(&self, entry: Entry) -> Result<Counted, Error> {
        check(&entry)?;
        if entry.parts.iter().all(|part| matches!(part, Part::Text { text } if text.is_empty())) {
            return Err(Error::input("the input is empty").hinting("leave it out, or say something"));
        }
        let mut secrets = Cow::Borrowed(&*self.secrets);
        Ok(Counted::new(self.head.map_or(Seq(0), Seq::next), entry, &self.lens(), &mut secrets))
    }

    /// Returns the log as it was when `head` was its newest entry; it shares everything with this one.
    pub fn until(&self, head: Option<Seq>) -> Log {
        let back = |(at, strand): (usize, &Strand)| {
            if let Some(tip) = strand.tip.as_ref().and_then(|tip| seek(tip, head?)) {
                return Some(Strand { tip: Some(tip.clone()), ..strand.clone() });
            }
            Some(Strand { tip: None, below: Some(self.unread_tally(at, head?)?), ..strand.clone() })
        };
        // A strand that begins later is left out: in the new log it may begin in another order.
        let strands: Vec<Strand> = self.strands.iter().enumerate().filter_map(back).collect();
        // The place asked for may be a free one.
        let newest = |strand: &Strand| {
            let below = || strand.below.as_ref().map(|below| below.last);
            strand.tip.as_ref().map(|tip| tip.counted.seq).or_else(below)
        };
        let head = strands.iter().filter_map(newest).max();
        Log { strands, head, ..self.clone() }
    }

    /// Returns what it holds, strand by strand.
    pub fn tally(&self) -> Tally {
        let of = |strand: &Strand| {
            let Strand { section, lane, role, first, tip, below } = strand;
            let last = tip.as_ref().map(|tip| tip.counted.seq).or(below.as_ref().map(|below| below.last));
            let (section, lane, role, first) = (section.clone(), *lane, *role, *first);
            StrandTally {
                section,
                lane,
                role,
                first,
                last: last.unwrap_or(first),
                sums: strand.sums(),
                edge: strand.edge(),
            }
        };
        Tally::of(self.strands.iter().map(of).collect())
    }

    /// Returns an entry by its place.
    pub fn get(&self, seq: Seq) -> Option<&Counted> {
        let nodes = self.strands.iter().filter_map(|strand| seek(strand.tip.as_ref()?, seq));
        let found = nodes.map(|node| &*node.counted).find(|counted| counted.seq == seq);
        found.or_else(|| self.unread_entry(seq))
    }

    /// Returns how much a span holds in one lane, without walking it.
    pub fn cost(&self, lane: Lane, span: Span) -> Sums {
        self.sums(span, &Scope { lane: Some(lane), ..Scope::default() })
    }

    /// Returns how much a span holds in all lanes, without walking it.
    pub fn total(&self, span: Span) -> Sums {
        self.sums(span, &Scope::default())
    }

    /// Returns how much of a scope a span holds, without walking it.
    pub fn sums(&self, span: Span, scope: &Scope) -> Sums {
        let mut sums = Sums::default();
        for (at, strand) in self.strands.iter().enumerate().filter(|(_, strand)| strand.is_in(scope)) {
            let through = |seq| {
                let node = strand.tip.as_ref().and_then(|tip| seek(tip, seq));
                node.map_or_else(|| self.unread_sums(at, seq), |node| node.sums)
            };
            let before = if span.first.0 == 0 { Sums::default() } else { through(Seq(span.first.0 - 1)) };
            // An empty span (first after last) sums to nothing.
            sums += through(span.last.max(Seq(span.first.0.saturating_sub(1)))) - before;
        }
        sums
    }

    /// Returns the newest entry that nothing before it is shown with.
    pub fn edge(&self) -> Option<Seq> {
        self.strands.iter().filter_map(Strand::edge).max()
    }

    /// Walks the entries of all strands from the newest back.
    pub fn back(&self) -> Back<'_> {
        self.back_in(&Scope::default())
    }

    /// Walks the entries of a scope from the newest back.
    pub fn back_in(&self, scope: &Scope) -> Back<'_> {
        let strands = self.strands.iter().enumerate().filter(|(_, strand)| strand.is_in(scope));
        Back { log: self, tips: strands.filter_map(|(strand, it)| Tip::of(it.tip.as_deref(), strand, self)).collect() }
    }

    /// Returns the sections that occur, in the order they first did.
    pub fn sections(&self) -> Vec<&Section> {
        let mut sections: Vec<&Section> = Vec::new();
        for strand in &self.strands {
            if !sections.contains(&&strand.section) {
                sections.push(&strand.section);
            }
        }
        sections
    }

    /// Walks the entries of one role from the newest back.
    pub fn back_by(&self, role: Role) -> Back<'_> {
        self.back_in(&Scope { role: Some(role), ..Scope::default() })
    }

    /// Returns the oldest entry of a role at or after a place, in logarithmic time.
    pub fn first_by(&self, role: Role, from: Seq) -> Option<&Counted> {
        self.first_in(&Scope { role: Some(role), ..Scope::default() }, from)
    }

    /// Returns the oldest entry of a scope at or after a place, in logarithmic time.
    pub fn first_in(&self, scope: &Scope, from: Seq) -> Option<&Counted> {
        let strands = self.strands.iter().enumerate().filter(|(_, strand)| strand.is_in(scope));
        let firsts = strands.filter_map(|(at, strand)| match &strand.below {
            Some(below) if from <= below.last => self.unread_first(at, from),
            _ => Some(&*first_from(strand.tip.as_deref()?, from)?.counted),
        });
        firsts.min_by_key(|counted| counted.seq)
    }
}

impl Node {
    fn on(previous: Option<Arc<Node>>, counted: Arc<Counted>, below: Option<&StrandTally>) -> Node {
        // Whoever reads: what was said is the same for all.
        let own = Sums { entries: 1, tokens: counted.said_cost() };
        let edge = counted.original().edge.then_some(counted.seq);
        let Some(parent) = previous else {
            let edge = edge.or_else(|| below?.edge);
            let sums = below.map_or(Sums::default(), |below| below.sums) + own;
            return Node { edge, counted, previous: None, jump: None, depth: 1, sums };
        };
        // Two equal jumps in a row merge into one twice as long: the skew-binary rule.
        let far = parent.jump.as_ref().and_then(|jump| {
            let second = jump.jump.as_ref()?;
            (parent.depth - jump.depth == jump.depth - second.depth).then(|| second.clone())
        });
        Node {
            jump: Some(far.unwrap_or_else(|| parent.clone())),
            depth: parent.depth + 1,
            sums: parent.sums + own,
            edge: edge.or(parent.edge),
            counted,
            previous: Some(parent),
        }
    }
}

impl Drop for Node {
    // Dropping a chain of a million nodes by recursion would overflow the stack. A jump's target is also held by
    // the chain behind it, so letting go of the jump first never frees anything.
    fn drop(&mut self) {
        self.jump = None;
        let mut next = self.previous.take();
        while let Some(mut node) = next.and_then(Arc::into_inner) {
            node.jump = None;
            next = node.previous.take();
        }
    }
}

/// Returns the newest node at or before a place.
fn seek(tip: &Arc<Node>, seq: Seq) -> Option<&Arc<Node>> {
    let mut at = tip;
    while at.counted.seq > seq {
        at = match at.jump.as_ref() {
            Some(jump) if jump.counted.seq > seq => jump,
            _ => at.previous.as_ref()?,
        };
    }
    Some(at)
}

/// Returns the oldest node at or after a place.
fn first_from(tip: &Node, seq: Seq) -> Option<&Node> {
    let mut at = (tip.counted.seq >= seq).then_some(tip)?;
    loop {
        at = match (at.jump.as_deref(), at.previous.as_deref()) {
            (Some(jump), _) if jump.counted.seq >= seq => jump,
            (_, Some(previous)) if previous.counted.seq >= seq => previous,
            _ => return Some(at),
        };
    }
}

/// Entries from the newest back, merged over strands.
#[derive(Debug)]
pub struct Back<'a> {
    log: &'a Log,
    tips: Vec<Tip<'a>>,
}

/// How far one strand was walked.
#[derive(Clone, Copy, Debug)]
struct Tip<'a> {
    strand: usize,
    seq: Seq,
    /// `None` where the entry was not read.
    node: Option<&'a Node>,
}

impl<'a> Tip<'a> {
    fn of(node: Option<&'a Node>, strand: usize, log: &'a Log) -> Option<Tip<'a>> {
        let below = || Some(log.strands[strand].below.as_ref()?.last);
        let seq = node.map(|node| node.counted.seq).or_else(below)?;
        Some(Tip { strand, seq, node })
    }
}

impl<'a> Iterator for Back<'a> {
    type Item = &'a Counted;

    fn next(&mut self) -> Option<&'a Counted> {
        let mut at = 0;
        for nth in 1..self.tips.len() {
            if self.tips[nth].seq > self.tips[at].seq {
                at = nth;
            }
        }
        let tip = *self.tips.get(at)?;
        let Some(node) = tip.node else {
            self.log.miss(Missing::Back { strand: tip.strand, below: tip.seq.next() });
            self.tips.clear();
            return None;
        };
        match Tip::of(node.previous.as_deref(), tip.strand, self.log) {
            Some(previous) => self.tips[at] = previous,
            None => drop(self.tips.swap_remove(at)),
        }
        Some(&node.counted)
    }
}

fn check(entry: &Entry) -> Result<(), Error> {
    let refuse = |what: String| Err(Error::input(format!("{} entry: {what}", entry.role)));
    if entry.parts.len() > PARTS_MAX {
        return refuse(format!("{} parts; at most {PARTS_MAX} are taken", entry.parts.len()));
    }
    // Results come, grow old and go one by one; an entry with two would tie their fates together.
    if entry.role == Role::Tool && entry.parts.len() != 1 {
        return refuse(format!("{} parts; it holds exactly one result", entry.parts.len()));
    }
    for part in entry.parts.iter() {
        match (part, entry.role) {
            (Part::Call(_) | Part::Reasoning(_), Role::Assistant) | (Part::Result(_), Role::Tool) => {}
            (Part::Call(_), _) => return refuse("a call; only an assistant makes calls".into()),
            (Part::Reasoning(_), _) => return refuse("reasoning; only an assistant reasons".into()),
            (Part::Result(_), _) => return refuse("a result; results stand in tool entries".into()),
            (_, Role::Tool) => return refuse("a part that is no result".into()),
            _ => {}
        }
    }
    if let Some((what, instead)) = entry.expiry.and_then(|expiry| expiry.action.mistake()) {
        return refuse(format!("its expiry: {what}")).map_err(|error| error.hinting(instead));
    }
    let mut ids: Vec<_> = entry.calls().map(|call| &call.id).collect();
    ids.sort_unstable();
    if let Some(twice) = ids.windows(2).find(|pair| pair[0] == pair[1]) {
        return refuse(format!("call id {:?} stands twice in one step", twice[0].as_str()));
    }
    match entry.redactions.iter().find(|redaction| !shown::fits(redaction, &entry.parts)) {
        Some(redaction) => refuse(format!("redaction {redaction:?} lies outside the text, or cuts a character")),
        None => Ok(()),
    }
}
