//! Ctrl-C. A process is signalled once it shows that it is at work; nothing waits for a length of time.

use crate::run::{Folder, Ran, command, mentions, succeeds};
use std::io::Write;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// How long a process may take to show that it is at work.
const PATIENCE: Duration = Duration::from_secs(60);

fn interrupt(child: &Child) {
    let status = Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap();
    assert!(status.success());
}

/// A conversation whose pages take far longer to write than a signal takes to arrive.
fn long() -> String {
    let pair = r#"{"role":"user","content":"What comes next?"},{"role":"assistant","content":"The next one."},"#;
    format!("[{}{{\"role\":\"user\",\"content\":\"End.\"}}]", pair.repeat(4_000))
}

fn start(folder: &Folder) -> Child {
    let file = folder.file("long.json", long());
    let out = folder.at("pages.jsonl");
    let child = command(&["replay", &file, "--window", "0", "--pages", &out]).spawn().unwrap();
    until_partial(folder);
    child
}

fn until_partial(folder: &Folder) {
    let start = Instant::now();
    while !folder.names().iter().any(|name| name.ends_with(".partial")) {
        assert!(start.elapsed() < PATIENCE, "no temporary file: {:?}", folder.names());
        std::thread::yield_now();
    }
}

#[test]
fn an_interrupted_replay_leaves_nothing_behind() {
    let folder = Folder::new();
    let child = start(&folder);
    interrupt(&child);
    let ran = Ran::from(child.wait_with_output().unwrap());
    assert_eq!((ran.code, &*ran.stdout, &*ran.stderr), (Some(130), "", "interrupted\n"));
    assert_eq!(folder.names(), ["long.json"]);
}

#[test]
fn a_second_interrupt_leaves_nothing_behind_either() {
    let folder = Folder::new();
    let child = start(&folder);
    interrupt(&child);
    interrupt(&child);
    let ran = Ran::from(child.wait_with_output().unwrap());
    assert_eq!((ran.code, &*ran.stdout), (Some(130), ""));
    assert_eq!(folder.names(), ["long.json"]);
}

#[test]
fn an_interrupted_compile_ends_at_once() {
    let mut child = command(&["compile", "-"]).stdin(Stdio::piped()).spawn().unwrap();
    // A pipe holds much less: when all of this is written, the process is reading.
    let mut stdin = child.stdin.take().unwrap();
    stdin.write_all(&vec![b' '; 4 << 20]).unwrap();
    interrupt(&child);
    let output = child.wait_with_output().unwrap();
    drop(stdin);
    let ran = Ran::from(output);
    assert_eq!((ran.code, &*ran.stdout, &*ran.stderr), (Some(130), "", "interrupted\n"));
}

/// Starts to import a long conversation, and returns once some of it is kept.
fn start_import(folder: &Folder, file: &str, store: &str) -> Child {
    let child = command(&["import", file, "--store", store]).spawn().unwrap();
    let start = Instant::now();
    let log = folder.path.join("kept.db-wal");
    while std::fs::metadata(&log).map_or(0, |log| log.len()) < 1 << 20 {
        assert!(start.elapsed() < PATIENCE, "nothing is kept: {:?}", folder.names());
        std::thread::yield_now();
    }
    child
}

#[test]
fn an_interrupted_import_keeps_what_it_has_and_goes_on_next_time() {
    let folder = Folder::new();
    let pair = r#"{"role":"user","content":"What comes next?"},{"role":"assistant","content":"The next one."},"#;
    let file = folder.file("long.json", format!("[{}{{\"role\":\"user\",\"content\":\"End.\"}}]", pair.repeat(60_000)));
    let store = folder.at("kept.db");
    let child = start_import(&folder, &file, &store);
    interrupt(&child);
    let ran = Ran::from(child.wait_with_output().unwrap());
    assert_eq!((ran.code, &*ran.stdout), (Some(130), ""), "{}", ran.stderr);
    assert!(ran.stderr.ends_with("interrupted\n"), "{}", ran.stderr);
    let again = succeeds(&["import", &file, "--store", &store, "--json"]).stdout;
    let again: serde_json::Value = serde_json::from_str(&again).unwrap();
    let [known, added] = ["known", "added"].map(|key| again["imported"][0][key].as_u64().unwrap());
    assert_eq!(known + added, 120_001);
    assert!(known > 0 && added > 0, "{known} {added}");
    assert_eq!(known % 500, 0, "batches are kept whole");
    mentions(&succeeds(&["doctor", "--store", &store]).stdout, &["120001", "all is well"]);

    let child = command(&["export", "long", "-o", &folder.at("out.jsonl"), "--store", &store]).spawn().unwrap();
    until_partial(&folder);
    interrupt(&child);
    assert_eq!(child.wait_with_output().unwrap().status.code(), Some(130));
    let left: Vec<String> = folder.names().into_iter().filter(|name| !name.starts_with("kept.db")).collect();
    assert_eq!(left, ["long.json"], "an export is there whole or not at all");
}
