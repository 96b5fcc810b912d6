//! The layouts that come with Recto.

use super::{
    Block, Capabilities, Constraints, Delegations, Detail, Identity, Kind, Merge, Moment, Mood, Nudge, Profile,
    ResponseContext, SharedMemory, Todos,
};

/// What of NEXUS is meant: its document, or its code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Nexus {
    /// The document.
    Document,
    /// The code, as it was when the document was last changed.
    Code,
}

/// The five messages of NEXUS, with its words.
pub(crate) fn nexus(which: Nexus) -> Vec<Block> {
    let keys = match which {
        Nexus::Document => vec!["prompt_overrides.friends_profile", "prompt_overrides.learning"],
        Nexus::Code => vec!["prompt_overrides.friends_profile"],
    };
    let capabilities = Capabilities {
        heading: "Available tools in this conversation:".into(),
        empty: "(No tools available)".into(),
        detail: if which == Nexus::Document { Detail::Plain } else { Detail::Quoted },
    };
    let memory = SharedMemory {
        limit: 20,
        chars: if which == Nexus::Document { 500 } else { 1_000 },
        // The code writes a run id with every message; the document's messages may have none.
        merge: if which == Nexus::Document { Merge::Exchange } else { Merge::Run },
        human: "Human".into(),
        model: "Nexus".into(),
        heading: "Recent conversation memory:".into(),
        empty: "(No previous conversations yet)".into(),
        counts: true,
        unknown_time: Some("Unknown time".into()),
    };
    let profile = Profile {
        keys: keys.into_iter().map(Into::into).collect(),
        heading: "About this friend:".into(),
        empty: "(New friend, getting to know each other)".into(),
        unset: Some("(Still learning about this friend's preferences)".into()),
        since: (which == Nexus::Code).then(|| "created_at".into()),
        learn: false,
    };
    vec![
        Kind::Identity(Identity { name: Some("Nexus".into()), text: None }).into(),
        Kind::Capabilities(capabilities).into(),
        Kind::SharedMemory(memory).into(),
        Block::from(Kind::Profile(profile)).tagged("FRIENDS_INFO"),
        Kind::Moment(Moment {}).into(),
    ]
}

/// Recto's own: what stays the same first, so that a provider's cache holds it.
pub(crate) fn own() -> Vec<Block> {
    let kinds = [
        Kind::Identity(Identity::default()),
        Kind::Capabilities(Capabilities::default()),
        Kind::Constraints(Constraints::default()),
        Kind::Profile(Profile::default()),
        Kind::SharedMemory(SharedMemory::default()),
        Kind::Todos(Todos::default()),
        Kind::Delegations(Delegations::default()),
        Kind::ResponseContext(ResponseContext::default()),
        Kind::Mood(Mood::default()),
        Kind::Nudge(Nudge::default()),
        Kind::Moment(Moment::default()),
    ];
    kinds.map(Block::from).into()
}
