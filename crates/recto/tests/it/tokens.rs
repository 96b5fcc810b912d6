//! Counting tokens: the exact encodings against the reference, the estimators by their numbers.

use std::sync::LazyLock;

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;
use recto::tokens::{Count, Tokenizer, Tokens};
use tiktoken_rs::CoreBPE;

static O200K: LazyLock<CoreBPE> = LazyLock::new(|| tiktoken_rs::o200k_base().expect("the reference loads"));
static CL100K: LazyLock<CoreBPE> = LazyLock::new(|| tiktoken_rs::cl100k_base().expect("the reference loads"));

#[track_caller]
fn assert_matches_reference(text: &str) {
    for (tokenizer, reference) in [(Tokenizer::O200k, &*O200K), (Tokenizer::Cl100k, &*CL100K)] {
        let expected = reference.encode_ordinary(text);
        assert_eq!(tokenizer.count(text), Tokens(expected.len() as u64), "{tokenizer}: {text:?}");
        assert_eq!(tokenizer.ids(text), Some(expected), "{tokenizer}: {text:?}");
    }
}

/// Strings that between them meet every rule by which the encodings cut a text into pieces.
const FRAGMENTS: &[&str] = &[
    "a",
    "S",
    "the",
    " the",
    "ing",
    "Camel",
    "snake_case",
    "fn main() {\n    let x = 1;\n}\n",
    "def f(x):\n\treturn x ** 2\n",
    "#include <stdio.h>\r\n",
    "It was the best of times, ",
    "we'll",
    "DON'T",
    "it's",
    "'",
    "'s",
    "'ll",
    "'RE",
    "x'\u{17F}",
    "'\u{17F}",
    "\u{17F}",
    " I'\u{17F}",
    "\u{212A}",
    " ",
    "  ",
    "      ",
    "\n",
    "\r",
    "\r\n",
    "\n\n\n",
    "\t",
    " \n ",
    "\u{A0}",
    "\u{85}",
    "\u{2003}",
    "\u{2028}",
    "\u{3000}",
    "\u{FEFF}",
    "\u{180E}",
    "1",
    "22",
    "1234567",
    "3.14159e-10",
    "0xDEADBEEF",
    "1,000,000",
    "²",
    "Ⅷ",
    "１",
    "٣",
    "https://example.com/a/b?c=d&e=%20#f",
    "//",
    "/",
    ".\n/",
    "{\"key\": [1, null, \"v\\n\"]}",
    "<|endoftext|>",
    "<|im_start|>",
    "<|fim_prefix|>",
    "<|",
    "|>",
    "...",
    "====",
    "-",
    "_",
    "中",
    "文",
    "中文字符",
    "，",
    "。",
    "日本語のテキスト",
    "カタカナ・",
    "한국어",
    "Ａ",
    "ａ",
    "Ａａ",
    "مرحبا",
    "ال",
    "\u{64B}",
    "שלום",
    "\u{5B9}",
    "สวัสดี",
    "नमस्ते",
    "Ⴀ",
    "ა",
    "Ა",
    "Ꭰ",
    "é",
    "e\u{301}",
    "\u{301}",
    "ạ",
    "ß",
    "ǅ",
    "ʰ",
    "ª",
    "ⓐ",
    "привет",
    "И",
    "😀",
    "👩\u{200D}👩\u{200D}👧\u{200D}👦",
    "👍🏽",
    "🇩🇪",
    "❤\u{FE0F}",
    "1\u{FE0F}\u{20E3}",
    "𝐀",
    "𠮷",
    "\0",
    "\0\0\0",
    "\u{1}",
    "\u{1B}[31m",
    "\u{7F}",
    "\u{FFFD}",
    "\u{E000}",
    "\u{10FFFF}",
    "\u{200B}",
    "═",
    "═══",
];

#[test]
fn exact_encodings_match_the_reference_on_a_mixed_corpus() {
    assert_matches_reference("");
    for fragment in FRAGMENTS {
        assert_matches_reference(fragment);
        for other in FRAGMENTS {
            assert_matches_reference(&format!("{fragment}{other}"));
        }
    }
    assert_matches_reference(&FRAGMENTS.concat());
    assert_matches_reference(&FRAGMENTS.join(" "));
    assert_matches_reference(&FRAGMENTS.join("\n").repeat(8));
}

#[test]
fn exact_encodings_match_the_reference_on_long_runs() {
    let runs = [
        "a",
        " ",
        "\n",
        "\0",
        ".",
        "=-",
        "7",
        "'",
        "aA",
        "é",
        "привет",
        "中",
        "中文字符",
        "\u{FFFD}",
        "═",
        "😀",
        "\u{301}",
        "A\u{301}",
        "👩\u{200D}👩\u{200D}👧",
        "𝐀",
        // Each of these is quadratic in the encoder if it is given the run whole.
        "Ａ。",
        "Ａ\u{3000}",
        "\u{3000}。",
        "\u{3000}\u{3000}。",
        "Ａ１",
        "Ａａ",
        "ạ。ế",
        "Ⴀაა。",
        "\u{2003}中\u{3000}",
    ];
    for run in runs {
        let text = run.repeat(20_000 / run.len());
        assert_matches_reference(&text);
        assert_matches_reference(&format!("before {text}after"));
        assert_matches_reference(&format!("1{text}\u{3000}  after"));
    }
}

#[test]
fn exact_encodings_stay_fast_on_hostile_runs() {
    // Quadratic handling of any of these would take minutes.
    for run in ["a", " ", "\0", "😀", "Ａ。", "\u{3000}。", "Ａａ", "Ａ１"] {
        let text = run.repeat((1 << 20) / run.len());
        for tokenizer in [Tokenizer::O200k, Tokenizer::Cl100k] {
            assert!(tokenizer.count(&text) > Tokens(1_000), "{tokenizer}: {run:?}");
        }
    }
}

#[test]
fn long_s_is_a_contraction_as_in_the_reference() {
    // Case folding makes U+017F an s, so these words end behind it.
    let words = ["x'\u{17F}'ST", "T'\u{17F}'RES", "x'\u{17F}名", "中'\u{17F}亚洲AV", "x's'\u{17F}'ST"];
    let lone =
        [" I'\u{17F}", "   I'\u{17F} ", "\n  I'\u{17F}'TT", "1'\u{17F}'ST", ".\n/'\u{17F}'ST", "\u{301}'\u{17F}'ST"];
    for text in words.iter().chain(&lone) {
        assert_matches_reference(text);
        assert_matches_reference(&text.repeat(3));
    }
}

#[test]
fn special_tokens_in_a_text_are_plain_text() {
    assert_eq!(Tokenizer::O200k.ids("<|endoftext|>"), Some(vec![27, 91, 419, 1440, 919, 91, 29]));
    assert_eq!(Tokenizer::Cl100k.count("<|endoftext|>"), Tokens(7));
    assert_eq!(Tokenizer::Chars4.ids("text"), None);
}

/// A few kinds of characters at a time, since mixtures of everything rarely form long pieces.
fn mixed_text() -> impl Strategy<Value = String> {
    let fragments = vec(select(FRAGMENTS), 1..8)
        .prop_flat_map(|alphabet| vec(select(alphabet), 0..60))
        .prop_map(|fragments| fragments.concat());
    let anything = vec(any::<char>(), 0..60).prop_map(String::from_iter);
    let three_bytes = vec(prop::char::range('\u{800}', '\u{D7FF}'), 0..60).prop_map(String::from_iter);
    prop_oneof![4 => fragments, 1 => anything, 1 => three_bytes]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn exact_encodings_match_the_reference(text in mixed_text()) {
        assert_matches_reference(&text);
    }

    #[test]
    fn exact_encodings_match_the_reference_on_repeated_text(text in mixed_text()) {
        // Long enough to be encoded in parts.
        let times = 20_000 / text.len().max(1);
        assert_matches_reference(&text.repeat(times.min(2_000)));
    }

    #[test]
    fn estimators_follow_their_formulas(text in mixed_text()) {
        let quarters = |length: usize| Tokens(length.div_ceil(4) as u64);
        prop_assert_eq!(Tokenizer::Chars4.count(&text), quarters(text.chars().count()));
        prop_assert_eq!(Tokenizer::Bytes4.count(&text), quarters(text.len()));
        prop_assert_eq!(Tokenizer::Utf16x4.count(&text), quarters(text.encode_utf16().count()));
    }
}

#[test]
fn estimators_round_up_at_every_fourth_unit() {
    let ascii = [("", 0), ("a", 1), ("aaaa", 1), ("aaaaa", 2), ("aaaaaaaa", 2), ("aaaaaaaaa", 3)];
    for (text, expected) in ascii {
        for tokenizer in [Tokenizer::Chars4, Tokenizer::Bytes4, Tokenizer::Utf16x4] {
            assert_eq!(tokenizer.count(text), Tokens(expected), "{tokenizer}: {text:?}");
        }
    }
    let wide = [("é", 1, 1, 1), ("ééééé", 2, 3, 2), ("中中", 1, 2, 1), ("😀😀", 1, 2, 1), ("😀😀😀", 1, 3, 2)];
    for (text, scalars, bytes, units) in wide {
        assert_eq!(Tokenizer::Chars4.count(text), Tokens(scalars), "{text:?}");
        assert_eq!(Tokenizer::Bytes4.count(text), Tokens(bytes), "{text:?}");
        assert_eq!(Tokenizer::Utf16x4.count(text), Tokens(units), "{text:?}");
    }
}

#[test]
fn every_tokenizer_counts_nothing_in_an_empty_text() {
    for tokenizer in Tokenizer::ALL {
        assert_eq!(tokenizer.count(""), Tokens(0), "{tokenizer}");
    }
}

#[test]
fn tokenizer_names_survive_display_parsing_and_serde() {
    let names: Vec<&str> = Tokenizer::ALL.iter().map(|tokenizer| tokenizer.name()).collect();
    assert_eq!(names, ["o200k", "cl100k", "chars4", "bytes4", "utf16_4", "tokenx"]);
    for tokenizer in Tokenizer::ALL {
        assert_eq!(tokenizer.to_string(), tokenizer.name());
        assert_eq!(tokenizer.name().parse(), Ok(*tokenizer));
        let json = serde_json::to_string(tokenizer).expect("a name serializes");
        assert_eq!(json, format!("{:?}", tokenizer.name()));
        assert_eq!(serde_json::from_str::<Tokenizer>(&json).expect("a name parses"), *tokenizer);
    }
    let error = "o\"x".parse::<Tokenizer>().expect_err("no tokenizer has this name");
    assert_eq!(
        error.to_string(),
        "unknown tokenizer \"o\\\"x\"; known: o200k, cl100k, chars4, bytes4, utf16_4, tokenx"
    );
}

#[test]
fn tokens_add_up_saturate_and_print_in_groups() {
    let mut tokens: Tokens = [Tokens(1), Tokens(2)].iter().sum();
    tokens += Tokens(4);
    tokens -= Tokens(2);
    assert_eq!(tokens, Tokens(5));
    assert_eq!(tokens - Tokens(6), Tokens(0));
    assert_eq!(Tokens(u64::MAX) + tokens, Tokens(u64::MAX));
    assert_eq!([Tokens(7), tokens].into_iter().sum::<Tokens>(), Tokens(12));
    let printed = [0, 12, 999, 1_000, 12_345, 1_234_567].map(|count| Tokens(count).to_string());
    assert_eq!(printed, ["0", "12", "999", "1 000", "12 345", "1 234 567"]);
    assert_eq!(format!("{:>8}|{:<6}|", Tokens(12_345), Tokens(1)), "  12 345|1     |");
    assert_eq!(serde_json::to_string(&Tokens(12_345)).expect("a number serializes"), "12345");
}

#[test]
fn tokenx_gives_the_numbers_of_the_original() {
    for (text, expected) in TOKENX_GOLDEN {
        assert_eq!(Tokenizer::Tokenx.count(text), Tokens(*expected), "{text:?}");
    }
}

/// What `estimateTokenCount` of the npm package `tokenx` 2.2.0 returns.
const TOKENX_GOLDEN: &[(&str, u64)] = &[
    ("", 0),
    ("a", 1),
    ("abc", 1),
    ("abcd", 1),
    ("lowercase", 2),
    ("eightchr", 1),
    ("ninechars", 2),
    ("Mixed", 1),
    ("MixedCase", 2),
    ("camelCaseIdentifierName", 4),
    ("don't", 1),
    ("it's a dog's life", 4),
    ("Hello, world!", 4),
    ("12", 1),
    ("1234", 2),
    ("1234567890", 4),
    ("3.14159", 4),
    ("v1", 1),
    ("x86_64", 3),
    ("(){}[]", 1),
    ("=>", 1),
    ("==========", 2),
    ("...............", 3),
    ("-- ---- ------ -------", 5),
    ("a\nb", 3),
    ("a.\nb", 3),
    ("a\n\nb", 3),
    ("a\n    b", 3),
    ("a \n", 2),
    ("\n", 1),
    ("\t\t", 0),
    (" ", 0),
    ("\r\n", 1),
    ("a\r\nb", 3),
    ("\u{3000}", 0),
    ("漢字。\n次", 4),
    ("if (x) {\n    return y;\n}\n", 10),
    ("über", 2),
    ("Straße", 2),
    ("GROẞ", 2),
    ("Äpfel und Öl", 4),
    ("déjà vu", 2),
    ("ÉCOLE", 2),
    ("garçon œuvre", 4),
    ("naïve Ÿ", 3),
    ("mañana", 2),
    ("zażółć gęślą jaźń", 6),
    ("Příliš žluťoučký kůň", 8),
    ("Привет, мир", 3),
    ("ЁЛКА", 1),
    ("Ᲊᲀ", 1),
    ("ελληνικά", 3),
    ("ΑΒΓ", 1),
    ("µm", 1),
    ("\u{345}abcd", 2),
    ("ὰbcdefghij", 2),
    ("中文", 2),
    ("中文测试。", 5),
    ("你好，世界！", 6),
    ("，", 1),
    ("hello，world", 3),
    ("hello。", 2),
    ("中a。b", 4),
    ("ひらがな", 3),
    ("カタカナ・テスト", 7),
    ("日本語のテキスト", 7),
    ("한국어 텍스트", 4),
    ("안녕하세요", 4),
    ("ᄀᄁᄂ", 2),
    ("ㄱㄴㄷ", 2),
    ("ｆｕｌｌ\u{3000}ｗｉｄｔｈ", 9),
    ("１２３", 3),
    ("😀", 2),
    ("😀😀😀😀", 5),
    ("👩\u{200D}👩\u{200D}👧\u{200D}👦", 8),
    ("👍🏽", 3),
    ("🇩🇪", 1),
    ("🇩🇪🇫🇷🇪🇸", 2),
    ("1\u{FE0F}\u{20E3}", 1),
    ("❤\u{FE0F}", 3),
    ("❤\u{FE0F}1", 4),
    ("😀abc", 1),
    ("©2024", 6),
    ("©abcdefgh", 2),
    ("®™", 3),
    ("〰", 1),
    ("㊗", 1),
    ("שלום עולם", 2),
    ("مرحبا بالعالم", 2),
    ("สว\u{E31}สด\u{E35}คร\u{E31}บ", 2),
    ("नमस\u{94D}त\u{947} द\u{941}न\u{93F}य\u{93E}", 2),
    ("𝐀𝐁𝐂𝐃", 2),
    ("\u{85}abc", 1),
    ("a\u{85}b", 1),
    ("\u{FEFF}abc", 1),
    ("\u{0}\u{0}\u{0}\u{0}", 1),
    ("https://example.com/path?q=1&r=two", 15),
    ("{\"key\": [1, 2.5, null]}", 12),
    ("<|endoftext|>", 4),
    ("snake_case_name", 5),
    ("The quick brown fox jumps over the lazy dog.", 10),
    ("—", 1),
    ("“quoted”", 2),
    ("…", 1),
    ("ﷺ", 1),
    ("𠮷野家", 3),
    ("豈", 1),
    ("ｱｲｳ", 3),
    ("𛀀か", 2),
    ("Ünï", 1),
    ("éł", 1),
    ("łé", 1),
    ("ął中", 3),
];
