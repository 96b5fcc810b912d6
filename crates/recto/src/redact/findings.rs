use super::Kind;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// What was found in the texts of an entry, once, when it was appended: of every kind, whoever will read it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Findings {
    /// What tells the detectors that looked from others: where those would find otherwise, this says nothing.
    pub by: u32,
    /// What they found, in order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub list: Vec<Finding>,
}

/// Where something was found in an entry, and what it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// Which part of the entry.
    pub part: usize,
    /// Which piece of a tool result; 0 for every other part.
    pub piece: usize,
    /// The first byte.
    pub start: usize,
    /// One past the last byte.
    pub end: usize,
    /// What it is.
    pub kind: Kind,
}

/// As it is written down: part, piece, first byte, one past the last, and the name of the kind.
type Written = (usize, usize, usize, usize, String);

impl Serialize for Finding {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Finding { part, piece, start, end, kind } = self;
        (part, piece, start, end, kind.name()).serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Finding {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Finding, D::Error> {
        let (part, piece, start, end, name) = Written::deserialize(deserializer)?;
        let kind = Kind::ALL.into_iter().find(|kind| kind.name() == name);
        Ok(Finding { part, piece, start, end, kind: kind.unwrap_or_else(|| Kind::Own(name.into())) })
    }
}
