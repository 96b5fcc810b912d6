//! Pages: compiled, previewed, acknowledged, abandoned.

use super::asked::{Asked, checked_name, json};
use super::entries::{EntryGiven, said};
use super::problem::Problem;
use super::settings::{PolicyGiven, Settings, SettingsGiven, remembering};
use crate::beside::Beside;
use crate::body;
use crate::codes::Code;
use crate::failure::Failure;
use axum::response::Response;
use recto::block::Facts;
use recto::digest::Digest;
use recto::entry::{Part, Text};
use recto::expiry::ExpiryOverride;
use recto::fragment::{Fragment, Fragments, Lifecycle, Placement, Priority, Trust};
use recto::mj::MessageExpirationOverride;
use recto::page::{LATE_SYSTEM, Mark, Message, Mode, Page};
use recto::receipt::{Receipt, Ticket};
use recto::wire::{Usage, Wire};
use recto::{Compiled, Entry, Role, Seq, Target, Tokenizer, Tokens};
use recto_engine::{Answer, Call, Conversation, ConversationId, ReaderName, Remembering, Store};
use serde_json::value::RawValue;
use std::time::Duration;

/// The most prompt pieces and tools of a call.
const FRAGMENTS_MAX: usize = 256;
const TOOLS_MAX: usize = 1_024;
/// For how long a call goes on with a session, if it says nothing, and at most.
const LEASE_USUAL: u64 = 600;
const LEASE_MAX: u64 = 86_400;

words! {
    /// How a body is told.
    enum BodyAs {
        /// As JSON.
        #[default]
        Json = "json",
        /// As a text that holds exactly its bytes.
        Text = "text",
        /// Not at all.
        None = "none",
    }
}

given! {
    /// A call.
    struct CallGiven {
        /// A policy by its name, or as data.
        policy: Option<PolicyGiven>,
        /// The model.
        model: Option<String>,
        /// The format it is spoken to in.
        wire: Option<Wire>,
        /// Its window in tokens; 0 is without end.
        window: Option<Tokens>,
        /// How many tokens stay free for the answer.
        reserve: Option<Tokens>,
        /// What is said now; it is appended when the call is acknowledged.
        input: Option<EntryGiven>,
        /// Prompt pieces that go with this call.
        fragments: Option<Vec<FragmentGiven>>,
        /// What the client knows at this call, for blocks to be made from.
        facts: Option<Facts>,
        /// The tools offered: definitions in any provider's form.
        tools: Option<Vec<Box<RawValue>>>,
        /// The form that the answer must have, in any provider's form.
        format: Option<Box<RawValue>>,
        /// The execution that is under way.
        run: Option<String>,
        /// What holds for this run instead of what was configured about expiry.
        expiry: Option<ExpiryOverride>,
        /// The same under MemberJunction's names.
        message_expiration_override as "messageExpirationOverride": Option<MessageExpirationOverride>,
        /// The session of a provider that remembers: the page holds only what it was not sent yet.
        session: Option<SessionGiven>,
        /// How the body is told.
        body_as: Option<BodyAs>,
    }
}

given! {
    /// A prompt piece. What is left out is static, by the system, at the head, trusted and required.
    struct FragmentGiven {
        /// Its name, unlike that of any other.
        id: Text,
        /// What it says.
        content: Text,
        /// Whether it stays the same from call to call.
        lifecycle: Option<Lifecycle>,
        /// In whose name it speaks.
        role: Option<Role>,
        /// Where it stands.
        placement: Option<Placement>,
        /// Whether its text may be taken at its word.
        trust: Option<Trust>,
        /// What to call it in the text around untrusted content.
        tag: Option<Text>,
        /// Whether it may be left out when there is no room.
        priority: Option<Priority>,
    }
}

given! {
    /// A provider that remembers.
    struct SessionGiven {
        /// Who remembers.
        provider: String,
        /// What its session belongs to, such as a folder.
        workspace: Option<String>,
        /// For how long no other call goes on with it: 600, up to 86400.
        lease_seconds: Option<u64>,
    }
}

told! {
    /// A page.
    struct PageTold {
        /// The conversation.
        conversation: ConversationId,
        /// Who reads.
        reader: ReaderName,
        /// The number of the call.
        turn: u64,
        /// The model that reads.
        model: Text,
        /// The format of the body.
        wire: Wire,
        /// What the answer's reasoning is bound to.
        binding: Digest,
        /// What the model is to read.
        page: PageShown,
        /// The body of the request.
        body: Option<Box<RawValue>>,
        /// The explanation.
        receipt: Receipt,
        /// For acknowledging the call.
        ticket: Ticket,
    }
}

told! {
    /// What the model is to read.
    struct PageShown {
        /// Whether it is everything, or what is new.
        mode: Mode,
        /// The messages, in order.
        messages: Vec<MessageShown>,
        /// The tools offered, in the format of the wire.
        tools: Vec<Box<RawValue>>,
        /// Whether the answer must have a form.
        has_format: bool,
        /// Where the provider is told that what stands before will come again.
        marks: Vec<Mark>,
        /// The longest answer that there is room for.
        output: Tokens,
    }
}

told! {
    /// A message.
    struct MessageShown {
        /// Who speaks.
        role: Role,
        /// The entry that it shows.
        seq: Option<Seq>,
        /// Which agent or person.
        author: Option<Text>,
        /// The fragment that it is.
        fragment: Option<Text>,
        /// What it costs.
        cost: Tokens,
        /// What identifies its content.
        digest: Digest,
        /// What is said.
        parts: Vec<Part>,
    }
}

given! {
    /// What came of a call.
    struct AcknowledgeGiven {
        /// The ticket of its page.
        ticket: Ticket,
        /// The provider's whole answer, as it came.
        reply: Option<Box<RawValue>>,
        /// The format of the answer; left out, it is that of the model.
        wire: Option<Wire>,
        /// The model that answered, for its format and its prices.
        model: Option<String>,
        /// What the page said that reasoning is bound to.
        binding: Option<Digest>,
        /// What came of it, in our words.
        entries: Option<Vec<EntryGiven>>,
        /// How many tokens of input the provider counted.
        reported: Option<Tokens>,
        /// What the provider says was used.
        usage: Option<Usage>,
        /// What the provider calls the session that holds it now.
        session: Option<Text>,
    }
}

told! {
    /// A call that was acknowledged.
    struct Acknowledged {
        /// The conversation.
        conversation: ConversationId,
        /// The number of the call.
        turn: u64,
        /// The first entry that came of it.
        first: Option<Seq>,
        /// The last of them.
        last: Option<Seq>,
        /// Whether this was done already, by its key.
        is_repeated: bool,
    }
}

given! {
    /// A ticket.
    struct TicketGiven {
        /// The ticket of a page.
        ticket: Ticket,
    }
}

told! {
    /// A call that was given up.
    struct Abandoned {
        /// The conversation.
        conversation: ConversationId,
        /// The number of the call.
        turn: u64,
        /// Whether it was open.
        was_open: bool,
    }
}

impl CallGiven {
    fn settings(&self) -> SettingsGiven<'_> {
        let CallGiven { policy, model, wire, window, reserve, .. } = self;
        SettingsGiven {
            policy: policy.as_ref(),
            model: model.as_deref(),
            wire: *wire,
            window: *window,
            reserve: *reserve,
        }
    }

    /// Returns the call, with what the conversation keeps beside its entries where the request says nothing.
    fn read<S: Store>(self, asked: &Asked<S>, conversation: &Conversation) -> Result<Call, Problem> {
        let settings = self.settings().settled(asked)?;
        let mut call = usual_call(asked.reader()?, conversation, settings);
        let count = |what: &str, count: usize, most: usize| match count > most {
            true => Err(Problem::of(Code::TooMuch, format!("{count} {what}; at most {most} are taken"))),
            false => Ok(()),
        };
        if let Some(fragments) = self.fragments {
            count("fragments", fragments.len(), FRAGMENTS_MAX)?;
            call.fragments = fragments.into_iter().map(FragmentGiven::read).collect();
        }
        if let Some(tools) = self.tools {
            count("tools", tools.len(), TOOLS_MAX)?;
            call.tools = tools.iter().map(|tool| tool.get().into()).collect();
        }
        if let Some(format) = self.format {
            call.format = Some(format.get().into());
        }
        call.input = self.input.map(EntryGiven::read).transpose()?;
        call.facts = self.facts;
        call.run = self.run.map(Into::into);
        call.expiry = expiry_override(self.expiry, self.message_expiration_override)?;
        call.session = self.session.map(SessionGiven::read).transpose()?;
        if call.session.is_some() {
            call.target = remembering(&asked.setup.config, call.target)?;
        }
        // Only a provider that remembers could hold the call that a result answers.
        let is_paired = |part: &Part| matches!(part, Part::Call(_) | Part::Result(_));
        match &call.input {
            Some(input) if call.session.is_none() && input.parts.iter().any(is_paired) => {
                Err(Problem::bad("input: calls and results stand together in the log: append them"))
            }
            _ => Ok(call),
        }
    }
}

/// Returns the one override of a call, whichever names it has.
fn expiry_override(
    own: Option<ExpiryOverride>,
    of_member_junction: Option<MessageExpirationOverride>,
) -> Result<Option<ExpiryOverride>, Problem> {
    match (own, of_member_junction) {
        (Some(_), Some(_)) => Err(Problem::bad("only one of `expiry` and `messageExpirationOverride`")),
        (None, Some(given)) => given.to_override().map(Some).map_err(|error| {
            let problem = Problem::bad(format!("messageExpirationOverride: {error}"));
            error.hint().into_iter().fold(problem, Problem::hinting)
        }),
        (own, None) => Ok(own),
    }
}

/// Returns the call that a reader makes where nothing but its settings is said.
pub(super) fn usual_call(reader: ReaderName, conversation: &Conversation, settings: Settings) -> Call {
    let beside = Beside::of_meta(&conversation.meta);
    let given = beside.asked();
    let own = given.as_ref().filter(|given| given.wire == settings.target.wire);
    Call {
        tools: beside.tools,
        format: given.as_ref().and_then(|given| given.format.clone()),
        marks: own.map(|given| given.marks.clone()).unwrap_or_default(),
        reserve: settings.reserve,
        ..Call::new(reader, settings.policy, settings.target)
    }
}

impl FragmentGiven {
    fn read(self) -> Fragment {
        let usual = Fragment::fixed(self.id, self.content);
        Fragment {
            lifecycle: self.lifecycle.unwrap_or(usual.lifecycle),
            role: self.role.unwrap_or(usual.role),
            placement: self.placement.unwrap_or(usual.placement),
            trust: self.trust.unwrap_or(usual.trust),
            tag: self.tag,
            priority: self.priority.unwrap_or(usual.priority),
            ..usual
        }
    }
}

impl SessionGiven {
    fn read(self) -> Result<Remembering, Problem> {
        let provider = checked_name("provider", &self.provider)?;
        if provider.contains('/') {
            return Err(Problem::bad("session: the name of a provider has no slash"));
        }
        match self.lease_seconds.unwrap_or(LEASE_USUAL) {
            lease @ 1..=LEASE_MAX => {
                let workspace = self.workspace.unwrap_or_default();
                Ok(Remembering::new(provider, workspace, Duration::from_secs(lease)))
            }
            lease => Err(Problem::bad(format!("session: lease_seconds of {lease}, and 1 to {LEASE_MAX} are taken"))),
        }
    }
}

/// What a page is told with.
pub(super) struct Telling<'t> {
    pub(super) conversation: &'t Conversation,
    pub(super) target: &'t Target,
    pub(super) fragments: &'t [Fragment],
    pub(super) body_as: BodyAs,
}

impl Telling<'_> {
    /// Tells a page.
    pub(super) fn page(&self, compiled: Compiled) -> Result<PageTold, Problem> {
        let Telling { conversation, target, body_as, .. } = self;
        let Compiled { page, receipt } = compiled;
        let body = match body_as {
            BodyAs::None => None,
            BodyAs::Json => encoded(&page, target, conversation)?.map(raw).transpose()?,
            BodyAs::Text => match encoded(&page, target, conversation)? {
                Some(bytes) => Some(raw(spelled(&String::from_utf8_lossy(&bytes)))?),
                None => None,
            },
        };
        Ok(PageTold {
            conversation: conversation.id.clone(),
            reader: ReaderName::from(receipt.ticket.reader.clone()),
            turn: receipt.ticket.turn.0,
            model: target.name.clone(),
            wire: target.wire,
            binding: page.binding(),
            page: self.shown(&page)?,
            body,
            ticket: receipt.ticket.clone(),
            receipt,
        })
    }

    fn shown(&self, page: &Page) -> Result<PageShown, Problem> {
        // What a fragment says on a page doesn't depend on how it is counted.
        let fragments = Fragments::counted(self.fragments.iter().cloned(), &Tokenizer::Chars4)?;
        let messages = page.messages.iter().map(|message| MessageShown {
            role: message.role,
            seq: message.seq,
            author: message.author.clone(),
            fragment: fragment_of(message, &fragments),
            cost: message.cost,
            digest: message.digest,
            parts: message.parts.to_vec(),
        });
        let tools = page.tools.iter().flat_map(|tools| tools.list());
        let tools = tools.filter(|tool| tool.is_taken_by(self.target.wire)).map(|tool| tool.told(self.target.wire));
        Ok(PageShown {
            mode: page.mode,
            messages: messages.collect(),
            tools: tools.map(|tool| raw(tool.as_bytes().to_vec())).collect::<Result<_, _>>()?,
            has_format: page.format.is_some(),
            marks: page.marks.clone(),
            output: page.output,
        })
    }
}

/// The fragment that a message is, where it shows no entry.
fn fragment_of(message: &Message, fragments: &Fragments) -> Option<Text> {
    let [Part::Text { text }] = &*message.parts else { return None };
    let words = text.strip_prefix(LATE_SYSTEM).unwrap_or(text);
    let is_it = |part: &Part| matches!(part, Part::Text { text: own } if **own == **text || **own == *words);
    let found = fragments.list().iter().find(|it| message.seq.is_none() && is_it(&it.part));
    found.map(|it| it.fragment.id.clone())
}

/// Returns the body of a page, if there is anything to send.
pub(super) fn encoded(page: &Page, target: &Target, conversation: &Conversation) -> Result<Option<Vec<u8>>, Problem> {
    let wire = target.wire;
    let given =
        Beside::of_meta(&conversation.meta).asked().filter(|given| given.wire == wire && !given.extra.is_empty());
    match (page.mode, given) {
        (Mode::NothingNew, _) => Ok(None),
        // What the provider holds already is not seen here, so rules about pairs can't be checked.
        (Mode::Delta, _) => Ok(Some(wire.encode(page, target))),
        (Mode::Full, None) => sendable(body::checked(wire.encode(page, target), wire, || false)),
        (Mode::Full, Some(given)) => {
            let is_valid_without = || wire.validate(&wire.encode(page, target)).is_empty();
            sendable(body::checked(wire.encode_with(page, target, &given.extra), wire, is_valid_without))
        }
    }
}

/// Returns a body that breaks no rule. One that does is no defect here: tools, formats and entries are told by clients, who
/// may tell what no provider takes.
fn sendable(checked: Result<Vec<u8>, Failure>) -> Result<Option<Vec<u8>>, Problem> {
    checked.map(Some).map_err(|failure| match failure.code() {
        Some(Code::Defect) => Problem::of(Code::BadConversation, failure.parts().1)
            .hinting("correct what was given with this call or said before, or take another model"),
        _ => failure.into(),
    })
}

fn raw(bytes: Vec<u8>) -> Result<Box<RawValue>, Problem> {
    let defect = |what: String| Problem::of(Code::Defect, what);
    let text = String::from_utf8(bytes).map_err(|error| defect(error.to_string()))?;
    RawValue::from_string(text).map_err(|error| defect(error.to_string()))
}

fn spelled(text: &str) -> Vec<u8> {
    serde_json::Value::from(text).to_string().into_bytes()
}

/// Makes the page of the next call, and records that the call is open.
pub(super) async fn compile<S: Store>(asked: &Asked<S>) -> Result<Response, Problem> {
    let given: CallGiven = asked.body()?;
    let ((at, conversation), body_as) = (asked.conversation().await?, given.body_as.unwrap_or_default());
    let call = given.read(asked, &conversation)?;
    let compiled = asked.engine().compile(&at, &call).await?;
    let ticket = compiled.receipt.ticket.clone();
    let telling = Telling { conversation: &conversation, target: &call.target, fragments: &call.fragments, body_as };
    match telling.page(compiled) {
        Ok(told) => json(&told),
        Err(problem) => {
            // A call whose page nobody gets is not left open.
            asked.engine().abandon(&at, &ticket).await?;
            Err(problem)
        }
    }
}

/// Makes the page of the next call, and records nothing.
pub(super) async fn preview<S: Store>(asked: &Asked<S>) -> Result<Response, Problem> {
    json(&previewed(asked, asked.body()?).await?)
}

/// Returns the page of the next call, and records nothing.
pub(super) async fn previewed<S: Store>(asked: &Asked<S>, given: CallGiven) -> Result<PageTold, Problem> {
    let ((at, conversation), body_as) = (asked.conversation().await?, given.body_as.unwrap_or_default());
    let call = given.read(asked, &conversation)?;
    let compiled = asked.engine().preview(&at, &call).await?;
    Telling { conversation: &conversation, target: &call.target, fragments: &call.fragments, body_as }.page(compiled)
}

/// Records what came of a call.
pub(super) async fn acknowledge<S: Store>(asked: &Asked<S>) -> Result<Response, Problem> {
    let given: AcknowledgeGiven = asked.body()?;
    let key = asked.key()?;
    let (at, _) = asked.conversation().await?;
    let ticket = own_ticket(asked, given.ticket.clone())?;
    let answer = Answer { key, ..answered(asked, given)? };
    let done = asked.engine().acknowledge(&at, &ticket, answer).await?;
    let (first, last, is_repeated) = (done.first, done.last, done.is_repeated);
    json(&Acknowledged { conversation: at.conversation, turn: ticket.turn.0, first, last, is_repeated })
}

/// Reads what came of a call.
fn answered<S: Store>(asked: &Asked<S>, given: AcknowledgeGiven) -> Result<Answer, Problem> {
    let AcknowledgeGiven { reply, wire, model, binding, entries, reported, usage, session, .. } = given;
    let prices_of = SettingsGiven { model: model.as_deref(), wire, ..SettingsGiven::default() };
    let target = prices_of.settled(asked)?.target;
    let bound = |entry: Entry| match binding {
        Some(binding) => entry.bound_to(binding),
        None => entry,
    };
    let (entries, usage) = match (reply, entries) {
        (Some(_), Some(_)) => return Err(Problem::bad("either `reply` or `entries`, not both")),
        (Some(_), None) if wire.is_none() && model.is_none() => {
            return Err(Problem::bad("with `reply`, `model` or `wire` must say how it is to be read"));
        }
        (Some(reply), None) => {
            let read = target.wire.decode_reply(reply.get());
            let read = read.map_err(|error| Problem::bad(format!("reply: {error}")))?;
            (vec![read.entry], usage.or(read.usage))
        }
        (None, entries) => (said(entries, None, None)?, usage),
    };
    Ok(Answer {
        entries: entries.into_iter().map(bound).collect(),
        reported: reported.or(usage.map(|usage| usage.input)),
        used: usage.map(|usage| (usage, target.prices.usd(&usage))),
        session,
        ..Answer::default()
    })
}

/// Gives up a call.
pub(super) async fn abandon<S: Store>(asked: &Asked<S>) -> Result<Response, Problem> {
    let TicketGiven { ticket } = asked.body()?;
    let (at, _) = asked.conversation().await?;
    let ticket = own_ticket(asked, ticket)?;
    let was_open = asked.engine().abandon(&at, &ticket).await?;
    json(&Abandoned { conversation: at.conversation, turn: ticket.turn.0, was_open })
}

/// Returns a ticket if it is one of the reader that the path names.
fn own_ticket<S: Store>(asked: &Asked<S>, ticket: Ticket) -> Result<Ticket, Problem> {
    let reader = asked.reader()?;
    match *ticket.reader == *reader.as_str() {
        true => Ok(ticket),
        false => Err(Problem::bad(format!("the ticket is of reader {:?}", &*ticket.reader))),
    }
}
