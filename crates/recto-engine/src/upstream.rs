//! Providers over HTTP: keys from the environment, bounded bodies, times and retries.
//!
//! An answer is heard while it comes. What is said again after a failure is told to the listener, and nothing is ever
//! said again once a good answer has begun.
//!
//! There are two ways to use one: [`Upstream::ask`] says what we have to say, [`Upstream::forward`] passes on what a
//! client says, and its answer back. Both are sent, and sent again, in one place.

mod connect; // addresses, certificates, the client
mod exchange; // one request, again where that is safe, and its answer in chunks
mod forward; // a client's request as it came, and whose key goes with it
mod frames; // the pieces of a stream
mod hear; // what an event of a stream says
mod refusal; // why a provider did not answer

pub use exchange::{Endpoint, Post, Repeat, Response};
pub use forward::{ClientKey, Credential, Forward};

use crate::drive::{Heard, Listen};
use crate::error::{Error, Kind};
use frames::Frames;
use recto::entry::{Status, Text};
use recto::wire::{Reply, Wire};
use reqwest::header::HeaderMap;
use reqwest::{Client, Url};
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// How a provider is reached.
#[derive(Clone)]
pub struct Settings {
    /// What it is called in errors and notes.
    pub name: Text,
    /// What the provider documents as its base URL: `https://api.openai.com/v1`, `https://api.anthropic.com`,
    /// `https://generativelanguage.googleapis.com/v1beta`, `http://localhost:11434`.
    pub url: String,
    /// The format it is spoken to in.
    pub wire: Wire,
    /// The name of the environment variable that holds its key; without one, none is sent.
    pub key_env: Option<String>,
    /// Whether that variable must be set. Where clients bring keys of their own, it need not be.
    pub key_required: bool,
    /// Whose key goes with a client's request; without it, the one of `key_env` where it is set, else the client's.
    pub client_key: Option<ClientKey>,
    /// Headers that go with every request, and win over a client's. Their values are shown nowhere.
    pub headers: BTreeMap<String, String>,
    /// A file with certificates of authorities that are trusted besides those of the system, in PEM.
    pub ca: Option<PathBuf>,
    /// Whether keys and conversations may go over the network unencrypted; on this machine they always may.
    pub plain_http: bool,
    /// How often a request is sent again.
    pub retries_max: u32,
    /// How long things may take.
    pub limits: Limits,
    /// Whether the provider is to keep the history.
    pub remember: Remember,
}

/// How long things may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Until there is a connection.
    pub connect: Duration,
    /// Until the answer begins.
    pub first_byte: Duration,
    /// Between two pieces of the answer.
    pub silence: Duration,
    /// In all, retries included; with an answer that goes on to a client, until it begins.
    pub whole: Duration,
    /// From there to the end of an answer that goes on to a client.
    pub forwarded: Duration,
}

/// Whether a provider keeps the history, so that it is told only what is new.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Remember {
    /// It is told everything each time.
    #[default]
    No,
    /// It keeps every response, and goes on from one of them (Responses only).
    Response,
    /// It keeps a conversation (Responses only).
    Conversation,
}

/// A provider that can be asked.
#[derive(Clone)]
pub struct Upstream(Arc<Prepared>);

/// What is made once, and shared by all who ask.
struct Prepared {
    settings: Settings,
    base: Url,
    /// The path under which clients ask for answers, and where it leads.
    asked: (&'static str, Url),
    key: Option<Key>,
    /// What goes with everything that we ask ourselves.
    headers: HeaderMap,
    /// What goes with everything that clients ask: our key unless theirs goes on, and the headers of the settings.
    credential: HeaderMap,
    extra: HeaderMap,
    client_key: ClientKey,
    client: Client,
}

/// A secret that is never shown.
#[derive(Clone)]
struct Key(String);

/// What came of asking.
#[derive(Debug)]
#[expect(clippy::large_enum_variant, reason = "there is one for each call, and nearly all are whole")]
pub enum Answered {
    /// The answer came to its end.
    Whole(Reply),
    /// It broke off; what there was is kept.
    Broken(Box<Reply>, Error),
}

impl Default for Limits {
    fn default() -> Limits {
        // As patient as the providers' own clients are; a model may think for minutes before it says a word.
        let (connect, patience) = (Duration::from_secs(15), Duration::from_secs(600));
        let forwarded = Duration::from_secs(6 * 3600);
        Limits { connect, first_byte: patience, silence: patience, whole: patience, forwarded }
    }
}

impl Remember {
    /// All there are, as they are spelled in files.
    pub const NAMES: [(&'static str, Remember); 3] =
        [("no", Remember::No), ("response", Remember::Response), ("conversation", Remember::Conversation)];

    /// Returns how it is spelled in files.
    pub fn name(self) -> &'static str {
        match self {
            Remember::No => "no",
            Remember::Response => "response",
            Remember::Conversation => "conversation",
        }
    }
}

impl Settings {
    /// Returns settings with the usual limits, for a provider that needs no key.
    pub fn new(name: &str, url: &str, wire: Wire) -> Settings {
        Settings {
            name: name.into(),
            url: url.into(),
            wire,
            key_env: None,
            key_required: true,
            client_key: None,
            headers: BTreeMap::new(),
            ca: None,
            plain_http: false,
            retries_max: 2,
            limits: Limits::default(),
            remember: Remember::No,
        }
    }
}

impl Upstream {
    /// Prepares for a provider: reads its key from the environment and its certificates from their file. Nothing is
    /// sent yet.
    pub fn of(settings: Settings) -> Result<Upstream, Error> {
        let base = connect::root(&settings)?;
        let key = Key::of(&settings)?;
        let credential = connect::credential(&settings, key.as_ref())?;
        let extra = connect::extra(&settings)?;
        let client_key = forward::client_key(&settings, [&credential, &extra])?;
        let headers = connect::headers(&settings, [&credential, &extra]);
        let client = connect::client(&settings, &base)?;
        let asked = (exchange::path(settings.wire), exchange::under(&base, exchange::path(settings.wire)));
        let prepared = Prepared { settings, base, asked, key, headers, credential, extra, client_key, client };
        Ok(Upstream(Arc::new(prepared)))
    }

    /// Returns what it is called.
    pub fn name(&self) -> &str {
        &self.0.settings.name
    }

    /// Returns the format it is spoken to in.
    pub fn wire(&self) -> Wire {
        self.0.settings.wire
    }

    /// Returns whose key goes with a client's request.
    pub fn client_key(&self) -> ClientKey {
        self.0.client_key
    }

    /// Returns whether it was said that clients have keys for it, whatever format they speak.
    pub fn takes_clients_keys(&self) -> bool {
        self.0.settings.client_key == Some(ClientKey::Pass)
    }

    /// Returns the variable that should hold its key and doesn't, unless clients have keys for it.
    pub fn missing_key(&self) -> Option<&str> {
        let is_there = self.0.client_key == ClientKey::Replace || self.takes_clients_keys();
        self.0.settings.key_env.as_deref().filter(|_| !is_there)
    }

    /// Returns whether it is to keep the history.
    pub fn remember(&self) -> Remember {
        self.0.settings.remember
    }

    /// Returns its address.
    pub fn address(&self) -> &str {
        self.0.base.as_str()
    }

    /// Returns how long an answer may take at most.
    pub fn longest(&self) -> Duration {
        self.0.settings.limits.whole
    }

    /// Returns the fields with which a body asks for a stream; [`Wire::encode_with`] takes them. Where the address asks
    /// for it, there are none.
    pub fn streaming(&self) -> Map<String, Value> {
        if self.0.settings.wire == Wire::Gemini {
            return Map::new();
        }
        let mut fields = Map::from_iter([("stream".to_string(), Value::Bool(true))]);
        if self.0.settings.wire == Wire::OpenaiChat {
            fields.insert("stream_options".into(), serde_json::json!({"include_usage": true}));
        }
        fields
    }

    /// Asks for an answer. The words are heard as they come, calls once all has been said.
    pub async fn ask(&self, post: Post<'_>, listen: Listen<'_>) -> Result<Answered, Error> {
        let response = self.send(Endpoint::Answer, post, listen).await?;
        if !response.is_success() {
            return Err(response.into_refusal().await);
        }
        let (reply, broken) = match Frames::of(response.header("content-type").unwrap_or_default()) {
            Some(frames) => self.streamed(response, frames, listen).await?,
            None => self.whole(response).await?,
        };
        for call in reply.entry.calls() {
            listen(Heard::Call { name: call.name.clone(), arguments: call.arguments.as_str().into() });
        }
        Ok(match broken {
            Some(error) => Answered::Broken(Box::new(reply), error),
            None => Answered::Whole(reply),
        })
    }

    /// Has the provider open a conversation that it keeps, and returns its name.
    pub async fn create_conversation(&self, listen: Listen<'_>) -> Result<Text, Error> {
        let post = Post::new(b"{}".to_vec(), Repeat::WhenUnanswered);
        let response = self.send(Endpoint::Conversations, post, listen).await?;
        if !response.is_success() {
            return Err(response.into_refusal().await);
        }
        let body = body_of(response).await?;
        let made: Value = serde_json::from_slice(&body).unwrap_or_default();
        match made["id"].as_str() {
            Some(id) if !id.is_empty() => Ok(id.into()),
            _ => Err(self.nonsense("a conversation without a name")),
        }
    }

    /// Reads a stream to its end, or up to where it breaks off.
    async fn streamed(
        &self,
        mut response: Response,
        mut frames: Frames,
        listen: Listen<'_>,
    ) -> Result<(Reply, Option<Error>), Error> {
        let mut stream = self.0.settings.wire.stream();
        let (mut failure, mut is_over) = (None, false);
        let broken = 'read: loop {
            let events = match response.chunk().await {
                Ok(Some(bytes)) => frames.push(&bytes),
                Ok(None) if is_over => break None,
                Ok(None) => {
                    is_over = true;
                    Ok(frames.finish())
                }
                Err(error) => break Some(error),
            };
            let events = match events {
                Ok(events) => events,
                Err(error) => break Some(self.nonsense(&error.to_string())),
            };
            for event in events {
                if let Err(error) = stream.event(&event) {
                    break 'read Some(self.nonsense(&format!("an event that can't be read: {error}")));
                }
                let told: Value = serde_json::from_str(&event).unwrap_or_default();
                failure = hear::failure(&told).or(failure);
                hear::heard(self.0.settings.wire, &told).into_iter().for_each(&mut *listen);
            }
        };
        let reply = match (stream.finish(), broken) {
            (Ok(reply), broken) => (reply, broken),
            (Err(_), Some(broken)) => return Err(broken),
            (Err(_), None) => return Err(failure.map_or_else(|| self.broken_off(), |told| self.failed(told))),
        };
        Ok(match reply {
            // The provider had said its last word; only the rest is missing.
            (reply, Some(broken)) if reply.entry.status == Status::Sent => {
                listen(Heard::Note(broken.to_string().into()));
                (reply, None)
            }
            (reply, None) if reply.entry.status != Status::Sent => {
                let why = failure.map_or_else(|| self.broken_off(), |told| self.failed(told));
                (reply, Some(why))
            }
            it => it,
        })
    }

    /// Reads an answer of a server that doesn't stream.
    async fn whole(&self, response: Response) -> Result<(Reply, Option<Error>), Error> {
        let body = body_of(response).await?;
        let text = String::from_utf8_lossy(&body);
        let reply = self.0.settings.wire.decode_reply(&text);
        let reply = reply.map_err(|error| self.nonsense(&format!("an answer that can't be read: {error}")))?;
        let broken = (reply.entry.status != Status::Sent).then(|| {
            let told = serde_json::from_str(&text).ok().and_then(|body| hear::failure(&body));
            told.map_or_else(|| self.broken_off(), |told| self.failed(told))
        });
        Ok((reply, broken))
    }

    fn broken_off(&self) -> Error {
        self.refused(None, None, format!("the answer of {} broke off", self.0.settings.name), "ask again".into())
    }

    fn failed(&self, told: refusal::Told) -> Error {
        let what = format!("{} failed while it answered: {}", self.0.settings.name, told.message);
        self.refused(None, told.code, what, "ask again".into())
    }

    fn nonsense(&self, what: &str) -> Error {
        let hint = format!("check that `url` is that of a server that speaks {}", self.0.settings.wire);
        self.refused(None, None, format!("{} sent {what}", self.0.settings.name), hint)
    }

    /// Makes an error. Whatever a provider or a library says, the key is not in it.
    fn refused(&self, status: Option<u16>, code: Option<String>, what: String, hint: String) -> Error {
        Kind::Refused { what: self.without_key(&what), status, code: code.map(|it| self.without_key(&it)), hint }.into()
    }

    fn without_key(&self, text: &str) -> String {
        match &self.0.key {
            Some(Key(key)) => text.replace(key, "[key]"),
            None => text.into(),
        }
    }
}

async fn body_of(mut response: Response) -> Result<Vec<u8>, Error> {
    let mut body = Vec::new();
    while let Some(bytes) = response.chunk().await? {
        body.extend(bytes);
    }
    Ok(body)
}

impl Key {
    /// Reads a key from the environment, if there is to be one.
    fn of(settings: &Settings) -> Result<Option<Key>, Error> {
        let Some(variable) = &settings.key_env else { return Ok(None) };
        match std::env::var(variable).unwrap_or_default().trim() {
            "" if !settings.key_required => Ok(None),
            "" => {
                let name = &settings.name;
                let what = format!("{name} needs a key, and the environment variable {variable} is not set");
                Err(recto::Error::settings(what, format!("set {variable} to the key")).into())
            }
            key => Ok(Some(Key(key.into()))),
        }
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("[key]")
    }
}

impl fmt::Debug for Settings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Settings { name, url, wire, key_env, key_required, client_key, headers, .. } = self;
        let Settings { ca, plain_http, retries_max, limits, remember, .. } = self;
        let headers: Vec<&String> = headers.keys().collect();
        f.debug_struct("Settings")
            .field("name", name)
            .field("url", url)
            .field("wire", wire)
            .field("key_env", key_env)
            .field("key_required", key_required)
            .field("client_key", client_key)
            .field("headers", &headers)
            .field("ca", ca)
            .field("plain_http", plain_http)
            .field("retries_max", retries_max)
            .field("limits", limits)
            .field("remember", remember)
            .finish()
    }
}

impl fmt::Debug for Upstream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Upstream").field("settings", &self.0.settings).field("key", &self.0.key).finish_non_exhaustive()
    }
}
