//! The log: appending and forking share all of the past, sums and walks equal the plain ones, and what no page could
//! hold is refused.

use proptest::collection::vec;
use proptest::prelude::*;
use recto::entry::{Arguments, Call, Media, Piece, Reasoning, Redaction, Section, ToolResult};
use recto::log::{Counted, Sums};
use recto::{Entry, Error, Lane, Log, Part, Role, Seq, Span, Tokenizer, Tokens};
use std::sync::Arc;

const MILLION: u64 = 1_000_000;
/// A stack on which a recursion of some thousand frames would not fit.
const SMALL_STACK_BYTES: usize = 64 * 1024;

fn million() -> Log {
    let mut log = Log::counted_by(Tokenizer::Bytes4);
    let roles = [Role::User, Role::Assistant, Role::Assistant];
    let entries = roles.map(|role| Entry::new(role, [Part::text("word")]));
    for at in 0..MILLION {
        log.append(entries[(at % 3) as usize].clone()).unwrap();
    }
    log
}

/// Places that lie near both ends, in the middle, and at odd steps between.
fn samples() -> impl Iterator<Item = Seq> {
    let ends = [0, 1, 2, 3, MILLION / 2, MILLION - 3, MILLION - 2, MILLION - 1];
    ends.into_iter().chain((0..MILLION).step_by(9_973)).map(Seq)
}

fn is_same(one: &Log, other: &Log, seq: Seq) -> bool {
    std::ptr::eq(one.get(seq).unwrap(), other.get(seq).unwrap())
}

#[test]
fn appending_to_a_million_entries_copies_nothing() {
    let mut log = million();
    let before = log.clone();
    assert_eq!(log.append(Entry::user("one more")).unwrap(), Seq(MILLION));
    assert_eq!((log.len(), log.head()), (MILLION + 1, Some(Seq(MILLION))));
    assert_eq!((before.len(), before.head()), (MILLION, Some(Seq(MILLION - 1))));
    assert!(before.get(Seq(MILLION)).is_none());
    assert!(samples().all(|seq| is_same(&log, &before, seq)));

    // A fork from the middle goes its own way, on the same past.
    let middle = Seq(MILLION / 2);
    let mut fork = log.until(Some(middle));
    assert_eq!((fork.len(), fork.head()), (MILLION / 2 + 1, Some(middle)));
    assert_eq!(fork.append(Entry::user("another way")).unwrap(), middle.next());
    assert!(samples().filter(|&seq| seq <= middle).all(|seq| is_same(&log, &fork, seq)));
    assert!(!is_same(&log, &fork, middle.next()));
    assert_eq!(log.len(), MILLION + 1);
    let whole = Span { first: Seq(0), last: Seq(MILLION) };
    assert_eq!(log.total(whole), Sums { entries: MILLION + 1, tokens: Tokens(MILLION + 2) });
}

#[test]
fn a_million_entries_are_dropped_on_a_small_stack() {
    let log = million();
    let fork = log.until(Some(Seq(MILLION / 3)));
    let drop_it = move || {
        drop(log);
        let is_left = fork.get(Seq(7)).is_some();
        drop(fork);
        is_left
    };
    let thread = std::thread::Builder::new().stack_size(SMALL_STACK_BYTES).spawn(drop_it).unwrap();
    assert!(thread.join().unwrap(), "the fork must outlive the log it came from");
}

fn entries() -> impl Strategy<Value = Vec<Entry>> {
    let role = prop_oneof![Just(Role::System), Just(Role::User), Just(Role::Assistant), Just(Role::Tool)];
    let section = prop_oneof![Just("messages"), Just("notes"), Just("plans")];
    let entry = (role, section, any::<bool>(), 0usize..60, prop::bool::weighted(0.1)).prop_map(
        |(role, section, is_trace, length, edge)| {
            let text: Arc<str> = "x".repeat(length).into();
            let part = match role {
                Role::Tool => Part::Result(ToolResult::text("a", text)),
                _ => Part::Text { text },
            };
            let lane = if is_trace { Lane::Trace } else { Lane::Talk };
            Entry { section: Section::from(section), lane, edge, ..Entry::new(role, [part]) }
        },
    );
    vec(entry, 0..120)
}

/// The same facts in a plain list, which every answer is compared with.
struct Plain {
    entries: Vec<Entry>,
}

impl Plain {
    fn until(&self, head: Option<Seq>) -> Plain {
        let upto = head.map_or(0, |seq| seq.0 as usize + 1);
        Plain { entries: self.entries.iter().take(upto).cloned().collect() }
    }

    fn seqs(&self, wanted: impl Fn(&Entry) -> bool) -> Vec<Seq> {
        let all = self.entries.iter().enumerate().filter(|(_, entry)| wanted(entry));
        all.map(|(at, _)| Seq(at as u64)).collect()
    }

    fn sums(&self, span: Span, wanted: impl Fn(&Entry) -> bool) -> Sums {
        let within = self.seqs(wanted).into_iter().filter(|&seq| span.contains(seq));
        let cost = |seq: Seq| match &self.entries[seq.0 as usize].parts[0] {
            Part::Text { text } => text.len().div_ceil(4) as u64,
            Part::Result(result) => result.chars().div_ceil(4) as u64,
            other => panic!("no entry here holds {other:?}"),
        };
        within.fold(Sums::default(), |sums, seq| sums + Sums { entries: 1, tokens: Tokens(cost(seq)) })
    }
}

fn reversed(mut seqs: Vec<Seq>) -> Vec<Seq> {
    seqs.reverse();
    seqs
}

/// Asks a log everything, and the plain list the same.
fn check(log: &Log, plain: &Plain, spans: &[(u64, u64)]) -> Result<(), TestCaseError> {
    let seqs = |walk: &mut dyn Iterator<Item = &Counted>| walk.map(|entry| entry.seq).collect::<Vec<_>>();
    let count = plain.entries.len() as u64;
    prop_assert_eq!((log.len(), log.is_empty()), (count, count == 0));
    prop_assert_eq!(log.head(), count.checked_sub(1).map(Seq));
    prop_assert_eq!(log.edge(), plain.seqs(|entry| entry.edge).last().copied());
    prop_assert_eq!(seqs(&mut log.back()), reversed(plain.seqs(|_| true)));
    for role in [Role::System, Role::User, Role::Assistant, Role::Tool] {
        let own = plain.seqs(|entry| entry.role == role);
        prop_assert_eq!(seqs(&mut log.back_by(role)), reversed(own.clone()));
        for from in 0..count + 2 {
            let first = log.first_by(role, Seq(from)).map(|entry| entry.seq);
            prop_assert_eq!(first, own.iter().copied().find(|seq| seq.0 >= from));
        }
    }
    for at in 0..count + 2 {
        let found = log.get(Seq(at)).map(|entry| (entry.seq, entry.original()));
        prop_assert_eq!(found, plain.entries.get(at as usize).map(|entry| (Seq(at), entry)));
    }
    for &(first, last) in spans {
        let span = Span { first: Seq(first), last: Seq(last) };
        prop_assert_eq!(log.total(span), plain.sums(span, |_| true));
        for lane in [Lane::Talk, Lane::Trace] {
            prop_assert_eq!(log.cost(lane, span), plain.sums(span, |entry| entry.lane == lane));
        }
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn every_answer_equals_that_of_a_plain_list(
        entries in entries(),
        spans in vec((0u64..130, 0u64..130), 1..20),
        heads in vec(prop::option::of(0u64..130), 1..4),
    ) {
        let mut log = Log::counted_by(Tokenizer::Bytes4);
        for (at, entry) in entries.iter().enumerate() {
            prop_assert_eq!(log.append(entry.clone()).unwrap(), Seq(at as u64));
        }
        let plain = Plain { entries };
        check(&log, &plain, &spans)?;
        for head in heads {
            let (fork, past) = (log.until(head.map(Seq)), plain.until(head.map(Seq)));
            check(&fork, &past, &spans)?;
            for entry in fork.back() {
                prop_assert!(is_same(&log, &fork, entry.seq));
            }
        }
    }
}

/// What cannot be appended, and what the log says to it.
fn refused(entry: Entry) -> String {
    let mut log = Log::counted_by(Tokenizer::Bytes4);
    log.append(Entry::user("before")).unwrap();
    let snapshot = |log: &Log| {
        let seqs: Vec<_> = log.back().map(|entry| (entry.seq, entry.digest)).collect();
        (log.len(), log.head(), log.edge(), seqs, log.total(Span { first: Seq(0), last: Seq(9) }))
    };
    let before = snapshot(&log);
    let error: Error = log.append(entry.clone()).unwrap_err();
    assert_eq!(snapshot(&log), before, "a refusal must leave the log as it was");
    assert!(!error.is_settings() && !error.is_defect() && error.overflow().is_none());
    // What can't be appended can't be drafted either, for the same reason.
    assert_eq!(log.draft(entry).unwrap_err().to_string(), error.to_string());
    assert_eq!(log.append(Entry::user("after")).unwrap(), Seq(1));
    error.to_string()
}

fn call(id: &str) -> Part {
    Part::Call(Call::new(id, "look", "{}"))
}

fn result(id: &str) -> Part {
    Part::Result(ToolResult::text(id, "found"))
}

#[test]
fn an_entry_that_no_page_could_hold_is_refused() {
    let said = |role, parts: Vec<Part>| refused(Entry { edge: true, ..Entry::new(role, parts) });
    let thought = || Part::Reasoning(Reasoning::default());
    let answers = [
        said(Role::Tool, vec![]),
        said(Role::Tool, vec![result("a"), result("b")]),
        said(Role::Tool, vec![Part::text("found")]),
        said(Role::Tool, vec![call("a")]),
        said(Role::User, vec![Part::text("hi"), call("a")]),
        said(Role::System, vec![call("a")]),
        said(Role::User, vec![thought()]),
        said(Role::User, vec![result("a")]),
        said(Role::Assistant, vec![Part::text("hi"), result("a")]),
        said(Role::Assistant, vec![call("a"), call("b"), call("a")]),
        said(Role::User, vec![Part::text("x"); 10_001]),
    ];
    expect_test::expect![[r#"
        tool entry: 0 parts; it holds exactly one result
        tool entry: 2 parts; it holds exactly one result
        tool entry: a part that is no result
        tool entry: a call; only an assistant makes calls
        user entry: a call; only an assistant makes calls
        system entry: a call; only an assistant makes calls
        user entry: reasoning; only an assistant reasons
        user entry: a result; results stand in tool entries
        assistant entry: a result; results stand in tool entries
        assistant entry: call id "a" stands twice in one step
        user entry: 10001 parts; at most 10000 are taken"#]]
    .assert_eq(&answers.join("\n"));
}

fn redacted(parts: Vec<Part>, part: usize, piece: usize, range: std::ops::Range<usize>) -> Entry {
    let role = if matches!(parts[0], Part::Result(_)) { Role::Tool } else { Role::Assistant };
    let redaction = Redaction { part, piece, start: range.start, end: range.end, label: "[key]".into() };
    Entry { redactions: vec![redaction], ..Entry::new(role, parts) }
}

#[test]
fn a_redaction_outside_the_text_or_inside_a_character_is_refused() {
    let text = || vec![Part::text("a🔑b")];
    let media = Media { url: "https://example.org/key.png".into(), name: None, detail: None };
    let picture = || {
        let content = vec![Piece::Text { text: "see".into() }, Piece::Image(media.clone())];
        vec![Part::Result(ToolResult { call: "a".into(), content, is_error: false })]
    };
    let wrong = [
        redacted(text(), 0, 0, 0..7),
        redacted(text(), 0, 0, 7..9),
        redacted(text(), 0, 0, 2..5),
        redacted(text(), 0, 0, 1..3),
        redacted(text(), 0, 0, 1..1),
        redacted(text(), 1, 0, 0..1),
        redacted(text(), 0, 1, 0..1),
        redacted(picture(), 0, 1, 0..1),
        redacted(picture(), 0, 2, 0..1),
        redacted(vec![Part::Image(media.clone())], 0, 0, 0..1),
    ];
    for entry in wrong {
        let said = refused(entry);
        assert!(said.ends_with("lies outside the text, or cuts a character"), "{said}");
    }
}

#[test]
fn a_redaction_that_fits_is_never_shown() {
    let arguments = Call { arguments: Arguments::Object("{\"key\":\"🔑\"}".into()), ..Call::new("a", "look", "") };
    let thought = Reasoning { text: "is it 🔑?".into(), ..Reasoning::default() };
    let cases = [
        (redacted(vec![Part::text("a🔑b")], 0, 0, 1..5), "a[key]b"),
        (redacted(vec![Part::text("🔑")], 0, 0, 0..4), "[key]"),
        (redacted(vec![Part::Reasoning(thought)], 0, 0, 6..10), "is it [key]?"),
        (redacted(vec![Part::Call(arguments)], 0, 0, 8..12), "[key]"),
        (redacted(vec![Part::Result(ToolResult::text("a", "the 🔑"))], 0, 0, 4..8), "the [key]"),
    ];
    for (entry, expected) in cases {
        let mut log = Log::counted_by(Tokenizer::Bytes4);
        let seq = log.append(entry.clone()).unwrap();
        let counted = log.get(seq).unwrap();
        let shown = format!("{:?}", counted.shown());
        assert!(shown.contains(expected) && !shown.contains('🔑'), "{shown}");
        assert_eq!(*counted.original(), entry);
    }
}
