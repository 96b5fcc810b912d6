//! Several answers of a provider, shown to a client as one: calls of a tool that the client knows nothing of are hidden.
//!
//! A host offers a model a tool of its own besides those of its client. When the model calls it, the host answers and
//! asks again; each answer of the provider is a *round*. [`Hiding`] takes the bytes of the rounds and returns those of
//! the one response that the client sees: one start and one end, numbers without gaps, usage summed over all rounds.

mod chat;
mod messages;
mod object;
mod responses;
mod rounds;

use super::Wire;
use super::sse::{self, EVENT_BYTES_MAX};
use crate::entry::Call;
use crate::error::Error;
use object::Object;
use rounds::{Rounds, Told};

/// How many bytes of hidden calls and withheld ends are kept of one round.
pub const HIDDEN_BYTES_MAX: usize = 16 * 1024 * 1024;

/// Shows the rounds of one request to its client as one response, without the calls of one tool.
///
/// **Streams.** Each piece that comes from the provider goes into [`push`](Hiding::push), however it is cut; what
/// `push` returns goes to the client at once. Text and reasoning are never held back, nor are events that end the
/// response, once it is clear that no round follows. [`round`](Hiding::round) says what a round came to. It is asked
/// when the provider's stream is over, or as soon as its last event (`[DONE]`, `message_stop`, `response.completed`)
/// was pushed, which is the moment to record an answer before its client hears the end: `push` may have returned that
/// end already.
///
/// **Bodies that are not streamed** go into [`whole`](Hiding::whole), one a round; the bytes of the round that ends the
/// response are the merged body.
///
/// As long as the tool is not called, every event is returned with its own bytes, and a whole body as it came: all
/// that is returned, one after the other, is what the provider sent, byte for byte; but where a response lists the
/// tools that were offered (Responses), this one is not among them. Otherwise, fields that are not ours to change keep
/// their order and spelling.
///
/// The client's response has the id of the first round, also where the provider stores a response under each id: who
/// goes on from the client's id (`previous_response_id`) has to go on from that of the last round. Of several choices
/// (`n`), only the first is looked at, and the others are passed on; a host that asks for several should not offer a
/// tool of its own.
#[derive(Debug)]
pub struct Hiding {
    rounds: Rounds,
    spoken: Spoken,
    cut: Cut,
}

/// What is known in the words of a wire.
#[derive(Debug)]
enum Spoken {
    Chat(chat::Chat),
    Responses(responses::Responses),
    Messages(messages::Messages),
    /// A format that no client is heard in: nothing of it is hidden.
    Nobodys,
}

/// What a round came to. Calls of the hidden tool are in the order in which the model made them.
#[derive(Clone, Debug, PartialEq)]
pub enum Round {
    /// The response has ended, or its stream broke off: the model calls nobody, or the client alone, or it was cut off
    /// by a limit or an error before its calls were worth an answer.
    Ended {
        /// What the client still gets; for bodies that are not streamed, the merged body.
        bytes: Vec<u8>,
    },
    /// The model calls the hidden tool and tools of the client's: the client has its own calls, and its response has
    /// ended with them. The hidden calls wait for the client's results.
    Mixed {
        /// As in [`Round::Ended`].
        bytes: Vec<u8>,
        /// The calls of the hidden tool.
        calls: Vec<Call>,
    },
    /// The model calls the hidden tool alone. The client's response is open: another round goes on with the same
    /// [`Hiding`], or [`Hiding::give_up`] or [`Hiding::fail`] ends it. What is left of this round's stream is not
    /// pushed.
    Called {
        /// The calls of the hidden tool.
        calls: Vec<Call>,
    },
}

impl Hiding {
    /// Returns one for a request of a client, hiding the calls of a tool. In wires other than [`Wire::CLIENTS`] nothing is
    /// hidden: streams pass as they come, and whole bodies are refused.
    pub fn new(wire: Wire, tool: &str) -> Hiding {
        let spoken = match wire {
            Wire::OpenaiChat => Spoken::Chat(chat::Chat::default()),
            Wire::OpenaiResponses => Spoken::Responses(responses::Responses::default()),
            Wire::Anthropic => Spoken::Messages(messages::Messages::default()),
            Wire::Gemini | Wire::Ollama => Spoken::Nobodys,
        };
        Hiding { rounds: Rounds::hiding(tool), spoken, cut: Cut::default() }
    }

    /// Takes a piece of the stream of the round that is under way, and returns what goes to the client now. Fails if
    /// an event is longer than [`EVENT_BYTES_MAX`], or if more than [`HIDDEN_BYTES_MAX`] would have to be kept.
    pub fn push(&mut self, piece: &[u8]) -> Result<Vec<u8>, Error> {
        self.rounds.go_on();
        let mut out = Vec::new();
        for raw in self.cut.push(piece)? {
            match self.passes(&raw) {
                true => out.extend_from_slice(&raw),
                false => self.event(raw, &mut out)?,
            }
        }
        Ok(out)
    }

    /// Whether an event is one of the many that bring a few words each, as far as a look at its text can tell: it is
    /// passed on as it came, and there is nothing to be learnt from it. To take each of them apart would cost more than
    /// all else that is done for a stream.
    fn passes(&mut self, raw: &[u8]) -> bool {
        if self.rounds.is_later || self.rounds.has_hidden {
            return false;
        }
        // The name of a field may be spelled with escapes.
        let Some(text) = std::str::from_utf8(raw).ok().filter(|text| !text.contains("\\u00")) else { return false };
        match &mut self.spoken {
            Spoken::Chat(chat) => chat.passes(&self.rounds, text),
            Spoken::Responses(responses) => responses.passes(&self.rounds, text),
            Spoken::Messages(_) => messages::passes(text),
            Spoken::Nobodys => true,
        }
    }

    fn event(&mut self, raw: Vec<u8>, out: &mut Vec<u8>) -> Result<(), Error> {
        let Some(event) = read(&raw)? else {
            // A comment, which keeps the connection open.
            out.extend_from_slice(&raw);
            return Ok(());
        };
        let told = Told { event, raw };
        match &mut self.spoken {
            Spoken::Chat(chat) => chat.event(&mut self.rounds, told, out),
            Spoken::Responses(responses) => responses.event(&mut self.rounds, &told, out),
            Spoken::Messages(messages) => messages.event(&mut self.rounds, &told, out),
            Spoken::Nobodys => {
                out.extend_from_slice(&told.raw);
                Ok(())
            }
        }
    }

    /// Ends the round whose stream was pushed, and says what it came to.
    pub fn round(&mut self) -> Round {
        let mut bytes = Vec::new();
        let ended = self.rest(&mut bytes).and_then(|()| match &mut self.spoken {
            Spoken::Chat(chat) => chat.flush(&mut self.rounds, &mut bytes),
            Spoken::Responses(_) | Spoken::Messages(_) | Spoken::Nobodys => Ok(()),
        });
        // Beyond its bounds a stream is broken off.
        if ended.is_err() {
            bytes.clear();
        }
        self.close(bytes)
    }

    /// Takes what was not ended by an empty line: an event that some servers don't close, or what was cut off. Clients
    /// pass over the latter, but a hidden call must not be in it.
    fn rest(&mut self, out: &mut Vec<u8>) -> Result<(), Error> {
        let rest = std::mem::take(&mut self.cut).raw;
        let is_whole = |event: &sse::Event| event.data.trim() == "[DONE]" || Object::read(&event.data).is_some();
        if read(&rest)?.as_ref().is_none_or(is_whole) {
            return self.event(rest, out);
        }
        let tool = self.rounds.tool.as_bytes();
        let tells = !tool.is_empty() && rest.windows(tool.len()).any(|bytes| bytes == tool);
        if !tells && !self.rounds.has_hidden {
            out.extend_from_slice(&rest);
        }
        Ok(())
    }

    fn close(&mut self, bytes: Vec<u8>) -> Round {
        match &mut self.spoken {
            Spoken::Chat(chat) => chat.close(),
            Spoken::Responses(responses) => responses.close(),
            Spoken::Messages(messages) => messages.close(),
            Spoken::Nobodys => {}
        }
        self.rounds.close(bytes)
    }

    /// Takes the whole body of a round that is not streamed, and says what it came to. Fails if it is no response of
    /// this wire; an error of the provider is none.
    pub fn whole(&mut self, body: &[u8]) -> Result<Round, Error> {
        let text = String::from_utf8_lossy(body);
        let rounds = &mut self.rounds;
        let shown = match &mut self.spoken {
            Spoken::Chat(chat) => chat.whole(rounds, &text),
            Spoken::Responses(responses) => responses.whole(rounds, &text),
            Spoken::Messages(messages) => messages.whole(rounds, &text),
            Spoken::Nobodys => None,
        };
        let Some(shown) = shown else {
            return Err(Error::input("the body of a round is no response").hinting("pass the provider's answer on"));
        };
        let shown = if rounds.has_hidden || rounds.has_untold { shown.into_bytes() } else { body.to_vec() };
        rounds.withheld.clone_from(&shown);
        Ok(self.close(shown))
    }

    /// Ends the client's response after [`Round::Called`] without another round, as if the model had been done, and
    /// returns the bytes that do: the end of the stream, or the merged body.
    pub fn give_up(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.rounds.withheld)
    }

    /// Ends the client's stream with an error of the host's, in the words of the wire, and returns its bytes: for a
    /// round that could not be had.
    pub fn fail(&mut self, what: &str) -> Vec<u8> {
        match &self.spoken {
            Spoken::Chat(_) => chat::error(what),
            Spoken::Responses(responses) => responses.error(what),
            Spoken::Messages(_) => messages::error(what),
            Spoken::Nobodys => Vec::new(),
        }
    }
}

/// Reads the event that some bytes are, if they are one; its last line need not be ended.
fn read(raw: &[u8]) -> Result<Option<sse::Event>, Error> {
    let mut reader = sse::Reader::default();
    let mut events = reader.push(raw)?;
    events.extend(reader.push(b"\n\n")?);
    Ok(events.pop())
}

/// Cuts a stream into events, each with all its bytes.
#[derive(Debug, Default)]
struct Cut {
    raw: Vec<u8>,
    /// Whether nothing has come of the line that is under way.
    is_blank: bool,
    after_return: bool,
}

impl Cut {
    fn push(&mut self, piece: &[u8]) -> Result<Vec<Vec<u8>>, Error> {
        let mut events = Vec::new();
        for line in piece.split_inclusive(|byte| matches!(byte, b'\n' | b'\r')) {
            let (words, end) = match line {
                [words @ .., end @ (b'\n' | b'\r')] => (words, Some(*end)),
                words => (words, None),
            };
            if !words.is_empty() {
                (self.is_blank, self.after_return) = (false, false);
            }
            let was_return = std::mem::replace(&mut self.after_return, end == Some(b'\r'));
            self.raw.extend_from_slice(line);
            if self.raw.len() > EVENT_BYTES_MAX {
                return Err(Error::input(format!("an event of more than {} MiB", EVENT_BYTES_MAX >> 20)));
            }
            match end {
                Some(b'\n') if was_return => {}
                Some(_) if self.is_blank => events.push(std::mem::take(&mut self.raw)),
                Some(_) => self.is_blank = true,
                None => {}
            }
        }
        Ok(events)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use recto_testkit::mixed::Dice;

    const CHAT: [&str; 16] = [
        r#"data: {"id":"c1","model":"m","choices":[{"index":0,"delta":{"role":"assistant","content":""}}]}"#,
        r#"data: {"id":"c1","choices":[{"index":0,"delta":{"content":"some words"},"finish_reason":null}],"usage":null}"#,
        r#"data: {"id":"c1","choices": [{"index": 0, "delta": {"content": "{\"usage\": 1}"}, "finish_reason": null}]}"#,
        r#"data: {"id":"c1","choices":[{"index":0,"delta":{"role":"assistant","content":"again"}}]}"#,
        r#"data: {"id":"","choices":[]}"#,
        r#"data: {"choices":[{"index":1,"delta":{"content":"another choice"}}]}"#,
        r#"data: {"id":"c1","choices":[{"index":0,"delta":{"\u0074ool_calls":[{"index":0,"id":"a","function":{"name":"ours"}}]}}]}"#,
        r#"data: {"id":"c1","choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"a","function":{"name":"ours"}}]}}]}"#,
        r#"data: {"id":"c1","choices":[{"index":0,"delta":{"tool_calls":[{"index":1,"id":"b","function":{"name":"theirs"}}]}}]}"#,
        r#"data: {"id":"c1","choices":[{"index":0,"delta":{"tool_calls":[{"index":2,"id":"c"}]}}]}"#,
        r#"data: {"id":"c1","choices":[{"index":0,"delta":{},"finish_reason":"tool_calls"}]}"#,
        r#"data: {"id":"c1","choices":[{"index":0,"delta":{},"finish_reason" : "stop"}]}"#,
        r#"data: {"id":"c1","choices":[],"usage":{"prompt_tokens":3}}"#,
        r#"data: {"error":{"message":"no \"tool_calls\" here"}}"#,
        ": still here",
        "data: [DONE]",
    ];
    const MESSAGES: [&str; 12] = [
        r#"data: {"type":"message_start","message":{"id":"m1","usage":{"input_tokens":3}}}"#,
        r#"data: {"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}"#,
        r#"data: {"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"some words"}}"#,
        r#"data: {"type":"content_block_delta", "index": 1, "delta":{"type":"text_delta","text":"\u00e9\u4e2d"}}"#,
        r#"data: {"type":"content_block_start","index":1,"content_block":{"type":"tool_use","id":"a","name":"ours","input":{}}}"#,
        r#"data: {"type":"content_block_start","index":2,"content_block":{"type":"tool_use","id":"b","name":"theirs","input":{}}}"#,
        r#"data: {"type":"content_block_delta","index":1,"delta":{"type":"input_json_delta","partial_json":"{\"a\":"}}"#,
        r#"data: {"type":"content_block_stop","index":0}"#,
        r#"data: {"type":"message_\u0064elta","delta":{"stop_reason":"end_turn"}}"#,
        r#"data: {"type":"message_delta","delta":{"stop_reason":"tool_use"},"usage":{"output_tokens":9}}"#,
        r#"data: {"type":"message_stop"}"#,
        "event: ping\ndata: {\"type\": \"ping\"}",
    ];
    const RESPONSES: [&str; 11] = [
        r#"data: {"type":"response.created","sequence_number":0,"response":{"id":"r1","tools":[{"name":"ours"}]}}"#,
        r#"data: {"type":"response.output_text.delta","sequence_number":4,"output_index":0,"delta":"some words"}"#,
        r#"data: {"type":"response.output_text.delta","sequence_number": 7 ,"output_index":1,"delta":"{\"item\":1}"}"#,
        r#"data: {"type":"response.output_text.delta","delta":"\"sequence_number\": 3"}"#,
        r#"data: {"type":"response.output_item.added","sequence_number":2,"output_index":0,"item":{"type":"message"}}"#,
        r#"data: {"type":"response.output_item.added","output_index":1,"item":{"type":"function_call","call_id":"a","name":"ours"}}"#,
        r#"data: {"type":"response.output_item.added","output_index":2,"item":{"type":"function_call","call_id":"b","name":"theirs"}}"#,
        r#"data: {"type":"response.function_call_arguments.delta","sequence_number":5,"output_index":1,"delta":"{}"}"#,
        r#"data: {"type":"response.completed","sequence_number":9,"response":{"id":"r1","output":[],"usage":{"input_tokens":3}}}"#,
        r#"data: {"type":"response.completed"}"#,
        r#"data: {"type":"response.in_progress","sequence_number":1}"#,
    ];

    /// What `push` does, but with every event taken apart.
    fn push_slowly(hiding: &mut Hiding, piece: &[u8]) -> Vec<u8> {
        hiding.rounds.go_on();
        let mut out = Vec::new();
        for raw in hiding.cut.push(piece).unwrap() {
            hiding.event(raw, &mut out).unwrap();
        }
        out
    }

    #[test]
    fn what_passes_at_a_glance_would_pass_when_taken_apart() {
        let formats =
            [(Wire::OpenaiChat, &CHAT[..]), (Wire::Anthropic, &MESSAGES), (Wire::OpenaiResponses, &RESPONSES)];
        for (wire, events) in formats {
            let (mut passed, mut hidden) = (0, 0);
            for seed in 0..3_000 {
                let (mut dice, mut both) = (Dice::new(seed), [(); 2].map(|()| Hiding::new(wire, "ours")));
                let mut counting = Hiding::new(wire, "ours");
                for _ in 0..2 {
                    // Most streams begin as they should, and most events of a stream are words.
                    let mut told = vec![events[if dice.below(4) > 0 { 0 } else { dice.below(events.len()) }]];
                    told.extend((0..dice.below(12)).map(|_| events[dice.below(2 * events.len()) % events.len()]));
                    let text: String = told.iter().map(|event| format!("{event}\n\n")).collect();
                    for event in told.iter().map(|event| format!("{event}\n\n")) {
                        passed += usize::from(counting.passes(event.as_bytes()));
                        counting.push(event.as_bytes()).unwrap();
                    }
                    for piece in text.as_bytes().chunks(1 + dice.below(300)) {
                        let [quick, slow] = &mut both;
                        assert_eq!(quick.push(piece).unwrap(), push_slowly(slow, piece), "{told:?}");
                        assert_eq!(format!("{quick:?}"), format!("{slow:?}"), "{told:?}");
                    }
                    let [quick, slow] = &mut both;
                    assert_eq!(quick.round(), slow.round(), "{told:?}");
                    hidden += usize::from(quick.rounds.has_hidden);
                }
            }
            assert!(passed > 300 && hidden > 300, "{wire}: {passed} {hidden}");
        }
    }
}
