//! `recto search`: what was said about something, in kept conversations or files.

use crate::args::SearchArgs;
use crate::config::Config;
use crate::failure::Failure;
use crate::kept::Kept;
use crate::source::{self, Named};
use crate::{interrupt, talk};
use recto::entry::{Entry, EntryKind, Millis, Text};
use recto::log::{Counted, Log};
use recto::recall::{OnPage, Query, Shelf};
use recto::{Role, Seq, Tokenizer};
use recto_engine::{ConversationId, Tenant};
use serde::Serialize;
use std::path::Path;

/// How many conversations are listed at once.
const PAGE_ROWS: usize = 1_000;
/// Files that end so are read as one text.
const TEXTS: [&str; 3] = ["md", "markdown", "txt"];

/// Prints what answers best in each place.
pub(crate) fn run(args: &SearchArgs, config: &Config) -> Result<(), Failure> {
    interrupt::promise_checks();
    let query = Query::saying(args.words.as_str());
    let mut output = Output { words: &args.words, found: Vec::new(), cut: 0 };
    let mut kept: Option<Kept> = None;
    for place in &args.places {
        interrupt::check()?;
        if place.exists() {
            output.found.extend(in_file(place, &query, args)?);
            continue;
        }
        let kept = match &kept {
            Some(kept) => kept,
            None => kept.insert(Kept::open(&args.store, config)?),
        };
        let name = place.to_string_lossy();
        kept.conversation(&name)?;
        output.add(kept, &name, &query, args)?;
    }
    if args.places.is_empty() {
        let kept = Kept::open(&args.store, config)?;
        let mut after: Option<ConversationId> = None;
        loop {
            let page = kept.run(kept.engine.list(&Tenant::default(), after.as_ref(), PAGE_ROWS))?;
            let Some(last) = page.last() else { break };
            after = Some(last.id.clone());
            for conversation in &page {
                interrupt::check()?;
                Failure::unless_gone(output.add(&kept, conversation.id.as_str(), &query, args))?;
            }
        }
    }
    if args.output.json { talk::json(&output) } else { talk::content(&output.text()) }
}

/// What `--json` prints; `recto search --help` tells its shape.
#[derive(Serialize)]
struct Output<'a> {
    words: &'a str,
    found: Vec<Stretch>,
    cut: usize,
}

#[derive(Serialize)]
struct Stretch {
    #[serde(rename = "where")]
    place: String,
    seq: Option<Seq>,
    role: Option<Role>,
    author: Option<Text>,
    at: Option<Millis>,
    text: String,
}

impl Output<'_> {
    /// Adds what a kept conversation has.
    fn add(&mut self, kept: &Kept, name: &str, query: &Query, args: &SearchArgs) -> Result<(), Failure> {
        let found = kept.run(kept.engine.search(&kept.at(name), query, args.budget))?;
        self.cut = self.cut.max(found.cut_terms);
        self.found.extend(found.hits.into_iter().map(|hit| Stretch {
            place: name.into(),
            seq: Some(hit.pick.place.seq),
            role: Some(hit.role),
            author: hit.author,
            at: hit.at,
            text: hit.text,
        }));
        Ok(())
    }

    fn text(&self) -> String {
        if self.found.is_empty() {
            return "nothing was found".into();
        }
        let line = |it: &Stretch| {
            let seq = it.seq.map_or(String::new(), |seq| format!(" m{}", seq.0));
            let role = it.role.map_or(String::new(), |role| format!(" {role}"));
            let who = it.author.as_ref().map_or(role, |author| format!(" {author}"));
            format!("{}{seq}{who}\n{}", it.place, it.text.trim_end())
        };
        self.found.iter().map(line).collect::<Vec<_>>().join("\n\n")
    }
}

fn in_file(file: &Path, query: &Query, args: &SearchArgs) -> Result<Vec<Stretch>, Failure> {
    let text = source::text(file, &source::TRANSCRIPT)?;
    let extension = file.extension().and_then(|it| it.to_str()).unwrap_or_default();
    if TEXTS.contains(&extension) {
        let mut log = Log::counted_by(Tokenizer::Bytes4);
        log.append(Entry { kind: Some(EntryKind::Injection), ..Entry::user(text) })?;
        let found = in_log(&source::shown(file), &log, query, args);
        let plain = |it: Stretch| Stretch { seq: None, role: None, ..it };
        return Ok(found.into_iter().map(plain).collect());
    }
    let mut found = Vec::new();
    for Named { name, conversation } in source::named(file, &text)? {
        let log = conversation.into_log(Tokenizer::Bytes4)?;
        found.extend(in_log(&name, &log, query, args));
    }
    Ok(found)
}

fn in_log(name: &str, log: &Log, query: &Query, args: &SearchArgs) -> Vec<Stretch> {
    let mut entries: Vec<&Counted> = log.back().collect();
    entries.reverse();
    let mut shelf = Shelf::default();
    entries.iter().for_each(|entry| shelf.add(entry));
    let found = shelf.find(query, &OnPage::default(), args.budget, log.counter());
    let stretch = |(pick, entry): (recto::recall::Pick, &Counted)| {
        let text = pick.text(entry)?.to_string();
        let Entry { role, author, at, .. } = entry.original();
        let (author, at) = (author.clone(), *at);
        Some(Stretch { place: name.into(), seq: Some(entry.seq), role: Some(*role), author, at, text })
    };
    found.resolve(&entries).into_iter().filter_map(stretch).collect()
}
