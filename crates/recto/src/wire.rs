//! Wires: providers' formats. Every wire has `encode`, `decode` and `validate`.

pub(crate) mod json;
pub mod openai_chat;

use crate::digest::Digest;
use crate::entry::Text;
use crate::tokens::Tokens;
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::fmt;

/// What a provider reports a call to have used, with one meaning for all providers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Usage {
    /// All input, cached or not.
    pub input: Tokens,
    /// Of that, what was read from the cache.
    pub cached: Tokens,
    /// Of that, what was written to the cache.
    pub written: Tokens,
    /// Output, reasoning included.
    pub output: Tokens,
}

/// A rule that a body breaks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// Where, such as `messages[3].tool_calls`.
    pub at: String,
    /// What is wrong.
    pub what: Text,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.at, self.what)
    }
}

/// Returns a name that a provider accepts: itself where it fits, else what can be kept of it and a digest, so that
/// different names stay different and both sides of a call agree.
pub(crate) fn accepted<'n>(name: &'n str, longest: usize, takes: impl Fn(char) -> bool) -> Cow<'n, str> {
    if !name.is_empty() && name.len() <= longest && name.chars().all(&takes) {
        return Cow::Borrowed(name);
    }
    let digest = Digest::of(name.as_bytes()).to_string();
    let kept: String = name.chars().filter(|c| takes(*c)).take(longest - 13).collect();
    Cow::Owned(format!("{kept}_{}", &digest[..12]))
}
