//! The receipt as text, in the manner of a database's EXPLAIN.

use super::{Fate, FateRow, FragmentFate, Full, Ledger, Overflow, Prefix, Receipt, Savings, Warning};
use crate::edit::Reason;
use crate::page::Mode;
use crate::session::Lost;
use crate::tokens::Tokens;
use std::fmt;

impl fmt::Display for Receipt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mode = match self.mode {
            Mode::Full => "page",
            Mode::Delta => "delta",
            Mode::NothingNew => "nothing new",
        };
        let ticket = &self.ticket;
        writeln!(
            f,
            "{mode} for {}  policy {}  reader {}  turn {}",
            self.target, self.policy, ticket.reader, ticket.turn.0
        )?;
        if let Some(full) = &self.full {
            writeln!(f, "  session  everything is sent: {full}")?;
        }
        write!(f, "{}", self.ledger)?;
        writeln!(f, "  cache    {}", self.prefix)?;
        let money = &self.money;
        if let Some(it) = &self.calibration {
            let learned = match it.calls {
                0 => "not learned from any call yet".to_string(),
                calls => format!("learned from {calls} calls"),
            };
            writeln!(f, "  counted  × {:.3} ({learned}): the provider will count about {}", it.factor, it.expected)?;
        }
        let kinds = [(money.cached, "cached"), (money.written, "written"), (money.plain, "plain")];
        let spent: Vec<String> =
            kinds.iter().filter(|(it, _)| *it > Tokens(0)).map(|(it, name)| format!("{it} {name}")).collect();
        let spent = if spent.is_empty() { "no".to_string() } else { spent.join(" + ") };
        writeln!(f, "  money    {:.6} USD = {spent} tokens of input", money.usd)?;
        write!(f, "{}", self.savings)?;
        if !self.redacted.is_empty() {
            writeln!(f, "  redacted {}", self.redacted)?;
        }
        for warning in &self.warnings {
            writeln!(f, "  warning  {warning}")?;
        }
        for row in &self.fragments {
            let fate = match row.fate {
                FragmentFate::Shown => continue,
                FragmentFate::Empty => "is empty, and left out",
                FragmentFate::Shed => "was left out: no room beside the history",
                FragmentFate::Held => "is held by the provider",
                FragmentFate::Unsent => "is not sent, since nothing is new",
                FragmentFate::StaticChanged => "has changed since the provider got it, and is sent once more",
            };
            writeln!(f, "  fragment {} ({} tokens) {fate}", row.id, row.cost)?;
        }
        writeln!(f, "\n  {:<15} {:<9} {:>21}  {:<11} why", "entries", "fate", "tokens", "pass")?;
        for row in collapsed(&self.fates) {
            writeln!(f, "  {row}")?;
        }
        write!(f, "\n  page {}  inputs {}  recto {}", ticket.page, ticket.inputs, ticket.version)
    }
}

/// Runs of rows that say the same are told as one.
fn collapsed(rows: &[FateRow]) -> Vec<FateRow> {
    let mut out: Vec<FateRow> = Vec::new();
    for row in rows {
        match out.last_mut() {
            Some(last) if last.fate == row.fate && last.why == row.why && last.by == row.by => {
                last.span.last = row.span.last;
                last.entries += row.entries;
                last.before += row.before;
                last.after += row.after;
            }
            _ => out.push(row.clone()),
        }
    }
    out
}

impl fmt::Display for FateRow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let fate = match self.fate {
            Fate::Shown => "shown",
            Fate::Changed => "changed",
            Fate::NotShown => "not shown",
        };
        let tokens = match self.fate {
            Fate::Shown => self.after.to_string(),
            _ => format!("{} → {}", self.before, self.after),
        };
        let span = self.span.to_string();
        write!(f, "{span:<15} {fate:<9} {tokens:>21}  {:<11} {}", self.by, self.why)?;
        match &self.scope {
            Some(scope) => write!(f, " ({} {})", self.entries, scope),
            None => Ok(()),
        }
    }
}

impl fmt::Display for Ledger {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.window, self.left()) {
            (Some(window), Some(left)) => {
                write!(f, "  window   {window} = {} used + ", self.used())?;
                if self.held > Tokens(0) {
                    write!(f, "{} held by the provider + ", self.held)?;
                }
                if self.allowance > Tokens(0) {
                    write!(f, "{} allowed for the provider's own count + ", self.allowance)?;
                }
                write!(f, "{} reserved for the answer + ", self.reserve_out)?;
                if let Some(most) = self.input_max {
                    write!(f, "{} more than it takes as input + ", window - self.reserve_out - most)?;
                }
                writeln!(f, "{left} left")?;
            }
            _ if self.held > Tokens(0) => {
                writeln!(f, "  window   unbounded: {} used, {} held by the provider", self.used(), self.held)?;
            }
            _ => writeln!(f, "  window   unbounded: {} used", self.used())?,
        }
        let kinds = self.kinds();
        let spent = kinds.iter().filter(|(_, cost)| *cost > Tokens(0));
        let sum: Vec<String> = spent.map(|(name, cost)| format!("{name} {cost}")).collect();
        writeln!(f, "  used     {} = {}", self.used(), if sum.is_empty() { "nothing".into() } else { sum.join(" + ") })
    }
}

impl fmt::Display for Full {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Full::NoSession => write!(f, "the provider holds nothing yet"),
            Full::CursorBeyondLog { acked } => write!(f, "the session claims {acked}, which the log doesn't hold"),
            Full::StaticChanged => write!(f, "a static fragment is not as the provider holds it"),
            Full::Stale { entries, tokens } => {
                write!(f, "the provider reads {entries} entries with {tokens} tokens more than was decided")
            }
            Full::Restored => write!(f, "what the provider was not sent in full is shown again"),
            Full::Lost { lost } => write!(f, "{lost}"),
        }
    }
}

impl fmt::Display for Lost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Lost::WorkspaceChanged => "the session belongs to another workspace",
            Lost::EntryGone => "the entry up to which the provider had everything is gone",
            Lost::Forgotten => "the provider doesn't hold the session any more",
            Lost::WentOn => "the conversation went on elsewhere, with what the provider can't be told",
            Lost::InDoubt => "it is not known what the provider made of the last call",
            Lost::Told => "the session was given up on request",
        })
    }
}

impl fmt::Display for Prefix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some(previous) = self.previous else { return write!(f, "no previous page") };
        if self.tools_changed {
            return write!(f, "nothing holds: other tools than on the previous page");
        }
        write!(f, "{} of {previous} messages ({} tokens) stand as on the previous page", self.messages, self.tokens)?;
        match self.broken_at {
            Some(seq) => write!(f, "; broken at {seq}"),
            None if self.messages < previous => write!(f, "; broken after them"),
            None => Ok(()),
        }
    }
}

impl fmt::Display for Savings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.less > Tokens(0) {
            let (without, so_far) = (self.usd_without, self.usd_so_far);
            writeln!(
                f,
                "  saving   {} tokens less than all that was said: {without:.6} USD without; {so_far:.6} USD so far",
                self.less
            )?;
        }
        match &self.waiting {
            Some(it) => writeln!(
                f,
                "  waiting  {} parts could be {} tokens less at every call; the rent is {} tokens so far, a cut costs {}",
                it.candidates, it.saves, it.rent, it.cost
            ),
            None => Ok(()),
        }
    }
}

impl fmt::Display for Warning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Warning::MissingResult { step, call } => {
                write!(f, "call {call} of {step} has no result; a stand-in is shown")
            }
            Warning::PinBelowFloor { at, floor } => {
                write!(f, "the pin on {at} comes too late: it went below the floor at {floor} before")
            }
            Warning::EditSkipped { by, at, why } => write!(f, "an edit by {by} at {at} was skipped: {why}"),
            Warning::CountedBy { counter, target } => {
                write!(f, "counted by {counter}; the model's own tokenizer is {target}")
            }
            Warning::CursorBeyondLog { acked } => {
                write!(f, "the session claims {acked}, which the log doesn't hold; everything is sent")
            }
            Warning::TargetUnmet { cost, target } => {
                write!(f, "history costs {cost}, more than the policy wants ({target}): the rest may not go")
            }
            Warning::StaticChanged => {
                write!(f, "a static fragment is not as the provider holds it; everything is sent")
            }
            Warning::ToolNotTaken { tool } => write!(f, "the target can't be offered the tool {tool}"),
            Warning::FormatNotTaken => write!(f, "the target can't be told which form the answer must have"),
            Warning::LineAdded { text } => write!(f, "the format wants the user's words here: {text:?} was added"),
            Warning::CutInOpenRound => {
                write!(
                    f,
                    "history was cut while calls were open, since it would not have fitted; reasoning went with it"
                )
            }
            Warning::TooMany { what } => write!(f, "too many {what}: the oldest were not read"),
            Warning::BlockCut { block, shown, of } => {
                write!(f, "block {block} has {of} characters; {shown} are shown")
            }
            Warning::RecallBound { terms } => {
                write!(f, "{terms} of the words asked for stand at so many places that only the newest were looked at")
            }
            Warning::RecallBehind { entries } => {
                write!(f, "the index lacks the newest {entries} entries; of these nothing comes back yet")
            }
            Warning::ReadBound { from } => write!(f, "planning read no further back than {from}"),
        }
    }
}

impl fmt::Display for Overflow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let history = if self.is_complete { "history" } else { "history (not all of it read)" };
        write!(
            f,
            "the page does not fit: {} tokens over. window {} < reserve {} + tools {} + input {} + framing {} + fragments {} + {history} {} \
             (of which {} may never go)",
            self.over,
            self.window,
            self.reserve_out,
            self.tools,
            self.input,
            self.framing,
            self.fragments,
            self.history,
            self.protected
        )?;
        for item in &self.largest {
            let why: &Reason = &item.why;
            write!(f, "\n  {} costs {} and may not go: {why}", item.seq, item.cost)?;
        }
        Ok(())
    }
}
