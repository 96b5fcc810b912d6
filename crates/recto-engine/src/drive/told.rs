//! A page as a program takes it: instructions in a place of their own, what it is to remember, and what is said now.

use recto::digest::Digest;
use recto::entry::{Entry, Origin, Part, Piece, Text};
use recto::page::{LATE_SYSTEM, Message};
use recto::{Role, Tokens};
use serde_json::Map;
use std::time::{SystemTime, UNIX_EPOCH};

/// What is said to go on, where a program holds the message already.
pub const GO_ON: &str = "Please go on.";

/// What stands before a conversation that is told as text.
const TOLD_AS_TEXT: &str = "This is what was said before, as text. Go on from it; what is said now follows at its end.";

/// A page, divided.
#[derive(Clone, Debug, Default)]
pub(crate) struct Divided {
    pub(crate) instructions: String,
    /// Everything up to the last word that isn't the user's.
    pub(crate) history: Vec<Message>,
    /// What the user says now.
    pub(crate) said: Vec<Message>,
}

impl Divided {
    pub(crate) fn of(messages: &[Message]) -> Divided {
        // What a fragment says is said anew each time. An instruction in the log is told once: where it stands, marked.
        let is_fragment = |message: &&Message| message.role == Role::System && message.seq.is_none();
        let (fragments, rest): (Vec<&Message>, Vec<&Message>) = messages.iter().partition(is_fragment);
        let instructions: Vec<String> = fragments.iter().map(|message| text_of(message)).collect();
        let mut history: Vec<Message> = rest.into_iter().map(marked).collect();
        let now = history.iter().rposition(|message| message.role != Role::User).map_or(0, |last| last + 1);
        let said = history.split_off(now);
        Divided { instructions: instructions.join("\n\n"), history, said }
    }

    /// What is said now, with everything before it as text.
    pub(crate) fn as_text(&self) -> Vec<Message> {
        let mut text = format!("{TOLD_AS_TEXT}\n");
        for message in &self.history {
            let who = match message.role {
                Role::User => "user",
                Role::Assistant => "assistant",
                Role::Tool => "tool",
                Role::System => "instructions",
            };
            text.push_str(&format!("\n[{who}]\n{}\n", text_of(message)));
        }
        text.push_str("\n[user, now]");
        std::iter::once(message(Role::User, [Part::text(text)])).chain(self.said.iter().cloned()).collect()
    }
}

/// A message as a program takes it: instructions in the user's place.
fn marked(it: &Message) -> Message {
    if it.role != Role::System {
        return it.clone();
    }
    let text = Part::text(format!("{LATE_SYSTEM}{}", text_of(it)));
    Message { seq: it.seq, ..message(Role::User, [text]) }
}

/// What a message says, as text; what is none is named.
fn text_of(message: &Message) -> String {
    let parts = message.parts.iter().map(|part| match part {
        Part::Text { text } => text.to_string(),
        Part::Call(call) => format!("calls {} {}", call.name, call.arguments.as_str()),
        Part::Result(result) => {
            let pieces = result.content.iter().map(|piece| match piece {
                Piece::Text { text } => text.as_ref(),
                Piece::Image(_) => "[an image]",
            });
            pieces.collect::<Vec<_>>().join("\n")
        }
        Part::Image(_) => "[an image]".into(),
        Part::Audio(_) => "[a recording]".into(),
        Part::Document(_) | Part::File { .. } => "[a file]".into(),
        _ => String::new(),
    });
    parts.filter(|part| !part.is_empty()).collect::<Vec<_>>().join("\n")
}

fn message(role: Role, parts: impl IntoIterator<Item = Part>) -> Message {
    let parts = parts.into_iter().collect();
    let (cost, digest, extra) = (Tokens(0), Digest::default(), Map::new());
    Message { role, author: None, parts, seq: None, cost, digest, extra }
}

/// The words that ask a program to go on.
pub(crate) fn go_on() -> Entry {
    Entry { origin: Origin::Host, ..Entry::user(GO_ON) }
}

/// A UUID that nobody had before: from where and when it is made.
pub(crate) fn new_uuid(what: &str) -> Text {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_nanos());
    let hex = Digest::of(format!("{what} {now} {}", std::process::id()).as_bytes()).to_string();
    // Version and variant of a UUID that was made at random.
    format!("{}-{}-4{}-a{}-{}", &hex[..8], &hex[8..12], &hex[13..16], &hex[17..20], &hex[20..]).into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use recto::Seq;

    #[test]
    fn a_page_is_divided_at_the_last_word_that_is_not_the_users() {
        let said = |role, text: &str| message(role, [Part::text(text)]);
        let rule = Message { seq: Some(Seq(0)), ..said(Role::System, "no haste") };
        let page = [
            said(Role::System, "be kind"),
            rule,
            said(Role::User, "one"),
            said(Role::Assistant, "two"),
            said(Role::System, "late"),
            said(Role::User, "three"),
            said(Role::User, "four"),
        ];
        let divided = Divided::of(&page);
        assert_eq!(divided.instructions, "be kind\n\nlate");
        assert_eq!(text_of(&divided.history[0]), "[System Context]: no haste");
        assert_eq!(divided.history.len(), 3);
        assert_eq!(divided.said, page[5..]);
        let text = divided.as_text();
        assert_eq!(text.len(), 3);
        assert!(
            text_of(&text[0])
                .ends_with("\n[user]\n[System Context]: no haste\n\n[user]\none\n\n[assistant]\ntwo\n\n[user, now]")
        );
    }

    #[test]
    fn new_uuids_differ_and_have_the_form_of_one() {
        let (one, other) = (new_uuid("a"), new_uuid("b"));
        assert_ne!(one, other);
        let lengths: Vec<usize> = one.split('-').map(str::len).collect();
        assert_eq!((lengths, &one[14..15]), (vec![8, 4, 4, 4, 12], "4"));
    }
}
