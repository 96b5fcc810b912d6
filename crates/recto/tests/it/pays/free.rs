//! Moments at which a change costs nothing, and targets with rules of their own.

use super::{BARE, Host, expiring, long, whole};
use recto::edit::Reason;
use recto::entry::{Part, Reasoning};
use recto::fragment::{Fragment, Fragments};
use recto::page::Mode;
use recto::policy::{Policy, Stale};
use recto::receipt::{Fate, Full};
use recto::target::{Caching, EditsPast, Memory, Reasoned};
use recto::tool::Tools;
use recto::{Entry, Role, Seq, Session, Tokenizer, Tokens, Wire};

fn tools(names: &[&str]) -> Option<Tools> {
    let tool = |name: &&str| format!(r#"{{"type":"function","function":{{"name":"{name}"}}}}"#).into();
    Some(Tools::counted(names.iter().map(tool), &Tokenizer::Chars4))
}

fn fragments(texts: &[&str]) -> Option<Fragments> {
    let fixed = texts.iter().enumerate().map(|(nth, text)| Fragment::fixed(format!("head-{nth}"), *text));
    Some(Fragments::counted(fixed, &Tokenizer::Chars4).unwrap())
}

/// A story in which two results wait, up to the call at which something happens; returns what went at that call.
fn when(happens: impl FnOnce(&mut Host)) -> (Host, Vec<Seq>) {
    let mut host = Host::new(expiring(BARE));
    host.tools = tools(&["look", "read"]);
    host.fragments = fragments(&["You are terse.", "You are kind."]);
    host.last = Some(("eval".into(), 10));
    let first = host.uses("look", "{}", &long(2_000));
    let second = host.uses("look", "{}", &long(400));
    for _ in 0..6 {
        assert_eq!(host.turn(100), []);
    }
    assert_eq!(host.last().receipt.savings.waiting.unwrap().candidates, 2);
    happens(&mut host);
    let went = host.turn(100).iter().map(|edit| edit.change.seq()).collect::<Vec<_>>();
    assert!(went.is_empty() || went == [Seq(first.0 - 1), first, second], "{went:?}");
    (host, went)
}

#[track_caller]
fn is_free(happens: impl FnOnce(&mut Host)) {
    let (mut host, went) = when(happens);
    assert_eq!(went.len(), 3, "nothing went");
    assert!(matches!(host.cuts()[..], [(6, _, Reason::CacheIsCold)]), "{:?}", host.cuts());
    let cut = &host.reader.decisions()[0].edit;
    assert_eq!((cut.before, cut.after), (Tokens(0), Tokens(0)), "nothing that was held is written again");
    // It has cost nothing, so what it saves is saved from the first call on.
    let receipt = host.last().receipt.clone();
    assert_eq!(receipt.savings.usd_so_far, 0.0);
    host.turn(100);
    let saved = host.last().receipt.savings.usd_so_far;
    let read = if host.target.cache.kind == Caching::Off { 1.0 } else { 0.1 };
    assert!((saved - receipt.savings.less.0 as f64 * read / 1e6).abs() < 1e-12, "{saved}");
}

#[test]
fn when_the_cache_is_cold_everything_that_is_due_goes() {
    is_free(|host| host.last = Some(("eval".into(), 301)));
    is_free(|host| host.last = Some(("another".into(), 10)));
    is_free(|host| host.tools = tools(&["look"]));
    is_free(|host| host.tools = None);
    is_free(|host| host.fragments = fragments(&["You are verbose.", "You are kind."]));
    is_free(|host| host.fragments = fragments(&["You are terse.", "You are rude."]));
    is_free(|host| host.fragments = fragments(&["You are terse.", "You are kind.", "You are old."]));
    is_free(|host| host.fragments = fragments(&["You are terse."]));
    is_free(|host| host.fragments = None);
    is_free(|host| host.target.cache.kind = Caching::Off);
}

#[test]
fn while_the_cache_is_warm_the_same_waits() {
    let waits = |happens: fn(&mut Host)| {
        let (host, went) = when(happens);
        assert_eq!((went.len(), host.cuts().len()), (0, 0));
        assert_eq!(host.last().receipt.savings.waiting.unwrap().candidates, 2);
    };
    waits(|_| {});
    waits(|host| host.last = Some(("eval".into(), 300)));
    waits(|host| host.last = None);
    // What stands at the end changes at every call anyway.
    waits(|host| {
        let mut all: Vec<Fragment> =
            host.fragments.iter().flat_map(Fragments::list).map(|it| it.fragment.clone()).collect();
        all.push(Fragment::dynamic("todos", "- one"));
        host.fragments = Some(Fragments::counted(all, &Tokenizer::Chars4).unwrap());
    });
}

/// An agent that thinks before it answers; its provider seals that.
fn thinker(edits_past: EditsPast) -> Host {
    let mut host = Host::new(expiring(BARE));
    host.target = host.target.over(Wire::Anthropic);
    (host.target.reasoning, host.target.edits_past) = (Reasoned::Sealed, edits_past);
    host.target.prices.output = 5.0;
    host
}

fn thought(nth: usize) -> Part {
    let text = format!("{nth:<4}").repeat(20).into();
    let (provider, signature) = (Some("openai".into()), Some("c2VhbGVk".into()));
    Part::Reasoning(Reasoning { text, provider, signature, ..Reasoning::default() })
}

/// A call that is answered with a thought and some words, or with a thought and a call that is answered.
fn thinks(host: &mut Host, is_open: bool) -> Vec<recto::edit::Edit> {
    let edits = host.call();
    let (nth, binding) = (host.past.len(), host.last().page.binding());
    let id = format!("call-t{nth}");
    let (then, words) = match is_open {
        true => (Part::Call(recto::entry::Call::new(&*id, "look", "{}")), Entry::result(&*id, "It is there.")),
        false => (Part::text(long(30)), Entry::user("On")),
    };
    host.say(Entry::new(Role::Assistant, [thought(nth), then]).bound_to(binding));
    host.say(words);
    edits
}

fn thoughts(host: &Host) -> usize {
    let parts = host.last().page.messages.iter().flat_map(|message| message.parts.iter());
    parts.filter(|part| matches!(part, Part::Reasoning(_))).count()
}

#[test]
fn x26_a_cut_that_costs_reasoning_waits_for_its_price_too() {
    let first_cut = |edits_past| {
        let mut host = thinker(edits_past);
        host.uses("look", "{}", &long(2_000));
        host.say(Entry::assistant("Well."));
        host.say(Entry::user("And?"));
        let calls = (0..100).take_while(|_| thinks(&mut host, false).is_empty()).count();
        let cuts = host.cuts();
        let [(turn, _, Reason::Pays { rent, cost })] = &cuts[..] else { panic!("{cuts:?}") };
        let edit = &host.reader.decisions()[1].edit;
        let saves = edit.before - edit.after;
        assert_eq!(*rent, whole(saves.0 as f64 * 0.1 * (turn - 3) as f64));
        let held = &host.past[calls - 1].1.page.messages;
        let behind: Tokens = held.iter().skip(1).map(|message| message.cost).sum();
        // A thought of twenty tokens was held of every answer but the last, which nobody has seen yet.
        let again = if edits_past == EditsPast::Free { 0.0 } else { 5.0 * 20.0 * (calls - 1) as f64 };
        assert_eq!(*cost, whole((behind - saves).0 as f64 * 1.15 + again));
        (host, calls)
    };
    let (free, early) = first_cut(EditsPast::Free);
    let (bound, late) = first_cut(EditsPast::DropsLaterReasoning);
    assert!(early < late, "{early} {late}");
    // What it was paid for: all that was thought behind the cut is gone, and on the receipt.
    assert_eq!((thoughts(&free), thoughts(&bound)), (early, 0));
    let gone = bound.last().receipt.fates.iter().filter(|row| row.why == Reason::PrefixChanged);
    assert_eq!(gone.filter(|row| row.fate == Fate::Changed).count(), late);
}

#[test]
fn x26_reasoning_that_is_gone_is_not_paid_for_again() {
    let mut host = thinker(EditsPast::DropsLaterReasoning);
    host.uses("look", "{}", &long(2_000));
    host.say(Entry::user("And?"));
    let first = (0..100).take_while(|_| thinks(&mut host, false).is_empty()).count();
    host.uses("look", "{}", &long(4_000));
    host.say(Entry::user("And?"));
    let more = (0..100).take_while(|_| thinks(&mut host, false).is_empty()).count();
    let cuts = host.cuts();
    let [_, (turn, from, Reason::Pays { cost, .. })] = &cuts[..] else { panic!("{cuts:?}") };
    assert_eq!(*turn as usize, first + 1 + more);
    let edit = &host.reader.decisions().last().unwrap().edit;
    let held = host.past[*turn as usize - 1].1.page.messages.iter().filter(|message| message.seq >= Some(*from));
    let behind: Tokens = held.clone().map(|message| message.cost).sum();
    let kept = held.flat_map(|it| it.parts.iter()).filter(|part| matches!(part, Part::Reasoning(_))).count();
    assert!(kept > 0);
    assert_eq!(*cost, whole((behind - (edit.before - edit.after)).0 as f64 * 1.15 + 5.0 * 20.0 * kept as f64));
}

#[test]
fn x26_nothing_is_cut_in_an_open_round_however_much_it_pays() {
    for edits_past in [EditsPast::DropsLaterReasoning, EditsPast::Free] {
        let mut host = thinker(edits_past);
        host.uses("look", "{}", &long(4_000));
        let open: Vec<usize> = (0..40).filter(|_| !thinks(&mut host, true).is_empty()).collect();
        let binds = edits_past == EditsPast::DropsLaterReasoning;
        assert_eq!(open.is_empty(), binds, "{open:?}");
        host.say(Entry::assistant("Done."));
        host.say(Entry::user("And now?"));
        assert_eq!(thinks(&mut host, false).is_empty(), !binds, "the round is over, and it has paid long since");
    }
}

#[test]
fn what_a_session_holds_waits_for_no_moment() {
    let live = |policy: Policy| {
        let mut host = Host::new(policy);
        (host.target.memory, host.session) = (Memory::Session, Some(Session::default()));
        host.uses("look", "{}", &long(2_000));
        (0..60).for_each(|_| drop(host.turn(20)));
        host
    };
    let keeping = |mut policy: Policy| {
        policy.stale = Stale::Keep;
        policy
    };
    let host = live(keeping(expiring(BARE)));
    assert!(host.reader.decisions().is_empty(), "{:?}", host.reader.decisions());
    assert!(host.past.iter().all(|(planned, _)| planned.waiting.is_none()));
    // At once is at once, though the provider holds what it holds.
    let host = live(keeping(expiring(BARE).immediately()));
    assert_eq!(host.reader.decisions().len(), 1);
    // Told everything again, once that has paid for writing all of it anew; and then never again.
    let host = live(expiring(BARE));
    assert_eq!(host.cuts().len(), 1);
    let full: Vec<usize> = (0..60).filter(|nth| host.past[*nth].1.page.mode == Mode::Full).collect();
    let [0, at] = full[..] else { panic!("{full:?}") };
    let (planned, compiled) = &host.past[at];
    assert!(matches!(compiled.receipt.full, Some(Full::Stale { entries: 1, .. })), "{:?}", compiled.receipt.full);
    let Some(Reason::Pays { rent, cost }) =
        planned.edits.iter().map(|edit| &edit.why).find(|why| matches!(why, Reason::Pays { .. }))
    else {
        panic!("{:?}", planned.edits)
    };
    let written = planned.edits.iter().find(|edit| matches!(edit.why, Reason::Pays { .. })).unwrap().after;
    assert_eq!(*cost, whole(written.0 as f64 * 1.15), "the whole page is written anew");
    assert!(rent >= cost);
    // The control: a provider that remembers nothing.
    let mut host = Host::new(expiring(BARE));
    host.uses("look", "{}", &long(2_000));
    (0..60).for_each(|_| drop(host.turn(20)));
    assert_eq!(host.cuts().len(), 1);
}
