//! Signals. Of Ctrl-C, and of the others that ask a process to end, the first one is heeded between two turns, or ends the
//! command where there is nothing to tidy up; the second one ends it at once. A server hears of each, and ends in steps, or
//! reads its configuration again.

use crate::codes::Code;
use crate::failure::{Failure, INTERRUPTED};
use crate::paint::Colour;
use crate::talk;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use tokio::runtime::{Builder, Runtime};

/// What a process is asked from outside.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Signal {
    /// To end: Ctrl-C, SIGTERM.
    End,
    /// SIGHUP: the terminal is gone, or, where there is none, to read the configuration again.
    Hangup,
}

static IS_ASKED: AtomicBool = AtomicBool::new(false);
static IS_CHECKED: AtomicBool = AtomicBool::new(false);
/// A file to remove when the process ends at once.
static UNFINISHED: Mutex<Option<PathBuf>> = Mutex::new(None);
/// Who hears of it instead.
static HEARS: Mutex<Option<Hear>> = Mutex::new(None);

type Hear = Box<dyn Fn(Signal) -> bool + Send>;

/// Starts to watch for Ctrl-C, and for the signals that ask a process to end.
pub(crate) fn watch() -> Result<(), Failure> {
    let refused =
        |error: io::Error| Failure::of(Code::CannotWatch, "cannot watch for Ctrl-C").because(error.to_string());
    let runtime = Builder::new_current_thread().enable_io().build().map_err(refused)?;
    let thread = std::thread::Builder::new().name("recto-signals".into());
    listen(runtime, thread).map_err(refused)
}

/// Hears of signals on a thread of its own; they are watched for when this returns.
#[cfg(unix)]
fn listen(runtime: Runtime, thread: std::thread::Builder) -> io::Result<()> {
    use tokio::signal::unix::{SignalKind, signal};
    let entered = runtime.enter();
    let (mut interrupt, mut terminate) = (signal(SignalKind::interrupt())?, signal(SignalKind::terminate())?);
    let mut hangup = signal(SignalKind::hangup())?;
    drop(entered);
    let hear = async move {
        loop {
            heed(tokio::select! {
                _ = interrupt.recv() => Signal::End,
                _ = terminate.recv() => Signal::End,
                _ = hangup.recv() => Signal::Hangup,
            });
        }
    };
    thread.spawn(move || runtime.block_on(hear)).map(drop)
}

/// Hears of Ctrl-C on a thread of its own.
#[cfg(not(unix))]
fn listen(runtime: Runtime, thread: std::thread::Builder) -> io::Result<()> {
    let hear = async {
        while tokio::signal::ctrl_c().await.is_ok() {
            heed(Signal::End);
        }
    };
    thread.spawn(move || runtime.block_on(hear)).map(drop)
}

fn heed(signal: Signal) {
    if HEARS.lock().is_ok_and(|hears| hears.as_ref().is_some_and(|hear| hear(signal))) {
        return;
    }
    let again = IS_ASKED.swap(true, Ordering::SeqCst);
    if again || !IS_CHECKED.load(Ordering::SeqCst) {
        end();
    }
}

/// Has somebody hear of each signal from now on; once that returns false, the process ends at once.
pub(crate) fn hear(hear: impl Fn(Signal) -> bool + Send + 'static) {
    if let Ok(mut hears) = HEARS.lock() {
        *hears = Some(Box::new(hear));
    }
}

/// Promises that [`check`] is called often from now on.
pub(crate) fn promise_checks() {
    IS_CHECKED.store(true, Ordering::SeqCst);
}

/// Fails if Ctrl-C was pressed.
pub(crate) fn check() -> Result<(), Failure> {
    if IS_ASKED.load(Ordering::SeqCst) { Err(Failure::interrupted()) } else { Ok(()) }
}

/// Names the file that must not stay behind if the process ends now.
pub(crate) fn set_unfinished(path: &Path) {
    if let Ok(mut unfinished) = UNFINISHED.lock() {
        *unfinished = Some(path.to_path_buf());
    }
}

/// Takes back that there is an unfinished file.
pub(crate) fn clear_unfinished() {
    if let Ok(mut unfinished) = UNFINISHED.lock() {
        *unfinished = None;
    }
}

fn end() {
    if let Some(path) = UNFINISHED.lock().ok().and_then(|unfinished| unfinished.clone()) {
        // It may be gone already; there is nobody left to tell either way.
        drop(fs::remove_file(path));
    }
    talk::failure(&Failure::interrupted(), Colour::Never);
    std::process::exit(i32::from(INTERRUPTED));
}
