//! The shelf: what may come back, cut into passages, and by which terms each is found.
//!
//! Talk and work are kept apart. Talk is what people and models say to each other, found by what stands around it; work
//! is results, and steps that call for them, found by its own words.

use super::dates::{self, Day};
use super::{Place, terms};
use crate::entry::{Entry, Millis, Part, Piece, Role};
use crate::log::Counted;
use crate::transcript::time;
use std::collections::HashMap;

/// The longest passage of talk, in bytes; longer words are cut where sentences end.
const TALK_BYTES_MAX: usize = 1_200;
/// The longest passage of work, in bytes; cut where lines end.
const WORK_BYTES_MAX: usize = 600;
/// How much of one part is read, in bytes.
const PART_BYTES_MAX: usize = 256 * 1024;
/// After a pause of this length another session begins.
const PAUSE_MS: i64 = 3_600_000;

/// Entries that may come back, in the order of the log.
#[derive(Debug, Default)]
pub struct Shelf<'a> {
    pub(super) talk: Pile<'a>,
    pub(super) work: Pile<'a>,
    /// Who speaks, each once, in lower case.
    pub(super) speakers: Vec<String>,
    /// The words of their names; roles are no names.
    pub(super) names: Vec<(String, usize)>,
    session: Session,
    /// What the tools of open calls are called.
    tools: HashMap<&'a str, &'a str>,
    /// Whether the next entry does not follow the one before.
    is_after_gap: bool,
}

/// Passages of one kind, and where each term stands in them.
#[derive(Debug, Default)]
pub(super) struct Pile<'a> {
    pub(super) passages: Vec<Passage<'a>>,
    /// The passages that hold a term, and how often.
    pub(super) holding: HashMap<String, Vec<(usize, u32)>>,
    /// How many terms all passages have together.
    pub(super) terms: u64,
}

/// What can come back by itself.
#[derive(Debug)]
pub(super) struct Passage<'a> {
    pub(super) entry: &'a Counted,
    pub(super) place: Place,
    pub(super) text: &'a str,
    /// The tool that it is about.
    pub(super) tool: Option<&'a str>,
    pub(super) terms: u32,
    pub(super) speaker: usize,
    pub(super) session: usize,
    pub(super) day: Option<Day>,
    /// Whether a session begins with it.
    pub(super) is_first: bool,
    pub(super) is_question: bool,
    pub(super) has_proper: bool,
    pub(super) has_time: bool,
}

#[derive(Debug, Default)]
struct Session {
    number: usize,
    /// What the file calls it.
    mark: Option<String>,
    last: Option<Millis>,
    day: Option<Day>,
    is_open: bool,
}

/// Whether an entry is talk or work, and if anything at all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Talk,
    Work,
}

fn kind(entry: &Entry) -> Option<Kind> {
    if !entry.section.is_messages() || entry.erased.is_some() {
        return None;
    }
    match entry.role {
        Role::System => None,
        Role::Tool => Some(Kind::Work),
        Role::User if entry.kind.is_some() => Some(Kind::Work),
        Role::Assistant if entry.calls().next().is_some() => Some(Kind::Work),
        Role::User | Role::Assistant => Some(Kind::Talk),
    }
}

/// Returns the terms that an entry is found by, each once, in order, and who speaks; none where it can't come back.
pub fn terms_of(entry: &Counted) -> Vec<String> {
    let mut shelf = Shelf::default();
    shelf.add(entry);
    let speakers: Vec<String> = match shelf.talk.passages.is_empty() {
        true => Vec::new(),
        false => shelf.speakers.iter().flat_map(|name| terms::words(name)).map(|(_, word)| spoken_by(word)).collect(),
    };
    let mut terms: Vec<String> = shelf.talk.holding.into_keys().chain(shelf.work.holding.into_keys()).collect();
    terms.extend(speakers);
    terms.sort_unstable();
    terms.dedup();
    terms
}

/// Returns what stands in an index for a word of a speaker's name; no word of a text is like it.
pub(super) fn spoken_by(word: &str) -> String {
    format!("by:{word}")
}

impl<'a> Shelf<'a> {
    /// Adds the next entry of the log.
    pub fn add(&mut self, entry: &'a Counted) {
        let original = entry.original();
        let Some(kind) = kind(original) else { return };
        let begins = self.session.goes_on_with(original, self.is_after_gap);
        let (speaker, before) = (self.speaker(entry), self.talk.passages.len());
        for (part, it) in entry.shown().iter().enumerate() {
            match it {
                Part::Text { text } => self.text(entry, kind, (part, 0), text, None, speaker),
                Part::Call(call) => {
                    self.tools.insert(call.id.as_str(), &call.name);
                    self.text(entry, Kind::Work, (part, 0), call.arguments.as_str(), Some(&call.name), speaker);
                }
                Part::Result(result) => {
                    let tool = self.tools.get(result.call.as_str()).copied();
                    for (piece, it) in result.content.iter().enumerate() {
                        if let Piece::Text { text } = it {
                            self.text(entry, kind, (part, piece), text, tool, speaker);
                        }
                    }
                }
                _ => {}
            }
        }
        if let Some(first) = self.talk.passages.get_mut(before) {
            first.is_first = begins;
        }
        self.is_after_gap = false;
    }

    /// Says that entries are left out before the next one.
    pub fn skip(&mut self) {
        self.is_after_gap = true;
    }

    fn speaker(&mut self, entry: &Counted) -> usize {
        let author = entry.author();
        let name = author.map_or_else(|| entry.role().to_string(), |author| author.to_lowercase());
        if let Some(known) = self.speakers.iter().position(|it| *it == name) {
            return known;
        }
        if author.is_some() {
            let words = terms::words(&name).map(|(_, word)| (word.to_string(), self.speakers.len()));
            self.names.extend(words);
        }
        self.speakers.push(name);
        self.speakers.len() - 1
    }

    fn text(
        &mut self,
        entry: &'a Counted,
        kind: Kind,
        (part, piece): (usize, usize),
        text: &'a str,
        tool: Option<&'a str>,
        speaker: usize,
    ) {
        let names = &self.names;
        let (pile, most) = match kind {
            Kind::Talk => (&mut self.talk, TALK_BYTES_MAX),
            Kind::Work => (&mut self.work, WORK_BYTES_MAX),
        };
        for (start, end) in cut(&text[..text.floor_char_boundary(PART_BYTES_MAX)], most) {
            let place = Place { seq: entry.seq, part, piece, start, end };
            let text = &text[start..end];
            let is_talk = kind == Kind::Talk;
            pile.add(Passage {
                entry,
                place,
                text,
                tool,
                terms: 0,
                speaker,
                session: self.session.number,
                day: self.session.day,
                is_first: false,
                is_question: is_talk && text.contains(['?', '？']),
                has_proper: is_talk && has_proper(text, names),
                has_time: is_talk && dates::has_time(text),
            });
        }
    }
}

impl<'a> Pile<'a> {
    fn add(&mut self, mut passage: Passage<'a>) {
        let at = self.passages.len();
        let mut count = 0;
        terms::each(passage.text, |term| {
            count += 1;
            let places = match self.holding.get_mut(term) {
                Some(places) => places,
                None => self.holding.entry(term.to_string()).or_default(),
            };
            match places.last_mut() {
                Some((last, times)) if *last == at => *times += 1,
                _ => places.push((at, 1)),
            }
        });
        passage.terms = count;
        self.terms += u64::from(count);
        self.passages.push(passage);
    }
}

impl Session {
    /// Goes on to an entry; whether a session begins with it.
    fn goes_on_with(&mut self, entry: &Entry, is_after_gap: bool) -> bool {
        let mark = entry.extra.get("session").map(ToString::to_string);
        let told = entry.extra.get("timestamp").and_then(|it| it.as_str());
        let spelled = told.and_then(|told| time::parsed(told).map(Day::of).or_else(|| Day::named(told)));
        let at = entry.at.or(spelled.map(|day| Millis(day.number() * time::DAY)));
        let is_marked = mark.is_some() && mark != self.mark;
        let has_paused = at.zip(self.last).is_some_and(|(at, last)| at.0.saturating_sub(last.0) >= PAUSE_MS);
        let begins = !self.is_open || is_marked || has_paused;
        if begins || is_after_gap {
            self.number += usize::from(self.is_open);
        }
        self.is_open = true;
        self.mark = mark.or(self.mark.take());
        self.last = at.or(self.last);
        // A session that says nothing of its day is not of the one before, nor is what stands behind a gap.
        let carried = self.day.filter(|_| !is_marked && !is_after_gap);
        self.day = spelled.or(entry.at.map(Day::of)).or(carried);
        is_marked || begins && !is_after_gap
    }
}

/// Whether a text has a capitalised word inside a sentence that is no speaker's name.
fn has_proper(text: &str, names: &[(String, usize)]) -> bool {
    terms::words(text).any(|(at, word)| {
        let before = text[..at].trim_end_matches([' ', '"', '\'', '*', '(']);
        let is_inside = before.ends_with(|c: char| !matches!(c, '.' | '!' | '?' | ':' | '\n'));
        let is_name = || names.iter().any(|(name, _)| *name == word.to_lowercase());
        is_inside && word != "I" && word.starts_with(char::is_uppercase) && !is_name()
    })
}

/// Cuts a text into stretches of at most so many bytes: where lines end, else sentences, else words.
fn cut(text: &str, most: usize) -> Vec<(usize, usize)> {
    let (mut stretches, mut start) = (Vec::new(), 0);
    while start < text.len() {
        let rest = &text[start..];
        let end = if rest.len() <= most { rest.len() } else { border(&rest[..rest.floor_char_boundary(most)]) };
        if !text[start..start + end].trim().is_empty() {
            stretches.push((start, start + end));
        }
        start += end;
    }
    stretches
}

/// The best place to cut in the second half of a text.
fn border(text: &str) -> usize {
    let half = text.ceil_char_boundary(text.len() / 2);
    let after = |found: Option<(usize, &str)>| found.map(|(at, what)| half + at + what.len());
    let ends = [&["\n"][..], &[". ", "! ", "? ", "。", "！", "？"], &[" "]];
    let found = ends.iter().find_map(|ends| {
        let places = ends.iter().filter_map(|end| Some((text[half..].rfind(end)?, *end)));
        after(places.max_by_key(|(at, _)| *at))
    });
    found.unwrap_or(text.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_cut_where_lines_or_sentences_end_and_nothing_is_lost() {
        let text = "One line.\nAnother line. It goes on and on.\nA third one, without an end but with 漢字漢字漢字";
        for most in 12..80 {
            let stretches = cut(text, most);
            assert_eq!(stretches.iter().map(|(start, end)| &text[*start..*end]).collect::<String>(), text, "{most}");
            assert!(stretches.iter().all(|(start, end)| end - start <= most));
        }
        assert_eq!(cut(text, 50)[0], (0, "One line.\nAnother line. It goes on and on.\n".len()));
    }

    #[test]
    fn names_inside_sentences_are_seen() {
        let names = [("ann".to_string(), 0)];
        assert!(has_proper("We went to Paris.", &names));
        assert!(!has_proper("Paris? No. I said Ann should!", &names));
    }
}
