//! One summary: asked of one model after the other, until one answers well.

use super::{Mode, Settings, Spent};
use crate::error::Error;
use crate::upstream::{Answered, Post, Repeat, Upstream};
use recto::digest::Digest;
use recto::entry::{Part, Piece, Text};
use recto::note::{Input, Subject, Want};
use recto::page::{Message, Page};
use recto::wire::{Reply, Usage, Wire};
use recto::{Count, Entry, Log, Policy, Reader, Request, Role, Seq, Target, Tokens, compile_once};
use serde_json::{Map, Value, json};
use std::sync::Mutex;
use tokio::time::{Instant, timeout_at};

/// How much is quoted of a message to say which one is meant.
const BEGINNING_CHARS: usize = 80;
/// What is said behind the instructions of a summary to a model that has read the conversation itself.
const BEHIND: &str = "Call no tool, and do not go on with the conversation: answer with the JSON object alone.";

/// What is wanted, and everything that can be said to those who are asked.
pub(crate) struct Asking {
    pub(crate) want: Want,
    /// What a model of its own is told.
    pub(crate) input: Input,
    /// What the conversation's own model is told, where it can be asked.
    pub(crate) own: Option<Own>,
}

/// The page that the conversation's own model read last, and what is said behind it.
pub(crate) struct Own {
    pub(crate) target: Target,
    pub(crate) page: Page,
    pub(crate) instruction: Text,
}

/// What came of asking, and what it cost.
pub(crate) struct Tried {
    pub(crate) came: Came,
    pub(crate) spent: Spent,
}

/// What came of asking.
pub(crate) enum Came {
    /// A summary, and the model that made it.
    Made { text: Text, model: Text },
    /// Everybody who was asked has answered, and no answer was any good: to ask again would not help.
    Refused { why: Text },
    /// Not everybody could be asked; that may be better another time.
    Unreached { why: Text },
}

/// Why one model has made no summary.
enum Miss {
    Answer(String),
    Asking(String),
}

impl Asking {
    /// Asks the models in their order. All of them together take no longer than a summary may.
    pub(crate) async fn ask(&self, settings: &Settings) -> Tried {
        let until = Instant::now() + settings.timeout;
        // What was paid for counts, also if the time is over.
        let (spent, misses) = (Mutex::new(Spent::default()), Mutex::new(Vec::new()));
        let asking = async {
            for target in self.targets(settings) {
                let (target, page) = match target {
                    Turn::Own(own) => (&own.target, Some(own)),
                    Turn::Listed(target) => (target, None),
                };
                match self.ask_one(settings, target, page, &spent).await {
                    Ok(text) => return Some((text, target.name.clone())),
                    Err(miss) => push(&misses, miss),
                }
            }
            None
        };
        let made = timeout_at(until, asking).await;
        if made.is_err() {
            let what = format!("no summary came within {} s", settings.timeout.as_secs_f64());
            push(&misses, Miss::Asking(what));
        }
        let spent = spent.into_inner().unwrap_or_default();
        if let Ok(Some((text, model))) = made {
            return Tried { came: Came::Made { text, model }, spent };
        }
        let misses = misses.into_inner().unwrap_or_default();
        let is_final = misses.iter().all(|miss| matches!(miss, Miss::Answer(_)));
        let whys: Vec<&str> = misses.iter().map(|(Miss::Answer(why) | Miss::Asking(why))| &**why).collect();
        let why = whys.join("; ").into();
        Tried { came: if is_final { Came::Refused { why } } else { Came::Unreached { why } }, spent }
    }

    /// Who is asked, in this order.
    fn targets<'s>(&'s self, settings: &'s Settings) -> Vec<Turn<'s>> {
        let own = self.own.as_ref().filter(|_| settings.mode == Mode::Same);
        own.map(Turn::Own).into_iter().chain(settings.models.iter().map(Turn::Listed)).collect()
    }

    async fn ask_one(
        &self,
        settings: &Settings,
        target: &Target,
        own: Option<&Own>,
        spent: &Mutex<Spent>,
    ) -> Result<Text, Miss> {
        let upstream = &settings.upstream;
        let of_model = |why: String| format!("{}: {why}", target.name);
        let target = &target.clone().over(upstream.wire());
        let fields = fields(upstream, target, settings.output_tokens);
        let body = match own {
            Some(own) => own.body(target, settings.output_tokens, &fields),
            None => body(&self.input, target, settings.output_tokens, &fields)
                .map_err(|error| Miss::Answer(of_model(error.to_string())))?,
        };
        let sent = body.len();
        let asked = upstream.ask(Post::new(body, Repeat::WhenUnanswered).to(&target.name), &mut |_| {}).await;
        let unreached = |error: Error| Miss::Asking(of_model(error.to_string()));
        let reply = match asked.map_err(unreached)? {
            Answered::Whole(reply) => reply,
            Answered::Broken(reply, error) => {
                pay(spent, target, &reply, sent);
                return Err(unreached(error));
            }
        };
        pay(spent, target, &reply, sent);
        self.want.accept(&self.input, &said(&reply)).map_err(|rejected| Miss::Answer(of_model(rejected.to_string())))
    }
}

enum Turn<'s> {
    Own(&'s Own),
    Listed(&'s Target),
}

impl Own {
    /// Returns whether a page shows what a summary is to be of.
    pub(crate) fn shows(page: &Page, subject: &Subject) -> bool {
        let mut seqs = page.messages.iter().filter_map(|message| message.seq);
        match subject {
            Subject::Part(part) => seqs.any(|seq| seq == part.seq),
            Subject::Range(span) => seqs.max() >= Some(span.last),
            // Its words stand in a block, and not by themselves.
            Subject::Human(_) => false,
        }
    }

    /// Says where on its page that stands.
    pub(crate) fn place_of(subject: &Subject, log: &Log) -> Option<Text> {
        let begins = |seq: Seq| {
            let text: String = log.get(seq)?.shown().iter().filter_map(words).collect();
            Some(text.chars().take(BEGINNING_CHARS).collect::<String>())
        };
        Some(match subject {
            Subject::Part(part) => {
                let first = begins(part.seq)?;
                format!("{BEHIND} The message that is meant stands above, and begins with: {first:?}").into()
            }
            Subject::Human(_) => return None,
            Subject::Range(span) => {
                let (first, last) = (begins(span.first)?, begins(span.last)?);
                format!(
                    "{BEHIND} The part that is meant stands above: it ends with the message that begins with {last:?}, \
                     and begins with the one that begins with {first:?}, or with the note in its place. What comes \
                     behind it is not meant."
                )
                .into()
            }
        })
    }

    /// The body of a request that says the page once more, and the instruction behind it. All that stands before it is
    /// what the provider was sent already.
    fn body(&self, target: &Target, output: Tokens, fields: &Map<String, Value>) -> Vec<u8> {
        let mut page = self.page.clone();
        page.messages.push(Message {
            role: Role::User,
            author: None,
            parts: [Part::Text { text: self.instruction.clone() }].into(),
            seq: None,
            cost: Tokens(0),
            digest: Digest::default(),
            extra: Map::new(),
        });
        // The answer has a form of our own.
        (page.format, page.output) = (None, output);
        target.wire.encode_with(&page, target, fields)
    }
}

/// The body of a request that says nothing but what is to be summarized.
fn body(input: &Input, target: &Target, output: Tokens, fields: &Map<String, Value>) -> Result<Vec<u8>, recto::Error> {
    let (policy, reader) = (Policy::none(), Reader::new("summarizer"));
    let mut log = Log::counted_by(target.tokenizer);
    log.append(Entry::system(input.instructions.clone()))?;
    log.append(Entry::user(input.text.clone()))?;
    let request = Request { reserve: Some(output), ..Request::new(&log, &reader, &policy, target) };
    let compiled = compile_once(&request)?;
    Ok(target.wire.encode_with(&compiled.page, target, fields))
}

/// The fields with which a body asks for a stream, and for an answer of bounded length.
fn fields(upstream: &Upstream, target: &Target, output: Tokens) -> Map<String, Value> {
    let mut fields = upstream.streaming();
    let most = Value::from(output.0);
    let (name, value) = match (upstream.wire(), &*target.provider) {
        (Wire::OpenaiResponses, _) => ("max_output_tokens", most),
        // Its own models take no other name; many servers that speak like it know only the older one.
        (Wire::OpenaiChat, "openai") => ("max_completion_tokens", most),
        (Wire::OpenaiChat | Wire::Anthropic, _) => ("max_tokens", most),
        (Wire::Gemini, _) => ("generationConfig", json!({"maxOutputTokens": most})),
        (Wire::Ollama, _) => ("options", json!({"num_predict": most})),
    };
    fields.insert(name.into(), value);
    fields
}

/// The words of a part, as far as it has any.
fn words(part: &Part) -> Option<String> {
    match part {
        Part::Text { text } => Some(text.to_string()),
        Part::Result(result) => Some(result.content.iter().filter_map(piece).collect()),
        Part::Call(call) => Some(call.name.to_string()),
        _ => None,
    }
}

fn piece(piece: &Piece) -> Option<&str> {
    match piece {
        Piece::Text { text } => Some(text),
        Piece::Image(_) => None,
    }
}

/// The words of an answer.
fn said(reply: &Reply) -> String {
    let texts = reply.entry.parts.iter().filter_map(|part| match part {
        Part::Text { text } => Some(&**text),
        _ => None,
    });
    texts.collect()
}

/// Counts what an answer has cost: by what the provider reports, else by our own count.
fn pay(spent: &Mutex<Spent>, target: &Target, reply: &Reply, sent_bytes: usize) {
    let counted = || Usage {
        input: Tokens(sent_bytes as u64 / 4),
        output: target.tokenizer.count(&said(reply)),
        ..Usage::default()
    };
    let usage = reply.usage.unwrap_or_else(counted);
    if let Ok(mut spent) = spent.lock() {
        *spent = spent.and(Spent { calls: 1, usage, usd: target.prices.usd(&usage) });
    }
}

fn push(misses: &Mutex<Vec<Miss>>, miss: Miss) {
    if let Ok(mut misses) = misses.lock() {
        misses.push(miss);
    }
}
