//! Every page is accepted: hosts that live with a strict provider, with odd histories, over every wire, switching
//! models and providers on the way.

use recto::entry::{Call, Part, Reasoning, ToolResult};
use recto::format::ResponseFormat;
use recto::fragment::{Fragment, Fragments};
use recto::page::{Mode, Page};
use recto::reduce::FitWindow;
use recto::tool::Tools;
use recto::wire::Reply;
use recto::{
    Compiled, Entry, Log, Policy, Reader, Request, Role, Span, Target, Tokenizer, Tokens, Wire, compile, plan,
};
use recto_testkit::fake;
use recto_testkit::fake::{Api, Incoming, Provider, Settings};
use recto_testkit::mixed::{self, Dice};
use serde_json::{Map, Value};
use std::collections::BTreeMap;

const PAGES: usize = 20_000;
const PAGES_LONG: usize = 200_000;
const TURNS: usize = 10;

/// Models of every wire, with what is special about each.
const MODELS: [(&str, Option<Wire>); 26] = [
    ("gpt-4o", None),
    ("gpt-4.1", None),
    ("gpt-5.4", Some(Wire::OpenaiChat)),
    ("gpt-5.6-sol", Some(Wire::OpenaiChat)),
    ("llama-at-home", None),
    ("gpt-5.2", None),
    ("gpt-5.5", None),
    ("gpt-5.6-terra", None),
    ("gpt-6-sol", None),
    ("claude-opus-5-5", None),
    ("claude-sonnet-5-5", None),
    ("claude-haiku-5-5", None),
    ("claude-opus-4-8", None),
    ("claude-haiku-4-5", None),
    ("claude-opus-4-6", None),
    ("gemini-2.5-flash", None),
    ("gemini-3.1-pro-preview", None),
    ("gemini-3.8-flash", None),
    ("gemini-4-argon", None),
    ("qwen3", None),
    ("gpt-oss", None),
    ("gemini-3.5-flash", None),
    ("llama-at-home", Some(Wire::Ollama)),
    ("gpt-4o", Some(Wire::Ollama)),
    ("claude-opus-5-5", Some(Wire::Gemini)),
    ("mistral-at-home", Some(Wire::Ollama)),
];

/// Models that somebody runs at home.
const AT_HOME: [&str; 2] = ["qwen3", "gpt-oss"];

fn target(dice: &mut Dice) -> Target {
    let (name, wire) = dice.pick(&MODELS);
    let target = match AT_HOME.contains(name) {
        true => mixed::at_home(name),
        false => Target::named(name).unwrap_or_else(|| Target::unknown(name)),
    };
    let target = wire.map_or(target.clone(), |wire| target.over(wire));
    let window = *dice.pick(&[Some(Tokens(3_000)), Some(Tokens(8_000)), Some(Tokens(1_000_000)), None]);
    target.with_window(window)
}

/// A host with its conversation and the provider it talks to.
struct Host {
    dice: Dice,
    provider: Provider,
    log: Log,
    reader: Reader,
    policy: Policy,
    target: Target,
    tools: Tools,
    previous: Option<Page>,
    /// Whether it forgets to leave out what a provider would refuse, to show that that is found.
    careless: bool,
}

/// What was seen on the way.
#[derive(Debug, Default)]
struct Seen {
    pages: BTreeMap<&'static str, usize>,
    /// Sealed reasoning that went back to its provider.
    sealed: BTreeMap<&'static str, usize>,
    overflows: usize,
    refused: Vec<String>,
}

impl Host {
    fn new(seed: u64) -> Host {
        let mut dice = Dice::new(seed);
        let mut log = Log::counted_by(Tokenizer::Chars4);
        let length = dice.below(14);
        for entry in mixed::conversation(&mut dice, length) {
            log.append(entry).expect("odd entries are entries");
        }
        let fit = FitWindow { trigger_percent: 60, target_percent: 40, minimum: Tokens(0), ..FitWindow::default() };
        let policy = match dice.below(4) {
            0 => Policy::none(),
            1 => Policy::safe(),
            2 => Policy::first_chars(),
            _ => Policy::first_chars().then(fit),
        };
        let tools = Tools::counted(mixed::tools(&mut dice), &Tokenizer::Chars4);
        let target = target(&mut dice);
        let provider = Provider::new(Settings::default());
        Host {
            dice,
            provider,
            log,
            reader: Reader::new("main"),
            policy,
            target,
            tools,
            previous: None,
            careless: false,
        }
    }

    fn fragments(&mut self) -> Option<Fragments> {
        let list = [
            Fragment::fixed("identity", "You look things up."),
            Fragment::fixed("blank", " "),
            Fragment::dynamic("todos", "- one"),
            Fragment::retrieved("found", "something"),
        ];
        self.dice.chance(40).then(|| Fragments::counted(list, &Tokenizer::Chars4).expect("the names differ"))
    }

    /// Makes one call: plans, compiles, sends, and records what comes back.
    fn turn(&mut self, seen: &mut Seen) {
        if self.dice.chance(15) {
            self.target = target(&mut self.dice);
        }
        if self.dice.chance(60) {
            let user = mixed::user(&mut self.dice);
            self.log.append(user).expect("a user may say anything");
        }
        if let Some(head) = self.log.head().filter(|_| self.dice.chance(5)) {
            self.reader.pin(Span::one(head));
        }
        let Some(compiled) = self.compile() else {
            seen.overflows += 1;
            return;
        };
        let wire = self.target.wire;
        let whole = Map::from_iter([("stream".to_string(), Value::Bool(false))]);
        let fields = if wire == Wire::Ollama { whole } else { Map::new() };
        let mut body = wire.encode_with(&compiled.page, &self.target, &fields);
        if self.careless {
            body = spoiled(&body);
        }
        let violations = wire.validate(&body);
        if !violations.is_empty() && !self.careless {
            seen.refused.push(format!("{wire}: validate: {violations:?}: {}", String::from_utf8_lossy(&body)));
        }
        let Some(reply) = self.send(&body, seen) else { return };
        *seen.pages.entry(wire.name()).or_default() += 1;
        let is_sealed = |part: &Part| matches!(part, Part::Reasoning(it) if it.is_sealed());
        let sealed = compiled.page.messages.iter().flat_map(|message| message.parts.iter()).filter(|it| is_sealed(it));
        *seen.sealed.entry(wire.name()).or_default() += sealed.count();
        same_again(&body, &compiled.page, &self.target, seen);
        self.reader.acknowledge(&compiled.receipt.ticket).expect("the ticket is the newest");
        self.record(&compiled.page, reply);
        self.previous = Some(compiled.page);
    }

    fn compile(&mut self) -> Option<Compiled> {
        let fragments = self.fragments();
        let schema =
            r#"{"type":"object","properties":{"a":{"type":"string"}},"required":["a"],"additionalProperties":false}"#;
        let format = match self.dice.below(10) {
            0 => Some(ResponseFormat::Json),
            1 => ResponseFormat::parse(schema).expect("it is a schema"),
            _ => None,
        };
        // An input without a word is an error of its own.
        let input = self.dice.chance(30).then(|| self.log.draft(mixed::user(&mut self.dice)).ok()).flatten();
        let has_tools = self.dice.chance(80) && !self.tools.list().is_empty();
        let request = Request {
            fragments: fragments.as_ref(),
            tools: has_tools.then_some(&self.tools),
            format: format.as_ref(),
            input: input.as_ref(),
            previous: self.previous.as_ref(),
            ..Request::new(&self.log, &self.reader, &self.policy, &self.target)
        };
        let edits = plan(&request).expect("the settings are good").edits;
        let mut reader = self.reader.clone();
        reader.commit(edits, self.policy.digest());
        let compiled = compile(&Request { reader: &reader, ..request });
        self.reader = reader;
        match compiled {
            Ok(compiled) => {
                assert_eq!(compiled.page.mode, Mode::Full);
                if let Some(input) = input {
                    self.log.append(input.original().clone()).expect("it was drafted");
                }
                Some(compiled)
            }
            Err(error) => {
                assert!(error.overflow().is_some(), "{error}");
                None
            }
        }
    }

    fn send(&mut self, body: &[u8], seen: &mut Seen) -> Option<Reply> {
        let path = Api::of(self.target.wire).path(&self.target.name, false);
        let mut reply = fake::Reply::default();
        let thinks = self.dice.chance(60) && self.target.wire != Wire::OpenaiChat;
        if thinks {
            reply = reply.thinking(if self.dice.chance(50) { "hm, let me see" } else { "" });
        }
        if thinks && self.target.wire == Wire::Anthropic && self.dice.chance(10) {
            reply = reply.redacted_thinking();
        }
        let calls = self.dice.below(4);
        if calls == 0 || self.dice.chance(50) {
            reply = reply.text("I look.");
        }
        for _ in 0..calls {
            reply = reply.call("read_file", "{\"path\":\"a.txt\"}");
        }
        self.provider.push(reply);
        let headers = vec![("anthropic-version".to_string(), "2023-06-01".to_string())];
        let request = Incoming { method: "POST".into(), path, headers, body: body.to_vec() };
        let answer = self.provider.answer(&request);
        if answer.status != 200 {
            let text = String::from_utf8_lossy(body);
            seen.refused.push(format!("{} {}: {}: {text}", self.target.wire, self.target.name, answer.text()));
            return None;
        }
        Some(self.target.wire.decode_reply(&answer.text()).expect("the provider answers in its own format"))
    }

    /// Appends the reply and, for most calls, results.
    fn record(&mut self, page: &Page, reply: Reply) {
        let entry = reply.entry.bound_to(page.binding());
        let calls: Vec<Call> = entry.calls().cloned().collect();
        self.log.append(entry).expect("a reply is an entry");
        for call in calls {
            if self.dice.chance(95) {
                let text = mixed::text(&mut self.dice);
                let result = ToolResult { is_error: self.dice.chance(20), ..ToolResult::text(call.id, text) };
                self.log.append(Entry::new(Role::Tool, [Part::Result(result)])).expect("a result is an entry");
            }
        }
    }
}

/// What is written, read and written again is the same.
fn same_again(body: &[u8], page: &Page, target: &Target, seen: &mut Seen) {
    let text = std::str::from_utf8(body).expect("JSON is text");
    let decoded = match target.wire.decode(text) {
        Ok(decoded) => decoded,
        Err(error) => return seen.refused.push(format!("{}: decode: {error}: {text}", target.wire)),
    };
    let mut log = Log::counted_by(Tokenizer::Chars4);
    for entry in decoded.entries {
        log.append(entry).expect("what was read can be appended");
    }
    let tools = Tools::counted(decoded.tools, &Tokenizer::Chars4);
    let format = decoded.format.as_deref().and_then(|it| ResponseFormat::parse(it).expect("it was written by us"));
    let unbounded = target.clone().with_window(None);
    let (reader, policy) = (Reader::new("main"), Policy::none());
    let request = Request {
        tools: Some(&tools).filter(|tools| !tools.list().is_empty()),
        format: format.as_ref(),
        reserve: Some(page.output),
        ..Request::new(&log, &reader, &policy, &unbounded)
    };
    let mut again = compile(&request).expect("what fitted once fits").page;
    again.marks.clear();
    let plain = Page { marks: Vec::new(), ..page.clone() };
    let (one, two) = (target.wire.encode(&plain, target), target.wire.encode(&again, target));
    if one != two {
        let (one, two) = (String::from_utf8_lossy(&one), String::from_utf8_lossy(&two));
        seen.refused.push(format!("{} {}: not the same again:\n{one}\n{two}", target.wire, target.name));
    }
}

/// A body with one result taken out.
fn spoiled(body: &[u8]) -> Vec<u8> {
    let mut value: Value = serde_json::from_slice(body).expect("a body is JSON");
    let name = ["input", "contents"].into_iter().find(|name| value[*name].is_array()).unwrap_or("messages");
    let list = &mut value[name];
    let list = list.as_array_mut().expect("a body has messages");
    let holds = |it: &Value| {
        let text = it.to_string();
        ["\"tool_call_id\"", "\"function_call_output\"", "\"tool_result\"", "\"functionResponse\""]
            .iter()
            .any(|word| text.contains(word))
    };
    if let Some(at) = list.iter().position(holds) {
        list.remove(at);
    }
    serde_json::to_vec(&value).expect("JSON")
}

fn live(pages: usize, careless: bool) -> Seen {
    let half = |first: u64| {
        let mut seen = Seen::default();
        let is_enough = |seen: &Seen| Wire::ALL.iter().all(|wire| seen.pages.get(wire.name()) >= Some(&(pages / 2)));
        let mut seed = first;
        while !is_enough(&seen) && seen.refused.len() < 3 {
            let mut host = Host { careless, ..Host::new(seed) };
            for _ in 0..TURNS {
                host.turn(&mut seen);
            }
            seed += 2;
        }
        seen
    };
    let (mut one, other) = std::thread::scope(|scope| {
        let other = scope.spawn(|| half(2));
        (half(1), other.join().expect("the other half is told of by its own panic"))
    });
    other.pages.into_iter().for_each(|(wire, pages)| *one.pages.entry(wire).or_default() += pages);
    other.sealed.into_iter().for_each(|(wire, sealed)| *one.sealed.entry(wire).or_default() += sealed);
    one.overflows += other.overflows;
    one.refused.extend(other.refused);
    one
}

#[test]
fn no_page_is_refused_by_a_strict_provider() {
    let pages = if std::env::var_os("RECTO_LONG").is_some() { PAGES_LONG } else { PAGES };
    let seen = live(pages, false);
    println!("pages {:?}, sealed reasoning that went back {:?}, overflows {}", seen.pages, seen.sealed, seen.overflows);
    assert!(seen.refused.is_empty(), "{}", seen.refused.join("\n\n"));
    for wire in [Wire::Anthropic, Wire::OpenaiResponses, Wire::Gemini] {
        let sealed = seen.sealed.get(wire.name()).copied().unwrap_or_default();
        assert!(sealed > pages / 10, "{wire}: only {sealed} pieces of sealed reasoning went back");
    }
}

#[test]
fn a_page_that_lost_a_result_is_refused() {
    let seen = live(50, true);
    assert!(seen.refused.len() >= 3, "the provider took bodies with calls that have no results");
}

#[test]
fn sealed_reasoning_of_another_conversation_is_refused() {
    let mut log = Log::counted_by(Tokenizer::Chars4);
    let sealed = Reasoning {
        text: "hm".into(),
        provider: Some("anthropic".into()),
        model: Some("claude-opus-5".into()),
        signature: Some("bm90IG91cnM=".into()),
        ..Reasoning::default()
    };
    for entry in [
        Entry::user("hello"),
        Entry::new(Role::Assistant, [Part::Reasoning(sealed), Part::text("hi")]),
        Entry::user("and?"),
    ] {
        log.append(entry).unwrap();
    }
    let (reader, policy, target) = (Reader::new("main"), Policy::none(), Target::named("claude-opus-5").unwrap());
    let page = compile(&Request::new(&log, &reader, &policy, &target)).unwrap().page;
    let body = Wire::Anthropic.encode(&page, &target);
    assert_eq!(Wire::Anthropic.validate(&body), []);
    let refusal = Provider::new(Settings::default()).check(fake::Api::Messages, &body).unwrap_err();
    assert_eq!(refusal.rule, "A16");
}
