//! `recto export`: everything that is kept of a conversation, line by line.

use crate::args::ExportArgs;
use crate::codes::Code;
use crate::config::Config;
use crate::draft::Draft;
use crate::failure::{Failure, cannot_write};
use crate::kept::Kept;
use crate::progress::Progress;
use crate::{interrupt, source, talk};
use recto::redact::{Redact, Screen};
use recto_engine::{ConversationId, Error, Tenant};
use serde::Serialize;
use std::fs;
use std::path::{Path, PathBuf};

/// How many conversations are listed at once.
const PAGE_ROWS: usize = 500;
/// How much is gathered before it goes to stdout, in bytes.
const CHUNK_BYTES: usize = 64 * 1024;
/// The longest name of a file, in bytes; a longer one is cut, and told apart by its digest.
const FILE_NAME_BYTES_MAX: usize = 200;

/// Writes one conversation, or all of them.
pub(crate) fn run(args: &ExportArgs, config: &Config) -> Result<(), Failure> {
    let to = args.output.as_deref().filter(|place| !source::is_stdin(place));
    if args.json && to.is_none() && !args.all {
        return Err(Failure::of(Code::Conflict, "--json cannot be used where the export itself goes to stdout")
            .hinting("write the export to a file with -o"));
    }
    let kept = Kept::open(&args.store, config)?;
    if let (Some(place), Some(store)) = (to, kept.file()) {
        source::check_apart(place, &[store.path().into()], "write to another file")?;
    }
    interrupt::promise_checks();
    let redact = if args.redacted { Redact::everything() } else { Redact::nothing() };
    let screen = kept.run(kept.engine.screen(&Tenant::default(), &redact))?;
    let exported = match (&args.name, to) {
        (Some(name), Some(place)) => vec![one(&kept, name, &screen, Out::File(Draft::of(place)?, place.into()))?],
        (Some(name), None) => vec![one(&kept, name, &screen, Out::Stdout(Vec::new()))?],
        (None, place) => all(&kept, &screen, place.unwrap_or(Path::new(".")))?,
    };
    if args.json {
        return talk::json(&Output { exported });
    }
    if to.is_some() || args.all {
        let entries: u64 = exported.iter().map(|row| row.entries).sum();
        talk::note(&format!("conversations exported: {}, entries: {entries}", exported.len()));
    }
    Ok(())
}

/// What `--json` prints; `recto export --help` tells its shape.
#[derive(Serialize)]
struct Output {
    exported: Vec<Row>,
}

#[derive(Serialize)]
struct Row {
    conversation: String,
    file: Option<String>,
    entries: u64,
}

/// Where an export goes.
enum Out {
    Stdout(Vec<u8>),
    File(Draft, PathBuf),
}

impl Out {
    fn line(&mut self, line: &str) -> Result<(), Failure> {
        match self {
            Out::Stdout(gathered) => {
                gathered.extend_from_slice(line.as_bytes());
                gathered.push(b'\n');
                if gathered.len() < CHUNK_BYTES { Ok(()) } else { talk::data(&std::mem::take(gathered)) }
            }
            Out::File(draft, _) => draft.write(line.as_bytes()).and_then(|()| draft.write(b"\n")),
        }
    }

    /// Puts the file in its place, and returns its path.
    fn finish(self) -> Result<Option<PathBuf>, Failure> {
        match self {
            Out::Stdout(gathered) => talk::data(&gathered).map(|()| None),
            Out::File(draft, path) => draft.finish().map(|()| Some(path)),
        }
    }
}

fn one(kept: &Kept, name: &str, screen: &Screen, mut out: Out) -> Result<Row, Failure> {
    kept.conversation(name)?;
    let mut failed: Option<Failure> = None;
    let put = |line: &str| {
        out.line(&screen.json(line)).map_err(|failure| {
            failed = Some(failure);
            Error::from(recto::Error::input("the export can't be written"))
        })
    };
    let done = kept.run(kept.engine.export(&kept.at(name), put));
    let entries = match failed {
        Some(failure) => return Err(failure),
        None => done?,
    };
    let file = out.finish()?.map(|path| path.display().to_string());
    Ok(Row { conversation: name.into(), file, entries })
}

fn all(kept: &Kept, screen: &Screen, folder: &Path) -> Result<Vec<Row>, Failure> {
    fs::create_dir_all(folder).map_err(|error| cannot_write(folder.display(), &error))?;
    let progress = Progress::on_stderr("conversations");
    let mut exported = Vec::new();
    let mut after: Option<ConversationId> = None;
    loop {
        let page = kept.run(kept.engine.list(&Tenant::default(), after.as_ref(), PAGE_ROWS))?;
        let Some(last) = page.last() else { return Ok(exported) };
        after = Some(last.id.clone());
        progress.expect(page.len(), "");
        for conversation in &page {
            interrupt::check()?;
            let name = conversation.id.as_str();
            let place = folder.join(file_name(name));
            match Failure::unless_gone(one(kept, name, screen, Out::File(Draft::of(&place)?, place.clone())))? {
                Some(row) => exported.push(row),
                None => talk::note(&format!("{name}: erased meanwhile, so it is not exported")),
            }
            progress.step();
        }
    }
}

/// A name that every file system takes, and that no other conversation has.
fn file_name(name: &str) -> String {
    let mut safe = String::new();
    for (at, byte) in name.bytes().enumerate() {
        match byte {
            b'a'..=b'z' | b'0'..=b'9' | b'-' | b'_' => safe.push(char::from(byte)),
            b'.' if at > 0 => safe.push('.'),
            // Some file systems don't tell capital letters from small ones.
            byte => safe.push_str(&format!("%{byte:02X}")),
        }
    }
    if safe.len() > FILE_NAME_BYTES_MAX {
        let digest = recto::digest::Digest::of(name.as_bytes());
        safe.truncate(FILE_NAME_BYTES_MAX - digest.to_string().len() - 1);
        safe.push_str(&format!("~{digest}"));
    }
    format!("{safe}.jsonl")
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn names_of_files_are_safe_and_differ_where_conversations_do() {
        assert_eq!(file_name("monday-2.chat"), "monday-2.chat.jsonl");
        assert_eq!(file_name("../a/b"), "%2E.%2Fa%2Fb.jsonl");
        let long = ["x".repeat(600), format!("{}y", "x".repeat(599)), "É".repeat(250)];
        let odd = ["a", "A", "a/b", "a%2Fb", "..", ".", "con#1", "a b", "a\\b", "a:b", "é", "e\u{301}", "\n", "a~b"];
        let names: Vec<String> = odd.iter().map(ToString::to_string).chain(long).collect();
        let files: BTreeSet<String> = names.iter().map(|name| file_name(name).to_lowercase()).collect();
        assert_eq!(files.len(), names.len());
        for file in &files {
            assert!(file.len() <= 255 && !file.starts_with('.') && !file.contains(['/', '\\', ':', '\n']), "{file}");
        }
    }
}
