//! Mistakes in the settings of expiry, and settings that come back as they were.

use super::{FIRST, Talk, expiry};
use recto::entry::EntryKind;
use recto::expiry::{ExpiryAction, ExpiryOverride, ExpiryRule, Setting};
use recto::reduce::{Expire, Marker};
use recto::{Entry, Policy, plan};

#[test]
fn s31_settings_that_say_nothing_sensible_are_refused_where_they_stand() {
    let policy = |rest: &str| format!("schema_version = 1\nname = 'm'\n[[reduce]]\n[reduce.expire]\n{rest}");
    let mistakes = [
        ("after = 4\naction = { first_chars = 0 }\n", 6, "first_chars is 0", "how many characters"),
        ("after = 4\naction = { head_tail = { head = 0, tail = 0 } }\n", 6, "head 0 and tail 0", "how many characters"),
        ("after = -1\naction = 'remove'\n", 5, "invalid value: integer `-1`", "docs/formats.md"),
        ("after = 4\naction = 'compact'\n", 6, "unknown variant `compact`", ""),
        ("after = 4\naction = 'first_chars'\n", 6, "newtype variant", "docs/formats.md"),
        ("after = 4\naction = 'never'\nmarker = 'mi'\n", 7, "unknown variant `mi`", "`mj`"),
        (
            "after = 4\naction = 'never'\nrules = [\n{ tool = 'a', after = 1 },\n{ tool = 'b', action = { first_chars = 0 } }]\n",
            7,
            "for \"b\": first_chars is 0",
            "",
        ),
        ("after = 4\naction = 'never'\nrules = [\n{ after = 1 }]\n", 7, "no tool and no kind", ""),
        ("after = 4\naction = 'never'\nrules = [\n{ tool = 'a' }]\n", 7, "sets nothing", ""),
        (
            "after = 4\naction = 'never'\nrules = [\n{ kind = 'sub_run_resutl', after = 1 }]\n",
            8,
            "unknown variant `sub_run_resutl`",
            "`sub_run_result`",
        ),
        ("after = 4\naction = 'never'\nrules = [\n{ tool = 'a', afetr = 1 }]\n", 8, "unknown field `afetr`", "`after`"),
    ];
    for (rest, line, what, hint) in mistakes {
        let error = Policy::from_toml(&policy(rest)).unwrap_err();
        assert_eq!(error.place().map(|place| place.line), Some(line), "{error:?} in {rest}");
        assert!(error.to_string().contains(what), "{error:?}");
        assert!(error.hint().is_some_and(|it| it.contains(hint)), "{error:?}");
    }
    for json in [r#"{"mode":"remove","chars":5}"#, r#"{"mode":"never","compact":"head_tail"}"#, r#"{"chars":0}"#] {
        let error = ExpiryOverride::from_json(json).unwrap_err();
        assert!(error.is_settings() && error.hint().is_some(), "{error:?}");
    }
    let error = ExpiryOverride::from_json("{\n\"afetr\": 1}").unwrap_err();
    assert_eq!(error.place().map(|place| place.line), Some(2), "{error:?}");
    // What can't be read is refused by plan as well, and by the log.
    let mut talk = Talk::expiring(Expire::first_chars(1, 5));
    talk.say(Entry::user("Hello?"));
    talk.over = Some(ExpiryOverride { chars: Setting::Set(0), ..ExpiryOverride::default() });
    assert!(plan(&talk.request()).unwrap_err().is_settings());
    let nothing = Entry { expiry: Some(expiry(1, FIRST(0))), ..Entry::user("x") };
    assert!(talk.log.append(nothing).unwrap_err().to_string().contains("first_chars is 0"));
    let coded = Policy::named("m").then(Expire::by_rules([ExpiryRule::default()]));
    assert!(coded.check().unwrap_err().to_string().contains("no tool and no kind"));
}

#[test]
fn rules_survive_being_written_and_read() {
    let rules = [
        ExpiryRule::of_tool("mcp__*", expiry(3, ExpiryAction::HeadTail { head: 10, tail: 5 })),
        ExpiryRule::of_kind(EntryKind::SubRunResult, expiry(1, ExpiryAction::Remove)),
        ExpiryRule { after: Setting::Set(2), kind: Some(EntryKind::Injection), ..ExpiryRule::default() },
    ];
    let expire = Expire { marker: Marker::Mj, ..Expire::by_rules(rules) };
    let policy = Policy::named("mine").then(expire);
    assert_eq!(Policy::from_toml(&policy.to_toml()).unwrap(), policy);
    let json = serde_json::to_string(&policy).unwrap();
    assert_eq!(Policy::from_json(&json).unwrap(), policy);
    let over = ExpiryOverride { after: Setting::Set(1), ..ExpiryOverride::disabled() };
    assert_eq!(ExpiryOverride::from_json(&serde_json::to_string(&over).unwrap()).unwrap(), over);
}
