//! Facts: what was said, final when appended.

mod erased;

use crate::digest::Digest;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::fmt;
use std::sync::Arc;

pub use crate::expiry::{Expiry, ExpiryAction};
pub use erased::{ERASED_WORD, Erased};

/// Text that is shared, never copied, between log, view and page.
pub type Text = Arc<str>;

/// The place of an entry in its log; unique and increasing, assigned on append.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Seq(pub u64);

impl Seq {
    /// Returns the next place.
    pub fn next(self) -> Seq {
        Seq(self.0.saturating_add(1))
    }
}

impl fmt::Display for Seq {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "#{}", self.0)
    }
}

/// A run of entries, both ends included.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Span {
    /// The first entry.
    pub first: Seq,
    /// The last entry.
    pub last: Seq,
}

impl Span {
    /// Returns the span of one entry.
    pub fn one(seq: Seq) -> Span {
        Span { first: seq, last: seq }
    }

    /// Returns whether an entry lies within.
    pub fn contains(&self, seq: Seq) -> bool {
        self.first <= seq && seq <= self.last
    }
}

impl fmt::Display for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.first == self.last {
            write!(f, "{}", self.first)
        } else {
            write!(f, "{}–{}", self.first, self.last.0)
        }
    }
}

macro_rules! name_type {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(transparent)]
        pub struct $name(Text);

        impl $name {
            /// Returns the name as text.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl<T: Into<Text>> From<T> for $name {
            fn from(text: T) -> $name {
                $name(text.into())
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }
    };
}

name_type! {
    /// The host's name of an entry.
    EntryId
}
name_type! {
    /// The provider's name of a tool call; it may recur in later steps.
    CallId
}
name_type! {
    /// The name of one execution of an agent.
    RunId
}
name_type! {
    /// The name of a section of the log, such as `messages`.
    Section
}

impl Section {
    /// The section of the conversation itself.
    pub const MESSAGES: &'static str = "messages";
    /// Condensed older history.
    pub const SUMMARY: &'static str = "summary";
    /// Temporary and intermediate messages.
    pub const BUFFER: &'static str = "buffer";
    /// The built-in sections in the order a page shows them: oldest and most general first.
    pub const RANKED: [&'static str; 3] = [Section::SUMMARY, Section::BUFFER, Section::MESSAGES];

    /// Returns whether it is the section of the conversation itself.
    pub fn is_messages(&self) -> bool {
        self.as_str() == Section::MESSAGES
    }
}

impl Default for Section {
    fn default() -> Section {
        Section::from(Section::MESSAGES)
    }
}

/// Whether an entry is part of the talk, or a trace of work on the way.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Lane {
    /// What was said.
    #[default]
    Talk,
    /// What was done on the way.
    Trace,
}

/// Who speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// Instructions.
    System,
    /// The person, or the program in their place.
    User,
    /// The model.
    Assistant,
    /// Results of tool calls.
    Tool,
}

impl fmt::Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Role::System => "system",
            Role::User => "user",
            Role::Assistant => "assistant",
            Role::Tool => "tool",
        })
    }
}

/// How an entry ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Status {
    /// Complete.
    #[default]
    Sent,
    /// Broken off by an error; what there was is kept.
    Error,
    /// Broken off by somebody; what there was is kept.
    Cancelled,
    /// Unfinished when it was imported.
    Pending,
}

/// Where an entry came from; set by the host, never read from text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Origin {
    /// The host's own instructions.
    System,
    /// A person.
    User,
    /// A model.
    Model,
    /// A tool.
    Tool,
    /// The host, on its own account.
    Host,
}

/// A moment, in milliseconds since 1970 (UTC).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Millis(pub i64);

/// What an entry holds, where its role doesn't tell. Entries with a kind grow old by the rules of a policy; words don't.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum EntryKind {
    /// The result of a tool call; every tool entry is one unless it says otherwise.
    ToolResult,
    /// Results of actions that were no tool calls, told in the user's place.
    ActionResult,
    /// What another run came to.
    SubRunResult,
    /// What the rounds of a loop came to.
    LoopResult,
    /// What the host put in on its own account: a nudge, a reminder.
    Injection,
    /// What the model is told before it tries again.
    RetryContext,
}

impl fmt::Display for EntryKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            EntryKind::ToolResult => "tool result",
            EntryKind::ActionResult => "action result",
            EntryKind::SubRunResult => "sub-run result",
            EntryKind::LoopResult => "loop result",
            EntryKind::Injection => "injection",
            EntryKind::RetryContext => "retry context",
        })
    }
}

/// One piece of what an entry says.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
#[non_exhaustive]
pub enum Part {
    /// Plain text.
    Text {
        /// The text.
        text: Text,
    },
    /// What a model thought on the way.
    Reasoning(Reasoning),
    /// A tool call.
    Call(Call),
    /// The result of a tool call.
    Result(ToolResult),
    /// A picture.
    Image(Media),
    /// A recording.
    Audio(Media),
    /// A document, such as a PDF.
    Document(Media),
    /// A file that the provider holds.
    File {
        /// The provider's name of it.
        id: Text,
    },
    /// Something only its provider understands, kept byte for byte.
    Opaque {
        /// Whose it is.
        provider: Text,
        /// JSON text, exactly as it came.
        payload: Text,
    },
}

/// A model's reasoning; what a provider signed or encrypted is kept byte for byte.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reasoning {
    /// The visible text, which may be empty.
    pub text: Text,
    /// The provider that made it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub provider: Option<Text>,
    /// The model that made it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<Text>,
    /// The signature over it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub signature: Option<Text>,
    /// The encrypted payload.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub encrypted: Option<Text>,
    /// The provider's whole record of it as JSON text, exactly as it came, where there is more to it than the above.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub item: Option<Text>,
    /// What stood before it when it was made, as [`Page::binding`](crate::page::Page::binding) tells it; some providers
    /// take sealed reasoning back only behind the same.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prefix: Option<Digest>,
}

impl Reasoning {
    /// Returns whether its provider sealed it, so that it can go back to it.
    pub fn is_sealed(&self) -> bool {
        self.signature.is_some() || self.encrypted.is_some() || self.item.is_some()
    }
}

/// A tool call: several of one step are parts of one entry.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Call {
    /// The provider's name of the call.
    pub id: CallId,
    /// The tool.
    pub name: Text,
    /// The arguments, exactly as given.
    pub arguments: Arguments,
}

/// The arguments of a call, exactly as the provider spelled them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Arguments {
    /// Given as a string (which should hold JSON, and sometimes doesn't).
    String(Text),
    /// Given as a JSON object; this is its text.
    Object(Text),
}

impl Arguments {
    /// Returns the text of the arguments.
    pub fn as_str(&self) -> &str {
        let (Arguments::String(text) | Arguments::Object(text)) = self;
        text
    }
}

/// The result of a tool call.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolResult {
    /// The call it answers.
    pub call: CallId,
    /// Text and pictures, in order.
    pub content: Vec<Piece>,
    /// Whether the tool failed.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_error: bool,
}

/// One piece of a tool's result.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Piece {
    /// Plain text.
    Text {
        /// The text.
        text: Text,
    },
    /// A picture.
    Image(Media),
}

/// A picture, recording or document.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Media {
    /// Where it is: an address, or a `data:` URL that holds it.
    pub url: Text,
    /// Its file name, if it has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<Text>,
    /// How closely the provider should look.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub detail: Option<Text>,
}

/// A stretch of text that no view may show.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Redaction {
    /// Which part of the entry.
    pub part: usize,
    /// Which piece of a tool result; 0 for every other part.
    #[serde(default)]
    pub piece: usize,
    /// The first byte.
    pub start: usize,
    /// One past the last byte.
    pub end: usize,
    /// What stands there instead, such as `[redacted:api_key]`.
    pub label: Text,
}

/// One fact of a conversation. Its place in the log, [`Seq`], is assigned on append.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Entry {
    /// The host's name of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<EntryId>,
    /// The section it stands in.
    #[serde(default)]
    pub section: Section,
    /// Talk or trace.
    #[serde(default)]
    pub lane: Lane,
    /// Who speaks.
    pub role: Role,
    /// What is said.
    pub parts: Arc<[Part]>,
    /// How it ended.
    #[serde(default)]
    pub status: Status,
    /// Which agent or person, where there are several.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub author: Option<Text>,
    /// The execution it belongs to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run: Option<RunId>,
    /// When it happened.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at: Option<Millis>,
    /// Whether nothing before it is shown any more.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub edge: bool,
    /// Where it came from.
    pub origin: Origin,
    /// What it holds, where its role doesn't tell.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kind: Option<EntryKind>,
    /// The tools or actions whose results it holds, where it answers no call.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tools: Vec<Text>,
    /// When it may leave the page.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expiry: Option<Expiry>,
    /// The entries that a host's summary stands for; they are not shown while it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub covers: Option<Span>,
    /// What no view may show.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub redactions: Vec<Redaction>,
    /// That its words were erased; only its shape is left.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub erased: Option<Erased>,
    /// The host's own data. The compiler looks at one key: a text under `error` is told as the reason where a policy
    /// notes broken-off answers, so it must hold no secret.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub meta: Map<String, Value>,
    /// Fields of an imported record that have no place here.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub extra: Map<String, Value>,
}

impl Entry {
    /// Returns an entry of these parts, with the role's usual origin.
    pub fn new(role: Role, parts: impl Into<Arc<[Part]>>) -> Entry {
        let origin = match role {
            Role::System => Origin::System,
            Role::User => Origin::User,
            Role::Assistant => Origin::Model,
            Role::Tool => Origin::Tool,
        };
        Entry {
            id: None,
            section: Section::default(),
            lane: Lane::Talk,
            role,
            parts: parts.into(),
            status: Status::Sent,
            author: None,
            run: None,
            at: None,
            edge: false,
            origin,
            kind: None,
            tools: Vec::new(),
            expiry: None,
            covers: None,
            redactions: Vec::new(),
            erased: None,
            meta: Map::new(),
            extra: Map::new(),
        }
    }

    /// Returns instructions.
    pub fn system(text: impl Into<Text>) -> Entry {
        Entry::new(Role::System, [Part::text(text)])
    }

    /// Returns a user's words.
    pub fn user(text: impl Into<Text>) -> Entry {
        Entry::new(Role::User, [Part::text(text)])
    }

    /// Returns a model's words.
    pub fn assistant(text: impl Into<Text>) -> Entry {
        Entry::new(Role::Assistant, [Part::text(text)])
    }

    /// Returns a model's step: some words, and its calls.
    pub fn step(text: impl Into<Text>, calls: impl IntoIterator<Item = Call>) -> Entry {
        let text = text.into();
        let say = (!text.is_empty()).then(|| Part::text(text));
        Entry::new(Role::Assistant, say.into_iter().chain(calls.into_iter().map(Part::Call)).collect::<Vec<_>>())
    }

    /// Returns the result of a call.
    pub fn result(call: impl Into<CallId>, text: impl Into<Text>) -> Entry {
        Entry::new(Role::Tool, [Part::Result(ToolResult::text(call, text))])
    }

    /// Returns the entry with its reasoning bound to what stood before it: the
    /// [binding](crate::page::Page::binding) of the page that it answers.
    #[must_use]
    pub fn bound_to(mut self, prefix: Digest) -> Entry {
        let bound = |part: &Part| match part {
            Part::Reasoning(it) if it.is_sealed() => Part::Reasoning(Reasoning { prefix: Some(prefix), ..it.clone() }),
            part => part.clone(),
        };
        if self.parts.iter().any(|part| matches!(part, Part::Reasoning(_))) {
            self.parts = self.parts.iter().map(bound).collect();
        }
        self
    }

    /// Reads the host's own data as a type of its own.
    pub fn meta<'a, M: Deserialize<'a>>(&'a self) -> Result<M, serde_json::Error> {
        M::deserialize(&self.meta)
    }

    /// Returns what it holds: as it says itself, or as its role tells. Words hold nothing that grows old.
    pub fn kind_held(&self) -> Option<EntryKind> {
        self.kind.or((self.role == Role::Tool).then_some(EntryKind::ToolResult))
    }

    /// Returns whether a person speaks here, and not the host in the user's place.
    pub fn is_user_words(&self) -> bool {
        self.role == Role::User && self.kind.is_none()
    }

    /// Returns the calls it makes.
    pub fn calls(&self) -> impl Iterator<Item = &Call> {
        self.parts.iter().filter_map(|part| match part {
            Part::Call(call) => Some(call),
            _ => None,
        })
    }
}

impl Part {
    /// Returns a text part.
    pub fn text(text: impl Into<Text>) -> Part {
        Part::Text { text: text.into() }
    }

    /// Returns whether it is something that is said, called or shown, not reasoning and not an empty text.
    pub fn is_content(&self) -> bool {
        match self {
            Part::Reasoning(_) => false,
            Part::Text { text } => !text.trim().is_empty(),
            _ => true,
        }
    }
}

impl Call {
    /// Returns a call whose arguments were given as a string.
    pub fn new(id: impl Into<CallId>, name: impl Into<Text>, arguments: impl Into<Text>) -> Call {
        Call { id: id.into(), name: name.into(), arguments: Arguments::String(arguments.into()) }
    }
}

impl ToolResult {
    /// Returns a result that is one text.
    pub fn text(call: impl Into<CallId>, text: impl Into<Text>) -> ToolResult {
        ToolResult { call: call.into(), content: vec![Piece::Text { text: text.into() }], is_error: false }
    }

    /// Returns how many characters of text it holds.
    pub fn chars(&self) -> usize {
        let texts = self.content.iter().filter_map(|piece| match piece {
            Piece::Text { text } => Some(text.chars().count()),
            Piece::Image(_) => None,
        });
        texts.sum()
    }
}
