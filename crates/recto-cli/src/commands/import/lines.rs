//! Exports of a store, told from other files by how they begin, and read line by line.

use crate::failure::{Failure, cannot_read};
use crate::kept::Kept;
use crate::source;
use recto_engine::engine::Imported;
use recto_engine::{ConversationId, Error, Tenant};
use std::fs::File;
use std::io::{self, BufRead, BufReader, Cursor, Read};
use std::path::{Path, PathBuf};

/// The longest line that is read, in bytes.
const LINE_BYTES_MAX: u64 = 1 << 30;

/// A file, by what it holds.
pub(super) enum Export {
    /// An export of a store.
    Lines(Lines),
    /// Something else, as text.
    Other(String),
}

/// The lines of an export.
pub(super) struct Lines {
    path: PathBuf,
    from: Box<dyn BufRead>,
}

impl Export {
    /// Opens a file, or stdin if it is `-`.
    pub(super) fn open(path: &Path) -> Result<Export, Failure> {
        if source::is_stdin(path) {
            let text = source::text(path, &source::TRANSCRIPT)?;
            let is_export = text.starts_with(source::STORE_EXPORT);
            let lines = |text: String| Lines { path: path.into(), from: Box::new(Cursor::new(text.into_bytes())) };
            return Ok(if is_export { Export::Lines(lines(text)) } else { Export::Other(text) });
        }
        let failed = |error: io::Error| cannot_read(path.display(), &error);
        let (mut start, expected) = (Vec::new(), source::STORE_EXPORT.as_bytes());
        let file = File::open(path).map_err(failed)?;
        // A folder or a file that can't be read is told of below, in the words that all commands have for it.
        if file.take(expected.len() as u64).read_to_end(&mut start).is_err() || start != expected {
            return Ok(Export::Other(source::text(path, &source::TRANSCRIPT)?));
        }
        let from = BufReader::new(File::open(path).map_err(failed)?);
        Ok(Export::Lines(Lines { path: path.into(), from: Box::new(from) }))
    }
}

impl Lines {
    /// Keeps what the export holds, under its own name or another.
    pub(super) fn into_store(mut self, kept: &Kept, name: Option<&str>) -> Result<Imported, Failure> {
        let mut failed: Option<Failure> = None;
        let lines = std::iter::from_fn(|| match self.line() {
            Ok(line) => line.map(Ok),
            Err(failure) => {
                failed = Some(failure);
                Some(Err(Error::from(recto::Error::input("the export can't be read"))))
            }
        });
        let done = kept.run(kept.engine.import(&Tenant::default(), name.map(ConversationId::from), lines));
        let done = match failed {
            Some(failure) => Err(failure),
            None => done,
        };
        done.map_err(|failure| failure.during(format!("{} was not imported", source::shown(&self.path))))
    }

    fn line(&mut self) -> Result<Option<String>, Failure> {
        let failed = |error: io::Error| cannot_read(source::shown(&self.path), &error);
        let mut line = String::new();
        let read = (&mut self.from).take(LINE_BYTES_MAX).read_line(&mut line).map_err(failed)?;
        if read == 0 {
            return Ok(None);
        }
        if line.ends_with('\n') {
            line.pop();
        }
        Ok(Some(line))
    }
}
