//! One file for each command: arguments, one call, print.

pub(crate) mod compile;
pub(crate) mod completions;
pub(crate) mod config;
pub(crate) mod convert;
pub(crate) mod demo;
pub(crate) mod explain;
pub(crate) mod help;
pub(crate) mod man;
pub(crate) mod models;
pub(crate) mod policy;
pub(crate) mod replay;
pub(crate) mod validate;
