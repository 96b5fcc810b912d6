//! Conversations written in other programs' formats.

use super::{Conversation, claude_code, codex};
use crate::compile::compile_once;
use crate::context::Context;
use crate::entry::{Millis, Text};
use crate::error::Error;
use crate::format::ResponseFormat;
use crate::nearest::probably;
use crate::policy::Policy;
use crate::reader::Reader;
use crate::receipt::Warning;
use crate::request::Request;
use crate::target::Target;
use crate::tool::Tools;
use crate::wire::Wire;
use std::fmt;
use std::str::FromStr;

/// A format that a conversation can be written in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Format {
    /// A provider's request body.
    Wire(Wire),
    /// An export of Recto: every entry with all its fields.
    Recto,
    /// A session file that Claude Code resumes.
    ClaudeCode,
    /// A session file that Codex resumes.
    Codex,
}

/// What a session file of another program says of itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Session {
    /// Its id, a UUID.
    pub id: Text,
    /// The folder it belongs to.
    pub folder: Text,
    /// When it begins, for entries that have no time.
    pub at: Millis,
}

impl Format {
    /// All formats there are.
    pub const ALL: [Format; 6] = [
        Format::Wire(Wire::OpenaiChat),
        Format::Wire(Wire::OpenaiResponses),
        Format::Wire(Wire::Anthropic),
        Format::Recto,
        Format::ClaudeCode,
        Format::Codex,
    ];

    /// Returns its name, as it is spelled on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Format::Wire(wire) => wire.name(),
            Format::Recto => "recto",
            Format::ClaudeCode => "claude_code",
            Format::Codex => "codex",
        }
    }

    /// Writes a conversation, whole: nothing is shortened. What the format can't hold is said in the warnings.
    pub fn write(
        self,
        conversation: Conversation,
        target: &Target,
        session: &Session,
    ) -> Result<(Vec<u8>, Vec<Warning>), Error> {
        let wire = match self {
            Format::Wire(wire) => wire,
            Format::Recto => {
                let log = conversation.into_log(target.tokenizer)?;
                return Ok((Context::from(log).to_json().into_bytes(), Vec::new()));
            }
            Format::ClaudeCode | Format::Codex => {
                let Session { id, folder, at } = session;
                let write = if self == Format::Codex { codex::session } else { claude_code::session };
                return Ok((write(&conversation.entries, id, folder, *at).into_bytes(), Vec::new()));
            }
        };
        let target = target.clone().over(wire).with_window(None);
        let asked = conversation.asked.clone();
        let tools = Tools::counted(conversation.tools.iter().cloned(), &target.tokenizer);
        let log = conversation.into_log(target.tokenizer)?;
        let (reader, policy) = (Reader::new("main"), Policy::none());
        let format = asked.as_ref().and_then(|asked| asked.format.as_deref()).map(ResponseFormat::parse).transpose()?;
        let format = format.flatten();
        let own = asked.as_ref().filter(|asked| asked.wire == wire);
        let request = Request {
            marks: own.map(|asked| &*asked.marks).unwrap_or_default(),
            tools: Some(&tools).filter(|tools| !tools.list().is_empty()),
            format: format.as_ref(),
            ..Request::new(&log, &reader, &policy, &target)
        };
        let compiled = compile_once(&request)?;
        let extra = asked.filter(|asked| asked.wire == wire).map(|asked| asked.extra).unwrap_or_default();
        Ok((wire.encode_with(&compiled.page, &target, &extra), compiled.receipt.warnings))
    }
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Format {
    type Err = Error;

    fn from_str(name: &str) -> Result<Format, Error> {
        let names = Format::ALL.map(Format::name);
        Format::ALL.into_iter().find(|format| format.name() == name).ok_or_else(|| {
            let meant = probably(name, names).map_or(String::new(), |near| format!("did you mean {near:?}? "));
            Error::settings(format!("unknown format {name:?}"), format!("{meant}known formats: {}", names.join(", ")))
        })
    }
}
