//! The real command, run as a user would run it.
#![cfg(test)]

mod compile;
mod demo;
mod input;
mod replay;
mod run;
mod score;
#[cfg(unix)]
mod signals;
