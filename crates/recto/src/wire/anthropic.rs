//! Anthropic Messages: `POST /v1/messages`.

mod blocks;
mod decode;
mod encode;
mod marks;
mod media;
mod model;
mod stream;
mod turns;
mod validate;

pub(crate) use blocks::{Read, Reading};
pub(crate) use decode::{Reported, stop};
pub use decode::{decode, decode_reply};
pub(crate) use encode::encode_unasked;
pub use encode::{encode, encode_messages, encode_with};
pub(crate) use model::Model;
pub use stream::Stream;
pub use validate::validate;

/// The name that entries and parts carry for this provider.
pub(crate) const PROVIDER: &str = "anthropic";
/// The most cache marks in a request.
const MARKS_MAX: usize = 4;
/// The most pictures in a request.
const IMAGES_MAX: usize = 600;
/// The largest picture, in characters of base64.
const IMAGE_CHARS_MAX: usize = 10 * 1024 * 1024;
/// The pictures that are taken.
const IMAGE_TYPES: [&str; 4] = ["image/jpeg", "image/png", "image/gif", "image/webp"];
