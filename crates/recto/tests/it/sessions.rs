//! Scenarios of sessions, by name: providers that remember get only what is new, once.

use recto::edit::Reason;
use recto::entry::{Call, RunId};
use recto::fragment::{Fragment, Fragments};
use recto::page::{Message, Mode};
use recto::policy::{Stale, TraceRule};
use recto::receipt::{Fate, FragmentFate, Full, Warning};
use recto::reduce::Expire;
use recto::session::Lost;
use recto::target::{Instructions, LateSystem};
use recto::{
    Compiled, Entry, Error, Lane, Log, Part, Policy, Reader, Request, Role, Seq, Session, Span, Target, Tokenizer,
    Tokens, compile, plan, wire,
};
use recto_testkit::check;
use serde_json::{Map, Value, json};

/// A host of one conversation with one provider: a token is four characters, nothing else costs anything.
struct Host {
    log: Log,
    reader: Reader,
    session: Session,
    policy: Policy,
    target: Target,
    fragments: Vec<Fragment>,
    run: Option<RunId>,
}

impl Host {
    fn new(policy: Policy, entries: impl IntoIterator<Item = Entry>) -> Host {
        let mut target = Target::eval().remembering(Instructions::Kept);
        (target.tokenizer, target.message_overhead) = (Tokenizer::Chars4, Tokens(0));
        let mut log = Log::counted_by(Tokenizer::Chars4);
        for entry in entries {
            log.append(entry).unwrap();
        }
        let (reader, session) = (Reader::new("main"), Session::default());
        Host { log, reader, session, policy, target, fragments: Vec::new(), run: None }
    }

    fn stateless(mut self) -> Host {
        self.target.memory = recto::target::Memory::Stateless;
        self
    }

    fn with(mut self, fragments: impl IntoIterator<Item = Fragment>) -> Host {
        self.fragments = fragments.into_iter().collect();
        self
    }

    fn say(&mut self, entry: Entry) -> Seq {
        self.log.append(entry).unwrap()
    }

    fn try_page(&mut self) -> Result<Compiled, Error> {
        let fragments = Fragments::counted(self.fragments.clone(), &Tokenizer::Chars4).unwrap();
        let request = |reader| Request {
            fragments: Some(&fragments),
            session: Some(&self.session),
            run: self.run.as_ref(),
            reserve: Some(Tokens(0)),
            ..Request::new(&self.log, reader, &self.policy, &self.target)
        };
        let edits = plan(&request(&self.reader))?.edits;
        let mut reader = self.reader.clone();
        reader.commit(edits, self.policy.digest());
        assert_eq!(plan(&request(&reader))?.edits, []);
        let compiled = compile(&request(&reader))?;
        check::fates(&compiled.receipt.fates, &self.log).unwrap();
        self.reader = reader;
        Ok(compiled)
    }

    #[track_caller]
    fn page(&mut self) -> Compiled {
        self.try_page().unwrap()
    }

    /// The call went well, and the provider said this.
    fn answered(&mut self, compiled: &Compiled, made: impl IntoIterator<Item = Entry>) {
        self.reader.acknowledge(&compiled.receipt.ticket).unwrap();
        self.session.sent(compiled);
        let made: Vec<Seq> = made.into_iter().map(|entry| self.log.append(entry).unwrap()).collect();
        self.session.acknowledge(None, made);
    }

    fn call(&mut self) -> Compiled {
        let compiled = self.page();
        self.answered(&compiled, [Entry::assistant("ok")]);
        compiled
    }
}

fn text(message: &Message) -> String {
    let texts = message.parts.iter().map(|part| match part {
        Part::Text { text } => text.to_string(),
        Part::Result(result) => format!("{:?}", result.content),
        Part::Call(call) => format!("call {}", call.id),
        _ => String::new(),
    });
    texts.collect::<Vec<_>>().join("|")
}

fn texts(compiled: &Compiled) -> Vec<String> {
    compiled.page.messages.iter().map(text).collect()
}

fn three() -> [Entry; 3] {
    [Entry::user("U0"), Entry::assistant("A1"), Entry::user("U2")]
}

fn prompts() -> [Fragment; 2] {
    [Fragment::fixed("rules", "static"), Fragment::dynamic("todos", "dynamic")]
}

#[test]
fn s01_a_provider_without_memory_gets_everything_and_nothing_is_marked_as_held() {
    let mut host = Host::new(Policy::none(), three()).stateless().with(prompts());
    for _ in 0..3 {
        let compiled = host.page();
        assert_eq!((compiled.page.mode, compiled.receipt.full), (Mode::Full, None));
        assert_eq!(texts(&compiled), ["static", "U0", "A1", "U2", "dynamic"]);
        let ledger = compiled.receipt.ledger;
        assert_eq!((ledger.fixed, ledger.dynamic, ledger.used()), (Tokens(2), Tokens(2), Tokens(7)));
        host.reader.acknowledge(&compiled.receipt.ticket).unwrap();
        assert_eq!(host.session.acked(), None);
    }
}

#[test]
fn s02_without_a_session_it_gets_everything_and_holds_what_was_sent_or_made() {
    let mut host = Host::new(Policy::none(), three()).with(prompts());
    let compiled = host.page();
    assert_eq!((compiled.page.mode, compiled.receipt.full), (Mode::Full, Some(Full::NoSession)));
    assert_eq!(texts(&compiled), ["static", "U0", "A1", "U2", "dynamic"]);
    assert!(compiled.receipt.to_string().contains("everything is sent: the provider holds nothing yet"));
    assert_eq!(serde_json::to_value(&compiled.receipt).unwrap()["full"], json!({"why": "no_session"}));
    host.answered(&compiled, [Entry::assistant("A3")]);
    assert_eq!(host.session.acked(), Some(Seq(3)));
}

#[test]
fn s03_on_resume_dynamic_prompts_come_first_as_the_users_and_then_what_is_new() {
    let history = || {
        let step = Entry::step("", [Call::new("c", "look", "{}")]);
        [Entry::user("U0"), Entry::assistant("A1"), step, Entry::result("c", "R3"), Entry::assistant("A4")]
    };
    let fragments = || [Fragment::dynamic("one", "d1"), Fragment::fixed("s", "static"), Fragment::dynamic("two", "d2")];
    for (policy, full) in [
        (Policy::tenex_doc(), ["static", "d1", "d2", "U0"].as_slice()),
        (Policy::tenex_v1(), ["static", "U0", "A1", "call c"].as_slice()),
    ] {
        let mut host = Host::new(policy, history()).with(fragments());
        let first = host.page();
        assert_eq!(texts(&first)[..full.len()], *full);
        let is_tail = full[1] != "d1";
        assert_eq!(texts(&first)[6..] == ["d1", "d2"], is_tail, "{:?}", texts(&first));
        host.answered(&first, []);
        assert_eq!(host.session.acked(), Some(Seq(4)));
        host.say(Entry::user("U5"));
        host.say(Entry::user("Inj6"));
        let compiled = host.page();
        let roles: Vec<Role> = compiled.page.messages.iter().map(|message| message.role).collect();
        assert_eq!(texts(&compiled), ["[System Context]: d1", "[System Context]: d2", "U5", "Inj6"]);
        assert_eq!((compiled.page.mode, roles), (Mode::Delta, vec![Role::User; 4]));
        let costs: Tokens = compiled.page.messages.iter().map(|message| message.cost).sum();
        assert_eq!(compiled.receipt.ledger.used(), costs);
    }
}

#[test]
fn s04_the_message_after_the_last_that_was_sent_is_the_delta() {
    let mut host = Host::new(Policy::none(), [Entry::user("U0")]);
    let first = host.page();
    host.answered(&first, [Entry::assistant("A1")]);
    for nth in 2..20 {
        host.say(Entry::user(format!("U{nth}")));
        let compiled = host.call();
        assert_eq!((compiled.page.mode, texts(&compiled)), (Mode::Delta, vec![format!("U{nth}")]));
        assert_eq!(compiled.receipt.full, None);
        assert!(compiled.receipt.to_string().contains(" held by the provider"), "{}", compiled.receipt);
    }
}

#[test]
fn s05_a_message_that_came_in_mid_call_is_sent_and_the_answer_is_not() {
    let history = (0..5).map(|nth| Entry::user(format!("U{nth}")));
    let mut host = Host::new(Policy::none(), history);
    let compiled = host.page();
    host.reader.acknowledge(&compiled.receipt.ticket).unwrap();
    host.session.sent(&compiled);
    host.say(Entry::user("U5"));
    let answer = host.say(Entry::assistant("A6"));
    host.session.acknowledge(None, [answer]);
    assert_eq!(host.session.acked(), Some(Seq(4)));
    assert!(host.session.holds(Seq(6)) && !host.session.holds(Seq(5)));
    assert_eq!(texts(&host.page()), ["U5"]);
}

#[test]
fn s06_a_call_that_is_given_up_changes_nothing() {
    let mut host = Host::new(Policy::none(), three()).with(prompts());
    host.call();
    host.say(Entry::user("again"));
    let (one, other) = (host.page(), host.page());
    let bytes = |compiled: &Compiled| wire::openai_chat::encode(&compiled.page, &host.target);
    assert_eq!(bytes(&one), bytes(&other));
    assert_eq!(one.page.mode, Mode::Delta);
}

#[test]
fn s07_a_session_that_claims_too_much_or_was_given_up_counts_for_nothing() {
    let mut host = Host::new(Policy::none(), [Entry::user("U0"), Entry::assistant("A1")]);
    host.session.acknowledge(Some(Seq(99)), []);
    let compiled = host.page();
    assert_eq!((compiled.page.mode, texts(&compiled)), (Mode::Full, vec!["U0".to_string(), "A1".into()]));
    assert!(compiled.receipt.warnings.contains(&Warning::CursorBeyondLog { acked: Seq(99) }));
    assert_eq!(compiled.receipt.full, Some(Full::CursorBeyondLog { acked: Seq(99) }));
    let json = serde_json::to_value(&compiled.receipt).unwrap();
    assert!(json["warnings"].to_string().contains("cursor_beyond_log"));
    for lost in [Lost::EntryGone, Lost::WorkspaceChanged] {
        host.session = Session::default();
        host.call();
        host.say(Entry::user("more"));
        assert_eq!(host.page().page.mode, Mode::Delta);
        host.session.invalidate(lost);
        assert_eq!(host.session.acked(), None);
        let compiled = host.page();
        assert_eq!((compiled.page.mode, compiled.receipt.full), (Mode::Full, Some(Full::Lost { lost })));
        let stored: Session = serde_json::from_str(&serde_json::to_string(&host.session).unwrap()).unwrap();
        assert_eq!((stored.acked(), stored.lost()), (None, Some(lost)));
    }
}

#[test]
fn s08_where_nothing_is_new_there_is_nothing_to_send() {
    for instructions in [Instructions::Kept, Instructions::Replaced] {
        let mut host = Host::new(Policy::none(), three()).with([Fragment::fixed("rules", "static")]);
        host.target.instructions = instructions;
        host.call();
        let compiled = host.page();
        assert_eq!((compiled.page.mode, texts(&compiled)), (Mode::NothingNew, vec![]));
        assert_eq!(compiled.receipt.ledger.used(), Tokens(0));
        assert!(!compiled.receipt.fragments.iter().any(|row| row.fate == FragmentFate::Shown));
    }
    // Prompts that change have to be told, if they stay where they were said.
    let mut host = Host::new(Policy::none(), three()).with(prompts());
    host.call();
    assert_eq!(texts(&host.page()), ["dynamic"]);
    host.target.instructions = Instructions::Replaced;
    assert_eq!(host.page().page.mode, Mode::NothingNew);
}

#[test]
fn s09_results_stand_behind_their_calls_and_what_was_shown_unanswered_stays_so() {
    let step = || Entry::step("", [Call::new("c", "look", "{}")]);
    let mut host = Host::new(Policy::none(), [step(), Entry::user("U3"), Entry::result("c", "R4")]);
    let roles = |compiled: &Compiled| compiled.page.messages.iter().map(|it| it.role).collect::<Vec<_>>();
    assert_eq!(roles(&host.page()), [Role::Assistant, Role::Tool, Role::User]);

    let mut host = Host::new(Policy::none(), [step(), Entry::user("U1")]);
    let compiled = host.page();
    assert_eq!(roles(&compiled), [Role::Assistant, Role::Tool, Role::User]);
    assert!(compiled.receipt.warnings.iter().any(|it| matches!(it, Warning::MissingResult { step: Seq(0), .. })));
    host.answered(&compiled, []);
    host.say(Entry::result("c", "R2"));
    let late = host.page();
    assert_eq!((late.page.mode, texts(&late)), (Mode::Delta, vec!["[Late result of call look c]\nR2".to_string()]));
    let mut whole = Host { target: Target { memory: recto::target::Memory::Stateless, ..host.target.clone() }, ..host };
    assert_eq!(roles(&whole.page()), [Role::Assistant, Role::Tool, Role::User, Role::User]);
}

#[test]
fn s10_a_thing_is_an_entry_or_a_fragment_and_an_empty_todo_is_left_out() {
    for policy in [Policy::none(), Policy::tenex_doc(), Policy::tenex_v1()] {
        let entry = Entry { id: Some("n1".into()), ..Entry::user("nudge") };
        let mut host = Host::new(policy, [entry]).with([Fragment::dynamic("n1", "nudge")]);
        assert!(host.try_page().unwrap_err().to_string().contains("both an entry and a fragment"));
        host.fragments = vec![Fragment::dynamic("todos", "")];
        for _ in 0..2 {
            let compiled = host.call();
            assert_eq!(texts(&compiled).len(), 1, "{:?}", texts(&compiled));
            assert_eq!(compiled.receipt.fragments[0].fate, FragmentFate::Empty);
            host.say(Entry::user("more"));
        }
    }
}

/// A result of 400 characters that expires after a call, with the session it was sent to.
fn expired(stale: Stale) -> Host {
    let mut policy = Policy::named("expiring").then(Expire::first_chars(1, 20)).immediately();
    policy.stale = stale;
    let step = Entry::step("", [Call::new("c", "look", "{}")]);
    let mut host = Host::new(policy, [Entry::user("U0"), step, Entry::result("c", "x".repeat(400))]);
    for _ in 0..2 {
        host.call();
        host.say(Entry::user("on"));
    }
    host
}

#[test]
fn x01_what_expires_after_it_was_sent_is_stale_there_or_everything_is_sent_again() {
    let mut host = expired(Stale::Keep);
    for turn in 0..6 {
        let compiled = host.call();
        assert_eq!((compiled.page.mode, texts(&compiled)), (Mode::Delta, vec!["on".to_string()]));
        let row = compiled.receipt.fate(Seq(2)).unwrap();
        let Reason::RemoteStale { tokens, .. } = row.why else { panic!("turn {turn}: {row:?}") };
        assert_eq!((row.fate, row.before, row.after), (Fate::NotShown, Tokens(100), Tokens(0)));
        assert!(tokens > Tokens(50) && tokens < Tokens(100), "{tokens}");
        assert!(compiled.receipt.ledger.held > tokens);
        assert_eq!(serde_json::to_value(row).unwrap()["reason"], "remote_stale");
        assert!(matches!(compiled.receipt.fate(Seq(0)).unwrap().why, Reason::BeforeCursor { .. }));
        host.say(Entry::user("on"));
    }
    let mut host = expired(Stale::Reseed);
    let compiled = host.page();
    let Some(Full::Stale { entries: 1, tokens }) = compiled.receipt.full else { panic!("{:?}", compiled.receipt.full) };
    assert!(tokens > Tokens(50) && compiled.page.mode == Mode::Full);
    let stub = compiled.page.messages.iter().find(|message| message.seq == Some(Seq(2))).unwrap();
    assert!(stub.cost < Tokens(50), "{}", text(stub));
    host.answered(&compiled, [Entry::assistant("ok")]);
    for _ in 0..6 {
        host.say(Entry::user("on"));
        let compiled = host.call();
        assert_eq!((compiled.page.mode, texts(&compiled)), (Mode::Delta, vec!["on".to_string()]));
        assert!(matches!(compiled.receipt.fate(Seq(2)).unwrap().why, Reason::BeforeCursor { .. }));
    }
}

#[test]
fn x02_what_was_removed_moves_no_cursor() {
    let mut policy = Policy::none();
    policy.stale = Stale::Keep;
    let history = (0..5).map(|nth| Entry::user(format!("U{nth}")));
    let mut host = Host::new(policy, history);
    let first = host.page();
    host.answered(&first, []);
    let hide = |seq| recto::edit::Edit {
        change: recto::edit::Change::Hide(Span::one(Seq(seq))),
        by: "test".into(),
        why: Reason::Own { what: "removed".into() },
        before: Tokens(1),
        after: Tokens(0),
        due: None,
    };
    host.reader.commit([hide(1), hide(3)], host.policy.digest());
    host.say(Entry::user("U5"));
    let compiled = host.page();
    assert_eq!(texts(&compiled), ["U5"]);
    for seq in [1, 3] {
        assert!(matches!(compiled.receipt.fate(Seq(seq)).unwrap().why, Reason::RemoteStale { .. }));
    }
    // A host that counts places among what is left would find nothing behind the fifth.
    assert_eq!(host.session.acked(), Some(Seq(4)));
}

#[test]
fn x07_traces_go_with_their_run_and_are_never_sent_later() {
    let mut policy = Policy::none();
    policy.select.trace = TraceRule::CurrentRun;
    let trace = |entry: Entry, run: &str| Entry { lane: Lane::Trace, run: Some(run.into()), ..entry };
    let step = |id: &str, run: &str| trace(Entry::step("", [Call::new(id, "look", "{}")]), run);
    let mut host = Host::new(policy, [Entry::user("U0"), step("a", "1"), trace(Entry::result("a", "R"), "1")]);
    host.run = Some("1".into());
    host.call();
    host.run = Some("2".into());
    host.say(Entry::user("U4"));
    host.say(step("b", "2"));
    host.say(trace(Entry::result("b", "R2"), "2"));
    assert_eq!(host.page().page.messages.len(), 3);
    host.run = Some("3".into());
    host.say(Entry::user("U7"));
    let compiled = host.call();
    assert_eq!(texts(&compiled), ["U4", "U7"]);
    assert_eq!(host.session.acked(), host.log.head());
    host.say(Entry::user("U9"));
    assert_eq!(texts(&host.page()), ["U9"]);
}

#[test]
fn x19_a_summary_that_folds_what_was_sent_leaves_the_delta_alone() {
    let mut host = Host::new(Policy::none(), (0..3).map(|nth| Entry::user(format!("U{nth}"))));
    host.call();
    let covers = Some(Span { first: Seq(0), last: Seq(1) });
    host.say(Entry { section: "summary".into(), covers, ..Entry::user("S") });
    host.say(Entry::user("U5"));
    let compiled = host.page();
    assert_eq!((compiled.page.mode, texts(&compiled)), (Mode::Delta, vec!["S".to_string(), "U5".into()]));
    host.session.invalidate(Lost::Told);
    assert_eq!(texts(&host.page()), ["S", "U2", "ok", "U5"]);
}

#[test]
fn instructions_that_are_forgotten_are_told_at_every_call() {
    let fragments =
        || [Fragment::dynamic("todos", "d"), Fragment::fixed("rules", "s"), Fragment::retrieved("r", "found")];
    let mut host = Host::new(Policy::none(), [Entry::user("U0")]).with(fragments());
    host.target = Target { late_system: LateSystem::ToUser, ..host.target.remembering(Instructions::Replaced) };
    let found = "<retrieved>\nfound\n</retrieved>";
    assert_eq!(texts(&host.call()), ["s", "d", "U0", found]);
    for nth in 0..5 {
        // A changed one is no news: it was forgotten anyway.
        host.fragments[1] = Fragment::fixed("rules", format!("s{nth}"));
        host.say(Entry::user("more"));
        let compiled = host.call();
        assert_eq!(texts(&compiled), [&*format!("s{nth}"), "d", "more", found]);
        let roles: Vec<Role> = compiled.page.messages.iter().map(|message| message.role).collect();
        assert_eq!(roles, [Role::System, Role::System, Role::User, Role::User]);
        assert!(compiled.receipt.fragments.iter().all(|row| row.fate == FragmentFate::Shown));
        let fields = Map::from_iter([("previous_response_id".to_string(), Value::from("resp_1"))]);
        let body = wire::openai_responses::encode_with(&compiled.page, &host.target, &fields);
        let body: Value = serde_json::from_slice(&body).unwrap();
        assert_eq!((&body["instructions"], &body["store"]), (&json!(format!("s{nth}\n\nd")), &json!(true)));
        assert_eq!(body["input"].as_array().unwrap().len(), 2);
        assert_eq!(body["previous_response_id"], "resp_1");
    }
}

#[test]
fn results_of_calls_that_the_provider_made_come_first() {
    let mut host = Host::new(Policy::none(), [Entry::user("U0")]);
    host.target.instructions = Instructions::Replaced;
    let first = host.page();
    host.answered(&first, [Entry::step("", [Call::new("c", "look", "{}")])]);
    host.say(Entry::result("c", "R2"));
    let compiled = host.page();
    let fields = Map::from_iter([("previous_response_id".to_string(), Value::from("resp_1"))]);
    let body = wire::openai_responses::encode_with(&compiled.page, &host.target, &fields);
    assert!(wire::openai_responses::validate(&body).is_empty());
    let body: Value = serde_json::from_slice(&body).unwrap();
    assert_eq!(body["input"], json!([{"type": "function_call_output", "call_id": "c", "output": "R2"}]));
}

#[test]
fn late_instructions_are_marked_in_a_delta_where_the_target_wants_it() {
    let mut host = Host::new(Policy::none(), three()).with(prompts());
    host.target.late_system = LateSystem::ToUser;
    host.call();
    host.say(Entry::system("be brief"));
    let compiled = host.page();
    assert_eq!(texts(&compiled), ["[System Context]: be brief", "[System Context]: dynamic"]);
    assert!(compiled.page.messages.iter().all(|message| message.role == Role::User));
}

#[test]
fn what_was_sent_shortened_and_is_taken_back_is_sent_with_everything() {
    let mut policy = Policy::named("capped").then(recto::reduce::CapOutput::to(20));
    policy = policy.immediately();
    let step = Entry::step("", [Call::new("c", "look", "{}")]);
    let mut host = Host::new(policy, [Entry::user("U0"), step, Entry::result("c", "x".repeat(400))]);
    host.call();
    host.say(Entry::user("on"));
    assert_eq!(host.call().page.mode, Mode::Delta);
    host.reader.revert(1).unwrap();
    host.say(Entry::user("on"));
    let compiled = host.call();
    assert_eq!((compiled.page.mode, compiled.receipt.full), (Mode::Full, Some(Full::Restored)));
    host.say(Entry::user("on"));
    assert_eq!(host.call().page.mode, Mode::Delta);
}
