//! Server-sent events: the framing of streamed responses.

use crate::error::Error;

/// The longest event, in bytes.
pub const EVENT_BYTES_MAX: usize = 64 * 1024 * 1024;

/// One event.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Event {
    /// What kind of event it is, if it says so.
    pub name: Option<String>,
    /// Its data; several lines are joined by line breaks.
    pub data: String,
}

/// Reads events out of bytes that come in pieces of any size.
#[derive(Debug, Default)]
pub struct Reader {
    line: Vec<u8>,
    event: Event,
    has_data: bool,
    after_return: bool,
}

impl Reader {
    /// Takes some bytes, and returns the events that are complete now. Bytes that are no text are replaced.
    pub fn push(&mut self, bytes: &[u8]) -> Result<Vec<Event>, Error> {
        let (mut events, mut rest) = (Vec::new(), bytes);
        while let Some(first) = rest.first() {
            if std::mem::take(&mut self.after_return) && *first == b'\n' {
                rest = &rest[1..];
                continue;
            }
            let end = rest.iter().position(|byte| matches!(byte, b'\n' | b'\r'));
            let (line, behind) = rest.split_at(end.unwrap_or(rest.len()));
            self.bounded(line.len())?;
            let Some((mark, behind)) = behind.split_first() else {
                self.line.extend_from_slice(line);
                break;
            };
            self.after_return = *mark == b'\r';
            events.extend(self.ended(line));
            self.bounded(0)?;
            rest = behind;
        }
        Ok(events)
    }

    /// Refuses an event that would be too long with so many more bytes.
    fn bounded(&self, more: usize) -> Result<(), Error> {
        match self.line.len() + more + self.event.data.len() > EVENT_BYTES_MAX {
            true => Err(Error::input(format!("an event of more than {} MiB", EVENT_BYTES_MAX >> 20))),
            false => Ok(()),
        }
    }

    /// Takes the end of a line; most come in one piece.
    fn ended(&mut self, end: &[u8]) -> Option<Event> {
        if self.line.is_empty() {
            return self.line(end);
        }
        let mut line = std::mem::take(&mut self.line);
        line.extend_from_slice(end);
        self.line(&line)
    }

    /// Takes a whole line; an empty one ends the event.
    fn line(&mut self, line: &[u8]) -> Option<Event> {
        let line = String::from_utf8_lossy(line);
        if line.is_empty() {
            let event = std::mem::take(&mut self.event);
            return std::mem::take(&mut self.has_data).then_some(event);
        }
        let (field, value) = line.split_once(':').unwrap_or((&line, ""));
        let value = value.strip_prefix(' ').unwrap_or(value);
        match field {
            "event" => self.event.name = Some(value.into()),
            "data" => {
                if std::mem::replace(&mut self.has_data, true) {
                    self.event.data.push('\n');
                }
                self.event.data.push_str(value);
            }
            // Comments, ids and retry times say nothing about the response.
            _ => {}
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_are_the_same_however_their_bytes_are_cut() {
        let text =
            ": hello\r\nevent: one\r\ndata: {\"a\":\r\ndata:  1}\r\n\r\n\ndata: zwei \u{fc}\n\nid: 7\n\ndata\n\n";
        let event = |name: Option<&str>, data: &str| Event { name: name.map(Into::into), data: data.into() };
        let expected = [event(Some("one"), "{\"a\":\n 1}"), event(None, "zwei \u{fc}"), event(None, "")];
        for size in 1..text.len() {
            let mut reader = Reader::default();
            let events: Vec<Event> =
                text.as_bytes().chunks(size).flat_map(|bytes| reader.push(bytes).unwrap()).collect();
            assert_eq!(events, expected, "in pieces of {size}");
        }
    }
}
