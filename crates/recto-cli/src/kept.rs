//! The store: opened in one place, and asked by way of the engine.

use crate::args::StoreArgs;
use crate::codes::Code;
use crate::config::Config;
use crate::failure::Failure;
use crate::{interrupt, talk};
use recto::edit::Handle;
use recto::note::{Note, Subject};
use recto_engine::store::sqlite::Sqlite;
use recto_engine::summarize::Told;
use recto_engine::{At, Conversation, Engine, Error, Tenant};
use std::future::Future;
use std::path::{Path, PathBuf};
use std::pin::pin;
use std::time::Duration;
use tokio::runtime::{Builder, Runtime};
use tokio::time::timeout;

/// How often a long piece of work looks whether Ctrl-C was pressed.
const LOOK: Duration = Duration::from_millis(50);

/// An open store.
#[derive(Debug)]
pub(crate) struct Kept {
    pub(crate) engine: Engine<Sqlite>,
    waiting: Waiting,
}

/// What waits for the engine.
#[derive(Debug)]
pub(crate) struct Waiting {
    runtime: Runtime,
}

impl Kept {
    /// Opens the store that is meant; there must be one.
    pub(crate) fn open(args: &StoreArgs, config: &Config) -> Result<Kept, Failure> {
        let path = place(args, config)?;
        if path.exists() { Kept::at_path(&path) } else { Err(missing(&path)) }
    }

    /// Opens the store that is meant, and makes it if there is none.
    pub(crate) fn open_or_make(args: &StoreArgs, config: &Config) -> Result<Kept, Failure> {
        Kept::at_path(&place(args, config)?)
    }

    /// Has summaries made where policies want them, if the configuration says by whom.
    pub(crate) fn summarizing(self, config: &Config) -> Result<Kept, Failure> {
        Ok(match config.summarizer()? {
            Some(summarizer) => Kept { engine: self.engine.with_summarizer(summarizer.telling(tell)), ..self },
            None => self,
        })
    }

    /// Shows the summaries that were made, as pages would; nobody is asked. Where nobody could be, that is said.
    pub(crate) fn showing_summaries(self, config: &Config) -> Kept {
        match config.summarizer() {
            Ok(Some(summarizer)) => Kept { engine: self.engine.with_summarizer(summarizer), ..self },
            Ok(None) => self,
            Err(failure) => {
                talk::note(&format!("summaries are not shown: {}", failure.parts().1));
                self
            }
        }
    }

    /// Opens the store that is meant if it holds a conversation of this name, and says so; else it says why not.
    pub(crate) fn holding(name: &str, args: &StoreArgs, config: &Config) -> Result<Result<Kept, String>, Failure> {
        let Some(path) = config.store(args.store.as_deref()).map(|it| it.value) else {
            return Ok(Err("and there is no store".into()));
        };
        if !path.exists() {
            return Ok(Err(format!("and there is no store at {} that could hold it", path.display())));
        }
        let opened = match Sqlite::open(&path) {
            Ok(opened) => opened,
            Err(error) => return Ok(Err(format!("and the store {} cannot be used: {error}", path.display()))),
        };
        let kept = Kept { engine: Engine::over(opened), waiting: Waiting::new()? };
        match kept.run(kept.engine.conversation(&kept.at(name))) {
            Err(failure) if failure.is_not_found() => Ok(Err(format!(
                "and the store {} has no conversation {name:?}; `recto list` lists them",
                path.display()
            ))),
            Err(failure) => Err(failure),
            Ok(_) => {
                note(&path);
                Ok(Ok(kept))
            }
        }
    }

    fn at_path(path: &Path) -> Result<Kept, Failure> {
        note(path);
        let opened = Sqlite::open(path)
            .map_err(|error| Failure::from(error).during(format!("cannot open the store {}", path.display())))?;
        Ok(Kept { engine: Engine::over(opened), waiting: Waiting::new()? })
    }

    /// Returns the place of a conversation.
    pub(crate) fn at(&self, name: &str) -> At {
        At::new(&Tenant::default(), name)
    }

    /// Returns a conversation's row.
    pub(crate) fn conversation(&self, name: &str) -> Result<Conversation, Failure> {
        let found = self.run(self.engine.conversation(&self.at(name)));
        found.map_err(|failure| {
            let is_missing = failure.is_not_found();
            if is_missing { failure.hinting("`recto list` lists the conversations that are kept") } else { failure }
        })
    }

    /// Returns the path of its file.
    pub(crate) fn path(&self) -> &Path {
        self.engine.store().path()
    }

    /// Waits for what the engine does; where Ctrl-C is heeded, it ends between two transactions.
    pub(crate) fn run<T>(&self, work: impl Future<Output = Result<T, Error>>) -> Result<T, Failure> {
        self.waiting.run(work)
    }
}

impl Waiting {
    /// Returns what can wait.
    pub(crate) fn new() -> Result<Waiting, Failure> {
        let made = Builder::new_current_thread().enable_all().build();
        let runtime =
            made.map_err(|error| Failure::of(Code::StoreFailed, "cannot wait for a store").because(error.to_string()))?;
        Ok(Waiting { runtime })
    }

    /// Waits for what an engine does.
    pub(crate) fn run<T>(&self, work: impl Future<Output = Result<T, Error>>) -> Result<T, Failure> {
        self.runtime.block_on(async {
            let mut work = pin!(work);
            loop {
                match timeout(LOOK, work.as_mut()).await {
                    Ok(done) => return done.map_err(Failure::from),
                    Err(_) => interrupt::check()?,
                }
            }
        })
    }
}

/// Returns the file that is meant.
pub(crate) fn place(args: &StoreArgs, config: &Config) -> Result<PathBuf, Failure> {
    config.store(args.store.as_deref()).map(|it| it.value).ok_or_else(|| {
        Failure::of(Code::NoStore, "nothing says where the store is")
            .hinting("name it with --store, RECTO_STORE or the configuration, or set HOME")
    })
}

/// Says on stderr which summaries could not be made.
pub(crate) fn tell(told: &Told) {
    match told {
        Told::Made(_) => {}
        Told::Failed(noted) => {
            if let Note::Failed { why } = &noted.note {
                talk::note(&format!("compaction_failed: no summary of {}: {why}", handles(&noted.want.subject)));
            }
        }
        Told::Unmade { subject, why, .. } => {
            talk::note(&format!("no summary of {} yet: {why}", handles(subject)));
        }
        Told::Dropped { subject, .. } => {
            talk::note(&format!("no summary of {} yet: too many are being made", handles(subject)));
        }
    }
}

/// The handles of what a summary is of.
pub(crate) fn handles(subject: &Subject) -> String {
    match subject {
        Subject::Part(part) => Handle::entry(part.seq).to_string(),
        Subject::Range(span) | Subject::Human(span) => {
            format!("{}-{}", Handle::entry(span.first), Handle::entry(span.last))
        }
    }
}

/// Says on stderr which store is used.
pub(crate) fn note(path: &Path) {
    talk::note(&format!("store: {}", path.display()));
}

fn missing(path: &Path) -> Failure {
    Failure::of(Code::NoStore, format!("there is no store at {}", path.display()))
        .hinting("`recto import FILE` makes it; --store names another")
}
