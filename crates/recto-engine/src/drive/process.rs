//! A program as a subprocess: its lines as they come, within bounds, and ended together with all that it started.
//!
//! Every program leads a process group of its own. The group is killed when the program has ended, when a bound is
//! exceeded, and when the future that runs it is dropped. What leaves the group by itself is out of reach.

use crate::error::{Error, Kind};
use rustix::process::{Pid, Signal, kill_process_group};
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::io::{self, ErrorKind};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::process::{Child, ChildStderr, ChildStdin, ChildStdout};
use tokio::time::{Instant, sleep, sleep_until, timeout};

/// The longest line that is read, in bytes.
const LINE_BYTES_MAX: usize = 64 * 1024 * 1024;
/// The most that is read of one program, in bytes.
const OUTPUT_BYTES_MAX: u64 = 1024 * 1024 * 1024;
/// How much of the end of stderr is kept, in bytes.
const STDERR_BYTES_KEPT: usize = 16 * 1024;
/// The longest excerpt in an error message.
const EXCERPT_CHARACTERS_MAX: usize = 400;
/// How much is read at once, in bytes.
const CHUNK_BYTES: usize = 64 * 1024;
/// How long a program that is told to end may take to end by itself.
const GRACE: Duration = Duration::from_secs(2);
/// How long the output of a program that has ended is waited for, if something out of reach holds it open.
const DRAIN: Duration = Duration::from_secs(2);
/// How often a program is tried whose file is being written, and how long is waited in between.
const BUSY_TRIES_MAX: usize = 40;
const BUSY_WAIT: Duration = Duration::from_millis(25);
/// What no limit reaches.
const FOREVER: Duration = Duration::from_secs(365 * 24 * 60 * 60);

/// What a program may need of the environment of the one who starts it.
const USUAL: [&str; 9] = ["PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "TERM", "TMPDIR", "TZ"];
const USUAL_STARTS: [&str; 3] = ["LC_", "XDG_", "SSL_CERT_"];
const USUAL_ENDS: [&str; 2] = ["_proxy", "_PROXY"];

/// What is run.
#[derive(Clone, Debug)]
pub struct Command {
    /// The program's file.
    pub program: PathBuf,
    /// Its arguments.
    pub arguments: Vec<String>,
    /// The whole environment that it gets.
    pub environment: BTreeMap<String, String>,
    /// The folder in which it works.
    pub folder: PathBuf,
    /// What it reads; then its input ends.
    pub input: Vec<u8>,
    /// How long it may take in all.
    pub turn_limit: Duration,
    /// How long it may go without a line.
    pub silence_limit: Duration,
}

/// How a program has ended by itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ended {
    /// Its exit code; `None` if a signal ended it.
    pub code: Option<i32>,
    /// The end of what it said on stderr.
    pub stderr: String,
}

/// Runs a program to its end and hands over every line of its output as it comes. One that exceeds a bound is ended
/// with everything it started, and that is an error.
pub async fn run(command: &Command, line: &mut (dyn FnMut(&str) + Send)) -> Result<Ended, Error> {
    let mut running = Running::start(command).await?;
    let mut tail = Tail::default();
    match running.listen(command, &mut tail, line).await {
        Ok(status) => Ok(Ended { code: status.code(), stderr: tail.text() }),
        Err(stopped) => {
            running.end().await;
            Err(stopped.into_error(command, &tail.text()))
        }
    }
}

/// Finds a program by name on the `PATH` of an environment.
pub fn find(name: &str, environment: &BTreeMap<String, String>) -> Option<PathBuf> {
    let is_program = |path: &PathBuf| {
        let file = std::fs::metadata(path);
        file.is_ok_and(|file| file.is_file() && file.permissions().mode() & 0o111 != 0)
    };
    // An empty part would mean the current folder, whoever may write there.
    let folders = environment.get("PATH")?.split(':').filter(|folder| !folder.is_empty());
    folders.map(|folder| Path::new(folder).join(name)).find(is_program).and_then(|path| std::path::absolute(path).ok())
}

/// Returns what programs usually need of this process's own environment, and every variable whose name begins with one
/// of the prefixes.
pub fn usual_environment(prefixes: &[&str]) -> BTreeMap<String, String> {
    let is_taken = |name: &str| {
        USUAL.contains(&name)
            || USUAL_STARTS.iter().chain(prefixes).any(|start| name.starts_with(start))
            || USUAL_ENDS.iter().any(|end| name.ends_with(end))
    };
    let variables = std::env::vars_os().filter_map(|(name, value)| Some((name.into_string().ok()?, value)));
    let taken = variables.filter(|(name, _)| is_taken(name));
    taken.filter_map(|(name, value)| Some((name, value.into_string().ok()?))).collect()
}

/// A program that runs. Dropping it kills its group at once; the runtime takes note of its end.
struct Running {
    child: Child,
    group: Option<Pid>,
    stdin: Option<ChildStdin>,
    stdout: Option<ChildStdout>,
    stderr: Option<ChildStderr>,
}

/// Why a program was not let go on.
enum Stopped {
    Overtime,
    Silence,
    LongLine,
    MuchOutput,
    Broken(io::Error),
}

impl Running {
    async fn start(command: &Command) -> Result<Running, Error> {
        let mut tries = 1;
        loop {
            match spawn(command) {
                // Somebody is replacing the program, or a fork of this process still holds the file open.
                Err(error) if error.kind() == ErrorKind::ExecutableFileBusy && tries < BUSY_TRIES_MAX => {
                    tries += 1;
                    sleep(BUSY_WAIT).await;
                }
                Err(error) => return Err(not_started(command, &error)),
                Ok(mut child) => {
                    let group = child.id().and_then(|id| Pid::from_raw(id.cast_signed()));
                    let (stdin, stdout, stderr) = (child.stdin.take(), child.stdout.take(), child.stderr.take());
                    return Ok(Running { child, group, stdin, stdout, stderr });
                }
            }
        }
    }

    /// Goes on until the program has ended and all of its output was read.
    async fn listen(
        &mut self,
        command: &Command,
        tail: &mut Tail,
        line: &mut (dyn FnMut(&str) + Send),
    ) -> Result<ExitStatus, Stopped> {
        let (mut stdout, mut stderr) = (self.stdout.take(), self.stderr.take());
        let mut writing = std::pin::pin!(write(self.stdin.take(), &command.input));
        let (mut said, mut told) = (vec![0; CHUNK_BYTES], vec![0; CHUNK_BYTES]);
        let (mut lines, mut is_written, mut ended) = (Lines::default(), false, None);
        let end = Instant::now() + command.turn_limit.min(FOREVER);
        let mut silent = Instant::now() + command.silence_limit.min(FOREVER);
        loop {
            if let (Some(status), None, None) = (ended, &stdout, &stderr) {
                lines.last(line);
                return Ok(status);
            }
            tokio::select! {
                () = &mut writing, if !is_written => is_written = true,
                read = read(&mut stdout, &mut said), if stdout.is_some() => match read.map_err(Stopped::Broken)? {
                    0 => stdout = None,
                    size => {
                        silent = Instant::now() + command.silence_limit.min(FOREVER);
                        lines.take(&said[..size], line)?;
                    }
                },
                read = read(&mut stderr, &mut told), if stderr.is_some() => match read.map_err(Stopped::Broken)? {
                    0 => stderr = None,
                    size => tail.take(&told[..size]),
                },
                status = self.child.wait(), if ended.is_none() => {
                    ended = Some(status.map_err(Stopped::Broken)?);
                    // What it left behind would hold its output open, and outlive it.
                    self.signal(Signal::KILL);
                    self.group = None;
                    silent = Instant::now() + DRAIN;
                }
                () = sleep_until(silent.min(end)) => match ended {
                    Some(status) => {
                        lines.last(line);
                        return Ok(status);
                    }
                    None if silent < end => return Err(Stopped::Silence),
                    None => return Err(Stopped::Overtime),
                },
            }
        }
    }

    /// Ends the program and everything it started: by asking, then by force.
    async fn end(&mut self) {
        self.signal(Signal::TERM);
        // It may ignore that it was asked, or wait for what ignores it.
        drop(timeout(GRACE, self.child.wait()).await);
        self.signal(Signal::KILL);
        self.group = None;
        // A program that was killed ends, unless the kernel itself holds it.
        drop(timeout(GRACE, self.child.wait()).await);
    }

    fn signal(&self, signal: Signal) {
        if let Some(group) = self.group {
            // A group without members is what is wanted.
            let _ = kill_process_group(group, signal);
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.signal(Signal::KILL);
    }
}

fn spawn(command: &Command) -> io::Result<Child> {
    let mut std = std::process::Command::new(std::path::absolute(&command.program)?);
    std.args(&command.arguments).env_clear().envs(&command.environment).current_dir(&command.folder).process_group(0);
    std.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    tokio::process::Command::from(std).kill_on_drop(true).spawn()
}

async fn write(stdin: Option<ChildStdin>, input: &[u8]) {
    if let Some(mut stdin) = stdin {
        // A program that ends without reading has its reasons; its exit code tells them.
        drop(stdin.write_all(input).await);
        drop(stdin.shutdown().await);
    }
}

async fn read(from: &mut Option<impl AsyncReadExt + Unpin>, chunk: &mut [u8]) -> io::Result<usize> {
    match from {
        Some(from) => from.read(chunk).await,
        None => Ok(0),
    }
}

/// Output, cut into lines.
#[derive(Default)]
struct Lines {
    begun: Vec<u8>,
    bytes: u64,
}

impl Lines {
    fn take(&mut self, chunk: &[u8], line: &mut (dyn FnMut(&str) + Send)) -> Result<(), Stopped> {
        self.bytes += chunk.len() as u64;
        if self.bytes > OUTPUT_BYTES_MAX {
            return Err(Stopped::MuchOutput);
        }
        for piece in chunk.split_inclusive(|byte| *byte == b'\n') {
            if self.begun.len() + piece.len() > LINE_BYTES_MAX {
                return Err(Stopped::LongLine);
            }
            self.begun.extend_from_slice(piece);
            if piece.ends_with(b"\n") {
                line(String::from_utf8_lossy(&self.begun).trim_end_matches(['\n', '\r']));
                self.begun.clear();
            }
        }
        Ok(())
    }

    /// Hands over what stands behind the last line end.
    fn last(&mut self, line: &mut (dyn FnMut(&str) + Send)) {
        if !self.begun.is_empty() {
            line(&String::from_utf8_lossy(&std::mem::take(&mut self.begun)));
        }
    }
}

/// The end of what is said on stderr.
#[derive(Default)]
struct Tail {
    bytes: Vec<u8>,
}

impl Tail {
    fn take(&mut self, chunk: &[u8]) {
        self.bytes.extend_from_slice(chunk);
        // Moved only now and then, so that a flood costs no more than its length.
        if self.bytes.len() > STDERR_BYTES_KEPT + CHUNK_BYTES {
            self.bytes.drain(..self.bytes.len() - STDERR_BYTES_KEPT);
        }
    }

    fn text(&self) -> String {
        let kept = &self.bytes[self.bytes.len().saturating_sub(STDERR_BYTES_KEPT)..];
        String::from_utf8_lossy(kept).trim().to_string()
    }
}

impl Stopped {
    fn into_error(self, command: &Command, stderr: &str) -> Error {
        let name = command.program.display();
        let said = if stderr.is_empty() { String::new() } else { format!("; it said last: {}", excerpt(stderr)) };
        let timed_out = |what: String, hint: &str| Kind::TimedOut { what, hint: hint.into() };
        let program = |what: String, hint: &str| Kind::Program { what, hint: hint.into() };
        let is_it = "is it the program that was meant?";
        match self {
            Stopped::Overtime => timed_out(
                format!("{name} took longer than {:?} and was ended{said}", command.turn_limit),
                "raise the time limit of a turn, or ask for less at once",
            ),
            Stopped::Silence => timed_out(
                format!("{name} printed nothing for {:?} and was ended{said}", command.silence_limit),
                "check that it reaches its provider, or raise the limit",
            ),
            Stopped::LongLine => {
                program(format!("{name} printed a line of more than {} MiB{said}", LINE_BYTES_MAX >> 20), is_it)
            }
            Stopped::MuchOutput => {
                program(format!("{name} printed more than {} MiB{said}", OUTPUT_BYTES_MAX >> 20), is_it)
            }
            Stopped::Broken(error) => program(format!("{name} can't be listened to: {error}{said}"), "try again"),
        }
        .into()
    }
}

/// The end of a text, as long as an error message may be.
pub(super) fn excerpt(text: &str) -> Cow<'_, str> {
    let text = text.trim();
    match text.char_indices().rev().nth(EXCERPT_CHARACTERS_MAX) {
        Some((at, _)) => Cow::Owned(format!("… {}", &text[at..])),
        None => Cow::Borrowed(text),
    }
}

fn not_started(command: &Command, error: &io::Error) -> Error {
    let (name, folder) = (command.program.display(), command.folder.display());
    let (what, hint) = match error.kind() {
        _ if !command.folder.is_dir() => {
            (format!("{name} can't work in {folder}: there is no such folder"), "make the folder, or name another one")
        }
        _ if command.program.is_dir() => (format!("{name} is a folder"), "name the program's file"),
        ErrorKind::NotFound if !command.program.exists() => {
            (format!("there is no program {name}"), "install it, or say where it is")
        }
        // The file is there, so what is missing is what its first line names, or its loader.
        ErrorKind::NotFound => {
            (format!("{name} can't be run: {error}"), "what it needs to run is missing; install it anew")
        }
        ErrorKind::PermissionDenied => (format!("{name} may not be run: {error}"), "make it executable"),
        _ => (format!("{name} can't be run: {error}"), "check that it is a program for this machine"),
    };
    Kind::Program { what, hint: hint.into() }.into()
}
