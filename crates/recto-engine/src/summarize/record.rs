//! Wants and notes as they are kept: records of the conversation that holds the words, under the digest of words and
//! prompt. A want is claimed by writing its next version; a note and the end of its want are one write.

use crate::error::{Error, Kind};
use crate::session::{here, is_gone};
use crate::store::{Record, RecordKind};
use recto::Seq;
use recto::entry::{ERASED_WORD, Millis, Text};
use recto::note::{Note, Subject, Want};
use recto::wire::Usage;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

/// How often a summary is begun, crashes included, until it counts as failed.
pub(crate) const ATTEMPTS_MAX: u32 = 3;

/// What summaries used, and what that costs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Spent {
    /// How many answers were paid for, those that were no good included.
    pub calls: u32,
    /// What they used together.
    pub usage: Usage,
    /// What that costs in US dollars.
    pub usd: f64,
}

impl Spent {
    /// Returns both together.
    #[must_use]
    pub fn and(self, more: Spent) -> Spent {
        let (one, other) = (self.usage, more.usage);
        let usage = Usage {
            input: one.input + other.input,
            cached: one.cached + other.cached,
            written: one.written + other.written,
            output: one.output + other.output,
        };
        Spent { calls: self.calls + more.calls, usage, usd: self.usd + more.usd }
    }
}

/// A note as it is kept.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Noted {
    /// What was wanted; its subject says which entries the note is of.
    pub want: Want,
    /// What came of it.
    pub note: Note,
    /// What it cost, all attempts together.
    pub spent: Spent,
    /// How often it was begun.
    pub attempts: u32,
    /// When that was recorded.
    pub at: Millis,
    /// How often it was written.
    #[serde(skip)]
    pub(crate) version: u64,
}

/// A want as it is kept.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Wanted {
    pub(crate) want: Want,
    pub(crate) state: State,
    /// How often it was begun.
    pub(crate) attempts: u32,
    /// What the attempts that came to nothing have cost.
    #[serde(default)]
    pub(crate) spent: Spent,
    /// Why the last attempt came to nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) error: Option<Text>,
    #[serde(skip)]
    pub(crate) version: u64,
}

/// How far a want has come.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum State {
    /// Nobody makes it.
    Open,
    /// Somebody makes it.
    Leased {
        /// When others may take it over.
        until: Millis,
        /// The process.
        by: Text,
        /// The summarizer within that process.
        number: u64,
    },
    /// There is a note.
    Over,
}

impl Wanted {
    /// A want that nobody has begun.
    pub(crate) fn new(want: Want) -> Wanted {
        Wanted { want, state: State::Open, attempts: 0, spent: Spent::default(), error: None, version: 0 }
    }

    /// Returns it as it is while this process makes it. The attempt counts from now on, whatever comes of it.
    pub(crate) fn leased(&self, until: Millis, number: u64) -> Wanted {
        let state = State::Leased { until, by: here(), number };
        Wanted { state, attempts: self.attempts + 1, ..self.clone() }
    }

    /// Returns whether somebody makes it. One of this process is known by its being under way.
    pub(crate) fn is_held(&self, now: Millis, number: u64) -> bool {
        match &self.state {
            State::Leased { until, by, number: other } => {
                let is_ours = *by == here() && *other == number;
                now < *until && !is_ours && !is_gone(by)
            }
            State::Open | State::Over => false,
        }
    }

    /// Returns whether it was begun too often.
    pub(crate) fn is_exhausted(&self) -> bool {
        self.attempts >= ATTEMPTS_MAX
    }

    /// Writes it as the next version of its record.
    pub(crate) fn record(&self, key: &Text) -> Record {
        record(RecordKind::Want, key, self.version + 1, self)
    }

    /// Reads it from a record.
    pub(crate) fn read(record: &Record) -> Result<Wanted, Error> {
        Ok(Wanted { version: record.version, ..read(record)? })
    }
}

impl Noted {
    /// Returns it without the words that it quotes.
    pub(crate) fn erased(&self, at: Millis) -> Noted {
        Noted { note: Note::Failed { why: ERASED_WORD.into() }, at, ..self.clone() }
    }

    /// Returns whether it was taken back because its words were erased.
    pub(crate) fn is_erased(&self) -> bool {
        matches!(&self.note, Note::Failed { why } if **why == *ERASED_WORD)
    }

    /// Writes it as the next version of its record.
    pub(crate) fn record(&self, key: &Text) -> Record {
        record(RecordKind::Note, key, self.version + 1, self)
    }

    /// Reads it from a record.
    pub(crate) fn read(record: &Record) -> Result<Noted, Error> {
        Ok(Noted { version: record.version, ..read(record)? })
    }
}

/// Returns whether a summary says something of an entry.
pub(crate) fn is_of(subject: &Subject, seq: Seq) -> bool {
    match subject {
        Subject::Part(part) => part.seq == seq,
        Subject::Range(span) | Subject::Human(span) => span.first <= seq && seq <= span.last,
    }
}

/// Returns the newest entry that a summary says something of.
pub(crate) fn last_of(subject: &Subject) -> Seq {
    match subject {
        Subject::Part(part) => part.seq,
        Subject::Range(span) | Subject::Human(span) => span.last,
    }
}

fn record(kind: RecordKind, key: &Text, version: u64, body: &impl Serialize) -> Record {
    let body = serde_json::to_string(body).expect("a want and a note are plain data");
    Record { kind, key: key.clone(), version, body: body.into() }
}

fn read<T: DeserializeOwned>(record: &Record) -> Result<T, Error> {
    let what = |error| format!("{:?} {:?}: {error}", record.kind, &*record.key);
    serde_json::from_str(&record.body).map_err(|error| Kind::Corrupt { what: what(error) }.into())
}
