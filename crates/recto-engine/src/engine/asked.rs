//! A call of a provider over HTTP: the page is sent, the answer is heard while it comes, and both are recorded.

use super::pages::Answer;
use super::{At, Engine, now};
use crate::call::Call;
use crate::drive::{Heard, Listen};
use crate::error::Error;
use crate::session::{Held, Remembering, Task};
use crate::store::Store;
use crate::upstream::{Answered, Post, Remember, Repeat, Upstream};
use recto::Compiled;
use recto::entry::Text;
use recto::page::Mode;
use recto::receipt::Receipt;
use recto::session::Lost;
use recto::target::Instructions;
use recto::wire::Reply;
use serde_json::{Map, Value};

/// How often a call is made anew, because the provider had forgotten what it was to go on from.
const TRIES_MAX: usize = 2;
/// How providers say that they don't know a response or a conversation.
const FORGOTTEN: [&str; 2] = ["previous_response_not_found", "conversation_not_found"];

/// What came of asking a provider.
#[derive(Clone, Debug)]
pub struct Asked {
    /// The explanation of what it was told.
    pub receipt: Receipt,
    /// What it answered; none if there was nothing to tell it.
    pub reply: Option<Reply>,
}

impl<S: Store> Engine<S> {
    /// Has a provider carry a conversation on: sends the page, or what is new where the provider remembers, and records
    /// the answer. An answer that breaks off is recorded as what it is, and told as an error. `extra` are fields of the
    /// host's own for the request.
    pub async fn ask(
        &self,
        at: &At,
        upstream: &Upstream,
        call: Call,
        extra: &Map<String, Value>,
        listen: Listen<'_>,
    ) -> Result<Asked, Error> {
        let task = Task::begin(&self.inner.tasks);
        let mut call = Call { target: call.target.clone().over(upstream.wire()), session: None, ..call };
        if upstream.remember() != Remember::No {
            let lease = upstream.longest();
            let provider = format!("{}:{}", upstream.remember().name(), upstream.name());
            call.session = Some(Remembering::new(provider, upstream.address(), lease).within(&task));
            call.target = call.target.remembering(Instructions::Replaced);
        }
        self.doubt(at, upstream, &call).await?;
        let mut tries = 0;
        loop {
            tries += 1;
            let compiled = self.compile(at, &call).await?;
            if compiled.page.mode == Mode::NothingNew {
                return Ok(Asked { receipt: compiled.receipt, reply: None });
            }
            match self.send(at, upstream, &call, &compiled, extra, listen).await {
                Err(error) if tries < TRIES_MAX && is_forgotten(&error) && compiled.page.mode == Mode::Delta => {
                    let name = upstream.name();
                    listen(Heard::Note(
                        format!("{name} has forgotten the conversation ({error}); all of it is sent").into(),
                    ));
                    self.give_up(at, &call, &compiled, Lost::Forgotten).await?;
                }
                Err(error) => {
                    // A conversation of the provider's may have taken what was said; a response that failed was not kept.
                    match upstream.remember() {
                        Remember::Conversation => self.give_up(at, &call, &compiled, Lost::InDoubt).await?,
                        Remember::No | Remember::Response => drop(self.abandon(at, &compiled.receipt.ticket).await?),
                    }
                    return Err(error);
                }
                Ok(answered) => return self.heard(at, &call, compiled, answered).await,
            }
        }
    }

    async fn send(
        &self,
        at: &At,
        upstream: &Upstream,
        call: &Call,
        compiled: &Compiled,
        extra: &Map<String, Value>,
        listen: Listen<'_>,
    ) -> Result<(Answered, Option<Text>), Error> {
        let mut fields = extra.clone();
        fields.extend(upstream.streaming());
        let held = match &call.session {
            Some(with) => self.session(at, &call.reader, &with.provider).await?.unwrap_or_default(),
            None => Held::default(),
        };
        let known = held.id.filter(|_| compiled.page.mode == Mode::Delta);
        let session = match upstream.remember() {
            Remember::No => None,
            Remember::Response => {
                fields.extend(known.map(|id| ("previous_response_id".to_string(), Value::from(&*id))));
                fields.insert("store".into(), true.into());
                None
            }
            Remember::Conversation => {
                let id = match known {
                    Some(id) => id,
                    None => upstream.create_conversation(listen).await?,
                };
                fields.insert("conversation".into(), Value::from(&*id));
                Some(id)
            }
        };
        let body = upstream.wire().encode_with(&compiled.page, &call.target, &fields);
        // Said again, what the provider keeps would stand there twice.
        let repeat = if session.is_some() { Repeat::WhenUnheard } else { Repeat::WhenUnanswered };
        let answered = upstream.ask(Post::new(body, repeat).to(&call.target.name), listen).await?;
        Ok((answered, session))
    }

    /// Records an answer.
    async fn heard(
        &self,
        at: &At,
        call: &Call,
        compiled: Compiled,
        (answered, session): (Answered, Option<Text>),
    ) -> Result<Asked, Error> {
        let (reply, broken) = match answered {
            Answered::Whole(reply) => (reply, None),
            Answered::Broken(reply, error) => (*reply, Some(error)),
        };
        let entry = reply.entry.clone().bound_to(compiled.page.binding());
        let reported = reply.usage.map(|usage| usage.input);
        let session = session.or_else(|| reply.id.clone()).filter(|_| call.session.is_some());
        let answer = Answer { entries: vec![entry], reported, session, ..Answer::default() };
        self.acknowledge(at, &compiled.receipt.ticket, answer).await?;
        match (broken, &call.session) {
            (Some(error), Some(with)) => {
                self.invalidate(at, &call.reader, &with.provider, Lost::InDoubt).await?;
                Err(error)
            }
            (Some(error), None) => Err(error),
            (None, _) => Ok(Asked { receipt: compiled.receipt, reply: Some(reply) }),
        }
    }

    /// Gives up a conversation of the provider's that may have taken what a call said of which nobody heard the end.
    async fn doubt(&self, at: &At, upstream: &Upstream, call: &Call) -> Result<(), Error> {
        let Some(with) = call.session.as_ref().filter(|_| upstream.remember() == Remember::Conversation) else {
            return Ok(());
        };
        match self.session(at, &call.reader, &with.provider).await?.filter(Held::is_in_doubt) {
            Some(held) => {
                held.check_free(&with.provider, now(), &self.inner.tasks)?;
                self.invalidate(at, &call.reader, &with.provider, Lost::InDoubt).await.map(drop)
            }
            None => Ok(()),
        }
    }

    async fn give_up(&self, at: &At, call: &Call, compiled: &Compiled, why: Lost) -> Result<(), Error> {
        self.abandon(at, &compiled.receipt.ticket).await?;
        if let Some(with) = &call.session {
            self.invalidate(at, &call.reader, &with.provider, why).await?;
        }
        Ok(())
    }
}

fn is_forgotten(error: &Error) -> bool {
    let (status, code) = error.refusal();
    status == Some(404) || code.is_some_and(|code| FORGOTTEN.contains(&code))
}
