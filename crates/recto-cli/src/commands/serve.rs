//! `recto serve`: the gateway, until it is told to end.

use super::demo;
use crate::args::ServeArgs;
use crate::codes::Code;
use crate::config::{Config, Layer, LogLayer, Origin, Set};
use crate::failure::Failure;
use crate::interrupt::Signal;
use crate::kept::Kept;
use crate::server::{self, Metrics, Server, Setup, Tracer, Web};
use crate::{interrupt, talk};
use recto_engine::store::any::Any;
use recto_engine::store::memory::Memory;
use recto_engine::{Engine, Store};
use std::io::{self, IsTerminal};
use std::net::SocketAddr;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::runtime::{Builder, Runtime};
use tokio::time::timeout;

/// How long tasks that nobody waits for may take to end.
const LEFTOVERS_TIME_MAX: Duration = Duration::from_secs(1);

/// Listens and answers.
pub(crate) fn run(args: &ServeArgs, config: &Config) -> Result<(), Failure> {
    let mut config = config.clone();
    config.layer = options(args).over(config.layer);
    config.speak_as_configured();
    let (metrics, summarizers) = (Arc::new(Metrics::default()), config.clone());
    let setup = Setup::of(config);
    setup.check_policy()?;
    let runtime = Builder::new_multi_thread().enable_all().build();
    let runtime = runtime.map_err(|error| cannot("cannot start", &error))?;
    allow_many_connections();
    let done = if args.demo {
        let engine = Engine::over(Any::Memory(Memory::default()));
        runtime.block_on(demo::load(&engine))?;
        talk::note("demo: the conversation \"late-fees\" is loaded; nothing is kept when the server ends");
        listen(&runtime, args, setup, metrics, engine)
    } else {
        let heard = metrics.clone();
        let kept = Kept::open_or_make(&args.store, &summarizers)?;
        let engine = kept.summarizing_heard_by(&summarizers, move |told| heard.summary(told))?.engine;
        listen(&runtime, args, setup, metrics, engine)
    };
    runtime.shutdown_timeout(LEFTOVERS_TIME_MAX);
    done
}

/// What the command line says; it holds over the files, also when those are read again.
fn options(args: &ServeArgs) -> Layer {
    fn set<T>(value: Option<T>, option: &'static str) -> Option<Set<T>> {
        value.map(|value| Set { value, origin: Origin::Option(option) })
    }
    Layer {
        policy: set(args.policy.clone(), "--policy"),
        log: LogLayer {
            format: set(args.log_format, "--log-format"),
            level: set(args.log_level, "--log-level"),
            requests: set(args.verbose.then_some(true), "--verbose"),
        },
        ..Layer::default()
    }
}

fn listen<S: Store>(
    runtime: &Runtime,
    args: &ServeArgs,
    setup: Setup,
    metrics: Arc<Metrics>,
    engine: Engine<S>,
) -> Result<(), Failure> {
    let (wanted, shutdown) = (args.listen.unwrap_or(setup.settings.listen), setup.settings.shutdown);
    runtime.block_on(async {
        if !server::is_loopback(wanted.ip()) && !engine.has_keys().await? {
            return Err(unguarded(wanted));
        }
        let listener = TcpListener::bind(wanted).await;
        let refused = |error| {
            cannot(&format!("cannot listen at {wanted}"), &error).hinting(
            "another server may listen there already; --listen names another address, and port 0 is any that is free",
        )
        };
        let (listener, at) = listener.and_then(|it| it.local_addr().map(|at| (it, at))).map_err(refused)?;
        let summaries = engine.clone();
        let web = args.web_dir.clone().map_or(Web::Program, Web::Folder);
        let tracer = Arc::new(Tracer::start(&setup.config, &metrics)?);
        let server = Server::new(engine, setup, metrics, at).showing(web).traced_by(tracer.clone());
        let server = Arc::new(server);
        hear(&server, options(args));
        announce(at, args)?;
        server::serve(server, listener).await;
        // Summaries that were begun are paid for: they may come to their end, as requests may.
        drop(timeout(shutdown, summaries.rest()).await);
        tracer.rest().await;
        Ok(())
    })
}

/// Ends the server when it is told to, and reads its configuration again on SIGHUP.
fn hear<S: Store>(server: &Arc<Server<S>>, options: Layer) {
    let terminals_before = terminals();
    // Whoever hears of signals must not keep the store from being closed.
    let heard = Arc::downgrade(server);
    interrupt::hear(move |signal| {
        let Some(server) = heard.upgrade() else { return false };
        // A terminal that was closed sends the same signal, and then there is one less.
        if signal == Signal::Hangup && terminals() == terminals_before {
            server.reload(&options);
            return true;
        }
        if !server.closing().is_begun() {
            talk::note("ending; requests that run may end first. Again to cut them");
        }
        server.closing().advance()
    });
}

/// Which of this process's own channels are terminals.
fn terminals() -> [bool; 3] {
    [io::stdin().is_terminal(), io::stdout().is_terminal(), io::stderr().is_terminal()]
}

/// Says where the server is, and what to do with it.
fn announce(at: SocketAddr, args: &ServeArgs) -> Result<(), Failure> {
    // Who listens at all addresses is reached from here at that of this machine.
    let host = match at {
        _ if !at.ip().is_unspecified() => at,
        SocketAddr::V4(_) => ([127, 0, 0, 1], at.port()).into(),
        SocketAddr::V6(_) => (std::net::Ipv6Addr::LOCALHOST, at.port()).into(),
    };
    let url = format!("http://{host}");
    talk::text(&url)?;
    talk::note(&format!("what models read:          {url}"));
    talk::note(&format!("OpenAI clients:            base_url = {url}/v1"));
    talk::note(&format!("Anthropic and Claude Code: ANTHROPIC_BASE_URL={url}"));
    if args.open {
        open(&url);
    }
    Ok(())
}

/// Opens the browser. That there is none is no reason to stop.
fn open(url: &str) {
    let program = if cfg!(target_os = "macos") { "open" } else { "xdg-open" };
    let started =
        Command::new(program).arg(url).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn();
    if let Err(error) = started {
        talk::warn(&format!("no browser could be opened: {program}: {error}"));
    }
}

/// Asks the system for as many files as it gives: each request takes two connections.
fn allow_many_connections() {
    #[cfg(unix)]
    {
        use rustix::process::{Resource, getrlimit, setrlimit};
        let mut limit = getrlimit(Resource::Nofile);
        limit.current = limit.maximum;
        // Where the system refuses, there are fewer.
        let _ = setrlimit(Resource::Nofile, limit);
    }
}

fn unguarded(wanted: SocketAddr) -> Failure {
    Failure::of(Code::Unguarded, format!("{wanted} can be reached by others, and there are no keys"))
        .hinting("make a key with `recto keys add NAME`, or listen at 127.0.0.1")
}

fn cannot(what: &str, error: &std::io::Error) -> Failure {
    Failure::of(Code::CannotListen, what).because(error.to_string())
}
