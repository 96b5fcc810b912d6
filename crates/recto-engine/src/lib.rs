//! The engine around the compiler: conversations that last, and everything that waits.
//!
//! [`Engine`] is the one façade; command line and server call only this. It keeps conversations in a [`Store`]: in memory,
//! in a file of SQLite, or, with the feature `postgres`, in a database for many servers. Before each call it reads as much
//! of the log as the page may show, plans, records what was decided, and compiles.
//!
//! ```
//! use recto::{Entry, Policy, Target};
//! use recto_engine::store::memory::Memory;
//! use recto_engine::{Answer, Append, At, Call, Engine, Opening, Tenant};
//!
//! # tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(async {
//! let engine = Engine::over(Memory::default());
//! let at = At::new(&Tenant::default(), "greetings");
//! engine.open(&at, Opening::default()).await?;
//! engine.append(&at, Append::any([Entry::user("Hello?")])).await?;
//! let call = Call::new("main", Policy::usual(), Target::named("gpt-4o").expect("built in"));
//! let compiled = engine.compile(&at, &call).await?;
//! let answer = Answer { entries: vec![Entry::assistant("Hello!")], ..Answer::default() };
//! engine.acknowledge(&at, &compiled.receipt.ticket, answer).await?;
//! assert!(engine.again(&at, &call.reader, 0).await?.agrees);
//! # Ok::<(), recto_engine::Error>(())
//! # }).unwrap();
//! ```

// In the order the data flows.
pub mod error; // one error, with a hint
pub mod timing; // how long things take
pub mod store; // where conversations are kept: memory, SQLite, PostgreSQL

mod body; // how an entry is written down
mod lens; // as much of a stored reader as is asked of it
mod window; // as much of a stored log as is asked of it

pub mod session; // what providers that remember hold
pub mod call; // what a host says of a call, and what its page was made from
pub mod engine; // the façade

pub mod drive; // programs that keep conversations of their own
pub mod upstream; // providers over HTTP
pub mod summarize; // summaries by a model

/// The example of the store's page is compiled as a doc test.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/store.md")]
struct StorePage;

pub use call::Call;
pub use engine::{Answer, Append, At, Engine, Give, Opening};
pub use error::Error;
pub use session::Remembering;
pub use store::{Conversation, ConversationId, Expect, Forks, ReaderName, Store, Tenant};
