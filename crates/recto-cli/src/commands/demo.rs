//! `recto demo`: the main job on a bundled conversation, told for somebody who sees it for the first time.

use crate::codes::Code;
use crate::failure::Failure;
use crate::settings::Settings;
use crate::subject::{Asked, Subject, Which};
use crate::talk;
use recto::entry::Piece;
use recto::page::Message;
use recto::receipt::{Fate, FateRow};
use recto::transcript;
use recto::{Part, Policy, Role, Seq, Span, Target, Tokens};

const TRANSCRIPT: &str = include_str!("../../../../fixtures/late-fees.chat.json");
const NAME: &str = "late-fees";
/// What the last question of the conversation asks for, and where it stands.
const ASKED_FOR: [(Seq, &str); 2] = [(Seq(6), "the nightly log"), (Seq(26), "the October list from /v1/fees")];
/// The smaller of the two windows.
const SMALL: Tokens = Tokens(32_000);
/// How much of a message is shown, in characters.
const LINE_CHARS_MAX: usize = 88;
/// How much of a shortened result is shown, in lines.
const RESULT_LINES_MAX: usize = 4;

const INTRO: &str = "\
Before each call, an agent must choose what its model reads: the page. Recto makes that page from the
whole history, by rules, and gives a receipt that accounts for every entry.
";

const NEXT_STEPS: &str = "\
What to try next, in the folder of the repository

  recto explain fixtures/late-fees.chat.json --window 32000 --policy first_chars
                                          the second receipt again; other numbers give other pages
  recto compile fixtures/late-fees.chat.json --window 32000 --policy first_chars
                                          the page itself, as a request body
  recto compile YOUR.json --input 'Next?' the next page of a conversation of your own
  recto replay YOUR.jsonl --pages pages.jsonl
                                          every page of whole conversations, and what they cost
  recto --help                            all commands, and the exit codes";

/// Tells what pages and receipts are, on the bundled conversation.
pub(crate) fn run() -> Result<(), Failure> {
    talk::text(&story()?)
}

fn story() -> Result<String, Failure> {
    let model = || Target::named("gpt-4o").ok_or_else(|| Failure::of(Code::Defect, "gpt-4o is not built in"));
    let whole = Settings { target: model()?, policy: Policy::safe(), reserve: None };
    let small = model()?.with_window(Some(SMALL));
    let small = Settings { target: small, policy: Policy::first_chars(), reserve: None };
    let subject = subject(&whole)?;
    let mut parts = vec![INTRO.to_string(), introduced(&subject)];
    for (number, settings) in [whole, small].iter().enumerate() {
        let asked = subject.page(Which::Next, settings)?;
        parts.push(chapter(number + 1, &subject, &asked, settings));
    }
    parts.push(NEXT_STEPS.to_string());
    Ok(parts.join("\n"))
}

fn subject(settings: &Settings) -> Result<Subject, Failure> {
    let found = transcript::read(TRANSCRIPT)?.into_iter().next().unwrap_or_default();
    Subject::of(NAME.into(), found, settings)
}

fn introduced(subject: &Subject) -> String {
    let log = &subject.log;
    let by = |role: Role| log.back_by(role).count();
    let tokens = log.head().map_or(Tokens(0), |last| log.total(Span { first: Seq(0), last }).tokens);
    let question = log.back().next().map_or(String::new(), |last| line_of(last.shown()));
    format!(
        "The conversation (fixtures/late-fees.chat.json): an agent repairs the late fees of a lending library.\n  \
         {} messages of {tokens} tokens: {} from the system, {} from the user, {} steps of the agent, {} tool results\n  \
         the user has just asked: {question}\n",
        log.len(),
        by(Role::System),
        by(Role::User),
        by(Role::Assistant),
        by(Role::Tool),
    )
}

fn chapter(number: usize, subject: &Subject, asked: &Asked, settings: &Settings) -> String {
    let receipt = &asked.compiled.receipt;
    let window = settings.target.window.unwrap_or_default();
    let mut text = format!(
        "{number}. {}, window {window}, policy {}\n\n{}\n\n{receipt}\n\nThe page:\n{}",
        receipt.target,
        receipt.policy,
        indented(&what_happened(&receipt.fates)),
        excerpt(&asked.compiled.page.messages)
    );
    text.push_str(&shortest(&receipt.fates, &asked.compiled.page.messages));
    text.push_str("\nThe question is about two results from the morning:\n");
    for (seq, what) in ASKED_FOR {
        let tokens = subject.log.get(seq).map_or(Tokens(0), |entry| entry.cost);
        let fate = match receipt.fate(seq).map(|row| row.fate) {
            Some(Fate::Shown) => "is on the page, whole",
            Some(Fate::Changed) => "is SHORTENED, and the receipt says so before the call is made",
            Some(Fate::NotShown) | None => "is NOT on the page, and the receipt says so before the call is made",
        };
        text.push_str(&format!("  {what} ({seq}, {tokens} tokens) {fate}\n"));
    }
    text
}

fn what_happened(fates: &[FateRow]) -> String {
    let entries = |fate: Fate| fates.iter().filter(|row| row.fate == fate).map(|row| row.entries).sum::<u64>();
    let (shown, changed, hidden) = (entries(Fate::Shown), entries(Fate::Changed), entries(Fate::NotShown));
    if changed + hidden == 0 {
        return "Everything fits, so everything is shown as it was said.".into();
    }
    let mut lines = vec![format!("All of it would not fit. Entries shown as they were said: {shown}.")];
    if changed > 0 {
        lines.push(format!("Old tool results that keep only their beginning: {changed}."));
    }
    if hidden > 0 {
        lines.push(format!("Left out, because they lie below the floor, where this page begins: {hidden}."));
    }
    lines.push("Instructions, the first request and the user's last words stay. The log keeps it all.".into());
    lines.join("\n")
}

/// The first and the last messages, one line each.
fn excerpt(messages: &[Message]) -> String {
    let (head, tail) = (messages.len().min(2), messages.len().saturating_sub(2).max(2));
    let line = |message: &Message| format!("  {}\n", labelled(message, &line_of(&message.parts)));
    let mut text: String = messages[..head].iter().map(line).collect();
    if tail > head {
        text.push_str(&format!("        … {} more messages …\n", tail - head));
    }
    text.extend(messages.iter().skip(tail).map(line));
    text
}

/// The result that was shortened most, as the page shows it.
fn shortest(fates: &[FateRow], messages: &[Message]) -> String {
    let changed = fates.iter().filter(|row| row.fate == Fate::Changed);
    let Some(row) = changed.max_by_key(|row| row.before - row.after) else { return String::new() };
    let Some(message) = messages.iter().find(|message| message.seq == Some(row.span.first)) else {
        return String::new();
    };
    let text = text_of(&message.parts);
    let mut lines: Vec<String> = text.lines().take(RESULT_LINES_MAX).map(cut).collect();
    lines.push("…".into());
    lines.extend(text.lines().last().map(cut));
    let heading = format!("{} tokens instead of {}:", row.after, row.before);
    format!(
        "\nA result that is shortened:\n  {}\n{}\n",
        labelled(message, &heading),
        indented(&indented(&lines.join("\n")))
    )
}

fn labelled(message: &Message, text: &str) -> String {
    let seq = message.seq.map_or(String::new(), |seq| seq.to_string());
    format!("{seq:<5} {:<10} {text}", message.role.to_string())
}

/// What a message says, on one line.
fn line_of(parts: &[Part]) -> String {
    cut(&text_of(parts).split_whitespace().collect::<Vec<_>>().join(" "))
}

fn text_of(parts: &[Part]) -> String {
    let texts = parts.iter().map(|part| match part {
        Part::Text { text } => text.to_string(),
        Part::Call(call) => format!("[calls {}]", call.name),
        Part::Result(result) => result.content.iter().filter_map(piece_text).collect(),
        _ => String::new(),
    });
    texts.filter(|text| !text.is_empty()).collect::<Vec<_>>().join(" ")
}

fn piece_text(piece: &Piece) -> Option<&str> {
    match piece {
        Piece::Text { text } => Some(text),
        Piece::Image(_) => None,
    }
}

fn cut(line: &str) -> String {
    match line.char_indices().nth(LINE_CHARS_MAX) {
        Some((at, _)) => format!("{}…", &line[..at]),
        None => line.into(),
    }
}

fn indented(text: &str) -> String {
    text.lines().map(|line| format!("  {line}").trim_end().to_string()).collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_question_asks_for_stands_where_the_demo_says() {
        let target = Target::named("gpt-4o").unwrap();
        let subject = subject(&Settings { target, policy: Policy::none(), reserve: None }).unwrap();
        let text = |seq: Seq| text_of(subject.log.get(seq).unwrap().shown());
        assert!(text(ASKED_FOR[0].0).contains("nightly 1187 started"));
        assert!(text(ASKED_FOR[1].0).contains("\"month\": \"2024-10\""));
    }
}
