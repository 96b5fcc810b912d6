//! A context: every change is a new value that shares the rest, and sections, traces and passes make of it what the
//! scenarios say.

mod export;

use recto::context::{Changes, Imported};
use recto::edit::{Change, Edit, Floor, PartAt, Reason};
use recto::entry::{Call, Piece, RunId, Section};
use recto::fragment::{Fragment, Fragments};
use recto::item::Item;
use recto::page::Page;
use recto::policy::Sections;
use recto::reduce::{Recent, Reduce};
use recto::view::View;
use recto::{
    Compiled, Context, Entry, Error, Lane, Log, Part, Policy, Reader, Request, Role, Seq, Target, Tokenizer, Tokens,
    compile, compile_once, wire,
};
use serde_json::{Map, Value, json};
use std::sync::Arc;

const COUNTER: Tokenizer = Tokenizer::Bytes4;

fn of(entries: impl IntoIterator<Item = Entry>) -> Context {
    let mut log = Log::counted_by(COUNTER);
    entries.into_iter().try_for_each(|entry| log.append(entry).map(|_| ())).unwrap();
    Context::from(log)
}

fn within(section: &str, text: &str) -> Entry {
    Entry { section: section.into(), ..Entry::assistant(text) }
}

/// Compiles a context, with a run under way or none.
fn page(context: &Context, policy: &Policy, run: Option<&RunId>) -> Result<Compiled, Error> {
    let (reader, target, fragments) = (Reader::new("main"), Target::eval(), context.fragments([])?);
    let request = context.request(&fragments, &reader, policy, &target);
    compile_once(&Request { run, ..request })
}

fn body(compiled: &Compiled) -> String {
    String::from_utf8(wire::openai_chat::encode(&compiled.page, &Target::eval())).unwrap()
}

/// The texts of a page, results and calls included.
fn texts(page: &Page) -> Vec<&str> {
    let parts = page.messages.iter().flat_map(|message| message.parts.iter());
    let text = parts.map(|part| match part {
        Part::Text { text } => &**text,
        Part::Call(call) => call.id.as_str(),
        Part::Result(result) => match &*result.content {
            [Piece::Text { text }] => text,
            other => panic!("no result here holds {other:?}"),
        },
        other => panic!("no page here shows {other:?}"),
    });
    text.collect()
}

fn shown(context: &Context, policy: &Policy) -> Vec<String> {
    let compiled = page(context, policy, None).unwrap();
    texts(&compiled.page).into_iter().map(str::to_owned).collect()
}

fn import(text: &str) -> Imported {
    Context::from_json(text, COUNTER).unwrap()
}

fn seqs(context: &Context) -> Vec<u64> {
    let mut seqs: Vec<u64> = context.store().back().map(|entry| entry.seq.0).collect();
    seqs.reverse();
    seqs
}

fn object(value: Value) -> Map<String, Value> {
    value.as_object().unwrap().clone()
}

#[test]
fn a_change_leaves_the_old_value_alone_and_shares_its_entries() {
    let old = of([Entry::user("one"), within("summary", "two"), Entry::user("three")]).with_metadata_key("k", 1);
    let before = old.to_json();
    let mut store = old.store().clone();
    store.append(within("notes", "four")).unwrap();
    let changed = [
        old.with_system_prompt("Be kind."),
        old.with_metadata_key("k", 2),
        old.with_response_format("{}").unwrap(),
        old.with_appended_messages([Entry::user("four")]).unwrap(),
        old.with_message_store(store),
        old.with(Changes { system_prompt: Some("x".into()), ..Changes::default() }).unwrap(),
    ];
    assert_eq!(old.to_json(), before);
    for new in &changed {
        assert_ne!(new.to_json(), before);
        for seq in [Seq(0), Seq(1), Seq(2)] {
            assert!(std::ptr::eq(old.store().get(seq).unwrap(), new.store().get(seq).unwrap()));
        }
    }
    let untouched = old.with_system_prompt("Be kind.");
    assert!(std::ptr::eq(old.metadata(), untouched.metadata()));
    assert_eq!((old.metadata()["k"].clone(), changed[1].metadata()["k"].clone()), (json!(1), json!(2)));
}

#[test]
fn everything_but_the_conversation_may_be_left_out() {
    let empty = Context::empty(COUNTER);
    assert_eq!((empty.system_prompt(), empty.metadata().len(), empty.response_format()), ("", 0, None));
    assert!(empty.messages().is_empty() && empty.store().is_empty());
    assert!(shown(&empty, &Policy::safe()).is_empty());
    let nothing = import("{\"recto\": 1, \"metadata\": null, \"systemPrompt\": null, \"messageStore\": null}");
    assert_eq!(nothing.context.to_json(), empty.to_json());
    assert_eq!(import("{\"recto\": 1}").context.to_json(), empty.to_json());
}

#[test]
fn several_changes_at_once_equal_one_after_the_other() {
    let (context, store) = (of([Entry::user("old")]), of([Entry::user("new")]).store().clone());
    let metadata = object(json!({"user": "ada"}));
    let changes = Changes {
        store: Some(store.clone()),
        metadata: Some(metadata),
        system_prompt: Some("Be kind.".into()),
        response_format: Some("[1]".into()),
    };
    let one_by_one = context.with_message_store(store).with_metadata_key("user", "ada").with_system_prompt("Be kind.");
    let at_once = context.with(changes).unwrap();
    assert_eq!(at_once.to_json(), one_by_one.with_response_format("[1]").unwrap().to_json());
    assert_eq!(at_once.with(Changes::default()).unwrap().to_json(), at_once.to_json());
}

#[test]
fn messages_are_those_of_their_section_alone() {
    let trace = Entry { lane: Lane::Trace, ..Entry::assistant("two") };
    let context = of([Entry::user("one"), within("summary", "no"), trace, within("buffer", "no")]);
    let messages: Vec<u64> = context.messages().iter().map(|entry| entry.seq.0).collect();
    assert_eq!((messages, context.store().len()), (vec![0, 2], 4));
}

#[test]
fn new_messages_take_places_that_none_had_before() {
    let old = of([Entry::user("one"), within("summary", "two"), Entry::user("three"), within("x", "four")]);
    let new = old.with_messages([Entry::user("five"), Entry::user("six")]).unwrap();
    assert_eq!((seqs(&old), seqs(&new)), (vec![0, 1, 2, 3], vec![1, 3, 4, 5]));
    for seq in [Seq(1), Seq(3)] {
        let (one, other) = (old.store().get(seq).unwrap(), new.store().get(seq).unwrap());
        assert!(Arc::ptr_eq(one.shown(), other.shown()), "the text of {seq} was copied");
    }
    // The places of the last messages are not given again either, nor after an export.
    let none = new.with_messages([]).unwrap();
    assert_eq!((seqs(&none), none.messages().len()), (vec![1, 3], 0));
    let later = import(&none.to_json()).context.with_appended_messages([Entry::user("seven")]).unwrap();
    assert_eq!(seqs(&later), [1, 3, 6]);
    let earlier = later.with_message_store(later.store().until(Some(Seq(3))));
    assert_eq!(seqs(&earlier.with_appended_messages([Entry::user("eight")]).unwrap()), [1, 3, 7]);
}

#[test]
fn what_a_reader_left_behind_says_nothing_of_new_messages() {
    let old = of([Entry::user("one"), within("summary", "two"), Entry::user("three"), Entry::user("four")]);
    let floor = Floor { at: Seq(3), keeps: Vec::new(), open: Vec::new() };
    let why = Reason::NotNewest { keep: 1 };
    let cut =
        Edit { change: Change::Floor(floor), by: "cut".into(), why, before: Tokens(9), after: Tokens(1), due: None };
    let (mut reader, policy, target) = (Reader::new("main"), Policy::named("plain"), Target::eval());
    reader.commit([cut], policy.digest());
    let seen = |context: &Context| {
        let fragments = context.fragments([]).unwrap();
        let compiled = compile(&context.request(&fragments, &reader, &policy, &target)).unwrap();
        texts(&compiled.page).join(" ")
    };
    let new = old.with_messages([Entry::user("five"), Entry::user("six")]).unwrap();
    assert_eq!((seen(&old).as_str(), seen(&new).as_str()), ("two four", "two five six"));
}

#[test]
fn a_message_that_is_refused_changes_nothing() {
    let context = of([Entry::user("one")]);
    let wrong = [Entry::user("two"), Entry::new(Role::Tool, [Part::text("no result")])];
    let error = context.with_appended_messages(wrong).unwrap_err();
    assert_eq!(error.to_string(), "tool entry: a part that is no result");
    let error = context.with_messages([within("summary", "two")]).unwrap_err();
    assert_eq!(error.to_string(), "a message of section summary");
    assert_eq!(seqs(&context), [0]);
}

#[test]
fn the_system_prompt_stands_first_and_byte_for_byte() {
    let context = of([Entry::system("From the log."), Entry::user("hi")]);
    assert!(context.fragments([]).unwrap().list().is_empty());
    for prompt in [" \n", "Be terse.\n\n", "\u{feff}x"] {
        let context = context.with_system_prompt(prompt);
        assert_eq!(shown(&context, &Policy::safe()), [prompt, "From the log.", "hi"]);
    }
    let prompted = context.with_system_prompt("Be terse.");
    let ids = |fragments: Fragments| fragments.list().iter().map(|it| it.fragment.id.to_string()).collect::<Vec<_>>();
    assert_eq!(ids(prompted.fragments([Fragment::dynamic("todo", "- one")]).unwrap()), ["system", "todo"]);
    assert!(prompted.fragments([Fragment::fixed("system", "again")]).unwrap_err().is_settings());
}

#[test]
fn a_response_format_is_json_and_kept_byte_for_byte() {
    let context = Context::empty(COUNTER);
    let schema = "{\"z\": 1.10,\n \"a\": [ ]}";
    let with = context.with_response_format(format!(" {schema}\n")).unwrap();
    assert_eq!(with.response_format(), Some(schema));
    assert_eq!(import(&with.to_json()).context.response_format(), Some(schema));
    assert_eq!(with.with_response_format("null").unwrap().response_format(), None);
    let error = context.with_response_format("{\"a\":\n 1,}").unwrap_err();
    assert_eq!(error.to_string(), "line 2, column 4: response format: key must be a string");
}

#[test]
fn s33_sections_in_declared_order() {
    let first = ["messages", "buffer", "summary", "x"];
    let entries = first.into_iter().chain(first).enumerate().map(|(at, name)| within(name, &format!("{name} {at}")));
    let context = of(entries);
    let selecting = |sections: &[&str]| {
        let mut policy = Policy::named("sections");
        policy.select.sections = Sections::Only(sections.iter().copied().map(Section::from).collect());
        policy
    };
    let default = ["summary 2", "summary 6", "buffer 1", "buffer 5", "messages 0", "messages 4"];
    assert_eq!(shown(&context, &Policy::named("default")), default);
    assert_eq!(shown(&context, &Policy::cognesy_selected()), default);
    let chosen = shown(&context, &selecting(&["summary", "messages"]));
    assert_eq!(chosen, ["summary 2", "summary 6", "messages 0", "messages 4"]);
    assert_eq!(shown(&context, &selecting(&[])), ["messages 0", "messages 4"]);
    assert!(shown(&context, &selecting(&["missing"])).is_empty());
    let reversed = shown(&context, &selecting(&["messages", "missing", "x"]));
    assert_eq!(reversed, ["messages 0", "messages 4", "x 3", "x 7"]);
    let error = page(&context, &selecting(&["summary", "messages", "summary"]), None).unwrap_err();
    assert!(error.is_settings() && error.to_string().contains("summary twice"), "{error}");
}

fn traced(run: Option<&str>, entry: Entry) -> Entry {
    Entry { lane: Lane::Trace, run: run.map(RunId::from), ..entry }
}

#[test]
fn s34_traces_of_the_current_run() {
    let said = |run: &str, entry: Entry| Entry { run: Some(run.into()), ..entry };
    let calling = |run, id: &str| traced(run, Entry::step("", [Call::new(id, "look", "{}")]));
    let context = of([
        said("1", Entry::user("U")),
        calling(Some("1"), "C"),
        traced(Some("1"), Entry::result("C", "R")),
        said("1", Entry::assistant("A")),
        calling(None, "N"),
        traced(None, Entry::result("N", "no run")),
        said("2", Entry::user("U2")),
        calling(Some("child"), "K"),
        calling(Some("2"), "C2"),
        traced(Some("child"), Entry::result("K", "of the child")),
        traced(Some("2"), Entry::result("C2", "R2")),
    ]);
    let policy = Policy::cognesy_default();
    let during = |run: Option<&RunId>| {
        let compiled = page(&context, &policy, run).unwrap();
        let rows = compiled.receipt.fates.iter().map(|row| row.entries).sum::<u64>();
        assert_eq!(rows, context.store().len(), "every entry has one fate");
        texts(&compiled.page).into_iter().map(str::to_owned).collect::<Vec<_>>()
    };
    assert_eq!(during(Some(&"2".into())), ["U", "A", "U2", "C2", "R2"]);
    assert_eq!(during(Some(&"1".into())), ["U", "C", "R", "A", "U2"]);
    assert_eq!(during(Some(&"child".into())), ["U", "A", "U2", "K", "of the child"]);
    assert_eq!(during(None), ["U", "A", "U2"]);
    assert_eq!(during(Some(&"3".into())), ["U", "A", "U2"]);
}

/// A pass of the host's own: the oldest message that is shown says less.
#[derive(Debug)]
struct ShortenOldest;

impl Reduce for ShortenOldest {
    fn name(&self) -> &str {
        "shorten_oldest"
    }

    fn propose(&self, view: &View<'_>, _request: &Request<'_>) -> Vec<Edit> {
        let oldest = view.editable().next();
        oldest.map(|item| replace(view, item.seq(), item.part_cost(0), "…", self.name())).into_iter().collect()
    }
}

/// A pass of the host's own: digits are not shown.
#[derive(Debug)]
struct RedactDigits;

impl Reduce for RedactDigits {
    fn name(&self) -> &str {
        "redact_digits"
    }

    fn propose(&self, view: &View<'_>, _request: &Request<'_>) -> Vec<Edit> {
        let of = |item: &Item<'_>| match item.parts() {
            [Part::Text { text }] if text.contains(|c: char| c.is_ascii_digit()) => {
                let text = text.replace(|c: char| c.is_ascii_digit(), "#");
                Some(replace(view, item.seq(), item.part_cost(0), &text, self.name()))
            }
            _ => None,
        };
        view.editable().filter_map(of).collect()
    }
}

fn replace(view: &View<'_>, seq: Seq, before: Tokens, text: &str, by: &str) -> Edit {
    let change = Change::Replace { at: PartAt { seq, part: 0 }, text: text.into() };
    let why = Reason::Own { what: "a rule of the host's".into() };
    Edit { change, by: by.to_owned().into(), why, before, after: view.count(text), due: None }
}

#[test]
fn s35_decorators_apply_in_order() {
    let said = ["a1", "b2", "c3", "d4", "e5"].map(Entry::assistant);
    let context = of([Entry::user("U")].into_iter().chain(said));
    let (reader, target, fragments) = (Reader::new("main"), Target::eval(), context.fragments([]).unwrap());
    // What is to be answered comes on top of what the limit leaves.
    let input = context.store().draft(Entry::user("Go.")).unwrap();
    let compiled = |policy: &Policy| {
        let request = context.request(&fragments, &reader, policy, &target);
        compile_once(&Request { input: Some(&input), ..request }).unwrap()
    };
    let digests = || context.store().back().map(|entry| entry.digest).collect::<Vec<_>>();
    let before = (context.to_json(), digests());
    let limit = || Recent::messages(3);
    let policies = [
        (Policy::named("limit over redact").then(RedactDigits).then(limit()), "c# d# e# Go."),
        (Policy::named("redact over limit").then(limit()).then(RedactDigits), "c# d# e# Go."),
        // The oldest message is gone before it can be shortened, or shortened before the limit takes it.
        (Policy::named("shorten over limit").then(limit()).then(ShortenOldest), "… d4 e5 Go."),
        (Policy::named("limit over shorten").then(ShortenOldest).then(limit()), "c3 d4 e5 Go."),
        // What one pass has changed, the next one does not change again.
        (Policy::named("all").then(RedactDigits).then(limit()).then(ShortenOldest), "c# d# e# Go."),
        (Policy::named("none"), "U a1 b2 c3 d4 e5 Go."),
    ];
    for (policy, expected) in &policies {
        let (one, other) = (compiled(policy), compiled(policy));
        assert_eq!(texts(&one.page).join(" "), *expected, "{}", policy.name);
        assert_eq!((body(&one), &one), (body(&other), &other), "{}", policy.name);
    }
    assert_eq!((context.to_json(), digests()), before);
}
