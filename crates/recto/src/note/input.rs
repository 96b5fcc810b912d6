//! What a summarizer is told: instructions, and the words that the summary is of, bounded and without secrets.

use super::rules::{Rule, rules};
use super::{Subject, Want, one_line, page, words_of};
use crate::block::Words;
use crate::digest::{Digest, Hasher};
use crate::edit::{Handle, PartAt};
use crate::entry::{Part, Role, Seq, Span, Text};
use crate::item::result_text;
use crate::log::Counted;
use crate::request::Request;
use crate::screened::Screened;
use std::borrow::Cow;
use std::fmt::Write as _;

/// How much of one part is given, in characters: its beginning and its end.
const PART_CHARS_MAX: usize = 100_000;
/// How much of a range is given, in characters.
const RANGE_CHARS_MAX: usize = 240_000;
/// How much is given of one entry of a range, in characters: the most that lets the whole range fit.
const ENTRY_CHARS: [usize; 5] = [8_000, 2_000, 600, 200, 80];

/// Takes secrets out of a text.
pub type Redact<'r> = dyn for<'t> Fn(&'t str) -> Cow<'t, str> + 'r;

/// What a summarizer is told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Input {
    /// What it is to do: the prompt.
    pub instructions: Text,
    /// The words that the summary is of, and what it must know of them.
    pub text: Text,
    /// How many characters the original has; a summary with more is none.
    pub(super) original_chars: usize,
    /// What users said in it, each on one line, to tell whether a quote is one.
    pub(super) said: Vec<(Seq, String)>,
    /// The rules that users have stated in it.
    pub(super) rules: Vec<Rule>,
}

/// A note that stands on the page already, and that a new one goes on from.
#[derive(Clone, Debug)]
pub(crate) struct Earlier {
    pub(crate) span: Span,
    /// What identifies the words that it is of.
    pub(crate) words: Digest,
    pub(crate) text: Text,
}

/// What a note on a range is made of: the note before, and what was said since.
#[derive(Clone, Debug)]
pub(crate) struct Material<'a> {
    pub(crate) earlier: Option<Earlier>,
    pub(crate) entries: Vec<&'a Counted>,
}

impl<'a> Material<'a> {
    /// The range from the beginning to the last entry before a place, and what identifies its words; the same whichever
    /// notes were made on the way.
    pub(crate) fn upto(&self, end: Seq) -> Option<(Span, Digest)> {
        self.upto_each([end]).next().flatten()
    }

    /// The same for several places, in their order.
    pub(crate) fn upto_each(
        &self,
        ends: impl IntoIterator<Item = Seq>,
    ) -> impl Iterator<Item = Option<(Span, Digest)>> {
        let (first, mut words) = match &self.earlier {
            Some(earlier) => (Some(earlier.span.first), earlier.words),
            None => (self.entries.first().map(|entry| entry.seq), Digest::default()),
        };
        let (mut rest, mut last) = (self.entries.iter().peekable(), None);
        ends.into_iter().map(move |end| {
            while let Some(entry) = rest.next_if(|entry| entry.seq < end) {
                let mut hasher = Hasher::new();
                hasher.digest(words);
                hasher.number(entry.seq.0);
                hasher.digest(entry.digest);
                (words, last) = (hasher.finish(), Some(entry.seq));
            }
            Some((Span { first: first?, last: last? }, words))
        })
    }

    fn before(&self, end: Seq) -> &[&'a Counted] {
        &self.entries[..self.entries.partition_point(|entry| entry.seq < end)]
    }
}

impl Want {
    /// Returns what a summarizer is told, under a prompt: the words that the summary is of, as a reader may see them and
    /// with secrets taken out. `None` where these words are not what the want was for any more.
    pub fn input(&self, request: &Request<'_>, prompt: &str, redact: &Redact<'_>) -> Option<Input> {
        let screened = Screened::of(request).ok()?;
        let request = &screened.request(request);
        match self.subject {
            Subject::Part(at) => self.of_one(at, request, prompt, redact),
            Subject::Human(span) => self.of_person(span, request, prompt, redact),
            Subject::Range(span) => {
                let material = crate::reduce::material(request)?;
                let (found, words) = material.upto(span.last.next())?;
                let is_same =
                    found == span && Want::of_range(span, words, self.prompt.clone(), self.chars).key == self.key;
                is_same.then(|| self.of_many(&material, span, prompt, redact))
            }
        }
    }

    fn of_person(&self, span: Span, request: &Request<'_>, prompt: &str, redact: &Redact<'_>) -> Option<Input> {
        let words = Words::before(request, span.last.next())?;
        if words.span != span || Want::of_human(span, words.digest, self.chars).key != self.key {
            return None;
        }
        let told = words.entries.iter().map(|entry| {
            let texts: Vec<String> = entry.shown().iter().filter_map(|part| told(part, redact)).collect();
            (Handle::entry(entry.seq), entry.role(), texts)
        });
        let told: Vec<(Handle, Role, Vec<String>)> = told.collect();
        let original_chars = told.iter().flat_map(|(_, _, texts)| texts).map(|text| text.chars().count()).sum();
        let text = format!("targetLength: {}\n{}", self.chars, bounded(&told)).into();
        let (said, rules) = (Vec::new(), Vec::new());
        Some(Input { instructions: prompt.into(), text, original_chars, said, rules })
    }

    fn of_one(&self, at: PartAt, request: &Request<'_>, prompt: &str, redact: &Redact<'_>) -> Option<Input> {
        let entry = request.log.get(at.seq)?;
        let words = words_of(entry)?;
        if Want::of_part(at, &words, self.prompt.clone(), self.chars).key != self.key {
            return None;
        }
        let kind = entry.original().kind_held().map_or(entry.role().to_string(), |kind| kind.to_string());
        let original_chars = words.chars().count();
        let text = format!(
            "originalLength: {original_chars}\ntargetLength: {}\nmessageType: {kind}\nturnAdded: {}\noriginalContent:\n{}",
            self.chars,
            request.reader.turn_at_age(at.seq, 0).0,
            ends(&redact(&words), PART_CHARS_MAX),
        );
        Some(Input {
            instructions: prompt.into(),
            text: text.into(),
            original_chars,
            said: Vec::new(),
            rules: Vec::new(),
        })
    }

    fn of_many(&self, material: &Material<'_>, span: Span, prompt: &str, redact: &Redact<'_>) -> Input {
        let entries = material.before(span.last.next());
        let told: Vec<(Handle, Role, Vec<String>)> = entries
            .iter()
            .map(|entry| {
                (
                    Handle::entry(entry.seq),
                    entry.role(),
                    entry.shown().iter().filter_map(|it| told(it, redact)).collect(),
                )
            })
            .collect();
        let users = entries.iter().filter(|entry| entry.original().is_user_words());
        let mut said: Vec<(Seq, String)> = Vec::new();
        let mut stated: Vec<Rule> = material.earlier.iter().flat_map(|earlier| page::rules(&earlier.text)).collect();
        said.extend(stated.iter().filter_map(|rule| Some((rule.at?, rule.text.clone()))));
        for entry in users {
            let texts =
                entry.shown().iter().filter_map(|part| if let Part::Text { text } = part { Some(text) } else { None });
            for text in texts {
                let text = redact(text);
                stated.extend(rules(entry.seq, &text));
                said.push((entry.seq, one_line(&text)));
            }
        }
        let earlier_chars = material.earlier.as_ref().map_or(0, |earlier| earlier.text.chars().count());
        let new_chars: usize = told.iter().flat_map(|(_, _, texts)| texts).map(|text| text.chars().count()).sum();
        let original_chars = earlier_chars + new_chars;
        let [first, last] = [span.first, span.last].map(Handle::entry);
        let mut text = format!("range: {first} to {last}\ntargetLength: {}\n", self.chars);
        if let Some(earlier) = &material.earlier {
            let _ = writeln!(text, "\nThe earlier note, in place of what it is on:\n{}", redact(&earlier.text));
        }
        text.push_str(&bounded(&told));
        Input { instructions: prompt.into(), text: text.into(), original_chars, said, rules: stated }
    }
}

/// A part of an entry as a summarizer reads it; thoughts and what only a provider reads are left out.
fn told(part: &Part, redact: &Redact<'_>) -> Option<String> {
    match part {
        Part::Text { text } => Some(redact(text).into_owned()).filter(|text| !text.is_empty()),
        Part::Call(call) => Some(format!("calls {}({})", call.name, redact(call.arguments.as_str()))),
        Part::Result(result) => {
            let error = if result.is_error { "error: " } else { "" };
            Some(format!("{error}{}", redact(&result_text(result))))
        }
        Part::Image(_) => Some("[image]".into()),
        Part::Audio(_) => Some("[audio]".into()),
        Part::Document(_) => Some("[document]".into()),
        Part::File { .. } => Some("[file]".into()),
        Part::Reasoning(_) | Part::Opaque { .. } => None,
    }
}

/// All entries, each shortened as far as it takes for the whole to be bounded; if nothing helps, those in the middle go.
fn bounded(told: &[(Handle, Role, Vec<String>)]) -> String {
    let written = |chars: usize| {
        let mut out = String::new();
        for (handle, role, texts) in told.iter().filter(|(_, _, texts)| !texts.is_empty()) {
            let _ = writeln!(out, "\n{handle} {role}:");
            texts.iter().for_each(|text| out.extend([&*ends(text, chars), "\n"]));
        }
        out
    };
    let fits = |text: &String| text.chars().nth(RANGE_CHARS_MAX).is_none();
    let shortest = ENTRY_CHARS[ENTRY_CHARS.len() - 1];
    let found = ENTRY_CHARS.into_iter().map(written).find(fits);
    found.unwrap_or_else(|| ends(&written(shortest), RANGE_CHARS_MAX).into_owned())
}

/// Both ends of a text that is longer than this, with a word on what is missing between them.
fn ends(text: &str, chars: usize) -> Cow<'_, str> {
    if text.char_indices().nth(chars).is_none() {
        return Cow::Borrowed(text);
    }
    let of = text.chars().count();
    let place = |nth: usize| text.char_indices().nth(nth).map_or(text.len(), |(at, _)| at);
    let tail = chars / 3;
    let (first, last) = (&text[..place(chars - tail)], &text[place(of - tail)..]);
    Cow::Owned(format!("{first}\n[… {} characters left out …]\n{last}", of - chars))
}
