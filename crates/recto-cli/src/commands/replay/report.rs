//! What replayed conversations cost and forget, as data.

use super::summaries::Bill;
use crate::codes::Code;
use crate::failure::Failure;
use crate::settings::Settings;
use crate::{source, talk};
use recto::Tokens;
use recto::receipt::{Fate, FateRow, Overflow, Receipt};
use recto::replay::recall::Score;
use recto::wire::Wire;
use serde::Serialize;
use std::collections::BTreeMap;
use std::path::Path;

/// How many pages that don't fit are told in full.
const OVERFLOWS_TOLD_MAX: usize = 3;

/// The sums of a replay; `recto replay --help` tells its shape as JSON.
#[derive(Debug)]
pub(super) struct Report {
    pub(super) about: About,
    /// One for each policy, in the order they were named.
    pub(super) outcomes: Vec<Outcome>,
    /// The calls of each conversation with its whole history, whatever the window; only where somebody asked for them.
    pub(super) whole: Vec<Vec<Call>>,
}

/// What all policies have in common.
#[derive(Debug, Serialize)]
pub(super) struct About {
    pub(super) target: String,
    pub(super) wire: Wire,
    pub(super) window: Option<Tokens>,
    pub(super) reserve: Option<Tokens>,
    pub(super) min_tokens: Option<Tokens>,
    /// How many conversations are shorter than that.
    pub(super) left_out: usize,
    /// What it would cost to send the full history at every call.
    pub(super) full: Score,
    /// Whether anything is known about what the target costs.
    #[serde(skip)]
    pub(super) has_prices: bool,
}

/// What came of one policy.
#[derive(Debug, Serialize)]
pub(super) struct Outcome {
    pub(super) policy: String,
    pub(super) conversations: Vec<Row>,
    pub(super) total: Total,
    pub(super) dearest: Option<Dearest>,
    pub(super) most_forgetful: Option<MostForgetful>,
}

/// The conversation with the highest cost.
#[derive(Debug, Serialize)]
pub(super) struct Dearest {
    pub(super) conversation: String,
    pub(super) cost: f64,
}

/// The conversation with the lowest recall.
#[derive(Debug, Serialize)]
pub(super) struct MostForgetful {
    pub(super) conversation: String,
    pub(super) recall: f64,
}

/// The sums of one conversation.
#[derive(Debug, Serialize)]
pub(super) struct Row {
    pub(super) conversation: String,
    file: String,
    #[serde(flatten)]
    pub(super) spent: Spent,
    pub(super) measured: Measured,
    pub(super) overflows: Vec<NotFitting>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) summaries: Option<Bill>,
    /// The calls that were made, in order.
    #[serde(skip)]
    pub(super) calls: Vec<Call>,
    /// What became of the entries on the last page.
    #[serde(skip)]
    pub(super) left: LeftOut,
}

/// One call, as the target's provider counts.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Call {
    /// Which assistant message it leads to, from 0.
    pub(super) turn: usize,
    pub(super) tokens: Tokens,
    pub(super) cached: Tokens,
    pub(super) usd: f64,
}

/// What became of the entries of pages: how many, and how many tokens less.
#[derive(Clone, Debug, Default)]
pub(super) struct LeftOut {
    pub(super) shown: u64,
    pub(super) changed: u64,
    pub(super) not_shown: u64,
    /// Entries that a pass changed or left out, and the tokens that this makes less.
    pub(super) by: BTreeMap<String, (u64, Tokens)>,
}

/// The sums of all conversations.
#[derive(Debug, Default, Serialize)]
pub(super) struct Total {
    pub(super) conversations: usize,
    #[serde(flatten)]
    pub(super) spent: Spent,
    pub(super) measured: Measured,
    pub(super) overflows: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) summaries: Option<Bill>,
    /// What became of the entries on the last pages.
    #[serde(skip)]
    pub(super) left: LeftOut,
}

/// What calls cost together, as the target's provider counts.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub(super) struct Spent {
    pub(super) calls: usize,
    pub(super) tokens: Tokens,
    pub(super) cached: Tokens,
    pub(super) usd: f64,
    /// The longest page.
    pub(super) peak: Tokens,
}

/// What calls cost and forget, compared with the full history.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub(super) struct Measured {
    pub(super) cost: f64,
    pub(super) recall: f64,
    pub(super) score: Score,
}

/// A page that doesn't fit.
#[derive(Debug, Serialize)]
pub(super) struct NotFitting {
    turn: usize,
    overflow: Overflow,
    hint: Option<String>,
}

impl Report {
    /// Returns a report of nothing yet: settings that differ by their policies, which are called by these names.
    pub(super) fn of(settings: &[Settings], names: &[String], min_tokens: Option<Tokens>) -> Report {
        let Settings { target, reserve, .. } = &settings[0];
        let about = About {
            target: target.name.to_string(),
            wire: target.wire,
            window: target.window,
            reserve: *reserve,
            min_tokens,
            left_out: 0,
            full: Score::default(),
            has_prices: target.prices.input > 0.0,
        };
        Report { about, outcomes: names.iter().map(|name| Outcome::of(name)).collect(), whole: Vec::new() }
    }

    /// Adds a conversation, by its row under each policy, and what its full history costs; `whole` are the calls with that.
    pub(super) fn add(&mut self, rows: Vec<Row>, full: &Score, whole: Option<Vec<Call>>) {
        self.about.full.add(full);
        self.whole.extend(whole);
        for (outcome, row) in self.outcomes.iter_mut().zip(rows) {
            outcome.add(row, &self.about.full);
        }
    }

    /// Returns the report as JSON: with one policy its outcome stands beside the settings.
    pub(super) fn as_json(&self) -> Result<String, Failure> {
        #[derive(Serialize)]
        struct One<'r> {
            #[serde(flatten)]
            about: &'r About,
            #[serde(flatten)]
            outcome: &'r Outcome,
        }
        #[derive(Serialize)]
        struct Several<'r> {
            #[serde(flatten)]
            about: &'r About,
            policies: &'r [Outcome],
        }
        let about = &self.about;
        match &self.outcomes[..] {
            [outcome] => talk::as_json(&One { about, outcome }),
            policies => talk::as_json(&Several { about, policies }),
        }
    }

    /// Returns the failure of the pages that don't fit, if there are any.
    pub(super) fn into_overflow(self) -> Option<Failure> {
        let sum = |of: fn(&Total) -> usize| self.outcomes.iter().map(|outcome| of(&outcome.total)).sum::<usize>();
        let (missing, made) = (sum(|total| total.overflows), sum(|total| total.spent.calls));
        if missing == 0 {
            return None;
        }
        let is_one = self.outcomes.len() == 1;
        let rows = self.outcomes.iter().flat_map(|outcome| outcome.conversations.iter().map(move |row| (outcome, row)));
        let all = rows.flat_map(|(outcome, row)| row.overflows.iter().map(move |it| (outcome, row, it)));
        let told: Vec<_> = all.take(OVERFLOWS_TOLD_MAX).collect();
        let mut failure = Failure::of(
            Code::SomeOverflow,
            format!("pages that do not fit: {missing} of {}; the others were made", missing + made),
        );
        if let Some(hint) = told.first().and_then(|(_, _, it)| it.hint.clone()) {
            failure = failure.hinting(hint);
        }
        for (outcome, row, NotFitting { turn, overflow, .. }) in &told {
            let policy = if is_one { String::new() } else { format!("{}: ", outcome.policy) };
            failure = failure.because(format!("{policy}{}, turn {turn}: {overflow}", row.conversation));
        }
        Some(if missing > told.len() {
            failure.because(format!("and {} more; --json lists them all", missing - told.len()))
        } else {
            failure
        })
    }
}

impl Outcome {
    fn of(policy: &str) -> Outcome {
        let (conversations, total) = (Vec::new(), Total::default());
        Outcome { policy: policy.into(), conversations, total, dearest: None, most_forgetful: None }
    }

    /// Adds a conversation; `full` is what the full history of all so far costs.
    fn add(&mut self, row: Row, full: &Score) {
        let Measured { cost, recall, score } = row.measured;
        if self.dearest.as_ref().is_none_or(|it| cost > it.cost) {
            self.dearest = Some(Dearest { conversation: row.conversation.clone(), cost });
        }
        if self.most_forgetful.as_ref().is_none_or(|it| recall < it.recall) {
            self.most_forgetful = Some(MostForgetful { conversation: row.conversation.clone(), recall });
        }
        let total = &mut self.total;
        total.conversations += 1;
        total.spent.add(row.spent);
        total.overflows += row.overflows.len();
        if let Some(bill) = &row.summaries {
            total.summaries.get_or_insert_default().sum(bill);
        }
        let mut sum = total.measured.score;
        sum.add(&score);
        total.measured = Measured::of(sum, full);
        total.left.sum(&row.left);
        self.conversations.push(row);
    }
}

impl Row {
    /// Returns a conversation without calls yet.
    pub(super) fn of(name: &str, file: &Path) -> Row {
        let (conversation, file) = (name.into(), source::shown(file));
        let (spent, measured, overflows, summaries) = (Spent::default(), Measured::default(), Vec::new(), None);
        let (calls, left) = (Vec::new(), LeftOut::default());
        Row { conversation, file, spent, measured, overflows, summaries, calls, left }
    }

    /// Adds what its summaries cost.
    pub(super) fn pay(&mut self, bill: Bill) {
        self.spent.usd += bill.usd;
        self.summaries = Some(bill);
    }

    /// Adds a call: all of it as the provider would count, since what its cache holds is told so.
    pub(super) fn add(&mut self, turn: usize, receipt: &Receipt) {
        let call = Call::of(turn, receipt);
        let Call { tokens, cached, usd, .. } = call;
        self.spent.add(Spent { calls: 1, tokens, cached, usd, peak: tokens });
        self.calls.push(call);
    }

    /// Sets what became of the entries on the last page.
    pub(super) fn end(&mut self, last: &Receipt) {
        self.left = LeftOut::of(&last.fates);
    }

    /// Adds a call that could not be made.
    pub(super) fn add_overflow(&mut self, turn: usize, overflow: Overflow, hint: Option<String>) {
        self.overflows.push(NotFitting { turn, overflow, hint });
    }

    /// Sets what the calls cost and forget, compared with the full history.
    pub(super) fn measure(&mut self, score: Score, full: &Score) {
        self.measured = Measured::of(score, full);
    }
}

impl Call {
    /// Returns a call whose page has this receipt.
    pub(super) fn of(turn: usize, receipt: &Receipt) -> Call {
        let tokens = receipt.calibration.map_or(receipt.ledger.used(), |it| it.expected);
        Call { turn, tokens, cached: receipt.money.cached, usd: receipt.money.usd }
    }
}

impl LeftOut {
    fn of(rows: &[FateRow]) -> LeftOut {
        let mut left = LeftOut::default();
        for row in rows {
            *match row.fate {
                Fate::Shown => &mut left.shown,
                Fate::Changed => &mut left.changed,
                Fate::NotShown => &mut left.not_shown,
            } += row.entries;
            if row.fate != Fate::Shown {
                left.add(&row.by, row.entries, row.before - row.after);
            }
        }
        left
    }

    fn add(&mut self, pass: &str, entries: u64, less: Tokens) {
        let by = self.by.entry(pass.into()).or_default();
        by.0 += entries;
        by.1 += less;
    }

    fn sum(&mut self, more: &LeftOut) {
        self.shown += more.shown;
        self.changed += more.changed;
        self.not_shown += more.not_shown;
        for (pass, (entries, less)) in &more.by {
            self.add(pass, *entries, *less);
        }
    }
}

impl Measured {
    fn of(score: Score, full: &Score) -> Measured {
        Measured { cost: score.cost_against(full), recall: score.recall(), score }
    }
}

impl Spent {
    fn add(&mut self, more: Spent) {
        self.calls += more.calls;
        self.tokens += more.tokens;
        self.cached += more.cached;
        self.usd += more.usd;
        self.peak = self.peak.max(more.peak);
    }
}
