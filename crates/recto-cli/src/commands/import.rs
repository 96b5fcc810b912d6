//! `recto import`: conversations of files, kept in the store.

mod lines;

use crate::args::ImportArgs;
use crate::beside::Beside;
use crate::codes::Code;
use crate::config::{Config, Origin, Set};
use crate::failure::Failure;
use crate::kept::Kept;
use crate::programs::PROGRAMS;
use crate::progress::Progress;
use crate::settings::{self, MODEL};
use crate::source::{self, Named};
use crate::table::{self, Side};
use crate::{interrupt, talk};
use lines::Export;
use recto::Tokenizer;
use recto::entry::Text;
use recto_engine::drive::Heard;
use recto_engine::engine::Imported;
use recto_engine::store::ReaderName;
use recto_engine::{At, Opening, Tenant};
use serde::Serialize;
use std::collections::HashMap;
use std::path::Path;

/// How many refusals are told with the failure at the end; all of them stand above it.
const CAUSES_MAX: usize = 3;
/// How wide a name may be in the table.
const NAME_WIDTH_MAX: usize = 60;

/// Keeps every conversation of the files, and prints what was added.
pub(crate) fn run(args: &ImportArgs, config: &Config) -> Result<(), Failure> {
    let tokenizer = tokenizer(args, config)?;
    let files = source::files(&args.paths)?;
    let kept = Kept::open_or_make(&args.store, config)?;
    interrupt::promise_checks();
    let progress = Progress::on_stderr("conversations");
    let (name, report) = (args.name.as_deref(), Report::default());
    let mut import = Import { kept, name, tokenizer, config, holders: None, progress, report };
    if import.name.is_some() && files.len() > 1 {
        return Err(several(&format!("{} files", files.len())));
    }
    for file in &files {
        interrupt::check()?;
        let done = import.file(file);
        import.settle(file, None, done)?;
    }
    let Import { report, progress, .. } = import;
    drop(progress);
    if args.output.json {
        talk::json(&report)?;
    } else if !report.imported.is_empty() {
        talk::text(&report.table())?;
    }
    report.into_failure().map_or(Ok(()), Err)
}

/// What counts new conversations: as it is named, else as the configured model counts.
fn tokenizer(args: &ImportArgs, config: &Config) -> Result<Tokenizer, Failure> {
    if let Some(tokenizer) = args.tokenizer {
        return Ok(tokenizer);
    }
    let default = || Set { value: MODEL.to_string(), origin: Origin::Default };
    let model = config.layer.model.clone().unwrap_or_else(default);
    Ok(settings::target(&model, config)?.target.tokenizer)
}

/// An import that is under way.
struct Import<'a> {
    kept: Kept,
    name: Option<&'a str>,
    tokenizer: Tokenizer,
    config: &'a Config,
    /// The sessions that carry on kept conversations; read when the first is asked for.
    holders: Option<HashMap<Text, (At, Text, ReaderName)>>,
    progress: Progress,
    report: Report,
}

/// What `--json` prints; `recto import --help` tells its shape.
#[derive(Default, Serialize)]
struct Report {
    imported: Vec<Row>,
    failures: Vec<Refused>,
}

#[derive(Serialize)]
struct Row {
    file: String,
    #[serde(flatten)]
    imported: Imported,
}

#[derive(Serialize)]
struct Refused {
    file: String,
    conversation: Option<String>,
    code: Option<String>,
    error: String,
    hints: Vec<String>,
}

impl Import<'_> {
    /// Keeps the conversations of one file.
    fn file(&mut self, file: &Path) -> Result<(), Failure> {
        let text = match Export::open(file)? {
            Export::Lines(lines) => {
                self.progress.expect(1, &source::shown(file));
                let imported = lines.into_store(&self.kept, self.name)?;
                self.add(file, imported);
                return Ok(());
            }
            Export::Other(text) => text,
        };
        let all = source::named(file, &text)?;
        if self.name.is_some() && all.len() > 1 {
            return Err(several(&format!("{} conversations", all.len())));
        }
        for note in all.iter().flat_map(|named| &named.conversation.notes) {
            self.progress.note(&format!("{}: {note}", source::shown(file)));
        }
        if let Some(note) = source::replaced(file, all.iter().map(|named| &named.conversation)) {
            self.progress.note(&note);
        }
        for named in all {
            interrupt::check()?;
            let name = self.name.map_or(named.name.clone(), Into::into);
            self.progress.expect(1, &name);
            let done = self.conversation(&name, named).map(|imported| self.add(file, imported));
            self.settle(file, Some(&name), done)?;
        }
        Ok(())
    }

    fn conversation(&mut self, name: &str, named: Named) -> Result<Imported, Failure> {
        if let (None, Some(session)) = (self.name, &named.conversation.id)
            && let Some(imported) = self.driven(session, &named)?
        {
            return Ok(imported);
        }
        let at = self.kept.at(name);
        let meta = Beside::meta_of(&named.conversation);
        let opening = Opening { meta: meta.clone(), tokenizer: Some(self.tokenizer), ..Opening::default() };
        let imported = self
            .kept
            .run(self.kept.engine.import_entries(&at, opening, named.conversation.entries))
            .map_err(|failure| failure.during(format!("conversation {name:?} was not imported")))?;
        // A request that has grown may offer other tools than it did.
        if imported.known > 0 && imported.added > 0 {
            let title = self.kept.conversation(name)?.title;
            self.kept.run(self.kept.engine.describe(&at, &title, meta))?;
        }
        Ok(imported)
    }

    /// Adds what is new in a session that carries on a kept conversation; `None` if none does, or it is kept elsewhere.
    fn driven(&mut self, session: &str, named: &Named) -> Result<Option<Imported>, Failure> {
        let (kept, engine) = (&self.kept, &self.kept.engine);
        let holders = match self.holders.take() {
            Some(holders) => holders,
            None => kept.run(engine.holders(&Tenant::default()))?,
        };
        let holders = self.holders.insert(holders);
        let Some((at, provider, reader)) = holders.get(session).cloned() else { return Ok(None) };
        let Some(program) = PROGRAMS.iter().find(|program| *program.key == *provider) else { return Ok(None) };
        let mut note = |heard| {
            if let Heard::Note(note) = heard {
                self.progress.note(&note);
            }
        };
        let driver = program.driver(None, self.config);
        let caught = kept.run(engine.catch_up(&at, &driver, &reader, &mut note))?;
        let conversation = at.conversation;
        self.progress.note(&format!("{session} is how {} carries on {:?}", program.name, conversation.as_str()));
        let Some(added) = caught else {
            self.progress.note("its own file is not here; this one is kept as a conversation of its own");
            return Ok(None);
        };
        let known = (named.conversation.entries.len() as u64).saturating_sub(added);
        Ok(Some(Imported { conversation, known, added }))
    }

    fn add(&mut self, file: &Path, imported: Imported) {
        self.progress.step();
        self.report.imported.push(Row { file: source::shown(file), imported });
    }

    /// Goes on if only this one can't be imported; whatever is wrong with the store ends everything.
    fn settle(&mut self, file: &Path, name: Option<&str>, done: Result<(), Failure>) -> Result<(), Failure> {
        let failure = match done {
            Err(failure) if failure.is_about_input() => failure,
            done => return done,
        };
        let (code, error, hints) = failure.parts();
        let hints = hints.iter().map(|hint| as_option(hint)).collect();
        let (file, conversation) = (source::shown(file), name.map(Into::into));
        let refused = Refused { file, conversation, code, error, hints };
        self.progress.note(&refused.told());
        self.report.failures.push(refused);
        Ok(())
    }
}

/// The engine's advice, as the command line spells it.
fn as_option(hint: &str) -> String {
    if hint == "import it under another name" { format!("{hint}: --as NAME") } else { hint.into() }
}

fn several(what: &str) -> Failure {
    Failure::of(Code::SeveralConversations, format!("--as names one conversation, and there are {what}"))
        .hinting("import them one by one, or without --as")
}

impl Refused {
    fn told(&self) -> String {
        let code = self.code.as_deref().unwrap_or_default();
        let hints = self.hints.iter().map(|hint| format!("\n  hint: {hint}")).collect::<String>();
        format!("{}: not imported [{code}]: {}{hints}", self.file, self.error)
    }
}

impl Report {
    fn table(&self) -> String {
        let mut rows = vec![["conversation", "known", "added", "file"].map(String::from)];
        let number = |number: u64| number.to_string();
        rows.extend(self.imported.iter().map(|Row { file, imported }| {
            let name = table::cut(&talk::harmless(imported.conversation.as_str()), NAME_WIDTH_MAX);
            [name, number(imported.known), number(imported.added), talk::harmless(file)]
        }));
        let sum = |of: fn(&Imported) -> u64| self.imported.iter().map(|row| of(&row.imported)).sum::<u64>();
        let lines = table::aligned(&rows, [Side::Left, Side::Right, Side::Right, Side::Left]);
        let (known, added) = (sum(|it| it.known), sum(|it| it.added));
        format!("{lines}\n\n{} conversations, entries known {known}, added {added}", self.imported.len())
    }

    fn into_failure(self) -> Option<Failure> {
        let (failures, all) = (self.failures.len(), self.failures.len() + self.imported.len());
        let failure = Failure::of(Code::NotImported, format!("not imported: {failures} of {all}"));
        let told = self.failures.iter().take(CAUSES_MAX).map(|it| format!("{}: {}", it.file, it.error));
        (failures > 0)
            .then(|| told.fold(failure, Failure::because).hinting("the others are kept; the lines above say why"))
    }
}
