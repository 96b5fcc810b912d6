//! What sealed reasoning is bound to: everything that stood before it when it was made.
//!
//! Some providers take a model's reasoning back only behind the very tools and messages that led to it. Reasoning itself
//! is no part of that, since it may be left out from either end.

use crate::digest::{Digest, Hasher};
use crate::entry::{Entry, Part, Role};
use crate::log::digest_of;
use std::borrow::Cow;

/// A running digest over tools and messages.
#[derive(Clone, Debug)]
pub(crate) struct Binding {
    so_far: Digest,
}

impl Binding {
    /// Begins with the tools offered, whose order doesn't matter.
    pub(crate) fn of_tools<'t>(tools: impl IntoIterator<Item = &'t str>) -> Binding {
        let mut tools: Vec<&str> = tools.into_iter().collect();
        tools.sort_unstable();
        let mut hasher = Hasher::new();
        tools.into_iter().for_each(|tool| hasher.text(tool));
        Binding { so_far: hasher.finish() }
    }

    /// Goes on behind a message.
    pub(crate) fn pass(&mut self, role: Role, author: Option<&str>, parts: &[Part]) {
        let content: Cow<'_, [Part]> = match parts.iter().all(Part::is_content) {
            true => Cow::Borrowed(parts),
            false => parts.iter().filter(|part| part.is_content()).cloned().collect(),
        };
        if content.is_empty() {
            return;
        }
        let mut hasher = Hasher::new();
        hasher.digest(self.so_far);
        hasher.digest(digest_of(role, author, &content));
        self.so_far = hasher.finish();
    }

    /// Returns what identifies everything so far.
    pub(crate) fn digest(&self) -> Digest {
        self.so_far
    }
}

/// Binds sealed reasoning to what stands before it in a client's request: it was made there, as far as anybody knows.
pub(crate) fn bind<'t>(entries: &mut [Entry], tools: impl IntoIterator<Item = &'t str>) {
    let is_sealed = |part: &Part| matches!(part, Part::Reasoning(it) if it.is_sealed());
    if !entries.iter().any(|entry| entry.parts.iter().any(is_sealed)) {
        return;
    }
    let mut binding = Binding::of_tools(tools);
    for entry in entries {
        if entry.parts.iter().any(is_sealed) {
            let bound = entry.clone().bound_to(binding.digest());
            *entry = bound;
        }
        binding.pass(entry.role, entry.author.as_deref(), &entry.parts);
    }
}
