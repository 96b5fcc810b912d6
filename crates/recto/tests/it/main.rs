//! One binary for all integration tests of the core.
#![cfg(test)]

mod context;
mod corpus;
mod deepchat;
mod golden;
mod input;
mod join;
mod late;
mod laws;
mod library;
mod log;
mod passes;
mod plan;
mod policies;
mod receipt;
mod scenarios;
mod tidy;
mod tokens;
mod wire;
