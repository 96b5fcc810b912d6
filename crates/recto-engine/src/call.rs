//! A model call: what the host says of it, and what is needed to make its page again.

use crate::error::{Error, Kind};
use crate::session::Remembering;
use crate::store::{RECEIPT_BYTES_MAX, ReaderName};
use recto::digest::Digest;
use recto::entry::{RunId, Text};
use recto::expiry::ExpiryOverride;
use recto::format::ResponseFormat;
use recto::fragment::{Fragment, Fragments};
use recto::log::Counted;
use recto::note::Notes;
use recto::page::{Message, Mode, Page};
use recto::pays::Waiting;
use recto::receipt::{Fate, Receipt, Ticket};
use recto::request::{LastCall, Settled};
use recto::tool::Tools;
use recto::wire::Usage;
use recto::{Count, Entry, Log, Policy, Reader, Request, Role, Seq, Session, Target, Tokens};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

/// Longer names of runs are kept apart from receipts.
const RUN_BYTES_MAX: usize = 200;

/// Everything that a host says of a call: who reads, under which policy, which model, and what goes with it.
#[derive(Clone, Debug)]
pub struct Call {
    /// Who reads.
    pub reader: ReaderName,
    /// Which passes run. Passes of the host's own are no data: a page that was made with them can be made again only by
    /// whoever has them.
    pub policy: Policy,
    /// Which model reads.
    pub target: Target,
    /// The execution that is under way, if one is.
    pub run: Option<RunId>,
    /// Prompt pieces that go with this call.
    pub fragments: Vec<Fragment>,
    /// The tools offered: definitions as JSON text, in any wire's form.
    pub tools: Vec<Text>,
    /// The form that the answer must have, as JSON text.
    pub format: Option<Text>,
    /// What holds for this run instead of what was configured about expiry.
    pub expiry: Option<ExpiryOverride>,
    /// Where a client marked the end of what should be cached.
    pub marks: Vec<(Seq, Text)>,
    /// What is said now, if it isn't in the log; it is appended when the call is acknowledged.
    pub input: Option<Entry>,
    /// How many tokens stay free for the answer.
    pub reserve: Option<Tokens>,
    /// The provider that remembers, if one does; what it holds is kept in the store.
    pub session: Option<Remembering>,
}

impl Call {
    /// Returns a call with nothing optional in it.
    pub fn new(reader: impl Into<ReaderName>, policy: Policy, target: Target) -> Call {
        Call {
            reader: reader.into(),
            policy,
            target,
            run: None,
            fragments: Vec::new(),
            tools: Vec::new(),
            format: None,
            expiry: None,
            marks: Vec::new(),
            input: None,
            reserve: None,
            session: None,
        }
    }
}

/// A call, with what the store knows about it.
#[derive(Clone, Copy)]
pub(crate) struct Calling<'c> {
    pub(crate) call: &'c Call,
    /// What a provider that remembers already holds.
    pub(crate) session: Option<&'c Session>,
    pub(crate) before: &'c Before,
    /// What came of the wants of the conversation, where summaries are made.
    pub(crate) notes: Option<&'c Notes>,
}

/// What a call says beside its history, worked out once: for the calls after it, and for other conversations.
pub(crate) struct Beside {
    call: Call,
    counter: Text,
    fragments: Option<Fragments>,
    tools: Option<Tools>,
    format: Option<ResponseFormat>,
    settled: Settled,
    kept: Kept,
    /// All that `kept` refers to, if nothing of it is known from before.
    bundle: Option<(Digest, Text)>,
}

/// Where it is written down what a call says beside its history.
#[derive(Clone, Copy)]
struct Kept {
    policy: Digest,
    target: Digest,
    fragments: Option<Digest>,
    tools: Option<Digest>,
    bundle: Option<Digest>,
}

impl Kept {
    /// Writes it down, without what the call before has written down.
    fn of(call: &Call, like: Option<&Beside>) -> (Kept, Contents) {
        let same = |is_same: &dyn Fn(&Call) -> bool| like.filter(|like| is_same(&like.call)).map(|like| like.kept);
        let mut contents = Contents::new();
        let mut keep = |text: String| keep(&mut contents, text);
        let kept = Kept {
            policy: match same(&|other| other.policy == call.policy) {
                Some(kept) => kept.policy,
                None => keep(json(&call.policy)),
            },
            target: match same(&|other| other.target == call.target) {
                Some(kept) => kept.target,
                None => keep(json(&call.target)),
            },
            fragments: match same(&|other| other.fragments == call.fragments) {
                Some(kept) => kept.fragments,
                None if call.fragments.is_empty() => None,
                None => {
                    // One by one: most of them stay as they are from call to call.
                    let digests: Vec<Digest> = call.fragments.iter().map(|it| keep(json(it))).collect();
                    Some(keep(json(&digests)))
                }
            },
            tools: match same(&|other| other.tools == call.tools) {
                Some(kept) => kept.tools,
                None if call.tools.is_empty() => None,
                None => Some(keep(json(&call.tools))),
            },
            bundle: like.and_then(|like| like.kept.bundle),
        };
        (kept, contents)
    }
}

impl Beside {
    /// Works it out for a conversation that knows nothing of it yet: all of it is written down as one text.
    pub(crate) fn of(call: &Call, counter: &dyn Count) -> Result<Beside, Error> {
        let (mut kept, contents) = Kept::of(call, None);
        let texts: Vec<&Text> = contents.iter().map(|(_, text)| text).collect();
        let text: Text = json(&texts).into();
        let digest = Digest::of(text.as_bytes());
        kept.bundle = Some(digest);
        Beside::counted(call, counter, None, kept, Some((digest, text)))
    }

    /// Works out what differs from this in a later call, and what has to be written down for that.
    pub(crate) fn then(&self, call: &Call, counter: &dyn Count) -> Result<(Beside, Contents), Error> {
        let (kept, contents) = Kept::of(call, Some(self));
        Ok((Beside::counted(call, counter, Some(self), kept, None)?, contents))
    }

    fn counted(
        call: &Call,
        counter: &dyn Count,
        like: Option<&Beside>,
        kept: Kept,
        bundle: Option<(Digest, Text)>,
    ) -> Result<Beside, Error> {
        let like = like.filter(|like| *like.counter == *counter.name());
        let fragments = match like.filter(|like| like.call.fragments == call.fragments) {
            Some(like) => like.fragments.clone(),
            None => fragments(call, counter)?,
        };
        let tools = match like.filter(|like| like.call.tools == call.tools) {
            Some(like) => like.tools.clone(),
            None => tools(call, counter),
        };
        let settled = match like.filter(|like| like.call.policy == call.policy && like.call.target == call.target) {
            Some(like) => like.settled.clone(),
            None => Settled::of(&call.policy, &call.target),
        };
        let (format, counter) = (format(call)?, counter.name().into());
        let call = Call { marks: Vec::new(), input: None, ..call.clone() };
        Ok(Beside { call, counter, fragments, tools, format, settled, kept, bundle })
    }

    /// Returns whether it is what a call says.
    pub(crate) fn is_of(&self, call: &Call, counter: &dyn Count) -> bool {
        let Beside { call: own, .. } = self;
        own.policy == call.policy
            && own.target == call.target
            && own.fragments == call.fragments
            && own.tools == call.tools
            && own.format == call.format
            && *self.counter == *counter.name()
    }

    /// Returns what a conversation has to have that knows nothing of it yet.
    pub(crate) fn bundle(&self) -> Contents {
        self.bundle.iter().cloned().collect()
    }
}

fn fragments(call: &Call, counter: &dyn Count) -> Result<Option<Fragments>, Error> {
    Ok(match call.fragments.is_empty() {
        true => None,
        false => Some(Fragments::counted(call.fragments.clone(), counter)?),
    })
}

fn tools(call: &Call, counter: &dyn Count) -> Option<Tools> {
    (!call.tools.is_empty()).then(|| Tools::counted(call.tools.iter().cloned(), counter))
}

fn format(call: &Call) -> Result<Option<ResponseFormat>, Error> {
    Ok(call.format.as_ref().map_or(Ok(None), |format| ResponseFormat::parse(format))?)
}

fn keep(contents: &mut Contents, text: String) -> Digest {
    let digest = Digest::of(text.as_bytes());
    contents.push((digest, text.into()));
    digest
}

/// What a call says, counted once.
pub(crate) struct Material<'c> {
    calling: Calling<'c>,
    fragments: Option<Fragments>,
    tools: Option<Tools>,
    format: Option<ResponseFormat>,
    settled: Option<&'c Settled>,
    /// What is said now.
    pub(crate) input: Option<Counted>,
}

/// What came before a call.
#[derive(Clone, Debug, Default)]
pub(crate) struct Before {
    /// The page of the call before.
    pub(crate) page: Option<Page>,
    /// What its provider reported for it.
    pub(crate) reported: Option<Tokens>,
    /// The model that was called, and how long ago.
    pub(crate) last: Option<(Text, u64)>,
}

impl<'c> Material<'c> {
    /// Counts what goes with a call.
    pub(crate) fn of(calling: Calling<'c>, counter: &dyn Count, empty: &Log) -> Result<Material<'c>, Error> {
        let call = calling.call;
        let input = call.input.clone().map(|input| empty.draft(input)).transpose()?;
        let (fragments, tools, format) = (fragments(call, counter)?, tools(call, counter), format(call)?);
        Ok(Material { calling, fragments, tools, format, settled: None, input })
    }

    /// Takes what goes with a call from where it was counted before.
    pub(crate) fn known(calling: Calling<'c>, beside: &'c Beside, empty: &Log) -> Result<Material<'c>, Error> {
        let input = calling.call.input.clone().map(|input| empty.draft(input)).transpose()?;
        let Beside { fragments, tools, format, settled, .. } = beside;
        let (fragments, tools, format) = (fragments.clone(), tools.clone(), format.clone());
        Ok(Material { calling, fragments, tools, format, settled: Some(settled), input })
    }

    /// Returns the request that this call is.
    pub(crate) fn request<'a>(&'a self, log: &'a Log, reader: &'a Reader) -> Request<'a> {
        let Calling { call, session, before, notes } = self.calling;
        Request {
            run: call.run.as_ref(),
            fragments: self.fragments.as_ref(),
            tools: self.tools.as_ref(),
            expiry: call.expiry.as_ref(),
            notes,
            format: self.format.as_ref(),
            marks: &call.marks,
            input: self.input.as_ref(),
            reserve: call.reserve,
            session,
            previous: before.page.as_ref(),
            reported: before.reported,
            last_call: before.last.as_ref().map(|(model, idle)| LastCall { model, idle_seconds: *idle }),
            settled: self.settled,
            ..Request::new(log, reader, &call.policy, &call.target)
        }
    }
}

/// What a stored receipt refers to by digest.
pub(crate) type Contents = Vec<(Digest, Text)>;

/// A receipt as it is stored: what its page was made from. The whole one is made again on demand.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Stored {
    pub(crate) ticket: Ticket,
    policy: Digest,
    target: Digest,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    fragments: Option<Digest>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    tools: Option<Digest>,
    /// A list of texts; what of the others is not written down by itself stands there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) bundle: Option<Digest>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    format: Option<Digest>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    expiry: Option<Digest>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    marks: Option<Digest>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    session: Option<Digest>,
    /// Who remembers it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) provider: Option<Text>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    run: Option<RunId>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    run_apart: Option<Digest>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    reserve: Option<Tokens>,
    /// Where what was said with it stands now.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) input: Option<Seq>,
    /// How long the call before was ago.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    idle_seconds: Option<u64>,
    /// What the page before was counted at, its newest entry, and what its provider reported.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    seen: Option<(Tokens, Option<Seq>, Tokens)>,
    /// What came out, in numbers.
    pub(crate) totals: Totals,
    /// What the provider reported for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) reported: Option<Tokens>,
    /// What the provider says it has used, and what that costs in US dollars.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) used: Option<(Usage, f64)>,
}

/// What a page came to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Totals {
    /// What the input costs, in tokens.
    pub tokens: Tokens,
    /// How many of them the provider's cache was expected to hold.
    pub cached: Tokens,
    /// What it costs in US dollars.
    pub usd: f64,
    /// How many entries were shown as they were said.
    pub shown: u64,
    /// How many were shown otherwise.
    pub changed: u64,
    /// How many were not shown.
    pub not_shown: u64,
    /// What it would cost in US dollars with all that was said; unknown of calls that older versions recorded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usd_without: Option<f64>,
    /// What was saved up to it in US dollars, less what breaking the cache has cost.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usd_so_far: Option<f64>,
    /// What could be said shorter, and waits until that pays.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub waiting: Option<Waiting>,
}

impl Totals {
    fn of(receipt: &Receipt) -> Totals {
        let entries = |fate: Fate| receipt.fates.iter().filter(|row| row.fate == fate).map(|row| row.entries).sum();
        Totals {
            tokens: receipt.ledger.used(),
            cached: receipt.money.cached,
            usd: receipt.money.usd,
            shown: entries(Fate::Shown),
            changed: entries(Fate::Changed),
            not_shown: entries(Fate::NotShown),
            usd_without: Some(receipt.savings.usd_without),
            usd_so_far: Some(receipt.savings.usd_so_far),
            waiting: receipt.savings.waiting,
        }
    }
}

impl Stored {
    /// Writes down what a page was made from, and the contents that this refers to.
    pub(crate) fn of(calling: Calling<'_>, receipt: &Receipt) -> (Stored, Contents) {
        let (kept, mut contents) = Kept::of(calling.call, None);
        (Stored::kept(calling, receipt, kept, &mut contents), contents)
    }

    /// Writes down what a page was made from, where it is known what went beside it; adds to the contents what else this
    /// refers to.
    pub(crate) fn beside(calling: Calling<'_>, receipt: &Receipt, beside: &Beside, contents: &mut Contents) -> Stored {
        Stored::kept(calling, receipt, beside.kept, contents)
    }

    fn kept(calling: Calling<'_>, receipt: &Receipt, kept: Kept, contents: &mut Contents) -> Stored {
        let Calling { call, session, before, .. } = calling;
        let Kept { policy, target, fragments, tools, bundle } = kept;
        let mut keep = |text: String| keep(contents, text);
        Stored {
            ticket: receipt.ticket.clone(),
            policy,
            target,
            fragments,
            tools,
            bundle,
            format: call.format.as_ref().map(|format| keep(format.to_string())),
            expiry: call.expiry.as_ref().map(|expiry| keep(json(expiry))),
            marks: (!call.marks.is_empty()).then(|| keep(json(&call.marks))),
            session: session.map(|session| keep(json(session))),
            provider: call.session.as_ref().map(|it| it.provider.clone()),
            run_apart: call.run.as_ref().filter(|run| run.as_str().len() > RUN_BYTES_MAX).map(|run| keep(json(run))),
            run: call.run.clone().filter(|run| run.as_str().len() <= RUN_BYTES_MAX),
            reserve: call.reserve,
            input: None,
            idle_seconds: before.last.as_ref().map(|(_, idle)| *idle),
            seen: before.page.as_ref().zip(before.reported).map(|(page, reported)| seen(page, reported)),
            totals: Totals::of(receipt),
            reported: None,
            used: None,
        }
    }

    /// Returns the texts that stand together in one of these contents, by what identifies them.
    pub(crate) fn bundled(&self, contents: &Contents) -> Result<Contents, Error> {
        let Some(bundle) = self.bundle else { return Ok(Contents::new()) };
        let texts: Vec<Text> = read(contents, bundle)?;
        Ok(texts.into_iter().map(|text| (Digest::of(text.as_bytes()), text)).collect())
    }

    /// Returns the digests of what that refers to in turn: the fragments of a list.
    pub(crate) fn nested(&self, contents: &Contents) -> Result<Vec<Digest>, Error> {
        self.fragments.map_or(Ok(Vec::new()), |list| read(contents, list))
    }

    /// Returns the digests of what it refers to.
    pub(crate) fn digests(&self) -> Vec<Digest> {
        let Stored { bundle, fragments, tools, format, expiry, marks, session, run_apart, .. } = self;
        let some = [bundle, fragments, tools, format, expiry, marks, session, run_apart];
        some.into_iter().flatten().copied().chain([self.policy, self.target]).collect()
    }

    /// Returns the call that it was, without what was said with it and the session that it went on with.
    pub(crate) fn call(&self, contents: &Contents) -> Result<Call, Error> {
        Ok(Call {
            reader: ReaderName::from(self.ticket.reader.clone()),
            policy: read(contents, self.policy)?,
            target: read(contents, self.target)?,
            run: match self.run_apart {
                Some(run) => Some(read(contents, run)?),
                None => self.run.clone(),
            },
            fragments: self.nested(contents)?.into_iter().map(|it| read(contents, it)).collect::<Result<_, _>>()?,
            tools: self.tools.map_or(Ok(Vec::new()), |digest| read(contents, digest))?,
            format: self.format.map(|digest| find(contents, digest).cloned()).transpose()?,
            expiry: self.expiry.map(|digest| read(contents, digest)).transpose()?,
            marks: self.marks.map_or(Ok(Vec::new()), |digest| read(contents, digest))?,
            input: None,
            reserve: self.reserve,
            session: None,
        })
    }

    /// Returns what the provider held when its page was made.
    pub(crate) fn session(&self, contents: &Contents) -> Result<Option<Session>, Error> {
        self.session.map(|digest| read(contents, digest)).transpose()
    }

    /// Returns what of the call before a page depends on, where that call's own page isn't made again.
    pub(crate) fn before(&self) -> Before {
        let page = self.seen.map(|(counted, newest, _)| stand_in(counted, newest));
        Before { page, reported: self.seen.map(|(_, _, reported)| reported), last: None }
    }

    /// Returns how long the call before was ago.
    pub(crate) fn idle_seconds(&self) -> Option<u64> {
        self.idle_seconds
    }

    /// Returns the model that was called.
    pub(crate) fn target(&self, contents: &Contents) -> Result<Target, Error> {
        read(contents, self.target)
    }

    /// Writes it as text, of bounded length.
    pub(crate) fn text(&self) -> Result<String, Error> {
        let text = json(self);
        if text.len() > RECEIPT_BYTES_MAX {
            let what = format!("a receipt of {} bytes; at most {RECEIPT_BYTES_MAX} are taken", text.len());
            return Err(Kind::TooLarge { what }.into());
        }
        Ok(text)
    }

    /// Reads it back.
    pub(crate) fn parse(text: &str) -> Result<Stored, Error> {
        serde_json::from_str(text).map_err(|error| Kind::Corrupt { what: format!("a receipt: {error}") }.into())
    }
}

/// What identifies a ticket.
pub(crate) fn ticket_digest(ticket: &Ticket) -> Digest {
    Digest::of(json(ticket).as_bytes())
}

fn seen(page: &Page, reported: Tokens) -> (Tokens, Option<Seq>, Tokens) {
    let tools = page.tools.as_ref().map_or(Tokens(0), |tools| tools.cost);
    let counted = page.messages.iter().map(|message| message.cost).sum::<Tokens>() + tools;
    (counted, page.messages.iter().filter_map(|message| message.seq).max(), reported)
}

/// A page that counts the same as one that isn't made again.
fn stand_in(counted: Tokens, newest: Option<Seq>) -> Page {
    let message = Message {
        role: Role::User,
        author: None,
        parts: [].into(),
        seq: newest,
        cost: counted,
        digest: Digest::default(),
        extra: Default::default(),
    };
    Page { mode: Mode::Full, messages: vec![message], tools: None, format: None, marks: Vec::new(), output: Tokens(0) }
}

fn json(value: &impl Serialize) -> String {
    serde_json::to_string(value).expect("settings are plain data")
}

fn find(contents: &Contents, digest: Digest) -> Result<&Text, Error> {
    let found = contents.iter().find(|(known, _)| *known == digest).map(|(_, text)| text);
    found.ok_or_else(|| Kind::Corrupt { what: format!("content {digest} is missing") }.into())
}

fn read<T: DeserializeOwned>(contents: &Contents, digest: Digest) -> Result<T, Error> {
    let text = find(contents, digest)?;
    serde_json::from_str(text).map_err(|error| Kind::Corrupt { what: format!("content {digest}: {error}") }.into())
}
