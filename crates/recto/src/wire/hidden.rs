//! Several answers of a provider, shown to a client as one: calls of a tool that the client knows nothing of are hidden.
//!
//! A host offers a model a tool of its own besides those of its client. When the model calls it, the host answers and
//! asks again; each answer of the provider is a *round*. [`Hiding`] takes the bytes of the rounds and returns those of
//! the one response that the client sees: one start and one end, numbers without gaps, usage summed over all rounds.

use super::Wire;
use crate::entry::Call;
use crate::error::Error;

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
/// that is returned, one after the other, is what the provider sent, byte for byte. Afterwards, fields that are not
/// ours to change keep their order and spelling.
///
/// The client's response has the id of the first round, also where the provider stores a response under each id: who
/// goes on from the client's id (`previous_response_id`) has to go on from that of the last round. Of several choices
/// (`n`), only the first is looked at, and the others are passed on; a host that asks for several should not offer a
/// tool of its own.
#[derive(Debug)]
pub struct Hiding {
    wire: Wire,
    tool: String,
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
    /// Returns one for a request of a client, hiding the calls of a tool.
    pub fn new(wire: Wire, tool: &str) -> Hiding {
        Hiding { wire, tool: tool.into() }
    }

    /// Takes a piece of the stream of the round that is under way, and returns what goes to the client now. Fails if
    /// an event is longer than [`EVENT_BYTES_MAX`](super::sse::EVENT_BYTES_MAX).
    pub fn push(&mut self, piece: &[u8]) -> Result<Vec<u8>, Error> {
        Ok(piece.to_vec())
    }

    /// Ends the round whose stream was pushed, and says what it came to.
    pub fn round(&mut self) -> Round {
        Round::Ended { bytes: Vec::new() }
    }

    /// Takes the whole body of a round that is not streamed, and says what it came to. Fails if it is no response of
    /// this wire; an error of the provider is none.
    pub fn whole(&mut self, body: &[u8]) -> Result<Round, Error> {
        Ok(Round::Ended { bytes: body.to_vec() })
    }

    /// Ends the client's response after [`Round::Called`] without another round, as if the model had been done, and
    /// returns the bytes that do: the end of the stream, or the merged body.
    pub fn give_up(&mut self) -> Vec<u8> {
        Vec::new()
    }

    /// Ends the client's stream with an error of the host's, in the words of the wire, and returns its bytes: for a
    /// round that could not be had.
    pub fn fail(&mut self, what: &str) -> Vec<u8> {
        format!("{} {}: {what}", self.wire, self.tool).into_bytes()
    }
}
