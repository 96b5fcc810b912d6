//! What was left out is asked back by its handle: in place or as an answer, whole or in part, and goes again in time.

mod asks;
mod stories;

use recto::edit::{Change, Decision, Handle, Reason};
use recto::entry::{Call, Expiry, ExpiryAction, Media, Piece, Reasoning, Redaction, RunId, ToolResult};
use recto::expand::{Ask, Expansion, Range, Refusal, expand, hint};
use recto::page::{Mode, Page};
use recto::policy::{Decorate, Stale};
use recto::receipt::{Fate, Ticket};
use recto::reduce::{CapOutput, DropImages, Expire, FitWindow, Grain};
use recto::target::{EditsPast, Memory, Reasoned};
use recto::{
    Compiled, Entry, Error, Lane, Log, Part, Policy, Reader, Request, Role, Seq, Session, Span, Target, Tokenizer,
    Tokens, compile, plan, wire,
};
use recto_testkit::check;

/// How every refusal ends.
const NOT_AGAIN: &str = "Do not request this expansion again.";

/// A host that lives from call to call: a token is four characters, nothing else costs anything.
struct Host {
    log: Log,
    reader: Reader,
    policy: Policy,
    target: Target,
    session: Session,
    run: Option<RunId>,
    past: Vec<(Ticket, Session, Page)>,
}

impl Host {
    fn new(policy: Policy, window: Option<u64>) -> Host {
        let mut target = Target::eval().with_window(window.map(Tokens));
        (target.tokenizer, target.message_overhead) = (Tokenizer::Chars4, Tokens(0));
        let (log, reader) = (Log::counted_by(Tokenizer::Chars4), Reader::new("main"));
        let (session, run, past) = (Session::default(), None, Vec::new());
        Host { log, reader, policy: policy.immediately(), target, session, run, past }
    }

    fn say(&mut self, entry: Entry) -> Seq {
        self.log.append(entry).unwrap()
    }

    /// A user's question, a step, and what its tool says; returns where that stands.
    fn looks(&mut self, id: &str, text: impl Into<String>) -> Seq {
        self.say(Entry::user(format!("look at {id}")));
        self.say(Entry::step("", [Call::new(id, "look", "{}")]));
        self.say(Entry::result(id, text.into()))
    }

    fn request(&self) -> Request<'_> {
        Request {
            reserve: Some(Tokens(0)),
            session: Some(&self.session),
            run: self.run.as_ref(),
            previous: self.past.last().map(|(_, _, page)| page),
            ..Request::new(&self.log, &self.reader, &self.policy, &self.target)
        }
    }

    /// Plans, commits and compiles; planning again plans nothing, and every entry has one fate.
    fn page(&mut self) -> Result<Compiled, Error> {
        let edits = plan(&self.request()).unwrap().edits;
        self.reader.commit(edits, self.policy.digest());
        assert_eq!(plan(&self.request()).unwrap().edits, []);
        let compiled = compile(&self.request())?;
        check::fates(&compiled.receipt.fates, &self.log).unwrap();
        Ok(compiled)
    }

    /// One call: the page is made, sent and answered, and the user says something more.
    fn call(&mut self) -> Compiled {
        let compiled = self.page().unwrap();
        let ticket = compiled.receipt.ticket.clone();
        self.reader.acknowledge(&ticket).unwrap();
        let held = self.session.clone();
        self.session.sent(&compiled);
        self.past.push((ticket, held, compiled.page.clone()));
        self.say(Entry::assistant("ok"));
        self.say(Entry::user("go on"));
        compiled
    }

    fn calls(&mut self, calls: usize) {
        (0..calls).for_each(|_| drop(self.call()));
    }

    /// Asks, and commits what is granted. Nothing changes where nothing is.
    fn expand(&mut self, ask: Ask) -> Result<Expansion, Refusal> {
        let before = (self.reader.ordinal(), self.log.len());
        let expansion = expand(&self.request(), &ask);
        assert_eq!(before, (self.reader.ordinal(), self.log.len()));
        if let Err(refusal) = &expansion {
            assert!(refusal.to_string().ends_with(NOT_AGAIN), "{refusal}");
        }
        let edits = expansion.as_ref().map_or(Vec::new(), |it| it.edits.clone());
        self.reader.commit(edits, self.policy.digest());
        expansion
    }

    fn refuses(&mut self, ask: Ask) -> &'static str {
        self.expand(ask).unwrap_err().code()
    }

    /// Every page of the past compiles to the same bytes again.
    fn recalls_its_past(&self) {
        for (ticket, session, page) in &self.past {
            let (log, reader) = (self.log.until(ticket.head), self.reader.as_of(ticket));
            let request = Request { log: &log, reader: &reader, session: Some(session), ..self.request() };
            let again = compile(&Request { previous: None, ..request }).unwrap();
            let bytes = wire::openai_chat::encode(page, &self.target);
            assert_eq!(wire::openai_chat::encode(&again.page, &self.target), bytes, "turn {}", ticket.turn.0);
        }
    }

    fn about(&self, seq: Seq) -> Vec<&Decision> {
        self.reader.decisions().iter().filter(|it| it.edit.change.seq() == seq).collect()
    }
}

fn handle(seq: Seq) -> Handle {
    Handle::entry(seq)
}

fn parts(compiled: &Compiled, seq: Seq) -> Option<&[Part]> {
    let message = compiled.page.messages.iter().find(|message| message.seq == Some(seq))?;
    Some(&message.parts)
}

/// What an entry says on the page; results are their texts.
fn text(compiled: &Compiled, seq: Seq) -> Option<String> {
    let texts = parts(compiled, seq)?.iter().map(|part| match part {
        Part::Text { text } => text.to_string(),
        Part::Result(result) => match &result.content[..] {
            [Piece::Text { text }] => text.to_string(),
            other => format!("{other:?}"),
        },
        other => format!("{other:?}"),
    });
    Some(texts.collect::<Vec<_>>().join("|"))
}

fn expiring(after: u32, chars: u32) -> Policy {
    Policy::named("expiring").then(Expire::first_chars(after, chars))
}

/// A host whose one long result has just been shortened, and where that stands.
fn shortened(text: &str) -> (Host, Seq) {
    let mut host = Host::new(expiring(2, 20), None);
    let seq = host.looks("a", text);
    host.calls(4);
    assert!(matches!(host.about(seq)[..], [it] if matches!(it.edit.change, Change::Replace { .. })));
    (host, seq)
}

#[test]
fn s29_what_was_expanded_stays_for_the_restart_window_and_then_goes_by_one_new_decision() {
    let long = "x".repeat(5_000);
    let mut host = Host::new(expiring(2, 500), None);
    let seq = host.looks("a", &long);
    // Full at three calls, as its limit of 2 says.
    for _ in 0..3 {
        assert_eq!(text(&host.call(), seq).unwrap(), long);
    }
    assert!(text(&host.call(), seq).unwrap().contains("500 of"));
    let expansion = host.expand(Ask::whole(handle(seq)).because("the end matters")).unwrap();
    assert!(expansion.is_in_place && expansion.tokens_after > expansion.tokens_before);
    assert!(expansion.text.ends_with(&long));
    for nth in 0..3 {
        let compiled = host.call();
        assert_eq!(text(&compiled, seq).unwrap(), long, "call {nth} after it");
        let row = compiled.receipt.fate(seq).unwrap();
        assert_eq!((row.fate, &*row.by), (Fate::Shown, "expand"));
        assert_eq!(row.why.to_string(), "expanded before call 4: the end matters");
        assert_eq!(host.refuses(Ask::whole(handle(seq))), "already_expanded");
    }
    assert_eq!(host.about(seq).len(), 2);
    assert!(text(&host.call(), seq).unwrap().contains("500 of"));
    assert_eq!(host.about(seq).len(), 3);
    host.calls(20);
    assert_eq!(host.about(seq).len(), 3, "reduced once for each restart of the clock");
    host.recalls_its_past();
}

#[test]
fn s29_asks_that_can_t_be_granted_are_refused_and_change_nothing() {
    let (mut host, seq) = shortened(&"word ".repeat(100));
    let erased = host.say(Entry::new(Role::User, []));
    let whole = |seq: Seq| Ask::whole(handle(seq));
    assert_eq!(host.refuses(whole(Seq(999))), "unknown_handle");
    assert_eq!(host.refuses(Ask::whole(Handle { seq, part: Some(7) })), "unknown_handle");
    assert_eq!(host.refuses(whole(Seq(0))), "never_reduced");
    assert_eq!(host.refuses(whole(erased)), "erased");
    let pending = Entry { status: recto::entry::Status::Error, ..Entry::assistant("broken off") };
    let pending = host.say(pending);
    assert_eq!(host.refuses(whole(pending)), "not_shown");
    assert_eq!(host.about(seq).len(), 1);
    // The control: what can be granted is.
    assert!(host.expand(whole(seq)).is_ok());
}

#[test]
fn s29_what_was_removed_is_restored() {
    let mut host = Host::new(expiring(9, 500), None);
    let expiry = Some(Expiry { after: 1, action: ExpiryAction::Remove });
    let seq = host.say(Entry { expiry, ..Entry::user("the old news") });
    host.calls(2);
    assert_eq!(text(&host.call(), seq), None);
    host.expand(Ask::whole(handle(seq))).unwrap();
    for _ in 0..2 {
        assert_eq!(text(&host.call(), seq).as_deref(), Some("the old news"));
    }
    assert_eq!(text(&host.call(), seq), None, "its own expiry counts from the expansion");
    host.recalls_its_past();
}

#[test]
fn a_step_of_a_finished_run_comes_back_whole_by_the_handle_of_its_result() {
    let trace = |entry: Entry| Entry { lane: Lane::Trace, run: Some("one".into()), ..entry };
    let runs = Expire { finished_runs: true, ..Expire::first_chars(2, 10) };
    let mut host = Host::new(Policy::named("runs").then(runs), None);
    host.say(Entry::user("work"));
    let step = host.say(trace(Entry::step("", [Call::new("a", "look", "{}")])));
    let result = host.say(trace(Entry::result("a", "found nothing much at all, twice")));
    host.run = Some("two".into());
    host.calls(3);
    let compiled = host.call();
    assert_eq!((text(&compiled, step), text(&compiled, result)), (None, None));
    let expansion = host.expand(Ask::whole(handle(result))).unwrap();
    assert!(expansion.text.contains("found nothing"));
    for _ in 0..3 {
        assert_eq!(text(&host.call(), result).unwrap(), "found nothing much at all, twice");
    }
    let compiled = host.call();
    assert_eq!((text(&compiled, step), text(&compiled, result)), (None, None));
    host.recalls_its_past();
}

#[test]
fn s30_items_of_a_json_array_are_shown_under_a_marker_and_nothing_else_is() {
    let list: Vec<String> = (0..100).map(|n| format!(r#"{{"id":{n},"name":"item-{n}"}}"#)).collect();
    let json = format!("[{}]", list.join(","));
    let (mut host, seq) = shortened(&json);
    let expansion = host.expand(Ask::whole(handle(seq)).only(Range::Items(40..=50))).unwrap();
    let shown = text(&host.call(), seq).unwrap();
    assert_eq!(shown, *expansion.text);
    let (marker, rest) = shown.split_once('\n').unwrap();
    assert_eq!(marker, format!("[… items 40–50 of 100, counted from 0, handle {}]", handle(seq)));
    let items: Vec<serde_json::Value> = serde_json::from_str(rest).unwrap();
    let ids: Vec<u64> = items.iter().map(|item| item["id"].as_u64().unwrap()).collect();
    assert_eq!(ids, (40..=50).collect::<Vec<_>>());
    // The same again is refused; another range and the whole are not.
    assert_eq!(host.refuses(Ask::whole(handle(seq)).only(Range::Items(40..=50))), "already_expanded");
    assert_eq!(host.refuses(Ask::whole(handle(seq)).only(Range::Items(100..=120))), "out_of_range");
    host.expand(Ask::whole(handle(seq)).only(Range::Items(98..=120))).unwrap();
    assert!(text(&host.call(), seq).unwrap().starts_with("[… items 98–99 of 100"));
    host.expand(Ask::whole(handle(seq))).unwrap();
    assert_eq!(text(&host.call(), seq).unwrap(), json);
    host.recalls_its_past();
}

#[test]
fn s30_what_was_erased_is_refused() {
    let mut host = Host::new(expiring(2, 20), None);
    host.say(Entry::step("", [Call::new("a", "look", "{}")]));
    let nothing = ToolResult { call: "a".into(), content: Vec::new(), is_error: false };
    let erased = host.say(Entry::new(Role::Tool, [Part::Result(nothing)]));
    // An empty text is a body all the same.
    host.say(Entry::step("", [Call::new("b", "look", "{}")]));
    let empty = host.say(Entry::result("b", ""));
    host.calls(5);
    assert_eq!(host.refuses(Ask::whole(handle(erased))), "erased");
    assert_eq!(host.refuses(Ask::whole(handle(empty))), "never_reduced");
}

#[test]
fn what_is_shown_in_part_goes_again_like_what_is_shown_whole() {
    let lines: Vec<String> = (1..=60).map(|n| format!("line number {n}")).collect();
    let (mut host, seq) = shortened(&lines.join("\n"));
    for cycle in 1..=3 {
        host.expand(Ask::whole(handle(seq)).only(Range::Lines(10..=40))).unwrap();
        for _ in 0..3 {
            let compiled = host.call();
            let shown = text(&compiled, seq).unwrap();
            assert!(shown.starts_with(&format!("[… lines 10–40 of 60, handle {}]\n10: line", handle(seq))), "{shown}");
            assert_eq!(compiled.receipt.fate(seq).unwrap().fate, Fate::Changed);
        }
        assert!(text(&host.call(), seq).unwrap().contains("20 of"));
        assert_eq!(host.about(seq).len(), 1 + 2 * cycle);
    }
    host.recalls_its_past();
}

#[test]
fn s32_expanding_restores_the_parts_and_not_a_string() {
    let picture = Piece::Image(Media { url: "https://example.org/a.png".into(), name: None, detail: None });
    let words = |text: &str| Piece::Text { text: text.into() };
    let content = vec![words(&"{\"a\": 1} ".repeat(20)), picture, words("the end")];
    let mut host = Host::new(expiring(2, 20), None);
    host.target.result_images = true;
    host.say(Entry::step("", [Call::new("a", "look", "{}")]));
    let result = ToolResult { call: "a".into(), content, is_error: false };
    let seq = host.say(Entry::new(Role::Tool, [Part::Result(result.clone())]));
    let shown_whole = |compiled: &Compiled| parts(compiled, seq) == Some(&[Part::Result(result.clone())]);
    assert!(shown_whole(&host.call()));
    host.calls(2);
    assert!(!shown_whole(&host.call()));
    let expansion = host.expand(Ask::whole(handle(seq))).unwrap();
    assert!(expansion.text.contains("[image]") && expansion.text.contains("the end"));
    assert!(shown_whole(&host.call()));
}

#[test]
fn a_picture_comes_back_by_the_handle_of_its_part() {
    let picture = Part::Image(Media { url: "https://example.org/a.png".into(), name: None, detail: None });
    let mut host = Host::new(Policy::named("pictures").then(DropImages { keep: 0 }), None);
    let seq = host.say(Entry::new(Role::User, [Part::text("look"), picture.clone()]));
    host.say(Entry::user("and?"));
    assert_eq!(text(&host.call(), seq).unwrap(), format!("look|[image left out, handle m{}.1]", seq.0));
    let part = Handle::parse(&format!("m{}.1", seq.0)).unwrap();
    assert_eq!(host.refuses(Ask::whole(Handle { seq, part: Some(0) })), "never_reduced");
    assert_eq!(host.refuses(Ask::whole(part).only(Range::Lines(1..=2))), "not_text");
    host.expand(Ask::whole(part)).unwrap();
    for _ in 0..5 {
        assert_eq!(parts(&host.call(), seq).unwrap()[1], picture);
    }
    assert!(text(&host.call(), seq).unwrap().contains("[image left out"), "exempt for five calls");
}

#[test]
fn what_is_capped_from_the_start_is_exempt_for_as_many_calls_as_asked() {
    let mut host = Host::new(Policy::named("cap").then(CapOutput::to(30)), None);
    let seq = host.looks("a", "y".repeat(400));
    assert!(text(&host.call(), seq).unwrap().contains("left out"));
    host.expand(Ask::whole(handle(seq)).exempt_for(2)).unwrap();
    assert_eq!(text(&host.call(), seq).unwrap().len(), 400);
    assert_eq!(text(&host.call(), seq).unwrap().len(), 400);
    assert!(text(&host.call(), seq).unwrap().contains("left out"));
    assert_eq!(host.about(seq).len(), 3);
}

#[test]
fn x03_what_the_provider_was_sent_in_full_is_not_sent_again() {
    let long = "z".repeat(400);
    let mut host = Host::new(expiring(1, 20), None);
    (host.target.memory, host.policy.stale) = (Memory::Session, Stale::Keep);
    let seq = host.looks("a", &long);
    host.calls(4);
    let refusal = host.expand(Ask::whole(handle(seq))).unwrap_err();
    assert_eq!(refusal.code(), "held");
    assert!(refusal.to_string().contains("the provider already holds the full text"));
    // Where it was sent shortened from the start, a note brings it, once.
    let mut host = Host::new(Policy::named("cap").then(CapOutput::to(30)), None);
    host.target.memory = Memory::Session;
    let seq = host.looks("a", &long);
    host.calls(2);
    let expansion = host.expand(Ask::whole(handle(seq))).unwrap();
    assert!(expansion.is_in_place && expansion.text.contains(&long));
    let notes = |compiled: &Compiled| {
        let notes = compiled.page.messages.iter().filter(|message| message.seq == Some(seq));
        notes.map(|message| (message.role, format!("{:?}", message.parts).contains(&long))).collect::<Vec<_>>()
    };
    // A call that is given up says it again.
    for _ in 0..2 {
        let compiled = host.page().unwrap();
        assert_eq!((compiled.page.mode, notes(&compiled)), (Mode::Delta, vec![(Role::User, true)]));
        let row = compiled.receipt.fate(seq).unwrap();
        assert!(row.fate == Fate::Shown && matches!(row.why, Reason::Expanded { .. }), "{row:?}");
    }
    host.call();
    let compiled = host.call();
    assert_eq!((compiled.page.mode, notes(&compiled)), (Mode::Delta, vec![]));
    assert_eq!(host.refuses(Ask::whole(handle(seq))), "already_expanded");
    host.recalls_its_past();
}

#[test]
fn an_ask_in_the_midst_of_a_round_says_that_it_would_cost_the_reasoning() {
    let (mut host, seq) = shortened(&"word ".repeat(100));
    host.target.reasoning = Reasoned::Text;
    let thought = Part::Reasoning(Reasoning { text: "hm".into(), ..Reasoning::default() });
    host.say(Entry::new(Role::Assistant, [thought, Part::Call(Call::new("b", "look", "{}"))]));
    host.say(Entry::result("b", "found"));
    let costs = |host: &Host| expand(&host.request(), &Ask::whole(handle(seq))).unwrap().costs_reasoning;
    assert!(!costs(&host), "this target binds nothing");
    host.target.edits_past = EditsPast::DropsLaterReasoning;
    assert!(costs(&host));
    host.say(Entry::user("stop"));
    assert!(!costs(&host), "the round is over");
}

fn fitting() -> FitWindow {
    FitWindow { minimum: Tokens(0), keep_first_request: false, grain: Grain::Exchange, ..FitWindow::default() }
}

#[test]
fn x06_the_oldest_go_first_and_what_was_expanded_stays() {
    let mut host = Host::new(expiring(1, 20).then(fitting()), Some(400));
    host.say(Entry::user("o".repeat(200)));
    let seq = host.looks("a", "w".repeat(800));
    host.calls(2);
    assert!(text(&host.call(), seq).unwrap().contains("20 of"));
    host.looks("b", "v".repeat(400));
    host.say(Entry::user("q".repeat(400)));
    host.expand(Ask::whole(handle(seq)).exempt_for(3)).unwrap();
    let compiled = host.call();
    assert_eq!(text(&compiled, seq).unwrap().len(), 800);
    assert_eq!(compiled.receipt.fate(Seq(0)).unwrap().fate, Fate::NotShown);
    // What stays alone doesn't fit any more: the overflow names it.
    let pinned = host.say(Entry::user("p".repeat(1_000)));
    host.reader.pin(Span::one(pinned));
    let error = host.page().unwrap_err();
    let overflow = error.overflow().unwrap();
    let named = overflow.largest.iter().find(|it| matches!(it.why, Reason::Expanded { .. })).unwrap();
    assert_eq!(named.seq, Seq(seq.0 - 1), "the step that the result belongs to");
    assert!(error.hint().unwrap().contains("revert an expansion"));
    host.recalls_its_past();
}

#[test]
fn x06_an_expansion_that_can_t_fit_is_refused_with_its_size() {
    let text: String = (0..400).map(|n| format!("line {n}\n")).collect();
    let mut host = Host::new(Policy::named("cap").then(CapOutput::to(30)).then(fitting()), Some(300));
    let seq = host.looks("a", &text);
    host.calls(2);
    let whole = Ask::whole(handle(seq));
    let refusal = host.expand(whole.clone()).unwrap_err();
    let Refusal::TooLarge { tokens, room, .. } = refusal else { panic!("{refusal}") };
    assert_eq!(tokens, host.log.get(seq).unwrap().cost);
    assert!(room > Tokens(100) && room < Tokens(300), "{room}");
    assert_eq!(host.refuses(whole.clone().only(Range::Lines(1..=300))), "too_large");
    host.expand(whole.only(Range::Lines(200..=210))).unwrap();
    assert!(text_of(&host.call(), seq).contains("205: line 204"));
}

fn text_of(compiled: &Compiled, seq: Seq) -> String {
    text(compiled, seq).unwrap()
}

#[test]
fn x23_without_the_pass_stubs_stay_until_they_are_expanded_or_reverted() {
    let long = "u".repeat(400);
    let (mut host, seq) = shortened(&long);
    let other = host.looks("b", &long);
    host.policy = Policy::named("nothing").immediately();
    host.calls(30);
    let compiled = host.call();
    assert!(text_of(&compiled, seq).contains("20 of"));
    assert_eq!(text_of(&compiled, other), long, "nothing new expires");
    host.expand(Ask::whole(handle(seq))).unwrap();
    host.calls(30);
    assert_eq!(text_of(&host.call(), seq), long);
    let (mut host, seq) = shortened(&long);
    let ordinal = host.reader.live(seq).next().unwrap().ordinal;
    host.reader.revert(ordinal).unwrap();
    host.calls(9);
    assert_eq!(text_of(&host.call(), seq), long);
}

#[test]
fn sixty_turns_of_expanding_and_reducing_leave_the_original_and_one_decision_for_each() {
    let long: String = ('a'..='z').cycle().take(3_000).collect();
    let mut host = Host::new(expiring(2, 100), None);
    let seq = host.looks("a", &long);
    let digest = host.log.get(seq).unwrap().digest;
    let mut expanded = 0;
    for turn in 0..60 {
        if turn % 7 == 5 {
            expanded += usize::from(host.expand(Ask::whole(handle(seq))).is_ok());
        }
        let shown = text_of(&host.call(), seq);
        assert!(shown == long || shown.contains("100 of"), "turn {turn}: {shown}");
    }
    assert_eq!(host.log.get(seq).unwrap().digest, digest);
    let of = |is: fn(&Change) -> bool| host.about(seq).iter().filter(|it| is(&it.edit.change)).count();
    assert_eq!(of(|it| matches!(it, Change::Expand { .. })), expanded);
    assert_eq!(of(|it| matches!(it, Change::Replace { .. })), expanded + 1);
    assert_eq!(expanded, 8);
    host.recalls_its_past();
}

#[test]
fn reverting_an_expansion_brings_the_stub_back_for_good() {
    let long = "t".repeat(400);
    let (mut host, seq) = shortened(&long);
    host.expand(Ask::whole(handle(seq))).unwrap();
    assert_eq!(text_of(&host.call(), seq), long);
    let ordinal = host.reader.live(seq).next_back().unwrap().ordinal;
    host.reader.revert(ordinal).unwrap();
    for _ in 0..9 {
        assert!(text_of(&host.call(), seq).contains("20 of"));
    }
    assert_eq!(host.about(seq).len(), 2);
    // Without the stub as well, the original stays: what was taken back is not decided again.
    let ordinal = host.reader.live(seq).next().unwrap().ordinal;
    host.reader.revert(ordinal).unwrap();
    for _ in 0..9 {
        assert_eq!(text_of(&host.call(), seq), long);
    }
    host.recalls_its_past();
}

#[test]
fn a_pin_is_taken_back_by_the_handle_it_was_made_with() {
    let mut host = Host::new(expiring(1, 20), None);
    let seq = host.looks("a", "s".repeat(400));
    host.reader.pin(handle(seq).into());
    host.calls(5);
    assert_eq!(text_of(&host.call(), seq).len(), 400);
    assert_eq!(host.reader.unpin(handle(seq).into()), 1);
    assert_eq!(host.reader.unpin(handle(seq).into()), 0);
    assert!(text_of(&host.call(), seq).contains("20 of"));
    host.recalls_its_past();
}

#[test]
fn what_lies_below_the_floor_comes_back_and_goes_with_the_next_floor() {
    let mut host = Host::new(Policy::named("fit").then(fitting()), Some(200));
    let seq = host.looks("a", "r".repeat(200));
    host.calls(1);
    host.say(Entry::user("n".repeat(700)));
    let compiled = host.call();
    assert_eq!(text(&compiled, seq), None);
    assert!(matches!(compiled.receipt.fate(seq).unwrap().why, Reason::BelowFloor { .. }));
    let expansion = host.expand(Ask::whole(handle(seq)).exempt_for(2)).unwrap();
    assert_eq!(expansion.tokens_before, Tokens(0));
    for _ in 0..4 {
        let compiled = host.call();
        assert_eq!(text_of(&compiled, seq).len(), 200);
        assert!(matches!(compiled.receipt.fate(seq).unwrap().why, Reason::Expanded { .. }));
    }
    host.say(Entry::user("m".repeat(700)));
    assert_eq!(text(&host.call(), seq), None);
    host.recalls_its_past();
}

#[test]
fn what_a_summary_stands_for_can_be_told_but_not_shown() {
    let mut host = Host::new(Policy::named("plain"), None);
    let seq = host.looks("a", "the number is 4711");
    let covers = Some(Span { first: Seq(0), last: seq });
    host.say(Entry { section: "summary".into(), covers, ..Entry::user("They looked at a.") });
    host.say(Entry::user("and now?"));
    assert_eq!(text(&host.call(), seq), None);
    let expansion = host.expand(Ask::whole(handle(seq))).unwrap();
    assert!(!expansion.is_in_place && expansion.edits.is_empty());
    assert!(expansion.text.contains("4711"));
    assert_eq!(text(&host.call(), seq), None);
}

#[test]
fn no_expansion_shows_what_was_redacted() {
    let secret = "sk-secret-1";
    let words = format!("{}\nkey {secret}\n{}", "a".repeat(100), "b".repeat(300));
    let start = words.find(secret).unwrap();
    let redaction = Redaction { part: 0, piece: 0, start, end: start + secret.len(), label: "[redacted]".into() };
    for redactions in [vec![redaction], Vec::new()] {
        let is_marked = !redactions.is_empty();
        let mut host = Host::new(expiring(1, 20), None);
        host.say(Entry::step("", [Call::new("a", "look", "{}")]));
        let seq = host.say(Entry { redactions, ..Entry::result("a", words.as_str()) });
        host.calls(3);
        let whole = Ask::whole(handle(seq));
        let asks = [whole.clone(), whole.clone().only(Range::Lines(1..=3)), whole.only(Range::Search("key".into()))];
        for ask in asks {
            let told = format!("{:?} {:?}", expand(&host.request(), &ask).unwrap(), hint(&host.request(), handle(seq)));
            // The control: what nobody marked is found.
            assert_eq!(told.contains(secret), !is_marked);
        }
        let search = Ask::whole(handle(seq)).only(Range::Search(secret.into()));
        assert_eq!(expand(&host.request(), &search).is_ok(), !is_marked, "it can't be guessed by searching");
    }
}

#[test]
fn a_pass_with_decorators_leaves_alone_what_is_exempt() {
    let policy = Policy::named("tight").then(CapOutput::to(30).until_fits()).then(fitting());
    let mut host = Host::new(policy, Some(250));
    let seq = host.looks("a", "k".repeat(600));
    host.calls(1);
    host.looks("b", "l".repeat(600));
    host.call();
    assert!(text_of(&host.call(), seq).contains("left out"));
    host.expand(Ask::whole(handle(seq)).exempt_for(4)).unwrap();
    assert_eq!(text_of(&host.call(), seq).len(), 600);
    assert_eq!(text_of(&host.call(), seq).len(), 600);
}
