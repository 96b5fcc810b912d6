//! Compile: from the log and what was decided, the page and its receipt. It drops nothing by itself.

use crate::block;
use crate::edit::Edit;
use crate::entry::Role;
use crate::error::Error;
use crate::fragment::{Fragments, Lifecycle, Placement, Priority, Rendered};
use crate::holding::Holding;
use crate::page::{Mode, Page, Placed, Stands};
use crate::plan::{Plan, READ_ROOMS_MAX, plan, plan_seeing};
use crate::reader::Decided;
use crate::receipt::{FragmentFate, FragmentRow, Ledger, Overflow, Receipt};
use crate::request::{Budget, Request};
use crate::screened::Screened;
use crate::target::EditsPast;
use crate::tokens::Tokens;
use crate::view::{Purpose, View};

/// A page, and the explanation of it.
#[derive(Clone, Debug, PartialEq)]
pub struct Compiled {
    /// What the model is to read.
    pub page: Page,
    /// What was kept, shortened or left out, why, and what it costs.
    pub receipt: Receipt,
}

/// Compiles the page that the reader's decisions ask for. What doesn't fit is an error with the whole breakdown.
pub fn compile(request: &Request<'_>) -> Result<Compiled, Error> {
    let screened = Screened::of(request)?;
    compile_with(&screened.request(request), &[])
}

/// Plans, then compiles with the plan's own edits; for hosts that keep no decisions.
pub fn compile_once(request: &Request<'_>) -> Result<Compiled, Error> {
    let screened = Screened::of(request)?;
    let request = &screened.request(request);
    let plan = plan(request)?;
    let compiled = compile_with(request, &plan.edits)?;
    Ok(compiled.told(plan))
}

/// Plans, and compiles the page if nothing is proposed, looking at the log only once. Else the host commits the edits, and
/// compiles then.
pub fn plan_or_compile(request: &Request<'_>) -> Result<(Plan, Option<Compiled>), Error> {
    let screened = Screened::of(request)?;
    let request = &screened.request(request);
    let (plan, seen) = plan_seeing(request)?;
    let Some(view) = seen else { return Ok((plan, None)) };
    let decided = Decided { reader: request.reader, more: &[] };
    let compiled = compile_view(request, decided, view)?;
    let wants = plan.wants.clone();
    Ok((Plan { wants, ..Plan::default() }, Some(compiled.told(plan))))
}

impl Compiled {
    /// Adds to the receipt what the plan of this call has to say.
    #[must_use]
    pub fn told(mut self, plan: Plan) -> Compiled {
        self.receipt.warnings.extend(plan.warnings);
        self.receipt.savings.waiting = plan.waiting;
        self
    }
}

fn compile_with(request: &Request<'_>, more: &[Edit]) -> Result<Compiled, Error> {
    request.policy.check()?;
    if !request.policy.blocks.is_empty() {
        return block::compile(request, more);
    }
    let decided = Decided { reader: request.reader, more };
    compile_view(request, decided, View::of(request, decided, read_bound(request), Purpose::Compile))
}

/// How far a log is read: what a plan could read through, compile can, for a window is never less than its room.
pub(crate) fn read_bound(request: &Request<'_>) -> Tokens {
    request.target.window.map_or(Tokens(u64::MAX), |it| Tokens(it.0.saturating_mul(READ_ROOMS_MAX)))
}

fn compile_view<'a>(request: &Request<'a>, decided: Decided<'a>, view: View<'a>) -> Result<Compiled, Error> {
    let budget = request.budget()?;
    if budget.over(view.cost()) > Tokens(0) || !view.window.is_complete {
        return Err(Overflow::of(&view, request, &budget).into());
    }
    let holding = Holding::of(&view, request, decided, &budget);
    finish(request, view, &budget, &holding)
}

/// Makes the page of a view that fits, and its receipt.
pub(crate) fn finish<'a>(
    request: &Request<'a>,
    mut view: View<'a>,
    budget: &Budget,
    holding: &Holding<'a>,
) -> Result<Compiled, Error> {
    check_ids(&view, request)?;
    request.tools.map_or(Ok(()), |tools| tools.check(request.target.wire))?;
    let (fragments, mut fragment_rows) = fragments(&view, request, budget, holding);
    let (mut page, mut ledger) = build(&view, request, &fragments, budget, holding);
    if request.target.edits_past == EditsPast::DropsLaterReasoning {
        let unbound = view.unbound(&page);
        if !unbound.is_empty() {
            view.drop_reasoning(&unbound);
            (page, ledger) = build(&view, request, &fragments, budget, holding);
        }
    }
    page.check().map_err(Error::defect)?;
    if page.mode == Mode::NothingNew {
        let shown = fragment_rows.iter_mut().filter(|row| row.fate == FragmentFate::Shown);
        shown.for_each(|row| row.fate = FragmentFate::Unsent);
    }
    ledger.held = held(&view, &page, &fragment_rows, holding);
    let receipt = Receipt::of(&view, &page, ledger, fragment_rows, request, holding);
    Ok(Compiled { page, receipt })
}

/// What the provider holds beside the page, by our count.
fn held(view: &View<'_>, page: &Page, fragments: &[FragmentRow], holding: &Holding<'_>) -> Tokens {
    if holding.session.is_none() {
        return Tokens(0);
    }
    let sent: Tokens = page.messages.iter().filter(|it| it.seq.is_some()).map(|it| it.cost).sum();
    let fixed: Tokens = fragments.iter().filter(|it| it.fate == FragmentFate::Held).map(|it| it.cost).sum();
    view.cost() - sent + fixed + holding.stale_tokens()
}

fn build(
    view: &View<'_>,
    request: &Request<'_>,
    fragments: &[Placed],
    budget: &Budget,
    holding: &Holding<'_>,
) -> (Page, Ledger) {
    let mut ledger = Ledger::of(budget);
    let page = Page::of(view, request, fragments, &mut ledger, holding);
    ledger.allowance = budget.allowance(ledger.used());
    (page, ledger)
}

/// A thing is either an entry, sent once, or a fragment, sent at every call.
fn check_ids(view: &View<'_>, request: &Request<'_>) -> Result<(), Error> {
    let Some(fragments) = request.fragments else { return Ok(()) };
    let ids = view.items.iter().filter_map(|item| item.entry.original().id.as_ref());
    match ids.into_iter().find(|id| fragments.list().iter().any(|it| *it.fragment.id == *id.as_str())) {
        Some(id) => Err(Error::settings(
            format!("{:?} is both an entry and a fragment", id.as_str()),
            "a thing is either stored once as an entry, or sent at every call as a fragment",
        )),
        None => Ok(()),
    }
}

/// The fragments that stand on the page: all that must, and of the others what there is room for beside the history,
/// those of higher priority first.
fn fragments(
    view: &View<'_>,
    request: &Request<'_>,
    budget: &Budget,
    holding: &Holding<'_>,
) -> (Vec<Placed>, Vec<FragmentRow>) {
    let all = request.fragments.map(Fragments::list).unwrap_or_default();
    let mut left = Tokens(budget.room().0) - view.cost();
    let mut order: Vec<usize> = (0..all.len()).collect();
    order.sort_by_key(|&at| std::cmp::Reverse(all[at].fragment.priority));
    let mut fates = vec![FragmentFate::Shown; all.len()];
    for at in order {
        let it = &all[at];
        let cost = it.cost + request.target.message_overhead;
        let held = holding.session.filter(|_| request.is_told_once(it));
        if it.is_empty() {
            fates[at] = FragmentFate::Empty;
        } else if held.is_some_and(|session| session.holds_fixed(&it.fragment.id, it.fingerprint)) {
            fates[at] = FragmentFate::Held;
        } else if it.fragment.priority != Priority::Required && cost > left {
            fates[at] = FragmentFate::Shed;
        } else {
            left -= if it.fragment.priority == Priority::Required { Tokens(0) } else { cost };
            fates[at] = if held.is_some() { FragmentFate::StaticChanged } else { FragmentFate::Shown };
        }
    }
    let is_delta = holding.session.is_some();
    let placed = all.iter().zip(&fates).filter_map(|(it, fate)| {
        let stands = match fate {
            FragmentFate::Shown if is_delta && request.is_resumed_as_user(it) => Stands::UserFirst,
            FragmentFate::Shown if request.target.forgets_instructions() && it.fragment.role == Role::System => {
                Stands::Instructions
            }
            FragmentFate::Shown if is_delta => Stands::At(it.fragment.placement),
            FragmentFate::Shown => Stands::At(request.placement(it)),
            // What the provider holds stands before it.
            FragmentFate::StaticChanged => Stands::At(Placement::Tail),
            _ => return None,
        };
        Some(Placed { rendered: it.clone(), stands })
    });
    let mut placed: Vec<Placed> = placed.collect();
    // Where they are told anew at every call, what stays the same comes first; and so on a page that a policy orders.
    // Blocks keep the order that they have.
    let has_blocks = !request.policy.blocks.is_empty();
    let may_move = |it: &Placed| !has_blocks || it.stands == Stands::Instructions;
    let comes_last = |it: &Placed| may_move(it) && it.rendered.fragment.lifecycle == Lifecycle::Dynamic;
    let is_ordered = request.target.forgets_instructions() || request.policy.prompts.full == Some(Placement::Head);
    if is_ordered {
        placed.sort_by_key(comes_last);
    }
    let row = |(it, fate): (&Rendered, &FragmentFate)| FragmentRow {
        id: it.fragment.id.clone(),
        lifecycle: it.fragment.lifecycle,
        fate: *fate,
        cost: it.cost,
        fingerprint: it.fingerprint,
    };
    (placed, all.iter().zip(&fates).map(row).collect())
}
