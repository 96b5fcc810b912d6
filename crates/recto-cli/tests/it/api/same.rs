//! Append, compile, acknowledge over HTTP is the same as through the library, to the byte.

use super::live::Live;
use recto::entry::Call as ToolCall;
use recto::{Entry, Policy, Target, Tokens};
use recto_engine::store::memory::Memory;
use recto_engine::{Answer, Append, At, Call, Engine, Opening, Tenant};
use serde_json::{Value, json};

const CALLS: usize = 30;
const WINDOW: u64 = 12_000;

/// What is said before a call: the user's words, a step and its long result.
fn said(call: usize) -> Vec<Entry> {
    let id = format!("c{call}");
    let lines = (0..60).map(|line| format!("{line}: value {} of module {call}", line * call));
    vec![
        Entry::user(format!("Look at module {call}.")),
        Entry::step("", [ToolCall::new(id.as_str(), "read", format!("{{\"module\":{call}}}"))]),
        Entry::result(id.as_str(), lines.collect::<Vec<_>>().join("\n")),
    ]
}

/// The same as somebody would spell it who knows only the document.
fn spelled(entries: &[Entry]) -> Value {
    let spelled = entries.iter().map(|entry| {
        let entry = serde_json::to_value(entry).unwrap();
        json!({"role": entry["role"], "parts": entry["parts"]})
    });
    spelled.collect()
}

#[test]
fn thirty_calls_over_http_are_those_of_the_library() {
    let live = Live::new();
    live.post("/conversations", json!({"conversation": "monday"}));
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let engine = Engine::over(Memory::default());
    let at = At::new(&Tenant::default(), "monday");
    runtime.block_on(engine.open(&at, Opening::default())).unwrap();
    let target = Target::named("gpt-4o").unwrap().with_window(Some(Tokens(WINDOW)));
    let mut call = Call::new("main", Policy::preset("default").unwrap(), target.clone());
    call.reserve = Some(Tokens(1_000));
    let (mut changed, mut kept) = (0, 0);
    for turn in 0..CALLS {
        let (new, answer) = (said(turn), Entry::assistant(format!("Module {turn} is fine.")));
        live.post("/conversations/monday/entries", json!({"entries": spelled(&new)}));
        let asked =
            json!({"model": "gpt-4o", "policy": "default", "window": WINDOW, "reserve": 1_000, "body_as": "text"});
        let page = live.post("/conversations/monday/readers/main/compile", asked);
        let done = json!({"ticket": page["ticket"], "entries": spelled(std::slice::from_ref(&answer))});
        live.post("/conversations/monday/readers/main/acknowledge", done);

        let compiled = runtime.block_on(async {
            engine.append(&at, Append::any(new)).await?;
            let compiled = engine.compile(&at, &call).await?;
            let answer = Answer { entries: vec![answer], ..Answer::default() };
            engine.acknowledge(&at, &compiled.receipt.ticket, answer).await?;
            Ok::<_, recto_engine::Error>(compiled)
        });
        let compiled = compiled.unwrap();
        let body = String::from_utf8(target.wire.encode(&compiled.page, &target)).unwrap();
        assert_eq!(page["body"].as_str(), Some(&*body), "call {turn}");
        assert_eq!(page["receipt"], serde_json::to_value(&compiled.receipt).unwrap(), "call {turn}");
        changed += compiled.receipt.fates.iter().filter(|row| row.before > row.after).count();
        kept += compiled.receipt.prefix.messages;
    }
    assert!(changed > 0 && kept > 0, "nothing was ever left out: the test shows little");
    for turn in 0..CALLS {
        let path = format!("/conversations/monday/readers/main/turns/{turn}");
        let again = live.get(&path);
        assert_eq!(again["agrees"], true, "call {turn}");
        // As if nothing had been another, it is planned and compiled to the same.
        let as_if = live.post(&format!("{path}/preview"), json!({}));
        assert_eq!(
            (&as_if["page"], &as_if["receipt"]["money"]),
            (&again["page"], &again["receipt"]["money"]),
            "call {turn}"
        );
    }
    let curve = live.get("/conversations/monday/readers/main/curve");
    let points = curve["points"].as_array().unwrap();
    assert!(points.iter().any(|it| it["reductions"]["decisions"].as_u64() > Some(0)), "{curve}");
    assert!(points.iter().all(|it| it["tokens_without"].as_u64() >= it["tokens"].as_u64()), "{curve}");
}
