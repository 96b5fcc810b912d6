use crate::run::{Folder, succeeds};
use recto_testkit::shared;
use std::process::Command;

/// Small files, so that a test stays a test.
const FILES: [&str; 2] = ["docent.inspect-log.jsonl", "swe-agent.swe-agent-traj.jsonl"];

#[test]
fn the_pages_of_a_replay_are_read_by_the_score() {
    let Some(eval) = shared::folder("eval", "pages read by score.py") else { return };
    let Some(data) = shared::folder("data/conversations", "pages read by score.py") else { return };
    if Command::new("python3").arg("--version").output().is_err() {
        return shared::skipped("pages read by score.py: no python3");
    }
    let folder = Folder::new();
    let out = folder.at("pages.jsonl");
    let files: Vec<String> = FILES.iter().map(|file| data.join(file).display().to_string()).collect();
    let mut args = vec!["replay", "--for", "eval", "--policy", "none", "--pages", &out];
    args.extend(files.iter().map(String::as_str));
    succeeds(&args);

    let scored =
        Command::new("python3").arg(eval.join("score.py")).arg("--pages").arg(&out).args(&files).output().unwrap();
    let table = String::from_utf8_lossy(&scored.stdout).into_owned();
    assert!(scored.status.success(), "{table}{}", String::from_utf8_lossy(&scored.stderr));
    // Under `none` a page is the full history: it costs exactly as much, and forgets nothing.
    let row = table.lines().find(|line| line.starts_with("compiled pages")).unwrap();
    let figures: Vec<&str> = row.split_whitespace().collect();
    assert_eq!((figures[2], figures[3], figures[5]), ("1.000", "1.000", "1.0000"), "{table}");
}
