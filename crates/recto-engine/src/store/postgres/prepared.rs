//! Statements that a connection has prepared, by their text.

use super::value::Value;
use crate::error::Error;
use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use tokio_postgres::types::Type;
use tokio_postgres::{Client, Statement};

/// The most statements that a connection keeps; all of ours are far fewer.
const STATEMENTS_MAX: usize = 256;

#[derive(Default)]
pub(super) struct Prepared {
    known: Mutex<HashMap<Box<str>, Statement>>,
}

impl Prepared {
    /// Prepares a statement unless it is known.
    pub(super) async fn learn(&self, client: &Client, sql: &str, values: &[Value<'_>]) -> Result<(), Error> {
        let is_known = |known: &HashMap<Box<str>, Statement>| known.len() >= STATEMENTS_MAX || known.contains_key(sql);
        if is_known(&self.known.lock().unwrap_or_else(PoisonError::into_inner)) {
            return Ok(());
        }
        let types: Vec<Type> = values.iter().map(Value::kind).collect();
        let statement = client.prepare_typed(sql, &types).await?;
        self.known.lock().unwrap_or_else(PoisonError::into_inner).insert(sql.into(), statement);
        Ok(())
    }

    /// Returns a statement that was prepared.
    pub(super) fn of(&self, sql: &str) -> Option<Statement> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner).get(sql).cloned()
    }
}
