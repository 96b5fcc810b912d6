//! What happens where conversation, target and provider meet: late instructions, changed static fragments, reasoning that
//! is bound to its prefix, a provider switched on the way, and what the cache will hold.

use recto::edit::Reason;
use recto::entry::{Part, ToolResult};
use recto::format::ResponseFormat;
use recto::fragment::{Fragment, Fragments, Placement};
use recto::page::{Mode, Page};
use recto::policy::StaticChange;
use recto::receipt::{Fate, FragmentFate, Warning};
use recto::reduce::{Expire, FitWindow};
use recto::target::{LateSystem, Memory};
use recto::tool::Tools;
use recto::transcript::Format;
use recto::wire::{Reply, Usage};
use recto::{
    Compiled, Entry, Log, Policy, Reader, Request, Role, Seq, Session, Target, Tokenizer, Tokens, Wire, compile, plan,
};
use recto_testkit::fake::{self, Incoming, Provider, Settings};
use serde_json::{Value, json};

fn log(entries: impl IntoIterator<Item = Entry>) -> Log {
    let mut log = Log::counted_by(Tokenizer::Bytes4);
    for entry in entries {
        log.append(entry).unwrap();
    }
    log
}

fn fragments(list: impl IntoIterator<Item = Fragment>) -> Fragments {
    Fragments::counted(list, &Tokenizer::Bytes4).unwrap()
}

/// A host that talks to a provider, call by call.
struct Host {
    provider: Provider,
    log: Log,
    reader: Reader,
    policy: Policy,
    target: Target,
    tools: Option<Tools>,
    previous: Option<Page>,
}

impl Host {
    fn new(target: Target, policy: Policy) -> Host {
        let provider = Provider::new(Settings::default());
        let (log, reader) = (log([]), Reader::new("main"));
        Host { provider, log, reader, policy, target, tools: None, previous: None }
    }

    fn compile(&mut self) -> Compiled {
        self.try_compile().unwrap()
    }

    /// Plans, commits and compiles; what the plan warns of is on the receipt.
    fn try_compile(&mut self) -> Result<Compiled, recto::Error> {
        let request = Request {
            tools: self.tools.as_ref(),
            previous: self.previous.as_ref(),
            ..Request::new(&self.log, &self.reader, &self.policy, &self.target)
        };
        let planned = plan(&request)?;
        let mut reader = self.reader.clone();
        reader.commit(planned.edits, self.policy.digest());
        let compiled = compile(&Request { reader: &reader, ..request });
        self.reader = reader;
        let mut compiled = compiled?;
        compiled.receipt.warnings.extend(planned.warnings);
        Ok(compiled)
    }

    /// Sends a body; what is refused is the test's failure.
    #[track_caller]
    fn send(&mut self, page: &Page, reply: fake::Reply) -> Reply {
        let wire = self.target.wire;
        let whole = serde_json::Map::from_iter([("stream".to_string(), Value::Bool(false))]);
        let fields = if wire == Wire::Ollama { whole } else { serde_json::Map::new() };
        let body = wire.encode_with(page, &self.target, &fields);
        assert_eq!(wire.validate(&body), []);
        self.provider.push(reply);
        let headers = vec![("anthropic-version".to_string(), "2023-06-01".to_string())];
        let request =
            Incoming { method: "POST".into(), path: fake::Api::of(wire).path(&self.target.name, false), headers, body };
        let answer = self.provider.answer(&request);
        assert_eq!(answer.status, 200, "{}\n{}", answer.text(), String::from_utf8_lossy(&request.body));
        self.target.wire.decode_reply(&answer.text()).unwrap()
    }

    /// One call: what the user says, the page, and the reply recorded, with results for its calls.
    #[track_caller]
    fn turn(&mut self, words: Option<&str>, reply: fake::Reply, result: &str) -> (Compiled, Option<Usage>) {
        if let Some(words) = words {
            self.log.append(Entry::user(words)).unwrap();
        }
        let compiled = self.compile();
        let reply = self.send(&compiled.page, reply);
        self.reader.acknowledge(&compiled.receipt.ticket).unwrap();
        let entry = reply.entry.bound_to(compiled.page.binding());
        let calls: Vec<_> = entry.calls().map(|call| call.id.clone()).collect();
        self.log.append(entry).unwrap();
        for call in calls {
            let result = Entry::new(Role::Tool, [Part::Result(ToolResult::text(call, result))]);
            self.log.append(result).unwrap();
        }
        self.previous = Some(compiled.page.clone());
        (compiled, reply.usage)
    }
}

fn thoughts(page: &Page) -> Vec<Seq> {
    let thinks = |part: &Part| matches!(part, Part::Reasoning(_));
    page.messages.iter().filter(|it| it.parts.iter().any(thinks)).filter_map(|it| it.seq).collect()
}

fn thinking(text: &str) -> fake::Reply {
    fake::Reply::default().thinking(&format!("about {text}")).text(text)
}

/// Strict user/assistant turns after the leading instructions, as unknown servers want them.
fn alternates(body: &Value) -> Result<(), String> {
    let roles: Vec<&str> = body["messages"].as_array().unwrap().iter().map(|it| it["role"].as_str().unwrap()).collect();
    let talk: Vec<&str> = roles.iter().copied().skip_while(|role| *role == "system").collect();
    let is_good = |(at, role): (usize, &&str)| (at % 2 == 0) == (*role == "user");
    let system = roles.len() - talk.len();
    if system > 1 || talk.contains(&"system") || !talk.iter().enumerate().all(is_good) {
        return Err(format!("{roles:?}"));
    }
    Ok(())
}

#[test]
fn x17_late_instructions_and_the_input_become_one_user_message() {
    let log = log([Entry::system("Be brief."), Entry::user("one"), Entry::assistant("two")]);
    let prompts = fragments([
        Fragment::dynamic("todos", "- look"),
        Fragment { placement: Placement::Tail, ..Fragment::dynamic("status", "all is well") },
    ]);
    let input = log.draft(Entry::user("three")).unwrap();
    let (reader, policy) = (Reader::new("main"), Policy::none());
    let target = Target { late_system: LateSystem::ToUser, merges: true, ..Target::eval() };
    let request =
        Request { fragments: Some(&prompts), input: Some(&input), ..Request::new(&log, &reader, &policy, &target) };
    let compiled = compile(&request).unwrap();
    let body: Value = serde_json::from_slice(&Wire::OpenaiChat.encode(&compiled.page, &target)).unwrap();
    alternates(&body).unwrap();
    let last = body["messages"].as_array().unwrap().last().unwrap();
    let said = "[System Context]: - look\n\n[System Context]: all is well\n\nthree";
    assert_eq!(last, &json!({"role": "user", "content": said}));
    // What it says more is counted.
    let cost: Tokens = compiled.page.messages.iter().map(|message| message.cost).sum();
    assert_eq!(compiled.receipt.ledger.used(), cost);
    // The same without merging breaks the alternation, and without demotion the roles.
    for other in
        [Target { merges: false, ..target.clone() }, Target { late_system: LateSystem::Keep, ..target.clone() }]
    {
        let page = compile(&Request { target: &other, ..request }).unwrap().page;
        let body: Value = serde_json::from_slice(&Wire::OpenaiChat.encode(&page, &other)).unwrap();
        assert!(alternates(&body).is_err(), "{body}");
    }
    // Anthropic takes it too: as blocks of one user message.
    let claude = Target::named("claude-haiku-4-5").unwrap();
    let page = compile(&Request { target: &claude, ..request }).unwrap().page;
    let body: Value = serde_json::from_slice(&Wire::Anthropic.encode(&page, &claude)).unwrap();
    assert_eq!(body["messages"][2]["content"].as_array().unwrap().len(), 3, "{body}");
    fake::check(fake::Api::Messages, body.to_string().as_bytes()).unwrap();
}

#[test]
fn x18_a_static_fragment_that_changed_is_sent_once_more_or_everything_is() {
    let mut log = log([Entry::user("one")]);
    let mut session = Session::default();
    let (mut reader, target) = (Reader::new("main"), Target { memory: Memory::Session, ..Target::eval() });
    let tools = |names: &str| fragments([Fragment::fixed("rules", "Be kind."), Fragment::fixed("tools", names)]);
    let policy = Policy::none();
    let mut reseeding = Policy::none();
    reseeding.static_change = StaticChange::Reseed;
    let compiled = |log: &Log, reader: &Reader, session: &Session, policy: &Policy, names: &str| {
        let prompts = tools(names);
        let request = Request::new(log, reader, policy, &target);
        compile(&Request { fragments: Some(&prompts), session: Some(session), ..request }).unwrap()
    };
    let said = |log: &mut Log, reader: &mut Reader, session: &mut Session, of: &Compiled, text: &str| {
        reader.acknowledge(&of.receipt.ticket).unwrap();
        session.sent(of);
        let reply = log.append(Entry::assistant("yes")).unwrap();
        session.acknowledge(None, [reply]);
        log.append(Entry::user(text)).unwrap();
    };
    let first = compiled(&log, &reader, &session, &policy, "look");
    assert_eq!((first.page.mode, first.page.messages.len()), (Mode::Full, 3));
    said(&mut log, &mut reader, &mut session, &first, "two");

    let same = compiled(&log, &reader, &session, &policy, "look");
    assert_eq!((same.page.mode, same.page.messages.len()), (Mode::Delta, 1));
    let fates: Vec<FragmentFate> = same.receipt.fragments.iter().map(|row| row.fate).collect();
    assert_eq!(fates, [FragmentFate::Held, FragmentFate::Held]);

    // A tool comes: its fragment is sent again, as late instructions, and nothing else.
    let changed = compiled(&log, &reader, &session, &policy, "look, write");
    assert_eq!(changed.page.mode, Mode::Delta);
    let sent: Vec<Role> = changed.page.messages.iter().map(|message| message.role).collect();
    assert_eq!(sent, [Role::User, Role::System]);
    let fates: Vec<FragmentFate> = changed.receipt.fragments.iter().map(|row| row.fate).collect();
    assert_eq!(fates, [FragmentFate::Held, FragmentFate::StaticChanged]);
    let json = serde_json::to_value(&changed.receipt).unwrap();
    assert_eq!(json["fragments"][1]["fate"], "static_changed");

    // The other setting: the session counts for nothing, and everything is sent.
    let seeded = compiled(&log, &reader, &session, &reseeding, "look, write");
    assert_eq!((seeded.page.mode, seeded.page.messages.len()), (Mode::Full, 5));
    assert!(seeded.receipt.warnings.contains(&Warning::StaticChanged));

    // Once.
    said(&mut log, &mut reader, &mut session, &changed, "three");
    let after = compiled(&log, &reader, &session, &policy, "look, write");
    let fates: Vec<FragmentFate> = after.receipt.fragments.iter().map(|row| row.fate).collect();
    assert_eq!((after.page.messages.len(), fates), (1, vec![FragmentFate::Held, FragmentFate::Held]));
}

/// Four thinking replies to four questions, then the page for a fifth.
fn thinker(model: &str, policy: Policy) -> Host {
    let mut host = Host::new(Target::named(model).unwrap(), policy);
    for words in ["one", "two", "three", "four"] {
        host.turn(Some(&format!("{words} {}", "and so on ".repeat(40))), thinking(words), "");
    }
    host
}

#[test]
fn x26_reasoning_after_a_cut_goes_and_what_comes_later_stays() {
    // Nothing was edited: all of it goes back.
    let mut host = thinker("claude-opus-5-5", Policy::none());
    let (compiled, _) = host.turn(Some("five"), thinking("five"), "");
    assert_eq!(thoughts(&compiled.page), [Seq(1), Seq(3), Seq(5), Seq(7)]);

    // An edit of the third question: what was thought after it can't stand behind the change.
    let seq = Seq(4);
    let hide = recto::edit::Edit {
        change: recto::edit::Change::Replace {
            at: recto::edit::PartAt { seq, part: 0 },
            text: "three, in short".into(),
        },
        by: "test".into(),
        why: Reason::Own { what: "shortened".into() },
        before: Tokens(100),
        after: Tokens(4),
        due: None,
    };
    host.log.append(Entry::user("six")).unwrap();
    host.reader.commit([hide], host.policy.digest());
    let compiled = host.compile();
    assert_eq!(thoughts(&compiled.page), [Seq(1), Seq(3)]);
    for seq in [5, 7, 9] {
        let row = compiled.receipt.fate(Seq(seq)).unwrap();
        assert_eq!((row.fate, &row.why, &*row.by), (Fate::Changed, &Reason::PrefixChanged, "bind"), "#{seq}");
        assert!(row.after < row.before);
    }
    // Nothing else went, and the bill knows what did.
    assert_eq!(compiled.page.messages.len(), 11);
    let cost: Tokens = compiled.page.messages.iter().map(|message| message.cost).sum();
    let ledger = &compiled.receipt.ledger;
    assert_eq!(ledger.used(), cost + host.target.request_overhead);
    let kept: Tokens = thoughts(&compiled.page).iter().map(|seq| host.log.get(*seq).unwrap().part_cost(0)).sum();
    assert_eq!(ledger.reasoning, kept);

    // The provider takes it, and what the model thinks from here on goes back as well.
    host.turn(None, thinking("six"), "");
    let (compiled, _) = host.turn(Some("seven"), thinking("seven"), "");
    assert_eq!(thoughts(&compiled.page), [Seq(1), Seq(3), Seq(11)]);
}

#[test]
fn x26_an_edit_without_the_rule_would_be_refused() {
    let mut host = thinker("claude-opus-5-5", Policy::none());
    host.log.append(Entry::user("five")).unwrap();
    let mut page = host.compile().page;
    // As a compiler does that doesn't know the rule.
    page.messages[2].parts = [Part::text("otherwise")].into();
    let body = Wire::Anthropic.encode(&page, &host.target);
    let refusal = host.provider.check(fake::Api::Messages, &body).unwrap_err();
    assert_eq!(refusal.rule, "A17");
}

#[test]
fn x26_no_edit_while_a_tool_round_is_open() {
    let action = recto::expiry::ExpiryAction::Remove;
    let expire = Expire::all(recto::expiry::Expiry { after: 1, action });
    let policy = Policy::named("expiring").then(expire).immediately();
    let tools = r#"{"name":"look","input_schema":{"type":"object","properties":{}}}"#;
    let mut host = Host::new(Target::named("claude-opus-5-5").unwrap(), policy);
    host.tools = Some(Tools::counted([tools.into()], &Tokenizer::Bytes4));
    let call = |text: &str| fake::Reply::default().thinking(text).call("look", "{}");
    let long = "a long result ".repeat(200);
    host.turn(Some("one"), call("first"), &long);
    for nth in 0..4 {
        let (compiled, _) = host.turn(None, call(&format!("step {nth}")), &long);
        assert!(host.reader.decisions().is_empty(), "nothing is edited in the middle of the work");
        assert_eq!(thoughts(&compiled.page).len(), nth + 1, "the model keeps what it thought");
    }
    host.turn(None, thinking("done"), "");
    // The round is over: what was due goes, and the reasoning behind it.
    let (compiled, _) = host.turn(Some("two"), thinking("two"), "");
    assert!(host.reader.decisions().len() >= 4, "{:?}", host.reader.decisions().len());
    assert!(thoughts(&compiled.page).len() <= 1, "{:?}", thoughts(&compiled.page));

    // On a target that binds nothing, edits don't wait.
    let free = Host::new(Target::named("claude-opus-5").unwrap(), host.policy.clone());
    let mut free = Host { tools: host.tools.clone(), ..free };
    free.turn(Some("one"), call("first"), &long);
    (0..4).for_each(|_| drop(free.turn(None, call("again"), &long)));
    assert!(!free.reader.decisions().is_empty());
}

#[test]
fn x26_what_would_not_fit_is_cut_even_then_and_said() {
    let fit = FitWindow { minimum: Tokens(0), ..FitWindow::default() };
    let mut target = Target::named("claude-opus-5-5").unwrap().with_window(Some(Tokens(12_000)));
    target.calibration = recto::calibration::Calibration::exact();
    let mut host = Host::new(target, Policy::named("fitting").then(fit));
    host.tools = Some(Tools::counted(
        [r#"{"name":"look","input_schema":{"type":"object","properties":{}}}"#.into()],
        &Tokenizer::Bytes4,
    ));
    let call = || fake::Reply::default().thinking("on and on").call("look", "{}");
    (0..3).for_each(|nth| drop(host.turn(Some(&format!("question {nth}")), thinking("so"), "")));
    host.turn(Some("look at everything"), call(), &"x".repeat(9_000));
    let mut was_said = false;
    for _ in 0..6 {
        let compiled = host.try_compile().unwrap();
        was_said |= compiled.receipt.warnings.contains(&Warning::CutInOpenRound);
        // Cut or not, the provider takes it.
        host.turn(None, call(), &"x".repeat(9_000));
    }
    assert!(was_said, "no page had to be cut in an open round");
}

#[test]
fn a_provider_switched_on_the_way_gets_a_valid_body_and_the_receipt_names_what_stays_behind() {
    let mut host = thinker("claude-opus-5-5", Policy::none());
    for (model, behind) in [
        ("gpt-6-sol", vec![1, 3, 5, 7]),
        ("gpt-4o", vec![1, 3, 5, 7, 9]),
        ("gemini-3.8-flash", vec![1, 3, 5, 7, 9]),
        ("qwen3", vec![]),
        ("claude-opus-5-5", vec![]),
    ] {
        host.target = Target::named(model).unwrap_or_else(|| recto_testkit::mixed::at_home(model));
        let (compiled, _) = host.turn(Some("and now?"), thinking("now"), "");
        for seq in behind {
            let row = compiled.receipt.fate(Seq(seq)).unwrap();
            assert!(
                matches!(&row.why, Reason::NotTaken { what } if what.contains("reasoning")),
                "{model} #{seq}: {row:?}"
            );
        }
        assert_eq!(host.target.name, compiled.receipt.target);
    }
    // Back at the first, its own reasoning goes back as far as nothing before it has changed.
    let page = host.compile().page;
    assert_eq!(thoughts(&page)[..4], [Seq(1), Seq(3), Seq(5), Seq(7)]);
}

#[test]
fn the_receipt_predicts_what_the_cache_reads_and_writes() {
    let long = "a line of instructions that goes on for a while\n".repeat(400);
    let models = ["claude-opus-5-5", "claude-haiku-4-5", "gpt-5.6-sol", "gpt-5.5", "gpt-5.2", "gpt-4o"];
    for model in models.into_iter().chain(["gemini-2.5-flash", "gemini-3.8-flash"]) {
        let mut host = Host::new(Target::named(model).unwrap(), Policy::none());
        // The fake counts as the log does, so that predictions can be compared to the token.
        host.target.calibration = recto::calibration::Calibration::exact();
        host.log.append(Entry::system(long.as_str())).unwrap();
        for nth in 0..5 {
            let words = format!("question {nth} {}", "with some words ".repeat(60));
            let (compiled, usage) =
                host.turn(Some(&words), fake::Reply::default().text("an answer ".repeat(50).as_str()), "");
            let (usage, money) = (usage.unwrap(), compiled.receipt.money);
            let near = |one: Tokens, other: Tokens| one.0.abs_diff(other.0) <= 40 + usage.input.0 / 20;
            assert!(near(money.cached, usage.cached), "{model}, call {nth}: cached {money:?} {usage:?}");
            assert!(near(money.written, usage.written), "{model}, call {nth}: written {money:?} {usage:?}");
            assert!(nth == 0 || usage.cached > Tokens(0), "{model}, call {nth}: nothing was cached: {usage:?}");
            let prices = &host.target.prices;
            let write = prices.write.unwrap_or(prices.input);
            let usd = money.cached.0 as f64 * prices.cached + money.written.0 as f64 * write;
            let usd = (usd + money.plain.0 as f64 * prices.input) / 1e6;
            assert!((money.usd - usd).abs() < 1e-12, "{model}");
        }
    }
}

#[test]
fn a_clients_own_marks_stand_where_it_set_them() {
    let body = json!({"model": "claude-opus-5-5", "max_tokens": 100, "messages": [
        {"role": "user", "content": [{"type": "text", "text": "one", "cache_control": {"type": "ephemeral", "ttl": "1h"}}]},
        {"role": "assistant", "content": "two"},
        {"role": "user", "content": "three"}]});
    let decoded = Wire::Anthropic.decode(&body.to_string()).unwrap();
    assert_eq!(decoded.marks.len(), 1);
    let marks: Vec<_> = decoded.marks.iter().map(|it| (Seq(it.entry as u64), it.mark.clone())).collect();
    let (log, reader, policy) = (log(decoded.entries), Reader::new("main"), Policy::none());
    let target = Target::named("claude-opus-5-5").unwrap();
    let request =
        Request { marks: &marks, reserve: Some(Tokens(100)), ..Request::new(&log, &reader, &policy, &target) };
    let page = compile(&request).unwrap().page;
    let again: Value = serde_json::from_slice(&Wire::Anthropic.encode_with(&page, &target, &decoded.extra)).unwrap();
    assert_eq!(again, body);

    // So they do when the request is read as a file, and written or walked through.
    let read = recto::transcript::read(&body.to_string()).unwrap().remove(0);
    let asked = read.asked.clone().unwrap();
    assert_eq!(asked.marks, marks);
    let replay = recto::Replay::new(&log, &policy, &target).with_marks(&asked.marks);
    let page = replay.after_all(None).unwrap().page;
    let given: Vec<_> = page.marks.iter().map(|mark| mark.given.clone()).collect();
    assert_eq!(given, [Some(marks[0].1.clone())]);
    let session = recto::transcript::Session { id: "s".into(), folder: "/".into(), at: recto::entry::Millis(0) };
    let written = Format::Wire(Wire::Anthropic).write(read, &target, &session).unwrap().bytes;
    let written: Value = serde_json::from_slice(&written).unwrap();
    assert_eq!(written["messages"], body["messages"]);
}

#[test]
fn a_contexts_response_format_is_asked_for_on_every_wire() {
    let schema =
        r#"{"type":"object","properties":{"city":{"type":"string"}},"required":["city"],"additionalProperties":false}"#;
    let named = format!(r#"{{"type":"json_schema","json_schema":{{"name":"place","schema":{schema},"strict":true}}}}"#);
    let context = recto::Context::from(log([Entry::user("Where?")])).with_response_format(named.as_str()).unwrap();
    let (fragments, format) = (context.fragments([]).unwrap(), context.format().unwrap());
    let (reader, policy) = (Reader::new("main"), Policy::none());
    let asked = |model: &str, at: &str, format: &Option<ResponseFormat>| {
        let target = Target::named(model).unwrap();
        let request = Request { format: format.as_ref(), ..context.request(&fragments, &reader, &policy, &target) };
        let compiled = compile(&request).unwrap();
        let body = target.wire.encode(&compiled.page, &target);
        assert_eq!(target.wire.validate(&body), []);
        let body: Value = serde_json::from_slice(&body).unwrap();
        (body.pointer(at).cloned(), compiled.receipt.warnings)
    };
    let schema: Value = serde_json::from_str(schema).unwrap();
    for (model, at) in [
        ("gpt-4o", "/response_format/json_schema/schema"),
        ("gpt-6-sol", "/text/format/schema"),
        ("claude-opus-5-5", "/output_config/format/schema"),
        ("gemini-3.8-flash", "/generationConfig/responseJsonSchema"),
    ] {
        assert_eq!(asked(model, at, &format).0, Some(schema.clone()), "{model}");
    }
    // Anthropic has no word for "some JSON"; the receipt says so.
    let (found, warnings) = asked("claude-opus-5-5", "/output_config", &Some(ResponseFormat::Json));
    assert!(found.is_none() && warnings.contains(&Warning::FormatNotTaken));
    assert_eq!(asked("gpt-4o", "/response_format/type", &Some(ResponseFormat::Json)).0, Some(json!("json_object")));
}

#[test]
fn what_a_format_has_no_place_for_is_counted() {
    let thought = recto::entry::Reasoning { text: "hm".into(), ..Default::default() };
    let opaque = Part::Opaque { provider: "elsewhere".into(), payload: "{}".into() };
    let step = Entry::new(Role::Assistant, [Part::Reasoning(thought), Part::text("so"), opaque]);
    let entries = vec![Entry::user("one"), step, Entry::result("nobody", "lost"), Entry::user("two")];
    let conversation = recto::transcript::Conversation { entries, ..Default::default() };
    let session = recto::transcript::Session { id: "s".into(), folder: "/".into(), at: recto::entry::Millis(0) };
    let target = Target::named("gpt-4o").unwrap();
    let wires = [Wire::OpenaiChat, Wire::Anthropic, Wire::Gemini].map(Format::Wire);
    for format in [Format::ClaudeCode, Format::Codex].into_iter().chain(wires) {
        let told = format.write(conversation.clone(), &target, &session).unwrap().left_out.join("; ");
        let words = match format {
            Format::Wire(_) => ["reasoning", "no call nobody"],
            _ => ["reasoning", "results without a call"],
        };
        assert!(words.iter().all(|word| told.contains(word)), "{format}: {told}");
    }
    let plain = recto::transcript::Conversation { entries: vec![Entry::user("one")], ..Default::default() };
    for format in Format::ALL {
        let written = format.write(plain.clone(), &target, &session).unwrap();
        assert_eq!(written.left_out, Vec::<String>::new(), "{format}");
    }
}
