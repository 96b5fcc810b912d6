//! A context: a conversation with its prompt and data, as one immutable value.
//!
//! What is kept and what a model is shown are apart: any policy compiles any context, and changes none.

mod json;

use crate::entry::{Entry, Section, Seq, Text};
use crate::error::Error;
use crate::format::ResponseFormat;
use crate::fragment::{Fragment, Fragments};
use crate::log::{Counted, Log, Scope};
use crate::policy::Policy;
use crate::reader::Reader;
use crate::request::Request;
use crate::target::Target;
use crate::tokens::Count;
use serde_json::value::RawValue;
use serde_json::{Map, Value};
use std::sync::Arc;

pub use json::{EXPORT_VERSION, Imported, Quarantined};

/// The name of the fragment that the system prompt becomes.
pub const SYSTEM_FRAGMENT: &str = "system";

/// A conversation in sections, the host's data, a system prompt, and the form an answer should have.
///
/// Every change yields a new context and leaves this one as it was; both share all that is the same. Places are never
/// given twice, so what a [`Reader`] decided about an entry is never taken to be about another one.
///
/// ```
/// use recto::context::Changes;
/// use recto::{Context, Entry, Policy, Reader, Target, Tokenizer, compile_once};
/// use serde_json::json;
///
/// let context = Context::empty(Tokenizer::O200k)
///     .with_system_prompt("You are terse.")
///     .with_metadata_key("user", "ada")
///     .with_response_format(r#"{"type": "json_object"}"#)?
///     .with_messages([Entry::user("What is the capital of France?")])?
///     .with_appended_messages([Entry::assistant("Paris.")])?;
/// assert_eq!(context.system_prompt(), "You are terse.");
/// assert_eq!(context.metadata()["user"], "ada");
/// assert_eq!(context.response_format(), Some(r#"{"type": "json_object"}"#));
/// assert_eq!(context.messages().len(), 2);
/// assert_eq!(context.store().len(), 2);
///
/// let mut store = context.store().clone();
/// store.append(Entry { section: "summary".into(), ..Entry::assistant("Capitals were asked for.") })?;
/// let longer = context.with_message_store(store);
/// assert_eq!((longer.messages().len(), longer.store().len()), (2, 3));
/// assert_eq!(context.store().len(), 2);
///
/// let other = longer.with(Changes {
///     system_prompt: Some("You are kind.".into()),
///     metadata: json!({"user": "bob"}).as_object().cloned(),
///     ..Changes::default()
/// })?;
/// assert_eq!((other.system_prompt(), other.store().len()), ("You are kind.", 3));
///
/// let fragments = other.fragments([])?;
/// let (reader, policy, target) = (Reader::new("main"), Policy::safe(), Target::named("gpt-4o").expect("built in"));
/// let compiled = compile_once(&other.request(&fragments, &reader, &policy, &target))?;
/// assert_eq!(compiled.page.messages.len(), 4);
/// # Ok::<(), recto::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Context {
    log: Log,
    /// The place of the next message; above that of every entry there is or was.
    next: Seq,
    metadata: Arc<Map<String, Value>>,
    system_prompt: Text,
    response_format: Option<Text>,
}

/// Several changes at once; what is `None` stays as it is.
#[derive(Clone, Debug, Default)]
pub struct Changes {
    /// The whole conversation, all sections.
    pub store: Option<Log>,
    /// The host's data.
    pub metadata: Option<Map<String, Value>>,
    /// The system prompt; an empty one is none.
    pub system_prompt: Option<Text>,
    /// The form an answer should have: JSON text, and `null` is none.
    pub response_format: Option<Text>,
}

impl From<Log> for Context {
    /// Returns a context with this conversation and nothing else.
    fn from(log: Log) -> Context {
        let next = log.head().map_or(Seq(0), Seq::next);
        Context { log, next, metadata: Arc::default(), system_prompt: "".into(), response_format: None }
    }
}

impl Context {
    /// Returns a context with nothing in it, whose messages are counted by this tokenizer.
    pub fn empty(counter: impl Count + 'static) -> Context {
        Context::from(Log::counted_by(counter))
    }

    /// Returns the system prompt, which may be empty.
    pub fn system_prompt(&self) -> &str {
        &self.system_prompt
    }

    /// Returns the host's data.
    pub fn metadata(&self) -> &Map<String, Value> {
        &self.metadata
    }

    /// Returns the form an answer should have, if one was asked for: JSON text, byte for byte, since the order of a
    /// schema's fields is the order in which a model fills them.
    pub fn response_format(&self) -> Option<&str> {
        self.response_format.as_deref()
    }

    /// Returns the entries of the section `messages`, talk and traces, in order.
    pub fn messages(&self) -> Vec<&Counted> {
        let scope = Scope { section: Some(Section::default()), ..Scope::default() };
        let mut messages: Vec<_> = self.log.back_in(&scope).collect();
        messages.reverse();
        messages
    }

    /// Returns the whole conversation, all sections.
    pub fn store(&self) -> &Log {
        &self.log
    }

    /// Returns the context with several changes at once. A response format that is no JSON is refused.
    pub fn with(&self, changes: Changes) -> Result<Context, Error> {
        let mut context = match changes.response_format {
            Some(format) => self.with_response_format(format)?,
            None => self.clone(),
        };
        if let Some(store) = changes.store {
            context = context.with_message_store(store);
        }
        if let Some(metadata) = changes.metadata {
            context.metadata = Arc::new(metadata);
        }
        context.system_prompt = changes.system_prompt.unwrap_or(context.system_prompt);
        Ok(context)
    }

    /// Returns the context with another system prompt.
    #[must_use]
    pub fn with_system_prompt(&self, prompt: impl Into<Text>) -> Context {
        Context { system_prompt: prompt.into(), ..self.clone() }
    }

    /// Returns the context with one piece of the host's data added or replaced.
    #[must_use]
    pub fn with_metadata_key(&self, key: impl Into<String>, value: impl Into<Value>) -> Context {
        let mut context = self.clone();
        Arc::make_mut(&mut context.metadata).insert(key.into(), value.into());
        context
    }

    /// Returns the context with another form for the answer: JSON text, where `null` is none.
    pub fn with_response_format(&self, format: impl Into<Text>) -> Result<Context, Error> {
        let format = format.into();
        let json: &RawValue = json::whole(&format, "response format")?;
        let response_format = (json.get() != "null").then(|| json.get().into());
        Ok(Context { response_format, ..self.clone() })
    }

    /// Returns the context with other messages in the section `messages`; all other sections stay.
    ///
    /// Their entries keep their places, and share their texts with this context. The new messages take places behind
    /// every place that was ever given, those of the old messages included: what was decided about an old message
    /// says nothing of a new one. A provider that remembers holds the old ones still, and needs a new session.
    pub fn with_messages(&self, messages: impl IntoIterator<Item = Entry>) -> Result<Context, Error> {
        let others: Vec<_> = self.log.back().filter(|entry| !entry.original().section.is_messages()).collect();
        let mut log = self.log.until(None);
        for entry in others.into_iter().rev() {
            log.append_at(entry.seq, entry.original().clone())?;
        }
        self.appended(log, messages)
    }

    /// Returns the context with more messages at the end of the section `messages`. If one of them is refused, all
    /// are.
    pub fn with_appended_messages(&self, messages: impl IntoIterator<Item = Entry>) -> Result<Context, Error> {
        self.appended(self.log.clone(), messages)
    }

    /// Returns the context with another conversation, in all sections. Later messages take places behind it, and
    /// behind every place that was ever given here.
    #[must_use]
    pub fn with_message_store(&self, store: Log) -> Context {
        let next = self.next.max(store.head().map_or(Seq(0), Seq::next));
        Context { log: store, next, ..self.clone() }
    }

    /// Returns the fragments of a call: the system prompt first, at the head of the page and byte for byte, unless it
    /// is empty; then the host's own.
    pub fn fragments(&self, more: impl IntoIterator<Item = Fragment>) -> Result<Fragments, Error> {
        let has_prompt = !self.system_prompt.is_empty();
        let prompt = has_prompt.then(|| Fragment::fixed(SYSTEM_FRAGMENT, self.system_prompt.clone()));
        Fragments::counted(prompt.into_iter().chain(more), self.log.counter())
    }

    /// Returns the form that the answer must have, for [`Request::format`]; what is no format is an error.
    pub fn format(&self) -> Result<Option<ResponseFormat>, Error> {
        self.response_format().map_or(Ok(None), ResponseFormat::parse)
    }

    /// Returns the request for a page of this context, with the fragments that [`fragments`](Context::fragments)
    /// made, and with nothing else that is optional.
    pub fn request<'a>(
        &'a self,
        fragments: &'a Fragments,
        reader: &'a Reader,
        policy: &'a Policy,
        target: &'a Target,
    ) -> Request<'a> {
        Request { fragments: Some(fragments), ..Request::new(&self.log, reader, policy, target) }
    }

    fn appended(&self, mut log: Log, messages: impl IntoIterator<Item = Entry>) -> Result<Context, Error> {
        let mut next = self.next;
        for entry in messages {
            if !entry.section.is_messages() {
                let what = format!("a message of section {}", entry.section);
                return Err(Error::input(what).hinting("append it to the store, and give that to with_message_store"));
            }
            next = log.append_at(next, entry)?.next();
        }
        Ok(Context { log, next, ..self.clone() })
    }
}
