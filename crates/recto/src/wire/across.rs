//! From one provider's format to another: what a client asks in its own format goes to a provider that speaks another,
//! and the answer comes back in the client's.
//!
//! Messages, tools and the form of an answer are compiled into a page, which every wire can write. What is left is done
//! here: [`Wishes`] carries over everything that a body says beside those, [`Across`] an answer, whole or while it comes,
//! and [`refusal`] an error. All of them go through words of nobody's, so that a wire needs to be heard and told once,
//! not once for each of the others.
//!
//! Nothing is dropped in silence. What changes the meaning of a request is refused, what doesn't is named in
//! [`Wishes::dropped`], and what is left out of an answer in [`Across::left_out`]. No signature is ever made up:
//! reasoning that is shown to a client of another format is shown without its seal, or not at all.

mod hear;
mod refusal;
mod tell;
mod wishes;

use super::{Reply, Stop, Usage, Wire, sse};
use crate::entry::{Call, Entry, Part, Reasoning, Text};
use crate::error::Error;
use crate::wire::json::Fields;
use crate::wire::tool_name;
use hear::Hear;
use std::collections::BTreeSet;
use tell::Tell;

pub use refusal::{kind_of_error, refusal};
pub use wishes::Wishes;

/// What is left out of an answer: thoughts.
const REASONING: &str = "reasoning";
/// What is left out of an answer: what seals thoughts, so that they can go back to their provider.
const SIGNATURE: &str = "signature";
/// What is left out of an answer: where its words come from.
const CITATIONS: &str = "citations";
/// What is left out of an answer: what only its provider understands.
const CONTENT: &str = "content";

/// One thing that a stream tells, in the words of no provider.
#[derive(Clone, Debug, PartialEq)]
enum Told {
    /// The answer begins.
    Begun {
        id: Option<Text>,
        model: Option<Text>,
    },
    Text(String),
    Refusal(String),
    Thought(String),
    /// A call begins; calls are numbered from 0.
    Call {
        at: usize,
        id: String,
        name: String,
    },
    Arguments {
        at: usize,
        piece: String,
    },
    /// What was used so far.
    Used(Usage),
    /// Why the answer ends, if that is known.
    Stopped(Option<Stop>),
    /// It has come to its proper end.
    Ended,
    Failed {
        kind: String,
        message: String,
    },
    /// Something that can't be told in another format.
    LeftOut(&'static str),
    /// Nothing, but the provider is still there.
    Alive,
}

/// How an answer is told, as far as its client decides that or a clock does.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Telling {
    /// When the answer began, in seconds since 1970.
    pub created: i64,
    /// Whether a stream of Chat Completions ends with what was used.
    pub has_usage: bool,
}

/// Tells an answer of one format in another.
///
/// The pieces of a stream go into [`push`](Across::push), however they are cut, and what it returns goes to the client;
/// [`close`](Across::close) follows when the provider's stream is over. An answer that is no stream goes into
/// [`whole`](Across::whole).
#[derive(Debug)]
pub struct Across {
    to: Wire,
    reader: sse::Reader,
    hear: Hear,
    tell: Tell,
    telling: Telling,
    /// Tools that the provider knows by another name: that, and the client's.
    renamed: Vec<(Text, Text)>,
    left_out: BTreeSet<&'static str>,
}

impl Across {
    /// Returns one for an answer in one wire to a client of another, who has offered tools of these names. Fails for wires
    /// that are not carried over.
    pub fn new<'n>(
        from: Wire,
        to: Wire,
        telling: Telling,
        tools: impl IntoIterator<Item = &'n str>,
    ) -> Result<Across, Error> {
        let hear = Hear::of(from).ok_or_else(|| unheard(from))?;
        let tell = Tell::of(to, telling).ok_or_else(|| unheard(to))?;
        let renamed = tools.into_iter().map(|name| (tool_name(name), name));
        let renamed = renamed.filter(|(told, name)| told != name).map(|(told, name)| (told.into(), name.into()));
        let (reader, left_out) = (sse::Reader::default(), BTreeSet::new());
        Ok(Across { to, reader, hear, tell, telling, renamed: renamed.collect(), left_out })
    }

    /// Takes a piece of the provider's stream, and returns what goes to the client now. Fails where it can't be read, or
    /// says something that can't be told any more.
    pub fn push(&mut self, piece: &[u8]) -> Result<Vec<u8>, Error> {
        let mut out = Vec::new();
        for event in self.reader.push(piece)? {
            let told = self.hear.event(&event.data)?;
            self.told(told, &mut out)?;
        }
        Ok(out)
    }

    /// Takes the end of the provider's stream, and returns what the client still gets. An answer that was broken off has
    /// no end here either.
    pub fn close(&mut self) -> Result<Vec<u8>, Error> {
        // Some servers don't end their last event.
        let mut out = self.push(b"\n\n")?;
        let told = self.hear.close();
        self.told(told, &mut out)?;
        Ok(out)
    }

    fn told(&mut self, told: Vec<Told>, out: &mut Vec<u8>) -> Result<(), Error> {
        for told in told {
            let told = match told {
                Told::Call { at, id, name } => Told::Call { at, id, name: self.original(&name).to_string() },
                told => told,
            };
            if told == Told::Ended && !self.left_out.is_empty() {
                // The headers of a stream are gone by now; a comment is there for those who look.
                let names: Vec<&str> = self.left_out().collect();
                out.extend_from_slice(format!(": recto left out {}\n\n", names.join(", ")).as_bytes());
            }
            if let Some(what) = self.tell.tell(told, out)? {
                self.left_out.insert(what);
            }
        }
        Ok(())
    }

    /// Returns the body of an answer that is no stream in the client's format.
    pub fn whole(&mut self, reply: &Reply) -> Vec<u8> {
        let (entry, left_out) = shown(self.to, &reply.entry);
        self.left_out.extend(left_out);
        self.tell.whole(self.telling, &Reply { entry, ..reply.clone() })
    }

    /// Returns a reply with its tools called as the client calls them.
    pub fn named(&self, mut reply: Reply) -> Reply {
        let is_renamed = |part: &Part| matches!(part, Part::Call(call) if self.original(&call.name) != &*call.name);
        if reply.entry.parts.iter().any(is_renamed) {
            let parts = reply.entry.parts.iter().map(|part| match part {
                Part::Call(call) => Part::Call(Call { name: self.original(&call.name).into(), ..call.clone() }),
                part => part.clone(),
            });
            reply.entry.parts = parts.collect::<Vec<Part>>().into();
        }
        reply
    }

    /// Returns what was left out of the answer so far, each once.
    pub fn left_out(&self) -> impl Iterator<Item = &'static str> + '_ {
        self.left_out.iter().copied()
    }

    fn original<'n>(&'n self, name: &'n str) -> &'n str {
        self.renamed.iter().find(|(told, _)| **told == *name).map_or(name, |(_, original)| original)
    }
}

/// Why a wire is not carried over to another or from one.
fn unheard(wire: Wire) -> Error {
    Error::input(format!("{wire} is not carried over to another format"))
        .hinting("its server has an address for OpenAI's Chat Completions, too: name that, with wire = \"openai_chat\"")
}

/// Returns a reply as a client of a format is shown it, whatever format it came in, and sends it back; and what is left
/// out of it.
pub fn shown(to: Wire, reply: &Entry) -> (Entry, BTreeSet<&'static str>) {
    let (mut parts, mut left_out) = (Vec::with_capacity(reply.parts.len()), BTreeSet::new());
    for part in reply.parts.iter() {
        match part {
            Part::Reasoning(thought) => {
                if thought.is_sealed() {
                    left_out.insert(SIGNATURE);
                }
                if thought.text.is_empty() {
                    continue;
                }
                match to {
                    Wire::Anthropic => drop(left_out.insert(REASONING)),
                    _ => {
                        let text = thought.text.clone();
                        parts.push(Part::Reasoning(Reasoning { text, ..Reasoning::default() }));
                    }
                }
            }
            Part::Opaque { payload, .. } => match refused(payload) {
                Some(text) if to == Wire::Anthropic => say(&mut parts, &text),
                Some(_) => parts.push(part.clone()),
                None => drop(left_out.insert(CONTENT)),
            },
            Part::Text { text } => say(&mut parts, text),
            part => parts.push(part.clone()),
        }
    }
    (Entry { parts: one_message(to, parts).into(), extra: serde_json::Map::new(), ..reply.clone() }, left_out)
}

/// Adds words. Those that come one after the other are one text: a stream doesn't tell them apart.
fn say(parts: &mut Vec<Part>, more: &str) {
    match parts.last_mut() {
        Some(Part::Text { text }) => *text = format!("{text}{more}").into(),
        _ => parts.push(Part::text(more)),
    }
}

/// Returns parts as they stand in one message of a format: where that has one text, in one.
pub fn one_message(wire: Wire, parts: Vec<Part>) -> Vec<Part> {
    if wire != Wire::OpenaiChat {
        return parts;
    }
    let mut text = String::new();
    let (mut refusals, mut rest) = (Vec::new(), Vec::with_capacity(parts.len()));
    for part in parts {
        match part {
            Part::Text { text: more } => text.push_str(&more),
            part @ Part::Opaque { .. } => refusals.push(part),
            part => rest.push(part),
        }
    }
    let text = Some(text).filter(|text| !text.is_empty()).map(Part::text);
    text.into_iter().chain(refusals).chain(rest).collect()
}

/// The text of a refusal, if something opaque is one.
fn refused(payload: &str) -> Option<String> {
    let fields: Fields<'_> = serde_json::from_str(payload).ok()?;
    let text = |name: &str| -> Option<String> { serde_json::from_str(fields.get(name)?.get()).ok() };
    text("refusal").filter(|_| text("type").as_deref() == Some("refusal"))
}
