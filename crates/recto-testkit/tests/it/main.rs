//! The tests of what other tests stand on.
#![cfg(test)]

mod fake;
mod postgres;
