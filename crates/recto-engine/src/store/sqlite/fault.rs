//! What SQLite's errors mean to a caller, in one place.

use crate::error::{Error, Kind};
use rusqlite::ErrorCode;
use rusqlite::ffi;
use std::io;

impl From<rusqlite::Error> for Error {
    fn from(error: rusqlite::Error) -> Error {
        kind(&error).into()
    }
}

/// Returns the kind of an error; called once for each caller that waits for the same commit.
pub(super) fn kind(error: &rusqlite::Error) -> Kind {
    let what = error.to_string();
    let rusqlite::Error::SqliteFailure(failure, _) = error else {
        return match error {
            rusqlite::Error::FromSqlConversionFailure(..)
            | rusqlite::Error::IntegralValueOutOfRange(..)
            | rusqlite::Error::InvalidColumnType(..)
            | rusqlite::Error::Utf8Error(..) => Kind::Corrupt { what },
            _ => Kind::Defect { what },
        };
    };
    match failure.code {
        ErrorCode::DiskFull => Kind::Full { what },
        // A write that failed for want of space is told as an I/O error by some file systems.
        ErrorCode::SystemIoFailure if is_no_space() => Kind::Full { what },
        ErrorCode::ReadOnly | ErrorCode::PermissionDenied => Kind::ReadOnly { what },
        ErrorCode::DatabaseCorrupt => Kind::Corrupt { what },
        ErrorCode::NotADatabase => Kind::Foreign { what },
        ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked => Kind::Busy { what },
        ErrorCode::TooBig => Kind::TooLarge { what },
        ErrorCode::CannotOpen | ErrorCode::SystemIoFailure | ErrorCode::FileLockingProtocolFailed => {
            Kind::Io { what: "the store".into(), why: what }
        }
        ErrorCode::Unknown if failure.extended_code == ffi::SQLITE_NOTICE => {
            Kind::Io { what: "the store".into(), why: what }
        }
        _ => Kind::Defect { what },
    }
}

fn is_no_space() -> bool {
    io::Error::last_os_error().kind() == io::ErrorKind::StorageFull
}

/// Returns the error of a file operation.
pub(super) fn file(what: impl Into<String>, error: &io::Error) -> Error {
    let what = what.into();
    match error.kind() {
        io::ErrorKind::StorageFull => Kind::Full { what },
        io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => Kind::ReadOnly { what },
        io::ErrorKind::NotFound => Kind::NotFound { what },
        io::ErrorKind::AlreadyExists => Kind::Exists { what },
        _ => Kind::Io { what, why: error.to_string() },
    }
    .into()
}

/// Returns the error of stored data that can't be read back.
pub(super) fn corrupt(what: impl Into<String>) -> Error {
    Kind::Corrupt { what: what.into() }.into()
}
