//! One binary for all integration tests of the engine.
#![cfg(test)]

mod child;
mod contract;
mod disk;
mod engine;
mod folder;
mod kill;
mod port;
mod processes;
mod sqlite;
mod travel;
