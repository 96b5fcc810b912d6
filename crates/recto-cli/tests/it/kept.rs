//! What can be done with kept conversations, as a user would.

use crate::import::Stored;
use crate::run::{FIXTURE, mentions, recto, succeeds};

/// A store that holds the bundled conversation, `late-fees.chat`.
fn with_fixture() -> Stored {
    let stored = Stored::new();
    stored.run(&["import", FIXTURE]);
    stored
}

#[test]
fn conversations_are_listed_in_pages() {
    let stored = Stored::with_chat();
    let chat = stored.folder.at("chat.json");
    for name in ["a", "b"] {
        stored.run(&["import", &chat, "--as", name]);
    }
    let told = stored.run(&["list"]).stdout;
    mentions(&told, &["conversation", "entries", "tokens", "updated", "title", "chat", "Read a.rs"]);
    let page = stored.json(&["list", "--limit", "2"]);
    let names = |page: &serde_json::Value| -> Vec<String> {
        page["conversations"].as_array().unwrap().iter().map(|it| it["conversation"].as_str().unwrap().into()).collect()
    };
    assert_eq!((names(&page), &page["more"]), (vec!["a".into(), "b".into()], &true.into()));
    let rest = stored.json(&["list", "--after", "b"]);
    assert_eq!((names(&rest), &rest["more"]), (vec!["chat".into()], &false.into()));
    let row = &rest["conversations"][0];
    assert_eq!(
        (&row["entries"], &row["from"], &row["title"]),
        (&6.into(), &serde_json::Value::Null, &"Read a.rs".into())
    );
    assert!(row["tokens"].as_u64().unwrap() > 10 && row["updated"].as_i64().unwrap() > 0);
    mentions(&stored.run(&["list", "--limit", "1"]).stdout, &["there are more", "--after \"a\""]);
}

#[test]
fn entries_are_shown_one_line_each_or_whole() {
    let stored = Stored::with_chat();
    let told = stored.run(&["show", "chat"]).stdout;
    mentions(&told, &["entry", "role", "m0", "system", "You are terse.", "[calls read]", "m3", "fn main() {}"]);
    assert_eq!(told.lines().count(), 7);
    let some = stored.json(&["show", "chat", "--from", "2", "--count", "2"]);
    let seqs: Vec<u64> = some["entries"].as_array().unwrap().iter().map(|it| it["seq"].as_u64().unwrap()).collect();
    assert_eq!((seqs, &some["more"]), (vec![2, 3], &true.into()));
    assert_eq!(some["entries"][1]["entry"]["role"], "tool");
    mentions(&stored.run(&["show", "chat", "--count", "2"]).stdout, &["there are more: --from 2"]);
    let one = stored.run(&["show", "chat", "m3"]).stdout;
    assert!(one.starts_with("m3 tool, ") && one.ends_with("[result of c1]\nfn main() {}\n"), "{one}");
    assert_eq!(stored.json(&["show", "chat", "3"])["seq"], 3);
    mentions(&stored.fails(3, &["show", "chat", "m99"]), &["error[R0350]: no entry #99", "recto show chat"]);
    mentions(&stored.fails(3, &["show", "gone"]), &["error[R0350]: no conversation \"gone\"", "recto list"]);
    for args in [&["turns", "gone"][..], &["fork", "gone", "x"], &["pin", "gone", "1"], &["erase", "gone", "--yes"]] {
        mentions(&stored.fails(3, args), &["error[R0350]: no conversation \"gone\"", "recto list"]);
    }
}

#[test]
fn what_a_conversation_says_cannot_steer_a_terminal() {
    let stored = Stored::new();
    let odd = r#"[{"role":"user","content":"a\u001b[31mb\u0007"}]"#;
    let file = stored.folder.file("odd\u{7}.json", odd);
    for ran in [stored.run(&["import", &file]), stored.run(&["list"]), stored.run(&["show", "odd\u{7}"])] {
        assert!(
            !ran.stdout.contains(['\u{1b}', '\u{7}']) && !ran.stderr.contains(['\u{1b}', '\u{7}']),
            "{}",
            ran.stdout
        );
    }
}

#[test]
fn what_the_page_leaves_out_is_given_by_its_handle() {
    let stored = with_fixture();
    let name = "late-fees.chat";
    let window = ["--window", "32k"];
    let expand = |args: &[&'static str]| [&["expand", name], args, &window].concat();
    let found = stored.run(&expand(&["m6", "--search", "ERROR replay"])).stdout;
    mentions(&found, &["of 307 lines hold \"ERROR replay\"", "loan=L-20902 charged=900 tally=500"]);
    let lines = stored.run(&expand(&["m6", "--lines", "1-2"])).stdout;
    mentions(&lines, &["nightly 1187 started"]);
    assert!(lines.lines().count() < 8, "{lines}");
    mentions(&stored.fails(3, &expand(&["m0"])), &["error[R0358]", "m0"]);
    mentions(&stored.fails(2, &expand(&["what"])), &["error[R0202]: \"what\" is no handle"]);
    let both = stored.any(&expand(&["m6", "--lines", "1-2", "--search", "x"]));
    assert_eq!(both.code, Some(2));
    assert_eq!(
        stored.json(&["decisions", name])["decisions"].as_array().map(Vec::len),
        Some(0),
        "nothing was recorded"
    );

    let placed = stored.json(&expand(&["m6", "--in-place", "--reason", "to look at it"]));
    assert_eq!((&placed["handle"], &placed["in_place"]), (&"m6".into(), &true.into()));
    assert!(placed["tokens_after"].as_u64() > placed["tokens_before"].as_u64());
    let decisions = stored.run(&["decisions", name]).stdout;
    mentions(&decisions, &["shows m6 again", "to look at it"]);
    let page = stored.run(&[&["explain", name, "--input", "Next?"], &window[..]].concat()).stdout;
    mentions(&page, &["expanded before call 0: to look at it"]);
}

#[test]
fn pins_are_made_listed_taken_back_and_reverted() {
    let stored = with_fixture();
    let name = "late-fees.chat";
    let fate = || {
        let receipt = stored.json(&["explain", name, "--input", "Next?", "--window", "32k"]);
        let rows = receipt["fates"].as_array().unwrap().clone();
        let row = rows.into_iter().find(|row| row["span"]["first"] == 6).unwrap();
        row["fate"].as_str().unwrap().to_string()
    };
    assert_eq!(fate(), "changed");
    let pinned = stored.json(&["pin", name, "6"]);
    assert_eq!((&pinned["first"], &pinned["last"], &pinned["pinned"]), (&6.into(), &6.into(), &true.into()));
    assert_eq!(fate(), "shown");
    mentions(&stored.run(&["decisions", name]).stdout, &["pins #6", "pinned"]);
    assert_eq!(stored.json(&["pin", name, "5-7", "--remove"])["removed"], 1);
    assert_eq!(stored.json(&["pin", name, "5-7", "--remove"])["removed"], 0);
    stored.run(&["pin", name, "6", "--reader", "critic"]);
    let of_critic = stored.json(&["decisions", name, "--reader", "critic"]);
    assert_eq!((&of_critic["reader"], of_critic["decisions"][0]["ordinal"].as_u64()), (&"critic".into(), Some(1)));
    assert_eq!(stored.json(&["revert", name, "1", "--reader", "critic"])["reverted"], 1);
    mentions(&stored.run(&["decisions", name, "--reader", "critic"]).stdout, &["taken back by 2"]);
    let again = stored.fails(3, &["revert", name, "1", "--reader", "critic"]);
    mentions(&again, &["reverted already", &format!("recto decisions {name}")]);
    mentions(&stored.fails(3, &["revert", name, "9"]), &["no decision 9"]);
    mentions(&stored.fails(3, &["pin", name, "6-999"]), &["can't be pinned"]);
}

#[test]
fn a_fork_goes_its_own_way() {
    let stored = Stored::with_chat();
    let fork = stored.json(&["fork", "chat", "what-if", "--at", "1"]);
    assert_eq!((&fork["from"], &fork["upto"], &fork["entries"]), (&"chat".into(), &1.into(), &2.into()));
    mentions(&stored.run(&["fork", "chat", "whole"]).stderr, &["\"whole\" goes on from \"chat\" after #5; entries: 6"]);
    let from = &stored.json(&["list", "--after", "chat"])["conversations"][0]["from"];
    assert_eq!((&from["conversation"], &from["upto"]), (&"chat".into(), &1.into()));
    mentions(&stored.fails(3, &["fork", "chat", "whole"]), &["error[R0351]"]);
    mentions(&stored.fails(3, &["fork", "chat", "far", "--at", "99"]), &["error[R0350]"]);
}

#[test]
fn an_erase_must_be_meant_and_names_what_stands_in_its_way() {
    let stored = Stored::with_chat();
    stored.run(&["fork", "chat", "other"]);
    mentions(&stored.fails(2, &["erase", "chat"]), &["error[R0205]", "\"chat\" with its 6 entries", "--yes"]);
    mentions(&stored.fails(3, &["erase", "chat", "--yes"]), &["error[R0354]", "other"]);
    let words = stored.json(&["erase", "chat", "--entries", "1,3-3", "--yes"]);
    assert_eq!((&words["entries"], words["conversations"].as_array().map(Vec::len)), (&2.into(), Some(0)));
    let told = stored.run(&["show", "other"]).stdout;
    mentions(&told, &["erased"]);
    assert!(!told.contains("Read a.rs") && !told.contains("fn main"), "{told}");
    assert!(!stored.run(&["list"]).stdout.contains("Read a.rs"));
    let file = std::fs::read(&stored.store).unwrap();
    assert!(!file.windows(9).any(|bytes| bytes == b"Read a.rs"), "no byte is left");
    let gone = stored.json(&["erase", "chat", "--with-forks", "--yes"]);
    assert_eq!(gone["conversations"].as_array().map(Vec::len), Some(2));
    mentions(&stored.fails(3, &["show", "chat"]), &["error[R0353]"]);
    mentions(&stored.run(&["list"]).stdout, &["no conversations"]);
    let again = stored.any(&["import", &stored.folder.at("chat.json")]);
    assert_eq!(again.code, Some(3));
    mentions(&again.stderr, &["[R0353]", "was erased"]);
}

#[test]
fn a_name_that_is_neither_file_nor_conversation_is_told_as_both() {
    let stored = Stored::with_chat();
    let ran = |name: &str| {
        let mut command = crate::run::command(&["compile", name]);
        crate::run::Ran::from(
            command.env("RECTO_STORE", &stored.store).current_dir(&stored.folder.path).output().unwrap(),
        )
    };
    let told = ran("gone");
    assert_eq!((told.code, &*told.stdout), (Some(1), ""));
    mentions(&told.stderr, &["error[R0101]: cannot read gone", "has no conversation \"gone\"", "recto list"]);
    assert_eq!(ran("chat").code, Some(0), "a conversation, where no file is called so");
    let file = ran("chat.json");
    assert!(!file.stderr.contains("store:"), "a file needs no store");
    mentions(&recto(&["compile", "gone"]).stderr, &["there is no store at"]);
    let chat = stored.folder.at("chat.json");
    mentions(&stored.fails(3, &["compile", &chat]), &["error[R0350]"]);
    mentions(&crate::run::fails(2, &["compile", &chat, "--reader", "x"]), &["error[R0204]", "recto import"]);
    mentions(&stored.fails(2, &["compile", "chat", "--conversation", "x"]), &["error[R0204]"]);
}

#[test]
fn an_export_of_a_store_is_told_from_a_transcript() {
    let stored = Stored::with_chat();
    let file = stored.folder.at("export.jsonl");
    stored.run(&["export", "chat", "-o", &file]);
    for command in ["compile", "explain", "replay", "convert"] {
        let args = [command, &file, "--to", "recto"];
        let args = if command == "convert" { &args[..] } else { &args[..2] };
        mentions(&crate::run::fails(3, args), &["error[R0310]", "an export of a store", "recto import"]);
    }
}

#[test]
fn nothing_is_recorded_by_a_preview() {
    let stored = Stored::with_chat();
    let before = stored.run(&["export", "chat"]).stdout;
    for args in [&["compile", "chat"][..], &["explain", "chat", "--input", "x"], &["compile", "chat", "--turn", "1"]] {
        stored.run(args);
    }
    assert_eq!(stored.run(&["export", "chat"]).stdout, before);
    mentions(&stored.run(&["turns", "chat"]).stdout, &["no recorded calls"]);
    mentions(&succeeds(&["compile", "--help"]).stdout, &["nothing is\ndecided or recorded"]);
}

/// `script` runs a command on a terminal of its own.
#[cfg(target_os = "linux")]
#[test]
fn an_erase_is_asked_for_on_a_terminal() {
    use crate::run::{Ran, isolated};
    use recto_testkit::shared;
    use std::io::Write;
    use std::process::{Command, Stdio};
    if Command::new("script").arg("--version").output().is_err() {
        return shared::skipped("questions on a terminal: no `script` (package bsdutils or util-linux)");
    }
    let stored = Stored::with_chat();
    let answered = |answer: &str| {
        let line = format!("'{}' erase chat --store '{}'", env!("CARGO_BIN_EXE_recto"), stored.store);
        let mut command = isolated(Command::new("script"));
        command.args(["-q", "-e", "-c", &line, "/dev/null"]).stdin(Stdio::piped());
        let mut child = command.spawn().unwrap();
        child.stdin.take().unwrap().write_all(answer.as_bytes()).unwrap();
        Ran::from(child.wait_with_output().unwrap())
    };
    let no = answered("no\n");
    assert_eq!(no.code, Some(2), "{}", no.stdout);
    mentions(&no.stdout, &["Erase conversation \"chat\" with its 6 entries, for good?", "error[R0205]"]);
    mentions(&stored.run(&["list"]).stdout, &["chat"]);
    let yes = answered("yes\n");
    assert_eq!(yes.code, Some(0), "{}", yes.stdout);
    mentions(&stored.run(&["list"]).stdout, &["no conversations"]);
}
