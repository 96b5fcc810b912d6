//! A provider that remembers, simulated: what it holds and what a page sends are together all that the reader is shown,
//! each once, over many turns with calls given up, entries of others in mid-call, changed prompts and re-seeds.

use recto::digest::Digest;
use recto::edit::Reason;
use recto::entry::Call;
use recto::fragment::{Fragment, Fragments};
use recto::page::{Message, Mode, Page};
use recto::policy::{Pass, Stale};
use recto::receipt::{FateRow, FragmentFate, Full};
use recto::target::{Instructions, Memory};
use recto::{Compiled, Entry, Part, Request, Role, Seq, Span, Tokenizer, compile};
use recto_testkit::property::{for_all, samples};
use recto_testkit::story::{Event, Story, Words, story};
use recto_testkit::world::{Called, World};
use std::collections::{BTreeMap, HashMap, HashSet};

const CASES: u32 = 4_000;

/// Which message of which entry: a step's stand-ins for results have no entry of their own.
type Key = (Seq, Role, Option<String>);

/// What the host gets wrong, for a law that can't fail proves nothing.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Slip {
    None,
    /// Its cursor stands one entry too far.
    CursorTooFar,
    /// It forgets what the provider made itself.
    ProducedUntold,
}

/// The provider, as far as its memory goes.
#[derive(Default)]
struct Provider {
    memory: Vec<(Key, Digest)>,
    /// The static prompts that it was told, by their texts as they stand now.
    fixed: BTreeMap<String, String>,
}

fn key(message: &Message) -> Option<Key> {
    let call = message.parts.iter().find_map(|part| match part {
        Part::Result(result) => Some(result.call.to_string()),
        _ => None,
    });
    // Instructions may stand in the user's place, and a late result as a note.
    let role = if message.role == Role::System { Role::User } else { message.role };
    message.seq.map(|seq| (seq, role, call))
}

fn said(page: &Page) -> Vec<(Key, Digest)> {
    page.messages.iter().filter_map(|message| Some((key(message)?, message.digest))).collect()
}

fn prompts(nth: u64) -> Fragments {
    let list = [
        Fragment::fixed("identity", "You look things up."),
        Fragment::fixed("tools", format!("Tools of edition {}.", nth / 4)),
        Fragment::dynamic("todos", format!("- task {nth}")),
        Fragment::dynamic("nothing", ""),
    ];
    Fragments::counted(list, &Tokenizer::Chars4).unwrap()
}

fn holds(page: &Page, text: &str) -> usize {
    let is_it = |part: &Part| matches!(part, Part::Text { text: it } if it.ends_with(text));
    page.messages.iter().filter(|message| message.seq.is_none() && message.parts.iter().any(is_it)).count()
}

/// Every prompt that says something stands once on a page that is sent, unless the provider holds it as it is.
fn prompts_are_told(world: &World, compiled: &Compiled, provider: &Provider) -> Result<(), String> {
    let replaced = world.target.instructions == Instructions::Replaced;
    for (row, it) in compiled.receipt.fragments.iter().zip(world.fragments.as_ref().unwrap().list()) {
        let (id, text) = (&*row.id, &*it.fragment.content);
        let is_held = provider.fixed.get(id).is_some_and(|held| held == text) && compiled.page.mode != Mode::Full;
        let expected = match row.fate {
            FragmentFate::Empty | FragmentFate::Shed | FragmentFate::Unsent => 0,
            FragmentFate::Held if is_held && !replaced => 0,
            FragmentFate::StaticChanged if !is_held && !replaced => 1,
            FragmentFate::Shown if replaced || !is_held => 1,
            fate => return Err(format!("fragment {id} is {fate:?}, held: {is_held}")),
        };
        let found = holds(&compiled.page, text);
        if found != expected && !text.is_empty() {
            return Err(format!("fragment {id} ({:?}) stands {found} times", row.fate));
        }
    }
    Ok(())
}

/// The row that speaks of an entry: its own, or that of the run it lies in.
fn row<'r>(world: &World, compiled: &'r Compiled, seq: Seq) -> Option<&'r FateRow> {
    let entry = world.log.get(seq)?.original();
    let lies_in =
        |row: &&FateRow| row.span.contains(seq) && row.scope.as_ref().is_none_or(|scope| scope.contains(entry));
    let own = compiled.receipt.fates.iter().find(|row| row.span == Span::one(seq));
    own.or_else(|| compiled.receipt.fates.iter().find(lies_in))
}

/// Memory and page together are what the full page says, each once and in order.
fn is_exactly_once(world: &World, called: &Called, compiled: &Compiled, provider: &Provider) -> Result<(), String> {
    let whole =
        compile(&Request { session: None, ..world.request(called.input.as_ref()) }).map_err(|e| e.to_string())?;
    let expected = said(&whole.page);
    let order: HashMap<&Key, usize> = expected.iter().enumerate().map(|(at, (key, _))| (key, at)).collect();
    let sent = said(&compiled.page);
    let places: Vec<Option<&usize>> = sent.iter().map(|(key, _)| order.get(key)).collect();
    if places.iter().any(Option::is_none) || !places.is_sorted() {
        return Err(format!("the page sends {sent:?}, the whole is {expected:?}"));
    }
    let held: &[(Key, Digest)] = if compiled.page.mode == Mode::Full { &[] } else { &provider.memory };
    let mut all: HashMap<&Key, Digest> = HashMap::new();
    for (key, digest) in held.iter().chain(&sent) {
        if all.insert(key, *digest).is_some() {
            return Err(format!("{key:?} is told twice"));
        }
    }
    let is_stale =
        |seq: Seq| row(world, compiled, seq).is_some_and(|row| matches!(row.why, Reason::RemoteStale { .. }));
    let is_system = |seq: Seq| world.log.get(seq).is_some_and(|entry| entry.role() == Role::System);
    for (key, digest) in &expected {
        match all.get(key) {
            None => return Err(format!("{key:?} is never told ({:?})", compiled.page.mode)),
            Some(told) if told != digest && !is_stale(key.0) && !is_system(key.0) => {
                return Err(format!("{key:?} is held otherwise: {:?}", row(world, compiled, key.0)));
            }
            Some(_) => {}
        }
    }
    for (key, _) in held.iter().filter(|(key, _)| !order.contains_key(key)) {
        let row = row(world, compiled, key.0);
        let is_decided = |why: &Reason| matches!(why, Reason::BelowFloor { .. } | Reason::Removed { .. });
        if row.is_some_and(|row| is_decided(&row.why)) {
            return Err(format!("{key:?} is read by the provider, and the receipt says {row:?}"));
        }
    }
    Ok(())
}

fn words(text: String) -> Words {
    Words { text, has_secret: false }
}

/// The call goes well; meanwhile somebody else may speak, and the provider says and does things of its own.
fn goes_well(world: &mut World, called: &Called, compiled: &Compiled, provider: &mut Provider, nth: u64, slip: Slip) {
    if compiled.page.mode == Mode::Full {
        *provider = Provider::default();
    }
    provider.memory.extend(said(&compiled.page));
    for it in
        world.fragments.as_ref().unwrap().list().iter().filter(|it| holds(&compiled.page, &it.fragment.content) > 0)
    {
        provider.fixed.insert(it.fragment.id.to_string(), it.fragment.content.to_string());
    }
    if nth % 3 == 1 {
        world.happen(&Event::User(words(format!("by the way {nth}"))));
    }
    world.acknowledge(called);
    if let Some(input) = &called.input {
        let seq = world.log.head().unwrap();
        provider.memory.push(((seq, Role::User, None), input.digest));
    }
    let mut made = vec![Entry::assistant(format!("answer {nth}"))];
    if nth.is_multiple_of(2) {
        let id = format!("own-{nth}");
        let result = Entry::result(id.as_str(), format!("found {nth}: {}", "many words ".repeat(20)));
        made.splice(0..0, [Entry::step("", [Call::new(id.as_str(), "look", "{}")]), result]);
    }
    let seqs: Vec<Seq> = made.into_iter().map(|entry| world.log.append(entry).unwrap()).collect();
    for seq in &seqs {
        let entry = world.log.get(*seq).unwrap();
        let call = entry.original().parts.iter().find_map(|part| match part {
            Part::Result(result) => Some(result.call.to_string()),
            _ => None,
        });
        provider.memory.push(((*seq, entry.role(), call), entry.digest));
    }
    match slip {
        Slip::None => world.session.acknowledge(None, seqs),
        Slip::ProducedUntold => {}
        Slip::CursorTooFar => world.session.acknowledge(seqs.last().map(|seq| Seq(seq.0 + 1)), []),
    }
}

/// Lives through a story with a provider that remembers; returns why everything was sent, each time it was.
fn live(story: &Story, slip: Slip) -> Result<Vec<Full>, String> {
    let mut story = Story { remembers: true, has_fragments: true, ..story.clone() };
    // A session that is kept knows of its floor only where it lies. Behind a fold another floor may lie at the same place
    // and name less; if that is taken back, the note is not told. So notes are looked at where such a session ends.
    if story.policy.stale == Stale::Keep {
        story.policy.reduce.retain(|step| !matches!(step.pass(), Pass::Fold(_)));
    }
    let mut world = World::new(&story).with_notes();
    let (mut provider, mut full) = (Provider::default(), Vec::new());
    let mut nth = 0;
    for event in &story.events {
        let Event::Call { input, succeeds } = event else {
            world.happen(event);
            continue;
        };
        nth += 1;
        world.fragments = Some(prompts(nth));
        let called = world.call(input.as_ref());
        let Ok(compiled) = &called.compiled else { continue };
        let is_sent = compiled.page.mode != Mode::NothingNew;
        if is_sent == compiled.page.messages.is_empty() && compiled.page.mode != Mode::Full {
            return Err(format!("{:?} with {} messages", compiled.page.mode, compiled.page.messages.len()));
        }
        if (compiled.page.mode == Mode::Full) != compiled.receipt.full.is_some() {
            return Err(format!("{:?} for {:?}", compiled.page.mode, compiled.receipt.full));
        }
        full.extend(compiled.receipt.full);
        is_exactly_once(&world, &called, compiled, &provider)?;
        prompts_are_told(&world, compiled, &provider)?;
        if *succeeds && is_sent {
            goes_well(&mut world, &called, compiled, &mut provider, nth, slip);
        }
    }
    assert_eq!(world.target.memory, Memory::Session);
    Ok(full)
}

/// Checks that a provider that remembers reads everything once.
pub(crate) fn check(story: &Story) -> Result<(), String> {
    live(story, Slip::None).map(drop)
}

#[test]
fn what_a_provider_remembers_and_what_it_is_sent_is_everything_once() {
    for_all(story(40), CASES, check);
}

#[test]
fn a_cursor_that_is_off_by_one_is_caught_and_every_reason_for_a_full_page_occurs() {
    let (mut too_far, mut untold, mut reasons) = (0, 0, HashSet::new());
    for story in samples(story(40), 1_500) {
        too_far += u32::from(live(&story, Slip::CursorTooFar).is_err());
        untold += u32::from(live(&story, Slip::ProducedUntold).is_err());
        let full = live(&story, Slip::None).unwrap_or_else(|what| panic!("{what}"));
        reasons.extend(full.into_iter().map(|why| std::mem::discriminant(&why)));
    }
    assert!(too_far > 100, "only {too_far} lost entries were noticed");
    assert!(untold > 100, "only {untold} doubled entries were noticed");
    // No session, stale, restored.
    assert!(reasons.len() >= 3, "only {} reasons", reasons.len());
}
