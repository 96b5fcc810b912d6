//! Rust code as tokens: enough to find brackets, names and paths outside strings and comments.

/// A word or one other character of Rust code. Comments are left out, `///` and `//!` stand for
/// docs, and `""` stands for every string and character.
#[derive(Clone, Copy)]
pub(super) struct Token<'a> {
    pub(super) text: &'a str,
    pub(super) line: usize,
}

pub(super) fn tokens(code: &str) -> Vec<Token<'_>> {
    let mut tokens = Vec::new();
    let (mut rest, mut line) = (code, 1);
    while !rest.is_empty() {
        let (lexeme, after) = rest.split_at(lexeme_length(rest));
        if let Some(text) = token_text(lexeme) {
            tokens.push(Token { text, line });
        }
        line += lexeme.matches('\n').count();
        rest = after;
    }
    tokens
}

fn token_text(lexeme: &str) -> Option<&str> {
    let starts = |prefix| lexeme.starts_with(prefix);
    if starts("//!") || starts("/*!") {
        Some("//!")
    } else if starts("///") && !starts("////") || starts("/**") && !starts("/***") && lexeme != "/**/" {
        Some("///")
    } else if lexeme.trim().is_empty() || starts("//") || starts("/*") {
        None
    } else if lexeme.len() > 1 && lexeme.ends_with(['"', '\'', '#']) {
        Some("\"\"")
    } else {
        Some(lexeme)
    }
}

fn lexeme_length(rest: &str) -> usize {
    if rest.starts_with("//") {
        return rest.find('\n').unwrap_or(rest.len());
    }
    if rest.starts_with("/*") {
        return block_comment_length(rest);
    }
    let unprefixed = rest.trim_start_matches(['b', 'c', 'r']);
    let prefix = &rest[..rest.len() - unprefixed.len()];
    let unhashed = unprefixed.trim_start_matches('#');
    let hashes = &unprefixed[..unprefixed.len() - unhashed.len()];
    match prefix {
        "r" | "br" | "cr" if unhashed.starts_with('"') => {
            let start = prefix.len() + hashes.len() + 1;
            let end = format!("\"{hashes}");
            return rest[start..].find(&end).map_or(rest.len(), |at| start + at + end.len());
        }
        "" | "b" | "c" if unprefixed.starts_with('"') => {
            return prefix.len() + quoted_length(unprefixed);
        }
        "" | "b" if unprefixed.starts_with('\'') => {
            return prefix.len() + character_or_lifetime_length(unprefixed);
        }
        _ => {}
    }
    match word_length(rest) {
        0 => rest.chars().next().map_or(0, char::len_utf8),
        length => length,
    }
}

fn word_length(rest: &str) -> usize {
    rest.find(|letter: char| !letter.is_alphanumeric() && letter != '_').unwrap_or(rest.len())
}

fn block_comment_length(rest: &str) -> usize {
    let (mut depth, mut at) = (0, 0);
    while at < rest.len() {
        let pair = rest.as_bytes().get(at..at + 2);
        match pair {
            Some(b"/*") => depth += 1,
            Some(b"*/") => depth -= 1,
            _ => {
                at += 1;
                continue;
            }
        }
        at += 2;
        if depth == 0 {
            return at;
        }
    }
    rest.len()
}

/// The length of a string or character that starts and ends with its first character.
fn quoted_length(rest: &str) -> usize {
    let bytes = rest.as_bytes();
    let mut at = 1;
    while at < bytes.len() && bytes[at] != bytes[0] {
        at += if bytes[at] == b'\\' { 2 } else { 1 };
    }
    (at + 1).min(rest.len())
}

fn character_or_lifetime_length(rest: &str) -> usize {
    let mut letters = rest.chars().skip(1);
    match (letters.next(), letters.next()) {
        (Some('\\'), _) => quoted_length(rest),
        (Some(letter), Some('\'')) => letter.len_utf8() + 2,
        _ => 1 + word_length(&rest[1..]),
    }
}

/// The places where the pattern, itself Rust code, starts.
pub(super) fn matches(tokens: &[Token<'_>], pattern: &str) -> impl Iterator<Item = usize> {
    (0..tokens.len()).filter(move |&at| starts_with(&tokens[at..], pattern))
}

fn starts_with(tokens: &[Token<'_>], pattern: &str) -> bool {
    let pattern = self::tokens(pattern);
    tokens.len() >= pattern.len() && tokens.iter().zip(&pattern).all(|(token, expected)| token.text == expected.text)
}

/// Where the bracket at `open` closes; the last token if it never does.
pub(super) fn group_end(tokens: &[Token<'_>], open: usize) -> usize {
    let mut depth = 0;
    for (at, token) in tokens.iter().enumerate().skip(open) {
        match token.text {
            "(" | "[" | "{" => depth += 1,
            ")" | "]" | "}" => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return at;
        }
    }
    tokens.len() - 1
}

pub(super) struct Function<'a> {
    pub(super) name: &'a str,
    pub(super) first_line: usize,
    pub(super) last_line: usize,
}

pub(super) fn functions<'a>(tokens: &[Token<'a>]) -> Vec<Function<'a>> {
    let mut functions = Vec::new();
    for at in matches(tokens, "fn") {
        let name = tokens.get(at + 1).map_or("", |token| token.text);
        let is_named = word_length(name) > 0;
        if let (true, Some(body)) = (is_named, body_start(tokens, at + 2)) {
            let last_line = tokens[group_end(tokens, body)].line;
            functions.push(Function { name, first_line: tokens[at].line, last_line });
        }
    }
    functions
}

fn body_start(tokens: &[Token<'_>], signature: usize) -> Option<usize> {
    let mut at = signature;
    loop {
        match tokens.get(at)?.text {
            "{" => return Some(at),
            ";" | ")" | "]" | "}" => return None,
            "(" | "[" => at = group_end(tokens, at) + 1,
            _ => at += 1,
        }
    }
}

/// Where `#[cfg(test)] mod tests { … }` starts, if the file ends with it.
pub(super) fn unit_tests_at(tokens: &[Token<'_>]) -> Option<usize> {
    matches(tokens, "#[cfg(test)]").find(|&start| {
        let mut at = start;
        while starts_with(&tokens[at..], "#[") {
            at = group_end(tokens, at + 1) + 1;
        }
        starts_with(&tokens[at..], "mod tests {") && group_end(tokens, at + 2) == tokens.len() - 1
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(code: &str) -> String {
        tokens(code).iter().map(|token| token.text).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn strings_characters_and_comments_hide_what_is_in_them() {
        assert_eq!(texts(r##"a("}", b"\\", "\"{", c"x")"##), r#"a ( "" , "" , "" , "" )"#);
        assert_eq!(texts("r\"\\\" r#\"a\" {\"# br##\"}\"#\"##"), r#""" "" """#);
        assert_eq!(texts(r"'{' '\'' b'}' '\u{7b}' '…' 'a"), r#""" "" "" "" "" 'a"#);
        assert_eq!(texts("x: &'static str, r#type, bar"), "x : & 'static str , r # type , bar");
        assert_eq!(texts("a // {\nb /* { /* } */ { */ c"), "a b c");
    }

    #[test]
    fn docs_are_kept_apart_from_comments() {
        assert_eq!(texts("//! a\n/// b\n//// c\n// d\n"), "//! ///");
        assert_eq!(texts("/*! a */ /** b */ /*** c */ /**/ /* d */"), "//! ///");
    }

    #[test]
    fn lines_are_counted_through_strings_and_comments() {
        let lines = |code| tokens(code).iter().map(|token| token.line).collect::<Vec<_>>();
        assert_eq!(lines("a\n\"x\ny\" b /*\n\n*/ c"), [1, 2, 3, 5]);
    }

    #[test]
    fn functions_end_at_their_own_brace() {
        let code = "
            fn one(a: [u8; 2], f: fn(u8) -> u8) -> [u8; 2] {
                match '{' { _ => \"}\" }
            }
            trait T { fn declared(&self) -> u8; fn two() {} }
            const F: fn() = one; // fn three() {
        ";
        let found: Vec<_> = functions(&tokens(code)).iter().map(|it| (it.name, it.first_line, it.last_line)).collect();
        assert_eq!(found, [("one", 2, 4), ("two", 5, 5)]);
    }

    #[test]
    fn only_tests_at_the_end_are_unit_tests() {
        let line = |code: &str| {
            let tokens = tokens(code);
            unit_tests_at(&tokens).map(|at| tokens[at].line)
        };
        let tests = "fn a() {}\n#[cfg(test)]\n#[expect(x)]\nmod tests { fn b() { \"}\" } }\n";
        assert_eq!(line(tests), Some(2));
        assert_eq!(line(&format!("{tests}fn c() {{}}\n")), None);
        assert_eq!(line("#[cfg(test)]\nmod tests;\n"), None);
        assert_eq!(line("#[cfg(test)]\nfn only_here() {}\n"), None);
        assert_eq!(line(""), None);
    }
}
