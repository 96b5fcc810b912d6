//! Results that come late, twice, or for something that was never shown; and the columns of errors.

use crate::join::{Host, check, fit};
use expect_test::expect;
use recto::error::Place;
use recto::{Policy, Seq, transcript, wire};

#[test]
fn the_same_late_result_twice_is_a_duplicate() {
    check(
        "user look
         step a
         calls 1
         result a found
         result a found
         call",
        expect![[r#"
            turn 1: settle a of #1
            turn 1, carries on
              user 0: look
              assistant 1: [a]
              tool 1: a = [No result: this call was not answered.]
              user 2: [Late result of call look a] ⏎ found
              - #3 join: same as the result #2
              ! call a of #1 has no result; a stand-in is shown
        "#]],
    );
}

#[test]
fn the_result_of_a_step_that_was_never_shown_goes_with_its_step() {
    check(
        "user look
         step!error a | looking
         say I could not
         calls 1
         result a found
         call",
        expect![[r#"
            turn 1, carries on
              user 0: look
              assistant 2: I could not
              - #1 status: status error
              - #3 status: status error
        "#]],
    );
}

#[test]
fn the_newest_result_is_seen_though_its_step_is_old() {
    let mut host = Host::new(fit(), Some(100));
    host.live("user look ~90\n step a\n user meanwhile ~20\n result a found\n call");
    let page = &host.last.as_ref().unwrap().page;
    assert!(page.messages.iter().any(|message| message.seq == Some(Seq(3))), "{}", host.told);
}

#[test]
fn columns_are_counted_in_characters_from_one() {
    let at = |line, column| Some(Place { line, column });
    assert_eq!(wire::openai_chat::decode("").unwrap_err().place(), at(1, 1));
    assert_eq!(wire::openai_chat::decode("{\"model\": \"é🔑\", x").unwrap_err().place(), at(1, 17));
    assert_eq!(Policy::from_json("{\n").unwrap_err().place(), at(2, 1));
}

#[test]
fn many_lines_with_many_replaced_surrogates_keep_their_places() {
    let line = |nth: usize| {
        format!("{{\"id\": \"c{nth}\", \"messages\": [{{\"role\": \"user\", \"content\": \"\\ud83d\"}}]}}\n")
    };
    let text: String = (0..20_000).map(line).collect();
    let all = transcript::read(&text).unwrap();
    assert_eq!(all.len(), 20_000);
    for (nth, conversation) in all.iter().enumerate() {
        assert_eq!(conversation.replaced.iter().map(|place| place.line).collect::<Vec<_>>(), [nth + 1]);
    }
}
