//! How an entry is written down: as JSON, with large texts kept apart.
//!
//! A large text is replaced by an empty one, and the place where it stood and its digest are kept beside the entry. So
//! the same file read twenty times is stored once, and no text can be taken for a reference.
//!
//! Nearly all entries are shorter than that, and nothing is found in them. Those are an array of two: the entry without
//! what most have in common, and who looked. What identifies an entry is made from all of it.

use crate::error::{Error, Kind};
use crate::store::{LARGE_BYTES_MIN, NewRow, Remains, Row};
use recto::digest::Digest;
use recto::entry::{Erased, Media, Part, Piece, Text};
use recto::log::{Counted, Kept, Log};
use recto::redact::{Findings, Screen, Secrets};
use recto::{Count, Entry, Seq, Tokenizer, Tokens};
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// How most entries begin. Whoever reads one without it takes it for granted.
const USUAL: &str = "{\"section\":\"messages\",\"lane\":\"talk\",";

/// An entry as it is stored, if something was found in it, or a text is kept apart. All were once stored so.
#[derive(Serialize, Deserialize)]
struct Body {
    entry: Entry,
    /// Where large texts stood: part, piece, digest.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    large: Vec<(usize, usize, Digest)>,
    /// What was found in it when it was written.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    found: Option<Findings>,
}

/// Writes an entry down, with what was worked out about it.
pub(crate) fn written(counted: &Counted) -> NewRow {
    let entry = counted.original().clone();
    let whole = text_of(&entry);
    let findings = counted.findings();
    let (body, large) = apart(&entry, whole.len(), findings);
    let erased = entry.erased;
    NewRow {
        seq: None,
        cost: counted.said_cost(),
        counts: counted.counts(),
        hash: erased.map_or_else(|| Digest::of(whole.as_bytes()), |erased| erased.hash),
        bytes: erased.map_or(whole.len() as u64, |erased| erased.bytes),
        body: body.unwrap_or_else(|| plain(&whole, findings)),
        large,
        is_erased: erased.is_some(),
        entry,
    }
}

/// Counts entries as they will stand behind a log that was told these secrets, and writes them down; returns what it was
/// told then.
pub(crate) fn counted(
    entries: Vec<Entry>,
    counter: &Arc<dyn Count>,
    screen: Screen,
    secrets: Secrets,
) -> Result<(Vec<NewRow>, Secrets), Error> {
    let mut log = Log::counted_by(Shared(counter.clone())).through(screen).knowing(secrets);
    let mut rows = Vec::with_capacity(entries.len());
    for entry in entries {
        let seq = log.append(entry)?;
        rows.push(written(log.get(seq).expect("it was just appended")));
    }
    Ok((rows, log.secrets().clone()))
}

/// What identifies an entry's body.
pub(crate) fn hash_of(entry: &Entry) -> Digest {
    entry.erased.map_or_else(|| Digest::of(text_of(entry).as_bytes()), |erased| erased.hash)
}

/// Reads an entry back.
pub(crate) fn entry(row: &Row) -> Result<Entry, Error> {
    Ok(parsed(row)?.0)
}

/// Reads an entry back, with what was found in it.
fn parsed(row: &Row) -> Result<(Entry, Option<Findings>), Error> {
    let damaged = |why: String| Kind::Corrupt { what: format!("entry {}: {why}", row.seq) };
    if row.body.starts_with('[') {
        let (entry, by) = serde_json::from_str(&row.body).map_err(|error| damaged(error.to_string()))?;
        return Ok((entry, Some(Findings { by, list: Vec::new() })));
    }
    let body: Body = serde_json::from_str(&row.body).map_err(|error| damaged(error.to_string()))?;
    let mut entry = body.entry;
    if body.large.is_empty() {
        return Ok((entry, body.found));
    }
    let mut parts = entry.parts.to_vec();
    for (part, piece, digest) in body.large {
        let text = row.large.iter().find(|(known, _)| *known == digest).map(|(_, text)| text);
        let text = text.ok_or_else(|| damaged(format!("its text {digest} is missing")))?;
        let place = parts.get_mut(part).and_then(|part| large_at(part, piece));
        *place.ok_or_else(|| damaged(format!("it has no part {part}")))? = text.clone();
    }
    entry.parts = parts.into();
    Ok((entry, body.found))
}

/// Reads an entry back, counted as it was, as it is shown through a screen.
pub(crate) fn read(row: &Row, screen: &Screen, counter: &dyn Count) -> Result<Arc<Counted>, Error> {
    let (entry, findings) = parsed(row)?;
    let counted = Counted::stored(row.seq, entry, Kept { counts: &row.counts, findings }, screen, counter);
    Ok(Arc::new(counted.map_err(|error| Kind::Corrupt { what: error.to_string() })?))
}

/// What identifies a row's body now; it must be the row's own hash. A body that can't be read is no entry's.
pub(crate) fn hash_now(row: &Row) -> Digest {
    let counted = read(row, &Screen::default(), &Tokenizer::Bytes4);
    counted.map_or(Digest::default(), |counted| hash_of(counted.original()))
}

/// What is left of a row when its words are erased.
pub(crate) fn remains(row: &Row, counter: &Arc<dyn Count>) -> Result<Remains, Error> {
    let left = entry(row)?.without_words(Erased { bytes: row.bytes, hash: row.hash });
    let (rows, _) = counted(vec![left], counter, Screen::default(), Secrets::default())?;
    let NewRow { body, counts, .. } = rows.into_iter().next().expect("one entry is one row");
    Ok(Remains { seq: row.seq, body, counts })
}

/// A counter that several logs share.
#[derive(Clone, Debug)]
pub(crate) struct Shared(pub(crate) Arc<dyn Count>);

impl Count for Shared {
    fn name(&self) -> &str {
        self.0.name()
    }

    fn count(&self, text: &str) -> Tokens {
        self.0.count(text)
    }
}

/// The body without large texts.
fn plain(whole: &str, findings: &Findings) -> String {
    if !findings.list.is_empty() {
        let found = serde_json::to_string(findings).expect("places are plain data");
        return format!("{{\"entry\":{whole},\"found\":{found}}}");
    }
    match whole.strip_prefix(USUAL) {
        Some(rest) => format!("[{{{rest},{}]", findings.by),
        None => format!("[{whole},{}]", findings.by),
    }
}

fn text_of(entry: &Entry) -> String {
    serde_json::to_string(entry).expect("an entry is plain data")
}

/// The body without its large texts, if there are any.
fn apart(entry: &Entry, bytes: usize, findings: &Findings) -> (Option<String>, Vec<(Digest, Text)>) {
    if bytes < LARGE_BYTES_MIN {
        return (None, Vec::new());
    }
    let mut parts = entry.parts.to_vec();
    let (mut places, mut large) = (Vec::new(), Vec::new());
    for (at, part) in parts.iter_mut().enumerate() {
        let pieces = if let Part::Result(result) = &*part { result.content.len() } else { 1 };
        for piece in 0..pieces {
            let Some(text) = large_at(part, piece).filter(|text| text.len() >= LARGE_BYTES_MIN) else { continue };
            let digest = Digest::of(text.as_bytes());
            places.push((at, piece, digest));
            if !large.iter().any(|(known, _)| *known == digest) {
                large.push((digest, text.clone()));
            }
            *text = "".into();
        }
    }
    if places.is_empty() {
        return (None, Vec::new());
    }
    let body =
        Body { entry: Entry { parts: parts.into(), ..entry.clone() }, large: places, found: Some(findings.clone()) };
    (Some(serde_json::to_string(&body).expect("an entry is plain data")), large)
}

/// The text of a part that may be kept apart.
fn large_at(part: &mut Part, piece: usize) -> Option<&mut Text> {
    match part {
        Part::Result(result) => match result.content.get_mut(piece)? {
            Piece::Text { text } => Some(text),
            Piece::Image(Media { url, .. }) => Some(url),
        },
        _ if piece != 0 => None,
        Part::Text { text } => Some(text),
        Part::Image(media) | Part::Audio(media) | Part::Document(media) => Some(&mut media.url),
        Part::Opaque { payload, .. } => Some(payload),
        _ => None,
    }
}

/// The place before one; `None` before the first.
pub(crate) fn before(seq: Seq) -> Option<Seq> {
    seq.0.checked_sub(1).map(Seq)
}

#[cfg(test)]
mod tests {
    use super::*;
    use recto::entry::{Lane, Section};

    /// An entry, stored and read again.
    fn kept(entry: Entry) -> (String, Entry, Option<Findings>) {
        let (rows, _) = counted(vec![entry], &counter(), Screen::default(), Secrets::default()).unwrap();
        let NewRow { cost, counts, hash, bytes, body, large, is_erased, entry, .. } = rows.into_iter().next().unwrap();
        let mut tally = recto::log::Tally::default();
        let strand = tally.add(Seq(0), &entry, cost);
        let row = Row { seq: Seq(0), strand, tally, counts, hash, bytes, body, large, is_erased };
        assert_eq!(hash_now(&row), row.hash, "what identifies it is found again");
        let (read, findings) = parsed(&row).unwrap();
        (row.body, read, findings)
    }

    fn counter() -> Arc<dyn Count> {
        Arc::new(Tokenizer::Bytes4)
    }

    #[test]
    fn what_most_entries_have_in_common_is_not_stored_and_read_all_the_same() {
        let usual = Entry { at: Some(recto::entry::Millis(7)), ..Entry::user("hello \"[{\"") };
        let (body, read, findings) = kept(usual.clone());
        assert!(body.starts_with("[{\"role\":\"user\"") && !body.contains("section"), "{body}");
        assert_eq!((read, findings.map(|it| it.list.len())), (usual, Some(0)));
        for odd in [
            Entry { lane: Lane::Trace, ..Entry::user("a") },
            Entry { section: Section::from("notes"), ..Entry::user("b") },
            Entry::assistant(""),
        ] {
            assert_eq!(kept(odd.clone()).1, odd);
        }
    }

    #[test]
    fn what_was_found_is_stored_with_its_places() {
        let (body, _, findings) = kept(Entry::user(concat!("write to anna.smith", "@acme.io, please")));
        assert!(body.starts_with("{\"entry\":"), "{body}");
        assert!(!findings.unwrap().list.is_empty());
    }

    #[test]
    fn bodies_of_before_are_still_read() {
        let entry = Entry::user("old");
        let body = format!("{{\"entry\":{},\"found\":{{\"by\":3}}}}", text_of(&entry));
        let row = Row {
            seq: Seq(0),
            strand: 0,
            tally: recto::log::Tally::default(),
            counts: String::new(),
            hash: hash_of(&entry),
            bytes: 0,
            body,
            large: Vec::new(),
            is_erased: false,
        };
        assert_eq!(parsed(&row).unwrap(), (entry, Some(Findings { by: 3, list: Vec::new() })));
    }
}
