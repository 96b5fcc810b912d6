//! What is taken from a summarizer's answer, and what is refused.

use super::input::Input;
use super::page::SECTIONS;
use super::rules::{RULE_CHARS_MAX, Rule};
use super::{Subject, Want, cut, one_line, page};
use crate::entry::{Span, Text};
use serde_json::{Map, Value};
use std::collections::HashSet;
use std::fmt;

/// How long an answer may be, in bytes.
const ANSWER_BYTES_MAX: usize = 1024 * 1024;
/// At how many places of an answer a JSON object is looked for.
const OBJECTS_MAX: usize = 50;
/// How many lines one section of a note may have.
const LINES_MAX: usize = 40;
/// How long one line may be, in characters.
const LINE_CHARS_MAX: usize = 500;
/// How many rules a note holds: these many of the first, and these many of the newest.
const RULES_FIRST_MAX: usize = 20;
const RULES_NEWEST_MAX: usize = 40;
/// The least that rules may take of a note, in characters; else they may take as much as the rest.
const RULES_CHARS_MIN: usize = 2_000;
/// How much longer than wanted a summary may be.
const SLACK: usize = 2;
/// How much of an answer is told when it is refused, in characters.
const TOLD_CHARS: usize = 80;
/// Longer texts say something, however they begin.
const EXCUSE_CHARS_MAX: usize = 200;

/// Texts that say nothing.
const NOTHING: &[&str] = &["n/a", "na", "none", "null", "nil", "undefined", "no summary", "summary", "empty", "todo"];
/// How a text begins that tells why there is no summary.
const EXCUSES: &[&str] =
    &["i cannot", "i can't", "i can not", "i'm sorry", "i am sorry", "sorry", "i'm unable", "as an ai"];

/// Why an answer was not taken.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Rejected {
    /// It says nothing.
    Empty,
    /// It is a web page.
    Html,
    /// There is no JSON object in it.
    NoJson {
        /// How it begins.
        begins: Text,
    },
    /// The JSON in it is not of the form that was asked for.
    WrongShape {
        /// What is wrong.
        what: Text,
    },
    /// JSON stands where text should.
    Nested,
    /// It is longer than what it is of.
    TooLong {
        /// How many characters it has.
        chars: usize,
        /// How many that has which it is of.
        of: usize,
    },
    /// It tells why there is no summary.
    Excuse {
        /// How it begins.
        begins: Text,
    },
}

impl fmt::Display for Rejected {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Rejected::Empty => write!(f, "the answer is empty"),
            Rejected::Html => write!(f, "the answer is a web page"),
            Rejected::NoJson { begins } => write!(f, "the answer holds no JSON object; it begins {begins:?}"),
            Rejected::WrongShape { what } => write!(f, "the answer has another form than was asked for: {what}"),
            Rejected::Nested => write!(f, "the answer holds JSON in place of text"),
            Rejected::TooLong { chars, of } => write!(f, "the summary has {chars} characters, its original {of}"),
            Rejected::Excuse { begins } => write!(f, "the answer is no summary; it begins {begins:?}"),
        }
    }
}

impl std::error::Error for Rejected {}

impl Want {
    /// Reads a summarizer's answer, and returns what is kept as the note: of a part the summary alone, of a range the
    /// whole text that stands on the page. The JSON may stand in a code fence, or among other words.
    pub fn accept(&self, input: &Input, answer: &str) -> Result<Text, Rejected> {
        let answer = answer[..answer.floor_char_boundary(ANSWER_BYTES_MAX)].trim();
        if answer.is_empty() {
            return Err(Rejected::Empty);
        }
        if is_html(answer) {
            return Err(Rejected::Html);
        }
        match self.subject {
            Subject::Part(_) | Subject::Human(_) => summary(&object(answer, &["summary"])?, self.chars, input),
            Subject::Range(span) => {
                let names: Vec<&str> = SECTIONS.iter().map(|(name, _)| *name).chain(["constraints"]).collect();
                note(span, &object(answer, &names)?, self.chars, input)
            }
        }
    }
}

/// The first object in an answer that has one of these fields.
fn object(answer: &str, names: &[&str]) -> Result<Map<String, Value>, Rejected> {
    let mut other = None;
    let mut from = 0;
    for _ in 0..OBJECTS_MAX {
        let Some(found) = answer[from..].find('{') else { break };
        let mut values = serde_json::Deserializer::from_str(&answer[from + found..]).into_iter::<Map<String, Value>>();
        match values.next() {
            Some(Ok(object)) if names.iter().any(|name| object.contains_key(*name)) => return Ok(object),
            Some(Ok(object)) => {
                from += found + values.byte_offset();
                other.get_or_insert(object);
            }
            _ => from += found + 1,
        }
    }
    match other {
        Some(_) => Err(Rejected::WrongShape { what: format!("no field {}", names.join(", ")).into() }),
        None => Err(excuse(answer).unwrap_or_else(|| Rejected::NoJson { begins: begins(answer) })),
    }
}

/// The summary of one part.
fn summary(object: &Map<String, Value>, chars: u32, input: &Input) -> Result<Text, Rejected> {
    let text = match object.get("summary") {
        Some(Value::String(text)) => text.trim(),
        Some(Value::Object(_) | Value::Array(_)) => return Err(Rejected::Nested),
        Some(Value::Null) => return Err(Rejected::Empty),
        _ => return Err(Rejected::WrongShape { what: "`summary` is no text".into() }),
    };
    says_something(text)?;
    let (made, of) = (text.chars().count(), input.original_chars);
    if made >= of {
        return Err(Rejected::TooLong { chars: made, of });
    }
    Ok(cut(text, (chars as usize).saturating_mul(SLACK)).into())
}

/// Refuses what is no text, or says nothing.
fn says_something(text: &str) -> Result<(), Rejected> {
    let plain = text.trim_matches(|letter: char| !letter.is_alphanumeric()).to_lowercase();
    if plain.is_empty() || NOTHING.contains(&&*plain) {
        return Err(Rejected::Empty);
    }
    if is_html(text) {
        return Err(Rejected::Html);
    }
    if text.starts_with(['{', '[']) && serde_json::from_str::<Value>(text).is_ok() {
        return Err(Rejected::Nested);
    }
    excuse(text).map_or(Ok(()), Err)
}

fn excuse(text: &str) -> Option<Rejected> {
    let lower = text.trim_start().to_lowercase().replace('’', "'");
    let is_excuse = text.chars().nth(EXCUSE_CHARS_MAX).is_none() && EXCUSES.iter().any(|it| lower.starts_with(it));
    is_excuse.then(|| Rejected::Excuse { begins: begins(text) })
}

fn is_html(text: &str) -> bool {
    let head = text[..text.floor_char_boundary(256)].trim_start().to_lowercase();
    ["<!doctype", "<html", "<head", "<body", "<?xml"].iter().any(|tag| head.starts_with(tag))
}

fn begins(text: &str) -> Text {
    cut(&one_line(text), TOLD_CHARS).into()
}

/// The note on a range: what the answer says, section by section, and the rules that users have stated.
fn note(span: Span, object: &Map<String, Value>, chars: u32, input: &Input) -> Result<Text, Rejected> {
    let lists: Vec<Vec<String>> =
        SECTIONS.iter().map(|(name, _)| lines(object.get(*name), name)).collect::<Result<_, _>>()?;
    let quotes = lines(object.get("constraints"), "constraints")?;
    if lists.iter().all(Vec::is_empty) {
        return Err(Rejected::Empty);
    }
    if let Some(first) = lists[0].first() {
        says_something(first)?;
    }
    let sections = within(&lists, (chars as usize).saturating_mul(SLACK));
    let made: usize = sections.iter().flatten().map(|line| line.chars().count()).sum();
    if made >= input.original_chars {
        return Err(Rejected::TooLong { chars: made, of: input.original_chars });
    }
    let (rules, left_out) = all_rules(quotes, input, (chars as usize).max(RULES_CHARS_MIN));
    Ok(page::write(span, &sections, &rules, left_out))
}

/// The lines of one section: a list of texts, or one text.
fn lines(value: Option<&Value>, name: &str) -> Result<Vec<String>, Rejected> {
    let texts: Vec<&str> = match value {
        None | Some(Value::Null) => Vec::new(),
        Some(Value::String(text)) => vec![text],
        Some(Value::Array(list)) => {
            let text = |value: &'_ Value| match value {
                Value::Object(_) | Value::Array(_) => Some(Err(Rejected::Nested)),
                _ => None,
            };
            if let Some(refused) = list.iter().find_map(text) {
                return refused;
            }
            list.iter().filter_map(Value::as_str).collect()
        }
        Some(Value::Object(_)) => return Err(Rejected::Nested),
        Some(_) => return Err(Rejected::WrongShape { what: format!("`{name}` is no list of texts").into() }),
    };
    let lines = texts.into_iter().map(|text| cut(&one_line(text), LINE_CHARS_MAX)).filter(|line| !line.is_empty());
    Ok(lines.take(LINES_MAX).collect())
}

/// As many lines as there is room for: of every section the first, then of every section the second, and so on.
fn within(lists: &[Vec<String>], chars_max: usize) -> Vec<Vec<String>> {
    let mut taken: Vec<Vec<String>> = vec![Vec::new(); lists.len()];
    let mut left = chars_max;
    for nth in 0..LINES_MAX {
        for (list, taken) in lists.iter().zip(&mut taken) {
            let Some(line) = list.get(nth) else { continue };
            let chars = line.chars().count();
            if chars <= left && taken.len() == nth {
                left -= chars;
                taken.push(line.clone());
            }
        }
    }
    taken
}

/// The rules that users have stated: those of the note before, those that were found, and what the answer quotes, as far
/// as somebody said it. Returns how many had no place as well.
fn all_rules(quotes: Vec<String>, input: &Input, chars_max: usize) -> (Vec<Rule>, usize) {
    let mut rules: Vec<Rule> = input.rules.clone();
    for quote in quotes {
        let quote = quote.trim_matches(|letter: char| "\"'“”„«»`".contains(letter));
        let place = input.said.iter().find(|(_, said)| !quote.is_empty() && said.contains(quote));
        if let Some((at, _)) = place {
            rules.push(Rule { at: Some(*at), text: cut(quote, RULE_CHARS_MAX) });
        }
    }
    rules.sort_by_key(|rule| rule.at);
    let mut seen = HashSet::new();
    rules.retain(|rule| seen.insert(rule.text.clone()));
    // What is part of another rule is said by it.
    let all: Vec<String> = rules.iter().map(|rule| rule.text.clone()).collect();
    rules.retain(|rule| !all.iter().any(|other| other.len() > rule.text.len() && other.contains(&rule.text)));
    let found = rules.len();
    if found > RULES_FIRST_MAX + RULES_NEWEST_MAX {
        rules.drain(RULES_FIRST_MAX..found - RULES_NEWEST_MAX);
    }
    let mut left = chars_max;
    // The newest go last.
    let mut kept: Vec<Rule> = Vec::new();
    for rule in rules.into_iter().rev() {
        let chars = rule.text.chars().count();
        if chars <= left {
            left -= chars;
            kept.push(rule);
        }
    }
    kept.reverse();
    let left_out = found - kept.len();
    (kept, left_out)
}
