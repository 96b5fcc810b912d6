//! What a transcript has beside its entries: kept with the conversation, so that its pages are those of the file.

use recto::entry::{Seq, Text};
use recto::transcript::{Asked, Conversation};
use recto::wire::Wire;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// Where it stands among a conversation's own data.
const KEY: &str = "transcript";

/// What a transcript has beside its entries.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(crate) struct Beside {
    /// The tools that were offered, each as JSON text.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) tools: Vec<Text>,
    /// Where it was a client's request: what else that asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    request: Option<RequestBeside>,
}

#[derive(Debug, Serialize, Deserialize)]
struct RequestBeside {
    wire: Wire,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    format: Option<Text>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    marks: Vec<(Seq, Text)>,
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    fields: Map<String, Value>,
}

impl Beside {
    /// Returns what a transcript has beside its entries, as a conversation keeps it.
    pub(crate) fn meta_of(conversation: &Conversation) -> Map<String, Value> {
        let request = conversation.asked.clone().map(|asked| {
            let Asked { wire, format, marks, extra: fields } = asked;
            RequestBeside { wire, format, marks, fields }
        });
        let beside = Beside { tools: conversation.tools.clone(), request };
        let mut meta = Map::new();
        if !beside.tools.is_empty() || beside.request.is_some() {
            meta.insert(KEY.into(), serde_json::to_value(beside).expect("it is plain data"));
        }
        meta
    }

    /// Returns what a conversation has kept; one that was not imported has nothing.
    pub(crate) fn of_meta(meta: &str) -> Beside {
        let kept = serde_json::from_str::<Map<String, Value>>(meta).ok().and_then(|mut meta| meta.remove(KEY));
        kept.and_then(|kept| serde_json::from_value(kept).ok()).unwrap_or_default()
    }

    /// Returns what a client's request asked for.
    pub(crate) fn asked(&self) -> Option<Asked> {
        let RequestBeside { wire, format, marks, fields } = self.request.as_ref()?;
        Some(Asked { wire: *wire, format: format.clone(), marks: marks.clone(), extra: fields.clone() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn what_is_kept_reads_back_as_it_was() {
        let extra = json!({"temperature": 0.1, "seed": 18_446_744_073_709_551_615_u64, "stop": ["a"]});
        let asked = Asked {
            wire: Wire::Anthropic,
            format: Some("{}".into()),
            marks: vec![(Seq(3), "1h".into())],
            extra: extra.as_object().unwrap().clone(),
        };
        let tools = vec![Text::from("{ \"name\":\"b\", \"a\": 1.50 }")];
        let conversation = Conversation { tools: tools.clone(), asked: Some(asked.clone()), ..Conversation::default() };
        let meta = Value::Object(Beside::meta_of(&conversation)).to_string();
        let back = Beside::of_meta(&meta);
        assert_eq!((back.tools.clone(), back.asked()), (tools, Some(asked)));
        assert!(Beside::meta_of(&Conversation::default()).is_empty());
        for other in ["", "{}", "[]", r#"{"transcript":7}"#, "broken"] {
            let back = Beside::of_meta(other);
            assert!(back.tools.is_empty() && back.asked().is_none(), "{other}");
        }
    }
}
