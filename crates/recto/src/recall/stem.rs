//! Porter's stemmer: English words that differ only in their endings become one, and irregular forms their word.

use super::kin;

/// Returns the stem of a word of lower-case ASCII letters; others are returned as they are.
pub(super) fn stem(word: &str) -> String {
    if word.len() <= 2 || !word.bytes().all(|byte| byte.is_ascii_lowercase()) {
        return word.to_string();
    }
    let mut word = Word(kin::regular(word).as_bytes().to_vec());
    word.plurals_and_past();
    word.y_to_i();
    word.double_suffixes();
    word.single_suffixes();
    word.last_suffixes();
    word.final_e();
    String::from_utf8(word.0).unwrap_or_default()
}

struct Word(Vec<u8>);

const DOUBLE: [(&str, &str); 20] = [
    ("ational", "ate"),
    ("tional", "tion"),
    ("enci", "ence"),
    ("anci", "ance"),
    ("izer", "ize"),
    ("abli", "able"),
    ("alli", "al"),
    ("entli", "ent"),
    ("eli", "e"),
    ("ousli", "ous"),
    ("ization", "ize"),
    ("ation", "ate"),
    ("ator", "ate"),
    ("alism", "al"),
    ("iveness", "ive"),
    ("fulness", "ful"),
    ("ousness", "ous"),
    ("aliti", "al"),
    ("iviti", "ive"),
    ("biliti", "ble"),
];
const SINGLE: [(&str, &str); 7] =
    [("icate", "ic"), ("ative", ""), ("alize", "al"), ("iciti", "ic"), ("ical", "ic"), ("ful", ""), ("ness", "")];
const LAST: [&str; 20] = [
    "al", "ance", "ence", "er", "ic", "able", "ible", "ant", "ement", "ment", "ent", "sion", "tion", "ou", "ism",
    "ate", "iti", "ous", "ive", "ize",
];

impl Word {
    fn is_consonant(&self, at: usize) -> bool {
        match self.0[at] {
            b'a' | b'e' | b'i' | b'o' | b'u' => false,
            b'y' => at == 0 || !self.is_consonant(at - 1),
            _ => true,
        }
    }

    /// How many times consonants follow vowels in the first so many letters.
    fn measure(&self, end: usize) -> usize {
        let mut count = 0;
        let mut was_vowel = false;
        for at in 0..end {
            let is_vowel = !self.is_consonant(at);
            count += usize::from(was_vowel && !is_vowel);
            was_vowel = is_vowel;
        }
        count
    }

    fn has_vowel(&self, end: usize) -> bool {
        (0..end).any(|at| !self.is_consonant(at))
    }

    fn ends(&self, suffix: &str) -> Option<usize> {
        self.0.ends_with(suffix.as_bytes()).then(|| self.0.len() - suffix.len())
    }

    fn replace(&mut self, at: usize, with: &str) {
        self.0.truncate(at);
        self.0.extend_from_slice(with.as_bytes());
    }

    fn ends_double(&self) -> bool {
        let len = self.0.len();
        len >= 2 && self.0[len - 1] == self.0[len - 2] && self.is_consonant(len - 1)
    }

    /// Whether it ends as `hop` does: there an `e` was left out.
    fn ends_short(&self, end: usize) -> bool {
        end >= 3
            && self.is_consonant(end - 1)
            && !self.is_consonant(end - 2)
            && self.is_consonant(end - 3)
            && !matches!(self.0[end - 1], b'w' | b'x' | b'y')
    }

    fn plurals_and_past(&mut self) {
        if let Some(at) = self.ends("sses").or_else(|| self.ends("ies")) {
            self.0.truncate(at + if self.0.ends_with(b"sses") { 2 } else { 1 });
        } else if self.ends("ss").is_none()
            && let Some(at) = self.ends("s")
        {
            self.0.truncate(at);
        }
        if let Some(at) = self.ends("eed") {
            if self.measure(at) > 0 {
                self.0.truncate(at + 2);
            }
            return;
        }
        let Some(at) = self.ends("ed").or_else(|| self.ends("ing")).filter(|at| self.has_vowel(*at)) else { return };
        self.0.truncate(at);
        if self.ends("at").is_some() || self.ends("bl").is_some() || self.ends("iz").is_some() {
            self.0.push(b'e');
        } else if self.ends_double() && !matches!(self.0.last(), Some(b'l' | b's' | b'z')) {
            self.0.pop();
        } else if self.measure(self.0.len()) == 1 && self.ends_short(self.0.len()) {
            self.0.push(b'e');
        }
    }

    fn y_to_i(&mut self) {
        if let Some(at) = self.ends("y").filter(|at| self.has_vowel(*at)) {
            self.0[at] = b'i';
        }
    }

    fn double_suffixes(&mut self) {
        self.first_of(&DOUBLE);
    }

    fn single_suffixes(&mut self) {
        self.first_of(&SINGLE);
    }

    /// Replaces the longest of these suffixes that it has, if enough stands before.
    fn first_of(&mut self, suffixes: &[(&str, &str)]) {
        let found = suffixes.iter().filter_map(|(suffix, with)| Some((self.ends(suffix)?, *with)));
        if let Some((at, with)) = found.min_by_key(|(at, _)| *at)
            && self.measure(at) > 0
        {
            self.replace(at, with);
        }
    }

    fn last_suffixes(&mut self) {
        let found = LAST.iter().filter_map(|suffix| Some((self.ends(suffix)?, suffix)));
        let Some((at, suffix)) = found.min_by_key(|(at, _)| *at) else { return };
        // Of `sion` and `tion` the first letter stays.
        let at = if suffix.ends_with("ion") { at + 1 } else { at };
        if self.measure(at) > 1 {
            self.0.truncate(at);
        }
    }

    fn final_e(&mut self) {
        if let Some(at) = self.ends("e") {
            let measure = self.measure(at);
            if measure > 1 || (measure == 1 && !self.ends_short(at)) {
                self.0.truncate(at);
            }
        }
        if self.measure(self.0.len()) > 1 && self.ends_double() && self.0.last() == Some(&b'l') {
            self.0.pop();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn endings_go() {
        let pairs = [
            ("caresses", "caress"),
            ("ponies", "poni"),
            ("cats", "cat"),
            ("agreed", "agre"),
            ("plastered", "plaster"),
            ("motoring", "motor"),
            ("sing", "sing"),
            ("conflated", "conflat"),
            ("hopping", "hop"),
            ("falling", "fall"),
            ("filing", "file"),
            ("happy", "happi"),
            ("relational", "relat"),
            ("conditional", "condit"),
            ("digitizer", "digit"),
            ("operator", "oper"),
            ("hopefulness", "hope"),
            ("triplicate", "triplic"),
            ("electrical", "electr"),
            ("goodness", "good"),
            ("adjustment", "adjust"),
            ("adoption", "adopt"),
            ("effective", "effect"),
            ("probate", "probat"),
            ("rate", "rate"),
            ("controlling", "control"),
            ("roll", "roll"),
            ("generalizations", "gener"),
            ("is", "is"),
            ("bought", "bui"),
            ("naïve", "naïve"),
            ("x86", "x86"),
        ];
        for (word, expected) in pairs {
            assert_eq!(stem(word), expected, "{word}");
        }
    }
}
