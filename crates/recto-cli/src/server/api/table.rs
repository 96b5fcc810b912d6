//! All routes of the API: what each is asked with, what it answers, and what it does.

use super::conversations::{
    Conversation, DescriptionGiven, ErasingGiven, ForkGiven, Forked, ListGiven, Listed, NewGiven, ReadersTold,
};
use super::decisions::{DecisionsGiven, DecisionsTold, ExpandGiven, Expanded, PinGiven, Pinned, Reverted, Unpinned};
use super::entries::{AppendGiven, Appended, EntriesGiven, EntriesTold, EraseGiven, Row};
use super::events::SinceGiven;
use super::facts::{ModelTold, ModelsGiven, ModelsTold, PoliciesTold, VersionTold};
use super::held::{NotesTold, SessionsTold, WantsGiven, WantsTold};
use super::money::{Curve, CurveGiven, ReplayGiven};
use super::pages::{Abandoned, AcknowledgeGiven, Acknowledged, CallGiven, PageTold, TicketGiven};
use super::search::{SearchAllGiven, SearchGiven, SearchTold};
use super::shape::{Shape, Shapes};
use super::turns::{AsIfGiven, BodyGiven, TurnTold, TurnsGiven, TurnsTold};
use recto::Policy;
use recto_engine::engine::Gone;
use serde_json::Value;

/// Something that can be asked for.
#[derive(Clone, Copy)]
pub(in crate::server) struct Route {
    pub(in crate::server) method: Asks,
    pub(in crate::server) path: &'static str,
    pub(super) verb: Verb,
    pub(super) effect: Effect,
    /// What it does, in one sentence.
    pub(super) about: &'static str,
    /// Its parameters behind the path, as the fields of an object.
    pub(super) query: Given,
    pub(super) body: Given,
    pub(super) answer: Answer,
    /// Whether a header names it, so that it can be repeated safely.
    pub(super) repeats: Repeats,
}

/// How a route is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::server) enum Asks {
    Get,
    Post,
    Patch,
    Delete,
}

/// Whether anything changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Effect {
    Reads,
    Writes,
}

/// Whether the header `idempotency-key` is heeded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Repeats {
    AsItCan,
    ByKey,
}

/// What is given with a request.
#[derive(Clone, Copy)]
pub(super) enum Given {
    Nothing,
    Shape(fn(&mut Shapes) -> Value),
}

/// What comes back.
#[derive(Clone, Copy)]
pub(super) enum Answer {
    /// JSON, with a status.
    Json(u16, fn(&mut Shapes) -> Value),
    /// JSON whose bytes are somebody else's.
    Bytes,
    /// Server-sent events.
    Events,
}

/// What a route does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verb {
    Openapi,
    Version,
    Policies,
    Policy,
    Models,
    Model,
    ListConversations,
    CreateConversation,
    GetConversation,
    DescribeConversation,
    EraseConversation,
    ForkConversation,
    Readers,
    SearchAll,
    Search,
    ReadEntries,
    AppendEntries,
    GetEntry,
    GetOriginal,
    EraseEntries,
    Compile,
    Preview,
    Acknowledge,
    Abandon,
    Turns,
    Turn,
    TurnRequest,
    TurnPreview,
    Curve,
    Replay,
    Decisions,
    Revert,
    Pin,
    Unpin,
    Expand,
    Sessions,
    Notes,
    Wants,
    ReaderEvents,
    TenantEvents,
}

/// A path of the API.
macro_rules! path {
    ($rest:literal) => {
        concat!("/api/v1", $rest)
    };
    (conversation $rest:literal) => {
        concat!("/api/v1/conversations/{conversation}", $rest)
    };
    (reader $rest:literal) => {
        concat!("/api/v1/conversations/{conversation}/readers/{reader}", $rest)
    };
}

const fn get(path: &'static str, verb: Verb, about: &'static str, answer: Answer) -> Route {
    let (query, body, repeats) = (Given::Nothing, Given::Nothing, Repeats::AsItCan);
    Route { method: Asks::Get, path, verb, effect: Effect::Reads, about, query, body, answer, repeats }
}

const fn post(path: &'static str, verb: Verb, about: &'static str, body: Given, answer: Answer) -> Route {
    let (method, effect) = (Asks::Post, Effect::Writes);
    Route { method, effect, body, ..get(path, verb, about, answer) }
}

impl Route {
    /// Returns whether asking for it changes anything.
    pub(in crate::server) fn changes(&self) -> bool {
        self.effect == Effect::Writes
    }

    const fn asked_with(self, query: Given) -> Route {
        Route { query, ..self }
    }

    const fn by(self, method: Asks) -> Route {
        Route { method, effect: Effect::Writes, ..self }
    }

    const fn reading(self) -> Route {
        Route { effect: Effect::Reads, ..self }
    }

    const fn keyed(self) -> Route {
        Route { repeats: Repeats::ByKey, ..self }
    }
}

const fn given<T: Shape>() -> Given {
    Given::Shape(T::shape)
}

const fn told<T: Shape>() -> Answer {
    Answer::Json(200, T::shape)
}

const fn made<T: Shape>() -> Answer {
    Answer::Json(201, T::shape)
}

/// All there is.
pub(in crate::server) static TABLE: [Route; 40] = [
    get("/openapi.json", Verb::Openapi, "Describes this API.", told::<serde_json::Map<String, Value>>()),
    get(path!("/version"), Verb::Version, "Tells the version, and who asks.", told::<VersionTold>()),
    get(path!("/policies"), Verb::Policies, "Lists the policies there are.", told::<PoliciesTold>()),
    get(path!("/policies/{policy}"), Verb::Policy, "Returns a policy as data.", told::<Policy>()),
    get(path!("/models"), Verb::Models, "Lists the models that are known.", told::<ModelsTold>())
        .asked_with(given::<ModelsGiven>()),
    get(path!("/models/{model}"), Verb::Model, "Tells what is known about a model.", told::<ModelTold>()),
    get(path!("/conversations"), Verb::ListConversations, "Lists conversations.", told::<Listed>())
        .asked_with(given::<ListGiven>()),
    post(
        path!("/conversations"),
        Verb::CreateConversation,
        "Makes a conversation.",
        given::<NewGiven>(),
        made::<Conversation>(),
    ),
    get(path!(conversation ""), Verb::GetConversation, "Returns a conversation.", told::<Conversation>()),
    post(
        path!(conversation ""),
        Verb::DescribeConversation,
        "Says anew what a conversation is called, and what data goes with it.",
        given::<DescriptionGiven>(),
        told::<Conversation>(),
    )
    .by(Asks::Patch),
    get(path!(conversation ""), Verb::EraseConversation, "Erases a conversation, for good.", told::<Gone>())
        .asked_with(given::<ErasingGiven>())
        .by(Asks::Delete),
    post(
        path!(conversation "/forks"),
        Verb::ForkConversation,
        "Forks a conversation. Nothing is copied.",
        given::<ForkGiven>(),
        made::<Forked>(),
    ),
    get(path!(conversation "/readers"), Verb::Readers, "Lists the readers of a conversation.", told::<ReadersTold>()),
    get(path!("/search"), Verb::SearchAll, "Finds what was said about something.", told::<SearchTold>())
        .asked_with(given::<SearchAllGiven>()),
    get(
        path!(conversation "/search"),
        Verb::Search,
        "Finds what was said about something in a conversation.",
        told::<SearchTold>(),
    )
    .asked_with(given::<SearchGiven>()),
    get(path!(conversation "/entries"), Verb::ReadEntries, "Reads entries.", told::<EntriesTold>())
        .asked_with(given::<EntriesGiven>()),
    post(
        path!(conversation "/entries"),
        Verb::AppendEntries,
        "Appends entries, all or none.",
        given::<AppendGiven>(),
        told::<Appended>(),
    )
    .keyed(),
    get(path!(conversation "/entries/{seq}"), Verb::GetEntry, "Returns an entry as pages may show it.", told::<Row>()),
    get(
        path!(conversation "/entries/{seq}/original"),
        Verb::GetOriginal,
        "Returns an entry as it was said, secrets included.",
        told::<Row>(),
    ),
    post(
        path!(conversation "/erase"),
        Verb::EraseEntries,
        "Erases the words of entries, for good.",
        given::<EraseGiven>(),
        told::<Gone>(),
    ),
    get(
        path!(conversation "/sessions"),
        Verb::Sessions,
        "Tells what providers that remember hold.",
        told::<SessionsTold>(),
    ),
    get(path!(conversation "/notes"), Verb::Notes, "Lists the summaries that models made.", told::<NotesTold>()),
    post(
        path!(reader "/compile"),
        Verb::Compile,
        "Makes the page of the next call, and records that the call is open.",
        given::<CallGiven>(),
        told::<PageTold>(),
    ),
    post(
        path!(reader "/preview"),
        Verb::Preview,
        "Makes the page of the next call, and records nothing.",
        given::<CallGiven>(),
        told::<PageTold>(),
    )
    .reading(),
    post(
        path!(reader "/acknowledge"),
        Verb::Acknowledge,
        "Records that a call was answered, and what came of it.",
        given::<AcknowledgeGiven>(),
        told::<Acknowledged>(),
    )
    .keyed(),
    post(
        path!(reader "/abandon"),
        Verb::Abandon,
        "Gives up a call that came to nothing.",
        given::<TicketGiven>(),
        told::<Abandoned>(),
    ),
    get(path!(reader "/turns"), Verb::Turns, "Lists the calls that were acknowledged.", told::<TurnsTold>())
        .asked_with(given::<TurnsGiven>()),
    get(
        path!(reader "/turns/{turn}"),
        Verb::Turn,
        "Makes the page of a call again, with its receipt and what differs from the page before.",
        told::<TurnTold>(),
    )
    .asked_with(given::<BodyGiven>()),
    get(path!(reader "/turns/{turn}/request"), Verb::TurnRequest, "Returns the body of a call.", Answer::Bytes),
    post(
        path!(reader "/turns/{turn}/preview"),
        Verb::TurnPreview,
        "Makes the page of a call as if it had been made under another policy, model or window.",
        given::<AsIfGiven>(),
        told::<PageTold>(),
    )
    .reading(),
    get(
        path!(reader "/curve"),
        Verb::Curve,
        "Tells what recorded calls cost, with and without what was decided.",
        told::<Curve>(),
    )
    .asked_with(given::<CurveGiven>()),
    post(
        path!(reader "/replay"),
        Verb::Replay,
        "Tells what all calls of the conversation would cost under a policy.",
        given::<ReplayGiven>(),
        told::<Curve>(),
    )
    .reading(),
    get(path!(reader "/decisions"), Verb::Decisions, "Lists what was decided.", told::<DecisionsTold>())
        .asked_with(given::<DecisionsGiven>()),
    post(
        path!(reader "/decisions/{ordinal}/revert"),
        Verb::Revert,
        "Takes a decision back.",
        Given::Nothing,
        told::<Reverted>(),
    ),
    post(
        path!(reader "/pins"),
        Verb::Pin,
        "Keeps entries from ever being reduced.",
        given::<PinGiven>(),
        told::<Pinned>(),
    ),
    get(path!(reader "/pins"), Verb::Unpin, "Takes back all pins that touch entries.", told::<Unpinned>())
        .asked_with(given::<PinGiven>())
        .by(Asks::Delete),
    post(
        path!(reader "/expand"),
        Verb::Expand,
        "Gives back what the next page would not show.",
        given::<ExpandGiven>(),
        told::<Expanded>(),
    ),
    get(path!(reader "/wants"), Verb::Wants, "Lists the summaries that would help the next page.", told::<WantsTold>())
        .asked_with(given::<WantsGiven>()),
    get(path!(reader "/events"), Verb::ReaderEvents, "Tells what happens, as it happens.", Answer::Events)
        .asked_with(given::<SinceGiven>()),
    get(path!("/events"), Verb::TenantEvents, "Tells which conversations change, as they do.", Answer::Events),
];
