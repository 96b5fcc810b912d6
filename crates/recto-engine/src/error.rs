//! The one error of this crate: what went wrong, and what to do about it.

use crate::store::ConversationId;
use recto::Seq;
use std::error::Error as StdError;
use std::fmt;

/// Why something could not be done. The kind is private; callers branch on the predicates.
pub struct Error {
    kind: Box<Kind>,
}

/// What went wrong.
#[derive(Debug)]
pub(crate) enum Kind {
    /// The core refused something.
    Core(recto::Error),
    /// There is no such thing.
    NotFound { what: String },
    /// There is such a thing already.
    Exists { what: String },
    /// It was built on something that has changed.
    Conflict { what: String, hint: String },
    /// A key was used for something else before.
    KeyReused { key: String },
    /// The log has another head than was expected.
    HeadMoved { expected: Option<Seq>, head: Option<Seq> },
    /// The conversation was erased, or is being erased.
    Erased { conversation: ConversationId },
    /// Other conversations go on from it.
    HasForks { conversation: ConversationId, forks: Vec<ConversationId> },
    /// Something is larger than is taken.
    TooLarge { what: String },
    /// Somebody else held the store for too long.
    Busy { what: String },
    /// The server that keeps the store can't be reached, or the connection to it was lost.
    Unreachable { what: String },
    /// The connection was lost while a write was being committed, and nobody could say in time what became of it.
    Indeterminate { what: String },
    /// Another call goes on with a session.
    InUse { what: String },
    /// A program could not be run, or did not do what was asked.
    Program { what: String, hint: String },
    /// A provider refused a request, or could not be reached.
    Refused { what: String, status: Option<u16>, code: Option<String>, hint: String },
    /// Something took longer than it may.
    TimedOut { what: String, hint: String },
    /// There is no space left.
    Full { what: String },
    /// It can't be written to.
    ReadOnly { what: String },
    /// What is stored is damaged.
    Corrupt { what: String },
    /// It was written by a newer version.
    Newer { found: i64, known: i64 },
    /// It is no store of ours.
    Foreign { what: String },
    /// Reading or writing failed otherwise.
    Io { what: String, why: String },
    /// A defect of ours.
    Defect { what: String },
}

impl Error {
    /// Returns whether something that it was built on has changed: read again, then try again.
    pub fn is_conflict(&self) -> bool {
        matches!(*self.kind, Kind::Conflict { .. } | Kind::HeadMoved { .. } | Kind::KeyReused { .. })
    }

    /// Returns whether the log ends elsewhere than was expected.
    pub fn is_head_moved(&self) -> bool {
        matches!(*self.kind, Kind::HeadMoved { .. })
    }

    /// Returns whether a key was used for something else before.
    pub fn is_key_reused(&self) -> bool {
        matches!(*self.kind, Kind::KeyReused { .. })
    }

    /// Returns whether there is no such thing.
    pub fn is_not_found(&self) -> bool {
        matches!(*self.kind, Kind::NotFound { .. })
    }

    /// Returns whether there is such a thing already.
    pub fn is_exists(&self) -> bool {
        matches!(*self.kind, Kind::Exists { .. })
    }

    /// Returns whether the conversation was erased.
    pub fn is_erased(&self) -> bool {
        matches!(*self.kind, Kind::Erased { .. })
    }

    /// Returns whether what was asked for is not there, or not any more.
    pub fn is_gone(&self) -> bool {
        self.is_not_found() || self.is_erased()
    }

    /// Passes over what is gone: whoever goes through many conversations must not fail because somebody erases one of them
    /// meanwhile.
    pub fn unless_gone<T>(asked: Result<T, Error>) -> Result<Option<T>, Error> {
        match asked {
            Err(error) if error.is_gone() => Ok(None),
            asked => asked.map(Some),
        }
    }

    /// Returns whether waiting and trying again may help.
    pub fn is_busy(&self) -> bool {
        matches!(*self.kind, Kind::Busy { .. } | Kind::Unreachable { .. })
    }

    /// Returns whether the server that keeps the store can't be reached.
    pub fn is_unreachable(&self) -> bool {
        matches!(*self.kind, Kind::Unreachable { .. })
    }

    /// Returns whether it is not known if a write was done: look, before it is done again.
    pub fn is_indeterminate(&self) -> bool {
        matches!(*self.kind, Kind::Indeterminate { .. })
    }

    /// Returns whether another call goes on with the session: wait until it has ended.
    pub fn is_in_use(&self) -> bool {
        matches!(*self.kind, Kind::InUse { .. })
    }

    /// Returns whether a program could not be run, or did not do what was asked.
    pub fn is_program(&self) -> bool {
        matches!(*self.kind, Kind::Program { .. })
    }

    /// Returns whether a provider refused a request, or could not be reached.
    pub fn is_refused(&self) -> bool {
        matches!(*self.kind, Kind::Refused { .. })
    }

    /// Returns whether something took longer than it may.
    pub fn is_timed_out(&self) -> bool {
        matches!(*self.kind, Kind::TimedOut { .. })
    }

    /// Returns the status and the code that a provider refused a request with.
    pub fn refusal(&self) -> (Option<u16>, Option<&str>) {
        match &*self.kind {
            Kind::Refused { status, code, .. } => (*status, code.as_deref()),
            _ => (None, None),
        }
    }

    /// Returns whether there is no space left.
    pub fn is_full(&self) -> bool {
        matches!(*self.kind, Kind::Full { .. })
    }

    /// Returns whether the store can't be written to.
    pub fn is_read_only(&self) -> bool {
        matches!(*self.kind, Kind::ReadOnly { .. })
    }

    /// Returns whether what is stored is damaged, or is no store of ours.
    pub fn is_corrupt(&self) -> bool {
        matches!(*self.kind, Kind::Corrupt { .. } | Kind::Foreign { .. })
    }

    /// Returns whether it is no store of ours.
    pub fn is_foreign(&self) -> bool {
        matches!(*self.kind, Kind::Foreign { .. })
    }

    /// Returns whether a newer version wrote the store.
    pub fn is_newer(&self) -> bool {
        matches!(*self.kind, Kind::Newer { .. })
    }

    /// Returns whether what was handed in can't be taken.
    pub fn is_input(&self) -> bool {
        let is_core = matches!(&*self.kind, Kind::Core(error) if !error.is_defect());
        is_core || matches!(*self.kind, Kind::TooLarge { .. } | Kind::HasForks { .. })
    }

    /// Returns whether it is a defect of ours.
    pub fn is_defect(&self) -> bool {
        matches!(&*self.kind, Kind::Core(error) if error.is_defect()) || matches!(*self.kind, Kind::Defect { .. })
    }

    /// Returns the conversations that stand in the way of an erase.
    pub fn forks(&self) -> &[ConversationId] {
        match &*self.kind {
            Kind::HasForks { forks, .. } => forks,
            _ => &[],
        }
    }

    /// Returns the core's error, if it is one.
    pub fn core(&self) -> Option<&recto::Error> {
        match &*self.kind {
            Kind::Core(error) => Some(error),
            _ => None,
        }
    }

    /// Returns what to do next.
    pub fn hint(&self) -> Option<String> {
        Some(match &*self.kind {
            Kind::Core(error) => return error.hint(),
            Kind::Conflict { hint, .. }
            | Kind::Program { hint, .. }
            | Kind::Refused { hint, .. }
            | Kind::TimedOut { hint, .. } => hint.clone(),
            Kind::InUse { .. } => "wait until it has ended, then try again".into(),
            Kind::HeadMoved { .. } => "somebody else has appended; read what is new, then append again".into(),
            Kind::KeyReused { .. } => {
                "give every append a key of its own, and use it again only to repeat that append".into()
            }
            Kind::HasForks { .. } => "erase the forks first, or erase them with it".into(),
            Kind::Unreachable { .. } => "check that the server runs and can be reached, then try again".into(),
            Kind::Indeterminate { .. } => {
                "look whether it is there before you try again; a repeat with the same key is safe".into()
            }
            Kind::Busy { .. } => "another process is writing; try again".into(),
            Kind::Full { .. } => "make space, then try again; nothing was written".into(),
            Kind::ReadOnly { .. } => "check the permissions of the file and its folder".into(),
            Kind::Corrupt { .. } => "restore a backup; `recto doctor` tells what is damaged".into(),
            Kind::Newer { .. } => "use the version of Recto that wrote it, or a newer one".into(),
            Kind::Foreign { .. } => "name another file, or none for the usual one".into(),
            _ => return None,
        })
    }
}

impl From<Kind> for Error {
    fn from(kind: Kind) -> Error {
        Error { kind: Box::new(kind) }
    }
}

impl From<recto::Error> for Error {
    fn from(error: recto::Error) -> Error {
        Kind::Core(error).into()
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.kind)
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let place = |seq: &Option<Seq>| seq.map_or("empty".to_string(), |seq| seq.to_string());
        match &*self.kind {
            Kind::Core(error) => write!(f, "{error}"),
            Kind::NotFound { what } => write!(f, "no {what}"),
            Kind::Exists { what } => write!(f, "{what} exists already"),
            Kind::Conflict { what, .. } | Kind::TooLarge { what } | Kind::Busy { what } => f.write_str(what),
            Kind::Unreachable { what } => write!(f, "the store can't be reached: {what}"),
            Kind::Indeterminate { what } => write!(f, "it is not known whether it was written: {what}"),
            Kind::InUse { what }
            | Kind::Program { what, .. }
            | Kind::Refused { what, .. }
            | Kind::TimedOut { what, .. } => f.write_str(what),
            Kind::KeyReused { key } => write!(f, "key {key:?} was used for another append"),
            Kind::HeadMoved { expected, head } => {
                write!(f, "the log was expected to end at {}, and ends at {}", place(expected), place(head))
            }
            Kind::Erased { conversation } => write!(f, "conversation {:?} was erased", conversation.as_str()),
            Kind::HasForks { conversation, forks } => {
                let names: Vec<&str> = forks.iter().map(ConversationId::as_str).collect();
                write!(f, "other conversations go on from {:?}: {}", conversation.as_str(), names.join(", "))
            }
            Kind::Full { what } => write!(f, "no space left: {what}"),
            Kind::ReadOnly { what } => write!(f, "can't be written to: {what}"),
            Kind::Corrupt { what } => write!(f, "damaged: {what}"),
            Kind::Newer { found, known } => {
                write!(f, "the store has schema {found}; this version of Recto knows up to {known}")
            }
            Kind::Foreign { what } => write!(f, "not a store of Recto: {what}"),
            Kind::Io { what, why } => write!(f, "{what}: {why}"),
            Kind::Defect { what } => write!(f, "a defect in Recto: {what}"),
        }
    }
}

impl StdError for Error {}
