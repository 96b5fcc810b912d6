//! Reading JSON with positions: errors point into the whole text, whatever part of it was being read.

use crate::entry::Text;
use crate::error::{Error, Place};
use serde::Deserialize;
use serde::de::value::MapAccessDeserializer;
use serde::de::{Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;
use serde_json::{Map, Value};
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;
use std::marker::PhantomData;

/// The text that raw values are part of.
#[derive(Clone, Copy)]
pub(crate) struct Source<'t> {
    pub(crate) text: &'t str,
}

/// The fields of an object, each as raw text.
pub(crate) type Fields<'t> = BTreeMap<String, &'t RawValue>;

impl<'t> Source<'t> {
    /// Where a raw value of this text begins.
    pub(crate) fn place(&self, raw: &RawValue) -> Place {
        Place::at(self.text, self.offset(raw.get()))
    }

    fn offset(&self, part: &str) -> usize {
        (part.as_ptr() as usize).saturating_sub(self.text.as_ptr() as usize)
    }

    /// Reads a raw value; `what` says what it is.
    pub(crate) fn read<T: Deserialize<'t>>(&self, raw: &'t RawValue, what: &str) -> Result<T, Error> {
        self.read_text(raw.get(), what)
    }

    /// Reads a part of the text that is a value; `what` says what it is.
    pub(crate) fn read_text<T: Deserialize<'t>>(&self, part: &'t str, what: &str) -> Result<T, Error> {
        serde_json::from_str(part).map_err(|error| {
            let at = self.offset(part) + offset_in(part, error.line(), error.column());
            Error::input(format!("{what}: {}", without_position(&error))).at(Place::at(self.text, at))
        })
    }

    /// Returns an error at a raw value.
    pub(crate) fn refuse(&self, raw: &RawValue, what: impl Into<String>) -> Error {
        Error::input(what).at(self.place(raw))
    }
}

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
    /// Reads an object; `here` says where it stands.
    pub(crate) fn of(source: &'s Source<'t>, raw: &'t RawValue, here: &str) -> Result<Fielded<'s, 't>, Error> {
        let fields = source.read(raw, here)?;
        Ok(Fielded { source, raw, here: here.to_string(), fields, left: Map::new() })
    }

    /// Takes a field out; null is as good as none.
    pub(crate) fn given<T: Deserialize<'t>>(&mut self, name: &str) -> Result<Option<T>, Error> {
        let what = || format!("{}.{name}", self.here);
        let read = self.fields.remove(name).map(|raw| self.source.read::<Option<T>>(raw, &what()));
        Ok(read.transpose()?.flatten())
    }

    /// Takes a field out that must be there.
    pub(crate) fn needed<T: Deserialize<'t>>(&mut self, name: &str) -> Result<T, Error> {
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

/// An object. By itself, a struct that is derived takes a list of its values as well.
pub(crate) struct Object<T>(pub(crate) T);

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Object<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Object<T>, D::Error> {
        struct Fields<T>(PhantomData<T>);

        impl<'de, T: Deserialize<'de>> Visitor<'de> for Fields<T> {
            type Value = Object<T>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Object<T>, A::Error> {
                T::deserialize(MapAccessDeserializer::new(map)).map(Object)
            }
        }

        deserializer.deserialize_map(Fields(PhantomData))
    }
}

/// A string that is only looked at.
#[derive(Deserialize)]
pub(crate) struct Word<'t>(#[serde(borrow)] pub(crate) Cow<'t, str>);

/// A string that is kept, copied once.
pub(crate) struct Said(pub(crate) Text);

impl<'de> Deserialize<'de> for Said {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Said, D::Error> {
        struct Copied;

        impl Visitor<'_> for Copied {
            type Value = Said;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a string")
            }

            fn visit_str<E>(self, text: &str) -> Result<Said, E> {
                Ok(Said(text.into()))
            }
        }

        deserializer.deserialize_str(Copied)
    }
}

/// The message of a JSON error without its own idea of the position.
pub(crate) fn without_position(error: &serde_json::Error) -> String {
    let text = error.to_string();
    text.rsplit_once(" at line ").map_or(text.clone(), |(what, _)| what.to_string())
}

/// Where in a text a JSON error happened.
pub(crate) fn place_of(text: &str, error: &serde_json::Error) -> Place {
    Place::at(text, offset_in(text, error.line(), error.column()))
}

/// The byte offset of a line and column (in bytes, from 1) of a text.
pub(crate) fn offset_in(text: &str, line: usize, column: usize) -> usize {
    let starts = text.bytes().enumerate().filter(|(_, byte)| *byte == b'\n').map(|(at, _)| at + 1);
    let start = std::iter::once(0).chain(starts).nth(line.saturating_sub(1)).unwrap_or(text.len());
    (start + column.saturating_sub(1)).min(text.len())
}

/// Replaces escapes of lone surrogates, which no text can hold, by the replacement character, and says at which bytes
/// they stood; no byte moves. Other mistakes stay for the parser to find.
pub(crate) fn without_lone_surrogates(text: &str) -> (Cow<'_, str>, Vec<usize>) {
    if !text.contains("\\u") || !text.contains("\\ud") && !text.contains("\\uD") {
        return (Cow::Borrowed(text), Vec::new());
    }
    let (bytes, mut lone, mut at) = (text.as_bytes(), Vec::new(), 0);
    while at < bytes.len() {
        if bytes[at] != b'\\' {
            at += 1;
            continue;
        }
        match surrogate(bytes, at) {
            Some(0xD800..=0xDBFF) if matches!(surrogate(bytes, at + 6), Some(0xDC00..=0xDFFF)) => at += 12,
            Some(_) => {
                lone.push(at);
                at += 6;
            }
            // An escape of something else, such as `\\`, takes two bytes.
            None => at += 2,
        }
    }
    let mut fixed = String::with_capacity(text.len());
    let mut done = 0;
    for &at in &lone {
        fixed.push_str(&text[done..at]);
        fixed.push_str("\\ufffd");
        done = at + 6;
    }
    fixed.push_str(&text[done..]);
    (Cow::Owned(fixed), lone)
}

/// The surrogate that an escape at this place stands for, if it stands for one.
fn surrogate(bytes: &[u8], at: usize) -> Option<u32> {
    let digits = bytes.get(at..at + 6)?.strip_prefix(b"\\u")?;
    let code = u32::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()?;
    (0xD800..=0xDFFF).contains(&code).then_some(code)
}
