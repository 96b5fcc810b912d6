//! Content blocks, read: each becomes a part, and what has no part of its own is kept byte for byte.

use super::PROVIDER;
use crate::entry::{Arguments, Call, Entry, Media, Part, Piece, Reasoning, Role, Text, ToolResult};
use crate::error::Error;
use crate::wire::base64;
use crate::wire::json::{Fielded, Fields, Source};
use crate::wire::media::shortened;
use crate::wire::{Wire, kept};
use serde_json::value::RawValue;
use serde_json::{Map, Value};

/// How blocks are read: where they stand, and which model is taken to have said an assistant's.
pub(crate) struct Reading<'s, 't> {
    pub(crate) source: &'s Source<'t>,
    pub(crate) model: Option<Text>,
}

/// What was read of one message, or of one result within it.
#[derive(Debug)]
pub(crate) struct Read {
    pub(crate) role: Role,
    pub(crate) parts: Vec<Part>,
    /// Fields without a place, by part.
    fields: Map<String, Value>,
    /// Cache marks, as JSON texts.
    pub(crate) marks: Vec<Text>,
}

impl Read {
    pub(crate) fn new(role: Role) -> Read {
        Read { role, parts: Vec::new(), fields: Map::new(), marks: Vec::new() }
    }

    /// Puts a part behind the others.
    fn push(&mut self, part: Part, fields: Map<String, Value>) {
        if !fields.is_empty() {
            self.fields.insert(self.parts.len().to_string(), Value::Object(fields));
        }
        self.parts.push(part);
    }

    /// Puts what was read later behind it.
    pub(crate) fn append(&mut self, later: Read) {
        let so_far = self.parts.len();
        for (nth, fields) in later.fields {
            let nth = nth.parse::<usize>().unwrap_or_default();
            self.fields.insert((so_far + nth).to_string(), fields);
        }
        self.parts.extend(later.parts);
        self.marks.extend(later.marks);
    }

    /// Returns the entry of it; `message` are fields of the message without a place.
    pub(crate) fn into_entry(self, message: Map<String, Value>) -> Entry {
        kept::entry(Wire::Anthropic, self.role, self.parts, message, self.fields)
    }
}

impl<'t> Reading<'_, 't> {
    /// Reads the content of a message. Results in a user's are entries of their own, so there may be several.
    pub(crate) fn content(&self, raw: &'t RawValue, role: Role, here: &str) -> Result<Vec<Read>, Error> {
        let mut read = vec![Read::new(role)];
        match raw.get().as_bytes().first() {
            Some(b'n') => {}
            Some(b'"') => {
                let text: Text = self.source.read(raw, &format!("{here}.content"))?;
                if !text.is_empty() {
                    read[0].push(Part::Text { text }, Map::new());
                }
            }
            Some(b'[') => {
                let here = format!("{here}.content");
                let blocks: Vec<&RawValue> = self.source.read(raw, &here)?;
                for (nth, raw) in blocks.into_iter().enumerate() {
                    self.block(raw, role, &format!("{here}.{nth}"), &mut read)?;
                }
            }
            _ => {
                return Err(self
                    .source
                    .refuse(raw, format!("{here}.content is neither a string nor a list of blocks")));
            }
        }
        read.retain(|it| !it.parts.is_empty());
        Ok(read)
    }

    /// Reads one block that stands alone.
    pub(crate) fn one(&self, raw: &'t RawValue, role: Role, here: &str) -> Result<Vec<Read>, Error> {
        let mut read = vec![Read::new(role)];
        self.block(raw, role, here, &mut read)?;
        read.retain(|it| !it.parts.is_empty());
        Ok(read)
    }

    fn block(&self, raw: &'t RawValue, role: Role, here: &str, read: &mut Vec<Read>) -> Result<(), Error> {
        let mut block = Fielded::of(self.source, raw, here)?;
        let mark = block.fields.remove("cache_control").map(|raw| raw.get()).filter(|mark| *mark != "null");
        let kind: String = block.needed("type")?;
        let is_result = kind == "tool_result" && role == Role::User;
        let part = match (kind.as_str(), role) {
            ("text", _) => Part::Text { text: block.needed("text")? },
            ("thinking" | "redacted_thinking", Role::Assistant) => Part::Reasoning(self.thought(&kind, &mut block)?),
            ("tool_use", Role::Assistant) => Part::Call(call(&mut block)?),
            ("image" | "document", Role::User) => match media(&kind, &mut block)? {
                Some(part) => part,
                None => opaque(&mut block),
            },
            ("tool_result", Role::User) => {
                let (result, blocks, marks) = result(&mut block)?;
                let mut own = Read::new(Role::Tool);
                own.marks = marks;
                if !blocks.is_empty() {
                    block.left.insert("blocks".into(), Value::Object(blocks));
                }
                read.push(own);
                Part::Result(result)
            }
            _ => opaque(&mut block),
        };
        // Words behind results are an entry again.
        if !is_result && read.last().is_some_and(|last| last.role != role) {
            read.push(Read::new(role));
        }
        let fields = block.rest()?;
        if let Some(last) = read.last_mut() {
            last.push(part, fields);
            last.marks.extend(mark.map(Text::from));
        }
        Ok(())
    }

    fn thought(&self, kind: &str, block: &mut Fielded<'_, 't>) -> Result<Reasoning, Error> {
        let mut thought =
            Reasoning { provider: Some(PROVIDER.into()), model: self.model.clone(), ..Reasoning::default() };
        if kind == "thinking" {
            thought.text = block.given("thinking")?.unwrap_or_default();
            thought.signature = block.given::<Text>("signature")?.filter(|it| !it.is_empty());
        } else {
            thought.encrypted = Some(block.needed("data")?);
        }
        Ok(thought)
    }
}

/// A block that goes back as it came, but for its cache mark.
fn opaque(block: &mut Fielded<'_, '_>) -> Part {
    block.fields.clear();
    Part::Opaque { provider: PROVIDER.into(), payload: without_field(block.raw.get(), "cache_control").into() }
}

fn call(block: &mut Fielded<'_, '_>) -> Result<Call, Error> {
    let (id, name): (Text, Text) = (block.needed("id")?, block.needed("name")?);
    let input = block.fields.remove("input").map_or("{}", |raw| raw.get());
    Ok(Call { id: id.into(), name, arguments: Arguments::Object(if input == "null" { "{}" } else { input }.into()) })
}

/// A picture or document; `None` if no part can hold its source.
fn media(kind: &str, block: &mut Fielded<'_, '_>) -> Result<Option<Part>, Error> {
    let Some(raw) = block.fields.get("source").copied() else {
        return Err(block.source.refuse(block.raw, format!("{} has no \"source\"", block.here)));
    };
    let mut source = Fielded::of(block.source, raw, &format!("{}.source", block.here))?;
    let is_document = kind == "document";
    let form: String = source.needed("type")?;
    let url: Text = match form.as_str() {
        "base64" => {
            let (kind, data): (String, String) = (source.needed("media_type")?, source.needed("data")?);
            format!("data:{kind};base64,{data}").into()
        }
        "text" if is_document => {
            let text: String = source.needed("data")?;
            format!("data:text/plain;base64,{}", base64::encoded(text.as_bytes())).into()
        }
        "url" => source.needed("url")?,
        "file" if is_document && block.fields.len() == 1 => {
            let id: Text = source.needed("file_id")?;
            block.fields.clear();
            return Ok(Some(if id.starts_with("file_") { Part::File { id } } else { opaque(block) }));
        }
        _ => return Ok(None),
    };
    block.fields.remove("source");
    let name = if is_document { block.given("title")? } else { None };
    let media = Media { url, name, detail: None };
    Ok(Some(if is_document { Part::Document(media) } else { Part::Image(media) }))
}

type ReadResult = (ToolResult, Map<String, Value>, Vec<Text>);

/// A result, the blocks of it that no piece can hold, and the cache marks inside.
fn result(block: &mut Fielded<'_, '_>) -> Result<ReadResult, Error> {
    let id: Text = block.needed("tool_use_id")?;
    let is_error = block.given("is_error")?.unwrap_or(false);
    let mut result = ToolResult { call: id.into(), content: Vec::new(), is_error };
    let (mut blocks, mut marks) = (Map::new(), Vec::new());
    let Some(content) = block.fields.remove("content") else { return Ok((result, blocks, marks)) };
    let here = format!("{}.content", block.here);
    match content.get().as_bytes().first() {
        Some(b'n') => {}
        Some(b'"') => {
            let text: Text = block.source.read(content, &here)?;
            result.content.extend((!text.is_empty()).then_some(Piece::Text { text }));
        }
        Some(b'[') => {
            let list: Vec<&RawValue> = block.source.read(content, &here)?;
            for (nth, raw) in list.into_iter().enumerate() {
                let mut inner = Fielded::of(block.source, raw, &format!("{here}.{nth}"))?;
                let mark = inner.fields.remove("cache_control").map(|raw| raw.get()).filter(|mark| *mark != "null");
                marks.extend(mark.map(Text::from));
                let (piece, kept) = piece(&mut inner)?;
                if let Some(kept) = kept {
                    blocks.insert(result.content.len().to_string(), kept);
                }
                result.content.push(piece);
            }
        }
        _ => return Err(block.source.refuse(content, format!("{here} is neither a string nor a list of blocks"))),
    }
    Ok((result, blocks, marks))
}

/// A piece of a result, and the block itself where the piece only names it.
fn piece(block: &mut Fielded<'_, '_>) -> Result<(Piece, Option<Value>), Error> {
    let kind: String = block.needed("type")?;
    if kind == "text" {
        return Ok((Piece::Text { text: block.needed("text")? }, None));
    }
    let mut whole: Value = block.source.read(block.raw, &block.here)?;
    whole.as_object_mut().into_iter().for_each(|fields| drop(fields.remove("cache_control")));
    // Its words must stay within reach of whoever blackens words.
    if let Some(text) = words_of(&kind, &whole) {
        return Ok((Piece::Text { text: text.into() }, None));
    }
    let source = &whole["source"];
    let text = |value: &Value, name: &str| value[name].as_str().map(str::to_string);
    if kind == "image" {
        let url = match source["type"].as_str() {
            Some("base64") => text(source, "media_type")
                .zip(text(source, "data"))
                .map(|(kind, data)| format!("data:{kind};base64,{data}")),
            Some("url") => text(source, "url"),
            _ => None,
        };
        if let Some(url) = url {
            return Ok((Piece::Image(Media { url: url.into(), name: None, detail: None }), None));
        }
    }
    let named = ["title", "tool_name", "name", "url"].into_iter().find_map(|name| text(&whole, name));
    let named = named.map_or(String::new(), |name| format!(": {}", shortened(&name)));
    Ok((Piece::Text { text: format!("[{}{named}]", shortened(&kind)).into() }, Some(whole)))
}

/// The words of a block that is nothing but words.
fn words_of(kind: &str, block: &Value) -> Option<String> {
    let title = block["title"].as_str().map_or(String::new(), |title| format!("{title}\n"));
    match kind {
        "document" if block["source"]["type"] == "text" => {
            Some(format!("{title}{}", block["source"]["data"].as_str()?))
        }
        "search_result" => {
            let texts = block["content"].as_array()?.iter().filter_map(|it| it["text"].as_str());
            let source = block["source"].as_str().map_or(String::new(), |source| format!("{source}\n"));
            Some(format!("{title}{source}{}", texts.collect::<Vec<_>>().join("\n")))
        }
        _ => None,
    }
}

/// The text of an object without one of its fields; no other byte changes.
pub(super) fn without_field<'o>(object: &'o str, name: &str) -> std::borrow::Cow<'o, str> {
    let fields: Fields<'_> = serde_json::from_str(object).unwrap_or_default();
    let cut = fields.get(name).and_then(|value| {
        let value_at = (value.get().as_ptr() as usize).checked_sub(object.as_ptr() as usize)?;
        let before = object[..value_at].trim_end().strip_suffix(':')?.trim_end();
        let before = before.strip_suffix(&format!("\"{name}\""))?.trim_end();
        let after = object[value_at + value.get().len()..].trim_start();
        // One comma goes with it: that before it, or that behind it.
        Some(match before.strip_suffix(',') {
            Some(before) => format!("{before}{after}"),
            None => format!("{before}{}", after.strip_prefix(',').unwrap_or(after).trim_start()),
        })
    });
    cut.map_or(object.into(), Into::into)
}

/// The text of an object with one of its fields replaced, or put at its end.
pub(super) fn with_field(object: &str, name: &str, value: &str) -> String {
    let fields: Fields<'_> = serde_json::from_str(object).unwrap_or_default();
    let found = fields.get(name).and_then(|old| {
        let at = (old.get().as_ptr() as usize).checked_sub(object.as_ptr() as usize)?;
        Some(format!("{}{value}{}", &object[..at], &object[at + old.get().len()..]))
    });
    found.unwrap_or_else(|| {
        let open = object.trim_end();
        let open = open.strip_suffix('}').unwrap_or(open);
        format!("{open}{}\"{name}\":{value}}}", if fields.is_empty() { "" } else { "," })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_field_goes_and_nothing_else_changes() {
        let mark = r#""cache_control": {"type":"ephemeral"}"#;
        let cases = [
            (format!(r#"{{"a":1, {mark} , "b":2}}"#), r#"{"a":1, "b":2}"#),
            (format!(r#"{{{mark}, "b":2}}"#), r#"{"b":2}"#),
            (format!(r#"{{"a":1,{mark}}}"#), r#"{"a":1}"#),
            (format!("{{{mark}}}"), "{}"),
            (r#"{"a":{"cache_control":1}}"#.into(), r#"{"a":{"cache_control":1}}"#),
        ];
        for (from, to) in cases {
            let got = without_field(&from, "cache_control").into_owned();
            assert_eq!(got.replace(' ', ""), to.replace(' ', ""), "{from}");
            assert!(serde_json::from_str::<Value>(&got).is_ok());
        }
        assert_eq!(with_field(r#"{"a":1,"b":{}}"#, "b", "[2]"), r#"{"a":1,"b":[2]}"#);
        assert_eq!(with_field(r#"{"a":{}}"#, "b", "2"), r#"{"a":{},"b":2}"#);
    }
}
