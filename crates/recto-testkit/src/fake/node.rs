//! A place in a request body: its value, and its path in the provider's own spelling.

use super::{Api, Refusal};
use serde_json::{Map, Value};

pub(super) type Checked = Result<(), Refusal>;

#[derive(Debug, Clone)]
pub(super) struct Node<'a> {
    pub(super) api: Api,
    pub(super) value: &'a Value,
    pub(super) path: String,
}

impl<'a> Node<'a> {
    pub(super) fn root(api: Api, value: &'a Value) -> Node<'a> {
        Node { api, value, path: String::new() }
    }

    /// Returns the field, unless it is absent or null.
    pub(super) fn get(&self, key: &str) -> Option<Node<'a>> {
        let value = self.value.get(key).filter(|value| !value.is_null())?;
        Some(Node { api: self.api, value, path: self.path_of(key) })
    }

    pub(super) fn need(&self, key: &str) -> Result<Node<'a>, Refusal> {
        let path = self.path_of(key);
        self.get(key).ok_or_else(|| match self.api {
            Api::Messages => Refusal::new(self.api, "shape", format!("{path}: Field required")),
            Api::Gemini => {
                Refusal::new(self.api, "shape", format!("* GenerateContentRequest.{path}: must be specified"))
            }
            Api::Ollama => Refusal::new(self.api, "shape", format!("{path} is required")),
            _ => Refusal::new(self.api, "shape", format!("Missing required parameter: '{path}'."))
                .coded("missing_required_parameter")
                .at(path.clone()),
        })
    }

    pub(super) fn has(&self, key: &str) -> bool {
        self.get(key).is_some()
    }

    /// Returns the string of a field, or nothing when it is absent or no string.
    pub(super) fn str_of(&self, key: &str) -> Option<&'a str> {
        self.value.get(key)?.as_str()
    }

    pub(super) fn is(&self, key: &str, value: &str) -> bool {
        self.str_of(key) == Some(value)
    }

    pub(super) fn path_of(&self, key: &str) -> String {
        if self.path.is_empty() { key.to_owned() } else { format!("{}.{key}", self.path) }
    }

    pub(super) fn text(&self) -> Result<&'a str, Refusal> {
        self.value.as_str().ok_or_else(|| self.wrong_type("a string", "string"))
    }

    pub(super) fn integer(&self) -> Result<i64, Refusal> {
        self.value.as_i64().ok_or_else(|| self.wrong_type("an integer", "integer"))
    }

    pub(super) fn number(&self) -> Result<f64, Refusal> {
        self.value.as_f64().ok_or_else(|| self.wrong_type("a number", "number"))
    }

    pub(super) fn flag(&self) -> Result<bool, Refusal> {
        self.value.as_bool().ok_or_else(|| self.wrong_type("a boolean", "boolean"))
    }

    pub(super) fn object(&self) -> Result<&'a Map<String, Value>, Refusal> {
        self.value.as_object().ok_or_else(|| self.wrong_type("an object", "dictionary"))
    }

    pub(super) fn list(&self) -> Result<Vec<Node<'a>>, Refusal> {
        let values = self.value.as_array().ok_or_else(|| self.wrong_type("an array", "list"))?;
        Ok(self.numbered(values))
    }

    /// Returns the entries of a list; of anything else, none.
    pub(super) fn entries(&self) -> Vec<Node<'a>> {
        self.numbered(self.value.as_array().map_or(&[], Vec::as_slice))
    }

    fn numbered(&self, values: &'a [Value]) -> Vec<Node<'a>> {
        let path = |at: usize| match self.api {
            Api::Messages => format!("{}.{at}", self.path),
            _ => format!("{}[{at}]", self.path),
        };
        values.iter().enumerate().map(|(at, value)| Node { api: self.api, value, path: path(at) }).collect()
    }

    /// Checks that it is an object with these fields only.
    pub(super) fn only(&self, fields: &[&str]) -> Checked {
        match self.object()?.keys().find(|key| !fields.contains(&key.as_str())) {
            Some(extra) => Err(self.extra(extra)),
            None => Ok(()),
        }
    }

    pub(super) fn extra(&self, key: &str) -> Refusal {
        let path = self.path_of(key);
        match self.api {
            Api::Messages => Refusal::new(self.api, "A19", format!("{path}: Extra inputs are not permitted")),
            Api::Responses => Refusal::new(self.api, "shape", format!("Unknown parameter: '{path}'."))
                .at(path)
                .coded("unknown_parameter"),
            Api::Chat if self.path.is_empty() => {
                Refusal::new(self.api, "shape", format!("Unrecognized request argument supplied: {key}"))
            }
            Api::Gemini => {
                let (name, place) = (key, &self.path);
                let text =
                    format!("Invalid JSON payload received. Unknown name \"{name}\" at '{place}': Cannot find field.");
                Refusal::new(self.api, "shape", text)
            }
            Api::Chat | Api::Ollama => {
                let text = format!("Additional properties are not allowed ('{key}' was unexpected) - '{}'", self.path);
                Refusal::new(self.api, "shape", text).at(path)
            }
        }
    }

    pub(super) fn one_of(&self, values: &[&str]) -> Result<&'a str, Refusal> {
        let text = self.text()?;
        if values.contains(&text) {
            return Ok(text);
        }
        let quoted: Vec<String> = values.iter().map(|value| format!("'{value}'")).collect();
        Err(match self.api {
            Api::Messages => self.refuse("shape", &format!("Input should be {}", quoted.join(" or "))),
            _ => self
                .refuse("shape", &format!("Invalid value: '{text}'. Supported values are: {}.", quoted.join(", ")))
                .coded("invalid_value"),
        })
    }

    /// Checks a string's length, counted in characters.
    pub(super) fn at_most(&self, rule: &'static str, chars_max: usize) -> Checked {
        let text = self.text()?;
        // Bytes are never fewer than characters, so most strings need no counting.
        if text.len() <= chars_max || text.chars().count() <= chars_max {
            return Ok(());
        }
        let length = text.chars().count();
        let text = format!(
            "Invalid '{}': string too long. Expected a string with maximum length {chars_max}, but got a string with \
             length {length} instead.",
            self.path
        );
        Err(self.refuse(rule, &text).coded("string_above_max_length"))
    }

    pub(super) fn not_empty(&self, rule: &'static str) -> Result<Vec<Node<'a>>, Refusal> {
        let list = self.list()?;
        if list.is_empty() {
            let text = format!("Invalid '{}': empty array. Expected an array with minimum length 1.", self.path);
            return Err(self.refuse(rule, &text).coded("empty_array"));
        }
        Ok(list)
    }

    /// Checks a name against `^[a-zA-Z0-9_-]+$` and its length.
    pub(super) fn named(&self, rule: &'static str, chars_max: usize) -> Checked {
        let name = self.text()?;
        if is_plain(name) && name.len() <= chars_max {
            return Ok(());
        }
        let path = &self.path;
        let text = match self.api {
            Api::Messages => format!("String should match pattern '^[a-zA-Z0-9_-]{{1,{chars_max}}}$'"),
            _ if is_plain(name) => return self.at_most(rule, chars_max),
            _ => format!(
                "Invalid '{path}': string does not match pattern. Expected a string that matches the pattern '^[a-zA-Z0-9_-]+$'."
            ),
        };
        Err(self.refuse(rule, &text).coded("invalid_value"))
    }

    /// Refuses this place: Anthropic names it in the text, OpenAI in `param`.
    pub(super) fn refuse(&self, rule: &'static str, text: &str) -> Refusal {
        match self.api {
            Api::Messages if self.path.is_empty() => Refusal::new(self.api, rule, text),
            Api::Messages => Refusal::new(self.api, rule, format!("{}: {text}", self.path)),
            _ => Refusal::new(self.api, rule, text).at(self.path.clone()),
        }
    }

    fn wrong_type(&self, wanted: &str, anthropic: &str) -> Refusal {
        let got = match self.value {
            Value::Null => "null",
            Value::Bool(_) => "a boolean",
            Value::Number(_) => "a number",
            Value::String(_) => "a string",
            Value::Array(_) => "an array",
            Value::Object(_) => "an object",
        };
        match self.api {
            Api::Messages => self.refuse("shape", &format!("Input should be a valid {anthropic}")),
            Api::Gemini => {
                self.refuse("shape", &format!("Invalid value at '{}': expected {wanted}, got {got}", self.path))
            }
            Api::Ollama => {
                let text = format!(
                    "json: cannot unmarshal {got} into Go struct field ChatRequest.{} of type {wanted}",
                    self.path
                );
                self.refuse("shape", &text)
            }
            _ => {
                let text = format!("Invalid type for '{}': expected {wanted}, but got {got} instead.", self.path);
                self.refuse("shape", &text).coded("invalid_type")
            }
        }
    }
}

/// Returns whether a name or id is made of letters, digits, `_` and `-` only.
pub(super) fn is_plain(name: &str) -> bool {
    !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-')
}
