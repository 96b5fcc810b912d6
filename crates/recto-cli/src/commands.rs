//! One file for each command: arguments, one call, print.

pub(crate) mod backup;
pub(crate) mod compile;
pub(crate) mod completions;
pub(crate) mod config;
pub(crate) mod convert;
pub(crate) mod decisions;
pub(crate) mod demo;
pub(crate) mod doctor;
pub(crate) mod erase;
pub(crate) mod expand;
pub(crate) mod explain;
pub(crate) mod export;
pub(crate) mod fork;
pub(crate) mod help;
pub(crate) mod import;
pub(crate) mod list;
pub(crate) mod man;
pub(crate) mod models;
pub(crate) mod pin;
pub(crate) mod policy;
pub(crate) mod replay;
pub(crate) mod restore;
pub(crate) mod revert;
pub(crate) mod show;
pub(crate) mod turns;
pub(crate) mod validate;
