//! What a model is told, and which model is asked.

use super::lab::{at, call, good, memory, said, settings, turn, upstream};
use crate::engine::block_on;
use recto::entry::{Call as ToolCall, CallId};
use recto::expiry::{ExpiryOverride, PROMPT_KEY, Setting};
use recto::note::Note;
use recto::reduce::{Expire, Fold};
use recto::wire::Wire;
use recto::{Entry, Policy, Target, Tokens};
use recto_engine::store::memory::Memory;
use recto_engine::summarize::{Mode, Settings, Summarizer};
use recto_engine::{Append, At, Call, Engine, Opening};
use recto_testkit::fake::{Reply, Server, Settings as Rules};
use serde_json::{Value, json};

fn body(server: &Server, at: usize) -> Value {
    let log = server.log();
    assert!(log[at].refusal.is_none(), "{:?}", log[at].refusal);
    log[at].request.json()
}

#[test]
fn a_model_reads_the_prompt_the_numbers_and_the_words_over_every_wire() {
    for wire in Wire::ALL {
        block_on(async {
            let server = Server::start();
            server.push(good(0));
            let target = match wire {
                Wire::Anthropic => Target::named("claude-haiku-4-5").unwrap(),
                Wire::Gemini => Target::named("gemini-3.8-flash").unwrap(),
                Wire::Ollama => recto_testkit::mixed::at_home("qwen3"),
                Wire::OpenaiChat | Wire::OpenaiResponses => Target::named("gpt-4o").unwrap(),
            };
            let model = target.name.clone();
            let settings = Settings::new(upstream(&server, wire), vec![target]);
            let engine = memory(Summarizer::of(settings).unwrap(), 1).await;
            turn(&engine, &at(), &call()).await;
            let body = body(&server, 0);
            let text = body.to_string();
            for words in ["You shorten one message", "originalLength: 2", "targetLength: 120", "CONTENT-0. line 59"] {
                assert!(text.contains(words), "{wire}: {words}: {text}");
            }
            let places = [
                "/max_tokens",
                "/max_completion_tokens",
                "/max_output_tokens",
                "/generationConfig/maxOutputTokens",
                "/options/num_predict",
            ];
            let longest: Vec<u64> = places.iter().filter_map(|at| body.pointer(at)?.as_u64()).collect();
            assert_eq!(longest, [4_096], "{wire}");
            match wire {
                Wire::Gemini => assert!(server.log()[0].request.path.contains(&format!("/models/{model}:"))),
                _ => assert_eq!(body["model"], *model),
            }
        });
    }
}

#[test]
fn the_next_model_is_asked_where_one_comes_to_nothing() {
    let refusal = json!({"error": {"message": "no such model", "type": "invalid_request_error", "code": null}});
    for first in [Reply::error(404, refusal), Reply::default().text("no JSON")] {
        block_on(async {
            let server = Server::start();
            server.push(first.clone());
            server.push(good(0));
            let models = ["gpt-4.1", "gpt-4o"].map(|name| Target::named(name).unwrap()).to_vec();
            let settings = Settings { models, ..settings(&server) };
            let engine = memory(Summarizer::of(settings).unwrap(), 1).await;
            assert!(said(&turn(&engine, &at(), &call()).await).contains("GIST-0."));
            let asked: Vec<Value> = (0..2).map(|at| server.log()[at].request.json()["model"].clone()).collect();
            assert_eq!(asked, ["gpt-4.1", "gpt-4o"]);
            let noted = engine.noted(&at()).await.unwrap();
            assert!(matches!(&noted[0].note, Note::Made { model, .. } if **model == *"gpt-4o"), "{noted:?}");
        });
    }
}

/// A conversation whose one result says itself which prompt it is to be summarized with, if it does.
async fn with_prompts(server: &Server, own: Option<&str>) -> Engine<Memory> {
    let prompts = ["override", "entry", "tool"].map(|name| (name.into(), format!("PROMPT {name}").into()));
    let settings = Settings { prompts: prompts.into(), ..settings(server) };
    let engine = Engine::over(Memory::default()).with_summarizer(Summarizer::of(settings).unwrap());
    engine.open(&at(), Opening::default()).await.unwrap();
    let mut result = Entry::result(CallId::from("c"), super::lab::content(0));
    result.meta.extend(own.map(|name| (PROMPT_KEY.to_string(), Value::from(name))));
    let entries = vec![Entry::user("Find it."), Entry::step("Looking.", [ToolCall::new("c", "look", "{}")]), result];
    engine.append(&at(), Append::any(entries)).await.unwrap();
    engine
}

fn ruled(prompt: Option<&str>) -> Call {
    let expire =
        Expire::all(recto::expiry::Expiry { after: 0, action: recto::expiry::ExpiryAction::Summary { chars: 120 } });
    let expiry = recto::expiry::Expiry { after: expire.after, action: expire.action };
    let rule = recto::expiry::ExpiryRule {
        prompt: prompt.map(Into::into),
        ..recto::expiry::ExpiryRule::of_tool("look", expiry)
    };
    let policy = Policy::named("ruled").then(Expire { rules: vec![rule], ..expire }).immediately();
    Call { policy, ..call() }
}

#[test]
fn the_prompt_of_the_override_comes_first_then_the_entrys_then_the_tools_then_the_usual_one() {
    let over = || ExpiryOverride { prompt: Setting::Set("override".into()), ..ExpiryOverride::default() };
    for (over, entry, tool, expected) in [
        (Some(over()), Some("entry"), Some("tool"), "PROMPT override"),
        (None, Some("entry"), Some("tool"), "PROMPT entry"),
        (None, None, Some("tool"), "PROMPT tool"),
        (None, None, None, "You shorten one message"),
    ] {
        block_on(async {
            let server = Server::start();
            server.push(good(0));
            let engine = with_prompts(&server, entry).await;
            let call = Call { expiry: over, ..ruled(tool) };
            for _ in 0..2 {
                turn(&engine, &at(), &call).await;
            }
            let body = body(&server, 0).to_string();
            assert!(body.contains(expected), "{expected}: {body}");
            assert_eq!(server.log().len(), 1);
        });
    }
}

#[test]
fn a_prompt_that_nobody_knows_is_a_failure_that_says_so_until_somebody_does() {
    block_on(async {
        let server = Server::start();
        let engine = with_prompts(&server, Some("brief")).await;
        for _ in 0..2 {
            turn(&engine, &at(), &ruled(None)).await;
        }
        let noted = engine.noted(&at()).await.unwrap();
        assert_eq!(noted[0].note, Note::Failed { why: "Compact prompt brief not found".into() });
        assert_eq!(server.log().len(), 0, "nobody is asked");
    });
}

/// A conversation that a model at the fake has carried on for a while.
async fn carried_on(server: &Server, wire: Wire, model: &str, settings: Settings) -> (Engine<Memory>, At, Call) {
    let engine = Engine::over(Memory::default()).with_summarizer(Summarizer::of(settings).unwrap());
    let (at, upstream) = (at(), upstream(server, wire));
    engine.open(&at, Opening::default()).await.unwrap();
    let tools = vec![r#"{"type":"function","function":{"name":"look","parameters":{"type":"object"}}}"#.into()];
    let call = Call {
        tools,
        fragments: vec![recto::fragment::Fragment::fixed("rules", "You look for things. ".repeat(40))],
        ..Call::new("main", super::lab::policy(), Target::named(model).unwrap())
    };
    let asked = Call { policy: Policy::none(), ..call.clone() };
    engine.append(&at, Append::any([Entry::user("Find it.")])).await.unwrap();
    for number in 0..2 {
        server.push(Reply::default().text("Looking.").call("look", "{}"));
        let reply = engine.ask(&at, &upstream, asked.clone(), &Default::default(), &mut |_| {}).await.unwrap();
        let entry = reply.reply.unwrap().entry;
        let id = entry.calls().next().unwrap().id.clone();
        let found = Entry::result(id, super::lab::content(number));
        engine.append(&at, Append::any([found])).await.unwrap();
    }
    server.push(Reply::default().text("Found."));
    engine.ask(&at, &upstream, asked, &Default::default(), &mut |_| {}).await.unwrap();
    (engine, at, call)
}

#[test]
fn the_conversations_own_model_reads_what_its_providers_cache_holds_and_one_instruction() {
    for (wire, model) in [(Wire::OpenaiChat, "gpt-4o"), (Wire::Anthropic, "claude-opus-4-8")] {
        block_on(async {
            let server = Server::with(Rules { cache_minimum: Some(64), ..Rules::default() });
            let settings = Settings { mode: Mode::Same, ..Settings::new(upstream(&server, wire), Vec::new()) };
            let (engine, at, call) = carried_on(&server, wire, model, settings).await;
            (0..2).for_each(|number| server.push(good(number)));
            let calls = server.log().len();
            engine.append(&at, Append::any([Entry::user("And now?")])).await.unwrap();
            let page = said(&engine.compile(&at, &call).await.unwrap());
            assert!(page.contains("GIST-0.") && page.contains("GIST-1."), "{wire}: {page}");
            assert_eq!(server.log().len(), calls + 2);
            let (before, asked) = (body(&server, calls - 1), body(&server, calls));
            assert_eq!(asked["tools"], before["tools"], "{wire}");
            assert_eq!(asked["model"], model);
            let messages = |body: &Value| body["messages"].as_array().unwrap().clone();
            let (said, more) = (messages(&before), messages(&asked));
            assert_eq!(more[..said.len() - 1], said[..said.len() - 1], "{wire}: all that was said stands before it");
            for noted in engine.noted(&at).await.unwrap() {
                let usage = noted.spent.usage;
                assert!(usage.cached.0 * 2 > usage.input.0, "{wire}: most of it is read from the cache: {usage:?}");
                assert!(noted.spent.usd > 0.0);
            }
        });
    }
}

#[test]
fn what_the_own_model_has_not_read_is_told_to_the_listed_ones() {
    block_on(async {
        let server = Server::start();
        server.push(good(0));
        let settings = Settings { mode: Mode::Same, ..settings(&server) };
        // Its page was acknowledged, but by another model.
        let engine = memory(Summarizer::of(settings).unwrap(), 1).await;
        let other = Call { target: Target::named("gpt-5.2").unwrap().with_window(Some(Tokens(60_000))), ..call() };
        assert!(said(&turn(&engine, &at(), &other).await).contains("GIST-0."));
        assert_eq!(body(&server, 0)["model"], super::lab::MODEL);
    });
}

/// Words that nobody but the log and the conversation's own model may have; put together here, so that no file holds one.
fn secrets() -> [String; 3] {
    let random = "a8Kd03LmQ2xZ7vBn5TyR1wEu";
    [
        format!("sk-proj-{random}{random}"),
        format!("ghp_{random}{}", &random[..12]),
        format!("AKIA{}", "Q7X2M5KD8P3LVN4T"),
    ]
}

#[test]
fn x14_no_secret_of_the_log_is_told_to_whoever_summarizes() {
    let [openai, github, aws] = secrets();
    let leaks = |text: &str| secrets().iter().filter(|secret| text.contains(&***secret)).count();
    for is_range in [false, true] {
        block_on(async {
            let server = Server::start();
            let note = r#"{"intent": "INTENT.", "done": ["DONE."]}"#;
            server.push(if is_range { Reply::default().text(note) } else { good(0) });
            let engine = Engine::over(Memory::default()).with_summarizer(summarizer_of(&server));
            engine.open(&at(), Opening::default()).await.unwrap();
            let found = format!("{}\nOPENAI_API_KEY={openai}\nexport TOKEN={github}\n{aws}", super::lab::content(0));
            let entries = vec![
                Entry::user(format!("Use the key {openai} and never print it.")),
                Entry::step("Looking.", [ToolCall::new("c", "look", format!(r#"{{"with":"{github}"}}"#))]),
                Entry::result(CallId::from("c"), found),
                Entry::assistant(format!("Found it with {aws}.")),
                Entry::user("And now?"),
            ];
            let all: String = entries.iter().map(|entry| format!("{entry:?}")).collect();
            assert_eq!(leaks(&all), 3, "the log has them all");
            engine.append(&at(), Append::any(entries)).await.unwrap();
            let call = if is_range { Call { policy: folding(), ..call() } } else { call() };
            for _ in 0..2 {
                turn(&engine, &at(), &call).await;
            }
            let log = server.log();
            assert_eq!(log.len(), 1, "{is_range}");
            let told = String::from_utf8_lossy(&log[0].request.body);
            assert!(told.contains("line 59 of what was found"), "{told}");
            assert_eq!(leaks(&told), 0, "{told}");
            let noted = format!("{:?}", engine.noted(&at()).await.unwrap());
            assert_eq!(leaks(&noted), 0, "{noted}");
        });
    }
}

fn summarizer_of(server: &Server) -> Summarizer {
    Summarizer::of(settings(server)).unwrap()
}

/// Exchanges become a note as soon as there are two.
fn folding() -> Policy {
    let numbers = Fold { over: Some(Tokens(200)), want_percent: 10, target_percent: 50, step: 1, ..Fold::default() };
    let fold = Fold { keep_last: 1, chars: 400, keep_first_request: false, ..numbers };
    Policy::named("folding").then(fold).then(recto::reduce::FitWindow::default()).immediately()
}

#[test]
fn a_note_on_exchanges_goes_with_the_words_of_any_of_them() {
    block_on(async {
        let server = Server::start();
        server.push(Reply::default().text(r#"{"intent": "INTENT.", "done": ["DONE."]}"#));
        let engine = memory(summarizer_of(&server), 1).await;
        let call = Call { policy: folding(), ..call() };
        // Two exchanges can be folded from the second call on.
        turn(&engine, &at(), &call).await;
        let page = said(&turn(&engine, &at(), &call).await);
        assert!(page.contains("INTENT."), "it stands for what was folded: {page}");
        engine.erase_entries(&at(), vec![recto::Seq(2)]).await.unwrap();
        let decisions = format!("{:?}", engine.decisions(&at(), &call.reader).await.unwrap());
        assert!(!decisions.contains("INTENT."), "{decisions}");
        assert!(!format!("{:?}", engine.noted(&at()).await.unwrap()).contains("INTENT."));
        assert!(!said(&engine.preview(&at(), &call).await.unwrap()).contains("INTENT."));
    });
}
