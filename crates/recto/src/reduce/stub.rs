//! What stands in a result's place, and which results may be replaced: shared by the passes that look for repeats.

use crate::edit::{Change, Edit, PartAt, PassName, Reason, Turn};
use crate::entry::{Call, Lane, RunId, Seq, ToolResult};
use crate::item::{Answer, Changed, Item, Kind, as_result, result_text};
use crate::log::Counted;
use crate::reader::Decided;
use crate::request::Request;
use crate::tokens::{Tokenizer, Tokens};
use crate::view::View;
use std::borrow::Cow;

/// Shorter results are left alone: a stub would hardly be smaller.
pub(super) const MINIMUM: Tokens = Tokens(32);
/// How much of a tool's name a stub tells, in characters.
const NAME_CHARS_MAX: usize = 40;
/// Among how many shapes of stubs one is looked for.
const SHAPES_MAX: usize = 16;
/// How long a stub is, about, in bytes.
const STUB_BYTES: usize = 96;

/// A result that stands whole on the page, and the item it belongs to.
#[derive(Clone, Copy)]
pub(super) struct Whole<'v, 'a> {
    pub(super) item: &'v Item<'a>,
    /// Which of the items that is.
    pub(super) nth: usize,
    /// Which part of the item's first entry makes the call.
    pub(super) call_at: usize,
    pub(super) entry: &'a Counted,
    /// What it costs as it is shown now.
    pub(super) cost: Tokens,
    /// Whether an edit has changed it all the same; another would not be taken.
    pub(super) is_edited: bool,
}

/// Returns the results of the conversation that stand whole on the page, in its order.
pub(super) fn whole<'v, 'a>(view: &'v View<'a>) -> Vec<Whole<'v, 'a>> {
    let mut results = Vec::with_capacity(view.items().len());
    for nth in 0..view.items().len() {
        whole_in(view, nth).for_each(|it| results.push(it));
    }
    results
}

/// Returns those of one item.
pub(super) fn whole_in<'v, 'a>(view: &'v View<'a>, nth: usize) -> impl Iterator<Item = Whole<'v, 'a>> {
    let item = &view.items()[nth];
    let is_step = item.kind() == Kind::Step && item.is_shown() && item.is_main();
    let answers: &[Answer<'a>] = if is_step { &item.answers } else { &[] };
    answers.iter().filter_map(move |answer| {
        // What the target must be told in other words is still all there; what was asked back in part is not.
        let is_whole = |changed: &Changed| matches!(changed.why, Reason::NotTaken { .. });
        let entry = answer.result.filter(|_| answer.changed.as_deref().is_none_or(is_whole))?;
        let cost = answer.changed.as_deref().map_or(entry.cost, |changed| changed.cost);
        let is_edited = answer.changed.as_deref().is_some_and(|changed| changed.is_edit);
        Some(Whole { item, nth, call_at: answer.call, entry, cost, is_edited })
    })
}

/// Whether something holds for one of the results that passes may change now, by their items.
pub(super) fn any_free<'v, 'a>(view: &'v View<'a>, holds: impl Fn(&Whole<'v, 'a>) -> bool) -> bool {
    (view.cut..view.items().len()).any(|nth| whole_in(view, nth).any(|it| holds(&it)))
}

/// Puts results in groups of which one may stand for another: traces of a run can leave the page together, so nothing
/// outside may depend on them.
pub(super) fn by_run<'r, 'v, 'a>(results: &'r mut [Whole<'v, 'a>]) -> impl Iterator<Item = &'r mut [Whole<'v, 'a>]> {
    // Talk stays on the page, whichever run it belongs to. Nearly always that is all there is.
    if results.iter().any(|it| it.run().is_some()) {
        results.sort_by_key(|it| it.run());
    }
    results.chunk_by_mut(|one, next| one.run() == next.run())
}

impl<'a> Whole<'_, 'a> {
    /// Where it stands in the log.
    pub(super) fn at(&self) -> PartAt {
        PartAt { seq: self.entry.seq, part: 0 }
    }

    /// The call that it answers.
    pub(super) fn call(&self) -> &'a Call {
        self.item.call_in(self.call_at)
    }

    /// What the tool said.
    pub(super) fn result(&self) -> &'a ToolResult {
        as_result(self.entry)
    }

    /// The run that it is a trace of, if it is a trace.
    fn run(&self) -> Option<Option<&'a RunId>> {
        let entry = self.item.entry.original();
        (entry.lane == Lane::Trace).then_some(entry.run.as_ref())
    }

    /// Whether the model has seen it, and nothing speaks against a change.
    pub(super) fn may_change(&self, request: &Request<'_>) -> bool {
        self.item.keep().is_none() && request.reader.has_seen(self.entry.seq) && !self.is_touched(request)
    }

    /// Whether the model has not seen it yet, and nothing but its newness speaks against a change.
    pub(super) fn may_come_changed(&self, request: &Request<'_>) -> bool {
        let is_free = matches!(self.item.keep(), None | Some(Reason::Newest));
        is_free && !request.reader.has_seen(self.entry.seq) && !self.is_touched(request)
    }

    fn is_touched(&self, request: &Request<'_>) -> bool {
        Decided { reader: request.reader, more: &[] }.touched(self.at())
    }

    /// Returns the edit that puts a stub in its place, if that is really less.
    pub(super) fn stub(&self, why: Stub, view: &View<'_>) -> Option<Edit> {
        StubCosts::of(view).stub(self, why)
    }

    fn write_stub(&self, what: &What, text: &mut String) {
        text.push('[');
        text.push_str(&tool_name(&self.call().name));
        text.push_str(" result, ");
        write_number(self.entry.result_chars() as u64, text);
        text.push_str(" characters: ");
        text.push_str(what.0);
        if let Some((at, words)) = what.1 {
            write_handle(at, text);
            text.push_str(words);
        }
        text.push_str("; recto_expand ");
        write_handle(self.entry.seq, text);
        text.push(']');
    }
}

/// What stubs cost: most differ only in their numbers, so few need be counted.
pub(super) struct StubCosts<'v, 'a> {
    view: &'v View<'a>,
    /// Whether a number costs one token for every three digits, whatever stands around it: in these vocabularies it does.
    is_by_digits: bool,
    known: Vec<(Shape<'a>, Tokens)>,
    text: String,
}

/// A tool, and what a stub says before and behind the other's handle.
type Shape<'a> = (&'a str, &'static str, &'static str);

impl<'v, 'a> StubCosts<'v, 'a> {
    pub(super) fn of(view: &'v View<'a>) -> StubCosts<'v, 'a> {
        let exact = [Tokenizer::O200k, Tokenizer::Cl100k];
        let is_by_digits = exact.iter().any(|it| it.as_str() == view.counter.name());
        StubCosts { view, is_by_digits, known: Vec::new(), text: String::new() }
    }

    /// Returns the edit that puts a stub in a result's place, if that is really less.
    pub(super) fn stub(&mut self, it: &Whole<'_, 'a>, why: Stub) -> Option<Edit> {
        let (at, before) = (it.at(), it.cost);
        let mut text = String::with_capacity(STUB_BYTES);
        if why.head > 0 {
            let whole = result_text(it.result());
            let end = whole.char_indices().nth(why.head)?.0;
            text.push_str(&whole[..end]);
            text.push('\n');
        }
        it.write_stub(&why.what, &mut text);
        let after = if why.head > 0 { self.view.count(&text) } else { self.cost(it, &why.what) };
        let change = Change::Replace { at, text: text.into() };
        let edit = Edit { change, by: why.by, why: why.why, before, after, due: why.due };
        (after < before).then_some(edit)
    }

    /// Returns what a stub in a result's place would save, if anything.
    pub(super) fn saved(&mut self, it: &Whole<'_, 'a>, what: &What) -> Option<Tokens> {
        let after = self.cost(it, what);
        (after < it.cost).then(|| it.cost - after)
    }

    fn cost(&mut self, it: &Whole<'_, 'a>, what: &What) -> Tokens {
        let (other, behind) = what.1.map_or((Tokens(0), ""), |(at, words)| (number_cost(at.0), words));
        let numbers = number_cost(it.entry.result_chars() as u64) + other + number_cost(it.entry.seq.0);
        let shape = (&*it.call().name, what.0, behind);
        let known = self.known.iter().find(|(known, _)| self.is_by_digits && *known == shape);
        known.map(|(_, words)| *words + numbers).unwrap_or_else(|| {
            self.text.clear();
            self.text.reserve(STUB_BYTES);
            it.write_stub(what, &mut self.text);
            let cost = self.view.count(&self.text);
            if self.known.len() < SHAPES_MAX {
                self.known.push((shape, cost - numbers));
            }
            cost
        })
    }
}

/// What a number costs where three digits are one token.
fn number_cost(number: u64) -> Tokens {
    Tokens(u64::from(number.checked_ilog10().unwrap_or_default()) / 3 + 1)
}

/// Writes what [`PartAt`] is displayed as, for the first part of an entry. Plans that wait do this so often that it shows.
fn write_handle(seq: Seq, text: &mut String) {
    text.push('m');
    write_number(seq.0, text);
}

fn write_number(number: u64, text: &mut String) {
    if number >= 10 {
        write_number(number / 10, text);
    }
    text.push((b'0' + (number % 10) as u8) as char);
}

/// Why a stub is to stand in a result's place.
pub(super) struct Stub {
    pub(super) by: PassName,
    pub(super) why: Reason,
    /// What the stub says beside name, size and handle.
    pub(super) what: What,
    /// How many characters of the result stand before it.
    pub(super) head: usize,
    pub(super) due: Option<Turn>,
}

/// What has become of a result: words, and between them the other result that they speak of, if they speak of one.
pub(super) struct What(pub(super) &'static str, pub(super) Option<(Seq, &'static str)>);

/// A tool's name, without anything that could be taken for the end of a stub.
pub(super) fn tool_name(name: &str) -> Cow<'_, str> {
    let is_plain = |letter: char| letter.is_alphanumeric() || matches!(letter, '_' | '-' | '.');
    if !name.is_empty() && name.len() <= NAME_CHARS_MAX && name.chars().all(is_plain) {
        return name.into();
    }
    let plain: String = name.chars().filter(|letter| is_plain(*letter)).take(NAME_CHARS_MAX).collect();
    if plain.is_empty() { "tool".into() } else { plain.into() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tokens::Count;

    #[test]
    fn every_three_digits_of_a_number_are_one_token() {
        for tokenizer in [Tokenizer::O200k, Tokenizer::Cl100k] {
            let cost = |tool: &str, chars: u64, other: u64, own: u64| {
                let mut text = format!("[{} result, ", tool_name(tool));
                write_number(chars, &mut text);
                text.push_str(" characters: read again, see ");
                write_handle(Seq(other), &mut text);
                text.push_str(" below; recto_expand ");
                write_handle(Seq(own), &mut text);
                text.push(']');
                tokenizer.count(&text)
            };
            let words = cost("read_file", 0, 0, 0) - Tokens(3);
            let told = |numbers: [u64; 3]| words + numbers.map(number_cost).into_iter().sum();
            for number in 0..1_000_u64 {
                assert_eq!(tokenizer.count(&number.to_string()), Tokens(1), "{number}");
                for numbers in [[number, 7, 7], [7, number, 7], [7, 7, number], [1_000, 10_000, 100_000 + number]] {
                    assert_eq!(cost("read_file", numbers[0], numbers[1], numbers[2]), told(numbers), "{numbers:?}");
                }
                // Of any length, and with any digits.
                let mix =
                    |nth: u64| (number + nth).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> ((number * 7 + nth * 13) % 64);
                let numbers = [mix(1), mix(2), mix(3)];
                assert_eq!(cost("read_file", numbers[0], numbers[1], numbers[2]), told(numbers), "{numbers:?}");
            }
            for tool in ["a", "tool7", "x-1.2", "42", "名前", "_", "."] {
                let words = cost(tool, 0, 0, 0) - Tokens(3);
                assert_eq!(cost(tool, 1_234_567, 89, u64::MAX), words + Tokens(3 + 1 + 7), "{tool}");
            }
        }
    }

    #[test]
    fn a_handle_is_written_as_it_is_displayed() {
        for seq in [0, 9, 10, 123_456, u64::MAX].map(Seq) {
            let mut text = String::new();
            write_handle(seq, &mut text);
            assert_eq!(text, PartAt { seq, part: 0 }.to_string());
        }
    }
}
