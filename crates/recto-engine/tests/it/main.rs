//! One binary for all integration tests of the engine.
#![cfg(test)]

mod asked;
mod blocks;
mod child;
mod codex;
mod claude_code;
mod contract;
mod disk;
mod driven;
mod engine;
mod exchange;
mod folder;
mod forward;
mod kill;
mod known;
mod port;
mod postgres;
mod processes;
mod recalled;
mod redaction;
mod servers;
mod sessions;
mod sqlite;
mod subprocess;
mod summaries;
mod travel;
mod upstream;
