//! How much of each kind is found, and how much that only looks like it: the table of docs/redaction.md.

use super::made_up::{ALNUM, BASE64, DIGITS, HEX, LARGE, WORD, jwt, letters, pem};
use super::{Redactor, found};
use std::fmt::Write as _;
use std::path::Path;

const SEEDS: u64 = 40;

/// Where a value stands: in sentences, files, commands, JSON within JSON, addresses.
const CONTEXTS: [&str; 8] = [
    "{}",
    "It is {}, as far as I know.",
    "SOME_VALUE={}\n",
    "{\"value\": \"{}\"}",
    "{\\\"value\\\":\\\"{}\\\"}",
    "line one\\n{}\\nline three",
    "run --with '{}' now",
    "| name | {} |",
];

struct Measured {
    kind: &'static str,
    real: Vec<(String, String)>,
    alike: Vec<String>,
}

fn of(kind: &'static str, real: impl Fn(u64) -> Vec<String>, alike: impl Fn(u64) -> Vec<String>) -> Measured {
    let values = (0..SEEDS).flat_map(real);
    let real =
        values.flat_map(|value| CONTEXTS.map(|context| (context.replace("{}", &value), value.clone()))).collect();
    Measured { kind, real, alike: around((0..SEEDS).flat_map(alike)) }
}

/// Values that are told by what stands beside them, each as a whole text.
fn told(
    kind: &'static str,
    real: impl Fn(u64) -> Vec<(String, String)>,
    alike: impl Fn(u64) -> Vec<String>,
) -> Measured {
    Measured { kind, real: (0..SEEDS).flat_map(real).collect(), alike: (0..SEEDS).flat_map(alike).collect() }
}

fn around(values: impl Iterator<Item = String>) -> Vec<String> {
    values.flat_map(|value| CONTEXTS.map(|context| context.replace("{}", &value))).collect()
}

/// A word with dashes, as of a style sheet or a branch.
fn words(seed: u64) -> String {
    let all = ["fading", "circle", "report", "final", "draft", "button", "primary", "release"];
    (0..5).map(|nth| all[(seed * 7 + nth * 3) as usize % all.len()]).collect::<Vec<_>>().join("-")
}

fn keys() -> Vec<Measured> {
    vec![
        of(
            "private_key",
            |seed| vec![pem(["PRIVATE KEY", "RSA PRIVATE KEY"][seed as usize % 2])],
            |_| vec![pem("PUBLIC KEY"), pem("CERTIFICATE"), "-----BEGIN PRIVATE KEY-----".into()],
        ),
        of(
            "anthropic_key",
            |s| vec![format!("sk-ant-api03-{}", letters(90, WORD, s))],
            |s| vec![format!("sk-ant-{}", words(s)), "sk-ant-xxxxxxxxxxxxxxxxxxxxxxxx".into()],
        ),
        of(
            "openai_key",
            |s| vec![format!("sk-proj-{}", letters(60, WORD, s)), format!("sk-{}", letters(48, ALNUM, s))],
            |s| vec![format!("sk-{}", words(s)), format!("disk-{}", letters(40, ALNUM, s)), "sk-...".into()],
        ),
        of(
            "google_key",
            |s| vec![format!("AIza{}", letters(35, WORD, s))],
            |s| vec![format!("AIza{}", letters(12, WORD, s)), format!("XAIza{}", letters(35, ALNUM, s))],
        ),
        of(
            "github_token",
            |s| vec![format!("ghp_{}", letters(36, ALNUM, s)), format!("ghs_{}", letters(36, ALNUM, s))],
            |s| vec![format!("ghp_{}", "x".repeat(36)), format!("ghp_{}", letters(8, ALNUM, s))],
        ),
        of(
            "gitlab_token",
            |s| vec![format!("glpat-{}", letters(20, WORD, s))],
            |s| vec![format!("glpat-{}", words(s))],
        ),
        of(
            "slack_token",
            |s| vec![format!("xoxb-{}-{}", letters(12, DIGITS, s), letters(24, ALNUM, s))],
            |s| vec![format!("xoxo-{}", words(s)), "xoxb-your-token-here".into()],
        ),
    ]
}

fn more_keys() -> Vec<Measured> {
    vec![
        of(
            "stripe_key",
            |s| vec![format!("sk_live_{}", letters(24, ALNUM, s))],
            |s| vec![format!("pk_live_{}", letters(24, ALNUM, s)), "sk_live_your_key_here_please".into()],
        ),
        of(
            "aws_key_id",
            |s| vec![format!("AKIA{}", letters(16, LARGE, s))],
            |s| vec![format!("AKIA{}EXAMPLE", letters(9, LARGE, s)), format!("AKIA{}", letters(30, LARGE, s))],
        ),
        of(
            "hugging_face_token",
            |s| vec![format!("hf_{}", letters(34, ALNUM, s))],
            |s| vec![format!("hf_{}", words(s).replace('-', "_")), format!("hf_{}", letters(10, ALNUM, s))],
        ),
        of(
            "npm_token",
            |s| vec![format!("npm_{}", letters(36, ALNUM, s))],
            |_| vec!["npm_package_dependencies_typescript".into()],
        ),
        of(
            "pypi_token",
            |s| vec![format!("pypi-AgE{}", letters(120, WORD, s))],
            |s| vec![format!("pypi-{}", words(s))],
        ),
        of(
            "sendgrid_key",
            |s| vec![format!("SG.{}.{}", letters(22, WORD, s), letters(43, WORD, s))],
            |s| vec![format!("SG.{}", words(s))],
        ),
        of(
            "twilio_key",
            |s| vec![format!("SK{}", letters(32, HEX, s))],
            |s| vec![format!("SKU{}", letters(32, HEX, s)), letters(32, HEX, s)],
        ),
        of("jwt", |s| vec![jwt(s)], |s| vec![format!("eyJ{}", letters(40, WORD, s)), format!("eyJ.{}.b", words(s))]),
    ]
}

fn named() -> Vec<Measured> {
    vec![
        told(
            "aws_secret_key",
            |s| {
                let value = letters(40, BASE64, s);
                vec![
                    (format!("aws_secret_access_key = {value}"), value.clone()),
                    (format!("{{\"SecretAccessKey\":\"{value}\"}}"), value),
                ]
            },
            |s| vec![letters(40, HEX, s), format!("commit {}", letters(40, HEX, s)), letters(40, BASE64, s)],
        ),
        told(
            "azure_key",
            |s| {
                let value = format!("{}==", letters(86, BASE64, s));
                vec![(format!("AccountName=a;AccountKey={value};Suffix=b"), value)]
            },
            |s| vec![format!("integrity sha512-{}==", letters(86, BASE64, s)), "AccountKey=<key>".into()],
        ),
        told(
            "authorization",
            |s| {
                let value = letters(40, WORD, s);
                vec![
                    (format!("Authorization: Bearer {value}"), value.clone()),
                    (format!("curl -H 'authorization: bearer {value}' host"), value),
                ]
            },
            |s| {
                vec![
                    format!("the bearer {} came", words(s)),
                    "Authorization: Bearer $TOKEN".into(),
                    "Basic usage".into(),
                ]
            },
        ),
        told(
            "url_password",
            |s| {
                let value = letters(10, ALNUM, s);
                vec![
                    (format!("postgres://app:{value}@db:5432/app"), value.clone()),
                    (format!("clone https://me:{value}@host.io/a.git"), value),
                ]
            },
            |s| {
                let host = words(s);
                vec![
                    format!("https://{host}.io:8080/a@b"),
                    "postgres://postgres:postgres@db/a".into(),
                    format!("ssh://git@{host}.io/a"),
                ]
            },
        ),
        assigned(),
    ]
}

fn assigned() -> Measured {
    told(
        "assigned",
        |s| {
            let (token, password) = (letters(32, ALNUM, s), format!("{}7", letters(10, ALNUM, s)));
            // The last two have nothing that tells them from words.
            let phrase = words(s).replace('-', " ");
            vec![
                (format!("api_key = \"{token}\""), token.clone()),
                (format!("{{\\\"refreshToken\\\":\\\"{token}\\\"}}"), token.clone()),
                (format!("tool --token {token} -v"), token.clone()),
                (format!("export CLIENT_SECRET={token}"), token),
                (format!("DB_PASSWORD={password}"), password.clone()),
                (format!("password: '{password}'"), password),
                (format!("passphrase: \"{phrase}\""), phrase.clone()),
                (format!("password={}", &phrase[..6]), phrase[..6].to_owned()),
            ]
        },
        |s| {
            let name = words(s).replace('-', "_");
            vec![
                format!("let token = {name}.next();"),
                format!("password: {name}"),
                format!("next_page_token={}", letters(40, ALNUM, s)),
                format!("token_count={}", letters(6, DIGITS, s)),
                format!("secret_name: {}-tls-2024", words(s)),
                format!("cache_key = \"{}\"", letters(32, HEX, s)),
                format!(
                    "request_token: {0}-{1}-{1}-{1}-{2}",
                    letters(8, HEX, s),
                    letters(4, HEX, s),
                    letters(12, HEX, s)
                ),
                "api_key = os.environ[\"API_KEY\"]".into(),
            ]
        },
    )
}

fn personal() -> Vec<Measured> {
    // The last digit makes the sum right, or wrong by one.
    let luhn = |digits: &str| {
        let sum: u32 = digits
            .bytes()
            .rev()
            .enumerate()
            .map(|(at, digit)| {
                let twice = u32::from(digit - b'0') * if at % 2 == 0 { 2 } else { 1 };
                twice / 10 + twice % 10
            })
            .sum();
        (10 - sum % 10) % 10
    };
    let card = move |s: u64, off: u32| {
        let digits = format!("4{}", letters(14, DIGITS, s));
        format!("{digits}{}", (luhn(&digits) + off) % 10)
    };
    let ibans =
        ["DE89370400440532013000", "GB82WEST12345698765432", "FR1420041010050500013M02606", "NL91ABNA0417164300"];
    vec![
        of(
            "email",
            |s| vec![format!("jo.{}@company.io", letters(5, "abcdefgh", s)), format!("{}@mail.co.uk", words(s))],
            |s| {
                vec![
                    format!("pkg@{}.1.2", s % 9),
                    "icon@2x.png".into(),
                    "someone@example.com".into(),
                    "git@host.io:a/b".into(),
                ]
            },
        ),
        of(
            "phone",
            |s| {
                let digits = letters(7, "23456789", s);
                vec![
                    format!("+49 30 {digits}"),
                    format!("(415) 555-{}", &digits[..4]),
                    format!("020 {} {}", &digits[..4], &digits[3..]),
                ]
            },
            |s| {
                vec![
                    format!("2024-0{}-1{}", s % 9 + 1, s % 9),
                    format!("10.0.{}.1:8080", s),
                    format!("170000{}", letters(7, DIGITS, s)),
                    format!("v1.{}.{}", s, s + 1),
                    format!("@@ -{0},7 +{0},9 @@", 10 + s),
                ]
            },
        ),
        of("card", move |s| vec![card(s, 0)], move |s| vec![card(s, 1), letters(20, DIGITS, s)]),
        of(
            "iban",
            |s| vec![ibans[s as usize % 4].into()],
            |s| {
                let mut wrong = ibans[s as usize % 4].to_owned();
                let last = wrong.pop().unwrap_or('0');
                vec![format!("{wrong}{}", if last == '0' { '1' } else { '0' })]
            },
        ),
    ]
}

/// Finds everything, and returns the row of the table.
fn row(it: &Measured) -> String {
    let all = Redactor::all();
    let is_it =
        |text: &str, value: &str| found(&all, text).iter().any(|(kind, span)| *kind == it.kind && span == value);
    let right = it.real.iter().filter(|(text, value)| is_it(text, value)).count();
    let wrong = it.alike.iter().filter(|text| found(&all, text).iter().any(|(kind, _)| *kind == it.kind)).count();
    let percent = |part: usize, of: usize| format!("{:.1} %", 100.0 * part as f64 / of.max(1) as f64);
    format!(
        "| `{}` | {right} of {} | {} | {wrong} of {} | {} |",
        it.kind,
        it.real.len(),
        percent(right, it.real.len()),
        it.alike.len(),
        percent(right, right + wrong)
    )
}

#[test]
fn the_table_of_the_docs_says_how_much_of_each_kind_is_found() {
    let mut table =
        "| kind | found | recall | look-alikes taken for it | precision |\n|---|---|---|---|---|\n".to_owned();
    let measured: Vec<Measured> = keys().into_iter().chain(more_keys()).chain(named()).chain(personal()).collect();
    assert_eq!(measured.len(), recto::redact::Kind::ALL.len(), "every kind has a row");
    for it in &measured {
        assert!(it.real.len() >= 20 && it.alike.len() >= 20, "{}", it.kind);
        let _ = writeln!(table, "{}", row(it));
    }
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/redaction.md");
    let page = std::fs::read_to_string(&path).expect("the page can be read");
    let (begin, end) = ("<!-- measured -->\n", "<!-- end of measured -->");
    let (before, rest) = page.split_once(begin).expect("the table has a place");
    let (told, after) = rest.split_once(end).expect("the table has an end");
    if std::env::var_os("RECTO_BLESS").is_some() {
        std::fs::write(&path, format!("{before}{begin}{table}{end}{after}")).expect("the page can be written");
        return;
    }
    assert_eq!(told, table, "RECTO_BLESS=1 writes it anew");
}
