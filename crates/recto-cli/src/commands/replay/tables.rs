//! A report for people: the conversations of one policy, or several policies side by side.

use super::report::{About, Measured, Outcome, Report, Row, Spent, Total};
use crate::table::{self, Side};
use crate::talk;
use recto::Tokens;
use recto::replay::recall::{Kept, Kind};
use std::array;

/// How much of a name a table shows, in columns of a terminal.
const NAME_WIDTH_MAX: usize = 40;
/// What is told of every policy, beside its name.
const COLUMNS: usize = 13;

impl Report {
    /// Returns the report as text.
    pub(super) fn as_text(&self) -> String {
        let mut parts = match &self.outcomes[..] {
            [outcome] => self.of_one(outcome),
            several => self.of_several(several),
        };
        if self.has_overflow() {
            parts.push("cost and recall leave out the pages that don't fit".into());
        }
        for outcome in &self.outcomes {
            let policy = if self.outcomes.len() > 1 { format!("{}: ", short(&outcome.policy)) } else { String::new() };
            parts.extend(outcome.total.summaries.map(|bill| format!("{policy}{}", bill.told())));
        }
        if let (Some(least), true) = (self.about.min_tokens, self.about.left_out > 0) {
            let left_out = self.about.left_out;
            parts.push(format!("left out, since they have fewer than {least} tokens of four bytes: {left_out}"));
        }
        parts.join("\n\n")
    }

    /// Returns the report as text, with a table of the policies for each conversation.
    pub(super) fn as_text_of_each(&self) -> String {
        let whole = self.as_text();
        let count = self.outcomes.first().map_or(0, |outcome| outcome.conversations.len());
        if self.outcomes.len() == 1 || count == 0 {
            return whole;
        }
        let mut lines = vec![with_name("conversation", heads("policy", self.has_overflow()))];
        for at in 0..count {
            for outcome in &self.outcomes {
                let row = &outcome.conversations[at];
                lines.push(with_name(&short(&row.conversation), self.cells_of_row(&short(&outcome.policy), row)));
            }
        }
        format!("{whole}\n\n{}", aligned(&lines, 2))
    }

    fn of_one(&self, outcome: &Outcome) -> Vec<String> {
        let About { target, .. } = &self.about;
        let total = &outcome.total;
        let last = if total.overflows == 0 { "" } else { "don't fit" };
        let heads = ["conversation", "calls", "tokens", "cached", "share", "USD", "cost", "recall", last];
        let mut lines = vec![heads.map(String::from)];
        let rows = outcome.conversations.iter();
        lines.extend(rows.map(|it| narrow(&short(&it.conversation), &it.spent, &it.measured, it.overflows.len())));
        let mut parts = vec![format!("{target}, window {}, policy {}", self.window(), outcome.policy)];
        if total.conversations != 1 {
            let name = format!("{} conversations", total.conversations);
            lines.push(narrow(&name, &total.spent, &total.measured, total.overflows));
        }
        parts.push(aligned(&lines, 1));
        if let (Some(dearest), Some(worst), 2..) = (&outcome.dearest, &outcome.most_forgetful, total.conversations) {
            let (dear, most) = (short(&dearest.conversation), short(&worst.conversation));
            parts.push(format!(
                "dearest: {dear} (cost {:.3})\nmost forgetful: {most} (recall {:.4})",
                dearest.cost, worst.recall
            ));
        }
        parts
    }

    fn of_several(&self, several: &[Outcome]) -> Vec<String> {
        let About { target, full, .. } = &self.about;
        let conversations = several.first().map_or(0, |outcome| outcome.total.conversations);
        let mut lines = vec![heads("policy", self.has_overflow())];
        lines.extend(several.iter().map(|outcome| self.cells_of_total(&short(&outcome.policy), &outcome.total)));
        let mut extremes = vec![["policy", "dearest", "cost", "most forgetful", "recall"].map(String::from)];
        for outcome in several {
            let (Some(dearest), Some(worst)) = (&outcome.dearest, &outcome.most_forgetful) else { continue };
            let (cost, recall) = (format!("{:.3}", dearest.cost), format!("{:.4}", worst.recall));
            let (dear, most) = (short(&dearest.conversation), short(&worst.conversation));
            extremes.push([short(&outcome.policy), dear, cost, most, recall]);
        }
        let [left, right] = [Side::Left, Side::Right];
        vec![
            format!(
                "{target}, window {}, conversations: {conversations}\nfull history: {} calls, {} tokens of four bytes",
                self.window(),
                Tokens(full.calls),
                full.tokens
            ),
            aligned(&lines, 1),
            table::aligned(&extremes, [left, left, right, left, right]),
        ]
    }

    fn window(&self) -> String {
        self.about.window.map_or("unbounded".into(), |window| window.to_string())
    }

    fn has_overflow(&self) -> bool {
        self.outcomes.iter().any(|outcome| outcome.total.overflows > 0)
    }

    fn cells_of_row(&self, policy: &str, row: &Row) -> [String; COLUMNS + 1] {
        self.wide(policy, &row.spent, &row.measured, row.overflows.len())
    }

    fn cells_of_total(&self, policy: &str, total: &Total) -> [String; COLUMNS + 1] {
        self.wide(policy, &total.spent, &total.measured, total.overflows)
    }

    fn wide(&self, name: &str, spent: &Spent, measured: &Measured, overflows: usize) -> [String; COLUMNS + 1] {
        let usd = if self.about.has_prices { format!("{:.4}", spent.usd) } else { "–".into() };
        let [names, numbers, quoted, phrases, lines] =
            measured.score.references.map(|kept: Kept| format!("{:.4}", kept.share()));
        [
            name.into(),
            Tokens(spent.calls as u64).to_string(),
            spent.tokens.to_string(),
            share(spent),
            usd,
            format!("{:.3}", measured.cost),
            format!("{:.4}", measured.recall),
            names,
            numbers,
            quoted,
            phrases,
            lines,
            spent.peak.to_string(),
            count(overflows),
        ]
    }
}

fn heads(first: &str, has_overflow: bool) -> [String; COLUMNS + 1] {
    let [names, numbers, quoted, phrases, lines] = Kind::ALL.map(Kind::name);
    let last = if has_overflow { "don't fit" } else { "" };
    let (calls, tokens, cached, usd, cost, recall) = ("calls", "tokens", "cached", "USD", "cost", "recall");
    [first, calls, tokens, cached, usd, cost, recall, names, numbers, quoted, phrases, lines, "peak", last]
        .map(String::from)
}

fn with_name(name: &str, cells: [String; COLUMNS + 1]) -> [String; COLUMNS + 2] {
    let mut cells = [name.to_string()].into_iter().chain(cells);
    array::from_fn(|_| cells.next().unwrap_or_default())
}

fn narrow(name: &str, spent: &Spent, measured: &Measured, overflows: usize) -> [String; 9] {
    [
        name.into(),
        Tokens(spent.calls as u64).to_string(),
        spent.tokens.to_string(),
        spent.cached.to_string(),
        share(spent),
        format!("{:.4}", spent.usd),
        format!("{:.3}", measured.cost),
        format!("{:.4}", measured.recall),
        count(overflows),
    ]
}

fn share(spent: &Spent) -> String {
    format!("{:.1} %", 100.0 * spent.cached.0 as f64 / spent.tokens.0.max(1) as f64)
}

fn count(overflows: usize) -> String {
    if overflows == 0 { String::new() } else { overflows.to_string() }
}

/// Numbers stand on the right, behind so many names on the left.
fn aligned<const N: usize>(lines: &[[String; N]], names: usize) -> String {
    table::aligned(lines, array::from_fn(|column| if column < names { Side::Left } else { Side::Right }))
}

/// A name on one line, not too wide.
fn short(name: &str) -> String {
    table::cut(&talk::harmless(&name.replace('\n', "\\n")), NAME_WIDTH_MAX)
}
