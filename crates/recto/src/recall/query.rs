//! What is asked: the last user words, and what the model is about.

use super::terms;
use crate::entry::{Part, Role, Text};
use crate::item::result_text;
use crate::log::{Counted, Log};
use std::collections::HashSet;

/// How much of one text is asked with, in bytes.
const TEXT_BYTES_MAX: usize = 16 * 1024;
/// How far back the last user words are looked for.
const BACK_MAX: usize = 2_000;

/// Words by which a user speaks of themselves, and of whom they speak to; in scripts without spaces, characters.
const OWN_WORDS: [&str; 5] = ["i", "me", "my", "mine", "myself"];
const OWN_CHARACTERS: [char; 4] = ['我', '私', '僕', '俺'];
const OTHER_WORDS: [&str; 4] = ["you", "your", "yours", "yourself"];
const OTHER_CHARACTERS: [char; 2] = ['你', '您'];

/// What is asked.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Query {
    /// The last user words.
    pub words: String,
    /// The whole last exchange: these words, the model's last step, and what came last.
    pub exchange: String,
    /// Who asks, where the log names people.
    pub asker: Option<Text>,
}

impl Query {
    /// Asks in somebody's words alone.
    pub fn saying(words: impl Into<String>) -> Query {
        let words = words.into();
        Query { exchange: words.clone(), words, asker: None }
    }

    /// Returns what the next call of a conversation asks; nothing, where no user has said anything.
    pub fn of(log: &Log, input: Option<&Counted>) -> Option<Query> {
        let said = input.filter(|input| input.original().is_user_words());
        let recent = || log.back().take(BACK_MAX);
        let said = said.or_else(|| recent().find(|entry| entry.original().is_user_words()))?;
        let words = text_of(said);
        let step = recent().find(|entry| entry.role() == Role::Assistant);
        let newest = log.back().next().filter(|entry| entry.role() == Role::Tool);
        let rest: Vec<String> = step.into_iter().chain(newest).map(text_of).collect();
        let exchange = std::iter::once(&words).chain(&rest).map(String::as_str).collect::<Vec<_>>().join("\n");
        Some(Query { words, exchange, asker: said.author().cloned() })
    }

    /// Returns the user's words as they are spelled, in small letters.
    pub(super) fn spelled(&self) -> Vec<String> {
        terms::words(&self.words).map(|(_, word)| word.to_lowercase()).collect()
    }

    /// Returns what the log calls the one who asks, in small letters.
    pub(super) fn asker(&self) -> String {
        self.asker.as_ref().map_or_else(|| Role::User.to_string(), |asker| asker.to_lowercase())
    }

    /// Returns whether the user's words are about themselves, and about whom they speak to.
    pub(super) fn persons(&self) -> (bool, bool) {
        let words = self.spelled();
        let has = |some: &[&str], characters: &[char]| {
            words.iter().any(|word| some.contains(&&**word)) || self.words.contains(characters)
        };
        (has(&OWN_WORDS, &OWN_CHARACTERS), has(&OTHER_WORDS, &OTHER_CHARACTERS))
    }

    /// Returns the terms of the user's words, each once, and those of the whole exchange.
    pub fn terms(&self) -> (Vec<String>, Vec<String>) {
        (distinct(&self.words), distinct(&self.exchange))
    }
}

fn distinct(text: &str) -> Vec<String> {
    let mut seen = HashSet::new();
    terms::of(text).into_iter().filter(|term| seen.insert(term.clone())).collect()
}

fn text_of(entry: &Counted) -> String {
    let text = |part: &Part| -> Text {
        match part {
            Part::Text { text } => text.clone(),
            Part::Call(call) => call.arguments.as_str().into(),
            Part::Result(result) => result_text(result),
            _ => "".into(),
        }
    };
    let texts = entry.shown().iter().map(text);
    let texts: Vec<String> = texts.map(|text| text[..text.floor_char_boundary(TEXT_BYTES_MAX)].to_string()).collect();
    texts.join("\n")
}
