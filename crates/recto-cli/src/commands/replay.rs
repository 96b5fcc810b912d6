//! `recto replay`: the pages of whole conversations, call by call, and what they cost.

mod progress;
mod report;

use crate::args::ReplayArgs;
use crate::config::Config;
use crate::draft::Draft;
use crate::failure::Failure;
use crate::settings::Settings;
use crate::source::{self, Named};
use crate::subject::Subject;
use crate::{interrupt, talk};
use progress::Progress;
use recto::page::Page;
use recto::wire::openai_chat;
use report::{Report, Row};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// Replays every conversation of the files, writes their pages, and prints what they cost.
pub(crate) fn run(args: &ReplayArgs, config: &Config) -> Result<(), Failure> {
    interrupt::promise_checks();
    let settings = Settings::of(&args.settings, config)?;
    let files = source::files(&args.files)?;
    let mut pages = Pages::to(args.pages.as_deref(), &files)?;
    let report = replayed(&files, args.conversation.as_deref(), &settings, &mut pages)?;
    let is_stdout_taken = matches!(pages, Pages::Stdout);
    pages.finish()?;
    match (args.json, is_stdout_taken) {
        (true, false) => talk::json(&report)?,
        (false, false) => talk::text(&report.to_string())?,
        (true, true) => talk::note(&talk::as_json(&report)?),
        (false, true) => talk::note(&report.to_string()),
    }
    report.into_overflow().map_or(Ok(()), Err)
}

/// Where pages go.
enum Pages {
    Nowhere,
    Stdout,
    File(Draft),
}

impl Pages {
    fn to(place: Option<&Path>, inputs: &[PathBuf]) -> Result<Pages, Failure> {
        let Some(place) = place else { return Ok(Pages::Nowhere) };
        if source::is_stdin(place) {
            return Ok(Pages::Stdout);
        }
        source::check_apart(place, inputs, "write the pages to another file")?;
        Draft::of(place).map(Pages::File)
    }

    fn add(&mut self, name: &str, turn: usize, page: &Page) -> Result<(), Failure> {
        if matches!(self, Pages::Nowhere) {
            return Ok(());
        }
        let mut line =
            format!("{{\"conversation\":{},\"turn\":{turn},\"messages\":", talk::as_json(&name)?).into_bytes();
        line.extend(openai_chat::encode_messages(page));
        line.extend_from_slice(b"}\n");
        match self {
            Pages::Nowhere => Ok(()),
            Pages::Stdout => talk::data(&line),
            Pages::File(draft) => draft.write(&line),
        }
    }

    fn finish(self) -> Result<(), Failure> {
        match self {
            Pages::File(draft) => draft.finish(),
            Pages::Nowhere | Pages::Stdout => Ok(()),
        }
    }
}

fn replayed(files: &[PathBuf], only: Option<&str>, settings: &Settings, pages: &mut Pages) -> Result<Report, Failure> {
    // Pages on the same terminal would be drawn over.
    let progress = if matches!(pages, Pages::Stdout) { Progress::hidden() } else { Progress::on_stderr() };
    let mut report = Report::of(settings);
    let mut names: BTreeSet<String> = BTreeSet::new();
    for file in files {
        interrupt::check()?;
        let mut all = source::conversations(file)?;
        for Named { name, .. } in &all {
            let is_new = names.insert(name.clone());
            if !is_new && only.is_none_or(|only| only == name) {
                progress.note(&format!("conversation {name:?} occurs more than once; its pages have the same name"));
            }
        }
        all.retain(|named| only.is_none_or(|only| only == named.name));
        for note in all.iter().flat_map(|named| &named.conversation.notes) {
            progress.note(&format!("{}: {note}", source::shown(file)));
        }
        if let Some(note) = source::replaced(file, all.iter().map(|named| &named.conversation)) {
            progress.note(&note);
        }
        for named in all {
            report.add(conversation(named, file, settings, pages, &progress)?);
        }
    }
    match only {
        Some(id) if !names.contains(id) => Err(source::unknown(id, names.iter().map(String::as_str))),
        _ => Ok(report),
    }
}

fn conversation(
    named: Named,
    file: &Path,
    settings: &Settings,
    pages: &mut Pages,
    progress: &Progress,
) -> Result<Row, Failure> {
    interrupt::check()?;
    let subject = Subject::of(named.name, named.conversation, settings)
        .map_err(|failure| failure.during(format!("cannot replay {}", source::shown(file))))?;
    let replay = subject.replay(settings);
    progress.expect(replay.turns(), &subject.name);
    let mut row = Row::of(&subject.name, file);
    for replayed in replay {
        interrupt::check()?;
        match replayed.compiled {
            Ok(compiled) => {
                pages.add(&subject.name, replayed.turn, &compiled.page)?;
                row.add(&compiled.receipt);
            }
            Err(error) => match error.overflow() {
                Some(overflow) => row.add_overflow(replayed.turn, overflow.clone(), error.hint()),
                None => {
                    let what = format!("conversation {:?}, turn {}", subject.name, replayed.turn);
                    return Err(Failure::from(error).during(what));
                }
            },
        }
        progress.step();
    }
    Ok(row)
}
