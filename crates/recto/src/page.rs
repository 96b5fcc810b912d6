//! The page: what the model is to read, in no provider's format.

use crate::binding::Binding;
use crate::cache;
use crate::digest::{Digest, Hasher};
use crate::entry::{Arguments, Call, Part, Piece, Reasoning, Role, Seq, Text, ToolResult};
use crate::format::ResponseFormat;
use crate::fragment::{Lifecycle, Placement, Rendered};
use crate::holding::Holding;
use crate::item::{Answer, Changed, Item, Kind, Laid, NO_RESULT};
use crate::log::{Counted, cost_of, digest_of};
use crate::receipt::Ledger;
use crate::request::Request;
use crate::target::{LateSystem, Target};
use crate::tokens::Tokens;
use crate::tool::Tools;
use crate::view::View;
use crate::view::shape;
pub use crate::view::shape::LATE_SYSTEM;
use crate::wire::Wire;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::sync::Arc;

/// What the model is to read.
#[derive(Clone, Debug, PartialEq)]
pub struct Page {
    /// Whether it is everything, or what is new.
    pub mode: Mode,
    /// The messages, in order.
    pub messages: Vec<Message>,
    /// The tools offered.
    pub tools: Option<Tools>,
    /// The form that the answer must have.
    pub format: Option<ResponseFormat>,
    /// Where the provider is told that what stands before will come again.
    pub marks: Vec<Mark>,
    /// The longest answer that there is room for.
    pub output: Tokens,
}

/// The end of something that a provider should cache.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Mark {
    /// Behind what it stands.
    pub after: After,
    /// The client's own mark as JSON text, if it set one there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub given: Option<Text>,
}

/// What a cache mark stands behind.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum After {
    /// All tools.
    Tools,
    /// The message with this number, from 0.
    Message(usize),
}

/// How much of the conversation a page carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Mode {
    /// Everything the model should read.
    Full,
    /// Only what the provider does not hold yet.
    Delta,
    /// The provider holds everything: there is nothing to send.
    NothingNew,
}

/// One message of a page.
#[derive(Clone, Debug, PartialEq)]
pub struct Message {
    /// Who speaks.
    pub role: Role,
    /// Which agent or person, where the log says so.
    pub author: Option<Text>,
    /// What is said; the results of a step follow its calls as messages of their own.
    pub parts: Arc<[Part]>,
    /// The entry it shows; `None` for the input, which is in no log yet.
    pub seq: Option<Seq>,
    /// What it costs.
    pub cost: Tokens,
    /// What identifies its content.
    pub digest: Digest,
    /// Fields of a client's record that have no place in parts, where the entry is shown as it is: by wire.
    pub extra: Map<String, Value>,
}

impl Message {
    /// A message that shows no entry as it is.
    fn of(role: Role, parts: impl Into<Arc<[Part]>>, cost: Tokens) -> Message {
        let parts = parts.into();
        let digest = digest_of(role, None, &parts);
        Message { role, author: None, parts, seq: None, cost, digest, extra: Map::new() }
    }
}

impl Page {
    /// Returns what identifies everything that the answer to this page will have stood behind:
    /// [`Entry::bound_to`](crate::Entry::bound_to) keeps it with the answer's reasoning.
    pub fn binding(&self) -> Digest {
        let mut binding = self.tools_binding();
        for message in &self.messages {
            binding.pass(message.role, message.author.as_deref(), &message.parts);
        }
        binding.digest()
    }

    pub(crate) fn tools_binding(&self) -> Binding {
        Binding::of_tools(self.tools.iter().flat_map(|tools| tools.list()).map(|tool| &*tool.json))
    }

    /// Returns what identifies the page.
    pub fn digest(&self) -> Digest {
        let mut hasher = Hasher::new();
        hasher.number(self.mode as u64);
        hasher.digest(self.tools.as_ref().map_or(Digest::default(), |tools| tools.digest));
        hasher.digests(self.messages.iter().map(|message| message.digest));
        hasher.finish()
    }

    pub(crate) fn of(
        view: &View<'_>,
        request: &Request<'_>,
        fragments: &[Placed],
        ledger: &mut Ledger,
        holding: &Holding<'_>,
    ) -> Page {
        let messages = Vec::with_capacity(view.items.len() * 2);
        let mut builder = Builder { messages, ledger, view, request, holding, fixed: 0, stable: 0 };
        builder.fragments(fragments, Stands::Instructions);
        let instructions = builder.messages.len();
        builder.fragments(fragments, Stands::UserFirst);
        builder.fragments(fragments, Stands::At(Placement::Head));
        for item in view.items.iter().filter(|item| item.is_shown() && item.laid == Laid::Message) {
            builder.item(item);
        }
        builder.stable = builder.messages.len();
        builder.fragments(fragments, Stands::At(Placement::Tail));
        let has_tail = builder.messages.len() > builder.stable;
        if let Some(input) = request.input {
            let message = shaped(input, view, request.target);
            // What holds nothing that the target takes is not sent, and need not be answered.
            if !message.parts.is_empty() {
                builder.ledger.input += message.cost;
                builder.messages.push(message);
            }
        }
        builder.stable = if has_tail { builder.stable } else { builder.messages.len() };
        for item in view.items.iter().filter(|item| item.is_shown() && item.laid == Laid::Behind) {
            builder.item(item);
        }
        builder.attach(fragments);
        let mode = match (holding.session, builder.messages.len() > instructions) {
            (None, _) => Mode::Full,
            (Some(_), true) => Mode::Delta,
            (Some(_), false) => Mode::NothingNew,
        };
        match mode {
            Mode::Full => {
                builder.place_late_system();
                builder.give_the_user_a_word();
                builder.count_lasting(fragments);
            }
            Mode::Delta => builder.mark_late_system(instructions),
            Mode::NothingNew => builder.send_nothing(),
        }
        let (stable, fixed) = (builder.stable, builder.fixed);
        let output = builder.ledger.reserve_out.min(request.target.output_max);
        let format = request.format.filter(|format| format.is_taken_by(request.target.wire)).cloned();
        let (messages, tools) = (builder.messages, request.tools.cloned());
        let mut page = Page { mode, messages, tools, format, marks: Vec::new(), output };
        page.marks = cache::marks(&page, fixed, page.messages.len() - stable, request);
        page
    }

    /// Checks that every call is followed by its results, and nothing else has any. What a session holds of a step
    /// may stand without its calls.
    pub(crate) fn check(&self) -> Result<(), String> {
        let mut open: Vec<&str> = Vec::new();
        // The provider may hold any of the calls.
        let may_be_held = self.mode != Mode::Full;
        for (at, message) in self.messages.iter().enumerate() {
            if let Some(call) = open.first().filter(|_| message.role != Role::Tool) {
                return Err(format!("message {at} stands where the result of call {call} should"));
            }
            for part in message.parts.iter() {
                match part {
                    Part::Call(call) => open.push(call.id.as_str()),
                    Part::Result(result) => match open.iter().position(|id| *id == result.call.as_str()) {
                        Some(found) => drop(open.remove(found)),
                        None if may_be_held => {}
                        None => return Err(format!("message {at} answers call {}, which isn't open", result.call)),
                    },
                    _ => {}
                }
            }
        }
        open.first().map_or(Ok(()), |call| Err(format!("call {call} has no result")))
    }
}

/// A fragment, and where it stands on this page.
#[derive(Clone, Debug)]
pub(crate) struct Placed {
    pub(crate) rendered: Rendered,
    pub(crate) stands: Stands,
}

/// Where a fragment stands on this page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stands {
    /// Among the instructions of this call, which the provider forgets after it.
    Instructions,
    /// Before what is new, in the user's place.
    UserFirst,
    /// Where it says itself.
    At(Placement),
}

/// What is said in the user's place where a format wants a word of theirs.
pub const CONTINUE: &str = "[Continue.]";

struct Builder<'v, 'a> {
    messages: Vec<Message>,
    ledger: &'v mut Ledger,
    view: &'v View<'a>,
    request: &'v Request<'a>,
    holding: &'v Holding<'a>,
    /// How many messages at the beginning are the same at every call.
    fixed: usize,
    /// How many messages will stand as they are on the next page.
    stable: usize,
}

impl Builder<'_, '_> {
    fn item(&mut self, item: &Item<'_>) {
        if !self.holding.notes.is_empty()
            && let Some((seq, text)) = item.seqs().find_map(|seq| self.holding.notes.get_key_value(&seq))
        {
            let message = self.note(*seq, text);
            self.messages.push(message);
        }
        if !self.holding.holds(item.seq()) {
            let message = self.head(item);
            self.messages.push(message);
        }
        for answer in item.answers.iter() {
            let seq = answer.result.map_or(item.seq(), |entry| entry.seq);
            // A stand-in is held only if a page that was acknowledged had it.
            let was_sent = answer.result.is_some() || self.request.reader.age(item.seq()) > 0;
            if !(was_sent && self.holding.holds(seq)) {
                let message = self.answer(item, answer, seq);
                self.messages.push(message);
            }
        }
    }

    /// What a provider was sent shortened, sent once more.
    fn note(&mut self, seq: Seq, text: &Text) -> Message {
        let (cost, overhead) = (self.view.count(text), self.view.overhead);
        self.ledger.framing += overhead;
        self.ledger.results += cost;
        let parts = [Part::Text { text: text.clone() }];
        Message { seq: Some(seq), ..Message::of(Role::User, parts, cost + overhead) }
    }

    fn fragments(&mut self, fragments: &[Placed], stands: Stands) {
        for it in fragments.iter().filter(|it| it.stands == stands) {
            self.fragment(&it.rendered);
            if stands == Stands::UserFirst {
                self.mark_instruction(self.messages.len() - 1);
            }
            let is_fixed = it.rendered.fragment.lifecycle == Lifecycle::Static;
            if is_fixed && self.fixed + 1 == self.messages.len() {
                self.fixed += 1;
            }
        }
    }

    fn fragment(&mut self, it: &Rendered) {
        let (role, cost) = (it.fragment.role, it.cost + self.view.overhead);
        self.ledger.fragment(it.fragment.lifecycle, cost);
        self.messages.push(Message::of(role, it.parts(), cost));
    }

    /// Puts fragments at the end of the last user message; without one they are a message of their own.
    fn attach(&mut self, fragments: &[Placed]) {
        let attached = fragments.iter().filter(|it| it.stands == Stands::At(Placement::AttachLastUser));
        for it in attached.map(|it| &it.rendered) {
            let Some(at) = self.messages.iter().rposition(|message| message.role == Role::User) else {
                self.fragment(it);
                continue;
            };
            let message = &mut self.messages[at];
            self.ledger.fragment(it.fragment.lifecycle, it.cost);
            message.parts = message.parts.iter().cloned().chain(it.parts()).collect();
            message.cost += it.cost;
            message.digest = digest_of(message.role, message.author.as_deref(), &message.parts);
            message.extra = Map::new();
            self.stable = self.stable.min(at);
        }
    }

    /// Puts instructions that come late in the user's place, where the target takes them no other way.
    fn place_late_system(&mut self) {
        let start = self.messages.iter().take_while(|message| message.role == Role::System).count();
        // Instructions of the conversation are as lasting as static fragments.
        if self.fixed >= start || self.messages[self.fixed..start].iter().all(|message| message.seq.is_some()) {
            self.fixed = self.fixed.max(start);
        }
        self.mark_late_system(start);
    }

    /// Puts all instructions from a place on in the user's place, where the target takes them no other way.
    fn mark_late_system(&mut self, start: usize) {
        if self.request.target.late_system == LateSystem::Keep {
            return;
        }
        for at in start..self.messages.len() {
            if self.messages[at].role == Role::System {
                self.mark_instruction(at);
            }
        }
    }

    /// Puts an instruction in the user's place.
    fn mark_instruction(&mut self, at: usize) {
        let (message, cost) = (&mut self.messages[at], self.view.count(LATE_SYSTEM));
        let mut parts = message.parts.to_vec();
        if let Some(Part::Text { text }) = parts.iter_mut().find(|part| matches!(part, Part::Text { .. })) {
            *text = format!("{LATE_SYSTEM}{text}").into();
        }
        self.ledger.framing += cost;
        let seq = message.seq;
        *message = Message { seq, ..Message::of(Role::User, parts, message.cost + cost) };
    }

    /// Where the page is laid out in blocks, what stays the same at every call is what stands before the first block that
    /// doesn't; and while calls may be made, all of it will stand on the next page as well.
    fn count_lasting(&mut self, fragments: &[Placed]) {
        if self.request.policy.memory().is_none() {
            return;
        }
        let is_lasting = |message: &Message| {
            let mut own = fragments.iter().filter(|it| it.rendered.fragment.lifecycle == Lifecycle::Static);
            let is_block = own.any(|it| *message.parts == *it.rendered.parts());
            is_block || (message.seq.is_some() && message.role == Role::System)
        };
        self.fixed = self.messages.iter().take_while(|message| is_lasting(message)).count();
        let may_call = self.request.tools.is_some_and(|tools| !tools.list().is_empty());
        self.stable = if may_call { self.messages.len() } else { self.fixed };
    }

    /// There is nothing to be answered, so the instructions need not go either.
    fn send_nothing(&mut self) {
        self.messages.clear();
        (self.fixed, self.stable) = (0, 0);
        (self.ledger.fixed, self.ledger.dynamic) = (Tokens(0), Tokens(0));
    }

    /// Some formats want the user's words first and last.
    fn give_the_user_a_word(&mut self) {
        if !self.request.target.wire.wants_user_words() {
            return;
        }
        let first = self.messages.iter().position(|message| message.role != Role::System);
        if first.is_some_and(|at| self.messages[at].role != Role::User) {
            let at = first.unwrap_or_default();
            let word = self.word();
            self.messages.insert(at, word);
            self.stable += 1;
        }
        let last = self.messages.last().map(|message| message.role);
        if first.is_none() || last == Some(Role::Assistant) {
            let word = self.word();
            self.messages.push(word);
        }
    }

    fn word(&mut self) -> Message {
        let cost = self.view.count(CONTINUE) + self.view.overhead;
        self.ledger.framing += cost;
        Message::of(Role::User, [Part::text(CONTINUE)], cost)
    }

    /// The message of a step or of somebody's words; a late result is a note in the user's place.
    fn head(&mut self, item: &Item<'_>) -> Message {
        let (entry, overhead) = (item.entry, self.view.overhead);
        self.ledger.framing += overhead;
        if item.kind == Kind::Late {
            let text = item.changed_part(0).and_then(|changed| changed.text.clone()).unwrap_or_default();
            let cost = item.changed_part(0).map_or(Tokens(0), |changed| changed.cost);
            self.ledger.results += cost;
            let seq = Some(entry.seq);
            return Message { seq, ..Message::of(Role::User, [Part::Text { text }], cost + overhead) };
        }
        let mut cost = overhead;
        for (at, part) in entry.shown().iter().enumerate() {
            let own = item.changed_part(at).map_or(entry.part_cost(at), |changed| changed.cost);
            self.ledger.add(entry.role(), part, own);
            cost += own;
        }
        if let Some(note) = &item.note {
            self.ledger.assistant += note.cost;
            cost += note.cost;
        }
        if item.changed.is_empty() && item.note.is_none() {
            return Message { cost, ..whole(entry, Some(entry.seq), overhead) };
        }
        let shown = entry.shown().iter().enumerate();
        let note = item.note.as_ref().and_then(|note| note.text.clone()).map(|text| Part::Text { text });
        let parts = shown.filter_map(|(at, part)| rewritten(part, item.changed_part(at))).chain(note);
        let parts: Arc<[Part]> = parts.collect();
        let author = entry.author().cloned();
        let digest = digest_of(entry.role(), author.as_deref(), &parts);
        Message { role: entry.role(), author, parts, seq: Some(entry.seq), cost, digest, extra: Map::new() }
    }

    fn answer(&mut self, item: &Item<'_>, answer: &Answer<'_>, seq: Seq) -> Message {
        let overhead = self.view.overhead;
        let (part, own) = match (answer.result, &answer.changed) {
            (Some(entry), None) => (None, entry.cost),
            (Some(entry), Some(changed)) => (rewritten(&entry.shown()[0], Some(changed)), changed.cost),
            (None, _) => {
                let result = ToolResult::text(item.call(answer).id.clone(), NO_RESULT);
                (Some(Part::Result(result)), self.view.count(NO_RESULT))
            }
        };
        self.ledger.framing += overhead;
        self.ledger.results += own;
        if let (Some(entry), None) = (answer.result, &part) {
            return whole(entry, Some(seq), overhead);
        }
        let parts: Vec<Part> = part.into_iter().collect();
        Message { seq: Some(seq), ..Message::of(Role::Tool, parts, own + overhead) }
    }
}

/// What is said now, as far as the target takes it.
fn shaped(input: &Counted, view: &View<'_>, target: &Target) -> Message {
    let told = |part: &Part| match (shape::refused(part, input.role(), target), shape::told(part, target)) {
        (Some(_), _) => None,
        (None, Some(text)) => Some(Part::Text { text }),
        (None, None) => Some(part.clone()),
    };
    let parts: Vec<Part> = input.shown().iter().filter_map(told).collect();
    if *parts == **input.shown() {
        return whole(input, None, view.overhead);
    }
    let cost: Tokens = parts.iter().map(|part| cost_of(part, view.counter)).sum();
    Message { author: input.author().cloned(), ..Message::of(input.role(), parts, cost + view.overhead) }
}

/// The message that shows an entry as it is.
fn whole(entry: &Counted, seq: Option<Seq>, overhead: Tokens) -> Message {
    let author = entry.author().cloned();
    let (parts, cost) = (entry.shown().clone(), entry.cost + overhead);
    let is_wires = |(name, _): &(&String, &Value)| Wire::ALL.iter().any(|wire| wire.name() == *name);
    // Most have none.
    let extra = entry.extra().filter(|extra| !extra.is_empty()).map_or_else(Map::new, |extra| {
        extra.iter().filter(is_wires).map(|(name, value)| (name.clone(), value.clone())).collect()
    });
    Message { role: entry.role(), author, parts, seq, cost, digest: entry.digest, extra }
}

/// A part as it is shown; `None` where it is left out.
fn rewritten(part: &Part, changed: Option<&Changed>) -> Option<Part> {
    let Some(changed) = changed else { return Some(part.clone()) };
    let text = changed.text.clone()?;
    Some(match part {
        Part::Result(result) => Part::Result(ToolResult { content: vec![Piece::Text { text }], ..result.clone() }),
        Part::Call(call) => {
            let arguments = match call.arguments {
                Arguments::String(_) => Arguments::String(text),
                Arguments::Object(_) => Arguments::Object(text),
            };
            Part::Call(Call { arguments, ..call.clone() })
        }
        Part::Text { .. } => Part::Text { text },
        // A signature over other words would be refused.
        Part::Reasoning(_) => Part::Reasoning(Reasoning { text, ..Reasoning::default() }),
        // A line of text stands for a picture, a recording or a document.
        _ => Part::Text { text },
    })
}
