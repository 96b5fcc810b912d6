//! Codex: `codex exec`, and the rollouts that it keeps.
//!
//! What is true for one turn alone is given as the file of its base prompt, which it forgets; what is said goes through
//! its input, so that it may be long. The rollout tells what came of it, in the words that `recto import` reads, too.

mod events; // what it prints
mod prompt; // what it is told
mod rollout; // what it keeps

use super::process::{self, Command, Ended, excerpt};
use super::{Failed, Found, Heard, Listen, Ran, Seeded, Settings, Turn};
use crate::error::{Error, Kind};
use events::Events;
use prompt::{Private, Prompt};
use recto::entry::{Entry, Part, Role, Text};
use recto::page::Message;
use recto::transcript::codex::Begun;
use recto::wire::Usage;
use std::fs::DirBuilder;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The oldest version that is known to do all of this.
const OLDEST: [u64; 3] = [0, 150, 0];
/// How long it may take to say its version.
const VERSION_LIMIT: Duration = Duration::from_secs(20);
/// What keeps it from calling home, without changing what it does; what the user's arguments say of the same counts.
const QUIET: [(&str, &str); 2] = [("check_for_update_on_startup", "false"), ("analytics.enabled", "false")];
/// What sessions are said to be for that were begun with instructions of ours in the place of the program's own.
const BEGUN_WITH_OURS: &str = "recto";
/// What is told in a turn without instructions where those that the session was begun with would come back. The program
/// takes no empty file.
const NOTHING_TOLD: &str = "No instructions are given for this turn.";

/// Codex with its settings.
#[derive(Clone, Debug)]
pub struct Codex {
    settings: Settings,
}

impl Codex {
    /// Returns the program with these settings.
    pub fn new(settings: Settings) -> Codex {
        Codex { settings }
    }

    /// Returns how it is found and run.
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// Returns the version that the program says it has; one that is too old is an error.
    pub async fn version(&self) -> Result<Text, Error> {
        let command = Command {
            program: self.program()?,
            arguments: vec!["--version".into()],
            environment: self.settings.environment.clone(),
            folder: std::env::temp_dir(),
            input: Vec::new(),
            turn_limit: VERSION_LIMIT,
            silence_limit: VERSION_LIMIT,
        };
        let mut printed = String::new();
        let ended = process::run(&command, &mut |line| {
            printed.push_str(line);
            printed.push('\n');
        })
        .await?;
        let name = command.program.display();
        let found = printed.split_whitespace().rev().find_map(|word| Some((word, numbers(word)?)));
        match found.filter(|_| ended.code == Some(0)) {
            Some((version, numbers)) if numbers >= OLDEST => Ok(version.into()),
            Some((version, _)) => {
                let [major, minor, patch] = OLDEST;
                let what = format!("{name} has version {version}; at least {major}.{minor}.{patch} is needed");
                Err(program(what, "update it: npm install -g @openai/codex"))
            }
            None => {
                let said = if printed.trim().is_empty() { &ended.stderr } else { &printed };
                let what = format!("{name} doesn't say which version it has; it said {:?}", excerpt(said));
                Err(program(what, "is it Codex? Install it with: npm install -g @openai/codex"))
            }
        }
    }

    /// Reads what its own file says of a session since a mark.
    pub fn look(&self, session: &str, workspace: &Path, mark: Option<&str>) -> Found {
        match self.home(workspace) {
            Ok(home) => rollout::look(&home, session, mark),
            Err(error) => Found::Corrupt(error.to_string()),
        }
    }

    /// Writes a session file that holds these messages, but for instructions, which are told in every turn.
    pub fn seed(&self, messages: &[Message], session: &str, workspace: &Path) -> Result<Seeded, Error> {
        let home = self.made_home(workspace)?;
        let spoken = messages.iter().filter(|message| message.role != Role::System);
        let entries: Vec<Entry> = spoken.map(entry).collect();
        let mark = rollout::seed(&home, &entries, session, workspace)?;
        Ok(Seeded { session: session.into(), mark: Some(mark) })
    }

    /// Does one turn.
    pub async fn turn(&self, turn: Turn<'_>, listen: Listen<'_>) -> Result<Ran, Failed> {
        if turn.rewind_to.is_some() {
            let what = "Codex can't be sent back to a place in its session";
            return Err(program(what.into(), "say everything in a new session").into());
        }
        let home = self.made_home(turn.workspace)?;
        let before = turn.session.map(|session| Before::of(&home, session, turn.mark)).transpose()?;
        let prompt = Prompt::of(turn.said);
        if prompt.text.trim().is_empty() {
            return Err(program("nothing is said to Codex".into(), "say something").into());
        }
        // Until the turn is over, or given up.
        let mut private = Private::named(turn.message);
        let command = self.command(&turn, before.as_ref(), prompt, &mut private)?;
        let mut events = Events::default();
        let ended = process::run(&command, &mut |line| events.line(line, listen)).await?;
        let session = judged(&turn, &events, &ended, &command)?;
        Ok(self.ran(&home, session, before, events, listen))
    }

    fn command(
        &self,
        turn: &Turn<'_>,
        before: Option<&Before>,
        prompt: Prompt,
        private: &mut Private,
    ) -> Result<Command, Error> {
        let users = &self.settings.arguments;
        let is_said = |key: &str| users.iter().any(|argument| argument.contains(key));
        let mut arguments = vec!["exec".to_string()];
        arguments.extend(users.iter().cloned());
        arguments.extend(["--json", "--skip-git-repo-check"].map(String::from));
        if let Some(model) = &self.settings.model {
            arguments.push(format!("--model={model}"));
        }
        for (key, value) in QUIET.iter().filter(|(key, _)| !is_said(key)) {
            arguments.push(format!("--config={key}={value}"));
        }
        if let Some(text) = instructions(turn.instructions, before.map(|before| &before.begun)) {
            let file = private.put("instructions.md", text.as_bytes())?;
            let file = serde_json::Value::from(file.to_string_lossy());
            arguments.push(format!("--config=model_instructions_file={file}"));
            if before.is_none() && !is_said("--thread-source") {
                arguments.push(format!("--thread-source={BEGUN_WITH_OURS}"));
            }
        }
        arguments.extend(turn.session.map(|_| "resume".to_string()));
        for (at, image) in prompt.images.iter().enumerate() {
            let file = private.put(&format!("{}.{}", at + 1, image.kind), &image.bytes)?;
            arguments.push(format!("--image={}", file.display()));
        }
        arguments.extend(turn.session.map(|session| session.to_string()));
        arguments.push("-".into());
        Ok(Command {
            program: self.program()?,
            arguments,
            environment: self.settings.environment.clone(),
            folder: turn.workspace.to_path_buf(),
            input: prompt.text.into_bytes(),
            turn_limit: self.settings.turn_limit,
            silence_limit: self.settings.silence_limit,
        })
    }

    /// What a good turn has come to: as the rollout tells it, or else as it was printed.
    fn ran(&self, home: &Path, session: Text, before: Option<Before>, events: Events, listen: Listen<'_>) -> Ran {
        let (start, is_new) = (before.as_ref().map_or(0, |before| before.bytes), before.is_none());
        match rollout::read(home, &session, start) {
            Ok((since, mark)) if since.is_answered => {
                let is_said_to_it = |entry: &Entry| {
                    let is_words = entry.parts.iter().any(|part| !matches!(part, Part::Opaque { .. }));
                    entry.role == Role::User && is_words
                };
                let entries = since.entries.into_iter().filter(|entry| !is_said_to_it(entry)).collect();
                let usage = since.usage.or(events.usage.filter(|_| is_new));
                let model = since.model.or(self.settings.model.clone());
                return Ran { session, entries, mark: Some(mark), usage, model };
            }
            Ok(_) => listen(Heard::Note("the rollout of Codex doesn't show the turn".into())),
            Err(why) => listen(Heard::Note(format!("the rollout of Codex can't be read: {why}").into())),
        }
        let parts: Vec<Part> = events.texts().map(Part::text).collect();
        // What is printed of a session that went on is the sum over all of its turns.
        let usage: Option<Usage> = events.usage.filter(|_| is_new);
        let entries = vec![Entry::new(Role::Assistant, parts)];
        Ran { session, entries, mark: None, usage, model: self.settings.model.clone() }
    }

    fn program(&self) -> Result<PathBuf, Error> {
        let found = self.settings.program.clone().or_else(|| process::find("codex", &self.settings.environment));
        let hint = "install it with: npm install -g @openai/codex, or say where it is";
        found.ok_or_else(|| program("there is no codex on the PATH".into(), hint))
    }

    /// Where the program keeps its sessions and settings.
    fn home(&self, workspace: &Path) -> Result<PathBuf, Error> {
        let variable = |name| self.settings.environment.get(name).filter(|value| !value.is_empty());
        let own = variable("CODEX_HOME").map(PathBuf::from);
        let found = own.or_else(|| variable("HOME").map(|home| Path::new(home).join(".codex")));
        let hint = "set HOME or CODEX_HOME in the environment that it gets";
        let found = found.ok_or_else(|| program("nobody says where Codex keeps its sessions".into(), hint))?;
        Ok(workspace.join(found))
    }

    /// The same; the program itself doesn't start without the folder.
    fn made_home(&self, workspace: &Path) -> Result<PathBuf, Error> {
        let home = self.home(workspace)?;
        let made = DirBuilder::new().recursive(true).mode(0o700).create(&home);
        made.map_err(|error| {
            program(format!("{} can't be made: {error}", home.display()), "check the permissions of its folder")
        })?;
        Ok(home)
    }
}

/// A session before a turn.
struct Before {
    begun: Begun,
    /// How much of its rollout is known.
    bytes: u64,
}

impl Before {
    fn of(home: &Path, session: &str, mark: Option<&str>) -> Result<Before, Failed> {
        // Given any other name, the program begins a new session.
        if !is_uuid(session) {
            return Err(Failed::Unknown(format!("{session:?} is no name of a session of Codex")));
        }
        let (begun, bytes) = rollout::known(home, session, mark).map_err(Failed::Unknown)?;
        Ok(Before { begun, bytes })
    }
}

/// The base prompt of a turn, where the program is not to choose it.
fn instructions(given: &str, begun: Option<&Begun>) -> Option<String> {
    let given = Some(given).filter(|text| !text.trim().is_empty());
    let is_ours = begun.is_some_and(|begun| begun.source.as_deref() == Some(BEGUN_WITH_OURS));
    let base = begun.and_then(|begun| begun.base.as_deref());
    match (given, base) {
        (Some(given), Some(base)) if !is_ours => Some(format!("{}\n\n{given}", base.trim_end())),
        (Some(given), _) => Some(given.into()),
        (None, _) => is_ours.then(|| NOTHING_TOLD.into()),
    }
}

/// Returns the session of a turn that went well.
fn judged(turn: &Turn<'_>, events: &Events, ended: &Ended, command: &Command) -> Result<Text, Failed> {
    let said = excerpt(&ended.stderr);
    if let (Some(asked), None) = (turn.session, &events.session) {
        if ended.stderr.contains("already has an active writer") {
            return Err(Failed::InUse(format!("somebody else is writing to session {asked} of Codex")));
        }
        if ended.stderr.contains("no rollout found") || ended.stderr.contains("thread/resume failed") {
            return Err(Failed::Unknown(format!("Codex doesn't resume session {asked}: {said}")));
        }
    }
    if let (Some(asked), Some(got)) = (turn.session, &events.session)
        && asked != got
    {
        return Err(Failed::Unknown(format!("Codex went on with session {got} instead of {asked}")));
    }
    let name = command.program.display();
    if let Some(message) = &events.failed {
        return Err(events::refused(message).into());
    }
    let has_answer = events.is_complete && events.texts().next().is_some();
    match (&events.session, ended.code) {
        (Some(session), Some(0)) if has_answer && is_uuid(session) => return Ok(session.clone()),
        _ => {}
    }
    let code = ended.code.map_or("by a signal".to_string(), |code| format!("with code {code}"));
    let missing = match &events.session {
        _ if events.is_complete => "and gave no answer",
        Some(_) => "before its turn did",
        None => "and began no turn",
    };
    let saw = match (&events.error, &events.odd) {
        (Some(error), _) => format!("; it said: {}", excerpt(error)),
        (None, Some(odd)) => format!("; it printed: {:?}", excerpt(odd)),
        (None, None) if said.is_empty() => String::new(),
        (None, None) => format!("; it said: {said}"),
    };
    let hint = "run it by hand in the same folder to see what it says; is it Codex, and signed in?";
    Err(program(format!("{name} ended {code} {missing}{saw}"), hint).into())
}

fn program(what: String, hint: &str) -> Error {
    Kind::Program { what, hint: hint.into() }.into()
}

/// The numbers of a version such as `0.166.0` or `0.167.0-alpha.2`.
fn numbers(version: &str) -> Option<[u64; 3]> {
    let plain = version.trim_start_matches('v').split(['-', '+']).next()?;
    let parts: Vec<u64> = plain.split('.').map(|part| part.parse().ok()).collect::<Option<_>>()?;
    parts.try_into().ok()
}

fn is_uuid(text: &str) -> bool {
    let is_right = |(at, byte): (usize, u8)| match at {
        8 | 13 | 18 | 23 => byte == b'-',
        _ => byte.is_ascii_hexdigit(),
    };
    text.len() == 36 && text.bytes().enumerate().all(is_right)
}

fn entry(message: &Message) -> Entry {
    let mut entry = Entry::new(message.role, message.parts.clone());
    (entry.author, entry.extra) = (message.author.clone(), message.extra.clone());
    entry
}
