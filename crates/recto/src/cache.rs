//! The provider's prompt cache: where pages are marked for it, and what of them it will hold.

use crate::calibration::scale;
use crate::entry::{Role, Seq};
use crate::page::{After, Mark, Page};
use crate::request::Request;
use crate::target::{Caching, Prices};
use crate::tokens::Tokens;
use crate::wire::Usage;
use serde::{Deserialize, Serialize};

/// The most marks that a request may have where they are the only way to cache.
pub const MARKS_MAX: usize = 4;
/// How many earlier ends of pages stay marked where a mark must stay in its place to be found again.
const ENDS_MARKED_MAX: usize = 20;

/// Returns where a page should be marked: behind its tools, behind what is the same at every call, where its history
/// ends, and where that of the calls before ended. A client's own marks stand instead of all these.
pub(crate) fn marks(page: &Page, static_messages: usize, volatile: usize, request: &Request<'_>) -> Vec<Mark> {
    let earlier = match request.target.cache.kind {
        Caching::Off | Caching::Prefix(_) => return Vec::new(),
        Caching::Marks => 1,
        Caching::MarksAndEnd => ENDS_MARKED_MAX,
    };
    if !request.marks.is_empty() {
        let given = |(seq, mark): &(Seq, crate::entry::Text)| {
            let at = page.messages.iter().rposition(|message| message.seq == Some(*seq))?;
            Some(Mark { after: After::Message(at), given: Some(mark.clone()) })
        };
        return request.marks.iter().filter_map(given).collect();
    }
    let mut after: Vec<After> = Vec::new();
    let stable = page.messages.len().saturating_sub(volatile);
    after.extend(stable.checked_sub(1).map(After::Message));
    after.extend(static_messages.checked_sub(1).map(After::Message));
    let heads = request.reader.heads().iter().rev().take(earlier);
    if heads.len() < earlier {
        request.reader.needs_all();
    }
    after.extend(heads.filter_map(|head| end_at(page, *head, volatile > 0)).map(After::Message));
    after.extend(page.tools.as_ref().filter(|tools| !tools.list().is_empty()).map(|_| After::Tools));
    let sums = Sums::of(page, request.target.calibration.factor);
    after.retain(|after| sums.upto(*after) >= request.target.cache.min);
    let mut unlike: Vec<After> = Vec::new();
    after.into_iter().for_each(|it| {
        if !unlike.contains(&it) {
            unlike.push(it)
        }
    });
    if request.target.cache.kind == Caching::Marks {
        unlike.truncate(MARKS_MAX);
    }
    unlike.sort_unstable();
    unlike.into_iter().map(|after| Mark { after, given: None }).collect()
}

/// The message with which the history of an earlier page ended.
fn end_at(page: &Page, head: Option<Seq>, has_volatile_end: bool) -> Option<usize> {
    let last = page.messages.iter().rposition(|message| message.seq.is_some() && message.seq <= head)?;
    // What was said then had no place in the log yet; it stands behind now.
    let was_input = page.messages.get(last + 1).is_some_and(|next| next.role == Role::User && next.seq.is_some());
    Some(if was_input && !has_volatile_end { last + 1 } else { last })
}

/// What stands before each place of a page, by the provider's likely count.
struct Sums {
    tools: Tokens,
    /// Up to and with each message.
    messages: Vec<Tokens>,
    factor: f64,
}

impl Sums {
    fn of(page: &Page, factor: f64) -> Sums {
        let tools = page.tools.as_ref().map_or(Tokens(0), |tools| tools.cost);
        let mut so_far = tools;
        let messages = page.messages.iter().map(|message| {
            so_far += message.cost;
            so_far
        });
        Sums { tools, messages: messages.collect(), factor }
    }

    fn upto(&self, after: After) -> Tokens {
        let counted = match after {
            After::Tools => self.tools,
            After::Message(at) => self.messages.get(at).copied().unwrap_or(self.tools),
        };
        scale(counted, self.factor)
    }
}

/// What the input of a call costs, if the provider's cache holds what it should.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Money {
    /// Tokens read from the cache.
    pub cached: Tokens,
    /// Tokens written to the cache, where that has a price of its own.
    pub written: Tokens,
    /// All others.
    pub plain: Tokens,
    /// US dollars.
    pub usd: f64,
}

impl Money {
    /// Predicts what a page costs that comes after another, of which so many messages stand unchanged; `used` is what
    /// the provider is expected to count for what we counted.
    pub(crate) fn of(page: &Page, counted: Tokens, used: Tokens, same: Option<usize>, request: &Request<'_>) -> Money {
        let target = request.target;
        let sums = Sums::of(page, used.0 as f64 / counted.0.max(1) as f64);
        let held = match (request.previous, same) {
            (Some(previous), Some(same)) => held(previous, same, &sums, target.cache.kind).min(used),
            _ => Tokens(0),
        };
        let cached = if held >= target.cache.min { held } else { Tokens(0) };
        let written_upto = match target.cache.kind {
            Caching::Off => Tokens(0),
            Caching::Prefix(_) | Caching::MarksAndEnd => used,
            // Writing reaches to the last mark; what was found stands before it.
            Caching::Marks => page.marks.iter().map(|mark| mark.after).max().map_or(Tokens(0), |last| sums.upto(last)),
        };
        let written = match target.prices.write {
            Some(_) if written_upto >= target.cache.min => written_upto - cached,
            _ => Tokens(0),
        };
        let plain = used - cached - written;
        let usd = usd(&target.prices, used, cached, written, plain);
        Money { cached, written, plain, usd }
    }

    /// Returns what is not read from the cache.
    pub fn fresh(&self) -> Tokens {
        self.written + self.plain
    }
}

/// How much of a page the cache holds from the page before.
fn held(previous: &Page, same: usize, sums: &Sums, kind: Caching) -> Tokens {
    let stands = same.checked_sub(1).map_or(After::Tools, After::Message);
    match kind {
        Caching::Off => Tokens(0),
        Caching::Prefix(grid) => {
            let tokens = sums.upto(stands);
            Tokens(tokens.0 - tokens.0 % grid.0.max(1))
        }
        Caching::Marks | Caching::MarksAndEnd => {
            let ends = previous.marks.iter().map(|mark| mark.after);
            let by_itself = previous.messages.len().checked_sub(1).filter(|_| kind == Caching::MarksAndEnd);
            let ends = ends.chain(by_itself.map(After::Message)).filter(|after| *after <= stands);
            ends.max().map_or(Tokens(0), |after| sums.upto(after))
        }
    }
}

impl Prices {
    /// Returns what a call costs that used this much, in US dollars.
    pub fn usd(&self, usage: &Usage) -> f64 {
        let Usage { input, cached, written, output } = *usage;
        let answer = self.long.filter(|long| input > long.above).map_or(self.output, |long| long.output);
        usd(self, input, cached, written, input - cached - written) + output.0 as f64 * answer / 1e6
    }
}

fn usd(prices: &Prices, used: Tokens, cached: Tokens, written: Tokens, plain: Tokens) -> f64 {
    let (mut input, mut read, mut write) = (prices.input, prices.cached, prices.write);
    if let Some(long) = prices.long.filter(|long| used > long.above) {
        (input, read, write) = (long.input, long.cached, long.write);
    }
    let sum = cached.0 as f64 * read + written.0 as f64 * write.unwrap_or(input) + plain.0 as f64 * input;
    sum / 1e6
}
