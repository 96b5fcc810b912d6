//! Values of statements: numbers, texts and bytes, alone or in lists. That is all that the tables hold.
//!
//! PostgreSQL's texts can't hold the character NUL. Here, and nowhere else, it is spelled as two others, in such a way
//! that every text comes back as it was, and that texts keep their order.

use super::fault;
use crate::error::Error;
use crate::store::sqlite::found;
use recto::digest::Digest;
use recto::entry::Text;
use std::borrow::Cow;
use std::error::Error as StdError;
use tokio_postgres::Row;
use tokio_postgres::types::private::BytesMut;
use tokio_postgres::types::{IsNull, ToSql, Type, to_sql_checked};

/// Begins a character that is spelled as two.
const MARK: char = '\u{1}';
const NUL_AFTER_MARK: char = '\u{1}';
const MARK_AFTER_MARK: char = '\u{2}';

/// A value that goes with a statement.
#[derive(Debug)]
pub(super) enum Value<'v> {
    Number(i64),
    MaybeNumber(Option<i64>),
    Text(Cow<'v, str>),
    MaybeText(Option<&'v str>),
    Bytes(Vec<u8>),
    Numbers(Vec<i64>),
    Texts(Vec<Cow<'v, str>>),
    MaybeTexts(Vec<Option<&'v str>>),
    Blobs(Vec<Vec<u8>>),
    MaybeBlobs(Vec<Option<Vec<u8>>>),
}

/// Lists the values of a statement.
macro_rules! values {
    ($($value:expr),* $(,)?) => { vec![$($crate::store::postgres::value::Value::from($value)),*] };
}
pub(super) use values;

impl Value<'_> {
    /// Returns the type that the server takes it for.
    pub(super) fn kind(&self) -> Type {
        match self {
            Value::Number(_) | Value::MaybeNumber(_) => Type::INT8,
            Value::Text(_) | Value::MaybeText(_) => Type::TEXT,
            Value::Bytes(_) => Type::BYTEA,
            Value::Numbers(_) => Type::INT8_ARRAY,
            Value::Texts(_) | Value::MaybeTexts(_) => Type::TEXT_ARRAY,
            Value::Blobs(_) | Value::MaybeBlobs(_) => Type::BYTEA_ARRAY,
        }
    }
}

impl ToSql for Value<'_> {
    fn to_sql(&self, kind: &Type, out: &mut BytesMut) -> Result<IsNull, Box<dyn StdError + Sync + Send>> {
        match self {
            Value::Number(number) => number.to_sql(kind, out),
            Value::MaybeNumber(number) => number.to_sql(kind, out),
            Value::Text(text) => spelled(text).to_sql(kind, out),
            Value::MaybeText(text) => text.map(spelled).to_sql(kind, out),
            Value::Bytes(bytes) => bytes.to_sql(kind, out),
            Value::Numbers(numbers) => numbers.to_sql(kind, out),
            Value::Texts(texts) => texts.iter().map(|text| spelled(text)).collect::<Vec<_>>().to_sql(kind, out),
            Value::MaybeTexts(texts) => {
                texts.iter().map(|text| text.map(spelled)).collect::<Vec<_>>().to_sql(kind, out)
            }
            Value::Blobs(blobs) => blobs.to_sql(kind, out),
            Value::MaybeBlobs(blobs) => blobs.to_sql(kind, out),
        }
    }

    fn accepts(_: &Type) -> bool {
        true
    }

    to_sql_checked!();
}

impl From<i64> for Value<'_> {
    fn from(number: i64) -> Self {
        Value::Number(number)
    }
}

impl From<u64> for Value<'_> {
    fn from(number: u64) -> Self {
        Value::Number(found::integer(number))
    }
}

impl From<usize> for Value<'_> {
    fn from(number: usize) -> Self {
        Value::Number(i64::try_from(number).unwrap_or(i64::MAX))
    }
}

impl From<Option<i64>> for Value<'_> {
    fn from(number: Option<i64>) -> Self {
        Value::MaybeNumber(number)
    }
}

impl<'v> From<&'v str> for Value<'v> {
    fn from(text: &'v str) -> Self {
        Value::Text(Cow::Borrowed(text))
    }
}

impl From<String> for Value<'_> {
    fn from(text: String) -> Self {
        Value::Text(Cow::Owned(text))
    }
}

impl<'v> From<Option<&'v str>> for Value<'v> {
    fn from(text: Option<&'v str>) -> Self {
        Value::MaybeText(text)
    }
}

impl From<Digest> for Value<'_> {
    fn from(digest: Digest) -> Self {
        Value::Bytes(digest.to_bytes().to_vec())
    }
}

impl From<[u8; 16]> for Value<'_> {
    fn from(bytes: [u8; 16]) -> Self {
        Value::Bytes(bytes.to_vec())
    }
}

impl From<Vec<i64>> for Value<'_> {
    fn from(numbers: Vec<i64>) -> Self {
        Value::Numbers(numbers)
    }
}

impl<'v> From<Vec<&'v str>> for Value<'v> {
    fn from(texts: Vec<&'v str>) -> Self {
        Value::Texts(texts.into_iter().map(Cow::Borrowed).collect())
    }
}

impl From<Vec<String>> for Value<'_> {
    fn from(texts: Vec<String>) -> Self {
        Value::Texts(texts.into_iter().map(Cow::Owned).collect())
    }
}

impl<'v> From<Vec<Option<&'v str>>> for Value<'v> {
    fn from(texts: Vec<Option<&'v str>>) -> Self {
        Value::MaybeTexts(texts)
    }
}

impl From<Vec<Digest>> for Value<'_> {
    fn from(digests: Vec<Digest>) -> Self {
        Value::Blobs(digests.into_iter().map(|digest| digest.to_bytes().to_vec()).collect())
    }
}

impl From<Vec<Vec<u8>>> for Value<'_> {
    fn from(blobs: Vec<Vec<u8>>) -> Self {
        Value::Blobs(blobs)
    }
}

impl From<Vec<Option<Vec<u8>>>> for Value<'_> {
    fn from(blobs: Vec<Option<Vec<u8>>>) -> Self {
        Value::MaybeBlobs(blobs)
    }
}

/// Spells a text without NUL.
fn spelled(text: &str) -> Cow<'_, str> {
    if text.bytes().all(|byte| byte > MARK as u8) {
        return Cow::Borrowed(text);
    }
    let mut spelled = String::with_capacity(text.len() + 16);
    for character in text.chars() {
        match character {
            '\0' => spelled.extend([MARK, NUL_AFTER_MARK]),
            MARK => spelled.extend([MARK, MARK_AFTER_MARK]),
            other => spelled.push(other),
        }
    }
    Cow::Owned(spelled)
}

/// Reads a text that was spelled without NUL.
fn read(spelled: &str) -> Result<Cow<'_, str>, Error> {
    if !spelled.contains(MARK) {
        return Ok(Cow::Borrowed(spelled));
    }
    let mut text = String::with_capacity(spelled.len());
    let mut characters = spelled.chars();
    while let Some(character) = characters.next() {
        match (character == MARK).then(|| characters.next()) {
            None => text.push(character),
            Some(Some(NUL_AFTER_MARK)) => text.push('\0'),
            Some(Some(MARK_AFTER_MARK)) => text.push(MARK),
            Some(_) => return Err(fault::corrupt("a text is spelled in a way that nobody writes")),
        }
    }
    Ok(Cow::Owned(text))
}

/// Returns a number of a row.
pub(super) fn number(row: &Row, at: usize) -> Result<i64, Error> {
    Ok(row.try_get(at)?)
}

/// Returns a number of a row that can't be negative.
pub(super) fn whole(row: &Row, at: usize) -> Result<u64, Error> {
    found::whole(number(row, at)?)
}

/// Returns a text of a row.
pub(super) fn text(row: &Row, at: usize) -> Result<String, Error> {
    Ok(read(row.try_get(at)?)?.into_owned())
}

/// Returns a text of a row as it is shared.
pub(super) fn shared(row: &Row, at: usize) -> Result<Text, Error> {
    Ok(read(row.try_get(at)?)?.as_ref().into())
}

/// Returns a text of a row, if there is one.
pub(super) fn maybe_text(row: &Row, at: usize) -> Result<Option<String>, Error> {
    let text: Option<&str> = row.try_get(at)?;
    text.map(|text| Ok(read(text)?.into_owned())).transpose()
}

/// Returns a digest of a row.
pub(super) fn digest(row: &Row, at: usize) -> Result<Digest, Error> {
    found::digest(row.try_get(at)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_text_comes_back_as_it_was_and_texts_keep_their_order() {
        let letters = ['\0', '\u{1}', '\u{2}', 'a'];
        let mut texts = vec![String::new()];
        for _ in 0..4 {
            let longer: Vec<String> =
                texts.iter().flat_map(|text| letters.map(|letter| format!("{text}{letter}"))).collect();
            texts.extend(longer);
        }
        texts.sort();
        texts.dedup();
        let spelled: Vec<String> = texts.iter().map(|text| spelled(text).into_owned()).collect();
        assert!(spelled.is_sorted_by(|a, b| a < b));
        assert!(spelled.iter().all(|text| !text.contains('\0')));
        for (text, spelled) in texts.iter().zip(&spelled) {
            assert_eq!(read(spelled).expect("it was spelled here"), text.as_str());
        }
    }
}
