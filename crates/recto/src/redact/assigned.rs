use super::bytes::{after, before, run, run_back, unescaped};
use super::{Kind, shape};
use std::ops::Range;

const NAME_BYTES_MAX: usize = 64;
const VALUE_BYTES_MAX: usize = 4096;
/// How many spaces may stand on either side of `=`.
const SPACES_MAX: usize = 8;
/// How many quotes and backslashes may stand on either side of a name or in front of a value.
const QUOTES_MAX: usize = 8;
/// How long a type may be between a name and its value, as in `let token: &str = …`.
const TYPE_BYTES_MAX: usize = 32;
const TOKEN_BYTES_MIN: usize = 16;
const PASSWORD_BYTES_MIN: usize = 8;
const PASSWORD_BYTES_MAX: usize = 128;
const AWS_SECRET_BYTES: usize = 40;

/// What a name says about its value.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Sense {
    /// People choose it.
    Password,
    /// Machines make it.
    Secret,
    /// The same, but ids are called so as well.
    Token,
    AwsSecret,
    AzureKey,
}

/// Returns the secret that an `=` or `:` at a place assigns.
pub(super) fn at(bytes: &[u8], at: usize) -> Option<(Range<usize>, Kind)> {
    if matches!(before(bytes, at), b'=' | b'!' | b'<' | b'>')
        || after(bytes, at) == b':' && after(bytes, at + 1) == b':'
    {
        return None;
    }
    let spaces = run_back(bytes, at, SPACES_MAX, |it| it == b' ' || it == b':');
    let quotes = run_back(bytes, at - spaces, QUOTES_MAX, |it| matches!(it, b'"' | b'\'' | b'`' | b'\\' | b']' | b'*'));
    let end = at - spaces - quotes;
    let length = run_back(bytes, end, NAME_BYTES_MAX, is_name);
    let start = unescaped(bytes, end - length).min(end);
    let sense = sense(&bytes[start..end])?;
    let value = value(bytes, past_type(bytes, at))?;
    judged(bytes, value, sense)
}

/// Returns the secret behind an option of a command, as in `--password …`; `--password=…` is an assignment.
pub(super) fn option(bytes: &[u8], word: Range<usize>) -> Option<(Range<usize>, Kind)> {
    if !bytes[word.clone()].starts_with(b"--") || after(bytes, word.end) != b' ' || word.len() > NAME_BYTES_MAX {
        return None;
    }
    let sense = sense(&bytes[word.clone()])?;
    let value = value(bytes, word.end)?;
    judged(bytes, value, sense)
}

/// Returns what stands behind the word `Bearer` or `Basic`.
pub(super) fn scheme(bytes: &[u8], word: Range<usize>) -> Option<(Range<usize>, Kind)> {
    let start = unescaped(bytes, word.start).min(word.end);
    let name = &bytes[start..word.end];
    let (is_bearer, is_basic) = (name.eq_ignore_ascii_case(b"bearer"), name.eq_ignore_ascii_case(b"basic"));
    if !(is_bearer || is_basic) || after(bytes, word.end) != b' ' {
        return None;
    }
    let start = word.end + 1;
    let is_body = |byte: u8| byte.is_ascii_alphanumeric() || b"._~+/=-".contains(&byte);
    let range = start..start + run(bytes, start, VALUE_BYTES_MAX, is_body);
    let value = &bytes[range.clone()];
    let is_credential = match is_bearer {
        true => value.len() >= TOKEN_BYTES_MIN && shape::is_key_like(value),
        false => shape::base64(value).is_some_and(|plain| is_name_and_password(&plain)),
    };
    is_credential.then_some((range, Kind::Authorization))
}

fn is_name_and_password(plain: &[u8]) -> bool {
    let is_text = plain.iter().all(|byte| (0x20..0x7f).contains(byte));
    let colon = plain.iter().position(|byte| *byte == b':');
    is_text && plain.len() >= PASSWORD_BYTES_MIN && colon.is_some_and(|at| at + 1 < plain.len())
}

fn is_name(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.')
}

/// The place behind an `=` or `:`, or behind the `=` that follows a type.
fn past_type(bytes: &[u8], at: usize) -> usize {
    let is_type = |byte: u8| byte.is_ascii_alphanumeric() || b"&'<>_[]| .".contains(&byte);
    let from = at + 1;
    let length = run(bytes, from, TYPE_BYTES_MAX, is_type);
    if bytes[at] == b':' && after(bytes, from + length) == b'=' { from + length } else { from }
}

/// Returns what is assigned: a quoted text, or everything up to a space or a mark that can't belong to it.
fn value(bytes: &[u8], from: usize) -> Option<Range<usize>> {
    let from = from + run(bytes, from, 3, |it| matches!(it, b'=' | b'>' | b':'));
    let from = from + run(bytes, from, SPACES_MAX, |it| it == b' ' || it == b'*');
    let marks = run(bytes, from, QUOTES_MAX, |it| it == b'\\');
    let quote = after(bytes, from + marks);
    let start = from + marks + 1;
    if matches!(quote, b'"' | b'\'' | b'`') {
        return quoted(bytes, start, quote, marks);
    }
    let is_value = |byte: u8| byte.is_ascii_graphic() && !b"\"'`,;&<>(){}[]|\\=:".contains(&byte);
    let length = run(bytes, from, VALUE_BYTES_MAX, is_value);
    let padding = run(bytes, from + length, 2, |it| it == b'=');
    let end = from + length + padding;
    let is_code = matches!(after(bytes, end), b'(' | b'[' | b'{' | b':') || length == VALUE_BYTES_MAX;
    // A full stop at the end is the sentence's.
    let stops = run_back(bytes, end, length, |it| it == b'.');
    (!is_code && length > stops).then_some(from..end - stops)
}

/// Returns what stands between quotes that have so many backslashes in front of them; the last may have fewer.
fn quoted(bytes: &[u8], start: usize, quote: u8, marks: usize) -> Option<Range<usize>> {
    let mut end = start;
    while end < bytes.len() && end - start < VALUE_BYTES_MAX && bytes[end] != b'\n' {
        if bytes[end] == quote {
            let escapes = run_back(bytes, end, (end - start).min(QUOTES_MAX + 1), |it| it == b'\\');
            if escapes <= marks {
                return (end - escapes > start).then_some(start..end - escapes);
            }
        }
        end += 1;
    }
    None
}

fn judged(bytes: &[u8], range: Range<usize>, sense: Sense) -> Option<(Range<usize>, Kind)> {
    let value = &bytes[range.clone()];
    let is_quoted = matches!(before(bytes, range.start), b'"' | b'\'' | b'`');
    let has_space = value.iter().any(|byte| byte.is_ascii_whitespace());
    if has_space || value.starts_with(b"data:") {
        return None;
    }
    let is_token = value.len() >= TOKEN_BYTES_MIN && !shape::is_uuid(value) && shape::is_random(value);
    let is_secret = match sense {
        Sense::Token => is_token,
        Sense::Secret | Sense::AzureKey => is_token || shape::is_uuid(value),
        Sense::AwsSecret => value.len() == AWS_SECRET_BYTES && shape::is_key_like(value),
        Sense::Password => {
            // `PWD` names a folder as well.
            let is_path =
                b"/~\\.".contains(&value[0]) || !is_quoted && value.iter().any(|byte| matches!(byte, b'/' | b'.'));
            let is_chosen = value.len() <= PASSWORD_BYTES_MAX && shape::is_password_like(value, PASSWORD_BYTES_MIN);
            is_token || is_chosen && !is_path
        }
    };
    let kind = match sense {
        Sense::AwsSecret => Kind::AwsSecretKey,
        Sense::AzureKey => Kind::AzureKey,
        _ => Kind::Assigned,
    };
    is_secret.then_some((range, kind))
}

/// What may follow the word that says it, as in `API_KEY_PROD`.
const SUFFIXES: [&str; 12] =
    ["prod", "production", "dev", "development", "staging", "test", "live", "base", "value", "default", "old", "new"];
const SUFFIXES_MAX: usize = 3;

/// With which letters those begin that are in every name that says something.
static STEMS: [bool; 256] = {
    let (mut stems, mut at) = ([false; 256], 0);
    while at < 256 {
        stems[at] = matches!(at as u8 | 0x20, b'p' | b's' | b'k' | b't' | b'a' | b'c');
        at += 1;
    }
    stems
};

/// Returns what a name says about its value; its last words decide.
fn sense(name: &[u8]) -> Option<Sense> {
    // Most names are done with one look: this is in every name that says something.
    let is_stem = |three: &[u8]| {
        STEMS[usize::from(three[0])] && {
            let three = [three[0] | 0x20, three[1] | 0x20, three[2] | 0x20];
            matches!(&three, b"pas" | b"pwd" | b"sec" | b"key" | b"tok" | b"aut" | b"cre")
        }
    };
    if !name.windows(3).any(is_stem) {
        return None;
    }
    let words = words(name);
    let mut words = words.as_str();
    for _ in 0..SUFFIXES_MAX {
        words = words.trim_end_matches(|it: char| it.is_ascii_digit() || it == '_');
        let suffix = SUFFIXES.iter().find_map(|suffix| words.strip_suffix(suffix)?.strip_suffix('_'));
        words = suffix.unwrap_or(words);
    }
    let ends = |ends: &[&str]| ends.iter().any(|end| words.ends_with(end));
    let is_word = |ends: &[&str]| {
        ends.iter().any(|end| words.strip_suffix(end).is_some_and(|rest| rest.is_empty() || rest.ends_with('_')))
    };
    if ends(&["secret_access_key", "secretaccesskey"]) || words.contains("aws") && ends(&["secret_key", "secretkey"]) {
        Some(Sense::AwsSecret)
    } else if ends(&["account_key", "accountkey", "shared_access_key", "sharedaccesskey"]) {
        Some(Sense::AzureKey)
    } else if ends(&["password", "passwd", "passphrase"]) || is_word(&["pwd", "passcode"]) || ends(&["_pass"]) {
        Some(Sense::Password)
    } else if ends(&["secret", "apikey", "secretkey", "accesskey", "privatekey"])
        || is_word(&["api_key", "secret_key", "access_key", "private_key", "signing_key", "encryption_key"])
        || is_word(&["master_key", "auth_key", "license_key", "credential", "credentials", "service_key"])
    {
        Some(Sense::Secret)
    } else if ends(&["token"]) || is_word(&["auth", "authorization"]) {
        let is_position = ["next", "page", "continuation", "sync", "cursor", "previous", "prev", "cancellation"]
            .iter()
            .any(|it| words.trim_end_matches("token").trim_end_matches('_').ends_with(it));
        (!is_position).then_some(Sense::Token)
    } else {
        None
    }
}

/// Returns the words of a name in small letters, with `_` between them.
fn words(name: &[u8]) -> String {
    let mut words = String::with_capacity(name.len() + QUOTES_MAX);
    for (at, &byte) in name.iter().enumerate() {
        let (last, next) = (before(name, at), after(name, at + 1));
        let begins = byte.is_ascii_uppercase()
            && (last.is_ascii_lowercase()
                || last.is_ascii_digit()
                || last.is_ascii_uppercase() && next.is_ascii_lowercase());
        if begins && !words.is_empty() {
            words.push('_');
        }
        words.push(if byte.is_ascii_alphanumeric() { char::from(byte.to_ascii_lowercase()) } else { '_' });
    }
    words
}
