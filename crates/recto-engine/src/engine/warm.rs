//! What was read for a call, kept for the next one of its conversation, and what went beside it. Nothing goes by it without
//! asking: every write says which version of the conversation it goes by.

use super::secrets::Remembered;
use super::wanted::Book;
use super::{At, Opening, now};
use crate::body;
use crate::call::{Before, Beside, Call, Contents};
use crate::error::Error;
use crate::store::{NewRow, ReaderName, ReaderRow, Record};
use recto::entry::{Millis, Text};
use recto::redact::Screen;
use recto::{Compiled, Entry, Log, Reader, Tokenizer, Tokens};
use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex};

/// The most conversations that are kept warm.
const WARM_MAX: usize = 256;
/// How much they may hold together, in tokens; a token is some four bytes.
const WARM_TOKENS_MAX: u64 = 16_000_000;
/// How much of what goes beside conversations is remembered.
const BESIDES_MAX: usize = 32;
/// How many calls a log is kept warm for, until it is read again without what no page shows any more.
pub(super) const WARM_CALLS_MAX: u32 = 512;

/// What is known of a conversation and a reader after a call, if nobody else has written since.
pub(super) struct Warm {
    pub(super) version: u64,
    pub(super) log: Log,
    /// What the conversation remembers of secrets.
    pub(super) told: Remembered,
    pub(super) reader: Reader,
    pub(super) row: ReaderRow,
    pub(super) before: Before,
    /// When the last call was answered.
    pub(super) at: Millis,
    /// What went beside it, if that is written down.
    pub(super) beside: Option<Arc<Beside>>,
    /// What came of wants: whoever writes a note makes this version an old one.
    pub(super) book: Option<Arc<Book>>,
    pub(super) calls: u32,
    pub(super) tokens: u64,
}

/// What is kept warm.
#[derive(Default)]
pub(super) struct Warmth {
    kept: Mutex<Kept>,
    /// What went beside the last conversations that were begun: many begin alike.
    besides: Mutex<VecDeque<Arc<Beside>>>,
}

#[derive(Default)]
struct Kept {
    of: HashMap<(At, ReaderName), (u64, Box<Warm>)>,
    tokens: u64,
    clock: u64,
}

impl Kept {
    /// Forgets the quarter that was not used for longest: rarely, since all have to be looked at.
    fn shrink(&mut self) {
        let mut used: Vec<u64> = self.of.values().map(|(used, _)| *used).collect();
        used.sort_unstable();
        let oldest = used[used.len() / 4];
        self.of.retain(|_, (used, _)| *used > oldest);
        self.tokens = self.of.values().map(|(_, warm)| warm.tokens).sum();
    }
}

impl Warmth {
    /// Takes what is known of a conversation; nobody else gets it meanwhile.
    pub(super) fn take(&self, at: &At, reader: &ReaderName) -> Option<Box<Warm>> {
        let mut kept = self.kept.lock().ok()?;
        let (_, warm) = kept.of.remove(&(at.clone(), reader.clone()))?;
        kept.tokens -= warm.tokens;
        Some(warm)
    }

    pub(super) fn put(&self, at: &At, reader: &ReaderName, mut warm: Box<Warm>) {
        let Ok(mut kept) = self.kept.lock() else { return };
        warm.tokens = warm.log.tally().sums().tokens.0;
        if warm.calls > WARM_CALLS_MAX || warm.tokens > WARM_TOKENS_MAX {
            return;
        }
        kept.clock += 1;
        kept.tokens += warm.tokens;
        let now = kept.clock;
        if let Some((_, old)) = kept.of.insert((at.clone(), reader.clone()), (now, warm)) {
            kept.tokens -= old.tokens;
        }
        if kept.of.len() > WARM_MAX {
            kept.shrink();
        }
        while kept.tokens > WARM_TOKENS_MAX {
            let Some(oldest) = kept.of.iter().min_by_key(|(_, (used, _))| *used).map(|(key, _)| key.clone()) else {
                return;
            };
            if let Some((_, old)) = kept.of.remove(&oldest) {
                kept.tokens -= old.tokens;
            }
        }
    }

    /// Returns what a call says beside its history, and what has to be written down of it: all that is not as it was at
    /// the call before.
    pub(super) fn beside(
        &self,
        call: &Call,
        log: &Log,
        before: Option<&Arc<Beside>>,
    ) -> Result<(Arc<Beside>, Contents), Error> {
        match before {
            Some(before) if before.is_of(call, log) => return Ok((before.clone(), Contents::new())),
            Some(before) => {
                let (beside, contents) = before.then(call, log)?;
                return Ok((Arc::new(beside), contents));
            }
            None => {}
        }
        let known = |besides: &VecDeque<Arc<Beside>>| besides.iter().find(|it| it.is_of(call, log)).cloned();
        if let Some(beside) = self.besides.lock().ok().and_then(|besides| known(&besides)) {
            let contents = beside.bundle();
            return Ok((beside, contents));
        }
        let beside = Arc::new(Beside::of(call, log)?);
        if let Ok(mut besides) = self.besides.lock() {
            besides.push_front(beside.clone());
            besides.truncate(BESIDES_MAX);
        }
        let contents = beside.bundle();
        Ok((beside, contents))
    }

    /// Forgets everything: words may have been erased.
    pub(super) fn forget(&self) {
        if let Ok(mut besides) = self.besides.lock() {
            besides.clear();
        }
        if let Ok(mut kept) = self.kept.lock() {
            *kept = Kept::default();
        }
    }
}

impl Warm {
    /// What is known of a conversation that is about to be made.
    pub(super) fn new(opening: &Opening, call: &Call, screen: Screen) -> Warm {
        let tokenizer = opening.tokenizer.unwrap_or(Tokenizer::O200k);
        Warm {
            version: 1,
            log: Log::counted_by(tokenizer).through(screen),
            told: Remembered::default(),
            reader: Reader::new(call.reader.text().clone()),
            row: ReaderRow::default(),
            before: Before::default(),
            at: now(),
            beside: None,
            book: None,
            calls: 0,
            tokens: 0,
        }
    }

    /// Counts entries behind the log, and writes them down, with what is to be remembered of them.
    pub(super) fn append(&mut self, entries: Vec<Entry>) -> Result<(Vec<NewRow>, Option<Record>), Error> {
        let mut log = self.log.clone();
        let mut rows = Vec::with_capacity(entries.len());
        for entry in entries {
            let seq = log.append(entry)?;
            rows.push(body::written(log.get(seq).expect("it was just appended")));
        }
        let told = self.told.instead(log.secrets());
        if let Some(record) = &told {
            // Whoever has written meanwhile makes all of this an old version.
            self.told = Remembered { secrets: log.secrets().clone(), version: record.version };
        }
        self.log = log;
        Ok((rows, told))
    }

    /// Goes on to the next call.
    pub(super) fn acknowledged(&mut self, compiled: Compiled, reported: Option<Tokens>) {
        let Compiled { page, receipt } = compiled;
        // It can't be refused: the store has taken it.
        drop(self.reader.acknowledge(&receipt.ticket));
        let model: Text = receipt.target;
        self.before = Before { page: Some(page), reported, last: Some((model, 0)) };
        self.row.turns += 1;
        self.version += 1;
        self.at = now();
        self.calls += 1;
    }
}
