//! What stands on a page already, and need not come back.

use super::shelf::Passage;
use crate::compile::Compiled;
use crate::digest::Digest;
use crate::entry::{Part, Seq, Span};
use crate::item::{Item, Kind, result_text};
use crate::log::Counted;
use crate::receipt::Fate;
use crate::request::Request;
use crate::select;
use std::collections::HashSet;

/// Shorter lines say too little to tell whether they stand on the page.
const LINE_BYTES_MIN: usize = 8;

/// What need not come back: a page shows it, or a provider that remembers already holds it, or nobody may see it.
#[derive(Clone, Debug, Default)]
pub struct OnPage<'r> {
    request: Option<Request<'r>>,
    shown: HashSet<Seq>,
    held: Vec<Span>,
    changed: HashSet<Seq>,
    /// The lines of entries that are shown otherwise than they were said.
    lines: HashSet<Digest>,
    is_everything: bool,
}

impl<'r> OnPage<'r> {
    /// Returns what a page shows, and what its request selects.
    pub fn of(request: &Request<'r>, compiled: &Compiled) -> OnPage<'r> {
        let mut on_page = OnPage { request: Some(*request), is_everything: true, ..OnPage::default() };
        for row in &compiled.receipt.fates {
            let is_held = &*row.by == "session";
            on_page.is_everything &= row.fate == Fate::Shown || is_held;
            match row.fate {
                _ if is_held => on_page.held.push(row.span),
                Fate::Shown => drop(on_page.shown.insert(row.span.first)),
                Fate::Changed => drop(on_page.changed.insert(row.span.first)),
                Fate::NotShown => {}
            }
        }
        for message in &compiled.page.messages {
            if message.seq.is_some_and(|seq| on_page.changed.contains(&seq)) {
                message.parts.iter().for_each(|part| on_page.read(part));
            }
        }
        on_page
    }

    /// Returns whether nothing has left the page.
    pub fn is_everything(&self) -> bool {
        self.is_everything
    }

    fn read(&mut self, part: &Part) {
        let text = match part {
            Part::Text { text } => text.clone(),
            Part::Call(call) => call.arguments.as_str().into(),
            Part::Result(result) => result_text(result),
            _ => return,
        };
        self.lines.extend(lines(&text));
    }

    /// Whether the request shows no entry like this one, wherever it stands.
    fn is_excluded(&self, entry: &Counted) -> bool {
        let Some(request) = &self.request else { return false };
        let item = Item::new(entry, Kind::Message);
        let own = request.policy.own_selects().iter().map(|pass| &**pass);
        let mut passes = select::ALL.iter().copied().chain(own);
        request.log.edge().is_some_and(|edge| entry.seq < edge)
            || passes.any(|pass| pass.excludes(&item, request).is_some())
    }

    /// Whether a passage need not come back, or half of it.
    pub(super) fn has(&self, passage: &Passage<'_>) -> bool {
        let seq = passage.place.seq;
        if self.is_excluded(passage.entry) {
            return true;
        }
        if self.shown.contains(&seq) || self.held.iter().any(|span| span.contains(seq)) {
            return true;
        }
        if !self.changed.contains(&seq) {
            return false;
        }
        let (mut all, mut there) = (0, 0);
        for line in lines(passage.text) {
            all += 1;
            there += usize::from(self.lines.contains(&line));
        }
        2 * there > all
    }
}

fn lines(text: &str) -> impl Iterator<Item = Digest> {
    let lines = text.lines().map(str::trim).filter(|line| line.len() >= LINE_BYTES_MIN);
    lines.map(|line| Digest::of(line.as_bytes()))
}
