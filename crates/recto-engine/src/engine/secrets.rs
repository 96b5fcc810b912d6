//! Secrets: the key under which placeholders stand for them, and what a conversation remembers of those it was told.

use super::{Append, At, BATCH_ENTRIES_MAX, Engine, TRIES_MAX, now, too_busy};
use crate::body;
use crate::call::Call;
use crate::error::{Error, Kind};
use crate::store::{Batch, NewRow, Record, RecordKind, Store, Tenant};
use recto::digest::Digest;
use recto::redact::{Redact, Screen, Secrets};
use recto::{Count, Entry};
use std::borrow::Cow;
use std::sync::{Arc, Mutex, PoisonError};

/// What the record is called that remembers them.
const TOLD: &str = "told";
/// The most screens that are kept.
const SCREENS_MAX: usize = 16;

/// What stands between tenants' words and whoever reads them, as it was made for calls before: it depends on the policy
/// alone, and to make it takes longer than to look through most of what is said.
#[derive(Default)]
pub(super) struct Screens(Mutex<Vec<Arc<Kept>>>);

struct Kept {
    tenant: Tenant,
    redact: Redact,
    screen: Screen,
    strict: Arc<Screen>,
}

impl Screens {
    fn find(&self, tenant: &Tenant, redact: &Redact) -> Option<Arc<Kept>> {
        let kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        kept.iter().find(|it| it.redact == *redact && it.tenant == *tenant).cloned()
    }

    fn keep(&self, tenant: &Tenant, redact: &Redact, screen: Screen) -> Arc<Kept> {
        let (tenant, redact, strict) = (tenant.clone(), redact.clone(), Arc::new(screen.strict()));
        let made = Arc::new(Kept { tenant, redact, screen, strict });
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        kept.insert(0, made.clone());
        kept.truncate(SCREENS_MAX);
        made
    }
}

/// What a conversation remembers.
#[derive(Clone, Debug, Default)]
pub(super) struct Remembered {
    pub(super) secrets: Secrets,
    /// How often it was written.
    pub(super) version: u64,
}

impl Remembered {
    /// Returns the record that remembers these instead; `None` where they are the same.
    pub(super) fn instead(&self, secrets: &Secrets) -> Option<Record> {
        (*secrets != self.secrets).then(|| {
            let body = serde_json::to_string(secrets).expect("digests are plain data");
            Record { kind: RecordKind::Secrets, key: TOLD.into(), version: self.version + 1, body: body.into() }
        })
    }
}

impl<S: Store> Engine<S> {
    /// Returns what a policy puts between a tenant's words and whoever reads them.
    pub async fn screen(&self, tenant: &Tenant, redact: &Redact) -> Result<Screen, Error> {
        Ok(self.screens(tenant, redact).await?.screen.clone())
    }

    /// Returns the same for titles, and for those who are told something beside a page: through it, no secret is seen.
    pub async fn strict_screen(&self, tenant: &Tenant, redact: &Redact) -> Result<Arc<Screen>, Error> {
        Ok(self.screens(tenant, redact).await?.strict.clone())
    }

    async fn screens(&self, tenant: &Tenant, redact: &Redact) -> Result<Arc<Kept>, Error> {
        if let Some(kept) = self.inner.screens.find(tenant, redact) {
            return Ok(kept);
        }
        let screen = Screen::of(redact)?.keyed(self.key_of(tenant).await?);
        Ok(self.inner.screens.keep(tenant, redact, screen))
    }

    /// The key of a tenant's placeholders: nothing is known of it outside of the store.
    async fn key_of(&self, tenant: &Tenant) -> Result<Digest, Error> {
        let secret = self.inner.secret.get_or_try_init(|| self.store().secret()).await?;
        Ok(Digest::of(format!("{secret} {}", tenant.as_str()).as_bytes()))
    }

    /// What a conversation remembers of the secrets that it was told.
    pub(super) async fn remembered(&self, at: &At) -> Result<Remembered, Error> {
        let records = self.store().kept(&at.tenant, &at.conversation, RecordKind::Secrets).await?;
        let Some(record) = records.first() else { return Ok(Remembered::default()) };
        let secrets = serde_json::from_str(&record.body)
            .map_err(|error| Kind::Corrupt { what: format!("the secrets of a conversation: {error}") })?;
        Ok(Remembered { secrets, version: record.version })
    }

    /// Has a conversation remember more. What others have written meanwhile stays.
    pub(super) async fn remember(&self, at: &At, secrets: &Secrets) -> Result<(), Error> {
        for _ in 0..TRIES_MAX {
            let there = self.remembered(at).await?;
            let mut all = there.secrets.clone();
            all.join(secrets);
            let Some(record) = there.instead(&all) else { return Ok(()) };
            match self.store().keep(&at.tenant, &at.conversation, record).await {
                Err(error) if error.is_conflict() => continue,
                done => return done,
            }
        }
        Err(too_busy())
    }

    /// Counts entries and writes them down, as they will stand behind what a conversation was told.
    pub(super) async fn written(
        &self,
        at: &At,
        entries: Vec<Entry>,
        counter: &Arc<dyn Count>,
    ) -> Result<Vec<NewRow>, Error> {
        let known = self.remembered(at).await?;
        let (rows, secrets) = self.written_behind(&at.tenant, entries, counter, known.secrets.clone()).await?;
        if secrets != known.secrets {
            // First: a secret that is remembered and was never told does no harm.
            self.remember(at, &secrets).await?;
        }
        Ok(rows)
    }

    /// The same where it is known what is remembered; returns what is then.
    pub(super) async fn written_behind(
        &self,
        tenant: &Tenant,
        entries: Vec<Entry>,
        counter: &Arc<dyn Count>,
        secrets: Secrets,
    ) -> Result<(Vec<NewRow>, Secrets), Error> {
        let screen = Screen::default().keyed(self.key_of(tenant).await?);
        let mut secrets = secrets;
        let entries = self.at_rest(tenant, entries, &mut secrets).await?;
        body::counted(entries, counter, screen, secrets)
    }

    /// The same for a conversation that begins with them; returns the record that remembers what it was told.
    pub(super) async fn written_first(
        &self,
        tenant: &Tenant,
        entries: Vec<Entry>,
        counter: &Arc<dyn Count>,
        secrets: Secrets,
    ) -> Result<(Vec<NewRow>, Option<Record>), Error> {
        let (rows, secrets) = self.written_behind(tenant, entries, counter, secrets).await?;
        Ok((rows, Remembered::default().instead(&secrets)))
    }

    /// Writes entries down, under the caller's key.
    pub(super) async fn batch(&self, at: &At, append: Append, counter: &Arc<dyn Count>) -> Result<Batch, Error> {
        if append.entries.len() > BATCH_ENTRIES_MAX {
            let what = format!("{} entries in one append; at most {BATCH_ENTRIES_MAX} are taken", append.entries.len());
            return Err(Kind::TooLarge { what }.into());
        }
        let rows = self.written(at, append.entries, counter).await?;
        let key = append.key.map(|key| {
            let hashes: String = rows.iter().map(|row| row.hash.to_string()).collect();
            (key, Digest::of(hashes.as_bytes()))
        });
        Ok(Batch { key, ..Batch::new(append.expect, rows, now()) })
    }

    /// Returns the engine that doesn't even write down what this names: the log itself holds placeholders.
    #[must_use]
    pub fn redacting_at_rest(self, redact: Redact) -> Engine<S> {
        Engine { at_rest: Some(redact), ..self }
    }

    /// Whether something is not even written down.
    pub(super) fn rests(&self) -> bool {
        self.at_rest.is_some()
    }

    /// What stands between everything and the disk, if anything does.
    pub(super) async fn rest_screen(&self, tenant: &Tenant) -> Result<Option<Screen>, Error> {
        match &self.at_rest {
            Some(redact) => Ok(Some(self.screen(tenant, redact).await?)),
            None => Ok(None),
        }
    }

    /// A call as it is written down: what it says beside its history is kept for its page to be made again.
    pub(super) async fn call_at_rest<'c>(&self, at: &At, call: &'c Call) -> Result<Cow<'c, Call>, Error> {
        let Some(screen) = self.rest_screen(&at.tenant).await? else { return Ok(Cow::Borrowed(call)) };
        let mut kept = call.clone();
        if let Some(input) = kept.input {
            let mut told = self.remembered(at).await?.secrets;
            kept.input = Some(screen.kept(input, &mut told));
        }
        if screen.is_over_prompts() {
            kept.fragments.iter_mut().for_each(|it| it.content = screen.text(&it.content).into());
            kept.tools.iter_mut().for_each(|it| *it = screen.json(it).into());
            kept.format = kept.format.map(|format| screen.json(&format).into());
        }
        Ok(Cow::Owned(kept))
    }

    /// Entries as they are written down behind what was told before.
    pub(super) async fn at_rest(
        &self,
        tenant: &Tenant,
        entries: Vec<Entry>,
        secrets: &mut Secrets,
    ) -> Result<Vec<Entry>, Error> {
        Ok(match self.rest_screen(tenant).await? {
            Some(screen) => entries.into_iter().map(|entry| screen.kept(entry, secrets)).collect(),
            None => entries,
        })
    }
}
