//! What is worked out once for every entry: its cost, its digest, and what of it a view may show.

use crate::digest::{Digest, Hasher};
use crate::entry::{Arguments, Entry, Media, Part, Piece, Reasoning, Redaction, Role, Seq};
use crate::error::Error;
use crate::tokens::{Count, Tokens};
use std::sync::Arc;

/// What a picture is taken to cost: one of 1024 × 1024 at common rates, since its size is not read.
pub const IMAGE_TOKENS: Tokens = Tokens(1_229);
/// How many bytes of a recording or document are taken to cost one token; no provider publishes a rule.
pub const MEDIA_BYTES_PER_TOKEN: u64 = 16;

/// Words that mark a user's rules; they are looked for once, on append, so that passes need not read every text.
pub(crate) const RULE_WORDS: [&str; 5] = ["always", "never", "must", "AGENTS.md", "CLAUDE.md"];
/// Longer texts are not looked through on append.
const RULE_BYTES_MAX: usize = 64 * 1024;

/// An entry in its log: counted once, and with the text that a view may show.
#[derive(Debug)]
pub struct Counted {
    /// Its place.
    pub seq: Seq,
    entry: Entry,
    /// `Some` where redactions made it differ from the entry's own parts.
    redacted: Option<Arc<[Part]>>,
    costs: Vec<Tokens>,
    /// The whole of what a view may show.
    pub cost: Tokens,
    /// Identifies role and shown parts.
    pub digest: Digest,
    /// Which rule words a user's entry holds, a bit each; `None` where it was not looked through.
    rule_words: Option<u8>,
}

impl Counted {
    pub(super) fn new(seq: Seq, entry: Entry, counter: &dyn Count) -> Counted {
        let redacted = (!entry.redactions.is_empty()).then(|| redact(&entry.parts, &entry.redactions));
        let shown = redacted.as_ref().unwrap_or(&entry.parts);
        let costs: Vec<_> = shown.iter().map(|part| cost_of(part, counter)).collect();
        let digest = digest_of(entry.role, entry.author.as_deref(), shown);
        let rule_words = (entry.role == Role::User).then(|| rule_words(shown)).flatten();
        Counted { seq, cost: costs.iter().copied().sum(), redacted, costs, digest, rule_words, entry }
    }

    /// Returns an entry as a store kept it, with what was worked out about it once: see [`counts`](Counted::counts).
    /// Counts that can't be this entry's are an error.
    pub fn stored(seq: Seq, entry: Entry, counts: &str) -> Result<Counted, Error> {
        let (costs, rule_words): (Vec<Tokens>, Option<u8>) = serde_json::from_str(counts)
            .ok()
            .filter(|(costs, _): &(Vec<Tokens>, Option<u8>)| costs.len() == entry.parts.len())
            .ok_or_else(|| Error::input(format!("entry {seq}: {counts:?} can't be its counts")))?;
        super::check(&entry)?;
        let redacted = (!entry.redactions.is_empty()).then(|| redact(&entry.parts, &entry.redactions));
        let digest = digest_of(entry.role, entry.author.as_deref(), redacted.as_ref().unwrap_or(&entry.parts));
        Ok(Counted { seq, cost: costs.iter().copied().sum(), redacted, costs, digest, rule_words, entry })
    }

    /// Returns what was worked out about it, as a text to keep beside it.
    pub fn counts(&self) -> String {
        serde_json::json!([self.costs, self.rule_words]).to_string()
    }

    /// Returns the fact as it was appended, secrets included: for export, never for a page.
    pub fn original(&self) -> &Entry {
        &self.entry
    }

    /// Returns what a view may show: the parts without what was redacted.
    pub fn shown(&self) -> &Arc<[Part]> {
        self.redacted.as_ref().unwrap_or(&self.entry.parts)
    }

    /// Returns what one part costs.
    pub fn part_cost(&self, part: usize) -> Tokens {
        self.costs[part]
    }

    /// Returns whether a user's entry holds a word; words in any case, names as they are written.
    pub(crate) fn holds(&self, word: &str) -> bool {
        let known = RULE_WORDS.iter().position(|known| *known == word);
        match known.zip(self.rule_words) {
            Some((at, found)) => found & (1 << at) != 0,
            None => texts(self.shown()).any(|text| holds(text, word)),
        }
    }

    /// Returns who speaks.
    pub fn role(&self) -> Role {
        self.entry.role
    }
}

pub(super) fn fits(redaction: &Redaction, parts: &[Part]) -> bool {
    let text = parts.get(redaction.part).and_then(|part| redactable(part, redaction.piece));
    text.is_some_and(|text| redaction.start < redaction.end && text.get(redaction.start..redaction.end).is_some())
}

/// The text of a part that a redaction can point into.
fn redactable(part: &Part, piece: usize) -> Option<&str> {
    match part {
        Part::Result(result) => match result.content.get(piece)? {
            Piece::Text { text } => Some(text),
            Piece::Image(_) => None,
        },
        _ if piece != 0 => None,
        Part::Text { text } => Some(text),
        Part::Reasoning(reasoning) => Some(&reasoning.text),
        Part::Call(call) => Some(call.arguments.as_str()),
        _ => None,
    }
}

/// Returns the parts with every redacted stretch replaced by its label.
fn redact(parts: &[Part], redactions: &[Redaction]) -> Arc<[Part]> {
    let mut parts = parts.to_vec();
    for (at, part) in parts.iter_mut().enumerate() {
        let pieces = if let Part::Result(result) = &*part { result.content.len() } else { 1 };
        for piece in 0..pieces {
            let mut spans: Vec<_> = redactions.iter().filter(|r| r.part == at && r.piece == piece).collect();
            let Some(text) = redactable(part, piece).filter(|_| !spans.is_empty()) else { continue };
            spans.sort_by_key(|span| (span.start, span.end));
            let text = without(text, &spans);
            replace_text(part, piece, text);
        }
    }
    parts.into()
}

/// Overlapping stretches are taken as one, under the first label.
fn without(text: &str, spans: &[&Redaction]) -> String {
    let (mut out, mut done) = (String::with_capacity(text.len()), 0);
    for span in spans {
        if span.start >= done {
            out.push_str(&text[done..span.start]);
            out.push_str(&span.label);
        }
        done = done.max(span.end);
    }
    out.push_str(&text[done..]);
    out
}

fn replace_text(part: &mut Part, at: usize, new: String) {
    match part {
        Part::Text { text } => *text = new.into(),
        // What the provider sealed holds what is redacted, or is a seal over other words.
        Part::Reasoning(it) => {
            let (provider, model) = (it.provider.clone(), it.model.clone());
            *it = Reasoning { text: new.into(), provider, model, ..Reasoning::default() };
        }
        Part::Call(call) => {
            call.arguments = match call.arguments {
                Arguments::String(_) => Arguments::String(new.into()),
                Arguments::Object(_) => Arguments::Object(new.into()),
            }
        }
        Part::Result(result) => {
            if let Some(Piece::Text { text }) = result.content.get_mut(at) {
                *text = new.into();
            }
        }
        _ => {}
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
