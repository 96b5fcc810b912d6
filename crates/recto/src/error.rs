//! The one error of this crate: what went wrong, where, and what to do about it.

use crate::receipt::Overflow;
use std::fmt;

/// Why something could not be done.
///
/// The kind is private; callers branch on the predicates. `Display` says what went wrong and where,
/// [`hint`](Error::hint) what to do next.
pub struct Error {
    kind: Box<Kind>,
}

enum Kind {
    Input { what: String, place: Option<Place>, hint: Option<String> },
    Settings { what: String, hint: String },
    Overflow(Overflow),
    Defect { what: String },
}

/// A position in an input: line and column, both from 1, the column in characters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// The line, from 1.
    pub line: usize,
    /// The column in characters, from 1.
    pub column: usize,
}

impl Place {
    /// Returns the place of a byte offset in a text.
    pub fn at(text: &str, offset: usize) -> Place {
        let before = &text.as_bytes()[..offset.min(text.len())];
        let start = before.iter().rposition(|&byte| byte == b'\n').map_or(0, |newline| newline + 1);
        let line = before.iter().filter(|&&byte| byte == b'\n').count() + 1;
        // Continuation bytes don't start a character.
        let column = before[start..].iter().filter(|&&byte| byte & 0xC0 != 0x80).count() + 1;
        Place { line, column }
    }
}

/// Returns the places of byte offsets that come in order, in one walk.
pub(crate) fn places(text: &str, offsets: &[usize]) -> Vec<Place> {
    let (mut line, mut start, mut done) = (1, 0, 0);
    let place = |&offset: &usize| {
        for (at, _) in text.as_bytes()[done..offset].iter().enumerate().filter(|(_, byte)| **byte == b'\n') {
            (line, start) = (line + 1, done + at + 1);
        }
        done = offset;
        let column = text.as_bytes()[start..offset].iter().filter(|&&byte| byte & 0xC0 != 0x80).count() + 1;
        Place { line, column }
    };
    offsets.iter().map(place).collect()
}

impl Error {
    /// Returns an error about something that was handed in.
    pub fn input(what: impl Into<String>) -> Error {
        Kind::Input { what: what.into(), place: None, hint: None }.into()
    }

    /// Returns an error about settings that can't work.
    pub fn settings(what: impl Into<String>, hint: impl Into<String>) -> Error {
        Kind::Settings { what: what.into(), hint: hint.into() }.into()
    }

    /// Returns an error about a page that breaks a rule which holds by construction.
    pub(crate) fn defect(what: impl Into<String>) -> Error {
        Kind::Defect { what: what.into() }.into()
    }

    /// Adds where in the input it happened.
    #[must_use]
    pub fn at(mut self, at: Place) -> Error {
        if let Kind::Input { place, .. } = &mut *self.kind {
            place.get_or_insert(at);
        }
        self
    }

    /// Moves the position of an error about a text into the larger text that it was taken from, where it begins at this
    /// place; so many bytes were put in front of it.
    #[must_use]
    pub(crate) fn shifted(mut self, from: Place, before: usize) -> Error {
        if let Kind::Input { place: Some(place), .. } = &mut *self.kind {
            if place.line == 1 {
                place.column = (from.column + place.column.saturating_sub(before)).saturating_sub(1).max(from.column);
            }
            place.line += from.line - 1;
        }
        self
    }

    /// Adds what to do next.
    #[must_use]
    pub fn hinting(mut self, text: impl Into<String>) -> Error {
        if let Kind::Input { hint, .. } = &mut *self.kind {
            hint.get_or_insert(text.into());
        }
        self
    }

    /// Returns the breakdown if the page does not fit.
    pub fn overflow(&self) -> Option<&Overflow> {
        match &*self.kind {
            Kind::Overflow(overflow) => Some(overflow),
            _ => None,
        }
    }

    /// Returns whether the settings were wrong (as opposed to the input or its size).
    pub fn is_settings(&self) -> bool {
        matches!(*self.kind, Kind::Settings { .. })
    }

    /// Returns whether it is Recto's own fault.
    pub fn is_defect(&self) -> bool {
        matches!(*self.kind, Kind::Defect { .. })
    }

    /// Returns the position in the input, if the error has one.
    pub fn place(&self) -> Option<Place> {
        match &*self.kind {
            Kind::Input { place, .. } => *place,
            _ => None,
        }
    }

    /// Returns what to do next, if there is something to say.
    pub fn hint(&self) -> Option<String> {
        match &*self.kind {
            Kind::Input { hint, .. } => hint.clone(),
            Kind::Settings { hint, .. } => Some(hint.clone()),
            Kind::Overflow(overflow) => Some(overflow.hint()),
            Kind::Defect { .. } => {
                Some("this is a defect in Recto: please report it with the log that caused it".into())
            }
        }
    }
}

impl From<Kind> for Error {
    fn from(kind: Kind) -> Error {
        Error { kind: Box::new(kind) }
    }
}

impl From<Overflow> for Error {
    fn from(overflow: Overflow) -> Error {
        Kind::Overflow(overflow).into()
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &*self.kind {
            Kind::Input { what, place: Some(place), .. } => {
                write!(f, "line {}, column {}: {what}", place.line, place.column)
            }
            Kind::Input { what, .. } | Kind::Settings { what, .. } => f.write_str(what),
            Kind::Overflow(overflow) => write!(f, "{overflow}"),
            Kind::Defect { what } => write!(f, "the page would be invalid: {what}"),
        }
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")?;
        self.hint().map_or(Ok(()), |hint| write!(f, " (hint: {hint})"))
    }
}

impl std::error::Error for Error {}
