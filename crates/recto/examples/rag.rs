//! Retrieval: what was found for the last user words goes with this call only, fenced, and is the first to go.
#![expect(clippy::print_stdout, reason = "an example is there to show")]

use recto::fragment::{Fragment, Fragments};
use recto::{Entry, Error, Log, Part, Policy, Reader, Request, Role, Target, Tokenizer, compile_once, wire};

fn main() -> Result<(), Error> {
    let mut log = Log::counted_by(Tokenizer::O200k);
    log.append(Entry::user("How long may a loan be overdue before a fee is due?"))?;
    let query = log.back_by(Role::User).next().map(|entry| entry.shown().clone()).unwrap_or_default();
    let found: Vec<Fragment> = query
        .iter()
        .filter_map(|part| match part {
            Part::Text { text } => Some(Fragment::retrieved("documents", look_up(text))),
            _ => None,
        })
        .collect();
    let fragments = Fragments::counted(found, log.counter())?;
    let (reader, policy) = (Reader::new("main"), Policy::safe());
    let target = Target::named("gpt-4o").expect("built in");
    let request = Request { fragments: Some(&fragments), ..Request::new(&log, &reader, &policy, &target) };
    let compiled = compile_once(&request)?;
    println!("{}", String::from_utf8_lossy(&wire::openai_chat::encode_messages(&compiled.page)));
    println!("\n{}", compiled.receipt);
    Ok(())
}

/// Stands for an index.
fn look_up(query: &str) -> String {
    format!("Relevant documents for {query:?}:\n- rules.md: a fee is due from the second half day on")
}
