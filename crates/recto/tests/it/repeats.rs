//! Results that repeat, outdate or outlive each other: what becomes of them over many turns.

mod alike; // nearly the same, of no use any more, and all passes together

use recto::edit::{Change, Decision, Edit, PartAt, Reason, Turn};
use recto::entry::{Call, Lane, Piece, RunId, ToolResult};
use recto::page::Page;
use recto::policy::Step;
use recto::reduce::{Expire, Identical, Reduce, Similar, Superseded};
use recto::view::View;
use recto::{
    Compiled, Entry, Log, Part, Policy, Reader, Request, Role, Seq, Span, Target, Tokenizer, Tokens, compile, plan,
    wire,
};

/// An agent that uses tools; a token is four characters, and nothing costs overhead.
struct Agent {
    log: Log,
    reader: Reader,
    policy: Policy,
    target: Target,
    previous: Option<Page>,
    /// Every page so far.
    past: Vec<Compiled>,
}

impl Agent {
    fn new(policy: Policy) -> Agent {
        Agent::within(policy, 1_000_000)
    }

    fn within(policy: Policy, window: u64) -> Agent {
        let mut target = Target::eval().with_window(Some(Tokens(window)));
        (target.tokenizer, target.message_overhead) = (Tokenizer::Chars4, Tokens(0));
        let mut log = Log::counted_by(Tokenizer::Chars4);
        log.append(Entry::user("do it")).unwrap();
        let (previous, past) = (None, Vec::new());
        Agent { log, reader: Reader::new("main"), policy: policy.immediately(), target, previous, past }
    }

    /// A step with one call, and its result; returns where the result stands.
    fn uses(&mut self, tool: &str, arguments: &str, result: &str) -> Seq {
        self.step(&[(tool, arguments, result)])[0]
    }

    fn step(&mut self, calls: &[(&str, &str, &str)]) -> Vec<Seq> {
        let id = |nth: usize| format!("call-{}-{nth}", self.past.len());
        let made: Vec<Call> = (calls.iter().enumerate()).map(|(nth, it)| Call::new(id(nth), it.0, it.1)).collect();
        let results: Vec<Entry> = (calls.iter().enumerate()).map(|(nth, it)| Entry::result(id(nth), it.2)).collect();
        self.log.append(Entry::step("", made)).unwrap();
        results.into_iter().map(|result| self.log.append(result).unwrap()).collect()
    }

    fn fails(&mut self, tool: &str, arguments: &str, result: &str) -> Seq {
        let id = format!("call-{}", self.log.len());
        self.log.append(Entry::step("", [Call::new(id.as_str(), tool, arguments)])).unwrap();
        let failed = ToolResult { is_error: true, ..ToolResult::text(id, result) };
        self.log.append(Entry::new(Role::Tool, [Part::Result(failed)])).unwrap()
    }

    fn request(&self) -> Request<'_> {
        let previous = self.previous.as_ref();
        Request {
            reserve: Some(Tokens(0)),
            previous,
            ..Request::new(&self.log, &self.reader, &self.policy, &self.target)
        }
    }

    /// A call that goes well; returns what was decided for it.
    fn call(&mut self) -> Vec<Edit> {
        let edits = plan(&self.request()).unwrap().edits;
        self.reader.commit(edits.clone(), self.policy.digest());
        assert_eq!(plan(&self.request()).unwrap().edits, [], "planning again plans more");
        let compiled = compile(&self.request()).unwrap();
        for edit in &edits {
            assert!(edit.after < edit.before, "{edit:?}");
            assert!(edit.due.is_none_or(|due| due <= self.reader.turn()), "{edit:?} is not due yet");
        }
        self.reader.acknowledge(&compiled.receipt.ticket).unwrap();
        self.previous = Some(compiled.page.clone());
        self.past.push(compiled);
        edits
    }

    fn calls(&mut self, turns: usize) {
        for _ in 0..turns {
            self.call();
            self.log.append(Entry::assistant("well")).unwrap();
        }
    }

    /// What the last page says at the place of a result.
    fn shown(&self, seq: Seq) -> String {
        said(&self.past.last().unwrap().page, seq)
    }

    /// The decisions about a result.
    fn decided(&self, seq: Seq) -> Vec<&Decision> {
        self.reader.decisions().iter().filter(|it| it.edit.change.seq() == seq).collect()
    }

    /// Whether the last page begins with the bytes of the one before.
    fn carries_on(&self) -> bool {
        let [.., before, last] = &self.past[..] else { return true };
        let mut before = wire::openai_chat::encode_messages(&before.page);
        before.pop();
        wire::openai_chat::encode_messages(&last.page).starts_with(&before)
    }

    /// Every page so far compiles again to the same bytes.
    fn remembers(&self) {
        for past in &self.past {
            let ticket = &past.receipt.ticket;
            let (log, reader) = (self.log.until(ticket.head), self.reader.as_of(ticket));
            let again = compile(&Request { log: &log, reader: &reader, previous: None, ..self.request() }).unwrap();
            assert_eq!(again.page, past.page, "turn {}", ticket.turn.0);
        }
    }
}

fn said(page: &Page, seq: Seq) -> String {
    let message = page.messages.iter().find(|message| message.seq == Some(seq));
    let Some(message) = message else { return "nothing".into() };
    let texts = message.parts.iter().map(|part| match part {
        Part::Result(result) => match &result.content[..] {
            [Piece::Text { text }] => text.to_string(),
            other => format!("{other:?}"),
        },
        other => format!("{other:?}"),
    });
    texts.collect::<Vec<_>>().join(" ")
}

fn of(pass: impl Into<Step>) -> Policy {
    Policy::named("test").then(pass)
}

fn identical() -> Policy {
    of(Identical::default())
}

fn superseded() -> Policy {
    of(Superseded::default())
}

/// A text of so many words that begins as it says.
fn long(start: &str, words: usize) -> String {
    let more = (0..words).map(|nth| format!(" word{}", nth * 7 % 31));
    format!("{start}{}", more.collect::<String>())
}

const READ: &str = r#"{"file_path":"/w/a.rs"}"#;

fn lines(offset: u32, limit: u32) -> String {
    format!(r#"{{"file_path":"/w/a.rs","offset":{offset},"limit":{limit}}}"#)
}

#[test]
fn what_stands_on_the_page_comes_as_a_pointer_and_breaks_no_cache() {
    let mut agent = Agent::new(identical());
    let text = long("fn main", 60);
    let first = agent.uses("Read", READ, &text);
    agent.calls(3);
    let again = agent.uses("Read", READ, &text);
    let edits = agent.call();
    assert_eq!(edits.len(), 1);
    assert_eq!((edits[0].why.clone(), edits[0].due), (Reason::Duplicate { of: first }, None));
    let stub = agent.shown(again);
    let chars = text.chars().count();
    assert_eq!(stub, format!("[Read result, {chars} characters: the same as m2 above; recto_expand m7]"));
    assert_eq!(agent.shown(first), text);
    assert!(agent.carries_on());
    for _ in 0..60 {
        agent.calls(1);
        assert!(agent.carries_on());
        assert_eq!((agent.shown(again), agent.shown(first)), (stub.clone(), text.clone()));
    }
    assert_eq!((agent.decided(again).len(), agent.decided(first).len()), (1, 0));
    assert!(matches!(&*agent.log.get(again).unwrap().original().parts, [Part::Result(it)] if it.chars() == chars));
    agent.remembers();
}

#[test]
fn other_texts_short_ones_and_failures_are_not_identical() {
    let mut agent = Agent::new(identical());
    let text = long("same", 60);
    agent.uses("Read", READ, &text);
    agent.fails("Read", READ, &text);
    agent.uses("Read", READ, &text.replace("word7 ", "word8 "));
    agent.uses("Read", READ, "a short text");
    agent.uses("Read", READ, "a short text");
    agent.calls(5);
    assert!(agent.reader.decisions().is_empty(), "{:?}", agent.reader.decisions());
}

#[test]
fn of_two_that_come_together_the_first_stays() {
    let mut agent = Agent::new(identical());
    let text = long("same", 60);
    let both = agent.step(&[("Read", READ, &text), ("Grep", "{}", &text)]);
    agent.calls(2);
    assert_eq!(agent.shown(both[0]), text);
    assert!(agent.shown(both[1]).contains("the same as m2 above"), "{}", agent.shown(both[1]));
}

#[test]
fn if_the_earlier_one_is_reduced_already_the_newer_one_stays() {
    let mut agent = Agent::new(of(Expire::first_chars(1, 20)).then(Identical::default()));
    let text = long("same", 60);
    let first = agent.uses("Read", READ, &text);
    agent.calls(3);
    assert_ne!(agent.shown(first), text);
    let again = agent.uses("Read", READ, &text);
    agent.call();
    assert_eq!(agent.shown(again), text);
}

#[test]
fn of_two_that_were_seen_the_newest_stays() {
    let mut agent = Agent::new(Policy::none());
    let text = long("same", 60);
    let (first, second, third) =
        (agent.uses("Read", READ, &text), agent.uses("Read", "{}", &text), agent.uses("Bash", "{}", &text));
    agent.calls(2);
    agent.policy = identical().immediately();
    let edits = agent.call();
    assert_eq!(edits.len(), 2);
    assert!(edits.iter().all(|it| it.why == Reason::Duplicate { of: third } && it.due == Some(Turn(1))));
    assert!(agent.shown(first).contains("the same as m6 below"), "{}", agent.shown(first));
    assert!(agent.shown(second).contains("the same as m6 below"));
    assert_eq!(agent.shown(third), text);
    agent.calls(5);
    assert_eq!(agent.reader.decisions().len(), 2);
}

#[test]
fn a_pointer_leads_no_further_back_than_half_of_the_room() {
    let mut agent = Agent::within(identical(), 8_000);
    let text = long("same", 60);
    let first = agent.uses("Read", READ, &text);
    agent.calls(1);
    agent.uses("Bash", r#"{"command":"make"}"#, &"x".repeat(20_000));
    agent.calls(1);
    let again = agent.uses("Read", READ, &text);
    assert_eq!(agent.call(), []);
    assert_eq!((agent.shown(first), agent.shown(again)), (text.clone(), text.clone()));
    agent.log.append(Entry::assistant("well")).unwrap();
    assert_eq!(agent.call().len(), 1);
    assert_eq!(agent.shown(again), text);
    assert!(agent.shown(first).contains("below"));
}

#[test]
fn traces_of_another_run_are_pointed_at_by_nobody() {
    let mut agent = Agent::new(identical());
    let text = long("same", 60);
    for run in ["one", "two"] {
        let run: Option<RunId> = Some(run.into());
        let step = Entry::step("", [Call::new(format!("{run:?}"), "Read", READ)]);
        agent.log.append(Entry { run: run.clone(), lane: Lane::Trace, ..step }).unwrap();
        let result = Entry::result(format!("{run:?}"), text.as_str());
        agent.log.append(Entry { run, lane: Lane::Trace, ..result }).unwrap();
    }
    agent.calls(4);
    assert!(agent.reader.decisions().is_empty());
}

#[test]
fn a_pointer_that_was_taken_back_is_not_made_again() {
    let mut agent = Agent::new(identical());
    let text = long("same", 60);
    let first = agent.uses("Read", READ, &text);
    agent.calls(1);
    let again = agent.uses("Read", READ, &text);
    agent.call();
    agent.reader.revert(1).unwrap();
    agent.calls(3);
    assert_eq!(agent.shown(again), text);
    // What somebody wants to see is the one that stays.
    assert!(agent.shown(first).contains("the same as m5 below"));
}

/// Removes results that are older than so many calls.
#[derive(Debug)]
struct Old(u64);

impl Reduce for Old {
    fn name(&self) -> &str {
        "old"
    }

    fn propose(&self, view: &View<'_>, request: &Request<'_>) -> Vec<Edit> {
        let results = view.editable().flat_map(|item| item.results().filter(|it| !it.is_changed).collect::<Vec<_>>());
        let old = results.filter(|it| request.reader.age(it.at.seq) > self.0);
        let edit = |at: PartAt, before| Edit {
            change: Change::Replace { at, text: "[gone]".into() },
            by: "old".into(),
            why: Reason::Own { what: "old".into() },
            before,
            after: Tokens(2),
            due: Some(request.reader.turn_at_age(at.seq, self.0 + 1)),
        };
        old.map(|it| edit(it.at, it.cost)).collect()
    }
}

/// Where a result that came at the first call is gone, if it was repeated at another one, or never.
fn gone_at(repeated: Option<usize>, window: u64) -> usize {
    let mut agent = Agent::within(identical().then(Old(4)), window);
    let text = long("same", 60);
    let first = agent.uses("Read", READ, &text);
    for turn in 0..40 {
        if repeated == Some(turn) {
            agent.uses("Read", READ, &text);
        }
        agent.calls(1);
        if agent.shown(first) == "[gone]" {
            return turn;
        }
    }
    40
}

#[test]
fn what_a_pointer_names_is_as_good_as_new() {
    assert_eq!(gone_at(None, 1_000_000), 5);
    assert_eq!(gone_at(Some(3), 1_000_000), 8);
    assert_eq!(gone_at(Some(4), 1_000_000), 9);
    // It was gone by then.
    assert_eq!(gone_at(Some(7), 1_000_000), 5);
}

#[test]
fn what_a_pointer_names_goes_if_the_page_would_not_fit() {
    let mut agent = Agent::within(identical().then(Old(4)), 2_700);
    let text = long("same", 60);
    let first = agent.uses("Read", READ, &text);
    agent.calls(4);
    agent.uses("Read", READ, &text);
    agent.calls(1);
    assert_eq!(agent.shown(first), text);
    let room = 2_700 - agent.past.last().unwrap().receipt.ledger.used().0;
    agent.uses("Bash", "{}", &"y".repeat(room as usize * 4 + 40));
    agent.calls(1);
    assert_eq!(agent.shown(first), "[gone]");
}

#[test]
fn a_read_gives_way_to_a_whole_read_once_that_was_seen() {
    let mut agent = Agent::new(superseded());
    let first = agent.uses("Read", READ, &long("old", 60));
    let some = agent.uses("Read", &lines(10, 20), &long("lines", 60));
    let other = agent.uses("Read", r#"{"file_path":"/w/b.rs"}"#, &long("other", 60));
    agent.calls(3);
    assert!(agent.reader.decisions().is_empty());
    let newer = agent.uses("Read", READ, &long("new", 60));
    assert_eq!(agent.call(), [], "nobody has seen the newer one");
    agent.log.append(Entry::assistant("well")).unwrap();
    let edits = agent.call();
    assert_eq!(edits.iter().map(|it| it.change.seq()).collect::<Vec<_>>(), [first, some]);
    assert!(edits.iter().all(|it| it.why == Reason::Superseded { by: newer } && it.due == Some(Turn(4))));
    let stub = agent.shown(first);
    let chars = long("old", 60).chars().count();
    assert_eq!(stub, format!("[Read result, {chars} characters: read again, see m11 below; recto_expand m2]"));
    for _ in 0..60 {
        agent.calls(1);
        assert_eq!(agent.shown(first), stub);
        assert_eq!((agent.shown(other), agent.shown(newer)), (long("other", 60), long("new", 60)));
    }
    assert_eq!(agent.reader.decisions().len(), 2);
    assert!(matches!(&*agent.log.get(first).unwrap().original().parts, [Part::Result(it)] if it.chars() == chars));
    agent.remembers();
}

/// Which of several uses give way, by their order.
#[track_caller]
fn gives_way(policy: Policy, uses: &[(&str, &str)], expected: &[usize]) {
    let mut agent = Agent::new(policy);
    let mut seqs = Vec::new();
    for (nth, (tool, arguments)) in uses.iter().enumerate() {
        seqs.push(agent.uses(tool, arguments, &long(&format!("result {nth}"), 60)));
        agent.calls(1);
    }
    agent.calls(2);
    let gone: Vec<usize> = (0..seqs.len()).filter(|&nth| !agent.decided(seqs[nth]).is_empty()).collect();
    assert_eq!(gone, expected, "{uses:?}");
    assert!(seqs.iter().all(|seq| agent.decided(*seq).len() < 2));
}

#[test]
fn a_read_of_other_lines_supersedes_nothing() {
    let [early, late, both] = [lines(1, 50), lines(40, 50), lines(1, 100)];
    gives_way(superseded(), &[("Read", &early), ("Read", &late)], &[]);
    gives_way(superseded(), &[("Read", READ), ("Read", &late)], &[]);
    gives_way(superseded(), &[("Read", &early), ("Read", &late), ("Read", &both)], &[0, 1]);
    gives_way(superseded(), &[("Read", &early), ("Read", &early)], &[0]);
    gives_way(superseded(), &[("Read", &early), ("Bash", r#"{"command":"cat /w/a.rs"}"#)], &[0]);
    gives_way(superseded(), &[("Read", READ), ("Bash", r#"{"command":"cat /w/a.rs | grep x"}"#)], &[]);
}

#[test]
fn a_read_gives_way_to_a_whole_write_and_to_an_edit_only_if_asked() {
    let write = ("Write", r#"{"file_path":"/w/a.rs","content":"x"}"#);
    let edit = ("Edit", r#"{"file_path":"/w/./a.rs","old_string":"x","new_string":"y"}"#);
    let patch = ("apply_patch", r#"{"input":"*** Begin Patch\n*** Update File: b.rs\n*** Update File: /w/a.rs\n"}"#);
    let append = ("write_file", r#"{"path":"/w/a.rs","content":"x","mode":"append"}"#);
    gives_way(superseded(), &[("Read", READ), write], &[0]);
    gives_way(superseded(), &[("Read", READ), edit, patch, append], &[]);
    gives_way(superseded(), &[write, ("Read", READ)], &[]);
    let edits = || of(Superseded { edits: true, ..Superseded::default() });
    gives_way(edits(), &[("Read", READ), edit], &[0]);
    gives_way(edits(), &[("Read", READ), patch], &[0]);
    gives_way(edits(), &[edit, ("Read", READ), append], &[]);
}

#[test]
fn a_command_gives_way_to_the_very_same() {
    let run = |command: &str| format!(r#"{{"command":"{command}","description":"{}"}}"#, command.len());
    let (test, other) = (run("cargo test"), run("cargo test --all"));
    let there = r#"{"command":"cargo test","workdir":"/x"}"#;
    gives_way(superseded(), &[("Bash", &test), ("Bash", &other), ("Bash", there), ("shell", &test)], &[0]);
    gives_way(
        superseded(),
        &[("Grep", r#"{"pattern":"x","path":"a"}"#), ("Grep", r#"{"pattern":"y","path":"a"}"#)],
        &[],
    );
    gives_way(superseded(), &[("write_stdin", r#"{"session_id":1}"#), ("write_stdin", r#"{"session_id":1}"#)], &[]);
    gives_way(superseded(), &[("Read", "{\"file_path\":"), ("Read", "{\"file_path\":")], &[]);
}

#[test]
fn what_failed_stands_in_only_for_what_failed() {
    let mut agent = Agent::new(superseded());
    let good = agent.uses("Read", READ, &long("good", 60));
    let bad = agent.fails("Read", READ, &long("bad", 60));
    let worse = agent.fails("Read", READ, &long("worse", 60));
    agent.calls(3);
    assert_eq!((agent.decided(good).len(), agent.decided(bad).len(), agent.decided(worse).len()), (0, 1, 0));
    let said = agent.uses("Write", r#"{"file_path":"/w/a.rs"}"#, "Error: the disk is full");
    agent.calls(3);
    assert_eq!((agent.decided(good).len(), agent.decided(said).len()), (0, 0));
}

#[test]
fn a_rule_of_the_policy_makes_an_unknown_tool_known() {
    let uses = [("fs_show", r#"{"doc":"a"}"#), ("fs_show", r#"{"doc":"a","page":2}"#), ("fs_show", r#"{"doc":"a"}"#)];
    gives_way(superseded(), &uses, &[]);
    let text = "schema_version = 1\nname = 'own'\n[[reduce]]\n[reduce.superseded]\nrules = [\n  { tool = 'fs_*', does = \
                'reads', target = 'doc', whole_unless = ['page'] },\n  { tool = 'Read', does = 'other', target = \
                'file_path' },\n]\n";
    let policy = Policy::from_toml(text).unwrap();
    gives_way(policy.clone(), &uses, &[0, 1]);
    gives_way(policy.clone(), &[("Read", READ), ("Read", READ)], &[]);
    assert_eq!(Policy::from_toml(&policy.to_toml()).unwrap(), policy);
    assert_eq!(Policy::from_json(&serde_json::to_string(&policy).unwrap()).unwrap(), policy);
}

#[test]
fn pins_and_the_newest_are_left_alone() {
    let mut agent = Agent::new(superseded().then(Similar::default()));
    let first = agent.uses("Read", READ, &long("old", 60));
    agent.reader.pin(Span::one(first));
    agent.calls(1);
    agent.uses("Read", READ, &long("new", 60));
    agent.calls(3);
    assert_eq!(agent.shown(first), long("old", 60));
    assert!(agent.reader.decisions().iter().all(|it| matches!(it.edit.change, Change::Pin(_))));
}

#[test]
fn a_file_that_has_not_changed_is_shown_once_for_good() {
    let mut agent = Agent::new(superseded().then(Identical::default()).then(Similar::default()));
    let text = long("same", 60);
    let first = agent.uses("Read", READ, &text);
    agent.calls(1);
    let again = agent.uses("Read", READ, &text);
    agent.calls(60);
    assert_eq!(agent.shown(first), text);
    assert!(agent.shown(again).contains("the same as m2 above"));
    assert_eq!(agent.reader.decisions().len(), 1);
}
