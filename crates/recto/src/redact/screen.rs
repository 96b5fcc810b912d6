use super::{Finding, Findings, Found, Kind, Redact, Redactor, Secrets, Within, json, placeholders, united};
use crate::digest::Digest;
use crate::entry::{Entry, Media, Part, Piece, Redaction, Text};
use crate::error::Error;
use serde_json::{Map, Value};
use std::borrow::Cow;
use std::sync::{Arc, LazyLock};

/// The detectors that look at everything that is appended, and what identifies them.
static DETECTORS: LazyLock<(Redactor, u32)> = LazyLock::new(|| {
    let all = Redactor::all();
    let [first, second, third, fourth, ..] = all.digest().to_bytes();
    (all, u32::from_be_bytes([first, second, third, fourth]))
});

/// Through this nothing is seen that was ever found.
static CLOSED: LazyLock<Screen> =
    LazyLock::new(|| Screen::of(&Redact::everything()).expect("it names what is built in"));

/// What stands between a log and its readers: which of what was found is shown as a placeholder, and under which key.
///
/// Secrets and personal data of every kind are found when an entry is appended. What of them a page shows is its
/// [policy's](Redact) to say.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Screen {
    redact: Redact,
    key: Digest,
    /// What is redacted, of what is built in.
    kinds: Redactor,
    /// The policy's own patterns, for which nobody has looked yet.
    patterns: Redactor,
}

impl Screen {
    /// Returns the screen that a policy asks for.
    pub fn of(redact: &Redact) -> Result<Screen, Error> {
        let all = redact.redactor()?;
        let kinds = Redactor { kinds: all.kinds, ..Redactor::default() };
        let patterns = Redactor { patterns: all.patterns, ..Redactor::default() };
        Ok(Screen { redact: redact.clone(), key: Digest::default(), kinds, patterns })
    }

    /// Returns the same with placeholders under a key, which has to stay as secret as the log.
    #[must_use]
    pub fn keyed(self, key: Digest) -> Screen {
        Screen { key, ..self }
    }

    /// Returns the screen through which no secret is seen, and nothing else that this one hides, wherever it stands: for
    /// titles, and for those who are told something beside a page.
    pub fn strict(&self) -> Screen {
        let mut redact = Redact { spare: Vec::new(), within: Within::Everything, ..self.redact.clone() };
        redact.find.push("secrets".into());
        Screen::of(&redact).map_or_else(|_| CLOSED.clone(), |screen| screen.keyed(self.key)).keyed(self.key)
    }

    /// Returns what is redacted.
    pub fn redact(&self) -> &Redact {
        &self.redact
    }

    /// Returns what placeholders are made with.
    pub fn key(&self) -> Digest {
        self.key
    }

    /// Returns whether it stands also before prompts, tools and all that a host says at a call.
    pub fn is_over_prompts(&self) -> bool {
        self.redact.within == Within::Everything && !self.redact.is_nothing()
    }

    /// Returns a text as a model is told it, whatever it belongs to.
    pub fn text<'t>(&self, text: &'t str) -> Cow<'t, str> {
        if self.redact.is_nothing() {
            return Cow::Borrowed(text);
        }
        self.both().redact_keyed(text, self.key)
    }

    /// Returns a JSON text as a model is told it; it stays JSON.
    pub fn json<'j>(&self, text: &'j str) -> Cow<'j, str> {
        if self.redact.is_nothing() {
            return Cow::Borrowed(text);
        }
        json::redacted(&self.both(), text, |found| self.label(&found.kind, &text[found.range.clone()]))
    }

    fn both(&self) -> Cow<'_, Redactor> {
        match (self.patterns.patterns.is_empty(), self.kinds.kinds.is_empty()) {
            (true, _) => Cow::Borrowed(&self.kinds),
            (_, true) => Cow::Borrowed(&self.patterns),
            _ => Cow::Owned(Redactor { kinds: self.kinds.kinds, patterns: self.patterns.patterns.clone() }),
        }
    }

    /// What stands for a value; one that is spelled with escapes is the same as without.
    fn label(&self, kind: &Kind, value: &str) -> String {
        let said = value.contains('\\').then(|| serde_json::from_str::<String>(&format!("\"{value}\"")).ok()).flatten();
        placeholders::of(self.key, kind, said.as_deref().unwrap_or(value))
    }

    /// Finds what is in an entry, and remembers its secrets.
    pub(crate) fn find(&self, entry: &Entry, secrets: &mut Cow<'_, Secrets>) -> Findings {
        let (detectors, by) = &*DETECTORS;
        let mut list = Vec::new();
        for (part, piece, text) in texts(&entry.parts) {
            let mut found = detectors.spans(text);
            if matches!(entry.parts[part], Part::Call(_)) {
                found.extend(json::spans(detectors, text));
            }
            let known = secrets.spans(text, self.key);
            if !known.is_empty() || matches!(entry.parts[part], Part::Call(_)) {
                found.extend(known);
                found = placeholders::spare(text, united(found));
            }
            Secrets::learn(secrets, text, &found, self.key);
            list.extend(placed(part, piece, found));
        }
        Findings { by: *by, list }
    }

    /// Returns whether these detectors have found something, so that it need not be looked for again.
    pub(crate) fn is_found(findings: &Findings) -> bool {
        findings.by == DETECTORS.1
    }

    /// Returns what of an entry's words is not shown: what the host has marked, and what was found and is redacted.
    /// And how much of each kind.
    pub(crate) fn labels(&self, entry: &Entry, findings: &Findings) -> (Vec<Redaction>, Vec<(Kind, usize)>) {
        let (mut labels, mut kinds) = (entry.redactions.clone(), Vec::<(Kind, usize)>::new());
        if self.redact.is_nothing() || !self.redact.within.holds(entry) {
            return (labels, kinds);
        }
        let mut add = |finding: &Finding, text: &str| {
            let Finding { part, piece, start, end, .. } = *finding;
            let Some(value) = text.get(start..end) else { return };
            labels.push(Redaction { part, piece, start, end, label: self.label(&finding.kind, value).into() });
            match kinds.iter_mut().find(|(kind, _)| *kind == finding.kind) {
                Some((_, places)) => *places += 1,
                None => kinds.push((finding.kind.clone(), 1)),
            }
        };
        if !findings.list.is_empty() || !self.patterns.patterns.is_empty() {
            for (part, piece, text) in texts(&entry.parts) {
                let is_here = |it: &&Finding| it.part == part && it.piece == piece;
                let is_redacted = |it: &&Finding| self.kinds.kinds.contains(&it.kind);
                findings.list.iter().filter(is_here).filter(is_redacted).for_each(|it| add(it, text));
                placed(part, piece, self.patterns.spans(text)).for_each(|it| add(&it, text));
            }
        }
        (labels, kinds)
    }

    /// Returns the parts of an entry as far as they differ beside its words: where pictures and documents are, what they
    /// are called, and what only a provider reads. `None` where nothing does.
    pub(crate) fn beside(&self, entry: &Entry, parts: &[Part]) -> Option<Arc<[Part]>> {
        if self.redact.is_nothing() || !self.redact.within.holds(entry) {
            return None;
        }
        let has_media = |part: &Part| match part {
            Part::Image(_) | Part::Audio(_) | Part::Document(_) | Part::Opaque { .. } => true,
            Part::Result(result) => result.content.iter().any(|piece| matches!(piece, Piece::Image(_))),
            _ => false,
        };
        if !parts.iter().any(has_media) {
            return None;
        }
        let shown: Vec<Part> = parts.iter().map(|part| self.part(part)).collect();
        (*shown != *parts).then(|| shown.into())
    }

    fn part(&self, part: &Part) -> Part {
        match part {
            Part::Image(media) => Part::Image(self.media(media)),
            Part::Audio(media) => Part::Audio(self.media(media)),
            Part::Document(media) => Part::Document(self.media(media)),
            Part::Opaque { provider, payload } => {
                Part::Opaque { provider: provider.clone(), payload: self.shared(payload, Screen::json) }
            }
            Part::Result(result) => {
                let mut result = result.clone();
                for piece in &mut result.content {
                    if let Piece::Image(media) = piece {
                        *media = self.media(media);
                    }
                }
                Part::Result(result)
            }
            part => part.clone(),
        }
    }

    fn media(&self, media: &Media) -> Media {
        // What holds the thing itself is no text.
        let url =
            if media.url.starts_with("data:") { media.url.clone() } else { self.shared(&media.url, Screen::text) };
        let name = media.name.as_ref().map(|name| self.shared(name, Screen::text));
        Media { url, name, detail: media.detail.clone() }
    }

    fn shared(&self, text: &Text, of: for<'s, 't> fn(&'s Screen, &'t str) -> Cow<'t, str>) -> Text {
        match of(self, text) {
            Cow::Borrowed(_) => text.clone(),
            Cow::Owned(shown) => shown.into(),
        }
    }

    /// Returns an entry as it is written down where not even the log may hold what this hides.
    /// Secrets that were told before are known, and those that it tells are remembered.
    pub fn kept(&self, entry: Entry, secrets: &mut Secrets) -> Entry {
        if self.redact.is_nothing() || !self.redact.within.holds(&entry) {
            return entry;
        }
        let log = crate::Log::counted_by(crate::Tokenizer::Bytes4).through(self.clone());
        let mut log = log.knowing(std::mem::take(secrets));
        // What no log takes is refused where it is appended.
        let seq = log.append(entry.clone());
        *secrets = log.secrets().clone();
        let Some(counted) = seq.ok().and_then(|seq| log.get(seq)) else { return entry };
        let fields = |record: &Map<String, Value>| {
            let text = serde_json::to_string(record).unwrap_or_default();
            serde_json::from_str(&self.json(&text)).unwrap_or_default()
        };
        Entry {
            parts: counted.shown().clone(),
            author: counted.author().cloned(),
            redactions: Vec::new(),
            meta: if entry.meta.is_empty() { Map::new() } else { fields(&entry.meta) },
            extra: if entry.extra.is_empty() { Map::new() } else { fields(&entry.extra) },
            ..entry
        }
    }

    /// Returns whether any screen that has no patterns could hide something of an entry beside its words.
    pub(crate) fn could_hide(entry: &Entry) -> bool {
        let is_author = entry.author.as_ref().is_some_and(|author| CLOSED.hides(entry, author));
        is_author || CLOSED.hides_in(entry, &entry.extra) || CLOSED.beside(entry, &entry.parts).is_some()
    }

    /// Returns whether something stands in a short text of an entry that is not shown.
    pub(crate) fn hides(&self, entry: &Entry, text: &str) -> bool {
        !self.redact.is_nothing() && self.redact.within.holds(entry) && matches!(self.text(text), Cow::Owned(_))
    }

    /// Returns whether something stands in a record that is not shown.
    pub(crate) fn hides_in(&self, entry: &Entry, record: &Map<String, Value>) -> bool {
        let is_looked_at = !record.is_empty() && !self.redact.is_nothing() && self.redact.within.holds(entry);
        is_looked_at && {
            let text = serde_json::to_string(record).unwrap_or_default();
            matches!(self.json(&text), Cow::Owned(_))
        }
    }
}

fn placed(part: usize, piece: usize, found: Vec<Found>) -> impl Iterator<Item = Finding> {
    let at = move |Found { range, kind }: Found| Finding { part, piece, start: range.start, end: range.end, kind };
    found.into_iter().map(at)
}

/// The words of some parts, with the part and the piece that they are.
fn texts(parts: &[Part]) -> impl Iterator<Item = (usize, usize, &str)> {
    parts.iter().enumerate().flat_map(|(at, part)| {
        let pieces: &[Piece] = if let Part::Result(result) = part { &result.content } else { &[] };
        let results = pieces.iter().enumerate().filter_map(move |(nth, piece)| match piece {
            Piece::Text { text } => Some((at, nth, &**text)),
            Piece::Image(_) => None,
        });
        let own = match part {
            Part::Text { text } => Some((at, 0, &**text)),
            Part::Reasoning(reasoning) => Some((at, 0, &*reasoning.text)),
            Part::Call(call) => Some((at, 0, call.arguments.as_str())),
            _ => None,
        };
        own.into_iter().chain(results)
    })
}
