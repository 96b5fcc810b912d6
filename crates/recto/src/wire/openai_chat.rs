//! OpenAI Chat Completions: `POST /v1/chat/completions`, and the many servers that speak it.

mod content;
mod decode;
mod encode;
mod plain;
mod reply;
mod rules;
mod stream;
mod validate;

pub use decode::decode;
pub(crate) use decode::{decode_elements, decode_plain};
pub(crate) use decode::{message, messages};
pub use encode::{encode, encode_messages, encode_with};
pub use reply::decode_reply;
pub(crate) use reply::{read_usage, stop};
pub(crate) use rules::Model;
pub use stream::Stream;
pub use validate::validate;

/// The longest text, in characters.
const TEXT_MAX: usize = 10_485_760;
