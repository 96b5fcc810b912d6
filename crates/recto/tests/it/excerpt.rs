//! Excerpts, lived through: what stays of old texts, what is never touched, and that all of it can be had again.

mod odd; // texts as odd as they come
mod pairs; // excerpts, broken-off answers and summaries: calls keep their results

use crate::pays::{BARE, Host, text_at};
use recto::edit::{Change, Handle, PartAt, Reason};
use recto::entry::{Arguments, Call, Media, Piece, Reasoning, Redaction, ToolResult};
use recto::expand::{Ask, expand};
use recto::reduce::Excerpt;
use recto::{Entry, Part, Policy, Role, Seq, Span, Tokens, Wire};
use recto_testkit::fake::{self, Api};

/// What the first line of every gap begins with.
const GAP: char = '…';

/// Excerpts after one call, at once; more worth leaves less.
fn excerpting(worth: f64) -> Policy {
    Policy::named("test").then(Excerpt { after: 1, worth, ..Excerpt::default() }).immediately()
}

/// Lines of code, each about something of its own, between lines that say nothing.
fn code(about: &str, lines: usize) -> String {
    let line = |nth: usize| match nth % 3 {
        0 => format!("    let {about}_{nth} = compute_{about}(\"part {nth}\", {});", 1_000 + nth * 7),
        1 => "    }".to_string(),
        _ => format!("    // and then it goes on with {about} and so on and so forth, as before"),
    };
    (0..lines).map(line).collect::<Vec<_>>().join("\n")
}

const READ: &str = r#"{"file_path":"/w/a.rs"}"#;

/// What an excerpt keeps of its original, line by line.
#[track_caller]
fn kept<'t>(shown: &'t str, original: &str, seq: Seq) -> Vec<&'t str> {
    let lines: Vec<&str> = original.split('\n').collect();
    let (mut at, mut kept, mut is_first) = (0, Vec::new(), true);
    for line in shown.split('\n') {
        if line.starts_with(GAP) {
            assert_eq!(line.contains(&format!("recto_expand m{}", seq.0)), is_first, "{line}");
            is_first = false;
            continue;
        }
        let found = lines[at..].iter().position(|it| *it == line);
        at += found.unwrap_or_else(|| panic!("{line:?} is not in the original, or not in order")) + 1;
        kept.push(line);
    }
    assert!(!is_first, "there is no gap");
    let mark = shown.split('\n').find(|line| line.starts_with(GAP)).unwrap();
    let counts = format!("{} of {} lines", lines.len() - kept.len(), lines.len());
    assert!(mark.contains(&counts), "{mark}: not {counts}");
    kept
}

/// Decisions that changed a part of an entry.
fn made(host: &Host, seq: Seq) -> Vec<&recto::edit::Decision> {
    let is_excerpt = |it: &&recto::edit::Decision| matches!(it.edit.why, Reason::Excerpted { .. });
    host.reader.decisions().iter().filter(is_excerpt).filter(|it| it.edit.change.seq() == seq).collect()
}

#[test]
fn lines_stay_word_for_word_and_the_first_gap_tells_how_to_have_the_rest() {
    for (worth, about) in [(2.0, "alpha"), (8.0, "beta"), (1e9, "gamma")] {
        let mut host = Host::new(excerpting(worth));
        let text = code(about, 90);
        let seq = host.uses("Read", READ, &text);
        (0..4).for_each(|_| drop(host.turn(3)));
        let shown = host.shown(seq).unwrap();
        let kept = kept(&shown, &text, seq);
        assert_eq!(kept.is_empty(), worth > 1e6, "{}", kept.len());
        let [decision] = made(&host, seq)[..] else { panic!("{:?}", host.reader.decisions()) };
        assert!(matches!(decision.edit.why, Reason::Excerpted { age: 2, kept: n, of: 90 } if n == kept.len()));
        // By the handle in the gap.
        let named = shown.split("recto_expand ").nth(1).unwrap().split([' ', ']']).next().unwrap();
        let handle = Handle::parse(named).unwrap();
        assert_eq!(handle, Handle::entry(seq));
        let expansion = expand(&host.request(), &Ask::whole(handle)).unwrap();
        let (title, told) = expansion.text.split_once('\n').unwrap();
        assert_eq!((told, title.starts_with(&format!("[{handle}: "))), (&*text, true));
        host.reader.commit(expansion.edits, host.policy.digest());
        host.turn(3);
        assert_eq!(host.shown(seq), Some(text));
        host.remembers();
    }
}

#[test]
fn sixty_calls_later_it_says_the_same_and_was_decided_once() {
    let mut host = Host::new(excerpting(4.0));
    let text = code("alpha", 90);
    let seq = host.uses("Read", READ, &text);
    (0..3).for_each(|_| drop(host.turn(3)));
    let shown = host.shown(seq);
    assert_ne!(shown, Some(text.clone()));
    for _ in 0..60 {
        host.turn(3);
        assert_eq!(host.shown(seq), shown);
        // What it says is said again, and used: that was decided already.
        host.uses("Read", READ, &code("alpha", 12));
    }
    assert_eq!(made(&host, seq).len(), 1);
    assert!(matches!(&*host.log.get(seq).unwrap().original().parts, [Part::Result(it)] if it.chars() == text.len()));
    host.remembers();
}

#[test]
fn what_stands_elsewhere_on_the_page_is_not_kept() {
    let text = code("alpha", 60);
    let lines_kept = |elsewhere: fn(&mut Host, &str) -> Seq| {
        let mut host = Host::new(excerpting(1.0));
        let seq = host.uses("Read", READ, &text);
        host.turn(3);
        elsewhere(&mut host, &text);
        (0..2).for_each(|_| drop(host.turn(3)));
        let shown = host.shown(seq).unwrap();
        kept(&shown, &text, seq).len()
    };
    let alone = lines_kept(|host, _| host.say(Entry::user("And?")));
    assert!(alone >= 15, "{alone}");
    assert_eq!(lines_kept(|host, text| host.uses("Read", READ, text)), 0, "it was read again");
    assert_eq!(lines_kept(|host, text| host.say(Entry::user(text))), 0, "the user has said it");
    assert_eq!(lines_kept(|host, text| host.say(Entry::assistant(text))), 0, "the agent has said it");
    assert_eq!(lines_kept(|host, _| host.say(Entry::user(code("beta", 60)))), alone, "something else was said");
}

#[test]
fn of_two_that_go_together_each_line_stays_once() {
    let mut host = Host::new(excerpting(1.0));
    let (one, other) = (code("alpha", 60), code("alpha", 75));
    let (first, second) = (host.uses("Read", READ, &one), host.uses("Read", READ, &other));
    (0..4).for_each(|_| drop(host.turn(3)));
    let (shown, again) = (host.shown(first).unwrap(), host.shown(second).unwrap());
    let said = |line: &&str| line.contains("compute_");
    let (kept_first, kept_second) = (kept(&shown, &one, first), kept(&again, &other, second));
    let all: Vec<&str> = kept_first.iter().chain(&kept_second).copied().filter(|line| said(line)).collect();
    let mut unlike = all.clone();
    unlike.sort_unstable();
    unlike.dedup();
    assert_eq!(unlike.len(), all.len(), "{all:?}");
    assert!(unlike.len() >= 15, "{unlike:?}");
}

/// A step that thinks, speaks and writes, with its result; returns where both stand.
fn works(host: &mut Host, thought: Reasoning, arguments: Arguments, result: Vec<Piece>) -> (Seq, Seq) {
    let id = format!("call-{}", host.log.len());
    let call = Part::Call(Call { id: (&*id).into(), name: "Write".into(), arguments });
    let step = host.say(Entry::new(Role::Assistant, [Part::Reasoning(thought), Part::text("I write."), call]));
    let result = ToolResult { call: (&*id).into(), content: result, is_error: false };
    (step, host.say(Entry::new(Role::Tool, [Part::Result(result)])))
}

fn written(text: &str) -> String {
    serde_json::json!({"file_path": "/w/a.rs", "content": text}).to_string()
}

fn text_piece(text: String) -> Piece {
    Piece::Text { text: text.into() }
}

#[test]
fn what_may_not_be_touched_is_not() {
    let mut host = Host::new(excerpting(1e9));
    let spared = [
        host.say(Entry::system(code("rules", 60))),
        host.say(Entry::user(code("wishes", 60))),
        host.uses("Read", READ, &code("pinned", 60)),
    ];
    host.reader.pin(Span::one(spared[2]));
    let image = Piece::Image(Media { url: "https://example.org/a.png".into(), name: None, detail: None });
    let open = Reasoning { text: code("thought", 60).into(), ..Reasoning::default() };
    let sealed = Reasoning { signature: Some("c2VhbGVk".into()), provider: Some("openai".into()), ..open.clone() };
    let no_json = Arguments::String(format!("{{\"content\": \"{}", code("broken", 60).replace('"', "'")).into());
    let with_image = vec![text_piece(code("picture", 60)), image];
    let (sealed_step, pictured) = works(&mut host, sealed, no_json, with_image);
    // The same where nothing speaks against it.
    let (step, plain) = works(
        &mut host,
        open,
        Arguments::String(written(&code("file", 60)).into()),
        vec![text_piece(code("seen", 60))],
    );
    let answer = host.say(Entry::assistant(code("answer", 60)));
    (0..5).for_each(|_| drop(host.call()));
    assert!(made(&host, answer).is_empty(), "it is the newest");
    host.say(Entry::user("On."));
    (0..5).for_each(|_| drop(host.turn(3)));
    for seq in spared.into_iter().chain([sealed_step, pictured]) {
        assert!(made(&host, seq).is_empty(), "{seq}");
    }
    let parts = |seq| made(&host, seq).iter().map(|it| it.edit.change.clone()).map(part_of).collect::<Vec<_>>();
    assert_eq!((parts(step), parts(plain), parts(answer)), (vec![0, 2], vec![0], vec![0]));
    // What the model has not seen yet.
    let unseen = host.uses("Read", READ, &code("unseen", 60));
    host.say(Entry::user("And?"));
    host.call();
    assert_eq!(host.shown(unseen), Some(code("unseen", 60)));
    host.remembers();
}

fn part_of(change: Change) -> usize {
    match change {
        Change::Replace { at: PartAt { part, .. }, .. } => part,
        other => panic!("{other:?}"),
    }
}

#[test]
fn without_their_settings_arguments_answers_and_thoughts_stay() {
    let pass = Excerpt { after: 1, worth: 1e9, arguments: false, reasoning: false, answers: false };
    let mut host = Host::new(Policy::named("test").then(pass).immediately());
    let thought = Reasoning { text: code("thought", 60).into(), ..Reasoning::default() };
    let arguments = Arguments::String(written(&code("file", 60)).into());
    let (step, plain) = works(&mut host, thought, arguments, vec![text_piece(code("seen", 60))]);
    let answer = host.say(Entry::assistant(code("answer", 60)));
    host.say(Entry::user("On."));
    (0..5).for_each(|_| drop(host.turn(3)));
    assert_eq!([step, answer, plain].map(|seq| made(&host, seq).len()), [0, 0, 1]);
}

#[test]
fn arguments_stay_json_on_every_wire() {
    let text = format!("{}\nsay \"hello\" and C:\\\\path\\new\n{}", code("alpha", 40), code("béta 字", 40));
    for (wire, api) in
        [(Wire::OpenaiChat, Api::Chat), (Wire::OpenaiResponses, Api::Responses), (Wire::Anthropic, Api::Messages)]
    {
        for worth in [1.0, 1e9] {
            for is_object in [false, true] {
                let mut host = Host::new(excerpting(worth));
                host.target = host.target.over(wire);
                host.target.name = if wire == Wire::Anthropic { "claude-opus-5".into() } else { "gpt-4o".into() };
                let json = written(&text).into();
                let arguments = if is_object { Arguments::Object(json) } else { Arguments::String(json) };
                let step = host.say(Entry::step("", [Call { id: "call_1".into(), name: "Write".into(), arguments }]));
                host.say(Entry::result("call_1", "written"));
                host.say(Entry::user("On."));
                (0..4).for_each(|_| drop(host.turn(3)));
                assert_eq!(made(&host, step).len(), 1);
                let shown = host.shown(step).unwrap();
                let value: serde_json::Value = serde_json::from_str(&shown).unwrap();
                assert_eq!(value["file_path"], "/w/a.rs");
                let left = value["content"].as_str().unwrap();
                assert!(left.contains(&format!("recto_expand m{}", step.0)) && left.len() < text.len(), "{left}");
                let body = wire.encode(&host.last().page, &host.target);
                let refusal = fake::check(api, &body).err();
                assert!(refusal.is_none(), "{wire:?}: {refusal:?}\n{}", String::from_utf8_lossy(&body));
            }
        }
    }
}

#[test]
fn a_secret_is_in_no_excerpt() {
    let secret = "sk-canary-7f3a";
    for is_marked in [true, false] {
        let mut host = Host::new(excerpting(1.0));
        let text = format!("{}\nkey_of_alpha = \"{secret}\" # 4711 0815\n{}", code("alpha", 30), code("beta", 30));
        let start = text.find(secret).unwrap();
        let mark = Redaction { part: 0, piece: 0, start, end: start + secret.len(), label: "[redacted:key]".into() };
        host.say(Entry::step("", [Call::new("a", "Read", READ)]));
        let redactions = is_marked.then_some(mark).into_iter().collect();
        let seq = host.say(Entry { redactions, ..Entry::result("a", text.as_str()) });
        host.say(Entry::user("On."));
        (0..6).for_each(|_| drop(host.turn(3)));
        assert_eq!(made(&host, seq).len(), 1);
        assert!(host.shown(seq).unwrap().contains("key_of_alpha"), "the line stays, and so does the test");
        let told = |is_found: bool, what: String| assert_eq!(what.contains(secret), is_found, "{what}");
        told(!is_marked, format!("{:?}", host.reader.decisions()));
        told(!is_marked, host.past.iter().map(|(plan, it)| format!("{plan:?} {:?}", it.page)).collect());
        told(false, host.past.iter().map(|(_, it)| serde_json::to_string(&it.receipt).unwrap()).collect());
    }
}

#[test]
fn what_was_due_at_a_cut_and_stayed_is_not_tried_again() {
    let mut policy = Policy::named("test").then(Excerpt { after: 1, worth: 0.5, ..Excerpt::default() });
    policy.patience = BARE;
    let mut host = Host::new(policy);
    // Of one nearly all goes; of the other every line is worth its tokens.
    let dull = host.uses("Bash", "{}", &"nothing to see here, move along\n".repeat(400));
    let full: String = (0..40).map(|nth| format!("\"key_{nth}\": {}\n", 10_000 + nth * 7_919)).collect();
    let dense = host.uses("Bash", "{}", &full);
    host.say(Entry::user("On."));
    let calls = (0..60).take_while(|_| host.turn(3).is_empty()).count();
    assert_eq!(host.past[calls - 1].1.receipt.savings.waiting.unwrap().candidates, 2);
    assert_eq!((made(&host, dull).len(), made(&host, dense).len(), host.cuts().len()), (1, 0, 1));
    assert_eq!(host.shown(dense), Some(full.clone()));
    for _ in 0..60 {
        assert_eq!(host.turn(3), []);
        assert_eq!(host.last().receipt.savings.waiting, None, "nothing is hoped for any more");
    }
    assert_eq!(text_at(&host.last().page, dense), Some(full));
    host.remembers();
}

#[test]
fn below_the_smallest_size_nothing_is_cut() {
    let mut host = Host::new(excerpting(1e9));
    let short = host.uses("Bash", "{}", &"ab cd\n".repeat(26));
    let longer = host.uses("Bash", "{}", &"ab cd\n".repeat(27));
    assert_eq!((host.log.get(short).unwrap().cost, host.log.get(longer).unwrap().cost), (Tokens(39), Tokens(41)));
    (0..4).for_each(|_| drop(host.turn(3)));
    assert_eq!((made(&host, short).len(), made(&host, longer).len()), (0, 1));
}
