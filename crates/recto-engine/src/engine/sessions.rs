//! What providers that remember hold: read before a page is made, and advanced when its call was answered.

use super::pages::Answer;
use super::{Append, At, Engine, TRIES_MAX, now, too_busy};
use crate::call::{Call, ticket_digest};
use crate::error::{Error, Kind};
use crate::session::{CaughtUp, Held, Sending, key, of_key};
use crate::store::{Appended, Batch, Expect, ReaderName, Record, RecordKind, Store, Tenant};
use recto::digest::Digest;
use recto::entry::Text;
use recto::receipt::Ticket;
use recto::session::Lost;
use recto::{Compiled, Seq, Session};
use std::collections::HashMap;

/// How many conversations are listed at once, and how often, to find those that sessions carry on.
const PAGE_ROWS: usize = 1_000;
const PAGES_MAX: usize = 1_000;

impl<S: Store> Engine<S> {
    /// Returns what a provider that remembers holds for a reader, if it was ever called.
    pub async fn session(&self, at: &At, reader: &ReaderName, provider: &str) -> Result<Option<Held>, Error> {
        let key = key(provider, reader);
        let records = self.store().kept(&at.tenant, &at.conversation, RecordKind::Session).await?;
        records.iter().find(|record| record.key == key).map(Held::read).transpose()
    }

    /// Lists what providers that remember hold of a conversation, with their names and the readers'.
    pub async fn sessions(&self, at: &At) -> Result<Vec<(Text, ReaderName, Held)>, Error> {
        let records = self.store().kept(&at.tenant, &at.conversation, RecordKind::Session).await?;
        let read = |record: &Record| {
            let (provider, reader) = of_key(&record.key)
                .ok_or_else(|| Kind::Corrupt { what: format!("a session under the key {:?}", &*record.key) })?;
            Ok((provider, reader, Held::read(record)?))
        };
        records.iter().map(read).collect()
    }

    /// Lists the sessions that carry on conversations of a tenant, by what their providers call them: the conversation,
    /// the provider and the reader.
    pub async fn holders(&self, tenant: &Tenant) -> Result<HashMap<Text, (At, Text, ReaderName)>, Error> {
        let (mut holders, mut after) = (HashMap::new(), None);
        for _ in 0..PAGES_MAX {
            let page = self.list(tenant, after.as_ref(), PAGE_ROWS).await?;
            let Some(last) = page.last() else { break };
            after = Some(last.id.clone());
            for conversation in page {
                let at = At { tenant: tenant.clone(), conversation: conversation.id };
                for (provider, reader, held) in Error::unless_gone(self.sessions(&at).await)?.into_iter().flatten() {
                    let holder = (at.clone(), provider, reader);
                    holders.extend(held.names().map(|name| (name.clone(), holder.clone())));
                }
            }
        }
        Ok(holders)
    }

    /// Says where a call is being sent: to which session, under which name. To be told before it is sent, so that it can
    /// be found there if nobody hears of it again.
    pub async fn sending(&self, at: &At, ticket: &Ticket, provider: &str, sending: Sending) -> Result<(), Error> {
        let (reader, ticket) = (ReaderName::from(ticket.reader.clone()), ticket_digest(ticket));
        let under_way = |held: &Held| held.sent.as_ref().is_some_and(|sent| sent.ticket == ticket);
        let held = self.session(at, &reader, provider).await?.filter(under_way);
        let mut held = held.ok_or_else(|| taken_over(provider))?;
        if let Some(sent) = &mut held.sent {
            (sent.session, sent.message, sent.mark) = (sending.session, sending.message, sending.mark);
        }
        let record = held.record(&key(provider, &reader));
        self.store().keep(&at.tenant, &at.conversation, record).await
    }

    /// Gives a session up: the next page says everything, and why. Returns whether there was one.
    pub async fn invalidate(&self, at: &At, reader: &ReaderName, provider: &str, why: Lost) -> Result<bool, Error> {
        self.change(at, reader, provider, |held| {
            held.lose(why);
            true
        })
        .await
    }

    /// Records that a provider holds more than was known: what was said there goes into the log as it is, and counts as
    /// held. What was in doubt is in doubt no more.
    pub async fn caught_up(
        &self,
        at: &At,
        reader: &ReaderName,
        provider: &str,
        more: CaughtUp,
    ) -> Result<Appended, Error> {
        let counter = self.counter_of(at).await?;
        for _ in 0..TRIES_MAX {
            let mut held = self.session(at, reader, provider).await?.unwrap_or_default();
            let head = self.conversation(at).await?.tally.head();
            // The words and what is held of them are written at once, or a crash would have them added twice.
            let mut batch = self.batch(at, Append::after(head, more.entries.clone()), &counter).await?;
            held.acked_as = self.advance(at, &mut held.session, head, &batch).await?;
            (held.sent, held.mark) = (None, more.mark.clone());
            batch.records.push(held.record(&key(provider, reader)));
            match self.store().append(&at.tenant, &at.conversation, batch).await {
                Err(error) if error.is_conflict() => continue,
                done => {
                    self.inner.changed.notify_waiters();
                    return done;
                }
            }
        }
        Err(too_busy())
    }

    /// What a provider holds that a call goes on with, checked against the call and the log.
    pub(super) async fn continued(&self, at: &At, call: &Call) -> Result<Option<Held>, Error> {
        let Some(with) = &call.session else { return Ok(None) };
        let new = || Held { workspace: with.workspace.clone(), ..Held::default() };
        let mut held = self.session(at, &call.reader, &with.provider).await?.unwrap_or_else(new);
        if held.workspace != with.workspace {
            if held.session.acked().is_some() {
                held.lose(Lost::WorkspaceChanged);
            }
            held.workspace = with.workspace.clone();
        }
        // A place beyond the log is told by the compiler.
        if let Some(hash) = self.hash_at(at, held.session.acked()).await?
            && held.acked_as != Some(hash)
        {
            held.lose(Lost::EntryGone);
        }
        Ok(Some(held))
    }

    /// The record of a session with which a call is under way; an error while another one is.
    pub(super) fn under_way(
        &self,
        call: &Call,
        held: Option<&Held>,
        compiled: &Compiled,
        ticket: Digest,
    ) -> Result<Vec<Record>, Error> {
        let Some((with, held)) = call.session.as_ref().zip(held) else { return Ok(Vec::new()) };
        let now = now();
        held.check_free(&with.provider, now, &self.inner.tasks)?;
        Ok(vec![held.sending(compiled, ticket, now, with).record(&key(&with.provider, &call.reader))])
    }

    /// The session's record once a call was answered.
    pub(super) async fn answered(
        &self,
        at: &At,
        reader: &ReaderName,
        provider: &str,
        ticket: Digest,
        answer: &Answer,
        produced: &Batch,
    ) -> Result<Record, Error> {
        let held = self.session(at, reader, provider).await?.unwrap_or_default();
        let mut session = held.then(ticket).ok_or_else(|| taken_over(provider))?;
        let Expect::Head(head) = produced.expect else { return Err(taken_over(provider)) };
        let acked_as = self.advance(at, &mut session, head, produced).await?;
        let id = answer.session.clone().or_else(|| held.sent.as_ref().and_then(|sent| sent.session.clone()));
        let held = Held { id: id.or(held.id), session, acked_as, mark: answer.mark.clone(), sent: None, ..held };
        Ok(held.record(&key(provider, reader)))
    }

    /// Adds to what a session holds what is about to be appended behind the newest entry, and returns what then
    /// identifies the last entry that it holds without a gap.
    async fn advance(
        &self,
        at: &At,
        session: &mut Session,
        head: Option<Seq>,
        new: &Batch,
    ) -> Result<Option<Digest>, Error> {
        let first = head.map_or(Seq(0), Seq::next);
        session.acknowledge(None, (first.0..).map(Seq).take(new.rows.len()));
        let own = session.acked().and_then(|acked| acked.0.checked_sub(first.0)).map(|nth| nth as usize);
        match own.and_then(|nth| new.rows.get(nth)) {
            Some(row) => Ok(Some(row.hash)),
            None => self.hash_at(at, session.acked()).await,
        }
    }

    /// Frees the session that a call went on with.
    pub(super) async fn let_go(&self, at: &At, reader: &ReaderName, ticket: Digest) -> Result<(), Error> {
        for (provider, owner, held) in self.sessions(at).await? {
            if owner == *reader && held.then(ticket).is_some() {
                self.change(at, reader, &provider, |held| {
                    let sent = held.sent.as_mut().filter(|sent| sent.ticket == ticket && !sent.is_over);
                    sent.map(|sent| sent.is_over = true).is_some()
                })
                .await?;
            }
        }
        Ok(())
    }

    /// Changes a session, unless somebody else was quicker; then again. Returns whether it was changed.
    async fn change(
        &self,
        at: &At,
        reader: &ReaderName,
        provider: &str,
        change: impl Fn(&mut Held) -> bool,
    ) -> Result<bool, Error> {
        for _ in 0..TRIES_MAX {
            let Some(mut held) = self.session(at, reader, provider).await? else { return Ok(false) };
            if !change(&mut held) {
                return Ok(false);
            }
            match self.store().keep(&at.tenant, &at.conversation, held.record(&key(provider, reader))).await {
                Err(error) if error.is_conflict() => continue,
                done => done?,
            }
            self.inner.changed.notify_waiters();
            return Ok(true);
        }
        Err(too_busy())
    }

    /// What identifies the entry at a place; an erased one has nothing that does.
    async fn hash_at(&self, at: &At, seq: Option<Seq>) -> Result<Option<Digest>, Error> {
        let Some(seq) = seq else { return Ok(None) };
        let rows = self.store().rows(&at.tenant, &at.conversation, vec![seq]).await?;
        Ok(rows.first().map(|row| if row.is_erased { Digest::default() } else { row.hash }))
    }
}

fn taken_over(provider: &str) -> Error {
    let what = format!("the session with {provider} was given up, or another call goes on with it");
    Kind::Conflict { what, hint: "make the page again".into() }.into()
}
