//! Recto compiles an agent's history into the page its model reads.
//!
//! Everything that was ever said stays in a [`Log`]. Before each model call, [`plan`] proposes what the
//! model need not read any more, and [`compile`] makes the [`Page`](page::Page) from the log and the recorded decisions,
//! with a [`Receipt`](receipt::Receipt) that gives every entry exactly one fate. Both are pure: no clock, no I/O, no
//! randomness; the same request gives the same bytes everywhere.
//!
//! ```
//! use recto::{Entry, Log, Policy, Reader, Request, Target, Tokenizer, compile_once, wire};
//!
//! let mut log = Log::counted_by(Tokenizer::O200k);
//! log.append(Entry::system("You are terse."))?;
//! log.append(Entry::user("What is the capital of France?"))?;
//! let (reader, policy, target) = (Reader::new("main"), Policy::safe(), Target::named("gpt-4o").expect("built in"));
//! let request = Request::new(&log, &reader, &policy, &target);
//! let compiled = compile_once(&request)?;
//! let body = wire::openai_chat::encode(&compiled.page, &target);
//! assert!(String::from_utf8_lossy(&body).contains("capital of France"));
//! println!("{}", compiled.receipt);
//! # Ok::<(), recto::Error>(())
//! ```

// In the order the data flows.
pub mod digest; // what identifies a text, an entry, a page
pub mod entry; // facts, final when appended
pub mod expiry; // when a fact may leave the page, and what stays of it
pub mod error; // one error, with a position and a hint
pub mod nearest; // what was probably meant
pub mod redact; // secrets and personal data, found and replaced
pub mod log; // facts in order, shared between forks, with running sums
pub mod tokens; // how much a text costs

pub mod edit; // what makes a page say less than the log, and why
pub mod note; // summaries by a model: what would help, and what came of it
pub mod reader; // a lens over a log: its calls and its decisions
pub mod session; // what a provider that remembers already holds
pub mod event; // what has happened to a log and a reader, told in order

mod binding; // what sealed reasoning is bound to
pub mod chain; // what was said so far, however it is spelled
pub mod format; // the form that an answer must have
pub mod forging; // text of others that looks like structure of ours
pub mod fragment; // prompt pieces the host supplies at each call
pub mod block; // tagged messages, made from data
pub mod policy; // which passes run, as data
pub mod request; // everything plan and compile may look at
mod screened; // the same, as its policy lets it be seen
pub mod context; // a conversation with its prompt and data, as one immutable value
pub mod calibration; // how a provider's count relates to ours
pub mod target; // facts about models
pub mod tool; // tools as they are offered to a model
pub mod tool_use; // what a call does, and to what

pub mod item; // a message, or a step joined with its results
pub mod reduce; // passes that propose edits
pub mod select; // passes that depend on log and request alone
pub mod view; // the items a reader would see, from its floor up
mod holding; // what a provider that remembers holds of them

pub mod cache; // the provider's prompt cache
pub mod compile; // view to page, and the check
pub mod expand; // what was left out, asked back by its handle
pub mod page; // the provider-neutral result
pub mod pays; // when that which may be reduced is reduced
pub mod plan; // which edits to make now
pub mod receipt; // what was kept, shortened or left out, why, and what it costs
pub mod recall; // what has left the page, found again for what is said now
pub mod replay; // a finished conversation, call by call

pub mod mj; // MemberJunction's names for all this
pub mod transcript; // other people's files, read as conversations
pub mod wire; // providers' formats

/// The README's example is compiled and run as a doc test.
#[cfg(doctest)]
#[doc = include_str!("../../../README.md")]
struct Readme;

/// The example of the page about blocks is compiled and run as well.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/blocks.md")]
struct BlocksPage;

pub use compile::{Compiled, compile, compile_once, plan_or_compile};
pub use context::Context;
pub use entry::{Entry, Lane, Part, Role, Seq, Span};
pub use error::Error;
pub use log::Log;
pub use plan::{Plan, plan};
pub use policy::Policy;
pub use reader::Reader;
pub use replay::Replay;
pub use request::Request;
pub use session::Session;
pub use target::Target;
pub use tokens::{Count, Tokenizer, Tokens};
pub use wire::Wire;
