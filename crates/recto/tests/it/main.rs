//! One binary for all integration tests of the core.
#![cfg(test)]

mod corpus;
mod laws;
mod tidy;
mod tokens;
