//! Results that are nearly the same, or of no use any more; all passes together, and as data.

use super::{Agent, identical, lines, long, of, said};
use recto::edit::{Change, PartAt, Reason};
use recto::entry::{Call, Piece, Text};
use recto::expiry::{Expiry, ExpiryAction};
use recto::policy::{Decorate, Step};
use recto::reduce::{Expire, FitWindow, Identical, Irrelevant, Similar, Superseded};
use recto::tool_use::{Deed, Rule};
use recto::{Entry, Log, Part, Policy, Replay, Seq, Target, Tokens, transcript, wire};
use recto_testkit::mixed::Dice;
use recto_testkit::shared;
use std::collections::{BTreeMap, BTreeSet};

#[test]
fn what_was_nearly_repeated_goes() {
    let line = |nth: usize, changed: usize| match nth < changed {
        true => format!("line {nth} of it says something else\n"),
        false => format!("line {nth} of it says {}\n", nth * 3),
    };
    let text = |changed: usize| (0..100).map(|nth| line(nth, changed)).collect::<String>();
    let check = |threshold: f64, changed: usize, tool: &str| {
        let mut agent = Agent::new(of(Similar { threshold, ..Similar::default() }));
        let first = agent.uses("list", "{}", &text(0));
        agent.calls(1);
        let again = agent.uses(tool, "{}", &text(changed));
        assert_eq!(agent.call(), [], "nobody has seen the newer one");
        agent.calls(3);
        assert!(agent.decided(again).is_empty() && agent.decided(first).len() < 2);
        agent.decided(first).first().map(|it| it.edit.why.clone())
    };
    let Some(Reason::Similar { percent, .. }) = check(0.9, 1, "list") else { panic!("it stayed") };
    assert!((90..100).contains(&percent), "{percent}");
    assert!(matches!(check(0.9, 0, "list"), Some(Reason::Similar { percent: 100, .. })));
    assert_eq!(check(0.9, 1, "other"), None);
    assert_eq!(check(0.9, 40, "list"), None);
    assert!(check(0.2, 40, "list").is_some());
    assert_eq!(check(1.0, 1, "list"), None);
}

#[test]
fn similar_stubs_stay_for_sixty_turns() {
    let mut agent = Agent::new(of(Similar::default()));
    let all: Vec<Seq> = (0..20)
        .map(|nth| {
            let seq =
                agent.uses("list", "{}", &(0..300).map(|word| format!("word{} ", word + nth % 2)).collect::<String>());
            agent.calls(1);
            seq
        })
        .collect();
    agent.calls(60);
    assert!(all[..19].iter().all(|seq| agent.decided(*seq).len() == 1));
    assert!(agent.decided(all[19]).is_empty());
    assert!(agent.shown(all[0]).contains("nearly the same as"), "{}", agent.shown(all[0]));
    agent.remembers();
}

#[test]
fn what_nobody_speaks_of_any_more_goes() {
    let about = |word: &str| (0..40).map(|nth| format!("{word}{nth} ")).collect::<String>();
    let mut agent = Agent::new(of(Irrelevant { recent: 4, ..Irrelevant::default() }));
    let old = agent.uses("look", "{}", &about("whale"));
    let kept = agent.uses("look", "{}", &about("heron"));
    let never = agent.uses("look", "{}", "x");
    let own = Expiry { after: 1, action: ExpiryAction::Never };
    agent.log.append(Entry::step("", [Call::new("never", "look", "{}")])).unwrap();
    let spared = agent.log.append(Entry { expiry: Some(own), ..Entry::result("never", about("whale")) }).unwrap();
    for turn in 0..8 {
        agent.log.append(Entry::assistant(format!("the {}", about("heron")))).unwrap();
        agent.log.append(Entry::user("go on with it, please")).unwrap();
        let gone = !agent.call().is_empty();
        assert_eq!(gone, turn == 5, "turn {turn}");
    }
    assert!(agent.shown(old).contains("not spoken of lately"), "{}", agent.shown(old));
    assert!(matches!(agent.decided(old)[0].edit.why, Reason::Irrelevant { age: 5, percent: 0 }));
    for seq in [kept, never, spared] {
        assert!(agent.decided(seq).is_empty());
    }
    agent.calls(60);
    assert_eq!(agent.decided(old).len(), 1);
    agent.remembers();
}

#[test]
fn of_what_nobody_speaks_of_the_beginning_may_stay() {
    let mut agent = Agent::new(of(Irrelevant { first_chars: 10, after: 1, ..Irrelevant::default() }));
    let old = agent.uses("look", "{}", &long("whale song", 60));
    agent.log.append(Entry::user("herons, please, nothing else")).unwrap();
    agent.calls(4);
    assert!(agent.shown(old).starts_with("whale song\n[look result, "), "{}", agent.shown(old));
}

#[test]
fn a_page_of_any_tools_keeps_the_rules() {
    let mut seen = BTreeSet::new();
    for seed in 0..150 {
        let mut dice = Dice::new(seed);
        let mut agent = Agent::within(all_of_them(&mut dice), 3_500 + dice.below(4_000) as u64);
        let tools = ["Read", "Bash", "Grep", "Write", "Edit", "look"];
        for _ in 0..40 {
            for _ in 0..dice.below(3) {
                let calls: Vec<(&str, String, String)> = (0..1 + dice.below(3))
                    .map(|_| {
                        let tool = *dice.pick(&tools);
                        let arguments = match tool {
                            "Bash" => format!(r#"{{"command":"make {}"}}"#, dice.below(3)),
                            "Read" if dice.chance(40) => {
                                lines(dice.below(4) as u32 * 10, 10 + dice.below(4) as u32 * 10)
                            }
                            _ => format!(r#"{{"file_path":"/w/{}.rs"}}"#, dice.below(3)),
                        };
                        (tool, arguments, long(&format!("text {}", dice.below(4)), 20 + 10 * dice.below(6)))
                    })
                    .collect();
                let calls: Vec<(&str, &str, &str)> = calls.iter().map(|it| (it.0, &*it.1, &*it.2)).collect();
                agent.step(&calls);
            }
            let edits = agent.call();
            let page = &agent.past.last().unwrap().page;
            for edit in &edits {
                let unseen = agent.reader.age(edit.change.seq()) == 1;
                seen.insert(edit.by.to_string());
                if let (Change::Replace { at, .. }, true) = (&edit.change, unseen) {
                    let Reason::Duplicate { of } = edit.why else { panic!("{edit:?} of what nobody has seen") };
                    assert_eq!(said(page, of), whole(&agent.log, at.seq), "{edit:?}");
                }
            }
        }
        let mut changed: Vec<PartAt> = agent
            .reader
            .decisions()
            .iter()
            .filter_map(|it| match &it.edit.change {
                Change::Replace { at, .. } => Some(*at),
                _ => None,
            })
            .collect();
        let decided = changed.len();
        changed.sort();
        changed.dedup();
        assert_eq!(decided, changed.len(), "a result was reduced twice");
        agent.remembers();
    }
    for pass in ["identical", "superseded", "similar", "irrelevant", "expire", "fit-window"] {
        assert!(seen.contains(pass), "{pass} did nothing: {seen:?}");
    }
}

fn all_of_them(dice: &mut Dice) -> Policy {
    let mut passes: Vec<Step> = vec![
        Identical::default().into(),
        Superseded { edits: dice.chance(50), ..Superseded::default() }.into(),
        Similar::default().into(),
        Irrelevant { after: 2, ..Irrelevant::default() }.into(),
        Expire::first_chars(6, 40).keep_last(1),
    ];
    for at in (1..passes.len()).rev() {
        passes.swap(at, dice.below(at + 1));
    }
    passes.truncate(1 + dice.below(passes.len()));
    passes.into_iter().fold(Policy::named("any"), |policy, step| policy.then(step)).then(FitWindow::default())
}

fn whole(log: &Log, seq: Seq) -> String {
    match &log.get(seq).unwrap().shown()[..] {
        [Part::Result(it)] => match &it.content[..] {
            [Piece::Text { text }] => text.to_string(),
            other => format!("{other:?}"),
        },
        other => format!("{other:?}"),
    }
}

#[test]
fn real_conversations_have_repeats_and_every_page_is_taken() {
    let Some(folder) = shared::folder("data/conversations", "repeats in real conversations") else { return };
    let policy =
        identical().then(Superseded::default()).then(Similar::default()).then(FitWindow::default()).immediately();
    let target = Target::eval().with_window(Some(Tokens(128_000)));
    let mut found = BTreeMap::<String, (usize, u64)>::new();
    for file in shared::jsonl(&folder) {
        for conversation in transcript::read(&std::fs::read_to_string(&file).unwrap()).unwrap() {
            let log = conversation.into_log(target.tokenizer).unwrap();
            let mut replay = Replay::new(&log, &policy, &target);
            for turn in replay.by_ref().filter(|turn| turn.turn % 10 == 0) {
                if let Ok(compiled) = &turn.compiled {
                    assert_eq!(wire::openai_chat::validate(&wire::openai_chat::encode(&compiled.page, &target)), []);
                }
            }
            for decision in replay.reader().decisions() {
                let (count, saved) = found.entry(decision.edit.by.to_string()).or_default();
                *count += 1;
                *saved += (decision.edit.before - decision.edit.after).0;
            }
        }
    }
    for pass in ["identical", "superseded", "similar"] {
        assert!(found.get(pass).is_some_and(|(count, _)| *count > 5), "{found:?}");
    }
}

/// The text up to the place of a mistake, the rest, words of the message, and words of the hint.
#[test]
fn mistakes_are_refused_at_their_place() {
    let start = "schema_version = 1\nname = 'm'\n[[reduce]]\n";
    let mistakes = [
        ("similar = { threshold = ", "1.5 }\n", "similar: threshold is 1.5", "up to 1"),
        ("similar = { threshold = ", "nan }\n", "similar: threshold is NaN", "up to 1"),
        ("similar = { newest = ", "1 }\n", "similar: newest is 1", "at least 2"),
        ("irrelevant = { threshold = ", "0.0 }\n", "irrelevant: threshold is 0", "up to 1"),
        ("irrelevant = { recent = ", "0 }\n", "irrelevant: recent is 0", "how many"),
        ("irrelevant = { ", "treshold = 0.5 }\n", "unknown field `treshold`", "`threshold`"),
        ("identical = { ", "minimun = 5 }\n", "unknown field `minimun`", "`minimum`"),
        ("superseded = { ", "edit = true }\n", "unknown field `edit`", "`edits`"),
        (
            "[reduce.superseded]\nrules = [{ tool = 'x', does = ",
            "'read', target = 'p' }]\n",
            "unknown variant `read`",
            "`reads`",
        ),
        ("[reduce.superseded]\n", "rules = [{ tool = 'x', does = 'reads' }]\n", "tool \"x\" has no target", "argument"),
        ("[reduce.superseded]\n", "rules = [{ tool = '', does = 'other' }]\n", "tool is empty", "`*`"),
    ];
    for (before, rest, what, hint) in mistakes {
        let text = format!("{start}{before}{rest}");
        let error = Policy::from_toml(&text).unwrap_err();
        let (line, column) =
            (text[..start.len() + before.len()].split('\n').count(), before.rsplit('\n').next().unwrap().len() + 1);
        assert_eq!(error.place(), Some(recto::error::Place { line, column }), "{error:?} in:\n{text}");
        assert!(error.to_string().contains(what), "no {what:?} in {error:?}");
        assert!(error.hint().is_some_and(|it| it.contains(hint)), "no {hint:?} in {error:?}");
    }
}

#[test]
fn the_passes_are_written_and_read_again() {
    let rule = Rule {
        tool: "x*".into(),
        does: Deed::Search,
        target: None,
        whole_unless: vec!["page".into()],
        with: [(Text::from("command"), Text::from("view"))].into(),
    };
    let policy = of(Identical { minimum: Tokens(7) })
        .then(Superseded { edits: true, rules: vec![rule], ..Superseded::default() })
        .then(Similar { threshold: 0.75, newest: 5, ..Similar::default() }.keep_last(2))
        .then(
            Irrelevant { after: 9, threshold: 0.25, recent: 3, first_chars: 80, minimum: Tokens(64) }.sparing_errors(),
        );
    assert_eq!(Policy::from_toml(&policy.to_toml()).unwrap(), policy);
    assert_eq!(Policy::from_json(&serde_json::to_string(&policy).unwrap()).unwrap(), policy);
    let short = "schema_version = 1\nname = 'test'\n[[reduce]]\nidentical = {}\n[[reduce]]\nsuperseded = {}\n[[reduce]]\n\
                 similar = {}\n[[reduce]]\nirrelevant = {}\n";
    let usual = identical().then(Superseded::default()).then(Similar::default()).then(Irrelevant::default());
    assert_eq!(Policy::from_toml(short).unwrap(), usual);
}
