//! Claude Code: `claude -p`, which reads and prints one JSON record a line.
//!
//! The message of a turn carries a UUID of ours, under which it stands in the program's session file. Instructions go as
//! an appended system prompt, which the program forgets after the turn.

mod hear;
mod place;

use super::process::{self, excerpt};
use super::{Failed, Found, Listen, Ran, Seeded, Settings, Since, Turn};
use crate::error::{Error, Kind};
use hear::{Hearing, Told};
use recto::entry::{Entry, Millis, Role, Text};
use recto::page::Message;
use recto::transcript::claude_code as file;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use tokio::sync::OnceCell;

/// What the program is called.
const NAME: &str = "claude";
/// The oldest version that this was tried with.
const OLDEST: [u32; 3] = [2, 1, 197];
/// How long the program may take to tell about itself.
const PROBE_LIMIT: Duration = Duration::from_secs(30);
/// The longest instructions that go as an argument, in bytes: Linux takes 128 KiB.
const ARGUMENT_BYTES_MAX: usize = 100 * 1024;
/// The option with which newer versions render the instructions of each turn anew.
const SNAPSHOT: &str = "--system-prompt-snapshot";
/// What keeps the program from talking to others than its provider, unless the environment says otherwise.
const QUIET: [&str; 4] =
    ["CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "DISABLE_AUTOUPDATER", "DISABLE_ERROR_REPORTING", "DISABLE_TELEMETRY"];

/// Claude Code with its settings.
#[derive(Clone, Debug)]
pub struct ClaudeCode {
    settings: Settings,
    /// Whether the program must be told to render instructions anew.
    has_snapshot: Arc<OnceCell<bool>>,
}

impl ClaudeCode {
    /// Returns the program with these settings.
    pub fn new(settings: Settings) -> ClaudeCode {
        ClaudeCode { settings, has_snapshot: Arc::default() }
    }

    /// Returns how it is found and run.
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// Returns the version that the program says it has; one that is too old is an error.
    pub async fn version(&self) -> Result<Text, Error> {
        let said = self.probe("--version").await?;
        let hint = format!("install Claude Code {} or newer", shown(OLDEST));
        let Some(version) = said.split_whitespace().next().and_then(numbers) else {
            let what = format!("{NAME} doesn't tell its version, but says {:?}", excerpt(&said));
            return Err(Kind::Program { what, hint: format!("is it Claude Code? {hint}") }.into());
        };
        if version < OLDEST {
            return Err(Kind::Program { what: format!("Claude Code {} is too old", shown(version)), hint }.into());
        }
        Ok(shown(version).into())
    }

    /// Reads what its own file says of a session since a mark.
    pub fn look(&self, session: &str, workspace: &Path, mark: Option<&str>) -> Found {
        let text = match place::of(session, workspace, &self.settings.environment).and_then(|path| place::read(&path)) {
            Ok(Some(text)) => text,
            Ok(None) => return Found::Missing,
            Err(error) => return Found::Corrupt(error.to_string()),
        };
        match file::since(&text, mark) {
            Ok(Some(since)) => {
                let is_taken_back = since.can_go_back && !since.entries.is_empty();
                Found::There(Since {
                    rewind_to: mark.filter(|_| is_taken_back).map(Into::into),
                    mark: since.last,
                    is_answered: since.is_answered,
                    entries: since.entries,
                })
            }
            Ok(None) => Found::Elsewhere,
            Err(error) => Found::Corrupt(error.to_string()),
        }
    }

    /// Writes a session file that holds these messages, but for the instructions among them.
    pub fn seed(&self, messages: &[Message], session: &str, workspace: &Path) -> Result<Seeded, Error> {
        let path = place::of(session, workspace, &self.settings.environment)?;
        let said = messages.iter().filter(|message| message.role != Role::System);
        let entry = |message: &Message| {
            let extra = message.extra.clone();
            Entry { extra, author: message.author.clone(), ..Entry::new(message.role, message.parts.clone()) }
        };
        let entries: Vec<Entry> = said.map(entry).collect();
        let folder = place::real(workspace)?;
        let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_millis());
        let text = file::session(&entries, session, &folder, Millis(i64::try_from(now).unwrap_or(i64::MAX)));
        let mark = file::since(&text, None)?.and_then(|since| since.last);
        if mark.is_none() {
            let (what, hint) = ("there is nothing that a session could begin with", "begin a new one without it");
            return Err(Kind::Program { what: what.into(), hint: hint.into() }.into());
        }
        place::write(&path, &text)?;
        Ok(Seeded { session: session.into(), mark })
    }

    /// Does one turn. What it produced is read from the program's own file, so that nothing differs when that is read
    /// again; where the file doesn't show it, from what was printed.
    pub async fn turn(&self, turn: Turn<'_>, listen: Listen<'_>) -> Result<Ran, Failed> {
        let Some(input) = file::user_line(turn.said, turn.message) else {
            let (what, hint) = ("there is nothing to say to the program", "give it some words");
            return Err(Error::from(Kind::Program { what: what.into(), hint: hint.into() }).into());
        };
        let prompt = place::Prompt::of(turn.instructions, turn.message, ARGUMENT_BYTES_MAX)?;
        let command = process::Command {
            program: self.program()?,
            arguments: self.arguments(&turn, &prompt).await?,
            environment: self.environment(),
            folder: turn.workspace.to_path_buf(),
            input: input.into_bytes(),
            turn_limit: self.settings.turn_limit,
            silence_limit: self.settings.silence_limit,
        };
        let mut hearing = Hearing::new(listen);
        let ended = process::run(&command, &mut |line| hearing.line(line)).await;
        self.ran(&turn, hearing.told(ended)?)
    }

    async fn arguments(&self, turn: &Turn<'_>, prompt: &place::Prompt<'_>) -> Result<Vec<String>, Error> {
        let fixed = ["-p", "--input-format", "stream-json", "--output-format", "stream-json", "--verbose"];
        let mut arguments = self.settings.arguments.clone();
        arguments.extend(fixed.map(String::from));
        arguments.push("--include-partial-messages".into());
        let mut option = |name: &str, value: &str| arguments.extend([name.to_string(), value.to_string()]);
        if let Some(model) = &self.settings.model {
            option("--model", model);
        }
        match prompt {
            place::Prompt::None => {}
            place::Prompt::Argument(text) => option("--append-system-prompt", text),
            place::Prompt::File(path) => option("--append-system-prompt-file", &path.to_string_lossy()),
        }
        match turn.session {
            Some(session) => option("--resume", session),
            None => option("--session-id", turn.new_session),
        }
        if let Some(mark) = turn.rewind_to.filter(|_| turn.session.is_some()) {
            option("--resume-session-at", mark);
        }
        if self.has_snapshot().await? {
            option(SNAPSHOT, "off");
        }
        Ok(arguments)
    }

    /// Newer versions record the first instructions and never look at later ones, unless they are told not to; older
    /// ones don't know the option.
    async fn has_snapshot(&self) -> Result<bool, Error> {
        let ask = || async { Ok::<_, Error>(self.probe("--help").await?.contains(SNAPSHOT)) };
        self.has_snapshot.get_or_try_init(ask).await.copied()
    }

    fn ran(&self, turn: &Turn<'_>, told: Told) -> Result<Ran, Failed> {
        let session = told.session.clone().unwrap_or_else(|| match turn.session {
            Some(session) => session.clone(),
            None => turn.new_session.into(),
        });
        let (usage, model) = (told.usage, told.model.clone());
        let (entries, mark) = match self.look(&session, turn.workspace, Some(turn.message)) {
            Found::There(since) if since.is_answered => (since.entries, since.mark),
            _ => (told.entries(turn.message)?, None),
        };
        Ok(Ran { session, entries, mark, usage, model })
    }

    fn program(&self) -> Result<PathBuf, Error> {
        let found = || process::find(NAME, &self.settings.environment);
        self.settings.program.clone().or_else(found).ok_or_else(|| {
            let hint = "install Claude Code, or say where its program is".into();
            Kind::Program { what: format!("there is no {NAME} on the PATH"), hint }.into()
        })
    }

    fn environment(&self) -> BTreeMap<String, String> {
        let mut environment = self.settings.environment.clone();
        for name in QUIET {
            environment.entry(name.into()).or_insert_with(|| "1".into());
        }
        environment
    }

    /// Returns what the program prints about itself.
    async fn probe(&self, argument: &str) -> Result<String, Error> {
        let limit = PROBE_LIMIT.min(self.settings.turn_limit);
        let command = process::Command {
            program: self.program()?,
            arguments: vec![argument.into()],
            environment: self.environment(),
            folder: std::env::temp_dir(),
            input: Vec::new(),
            turn_limit: limit,
            silence_limit: limit,
        };
        let mut said = String::new();
        let ended = process::run(&command, &mut |line| {
            said.push_str(line);
            said.push('\n');
        })
        .await?;
        match ended.code {
            Some(0) => Ok(said),
            _ => {
                let seen = if ended.stderr.is_empty() { &said } else { &ended.stderr };
                let what = format!("{NAME} {argument} failed: {}", excerpt(seen));
                Err(Kind::Program { what, hint: "check that the program runs by itself".into() }.into())
            }
        }
    }
}

/// Reads a version such as `2.1.197`; what stands behind a dash is left out.
fn numbers(version: &str) -> Option<[u32; 3]> {
    let version = version.split(['-', '+']).next()?;
    let numbers: Vec<u32> = version.split('.').map(str::parse).collect::<Result<_, _>>().ok()?;
    numbers.try_into().ok()
}

fn shown([major, minor, patch]: [u32; 3]) -> String {
    format!("{major}.{minor}.{patch}")
}
