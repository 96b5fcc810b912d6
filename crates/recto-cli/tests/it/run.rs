//! Runs the command, in a folder of its own.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};

/// The bundled conversation.
pub(crate) const FIXTURE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fixtures/late-fees.chat.json");

/// A user, an assistant that calls a tool, its result, an answer, and the user again.
pub(crate) const SMALL: &str = r#"{"messages":[
{"role":"system","content":"You are terse."},
{"role":"user","content":"Read a.rs"},
{"role":"assistant","content":null,"tool_calls":[{"id":"c1","type":"function","function":{"name":"read","arguments":"{}"}}]},
{"role":"tool","tool_call_id":"c1","content":"fn main() {}"},
{"role":"assistant","content":"It is empty."},
{"role":"user","content":"Thanks. And b.rs?"}
]}"#;

/// A folder that goes away with the value.
pub(crate) struct Folder {
    pub(crate) path: PathBuf,
}

impl Folder {
    pub(crate) fn new() -> Folder {
        static NEXT: AtomicUsize = AtomicUsize::new(0);
        let name = format!("{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
        let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
        fs::create_dir_all(&path).unwrap();
        Folder { path: fs::canonicalize(path).unwrap() }
    }

    /// Writes a file and returns its path.
    pub(crate) fn file(&self, name: &str, content: impl AsRef<[u8]>) -> String {
        let path = self.path.join(name);
        fs::write(&path, content).unwrap();
        path.to_str().unwrap().into()
    }

    /// Returns the path of a file that need not be there.
    pub(crate) fn at(&self, name: &str) -> String {
        self.path.join(name).to_str().unwrap().into()
    }

    /// Returns the names of its files, sorted.
    pub(crate) fn names(&self) -> Vec<String> {
        let entries = fs::read_dir(&self.path).unwrap();
        let mut names: Vec<String> = entries.map(|it| it.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        drop(fs::remove_dir_all(&self.path));
    }
}

/// What a run left behind.
pub(crate) struct Ran {
    pub(crate) code: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl From<Output> for Ran {
    fn from(output: Output) -> Ran {
        let [stdout, stderr] = [output.stdout, output.stderr].map(|bytes| String::from_utf8(bytes).unwrap());
        Ran { code: output.status.code(), stdout, stderr }
    }
}

/// The command, whatever is set for the user who runs the tests.
pub(crate) fn command(args: &[&str]) -> Command {
    let mut command = isolated(Command::new(env!("CARGO_BIN_EXE_recto")));
    command.args(args);
    command
}

/// A day on which no built-in price is stale, for whoever runs the tests much later.
pub(crate) const TODAY: &str = "2026-11-20";

/// A folder that can't be.
pub(crate) const NOWHERE: &str = "/dev/null/nowhere";

/// Any command, without the user's settings.
pub(crate) fn isolated(mut command: Command) -> Command {
    let none = if cfg!(windows) { "NUL" } else { "/dev/null" };
    command.env("RECTO_CONFIG", none).env("RECTO_TODAY", TODAY).env_remove("NO_COLOR").env_remove("TERM");
    // Nothing can be made there: a test that forgets to name its store fails, and nobody's own is touched.
    command
        .env("HOME", NOWHERE)
        .env("XDG_DATA_HOME", NOWHERE)
        .env("XDG_CONFIG_HOME", NOWHERE)
        .env_remove("RECTO_STORE");
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

pub(crate) fn recto(args: &[&str]) -> Ran {
    command(args).output().unwrap().into()
}

/// Runs with something on stdin.
pub(crate) fn recto_reading(stdin: &str, args: &[&str]) -> Ran {
    let mut child = command(args).stdin(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(stdin.as_bytes()).unwrap();
    child.wait_with_output().unwrap().into()
}

/// Runs what must succeed.
#[track_caller]
pub(crate) fn succeeds(args: &[&str]) -> Ran {
    let ran = recto(args);
    assert_eq!(ran.code, Some(0), "{args:?}: {}", ran.stderr);
    ran
}

/// Runs what must fail with this exit code and nothing on stdout; returns what stderr says.
#[track_caller]
pub(crate) fn fails(code: i32, args: &[&str]) -> String {
    let ran = recto(args);
    assert_eq!((ran.code, &*ran.stdout), (Some(code), ""), "{args:?}: {}", ran.stderr);
    assert!(ran.stderr.contains(&format!("error[R{code:02}")), "{}", ran.stderr);
    ran.stderr
}

#[track_caller]
pub(crate) fn mentions(text: &str, words: &[&str]) {
    for word in words {
        assert!(text.contains(word), "no {word:?} in:\n{text}");
    }
}
