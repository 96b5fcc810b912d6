//! What the gateway costs beside a proxy that only passes on, as ratios within one run: `cargo bench -p recto-cli`
//! prints them and fails if one is out of bounds. It runs the command `recto`, which
//! `cargo build --release -p recto-cli` makes. Names of cases may follow: `cargo bench -p recto-cli -- small streams`.
//!
//! Costs are processor time of the process that stands between client and provider, all its threads included; rounds
//! with the one and the other alternate. Client, provider and proxy are processes of this program, on this machine. So is
//! a proxy that does no more than write both bodies down durably, which tells what of the cost is the disk's.
//! Where `RECTO_LITELLM` names the command of LiteLLM's proxy, that is measured as well, with fewer calls.

mod ledger; // the least that a record takes
mod load; // conversations, and who carries them on
mod process; // a server that runs beside this one
mod roles; // the provider, and the bare proxy
mod streams; // answers that come piece by piece, one and a thousand at once

use load::Load;
use process::Serving;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

const ROUNDS: u32 = 5;
/// How much less often LiteLLM is asked.
const LITELLM_SHARE: u32 = 20;
/// How long a server may still work on what it has answered.
const SETTLING: Duration = Duration::from_millis(300);

/// A kind of load, the policy under which Recto takes it, and how much dearer than the bare proxy it may be.
struct Case {
    name: &'static str,
    about: &'static str,
    policy: &'static str,
    load: Load,
    ratio_max: f64,
}

const CASES: [Case; 5] = [
    Case {
        name: "small",
        about: "two short messages, each a new conversation",
        policy: "none",
        load: Load { clients: 16, conversations: 8_000, calls: 1, known_calls: 0, result_bytes: 0 },
        ratio_max: 2.5,
    },
    Case {
        name: "crowd",
        about: "the same with 128 clients at once",
        policy: "none",
        load: Load { clients: 128, conversations: 8_000, calls: 1, known_calls: 0, result_bytes: 0 },
        ratio_max: 2.5,
    },
    Case {
        name: "short",
        about: "short messages, conversations of four calls",
        policy: "none",
        load: Load { clients: 16, conversations: 2_000, calls: 4, known_calls: 0, result_bytes: 0 },
        ratio_max: 2.5,
    },
    Case {
        name: "long",
        about: "92 KB in 100 messages, two more with each call",
        policy: "none",
        load: Load { clients: 16, conversations: 80, calls: 20, known_calls: 39, result_bytes: 1_640 },
        ratio_max: 3.0,
    },
    Case {
        name: "growing",
        about: "from 2 to 100 messages, under the usual policy",
        policy: "default",
        load: Load { clients: 16, conversations: 48, calls: 50, known_calls: 0, result_bytes: 1_640 },
        ratio_max: 5.0,
    },
];

/// A figure, and whether it is within bounds.
struct Figure {
    text: String,
    is_met: bool,
}

#[expect(clippy::print_stdout, clippy::print_stderr, reason = "a benchmark is there to print")]
fn main() -> ExitCode {
    let given: Vec<String> = std::env::args().skip(1).filter(|it| !it.starts_with("--")).collect();
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().expect("a runtime");
    rustls::crypto::ring::default_provider().install_default().expect("nobody else chose one");
    if let Some((role, arguments)) = roles::asked(&given) {
        runtime.block_on(roles::play(role, arguments));
        return ExitCode::SUCCESS;
    }
    let Some(command) = command() else {
        eprintln!("SKIPPED: the gateway: build it first with `cargo build --release -p recto-cli`");
        return ExitCode::SUCCESS;
    };
    let folder = std::env::temp_dir().join(format!("recto-gateway-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("the folder of temporary files can be written to");
    let is_wanted = |name: &str| given.is_empty() || given.iter().any(|it| it == name);
    let provider = Serving::role("provider", &[]);
    let proxy = Serving::role("proxy", &[&provider.url]);
    let ledger = folder.join("ledger.sqlite");
    let recorder = Serving::role("recorder", &[&provider.url, ledger.to_str().expect("a path that is text")]);
    let mut figures = Vec::new();
    for case in CASES.iter().filter(|case| is_wanted(case.name)) {
        let recto = Serving::recto(&command, &folder, case.policy, &provider.url);
        figures.push(runtime.block_on(measured(case, [&proxy, &recto, &recorder])));
        println!("{}", figures[figures.len() - 1].text);
        if ["small", "long"].contains(&case.name)
            && let Some(litellm) = Serving::litellm(&folder, &provider.url)
        {
            println!("{}", runtime.block_on(beside_litellm(case, &recto, &litellm)));
        }
    }
    if is_wanted("streamed") {
        let recto = Serving::recto(&command, &folder, "default", &provider.url);
        figures.push(runtime.block_on(streams::cost(&proxy, &recto)));
        println!("{}", figures[figures.len() - 1].text);
    }
    if is_wanted("streams") {
        let recto = Serving::recto(&command, &folder, "none", &provider.url);
        figures.push(runtime.block_on(streams::measured(&recto)));
        println!("{}", figures[figures.len() - 1].text);
    }
    drop(std::fs::remove_dir_all(&folder));
    if figures.iter().any(|figure| !figure.is_met) {
        eprintln!("out of bounds");
        return ExitCode::FAILURE;
    }
    ExitCode::SUCCESS
}

fn command() -> Option<PathBuf> {
    let built = std::env::current_exe().ok()?;
    // …/release/deps/gateway-HASH stands beside …/release/recto.
    let command: &Path = built.parent()?.parent()?;
    Some(command.join("recto")).filter(|command| command.is_file())
}

/// Processor time of a call through Recto against one through the bare proxy. What comes first in a conversation that
/// has a past is told apart: it is read once, and the calls after it are many.
async fn measured(case: &Case, servers: [&Serving; 3]) -> Figure {
    let (mut spent, mut opening) = ([Duration::ZERO; 3], [Duration::ZERO; 3]);
    for round in 0..=ROUNDS {
        for (at, server) in servers.into_iter().enumerate() {
            let mut talks = case.load.begin(round);
            let start = server.processor_time();
            if case.load.known_calls > 0 {
                load::carry_on(&server.url, &mut talks, 1, case.load.clients).await;
                tokio::time::sleep(SETTLING).await;
            }
            let opened = server.processor_time();
            load::carry_on(&server.url, &mut talks, case.load.calls, case.load.clients).await;
            tokio::time::sleep(SETTLING).await;
            // The first round warms up.
            if round > 0 {
                opening[at] += opened - start;
                spent[at] += server.processor_time() - opened;
            }
        }
    }
    let calls = ROUNDS * case.load.calls * case.load.conversations;
    let [bare, ours, recorder] = spent.map(|time| time / calls);
    let times = |time: Duration| time.as_secs_f64() / bare.as_secs_f64();
    let ratio = times(ours);
    let mut text = format!(
        "{}: {}, policy {}: {ratio:.2} x, at most {} ({ours:.0?}, {bare:.0?}); a proxy that only records: {:.2} x",
        case.name,
        case.about,
        case.policy,
        case.ratio_max,
        times(recorder)
    );
    if case.load.known_calls > 0 {
        let [bare, ours, _] = opening.map(|time| time / (ROUNDS * case.load.conversations));
        text += &format!("; the first call of each: {ours:.0?}, {bare:.0?}");
    }
    Figure { text, is_met: ratio <= case.ratio_max }
}

/// Processor time of a call through LiteLLM's proxy against one through Recto.
async fn beside_litellm(case: &Case, recto: &Serving, litellm: &Serving) -> String {
    let conversations = (case.load.conversations / LITELLM_SHARE).max(4);
    let load = Load { conversations, ..case.load };
    let mut spent = [Duration::ZERO; 2];
    for round in 0..=ROUNDS {
        for (at, server) in [recto, litellm].into_iter().enumerate() {
            let mut talks = load.begin(round);
            let start = server.processor_time();
            load::carry_on(&server.url, &mut talks, load.calls, load.clients).await;
            tokio::time::sleep(SETTLING).await;
            // The first round warms up.
            if round > 0 {
                spent[at] += server.processor_time() - start;
            }
        }
    }
    let [ours, theirs] = spent.map(|time| time / (ROUNDS * load.calls * conversations));
    let ratio = theirs.as_secs_f64() / ours.as_secs_f64();
    format!("litellm, {}: {ratio:.0} x what Recto takes ({theirs:.0?}, {ours:.0?})", case.name)
}
