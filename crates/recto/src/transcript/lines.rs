//! The records of a file, one a line.

use super::RECORD_BYTES_MAX;
use crate::error::{Error, Place};
use crate::wire::json::{Fields, Source, offset_in, without_position};
use serde::Deserialize;
use serde_json::value::RawValue;
use std::collections::{BTreeMap, HashSet};

/// The records of a file.
pub(crate) struct Lines<'t> {
    pub(crate) list: Vec<Line<'t>>,
    /// The field that tells them apart, and how many stand twice.
    key: &'static str,
    twice: usize,
    /// Whether the last one was cut off.
    is_cut: bool,
}

/// One record.
pub(crate) struct Line<'t> {
    pub(crate) raw: &'t RawValue,
    pub(crate) kind: String,
    pub(crate) fields: Fields<'t>,
}

impl<'t> Lines<'t> {
    /// Reads all lines; `key` is the field whose value no two of them share. A broken one is an error, unless it is the
    /// last of a file that was being written.
    pub(crate) fn of(source: &Source<'t>, key: &'static str) -> Result<Lines<'t>, Error> {
        let mut lines = Lines { list: Vec::new(), key, twice: 0, is_cut: false };
        let (mut seen, mut start) = (HashSet::new(), 0);
        let end = source.text.trim_end().len();
        for text in source.text.split_inclusive('\n') {
            let (at, is_last) = (start, start + text.trim_end().len() >= end);
            start += text.len();
            if text.trim().is_empty() {
                continue;
            }
            let refuse = |offset: usize, what: String| Error::input(what).at(Place::at(source.text, at + offset));
            if text.len() > RECORD_BYTES_MAX {
                let (size, most) = (text.len() >> 20, RECORD_BYTES_MAX >> 20);
                return Err(refuse(0, format!("a record of {size} MiB; at most {most} MiB are read")));
            }
            let raw: &'t RawValue = match serde_json::from_str(text) {
                Ok(raw) => raw,
                Err(error) if is_last && (error.is_eof() || !text.ends_with('\n')) && at > 0 => {
                    lines.is_cut = true;
                    break;
                }
                Err(error) => {
                    let offset = offset_in(text, error.line(), error.column());
                    return Err(refuse(offset, without_position(&error)).hinting("every line is one JSON record"));
                }
            };
            let fields: Fields<'t> = source.read(raw, "record")?;
            let line = Line { raw, kind: String::new(), fields };
            let line = Line { kind: line.text("type").unwrap_or_default(), ..line };
            match line.text(key).is_none_or(|value| seen.insert(value)) {
                true => lines.list.push(line),
                false => lines.twice += 1,
            }
        }
        Ok(lines)
    }

    /// What should be told about the file as such.
    pub(crate) fn notes(&self) -> Vec<String> {
        let twice =
            (self.twice > 0).then(|| left_out(self.twice, &format!("line whose {} was there before", self.key)));
        let cut = self.is_cut.then(|| "the last line is cut off, and left out".to_string());
        twice.into_iter().chain(cut).collect()
    }
}

impl<'t> Line<'t> {
    /// A field that should be a text; other types are none.
    pub(crate) fn text(&self, name: &str) -> Option<String> {
        self.value(name)
    }

    pub(crate) fn flag(&self, name: &str) -> bool {
        self.value(name).unwrap_or(false)
    }

    pub(crate) fn value<T: Deserialize<'t>>(&self, name: &str) -> Option<T> {
        serde_json::from_str(self.fields.get(name)?.get()).ok()
    }
}

/// Says that something was left out.
pub(crate) fn left_out(number: usize, what: &str) -> String {
    // The first word is the one that is counted.
    let (first, rest) = what.split_once(' ').map_or((what, String::new()), |(first, rest)| (first, format!(" {rest}")));
    format!("{number} {first}{}{rest} left out", if number == 1 { "" } else { "s" })
}

/// Counts by what was counted.
pub(crate) type Counts = BTreeMap<&'static str, usize>;

/// Says how many of something there are.
pub(crate) fn counted(number: usize, noun: &str) -> String {
    format!("{number} {noun}{}", if number == 1 { "" } else { "s" })
}
