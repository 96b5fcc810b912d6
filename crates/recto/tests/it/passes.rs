//! What each pass leaves on the page, alone and decorated.

use expect_test::{Expect, expect};
use recto::entry::{Call, Media, Part, Reasoning, ToolResult};
use recto::policy::{AuthorRule, Decorate, Step};
use recto::reduce::{CapOutput, DropImages, DropReasoning, Grain, Recent, TokenLimit};
use recto::target::Reasoned;
use recto::{Entry, Log, Policy, Reader, Request, Role, Target, Tokenizer, Tokens, compile_once};

/// A user with pictures, two steps with thoughts and long results, one of them a failure, and a last question.
fn log() -> Log {
    let mut log = Log::counted_by(Tokenizer::Chars4);
    let picture =
        |name: &str| Part::Image(Media { url: format!("https://example.org/{name}").into(), name: None, detail: None });
    let step = |id: &str, thought: &str| {
        let thought = Part::Reasoning(Reasoning { text: thought.into(), ..Reasoning::default() });
        Entry::new(Role::Assistant, [thought, Part::Call(Call::new(id, "look", "{}"))])
    };
    let failed = ToolResult { is_error: true, ..ToolResult::text("b", "no such file: ".to_string() + &"z".repeat(80)) };
    let entries = [
        Entry::user("start"),
        Entry::new(Role::User, [Part::text("old"), picture("1.png")]),
        Entry::new(Role::User, [Part::text("new"), picture("2.png")]),
        step("a", "first thought"),
        Entry::result("a", "head ".to_string() + &"x".repeat(80) + " tail"),
        step("b", "second thought"),
        Entry::new(Role::Tool, [Part::Result(failed)]),
        Entry::assistant("done"),
        Entry::user("and now?"),
    ];
    for entry in entries {
        log.append(entry).unwrap();
    }
    log
}

fn target(window: u64) -> Target {
    let target = Target::eval().with_window(Some(Tokens(window)));
    Target { tokenizer: Tokenizer::Chars4, message_overhead: Tokens(0), reasoning: Reasoned::Text, ..target }
}

fn check(step: impl Into<Step>, window: u64, expected: Expect) {
    shows(&Policy::named("one").then(step), &log(), window, expected);
}

/// Every message on a line: its place, and what it says.
fn shows(policy: &Policy, log: &Log, window: u64, expected: Expect) {
    let (reader, target) = (Reader::new("main"), target(window));
    let request = Request { reserve: Some(Tokens(0)), ..Request::new(log, &reader, policy, &target) };
    let compiled = compile_once(&request).unwrap();
    let lines = compiled.page.messages.iter().map(|message| {
        let parts = message.parts.iter().map(|part| match part {
            Part::Text { text } => text.replace('\n', "⏎"),
            Part::Reasoning(it) => format!("({})", it.text),
            Part::Call(call) => format!("{}()", call.name),
            Part::Result(it) => format!("{:?}", it.content).replace("Text { text: ", "").replace(" }", ""),
            Part::Image(it) => format!("<{}>", it.url),
            other => format!("{other:?}"),
        });
        format!("{} {}\n", message.seq.unwrap(), parts.collect::<Vec<_>>().join(" | "))
    });
    expected.assert_eq(&lines.collect::<String>());
}

#[test]
fn cap_output_keeps_head_and_tail() {
    check(
        CapOutput::to(15),
        9_000,
        expect![[r##"
        #0 start
        #1 old | <https://example.org/1.png>
        #2 new | <https://example.org/2.png>
        #3 (first thought) | look()
        #4 ["head xxxxx\n[… 75 of 90 characters left out, handle m4 …]\n tail"]
        #5 (second thought) | look()
        #6 ["no such fi\n[… 79 of 94 characters left out, handle m6 …]\nzzzzz"]
        #7 done
        #8 and now?
    "##]],
    );
}

#[test]
fn cap_output_can_spare_errors() {
    check(
        CapOutput::to(15).sparing_errors(),
        9_000,
        expect![[r##"
        #0 start
        #1 old | <https://example.org/1.png>
        #2 new | <https://example.org/2.png>
        #3 (first thought) | look()
        #4 ["head xxxxx\n[… 75 of 90 characters left out, handle m4 …]\n tail"]
        #5 (second thought) | look()
        #6 ["no such file: zzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzz"]
        #7 done
        #8 and now?
    "##]],
    );
}

#[test]
fn drop_images_leaves_the_newest() {
    check(
        DropImages { keep: 1 },
        9_000,
        expect![[r##"
        #0 start
        #1 old | [image left out, handle m1.1]
        #2 new | <https://example.org/2.png>
        #3 (first thought) | look()
        #4 ["head xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx tail"]
        #5 (second thought) | look()
        #6 ["no such file: zzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzz"]
        #7 done
        #8 and now?
    "##]],
    );
}

#[test]
fn drop_reasoning_can_keep_the_last() {
    check(
        DropReasoning {}.keep_last(1),
        9_000,
        expect![[r##"
        #0 start
        #1 old | <https://example.org/1.png>
        #2 new | <https://example.org/2.png>
        #3 look()
        #4 ["head xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx tail"]
        #5 (second thought) | look()
        #6 ["no such file: zzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzz"]
        #7 done
        #8 and now?
    "##]],
    );
}

#[test]
fn recent_counts_results_and_keeps_steps_whole() {
    check(
        Recent::messages(4),
        9_000,
        expect![[r##"
        #5 (second thought) | look()
        #6 ["no such file: zzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzz"]
        #7 done
        #8 and now?
    "##]],
    );
}

#[test]
fn a_token_limit_keeps_a_tail() {
    let limit = TokenLimit { tokens: Tokens(45), slack: Tokens(0), grain: Grain::Message };
    check(
        limit,
        9_000,
        expect![[r##"
        #5 (second thought) | look()
        #6 ["no such file: zzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzz"]
        #7 done
        #8 and now?
    "##]],
    );
}

#[test]
fn a_pass_that_waits_for_its_time_does_nothing_before() {
    check(
        CapOutput::to(15).when_over(Tokens(100_000)),
        9_000,
        expect![[r##"
        #0 start
        #1 old | <https://example.org/1.png>
        #2 new | <https://example.org/2.png>
        #3 (first thought) | look()
        #4 ["head xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx tail"]
        #5 (second thought) | look()
        #6 ["no such file: zzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzz"]
        #7 done
        #8 and now?
    "##]],
    );
}

#[test]
fn until_fits_takes_no_more_than_is_needed() {
    check(
        CapOutput::to(15).until_fits(),
        2_519,
        expect![[r##"
        #0 start
        #1 old | <https://example.org/1.png>
        #2 new | <https://example.org/2.png>
        #3 (first thought) | look()
        #4 ["head xxxxx\n[… 75 of 90 characters left out, handle m4 …]\n tail"]
        #5 (second thought) | look()
        #6 ["no such file: zzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzz"]
        #7 done
        #8 and now?
    "##]],
    );
}

#[test]
fn other_agents_are_named_and_one_s_own_words_are_not() {
    let mut log = Log::counted_by(Tokenizer::Chars4);
    let by = |author: &str, text: &str| Entry { author: Some(author.into()), ..Entry::assistant(text) };
    for entry in [Entry::user("Who is there?"), by("main", "Me."), by("scout", "And me."), Entry::user("Good.")] {
        log.append(entry).unwrap();
    }
    let mut policy = Policy::named("authors");
    policy.select.authors = AuthorRule::Named;
    shows(
        &policy,
        &log,
        9_000,
        expect![[r#"
        #0 Who is there?
        #1 Me.
        #2 [scout] And me.
        #3 Good.
    "#]],
    );
}
