//! Files and stdin, read as named conversations.

use crate::codes::Code;
use crate::failure::{Failure, cannot_read};
use crate::talk;
use recto::error::Place;
use recto::nearest::nearest;
use recto::transcript::{self, Conversation};
use std::collections::HashSet;
use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};

/// What kind of text a file should hold.
#[derive(Debug)]
pub(crate) struct Kind {
    bytes_max: u64,
    /// What to do if it is larger.
    size_hint: &'static str,
    /// What to do if it is a folder.
    folder_hint: &'static str,
}

/// How an export of a store begins.
pub(crate) const STORE_EXPORT: &str = "{\"conversation\":{\"recto\":";
pub(crate) const TRANSCRIPT: Kind = Kind {
    bytes_max: 1 << 30,
    size_hint: "split it into several files",
    folder_hint: "name one of its files; `recto replay` and `recto import` take folders",
};
pub(crate) const POLICY: Kind =
    Kind { bytes_max: 1 << 20, size_hint: "is it a policy?", folder_hint: "name a TOML or JSON file in it" };
pub(crate) const FACTS: Kind =
    Kind { bytes_max: 1 << 26, size_hint: "is it a file of facts?", folder_hint: "name a JSON file in it" };
pub(crate) const MODELS: Kind =
    Kind { bytes_max: 1 << 20, size_hint: "is it a file of models?", folder_hint: "name a TOML or JSON file in it" };
pub(crate) const BODY: Kind =
    Kind { bytes_max: 1 << 30, size_hint: "is it a request body?", folder_hint: "name a JSON file in it" };
pub(crate) const WORDS: Kind =
    Kind { bytes_max: 1 << 24, size_hint: "name it, and let it be read in parts", folder_hint: "name a file in it" };
pub(crate) const CONFIG: Kind =
    Kind { bytes_max: 1 << 20, size_hint: "is it a configuration file?", folder_hint: "name a TOML file in it" };
/// How the names of transcripts end, in a folder.
const EXTENSIONS: [&str; 3] = ["json", "jsonl", "traj"];
/// How archives begin.
const ZIP: &[u8] = b"PK\x03\x04";
/// How many ids are listed where one must be picked.
const IDS_LISTED_MAX: usize = 10;
/// How many near ids are named where one is unknown.
const IDS_NEAR_MAX: usize = 3;

/// A conversation and what to call it.
#[derive(Debug)]
pub(crate) struct Named {
    /// Its id; without one, the name of its file, and where the file has several, what it is called there or its number.
    pub(crate) name: String,
    pub(crate) conversation: Conversation,
}

/// Reads all conversations of a file, or of stdin if it is `-`.
pub(crate) fn conversations(path: &Path) -> Result<Vec<Named>, Failure> {
    named(path, &text(path, &TRANSCRIPT)?)
}

/// Reads all conversations of what a file holds.
pub(crate) fn named(path: &Path, text: &str) -> Result<Vec<Named>, Failure> {
    if text.starts_with(STORE_EXPORT) {
        return Err(Failure::of(Code::BadTranscript, format!("cannot read {}", shown(path)))
            .because("it is an export of a store, not a transcript")
            .hinting("`recto import` keeps it in a store; then name the conversation instead of the file"));
    }
    let found = transcript::read(text).map_err(|error| {
        Failure::of_core(Code::BadTranscript, &error).during(format!("cannot read {}", shown(path)))
    })?;
    let stem = if is_stdin(path) { "stdin".into() } else { path.file_stem().unwrap_or_default().to_string_lossy() };
    let several = found.len() > 1;
    let mut within = HashSet::new();
    let mut name = |at: usize, conversation: &Conversation| match (&conversation.id, &conversation.within) {
        (Some(id), _) => id.to_string(),
        (None, Some(name)) if several && within.insert(name.clone()) => format!("{stem}#{name}"),
        (None, _) if several => format!("{stem}#{}", at + 1),
        (None, _) => stem.to_string(),
    };
    let named = found.into_iter().enumerate();
    Ok(named.map(|(at, conversation)| Named { name: name(at, &conversation), conversation }).collect())
}

/// Returns the one conversation that is meant.
pub(crate) fn pick(mut all: Vec<Named>, id: Option<&str>, path: &Path) -> Result<Named, Failure> {
    if let Some(id) = id {
        if !all.iter().any(|named| named.name == id) {
            return Err(unknown(id, all.iter().map(|named| &*named.name)));
        }
        all.retain(|named| named.name == id);
    }
    match (all.pop(), all.len()) {
        (Some(only), 0) => Ok(only),
        (_, others) if id.is_some() => {
            Err(Failure::of(Code::SameId, format!("{} conversations of {} have this id", others + 1, shown(path)))
                .hinting("ids must differ to be picked by"))
        }
        (last, others) => {
            let names = all.iter().chain(&last).map(|named| &*named.name);
            let listed: Vec<&str> = names.take(IDS_LISTED_MAX).collect();
            let more = (others + 1).saturating_sub(listed.len());
            let more = if more > 0 { format!(", and {more} more") } else { String::new() };
            Err(Failure::of(Code::SeveralConversations, format!("{} has {} conversations", shown(path), others + 1))
                .hinting(format!("pick one with --conversation: {}{more}", listed.join(", "))))
        }
    }
}

/// Returns the refusal of an id that no conversation has.
pub(crate) fn unknown<'n>(id: &str, names: impl IntoIterator<Item = &'n str>) -> Failure {
    let near = nearest(id, names, IDS_NEAR_MAX);
    Failure::of(Code::NoConversation, format!("no conversation {id:?}"))
        .hinting(format!("the nearest ids: {}", near.join(", ")))
}

/// Says what had to be replaced when conversations of a file were read.
pub(crate) fn replaced<'c>(path: &Path, conversations: impl IntoIterator<Item = &'c Conversation>) -> Option<String> {
    let places: Vec<Place> = conversations.into_iter().flat_map(|it| it.replaced.iter().copied()).collect();
    let first = places.first()?;
    let what = match places.len() {
        1 => "1 lone surrogate was".into(),
        several => format!("{several} lone surrogates were"),
    };
    let Place { line, column } = first;
    Some(format!("{}: {what} replaced by U+FFFD, first at line {line}, column {column}", shown(path)))
}

/// Says on stderr what [`replaced`] has to say.
pub(crate) fn note_replaced(path: &Path, conversation: &Conversation) {
    for note in &conversation.notes {
        talk::note(&format!("{}: {note}", shown(path)));
    }
    if let Some(note) = replaced(path, [conversation]) {
        talk::note(&note);
    }
}

/// Returns the files that are meant: a folder stands for its *.json, *.jsonl and *.traj, sorted by name.
pub(crate) fn files(paths: &[PathBuf]) -> Result<Vec<PathBuf>, Failure> {
    let mut files = Vec::new();
    for path in paths {
        if is_stdin(path) || !path.is_dir() {
            files.push(path.clone());
            continue;
        }
        let failed = |error: io::Error| cannot_read(path.display(), &error);
        let mut within = Vec::new();
        for entry in fs::read_dir(path).map_err(failed)? {
            let file = entry.map_err(failed)?.path();
            let is_transcript = file.extension().is_some_and(|it| EXTENSIONS.iter().any(|extension| it == *extension));
            if is_transcript && file.is_file() {
                within.push(file);
            }
        }
        if within.is_empty() {
            return Err(Failure::of(
                Code::NoTranscripts,
                format!("no *.json, *.jsonl or *.traj in {}", path.display()),
            ));
        }
        within.sort();
        files.extend(within);
    }
    if files.iter().filter(|file| is_stdin(file)).count() > 1 {
        return Err(Failure::of(Code::StdinTwice, "stdin can be read only once").hinting("give `-` a single time"));
    }
    Ok(files)
}

/// Refuses to write to a file that is also read.
pub(crate) fn check_apart(place: &Path, inputs: &[PathBuf], hint: &str) -> Result<(), Failure> {
    let own = fs::canonicalize(place).ok();
    if own.is_some() && inputs.iter().any(|input| fs::canonicalize(input).ok() == own) {
        let what = format!("{} is one of the files to read", place.display());
        return Err(Failure::of(Code::OverInput, what).hinting(hint));
    }
    Ok(())
}

/// Returns whether a path stands for stdin.
pub(crate) fn is_stdin(path: &Path) -> bool {
    path.as_os_str() == "-"
}

/// Returns how a path is called in messages.
pub(crate) fn shown(path: &Path) -> String {
    if is_stdin(path) { "stdin".into() } else { path.display().to_string() }
}

/// Reads a text of this kind from a file, or from stdin if it is `-`.
pub(crate) fn text(path: &Path, kind: &Kind) -> Result<String, Failure> {
    if is_stdin(path) { bounded(io::stdin().lock(), path, kind) } else { file_text(path, kind) }
}

/// Reads a text of this kind from a file, whatever it is called.
pub(crate) fn file_text(path: &Path, kind: &Kind) -> Result<String, Failure> {
    let failed = |error: io::Error| cannot_read(path.display(), &error);
    let file = File::open(path).map_err(failed)?;
    let found = file.metadata().map_err(failed)?;
    if found.is_dir() {
        return Err(Failure::of(Code::IsFolder, format!("{} is a folder", path.display())).hinting(kind.folder_hint));
    }
    if found.len() > kind.bytes_max {
        return Err(too_large(path, kind));
    }
    bounded(file, path, kind)
}

fn bounded(from: impl Read, path: &Path, kind: &Kind) -> Result<String, Failure> {
    let mut bytes = Vec::new();
    from.take(kind.bytes_max + 1).read_to_end(&mut bytes).map_err(|error| cannot_read(shown(path), &error))?;
    if bytes.len() as u64 > kind.bytes_max {
        return Err(too_large(path, kind));
    }
    String::from_utf8(bytes).map_err(|error| not_utf8(path, &error))
}

fn too_large(path: &Path, kind: &Kind) -> Failure {
    let most = kind.bytes_max >> 20;
    Failure::of(Code::TooLarge, format!("{} is too large: at most {most} MiB are read", shown(path)))
        .hinting(kind.size_hint)
}

fn not_utf8(path: &Path, error: &std::string::FromUtf8Error) -> Failure {
    let (bytes, at) = (error.as_bytes(), error.utf8_error().valid_up_to());
    let good = std::str::from_utf8(&bytes[..at]).unwrap_or_default();
    let Place { line, column } = Place::at(good, at);
    let byte = bytes.get(at).copied().unwrap_or_default();
    let what = format!("line {line}, column {column}: byte 0x{byte:02X} is not valid UTF-8");
    let hint = match bytes {
        [0xFF, 0xFE, ..] | [0xFE, 0xFF, ..] => "it looks like UTF-16: convert it to UTF-8",
        _ if bytes.starts_with(ZIP) => {
            "it looks like an archive, as Inspect's *.eval are: `inspect log dump FILE` writes one as JSON"
        }
        _ => "convert it to UTF-8",
    };
    Failure::of(Code::NotUtf8, what).during(format!("cannot read {}", shown(path))).hinting(hint)
}
