//! The page: what the model is to read, in no provider's format.

use crate::digest::{Digest, Hasher};
use crate::entry::{Arguments, Call, Part, Piece, Reasoning, Role, Seq, Text, ToolResult};
use crate::fragment::{Fragment, Placement, Rendered};
use crate::item::{Answer, Changed, Item, Kind, NO_RESULT};
use crate::log::{Counted, digest_of};
use crate::receipt::Ledger;
use crate::request::{Request, Tools};
use crate::session::Session;
use crate::target::Memory;
use crate::tokens::Tokens;
use crate::view::View;
use serde::{Deserialize, Serialize};
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
}

impl Page {
    /// Returns what identifies the page.
    pub fn digest(&self) -> Digest {
        let mut hasher = Hasher::new();
        hasher.number(self.mode as u64);
        hasher.digest(self.tools.as_ref().map_or(Digest::default(), |tools| tools.digest));
        self.messages.iter().for_each(|message| hasher.digest(message.digest));
        hasher.finish()
    }

    pub(crate) fn of(view: &View<'_>, request: &Request<'_>, fragments: &[&Rendered], ledger: &mut Ledger) -> Page {
        let session = request.session.filter(|_| request.target.memory == Memory::Session);
        let held = session.filter(|session| session.acked().is_some() && session.acked() <= request.log.head());
        let mut builder = Builder { messages: Vec::with_capacity(view.items.len() * 2), ledger, view, request, held };
        builder.fragments(fragments, Placement::Head);
        for item in view.items.iter().filter(|item| item.is_shown()) {
            builder.item(item);
        }
        builder.fragments(fragments, Placement::Tail);
        if let Some(input) = request.input {
            builder.ledger.input += input.cost + view.overhead;
            builder.messages.push(whole(input, None, view.overhead));
        }
        builder.attach(fragments);
        let mode = match (held, builder.messages.is_empty()) {
            (None, _) => Mode::Full,
            (Some(_), false) => Mode::Delta,
            (Some(_), true) => Mode::NothingNew,
        };
        Page { mode, messages: builder.messages, tools: request.tools.cloned() }
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

struct Builder<'v, 'a> {
    messages: Vec<Message>,
    ledger: &'v mut Ledger,
    view: &'v View<'a>,
    request: &'v Request<'a>,
    held: Option<&'v Session>,
}

impl Builder<'_, '_> {
    fn item(&mut self, item: &Item<'_>) {
        let is_held = |seq| self.held.is_some_and(|session| session.holds(seq));
        if !is_held(item.seq()) {
            let message = self.head(item);
            self.messages.push(message);
        }
        for answer in &item.answers {
            let seq = answer.result.map_or(item.seq(), |entry| entry.seq);
            // A stand-in is held only if a page that was acknowledged had it.
            let was_sent = answer.result.is_some() || self.request.reader.age(item.seq()) > 0;
            if !(was_sent && self.held.is_some_and(|session| session.holds(seq))) {
                let message = self.answer(item, answer, seq);
                self.messages.push(message);
            }
        }
    }

    fn fragments(&mut self, fragments: &[&Rendered], placement: Placement) {
        for it in fragments.iter().filter(|it| it.fragment.placement == placement) {
            let (role, cost) = (it.fragment.role, it.cost + self.view.overhead);
            self.ledger.fragment(it.fragment.lifecycle, cost);
            let parts: Arc<[Part]> = Arc::new([it.part.clone()]);
            let digest = digest_of(role, None, &parts);
            self.messages.push(Message { role, author: None, parts, seq: None, cost, digest });
        }
    }

    /// Puts fragments at the end of the last user message; without one they are a message of their own.
    fn attach(&mut self, fragments: &[&Rendered]) {
        let attached: Vec<&&Rendered> =
            fragments.iter().filter(|it| it.fragment.placement == Placement::AttachLastUser).collect();
        for it in attached {
            let Some(message) = self.messages.iter_mut().rev().find(|message| message.role == Role::User) else {
                let tail = Rendered {
                    fragment: Fragment { placement: Placement::Tail, ..it.fragment.clone() },
                    ..(**it).clone()
                };
                self.fragments(&[&tail], Placement::Tail);
                continue;
            };
            self.ledger.fragment(it.fragment.lifecycle, it.cost);
            message.parts = message.parts.iter().cloned().chain([it.part.clone()]).collect();
            message.cost += it.cost;
            message.digest = digest_of(message.role, message.author.as_deref(), &message.parts);
        }
    }

    /// The message of a step or of somebody's words; a late result is a note in the user's place.
    fn head(&mut self, item: &Item<'_>) -> Message {
        let (entry, overhead) = (item.entry, self.view.overhead);
        self.ledger.framing += overhead;
        if item.kind == Kind::Late {
            let text = item.changed_part(0).and_then(|changed| changed.text.clone()).unwrap_or_default();
            let cost = item.changed_part(0).map_or(Tokens(0), |changed| changed.cost);
            self.ledger.results += cost;
            let parts: Arc<[Part]> = Arc::new([Part::Text { text }]);
            let digest = digest_of(Role::User, None, &parts);
            return Message {
                role: Role::User,
                author: None,
                parts,
                seq: Some(entry.seq),
                cost: cost + overhead,
                digest,
            };
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
        let author = entry.original().author.clone();
        let digest = digest_of(entry.role(), author.as_deref(), &parts);
        Message { role: entry.role(), author, parts, seq: Some(entry.seq), cost, digest }
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
        let parts: Arc<[Part]> = part.into_iter().collect();
        let digest = digest_of(Role::Tool, None, &parts);
        Message { role: Role::Tool, author: None, parts, seq: Some(seq), cost: own + overhead, digest }
    }
}

/// The message that shows an entry as it is.
fn whole(entry: &Counted, seq: Option<Seq>, overhead: Tokens) -> Message {
    let author = entry.original().author.clone();
    let (parts, cost) = (entry.shown().clone(), entry.cost + overhead);
    Message { role: entry.role(), author, parts, seq, cost, digest: entry.digest }
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
