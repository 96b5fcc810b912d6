//! What the conversation says of the human: a want, where the policy lets a model be asked.

use super::{Kind, Profile};
use crate::digest::{Digest, Hasher};
use crate::entry::{Role, Section, Seq, Span, Text};
use crate::log::{Counted, Scope};
use crate::note::{Note, Want};
use crate::request::Request;

/// What is learned is learned anew after so many entries.
const STEP: u64 = 50;
/// From fewer messages nothing is learned.
const MESSAGES_MIN: usize = 5;
/// How many messages it is learned from, the newest.
const MESSAGES_MAX: usize = 200;
/// About how many characters it should have.
const CHARS: u32 = 800;

/// What a human said up to a place, newest last.
pub(crate) struct Words<'a> {
    pub(crate) entries: Vec<&'a Counted>,
    pub(crate) span: Span,
    pub(crate) digest: Digest,
}

impl<'a> Words<'a> {
    /// The words up to the last step; the same until the next.
    fn of(request: &Request<'a>) -> Option<Words<'a>> {
        let end = request.log.head()?.next().0 / STEP * STEP;
        Words::before(request, Seq(end))
    }

    /// The words before a place.
    pub(crate) fn before(request: &Request<'a>, end: Seq) -> Option<Words<'a>> {
        let scope = Scope { section: Some(Section::default()), lane: None, role: Some(Role::User) };
        let said = request.log.back_in(&scope).skip_while(|entry| entry.seq >= end);
        let said = said.filter(|entry| entry.original().is_user_words()).take(MESSAGES_MAX);
        let mut entries: Vec<&Counted> = said.collect();
        entries.reverse();
        let (first, last) = (entries.first()?.seq, entries.last()?.seq);
        let mut hasher = Hasher::new();
        entries.iter().for_each(|entry| hasher.digest(entry.digest));
        (entries.len() >= MESSAGES_MIN).then(|| Words { entries, span: Span { first, last }, digest: hasher.finish() })
    }
}

/// The want of a request whose policy lets it be learned who the human is, and whose host doesn't say.
fn want(request: &Request<'_>) -> Option<Want> {
    let profile: &Profile = request.policy.blocks.iter().find_map(|block| match &block.kind {
        Kind::Profile(profile) => Some(profile),
        _ => None,
    })?;
    let is_known = request.facts.is_some_and(|facts| profile.found(&facts.profile).is_some());
    let words = Words::of(request).filter(|_| profile.learn && !is_known)?;
    Some(Want::of_human(words.span, words.digest, CHARS))
}

/// What a plan wants, if nothing has come of it yet.
pub(crate) fn wanted(request: &Request<'_>) -> Option<Want> {
    want(request).filter(|want| request.notes.is_some_and(|notes| notes.get(want.key).is_none()))
}

/// Returns what a model has made of the human's words, where the policy's profile may be learned and the host says nothing
/// of its own: for the host to put among its facts, under the first key of the profile, if it agrees.
pub fn learned(request: &Request<'_>) -> Option<Text> {
    match request.notes?.get(want(request)?.key)? {
        Note::Made { text, .. } => Some(text.clone()),
        Note::Failed { .. } => None,
    }
}
