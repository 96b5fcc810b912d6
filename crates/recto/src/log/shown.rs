//! What of an entry a view may show: its parts without what was redacted.

use crate::entry::{Arguments, Entry, Part, Piece, Reasoning, Redaction, Text};
use crate::redact::{Findings, Kind, Screen, whole_json};
use std::sync::Arc;

/// How an entry is shown through a screen.
#[derive(Clone, Debug, Default)]
pub(super) struct Shown {
    /// Its parts, where they differ from its own.
    pub(super) parts: Option<Arc<[Part]>>,
    /// How many places of each kind are placeholders.
    pub(super) kinds: Vec<(Kind, usize)>,
    /// Whether these were looked for only now.
    pub(super) is_late: bool,
    pub(super) hides_extra: bool,
    pub(super) hides_meta: bool,
    hides_author: bool,
}

impl Shown {
    pub(super) fn of(entry: &Entry, findings: &Findings, screen: &Screen) -> Shown {
        let (labels, kinds) = screen.labels(entry, findings);
        let words = (!labels.is_empty()).then(|| redacted(&entry.parts, &labels));
        let beside = screen.beside(entry, words.as_ref().unwrap_or(&entry.parts));
        let hides_author = entry.author.as_ref().is_some_and(|author| screen.hides(entry, author));
        let hides_extra = screen.hides_in(entry, &entry.extra);
        let hides_meta = screen.hides_in(entry, &entry.meta);
        Shown { parts: beside.or(words), kinds, is_late: false, hides_extra, hides_meta, hides_author }
    }

    /// Whether a field beside the parts is not shown.
    pub(super) fn hides_anything(&self) -> bool {
        self.hides_author || self.hides_extra
    }

    pub(super) fn author<'e>(&self, entry: &'e Entry) -> Option<&'e Text> {
        entry.author.as_ref().filter(|_| !self.hides_author)
    }
}

/// Whether findings can be those of some parts.
pub(super) fn fit(findings: &Findings, parts: &[Part]) -> bool {
    findings.list.iter().all(|it| {
        let text = parts.get(it.part).and_then(|part| redactable(part, it.piece));
        text.is_some_and(|text| it.start < it.end && text.get(it.start..it.end).is_some())
    })
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
fn redacted(parts: &[Part], redactions: &[Redaction]) -> Arc<[Part]> {
    let mut parts = parts.to_vec();
    for (at, part) in parts.iter_mut().enumerate() {
        let pieces = if let Part::Result(result) = &*part { result.content.len() } else { 1 };
        for piece in 0..pieces {
            let mut spans: Vec<_> = redactions.iter().filter(|r| r.part == at && r.piece == piece).collect();
            let Some(text) = redactable(part, piece).filter(|_| !spans.is_empty()) else { continue };
            spans.sort_by_key(|span| (span.start, span.end));
            let text = match part {
                Part::Call(_) => whole_json(text, without(text, &spans), &spans),
                _ => without(text, &spans),
            };
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
