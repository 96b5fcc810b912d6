//! One binary for all integration tests of the core.
#![cfg(test)]

mod laws;
mod tidy;
mod tokens;
