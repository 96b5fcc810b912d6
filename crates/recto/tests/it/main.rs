//! One binary for all integration tests of the core.
#![cfg(test)]

mod accepted;
mod anthropic;
mod calibration;
mod chat_reply;
mod chat_rules;
mod chat_shape;
mod claude;
mod codex;
mod context;
mod corpus;
mod crossings;
mod deepchat;
mod fuzz;
mod journeys;
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
mod python_types;
mod receipt;
mod responses;
mod scenarios;
mod targets;
mod tidy;
mod tokens;
mod wire;
