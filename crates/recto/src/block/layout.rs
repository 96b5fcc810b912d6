//! From a view to blocks: what stands where, what has room, and what becomes of every item.

use super::past::{self, Entry, Gathered, Share, Takers};
use super::{Asked, Block, Facts, Forged, Given, Kind, Past, SharedMemory};
use crate::compile::{Compiled, finish, read_bound};
use crate::edit::{Edit, Reason};
use crate::entry::{Part, Role, Text};
use crate::error::Error;
use crate::forging::{Cut, Delimiters};
use crate::fragment::{Fragment, Fragments, Lifecycle, Placement, Priority, Rendered, Trust};
use crate::holding::Holding;
use crate::item::{Changed, Item, Laid, as_result, result_text};
use crate::policy::Policy;
use crate::reader::Decided;
use crate::receipt::{Overflow, Warning};
use crate::request::Request;
use crate::tokens::Tokens;
use crate::view::shape::LATE_SYSTEM;
use crate::view::{Purpose, View};

/// How much is read back for what was said before, where nobody knows how long a window is.
const READ_MAX: Tokens = Tokens(1_000_000);

impl Policy {
    /// Returns what stands for structure on a page of this policy: [`Delimiters::original`] takes a text of a page back to
    /// what was said.
    pub fn delimiters(&self) -> Delimiters {
        if self.blocks.is_empty() || self.forged == Forged::Left {
            return Delimiters::default();
        }
        let tags = self.blocks.iter().filter_map(|block| block.tag.as_ref());
        let known = tags.fold(Delimiters::default().with_tag(LATE_SYSTEM), |known, tag| known.with_tag(tag));
        self.blocks.iter().fold(known, |known, block| block.kind.as_render().delimiters(known))
    }

    /// The block that tells what was said before, if history stands in one.
    pub(crate) fn memory(&self) -> Option<(&Block, &SharedMemory)> {
        self.blocks.iter().find_map(|block| match &block.kind {
            Kind::SharedMemory(memory) => Some((block, memory)),
            _ => None,
        })
    }

    fn moment(&self) -> Option<&Block> {
        self.blocks.iter().find(|block| matches!(block.kind, Kind::Moment(_)))
    }
}

/// Whether and how far a log is read for the blocks of a request: `None` where history stands on the page as messages.
pub(crate) fn reads(request: &Request<'_>) -> Option<Tokens> {
    request.policy.memory()?;
    Some(request.target.window.filter(|window| *window > Tokens(0)).unwrap_or(READ_MAX))
}

/// The blocks as far as they are known before the log is read, for plans to reckon with.
pub(crate) fn rough(request: &Request<'_>) -> Result<Fragments, Error> {
    let mut layout = Layout::of(request);
    if let Some(input) = request.input.filter(|_| request.policy.moment().is_some()) {
        let (asked, media) = past::said_now(input, request);
        (layout.asked, layout.media) = (Some(asked), media);
    }
    layout.render()?;
    Ok(layout.arranged())
}

/// Compiles the page of a policy that has blocks.
pub(crate) fn compile(request: &Request<'_>, more: &[Edit]) -> Result<Compiled, Error> {
    let decided = Decided { reader: request.reader, more };
    let bound = reads(request).unwrap_or_else(|| read_bound(request));
    let mut view = View::of(request, decided, bound, Purpose::Compile);
    if reads(request).is_some() {
        view.take_as_whole();
    }
    let mut layout = Layout::of(request);
    let moment = request.policy.moment();
    let takers = Takers {
        memory: request.policy.memory().map(|(block, memory)| (block.name().into(), memory.merge)),
        moment: moment.map(|block| block.name().into()),
    };
    let Gathered { entries, asked, media } = past::lay(&mut view, request, &takers);
    (layout.asked, layout.media) = match request.input.filter(|_| moment.is_some()) {
        Some(input) => {
            let (asked, media) = past::said_now(input, request);
            (Some(asked), media)
        }
        None => (asked, media),
    };
    neutralise(&mut view, &layout.delimiters);
    layout.render()?;
    view.warnings.append(&mut layout.warnings);
    let input = request.input.filter(|_| moment.is_none());
    let without = layout.arranged();
    view.has_user_head = Request { fragments: Some(&without), ..*request }.has_user_head();
    layout.remember(&mut view, entries, &Request { fragments: Some(&without), input, ..*request })?;
    let whole = layout.arranged();
    let request = &Request { fragments: Some(&whole), input, ..*request };
    let budget = request.budget()?;
    if budget.over(view.cost()) > Tokens(0) || !view.window.is_complete {
        return Err(Overflow::of(&view, request, &budget).into());
    }
    view.session = request.held();
    let told = view.items.iter().filter(|item| matches!(item.laid, Laid::Told(_))).flat_map(Item::seqs).collect();
    // A block is told anew at every call, whatever of it a provider holds.
    let holding = match (&takers.memory, request.usable_session()) {
        (None, _) => Holding { told, ..Holding::of(&view, request, decided, &budget) },
        (Some(_), Ok(session)) => Holding { session: Some(session), told, ..Holding::default() },
        (Some(_), Err(full)) => Holding { full, told, ..Holding::default() },
    };
    finish(request, view, &budget, &holding)
}

/// The blocks of one page in the making.
struct Layout<'a> {
    request: Request<'a>,
    delimiters: Delimiters,
    asked: Option<Asked>,
    media: Vec<Part>,
    /// What each block says, in the order of the policy; what was said before comes last.
    told: Vec<Option<Rendered>>,
    warnings: Vec<Warning>,
}

impl<'a> Layout<'a> {
    fn of(request: &Request<'a>) -> Layout<'a> {
        let fences = request.fragments.into_iter().flat_map(Fragments::list).filter_map(|it| it.fragment.fence());
        let delimiters = fences.fold(request.policy.delimiters(), |known, fence| match request.policy.forged {
            Forged::Escaped => known.with_fence(fence),
            Forged::Left => known,
        });
        let told = vec![None; request.policy.blocks.len()];
        Layout { request: *request, delimiters, asked: None, media: Vec::new(), told, warnings: Vec::new() }
    }

    /// Renders all blocks but the one that tells what was said before.
    fn render(&mut self) -> Result<(), Error> {
        for (at, block) in self.request.policy.blocks.iter().enumerate() {
            if !matches!(block.kind, Kind::SharedMemory(_)) {
                let (rendered, cut) = self.rendered(block, &[], block.priority)?;
                self.warnings.extend(cut.map(|Cut { shown, of }| Warning::BlockCut {
                    block: block.name().into(),
                    shown,
                    of,
                }));
                self.told[at] = Some(rendered);
            }
        }
        Ok(())
    }

    fn rendered(&self, block: &Block, past: &[Past], priority: Priority) -> Result<(Rendered, Option<Cut>), Error> {
        let none = Facts::default();
        let given = Given {
            facts: self.request.facts.unwrap_or(&none),
            tools: self.request.tools,
            blocks: &self.request.policy.blocks,
            past,
            asked: self.asked.as_ref(),
        };
        let (content, cut) = match block.told(&given)? {
            Some((woven, cut)) => (woven.told(&self.delimiters), cut),
            None => (Text::from(""), None),
        };
        let is_head = match self.request.policy.memory() {
            // Instructions of the log stand behind the first block, before all others.
            Some(_) => block.role == Role::System && block.stability == Lifecycle::Static,
            None => block.stability == Lifecycle::Static,
        };
        let fragment = Fragment {
            id: block.id(),
            lifecycle: block.stability,
            role: block.role,
            placement: if is_head { Placement::Head } else { Placement::Tail },
            trust: Trust::Trusted,
            tag: block.tag.clone(),
            content,
            priority,
        };
        let media = if matches!(block.kind, Kind::Moment(_)) { &*self.media } else { &[] };
        let counter = self.request.log.counter();
        Ok((Rendered::of(fragment, counter, &Delimiters::default()).with(media, counter), cut))
    }

    /// All fragments in the order they stand in: the host's own before what is said now.
    fn arranged(&self) -> Fragments {
        let host = self.request.fragments.map(Fragments::list).unwrap_or_default();
        // A fence is closed by nobody else, whatever the policy says of blocks.
        let fences = host.iter().filter_map(|it| it.fragment.fence());
        let delimiters = fences.fold(self.delimiters.clone(), |known, fence| known.with_fence(fence));
        let counter = self.request.log.counter();
        let host = host.iter().map(|it| Rendered::of(it.fragment.clone(), counter, &delimiters));
        let (host_tail, host_head): (Vec<Rendered>, Vec<Rendered>) =
            host.partition(|it| it.fragment.placement == Placement::Tail);
        let own = |is_head: bool, is_moment: bool| {
            let blocks = self.request.policy.blocks.iter().zip(&self.told);
            let of = blocks.filter(move |(block, _)| matches!(block.kind, Kind::Moment(_)) == is_moment);
            let told = of.filter_map(|(_, told)| told.clone());
            told.filter(move |it| (it.fragment.placement == Placement::Head) == is_head)
        };
        let head = own(true, false).chain(host_head);
        let tail = own(false, false).chain(host_tail).chain(own(false, true)).chain(own(true, true));
        Fragments::of(head.chain(tail).collect())
    }

    /// Makes the block of what was said before, of as much as there is room for beside all that must stand.
    fn remember(&mut self, view: &mut View<'_>, entries: Vec<Entry>, request: &Request<'_>) -> Result<(), Error> {
        let Some((block, memory)) = self.request.policy.memory() else { return Ok(()) };
        let entries = newest(view, entries, memory.limit);
        for (item, cost) in entries.iter().flat_map(|entry| &entry.items) {
            view.items[*item].laid = Laid::Told(Share { block: block.name().into(), cost: *cost });
        }
        let left = request.budget()?.room() - view.cost();
        // The oldest go first, and what stays beside the newest goes last.
        let mut order: Vec<usize> = (0..entries.len()).collect();
        order.sort_by_key(|&at| (entries[at].stays, at));
        let rendered = |gone: usize, layout: &Layout<'_>| {
            let past = (0..entries.len()).filter(|at| !order[..gone].contains(at));
            let past: Vec<Past> = past.map(|at| entries[at].past.clone()).collect();
            layout.rendered(block, &past, Priority::Required).map(|(rendered, _)| rendered)
        };
        let cost = |it: &Rendered| it.cost + request.target.message_overhead + request.mark_cost(it);
        // Mostly there is room for all.
        let mut made = rendered(0, self)?;
        let (mut gone, mut most) = (0, if cost(&made) <= left { 0 } else { entries.len() });
        while gone < most {
            let middle = (gone + most) / 2;
            made = rendered(middle, self)?;
            if cost(&made) <= left { most = middle } else { gone = middle + 1 }
        }
        made = rendered(gone, self)?;
        while cost(&made) > left && gone < entries.len() {
            gone += 1;
            made = rendered(gone, self)?;
        }
        if cost(&made) > left {
            made.fragment.priority = Priority::Optional(0);
        }
        for (item, _) in order[..gone].iter().flat_map(|&at| &entries[at].items) {
            let why = Reason::OutOfBudget { block: block.name().into() };
            view.items[*item].hidden = Some(("blocks".into(), why));
        }
        let at = self.request.policy.blocks.iter().position(|it| it == block).unwrap_or_default();
        self.told[at] = Some(made);
        Ok(())
    }
}

/// Leaves the newest entries, and those that stand beside them.
fn newest(view: &mut View<'_>, entries: Vec<Entry>, limit: usize) -> Vec<Entry> {
    let others = entries.iter().filter(|entry| !entry.stays).count();
    let mut left_out = others.saturating_sub(limit);
    let mut kept = Vec::new();
    for entry in entries {
        if entry.stays || left_out == 0 {
            kept.push(entry);
            continue;
        }
        left_out -= 1;
        for (item, _) in entry.items {
            view.items[item].hidden = Some(("blocks".into(), Reason::NotNewest { keep: limit }));
        }
    }
    kept
}

/// Makes harmless what could be taken for structure in what stands on the page as messages.
fn neutralise(view: &mut View<'_>, delimiters: &Delimiters) {
    let (overhead, counter) = (view.overhead, view.counter);
    let changed = |text: Text| {
        let cost = counter.count(&text);
        Changed { text: Some(text), cost, by: "blocks".into(), why: Reason::Escaped, is_edit: false }
    };
    let neutral = |text: &str| match delimiters.neutral(text) {
        std::borrow::Cow::Borrowed(_) => None,
        std::borrow::Cow::Owned(text) => Some(Text::from(text)),
    };
    for item in view.items.iter_mut().filter(|item| item.is_message() && item.role() != Role::System) {
        for at in 0..item.parts().len() {
            let Part::Text { text } = &item.entry.shown()[at] else { continue };
            let said = item.changed_part(at).map_or(Some(text), |changed| changed.text.as_ref());
            let Some(text) = said.and_then(|text| neutral(text)) else { continue };
            match item.changed.iter_mut().find(|(part, _)| *part == at) {
                Some((_, known)) => (known.cost, known.text) = (counter.count(&text), Some(text)),
                None => item.changed.push((at, changed(text))),
            }
        }
        for answer in item.answers.iter_mut() {
            let Some(entry) = answer.result else { continue };
            let said = match &answer.changed {
                Some(known) => known.text.clone(),
                None => Some(result_text(as_result(entry))),
            };
            let Some(text) = said.and_then(|text| neutral(&text)) else { continue };
            match &mut answer.changed {
                Some(known) => (known.cost, known.text) = (counter.count(&text), Some(text)),
                None => answer.changed = Some(Box::new(changed(text))),
            }
        }
        item.recount(overhead, counter);
    }
}
