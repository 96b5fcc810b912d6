//! What holds for any text.

use super::made_up::{ALNUM, BASE64, HEX, LARGE, WORD, jwt, letters, pem};
use proptest::prelude::*;
use recto::redact::{Found, Pattern, Redactor};

/// Shorter secrets are not looked for elsewhere: they may be words.
const REMEMBERED_BYTES_MIN: usize = 8;
const PIECES_MAX: usize = 12;

/// A secret, a person's datum, or something near to one.
fn datum() -> impl Strategy<Value = String> {
    let key = (0u64..50, 0..13).prop_map(|(seed, which)| match which {
        0 => format!("sk-ant-api03-{}", letters(40, WORD, seed)),
        1 => format!("ghp_{}", letters(36, ALNUM, seed)),
        2 => format!("AKIA{}", letters(16, LARGE, seed)),
        3 => letters(40, BASE64, seed),
        4 => jwt(seed),
        5 => pem("PRIVATE KEY"),
        6 => format!("password={}", letters(12, ALNUM, seed)),
        7 => format!("{{\"token\": \"{}\"}}", letters(24, WORD, seed)),
        8 => format!("https://me:{}@host.io/", letters(9, ALNUM, seed)),
        9 => format!("Authorization: Bearer {}", letters(30, WORD, seed)),
        10 => format!("SK{}", letters(32, HEX, seed)),
        11 => format!("AIza{}", letters(35, WORD, seed)),
        _ => format!("sk-{}", letters(32, ALNUM, seed)),
    });
    let personal = prop::sample::select(vec![
        "jo@company.io",
        "+49 30 901820",
        "0171 2345678",
        "(415) 555-0132",
        "01 99 00 27 53",
        "4111111111111111",
        "4111 1111 1111 1111",
        "DE89370400440532013000",
        "GB82 WEST 1234 5698 7654 32",
    ]);
    prop_oneof![3 => key, 2 => personal.prop_map(str::to_owned)]
}

/// What stands between: marks that detectors look at, words, numbers, other letters.
fn filling() -> impl Strategy<Value = String> {
    let marks = prop::sample::select(vec![
        "",
        " ",
        "\n",
        "\\n",
        "=",
        ": ",
        "\"",
        "'",
        "\\\"",
        "-",
        "_",
        ".",
        ",",
        "/",
        "@",
        "+",
        "(",
        ")",
        "[",
        "]",
        "#",
        "%3D",
        "\u{1b}[0m",
        "é",
        "名",
        "x",
        "7",
        " 12",
        "token",
        "key=",
        "secret:",
        "Bearer ",
        "-----BEGIN ",
        "-----END",
        "://",
        "a:b@c",
    ]);
    prop_oneof![4 => marks.prop_map(str::to_owned), 1 => "[ -~\\n]{0,12}", 1 => "\\PC{0,6}"]
}

fn text() -> impl Strategy<Value = String> {
    let piece = prop_oneof![2 => filling(), 1 => datum()];
    prop::collection::vec(piece, 0..PIECES_MAX).prop_map(|pieces| pieces.concat())
}

/// The same with placeholders in it, also broken ones.
fn text_seen_before() -> impl Strategy<Value = String> {
    let placeholder =
        prop::sample::select(vec!["[secret:jwt#1]", "[personal:email#12]", "[secret:", "#3]", "[secret:x#]"]);
    (text(), placeholder, text()).prop_map(|(before, placeholder, behind)| format!("{before}{placeholder}{behind}"))
}

fn redactor() -> Redactor {
    Redactor::all().finding("own", Pattern::new("k[0-9a-z-]{3,9}").unwrap()).unwrap()
}

fn cut(text: &str, found: &[Found]) -> Vec<String> {
    found.iter().map(|it| text[it.range.clone()].to_owned()).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1_000))]

    #[test]
    fn what_is_redacted_stays_as_it_is_when_redacted_again(text in text_seen_before()) {
        for redactor in [Redactor::secrets(), Redactor::all(), redactor()] {
            let once = redactor.redact(&text).into_owned();
            prop_assert_eq!(&redactor.redact(&once), &once);
        }
    }

    #[test]
    fn spans_are_in_order_and_split_no_character(text in text_seen_before()) {
        let mut done = 0;
        for Found { range, .. } in redactor().spans(&text) {
            prop_assert!(done <= range.start && range.start < range.end && range.end <= text.len());
            prop_assert!(text.is_char_boundary(range.start) && text.is_char_boundary(range.end));
            done = range.end;
        }
    }

    #[test]
    fn what_stands_outside_is_untouched(text in text_seen_before()) {
        let redactor = redactor();
        let shown = redactor.redact(&text);
        let mut rest = &*shown;
        let mut done = 0;
        for Found { range, kind } in redactor.spans(&text) {
            let group = if kind.is_personal() { "personal" } else { "secret" };
            let piece = format!("{}[{group}:{}#", &text[done..range.start], kind.name());
            let behind = rest.strip_prefix(&piece).expect("the text in front and a placeholder");
            rest = &behind[behind.find(']').expect("its end") + 1..];
            done = range.end;
        }
        prop_assert_eq!(rest, &text[done..]);
    }

    #[test]
    fn no_secret_that_was_found_is_in_the_output(text in text()) {
        let redactor = Redactor::secrets();
        let shown = redactor.redact(&text);
        for value in cut(&text, &redactor.spans(&text)).iter().filter(|it| it.len() >= REMEMBERED_BYTES_MIN) {
            prop_assert!(!shown.contains(value.as_str()), "{} is in {}", value, shown);
        }
    }

    #[test]
    fn what_is_found_in_one_text_is_found_when_another_stands_beside_it(one in text(), other in text()) {
        let redactor = Redactor::all();
        let (apart, between) = ([redactor.spans(&one), redactor.spans(&other)], "\n–\n");
        let joined = format!("{one}{between}{other}");
        let together = redactor.spans(&joined);
        for (found, shift) in [(&apart[0], 0), (&apart[1], one.len() + between.len())] {
            for Found { range, .. } in found {
                let range = range.start + shift..range.end + shift;
                let is_covered = |it: &Found| it.range.start <= range.start && range.end <= it.range.end;
                prop_assert!(together.iter().any(is_covered), "{:?} of {:?}", &joined[range.clone()], joined);
            }
        }
        let shifted = |it: &Found| {
            let shift = one.len() + between.len();
            Found { range: it.range.start + shift..it.range.end + shift, kind: it.kind.clone() }
        };
        if together == [apart[0].clone(), apart[1].iter().map(shifted).collect()].concat() {
            let (one, other) = (redactor.redact(&one), redactor.redact(&other));
            prop_assert_eq!(redactor.redact(&joined), format!("{one}{between}{other}"));
        }
    }
}

#[test]
fn the_laws_are_about_texts_in_which_something_is_found() {
    use proptest::strategy::ValueTree;
    let mut runner = proptest::test_runner::TestRunner::deterministic();
    let found = (0..200).filter(|_| {
        let text = text().new_tree(&mut runner).unwrap().current();
        !Redactor::all().spans(&text).is_empty()
    });
    assert!(found.count() > 100);
}
