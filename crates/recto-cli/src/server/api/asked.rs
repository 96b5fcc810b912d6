//! A request: the names in its path, its parameters, its body, and who asks.

use super::problem::Problem;
use super::shape::{Shape, Shapes};
use crate::codes::Code;
use crate::server::Server;
use crate::server::auth::Caller;
use crate::server::setup::Setup;
use axum::body::{Body, Bytes};
use axum::http::header::{CONTENT_TYPE, LOCATION};
use axum::http::request::Parts;
use axum::http::{HeaderValue, StatusCode};
use axum::response::Response;
use recto::entry::Text;
use recto_engine::store::NAME_BYTES_MAX;
use recto_engine::{At, Conversation, Engine, ReaderName, Store};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};
use std::sync::Arc;

/// The header that names an append or an acknowledgement, so that it can be repeated.
const KEY: &str = "idempotency-key";
/// The longest such name, in bytes.
const KEY_BYTES_MAX: usize = 256;

/// A request, and who asks.
pub(in crate::server) struct Asked<S> {
    pub(super) server: Arc<Server<S>>,
    pub(super) setup: Arc<Setup>,
    pub(super) caller: Caller,
    /// What stands in its path, by name.
    pub(super) names: Vec<(String, String)>,
    pub(super) parts: Parts,
    pub(super) body: Bytes,
}

impl<S: Store> Asked<S> {
    /// Returns the engine.
    pub(super) fn engine(&self) -> &Engine<S> {
        &self.server.engine
    }

    /// Returns where the conversation is that the path names: with whom asks, and nowhere else.
    pub(super) fn at(&self) -> Option<At> {
        let name = self.named("conversation")?;
        Some(At::new(&self.caller.tenant, name))
    }

    /// Returns the conversation that the path names.
    pub(super) async fn conversation(&self) -> Result<(At, Conversation), Problem> {
        let at = self.at().ok_or_else(|| Problem::bad("no conversation is named"))?;
        let row = self.engine().conversation(&at).await?;
        Ok((at, row))
    }

    /// Returns the reader that the path names.
    pub(super) fn reader(&self) -> Result<ReaderName, Problem> {
        checked_name("reader", self.named("reader").unwrap_or_default()).map(ReaderName::from)
    }

    /// Returns what the path names.
    pub(super) fn named(&self, what: &str) -> Option<&str> {
        self.names.iter().find(|(name, _)| name == what).map(|(_, value)| value.as_str())
    }

    /// Returns the number that the path names.
    pub(super) fn number(&self, what: &str) -> Result<u64, Problem> {
        let text = self.named(what).unwrap_or_default();
        let is_number = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        let number = text.parse::<u64>().ok().filter(|_| is_number);
        number.ok_or_else(|| Problem::bad(format!("{what}: {text:?} is no number")))
    }

    /// Returns the name under which this can be repeated.
    pub(super) fn key(&self) -> Result<Option<Text>, Problem> {
        let mut values = self.parts.headers.get_all(KEY).into_iter();
        let wrong = |why: &str| Problem::bad(format!("the header {KEY} {why}"));
        match (values.next(), values.next()) {
            (None, _) => Ok(None),
            (Some(_), Some(_)) => Err(wrong("is given twice")),
            (Some(value), None) => match value.to_str().map(str::trim) {
                Ok("") => Err(wrong("is empty")),
                Ok(key) if key.len() > KEY_BYTES_MAX => Err(wrong("is longer than 256 bytes")),
                Ok(key) => Ok(Some(key.into())),
                Err(_) => Err(wrong("is no plain text")),
            },
        }
    }

    /// Reads the body; an empty one says nothing.
    pub(super) fn body<T: DeserializeOwned>(&self) -> Result<T, Problem> {
        let bytes: &[u8] = if self.body.trim_ascii().is_empty() { b"{}" } else { &self.body };
        serde_json::from_slice(bytes).map_err(|error| Problem::bad(format!("the body: {error}")))
    }

    /// Reads the parameters behind the path.
    pub(super) fn query<T: DeserializeOwned + Shape>(&self) -> Result<T, Problem> {
        let given = pairs(self.parts.uri.query().unwrap_or_default())?;
        let mut shapes = Shapes::new();
        let schema = T::shape(&mut shapes);
        let name = schema["$ref"].as_str().and_then(|it| it.rsplit('/').next()).unwrap_or_default();
        let properties = &shapes.get(name).cloned().unwrap_or_default()["properties"];
        let mut fields = Map::new();
        for (name, text) in given {
            let property = properties.get(&name).ok_or_else(|| {
                let known: Vec<&str> =
                    properties.as_object().into_iter().flat_map(|it| it.keys().map(String::as_str)).collect();
                Problem::bad(format!("unknown parameter {name:?}")).hinting(format!("there are: {}", known.join(", ")))
            })?;
            let value =
                value_of(property, &text).ok_or_else(|| Problem::bad(format!("{name}: {text:?} can't be taken")))?;
            if fields.insert(name.clone(), value).is_some() {
                return Err(Problem::bad(format!("{name} is given twice")));
            }
        }
        serde_json::from_value(Value::Object(fields)).map_err(|error| Problem::bad(format!("the parameters: {error}")))
    }
}

/// Returns how many rows are wanted.
pub(super) fn limited(limit: Option<u64>, usual: usize, most: usize) -> Result<usize, Problem> {
    let limit = limit.map_or(usual, |limit| usize::try_from(limit).unwrap_or(usize::MAX));
    match limit {
        0 => Err(Problem::bad("limit: at least 1")),
        limit if limit > most => {
            Err(Problem::bad(format!("limit: {limit} is more than {most}, the most for one page")))
        }
        limit => Ok(limit),
    }
}

/// Returns a name that can be kept.
pub(super) fn checked_name<'n>(what: &str, name: &'n str) -> Result<&'n str, Problem> {
    match name {
        "" => Err(Problem::bad(format!("the {what} has no name"))),
        name if name.len() > NAME_BYTES_MAX => {
            let detail = format!("the name of the {what} has {} bytes, at most {NAME_BYTES_MAX}", name.len());
            Err(Problem::of(Code::TooMuch, detail))
        }
        name => Ok(name),
    }
}

/// Answers with JSON.
pub(super) fn json(value: &impl Serialize) -> Result<Response, Problem> {
    let text = serde_json::to_string(value).map_err(|error| Problem::of(Code::Defect, error.to_string()))?;
    Ok(bytes(text.into_bytes()))
}

/// Answers with JSON about something that was made, and says where it is.
pub(super) fn made(value: &impl Serialize, conversation: &str) -> Result<Response, Problem> {
    let mut response = json(value)?;
    *response.status_mut() = StatusCode::CREATED;
    if let Ok(place) = HeaderValue::from_str(&format!("/api/v1/conversations/{}", escaped(conversation))) {
        response.headers_mut().insert(LOCATION, place);
    }
    Ok(response)
}

/// Answers with bytes that are JSON.
pub(super) fn bytes(bytes: Vec<u8>) -> Response {
    let mut response = Response::new(Body::from(bytes));
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}

/// Spells a name so that it can stand in a path.
fn escaped(name: &str) -> String {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~".contains(&byte);
    name.bytes()
        .map(|byte| if is_plain(byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") })
        .collect()
}

fn pairs(query: &str) -> Result<Vec<(String, String)>, Problem> {
    let pairs = query.split('&').filter(|pair| !pair.is_empty());
    let pairs = pairs.map(|pair| {
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        Some((unescaped(name)?, unescaped(value)?))
    });
    pairs.collect::<Option<Vec<_>>>().ok_or_else(|| Problem::bad("the parameters are not percent-encoded UTF-8"))
}

fn unescaped(text: &str) -> Option<String> {
    let (mut bytes, mut rest) = (Vec::with_capacity(text.len()), text.as_bytes());
    while let Some((first, more)) = rest.split_first() {
        rest = more;
        bytes.push(match first {
            b'+' => b' ',
            b'%' => {
                let digits = more.get(..2).filter(|two| two.iter().all(u8::is_ascii_hexdigit))?;
                let digits = std::str::from_utf8(digits).ok()?;
                rest = &more[2..];
                u8::from_str_radix(digits, 16).ok()?
            }
            other => *other,
        });
    }
    String::from_utf8(bytes).ok()
}

/// Reads a text as what a parameter is described to be.
fn value_of(property: &Value, text: &str) -> Option<Value> {
    let described = property.get("anyOf").map_or(property, |any| &any[0]);
    match described["type"].as_str() {
        Some("integer") => text.parse::<u64>().ok().map(Value::from),
        Some("boolean") => text.parse::<bool>().ok().map(Value::from),
        _ => Some(text.into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_are_read_as_they_were_spelled() {
        let read = |query: &str| pairs(query).ok();
        let one = |name: &str, value: &str| Some(vec![(name.to_string(), value.to_string())]);
        assert_eq!(read("a=b"), one("a", "b"));
        assert_eq!(read("a=b%2Fc+d&"), one("a", "b/c d"));
        assert_eq!(read("%C3%A4="), one("ä", ""));
        for wrong in ["a=%", "a=%2", "a=%zz", "a=%ff", "a=%+1"] {
            assert_eq!(read(wrong), None, "{wrong}");
        }
        assert_eq!(escaped("a/b ä~1"), "a%2Fb%20%C3%A4~1");
        assert_eq!(unescaped(&escaped("a/b ä~1")).as_deref(), Some("a/b ä~1"));
    }
}
