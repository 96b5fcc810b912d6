//! The properties (a) to (j) that hold for every compile, over many turns of generated stories, on the real functions.

use recto::block::Kind;
use recto::digest::Digest;
use recto::edit::{Change, Reason};
use recto::log::Counted;
use recto::page::{Mode, Page};
use recto::policy::Sections;
use recto::target::{LateSystem, Memory};
use recto::{Log, Role, Seq, Wire, plan, wire};
use recto_testkit::check;
use recto_testkit::property::{for_all, samples};
use recto_testkit::story::{Event, Story, story, story_in_blocks};
use recto_testkit::world::{Called, SECRET, World};
use serde_json::Value;
use std::collections::{BTreeMap, HashSet};

const CASES: u32 = 10_000;
const CASES_IN_BLOCKS: u32 = 1_000;
/// Every case occurs in at least one of so many stories.
const CASE_STORIES_MAX: u32 = 200;

/// A deliberate fault in what the laws check: a law that can't fail proves nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fault {
    None,
    /// The result of a call is not in the body.
    ResultLost,
    /// An entry has no row on the receipt.
    FateLost,
    /// The ledger reserves more than the window has.
    OverBudget,
    /// The call writes to the log.
    LogWritten,
    /// The same request compiles to another page.
    PageVaries,
    /// A delta repeats what the page before has sent.
    SentTwice,
    /// A system message is not on the page.
    InstructionsLost,
    /// The input is not on the page.
    InputLost,
    /// The edits of a plan are not recorded.
    PlanForgotten,
    /// A past page is compiled with the decisions of today.
    PastForgotten,
    /// A decision that changes the beginning of the page counts as none.
    PrefixChanged,
    /// The plan promises another cost than the page has.
    PromiseBroken,
}

/// Checks every law after every call of a story.
pub(crate) fn live(story: &Story) -> Result<(), String> {
    live_with(story, Fault::None)
}

fn live_with(story: &Story, fault: Fault) -> Result<(), String> {
    let mut world = World::new(story).with_notes();
    let mut past: Vec<(Called, Vec<u8>)> = Vec::new();
    let mut sent: HashSet<Seq> = HashSet::new();
    let mut acknowledged: Option<Vec<Digest>> = None;
    // Whether anything but appends has happened since the last page that was acknowledged.
    let mut was_decided = false;
    // Sections that stand behind the conversation move with every message.
    // A block is told anew at every call, and so is what stands in it.
    let is_steady = story.policy.select.sections == Sections::Ranked && story.policy.blocks.is_empty();
    for event in &story.events {
        let Event::Call { input, succeeds } = event else {
            world.happen(event);
            was_decided |= matches!(event, Event::Revert | Event::Edge(_) | Event::Pin { .. } | Event::Aside { .. });
            continue;
        };
        let before = digest(&world.log);
        let mut called = world.call(input.as_ref());
        if fault == Fault::LogWritten {
            world.log.append(recto::Entry::user("more")).map_err(|error| error.to_string())?;
        }
        (before == digest(&world.log)).then_some(()).ok_or("(d) the log has changed")?;
        let mut idle = plan(&world.request(called.input.as_ref())).map_err(|error| error.to_string())?;
        if fault == Fault::PlanForgotten {
            idle.edits.clone_from(&called.plan.edits);
        }
        if !idle.edits.is_empty() {
            return Err(format!("(i) planning again plans {:?} after {:?}", idle.edits, called.plan.edits));
        }
        was_decided |= called.plan.edits.iter().any(|edit| !matches!(edit.change, Change::Settle { .. }));
        was_decided &= fault != Fault::PrefixChanged;
        spoil(&mut called, fault);
        let Ok(compiled) = &called.compiled else {
            overflow(&called)?;
            continue;
        };
        let body = wire::openai_chat::encode(&compiled.page, &world.target);
        one_page(&world, &called, &body, fault)?;
        if let Some(previous) = acknowledged.as_ref().filter(|_| is_steady && !was_decided) {
            stable_prefix(previous, &history(&called))?;
        }
        if *succeeds {
            if fault == Fault::SentTwice {
                sent.extend(compiled.page.messages.iter().filter_map(|message| message.seq));
            }
            at_most_once(&compiled.page, &mut sent)?;
            if world.target.memory == Memory::Stateless {
                acknowledged = Some(history(&called));
                was_decided = false;
            }
            world.acknowledge(&called);
        }
        past.push((called, body));
    }
    for (called, body) in &past {
        let ticket = &called.compiled.as_ref().map_err(|error| error.to_string())?.receipt.ticket;
        let again = match fault {
            Fault::PastForgotten => match recto::compile(&world.request(called.input.as_ref())) {
                Ok(today) => today,
                Err(_) => continue,
            },
            _ => world.again(called, ticket),
        };
        if wire::openai_chat::encode(&again.page, &world.target) != *body || again.receipt.ticket != *ticket {
            return Err(format!("(j) turn {} compiles to another page now", ticket.turn.0));
        }
    }
    Ok(())
}

/// The laws that one compiled page must keep.
fn one_page(world: &World, called: &Called, body: &[u8], fault: Fault) -> Result<(), String> {
    let compiled = called.compiled.as_ref().map_err(|error| error.to_string())?;
    let (page, receipt) = (&compiled.page, &compiled.receipt);
    let json: Value = serde_json::from_slice(body).map_err(|error| error.to_string())?;
    let mut messages = json["messages"].as_array().ok_or("no messages")?.clone();
    if fault == Fault::ResultLost
        && let Some(at) = messages.iter().position(|message| message["role"] == "tool")
    {
        messages.remove(at);
    }
    check::pairs(&messages, page.mode != Mode::Full).map_err(|what| format!("(a) {what}"))?;
    if page.mode == Mode::Full && !messages.is_empty() {
        let violations = wire::openai_chat::validate(body);
        (violations.is_empty())
            .then_some(())
            .ok_or_else(|| format!("(a) the provider would refuse it: {violations:?}"))?;
    }
    check::fates(&receipt.fates, &world.log).map_err(|what| format!("(b) {what}"))?;
    let cost: u64 = page.messages.iter().map(|message| message.cost.0).sum();
    check::budget(receipt, cost).map_err(|what| format!("(c) {what}"))?;
    let mut again = recto::compile(&world.request(called.input.as_ref())).map_err(|error| error.to_string())?;
    again.page.messages.truncate(if fault == Fault::PageVaries { 1 } else { usize::MAX });
    (again == *compiled).then_some(()).ok_or("(e) the same request gives another page")?;
    let promise = if fault == Fault::PromiseBroken { recto::Tokens(1) } else { recto::Tokens(0) };
    as_planned(world, called, promise)?;
    no_secret(world, called, body)?;
    let mut page = page.clone();
    match fault {
        Fault::InputLost => drop(page.messages.pop()),
        Fault::InstructionsLost => page.messages.retain(|message| message.role != Role::System),
        _ => {}
    }
    present(world, called.input.as_ref(), &page, &messages)
}

/// Puts a fault into what a call has compiled or planned.
fn spoil(called: &mut Called, fault: Fault) {
    let Ok(compiled) = &mut called.compiled else { return };
    match fault {
        Fault::FateLost => drop(compiled.receipt.fates.pop()),
        Fault::OverBudget => compiled.receipt.ledger.reserve_out = recto::Tokens(u64::from(u32::MAX)),
        _ => {}
    }
}

/// (c) What does not fit says by how much.
fn overflow(called: &Called) -> Result<(), String> {
    let error = called.compiled.as_ref().expect_err("only called for errors");
    let overflow = error.overflow().ok_or(format!("(c) not an overflow: {error}"))?;
    let sum = overflow.reserve_out
        + overflow.tools
        + overflow.input
        + overflow.framing
        + overflow.fragments
        + overflow.history;
    let adds_up = sum == overflow.window + overflow.over && overflow.over.0 > 0;
    if adds_up && !error.to_string().contains(SECRET) {
        Ok(())
    } else {
        Err(format!("(c) {overflow:?} does not add up"))
    }
}

/// The page costs what the plan said it would. Where instructions are marked as such behind other words, those that
/// come to stand at the beginning need no mark any more, and cost less.
fn as_planned(world: &World, called: &Called, less_promised: recto::Tokens) -> Result<(), String> {
    let page = &called.compiled.as_ref().map_err(|error| error.to_string())?.page;
    let floor = called.plan.edits.iter().rev().find(|edit| matches!(edit.change, Change::Floor(_)));
    let history = page.messages.iter().filter(|message| message.seq.is_some());
    let cost: recto::Tokens = history.map(|message| message.cost).sum();
    let is_kept = |promised: recto::Tokens| match world.target.late_system {
        LateSystem::Keep => cost == promised,
        LateSystem::ToUser => cost <= promised,
    };
    match floor.filter(|_| page.mode == Mode::Full && world.policy.blocks.is_empty()) {
        Some(floor) if !is_kept(floor.after - less_promised) => {
            Err(format!("the plan promised {}, the page costs {cost}", floor.after))
        }
        _ => Ok(()),
    }
}

/// (f) What was acknowledged is not sent again to a provider that remembers.
fn at_most_once(page: &Page, sent: &mut HashSet<Seq>) -> Result<(), String> {
    let seqs: Vec<Seq> = page.messages.iter().filter_map(|message| message.seq).collect();
    let twice = seqs.iter().find(|seq| page.mode == Mode::Delta && sent.contains(seq));
    if let Some(twice) = twice {
        return Err(format!("(f) {twice} was sent before"));
    }
    sent.extend(seqs);
    Ok(())
}

/// (g) No secret in page, receipt, ticket, warnings or decisions.
fn no_secret(world: &World, called: &Called, body: &[u8]) -> Result<(), String> {
    let receipt = &called.compiled.as_ref().map_err(|error| error.to_string())?.receipt;
    let outputs = [
        String::from_utf8_lossy(body).into_owned(),
        receipt.to_string(),
        serde_json::to_string(receipt).map_err(|error| error.to_string())?,
        serde_json::to_string(world.reader.decisions()).map_err(|error| error.to_string())?,
    ];
    match outputs.iter().find(|output| output.contains(SECRET)) {
        Some(output) => Err(format!("(g) a secret in {output}")),
        None => Ok(()),
    }
}

/// (h) All instructions and the input stand on the page, the input last.
fn present(world: &World, input: Option<&Counted>, page: &Page, messages: &[Value]) -> Result<(), String> {
    let is_wordless = |part: &recto::Part| matches!(part, recto::Part::Text { text } if text.trim().is_empty());
    let is_plain = |input: &&Counted| world.target.wire != Wire::Anthropic || !input.shown().iter().any(is_wordless);
    let in_block = world.policy.blocks.iter().any(|block| matches!(block.kind, Kind::Moment(_)));
    if let Some(input) = input.filter(|_| in_block) {
        let texts = input.shown().iter().filter_map(|part| match part {
            recto::Part::Text { text } => Some(world.policy.delimiters().neutral(text).into_owned()),
            _ => None,
        });
        let stands = |text: &String| {
            let of = |message: &recto::page::Message| {
                message.parts.iter().any(|part| matches!(part, recto::Part::Text { text: told } if told.starts_with("[THIS_MOMENT]") && told.contains(text.as_str())))
            };
            page.messages.iter().any(of)
        };
        texts
            .into_iter()
            .all(|text| stands(&text) || text.trim().is_empty())
            .then_some(())
            .ok_or("(h) the input is in no block")?;
    } else if let Some(input) = input.filter(is_plain) {
        let last = page.messages.last().ok_or("(h) no message at all")?;
        let is_there = last.seq.is_none() && last.digest == input.digest && messages.len() == page.messages.len();
        is_there.then_some(()).ok_or("(h) the input is not the last message")?;
    }
    let is_selected = !matches!(&world.policy.select.sections, Sections::Only(list) if !list.is_empty());
    if page.mode != Mode::Full || !is_selected {
        return Ok(());
    }
    let shown: HashSet<Seq> = page.messages.iter().filter_map(|message| message.seq).collect();
    let is_empty = |entry: &recto::log::Counted| {
        let is_empty =
            |text: &str| if world.target.wire == Wire::Anthropic { text.trim().is_empty() } else { text.is_empty() };
        entry.shown().iter().all(|part| matches!(part, recto::Part::Text { text } if is_empty(text)))
    };
    let missing = world.log.back_by(Role::System).find(|entry| !is_empty(entry) && !shown.contains(&entry.seq));
    missing.map_or(Ok(()), |entry| Err(format!("(h) instructions {} are missing", entry.seq)))
}

/// Law 6: without a decision, what was acknowledged stands unchanged at the beginning of the next page, but for the
/// fragments, which are new at every call.
fn stable_prefix(previous: &[Digest], page: &[Digest]) -> Result<(), String> {
    let same = previous.iter().zip(page).take_while(|(old, new)| old == new).count();
    if same == previous.len() { Ok(()) } else { Err(format!("the prefix broke at message {same} without a decision")) }
}

/// The messages of a page that are history, or the input, which is history from now on.
fn history(called: &Called) -> Vec<Digest> {
    let page = called.compiled.as_ref().map(|compiled| &compiled.page);
    let messages = page.map(|page| page.messages.as_slice()).unwrap_or_default();
    let last = messages.len().wrapping_sub(1);
    let is_input = |at: usize| called.input.as_ref().is_some_and(|input| input.digest == messages[at].digest);
    let is_history = |at: usize| messages[at].seq.is_some() || (at == last && is_input(at));
    (0..messages.len()).filter(|&at| is_history(at)).map(|at| messages[at].digest).collect()
}

fn digest(log: &Log) -> Vec<Digest> {
    log.back().map(|entry| entry.digest).collect()
}

#[test]
fn every_compile_keeps_the_laws_a_to_j() {
    for_all(story(40), CASES, live);
}

#[test]
fn every_compile_in_blocks_keeps_the_laws_a_to_j() {
    for_all(story_in_blocks(40), CASES_IN_BLOCKS, live);
}

/// Each fault, the law that must catch it, and in how many of a thousand stories at least.
const CONTROLS: [(Fault, &str, u32); 12] = [
    (Fault::ResultLost, "(a)", 100),
    (Fault::FateLost, "(b)", 100),
    (Fault::OverBudget, "(c)", 100),
    (Fault::LogWritten, "(d)", 100),
    (Fault::PageVaries, "(e)", 100),
    (Fault::SentTwice, "(f)", 50),
    (Fault::InputLost, "(h)", 50),
    (Fault::InstructionsLost, "(h)", 50),
    (Fault::PlanForgotten, "(i)", 50),
    (Fault::PastForgotten, "(j)", 100),
    (Fault::PrefixChanged, "the prefix broke", 20),
    (Fault::PromiseBroken, "the plan promised", 20),
];

#[test]
fn every_law_catches_its_fault() {
    for (fault, law, least) in CONTROLS {
        let failures = samples(story(40), 1_000).filter_map(|story| live_with(&story, fault).err());
        let failures: Vec<String> = failures.collect();
        let caught = failures.iter().filter(|what| what.starts_with(law)).count();
        assert!(caught >= least as usize, "{fault:?}: {law} fails in {caught} stories only, {failures:.200?}");
    }
}

#[test]
fn a_secret_that_nobody_marked_is_found_by_the_check() {
    let leaks = std::cell::Cell::new(0);
    for story in samples(story(40), 4_000) {
        let mut world = World::new(&story);
        world.careless = true;
        for event in &story.events {
            if let Event::Call { input, .. } = event {
                let called = world.call(input.as_ref());
                if let Ok(compiled) = &called.compiled {
                    let body = wire::openai_chat::encode(&compiled.page, &world.target);
                    leaks.set(leaks.get() + u32::from(no_secret(&world, &called, &body).is_err()));
                }
            } else {
                world.happen(event);
            }
        }
    }
    assert!(leaks.get() > 10, "only {} leaks were noticed: the check for secrets can't fail", leaks.get());
}

/// What a fate is a case of.
fn case_of(why: &Reason) -> &'static str {
    match why {
        Reason::OrphanResult { .. } => "orphan",
        Reason::LateResult { .. } => "late",
        Reason::Duplicate { .. } => "doubled",
        Reason::BelowFloor { .. } => "floor",
        Reason::KeptByFloor { .. } => "kept by the floor",
        Reason::BeforeEdge { .. } => "edge",
        Reason::BeforeCursor { .. } => "delta",
        Reason::Compacted { .. } => "compacted",
        Reason::Removed { .. } => "removed",
        Reason::Excerpted { .. } => "excerpted",
        Reason::Condensed { .. } => "condensed",
        Reason::NotCondensed { .. } => "not condensed",
        Reason::Summarized { .. } => "folded",
        Reason::Status { .. } => "status",
        Reason::Pinned => "pinned",
        Reason::Empty => "empty",
        _ => "other",
    }
}

#[test]
fn the_stories_hold_what_they_promise() {
    let mut seen: BTreeMap<&str, u32> = BTreeMap::new();
    let mut stories = 0;
    for story in samples(story(40), 4_000) {
        stories += 1;
        let mut seen_here: HashSet<&str> = HashSet::new();
        let mut world = World::new(&story).with_notes();
        for event in &story.events {
            let Event::Call { input, succeeds } = event else {
                world.happen(event);
                continue;
            };
            let called = world.call(input.as_ref());
            let Ok(compiled) = &called.compiled else {
                seen_here.insert("overflow");
                continue;
            };
            for row in &compiled.receipt.fates {
                seen_here.insert(case_of(&row.why));
            }
            let missing = |it: &recto::receipt::Warning| matches!(it, recto::receipt::Warning::MissingResult { .. });
            if compiled.receipt.warnings.iter().any(missing) {
                seen_here.insert("missing");
            }
            if called.plan.edits.iter().any(|edit| matches!(edit.change, Change::Settle { .. })) {
                seen_here.insert("settled");
            }
            for edit in called.plan.edits.iter().filter(|edit| matches!(edit.change, Change::Cut { .. })) {
                seen_here.insert(if edit.why == Reason::MustFit { "a cut to fit" } else { "a cut that pays" });
            }
            if called.plan.waiting.is_some() {
                seen_here.insert("waiting");
            }
            if *succeeds {
                world.acknowledge(&called);
            }
        }
        seen_here.into_iter().for_each(|case| *seen.entry(case).or_default() += 1);
    }
    for kind in [
        "overflow",
        "orphan",
        "late",
        "doubled",
        "floor",
        "kept by the floor",
        "edge",
        "delta",
        "compacted",
        "removed",
        "excerpted",
        "condensed",
        "folded",
        "a cut to fit",
        "a cut that pays",
        "waiting",
        "status",
        "pinned",
        "empty",
        "missing",
        "settled",
    ] {
        // So frequent that no seed can miss one by chance.
        let count = seen.get(kind).copied().unwrap_or_default();
        assert!(count * CASE_STORIES_MAX >= stories, "{count} of {stories} stories have a case of {kind:?}: {seen:?}");
    }
}

#[test]
fn a_parted_pair_is_found_by_the_check() {
    let call = serde_json::json!({"role": "assistant", "tool_calls": [{"id": "a"}]});
    let result = serde_json::json!({"role": "tool", "tool_call_id": "a"});
    let user = serde_json::json!({"role": "user", "content": "hi"});
    assert!(check::pairs(&[call.clone(), result.clone(), user.clone()], false).is_ok());
    assert!(check::pairs(&[call.clone(), user.clone(), result.clone()], false).is_err());
    assert!(check::pairs(&[result.clone(), user], false).is_err());
    assert!(check::pairs(&[call.clone(), result.clone(), result], false).is_err());
    assert!(check::pairs(&[call], false).is_err());
}
