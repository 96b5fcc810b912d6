//! Names for everything up to a place: equal exactly when all of it is equal.

use serde_json::{Number, Value};
use std::hash::{DefaultHasher, Hash, Hasher};

/// Returns the name of a beginning with one more piece behind it.
pub(super) fn chain(before: u128, piece: &str) -> u128 {
    let half = |salt: u8| {
        let mut hasher = DefaultHasher::new();
        (salt, before, piece).hash(&mut hasher);
        u128::from(hasher.finish())
    };
    half(0) << 64 | half(1)
}

/// Returns an id in a provider's style: the prefix, and letters that depend on the number only.
pub(super) fn id(prefix: &str, number: u64, letters: usize) -> String {
    const ALPHABET: &[u8; 62] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
    let mut text = prefix.to_owned();
    let mut state = chain(u128::from(number), prefix);
    for _ in 0..letters {
        text.push(char::from(ALPHABET[usize::try_from(state % 62).expect("below 62")]));
        state /= 62;
        if state == 0 {
            state = chain(u128::from(number), &text);
        }
    }
    text
}

/// Returns the value with numbers in one form, so that `1` and `1.0` are the same.
pub(super) fn plain_numbers(value: &Value) -> Value {
    match value {
        Value::Number(number) => {
            let whole = number.as_f64().filter(|float| float.fract() == 0.0 && float.abs() < 9e15);
            Value::Number(whole.map_or(number.clone(), |float| Number::from(float as i64)))
        }
        Value::Array(list) => list.iter().map(plain_numbers).collect(),
        Value::Object(map) => map.iter().map(|(key, value)| (key.clone(), plain_numbers(value))).collect(),
        other => other.clone(),
    }
}
