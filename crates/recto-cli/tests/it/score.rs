use crate::run::{Folder, succeeds};
use recto_testkit::shared;
use serde_json::Value;
use std::path::PathBuf;
use std::process::Command;

/// Small files, so that a test stays a test.
const FILES: [&str; 4] = [
    "docent.inspect-log.jsonl",
    "infrastructure-as-code.claude-stream-json.jsonl",
    "session-share.claude-code.jsonl",
    "swe-agent.swe-agent-traj.jsonl",
];
/// One that is long enough to be cut and shortened a lot.
const LONG: &str = "pi-mono.pi-session.jsonl";

/// A script that scores pages, and conversations to score.
fn scored_by(script: &str, test: &str, files: &[&str]) -> Option<(PathBuf, Vec<String>)> {
    let script = shared::folder("eval", test)?.join(script);
    let data = shared::folder("data/conversations", test)?;
    if Command::new("python3").arg("--version").output().is_err() {
        shared::skipped(&format!("{test}: no python3"));
        return None;
    }
    Some((script, files.iter().map(|file| data.join(file).display().to_string()).collect()))
}

/// Replays, and returns the report and what the script prints about the pages.
fn both(script: &PathBuf, files: &[String], settings: &[&str]) -> (Value, String) {
    let folder = Folder::new();
    let out = folder.at("pages.jsonl");
    let mut args = vec!["replay", "--for", "eval", "--pages", &out, "--json"];
    args.extend(settings);
    args.extend(files.iter().map(String::as_str));
    let report = serde_json::from_str(&succeeds(&args).stdout).unwrap();
    let scored = Command::new("python3").arg(script).args(["--worst", "--pages", &out]).args(files).output().unwrap();
    let table = String::from_utf8_lossy(&scored.stdout).into_owned();
    assert!(scored.status.success(), "{table}{}", String::from_utf8_lossy(&scored.stderr));
    (report, table)
}

/// The numbers of a row of the table: cost, tokens, cached, recall, the five kinds, peak.
fn row<'t>(table: &'t str, name: &str) -> Vec<&'t str> {
    table.lines().find_map(|line| line.strip_prefix(name)).unwrap().split_whitespace().collect()
}

#[test]
fn the_pages_of_a_replay_are_read_by_the_score() {
    let Some((script, files)) = scored_by("score.py", "pages read by score.py", &FILES) else { return };
    let (_, table) = both(&script, &files, &["--policy", "none"]);
    // Under `none` a page is the full history: it costs exactly as much, and forgets nothing.
    let figures = row(&table, "compiled pages");
    assert_eq!((figures[0], figures[1], figures[3]), ("1.000", "1.000", "1.0000"), "{table}");
}

#[test]
fn a_replay_measures_as_the_score_does() {
    let files = [&FILES[..], &[LONG]].concat();
    let Some((script, files)) = scored_by("score.py", "numbers of score.py", &files) else { return };
    for settings in [["--policy", "safe", "--window", "16k"], ["--policy", "first_chars", "--window", "32k"]] {
        let (report, table) = both(&script, &files, &settings);
        let (measured, full) = (&report["total"]["measured"], &report["full"]);
        let number = |value: &Value| value.as_f64().unwrap();
        let references = &measured["score"]["references"];
        let kinds = ["names", "numbers", "quoted", "phrases", "lines"].map(|kind| &references[kind]);
        let all: u64 = kinds.iter().map(|it| it["all"].as_u64().unwrap()).sum();
        assert!(table.contains(&format!(" {} calls, {all} references,", full["calls"])), "{all}: {table}");

        let figures = row(&table, "compiled pages");
        let near = |ours: f64, theirs: &str| (ours - theirs.parse::<f64>().unwrap()).abs() < 0.00051;
        assert!(near(number(&measured["cost"]), figures[0]), "{}: {table}", measured["cost"]);
        let score = &measured["score"];
        assert!(near(number(&score["tokens"]) / number(&full["tokens"]), figures[1]), "{score}: {table}");
        assert!(near(number(&score["cached"]) / number(&score["tokens"]), figures[2]), "{score}: {table}");
        assert_eq!(format!("{:.4}", number(&measured["recall"])), figures[3], "{table}");
        for (kept, theirs) in kinds.iter().zip(&figures[4..9]) {
            assert_eq!(format!("{:.4}", number(&kept["kept"]) / number(&kept["all"])), **theirs, "{table}");
        }
        assert_eq!(score["peak"].to_string(), figures[9], "{table}");

        // Names would differ where several are as dear.
        let told = table.lines().find_map(|line| line.trim().strip_prefix("dearest ")).unwrap();
        let (dearest, most_forgetful) = told.split_once("forgets most ").unwrap();
        assert!(near(number(&report["dearest"]["cost"]), dearest.split(' ').next().unwrap()), "{table}");
        let recall = format!("{:.4} ", number(&report["most_forgetful"]["recall"]));
        assert!(most_forgetful.starts_with(&recall), "{recall}: {table}");
    }
}

/// What the script says of pages that questions brought back: for each budget evidence found, and questions with all of it.
fn recalled(script: &PathBuf, pages: &str, data: &str) -> (bool, String, Vec<[f64; 3]>) {
    let scored = Command::new("python3").arg(script).args(["--pages", pages, data]).output().unwrap();
    let table = String::from_utf8_lossy(&scored.stdout).into_owned();
    let rows = table.lines().filter_map(|line| line.strip_prefix("compiled pages"));
    let figures = rows.map(|row| {
        let figures: Vec<f64> = row.split_whitespace().map(|it| it.parse().unwrap()).collect();
        [figures[0], figures[1], figures[2]]
    });
    (scored.status.success(), table.clone(), figures.collect())
}

#[test]
fn the_pages_of_questions_are_read_by_the_score_of_recall() {
    let test = "pages read by recall.py";
    let Some((script, files)) = scored_by("recall.py", test, &["locomo.dialogue.jsonl"]) else { return };
    let folder = Folder::new();
    let all = std::fs::read_to_string(&files[0]).unwrap();
    let data = folder.file("locomo.jsonl", all.lines().next().unwrap());
    let out = folder.at("found.jsonl");
    succeeds(&[
        "replay",
        "--questions",
        &data,
        "--for",
        "eval",
        "--budget",
        "4000",
        "--budget",
        "8000",
        "--pages",
        &out,
    ]);
    let (is_whole, table, figures) = recalled(&script, &out, &data);
    assert!(is_whole && figures.len() == 2, "a page is missing or too long: {table}");
    for ([budget, evidence, complete], expected) in figures.into_iter().zip([(4_000.0, 0.85), (8_000.0, 0.92)]) {
        assert!(budget == expected.0 && evidence >= expected.1 && complete >= expected.1, "{table}");
    }
    // The control: the script sees a page that lacks.
    let pages = std::fs::read_to_string(&out).unwrap();
    let lacking = folder.file("lacking.jsonl", pages.split_once('\n').unwrap().1);
    assert!(!recalled(&script, &lacking, &data).0);
}
