//! Drivers: programs that keep conversations of their own, run as subprocesses.
//!
//! A program is told what is new and nothing else. Its own session file says what it holds, so after a turn that failed,
//! was killed or went on elsewhere, the file is read before anything is sent again.

pub mod claude_code;
pub mod codex;
pub mod process;
pub(crate) mod still;
pub(crate) mod told;

use crate::error::Error;
use recto::entry::{Entry, Text};
use recto::page::Message;
use recto::wire::Usage;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

pub use told::GO_ON;

/// How a program is found and run.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Its file; without one it is looked for on the `PATH` of `environment`.
    pub program: Option<PathBuf>,
    /// The whole environment that it gets.
    pub environment: BTreeMap<String, String>,
    /// The model that it is to ask; without one, its own choice.
    pub model: Option<Text>,
    /// Arguments of the user's, which come before all others.
    pub arguments: Vec<String>,
    /// How long a turn may take in all.
    pub turn_limit: Duration,
    /// How long a turn may go without a sign of life.
    pub silence_limit: Duration,
}

/// What a program is to do in one turn.
#[derive(Clone, Copy, Debug)]
pub struct Turn<'a> {
    /// The session that it goes on with, if it holds one.
    pub session: Option<&'a Text>,
    /// The name that a new session gets, where the program takes one: a UUID.
    pub new_session: &'a str,
    /// How far the session's file was known before; what stands behind that afterwards is this turn.
    pub mark: Option<&'a str>,
    /// Where the program's own file is cut before it goes on: it forgets everything behind this mark.
    pub rewind_to: Option<&'a Text>,
    /// The name of the message that is sent, where the program takes one: a UUID that was never used.
    pub message: &'a str,
    /// Everything that is told as instructions; it holds for this turn alone.
    pub instructions: &'a str,
    /// What is said, in the user's place: one message of the program's, whatever it is made of.
    pub said: &'a [Message],
    /// The folder in which it works.
    pub workspace: &'a Path,
}

/// What is heard of a turn while it goes on.
#[derive(Clone, Debug, PartialEq)]
pub enum Heard {
    /// The program has named the session.
    Session(Text),
    /// Words of the model's answer; pieces of one text follow each other.
    Text(Text),
    /// Words of its reasoning.
    Reasoning(Text),
    /// It calls a tool: its name, and its arguments.
    Call {
        /// The tool.
        name: Text,
        /// Its arguments, as far as they can be shown.
        arguments: Text,
    },
    /// A tool has answered.
    Result {
        /// What it said.
        text: Text,
        /// Whether it failed.
        is_error: bool,
    },
    /// Something that a person should know.
    Note(Text),
}

/// Who listens while a turn goes on.
pub type Listen<'l> = &'l mut (dyn FnMut(Heard) + Send);

/// A turn that went well.
#[derive(Clone, Debug)]
pub struct Ran {
    /// The session that holds it.
    pub session: Text,
    /// What the program did and said, without what was said to it and what it told the model by itself.
    pub entries: Vec<Entry>,
    /// How far its file goes now, in the driver's own words; `None` if the file doesn't show the turn.
    pub mark: Option<Text>,
    /// What the model calls of this turn used together.
    pub usage: Option<Usage>,
    /// The model that answered, if it was told.
    pub model: Option<Text>,
}

/// What a program's own file says of a session.
#[derive(Clone, Debug)]
pub enum Found {
    /// There is no such file.
    Missing,
    /// It can't be read; why.
    Corrupt(String),
    /// What the mark stands for is not on the branch that the program goes on with.
    Elsewhere,
    /// It is there.
    There(Since),
}

/// What stands behind a mark.
#[derive(Clone, Debug, Default)]
pub struct Since {
    /// What was said since, by whomever, without what the program told the model by itself.
    pub entries: Vec<Entry>,
    /// How far the file goes.
    pub mark: Option<Text>,
    /// Whether the last of it is an answer of the model's that came to its end.
    pub is_answered: bool,
    /// The mark that the program can be sent back to, as if nothing of this had been said.
    pub rewind_to: Option<Text>,
}

/// A session that was written for a program.
#[derive(Clone, Debug)]
pub struct Seeded {
    /// Its name.
    pub session: Text,
    /// How far its file goes.
    pub mark: Option<Text>,
}

/// Why a turn came to nothing.
#[derive(Debug)]
pub enum Failed {
    /// The program doesn't know the session, or can't read it.
    Unknown(String),
    /// Somebody else is writing to the session.
    InUse(String),
    /// Everything else.
    Other(Error),
}

impl From<Error> for Failed {
    fn from(error: Error) -> Failed {
        Failed::Other(error)
    }
}

/// A program with its settings.
#[derive(Clone, Debug)]
pub enum Driver {
    /// Claude Code.
    ClaudeCode(claude_code::ClaudeCode),
    /// Codex.
    Codex(codex::Codex),
}

impl Driver {
    /// Returns the name under which sessions of this program are kept.
    pub fn provider(&self) -> &'static str {
        match self {
            Driver::ClaudeCode(_) => "claude_code",
            Driver::Codex(_) => "codex",
        }
    }

    /// Returns what people call the program.
    pub fn name(&self) -> &'static str {
        match self {
            Driver::ClaudeCode(_) => "Claude Code",
            Driver::Codex(_) => "Codex",
        }
    }

    /// Returns whether sessions and messages are called what the caller calls them.
    pub fn takes_names(&self) -> bool {
        matches!(self, Driver::ClaudeCode(_))
    }

    /// Returns how it is found and run.
    pub fn settings(&self) -> &Settings {
        match self {
            Driver::ClaudeCode(program) => program.settings(),
            Driver::Codex(program) => program.settings(),
        }
    }

    /// Returns the version that the program says it has.
    pub async fn version(&self) -> Result<Text, Error> {
        match self {
            Driver::ClaudeCode(program) => program.version().await,
            Driver::Codex(program) => program.version().await,
        }
    }

    /// Reads what the program's own file says of a session since a mark.
    pub fn look(&self, session: &str, workspace: &Path, mark: Option<&str>) -> Found {
        match self {
            Driver::ClaudeCode(program) => program.look(session, workspace, mark),
            Driver::Codex(program) => program.look(session, workspace, mark),
        }
    }

    /// Writes a session file that holds these messages, which the program resumes.
    pub fn seed(&self, messages: &[Message], session: &str, workspace: &Path) -> Result<Seeded, Error> {
        match self {
            Driver::ClaudeCode(program) => program.seed(messages, session, workspace),
            Driver::Codex(program) => program.seed(messages, session, workspace),
        }
    }

    /// Has the program do one turn.
    pub async fn turn(&self, turn: Turn<'_>, listen: Listen<'_>) -> Result<Ran, Failed> {
        match self {
            Driver::ClaudeCode(program) => program.turn(turn, listen).await,
            Driver::Codex(program) => program.turn(turn, listen).await,
        }
    }
}
