//! A file that is there whole or not at all: written beside its place, and moved there at the end.

use crate::codes::Code;
use crate::failure::{Failure, cannot_write};
use crate::interrupt;
use std::fs::{self, File, OpenOptions};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

/// A file on its way. If it is dropped before [`finish`](Draft::finish), nothing stays of it.
#[derive(Debug)]
pub(crate) struct Draft {
    out: BufWriter<File>,
    place: PathBuf,
    /// Where it is written; `None` for a device or pipe, which can't be replaced and is written directly.
    temporary: Option<PathBuf>,
}

impl Draft {
    /// Starts a file that will stand at `place`, or replace what stands there.
    pub(crate) fn of(place: &Path) -> Result<Draft, Failure> {
        let failed = |error: io::Error| cannot_write(place.display(), &error);
        let found = match fs::metadata(place) {
            Ok(found) => Some(found),
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            Err(error) => return Err(failed(error)),
        };
        if found.as_ref().is_some_and(|found| !found.is_file() && !found.is_dir()) {
            let out = OpenOptions::new().write(true).open(place).map_err(failed)?;
            return Ok(Draft { out: BufWriter::new(out), place: place.into(), temporary: None });
        }
        // A link stays a link: what it points at is replaced.
        let place = if found.is_some() { fs::canonicalize(place).map_err(failed)? } else { place.to_path_buf() };
        let Some(name) = place.file_name().filter(|_| !found.as_ref().is_some_and(fs::Metadata::is_dir)) else {
            return Err(Failure::of(Code::IsFolder, format!("cannot write to {}: it is a folder", place.display()))
                .hinting("name a file in it"));
        };
        let mut beside = name.to_os_string();
        beside.push(format!(".{}.partial", std::process::id()));
        let temporary = place.with_file_name(beside);
        let file = OpenOptions::new().write(true).create_new(true).open(&temporary).map_err(failed)?;
        interrupt::set_unfinished(&temporary);
        let draft = Draft { out: BufWriter::new(file), place, temporary: Some(temporary) };
        if let Some(found) = found {
            draft.out.get_ref().set_permissions(found.permissions()).map_err(failed)?;
        }
        Ok(draft)
    }

    /// Appends some bytes.
    pub(crate) fn write(&mut self, bytes: &[u8]) -> Result<(), Failure> {
        self.out.write_all(bytes).map_err(|error| cannot_write(self.place.display(), &error))
    }

    /// Puts the file in its place.
    pub(crate) fn finish(mut self) -> Result<(), Failure> {
        self.moved().map_err(|error| cannot_write(self.place.display(), &error))
    }

    fn moved(&mut self) -> io::Result<()> {
        self.out.flush()?;
        if let Some(temporary) = &self.temporary {
            self.out.get_ref().sync_all()?;
            fs::rename(temporary, &self.place)?;
            self.temporary = None;
            interrupt::clear_unfinished();
        }
        Ok(())
    }
}

impl Drop for Draft {
    fn drop(&mut self) {
        if let Some(temporary) = &self.temporary {
            // The failure that led here is worth more words than one to tidy up.
            drop(fs::remove_file(temporary));
            interrupt::clear_unfinished();
        }
    }
}
