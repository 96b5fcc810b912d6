//! HTTP/1.1 as bytes: as much of it as clients of these providers use.

use super::provider::{Answer, BODY_BYTES_MAX, Incoming};
use std::io::{self, BufRead, Read, Write};

const HEAD_BYTES_MAX: u64 = 64 * 1024;

/// What stands on a connection next.
pub(super) enum Next {
    Request(Incoming),
    TooLarge(Incoming),
    End,
}

/// Reads one request. The writer is for clients that ask whether they may send the body.
pub(super) fn read(reader: &mut impl BufRead, writer: &mut impl Write) -> io::Result<Next> {
    let mut left = HEAD_BYTES_MAX;
    let Some(first) = line(reader, &mut left)? else { return Ok(Next::End) };
    let mut words = first.split_whitespace();
    let (Some(method), Some(path)) = (words.next(), words.next()) else { return Err(malformed("request line")) };
    let mut request = Incoming { method: method.to_owned(), path: path.to_owned(), ..Incoming::default() };
    loop {
        let header = line(reader, &mut left)?.ok_or_else(|| malformed("head"))?;
        if header.is_empty() {
            break;
        }
        let (name, value) = header.split_once(':').ok_or_else(|| malformed("header"))?;
        request.headers.push((name.trim().to_ascii_lowercase(), value.trim().to_owned()));
    }
    if request.header("expect").is_some_and(|value| value.eq_ignore_ascii_case("100-continue")) {
        writer.write_all(b"HTTP/1.1 100 Continue\r\n\r\n")?;
    }
    let is_chunked = request.header("transfer-encoding").is_some_and(|value| value.eq_ignore_ascii_case("chunked"));
    let length = request.header("content-length").map(str::parse::<usize>).transpose();
    let length = length.map_err(|_| malformed("content-length"))?;
    let body = if is_chunked { chunks(reader)? } else { sized(reader, length.unwrap_or(0))? };
    Ok(match body {
        Some(body) => Next::Request(Incoming { body, ..request }),
        None => Next::TooLarge(request),
    })
}

fn malformed(what: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, format!("malformed {what}"))
}

/// Reads a line without its end, or nothing at the end of the connection.
fn line(reader: &mut impl BufRead, left: &mut u64) -> io::Result<Option<String>> {
    let mut bytes = Vec::new();
    let read = reader.take(*left).read_until(b'\n', &mut bytes)?;
    *left -= read as u64;
    if bytes.pop() != Some(b'\n') {
        return if read == 0 && *left > 0 { Ok(None) } else { Err(malformed("head")) };
    }
    if bytes.last() == Some(&b'\r') {
        bytes.pop();
    }
    String::from_utf8(bytes).map(Some).map_err(|_| malformed("head"))
}

fn sized(reader: &mut impl BufRead, length: usize) -> io::Result<Option<Vec<u8>>> {
    if length > BODY_BYTES_MAX {
        return Ok(None);
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body)?;
    Ok(Some(body))
}

fn chunks(reader: &mut impl BufRead) -> io::Result<Option<Vec<u8>>> {
    let mut body = Vec::new();
    loop {
        let mut left = HEAD_BYTES_MAX;
        let size = line(reader, &mut left)?.ok_or_else(|| malformed("chunk"))?;
        let size = size.split(';').next().unwrap_or_default().trim();
        let size = usize::from_str_radix(size, 16).map_err(|_| malformed("chunk"))?;
        if size > BODY_BYTES_MAX - body.len() {
            return Ok(None);
        }
        let start = body.len();
        body.resize(start + size, 0);
        reader.read_exact(&mut body[start..])?;
        line(reader, &mut left)?;
        if size == 0 {
            return Ok(Some(body));
        }
    }
}

/// Whether the connection can be used again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum After {
    Keep,
    Drop,
}

/// Sends an answer, waiting and breaking off where it says so.
pub(super) fn write(writer: &mut impl Write, answer: &Answer) -> io::Result<After> {
    let delivery = &answer.delivery;
    let wait =
        |sent: usize| delivery.gates.iter().filter(|(after, _)| *after == sent).for_each(|(_, gate)| gate.pass());
    wait(0);
    let mut head = format!("HTTP/1.1 {} {}\r\n", answer.status, reason(answer.status));
    for (name, value) in &answer.headers {
        head += &format!("{name}: {value}\r\n");
    }
    if !answer.streams {
        let body = answer.text();
        head += &format!("content-type: application/json\r\ncontent-length: {}\r\n\r\n", body.len());
        writer.write_all(head.as_bytes())?;
        let cut = delivery.cut_after.is_some();
        writer.write_all(&body.as_bytes()[..if cut { body.len() / 2 } else { body.len() }])?;
        writer.flush()?;
        return Ok(if cut { After::Drop } else { After::Keep });
    }
    head += match answer.in_lines {
        true => "content-type: application/x-ndjson\r\ntransfer-encoding: chunked\r\n\r\n",
        false => {
            "content-type: text/event-stream; charset=utf-8\r\ncache-control: no-cache\r\ntransfer-encoding: chunked\r\n\r\n"
        }
    };
    writer.write_all(head.as_bytes())?;
    for sent in 0..=answer.events.len() {
        if sent > 0 {
            wait(sent);
        }
        if delivery.garbled_after == Some(sent) {
            chunk(writer, if answer.in_lines { "{\"model\": \"mess\n" } else { "data: {\"type\": \"mess\n\n" })?;
        }
        if delivery.cut_after == Some(sent) {
            writer.flush()?;
            return Ok(After::Drop);
        }
        if let Some(event) = answer.events.get(sent) {
            chunk(writer, event)?;
        }
    }
    writer.write_all(b"0\r\n\r\n")?;
    writer.flush()?;
    Ok(After::Keep)
}

fn chunk(writer: &mut impl Write, text: &str) -> io::Result<()> {
    write!(writer, "{:x}\r\n{text}\r\n", text.len())?;
    writer.flush()
}

fn reason(status: u16) -> &'static str {
    match status {
        200 => "OK",
        400 => "Bad Request",
        401 => "Unauthorized",
        404 => "Not Found",
        413 => "Payload Too Large",
        429 => "Too Many Requests",
        500 => "Internal Server Error",
        503 => "Service Unavailable",
        529 => "Overloaded",
        _ => "Unknown",
    }
}
