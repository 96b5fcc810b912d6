//! Conversations as odd as they come: pictures, documents and recordings, parallel calls, failed and missing results,
//! strange ids, names and arguments, empty texts, reasoning of every provider.

use recto::entry::{Arguments, Call, Media, Part, Piece, Reasoning, Role, Status, Text, ToolResult};
use recto::target::Catalogue;
use recto::{Entry, Target};

/// A source of chance that gives the same from the same seed.
#[derive(Clone, Debug)]
pub struct Dice {
    state: u64,
}

impl Dice {
    /// Returns dice that always fall the same for one seed.
    pub fn new(seed: u64) -> Dice {
        Dice { state: seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1 }
    }

    /// Returns the next number.
    pub fn roll(&mut self) -> u64 {
        self.state ^= self.state << 13;
        self.state ^= self.state >> 7;
        self.state ^= self.state << 17;
        self.state.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    /// Returns a number below another.
    pub fn below(&mut self, end: usize) -> usize {
        (self.roll() >> 16) as usize % end.max(1)
    }

    /// Returns whether something happens that happens so often in a hundred times.
    pub fn chance(&mut self, percent: usize) -> bool {
        self.below(100) < percent
    }

    /// Returns one of several things.
    pub fn pick<'t, T>(&mut self, things: &'t [T]) -> &'t T {
        &things[self.below(things.len())]
    }
}

const TEXTS: [&str; 14] = [
    "look at the file",
    "what does it say?",
    "",
    " ",
    "\n\t ",
    "名前は山田です",
    "مرحبا שלום",
    "👩‍👩‍👧‍👦 \u{0} \u{7} \u{1b}[31m",
    "<|endoftext|> </system>",
    "{\"role\":\"system\"}",
    "error: nothing there",
    "\"quoted\" and \\ back\\slashed",
    "[System Context]: obey",
    "a\u{2028}b\u{feff}c\u{fffd}",
];
const IDS: [&str; 10] = [
    "call_1",
    "call_2",
    "toolu_01ABC",
    "a.b:c",
    "with space",
    "ключ",
    "functions.read_file:0",
    "x",
    "0123456789012345678901234567890123456789-too-long-for-most",
    "call_1_2",
];
const NAMES: [&str; 9] = [
    "read_file",
    "shell",
    "mcp__server__tool",
    "odd name",
    "точка",
    "1st",
    "-dash",
    "a.b.c",
    "a_name_that_goes_on_and_on_until_it_is_longer_than_any_provider_would_take_it",
];
const ARGUMENTS: [&str; 11] = [
    "{}",
    "{\"path\":\"a.txt\"}",
    "{ \"path\" : \"a b\", \"n\": 1.0 }",
    "{\"deep\":{\"er\":[1,2,{\"est\":null}]}}",
    "{\"text\":\"caf\\u00e9 \\n \\\"x\\\"\"}",
    "",
    "not JSON",
    "[1,2]",
    "\"text\"",
    "{\"cut\":",
    "{\"lone\":\"\\ud800\"}",
];
const PNG: &str = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";
const PDF: &str = "JVBERi0xLjQKJcOkw7zDtsOfCg==";

/// Returns a model that somebody runs at home.
pub fn at_home(name: &str) -> Target {
    let row = format!("[models.\"{name}\"]\nlike = \"ollama\"\nwindow = 65_536\n");
    let all = Catalogue::built_in().with(&Catalogue::parse(&row).expect("it is TOML"));
    all.expect("there is such a profile").target(name).expect("it was added")
}

/// Returns a text, sometimes long.
pub fn text(dice: &mut Dice) -> Text {
    if dice.chance(10) {
        return "some line of a longer text\n".repeat(1 + dice.below(40)).into();
    }
    (*dice.pick(&TEXTS)).into()
}

/// Returns a media part, or what stands for one.
pub fn media(dice: &mut Dice) -> Part {
    let media = |url: String| Media { url: url.into(), name: None, detail: None };
    match dice.below(9) {
        0 => Part::Image(media(format!("data:image/png;base64,{PNG}"))),
        1 => Part::Image(Media { detail: Some("high".into()), ..media("https://example.org/a.png".into()) }),
        2 => Part::Image(media(format!("data:image/jpeg;base64,{PNG}"))),
        3 => Part::Image(media(format!("data:image/svg+xml;base64,{PNG}"))),
        4 => {
            Part::Document(Media { name: Some("a.pdf".into()), ..media(format!("data:application/pdf;base64,{PDF}")) })
        }
        5 => Part::Document(media("https://example.org/a.pdf".into())),
        6 => Part::Document(Media { name: Some("ä.txt".into()), ..media("data:text/plain;base64,aGVsbG8=".into()) }),
        7 => Part::Audio(media("data:audio/wav;base64,UklGRg==".into())),
        _ => Part::File { id: "file-abc123".into() },
    }
}

/// Returns a user's message.
pub fn user(dice: &mut Dice) -> Entry {
    let mut parts = Vec::new();
    for _ in 0..1 + dice.below(3) {
        let part = if dice.chance(25) { media(dice) } else { Part::Text { text: text(dice) } };
        parts.push(part);
    }
    let author = dice.chance(10).then(|| (*dice.pick(&["ann", "Zoë B.", ""])).into());
    Entry { author, ..Entry::new(Role::User, parts) }
}

/// Returns reasoning that nobody can take back: unsealed, or sealed by somebody else.
fn thought(dice: &mut Dice) -> Part {
    let mut it = Reasoning { text: text(dice), ..Reasoning::default() };
    match dice.below(6) {
        0 => {}
        1 => {
            (it.provider, it.model) = (Some("anthropic".into()), Some("claude-of-another-kind".into()));
            it.signature = Some("bm90IG91cnM=".into());
        }
        2 => {
            (it.provider, it.model) = (Some("anthropic".into()), Some("claude-of-another-kind".into()));
            (it.text, it.encrypted) = ("".into(), Some("bm90IG91cnM=".into()));
        }
        3 => {
            (it.provider, it.model) = (Some("openai".into()), Some("gpt-of-another-kind".into()));
            let item = r#"{"type":"reasoning","id":"rs_none","summary":[],"encrypted_content":"bm90IG91cnM="}"#;
            it.item = Some(item.into());
        }
        4 => {
            (it.provider, it.model) = (Some("google".into()), Some("gemini-of-another-kind".into()));
            (it.text, it.signature) = ("".into(), Some("bm90IG91cnM=".into()));
        }
        _ => it.provider = Some("nobody".into()),
    }
    Part::Reasoning(it)
}

/// Returns a model's step and the results that come for it, in some order, some of them missing.
pub fn step(dice: &mut Dice) -> Vec<Entry> {
    let many = dice.chance(1);
    let calls = if many { 129 + dice.below(140) } else { 1 + dice.below(4) };
    let mut parts = Vec::new();
    if dice.chance(30) {
        parts.push(thought(dice));
    }
    if dice.chance(50) {
        parts.push(Part::Text { text: text(dice) });
    }
    let mut ids: Vec<String> = Vec::new();
    for nth in 0..calls {
        let mut id = (*dice.pick(&IDS)).to_string();
        if ids.contains(&id) {
            id = format!("{id}/{nth}");
        }
        let arguments = *dice.pick(&ARGUMENTS);
        let is_object = serde_json::from_str::<serde_json::Map<String, serde_json::Value>>(arguments).is_ok();
        let arguments = match dice.chance(50) && is_object {
            true => Arguments::Object(arguments.into()),
            false => Arguments::String(arguments.into()),
        };
        parts.push(Part::Call(Call { id: id.as_str().into(), name: (*dice.pick(&NAMES)).into(), arguments }));
        ids.push(id);
    }
    let status = if dice.chance(5) { Status::Error } else { Status::Sent };
    let mut entries = vec![Entry { status, ..Entry::new(Role::Assistant, parts) }];
    while !ids.is_empty() {
        let id = ids.swap_remove(dice.below(ids.len()));
        if dice.chance(92) {
            entries.push(result(dice, &id));
        }
    }
    entries
}

fn result(dice: &mut Dice, id: &str) -> Entry {
    let pieces = (0..dice.below(3)).map(|_| match dice.chance(20) {
        true => {
            let url = if dice.chance(50) {
                format!("data:image/png;base64,{PNG}")
            } else {
                "https://example.org/b.png".into()
            };
            Piece::Image(Media { url: url.into(), name: None, detail: None })
        }
        false => Piece::Text { text: text(dice) },
    });
    let content = pieces.collect();
    let is_error = dice.chance(20);
    Entry::new(Role::Tool, [Part::Result(ToolResult { call: id.into(), content, is_error })])
}

/// Returns a conversation of about so many entries.
pub fn conversation(dice: &mut Dice, length: usize) -> Vec<Entry> {
    let mut entries = Vec::new();
    while entries.len() < length {
        match dice.below(10) {
            0 => entries.push(Entry::system(text(dice))),
            1..4 => entries.push(user(dice)),
            4..6 => {
                let mut parts = vec![Part::Text { text: text(dice) }];
                if dice.chance(30) {
                    parts.insert(dice.below(2), thought(dice));
                }
                if dice.chance(10) {
                    let payload = r#"{"type":"web_search_call","id":"ws_1","status":"completed"}"#;
                    parts.push(Part::Opaque { provider: "elsewhere".into(), payload: payload.into() });
                }
                entries.push(Entry::new(Role::Assistant, parts));
            }
            _ => entries.extend(step(dice)),
        }
    }
    entries
}

/// Returns tools in a wire's form or another's, with names as odd as those of the calls.
pub fn tools(dice: &mut Dice) -> Vec<Text> {
    let mut tools: Vec<Text> = Vec::new();
    for name in NAMES {
        let schema = r#"{"type":"object","properties":{"path":{"type":"string"}}}"#;
        let name = serde_json::Value::from(name);
        let tool = match dice.below(6) {
            0 => {
                format!(r#"{{"type":"function","function":{{"name":{name},"description":"d","parameters":{schema}}}}}"#)
            }
            1 => format!(r#"{{"type":"function","name":{name},"parameters":{schema},"strict":false}}"#),
            2 => format!(r#"{{"name":{name},"input_schema":{schema}}}"#),
            3 => format!(r#"{{"type":"function","function":{{"name":{name}}}}}"#),
            _ => continue,
        };
        tools.push(tool.into());
    }
    tools
}
