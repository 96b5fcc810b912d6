//! Another source: what a folder of Markdown says about the user's words goes with the call, fenced, and is the first
//! to go. Run it with a folder: `cargo run --example markdown -- docs`.
#![expect(clippy::print_stdout, reason = "an example is there to show")]

use recto::fragment::Fragments;
use recto::recall::{Document, Documents, Query, retrieved};
use recto::{Entry, Log, Policy, Reader, Request, Target, Tokenizer, Tokens, compile_once};
use std::error::Error;
use std::path::Path;

fn main() -> Result<(), Box<dyn Error>> {
    let folder = std::env::args().nth(1).unwrap_or_else(|| "docs".into());
    let documents = Documents::of(folder.as_str(), markdown(Path::new(&folder))?, Tokenizer::O200k)?;
    let mut log = Log::counted_by(Tokenizer::O200k);
    log.append(Entry::user("What does it cost to break the provider's cache?"))?;
    let query = Query::of(&log, None).ok_or("no user has said anything")?;
    let found = retrieved(&documents, &query, Tokens(800), log.counter());
    let fragments = Fragments::counted(found, log.counter())?;
    let (reader, policy) = (Reader::new("main"), Policy::safe());
    let target = Target::named("gpt-4o").ok_or("built in")?;
    let request = Request { fragments: Some(&fragments), ..Request::new(&log, &reader, &policy, &target) };
    let compiled = compile_once(&request)?;
    for message in &compiled.page.messages {
        println!("{}: {:?}\n", message.role, message.parts);
    }
    println!("{}", compiled.receipt);
    Ok(())
}

/// The files of a folder that end in `.md`, in the order of their names.
fn markdown(folder: &Path) -> Result<Vec<Document>, Box<dyn Error>> {
    let mut paths: Vec<_> = std::fs::read_dir(folder)?.filter_map(|entry| Some(entry.ok()?.path())).collect();
    paths.retain(|path| path.extension().is_some_and(|extension| extension == "md"));
    paths.sort();
    let read = |path: std::path::PathBuf| -> Result<Document, Box<dyn Error>> {
        let title = path.display().to_string().into();
        Ok(Document { title, text: std::fs::read_to_string(path)?.into() })
    };
    paths.into_iter().map(read).collect()
}
