//! Messages on stdin, one on a line. What is too long or no JSON never reaches the library, which would pass over it in
//! silence: it is told on stderr, and a line takes its place that the library refuses in its answer.

use crate::talk;
use serde_json::Value;
use std::io;
use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, BufReader};

/// The longest message, in bytes.
pub(super) const MESSAGE_BYTES_MAX: usize = 1 << 20;
/// JSON, and no message.
const REFUSED: &[u8] = b"null\n";

/// Passes messages on, until there are no more.
pub(super) async fn heard(from: impl AsyncRead + Unpin, mut to: impl AsyncWrite + Unpin) -> io::Result<()> {
    let mut from = BufReader::new(from);
    let mut line = Vec::new();
    loop {
        line.clear();
        let mut bounded = (&mut from).take(MESSAGE_BYTES_MAX as u64 + 1);
        if bounded.read_until(b'\n', &mut line).await? == 0 {
            return to.shutdown().await;
        }
        if line.trim_ascii().is_empty() {
            continue;
        }
        if line.len() > MESSAGE_BYTES_MAX {
            talk::note(&format!("a message of more than {MESSAGE_BYTES_MAX} bytes was refused"));
            passed_over(&mut from, line.ends_with(b"\n")).await?;
            to.write_all(REFUSED).await?;
        } else if let Err(error) = serde_json::from_slice::<Value>(&line) {
            talk::note(&format!("a message that is no JSON was refused: {error}"));
            to.write_all(REFUSED).await?;
        } else {
            let end: &[u8] = if line.ends_with(b"\n") { b"" } else { b"\n" };
            to.write_all(&line).await?;
            to.write_all(end).await?;
        }
    }
}

/// Reads to the end of a line, and keeps nothing of it.
async fn passed_over(from: &mut (impl AsyncBufReadExt + Unpin), mut is_at_end: bool) -> io::Result<()> {
    while !is_at_end {
        let piece = from.fill_buf().await?;
        let end = piece.iter().position(|byte| *byte == b'\n');
        let taken = end.map_or(piece.len(), |end| end + 1);
        is_at_end = end.is_some() || piece.is_empty();
        from.consume(taken);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn passed_on(said: &[u8]) -> String {
        let mut out = Vec::new();
        heard(said, &mut out).await.unwrap();
        String::from_utf8(out).unwrap()
    }

    #[tokio::test]
    async fn what_is_no_message_is_replaced_and_the_next_one_is_heard() {
        assert_eq!(passed_on(b"{\"a\":1}\r\n\n{\"a\":\n{\"b\":2}").await, "{\"a\":1}\r\nnull\n{\"b\":2}\n");
        let long = format!("\"{}\"", "x".repeat(MESSAGE_BYTES_MAX));
        assert_eq!(passed_on(format!("{long}\n[1]\n{long}").as_bytes()).await, "null\n[1]\nnull\n");
        let deep = "[".repeat(100_000);
        assert_eq!(passed_on(format!("{deep}\n\u{fe}\n[1]\n").as_bytes()).await, "null\nnull\n[1]\n");
        let just = format!("\"{}\"\n", "x".repeat(MESSAGE_BYTES_MAX - 3));
        assert_eq!(passed_on(just.as_bytes()).await, just);
    }
}
