//! Fragments: prompt pieces that the host supplies at each call.

use crate::digest::{Digest, Hasher};
use crate::entry::{Part, Role, Text};
use crate::error::Error;
use crate::forging::{Delimiters, Woven};
use crate::log::{cost_of, digest_of};
use crate::redact::Screen;
use crate::tokens::{Count, Tokens};
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::sync::Arc;

/// A prompt piece: recomputed by the host and sent with every page, never stored as history.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Fragment {
    /// Its name, unlike that of any other fragment or entry.
    pub id: Text,
    /// Whether it stays the same from call to call.
    pub lifecycle: Lifecycle,
    /// In whose name it speaks.
    pub role: Role,
    /// Where it stands.
    pub placement: Placement,
    /// Whether its text may be taken at its word.
    pub trust: Trust,
    /// What to call it in the text around untrusted content.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tag: Option<Text>,
    /// What it says; an empty one is left out.
    pub content: Text,
    /// Whether it may be left out when there is no room.
    pub priority: Priority,
}

/// Whether a fragment stays the same from call to call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Lifecycle {
    /// Identity, project, rules: the same at every call, so that caches hold.
    Static,
    /// Todos, status, retrieved text: new at every call.
    Dynamic,
}

/// Where a fragment stands on the page.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Placement {
    /// Before all history.
    Head,
    /// After all history, before the input.
    Tail,
    /// At the end of the last user message.
    AttachLastUser,
}

/// Whether a text may be taken at its word.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Trust {
    /// The host's own words.
    Trusted,
    /// Somebody else's: fenced, so that it can't pass for the host's.
    Untrusted,
}

/// Whether a fragment may be left out when there is no room.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Priority {
    /// It may; those with smaller numbers go first. History has the room before any of them.
    Optional(u8),
    /// It may not.
    Required,
}

impl Fragment {
    /// Returns a static system prompt at the head.
    pub fn fixed(id: impl Into<Text>, content: impl Into<Text>) -> Fragment {
        Fragment {
            id: id.into(),
            lifecycle: Lifecycle::Static,
            role: Role::System,
            placement: Placement::Head,
            trust: Trust::Trusted,
            tag: None,
            content: content.into(),
            priority: Priority::Required,
        }
    }

    /// Returns a dynamic system prompt at the tail.
    pub fn dynamic(id: impl Into<Text>, content: impl Into<Text>) -> Fragment {
        Fragment { lifecycle: Lifecycle::Dynamic, placement: Placement::Tail, ..Fragment::fixed(id, content) }
    }

    /// Returns retrieved text: dynamic, untrusted, in the user's place, and the first to go.
    pub fn retrieved(id: impl Into<Text>, content: impl Into<Text>) -> Fragment {
        let (trust, role, priority) = (Trust::Untrusted, Role::User, Priority::Optional(0));
        Fragment { trust, role, priority, tag: Some("retrieved".into()), ..Fragment::dynamic(id, content) }
    }

    /// The name of the fence around untrusted text.
    pub(crate) fn fence(&self) -> Option<&str> {
        (self.trust == Trust::Untrusted).then(|| self.tag.as_deref().unwrap_or("untrusted"))
    }

    /// Returns what stands on the page: untrusted text is fenced, and can't pass for anything of ours.
    fn told(&self, delimiters: &Delimiters) -> Text {
        let Some(fence) = self.fence() else { return self.content.clone() };
        let mut woven = Woven::default();
        woven.ours(&format!("<{fence}>\n"));
        woven.theirs(&self.content);
        woven.ours(&format!("\n</{fence}>"));
        woven.told(delimiters)
    }
}

/// The fragments of a call, counted once.
#[derive(Clone, Debug, PartialEq)]
pub struct Fragments {
    list: Arc<[Rendered]>,
    /// What they are seen through, and how many of them hold placeholders.
    screen: Option<(Arc<Screen>, usize)>,
}

/// A fragment as it stands on a page.
#[derive(Clone, Debug, PartialEq)]
pub struct Rendered {
    /// What the host supplied.
    pub fragment: Fragment,
    /// What stands on the page.
    pub part: Part,
    /// What stands in the same message behind it: pictures that were said with the words.
    pub more: Arc<[Part]>,
    /// What that costs, without the message around it.
    pub cost: Tokens,
    /// What identifies it: changed static fragments are known by it.
    pub fingerprint: Digest,
}

impl Fragments {
    /// Counts and renders fragments; two of one name are an error.
    pub fn counted(fragments: impl IntoIterator<Item = Fragment>, counter: &dyn Count) -> Result<Fragments, Error> {
        let fragments: Vec<Fragment> = fragments.into_iter().collect();
        let delimiters = delimiters(&fragments);
        let mut list: Vec<Rendered> = Vec::new();
        for fragment in fragments {
            if list.iter().any(|other| other.fragment.id == fragment.id) {
                let what = format!("two fragments are called {:?}", &*fragment.id);
                return Err(Error::settings(what, "give every fragment an id of its own"));
            }
            list.push(Rendered::of(fragment, counter, &delimiters));
        }
        Ok(Fragments::of(list))
    }

    /// Fragments whose names differ, in this order.
    pub(crate) fn of(list: Vec<Rendered>) -> Fragments {
        Fragments { list: list.into(), screen: None }
    }

    /// Returns the same and one more; two of one name are an error.
    pub fn and(&self, fragment: Fragment, counter: &dyn Count) -> Result<Fragments, Error> {
        let all = self.list.iter().map(|it| it.fragment.clone()).chain([fragment]);
        Fragments::counted(all, counter)
    }

    /// Returns them as they are seen through a screen; `None` where they are seen through it already.
    pub fn through(&self, screen: &Screen, counter: &dyn Count) -> Option<Fragments> {
        if self.screen.as_ref().is_some_and(|(known, _)| **known == *screen) {
            return None;
        }
        let delimiters = delimiters(self.list.iter().map(|it| &it.fragment));
        let mut redacted = 0;
        let shown = |it: &Rendered| match screen.text(&it.fragment.content) {
            Cow::Borrowed(_) => it.clone(),
            Cow::Owned(content) => {
                redacted += 1;
                let fragment = Fragment { content: content.into(), ..it.fragment.clone() };
                Rendered::of(fragment, counter, &delimiters)
            }
        };
        let list = self.list.iter().map(shown).collect();
        Some(Fragments { list, screen: Some((Arc::new(screen.clone()), redacted)) })
    }

    pub(crate) fn redacted(&self) -> usize {
        self.screen.as_ref().map_or(0, |(_, redacted)| *redacted)
    }

    /// Returns the fragments, in the order they were given.
    pub fn list(&self) -> &[Rendered] {
        &self.list
    }

    pub(crate) fn digest(&self) -> Digest {
        let mut hasher = Hasher::new();
        self.list.iter().for_each(|it| {
            hasher.digest(it.fingerprint);
            hasher.text(&format!("{:?}{:?}{:?}", it.fragment.placement, it.fragment.lifecycle, it.fragment.priority));
        });
        hasher.finish()
    }
}

/// What stands for structure around fragments.
fn delimiters<'f>(fragments: impl IntoIterator<Item = &'f Fragment>) -> Delimiters {
    let fences = fragments.into_iter().filter_map(Fragment::fence);
    fences.fold(Delimiters::default(), |known, fence| known.with_fence(fence))
}

impl Rendered {
    /// Counts and renders a fragment, on a page with these delimiters.
    pub(crate) fn of(fragment: Fragment, counter: &dyn Count, delimiters: &Delimiters) -> Rendered {
        let text = fragment.told(delimiters);
        let mut hasher = Hasher::new();
        [&*fragment.id, &*fragment.role.to_string(), &*text].iter().for_each(|text| hasher.text(text));
        let (cost, fingerprint) = (counter.count(&text), hasher.finish());
        Rendered { part: Part::Text { text }, more: [].into(), cost, fingerprint, fragment }
    }

    /// The same with more in its message.
    pub(crate) fn with(self, more: &[Part], counter: &dyn Count) -> Rendered {
        if more.is_empty() {
            return self;
        }
        let mut hasher = Hasher::new();
        hasher.digest(self.fingerprint);
        hasher.digest(digest_of(self.fragment.role, None, more));
        let cost = self.cost + more.iter().map(|part| cost_of(part, counter)).sum();
        Rendered { more: more.into(), cost, fingerprint: hasher.finish(), ..self }
    }

    /// All that stands in its message.
    pub(crate) fn parts(&self) -> Vec<Part> {
        std::iter::once(self.part.clone()).chain(self.more.iter().cloned()).collect()
    }

    /// Whether anything of it would stand on a page.
    pub(crate) fn is_empty(&self) -> bool {
        self.fragment.content.is_empty()
    }
}
