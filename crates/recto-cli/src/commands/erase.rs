//! `recto erase`: a conversation, or the words of single entries, gone for good.

use crate::args::EraseArgs;
use crate::codes::Code;
use crate::config::Config;
use crate::failure::{Failure, cannot_read};
use crate::kept::Kept;
use crate::talk;
use recto::Seq;
use recto_engine::Forks;
use std::io::{self, BufRead, IsTerminal, Read};

/// The most entries that are erased at once.
const ENTRIES_MAX: u64 = 1_000;
/// How much of an answer is read, in bytes.
const ANSWER_BYTES_MAX: u64 = 1_000;

/// Erases what was named, once it is sure that it is meant.
pub(crate) fn run(args: &EraseArgs, config: &Config) -> Result<(), Failure> {
    let seqs = seqs(args)?;
    let kept = Kept::open(&args.store, config)?;
    let at = kept.at(&args.name);
    let entries = kept.conversation(&args.name)?.tally.sums().entries;
    let what = match (seqs.len(), args.with_forks) {
        (0, false) => format!("conversation {:?} with its {entries} entries", args.name),
        (0, true) => format!("conversation {:?} with its {entries} entries and all that go on from it", args.name),
        (some, _) => {
            format!("the words of {some} entries of conversation {:?}, also where forks share them", args.name)
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
