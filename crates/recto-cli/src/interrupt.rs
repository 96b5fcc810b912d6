//! Ctrl-C: the first one is heeded between two turns, or ends the command where there is nothing to tidy up; the
//! second one ends it at once. A server hears of each, and ends in steps.

use crate::codes::Code;
use crate::failure::{Failure, INTERRUPTED};
use crate::paint::Colour;
use crate::talk;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

static IS_ASKED: AtomicBool = AtomicBool::new(false);
static IS_CHECKED: AtomicBool = AtomicBool::new(false);
/// A file to remove when the process ends at once.
static UNFINISHED: Mutex<Option<PathBuf>> = Mutex::new(None);
/// Who hears of it instead.
static HEARS: Mutex<Option<Box<dyn Fn() -> bool + Send>>> = Mutex::new(None);

/// Starts to watch for Ctrl-C, and for the signals that ask a process to end.
pub(crate) fn watch() -> Result<(), Failure> {
    let heed = || {
        if HEARS.lock().is_ok_and(|hears| hears.as_ref().is_some_and(|hear| hear())) {
            return;
        }
        let again = IS_ASKED.swap(true, Ordering::SeqCst);
        if again || !IS_CHECKED.load(Ordering::SeqCst) {
            end();
        }
    };
    ctrlc::set_handler(heed)
        .map_err(|error| Failure::of(Code::CannotWatch, "cannot watch for Ctrl-C").because(error.to_string()))
}

/// Has somebody hear of each Ctrl-C from now on; once that returns false, the process ends at once.
pub(crate) fn hear(hear: impl Fn() -> bool + Send + 'static) {
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
