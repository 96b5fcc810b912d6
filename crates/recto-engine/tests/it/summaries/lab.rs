//! A conversation with long results that expire to summaries, and a model that makes them.

use recto::entry::{Call as ToolCall, CallId};
use recto::expiry::{Expiry, ExpiryAction};
use recto::reduce::{Expire, FitWindow};
use recto::wire::Wire;
use recto::{Compiled, Entry, Policy, Target, Tokens};
use recto_engine::store::memory::Memory;
use recto_engine::summarize::{Settings, Summarizer, Told};
use recto_engine::upstream::{Settings as Reached, Upstream};
use recto_engine::{Answer, Append, At, Call, Engine, Opening, Store, Tenant};
use recto_testkit::fake::{Reply, Server};
use std::sync::mpsc::{Receiver, channel};

pub(crate) const MODEL: &str = "gpt-4.1";

pub(crate) fn at() -> At {
    At::new(&Tenant::default(), "talk")
}

/// A provider at a fake, without patience of its own.
pub(crate) fn upstream(server: &Server, wire: Wire) -> Upstream {
    let has_version = matches!(wire, Wire::OpenaiChat | Wire::OpenaiResponses);
    let url = if has_version { format!("{}/v1", server.url()) } else { server.url() };
    Upstream::of(Reached { retries_max: 0, ..Reached::new("fake", &url, wire) }).unwrap()
}

pub(crate) fn settings(server: &Server) -> Settings {
    Settings::new(upstream(server, Wire::OpenaiChat), vec![Target::named(MODEL).unwrap()])
}

pub(crate) fn summarizer(server: &Server) -> Summarizer {
    Summarizer::of(settings(server)).unwrap()
}

/// One that tells what becomes of its summaries.
pub(crate) fn telling(settings: Settings) -> (Summarizer, Receiver<Told>) {
    let (sender, told) = channel();
    let tell = move |it: &Told| drop(sender.send(it.clone()));
    (Summarizer::of(settings).unwrap().telling(tell), told)
}

/// Results that the model has seen become summaries, at once.
pub(crate) fn policy() -> Policy {
    let expire = Expire::all(Expiry { after: 0, action: ExpiryAction::Summary { chars: 120 } });
    Policy::named("condensing").then(expire).then(FitWindow::default()).immediately()
}

pub(crate) fn call() -> Call {
    let target = Target::named("gpt-4o").unwrap().with_window(Some(Tokens(60_000)));
    Call { reserve: Some(Tokens(2_000)), ..Call::new("main", policy(), target) }
}

/// A long text that nothing else says.
pub(crate) fn content(number: usize) -> String {
    let lines: Vec<String> = (0..60).map(|line| format!("CONTENT-{number}. line {line} of what was found")).collect();
    lines.join("\n")
}

/// What the fake says of it.
pub(crate) fn good(number: usize) -> Reply {
    Reply::default().text(&format!(r#"{{"summary": "GIST-{number}."}}"#))
}

/// Opens a conversation with results that a model has seen once.
pub(crate) async fn begin<S: Store>(engine: &Engine<S>, at: &At, results: usize) {
    engine.open(at, Opening::default()).await.unwrap();
    let calls = (0..results).map(|number| ToolCall::new(format!("call_{number}"), "look", "{}"));
    let mut entries = vec![Entry::user("Find it."), Entry::step("Looking.", calls)];
    entries.extend((0..results).map(|number| Entry::result(CallId::from(format!("call_{number}")), content(number))));
    engine.append(at, Append::any(entries)).await.unwrap();
    turn(engine, at, &call()).await;
}

/// Makes a page and has it answered.
pub(crate) async fn turn<S: Store>(engine: &Engine<S>, at: &At, call: &Call) -> Compiled {
    let compiled = engine.compile(at, call).await.unwrap();
    let answer = Answer { entries: vec![Entry::assistant("Seen."), Entry::user("Go on.")], ..Answer::default() };
    engine.acknowledge(at, &compiled.receipt.ticket, answer).await.unwrap();
    compiled
}

/// Everything that a page says.
pub(crate) fn said(compiled: &Compiled) -> String {
    format!("{:?}", compiled.page.messages)
}

/// A conversation in memory, with so many results that are to be summarized now.
pub(crate) async fn memory(summarizer: Summarizer, results: usize) -> Engine<Memory> {
    let engine = Engine::over(Memory::default()).with_summarizer(summarizer);
    begin(&engine, &at(), results).await;
    engine
}
