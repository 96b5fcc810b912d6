use crate::run::{FIXTURE, Folder, SMALL, command, fails, mentions, recto, recto_reading, succeeds};
use recto::wire::openai_chat;
use serde_json::Value;

fn json(text: &str) -> Value {
    serde_json::from_str(text).unwrap()
}

#[test]
fn the_body_is_one_that_the_provider_takes() {
    for settings in [&[][..], &["--window", "32k", "--policy", "first_chars"], &["--window", "8_000"]] {
        let ran = succeeds(&[&["compile", FIXTURE], settings].concat());
        assert_eq!(openai_chat::validate(ran.stdout.as_bytes()), []);
        assert!(ran.stdout.ends_with("]}\n"));
        assert_eq!(ran.stderr.lines().count(), 1, "{}", ran.stderr);
        mentions(&ran.stderr, &["page for gpt-4o", "messages ", "USD", "not shown"]);
    }
}

#[test]
fn what_fits_comes_back_as_it_was() {
    let body = json(&succeeds(&["compile", FIXTURE, "--policy", "none"]).stdout);
    let given = json(&std::fs::read_to_string(FIXTURE).unwrap());
    assert_eq!(body, given);
}

#[test]
fn json_holds_the_same_body_and_the_receipt() {
    let args = ["compile", FIXTURE, "--window", "32k", "--policy", "first_chars"];
    let body = json(&succeeds(&args).stdout);
    let ran = succeeds(&[&args[..], &["--json"]].concat());
    let all = json(&ran.stdout);
    assert_eq!((&all["body"], ran.stderr.as_str()), (&body, ""));
    assert_eq!((&all["conversation"], &all["turn"]), (&"late-fees.chat".into(), &Value::Null));
    assert_eq!(all["page"]["mode"], "full");
    let (page, messages) = (all["page"]["messages"].as_array().unwrap(), body["messages"].as_array().unwrap());
    assert_eq!(page.len(), messages.len());
    for (told, message) in page.iter().zip(messages) {
        assert_eq!(told["role"], message["role"]);
    }
    let explained = succeeds(&["explain", FIXTURE, "--window", "32k", "--policy", "first_chars", "--json"]);
    assert_eq!(all["receipt"], json(&explained.stdout));
}

#[test]
fn explain_prints_the_receipt() {
    let ran = succeeds(&["explain", FIXTURE, "--window", "0"]);
    mentions(&ran.stdout, &["page for gpt-4o  policy default", "unbounded", "last user words"]);
    assert_eq!(ran.stderr, "");
    let receipt = json(&succeeds(&["explain", FIXTURE, "--for", "gpt-4.1", "--reserve", "5k", "--json"]).stdout);
    assert_eq!(receipt["target"], "gpt-4.1");
    assert_eq!((&receipt["ledger"]["window"], &receipt["ledger"]["reserve_out"]), (&1_047_576.into(), &5_000.into()));
}

#[test]
fn input_is_what_the_user_says_last() {
    let folder = Folder::new();
    let file = folder.file("chat.json", SMALL);
    let ran = succeeds(&["compile", &file, "--input", "--- and c.rs?", "--json"]);
    let all = json(&ran.stdout);
    let messages = all["body"]["messages"].as_array().unwrap();
    assert_eq!((messages.len(), &messages[6]["content"]), (7, &"--- and c.rs?".into()));
    assert_eq!(all["page"]["messages"][6]["seq"], Value::Null);
    assert!(all["receipt"]["ledger"]["input"].as_u64().unwrap() > 0);

    let empty = folder.file("empty.json", "[]");
    mentions(&fails(3, &["compile", &empty]), &["no messages", "--input"]);
    let body = json(&succeeds(&["compile", &empty, "--input", "Hello"]).stdout);
    assert_eq!(body["messages"], json(r#"[{"role":"user","content":"Hello"}]"#));
}

#[test]
fn a_conversation_that_ends_with_its_answer_gives_the_page_before_it() {
    let folder = Folder::new();
    let file = folder.file("done.json", r#"[{"role":"user","content":"Hi"},{"role":"assistant","content":"Ho"}]"#);
    let ran = succeeds(&["compile", &file]);
    assert_eq!(json(&ran.stdout)["messages"], json(r#"[{"role":"user","content":"Hi"}]"#));
    mentions(&ran.stderr, &["ends with an assistant message", "the page before it (turn 0)"]);
    let all = json(&succeeds(&["compile", &file, "--json"]).stdout);
    assert_eq!(all["turn"], 0);
    let with_input = json(&succeeds(&["compile", &file, "--input", "He"]).stdout);
    assert_eq!(with_input["messages"].as_array().unwrap().len(), 3);
}

#[test]
fn turns_that_do_not_exist_are_refused() {
    let folder = Folder::new();
    let file = folder.file("chat.json", SMALL);
    mentions(
        &fails(3, &["compile", &file, "--turn", "2"]),
        &["no turn 2", "assistant messages in the conversation: 2", "from 0 to 1"],
    );
    let none = folder.file("none.json", r#"[{"role":"user","content":"Hi"}]"#);
    mentions(&fails(3, &["explain", &none, "--turn", "0"]), &["in the conversation: 0", "leave --turn out"]);
    let first = r#"[{"role":"assistant","content":"Welcome"},{"role":"user","content":"Hi"},{"role":"assistant","content":"Ho"}]"#;
    let first = folder.file("first.json", first);
    mentions(&fails(3, &["compile", &first, "--turn", "0"]), &["turn 0 has no page", "begins with this assistant"]);
    succeeds(&["compile", &first, "--turn", "1"]);
}

#[test]
fn wrong_usage_ends_with_2() {
    for args in [
        &["compile", FIXTURE, "--turn", "1", "--input", "x"][..],
        &["compile", FIXTURE, "--window", "lots"],
        &["compile", FIXTURE, "--reserve=-1"],
        &["compile", FIXTURE, "--input", ""],
        &["compile"],
        &["replay"],
        &["explian", FIXTURE],
        &[],
    ] {
        fails(2, args);
    }
}

#[test]
fn unknown_policies_come_with_suggestions() {
    mentions(
        &fails(3, &["explain", FIXTURE, "--policy", "first-chars"]),
        &[
            "unknown policy \"first-chars\"",
            "did you mean \"first_chars\"?",
            "none, safe, default, careful, frugal, first_chars",
        ],
    );
    assert!(!fails(3, &["explain", FIXTURE, "--policy", "zzzzzzzz"]).contains("did you mean"));
}

#[test]
fn a_policy_can_be_a_file() {
    let folder = Folder::new();
    let good = r#"{"schema_version":1,"name":"mine","reduce":[{"expire":{"after":2,"action":"remove"}},{"fit_window":{"target_percent":50}}]}"#;
    let good = folder.file("mine.json", good);
    mentions(&succeeds(&["explain", FIXTURE, "--policy", &good]).stdout, &["policy mine", "expire"]);
    let bad = folder.file("bad.json", "{\"schema_version\":1,\"name\":\"mine\",\n\"reduce\":[{\"expier\":{}}]}");
    mentions(
        &fails(3, &["explain", FIXTURE, "--policy", &bad]),
        &["cannot use policy", "bad.json", "line 2", "expier"],
    );
    let wrong = folder
        .file("wrong.json", r#"{"schema_version":1,"name":"w","reduce":[{"fit_window":{"trigger_percent":101}}]}"#);
    mentions(&fails(3, &["explain", FIXTURE, "--policy", &wrong]), &["fit_window", "hint: "]);
    mentions(&fails(1, &["explain", FIXTURE, "--policy", &folder.at("gone.json")]), &["gone.json", "cause: "]);
}

#[test]
fn a_page_that_does_not_fit_ends_with_4_and_the_breakdown() {
    for command in ["compile", "explain"] {
        let told = fails(4, &[command, FIXTURE, "--window", "2k", "--policy", "none"]);
        mentions(&told, &["the page does not fit", "tokens over", "window 2 000", "may not go", "hint: "]);
    }
    mentions(&fails(3, &["compile", FIXTURE, "--window", "2k", "--reserve", "2k"]), &["leaves nothing", "hint: "]);
}

#[test]
fn stdin_is_read_for_a_dash() {
    let folder = Folder::new();
    let file = folder.file("chat.json", SMALL);
    let ran = recto_reading(SMALL, &["compile", "-"]);
    assert_eq!((ran.code, ran.stdout), (Some(0), succeeds(&["compile", &file]).stdout));
    let broken = recto_reading("{", &["explain", "-"]);
    assert_eq!((broken.code, &*broken.stdout), (Some(3), ""));
    mentions(&broken.stderr, &["cannot read stdin", "line 1"]);
}

#[test]
fn conversations_are_picked_by_id() {
    let folder = Folder::new();
    let line =
        |id: &str| format!("{{\"id\":\"{id}\",\"messages\":[{{\"role\":\"user\",\"content\":\"I am {id}\"}}]}}\n");
    let many: String = (1..=12).map(|at| line(&format!("talk-{at}"))).collect();
    let file = folder.file("many.jsonl", &many);
    let told = fails(3, &["compile", &file]);
    mentions(&told, &["12 conversations", "--conversation: talk-1, talk-2, ", "talk-10, and 2 more"]);
    let ran = succeeds(&["compile", &file, "--conversation", "talk-7"]);
    mentions(&ran.stdout, &["I am talk-7"]);
    mentions(&fails(3, &["explain", &file, "--conversation", "tall-7"]), &["\"tall-7\"", "nearest ids: talk-7, "]);

    let twice = folder.file("twice.jsonl", line("same") + &line("same"));
    mentions(&fails(3, &["compile", &twice, "--conversation", "same"]), &["2 conversations", "this id"]);
    let nameless = folder.file("plain.jsonl", "[{\"role\":\"user\",\"content\":\"one\"}]\n".repeat(2));
    mentions(&fails(3, &["compile", &nameless]), &["plain#1, plain#2"]);
    succeeds(&["compile", &nameless, "--conversation", "plain#2"]);
}

#[test]
fn nobody_reading_the_output_is_no_failure() {
    for args in [&["compile", FIXTURE][..], &["explain", FIXTURE], &["demo"], &["replay", FIXTURE, "--pages", "-"]] {
        let mut child = command(args).spawn().unwrap();
        drop(child.stdout.take());
        let output = child.wait_with_output().unwrap();
        let stderr = String::from_utf8(output.stderr).unwrap();
        assert_eq!((output.status.code(), stderr.contains("error")), (Some(0), false), "{args:?}: {stderr}");
    }
}

#[test]
fn a_file_that_is_not_there_ends_with_1() {
    let folder = Folder::new();
    mentions(&fails(1, &["compile", &folder.at("gone.json")]), &["cannot read", "gone.json", "cause: "]);
    mentions(&fails(3, &["compile", folder.path.to_str().unwrap()]), &["is a folder", "recto replay"]);
    assert_eq!(recto(&["--version"]).stdout, concat!("recto ", env!("CARGO_PKG_VERSION"), "\n"));
}

#[test]
fn a_page_in_blocks_shows_its_layout_and_what_the_host_knows() {
    let folder = Folder::new();
    let file = folder.file("chat.json", SMALL);
    let facts = r#"{"now": "2025-12-10T08:00:00Z", "zone": "Asia/Kolkata", "profile": {"learning": 1, "prompt_overrides":
        {"friends_profile": "Likes [SHARED_MEMORY] short."}}}"#;
    let facts = folder.file("facts.json", facts);
    let args = ["compile", &file, "--policy", "nexus_doc", "--input", "And c.rs?", "--facts", &facts];
    let body = json(&succeeds(&args).stdout);
    assert_eq!(openai_chat::validate(body.to_string().as_bytes()), []);
    let messages = body["messages"].as_array().unwrap();
    let texts: Vec<&str> = messages.iter().map(|message| message["content"].as_str().unwrap()).collect();
    let tags = ["# You are Nexus", "[CAPABILITIES]", "[SHARED_MEMORY count=", "[FRIENDS_INFO]", "[THIS_MOMENT]"];
    for tag in tags {
        assert_eq!(texts.iter().filter(|text| text.starts_with(tag)).count(), 1, "{tag} in {texts:?}");
    }
    mentions(texts.last().unwrap(), &["2025-12-10 13:30:00+05:30", "<human_input>\nAnd c.rs?\n</human_input>"]);
    mentions(&texts.concat(), &["Likes [\\SHARED_MEMORY] short."]);
    let explained = succeeds(&[&["explain"], &args[1..]].concat()).stdout;
    mentions(&explained, &["policy nexus_doc", "told in block shared_memory"]);
    // Without an input, what waits for an answer stands in its block.
    let waiting = json(&succeeds(&["compile", &file, "--policy", "blocks"]).stdout).to_string();
    mentions(&waiting, &["[SHARED_MEMORY]", "[THIS_MOMENT]", "human_input"]);
    let odd = folder.file("odd.json", r#"{"zone": "Middle/Earth"}"#);
    let told = fails(3, &["compile", &file, "--policy", "blocks", "--facts", &odd]);
    mentions(&told, &["cannot use facts of", "no time zone is called", "docs/blocks.md"]);
}
