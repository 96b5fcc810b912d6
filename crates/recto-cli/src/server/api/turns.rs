//! Calls that were made: listed, made again, compared with the one before, and made as if they had been others.

use super::asked::{Asked, bytes, json, limited};
use super::pages::{BodyAs, PageShown, PageTold, Telling, encoded};
use super::problem::Problem;
use super::settings::{PolicyGiven, Settings, SettingsGiven};
use axum::http::{HeaderName, HeaderValue};
use axum::response::Response;
use recto::digest::Digest;
use recto::entry::{Millis, Text};
use recto::page::{Message, Page};
use recto::receipt::{FragmentRow, Receipt, Ticket};
use recto::wire::{Usage, Wire};
use recto::{Compiled, Role, Seq, Tokens};
use recto_engine::call::Totals;
use recto_engine::engine::{Again, Turned};
use recto_engine::{Call, ConversationId, ReaderName, Store};
use serde_json::value::RawValue;
use std::collections::HashMap;

/// How many calls one page holds.
const TURNS_USUAL: usize = 100;
const TURNS_MAX: usize = 1_000;
/// The header that says whether a page was made again byte for byte.
const AGREES: HeaderName = HeaderName::from_static("x-recto-agrees");

given! {
    /// Which calls.
    struct TurnsGiven {
        /// The first: 0 if it is left out.
        from: Option<u64>,
        /// At most so many: 100, up to 1000.
        limit: Option<u64>,
    }
}

told! {
    /// Calls that were acknowledged.
    struct TurnsTold {
        /// The conversation.
        conversation: ConversationId,
        /// Who read.
        reader: ReaderName,
        /// The calls, in order.
        calls: Vec<Turned>,
        /// Where to go on, if there are more.
        next: Option<u64>,
    }
}

given! {
    /// How a call is told.
    struct BodyGiven {
        /// How the body is told: not at all, if it is left out.
        body_as: Option<BodyAs>,
    }
}

told! {
    /// A call that was acknowledged, and its page made again.
    struct TurnTold {
        /// The conversation.
        conversation: ConversationId,
        /// Who read.
        reader: ReaderName,
        /// The number of the call.
        turn: u64,
        /// When it was acknowledged.
        at: Millis,
        /// Whether this is, byte for byte, the page that was made then.
        agrees: bool,
        /// The model that read.
        model: Text,
        /// The format of the body.
        wire: Wire,
        /// What the answer's reasoning is bound to.
        binding: Digest,
        /// What the model read.
        page: PageShown,
        /// The body of the request.
        body: Option<Box<RawValue>>,
        /// The explanation.
        receipt: Receipt,
        /// Its ticket.
        ticket: Ticket,
        /// What its page came to when it was made.
        totals: Totals,
        /// How many tokens of input the provider reported.
        reported: Option<Tokens>,
        /// What the provider says was used.
        used: Option<Usage>,
        /// What that costs in US dollars.
        usd_billed: Option<f64>,
        /// What differs from the page of the call before, if there was one.
        difference: Option<Difference>,
    }
}

told! {
    /// What differs between two pages.
    struct Difference {
        /// The tools.
        tools: Is,
        /// The fragments.
        fragments: Vec<FragmentDiffers>,
        /// The messages, in their order; those that are gone stand where they stood.
        messages: Vec<MessageDiffers>,
    }
}

words! {
    /// How something stands to what was before.
    enum Is {
        /// It is the same.
        #[default]
        Equal = "equal",
        /// It says something else.
        Changed = "changed",
        /// It was not there.
        New = "new",
        /// It is not there any more.
        Gone = "gone",
    }
}

told! {
    /// How a fragment stands to what was before.
    struct FragmentDiffers {
        /// Its name.
        id: Text,
        /// How it stands.
        is: Is,
    }
}

told! {
    /// How a message stands to what was before.
    struct MessageDiffers {
        /// How it stands.
        is: Is,
        /// The entry that it shows.
        seq: Option<Seq>,
        /// Who speaks.
        role: Role,
        /// Its place on this page.
        at: Option<usize>,
        /// Its place on the page before.
        before: Option<usize>,
        /// What it costs on this page.
        tokens: Option<Tokens>,
        /// What it cost on the page before.
        tokens_before: Option<Tokens>,
    }
}

given! {
    /// What a call would have been; what is left out is as it was.
    struct AsIfGiven {
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
        /// How the body is told.
        body_as: Option<BodyAs>,
    }
}

/// Lists calls.
pub(super) async fn list<S: Store>(asked: &Asked<S>) -> Result<Response, Problem> {
    let TurnsGiven { from, limit } = asked.query()?;
    let limit = limited(limit, TURNS_USUAL, TURNS_MAX)?;
    let ((at, _), reader) = (asked.conversation().await?, asked.reader()?);
    let mut calls = asked.engine().turns(&at, &reader, from.unwrap_or(0), limit + 1).await?;
    let next = calls.get(limit).map(|call| call.turn);
    calls.truncate(limit);
    json(&TurnsTold { conversation: at.conversation, reader, calls, next })
}

/// Makes a call's page again.
pub(super) async fn one<S: Store>(asked: &Asked<S>) -> Result<Response, Problem> {
    json(&told(asked, asked.query()?).await?)
}

/// Returns what is told of a call.
pub(super) async fn told<S: Store>(asked: &Asked<S>, given: BodyGiven) -> Result<TurnTold, Problem> {
    let (BodyGiven { body_as }, turn) = (given, asked.number("turn")?);
    let ((at, conversation), reader) = (asked.conversation().await?, asked.reader()?);
    let again = asked.engine().again(&at, &reader, turn).await?;
    let row = asked.engine().turns(&at, &reader, turn, 1).await?.into_iter().find(|it| it.turn == turn);
    let row = row.ok_or_else(|| Problem::not_found(format!("no call {turn}")))?;
    let Again { compiled, target, agrees, fragments, previous } = again;
    let difference = previous.as_ref().map(|previous| Difference::between(previous, &compiled));
    let body_as = body_as.unwrap_or(BodyAs::None);
    let telling = Telling { conversation: &conversation, target: &target, fragments: &fragments, body_as };
    let PageTold { conversation, reader, turn, model, wire, binding, page, body, receipt, ticket } =
        telling.page(compiled)?;
    let Turned { at, totals, reported, used, .. } = row;
    let (used, usd_billed) = used.unzip();
    Ok(TurnTold {
        conversation,
        reader,
        turn,
        at,
        agrees,
        model,
        wire,
        binding,
        page,
        body,
        receipt,
        ticket,
        totals,
        reported,
        used,
        usd_billed,
        difference,
    })
}

/// Returns the bytes of a call's request.
pub(super) async fn request<S: Store>(asked: &Asked<S>) -> Result<Response, Problem> {
    let turn = asked.number("turn")?;
    let ((at, conversation), reader) = (asked.conversation().await?, asked.reader()?);
    let Again { compiled, target, agrees, .. } = asked.engine().again(&at, &reader, turn).await?;
    let body = encoded(&compiled.page, &target, &conversation)?;
    let mut response = bytes(body.ok_or_else(|| Problem::not_found("nothing was sent with this call"))?);
    let agrees = HeaderValue::from_static(if agrees { "true" } else { "false" });
    response.headers_mut().insert(AGREES, agrees);
    Ok(response)
}

/// Makes a call's page as if it had been another.
pub(super) async fn preview<S: Store>(asked: &Asked<S>) -> Result<Response, Problem> {
    let (AsIfGiven { policy, model, wire, window, reserve, body_as }, turn) = (asked.body()?, asked.number("turn")?);
    let ((at, conversation), reader) = (asked.conversation().await?, asked.reader()?);
    let given = SettingsGiven { policy: policy.as_ref(), model: model.as_deref(), wire, window, reserve };
    let mut refused = None;
    let another = |call: Call| {
        let (policy, target, reserve) = (call.policy.clone(), call.target.clone(), call.reserve);
        match given.over(asked, Settings { policy, target, reserve }) {
            Ok(Settings { policy, target, reserve }) => Call { policy, target, reserve, ..call },
            Err(problem) => {
                refused = Some(problem);
                call
            }
        }
    };
    let made = asked.engine().as_if(&at, &reader, turn, another).await;
    if let Some(refused) = refused {
        return Err(refused);
    }
    let (call, compiled) = made?;
    let body_as = body_as.unwrap_or_default();
    let telling = Telling { conversation: &conversation, target: &call.target, fragments: &call.fragments, body_as };
    json(&telling.page(compiled)?)
}

impl Difference {
    fn between(before: &Compiled, now: &Compiled) -> Difference {
        let tools = |page: &Page| page.tools.as_ref().map(|tools| tools.digest);
        let tools = match (tools(&before.page), tools(&now.page)) {
            (one, other) if one == other => Is::Equal,
            (None, _) => Is::New,
            (_, None) => Is::Gone,
            _ => Is::Changed,
        };
        let fragments = fragments(&before.receipt.fragments, &now.receipt.fragments);
        Difference { tools, fragments, messages: messages(&before.page.messages, &now.page.messages) }
    }
}

fn fragments(before: &[FragmentRow], now: &[FragmentRow]) -> Vec<FragmentDiffers> {
    let find = |rows: &[FragmentRow], id: &Text| rows.iter().find(|row| row.id == *id).map(|row| row.fingerprint);
    let here = now.iter().map(|row| {
        let is = match find(before, &row.id) {
            None => Is::New,
            Some(known) if known == row.fingerprint => Is::Equal,
            Some(_) => Is::Changed,
        };
        FragmentDiffers { id: row.id.clone(), is }
    });
    let gone = before.iter().filter(|row| find(now, &row.id).is_none());
    here.chain(gone.map(|row| FragmentDiffers { id: row.id.clone(), is: Is::Gone })).collect()
}

/// What a message is known by on two pages: its entry and role, or what it says.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Known {
    Entry(Seq, Role),
    Said(Digest),
}

impl Known {
    fn of(message: &Message) -> Known {
        message.seq.map_or(Known::Said(message.digest), |seq| Known::Entry(seq, message.role))
    }
}

/// Pairs the messages of two pages, each at most once; both are in the order of the conversation.
fn messages(before: &[Message], now: &[Message]) -> Vec<MessageDiffers> {
    let mut places: HashMap<Known, Vec<usize>> = HashMap::new();
    for (at, message) in before.iter().enumerate().rev() {
        places.entry(Known::of(message)).or_default().push(at);
    }
    let pairs: Vec<Option<usize>> =
        now.iter().map(|message| places.get_mut(&Known::of(message)).and_then(Vec::pop)).collect();
    let mut is_paired = vec![false; before.len()];
    pairs.iter().flatten().for_each(|at| is_paired[*at] = true);
    let (mut rows, mut next) = (Vec::with_capacity(now.len()), 0);
    let gone = |at: usize| MessageDiffers {
        is: Is::Gone,
        seq: before[at].seq,
        role: before[at].role,
        at: None,
        before: Some(at),
        tokens: None,
        tokens_before: Some(before[at].cost),
    };
    for (at, (message, pair)) in now.iter().zip(&pairs).enumerate() {
        let upto = pair.map_or(next, |pair| pair.max(next));
        rows.extend((next..upto).filter(|at| !is_paired[*at]).map(gone));
        next = upto.max(pair.map_or(0, |pair| pair + 1));
        let is = match pair {
            None => Is::New,
            Some(pair) if before[*pair].digest == message.digest => Is::Equal,
            Some(_) => Is::Changed,
        };
        rows.push(MessageDiffers {
            is,
            seq: message.seq,
            role: message.role,
            at: Some(at),
            before: *pair,
            tokens: Some(message.cost),
            tokens_before: pair.map(|pair| before[pair].cost),
        });
    }
    rows.extend((next..before.len()).filter(|at| !is_paired[*at]).map(gone));
    rows
}

#[cfg(test)]
mod tests {
    use super::*;
    use recto::Part;
    use serde_json::Map;

    fn page(words: &[(Option<u64>, &str)]) -> Vec<Message> {
        let message = |(seq, text): &(Option<u64>, &str)| Message {
            role: Role::User,
            author: None,
            parts: [Part::text(*text)].into(),
            seq: seq.map(Seq),
            cost: Tokens(text.len() as u64),
            digest: Digest::of(text.as_bytes()),
            extra: Map::new(),
        };
        words.iter().map(message).collect()
    }

    #[test]
    fn messages_are_equal_changed_new_or_gone_and_each_is_told_once() {
        let before = page(&[(None, "rules"), (Some(0), "a"), (Some(1), "long"), (Some(2), "c"), (None, "todo")]);
        let now = page(&[(None, "rules"), (Some(0), "a"), (Some(2), "cc"), (Some(3), "d"), (None, "done")]);
        let told: Vec<_> = messages(&before, &now).iter().map(|it| (it.is, it.at, it.before)).collect();
        let expected = [
            (Is::Equal, Some(0), Some(0)),
            (Is::Equal, Some(1), Some(1)),
            (Is::Gone, None, Some(2)),
            (Is::Changed, Some(2), Some(3)),
            (Is::New, Some(3), None),
            (Is::New, Some(4), None),
            (Is::Gone, None, Some(4)),
        ];
        assert_eq!(told, expected);
        assert!(messages(&[], &[]).is_empty());
    }
}
