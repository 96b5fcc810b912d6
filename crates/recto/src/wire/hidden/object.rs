//! An object of which some fields are changed: the others keep their place and their spelling.

use crate::wire::json::without_lone_surrogates;
use crate::wire::write;
use serde::Deserialize;
use serde::de::{Deserializer, MapAccess, Visitor};
use serde_json::Value;
use serde_json::value::RawValue;
use std::borrow::Cow;
use std::fmt;

/// The fields of an object in their order, each as JSON text.
#[derive(Clone, Debug, Default)]
pub(super) struct Object<'t> {
    fields: Vec<(String, Cow<'t, str>)>,
    is_changed: bool,
}

impl<'t> Object<'t> {
    /// Reads an object, if the text is one.
    pub(super) fn read(text: &'t str) -> Option<Object<'t>> {
        serde_json::from_str(text).ok()
    }

    /// Returns the text of a field. Of two that have the same name, the last counts.
    pub(super) fn raw(&self, name: &str) -> Option<&str> {
        self.fields.iter().rfind(|(key, _)| key == name).map(|(_, raw)| raw.as_ref())
    }

    /// Returns a field that is a text. Escapes of lone surrogates, which no text can hold, are replaced.
    pub(super) fn text(&self, name: &str) -> Option<String> {
        serde_json::from_str(&without_lone_surrogates(self.raw(name)?).0).ok()
    }

    /// Returns a field that is a number.
    pub(super) fn number(&self, name: &str) -> Option<u64> {
        serde_json::from_str(self.raw(name)?).ok()
    }

    /// Returns a field of any kind but null.
    pub(super) fn value(&self, name: &str) -> Option<Value> {
        serde_json::from_str(self.raw(name)?).ok().filter(|value: &Value| !value.is_null())
    }

    /// Returns a field that is an object.
    pub(super) fn object(&self, name: &str) -> Option<Object<'_>> {
        Object::read(self.raw(name)?)
    }

    /// Returns the texts of what is in a field that is a list.
    pub(super) fn list(&self, name: &str) -> Option<Vec<&str>> {
        let list: Vec<&RawValue> = serde_json::from_str(self.raw(name)?).ok()?;
        Some(list.into_iter().map(RawValue::get).collect())
    }

    /// Gives a field that is there another text.
    pub(super) fn replace(&mut self, name: &str, raw: impl fmt::Display) {
        let Some((_, old)) = self.fields.iter_mut().rfind(|(key, _)| key == name) else { return };
        let raw = raw.to_string();
        if raw != *old {
            *old = Cow::Owned(raw);
            self.is_changed = true;
        }
    }

    /// Gives a field a text; one that is not there is added.
    pub(super) fn set(&mut self, name: &str, raw: impl fmt::Display) {
        match self.raw(name) {
            Some(_) => self.replace(name, raw),
            None => {
                self.fields.push((name.into(), Cow::Owned(raw.to_string())));
                self.is_changed = true;
            }
        }
    }

    /// Takes a field away.
    pub(super) fn remove(&mut self, name: &str) {
        let before = self.fields.len();
        self.fields.retain(|(key, _)| key != name);
        self.is_changed |= self.fields.len() < before;
    }

    /// Returns whether a field was changed.
    pub(super) fn is_changed(&self) -> bool {
        self.is_changed
    }

    /// Returns the names of all fields with their texts.
    pub(super) fn fields(&self) -> impl Iterator<Item = (&str, &str)> {
        self.fields.iter().map(|(key, raw)| (key.as_str(), raw.as_ref()))
    }
}

impl fmt::Display for Object<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut out = Vec::new();
        out.push(b'{');
        write::separated(&mut out, self.fields(), |out, (key, raw)| {
            write::string(out, key);
            out.push(b':');
            write::raw(out, raw);
        });
        out.push(b'}');
        f.write_str(&String::from_utf8_lossy(&out))
    }
}

impl<'de: 't, 't> Deserialize<'de> for Object<'t> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Object<'t>, D::Error> {
        struct Fields;
        impl<'de> Visitor<'de> for Fields {
            type Value = Object<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Object<'de>, A::Error> {
                let mut object = Object::default();
                while let Some((key, raw)) = map.next_entry::<String, &'de RawValue>()? {
                    object.fields.push((key, Cow::Borrowed(raw.get())));
                }
                Ok(object)
            }
        }
        deserializer.deserialize_map(Fields)
    }
}

/// Returns the text of a list of texts.
pub(super) fn list_of<T: AsRef<str>>(items: &[T]) -> String {
    let items: Vec<&str> = items.iter().map(AsRef::as_ref).collect();
    format!("[{}]", items.join(","))
}

/// Returns a text as JSON.
pub(super) fn quoted(text: &str) -> String {
    Value::from(text).to_string()
}
