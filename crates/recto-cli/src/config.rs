//! Settings that need not be said each time: `recto.toml`, beside the work or in the user's folder.

mod file; // one file, read with positions
mod lookup; // where files are looked for
mod place; // where the store is
mod programs; // how programs are run
mod server; // how the server listens, and what it takes
mod summarizer; // who makes summaries
mod upkeep; // what whoever runs a server says
mod upstream; // who answers for a model

use crate::args::SettingsArgs;
use crate::failure::Failure;
use crate::kept::Location;
use crate::models::{FileModels, Models};
use crate::paint::{self, Colour};
use recto::Tokens;
use recto::error::Place;
use recto::wire::Wire;
use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};

pub(crate) use lookup::{ChosenBy, Looked};
pub(crate) use programs::{ProgramLayer, ProgramSettings};
pub(crate) use server::{ServerLayer, ServerSettings};
pub(crate) use summarizer::{SummarizerLayer, SummarizerTold};
pub(crate) use upkeep::{LogLayer, Retention, RetentionLayer, TracingLayer};
pub(crate) use upstream::{UpstreamLayer, is_alike};

/// What the configuration files say together.
#[derive(Clone, Debug, Default)]
pub(crate) struct Config {
    /// What they set.
    pub(crate) layer: Layer,
    /// The models that there are with theirs.
    pub(crate) models: Models,
    /// The files that were looked for, the nearest first.
    pub(crate) looked: Vec<Looked>,
    /// Why it is these files.
    pub(crate) chosen_by: ChosenBy,
}

/// Values that one file, or the command line, sets.
#[derive(Clone, Debug, Default)]
pub(crate) struct Layer {
    pub(crate) model: Option<Set<String>>,
    pub(crate) wire: Option<Set<Wire>>,
    pub(crate) window: Option<Set<Tokens>>,
    pub(crate) reserve: Option<Set<Tokens>>,
    pub(crate) policy: Option<Set<String>>,
    pub(crate) store: Option<Set<String>>,
    /// What is not even written to the store.
    pub(crate) redact_at_rest: Option<Set<Vec<String>>>,
    pub(crate) colour: Option<Set<Colour>>,
    /// Providers, in the order in which they are asked for a model.
    pub(crate) upstreams: Vec<UpstreamLayer>,
    /// Programs, by name.
    pub(crate) programs: BTreeMap<&'static str, ProgramLayer>,
    pub(crate) server: ServerLayer,
    pub(crate) summarizer: SummarizerLayer,
    pub(crate) log: LogLayer,
    pub(crate) retention: RetentionLayer,
    pub(crate) tracing: TracingLayer,
}

/// What one file says.
#[derive(Debug, Default)]
struct Content {
    layer: Layer,
    models: Option<FileModels>,
}

/// A value and where it comes from.
#[derive(Clone, Debug)]
pub(crate) struct Set<T> {
    pub(crate) value: T,
    pub(crate) origin: Origin,
}

/// A value is the same wherever it stands.
impl<T: PartialEq> PartialEq for Set<T> {
    fn eq(&self, other: &Set<T>) -> bool {
        self.value == other.value
    }
}

/// Where a value comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Origin {
    /// Nobody set it.
    Default,
    /// A configuration file.
    File { path: PathBuf, place: Place },
    /// A variable of the environment.
    Environment(&'static str),
    /// An option on the command line.
    Option(&'static str),
}

impl Config {
    /// Reads the file that the option or the environment names, else all that are found.
    pub(crate) fn load(option: Option<&Path>) -> Result<Config, Failure> {
        let (chosen_by, looked) = lookup::files(option);
        let mut layer = Layer::default();
        let mut models = Vec::new();
        // The others are in sight: the path itself, or the option.
        let named = |failure: Failure| match chosen_by {
            ChosenBy::Environment => failure.hinting("RECTO_CONFIG names this file"),
            ChosenBy::Search | ChosenBy::Option => failure,
        };
        for file in looked.iter().filter(|file| file.is_found) {
            let farther = file::read(&file.path).map_err(named)?;
            layer = layer.over(farther.layer);
            models.extend(farther.models);
        }
        let models = Models::of(&models).map_err(named)?;
        let config = Config { layer, models, looked, chosen_by };
        config.check_upstreams().map_err(named)?;
        config.check_summarizer().map_err(named)?;
        Ok(config)
    }

    /// Reads the files again, or those that are there now where they were looked for.
    pub(crate) fn again(&self) -> Result<Config, Failure> {
        let named = self.looked.first().filter(|_| self.chosen_by == ChosenBy::Option);
        Config::load(named.map(|file| file.path.as_path()))
    }

    /// Returns when to colour.
    pub(crate) fn colour(&self) -> Set<Colour> {
        match (paint::forbidden_by(), &self.layer.colour) {
            (Some(variable), _) => Set { value: Colour::Never, origin: Origin::Environment(variable) },
            (None, Some(set)) => set.clone(),
            (None, None) => Set { value: Colour::Auto, origin: Origin::Default },
        }
    }
}

impl Layer {
    /// Returns what the options say.
    pub(crate) fn of(args: &SettingsArgs) -> Layer {
        fn set<T: Clone>(value: Option<&T>, option: &'static str) -> Option<Set<T>> {
            value.map(|value| Set { value: value.clone(), origin: Origin::Option(option) })
        }
        Layer {
            model: set(args.target.model.as_ref(), "--for"),
            wire: set(args.target.wire.as_ref(), "--wire"),
            window: set(args.target.window.as_ref(), "--window"),
            reserve: set(args.target.reserve.as_ref(), "--reserve"),
            policy: set(args.policy.as_ref(), "--policy"),
            ..Layer::default()
        }
    }

    /// Returns what holds when this layer lies over another: key by key, the upper one wins.
    #[must_use]
    pub(crate) fn over(self, lower: Layer) -> Layer {
        let mut programs = lower.programs;
        for (name, program) in self.programs {
            let below = programs.remove(name).unwrap_or_default();
            programs.insert(name, program.over(below));
        }
        Layer {
            model: self.model.or(lower.model),
            wire: self.wire.or(lower.wire),
            window: self.window.or(lower.window),
            reserve: self.reserve.or(lower.reserve),
            policy: self.policy.or(lower.policy),
            store: self.store.or(lower.store),
            redact_at_rest: self.redact_at_rest.or(lower.redact_at_rest),
            colour: self.colour.or(lower.colour),
            upstreams: UpstreamLayer::all_over(self.upstreams, lower.upstreams),
            programs,
            server: self.server.over(lower.server),
            summarizer: self.summarizer.over(lower.summarizer),
            log: self.log.over(lower.log),
            retention: self.retention.over(lower.retention),
            tracing: self.tracing.over(lower.tracing),
        }
    }
}

impl Set<String> {
    /// Returns the value as a path: one that stands in a file is relative to that file.
    pub(crate) fn as_path(&self) -> PathBuf {
        match &self.origin {
            Origin::File { path, .. } if !Location::is_database(&self.value) => {
                path.parent().unwrap_or(Path::new("")).join(&self.value)
            }
            _ => PathBuf::from(&self.value),
        }
    }

    /// Says where a value that can't be used stands, if that isn't in sight.
    pub(crate) fn blamed(&self, failure: Failure) -> Failure {
        match self.place_told() {
            Some(place) => failure.because(place),
            None => failure,
        }
    }

    /// Returns where the value stands, if that is a file.
    pub(crate) fn place_told(&self) -> Option<String> {
        match &self.origin {
            Origin::File { path, place: Place { line, column } } => {
                Some(format!("set in {}, line {line}, column {column}", path.display()))
            }
            _ => None,
        }
    }
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Origin::Default => f.write_str("default"),
            Origin::File { path, place } => write!(f, "{}:{}", path.display(), place.line),
            Origin::Environment(variable) => write!(f, "environment: {variable}"),
            Origin::Option(option) => write!(f, "option: {option}"),
        }
    }
}
