//! Summaries by a model: who makes them, what is kept of them, and how one is asked for.
//!
//! A plan names wants. The engine has them made by a [`Summarizer`], once for each content, and keeps what came of them
//! as notes. Everything that is written down about one is a record of the conversation that holds its words.

mod ask; // one summary, of one model after the other
pub(crate) mod record; // wants and notes as they are kept

use crate::engine::At;
use crate::error::Error;
use crate::upstream::Upstream;
use recto::digest::Digest;
use recto::entry::Text;
use recto::note::{Input, Note, Subject, Want, default_prompt};
use recto::redact::Screen;
use recto::{Request, Target, Tokens};
use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::{Semaphore, watch};

pub(crate) use ask::{Asking, Came, Own, Tried};
pub use record::{Noted, Spent};
pub(crate) use record::{State, Wanted};

/// The most summaries that wait for their turn in the background; others are found again by a later plan.
pub const QUEUE_MAX: usize = 256;
/// The most models that are asked for one summary.
pub const MODELS_MAX: usize = 8;
/// The most summaries that are made at once.
pub const AT_ONCE_MAX: usize = 64;
/// How much longer than a summary may take others leave it alone: by then its process has recorded what came of it.
const LEASE_SLACK: Duration = Duration::from_secs(10);

/// How a summary is asked for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Mode {
    /// A model of its own reads nothing but the words that are summarized.
    #[default]
    Separate,
    /// The conversation's own model reads the page that it read last, and one instruction behind it: the provider's
    /// cache holds everything but that. The other models are asked where that comes to nothing.
    Same,
}

impl Mode {
    /// All there are, as they are spelled in files.
    pub const NAMES: [(&'static str, Mode); 2] = [("separate", Mode::Separate), ("same", Mode::Same)];
}

/// Who makes summaries, and within which bounds.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The provider that is asked.
    pub upstream: Upstream,
    /// The models, the preferred one first: where one comes to nothing, the next is asked.
    pub models: Vec<Target>,
    /// How they are asked.
    pub mode: Mode,
    /// How long a call waits for the summaries that its page needs; then it goes without them.
    pub wait: Duration,
    /// How long one summary may take, all models and tries together.
    pub timeout: Duration,
    /// How many are made at once in the background, and as many for calls that wait.
    pub at_once: usize,
    /// The longest answer.
    pub output_tokens: Tokens,
    /// Prompts by their names.
    pub prompts: BTreeMap<Text, Text>,
}

impl Settings {
    /// How long a call usually waits.
    pub const WAIT: Duration = Duration::from_secs(20);
    /// How long a summary may usually take.
    pub const TIMEOUT: Duration = Duration::from_secs(120);
    /// How many are usually made at once.
    pub const AT_ONCE: usize = 4;
    /// The longest answer, usually.
    pub const OUTPUT_TOKENS: Tokens = Tokens(4_096);

    /// Returns settings with the usual bounds.
    pub fn new(upstream: Upstream, models: Vec<Target>) -> Settings {
        Settings {
            upstream,
            models,
            mode: Mode::Separate,
            wait: Settings::WAIT,
            timeout: Settings::TIMEOUT,
            at_once: Settings::AT_ONCE,
            output_tokens: Settings::OUTPUT_TOKENS,
            prompts: BTreeMap::new(),
        }
    }
}

/// Who hears what becomes of summaries.
type Tell = Arc<dyn Fn(&Told) + Send + Sync>;

/// Something that became of a summary.
#[derive(Clone, Debug, PartialEq)]
pub enum Told {
    /// It was made.
    Made(Noted),
    /// It could not be made, for good.
    Failed(Noted),
    /// It could not be made now, and may be tried again.
    Unmade {
        /// The conversation.
        at: At,
        /// What it would have been of.
        subject: Subject,
        /// Why.
        why: Text,
    },
    /// Too many are waiting already; a later plan finds it again.
    Dropped {
        /// The conversation.
        at: At,
        /// What it would have been of.
        subject: Subject,
    },
}

/// Who makes summaries. Cloning is cheap and shares everything.
#[derive(Clone)]
pub struct Summarizer {
    shared: Arc<Shared>,
    tell: Option<Tell>,
}

struct Shared {
    settings: Settings,
    /// Tells it from others in this process.
    number: u64,
    urgent: Arc<Semaphore>,
    background: Arc<Semaphore>,
    waiting: AtomicUsize,
    /// What is being made, by conversation and key; whoever waits for it hears when it is over.
    under_way: Mutex<HashMap<(At, Text), watch::Receiver<()>>>,
}

/// A summary that is being made in this process; it is over when this is dropped, however that comes.
pub(crate) struct UnderWay {
    shared: Arc<Shared>,
    of: (At, Text),
    /// Dropped with it, which is what others wait for.
    over: watch::Sender<()>,
}

impl UnderWay {
    /// Returns what to wait for.
    pub(crate) fn over(&self) -> watch::Receiver<()> {
        self.over.subscribe()
    }
}

impl Drop for UnderWay {
    fn drop(&mut self) {
        self.shared.under_way.lock().unwrap_or_else(PoisonError::into_inner).remove(&self.of);
    }
}

/// A place in the queue of the background.
pub(crate) struct Queued(Arc<Shared>);

impl Drop for Queued {
    fn drop(&mut self) {
        self.0.waiting.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Summarizer {
    /// Returns one with these settings. One that has nobody to ask is an error.
    pub fn of(settings: Settings) -> Result<Summarizer, Error> {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let refused = |what: &str, hint: &str| Err(recto::Error::settings(what, hint).into());
        if settings.models.is_empty() && settings.mode == Mode::Separate {
            return refused("the summarizer has no model", "name at least one model, the preferred one first");
        }
        if settings.models.len() > MODELS_MAX {
            return refused("the summarizer has too many models", &format!("name at most {MODELS_MAX}"));
        }
        if settings.at_once == 0 || settings.at_once > AT_ONCE_MAX {
            let hint = format!("give a number from 1 to {AT_ONCE_MAX}");
            return refused("so many summaries can't be made at once", &hint);
        }
        if settings.output_tokens == Tokens(0) {
            return refused("a summary can't be without words", "allow it some tokens of output");
        }
        let places = || Arc::new(Semaphore::new(settings.at_once));
        let shared = Shared {
            number: NEXT.fetch_add(1, Ordering::Relaxed),
            urgent: places(),
            background: places(),
            waiting: AtomicUsize::new(0),
            under_way: Mutex::default(),
            settings,
        };
        Ok(Summarizer { shared: Arc::new(shared), tell: None })
    }

    /// Has somebody hear what becomes of summaries.
    #[must_use]
    pub fn telling(self, tell: impl Fn(&Told) + Send + Sync + 'static) -> Summarizer {
        Summarizer { tell: Some(Arc::new(tell)), ..self }
    }

    /// Returns its settings.
    pub fn settings(&self) -> &Settings {
        &self.shared.settings
    }

    /// Returns the prompt that a want is made with; `None` if nobody knows it.
    pub(crate) fn prompt(&self, want: &Want) -> Option<Text> {
        match &want.prompt {
            None => Some(default_prompt(want.subject).into()),
            Some(name) => self.settings().prompts.get(name).cloned(),
        }
    }

    /// Returns what a model is told to make a summary, without any secrets; `None` if the words are not those that it
    /// was wanted for any more, or nobody knows the prompt.
    pub fn input(&self, want: &Want, request: &Request<'_>) -> Option<Input> {
        // Beside what its page would not show: whoever condenses it may be somebody else.
        let screen = Screen::of(&request.policy.redact).ok()?.keyed(request.log.screen().key()).strict();
        want.input(request, &self.prompt(want)?, &|text| screen.text(text))
    }

    /// Asks for a summary, of one model after the other, and returns what came of it and what it cost. Nothing is kept:
    /// that is for whoever asks.
    pub async fn ask(&self, want: &Want, input: Input) -> (Note, Spent) {
        let Tried { came, spent } = Asking { want: want.clone(), input, own: None }.ask(self.settings()).await;
        let note = match came {
            Came::Made { text, model } => Note::Made { text, model },
            Came::Refused { why } | Came::Unreached { why } => Note::Failed { why },
        };
        (note, spent)
    }

    /// Returns the key under which a want and its note are kept: its words, and those of its prompt.
    pub fn key(&self, want: &Want) -> Text {
        let prompt = self.prompt(want).map_or(Digest::default(), |prompt| Digest::of(prompt.as_bytes()));
        Digest::of(format!("{} {prompt}", want.key).as_bytes()).to_string().into()
    }

    /// Returns until when others leave alone what is begun now, in milliseconds from now.
    pub(crate) fn lease_ms(&self) -> i64 {
        i64::try_from((self.settings().timeout + LEASE_SLACK).as_millis()).unwrap_or(i64::MAX)
    }

    pub(crate) fn number(&self) -> u64 {
        self.shared.number
    }

    pub(crate) fn tell(&self, told: &Told) {
        if let Some(tell) = &self.tell {
            tell(told);
        }
    }

    /// Begins one, or returns what to wait for if it is being made already.
    pub(crate) fn begin(&self, at: &At, key: &Text) -> Result<UnderWay, watch::Receiver<()>> {
        let of = (at.clone(), key.clone());
        let mut under_way = self.shared.under_way.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(over) = under_way.get(&of) {
            return Err(over.clone());
        }
        let (sender, over) = watch::channel(());
        under_way.insert(of.clone(), over);
        Ok(UnderWay { shared: self.shared.clone(), of, over: sender })
    }

    /// Waits until nothing is being made, and nothing waits to be.
    pub(crate) async fn rest(&self) {
        loop {
            let next = {
                let under_way = self.shared.under_way.lock().unwrap_or_else(PoisonError::into_inner);
                under_way.values().next().cloned()
            };
            match next {
                Some(mut over) => while over.changed().await.is_ok() {},
                None if self.shared.waiting.load(Ordering::Relaxed) == 0 => return,
                None => tokio::task::yield_now().await,
            }
        }
    }

    /// Returns what to wait for if one is being made.
    pub(crate) fn under_way(&self, at: &At, key: &Text) -> Option<watch::Receiver<()>> {
        let under_way = self.shared.under_way.lock().unwrap_or_else(PoisonError::into_inner);
        under_way.get(&(at.clone(), key.clone())).cloned()
    }

    /// Takes a place in the queue of the background, unless it is full.
    pub(crate) fn queue(&self) -> Option<Queued> {
        let queued = Queued(self.shared.clone());
        // Dropped, it takes itself off again.
        (self.shared.waiting.fetch_add(1, Ordering::Relaxed) < QUEUE_MAX).then_some(queued)
    }

    /// Where one waits until it may be made.
    pub(crate) fn places(&self, is_urgent: bool) -> Arc<Semaphore> {
        if is_urgent { self.shared.urgent.clone() } else { self.shared.background.clone() }
    }
}

impl fmt::Debug for Summarizer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Summarizer").field("settings", self.settings()).finish_non_exhaustive()
    }
}
