use super::{FIELDS, Outline, Values, text};
use crate::wire::Wire;
use serde::Deserialize;
use serde_json::value::RawValue;
use std::ops::Range;

/// Where things stand in a body, so that one that begins with the same bytes is walked over only behind them. Every call of
/// a conversation sends what the one before has sent, and a little more.
///
/// ```
/// use recto::Wire;
/// use recto::wire::Ending;
///
/// let before = r#"{"model":"gpt-4o","messages":[{"role":"user","content":"Look!"}]}"#;
/// let layout = Wire::OpenaiChat.outline(before)?.layout().expect("it has a list of messages");
/// let body = r#"{"model":"gpt-4o","messages":[{"role":"user","content":"Look!"},{"role":"assistant","content":"Yes."}]}"#;
/// let outline = layout.outline(body, 1, Ending::Same).expect("it begins the same");
/// assert_eq!(outline.elements.len(), 2);
/// assert_eq!(outline.model.as_deref(), Some("gpt-4o"));
/// # Ok::<(), recto::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Layout {
    wire: Wire,
    /// The fields that stand before the list.
    before_list: Places,
    /// All fields, wherever they stand.
    fields: Places,
    elements: Vec<Range<usize>>,
    leading: usize,
    /// The place of the bracket that closes the list.
    list_end: usize,
    /// How long the body is.
    length: usize,
}

/// Where the values of fields stand.
type Places = [Option<Range<usize>>; FIELDS];

/// What stands behind the messages of a body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// The same bytes as in the other body, from the bracket that closes the list on.
    Same,
    /// Something else.
    Other,
}

impl Outline<'_> {
    /// Returns where things stand in the body; nothing, where its messages are no list, or there are none.
    pub fn layout(&self) -> Option<Layout> {
        let place = |value: &str| {
            let start = value.as_ptr() as usize - self.body.as_ptr() as usize;
            start..start + value.len()
        };
        let elements: Vec<Range<usize>> = self.elements.iter().map(|element| place(element)).collect();
        let list_end = skip_space(self.body, elements.last()?.end);
        Some(Layout {
            wire: self.wire,
            before_list: self.before_list?.map(|value| value.map(place)),
            fields: self.fields.map(|value| value.map(place)),
            elements,
            leading: self.leading,
            list_end,
            length: self.body.len(),
        })
    }
}

impl Layout {
    /// Returns the format of the body.
    pub fn wire(&self) -> Wire {
        self.wire
    }

    /// Returns where each element stands.
    pub fn elements(&self) -> &[Range<usize>] {
        &self.elements
    }

    /// Returns how many of the first elements are instructions.
    pub fn leading(&self) -> usize {
        self.leading
    }

    /// Returns what stands behind the elements, from the bracket that closes their list on.
    pub fn ending(&self) -> Range<usize> {
        self.list_end..self.length
    }

    /// Outlines a body whose bytes are the same up to the end of so many elements, just as [`Wire::outline`] does. Nothing
    /// is returned where that has to walk over all of it, be it to say what is wrong.
    pub fn outline<'b>(&self, body: &'b str, elements: usize, ending: Ending) -> Option<Outline<'b>> {
        let known = self.elements.get(..elements)?;
        let before: Values<'b> = values(body, &self.before_list, |place| Some(place.clone()))?;
        let mut list = Vec::with_capacity(self.elements.len() + 2);
        for place in known {
            list.push(body.get(place.clone())?);
        }
        let mut rest = Rest { body, at: known.last()?.end };
        while rest.mark(b"],")? == b',' {
            list.push(rest.value()?);
        }
        let list_end = rest.at - 1;
        let fields = match ending {
            Ending::Same if list_end + self.ending().len() == body.len() => {
                values(body, &self.fields, |place| self.moved(place, list_end))?
            }
            _ => rest.fields(self.wire, before)?,
        };
        let is_leading = |element: &&&str| self.wire.is_instruction(element);
        let leading = match self.leading < elements {
            true => self.leading,
            false => list.iter().take_while(is_leading).count(),
        };
        self.wire.outlined(body, fields, Some(before), list, leading).ok()
    }

    /// Where a value stands if the list ends elsewhere.
    fn moved(&self, place: &Range<usize>, list_end: usize) -> Option<Range<usize>> {
        if place.start < self.list_end {
            return Some(place.clone());
        }
        let start = list_end + (place.start - self.list_end);
        Some(start..start + place.len())
    }
}

fn values<'b>(
    body: &'b str,
    places: &Places,
    placed: impl Fn(&Range<usize>) -> Option<Range<usize>>,
) -> Option<Values<'b>> {
    let mut values = [None; FIELDS];
    for (value, place) in values.iter_mut().zip(places) {
        if let Some(place) = place {
            *value = Some(body.get(placed(place)?)?);
        }
    }
    Some(values)
}

/// What was not walked over yet.
struct Rest<'b> {
    body: &'b str,
    at: usize,
}

impl<'b> Rest<'b> {
    /// Goes past a mark, which must be one of these.
    fn mark(&mut self, marks: &[u8]) -> Option<u8> {
        let at = skip_space(self.body, self.at);
        let mark = self.body.as_bytes().get(at).copied().filter(|mark| marks.contains(mark))?;
        self.at = at + 1;
        Some(mark)
    }

    /// Goes past a value.
    fn value(&mut self) -> Option<&'b str> {
        let rest = self.body.get(self.at..)?;
        let mut deserializer = serde_json::Deserializer::from_str(rest);
        let value = <&RawValue>::deserialize(&mut deserializer).ok()?.get();
        self.at += value.as_ptr() as usize - rest.as_ptr() as usize + value.len();
        Some(value)
    }

    /// Goes past the fields behind the list, up to the end.
    fn fields(&mut self, wire: Wire, mut fields: Values<'b>) -> Option<Values<'b>> {
        let names = wire.names();
        while self.mark(b"},")? == b',' {
            let name = self.value().filter(|name| name.starts_with('"'))?;
            self.mark(b":")?;
            let (name, value) = (text(name).unwrap_or_default(), self.value()?);
            match names.iter().position(|own| *own == name) {
                // Another list of messages, which is the one that counts.
                Some(0) => return None,
                Some(at) => fields[at] = Some(value),
                None => {}
            }
        }
        (skip_space(self.body, self.at) == self.body.len()).then_some(fields)
    }
}

/// The next place where something stands that means something to JSON.
fn skip_space(body: &str, at: usize) -> usize {
    let is_space = |byte: &&u8| matches!(byte, b' ' | b'\n' | b'\t' | b'\r');
    at + body.as_bytes()[at.min(body.len())..].iter().take_while(is_space).count()
}
