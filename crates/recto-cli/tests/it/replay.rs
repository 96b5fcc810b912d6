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
        eval, window 1 000 000, policy default

        conversation     calls  tokens  cached   share     USD   cost  recall
        chat                 2      43      15  34.9 %  0.0000  1.000  1.0000
        talk#1               2      43      15  34.9 %  0.0000  1.000  1.0000
        talk#2               2      43      15  34.9 %  0.0000  1.000  1.0000
        3 conversations      6     129      45  34.9 %  0.0001  1.000  1.0000

        dearest: chat (cost 1.000)
        most forgetful: chat (recall 1.0000)
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
        eval, window 1 000 000, policy default

        conversation                             calls  tokens  cached   share     USD   cost  recall
        山田                                         2      43      15  34.9 %  0.0000  1.000  1.0000
        café                                         2      43      15  34.9 %  0.0000  1.000  1.0000
        👩‍👩‍👧                                           2      43      15  34.9 %  0.0000  1.000  1.0000
        \u{1b}[31m                                   2      43      15  34.9 %  0.0000  1.000  1.0000
        とても長い名前の会話とても長い名前の会…      2      43      15  34.9 %  0.0000  1.000  1.0000
        5 conversations                             10     215      75  34.9 %  0.0002  1.000  1.0000

        dearest: 山田 (cost 1.000)
        most forgetful: 山田 (recall 1.0000)
    "#]]
    .assert_eq(&ran.stdout);
}

#[test]
fn json_sums_up_the_same() {
    let ran = succeeds(&["replay", FIXTURE, "--json"]);
    let report: Value = serde_json::from_str(&ran.stdout).unwrap();
    let (row, total) = (&report["conversations"][0], &report["total"]);
    assert_eq!((&report["target"], &report["policy"]), (&"gpt-4o".into(), &"default".into()));
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
    mentions(&fails(3, &["replay", empty.path.to_str().unwrap()]), &["no *.json, *.jsonl or *.traj"]);
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

const FORGETFUL: &str = r#"{"schema_version": 1, "name": "forgetful", "reduce": [{"recent": {"messages": 1}}]}"#;

const BRIEF: &str = r#"{"schema_version": 1, "name": "brief", "reduce": [{"token_limit": {"tokens": 20000}}]}"#;

#[test]
fn policies_stand_side_by_side() {
    let folder = Folder::new();
    let policies = format!("{},{}", folder.file("forgetful.json", FORGETFUL), folder.file("brief.json", BRIEF));
    let ran = succeeds(&["replay", FIXTURE, "--policy", "none", "--policy", &policies, "--each"]);
    expect![[r#"
        gpt-4o, window 128 000, conversations: 1
        full history: 81 calls, 2 791 294 tokens of four bytes

        policy     calls     tokens  cached     USD   cost  recall   names  numbers  quoted  phrases   lines    peak
        none          81  3 615 822  98.0 %  4.6116  1.000  1.0000  1.0000   1.0000  1.0000   1.0000  1.0000  68 690
        forgetful     81    146 163  22.4 %  0.3244  0.209  0.2757  0.3127   0.3091  0.3196   0.3171  0.1200  13 040
        brief         81  1 294 257  86.7 %  1.8337  0.750  0.8373  0.8845   0.8727  0.8866   0.8029  0.7400  20 561

        policy     dearest          cost  most forgetful  recall
        none       late-fees.chat  1.000  late-fees.chat  1.0000
        forgetful  late-fees.chat  0.209  late-fees.chat  0.2757
        brief      late-fees.chat  0.750  late-fees.chat  0.8373

        conversation    policy     calls     tokens  cached     USD   cost  recall   names  numbers  quoted  phrases   lines    peak
        late-fees.chat  none          81  3 615 822  98.0 %  4.6116  1.000  1.0000  1.0000   1.0000  1.0000   1.0000  1.0000  68 690
        late-fees.chat  forgetful     81    146 163  22.4 %  0.3244  0.209  0.2757  0.3127   0.3091  0.3196   0.3171  0.1200  13 040
        late-fees.chat  brief         81  1 294 257  86.7 %  1.8337  0.750  0.8373  0.8845   0.8727  0.8866   0.8029  0.7400  20 561
    "#]]
    .assert_eq(&ran.stdout);
    assert_eq!(ran.stderr, "");
}

#[test]
fn json_holds_the_policies_side_by_side() {
    let folder = Folder::new();
    let policies = format!("none,{}", folder.file("brief.json", BRIEF));
    let ran = succeeds(&["replay", FIXTURE, "--policy", &policies, "--json"]);
    let report: Value = serde_json::from_str(&ran.stdout).unwrap();
    let brief = &report["policies"][1];
    assert_eq!(brief["conversations"][0]["file"], FIXTURE);
    let shown = ["policy", "total", "dearest", "most_forgetful"].map(|field| format!("{field} {:#}\n", brief[field]));
    expect![[r#"
        policy "brief"
        total {
          "cached": 1121536,
          "calls": 81,
          "conversations": 1,
          "measured": {
            "cost": 0.75043716597338,
            "recall": 0.8373378791964534,
            "score": {
              "cached": 906912,
              "calls": 81,
              "peak": 17854,
              "references": {
                "lines": {
                  "all": 50,
                  "kept": 37
                },
                "names": {
                  "all": 355,
                  "kept": 314
                },
                "numbers": {
                  "all": 55,
                  "kept": 48
                },
                "phrases": {
                  "all": 350,
                  "kept": 281
                },
                "quoted": {
                  "all": 194,
                  "kept": 172
                }
              },
              "tokens": 1040505
            }
          },
          "overflows": 0,
          "peak": 20561,
          "tokens": 1294257,
          "usd": 1.8337225000000006
        }
        dearest {
          "conversation": "late-fees.chat",
          "cost": 0.75043716597338
        }
        most_forgetful {
          "conversation": "late-fees.chat",
          "recall": 0.8373378791964534
        }
    "#]]
    .assert_eq(&shown.concat());
}

#[test]
fn a_policy_that_hides_nearly_everything_forgets() {
    let folder = Folder::new();
    let forgetful = folder.file("forgetful.json", FORGETFUL);
    let ran = succeeds(&["replay", FIXTURE, "--for", "eval", "--policy", "none", "--policy", &forgetful, "--json"]);
    let report: Value = serde_json::from_str(&ran.stdout).unwrap();
    let (full, [none, forgetful]) = (&report["full"], [0, 1].map(|at| &report["policies"][at]));
    let measured = |outcome: &Value| outcome["total"]["measured"].clone();
    assert_eq!((&none["policy"], &forgetful["policy"]), (&"none".into(), &"forgetful".into()));
    assert_eq!(measured(none)["score"], *full);
    assert_eq!((measured(none)["cost"].as_f64(), measured(none)["recall"].as_f64()), (Some(1.0), Some(1.0)));
    assert!(measured(forgetful)["recall"].as_f64() < Some(0.7), "{}", measured(forgetful));
    assert!(measured(forgetful)["cost"].as_f64() < Some(0.9), "{}", measured(forgetful));
    for kind in ["names", "numbers", "quoted", "phrases", "lines"] {
        let kept = &measured(forgetful)["score"]["references"][kind];
        assert!(kept["kept"].as_u64() < kept["all"].as_u64(), "{kind}: {kept}");
        assert_eq!(kept["all"], full["references"][kind]["all"]);
    }
    assert_eq!(forgetful["most_forgetful"]["conversation"], "late-fees.chat");
    assert_eq!(forgetful["most_forgetful"]["recall"], measured(forgetful)["recall"]);
}

#[test]
fn comparing_changes_nothing_for_each_policy() {
    let both = succeeds(&["replay", FIXTURE, "--window", "32k", "--policy", "safe,first_chars", "--json"]).stdout;
    let both: Value = serde_json::from_str(&both).unwrap();
    for (at, policy) in ["safe", "first_chars"].into_iter().enumerate() {
        let alone = succeeds(&["replay", FIXTURE, "--window", "32k", "--policy", policy, "--json"]).stdout;
        let alone: Value = serde_json::from_str(&alone).unwrap();
        for field in ["policy", "conversations", "total", "dearest", "most_forgetful"] {
            assert_eq!(alone[field], both["policies"][at][field], "{policy}: {field}");
        }
        for field in ["target", "wire", "window", "reserve", "min_tokens", "left_out", "full"] {
            assert_eq!(alone[field], both[field], "{policy}: {field}");
        }
    }
}

#[test]
fn pages_of_several_policies_are_told_apart() {
    let folder = Folder::new();
    let (file, one, two) = (folder.file("chat.json", SMALL), folder.at("one.jsonl"), folder.at("two.jsonl"));
    succeeds(&["replay", &file, "--policy", "safe", "--pages", &one]);
    succeeds(&["replay", &file, "--policy", "none,safe", "--pages", &two]);
    let (one, two) = (fs::read_to_string(one).unwrap(), fs::read_to_string(two).unwrap());
    let told: Vec<_> = lines(&two).iter().map(|it| format!("{} {}", it["policy"], it["turn"])).collect();
    assert_eq!(told, ["\"none\" 0", "\"none\" 1", "\"safe\" 0", "\"safe\" 1"]);
    let of_safe = two.lines().skip(2).map(|line| line.replace("\"policy\":\"safe\",", "") + "\n");
    assert_eq!(of_safe.collect::<String>(), one);
}

#[test]
fn policies_of_the_same_name_are_told_by_their_files() {
    let folder = Folder::new();
    let (file, policy) = (folder.file("chat.json", SMALL), folder.file("a.json", FORGETFUL));
    let other = folder.file("b.json", FORGETFUL.replace("\"messages\": 1", "\"messages\": 2"));
    let ran = succeeds(&["replay", &file, "--policy", &format!("{policy},safe,{other}"), "--json"]);
    let report: Value = serde_json::from_str(&ran.stdout).unwrap();
    let names: Vec<&Value> = report["policies"].as_array().unwrap().iter().map(|it| &it["policy"]).collect();
    assert_eq!(names, [policy.as_str(), "safe", other.as_str()]);
    mentions(
        &fails(3, &["replay", &file, "--policy", "none,saef"]),
        &["unknown policy \"saef\"", "did you mean \"safe\"?"],
    );
    mentions(&fails(2, &["replay", &file, "--policy", "none,"]), &["--policy"]);
}

#[test]
fn short_conversations_can_be_left_out() {
    let folder = Folder::new();
    let short = folder.file("short.json", SMALL);
    let ran = succeeds(&["replay", &short, FIXTURE, "--min-tokens", "1k"]);
    mentions(&ran.stdout, &["late-fees.chat", "left out, since they have fewer than 1 000 tokens of four bytes: 1"]);
    assert!(!ran.stdout.contains("short"), "{}", ran.stdout);
    let ran = succeeds(&["replay", &short, FIXTURE, "--min-tokens", "1m", "--policy", "none,safe", "--json"]);
    let report: Value = serde_json::from_str(&ran.stdout).unwrap();
    assert_eq!((&report["left_out"], &report["min_tokens"]), (&2.into(), &1_000_000.into()));
    assert_eq!(report["policies"][1]["total"]["conversations"], 0);
    let ran = succeeds(&["replay", &short, "--min-tokens", "1m", "--policy", "none,safe", "--each"]);
    mentions(&ran.stdout, &["conversations: 0", "left out"]);
}

#[test]
fn the_dearest_and_the_most_forgetful_are_named() {
    let folder = Folder::new();
    let (short, brief) = (folder.file("short.json", SMALL), folder.file("brief.policy.json", BRIEF));
    let ran = succeeds(&["replay", &short, FIXTURE, "--policy", &brief]);
    mentions(&ran.stdout, &["dearest: short (cost 1.000)", "most forgetful: late-fees.chat (recall 0."]);
}

#[test]
fn the_picture_names_every_policy_and_needs_nothing_else() {
    let folder = Folder::new();
    let odd = folder.file("odd.json", FORGETFUL.replace("forgetful", "a<b>&c"));
    let out = folder.at("plot.svg");
    succeeds(&["replay", FIXTURE, "--policy", "safe,first_chars", "--policy", &odd, "--plot", &out]);
    let picture = fs::read_to_string(&out).unwrap();
    mentions(
        &picture,
        &["<svg xmlns=", ">safe</text>", ">first_chars</text>", ">a&lt;b&gt;&amp;c</text>", ">full history<"],
    );
    mentions(&picture, &["prefers-color-scheme:dark", "recall 0.", "</svg>"]);
    for outside in ["href", "url(", "@import", "<script"] {
        assert!(!picture.contains(outside), "{outside}");
    }
    assert_eq!(folder.names(), ["odd.json", "plot.svg"]);
    let told = fails(3, &["replay", &odd, "--plot", &odd]);
    mentions(&told, &["is one of the files to read"]);
    mentions(&fails(1, &["replay", FIXTURE, "--plot", &folder.at("no/plot.svg")]), &["cannot write"]);
    mentions(&fails(1, &["replay", FIXTURE, "--html", &folder.at("no/report.html")]), &["cannot write"]);
    mentions(&fails(3, &["replay", &odd, "--html", &odd]), &["write the report to another file"]);
}

#[test]
fn the_report_is_the_same_every_time() {
    let folder = Folder::new();
    let talks: String = (0..20).map(|nth| format!("{{\"id\":\"{nth}\",{}\n", &SMALL.replace('\n', "")[1..])).collect();
    let args = ["replay", &folder.file("talks.jsonl", talks), FIXTURE, "--policy", "none,safe,first_chars", "--json"];
    let first = succeeds(&args).stdout;
    for _ in 0..3 {
        assert_eq!(succeeds(&args).stdout, first);
    }
}

#[test]
fn what_is_cached_is_a_share_of_what_the_provider_counts() {
    let total = |model: &str| {
        let ran = succeeds(&["replay", FIXTURE, "--for", model, "--policy", "none", "--json"]);
        let report: Value = serde_json::from_str(&ran.stdout).unwrap();
        let field = |name: &str| report["total"][name].as_u64().unwrap();
        (field("tokens"), field("cached"), field("peak"))
    };
    // Claude's vocabulary is not published: our count times a factor is what to expect of it.
    let (tokens, cached, peak) = total("claude-sonnet-4-6");
    assert!(tokens / 2 < cached && cached < tokens, "{cached} of {tokens}");
    assert!(peak <= tokens / 20, "{peak} of {tokens}");
    let last =
        succeeds(&["explain", FIXTURE, "--turn", "80", "--for", "claude-sonnet-4-6", "--policy", "none", "--json"]);
    let receipt: Value = serde_json::from_str(&last.stdout).unwrap();
    assert_eq!(receipt["calibration"]["expected"].as_u64(), Some(peak));
    let money = &receipt["money"];
    let sum: u64 = ["cached", "written", "plain"].iter().map(|kind| money[kind].as_u64().unwrap()).sum();
    assert_eq!(sum, peak);
    // Where we count as the provider does, both are the same as on the receipt's ledger.
    let (tokens, cached, _) = total("gpt-4o");
    assert!(tokens / 2 < cached && cached < tokens, "{cached} of {tokens}");
}
