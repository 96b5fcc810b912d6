//! A copy of a store as it is, made and looked at before its schema is brought up to date.

use super::upkeep::{Existing, copy, damages};
use super::{Sqlite, fault, schema};
use crate::error::{Error, Kind};
use rusqlite::Connection;
use std::fs;
use std::path::{Path, PathBuf};

/// How many copies of one schema may stand beside a store; none is ever replaced.
const COPIES_MAX: usize = 100;

/// A copy of a store that is older than what we know.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Copied {
    /// The schema that the store has.
    pub from: i64,
    /// The schema that it is brought to when it is opened.
    pub to: i64,
    /// The copy, whose schema is still the older one.
    pub file: PathBuf,
    /// How long it is.
    pub bytes: u64,
}

impl Sqlite {
    /// Writes a copy beside a store whose schema is older than ours, and makes sure that it holds the same. Returns
    /// nothing if the store is up to date, and changes nothing in either case: opening it does. Whoever writes to the
    /// store meanwhile is noticed, and the copy is not made.
    pub fn copy_before_upgrade(path: &Path) -> Result<Option<Copied>, Error> {
        schema::refuse_others(path)?;
        let store = schema::reader(path)?;
        let from = schema::number(&store, "PRAGMA user_version")?;
        if from >= schema::VERSION {
            return Ok(None);
        }
        let written = data_version(&store)?;
        let file = free_name(path, from)?;
        copy(&store, &file, Existing::Refuse)?;
        let checked = same(&store, &file).and_then(|()| match data_version(&store)? == written {
            true => Ok(()),
            false => Err(Kind::Busy { what: "somebody writes to the store; stop them first".into() }.into()),
        });
        if let Err(error) = checked {
            // What may lack something is no copy.
            let _ = fs::remove_file(&file);
            return Err(error);
        }
        let bytes = fs::metadata(&file).map_err(|error| fault::file(file.display().to_string(), &error))?.len();
        Ok(Some(Copied { from, to: schema::VERSION, file, bytes }))
    }
}

/// Changes whenever another connection has written.
fn data_version(store: &Connection) -> rusqlite::Result<i64> {
    schema::number(store, "PRAGMA data_version")
}

/// A name beside the store that nothing has.
fn free_name(path: &Path, from: i64) -> Result<PathBuf, Error> {
    for copy in 1..=COPIES_MAX {
        let number = if copy == 1 { String::new() } else { format!("-{copy}") };
        let file = schema::beside(path, &format!(".schema-{from}{number}"));
        if !fs::exists(&file).map_err(|error| fault::file(file.display().to_string(), &error))? {
            return Ok(file);
        }
    }
    let what = format!("{COPIES_MAX} copies of {} with schema {from}", path.display());
    Err(Kind::Exists { what }.into())
}

/// Fails unless a copy is whole, of the same schema, and has as many rows in every table.
fn same(store: &Connection, file: &Path) -> Result<(), Error> {
    let copied = schema::immutable(file)?;
    let differs = |what: String| fault::corrupt(format!("the copy {}: {what}", file.display()));
    if let Some(damage) = damages(&copied)?.first() {
        return Err(differs(damage.clone()));
    }
    for sql in ["PRAGMA application_id", "PRAGMA user_version", "SELECT count(*) FROM sqlite_schema"] {
        if schema::number(store, sql)? != schema::number(&copied, sql)? {
            return Err(differs(format!("{sql} differs")));
        }
    }
    let mut statement = store.prepare("SELECT name FROM sqlite_schema WHERE type = 'table'")?;
    let tables = statement.query_map([], |row| row.get::<_, String>(0))?.collect::<rusqlite::Result<Vec<_>>>()?;
    for table in tables {
        let sql = format!("SELECT count(*) FROM \"{}\"", table.replace('"', "\"\""));
        if schema::number(store, &sql)? != schema::number(&copied, &sql)? {
            return Err(differs(format!("table {table} has another number of rows")));
        }
    }
    Ok(())
}
