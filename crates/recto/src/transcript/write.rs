//! Conversations written in other programs' formats.

use super::{Conversation, claude_code, codex};
use crate::compile::compile_once;
use crate::context::Context;
use crate::entry::{Entry, Millis, Part, Text};
use crate::error::Error;
use crate::format::ResponseFormat;
use crate::nearest::probably;
use crate::policy::Policy;
use crate::reader::Reader;
use crate::receipt::{Fate, FateRow, Warning};
use crate::request::Request;
use crate::target::Target;
use crate::tool::Tools;
use crate::wire::Wire;
use std::collections::{BTreeMap, HashSet};
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
    pub const ALL: [Format; 8] = [
        Format::Wire(Wire::OpenaiChat),
        Format::Wire(Wire::OpenaiResponses),
        Format::Wire(Wire::Anthropic),
        Format::Wire(Wire::Gemini),
        Format::Wire(Wire::Ollama),
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

    /// Writes a conversation, whole: nothing is shortened, and what the format can't hold is named.
    pub fn write(self, conversation: Conversation, target: &Target, session: &Session) -> Result<Written, Error> {
        let wire = match self {
            Format::Wire(wire) => wire,
            Format::Recto => {
                let log = conversation.into_log(target.tokenizer)?;
                return Ok(Written { bytes: Context::from(log).to_json().into_bytes(), ..Written::default() });
            }
            Format::ClaudeCode | Format::Codex => {
                let Session { id, folder, at } = session;
                let is_codex = self == Format::Codex;
                let (write, provider) = if is_codex {
                    (codex::session as Write, "openai")
                } else {
                    (claude_code::session as Write, "anthropic")
                };
                let bytes = write(&conversation.entries, id, folder, *at).into_bytes();
                return Ok(Written {
                    bytes,
                    left_out: without_place(&conversation.entries, provider),
                    ..Written::default()
                });
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
        let bytes = wire.encode_with(&compiled.page, &target, &extra);
        Ok(Written { bytes, left_out: changed(&compiled.receipt.fates), warnings: compiled.receipt.warnings })
    }
}

/// A conversation in another format.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Written {
    /// The file.
    pub bytes: Vec<u8>,
    /// What the format has no place for, counted.
    pub left_out: Vec<String>,
    /// What the host should know.
    pub warnings: Vec<Warning>,
}

type Write = fn(&[Entry], &str, &str, Millis) -> String;

/// What became of entries that a request does not hold as they are, told once for each reason.
fn changed(fates: &[FateRow]) -> Vec<String> {
    let mut reasons: BTreeMap<String, u64> = BTreeMap::new();
    for row in fates.iter().filter(|row| row.fate != Fate::Shown) {
        let what = if row.fate == Fate::Changed { "changed" } else { "left out" };
        *reasons.entry(format!("{what}: {}", row.why)).or_default() += row.entries;
    }
    reasons.into_iter().map(|(what, entries)| format!("{entries} entries {what}")).collect()
}

/// What a session of a program has no place for: reasoning that its provider did not seal, and what only others
/// understand.
fn without_place(entries: &[Entry], provider: &str) -> Vec<String> {
    let parts = || entries.iter().flat_map(|entry| entry.parts.iter());
    let is_foreign = |part: &&Part| matches!(part, Part::Opaque { provider: own, .. } if **own != *provider);
    let is_unsealed = |part: &&Part| match part {
        Part::Reasoning(it) => it.provider.as_deref() != Some(provider) || !it.is_sealed(),
        _ => false,
    };
    let calls: HashSet<&str> = entries.iter().flat_map(Entry::calls).map(|call| call.id.as_str()).collect();
    let is_orphan = |part: &&Part| matches!(part, Part::Result(result) if !calls.contains(result.call.as_str()));
    let counts = [
        (parts().filter(is_unsealed).count(), "pieces of reasoning left out: the program can't send them back"),
        (parts().filter(is_foreign).count(), "pieces left out that only another provider understands"),
        (parts().filter(is_orphan).count(), "results without a call left out, or told as text"),
    ];
    counts.iter().filter(|(count, _)| *count > 0).map(|(count, what)| format!("{count} {what}")).collect()
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
