//! What the provider would refuse.

mod content;
mod settings;

use super::model::Model;
use crate::wire::Violation;
use serde_json::Value;

/// The largest body, in bytes.
const BODY_BYTES_MAX: usize = 32 * 1024 * 1024;
/// The most messages.
const MESSAGES_MAX: usize = 100_000;

/// Returns every rule that a body breaks; none means that the provider takes its form.
pub fn validate(body: &[u8]) -> Vec<Violation> {
    let mut check = Check { found: Vec::new(), model: None, marks: Vec::new(), images: 0 };
    if body.len() > BODY_BYTES_MAX {
        check.refuse("body", format!("{} bytes, at most {BODY_BYTES_MAX}", body.len()));
    }
    match serde_json::from_slice::<Value>(body) {
        Ok(Value::Object(body)) => check.body(&Value::Object(body)),
        Ok(_) => check.refuse("body", "not an object"),
        Err(error) => check.refuse("body", format!("not JSON: {error}")),
    }
    check.found
}

struct Check {
    found: Vec<Violation>,
    model: Option<Model>,
    /// Cache marks in the order in which the provider reads: whether each is long-lived.
    marks: Vec<bool>,
    images: usize,
}

impl Check {
    fn refuse(&mut self, at: impl Into<String>, what: impl Into<String>) {
        self.found.push(Violation { at: at.into(), what: what.into().into() });
    }

    fn body(&mut self, body: &Value) {
        match body["model"].as_str() {
            Some(model) => self.model = Model::named(model),
            None => self.refuse("model", "Field required"),
        }
        self.settings(body);
        self.tools(body);
        self.system(&body["system"]);
        match body["messages"].as_array() {
            Some(messages) if messages.is_empty() => {
                self.refuse("messages", "at least one message is required");
            }
            Some(messages) => {
                if messages.len() > MESSAGES_MAX {
                    self.refuse("messages", format!("{} messages, at most {MESSAGES_MAX}", messages.len()));
                }
                self.messages(messages, body);
            }
            None => self.refuse("messages", "Field required"),
        }
        self.cache_marks(body);
        self.pictures();
    }

    fn pictures(&mut self) {
        let most = if self.model.is_some_and(Model::has_small_window) { 100 } else { super::IMAGES_MAX };
        if self.images > most {
            self.refuse("messages", format!("{} images, at most {most}", self.images));
        }
    }

    fn name(&mut self, at: &str, name: &str, longest: usize) {
        let takes = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
        if name.is_empty() || name.len() > longest || !name.chars().all(takes) {
            let bound = if longest == usize::MAX { "+".to_string() } else { format!("{{1,{longest}}}") };
            self.refuse(at, format!("String should match pattern '^[a-zA-Z0-9_-]{bound}$'"));
        }
    }
}
