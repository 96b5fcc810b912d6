//! What expiry saves: every event as a line, and the total in the end.

use recto::entry::Call;
use recto::event::{Event, Listener};
use recto::expiry::{Expiry, ExpiryAction, ExpiryRule};
use recto::reduce::Expire;
use recto::{Entry, Error, Log, Policy, Reader, Request, Target, Tokenizer, Tokens, compile, plan};
use std::io::Write;

pub(crate) fn main() -> Result<(), Box<dyn std::error::Error>> {
    writeln!(std::io::stdout(), "{}", told()?)?;
    Ok(())
}

/// Returns the events, and what they have saved.
pub(crate) fn told() -> Result<String, Error> {
    let (mut lines, mut saved) = (Vec::new(), Tokens(0));
    converse(Listener::new(|event: &Event| {
        lines.push(event.to_string());
        saved += event.saved();
    }))?;
    Ok(format!("{}\n{saved} tokens saved in every call from then on", lines.join("\n")))
}

/// An agent that searches, and goes on talking about what it found.
fn converse(mut listener: Listener<'_>) -> Result<(), Error> {
    let rule = ExpiryRule::of_tool("search*", Expiry { after: 1, action: ExpiryAction::FirstChars(200) });
    let policy = Policy::named("searches").then(Expire::by_rules([rule])).immediately();
    let target = Target::named("gpt-4o").expect("built in");
    let (mut log, mut reader) = (Log::counted_by(Tokenizer::O200k), Reader::new("main"));
    log.append(Entry::user("Which sheets are Carex?"))?;
    log.append(Entry::step("", [Call::new("c1", "search_sheets", r#"{"query":"Carex"}"#)]))?;
    let sheets: String = (0..200).map(|sheet| format!("sheet {sheet}: Carex, drawer {}\n", sheet % 7)).collect();
    log.append(Entry::result("c1", sheets))?;
    for question in ["In which drawer is sheet 9?", "And sheet 10?", "Thank you."] {
        log.append(Entry::user(question))?;
        let planned = plan(&Request::new(&log, &reader, &policy, &target))?;
        reader.commit(planned.edits, policy.digest());
        let compiled = compile(&Request::new(&log, &reader, &policy, &target))?;
        reader.acknowledge(&compiled.receipt.ticket)?;
        listener.hear(&reader, &log);
        log.append(Entry::assistant("(an answer)"))?;
    }
    Ok(())
}
