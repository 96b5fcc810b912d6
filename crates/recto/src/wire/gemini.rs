//! Google Gemini: `POST /v1beta/models/{model}:generateContent`. The model stands in the address, not in the body.

mod contents;
mod decode;
mod encode;
mod generation;
mod media;
mod model;
mod reply;
pub(crate) mod schema;
mod stream;
mod turns;
mod validate;

pub use decode::decode;
pub use encode::{encode, encode_with};
pub(crate) use media::is_held;
pub use reply::decode_reply;
pub use stream::Stream;
pub use validate::validate;

/// The name that entries and parts carry for this provider.
pub(crate) const PROVIDER: &str = "google";
/// What a part can be: exactly one of these.
const KINDS: [&str; 9] = [
    "text",
    "inlineData",
    "fileData",
    "functionCall",
    "functionResponse",
    "executableCode",
    "codeExecutionResult",
    "toolCall",
    "toolResponse",
];
/// What stands on a call that the model did not make, or whose signature is lost, where one is demanded.
const UNSIGNED: &str = "skip_thought_signature_validator";

/// A name of a field as the provider writes it; clients may write it with underscores.
fn camel(name: &str) -> String {
    let mut words = name.split('_');
    let mut whole = words.next().unwrap_or_default().to_string();
    for word in words {
        let mut letters = word.chars();
        whole.extend(letters.next().into_iter().flat_map(char::to_uppercase));
        whole.push_str(letters.as_str());
    }
    whole
}
