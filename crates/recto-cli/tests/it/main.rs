//! The real command, run as a user would run it.
#![cfg(test)]

#[cfg(unix)]
mod api;
mod codes;
mod colour;
mod compile;
mod config;
mod convert;
mod database;
mod demo;
#[cfg(unix)]
mod gateway;
mod import;
mod input;
mod kept;
mod keys;
mod manual;
mod models;
mod network;
mod pages;
mod policy;
mod replay;
mod run;
mod run_command;
mod score;
#[cfg(unix)]
mod serve;
#[cfg(unix)]
mod signals;
mod summarize;
mod upkeep;
mod upstream;
mod validate;
#[cfg(unix)]
mod web;
mod wires;
