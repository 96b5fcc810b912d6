//! Ollama's own format: `POST /api/chat`. Contents are strings, arguments objects, and pictures bare base64.

mod decode;
mod encode;
mod messages;
mod reply;
mod stream;
mod validate;

pub use decode::decode;
pub use encode::{encode, encode_with};
pub use reply::decode_reply;
pub use stream::Stream;
pub use validate::validate;
