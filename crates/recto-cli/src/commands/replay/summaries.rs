//! The summaries that policies want in a replay: made by a model that was named, once for each content.

use crate::args::ReplayArgs;
use crate::config::{Config, Origin, Set, SummarizerLayer};
use crate::failure::{Failure, cannot_start};
use recto::entry::Text;
use recto::note::{Note, Want};
use recto::wire::Wire;
use recto::{Request, Tokens};
use recto_engine::summarize::{Spent, Summarizer};
use serde::Serialize;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use tokio::runtime::{Builder, Runtime};

const OPTION: &str = "--summarizer";

/// What came of one, once somebody has made it.
type Once = OnceLock<(Note, Spent)>;

/// Who makes them, and what was made.
pub(super) struct Summaries {
    summarizer: Summarizer,
    runtime: Runtime,
    /// What came of each, whichever policy wanted it first.
    known: Mutex<HashMap<Text, Arc<Once>>>,
}

/// What summaries cost.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub(super) struct Bill {
    pub(super) made: usize,
    pub(super) failed: usize,
    pub(super) calls: u32,
    pub(super) input: Tokens,
    pub(super) cached: Tokens,
    pub(super) output: Tokens,
    pub(super) usd: f64,
}

impl Summaries {
    /// Returns who makes them, if anybody was named.
    pub(super) fn of(args: &ReplayArgs, config: &Config) -> Result<Option<Summaries>, Failure> {
        let Some(url) = &args.summarizer else { return Ok(None) };
        fn set<T>(value: T) -> Option<Set<T>> {
            Some(Set { value, origin: Origin::Option(OPTION) })
        }
        let mut config = config.clone();
        let below = std::mem::take(&mut config.layer.summarizer);
        let models = (!args.summarizer_model.is_empty()).then(|| args.summarizer_model.clone());
        // Whoever it is that the configuration names, this one is asked.
        config.layer.summarizer = SummarizerLayer {
            upstream: None,
            url: set(url.clone()),
            wire: args.summarizer_wire.and_then(set).or(set(Wire::OpenaiChat)),
            models: models.and_then(set).or(below.models.clone()).or(set(vec![crate::settings::MODEL.into()])),
            mode: None,
            ..below
        };
        let Some(summarizer) = config.summarizer()? else { return Ok(None) };
        let runtime = Builder::new_multi_thread().worker_threads(1).enable_all().build();
        let runtime = runtime.map_err(|error| cannot_start(&error))?;
        Ok(Some(Summaries { summarizer, runtime, known: Mutex::default() }))
    }

    /// Makes one, unless it was made before, and adds what it costs to a bill; `None` if it can't be asked for.
    pub(super) fn make(&self, want: &Want, request: &Request<'_>, bill: &Mutex<Bill>) -> Option<Note> {
        let input = self.summarizer.input(want, request)?;
        let known = {
            let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
            known.entry(self.summarizer.key(want)).or_default().clone()
        };
        let (note, spent) = known.get_or_init(|| self.runtime.block_on(self.summarizer.ask(want, input)));
        bill.lock().unwrap_or_else(PoisonError::into_inner).add(note, spent);
        Some(note.clone())
    }
}

impl Bill {
    fn add(&mut self, note: &Note, spent: &Spent) {
        let is_made = matches!(note, Note::Made { .. });
        let Spent { calls, usage, usd } = *spent;
        let (input, cached, output) = (usage.input, usage.cached, usage.output);
        let (made, failed) = (usize::from(is_made), usize::from(!is_made));
        self.sum(&Bill { made, failed, calls, input, cached, output, usd });
    }

    /// Adds another.
    pub(super) fn sum(&mut self, more: &Bill) {
        self.made += more.made;
        self.failed += more.failed;
        self.calls += more.calls;
        self.input += more.input;
        self.cached += more.cached;
        self.output += more.output;
        self.usd += more.usd;
    }

    /// Says it for people.
    pub(super) fn told(&self) -> String {
        let Bill { made, failed, input, output, usd, .. } = self;
        let failed = if *failed > 0 { format!(", {failed} failed") } else { String::new() };
        format!("summaries: {made} made{failed}; {input} tokens read, {output} written, USD {usd:.4} of the sum above")
    }
}
