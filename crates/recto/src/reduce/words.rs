//! Words as numbers, for passes that ask how much two texts have in common.

/// How much of a text is looked at, in bytes: what lies further back hardly changes the answer.
const TEXT_BYTES_MAX: usize = 64 * 1024;

/// Returns the words of a text, whatever their case, as numbers that are the same on every machine.
pub(super) fn words(text: &str) -> impl Iterator<Item = (u64, usize)> {
    let head = &text[..text.floor_char_boundary(TEXT_BYTES_MAX)];
    let words = head.split(|letter: char| !letter.is_alphanumeric() && letter != '_').filter(|word| !word.is_empty());
    words.map(|word| (number(word), word.chars().count()))
}

/// Returns a text's runs of so many words, distinct and in order; a shorter text is one run.
pub(super) fn runs(text: &str, length: usize) -> Vec<u64> {
    let words: Vec<u64> = words(text).map(|(word, _)| word).collect();
    let joined = |run: &[u64]| run.iter().fold(OFFSET, |sum, word| mixed(sum.rotate_left(5) ^ word));
    let mut runs: Vec<u64> = match words.len() < length {
        true => vec![joined(&words)],
        false => words.windows(length).map(joined).collect(),
    };
    runs.sort_unstable();
    runs.dedup();
    runs
}

const OFFSET: u64 = 0xcbf2_9ce4_8422_2325;
const PRIME: u64 = 0x0100_0000_01b3;

/// FNV-1a over the letters in lower case.
fn number(word: &str) -> u64 {
    let letters = word.chars().flat_map(char::to_lowercase);
    mixed(letters.fold(OFFSET, |sum, letter| (sum ^ u64::from(u32::from(letter))).wrapping_mul(PRIME)))
}

/// Spreads a number over all bits, so that the smallest of many are a fair sample.
pub(super) fn mixed(mut number: u64) -> u64 {
    number = (number ^ (number >> 33)).wrapping_mul(0xff51_afd7_ed55_8ccd);
    number = (number ^ (number >> 33)).wrapping_mul(0xc4ce_b9fe_1a85_ec53);
    number ^ (number >> 33)
}
