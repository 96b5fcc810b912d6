//! Only the newest messages, steps and their results together.
#![expect(clippy::print_stdout, reason = "an example is there to show")]

use recto::reduce::Recent;
use recto::{Entry, Error, Log, Policy, Reader, Request, Target, Tokenizer, compile_once};

fn main() -> Result<(), Error> {
    let mut log = Log::counted_by(Tokenizer::O200k);
    log.append(Entry::system("You are terse."))?;
    for number in 0..30 {
        log.append(Entry::user(format!("Question {number}")))?;
        log.append(Entry::assistant(format!("Answer {number}")))?;
    }
    log.append(Entry::user("And now?"))?;
    let policy = Policy::named("recent").then(Recent::messages(20));
    let (reader, target) = (Reader::new("main"), Target::named("gpt-4o").expect("built in"));
    let compiled = compile_once(&Request::new(&log, &reader, &policy, &target))?;
    println!("{} of {} messages\n\n{}", compiled.page.messages.len(), log.len(), compiled.receipt);
    Ok(())
}
