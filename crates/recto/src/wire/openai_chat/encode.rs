//! From page to body: written straight into bytes, in a fixed order of keys.

use super::content;
use crate::entry::{Call, Part, Role};
use crate::format::ResponseFormat;
use crate::page::{After, Message, Mode, Page};
use crate::target::{Caching, Reasoned, Target};
use crate::tool::arguments_object;
use crate::wire::json::Fields;
use crate::wire::write::{extra, field, raw, room, separated, string};
use crate::wire::{Ids, TOOLS_MAX, Wire, tool_name};
use serde_json::{Map, Value};
use std::collections::{HashMap, HashSet};

/// What the user says where somebody must and nobody did.
const CONTINUE: &str = r#"{"role":"user","content":"[Continue.]"}"#;
/// A cache mark.
const MARK: &str = r#"{"mode":"explicit"}"#;

/// Writes the body of a request for a page.
pub fn encode(page: &Page, target: &Target) -> Vec<u8> {
    encode_with(page, target, &Map::new())
}

/// Writes the body of a request for a page, with fields of the host's own.
pub fn encode_with(page: &Page, target: &Target, fields: &Map<String, Value>) -> Vec<u8> {
    let mut out = Vec::with_capacity(room(page));
    field(&mut out, r#"{"model":"#, &target.name);
    raw(&mut out, r#","messages":"#);
    if page.messages.is_empty() {
        out.push(b'[');
        raw(&mut out, CONTINUE);
        out.push(b']');
    } else {
        Writer::new(page, Form::of(page, target)).messages(&mut out);
    }
    let mut written = vec!["model", "messages", "tools"];
    let tools = page.tools.as_ref().filter(|tools| tools.taken(Wire::OpenaiChat).next().is_some());
    match tools {
        Some(tools) => {
            raw(&mut out, r#","tools":"#);
            tools.write(&mut out, Wire::OpenaiChat, None);
            let has_functions = tools.taken(Wire::OpenaiChat).any(|tool| tool.function.is_some());
            if has_functions && !target.chat_tools && !fields.contains_key("reasoning_effort") {
                raw(&mut out, r#","reasoning_effort":"none""#);
            }
        }
        // Without tools they are refused.
        None => written.extend(["tool_choice", "parallel_tool_calls"]),
    }
    if let Some(format) = &page.format {
        written.push("response_format");
        raw(&mut out, r#","response_format":"#);
        response_format(&mut out, format);
    }
    extra(&mut out, fields, &written);
    out.push(b'}');
    out
}

/// Writes the messages of a page alone, as a JSON array.
pub fn encode_messages(page: &Page) -> Vec<u8> {
    let mut out = Vec::with_capacity(room(page));
    let form = Form { merges: false, has_reasoning: true, marks: HashMap::new() };
    Writer::new(page, form).messages(&mut out);
    out
}

fn response_format(out: &mut Vec<u8>, format: &ResponseFormat) {
    match format {
        ResponseFormat::Json => raw(out, r#"{"type":"json_object"}"#),
        ResponseFormat::Schema { name, schema, strict } => {
            let name = ResponseFormat::accepted_name(name);
            field(out, r#"{"type":"json_schema","json_schema":{"name":"#, &name);
            raw(out, r#","schema":"#);
            raw(out, schema);
            if let Some(strict) = strict {
                raw(out, if *strict { r#","strict":true"# } else { r#","strict":false"# });
            }
            raw(out, "}}");
        }
    }
}

/// What a server wants of messages beyond the rules.
struct Form<'p> {
    /// Neighbouring messages of one role are one, a user speaks first, texts are strings, arguments are objects.
    merges: bool,
    has_reasoning: bool,
    /// Cache marks as JSON text, by message.
    marks: HashMap<usize, &'p str>,
}

impl<'p> Form<'p> {
    fn of(page: &'p Page, target: &Target) -> Form<'p> {
        let marks = page.marks.iter().filter(|_| target.cache.kind == Caching::MarksAndEnd);
        let by_message = marks.filter_map(|mark| match mark.after {
            After::Message(at) => {
                Some((at, mark.given.as_deref().filter(|given| is_breakpoint(given)).unwrap_or(MARK)))
            }
            // Tools can't be marked here.
            After::Tools => None,
        });
        Form { merges: target.merges, has_reasoning: target.reasoning == Reasoned::Text, marks: by_message.collect() }
    }
}

/// Whether a client's mark is one of this wire; another's says where, but not how.
fn is_breakpoint(given: &str) -> bool {
    let fields: Fields<'_> = serde_json::from_str(given).unwrap_or_default();
    fields.get("mode").is_some_and(|raw| raw.get() == "\"explicit\"")
}

struct Writer<'p> {
    page: &'p Page,
    form: Form<'p>,
    /// Those of the newest step; the provider lets another step use them again.
    ids: Ids<'p>,
}

impl<'p> Writer<'p> {
    fn new(page: &'p Page, form: Form<'p>) -> Writer<'p> {
        Writer { page, form, ids: Ids::default() }
    }

    fn messages(&mut self, out: &mut Vec<u8>) {
        let list = &self.page.messages;
        let mut needs_user = self.form.merges && self.page.mode == Mode::Full;
        out.push(b'[');
        let mut at = 0;
        while at < list.len() {
            if at > 0 {
                out.push(b',');
            }
            if needs_user && list[at].role != Role::System {
                needs_user = false;
                if list[at].role != Role::User {
                    raw(out, CONTINUE);
                    out.push(b',');
                }
            }
            at = self.turn(out, at);
        }
        if needs_user && !list.is_empty() {
            out.push(b',');
            raw(out, CONTINUE);
        }
        out.push(b']');
    }

    /// Writes one message, or several that belong together, and returns what comes next.
    fn turn(&mut self, out: &mut Vec<u8>, at: usize) -> usize {
        let list = &self.page.messages;
        let end = at + self.run(at);
        if list[at].role == Role::Assistant {
            self.ids = Ids::default();
            self.ids.begin(&list[end - 1].parts);
        }
        let calls = calls_of(&list[end - 1]);
        if calls.len() <= TOOLS_MAX {
            self.message(out, at..end, &calls);
            return end;
        }
        let answers = list[end..].iter().take_while(|message| message.role == Role::Tool).count();
        self.split(out, at..end, &calls, end + answers);
        end + answers
    }

    /// How many messages from here on become one.
    fn run(&self, at: usize) -> usize {
        let (list, role) = (&self.page.messages, self.page.messages[at].role);
        if !self.form.merges || role == Role::Tool {
            return 1;
        }
        let mut end = at + 1;
        while end < list.len() && list[end].role == role && calls_of(&list[end - 1]).is_empty() {
            end += 1;
        }
        end - at
    }

    /// Writes a step with more calls than one message takes: several messages, each with the results of its own calls.
    fn split(&mut self, out: &mut Vec<u8>, run: std::ops::Range<usize>, calls: &[(usize, &'p Call)], end: usize) {
        for (nth, chunk) in calls.chunks(TOOLS_MAX).enumerate() {
            match nth {
                0 => self.message(out, run.clone(), chunk),
                _ => {
                    raw(out, r#",{"role":"assistant","content":"#);
                    raw(out, if self.form.merges { "\"\"" } else { "null" });
                    self.tool_calls(out, &self.page.messages[run.end - 1], chunk);
                    out.push(b'}');
                }
            }
            let own: HashSet<&str> = chunk.iter().map(|(_, call)| call.id.as_str()).collect();
            for at in run.end..end {
                let is_own = |part: &Part| matches!(part, Part::Result(it) if own.contains(it.call.as_str()));
                if self.page.messages[at].parts.iter().any(is_own) {
                    out.push(b',');
                    self.message(out, at..at + 1, &[]);
                }
            }
        }
    }

    /// Writes messages as one, with these of its calls.
    fn message(&self, out: &mut Vec<u8>, run: std::ops::Range<usize>, calls: &[(usize, &'p Call)]) {
        let list = &self.page.messages[run.clone()];
        let role = list[0].role;
        raw(
            out,
            match role {
                Role::System => r#"{"role":"system""#,
                Role::User => r#"{"role":"user""#,
                Role::Assistant => r#"{"role":"assistant""#,
                Role::Tool => r#"{"role":"tool""#,
            },
        );
        if let Some(name) = list[0].author.as_ref().filter(|_| role != Role::Tool && !self.form.merges) {
            field(out, r#","name":"#, &content::author(name));
        }
        if let (Role::Tool, [Part::Result(result)]) = (role, &*list[0].parts) {
            field(out, r#","tool_call_id":"#, &self.ids.of(result.call.as_str()));
        }
        let mut chunks = Vec::new();
        for (message, at) in list.iter().zip(run) {
            content::add(&mut chunks, message, self.form.marks.get(&at).copied());
        }
        raw(out, r#","content":"#);
        let is_null = !calls.is_empty() && !self.form.merges;
        content::write(out, &chunks, self.form.merges, if is_null { "null" } else { "\"\"" });
        if role == Role::Assistant && self.form.has_reasoning {
            reasoning(out, list);
        }
        self.tool_calls(out, &list[list.len() - 1], calls);
        if let ([message], Some(fields)) = (list, list.first().and_then(content::message_fields)) {
            let own = ["role", "content", "reasoning_content", "tool_calls", "tool_call_id", "is_error", "name"];
            // On results the name is the client's own.
            let own = if message.role == Role::Tool { &own[..own.len() - 1] } else { &own[..] };
            extra(out, fields, own);
        }
        out.push(b'}');
    }

    fn tool_calls(&self, out: &mut Vec<u8>, message: &Message, calls: &[(usize, &'p Call)]) {
        if calls.is_empty() {
            return;
        }
        raw(out, r#","tool_calls":["#);
        separated(out, calls, |out, (at, call)| {
            let fields = content::fields_of_part(message, *at);
            field(out, r#"{"id":"#, &self.ids.of(call.id.as_str()));
            if fields.and_then(|fields| fields.get("type")).is_some_and(|kind| kind == "custom") {
                field(out, r#","type":"custom","custom":{"name":"#, &tool_name(&call.name));
                field(out, r#","input":"#, call.arguments.as_str());
            } else {
                field(out, r#","type":"function","function":{"name":"#, &tool_name(&call.name));
                raw(out, r#","arguments":"#);
                self.arguments(out, call);
            }
            out.push(b'}');
            if let Some(fields) = fields {
                extra(out, fields, &["id", "type", "function", "custom"]);
            }
            out.push(b'}');
        });
        out.push(b']');
    }

    fn arguments(&self, out: &mut Vec<u8>, call: &Call) {
        if !self.form.merges {
            return string(out, call.arguments.as_str());
        }
        let mut object = Vec::new();
        arguments_object(&mut object, call.arguments.as_str());
        string(out, &String::from_utf8_lossy(&object));
    }
}

fn calls_of(message: &Message) -> Vec<(usize, &Call)> {
    let parts = message.parts.iter().enumerate().filter(|_| message.role == Role::Assistant);
    parts.filter_map(|(at, part)| if let Part::Call(call) = part { Some((at, call)) } else { None }).collect()
}

fn reasoning(out: &mut Vec<u8>, list: &[Message]) {
    let parts = list.iter().flat_map(|message| message.parts.iter());
    let thought: String =
        parts.filter_map(|part| if let Part::Reasoning(it) = part { Some(&*it.text) } else { None }).collect();
    if !thought.is_empty() {
        field(out, r#","reasoning_content":"#, &thought);
    }
}
