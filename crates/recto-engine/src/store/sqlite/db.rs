//! A connection as this store uses it: with statements that stay ready, and with what was left behind by the last write.
//!
//! The thread that writes runs the same few statements for ever. To look one up by its text costs half of what running
//! it does; here it is found by where its text stands in the program. Connections that read go from thread to thread
//! and can't keep statements that way; they use the cache of `rusqlite`.

use super::found::Found;
use super::known::Known;
use super::schema;
use crate::store::{ConversationId, Tenant};
use rusqlite::{CachedStatement, Connection, PrepFlags, Statement};
use std::cell::RefCell;
use std::ops::{Deref, DerefMut};

const DATA_VERSION: &str = "PRAGMA data_version";

/// A connection, and what is kept beside it.
pub(super) struct Db<'c> {
    connection: &'c Connection,
    desk: Option<Desk<'c>>,
}

/// What the thread that writes has at hand.
#[derive(Default)]
struct Desk<'c> {
    statements: Shelf<'c>,
    known: RefCell<Known>,
}

/// Prepared statements. There are as many as there are texts of them in the program.
type Shelf<'c> = RefCell<Vec<Place<'c>>>;

struct Place<'c> {
    /// Where the text of the statement stands, and how long it is: of two texts, one may begin the other.
    text: (usize, usize),
    /// Nothing, while it is in use.
    statement: Option<Statement<'c>>,
}

impl<'c> Db<'c> {
    /// Returns a connection that keeps nothing.
    pub(super) fn over(connection: &'c Connection) -> Db<'c> {
        Db { connection, desk: None }
    }

    /// Returns the connection of the thread that writes.
    pub(super) fn writing(connection: &'c Connection) -> Db<'c> {
        Db { connection, desk: Some(Desk::default()) }
    }

    /// Returns a statement that was prepared before, or prepares it.
    pub(super) fn prepare_cached(&self, sql: &'static str) -> rusqlite::Result<Ready<'_, 'c>> {
        let Some(Desk { statements, .. }) = &self.desk else {
            return Ok(Ready::Lent(self.connection.prepare_cached(sql)?));
        };
        let text = (sql.as_ptr().addr(), sql.len());
        let mut places = statements.borrow_mut();
        let at = places.iter().position(|place| place.text == text).unwrap_or_else(|| {
            places.push(Place { text, statement: None });
            places.len() - 1
        });
        let statement = match places[at].statement.take() {
            Some(statement) => statement,
            None => self.connection.prepare_with_flags(sql, PrepFlags::SQLITE_PREPARE_PERSISTENT)?,
        };
        Ok(Ready::Own(Own { statement: Some(statement), shelf: statements, at }))
    }

    /// Begins a transaction that writes, and forgets what others may have changed.
    pub(super) fn begin(&self) -> rusqlite::Result<()> {
        schema::begin(self)?;
        let Some(desk) = &self.desk else { return Ok(()) };
        // It changes with the commits of other connections, and with those alone; by the same sign SQLite itself knows
        // whether the pages that it keeps in memory are still those of the file.
        let version = self.prepare_cached(DATA_VERSION).and_then(|mut it| it.query_row([], |row| row.get(0)));
        match version {
            Ok(version) => desk.known.borrow_mut().see(version),
            Err(error) => {
                self.roll_back("ROLLBACK");
                return Err(error);
            }
        }
        Ok(())
    }

    /// Commits; what can't be committed is taken back.
    pub(super) fn commit(&self) -> rusqlite::Result<()> {
        let done = self.prepare_cached("COMMIT").and_then(|mut it| it.execute([])).map(drop);
        if done.is_err() {
            self.roll_back("ROLLBACK");
        }
        done
    }

    /// Takes back what was written, all of it or what a savepoint has begun, and forgets what it has left.
    pub(super) fn roll_back(&self, sql: &str) {
        self.forget();
        // If SQLite has given up the transaction, there is nothing to take back.
        if !self.is_autocommit() {
            let _ = self.execute_batch(sql);
        }
    }

    /// Returns a conversation as the last write has left it, if that is known; it is not any more until it is left again.
    pub(super) fn take(&self, tenant: &Tenant, id: &ConversationId) -> Option<Found> {
        self.desk.as_ref()?.known.borrow_mut().take(tenant, id)
    }

    /// Keeps in mind how a write has left a conversation.
    pub(super) fn leave(&self, tenant: &Tenant, found: Found) {
        if let Some(desk) = &self.desk {
            desk.known.borrow_mut().leave(tenant, found);
        }
    }

    /// Forgets how conversations were left.
    pub(super) fn forget(&self) {
        if let Some(desk) = &self.desk {
            desk.known.borrow_mut().forget();
        }
    }
}

impl Deref for Db<'_> {
    type Target = Connection;

    fn deref(&self) -> &Connection {
        self.connection
    }
}

/// A statement that can be run; it goes back to where it was when it is dropped.
pub(super) enum Ready<'a, 'c> {
    /// From the cache of `rusqlite`.
    Lent(CachedStatement<'c>),
    /// From those that stay ready.
    Own(Own<'a, 'c>),
}

/// A statement that stays ready.
pub(super) struct Own<'a, 'c> {
    statement: Option<Statement<'c>>,
    shelf: &'a Shelf<'c>,
    at: usize,
}

impl<'c> Deref for Ready<'_, 'c> {
    type Target = Statement<'c>;

    fn deref(&self) -> &Statement<'c> {
        match self {
            Ready::Lent(statement) => statement,
            Ready::Own(own) => own.statement.as_ref().expect("it is there until it is dropped"),
        }
    }
}

impl<'c> DerefMut for Ready<'_, 'c> {
    fn deref_mut(&mut self) -> &mut Statement<'c> {
        match self {
            Ready::Lent(statement) => statement,
            Ready::Own(own) => own.statement.as_mut().expect("it is there until it is dropped"),
        }
    }
}

impl Drop for Own<'_, '_> {
    // Whoever ran it has reset it; what was bound may be long.
    fn drop(&mut self) {
        if let Some(mut statement) = self.statement.take() {
            statement.clear_bindings();
            self.shelf.borrow_mut()[self.at].statement = Some(statement);
        }
    }
}
