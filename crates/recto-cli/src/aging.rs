//! What is too old goes: all conversations of all tenants are looked at, some at a time.

use crate::config::Retention;
use recto::entry::Millis;
use recto_engine::engine::Aged;
use recto_engine::{At, Conversation, Engine, Error, Store};
use serde::Serialize;
use std::ops::ControlFlow;
use std::time::Duration;

/// Whether what is too old really goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Goes {
    /// It is erased.
    Away,
    /// It is only told.
    Nowhere,
}

/// Which conversations are too old, and how they are gone through.
pub(crate) struct Sweep<'r> {
    /// Nothing was written to them since then.
    pub(crate) since: Millis,
    /// Which ones stay whatever their age.
    pub(crate) retention: &'r Retention,
    pub(crate) goes: Goes,
    /// How long others have their turn after some were looked at.
    pub(crate) pause: Duration,
}

/// What became of it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub(crate) struct Swept {
    /// Conversations that were looked at.
    pub(crate) looked: u64,
    /// Those that went, or would.
    pub(crate) conversations: u64,
    /// Their entries.
    pub(crate) entries: u64,
    /// Those that stay because others go on from them that are not too old.
    pub(crate) held: u64,
    /// Those that stay because the configuration says so.
    pub(crate) kept: u64,
}

impl Sweep<'_> {
    /// Goes through all conversations. Of each that is too old it is heard before anything becomes of it, until whoever
    /// hears it wants no more.
    pub(crate) async fn run<S: Store>(
        &self,
        engine: &Engine<S>,
        mut hear: impl FnMut(&At, &Conversation, &Aged) -> ControlFlow<()>,
    ) -> Result<Swept, Error> {
        let mut swept = Swept::default();
        for tenant in engine.tenants().await? {
            let mut after = None;
            loop {
                let found = engine.look_for_old(&tenant, after.as_ref(), self.since).await?;
                swept.looked += found.looked as u64;
                for row in found.old {
                    let at = At::new(&tenant, row.id.clone());
                    if self.one(engine, &at, &row, &mut swept, &mut hear).await?.is_break() {
                        return Ok(swept);
                    }
                }
                let Some(next) = found.next else { break };
                after = Some(next);
                tokio::time::sleep(self.pause).await;
            }
        }
        Ok(swept)
    }

    async fn one<S: Store>(
        &self,
        engine: &Engine<S>,
        at: &At,
        row: &Conversation,
        swept: &mut Swept,
        hear: &mut impl FnMut(&At, &Conversation, &Aged) -> ControlFlow<()>,
    ) -> Result<ControlFlow<()>, Error> {
        if self.retention.keeps(row.id.as_str()) {
            swept.kept += 1;
            return Ok(ControlFlow::Continue(()));
        }
        let aged = match engine.aged(at, self.since).await {
            // One that it went on from took it along, or somebody else did.
            Err(error) if error.is_erased() => return Ok(ControlFlow::Continue(())),
            aged => aged?,
        };
        let aged = match aged {
            // What is kept by its name keeps what it goes on from.
            Aged::Old(family) => match family.iter().find(|id| self.retention.keeps(id.as_str())) {
                Some(kept) => Aged::HeldBy(kept.clone()),
                None => Aged::Old(family),
            },
            held => held,
        };
        if hear(at, row, &aged).is_break() {
            return Ok(ControlFlow::Break(()));
        }
        match (aged, self.goes) {
            (Aged::HeldBy(_), _) => swept.held += 1,
            (Aged::Old(_), Goes::Nowhere) => {
                swept.conversations += 1;
                swept.entries += row.tally.sums().entries;
            }
            (Aged::Old(_), Goes::Away) => {
                let (aged, gone) = engine.erase_old(at, self.since).await?;
                swept.held += u64::from(matches!(aged, Aged::HeldBy(_)));
                swept.conversations += gone.conversations.len() as u64;
                swept.entries += gone.entries;
            }
        }
        Ok(ControlFlow::Continue(()))
    }
}
