//! Everything that belongs to a server: the postmaster, and the processes that it started.

use super::{broken, read, run};
use rustix::process::{Pid, Signal, kill_process};
use std::path::Path;
use std::process::Command;

/// While the first one is being stopped it may start another.
const LOOKS: usize = 3;

/// Returns who runs on a data folder.
pub(super) fn postmaster(data: &Path) -> u32 {
    let text = read(&data.join("postmaster.pid"));
    let first = text.lines().next().and_then(|line| line.parse().ok());
    first.unwrap_or_else(|| broken(&format!("{text:?} names no process")))
}

pub(super) fn freeze(postmaster: u32) {
    signal(postmaster, Signal::STOP);
    for _ in 0..LOOKS {
        children(postmaster).into_iter().for_each(|child| signal(child, Signal::STOP));
    }
}

pub(super) fn thaw(postmaster: u32) {
    children(postmaster).into_iter().for_each(|child| signal(child, Signal::CONT));
    signal(postmaster, Signal::CONT);
}

pub(super) fn kill(postmaster: u32) {
    // Frozen first, so that none writes a word after another's death.
    freeze(postmaster);
    let all = children(postmaster);
    signal(postmaster, Signal::KILL);
    all.into_iter().for_each(|child| signal(child, Signal::KILL));
}

/// Removes the few bytes of memory that a killed server leaves in the system.
pub(super) fn remove_shared_memory(data: &Path) {
    let text = read(&data.join("postmaster.pid"));
    let id = text.lines().nth(6).and_then(|line| line.split_whitespace().nth(1));
    if let Some(id) = id {
        run(Command::new("ipcrm").args(["-m", id]));
    }
}

fn children(postmaster: u32) -> Vec<u32> {
    let processes = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    let numbers = processes.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    numbers.filter(|number| parent(*number) == Some(postmaster)).collect()
}

fn parent(process: u32) -> Option<u32> {
    let text = std::fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
    // The name before it is in brackets, and may hold anything.
    text.rsplit_once(')')?.1.split_whitespace().nth(1)?.parse().ok()
}

/// Sends a signal; one to a process that has just ended is for nobody.
fn signal(process: u32, signal: Signal) {
    let pid = i32::try_from(process).ok().and_then(Pid::from_raw);
    let _ = kill_process(pid.expect("processes are numbered from one"), signal);
}
