//! What the program prints: heard while it comes, and judged at the end.

use super::super::process::{Ended, excerpt};
use super::super::{Failed, Heard, Listen};
use crate::error::{Error, Kind};
use recto::entry::{Entry, Origin, Text};
use recto::tokens::Tokens;
use recto::transcript;
use recto::wire::Usage;
use serde_json::Value;

/// How much of what is printed is kept, for a session file that doesn't show it, in bytes.
const KEPT_BYTES_MAX: usize = 128 * 1024 * 1024;
/// How much of what is no record is kept, in bytes.
const STRAY_BYTES_MAX: usize = 2_000;
/// What the program calls a model that is none.
const SYNTHETIC: &str = "<synthetic>";
/// How the program says that it doesn't know a session, and that it has one of that name already.
const UNKNOWN: [&str; 2] = ["No conversation found", "No message found with message.uuid"];
const IN_USE: &str = "is already in use";

/// Listens to one run.
pub(super) struct Hearing<'l> {
    listen: Listen<'l>,
    /// Messages as they were printed, one a line; `None` if they were too many.
    kept: Option<String>,
    session: Option<Text>,
    model: Option<Text>,
    /// Whether words come in pieces, so that whole messages repeat them.
    has_pieces: bool,
    records: usize,
    /// The first lines that are no records.
    stray: String,
    result: Option<Value>,
}

/// A run that brought an answer.
pub(super) struct Told {
    pub(super) session: Option<Text>,
    pub(super) usage: Option<Usage>,
    pub(super) model: Option<Text>,
    kept: Option<String>,
}

impl<'l> Hearing<'l> {
    pub(super) fn new(listen: Listen<'l>) -> Hearing<'l> {
        Hearing {
            listen,
            kept: Some(String::new()),
            session: None,
            model: None,
            has_pieces: false,
            records: 0,
            stray: String::new(),
            result: None,
        }
    }

    /// Takes one line.
    pub(super) fn line(&mut self, line: &str) {
        let record = serde_json::from_str::<Value>(line).ok().filter(|record| record["type"].is_string());
        let Some(record) = record else {
            if self.stray.len() < STRAY_BYTES_MAX && !line.trim().is_empty() {
                self.stray.push_str(&line.chars().take(STRAY_BYTES_MAX).collect::<String>());
                self.stray.push('\n');
            }
            return;
        };
        self.records += 1;
        match record["type"].as_str().unwrap_or_default() {
            "system" => self.system(&record),
            // What sub-agents say to each other is not part of this conversation.
            _ if record["parent_tool_use_id"].is_string() => {}
            "stream_event" => self.piece(&record["event"]),
            "assistant" if record["message"]["model"] == SYNTHETIC => {}
            "user" if record["isSynthetic"] == true || record["isReplay"] == true => {}
            "assistant" | "user" => {
                self.keep(line);
                self.message(&record);
            }
            "result" => self.result = Some(record),
            _ => {}
        }
    }

    fn keep(&mut self, line: &str) {
        self.kept = self.kept.take().filter(|kept| kept.len() + line.len() < KEPT_BYTES_MAX).map(|mut kept| {
            kept.push_str(line);
            kept.push('\n');
            kept
        });
    }

    fn system(&mut self, record: &Value) {
        let note = match record["subtype"].as_str().unwrap_or_default() {
            "init" => {
                self.model = text(&record["model"]).or(self.model.take());
                if let Some(session) = text(&record["session_id"]) {
                    self.session = Some(session.clone());
                    (self.listen)(Heard::Session(session));
                }
                return;
            }
            "api_retry" => {
                let told = ["error_status", "error"].map(|name| &record[name]).into_iter().find(|it| !it.is_null());
                let why = told.map_or(String::new(), |told| format!(" ({})", plain(told)));
                format!("the provider did not answer{why}; trying again")
            }
            "compact_boundary" => "Claude Code has condensed its conversation".to_string(),
            _ => return,
        };
        (self.listen)(Heard::Note(note.into()));
    }

    fn piece(&mut self, event: &Value) {
        self.has_pieces = true;
        let delta = &event["delta"];
        let heard = match delta["type"].as_str() {
            Some("text_delta") => text(&delta["text"]).map(Heard::Text),
            Some("thinking_delta") => text(&delta["thinking"]).map(Heard::Reasoning),
            _ => None,
        };
        heard.into_iter().for_each(|heard| (self.listen)(heard));
    }

    fn message(&mut self, record: &Value) {
        let message = &record["message"];
        if record["type"] == "assistant" {
            self.model = text(&message["model"]).or(self.model.take());
        }
        for block in message["content"].as_array().into_iter().flatten() {
            let heard = match block["type"].as_str() {
                Some("text") if record["type"] == "assistant" && !self.has_pieces => {
                    text(&block["text"]).map(Heard::Text)
                }
                Some("thinking") if !self.has_pieces => text(&block["thinking"]).map(Heard::Reasoning),
                Some("tool_use") => {
                    text(&block["name"]).map(|name| Heard::Call { name, arguments: block["input"].to_string().into() })
                }
                Some("tool_result") => {
                    let is_error = block["is_error"] == true;
                    Some(Heard::Result { text: plain(&block["content"]).into(), is_error })
                }
                _ => None,
            };
            heard.into_iter().for_each(|heard| (self.listen)(heard));
        }
    }

    /// Judges the run: it went well only if the program says so, and has an answer.
    pub(super) fn told(self, ended: Result<Ended, Error>) -> Result<Told, Failed> {
        let Some(result) = &self.result else {
            return Err(match ended {
                Err(error) => Failed::Other(error),
                Ok(ended) => self.silent(&ended),
            });
        };
        let errors = result["errors"].as_array().into_iter().flatten().map(plain).collect::<Vec<_>>().join("; ");
        let answer = result["result"].as_str().unwrap_or_default();
        if result["is_error"] != false {
            let kind = result["subtype"].as_str().filter(|kind| *kind != "success").unwrap_or("an error");
            let why = [answer, &errors, kind].into_iter().find(|it| !it.trim().is_empty()).unwrap_or_default();
            let status = result["api_error_status"].as_u64().and_then(|status| u16::try_from(status).ok());
            return Err(failed(why, status));
        }
        if answer.trim().is_empty() {
            let what = format!("Claude Code ended without an answer{}", seen("; it said", &errors));
            return Err(program(what, "ask again, or look at the session with Claude Code itself"));
        }
        let session = text(&result["session_id"]).or(self.session);
        Ok(Told { session, usage: usage(&result["usage"]), model: self.model, kept: self.kept })
    }

    /// Why there is no result.
    fn silent(&self, ended: &Ended) -> Failed {
        if UNKNOWN.iter().chain([&IN_USE]).any(|words| ended.stderr.contains(words)) {
            return failed(&ended.stderr, None);
        }
        let how = ended.code.map_or("was killed by a signal".to_string(), |code| format!("ended with code {code}"));
        let what = match (self.records, self.stray.is_empty()) {
            (0, false) => "without a single record, so it may not be Claude Code",
            (0, true) => "without a word",
            _ => "before it told a result",
        };
        let said = [seen("; it printed", &self.stray), seen("; on stderr", &ended.stderr)].concat();
        program(format!("Claude Code {how} {what}{said}"), "run it by hand with the same settings to see why")
    }
}

impl Told {
    /// Returns what the program said and did as it was printed, without the message of ours.
    pub(super) fn entries(self, own: &str) -> Result<Vec<Entry>, Error> {
        let lost = "what Claude Code did stands neither in its session file nor in what it printed";
        let hint = "check that its folder of sessions can be written to";
        let Some(kept) = self.kept.filter(|kept| !kept.is_empty()) else {
            return Err(Kind::Program { what: lost.into(), hint: hint.into() }.into());
        };
        let entries = transcript::read(&kept)?.into_iter().flat_map(|conversation| conversation.entries);
        let is_own = |entry: &Entry| entry.id.as_ref().is_some_and(|id| id.as_str() == own);
        Ok(entries.filter(|entry| entry.origin != Origin::Host && !is_own(entry)).collect())
    }
}

fn failed(why: &str, status: Option<u16>) -> Failed {
    let told = excerpt(why).into_owned();
    if UNKNOWN.iter().any(|words| why.contains(words)) {
        return Failed::Unknown(told);
    }
    if why.contains(IN_USE) {
        return Failed::InUse(told);
    }
    let what = format!("Claude Code failed: {told}");
    match status {
        Some(status) => {
            let hint = match status {
                401 | 403 => "check the key that it is given, or sign in with Claude Code itself",
                429 | 500.. => "try again later",
                _ => "the provider did not take the request; the message says why",
            };
            Failed::Other(Kind::Refused { what, status: Some(status), code: None, hint: hint.into() }.into())
        }
        None => program(what, "the message says why"),
    }
}

fn program(what: String, hint: &str) -> Failed {
    Failed::Other(Kind::Program { what, hint: hint.into() }.into())
}

fn seen(label: &str, text: &str) -> String {
    if text.trim().is_empty() { String::new() } else { format!("{label}: {}", excerpt(text)) }
}

/// What this run used; the program adds up its calls.
fn usage(told: &Value) -> Option<Usage> {
    let number = |name: &str| told[name].as_u64();
    let (cached, written) = (number("cache_read_input_tokens"), number("cache_creation_input_tokens"));
    let (cached, written) = (cached.unwrap_or(0), written.unwrap_or(0));
    // What is cached stands beside the input here, not within it.
    let input = number("input_tokens")?.saturating_add(cached).saturating_add(written);
    let output = Tokens(number("output_tokens").unwrap_or(0));
    Some(Usage { input: Tokens(input), cached: Tokens(cached), written: Tokens(written), output })
}

fn text(value: &Value) -> Option<Text> {
    value.as_str().filter(|text| !text.is_empty()).map(Into::into)
}

/// A text, the texts of a list of blocks, or JSON.
fn plain(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Array(blocks) => {
            let texts = blocks.iter().map(|block| block["text"].as_str().map_or_else(|| "[…]".into(), String::from));
            texts.collect::<Vec<_>>().join("\n")
        }
        Value::Null => String::new(),
        value => value.to_string(),
    }
}
