//! Blocks among everything else: expiry, sessions, budget, redaction, templates, and what stays the same.

use crate::nexus::{Room, at, texts, under};
use proptest::prelude::*;
use recto::block::{Block, Facts, Given, Kind, Render, Template, Todo, TodoState};
use recto::edit::{Change, Edit, PartAt, Reason};
use recto::entry::{Call, Redaction};
use recto::forging::Woven;
use recto::fragment::{Fragment, Fragments, Priority};
use recto::page::Mode;
use recto::receipt::{Fate, FragmentFate, Warning};
use recto::redact::Redact;
use recto::target::Memory;
use recto::tool::Tools;
use recto::wire::{self, Wire};
use recto::{Entry, Error, Policy, Request, Role, Seq, Session, Span, Tokenizer, Tokens, compile, compile_once};
use serde_json::{Value, json};

fn edit(change: Change, why: Reason) -> Edit {
    Edit { change, by: "expire".into(), why, before: Tokens(9), after: Tokens(1), due: None }
}

/// Three words of a model in one run, the second with a call.
fn one_run() -> [Entry; 5] {
    let step = Entry::step("Second, with a search.", [Call::new("c1", "web_search", r#"{"query":"x"}"#)]);
    [Entry::user("Go"), Entry::assistant("First."), step, Entry::result("c1", "found"), Entry::assistant("Third.")]
        .map(|entry| at("2025-12-10T15:30:00Z", "r", entry))
}

#[test]
fn x09_what_was_reduced_is_told_as_it_is_shown() {
    let mut room = Room::new(Policy::nexus_doc()).said(one_run());
    let memory = |room: &Room| under(&room.page("Hi"), "SHARED_MEMORY");
    let head = "Recent conversation memory:\n\n[2025-12-10 15:30] Human: Go\n  Nexus: ";
    let annotation = "[tool_use:web_search, query:x]";
    assert_eq!(
        memory(&room),
        format!("[SHARED_MEMORY count=2]\n{head}First.\nSecond, with a search.\n{annotation}\nThird.")
    );
    let stub = Change::Replace { at: PartAt { seq: Seq(4), part: 0 }, text: "Th [compacted]".into() };
    let compacted = Reason::Compacted { age: 3, limit: 2, shown: 2, of: 6 };
    room.reader.commit([edit(stub, compacted)], room.policy.digest());
    assert_eq!(
        memory(&room),
        format!("[SHARED_MEMORY count=2]\n{head}First.\nSecond, with a search.\n{annotation}\nTh [compacted]")
    );
    let removed = |first, last| {
        edit(Change::Hide(Span { first: Seq(first), last: Seq(last) }), Reason::Removed { age: 3, limit: 2 })
    };
    room.reader.commit([removed(2, 3)], room.policy.digest());
    assert_eq!(memory(&room), format!("[SHARED_MEMORY count=2]\n{head}First.\n{annotation}\nTh [compacted]"));
    let compiled = room.page("Hi");
    assert_eq!(compiled.receipt.fate(Seq(2)).unwrap().fate, Fate::NotShown);
    assert!(matches!(compiled.receipt.fate(Seq(4)).unwrap().why, Reason::Compacted { .. }));
    room.reader.commit([removed(1, 1), removed(4, 4)], room.policy.digest());
    let last = "[SHARED_MEMORY count=1]\nRecent conversation memory:\n\n[2025-12-10 15:30] Human: Go";
    assert_eq!(memory(&room), last);
}

#[test]
fn x10_a_block_is_told_whole_to_a_provider_that_remembers() {
    let mut room = Room::new(Policy::nexus_doc()).said([
        at("2025-12-10T15:30:00Z", "r", Entry::user("Go")),
        at("2025-12-10T15:30:01Z", "r", Entry::assistant("First.")),
    ]);
    room.target.memory = Memory::Session;
    let mut session = Session::default();
    let draft = room.log.draft(Entry::user("And?")).unwrap();
    let first = compile(&Request { input: Some(&draft), session: Some(&session), ..room.request() }).unwrap();
    assert_eq!((first.page.mode, first.page.messages.len()), (Mode::Full, 5));
    session.sent(&first);
    room.reader.acknowledge(&first.receipt.ticket).unwrap();
    assert_eq!(session.acked(), Some(Seq(1)));
    let more = [Entry::user("And?"), Entry::assistant("Second.")].map(|it| at("2025-12-10T15:31:00Z", "r", it));
    let room = room.said(more);
    let draft = room.log.draft(Entry::user("So?")).unwrap();
    let second = compile(&Request { input: Some(&draft), session: Some(&session), ..room.request() }).unwrap();
    assert_eq!(second.page.mode, Mode::Delta);
    // The run is told whole, though half of it was acknowledged; what stays the same is not told again.
    assert_eq!(
        under(&second, "SHARED_MEMORY"),
        "[SHARED_MEMORY count=3]\nRecent conversation memory:\n\n[2025-12-10 15:30] Human: Go\n\
         [2025-12-10 15:31] Human: And?\n  Nexus: First.\nSecond."
    );
    assert!(under(&second, "THIS_MOMENT").contains("So?"));
    assert_eq!(second.page.messages.len(), 2, "{:?}", texts(&second));
    let fate = |id: &str| second.receipt.fragments.iter().find(|row| &*row.id == id).unwrap().fate;
    assert_eq!((fate("block:identity"), fate("block:profile")), (FragmentFate::Held, FragmentFate::Held));
    assert_eq!(second.receipt.fate(Seq(0)).unwrap().fate, Fate::Changed);
    session.sent(&second);
    assert_eq!(session.acked(), Some(Seq(3)), "over the entries, not over blocks");
}

#[test]
fn x11_blocks_that_may_go_do_and_then_the_oldest_entries() {
    let talk = (0..12).flat_map(|n| {
        let run = format!("r{n}");
        [
            Entry::user(format!("question {n}\nwith a second line{}", " and more".repeat(20))),
            Entry::assistant(format!("answer {n}")),
        ]
        .map(|entry| at("2025-12-10T15:30:00Z", &run, entry))
    });
    let mut policy = Policy::nexus_doc();
    for (name, priority) in [("low", 1u8), ("high", 9)] {
        let template = Template { name: name.into(), text: "word ".repeat(60).into(), about: None };
        let block = Block { priority: Priority::Optional(priority), ..Kind::Template(template).into() };
        policy.blocks.insert(2, block);
    }
    let mut room = Room::new(policy).said(talk);
    room.target.window = Some(Tokens(100_000));
    let whole = room.page("What now?");
    let used = whole.receipt.ledger.used().0;
    let shed = |compiled: &recto::Compiled| -> Vec<String> {
        let rows = compiled.receipt.fragments.iter().filter(|row| row.fate == FragmentFate::Shed);
        rows.map(|row| row.id.to_string()).collect()
    };
    assert!(shed(&whole).is_empty());
    let mut counts = Vec::new();
    for over in [0, 60, 100, 170, 300, 350, 400] {
        room.target.window = Some(Tokens(used - over));
        let compiled = room.page("What now?");
        let memory = under(&compiled, "SHARED_MEMORY");
        let lines: Vec<&str> = memory.lines().skip(1).collect();
        let all = under(&whole, "SHARED_MEMORY");
        let words = |line: &str| line.rsplit_once(": ").map_or(line.to_string(), |(_, words)| words.to_string());
        assert!(lines.iter().all(|line| all.lines().any(|it| words(it) == words(line))), "cut within a line: {memory}");
        let count: usize = memory.split(['=', ']']).nth(1).unwrap().parse().unwrap();
        assert_eq!(memory.matches(" Human: ").count() + memory.matches("Nexus: ").count(), count);
        assert!(
            texts(&compiled)[0].starts_with("# You are Nexus") && under(&compiled, "THIS_MOMENT").contains("What now?")
        );
        counts.push((over, shed(&compiled), count));
    }
    let low = || vec!["block:low".to_string()];
    assert_eq!(counts[0], (0, vec![], 20));
    assert_eq!((counts[1].1.clone(), counts[1].2), (low(), 20), "the least important goes first");
    assert!(counts[3].1.contains(&"block:high".to_string()) && counts[3].2 == 20, "{counts:?}");
    assert!(counts[4].2 < 20 || counts[4].1.len() > 3, "{counts:?}");
    assert!(
        counts.last().unwrap().2 < 20 && counts.is_sorted_by_key(|(_, _, count)| std::cmp::Reverse(*count)),
        "{counts:?}"
    );
    room.target.window = Some(Tokens(200));
    let draft = room.log.draft(Entry::user("What now?")).unwrap();
    let error = compile_once(&Request { input: Some(&draft), ..room.request() }).unwrap_err();
    assert!(error.overflow().is_some(), "what must stand is never left out: {error}");
}

#[test]
fn x15_a_secret_in_arguments_is_in_no_annotation() {
    let arguments = r#"{"query":"password hunter2 please"}"#;
    let mut step = Entry::step("", [Call::new("c1", "web_search", arguments)]);
    let part = step.parts.iter().position(|part| matches!(part, recto::Part::Call(_))).unwrap();
    let start = arguments.find("hunter2").unwrap();
    step.redactions.push(Redaction { part, piece: 0, start, end: start + 7, label: "[redacted]".into() });
    let room = Room::new(Policy::nexus_doc()).said([at("", "r", Entry::user("Go")), at("", "r", step)]);
    let compiled = room.page("Hi");
    let memory = under(&compiled, "SHARED_MEMORY");
    assert!(memory.contains("[tool_use:web_search, query:password [redacted] please]"), "{memory}");
    assert!(!format!("{compiled:?}").contains("hunter2"));
    assert!(format!("{:?}", room.log).contains("hunter2"), "the log keeps it");
}

#[test]
fn a_secret_in_facts_is_in_no_block() {
    // Put together, so that it stands in no file.
    let secret = format!("ghp_{}", "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8");
    for redact in [Redact::everything(), Redact::nothing()] {
        let is_redacted = !redact.is_nothing();
        let mut room = everything();
        room.policy = room.policy.redacting(redact);
        room.facts.mood = Some(format!("proud of {secret}").into());
        room.facts.profile.insert("profile".into(), format!("has {secret}").into());
        room.facts.values.insert("weather".into(), format!("{secret} wet").into());
        let page = room.page("Hi");
        let told = [under(&page, "MOOD"), under(&page, "PROFILE"), under(&page, "WEATHER")];
        assert!(told.iter().all(|block| block.contains(&secret) != is_redacted), "{told:?}");
        assert_eq!(texts(&page).concat().contains(&secret), !is_redacted, "the control shows it");
    }
}

/// A block of the host's own.
#[derive(Debug)]
struct Weather;

impl Render for Weather {
    fn name(&self) -> &str {
        "weather"
    }

    fn render(&self, given: &Given<'_>) -> Result<Option<Woven>, Error> {
        let mut woven = Woven::default();
        woven.ours("It is ");
        woven.theirs(given.facts.values.get("weather").and_then(Value::as_str).unwrap_or("dry"));
        Ok(Some(woven))
    }
}

fn full_facts() -> Facts {
    let json = json!({
        "now": "2025-12-10T08:00:00Z", "zone": "Europe/Berlin", "mood": "calm", "constraints": ["be brief"],
        "todos": [{"text": "call"}], "responding_to": "@user", "delegations": ["@agent-x", "@agent-y"],
        "nudges": ["smile"], "profile": {"profile": "likes tea"}, "values": {"weather": "wet", "city": "Bonn"}
    });
    serde_json::from_value(json).unwrap()
}

fn everything() -> Room {
    let city = Template { name: "city".into(), text: "In {{ city }}.".into(), about: Some("where it is.".into()) };
    let policy = Policy::blocks_first().block(Block::own(Weather)).block(Kind::Template(city));
    let tool = r#"{"type":"function","function":{"name":"look"}}"#;
    let tools = Tools::counted([tool.into()], &Tokenizer::Chars4);
    Room { facts: full_facts(), tools, ..Room::new(policy) }.said([Entry::user("Hello"), Entry::assistant("Hello!")])
}

#[test]
fn dynamic_prompts_are_blocks() {
    let compiled = everything().page("Hi");
    let told = |tag: &str| under(&compiled, tag);
    assert_eq!(told("RESPONSE_CONTEXT"), "[RESPONSE_CONTEXT]\nYour response will be sent to @user");
    assert_eq!(told("DELEGATIONS"), "[DELEGATIONS]\nYou have delegations to @agent-x, @agent-y");
    assert!(told("TODOS").ends_with("\n\n- [ ] call") && told("NUDGE").ends_with("- smile"));
    assert_eq!(told("WEATHER"), "[WEATHER]\nIt is wet");
    assert_eq!(told("CITY"), "[CITY]\nIn Bonn.");
    let bare = Room { facts: Facts::default(), ..everything() };
    let draft = bare.log.draft(Entry::user("Hi")).unwrap();
    let error = compile_once(&Request { input: Some(&draft), ..bare.request() }).unwrap_err();
    assert!(error.is_settings() && error.to_string().contains("line 1, column 7 of the template"), "{error}");
}

#[test]
fn other_data_for_one_block_change_that_block_alone() {
    let base = texts(&everything().page("Hi"));
    type Other = (&'static str, fn(&mut Facts));
    let changes: [Other; 10] = [
        ("[MOOD]", |it| it.mood = Some("angry".into())),
        ("[CONSTRAINTS]", |it| it.constraints.push("no lists".into())),
        ("[TODOS]", |it| it.todos.push(Todo { text: "write".into(), state: TodoState::Done })),
        ("[RESPONSE_CONTEXT]", |it| it.responding_to = Some("@other".into())),
        ("[DELEGATIONS]", |it| it.delegations.truncate(1)),
        ("[NUDGE]", |it| it.nudges.push("again".into())),
        ("[PROFILE]", |it| drop(it.profile.insert("profile".into(), "likes milk".into()))),
        ("[WEATHER]", |it| drop(it.values.insert("weather".into(), "dry".into()))),
        ("[CITY]", |it| drop(it.values.insert("city".into(), "Ulm".into()))),
        ("[THIS_MOMENT]", |it| it.now = Some(recto::entry::Millis(0))),
    ];
    let differ = |other: &[String]| -> Vec<String> {
        assert_eq!(other.len(), base.len());
        base.iter()
            .zip(other)
            .filter(|(one, other)| one != other)
            .map(|(_, other)| other.lines().next().unwrap().into())
            .collect()
    };
    for (tag, change) in changes {
        let mut room = everything();
        change(&mut room.facts);
        assert_eq!(differ(&texts(&room.page("Hi"))), [tag]);
    }
    assert_eq!(differ(&texts(&everything().page("Hello?"))), ["[THIS_MOMENT]"]);
    let tool = r#"{"type":"function","function":{"name":"see"}}"#;
    let other = Room { tools: Tools::counted([tool.into()], &Tokenizer::Chars4), ..everything() };
    assert_eq!(differ(&texts(&other.page("Hi"))), ["[CAPABILITIES]"]);
    let longer = everything().said([Entry::user("More")]);
    assert_eq!(differ(&texts(&longer.page("Hi"))), ["[SHARED_MEMORY]"]);
}

/// What a host can say, and the block in which it stands.
type Said = (&'static str, fn(&mut Facts, &str));
const SAID: [Said; 9] = [
    ("[MOOD]", |it, text| it.mood = Some(text.into())),
    ("[CONSTRAINTS]", |it, text| it.constraints = vec![text.into()]),
    ("[TODOS]", |it, text| it.todos = vec![Todo { text: text.into(), state: TodoState::Open }]),
    ("[RESPONSE_CONTEXT]", |it, text| it.responding_to = Some(text.into())),
    ("[DELEGATIONS]", |it, text| it.delegations = vec![text.into()]),
    ("[NUDGE]", |it, text| it.nudges = vec![text.into()]),
    ("[PROFILE]", |it, text| drop(it.profile.insert("profile".into(), text.into()))),
    ("[WEATHER]", |it, text| drop(it.values.insert("weather".into(), text.into()))),
    ("[CITY]", |it, text| drop(it.values.insert("city".into(), text.into()))),
];

proptest! {
    #![proptest_config(ProptestConfig { cases: 128, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn whatever_is_said_in_a_block_all_others_stay_the_same(
        said in prop::collection::vec("\\PC{0,60}", SAID.len()),
        (which, other) in (0..SAID.len(), "\\PC{0,60}"),
    ) {
        let mut room = everything();
        SAID.iter().zip(&said).for_each(|((_, say), text)| say(&mut room.facts, text));
        let before = texts(&room.page("Hi"));
        let (tag, say) = SAID[which];
        say(&mut room.facts, &other);
        let after = texts(&room.page("Hi"));
        let others = |all: &[String]| all.iter().filter(|text| !text.starts_with(tag)).cloned().collect::<Vec<_>>();
        prop_assert_eq!(others(&before), others(&after));
        // The control: whoever says something else in a block is heard there.
        if said[which].trim() != other.trim() && [&said[which], &other].iter().all(|it| it.chars().any(char::is_alphanumeric)) {
            prop_assert_ne!(before, after);
        }
    }
}

#[test]
fn over_fifty_turns_all_before_the_memory_stays_the_same() {
    let mut room = everything();
    let mut first: Option<Vec<String>> = None;
    for turn in 0..50 {
        room.facts.now = Some(recto::entry::Millis(turn * 60_000));
        room.facts.mood = Some(format!("mood {turn}").into());
        let compiled = room.page(&format!("question {turn}"));
        let mut before: Vec<String> = texts(&compiled);
        let memory = before.iter().position(|text| text.starts_with("[SHARED_MEMORY]")).unwrap();
        before.truncate(memory);
        assert_eq!(before.len(), 4, "identity, capabilities, constraints, profile");
        assert_eq!(*first.get_or_insert_with(|| before.clone()), before, "turn {turn}");
        room.reader.acknowledge(&compiled.receipt.ticket).unwrap();
        let say = [Entry::user(format!("question {turn}")), Entry::assistant(format!("answer {turn}"))];
        room = room.said(say);
    }
    let memory = under(&room.page("Hi"), "SHARED_MEMORY");
    assert!(memory.contains("question 49") && !memory.contains("question 20\n"), "{memory}");
}

#[test]
fn a_mark_for_the_cache_stands_behind_what_stays_the_same() {
    let mut room = everything();
    room.target.cache.kind = recto::target::Caching::Marks;
    room.target.cache.min = Tokens(0);
    let compiled = room.page("Hi");
    let after: Vec<_> = compiled.page.marks.iter().map(|mark| mark.after).collect();
    assert!(after.contains(&recto::page::After::Message(3)), "{after:?}");
}

#[test]
fn a_provider_that_wants_alternation_gets_one_message_of_the_user() {
    let mut room = everything();
    room.target = room.target.over(Wire::Anthropic);
    let compiled = room.page("Hi");
    let body = wire::anthropic::encode(&compiled.page, &room.target);
    assert_eq!(wire::anthropic::validate(&body), []);
    let json: Value = serde_json::from_slice(&body).unwrap();
    let messages = json["messages"].as_array().unwrap();
    assert_eq!(messages.len(), 1, "{json}");
    assert_eq!(messages[0]["role"], "user");
    assert!(messages[0]["content"].to_string().contains("[SHARED_MEMORY]"));
}

#[test]
fn a_huge_profile_is_cut_and_named() {
    let mut room = everything();
    let line = "I like tea, and so do all my friends.\n";
    room.facts.profile.insert("profile".into(), line.repeat(10_000_000 / line.len()).into());
    let compiled = room.page("Hi");
    let profile = under(&compiled, "PROFILE");
    assert!(
        profile.chars().count() <= 8_000 + "[PROFILE]\n".len() && profile.ends_with("friends.\n..."),
        "{}",
        profile.len()
    );
    let cut = compiled.receipt.warnings.iter().find_map(|warning| match warning {
        Warning::BlockCut { block, shown, of } => Some((block.to_string(), *shown, *of)),
        _ => None,
    });
    let (block, shown, of) = cut.unwrap();
    assert!(block == "profile" && shown <= 8_000 && of > 9_000_000);
    assert!(compiled.receipt.to_string().contains("block profile has"));
}

#[test]
fn reading_is_bounded_and_the_receipt_says_so() {
    let mut room = Room::new(Policy::nexus_doc());
    room.target.window = Some(Tokens(3_000));
    let room = room.said((0..400).map(|n| Entry::user(format!("{n} {}", "word ".repeat(40)))));
    let compiled = room.page("Hi");
    assert!(compiled.receipt.warnings.iter().any(|it| matches!(it, Warning::ReadBound { .. })));
    let row = compiled.receipt.fate(Seq(1)).unwrap();
    assert_eq!((row.why.clone(), &*row.by), (Reason::Unread, "blocks"));
    let memory = under(&compiled, "SHARED_MEMORY");
    assert!(memory.contains("Human: 399 word"), "{memory}\n{}", compiled.receipt);
}

#[test]
fn mistakes_in_blocks_are_refused_where_they_stand() {
    let head = "schema_version = 1\nname = 'm'\n";
    let refused = |blocks: &str| Policy::from_toml(&format!("{head}{blocks}")).unwrap_err();
    let at = |error: &Error| error.place().map(|place| (place.line, place.column));
    let template = refused("[[blocks]]\n[blocks.template]\nname = 'w'\ntext = '''\nfine\n{{ open'''\n");
    assert!(template.to_string().contains("line 2, column"), "{template}");
    assert_eq!(at(&template).map(|it| it.0), Some(6), "{template}");
    let set = refused("[[blocks]]\ntemplate = { name = 'w', text = \"{% set a = 1 %}\" }\n");
    assert!(set.to_string().contains("nothing can be set"), "{set}");
    let unknown = refused("[[blocks]]\nmemory = {}\n");
    assert!(unknown.to_string().contains("unknown field `memory`"), "{unknown}");
    assert!(refused("[[blocks]]\ntag = 'X'\n").to_string().contains("names one kind"));
    assert!(refused("[[blocks]]\nmoment = {}\nmood = {}\n").to_string().contains("names one kind"));
    assert!(refused("[[blocks]]\nmood = {}\n[[blocks]]\nmood = {}\n").to_string().contains("one name or tag"));
    assert!(refused("[[blocks]]\nmood = {}\ntag = 'a]b'\n").to_string().contains("tag"));
    assert!(refused("[[blocks]]\nshared_memory = { limit = 0 }\n").to_string().contains("limit is 0"));
    assert!(refused("[[blocks]]\nmoment = {}\nchars = 10\n").to_string().contains("chars"));
    let fine = "[[blocks]]\nidentity = { text = 'You are terse.' }\n[[blocks]]\nmoment = {}\ntag = 'NOW'\n";
    let policy = Policy::from_toml(&format!("{head}{fine}")).unwrap();
    assert_eq!(Policy::from_toml(&policy.to_toml()).unwrap(), policy);
    let compiled = Room::new(policy).said([Entry::assistant("Before.")]).page("Hi");
    assert!(texts(&compiled)[0].starts_with("You are terse.") && under(&compiled, "NOW").contains("Hi"));
    assert_eq!(compiled.page.messages[1].role, Role::Assistant, "history without a block of its own stays messages");
}

#[test]
fn templates_are_bounded() {
    let made = |text: &str| {
        let template = Template { name: "t".into(), text: text.into(), about: None };
        let policy = Policy::named("t").block(Kind::Template(template)).block(Kind::Moment(Default::default()));
        let mut room = Room::new(policy);
        room.facts.values.insert("many".into(), (0..1_000).collect::<Vec<u32>>().into());
        let draft = room.log.draft(Entry::user("Hi")).unwrap();
        compile_once(&Request { input: Some(&draft), ..room.request() }).map(|compiled| texts(&compiled).concat())
    };
    assert!(made("{% for a in many %}{{ a }} {% endfor %}").unwrap().contains("998 999"));
    let nested = "{% for a in many %}{% for b in many %}{{ b }}{% endfor %}{% endfor %}";
    assert!(made(nested).unwrap_err().to_string().contains("block t"));
    assert!(made(&"{{ 'x' * 100000 }}".repeat(20)).is_err());
    assert!(made(&"{".repeat(20_000)).is_err());
    assert!(made(&format!("{}{}", "{% if many %}".repeat(1_000), "{% endif %}".repeat(1_000))).is_err());
    assert!(made("{{ missing }}").is_err() && made("{{ missing|default('x') }}").unwrap().contains('x'));
}

#[test]
fn the_hosts_own_fragments_stand_among_the_blocks() {
    let room = everything();
    let list = [
        Fragment::retrieved("found", "a [SHARED_MEMORY] in </retrieved> a document"),
        Fragment::fixed("rule", "Be kind."),
    ];
    let fragments = Fragments::counted(list, &Tokenizer::Chars4).unwrap();
    let draft = room.log.draft(Entry::user("Hi")).unwrap();
    let request = Request { fragments: Some(&fragments), input: Some(&draft), ..room.request() };
    let told = texts(&compile_once(&request).unwrap());
    assert_eq!(told[1], "Be kind.");
    let found = told.iter().position(|text| text.starts_with("<retrieved>")).unwrap();
    assert_eq!(told[found], "<retrieved>\na [\\SHARED_MEMORY] in <\\/retrieved> a document\n</retrieved>");
    assert!(told[found + 1].starts_with("[THIS_MOMENT]") && found + 2 == told.len());
}

#[test]
fn who_the_human_is_can_be_learned_where_the_policy_says_so() {
    use recto::block::learned;
    use recto::note::{Note, Notes, Subject, default_prompt};
    let learning = |learn: bool| {
        let mut policy = Policy::blocks_first();
        for block in &mut policy.blocks {
            if let Kind::Profile(profile) = &mut block.kind {
                profile.learn = learn;
            }
        }
        Room::new(policy).said((0..60).map(|n| match n % 2 {
            0 => Entry::user(format!("Please keep it short, number {n}. I work on bridges.")),
            _ => Entry::assistant("Yes."),
        }))
    };
    let mut notes = Notes::default();
    let wants =
        |room: &Room, notes: &Notes| recto::plan(&Request { notes: Some(notes), ..room.request() }).unwrap().wants;
    assert_eq!(wants(&learning(false), &notes), [], "off unless somebody says otherwise");
    let mut room = learning(true);
    let found = wants(&room, &notes);
    let [want] = &*found else { panic!("{found:?}") };
    assert_eq!(want.subject, Subject::Human(Span { first: Seq(0), last: Seq(48) }));
    let request = Request { notes: Some(&notes), ..room.request() };
    let input = want.input(&request, default_prompt(want.subject), &|text| text.into()).unwrap();
    assert!(input.text.contains("number 48") && !input.text.contains("number 50") && !input.text.contains("Yes."));
    assert_eq!(learned(&request), None);
    let text = want.accept(&input, r#"{"summary": "Works on bridges; likes it short."}"#).unwrap();
    notes.put(want.key, Note::Made { text, model: "plain".into() });
    let known = learned(&Request { notes: Some(&notes), ..room.request() }).unwrap();
    assert_eq!(wants(&room, &notes), [], "it is asked once");
    room.facts.profile.insert("profile".into(), known.to_string().into());
    assert!(under(&room.page("Hi"), "PROFILE").ends_with("Works on bridges; likes it short."));
    assert_eq!(wants(&room, &Notes::default()), [], "what the host says counts");
}
