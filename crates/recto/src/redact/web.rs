use super::bytes::{after, before, is_word, run, run_back, unescaped};
use super::{Kind, shape};
use std::ops::Range;

/// How long the name and the password in an address may be together.
const USER_BYTES_MAX: usize = 512;
const PASSWORD_BYTES_MIN: usize = 3;
const LOCAL_BYTES_MAX: usize = 64;
const DOMAIN_BYTES_MAX: usize = 253;
const TOP_BYTES_MAX: usize = 24;

/// Passwords that everybody knows, or that stand for one.
const WELL_KNOWN: [&str; 18] = [
    "password",
    "passwd",
    "pass",
    "pwd",
    "pw",
    "secret",
    "token",
    "user",
    "username",
    "root",
    "admin",
    "postgres",
    "mysql",
    "test",
    "guest",
    "key",
    "x-oauth-basic",
    "x-access-token",
];

/// Returns the password of the address whose `://` stands at a place.
pub(super) fn password(bytes: &[u8], at: usize) -> Option<(Range<usize>, Kind)> {
    if !bytes[at..].starts_with(b"://") || !before(bytes, at).is_ascii_alphanumeric() {
        return None;
    }
    let start = at + 3;
    let is_user = |byte: u8| !byte.is_ascii_whitespace() && !b"/?#\"'`<>\\|,;".contains(&byte);
    let host = &bytes[start..start + run(bytes, start, USER_BYTES_MAX, is_user)];
    let end = host.iter().rposition(|byte| *byte == b'@')?;
    let colon = host[..end].iter().position(|byte| *byte == b':')?;
    let (user, value) = (&host[..colon], &host[colon + 1..end]);
    let is_constant = value.iter().all(|byte| byte.is_ascii_uppercase() || *byte == b'_');
    let is_open = value.len() < PASSWORD_BYTES_MIN
        || value == user
        || is_constant
        || WELL_KNOWN.iter().any(|it| value.eq_ignore_ascii_case(it.as_bytes()))
        || shape::is_made_up(value);
    (!is_open).then_some((start + colon + 1..start + end, Kind::UrlPassword))
}

/// What stands behind the last full stop of names that are no addresses: files and units.
const NO_TOP: [&str; 32] = [
    "png", "jpg", "jpeg", "gif", "svg", "webp", "ico", "css", "scss", "js", "mjs", "cjs", "ts", "tsx", "jsx", "json",
    "html", "htm", "xml", "yml", "yaml", "toml", "lock", "txt", "log", "conf", "service", "socket", "timer", "target",
    "local", "internal",
];
/// Domains that belong to nobody, by RFC 2606 and RFC 6761.
const RESERVED: [&str; 8] =
    ["example.com", "example.org", "example.net", "example.edu", ".example", ".test", ".invalid", ".localhost"];
/// Who is nobody.
const NOBODY: [&str; 4] = ["git", "noreply", "no-reply", "donotreply"];

/// Returns the e-mail address whose `@` stands at a place.
pub(super) fn email(bytes: &[u8], at: usize) -> Option<(Range<usize>, Kind)> {
    let start = unescaped(bytes, at - run_back(bytes, at, LOCAL_BYTES_MAX + 1, is_local)).min(at);
    let start = start + run(bytes, start, at - start, |it| !it.is_ascii_alphanumeric() && it != b'_');
    let local = &bytes[start..at];
    let length = run(bytes, at + 1, DOMAIN_BYTES_MAX, |it| it.is_ascii_alphanumeric() || it == b'-' || it == b'.');
    let stops = run_back(bytes, at + 1 + length, length, |it| it == b'.' || it == b'-');
    let end = at + 1 + length - stops;
    let domain = &bytes[at + 1..end];
    let top = &domain[domain.iter().rposition(|byte| *byte == b'.')? + 1..];
    let is_domain = (2..=TOP_BYTES_MAX).contains(&top.len())
        && top.iter().all(u8::is_ascii_alphabetic)
        && domain[0].is_ascii_alphanumeric()
        && !domain.windows(2).any(|two| two == b"..")
        && !is_one_of(top, &NO_TOP);
    let follows = after(bytes, end);
    // `git@host.org:path`, `a@b.dot(c)`
    let is_code = matches!(follows, b'(' | b'[' | b'_' | b'@')
        || follows == b':' && (is_word(after(bytes, end + 1)) || matches!(after(bytes, end + 1), b'/' | b'~'));
    let is_person = !is_one_of(local, &NOBODY) && !RESERVED.iter().any(|it| ends_with(domain, it.as_bytes()));
    let is_email = !local.is_empty() && local.len() <= LOCAL_BYTES_MAX && is_domain && !is_code && is_person;
    (is_email && !is_user_of_address(bytes, start)).then_some((start..end, Kind::Email))
}

fn is_local(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'%' | b'+' | b'-')
}

/// Returns whether what begins here is the name or the password in front of a host, as in `ssh://name:password@host`.
fn is_user_of_address(bytes: &[u8], start: usize) -> bool {
    let name = match before(bytes, start) {
        b':' => start - 1 - run_back(bytes, start - 1, LOCAL_BYTES_MAX, is_local),
        _ => start,
    };
    bytes[..name].ends_with(b"//")
}

fn is_one_of(value: &[u8], names: &[&str]) -> bool {
    names.iter().any(|name| value.eq_ignore_ascii_case(name.as_bytes()))
}

fn ends_with(value: &[u8], end: &[u8]) -> bool {
    value.len().checked_sub(end.len()).is_some_and(|at| value[at..].eq_ignore_ascii_case(end))
}
