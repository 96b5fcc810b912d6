use super::bytes::{after, before, is_word, run, run_back};
use super::{Kind, shape};
use std::ops::Range;

/// How far behind the id of an AWS key its secret is looked for.
const AWS_SECRET_DISTANCE_MAX: usize = 200;
const AWS_SECRET_BYTES: usize = 40;
/// How long the first part of a web token may be.
const JWT_HEADER_BYTES_MAX: usize = 4096;
/// How much of a key is looked at to tell that it is random.
const HEAD_BYTES_MAX: usize = 64;

/// Keys whose first letters tell what they are.
struct Rule {
    kind: Kind,
    prefix: &'static str,
    two: [u8; 2],
    body: Body,
    length: Range<usize>,
}

/// What stands behind the first letters.
#[derive(Clone, Copy)]
enum Body {
    /// Letters and digits.
    Alnum,
    /// Letters, digits, `_` and `-`.
    Word,
    /// The same and `.`.
    Dotted,
    /// Large letters and digits.
    Large,
    /// The same, and a digit among them, since the first letters are a word.
    LargeRandom,
    /// Small hexadecimal digits.
    Hex,
    /// As `Word`, and random by itself, since the first letters say little.
    Random,
}

impl Body {
    fn holds(self, byte: u8) -> bool {
        match self {
            Body::Alnum => byte.is_ascii_alphanumeric(),
            Body::Word | Body::Random => is_word(byte),
            Body::Dotted => is_word(byte) || byte == b'.',
            Body::Large | Body::LargeRandom => byte.is_ascii_uppercase() || byte.is_ascii_digit(),
            Body::Hex => byte.is_ascii_digit() || matches!(byte, b'a'..=b'f'),
        }
    }
}

const ANY: usize = usize::MAX;

/// The first that fits is taken, so longer prefixes stand before shorter ones.
static RULES: [Rule; 37] = [
    rule(Kind::AnthropicKey, "sk-ant-", Body::Word, 20..ANY),
    rule(Kind::OpenaiKey, "sk-proj-", Body::Word, 20..ANY),
    rule(Kind::OpenaiKey, "sk-svcacct-", Body::Word, 20..ANY),
    rule(Kind::OpenaiKey, "sk-admin-", Body::Word, 20..ANY),
    rule(Kind::OpenaiKey, "sk-", Body::Random, 20..257),
    rule(Kind::StripeKey, "sk_live_", Body::Alnum, 16..ANY),
    rule(Kind::StripeKey, "rk_live_", Body::Alnum, 16..ANY),
    rule(Kind::StripeKey, "sk_test_", Body::Alnum, 16..ANY),
    rule(Kind::StripeKey, "rk_test_", Body::Alnum, 16..ANY),
    rule(Kind::StripeKey, "whsec_", Body::Alnum, 24..ANY),
    rule(Kind::GithubToken, "github_pat_", Body::Word, 40..ANY),
    rule(Kind::GithubToken, "ghp_", Body::Alnum, 36..ANY),
    rule(Kind::GithubToken, "gho_", Body::Alnum, 36..ANY),
    rule(Kind::GithubToken, "ghs_", Body::Alnum, 36..ANY),
    rule(Kind::GithubToken, "ghu_", Body::Alnum, 36..ANY),
    rule(Kind::GithubToken, "ghr_", Body::Alnum, 36..ANY),
    rule(Kind::GitlabToken, "glpat-", Body::Dotted, 20..ANY),
    rule(Kind::SlackToken, "xoxa-", Body::Word, 10..ANY),
    rule(Kind::SlackToken, "xoxb-", Body::Word, 10..ANY),
    rule(Kind::SlackToken, "xoxe-", Body::Word, 10..ANY),
    rule(Kind::SlackToken, "xoxp-", Body::Word, 10..ANY),
    rule(Kind::SlackToken, "xoxr-", Body::Word, 10..ANY),
    rule(Kind::SlackToken, "xoxs-", Body::Word, 10..ANY),
    rule(Kind::SlackToken, "xapp-", Body::Word, 10..ANY),
    rule(Kind::GoogleKey, "AIza", Body::Word, 35..36),
    rule(Kind::GoogleKey, "GOCSPX-", Body::Word, 20..ANY),
    rule(Kind::GoogleKey, "ya29.", Body::Dotted, 30..ANY),
    rule(Kind::AwsKeyId, "AKIA", Body::Large, 16..17),
    rule(Kind::AwsKeyId, "ASIA", Body::LargeRandom, 16..17),
    rule(Kind::HuggingFaceToken, "hf_", Body::Alnum, 30..ANY),
    rule(Kind::HuggingFaceToken, "api_org_", Body::Alnum, 30..ANY),
    rule(Kind::NpmToken, "npm_", Body::Alnum, 36..ANY),
    rule(Kind::PypiToken, "pypi-AgE", Body::Word, 50..ANY),
    rule(Kind::SendgridKey, "SG.", Body::Dotted, 60..ANY),
    rule(Kind::TwilioKey, "SK", Body::Hex, 32..33),
    rule(Kind::GitlabToken, "glptt-", Body::Word, 20..ANY),
    rule(Kind::GitlabToken, "gldt-", Body::Word, 20..ANY),
];

const fn rule(kind: Kind, prefix: &'static str, body: Body, length: Range<usize>) -> Rule {
    let two = [prefix.as_bytes()[0], prefix.as_bytes()[1]];
    Rule { kind, prefix, two, body, length }
}

/// Which letters a key may begin with: most words are done with one look.
static FIRST: [bool; 256] = {
    let mut first = [false; 256];
    let mut at = 0;
    while at < RULES.len() {
        first[RULES[at].prefix.as_bytes()[0] as usize] = true;
        at += 1;
    }
    first[b'e' as usize] = true; // web tokens
    first
};

/// Returns the key that begins at a place of a word.
pub(super) fn at(bytes: &[u8], at: usize, word_end: usize) -> Option<(Range<usize>, Kind)> {
    if !FIRST[usize::from(bytes[at])] {
        return None;
    }
    let word = &bytes[at..word_end];
    if word.starts_with(b"eyJ") && !matches!(before(bytes, at), b'-' | b'_') {
        return jwt(bytes, at);
    }
    // Two letters leave hardly any.
    let two = word.first_chunk::<2>()?;
    let rule = RULES.iter().find(|rule| rule.two == *two && word.starts_with(rule.prefix.as_bytes()))?;
    let start = at + rule.prefix.len();
    // What is no key is told by its head, so that beginnings in a row cost little each.
    let head = without_stops(&bytes[start..start + run(bytes, start, HEAD_BYTES_MAX, |it| rule.body.holds(it))]);
    let is_key = match rule.body {
        Body::Random => shape::is_random(head),
        Body::Large => shape::is_varied(head),
        Body::LargeRandom => shape::is_varied(head) && head.iter().any(u8::is_ascii_digit),
        _ => shape::is_key_like(head),
    };
    if !is_key {
        return None;
    }
    let body = &bytes[start..start + run(bytes, start, rule.length.end, |it| rule.body.holds(it))];
    let end = start + without_stops(body).len();
    if !rule.length.contains(&(end - start)) {
        return None;
    }
    // What hangs on is taken along, so that whatever follows stands free with and without the key.
    Some((at..end + run(bytes, end, usize::MAX, is_word), rule.kind.clone()))
}

/// A full stop at the end is the sentence's.
fn without_stops(body: &[u8]) -> &[u8] {
    &body[..body.len() - run_back(body, body.len(), body.len(), |it| it == b'.')]
}

/// Returns the web token that begins at a place: three or five parts, and the first says how it is made.
fn jwt(bytes: &[u8], at: usize) -> Option<(Range<usize>, Kind)> {
    let part =
        |from: usize, max: usize| Some(run(bytes, from, max, is_word)).filter(|length| (1..max).contains(length));
    let header = part(at, JWT_HEADER_BYTES_MAX)?;
    let mut end = at + header;
    let mut parts = 1;
    while parts < 5 && after(bytes, end) == b'.' && is_word(after(bytes, end + 1)) {
        end += 1 + run(bytes, end + 1, usize::MAX, is_word);
        parts += 1;
    }
    if parts < 3 {
        return None;
    }
    let json = shape::base64(&bytes[at..at + header])?;
    let fields: serde_json::Map<String, serde_json::Value> = serde_json::from_slice(&json).ok()?;
    fields.contains_key("alg").then_some((at..end, Kind::Jwt))
}

/// Returns the secret that follows the id of an AWS key, as in the file that AWS hands out.
pub(super) fn aws_secret(bytes: &[u8], from: usize) -> Option<(Range<usize>, Kind)> {
    let is_body = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'/' || byte == b'+';
    let end = bytes.len().min(from + AWS_SECRET_DISTANCE_MAX);
    let mut at = from;
    while at < end {
        let length = run(bytes, at, AWS_SECRET_BYTES + 1, is_body);
        let is_part = |byte: u8| is_word(byte) || byte == b'.';
        let is_whole = length == AWS_SECRET_BYTES
            && !(at > from && is_part(before(bytes, at)))
            && !is_part(after(bytes, at + length));
        if is_whole && shape::is_key_like(&bytes[at..at + length]) {
            return Some((at..at + length, Kind::AwsSecretKey));
        }
        at += length.max(1);
        // The rest of something longer is none.
        at += if length > AWS_SECRET_BYTES { run(bytes, at, AWS_SECRET_DISTANCE_MAX, is_body) } else { 0 };
    }
    None
}
