//! The store: opened in one place, and asked by way of the engine.

use crate::args::StoreArgs;
use crate::codes::Code;
use crate::config::Config;
use crate::failure::Failure;
use crate::{interrupt, talk};
use recto::edit::Handle;
use recto::note::{Note, Subject};
use recto::redact::Redact;
use recto_engine::store::any::Any;
#[cfg(feature = "postgres")]
use recto_engine::store::postgres::{Postgres, Settings};
use recto_engine::store::sqlite::Sqlite;
use recto_engine::summarize::Told;
use recto_engine::{At, Conversation, Engine, Error, Tenant};
use std::fmt;
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
    pub(crate) engine: Engine<Any>,
    waiting: Waiting,
}

/// Where a store is.
#[derive(Clone, Debug)]
pub(crate) enum Location {
    /// In a file.
    File(PathBuf),
    /// In a database.
    #[cfg(feature = "postgres")]
    Database(Box<Settings>),
}

/// What waits for the engine.
#[derive(Debug)]
pub(crate) struct Waiting {
    runtime: Runtime,
}

impl Kept {
    /// Opens the store that is meant; there must be one.
    pub(crate) fn open(args: &StoreArgs, config: &Config) -> Result<Kept, Failure> {
        match place(args, config)? {
            Location::File(path) if !path.exists() => Err(missing(&path)),
            place => Ok(Kept::open_at(&place)?.at_rest(config)),
        }
    }

    /// Opens the store that is meant, and makes it if there is none.
    pub(crate) fn open_or_make(args: &StoreArgs, config: &Config) -> Result<Kept, Failure> {
        Ok(Kept::open_at(&place(args, config)?)?.at_rest(config))
    }

    /// Writes nothing down that the configuration keeps out of the store.
    fn at_rest(self, config: &Config) -> Kept {
        let Some(kinds) = &config.layer.redact_at_rest else { return self };
        let find = kinds.value.iter().map(|kind| kind.as_str().into()).collect();
        Kept { engine: self.engine.redacting_at_rest(Redact { find, ..Redact::default() }), ..self }
    }

    /// Has summaries made where policies want them, if the configuration says by whom.
    pub(crate) fn summarizing(self, config: &Config) -> Result<Kept, Failure> {
        self.summarizing_heard_by(config, |_| {})
    }

    /// The same, and has somebody else hear of them as well.
    pub(crate) fn summarizing_heard_by(
        self,
        config: &Config,
        hear: impl Fn(&Told) + Send + Sync + 'static,
    ) -> Result<Kept, Failure> {
        let tell = move |told: &Told| {
            hear(told);
            tell(told);
        };
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
        let place = Location::of(path)?;
        if let Location::File(path) = &place
            && !path.exists()
        {
            return Ok(Err(format!("and there is no store at {place} that could hold it")));
        }
        let waiting = Waiting::new()?;
        let opened = match waiting.run(place.open()) {
            Ok(opened) => opened,
            Err(failure) => return Ok(Err(format!("and the store {place} cannot be used: {}", failure.parts().1))),
        };
        let kept = Kept { engine: Engine::over(opened), waiting }.at_rest(config);
        match kept.run(kept.engine.conversation(&kept.at(name))) {
            Err(failure) if failure.is_not_found() => {
                Ok(Err(format!("and the store {place} has no conversation {name:?}; `recto list` lists them")))
            }
            Err(failure) => Err(failure),
            Ok(_) => {
                note(&place);
                kept.warn();
                Ok(Ok(kept))
            }
        }
    }

    fn open_at(place: &Location) -> Result<Kept, Failure> {
        note(place);
        let waiting = Waiting::new()?;
        let opened = waiting.run(place.open());
        let opened = opened.map_err(|failure| failure.during(format!("cannot open the store {place}")))?;
        let kept = Kept { engine: Engine::over(opened), waiting };
        kept.warn();
        Ok(kept)
    }

    /// Says on stderr what puts at risk what is kept.
    fn warn(&self) {
        match self.engine.store() {
            Any::Sqlite(_) | Any::Memory(_) => {}
            #[cfg(feature = "postgres")]
            Any::Postgres(store) => {
                store.warnings().iter().for_each(|warning| talk::warn(&format!("warning: {warning}")));
            }
        }
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

    /// Returns its file, if it is one.
    pub(crate) fn file(&self) -> Option<&Sqlite> {
        match self.engine.store() {
            Any::Sqlite(store) => Some(store),
            _ => None,
        }
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

impl Location {
    /// Returns whether a name is the address of a database.
    pub(crate) fn is_database(name: &str) -> bool {
        name.starts_with("postgres://") || name.starts_with("postgresql://")
    }

    /// Reads where a store is: a file, or a database.
    pub(crate) fn of(path: PathBuf) -> Result<Location, Failure> {
        match path.to_str().filter(|name| Location::is_database(name)) {
            None => Ok(Location::File(path)),
            Some(address) => Location::database(address),
        }
    }

    #[cfg(feature = "postgres")]
    fn database(address: &str) -> Result<Location, Failure> {
        let settings: Settings = address.parse()?;
        Ok(Location::Database(Box::new(match std::env::var("PGPASSWORD") {
            Ok(password) => settings.or_password(&password),
            Err(_) => settings,
        })))
    }

    #[cfg(not(feature = "postgres"))]
    fn database(_: &str) -> Result<Location, Failure> {
        Err(Failure::of(Code::BadSettings, "this recto was built without PostgreSQL")
            .hinting("build it with the feature `postgres`, or name a file"))
    }

    /// Returns how a place is shown: without passwords.
    pub(crate) fn shown(path: &Path) -> String {
        match path.to_str().filter(|name| Location::is_database(name)) {
            None => path.display().to_string(),
            Some(address) => {
                Location::database(address).map_or("an address that can't be read".into(), |it| it.to_string())
            }
        }
    }

    /// Returns the file, if it is one.
    pub(crate) fn file(&self) -> Option<&Path> {
        match self {
            Location::File(path) => Some(path),
            #[cfg(feature = "postgres")]
            Location::Database(_) => None,
        }
    }

    /// Opens it, and makes it if there is none.
    pub(crate) async fn open(&self) -> Result<Any, Error> {
        match self {
            Location::File(path) => Ok(Any::Sqlite(Sqlite::open(path)?)),
            #[cfg(feature = "postgres")]
            Location::Database(settings) => Ok(Any::Postgres(Postgres::open((**settings).clone()).await?)),
        }
    }
}

impl fmt::Display for Location {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Location::File(path) => write!(f, "{}", path.display()),
            #[cfg(feature = "postgres")]
            Location::Database(settings) => write!(f, "{settings}"),
        }
    }
}

/// Returns the store that is meant.
pub(crate) fn place(args: &StoreArgs, config: &Config) -> Result<Location, Failure> {
    let path = config.store(args.store.as_deref()).map(|it| it.value).ok_or_else(|| {
        Failure::of(Code::NoStore, "nothing says where the store is")
            .hinting("name it with --store, RECTO_STORE or the configuration, or set HOME")
    })?;
    Location::of(path)
}

/// Returns the failure to take something else for the address of a database.
pub(crate) fn no_database(name: &str) -> Failure {
    Failure::of(Code::BadSettings, format!("{name:?} is not the address of a database"))
        .hinting("write it like postgres://recto@db1/recto")
}

/// Returns the failure to do with a database what can be done with a file alone.
pub(crate) fn no_file(what: &str) -> Failure {
    Failure::of(Code::BadSettings, format!("{what} is for stores in a file, and this one is in a database"))
        .hinting("use the database's own tools, such as pg_dump and pg_restore")
}

/// Says on stderr which summaries could not be made.
pub(crate) fn tell(told: &Told) {
    match told {
        Told::Made(_) => {}
        Told::Failed(noted) => {
            if let Note::Failed { why } = &noted.note {
                talk::warn(&format!("compaction_failed: no summary of {}: {why}", handles(&noted.want.subject)));
            }
        }
        Told::Unmade { subject, why, .. } => {
            talk::warn(&format!("no summary of {} yet: {why}", handles(subject)));
        }
        Told::Dropped { subject, .. } => {
            talk::warn(&format!("no summary of {} yet: too many are being made", handles(subject)));
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
pub(crate) fn note(place: &Location) {
    talk::note(&format!("store: {place}"));
}

/// Returns the failure to find a store.
pub(crate) fn missing(path: &Path) -> Failure {
    Failure::of(Code::NoStore, format!("there is no store at {}", path.display()))
        .hinting("`recto import FILE` makes it; --store names another")
}
