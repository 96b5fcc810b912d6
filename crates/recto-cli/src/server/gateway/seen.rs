//! What was read of the requests before. A client sends its history again and again, so most of each body was seen in
//! the one before; what is byte for byte the same need not be read again.

use axum::body::Bytes;
use recto::Error;
use recto::chain::{Chain, atoms};
use recto::digest::Digest;
use recto::wire::{Decoded, Outline, Wire};
use recto_engine::Tenant;
use std::collections::HashMap;
use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};

/// How much is kept of bodies, in bytes.
const BYTES_MAX: usize = 32 * 1024 * 1024;
/// How large a body may be for a copy of it to be kept.
const COPIED_BYTES_MAX: usize = 16 * 1024;
/// How many bodies are kept that begin alike.
const ALIKE_MAX: usize = 4;

/// Bodies of late.
#[derive(Default)]
pub(super) struct Seen {
    kept: Mutex<Kept>,
}

#[derive(Default)]
struct Kept {
    alike: HashMap<Digest, Vec<Arc<Body>>>,
    bytes: usize,
}

/// A body, and what was read of it.
struct Body {
    bytes: Bytes,
    elements: Vec<Range<usize>>,
    chains: Vec<Chain>,
}

impl Body {
    /// How many elements of an outline are the same as here.
    fn shared(&self, elements: &[&str]) -> usize {
        let same = |(range, element): &(&Range<usize>, &&str)| self.bytes[(*range).clone()] == *element.as_bytes();
        self.elements.iter().zip(elements).take_while(same).count()
    }
}

impl Seen {
    /// Returns what identifies everything that was said, up to and with each of the elements behind the instructions;
    /// and the last of these elements, each read by itself, as far back as they were not seen before.
    pub(super) fn chains(
        &self,
        tenant: &Tenant,
        wire: Wire,
        outline: &Outline<'_>,
        bytes: &Bytes,
    ) -> Result<(Vec<Chain>, Vec<Decoded>), Error> {
        let elements = &outline.elements[outline.leading..];
        let Some(first) = elements.first() else { return Ok((Vec::new(), Vec::new())) };
        let key = key(tenant, wire, first);
        let (body, shared) = self.like(key, elements);
        let mut chains = body.as_ref().map_or(Vec::new(), |body| body.chains[..shared].to_vec());
        let mut chain = chains.last().copied().unwrap_or_default();
        let mut unseen = Vec::with_capacity(elements.len() - shared);
        for element in &elements[shared..] {
            let read = wire.read_elements(&[element], outline.model.as_deref())?;
            chain = read.entries.iter().flat_map(atoms).fold(chain, Chain::then);
            chains.push(chain);
            unseen.push(read);
        }
        if shared < elements.len() {
            let offset = |element: &str| element.as_ptr() as usize - bytes.as_ptr() as usize;
            // A small body is a piece of its connection's buffer, which would be kept whole.
            let kept = if bytes.len() <= COPIED_BYTES_MAX { Bytes::copy_from_slice(bytes) } else { bytes.clone() };
            let ranges = elements.iter().map(|element| offset(element)..offset(element) + element.len());
            let known = Body { bytes: kept, elements: ranges.collect(), chains: chains.clone() };
            self.keep(key, known, body.filter(|body| shared == body.elements.len()));
        }
        Ok((chains, unseen))
    }

    /// Returns the body that shares most of its beginning.
    fn like(&self, key: Digest, elements: &[&str]) -> (Option<Arc<Body>>, usize) {
        let alike = self.kept.lock().unwrap_or_else(PoisonError::into_inner).alike.get(&key).cloned();
        let shared = alike.into_iter().flatten().map(|body| (body.shared(elements), body));
        shared.max_by_key(|(shared, _)| *shared).map_or((None, 0), |(shared, body)| (Some(body), shared))
    }

    /// Keeps a body, in place of the one that it goes on from.
    fn keep(&self, key: Digest, body: Body, instead: Option<Arc<Body>>) {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        // All of it can be read again, so forgetting all of it now and then is good enough.
        if kept.bytes + body.bytes.len() > BYTES_MAX {
            *kept = Kept::default();
        }
        if body.bytes.len() > BYTES_MAX / 2 {
            return;
        }
        let mut change = body.bytes.len() as i64;
        let alike = kept.alike.entry(key).or_default();
        if let Some(at) = instead.and_then(|old| alike.iter().position(|it| Arc::ptr_eq(it, &old))) {
            change -= alike.remove(at).bytes.len() as i64;
        } else if alike.len() >= ALIKE_MAX {
            change -= alike.remove(0).bytes.len() as i64;
        }
        alike.push(Arc::new(body));
        kept.bytes = kept.bytes.saturating_add_signed(change as isize);
    }
}

fn key(tenant: &Tenant, wire: Wire, first: &str) -> Digest {
    let tenant = tenant.as_str();
    Digest::of(format!("{} {tenant} {} {first}", tenant.len(), wire.name()).as_bytes())
}
