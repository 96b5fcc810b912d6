//! Secrets and personal data: where they stand in a text, and the text without them.
//!
//! A [`Redactor`] is a set of detectors, each switched by the name of its [`Kind`], and patterns of the host's own. It
//! reads a text once, in linear time, and never guesses by a model. What it finds is replaced by a typed placeholder
//! such as `[secret:github_token#k7q2m]`; the same value gets the same one under the same key.
//!
//! ```
//! use recto::redact::Redactor;
//!
//! let text = "DATABASE_URL=postgres://app:Kr7pTq92@db.internal/app";
//! let shown = Redactor::secrets().redact(text);
//! assert!(shown.starts_with("DATABASE_URL=postgres://app:[secret:url_password#"));
//! ```

mod assigned; // password = …, --token …, Authorization: Bearer …
mod bytes; // what stands beside a place of a text
mod keys; // keys that tell by their first letters what they are
mod kind; // what can be found, by name
mod known; // where else stands what was found?
mod number; // phone, card and account numbers
mod pattern; // patterns of the host's own
mod pem; // private keys in blocks of lines
mod findings; // what was found in an entry
mod json; // strings and numbers of JSON texts
mod placeholders; // what stands there instead
mod scan; // one walk over the text
mod screen; // what stands between a log and its readers
mod settings; // what a policy says about it
mod shape; // random, or made up for an example?
mod web; // passwords in addresses, and e-mail

use crate::digest::{Digest, Hasher};
use crate::entry::Redaction;
use crate::error::Error;
use crate::nearest::probably;
use kind::Kinds;
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::ops::Range;

pub use findings::{Finding, Findings};
pub use kind::Kind;
pub use known::Secrets;
pub use pattern::Pattern;
pub use screen::Screen;
pub use settings::{Redact, Within};

/// Raised whenever the same set of detectors would find something else.
const VERSION: u64 = 2;
/// How many patterns of its own a host may add; each is one more walk over the text.
const PATTERNS_MAX: usize = 64;
/// How often a text in which something was found is looked at again.
const ROUNDS_MAX: usize = 4;

/// Something that was found: where it stands, and what it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Found {
    /// Its bytes in the text; both ends lie between characters.
    pub range: Range<usize>,
    /// What it is.
    pub kind: Kind,
}

/// A set of detectors.
///
/// ```
/// use recto::redact::{Pattern, Redactor};
///
/// let redactor = Redactor::secrets()
///     .with("email")?
///     .without("jwt")?
///     .finding("badge", Pattern::new(r"ACME-[0-9]{6}")?)?;
/// assert!(redactor.redact("badge ACME-004711").starts_with("badge [secret:badge#"));
/// # Ok::<(), recto::Error>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Redactor {
    kinds: Kinds,
    patterns: BTreeMap<Kind, Pattern>,
}

impl Redactor {
    /// Returns a set that finds nothing.
    pub fn none() -> Redactor {
        Redactor::default()
    }

    /// Returns the set that finds secrets of every kind.
    pub fn secrets() -> Redactor {
        Redactor { kinds: Kinds::SECRETS, ..Redactor::default() }
    }

    /// Returns the set that finds secrets and personal data of every kind.
    pub fn all() -> Redactor {
        Redactor { kinds: Kinds::ALL, ..Redactor::default() }
    }

    /// Adds a kind by its name, or the group `secrets`, `personal` or `all`.
    pub fn with(mut self, name: &str) -> Result<Redactor, Error> {
        self.kinds = self.kinds.with(kinds_of(name)?);
        Ok(self)
    }

    /// Takes a kind away by its name, or the group `secrets`, `personal` or `all`, or a pattern of the host's own.
    pub fn without(mut self, name: &str) -> Result<Redactor, Error> {
        if self.patterns.remove(&Kind::Own(name.into())).is_none() {
            self.kinds = self.kinds.without(kinds_of(name)?);
        }
        Ok(self)
    }

    /// Adds a pattern of the host's own under a name; a pattern that had the name is replaced.
    pub fn finding(mut self, name: &str, pattern: Pattern) -> Result<Redactor, Error> {
        let is_name = name.starts_with(|it: char| it.is_ascii_lowercase())
            && name.len() <= kind::NAME_BYTES_MAX
            && name.bytes().all(|it| it.is_ascii_lowercase() || it.is_ascii_digit() || it == b'_');
        if !is_name {
            let hint = format!("small letters, digits and `_`, at most {}, a letter first", kind::NAME_BYTES_MAX);
            return Err(Error::settings(format!("{name:?} can't name what is redacted"), hint));
        }
        if kinds_of(name).is_ok() {
            return Err(Error::settings(format!("{name:?} is built in"), "choose another name for the pattern"));
        }
        self.patterns.insert(Kind::Own(name.into()), pattern);
        if self.patterns.len() > PATTERNS_MAX {
            let hint = format!("at most {PATTERNS_MAX}: say several in one by `[…]`");
            return Err(Error::settings("too many patterns", hint));
        }
        Ok(self)
    }

    /// Returns the kinds it finds, patterns of the host's own included.
    pub fn kinds(&self) -> impl Iterator<Item = &Kind> {
        self.kinds.iter().chain(self.patterns.keys())
    }

    /// Returns what identifies the set: with the same digest, the same is found in the same text.
    pub fn digest(&self) -> Digest {
        let mut hasher = Hasher::new();
        hasher.number(VERSION);
        hasher.number(self.kinds.len() as u64);
        self.kinds.iter().for_each(|kind| hasher.text(kind.name()));
        for (kind, pattern) in &self.patterns {
            hasher.text(kind.name());
            hasher.text(pattern.source());
        }
        hasher.finish()
    }

    /// Returns what is found in a text: sorted, and nothing overlaps.
    pub fn spans(&self, text: &str) -> Vec<Found> {
        let mut found = self.spans_once(text);
        // Beside a placeholder something may stand free that was part of a longer word.
        for _ in 0..ROUNDS_MAX {
            let more = if found.is_empty() { Vec::new() } else { self.spans_beside(text, &found) };
            if more.is_empty() {
                break;
            }
            found.extend(more);
            found.sort_by_key(|it| it.range.start);
        }
        found
    }

    fn spans_once(&self, text: &str) -> Vec<Found> {
        let mut found = scan::scan(text, self.kinds);
        for (kind, pattern) in &self.patterns {
            found.extend(pattern.matches(text).map(|range| Found { range, kind: kind.clone() }));
        }
        known::extend(text, &mut found);
        placeholders::spare(text, united(found))
    }

    /// Returns what is found in the text without what was found, as places of the text.
    fn spans_beside(&self, text: &str, found: &[Found]) -> Vec<Found> {
        let stand_in = |kind: &Kind| placeholders::of(Digest::default(), kind, "");
        let shown = replaced(text, found, |kind, _| stand_in(kind));
        let mut more = self.spans_once(&shown);
        // How much further back a place is in the text than in what is shown of it, behind each placeholder.
        let (mut shifts, mut seen, mut done) = (vec![(0, 0)], 0, 0);
        for Found { range, kind } in found {
            seen += range.start - done + stand_in(kind).len();
            done = range.end;
            shifts.push((seen, done));
        }
        for Found { range, .. } in &mut more {
            let (seen, done) = shifts[shifts.partition_point(|(seen, _)| *seen <= range.start) - 1];
            *range = range.start - seen + done..range.end - seen + done;
        }
        more
    }

    /// Returns the text without what is found in it.
    pub fn redact<'t>(&self, text: &'t str) -> Cow<'t, str> {
        self.redact_keyed(text, Digest::default())
    }

    /// Returns the text without what is found in it; only who knows the key could tell a value by its placeholder.
    pub fn redact_keyed<'t>(&self, text: &'t str, key: Digest) -> Cow<'t, str> {
        let found = self.spans(text);
        if found.is_empty() {
            return Cow::Borrowed(text);
        }
        Cow::Owned(replaced(text, &found, |kind, value| placeholders::of(key, kind, value)))
    }
}

fn replaced(text: &str, found: &[Found], mut with: impl FnMut(&Kind, &str) -> String) -> String {
    let (mut shown, mut done) = (String::with_capacity(text.len()), 0);
    for Found { range, kind } in found {
        shown.push_str(&text[done..range.start]);
        shown.push_str(&with(kind, &text[range.clone()]));
        done = range.end;
    }
    shown.push_str(&text[done..]);
    shown
}

/// Returns the arguments of a call with some places replaced so that they stay JSON, if they are.
pub(crate) fn whole_json(text: &str, shown: String, spans: &[&Redaction]) -> String {
    let spans: Vec<(Range<usize>, String)> = spans.iter().map(|it| (it.start..it.end, it.label.to_string())).collect();
    json::replaced_in(text, shown, &spans)
}

/// Makes one of what overlaps, so that no rest of anything found stays; it is of the more particular kind.
fn united(mut found: Vec<Found>) -> Vec<Found> {
    found.sort_by_key(|it| it.range.start);
    let mut united: Vec<Found> = Vec::with_capacity(found.len());
    for next in found {
        match united.last_mut().filter(|last| next.range.start < last.range.end) {
            Some(last) => {
                last.range.end = last.range.end.max(next.range.end);
                last.kind = std::mem::replace(&mut last.kind, Kind::Jwt).min(next.kind);
            }
            None => united.push(next),
        }
    }
    united
}

fn kinds_of(name: &str) -> Result<Kinds, Error> {
    let kinds = Kinds::named(name);
    if !kinds.is_empty() {
        return Ok(kinds);
    }
    let names: Vec<&str> = Kind::ALL.iter().map(Kind::name).chain(["all", "secrets", "personal"]).collect();
    let hint = match probably(name, names.iter().copied()) {
        Some(meant) => format!("did you mean {meant:?}?"),
        None => format!("one of {}", names.join(", ")),
    };
    Err(Error::settings(format!("nothing is called {name:?} that could be redacted"), hint))
}
