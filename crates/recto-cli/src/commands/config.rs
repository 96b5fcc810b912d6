//! `recto config`: which settings hold here, and why.

use crate::args::ConfigArgs;
use crate::config::{
    ChosenBy, Config, Layer, Origin, ProgramSettings, Retention, ServerSettings, Set, SummarizerTold, UpstreamLayer,
};
use crate::failure::Failure;
use crate::kept::Location;
use crate::models::Own;
use crate::paint::Colour;
use crate::settings::{MODEL, POLICY};
use crate::table::{self, Side};
use crate::talk;
use recto::wire::Wire;
use recto::{Policy, Tokens};
use recto_engine::summarize::Mode;
use recto_engine::upstream::ClientKey;
use serde::Serialize;
use std::net::SocketAddr;
use std::path::PathBuf;

/// Prints the settings that hold with these options.
pub(crate) fn run(args: &ConfigArgs, config: &Config) -> Result<(), Failure> {
    let store = config.store(args.store.store.as_deref());
    let output = Output::of(Layer::of(&args.settings).over(config.layer.clone()), store, config);
    if args.json { talk::json(&output) } else { talk::text(&output.table()) }
}

/// What `--json` prints; `recto config --help` tells its shape.
#[derive(Serialize)]
struct Output {
    defaults: Defaults,
    store: Kept,
    server: ServerOutput,
    log: LogOutput,
    retention: RetentionOutput,
    tracing: TracingOutput,
    output: Look,
    upstream: Vec<UpstreamOutput>,
    summarizer: Option<SummarizerOutput>,
    programs: Vec<ProgramOutput>,
    models: ModelsOutput,
    chosen_by: &'static str,
    files: Vec<FileOutput>,
}

#[derive(Serialize)]
struct Defaults {
    #[serde(rename = "for")]
    model: Value<String>,
    wire: Value<Option<Wire>>,
    window: Value<Option<Tokens>>,
    reserve: Value<Option<Tokens>>,
    policy: Value<String>,
}

#[derive(Serialize)]
struct Kept {
    path: Value<Option<String>>,
    redact_at_rest: Value<Option<Vec<String>>>,
}

#[derive(Serialize)]
struct ServerOutput {
    listen: SocketAddr,
    hosts: Vec<String>,
    shutdown_seconds: u64,
    body_mib: usize,
    requests_per_tenant: usize,
}

#[derive(Serialize)]
struct LogOutput {
    format: &'static str,
    level: &'static str,
    requests: bool,
}

#[derive(Serialize)]
struct RetentionOutput {
    days: Option<u32>,
    keep: Vec<String>,
}

#[derive(Serialize)]
struct TracingOutput {
    endpoint: Option<String>,
}

#[derive(Serialize)]
struct Look {
    color: Value<&'static str>,
}

/// A provider; of its key, the name of the variable alone, and of headers their names.
#[derive(Serialize)]
struct UpstreamOutput {
    name: String,
    url: Option<String>,
    wire: Option<Wire>,
    key_env: Option<String>,
    client_key: Option<&'static str>,
    headers: Vec<String>,
    remember: &'static str,
    ca: Option<String>,
    models: Option<Vec<String>>,
    plain_http: bool,
    timeout_seconds: u64,
    forward_timeout_seconds: u64,
    retries: u32,
    #[serde(flatten)]
    origin: OriginOutput,
    #[serde(skip)]
    told: String,
}

/// Who makes summaries; of prompts, their names.
#[derive(Serialize)]
struct SummarizerOutput {
    upstream: String,
    url: Option<String>,
    models: Vec<String>,
    mode: &'static str,
    wait_seconds: u64,
    timeout_seconds: u64,
    background: usize,
    output_tokens: Tokens,
    prompts: Vec<String>,
}

#[derive(Serialize)]
struct ProgramOutput {
    name: &'static str,
    path: Option<String>,
    model: Option<String>,
    arguments: Vec<String>,
    turn_limit_seconds: u64,
    silence_limit_seconds: u64,
}

#[derive(Serialize)]
struct ModelsOutput {
    own: Vec<OwnOutput>,
}

#[derive(Serialize)]
struct OwnOutput {
    name: String,
    #[serde(flatten)]
    origin: OriginOutput,
    #[serde(skip)]
    told: String,
}

#[derive(Serialize)]
struct FileOutput {
    path: String,
    found: bool,
}

#[derive(Serialize)]
struct Value<T> {
    value: T,
    #[serde(flatten)]
    origin: OriginOutput,
    /// The origin as a table shows it.
    #[serde(skip)]
    told: String,
}

#[derive(Serialize)]
#[serde(tag = "origin", rename_all = "snake_case")]
enum OriginOutput {
    Default,
    File { file: String, line: usize },
    Environment { variable: &'static str },
    Option { option: &'static str },
}

impl<T> Value<T> {
    fn of(value: T, origin: &Origin) -> Value<T> {
        let told = origin.to_string();
        let origin = match origin {
            Origin::Default => OriginOutput::Default,
            Origin::File { path, place } => OriginOutput::File { file: path.display().to_string(), line: place.line },
            Origin::Environment(variable) => OriginOutput::Environment { variable },
            Origin::Option(option) => OriginOutput::Option { option },
        };
        Value { value, origin, told }
    }
}

impl Output {
    fn of(layer: Layer, store: Option<Set<PathBuf>>, config: &Config) -> Output {
        let model = layer.model.unwrap_or(Set { value: MODEL.into(), origin: Origin::Default });
        let policy = layer.policy.unwrap_or(Set { value: POLICY.into(), origin: Origin::Default });
        let Set { value: colour, origin } = config.colour();
        Output {
            defaults: Defaults {
                model: Value::of(model.value, &model.origin),
                wire: maybe(layer.wire),
                window: maybe(layer.window),
                reserve: maybe(layer.reserve),
                policy: Value::of(policy_shown(&policy), &policy.origin),
            },
            store: Kept {
                path: maybe(store.map(|it| Set { value: Location::shown(&it.value), origin: it.origin })),
                redact_at_rest: maybe(layer.redact_at_rest),
            },
            server: ServerOutput::of(config.server()),
            log: LogOutput::of(config),
            retention: RetentionOutput::of(config.retention()),
            tracing: TracingOutput { endpoint: config.collector() },
            output: Look { color: Value::of(Colour::name(colour), &origin) },
            upstream: config.upstreams().iter().map(UpstreamOutput::of).collect(),
            summarizer: config.summarizer_told().map(SummarizerOutput::of),
            programs: config.programs().into_iter().map(ProgramOutput::of).collect(),
            models: ModelsOutput { own: config.models.own.iter().map(OwnOutput::of).collect() },
            chosen_by: match config.chosen_by {
                ChosenBy::Search => "search",
                ChosenBy::Option => "option",
                ChosenBy::Environment => "environment",
            },
            files: config.looked.iter().map(FileOutput::of).collect(),
        }
    }

    fn table(&self) -> String {
        let Defaults { model, wire, window, reserve, policy } = &self.defaults;
        let Kept { path, redact_at_rest } = &self.store;
        let kinds = redact_at_rest.value.as_ref().map_or("nothing".into(), |kinds| kinds.join(", "));
        let tokens = |value: &Option<Tokens>, default: &str| match value {
            Some(Tokens(0)) => "0".into(),
            Some(tokens) => tokens.to_string(),
            None => default.into(),
        };
        let row = |key: &str, value: &str, origin: &str| [key, value, origin].map(talk::harmless);
        let rows = [
            row("key", "value", "origin"),
            row("defaults.for", &model.value, &model.told),
            row("defaults.wire", wire.value.map_or("the model's", Wire::name), &wire.told),
            row("defaults.window", &tokens(&window.value, "the model's"), &window.told),
            row("defaults.reserve", &tokens(&reserve.value, "the model's"), &reserve.told),
            row("defaults.policy", &policy.value, &policy.told),
            row("store.path", path.value.as_deref().unwrap_or("none"), &path.told),
            row("store.redact_at_rest", &kinds, &redact_at_rest.told),
            row("output.color", self.output.color.value, &self.output.color.told),
        ];
        let why = match self.chosen_by {
            "option" => "the file that --config names",
            "environment" => "the file that RECTO_CONFIG names",
            _ => "files, the nearest first",
        };
        let files = self.files.iter().map(|file| {
            let state = if file.found { "found    " } else { "not found" };
            format!("  {state}  {}", file.path)
        });
        let values = table::aligned(&rows, [Side::Left; 3]);
        let programs: Vec<String> = self.programs.iter().map(ProgramOutput::told).collect();
        let programs = format!("programs:\n{}", programs.join("\n"));
        let upstream = UpstreamOutput::table(&self.upstream);
        let summarizer = self.summarizer.as_ref().map_or("summarizer: nobody".into(), SummarizerOutput::told);
        format!(
            "{values}\n\n{}\n{}\n\n{upstream}\n\n{summarizer}\n\n{programs}\n\n{}\n\n{why}:\n{}",
            self.server.told(),
            self.upkeep(),
            self.models.told(),
            files.collect::<Vec<_>>().join("\n")
        )
    }
}

impl Output {
    /// What whoever runs a server has set.
    fn upkeep(&self) -> String {
        let LogOutput { format, level, requests } = self.log;
        let requests = if requests { "each request is told of" } else { "requests are not told of" };
        let RetentionOutput { days, keep } = &self.retention;
        let days = days.map_or("never".into(), |days| format!("after {days} days"));
        let keep = if keep.is_empty() { String::new() } else { format!(", but for {}", keep.join(", ")) };
        let traces = self.tracing.endpoint.as_deref().unwrap_or("nowhere");
        talk::harmless(&format!(
            "log: {format}, from {level} up; {requests}\nconversations are erased by themselves: {days}{keep}\ntraces go: {traces}"
        ))
    }
}

impl LogOutput {
    fn of(config: &Config) -> LogOutput {
        let (spelling, level) = config.log();
        LogOutput { format: spelling.name(), level: level.name(), requests: config.tells_requests() }
    }
}

impl RetentionOutput {
    fn of(Retention { days, keep }: Retention) -> RetentionOutput {
        RetentionOutput { days, keep }
    }
}

impl ServerOutput {
    fn of(settings: ServerSettings) -> ServerOutput {
        ServerOutput {
            listen: settings.listen,
            hosts: settings.hosts,
            shutdown_seconds: settings.shutdown.as_secs(),
            body_mib: settings.body_bytes_max >> 20,
            requests_per_tenant: settings.requests_per_tenant,
        }
    }

    fn told(&self) -> String {
        let ServerOutput { listen, hosts, shutdown_seconds, body_mib, requests_per_tenant } = self;
        let hosts = if hosts.is_empty() { "none".into() } else { hosts.join(", ") };
        talk::harmless(&format!(
            "server: listens at {listen}; other hosts: {hosts}; bodies up to {body_mib} MiB, {requests_per_tenant} requests \
             of a tenant at once, {shutdown_seconds} s to end"
        ))
    }
}

impl UpstreamOutput {
    fn of(layer: &UpstreamLayer) -> UpstreamOutput {
        let Value { origin, told, .. } = Value::of((), &layer.name.origin);
        let settings = layer.settings();
        UpstreamOutput {
            name: layer.name.value.clone(),
            url: layer.url.as_ref().map(|set| set.value.clone()),
            wire: layer.wire.as_ref().map(|set| set.value),
            key_env: settings.key_env,
            client_key: settings.client_key.map(ClientKey::name),
            headers: settings.headers.into_keys().collect(),
            remember: settings.remember.name(),
            ca: settings.ca.map(|path| path.display().to_string()),
            models: layer.models.as_ref().map(|set| set.value.clone()),
            plain_http: settings.plain_http,
            timeout_seconds: settings.limits.whole.as_secs(),
            forward_timeout_seconds: settings.limits.forwarded.as_secs(),
            retries: settings.retries_max,
            origin,
            told,
        }
    }

    fn table(all: &[UpstreamOutput]) -> String {
        let header = ["upstream", "url", "wire", "key from", "remember", "models", "origin"].map(String::from);
        let row = |it: &UpstreamOutput| {
            let models = it.models.as_ref().map_or(format!("of {}", it.name), |models| models.join(", "));
            let cells = [
                it.name.as_str(),
                it.url.as_deref().unwrap_or("none"),
                it.wire.map_or("none", Wire::name),
                it.key_env.as_deref().unwrap_or("none"),
                it.remember,
                models.as_str(),
                it.told.as_str(),
            ];
            cells.map(talk::harmless)
        };
        let rows: Vec<[String; 7]> = std::iter::once(header).chain(all.iter().map(row)).collect();
        table::aligned(&rows, [Side::Left; 7])
    }
}

impl SummarizerOutput {
    fn of(told: SummarizerTold) -> SummarizerOutput {
        let SummarizerTold { upstream, url, models, numbers, prompts } = told;
        let mode = Mode::NAMES.iter().find(|(_, mode)| *mode == numbers.mode).map_or("", |(name, _)| name);
        SummarizerOutput {
            upstream,
            url,
            models,
            mode,
            wait_seconds: numbers.wait.as_secs(),
            timeout_seconds: numbers.timeout.as_secs(),
            background: numbers.at_once,
            output_tokens: numbers.output_tokens,
            prompts,
        }
    }

    fn told(&self) -> String {
        let models = if self.models.is_empty() { "none of its own".into() } else { self.models.join(", ") };
        talk::harmless(&format!(
            "summarizer: {} at {}; models: {models}; mode {}; a call waits {} s, a summary takes at most {} s; {} at once",
            self.upstream,
            self.url.as_deref().unwrap_or("none"),
            self.mode,
            self.wait_seconds,
            self.timeout_seconds,
            self.background
        ))
    }
}

impl ProgramOutput {
    fn of((name, settings): (&'static str, ProgramSettings)) -> ProgramOutput {
        ProgramOutput {
            name,
            path: settings.path.map(|path| path.display().to_string()),
            model: settings.model,
            arguments: settings.arguments,
            turn_limit_seconds: settings.turn_limit.as_secs(),
            silence_limit_seconds: settings.silence_limit.as_secs(),
        }
    }

    fn told(&self) -> String {
        let path = self.path.as_deref().unwrap_or("looked for on PATH");
        let model = self.model.as_ref().map_or("its own model".into(), |model| format!("model {model}"));
        let arguments = match self.arguments.len() {
            0 => String::new(),
            _ => format!("; arguments: {}", self.arguments.join(" ")),
        };
        let (turn, silence) = (self.turn_limit_seconds, self.silence_limit_seconds);
        let limits = format!("a turn at most {turn} s, silent at most {silence} s");
        talk::harmless(&format!("  {}  {path}; {model}; {limits}{arguments}", self.name))
    }
}

impl ModelsOutput {
    fn told(&self) -> String {
        let lines = self.own.iter().map(|own| talk::harmless(&format!("\n  {}  {}", own.name, own.told)));
        match self.own.len() {
            0 => "models: none of your own".into(),
            several => format!("models: {several} of your own{}", lines.collect::<String>()),
        }
    }
}

impl OwnOutput {
    fn of(own: &Own) -> OwnOutput {
        let Value { origin, told, .. } = Value::of((), &own.origin);
        OwnOutput { name: own.name.clone(), origin, told }
    }
}

impl FileOutput {
    fn of(looked: &crate::config::Looked) -> FileOutput {
        FileOutput { path: looked.path.display().to_string(), found: looked.is_found }
    }
}

fn maybe<T>(set: Option<Set<T>>) -> Value<Option<T>> {
    match set {
        Some(Set { value, origin }) => Value::of(Some(value), &origin),
        None => Value::of(None, &Origin::Default),
    }
}

/// A built-in policy by its name, a file by the path at which it is looked for.
fn policy_shown(policy: &Set<String>) -> String {
    let is_built_in = Policy::presets().iter().any(|preset| *preset.name == *policy.value);
    if is_built_in { policy.value.clone() } else { policy.as_path().display().to_string() }
}
