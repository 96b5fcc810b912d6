//! How a span is written, by OpenTelemetry's own types.

use opentelemetry_proto::tonic::common::v1::any_value::Value;
use opentelemetry_proto::tonic::common::v1::{AnyValue, ArrayValue, KeyValue};
use opentelemetry_proto::tonic::trace::v1::{Span, Status, status::StatusCode};
use std::time::{SystemTime, UNIX_EPOCH};

/// The longest state of other systems that goes along.
const STATE_CHARS_MAX: usize = 512;

/// Where a span stands: its trace, itself, and what it is part of.
#[derive(Clone, Debug)]
pub(super) struct Stand {
    pub(super) trace: [u8; 16],
    pub(super) span: [u8; 8],
    pub(super) parent: Option<[u8; 8]>,
    /// What other systems say of the trace.
    pub(super) state: String,
}

impl Stand {
    /// Returns a span of its own, or part of what a `traceparent` names; nothing if that one is not recorded.
    pub(super) fn of(parent: Option<&str>, state: Option<&str>) -> Option<Stand> {
        let state = state.filter(|state| state.len() <= STATE_CHARS_MAX).unwrap_or_default().to_string();
        match parent.and_then(read) {
            Some((_, _, flags)) if flags & 1 == 0 => None,
            Some((trace, parent, _)) => Some(Stand { trace, span: random()?, parent: Some(parent), state }),
            // What can't be read counts for nothing, and neither does what belongs to it.
            None => Some(Stand { trace: random()?, span: random()?, parent: None, state: String::new() }),
        }
    }

    /// Returns a span that is part of this one.
    pub(super) fn within(&self) -> Option<Stand> {
        Some(Stand { span: random()?, parent: Some(self.span), ..self.clone() })
    }

    /// Returns what is passed on.
    pub(super) fn traceparent(&self) -> String {
        format!("00-{}-{}-01", hex(&self.trace), hex(&self.span))
    }

    /// Begins to write it.
    pub(super) fn span(&self, name: String, kind: i32, since: SystemTime) -> Span {
        Span {
            trace_id: self.trace.to_vec(),
            span_id: self.span.to_vec(),
            parent_span_id: self.parent.map(Vec::from).unwrap_or_default(),
            trace_state: self.state.clone(),
            // Recorded; whether the parent is elsewhere is not said.
            flags: 1,
            name,
            kind,
            start_time_unix_nano: nanos(since),
            end_time_unix_nano: nanos(SystemTime::now()),
            ..Span::default()
        }
    }
}

/// Says that something failed, in a word.
pub(super) fn failed(span: &mut Span, kind: &str) {
    span.attributes.push(text("error.type", kind));
    span.status = Some(Status { code: StatusCode::Error.into(), message: String::new() });
}

pub(super) fn text(key: &'static str, value: &str) -> KeyValue {
    attribute(key, Value::StringValue(value.into()))
}

pub(super) fn number(key: &'static str, value: u64) -> KeyValue {
    attribute(key, Value::IntValue(i64::try_from(value).unwrap_or(i64::MAX)))
}

pub(super) fn texts(key: &'static str, values: &[&str]) -> KeyValue {
    let value = |text: &&str| AnyValue { value: Some(Value::StringValue((*text).into())) };
    attribute(key, Value::ArrayValue(ArrayValue { values: values.iter().map(value).collect() }))
}

fn attribute(key: &'static str, value: Value) -> KeyValue {
    KeyValue { key: key.into(), value: Some(AnyValue { value: Some(value) }), ..KeyValue::default() }
}

fn nanos(at: SystemTime) -> u64 {
    at.duration_since(UNIX_EPOCH).map_or(0, |since| u64::try_from(since.as_nanos()).unwrap_or(u64::MAX))
}

fn random<const N: usize>() -> Option<[u8; N]> {
    let mut bytes = [0; N];
    getrandom::fill(&mut bytes).ok()?;
    Some(bytes)
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Reads a `traceparent` as the W3C has it: version, trace, span, flags. Later versions may say more behind that.
fn read(text: &str) -> Option<([u8; 16], [u8; 8], u8)> {
    let mut parts = text.split('-');
    let version = bytes::<1>(parts.next()?)?[0];
    let (trace, span) = (bytes::<16>(parts.next()?)?, bytes::<8>(parts.next()?)?);
    let flags = bytes::<1>(parts.next()?)?[0];
    let is_known = version == 0 && parts.next().is_none() || (1..0xff).contains(&version);
    (is_known && trace != [0; 16] && span != [0; 8]).then_some((trace, span, flags))
}

fn bytes<const N: usize>(hex: &str) -> Option<[u8; N]> {
    let is_hex = hex.len() == 2 * N && hex.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
    let mut bytes = [0; N];
    for (at, byte) in bytes.iter_mut().enumerate().take(if is_hex { N } else { 0 }) {
        *byte = u8::from_str_radix(&hex[2 * at..2 * at + 2], 16).ok()?;
    }
    is_hex.then_some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_parent_is_read_as_the_w3c_has_it() {
        let (trace, span) = ("0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331");
        let stand = Stand::of(Some(&format!("00-{trace}-{span}-01")), Some("a=b")).unwrap();
        assert_eq!((hex(&stand.trace), stand.parent.map(|it| hex(&it))), (trace.into(), Some(span.into())));
        assert_eq!(stand.state, "a=b");
        let within = stand.within().unwrap();
        assert_eq!((within.trace, within.parent), (stand.trace, Some(stand.span)));
        assert_eq!(stand.traceparent(), format!("00-{trace}-{}-01", hex(&stand.span)));
        assert!(Stand::of(Some(&format!("00-{trace}-{span}-00")), None).is_none(), "it is not recorded");
        assert!(Stand::of(Some(&format!("01-{trace}-{span}-01-more")), None).unwrap().parent.is_some());
        let none = "00000000000000000000000000000000";
        for wrong in [
            String::new(),
            format!("00-{trace}-{span}"),
            format!("00-{trace}-{span}-01-more"),
            format!("ff-{trace}-{span}-01"),
            format!("00-{none}-{span}-01"),
            format!("00-{trace}-{}-01", &none[..16]),
            format!("00-{}-{span}-01", trace.to_uppercase()),
            format!("00-{trace}ä-{span}-01"),
        ] {
            let stand = Stand::of(Some(&wrong), Some("a=b")).unwrap();
            assert!(stand.parent.is_none() && stand.state.is_empty(), "{wrong}");
        }
    }
}
