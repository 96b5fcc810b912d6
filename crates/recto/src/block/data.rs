//! How a block stands in a file: exactly one kind, and what is unlike the usual.

use super::{
    Block, Capabilities, Constraints, Delegations, Identity, Kind, Moment, Mood, Nudge, Profile, ResponseContext,
    SharedMemory, Template, Todos,
};
use crate::entry::{Role, Text};
use crate::fragment::{Lifecycle, Priority};
use serde::{Deserialize, Serialize};

/// A block as it stands in a file.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct BlockData {
    #[serde(skip_serializing_if = "Option::is_none")]
    tag: Option<Text>,
    #[serde(skip_serializing_if = "Option::is_none")]
    role: Option<Role>,
    #[serde(skip_serializing_if = "Option::is_none")]
    stability: Option<Lifecycle>,
    #[serde(skip_serializing_if = "Option::is_none")]
    chars: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    priority: Option<Priority>,
    #[serde(skip_serializing_if = "Option::is_none")]
    identity: Option<Identity>,
    #[serde(skip_serializing_if = "Option::is_none")]
    capabilities: Option<Capabilities>,
    #[serde(skip_serializing_if = "Option::is_none")]
    shared_memory: Option<SharedMemory>,
    #[serde(skip_serializing_if = "Option::is_none")]
    profile: Option<Profile>,
    #[serde(skip_serializing_if = "Option::is_none")]
    moment: Option<Moment>,
    #[serde(skip_serializing_if = "Option::is_none")]
    mood: Option<Mood>,
    #[serde(skip_serializing_if = "Option::is_none")]
    constraints: Option<Constraints>,
    #[serde(skip_serializing_if = "Option::is_none")]
    todos: Option<Todos>,
    #[serde(skip_serializing_if = "Option::is_none")]
    response_context: Option<ResponseContext>,
    #[serde(skip_serializing_if = "Option::is_none")]
    delegations: Option<Delegations>,
    #[serde(skip_serializing_if = "Option::is_none")]
    nudge: Option<Nudge>,
    #[serde(skip_serializing_if = "Option::is_none")]
    template: Option<Template>,
    /// The name of a block of the host's own; written, never read.
    #[serde(skip_serializing_if = "Option::is_none", skip_deserializing)]
    own: Option<Text>,
}

impl TryFrom<BlockData> for Block {
    type Error = String;

    fn try_from(data: BlockData) -> Result<Block, String> {
        let kinds = [
            data.identity.map(Kind::Identity),
            data.capabilities.map(Kind::Capabilities),
            data.shared_memory.map(Kind::SharedMemory),
            data.profile.map(Kind::Profile),
            data.moment.map(Kind::Moment),
            data.mood.map(Kind::Mood),
            data.constraints.map(Kind::Constraints),
            data.todos.map(Kind::Todos),
            data.response_context.map(Kind::ResponseContext),
            data.delegations.map(Kind::Delegations),
            data.nudge.map(Kind::Nudge),
            data.template.map(Kind::Template),
        ];
        let mut named = kinds.into_iter().flatten();
        let (Some(kind), None) = (named.next(), named.next()) else {
            return Err("a block of `blocks` names one kind: identity, shared_memory, moment, template, …".into());
        };
        let usual = kind.usual();
        Ok(Block {
            tag: data.tag.or(usual.tag),
            role: data.role.unwrap_or(usual.role),
            stability: data.stability.unwrap_or(usual.stability),
            priority: data.priority.unwrap_or(usual.priority),
            chars: data.chars.or(usual.chars),
            kind: usual.kind,
        })
    }
}

impl From<Block> for BlockData {
    fn from(block: Block) -> BlockData {
        let usual = block.kind.clone().usual();
        let mut data = BlockData {
            tag: block.tag.filter(|tag| usual.tag.as_ref() != Some(tag)),
            role: Some(block.role).filter(|role| *role != usual.role),
            stability: Some(block.stability).filter(|stability| *stability != usual.stability),
            priority: Some(block.priority).filter(|priority| *priority != usual.priority),
            chars: block.chars.filter(|chars| usual.chars != Some(*chars)),
            ..BlockData::default()
        };
        match block.kind {
            Kind::Identity(it) => data.identity = Some(it),
            Kind::Capabilities(it) => data.capabilities = Some(it),
            Kind::SharedMemory(it) => data.shared_memory = Some(it),
            Kind::Profile(it) => data.profile = Some(it),
            Kind::Moment(it) => data.moment = Some(it),
            Kind::Mood(it) => data.mood = Some(it),
            Kind::Constraints(it) => data.constraints = Some(it),
            Kind::Todos(it) => data.todos = Some(it),
            Kind::ResponseContext(it) => data.response_context = Some(it),
            Kind::Delegations(it) => data.delegations = Some(it),
            Kind::Nudge(it) => data.nudge = Some(it),
            Kind::Template(it) => data.template = Some(it),
            Kind::Own(it) => data.own = Some(it.name().into()),
        }
        data
    }
}
