//! `recto run`: carries a kept conversation on, with a program that keeps its own history, or with a model.

mod live; // what is heard while an answer comes

use crate::args::{RunArgs, SettingsArgs, TargetArgs};
use crate::codes::Code;
use crate::config::Config;
use crate::failure::Failure;
use crate::kept::{Kept, Waiting};
use crate::programs::{PROGRAMS, Program};
use crate::settings::Settings;
use crate::{interrupt, source, subject, talk};
use live::Live;
use recto::entry::{Part, Text};
use recto::fragment::Fragment;
use recto::page::Mode;
use recto::receipt::{Full, Receipt};
use recto::wire::Usage;
use recto::{Entry, Role, Tokens};
use recto_engine::drive::Driver;
use recto_engine::engine::{Asked, Driven, How};
use recto_engine::upstream::Upstream;
use recto_engine::{Call, Opening};
use serde::Serialize;
use std::path::Path;

/// Carries a conversation on.
pub(crate) fn run(args: &RunArgs, config: &Config) -> Result<(), Failure> {
    let program = PROGRAMS.iter().find(|program| program.name == args.with);
    let settings = settings(args, program, config)?;
    interrupt::promise_checks();
    // Whoever can't be asked is told before a conversation begins.
    let who = Who::of(args, program, &settings, config)?;
    let (input, fragments) = (words(args)?, fragments(args)?);
    let kept = Kept::open_or_make(&args.store, config)?.summarizing(config)?;
    let at = kept.at(&args.conversation);
    let opening = Opening { tokenizer: Some(settings.target.tokenizer), ..Opening::default() };
    match kept.run(kept.engine.open(&at, opening)) {
        Ok(_) => talk::note(&format!("conversation {:?} begins", args.conversation)),
        Err(failure) if failure.is_exists() => {}
        Err(failure) => return Err(failure),
    }
    let conversation = kept.conversation(&args.conversation)?;
    let call = Call {
        input: input.map(Entry::user),
        fragments,
        ..subject::call(&args.reader.reader, &conversation, &settings)
    };
    let mut live = Live::new(args.output.json);
    let mut listen = |heard| live.hear(heard);
    let done = match who {
        Who::Program(driver) => {
            let folder = args.folder.as_deref().unwrap_or(Path::new("."));
            let driven = kept.run(kept.engine.drive(&at, &driver, call, folder, &mut listen));
            driven.map(|driven| Outcome::of_driven(args, driven))
        }
        Who::Provider(upstream) => {
            let extra = Default::default();
            let asked = kept.run(kept.engine.ask(&at, &upstream, call, &extra, &mut listen));
            asked.map(|asked| Outcome::of_asked(args, asked))
        }
    };
    // A closed pipe is no failure, so it must not hide one.
    let printed = live.end();
    let outcome = done?;
    printed?;
    if args.output.json {
        talk::json(&outcome)?;
    } else {
        if outcome.how == "had_answered" {
            talk::content(&outcome.text)?;
        }
        talk::note(&outcome.told());
    }
    // Summaries that were begun behind the call come to their end, or they would count as failed.
    kept.run(async {
        kept.engine.rest().await;
        Ok(())
    })
}

/// Who carries a conversation on.
enum Who {
    Program(Driver),
    Provider(Box<Upstream>),
}

impl Who {
    /// Finds them, and makes sure that they can be asked.
    fn of(args: &RunArgs, program: Option<&Program>, settings: &Settings, config: &Config) -> Result<Who, Failure> {
        let Some(program) = program else {
            let theirs = [("--model", args.model.is_some()), ("--in", args.folder.is_some())];
            if let Some((option, _)) = theirs.iter().find(|(_, is_given)| *is_given) {
                let what = format!("{option} is for Claude Code and Codex, and {:?} is a model", args.with);
                return Err(Failure::of(Code::Conflict, what).hinting("leave it out"));
            }
            let upstream = config.upstream_for(&settings.target);
            let meant = || PROGRAMS.iter().map(|program| program.name);
            return Ok(Who::Provider(Box::new(upstream.map_err(|failure| failure.suggesting(&args.with, meant()))?)));
        };
        let driver = program.driver(args.model.as_deref(), config);
        let version = Waiting::new()?.run(driver.version())?;
        talk::note(&format!("{} {version}", driver.name()));
        Ok(Who::Program(driver))
    }
}

/// The model that reads: the one that is named, or one like a program's.
fn settings(args: &RunArgs, program: Option<&Program>, config: &Config) -> Result<Settings, Failure> {
    let model = program.map_or_else(|| args.with.clone(), |it| it.model(args.model.as_deref(), config));
    let target = TargetArgs { model: Some(model), wire: None, window: args.window, reserve: args.reserve };
    Settings::of(&SettingsArgs { target, policy: args.policy.clone() }, config)
}

/// What is said now. Empty words would be refused by some, and pass for an answer with others.
fn words(args: &RunArgs) -> Result<Option<String>, Failure> {
    let words = match args.text.as_deref() {
        Some("-") => source::text(Path::new("-"), &source::WORDS)?,
        Some(text) => text.to_string(),
        None => return Ok(None),
    };
    if words.trim().is_empty() {
        return Err(
            Failure::of(Code::BadValue, "TEXT says nothing").hinting("leave it out to tell what was added since")
        );
    }
    Ok(Some(words))
}

fn fragments(args: &RunArgs) -> Result<Vec<Fragment>, Failure> {
    let mut fragments = Vec::new();
    if let Some(path) = &args.system {
        fragments.push(Fragment::fixed("system", source::text(path, &source::WORDS)?));
    }
    let notes = args.note.iter().enumerate();
    fragments.extend(notes.map(|(nth, note)| Fragment::dynamic(format!("note-{nth}"), note.as_str())));
    Ok(fragments)
}

/// What `--json` prints; `recto run --help` tells its shape.
#[derive(Debug, Serialize)]
struct Outcome {
    conversation: String,
    with: String,
    session: Option<Text>,
    how: &'static str,
    mode: Option<Mode>,
    full_because: Option<Full>,
    sent: Option<Tokens>,
    usage: Option<Usage>,
    text: String,
    entries: usize,
}

impl Outcome {
    fn of_driven(args: &RunArgs, driven: Driven) -> Outcome {
        let how = match driven.how {
            How::Told => "told",
            How::AskedToGoOn => "asked_to_go_on",
            How::HadAnswered => "had_answered",
            How::NothingNew => "nothing_new",
        };
        Outcome {
            session: driven.session,
            how,
            usage: driven.usage,
            text: last_words(&driven.entries),
            entries: driven.entries.len(),
            ..Outcome::of(args, driven.receipt.as_ref())
        }
    }

    fn of_asked(args: &RunArgs, asked: Asked) -> Outcome {
        let entries: Vec<Entry> = asked.reply.iter().map(|reply| reply.entry.clone()).collect();
        Outcome {
            how: if asked.reply.is_some() { "told" } else { "nothing_new" },
            usage: asked.reply.as_ref().and_then(|reply| reply.usage),
            text: last_words(&entries),
            entries: entries.len(),
            ..Outcome::of(args, Some(&asked.receipt))
        }
    }

    fn of(args: &RunArgs, receipt: Option<&Receipt>) -> Outcome {
        Outcome {
            conversation: args.conversation.clone(),
            with: args.with.clone(),
            session: None,
            how: "told",
            mode: receipt.map(|receipt| receipt.mode),
            full_because: receipt.and_then(|receipt| receipt.full),
            sent: receipt.map(|receipt| receipt.ledger.used()),
            usage: None,
            text: String::new(),
            entries: 0,
        }
    }

    /// Says what was done, in one line.
    fn told(&self) -> String {
        let mut parts = Vec::new();
        match (self.how, self.mode) {
            ("nothing_new", _) => parts.push("there is nothing new to tell".to_string()),
            ("had_answered", _) => parts.push("it had answered before; nothing was sent".to_string()),
            (_, Some(Mode::Delta)) => parts.push("only what is new was sent".to_string()),
            _ => {
                let why = self.full_because.map(|why| format!(" ({why})")).unwrap_or_default();
                parts.push(format!("everything was sent{why}"));
            }
        }
        if self.how == "asked_to_go_on" {
            parts.push("it held the message already, and was asked to go on".into());
        }
        parts.extend(self.sent.filter(|_| self.entries > 0).map(|sent| format!("{sent} tokens by our count")));
        parts.extend(self.usage.map(|usage| {
            format!("reported: {} in, of which {} cached, {} out", usage.input, usage.cached, usage.output)
        }));
        parts.extend(self.session.as_ref().map(|session| format!("session {session}")));
        parts.join("; ")
    }
}

/// What was said last.
fn last_words(entries: &[Entry]) -> String {
    let last = entries.iter().rev().find(|entry| entry.role == Role::Assistant);
    let texts = last.into_iter().flat_map(|entry| entry.parts.iter()).filter_map(|part| match part {
        Part::Text { text } => Some(&**text),
        _ => None,
    });
    texts.collect::<Vec<_>>().join("\n")
}
