//! Messages, read: each is one entry.

use crate::entry::{Arguments, Call, Entry, Media, Part, Piece, Reasoning, Role, Text, ToolResult};
use crate::error::Error;
use crate::wire::ids::Awaited;
use crate::wire::json::{Fielded, Source};
use crate::wire::{Wire, kept};
use serde_json::value::RawValue;
use serde_json::{Map, Value};

/// How the base64 of a picture begins, and what kind it then is.
const BEGINNINGS: [(&str, &str); 4] =
    [("iVBOR", "image/png"), ("/9j/", "image/jpeg"), ("R0lGOD", "image/gif"), ("UklGR", "image/webp")];

/// Reads messages one after the other: results without an id belong to the calls before them.
pub(super) struct Messages<'s, 't> {
    source: &'s Source<'t>,
    awaited: Awaited,
}

impl<'s, 't> Messages<'s, 't> {
    pub(super) fn of(source: &'s Source<'t>) -> Messages<'s, 't> {
        Messages { source, awaited: Awaited::default() }
    }

    /// Reads one message.
    pub(super) fn take(&mut self, raw: &'t RawValue, here: &str) -> Result<Entry, Error> {
        let mut message = Fielded::of(self.source, raw, here)?;
        let role = self.role(&mut message)?;
        if role != Role::Tool {
            self.awaited = Awaited::default();
        }
        let text: Text = message.given("content")?.unwrap_or_default();
        let images: Option<Vec<String>> = message.given("images")?;
        let images: Vec<Media> = images.into_iter().flatten().map(picture).collect();
        if role == Role::Tool {
            return self.result(message, text, images);
        }
        let mut parts = Vec::new();
        if let Some(thought) = message.given::<Text>("thinking")?.filter(|text| !text.is_empty()) {
            parts.push(Part::Reasoning(Reasoning { text: thought, ..Reasoning::default() }));
        }
        parts.extend((!text.is_empty()).then_some(Part::Text { text }));
        parts.extend(images.into_iter().map(Part::Image));
        let mut fields = Map::new();
        let calls: Option<Vec<&RawValue>> = message.given("tool_calls")?;
        for (at, raw) in calls.unwrap_or_default().into_iter().enumerate() {
            let (call, rest) = self.call(raw, &format!("{here}.tool_calls[{at}]"))?;
            if !rest.is_empty() {
                fields.insert(parts.len().to_string(), Value::Object(rest));
            }
            parts.push(Part::Call(call));
        }
        Ok(kept::entry(Wire::Ollama, role, parts, message.rest()?, fields))
    }

    fn role(&self, message: &mut Fielded<'_, 't>) -> Result<Role, Error> {
        let Some(raw) = message.fields.remove("role") else {
            return Err(self.source.refuse(message.raw, format!("{} has no role", message.here)));
        };
        let name: String = self.source.read(raw, &format!("{}.role", message.here))?;
        match name.to_ascii_lowercase().as_str() {
            "system" => Ok(Role::System),
            "user" => Ok(Role::User),
            "assistant" => Ok(Role::Assistant),
            "tool" => Ok(Role::Tool),
            _ => Err(self
                .source
                .refuse(raw, format!("{}: unknown role {name:?}", message.here))
                .hinting("known roles: system, user, assistant, tool")),
        }
    }

    fn result(&mut self, mut message: Fielded<'_, 't>, text: Text, images: Vec<Media>) -> Result<Entry, Error> {
        let name: Option<String> = message.given("tool_name")?;
        let call = self.awaited.answer(message.given("tool_call_id")?, name.as_deref());
        let text = (!text.is_empty()).then_some(Piece::Text { text });
        let content = text.into_iter().chain(images.into_iter().map(Piece::Image)).collect();
        let result = ToolResult { call: call.into(), content, is_error: false };
        let parts = vec![Part::Result(result)];
        Ok(kept::entry(Wire::Ollama, Role::Tool, parts, message.rest()?, Map::new()))
    }

    /// Reads a call, and returns it with the fields of its record that have no place in it.
    fn call(&mut self, raw: &'t RawValue, here: &str) -> Result<(Call, Map<String, Value>), Error> {
        let mut call = Fielded::of(self.source, raw, here)?;
        let Some(raw) = call.fields.remove("function") else {
            return Err(self.source.refuse(raw, format!("{here} has no \"function\"")));
        };
        let mut function = Fielded::of(self.source, raw, &format!("{here}.function"))?;
        let name: Text = function.needed("name")?;
        let id = self.awaited.call(call.given("id")?, &name);
        let given = function.fields.remove("arguments").map(|raw| raw.get()).filter(|given| *given != "null");
        let arguments = match given {
            // Not what the server takes, but what some clients write.
            Some(text) if text.starts_with('"') => {
                Arguments::String(serde_json::from_str(text).map_err(|error| Error::input(error.to_string()))?)
            }
            given => Arguments::Object(given.unwrap_or("{}").into()),
        };
        function.fields.remove("index");
        call.fields.remove("type");
        let rest = function.rest()?;
        if !rest.is_empty() {
            call.left.insert("function".into(), Value::Object(rest));
        }
        Ok((Call { id: id.into(), name, arguments }, call.rest()?))
    }
}

/// A picture that is nothing but its bytes.
fn picture(data: String) -> Media {
    let kind = BEGINNINGS.into_iter().find(|(start, _)| data.starts_with(start)).map_or("image/png", |(_, kind)| kind);
    let url = if data.starts_with("data:") { data } else { format!("data:{kind};base64,{data}") };
    Media { url: url.into(), name: None, detail: None }
}
