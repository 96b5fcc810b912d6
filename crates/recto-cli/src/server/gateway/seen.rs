//! What was read of the requests before. A client sends its history again and again, so most of each body was seen in
//! the one before; what is byte for byte the same need not be read again.
//!
//! A body that begins with the bytes of another is walked over only behind them. Where it begins otherwise, as where a
//! client names the time in its prompt, its messages are compared one by one.

use super::Gateway;
use axum::body::Bytes;
use recto::Error;
use recto::chain::{Chain, atoms};
use recto::wire::{Decoded, Ending, Layout, Outline, Wire};
use recto_engine::Tenant;
use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};
use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};

/// How much is kept of bodies, in bytes.
const BYTES_MAX: usize = 32 * 1024 * 1024;
/// How large a body may be for a copy of it to be kept.
const COPIED_BYTES_MAX: usize = 16 * 1024;
/// How many bodies are kept that begin alike.
const ALIKE_MAX: usize = 4;
/// Beginnings are known by so many bytes, twice as many, and so on.
const BLOCK_BYTES: usize = 4096;
/// How many of the last messages may be spelled otherwise in the next body, because cache marks move on.
const MOVING_MAX: usize = 3;

/// Bodies of late.
pub(super) struct Seen {
    kept: Mutex<Kept>,
    /// Nobody else can tell which bodies have one key.
    seed: u64,
}

#[derive(Default)]
struct Kept {
    alike: HashMap<u64, Vec<Arc<Body>>>,
    bytes: usize,
}

/// A body, and what was read of it.
struct Body {
    tenant: Tenant,
    bytes: Bytes,
    layout: Layout,
    /// For each element behind the instructions.
    chains: Vec<Chain>,
    /// What it is kept under.
    keys: Vec<u64>,
}

/// A body beside those of late, before anything of it was read.
#[derive(Default)]
pub(in crate::server) struct Glance {
    /// What its beginnings are found by.
    beginnings: Vec<u64>,
    known: Option<Known>,
}

/// What a body has in common with one before: its first bytes up to the end of some elements, and maybe what stands
/// behind all of them.
struct Known {
    body: Arc<Body>,
    elements: usize,
    ending: Ending,
}

/// What is known of a request.
pub(super) struct Read<'b> {
    pub(super) outline: Outline<'b>,
    /// What identifies everything that was said, up to and with each of the elements behind the instructions.
    pub(super) chains: Vec<Chain>,
    /// The last of these elements, each read by itself, as far back as they were not seen before.
    pub(super) unseen: Vec<Decoded>,
}

impl Gateway {
    /// Holds a body beside those of late.
    pub(in crate::server) fn glance(&self, tenant: &Tenant, bytes: &[u8]) -> Glance {
        let beginnings = self.seen.beginnings(tenant, bytes);
        Glance { known: self.seen.known(tenant, bytes, &beginnings), beginnings }
    }
}

impl Glance {
    /// Returns which bytes of its body are new. Up to there, and behind, it is the same as one before, where the new ones
    /// stand within two brackets.
    pub(in crate::server) fn new_bytes(&self, bytes: &[u8]) -> Option<Range<usize>> {
        let known = self.known.as_ref()?;
        let start = known.body.layout.elements()[known.elements - 1].end;
        let end = match known.ending {
            Ending::Same => bytes.len() - known.body.layout.ending().len(),
            Ending::Other => bytes.len(),
        };
        Some(start..end)
    }
}

impl Default for Seen {
    fn default() -> Seen {
        Seen { kept: Mutex::default(), seed: RandomState::new().hash_one(()) }
    }
}

impl Seen {
    /// Reads a body, as far as it was not seen before. It is an error if something in it can't be read.
    pub(super) fn read<'b>(
        &self,
        tenant: &Tenant,
        wire: Wire,
        text: &'b str,
        bytes: &Bytes,
        glance: &Glance,
    ) -> Result<Read<'b>, Error> {
        let known = glance.known.as_ref().filter(|known| known.body.layout.wire() == wire);
        let again = known.and_then(|known| {
            let outline = known.body.layout.outline(text, known.elements, known.ending)?;
            Some((outline, known))
        });
        let (outline, known) = match again {
            Some((outline, known)) => (outline, Some(known)),
            None => (wire.outline(text)?, None),
        };
        let elements = &outline.elements[outline.leading..];
        let Some(first) = elements.first() else {
            return Ok(Read { outline, chains: Vec::new(), unseen: Vec::new() });
        };
        let key = self.key(tenant, first);
        let known = known.map(|known| (known.elements.saturating_sub(outline.leading), known.body.clone()));
        let (shared, body) = known
            .filter(|(shared, _)| *shared > 0)
            .map_or_else(|| self.like(tenant, wire, key, elements), |(shared, body)| (shared, Some(body)));
        let mut chains = Vec::with_capacity(elements.len());
        chains.extend_from_slice(body.as_ref().map_or(&[], |body| &body.chains[..shared]));
        let mut chain = chains.last().copied().unwrap_or_default();
        let mut unseen = Vec::with_capacity(elements.len() - shared);
        for element in &elements[shared..] {
            let read = wire.read_elements(&[element], outline.model.as_deref())?;
            chain = read.entries.iter().flat_map(atoms).fold(chain, Chain::then);
            chains.push(chain);
            unseen.push(read);
        }
        if shared < elements.len()
            && let Some(layout) = outline.layout()
        {
            // A small body is a piece of its connection's buffer, which would be kept whole.
            let kept = if bytes.len() <= COPIED_BYTES_MAX { Bytes::copy_from_slice(bytes) } else { bytes.clone() };
            let keys = keys(key, &layout, &glance.beginnings);
            let known = Body { tenant: tenant.clone(), bytes: kept, layout, chains: chains.clone(), keys };
            self.keep(known, body.filter(|body| shared + MOVING_MAX >= body.chains.len()));
        }
        Ok(Read { outline, chains, unseen })
    }

    /// Returns the body that shares most of its beginning, byte for byte.
    fn known(&self, tenant: &Tenant, bytes: &[u8], beginnings: &[u64]) -> Option<Known> {
        let alike = {
            let kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
            beginnings.iter().rev().find_map(|key| kept.alike.get(key)).cloned()
        };
        let own = alike.into_iter().flatten().filter(|body| body.tenant == *tenant);
        let shared = own.map(|body| {
            let same = same_bytes(&body.bytes, bytes);
            (body.layout.elements().partition_point(|element| element.end <= same), body)
        });
        let (elements, body) = shared.max_by_key(|(elements, _)| *elements).filter(|(elements, _)| *elements > 0)?;
        let (start, ending) = (body.layout.elements()[elements - 1].end, &body.bytes[body.layout.ending()]);
        let is_same = bytes[start..].ends_with(ending);
        Some(Known { elements, ending: if is_same { Ending::Same } else { Ending::Other }, body })
    }

    /// Returns how many messages are the same as in the body that shares most of them.
    fn like(&self, tenant: &Tenant, wire: Wire, key: u64, elements: &[&str]) -> (usize, Option<Arc<Body>>) {
        let alike = self.kept.lock().unwrap_or_else(PoisonError::into_inner).alike.get(&key).cloned();
        let own = alike.into_iter().flatten().filter(|body| body.tenant == *tenant && body.layout.wire() == wire);
        let shared = own.map(|body| (body.shared(elements), body));
        shared.max_by_key(|(shared, _)| *shared).map_or((0, None), |(shared, body)| (shared, Some(body)))
    }

    /// Keeps a body, in place of the one that it goes on from.
    fn keep(&self, body: Body, instead: Option<Arc<Body>>) {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        // All of it can be read again, so forgetting all of it now and then is good enough.
        if kept.bytes + body.bytes.len() > BYTES_MAX {
            *kept = Kept::default();
        }
        if body.bytes.len() > BYTES_MAX / 2 {
            return;
        }
        if let Some(instead) = instead {
            kept.forget(&instead);
        }
        kept.bytes += body.bytes.len();
        let body = Arc::new(body);
        for key in &body.keys {
            let alike = kept.alike.entry(*key).or_default();
            alike.push(body.clone());
            if alike.len() > ALIKE_MAX {
                let oldest = alike[0].clone();
                kept.forget(&oldest);
            }
        }
    }

    /// What the messages of a body are found by that begin with this one.
    fn key(&self, tenant: &Tenant, first: &str) -> u64 {
        let mut state = self.state(tenant);
        add(&mut state, first.as_bytes());
        !folded(state, first.len())
    }

    /// What the first block of a body is found by, the first two, and so on.
    fn beginnings(&self, tenant: &Tenant, bytes: &[u8]) -> Vec<u64> {
        let mut state = self.state(tenant);
        let blocks = bytes.chunks_exact(BLOCK_BYTES).zip(1..);
        let block = |(block, nth): (&[u8], usize)| {
            add(&mut state, block);
            folded(state, nth * BLOCK_BYTES)
        };
        blocks.map(block).collect()
    }

    fn state(&self, tenant: &Tenant) -> [u64; LANES] {
        let mut state = LANE_SEEDS.map(|seed| seed ^ self.seed);
        add(&mut state, tenant.as_str().as_bytes());
        state
    }
}

impl Kept {
    fn forget(&mut self, body: &Arc<Body>) {
        let mut is_kept = false;
        for key in &body.keys {
            let Some(alike) = self.alike.get_mut(key) else { continue };
            let before = alike.len();
            alike.retain(|it| !Arc::ptr_eq(it, body));
            is_kept |= alike.len() < before;
            if alike.is_empty() {
                self.alike.remove(key);
            }
        }
        if is_kept {
            self.bytes -= body.bytes.len();
        }
    }
}

impl Body {
    /// How many elements behind the instructions are the same as here.
    fn shared(&self, elements: &[&str]) -> usize {
        let same = |(range, element): &(&Range<usize>, &&str)| self.bytes[(*range).clone()] == *element.as_bytes();
        self.layout.elements()[self.layout.leading()..].iter().zip(elements).take_while(same).count()
    }
}

/// What a body is kept under: its first message, and its beginning up to its last messages and without them.
fn keys(first: u64, layout: &Layout, beginnings: &[u64]) -> Vec<u64> {
    let elements = layout.elements();
    let upto = |elements: &[Range<usize>]| elements.last().and_then(|last| (last.end / BLOCK_BYTES).checked_sub(1));
    let ends = [upto(elements), upto(&elements[..elements.len().saturating_sub(MOVING_MAX)])];
    let mut keys: Vec<u64> = ends.into_iter().flatten().filter_map(|nth| beginnings.get(nth).copied()).collect();
    keys.dedup();
    keys.push(first);
    keys
}

/// How many bytes are the same at the beginning of both.
fn same_bytes(one: &[u8], other: &[u8]) -> usize {
    let mut same = 0;
    for step in [BLOCK_BYTES, 64, 1] {
        let steps = one[same..].chunks_exact(step).zip(other[same..].chunks_exact(step));
        same += step * steps.take_while(|(one, other)| one == other).count();
    }
    same
}

/// How many sums are made side by side, which a processor does at once.
const LANES: usize = 2;
/// Any odd numbers do.
const LANE_SEEDS: [u64; LANES] = [0x9e37_79b9_7f4a_7c15, 0xbf58_476d_1ce4_e5b9];

/// Adds some bytes to the sums that stand for all before them. Bodies that have the same sums are compared by their bytes.
fn add(state: &mut [u64; LANES], bytes: &[u8]) {
    let (words, rest) = bytes.as_chunks::<8>();
    let (rounds, last) = words.as_chunks::<8>();
    let [mut one, mut other] = *state;
    for round in rounds {
        let word = |nth: usize| u64::from_le_bytes(round[nth]);
        let first = (word(0) ^ word(2).rotate_left(29), word(1) ^ word(3).rotate_left(29));
        let second = (word(4) ^ word(6).rotate_left(29), word(5) ^ word(7).rotate_left(29));
        one = mixed(one ^ first.0, first.1 ^ LANE_SEEDS[0]);
        other = mixed(other ^ second.0, second.1 ^ LANE_SEEDS[1]);
    }
    for word in last {
        one = mixed(one ^ u64::from_le_bytes(*word), LANE_SEEDS[0]);
    }
    let rest = rest.iter().fold(1, |word, byte| word << 8 | u64::from(*byte));
    *state = [one, mixed(other ^ rest, LANE_SEEDS[1])];
}

fn folded(state: [u64; LANES], length: usize) -> u64 {
    state.into_iter().fold(length as u64, |sum, lane| mixed(sum ^ lane, LANE_SEEDS[0]))
}

#[inline]
fn mixed(one: u64, other: u64) -> u64 {
    let product = u128::from(one) * u128::from(other);
    product as u64 ^ (product >> 64) as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::server::limits::{LIST_DEPTH, is_too_deep, is_too_deep_within};
    use recto_testkit::mixed::Dice;

    const PIECES: [&str; 12] = [
        "\"",
        "\\",
        "[[[[",
        "]",
        "}",
        ",",
        "{\"role\":\"user\",\"content\":\"new\"},",
        "\\\"",
        "\"messages\":[",
        " ",
        "\u{fc}",
        "7",
    ];

    fn message(dice: &mut Dice, nth: usize) -> String {
        let role = ["user", "assistant"][nth % 2];
        let text = "say \\\"[{\\\" once more\\n\\\\".repeat(1 + dice.below(40));
        format!("{{\"role\":\"{role}\",\"content\":\"{nth} {text}\"}}")
    }

    fn body(messages: &[String], ending: &str) -> String {
        let tools = "{\"type\":\"function\",\"function\":{\"name\":\"look\"}},".repeat(90);
        let tools = tools.trim_end_matches(',');
        format!("{{\"model\":\"gpt-4o\",\"tools\":[{tools}],\"messages\":[{}{ending}", messages.join(","))
    }

    /// Reads a body with what was seen before and without, which must be the same.
    fn agrees(gateway: &Gateway, tenant: &Tenant, text: &str) -> bool {
        let bytes = Bytes::copy_from_slice(text.as_bytes());
        let glance = gateway.glance(tenant, &bytes);
        let new = glance.new_bytes(&bytes);
        let verdict = new.clone().map(|new| is_too_deep_within(&bytes, new, LIST_DEPTH));
        assert!(verdict.is_none_or(|it| it == is_too_deep(&bytes)), "{text}");
        if is_too_deep(&bytes) {
            return false;
        }
        let told = |read: Result<Read<'_>, Error>| match read {
            Ok(read) => format!("{:?} {:?}", read.outline, read.chains),
            Err(error) => error.to_string(),
        };
        let fresh = Gateway::default();
        let fresh = told(fresh.seen.read(tenant, Wire::OpenaiChat, text, &bytes, &fresh.glance(tenant, &bytes)));
        assert_eq!(told(gateway.seen.read(tenant, Wire::OpenaiChat, text, &bytes, &glance)), fresh, "{text}");
        new.is_some()
    }

    #[test]
    fn what_was_seen_before_is_read_as_if_it_was_not() {
        let (gateway, mut known, mut damaged) = (Gateway::default(), 0, 0);
        let [one, other] = ["one", "other"].map(Tenant::from);
        for seed in 0..40 {
            let mut dice = Dice::new(seed);
            let mut messages: Vec<String> = (0..4 + dice.below(20)).map(|nth| message(&mut dice, nth)).collect();
            for _ in 0..6 {
                let ending = ["]}", "],\"stream\":true}", " ] , \"n\" : 1 } "][dice.below(3)];
                let text = body(&messages, ending);
                known += usize::from(agrees(&gateway, &one, &text));
                let others = gateway.glance(&other, text.as_bytes()).new_bytes(text.as_bytes());
                assert!(others.is_none(), "it is somebody else's");
                for _ in 0..6 {
                    let mut text = text.clone();
                    let at = text.ceil_char_boundary(text.len() - dice.below(text.len().min(9_000)));
                    text.insert_str(at, &dice.pick(&PIECES).repeat(1 + dice.below(40)));
                    damaged += usize::from(agrees(&gateway, &one, &text));
                }
                messages.push(message(&mut dice, messages.len()));
                messages.push(message(&mut dice, messages.len()));
            }
        }
        assert!(known > 180 && damaged > 500, "{known} {damaged}");
        let kept = gateway.seen.kept.lock().unwrap();
        let mut bodies: Vec<&Arc<Body>> = kept.alike.values().flatten().collect();
        bodies.sort_by_key(|body| Arc::as_ptr(body));
        bodies.dedup_by_key(|body| Arc::as_ptr(body));
        assert_eq!(kept.bytes, bodies.iter().map(|body| body.bytes.len()).sum::<usize>());
        assert!(kept.bytes <= BYTES_MAX);
    }
}
