//! What a file of models changes.

use crate::failure::Failure;
use crate::talk;
use recto::target::Catalogue;
use serde::Serialize;
use serde_json::Value;
use std::collections::BTreeMap;

/// What one file changes.
#[derive(Debug, Serialize)]
pub(super) struct Changes {
    pub(super) file: String,
    models: Vec<Changed>,
}

/// A model that differs.
#[derive(Debug, Serialize)]
pub(super) struct Changed {
    name: String,
    is_new: bool,
    facts: Vec<Fact>,
}

/// A fact that differs, by its name, such as `prices.input`.
#[derive(Debug, PartialEq, Serialize)]
struct Fact {
    fact: String,
    before: Value,
    after: Value,
}

impl Changes {
    /// Returns how a catalogue differs from what it was before a file was read.
    pub(super) fn between(before: &Catalogue, after: &Catalogue, file: String) -> Result<Changes, Failure> {
        let mut models = Vec::new();
        for name in after.names() {
            let Some(new) = after.target(name) else { continue };
            let old = before.target(name);
            if old.as_ref() == Some(&new) {
                continue;
            }
            let facts = match &old {
                Some(old) => differing(flat(&as_value(old)?), flat(&as_value(&new)?)),
                None => Vec::new(),
            };
            models.push(Changed { name: name.into(), is_new: old.is_none(), facts });
        }
        Ok(Changes { file, models })
    }

    /// Returns what it changes in a model, if anything.
    pub(super) fn of(&self, name: &str) -> Option<&Changed> {
        self.models.iter().find(|it| it.name == name)
    }

    /// Returns it for people.
    pub(super) fn told(&self) -> String {
        if self.models.is_empty() {
            return format!("{} changes nothing", self.file);
        }
        let lines = self.models.iter().map(|it| format!("  {}", it.told()));
        format!("{} changes:\n{}", self.file, lines.collect::<Vec<_>>().join("\n"))
    }
}

impl Changed {
    /// Returns it for people, on one line.
    pub(super) fn told(&self) -> String {
        if self.is_new {
            return format!("{}: new", self.name);
        }
        let facts = self.facts.iter().map(|it| format!("{} {} → {}", it.fact, shown(&it.before), shown(&it.after)));
        format!("{}: {}", self.name, facts.collect::<Vec<_>>().join("; "))
    }
}

fn as_value(value: &impl Serialize) -> Result<Value, Failure> {
    let text = talk::as_json(value)?;
    Ok(serde_json::from_str(&text).unwrap_or_default())
}

fn differing(before: BTreeMap<String, Value>, mut after: BTreeMap<String, Value>) -> Vec<Fact> {
    let mut facts = Vec::new();
    for (fact, before) in before {
        let after = after.remove(&fact).unwrap_or_default();
        if before != after {
            facts.push(Fact { fact, before, after });
        }
    }
    facts.extend(after.into_iter().map(|(fact, after)| Fact { fact, before: Value::Null, after }));
    facts
}

/// Facts by their names, those within others with the names of both.
fn flat(value: &Value) -> BTreeMap<String, Value> {
    let mut facts = BTreeMap::new();
    for (name, value) in value.as_object().into_iter().flatten() {
        if value.is_object() {
            facts.extend(flat(value).into_iter().map(|(inner, value)| (format!("{name}.{inner}"), value)));
        } else {
            facts.insert(name.clone(), value.clone());
        }
    }
    facts
}

fn shown(value: &Value) -> String {
    match value {
        Value::Null => "none".into(),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_differs_is_told() {
        let own = "[models.'gpt-4o']\nwindow = 64_000\ncache = { kind = 'off' }\n[models.mine]\nlike = 'gpt-4o'";
        let after = Catalogue::built_in().with(&Catalogue::parse(own).unwrap()).unwrap();
        let changes = Changes::between(Catalogue::built_in(), &after, "own.toml".into()).unwrap();
        let told = changes.told();
        assert!(told.contains("window 128000 → 64000") && told.contains("cache.kind none → off"), "{told}");
        assert!(told.ends_with("\n  mine: new") && !told.contains("prices") && !told.contains("claude"), "{told}");
        let nothing = Changes::between(&after, &after, "own.toml".into()).unwrap();
        assert_eq!(nothing.told(), "own.toml changes nothing");
    }
}
