//! Transcripts that are not part of the project: found beside it, or where `RECTO_SHARED` says.

use std::io::Write;
use std::path::{Path, PathBuf};

/// Returns a folder of shared data, or says loudly that the test is skipped.
pub fn folder(name: &str, test: &str) -> Option<PathBuf> {
    let beside = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared");
    let root = std::env::var_os("RECTO_SHARED").map_or(beside, PathBuf::from);
    let folder = root.join(name);
    if folder.is_dir() {
        return Some(folder);
    }
    skipped(&format!("{test}: no {name} in the shared folder (set RECTO_SHARED)"));
    None
}

/// Says that a test was skipped: on stderr, and in the file that `scripts/test` prints at the end.
#[expect(clippy::print_stderr, reason = "a skipped test must be heard")]
pub fn skipped(what: &str) {
    eprintln!("SKIPPED: {what}");
    let file = std::env::var_os("RECTO_SKIPPED").map(|path| std::fs::OpenOptions::new().append(true).open(path));
    if let Some(Ok(mut file)) = file {
        // Losing this line must not fail the test; the one on stderr was written.
        drop(writeln!(file, "SKIPPED: {what}"));
    }
}

/// Returns the JSONL files of a folder, in order.
pub fn jsonl(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path());
    let mut files: Vec<_> = entries.filter(|path| path.extension().is_some_and(|it| it == "jsonl")).collect();
    files.sort();
    files
}
