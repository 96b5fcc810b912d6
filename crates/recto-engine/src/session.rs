//! Sessions: what providers that remember hold of a conversation, for one reader, kept in the store.

use crate::error::{Error, Kind};
use crate::store::{ReaderName, Record, RecordKind};
use recto::digest::Digest;
use recto::entry::{Millis, Text};
use recto::page::Mode;
use recto::session::Lost;
use recto::{Compiled, Session};
use serde::{Deserialize, Serialize};
use std::collections::HashSet;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// A provider that remembers, as a call goes on with it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Remembering {
    /// Who remembers: `claude_code`, `codex`, or a name of the host's.
    pub provider: Text,
    /// What its session belongs to: the folder in which a program works, or nothing. In another one it counts for nothing.
    pub workspace: Text,
    /// How long the call may take: until then, or until it is acknowledged or abandoned, no other call goes on with it.
    pub lease: Duration,
    /// The piece of work of this process with which the call ends.
    task: Option<u64>,
}

impl Remembering {
    /// Returns a provider that remembers.
    pub fn new(provider: impl Into<Text>, workspace: impl Into<Text>, lease: Duration) -> Remembering {
        Remembering { provider: provider.into(), workspace: workspace.into(), lease, task: None }
    }

    /// Says that the call is over when a piece of work of this process is.
    pub(crate) fn within(self, task: &Task) -> Remembering {
        Remembering { task: Some(task.number), ..self }
    }
}

/// The pieces of work of a process that go on with sessions.
#[derive(Debug, Default)]
pub(crate) struct Tasks {
    under_way: Mutex<HashSet<u64>>,
    next: AtomicU64,
}

/// A piece of work; it is over when this is dropped, however that comes.
#[derive(Debug)]
pub(crate) struct Task {
    number: u64,
    tasks: Arc<Tasks>,
}

impl Task {
    pub(crate) fn begin(tasks: &Arc<Tasks>) -> Task {
        let number = tasks.next.fetch_add(1, Ordering::Relaxed);
        if let Ok(mut under_way) = tasks.under_way.lock() {
            under_way.insert(number);
        }
        Task { number, tasks: tasks.clone() }
    }
}

impl Drop for Task {
    fn drop(&mut self) {
        if let Ok(mut under_way) = self.tasks.under_way.lock() {
            under_way.remove(&self.number);
        }
    }
}

impl Tasks {
    fn has(&self, number: u64) -> bool {
        self.under_way.lock().is_ok_and(|under_way| under_way.contains(&number))
    }
}

/// What a provider holds, as it is stored.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Held {
    /// What the provider calls the session.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<Text>,
    /// What it belongs to.
    #[serde(default)]
    pub workspace: Text,
    /// What it holds.
    #[serde(default)]
    pub session: Session,
    /// What identifies the newest entry of those that it holds without a gap.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub acked_as: Option<Digest>,
    /// How far the provider's own record of it is known, in the driver's words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mark: Option<Text>,
    /// The call that was sent last, until it is acknowledged: what the provider made of it is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sent: Option<Sent>,
    /// How often it was written.
    #[serde(skip)]
    pub(crate) version: u64,
}

/// A call that was sent and not acknowledged.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sent {
    /// The digest of its ticket.
    pub ticket: Digest,
    /// When its page was made.
    pub since: Millis,
    /// When it is over at the latest.
    pub until: Millis,
    /// Who sends it.
    pub by: Text,
    /// The piece of work of that process with which it ends.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    task: Option<u64>,
    /// Whether it is known to have come to nothing.
    #[serde(default)]
    pub is_over: bool,
    /// What the session is called that it goes to, if that is another.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<Text>,
    /// What its message is called, where the provider takes names.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<Text>,
    /// How far the provider's own record of that session was known before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mark: Option<Text>,
    /// What the provider holds if it goes well.
    then: Session,
}

/// Where a call is being sent.
#[derive(Clone, Debug, Default)]
pub struct Sending {
    /// The session that it begins, if it does.
    pub session: Option<Text>,
    /// What its message is called, where the provider takes names.
    pub message: Option<Text>,
    /// How far the provider's own record of the session is known before it.
    pub mark: Option<Text>,
}

/// What a provider was found to hold beyond what was known.
#[derive(Clone, Debug, Default)]
pub struct CaughtUp {
    /// What was said there, which the log doesn't have.
    pub entries: Vec<recto::Entry>,
    /// How far its own record is known now.
    pub mark: Option<Text>,
}

impl Held {
    /// Returns whether it is not known what the provider made of the last call.
    pub fn is_in_doubt(&self) -> bool {
        self.sent.is_some()
    }

    /// Returns what the provider calls the session, and the one that the call under way begins.
    pub(crate) fn names(&self) -> impl Iterator<Item = &Text> {
        self.id.iter().chain(self.sent.iter().filter_map(|sent| sent.session.as_ref()))
    }

    /// Gives it up.
    pub(crate) fn lose(&mut self, why: Lost) {
        self.session.invalidate(why);
        (self.id, self.acked_as, self.mark, self.sent) = (None, None, None, None);
    }

    /// Refuses while another call goes on with it.
    pub(crate) fn check_free(&self, provider: &str, now: Millis, tasks: &Tasks) -> Result<(), Error> {
        let Some(sent) = self.sent.as_ref().filter(|sent| !sent.is_over && now < sent.until) else { return Ok(()) };
        let is_cancelled = sent.by == here() && sent.task.is_some_and(|task| !tasks.has(task));
        if is_cancelled || is_gone(&sent.by) {
            return Ok(());
        }
        let seconds = now.0.saturating_sub(sent.since.0) / 1_000;
        let what = format!("the session with {provider} has been in use by {} for {seconds} s", sent.by);
        Err(Kind::InUse { what }.into())
    }

    /// It, while a page is under way.
    pub(crate) fn sending(&self, compiled: &Compiled, ticket: Digest, now: Millis, with: &Remembering) -> Held {
        let mut then = self.session.clone();
        then.sent(compiled);
        let until = Millis(now.0.saturating_add(i64::try_from(with.lease.as_millis()).unwrap_or(i64::MAX)));
        let (by, task, since) = (here(), with.task, now);
        // Where there is nothing to send, nobody need wait for it.
        let is_over = compiled.page.mode == Mode::NothingNew;
        let (session, message, mark) = (None, None, None);
        let sent = Sent { ticket, since, until, by, task, is_over, session, message, mark, then };
        Held { sent: Some(sent), ..self.clone() }
    }

    /// What the provider holds if a call that was sent has gone well; `None` if that call is not the one under way.
    pub(crate) fn then(&self, ticket: Digest) -> Option<Session> {
        self.sent.as_ref().filter(|sent| sent.ticket == ticket).map(|sent| sent.then.clone())
    }

    /// Writes it as the next version of its record.
    pub(crate) fn record(&self, key: &Text) -> Record {
        let body = serde_json::to_string(self).expect("a session is plain data");
        Record { kind: RecordKind::Session, key: key.clone(), version: self.version + 1, body: body.into() }
    }

    /// Reads it from a record.
    pub(crate) fn read(record: &Record) -> Result<Held, Error> {
        let held: Held = serde_json::from_str(&record.body)
            .map_err(|error| Kind::Corrupt { what: format!("session {:?}: {error}", &*record.key) })?;
        Ok(Held { version: record.version, ..held })
    }
}

/// Under which key a session is kept: the provider's name, then the reader's.
pub(crate) fn key(provider: &str, reader: &ReaderName) -> Text {
    format!("{provider}/{}", reader.as_str()).into()
}

/// The provider and the reader of a key.
pub(crate) fn of_key(key: &str) -> Option<(Text, ReaderName)> {
    let (provider, reader) = key.split_once('/')?;
    Some((provider.into(), ReaderName::from(reader)))
}

/// This process, by a name that others can tell from theirs.
pub(crate) fn here() -> Text {
    format!("process {} on {}", std::process::id(), host()).into()
}

/// Whether a process is known not to exist any more. Of those on other machines nobody knows.
pub(crate) fn is_gone(by: &str) -> bool {
    let Some((pid, host_name)) = by.strip_prefix("process ").and_then(|rest| rest.split_once(" on ")) else {
        return false;
    };
    let pid = pid.parse::<i32>().ok().and_then(rustix::process::Pid::from_raw);
    let is_alive = |pid| rustix::process::test_kill_process(pid) != Err(rustix::io::Errno::SRCH);
    host_name == host() && pid.is_some_and(|pid| !is_alive(pid))
}

fn host() -> String {
    rustix::system::uname().nodename().to_string_lossy().into_owned()
}
