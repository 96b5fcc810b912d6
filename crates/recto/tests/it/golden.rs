//! The golden page of every preset: a small invented conversation, in a window that is too small for it and in one that
//! is not. `RECTO_BLESS=1` rewrites the files.

use crate::scenarios::{append, check_page};
use recto::entry::{Call, Lane, Millis, Reasoning, Status};
use recto::fragment::{Fragment, Fragments};
use recto::{Entry, Log, Part, Policy, Reader, Request, Role, Target, Tokenizer, Tokens, compile, plan, wire};
use serde_json::{Value, json};
use std::path::PathBuf;

/// The window of the golden pages that is too small for everything.
const WINDOW: u64 = 5_200;

/// Invented: sections, traces of two runs, a failure, reasoning, a rule, and more than the window holds.
fn golden_story() -> Vec<Vec<Entry>> {
    let traced = |run: &str, entry: Entry| Entry { lane: Lane::Trace, run: Some(run.into()), ..entry };
    let aside = |section: &str, text: &str| Entry { section: section.into(), ..Entry::user(text) };
    let catalogue: String = (0..540).map(|at| format!("sheet {at}: Carex sp., drawer {}\n", at % 37)).collect();
    let look = |id: &str| Entry::step("I'll look.", [Call::new(id, "search", "{\"query\":\"Carex\"}")]);
    let thought = Part::Reasoning(Reasoning { text: "Two drawers can't be.".into(), ..Reasoning::default() });
    let mut failed = Entry { status: Status::Error, ..Entry::assistant("The drawer is") };
    failed.meta.insert("error".into(), "timeout".into());
    let mut story = vec![
        vec![
            aside("summary", "Earlier: the index of the herbarium was moved to a new machine."),
            aside("notes", "Nobody selected this section."),
            Entry { at: Some(Millis(1_700_000_000_000)), ..Entry::user("Which sheets are Carex?") },
            look("call_1"),
            Entry::result("call_1", catalogue),
            traced("run-1", look("call_2")),
            traced("run-1", Entry::result("call_2", "nothing new")),
            Entry::assistant("540 of them."),
        ],
        vec![aside("buffer", "Draft: a letter to the lender."), Entry::user("Always name the drawer."), failed],
        vec![Entry::user("So?"), Entry::new(Role::Assistant, [thought, Part::text("Drawer 12.")])],
    ];
    story.extend((0..20).map(|at| {
        let (ask, answer) = (
            format!("And sheet {at}?"),
            format!("Sheet {at} lies in drawer {}, between two others that nobody asked about yet.", at * 5),
        );
        vec![Entry::user(ask), Entry::assistant(answer)]
    }));
    let running = [traced("run-2", look("call_3")), traced("run-2", Entry::result("call_3", "sheet 9: drawer 3"))];
    story.push([Entry::user("Look again.")].into_iter().chain(running).collect());
    story
}

/// The last page of the story, or why there is none; long texts are cut short, and the digest stands for them.
fn golden_page(policy: &Policy, window: Option<u64>) -> Value {
    let run = "run-2".into();
    let mut target = Target::eval().with_window(window.map(Tokens));
    target.tokenizer = Tokenizer::Chars4;
    let (mut log, mut reader) = (Log::counted_by(Tokenizer::Chars4), Reader::new("main"));
    let system = Fragment::fixed("identity", "You look after the herbarium's index.");
    let fragments = Fragments::counted([system], &Tokenizer::Chars4).unwrap();
    let mut last = json!(null);
    for turn in golden_story() {
        append(&mut log, turn);
        let (fragments, reserve) = (Some(&fragments), Some(Tokens(500)));
        let request = Request { run: Some(&run), fragments, reserve, ..Request::new(&log, &reader, policy, &target) };
        let edits = plan(&request).unwrap().edits;
        let mut decided = reader.clone();
        decided.commit(edits, policy.digest());
        match compile(&Request { reader: &decided, ..request }) {
            Ok(compiled) => {
                check_page(&compiled, &log);
                decided.acknowledge(&compiled.receipt.ticket).unwrap();
                let bytes = wire::openai_chat::encode_messages(&compiled.page);
                let mut messages: Vec<Value> = serde_json::from_slice(&bytes).unwrap();
                messages.iter_mut().for_each(cut_short);
                last = json!({"messages": messages, "digest": recto::digest::Digest::of(&bytes).to_string()});
            }
            Err(error) => last = json!({"error": error.to_string()}),
        }
        reader = decided;
    }
    last
}

fn cut_short(message: &mut Value) {
    let Value::String(text) = &mut message["content"] else { return };
    let chars = text.chars().count();
    if chars > 1_000 {
        *text = format!("{}… [{chars} characters in all]", text.chars().take(60).collect::<String>());
    }
}

fn golden_folder() -> PathBuf {
    PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../fixtures/golden"))
}

#[test]
fn every_preset_makes_its_golden_page() {
    let is_blessing = std::env::var_os("RECTO_BLESS").is_some();
    for (name, _) in Policy::preset_names() {
        let policy = Policy::preset(name).unwrap();
        let (small, large) = (golden_page(&policy, Some(WINDOW)), golden_page(&policy, None));
        let made = json!({"policy": name, "small window": small, "unbounded window": large});
        let made = format!("{}\n", serde_json::to_string_pretty(&made).unwrap());
        let path = golden_folder().join(format!("{name}.json"));
        if is_blessing {
            std::fs::create_dir_all(golden_folder()).unwrap();
            std::fs::write(&path, &made).unwrap();
        }
        let golden = std::fs::read_to_string(&path).unwrap_or_default();
        assert!(made == golden, "{name} differs from its golden file; RECTO_BLESS=1 rewrites it:\n{made}");
    }
}

#[test]
fn every_preset_has_a_golden_file_and_comes_back_from_toml_and_json() {
    let files = std::fs::read_dir(golden_folder()).unwrap().map(|file| file.unwrap().file_name().into_string());
    let mut files: Vec<String> = files.map(Result::unwrap).collect();
    let mut names: Vec<String> = Policy::preset_names().map(|(name, _)| format!("{name}.json")).collect();
    files.sort();
    names.sort();
    assert_eq!(files, names);
    for policy in Policy::presets() {
        assert_eq!(Policy::from_toml(&policy.to_toml()).unwrap(), policy);
        let json = serde_json::to_string(&policy).unwrap();
        assert_eq!(Policy::from_json(&json).unwrap(), policy);
        assert_eq!(serde_json::from_str::<Policy>(&json).unwrap(), policy);
        assert_eq!(Policy::from_json(&json).unwrap().digest(), policy.digest());
    }
}
