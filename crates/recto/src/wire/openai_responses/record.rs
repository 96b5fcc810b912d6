//! An object with its fields in the order they came, so that leaving one out changes nothing else.

use crate::wire::write::{raw, separated, string};
use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;
use std::fmt;

/// The fields of a JSON object, in order.
pub(crate) struct Record<'t>(Vec<(String, &'t RawValue)>);

impl<'t> Record<'t> {
    /// Returns a field as raw text.
    pub(crate) fn get(&self, name: &str) -> Option<&'t RawValue> {
        self.0.iter().rev().find(|(own, _)| own == name).map(|(_, raw)| *raw)
    }

    /// Returns a field that is a string.
    pub(crate) fn text(&self, name: &str) -> Option<String> {
        serde_json::from_str(self.get(name)?.get()).ok()
    }

    /// Returns the fields that are not among these names.
    pub(crate) fn others<'r>(&'r self, but: &'r [&str]) -> impl Iterator<Item = (&'r str, &'t RawValue)> + 'r {
        let fields = self.0.iter().map(|(name, raw)| (name.as_str(), *raw));
        fields.filter(move |(name, _)| !but.contains(name))
    }

    /// Returns the object as JSON text without these fields.
    pub(crate) fn without(&self, names: &[&str]) -> String {
        let mut out = vec![b'{'];
        separated(&mut out, self.others(names), |out, (name, value)| {
            string(out, name);
            out.push(b':');
            raw(out, value.get());
        });
        out.push(b'}');
        String::from_utf8(out).expect("texts were put together")
    }
}

impl<'de: 't, 't> Deserialize<'de> for Record<'t> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Record<'t>, D::Error> {
        struct Fields;
        impl<'de> Visitor<'de> for Fields {
            type Value = Vec<(String, &'de RawValue)>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut fields = Vec::new();
                while let Some(field) = map.next_entry()? {
                    fields.push(field);
                }
                Ok(fields)
            }
        }
        deserializer.deserialize_map(Fields).map(Record)
    }
}

/// Returns what kind of item a record is; a message may leave that out.
pub(crate) fn kind_of(record: &Record<'_>) -> Option<String> {
    record.text("type").or_else(|| record.get("role").map(|_| "message".into()))
}
