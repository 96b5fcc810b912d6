//! The loop of every agent: append, plan, commit, compile, send, acknowledge.
#![expect(clippy::print_stdout, reason = "an example is there to show")]

use recto::{Entry, Error, Log, Policy, Reader, Request, Target, Tokenizer, compile, plan, wire};

fn main() -> Result<(), Error> {
    let target = Target::named("gpt-4o").expect("built in");
    let policy = Policy::first_chars();
    let mut log = Log::counted_by(Tokenizer::O200k);
    let mut reader = Reader::new("main");
    log.append(Entry::system("You answer in one word."))?;

    for question in ["Capital of France?", "Of Japan?", "Of Peru?"] {
        log.append(Entry::user(question))?;
        let planned = plan(&Request::new(&log, &reader, &policy, &target))?;
        reader.commit(planned.edits, policy.digest());
        let compiled = compile(&Request::new(&log, &reader, &policy, &target))?;
        let body = wire::openai_chat::encode(&compiled.page, &target);
        let answer = send(&body);
        reader.acknowledge(&compiled.receipt.ticket)?;
        log.append(Entry::assistant(answer))?;
        println!("{}\n", compiled.receipt);
    }
    Ok(())
}

/// Stands for the call to a provider.
fn send(body: &[u8]) -> String {
    format!("(an answer to {} bytes)", body.len())
}
