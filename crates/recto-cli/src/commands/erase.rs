//! `recto erase`: a conversation, the words of single entries, or what is too old, gone for good.

use crate::aging::{Goes, Sweep, Swept};
use crate::args::EraseArgs;
use crate::clock;
use crate::codes::Code;
use crate::config::Config;
use crate::failure::{Failure, cannot_read};
use crate::kept::Kept;
use crate::{interrupt, talk};
use recto::Seq;
use recto::entry::Millis;
use recto_engine::engine::Aged;
use recto_engine::{ConversationId, Forks, Tenant};
use serde::Serialize;
use std::io::{self, BufRead, IsTerminal, Read};
use std::ops::ControlFlow;
use std::time::Duration;

/// The most entries that are erased at once.
const ENTRIES_MAX: u64 = 1_000;
/// How much of an answer is read, in bytes.
const ANSWER_BYTES_MAX: u64 = 1_000;

/// Erases what was named, once it is sure that it is meant.
pub(crate) fn run(args: &EraseArgs, config: &Config) -> Result<(), Failure> {
    match (&args.name, args.older_than) {
        (Some(name), _) => named(name, args, config),
        (None, age) => old(age.unwrap_or(i64::MAX), args, config),
    }
}

fn named(name: &str, args: &EraseArgs, config: &Config) -> Result<(), Failure> {
    let seqs = seqs(args)?;
    let kept = Kept::open(&args.store, config)?;
    let at = kept.at(name);
    let entries = kept.conversation(name)?.tally.sums().entries;
    let what = match (seqs.len(), args.with_forks) {
        (0, false) => format!("conversation {name:?} with its {entries} entries"),
        (0, true) => format!("conversation {name:?} with its {entries} entries and all that go on from it"),
        (some, _) => {
            format!("the words of {some} entries of conversation {name:?}, also where forks share them")
        }
    };
    confirm(args, &what)?;
    let gone = if seqs.is_empty() {
        let forks = if args.with_forks { Forks::Erase } else { Forks::Refuse };
        kept.run(kept.engine.erase(&at, forks))?
    } else {
        kept.run(kept.engine.erase_entries(&at, seqs))?
    };
    if args.output.json {
        return talk::json(&gone);
    }
    talk::note(&format!("erased: conversations {}, entries {}", gone.conversations.len(), gone.entries));
    Ok(())
}

/// A conversation that is too old.
#[derive(Serialize)]
struct Old {
    tenant: Tenant,
    conversation: ConversationId,
    updated: Millis,
}

/// What `--older-than --json` prints; `recto erase --help` tells its shape.
#[derive(Serialize)]
struct Output {
    dry_run: bool,
    conversations: Vec<Old>,
    sums: Swept,
}

/// Erases what nobody has written to for so long.
fn old(age_ms: i64, args: &EraseArgs, config: &Config) -> Result<(), Failure> {
    let kept = Kept::open(&args.store, config)?;
    let since = Millis(clock::now().0.saturating_sub(age_ms));
    let retention = config.retention();
    let goes = if args.dry_run { Goes::Nowhere } else { Goes::Away };
    if goes == Goes::Away {
        confirm(args, &format!("every conversation to which nothing was written since {}", clock::minute(since)))?;
    }
    interrupt::promise_checks();
    let mut conversations = Vec::new();
    let sweep = Sweep { since, retention: &retention, goes, pause: Duration::ZERO };
    let sums = kept.run(sweep.run(&kept.engine, |at, row, aged| {
        if let Aged::Old(_) = aged {
            let (tenant, conversation) = (at.tenant.clone(), row.id.clone());
            conversations.push(Old { tenant, conversation, updated: row.updated });
        }
        ControlFlow::Continue(())
    }))?;
    if args.output.json {
        return talk::json(&Output { dry_run: args.dry_run, conversations, sums });
    }
    for Old { tenant, conversation, updated } in &conversations {
        let whose = if *tenant == Tenant::default() { String::new() } else { format!("  of {:?}", tenant.as_str()) };
        talk::text(&format!("{}  {}{whose}", clock::minute(*updated), conversation.as_str()))?;
    }
    let Swept { looked, conversations, entries, held, kept } = sums;
    let done = if args.dry_run { "would be erased" } else { "erased" };
    talk::note(&format!(
        "{done}: conversations {conversations}, entries {entries}; of {looked}, {held} stay for what goes on from them, \
         {kept} by name"
    ));
    Ok(())
}

fn seqs(args: &EraseArgs) -> Result<Vec<Seq>, Failure> {
    let asked = args.entries.iter().map(|span| (span.last.0 - span.first.0).saturating_add(1));
    if asked.fold(0_u64, u64::saturating_add) > ENTRIES_MAX {
        return Err(Failure::of(Code::TooMuch, format!("more than {ENTRIES_MAX} entries at once"))
            .hinting("erase them in several goes, or the whole conversation"));
    }
    let mut seqs: Vec<Seq> = args.entries.iter().flat_map(|span| (span.first.0..=span.last.0).map(Seq)).collect();
    seqs.sort_unstable();
    seqs.dedup();
    Ok(seqs)
}

fn confirm(args: &EraseArgs, what: &str) -> Result<(), Failure> {
    if args.yes {
        return Ok(());
    }
    let refused = || Failure::of(Code::NotConfirmed, format!("nothing was erased: {what}"));
    if !io::stdin().is_terminal() || !io::stderr().is_terminal() {
        return Err(refused().hinting("say --yes if it is to go for good"));
    }
    talk::note(&format!("Erase {what}, for good? Type yes:"));
    let mut answer = String::new();
    let mut stdin = io::stdin().lock().take(ANSWER_BYTES_MAX);
    stdin.read_line(&mut answer).map_err(|error| cannot_read("the answer", &error))?;
    if answer.trim().eq_ignore_ascii_case("yes") { Ok(()) } else { Err(refused()) }
}
