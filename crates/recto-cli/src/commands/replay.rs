//! `recto replay`: the pages of whole conversations, call by call, what they cost, and what they forget.

mod curves;
mod draw;
mod html;
mod parallel;
mod plot;
mod questions;
mod report;
mod summaries;
mod tables;

use crate::args::ReplayArgs;
use crate::config::Config;
use crate::draft::Draft;
use crate::failure::Failure;
use crate::progress::Progress;
use crate::settings::Settings;
use crate::source::{self, Named};
use crate::subject::Subject;
use crate::{interrupt, talk};
use recto::note::Want;
use recto::page::Page;
use recto::replay::recall::{Measure, Score};
use recto::wire::openai_chat;
use recto::{Policy, Request};
use report::{Call, Report, Row};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use summaries::{Bill, Summaries};

/// Replays every conversation of the files under every policy, writes their pages, and prints what they cost.
pub(crate) fn run(args: &ReplayArgs, config: &Config) -> Result<(), Failure> {
    interrupt::promise_checks();
    let settings = Settings::each(&args.target, &args.policy, config)?;
    let files = source::files(&args.files)?;
    if args.questions {
        return questions::run(args, &settings[0], &files);
    }
    let plot = out(args.plot.as_deref(), &files, "draw to another file")?;
    let html = out(args.html.as_deref(), &files, "write the report to another file")?;
    let summaries = Summaries::of(args, config)?;
    let walk = Walk::new(args, &settings, Pages::to(args.pages.as_deref(), &files)?, summaries);
    let report = walk.through(&files)?;
    let pages = walk.pages.into_inner().unwrap_or_else(PoisonError::into_inner);
    let is_stdout_taken = matches!(pages, Pages::Stdout);
    pages.finish()?;
    for (draft, content) in [(plot, plot::svg as fn(&Report) -> String), (html, html::page)] {
        let Some(mut draft) = draft else { continue };
        draft.write(content(&report).as_bytes())?;
        draft.finish()?;
    }
    let told = match (args.json, args.each) {
        (true, _) => report.as_json()?,
        (false, true) => report.as_text_of_each(),
        (false, false) => report.as_text(),
    };
    match is_stdout_taken {
        true => talk::note(&told),
        false if args.json => talk::data(format!("{told}\n").as_bytes())?,
        false => talk::text(&told)?,
    }
    report.into_overflow().map_or(Ok(()), Err)
}

/// Begins a file, if one is asked for: what can't be written is better known before the work than after it.
fn out(place: Option<&Path>, inputs: &[PathBuf], instead: &str) -> Result<Option<Draft>, Failure> {
    let Some(place) = place else { return Ok(None) };
    source::check_apart(place, inputs, instead)?;
    Draft::of(place).map(Some)
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

    /// Adds a page; `policy` is told where there are several.
    fn add(&mut self, name: &str, policy: Option<&str>, turn: usize, page: &Page) -> Result<(), Failure> {
        if matches!(self, Pages::Nowhere) {
            return Ok(());
        }
        let policy = match policy {
            Some(policy) => format!("\"policy\":{},", talk::as_json(&policy)?),
            None => String::new(),
        };
        self.line(name, &format!("{policy}\"turn\":{turn}"), page)
    }

    /// Adds a page, with what else its line says.
    fn line(&mut self, name: &str, which: &str, page: &Page) -> Result<(), Failure> {
        let line = format!("{{\"conversation\":{},{which},\"messages\":", talk::as_json(&name)?);
        let mut line = line.into_bytes();
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

/// A walk through files, by every policy.
struct Walk<'a> {
    args: &'a ReplayArgs,
    settings: &'a [Settings],
    /// What the policies are called.
    names: Vec<String>,
    pages: Mutex<Pages>,
    progress: Progress,
    threads: usize,
    summaries: Option<Summaries>,
    /// What it would be without any policy, where a report compares with that.
    whole: Option<Settings>,
}

/// A conversation that was read and counted, but not replayed yet.
struct Ready {
    subject: Subject,
    measure: Measure,
    full: Score,
}

impl<'a> Walk<'a> {
    fn new(args: &'a ReplayArgs, settings: &'a [Settings], pages: Pages, summaries: Option<Summaries>) -> Walk<'a> {
        // Pages on the same terminal would be drawn over.
        let progress = if matches!(pages, Pages::Stdout) { Progress::hidden() } else { Progress::on_stderr("turns") };
        // Pages are written in their order as they are made.
        let threads = if matches!(pages, Pages::Nowhere) { parallel::threads() } else { 1 };
        let names = policy_names(settings, &args.policy);
        let whole = args.html.as_ref().map(|_| Settings {
            target: settings[0].target.clone().with_window(None),
            policy: Policy::none(),
            reserve: settings[0].reserve,
            facts: None,
        });
        Walk { args, settings, names, pages: Mutex::new(pages), progress, threads, summaries, whole }
    }

    fn through(&self, files: &[PathBuf]) -> Result<Report, Failure> {
        let mut report = Report::of(self.settings, &self.names, self.args.min_tokens);
        let mut names: BTreeSet<String> = BTreeSet::new();
        let only = self.args.conversation.as_deref();
        for file in files {
            interrupt::check()?;
            let mut all = source::conversations(file)?;
            for Named { name, .. } in &all {
                let is_new = names.insert(name.clone());
                if !is_new && only.is_none_or(|only| only == name) {
                    self.progress
                        .note(&format!("conversation {name:?} occurs more than once; its pages have the same name"));
                }
            }
            all.retain(|named| only.is_none_or(|only| only == named.name));
            for note in all.iter().flat_map(|named| &named.conversation.notes) {
                self.progress.note(&format!("{}: {note}", source::shown(file)));
            }
            if let Some(note) = source::replaced(file, all.iter().map(|named| &named.conversation)) {
                self.progress.note(&note);
            }
            self.file(file, all, &mut report)?;
        }
        match only {
            Some(id) if !names.contains(id) => Err(source::unknown(id, names.iter().map(String::as_str))),
            _ => Ok(report),
        }
    }

    /// Replays the conversations of a file, and adds them to the report.
    fn file(&self, file: &Path, all: Vec<Named>, report: &mut Report) -> Result<(), Failure> {
        let mut ready = parallel::each(self.threads, all, |named| self.read(named, file))?;
        let before = ready.len();
        ready.retain(|it| self.args.min_tokens.is_none_or(|least| it.measure.tokens() >= least));
        report.about.left_out += before - ready.len();
        let work = ready.iter().flat_map(|it| (0..self.settings.len()).map(move |policy| (it, policy))).collect();
        let rows = parallel::each(self.threads, work, |(it, policy)| self.conversation(it, policy, file))?;
        let mut whole = parallel::each(self.threads, ready.iter().collect(), |it| self.whole(it))?.into_iter();
        let mut rows = rows.into_iter();
        for it in &ready {
            report.add(rows.by_ref().take(self.settings.len()).collect(), &it.full, whole.next().flatten());
        }
        Ok(())
    }

    /// Makes the calls of a conversation with its whole history, if anybody wants to know what they cost.
    fn whole(&self, it: &Ready) -> Result<Option<Vec<Call>>, Failure> {
        let Some(settings) = &self.whole else { return Ok(None) };
        let replay = it.subject.replay(settings);
        self.progress.expect(replay.turns(), &it.subject.name);
        let mut calls = Vec::new();
        for replayed in replay {
            interrupt::check()?;
            calls.push(Call::of(replayed.turn, &replayed.compiled?.receipt));
            self.progress.step();
        }
        Ok(Some(calls))
    }

    fn read(&self, named: Named, file: &Path) -> Result<Ready, Failure> {
        interrupt::check()?;
        let subject = Subject::of(named.name, named.conversation, &self.settings[0])
            .map_err(|failure| failure.during(format!("cannot replay {}", source::shown(file))))?;
        let measure = Measure::new(&subject.log);
        Ok(Ready { full: measure.full(), subject, measure })
    }

    /// Replays a conversation under one of the policies.
    fn conversation(&self, it: &Ready, policy: usize, file: &Path) -> Result<Row, Failure> {
        interrupt::check()?;
        let Ready { subject, full, .. } = it;
        let policy_told = (self.names.len() > 1).then(|| &*self.names[policy]);
        let bill = Mutex::new(Bill::default());
        let make = |want: &Want, request: &Request<'_>| self.summaries.as_ref()?.make(want, request, &bill);
        let mut replay = subject.replay(&self.settings[policy]);
        if self.summaries.is_some() {
            replay = replay.with_summaries(&make);
        }
        self.progress.expect(replay.turns(), &subject.name);
        let mut row = Row::of(&subject.name, file);
        let mut measure = it.measure.clone();
        let mut last = None;
        for replayed in replay {
            interrupt::check()?;
            match replayed.compiled {
                Ok(compiled) => {
                    let mut pages = self.pages.lock().unwrap_or_else(PoisonError::into_inner);
                    pages.add(&subject.name, policy_told, replayed.turn, &compiled.page)?;
                    drop(pages);
                    row.add(replayed.turn, &compiled.receipt);
                    measure.page(replayed.turn, &compiled.page);
                    last = Some(compiled.receipt);
                }
                Err(error) => match error.overflow() {
                    Some(overflow) => row.add_overflow(replayed.turn, overflow.clone(), error.hint()),
                    None => {
                        let what = format!("conversation {:?}, turn {}", subject.name, replayed.turn);
                        return Err(Failure::from(error).during(what));
                    }
                },
            }
            self.progress.step();
        }
        if let Some(last) = &last {
            row.end(last);
        }
        row.measure(measure.finish(), full);
        if self.summaries.is_some() {
            row.pay(*bill.lock().unwrap_or_else(PoisonError::into_inner));
        }
        Ok(row)
    }
}

/// What policies are called: by their own names, or as they were given where several have the same.
fn policy_names(settings: &[Settings], given: &[String]) -> Vec<String> {
    let own: Vec<&str> = settings.iter().map(|it| &*it.policy.name).collect();
    let name = |at: usize| match given.get(at) {
        Some(given) if own.iter().filter(|name| **name == own[at]).count() > 1 => given.clone(),
        _ => own[at].to_string(),
    };
    (0..own.len()).map(name).collect()
}
