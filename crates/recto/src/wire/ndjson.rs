//! Lines of JSON: the framing of a streamed response where events have none.

use super::sse::EVENT_BYTES_MAX;
use crate::error::Error;

/// Reads lines out of bytes that come in pieces of any size.
#[derive(Debug, Default)]
pub struct Reader {
    line: Vec<u8>,
}

impl Reader {
    /// Takes some bytes, and returns the lines that are complete now. Bytes that are no text are replaced.
    pub fn push(&mut self, bytes: &[u8]) -> Result<Vec<String>, Error> {
        let mut lines = Vec::new();
        let mut rest = bytes;
        while let Some(end) = rest.iter().position(|byte| *byte == b'\n') {
            self.line.extend_from_slice(&rest[..end]);
            lines.extend(self.finish());
            rest = &rest[end + 1..];
        }
        self.line.extend_from_slice(rest);
        if self.line.len() > EVENT_BYTES_MAX {
            return Err(Error::input(format!("a line of more than {} MiB", EVENT_BYTES_MAX >> 20)));
        }
        Ok(lines)
    }

    /// Returns what came behind the last end of a line, if anything did.
    pub fn finish(&mut self) -> Option<String> {
        let line = std::mem::take(&mut self.line);
        let line = String::from_utf8_lossy(&line);
        Some(line.trim()).filter(|line| !line.is_empty()).map(str::to_string)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_the_same_however_their_bytes_are_cut() {
        let text = "{\"a\":1}\r\n\n {\"b\":\"\u{fc}\"}\n{\"c\":3}";
        for size in 1..text.len() {
            let mut reader = Reader::default();
            let mut lines: Vec<String> =
                text.as_bytes().chunks(size).flat_map(|bytes| reader.push(bytes).unwrap()).collect();
            lines.extend(reader.finish());
            assert_eq!(lines, ["{\"a\":1}", "{\"b\":\"\u{fc}\"}", "{\"c\":3}"], "in pieces of {size}");
            assert_eq!(reader.finish(), None);
        }
    }
}
