//! What PostgreSQL's errors mean to a caller, in one place.

use crate::error::{Error, Kind};
use std::error::Error as StdError;
use tokio_postgres::error::{DbError, SqlState};

/// Why a statement that was prepared is not there.
const POOLER: &str = "a pooler that keeps no prepared statements stands before the server; leave `prepared=yes` out of \
                      the address";

impl From<tokio_postgres::Error> for Error {
    fn from(error: tokio_postgres::Error) -> Error {
        kind(&error).into()
    }
}

/// Returns the kind of an error. *Unreachable* means that the connection is of no use any more, *busy* that the same may
/// succeed in a transaction of its own.
pub(super) fn kind(error: &tokio_postgres::Error) -> Kind {
    match error.as_db_error() {
        Some(told) => of_server(told),
        // What can't be read or written is a value of ours; everything else is the connection.
        None if is_value(error) => Kind::Corrupt { what: told_with_causes(error) },
        None => Kind::Unreachable { what: told_with_causes(error) },
    }
}

fn of_server(error: &DbError) -> Kind {
    let what = format!("{} ({})", error.message(), error.code().code());
    let code = error.code();
    let class = code.code().get(..2).unwrap_or_default();
    match class {
        // Somebody else was quicker, or waits for us; a unique key that was taken meanwhile is the same.
        "40" => Kind::Busy { what },
        _ if [SqlState::UNIQUE_VIOLATION, SqlState::LOCK_NOT_AVAILABLE, SqlState::QUERY_CANCELED].contains(code) => {
            Kind::Busy { what }
        }
        _ if *code == SqlState::DISK_FULL => Kind::Full { what },
        // The server that was the first one is it no longer; another connection leads to the one that is.
        _ if *code == SqlState::READ_ONLY_SQL_TRANSACTION => Kind::Unreachable { what },
        _ if *code == SqlState::IDLE_IN_TRANSACTION_SESSION_TIMEOUT => Kind::Unreachable { what },
        _ if *code == SqlState::INSUFFICIENT_PRIVILEGE => Kind::ReadOnly { what },
        "08" | "57" => Kind::Unreachable { what },
        "53" => Kind::Busy { what },
        "54" => Kind::TooLarge { what },
        "XX" => Kind::Corrupt { what },
        _ if class == "26" || *code == SqlState::DUPLICATE_PSTATEMENT => {
            Kind::Io { what: "the store".into(), why: format!("{what}: {POOLER}") }
        }
        "28" | "3D" => Kind::Io { what: "the store".into(), why: what },
        _ => Kind::Defect { what },
    }
}

/// Returns whether trying again can't help: nobody is let in, or there is no such database.
pub(super) fn is_final(error: &tokio_postgres::Error) -> bool {
    let code = error.as_db_error().map(|told| told.code().code());
    code.is_some_and(|code| ["28", "3D"].iter().any(|class| code.starts_with(class)))
}

fn is_value(error: &tokio_postgres::Error) -> bool {
    let told = error.to_string();
    told.starts_with("error deserializing column") || told.starts_with("error serializing parameter")
}

fn told_with_causes(error: &tokio_postgres::Error) -> String {
    let mut told = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        let more = error.to_string();
        if !told.contains(&more) {
            told = format!("{told}: {more}");
        }
        cause = error.source();
    }
    told
}

/// Returns the error of stored data that can't be read back.
pub(super) fn corrupt(what: impl Into<String>) -> Error {
    Kind::Corrupt { what: what.into() }.into()
}
