//! What stands behind a place in a rollout: what was said since, and how the last turn ended.

use super::read::{ITEMS, Line, Meta, begins_turn, line, lines};
use crate::entry::{Entry, Part, Role, Text};
use crate::error::Error;
use crate::tokens::Tokens;
use crate::wire::Usage;
use crate::wire::json::{Source, without_lone_surrogates};
use crate::wire::openai_responses::{Items, Record, kind_of};
use serde::Deserialize;
use serde_json::value::RawValue;

/// How the kinds of contents begin that the one who runs the program has said.
const SAID: &str = "user.";

/// What stands behind a place in a rollout.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Since {
    /// What was said, without what the program told the model by itself. A compaction changes nothing about that.
    pub entries: Vec<Entry>,
    /// Whether the last of it is an answer of the model's, and its turn came to its end.
    pub is_answered: bool,
    /// Whether turns from before were taken back, too.
    pub goes_back: bool,
    /// What its model calls used together.
    pub usage: Option<Usage>,
    /// The model that was asked last.
    pub model: Option<Text>,
    /// How many bytes of the text were read: all, but for a last line that is cut off.
    pub bytes: usize,
}

/// How a session was begun.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Begun {
    /// The instructions that come back whenever none are given.
    pub base: Option<Text>,
    /// What whoever began it said it was for.
    pub source: Option<Text>,
}

/// Returns how a session was begun; `None` if the text doesn't begin as a rollout does.
pub fn begun(text: &str) -> Option<Begun> {
    let meta = Meta::of(text)?;
    Some(Begun { base: meta.begun_with(), source: meta.thread_source })
}

/// Reads the part of a rollout that stands behind the end of one of its lines; the whole of it is one, too.
pub fn since(text: &str) -> Result<Since, Error> {
    let (fixed, _) = without_lone_surrogates(text);
    let source = Source { text: &fixed };
    let mut reading = Reading::default();
    let mut bytes = text.len();
    for (offset, text) in lines(source.text) {
        match line(&source, offset, text)? {
            Some(line) => {
                bytes = source.text.len();
                reading.line(&source, &line)?;
            }
            None => bytes = offset,
        }
    }
    Ok(Since { bytes, ..reading.told() })
}

#[derive(Default)]
struct Reading {
    items: Items,
    number: usize,
    /// How the last turn stands, once the text tells of one.
    turn: Option<Turn>,
    goes_back: bool,
    recorded: Option<Usage>,
    counted: Option<Counted>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Turn {
    Open,
    Failed,
    Complete,
}

/// Sums of all calls of the session: before the first one that is told of, and after the last.
struct Counted {
    before: Usage,
    after: Usage,
}

/// What only some records say.
#[derive(Deserialize)]
struct Event<'t> {
    #[serde(rename = "type")]
    kind: String,
    #[serde(default, borrow)]
    error: Option<&'t RawValue>,
    #[serde(default)]
    num_turns: u64,
    #[serde(default)]
    info: Option<Info>,
}

#[derive(Deserialize)]
struct Info {
    total_token_usage: Spent,
    last_token_usage: Spent,
}

#[derive(Deserialize)]
struct Recorded {
    usage: Spent,
}

#[derive(Clone, Copy, Deserialize)]
struct Spent {
    #[serde(default)]
    input_tokens: u64,
    #[serde(default)]
    cached_input_tokens: u64,
    #[serde(default)]
    cache_write_input_tokens: u64,
    #[serde(default)]
    output_tokens: u64,
}

/// Where a message came from, as the program notes it.
#[derive(Deserialize)]
struct Message {
    #[serde(default)]
    role: String,
    #[serde(default, rename = "internal_chat_message_metadata_passthrough")]
    noted: Option<Noted>,
}

#[derive(Deserialize)]
struct Noted {
    #[serde(default)]
    content_item_kinds: Option<Vec<String>>,
}

impl Reading {
    fn line(&mut self, source: &Source<'_>, line: &Line<'_>) -> Result<(), Error> {
        self.number += 1;
        match line.kind.as_str() {
            "turn_context" => {
                let fields: Record<'_> = source.read(line.payload, "turn_context")?;
                self.items.model = fields.text("model").map(Into::into).or(self.items.model.take());
            }
            "response_item" => self.item(source, line)?,
            "event_msg" => self.event(source, line.payload)?,
            "token_usage_record" => {
                let Recorded { usage } = source.read(line.payload, "token_usage_record")?;
                self.recorded = Some(sum(self.recorded.unwrap_or_default(), usage.usage()));
            }
            _ => {}
        }
        Ok(())
    }

    fn item(&mut self, source: &Source<'_>, line: &Line<'_>) -> Result<(), Error> {
        let here = format!("record {}", self.number);
        let fields: Record<'_> = source.read(line.payload, &here)?;
        let kind = kind_of(&fields).unwrap_or_default();
        if !ITEMS.contains(&kind.as_str()) {
            return Ok(());
        }
        self.items.at = line.at();
        if kind != "message" {
            return self.items.take(source, line.payload, &here);
        }
        let message: Message = source.read(line.payload, &here)?;
        let kinds = message.noted.and_then(|noted| noted.content_item_kinds);
        let is_said = match (message.role.as_str(), &kinds) {
            ("developer" | "system", _) => false,
            ("user", Some(kinds)) => kinds.iter().any(|kind| kind.starts_with(SAID)),
            _ => true,
        };
        if !is_said {
            self.items.close();
            return Ok(());
        }
        self.items.take(source, line.payload, &here)?;
        let has_no_kinds = message.role == "user" && kinds.is_none();
        if has_no_kinds && self.items.entries.last().is_some_and(|entry| !begins_turn(entry)) {
            self.items.entries.pop();
        }
        Ok(())
    }

    fn event(&mut self, source: &Source<'_>, raw: &RawValue) -> Result<(), Error> {
        let fields: Record<'_> = source.read(raw, "event_msg")?;
        let known = ["task_started", "task_complete", "turn_aborted", "thread_rolled_back", "token_count"].map(Some);
        if !known.contains(&fields.text("type").as_deref()) {
            return Ok(());
        }
        let event: Event<'_> = source.read(raw, "event_msg")?;
        match event.kind.as_str() {
            "task_started" => self.turn = Some(Turn::Open),
            "turn_aborted" => self.turn = Some(Turn::Failed),
            "task_complete" => {
                let has_failed = event.error.is_some_and(|error| error.get() != "null");
                self.turn = Some(if has_failed { Turn::Failed } else { Turn::Complete });
            }
            "thread_rolled_back" => self.take_back(event.num_turns),
            _ => {
                if let Some(info) = event.info {
                    let (total, last) = (info.total_token_usage.usage(), info.last_token_usage.usage());
                    let before = self.counted.take().map_or_else(|| less(total, last), |it| it.before);
                    self.counted = Some(Counted { before, after: total });
                }
            }
        }
        Ok(())
    }

    fn take_back(&mut self, turns: u64) {
        self.items.close();
        for _ in 0..turns {
            match self.items.entries.iter().rposition(begins_turn) {
                Some(at) => self.items.entries.truncate(at),
                None => {
                    self.goes_back = true;
                    return self.items.entries.clear();
                }
            }
        }
    }

    fn told(mut self) -> Since {
        self.items.close();
        let is_answer = |entry: &Entry| {
            let has_text = entry.parts.iter().any(|part| matches!(part, Part::Text { .. }) && part.is_content());
            entry.role == Role::Assistant && has_text && entry.calls().next().is_none()
        };
        let has_ended = self.turn.is_none_or(|turn| turn == Turn::Complete);
        let is_answered = has_ended && self.items.entries.last().is_some_and(is_answer);
        let usage = self.recorded.or(self.counted.map(|it| less(it.after, it.before)));
        let Items { entries, model, .. } = self.items;
        Since { entries, is_answered, goes_back: self.goes_back, usage, model, bytes: 0 }
    }
}

impl Spent {
    fn usage(self) -> Usage {
        Usage {
            input: Tokens(self.input_tokens),
            cached: Tokens(self.cached_input_tokens),
            written: Tokens(self.cache_write_input_tokens),
            output: Tokens(self.output_tokens),
        }
    }
}

fn sum(one: Usage, other: Usage) -> Usage {
    Usage {
        input: one.input + other.input,
        cached: one.cached + other.cached,
        written: one.written + other.written,
        output: one.output + other.output,
    }
}

fn less(one: Usage, other: Usage) -> Usage {
    Usage {
        input: one.input - other.input,
        cached: one.cached - other.cached,
        written: one.written - other.written,
        output: one.output - other.output,
    }
}
