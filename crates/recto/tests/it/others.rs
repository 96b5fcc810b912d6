//! What benchmarks leave behind: trajectories of SWE-agent, results of tau-bench, logs of Inspect. Real files agree
//! with what another reader made of them, and every real file of every format is read.

use crate::corpus;
use crate::twins::{Told, pairs, told, without_open_calls};
use recto::entry::{EntryKind, Origin, Piece};
use recto::transcript::{self, Conversation};
use recto::{Entry, Part, Role};
use recto_testkit::shared;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// A log as Inspect 0.3.285 wrote it, of two samples; most of its events were taken out.
pub(super) const INSPECT: &str = include_str!("../../../../fixtures/inspect-log.json");

/// How many files of each format there are.
const RAW: [(&str, usize); 6] = [
    ("claude-code", 8),
    ("claude-stream-json", 1),
    ("codex-rollout", 2),
    ("pi-session", 1),
    ("swe-agent-traj", 12),
    ("tau-bench", 23),
];

/// A trajectory whose actions are tool calls.
pub(super) fn trajectory() -> String {
    let call =
        json!([{"id": "c1", "type": "function", "function": {"name": "bash", "arguments": "{\"command\":\"ls\"}"}}]);
    let said = |role: &str, content: Value| json!({"role": role, "content": content, "agent": "main"});
    let mut step = said("assistant", json!("I look."));
    step["tool_calls"] = call;
    step["thought"] = "I look.".into();
    step["action"] = "ls".into();
    step["thinking_blocks"] = json!([{"type": "thinking", "thinking": "hm", "signature": "SEAL"}]);
    let mut seen = said("tool", json!([{"type": "text", "text": "a.txt\n"}]));
    seen["tool_call_ids"] = json!(["c1"]);
    let mut asked = said("user", json!("Mend it."));
    asked["tool_calls"] = Value::Null;
    let history =
        json!([said("system", json!("You mend things.")), asked, step, seen, said("assistant", json!("Done."))]);
    json!({"environment": "main", "trajectory": [{"action": "ls", "observation": "a.txt"}], "history": history,
        "info": {"exit_status": "submitted"}, "replay_config": "{}"})
    .to_string()
}

/// A trajectory whose actions are words, with a demonstration.
pub(super) fn trajectory_in_words() -> String {
    let said = |role: &str, content: &str| json!({"role": role, "content": content, "agent": "primary"});
    let mut shown = said("user", "Here is how.");
    shown["is_demo"] = true.into();
    let mut step = said("assistant", "I look.\n```\nls -F\n```");
    step["action"] = "ls -F\n".into();
    let history = json!([
        said("system", "You mend things."),
        shown,
        said("user", "Mend it."),
        step,
        said("user", "a.txt"),
        said("assistant", "Done.")
    ]);
    json!({"trajectory": [], "history": history, "info": {}}).to_string()
}

/// Results of three runs.
pub(super) fn results() -> String {
    let call = json!([{"id": "c1", "type": "function", "function": {"name": "find", "arguments": "{\"id\":\"A1\"}"}}]);
    let run = |task: u32, trial: u32| {
        json!({"task_id": task, "reward": 1.0, "info": {"task": {"user_id": "u"}}, "trial": trial, "traj": [
            {"role": "system", "content": "Be kind."}, {"role": "user", "content": format!("Hello of {task}.")},
            {"role": "assistant", "content": null, "tool_calls": call, "function_call": null},
            {"role": "tool", "tool_call_id": "c1", "name": "find", "content": "{}"},
            {"role": "assistant", "content": "Found it."}]})
    };
    json!([run(0, 0), run(0, 1), run(7, 0)]).to_string()
}

fn read(text: &str) -> Vec<Conversation> {
    transcript::read(text).unwrap_or_else(|error| panic!("{error}\n{text}"))
}

fn only(text: &str) -> Conversation {
    let mut found = read(text);
    assert_eq!(found.len(), 1);
    found.remove(0)
}

fn roles(conversation: &Conversation) -> String {
    let letter = |entry: &Entry| entry.role.to_string().chars().next();
    conversation.entries.iter().filter_map(letter).collect()
}

/// The text of an error, and the line it names.
fn refused(text: &str) -> (String, Option<usize>) {
    let error = transcript::read(text).unwrap_err();
    (format!("{error}; {}", error.hint().unwrap_or_default()), error.place().map(|place| place.line))
}

#[test]
fn a_trajectory_is_what_the_model_read() {
    let found = only(&trajectory());
    assert_eq!(roles(&found), "suata");
    let [.., step, seen, _] = &found.entries[..] else { panic!() };
    assert!(matches!(&step.parts[0], Part::Reasoning(it) if it.signature.as_deref() == Some("SEAL")));
    assert_eq!(step.calls().next().unwrap().id.as_str(), "c1");
    assert!(matches!(&seen.parts[0], Part::Result(it) if it.call.as_str() == "c1" && it.content.len() == 1));
    assert_eq!((&step.extra["agent"], &step.extra["action"]), (&json!("main"), &json!("ls")));
    assert_eq!(found.entries[0].extra["swe_agent"]["info"]["exit_status"], "submitted");
    assert_eq!(found.notes, ["trajectory and settings left out: the history is what the model read"]);
    assert_eq!((found.id, found.within), (None, None), "several runs of one task have the same names inside");
}

#[test]
fn what_an_action_in_words_brought_is_no_users_word() {
    let found = only(&trajectory_in_words());
    assert_eq!(roles(&found), "suuaua");
    assert_eq!((found.entries[1].origin, found.entries[2].origin), (Origin::Host, Origin::User));
    let seen = &found.entries[4];
    assert_eq!(
        (seen.kind, seen.origin, &*seen.tools),
        (Some(EntryKind::ActionResult), Origin::Tool, &["ls".into()][..])
    );
    assert_eq!(found.entries.iter().filter(|entry| entry.is_user_words()).count(), 2);
}

#[test]
fn every_agent_of_a_trajectory_has_its_own_conversation() {
    let mut file: Value = serde_json::from_str(&trajectory_in_words()).unwrap();
    let aside = json!([{"role": "user", "content": "Sum it up.", "agent": "judge"}, {"role": "assistant", "content": "Fine.", "agent": "judge"}]);
    file["history"].as_array_mut().unwrap().extend(aside.as_array().unwrap().clone());
    file["history"][5]["agent"] = Value::Null;
    let found = read(&file.to_string());
    assert_eq!(found.iter().map(roles).collect::<Vec<_>>(), ["suuaua", "ua"]);
    assert_eq!(found.iter().map(|it| it.within.as_deref()).collect::<Vec<_>>(), [Some("primary"), Some("judge")]);
    assert_eq!(found.iter().map(|it| it.notes.len()).collect::<Vec<_>>(), [1, 0], "told once");
}

#[test]
fn a_result_that_names_several_calls_is_the_firsts() {
    let text = trajectory().replace(r#"["c1"]"#, r#"["c1","c2"]"#);
    let found = only(&text);
    assert_eq!(found.notes[1], "1 call beyond the first that a result names: left without one");
    let (told, _) = refused(&trajectory().replace(r#"["c1"]"#, "[]"));
    assert!(told.contains("a tool message without tool_call_id"), "{told}");
}

#[test]
fn every_run_of_tau_bench_is_a_conversation() {
    let found = read(&results());
    assert_eq!(found.iter().map(roles).collect::<Vec<_>>(), ["suata"; 3]);
    let names: Vec<_> = found.iter().filter_map(|it| it.within.as_deref()).collect();
    assert_eq!(names, ["task0-trial0", "task0-trial1", "task7-trial0"]);
    assert!(found.iter().all(|it| it.id.is_none() && it.notes.is_empty()));
    let kept = &found[2].entries[0].extra["tau_bench"];
    assert_eq!(
        (&kept["task_id"], &kept["reward"], &kept["info"]["task"]["user_id"]),
        (&json!(7), &json!(1.0), &json!("u"))
    );
    let one: Value = serde_json::from_str(&results()).unwrap();
    assert_eq!(only(&one[1].to_string()).entries.len(), 5);
}

#[test]
fn every_sample_of_a_real_log_is_a_conversation() {
    let found = read(INSPECT);
    let mut found: BTreeMap<&str, &Conversation> = found.iter().map(|it| (it.within.as_deref().unwrap(), it)).collect();
    let (pictured, plain) = (found.remove("2_epoch_1").unwrap(), found.remove("look_epoch_1").unwrap());
    assert!(found.is_empty());
    assert_eq!((&*roles(plain), &*roles(pictured)), ("suatata", "suatata"));
    let Part::Image(picture) = &pictured.entries[1].parts[1] else { panic!() };
    assert!(picture.url.starts_with("data:image/png;base64,iVBOR"), "an attachment stands at its place");
    let call = plain.entries[2].calls().next().unwrap();
    assert_eq!(
        (call.id.as_str(), &*call.name, call.arguments.as_str().contains("src")),
        ("call_a1", "list_files", true)
    );
    let Part::Result(failed) = &plain.entries[5].parts[0] else { panic!() };
    assert_eq!((failed.is_error, &failed.content[..]), (true, &[Piece::Text { text: "not allowed.".into() }][..]));
    let Part::Reasoning(thought) = &plain.entries[6].parts[0] else { panic!() };
    assert_eq!((&*thought.text, thought.is_sealed()), ("THOUGHT. Only one.", false), "nobody knows whose seal it is");
    assert_eq!(plain.entries[6].extra["inspect"]["parts"]["0"]["signature"], "sig");
    let sample = &pictured.entries[0].extra["inspect"]["sample"];
    assert_eq!((&sample["target"], &sample["metadata"]["level"]), (&json!("a.txt"), &json!("easy")));
    assert_eq!(sample["scores"]["includes"]["value"], "C");
    assert!(plain.entries.iter().all(|entry| entry.id.is_some()));
    let notes: Vec<&str> = [plain, pictured].iter().flat_map(|it| it.notes.iter().map(String::as_str)).collect();
    assert_eq!(notes, ["events and stores of 2 samples left out"]);
}

#[test]
fn a_sample_that_was_taken_out_of_an_archive_is_a_conversation() {
    let log: Value = serde_json::from_str(INSPECT).unwrap();
    let found = only(&log["samples"][0].to_string());
    assert_eq!((found.within.as_deref(), found.entries.len()), (Some("2_epoch_1"), 7));
}

#[test]
fn what_a_sample_points_at_and_what_no_part_holds_is_told() {
    let part = |kind: &str, field: &str, value: &str| json!({"type": kind, field: value, "format": "mp4"});
    let said = json!([{"type": "text", "text": "attachment://far"}, part("video", "video", "data:x"),
        part("audio", "audio", "data:audio/mp3;base64,AA"), part("document", "document", "data:application/pdf;base64,AA")]);
    let thought = json!([{"type": "reasoning", "reasoning": "SEALED", "redacted": true, "summary": "in short"},
        {"type": "tool_use", "tool_type": "web_search", "id": "w", "name": "search", "arguments": "{}", "result": "r"}]);
    let messages = json!([{"role": "user", "content": "attachment://near"}, {"role": "user", "content": said},
        {"role": "assistant", "content": thought, "tool_calls": [{"id": "c", "function": "f", "arguments": {}}]},
        {"role": "tool", "tool_call_id": "c", "content": [part("video", "video", "data:x")]},
        {"role": "assistant", "content": null}]);
    let sample = |messages: &Value| json!({"id": "a/b", "epoch": 2, "input": "", "attachments": {"near": "NEAR"}, "messages": messages});
    let log = |model: &str| json!({"version": 2, "eval": {"model": model}, "samples": [sample(&messages), sample(&json!([]))]});
    let found = only(&log("openai/gpt-5.5").to_string());
    assert_eq!(found.within.as_deref(), Some("a/b_epoch_2"));
    assert_eq!(&*found.entries[0].parts, [Part::text("NEAR")]);
    assert_eq!(found.entries[1].parts[0], Part::text("attachment://far"));
    let Part::Reasoning(thought) = &found.entries[2].parts[0] else { panic!() };
    assert_eq!((&*thought.text, thought.is_sealed()), ("in short", false));
    assert_eq!(found.entries[2].extra["inspect"]["parts"]["0"]["redacted"], "SEALED");
    let Part::Result(result) = &found.entries[3].parts[0] else { panic!() };
    assert_eq!(result.content, [Piece::Text { text: "[video]".into() }]);
    assert_eq!(found.entries[3].extra["inspect"]["parts"]["0"]["block"]["video"], "data:x");
    assert_eq!(
        found.notes,
        [
            "3 blocks kept that no model is shown: 1 tool_use, 2 video",
            "1 attachment not in the log",
            "1 sample without messages left out",
            "events and stores of 2 samples left out",
        ]
    );
    let found = only(&log("anthropic/claude-opus-5-5").to_string());
    assert!(matches!(&found.entries[2].parts[0], Part::Reasoning(it) if it.encrypted.as_deref() == Some("SEALED")));
}

#[test]
fn what_can_not_be_read_is_told_with_its_place() {
    let lines = |value: Value| serde_json::to_string_pretty(&value).unwrap();
    let log = |sample: Value| lines(json!({"eval": {"model": "m"}, "samples": [sample]}));
    for (text, told, line) in [
        (lines(json!({"trajectory": [], "history": []})), "no conversation in it", Some(2)),
        (
            lines(json!({"trajectory": [], "history": [{"role": "oracle"}]})),
            "messages[0]: unknown role \"oracle\"",
            Some(4),
        ),
        (lines(json!({"trajectory": [], "history": 7})), "history: invalid type", Some(2)),
        (lines(json!([{"task_id": 1, "traj": []}, {"task_id": 2}])), "results[1] has no \"traj\"", Some(6)),
        (lines(json!({"task_id": 1, "traj": [{"role": "user", "content": 7}]})), "content is neither", Some(5)),
        (
            lines(json!({"eval": {}, "plan": {}, "status": "started"})),
            "a log of Inspect without samples; a log",
            Some(1),
        ),
        (
            log(json!({"messages": [{"role": "user", "content": 7}]})),
            "samples[0].messages[0].content is neither",
            Some(9),
        ),
        (log(json!({"messages": [{"content": ""}]})), "samples[0].messages[0] has no \"role\"", Some(8)),
        (log(json!({"messages": [{"role": "ghost"}]})), "samples[0].messages[0]: unknown role \"ghost\"", Some(9)),
        (log(json!({"messages": [{"role": "tool", "content": ""}]})), "has no \"tool_call_id\"", Some(8)),
        (log(json!({"messages": []})), "no conversation in it; no sample", Some(1)),
    ] {
        let (found, at) = refused(&text);
        assert!(found.contains(told), "{found}, not {told}");
        assert_eq!(at, line, "{found}\n{text}");
    }
}

#[test]
fn a_truncated_file_is_an_error_at_its_end() {
    for whole in [trajectory(), trajectory_in_words(), results(), INSPECT.to_string()] {
        for part in 1..20 {
            let mut end = whole.len() * part / 20;
            while !whole.is_char_boundary(end) {
                end -= 1;
            }
            let error = transcript::read(&whole[..end]).unwrap_err();
            let last = whole[..end].split('\n').count();
            assert!(error.place().is_some_and(|at| at.line + 1 >= last), "{error}");
            assert_eq!(error.hint().as_deref(), Some("the file ends in the middle of a record"));
        }
    }
}

/// Every file under a folder.
fn files(folder: &Path) -> Vec<PathBuf> {
    let mut list: Vec<PathBuf> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    list.sort();
    list.into_iter().flat_map(|path| if path.is_dir() { files(&path) } else { vec![path] }).collect()
}

#[test]
fn every_real_file_is_read_and_keeps_the_laws() {
    let Some(folder) = shared::folder("data/raw", "every real file of every format") else { return };
    let mut numbers: BTreeMap<String, usize> = BTreeMap::new();
    for path in files(&folder) {
        let kind = path.parent().unwrap().file_name().unwrap().to_string_lossy().into_owned();
        let found = read(&std::fs::read_to_string(&path).unwrap());
        assert_eq!(found.len(), 1, "{}", path.display());
        assert!(found[0].entries.len() >= 3, "{}", path.display());
        *numbers.entry(kind.clone()).or_default() += 1;
        if ["pi-session", "swe-agent-traj", "tau-bench"].contains(&kind.as_str()) {
            corpus::keeps_the_laws(&path.display().to_string(), &found[0], 16_000);
        }
    }
    for (kind, number) in RAW {
        assert_eq!(numbers.get(kind), Some(&number), "{kind}");
    }
    assert_eq!(numbers.len(), RAW.len(), "{numbers:?}");
}

#[test]
fn what_we_wrote_ourselves_keeps_the_laws() {
    for text in [trajectory(), trajectory_in_words(), results(), INSPECT.to_string(), crate::pi::session()] {
        for conversation in read(&text) {
            corpus::keeps_the_laws("a fixture", &conversation, 8_000);
        }
    }
}

/// Fails unless a twin says the same, message by message. It numbers ids that recur.
fn same(name: &str, own: &[Told], twin: &Conversation) {
    let plain = |id: &mut String| id.truncate(id.find('#').unwrap_or(id.len()));
    let mut theirs: Vec<Told> = twin.entries.iter().map(told).collect();
    for it in &mut theirs {
        it.calls.iter_mut().for_each(|(id, ..)| plain(id));
        it.result.iter_mut().for_each(|(id, _)| plain(id));
    }
    for (at, (own, theirs)) in own.iter().zip(&theirs).enumerate() {
        assert_eq!(own, theirs, "{name}: message {at}");
    }
    assert_eq!(own.len(), theirs.len(), "{name}");
}

#[test]
fn real_results_of_tau_bench_agree_with_their_twins() {
    let Some(pairs) = pairs("tau-bench", "results of tau-bench and their twins") else { return };
    assert_eq!(pairs.len(), 23);
    for (name, found, twin) in pairs {
        same(&name, &found.entries.iter().map(told).collect::<Vec<_>>(), &twin);
        assert!(found.notes.is_empty());
    }
}

/// The twins make calls of actions in words, and results of what they brought.
fn in_words(entries: &[Entry]) -> Vec<Told> {
    let mut number = 0;
    let mut told_so = |entry: &Entry| {
        let mut it = told(entry);
        let action = entry.extra.get("action").and_then(Value::as_str);
        if let Some(action) = action.filter(|_| entry.role == Role::Assistant && it.calls.is_empty()) {
            number += 1;
            it.calls.push((format!("call_{number}"), "shell".into(), json!({ "command": action })));
        }
        if entry.kind == Some(EntryKind::ActionResult) {
            (it.role, it.result) = (Role::Tool, Some((format!("call_{number}"), false)));
        }
        it
    };
    entries.iter().map(&mut told_so).collect()
}

#[test]
fn real_trajectories_agree_with_their_twins() {
    let Some(pairs) = pairs("swe-agent-traj", "trajectories of SWE-agent and their twins") else { return };
    assert_eq!(pairs.len(), 12);
    let mut in_words_only = 0;
    for (name, found, twin) in pairs {
        let own = without_open_calls(in_words(&found.entries));
        same(&name, &own, &twin);
        in_words_only += usize::from(found.entries.iter().any(|it| it.kind == Some(EntryKind::ActionResult)));
    }
    assert_eq!(in_words_only, 9);
}
