//! Values that look like secrets and are none.

pub(super) const DIGITS: &str = "0123456789";
pub(super) const HEX: &str = "0123456789abcdef";
pub(super) const LARGE: &str = "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567";
pub(super) const ALNUM: &str = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";
pub(super) const WORD: &str = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-";
pub(super) const BASE64: &str = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/// Returns so many letters of an alphabet that look random; both ends are letters or digits.
pub(super) fn letters(length: usize, alphabet: &str, seed: u64) -> String {
    let alphabet = alphabet.as_bytes();
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ (length as u64) << 32 ^ alphabet.len() as u64;
    let mut next = move |count: usize| {
        state = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9).wrapping_add(0x94d0_49bb_1331_11eb);
        (state >> 33) as usize % count
    };
    let plain = alphabet.iter().filter(|byte| byte.is_ascii_alphanumeric()).count();
    let letter =
        |at: usize| char::from(alphabet[next(if at == 0 || at + 1 == length { plain } else { alphabet.len() })]);
    (0..length).map(letter).collect()
}

/// Returns a web token: {"alg":"HS256","typ":"JWT"}, some fields, and a signature of nothing.
pub(super) fn jwt(seed: u64) -> String {
    let header = ["eyJhbGciOiJIUzI1NiIs", "InR5cCI6IkpXVCJ9"].concat();
    format!("{header}.eyJzdWIiOiI0MiJ9.{}", letters(43, WORD, seed))
}

/// Returns a block of PEM with a title.
pub(super) fn pem(title: &str) -> String {
    let lines: Vec<String> = (0..6).map(|seed| letters(if seed < 5 { 64 } else { 10 }, BASE64, seed)).collect();
    format!("-----BEGIN {title}-----\n{}\n-----END {title}-----", lines.join("\n"))
}
