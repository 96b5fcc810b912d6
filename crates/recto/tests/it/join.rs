//! Joining: every call stands with exactly one result, whatever came late, twice, in another order or not at all.
//!
//! The stories are told line by line, and every `call` line prints its page. [`Host`] is the only one who knows how.

use expect_test::{Expect, expect};
use recto::edit::{Change, Edit};
use recto::entry::{Call, Expiry, ExpiryAction, Status, ToolResult};
use recto::page::{Message, Page};
use recto::receipt::{Fate, Receipt};
use recto::reduce::FitWindow;
use recto::{
    Compiled, Entry, Error, Log, Part, Policy, Reader, Request, Seq, Span, Target, Tokenizer, Tokens, compile, plan,
    wire,
};
use std::fmt::Write;

/// A host that lives through a story told in lines such as `user hi`, `step a b | let me look`, `result a found` or
/// `call`. A text that ends in `~40` is filled up to 40 tokens; a speaker may have marks, as in `step!error`.
pub(crate) struct Host {
    pub(crate) log: Log,
    pub(crate) reader: Reader,
    pub(crate) policy: Policy,
    pub(crate) target: Target,
    pub(crate) last: Option<Compiled>,
    /// Whether the last page carries on the one before.
    carried: &'static str,
    pub(crate) told: String,
}

impl Host {
    /// A token is four characters, nothing costs overhead, and nothing is reserved.
    pub(crate) fn new(policy: Policy, window: Option<u64>) -> Host {
        let mut target = Target::eval().with_window(window.map(Tokens));
        (target.tokenizer, target.message_overhead) = (Tokenizer::Chars4, Tokens(0));
        let (log, reader) = (Log::counted_by(Tokenizer::Chars4), Reader::new("main"));
        Host { log, reader, policy, target, last: None, carried: "", told: String::new() }
    }

    pub(crate) fn live(&mut self, story: &str) -> &mut Host {
        story.lines().map(str::trim).filter(|line| !line.is_empty()).for_each(|line| self.happen(line));
        self
    }

    fn happen(&mut self, line: &str) {
        let (word, rest) = line.split_once(' ').unwrap_or((line, ""));
        let rest = rest.trim();
        match word {
            "call" => drop(self.call(rest).map(|()| self.tell_page())),
            "calls" => (0..rest.parse().unwrap()).for_each(|_| self.call("").unwrap()),
            "try" => drop(self.page(rest).map(|_| self.tell_page())),
            "pin" => self.reader.pin(Span::one(Seq(rest.parse().unwrap()))),
            "revert" => self.reader.revert(rest.parse().unwrap()).unwrap(),
            _ => drop(self.log.append(entry(word, rest)).unwrap()),
        }
    }

    /// A call that went well: its input, if any, becomes an entry.
    fn call(&mut self, input: &str) -> Result<(), Error> {
        self.page(input)?;
        self.reader.acknowledge(&self.last.as_ref().unwrap().receipt.ticket).unwrap();
        if !input.is_empty() {
            self.log.append(Entry::user(filled(input))).unwrap();
        }
        Ok(())
    }

    /// Plans, commits and compiles one page, and tells what was decided.
    fn page(&mut self, input: &str) -> Result<Compiled, Error> {
        let input = (!input.is_empty()).then(|| self.log.draft(Entry::user(filled(input))).unwrap());
        let previous = self.last.as_ref().map(|last| &last.page);
        let request = Request {
            input: input.as_ref(),
            reserve: Some(Tokens(0)),
            previous,
            ..Request::new(&self.log, &self.reader, &self.policy, &self.target)
        };
        let planned = plan(&request).unwrap();
        let mut reader = self.reader.clone();
        reader.commit(planned.edits.clone(), self.policy.digest());
        let compiled = compile(&Request { reader: &reader, ..request });
        let turn = reader.turn().0;
        self.reader = reader;
        for edit in &planned.edits {
            writeln!(self.told, "turn {turn}: {}", told_edit(edit)).unwrap();
        }
        for warning in &planned.warnings {
            writeln!(self.told, "turn {turn}: ! {warning}").unwrap();
        }
        match compiled {
            Ok(compiled) => {
                self.carried = carried(previous_bytes(previous), &compiled.page);
                self.last = Some(compiled.clone());
                Ok(compiled)
            }
            Err(error) => {
                writeln!(self.told, "turn {turn}: {error}\n  hint: {}", error.hint().unwrap()).unwrap();
                Err(error)
            }
        }
    }

    fn tell_page(&mut self) {
        let Compiled { page, receipt } = self.last.as_ref().unwrap();
        writeln!(self.told, "turn {}{}", receipt.ticket.turn.0, self.carried).unwrap();
        self.told.push_str(&told_page(page, receipt));
    }
}

fn previous_bytes(page: Option<&Page>) -> Option<Vec<u8>> {
    let mut bytes = page.map(wire::openai_chat::encode_messages)?;
    bytes.pop();
    Some(bytes)
}

/// Whether the bytes of the previous page stand at the beginning of this one.
fn carried(previous: Option<Vec<u8>>, page: &Page) -> &'static str {
    let bytes = wire::openai_chat::encode_messages(page);
    match previous {
        None => "",
        Some(previous) if bytes.starts_with(&previous) => ", carries on",
        Some(_) => ", breaks the prefix",
    }
}

fn told_edit(edit: &Edit) -> String {
    let saved = format!("{} → {}", edit.before, edit.after);
    match &edit.change {
        Change::Hide(span) => format!("hide {span}, {saved}"),
        Change::Replace { at, .. } => format!("replace {at}, {saved}"),
        Change::Floor(floor) => {
            let keeps: Vec<String> = floor.keeps.iter().map(Seq::to_string).collect();
            // What it cost before is as much as was read.
            format!("floor at {}, keeps [{}], down to {}", floor.at, keeps.join(" "), edit.after)
        }
        Change::Settle { step, call } => format!("settle {call} of {step}"),
        other => format!("{other:?}"),
    }
}

fn told_page(page: &Page, receipt: &Receipt) -> String {
    let mut told = String::new();
    for message in &page.messages {
        writeln!(told, "  {}", told_message(message)).unwrap();
    }
    for row in receipt.fates.iter().filter(|row| row.fate == Fate::NotShown) {
        writeln!(told, "  - {} {}: {}", row.span, row.by, row.why).unwrap();
    }
    for warning in &receipt.warnings {
        writeln!(told, "  ! {warning}").unwrap();
    }
    told
}

/// One line: `role seq: text`. Filling is told as `…`.
fn told_message(message: &Message) -> String {
    let part = |part: &Part| match part {
        Part::Text { text } => text.to_string(),
        Part::Call(call) => format!("[{}]", call.id),
        Part::Result(result) => {
            let text = serde_json::to_value(&result.content[0]).unwrap()["text"].as_str().unwrap().to_string();
            format!("{} = {text}", result.call)
        }
        other => format!("{other:?}"),
    };
    let text: Vec<String> = message.parts.iter().map(part).collect();
    let mut text = text.join(" ").replace('\n', " ⏎ ");
    while let Some(at) = text.find("....") {
        let end = text[at..].find(|c| c != '.').map_or(text.len(), |length| at + length);
        text.replace_range(at..end, "…");
    }
    let seq = message.seq.map_or("-".to_string(), |seq| seq.0.to_string());
    format!("{} {seq}: {text}", message.role)
}

/// Fills a text that ends in `~40` with dots until it costs 40 tokens.
fn filled(text: &str) -> String {
    let Some((words, tokens)) = text.rsplit_once('~') else { return text.to_string() };
    let length = tokens.parse::<usize>().unwrap() * 4;
    let missing = length.checked_sub(words.chars().count()).unwrap();
    format!("{words}{}", ".".repeat(missing))
}

fn entry(word: &str, rest: &str) -> Entry {
    let mut marks = word.split('!');
    let mut entry = match marks.next().unwrap() {
        "system" => Entry::system(filled(rest)),
        "user" => Entry::user(filled(rest)),
        "say" => Entry::assistant(filled(rest)),
        "step" => {
            let (calls, words) = rest.split_once('|').unwrap_or((rest, ""));
            Entry::step(filled(words.trim()), calls.split_whitespace().map(|id| Call::new(id, "look", "{}")))
        }
        "result" => {
            let (id, text) = rest.split_once(' ').unwrap_or((rest, ""));
            Entry::result(id, filled(text))
        }
        other => panic!("nobody is called {other:?}"),
    };
    for mark in marks {
        match mark {
            "error" => entry.status = Status::Error,
            "cancelled" => entry.status = Status::Cancelled,
            "pending" => entry.status = Status::Pending,
            "edge" => entry.edge = true,
            "failed" => {
                let [Part::Result(result)] = &*entry.parts else { panic!("only a tool can fail") };
                entry.parts = [Part::Result(ToolResult { is_error: true, ..result.clone() })].into();
            }
            expiry => entry.expiry = Some(own_expiry(expiry)),
        }
    }
    entry
}

/// An expiry such as `never`, `remove@2` or `first5@0`.
fn own_expiry(mark: &str) -> Expiry {
    let (action, after) = mark.split_once('@').unwrap_or((mark, "0"));
    let action = match action {
        "never" => ExpiryAction::Never,
        "remove" => ExpiryAction::Remove,
        first => ExpiryAction::FirstChars(first.strip_prefix("first").unwrap().parse().unwrap()),
    };
    Expiry { after: after.parse().unwrap(), action }
}

#[track_caller]
pub(crate) fn check(story: &str, expected: Expect) {
    check_within(Policy::none(), None, story, expected);
}

#[track_caller]
fn check_within(policy: Policy, window: Option<u64>, story: &str, expected: Expect) {
    let mut host = Host::new(policy, window);
    expected.assert_eq(&host.live(story).told);
    // Whatever was told, the provider would take the last page.
    let page = &host.last.as_ref().unwrap().page;
    assert_eq!(wire::openai_chat::validate(&wire::openai_chat::encode(page, &host.target)), []);
}

#[test]
fn results_of_parallel_calls_stand_in_the_order_of_the_calls() {
    check(
        "user look around
         step a b c | looking
         result c third
         result a first
         result b second
         call",
        expect![[r#"
            turn 0
              user 0: look around
              assistant 1: looking [a] [b] [c]
              tool 3: a = first
              tool 4: b = second
              tool 2: c = third
        "#]],
    );
}

#[test]
fn a_result_stands_behind_its_call_though_the_user_spoke_between() {
    check(
        "user look
         step a
         user hurry
         result a found
         call",
        expect![[r#"
            turn 0
              user 0: look
              assistant 1: [a]
              tool 3: a = found
              user 2: hurry
        "#]],
    );
}

#[test]
fn a_call_without_a_result_gets_a_stand_in_and_is_named() {
    check(
        "user look
         step a b
         result b found
         call",
        expect![[r#"
            turn 0
              user 0: look
              assistant 1: [a] [b]
              tool 1: a = [No result: this call was not answered.]
              tool 2: b = found
              ! call a of #1 has no result; a stand-in is shown
        "#]],
    );
}

#[test]
fn a_late_result_stays_a_note_after_a_call_that_failed() {
    check(
        "user look
         step a
         calls 1
         result a found
         try
         user well?
         call",
        expect![[r#"
            turn 1: settle a of #1
            turn 1, carries on
              user 0: look
              assistant 1: [a]
              tool 1: a = [No result: this call was not answered.]
              user 2: [Late result of call look a] ⏎ found
              ! call a of #1 has no result; a stand-in is shown
            turn 1, carries on
              user 0: look
              assistant 1: [a]
              tool 1: a = [No result: this call was not answered.]
              user 2: [Late result of call look a] ⏎ found
              user 3: well?
              ! call a of #1 has no result; a stand-in is shown
        "#]],
    );
}

#[test]
fn a_result_that_comes_before_the_call_was_acknowledged_takes_its_place() {
    check(
        "user look
         step a
         try
         result a found
         call",
        expect![[r#"
            turn 0
              user 0: look
              assistant 1: [a]
              tool 1: a = [No result: this call was not answered.]
              ! call a of #1 has no result; a stand-in is shown
            turn 0, breaks the prefix
              user 0: look
              assistant 1: [a]
              tool 2: a = found
        "#]],
    );
}

#[test]
fn a_result_that_comes_after_the_stand_in_was_acknowledged_is_a_late_note() {
    check(
        "user look
         step a b
         result b found
         call
         user go on
         calls 1
         result a found at last
         call",
        expect![[r#"
            turn 0
              user 0: look
              assistant 1: [a] [b]
              tool 1: a = [No result: this call was not answered.]
              tool 2: b = found
              ! call a of #1 has no result; a stand-in is shown
            turn 2: settle a of #1
            turn 2, carries on
              user 0: look
              assistant 1: [a] [b]
              tool 1: a = [No result: this call was not answered.]
              tool 2: b = found
              user 3: go on
              user 4: [Late result of call look a] ⏎ found at last
              ! call a of #1 has no result; a stand-in is shown
        "#]],
    );
}

#[test]
fn a_late_result_that_failed_says_so() {
    check(
        "user look
         step a
         calls 1
         result!failed a no such file
         call",
        expect![[r#"
            turn 1: settle a of #1
            turn 1, carries on
              user 0: look
              assistant 1: [a]
              tool 1: a = [No result: this call was not answered.]
              user 2: [Late result of call look a, an error] ⏎ no such file
              ! call a of #1 has no result; a stand-in is shown
        "#]],
    );
}

#[test]
fn the_same_result_twice_is_a_duplicate_and_another_one_is_a_late_note() {
    check(
        "user look
         step a b
         result a found
         result a found
         result b empty
         result b no, found
         call",
        expect![[r#"
            turn 0
              user 0: look
              assistant 1: [a] [b]
              tool 2: a = found
              tool 4: b = empty
              user 5: [Late result of call look b] ⏎ no, found
              - #3 join: same as the result #2
        "#]],
    );
}

#[test]
fn a_result_that_nobody_asked_for_is_not_shown() {
    check(
        "user look
         result x found
         result a too soon
         step a
         result y found
         result a found
         call",
        expect![[r#"
            turn 0
              user 0: look
              assistant 3: [a]
              tool 5: a = found
              - #1 join: no call x
              - #2 join: no call a
              - #4 join: no call y
        "#]],
    );
}

#[test]
fn an_id_that_is_used_again_means_the_newest_call() {
    check(
        "user look twice
         step a
         result a first
         step a
         result a second
         calls 1
         step a
         calls 1
         result a third
         call",
        expect![[r#"
            turn 2: settle a of #5
            turn 2, carries on
              user 0: look twice
              assistant 1: [a]
              tool 2: a = first
              assistant 3: [a]
              tool 4: a = second
              assistant 5: [a]
              tool 5: a = [No result: this call was not answered.]
              user 6: [Late result of call look a] ⏎ third
              ! call a of #5 has no result; a stand-in is shown
        "#]],
    );
}

#[test]
fn a_step_that_failed_takes_its_results_along() {
    check(
        "user look
         step!error a b | looking
         result a found
         result b found
         step!cancelled c
         result c found
         say I could not look
         call",
        expect![[r#"
            turn 0
              user 0: look
              assistant 6: I could not look
              - #1 status: status error
              - #2 status: status error
              - #3 status: status error
              - #4 status: status cancelled
              - #5 status: status cancelled
        "#]],
    );
}

#[test]
fn a_pending_result_is_no_answer() {
    check(
        "user look
         step a b
         result!pending a fou
         result!error b broken off
         call
         result a found
         call",
        expect![[r#"
            turn 0
              user 0: look
              assistant 1: [a] [b]
              tool 1: a = [No result: this call was not answered.]
              tool 3: b = broken off
              - #2 status: status pending
              ! call a of #1 has no result; a stand-in is shown
            turn 1: settle a of #1
            turn 1, carries on
              user 0: look
              assistant 1: [a] [b]
              tool 1: a = [No result: this call was not answered.]
              tool 3: b = broken off
              user 4: [Late result of call look a] ⏎ found
              - #2 status: status pending
              ! call a of #1 has no result; a stand-in is shown
        "#]],
    );
}

#[test]
fn results_whose_step_lies_before_the_edge_are_orphans() {
    check(
        "user look
         step a
         user!edge something else
         result a found
         call",
        expect![[r#"
            turn 0
              user 2: something else
              - #0–1 edge: before the edge at #2
              - #3 join: no call a
        "#]],
    );
}

/// Whole exchanges go below the floor when the history costs more than its window.
pub(crate) fn fit() -> Policy {
    let pass = FitWindow { target_percent: 60, minimum: Tokens(0), keep_first_request: false, ..FitWindow::default() };
    Policy::named("fit").then(pass)
}

#[test]
fn a_late_result_whose_call_went_below_the_floor_is_still_a_note() {
    check_within(
        fit(),
        Some(100),
        "user look ~10
         step a
         calls 1
         user and then ~60
         say done ~20
         user now this ~20
         call
         result a found at last
         call",
        expect![[r#"
            turn 1: floor at #4, keeps [], down to 20
            turn 1, breaks the prefix
              user 4: now this …
              - #0–3 floor: below the floor at #4
            turn 2, carries on
              user 4: now this …
              user 5: [Late result of call look a] ⏎ found at last
              - #0–3 floor: below the floor at #4
        "#]],
    );
}

#[test]
fn a_floor_does_not_part_a_step_from_its_result() {
    check_within(
        fit(),
        Some(100),
        "user look ~70
         step a
         user meanwhile ~20
         result a found
         say so ~20
         call",
        expect![[r#"
            turn 0: floor at #4, keeps [#2], down to 40
            turn 0
              user 2: meanwhile …
              assistant 4: so …
              - #0–1 floor: below the floor at #4
              - #3 floor: below the floor at #4
        "#]],
    );
}
