//! A session file that the program resumes: the conversation as records that hang on each other in one chain.

use crate::digest::{Digest, Hasher};
use crate::entry::{Call, CallId, Entry, Millis, Part, Role, ToolResult};
use crate::page::{Message, Mode, Page};
use crate::tokens::Tokens;
use crate::transcript::time;
use crate::view::shape::LATE_SYSTEM;
use crate::wire::anthropic::encode_unasked;
use crate::wire::call_id;
use crate::wire::write::{field, raw, string};
use serde_json::{Map, Value};
use std::borrow::Cow;
use std::collections::{HashMap, HashSet};

/// The version of the program whose records these are like.
const VERSION: &str = "2.1.197";

/// Writes entries as a session that Claude Code resumes: every call has a result, instructions stand as marked words of
/// the user's, and what is no longer shown stands before a boundary. Entries without a time are counted up from `at`.
/// `session_id` must be a UUID.
pub fn session(entries: &[Entry], session_id: &str, cwd: &str, at: Millis) -> String {
    let mut writing =
        Writing { session_id, cwd, out: Vec::new(), parent: None, lines: 0, at: Millis(at.0.saturating_sub(1)) };
    let apart = apart(entries);
    let mut rest = apart.as_deref().unwrap_or(entries);
    while !rest.is_empty() {
        let end = rest.iter().skip(1).position(|entry| entry.edge).map_or(rest.len(), |at| at + 1);
        let (segment, later) = rest.split_at(end);
        let is_summary = segment[0].edge && writing.parent.is_some();
        if is_summary {
            writing.boundary(segment[0].at);
        }
        writing.segment(segment, is_summary);
        rest = later;
    }
    String::from_utf8(writing.out).expect("JSON is written as UTF-8")
}

/// Writes what is said in the user's place as the line that the program reads on its input: one message with this UUID,
/// whoever spoke. `None` if there is nothing in it that could be said.
pub fn user_line(said: &[Message], uuid: &str) -> Option<String> {
    // Of nothing, a page would still make a word of the user's.
    if said.iter().all(|message| message.parts.is_empty()) {
        return None;
    }
    let messages =
        said.iter().map(|it| Message { role: in_users_place(it.role), ..marked(it.role, &it.parts, &it.extra) });
    let messages = messages.collect();
    let page = Page { mode: Mode::Full, messages, tools: None, format: None, marks: Vec::new(), output: Tokens(0) };
    let written = encode_unasked(&page);
    let arrays = written.iter().filter_map(|it| it.content.strip_prefix('[')?.strip_suffix(']'));
    let blocks = arrays.filter(|blocks| !blocks.is_empty()).collect::<Vec<_>>().join(",");
    if blocks.is_empty() {
        return None;
    }
    let mut out = Vec::with_capacity(blocks.len() + 120);
    field(&mut out, r#"{"type":"user","uuid":"#, uuid);
    raw(&mut out, r#","message":{"role":"user","content":["#);
    raw(&mut out, &blocks);
    raw(&mut out, "]}}\n");
    Some(String::from_utf8(out).expect("JSON is written as UTF-8"))
}

/// A result without its call is told as text; everybody else's words are the user's.
fn in_users_place(role: Role) -> Role {
    if role == Role::Tool { Role::Tool } else { Role::User }
}

struct Writing<'w> {
    session_id: &'w str,
    cwd: &'w str,
    out: Vec<u8>,
    /// The record that the next one hangs on.
    parent: Option<String>,
    lines: u64,
    /// The time of the newest record.
    at: Millis,
}

impl Writing<'_> {
    fn segment(&mut self, entries: &[Entry], is_summary: bool) {
        let order = paired(entries);
        let messages = order.iter().map(|at| message(&entries[*at])).collect();
        let page = Page { mode: Mode::Full, messages, tools: None, format: None, marks: Vec::new(), output: Tokens(0) };
        for (nth, written) in encode_unasked(&page).into_iter().enumerate() {
            let entry = order.get(written.message).map(|at| &entries[*at]);
            let mut body = Vec::with_capacity(written.content.len() + 80);
            raw(&mut body, if written.is_assistant { r#"{"role":"assistant""# } else { r#"{"role":"user""# });
            if written.is_assistant {
                // Older versions of the program take answers without an id for pieces of one.
                let name = format!("{} {} {}", self.session_id, self.lines, written.content);
                let digest = Digest::of(name.as_bytes()).to_string();
                field(&mut body, r#","id":"#, &format!("msg_{}", &digest[..24]));
            }
            if let Some(model) = entry.and_then(model_of).filter(|_| written.is_assistant) {
                field(&mut body, r#","model":"#, model);
            }
            raw(&mut body, r#","content":"#);
            raw(&mut body, &written.content);
            body.push(b'}');
            let flag = match entry.map(|entry| entry.role) {
                Some(Role::System) => r#","isMeta":true"#,
                _ if nth == 0 && is_summary && !written.is_assistant => r#","isCompactSummary":true"#,
                _ => "",
            };
            let kind = if written.is_assistant { "assistant" } else { "user" };
            self.line(kind, entry.and_then(|entry| entry.at), |out| {
                raw(out, flag);
                raw(out, r#","message":"#);
                out.extend_from_slice(&body);
            });
        }
    }

    /// What stands before is no longer shown.
    fn boundary(&mut self, at: Option<Millis>) {
        let before = self.parent.take().unwrap_or_default();
        self.line("system", at, |out| {
            field(out, r#","logicalParentUuid":"#, &before);
            raw(out, r#","subtype":"compact_boundary","content":"Conversation compacted","level":"info","#);
            raw(out, r#""compactMetadata":{"trigger":"manual","preTokens":0}"#);
        });
    }

    /// Writes a record with what `rest` adds to it.
    fn line(&mut self, kind: &str, at: Option<Millis>, rest: impl FnOnce(&mut Vec<u8>)) {
        self.at = at.unwrap_or(Millis(self.at.0.saturating_add(1)));
        let mut told = Vec::new();
        rest(&mut told);
        let uuid = self.uuid(&told);
        let out = &mut self.out;
        raw(out, r#"{"parentUuid":"#);
        match &self.parent {
            Some(parent) => string(out, parent),
            None => raw(out, "null"),
        }
        field(out, r#","isSidechain":false,"userType":"external","cwd":"#, self.cwd);
        field(out, r#","sessionId":"#, self.session_id);
        field(out, r#","version":"#, VERSION);
        field(out, r#","gitBranch":"","type":"#, kind);
        out.extend_from_slice(&told);
        field(out, r#","uuid":"#, &uuid);
        field(out, r#","timestamp":"#, &time::written(self.at));
        raw(out, "}\n");
        self.parent = Some(uuid);
        self.lines += 1;
    }

    /// A UUID that depends on what is said, and on where, alone.
    fn uuid(&self, told: &[u8]) -> String {
        let mut hasher = Hasher::new();
        hasher.text(self.session_id);
        hasher.maybe(self.parent.as_deref());
        hasher.number(self.lines);
        hasher.bytes(told);
        let hex: String = hasher.finish().to_string().chars().filter(char::is_ascii_hexdigit).collect();
        let hex = format!("{hex:0<32}");
        // The version and the variant of a UUID that was made from a name.
        format!("{}-{}-5{}-a{}-{}", &hex[..8], &hex[8..12], &hex[13..16], &hex[17..20], &hex[20..32])
    }
}

fn model_of(entry: &Entry) -> Option<&str> {
    entry
        .parts
        .iter()
        .find_map(|part| if let Part::Reasoning(thought) = part { thought.model.as_deref() } else { None })
}

fn message(entry: &Entry) -> Message {
    marked(entry.role, &entry.parts, &entry.extra)
}

/// A message of these parts; instructions are marked words of the user's.
fn marked(role: Role, parts: &[Part], extra: &Map<String, Value>) -> Message {
    let marked = |part: &Part| match part {
        Part::Text { text } if role == Role::System && !text.trim().is_empty() => {
            Part::text(format!("{LATE_SYSTEM}{text}"))
        }
        part => part.clone(),
    };
    Message {
        role: if role == Role::System { Role::User } else { role },
        author: None,
        parts: parts.iter().map(marked).collect(),
        seq: None,
        cost: Tokens(0),
        digest: Digest::default(),
        extra: extra.clone().into_iter().filter(|(name, _)| name == "anthropic").collect(),
    }
}

/// The entries with ids that can't be taken for each other: the program takes a call whose id is another's, an underscore
/// and a number, for a piece of that one. `None` where they are apart as they are.
fn apart(entries: &[Entry]) -> Option<Vec<Entry>> {
    let ids: HashSet<Cow<'_, str>> =
        entries.iter().flat_map(Entry::calls).map(|call| call_id(call.id.as_str())).collect();
    let renamed = |id: &CallId| {
        let id = call_id(id.as_str());
        let (start, number) = id.rsplit_once('_')?;
        let is_piece = !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit()) && ids.contains(start);
        is_piece.then(|| CallId::from(format!("{start}-{number}")))
    };
    if !entries.iter().flat_map(Entry::calls).any(|call| renamed(&call.id).is_some()) {
        return None;
    }
    let part = |part: &Part| match part {
        Part::Call(call) => match renamed(&call.id) {
            Some(id) => Part::Call(Call { id, ..call.clone() }),
            None => part.clone(),
        },
        Part::Result(result) => match renamed(&result.call) {
            Some(call) => Part::Result(ToolResult { call, ..result.clone() }),
            None => part.clone(),
        },
        part => part.clone(),
    };
    Some(entries.iter().map(|entry| Entry { parts: entry.parts.iter().map(part).collect(), ..entry.clone() }).collect())
}

/// The order of entries in which results follow their calls, wherever they came.
fn paired(entries: &[Entry]) -> Vec<usize> {
    // Which step made the newest call of a name, and the first result behind it.
    let (mut open, mut answers): (HashMap<&str, usize>, Vec<Vec<usize>>) =
        (HashMap::new(), vec![Vec::new(); entries.len()]);
    let mut is_moved = vec![false; entries.len()];
    for (at, entry) in entries.iter().enumerate() {
        for part in entry.parts.iter() {
            match part {
                Part::Call(call) => drop(open.insert(call.id.as_str(), at)),
                Part::Result(result) => {
                    if let Some(step) = open.remove(result.call.as_str()) {
                        answers[step].push(at);
                        is_moved[at] = true;
                    }
                }
                _ => {}
            }
        }
    }
    let rest = (0..entries.len()).filter(|at| !is_moved[*at]);
    rest.flat_map(|at| std::iter::once(at).chain(answers[at].iter().copied())).collect()
}
