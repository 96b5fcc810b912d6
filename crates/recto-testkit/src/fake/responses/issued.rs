//! What the provider remembers of its own answers: encrypted contents, item ids and stored responses.

use super::super::node::{Checked, Node};
use super::super::{Api, Refusal};
use super::items::not_found;
use serde_json::Value;
use std::collections::{HashMap, HashSet};

const NOT_NAMED: &str = "Invalid type for 'conversation': expected a conversation's ID or an object with one.";

/// What one answer left behind.
#[derive(Debug, Default)]
pub(in super::super) struct Issued {
    encrypted: HashMap<String, String>,       // content, and the model that made it
    needs_reasoning: HashMap<String, String>, // item id, and the reasoning item that led to it
    followers: HashMap<String, Follower>,     // reasoning item id, and what came behind it
    stored_items: HashSet<String>,
    stored: HashMap<String, Vec<Value>>, // response id, and every item up to its end
    conversations: HashMap<String, Vec<Value>>, // conversation id, and every item in it
}

#[derive(Debug)]
struct Follower {
    id: String,
    call_id: Option<String>,
}

impl Issued {
    /// Remembers the items of an answer.
    pub(in super::super) fn remember(&mut self, model: &str, output: &[Value]) {
        let mut reasoning: Option<String> = None;
        for (at, item) in output.iter().enumerate() {
            let text = |key: &str| item[key].as_str().map(str::to_owned);
            let Some(id) = text("id") else { continue };
            if let Some(content) = text("encrypted_content") {
                self.encrypted.insert(content, model.to_owned());
            }
            if item["type"] != "reasoning" {
                if let Some(reasoning) = &reasoning {
                    self.needs_reasoning.insert(id, reasoning.clone());
                }
                continue;
            }
            if let Some(next) = output[at..].iter().find(|next| next["type"] != "reasoning") {
                let follower = Follower {
                    id: next["id"].as_str().unwrap_or_default().to_owned(),
                    call_id: next["call_id"].as_str().map(str::to_owned),
                };
                self.followers.insert(id.clone(), follower);
            }
            reasoning = Some(id);
        }
    }

    /// Keeps a response for `previous_response_id` and `item_reference`, and appends it to its conversation.
    pub(in super::super) fn store(&mut self, response: &str, body: &Value, output: &[Value]) {
        let mut items = self.whole_input(body);
        items.extend(output.iter().cloned());
        let is_kept = body["store"] != false;
        if let Some(conversation) = conversation_of(body) {
            self.conversations.insert(conversation.to_owned(), items.clone());
        }
        if is_kept || conversation_of(body).is_some() {
            self.stored_items.extend(items.iter().filter_map(|item| item["id"].as_str()).map(str::to_owned));
        }
        if is_kept {
            self.stored.insert(response.to_owned(), items);
        }
    }

    /// Opens a conversation with these items.
    pub(in super::super) fn open(&mut self, conversation: &str, items: Vec<Value>) {
        self.conversations.insert(conversation.to_owned(), items);
    }

    /// Forgets a response or a conversation; returns whether there was one.
    pub(in super::super) fn forget(&mut self, id: &str) -> bool {
        self.stored.remove(id).is_some() | self.conversations.remove(id).is_some()
    }

    fn earlier(&self, body: &Value) -> Vec<Value> {
        let previous = body["previous_response_id"].as_str().and_then(|id| self.stored.get(id));
        let conversation = conversation_of(body).and_then(|id| self.conversations.get(id));
        previous.or(conversation).cloned().unwrap_or_default()
    }

    /// Returns everything the model reads: the items of earlier responses, then those of the request.
    pub(in super::super) fn whole_input(&self, body: &Value) -> Vec<Value> {
        let mut items = self.earlier(body);
        items.extend(input_items(body));
        items
    }

    /// Checks what needs memory: R3, R4, R5, R9, and pairs across responses.
    pub(in super::super) fn check(&self, body: &Node<'_>) -> Checked {
        let model = body.str_of("model").unwrap_or_default();
        if let Some(previous) = body.get("previous_response_id") {
            let id = previous.text()?;
            if !self.stored.contains_key(id) {
                let text = format!("Previous response with id '{id}' not found.");
                return Err(previous.refuse("R5", &text).coded("previous_response_not_found"));
            }
            self.pairs_with_earlier(body)?;
        }
        if let Some(conversation) = body.get("conversation") {
            let Some(id) = conversation_of(body.value) else { return Err(conversation.refuse("shape", NOT_NAMED)) };
            if !self.conversations.contains_key(id) {
                let text = format!("Conversation with id '{id}' not found.");
                return Err(Refusal::new(Api::Responses, "R5", text).with_status(404));
            }
            self.pairs_with_earlier(body)?;
        }
        let items = body.get("input").map(|input| input.entries()).unwrap_or_default();
        for (at, item) in items.iter().enumerate() {
            self.known(item)?;
            if let Some(content) = item.get("encrypted_content") {
                self.decrypts(&content, model)?;
            }
            if item.is("type", "reasoning") {
                self.followed(item, &items[at..])?;
            }
            self.explained(item, &items[..at], body)?;
        }
        Ok(())
    }

    fn known(&self, item: &Node<'_>) -> Checked {
        let by_id = item.is("type", "item_reference") || item.is("type", "reasoning") && !item.has("encrypted_content");
        match item.str_of("id") {
            Some(id) if by_id && !self.stored_items.contains(id) => Err(not_found(item, id)),
            _ => Ok(()),
        }
    }

    fn decrypts(&self, content: &Node<'_>, model: &str) -> Checked {
        if self.encrypted.get(content.text()?).is_some_and(|producer| producer == model) {
            return Ok(());
        }
        let text = "The encrypted content could not be verified. Reason: Encrypted content could not be decrypted or \
                    parsed.";
        Err(Refusal { param: None, ..content.refuse("R9", text).coded("invalid_encrypted_content") })
    }

    fn followed(&self, item: &Node<'_>, rest: &[Node<'_>]) -> Checked {
        let Some(follower) = item.str_of("id").and_then(|id| self.followers.get(id)) else { return Ok(()) };
        let Some(next) = rest.iter().find(|next| !next.is("type", "reasoning")) else { return Ok(()) };
        let same = match (next.str_of("id"), next.str_of("call_id")) {
            (Some(id), _) => id == follower.id,
            (None, Some(call_id)) => follower.call_id.as_deref() == Some(call_id),
            // Without ids a message can't be told from another one.
            (None, None) => follower.call_id.is_none(),
        };
        if same { Ok(()) } else { Err(super::unfollowed(item)) }
    }

    fn explained(&self, item: &Node<'_>, before: &[Node<'_>], body: &Node<'_>) -> Checked {
        let Some(id) = item.str_of("id") else { return Ok(()) };
        let Some(reasoning) = self.needs_reasoning.get(id) else { return Ok(()) };
        let is_it = |item: &Value| item["id"] == reasoning.as_str();
        if item.is("type", "item_reference")
            || before.iter().any(|item| is_it(item.value))
            || self.earlier(body.value).iter().any(is_it)
        {
            return Ok(());
        }
        let kind = item.str_of("type").unwrap_or("message");
        let text =
            format!("Item '{id}' of type '{kind}' was provided without its required 'reasoning' item: '{reasoning}'.");
        Err(item.refuse("R4", &text).at("input"))
    }

    fn pairs_with_earlier(&self, body: &Node<'_>) -> Checked {
        let whole = Value::Array(self.whole_input(body.value));
        let node = Node { api: Api::Responses, value: &whole, path: "input".to_owned() };
        super::pairs(&node.entries(), false)
    }
}

/// Returns the conversation that a request names: by its id, or as an object with it.
fn conversation_of(body: &Value) -> Option<&str> {
    let conversation = &body["conversation"];
    conversation.as_str().or_else(|| conversation["id"].as_str())
}

fn input_items(body: &Value) -> Vec<Value> {
    match &body["input"] {
        Value::Array(items) => items.clone(),
        Value::String(text) => vec![serde_json::json!({"type": "message", "role": "user", "content": text})],
        _ => Vec::new(),
    }
}
