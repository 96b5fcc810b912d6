//! English words that belong together though their letters don't say so: irregular forms (`went`, *go*), and the names of
//! kinds with what is of the kind (*pet*, `dog`). Questions name the kind, and answers the thing.
//!
//! `data/forms.txt` has on each line a word and its forms; `data/kin.txt` names of a kind before the colon, and things of
//! that kind behind it.

use super::stem::stem;
use std::collections::HashMap;
use std::sync::LazyLock;

/// How much a word counts that is only akin to the one that is asked for.
pub(super) const AKIN: f64 = 0.5;

static FORMS: LazyLock<HashMap<&'static str, &'static str>> = LazyLock::new(|| {
    let of_line = |line: &'static str| {
        let (word, forms) = line.split_once(' ').unwrap_or((line, ""));
        forms.split_whitespace().map(move |form| (form, word))
    };
    include_str!("../../data/forms.txt").lines().flat_map(of_line).collect()
});

static KIN: LazyLock<HashMap<String, Vec<String>>> = LazyLock::new(|| {
    let mut kin: HashMap<String, Vec<String>> = HashMap::new();
    for (names, things) in include_str!("../../data/kin.txt").lines().filter_map(|line| line.split_once(':')) {
        let [names, things] = [names, things].map(|words| words.split_whitespace().map(stem).collect::<Vec<_>>());
        for name in &names {
            kin.entry(name.clone()).or_default().extend(names.iter().chain(&things).cloned());
        }
        for thing in things {
            kin.entry(thing).or_default().extend(names.iter().cloned());
        }
    }
    for (term, akin) in &mut kin {
        akin.retain(|it| it != term);
        akin.sort_unstable();
        akin.dedup();
    }
    kin
});

/// Returns the word that this one is a form of; itself, where it is regular.
pub(super) fn regular(word: &str) -> &str {
    FORMS.get(word).copied().unwrap_or(word)
}

/// Returns the terms that are akin to a term.
pub(super) fn of(term: &str) -> &'static [String] {
    KIN.get(term).map_or(&[], Vec::as_slice)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn forms_and_kinds_are_known() {
        assert_eq!(["went", "children", "walk"].map(regular), ["go", "child", "walk"]);
        assert!(of("pet").contains(&"puppi".to_string()) && of("puppi").contains(&"pet".to_string()));
        assert!(!of("puppi").contains(&"kitten".to_string()), "two of a kind are not akin");
        assert!(of("zzz").is_empty());
    }

    #[test]
    fn the_lists_are_in_order() {
        for line in include_str!("../../data/kin.txt").lines() {
            assert!(
                line.split_once(": ").is_some_and(|(names, things)| !names.is_empty() && !things.is_empty()),
                "{line}"
            );
        }
        let mut forms = Vec::new();
        for line in include_str!("../../data/forms.txt").lines() {
            forms.extend(line.split(' ').skip(1));
            assert!(line.is_ascii() && line.split(' ').count() > 1, "{line}");
        }
        let all = forms.len();
        forms.sort_unstable();
        forms.dedup();
        assert_eq!(forms.len(), all, "a form is of one word only");
    }
}
