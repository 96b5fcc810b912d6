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
use recto::receipt::{Fate, Receipt, Ticket};
use recto::request::LastCall;
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

/// What the call before has said beside its history: what is the same now need not be counted or written down again.
pub(crate) struct Beside {
    call: Call,
    fragments: Option<Fragments>,
    tools: Option<Tools>,
    format: Option<ResponseFormat>,
    stored: Stored,
}

/// What a call says, counted once.
pub(crate) struct Material<'c> {
    calling: Calling<'c>,
    fragments: Option<Fragments>,
    tools: Option<Tools>,
    format: Option<ResponseFormat>,
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
    pub(crate) fn of(
        calling: Calling<'c>,
        counter: &dyn Count,
        empty: &Log,
        like: Option<&Beside>,
    ) -> Result<Material<'c>, Error> {
        let call = calling.call;
        let fragments = match like.filter(|like| like.call.fragments == call.fragments) {
            Some(like) => like.fragments.clone(),
            None if call.fragments.is_empty() => None,
            None => Some(Fragments::counted(call.fragments.clone(), counter)?),
        };
        let tools = match like.filter(|like| like.call.tools == call.tools) {
            Some(like) => like.tools.clone(),
            None if call.tools.is_empty() => None,
            None => Some(Tools::counted(call.tools.iter().cloned(), counter)),
        };
        let format = match like.filter(|like| like.call.format == call.format) {
            Some(like) => like.format.clone(),
            None => call.format.as_ref().map_or(Ok(None), |format| ResponseFormat::parse(format))?,
        };
        let input = call.input.clone().map(|input| empty.draft(input)).transpose()?;
        Ok(Material { calling, fragments, tools, format, input })
    }

    /// Returns it for the next call to compare with.
    pub(crate) fn beside(self, stored: Stored) -> Beside {
        let Material { calling, fragments, tools, format, .. } = self;
        Beside { call: calling.call.clone(), fragments, tools, format, stored }
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
        }
    }
}

impl Stored {
    /// Writes down what a page was made from, and the contents that this refers to, without those that the call before
    /// has written down.
    pub(crate) fn of(calling: Calling<'_>, receipt: &Receipt, like: Option<&Beside>) -> (Stored, Contents) {
        let Calling { call, session, before, .. } = calling;
        let same = |is_same: &dyn Fn(&Call) -> bool| like.filter(|like| is_same(&like.call)).map(|like| &like.stored);
        let mut contents = Contents::new();
        let mut keep = |text: String| {
            let digest = Digest::of(text.as_bytes());
            contents.push((digest, text.into()));
            digest
        };
        let stored = Stored {
            ticket: receipt.ticket.clone(),
            policy: match same(&|other| other.policy == call.policy) {
                Some(stored) => stored.policy,
                None => keep(json(&call.policy)),
            },
            target: match same(&|other| other.target == call.target) {
                Some(stored) => stored.target,
                None => keep(json(&call.target)),
            },
            fragments: match same(&|other| other.fragments == call.fragments) {
                Some(stored) => stored.fragments,
                None if call.fragments.is_empty() => None,
                None => {
                    // One by one: most of them stay as they are from call to call.
                    let digests: Vec<Digest> = call.fragments.iter().map(|it| keep(json(it))).collect();
                    Some(keep(json(&digests)))
                }
            },
            tools: match same(&|other| other.tools == call.tools) {
                Some(stored) => stored.tools,
                None if call.tools.is_empty() => None,
                None => Some(keep(json(&call.tools))),
            },
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
        };
        (stored, contents)
    }

    /// Returns the digests of what that refers to in turn: the fragments of a list.
    pub(crate) fn nested(&self, contents: &Contents) -> Result<Vec<Digest>, Error> {
        self.fragments.map_or(Ok(Vec::new()), |list| read(contents, list))
    }

    /// Returns the digests of what it refers to.
    pub(crate) fn digests(&self) -> Vec<Digest> {
        let Stored { fragments, tools, format, expiry, marks, session, run_apart, .. } = self;
        let some = [fragments, tools, format, expiry, marks, session, run_apart];
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

    /// Returns the digest under which its policy is kept, and that under which its target is.
    pub(crate) fn target_digest(&self) -> Digest {
        self.target
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
