//! The only place that prints: stdout is data, stderr is talk.

use crate::clock;
use crate::codes::Code;
use crate::failure::Failure;
use crate::paint::Colour;
use recto::transcript::time;
use serde::Serialize;
use serde_json::{Map, Value, json};
use std::io::{self, IsTerminal, Write};
use std::sync::atomic::{AtomicU8, Ordering};
use terminal_size::{Width, terminal_size_of};

/// How many columns a terminal has that doesn't say.
const WIDTH_USUAL: usize = 80;

/// How what is said on stderr is spelled.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Spelling {
    /// For people.
    #[default]
    Text,
    /// One object a line, for programs.
    Json,
}

/// How much what is said matters; the first matters most.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Level {
    /// Something could not be done, and somebody has to see to it.
    Error,
    /// Something could not be done this time.
    Warn,
    /// Something happened.
    #[default]
    Info,
}

impl Spelling {
    /// All there are, as they are spelled.
    pub(crate) const NAMES: [(&'static str, Spelling); 2] = [("text", Spelling::Text), ("json", Spelling::Json)];

    /// Returns how it is spelled.
    pub(crate) fn name(self) -> &'static str {
        Spelling::NAMES[self as usize].0
    }
}

impl Level {
    /// All there are, as they are spelled.
    pub(crate) const NAMES: [(&'static str, Level); 3] =
        [("error", Level::Error), ("warn", Level::Warn), ("info", Level::Info)];

    /// Returns how it is spelled.
    pub(crate) fn name(self) -> &'static str {
        Level::NAMES[self as usize].0
    }
}

/// How this process speaks; only a server changes it.
static SPELLING: AtomicU8 = AtomicU8::new(Spelling::Text as u8);
static LEVEL: AtomicU8 = AtomicU8::new(Level::Info as u8);

/// Says everything on stderr in this way from now on, and nothing that matters less.
pub(crate) fn speak(spelling: Spelling, level: Level) {
    SPELLING.store(spelling as u8, Ordering::Relaxed);
    LEVEL.store(level as u8, Ordering::Relaxed);
}

fn is_json() -> bool {
    SPELLING.load(Ordering::Relaxed) == Spelling::Json as u8
}

/// Writes data to stdout, byte for byte.
pub(crate) fn data(bytes: &[u8]) -> Result<(), Failure> {
    let mut out = io::stdout().lock();
    out.write_all(bytes).and_then(|()| out.flush()).map_err(|error| Failure::stdout(&error))
}

/// Writes a value to stdout as one line of JSON.
pub(crate) fn json(value: &impl Serialize) -> Result<(), Failure> {
    data(format!("{}\n", as_json(value)?).as_bytes())
}

/// Returns a value as one line of JSON, without a line end.
pub(crate) fn as_json(value: &impl Serialize) -> Result<String, Failure> {
    serde_json::to_string(value)
        .map_err(|error| Failure::of(Code::Defect, "cannot be written as JSON").because(error.to_string()))
}

/// Writes text for people to stdout, with a line end after it.
pub(crate) fn text(text: &str) -> Result<(), Failure> {
    data(format!("{}\n", harmless(text)).as_bytes())
}

/// Writes text of a conversation to stdout, with a line end after it: as it is, but where a terminal would heed it.
pub(crate) fn content(content: &str) -> Result<(), Failure> {
    if io::stdout().is_terminal() { text(content) } else { data(format!("{content}\n").as_bytes()) }
}

/// Returns how many columns stdout has, if it is a terminal.
pub(crate) fn width() -> Option<usize> {
    io::stdout()
        .is_terminal()
        .then(|| terminal_size_of(io::stdout()).map_or(WIDTH_USUAL, |(Width(columns), _)| columns.into()))
}

/// Says something on stderr. That nobody listens is no reason to stop.
pub(crate) fn note(text: &str) {
    event(Level::Info, "note", text, Map::new);
}

/// Says on stderr what somebody may have to see to.
pub(crate) fn warn(text: &str) {
    event(Level::Warn, "warning", text, Map::new);
}

/// Says on stderr that something happened: as a text for people, or with fields for programs.
pub(crate) fn event(level: Level, name: &str, text: &str, fields: impl FnOnce() -> Map<String, Value>) {
    if level as u8 > LEVEL.load(Ordering::Relaxed) {
        return;
    }
    if !is_json() {
        return told(&harmless(text));
    }
    let mut line = Map::new();
    line.insert("time".into(), time::written(clock::now()).into());
    line.insert("level".into(), level.name().into());
    line.insert("event".into(), name.into());
    line.insert("message".into(), text.into());
    line.extend(fields());
    told(&Value::Object(line).to_string());
}

/// Tells on stderr why a command ends.
pub(crate) fn failure(failure: &Failure, colour: Colour) {
    if !is_json() {
        return told(&failure.told(colour.on_stderr()));
    }
    let (code, text, hints) = failure.parts();
    let fields = || [("code".into(), json!(code)), ("hints".into(), json!(hints))].into_iter().collect();
    event(Level::Error, "failure", &text, fields);
}

/// Says on stderr what is safe for a terminal already.
pub(crate) fn told(text: &str) {
    if !text.is_empty() {
        let mut err = io::stderr().lock();
        drop(writeln!(err, "{text}"));
    }
}

/// Returns a text whose control characters are spelled out: names and contents come from files, and must not
/// steer a terminal.
pub(crate) fn harmless(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '\n' => out.push(c),
            _ if c.is_control() => out.extend(c.escape_default()),
            _ => out.push(c),
        }
    }
    out
}
