//! Shell commands: those that plainly read, search or write one file are told as such, the rest as commands that run.
//!
//! This is no shell. A command with anything that a shell would work out (variables, patterns, several commands) is
//! taken as it stands, so that only the very same command is the same.

use super::{Deed, Digest, Hasher, ToolUse, USES_MAX, path_in};

/// How a patch begins.
pub(super) const PATCH: &str = "*** Begin Patch";
/// Longer commands are not looked into: they carry a script or a text.
const COMMAND_BYTES_MAX: usize = 4_096;
/// How many lines `head` shows.
const HEAD_LINES: u32 = 10;
/// Commands that look for something and change nothing.
const SEARCHES: [&str; 9] = ["grep", "egrep", "rg", "ag", "find", "fd", "ls", "tree", "wc"];
/// What may stand behind a command without changing what it is about.
const HARMLESS: [&str; 2] = ["2>/dev/null", "2>&1"];

/// Returns what a command does.
pub(super) fn uses(command: &str, folder: Option<&str>) -> Vec<ToolUse> {
    if command.contains(PATCH) && command.contains("apply_patch") {
        return patched(command, folder);
    }
    let command = command.trim();
    if command.is_empty() {
        return Vec::new();
    }
    let (within, plain) = without_cd(folder, command);
    let found = if plain.len() <= COMMAND_BYTES_MAX { looked_into(plain, within.as_deref()) } else { None };
    let found = found.or_else(|| written(plain, within.as_deref()));
    let target = || Some(command.into());
    vec![found.unwrap_or_else(|| ToolUse {
        deed: Deed::Run,
        target: target(),
        range: None,
        is_whole: true,
        same: same(plain, within.as_deref()),
    })]
}

/// Returns the files that a patch touches; one that it adds is written whole.
pub(super) fn patched(patch: &str, folder: Option<&str>) -> Vec<ToolUse> {
    let marks = [("*** Add File: ", Deed::Write), ("*** Update File: ", Deed::Edit), ("*** Delete File: ", Deed::Edit)];
    let touched = patch
        .lines()
        .filter_map(|line| marks.iter().find_map(|(mark, deed)| Some((*deed, line.trim_start().strip_prefix(mark)?))));
    let of_file = |(deed, path): (Deed, &str)| ToolUse {
        deed,
        target: Some(path_in(folder, path)),
        range: None,
        is_whole: deed == Deed::Write,
        same: same(patch, folder),
    };
    touched.map(of_file).take(USES_MAX).collect()
}

/// Returns the words of a command as one; of `bash -lc WORDS` only those.
pub(super) fn joined(words: &[&str]) -> String {
    match words {
        [shell, flags, script] if is_shell(shell) && flags.starts_with('-') && flags.ends_with('c') => {
            (*script).to_string()
        }
        // A word with a space in it would not be one word any more.
        words => {
            let quoted = words.iter().map(|word| match word.contains([' ', '\t', '|', ';', '&', '<', '>']) {
                true if !word.contains('\'') => format!("'{word}'"),
                _ => (*word).to_string(),
            });
            quoted.collect::<Vec<_>>().join(" ")
        }
    }
}

fn is_shell(word: &str) -> bool {
    matches!(word.rsplit('/').next(), Some("bash" | "sh" | "zsh"))
}

fn same(command: &str, folder: Option<&str>) -> Digest {
    let mut hasher = Hasher::new();
    hasher.text("run");
    hasher.text(command);
    hasher.maybe(folder);
    hasher.finish()
}

/// Takes `cd FOLDER &&` from the front.
fn without_cd<'c>(folder: Option<&str>, command: &'c str) -> (Option<String>, &'c str) {
    let moved = command.strip_prefix("cd ").and_then(|rest| rest.split_once("&&"));
    let moved = moved.and_then(|(to, rest)| match &words(to)?[..] {
        [to] => Some((path_in(folder, to).to_string(), rest.trim())),
        _ => None,
    });
    match moved {
        Some((folder, rest)) => (Some(folder), rest),
        None => (folder.map(str::to_string), command),
    }
}

/// What a plain command reads or searches.
fn looked_into(command: &str, folder: Option<&str>) -> Option<ToolUse> {
    let (first, second) = match command.split_once(" | ") {
        Some((first, second)) => (words(first)?, Some(words(second)?)),
        None => (words(command)?, None),
    };
    let first: Vec<&str> = first.iter().map(String::as_str).collect();
    let tail = first.iter().rev().take_while(|word| HARMLESS.contains(word)).count();
    let first = &first[..first.len() - tail];
    let second: Option<Vec<&str>> = second.as_ref().map(|words| words.iter().map(String::as_str).collect());
    let same = same(command, folder);
    let read = |path: &str, range: Option<(u32, u32)>, is_whole| {
        let target = Some(path_in(folder, path));
        Some(ToolUse { deed: Deed::Read, target, range, is_whole, same })
    };
    let (path, lines) = match (first, second.as_deref()) {
        (words, None) => shown(words)?,
        // A file piped through something that shows some lines of it.
        (words, Some(cut)) => match (shown(words), window(cut)) {
            (Some((Seen::File(path), Lines::All)), Some(lines)) => (Seen::File(path), lines),
            (Some((Seen::Found(place), _)), _) => (Seen::Found(place), Lines::Some),
            _ => return None,
        },
    };
    match (path, lines) {
        (Seen::File(path), Lines::All) => read(&path, None, true),
        (Seen::File(path), Lines::Between(first, last)) => read(&path, Some((first, last)), false),
        (Seen::File(path), Lines::Some) => read(&path, None, false),
        (Seen::Found(place), lines) => {
            let target = place.map(|place| path_in(folder, &place));
            Some(ToolUse { deed: Deed::Search, target, range: None, is_whole: lines == Lines::All, same })
        }
    }
}

/// What a command shows.
enum Seen {
    /// A file.
    File(String),
    /// What was found at a place.
    Found(Option<String>),
}

/// How much of it.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Lines {
    All,
    Between(u32, u32),
    Some,
}

fn shown(words: &[&str]) -> Option<(Seen, Lines)> {
    let file = |path: &str| Seen::File(path.to_string());
    match words {
        ["cat", path] | ["cat" | "nl", "-n" | "-ba" | "-A", path] if is_path(path) => Some((file(path), Lines::All)),
        ["sed" | "head" | "tail", rest @ .., path] if is_path(path) && !rest.is_empty() => {
            let cut = [&words[..1], rest].concat();
            Some((file(path), window(&cut)?))
        }
        ["head", path] if is_path(path) => Some((file(path), Lines::Between(1, HEAD_LINES))),
        ["tail", path] if is_path(path) => Some((file(path), Lines::Some)),
        // The window of a file that SWE-agent's editor shows.
        ["open", path] | ["open", path, _] if is_path(path) => Some((file(path), Lines::Some)),
        ["git", "grep", rest @ ..] => Some((Seen::Found(place(rest, 1)), Lines::All)),
        [search, rest @ ..] if SEARCHES.contains(search) => {
            let has_pattern = !matches!(*search, "find" | "ls" | "tree" | "wc");
            Some((Seen::Found(place(rest, usize::from(has_pattern))), Lines::All))
        }
        _ => None,
    }
}

/// The first word that is no option, behind so many others that are none.
fn place(words: &[&str], skipped: usize) -> Option<String> {
    words.iter().filter(|word| !word.starts_with('-')).nth(skipped).map(ToString::to_string)
}

/// Whether a word is one path, not an option, and nothing that stands for several.
fn is_path(word: &str) -> bool {
    !word.is_empty() && !word.starts_with('-') && !word.contains(['*', '?', '[', '{'])
}

/// The lines that `sed -n A,Bp`, `head -n N` or `tail` let through.
fn window(words: &[&str]) -> Option<Lines> {
    match words {
        ["sed", "-n", lines] => {
            let lines = lines.strip_suffix('p')?;
            let (first, last) = lines.split_once(',').unwrap_or((lines, lines));
            let last = if last == "$" { u32::MAX } else { last.parse().ok()? };
            Some(Lines::Between(first.parse().ok()?, last))
        }
        ["head"] => Some(Lines::Between(1, HEAD_LINES)),
        ["head", "-n", lines] => Some(Lines::Between(1, lines.parse().ok()?)),
        ["head", lines] => {
            let lines = lines.strip_prefix("-n").or_else(|| lines.strip_prefix('-'))?;
            Some(Lines::Between(1, lines.parse().ok()?))
        }
        ["tail", ..] => Some(Lines::Some),
        _ => None,
    }
}

/// The file that `cat > FILE <<END` or `create FILE` writes whole.
fn written(command: &str, folder: Option<&str>) -> Option<ToolUse> {
    let line = command.lines().next()?;
    let ends = command.lines().next_back()?.trim();
    let path = match line.split_once("<<") {
        Some((before, after)) => {
            let (end, more) = after.trim_start_matches('-').trim_start().split_once(' ').unwrap_or((after, ""));
            let end = end.trim_matches(['-', ' ', '\'', '"', '\\']);
            // What comes behind the text would be another command.
            let path = if more.is_empty() { before.strip_prefix("cat")? } else { more };
            path.trim().strip_prefix('>').filter(|_| ends == end && before.starts_with("cat"))?
        }
        None => {
            let words = words(command)?;
            match &words.iter().map(String::as_str).collect::<Vec<_>>()[..] {
                ["create", path] => return Some(whole(path, command, folder)),
                _ => return None,
            }
        }
    };
    match &words(path)?[..] {
        [path] if !path.starts_with("/dev/") => Some(whole(path, command, folder)),
        _ => None,
    }
}

fn whole(path: &str, command: &str, folder: Option<&str>) -> ToolUse {
    let target = Some(path_in(folder, path));
    ToolUse { deed: Deed::Write, target, range: None, is_whole: true, same: same(command, folder) }
}

/// The words of one plain command without quotes, or `None` where a shell would have something to work out.
fn words(command: &str) -> Option<Vec<String>> {
    let mut words = Vec::new();
    let (mut word, mut quote, mut is_open) = (String::new(), None, false);
    let mut letters = command.trim().chars().peekable();
    while let Some(letter) = letters.next() {
        match (letter, quote) {
            (letter, Some(open)) if letter == open => quote = None,
            ('$' | '`', Some('"')) => return None,
            ('\\', Some('"')) if letters.peek() == Some(&'"') => word.extend(letters.next()),
            (letter, Some(_)) => word.push(letter),
            ('\'' | '"', None) => (quote, is_open) = (Some(letter), true),
            (' ' | '\t', None) => {
                words.extend(is_open.then(|| std::mem::take(&mut word)));
                is_open = false;
            }
            ('$' | '`' | '\\' | ';' | '(' | ')' | '#' | '\n', None) => return None,
            (letter, None) => {
                word.push(letter);
                is_open = true;
            }
        }
    }
    words.extend(is_open.then_some(word));
    // Quoted operators are taken for real ones: then the command is one that runs, which is never wrong.
    let is_operator = |word: &&String| word.starts_with(['>', '<', '|', '&']) || word.ends_with(['>', '&']);
    let is_plain = words.iter().filter(is_operator).all(|word| HARMLESS.contains(&word.as_str()));
    (quote.is_none() && is_plain && !words.iter().any(|word| word.contains("&&"))).then_some(words)
}
