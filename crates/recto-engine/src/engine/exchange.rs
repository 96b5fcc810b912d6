//! Calls of clients that keep their own history and send it each time: what is new is appended, the page is made, and
//! the answer is recorded.
//!
//! Such calls come one after the other, each a little longer than the one before. So what was read for a call is kept
//! warm for the next: its log, its reader, its page. Nothing goes by what is warm without asking: every write says which
//! version of the conversation it goes by, and is refused if somebody else has written since. Then all is read again.

use super::pages::{Answer, Planned, Read, planned};
use super::wanted::Book;
use super::warm::{WARM_CALLS_MAX, Warm};
use super::{At, Engine, Opening, TRIES_MAX, now, too_busy};
use crate::call::{Call, Calling, Contents, Material, Stored, ticket_digest};
use crate::error::Error;
use crate::lens;
use crate::store::{
    Acknowledge, Appended, Batch, Commit, ConversationId, Expect, ForkPoint, Link, NewConversation, NewRow, OpenCall,
    ReaderName, Record, Store, Tenant, TurnRow, Unopened,
};
use recto::digest::Digest;
use recto::edit::{Change, Edit};
use recto::note::Want;
use recto::receipt::Ticket;
use recto::redact::{Screen, Secrets};
use recto::{Compiled, Entry, Seq};
use std::sync::Arc;

/// What a client says now, and where it goes.
#[derive(Clone, Debug)]
pub struct Saying {
    /// What is new.
    pub entries: Vec<Entry>,
    /// What it goes behind.
    pub behind: Behind,
    /// What identifies the log up to and with the last of these entries, to somebody who knows only what was said.
    pub links: Vec<Digest>,
}

impl Saying {
    /// What is written down of it.
    fn batch(&self, rows: Vec<NewRow>, create: Option<Box<NewConversation>>, told: Option<Record>) -> Batch {
        let expect = match &self.behind {
            Behind::Nothing(_) => None,
            Behind::Head(head) => *head,
            Behind::Fork { upto, .. } => *upto,
        };
        let (links, records) = (self.links.clone(), told.into_iter().collect());
        Batch { links, create, records, ..Batch::new(Expect::Head(expect), rows, now()) }
    }
}

/// Where something that is said goes.
#[derive(Clone, Debug)]
pub enum Behind {
    /// It begins a conversation.
    Nothing(Opening),
    /// It goes behind the newest entry, which must be this one.
    Head(Option<Seq>),
    /// It goes behind an entry of another conversation, which goes its own way from there.
    Fork {
        /// The other conversation.
        of: ConversationId,
        /// The last entry that both have.
        upto: Option<Seq>,
    },
}

/// A call that was begun: what was said is on disk, and so is what was decided for its page.
pub struct Begun {
    /// The conversation.
    pub at: At,
    /// The page and its receipt.
    pub compiled: Compiled,
    /// Whether the page says something otherwise than it was said, because that was decided.
    pub is_reduced: bool,
    /// The newest entry.
    pub head: Option<Seq>,
    warm: Box<Warm>,
    stored: Stored,
    contents: Contents,
    is_open: bool,
}

impl Begun {
    fn of(at: &At, paged: Paged, is_open: bool) -> Box<Begun> {
        let Paged { compiled, stored, contents, warm, .. } = paged;
        // What came back is no decision, but it makes the page say something else all the same.
        let is_recalled = compiled.receipt.fragments.iter().any(|row| *row.id == *recto::recall::FRAGMENT);
        let is_reduced =
            is_recalled || warm.reader.decisions().iter().any(|it| it.reverted.is_none() && reduces(&it.edit.change));
        let head = compiled.receipt.ticket.head;
        Box::new(Begun { at: at.clone(), compiled, is_reduced, head, warm, stored, contents, is_open })
    }

    /// Returns what stands between its log and its page.
    pub fn screen(&self) -> &Screen {
        self.warm.log.screen()
    }
}

/// What came of beginning a call.
pub enum Beginning {
    /// Its page was made.
    Made(Box<Begun>),
    /// What was said is on disk, but no page can be made of it for this call.
    Unmade {
        /// The newest entry.
        head: Option<Seq>,
        /// Why not.
        why: Error,
    },
}

/// Where an answer has gone.
#[derive(Clone, Debug)]
pub struct Finished {
    /// The conversation: the one that was begun, or a fork of it, if somebody else has carried that one on meanwhile.
    pub at: At,
    /// Where it stands.
    pub appended: Appended,
    /// Whether it is a fork.
    pub is_fork: bool,
}

/// A page that was made, and what it was made from.
struct Paged {
    compiled: Compiled,
    edits: Vec<Edit>,
    stored: Stored,
    contents: Contents,
    wants: Vec<Want>,
    warm: Box<Warm>,
}

/// A page that can't be made, at least not without summaries.
struct Unmade {
    why: recto::Error,
    wants: Vec<Want>,
    book: Option<Arc<Book>>,
}

impl<S: Store> Engine<S> {
    /// Finds places of logs by what identifies everything up to them.
    pub async fn linked(&self, tenant: &Tenant, prefixes: Vec<Digest>) -> Result<Vec<Link>, Error> {
        self.store().linked(tenant, prefixes).await
    }

    /// Appends what a client says, plans, records what was decided, and compiles the page. A conversation that doesn't
    /// end with the entry that it is to go behind is an error, and nothing is written.
    ///
    /// What few calls need is boxed: a future is as large as the largest thing that it may wait for, and is moved whole.
    pub async fn begin(&self, at: &At, saying: Saying, call: &Call) -> Result<Beginning, Error> {
        let resting;
        let call = match self.rests() {
            true => {
                resting = Box::new(Box::pin(self.call_at_rest(at, call)).await?.into_owned());
                &*resting
            }
            false => call,
        };
        let known = match &saying.behind {
            Behind::Nothing(opening) => {
                let screen = self.screen(&at.tenant, &call.policy.redact).await?;
                Some(Box::new(Warm::new(opening, call, screen)))
            }
            Behind::Head(head) => {
                let warm = self.inner.warmth.take(at, &call.reader).filter(|warm| warm.log.head() == *head);
                // What another policy shows is read again.
                warm.filter(|warm| *warm.log.screen().redact() == call.policy.redact)
            }
            Behind::Fork { .. } => None,
        };
        let (head, mut known) = self.say(at, saying, known).await?;
        let mut patience = None;
        for _ in 0..TRIES_MAX {
            let paged = self.page(at, call, known.take()).await?;
            let (wants, book) = match &paged {
                Ok(paged) => (&paged.wants, paged.warm.book.clone()),
                Err(unmade) => (&unmade.wants, unmade.book.clone()),
            };
            if let Some(book) = &book
                && Box::pin(self.hurry(at, call, book, wants, patience.get_or_insert_default())).await
            {
                continue;
            }
            let mut paged = match paged {
                Ok(paged) => paged,
                Err(Unmade { why, .. }) => return Ok(Beginning::Unmade { head, why: why.into() }),
            };
            let wants = std::mem::take(&mut paged.wants);
            let is_open = !paged.edits.is_empty();
            if is_open {
                match Box::pin(self.decide_for(at, call, &mut paged)).await {
                    Err(error) if error.is_conflict() => continue,
                    done => done?,
                }
            }
            self.behind(at, call, book.as_deref(), &wants);
            return Ok(Beginning::Made(Begun::of(at, *paged, is_open)));
        }
        Err(too_busy())
    }

    /// Appends something that is said without a call, and returns the newest entry.
    pub async fn add(&self, at: &At, saying: Saying) -> Result<Option<Seq>, Error> {
        Ok(self.say(at, saying, None).await?.0)
    }

    /// Appends what is said, and returns the newest entry, and what is known now.
    async fn say(
        &self,
        at: &At,
        saying: Saying,
        known: Option<Box<Warm>>,
    ) -> Result<(Option<Seq>, Option<Box<Warm>>), Error> {
        let create = match &saying.behind {
            Behind::Head(_) => None,
            Behind::Nothing(opening) => Some(Box::new(self.new_conversation(at, opening).await?)),
            Behind::Fork { of, upto } => Some(Box::pin(self.forked(at, of, *upto)).await?),
        };
        let Some(mut warm) = known else { return Ok((Box::pin(self.say_unknown(at, &saying, create)).await?, None)) };
        let entries = match self.rests() {
            true => Box::pin(self.resting(at, &mut warm, saying.entries.clone())).await?,
            false => saying.entries.clone(),
        };
        let (rows, told) = warm.append(entries)?;
        let version = create.is_none().then_some(warm.version);
        let batch = Batch { version, ..saying.batch(rows, create.clone(), told) };
        match self.store().append(&at.tenant, &at.conversation, batch).await {
            Ok(appended) => {
                warm.version += 1;
                self.inner.changed.notify_waiters();
                Ok((appended.last, Some(warm)))
            }
            // Somebody else has written: all is read again.
            Err(error) if error.is_conflict() && version.is_some() => {
                Ok((Box::pin(self.say_unknown(at, &saying, create)).await?, None))
            }
            Err(error) => Err(error),
        }
    }

    /// Appends what is said where nothing is known of its conversation, and returns the newest entry.
    async fn say_unknown(
        &self,
        at: &At,
        saying: &Saying,
        create: Option<Box<NewConversation>>,
    ) -> Result<Option<Seq>, Error> {
        let counter = match &create {
            Some(new) => super::counter_named(&new.tokenizer)?,
            None => self.counter_of(at).await?,
        };
        let entries = saying.entries.clone();
        let (rows, told) = match &saying.behind {
            Behind::Head(_) => (self.written(at, entries, &counter).await?, None),
            // What is made with it remembers from its first entry on.
            Behind::Nothing(_) => self.written_first(&at.tenant, entries, &counter, Secrets::default()).await?,
            Behind::Fork { of, .. } => {
                let parent = At { conversation: of.clone(), ..at.clone() };
                let told = self.remembered(&parent).await?.secrets;
                self.written_first(&at.tenant, entries, &counter, told).await?
            }
        };
        let batch = saying.batch(rows, create, told);
        let appended = self.store().append(&at.tenant, &at.conversation, batch).await?;
        self.inner.changed.notify_waiters();
        Ok(appended.last)
    }

    /// Entries as they are written down behind what is warm, where something is not even written down.
    async fn resting(&self, at: &At, warm: &mut Warm, entries: Vec<Entry>) -> Result<Vec<Entry>, Error> {
        let mut told = warm.log.secrets().clone();
        let entries = self.at_rest(&at.tenant, entries, &mut told).await?;
        warm.log = warm.log.clone().knowing(told);
        Ok(entries)
    }

    /// The conversation that goes its own way from another.
    async fn forked(&self, at: &At, of: &ConversationId, upto: Option<Seq>) -> Result<Box<NewConversation>, Error> {
        let parent = self.conversation(&At { conversation: of.clone(), ..at.clone() }).await?;
        let (id, from) = (at.conversation.clone(), Some(ForkPoint { conversation: of.clone(), upto }));
        let crate::Conversation { tokenizer, title, meta, .. } = parent;
        Ok(Box::new(NewConversation { id, tokenizer, title, meta, at: now(), from }))
    }

    /// Makes the page: of what is known, if that is enough, else of what is read.
    async fn page(&self, at: &At, call: &Call, known: Option<Box<Warm>>) -> Result<Result<Box<Paged>, Unmade>, Error> {
        if let Some(warm) = known
            && let Some(paged) = self.page_known(at, call, warm).await?
        {
            return Ok(paged);
        }
        Box::pin(self.page_read(at, call)).await
    }

    /// Makes the page of what is known; nothing, if that is not enough.
    async fn page_known(
        &self,
        at: &At,
        call: &Call,
        mut warm: Box<Warm>,
    ) -> Result<Option<Result<Box<Paged>, Unmade>>, Error> {
        if let Some((_, idle)) = &mut warm.before.last {
            *idle = now().0.saturating_sub(warm.at.0).max(0) as u64 / 1_000;
        }
        if warm.book.is_none() && self.makes_notes(&call.policy) {
            // Another policy may want what the one before did not.
            warm.book = Box::pin(self.book(at, &call.policy)).await?;
        }
        let notes = warm.book.as_deref().map(|book| &book.notes);
        let calling = Calling { call, session: None, before: &warm.before, notes, recalled: None };
        let (beside, mut contents) = self.inner.warmth.beside(call, &warm.log, warm.beside.as_ref())?;
        let mut made = planned(&Material::known(calling, &beside, &warm.log)?.request(&warm.log, &warm.reader));
        if !warm.log.missing().is_empty() || !warm.reader.missing().is_empty() {
            return Ok(None);
        }
        let mut recalled = None;
        if call.policy.recall.is_some() {
            (made, recalled) = Box::pin(self.recalling(at, calling, &warm.log, &warm.reader, made)).await?;
        }
        let Planned { compiled, edits, wants } = made;
        let compiled = match compiled {
            Ok(compiled) => compiled,
            Err(why) => return Ok(Some(Err(Unmade { why, wants, book: warm.book }))),
        };
        let calling = Calling { recalled: recalled.as_ref(), ..calling };
        let stored = Stored::beside(calling, &compiled.receipt, &beside, &mut contents);
        warm.beside = Some(beside);
        Ok(Some(Ok(Box::new(Paged { compiled, edits, stored, contents, wants, warm }))))
    }

    /// Makes the page of what is read.
    async fn page_read(&self, at: &At, call: &Call) -> Result<Result<Box<Paged>, Unmade>, Error> {
        let Read { made, log, reader, row, before, book, version } = self.reading(at, call, None, planned).await?;
        let notes = book.as_deref().map(|book| &book.notes);
        let calling = Calling { call, session: None, before: &before, notes, recalled: None };
        let (made, recalled) = self.recalling(at, calling, &log, &reader, made).await?;
        let Planned { compiled, edits, wants } = made;
        let compiled = match compiled {
            Ok(compiled) => compiled,
            Err(why) => return Ok(Err(Unmade { why, wants, book })),
        };
        let calling = Calling { recalled: recalled.as_ref(), ..calling };
        let (beside, mut contents) = self.inner.warmth.beside(call, &log, None)?;
        let stored = Stored::beside(calling, &compiled.receipt, &beside, &mut contents);
        let beside = Some(beside);
        let told = self.remembered(at).await?;
        let log = log.knowing(told.secrets.clone());
        let warm = Warm { version, log, told, reader, row, before, at: now(), beside, book, calls: 0, tokens: 0 };
        Ok(Ok(Box::new(Paged { compiled, edits, stored, contents, wants, warm: Box::new(warm) })))
    }

    /// Records what was decided for a page, and that its call is open. Where nothing was decided, the call is recorded when
    /// it is answered.
    async fn decide_for(&self, at: &At, call: &Call, paged: &mut Paged) -> Result<(), Error> {
        let Paged { compiled, edits, stored, contents, warm, .. } = paged;
        let ticket = ticket_digest(&compiled.receipt.ticket);
        let open = OpenCall { ticket, turn: warm.row.turns, receipt: stored.text()?, input: None };
        let policy = call.policy.digest();
        let erase = self.expired(at, call, edits).await?;
        if !erase.is_empty() {
            // The log that is warm still has these words.
            warm.calls = WARM_CALLS_MAX;
        }
        let commit = Commit {
            expect: warm.row,
            decisions: lens::written(edits, policy, warm.row),
            contents: std::mem::take(contents),
            turns: Vec::new(),
            erase,
            open: Some(open),
            records: Vec::new(),
            at: now(),
        };
        self.store().commit(&at.tenant, &at.conversation, &call.reader, commit).await?;
        warm.version += 1;
        warm.row.ordinal += edits.len() as u64;
        warm.reader.commit(std::mem::take(edits), policy);
        self.inner.changed.notify_waiters();
        Ok(())
    }

    /// Records the answer to a call that was begun. If somebody else has carried the conversation on meanwhile, the
    /// answer goes to a fork of this name, so that nothing is mixed and nothing lost.
    pub async fn finish(&self, begun: Box<Begun>, answer: Answer, fork: ConversationId) -> Result<Finished, Error> {
        let Begun { at, compiled, head, mut warm, mut stored, contents, is_open, .. } = *begun;
        let Ticket { reader, turn, less, .. } = compiled.receipt.ticket.clone();
        let reader = ReaderName::from(reader);
        (stored.reported, stored.used) = (answer.reported, answer.used);
        let entries = match self.rests() {
            true => Box::pin(self.resting(&at, &mut warm, answer.entries.clone())).await?,
            false => answer.entries.clone(),
        };
        let (rows, told) = warm.append(entries)?;
        let spared = warm.reader.spared() + less;
        let turn = TurnRow { turn: turn.0, head, spared, receipt: stored.text()?, at: now() };
        let (links, records) = (answer.links.clone(), told.into_iter().collect());
        let produced = Batch { links, records, ..Batch::new(Expect::Head(head), rows, now()) };
        let unopened = (!is_open).then_some(Unopened { expect: warm.row, contents });
        // What was never opened is not looked for.
        let ticket = if is_open { ticket_digest(&compiled.receipt.ticket) } else { Digest::default() };
        let acknowledge = Acknowledge { ticket, unopened, turn, produced };
        let appended = match self.store().acknowledge(&at.tenant, &at.conversation, &reader, acknowledge).await {
            Ok(appended) => appended,
            Err(error) if error.is_conflict() || error.is_head_moved() => {
                return Box::pin(self.elsewhere(&at, head, answer, fork)).await;
            }
            Err(error) => return Err(error),
        };
        self.inner.changed.notify_waiters();
        warm.acknowledged(compiled, answer.reported);
        self.inner.warmth.put(&at, &reader, warm);
        Ok(Finished { at, appended, is_fork: false })
    }

    /// Forgets a call that came to nothing; what was said and decided stays.
    pub async fn leave(&self, begun: Box<Begun>) -> Result<(), Error> {
        let Begun { at, compiled, mut warm, is_open, .. } = *begun;
        if is_open {
            self.abandon(&at, &compiled.receipt.ticket).await?;
        } else {
            let reader = ReaderName::from(compiled.receipt.ticket.reader.clone());
            // What went beside it was not written down, so the next call must not take it for known.
            warm.beside = None;
            self.inner.warmth.put(&at, &reader, warm);
        }
        Ok(())
    }

    async fn elsewhere(
        &self,
        at: &At,
        upto: Option<Seq>,
        answer: Answer,
        fork: ConversationId,
    ) -> Result<Finished, Error> {
        let behind = Behind::Fork { of: at.conversation.clone(), upto };
        let at = At { conversation: fork, ..at.clone() };
        let saying = Saying { entries: answer.entries, behind, links: answer.links };
        let (last, _) = self.say(&at, saying, None).await?;
        Ok(Finished { at, appended: Appended { first: last, last, is_repeated: false }, is_fork: true })
    }
}

/// Whether a change makes a page say something otherwise than it was said.
fn reduces(change: &Change) -> bool {
    !matches!(change, Change::Pin(_) | Change::Cut { .. } | Change::Settle { .. } | Change::Expand { .. })
}
