//! One binary for all integration tests of the core.
#![cfg(test)]

mod tidy;
mod tokens;
