//! From a page's messages to turns of user and model: all results of a step stand in one, in the order of its calls.

use super::media::Source;
use super::model::Model;
use super::{KINDS, PROVIDER, UNSIGNED, camel};
use crate::entry::{Call, Part, Reasoning, Role, ToolResult};
use crate::item::NO_RESULT;
use crate::page::{CONTINUE, Message, Mode, Page};
use crate::view::shape::LATE_SYSTEM;
use crate::wire::ids::are_made;
use crate::wire::json::Fields;
use crate::wire::media::{named, orphan, shortened};
use crate::wire::{Ids, Wire, kept};
use serde_json::{Map, Value};
use std::borrow::Cow;

/// Kinds that a page has parts for; as something opaque they might break rules that hold for those parts.
const OWN_KINDS: [&str; 3] = ["text", "functionCall", "functionResponse"];

/// The text of a result that nobody gave.
pub(super) const STAND_IN: &str = NO_RESULT;

/// A page as the provider has it: instructions, then turns.
#[derive(Default)]
pub(super) struct Layout<'p> {
    pub(super) system: Vec<Block<'p>>,
    pub(super) turns: Vec<Turn<'p>>,
}

/// Neighbouring messages of one speaker.
pub(super) struct Turn<'p> {
    pub(super) speaker: Speaker,
    pub(super) blocks: Vec<Block<'p>>,
    /// Fields of a client's records that have no other place.
    pub(super) fields: Map<String, Value>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Speaker {
    User,
    Model,
}

pub(super) struct Block<'p> {
    pub(super) what: What<'p>,
    /// The signature that stands on it.
    pub(super) signature: Option<Cow<'p, str>>,
    /// Fields of a client's record that have no other place.
    pub(super) fields: Option<&'p Map<String, Value>>,
}

pub(super) enum What<'p> {
    Text(Cow<'p, str>),
    Thought(&'p str),
    /// A call whose id its provider didn't give has none.
    Call {
        id: Option<Cow<'p, str>>,
        call: &'p Call,
    },
    /// Without a result, that there is none.
    Result {
        id: Option<Cow<'p, str>>,
        name: &'p str,
        result: Option<&'p ToolResult>,
    },
    Data(Source<'p>),
    Opaque(&'p str),
}

impl What<'_> {
    fn is_result(&self) -> bool {
        matches!(self, What::Result { .. })
    }
}

impl<'p> From<What<'p>> for Block<'p> {
    fn from(what: What<'p>) -> Block<'p> {
        Block { what, signature: None, fields: None }
    }
}

impl<'p> Layout<'p> {
    /// Lays out a page for a model.
    pub(super) fn of(page: &'p Page, model: Option<Model>) -> Layout<'p> {
        let mut builder = Builder { layout: Layout::default(), open: Vec::new(), behind: Vec::new() };
        let leading = page.messages.iter().take_while(|message| message.role == Role::System).count();
        for (at, message) in page.messages.iter().enumerate() {
            match message.role {
                Role::System if at < leading => builder.layout.system.extend(instructions(message, "")),
                Role::System => builder.push(Speaker::User, instructions(message, LATE_SYSTEM).collect(), None),
                Role::User => builder.push(Speaker::User, shown(message).collect(), Some(message)),
                Role::Assistant => builder.step(message),
                Role::Tool => builder.result(message),
            }
        }
        builder.close();
        let Layout { system, mut turns } = builder.layout;
        let nudge =
            || Turn { speaker: Speaker::User, blocks: vec![What::Text(CONTINUE.into()).into()], fields: Map::new() };
        if page.mode == Mode::Full && turns.first().is_none_or(|turn| turn.speaker != Speaker::User) {
            turns.insert(0, nudge());
        }
        if turns.last().is_none_or(|turn| turn.speaker != Speaker::User) {
            turns.push(nudge());
        }
        if model.is_some_and(Model::demands_signatures) {
            sign(&mut turns);
        }
        Layout { system, turns }
    }
}

struct Builder<'p> {
    layout: Layout<'p>,
    /// The calls of the newest step: each with its result, once that has come.
    open: Vec<Open<'p>>,
    /// What stands behind their results.
    behind: Vec<Block<'p>>,
}

struct Open<'p> {
    call: &'p Call,
    id: Option<Cow<'p, str>>,
    answer: Option<(&'p Message, usize, &'p ToolResult)>,
}

impl<'p> Builder<'p> {
    fn step(&mut self, message: &'p Message) {
        self.close();
        let calls: Vec<&Call> = message.parts.iter().filter_map(call_of).collect();
        let mut made = are_made(calls.iter().copied()).into_iter();
        let mut ids = Ids::default();
        ids.begin(&message.parts);
        let mut blocks: Vec<Block<'p>> = Vec::with_capacity(message.parts.len());
        let mut signature: Option<&'p str> = None;
        for (nth, part) in message.parts.iter().enumerate() {
            let what = match part {
                Part::Call(call) => {
                    let id = (!made.next().unwrap_or(false)).then(|| ids.of(call.id.as_str()));
                    self.open.push(Open { call, id: id.clone(), answer: None });
                    Some(What::Call { id, call })
                }
                Part::Reasoning(thought) => {
                    blocks.extend(signature.take().map(unworded));
                    thoughts(&mut blocks, thought, kept::of_part(message, Wire::Gemini, nth));
                    signature = own_signature(thought);
                    None
                }
                part => said(part),
            };
            let Some(what) = what else { continue };
            let signature = if matches!(what, What::Opaque(_)) { None } else { signature.take() };
            blocks.push(Block { signature: signature.map(Cow::Borrowed), ..block(message, nth, what) });
        }
        blocks.extend(signature.map(unworded));
        self.push(Speaker::Model, blocks, Some(message));
    }

    fn result(&mut self, message: &'p Message) {
        for (nth, part) in message.parts.iter().enumerate() {
            let Part::Result(result) = part else { continue };
            let open = self.open.iter_mut().find(|it| it.call.id == result.call && it.answer.is_none());
            match open {
                Some(open) => open.answer = Some((message, nth, result)),
                None => self.behind.push(What::Text(orphan(result).into()).into()),
            }
        }
    }

    /// Gives every call of the newest step its result.
    fn close(&mut self) {
        let (open, behind) = (std::mem::take(&mut self.open), std::mem::take(&mut self.behind));
        let answered = open.into_iter().map(|Open { call, id, answer }| {
            let result = answer.map(|(_, _, result)| result);
            let what = What::Result { id, name: &call.name, result };
            match answer {
                Some((message, nth, _)) => block(message, nth, what),
                None => what.into(),
            }
        });
        let blocks: Vec<Block<'p>> = answered.chain(behind).collect();
        if !blocks.is_empty() {
            self.turn(Speaker::User).blocks.extend(blocks);
        }
    }

    fn push(&mut self, speaker: Speaker, blocks: Vec<Block<'p>>, message: Option<&'p Message>) {
        if speaker == Speaker::User {
            self.close();
        }
        if blocks.is_empty() {
            return;
        }
        let turn = self.turn(speaker);
        turn.blocks.extend(blocks);
        let own = message.and_then(|message| kept::of_message(message, Wire::Gemini));
        for (name, value) in own.into_iter().flatten() {
            turn.fields.entry(name).or_insert_with(|| value.clone());
        }
    }

    /// The newest turn, if it is of this speaker, or a new one.
    fn turn(&mut self, speaker: Speaker) -> &mut Turn<'p> {
        let turns = &mut self.layout.turns;
        if turns.last().is_none_or(|turn| turn.speaker != speaker) {
            turns.push(Turn { speaker, blocks: Vec::new(), fields: Map::new() });
        }
        let last = turns.len() - 1;
        &mut turns[last]
    }
}

fn call_of(part: &Part) -> Option<&Call> {
    if let Part::Call(call) = part { Some(call) } else { None }
}

fn block<'p>(message: &'p Message, nth: usize, what: What<'p>) -> Block<'p> {
    // Only what is shown as it came has fields of its own.
    let is_own = !matches!(&what, What::Text(Cow::Owned(_)) | What::Opaque(_));
    let fields = kept::of_part(message, Wire::Gemini, nth).filter(|_| is_own);
    Block { what, signature: None, fields }
}

fn instructions<'p>(message: &'p Message, mark: &'static str) -> impl Iterator<Item = Block<'p>> {
    let texts = message.parts.iter().filter_map(|part| match part {
        Part::Text { text } if !text.trim().is_empty() => Some(&**text),
        _ => None,
    });
    texts.map(move |text| {
        let text = if mark.is_empty() { Cow::Borrowed(text) } else { Cow::Owned(format!("{mark}{text}")) };
        What::Text(text).into()
    })
}

/// What the user says and shows.
fn shown(message: &Message) -> impl Iterator<Item = Block<'_>> {
    message.parts.iter().enumerate().filter_map(|(nth, part)| {
        let kind = kept::of_part(message, Wire::Gemini, nth).and_then(|it| it.get("mimeType")).and_then(Value::as_str);
        let source = Source::of(part, kind).map(What::Data);
        let what = source.or_else(|| said(part))?;
        Some(block(message, nth, what))
    })
}

/// What a part is where it can't be shown: its words, or a text that names it.
fn said(part: &Part) -> Option<What<'_>> {
    let told = |text: String| Some(What::Text(text.into()));
    match part {
        Part::Text { text } => (!text.trim().is_empty()).then(|| What::Text((&**text).into())),
        Part::Image(media) => told(named("image", media)),
        Part::Audio(media) => told(named("audio", media)),
        Part::Document(media) => told(named("document", media)),
        Part::File { id } => told(format!("[file: {}]", shortened(id))),
        Part::Opaque { provider, payload } => match own_payload(part) {
            Some(payload) => Some(What::Opaque(payload)),
            None => told(format!("[{provider}: {}]", kind_of(payload).unwrap_or_else(|| "content".into()))),
        },
        Part::Reasoning(_) | Part::Call(_) | Part::Result(_) => None,
    }
}

/// Writes what the provider's model thought, as far as it is told.
fn thoughts<'p>(blocks: &mut Vec<Block<'p>>, thought: &'p Reasoning, fields: Option<&'p Map<String, Value>>) {
    if thought.provider.as_deref() != Some(PROVIDER) {
        return;
    }
    let signature = thought.encrypted.as_deref().map(Cow::Borrowed);
    let what = match (thought.text.is_empty(), &signature) {
        (false, _) => What::Thought(&thought.text),
        (true, Some(_)) => What::Text("".into()),
        (true, None) => return,
    };
    blocks.push(Block { what, signature, fields });
}

/// The signature of the part behind it.
fn own_signature(thought: &Reasoning) -> Option<&str> {
    thought.signature.as_deref().filter(|_| thought.provider.as_deref() == Some(PROVIDER))
}

/// A signature whose part says nothing any more.
fn unworded(signature: &str) -> Block<'_> {
    Block { what: What::Text("".into()), signature: Some(signature.into()), fields: None }
}

/// Puts something in the place of signatures that are demanded: on the first call of each step of the current turn.
fn sign(turns: &mut [Turn<'_>]) {
    let is_asked = |turn: &Turn<'_>| turn.speaker == Speaker::User && !turn.blocks.iter().any(|it| it.what.is_result());
    let begins = turns.iter().rposition(is_asked).map_or(0, |at| at + 1);
    for turn in turns[begins..].iter_mut().filter(|turn| turn.speaker == Speaker::Model) {
        if let Some(first) = turn.blocks.iter_mut().find(|it| matches!(it.what, What::Call { .. })) {
            first.signature.get_or_insert(UNSIGNED.into());
        }
    }
}

/// The JSON of something only this provider understands.
fn own_payload(part: &Part) -> Option<&str> {
    let Part::Opaque { provider, payload } = part else { return None };
    let kind = kind_of(payload).filter(|_| &**provider == PROVIDER)?;
    (KINDS.contains(&kind.as_str()) && !OWN_KINDS.contains(&kind.as_str())).then_some(&**payload)
}

fn kind_of(payload: &str) -> Option<String> {
    let fields: Fields<'_> = serde_json::from_str(payload).ok()?;
    let mut names = fields.keys().map(|name| camel(name));
    let known = names.clone().find(|name| KINDS.contains(&name.as_str()));
    known.or_else(|| names.next()).map(|name| shortened(&name))
}
