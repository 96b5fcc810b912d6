//! The token estimate of the npm package `tokenx`, version 2.2.0.
//!
//! The figures are those of `estimateTokenCount(text)` with its default options. The original
//! splits with regular expressions over UTF-16 code units; this module makes one pass over the
//! characters and keeps, for the segment being read, only what its price depends on.
//!
//! Two things follow JavaScript rather than Rust: lengths are UTF-16 code units, except where
//! the original counts code points, and the letters of a language are those that its
//! case-insensitive patterns match, which includes a few lookalikes such as the micro sign.

/// Estimates the tokens of a text.
pub(super) fn estimate(text: &str) -> u64 {
    let mut total = 0;
    let mut run = Run::default();
    let mut segment = Segment::default();
    let mut whitespace = Whitespace::default();
    for character in text.chars() {
        let next = class_of(character);
        if next != run.class && !run.is_continued_by(next, &segment) {
            total += run.price(&segment, &whitespace);
            run.before = run.class;
            segment = Segment::default();
            whitespace = Whitespace::default();
        }
        run.class = next;
        match next {
            Class::Whitespace => whitespace.push(character),
            _ => segment.push(character),
        }
    }
    total + run.price(&segment, &whitespace)
}

/// What a character does to the division of a text into segments.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Class {
    /// No character: the state before the first one.
    #[default]
    Nothing,
    Whitespace,
    Punctuation,
    CjkPunctuation,
    Word,
}

/// The run of characters being read, and what came before it.
#[derive(Debug, Default)]
struct Run {
    class: Class,
    /// The class that the segment before this one ended with.
    before: Class,
}

impl Run {
    /// CJK punctuation is priced together with the CJK word it follows.
    fn is_continued_by(&self, next: Class, segment: &Segment) -> bool {
        self.class == Class::Word && next == Class::CjkPunctuation && segment.has_cjk
    }

    fn price(&self, segment: &Segment, whitespace: &Whitespace) -> u64 {
        match self.class {
            Class::Nothing => 0,
            Class::Whitespace => whitespace.price(self.before),
            Class::Punctuation => segment.price(PUNCTUATION_UNITS_PER_TOKEN),
            Class::CjkPunctuation | Class::Word => segment.price(WORD_UNITS_PER_TOKEN),
        }
    }
}

const PUNCTUATION_UNITS_PER_TOKEN: f64 = 6.0;
const WORD_UNITS_PER_TOKEN: f64 = 7.0;
const DIGITS_PER_TOKEN: f64 = 3.0;
const HANZI_PER_TOKEN: f64 = 1.2;
const KANA_PER_TOKEN: f64 = 1.35;
const HANGUL_PER_TOKEN: f64 = 1.65;
const PICTOGRAPHS_PER_TOKEN: f64 = 0.9;
/// Any segment of at most this many UTF-16 units is one token.
const SHORT_SEGMENT: u64 = 3;
/// A word of lowercase ASCII letters is one token up to this length.
const SHORT_LOWERCASE_WORD: u64 = 8;

/// What the price of a whitespace run depends on.
#[derive(Debug, Default)]
struct Whitespace {
    has_newline: bool,
    ends_in_newline: bool,
    /// A newline with more whitespace after it: indentation or a blank line.
    has_structure: bool,
}

impl Whitespace {
    fn push(&mut self, character: char) {
        self.has_structure |= self.ends_in_newline;
        self.ends_in_newline = character == '\n';
        self.has_newline |= self.ends_in_newline;
    }

    /// A plain line end is free after punctuation, which tends to share a token with it.
    fn price(&self, before: Class) -> u64 {
        if self.has_structure {
            return 1;
        }
        let follows_punctuation = matches!(before, Class::Punctuation | Class::CjkPunctuation);
        u64::from(self.has_newline && !follows_punctuation)
    }
}

/// What the price of a segment that is no whitespace depends on.
#[derive(Debug, Default)]
struct Segment {
    utf16_units: u64,
    characters: u64,
    digits: u64,
    lowercase: u64,
    has_cjk: bool,
    kana: u64,
    hangul: u64,
    language: Option<Language>,
    starts_with_pictograph: bool,
    /// The pictographs and the characters that may accompany them.
    emoji: u64,
}

impl Segment {
    fn push(&mut self, character: char) {
        let is_first = self.characters == 0;
        self.utf16_units += character.len_utf16() as u64;
        self.characters += 1;
        self.digits += u64::from(character.is_ascii_digit());
        self.lowercase += u64::from(character.is_ascii_lowercase());
        if character.is_ascii() {
            self.emoji += u64::from(is_emoji_component(character));
            return;
        }
        self.has_cjk |= is_cjk(character);
        if is_kana(character) {
            self.kana += 1;
        } else if is_hangul(character) {
            self.hangul += 1;
        }
        // The first language in the original's order wins, whatever the order in the text.
        self.language = match (self.language, language_of(character)) {
            (Some(known), Some(new)) => Some(known.min(new)),
            (known, new) => known.or(new),
        };
        let is_pictograph = is_pictograph(character);
        self.starts_with_pictograph |= is_first && is_pictograph;
        self.emoji += u64::from(is_pictograph || is_emoji_component(character));
    }

    /// Returns the tokens of the segment, where text that no other rule prices has
    /// `units_per_token` UTF-16 units in each.
    fn price(&self, units_per_token: f64) -> u64 {
        let units = self.utf16_units;
        if self.has_cjk {
            return self.price_of_cjk();
        }
        if let Some(language) = self.language {
            return ceiling(self.characters as f64 / language.characters_per_token());
        }
        if self.starts_with_pictograph && self.emoji == self.characters {
            return ceiling(self.characters as f64 / PICTOGRAPHS_PER_TOKEN);
        }
        if self.digits == units {
            return ceiling(units as f64 / DIGITS_PER_TOKEN);
        }
        let is_short_word = units <= SHORT_LOWERCASE_WORD && self.lowercase == units;
        if units <= SHORT_SEGMENT || is_short_word {
            return 1;
        }
        ceiling(units as f64 / units_per_token)
    }

    fn price_of_cjk(&self) -> u64 {
        let hanzi = self.characters - self.kana - self.hangul;
        // The order of the additions is the original's, so that rounding agrees.
        ceiling(
            hanzi as f64 / HANZI_PER_TOKEN + self.kana as f64 / KANA_PER_TOKEN + self.hangul as f64 / HANGUL_PER_TOKEN,
        )
    }
}

/// Rounds a price, which is never negative, up to whole tokens.
fn ceiling(price: f64) -> u64 {
    price.ceil() as u64
}

/// A group of languages with a price of its own, in the order in which they are tried.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Language {
    German,
    Romance,
    WestSlavic,
    Cyrillic,
    Greek,
}

impl Language {
    fn characters_per_token(self) -> f64 {
        match self {
            Language::German | Language::Greek => 3.0,
            Language::Romance => 4.5,
            Language::WestSlavic => 2.5,
            Language::Cyrillic => 6.0,
        }
    }
}

/// Returns the first language whose letters include a character.
fn language_of(character: char) -> Option<Language> {
    match character {
        'Ä' | 'Ö' | 'Ü' | 'ß' | 'ä' | 'ö' | 'ü' | 'ẞ' => Some(Language::German),
        'À'..='Â' | 'Æ'..='Ë' | 'Í'..='Ï' | 'Ñ' | 'Ó' | 'Ô' | 'Ù'..='Û' => Some(Language::Romance),
        'à'..='â' | 'æ'..='ë' | 'í'..='ï' | 'ñ' | 'ó' | 'ô' | 'ù'..='û' => Some(Language::Romance),
        'ÿ' | 'Ÿ' | 'Œ' | 'œ' => Some(Language::Romance),
        'Ý' | 'ý' | 'Ą'..='ć' | 'Č'..='ď' | 'Ę'..='ě' | 'Ł'..='ń' | 'Ň' | 'ň' => Some(Language::WestSlavic),
        'Ř'..='ś' | 'Š' | 'š' | 'Ť' | 'ť' | 'Ů' | 'ů' | 'Ź'..='ž' => Some(Language::WestSlavic),
        // With the rounded and tall variants whose capitals are the ordinary ones.
        'Ё' | 'А'..='я' | 'ё' | '\u{1C80}'..='\u{1C86}' => Some(Language::Cyrillic),
        // With the micro sign, the iota subscripts and the symbol variants, for the same reason.
        '\u{386}' | '\u{388}'..='\u{38A}' | '\u{38C}' | '\u{38E}' | '\u{38F}' => Some(Language::Greek),
        '\u{391}'..='\u{3A1}' | '\u{3A3}'..='\u{3CE}' => Some(Language::Greek),
        '\u{B5}' | '\u{345}' | '\u{1FBE}' | '\u{3D0}' | '\u{3D1}' | '\u{3D5}' | '\u{3D6}' => Some(Language::Greek),
        '\u{3F0}' | '\u{3F1}' | '\u{3F5}' => Some(Language::Greek),
        _ => None,
    }
}

fn class_of(character: char) -> Class {
    if is_javascript_whitespace(character) {
        return Class::Whitespace;
    }
    match character {
        // Every mark of ASCII except the apostrophe, which belongs to words.
        '\'' => Class::Word,
        '!'..='/' | ':'..='@' | '['..='`' | '{'..='~' => Class::Punctuation,
        '\u{3001}'..='\u{3003}' | '\u{3008}'..='\u{3011}' | '\u{3014}'..='\u{301F}' => Class::CjkPunctuation,
        '\u{3030}' | '\u{30FB}' | '\u{FF01}'..='\u{FF0F}' | '\u{FF1A}'..='\u{FF20}' => Class::CjkPunctuation,
        '\u{FF3B}'..='\u{FF40}' | '\u{FF5B}'..='\u{FF65}' => Class::CjkPunctuation,
        _ => Class::Word,
    }
}

/// Differs from Rust's notion by the byte order mark (included) and U+0085 (excluded).
fn is_javascript_whitespace(character: char) -> bool {
    character == '\u{FEFF}' || (character != '\u{85}' && character.is_whitespace())
}

fn is_cjk(character: char) -> bool {
    matches!(
        character,
        '\u{1100}'..='\u{11FF}'
            | '\u{2E80}'..='\u{2EFF}'
            | '\u{3000}'..='\u{30FF}'
            | '\u{3130}'..='\u{318F}'
            | '\u{31C0}'..='\u{31EF}'
            | '\u{3200}'..='\u{4DBF}'
            | '\u{4E00}'..='\u{9FFF}'
            | '\u{A960}'..='\u{A97F}'
            | '\u{AC00}'..='\u{D7FF}'
            | '\u{FF00}'..='\u{FFEF}'
    )
}

fn is_kana(character: char) -> bool {
    matches!(character, '\u{3040}'..='\u{30FF}')
}

fn is_hangul(character: char) -> bool {
    matches!(
        character,
        '\u{1100}'..='\u{11FF}'
            | '\u{3130}'..='\u{318F}'
            | '\u{A960}'..='\u{A97F}'
            | '\u{AC00}'..='\u{D7FF}'
    )
}

/// Whether a character has the Unicode property `Emoji_Component`.
fn is_emoji_component(character: char) -> bool {
    matches!(
        character,
        '#' | '*'
            | '0'..='9'
            | '\u{200D}'
            | '\u{20E3}'
            | '\u{FE0F}'
            | '\u{1F1E6}'..='\u{1F1FF}'
            | '\u{1F3FB}'..='\u{1F3FF}'
            | '\u{1F9B0}'..='\u{1F9B3}'
            | '\u{E0020}'..='\u{E007F}'
    )
}

/// Whether a character has the Unicode property `Extended_Pictographic`.
fn is_pictograph(character: char) -> bool {
    let code_point = character as u32;
    let index = PICTOGRAPHS.partition_point(|&(_, last)| last < code_point);
    PICTOGRAPHS.get(index).is_some_and(|&(first, _)| first <= code_point)
}

/// The code points with the property `Extended_Pictographic` in Unicode 17.0, as inclusive
/// ranges in ascending order.
const PICTOGRAPHS: [(u32, u32); 156] = [
    (0x00A9, 0x00A9),
    (0x00AE, 0x00AE),
    (0x203C, 0x203C),
    (0x2049, 0x2049),
    (0x2122, 0x2122),
    (0x2139, 0x2139),
    (0x2194, 0x2199),
    (0x21A9, 0x21AA),
    (0x231A, 0x231B),
    (0x2328, 0x2328),
    (0x23CF, 0x23CF),
    (0x23E9, 0x23F3),
    (0x23F8, 0x23FA),
    (0x24C2, 0x24C2),
    (0x25AA, 0x25AB),
    (0x25B6, 0x25B6),
    (0x25C0, 0x25C0),
    (0x25FB, 0x25FE),
    (0x2600, 0x2604),
    (0x260E, 0x260E),
    (0x2611, 0x2611),
    (0x2614, 0x2615),
    (0x2618, 0x2618),
    (0x261D, 0x261D),
    (0x2620, 0x2620),
    (0x2622, 0x2623),
    (0x2626, 0x2626),
    (0x262A, 0x262A),
    (0x262E, 0x262F),
    (0x2638, 0x263A),
    (0x2640, 0x2640),
    (0x2642, 0x2642),
    (0x2648, 0x2653),
    (0x265F, 0x2660),
    (0x2663, 0x2663),
    (0x2665, 0x2666),
    (0x2668, 0x2668),
    (0x267B, 0x267B),
    (0x267E, 0x267F),
    (0x2692, 0x2697),
    (0x2699, 0x2699),
    (0x269B, 0x269C),
    (0x26A0, 0x26A1),
    (0x26A7, 0x26A7),
    (0x26AA, 0x26AB),
    (0x26B0, 0x26B1),
    (0x26BD, 0x26BE),
    (0x26C4, 0x26C5),
    (0x26C8, 0x26C8),
    (0x26CE, 0x26CF),
    (0x26D1, 0x26D1),
    (0x26D3, 0x26D4),
    (0x26E9, 0x26EA),
    (0x26F0, 0x26F5),
    (0x26F7, 0x26FA),
    (0x26FD, 0x26FD),
    (0x2702, 0x2702),
    (0x2705, 0x2705),
    (0x2708, 0x270D),
    (0x270F, 0x270F),
    (0x2712, 0x2712),
    (0x2714, 0x2714),
    (0x2716, 0x2716),
    (0x271D, 0x271D),
    (0x2721, 0x2721),
    (0x2728, 0x2728),
    (0x2733, 0x2734),
    (0x2744, 0x2744),
    (0x2747, 0x2747),
    (0x274C, 0x274C),
    (0x274E, 0x274E),
    (0x2753, 0x2755),
    (0x2757, 0x2757),
    (0x2763, 0x2764),
    (0x2795, 0x2797),
    (0x27A1, 0x27A1),
    (0x27B0, 0x27B0),
    (0x27BF, 0x27BF),
    (0x2934, 0x2935),
    (0x2B05, 0x2B07),
    (0x2B1B, 0x2B1C),
    (0x2B50, 0x2B50),
    (0x2B55, 0x2B55),
    (0x3030, 0x3030),
    (0x303D, 0x303D),
    (0x3297, 0x3297),
    (0x3299, 0x3299),
    (0x1F004, 0x1F004),
    (0x1F02C, 0x1F02F),
    (0x1F094, 0x1F09F),
    (0x1F0AF, 0x1F0B0),
    (0x1F0C0, 0x1F0C0),
    (0x1F0CF, 0x1F0D0),
    (0x1F0F6, 0x1F0FF),
    (0x1F170, 0x1F171),
    (0x1F17E, 0x1F17F),
    (0x1F18E, 0x1F18E),
    (0x1F191, 0x1F19A),
    (0x1F1AE, 0x1F1E5),
    (0x1F201, 0x1F20F),
    (0x1F21A, 0x1F21A),
    (0x1F22F, 0x1F22F),
    (0x1F232, 0x1F23A),
    (0x1F23C, 0x1F23F),
    (0x1F249, 0x1F25F),
    (0x1F266, 0x1F321),
    (0x1F324, 0x1F393),
    (0x1F396, 0x1F397),
    (0x1F399, 0x1F39B),
    (0x1F39E, 0x1F3F0),
    (0x1F3F3, 0x1F3F5),
    (0x1F3F7, 0x1F3FA),
    (0x1F400, 0x1F4FD),
    (0x1F4FF, 0x1F53D),
    (0x1F549, 0x1F54E),
    (0x1F550, 0x1F567),
    (0x1F56F, 0x1F570),
    (0x1F573, 0x1F57A),
    (0x1F587, 0x1F587),
    (0x1F58A, 0x1F58D),
    (0x1F590, 0x1F590),
    (0x1F595, 0x1F596),
    (0x1F5A4, 0x1F5A5),
    (0x1F5A8, 0x1F5A8),
    (0x1F5B1, 0x1F5B2),
    (0x1F5BC, 0x1F5BC),
    (0x1F5C2, 0x1F5C4),
    (0x1F5D1, 0x1F5D3),
    (0x1F5DC, 0x1F5DE),
    (0x1F5E1, 0x1F5E1),
    (0x1F5E3, 0x1F5E3),
    (0x1F5E8, 0x1F5E8),
    (0x1F5EF, 0x1F5EF),
    (0x1F5F3, 0x1F5F3),
    (0x1F5FA, 0x1F64F),
    (0x1F680, 0x1F6C5),
    (0x1F6CB, 0x1F6D2),
    (0x1F6D5, 0x1F6E5),
    (0x1F6E9, 0x1F6E9),
    (0x1F6EB, 0x1F6F0),
    (0x1F6F3, 0x1F6FF),
    (0x1F7DA, 0x1F7FF),
    (0x1F80C, 0x1F80F),
    (0x1F848, 0x1F84F),
    (0x1F85A, 0x1F85F),
    (0x1F888, 0x1F88F),
    (0x1F8AE, 0x1F8AF),
    (0x1F8BC, 0x1F8BF),
    (0x1F8C2, 0x1F8CF),
    (0x1F8D9, 0x1F8FF),
    (0x1F90C, 0x1F93A),
    (0x1F93C, 0x1F945),
    (0x1F947, 0x1F9FF),
    (0x1FA58, 0x1FA5F),
    (0x1FA6E, 0x1FAFF),
    (0x1FC00, 0x1FFFD),
];
