use crate::run::{mentions, succeeds};

#[test]
fn the_demo_tells_of_both_windows_and_ends_by_itself() {
    let ran = succeeds(&["demo"]);
    mentions(&ran.stdout, &["194 messages", "window 128 000, policy safe", "window 32 000, policy default"]);
    mentions(&ran.stdout, &["recto explain fixtures/late-fees.chat.json --window 32000", "recto compile"]);
    mentions(&ran.stdout, &["is on the page, whole", "The result that lost most", "; recto_expand m6]"]);
    mentions(&ran.stdout, &["of 307 lines hold \"ERROR replay\"", "loan=L-20902 charged=900 tally=500"]);
    assert_eq!(ran.stderr, "");
    assert!(!ran.stdout.contains('\u{1b}'), "contents must not steer the terminal");
}

#[test]
fn the_commands_that_the_demo_names_work() {
    let ran = succeeds(&["demo"]);
    let named =
        ran.stdout.lines().filter_map(|line| line.strip_prefix("  recto ")).filter(|it| it.contains("fixtures/"));
    let mut receipts = 0;
    for line in named {
        let line = line.replace("fixtures/late-fees.chat.json", crate::run::FIXTURE);
        let out = succeeds(&line.split_whitespace().collect::<Vec<_>>()).stdout;
        receipts += usize::from(ran.stdout.contains(&out));
    }
    assert_eq!(receipts, 1, "explain prints the receipt that the demo shows");
}

#[test]
fn the_help_tells_the_exit_codes() {
    let help = succeeds(&["--help"]).stdout;
    mentions(&help, &["Exit codes:", "    0 ", "    1 ", "    2 ", "    3 ", "    4 ", "  130 ", "recto demo"]);
    for command in ["compile", "explain", "replay"] {
        mentions(&succeeds(&[command, "--help"]).stdout, &["Examples:", "--policy", "With --json"]);
    }
}

#[test]
fn the_receipt_in_the_readme_is_the_one_that_the_demo_prints() {
    let demo = succeeds(&["demo"]).stdout;
    let readme = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../README.md")).unwrap();
    let (_, shown) = readme.split_once("```text\n").unwrap();
    let (shown, _) = shown.split_once("```").unwrap();
    let lines: Vec<&str> = shown.lines().filter(|line| !line.is_empty() && line.trim() != "…").collect();
    assert!(lines.len() > 8);
    mentions(&demo, &lines);
}
