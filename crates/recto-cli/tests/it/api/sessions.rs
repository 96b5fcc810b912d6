//! Sessions over HTTP: a request that names a session gets only what the provider does not hold yet.

use super::live::{Live, Place};
use serde_json::{Value, json};

/// A conversation of one reader with a provider that remembers.
struct Talk<'l> {
    live: &'l Live,
    name: &'static str,
    model: String,
}

impl<'l> Talk<'l> {
    fn new(live: &'l Live, name: &'static str, model: &str) -> Talk<'l> {
        live.post("/conversations", json!({"conversation": name}));
        Talk { live, name, model: model.into() }
    }

    /// Appends one user message.
    #[track_caller]
    fn say(&self, text: &str) {
        let entries = json!([{"role": "user", "text": text}]);
        self.live.post(&format!("/conversations/{}/entries", self.name), json!({"entries": entries}));
    }

    #[track_caller]
    fn ask(&self, verb: &str, request: Value) -> Value {
        self.live.post(&format!("/conversations/{}/readers/main/{verb}", self.name), request)
    }

    /// Compiles the next call of the session, and checks that `preview` returns the same body.
    #[track_caller]
    fn compile(&self, workspace: &str, more: Value) -> Value {
        let session = json!({"provider": "mine", "workspace": workspace});
        let mut request = json!({"model": self.model, "session": session, "body_as": "text"});
        request.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        let previewed = self.ask("preview", request.clone());
        let page = self.ask("compile", request);
        assert_eq!(page["body"], previewed["body"], "{}", self.model);
        page
    }

    /// Acknowledges a call with one assistant message.
    #[track_caller]
    fn answer(&self, page: &Value, text: &str) {
        let entries = json!([{"role": "assistant", "text": text}]);
        self.ask("acknowledge", json!({"ticket": page["ticket"], "entries": entries, "session": "s1"}));
    }

    #[track_caller]
    fn abandon(&self, page: &Value) {
        assert_eq!(self.ask("abandon", json!({"ticket": page["ticket"]}))["was_open"], true);
    }
}

/// Returns the mode of a page, and the entries that its messages show.
fn sent(page: &Value) -> (&str, Vec<u64>) {
    let messages = page["page"]["messages"].as_array().unwrap();
    (page["page"]["mode"].as_str().unwrap(), messages.iter().filter_map(|it| it["seq"].as_u64()).collect())
}

/// Design points T9 to T14, scenarios S02, S04 and S08: the first call of a session sends everything, later calls send
/// what is new, and where nothing is new there is no body. The catalogue says of none of its models that it remembers.
#[test]
fn s04_a_session_with_a_built_in_model_gets_deltas() {
    let live = Live::new();
    let talks = [("chat", "gpt-4o"), ("messages", "claude-sonnet-4-5"), ("contents", "gemini-2.5-pro"), ("new", "x-1")];
    for (name, model) in talks {
        let talk = Talk::new(&live, name, model);
        talk.say("One?");
        let first = talk.compile("w", json!({}));
        assert_eq!(sent(&first), ("full", vec![0]), "{model}");
        assert_eq!(first["receipt"]["full"]["why"], "no_session", "{model}");
        talk.answer(&first, "1");
        for call in 1..4 {
            talk.say("And then?");
            let page = talk.compile("w", json!({}));
            assert_eq!(sent(&page), ("delta", vec![2 * call]), "{model}");
            assert!(!page["body"].as_str().unwrap().contains("One?"), "{model}: {}", page["body"]);
            talk.answer(&page, "2");
        }
        let page = talk.compile("w", json!({}));
        assert_eq!((sent(&page), &page["body"]), (("nothing_new", vec![]), &Value::Null), "{model}");
        talk.abandon(&page);
        let session = &live.get(&format!("/conversations/{name}/sessions"))["sessions"][0];
        assert_eq!((&session["acked"], &session["head"]), (&json!(7), &json!(7)), "{model}");
        let again = live.get(&format!("/conversations/{name}/readers/main/turns/2"));
        assert_eq!((&again["agrees"], sent(&again).0), (&json!(true), "delta"), "{model}");
    }
}

/// Design points T22 and R2, scenarios S05 and S06: an abandoned call leaves the session as it was, and what another
/// client appends during a call is in the next delta.
#[test]
fn s06_an_abandoned_call_sends_the_same_delta_again() {
    let live = Live::new();
    let talk = Talk::new(&live, "monday", "gpt-4o");
    talk.say("One?");
    talk.answer(&talk.compile("w", json!({})), "1");
    talk.say("Two?");
    let first = talk.compile("w", json!({}));
    assert_eq!(sent(&first), ("delta", vec![2]));
    talk.abandon(&first);
    let again = talk.compile("w", json!({}));
    assert_eq!((sent(&again), &again["body"]), (("delta", vec![2]), &first["body"]));
    talk.say("Wait, three?");
    talk.answer(&again, "2");
    assert_eq!(sent(&talk.compile("w", json!({}))), ("delta", vec![3]));
}

/// Design points T23 and T29, scenario S07: in another workspace the session holds nothing, so everything is sent again,
/// and the calls after that send deltas.
#[test]
fn s07_a_session_of_another_workspace_is_seeded_again() {
    let live = Live::new();
    let talk = Talk::new(&live, "monday", "gpt-4o");
    talk.say("One?");
    talk.answer(&talk.compile("here", json!({})), "1");
    talk.say("Two?");
    let moved = talk.compile("there", json!({}));
    assert_eq!(sent(&moved), ("full", vec![0, 1, 2]));
    assert_eq!(moved["receipt"]["full"], json!({"why": "lost", "lost": "workspace_changed"}));
    talk.answer(&moved, "2");
    talk.say("Three?");
    assert_eq!(sent(&talk.compile("there", json!({}))), ("delta", vec![4]));
}

/// Design points T18 and T34, scenario S03: on resume, dynamic fragments are sent as user messages before the delta, and
/// static ones are not sent at all.
#[test]
fn s03_dynamic_fragments_go_before_the_delta_and_static_ones_only_once() {
    let live = Live::new();
    let talk = Talk::new(&live, "monday", "gpt-4o");
    let fragments = json!([
        {"id": "rules", "content": "Be brief."},
        {"id": "d1", "content": "Todo: tests", "lifecycle": "dynamic"},
        {"id": "d2", "content": "Reply to @user", "lifecycle": "dynamic"},
    ]);
    let more = json!({"policy": "tenex_doc", "fragments": fragments});
    talk.say("One?");
    let first = talk.compile("w", more.clone());
    assert_eq!(sent(&first).0, "full");
    assert!(first["body"].as_str().unwrap().contains("Be brief."));
    talk.answer(&first, "1");
    talk.say("Two?");
    talk.say("Look at this.");
    let page = talk.compile("w", more);
    let body: Value = serde_json::from_str(page["body"].as_str().unwrap()).unwrap();
    let expected = json!([
        {"role": "user", "content": "[System Context]: Todo: tests"},
        {"role": "user", "content": "[System Context]: Reply to @user"},
        {"role": "user", "content": "Two?"},
        {"role": "user", "content": "Look at this."},
    ]);
    assert_eq!((page["page"]["mode"].as_str(), &body["messages"]), (Some("delta"), &expected));
}

/// Design points T11 and T12: a model that the configuration calls stateless cannot have a session.
#[test]
fn t11_a_session_with_a_model_that_is_configured_as_stateless_is_refused() {
    let place = Place::new();
    let models = "[models.forgets]\nlike = 'gpt-4o'\nmemory = 'stateless'\n[models.keeps]\nlike = 'gpt-4o'\nmemory = 'session'\n";
    place.folder.file("recto.toml", models);
    let live = Live::over(&place, None);
    let talk = Talk::new(&live, "monday", "keeps");
    talk.say("One?");
    talk.answer(&talk.compile("w", json!({})), "1");
    talk.say("Two?");
    assert_eq!(sent(&talk.compile("w", json!({}))), ("delta", vec![2]));
    let request = json!({"model": "forgets", "session": {"provider": "other"}}).to_string();
    for verb in ["compile", "preview"] {
        let path = format!("/conversations/monday/readers/main/{verb}");
        let problem = live.refuses((400, "bad_request"), "POST", &path, &request);
        let detail = problem["detail"].as_str().unwrap();
        assert!(detail.contains("\"forgets\"") && detail.contains("stateless"), "{problem}");
        assert!(problem["hints"][0].as_str().unwrap().contains("memory = \"session\""), "{problem}");
    }
    let plain = talk.ask("preview", json!({"model": "forgets"}));
    assert_eq!(sent(&plain), ("full", vec![0, 1, 2]), "without a session it is compiled as before");
}
