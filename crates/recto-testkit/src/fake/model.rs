//! What a model's name says about its rules. A name that nobody knows has no rules of its own.

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Family {
    Opus,
    Sonnet,
    Haiku,
    Fable,
    Mythos,
}

use Family::{Fable, Haiku, Mythos, Opus, Sonnet};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Claude {
    pub(super) family: Family,
    pub(super) version: (u32, u32),
}

impl Claude {
    pub(super) fn named(model: &str) -> Option<Claude> {
        let mut family = None;
        let mut numbers = Vec::new();
        for part in model.strip_prefix("claude-")?.split('-') {
            match part {
                "opus" => family = Some(Opus),
                "sonnet" => family = Some(Sonnet),
                "haiku" => family = Some(Haiku),
                "fable" => family = Some(Fable),
                "mythos" => family = Some(Mythos),
                // A longer number is the date of a snapshot.
                _ if part.len() <= 2 => numbers.extend(part.parse::<u32>()),
                _ => {}
            }
        }
        let version = (*numbers.first()?, numbers.get(1).copied().unwrap_or(0));
        Some(Claude { family: family?, version })
    }

    pub(super) fn refuses_prefill(self) -> bool {
        self.version >= (4, 6)
    }

    pub(super) fn refuses_sampling(self) -> bool {
        match self.family {
            Opus => self.version >= (4, 7),
            Sonnet => self.version >= (5, 0),
            Haiku => self.version >= (5, 5),
            Fable => true,
            Mythos => false,
        }
    }

    pub(super) fn refuses_forced_tools(self) -> bool {
        match self.family {
            Opus | Sonnet => self.version >= (5, 5),
            Fable => self.version >= (5, 1),
            Haiku | Mythos => false,
        }
    }

    /// Returns whether `system` messages may stand inside the conversation.
    pub(super) fn takes_late_system(self) -> bool {
        match self.family {
            Opus => self.version >= (4, 8),
            Sonnet => self.version >= (5, 5),
            Fable | Mythos => self.version >= (5, 0),
            Haiku => false,
        }
    }

    /// Returns whether this kind of `thinking` is accepted; some are only at effort high or below.
    pub(super) fn takes_thinking(self, kind: &str, effort_above_high: bool) -> bool {
        let calm = !effort_above_high;
        match (self.family, kind) {
            (Fable | Mythos, _) => kind == "adaptive",
            (_, "adaptive") => self.version >= (4, 6),
            (_, "enabled") => self.version <= (4, 6),
            (Opus, "disabled") if self.version >= (5, 5) => false,
            (Opus, "disabled") if self.version >= (5, 0) => calm,
            (Sonnet, "disabled") => self.version < (5, 5),
            (Haiku, "disabled") if self.version >= (5, 5) => calm,
            (_, "disabled") => true,
            (Sonnet, "between_tools") => self.version >= (5, 5) && calm,
            _ => false,
        }
    }

    pub(super) fn thinks_by_default(self) -> bool {
        self.version >= (5, 0)
    }

    /// Returns whether thinking text is left out unless the request asks for it.
    pub(super) fn hides_thinking(self) -> bool {
        self.version >= (5, 0) || self.family == Opus && self.version >= (4, 7)
    }

    /// Returns whether thinking before the last turn is stripped on arrival.
    pub(super) fn forgets_old_thinking(self) -> bool {
        match self.family {
            Opus => self.version < (4, 5),
            Sonnet | Haiku => self.version < (4, 6),
            Fable | Mythos => false,
        }
    }

    /// Returns whether its thinking blocks are bound to the conversation they were made in.
    pub(super) fn binds_thinking(self) -> bool {
        match self.family {
            Fable | Mythos => self.version >= (5, 1),
            Opus | Sonnet | Haiku => self.version >= (5, 5),
        }
    }

    /// Returns whether thinking of the other model can be read; what can't is dropped without a word.
    pub(super) fn reads(self, producer: Claude) -> bool {
        let is = |family, version| producer == Claude { family, version };
        if self == producer {
            return true;
        }
        match (self.family, self.version) {
            (Fable, (5, 1..)) => is(Opus, (5, 0)) || is(Fable, (5, 0)) || is(Opus, (5, 5)) || is(Haiku, (5, 5)),
            (Opus, (5, 5..)) => is(Opus, (5, 0)) || is(Haiku, (5, 5)) || producer.version < (5, 0),
            (Sonnet, (5, 5..)) => is(Sonnet, (5, 0)) || is(Haiku, (5, 5)) || producer.version <= (4, 8),
            (Haiku, (5, 5..)) => false,
            _ => !producer.binds_thinking() || is(Haiku, (5, 5)),
        }
    }

    pub(super) fn images_max(self) -> usize {
        // Models before 4.6 have the small window.
        if self.version < (4, 6) { 100 } else { 600 }
    }

    pub(super) fn cache_minimum(self) -> u64 {
        match self.family {
            Sonnet if self.version < (5, 5) => 1024,
            _ if self.version >= (5, 0) => 512,
            Opus if self.version == (4, 8) => 1024,
            Opus if self.version == (4, 7) => 2048,
            _ => 4096,
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Gpt {
    pub(super) version: (u32, u32),
    pub(super) reasons: bool,
}

impl Gpt {
    pub(super) fn named(model: &str) -> Option<Gpt> {
        if let Some(rest) = model.strip_prefix('o') {
            return rest
                .starts_with(|letter: char| letter.is_ascii_digit())
                .then_some(Gpt { version: (0, 0), reasons: true });
        }
        let number = model.strip_prefix("gpt-")?.split('-').next()?;
        let (major, minor) = number.split_once('.').unwrap_or((number, "0"));
        let version = (major.trim_end_matches('o').parse().ok()?, minor.parse().ok()?);
        Some(Gpt { version, reasons: version >= (5, 0) && !model.contains("-chat") })
    }

    /// Returns whether Chat takes function tools only without reasoning.
    pub(super) fn keeps_tools_from_chat(self) -> bool {
        self.version >= (5, 4)
    }

    /// Returns whether the cache is written at breakpoints; before, on a grid of tokens.
    pub(super) fn has_breakpoints(self) -> bool {
        self.version >= (5, 6)
    }

    pub(super) fn cache_grid(self) -> u64 {
        if self.version == (5, 5) { 2048 } else { 128 }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Gemini {
    pub(super) version: (u32, u32),
}

impl Gemini {
    pub(super) fn named(model: &str) -> Option<Gemini> {
        let number = model.strip_prefix("gemini-")?.split('-').next()?;
        let (major, minor) = number.split_once('.').unwrap_or((number, "0"));
        Some(Gemini { version: (major.parse().ok()?, minor.parse().ok()?) })
    }

    /// Returns whether calls of the current turn must carry their signature, and have ids.
    pub(super) fn signs_calls(self) -> bool {
        self.version >= (3, 0)
    }

    pub(super) fn cache_minimum(self, model: &str) -> u64 {
        match self.version {
            (2, _) if model.contains("flash") => 1024,
            (2, _) => 2048,
            _ => 4096,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_give_family_and_version() {
        let claude = |model| Claude::named(model).map(|it| (it.family, it.version));
        assert_eq!(claude("claude-opus-5-5"), Some((Opus, (5, 5))));
        assert_eq!(claude("claude-sonnet-4-5-20250929"), Some((Sonnet, (4, 5))));
        assert_eq!(claude("claude-opus-5-20260601"), Some((Opus, (5, 0))));
        assert_eq!(claude("claude-3-5-sonnet-20241022"), Some((Sonnet, (3, 5))));
        assert_eq!(claude("gpt-5"), None);
        let gpt = |model| Gpt::named(model).map(|it| (it.version, it.reasons));
        assert_eq!(gpt("gpt-5.6-sol"), Some(((5, 6), true)));
        assert_eq!(gpt("gpt-6-luna"), Some(((6, 0), true)));
        assert_eq!(gpt("gpt-4o-mini"), Some(((4, 0), false)));
        assert_eq!(gpt("gpt-5-chat-latest"), Some(((5, 0), false)));
        assert_eq!(gpt("o4-mini"), Some(((0, 0), true)));
        assert_eq!(gpt("ollama-model"), None);
    }

    #[test]
    fn the_smallest_cached_prefix_differs_by_model() {
        let minimum = |model| Claude::named(model).map(Claude::cache_minimum);
        let expected = [
            ("claude-fable-5-1", 512),
            ("claude-opus-5", 512),
            ("claude-opus-5-5", 512),
            ("claude-sonnet-5-5", 512),
            ("claude-haiku-5-5", 512),
            ("claude-opus-4-8", 1024),
            ("claude-sonnet-5", 1024),
            ("claude-sonnet-4-6", 1024),
            ("claude-sonnet-4-5", 1024),
            ("claude-opus-4-7", 2048),
            ("claude-opus-4-6", 4096),
            ("claude-opus-4-5", 4096),
            ("claude-haiku-4-5", 4096),
        ];
        for (model, tokens) in expected {
            assert_eq!(minimum(model), Some(tokens), "{model}");
        }
    }
}
