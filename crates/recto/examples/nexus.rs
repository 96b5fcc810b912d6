//! A host that asks for its context over a channel, as NEXUS does over its bus: a request comes in, the messages go out.
//!
//! `CONTEXT_BUILD_REQUEST` and `CONTEXT_BUILD_RESPONSE` are two types here, and a bus is any pair of channels.
#![expect(clippy::print_stdout, reason = "an example is there to show")]

use recto::block::{Facts, Zone, instant};
use recto::entry::Call;
use recto::tool::Tools;
use recto::{Entry, Error, Log, Policy, Reader, Request, Target, Tokenizer, compile_once, wire};
use serde_json::{Map, Value, json};
use std::collections::HashMap;
use std::sync::mpsc;

const SEARCH: &str = r#"{"type":"function","function":{"name":"web_search","description":"Search the web","parameters":{"type":"object","properties":{"query":{"type":"string","description":"The search query"}},"required":["query"]}}}"#;

/// What the bus carries to the builder.
struct BuildRequest {
    owner_key: String,
    user_profile: Map<String, Value>,
    current_input: String,
    timestamp_utc: String,
    /// As JavaScript's `getTimezoneOffset` says it.
    timezone_offset: i64,
    answer: mpsc::Sender<Result<BuildResponse, Error>>,
}

/// What it carries back.
struct BuildResponse {
    messages: Vec<Value>,
    tools: Vec<Value>,
}

/// Makes the context of a call from the history that is kept for each owner.
struct ContextBuilder {
    histories: HashMap<String, Log>,
    tools: Tools,
    policy: Policy,
    target: Target,
}

impl ContextBuilder {
    fn build_context(
        &self,
        owner_key: &str,
        user_profile: &Map<String, Value>,
        current_input: &str,
        timestamp_utc: &str,
        timezone_offset: i64,
    ) -> Result<BuildResponse, Error> {
        let none = Log::counted_by(Tokenizer::O200k);
        let log = self.histories.get(owner_key).unwrap_or(&none);
        let facts = Facts {
            now: Some(instant(timestamp_utc)?),
            zone: Zone::js_minutes(timezone_offset)?,
            profile: user_profile.clone(),
            ..Facts::default()
        };
        let (reader, input) = (Reader::new("nexus"), log.draft(Entry::user(current_input))?);
        let (facts, tools, input) = (Some(&facts), Some(&self.tools), Some(&input));
        let request = Request { facts, tools, input, ..Request::new(log, &reader, &self.policy, &self.target) };
        let page = compile_once(&request)?.page;
        let body = wire::openai_chat::encode_messages(&page);
        let messages = serde_json::from_slice(&body).map_err(|error| Error::input(error.to_string()))?;
        let tools = self.tools.list().iter().filter_map(|tool| serde_json::from_str(&tool.json).ok()).collect();
        Ok(BuildResponse { messages, tools })
    }

    /// Answers every request that comes, until nobody can send any.
    fn handle(&self, requests: &mpsc::Receiver<BuildRequest>) {
        for it in requests {
            let BuildRequest { owner_key, user_profile, current_input, timestamp_utc, timezone_offset, answer } = it;
            let built = self.build_context(&owner_key, &user_profile, &current_input, &timestamp_utc, timezone_offset);
            // Whoever asked may have gone.
            drop(answer.send(built));
        }
    }
}

fn main() -> Result<(), Error> {
    let mut log = Log::counted_by(Tokenizer::O200k);
    let at = |entry: Entry| {
        Ok::<_, Error>(Entry { at: Some(instant("2025-12-10T07:30:00Z")?), run: Some("r".into()), ..entry })
    };
    let call = Call::new("c1", "web_search", r#"{"query":"AI development 2025"}"#);
    log.append(at(Entry::user("Search for AI"))?)?;
    log.append(at(Entry::step("I'll search...", [call]))?)?;
    log.append(at(Entry::result("c1", "ten pages"))?)?;
    log.append(at(Entry::assistant("Here is what I found."))?)?;
    let builder = ContextBuilder {
        histories: HashMap::from([("0xABC123".to_string(), log)]),
        tools: Tools::counted([SEARCH.into()], &Tokenizer::O200k),
        policy: Policy::nexus_doc(),
        target: Target::named("gpt-4o").expect("built in"),
    };
    let (bus, requests) = mpsc::channel();
    let (answer, answers) = mpsc::channel();
    let profile = json!({"prompt_overrides": {"friends_profile": "I prefer concise, direct answers."}});
    let request = BuildRequest {
        owner_key: "0xABC123".into(),
        user_profile: profile.as_object().cloned().unwrap_or_default(),
        current_input: "What's the capital of France?".into(),
        timestamp_utc: "2025-12-10T08:00:00Z".into(),
        timezone_offset: -480,
        answer,
    };
    bus.send(request).map_err(|_| Error::input("nobody builds contexts"))?;
    drop(bus);
    builder.handle(&requests);
    for built in answers {
        let built = built?;
        for message in &built.messages {
            let (role, content) = (message["role"].as_str(), message["content"].as_str());
            println!("--- {}\n{}", role.unwrap_or_default(), content.unwrap_or_default());
        }
        println!("--- {} tool", built.tools.len());
    }
    Ok(())
}
