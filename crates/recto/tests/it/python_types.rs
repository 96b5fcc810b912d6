//! The request types of the providers' official Python packages take what Recto writes, and refuse what is broken.

use proptest::strategy::{Strategy, ValueTree};
use proptest::test_runner::TestRunner;
use recto::entry::{Call, Media};
use recto::format::ResponseFormat;
use recto::page::Page;
use recto::target::Memory;
use recto::wire::Wire;
use recto::{
    Entry, Log, Part, Policy, Reader, Request, Role, Target, Tokenizer, Tokens, compile, compile_once, transcript,
};
use recto_testkit::shared;
use recto_testkit::story::story;
use recto_testkit::world::World;
use serde_json::{Value, json};
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;

/// The versions whose types the bodies are held against.
const PACKAGES: [(&str, &str); 3] = [("openai", "3.49.0"), ("anthropic", "2.8.0"), ("pydantic", "2.14.3")];
const TEST: &str = "bodies against the types of the official Python packages";
/// How many bodies of stories each wire writes at least.
const BODIES: usize = 300;
const BROKEN: usize = 50;

/// Returns a Python that has the packages, or why there is none.
fn python() -> Result<PathBuf, String> {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("python-types");
    let python = folder.join("bin/python");
    if has_packages(&python) {
        return Ok(python);
    }
    run(Command::new("python3").args(["-m", "venv", "--clear"]).arg(&folder))?;
    let pinned = PACKAGES.map(|(name, version)| format!("{name}=={version}"));
    let pip = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--retries", "1"];
    run(Command::new(&python).args(pip).args(pinned))?;
    if has_packages(&python) { Ok(python) } else { Err("other versions were installed".into()) }
}

fn has_packages(python: &Path) -> bool {
    let versions = PACKAGES.map(|(name, version)| format!("assert m.version({name:?}) == {version:?}"));
    let code = format!("import importlib.metadata as m; {}", versions.join("; "));
    run(Command::new(python).args(["-c", &code])).is_ok()
}

/// Runs a command that need not say anything; an error is the last thing it said.
fn run(command: &mut Command) -> Result<(), String> {
    let ran = command.output().map_err(|error| format!("{:?}: {error}", command.get_program()))?;
    let said = String::from_utf8_lossy(&ran.stderr);
    let last = said.lines().rev().find(|line| !line.trim().is_empty()).unwrap_or("it failed without a word");
    if ran.status.success() { Ok(()) } else { Err(last.to_string()) }
}

/// A body to be looked at, as a line for the script.
fn case(name: String, wire: Wire, body: &[u8], expect: &str) -> String {
    let body = std::str::from_utf8(body).unwrap_or_else(|error| panic!("{name}: {error}"));
    assert!(!body.is_empty(), "{name}: nothing was written");
    format!("{{\"name\":{},\"wire\":\"{wire}\",\"expect\":\"{expect}\",\"body\":{body}}}\n", json!(name))
}

/// The models that a wire's bodies are written for.
fn targets(wire: Wire) -> Vec<Target> {
    let named = |name: &str| Target::named(name).expect("it is built in").over(wire);
    match wire {
        Wire::OpenaiChat => {
            vec![Target::eval(), Target::unknown("some-model"), named("gpt-5.6-sol"), named("gpt-4o")]
        }
        Wire::OpenaiResponses => vec![named("gpt-6-sol"), named("gpt-5.4"), named("gpt-4.1")],
        Wire::Anthropic => vec![named("claude-opus-5-5"), named("claude-haiku-4-5")],
        Wire::Gemini | Wire::Ollama => Vec::new(),
    }
}

/// Bodies of generated stories, written for one wire after another of its models.
fn told(wire: Wire, cases: &mut Vec<String>) {
    let mut runner = TestRunner::deterministic();
    let targets = targets(wire);
    let before = cases.len();
    for nth in 0.. {
        if cases.len() - before >= BODIES {
            return;
        }
        let story = story(40).new_tree(&mut runner).expect("stories can always be told").current();
        let mut world = World::new(&story);
        let target = targets[nth % targets.len()].clone();
        world.target = Target {
            window: world.target.window,
            message_overhead: world.target.message_overhead,
            tokenizer: Tokenizer::Chars4,
            output_max: Tokens(4_096),
            memory: Memory::Stateless,
            input_max: None,
            ..target
        };
        world.live(&story, |page, target| {
            let name = format!("{wire} story {nth} body {}", cases.len() - before);
            cases.push(case(name, wire, &wire.encode(page, target), "ok"));
        });
    }
}

/// A page that holds everything that stories don't: media, a schema, more calls than a message takes, odd names.
fn odd_page(target: &Target) -> Page {
    let media = |url: &str, name: &str| Media { url: url.into(), name: Some(name.into()), detail: Some("low".into()) };
    let ids: Vec<String> = (0..140).map(|at| format!("call no. {at}")).collect();
    let shown = [
        Part::text("see"),
        Part::Image(media("data:image/png;base64,iVBORw0KGgo=", "a.png")),
        Part::Image(media("https://example.org/a.png", "a.png")),
        Part::Document(media("data:application/pdf;base64,JVBERi0=", "a.pdf")),
        Part::Document(media("https://example.org/a.pdf", "a.pdf")),
        Part::Audio(media("data:audio/mpeg;base64,AAAA", "a.mp3")),
        Part::File { id: "file-1".into() },
        Part::text(" "),
    ];
    let entries = [
        Entry::system("be brief"),
        Entry { author: Some("Ann B.".into()), ..Entry::new(Role::User, shown) },
        Entry::step("", ids.iter().map(|id| Call::new(id.as_str(), "look it up", "not JSON"))),
    ];
    let results = ids.iter().map(|id| Entry::result(id.as_str(), ""));
    let mut log = Log::counted_by(Tokenizer::Chars4);
    for entry in entries.into_iter().chain(results).chain([Entry::assistant("so"), Entry::user("go on")]) {
        log.append(entry).expect("it can be appended");
    }
    let (reader, policy) = (Reader::new("main"), Policy::none());
    let schema = r#"{"type":"object","properties":{},"required":[],"additionalProperties":false}"#;
    let format = ResponseFormat::Schema { name: "an answer".into(), schema: schema.into(), strict: Some(true) };
    let target = target.clone().with_window(None);
    let request = Request { format: Some(&format), ..Request::new(&log, &reader, &policy, &target) };
    compile(&request).expect("an unbounded window holds everything").page
}

/// Bodies of real conversations, where they are found.
fn real(wire: Wire, cases: &mut Vec<String>) {
    let Some(folder) = shared::folder("data/conversations", TEST) else { return };
    let target = targets(wire).remove(0).with_window(Some(Tokens(16_000)));
    let (reader, policy) = (Reader::new("main"), Policy::safe());
    for file in shared::jsonl(&folder) {
        let text = fs::read_to_string(&file).expect("shared data can be read");
        for conversation in transcript::read(&text).unwrap_or_else(|error| panic!("{}: {error}", file.display())) {
            let name = format!("{wire} conversation {}", conversation.id.as_deref().unwrap_or("?"));
            let log = conversation.into_log(target.tokenizer).expect("real conversations can be appended");
            // A conversation whose last message alone is too long has no page.
            let Ok(compiled) = compile_once(&Request::new(&log, &reader, &policy, &target)) else { continue };
            cases.push(case(name, wire, &wire.encode(&compiled.page, &target), "ok"));
        }
    }
}

/// Messages that no type takes, one for each mistake.
const BROKEN_CHAT: &[&str] = &[
    r#"{"content":"no role"}"#,
    r#"{"role":"robot","content":"unknown role"}"#,
    r#"{"role":"user"}"#,
    r#"{"role":"user","content":7}"#,
    r#"{"role":"user","content":null}"#,
    r#"{"role":"user","content":{"type":"text","text":"not in a list"}}"#,
    r#"{"role":"user","content":["a bare text"]}"#,
    r#"{"role":"user","content":[{"type":"text"}]}"#,
    r#"{"role":"user","content":[{"type":"video","video":"x"}]}"#,
    r#"{"role":"user","content":[{"type":"image_url","image_url":"not an object"}]}"#,
    r#"{"role":"user","content":[{"type":"image_url","image_url":{"url":"u","detail":"closely"}}]}"#,
    r#"{"role":"user","content":[{"type":"input_audio","input_audio":{"data":"x","format":"ogg"}}]}"#,
    r#"{"role":"user","content":[{"type":"text","text":"x","prompt_cache_breakpoint":{"mode":"auto"}}]}"#,
    r#"{"role":"user","content":"x","unknown":1}"#,
    r#"{"role":"system","content":[{"type":"image_url","image_url":{"url":"u"}}]}"#,
    r#"{"role":"tool","content":"an answer to nothing"}"#,
    r#"{"role":"tool","tool_call_id":7,"content":"x"}"#,
    r#"{"role":"tool","tool_call_id":"a","content":"x","is_error":true}"#,
    r#"{"role":"assistant","content":null,"tool_calls":[{"id":"a","type":"function"}]}"#,
    r#"{"role":"assistant","tool_calls":[{"type":"function","function":{"name":"f","arguments":"{}"}}]}"#,
    r#"{"role":"assistant","tool_calls":[{"id":"a","type":"function","function":{"name":"f","arguments":{}}}]}"#,
    r#"{"role":"assistant","tool_calls":[{"id":"a","type":"custom","custom":{"name":"f"}}]}"#,
];

/// Items that no type takes.
const BROKEN_RESPONSES: &[&str] = &[
    r#"{"content":"no role"}"#,
    r#"{"role":"robot","content":"unknown role"}"#,
    r#"{"role":"user"}"#,
    r#"{"role":"user","content":7}"#,
    r#"{"role":"user","content":[{"type":"input_text"}]}"#,
    r#"{"role":"user","content":[{"type":"text","text":"the name of another format"}]}"#,
    r#"{"role":"user","content":[{"type":"output_text","text":"the model's","annotations":[]}]}"#,
    r#"{"role":"user","content":[{"type":"input_image","image_url":{"url":"another format's"}}]}"#,
    r#"{"role":"user","content":[{"type":"input_audio","input_audio":{"data":"x","format":"ogg"}}]}"#,
    r#"{"role":"user","content":"x","unknown":1}"#,
    r#"{"type":"function_call","name":"f","arguments":"{}"}"#,
    r#"{"type":"function_call","call_id":"a","arguments":"{}"}"#,
    r#"{"type":"function_call","call_id":"a","name":"f","arguments":{}}"#,
    r#"{"type":"function_call_output","output":"an answer to nothing"}"#,
    r#"{"type":"function_call_output","call_id":"a"}"#,
    r#"{"type":"function_call_output","call_id":"a","output":[{"type":"output_text","text":"x"}]}"#,
    r#"{"type":"reasoning","encrypted_content":"x","summary":[]}"#,
    r#"{"type":"reasoning","id":"r","encrypted_content":7,"summary":[]}"#,
    r#"{"type":"reasoning","id":"r","summary":"not a list"}"#,
    r#"{"type":"telepathy","thought":"x"}"#,
];

/// Messages that no type takes.
const BROKEN_ANTHROPIC: &[&str] = &[
    r#"{"content":"no role"}"#,
    r#"{"role":"tool","content":"another format's role"}"#,
    r#"{"role":"user"}"#,
    r#"{"role":"user","content":7}"#,
    r#"{"role":"user","content":null}"#,
    r#"{"role":"user","content":["a bare text"]}"#,
    r#"{"role":"user","content":[{"type":"text"}]}"#,
    r#"{"role":"user","content":[{"type":"input_text","text":"another format's"}]}"#,
    r#"{"role":"user","content":[{"type":"text","text":"x","cache_control":{"type":"forever"}}]}"#,
    r#"{"role":"user","content":[{"type":"tool_result","content":"an answer to nothing"}]}"#,
    r#"{"role":"user","content":[{"type":"tool_result","tool_use_id":7,"content":"x"}]}"#,
    r#"{"role":"user","content":[{"type":"tool_result","tool_use_id":"a","content":"x","is_error":"yes"}]}"#,
    r#"{"role":"user","content":[{"type":"image","source":{"type":"base64","data":"AAAA"}}]}"#,
    r#"{"role":"user","content":[{"type":"image","source":{"type":"base64","media_type":"image/bmp","data":"A"}}]}"#,
    r#"{"role":"user","content":[{"type":"document","source":{"type":"url"}}]}"#,
    r#"{"role":"assistant","content":[{"type":"tool_use","name":"f","input":{}}]}"#,
    r#"{"role":"assistant","content":[{"type":"tool_use","id":"a","name":"f","input":"{}"}]}"#,
    r#"{"role":"assistant","content":[{"type":"thinking","thinking":"without its seal"}]}"#,
    r#"{"role":"assistant","content":[{"type":"redacted_thinking"}]}"#,
    r#"{"role":"user","content":"x","name":"another format's"}"#,
];

fn broken(wire: Wire) -> &'static [&'static str] {
    match wire {
        Wire::OpenaiChat => BROKEN_CHAT,
        Wire::OpenaiResponses => BROKEN_RESPONSES,
        Wire::Anthropic => BROKEN_ANTHROPIC,
        Wire::Gemini | Wire::Ollama => &[],
    }
}

/// A body around a message (or an item).
fn around(wire: Wire, message: &str) -> String {
    match wire {
        Wire::OpenaiChat => format!(r#"{{"model":"m","messages":[{message}]}}"#),
        Wire::OpenaiResponses => format!(r#"{{"model":"m","input":[{message}]}}"#),
        Wire::Anthropic => format!(r#"{{"model":"m","max_tokens":9,"messages":[{message}]}}"#),
        Wire::Gemini => format!(r#"{{"contents":[{message}]}}"#),
        Wire::Ollama => format!(r#"{{"model":"m","messages":[{message}]}}"#),
    }
}

#[test]
fn the_official_types_take_what_is_written_and_refuse_what_is_broken() {
    let python = match python() {
        Ok(python) => python,
        Err(why) => return shared::skipped(&format!("{TEST}: the packages can't be installed: {why}")),
    };
    let (mut cases, mut refused) = (Vec::new(), 0);
    for wire in Wire::CLIENTS {
        told(wire, &mut cases);
        real(wire, &mut cases);
        for target in targets(wire) {
            let name = format!("{wire} odd page for {}", target.name);
            cases.push(case(name, wire, &wire.encode(&odd_page(&target), &target), "ok"));
        }
        for (at, message) in broken(wire).iter().enumerate() {
            cases.push(case(format!("{wire} broken {at}"), wire, around(wire, message).as_bytes(), "bad"));
            refused += 1;
        }
    }
    assert!(refused >= BROKEN, "only {refused} broken bodies");
    let input = Path::new(env!("CARGO_TARGET_TMPDIR")).join("python-types.jsonl");
    fs::write(&input, cases.concat()).expect("the bodies can be written down");
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/../../scripts/check_types.py");
    let lines = File::open(&input).expect("they were written down");
    let ran = Command::new(python).arg(script).stdin(lines).output().expect("Python was found");
    let verdicts = String::from_utf8_lossy(&ran.stdout);
    let verdicts: Vec<Value> = verdicts.lines().map(|line| serde_json::from_str(line).expect("a verdict")).collect();
    assert_eq!(verdicts.len(), cases.len(), "{}", String::from_utf8_lossy(&ran.stderr));
    let is_wrong = |it: &&Value| it["ok"] == it["name"].as_str().expect("every case has a name").contains(" broken ");
    let wrong: Vec<String> = verdicts.iter().filter(is_wrong).map(ToString::to_string).collect();
    let some = wrong.iter().take(20).cloned().collect::<Vec<_>>().join("\n");
    assert!(wrong.is_empty() && ran.status.success(), "{} verdicts are not as expected:\n{some}", wrong.len());
}
