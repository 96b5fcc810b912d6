//! This test binary once more, as a process of its own that can be killed.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::thread::JoinHandle;

/// What stands before the lines that a child tells its parent; the test harness writes others.
const MARK: &str = "told: ";

/// A process that runs one test of this binary, and is killed when it is dropped.
pub(crate) struct Running {
    child: Child,
    input: Option<ChildStdin>,
    /// Until somebody else hears them.
    lines: Option<BufReader<ChildStdout>>,
}

impl Running {
    /// Starts a test, by its full name, as a process that finds these settings in its environment.
    pub(crate) fn start(test: &str, settings: &[(&str, String)]) -> Running {
        let mut command = Command::new(std::env::current_exe().expect("a test knows its own binary"));
        command.args([test, "--exact", "--nocapture", "--test-threads=1"]);
        command.envs(settings.iter().map(|(name, value)| (name, value)));
        let mut child =
            command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("this binary can be started");
        let input = child.stdin.take();
        let lines = child.stdout.take().map(BufReader::new);
        Running { child, input, lines }
    }

    /// Returns the next whole line that it tells, or `None` once there will be no more.
    pub(crate) fn line(&mut self) -> Option<String> {
        next_line(self.lines.as_mut().expect("nobody else hears it"))
    }

    /// Has somebody hear, on a thread, every line that it tells from now on.
    pub(crate) fn tells(&mut self, mut hear: impl FnMut(String) + Send + 'static) -> JoinHandle<()> {
        let mut lines = self.lines.take().expect("nobody else hears it");
        std::thread::spawn(move || {
            while let Some(line) = next_line(&mut lines) {
                hear(line);
            }
        })
    }

    /// Says a line to it.
    pub(crate) fn say(&mut self, line: &str) {
        let input = self.input.as_mut().expect("it stays open");
        writeln!(input, "{line}").expect("it listens");
    }

    /// Ends it at once, whatever it does, and returns what it had told before.
    pub(crate) fn kill(mut self) -> Vec<String> {
        self.child.kill().expect("it can be killed");
        let told = std::iter::from_fn(|| self.line()).collect();
        let status = self.child.wait().expect("it was ours");
        assert!(status.code().is_none(), "it was at work until it was killed, and did not end by itself: {status}");
        told
    }

    /// Waits for its end, and returns whether its test passed.
    pub(crate) fn end(mut self) -> bool {
        while self.lines.as_mut().and_then(next_line).is_some() {}
        self.child.wait().expect("it was ours").success()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn next_line(lines: &mut BufReader<ChildStdout>) -> Option<String> {
    // It ends with the process: whoever can be started here makes a bounded number of appends.
    loop {
        let mut line = String::new();
        lines.read_line(&mut line).expect("a pipe can be read");
        let whole = line.strip_suffix('\n')?;
        // The harness doesn't end its line before a test begins.
        if let Some(at) = whole.find(MARK) {
            return Some(whole[at + MARK.len()..].into());
        }
    }
}

/// Tells the parent a line, in one write: what was told before the end is told whole.
pub(crate) fn tell(line: &str) {
    let mut out = std::io::stdout().lock();
    out.write_all(format!("{MARK}{line}\n").as_bytes()).and_then(|()| out.flush()).expect("the parent reads");
}

/// Returns a setting that the parent gave; without one the test was started by somebody else, and has nothing to do.
pub(crate) fn setting(name: &str) -> Option<String> {
    std::env::var(name).ok()
}
