//! `recto serve` as a process of its own, between clients that other people wrote and a strict provider.

mod asking; // a client on a plain socket
mod bill; // what pages cost, by the provider and by prediction
mod clients; // the official packages, in Python and Node
mod cross; // models that are spoken to in another format
mod erased; // conversations that somebody erases
mod expansion; // what a model asks back, unseen by its client
mod faults; // what goes wrong
mod frameworks; // LangChain, OpenAI Agents, Pydantic AI, Vercel AI
mod identity; // what goes through byte for byte
mod logs; // what is told of requests
mod numbers; // what is counted of them
mod plain; // a provider that takes and answers anything
mod programs; // Claude Code and Codex
mod redaction; // what a policy keeps from a provider
mod reload; // the configuration, read again
mod routes; // what is asked beside conversations
mod pair; // two servers on one database
mod said; // what a request says, and what is kept of it
mod tools; // what the programs' models look up
#[cfg(feature = "otel")]
mod traces; // what a collector of traces gets
mod which; // the conversation that a request goes on from
mod world; // a provider, the server, and what it leaves behind
