//! What letters look like: other scripts, other widths, other brackets, and what can't be seen at all.

/// What a letter looks like.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Look {
    /// A letter or digit: the small plain one that it looks like.
    Letter(char),
    /// An opening square bracket.
    Bracket,
    /// A closing square bracket.
    Closing,
    /// An opening angle bracket.
    Angle,
    /// A slash.
    Slash,
    /// A colon.
    Colon,
    /// Something that only parts letters: a space, a line, a hyphen.
    Parting,
    /// Nothing: it can't be seen, or is the backslash that we put in ourselves.
    Nothing,
    /// Something else.
    Other,
}

/// Returns what a letter looks like.
pub(super) fn of(letter: char) -> Look {
    if letter.is_ascii() {
        return of_ascii(letter);
    }
    if is_unseen(letter) {
        return Look::Nothing;
    }
    if letter.is_whitespace() {
        return Look::Parting;
    }
    if let Some(sign) = sign(letter) {
        return sign;
    }
    match plain(letter) {
        Some(plain) => of_ascii(plain),
        None if letter.is_alphanumeric() => Look::Letter(letter.to_lowercase().next().unwrap_or(letter)),
        None => Look::Other,
    }
}

/// Returns what a letter looks like where letters that nobody sees are read all the same, as some models do.
pub(super) fn of_hidden(letter: char) -> Look {
    match letter {
        '\u{e0020}'..='\u{e007e}' => of_ascii(shifted(letter, 0xe0000)),
        letter => of(letter),
    }
}

/// Returns whether a line ends with a letter, for whoever reads it.
pub(super) fn breaks_line(letter: char) -> bool {
    matches!(letter, '\n' | '\r' | '\u{b}' | '\u{c}' | '\u{1c}'..='\u{1e}' | '\u{85}' | '\u{2028}' | '\u{2029}')
}

fn of_ascii(letter: char) -> Look {
    match letter {
        'a'..='z' | '0'..='9' => Look::Letter(letter),
        'A'..='Z' => Look::Letter(letter.to_ascii_lowercase()),
        '[' => Look::Bracket,
        ']' => Look::Closing,
        '<' => Look::Angle,
        '/' => Look::Slash,
        ':' => Look::Colon,
        '_' | '-' | '.' => Look::Parting,
        letter if letter.is_ascii_whitespace() || breaks_line(letter) => Look::Parting,
        '\\' | '\0'..='\u{1f}' | '\u{7f}' => Look::Nothing,
        _ => Look::Other,
    }
}

/// Whether a letter takes no place, or stands upon the one before it.
fn is_unseen(letter: char) -> bool {
    if breaks_line(letter) {
        return false;
    }
    matches!(letter,
        '\u{80}'..='\u{9f}' | '\u{ad}' | '\u{300}'..='\u{36f}' | '\u{483}'..='\u{489}' | '\u{61c}' | '\u{115f}'
        | '\u{1160}' | '\u{17b4}' | '\u{17b5}' | '\u{180b}'..='\u{180f}' | '\u{1ab0}'..='\u{1aff}'
        | '\u{1dc0}'..='\u{1dff}' | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{206f}'
        | '\u{20d0}'..='\u{20ff}' | '\u{3164}' | '\u{fe00}'..='\u{fe0f}' | '\u{fe20}'..='\u{fe2f}' | '\u{feff}'
        | '\u{ffa0}' | '\u{fff0}'..='\u{fffb}' | '\u{1bca0}'..='\u{1bca3}' | '\u{1d173}'..='\u{1d17a}'
        | '\u{e0000}'..='\u{e0fff}')
}

/// The plain letter, digit or sign that a letter looks like.
fn plain(letter: char) -> Option<char> {
    let nth = |base: u32, first: u8, of: u32| char::from(first + ((letter as u32 - base) % of) as u8);
    Some(match letter {
        // Full width.
        '\u{ff01}'..='\u{ff5e}' => shifted(letter, 0xfee0),
        // Bold, italic, script and the like: alphabets of 26 capitals and 26 small letters, one behind the other.
        '\u{1d400}'..='\u{1d6a3}' if (letter as u32 - 0x1d400) % 52 < 26 => nth(0x1d400, b'a', 52),
        '\u{1d400}'..='\u{1d6a3}' => char::from(b'a' + ((letter as u32 - 0x1d400) % 52 - 26) as u8),
        '\u{1d7ce}'..='\u{1d7ff}' => nth(0x1d7ce, b'0', 10),
        // In circles, in squares, as flags.
        '\u{24b6}'..='\u{24cf}' => nth(0x24b6, b'a', 26),
        '\u{24d0}'..='\u{24e9}' => nth(0x24d0, b'a', 26),
        '\u{249c}'..='\u{24b5}' => nth(0x249c, b'a', 26),
        '\u{1f110}'..='\u{1f129}' => nth(0x1f110, b'a', 26),
        '\u{1f130}'..='\u{1f149}' => nth(0x1f130, b'a', 26),
        '\u{1f150}'..='\u{1f169}' => nth(0x1f150, b'a', 26),
        '\u{1f170}'..='\u{1f189}' => nth(0x1f170, b'a', 26),
        '\u{1f1e6}'..='\u{1f1ff}' => nth(0x1f1e6, b'a', 26),
        letter => like(letter).or_else(|| like(letter.to_lowercase().next()?))?,
    })
}

fn shifted(letter: char, by: u32) -> char {
    char::from_u32(letter as u32 - by).unwrap_or(letter)
}

/// The sign that a letter looks like, which is no plain one itself.
fn sign(letter: char) -> Option<Look> {
    Some(match letter {
        '［' | '【' | '〔' | '〖' | '〘' | '〚' | '⟦' | '⟬' | '❲' | '⁅' | '⦋' | '⦍' | '⦏' | '﹝' | '︻' | '︹'
        | '﹇' | '⎡' | '⌈' | '⌊' | '⎣' => Look::Bracket,
        '］' | '】' | '〕' | '〗' | '〙' | '〛' | '⟧' | '⟭' | '❳' | '⁆' | '⦌' | '⦎' | '⦐' | '﹞' | '︼' | '︺'
        | '﹈' | '⎤' | '⌉' | '⌋' | '⎦' => Look::Closing,
        '＜' | '‹' | '〈' | '《' | '⟨' | '⟪' | '«' | '❬' | '❮' | '❰' | '⧼' | '˂' | 'ᐸ' | '≺' | '﹤' | '〈' | '⋖'
        | '≪' | '≮' => Look::Angle,
        '／' | '∕' | '⁄' | '⧸' | '╱' | '⟋' => Look::Slash,
        '：' | '﹕' | '︰' | '∶' | '꞉' | 'ː' | '˸' | '։' | '׃' | '܃' | '܄' | 'ꓽ' => Look::Colon,
        '＿' | '‿' | '⁀' | '﹏' | '﹍' | '－' | '‐' | '‑' | '‒' | '–' | '—' | '―' | '−' | '﹘' | '﹣' | '·' | '⠀' => {
            Look::Parting
        }
        _ => return None,
    })
}

/// The plain letter that a small or capital one of another script looks like.
fn like(letter: char) -> Option<char> {
    Some(match letter {
        'а' | 'Α' | 'А' | 'ᴀ' | 'ɑ' | 'α' | 'ａ' | 'ª' | 'á' | 'à' | 'â' | 'ä' | 'ã' | 'å' | 'ā' | 'ă' | 'ą' | 'ǎ'
        | 'ȧ' => 'a',
        'В' | 'Β' | 'в' | 'ʙ' | 'Ᏼ' | 'Ƅ' | 'ḃ' => 'b',
        'С' | 'с' | 'Ϲ' | 'ϲ' | 'ᴄ' | 'ⅽ' | 'ç' | 'ć' | 'č' | 'ĉ' | 'ċ' => 'c',
        'ԁ' | 'ᴅ' | 'ⅾ' | 'ď' | 'đ' | 'ḋ' => 'd',
        'Е' | 'е' | 'Ε' | 'є' | 'ᴇ' | 'ℯ' | 'é' | 'è' | 'ê' | 'ë' | 'ē' | 'ĕ' | 'ė' | 'ę' | 'ě' => 'e',
        'Ϝ' | 'ꜰ' | 'ғ' | 'ƒ' | 'ḟ' => 'f',
        'Ԍ' | 'ɡ' | 'ɢ' | 'ġ' | 'ğ' | 'ĝ' | 'ģ' | 'ǧ' => 'g',
        'Н' | 'н' | 'Η' | 'һ' | 'ʜ' | 'ĥ' | 'ħ' | 'ḣ' => 'h',
        'І' | 'і' | 'Ι' | 'ι' | 'ɪ' | 'ı' | 'Ӏ' | 'ⅰ' | 'í' | 'ì' | 'î' | 'ï' | 'ĩ' | 'ī' | 'ĭ' | 'į' | 'ǐ' => {
            'i'
        }
        'Ј' | 'ј' | 'ᴊ' | 'ϳ' | 'ĵ' | 'ǰ' => 'j',
        'К' | 'к' | 'Κ' | 'κ' | 'ᴋ' | 'ķ' | 'ǩ' => 'k',
        'ʟ' | 'ⅼ' | 'ĺ' | 'ļ' | 'ľ' | 'ł' | 'ŀ' => 'l',
        'М' | 'м' | 'Μ' | 'ᴍ' | 'ⅿ' | 'ṁ' => 'm',
        'Ν' | 'ɴ' | 'п' | 'ñ' | 'ń' | 'ņ' | 'ň' | 'ŉ' | 'ṅ' | 'И' => 'n',
        'О' | 'о' | 'Ο' | 'ο' | 'σ' | 'ᴏ' | 'օ' | '०' | 'ó' | 'ò' | 'ô' | 'ö' | 'õ' | 'ø' | 'ō' | 'ŏ' | 'ő' | 'ǒ' => {
            'o'
        }
        'Р' | 'р' | 'Ρ' | 'ρ' | 'ᴘ' | 'ṗ' => 'p',
        'ԛ' | 'Ԛ' | 'ɋ' => 'q',
        'ʀ' | 'г' | 'ŕ' | 'ŗ' | 'ř' | 'ṙ' => 'r',
        'Ѕ' | 'ѕ' | 'ꜱ' | 'ſ' | 'ś' | 'ŝ' | 'ş' | 'š' | 'ș' | 'ṡ' => 's',
        'Т' | 'т' | 'Τ' | 'τ' | 'ᴛ' | 'ţ' | 'ť' | 'ŧ' | 'ț' | 'ṫ' => 't',
        'υ' | 'ս' | 'ᴜ' | 'ú' | 'ù' | 'û' | 'ü' | 'ũ' | 'ū' | 'ŭ' | 'ů' | 'ű' | 'ų' | 'ǔ' => 'u',
        'ѵ' | 'ν' | 'ᴠ' | 'ⅴ' | 'Ѵ' => 'v',
        'ԝ' | 'ᴡ' | 'ω' | 'ŵ' | 'ẁ' | 'ẃ' | 'ẅ' => 'w',
        'Х' | 'х' | 'Χ' | 'χ' | 'ⅹ' | 'ẋ' => 'x',
        'У' | 'у' | 'Υ' | 'γ' | 'ʏ' | 'ý' | 'ÿ' | 'ŷ' | 'ỳ' => 'y',
        'Ζ' | 'ᴢ' | 'ź' | 'ż' | 'ž' => 'z',
        _ => return None,
    })
}
