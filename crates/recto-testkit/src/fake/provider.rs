//! The provider without its port: it judges, remembers, answers, and keeps a log.

use super::cache::{Cache, Served};
use super::gemini::{self, Thought};
use super::messages::signed::{Kept, Signed};
use super::messages::{self, Betas};
use super::node::{Checked, Node};
use super::prompt::{self, Count, Prompt};
use super::reply::{Delivery, Part, Reply};
use super::responses::issued::Issued;
use super::responses::{self};
use super::speak::{self, Ids, Saying};
use super::{Api, Refusal, check_parsed, ollama, parse};
use serde_json::{Value, json};
use std::collections::VecDeque;

/// The largest body that is read.
pub(super) const BODY_BYTES_MAX: usize = 32 * 1024 * 1024;

const MODELS: [&str; 8] = [
    "gpt-4o",
    "gpt-5.5",
    "gpt-5.6-sol",
    "gpt-6-sol",
    "claude-opus-5-5",
    "claude-sonnet-5-5",
    "claude-haiku-4-5",
    "claude-fable-5-1",
];

/// What a test can set.
#[derive(Debug, Clone)]
pub struct Settings {
    /// Tokens that prompt and answer may have together; without it, any number.
    pub window: Option<u64>,
    /// Tokens that the shortest cached prefix has; without it, what the model's is.
    pub cache_minimum: Option<u64>,
    /// The key that requests must bring; without it, any or none.
    pub api_key: Option<String>,
    /// Whether thinking is bound to its conversation, as for accounts made since September 2026.
    pub binds_thinking: bool,
    /// How tokens are counted.
    pub count: Count,
}

impl Default for Settings {
    fn default() -> Settings {
        Settings { window: None, cache_minimum: None, api_key: None, binds_thinking: true, count: Count::default() }
    }
}

/// A request as it came in.
#[derive(Debug, Clone, Default)]
pub struct Incoming {
    /// `POST` or `GET`.
    pub method: String,
    /// The path with its query.
    pub path: String,
    /// Names in lower case.
    pub headers: Vec<(String, String)>,
    /// The body as it came.
    pub body: Vec<u8>,
}

impl Incoming {
    /// Returns a `POST` without headers other than the version that Anthropic demands.
    pub fn post(path: &str, body: &Value) -> Incoming {
        let headers = vec![("anthropic-version".to_owned(), "2023-06-01".to_owned())];
        Incoming { method: "POST".to_owned(), path: path.to_owned(), headers, body: body.to_string().into_bytes() }
    }

    /// Returns a header's value.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str())
    }

    /// Returns the body as JSON, or null if it is none.
    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_default()
    }
}

/// An answer before it is sent.
#[derive(Debug, Clone)]
pub struct Answer {
    /// The HTTP status.
    pub status: u16,
    /// Headers other than type and length.
    pub headers: Vec<(String, String)>,
    /// One body, or the events of a stream.
    pub events: Vec<String>,
    /// Whether it is a stream.
    pub streams: bool,
    /// Whether a stream comes in lines, and not in events.
    pub in_lines: bool,
    pub(super) delivery: Delivery,
}

impl Answer {
    /// Returns everything that is sent if nothing goes wrong.
    pub fn text(&self) -> String {
        self.events.concat()
    }

    /// Returns an answer that is no stream as JSON.
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.text()).unwrap_or_default()
    }

    fn whole(status: u16, body: &Value) -> Answer {
        let delivery = Delivery::default();
        let (headers, events) = (Vec::new(), vec![body.to_string()]);
        Answer { status, headers, events, streams: false, in_lines: false, delivery }
    }
}

/// One request and what was answered.
#[derive(Debug, Clone)]
pub struct Exchange {
    /// What came in.
    pub request: Incoming,
    /// The status of the answer.
    pub status: u16,
    /// The whole body of the answer; events one after the other.
    pub answer: String,
    /// Why it was refused, if it was.
    pub refusal: Option<Refusal>,
    /// How many thinking blocks, or messages that did not fit, were left out without a word.
    pub dropped: usize,
    /// Responses: every item that the model read, with those that the provider had kept.
    pub items: Vec<Value>,
    /// The usage, in the provider's spelling; null if there is none.
    pub usage: Value,
}

/// A provider with its memory: the script, what it gave out, its cache, its log.
#[derive(Debug, Default)]
pub struct Provider {
    settings: Settings,
    script: VecDeque<Reply>,
    signed: Signed,
    issued: Issued,
    thought: Thought,
    cache: Cache,
    ids: Ids,
    log: Vec<Exchange>,
}

/// What the log tells besides the answer.
#[derive(Debug, Default)]
struct Seen {
    dropped: usize,
    items: Vec<Value>,
}

/// What is known of a request that was taken.
struct Taken {
    prompt: Prompt,
    kept: Kept,
    items: Vec<Value>,
    /// How many messages did not fit.
    gone: usize,
}

impl Taken {
    fn of(prompt: Prompt) -> Taken {
        Taken { prompt, kept: Kept::default(), items: Vec::new(), gone: 0 }
    }
}

impl Provider {
    /// Returns a provider that was never asked anything.
    pub fn new(settings: Settings) -> Provider {
        Provider { settings, ..Provider::default() }
    }

    /// Adds an answer behind those that wait. When none is left, an answer says how long the request was.
    pub fn push(&mut self, reply: Reply) {
        self.script.push_back(reply);
    }

    /// Returns every exchange so far.
    pub fn log(&self) -> &[Exchange] {
        &self.log
    }

    /// Lets everything expire that the cache keeps this long (`5m`, `1h`, `30m`, `12h`).
    pub fn expire(&mut self, lifetime: &str) {
        self.cache.forget(Some(lifetime));
    }

    /// Forgets a stored response or a conversation, as if it had expired; returns whether there was one.
    pub fn forget(&mut self, id: &str) -> bool {
        self.issued.forget(id)
    }

    /// Judges a body as [`super::check`] does, and by what was given out before. Nothing is answered or remembered.
    pub fn check(&self, api: Api, body: &[u8]) -> Result<(), Refusal> {
        let value = parse(api, body)?;
        let node = Node::root(api, &value);
        check_parsed(&node, Betas::Unseen)?;
        self.take(&node).map(drop)
    }

    /// Answers a request and logs it.
    pub fn answer(&mut self, request: &Incoming) -> Answer {
        let mut seen = Seen::default();
        let outcome = self.route(request, &mut seen);
        self.logged(request, outcome, seen)
    }

    /// Answers a request whose body was too large to read.
    pub(super) fn answer_too_large(&mut self, request: &Incoming) -> Answer {
        self.logged(request, Err(too_large(api_of(&request.path))), Seen::default())
    }

    fn logged(&mut self, request: &Incoming, outcome: Result<Answer, Refusal>, seen: Seen) -> Answer {
        let (answer, refusal) = match outcome {
            Ok(answer) => (answer, None),
            Err(refusal) => (Answer::whole(refusal.status, &refusal.to_body()), Some(refusal)),
        };
        let usage = usage_of(&answer);
        let (status, text) = (answer.status, answer.text());
        let Seen { dropped, items } = seen;
        self.log.push(Exchange { request: request.clone(), status, answer: text, refusal, dropped, items, usage });
        answer
    }

    fn route(&mut self, request: &Incoming, seen: &mut Seen) -> Result<Answer, Refusal> {
        let path = request.path.split('?').next().unwrap_or_default();
        match (request.method.as_str(), path) {
            ("POST", "/v1/chat/completions") => self.generate(Api::Chat, request, seen),
            ("POST", "/v1/responses") => self.generate(Api::Responses, request, seen),
            ("POST", "/v1/messages") => self.generate(Api::Messages, request, seen),
            ("POST", "/v1/responses/input_tokens") => self.count(Api::Responses, request),
            ("POST", "/v1/conversations") => self.converse(request),
            ("POST", "/v1/messages/count_tokens") => self.count(Api::Messages, request),
            ("GET", "/v1/models") => Ok(Answer::whole(200, &models(request))),
            ("POST", "/api/chat") => self.generate(Api::Ollama, request, seen),
            ("POST", path) if gemini::Called::of(path).is_some_and(|it| it.generates()) => {
                self.generate(Api::Gemini, request, seen)
            }
            ("POST", path) if gemini::Called::of(path).is_some() => self.count(Api::Gemini, request),
            (method, _) => {
                Err(Refusal::new(api_of(path), "path", format!("Invalid URL ({method} {path})")).with_status(404))
            }
        }
    }

    fn converse(&mut self, request: &Incoming) -> Result<Answer, Refusal> {
        self.account(Api::Responses, request)?;
        let value = parse(Api::Responses, &request.body)?;
        responses::check_conversation(&Node::root(Api::Responses, &value))?;
        let id = self.ids.next("conv_", 48);
        self.issued.open(&id, value["items"].as_array().cloned().unwrap_or_default());
        let metadata = value.get("metadata").cloned().unwrap_or(json!({}));
        let made = json!({"id": id, "object": "conversation", "created_at": 1_790_000_000, "metadata": metadata});
        Ok(Answer::whole(200, &made))
    }

    fn count(&mut self, api: Api, request: &Incoming) -> Result<Answer, Refusal> {
        self.account(api, request)?;
        let value = gemini::counted(parse(api, &request.body)?, &request.path);
        let body = Node::root(api, &value);
        match api {
            Api::Messages => messages::check_counted(&body, betas(request))?,
            Api::Gemini => gemini::check(&body)?,
            _ => responses::check_counted(&body)?,
        }
        let tokens = self.read(&body)?.prompt.tokens();
        Ok(Answer::whole(
            200,
            &match api {
                Api::Messages => json!({"input_tokens": tokens}),
                Api::Gemini => json!({"totalTokens": tokens}),
                _ => json!({"object": "response.input_tokens", "input_tokens": tokens}),
            },
        ))
    }

    fn generate(&mut self, api: Api, request: &Incoming, seen: &mut Seen) -> Result<Answer, Refusal> {
        self.account(api, request)?;
        let value = gemini::addressed(parse(api, &request.body)?, &request.path);
        let body = Node::root(api, &value);
        check_parsed(&body, betas(request))?;
        let taken = self.take(&body)?;
        *seen = Seen { dropped: taken.kept.dropped.len() + taken.gone, items: taken.items };
        let reply = match fills_cache_only(api, &value) {
            true => Reply::default(),
            false => self.script.pop_front().unwrap_or_else(|| echo(api, &value)),
        };
        if let Some((status, body)) = &reply.error {
            let answer = Answer::whole(*status, body);
            return Ok(Answer { headers: reply.headers, delivery: reply.delivery, ..answer });
        }
        let minimum = self.settings.cache_minimum;
        let served = match api {
            Api::Messages => self.cache.serve_marked(&taken.prompt, minimum),
            Api::Gemini => self.cache.serve_implicit(&taken.prompt, minimum),
            Api::Ollama => Served { total: taken.prompt.tokens(), ..Served::default() },
            _ => self.cache.serve_openai(&taken.prompt, minimum),
        };
        let whole = self.say(api, &value, &reply, &served, taken.kept, betas(request));
        let streams = match api {
            Api::Gemini => gemini::Called::of(&request.path).is_some_and(|it| it.streams()),
            Api::Ollama => value["stream"] != false,
            _ => value["stream"] == true,
        };
        let events = match api {
            _ if !streams => vec![whole.to_string()],
            Api::Chat => speak::chat::stream(&whole, value["stream_options"]["include_usage"] == true),
            Api::Responses => speak::responses::stream(&whole),
            Api::Messages => speak::messages::stream(&whole),
            Api::Gemini => speak::gemini::stream(&whole),
            Api::Ollama => speak::ollama::stream(&whole),
        };
        let in_lines = api == Api::Ollama;
        Ok(Answer { status: 200, headers: reply.headers, events, streams, in_lines, delivery: reply.delivery })
    }

    fn account(&self, api: Api, request: &Incoming) -> Checked {
        if request.body.len() > BODY_BYTES_MAX {
            return Err(too_large(api));
        }
        if api == Api::Messages && request.header("anthropic-version").is_none() {
            return Err(Refusal::new(api, "account", "anthropic-version: header is required"));
        }
        let Some(key) = &self.settings.api_key else { return Ok(()) };
        let bearer = request.header("authorization").and_then(|value| value.strip_prefix("Bearer "));
        let own = match api {
            Api::Messages => request.header("x-api-key"),
            Api::Gemini => request.header("x-goog-api-key"),
            _ => None,
        };
        if bearer.filter(|_| api != Api::Gemini).or(own) == Some(key) {
            return Ok(());
        }
        Err(match api {
            Api::Messages => Refusal::new(api, "account", "invalid x-api-key").with_status(401),
            Api::Gemini => Refusal::new(api, "account", "API key not valid. Please pass a valid API key."),
            Api::Ollama => Refusal::new(api, "account", "unauthorized").with_status(401),
            _ => Refusal::new(api, "account", "Incorrect API key provided.").with_status(401).coded("invalid_api_key"),
        })
    }

    /// Checks what needs memory, and returns what the model reads.
    fn read(&self, body: &Node<'_>) -> Result<Taken, Refusal> {
        let count = &self.settings.count;
        match body.api {
            Api::Chat => Ok(Taken::of(prompt::of_chat(body.value, count))),
            Api::Responses => {
                self.issued.check(body)?;
                let items = self.issued.whole_input(body.value);
                Ok(Taken { items: items.clone(), ..Taken::of(prompt::of_responses(body.value, &items, count)) })
            }
            Api::Messages => {
                let kept = self.signed.read(body, self.settings.binds_thinking)?;
                let dropped: Vec<(usize, usize)> = kept.dropped.iter().map(|(at, inside, _)| (*at, *inside)).collect();
                Ok(Taken { kept, ..Taken::of(prompt::of_messages(body.value, &dropped, count)) })
            }
            Api::Gemini => {
                self.thought.check(body)?;
                Ok(Taken::of(prompt::of_gemini(body.value, count)))
            }
            Api::Ollama => {
                let (prompt, gone) = ollama::fitted(body, count)?;
                Ok(Taken { gone, ..Taken::of(prompt) })
            }
        }
    }

    fn take(&self, body: &Node<'_>) -> Result<Taken, Refusal> {
        let taken = self.read(body)?;
        let Some(window) = self.settings.window else { return Ok(taken) };
        if body.api == Api::Ollama {
            // Its window is what the request says.
            return Ok(taken);
        }
        let asked = ["max_tokens", "max_completion_tokens", "max_output_tokens"];
        let output = asked.iter().find_map(|field| body.value[*field].as_u64()).unwrap_or(0);
        let input = taken.prompt.tokens();
        if input + output <= window || body.is("truncation", "auto") {
            return Ok(taken);
        }
        let total = input + output;
        Err(match body.api {
            Api::Messages => {
                let text = format!("prompt is too long: {total} tokens > {window} maximum");
                Refusal::new(body.api, "context", text)
            }
            Api::Gemini => {
                let text =
                    format!("The input token count ({input}) exceeds the maximum number of tokens allowed ({window}).");
                Refusal::new(body.api, "context", text)
            }
            api => {
                let text = format!(
                    "This model's maximum context length is {window} tokens. However, you requested {total} tokens \
                     ({input} in the messages, {output} in the completion). Please reduce the length of the messages \
                     or completion."
                );
                let place = if api == Api::Chat { "messages" } else { "input" };
                Refusal::new(api, "context", text).at(place).coded("context_length_exceeded")
            }
        })
    }

    fn say(&mut self, api: Api, body: &Value, reply: &Reply, served: &Served, kept: Kept, betas: Betas<'_>) -> Value {
        let cost = |part: &Part| match part {
            Part::Text(text) | Part::Thinking(text) | Part::Refusal(text) => self.settings.count.of(&json!(text)),
            Part::Call { name, arguments } => self.settings.count.of(&json!(format!("{name}{arguments}"))),
            Part::Redacted => 1,
        };
        let is_thinking = |part: &&Part| matches!(part, Part::Thinking(_) | Part::Redacted);
        let output_tokens = reply.parts.iter().map(cost).sum();
        let thinking_tokens = reply.parts.iter().filter(is_thinking).map(cost).sum();
        let mut saying = Saying { body, reply, served, output_tokens, thinking_tokens, ids: self.ids };
        let mut whole = match api {
            Api::Chat => speak::chat::whole(&mut saying),
            Api::Responses => speak::responses::whole(&mut saying),
            Api::Messages => speak::messages::whole(&mut saying),
            Api::Gemini => speak::gemini::whole(&mut saying),
            Api::Ollama => speak::ollama::whole(&mut saying),
        };
        self.ids = saying.ids;
        let model = body["model"].as_str().unwrap_or_default();
        let list = |key: &str| whole[key].as_array().cloned().unwrap_or_default();
        match api {
            Api::Chat | Api::Ollama => {}
            Api::Gemini => self.thought.remember(model, &whole),
            Api::Responses => {
                self.issued.remember(model, &list("output"));
                self.issued.store(whole["id"].as_str().unwrap_or_default(), body, &list("output"));
            }
            Api::Messages => {
                let content = list("content");
                if matches!(betas, Betas::Header(_)) && betas.has("thinking-binding-controls-") {
                    whole["input_transformations"] = kept.dropped.iter().map(transformation).collect();
                }
                self.signed.remember(model, kept, &content);
            }
        }
        whole
    }
}

fn api_of(path: &str) -> Api {
    match path {
        path if path.starts_with("/v1/messages") => Api::Messages,
        path if path.starts_with("/v1beta/") => Api::Gemini,
        path if path.starts_with("/api/") => Api::Ollama,
        _ => Api::Chat,
    }
}

fn too_large(api: Api) -> Refusal {
    Refusal::new(api, "account", "Request exceeds the maximum allowed number of bytes.").with_status(413)
}

fn transformation((at, inside, reason): &(usize, usize, &'static str)) -> Value {
    json!({"type": "thinking_dropped", "path": format!("messages.{at}.content.{inside}"), "reason": reason})
}

fn betas(request: &Incoming) -> Betas<'_> {
    Betas::Header(request.header("anthropic-beta").unwrap_or_default())
}

/// Returns whether the request wants no answer, only the cache to be warm.
fn fills_cache_only(api: Api, body: &Value) -> bool {
    match api {
        Api::Messages => body["max_tokens"] == 0,
        _ => body["prompt_cache_options"]["prewarm"] == true,
    }
}

/// Says something about the request that is the same each time.
fn echo(api: Api, body: &Value) -> Reply {
    let list = match api {
        Api::Responses => &body["input"],
        Api::Gemini => &body["contents"],
        _ => &body["messages"],
    };
    let length = list.as_array().map_or(1, Vec::len);
    let tools = match api {
        Api::Gemini => body["tools"][0]["functionDeclarations"].as_array().map_or(0, Vec::len),
        _ => body["tools"].as_array().map_or(0, Vec::len),
    };
    Reply::default().text(&format!("{length} messages, {tools} tools"))
}

/// Returns the last usage that an answer tells.
fn usage_of(answer: &Answer) -> Value {
    let texts = answer.events.iter().rev().filter_map(|event| event.lines().rfind(|line| !line.is_empty()));
    let values = texts.filter_map(|line| serde_json::from_str(line.strip_prefix("data: ").unwrap_or(line)).ok());
    let usage = |value: Value| {
        let told = [&value["usage"], &value["response"]["usage"], &value["usageMetadata"]];
        let counted = value["prompt_eval_count"].is_u64().then_some(&value);
        told.into_iter().find(|it| it.is_object()).or(counted).cloned()
    };
    values.filter_map(usage).next().unwrap_or_default()
}

fn models(request: &Incoming) -> Value {
    if request.header("anthropic-version").is_some() {
        let of =
            |id: &&str| json!({"type": "model", "id": id, "display_name": id, "created_at": "2026-01-01T00:00:00Z"});
        let data: Vec<Value> = MODELS.iter().filter(|id| id.starts_with("claude")).map(of).collect();
        return json!({"data": data, "has_more": false, "first_id": data[0]["id"], "last_id": data[data.len() - 1]["id"]});
    }
    let of = |id: &&str| json!({"id": id, "object": "model", "created": 1_790_000_000, "owned_by": "fake"});
    let data: Vec<Value> = MODELS.iter().filter(|id| id.starts_with("gpt")).map(of).collect();
    json!({"object": "list", "data": data})
}
