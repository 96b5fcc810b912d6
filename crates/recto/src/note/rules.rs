//! Rules: sentences in which a user demands or forbids something. They are taken from the user's own words, without a
//! model, so that no summary can lose them.

use super::{cut, one_line};
use crate::entry::Seq;

/// How much of a sentence is kept, in characters.
pub(super) const RULE_CHARS_MAX: usize = 400;
/// How much of one message is looked through, in bytes; longer ones are mostly pasted.
const MESSAGE_BYTES_MAX: usize = 32 * 1024;
/// How many rules one message can state.
const MESSAGE_RULES_MAX: usize = 20;

/// Words that make a sentence a rule where they stand by themselves, in lower case.
const WORDS: &[&str] = &[
    "must",
    "mustn't",
    "never",
    "always",
    "don't",
    "dont",
    "cannot",
    "can't",
    "only",
    "shall",
    "required",
    "forbidden",
    "shouldn't",
    "avoid",
    "immer",
    "nie",
    "niemals",
    "muss",
    "darf",
    "nur",
    "jamais",
    "toujours",
    "doit",
    "seulement",
    "nunca",
    "siempre",
    "debe",
    "solo",
    "sempre",
    "deve",
    "никогда",
    "всегда",
    "нельзя",
    "обязательно",
    "только",
];
/// The same, of several words or in scripts that don't part words.
const PIECES: &[&str] = &[
    "do not",
    "does not",
    "make sure",
    "no longer",
    "at most",
    "at least",
    "必須",
    "必ず",
    "禁止",
    "しないで",
    "てはいけない",
    "だけ",
    "必须",
    "不要",
    "不得",
    "绝不",
    "务必",
    "只能",
    "總是",
    "반드시",
    "절대",
    "금지",
    "하지 마",
];

/// A rule, and the entry that states it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Rule {
    pub(crate) at: Option<Seq>,
    /// On one line.
    pub(crate) text: String,
}

/// Returns the sentences of a message that state rules, in order.
pub(super) fn rules(at: Seq, text: &str) -> Vec<Rule> {
    let head = &text[..text.floor_char_boundary(MESSAGE_BYTES_MAX)];
    let stated = sentences(head).filter(|sentence| is_rule(sentence)).take(MESSAGE_RULES_MAX);
    stated.map(|sentence| Rule { at: Some(at), text: cut(&one_line(sentence), RULE_CHARS_MAX) }).collect()
}

fn is_rule(sentence: &str) -> bool {
    let lower = sentence.to_lowercase().replace('’', "'");
    let mut words = lower.split(|letter: char| !letter.is_alphanumeric() && letter != '\'');
    words.any(|word| WORDS.contains(&word)) || PIECES.iter().any(|piece| lower.contains(piece))
}

/// Splits a text at line ends and behind what ends a sentence.
fn sentences(text: &str) -> impl Iterator<Item = &str> {
    text.lines().flat_map(|line| {
        let mut rest = line;
        std::iter::from_fn(move || {
            let whole = rest.trim();
            if whole.is_empty() {
                return None;
            }
            let end = end_of_sentence(rest);
            let (sentence, behind) = rest.split_at(end);
            rest = behind;
            Some(sentence.trim())
        })
    })
}

/// Where the first sentence of a line ends; a point within a number or a name ends nothing.
fn end_of_sentence(line: &str) -> usize {
    let mut letters = line.char_indices().peekable();
    while let Some((at, letter)) = letters.next() {
        let next = letters.peek().map(|(_, next)| *next);
        let ends = match letter {
            '。' | '！' | '？' => true,
            '.' | '!' | '?' | ';' => next.is_none_or(char::is_whitespace),
            _ => false,
        };
        if ends {
            return at + letter.len_utf8();
        }
    }
    line.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(text: &str) -> Vec<String> {
        rules(Seq(1), text).into_iter().map(|rule| rule.text).collect()
    }

    #[test]
    fn sentences_that_demand_or_forbid_are_found_word_for_word() {
        let text = "Please fix v1.2 of the parser. You must keep   the API!\nDon’t touch main; thanks. Use Rust 1.85.";
        assert_eq!(found(text), ["You must keep the API!", "Don’t touch main;"]);
        assert_eq!(found("テストは必須です。あとで見ます。"), ["テストは必須です。"]);
        assert_eq!(found("Отвечай всегда по-русски. Спасибо."), ["Отвечай всегда по-русски."]);
    }

    #[test]
    fn words_within_words_are_no_rules() {
        assert!(found("The mustard is commonly nevertheless fine.").is_empty());
        assert!(found("").is_empty());
        assert!(found(" .. ! ?").is_empty());
    }

    #[test]
    fn what_is_kept_is_bounded() {
        let long = format!("You must {}", "x".repeat(10_000));
        assert_eq!(found(&long)[0].chars().count(), RULE_CHARS_MAX + 1);
        assert_eq!(found(&"Never do it.\n".repeat(1_000)).len(), MESSAGE_RULES_MAX);
        assert!(found(&format!("{}\nnever", "é".repeat(MESSAGE_BYTES_MAX))).is_empty());
    }
}
