//! An object of a client's body: its fields are taken out one by one, and what is left has no place of its own.

use crate::error::Error;
use crate::wire::json::{Fields, Source};
use serde_json::value::RawValue;
use serde_json::{Map, Value};

/// The fields of an object, taken out one by one.
pub(crate) struct Fielded<'s, 't> {
    pub(crate) source: &'s Source<'t>,
    pub(crate) raw: &'t RawValue,
    pub(crate) here: String,
    pub(crate) fields: Fields<'t>,
    /// Fields that were made of others.
    pub(crate) left: Map<String, Value>,
}

impl<'s, 't> Fielded<'s, 't> {
    pub(crate) fn of(source: &'s Source<'t>, raw: &'t RawValue, here: &str) -> Result<Fielded<'s, 't>, Error> {
        let fields = source.read(raw, here)?;
        Ok(Fielded { source, raw, here: here.to_string(), fields, left: Map::new() })
    }

    pub(crate) fn given<T: serde::Deserialize<'t>>(&mut self, name: &str) -> Result<Option<T>, Error> {
        let what = || format!("{}.{name}", self.here);
        let read = self.fields.remove(name).map(|raw| self.source.read::<Option<T>>(raw, &what()));
        Ok(read.transpose()?.flatten())
    }

    pub(crate) fn needed<T: serde::Deserialize<'t>>(&mut self, name: &str) -> Result<T, Error> {
        let missing = format!("{} has no {name:?}", self.here);
        self.given(name)?.ok_or_else(|| self.source.refuse(self.raw, missing))
    }

    /// What was not taken out, as far as it says something.
    pub(crate) fn rest(self) -> Result<Map<String, Value>, Error> {
        let mut rest = self.left;
        for (name, raw) in self.fields {
            let value: Value = self.source.read(raw, &format!("{}.{name}", self.here))?;
            let is_empty = match &value {
                Value::Null => true,
                Value::Array(list) => list.is_empty(),
                Value::Object(fields) => fields.is_empty(),
                _ => false,
            };
            if !is_empty {
                rest.insert(name, value);
            }
        }
        Ok(rest)
    }
}
