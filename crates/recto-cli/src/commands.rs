//! One file for each command: arguments, one call, print.

pub(crate) mod compile;
pub(crate) mod demo;
pub(crate) mod explain;
pub(crate) mod replay;
