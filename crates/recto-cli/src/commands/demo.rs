//! `recto demo`: the main job on a bundled conversation, told for somebody who sees it for the first time.

use crate::beside::Beside;
use crate::codes::Code;
use crate::entries::{line_of as whole_line_of, text_of};
use crate::failure::Failure;
use crate::kept::Waiting;
use crate::talk;
use recto::edit::{Change, Decision, Reason};
use recto::expand::{Ask, TOOL_NAME};
use recto::log::Counted;
use recto::page::Message;
use recto::receipt::{Fate, FateRow};
use recto::transcript::{self, Conversation};
use recto::{Compiled, Entry, Part, Policy, Role, Seq, Target, Tokens};
use recto_engine::store::any::Any;
use recto_engine::store::memory::Memory;
use recto_engine::{Answer, Append, At, Call, Engine, Error, Give, Opening, Tenant};
use std::sync::Arc;

const TRANSCRIPT: &str = include_str!("../../../../fixtures/late-fees.chat.json");
const NAME: &str = "late-fees";
const READER: &str = "main";
/// What the last question of the conversation asks for, and where it stands.
const ASKED_FOR: [(Seq, &str); 2] = [(Seq(6), "the nightly log"), (Seq(26), "the October list from /v1/fees")];
/// What a model would ask for, to answer it.
const ASKED_BACK: &str = r#"{"handle": "m6", "search": "ERROR replay"}"#;
/// The smaller of the two windows.
const SMALL: Tokens = Tokens(32_000);
/// How much of a message is shown, in characters.
const LINE_CHARS_MAX: usize = 88;
/// How much of a shortened result is shown, in lines.
const RESULT_LINES_MAX: usize = 8;
/// How much of what was asked back is shown, in lines.
const ANSWER_LINES_MAX: usize = 5;
/// And of each of these lines, in characters.
const ANSWER_CHARS_MAX: usize = 110;

const INTRO: &str = "\
Before each call, an agent must choose what its model reads: the page. Recto makes that page from the
whole history, by rules, and gives a receipt that accounts for every entry.
";

const NEXT_STEPS: &str = "\
What to try next, in the folder of the repository

  recto explain fixtures/late-fees.chat.json --window 32000
                                          the second receipt again; other numbers give other pages
  recto compile fixtures/late-fees.chat.json --window 32000
                                          the page itself, as a request body
  recto policy list                       what else can be done with what is old
  recto import YOUR.jsonl FOLDER/         keep conversations of your own; again, to add what is new
  recto list                              what is kept; `recto explain NAME`, `recto show NAME` and others
                                          take these names
  recto compile YOUR.json --input 'Next?' the next page of a conversation of your own
  recto serve --demo                      the gateway, with this conversation: any agent's base URL can be its
  recto replay YOUR.jsonl --policy safe,default,frugal
                                          what whole conversations would have cost, and what their pages forgot
  recto --help                            all commands, and the exit codes";

/// Tells what pages and receipts are, on the bundled conversation.
pub(crate) fn run() -> Result<(), Failure> {
    talk::text(&story()?)
}

/// Has an engine go through the bundled conversation, so that a server has something to show.
pub(crate) async fn load(engine: &Engine<Any>) -> Result<(), Failure> {
    let conversation = bundled()?;
    Lived::of(engine, NAME, &conversation, &small(&conversation)?).await?;
    Ok(())
}

fn model() -> Result<Target, Failure> {
    Target::named("gpt-4o").ok_or_else(|| Failure::of(Code::Defect, "gpt-4o is not built in"))
}

/// The calls of a model with the smaller window.
fn small(conversation: &Conversation) -> Result<Call, Failure> {
    let tools = conversation.tools.clone();
    Ok(Call { tools, ..Call::new(READER, Policy::usual(), model()?.with_window(Some(SMALL))) })
}

fn story() -> Result<String, Failure> {
    let conversation = bundled()?;
    let whole = Call { tools: conversation.tools.clone(), ..Call::new(READER, Policy::safe(), model()?) };
    let small = small(&conversation)?;
    let waiting = Waiting::new()?;
    // In memory, so that nothing stays behind.
    let engine = Engine::over(Any::Memory(Memory::default()));
    let first = waiting.run(Lived::of(&engine, "whole", &conversation, &whole))?;
    let second = waiting.run(Lived::of(&engine, NAME, &conversation, &small))?;
    let ask = Ask::from_call(ASKED_BACK).map_err(|refusal| Failure::of(Code::Defect, refusal.to_string()))?;
    let answer = waiting.run(engine.expand(&second.at, &small, &ask, Give::AsText))?;
    let answer = answer.map_err(|refusal| Failure::of(Code::Defect, refusal.to_string()))?;
    let parts = [
        INTRO.to_string(),
        introduced(&second),
        chapter(1, &first, &whole),
        chapter(2, &second, &small),
        batches(&second),
        asked_back(&answer.text),
        NEXT_STEPS.to_string(),
    ];
    Ok(parts.join("\n"))
}

fn bundled() -> Result<Conversation, Failure> {
    Ok(transcript::read(TRANSCRIPT)?.into_iter().next().unwrap_or_default())
}

/// A conversation that an engine has gone through call by call, and the page that comes next.
struct Lived {
    at: At,
    entries: Vec<Arc<Counted>>,
    decisions: Vec<Decision>,
    calls: u64,
    next: Compiled,
}

impl Lived {
    async fn of(engine: &Engine<Any>, name: &str, of: &Conversation, call: &Call) -> Result<Lived, Error> {
        let at = At::new(&Tenant::default(), name);
        let opening = Opening { meta: Beside::meta_of(of), ..Opening::default() };
        engine.open(&at, opening).await?;
        let mut calls = 0;
        let mut said: Vec<Entry> = Vec::new();
        for entry in &of.entries {
            if entry.role != Role::Assistant {
                said.push(entry.clone());
                continue;
            }
            engine.append(&at, Append::any(std::mem::take(&mut said))).await?;
            let ticket = engine.compile(&at, call).await?.receipt.ticket;
            let answer = Answer { entries: vec![entry.clone()], ..Answer::default() };
            engine.acknowledge(&at, &ticket, answer).await?;
            calls += 1;
        }
        engine.append(&at, Append::any(said)).await?;
        let entries = engine.read(&at, Seq(0), of.entries.len()).await?;
        let decisions = engine.decisions(&at, &call.reader).await?;
        let next = engine.preview(&at, call).await?;
        Ok(Lived { at, entries, decisions, calls, next })
    }
}

fn introduced(lived: &Lived) -> String {
    let entries = &lived.entries;
    let by = |role: Role| entries.iter().filter(|entry| entry.role() == role).count();
    let tokens: Tokens = entries.iter().map(|entry| entry.cost).sum();
    let question = entries.last().map_or(String::new(), |last| line_of(last.shown()));
    format!(
        "The conversation (fixtures/late-fees.chat.json): an agent repairs the late fees of a lending library.\n  \
         {} messages of {tokens} tokens: {} from the system, {} from the user, {} steps of the agent, {} tool results\n  \
         the user has just asked: {question}\n",
        entries.len(),
        by(Role::System),
        by(Role::User),
        by(Role::Assistant),
        by(Role::Tool),
    )
}

fn chapter(number: usize, lived: &Lived, call: &Call) -> String {
    let Compiled { receipt, page, .. } = &lived.next;
    let window = call.target.window.unwrap_or_default();
    let mut text = format!(
        "{number}. {}, window {window}, policy {}\n\n{}\n\n{receipt}\n\nThe page:\n{}",
        receipt.target,
        receipt.policy,
        indented(&what_happened(&receipt.fates)),
        excerpt(&page.messages)
    );
    text.push_str(&shortened(&receipt.fates, &page.messages));
    text.push_str("\nThe question is about two results from the morning:\n");
    for (seq, what) in ASKED_FOR {
        let tokens = lived.entries.iter().find(|entry| entry.seq == seq).map_or(Tokens(0), |entry| entry.cost);
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
    let entries =
        |is: &dyn Fn(&FateRow) -> bool| fates.iter().filter(|row| is(row)).map(|row| row.entries).sum::<u64>();
    let shown = entries(&|row| row.fate == Fate::Shown);
    let cut = entries(&|row| row.fate == Fate::Changed && &*row.by == "excerpt");
    let changed = entries(&|row| row.fate == Fate::Changed) - cut;
    let hidden = entries(&|row| row.fate == Fate::NotShown);
    if cut + changed + hidden == 0 {
        return "Everything fits, so everything is shown as it was said.".into();
    }
    let told = [
        (cut, "Old results and calls, of which the lines stay that say what nothing else on the page says:"),
        (changed, "Results that were given again later or before, and are pointers now:"),
        (hidden, "Left out, because they lie below the floor, where this page begins:"),
    ];
    let told = told.iter().filter(|(entries, _)| *entries > 0).map(|(entries, what)| format!("{what} {entries}."));
    let first = format!("All of it would not fit. Entries shown as they were said: {shown}.");
    let last = "Instructions, the first request and the user's last words stay. The log keeps it all.";
    [first].into_iter().chain(told).chain([last.to_string()]).collect::<Vec<_>>().join("\n")
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

/// The result that was shortened most, and the one of which most is left, as the page shows them.
fn shortened(fates: &[FateRow], messages: &[Message]) -> String {
    let changed = || fates.iter().filter(|row| row.fate == Fate::Changed);
    let most = changed().max_by_key(|row| row.before - row.after);
    let least = changed().max_by_key(|row| row.after);
    let told: String = most.into_iter().chain(least).filter_map(|row| as_shown(row, messages)).collect();
    if told.is_empty() { told } else { format!("\nThe result that lost most, and the one that kept most:\n{told}") }
}

fn as_shown(row: &FateRow, messages: &[Message]) -> Option<String> {
    let message = messages.iter().find(|message| message.seq == Some(row.span.first))?;
    let text = text_of(&message.parts);
    let heading = format!("{} tokens instead of {}:", row.after, row.before);
    let lines = beginning(&text, RESULT_LINES_MAX, LINE_CHARS_MAX);
    Some(format!("  {}\n{}\n", labelled(message, &heading), indented(&indented(&lines))))
}

/// The first lines of a text, and how many there are more.
fn beginning(text: &str, lines_max: usize, chars_max: usize) -> String {
    let mut lines: Vec<String> = text.lines().take(lines_max).map(|line| cut(line, chars_max)).collect();
    let more = text.lines().count() - lines.len();
    lines.extend((more > 0).then(|| format!("({more} more lines)")));
    lines.join("\n")
}

/// When the reductions were made, and why then.
fn batches(lived: &Lived) -> String {
    let cuts = lived.decisions.iter().filter(|it| matches!(it.edit.change, Change::Cut { .. }));
    let (paid, forced): (Vec<_>, Vec<_>) = cuts.partition(|it| matches!(it.edit.why, Reason::Pays { .. }));
    format!(
        "Each change of the past makes the provider write what stands behind it again, so changes wait for each other.\n\
         In {} calls there were {}: {} once waiting had cost more than that, {} because the page would not have fitted.\n",
        lived.calls,
        paid.len() + forced.len(),
        paid.len(),
        forced.len()
    )
}

/// What a model is told that asks for something back.
fn asked_back(answer: &str) -> String {
    format!(
        "Nothing is lost. A host that uses the library offers its model the tool {TOOL_NAME}, and the model asks by\n\
         handle for all, some lines, some items or a search. {TOOL_NAME} {ASKED_BACK} answers:\n{}\n",
        indented(&beginning(answer, ANSWER_LINES_MAX, ANSWER_CHARS_MAX))
    )
}

fn labelled(message: &Message, text: &str) -> String {
    let seq = message.seq.map_or(String::new(), |seq| seq.to_string());
    format!("{seq:<5} {:<10} {text}", message.role.to_string())
}

/// What a message says, on one line.
fn line_of(parts: &[Part]) -> String {
    cut(&whole_line_of(parts), LINE_CHARS_MAX)
}

fn cut(line: &str, chars_max: usize) -> String {
    match line.char_indices().nth(chars_max) {
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
        let entries = bundled().unwrap().entries;
        let text = |seq: Seq| text_of(&entries[seq.0 as usize].parts);
        assert!(text(ASKED_FOR[0].0).contains("nightly 1187 started"));
        assert!(text(ASKED_FOR[1].0).contains("\"month\": \"2024-10\""));
    }
}
