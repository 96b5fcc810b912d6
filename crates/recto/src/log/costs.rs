//! What texts cost that decisions have put in the place of others: they stand on page after page, and are counted once.

use crate::entry::Text;
use crate::tokens::{Count, Tokens};
use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

/// How many texts are remembered; all of them can be counted again.
const TEXTS_MAX: usize = 4_096;
/// Shorter ones are counted as quickly as they are found.
const BYTES_MIN: usize = 64;

#[derive(Debug, Default)]
pub(crate) struct Costs {
    known: Mutex<HashMap<Text, Tokens>>,
}

impl Costs {
    pub(crate) fn of(&self, text: &Text, counter: &dyn Count) -> Tokens {
        if text.len() < BYTES_MIN {
            return counter.count(text);
        }
        if let Some(cost) = self.known.lock().unwrap_or_else(PoisonError::into_inner).get(text) {
            return *cost;
        }
        let cost = counter.count(text);
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if known.len() >= TEXTS_MAX {
            known.clear();
        }
        known.insert(text.clone(), cost);
        cost
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tokens::Tokenizer;
    use std::sync::atomic::{AtomicUsize, Ordering};

    /// Counts as another does, and how often.
    #[derive(Debug, Default)]
    struct Asked(AtomicUsize);

    impl Count for Asked {
        fn name(&self) -> &str {
            "asked"
        }

        fn count(&self, text: &str) -> Tokens {
            self.0.fetch_add(1, Ordering::Relaxed);
            Tokenizer::O200k.count(text)
        }
    }

    #[test]
    fn a_text_is_counted_once_and_another_of_the_same_words_is_the_same() {
        let (costs, counter) = (Costs::default(), Asked::default());
        let long: Text = "a few words, again and again; ".repeat(10).into();
        let again: Text = String::from(&*long).into();
        assert_eq!(costs.of(&long, &counter), Tokenizer::O200k.count(&long));
        assert_eq!(costs.of(&again, &counter), Tokenizer::O200k.count(&long));
        assert_eq!(counter.0.load(Ordering::Relaxed), 1);
    }

    #[test]
    fn no_more_is_remembered_than_there_is_room_for() {
        let (costs, counter) = (Costs::default(), Asked::default());
        for number in 0..3 * TEXTS_MAX {
            let text: Text = format!("{number:>BYTES_MIN$}").into();
            assert_eq!(costs.of(&text, &counter), Tokenizer::O200k.count(&text));
            assert!(costs.known.lock().unwrap().len() <= TEXTS_MAX);
        }
    }
}
