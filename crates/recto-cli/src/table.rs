//! Text in columns, aligned by how wide a terminal draws it.

use unicode_width::UnicodeWidthStr;

/// How much of a cell is looked at, in characters: some have no width, and could be endless.
const CELL_CHARS_MAX: usize = 400;
const GAP: &str = "  ";

/// On which side of its column a cell stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Side {
    Left,
    Right,
}

/// Returns rows as lines, with their columns aligned.
pub(crate) fn aligned<const N: usize>(rows: &[[String; N]], sides: [Side; N]) -> String {
    let widths: [usize; N] =
        std::array::from_fn(|column| rows.iter().map(|row| row[column].width()).max().unwrap_or(0));
    let line = |row: &[String; N]| {
        let cells = row.iter().zip(widths).zip(sides).map(|((cell, width), side)| {
            let space = " ".repeat(width.saturating_sub(cell.width()));
            if side == Side::Left { format!("{cell}{space}") } else { format!("{space}{cell}") }
        });
        cells.collect::<Vec<_>>().join(GAP).trim_end().to_string()
    };
    rows.iter().map(line).collect::<Vec<_>>().join("\n")
}

/// Returns a text that is at most so wide; what is cut off is told by `…`.
pub(crate) fn cut(text: &str, width_max: usize) -> String {
    let end = text.char_indices().nth(CELL_CHARS_MAX).map_or(text.len(), |(at, _)| at);
    if end == text.len() && text.width() <= width_max {
        return text.into();
    }
    let mut ends = text[..end].char_indices().map(|(at, c)| at + c.len_utf8());
    // Widths of a prefix are not sums: characters can join into one.
    let fitting = ends.rfind(|&end| text[..end].width() < width_max).unwrap_or(0);
    format!("{}…", text[..fitting].trim_end_matches('\u{200d}'))
}

/// Returns a line in pieces that are at most so wide, those after the first with so many spaces before them. It is
/// parted between words; a word that is wider stays whole.
pub(crate) fn folded(line: &str, width_max: usize, indent: usize) -> Vec<String> {
    let mut pieces: Vec<String> = Vec::new();
    let mut piece = String::new();
    for word in words(line) {
        let is_full = piece.width() + word.trim_end().width() > width_max && !piece.trim().is_empty();
        if is_full && !word.trim().is_empty() {
            pieces.push(piece.trim_end().into());
            piece = " ".repeat(indent);
        }
        piece.push_str(word);
    }
    pieces.push(piece.trim_end().into());
    pieces
}

/// Words with the space behind them; the groups of a number are one.
fn words(line: &str) -> Vec<&str> {
    let is_digit = |byte: Option<&u8>| byte.is_some_and(u8::is_ascii_digit);
    let bytes = line.as_bytes();
    let is_within = |space: usize| space > 0 && is_digit(bytes.get(space - 1)) && is_digit(bytes.get(space + 1));
    let ends =
        line.match_indices(' ').map(|(space, _)| space).filter(|space| !is_within(*space)).map(|space| space + 1);
    let mut from = 0;
    let mut words: Vec<&str> = Vec::new();
    for end in ends.chain([line.len()]) {
        words.push(&line[from..end]);
        from = end;
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_as_wide_as_they_look() {
        let row = |name: &str, number: &str| [name.to_string(), number.to_string()];
        let rows = [row("name", "n"), row("山田", "1"), row("cafe\u{301}", "20"), row("👩‍👩‍👧", "3")];
        let lines = aligned(&rows, [Side::Left, Side::Right]);
        assert_eq!(lines, "name   n\n山田   1\ncafe\u{301}  20\n👩‍👩‍👧     3");
        assert!(lines.lines().all(|line| line.width() == 8));
    }

    #[test]
    fn lines_are_folded_between_words() {
        assert_eq!(folded("  a   bc def", 20, 4), ["  a   bc def"]);
        assert_eq!(folded("  a   bc def ghi", 8, 4), ["  a   bc", "    def", "    ghi"]);
        assert_eq!(folded("used 12 730 of", 9, 2), ["used", "  12 730", "  of"]);
        assert_eq!(folded("longerthanthat is", 5, 2), ["longerthanthat", "  is"]);
        assert_eq!(folded("", 5, 2), [""]);
    }

    #[test]
    fn texts_are_cut_by_width_and_between_characters() {
        assert_eq!((cut("12345", 5).as_str(), cut("123456", 5).as_str()), ("12345", "1234…"));
        assert_eq!((cut("山田山", 6).as_str(), cut("山田山", 5).as_str()), ("山田山", "山田…"));
        assert_eq!(cut("山田山", 4), "山…");
        assert_eq!(cut("abe\u{301}\u{302}cd", 4), "abe\u{301}\u{302}…");
        assert!(!cut(&"👩‍👩‍👧".repeat(9), 8).contains("\u{200d}…"));
        let endless = format!("a{}", "\u{301}".repeat(9_999));
        assert!(cut(&endless, 40).chars().count() <= CELL_CHARS_MAX + 1);
    }
}
