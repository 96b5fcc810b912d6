//! The page of sampled excerpts, `docs/excerpts.md`: what a model reads of what is old. `RECTO_BLESS=1` writes it again.
//! And the example of `docs/lifecycle.md`, whose numbers must be those of a run.

use recto::edit::{Change, Decision, PartAt, Reason};
use recto::entry::{CallId, Piece};
use recto::event::{EventKind, Since, events};
use recto::tool::Tools;
use recto::{Log, Part, Policy, Replay, Target, Tokens, transcript};
use std::fmt::Write;
use std::path::PathBuf;

/// How many excerpts are shown.
const SAMPLES: usize = 30;
/// The window of the second page of `recto demo`.
const WINDOW: Tokens = Tokens(32_000);
/// The call before which the first cut is made where everything would fit.
const CUT: usize = 12;

const INTRO: &str = "\
# Excerpts, as a model reads them

What the policy `default` leaves of old results and calls in the bundled conversation `fixtures/late-fees.chat.json`, for
`gpt-4o` with a window of 32 000 tokens: the second page of `recto demo`. Nobody picked them: these are evenly spaced
among all, in the order of the conversation. A test writes this page, and fails when it is out of date.

A line stays because it is worth its tokens for what it says that nothing else on the page says. Results that were read
again later, or whose contents the agent has written out itself, may keep no line at all. `…` is a gap. What stands in
square brackets at the first gap tells the model how much is missing, and the handle to ask for it. Characters that
steer a terminal are shown as `␛`.
";

fn repository(path: &str) -> PathBuf {
    PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../..")).join(path)
}

/// The bundled conversation, and its tools.
fn bundled(target: &Target) -> (Log, Tools) {
    let file = std::fs::read_to_string(repository("fixtures/late-fees.chat.json")).unwrap();
    let mut conversation = transcript::read(&file).unwrap().remove(0);
    let tools = Tools::counted(std::mem::take(&mut conversation.tools), &target.tokenizer);
    (conversation.into_log(target.tokenizer).unwrap(), tools)
}

/// An excerpt, and what it was made of.
struct Excerpted {
    at: PartAt,
    what: String,
    decision: Decision,
    text: String,
}

/// All excerpts that the calls of the bundled conversation lead to, in the order of the conversation.
fn excerpts() -> (Log, Vec<Excerpted>) {
    let (policy, target) = (Policy::usual(), Target::named("gpt-4o").unwrap().with_window(Some(WINDOW)));
    let (log, tools) = bundled(&target);
    let mut calls = Replay::new(&log, &policy, &target).with_tools(Some(&tools));
    calls.by_ref().for_each(|call| drop(call.compiled.unwrap()));
    let decisions = calls.reader().decisions().iter().filter(|it| &*it.edit.by == "excerpt");
    let excerpts = decisions.map(|decision| {
        let Change::Replace { at, text } = &decision.edit.change else { panic!("an excerpt replaces") };
        Excerpted { at: *at, what: what(&log, *at), decision: decision.clone(), text: text.to_string() }
    });
    let mut excerpts: Vec<Excerpted> = excerpts.collect();
    excerpts.sort_by_key(|it| it.at);
    (log, excerpts)
}

/// What a part is, by the name of its tool.
fn what(log: &Log, at: PartAt) -> String {
    let tool = |call: &CallId| {
        let mut calls = log.back().flat_map(|entry| entry.shown().iter()).filter_map(|part| match part {
            Part::Call(it) if it.id == *call => Some(it.name.to_string()),
            _ => None,
        });
        calls.next().unwrap()
    };
    match &log.get(at.seq).unwrap().shown()[at.part] {
        Part::Result(result) => format!("result of `{}`", tool(&result.call)),
        Part::Call(call) => format!("arguments of `{}`", call.name),
        Part::Reasoning(_) => "reasoning".into(),
        _ => "answer".into(),
    }
}

fn page() -> String {
    let (_, all) = excerpts();
    assert!(all.len() >= SAMPLES, "{} excerpts are too few for a sample", all.len());
    let mut page = format!("{INTRO}\nExcerpts: {}. Shown here: {SAMPLES}.\n", all.len());
    for it in (0..SAMPLES).map(|nth| &all[nth * all.len() / SAMPLES]) {
        let edit = &it.decision.edit;
        writeln!(page, "\n## {}: {}\n\n{} → {} tokens; {}\n", it.at, it.what, edit.before, edit.after, edit.why)
            .unwrap();
        let text = it.text.replace(|letter: char| letter.is_control() && letter != '\n' && letter != '\t', "␛");
        let ticks = text.split(|letter| letter != '`').map(str::len).max().unwrap_or(0);
        let fence = "`".repeat(3.max(ticks + 1));
        writeln!(page, "{fence}text\n{text}\n{fence}").unwrap();
    }
    page
}

#[test]
fn the_page_of_excerpts_shows_what_the_policy_makes() {
    let (path, made) = (repository("docs/excerpts.md"), page());
    if std::env::var_os("RECTO_BLESS").is_some() {
        std::fs::write(&path, &made).unwrap();
    }
    let page = std::fs::read_to_string(&path).unwrap_or_default();
    let hint = "`RECTO_BLESS=1 cargo test -p recto --test it excerpts_page` writes it again";
    assert!(page == made, "docs/excerpts.md is out of date: {hint}");
}

#[test]
fn every_excerpt_is_lines_of_what_it_stands_for_and_names_its_handle() {
    let (log, all) = excerpts();
    for it in &all {
        let Reason::Excerpted { kept, of, .. } = it.decision.edit.why else { panic!("{:?}", it.decision.edit.why) };
        let told = format!("[{} of {of} lines left out; recto_expand {}", of - kept, it.at);
        assert_eq!(it.text.matches(&told).count(), 1, "{}: {}", it.at, it.text);
        assert!(it.decision.edit.after < it.decision.edit.before, "{}", it.at);
        let Part::Result(result) = &log.get(it.at.seq).unwrap().shown()[it.at.part] else { continue };
        let whole = result.content.iter().map(|piece| match piece {
            Piece::Text { text } => text.to_string(),
            other => panic!("{other:?}"),
        });
        let whole: String = whole.collect();
        let mut original = whole.split('\n').flat_map(|line| line.split("\\n"));
        for line in it.text.split('\n').flat_map(|line| line.split("\\n")).filter(|line| !line.starts_with('…')) {
            assert!(
                line.is_empty() || original.any(|of| of == line),
                "{}: {line:?} is not there, or not in order",
                it.at
            );
        }
    }
}

#[test]
fn the_example_of_what_pays_is_what_happens() {
    let (policy, target) = (Policy::usual(), Target::named("gpt-4o").unwrap());
    let (log, tools) = bundled(&target);
    let mut calls = Replay::new(&log, &policy, &target).with_tools(Some(&tools));
    let waiting = calls.nth(CUT - 1).unwrap().compiled.unwrap().receipt.to_string();
    let cut = calls.next().unwrap().compiled.unwrap().receipt.to_string();
    let shown = waiting.lines().chain(cut.lines()).filter(|line| {
        let word = line.split_whitespace().next().unwrap_or_default();
        ["cache", "money", "saving", "waiting"].contains(&word)
    });
    let happened = events(calls.reader(), &log, Since::START).filter(|it| it.turn.0 == CUT as u64);
    let told = happened.filter(|it| matches!(it.kind, EventKind::Cut | EventKind::Compacted)).take(3);
    let told: Vec<String> = told.map(|event| event.to_string()).collect();
    let page = std::fs::read_to_string(repository("docs/lifecycle.md")).unwrap();
    let missing: Vec<&str> = shown.chain(told.iter().map(String::as_str)).filter(|line| !page.contains(line)).collect();
    assert!(missing.is_empty(), "docs/lifecycle.md should say:\n{}", missing.join("\n"));
    assert!(told[0].starts_with(&format!("[Turn {CUT}] cut: ")), "{}", told[0]);
}
