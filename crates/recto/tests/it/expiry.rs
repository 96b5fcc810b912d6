//! Expiry, lived through: ages, rules, overrides, batches, and what stands where something was.

mod meets; // expiry with windows, runs, overrides and the user's place
mod settings; // mistakes in settings
mod thresholds; // presets named after known thresholds

use recto::edit::Reason;
use recto::entry::{Call, EntryKind, Media, Part, Piece, RunId, ToolResult};
use recto::event::{Event, EventKind, Since, events};
use recto::expiry::{CompactMode, Expiry, ExpiryAction, ExpiryMode, ExpiryOverride, ExpiryRule, Setting};
use recto::note::Notes;
use recto::reduce::{Expire, Marker};
use recto::{
    Compiled, Entry, Log, Plan, Policy, Reader, Request, Role, Seq, Target, Tokenizer, Tokens, Wire, compile, plan,
};

/// A conversation that goes on and on: a token is four characters, nothing else costs anything.
pub(crate) struct Talk {
    pub(crate) log: Log,
    pub(crate) reader: Reader,
    pub(crate) policy: Policy,
    pub(crate) target: Target,
    pub(crate) over: Option<ExpiryOverride>,
    pub(crate) run: Option<RunId>,
    pub(crate) notes: Option<Notes>,
}

impl Talk {
    pub(crate) fn new(policy: Policy) -> Talk {
        let target = Target { tokenizer: Tokenizer::Chars4, message_overhead: Tokens(0), ..Target::eval() };
        let (log, reader) = (Log::counted_by(Tokenizer::Chars4), Reader::new("main"));
        Talk { log, reader, policy, target: target.with_window(None), over: None, run: None, notes: None }
    }

    pub(crate) fn expiring(expire: Expire) -> Talk {
        Talk::new(Policy::named("test").then(expire).immediately())
    }

    pub(crate) fn say(&mut self, entry: Entry) -> Seq {
        self.log.append(entry).unwrap()
    }

    /// A tool is called, and says this.
    pub(crate) fn result(&mut self, tool: &str, text: &str) -> Seq {
        let id = format!("call-{}", self.log.len());
        self.say(Entry::step("", [Call::new(&*id, tool, "{}")]));
        self.say(Entry::result(&*id, text))
    }

    pub(crate) fn request(&self) -> Request<'_> {
        let request = Request::new(&self.log, &self.reader, &self.policy, &self.target);
        let request = Request { notes: self.notes.as_ref(), ..request };
        Request { expiry: self.over.as_ref(), run: self.run.as_ref(), reserve: Some(Tokens(0)), ..request }
    }

    /// A call that goes well, and some words after it, so that nothing else is the newest.
    #[track_caller]
    pub(crate) fn call(&mut self) -> (Plan, Compiled) {
        let planned = plan(&self.request()).unwrap();
        let mut reader = self.reader.clone();
        reader.commit(planned.edits.clone(), self.policy.digest());
        let request = Request { reader: &reader, ..self.request() };
        assert_eq!(plan(&request).unwrap().edits, [], "planning again on its own result");
        let compiled = compile(&request).unwrap();
        reader.acknowledge(&compiled.receipt.ticket).unwrap();
        self.reader = reader;
        self.say(Entry::assistant("And?"));
        self.say(Entry::user("Go on."));
        (planned, compiled)
    }

    pub(crate) fn calls(&mut self, calls: usize) {
        (0..calls).for_each(|_| drop(self.call()));
    }

    /// What stands on the page of the next call for an entry; nothing if it isn't there.
    #[track_caller]
    pub(crate) fn shown(&mut self, seq: Seq) -> Option<String> {
        text_on(&self.call().1, seq)
    }

    pub(crate) fn events(&self) -> Vec<Event> {
        events(&self.reader, &self.log, Since::START).collect()
    }

    /// What was told of an entry beside that it came.
    pub(crate) fn told(&self, seq: Seq) -> Vec<EventKind> {
        let of = |event: &Event| (event.seq == Some(seq) && event.kind != EventKind::Added).then_some(event.kind);
        self.events().iter().filter_map(of).collect()
    }
}

pub(crate) fn text_on(compiled: &Compiled, seq: Seq) -> Option<String> {
    let message = compiled.page.messages.iter().find(|message| message.seq == Some(seq))?;
    let texts = message.parts.iter().map(|part| match part {
        Part::Text { text } => text.to_string(),
        Part::Result(result) => format!("{}", TextOf(result)),
        other => format!("{other:?}"),
    });
    Some(texts.collect::<Vec<_>>().join(" | "))
}

struct TextOf<'a>(&'a ToolResult);

impl std::fmt::Display for TextOf<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.content.iter().try_for_each(|piece| match piece {
            Piece::Text { text } => write!(f, "{text}"),
            Piece::Image(_) => write!(f, "<image>"),
        })
    }
}

pub(crate) fn held(kind: EntryKind, text: impl Into<recto::entry::Text>) -> Entry {
    Entry { kind: Some(kind), ..Entry::user(text) }
}

fn expiry(after: u32, action: ExpiryAction) -> Expiry {
    Expiry { after, action }
}

const FIRST: fn(u32) -> ExpiryAction = ExpiryAction::FirstChars;
const SHORT: [EventKind; 2] = [EventKind::Expired, EventKind::Compacted];
const GONE: [EventKind; 2] = [EventKind::Expired, EventKind::Removed];

fn is_mark(kind: EntryKind) -> bool {
    kind == EntryKind::ToolResult
}

/// Puts an entry of a kind into a talk.
fn put(talk: &mut Talk, kind: EntryKind, text: &str, own: Option<Expiry>) -> Seq {
    let entry = if is_mark(kind) {
        talk.say(Entry::step("", [Call::new("c", "Search", "{}")]));
        Entry::result("c", text)
    } else {
        Entry { tools: vec!["Search".into()], ..held(kind, text) }
    };
    talk.say(Entry { expiry: own, ..entry })
}

const KINDS: [EntryKind; 6] = [
    EntryKind::ToolResult,
    EntryKind::ActionResult,
    EntryKind::SubRunResult,
    EntryKind::LoopResult,
    EntryKind::Injection,
    EntryKind::RetryContext,
];

/// The age at which something is first shown otherwise, and how it is shown then; nothing within sixty calls.
fn changes_at(talk: &mut Talk, seq: Seq) -> Option<(u64, Option<String>)> {
    let whole = talk.log.get(seq).unwrap().original().clone();
    for age in 0..60 {
        let shown = talk.shown(seq);
        let is_whole = shown.as_deref().is_some_and(|shown| match &whole.parts[0] {
            Part::Text { text } => shown == &**text,
            Part::Result(result) => shown == TextOf(result).to_string(),
            other => panic!("{other:?}"),
        });
        if !is_whole {
            return Some((age, shown));
        }
    }
    None
}

#[test]
fn s21_a_long_result_is_shortened_once_and_stays_so() {
    let text = "x".repeat(5_000);
    let expected = format!(
        "{}...\n\n[Compacted: showing first 500 of 5000 characters. Agent can request expansion if needed.]",
        "x".repeat(500)
    );
    for kind in [EntryKind::ToolResult, EntryKind::ActionResult] {
        let expire = Expire { marker: Marker::Mj, ..Expire::first_chars(2, 500) };
        let mut talk = Talk::expiring(expire);
        talk.say(Entry::user("Look it up."));
        talk.calls(1);
        let seq = put(&mut talk, kind, &text, None);
        talk.say(Entry::user("And then?"));
        let page_of_turn_1 = talk.call().1.receipt.ticket;
        let before = talk.shown(seq).map(|text| text.len());
        for turn in 3..=53 {
            let shown = talk.shown(seq).unwrap();
            let is_cut = turn >= 4;
            assert_eq!(shown.chars().count(), if is_cut { 594 } else { 5_000 }, "{kind}, turn {turn}");
            assert!(!is_cut || shown == expected, "{kind}, turn {turn}: {shown}");
            assert_eq!(talk.told(seq), if is_cut { &SHORT[..] } else { &[] }, "{kind}, turn {turn}");
        }
        assert_eq!(before, Some(5_000));
        let event = talk.events().into_iter().find(|event| event.kind == EventKind::Compacted).unwrap();
        assert_eq!((event.turn.0, event.before, event.after), (4, Tokens(1_250), Tokens(149)));
        assert_eq!((event.saved(), event.can_expand), (Tokens(1_101), true));
        // The original is where it was, and on the pages of before.
        assert_eq!(talk.log.get(seq).unwrap().cost, Tokens(1_250));
        let (log, reader) = (talk.log.until(page_of_turn_1.head), talk.reader.as_of(&page_of_turn_1));
        let again = compile(&Request { log: &log, reader: &reader, ..talk.request() }).unwrap();
        assert_eq!(text_on(&again, seq).unwrap(), text);
        assert_eq!(again.receipt.ticket.page, page_of_turn_1.page);
    }
}

#[test]
fn s21_a_host_that_forgets_its_decisions_is_told_of_them_every_time() {
    // The negative control of the test above: without the record, the same is decided again and again.
    let mut talk = Talk::expiring(Expire::first_chars(0, 500));
    talk.say(Entry::user("Look it up."));
    let seq = talk.result("Search", &"x".repeat(5_000));
    talk.say(Entry::user("And then?"));
    talk.calls(1);
    let forgetful = talk.reader.clone();
    for _ in 0..5 {
        talk.reader = forgetful.clone();
        let (planned, _) = talk.call();
        assert_eq!(planned.edits.len(), 1);
        assert_eq!(talk.told(seq), SHORT);
    }
}

#[test]
fn s22_golden_ages() {
    let long = "y".repeat(2_000);
    for kind in KINDS {
        for (after, first) in [(0, 1), (1, 2), (3, 4), (7, 8)] {
            for action in [ExpiryAction::Remove, FIRST(50), ExpiryAction::HeadTail { head: 30, tail: 20 }] {
                // In the log before any call, and three calls later.
                for later in [0, 3] {
                    let mut talk = Talk::expiring(Expire::all(expiry(after, action)));
                    talk.say(Entry::user("Begin."));
                    talk.calls(later);
                    let seq = put(&mut talk, kind, &long, None);
                    talk.say(Entry::user("And then?"));
                    let (age, _) = changes_at(&mut talk, seq).unwrap();
                    assert_eq!(age, first, "{kind} after {after}, {action:?}, {later} calls later");
                    let due = talk.reader.decisions()[0].edit.due.unwrap();
                    assert_eq!(due.0, later as u64 + u64::from(after) + 1);
                }
            }
        }
        let mut talk = Talk::expiring(Expire::all(Expiry::NEVER));
        let seq = put(&mut talk, kind, &long, None);
        talk.say(Entry::user("And then?"));
        assert_eq!(changes_at(&mut talk, seq), None);
        assert!(talk.reader.decisions().is_empty());
    }
}

#[test]
fn s23_a_hundred_results_of_one_step_are_of_one_age() {
    let mut talk = Talk::expiring(Expire::first_chars(0, 10));
    talk.say(Entry::user("All of them."));
    talk.calls(1);
    let calls = (0..100).map(|at| Call::new(format!("c{at}"), "fetch", "{}"));
    talk.say(Entry::step("", calls.collect::<Vec<_>>()));
    // They come in another order than they were asked for.
    let seqs: Vec<Seq> = (0..100).rev().map(|at| talk.say(Entry::result(format!("c{at}"), "z".repeat(400)))).collect();
    talk.say(Entry::user("And then?"));
    assert!(seqs.iter().all(|seq| talk.reader.age(*seq) == 0));
    assert_eq!(talk.call().0.edits, []);
    assert!(seqs.iter().all(|seq| talk.reader.age(*seq) == 1));
    assert_eq!(talk.call().0.edits.len(), 100);
    let told: Vec<Seq> =
        talk.events().iter().filter(|it| it.kind == EventKind::Compacted).filter_map(|it| it.seq).collect();
    assert_eq!(told, seqs, "in the order of the log");
}

#[test]
fn s24_what_is_removed_is_told_of_and_stays_in_the_log() {
    let mut talk = Talk::expiring(Expire::all(expiry(1, ExpiryAction::Remove)));
    let asked = talk.say(Entry::user("Look around."));
    let first = talk.say(Entry { id: Some("first".into()), ..held(EntryKind::ActionResult, "a".repeat(800)) });
    let words = talk.say(Entry::assistant("I see."));
    let second = talk.result("look", &"b".repeat(800));
    let third = talk.say(held(EntryKind::SubRunResult, "c".repeat(800)));
    talk.say(Entry::user("And then?"));
    let bodies: Vec<_> = talk.log.back().map(|entry| entry.original().clone()).collect();
    talk.calls(2);
    let (_, compiled) = talk.call();
    assert_eq!(text_on(&compiled, first), None);
    assert_eq!(text_on(&compiled, third), None);
    // A call must have a result.
    assert_eq!(
        text_on(&compiled, second).unwrap(),
        format!("[removed: 800 characters of look result; recto_expand m{}]", second.0)
    );
    assert_eq!(text_on(&compiled, asked).unwrap(), "Look around.");
    assert_eq!(text_on(&compiled, words).unwrap(), "I see.");
    let told = talk.events().into_iter().filter(|event| GONE.contains(&event.kind));
    let told: Vec<(EventKind, Seq)> = told.map(|event| (event.kind, event.seq.unwrap())).collect();
    let expected = [first, second, third].into_iter().flat_map(|seq| GONE.map(|kind| (kind, seq)));
    assert_eq!(told, expected.collect::<Vec<_>>());
    let named = talk.events().into_iter().find(|event| event.kind == EventKind::Removed).unwrap();
    assert_eq!((named.id.unwrap().as_str(), named.after), ("first", Tokens(0)));
    let kept: Vec<_> = talk.log.back().map(|entry| entry.original().clone()).collect();
    assert_eq!(kept[kept.len() - bodies.len()..], bodies);
    let exported = serde_json::to_string(talk.log.get(first).unwrap().original()).unwrap();
    assert!(exported.contains(&"a".repeat(800)));
}

#[test]
fn s25_nothing_is_replaced_by_more() {
    for marker in [Marker::Mj, Marker::Recto] {
        for (chars, text) in
            [(500, "x".repeat(501)), (500, "x".repeat(500)), (500, "x".repeat(499)), (8, "😀".repeat(9))]
        {
            let mut talk = Talk::expiring(Expire { marker, ..Expire::first_chars(0, chars) });
            let seq = put(&mut talk, EntryKind::ActionResult, &text, None);
            talk.say(Entry::user("And then?"));
            assert_eq!(changes_at(&mut talk, seq), None, "{text}");
            assert_eq!(talk.told(seq), []);
            assert!(talk.reader.decisions().is_empty());
        }
    }
    let text = format!("{}😀{}", "a".repeat(499), "é".repeat(3_000));
    let mut talk = Talk::expiring(Expire { marker: Marker::Mj, ..Expire::first_chars(0, 500) });
    let seq = talk.result("read", &text);
    talk.say(Entry::user("And then?"));
    let (age, shown) = changes_at(&mut talk, seq).unwrap();
    let cut = format!("{}😀...\n\n[Compacted: showing first 500 of 3500 characters.", "a".repeat(499));
    assert_eq!((age, shown.unwrap().starts_with(&cut)), (1, true));
    assert!(matches!(talk.reader.decisions()[0].edit.why, Reason::Compacted { shown: 500, of: 3_500, .. }));
}

#[test]
fn both_ends_stay_where_they_are_asked_for() {
    let text: String = ('a'..='z').cycle().take(2_600).collect();
    let mut talk = Talk::expiring(Expire::all(expiry(0, ExpiryAction::HeadTail { head: 3, tail: 2 })));
    let seq = talk.result("read", &text);
    talk.say(Entry::user("And then?"));
    let (_, shown) = changes_at(&mut talk, seq).unwrap();
    let handle = format!("m{}", seq.0);
    let expected = format!("abc\n[… 2595 of 2600 characters of read result left out; recto_expand {handle} …]\nyz");
    assert_eq!(shown.unwrap(), expected);
    let why = &talk.reader.decisions()[0].edit.why;
    assert_eq!(why.to_string(), "expired after 1 calls (limit 0): first 3 and last 2 of 2600 characters");
}

/// An override, the age at which a result of {5 calls, first 300 characters} changes under it, and to how many of its
/// own characters.
type Case = (&'static str, Option<(u64, Option<usize>)>);

const OVERRIDES: [Case; 11] = [
    ("{}", Some((6, Some(300)))),
    (r#"{"after":null,"mode":null,"compact":null,"chars":null}"#, Some((6, Some(300)))),
    (r#"{"after":1}"#, Some((2, Some(300)))),
    (r#"{"after":9}"#, Some((10, Some(300)))),
    (r#"{"mode":"remove"}"#, Some((6, None))),
    (r#"{"mode":"never"}"#, None),
    (r#"{"chars":200}"#, Some((6, Some(200)))),
    (r#"{"after":0,"mode":"compact","compact":"head_tail"}"#, Some((1, Some(300)))),
    (r#"{"after":0,"mode":"compact","compact":"first_chars","chars":100}"#, Some((1, Some(100)))),
    (r#"{"disable":true}"#, None),
    (r#"{"disable":true,"after":0,"mode":"remove"}"#, None),
];

#[test]
fn s27_an_override_holds_for_every_kind_of_result_alike() {
    for kind in KINDS {
        for (json, expected) in OVERRIDES {
            for own in [false, true] {
                let settings = expiry(5, FIRST(300));
                let rules = ExpiryRule::of_kind(kind, settings);
                let expire = if own { Expire::by_rules([]) } else { Expire::by_rules([rules]) };
                let mut talk = Talk::expiring(expire);
                talk.over = Some(ExpiryOverride::from_json(json).unwrap());
                let seq = put(&mut talk, kind, &"§".repeat(4_000), own.then_some(settings));
                talk.say(Entry::user("And then?"));
                let changed = changes_at(&mut talk, seq);
                let kept = |shown: Option<String>| shown.map(|text| text.matches('§').count()).filter(|kept| *kept > 0);
                assert_eq!(changed.map(|(age, shown)| (age, kept(shown))), expected, "{kind} under {json}");
            }
        }
    }
}

#[test]
fn s27_an_override_makes_expire_what_was_configured_not_to() {
    let over = ExpiryOverride {
        after: Setting::Set(1),
        mode: Setting::Set(ExpiryMode::Compact),
        compact: Setting::Set(CompactMode::FirstChars),
        chars: Setting::Set(200),
        ..ExpiryOverride::default()
    };
    let mut talk = Talk::expiring(Expire::by_rules([]));
    talk.over = Some(over);
    let seq = talk.result("search", &"x".repeat(4_000));
    let words = talk.say(Entry::user("w".repeat(4_000)));
    talk.say(Entry::user("And then?"));
    let (age, _) = changes_at(&mut talk, seq).unwrap();
    assert_eq!(age, 2);
    // Words are no results: an override of results doesn't touch them.
    assert_eq!(changes_at(&mut talk, words), None);
}

#[test]
fn each_setting_comes_from_the_first_that_says_it() {
    let of_kind =
        ExpiryRule { after: Setting::Inherit, ..ExpiryRule::of_kind(EntryKind::ToolResult, expiry(0, FIRST(40))) };
    let of_tool = ExpiryRule { action: Setting::Inherit, ..ExpiryRule::of_tool("Ba*", expiry(3, FIRST(1))) };
    let of_both = ExpiryRule { kind: Some(EntryKind::SubRunResult), ..ExpiryRule::of_tool("*", expiry(1, FIRST(60))) };
    let rules = [of_kind, of_tool, of_both];
    let expire = || Expire { rules: rules.to_vec(), ..Expire::first_chars(7, 20) };
    let changed = |tool: &str, kind: Option<EntryKind>, own: Option<Expiry>, over: Option<ExpiryOverride>| {
        let mut talk = Talk::expiring(expire());
        talk.over = over;
        talk.say(Entry::step("", [Call::new("c", tool, "{}")]));
        let seq = talk.say(Entry { kind, expiry: own, ..Entry::result("c", "q".repeat(4_000)) });
        talk.say(Entry::user("And then?"));
        let (age, shown) = changes_at(&mut talk, seq).unwrap();
        (age - 1, shown.unwrap().find('\n').unwrap())
    };
    let over = ExpiryOverride { after: Setting::Set(2), ..ExpiryOverride::default() };
    assert_eq!(changed("Bash", None, None, None), (3, 40), "after by tool, action by kind");
    assert_eq!(changed("Read", None, None, None), (7, 40), "after by the pass, action by kind");
    assert_eq!(changed("Read", Some(EntryKind::LoopResult), None, None), (7, 20), "both by the pass");
    assert_eq!(changed("Read", Some(EntryKind::SubRunResult), None, None), (1, 60), "a rule of tool and kind");
    assert_eq!(changed("Bash", Some(EntryKind::SubRunResult), None, None), (3, 20), "the first rule that names it");
    assert_eq!(changed("Bash", None, Some(expiry(5, FIRST(90))), None), (5, 90), "its own");
    assert_eq!(
        changed("Bash", None, Some(expiry(5, FIRST(90))), Some(over.clone())),
        (2, 90),
        "the override, over its own"
    );
    assert_eq!(changed("Bash", None, None, Some(over)), (2, 40), "the override, over the rules");
}

#[test]
fn s28_of_a_batch_the_earliest_holds_that_expires_at_all() {
    use ExpiryAction::{HeadTail, Never, Remove};
    let table = [
        (vec![(1, Never), (5, Remove), (3, FIRST(200))], Some((3, FIRST(200)))),
        (vec![(3, Remove), (3, FIRST(200))], Some((3, Remove))),
        (vec![(3, FIRST(200)), (3, Remove)], Some((3, Remove))),
        (vec![(3, FIRST(200)), (3, FIRST(100))], Some((3, FIRST(100)))),
        (vec![(3, HeadTail { head: 50, tail: 50 }), (3, FIRST(100))], Some((3, FIRST(100)))),
        (vec![(3, HeadTail { head: 50, tail: 49 }), (3, FIRST(100))], Some((3, HeadTail { head: 50, tail: 49 }))),
        (vec![(2, FIRST(900)), (3, Remove)], Some((2, FIRST(900)))),
        (vec![(0, Never), (0, Never)], None),
        (vec![], None),
    ];
    for (members, expected) in table {
        let members: Vec<Expiry> = members.into_iter().map(|(after, action)| expiry(after, action)).collect();
        let expected = expected.map(|(after, action)| expiry(after, action));
        assert_eq!(Expiry::of_batch(members.clone()), expected, "{members:?}");
        let backwards = members.iter().rev().copied();
        assert_eq!(Expiry::of_batch(backwards), expected, "{members:?}, backwards");
        // The same where rules say it of the tools of one entry.
        let names: Vec<_> = (0..members.len()).map(|at| format!("tool-{at}").into()).collect();
        let rules = std::iter::zip(&names, &members)
            .map(|(name, it): (&recto::entry::Text, _)| ExpiryRule::of_tool(name.clone(), *it));
        let mut talk = Talk::expiring(Expire::by_rules(rules));
        let seq = talk.say(Entry { tools: names, ..held(EntryKind::ActionResult, "r".repeat(4_000)) });
        talk.say(Entry::user("And then?"));
        let age = changes_at(&mut talk, seq).map(|(age, _)| age);
        assert_eq!(age, expected.map(|it| u64::from(it.after) + 1), "{members:?}");
    }
}

#[test]
fn s32_what_is_no_plain_text_is_shortened_by_its_canonical_text() {
    let picture = || Media { url: "https://example.org/a.png".into(), name: None, detail: None };
    let payload = r#"{ "b": [1,  2], "a": "é" }"#;
    let parts = [
        Part::text("t".repeat(400)),
        Part::Image(picture()),
        Part::Opaque { provider: "openai".into(), payload: payload.into() },
        Part::text("u".repeat(4_000)),
    ];
    let mut talk = Talk::expiring(Expire::first_chars(0, 440));
    let entry = Entry { kind: Some(EntryKind::ActionResult), ..Entry::new(Role::User, parts.clone()) };
    (talk.target.provider, talk.target.wire) = ("openai".into(), Wire::OpenaiResponses);
    let seq = talk.say(entry);
    let pieces = vec![
        Piece::Text { text: "p".repeat(300).into() },
        Piece::Image(picture()),
        Piece::Text { text: "q".repeat(300).into() },
    ];
    talk.say(Entry::step("", [Call::new("c", "look", "{}")]));
    let result = talk
        .say(Entry::new(Role::Tool, [Part::Result(ToolResult { call: "c".into(), content: pieces, is_error: false })]));
    talk.say(Entry::user("And then?"));
    talk.calls(1);
    for turn in 1..60 {
        let (planned, compiled) = talk.call();
        assert_eq!(planned.edits.is_empty(), turn > 1, "{:?}", planned.edits);
        let shown = text_on(&compiled, seq).unwrap();
        let canonical = format!("{}\n[image]\n{}\nuuuuuu", "t".repeat(400), r#"{"a":"é","b":[1,2]}"#);
        let start: String = canonical.chars().take(440).collect();
        let of = 400 + 1 + 7 + 1 + 19 + 1 + 4_000;
        let marker = format!("[… first 440 of {of} characters of action result; recto_expand m{}]", seq.0);
        assert!(shown.starts_with(&start) && shown.ends_with(&marker), "{shown}");
        let shown = text_on(&compiled, result).unwrap();
        assert!(
            shown.starts_with(&format!("{}\n[image]\n{}\n[… first 440 of 609", "p".repeat(300), "q".repeat(131))),
            "{shown}"
        );
    }
    // One thing has happened to each, whatever parts it had.
    assert_eq!(talk.told(seq), SHORT);
    assert_eq!(talk.told(result), SHORT);
    let compacted = talk.events().into_iter().find(|it| it.kind == EventKind::Compacted).unwrap();
    assert_eq!(compacted.before, talk.log.get(seq).unwrap().cost);
    assert_eq!(&*talk.log.get(seq).unwrap().original().parts, &parts, "the parts are in the log, not a text");
}
