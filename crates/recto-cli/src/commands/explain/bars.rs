//! A receipt on a terminal: where its tokens go and what became of the entries as bars, and lines that fit its width.
//!
//! Every bar has its word and its number beside it, so that nothing is lost where colours are not seen.

use crate::paint::{FATES, Paint};
use crate::table::{self, Side};
use recto::Tokens;
use recto::receipt::{Fate, Ledger, Receipt};

/// A narrower terminal has no room for a bar.
const BAR_WIDTH_MIN: usize = 6;
const BAR_WIDTH_MAX: usize = 48;
/// Where a line goes on that doesn't fit: below what it says, and never below `fate`, so that no word is taken for one.
const INDENT: usize = 11;
const INDENT_OF_ROW: usize = 20;
const INDENT_NARROW: usize = 4;
const REASON_WIDTH_MIN: usize = 24;
const NARROW: usize = 48;
/// Parts of a block, in eighths.
const EIGHTHS: [&str; 8] = ["", "▏", "▎", "▍", "▌", "▋", "▊", "▉"];

/// A bar with what it stands for.
struct Bar {
    name: &'static str,
    tokens: Tokens,
    /// How the number is told.
    told: String,
    colour: Colour,
}

#[derive(Clone, Copy)]
enum Colour {
    Used,
    Free,
    Of(Fate),
}

/// Returns the text of a receipt with its bars, folded to a terminal's width.
pub(super) fn drawn(receipt: &Receipt, text: &str, paint: Paint, width: usize) -> String {
    // Reasons go on below each other, where there is room for them.
    let reasons = text.lines().find(|line| line.starts_with("  entries ")).and_then(|line| line.find("why"));
    let reasons = reasons.filter(|column| column + REASON_WIDTH_MIN <= width).unwrap_or(INDENT_OF_ROW);
    let fold = |line: &str| {
        let is_row = line.starts_with("  #") || line.starts_with("  entries ");
        let indent = if is_row { reasons } else { INDENT };
        table::folded(line, width, if width < NARROW { INDENT_NARROW } else { indent })
    };
    let bars = [tokens(&receipt.ledger), entries(receipt)].map(|bars| lines(&bars, paint, width));
    let bars = bars.into_iter().flatten().collect::<Vec<String>>().join("\n\n");
    match text.find("\n\n") {
        Some(at) => format!("{}\n\n{bars}{}", paint.fates(&text[..at], fold), paint.fates(&text[at..], fold)),
        None => paint.fates(text, fold),
    }
}

/// Where the tokens of the window go.
fn tokens(ledger: &Ledger) -> Vec<Bar> {
    let whole = ledger.window.unwrap_or(ledger.used() + ledger.held);
    let bar = |name, tokens: Tokens, colour| {
        let share = 100.0 * tokens.0 as f64 / whole.0.max(1) as f64;
        Bar { name, tokens, told: format!("{tokens}  {share:>5.1} %"), colour }
    };
    let mut bars: Vec<Bar> = ledger.kinds().into_iter().map(|(name, cost)| bar(name, cost, Colour::Used)).collect();
    let beside = [
        ("held", ledger.held),
        ("allowed", ledger.allowance),
        ("reserved", ledger.window.map_or(Tokens(0), |_| ledger.reserve_out)),
        ("left", ledger.left().unwrap_or_default()),
    ];
    bars.extend(beside.map(|(name, cost)| bar(name, cost, Colour::Free)));
    bars.retain(|bar| bar.tokens > Tokens(0));
    bars
}

/// What became of everything that was said.
fn entries(receipt: &Receipt) -> Vec<Bar> {
    let of = |(name, fate): (&'static str, Fate)| {
        let rows = || receipt.fates.iter().filter(move |row| row.fate == fate);
        let entries = Tokens(rows().map(|row| row.entries).sum());
        let (before, after): (Tokens, Tokens) = (rows().map(|row| row.before).sum(), rows().map(|row| row.after).sum());
        let told = if fate == Fate::Shown { String::new() } else { format!(" → {after}") };
        let told = format!("{entries} entries, {before}{told} tokens");
        (entries > Tokens(0)).then_some(Bar { name, tokens: before, told, colour: Colour::Of(fate) })
    };
    FATES.into_iter().filter_map(of).collect()
}

/// The lines of bars that together are a whole, or nothing where there are none.
fn lines(bars: &[Bar], paint: Paint, width: usize) -> Option<String> {
    let cells: Vec<[String; 2]> = bars.iter().map(|bar| [format!("  {}", bar.name), bar.told.clone()]).collect();
    let text = table::aligned(&cells, [Side::Left, Side::Right]);
    let taken = text.lines().map(|line| line.chars().count()).max()? + 2;
    let room = width.saturating_sub(taken).min(BAR_WIDTH_MAX);
    if room < BAR_WIDTH_MIN {
        return Some(
            text.lines().flat_map(|line| table::folded(line, width, INDENT_NARROW)).collect::<Vec<_>>().join("\n"),
        );
    }
    let whole = bars.iter().map(|bar| bar.tokens).max()?;
    let line = |(bar, line): (&Bar, &str)| {
        let drawn = blocks(bar.tokens.0 as f64 / whole.0.max(1) as f64, room);
        let drawn = match bar.colour {
            Colour::Used => paint.number(&drawn),
            Colour::Free => paint.faint(&drawn),
            Colour::Of(fate) => paint.state(fate, &drawn),
        };
        format!("{line}  {drawn}")
    };
    Some(bars.iter().zip(text.lines()).map(line).collect::<Vec<_>>().join("\n"))
}

/// A bar so long, of so many blocks; whatever is there at all is seen.
fn blocks(share: f64, width: usize) -> String {
    let eighths = ((share * width as f64 * 8.0).round() as usize).clamp(1, width * 8);
    format!("{}{}", "█".repeat(eighths / 8), EIGHTHS[eighths % 8])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bars_are_as_long_as_what_they_stand_for() {
        assert_eq!((blocks(1.0, 4), blocks(0.5, 4), blocks(0.25, 10)), ("████".into(), "██".into(), "██▌".into()));
        assert_eq!((blocks(0.0, 9), blocks(1e-9, 9), blocks(2.0, 2)), ("▏".into(), "▏".into(), "██".into()));
    }
}
