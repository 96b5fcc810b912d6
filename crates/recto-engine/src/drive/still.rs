//! Whether a program that somebody else started is still at work.

use std::fs;

/// The most processes that are looked at.
const PROCESSES_MAX: usize = 100_000;

/// Returns the number of another process that was started with a word among its arguments, such as the name of a
/// session. Where the system doesn't tell, there is none.
pub(crate) fn running_with(word: &str) -> Option<u32> {
    let own = std::process::id();
    let processes = fs::read_dir("/proc").ok()?.flatten().take(PROCESSES_MAX);
    let mut numbers = processes.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    numbers.find(|number| {
        let arguments = fs::read(format!("/proc/{number}/cmdline")).unwrap_or_default();
        *number != own && arguments.split(|byte| *byte == 0).any(|argument| argument == word.as_bytes())
    })
}
