//! Whether a program that somebody else started is still at work.

use std::fs;
use std::time::Duration;
use tokio::time::sleep;

/// The most processes that are looked at.
const PROCESSES_MAX: usize = 100_000;
/// How often it is looked again, and how long is waited in between: one that was killed may need a moment to end.
const LOOKS_MAX: usize = 50;
const LOOK_WAIT: Duration = Duration::from_millis(40);

/// Returns the number of another process that was started with a word among its arguments, and doesn't end soon.
pub(crate) async fn stays_with(word: &str) -> Option<u32> {
    for _ in 0..LOOKS_MAX {
        running_with(word)?;
        sleep(LOOK_WAIT).await;
    }
    running_with(word)
}

/// Returns the number of another process that was started with a word among its arguments, such as the name of a
/// session. Where the system doesn't tell, there is none.
fn running_with(word: &str) -> Option<u32> {
    let own = std::process::id();
    let processes = fs::read_dir("/proc").ok()?.flatten().take(PROCESSES_MAX);
    let mut numbers = processes.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    numbers.find(|number| {
        let arguments = fs::read(format!("/proc/{number}/cmdline")).unwrap_or_default();
        *number != own && arguments.split(|byte| *byte == 0).any(|argument| argument == word.as_bytes())
    })
}
