//! Events: everything that was decided is told, once, in order, and nothing else.

use crate::expiry::{Talk, held};
use expect_test::expect;
use recto::edit::{Change, Handle};
use recto::entry::{EntryKind, Lane};
use recto::event::{Event, EventKind, Listener, Since, events};
use recto::expand::{Ask, expand};
use recto::reduce::{CapOutput, Expire, Grain, TokenLimit};
use recto::{Entry, Policy, Request, Seq, Span, Tokens};

/// The example is run as it stands.
#[path = "../../examples/savings.rs"]
mod savings;

#[test]
fn the_example_tells_every_event_and_what_was_saved() {
    savings::main().unwrap();
    let told = savings::told().unwrap();
    let compacted: Vec<&str> = told.lines().filter(|line| line.contains("] compacted: ")).collect();
    assert_eq!(compacted, ["[Turn 2] compacted: expired after 2 calls (limit 1): first 200 of 5290 characters"]);
    assert!(told.lines().all(|line| line.starts_with("[Turn ") || line.ends_with(" in every call from then on")));
    // The result is two thousand tokens, and its beginning less than a hundred.
    assert!(told.ends_with("\n2 091 tokens saved in every call from then on"), "{told}");
}

fn lines(events: impl IntoIterator<Item = Event>) -> String {
    events.into_iter().map(|event| format!("{event}\n")).collect()
}

/// A talk in which about everything happens that can be told of.
fn eventful() -> Talk {
    let expire = Expire { finished_runs: true, ..Expire::first_chars(1, 40) };
    let limit = TokenLimit { tokens: Tokens(900), slack: Tokens(0), grain: Grain::Exchange };
    let policy = Policy::named("all").then(CapOutput::to(3_000)).then(expire).then(limit);
    let mut talk = Talk::new(policy.immediately());
    talk.say(Entry::user("Look it up."));
    let result = talk.result("search", &"s".repeat(2_000));
    talk.say(Entry { tools: vec!["a".into(), "b".into()], ..held(EntryKind::ActionResult, "r".repeat(900)) });
    talk.say(Entry { lane: Lane::Trace, run: Some("over".into()), ..Entry::assistant("t".repeat(300)) });
    talk.say(Entry::user("And then?"));
    talk.calls(3);
    let request = Request::new(&talk.log, &talk.reader, &talk.policy, &talk.target);
    let expansion = expand(&request, &Ask::whole(Handle::entry(result)).because("item 47")).unwrap();
    talk.reader.commit(expansion.edits, talk.policy.digest());
    talk.calls(1);
    talk.reader.revert(2).unwrap();
    talk.reader.pin(Span::one(Seq(0)));
    talk.result("fetch", &"f".repeat(9_000));
    talk.calls(4);
    talk
}

#[test]
fn everything_is_told_in_order() {
    let talk = eventful();
    let all: Vec<Event> = events(&talk.reader, &talk.log, Since::START).collect();
    let turns: Vec<u64> = all.iter().map(|event| event.turn.0).collect();
    assert!(turns.is_sorted(), "{turns:?}");
    let ordinals: Vec<u64> = all.iter().filter_map(|event| event.ordinal).collect();
    assert!(ordinals.is_sorted(), "{ordinals:?}");
    // Every entry, every call and every decision is told of; a multipart one could be told together with another.
    let of = |kind| all.iter().filter(|event| event.kind == kind).count() as u64;
    assert_eq!(of(EventKind::Added), talk.log.len());
    assert_eq!(of(EventKind::Acked), talk.reader.turn().0);
    let told: std::collections::BTreeSet<u64> = ordinals.into_iter().collect();
    assert_eq!(told, (1..=talk.reader.ordinal()).collect());
    for kind in [
        EventKind::Expired,
        EventKind::Compacted,
        EventKind::Removed,
        EventKind::Floor,
        EventKind::Pinned,
        EventKind::Expanded,
        EventKind::Reverted,
    ] {
        assert!(of(kind) > 0, "no {kind}");
    }
    assert_eq!(
        of(EventKind::Expired),
        talk.reader.decisions().iter().filter(|it| &*it.edit.by == "expire").count() as u64
    );
    // What has expired is told of right before what became of it.
    for pair in all.windows(2).filter(|pair| pair[0].kind == EventKind::Expired) {
        assert_eq!((pair[0].seq, pair[0].ordinal), (pair[1].seq, pair[1].ordinal));
        assert!(matches!(pair[1].kind, EventKind::Compacted | EventKind::Removed), "{}", pair[1]);
        assert_eq!(pair[0].saved(), Tokens(0));
    }
}

#[test]
fn an_event_is_a_line() {
    let talk = eventful();
    let told = events(&talk.reader, &talk.log, Since::START).filter(|event| event.turn.0 < 5);
    expect![[r#"
        [Turn 0] added: user message
        [Turn 0] added: assistant message
        [Turn 0] added: tool result
        [Turn 0] added: 2 action results
        [Turn 0] added: assistant message
        [Turn 0] added: user message
        [Turn 0] acked: the call was answered
        [Turn 1] added: assistant message
        [Turn 1] added: user message
        [Turn 1] acked: the call was answered
        [Turn 2] added: assistant message
        [Turn 2] added: user message
        [Turn 2] expired: expired after 2 calls (limit 1): first 40 of 2000 characters
        [Turn 2] compacted: expired after 2 calls (limit 1): first 40 of 2000 characters
        [Turn 2] expired: expired after 2 calls (limit 1): first 40 of 900 characters
        [Turn 2] compacted: expired after 2 calls (limit 1): first 40 of 900 characters
        [Turn 2] expired: expired after 2 calls (limit 1)
        [Turn 2] removed: expired after 2 calls (limit 1)
        [Turn 2] acked: the call was answered
        [Turn 3] added: assistant message
        [Turn 3] added: user message
        [Turn 3] expanded: expanded before call 3: item 47
        [Turn 3] acked: the call was answered
        [Turn 4] added: assistant message
        [Turn 4] added: user message
        [Turn 4] added: assistant message
        [Turn 4] added: tool result
        [Turn 4] reverted: expired after 2 calls (limit 1): first 40 of 900 characters
        [Turn 4] pinned: pinned
        [Turn 4] compacted: 9000 characters, 3000 are shown
        [Turn 4] acked: the call was answered
    "#]]
    .assert_eq(&lines(told));
}

#[test]
fn what_was_told_is_not_told_again() {
    let talk = eventful();
    let all = lines(talk.events());
    // A talk that is heard at every step tells the same as one that is heard at the end.
    for tickets in 0..=talk.reader.turn().0 {
        let mut heard = Vec::new();
        let mut listener = Listener::new(|event: &Event| heard.push(event.clone()));
        let head = tickets.checked_sub(1).and_then(|call| heads(&talk)[call as usize]);
        let past = talk.log.until(head);
        let ticket =
            recto::receipt::Ticket { head, turn: recto::edit::Turn(tickets), ordinal: u64::MAX, ..ticket(&talk) };
        let ordinal = talk.reader.decisions().iter().filter(|it| it.turn.0 < tickets).map(|it| it.ordinal).max();
        let reverts = talk.reader.decisions().iter().filter_map(|it| it.reverted).filter(|it| it.turn.0 < tickets);
        let ordinal = ordinal.max(reverts.map(|it| it.ordinal).max()).unwrap_or(0);
        let reader = talk.reader.as_of(&recto::receipt::Ticket { ordinal, ..ticket });
        listener.hear(&reader, &past);
        listener.hear(&reader, &past);
        listener.hear(&talk.reader, &talk.log);
        drop(listener);
        assert_eq!(lines(heard), all, "heard after {tickets} calls");
    }
    // Without a function nothing happens.
    Listener::none().hear(&talk.reader, &talk.log);
    let now = Since::now(&talk.reader, &talk.log);
    assert_eq!(events(&talk.reader, &talk.log, now).count(), 0);
}

/// The heads of the log at each call, as the entries that came tell them.
fn heads(talk: &Talk) -> Vec<Option<Seq>> {
    let came = |call: u64| {
        let added = talk.events().into_iter().filter(|it| it.kind == EventKind::Added && it.turn.0 <= call);
        added.filter_map(|it| it.seq).max()
    };
    (0..talk.reader.turn().0).map(came).collect()
}

fn ticket(talk: &Talk) -> recto::receipt::Ticket {
    let request = Request::new(&talk.log, &talk.reader, &talk.policy, &talk.target);
    recto::compile(&request).unwrap().receipt.ticket
}

#[test]
fn a_total_of_what_was_saved_counts_nothing_twice() {
    let mut talk = Talk::expiring(Expire::first_chars(0, 40));
    for _ in 0..3 {
        talk.result("search", &"s".repeat(2_000));
    }
    talk.say(Entry::user("And then?"));
    talk.calls(9);
    let saved: Tokens = talk.events().iter().map(Event::saved).sum();
    let decided: Tokens = talk.reader.decisions().iter().map(|it| it.edit.before - it.edit.after).sum();
    assert_eq!((saved, talk.reader.decisions().len()), (decided, 3));
    assert!(talk.events().iter().filter(|it| it.saved() > Tokens(0)).all(|it| it.can_expand));
    // An event is data, too.
    let event = talk.events().into_iter().find(|it| it.kind == EventKind::Compacted).unwrap();
    let json = serde_json::to_value(&event).unwrap();
    assert_eq!(json["type"], "compacted");
    assert_eq!(json["why"]["reason"]["reason"], "compacted");
    assert!(talk.reader.decisions().iter().all(|it| matches!(it.edit.change, Change::Replace { .. })));
    let refused = Event::told(EventKind::ExpandRefused, event.turn, event.seq, "it is not reduced");
    assert_eq!(refused.to_string(), format!("[Turn {}] expand_refused: it is not reduced", event.turn.0));
}

/// What all events together say was saved is what the pages have less, also where the changes waited for a cut.
#[test]
fn a_cut_is_told_and_counts_nothing_twice() {
    let target = recto::Target::eval();
    let mut policy = Policy::named("waits").then(Expire::first_chars(1, 40));
    policy.patience = recto::pays::Patience { start: Tokens(0), margin: Tokens(0), percent: 1, brake: None };
    let mut log = recto::Log::counted_by(target.tokenizer);
    for turn in 0..12 {
        log.append(Entry::user(format!("question {turn}"))).unwrap();
        let id = format!("c{turn}");
        log.append(Entry::step("", [recto::entry::Call::new(&*id, "look", "{}")])).unwrap();
        log.append(Entry::result(&*id, format!("finding {turn} ").repeat(200))).unwrap();
    }
    let mut replay = recto::Replay::new(&log, &policy, &target);
    let last = replay.by_ref().last().unwrap().compiled.unwrap();
    let told: Vec<Event> = events(replay.reader(), &log, Since::START).collect();
    assert!(told.iter().any(|event| event.kind == EventKind::Cut), "nothing was cut");
    let saved: Tokens = told.iter().map(Event::saved).sum();
    assert!(saved > Tokens(0));
    assert_eq!(saved, last.receipt.savings.less);
}
