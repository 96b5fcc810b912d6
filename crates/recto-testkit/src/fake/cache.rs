//! The provider's prompt cache, without its clock: what is read, what is written, nothing expires by itself.

use super::chain::chain;
use super::model::{Claude, Gemini, Gpt};
use super::prompt::{Piece, Prompt};
use std::collections::HashMap;

const LOOKBACK_POSITIONS: usize = 20;
const OPENAI_MINIMUM: u64 = 1024;
const EXPLICIT_READ_MAX: usize = 80;
const ENDINGS_READ_MAX: usize = 20;
const WRITES_MAX: usize = 4;
const SENT_MAX: usize = 256;

/// How the cache served one request.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Served {
    pub(super) total: u64,
    pub(super) read: u64,
    pub(super) written: Vec<(String, u64)>, // lifetime, tokens
}

impl Served {
    pub(super) fn written_tokens(&self) -> u64 {
        self.written.iter().map(|(_, tokens)| tokens).sum()
    }

    pub(super) fn written_for(&self, lifetime: &str) -> u64 {
        self.written.iter().filter(|(ttl, _)| ttl == lifetime).map(|(_, tokens)| tokens).sum()
    }
}

#[derive(Debug, Default)]
pub(super) struct Cache {
    written: HashMap<u128, String>, // the name of a prefix, and how long it is kept
    sent: Vec<Prompt>,              // for models that cache by themselves
}

/// A piece's end: everything up to it, its tokens and its name.
#[derive(Clone, Copy)]
struct End {
    tokens: u64,
    name: u128,
}

fn ends(prompt: &Prompt) -> Vec<End> {
    let mut end = End { tokens: 0, name: chain(0, &prompt.model) };
    let step = |piece: &Piece| {
        end = End { tokens: end.tokens + piece.tokens, name: chain(end.name, &piece.text) };
        end
    };
    prompt.pieces.iter().map(step).collect()
}

impl Cache {
    /// Forgets everything that is kept this long, or everything.
    pub(super) fn forget(&mut self, lifetime: Option<&str>) {
        self.sent.clear();
        self.written.retain(|_, ttl| lifetime.is_some_and(|gone| ttl != gone));
    }

    /// Serves an Anthropic request: writes at marks only, reads a little before them.
    pub(super) fn serve_marked(&mut self, prompt: &Prompt, minimum: Option<u64>) -> Served {
        let by_model = Claude::named(&prompt.model).map_or(1024, Claude::cache_minimum);
        let minimum = minimum.unwrap_or(by_model);
        let ends = ends(prompt);
        let marks: Vec<(usize, &String)> =
            prompt.pieces.iter().enumerate().filter_map(|(at, piece)| Some((at, piece.mark.as_ref()?))).collect();
        let readable = marks.iter().flat_map(|(at, _)| at.saturating_sub(LOOKBACK_POSITIONS)..=*at);
        let read = readable.filter(|at| self.written.contains_key(&ends[*at].name)).map(|at| ends[at].tokens).max();
        let mut served = Served { total: prompt.tokens(), read: read.unwrap_or(0), written: Vec::new() };
        let fresh = |at: usize| ends[at].tokens >= minimum && ends[at].tokens > served.read;
        let writes: Vec<(usize, &String)> = marks.into_iter().filter(|(at, _)| fresh(*at)).collect();
        let highest = |ttl: &str| writes.iter().filter(|(_, it)| *it == ttl).map(|(at, _)| ends[*at].tokens).max();
        // Everything up to the highest long-lived mark is paid as such, whatever marks lie before it.
        let long_until = highest("1h").unwrap_or(served.read);
        let short_until = highest("5m").unwrap_or(long_until).max(long_until);
        let written = [("1h", long_until - served.read), ("5m", short_until - long_until)];
        for (at, ttl) in writes {
            self.written.insert(ends[at].name, ttl.clone());
        }
        served.written = written.into_iter().filter(|it| it.1 > 0).map(|(ttl, it)| (ttl.to_owned(), it)).collect();
        served
    }

    /// Serves an OpenAI request, as its model does.
    pub(super) fn serve_openai(&mut self, prompt: &Prompt, minimum: Option<u64>) -> Served {
        let minimum = minimum.unwrap_or(OPENAI_MINIMUM);
        match Gpt::named(&prompt.model) {
            Some(gpt) if gpt.has_breakpoints() => self.serve_breakpoints(prompt, minimum),
            gpt => self.serve_grid(prompt, gpt.map_or(128, Gpt::cache_grid), minimum),
        }
    }

    /// Serves a Gemini request: whatever stands unchanged is read, and nothing is said about writing.
    pub(super) fn serve_implicit(&mut self, prompt: &Prompt, minimum: Option<u64>) -> Served {
        let by_model = Gemini::named(&prompt.model).map_or(4096, |gemini| gemini.cache_minimum(&prompt.model));
        self.serve_grid(prompt, 1, minimum.unwrap_or(by_model))
    }

    fn serve_breakpoints(&mut self, prompt: &Prompt, minimum: u64) -> Served {
        let ends = ends(prompt);
        let explicit: Vec<(usize, String)> =
            prompt.pieces.iter().enumerate().filter_map(|(at, piece)| Some((at, piece.mark.clone()?))).collect();
        let mut endings: Vec<usize> =
            (0..ends.len()).filter(|at| prompt.pieces[*at].ends_message && !prompt.only_explicit).collect();
        let implicit = endings.pop();
        let readable = explicit.iter().rev().take(EXPLICIT_READ_MAX).map(|(at, _)| *at);
        let readable = readable.chain(implicit).chain(endings.iter().rev().take(ENDINGS_READ_MAX).copied());
        let known = readable.filter(|at| self.written.contains_key(&ends[*at].name));
        let read = known.map(|at| ends[at].tokens).max().unwrap_or(0);
        let own = WRITES_MAX - usize::from(implicit.is_some());
        let mut writes: Vec<(usize, String)> = explicit.into_iter().rev().take(own).collect();
        writes.extend(implicit.map(|at| (at, prompt.lifetime.clone())));
        writes.sort();
        let mut served = Served { total: prompt.tokens(), read, written: Vec::new() };
        let mut until = read;
        for (at, ttl) in writes {
            let End { tokens, name } = ends[at];
            if tokens >= minimum && tokens > until {
                served.written.push((ttl.clone(), tokens - until));
                until = tokens;
                self.written.insert(name, ttl);
            }
        }
        served
    }

    fn serve_grid(&mut self, prompt: &Prompt, grid: u64, minimum: u64) -> Served {
        let same = self.sent.iter().filter(|sent| sent.model == prompt.model).map(|sent| shared(&sent.pieces, prompt));
        let read = same.max().map_or(0, |tokens| tokens / grid * grid);
        let served =
            Served { total: prompt.tokens(), read: if read < minimum { 0 } else { read }, written: Vec::new() };
        if self.sent.len() == SENT_MAX {
            self.sent.remove(0);
        }
        self.sent.push(prompt.clone());
        served
    }
}

/// Returns the tokens of the longest common beginning, a piece that is equal in part included in proportion.
fn shared(sent: &[Piece], prompt: &Prompt) -> u64 {
    let mut tokens = 0;
    for (at, piece) in prompt.pieces.iter().enumerate() {
        let Some(other) = sent.get(at) else { break };
        if other.text != piece.text {
            let equal = other.text.bytes().zip(piece.text.bytes()).take_while(|(a, b)| a == b).count() as u64;
            tokens += piece.tokens * equal / (piece.text.len() as u64).max(1);
            break;
        }
        tokens += piece.tokens;
    }
    tokens
}
