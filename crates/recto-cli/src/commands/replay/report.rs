//! What replayed conversations cost, as a table or as data.

use crate::codes::Code;
use crate::failure::Failure;
use crate::settings::Settings;
use crate::table::{self, Side};
use crate::{source, talk};
use recto::Tokens;
use recto::receipt::{Overflow, Receipt};
use recto::wire::Wire;
use serde::Serialize;
use std::fmt;
use std::path::Path;

/// How many pages that don't fit are told in full.
const OVERFLOWS_TOLD_MAX: usize = 3;
/// How much of a name a table shows, in columns of a terminal.
const NAME_WIDTH_MAX: usize = 40;

/// The sums of a replay; `recto replay --help` tells its shape as JSON.
#[derive(Debug, Serialize)]
pub(super) struct Report {
    target: String,
    wire: Wire,
    window: Option<Tokens>,
    reserve: Option<Tokens>,
    policy: String,
    conversations: Vec<Row>,
    total: Total,
}

/// The sums of one conversation.
#[derive(Debug, Serialize)]
pub(super) struct Row {
    conversation: String,
    file: String,
    #[serde(flatten)]
    spent: Spent,
    overflows: Vec<NotFitting>,
}

#[derive(Debug, Default, Serialize)]
struct Total {
    conversations: usize,
    #[serde(flatten)]
    spent: Spent,
    overflows: usize,
}

/// What calls cost together.
#[derive(Clone, Copy, Debug, Default, Serialize)]
struct Spent {
    calls: usize,
    tokens: Tokens,
    cached: Tokens,
    usd: f64,
}

/// A page that doesn't fit.
#[derive(Debug, Serialize)]
struct NotFitting {
    turn: usize,
    overflow: Overflow,
    hint: Option<String>,
}

impl Report {
    /// Returns a report of nothing yet.
    pub(super) fn of(settings: &Settings) -> Report {
        Report {
            target: settings.target.name.to_string(),
            wire: settings.target.wire,
            window: settings.target.window,
            reserve: settings.reserve,
            policy: settings.policy.name.to_string(),
            conversations: Vec::new(),
            total: Total::default(),
        }
    }

    /// Adds a conversation.
    pub(super) fn add(&mut self, row: Row) {
        self.total.conversations += 1;
        self.total.spent.add(row.spent);
        self.total.overflows += row.overflows.len();
        self.conversations.push(row);
    }

    /// Returns the failure of the pages that don't fit, if there are any.
    pub(super) fn into_overflow(self) -> Option<Failure> {
        let (missing, made) = (self.total.overflows, self.total.spent.calls);
        if missing == 0 {
            return None;
        }
        let all = self.conversations.iter().flat_map(|row| row.overflows.iter().map(|it| (&row.conversation, it)));
        let told: Vec<_> = all.take(OVERFLOWS_TOLD_MAX).collect();
        let mut failure = Failure::of(
            Code::SomeOverflow,
            format!("pages that do not fit: {missing} of {}; the others were made", missing + made),
        );
        if let Some(hint) = told.first().and_then(|(_, it)| it.hint.clone()) {
            failure = failure.hinting(hint);
        }
        for (name, NotFitting { turn, overflow, .. }) in &told {
            failure = failure.because(format!("{name}, turn {turn}: {overflow}"));
        }
        Some(if missing > told.len() {
            failure.because(format!("and {} more; --json lists them all", missing - told.len()))
        } else {
            failure
        })
    }
}

impl Row {
    /// Returns a conversation without calls yet.
    pub(super) fn of(name: &str, file: &Path) -> Row {
        Row { conversation: name.into(), file: source::shown(file), spent: Spent::default(), overflows: Vec::new() }
    }

    /// Adds a call.
    pub(super) fn add(&mut self, receipt: &Receipt) {
        let (tokens, money) = (receipt.ledger.used(), &receipt.money);
        self.spent.add(Spent { calls: 1, tokens, cached: money.cached, usd: money.usd });
    }

    /// Adds a call that could not be made.
    pub(super) fn add_overflow(&mut self, turn: usize, overflow: Overflow, hint: Option<String>) {
        self.overflows.push(NotFitting { turn, overflow, hint });
    }
}

impl Spent {
    fn add(&mut self, more: Spent) {
        self.calls += more.calls;
        self.tokens += more.tokens;
        self.cached += more.cached;
        self.usd += more.usd;
    }

    fn cells(&self, name: &str, overflows: usize) -> [String; 7] {
        let share = 100.0 * self.cached.0 as f64 / self.tokens.0.max(1) as f64;
        [
            name.into(),
            Tokens(self.calls as u64).to_string(),
            self.tokens.to_string(),
            self.cached.to_string(),
            format!("{share:.1} %"),
            format!("{:.4}", self.usd),
            if overflows == 0 { String::new() } else { overflows.to_string() },
        ]
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let window = self.window.map_or("unbounded".into(), |window| window.to_string());
        writeln!(f, "{}, window {window}, policy {}\n", self.target, self.policy)?;
        let last = if self.total.overflows == 0 { "" } else { "don't fit" };
        let heads = ["conversation", "calls", "tokens", "cached", "share", "USD", last].map(String::from);
        let mut lines = vec![heads];
        lines.extend(
            self.conversations.iter().map(|row| row.spent.cells(&short(&row.conversation), row.overflows.len())),
        );
        if self.conversations.len() != 1 {
            let name = format!("{} conversations", self.total.conversations);
            lines.push(self.total.spent.cells(&name, self.total.overflows));
        }
        let [left, right] = [Side::Left, Side::Right];
        f.write_str(&table::aligned(&lines, [left, right, right, right, right, right, right]))
    }
}

/// A name on one line, not too wide.
fn short(name: &str) -> String {
    table::cut(&talk::harmless(&name.replace('\n', "\\n")), NAME_WIDTH_MAX)
}
