//! What of secrets and personal data a page shows, and everything else that is made from a log.

use super::made_up::{ALNUM, letters};
use proptest::prelude::*;
use recto::edit::{Change, Handle};
use recto::entry::{Arguments, Call, Media, Piece, Text, ToolResult};
use recto::event::{Since, events};
use recto::expand::{Ask, expand};
use recto::format::ResponseFormat;
use recto::fragment::{Fragment, Fragments};
use recto::log::{Counted, Kept};
use recto::policy::{AuthorRule, StatusRule};
use recto::recall::terms_of;
use recto::redact::{Redact, Screen, Within};
use recto::reduce::{Excerpt, Expire, FitWindow};
use recto::tool::Tools;
use recto::wire::Wire;
use recto::{
    Compiled, Entry, Log, Part, Policy, Reader, Request, Role, Seq, Span, Target, Tokenizer, Tokens, compile, plan,
};

/// How much of a secret may not be seen anywhere.
const PIECE: usize = 6;

fn token(seed: u64) -> String {
    format!("ghp_{}", letters(36, ALNUM, seed))
}

/// Whether a piece of a secret stands in a text.
fn leaks(text: &str, secret: &str) -> bool {
    let body = secret.trim_start_matches("ghp_").as_bytes();
    body.windows(PIECE).any(|piece| text.contains(std::str::from_utf8(piece).unwrap()))
}

fn everywhere() -> Redact {
    Redact { find: vec!["secrets".into()], ..Redact::default() }
}

/// A host that plans, commits, compiles and acknowledges.
struct Host {
    log: Log,
    reader: Reader,
    policy: Policy,
    target: Target,
    previous: Option<recto::page::Page>,
}

impl Host {
    fn new(policy: Policy) -> Host {
        let mut target = Target::eval().with_window(Some(Tokens(100_000)));
        target.tokenizer = Tokenizer::Chars4;
        let (log, reader) = (Log::counted_by(Tokenizer::Chars4), Reader::new("main"));
        Host { log, reader, policy, target, previous: None }
    }

    fn say(&mut self, entry: Entry) -> Seq {
        self.log.append(entry).unwrap()
    }

    /// A call of a tool and its result; returns where that stands.
    fn looks(&mut self, id: &str, arguments: &str, text: &str) -> Seq {
        self.say(Entry::step("", [Call::new(id, "look", arguments)]));
        self.say(Entry::result(id, text))
    }

    fn request(&self) -> Request<'_> {
        let previous = self.previous.as_ref();
        Request { previous, ..Request::new(&self.log, &self.reader, &self.policy, &self.target) }
    }

    fn call(&mut self) -> Compiled {
        let edits = plan(&self.request()).unwrap().edits;
        self.reader.commit(edits, self.policy.digest());
        let compiled = compile(&self.request()).unwrap();
        self.reader.acknowledge(&compiled.receipt.ticket).unwrap();
        self.previous = Some(compiled.page.clone());
        compiled
    }

    /// Everything that can be seen of a page, in every wire.
    fn seen(&self, compiled: &Compiled) -> String {
        let bodies = Wire::ALL.map(|wire| {
            let target = self.target.clone().over(wire);
            String::from_utf8(wire.encode(&compiled.page, &target)).unwrap()
        });
        let receipt = format!("{} {}", compiled.receipt, serde_json::to_string(&compiled.receipt).unwrap());
        let decisions = serde_json::to_string(self.reader.decisions()).unwrap();
        let events: Vec<String> =
            events(&self.reader, &self.log, Since::START).map(|event| format!("{event:?}")).collect();
        format!("{}\n{receipt}\n{decisions}\n{}", bodies.join("\n"), events.join("\n"))
    }
}

fn text_of(compiled: &Compiled, seq: Seq) -> String {
    let message = compiled.page.messages.iter().find(|message| message.seq == Some(seq)).expect("it is shown");
    format!("{:?}", message.parts)
}

#[test]
fn x12_of_a_secret_across_the_end_of_a_stub_no_piece_is_left() {
    let secret = token(1);
    let words = format!("{}{secret} {}", "x ".repeat(245), "y ".repeat(600));
    assert!(words.find(&secret) == Some(490) && words.len() > 1_000);
    for redact in [everywhere(), Redact::secrets_in_results(), Redact::nothing()] {
        let is_redacted = !redact.is_nothing();
        let policy = Policy::named("stubs").redacting(redact).then(Expire::first_chars(1, 500)).immediately();
        let mut host = Host::new(policy);
        host.say(Entry::user("Look."));
        let seq = host.looks("a", "{}", &words);
        host.say(Entry::user("Well?"));
        (0..3).for_each(|_| drop(host.call()));
        let compiled = host.call();
        let stub = text_of(&compiled, seq);
        assert!(stub.contains("recto_expand") && stub.len() < words.len(), "it is a stub: {stub}");
        // The control: without redaction the beginning of the secret is there.
        assert_eq!(leaks(&stub, &secret), !is_redacted, "{stub}");
        assert_eq!(leaks(&host.seen(&compiled), &secret), !is_redacted);
    }
}

#[test]
fn x13_what_is_expanded_is_redacted_and_the_log_keeps_the_original() {
    let secret = token(2);
    let words = format!("{}\ntoken is {secret}\n{}", "a line\n".repeat(60), "b line\n".repeat(60));
    for redact in [everywhere(), Redact::nothing()] {
        let is_redacted = !redact.is_nothing();
        let policy = Policy::named("stubs").redacting(redact).then(Expire::first_chars(1, 40)).immediately();
        let mut host = Host::new(policy);
        host.say(Entry::user("Look."));
        let seq = host.looks("a", "{}", &words);
        host.say(Entry::user("Well?"));
        (0..3).for_each(|_| drop(host.call()));
        let handle: Handle = Handle::entry(seq);
        let expansion = expand(&host.request(), &Ask::whole(handle)).unwrap();
        assert_eq!(leaks(&format!("{expansion:?}"), &secret), !is_redacted);
        assert_eq!(expansion.text.contains("[secret:github_token#"), is_redacted);
        host.reader.commit(expansion.edits, host.policy.digest());
        let compiled = host.call();
        assert!(text_of(&compiled, seq).contains("b line\\nb line"), "it stands there whole");
        assert_eq!(leaks(&host.seen(&compiled), &secret), !is_redacted);
        assert!(leaks(&format!("{:?}", host.log.get(seq).unwrap().original()), &secret), "the log has it");
        let search = Ask::whole(handle).only(recto::expand::Range::Search(secret.as_str().into()));
        assert!(expand(&host.request(), &search).is_err(), "it is shown whole, or can't be guessed");
    }
}

#[test]
fn x15_secrets_in_the_arguments_of_calls_are_redacted_wherever_a_call_is_told() {
    let secret = token(3);
    let arguments = format!(r#"{{"command":"curl -H 'X-Key: {secret}' https://host.io","n":1}}"#);
    for redact in [everywhere(), Redact::nothing()] {
        let is_redacted = !redact.is_nothing();
        let mut host = Host::new(Policy::named("plain").redacting(redact));
        host.say(Entry::user("Look."));
        host.say(Entry::step("I call it.", [Call::new("a", "Bash", arguments.as_str())]));
        let missing = host.call();
        assert_eq!(leaks(&host.seen(&missing), &secret), !is_redacted, "while it is open");
        host.say(Entry::result("a", "done"));
        host.say(Entry::user("Well?"));
        let compiled = host.call();
        let seen = host.seen(&compiled);
        assert_eq!(leaks(&seen, &secret), !is_redacted, "{seen}");
        for wire in Wire::ALL {
            let target = host.target.clone().over(wire);
            let body = wire.encode(&compiled.page, &target);
            assert!(serde_json::from_slice::<serde_json::Value>(&body).is_ok());
            assert!(wire.validate(&body).is_empty(), "{wire}: {:?}", wire.validate(&body));
        }
    }
}

#[test]
fn arguments_stay_json_and_escapes_hide_nothing() {
    let secret = token(4);
    // The same letters, spelled by their numbers.
    let spelled: String = secret.bytes().map(|byte| format!("\\u{byte:04x}")).collect();
    let number = "4111111111111111";
    let given = format!(r#"{{"key":"{spelled}","card":{number},"note":"a \"quoted\" {secret}"}}"#);
    let mut host = Host::new(Policy::named("all").redacting(Redact::everything()));
    host.say(Entry::user("Pay."));
    host.say(Entry::step("", [Call { arguments: Arguments::Object(given.into()), ..Call::new("a", "pay", "") }]));
    host.say(Entry::result("a", "paid"));
    let compiled = host.call();
    let call = compiled.page.messages.iter().flat_map(|it| it.parts.iter()).find_map(|part| match part {
        Part::Call(call) => Some(call.arguments.as_str().to_owned()),
        _ => None,
    });
    let shown: serde_json::Value = serde_json::from_str(&call.unwrap()).expect("it is JSON still");
    for (field, begins) in [("key", "[secret:github_token#"), ("card", "[personal:card#")] {
        assert!(shown[field].as_str().unwrap().starts_with(begins), "{shown}");
    }
    let note = shown["note"].as_str().unwrap();
    assert!(note.starts_with("a \"quoted\" [secret:github_token#"), "{note}");
    assert_eq!(shown["key"].as_str(), note.strip_prefix("a \"quoted\" "), "the same value, the same placeholder");
}

#[test]
fn a_policy_says_what_and_where_and_the_log_is_the_same() {
    let (secret, mail) = (token(5), "jo@company.io");
    let mut host = Host::new(Policy::none());
    let user = host.say(Entry::user(format!("Use {secret}, and write to {mail}.")));
    let result = host.looks("a", "{}", &format!("KEY={secret} {mail}"));
    let mut seen = |redact: Redact| {
        host.policy = Policy::named("some").redacting(redact);
        let compiled = compile(&host.request()).unwrap();
        [user, result].map(|seq| {
            let text = text_of(&compiled, seq);
            (leaks(&text, &secret), text.contains(mail))
        })
    };
    assert_eq!(seen(Redact::nothing()), [(true, true), (true, true)]);
    assert_eq!(seen(Redact::secrets_in_results()), [(true, true), (false, true)]);
    assert_eq!(seen(everywhere()), [(false, true), (false, true)]);
    assert_eq!(seen(Redact::everything()), [(false, false), (false, false)]);
    let personal = Redact { find: vec!["personal".into()], within: Within::Results, ..Redact::default() };
    assert_eq!(seen(personal), [(true, true), (true, false)]);
    let spared = Redact { spare: vec!["github_token".into()], ..Redact::everything() };
    assert_eq!(seen(spared), [(true, false), (true, false)]);
    assert_eq!(Policy::preset("default").unwrap().redact, Redact::secrets_in_results());
    assert_eq!(Policy::preset("none").unwrap().redact, Redact::nothing());
}

#[test]
fn a_secret_that_was_told_is_found_bare_in_what_comes_later() {
    let password = letters(14, ALNUM, 6);
    let mut host = Host::new(Policy::named("all").redacting(everywhere()));
    let before = host.say(Entry::user(format!("What is {password}?")));
    host.looks("a", "{}", &format!("db_password={password}\n"));
    let later = host.say(Entry::user(format!("Is it {password} or not?")));
    let args = host.say(Entry::step("", [Call::new("b", "look", format!(r#"{{"q":"{password}"}}"#))]));
    host.say(Entry::result("b", format!("no {password} here")));
    let compiled = host.call();
    assert!(text_of(&compiled, before).contains(&password), "nobody knew, and the past doesn't change");
    assert!(!text_of(&compiled, later).contains(&password) && !text_of(&compiled, args).contains(&password));
    assert_eq!(host.log.secrets().len(), 1);
    let kept = serde_json::to_string(host.log.secrets()).unwrap();
    assert!(!kept.contains(&password));
    // A log that goes on elsewhere knows it by that alone.
    let mut other = Log::counted_by(Tokenizer::Chars4).knowing(serde_json::from_str(&kept).unwrap());
    let seq = other.append(Entry::user(format!("And {password}."))).unwrap();
    let other = other.through(Screen::of(&everywhere()).unwrap());
    assert!(!format!("{:?}", other.get(seq).unwrap().shown()).contains(&password));
}

#[test]
fn patterns_of_a_policy_are_found_in_what_was_appended_before() {
    let mut host = Host::new(Policy::none());
    let seq = host.looks("a", "{}", "badge ACME-004711 and ACME-004712, ACME-004711 again");
    let patterns = [(Text::from("badge"), Text::from("ACME-[0-9]{6}"))].into();
    host.policy = Policy::named("own").redacting(Redact { patterns, ..Redact::default() });
    let compiled = host.call();
    let text = text_of(&compiled, seq);
    assert!(!text.contains("ACME-") && text.matches("[secret:badge#").count() == 3, "{text}");
    assert_eq!(compiled.receipt.redacted.kinds.get("badge"), Some(&3));
    let places: Vec<&str> = text.split("[secret:badge#").skip(1).map(|rest| &rest[..5]).collect();
    assert!(places[0] == places[2] && places[0] != places[1]);
    let wrong = Redact { patterns: [("badge".into(), "(a+)+".into())].into(), ..Redact::default() };
    host.policy = Policy::named("own").redacting(wrong);
    assert!(plan(&host.request()).unwrap_err().is_settings());
}

#[test]
fn entries_that_nobody_looked_through_are_looked_through_when_they_are_read() {
    let secret = token(7);
    let mut log = Log::counted_by(Tokenizer::Chars4);
    let seq = log.append(Entry::user(format!("token {secret}"))).unwrap();
    let counted = log.get(seq).unwrap();
    let (counts, screen) = (counted.counts(), Screen::of(&everywhere()).unwrap());
    let older = recto::redact::Findings { by: 1, list: Vec::new() };
    for (findings, is_late) in [(None, true), (Some(older), true), (Some(counted.findings().clone()), false)] {
        let kept = Kept { counts: &counts, findings };
        let read = Counted::stored(seq, counted.original().clone(), kept, &screen, &Tokenizer::Chars4).unwrap();
        assert!(!leaks(&format!("{:?}", read.shown()), &secret));
        assert_eq!(read.is_found_late(), is_late);
        assert!(read.cost > Tokens(0) && read.cost != read.said_cost());
    }
}

/// A canary in every field that a page could show it from.
fn canaries(host: &mut Host, secret: &str) -> (Fragments, Tools, ResponseFormat) {
    let media = |name: &str| Media {
        url: format!("https://me:{secret}@host.io/{name}").into(),
        name: Some(format!("{name}-{secret}").into()),
        detail: None,
    };
    host.say(Entry::system(format!("system {secret}")));
    host.say(Entry::user(format!("user {secret}")));
    host.say(Entry::new(Role::User, [Part::Image(media("image")), Part::Document(media("document")), Part::text("x")]));
    let payload = format!(r#"{{"type":"odd","text":"{secret}"}}"#);
    let opaque = Part::Opaque { provider: "anthropic".into(), payload: payload.into() };
    let thought = recto::entry::Reasoning { text: format!("thought {secret}").into(), ..Default::default() };
    let mut step = Entry::new(
        Role::Assistant,
        [
            Part::Reasoning(thought),
            opaque,
            Part::text(format!("said {secret}")),
            Part::Call(Call::new("a", "look", format!(r#"{{"q":"{secret}"}}"#))),
        ],
    );
    step.author = Some(format!("agent-{secret}").into());
    step.extra = serde_json::from_value(serde_json::json!({"openai_chat": {"odd": {"deep": [secret]}}})).unwrap();
    host.say(step);
    let content = vec![Piece::Text { text: format!("result {secret}").into() }, Piece::Image(media("shot"))];
    let result = ToolResult { call: "a".into(), content, is_error: true };
    host.say(Entry::new(Role::Tool, [Part::Result(result)]));
    let mut failed = Entry::assistant("half");
    failed.status = recto::entry::Status::Error;
    failed.meta.insert("error".into(), format!("refused: {secret}").into());
    host.say(failed);
    host.say(Entry::user("Well?"));
    let counter = &Tokenizer::Chars4;
    let fragments = [
        Fragment::fixed("rules", format!("rules {secret}")),
        Fragment::dynamic("state", format!("state {secret}")),
        Fragment::retrieved("found", format!("found {secret}")),
    ];
    let tool = serde_json::json!({"type": "function", "function": {"name": "look", "description": secret,
        "parameters": {"type": "object", "properties": {"q": {"type": "string", "default": secret}}}}});
    let format = serde_json::json!({"type": "object", "description": secret, "properties": {}});
    (
        Fragments::counted(fragments, counter).unwrap(),
        Tools::counted([tool.to_string().into()], counter),
        ResponseFormat::parse(&format.to_string()).unwrap().unwrap(),
    )
}

#[test]
fn a_canary_in_every_field_is_on_no_page_and_in_nothing_that_is_told_of_it() {
    let secret = token(8);
    for (redact, is_redacted) in [(everywhere(), true), (Redact::nothing(), false)] {
        let mut policy = Policy::named("all").redacting(redact);
        (policy.select.status, policy.select.authors) = (StatusRule::Note, AuthorRule::Named);
        let mut host = Host::new(policy);
        let (fragments, tools, format) = canaries(&mut host, &secret);
        let request =
            Request { fragments: Some(&fragments), tools: Some(&tools), format: Some(&format), ..host.request() };
        let compiled = compile(&request).unwrap();
        let seen = host.seen(&compiled);
        assert_eq!(leaks(&seen, &secret), !is_redacted, "{seen}");
        // The control: without redaction it is in nearly every field.
        let found = seen.matches(&secret[4..]).count();
        assert_eq!(found > 20, !is_redacted, "{found} times");
        let redacted = &compiled.receipt.redacted;
        assert_eq!(!redacted.is_empty(), is_redacted);
        assert_eq!(redacted.prompts, if is_redacted { 4 } else { 0 });
        assert!(!is_redacted || compiled.receipt.to_string().contains("  redacted "), "{}", compiled.receipt);
        let indexed = host.log.clone().through(Screen::of(&host.policy.redact).unwrap().strict());
        let is_findable = |log: &Log| log.back().any(|it| terms_of(it).contains(&secret.to_lowercase()));
        assert!(!is_findable(&indexed), "whoever reads, an index has no secret");
        assert!(is_findable(&host.log), "the control finds it");
    }
}

#[test]
fn what_another_policy_has_decided_is_read_through_this_ones_screen() {
    let secret = token(9);
    let words = format!("token {secret} {}", "word ".repeat(300));
    let mut host = Host::new(Policy::named("open").then(Expire::first_chars(1, 100)).immediately());
    host.say(Entry::user("Look."));
    let seq = host.looks("a", "{}", &words);
    host.say(Entry::user("Well?"));
    (0..3).for_each(|_| drop(host.call()));
    let quoted = |change: &Change| matches!(change, Change::Replace { text, .. } if leaks(text, &secret));
    assert!(host.reader.decisions().iter().any(|it| quoted(&it.edit.change)), "a decision quotes it");
    host.policy = Policy::named("closed").redacting(everywhere()).then(Expire::first_chars(1, 100)).immediately();
    let compiled = host.call();
    let stub = text_of(&compiled, seq);
    assert!(stub.contains("recto_expand") && !leaks(&stub, &secret), "{stub}");
    assert!(host.log.cost(recto::Lane::Talk, Span { first: seq, last: seq }).tokens > Tokens(0));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    /// Over many turns under a policy that shortens, merges and cuts: no piece of a secret is ever seen, the same one
    /// always stands as the same placeholder, and what was sent stays as it is unless something was decided.
    #[test]
    fn over_many_turns_a_secret_is_one_placeholder_and_the_prefix_stays(
        turns in prop::collection::vec((0u64..6, 0usize..5, 0usize..700), 4..14),
    ) {
        let reduce = Policy::named("all").redacting(everywhere()).then(Expire::first_chars(2, 300))
            .then(Excerpt::default()).then(FitWindow::default());
        let mut host = Host::new(reduce.immediately());
        let mut placeholders: std::collections::BTreeMap<u64, String> = Default::default();
        for (nth, (seed, kind, filling)) in turns.into_iter().enumerate() {
            let (secret, words) = (token(seed), "some words of a file. ".repeat(filling / 20));
            host.say(Entry::user(format!("turn {nth}")));
            let seq = match kind {
                0 => host.say(Entry::user(format!("{words}{secret}"))),
                1 => host.looks(&format!("c{nth}"), &format!(r#"{{"a":"{secret}"}}"#), &words),
                2 => host.looks(&format!("c{nth}"), "{}", &format!("{words}{secret}\n{words}")),
                3 => host.looks(&format!("c{nth}"), "{}", &format!("KEY={secret}")),
                _ => host.say(Entry::assistant(format!("I saw {secret}."))),
            };
            let before = host.previous.clone();
            let compiled = host.call();
            let seen = host.seen(&compiled);
            for seed in 0..6 {
                prop_assert!(!leaks(&seen, &token(seed)), "{}", seen);
            }
            let (text, step) = (text_of(&compiled, seq), text_of(&compiled, Seq(seq.0 - u64::from(kind == 1))));
            let found = [text, step].iter().find_map(|it| it.find("[secret:github_token#").map(|at| it[at..at + 27].to_owned()));
            if let Some(found) = found {
                prop_assert_eq!(placeholders.entry(seed).or_insert(found.clone()), &found);
            }
            let is_decided = compiled.receipt.ticket.ordinal > 0;
            if let Some(before) = before.filter(|_| !is_decided) {
                let pairs = before.messages.iter().zip(&compiled.page.messages);
                prop_assert!(pairs.clone().all(|(old, new)| old.digest == new.digest), "what was sent stays");
            }
        }
        let distinct: std::collections::BTreeSet<_> = placeholders.values().collect();
        prop_assert_eq!(distinct.len(), placeholders.len());
    }
}
