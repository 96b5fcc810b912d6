//! Contents, read: each part becomes one of an entry's, and what has no part of its own is kept byte for byte.
//!
//! A signature stands on some part of a model's answer, and has to go back on it. Here it is reasoning: as `signature` it
//! belongs to the part behind it, as `encrypted` to the thought itself, or to a part without words.

use super::media::{is_held, part_of};
use super::{KINDS, PROVIDER, camel};
use crate::entry::{Arguments, Call, Entry, Part, Piece, Reasoning, Role, Text, ToolResult};
use crate::error::Error;
use crate::wire::ids::Awaited;
use crate::wire::json::{Fielded, Source};
use crate::wire::media::shortened;
use crate::wire::{Wire, kept};
use serde_json::value::RawValue;
use serde_json::{Map, Value};

/// Whose a part is, the part, and its fields without a place.
type Shown = (Role, Option<Part>, Map<String, Value>);

/// Reads contents one after the other: results without an id belong to the calls before them.
pub(super) struct Contents<'s, 't> {
    pub(super) source: &'s Source<'t>,
    /// Which model is taken to have said the model's parts.
    pub(super) model: Option<Text>,
    awaited: Awaited,
    pub(super) entries: Vec<Entry>,
}

/// What was read of one content, or of one result within it.
struct Read {
    role: Role,
    parts: Vec<Part>,
    /// Fields without a place, by part.
    fields: Map<String, Value>,
}

impl Read {
    fn new(role: Role) -> Read {
        Read { role, parts: Vec::new(), fields: Map::new() }
    }

    fn push(&mut self, part: Part, fields: Map<String, Value>) {
        if !fields.is_empty() {
            self.fields.insert(self.parts.len().to_string(), Value::Object(fields));
        }
        self.parts.push(part);
    }

    /// Puts a signature before the part that it stands on: into the thought that led to it, if there is one.
    fn sign(&mut self, signature: Text, model: Option<&Text>) {
        match self.parts.last_mut() {
            Some(Part::Reasoning(thought)) if !thought.is_sealed() => thought.signature = Some(signature),
            _ => self.parts.push(Part::Reasoning(Reasoning { signature: Some(signature), ..thought(model, "") })),
        }
    }
}

fn thought(model: Option<&Text>, text: impl Into<Text>) -> Reasoning {
    Reasoning { text: text.into(), provider: Some(PROVIDER.into()), model: model.cloned(), ..Reasoning::default() }
}

/// Reads an object of the provider's own, whose names may be spelled with underscores.
pub(super) fn object<'s, 't>(source: &'s Source<'t>, raw: &'t RawValue, here: &str) -> Result<Fielded<'s, 't>, Error> {
    let mut object = Fielded::of(source, raw, here)?;
    object.fields = object.fields.into_iter().map(|(name, raw)| (camel(&name), raw)).collect();
    Ok(object)
}

impl<'s, 't> Contents<'s, 't> {
    pub(super) fn of(source: &'s Source<'t>, model: Option<Text>) -> Contents<'s, 't> {
        Contents { source, model, awaited: Awaited::default(), entries: Vec::new() }
    }

    /// Reads instructions: every part is an entry.
    pub(super) fn instructions(&mut self, raw: &'t RawValue) -> Result<(), Error> {
        const HERE: &str = "systemInstruction";
        if raw.get() == "null" {
            return Ok(());
        }
        let mut content = object(self.source, raw, HERE)?;
        let parts: Option<Vec<&RawValue>> = content.given("parts")?;
        for (at, raw) in parts.unwrap_or_default().into_iter().enumerate() {
            let text: Text = object(self.source, raw, &format!("{HERE}.parts[{at}]"))?.needed("text")?;
            self.entries.extend((!text.is_empty()).then(|| Entry::system(text)));
        }
        Ok(())
    }

    /// Reads one content.
    pub(super) fn take(&mut self, raw: &'t RawValue, here: &str) -> Result<(), Error> {
        let mut content = object(self.source, raw, here)?;
        let role = self.role(&mut content)?;
        let parts: Option<Vec<&RawValue>> = content.given("parts")?;
        let mut rest = content.rest()?;
        let mut read = match role {
            Role::Assistant => vec![self.said_all(parts.unwrap_or_default(), here)?],
            _ => self.shown_all(parts.unwrap_or_default(), here)?,
        };
        read.retain(|it| !it.parts.is_empty());
        if read.is_empty() && !rest.is_empty() {
            read.push(Read::new(role));
        }
        let last = read.len().saturating_sub(1);
        for (nth, Read { role, parts, fields }) in read.into_iter().enumerate() {
            let message = if nth == last { std::mem::take(&mut rest) } else { Map::new() };
            self.entries.push(kept::entry(Wire::Gemini, role, parts, message, fields));
        }
        Ok(())
    }

    /// Reads the parts of an answer as one entry.
    pub(super) fn answer(&mut self, parts: Vec<&'t RawValue>) -> Result<Entry, Error> {
        let Read { role, parts, fields } = self.said_all(parts, "reply")?;
        Ok(kept::entry(Wire::Gemini, role, parts, Map::new(), fields))
    }

    fn said_all(&mut self, parts: Vec<&'t RawValue>, here: &str) -> Result<Read, Error> {
        self.awaited = Awaited::default();
        let mut read = Read::new(Role::Assistant);
        for (at, raw) in parts.into_iter().enumerate() {
            self.said(object(self.source, raw, &format!("{here}.parts[{at}]"))?, &mut read)?;
        }
        Ok(read)
    }

    fn shown_all(&mut self, parts: Vec<&'t RawValue>, here: &str) -> Result<Vec<Read>, Error> {
        let mut read = vec![Read::new(Role::User)];
        for (at, raw) in parts.into_iter().enumerate() {
            let part = object(self.source, raw, &format!("{here}.parts[{at}]"))?;
            let (role, shown, fields) = self.shown(part)?;
            let Some(shown) = shown else { continue };
            // Every result is an entry; so are words behind results.
            if role == Role::Tool || read.last().is_some_and(|last| last.role == Role::Tool) {
                read.push(Read::new(role));
            }
            if let Some(last) = read.last_mut() {
                last.push(shown, fields);
            }
        }
        self.awaited = Awaited::default();
        Ok(read)
    }

    fn role(&self, content: &mut Fielded<'_, 't>) -> Result<Role, Error> {
        let Some(raw) = content.fields.remove("role").filter(|raw| raw.get() != "null") else { return Ok(Role::User) };
        let name: String = self.source.read(raw, &format!("{}.role", content.here))?;
        match name.as_str() {
            // An older name of who answers calls.
            "user" | "function" | "" => Ok(Role::User),
            "model" => Ok(Role::Assistant),
            _ => Err(self
                .source
                .refuse(raw, format!("{}: unknown role {name:?}", content.here))
                .hinting("known roles: user, model; instructions stand in systemInstruction")),
        }
    }

    /// Reads a part of what the model said.
    fn said(&mut self, mut part: Fielded<'_, 't>, read: &mut Read) -> Result<(), Error> {
        let kind = kind_of(&part)?;
        if !matches!(kind, Some("text" | "functionCall") | None) || (kind.is_none() && !is_signed(&part)) {
            let whole = opaque(&part);
            read.push(whole, Map::new());
            return Ok(());
        }
        let model = self.model.clone();
        let signature: Option<Text> = part.given::<Text>("thoughtSignature")?.filter(|it| !it.is_empty());
        let is_thought = part.given("thought")?.unwrap_or(false);
        if kind == Some("functionCall") {
            let call = self.call(&mut part)?;
            signature.into_iter().for_each(|signature| read.sign(signature, model.as_ref()));
            read.push(Part::Call(call), part.rest()?);
            return Ok(());
        }
        let text: Text = part.given("text")?.unwrap_or_default();
        match (is_thought, text.is_empty(), signature) {
            (true, _, signature) => {
                let it = Reasoning { encrypted: signature, ..thought(model.as_ref(), text) };
                read.push(Part::Reasoning(it), part.rest()?);
            }
            (false, true, Some(signature)) => {
                let it = Reasoning { encrypted: Some(signature), ..thought(model.as_ref(), "") };
                read.push(Part::Reasoning(it), part.rest()?);
            }
            (false, true, None) => {}
            (false, false, signature) => {
                signature.into_iter().for_each(|signature| read.sign(signature, model.as_ref()));
                read.push(Part::Text { text }, part.rest()?);
            }
        }
        Ok(())
    }

    fn call(&mut self, part: &mut Fielded<'_, 't>) -> Result<Call, Error> {
        let Some(raw) = part.fields.remove("functionCall") else {
            return Err(self.source.refuse(part.raw, format!("{} has no functionCall", part.here)));
        };
        let mut call = object(self.source, raw, &format!("{}.functionCall", part.here))?;
        let name: Text = call.needed("name")?;
        let id = self.awaited.call(call.given("id")?, &name);
        let args = call.fields.remove("args").map(|raw| raw.get()).filter(|args| *args != "null").unwrap_or("{}");
        let rest = call.rest()?;
        if !rest.is_empty() {
            part.left.insert("call".into(), Value::Object(rest));
        }
        Ok(Call { id: id.into(), name, arguments: Arguments::Object(args.into()) })
    }

    /// Reads a part of what the user said or shows, and returns whose it is, and its fields without a place.
    fn shown(&mut self, mut part: Fielded<'_, 't>) -> Result<Shown, Error> {
        let shown = match kind_of(&part)? {
            Some("functionResponse") => {
                let result = self.result(&mut part)?;
                return Ok((Role::Tool, Some(Part::Result(result)), part.rest()?));
            }
            Some("text") => {
                let text: Text = part.needed("text")?;
                (!text.is_empty()).then_some(Part::Text { text })
            }
            Some("inlineData") => {
                let read = |inner: &mut Fielded<'_, 't>| Ok((inner.needed("mimeType")?, inner.needed("data")?));
                let (kind, data): (String, String) = self.inner(&mut part, "inlineData", read)?;
                Some(part_of(&kind, format!("data:{kind};base64,{data}").into()))
            }
            Some("fileData") => {
                let read = |inner: &mut Fielded<'_, 't>| Ok((inner.given("mimeType")?, inner.needed("fileUri")?));
                let (kind, uri): (Option<String>, Text) = self.inner(&mut part, "fileData", read)?;
                let of_kind = part_of(kind.as_deref().unwrap_or_default(), uri.clone());
                part.left.extend(kind.map(|kind| ("mimeType".to_string(), Value::from(kind))));
                Some(if is_held(&uri) { Part::File { id: uri } } else { of_kind })
            }
            _ => {
                let whole = opaque(&part);
                part.fields.clear();
                Some(whole)
            }
        };
        Ok((Role::User, shown, part.rest()?))
    }

    /// Reads an object within a part; what it holds beyond that is dropped only if it says nothing.
    fn inner<T>(
        &self,
        part: &mut Fielded<'_, 't>,
        name: &str,
        read: impl FnOnce(&mut Fielded<'_, 't>) -> Result<T, Error>,
    ) -> Result<T, Error> {
        let Some(raw) = part.fields.remove(name) else {
            return Err(self.source.refuse(part.raw, format!("{} has no {name}", part.here)));
        };
        let mut inner = object(self.source, raw, &format!("{}.{name}", part.here))?;
        let found = read(&mut inner)?;
        let rest = inner.rest()?;
        if !rest.is_empty() {
            part.left.insert("data".into(), Value::Object(rest));
        }
        Ok(found)
    }

    fn result(&mut self, part: &mut Fielded<'_, 't>) -> Result<ToolResult, Error> {
        let Some(raw) = part.fields.remove("functionResponse") else {
            return Err(self.source.refuse(part.raw, format!("{} has no functionResponse", part.here)));
        };
        let here = format!("{}.functionResponse", part.here);
        let mut response = object(self.source, raw, &here)?;
        let name: Option<String> = response.given("name")?;
        let id = self.awaited.answer(response.given("id")?, name.as_deref());
        let mut result = ToolResult { call: id.into(), content: Vec::new(), is_error: false };
        if let Some(raw) = response.fields.remove("response").filter(|raw| raw.get() != "null") {
            if !raw.get().starts_with('{') {
                return Err(self.source.refuse(raw, format!("{here}.response is no object")));
            }
            let (text, is_error, is_whole) = outcome(raw.get());
            result.is_error = is_error;
            result.content.extend((!text.is_empty()).then_some(Piece::Text { text }));
            if is_whole {
                part.left.insert("response".into(), "object".into());
            }
        }
        let pieces: Option<Vec<&RawValue>> = response.given("parts")?;
        let mut blocks = Map::new();
        for raw in pieces.unwrap_or_default() {
            let (piece, block) = self.piece(raw, &here)?;
            blocks.extend(block.map(|block| (result.content.len().to_string(), block)));
            result.content.push(piece);
        }
        if !blocks.is_empty() {
            part.left.insert("blocks".into(), Value::Object(blocks));
        }
        let rest = response.rest()?;
        if !rest.is_empty() {
            part.left.insert("call".into(), Value::Object(rest));
        }
        Ok(result)
    }

    /// A piece of a result, and the part itself where the piece only names it.
    fn piece(&self, raw: &'t RawValue, here: &str) -> Result<(Piece, Option<Value>), Error> {
        let mut part = object(self.source, raw, here)?;
        if let Some(raw) = part.fields.remove("inlineData") {
            let mut data = object(self.source, raw, here)?;
            let (kind, data): (String, String) = (data.needed("mimeType")?, data.needed("data")?);
            if let Part::Image(media) = part_of(&kind, format!("data:{kind};base64,{data}").into()) {
                return Ok((Piece::Image(media), None));
            }
            return Ok((named(&kind), Some(self.source.read(part.raw, here)?)));
        }
        let kind = part.fields.keys().next().cloned().unwrap_or_default();
        Ok((named(&kind), Some(self.source.read(part.raw, here)?)))
    }
}

fn named(kind: &str) -> Piece {
    Piece::Text { text: format!("[{}]", shortened(kind)).into() }
}

/// Which of the things that a part can be it is; several at once are none.
fn kind_of(part: &Fielded<'_, '_>) -> Result<Option<&'static str>, Error> {
    let is_there = |kind: &&&str| part.fields.get(**kind).is_some_and(|raw| raw.get() != "null");
    let found: Vec<&&'static str> = KINDS.iter().filter(is_there).collect();
    match found[..] {
        [] => Ok(None),
        [kind] => Ok(Some(*kind)),
        _ => Err(part.source.refuse(part.raw, format!("{} sets more than one of {found:?}", part.here))),
    }
}

fn is_signed(part: &Fielded<'_, '_>) -> bool {
    part.fields.get("thoughtSignature").is_some_and(|raw| raw.get() != "null")
}

/// A part that goes back as it came.
fn opaque(part: &Fielded<'_, '_>) -> Part {
    Part::Opaque { provider: PROVIDER.into(), payload: part.raw.get().into() }
}

/// What the object of a response says: its text, whether that is an error, and whether it is the object itself.
fn outcome(object: &str) -> (Text, bool, bool) {
    let fields: std::collections::BTreeMap<String, &RawValue> = serde_json::from_str(object).unwrap_or_default();
    let text = |name: &str| fields.get(name).and_then(|raw| serde_json::from_str::<String>(raw.get()).ok());
    match (fields.len(), text("output"), text("error")) {
        (0, ..) => ("".into(), false, true),
        (1, Some(output), _) => (output.into(), false, false),
        (1, _, Some(error)) => (error.into(), true, false),
        _ => (object.into(), fields.get("error").is_some_and(|raw| raw.get() != "null"), true),
    }
}
