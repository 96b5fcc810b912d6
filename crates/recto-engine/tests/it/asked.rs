//! Conversations carried on by providers over HTTP: those that are told everything, and those that keep the history.

use crate::engine::block_on;
use recto::entry::{CallId, Status};
use recto::fragment::Fragment;
use recto::page::Mode;
use recto::receipt::Full;
use recto::session::Lost;
use recto::wire::Wire;
use recto::{Entry, Policy, Seq, Target};
use recto_engine::drive::Heard;
use recto_engine::engine::Asked;
use recto_engine::store::memory::Memory;
use recto_engine::upstream::{Remember, Settings, Upstream};
use recto_engine::{Append, At, Call, Engine, Error, Opening, Tenant};
use recto_testkit::fake::{Exchange, Reply, Server};
use recto_testkit::mixed::at_home;
use serde_json::{Value, json};

/// A provider, and a conversation with it.
struct Lab {
    server: Server,
    upstream: Upstream,
    engine: Engine<Memory>,
    at: At,
    model: &'static str,
}

impl Lab {
    async fn new(wire: Wire, remember: Remember) -> Lab {
        let server = Server::start();
        let url = match wire {
            Wire::OpenaiChat | Wire::OpenaiResponses => format!("{}/v1", server.url()),
            Wire::Anthropic | Wire::Gemini | Wire::Ollama => server.url(),
        };
        let upstream = Upstream::of(Settings { remember, ..Settings::new("fake", &url, wire) }).unwrap();
        let (engine, at) = (Engine::over(Memory::default()), At::new(&Tenant::default(), "talk"));
        engine.open(&at, Opening::default()).await.unwrap();
        let model = match wire {
            Wire::Anthropic => "claude-haiku-4-5",
            Wire::Gemini => "gemini-3.8-flash",
            Wire::Ollama => "qwen3",
            Wire::OpenaiChat | Wire::OpenaiResponses => "gpt-4o",
        };
        Lab { server, upstream, engine, at, model }
    }

    async fn say(&self, words: &str, todo: &str) -> Result<(Asked, String), Error> {
        let mut notes = String::new();
        let input = (!words.is_empty()).then(|| Entry::user(words));
        let fragments = vec![Fragment::fixed("identity", "IDENTITY."), Fragment::dynamic("todo", todo)];
        let target = Target::named(self.model).unwrap_or_else(|| at_home(self.model));
        let call = Call { input, fragments, ..Call::new("main", Policy::usual(), target) };
        let mut listen = |heard| {
            if let Heard::Note(note) = heard {
                notes.push_str(&note);
            }
        };
        let asked = self.engine.ask(&self.at, &self.upstream, call, &Default::default(), &mut listen).await?;
        Ok((asked, notes))
    }

    /// The answers that were asked for and given.
    fn exchanges(&self) -> Vec<Exchange> {
        let is_answer = |it: &Exchange| !it.request.path.ends_with("/conversations");
        let log = self.server.log();
        log.into_iter().filter(is_answer).inspect(|it| assert!(it.refusal.is_none(), "{:?}", it.refusal)).collect()
    }

    fn last(&self) -> Exchange {
        self.exchanges().pop().expect("something was asked")
    }
}

fn count(value: &Value, text: &str) -> usize {
    value.to_string().matches(text).count()
}

const KEEPING: [Remember; 2] = [Remember::Response, Remember::Conversation];

#[test]
fn s01_a_provider_without_memory_is_told_everything_each_time_over_every_wire() {
    for wire in Wire::ALL {
        block_on(async {
            let lab = Lab::new(wire, Remember::No).await;
            for turn in 0..3 {
                lab.server.push(Reply::default().text(&format!("ANSWER-{turn}.")));
                let (asked, _) = lab.say(&format!("WORDS-{turn}."), &format!("TODO-{turn}.")).await.unwrap();
                assert_eq!((asked.receipt.mode, asked.receipt.full), (Mode::Full, None), "{wire}");
                let body = lab.last().request.json();
                for other in 0..3 {
                    assert_eq!(count(&body, &format!("WORDS-{other}.")), usize::from(other <= turn), "{wire}");
                    assert_eq!(count(&body, &format!("ANSWER-{other}.")), usize::from(other < turn), "{wire}");
                    assert_eq!(count(&body, &format!("TODO-{other}.")), usize::from(other == turn), "{wire}");
                }
            }
            assert!(lab.engine.sessions(&lab.at).await.unwrap().is_empty(), "there is nothing to remember");
            assert_eq!(lab.engine.read(&lab.at, Seq(0), 100).await.unwrap().len(), 6);
        });
    }
}

#[test]
fn a_provider_that_keeps_the_history_is_sent_only_what_is_new() {
    for remember in KEEPING {
        block_on(async {
            let lab = Lab::new(Wire::OpenaiResponses, remember).await;
            for turn in 0..4 {
                lab.server.push(Reply::default().text(&format!("ANSWER-{turn}.")));
                let (asked, _) = lab.say(&format!("WORDS-{turn}."), &format!("TODO-{turn}.")).await.unwrap();
                let mode = if turn == 0 { Mode::Full } else { Mode::Delta };
                assert_eq!(asked.receipt.mode, mode);
                assert_eq!(asked.receipt.full, (turn == 0).then_some(Full::NoSession));
                let last = lab.last();
                let (body, read) = (last.request.json(), json!(last.items));
                assert_eq!(body["input"].as_array().map(Vec::len), Some(1), "{body:#}");
                for other in 0..4 {
                    assert_eq!(count(&body, &format!("WORDS-{other}.")), usize::from(other == turn));
                    assert_eq!(count(&body, &format!("ANSWER-{other}.")), 0);
                    assert_eq!(count(&read, &format!("WORDS-{other}.")), usize::from(other <= turn), "{read:#}");
                    assert_eq!(count(&read, &format!("ANSWER-{other}.")), usize::from(other < turn), "{read:#}");
                    // Instructions stand where they are not kept.
                    assert_eq!(count(&read, &format!("TODO-{other}.")), 0, "{read:#}");
                    let told = body["instructions"].as_str().unwrap().matches(&format!("TODO-{other}.")).count();
                    assert_eq!(told, usize::from(other == turn));
                }
                assert_eq!(body["instructions"].as_str().unwrap().matches("IDENTITY.").count(), 1);
            }
            assert!(lab.engine.again(&lab.at, &"main".into(), 3).await.unwrap().agrees);
        });
    }
}

#[test]
fn a_provider_that_has_forgotten_is_told_everything_once_more() {
    for remember in KEEPING {
        block_on(async {
            let lab = Lab::new(Wire::OpenaiResponses, remember).await;
            for turn in 0..2 {
                lab.server.push(Reply::default().text(&format!("ANSWER-{turn}.")));
                lab.say(&format!("WORDS-{turn}."), "").await.unwrap();
            }
            let held = lab.engine.sessions(&lab.at).await.unwrap().pop().unwrap().2;
            lab.server.provider().forget(held.id.as_ref().unwrap());
            lab.server.push(Reply::default().text("ANSWER-2."));
            let (asked, notes) = lab.say("WORDS-2.", "").await.unwrap();
            let full = Some(Full::Lost { lost: Lost::Forgotten });
            assert_eq!((asked.receipt.mode, asked.receipt.full), (Mode::Full, full));
            assert!(notes.contains("has forgotten the conversation"), "{notes}");
            let last = lab.server.log().pop().unwrap();
            let read = json!(last.items);
            for mark in ["WORDS-0.", "ANSWER-0.", "WORDS-1.", "ANSWER-1.", "WORDS-2."] {
                assert_eq!(count(&read, mark), 1, "{mark}: {read:#}");
            }
            lab.server.push(Reply::default().text("ANSWER-3."));
            let (next, _) = lab.say("WORDS-3.", "").await.unwrap();
            assert_eq!(next.receipt.mode, Mode::Delta, "it goes on from there");
        });
    }
}

#[test]
fn who_was_never_told_anything_can_not_have_forgotten_it() {
    for remember in KEEPING {
        block_on(async {
            let lab = Lab::new(Wire::OpenaiResponses, remember).await;
            let error = json!({"error": {"message": "no such model", "type": "invalid_request_error", "code": null}});
            lab.server.push(Reply::error(404, error));
            let refused = lab.say("WORDS-0.", "").await.unwrap_err();
            assert!(refused.is_refused() && refused.to_string().contains("no such model"), "{refused}");
            assert_eq!(lab.exchanges().len(), 1, "it is asked once");
        });
    }
}

#[test]
fn a_call_that_failed_leaves_nothing_that_would_stand_twice() {
    for remember in KEEPING {
        block_on(async {
            let lab = Lab::new(Wire::OpenaiResponses, remember).await;
            lab.server.push(Reply::default().text("ANSWER-0."));
            lab.say("WORDS-0.", "").await.unwrap();
            let error = json!({"error": {"message": "not today", "type": "invalid_request_error", "code": null}});
            lab.server.push(Reply::error(400, error));
            let refused = lab.say("WORDS-1.", "").await.unwrap_err();
            assert!(refused.is_refused() && refused.to_string().contains("not today"), "{refused}");
            assert_eq!(lab.engine.read(&lab.at, Seq(0), 100).await.unwrap().len(), 2);
            lab.server.push(Reply::default().text("ANSWER-1."));
            let (asked, _) = lab.say("WORDS-1.", "").await.unwrap();
            // What a response made is kept only if it went well; a conversation may have taken the words.
            let full = (remember == Remember::Conversation).then_some(Full::Lost { lost: Lost::InDoubt });
            assert_eq!(asked.receipt.full, full);
            let read = json!(lab.server.log().pop().unwrap().items);
            for mark in ["WORDS-0.", "ANSWER-0.", "WORDS-1."] {
                assert_eq!(count(&read, mark), 1, "{mark}: {read:#}");
            }
        });
    }
}

#[test]
fn an_answer_that_breaks_off_is_recorded_as_such_and_what_is_kept_of_it_is_not_relied_on() {
    for remember in [Remember::No, Remember::Response, Remember::Conversation] {
        block_on(async {
            let lab = Lab::new(Wire::OpenaiResponses, remember).await;
            lab.server.push(Reply::default().text("ANSWER-0."));
            lab.say("WORDS-0.", "").await.unwrap();
            let long = "and so on ".repeat(40);
            lab.server.push(Reply::default().text(&format!("PARTIAL. {long}")).broken_after(6));
            let broken = lab.say("WORDS-1.", "").await.unwrap_err();
            assert!(broken.is_refused() || broken.is_timed_out(), "{broken:?}");
            let entries = lab.engine.read(&lab.at, Seq(0), 100).await.unwrap();
            let last = entries.last().unwrap().original();
            assert_eq!((entries.len(), last.status), (4, Status::Error), "{remember:?}");
            lab.server.push(Reply::default().text("ANSWER-2."));
            let (asked, _) = lab.say("WORDS-2.", "").await.unwrap();
            assert_eq!(asked.receipt.mode, Mode::Full, "{remember:?}");
            let read = json!(lab.server.log().pop().unwrap().items);
            for mark in ["WORDS-0.", "ANSWER-0.", "WORDS-1.", "WORDS-2."] {
                assert_eq!(count(&read, mark), 1, "{mark}: {read:#}");
            }
        });
    }
}

#[test]
fn what_a_tool_found_is_new_and_its_call_is_not() {
    for remember in KEEPING {
        block_on(async {
            let lab = Lab::new(Wire::OpenaiResponses, remember).await;
            lab.server.push(Reply::default().call("look", "{}"));
            let (asked, _) = lab.say("WORDS-0.", "").await.unwrap();
            let entry = asked.reply.unwrap().entry;
            let call = entry.calls().next().expect("a call").id.clone();
            let found = Entry::result(CallId::from(call.as_str()), "FOUND-0.");
            lab.engine.append(&lab.at, Append::any([found])).await.unwrap();
            lab.server.push(Reply::default().text("ANSWER-0."));
            let (asked, _) = lab.say("", "").await.unwrap();
            assert_eq!(asked.receipt.mode, Mode::Delta);
            let last = lab.last();
            let body = last.request.json();
            assert_eq!(body["input"].as_array().map(Vec::len), Some(1), "{body:#}");
            assert_eq!(body["input"][0]["type"], "function_call_output");
            // Nothing new: nothing is sent.
            let asked = lab.say("", "").await.unwrap().0;
            assert!(asked.reply.is_none() && asked.receipt.mode == Mode::NothingNew);
        });
    }
}
