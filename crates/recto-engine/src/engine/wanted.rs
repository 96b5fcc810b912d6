//! Wants and notes: read for a plan, made before a call or after it, recorded once.
//!
//! A want is claimed by writing the next version of its record, so of many servers one makes it. The attempt is counted
//! before anybody is asked: one that died counts as well, and is taken over when its lease is out or its process is
//! known to be gone. What came of it is written with the end of the want, both or nothing.
//!
//! Forks share the words of the conversation that they go on from. So what is known of a want is kept with the oldest
//! conversation that has all its words, and is found from there by all.

use super::pages::Read;
use super::{At, Engine, TRIES_MAX, now, too_busy};
use crate::call::Call;
use crate::error::Error;
use crate::store::{Batch, ConversationId, Expect, FORK_DEPTH_MAX, RecordKind, State as Stands, Store};
use crate::summarize::record::last_of;
use crate::summarize::{Asking, Came, Noted, Own, Queued, Spent, State, Summarizer, Told, Tried, Wanted};
use recto::digest::Digest;
use recto::entry::{Millis, Text};
use recto::note::{Input, Note, Notes, Want};
use recto::page::Mode as Said;
use recto::policy::Pass;
use recto::{Policy, Request, Seq};
use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;
use tokio::time::{Instant, sleep, timeout_at};

/// The most summaries that one call waits for, and that are begun behind one.
const URGENT_MAX: usize = 16;
const BEHIND_MAX: usize = 64;
/// How often it is looked whether somebody else has made a summary that a call waits for.
const LOOK_EVERY: Duration = Duration::from_millis(200);
/// Why a summary is not made whose words are not those that it was wanted for.
const GONE: &str = "what it was to be of has changed since it was wanted";
/// How many conversations a fork is followed back.
const LINE_MAX: usize = 4 * FORK_DEPTH_MAX;

/// What is known of the wants of a conversation.
pub(super) struct Book {
    pub(super) notes: Notes,
    /// The conversation, and those that it goes on from; of each, the last entry that it shares.
    line: Vec<(ConversationId, Option<Seq>)>,
}

impl Book {
    /// The oldest conversation that has all the words of a want.
    fn home(&self, at: &At, want: &Want) -> At {
        let last = last_of(&want.subject);
        let has = |(_, shared): &&(ConversationId, Option<Seq>)| *shared >= Some(last);
        let home = self.line.iter().skip(1).take_while(has).last().or(self.line.first());
        At { conversation: home.map_or_else(|| at.conversation.clone(), |(id, _)| id.clone()), ..at.clone() }
    }
}

/// How long a call has waited for summaries, and for which.
#[derive(Default)]
pub(super) struct Patience {
    until: Option<Instant>,
    tried: HashSet<Digest>,
}

/// Which wants are begun.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Begin {
    /// Those of which nothing came yet.
    New,
    /// Also those that have failed.
    Failed,
}

/// What became of a want.
#[derive(Clone, Debug, PartialEq)]
pub enum Became {
    /// There is a note now.
    Noted(Noted),
    /// There was one already.
    Known(Noted),
    /// It could not be made, and may be tried again.
    Unmade {
        /// Why.
        why: Text,
        /// What that cost.
        spent: Spent,
    },
    /// Somebody else makes it.
    Elsewhere,
}

/// One want, and everything that is needed to make it.
struct Job<S> {
    engine: Engine<S>,
    summarizer: Summarizer,
    at: At,
    home: At,
    key: Text,
    call: Arc<Call>,
    want: Want,
    begin: Begin,
}

/// What came of trying to claim a want.
enum Claim {
    Taken(Wanted),
    Noted(Noted),
    Held,
}

impl<S: Store> Engine<S> {
    /// Has summaries made by a model, where a policy wants them.
    #[must_use]
    pub fn with_summarizer(self, summarizer: Summarizer) -> Engine<S> {
        Engine { summarizer: Some(summarizer), ..self }
    }

    /// Returns who makes summaries, if anybody does.
    pub fn summarizer(&self) -> Option<&Summarizer> {
        self.summarizer.as_ref()
    }

    /// Waits until no summary is being made in this process: whoever goes away earlier leaves it to others, as an attempt
    /// that came to nothing.
    pub async fn rest(&self) {
        if let Some(summarizer) = &self.summarizer {
            summarizer.rest().await;
        }
    }

    /// Returns the summaries that would help the next page of a reader, and of which nothing came yet.
    pub async fn wants(&self, at: &At, call: &Call) -> Result<Vec<Want>, Error> {
        let Read { made, .. } = self.reading(at, call, None, recto::plan).await?;
        Ok(made?.wants)
    }

    /// Returns what a model would be told to make a summary; `None` if its words or its prompt are not there.
    pub async fn input_of(&self, at: &At, call: &Call, want: &Want) -> Result<Option<Input>, Error> {
        let Some(summarizer) = &self.summarizer else { return Ok(None) };
        Ok(self.reading(at, call, None, |request| summarizer.input(want, request)).await?.made)
    }

    /// Makes a summary, unless there is a note already or somebody else makes it, and returns what became of it.
    pub async fn summarize(&self, at: &At, call: &Call, want: &Want, begin: Begin) -> Result<Became, Error> {
        let Some(book) = self.book(at, &call.policy).await? else { return Ok(Became::Elsewhere) };
        let Some(job) = self.job(at, &Arc::new(call.clone()), &book, want, begin) else {
            return Ok(Became::Elsewhere);
        };
        match job.summarizer.begin(&job.home, &job.key) {
            Ok(_under_way) => job.run(Instant::now()).await,
            Err(_) => Ok(Became::Elsewhere),
        }
    }

    /// Lists what came of the wants of a conversation, and of those that it goes on from.
    pub async fn noted(&self, at: &At) -> Result<Vec<Noted>, Error> {
        let mut all = Vec::new();
        for (id, shared) in self.line(at).await? {
            let records = self.store().kept(&at.tenant, &id, RecordKind::Note).await?;
            for noted in records.iter().map(Noted::read) {
                let noted = noted?;
                if id == at.conversation || shared >= Some(last_of(&noted.want.subject)) {
                    all.push(noted);
                }
            }
        }
        Ok(all)
    }

    /// Whether summaries are made that a policy would want.
    pub(super) fn makes_notes(&self, policy: &Policy) -> bool {
        self.summarizer.is_some() && can_want(policy)
    }

    /// What is known of the wants of a conversation; `None` where nobody makes summaries, or nobody would want any.
    pub(super) async fn book(&self, at: &At, policy: &Policy) -> Result<Option<Arc<Book>>, Error> {
        let Some(summarizer) = self.summarizer.as_ref().filter(|_| self.makes_notes(policy)) else { return Ok(None) };
        let (line, mut notes) = (self.line(at).await?, Notes::default());
        for (id, _) in &line {
            for record in self.store().kept(&at.tenant, id, RecordKind::Note).await? {
                let noted = Noted::read(&record)?;
                // One that was made with another prompt is no answer to what is wanted now.
                if summarizer.key(&noted.want) == record.key {
                    notes.put(noted.want.key, noted.note);
                }
            }
        }
        Ok(Some(Arc::new(Book { notes, line })))
    }

    /// A conversation, and those that it goes on from; of each, the last entry that it shares.
    async fn line(&self, at: &At) -> Result<Vec<(ConversationId, Option<Seq>)>, Error> {
        let mut line: Vec<(ConversationId, Option<Seq>)> = Vec::new();
        let mut next = Some((at.conversation.clone(), Some(Seq(u64::MAX))));
        while let Some((id, shared)) = next.take().filter(|_| line.len() < LINE_MAX) {
            let row = match self.store().conversation(&at.tenant, &id).await {
                Ok(row) if row.state == Stands::Live => row,
                // An older one that is gone leaves its words, and nothing that was kept with it.
                Ok(_) if !line.is_empty() => break,
                Err(error) if error.is_not_found() && !line.is_empty() => break,
                Ok(row) => row,
                Err(error) => return Err(error),
            };
            next = row.from.map(|from| (from.conversation, from.upto.min(shared)));
            line.push((id, shared));
        }
        Ok(line)
    }

    /// Has those summaries made that a page needs, as long as its call may wait. Returns whether any was tried: then all
    /// is planned anew.
    pub(super) async fn hurry(
        &self,
        at: &At,
        call: &Call,
        book: &Book,
        wants: &[Want],
        patience: &mut Patience,
    ) -> bool {
        let Some(summarizer) = &self.summarizer else { return false };
        let until = *patience.until.get_or_insert_with(|| Instant::now() + summarizer.settings().wait);
        if Instant::now() >= until {
            return false;
        }
        let mut is_new = |want: &&Want| want.is_urgent && patience.tried.insert(want.key);
        let urgent: Vec<&Want> = wants.iter().filter(|want| is_new(want)).take(URGENT_MAX).collect();
        if urgent.is_empty() {
            return false;
        }
        let call = Arc::new(call.clone());
        let jobs = urgent.into_iter().filter_map(|want| self.job(at, &call, book, want, Begin::New));
        let mut overs: Vec<watch::Receiver<()>> = jobs.map(|job| job.spawn_urgent(until)).collect();
        let all = async {
            for over in &mut overs {
                // Nothing is ever sent: it is over when nobody could.
                while over.changed().await.is_ok() {}
            }
        };
        // Whoever is not done by then goes on behind the call.
        drop(timeout_at(until, all).await);
        true
    }

    /// Has summaries made behind a call. Those for which there is no place are written down, and found again by a later
    /// plan.
    pub(super) fn behind(&self, at: &At, call: &Call, book: Option<&Book>, wants: &[Want]) {
        let (Some(summarizer), Some(book), false) = (&self.summarizer, book, wants.is_empty()) else { return };
        let call = Arc::new(call.clone());
        for want in wants.iter().take(BEHIND_MAX) {
            let Some(job) = self.job(at, &call, book, want, Begin::New) else { continue };
            if summarizer.under_way(&job.home, &job.key).is_some() {
                continue;
            }
            match summarizer.queue() {
                Some(queued) => drop(tokio::spawn(job.queued(queued))),
                None => {
                    summarizer.tell(&Told::Dropped { at: at.clone(), subject: want.subject });
                    // That it is there already is as good.
                    drop(tokio::spawn(async move { job.write_down().await.ok() }));
                }
            }
        }
    }

    fn job(&self, at: &At, call: &Arc<Call>, book: &Book, want: &Want, begin: Begin) -> Option<Job<S>> {
        let summarizer = self.summarizer.clone()?;
        let (home, key) = (book.home(at, want), summarizer.key(want));
        let (engine, at, call, want) = (self.clone(), at.clone(), call.clone(), want.clone());
        Some(Job { engine, summarizer, at, home, key, call, want, begin })
    }
}

impl<S: Store> Job<S> {
    /// Begins it for a call that waits, and returns what to wait for.
    fn spawn_urgent(self, until: Instant) -> watch::Receiver<()> {
        match self.summarizer.begin(&self.home, &self.key) {
            Err(over) => over,
            Ok(under_way) => {
                let over = under_way.over();
                tokio::spawn(async move {
                    let _under_way = under_way;
                    let places = self.summarizer.places(true);
                    let _place = places.acquire().await;
                    self.told(self.run(until).await);
                });
                over
            }
        }
    }

    /// Makes it once there is a place.
    async fn queued(self, queued: Queued) {
        let places = self.summarizer.places(false);
        let _place = places.acquire().await;
        drop(queued);
        if let Ok(_under_way) = self.summarizer.begin(&self.home, &self.key) {
            self.told(self.run(Instant::now()).await);
        }
    }

    fn told(&self, became: Result<Became, Error>) {
        let unmade = |why: Text| Told::Unmade { at: self.at.clone(), subject: self.want.subject, why };
        let told = match became {
            Ok(Became::Noted(noted)) if matches!(noted.note, Note::Failed { .. }) => Told::Failed(noted),
            Ok(Became::Noted(noted)) => Told::Made(noted),
            Ok(Became::Unmade { why, .. }) => unmade(why),
            Ok(Became::Known(_) | Became::Elsewhere) => return,
            Err(error) => unmade(error.to_string().into()),
        };
        self.summarizer.tell(&told);
    }

    /// Makes it, or waits until somebody else has, at most until then.
    async fn run(&self, until: Instant) -> Result<Became, Error> {
        loop {
            match self.claim().await? {
                Claim::Taken(wanted) => return self.make(wanted).await,
                Claim::Noted(noted) => return Ok(Became::Known(noted)),
                Claim::Held if Instant::now() + LOOK_EVERY < until => sleep(LOOK_EVERY).await,
                Claim::Held => return Ok(Became::Elsewhere),
            }
        }
    }

    async fn claim(&self) -> Result<Claim, Error> {
        for _ in 0..TRIES_MAX {
            // The want first: whoever writes a note writes it too, and then this version is not the newest any more.
            let known = self.wanted().await?;
            let mut wanted = known.unwrap_or_else(|| Wanted::new(self.want.clone()));
            match self.noted().await? {
                Some(noted) if self.begin == Begin::New || matches!(noted.note, Note::Made { .. }) => {
                    return Ok(Claim::Noted(noted));
                }
                Some(_) => wanted.attempts = 0,
                None => {}
            }
            if wanted.is_held(now(), self.summarizer.number()) {
                return Ok(Claim::Held);
            }
            if wanted.is_exhausted() && self.begin == Begin::New {
                let last = wanted.error.as_ref().map_or(String::new(), |error| format!("; the last time: {error}"));
                let why = format!("begun {} times, and never came to an end{last}", wanted.attempts);
                match self.end(&wanted, Note::Failed { why: why.into() }, Spent::default()).await? {
                    Some(noted) => return Ok(Claim::Noted(noted)),
                    None => continue,
                }
            }
            let until = Millis(now().0.saturating_add(self.summarizer.lease_ms()));
            let leased = wanted.leased(until, self.summarizer.number());
            if self.keep(&leased).await? {
                return Ok(Claim::Taken(Wanted { version: leased.version + 1, ..leased }));
            }
        }
        Err(too_busy())
    }

    /// Makes it, now that nobody else does, and records what came of it.
    async fn make(&self, wanted: Wanted) -> Result<Became, Error> {
        let failed = |why: &str| Note::Failed { why: why.into() };
        if self.summarizer.prompt(&self.want).is_none() {
            let name = self.want.prompt.as_deref().unwrap_or_default();
            return self.ended(&wanted, failed(&format!("Compact prompt {name} not found")), Spent::default()).await;
        }
        let asking = match self.asking().await {
            Ok(Some(asking)) => asking,
            Ok(None) => return self.unmade(wanted, GONE.into(), Spent::default()).await,
            Err(error) => return self.unmade(wanted, error.to_string().into(), Spent::default()).await,
        };
        let Tried { came, spent } = asking.ask(self.summarizer.settings()).await;
        match came {
            Came::Made { text, model } => self.ended(&wanted, Note::Made { text, model }, spent).await,
            Came::Refused { why } => self.ended(&wanted, failed(&why), spent).await,
            Came::Unreached { why } if wanted.is_exhausted() => self.ended(&wanted, failed(&why), spent).await,
            Came::Unreached { why } => self.unmade(wanted, why, spent).await,
        }
    }

    /// Everything that can be said to those who are asked.
    async fn asking(&self) -> Result<Option<Asking>, Error> {
        let (want, call) = (&self.want, &*self.call);
        let make = |request: &Request<'_>| {
            let place = Own::place_of(&want.subject, request.log);
            self.summarizer.input(want, request).map(|input| (input, place))
        };
        let Read { made, before, .. } = self.engine.reading(&self.at, call, None, make).await?;
        let Some((input, place)) = made else { return Ok(None) };
        let page = before.page.filter(|page| page.mode == Said::Full && Own::shows(page, &want.subject));
        let is_same_model = before.last.is_some_and(|(model, _)| model == call.target.name);
        let own = page.zip(place).filter(|_| is_same_model).map(|(page, place)| {
            let instruction = format!("{}\n\n{place}", input.instructions).into();
            Own { target: call.target.clone(), page, instruction }
        });
        Ok(Some(Asking { want: want.clone(), input, own }))
    }

    /// Records that an attempt came to nothing, and that others may try.
    async fn unmade(&self, wanted: Wanted, why: Text, spent: Spent) -> Result<Became, Error> {
        let total = wanted.spent.and(spent);
        let open = Wanted { state: State::Open, error: Some(why.clone()), spent: total, ..wanted };
        // Whoever has taken it over meanwhile knows better.
        self.keep(&open).await?;
        Ok(Became::Unmade { why, spent })
    }

    /// Records what came of it; if somebody has taken it over meanwhile, what they have made of it counts.
    async fn ended(&self, wanted: &Wanted, note: Note, spent: Spent) -> Result<Became, Error> {
        if let Some(noted) = self.end(wanted, note, spent).await? {
            return Ok(Became::Noted(noted));
        }
        Ok(self.noted().await?.map_or(Became::Elsewhere, Became::Known))
    }

    /// Writes a note and the end of its want, both or nothing; `None` if the want is somebody else's now.
    async fn end(&self, wanted: &Wanted, note: Note, spent: Spent) -> Result<Option<Noted>, Error> {
        let Wanted { attempts, version, .. } = *wanted;
        let spent = wanted.spent.and(spent);
        let version_of_note = self.noted().await?.map_or(0, |noted| noted.version);
        let noted = Noted { want: self.want.clone(), note, spent, attempts, at: now(), version: version_of_note };
        let over = Wanted { state: State::Over, spent, version, ..wanted.clone() };
        let records = vec![noted.record(&self.key), over.record(&self.key)];
        let batch = Batch { records, ..Batch::new(Expect::Any, Vec::new(), now()) };
        match self.engine.store().append(&self.home.tenant, &self.home.conversation, batch).await {
            Ok(_) => {
                self.engine.inner.changed.notify_waiters();
                Ok(Some(noted))
            }
            Err(error) if error.is_conflict() => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Writes a want; whether it was the next version.
    async fn keep(&self, wanted: &Wanted) -> Result<bool, Error> {
        let record = wanted.record(&self.key);
        match self.engine.store().keep(&self.home.tenant, &self.home.conversation, record).await {
            Ok(()) => Ok(true),
            Err(error) if error.is_conflict() => Ok(false),
            Err(error) => Err(error),
        }
    }

    async fn write_down(&self) -> Result<bool, Error> {
        match self.wanted().await? {
            Some(_) => Ok(false),
            None => self.keep(&Wanted::new(self.want.clone())).await,
        }
    }

    async fn wanted(&self) -> Result<Option<Wanted>, Error> {
        let (tenant, id) = (&self.home.tenant, &self.home.conversation);
        let records = self.engine.store().kept(tenant, id, RecordKind::Want).await?;
        records.iter().find(|record| record.key == self.key).map(Wanted::read).transpose()
    }

    async fn noted(&self) -> Result<Option<Noted>, Error> {
        let (tenant, id) = (&self.home.tenant, &self.home.conversation);
        let records = self.engine.store().kept(tenant, id, RecordKind::Note).await?;
        records.iter().find(|record| record.key == self.key).map(Noted::read).transpose()
    }
}

/// Whether plans under a policy can want summaries: only then what came of them is read.
fn can_want(policy: &Policy) -> bool {
    policy.reduce.iter().any(|step| matches!(step.pass(), Pass::Expire(_) | Pass::Fold(_) | Pass::Own(_)))
}
