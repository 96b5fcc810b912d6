//! Compile: from the log and what was decided, the page and its receipt. It drops nothing by itself.

use crate::edit::Edit;
use crate::error::Error;
use crate::page::Page;
use crate::plan::{READ_ROOMS_MAX, plan};
use crate::reader::Decided;
use crate::receipt::{Ledger, Overflow, Receipt};
use crate::request::Request;
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
    compile_with(request, &[])
}

/// Plans, then compiles with the plan's own edits; for hosts that keep no decisions.
pub fn compile_once(request: &Request<'_>) -> Result<Compiled, Error> {
    let plan = plan(request)?;
    let mut compiled = compile_with(request, &plan.edits)?;
    compiled.receipt.warnings.extend(plan.warnings);
    Ok(compiled)
}

fn compile_with(request: &Request<'_>, more: &[Edit]) -> Result<Compiled, Error> {
    let budget = request.budget()?;
    // What a plan could read through, compile can: a window is never less than its room.
    let bound = request.target.window.map_or(Tokens(u64::MAX), |it| Tokens(it.0.saturating_mul(READ_ROOMS_MAX)));
    let view = View::of(request, Decided { reader: request.reader, more }, bound, Purpose::Compile);
    if budget.over(view.cost()) > Tokens(0) || !view.window.is_complete {
        return Err(Overflow::of(&view, request, &budget).into());
    }
    let mut ledger = Ledger::of(&budget);
    let page = Page::of(&view, request, &mut ledger);
    page.check().map_err(Error::defect)?;
    let receipt = Receipt::of(&view, &page, ledger, request);
    Ok(Compiled { page, receipt })
}
