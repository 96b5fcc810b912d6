//! The real command, run as a user would run it.
#![cfg(test)]

mod compile;
mod demo;
mod input;
mod replay;
mod run;
#[cfg(unix)]
mod signals;
