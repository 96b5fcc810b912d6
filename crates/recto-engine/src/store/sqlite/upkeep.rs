//! Backups while others write, putting one back, and giving room back to the disk.

use super::{Sqlite, fault, make_folder, new_file, schema};
use crate::error::{Error, Kind};
use rusqlite::Connection;
use std::fs::{self, File};
use std::path::{Path, PathBuf};

/// What to do with a file that is there already.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Existing {
    /// Leave it, and say so.
    Refuse,
    /// Put the new one in its place, once that is complete.
    Replace,
}

impl Sqlite {
    /// Writes a copy of one moment to a file, while others go on writing. What was erased is not in it.
    pub async fn backup(&self, to: &Path, existing: Existing) -> Result<(), Error> {
        let (from, to, is_read_only) = (self.path.clone(), to.to_owned(), self.writer.is_none());
        let task = tokio::task::spawn_blocking(move || {
            let connection = if is_read_only { schema::read_only(&from)? } else { schema::reader(&from)? };
            copy(&connection, &to, existing)
        });
        task.await.unwrap_or_else(|error| Err(Kind::Defect { what: format!("a backup failed: {error}") }.into()))
    }

    /// Puts a backup where a store is to be, after it was checked. Nobody may use the store meanwhile.
    pub fn restore(from: &Path, to: &Path, existing: Existing) -> Result<(), Error> {
        schema::refuse_others(from)?;
        let connection = schema::immutable(from)?;
        let damages = damages(&connection)?;
        if let Some(damage) = damages.first() {
            return Err(fault::corrupt(format!("the backup {}: {damage}", from.display())));
        }
        let is_there = fs::exists(to).map_err(|error| fault::file(to.display().to_string(), &error))?;
        if is_there && existing == Existing::Refuse {
            return Err(Kind::Exists { what: to.display().to_string() }.into());
        }
        if is_there {
            settle(to)?;
        } else {
            make_folder(to)?;
        }
        copy(&connection, to, existing)
    }

    /// Writes the file anew without the room that erased words have left; others wait meanwhile.
    pub async fn compact(&self) -> Result<(), Error> {
        let work = |db: &Connection| schema::patiently(|| Ok(db.execute_batch("VACUUM")?));
        self.writer()?.alone(work).await?;
        self.checkpoint().await
    }
}

/// Returns what SQLite's own check finds.
pub(super) fn damages(connection: &Connection) -> Result<Vec<String>, Error> {
    let mut statement = connection.prepare("PRAGMA integrity_check(100)")?;
    let lines = statement.query_map([], |row| row.get::<_, String>(0))?.collect::<rusqlite::Result<Vec<_>>>()?;
    Ok(lines.into_iter().filter(|line| line != "ok").collect())
}

/// Writes a copy under another name first, so that the file is there as a whole or not at all.
pub(super) fn copy(connection: &Connection, to: &Path, existing: Existing) -> Result<(), Error> {
    let failed = |error: &std::io::Error| fault::file(to.display().to_string(), error);
    if existing == Existing::Refuse && fs::exists(to).map_err(|error| failed(&error))? {
        return Err(Kind::Exists { what: to.display().to_string() }.into());
    }
    let part = schema::beside(to, ".part");
    let _ = fs::remove_file(&part);
    let written = write_part(connection, &part);
    if let Err(error) = written {
        let _ = fs::remove_file(&part);
        return Err(error);
    }
    match existing {
        // A link fails if the name was taken meanwhile; a rename would not.
        Existing::Refuse => {
            fs::hard_link(&part, to).map_err(|error| failed(&error))?;
            fs::remove_file(&part).map_err(|error| failed(&error))?;
        }
        Existing::Replace => fs::rename(&part, to).map_err(|error| failed(&error))?,
    }
    sync_folder(to)
}

fn write_part(connection: &Connection, part: &Path) -> Result<(), Error> {
    let failed = |error: std::io::Error| fault::file(part.display().to_string(), &error);
    let file = new_file(part).map_err(failed)?;
    let name = part.to_str().ok_or_else(|| Kind::NotFound { what: format!("UTF-8 name in {}", part.display()) })?;
    // A copy writes to another file, which a connection that only reads would refuse.
    connection.execute_batch("PRAGMA query_only = OFF")?;
    connection.execute("VACUUM INTO ?1", [name])?;
    file.sync_all().map_err(failed)
}

fn sync_folder(path: &Path) -> Result<(), Error> {
    let folder = path.parent().filter(|it| !it.as_os_str().is_empty()).map_or(PathBuf::from("."), Path::to_owned);
    let failed = |error: std::io::Error| fault::file(folder.display().to_string(), &error);
    File::open(&folder).and_then(|folder| folder.sync_all()).map_err(failed)
}

/// Makes sure that nobody uses a store that is about to be replaced, and that no log of it is left: SQLite would apply
/// it to the file that takes its place.
fn settle(path: &Path) -> Result<(), Error> {
    let alone = Connection::open(path).map_err(Error::from).and_then(|connection| {
        schema::patiently(|| {
            let sql = "PRAGMA journal_mode = DELETE";
            Ok(connection.query_row(sql, [], |row| row.get::<_, String>(0))?)
        })
    });
    match alone {
        Err(error) if error.is_busy() => return Err(Kind::Busy { what: "the store is in use".into() }.into()),
        // What is too damaged to be opened is replaced all the same.
        _ => {}
    }
    for suffix in ["-wal", "-shm", "-journal"] {
        match fs::remove_file(schema::beside(path, suffix)) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                return Err(fault::file(path.display().to_string(), &error));
            }
            _ => {}
        }
    }
    Ok(())
}
