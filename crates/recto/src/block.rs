//! Blocks: a page as a few tagged messages, each made from data, each to be changed alone.
//!
//! A policy that names [blocks](crate::Policy::blocks) lays its pages out in them. Each is a function from data to a
//! [fragment](crate::fragment): the policy says which, under which tag, in whose name, how lasting and how long; the host
//! says what it knows in [`Facts`]. The history stands in one of them, instead of as messages, and what is said now in
//! another. Instructions of the log stay messages, and so does the work of the exchange that is under way, for a model has
//! to see the results of its own calls.
//!
//! What others said can't imitate a block: see [`forging`](crate::forging). A block of one's own is one [`Render`].

mod capabilities; // the tools, told
mod data; // how a block stands in a file
mod facts; // what a host knows at a call
mod identity; // who the model is, and what it will meet
mod layout; // from a view to blocks
mod learn; // what the conversation says of the human
mod lists; // mood, constraints, todos, response context, delegations, nudges
mod memory; // what was said before
mod moment; // what is said now, and when
mod past; // from items to what is told of them
mod presets; // the layouts that come with Recto
mod profile; // who the human is
mod template; // anything else, from a template
mod zone; // time zones

use crate::entry::{Millis, Role, Text};
use crate::error::Error;
use crate::forging::{Cut, Delimiters, Woven};
use crate::fragment::{Lifecycle, Priority};
use crate::tool::Tools;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::sync::Arc;

pub use capabilities::{Capabilities, Detail};
use data::BlockData;
pub use facts::{Facts, Todo, TodoState};
pub use identity::Identity;
pub(crate) use layout::{compile, reads, rough};
pub use learn::learned;
pub(crate) use learn::{Words, wanted};
pub use lists::{Constraints, Delegations, Mood, Nudge, ResponseContext, Todos};
pub use memory::{Merge, SharedMemory};
pub use moment::Moment;
pub(crate) use past::{Share, told_why};
pub(crate) use presets::{Nexus, nexus, own};
pub use profile::Profile;
pub use template::Template;
pub use zone::{Zone, instant};

/// The most blocks that a policy may name.
pub const BLOCKS_MAX: usize = 32;
/// The longest tag, in characters.
const TAG_CHARS_MAX: usize = 64;

/// A block of a page.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "BlockData", into = "BlockData")]
pub struct Block {
    /// What stands in it.
    pub kind: Kind,
    /// What stands in brackets above it; without a tag nothing does.
    pub tag: Option<Text>,
    /// In whose name it speaks.
    pub role: Role,
    /// Whether it stays the same from call to call.
    pub stability: Lifecycle,
    /// Whether it may be left out when there is no room. What was said before has the room before all that may.
    pub priority: Priority,
    /// How many characters of it are shown; what was said now and before knows no such limit, or has its own.
    pub chars: Option<usize>,
}

/// What stands in a block.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Kind {
    /// Who the model is, and what it will meet.
    Identity(Identity),
    /// The tools that it may call.
    Capabilities(Capabilities),
    /// What was said before.
    SharedMemory(SharedMemory),
    /// Who the human is.
    Profile(Profile),
    /// What is said now, and when.
    Moment(Moment),
    /// How the human seems to feel.
    Mood(Mood),
    /// What the answer must keep to.
    Constraints(Constraints),
    /// What is to be done.
    Todos(Todos),
    /// To whom the answer goes.
    ResponseContext(ResponseContext),
    /// Who works on something for this agent.
    Delegations(Delegations),
    /// What somebody wants the model to mind.
    Nudge(Nudge),
    /// Anything else, from a template.
    Template(Template),
    /// The host's own; it is no part of the data.
    Own(Arc<dyn Render>),
}

/// A function from data to what stands in a block. It must be pure: the same data give the same words.
pub trait Render: fmt::Debug + Send + Sync {
    /// Returns its name, unlike that of any other block of a policy; on receipts it stands behind `block:`.
    fn name(&self) -> &str;

    /// Returns what stands under the tag; without anything the block is left out.
    fn render(&self, given: &Given<'_>) -> Result<Option<Woven>, Error>;

    /// Returns what stands behind the tag, within its brackets.
    fn attributes(&self, _given: &Given<'_>) -> String {
        String::new()
    }

    /// Returns what the model is told of it beforehand, if it has a tag.
    fn explained(&self) -> Option<&str> {
        None
    }

    /// Adds what stands for structure within it, beside its tag.
    fn delimiters(&self, known: Delimiters) -> Delimiters {
        known
    }

    /// Says what is wrong with its settings.
    fn check(&self) -> Result<(), Error> {
        Ok(())
    }
}

/// What blocks are made from.
#[derive(Clone, Copy, Debug)]
pub struct Given<'a> {
    /// What the host knows.
    pub facts: &'a Facts,
    /// The tools offered.
    pub tools: Option<&'a Tools>,
    /// All blocks of the policy.
    pub blocks: &'a [Block],
    /// What was said before, oldest first, as far as it is to be told.
    pub past: &'a [Past],
    /// What is to be answered.
    pub asked: Option<&'a Asked>,
}

/// What somebody said before.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Past {
    /// Who.
    pub who: Who,
    /// When, if that is known.
    pub at: Option<Millis>,
    /// What, piece by piece.
    pub said: Vec<Said>,
}

/// Who said something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Who {
    /// The human.
    Human,
    /// The model.
    Model,
    /// The host, of what was said before: summaries and other sections.
    Host,
}

/// A piece of what somebody said.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Said {
    /// Words.
    Words(Text),
    /// Calls that were made with the words before.
    Calls(Vec<Used>),
}

/// A tool that was called.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Used {
    /// The tool.
    pub name: Text,
    /// Its most telling parameter, and what that was.
    pub argument: Option<(Text, Text)>,
}

/// What is to be answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Asked {
    /// The words.
    pub text: Text,
    /// When they were said, if that is known.
    pub at: Option<Millis>,
}

impl Given<'_> {
    /// Returns what time it is.
    pub fn now(&self) -> Option<Millis> {
        self.facts.now.or_else(|| self.asked.and_then(|asked| asked.at))
    }
}

impl Kind {
    pub(crate) fn as_render(&self) -> &dyn Render {
        match self {
            Kind::Identity(it) => it,
            Kind::Capabilities(it) => it,
            Kind::SharedMemory(it) => it,
            Kind::Profile(it) => it,
            Kind::Moment(it) => it,
            Kind::Mood(it) => it,
            Kind::Constraints(it) => it,
            Kind::Todos(it) => it,
            Kind::ResponseContext(it) => it,
            Kind::Delegations(it) => it,
            Kind::Nudge(it) => it,
            Kind::Template(it) => it,
            Kind::Own(it) => &**it,
        }
    }

    /// The block as it is unless somebody says otherwise.
    fn usual(self) -> Block {
        use Lifecycle::{Dynamic, Static};
        use Priority::{Optional, Required};
        let (stability, priority, chars) = match &self {
            Kind::Identity(_) => (Static, Required, None),
            Kind::Capabilities(_) => (Static, Optional(30), Some(60_000)),
            Kind::SharedMemory(_) | Kind::Moment(_) => (Dynamic, Required, None),
            Kind::Profile(_) => (Static, Optional(20), Some(8_000)),
            Kind::Mood(_) => (Dynamic, Optional(5), Some(500)),
            Kind::Constraints(_) => (Static, Required, Some(8_000)),
            Kind::Todos(_) => (Dynamic, Optional(15), Some(8_000)),
            Kind::ResponseContext(_) => (Dynamic, Required, Some(500)),
            Kind::Delegations(_) => (Dynamic, Optional(10), Some(2_000)),
            Kind::Nudge(_) => (Dynamic, Optional(25), Some(8_000)),
            Kind::Template(_) | Kind::Own(_) => (Dynamic, Optional(10), Some(16_000)),
        };
        let is_identity = matches!(self, Kind::Identity(_));
        let tag = (!is_identity).then(|| self.as_render().name().to_uppercase().into());
        let role = if is_identity { Role::System } else { Role::User };
        Block { kind: self, tag, role, stability, priority, chars }
    }
}

impl PartialEq for Kind {
    fn eq(&self, other: &Kind) -> bool {
        match (self, other) {
            (Kind::Own(one), Kind::Own(other)) => Arc::ptr_eq(one, other),
            (Kind::Own(_), _) | (_, Kind::Own(_)) => false,
            // Settings are plain data.
            (one, other) => BlockData::from(one.clone().usual()) == BlockData::from(other.clone().usual()),
        }
    }
}

impl From<Kind> for Block {
    fn from(kind: Kind) -> Block {
        kind.usual()
    }
}

impl Block {
    /// Returns a block of the host's own, under its name as the tag.
    pub fn own(block: impl Render + 'static) -> Block {
        Kind::Own(Arc::new(block)).into()
    }

    /// Returns the same block under another tag.
    #[must_use]
    pub fn tagged(self, tag: &str) -> Block {
        Block { tag: Some(tag.into()), ..self }
    }

    /// Returns its name.
    pub fn name(&self) -> &str {
        self.kind.as_render().name()
    }

    /// What it is called among fragments.
    pub(crate) fn id(&self) -> Text {
        format!("block:{}", self.name()).into()
    }

    /// Says what is wrong with it.
    pub(crate) fn check(&self) -> Result<(), Error> {
        let refused = |what: String, hint: &str| Err(Error::settings(format!("block {}: {what}", self.name()), hint));
        let is_plain = |letter: char| letter.is_alphanumeric() || matches!(letter, '_' | '-' | ' ');
        if let Some(tag) = &self.tag {
            let is_tag = tag.chars().any(char::is_alphanumeric) && tag.chars().all(is_plain);
            if !is_tag || tag.chars().count() > TAG_CHARS_MAX {
                return refused(format!("tag {tag:?}"), "a tag has letters, digits, `_` and `-`, at most 64 of them");
            }
        }
        if self.role == Role::Assistant || self.role == Role::Tool {
            return refused(format!("role {}", self.role), "blocks speak in the name of user or system");
        }
        if self.chars == Some(0) {
            return refused("chars is 0".into(), "leave the block out instead");
        }
        if self.chars.is_some() && matches!(self.kind, Kind::Moment(_) | Kind::SharedMemory(_)) {
            return refused("chars".into(), "what is said now is never cut; what was said has `chars` of its own");
        }
        self.kind.as_render().check()
    }

    /// What stands on the page, and how much of it was cut.
    pub(crate) fn told(&self, given: &Given<'_>) -> Result<Option<(Woven, Option<Cut>)>, Error> {
        let render = self.kind.as_render();
        let Some(mut body) = render.render(given)? else { return Ok(None) };
        let cut = self.chars.and_then(|chars| body.cut(chars));
        let mut whole = Woven::default();
        if let Some(tag) = &self.tag {
            whole.ours(&format!("[{tag}{}]\n", render.attributes(given)));
        }
        whole.add(&body);
        Ok(Some((whole, cut)))
    }
}

/// Says what is wrong with the blocks of a policy.
pub(crate) fn check(blocks: &[Block]) -> Result<(), Error> {
    if blocks.len() > BLOCKS_MAX {
        let what = format!("{} blocks", blocks.len());
        return Err(Error::settings(what, format!("a page has at most {BLOCKS_MAX}")));
    }
    blocks.iter().try_for_each(Block::check)?;
    for (at, block) in blocks.iter().enumerate() {
        let is_like = |other: &&Block| other.name() == block.name() || (other.tag.is_some() && other.tag == block.tag);
        if let Some(twin) = blocks[..at].iter().find(is_like) {
            let what = format!("blocks {} and {} have one name or tag", twin.name(), block.name());
            return Err(Error::settings(what, "give every block a name and a tag of its own"));
        }
    }
    Ok(())
}

/// Whether what looks like structure in the words of others is made harmless.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Forged {
    /// It is.
    #[default]
    Escaped,
    /// It is left as it is: whoever writes into the log can imitate blocks.
    Left,
}

impl Forged {
    pub(crate) fn is_usual(&self) -> bool {
        *self == Forged::Escaped
    }
}
