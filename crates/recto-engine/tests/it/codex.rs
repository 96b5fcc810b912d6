//! Codex as it is, against the strict provider on this machine: what it is told reaches the model exactly once.
//!
//! The program is found by `RECTO_CODEX`; without it the tests that need it are skipped, and say so.

mod scripts; // programs in its place

use crate::folder::TempFolder;
use recto::digest::Digest;
use recto::entry::{Call, Media, Text};
use recto::page::Message;
use recto::transcript::codex;
use recto::{Entry, Part, Role, Tokens};
use recto_engine::drive::codex::Codex;
use recto_engine::drive::{Failed, Found, Heard, Ran, Settings, Since, Turn};
use recto_testkit::fake::{Gate, Reply, Server};
use recto_testkit::shared;
use serde_json::{Map, Value, json};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// How long anything here may take.
const LIMIT: Duration = Duration::from_secs(60);
/// How often a file is looked at until it says something.
const LOOKS_MAX: usize = 2_000;
const NUDGE: &str = "Please go on.";
/// A picture of one point.
const POINT: &str = "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";

static NEXT: AtomicU64 = AtomicU64::new(1);

fn uuid() -> String {
    format!("00000000-0000-4000-8000-{:012x}", NEXT.fetch_add(1, Ordering::Relaxed))
}

fn message(role: Role, parts: impl Into<Arc<[Part]>>) -> Message {
    let (cost, digest, extra) = (Tokens(0), Digest::default(), Map::new());
    Message { role, author: None, parts: parts.into(), seq: None, cost, digest, extra }
}

fn said(role: Role, text: &str) -> Message {
    message(role, [Part::text(text)])
}

/// A home and a workspace of its own, a provider, and the program.
struct Lab {
    folder: TempFolder,
    server: Server,
    codex: Codex,
}

impl Lab {
    /// Returns a lab with the real program, or says loudly that the test is skipped.
    fn real(test: &str) -> Option<Lab> {
        let Some(program) = std::env::var_os("RECTO_CODEX").map(PathBuf::from) else {
            shared::skipped(&format!("{test}: no Codex (set RECTO_CODEX to its native program)"));
            return None;
        };
        let (folder, server) = (TempFolder::new(), Server::start());
        let url = server.url();
        std::fs::create_dir_all(folder.file("home")).unwrap();
        std::fs::create_dir_all(folder.file("work")).unwrap();
        let config = format!(
            "model = \"gpt-5.5\"\nmodel_provider = \"fake\"\napproval_policy = \"never\"\nweb_search = \"disabled\"\n\
             [features]\nplugins = false\napps = false\n\
             [model_providers.fake]\nname = \"fake\"\nbase_url = \"{url}/v1\"\nenv_key = \"FAKE_KEY\"\n\
             wire_api = \"responses\"\nrequest_max_retries = 0\nstream_max_retries = 0\n"
        );
        std::fs::write(folder.file("home/config.toml"), config).unwrap();
        let codex = Codex::new(settings(&folder, program));
        Some(Lab { folder, server, codex })
    }

    fn work(&self) -> PathBuf {
        self.folder.file("work")
    }

    async fn turn(&self, session: Option<&Text>, instructions: &str, text: &str) -> Result<Ran, Failed> {
        self.hear(session, instructions, &[said(Role::User, text)], &mut Vec::new()).await
    }

    async fn hear(
        &self,
        session: Option<&Text>,
        instructions: &str,
        said: &[Message],
        heard: &mut Vec<Heard>,
    ) -> Result<Ran, Failed> {
        turn(&self.codex, &self.work(), session, instructions, said, heard).await
    }

    fn look(&self, session: &Text, mark: Option<&Text>) -> Since {
        match self.codex.look(session, &self.work(), mark.map(|mark| &**mark)) {
            Found::There(since) => since,
            found => panic!("{found:?}"),
        }
    }

    /// The bodies of all model calls so far.
    fn bodies(&self) -> Vec<Value> {
        let log = self.server.log();
        let asked = log.iter().filter(|exchange| exchange.request.path.ends_with("/responses"));
        asked.map(|exchange| exchange.request.json()).collect()
    }

    fn rollout(&self, session: &Text) -> PathBuf {
        let mut folders = vec![self.folder.file("home/sessions")];
        while let Some(folder) = folders.pop() {
            for path in std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
                if path.is_dir() {
                    folders.push(path);
                } else if path.to_string_lossy().ends_with(&format!("{session}.jsonl")) {
                    return path;
                }
            }
        }
        panic!("no rollout of {session}");
    }
}

fn settings(folder: &TempFolder, program: PathBuf) -> Settings {
    let text = |path: PathBuf| path.to_str().unwrap().to_string();
    let environment = [
        ("PATH", "/usr/bin:/bin".to_string()),
        ("HOME", text(folder.path().to_path_buf())),
        ("CODEX_HOME", text(folder.file("home"))),
        ("FAKE_KEY", "sk-test".to_string()),
    ];
    Settings {
        program: Some(program),
        environment: environment.into_iter().map(|(name, value)| (name.to_string(), value)).collect(),
        model: None,
        arguments: Vec::new(),
        turn_limit: LIMIT,
        silence_limit: LIMIT,
    }
}

async fn turn(
    codex: &Codex,
    workspace: &Path,
    session: Option<&Text>,
    instructions: &str,
    said: &[Message],
    heard: &mut Vec<Heard>,
) -> Result<Ran, Failed> {
    let (new_session, message) = (uuid(), uuid());
    let turn = Turn {
        session,
        new_session: &new_session,
        mark: None,
        rewind_to: None,
        message: &message,
        instructions,
        said,
        workspace,
    };
    codex.turn(turn, &mut |it| heard.push(it)).await
}

/// How often a text stands in the words of a request.
fn count(body: &Value, needle: &str) -> usize {
    match body {
        Value::String(text) => text.matches(needle).count(),
        Value::Array(list) => list.iter().map(|it| count(it, needle)).sum(),
        Value::Object(fields) => {
            let names = ["client_metadata", "prompt_cache_key"];
            fields.iter().filter(|(name, _)| !names.contains(&name.as_str())).map(|(_, it)| count(it, needle)).sum()
        }
        _ => 0,
    }
}

/// The base prompt of a request.
fn prompt_of(body: &Value) -> String {
    body["instructions"].as_str().or(body["input"][0]["content"][0]["text"].as_str()).unwrap().to_string()
}

fn words(entries: &[Entry]) -> Vec<String> {
    let text = |entry: &Entry| {
        let texts = entry.parts.iter().filter_map(|part| match part {
            Part::Text { text } => Some(text.to_string()),
            Part::Call(call) => Some(format!("{}({})", call.name, call.arguments.as_str())),
            Part::Result(result) => Some(format!("={}", result.chars())),
            _ => None,
        });
        format!("{}: {}", entry.role, texts.collect::<Vec<_>>().join(" | "))
    };
    entries.iter().map(text).collect()
}

fn unknown(ran: Result<Ran, Failed>) -> String {
    match ran {
        Err(Failed::Unknown(why)) => why,
        ran => panic!("{ran:?}"),
    }
}

fn failed(ran: Result<Ran, Failed>) -> recto_engine::Error {
    match ran {
        Err(Failed::Other(error)) => error,
        ran => panic!("{ran:?}"),
    }
}

#[tokio::test]
async fn each_message_stands_once_in_each_request_and_each_instruction_in_its_own() {
    let Some(lab) = Lab::real("three turns of Codex") else { return };
    assert!(lab.codex.version().await.unwrap().starts_with("0."));
    let turns: Vec<_> =
        (0..3).map(|n| (format!("USER-{n}-x"), format!("REPLY-{n}-x"), format!("RULE-{n}-x"))).collect();
    let mut session = None;
    let mut entries = Vec::new();
    for (user, reply, rule) in &turns {
        lab.server.push(Reply::default().text(reply));
        let ran = lab.turn(session.as_ref(), rule, user).await.unwrap();
        assert_eq!(words(&ran.entries), [format!("assistant: {reply}")]);
        assert!(session.is_none_or(|session| session == ran.session));
        assert_eq!(ran.model.as_deref(), Some("gpt-5.5"));
        let used = lab.server.log().last().unwrap().usage["input_tokens"].as_u64().unwrap();
        assert_eq!(ran.usage.unwrap().input, Tokens(used), "its own usage, not that of the thread");
        let now = lab.look(&ran.session, ran.mark.as_ref());
        assert!(now.entries.is_empty() && now.mark == ran.mark, "{now:?}");
        entries.extend(ran.entries);
        session = Some(ran.session);
    }
    let bodies = lab.bodies();
    assert_eq!(bodies.len(), 3);
    for (n, body) in bodies.iter().enumerate() {
        for (i, (user, reply, rule)) in turns.iter().enumerate() {
            let found = (count(body, user), count(body, reply), count(body, rule));
            let expected = (usize::from(i <= n), usize::from(i < n), usize::from(i == n));
            assert_eq!(found, expected, "turn {i} in request {n}");
        }
    }
    // Importing finds the same.
    let session = session.unwrap();
    let read = recto::transcript::read(&std::fs::read_to_string(lab.rollout(&session)).unwrap()).unwrap();
    let answers: Vec<&Entry> = read[0].entries.iter().filter(|entry| entry.role == Role::Assistant).collect();
    assert_eq!(answers, entries.iter().collect::<Vec<_>>());
    assert_eq!(lab.look(&session, None).entries.len(), 6);
    // A control: told everything again, it holds everything twice.
    let all: Vec<&str> = turns.iter().map(|(user, ..)| user.as_str()).collect();
    lab.turn(Some(&session), "", &all.join(" ")).await.unwrap();
    let last = lab.bodies().pop().unwrap();
    assert!(turns.iter().all(|(user, ..)| count(&last, user) == 2));
    // Those that it was begun with don't come back where none are given.
    assert!(turns.iter().all(|(.., rule)| count(&last, rule) == 0));
}

#[tokio::test]
async fn the_programs_own_prompt_stays_where_it_was_begun_with() {
    let Some(lab) = Lab::real("the base prompt of Codex") else { return };
    let session = lab.turn(None, "", "one").await.unwrap().session;
    lab.turn(Some(&session), "RULE-x", "two").await.unwrap();
    lab.turn(Some(&session), " ", "three").await.unwrap();
    let bases: Vec<String> = lab.bodies().iter().map(prompt_of).collect();
    assert!(bases[0].starts_with("You are Codex"), "{}", bases[0]);
    // The program sends its own prompt without lines about tools that it doesn't offer; the file holds all of it.
    let begun = codex::begun(&std::fs::read_to_string(lab.rollout(&session)).unwrap()).unwrap();
    assert_eq!(bases[1], format!("{}\n\nRULE-x", begun.base.unwrap().trim_end()));
    assert_eq!(bases[1].lines().next(), bases[0].lines().next());
    assert_eq!(bases[2], bases[0]);
}

#[tokio::test]
async fn a_tool_is_called_and_its_result_is_an_entry() {
    let Some(lab) = Lab::real("a tool call of Codex") else { return };
    lab.server.push(Reply::default().call("exec_command", r#"{"cmd":"echo FROM-THE-SHELL"}"#));
    lab.server.push(Reply::default().text("done"));
    let mut heard = Vec::new();
    let ran = lab.hear(None, "", &[said(Role::User, "run it")], &mut heard).await.unwrap();
    let [step, result, answer] = &*words(&ran.entries) else { panic!("{:?}", ran.entries) };
    assert_eq!(step, r#"assistant: exec_command({"cmd":"echo FROM-THE-SHELL"})"#);
    assert!(result.starts_with("tool: =") && answer == "assistant: done");
    let used: u64 = lab.server.log().iter().map(|it| it.usage["input_tokens"].as_u64().unwrap_or(0)).sum();
    assert_eq!(ran.usage.unwrap().input, Tokens(used), "of both calls");
    assert_eq!(heard.first(), Some(&Heard::Session(ran.session.clone())));
    assert!(matches!(&heard[1], Heard::Call { name, arguments } if &**name == "shell" && arguments.contains("echo")));
    assert_eq!(heard[2], Heard::Result { text: "FROM-THE-SHELL\n".into(), is_error: false });
    assert_eq!(heard[3..], [Heard::Text("done".into())]);
    // It goes on with all of it, once.
    lab.turn(Some(&ran.session), "", "and now").await.unwrap();
    assert_eq!(count(lab.bodies().last().unwrap(), "FROM-THE-SHELL"), 2, "in the call, and in its result");
}

#[tokio::test]
async fn a_failed_turn_leaves_its_message_and_a_nudge_completes_it() {
    let Some(lab) = Lab::real("a failed turn of Codex") else { return };
    let first = lab.turn(None, "", "FIRST-x").await.unwrap();
    let refusal = json!({"error": {"message": "not today", "type": "invalid_request_error", "code": "odd"}});
    lab.server.push(Reply::error(400, refusal));
    let error = failed(lab.turn(Some(&first.session), "", "SECOND-x").await);
    assert!(error.is_refused() && error.to_string().contains("not today"), "{error}");
    assert_eq!(error.refusal().1, Some("odd"));
    let since = lab.look(&first.session, first.mark.as_ref());
    assert_eq!((words(&since.entries), since.is_answered), (vec!["user: SECOND-x".to_string()], false));
    lab.server.push(Reply::default().text("now"));
    let ran = lab.turn(Some(&first.session), "", NUDGE).await.unwrap();
    assert_eq!(words(&ran.entries), ["assistant: now"]);
    let last = lab.bodies().pop().unwrap();
    assert_eq!((count(&last, "FIRST-x"), count(&last, "SECOND-x")), (1, 1));
    let since = lab.look(&first.session, first.mark.as_ref());
    assert_eq!(since.entries.len(), 3);
    assert!(since.is_answered && since.mark == ran.mark);
    // Behind an older mark stands all of it.
    let message = uuid();
    let turn = Turn {
        session: Some(&first.session),
        new_session: "",
        mark: first.mark.as_deref(),
        rewind_to: None,
        message: &message,
        instructions: "",
        said: &[said(Role::User, "THIRD-x")],
        workspace: &lab.work(),
    };
    let ran = lab.codex.turn(turn, &mut |_| {}).await.unwrap();
    assert_eq!(ran.entries.len(), 2);
    // A control: sent again instead, it stands twice.
    lab.turn(Some(&first.session), "", "SECOND-x").await.unwrap();
    assert_eq!(count(&lab.bodies().pop().unwrap(), "SECOND-x"), 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_killed_turn_leaves_its_message_and_no_files_and_a_nudge_completes_it() {
    let Some(lab) = Lab::real("a killed turn of Codex") else { return };
    let first = lab.turn(None, "", "FIRST-x").await.unwrap();
    let gate = Gate::default();
    lab.server.push(Reply::default().text("never heard").waiting_after(0, &gate));
    let (codex, work, session) = (lab.codex.clone(), lab.work(), first.session.clone());
    let rule = format!("RULE-{}-x", std::process::id());
    let ours = rule.clone();
    let running = tokio::spawn(async move {
        drop(turn(&codex, &work, Some(&session), &ours, &[said(Role::User, "SECOND-x")], &mut Vec::new()).await);
    });
    let reached = gate.clone();
    tokio::task::spawn_blocking(move || reached.reached()).await.unwrap();
    assert_eq!(private_files(&rule), 1);
    let mut looks = 0;
    while lab.look(&first.session, first.mark.as_ref()).entries.is_empty() {
        looks += 1;
        assert!(looks < LOOKS_MAX, "the message never came into the file");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    running.abort();
    assert!(running.await.unwrap_err().is_cancelled());
    assert_eq!(private_files(&rule), 0);
    gate.open();
    let since = lab.look(&first.session, first.mark.as_ref());
    assert_eq!((words(&since.entries), since.is_answered), (vec!["user: SECOND-x".to_string()], false));
    lab.server.push(Reply::default().text("now"));
    let ran = lab.turn(Some(&first.session), "", NUDGE).await.unwrap();
    assert_eq!(words(&ran.entries), ["assistant: now"]);
    let last = lab.bodies().pop().unwrap();
    assert_eq!((count(&last, "FIRST-x"), count(&last, "SECOND-x"), count(&last, "never heard")), (1, 1, 0));
}

/// How many files of turns that go on hold some words.
fn private_files(words: &str) -> usize {
    let own = format!("recto-codex-{}-", std::process::id());
    let folders = std::fs::read_dir(std::env::temp_dir()).unwrap().flatten();
    let folders = folders.filter(|folder| folder.file_name().to_string_lossy().starts_with(&own));
    let texts = folders.filter_map(|folder| std::fs::read_to_string(folder.path().join("instructions.md")).ok());
    texts.filter(|text| text.contains(words)).count()
}

#[tokio::test]
async fn a_seeded_page_is_resumed_with_its_tool_calls() {
    let Some(lab) = Lab::real("a session written for Codex") else { return };
    let call = Call::new("call_7", "exec_command", r#"{"cmd":"ls"}"#);
    let page = [
        said(Role::System, "RULE-x"),
        said(Role::User, "ASKED-x"),
        message(Role::Assistant, [Part::text("LOOKING-x"), Part::Call(call)]),
        message(Role::Tool, Entry::result("call_7", "FOUND-x").parts),
        said(Role::Assistant, "ANSWERED-x"),
    ];
    let session: Text = uuid().into();
    let seeded = lab.codex.seed(&page, &session, &lab.work()).unwrap();
    assert!(lab.codex.seed(&page, &session, &lab.work()).unwrap_err().is_exists());
    assert!(lab.codex.seed(&page, "../x", &lab.work()).unwrap_err().is_program());
    let path = lab.rollout(&session);
    assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    assert_eq!(std::fs::read_dir(path.parent().unwrap()).unwrap().count(), 1, "no drafts are left");
    assert!(lab.look(&session, seeded.mark.as_ref()).entries.is_empty());
    let whole = lab.look(&session, None);
    assert_eq!((whole.entries.len(), whole.is_answered), (4, true));
    lab.server.push(Reply::default().text("REPLY-x"));
    let ran = lab.turn(Some(&session), "", "NEXT-x").await.unwrap();
    assert_eq!((words(&ran.entries), &ran.session), (vec!["assistant: REPLY-x".to_string()], &session));
    let used = lab.server.log().last().unwrap().usage["input_tokens"].as_u64().unwrap();
    assert_eq!(ran.usage.unwrap().input, Tokens(used));
    let since = lab.look(&session, seeded.mark.as_ref());
    assert_eq!(
        (words(&since.entries), since.is_answered),
        (vec!["user: NEXT-x".into(), "assistant: REPLY-x".into()], true)
    );
    let body = lab.bodies().pop().unwrap();
    let text = body["input"].to_string();
    let places = ["ASKED-x", "LOOKING-x", "call_7", "FOUND-x", "ANSWERED-x", "NEXT-x"].map(|it| text.find(it).unwrap());
    assert!(places.is_sorted(), "{text}");
    for once in ["ASKED-x", "LOOKING-x", "FOUND-x", "ANSWERED-x", "NEXT-x"] {
        assert_eq!(count(&body, once), 1, "{once}");
    }
    assert_eq!(count(&body, "RULE-x"), 0);
    assert!(prompt_of(&body).starts_with("You are Codex"), "the program's own prompt");
    lab.turn(Some(&session), "RULE-x", "MORE-x").await.unwrap();
    assert_eq!(prompt_of(&lab.bodies().pop().unwrap()), "RULE-x");
}

#[tokio::test]
async fn a_session_that_is_not_there_is_unknown_and_nothing_is_asked() {
    let Some(lab) = Lab::real("unknown sessions of Codex") else { return };
    let first = lab.turn(None, "", "FIRST-x").await.unwrap();
    for name in [uuid(), "not-a-uuid".into(), "../../etc/passwd".into()] {
        let name: Text = name.into();
        unknown(lab.turn(Some(&name), "", "x").await);
        assert!(matches!(lab.codex.look(&name, &lab.work(), None), Found::Missing));
    }
    assert_eq!(lab.bodies().len(), 1);
    // A file that is not what it was.
    let path = lab.rollout(&first.session);
    let text = std::fs::read_to_string(&path).unwrap();
    let look = |mark: Option<&Text>| lab.codex.look(&first.session, &lab.work(), mark.map(|mark| &**mark));
    let two: String = text.lines().take(2).map(|line| format!("{line}\n")).collect();
    std::fs::write(&path, &two).unwrap();
    assert!(matches!(look(first.mark.as_ref()), Found::Elsewhere), "shorter than it was");
    std::fs::write(&path, text.replacen("FIRST-x", "OTHER-x", 9)).unwrap();
    assert!(matches!(look(first.mark.as_ref()), Found::Elsewhere), "not the same");
    assert!(matches!(look(Some(&"nonsense".into())), Found::Elsewhere));
    let back = json!({"timestamp": "", "type": "event_msg", "payload": {"type": "thread_rolled_back", "num_turns": 1}});
    std::fs::write(&path, format!("{text}{back}\n")).unwrap();
    assert!(matches!(look(first.mark.as_ref()), Found::Elsewhere), "taken back behind the mark");
    std::fs::write(&path, format!("{text}{{{{\n")).unwrap();
    assert!(matches!(look(first.mark.as_ref()), Found::Corrupt(_)));
    std::fs::write(&path, "nothing of a session\n").unwrap();
    assert!(matches!(look(None), Found::Corrupt(why) if why.contains("doesn't begin")));
    unknown(lab.turn(Some(&first.session), "", "x").await);
    std::fs::rename(&path, path.with_extension("jsonl.zst")).unwrap();
    assert!(matches!(look(None), Found::Corrupt(why) if why.contains("compressed")));
    assert_eq!(lab.bodies().len(), 1);
    // And the next one works.
    lab.turn(None, "", "x").await.unwrap();
}

#[tokio::test]
async fn a_line_that_was_cut_off_is_passed_over_as_the_program_does() {
    let Some(lab) = Lab::real("a rollout of Codex that is cut off") else { return };
    let first = lab.turn(None, "", "FIRST-x").await.unwrap();
    let path = lab.rollout(&first.session);
    let text = std::fs::read_to_string(&path).unwrap();
    let cut = r#"{"timestamp":"2026-11-16T10:00:00.000Z","type":"response_item","payload":{"type":"mess"#;
    std::fs::write(&path, format!("{text}{cut}")).unwrap();
    let since = lab.look(&first.session, first.mark.as_ref());
    assert!(since.entries.is_empty() && since.mark == first.mark, "{since:?}");
    let ran = lab.turn(Some(&first.session), "", "SECOND-x").await.unwrap();
    assert_eq!(ran.entries.len(), 1);
    let since = lab.look(&first.session, first.mark.as_ref());
    assert_eq!((since.entries.len(), since.is_answered), (2, true));
    assert!(recto::transcript::read(&std::fs::read_to_string(&path).unwrap()).is_ok());
}

#[tokio::test]
async fn another_folder_changes_nothing_that_was_said() {
    let Some(lab) = Lab::real("a changed folder of Codex") else { return };
    std::fs::write(lab.work().join("AGENTS.md"), "AGENTS-x\n").unwrap();
    let first = lab.turn(None, "", "FIRST-x").await.unwrap();
    let other = lab.folder.file("other");
    std::fs::create_dir_all(&other).unwrap();
    let said = [said(Role::User, "SECOND-x")];
    let ran = turn(&lab.codex, &other, Some(&first.session), "", &said, &mut Vec::new()).await.unwrap();
    assert_eq!((ran.entries.len(), &ran.session), (1, &first.session));
    let last = lab.bodies().pop().unwrap();
    assert_eq!((count(&last, "FIRST-x"), count(&last, "SECOND-x")), (1, 1));
    // What the program tells the model by itself is nobody's words.
    let whole = lab.look(&first.session, None);
    assert_eq!(whole.entries.len(), 4);
    assert!(words(&whole.entries).iter().all(|line| !line.contains("AGENTS") && !line.contains("<environment")));
}

#[tokio::test(flavor = "multi_thread")]
async fn of_two_turns_at_once_the_second_is_told_that_the_session_is_in_use() {
    let Some(lab) = Lab::real("two turns of Codex at once") else { return };
    let first = lab.turn(None, "", "FIRST-x").await.unwrap();
    let gate = Gate::default();
    lab.server.push(Reply::default().text("slow").waiting_after(0, &gate));
    let (codex, work, session) = (lab.codex.clone(), lab.work(), first.session.clone());
    let running = tokio::spawn(async move {
        turn(&codex, &work, Some(&session), "", &[said(Role::User, "SECOND-x")], &mut Vec::new()).await
    });
    let reached = gate.clone();
    tokio::task::spawn_blocking(move || reached.reached()).await.unwrap();
    let refused = lab.turn(Some(&first.session), "", "THIRD-x").await;
    assert!(matches!(refused, Err(Failed::InUse(_))), "{refused:?}");
    gate.open();
    assert_eq!(words(&running.await.unwrap().unwrap().entries), ["assistant: slow"]);
    let since = lab.look(&first.session, first.mark.as_ref());
    assert_eq!(words(&since.entries), ["user: SECOND-x", "assistant: slow"]);
}

#[tokio::test]
async fn pictures_and_long_words_are_told_and_other_media_named() {
    let Some(lab) = Lab::real("pictures for Codex") else { return };
    let media = |url: &str, name: Option<&str>| Media { url: url.into(), name: name.map(Into::into), detail: None };
    let long = "LONG-x ".repeat(40_000);
    let parts = [
        Part::text(long.as_str()),
        Part::Image(media(POINT, None)),
        Part::Document(media("data:application/pdf;base64,AAAA", Some("plan.pdf"))),
    ];
    for session in [None, Some(lab.turn(None, "", "FIRST-x").await.unwrap().session)] {
        lab.hear(session.as_ref(), "", &[message(Role::User, parts.clone())], &mut Vec::new()).await.unwrap();
        let last = lab.bodies().pop().unwrap();
        let found = (count(&last, "LONG-x"), count(&last, POINT), count(&last, "[file plan.pdf]"));
        assert_eq!(found, (40_000, 1, 1));
    }
}
