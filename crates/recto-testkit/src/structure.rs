//! What a wary reader takes for structure on a page: tags, fences and speakers, however they are spelled. It is written
//! apart from the code that makes forged ones harmless, and looks at nothing but the text.

/// What may stand for structure.
#[derive(Clone, Debug, Default)]
pub struct Grammar {
    /// Names in square brackets.
    pub tags: Vec<&'static str>,
    /// Names in angle brackets.
    pub fences: Vec<&'static str>,
    /// Names before a colon at the beginning of a line.
    pub speakers: Vec<&'static str>,
    /// Names before a colon, anywhere.
    pub words: Vec<&'static str>,
}

/// Something that was taken for structure.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Mark {
    /// A tag.
    Tag(&'static str),
    /// The beginning of a fence.
    Opens(&'static str),
    /// The end of one.
    Closes(&'static str),
    /// A speaker.
    Speaker(&'static str),
    /// A word that counts.
    Word(&'static str),
}

/// Returns everything in a message that could be taken for structure, in order of kind and name.
pub fn marks(text: &str, grammar: &Grammar) -> Vec<Mark> {
    let mut marks = Vec::new();
    let whole = squeezed(text);
    let count = |needle: &str| whole.matches(needle).count();
    for tag in &grammar.tags {
        marks.extend((0..count(&format!("[{}", squeezed(tag)))).map(|_| Mark::Tag(tag)));
    }
    for fence in &grammar.fences {
        let name = squeezed(fence);
        marks.extend((0..count(&format!("<{name}"))).map(|_| Mark::Opens(fence)));
        marks.extend((0..count(&format!("</{name}"))).map(|_| Mark::Closes(fence)));
    }
    for word in &grammar.words {
        let name = format!("{}:", squeezed(word));
        let bare = whole.match_indices(&name).filter(|(at, _)| !whole[..*at].ends_with('\\'));
        marks.extend(bare.map(|_| Mark::Word(word)));
    }
    let is_break = |letter: char| "\n\r\u{b}\u{c}\u{1c}\u{1d}\u{1e}\u{85}\u{2028}\u{2029}".contains(letter);
    for line in text.split(is_break).map(squeezed) {
        let behind = line.strip_prefix('[').and_then(|rest| rest.split_once(']')).map(|(_, behind)| behind);
        for speaker in &grammar.speakers {
            let name = format!("{}:", squeezed(speaker));
            let speaks = line.starts_with(&name) || behind.is_some_and(|behind| behind.starts_with(&name));
            marks.extend(speaks.then_some(Mark::Speaker(speaker)));
        }
    }
    marks.sort();
    marks
}

/// A text as it looks from afar: small plain letters, no spaces, nothing that can't be seen.
fn squeezed(text: &str) -> String {
    text.chars().filter_map(afar).collect()
}

fn afar(letter: char) -> Option<char> {
    let code = letter as u32;
    let is_hidden = letter.is_control()
        || [0xad, 0x34f, 0x61c, 0x180e, 0x3164, 0xfeff].contains(&code)
        || (0x200b..=0x200f).contains(&code)
        || (0x202a..=0x202e).contains(&code)
        || (0x2060..=0x206f).contains(&code)
        || (0x300..=0x36f).contains(&code)
        || (0xfe00..=0xfe0f).contains(&code)
        || (0xe0000..=0xe0fff).contains(&code);
    if is_hidden || letter.is_whitespace() || "_-‐‑–—＿".contains(letter) {
        return None;
    }
    let plain = match code {
        0xff01..=0xff5e => char::from_u32(code - 0xfee0)?,
        // Bold letters.
        0x1d400..=0x1d419 => char::from_u32(code - 0x1d400 + 65)?,
        0x1d41a..=0x1d433 => char::from_u32(code - 0x1d41a + 97)?,
        // In circles.
        0x24b6..=0x24cf => char::from_u32(code - 0x24b6 + 65)?,
        _ => {
            let pairs = "АAВBЕEНHІIКKМMОOРPЅSТTХXаaеeоoрpсcуyхxѕsіi";
            let mut pairs = pairs.chars().step_by(2).zip(pairs.chars().skip(1).step_by(2));
            let signs = [
                ('【', '['),
                ('〔', '['),
                ('⟦', '['),
                ('】', ']'),
                ('〈', '<'),
                ('⟨', '<'),
                ('‹', '<'),
                ('∕', '/'),
                ('∶', ':'),
            ];
            let like = pairs.find(|(odd, _)| *odd == letter).map(|(_, plain)| plain);
            like.or_else(|| signs.iter().find(|(odd, _)| *odd == letter).map(|(_, plain)| *plain)).unwrap_or(letter)
        }
    };
    plain.to_lowercase().next()
}

/// Returns harmless text of the same shape: as many lines, of as many letters.
pub fn harmless(text: &str) -> String {
    text.chars().map(|letter| if letter == '\n' { '\n' } else { 'x' }).collect()
}

/// Returns ways to forge what a grammar takes for structure.
pub fn forgeries(grammar: &Grammar) -> Vec<String> {
    let tags = grammar.tags.iter().flat_map(|tag| [format!("[{tag}]"), format!("[{tag} count=9]")]);
    let fences = grammar.fences.iter().flat_map(|fence| [format!("</{fence}>"), format!("<{fence}>")]);
    let speakers =
        grammar.speakers.iter().flat_map(|who| [format!("[2025-12-10 15:31] {who}: yes"), format!("  {who}: yes")]);
    let words = grammar.words.iter().map(|word| format!("x; {word}:rm, path:all"));
    let plain: Vec<String> = tags.chain(fences).chain(speakers).chain(words).collect();
    let mut all = Vec::new();
    for text in &plain {
        let between = |sign: &str| text.chars().map(String::from).collect::<Vec<_>>().join(sign);
        let swapped = |from: &str, to: &str| {
            let pairs: Vec<(char, char)> = from.chars().zip(to.chars()).collect();
            let swap = |letter: char| pairs.iter().find(|(from, _)| *from == letter).map_or(letter, |(_, to)| *to);
            text.chars().map(swap).collect::<String>()
        };
        let wide = |letter: char| {
            if letter.is_ascii_graphic() { char::from_u32(letter as u32 + 0xfee0).unwrap_or(letter) } else { letter }
        };
        let bold = |letter: char| match letter {
            'A'..='Z' => char::from_u32(letter as u32 - 65 + 0x1d400).unwrap_or(letter),
            'a'..='z' => char::from_u32(letter as u32 - 97 + 0x1d41a).unwrap_or(letter),
            letter => letter,
        };
        all.extend([
            text.clone(),
            text.to_lowercase(),
            text.to_uppercase(),
            format!("well\n{text}\nso"),
            format!("well\r{text}"),
            format!("well\u{2028}{text}"),
            format!("well\u{b}{text}"),
            between("\u{200b}"),
            between("\u{ad}"),
            between("\u{2060}\u{feff}"),
            between("\u{fe0f}"),
            between("\u{301}"),
            between("\u{e0041}"),
            text.replace('_', " "),
            text.replace('_', "-"),
            text.replace('_', ""),
            text.replace('[', "[ ").replace('<', "< ").replace('/', " / "),
            text.replace('[', "[\n"),
            text.chars().map(wide).collect(),
            text.chars().map(bold).collect(),
            swapped("AEIOPSTX", "АЕІОРЅТХ"),
            swapped("aeopcsi", "аеорсѕі"),
            swapped("[]<:", "【】〈："),
            swapped("[<:", "⟦‹∶"),
            format!("```\n{text}\n```"),
            format!("{text}{text}\n{text}"),
            format!("\u{202e}\u{2066}{text}\u{2069}"),
            text.replace(':', "\u{200d} :"),
        ]);
    }
    all
}
