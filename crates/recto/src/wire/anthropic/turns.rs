//! From a page's messages to turns: neighbours of one role are one, results lead, and what the provider doesn't take is
//! told as text.

use super::media::Source;
use super::model::Model;
use super::{IMAGES_MAX, PROVIDER};
use crate::entry::{Call, Part, Piece, Reasoning, Role, ToolResult};
use crate::item::NO_RESULT;
use crate::page::{CONTINUE, Message, Mode, Page};
use crate::view::shape::LATE_SYSTEM;
use crate::wire::json::Fields;
use crate::wire::media::{named, orphan, shortened};
use crate::wire::{Ids, Wire, kept};
use serde_json::{Map, Value};
use std::borrow::Cow;

/// The most pictures for models with a small window.
const IMAGES_MAX_SMALL: usize = 100;
/// Blocks that a page has parts for; as something opaque they might break rules that hold for those parts.
const OWN_KINDS: [&str; 5] = ["text", "thinking", "redacted_thinking", "tool_use", "tool_result"];

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
    Assistant,
    /// Instructions between messages.
    System,
}

pub(super) struct Block<'p> {
    /// The message of the page that it comes from.
    pub(super) message: usize,
    pub(super) what: What<'p>,
    /// Fields of a client's record that have no other place.
    pub(super) fields: Option<&'p Map<String, Value>>,
    /// The cache mark behind it, as JSON text.
    pub(super) mark: Option<Cow<'p, str>>,
}

pub(super) enum What<'p> {
    Text(Cow<'p, str>),
    Thinking {
        text: &'p str,
        signature: &'p str,
    },
    Redacted(&'p str),
    Call {
        id: Cow<'p, str>,
        call: &'p Call,
    },
    /// `unseen` of its first pictures are more than the provider takes.
    Result {
        id: Cow<'p, str>,
        result: &'p ToolResult,
        unseen: usize,
    },
    StandIn {
        id: Cow<'p, str>,
    },
    Image(Source<'p>),
    Document(Source<'p>, Option<&'p str>),
    File(&'p str),
    Opaque(&'p str),
}

impl What<'_> {
    pub(super) fn is_result(&self) -> bool {
        matches!(self, What::Result { .. } | What::StandIn { .. })
    }

    fn is_thinking(&self) -> bool {
        matches!(self, What::Thinking { .. } | What::Redacted(_))
    }

    /// Whether a cache mark may stand on it.
    pub(super) fn takes_mark(&self) -> bool {
        !self.is_thinking() && !matches!(self, What::Opaque(_))
    }
}

impl<'p> Layout<'p> {
    /// Lays out a page for a model.
    pub(super) fn of(page: &'p Page, model: Option<Model>) -> Layout<'p> {
        Layout::ending(page, model, page.mode == Mode::Full)
    }

    /// Lays out a conversation that is no request yet: it may end with anybody.
    pub(super) fn unasked(page: &'p Page) -> Layout<'p> {
        Layout::ending(page, None, false)
    }

    fn ending(page: &'p Page, model: Option<Model>, asks: bool) -> Layout<'p> {
        let mut builder = Builder {
            layout: Layout::default(),
            ids: Ids::default(),
            open: Vec::new(),
            late: Vec::new(),
            late_fields: Map::new(),
            is_full: page.mode == Mode::Full,
            asks,
            takes_late: model.and_then(Model::takes_late_system) != Some(false),
            unseen: unseen_images(page, model),
        };
        let leading = page.messages.iter().take_while(|message| message.role == Role::System).count();
        for (at, message) in page.messages.iter().enumerate() {
            match message.role {
                Role::System if at < leading => {
                    let blocks = builder.instructions(at, message);
                    builder.layout.system.extend(blocks);
                }
                Role::System => builder.late(at, message),
                Role::User => builder.words(at, message),
                Role::Assistant => builder.step(at, message),
                Role::Tool => builder.result(at, message),
            }
        }
        builder.finish(page.messages.len().saturating_sub(1))
    }

    pub(super) fn blocks(&self) -> impl Iterator<Item = &Block<'p>> {
        self.system.iter().chain(self.turns.iter().flat_map(|turn| &turn.blocks))
    }
}

struct Builder<'p> {
    layout: Layout<'p>,
    ids: Ids<'p>,
    /// The calls of the newest step that have no result yet, and where they were made.
    open: Vec<(&'p str, usize)>,
    /// Instructions that wait for what follows them.
    late: Vec<Block<'p>>,
    late_fields: Map<String, Value>,
    is_full: bool,
    /// Whether it is a request, which the user must end.
    asks: bool,
    takes_late: bool,
    /// How many more of the oldest pictures are too many.
    unseen: usize,
}

impl<'p> Builder<'p> {
    fn instructions(&mut self, at: usize, message: &'p Message) -> Vec<Block<'p>> {
        let parts = message.parts.iter().enumerate();
        let blocks = parts.filter_map(|(nth, part)| {
            let what = match part {
                Part::Opaque { .. } => None,
                part => self.said(part, Speaker::System),
            };
            what.map(|what| block(at, message, nth, what))
        });
        blocks.collect()
    }

    fn late(&mut self, at: usize, message: &'p Message) {
        self.close();
        let mut blocks = self.instructions(at, message);
        let opaque = message.parts.iter().filter_map(|part| own_payload(part).map(What::Opaque));
        blocks.extend(opaque.map(|what| block(at, message, usize::MAX, what)));
        self.late.extend(blocks);
        merge_fields(&mut self.late_fields, message);
    }

    fn words(&mut self, at: usize, message: &'p Message) {
        self.close();
        let mut blocks = Vec::with_capacity(message.parts.len());
        for (nth, part) in message.parts.iter().enumerate() {
            blocks.extend(self.said(part, Speaker::User).map(|what| block(at, message, nth, what)));
        }
        self.push(Speaker::User, blocks, Some(message));
    }

    fn step(&mut self, at: usize, message: &'p Message) {
        self.close();
        self.ids.begin(&message.parts);
        let mut blocks = Vec::with_capacity(message.parts.len());
        for (nth, part) in message.parts.iter().enumerate() {
            let what = match part {
                Part::Call(call) if self.open.iter().any(|(id, _)| *id == call.id.as_str()) => None,
                Part::Call(call) => {
                    self.open.push((call.id.as_str(), at));
                    Some(What::Call { id: self.ids.of(call.id.as_str()), call })
                }
                Part::Reasoning(thought) => sealed(thought),
                part => self.said(part, Speaker::Assistant),
            };
            blocks.extend(what.map(|what| block(at, message, nth, what)));
        }
        // No message may end with them.
        while blocks.last().is_some_and(|block| block.what.is_thinking()) {
            blocks.pop();
        }
        self.push(Speaker::Assistant, blocks, Some(message));
    }

    fn result(&mut self, at: usize, message: &'p Message) {
        for (nth, part) in message.parts.iter().enumerate() {
            let Part::Result(result) = part else { continue };
            let open = self.open.iter().position(|(id, _)| *id == result.call.as_str());
            let images = result.content.iter().filter(|piece| matches!(piece, Piece::Image(_))).count();
            let unseen = self.unseen.min(images);
            self.unseen -= unseen;
            if open.is_none() && self.is_full {
                let text = Cow::Owned(orphan(result));
                self.push(Speaker::User, vec![block(at, message, usize::MAX, What::Text(text))], None);
                continue;
            }
            if let Some(open) = open {
                self.open.remove(open);
            }
            let what = What::Result { id: self.ids.of(result.call.as_str()), result, unseen };
            self.lead(block(at, message, nth, what));
            self.fields(message);
        }
    }

    /// What a text, picture or document is for a speaker; `None` for nothing.
    fn said(&mut self, part: &'p Part, speaker: Speaker) -> Option<What<'p>> {
        let is_user = speaker == Speaker::User;
        let told = |text: String| Some(What::Text(text.into()));
        match part {
            Part::Text { text } => (!text.trim().is_empty()).then(|| What::Text((&**text).into())),
            Part::Image(media) => {
                let source = Source::of_image(media).filter(|_| is_user && self.unseen == 0);
                self.unseen = self.unseen.saturating_sub(1);
                source.map_or_else(|| told(named("image", media)), |source| Some(What::Image(source)))
            }
            Part::Document(media) => match Source::of_document(media).filter(|_| is_user) {
                Some(source) => Some(What::Document(source, media.name.as_deref())),
                None => told(named("document", media)),
            },
            Part::Audio(media) => told(named("audio", media)),
            Part::File { id } if is_user && id.starts_with("file_") => Some(What::File(id)),
            Part::File { id } => told(format!("[file: {}]", shortened(id))),
            Part::Opaque { provider, payload } => match own_payload(part) {
                Some(payload) if is_user || !is_shown(payload) => Some(What::Opaque(payload)),
                _ => told(format!("[{provider}: {}]", kind_of(payload).unwrap_or_else(|| "content".into()))),
            },
            Part::Reasoning(_) | Part::Call(_) | Part::Result(_) => None,
        }
    }

    /// Gives every call of the newest step a result.
    fn close(&mut self) {
        for (id, at) in std::mem::take(&mut self.open) {
            let what = What::StandIn { id: self.ids.of(id) };
            self.lead(Block { message: at, what, fields: None, mark: None });
        }
    }

    /// Adds a result before everything else of its turn.
    fn lead(&mut self, block: Block<'p>) {
        let at = match self.layout.turns.last() {
            Some(turn) if turn.speaker == Speaker::User => {
                turn.blocks.iter().take_while(|block| block.what.is_result()).count()
            }
            _ => 0,
        };
        self.turn(Speaker::User).blocks.insert(at, block);
    }

    fn push(&mut self, speaker: Speaker, blocks: Vec<Block<'p>>, message: Option<&'p Message>) {
        if blocks.is_empty() {
            return;
        }
        self.settle(speaker == Speaker::Assistant);
        self.turn(speaker).blocks.extend(blocks);
        message.into_iter().for_each(|message| self.fields(message));
    }

    /// Puts waiting instructions where they may stand: between a user's turn and an assistant's, or last.
    fn settle(&mut self, may_stand: bool) {
        let fields = std::mem::take(&mut self.late_fields);
        let blocks = std::mem::take(&mut self.late);
        let is_after_user = self.layout.turns.last().is_some_and(|turn| turn.speaker == Speaker::User);
        if self.takes_late && may_stand && is_after_user && !(blocks.is_empty() && fields.is_empty()) {
            self.layout.turns.push(Turn { speaker: Speaker::System, blocks, fields });
            return;
        }
        for mut block in blocks {
            let What::Text(text) = &block.what else { continue };
            block.what = What::Text(Cow::Owned(format!("{LATE_SYSTEM}{text}")));
            block.fields = None;
            self.turn(Speaker::User).blocks.push(block);
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

    fn fields(&mut self, message: &Message) {
        if let Some(turn) = self.layout.turns.last_mut() {
            merge_fields(&mut turn.fields, message);
        }
    }

    fn finish(mut self, last: usize) -> Layout<'p> {
        self.close();
        self.settle(true);
        let nudge = |message| Turn {
            speaker: Speaker::User,
            blocks: vec![Block { message, what: What::Text(CONTINUE.into()), fields: None, mark: None }],
            fields: Map::new(),
        };
        let Layout { system, mut turns } = self.layout;
        if self.is_full {
            let begins_well = |turn: &Turn<'_>| {
                let kind = turn.blocks.first().and_then(|block| block.what.opaque_kind());
                turn.speaker == Speaker::User || kind.as_deref() == Some("compaction")
            };
            if !turns.first().is_some_and(begins_well) {
                turns.insert(0, nudge(0));
            }
        }
        let ends = |turn: &Turn<'_>| turn.speaker != Speaker::Assistant || !unfinished(turn).is_empty();
        if self.asks && !turns.last().is_some_and(ends) {
            turns.push(nudge(last));
        }
        name_unfinished(&mut turns);
        Layout { system, turns }
    }
}

impl What<'_> {
    fn opaque_kind(&self) -> Option<String> {
        if let What::Opaque(payload) = self { kind_of(payload) } else { None }
    }
}

fn block<'p>(at: usize, message: &'p Message, nth: usize, what: What<'p>) -> Block<'p> {
    // Only what is shown as it came has fields of its own.
    let is_own = !matches!(&what, What::Text(Cow::Owned(_)) | What::Opaque(_));
    let fields = if message.extra.is_empty() || !is_own { None } else { kept::of_part(message, Wire::Anthropic, nth) };
    Block { message: at, what, fields, mark: None }
}

fn merge_fields(fields: &mut Map<String, Value>, message: &Message) {
    let own = kept::of_message(message, Wire::Anthropic);
    for (name, value) in own.into_iter().flatten().filter(|(name, _)| !["role", "content"].contains(&name.as_str())) {
        fields.entry(name).or_insert_with(|| value.clone());
    }
}

/// Reasoning that this provider sealed.
fn sealed(thought: &Reasoning) -> Option<What<'_>> {
    if thought.provider.as_deref() != Some(PROVIDER) {
        return None;
    }
    match (&thought.signature, &thought.encrypted) {
        (Some(signature), _) => Some(What::Thinking { text: &thought.text, signature }),
        (None, Some(data)) => Some(What::Redacted(data)),
        (None, None) => None,
    }
}

/// The JSON of something only this provider understands.
fn own_payload(part: &Part) -> Option<&str> {
    let Part::Opaque { provider, payload } = part else { return None };
    let kind = kind_of(payload).filter(|_| &**provider == PROVIDER)?;
    (!OWN_KINDS.contains(&kind.as_str())).then_some(&**payload)
}

/// Whether it is something that only a user shows.
fn is_shown(payload: &str) -> bool {
    matches!(kind_of(payload).as_deref(), Some("image" | "document"))
}

fn text_of(payload: &str, name: &str) -> Option<String> {
    let fields: Fields<'_> = serde_json::from_str(payload).ok()?;
    serde_json::from_str(fields.get(name)?.get()).ok()
}

fn kind_of(payload: &str) -> Option<String> {
    text_of(payload, "type").filter(|kind| !kind.trim().is_empty()).map(|kind| shortened(&kind))
}

/// Which blocks of a turn are calls that the provider runs itself, and that it has not finished.
fn unfinished(turn: &Turn<'_>) -> Vec<usize> {
    let of_kind = |name: &str, ends: &dyn Fn(&str) -> bool| -> Vec<(usize, String)> {
        let blocks = turn.blocks.iter().enumerate();
        let found = blocks.filter_map(|(at, block)| match &block.what {
            What::Opaque(payload) => Some((at, text_of(payload, name)?, kind_of(payload)?)),
            _ => None,
        });
        found.filter(|(_, _, kind)| ends(kind)).map(|(at, id, _)| (at, id)).collect()
    };
    if !turn.blocks.iter().any(|block| matches!(block.what, What::Opaque(_))) {
        return Vec::new();
    }
    let answered = of_kind("tool_use_id", &|kind| kind.ends_with("_tool_result"));
    let calls = of_kind("id", &|kind| kind == "server_tool_use");
    let is_open = |id: &str| !answered.iter().any(|(_, other)| other == id);
    calls.into_iter().filter(|(_, id)| is_open(id)).map(|(at, _)| at).collect()
}

/// Behind a call that the provider has not finished only results may stand; elsewhere a text names it.
fn name_unfinished(turns: &mut [Turn<'_>]) {
    for at in 0..turns.len() {
        let is_taken = turns
            .get(at + 1)
            .is_none_or(|next| next.speaker == Speaker::User && next.blocks.iter().all(|block| block.what.is_result()));
        if is_taken || turns[at].speaker != Speaker::Assistant {
            continue;
        }
        for nth in unfinished(&turns[at]) {
            let block = &mut turns[at].blocks[nth];
            if let What::Opaque(payload) = block.what {
                let name = text_of(payload, "name").unwrap_or_default();
                block.what = What::Text(Cow::Owned(format!("[unfinished call of {}]", shortened(&name))));
            }
        }
    }
}

/// How many of a page's oldest pictures are more than a request may hold.
fn unseen_images(page: &Page, model: Option<Model>) -> usize {
    let most = if model.is_some_and(Model::has_small_window) { IMAGES_MAX_SMALL } else { IMAGES_MAX };
    let images = |part: &Part| match part {
        Part::Image(_) => 1,
        Part::Result(result) => result.content.iter().filter(|piece| matches!(piece, Piece::Image(_))).count(),
        _ => 0,
    };
    let all: usize = page.messages.iter().flat_map(|message| message.parts.iter()).map(images).sum();
    all.saturating_sub(most)
}

/// The text of a result that nobody gave.
pub(super) const STAND_IN: &str = NO_RESULT;
