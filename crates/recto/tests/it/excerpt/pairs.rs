//! Excerpts beside broken-off answers and summaries: calls keep their results.

use super::{code, excerpting, made};
use crate::pays::Host;
use recto::entry::{Call, Status};
use recto::policy::StatusRule;
use recto::receipt::Fate;
use recto::{Entry, Seq, Span, wire};
use recto_testkit::check;

/// Every call on the last page has its one result, and no result is without its call.
#[track_caller]
fn paired(host: &Host) -> String {
    let body = wire::openai_chat::encode_messages(&host.last().page);
    let messages: Vec<serde_json::Value> = serde_json::from_slice(&body).unwrap();
    check::pairs(&messages, false).unwrap();
    let receipt = &host.last().receipt;
    check::fates(&receipt.fates, &host.log.until(receipt.ticket.head)).unwrap();
    String::from_utf8(body).unwrap()
}

#[test]
fn x16_of_a_step_that_failed_the_settled_pair_stays_only_with_a_note() {
    for (rule, status) in [
        (StatusRule::Exclude, Status::Error),
        (StatusRule::Note, Status::Error),
        (StatusRule::Exclude, Status::Cancelled),
        (StatusRule::Note, Status::Cancelled),
    ] {
        let mut policy = excerpting(1e9);
        policy.select.status = rule;
        let mut host = Host::new(policy);
        let calls = [Call::new("settled", "look", "{}"), Call::new("unsettled", "look", "{}")];
        let step = host.say(Entry { status, ..Entry::step("I look.", calls) });
        let result = host.say(Entry::result("settled", code("alpha", 60)));
        host.say(Entry::user("Try again."));
        for turn in 0..20 {
            host.turn(3);
            let body = paired(&host);
            let is_noted = rule == StatusRule::Note;
            assert_eq!(body.contains("\"unsettled\""), is_noted, "turn {turn}");
            assert_eq!(body.contains("\"settled\""), is_noted, "turn {turn}");
            assert_eq!(body.contains("[Generation "), is_noted);
            assert_eq!(host.last().receipt.fate(step).unwrap().fate == Fate::NotShown, !is_noted);
        }
        assert_eq!(made(&host, result).len(), usize::from(rule == StatusRule::Note), "only what is shown is cut");
        // The other result comes late: at its own place, never a second time behind its call.
        let late = host.say(Entry::result("unsettled", "found after all"));
        host.turn(3);
        assert_eq!(paired(&host).contains("found after all"), rule == StatusRule::Note);
        assert_eq!(host.last().receipt.fates.iter().filter(|row| row.span.contains(late)).count(), 1);
        host.remembers();
    }
}

#[test]
fn x20_wherever_a_summary_ends_no_pair_is_parted() {
    for last in 0..9 {
        let mut host = Host::new(excerpting(4.0));
        host.uses("look", "{}", &code("alpha", 60));
        host.say(Entry::user("And the other two?"));
        let step = host.say(Entry::step("", [Call::new("one", "look", "{}"), Call::new("two", "look", "{}")]));
        let first = host.say(Entry::result("one", "found one"));
        host.turn(3);
        let covers = Some(Span { first: Seq(0), last: Seq(last) });
        host.say(Entry { section: "summary".into(), covers, ..Entry::user("They looked.") });
        let decided = host.reader.decisions().len();
        host.turn(3);
        let body = paired(&host);
        // A step goes with all its results, or stays with them.
        assert_eq!(body.contains("found one"), last < step.0, "up to {last}");
        assert_eq!(host.shown(step).is_some(), last < step.0);
        assert!(body.contains("They looked."));
        let second = host.say(Entry::result("two", "found two"));
        host.say(Entry::user("And?"));
        for _ in 0..20 {
            host.turn(3);
            assert_eq!(paired(&host).contains("found two"), last < step.0, "up to {last}");
        }
        assert_eq!(host.last().receipt.fates.iter().filter(|row| row.span.contains(second)).count(), 1);
        assert!(host.log.get(first).unwrap().original().parts.len() == 1 && decided <= host.reader.decisions().len());
        host.remembers();
    }
}
