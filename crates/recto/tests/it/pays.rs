//! What pays: what waits, for how long, and what it waits for; lived through call by call.

mod free; // moments at which a change costs nothing, and targets with rules of their own
mod money; // what was saved, by the receipts

use recto::edit::{Change, Edit, Reason, Turn};
use recto::entry::{Call, Piece};
use recto::fragment::Fragments;
use recto::page::{Message, Page};
use recto::pays::{Patience, Waiting};
use recto::policy::{Apply, Step};
use recto::reduce::{Candidate, Excerpt, Expire, FitWindow, Reduce};
use recto::request::LastCall;
use recto::tool::Tools;
use recto::view::View;
use recto::{
    Compiled, Entry, Log, Part, Plan, Policy, Reader, Request, Seq, Session, Target, Tokenizer, Tokens, compile, plan,
};

/// A host of one agent: a token is four characters, nothing costs overhead, a cached token costs a tenth and a written
/// one five quarters.
pub(crate) struct Host {
    pub(crate) log: Log,
    pub(crate) reader: Reader,
    pub(crate) policy: Policy,
    pub(crate) target: Target,
    pub(crate) tools: Option<Tools>,
    pub(crate) fragments: Option<Fragments>,
    pub(crate) session: Option<Session>,
    /// The model of the call before, and how many seconds ago that was.
    pub(crate) last: Option<(String, u64)>,
    /// Every call so far: what was planned for it, and what came out.
    pub(crate) past: Vec<(Plan, Compiled)>,
}

impl Host {
    pub(crate) fn new(policy: Policy) -> Host {
        let target = Target { tokenizer: Tokenizer::Chars4, message_overhead: Tokens(0), ..Target::eval() };
        let mut log = Log::counted_by(Tokenizer::Chars4);
        log.append(Entry::user("Do it.")).unwrap();
        Host {
            log,
            reader: Reader::new("main"),
            policy,
            target: target.with_window(None),
            tools: None,
            fragments: None,
            session: None,
            last: None,
            past: Vec::new(),
        }
    }

    pub(crate) fn say(&mut self, entry: Entry) -> Seq {
        self.log.append(entry).unwrap()
    }

    /// A tool is called with these arguments, and says this; returns where that stands.
    pub(crate) fn uses(&mut self, tool: &str, arguments: &str, result: &str) -> Seq {
        let id = format!("call-{}", self.log.len());
        self.say(Entry::step("", [Call::new(&*id, tool, arguments)]));
        self.say(Entry::result(&*id, result))
    }

    pub(crate) fn request(&self) -> Request<'_> {
        Request {
            reserve: Some(Tokens(0)),
            tools: self.tools.as_ref(),
            fragments: self.fragments.as_ref(),
            session: self.session.as_ref(),
            previous: self.past.last().map(|(_, compiled)| &compiled.page),
            last_call: self.last.as_ref().map(|(model, idle)| LastCall { model, idle_seconds: *idle }),
            ..Request::new(&self.log, &self.reader, &self.policy, &self.target)
        }
    }

    /// A call that goes well; returns what was decided for it.
    #[track_caller]
    pub(crate) fn call(&mut self) -> Vec<Edit> {
        let planned = plan(&self.request()).unwrap();
        self.reader.commit(planned.edits.clone(), self.policy.digest());
        assert_eq!(plan(&self.request()).unwrap().edits, [], "planning again on its own result");
        let compiled = compile(&self.request()).unwrap().told(planned.clone());
        self.reader.acknowledge(&compiled.receipt.ticket).unwrap();
        if let Some(session) = &mut self.session {
            session.sent(&compiled);
        }
        let edits = planned.edits.clone();
        self.past.push((planned, compiled));
        edits
    }

    /// A call, and an answer to it of so many tokens, in two messages so that nothing of before is the newest.
    #[track_caller]
    pub(crate) fn turn(&mut self, tokens: usize) -> Vec<Edit> {
        let edits = self.call();
        let nth = self.past.len();
        self.say(Entry::assistant(format!("{nth:<4}").repeat(tokens)));
        self.say(Entry::user("On"));
        edits
    }

    pub(crate) fn last(&self) -> &Compiled {
        &self.past.last().unwrap().1
    }

    /// What the last page says at the place of an entry.
    pub(crate) fn shown(&self, seq: Seq) -> Option<String> {
        text_at(&self.last().page, seq)
    }

    /// The cuts so far: when, where and why.
    pub(crate) fn cuts(&self) -> Vec<(u64, Seq, Reason)> {
        let cuts = self.reader.decisions().iter().filter(|it| matches!(it.edit.change, Change::Cut { .. }));
        cuts.map(|it| (it.turn.0, it.edit.change.seq(), it.edit.why.clone())).collect()
    }

    /// Every page so far compiles again to the same.
    #[track_caller]
    pub(crate) fn remembers(&self) {
        for (_, past) in &self.past {
            let ticket = &past.receipt.ticket;
            let (log, reader) = (self.log.until(ticket.head), self.reader.as_of(ticket));
            let again = compile(&Request { log: &log, reader: &reader, previous: None, ..self.request() }).unwrap();
            assert_eq!(again.page.messages, past.page.messages, "turn {}", ticket.turn.0);
        }
    }
}

/// What a page says at the place of an entry: its texts, arguments, thoughts and results.
pub(crate) fn text_at(page: &Page, seq: Seq) -> Option<String> {
    let message = page.messages.iter().find(|message| message.seq == Some(seq))?;
    let texts = message.parts.iter().map(|part| match part {
        Part::Text { text } => text.to_string(),
        Part::Reasoning(it) => it.text.to_string(),
        Part::Call(call) => call.arguments.as_str().to_string(),
        Part::Result(result) => match &result.content[..] {
            [Piece::Text { text }] => text.to_string(),
            other => format!("{other:?}"),
        },
        other => format!("{other:?}"),
    });
    Some(texts.collect::<Vec<_>>().join("\n"))
}

/// Waits by these numbers alone: no start, no more than what the cut costs.
pub(crate) const BARE: Patience = Patience { start: Tokens(0), percent: 100, margin: Tokens(0), brake: None };

/// A policy that lets results keep 200 characters after two calls, when that pays.
fn expiring(patience: Patience) -> Policy {
    waiting(Expire::first_chars(2, 200), patience)
}

fn waiting(pass: impl Into<Step>, patience: Patience) -> Policy {
    let mut policy = Policy::named("test").then(pass);
    policy.patience = patience;
    policy
}

/// A text of so many tokens.
fn long(tokens: usize) -> String {
    "abc ".repeat(tokens)
}

/// One thing that may go, as the test works it out from decisions and turn numbers.
#[derive(Clone, Copy, Debug)]
struct Due {
    /// The message that the cache would be broken at.
    step: Seq,
    saves: u64,
    turn: u64,
}

/// What is due at a turn, if it was not made yet: by the decisions that were made in the end.
fn due_at(host: &Host, turn: u64) -> Vec<Due> {
    let made = host.reader.decisions().iter().filter(|it| !matches!(it.edit.change, Change::Cut { .. }));
    let open = made.filter(|it| it.turn.0 >= turn && it.edit.due.unwrap().0 <= turn);
    let due = open.map(|it| Due {
        step: Seq(it.edit.change.seq().0 - 1),
        saves: (it.edit.before - it.edit.after).0,
        turn: it.edit.due.unwrap().0,
    });
    due.collect()
}

/// The best cut at a turn by the formula: its place, its rent and its cost.
fn best_cut(host: &Host, due: &[Due], turn: u64, started: u64, percent: f64) -> Option<(Seq, f64, f64)> {
    let held = &host.past[turn as usize - 1].1.page.messages;
    let cuts = due.iter().map(|at| {
        let behind: u64 = held.iter().filter(|message| message.seq >= Some(at.step)).map(|it| it.cost.0).sum();
        let goes = || due.iter().filter(|it| it.step >= at.step);
        let saves: u64 = goes().map(|it| it.saves).sum();
        let rent: f64 = goes().map(|it| it.saves as f64 * 0.1 * turn.saturating_sub(it.turn.max(started)) as f64).sum();
        (at.step, rent, (behind - saves) as f64 * (1.25 - 0.1))
    });
    let surplus = |cut: &(Seq, f64, f64)| cut.1 - cut.2 * percent / 100.0;
    cuts.max_by(|one, other| surplus(one).total_cmp(&surplus(other)).then(one.0.cmp(&other.0)))
}

fn whole(tokens: f64) -> Tokens {
    Tokens(tokens.round() as u64)
}

/// Two results that expire, one after the other; answers of so many tokens follow, up to the first cut.
fn until_cut(patience: Patience, calls: usize) -> (Host, [Seq; 3]) {
    let mut host = Host::new(expiring(patience));
    let first = host.uses("look", "{}", &long(2_000));
    (0..3).for_each(|_| drop(host.turn(100)));
    let second = host.uses("look", "{}", &long(700));
    let turns = (3..calls).take_while(|_| host.turn(100).is_empty()).count();
    assert!(turns + 3 < calls, "it never paid");
    // One that is too young to go.
    let third = host.uses("look", "{}", &long(700));
    host.turn(100);
    (host, [first, second, third])
}

#[track_caller]
fn waits_by_the_formula(patience: Patience) -> Host {
    let (host, [first, second, third]) = until_cut(patience, 200);
    let [(cut, from, why)] = &host.cuts()[..] else { panic!("{:?}", host.cuts()) };
    let started = |host: &Host| {
        let is_small = |past: &&(Plan, Compiled)| {
            let last = past.1.receipt.ticket.head.unwrap();
            host.log.total(recto::Span { first: Seq(0), last }).tokens < patience.start
        };
        host.past.iter().take_while(is_small).count() as u64
    };
    let started = started(&host);
    let percent = f64::from(patience.percent);
    for turn in 1..=*cut {
        let due = due_at(&host, turn);
        let (planned, compiled) = &host.past[turn as usize];
        let Some((at, rent, cost)) = best_cut(&host, &due, turn, started, percent) else {
            assert_eq!(planned.waiting, None, "nothing is due at turn {turn}");
            continue;
        };
        let pays = rent - cost * percent / 100.0 > patience.margin.0 as f64;
        assert_eq!(pays && turn >= started, turn == *cut, "turn {turn}: {rent} {cost}");
        let (rent, cost) = (whole(rent), whole(cost));
        if turn == *cut {
            assert_eq!((&at, &Reason::Pays { rent, cost }), (from, why));
            assert_eq!((planned.waiting, compiled.receipt.savings.waiting), (None, None));
        } else {
            let saves = Tokens(due.iter().map(|it| it.saves).sum());
            let waits = Waiting { candidates: due.len(), saves, rent, cost };
            assert_eq!(compiled.receipt.savings.waiting, Some(waits), "turn {turn}");
            assert_eq!(planned.edits, []);
        }
    }
    // Everything that was due went at once, and nothing else did.
    let went: Vec<Seq> = host.past[*cut as usize].0.edits.iter().map(|edit| edit.change.seq()).collect();
    assert_eq!(went, [Seq(first.0 - 1), first, second]);
    assert_eq!(host.shown(third), Some(long(700)));
    host
}

#[test]
fn x22_what_expires_waits_until_its_rent_is_more_than_the_cut_costs() {
    let host = waits_by_the_formula(BARE);
    let (bare, ..) = host.cuts()[0];
    // The numbers of the policy make it wait longer.
    let (percent, margin) = (140, Tokens(400));
    let (more, ..) = waits_by_the_formula(Patience { percent, ..BARE }).cuts()[0];
    let (most, ..) = waits_by_the_formula(Patience { percent, margin, ..BARE }).cuts()[0];
    assert!(bare < more && more < most, "{bare} {more} {most}");
    waits_by_the_formula(Patience { start: Tokens(0), ..Patience::default() });
}

fn digests(page: &Page) -> Vec<recto::digest::Digest> {
    page.messages.iter().map(|message: &Message| message.digest).collect()
}

#[test]
fn x22_pages_carry_on_but_for_the_call_of_a_cut() {
    let (mut host, _) = until_cut(BARE, 200);
    (0..60).for_each(|_| drop(host.turn(5)));
    let cuts: Vec<(u64, Seq)> = host.cuts().into_iter().map(|(turn, from, _)| (turn, from)).collect();
    assert!(cuts.len() >= 2, "{cuts:?}");
    for (turn, pair) in (1..).zip(host.past.windows(2)) {
        let [before, after] = [&pair[0].1, &pair[1].1];
        let same = digests(&before.page).into_iter().zip(digests(&after.page)).take_while(|(one, other)| one == other);
        let (same, all) = (same.count(), before.page.messages.len());
        match cuts.iter().find(|(at, _)| *at == turn) {
            None => assert_eq!((same, after.receipt.prefix.broken_at), (all, None), "turn {turn}"),
            // The cut names the step whose result is the first to change.
            Some((_, from)) => {
                assert!(same < all);
                assert_eq!(after.receipt.prefix.broken_at, Some(from.next()), "turn {turn}");
            }
        }
    }
    host.remembers();
}

#[test]
fn x22_at_once_is_sooner() {
    // The negative control: nothing waits where the policy doesn't.
    let mut host = Host::new(expiring(BARE).immediately());
    let first = host.uses("look", "{}", &long(2_000));
    let cut = (0..20).find(|_| !host.turn(100).is_empty());
    assert_eq!(cut, Some(3));
    assert!(host.cuts().is_empty());
    assert!(host.past.iter().all(|(planned, _)| planned.waiting.is_none()));
    assert!(host.shown(first).unwrap().len() < 2_000);
}

#[test]
fn x22_what_would_not_fit_is_released_at_once() {
    let fit = FitWindow { minimum: Tokens(0), ..FitWindow::default() };
    let policy = || expiring(Patience { percent: 100_000, ..BARE }).then(fit.clone());
    for (window, is_released) in [(4_000, true), (1_000_000, false)] {
        let mut host = Host::new(policy());
        host.target.window = Some(Tokens(window));
        let first = host.uses("look", "{}", &long(2_000));
        let calls = (0..30).take_while(|_| host.turn(100).is_empty()).count();
        if !is_released {
            assert_eq!((calls, host.shown(first)), (30, Some(long(2_000))));
            assert!(host.last().receipt.savings.waiting.is_some());
            continue;
        }
        let [(turn, from, why)] = &host.cuts()[..] else { panic!("{:?}", host.cuts()) };
        assert_eq!((*turn, *from, why), (calls as u64, Seq(first.0 - 1), &Reason::MustFit));
        let all = host.log.total(recto::Span { first: Seq(0), last: host.last().receipt.ticket.head.unwrap() }).tokens;
        assert!(all > Tokens(window) && host.last().receipt.ledger.used() <= Tokens(window));
        assert!(host.reader.decisions().iter().all(|it| !matches!(it.edit.change, Change::Floor(_))));
        host.remembers();
    }
}

#[test]
fn nothing_goes_below_the_start_and_no_rent_is_counted_before() {
    let start = Tokens(8_000);
    let host = waits_by_the_formula(Patience { start, ..BARE });
    let (late, ..) = host.cuts()[0];
    let (early, ..) = waits_by_the_formula(BARE).cuts()[0];
    let used = |turn: u64| host.past[turn as usize].1.receipt.ledger.used();
    assert!(used(early) < start, "the other would have gone below it");
    // What has to be earned is earned from there on.
    let reached = (0..late).find(|turn| used(*turn) >= start).unwrap();
    let waited = host.past[reached as usize].1.receipt.savings.waiting.unwrap();
    assert_eq!(waited.rent, Tokens(0));
    assert!(late > reached + 10, "{late} {reached}");
}

/// Replaces results after two calls, and guesses that this saves more than it does.
#[derive(Debug)]
struct Hopeful {
    guess: Tokens,
    saves: Tokens,
}

impl Reduce for Hopeful {
    fn name(&self) -> &str {
        "hopeful"
    }

    fn propose(&self, view: &View<'_>, request: &Request<'_>) -> Vec<Edit> {
        let results = view.editable().flat_map(|item| item.results().filter(|it| !it.is_changed).collect::<Vec<_>>());
        let old = results.filter(|it| request.reader.age(it.at.seq) > 2 && it.cost > self.saves);
        let edit = |at, before: Tokens| Edit {
            change: Change::Replace { at, text: long((before - self.saves).0 as usize).into() },
            by: "hopeful".into(),
            why: Reason::Own { what: "old".into() },
            before,
            after: before - self.saves,
            due: Some(Turn(request.reader.since(at).0 + 3)),
        };
        old.map(|it| edit(it.at, it.cost)).collect()
    }

    fn foresee(&self, view: &View<'_>, request: &Request<'_>) -> Option<Vec<Candidate>> {
        let of = |edit: Edit| Candidate { seq: edit.change.seq(), saves: self.guess, due: edit.due.unwrap() };
        Some(self.propose(view, request).into_iter().map(of).collect())
    }
}

#[test]
fn a_guess_that_was_too_high_changes_nothing_until_the_truth_pays() {
    let first_cut = |guess: u64| {
        let (guess, saves) = (Tokens(guess), Tokens(400));
        let mut host = Host::new(waiting(Hopeful { guess, saves }, BARE));
        host.uses("look", "{}", &long(1_000));
        let calls = (0..200).take_while(|_| host.turn(5).is_empty()).count();
        let cuts = host.cuts();
        let [(turn, _, Reason::Pays { rent, cost })] = &cuts[..] else { panic!("{cuts:?}") };
        assert_eq!(*turn, calls as u64);
        // What stands on the decision is the truth.
        let behind: u64 = host.past[calls - 1].1.page.messages.iter().skip(1).map(|it| it.cost.0).sum();
        assert_eq!(*rent, Tokens(40 * (turn - 3)));
        assert_eq!(*cost, whole((behind - 400) as f64 * 1.15));
        host.remembers();
        *turn
    };
    assert_eq!(first_cut(900), first_cut(400));
    assert!(first_cut(200) > first_cut(400), "who hopes for less waits longer");
}

#[test]
fn excerpts_that_save_nothing_are_not_made() {
    // Every line is worth its tokens, so nothing goes, however often it is hoped.
    let text: String = (0..80).map(|nth| format!("let value_{nth} = compute_{nth}(\"{nth}\");\n")).collect();
    for (worth, is_cut) in [(0.0, false), (1_000.0, true)] {
        let mut host = Host::new(waiting(Excerpt { worth, ..Excerpt::default() }, BARE));
        let seq = host.uses("Read", r#"{"file_path":"a.rs"}"#, &text);
        let edits: usize = (0..80).map(|_| host.turn(5).len()).sum();
        assert_eq!(edits > 0, is_cut);
        assert_eq!(host.shown(seq).unwrap() == text, !is_cut);
        assert_eq!(host.cuts().len(), usize::from(is_cut));
    }
}

#[test]
fn never_means_that_only_the_floor_goes_up() {
    let fit = FitWindow { minimum: Tokens(0), ..FitWindow::default() };
    for apply in [Apply::Never, Apply::WhenItPays] {
        let mut host = Host::new(expiring(BARE).then(fit.clone()));
        host.policy.apply = apply;
        host.target.window = Some(Tokens(6_000));
        for _ in 0..60 {
            host.uses("look", "{}", &long(300));
            host.turn(50);
        }
        let is_floor = |change: &Change| matches!(change, Change::Floor(_));
        let floors = host.reader.decisions().iter().filter(|it| is_floor(&it.edit.change)).count();
        let others = host.reader.decisions().len() - floors;
        match apply {
            Apply::Never => assert!(floors > 2 && others == 0, "{floors} {others}"),
            _ => assert!(others > 20, "{floors} {others}"),
        }
        assert!(host.past.iter().all(|(planned, _)| planned.waiting.is_none() || apply == Apply::WhenItPays));
        host.remembers();
    }
}

#[test]
fn a_brake_of_nothing_allows_no_cut_that_costs() {
    let braked = Patience { brake: Some(0), ..BARE };
    let story = |patience| {
        let mut host = Host::new(expiring(patience));
        host.uses("look", "{}", &long(2_000));
        (0..100).for_each(|_| drop(host.turn(50)));
        host
    };
    let (with, without) = (story(braked), story(BARE));
    assert_eq!(with.cuts(), []);
    assert!(with.last().receipt.savings.waiting.is_some());
    assert_eq!(without.cuts().len(), 1);
    // A cut that costs nothing is none of its business.
    let mut with = with;
    with.last = Some(("eval".into(), 3_600));
    assert!(!with.turn(50).is_empty());
    assert!(matches!(with.cuts()[..], [(100, _, Reason::CacheIsCold)]), "{:?}", with.cuts());
}
