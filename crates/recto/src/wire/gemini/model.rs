//! What a model's name tells about the rules that hold for it.

/// A model, as far as its name tells; rules of one model are no rules of an unknown one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Model {
    version: (u32, u32),
}

impl Model {
    /// Reads names such as `gemini-3.1-pro-preview` and what clouds make of them.
    pub(super) fn named(name: &str) -> Option<Model> {
        let rest = &name[name.find("gemini-")? + "gemini-".len()..];
        let number = rest.split(['-', '@', ':']).next()?;
        let (major, minor) = number.split_once('.').unwrap_or((number, "0"));
        Some(Model { version: (major.parse().ok()?, minor.parse().ok()?) })
    }

    /// Whether calls of the current turn must bring back their signature.
    pub(super) fn demands_signatures(self) -> bool {
        self.version >= (3, 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_tell_the_version() {
        let version = |name| Model::named(name).map(|it| it.version);
        assert_eq!(version("gemini-3.1-pro-preview"), Some((3, 1)));
        assert_eq!(version("models/gemini-2.5-flash"), Some((2, 5)));
        assert_eq!(version("gemini-4-argon"), Some((4, 0)));
        for unknown in ["", "gemini-", "gemini-flash-latest", "gemma-3", "gpt-4o"] {
            assert_eq!(version(unknown), None, "{unknown}");
        }
    }
}
