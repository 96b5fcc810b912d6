use crate::run::{FIXTURE, Folder, SMALL, fails, mentions, recto, recto_reading, succeeds};
use expect_test::expect;
use serde_json::Value;
use std::fs;

fn lines(text: &str) -> Vec<Value> {
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// The bytes of the messages of a line or body.
fn messages(text: &str) -> &str {
    let start = text.find("\"messages\":").unwrap();
    let end = text.find(",\"tools\":[{\"type\"").unwrap_or(text.trim_end().len() - 1);
    &text[start..end]
}

#[test]
fn every_page_is_the_one_that_compile_makes() {
    let folder = Folder::new();
    let out = folder.at("pages.jsonl");
    for settings in [&["--window", "32k", "--policy", "first_chars"][..], &["--window", "20k"]] {
        succeeds(&[&["replay", FIXTURE, "--pages", &out], settings].concat());
        let pages = fs::read_to_string(&out).unwrap();
        let pages: Vec<&str> = pages.lines().collect();
        assert_eq!(pages.len(), 81);
        for turn in [0, 1, 2, 17, 40, 63, 79, 80] {
            let body = succeeds(&[&["compile", FIXTURE, "--turn", &turn.to_string()], settings].concat()).stdout;
            assert!(messages(&body) == messages(pages[turn]), "turn {turn}");
            let start = format!("{{\"conversation\":\"late-fees.chat\",\"turn\":{turn},\"messages\":[");
            assert!(pages[turn].starts_with(&start));
        }
    }
}

#[test]
fn the_table_sums_up() {
    let folder = Folder::new();
    let talk = folder.file("talk.jsonl", format!("{}\n{}\n", SMALL.replace('\n', ""), SMALL.replace('\n', "")));
    let file = folder.file("chat.json", SMALL);
    let ran = succeeds(&["replay", &file, &talk, "--for", "eval"]);
    expect![[r#"
        eval, window 1 000 000, policy safe

        conversation     calls  tokens  cached   share     USD
        chat                 2      43      15  34.9 %  0.0000
        talk#1               2      43      15  34.9 %  0.0000
        talk#2               2      43      15  34.9 %  0.0000
        3 conversations      6     129      45  34.9 %  0.0001
    "#]]
    .assert_eq(&ran.stdout);
    assert_eq!(ran.stderr, "");
}

#[test]
fn wide_names_keep_the_columns() {
    let folder = Folder::new();
    let talk = |id: &str| format!("{{\"id\":\"{id}\",{}\n", &SMALL.replace('\n', "")[1..]);
    let long = "とても長い名前の会話".repeat(3);
    let file = folder.file("talk.jsonl", ["山田", "cafe\u{301}", "👩‍👩‍👧", "\\u001b[31m", &long].map(talk).concat());
    let ran = succeeds(&["replay", &file, "--for", "eval"]);
    expect![[r#"
        eval, window 1 000 000, policy safe

        conversation                             calls  tokens  cached   share     USD
        山田                                         2      43      15  34.9 %  0.0000
        café                                         2      43      15  34.9 %  0.0000
        👩‍👩‍👧                                           2      43      15  34.9 %  0.0000
        \u{1b}[31m                                   2      43      15  34.9 %  0.0000
        とても長い名前の会話とても長い名前の会…      2      43      15  34.9 %  0.0000
        5 conversations                             10     215      75  34.9 %  0.0002
    "#]]
    .assert_eq(&ran.stdout);
}

#[test]
fn json_sums_up_the_same() {
    let ran = succeeds(&["replay", FIXTURE, "--json"]);
    let report: Value = serde_json::from_str(&ran.stdout).unwrap();
    let (row, total) = (&report["conversations"][0], &report["total"]);
    assert_eq!((&report["target"], &report["policy"]), (&"gpt-4o".into(), &"safe".into()));
    assert_eq!((&row["calls"], &total["conversations"]), (&81.into(), &1.into()));
    for field in ["calls", "tokens", "cached", "usd"] {
        assert_eq!(row[field], total[field]);
    }
    assert!(row["cached"].as_u64() < row["tokens"].as_u64());
}

#[test]
fn a_folder_stands_for_its_transcripts() {
    let folder = Folder::new();
    folder.file("b.json", SMALL);
    folder.file("a.jsonl", SMALL.replace('\n', "").replacen('{', "{\"id\":\"first\",", 1));
    folder.file("c.txt", "not a transcript");
    let ran = succeeds(&["replay", folder.path.to_str().unwrap(), "--pages", "-"]);
    let pages = lines(&ran.stdout);
    let told: Vec<_> = pages.iter().map(|it| format!("{} {}", it["conversation"], it["turn"])).collect();
    assert_eq!(told, ["\"first\" 0", "\"first\" 1", "\"b\" 0", "\"b\" 1"]);
    mentions(&ran.stderr, &["2 conversations", "first "]);
    let only = succeeds(&["replay", folder.path.to_str().unwrap(), "--pages", "-", "--conversation", "b"]);
    assert_eq!(lines(&only.stdout).len(), 2);
    let told = fails(3, &["replay", folder.path.to_str().unwrap(), "--conversation", "furst"]);
    mentions(&told, &["nearest ids: first, b"]);
    let empty = Folder::new();
    mentions(&fails(3, &["replay", empty.path.to_str().unwrap()]), &["no *.json or *.jsonl"]);
}

#[test]
fn stdin_can_be_replayed_once() {
    let ran = recto_reading(SMALL, &["replay", "-", "--pages", "-"]);
    assert_eq!((ran.code, lines(&ran.stdout).len()), (Some(0), 2));
    fails(3, &["replay", "-", "-"]);
}

#[test]
fn a_conversation_that_begins_with_the_assistant_has_no_first_page() {
    let folder = Folder::new();
    let first = r#"[{"role":"assistant","content":"Welcome"},{"role":"user","content":"Hi"},{"role":"assistant","content":"Ho"}]"#;
    let ran = succeeds(&["replay", &folder.file("first.json", first), "--pages", "-"]);
    let turns: Vec<_> = lines(&ran.stdout).iter().map(|it| it["turn"].clone()).collect();
    assert_eq!(turns, [1]);
}

#[test]
fn pages_that_do_not_fit_are_named_and_the_others_written() {
    let folder = Folder::new();
    let out = folder.at("pages.jsonl");
    let ran = recto(&["replay", FIXTURE, "--window", "4k", "--pages", &out]);
    assert_eq!(ran.code, Some(4));
    mentions(&ran.stderr, &[" of 81; the others were made", "turn 2: the page does not fit", "hint: "]);
    mentions(&ran.stdout, &["don't fit"]);
    let pages = lines(&fs::read_to_string(&out).unwrap());
    let ran = recto(&["replay", FIXTURE, "--window", "4k", "--json"]);
    let report: Value = serde_json::from_str(&ran.stdout).unwrap();
    let overflows = report["conversations"][0]["overflows"].as_array().unwrap();
    assert_eq!((ran.code, pages.len() + overflows.len()), (Some(4), 81));
    assert!(overflows.iter().all(|it| it["overflow"]["over"].as_u64() > Some(0)));
    // The turn after one that did not fit is the same alone.
    let turn = pages.iter().position(|page| page["turn"] == 3).unwrap();
    let body = succeeds(&["compile", FIXTURE, "--window", "4k", "--turn", "3"]).stdout;
    assert_eq!(serde_json::from_str::<Value>(&body).unwrap()["messages"], pages[turn]["messages"]);
    fails(4, &["compile", FIXTURE, "--window", "4k", "--turn", "2"]);
}

#[test]
fn an_error_leaves_what_was_there() {
    let folder = Folder::new();
    let (good, bad) = (folder.file("a.json", SMALL), folder.file("b.json", "[{\"role\":\"x\"}]"));
    let told = fails(3, &["replay", &good, &bad, "--pages", &folder.at("pages.jsonl")]);
    mentions(&told, &["b.json", "unknown role"]);
    assert_eq!(folder.names(), ["a.json", "b.json"]);
    let old = folder.file("old.jsonl", "old");
    fails(3, &["replay", &good, &bad, "--pages", &old]);
    fails(3, &["replay", &good, "--pages", &old, "--window", "2k", "--reserve", "2k"]);
    assert_eq!(fs::read_to_string(&old).unwrap(), "old");
    succeeds(&["replay", &good, "--pages", &old]);
    assert_eq!(lines(&fs::read_to_string(&old).unwrap()).len(), 2);
    assert_eq!(folder.names(), ["a.json", "b.json", "old.jsonl"]);
}

#[test]
fn places_that_cannot_be_written_are_told() {
    let folder = Folder::new();
    let file = folder.file("a.json", SMALL);
    mentions(&fails(1, &["replay", &file, "--pages", &folder.at("no/pages.jsonl")]), &["cannot write", "cause: "]);
    let told = fails(3, &["replay", &file, "--pages", folder.path.to_str().unwrap()]);
    mentions(&told, &["it is a folder", "hint: "]);
    let told = fails(3, &["replay", folder.path.to_str().unwrap(), "--pages", &file]);
    mentions(&told, &["is one of the files to read", "hint: "]);
    assert_eq!(folder.names(), ["a.json"]);
}

#[test]
fn names_that_recur_are_told() {
    let folder = Folder::new();
    let (a, b) = (folder.file("a.json", SMALL), folder.file("b.json", SMALL));
    assert_eq!(succeeds(&["replay", &a, &b]).stderr, "");
    mentions(&succeeds(&["replay", &a, &a]).stderr, &["\"a\" occurs more than once"]);
}
