//! Erasing: of a conversation, and of single entries.

use super::{At, Engine, TRIES_MAX, counter, now, too_busy};
use crate::body;
use crate::error::{Error, Kind};
use crate::lens;
use crate::store::{
    Batch, ConversationId, DecisionRow, Decisions, EraseEntries, Erased, Expect, Forks, ReaderName, RecordKind,
    Remains, Store, Upto,
};
use crate::summarize::record::is_of;
use crate::summarize::{Noted, State, Wanted};
use recto::Seq;
use recto::edit::{Change, Decision, Edit, Reason};
use recto::entry::ERASED_WORD;
use recto::note::{Subject, Want};
use recto::session::Lost;
use serde::Serialize;

/// The most entries whose bodies one erase takes.
const ENTRIES_MAX: usize = 1_000;
/// The most conversations that are looked at for decisions about an erased entry.
const CONVERSATIONS_MAX: usize = 10_000;

/// What was erased.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Gone {
    /// The conversations that are gone.
    pub conversations: Vec<ConversationId>,
    /// How many entries lost their words.
    pub entries: u64,
}

impl From<Erased> for Gone {
    fn from(erased: Erased) -> Gone {
        Gone { conversations: erased.conversations, entries: erased.entries }
    }
}

impl<S: Store> Engine<S> {
    /// Erases a conversation; only its name stays. While other conversations go on from it, it is refused with their
    /// names, unless they are to go as well.
    pub async fn erase(&self, at: &At, forks: Forks) -> Result<Gone, Error> {
        let erased = self.store().erase(&at.tenant, &at.conversation, forks).await?;
        erased.conversations.iter().for_each(|id| self.inner.pages.forget(id));
        self.inner.warmth.forget();
        self.inner.changed.notify_waiters();
        Ok(erased.into())
    }

    /// Erases the words of entries, and what decisions quote of them. Place, length and hash stay, and the shape: who
    /// spoke, and which calls were made or answered.
    pub async fn erase_entries(&self, at: &At, seqs: Vec<Seq>) -> Result<Gone, Error> {
        if seqs.len() > ENTRIES_MAX {
            let what = format!("{} entries; at most {ENTRIES_MAX} are erased at once", seqs.len());
            return Err(Kind::TooLarge { what }.into());
        }
        let remains = self.remains(at, &seqs).await?;
        if let Some(missing) = seqs.iter().find(|seq| !remains.iter().any(|it| it.seq == **seq)) {
            let what = format!("entry {missing} in conversation {:?}", at.conversation.as_str());
            return Err(Kind::NotFound { what }.into());
        }
        let sharing = self.sharing(at, &seqs).await?;
        let decisions = self.quoting(at, &sharing, &seqs).await?;
        let sharing_at = || sharing.iter().map(|id| At { tenant: at.tenant.clone(), conversation: id.clone() });
        // First, so that nobody goes on with a session that still holds them.
        for at in sharing_at() {
            self.forget_held(&at, &seqs).await?;
            self.forget_noted(&at, &seqs).await?;
        }
        let erase = EraseEntries { remains, decisions };
        let erased = self.store().erase_entries(&at.tenant, &at.conversation, erase).await?;
        // Once more: a summary that was being made may have come to its end meanwhile. From now on none can.
        for at in sharing_at() {
            self.forget_noted(&at, &seqs).await?;
        }
        sharing.iter().for_each(|id| self.inner.pages.forget(id));
        self.inner.warmth.forget();
        self.inner.changed.notify_waiters();
        Ok(erased.into())
    }

    async fn remains(&self, at: &At, seqs: &[Seq]) -> Result<Vec<Remains>, Error> {
        let counter = counter(&self.conversation(at).await?)?;
        let rows = self.store().rows(&at.tenant, &at.conversation, seqs.to_vec()).await?;
        rows.iter().map(|row| body::remains(row, &counter)).collect()
    }

    /// Every conversation that may have the entries: the oldest that does, and all that go on from it.
    async fn sharing(&self, at: &At, seqs: &[Seq]) -> Result<Vec<ConversationId>, Error> {
        let mut sharing = vec![self.root(at, seqs).await?];
        for next in 0..CONVERSATIONS_MAX {
            let Some(id) = sharing.get(next) else { return Ok(sharing) };
            sharing.extend(self.store().forks(&at.tenant, id).await?);
        }
        Err(Kind::TooLarge { what: format!("more than {CONVERSATIONS_MAX} conversations share these entries") }.into())
    }

    /// The decisions of conversations that quote entries, without the quotes.
    async fn quoting(
        &self,
        at: &At,
        conversations: &[ConversationId],
        seqs: &[Seq],
    ) -> Result<Vec<(ConversationId, ReaderName, DecisionRow)>, Error> {
        let mut quoting = Vec::new();
        let is_folded = self.is_folded(at, conversations, seqs).await?;
        for id in conversations {
            for (reader, _) in self.store().readers(&at.tenant, id).await? {
                let which = Decisions::About(seqs.to_vec());
                let rows = self.store().decisions(&at.tenant, id, &reader, Upto::NOW, which).await?;
                let mut about = lens::made(rows)?;
                if is_folded {
                    // A note on many entries stands at one of them.
                    let at = At { tenant: at.tenant.clone(), conversation: id.clone() };
                    let all = self.decisions(&at, &reader).await?;
                    let is_new = |it: &Decision| about.iter().all(|known| known.ordinal != it.ordinal);
                    let more: Vec<Decision> = all.into_iter().filter(|it| folds(it, seqs) && is_new(it)).collect();
                    about.extend(more);
                }
                for decision in about {
                    if let Some(edit) = unquoted(&decision.edit) {
                        let row = lens::rewritten(edit, decision.policy, decision.ordinal, decision.turn.0);
                        quoting.push((id.clone(), reader.clone(), row));
                    }
                }
            }
        }
        Ok(quoting)
    }

    /// Whether a model has made a note on exchanges with some of the entries.
    async fn is_folded(&self, at: &At, conversations: &[ConversationId], seqs: &[Seq]) -> Result<bool, Error> {
        for id in conversations {
            for record in self.store().kept(&at.tenant, id, RecordKind::Note).await? {
                let subject = Noted::read(&record)?.want.subject;
                if matches!(subject, Subject::Range(_) | Subject::Human(_))
                    && seqs.iter().any(|seq| is_of(&subject, *seq))
                {
                    return Ok(true);
                }
            }
        }
        Ok(false)
    }

    /// Gives up the sessions whose providers hold some of the entries: they can't be made to forget them.
    async fn forget_held(&self, at: &At, seqs: &[Seq]) -> Result<(), Error> {
        for (provider, reader, held) in self.sessions(at).await? {
            if seqs.iter().any(|seq| held.session.holds(*seq)) {
                self.invalidate(at, &reader, &provider, Lost::EntryGone).await?;
            }
        }
        Ok(())
    }

    /// Takes back what models have said of some of the entries. Whoever is about to say something finds that it is not
    /// theirs to say any more.
    async fn forget_noted(&self, at: &At, seqs: &[Seq]) -> Result<(), Error> {
        let quotes = |want: &Want| seqs.iter().any(|seq| is_of(&want.subject, *seq));
        for _ in 0..TRIES_MAX {
            let mut records = Vec::new();
            for record in self.store().kept(&at.tenant, &at.conversation, RecordKind::Want).await? {
                let wanted = Wanted::read(&record)?;
                if quotes(&wanted.want) && wanted.state != State::Over {
                    records.push(Wanted { state: State::Over, error: None, ..wanted }.record(&record.key));
                }
            }
            for record in self.store().kept(&at.tenant, &at.conversation, RecordKind::Note).await? {
                let noted = Noted::read(&record)?;
                if quotes(&noted.want) && !noted.is_erased() {
                    records.push(noted.erased(now()).record(&record.key));
                }
            }
            if records.is_empty() {
                return Ok(());
            }
            let batch = Batch { records, ..Batch::new(Expect::Any, Vec::new(), now()) };
            match self.store().append(&at.tenant, &at.conversation, batch).await {
                Err(error) if error.is_conflict() => continue,
                done => return done.map(drop),
            }
        }
        Err(too_busy())
    }

    /// The oldest conversation that has the entries.
    async fn root(&self, at: &At, seqs: &[Seq]) -> Result<ConversationId, Error> {
        let mut id = at.conversation.clone();
        for _ in 0..CONVERSATIONS_MAX {
            let row = self.store().conversation(&at.tenant, &id).await?;
            match row.from {
                Some(from) if seqs.iter().any(|seq| Some(*seq) <= from.upto) => id = from.conversation,
                _ => return Ok(id),
            }
        }
        Ok(id)
    }
}

/// Whether a decision puts a note in the place of exchanges with some of the entries.
fn folds(decision: &Decision, seqs: &[Seq]) -> bool {
    match &decision.edit.why {
        Reason::Summarized { span, .. } => seqs.iter().any(|seq| span.first <= *seq && *seq <= span.last),
        _ => false,
    }
}

/// An edit without the words that it quotes; `None` if it quotes none.
fn unquoted(edit: &Edit) -> Option<Edit> {
    let word = || ERASED_WORD.into();
    let change = match &edit.change {
        Change::Replace { at, .. } => Change::Replace { at: *at, text: word() },
        Change::Expand { at, text: Some(_), until } => Change::Expand { at: *at, text: Some(word()), until: *until },
        _ => return None,
    };
    Some(Edit { change, ..edit.clone() })
}
