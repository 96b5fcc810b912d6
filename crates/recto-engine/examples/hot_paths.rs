//! The paths that every model call takes, one at a time and as often as asked: `hot_paths OPERATION COUNT`.
//!
//! `scripts/instructions` counts what the processor does for each, as the difference between many times and once.

use recto::edit::Turn;
use recto::page::Page;
use recto::receipt::Ticket;
use recto::{Count, Entry, Log, Policy, Reader, Request, Target, Tokenizer, Tokens, compile, plan, wire};
use recto_engine::store::sqlite::Sqlite;
use recto_engine::{Append, At, Engine, Opening, Tenant};
use std::hint::black_box;

/// How long the history is, in steps of three entries.
const STEPS: u64 = 120;
const USAGE: &str = "hot_paths cut|plan|compile|encode|count|append COUNT";

fn main() {
    let mut arguments = std::env::args().skip(1);
    let operation = arguments.next().expect(USAGE);
    let count: u64 = arguments.next().and_then(|count| count.parse().ok()).expect(USAGE);
    let times = |work: &mut dyn FnMut()| (0..count).for_each(|_| work());
    match operation.as_str() {
        "append" => appending(count),
        "count" => {
            let text: String = (0..40).map(|at| words("I count", at)).collect();
            times(&mut || {
                black_box(Tokenizer::O200k.count(black_box(&text)));
            });
        }
        operation => {
            let mut host = Host::lived();
            let edits = plan(&host.request()).expect("the settings are right").edits;
            assert!(!edits.is_empty(), "after so long there is something to cut");
            if operation != "cut" {
                host.reader.commit(edits, host.policy.digest());
            }
            let page = compile(&host.request()).expect("it fits").page;
            match operation {
                // A plan that changes the page, and one that changes nothing, as nearly all do.
                "cut" => times(&mut || drop(black_box(plan(&host.request()).expect("the settings are right")))),
                "plan" => times(&mut || drop(black_box(plan(&host.request()).expect("the settings are right")))),
                "compile" => times(&mut || drop(black_box(compile(&host.request()).expect("it fits")))),
                "encode" => times(&mut || drop(black_box(encoded(&page, &host.target)))),
                _ => std::process::exit(2),
            }
        }
    }
}

fn encoded(page: &Page, target: &Target) -> Vec<u8> {
    wire::openai_chat::encode(page, target)
}

fn words(what: &str, at: u64) -> String {
    let mut text = format!("{what} {at}:");
    for word in 0..90 {
        text += [" let", " entry", " page", " 0x1f", " store_value", "\n    return"][(at * 7 + word) as usize % 6];
    }
    text
}

/// A step of an agent: what its user asks, what it does, and what comes of that.
fn step(at: u64) -> [Entry; 3] {
    let id = format!("call_{at}");
    let arguments = format!(r#"{{"file_path":"src/module_{}.rs"}}"#, at % 40);
    let call = recto::entry::Call::new(&*id, "Read", arguments);
    [
        Entry::user(words("See to", at)),
        Entry::step(words("I look at", at), [call]),
        Entry::result(&*id, words("fn", at)),
    ]
}

/// Somebody who has made a call after each step, under the usual policy.
struct Host {
    log: Log,
    reader: Reader,
    policy: Policy,
    target: Target,
}

impl Host {
    fn lived() -> Host {
        let target = Target::named("gpt-4o").expect("built in").with_window(Some(Tokens(128_000)));
        let mut host = Host {
            log: Log::counted_by(Tokenizer::O200k),
            reader: Reader::new("hot"),
            policy: Policy::usual(),
            target,
        };
        let mut first: Option<Ticket> = None;
        for at in 0..STEPS {
            for entry in step(at) {
                host.log.append(entry).expect("a plain entry");
            }
            let ticket = first.get_or_insert_with(|| compile(&host.request()).expect("it fits").receipt.ticket);
            let ticket = Ticket { turn: Turn(at), head: host.log.head(), ..ticket.clone() };
            host.reader.acknowledge(&ticket).expect("it is the reader's turn");
        }
        host
    }

    fn request(&self) -> Request<'_> {
        Request::new(&self.log, &self.reader, &self.policy, &self.target)
    }
}

/// Appends steps to a store on disk, each in a transaction of its own.
fn appending(count: u64) {
    let folder = std::env::temp_dir().join(format!("recto-hot-paths-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("the folder of temporary files can be written to");
    let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
    let engine = Engine::over(Sqlite::open(folder.join("hot.db")).expect("a new store"));
    let at = At::new(&Tenant::default(), "hot");
    runtime.block_on(async {
        engine.open(&at, Opening::default()).await.expect("it is new");
        for number in 0..count {
            engine.append(&at, Append::any(step(number))).await.expect("it is appended");
        }
    });
    drop(engine);
    drop(std::fs::remove_dir_all(&folder));
}
