//! A turn of a program that keeps a conversation of its own. What the program holds is read first; then it is told what
//! is new, and what came of it is recorded.

use super::pages::Answer;
use super::{At, Engine, now};
use crate::body;
use crate::call::{Call, Stored, ticket_digest};
use crate::drive::told::{Divided, go_on, new_uuid};
use crate::drive::{Driver, Failed, Found, Heard, Listen, Ran, Since, Turn, still};
use crate::error::{Error, Kind};
use crate::session::{CaughtUp, Held, Remembering, Sending, Sent, Task};
use crate::store::{Back, ReaderName, Store};
use recto::entry::{Entry, Text};
use recto::page::{Message, Mode};
use recto::receipt::Receipt;
use recto::session::Lost;
use recto::target::Instructions;
use recto::wire::Usage;
use recto::{Compiled, Role, Tokens};
use std::path::Path;
use std::time::Duration;
use tokio::sync::oneshot;

/// How often a turn is begun anew, because the program didn't know its session or refused what was written for it.
const TRIES_MAX: usize = 4;
/// How many entries are looked at, at most, to find out whether something was answered.
const ROWS_SEEN_MAX: usize = 500;
/// How much longer than a turn its session is reserved.
const LEASE_MORE: Duration = Duration::from_secs(60);

/// What came of a turn.
#[derive(Clone, Debug)]
pub struct Driven {
    /// How it came about.
    pub how: How,
    /// What the program did and said.
    pub entries: Vec<Entry>,
    /// The explanation of what it was told; none if it had answered before.
    pub receipt: Option<Receipt>,
    /// What the program calls its session.
    pub session: Option<Text>,
    /// What the model calls of this turn used together.
    pub usage: Option<Usage>,
    /// The model that answered, if it was told.
    pub model: Option<Text>,
}

/// How an answer came about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum How {
    /// The program was told what is new.
    Told,
    /// It held the message of a call that had come to nothing, and was asked to go on.
    AskedToGoOn,
    /// It had answered an earlier call of which nobody had heard the end.
    HadAnswered,
    /// There was nothing to tell it.
    NothingNew,
}

/// A turn while it is being prepared.
struct Turning<'a> {
    at: &'a At,
    driver: &'a Driver,
    workspace: &'a Path,
    call: Call,
    how: How,
    /// Where the program is sent back to, so that it forgets a message that it never answered.
    rewind_to: Option<Text>,
    /// Whether the program has refused a session that was written for it.
    has_refused_seed: bool,
}

/// What a program is about to be told.
struct Prepared {
    /// The session that it goes on with; none begins one.
    session: Option<Text>,
    /// The name of a new session, where the program takes one.
    new_session: Text,
    message: Text,
    mark: Option<Text>,
    said: Vec<Message>,
    is_seeded: bool,
}

impl<S: Store> Engine<S> {
    /// Has a program carry a conversation on: tells it what it doesn't hold yet, and records what came of it. What is
    /// said now is `call.input`; it goes into the log with the answer. After an error the same call can be made again:
    /// the program is told nothing twice.
    pub async fn drive(
        &self,
        at: &At,
        driver: &Driver,
        call: Call,
        workspace: &Path,
        listen: Listen<'_>,
    ) -> Result<Driven, Error> {
        let workspace = workspace.canonicalize().map_err(|error| Kind::Program {
            what: format!("{} can't work in {}: {error}", driver.name(), workspace.display()),
            hint: "name a folder that exists".into(),
        })?;
        // When this is cancelled, whoever comes next need not wait.
        let task = Task::begin(&self.inner.tasks);
        let lease = driver.settings().turn_limit.saturating_add(LEASE_MORE);
        let session = Remembering::new(driver.provider(), workspace.to_string_lossy().as_ref(), lease).within(&task);
        let target = call.target.clone().remembering(Instructions::Replaced);
        let call = Call { session: Some(session), target, ..call };
        let (how, rewind_to) = (How::Told, None);
        let mut turning = Turning { at, driver, workspace: &workspace, call, how, rewind_to, has_refused_seed: false };
        if let Some(driven) = self.reconcile(&mut turning, listen).await? {
            return Ok(driven);
        }
        for _ in 0..TRIES_MAX {
            if let Some(driven) = self.attempt(&mut turning, listen).await? {
                return Ok(driven);
            }
        }
        let what = format!("{} did not take the conversation in {TRIES_MAX} tries", driver.name());
        Err(Kind::Program { what, hint: "begin a new conversation with it, or try another version".into() }.into())
    }

    /// Adds to the log what was said in a program's own session beyond what was known, and returns how many entries that
    /// were; `None` if there is no such session of this reader, or the program's own file of it can't be read here.
    pub async fn catch_up(
        &self,
        at: &At,
        driver: &Driver,
        reader: &ReaderName,
        listen: Listen<'_>,
    ) -> Result<Option<u64>, Error> {
        let Some(held) = self.session(at, reader, driver.provider()).await? else { return Ok(None) };
        let begun = held.sent.as_ref().and_then(|sent| sent.session.as_ref());
        let file = begun.or(held.id.as_ref()).map(|id| driver.look(id, Path::new(&*held.workspace), None));
        if !matches!(file, Some(Found::There(_))) {
            return Ok(None);
        }
        let before = self.conversation(at).await?.tally.sums().entries;
        let (policy, target) = (recto::Policy::none(), recto::Target::eval());
        let workspace = Path::new(&*held.workspace);
        let (call, how, rewind_to) = (Call::new(reader.clone(), policy, target), How::Told, None);
        let mut turning = Turning { at, driver, workspace, call, how, rewind_to, has_refused_seed: false };
        self.reconcile(&mut turning, listen).await?;
        Ok(Some(self.conversation(at).await?.tally.sums().entries - before))
    }

    /// Finds out what the program holds, before anything is sent to it.
    async fn reconcile(&self, turning: &mut Turning<'_>, listen: Listen<'_>) -> Result<Option<Driven>, Error> {
        let (at, driver, reader) = (turning.at, turning.driver, turning.call.reader.clone());
        let Some(held) = self.session(at, &reader, driver.provider()).await? else { return Ok(None) };
        held.check_free(driver.provider(), now(), &self.inner.tasks)?;
        // A call that was to begin a session went to another one than is known.
        let begun = held.sent.as_ref().and_then(|sent| sent.session.clone());
        let Some(id) = begun.as_ref().or(held.id.as_ref()) else { return Ok(None) };
        if held.is_in_doubt()
            && let Some(pid) = still::stays_with(id).await
        {
            let what = format!("{} is still at work on an earlier call, as process {pid}", driver.name());
            return Err(Kind::InUse { what }.into());
        }
        let mark = match &begun {
            Some(_) => held.sent.as_ref().and_then(|sent| sent.mark.as_deref()),
            None => held.mark.as_deref(),
        };
        let why = match driver.look(id, Path::new(&*held.workspace), mark) {
            Found::There(since) => return self.found(turning, held, since, listen).await,
            Found::Missing => "its file is gone".to_string(),
            Found::Corrupt(why) => format!("its file can't be read: {why}"),
            Found::Elsewhere => "it went on without what it had been told".to_string(),
        };
        if held.session.acked().is_some() {
            let name = driver.name();
            listen(Heard::Note(format!("session {id} of {name}: {why}; everything is sent again").into()));
            self.invalidate(at, &reader, driver.provider(), Lost::Forgotten).await?;
        }
        Ok(None)
    }

    /// Takes in what a program's own file shows beyond what was known.
    async fn found(
        &self,
        turning: &mut Turning<'_>,
        held: Held,
        since: Since,
        listen: Listen<'_>,
    ) -> Result<Option<Driven>, Error> {
        let (at, driver, reader) = (turning.at, turning.driver, turning.call.reader.clone());
        let Some(sent) = held.sent.clone() else {
            return self.take_in(at, driver, &reader, since, listen).await.map(|()| None);
        };
        let is_new = sent.session.is_some();
        let is_ours = |entry: &Entry| {
            let is_named = entry.id.as_ref().map(|id| id.as_str()) == sent.message.as_deref();
            entry.role == Role::User && (is_named || !driver.takes_names())
        };
        let Some(nth) = since.entries.iter().position(is_ours) else {
            // Nothing of the call has arrived; a session that was begun for it is left alone.
            return match is_new {
                true => Ok(None),
                false => self.not_arrived(turning, &held, &sent, since, listen).await,
            };
        };
        if since.entries.len() == 1 && since.rewind_to.is_some() {
            listen(Heard::Note(format!("{} forgets a message that it has not answered", driver.name()).into()));
            turning.rewind_to = since.rewind_to;
            return Ok(None);
        }
        let is_answered = since.is_answered;
        let Some((is_same, entries)) = self.settle(turning, &held, &sent, since, nth).await? else {
            self.invalidate(at, &reader, driver.provider(), Lost::InDoubt).await?;
            return Ok(None);
        };
        let (name, count) = (driver.name(), entries.len());
        listen(Heard::Note(format!("{name} had taken the call that came to nothing; {count} entries since").into()));
        if is_same && is_answered {
            let session = sent.session.or(held.id);
            let (receipt, usage, model) = (None, None, None);
            return Ok(Some(Driven { how: How::HadAnswered, entries, receipt, session, usage, model }));
        }
        if is_same {
            (turning.how, turning.call.input) = (How::AskedToGoOn, Some(go_on()));
        }
        Ok(None)
    }

    /// Takes in what was said beside a call that has not arrived. If that call was to have the program go on, what is
    /// said now may be what it holds unanswered, or has answered meanwhile.
    async fn not_arrived(
        &self,
        turning: &mut Turning<'_>,
        held: &Held,
        sent: &Sent,
        since: Since,
        listen: Listen<'_>,
    ) -> Result<Option<Driven>, Error> {
        let (at, driver, reader) = (turning.at, turning.driver, turning.call.reader.clone());
        let open = self.store().open(&at.tenant, &at.conversation, &reader, sent.ticket).await?;
        let then = open.and_then(|open| serde_json::from_str::<Entry>(open.input.as_deref()?).ok());
        let is_to_go_on = then.is_some_and(|then| then.parts == go_on().parts);
        let is_same = match &turning.call.input {
            Some(now) if is_to_go_on => self.is_unanswered(at, now).await?,
            _ => false,
        };
        let (entries, is_answered) = (since.entries.clone(), since.is_answered && !since.entries.is_empty());
        self.take_in(at, driver, &reader, since, listen).await?;
        if is_same && is_answered {
            let (how, session) = (How::HadAnswered, held.id.clone());
            return Ok(Some(Driven { how, entries, receipt: None, session, usage: None, model: None }));
        }
        if is_same {
            (turning.how, turning.call.input) = (How::AskedToGoOn, Some(go_on()));
        }
        Ok(None)
    }

    /// Acknowledges a call of which only the program's file tells. Returns whether the same is said now, and what came of
    /// it; `None` if other calls came in between.
    async fn settle(
        &self,
        turning: &Turning<'_>,
        held: &Held,
        sent: &Sent,
        since: Since,
        nth: usize,
    ) -> Result<Option<(bool, Vec<Entry>)>, Error> {
        let (at, reader) = (turning.at, &turning.call.reader);
        let open = self.store().open(&at.tenant, &at.conversation, reader, sent.ticket).await?;
        let Some(open) = open else { return Ok(None) };
        let input: Option<Entry> = open.input.as_deref().and_then(|input| serde_json::from_str(input).ok());
        let is_same = match (&input, &turning.call.input) {
            (Some(then), Some(now)) if then.parts == now.parts => true,
            // What it was asked to go on with may be the same.
            (Some(then), Some(now)) => then.parts == go_on().parts && self.is_unanswered(at, now).await?,
            (then, now) => then.is_none() && now.is_none(),
        };
        let mut entries = since.entries;
        entries.remove(nth);
        let session = sent.session.clone().or_else(|| held.id.clone());
        let answer = Answer { entries: entries.clone(), session, mark: since.mark, ..Answer::default() };
        match self.acknowledge(at, &Stored::parse(&open.receipt)?.ticket, answer).await {
            Err(error) if error.is_conflict() => Ok(None),
            done => done.map(|_| Some((is_same, entries))),
        }
    }

    /// Whether the same was said since the last answer that came to its end.
    async fn is_unanswered(&self, at: &At, said: &Entry) -> Result<bool, Error> {
        let back = Back { strands: Vec::new(), below: None, rows: ROWS_SEEN_MAX, tokens: Tokens(u64::MAX) };
        for row in self.store().back(&at.tenant, &at.conversation, back).await? {
            let entry = body::entry(&row)?;
            match entry.role {
                Role::User if entry.parts == said.parts => return Ok(true),
                Role::Assistant if entry.calls().next().is_none() => return Ok(false),
                _ => {}
            }
        }
        Ok(false)
    }

    /// Adds to the log what was said elsewhere in a session.
    async fn take_in(
        &self,
        at: &At,
        driver: &Driver,
        reader: &ReaderName,
        since: Since,
        listen: Listen<'_>,
    ) -> Result<(), Error> {
        let (name, count) = (driver.name(), since.entries.len());
        if count > 0 {
            listen(Heard::Note(format!("{count} entries were said in {name} itself, and are added").into()));
        }
        let more = CaughtUp { entries: since.entries, mark: since.mark };
        self.caught_up(at, reader, driver.provider(), more).await.map(drop)
    }

    /// Makes the page and has the program do the turn; `None` if its session turned out to be of no use.
    async fn attempt(&self, turning: &mut Turning<'_>, listen: Listen<'_>) -> Result<Option<Driven>, Error> {
        let (at, driver, reader) = (turning.at, turning.driver, turning.call.reader.clone());
        let compiled = self.compile(at, &turning.call).await?;
        let (page, ticket) = (&compiled.page, &compiled.receipt.ticket);
        if page.mode == Mode::NothingNew {
            let (how, receipt) = (How::NothingNew, Some(compiled.receipt));
            return Ok(Some(Driven { how, entries: Vec::new(), receipt, session: None, usage: None, model: None }));
        }
        let divided = Divided::of(&page.messages);
        if page.mode == Mode::Delta && !divided.history.is_empty() {
            self.let_go(at, &reader, ticket_digest(ticket)).await?;
            self.invalidate(at, &reader, driver.provider(), Lost::WentOn).await?;
            return Ok(None);
        }
        let held = self.session(at, &reader, driver.provider()).await?.unwrap_or_default();
        let prepared = prepared(turning, &divided, page.mode, held, listen);
        let turn = Turn {
            session: prepared.session.as_ref(),
            new_session: &prepared.new_session,
            mark: prepared.mark.as_deref(),
            rewind_to: turning.rewind_to.as_ref(),
            message: &prepared.message,
            instructions: &divided.instructions,
            said: &prepared.said,
            workspace: turning.workspace,
        };
        let is_new = page.mode == Mode::Full;
        let sending = |session: Option<Text>| {
            let (message, mark) = (Some(prepared.message.clone()), prepared.mark.clone());
            Sending { session: session.filter(|_| is_new), message, mark }
        };
        let begun = prepared.session.clone().or_else(|| driver.takes_names().then(|| prepared.new_session.clone()));
        self.sending(at, ticket, driver.provider(), sending(begun)).await?;
        let (tell, told) = oneshot::channel();
        let working = async {
            let mut tell = Some(tell);
            let mut heard = |heard: Heard| {
                if let Heard::Session(session) = &heard
                    && let Some(tell) = tell.take()
                {
                    // It goes to whoever waits for it below; if nobody does any more, the turn is over.
                    drop(tell.send(session.clone()));
                }
                listen(heard);
            };
            driver.turn(turn, &mut heard).await
        };
        let noting = async {
            match told.await {
                Ok(session) if is_new => self.sending(at, ticket, driver.provider(), sending(Some(session))).await,
                _ => Ok(()),
            }
        };
        let (ran, noted) = tokio::join!(working, noting);
        if let Err(error) = noted {
            // The turn may have gone well all the same.
            listen(Heard::Note(format!("where the call went could not be written down: {error}").into()));
        }
        match ran {
            Ok(ran) => self.ran(turning, compiled, ran, listen).await.map(Some),
            Err(failed) => {
                self.let_go(at, &reader, ticket_digest(ticket)).await?;
                self.failed(turning, failed, prepared.is_seeded, listen).await.map(|()| None)
            }
        }
    }

    /// Records a turn that went well.
    async fn ran(
        &self,
        turning: &Turning<'_>,
        compiled: Compiled,
        ran: Ran,
        listen: Listen<'_>,
    ) -> Result<Driven, Error> {
        let (at, driver) = (turning.at, turning.driver);
        let Ran { session, entries, mark, usage, model } = ran;
        let is_marked = mark.is_some();
        let answer = Answer { entries: entries.clone(), session: Some(session.clone()), mark, ..Answer::default() };
        self.acknowledge(at, &compiled.receipt.ticket, answer).await?;
        if !is_marked {
            let name = driver.name();
            listen(Heard::Note(
                format!("{name}'s own file doesn't show this turn; the next one is told everything").into(),
            ));
            self.invalidate(at, &turning.call.reader, driver.provider(), Lost::InDoubt).await?;
        }
        let (how, receipt, session) = (turning.how, Some(compiled.receipt), Some(session));
        Ok(Driven { how, entries, receipt, session, usage, model })
    }

    /// Decides what becomes of a turn that failed: it is begun anew, or told as an error.
    async fn failed(
        &self,
        turning: &mut Turning<'_>,
        failed: Failed,
        is_seeded: bool,
        listen: Listen<'_>,
    ) -> Result<(), Error> {
        let (name, provider) = (turning.driver.name(), turning.driver.provider());
        match failed {
            Failed::Unknown(what) if is_seeded => {
                listen(Heard::Note(
                    format!("{name} refused the session that was written for it ({what}); it is told as text").into(),
                ));
                turning.has_refused_seed = true;
                Ok(())
            }
            Failed::Unknown(what) => {
                listen(Heard::Note(
                    format!("{name} doesn't know its session any more ({what}); everything is sent").into(),
                ));
                turning.rewind_to = None;
                self.invalidate(turning.at, &turning.call.reader, provider, Lost::Forgotten).await.map(drop)
            }
            Failed::InUse(what) => Err(Kind::InUse { what }.into()),
            Failed::Other(error) => Err(error),
        }
    }
}

/// Decides which session a turn goes to, and what is said there.
fn prepared(turning: &Turning<'_>, divided: &Divided, mode: Mode, held: Held, listen: Listen<'_>) -> Prepared {
    let name = |what: &str| new_uuid(&format!("{what} {:?}", turning.at));
    let (new_session, message) = (name("session"), name("message"));
    let said = divided.said.clone();
    let new = Prepared { session: None, new_session, message, mark: None, said, is_seeded: false };
    if mode == Mode::Delta {
        return Prepared { session: held.id, mark: held.mark, ..new };
    }
    if divided.history.is_empty() {
        return new;
    }
    let driver = turning.driver;
    if !turning.has_refused_seed {
        match driver.seed(&divided.history, &new.new_session, turning.workspace) {
            Ok(seeded) => {
                return Prepared { session: Some(seeded.session), mark: seeded.mark, is_seeded: true, ..new };
            }
            Err(error) => {
                let what = format!("no session could be written for {} ({error}); it is told as text", driver.name());
                listen(Heard::Note(what.into()));
            }
        }
    }
    Prepared { said: divided.as_text(), ..new }
}
