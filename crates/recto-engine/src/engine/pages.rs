//! Pages: planned and compiled from what is stored, acknowledged or abandoned, and made again as they were.

use super::wanted::{Book, Patience};
use super::{Append, At, Engine, TRIES_MAX, counter, now, too_busy};
use crate::body;
use crate::call::{Before, Call, Calling, Contents, Material, Recalled, Stored, Totals, ticket_digest};
use crate::error::{Error, Kind};
use crate::lens::{self, Lens};
use crate::session::Held;
use crate::store::{
    Acknowledge, Appended, Batch, Commit, Conversation, ConversationId, Expect, OpenCall, ReaderName, ReaderRow,
    Remains, Store, TurnRow, Turns, Upto,
};
use crate::window::Window;
use recto::digest::Digest;
use recto::edit::{Change, Edit};
use recto::entry::{Millis, Text};
use recto::expand::{Ask, Expansion, Refusal, expand};
use recto::fragment::Fragment;
use recto::note::Want;
use recto::page::Page;
use recto::receipt::Ticket;
use recto::wire::Usage;
use recto::{Compiled, Entry, Log, Reader, Request, Seq, Session, Target, Tokens, compile, plan, plan_or_compile};
use serde::Serialize;
use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex};

/// How often more is read for one page; each time twice as much.
const ROUNDS_MAX: usize = 64;
/// How much of an unbounded window is read at first.
const FIRST_TOKENS: Tokens = Tokens(128_000);
/// The most pages that are remembered, to tell what of them a provider's cache still holds.
const PAGES_MAX: usize = 256;

/// What came of a call.
#[derive(Clone, Debug, Default)]
pub struct Answer {
    /// What the model said, and what else has come of it.
    pub entries: Vec<Entry>,
    /// How many tokens of input its provider reported.
    pub reported: Option<Tokens>,
    /// What its provider says it has used, and what that costs in US dollars.
    pub used: Option<(Usage, f64)>,
    /// What identifies the log up to and with the last of these entries, to somebody who knows only what was said.
    pub links: Vec<Digest>,
    /// The caller's name for this acknowledgement: the same again is answered with the first result.
    pub key: Option<Text>,
    /// What the provider calls the session that holds it now, where it remembers.
    pub session: Option<Text>,
    /// How far the provider's own record of it is known, in the driver's words.
    pub mark: Option<Text>,
}

/// A page that was made again.
#[derive(Clone, Debug)]
pub struct Again {
    /// The page and its receipt.
    pub compiled: Compiled,
    /// The model that it was made for.
    pub target: Target,
    /// Whether it is, byte for byte, the page that was made then.
    pub agrees: bool,
    /// The prompt pieces that went with it.
    pub fragments: Vec<Fragment>,
    /// The page of the call before, if there was one.
    pub previous: Option<Compiled>,
}

/// An acknowledged call.
#[derive(Clone, Debug, Serialize)]
pub struct Turned {
    /// Its number.
    pub turn: u64,
    /// When it was acknowledged.
    pub at: Millis,
    /// What its page came to.
    pub totals: Totals,
    /// How many tokens of input its provider reported.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reported: Option<Tokens>,
    /// What its provider says it has used, and what that costs in US dollars.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub used: Option<(Usage, f64)>,
    /// The provider whose session it went on with, if one remembers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub provider: Option<Text>,
    /// Its ticket.
    pub ticket: Ticket,
}

/// How something that was left out is given back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Give {
    /// From the next page on it stands where it was said.
    InPlace,
    /// Its text is returned, and nothing changes.
    AsText,
}

/// The pages of last calls, by reader.
#[derive(Default)]
pub(super) struct Cache {
    pages: Mutex<HashMap<(At, ReaderName), (Ticket, Page)>>,
}

impl Cache {
    fn get(&self, at: &At, reader: &ReaderName, ticket: &Ticket) -> Option<Page> {
        let pages = self.pages.lock().ok()?;
        let (known, page) = pages.get(&(at.clone(), reader.clone()))?;
        (known == ticket).then(|| page.clone())
    }

    /// Remembers a page; where there are too many, any other one is forgotten, since it can be made again.
    fn put(&self, at: &At, reader: &ReaderName, ticket: &Ticket, page: &Page) {
        let Ok(mut pages) = self.pages.lock() else { return };
        let key = (at.clone(), reader.clone());
        if pages.len() >= PAGES_MAX && !pages.contains_key(&key) {
            let other = pages.keys().next().cloned();
            other.map(|other| pages.remove(&other));
        }
        pages.insert(key, (ticket.clone(), page.clone()));
    }

    /// Forgets the pages of a conversation.
    pub(super) fn forget(&self, conversation: &ConversationId) {
        if let Ok(mut pages) = self.pages.lock() {
            pages.retain(|(at, _), _| at.conversation != *conversation);
        }
    }
}

/// Something that was made of the next call of a reader, and everything that was read for it.
pub(super) struct Read<T> {
    pub(super) made: T,
    pub(super) log: Log,
    pub(super) reader: Reader,
    pub(super) row: ReaderRow,
    pub(super) before: Before,
    pub(super) book: Option<Arc<Book>>,
    pub(super) version: u64,
}

/// What a plan came to, and the page as if that were recorded.
pub(super) struct Planned {
    pub(super) compiled: Result<Compiled, recto::Error>,
    pub(super) edits: Vec<Edit>,
    /// Summaries that would help; also where there is no page without them.
    pub(super) wants: Vec<Want>,
}

/// Something that was made of a call, of which nothing was missing.
struct Whole<T> {
    made: T,
    log: Log,
    reader: Reader,
}

/// A page that was planned and compiled, and not recorded yet.
struct Made {
    planned: Planned,
    row: ReaderRow,
    before: Before,
    book: Option<Arc<Book>>,
    held: Option<Held>,
    recalled: Option<Recalled>,
}

impl<S: Store> Engine<S> {
    /// Plans, records what was decided, compiles the page, and records that its call is open. What doesn't fit is an
    /// error, and nothing is recorded; so is a session that another call goes on with.
    pub async fn compile(&self, at: &At, call: &Call) -> Result<Compiled, Error> {
        let call = &*self.call_at_rest(at, call).await?;
        let mut patience = Patience::default();
        for _ in 0..TRIES_MAX {
            let Made { planned, row, before, book, held, recalled } = self.make(at, call).await?;
            if let Some(book) = &book
                && self.hurry(at, call, book, &planned.wants, &mut patience).await
            {
                continue;
            }
            let Planned { compiled, edits, wants } = planned;
            let compiled = compiled?;
            let session = held.as_ref().map(|held| &held.session);
            let calling = Calling { call, session, before: &before, notes: None, recalled: recalled.as_ref() };
            let (stored, contents) = Stored::of(calling, &compiled.receipt);
            let input = call.input.as_ref().map(|input| serde_json::to_string(input).expect("an entry is plain data"));
            let ticket = ticket_digest(&compiled.receipt.ticket);
            let open = OpenCall { ticket, turn: row.turns, receipt: stored.text()?, input };
            let decisions = lens::written(&edits, call.policy.digest(), row);
            let (turns, open) = (Vec::new(), Some(open));
            let erase = self.expired(at, call, &edits).await?;
            let records = self.under_way(call, held.as_ref(), &compiled, ticket)?;
            let commit = Commit { expect: row, decisions, contents, turns, erase, open, records, at: now() };
            match self.store().commit(&at.tenant, &at.conversation, &call.reader, commit).await {
                Err(error) if error.is_conflict() => continue,
                done => done?,
            }
            self.inner.pages.put(at, &call.reader, &compiled.receipt.ticket, &compiled.page);
            self.inner.changed.notify_waiters();
            self.behind(at, call, book.as_deref(), &wants);
            return Ok(compiled);
        }
        Err(too_busy())
    }

    /// Plans and compiles the page as [`compile`](Engine::compile) would, and records nothing.
    pub async fn preview(&self, at: &At, call: &Call) -> Result<Compiled, Error> {
        Ok(self.make(at, &*self.call_at_rest(at, call).await?).await?.planned.compiled?)
    }

    /// Records that a call was answered: its turn, what was said with it, and what came of it, all at once.
    pub async fn acknowledge(&self, at: &At, ticket: &Ticket, answer: Answer) -> Result<Appended, Error> {
        let (reader, open_as) = (ReaderName::from(ticket.reader.clone()), ticket_digest(ticket));
        let counter = self.counter_of(at).await?;
        for _ in 0..TRIES_MAX {
            let open = self.store().open(&at.tenant, &at.conversation, &reader, open_as).await?;
            let (mut entries, mut expect, mut receipt, mut provider) = (Vec::new(), Expect::Any, String::new(), None);
            if let Some(open) = open {
                let mut stored = Stored::parse(&open.receipt)?;
                provider = stored.provider.clone();
                if open.input.is_some() || provider.is_some() {
                    // Where it will stand is told on the receipt and to the session, so nobody may come between.
                    let head = self.conversation(at).await?.tally.head();
                    expect = Expect::Head(head);
                    stored.input = open.input.is_some().then(|| head.map_or(Seq(0), Seq::next));
                    entries.extend(open.input.as_deref().map(said).transpose()?);
                }
                (stored.reported, stored.used) = (answer.reported, answer.used);
                receipt = stored.text()?;
            }
            entries.extend(answer.entries.iter().cloned());
            // What was said with the call is not part of what is acknowledged: a retry doesn't know it any more.
            let key = answer.key.clone().map(|key| (key, identity(ticket, &answer)));
            let links = answer.links.clone();
            let append = Append { entries, expect, key: None };
            let mut produced = Batch { key, links, ..self.batch(at, append, &counter).await? };
            let turn = self.turn_row(at, &reader, ticket, receipt).await?;
            if let Some(provider) = provider {
                produced.records.push(self.answered(at, &reader, &provider, open_as, &answer, &produced).await?);
            }
            let acknowledge = Acknowledge { ticket: open_as, unopened: None, turn, produced };
            match self.store().acknowledge(&at.tenant, &at.conversation, &reader, acknowledge).await {
                Err(error) if error.is_head_moved() => continue,
                done => {
                    self.inner.changed.notify_waiters();
                    return done;
                }
            }
        }
        Err(too_busy())
    }

    async fn turn_row(&self, at: &At, reader: &ReaderName, ticket: &Ticket, receipt: String) -> Result<TurnRow, Error> {
        let last = match ticket.turn.0.checked_sub(1) {
            Some(last) => self.turn(at, reader, last).await?,
            None => None,
        };
        // A log only grows, but a host may hold tickets of older heads; ages must not run backwards.
        let head = ticket.head.max(last.as_ref().and_then(|last| last.head));
        let spared = last.map_or(Tokens(0), |last| last.spared) + ticket.less;
        Ok(TurnRow { turn: ticket.turn.0, head, spared, receipt, at: now() })
    }

    /// Forgets a call that came to nothing; everything is as it was but for what was decided. A session that it went on
    /// with is free for others, and holds what it did. Returns whether it was open.
    pub async fn abandon(&self, at: &At, ticket: &Ticket) -> Result<bool, Error> {
        let reader = ReaderName::from(ticket.reader.clone());
        let ticket = ticket_digest(ticket);
        self.let_go(at, &reader, ticket).await?;
        self.store().abandon(&at.tenant, &at.conversation, &reader, ticket).await
    }

    /// Lists acknowledged calls, from one on.
    pub async fn turns(&self, at: &At, reader: &ReaderName, turn: u64, rows: usize) -> Result<Vec<Turned>, Error> {
        let which = Turns::Since { turn, rows };
        let rows = self.store().turns(&at.tenant, &at.conversation, reader, Upto::NOW, which).await?;
        let turned = |row: TurnRow| {
            let Stored { ticket, totals, reported, used, provider, .. } = Stored::parse(&row.receipt)?;
            Ok(Turned { turn: row.turn, at: row.at, totals, reported, used, provider, ticket })
        };
        rows.into_iter().map(turned).collect()
    }

    /// Makes the page of an acknowledged call again, from the log and the decisions as they were then.
    pub async fn again(&self, at: &At, reader: &ReaderName, turn: u64) -> Result<Again, Error> {
        let stored = self.stored(at, reader, turn).await?;
        let conversation = self.conversation(at).await?;
        let call = stored.call(&self.contents(at, &stored).await?)?;
        let mut window = self.window(at, &conversation, stored.ticket.head, &call).await?;
        let (before, previous) = self.before_call(at, &mut window, &stored).await?;
        let compiled = self.remake(at, &mut window, &stored, before).await?;
        let agrees = compiled.receipt.ticket.page == stored.ticket.page;
        Ok(Again { compiled, target: call.target, agrees, fragments: call.fragments, previous })
    }

    /// Plans and compiles the page of an acknowledged call as if the call had been another: from the log as it was then,
    /// and what was decided up to the call before. Nothing is recorded.
    pub async fn as_if(
        &self,
        at: &At,
        reader: &ReaderName,
        turn: u64,
        another: impl FnOnce(Call) -> Call,
    ) -> Result<(Call, Compiled), Error> {
        let stored = self.stored(at, reader, turn).await?;
        let conversation = self.conversation(at).await?;
        let mut call = another(stored.call(&self.contents(at, &stored).await?)?);
        call.input = self.input(at, &stored).await?;
        let head = stored.ticket.head;
        let mut window = self.window(at, &conversation, head, &call).await?;
        let (before, previous) = self.before_call(at, &mut window, &stored).await?;
        let ordinal = previous.map_or(0, |previous| previous.receipt.ticket.ordinal);
        let lens = self.lens(at, reader, Upto { turn, ordinal }).await?;
        let book = self.book(at, &call.policy).await?;
        let notes = book.as_deref().map(|book| &book.notes);
        let calling = Calling { call: &call, session: None, before: &before, notes, recalled: None };
        let compiled = until_whole(&mut window, head, lens, calling, planned).await?.made.compiled?;
        Ok((call, compiled))
    }

    async fn stored(&self, at: &At, reader: &ReaderName, turn: u64) -> Result<Stored, Error> {
        let Some(row) = self.turn(at, reader, turn).await? else {
            let turns = self.store().reader(&at.tenant, &at.conversation, reader).await?.turns;
            let what = format!("call {turn} of reader {:?}, which has made {turns}", reader.as_str());
            return Err(Kind::NotFound { what }.into());
        };
        Stored::parse(&row.receipt)
    }

    /// What came before an acknowledged call, and the page of the one before it, made again.
    async fn before_call(
        &self,
        at: &At,
        window: &mut Window<'_, S>,
        stored: &Stored,
    ) -> Result<(Before, Option<Compiled>), Error> {
        let (mut before, reader) = (stored.before(), ReaderName::from(stored.ticket.reader.clone()));
        let Some(earlier) = stored.ticket.turn.0.checked_sub(1) else { return Ok((before, None)) };
        let Some(row) = self.turn(at, &reader, earlier).await? else { return Ok((before, None)) };
        let earlier = Stored::parse(&row.receipt)?;
        let model = self.target(at, &earlier).await?.name;
        let previous = self.remake(at, window, &earlier, earlier.before()).await?;
        before.last = stored.idle_seconds().map(|idle| (model, idle));
        before.reported = earlier.reported;
        before.page = Some(previous.page.clone());
        Ok((before, Some(previous)))
    }

    /// What was said with an acknowledged call.
    async fn input(&self, at: &At, stored: &Stored) -> Result<Option<Entry>, Error> {
        let Some(seq) = stored.input else { return Ok(None) };
        let rows = self.store().rows(&at.tenant, &at.conversation, vec![seq]).await?;
        rows.first().map(body::entry).transpose()
    }

    /// Gives back what the next page of a reader would not show, or says why that can't be done.
    pub async fn expand(
        &self,
        at: &At,
        call: &Call,
        ask: &Ask,
        give: Give,
    ) -> Result<Result<Expansion, Refusal>, Error> {
        for _ in 0..TRIES_MAX {
            let held = self.continued(at, call).await?;
            let session = held.as_ref().map(|held| &held.session);
            let Read { made, row, .. } = self.reading(at, call, session, |request| asked(request, ask)).await?;
            let (planned, expansion) = made?;
            let expansion = match expansion {
                Ok(expansion) if give == Give::InPlace && !expansion.edits.is_empty() => expansion,
                done => return Ok(done),
            };
            let edits: Vec<Edit> = planned.into_iter().chain(expansion.edits.iter().cloned()).collect();
            match self.commit(at, &call.reader, row, lens::written(&edits, call.policy.digest(), row)).await {
                Err(error) if error.is_conflict() => continue,
                done => done?,
            }
            return Ok(Ok(expansion));
        }
        Err(too_busy())
    }

    async fn make(&self, at: &At, call: &Call) -> Result<Made, Error> {
        let held = self.continued(at, call).await?;
        let session = held.as_ref().map(|held| &held.session);
        let Read { made, log, reader, row, before, book, .. } = self.reading(at, call, session, planned).await?;
        let notes = book.as_deref().map(|book| &book.notes);
        let calling = Calling { call, session, before: &before, notes, recalled: None };
        let (planned, recalled) = self.recalling(at, calling, &log, &reader, made).await?;
        Ok(Made { planned, row, before, book, held, recalled })
    }

    /// Makes something of the next call of a reader.
    pub(super) async fn reading<T>(
        &self,
        at: &At,
        call: &Call,
        session: Option<&Session>,
        make: impl Fn(&Request<'_>) -> T,
    ) -> Result<Read<T>, Error> {
        let conversation = self.conversation(at).await?;
        let head = conversation.tally.head();
        let lens = self.lens(at, &call.reader, Upto::NOW).await?;
        let row = lens.row;
        let mut window = self.window(at, &conversation, head, call).await?;
        let before = self.before(at, &mut window, &call.reader, lens.last_call().await?).await?;
        let book = self.book(at, &call.policy).await?;
        let notes = book.as_deref().map(|book| &book.notes);
        let calling = Calling { call, session, before: &before, notes, recalled: None };
        let Whole { made, log, reader } = until_whole(&mut window, head, lens, calling, make).await?;
        Ok(Read { made, log, reader, row, before, book, version: conversation.version })
    }

    /// Compiles a page again from what its receipt says it was made from.
    async fn remake(
        &self,
        at: &At,
        window: &mut Window<'_, S>,
        stored: &Stored,
        before: Before,
    ) -> Result<Compiled, Error> {
        let contents = self.contents(at, stored).await?;
        let (mut call, session) = (stored.call(&contents)?, stored.session(&contents)?);
        call.input = self.input(at, stored).await?;
        let Ticket { head, turn, ordinal, .. } = stored.ticket;
        let lens = self.lens(at, &call.reader, Upto { turn: turn.0, ordinal }).await?;
        let recalled = self.recollected(at, stored.picks(&contents)?, &call.policy.redact).await?;
        let session = session.as_ref();
        let calling = Calling { call: &call, session, before: &before, notes: None, recalled: recalled.as_ref() };
        Ok(until_whole(window, head, lens, calling, compile).await?.made?)
    }

    async fn window<'a>(
        &'a self,
        at: &'a At,
        conversation: &'a Conversation,
        head: Option<Seq>,
        call: &Call,
    ) -> Result<Window<'a, S>, Error> {
        let tokens = call.target.window.unwrap_or(FIRST_TOKENS);
        let screen = self.screen(&at.tenant, &call.policy.redact).await?;
        let seen = (screen, self.remembered(at).await?.secrets);
        Window::open(self.store(), &at.tenant, conversation, head, counter(conversation)?, seen, tokens).await
    }

    /// What came before the next call of a reader.
    async fn before(
        &self,
        at: &At,
        window: &mut Window<'_, S>,
        reader: &ReaderName,
        last: Option<TurnRow>,
    ) -> Result<Before, Error> {
        let Some(last) = last else { return Ok(Before::default()) };
        let stored = Stored::parse(&last.receipt)?;
        let model = self.target(at, &stored).await?.name;
        let idle = now().0.saturating_sub(last.at.0).max(0) as u64 / 1_000;
        let page = match self.inner.pages.get(at, reader, &stored.ticket) {
            Some(page) => page,
            None => self.remake(at, window, &stored, stored.before()).await?.page,
        };
        Ok(Before { page: Some(page), reported: stored.reported, last: Some((model, idle)) })
    }

    /// Everything that a stored receipt refers to.
    pub(super) async fn contents(&self, at: &At, stored: &Stored) -> Result<Contents, Error> {
        let (tenant, id) = (&at.tenant, &at.conversation);
        let mut contents = self.store().contents(tenant, id, stored.digests()).await?;
        contents.extend(stored.bundled(&contents)?);
        let mut nested = stored.nested(&contents)?;
        nested.retain(|digest| contents.iter().all(|(known, _)| known != digest));
        if !nested.is_empty() {
            contents.extend(self.store().contents(tenant, id, nested).await?);
        }
        Ok(contents)
    }

    async fn target(&self, at: &At, stored: &Stored) -> Result<Target, Error> {
        stored.target(&self.contents(at, stored).await?)
    }

    async fn turn(&self, at: &At, reader: &ReaderName, turn: u64) -> Result<Option<TurnRow>, Error> {
        let rows = self.store().turns(&at.tenant, &at.conversation, reader, Upto::NOW, Turns::One(turn)).await?;
        Ok(rows.into_iter().next())
    }

    /// Where a call says that originals are not kept: what is left of the entries that expire with these edits. Entries
    /// that another conversation shares are left alone.
    pub(super) async fn expired(&self, at: &At, call: &Call, edits: &[Edit]) -> Result<Vec<Remains>, Error> {
        if call.expiry.as_ref().is_none_or(|expiry| expiry.keep_originals) {
            return Ok(Vec::new());
        }
        let mut parts: BTreeMap<Seq, usize> = BTreeMap::new();
        for edit in edits.iter().filter(|edit| &*edit.by == "expire") {
            match &edit.change {
                Change::Omit(at) | Change::Replace { at, .. } => *parts.entry(at.seq).or_default() += 1,
                Change::Hide(span) if span.first == span.last => *parts.entry(span.first).or_default() = usize::MAX,
                _ => {}
            }
        }
        let shared = self.shared_upto(at).await?;
        let seqs: Vec<Seq> = parts.keys().copied().filter(|seq| Some(*seq) > shared).collect();
        let counter = self.counter_of(at).await?;
        let rows = self.store().rows(&at.tenant, &at.conversation, seqs).await?;
        let mut remains = Vec::new();
        for row in rows.iter().filter(|row| !row.is_erased) {
            if parts[&row.seq] >= body::entry(row)?.parts.len() {
                remains.push(body::remains(row, &counter)?);
            }
        }
        Ok(remains)
    }

    /// The last entry that another conversation has as well.
    async fn shared_upto(&self, at: &At) -> Result<Option<Seq>, Error> {
        let upto = |conversation: Conversation| conversation.from.and_then(|from| from.upto);
        let mut shared = upto(self.conversation(at).await?);
        for fork in self.store().forks(&at.tenant, &at.conversation).await? {
            shared = shared.max(upto(self.store().conversation(&at.tenant, &fork).await?));
        }
        Ok(shared)
    }
}

/// Makes something of a call, as of when `head` was the newest entry, reading more until nothing is missing.
async fn until_whole<S: Store, T>(
    window: &mut Window<'_, S>,
    head: Option<Seq>,
    mut lens: Lens<'_, S>,
    calling: Calling<'_>,
    make: impl Fn(&Request<'_>) -> T,
) -> Result<Whole<T>, Error> {
    window.foresee(lens.kept_below()).await?;
    let mut material = None;
    for _ in 0..ROUNDS_MAX {
        let (log, reader) = (window.log(head), lens.reader());
        if material.is_none() && log.missing().is_empty() {
            material = Some(Material::of(calling, &log)?);
        }
        let made = material.as_ref().map(|material| make(&material.request(&log, &reader)));
        let (missing, unread) = (log.missing(), reader.missing());
        if let (Some(made), true, true) = (made, missing.is_empty(), unread.is_empty()) {
            return Ok(Whole { made, log, reader });
        }
        window.fetch(&missing).await?;
        lens.fetch(&unread).await?;
    }
    Err(Kind::Defect { what: format!("a page wants more after {ROUNDS_MAX} readings") }.into())
}

/// Plans, and compiles with what was planned as if it were recorded.
pub(super) fn planned(request: &Request<'_>) -> Planned {
    let (plan, compiled) = match plan_or_compile(request) {
        Ok(made) => made,
        Err(why) => return Planned { compiled: Err(why), edits: Vec::new(), wants: Vec::new() },
    };
    let (edits, wants) = (plan.edits.clone(), plan.wants.clone());
    if let Some(compiled) = compiled {
        return Planned { compiled: Ok(compiled), edits: Vec::new(), wants };
    }
    let mut reader: Reader = request.reader.clone();
    reader.commit(edits.iter().cloned(), request.policy.digest());
    let compiled = compile(&Request { reader: &reader, ..*request }).map(|compiled| compiled.told(plan));
    Planned { compiled, edits, wants }
}

/// What is asked for, as it would be left out of the next page; and what is planned for that.
fn asked(request: &Request<'_>, ask: &Ask) -> Result<(Vec<Edit>, Result<Expansion, Refusal>), recto::Error> {
    let edits = plan(request)?.edits;
    let mut reader: Reader = request.reader.clone();
    reader.commit(edits.iter().cloned(), request.policy.digest());
    let expansion = expand(&Request { reader: &reader, ..*request }, ask);
    Ok((edits, expansion))
}

/// What identifies an acknowledgement.
fn identity(ticket: &Ticket, answer: &Answer) -> Digest {
    let hashes = answer.entries.iter().map(|entry| body::hash_of(entry).to_string());
    let parts: String = std::iter::once(ticket_digest(ticket).to_string()).chain(hashes).collect();
    Digest::of(parts.as_bytes())
}

fn said(input: &str) -> Result<Entry, Error> {
    serde_json::from_str(input).map_err(|error| Kind::Corrupt { what: format!("what was said: {error}") }.into())
}
