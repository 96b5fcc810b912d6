//! How a model learns to ask: the tool, and what a prompt says of it.

use crate::tool::Tool;

/// The name of the tool.
pub const TOOL_NAME: &str = "recto_expand";

/// What a prompt says where the tool is offered.
pub const TEACHING_TOOL: &str = "\
Older messages and tool results may be shortened or left out to save room. A marker in square brackets then says how \
much of how much is shown, and names a handle, as in \"[… first 500 of 5000 characters of read result; \
recto_expand m42]\". Nothing is lost: \
call recto_expand with the handle to see the original again. Do so only when you need what is missing. Ask for some \
lines, some items of a JSON array, or search for a text, rather than for all of something long. If an expansion is \
refused, go on without it and do not ask for the same again.";

/// What a prompt says where an agent asks by a step of its own.
pub const TEACHING_STEP: &str = "\
Older messages and tool results may be shortened or left out to save room. A marker in square brackets then says how \
much of how much is shown, and names a handle, as in \"[… first 500 of 5000 characters of read result; \
recto_expand m42]\". Nothing is lost: \
to see the original again, answer with the next step \"expand-message\":
{\"taskComplete\": false, \"nextStep\": {\"type\": \"expand-message\", \"handle\": \"m42\", \"reason\": \"why you need it\"}}
Instead of \"handle\" you may give \"messageIndex\", the number of the message on your last page, from 0. With \
\"itemRange\": [40, 50] you see only these items of a JSON array, from 0; with \"search\" only lines that hold a text. Ask \
only when you need what is missing. The run goes on afterwards. If an expansion is refused, go on without it and do not \
ask for the same again.";

/// Returns the tool by which a model asks. The arguments of its calls are read by
/// [`Ask::from_call`](super::Ask::from_call).
pub fn tool() -> Tool {
    Tool::parse(DEFINITION)
}

/// The definition in the form of Anthropic's tools; every wire can be told it.
const DEFINITION: &str = r#"{"name":"recto_expand","description":"Shows again what was shortened or left out, by the handle that its marker names. Give one of lines, items or search to see only some of it.","input_schema":{"type":"object","properties":{"handle":{"type":"string","description":"The handle, such as m42 or m42.1."},"lines":{"type":"array","items":{"type":"integer"},"description":"First and last line, from 1."},"items":{"type":"array","items":{"type":"integer"},"description":"First and last item of a JSON array, from 0."},"search":{"type":"string","description":"Shows the lines that hold this text, in any case."},"reason":{"type":"string","description":"Why you need it, in a few words."}},"required":["handle"]}}"#;
