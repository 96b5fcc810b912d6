//! Claude Code itself, driven against a provider on this machine. Its program is where `RECTO_CLAUDE_CODE` says.

mod impostors;

use crate::folder::TempFolder;
use recto::entry::{Entry, Part, Role};
use recto::page::Message;
use recto::tokens::Tokens;
use recto::transcript;
use recto_engine::drive::claude_code::ClaudeCode;
use recto_engine::drive::{Failed, Found, Heard, Ran, Settings, Since, Turn};
use recto_testkit::fake::{Gate, Reply, Server};
use recto_testkit::shared::skipped;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

const MODEL: &str = "claude-sonnet-4-5";

static NEXT: AtomicU64 = AtomicU64::new(1);

/// A UUID that no other part of these tests has.
fn uuid() -> String {
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    format!("{:08x}-0000-4000-8000-{number:012x}", std::process::id())
}

/// The program with a home of its own, a provider, and a folder to work in.
struct Lab {
    folder: TempFolder,
    server: Server,
    driver: ClaudeCode,
}

impl Lab {
    /// Returns `None` after it said loudly that the program is not there.
    fn new(test: &str) -> Option<Lab> {
        let Some(program) = std::env::var_os("RECTO_CLAUDE_CODE").map(PathBuf::from) else {
            skipped(&format!("{test}: no Claude Code (set RECTO_CLAUDE_CODE to its program)"));
            return None;
        };
        let (folder, server) = (TempFolder::new(), Server::start());
        for name in ["home", "work", "elsewhere"] {
            fs::create_dir(folder.file(name)).expect("it can be made");
        }
        let driver = ClaudeCode::new(settings(program, &folder.file("home"), &server.url()));
        Some(Lab { folder, server, driver })
    }

    fn workspace(&self) -> PathBuf {
        self.folder.file("work")
    }

    /// What the session's own file is called.
    fn file(&self, session: &str) -> PathBuf {
        let real = self.workspace().canonicalize().expect("a folder");
        let name = real.to_string_lossy().replace(|it: char| !it.is_ascii_alphanumeric(), "-");
        self.folder.file("home").join(".claude/projects").join(name).join(format!("{session}.jsonl"))
    }

    async fn turn(&self, turn: Asked<'_>) -> (Result<Ran, Failed>, Vec<Heard>) {
        let (said, message, new_session) = (said(turn.said), uuid(), uuid());
        let (workspace, mut heard) = (self.workspace(), Vec::new());
        let session = turn.session.map(Into::into);
        let rewind_to = turn.rewind_to.map(Into::into);
        let turn = Turn {
            session: session.as_ref(),
            new_session: &new_session,
            mark: None,
            rewind_to: rewind_to.as_ref(),
            message: &message,
            instructions: turn.instructions,
            said: &said,
            workspace: &workspace,
        };
        let ran = self.driver.turn(turn, &mut |it| heard.push(it)).await;
        (ran, heard)
    }

    async fn good(&self, turn: Asked<'_>) -> Ran {
        self.turn(turn).await.0.expect("a good turn")
    }

    fn look(&self, ran: &Ran) -> Since {
        match self.driver.look(&ran.session, &self.workspace(), ran.mark.as_deref()) {
            Found::There(since) => since,
            found => panic!("{found:?}"),
        }
    }

    /// What the provider was asked, without probes and without names of sessions.
    fn requests(&self) -> Vec<Value> {
        let log = self.server.log();
        for exchange in &log {
            let is_asked = exchange.request.method == "POST";
            assert!(!is_asked || exchange.refusal.is_none(), "refused: {:?}", exchange.refusal);
        }
        let asked = log.into_iter().filter(|it| it.request.method == "POST");
        asked.map(|it| it.request.json()).collect()
    }

    fn last_request(&self) -> Value {
        self.requests().pop().expect("a request")
    }
}

/// A turn as a test asks for it.
#[derive(Clone, Copy, Default)]
struct Asked<'a> {
    session: Option<&'a str>,
    rewind_to: Option<&'a str>,
    instructions: &'a str,
    said: &'a str,
}

fn settings(program: PathBuf, home: &Path, url: &str) -> Settings {
    let path = std::env::var("PATH").expect("a PATH");
    let home = home.to_string_lossy();
    let pairs = [
        ("PATH", &*path),
        ("HOME", &home),
        ("ANTHROPIC_API_KEY", "sk-test"),
        ("ANTHROPIC_BASE_URL", url),
        ("CLAUDE_CODE_MAX_RETRIES", "0"),
    ];
    Settings {
        program: Some(program),
        environment: pairs.map(|(name, value)| (name.to_string(), value.to_string())).into_iter().collect(),
        model: Some(MODEL.into()),
        arguments: ["--allowedTools", "Bash(echo *)"].map(String::from).to_vec(),
        turn_limit: Duration::from_secs(120),
        silence_limit: Duration::from_secs(60),
    }
}

fn message(role: Role, parts: impl Into<std::sync::Arc<[Part]>>) -> Message {
    let parts = parts.into();
    Message {
        role,
        author: None,
        parts,
        seq: None,
        cost: Tokens(0),
        digest: Default::default(),
        extra: Default::default(),
    }
}

fn said(text: &str) -> Vec<Message> {
    vec![message(Role::User, [Part::text(text)])]
}

/// What a provider says that does not let the user in. After a 400, newer versions of the program ask once more.
fn refusal() -> Reply {
    Reply::error(403, json!({"type": "error", "error": {"type": "permission_error", "message": "NOT-TAKEN"}}))
}

/// How often a marker stands in the texts of a request.
fn count(request: &Value, marker: &str) -> usize {
    match request {
        Value::String(text) => text.matches(marker).count(),
        Value::Array(list) => list.iter().map(|it| count(it, marker)).sum(),
        Value::Object(fields) => {
            fields.iter().filter(|(name, _)| *name != "metadata").map(|(_, it)| count(it, marker)).sum()
        }
        _ => 0,
    }
}

fn text_of(entry: &Entry) -> String {
    let text = |part: &Part| if let Part::Text { text } = part { text.to_string() } else { String::new() };
    entry.parts.iter().map(text).collect()
}

/// Every entry that somebody would import from the session's file, by id.
fn imported(lab: &Lab, session: &str) -> BTreeMap<String, Entry> {
    let text = fs::read_to_string(lab.file(session)).expect("a session file");
    let entries = transcript::read(&text).expect("readable").remove(0).entries;
    entries.into_iter().filter_map(|entry| Some((entry.id.as_ref()?.as_str().to_string(), entry))).collect()
}

#[tokio::test]
async fn its_version_is_told() {
    let Some(lab) = Lab::new("claude_code: its_version_is_told") else { return };
    let version = lab.driver.version().await.expect("a version");
    assert!(version.starts_with("2."), "{version}");
}

#[tokio::test]
async fn in_three_turns_everything_is_said_once_and_instructions_only_in_their_own() {
    let Some(lab) = Lab::new("claude_code: three turns") else { return };
    let mut session: Option<String> = None;
    for turn in 1..=3 {
        lab.server.push(Reply::default().text(&format!("REPLY-{turn}.")));
        let (instructions, words) = (format!("DYNAMIC-{turn}."), format!("SAID-{turn}."));
        let asked =
            Asked { session: session.as_deref(), instructions: &instructions, said: &words, ..Asked::default() };
        let ran = lab.good(asked).await;
        assert_eq!(ran.entries.iter().map(text_of).collect::<Vec<_>>(), [format!("REPLY-{turn}.")]);
        assert!(ran.mark.is_some(), "the file shows the turn");
        assert!(session.is_none() || session.as_deref() == Some(&*ran.session), "one session");
        assert_eq!(ran.model.as_deref(), Some(MODEL));
        assert!(ran.usage.is_some_and(|usage| usage.input.0 > 0 && usage.output.0 > 0));
        let found = lab.look(&ran);
        assert!(found.entries.is_empty() && found.rewind_to.is_none(), "nothing stands behind the mark");
        session = Some(ran.session.to_string());
    }
    let requests = lab.requests();
    assert_eq!(requests.len(), 3);
    for (at, request) in requests.iter().enumerate() {
        for turn in 1..=3 {
            let counts = ["SAID", "REPLY", "DYNAMIC"].map(|what| count(request, &format!("{what}-{turn}.")));
            let expected = [turn <= at + 1, turn <= at, turn == at + 1].map(usize::from);
            assert_eq!(counts, expected, "turn {turn} in request {at}");
        }
    }
    let session = session.expect("three turns");
    let all = "SAID-1. REPLY-1. SAID-2. REPLY-2. SAID-3. REPLY-3. SAID-4.";
    lab.good(Asked { session: Some(&session), said: all, ..Asked::default() }).await;
    let twice = lab.last_request();
    assert_eq!([count(&twice, "SAID-1."), count(&twice, "REPLY-3."), count(&twice, "SAID-4.")], [2, 2, 1]);
}

#[tokio::test]
async fn a_turn_with_a_tool_is_heard_and_kept_as_its_file_keeps_it() {
    let Some(lab) = Lab::new("claude_code: a tool") else { return };
    let call = r#"{"command":"echo FROM-THE-TOOL","description":"Says it"}"#;
    lab.server.push(Reply::default().thinking("Hm.").text("I'll look.").call("Bash", call));
    lab.server.push(Reply::default().text("Done."));
    let (ran, heard) = lab.turn(Asked { said: "Say it.", ..Asked::default() }).await;
    let ran = ran.expect("a good turn");
    assert_eq!(
        ran.entries.iter().map(|it| it.role).collect::<Vec<_>>(),
        [Role::Assistant, Role::Tool, Role::Assistant]
    );
    assert_eq!(ran.entries[0].calls().count(), 1);
    let imported = imported(&lab, &ran.session);
    for entry in &ran.entries {
        let id = entry.id.as_ref().expect("the id of its line");
        assert_eq!(imported.get(id.as_str()), Some(entry));
    }
    let texts = heard.iter().filter_map(|it| if let Heard::Text(text) = it { Some(&**text) } else { None });
    assert_eq!(texts.collect::<String>(), "I'll look.Done.");
    assert!(heard.contains(&Heard::Reasoning("Hm.".into())), "{heard:?}");
    let session = heard.iter().find_map(|it| if let Heard::Session(id) = it { Some(id.clone()) } else { None });
    assert_eq!(session.as_ref(), Some(&ran.session));
    assert!(heard.iter().any(|it| matches!(it, Heard::Call { name, .. } if &**name == "Bash")));
    let result = Heard::Result { text: "FROM-THE-TOOL".into(), is_error: false };
    assert!(heard.contains(&result), "{heard:?}");
    let usage = ran.usage.expect("told");
    let asked: u64 = lab.server.log().iter().filter_map(|it| it.usage["output_tokens"].as_u64()).sum();
    assert_eq!(usage.output.0, asked, "both calls together");
    lab.good(Asked { session: Some(&ran.session), said: "And?", ..Asked::default() }).await;
    assert_eq!(count(&lab.last_request(), "FROM-THE-TOOL"), 2, "in the call and in its result");
}

#[tokio::test]
async fn after_a_turn_that_failed_it_is_sent_back_and_said_once() {
    let Some(lab) = Lab::new("claude_code: a failed turn") else { return };
    lab.server.push(Reply::default().text("FIRST."));
    let ran = lab.good(Asked { said: "SAID-1.", ..Asked::default() }).await;
    lab.server.push(refusal());
    let again = Asked { session: Some(&ran.session), said: "SAID-2.", ..Asked::default() };
    let Err(Failed::Other(error)) = lab.turn(again).await.0 else { panic!("it was refused") };
    assert_eq!((error.is_refused(), error.refusal().0), (true, Some(403)), "{error}");
    assert!(error.to_string().contains("NOT-TAKEN"), "{error}");
    let since = lab.look(&ran);
    assert_eq!(since.entries.iter().map(text_of).collect::<Vec<_>>(), ["SAID-2."], "without the program's own words");
    assert!(!since.is_answered);
    assert_eq!(since.rewind_to, ran.mark);

    lab.server.push(Reply::default().text("SECOND."));
    let retried = lab.good(Asked { rewind_to: since.rewind_to.as_deref(), ..again }).await;
    let request = lab.last_request();
    assert_eq!([count(&request, "SAID-1."), count(&request, "FIRST."), count(&request, "SAID-2.")], [1, 1, 1]);
    let next = lab.good(Asked { said: "SAID-3.", ..again }).await;
    let request = lab.last_request();
    assert_eq!([count(&request, "SAID-2."), count(&request, "SECOND."), count(&request, "SAID-3.")], [1, 1, 1]);
    assert!(matches!(
        lab.driver.look(&ran.session, &lab.workspace(), ran.mark.as_deref()),
        Found::There(since) if since.entries.len() == 4 && since.is_answered && since.rewind_to.is_none()
    ));
    assert!(retried.mark.is_some() && next.mark.is_some());
}

#[tokio::test]
async fn without_going_back_what_failed_is_said_twice() {
    let Some(lab) = Lab::new("claude_code: a failed turn, plainly retried") else { return };
    let ran = lab.good(Asked { said: "SAID-1.", ..Asked::default() }).await;
    lab.server.push(refusal());
    let again = Asked { session: Some(&ran.session), said: "SAID-2.", ..Asked::default() };
    assert!(lab.turn(again).await.0.is_err());
    lab.good(again).await;
    assert_eq!(count(&lab.last_request(), "SAID-2."), 2);
}

#[tokio::test]
async fn after_a_turn_that_was_killed_it_is_sent_back_and_said_once() {
    let Some(lab) = Lab::new("claude_code: a killed turn") else { return };
    let ran = lab.good(Asked { said: "SAID-1.", ..Asked::default() }).await;
    let gate = Gate::default();
    lab.server.push(Reply::default().text("NEVER-HEARD.").waiting_after(0, &gate));
    let again = Asked { session: Some(&ran.session), said: "SAID-2.", ..Asked::default() };
    let reached = tokio::task::spawn_blocking({
        let gate = gate.clone();
        move || gate.reached()
    });
    tokio::select! {
        _ = lab.turn(again) => panic!("the provider has not answered"),
        reached = reached => reached.expect("it was asked"),
    }
    gate.open();
    let since = lab.look(&ran);
    assert!(!since.is_answered);
    // What was said may have reached the file, or not.
    assert!(since.entries.len() <= 1 && since.entries.is_empty() == since.rewind_to.is_none(), "{since:?}");
    lab.good(Asked { rewind_to: since.rewind_to.as_deref(), ..again }).await;
    let request = lab.last_request();
    assert_eq!([count(&request, "SAID-1."), count(&request, "SAID-2.")], [1, 1]);
}

#[tokio::test]
async fn a_page_is_written_as_a_session_and_gone_on_with() {
    let Some(lab) = Lab::new("claude_code: seeding") else { return };
    let call = recto::entry::Call::new("toolu_1", "Bash", r#"{"command":"echo CALLED."}"#);
    let step = Entry::step("STEP.", [call]);
    let page = [
        message(Role::System, [Part::text("LEFT-OUT.")]),
        message(Role::User, [Part::text("SAID-1.")]),
        message(Role::Assistant, step.parts.clone()),
        message(Role::Tool, Entry::result("toolu_1", "RESULT.").parts.clone()),
        message(Role::Assistant, [Part::text("ANSWER.")]),
    ];
    let (session, workspace) = (uuid(), lab.workspace());
    let seeded = lab.driver.seed(&page, &session, &workspace).expect("it can be written");
    assert!(lab.file(&session).is_file());
    assert!(lab.driver.seed(&page, &session, &workspace).is_err_and(|error| error.is_exists()), "never overwritten");
    let Found::There(since) = lab.driver.look(&session, &workspace, None) else { panic!("it is there") };
    assert_eq!((since.mark, since.entries.len(), since.is_answered), (seeded.mark.clone(), 4, true));

    let asked = Asked { session: Some(&session), said: "SAID-2.", instructions: "DYNAMIC.", ..Asked::default() };
    let ran = lab.good(asked).await;
    let request = lab.last_request();
    for marker in ["SAID-1.", "STEP.", "CALLED.", "RESULT.", "ANSWER.", "SAID-2.", "DYNAMIC."] {
        assert_eq!(count(&request, marker), 1, "{marker}");
    }
    assert_eq!(count(&request, "LEFT-OUT."), 0);
    assert_eq!(&*ran.session, session);
    let Found::There(since) = lab.driver.look(&session, &workspace, seeded.mark.as_deref()) else { panic!("there") };
    assert_eq!(since.entries.len(), 2, "what was said, and the answer");
}

#[tokio::test]
async fn long_instructions_arrive_whole() {
    let Some(lab) = Lab::new("claude_code: long instructions") else { return };
    let instructions = format!("BEGIN. {} END.", "word ".repeat(40_000));
    lab.good(Asked { said: "Hello.", instructions: &instructions, ..Asked::default() }).await;
    assert_eq!(count(&lab.last_request(), &instructions), 1);
}

#[tokio::test]
async fn a_session_that_is_not_there_is_unknown() {
    let Some(lab) = Lab::new("claude_code: unknown sessions") else { return };
    let other = uuid();
    assert!(matches!(lab.driver.look(&other, &lab.workspace(), None), Found::Missing));
    let asked = Asked { session: Some(&other), said: "Hello.", ..Asked::default() };
    let (failed, _) = lab.turn(asked).await;
    assert!(matches!(&failed, Err(Failed::Unknown(_))), "{failed:?}");

    let ran = lab.good(Asked { said: "Hello.", ..Asked::default() }).await;
    let elsewhere = lab.folder.file("elsewhere");
    assert!(matches!(lab.driver.look(&ran.session, &elsewhere, ran.mark.as_deref()), Found::Missing));
    assert!(matches!(lab.driver.look(&ran.session, &lab.workspace(), Some(&other)), Found::Elsewhere));

    fs::write(lab.file(&ran.session), "no record\n{}\n").expect("it can be written");
    let found = lab.driver.look(&ran.session, &lab.workspace(), ran.mark.as_deref());
    assert!(matches!(&found, Found::Corrupt(why) if !why.is_empty()), "{found:?}");
    let (failed, _) = lab.turn(Asked { session: Some(&ran.session), ..asked }).await;
    assert!(matches!(&failed, Err(Failed::Unknown(_))), "{failed:?}");
    assert_eq!(lab.requests().len(), 1, "only the good turn asked the provider");
}
