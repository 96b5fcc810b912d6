//! What is worked out once for every entry: its cost, its digest, and what of it a view may show.

use super::shown::{self, Shown};
use crate::digest::{Digest, Hasher};
use crate::entry::{Entry, Media, Part, Piece, Role, Seq, Text};
use crate::error::Error;
use crate::item::result_text;
use crate::redact::{Findings, Kind, Screen, Secrets};
use crate::tokens::{Count, Tokens};
use crate::tool_use::Used;
use serde_json::{Map, Value};
use std::borrow::Cow;
use std::sync::{Arc, OnceLock};

/// What a picture is taken to cost: one of 1024 × 1024 at common rates, since its size is not read.
pub const IMAGE_TOKENS: Tokens = Tokens(1_229);
/// How many bytes of a recording or document are taken to cost one token; no provider publishes a rule.
pub const MEDIA_BYTES_PER_TOKEN: u64 = 16;

/// Words that mark a user's rules; they are looked for once, on append, so that passes need not read every text.
pub(crate) const RULE_WORDS: [&str; 5] = ["always", "never", "must", "AGENTS.md", "CLAUDE.md"];
/// Longer texts are not looked through on append.
const RULE_BYTES_MAX: usize = 64 * 1024;

/// An entry in its log: counted once, and with the text that a view may show.
#[derive(Clone, Debug)]
pub struct Counted {
    /// Its place.
    pub seq: Seq,
    entry: Entry,
    findings: Findings,
    shown: Shown,
    /// What every part costs as it was said.
    said: Vec<Tokens>,
    /// What every part costs that is shown otherwise; empty where none is.
    costs: Vec<Tokens>,
    /// The whole of what a view may show.
    pub cost: Tokens,
    /// Identifies role and shown parts.
    pub digest: Digest,
    /// Which rule words a user's entry holds, a bit each; `None` where it was not looked through.
    rule_words: Option<u8>,
    /// What the call in each of its parts does, by what is known of common tools: worked out when it is first asked.
    uses: OnceLock<Vec<Vec<Used>>>,
    /// How many characters its result has: counted when it is first asked.
    result_chars: OnceLock<usize>,
}

/// What entries are counted by, and shown through.
#[derive(Clone, Copy)]
pub(super) struct Lens<'l> {
    pub(super) counter: &'l dyn Count,
    pub(super) screen: &'l Screen,
}

/// What was worked out about an entry once, as a store kept it.
#[derive(Clone, Debug)]
pub struct Kept<'k> {
    /// What its parts cost, and which rule words it holds: see [`Counted::counts`].
    pub counts: &'k str,
    /// What was found in it; `None` where nobody has looked.
    pub findings: Option<Findings>,
}

impl Counted {
    pub(super) fn new(seq: Seq, entry: Entry, lens: &Lens<'_>, secrets: &mut Cow<'_, Secrets>) -> Counted {
        let findings = lens.screen.find(&entry, secrets);
        let said: Vec<_> = entry.parts.iter().map(|part| cost_of(part, lens.counter)).collect();
        let rule_words = (entry.role == Role::User).then(|| rule_words(&entry.parts)).flatten();
        Counted::shown_by(seq, entry, findings, said, rule_words, lens)
    }

    /// Returns an entry as a store kept it, as it is shown through a screen. Counts that can't be this entry's are an
    /// error. Where nobody has looked for secrets, or others would find others now, that is made up for.
    pub fn stored(
        seq: Seq,
        entry: Entry,
        kept: Kept<'_>,
        screen: &Screen,
        counter: &dyn Count,
    ) -> Result<Counted, Error> {
        let (said, rule_words): (Vec<Tokens>, Option<u8>) = serde_json::from_str(kept.counts)
            .ok()
            .filter(|(costs, _): &(Vec<Tokens>, Option<u8>)| costs.len() == entry.parts.len())
            .ok_or_else(|| Error::input(format!("entry {seq}: {:?} can't be its counts", kept.counts)))?;
        super::check(&entry)?;
        let lens = Lens { counter, screen };
        let current = kept.findings.filter(|findings| Screen::is_found(findings) && shown::fit(findings, &entry.parts));
        let is_late = current.is_none() && !screen.redact().is_nothing();
        let findings = current.unwrap_or_else(|| match is_late {
            true => screen.find(&entry, &mut Cow::Owned(Secrets::default())),
            false => Findings::default(),
        });
        let mut counted = Counted::shown_by(seq, entry, findings, said, rule_words, &lens);
        counted.shown.is_late = is_late && counted.is_redacted();
        Ok(counted)
    }

    fn shown_by(
        seq: Seq,
        entry: Entry,
        findings: Findings,
        said: Vec<Tokens>,
        rule_words: Option<u8>,
        lens: &Lens<'_>,
    ) -> Counted {
        let shown = Shown::of(&entry, &findings, lens.screen);
        let parts = shown.parts.as_ref().unwrap_or(&entry.parts);
        let costs: Vec<Tokens> = match &shown.parts {
            None => Vec::new(),
            Some(parts) => {
                let pairs = parts.iter().zip(entry.parts.iter()).zip(&said);
                pairs.map(|((new, old), said)| if new == old { *said } else { cost_of(new, lens.counter) }).collect()
            }
        };
        let cost = if shown.parts.is_some() { &costs } else { &said }.iter().copied().sum();
        let digest = digest_of(entry.role, shown.author(&entry).map(|author| &**author), parts);
        let (uses, result_chars) = (OnceLock::new(), OnceLock::new());
        Counted { seq, entry, findings, shown, said, costs, cost, digest, rule_words, uses, result_chars }
    }

    /// Returns the same entry as it is shown through another screen.
    pub(super) fn through(&self, lens: &Lens<'_>) -> Counted {
        let (entry, said) = (self.entry.clone(), self.said.clone());
        let is_late = !Screen::is_found(&self.findings) && !lens.screen.redact().is_nothing();
        let findings = match is_late {
            true => lens.screen.find(&entry, &mut Cow::Owned(Secrets::default())),
            false => self.findings.clone(),
        };
        let mut counted = Counted::shown_by(self.seq, entry, findings, said, self.rule_words, lens);
        counted.shown.is_late = is_late && counted.is_redacted();
        counted
    }

    /// Returns what was worked out about it, as a text to keep beside it: what it costs as it was said.
    pub fn counts(&self) -> String {
        serde_json::json!([self.said, self.rule_words]).to_string()
    }

    /// Returns what it costs as it was said, whoever reads it.
    pub fn said_cost(&self) -> Tokens {
        self.said.iter().copied().sum()
    }

    /// Returns what was found in it, of every kind.
    pub fn findings(&self) -> &Findings {
        &self.findings
    }

    /// Returns whether a screen could hide something of it.
    pub(super) fn has_found(&self) -> bool {
        !self.findings.list.is_empty() || Screen::could_hide(&self.entry)
    }

    /// Returns what of it is shown as placeholders: how many places of each kind.
    pub fn redacted(&self) -> &[(Kind, usize)] {
        &self.shown.kinds
    }

    /// Returns whether anything of it is not shown as it was said.
    pub fn is_redacted(&self) -> bool {
        self.shown.parts.is_some() || self.shown.hides_anything()
    }

    /// Returns whether it was looked for only now, because nobody had, or others would find others now.
    pub fn is_found_late(&self) -> bool {
        self.shown.is_late
    }

    /// Returns which agent or person speaks, unless that is not shown.
    pub fn author(&self) -> Option<&Text> {
        self.shown.author(&self.entry)
    }

    /// Returns the fields of an imported record, unless something in them is not shown.
    pub(crate) fn extra(&self) -> Option<&Map<String, Value>> {
        // What was redacted in parts may stand in other fields as well.
        Some(&self.entry.extra).filter(|_| self.shown.parts.is_none() && !self.shown.hides_extra)
    }

    /// Returns the fact as far as it is shown; a record of the host's in which something is hidden is left out.
    pub fn seen(&self) -> Entry {
        Entry {
            parts: self.shown().clone(),
            author: self.author().cloned(),
            extra: self.extra().cloned().unwrap_or_default(),
            meta: if self.shown.hides_meta { Map::new() } else { self.entry.meta.clone() },
            redactions: Vec::new(),
            ..self.entry.clone()
        }
    }

    /// Returns the fact as it was appended, secrets included: for export, never for a page.
    pub fn original(&self) -> &Entry {
        &self.entry
    }

    /// Returns what a view may show: the parts without what was redacted.
    pub fn shown(&self) -> &Arc<[Part]> {
        self.shown.parts.as_ref().unwrap_or(&self.entry.parts)
    }

    /// Returns what one part costs.
    pub fn part_cost(&self, part: usize) -> Tokens {
        if self.shown.parts.is_some() { self.costs[part] } else { self.said[part] }
    }

    /// Returns whether a user's entry holds a word; words in any case, names as they are written.
    pub(crate) fn holds(&self, word: &str) -> bool {
        let known = RULE_WORDS.iter().position(|known| *known == word);
        match known.zip(self.rule_words) {
            Some((at, found)) => found & (1 << at) != 0,
            None => texts(self.shown()).any(|text| holds(text, word)),
        }
    }

    /// Returns what the call in one of its parts does, by what is known of common tools.
    pub(crate) fn uses(&self, part: usize) -> &[Used] {
        let uses = self.uses.get_or_init(|| {
            let of = |part: &Part| match part {
                Part::Call(call) => Used::all(call, &[]),
                _ => Vec::new(),
            };
            self.shown().iter().map(of).collect()
        });
        uses.get(part).map_or(&[], Vec::as_slice)
    }

    /// Returns how many characters its result has, as text; of what holds none, none.
    pub(crate) fn result_chars(&self) -> usize {
        *self.result_chars.get_or_init(|| match &**self.shown() {
            [Part::Result(result)] => result_text(result).chars().count(),
            _ => 0,
        })
    }

    /// Returns who speaks.
    pub fn role(&self) -> Role {
        self.entry.role
    }
}

fn texts(parts: &[Part]) -> impl Iterator<Item = &str> {
    parts.iter().filter_map(|part| if let Part::Text { text } = part { Some(&**text) } else { None })
}

/// Which of the rule words some parts hold, unless they are too long to look.
fn rule_words(parts: &[Part]) -> Option<u8> {
    let bytes: usize = texts(parts).map(str::len).sum();
    let held = |at: usize| u8::from(texts(parts).any(|text| holds(text, RULE_WORDS[at]))) << at;
    (bytes <= RULE_BYTES_MAX).then(|| (0..RULE_WORDS.len()).map(held).sum())
}

/// Whether a text holds a word by itself, in any case; what is no plain word is looked for as it is written.
fn holds(text: &str, word: &str) -> bool {
    if !word.bytes().all(|byte| byte.is_ascii_alphabetic()) || word.is_empty() {
        return !word.is_empty() && text.contains(word);
    }
    let (text, word) = (text.as_bytes(), word.as_bytes());
    let is_letter = |at: Option<&u8>| at.is_some_and(u8::is_ascii_alphanumeric);
    let mut from = 0;
    while let Some(found) = text[from..].windows(word.len()).position(|it| it.eq_ignore_ascii_case(word)) {
        let at = from + found;
        if !is_letter(at.checked_sub(1).and_then(|before| text.get(before))) && !is_letter(text.get(at + word.len())) {
            return true;
        }
        from = at + 1;
    }
    false
}

/// Returns what a part costs on a page.
pub(crate) fn cost_of(part: &Part, counter: &dyn Count) -> Tokens {
    let media = |url: &str| Tokens(IMAGE_TOKENS.0.max(url.len() as u64 * 3 / 4 / MEDIA_BYTES_PER_TOKEN));
    match part {
        Part::Text { text } => counter.count(text),
        Part::Reasoning(reasoning) => {
            // Where a provider shows nothing of its reasoning, the signature is what carries it.
            let sealed = reasoning.signature.as_ref().filter(|_| reasoning.text.is_empty());
            let hidden = reasoning.encrypted.as_ref().or(reasoning.item.as_ref()).or(sealed);
            counter.count(&reasoning.text) + Tokens(hidden.map_or(0, |payload| payload.len() as u64 / 4))
        }
        Part::Call(call) => counter.count(&call.name) + counter.count(call.arguments.as_str()),
        Part::Result(result) => {
            let pieces = result.content.iter().map(|piece| match piece {
                Piece::Text { text } => counter.count(text),
                Piece::Image(_) => IMAGE_TOKENS,
            });
            pieces.sum()
        }
        Part::Image(_) => IMAGE_TOKENS,
        Part::Audio(it) | Part::Document(it) => media(&it.url),
        Part::File { .. } => IMAGE_TOKENS,
        Part::Opaque { payload, .. } => counter.count(payload),
    }
}

/// Returns the digest of a message: role, author, and every part.
pub(crate) fn digest_of(role: Role, author: Option<&str>, parts: &[Part]) -> Digest {
    let mut hasher = Hasher::new();
    hasher.number(role as u64);
    hasher.maybe(author);
    for part in parts {
        hash_part(part, &mut hasher);
    }
    hasher.finish()
}

fn hash_part(part: &Part, hasher: &mut Hasher) {
    match part {
        Part::Text { text } => (hasher.number(0), hasher.text(text)).1,
        Part::Reasoning(it) => {
            hasher.number(1);
            hasher.text(&it.text);
            [&it.provider, &it.model, &it.signature, &it.encrypted, &it.item]
                .iter()
                .for_each(|text| hasher.maybe(text.as_deref()));
        }
        Part::Call(call) => {
            hasher.number(2);
            [call.id.as_str(), &*call.name, call.arguments.as_str()].iter().for_each(|text| hasher.text(text));
        }
        Part::Result(result) => {
            hasher.number(3 + u64::from(result.is_error) * 16);
            hasher.text(result.call.as_str());
            for piece in &result.content {
                match piece {
                    Piece::Text { text } => (hasher.number(0), hasher.text(text)).1,
                    Piece::Image(media) => hash_media(4, media, hasher),
                }
            }
        }
        Part::Image(media) => hash_media(4, media, hasher),
        Part::Audio(media) => hash_media(5, media, hasher),
        Part::Document(media) => hash_media(6, media, hasher),
        Part::File { id } => (hasher.number(7), hasher.text(id)).1,
        Part::Opaque { provider, payload } => {
            hasher.number(8);
            [provider, payload].iter().for_each(|text| hasher.text(text));
        }
    }
}

fn hash_media(kind: u64, media: &Media, hasher: &mut Hasher) {
    hasher.number(kind);
    hasher.text(&media.url);
    hasher.maybe(media.name.as_deref());
    hasher.maybe(media.detail.as_deref());
}
