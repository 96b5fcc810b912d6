//! The call that a request is: for which model, under which policy, and what goes beside its history.

use super::cross::Cross;
use super::incoming::Incoming;
use super::offer::Offer;
use super::{Asked, POLICY, READER, Refused};
use crate::config::{Config, Origin, Set};
use crate::server::no_blocks;
use crate::settings;
use axum::http::{HeaderMap, HeaderName, StatusCode};
use recto::entry::{Part, Text};
use recto::fragment::Fragment;
use recto::target::Caching;
use recto::wire::Wire;
use recto::{Entry, Policy, Target};
use recto_engine::{Call, Store};
use serde_json::value::RawValue;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

/// Who reads, where the client doesn't say so.
const MAIN: &str = "main";
/// How many models, policies and prompts are remembered, and how long a name or a prompt may be for that.
const REMEMBERED_MAX: usize = 64;
const PROMPT_BYTES_MAX: usize = 256 * 1024;
/// The longest name of a reader, and of a model that is remembered.
const NAME_BYTES_MAX: usize = 200;
/// A line with which Claude Code accounts for itself; its provider takes it off, and it changes from call to call.
const BILLING: &str = "x-anthropic-billing-header:";
/// What cache marks are called where nothing is cached without one.
const CACHE_MARK: &str = "\"cache_control\"";

/// What was looked up before.
#[derive(Default)]
pub(in crate::server) struct Known {
    targets: Mutex<HashMap<(String, Wire), Target>>,
    policies: Mutex<HashMap<String, Policy>>,
    beside: Mutex<HashMap<String, Arc<Beside>>>,
}

/// What goes beside a history.
#[derive(Clone, Default)]
struct Beside {
    fragments: Vec<Fragment>,
    tools: Vec<Text>,
}

impl<S: Store> Asked<S> {
    /// Returns the call that a request is, and what is offered with it.
    pub(super) fn call(
        &self,
        incoming: &Incoming<'_>,
        cross: Option<&Cross>,
    ) -> Result<(Call, Option<Offer>), Refused> {
        let (known, config) = (&self.setup.known, &self.setup.config);
        let policy = match incoming.held {
            // What the provider holds can't be said otherwise; what is new can.
            Some(_) => Policy::none().redacting(self.policy()?.redact),
            None => self.policy()?,
        };
        let spoken = cross.map_or(self.wire, |cross| cross.spoken);
        let mut target = known.target(incoming.model().unwrap_or_default(), spoken, config);
        // A client of another format can't say where to mark, so that is ours to do.
        if target.cache.kind == Caching::Marks && cross.is_none() && !incoming.text.contains(CACHE_MARK) {
            target.cache.kind = Caching::Off;
        }
        let reader = self.named(&READER)?.unwrap_or(MAIN);
        let Beside { fragments, mut tools } = known.beside(incoming);
        let offer = Offer::of(self.wire, &incoming.outline, &policy, tools.len());
        tools.extend(offer.as_ref().map(|offer| offer.definition.clone()));
        let format = cross.and_then(Cross::format);
        Ok((Call { fragments, tools, format, ..Call::new(reader, policy, target) }, offer))
    }

    /// The policy that the client names, else its key, else the configuration.
    pub(super) fn policy(&self) -> Result<Policy, Refused> {
        let (known, config) = (&self.setup.known, &self.setup.config);
        let refused = |message: String| Refused { status: StatusCode::BAD_REQUEST, kind: "policy", message };
        let named = self.named(&POLICY)?.or(self.caller.policy.as_deref());
        // Whoever asks from outside names what is built in; files are for the configuration.
        match named {
            Some(name) => known.policy(name, || Policy::preset(name).map_err(|error| refused(error.to_string()))),
            None => known.policy("", || {
                let usual = || Set { value: settings::POLICY.to_string(), origin: Origin::Default };
                let name = config.layer.policy.clone().unwrap_or_else(usual);
                settings::policy(&name).map_err(|failure| refused(failure.parts().1))
            }),
        }
    }

    /// What a header names.
    fn named(&self, header: &HeaderName) -> Result<Option<&str>, Refused> {
        let named = text_of(&self.headers, header);
        match named {
            Some(Ok(name)) if !name.is_empty() && name.len() <= NAME_BYTES_MAX => Ok(Some(name)),
            None => Ok(None),
            _ => {
                let message = format!("{header} is empty, too long, or no text");
                Err(Refused { status: StatusCode::BAD_REQUEST, kind: "header", message })
            }
        }
    }
}

fn text_of<'h>(headers: &'h HeaderMap, name: &HeaderName) -> Option<Result<&'h str, ()>> {
    headers.get(name).map(|value| value.to_str().map(str::trim).map_err(|_| ()))
}

impl Known {
    fn policy(&self, name: &str, find: impl FnOnce() -> Result<Policy, Refused>) -> Result<Policy, Refused> {
        if let Some(policy) = lock(&self.policies).get(name) {
            return Ok(policy.clone());
        }
        let policy = find()?;
        // A client's own prompt and messages are passed on around a page; there is no place for other ones.
        if !policy.blocks.is_empty() {
            let message = no_blocks(&policy);
            return Err(Refused { status: StatusCode::BAD_REQUEST, kind: "policy", message });
        }
        remember(&self.policies, name.to_string(), policy.clone());
        Ok(policy)
    }

    /// What is known about a model.
    pub(super) fn target(&self, model: &str, wire: Wire, config: &Config) -> Target {
        let key = (model.to_string(), wire);
        if let Some(target) = lock(&self.targets).get(&key) {
            return target.clone();
        }
        let found = config.models.catalogue().target(model).unwrap_or_else(|| Target::unknown(model));
        let target = settings::over(found, wire);
        if model.len() <= NAME_BYTES_MAX {
            remember(&self.targets, key, target.clone());
        }
        target
    }

    /// What goes beside a history: it stays the same from call to call, mostly.
    fn beside(&self, incoming: &Incoming<'_>) -> Beside {
        let outline = &incoming.outline;
        let leading = &outline.elements[..outline.leading];
        let mut key = String::from(incoming.wire.name());
        for piece in outline.instructions.iter().chain(outline.tools.iter()).chain(leading) {
            key.push('\0');
            key.push_str(piece);
        }
        if let Some(beside) = lock(&self.beside).get(&key) {
            return Beside::clone(beside);
        }
        let instructions = outline.instructions.and_then(|raw| incoming.wire.read_instructions(raw).ok());
        let leading = incoming.wire.read_elements(leading, None).ok().filter(|_| !leading.is_empty());
        let entries = instructions.into_iter().chain(leading).flat_map(|read| read.entries);
        let texts = entries.map(|entry| text(&entry)).filter(|text| !text.starts_with(BILLING));
        let named = texts.enumerate().map(|(at, text)| Fragment::fixed(format!("instructions.{at}"), text));
        let tools: Vec<&RawValue> = outline.tools.and_then(|raw| serde_json::from_str(raw).ok()).unwrap_or_default();
        let tools = tools.into_iter().map(|tool| tool.get().into()).collect();
        let beside = Beside { fragments: named.collect(), tools };
        if key.len() <= PROMPT_BYTES_MAX {
            remember(&self.beside, key, Arc::new(beside.clone()));
        }
        beside
    }
}

/// The texts of an entry.
fn text(entry: &Entry) -> String {
    let texts = entry.parts.iter().filter_map(|part| match part {
        Part::Text { text } => Some(&**text),
        _ => None,
    });
    texts.collect::<Vec<&str>>().join("\n")
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn remember<K: std::hash::Hash + Eq, V>(map: &Mutex<HashMap<K, V>>, key: K, value: V) {
    let mut map = lock(map);
    // All of it can be looked up again.
    if map.len() >= REMEMBERED_MAX {
        map.clear();
    }
    map.insert(key, value);
}
