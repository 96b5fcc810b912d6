//! Planning: what goes, when, how far, and what never goes.

use crate::join::Host;
use expect_test::{Expect, expect};
use recto::edit::Change;
use recto::entry::ExpiryAction;
use recto::policy::Step;
use recto::receipt::{Fate, Overflow};
use recto::reduce::{Expire, FitWindow};
use recto::{Policy, Seq, Tokens};

/// The window of every story here, in tokens.
const WINDOW: u64 = 100;
/// The turns of what is not reduced at all.
const NEVER: [u64; 0] = [];

#[track_caller]
fn check(policy: Policy, story: &str, expected: Expect) {
    expected.assert_eq(&Host::new(policy, Some(WINDOW)).live(story).told);
}

fn of(pass: impl Into<Step>) -> Policy {
    Policy::named("test").then(pass).immediately()
}

fn fit(trigger_percent: u32, target_percent: u32) -> FitWindow {
    let (minimum, keep_first_request) = (Tokens(0), false);
    FitWindow { trigger_percent, target_percent, minimum, keep_first_request, ..FitWindow::default() }
}

fn fit_window(trigger_percent: u32, target_percent: u32) -> Policy {
    of(fit(trigger_percent, target_percent))
}

fn keep_first() -> Policy {
    of(FitWindow { keep_first_request: true, ..fit(100, 60) })
}

fn expire(after: u32, action: ExpiryAction) -> Policy {
    of(Expire { action, ..Expire::first_chars(after, 1) })
}

#[test]
fn whole_exchanges_go_oldest_first_until_the_target_is_reached() {
    check(
        fit_window(100, 60),
        "user one ~20
         step a
         result a found ~20
         user two ~20
         say yes ~10
         user three ~20
         say well ~10
         user four ~20
         call",
        expect![[r#"
            turn 0: floor at #5, keeps [], down to 50
            turn 0
              user 5: three …
              assistant 6: well …
              user 7: four …
              - #0–4 floor: below the floor at #5
        "#]],
    );
}

#[test]
fn of_an_exchange_that_alone_is_too_long_the_oldest_steps_go() {
    check(
        fit_window(100, 60),
        "user before ~10
         user do it ~10
         step a
         result a one ~30
         step b | then ~2
         result b two ~30
         step c d
         result d four ~10
         result c three ~30
         call",
        expect![[r#"
            turn 0: floor at #6, keeps [#1], down to 54
            turn 0
              user 1: do it …
              assistant 6: [c] [d]
              tool 8: c = three …
              tool 7: d = four …
              - #0 floor: below the floor at #6
              - #2–5 floor: below the floor at #6
        "#]],
    );
}

#[test]
fn the_first_request_stays_when_asked() {
    let story = "user the task ~10
         say ok ~40
         user more ~40
         say ok ~20
         user again ~10
         call";
    check(
        keep_first(),
        story,
        expect![[r#"
            turn 0: floor at #4, keeps [#0], down to 20
            turn 0
              user 0: the task …
              user 4: again …
              - #1–3 floor: below the floor at #4
        "#]],
    );
    check(
        fit_window(100, 60),
        story,
        expect![[r#"
            turn 0: floor at #4, keeps [], down to 10
            turn 0
              user 4: again …
              - #0–3 floor: below the floor at #4
        "#]],
    );
}

#[test]
fn the_first_request_goes_if_nothing_fits_with_it() {
    check(
        keep_first(),
        "user the task ~60
         say ok ~10
         user again ~50
         call",
        expect![[r#"
            turn 0: floor at #2, keeps [], down to 50
            turn 0
              user 2: again …
              - #0–1 floor: below the floor at #2
        "#]],
    );
}

#[test]
fn instructions_and_pins_stay_wherever_the_floor_is() {
    check(
        fit_window(100, 60),
        "system be brief ~5
         user one ~30
         step a
         result a the plan ~10
         pin 3
         user two ~40
         system be kind ~5
         say yes ~20
         user three ~10
         call",
        expect![[r#"
            turn 0: floor at #7, keeps [#2 #3], down to 32
            turn 0
              system 0: be brief …
              assistant 2: [a]
              tool 3: a = the plan …
              system 5: be kind …
              user 7: three …
              - #1 floor: below the floor at #7
              - #4 floor: below the floor at #7
              - #6 floor: below the floor at #7
        "#]],
    );
}

#[test]
fn nothing_goes_up_to_the_trigger() {
    let story = |last: u64| format!("user one ~40\n say yes ~30\n user two ~{last}\n call");
    check(
        fit_window(80, 50),
        &story(10),
        expect![[r#"
        turn 0
          user 0: one …
          assistant 1: yes …
          user 2: two …
    "#]],
    );
    check(
        fit_window(80, 50),
        &story(11),
        expect![[r#"
            turn 0: floor at #2, keeps [], down to 11
            turn 0
              user 2: two …
              - #0–1 floor: below the floor at #2
        "#]],
    );
}

#[test]
fn a_gain_below_the_minimum_is_left_alone_unless_the_page_must_fit() {
    let picky = || of(FitWindow { minimum: Tokens(50), ..fit(80, 60) });
    let story = |last: u64| format!("user one ~40\n user two ~{last}\n call");
    check(
        picky(),
        &story(60),
        expect![[r#"
        turn 0: ! history costs 100, more than the policy wants (60): the rest may not go
        turn 0
          user 0: one …
          user 1: two …
    "#]],
    );
    check(
        picky(),
        &story(61),
        expect![[r#"
            turn 0: floor at #1, keeps [], down to 61
            turn 0
              user 1: two …
              - #0 floor: below the floor at #1
        "#]],
    );
    let enough = "user one ~50\n user two ~40\n call";
    check(
        picky(),
        enough,
        expect![[r#"
            turn 0: floor at #1, keeps [], down to 40
            turn 0
              user 1: two …
              - #0 floor: below the floor at #1
        "#]],
    );
}

#[test]
fn over_many_turns_floors_are_rare_and_each_goes_down_to_the_target() {
    let mut host = Host::new(fit_window(100, 50), Some(WINDOW));
    host.live("system be brief ~4");
    for turn in 0..30 {
        host.live(&format!("user request {turn} ~5\n calls 1\n say answer {turn} ~5"));
    }
    let floors = host.reader.decisions().iter().map(|decision| match &decision.edit.change {
        Change::Floor(floor) => (decision.turn.0, floor.at, decision.edit.before, decision.edit.after),
        other => panic!("only floors are planned here, not {other:?}"),
    });
    let floors: Vec<_> = floors.collect();
    // 300 tokens were said, and every floor lets sixty go.
    assert_eq!(floors.len(), 4, "{floors:?}");
    for (_, _, before, after) in &floors {
        assert!(*before > Tokens(WINDOW) && *after <= Tokens(50), "{floors:?}");
        // No more than that: one exchange more would have been over.
        assert!(*after + Tokens(10) > Tokens(50), "{floors:?}");
    }
    for pair in floors.windows(2) {
        assert!(pair[0].0 + 5 <= pair[1].0 && pair[0].1 < pair[1].1, "{floors:?}");
    }
}

fn overflow(policy: Policy, story: &str) -> (Overflow, String, String) {
    let mut host = Host::new(policy, Some(WINDOW));
    host.live(story);
    let request = recto::Request {
        reserve: Some(Tokens(0)),
        ..recto::Request::new(&host.log, &host.reader, &host.policy, &host.target)
    };
    let error = recto::compile_once(&request).unwrap_err();
    assert!(!error.is_settings() && !error.is_defect());
    (error.overflow().unwrap().clone(), error.to_string(), error.hint().unwrap())
}

#[test]
fn what_may_never_go_and_does_not_fit_is_named_with_its_cost() {
    let story = "system be brief ~20
         user the plan ~70
         pin 1
         say yes ~30
         user now ~15";
    let (overflow, text, hint) = overflow(fit_window(100, 60), story);
    let sum = overflow.reserve_out + overflow.tools + overflow.input + overflow.framing + overflow.history;
    assert_eq!(sum, overflow.window + overflow.over);
    expect![[r#"
        the page does not fit: 35 tokens over. window 100 < reserve 0 + tools 0 + input 0 + framing 0 + fragments 0 + history 135 (of which 105 may never go)
          #1 costs 70 and may not go: pinned
          #0 costs 20 and may not go: instructions
          #3 costs 15 and may not go: last user words
        it would not fit even without all history that may go: shorten the input, unpin something, or take a larger window"#]]
    .assert_eq(&format!("{text}\n{hint}"));
}

#[test]
fn what_only_the_policy_keeps_from_fitting_is_said_to_fit_with_another() {
    let (overflow, text, hint) = overflow(Policy::none(), "user one ~60\n say yes ~30\n user two ~20");
    assert_eq!((overflow.over, overflow.protected), (Tokens(10), Tokens(20)));
    expect![[r#"
        the page does not fit: 10 tokens over. window 100 < reserve 0 + tools 0 + input 0 + framing 0 + fragments 0 + history 110 (of which 20 may never go)
          #2 costs 20 and may not go: last user words
        a policy that can reduce makes it fit: try `safe`"#]]
    .assert_eq(&format!("{text}\n{hint}"));
}

/// The turns at which a result of a hundred characters is cut, when every call goes well.
fn expired_at(policy: Policy, result: &str, calls: u64) -> Vec<u64> {
    let mut host = Host::new(policy, None);
    host.live("user look\n step a").live(result).live("say found\n user and then?");
    host.live(&format!("calls {calls}"));
    host.reader.decisions().iter().map(|decision| decision.turn.0).collect()
}

#[test]
fn a_result_expires_when_it_is_older_than_it_may_be() {
    let result = "result a found ~25";
    for after in [0, 1, 3, 7] {
        // The call of turn n is planned when n calls have had it in view: age n.
        let cut = expired_at(expire(after, ExpiryAction::FirstChars(8)), result, 60);
        assert_eq!(cut, [u64::from(after) + 1], "after {after}");
        assert_eq!(expired_at(expire(after, ExpiryAction::Remove), result, 60), cut, "after {after}");
        assert_eq!(expired_at(expire(after, ExpiryAction::FirstChars(8)), result, u64::from(after) + 1), NEVER);
    }
    assert_eq!(expired_at(expire(0, ExpiryAction::Never), result, 60), NEVER);
    // A page that was never acknowledged ages nothing.
    let mut host = Host::new(expire(0, ExpiryAction::Remove), None);
    host.live("user look\n step a\n result a found ~25\n user and?\n try\n try\n try");
    assert_eq!(host.reader.decisions(), []);
}

#[test]
fn an_expired_result_keeps_its_first_characters_or_a_marker() {
    let story = "user look
         step a b
         result a abcdefghij ~25
         result b short
         user and then?
         calls 1
         call";
    check(
        expire(0, ExpiryAction::FirstChars(8)),
        story,
        expect![[r#"
            turn 1: replace m2, 25 → 18
            turn 1, breaks the prefix
              user 0: look
              assistant 1: [a] [b]
              tool 2: a = abcdefgh ⏎ [… first 8 of 100 characters of look result; recto_expand m2]
              tool 3: b = short
              user 4: and then?
        "#]],
    );
    check(
        expire(0, ExpiryAction::Remove),
        story,
        expect![[r#"
            turn 1: replace m2, 25 → 15
            turn 1, breaks the prefix
              user 0: look
              assistant 1: [a] [b]
              tool 2: a = [removed: 100 characters of look result; recto_expand m2]
              tool 3: b = short
              user 4: and then?
        "#]],
    );
}

#[test]
fn characters_are_counted_and_cut_as_scalars() {
    let mut host = Host::new(expire(0, ExpiryAction::FirstChars(3)), None);
    let text = format!("a🔑é{}", "x".repeat(200));
    host.live(&format!("user look\n step a\n result a {text}\n user and then?\n calls 1\n call"));
    assert!(host.told.contains("a🔑é ⏎ [… first 3 of 203 characters of look result; "), "{}", host.told);
    // A family of emoji is several characters; it may be parted, but no character is.
    let mut host = Host::new(expire(0, ExpiryAction::FirstChars(2)), None);
    host.live(&format!("user look\n step a\n result a {}\n user and then?\n calls 2", "👩‍👩‍👧‍👦".repeat(40)));
    let page = &host.last.as_ref().unwrap().page;
    let body = String::from_utf8(recto::wire::openai_chat::encode_messages(page)).unwrap();
    assert!(body.contains("\"👩\u{200d}\\n[… first 2 of 280 characters"), "{body}");
}

#[test]
fn a_text_that_would_not_get_smaller_is_left_alone() {
    // Cut at 8 characters, the marker alone is longer than what goes.
    assert_eq!(expired_at(expire(0, ExpiryAction::FirstChars(8)), "result a found ~12", 9), NEVER);
    assert_eq!(expired_at(expire(0, ExpiryAction::FirstChars(100)), "result a found ~25", 9), NEVER);
    assert_eq!(expired_at(expire(0, ExpiryAction::Remove), "result a found", 9), NEVER);
    assert_eq!(expired_at(expire(0, ExpiryAction::Remove), "result a found ~14", 9), NEVER);
    assert_eq!(expired_at(expire(0, ExpiryAction::Remove), "result a found ~15", 9), [1]);
}

#[test]
fn over_sixty_turns_a_result_is_reduced_once_and_its_original_stays() {
    let mut host = Host::new(expire(2, ExpiryAction::FirstChars(8)), None);
    host.live("user look\n step a\n result a abcdefghij ~1250");
    let original = host.log.get(Seq(2)).unwrap().original().clone();
    for turn in 0..60 {
        host.live(&format!("say answer {turn}\n user request {turn}\n calls 1"));
    }
    let decisions = host.reader.decisions();
    assert_eq!(decisions.len(), 1);
    assert_eq!((decisions[0].turn.0, decisions[0].edit.before), (3, Tokens(1250)));
    assert_eq!(*host.log.get(Seq(2)).unwrap().original(), original);
    assert_eq!(host.told.lines().count(), 1, "{}", host.told);
}

#[test]
fn what_was_taken_back_is_whole_again_and_not_reduced_again() {
    check(
        expire(0, ExpiryAction::FirstChars(8)),
        "user look
         step a
         result a abcdefghij ~25
         user and then?
         calls 1
         call
         revert 1
         call
         calls 30
         call",
        expect![[r#"
            turn 1: replace m2, 25 → 18
            turn 1, breaks the prefix
              user 0: look
              assistant 1: [a]
              tool 2: a = abcdefgh ⏎ [… first 8 of 100 characters of look result; recto_expand m2]
              user 3: and then?
            turn 2, breaks the prefix
              user 0: look
              assistant 1: [a]
              tool 2: a = abcdefghij …
              user 3: and then?
            turn 33, carries on
              user 0: look
              assistant 1: [a]
              tool 2: a = abcdefghij …
              user 3: and then?
        "#]],
    );
}

#[test]
fn the_entry_s_own_expiry_goes_before_the_policy() {
    let first = || expire(3, ExpiryAction::FirstChars(8));
    assert_eq!(expired_at(first(), "result!never a found ~25", 20), NEVER);
    assert_eq!(expired_at(first(), "result!remove@0 a found ~25", 20), [1]);
    assert_eq!(expired_at(first(), "result!first8@6 a found ~25", 20), [7]);
    assert_eq!(expired_at(expire(0, ExpiryAction::Never), "result!remove@2 a found ~25", 20), [3]);
}

#[test]
fn words_go_only_where_their_own_entry_says_so() {
    check(
        expire(0, ExpiryAction::Remove),
        "user look ~25
         user!remove@0 a hint ~25
         say!first8@0 abcdefghij ~25
         user and then?
         calls 1
         call",
        expect![[r#"
            turn 1: hide #1, 25 → 0
            turn 1: replace m2, 25 → 16
            turn 1, breaks the prefix
              user 0: look …
              assistant 2: abcdefgh ⏎ [… first 8 of 100 characters of words; recto_expand m2]
              user 3: and then?
              - #1 expire: expired after 1 calls (limit 0)
        "#]],
    );
}

#[test]
fn what_expires_waits_until_a_batch_is_worth_it() {
    let patient = || of(Expire { action: ExpiryAction::Remove, minimum: Tokens(25), ..Expire::first_chars(0, 1) });
    let mut host = Host::new(patient(), None);
    host.live("user look");
    for id in ["a", "b", "c", "d"] {
        host.live(&format!("step {id}\n result {id} found ~25\n user go on\n calls 1"));
    }
    host.live("calls 3");
    // Of 25 tokens 9 stay as a marker; three of them make a batch, the fourth waits.
    expect![[r#"
        turn 3: replace m2, 25 → 15
        turn 3: replace m5, 25 → 15
        turn 3: replace m8, 25 → 15
    "#]]
    .assert_eq(&host.told);
    // A page that doesn't fit needs no batch.
    check(
        patient(),
        "user look ~10
         step a
         result a found ~50
         user go on
         calls 1
         user more ~45
         call",
        expect![[r#"
            turn 1: replace m2, 50 → 15
            turn 1, breaks the prefix
              user 0: look …
              assistant 1: [a]
              tool 2: a = [removed: 200 characters of look result; recto_expand m2]
              user 3: go on
              user 4: more …
        "#]],
    );
}

#[test]
fn what_has_expired_below_a_new_floor_is_no_decision() {
    let both = expire(0, ExpiryAction::Remove).then(fit(100, 60));
    check(
        both,
        "user look ~10
         step a
         result a found ~40
         user go on ~5
         calls 1
         user more ~90
         call",
        expect![[r#"
            turn 1: floor at #4, keeps [], down to 90
            turn 1, breaks the prefix
              user 4: more …
              - #0–3 floor: below the floor at #4
        "#]],
    );
}

#[test]
fn pins_and_the_newest_are_never_expired() {
    let mut host = Host::new(expire(0, ExpiryAction::Remove), None);
    host.live("user look\n step a\n result a found ~25\n pin 2\n step b\n result b found ~25\n calls 9");
    let fates = &host.last.as_ref().unwrap().receipt.fates;
    assert!(fates.iter().all(|row| row.fate == Fate::Shown), "{fates:?}");
}

/// What is said to a policy that can't work; the list of what would work may grow.
fn refused(text: &str) -> String {
    let error = Policy::from_json(text).unwrap_err();
    assert!(error.hint().is_some());
    assert!(error.is_settings() || error.place().is_some());
    error.to_string().split(", expected").next().unwrap().to_string()
}

#[test]
fn a_policy_with_a_mistake_is_refused_at_its_place() {
    let wrong = [
        "{\n \"schema_version\": 1, \"name\": \"x\",\n \"reduce\": [{\"fit_window\": {\"triger_percent\": 90}}]\n}",
        "{\"schema_version\": 1, \"name\": \"x\", \"reduce\": [], \"reuse\": []}",
        "{\"schema_version\": 1, \"name\": \"x\", \"reduce\": [{\"fit_windows\": {}}]}",
        "{\"schema_version\": 1, \"name\": \"x\", \"reduce\": [{\"expire\": {\"after\": -1, \"action\": \"remove\"}}]}",
        "{\"schema_version\": 1, \"name\": \"x\", \"reduce\": [{\"expire\": {\"after\": 1, \"action\": {\"last_chars\": 3}}}]}",
        "{\"schema_version\": 1, \"name\": \"x\", \"reduce\": [{\"expire\": {\"after\": 1}}]}",
        "{\"schema_version\": 1}",
        "{\"schema_version\": 1, \"name\": \"x\", \"reduce\": [",
    ];
    expect![[r#"
        line 3, column 29: policy: unknown field `triger_percent`
        line 1, column 50: policy: unknown field `reuse`
        line 1, column 48: policy: unknown field `fit_windows`
        line 1, column 68: policy: invalid value: integer `-1`
        line 1, column 82: policy: unknown variant `last_chars`
        line 1, column 58: policy: missing field `action`
        line 1, column 1: policy: missing field `name`
        line 1, column 46: policy: EOF while parsing a list"#]]
    .assert_eq(&wrong.map(refused).join("\n"));
}

#[test]
fn numbers_that_can_t_work_are_refused() {
    let fit = |numbers: &str| {
        refused(&format!(r#"{{"schema_version": 1, "name": "x", "reduce": [{{"fit_window": {{{numbers}}}}}]}}"#))
    };
    let wrong = [
        fit(r#""trigger_percent": 60, "target_percent": 61"#),
        fit(r#""trigger_percent": 50"#),
        fit(r#""trigger_percent": 101"#),
        fit(r#""trigger_percent": 0, "target_percent": 1"#),
        refused(
            r#"{"schema_version": 1, "name": "x", "reduce": [{"expire": {"after": 1, "action": {"first_chars": 0}}}]}"#,
        ),
    ];
    expect![[r#"
        line 1, column 82: fit_window: trigger_percent 60, target_percent 61
        line 1, column 82: fit_window: trigger_percent 50, target_percent 60
        line 1, column 82: fit_window: trigger_percent 101, target_percent 60
        line 1, column 82: fit_window: trigger_percent 0, target_percent 1
        line 1, column 97: expire: first_chars is 0"#]]
    .assert_eq(&wrong.join("\n"));
    // They are refused also where they did not come as JSON.
    let mut host = Host::new(fit_window(60, 61), Some(WINDOW));
    host.live("user hi");
    let request = recto::Request::new(&host.log, &host.reader, &host.policy, &host.target);
    assert!(recto::plan(&request).unwrap_err().is_settings());
}

#[test]
fn every_preset_is_read_back_as_it_was_written() {
    for preset in Policy::presets() {
        let text = serde_json::to_string(&preset).unwrap();
        assert_eq!(Policy::from_json(&text).unwrap(), preset);
    }
}
