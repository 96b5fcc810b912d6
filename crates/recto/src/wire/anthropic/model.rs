//! What a model's name tells about the rules that hold for it.

/// A model, as far as its name tells; rules of one model are no rules of an unknown one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Model {
    family: Family,
    version: (u32, u32),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Family {
    Opus,
    Sonnet,
    Haiku,
    Fable,
    Mythos,
}

const FAMILIES: [(&str, Family); 5] = [
    ("opus", Family::Opus),
    ("sonnet", Family::Sonnet),
    ("haiku", Family::Haiku),
    ("fable", Family::Fable),
    ("mythos", Family::Mythos),
];

impl Model {
    /// Reads names such as `claude-opus-5-5`, `claude-3-7-sonnet-20250219` and what clouds make of them.
    pub(crate) fn named(name: &str) -> Option<Model> {
        let name = &name[name.find("claude-")? + "claude-".len()..];
        let words: Vec<&str> = name.split(['-', '.', '@', ':', '[']).collect();
        let is_family = |word: &str| FAMILIES.iter().any(|(family, _)| *family == word);
        let at = words.iter().position(|word| is_family(word))?;
        let (_, family) = FAMILIES.into_iter().find(|(family, _)| *family == words[at])?;
        // Dates have more digits.
        let number = |word: &&&str| word.len() <= 2 && word.bytes().all(|byte| byte.is_ascii_digit());
        let numbers = |words: &[&str]| -> Vec<u32> {
            words.iter().take_while(number).take(2).filter_map(|word| word.parse().ok()).collect()
        };
        let behind = numbers(&words[at + 1..]);
        let found = if behind.is_empty() { numbers(&words[..at]) } else { behind };
        let version = (*found.first()?, found.get(1).copied().unwrap_or(0));
        Some(Model { family, version })
    }

    fn is(self, family: Family, versions: &[(u32, u32)]) -> bool {
        self.family == family && versions.contains(&self.version)
    }

    fn is_new_family(self) -> bool {
        matches!(self.family, Family::Fable | Family::Mythos)
    }

    /// Whether a conversation must not end with the assistant's words.
    pub(super) fn refuses_prefill(self) -> bool {
        self.version >= (4, 6)
    }

    /// Whether it takes instructions between messages; `None` where that is not known.
    pub(super) fn takes_late_system(self) -> Option<bool> {
        match self.family {
            Family::Opus => Some(self.version >= (4, 8)),
            Family::Fable | Family::Mythos => Some(true),
            Family::Sonnet if self.version >= (5, 5) => Some(true),
            // The vendor's own program sends them to Sonnet 5, against the documentation.
            Family::Sonnet if self.version >= (5, 0) => None,
            Family::Haiku if self.version >= (5, 0) => None,
            Family::Sonnet | Family::Haiku => Some(false),
        }
    }

    /// Whether it refuses to be told how to sample.
    pub(crate) fn refuses_sampling(self) -> bool {
        match self.family {
            Family::Opus => self.version >= (4, 7),
            Family::Sonnet => self.version >= (5, 0),
            Family::Haiku => self.version >= (5, 5),
            Family::Fable => true,
            Family::Mythos => false,
        }
    }

    /// Whether it can be told how much to think.
    pub(crate) fn takes_effort(self) -> bool {
        self.version >= (4, 6)
    }

    /// Whether it refuses to be told which tool to call.
    pub(super) fn refuses_forced_choice(self) -> bool {
        self.is(Family::Fable, &[(5, 1)]) || self.is(Family::Opus, &[(5, 5)]) || self.is(Family::Sonnet, &[(5, 5)])
    }

    /// Whether its window has 200,000 tokens, which bounds the number of pictures.
    pub(super) fn has_small_window(self) -> bool {
        self.is(Family::Haiku, &[(4, 5)])
    }

    /// The reason why a kind of thinking is refused; `effort` is that of the request.
    pub(crate) fn refused_thinking(self, kind: &str, effort: Option<&str>) -> Option<&'static str> {
        let is_high = matches!(effort, Some("xhigh" | "max"));
        let enabled = "\"thinking.type.enabled\" is not supported for this model";
        let disabled = "\"thinking.type.disabled\" is not supported for this model";
        let never_off = (self.is_new_family() && self.version >= (5, 0) && self.version <= (5, 1))
            || self.is(Family::Opus, &[(5, 5)])
            || self.is(Family::Sonnet, &[(5, 5)]);
        let off_unless_high = self.is(Family::Opus, &[(5, 0)]) || self.is(Family::Haiku, &[(5, 5)]);
        let adaptive_only = never_off
            || off_unless_high
            || self.is(Family::Sonnet, &[(5, 0)])
            || self.is(Family::Opus, &[(4, 7), (4, 8)]);
        let manual_only = self.version == (4, 5);
        match kind {
            "enabled" if adaptive_only => Some(enabled),
            "disabled" if never_off || (off_unless_high && is_high) => Some(disabled),
            "adaptive" if manual_only => Some("adaptive thinking is not supported on this model"),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_tell_family_and_version() {
        let version = |name| Model::named(name).map(|it| it.version);
        assert_eq!(version("claude-opus-5-5"), Some((5, 5)));
        assert_eq!(version("claude-opus-4-8[1m]"), Some((4, 8)));
        assert_eq!(version("anthropic/claude-sonnet-4.6"), Some((4, 6)));
        assert_eq!(version("us.anthropic.claude-haiku-4-5-20251001-v1:0"), Some((4, 5)));
        assert_eq!(version("claude-sonnet-5@20260101"), Some((5, 0)));
        assert_eq!(version("claude-opus-4-20250514"), Some((4, 0)));
        assert_eq!(version("claude-3-7-sonnet-20250219"), Some((3, 7)));
        for unknown in ["", "claude-", "claude-opus", "claude-x-5", "gpt-6", "opus-5"] {
            assert_eq!(version(unknown), None, "{unknown}");
        }
    }
}
