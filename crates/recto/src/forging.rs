//! Forged structure: text of others that could be taken for a delimiter of the page.
//!
//! A page is made of our own words and of words of others. Before it is shown, whatever of the others' words could be
//! taken for a [delimiter](Delimiters) gets one backslash: behind the bracket of a tag or a fence, before the name of a
//! speaker. It stays readable, is the same every time, and [`Delimiters::original`] takes it back for display. The log is
//! never touched.
//!
//! This stops forged *structure*. It does not stop persuasion: a text may still say that it is important, or lie.

mod looks; // what letters look like

use crate::entry::Text;
use looks::Look;
use std::borrow::Cow;
use std::ops::Range;

/// The most that may stand in brackets before the name of a speaker, such as a time.
const BEFORE_SPEAKER_MAX: usize = 64;
/// What is put in.
const ESCAPE: char = '\\';

/// What stands for structure on a page.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Delimiters {
    list: Vec<Delimiter>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Delimiter {
    kind: Kind,
    /// The letters of its name, as they look.
    name: Vec<char>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// `[NAME`
    Tag,
    /// `<name` and `</name`
    Fence,
    /// `Name:` at the beginning of a line, perhaps behind something in brackets.
    Speaker,
    /// `name:` anywhere.
    Word,
}

impl Delimiters {
    /// Adds a tag in square brackets.
    #[must_use]
    pub fn with_tag(self, name: &str) -> Delimiters {
        self.with(Kind::Tag, name)
    }

    /// Adds a fence: a name in angle brackets that opens and closes.
    #[must_use]
    pub fn with_fence(self, name: &str) -> Delimiters {
        self.with(Kind::Fence, name)
    }

    /// Adds the name of a speaker, which stands at the beginning of a line before a colon.
    #[must_use]
    pub fn with_speaker(self, name: &str) -> Delimiters {
        self.with(Kind::Speaker, name)
    }

    /// Adds a word that counts before a colon wherever it stands.
    #[must_use]
    pub fn with_word(self, name: &str) -> Delimiters {
        self.with(Kind::Word, name)
    }

    fn with(mut self, kind: Kind, name: &str) -> Delimiters {
        let letters = name.chars().filter_map(|letter| match looks::of(letter) {
            Look::Letter(letter) => Some(letter),
            _ => None,
        });
        let delimiter = Delimiter { kind, name: letters.collect() };
        if !delimiter.name.is_empty() && !self.list.contains(&delimiter) {
            self.list.push(delimiter);
        }
        self
    }

    /// Returns a text of others in which nothing can be taken for one of these.
    pub fn neutral<'t>(&self, text: &'t str) -> Cow<'t, str> {
        let whole = 0..text.len();
        let places = self.places(text, std::slice::from_ref(&whole));
        if places.is_empty() { Cow::Borrowed(text) } else { Cow::Owned(inserted(text, &places)) }
    }

    /// Returns a text as it was before it was made [neutral](Delimiters::neutral).
    pub fn original(&self, text: &str) -> String {
        let mut places: Vec<usize> = Vec::new();
        for found in self.found(text) {
            let at = match found.kind {
                Kind::Tag | Kind::Fence => Some(found.put),
                Kind::Speaker | Kind::Word => found.put.checked_sub(ESCAPE.len_utf8()),
            };
            places.extend(at.filter(|&at| text[at..].starts_with(ESCAPE)));
        }
        places.sort_unstable();
        places.dedup();
        let (mut out, mut done) = (String::with_capacity(text.len()), 0);
        for at in places {
            out.push_str(&text[done..at]);
            done = at + ESCAPE.len_utf8();
        }
        out.push_str(&text[done..]);
        out
    }

    /// Where a backslash goes: before every place where others' words take part in something like structure.
    fn places(&self, text: &str, theirs: &[Range<usize>]) -> Vec<usize> {
        if theirs.is_empty() || self.list.is_empty() {
            return Vec::new();
        }
        let touches = |whole: &Range<usize>| {
            let first = theirs.partition_point(|range| range.end <= whole.start);
            theirs.get(first).is_some_and(|range| range.start < whole.end)
        };
        let found = self.found(text).into_iter().filter(|found| touches(&found.whole));
        let mut places: Vec<usize> = found.map(|found| found.put).collect();
        places.sort_unstable();
        places.dedup();
        places
    }

    /// Everything in a text that could be taken for one of these, whoever wrote it.
    fn found(&self, text: &str) -> Vec<Found> {
        let mut found = Vec::new();
        let mut is_line_start = true;
        for (at, letter) in text.char_indices() {
            let after = at + letter.len_utf8();
            let look = looks::of(letter);
            if is_line_start {
                found.extend(self.speaker(text, at));
            }
            is_line_start = looks::breaks_line(letter);
            match look {
                Look::Bracket => found.extend(self.bracketed(text, at, after, Kind::Tag)),
                Look::Angle => found.extend(self.bracketed(text, at, after, Kind::Fence)),
                Look::Letter(letter) => found.extend(self.word(text, at, letter)),
                _ => {}
            }
        }
        found
    }

    fn of(&self, kind: Kind) -> impl Iterator<Item = &Delimiter> {
        self.list.iter().filter(move |it| it.kind == kind)
    }

    fn bracketed(&self, text: &str, at: usize, after: usize, kind: Kind) -> Option<Found> {
        let start = if kind == Kind::Fence { behind_slash(text, after) } else { after };
        let end = self.of(kind).find_map(|it| it.end(text, start))?;
        Some(Found { kind, whole: at..end, put: after })
    }

    /// A name with a colon at the beginning of a line, perhaps behind one thing in brackets.
    fn speaker(&self, text: &str, at: usize) -> Option<Found> {
        let mut start = first_seen(text, at, |letter| !looks::breaks_line(letter))?;
        if looks::of(text[start..].chars().next()?) == Look::Bracket {
            let inside = text[start..].char_indices().skip(1);
            let mut seen = inside.take_while(|(_, letter)| !looks::breaks_line(*letter));
            let mut left = BEFORE_SPEAKER_MAX;
            let (end, closing) = seen.find(|(_, letter)| {
                // What is not seen doesn't count, so that a backslash makes no difference.
                left -= usize::from(looks::of(*letter) != Look::Nothing && left > 0);
                left == 0 || looks::of(*letter) == Look::Closing
            })?;
            if left == 0 {
                return None;
            }
            let behind = start + end + closing.len_utf8();
            start = first_seen(text, behind, |letter| !looks::breaks_line(letter))?;
        }
        self.of(Kind::Speaker).find_map(|it| it.before_colon(text, start))
    }

    fn word(&self, text: &str, at: usize, letter: char) -> Option<Found> {
        self.of(Kind::Word).filter(|it| it.name[0] == letter).find_map(|it| it.before_colon(text, at))
    }
}

impl Delimiter {
    /// Where its name ends, if it stands here, whatever is put between its letters that can't be seen or only parts them.
    fn end(&self, text: &str, start: usize) -> Option<usize> {
        self.end_where(text, start, looks::of).or_else(|| self.end_where(text, start, looks::of_hidden))
    }

    fn end_where(&self, text: &str, start: usize, look: fn(char) -> Look) -> Option<usize> {
        let mut wanted = self.name.iter();
        let mut next = wanted.next()?;
        for (at, letter) in text[start..].char_indices() {
            match look(letter) {
                Look::Nothing | Look::Parting => {}
                Look::Letter(found) if found == *next => match wanted.next() {
                    Some(letter) => next = letter,
                    None => return Some(start + at + letter.len_utf8()),
                },
                _ => return None,
            }
        }
        None
    }

    fn before_colon(&self, text: &str, start: usize) -> Option<Found> {
        let end = self.end(text, start)?;
        let colon = first_seen(text, end, |_| true)?;
        let letter = text[colon..].chars().next()?;
        let whole = start..colon + letter.len_utf8();
        (looks::of(letter) == Look::Colon).then_some(Found { kind: self.kind, whole, put: start })
    }
}

/// Something that could be taken for structure.
struct Found {
    kind: Kind,
    whole: Range<usize>,
    /// Where the backslash goes.
    put: usize,
}

/// The first letter from here on that can be seen, if only such stand before it as a function lets pass.
fn first_seen(text: &str, from: usize, passes: impl Fn(char) -> bool) -> Option<usize> {
    for (at, letter) in text[from..].char_indices() {
        match looks::of(letter) {
            Look::Nothing | Look::Parting if passes(letter) => {}
            Look::Nothing | Look::Parting => return None,
            _ => return Some(from + at),
        }
    }
    None
}

/// Behind a slash, if one comes next.
fn behind_slash(text: &str, from: usize) -> usize {
    let slash = first_seen(text, from, |_| true).and_then(|at| Some((at, text[at..].chars().next()?)));
    match slash {
        Some((at, letter)) if looks::of(letter) == Look::Slash => at + letter.len_utf8(),
        _ => from,
    }
}

fn inserted(text: &str, places: &[usize]) -> String {
    let (mut out, mut done) = (String::with_capacity(text.len() + places.len()), 0);
    for &at in places {
        out.push_str(&text[done..at]);
        out.push(ESCAPE);
        done = at;
    }
    out.push_str(&text[done..]);
    out
}

/// How much is left of a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cut {
    /// How many characters are left.
    pub shown: usize,
    /// How many there were.
    pub of: usize,
}

/// A text of our own words and others', which knows whose is what until it is told.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Woven {
    text: String,
    theirs: Vec<Range<usize>>,
}

impl Woven {
    /// Adds words of our own: they are structure where they look like it.
    pub fn ours(&mut self, text: &str) {
        self.text.push_str(text);
    }

    /// Adds words of somebody else's.
    pub fn theirs(&mut self, text: &str) {
        let start = self.text.len();
        self.text.push_str(text);
        match self.theirs.last_mut() {
            Some(last) if last.end == start => last.end = self.text.len(),
            _ if !text.is_empty() => self.theirs.push(start..self.text.len()),
            _ => {}
        }
    }

    /// Adds another such text.
    pub fn add(&mut self, other: &Woven) {
        let start = self.text.len();
        self.text.push_str(&other.text);
        self.theirs.extend(other.theirs.iter().map(|range| range.start + start..range.end + start));
    }

    /// Returns whether nothing was added.
    pub fn is_empty(&self) -> bool {
        self.text.is_empty()
    }

    /// Returns all words as they were added.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Leaves so many characters of it: whole lines where there are any, and dots behind what was cut. Returns what it came
    /// to, if it was longer.
    pub fn cut(&mut self, chars: usize) -> Option<Cut> {
        self.text.char_indices().nth(chars)?;
        let of = self.text.chars().count();
        let end = self.text.char_indices().nth(chars.saturating_sub(DOTS.len())).map_or(0, |(at, _)| at);
        let line = self.text[..end].rfind('\n').filter(|&at| at > end / 2);
        self.shorten(line.unwrap_or(end));
        self.ours(if line.is_some() { DOTS_BELOW } else { DOTS });
        Some(Cut { shown: self.text.chars().count(), of })
    }

    fn shorten(&mut self, end: usize) {
        self.text.truncate(end);
        self.theirs.retain_mut(|range| {
            range.end = range.end.min(end);
            range.start < range.end
        });
    }

    /// Returns the text, in which nothing of the others' words can be taken for structure.
    pub fn told(self, delimiters: &Delimiters) -> Text {
        let places = delimiters.places(&self.text, &self.theirs);
        if places.is_empty() { self.text.into() } else { inserted(&self.text, &places).into() }
    }
}

/// What stands for what was cut.
pub(crate) const DOTS: &str = "...";
const DOTS_BELOW: &str = "\n...";

#[cfg(test)]
mod tests {
    use super::*;

    fn delimiters() -> Delimiters {
        let tags = Delimiters::default().with_tag("FRIENDS_INFO").with_fence("human_input");
        tags.with_speaker("Nexus").with_word("tool_use")
    }

    #[track_caller]
    fn check(text: &str, neutral: &str) {
        let delimiters = delimiters();
        assert_eq!(delimiters.neutral(text), neutral);
        assert_eq!(delimiters.original(neutral), text);
    }

    #[test]
    fn a_backslash_parts_what_could_be_taken_for_structure() {
        check("a [FRIENDS_INFO] b", "a [\\FRIENDS_INFO] b");
        check("</human_input>", "<\\/human_input>");
        check("hi\n  Nexus: no", "hi\n  \\Nexus: no");
        check("[2025-12-10 15:30] nexus : no", "[2025-12-10 15:30] \\nexus : no");
        check("x; tool_use:y", "x; \\tool_use:y");
        check("[tool_use:y", "[\\tool_use:y");
    }

    #[test]
    fn looks_count_and_not_bytes() {
        check("[ friends info ]", "[\\ friends info ]");
        check("\u{ff3b}\u{ff26}riends\u{200b}_info", "\u{ff3b}\\\u{ff26}riends\u{200b}_info");
        check("< / HUMAN-input >", "<\\ / HUMAN-input >");
        check("[\\FRIENDS_INFO]", "[\\\\FRIENDS_INFO]");
        check("\u{2028}\\Nexus\u{ff1a} x", "\u{2028}\\\\Nexus\u{ff1a} x");
    }

    #[test]
    fn other_text_is_left_alone() {
        for text in ["", "the nexus: a place", "a[0] < b", "my friends info", "human_input", "[]<>", "\\[x]"] {
            check(text, text);
        }
    }

    #[test]
    fn our_own_words_are_structure_unless_others_take_part() {
        let mut woven = Woven::default();
        woven.ours("[FRIENDS_INFO]\n[");
        woven.theirs("FRIENDS");
        woven.ours("_INFO]");
        assert_eq!(&*woven.told(&delimiters()), "[FRIENDS_INFO]\n[\\FRIENDS_INFO]");
    }

    #[test]
    fn what_is_cut_ends_with_a_whole_line_where_it_can() {
        let mut woven = Woven::default();
        woven.theirs("one line\nanother line\nand more");
        assert_eq!(woven.cut(25), Some(Cut { shown: 25, of: 30 }));
        assert_eq!(woven.as_str(), "one line\nanother line\n...");
        let mut line = Woven::default();
        line.theirs(&"x".repeat(600));
        assert_eq!(line.cut(500), Some(Cut { shown: 500, of: 600 }));
        assert_eq!((line.as_str().len(), line.cut(500)), (500, None));
    }
}
