//! OpenAI Responses: `POST /v1/responses`. A request is a list of items; those of one answer are one entry.

mod content;
mod decode;
mod encode;
mod items;
mod part;
mod record;
mod reply;
mod stream;
mod validate;

pub use decode::decode;
pub use encode::{encode, encode_with};
pub(crate) use items::{Items, Written, written_as};
pub(crate) use record::{Record, kind_of};
pub use reply::decode_reply;
pub use stream::Stream;
pub use validate::validate;

/// The name of this wire, under which entries keep what only it understands.
const NAME: &str = "openai_responses";
/// Whose sealed reasoning and own items these are.
const PROVIDER: &str = "openai";
/// A field that clients add for themselves, and the provider does not take.
const PRIVATE: &str = "internal_chat_message_metadata_passthrough";
/// The longest id of an item or call.
const ID_MAX: usize = 64;
