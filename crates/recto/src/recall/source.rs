//! Other sources: documents, notes, somebody's index. What they find comes back as what a conversation has said does.

use super::{OnPage, Query, Shelf};
use crate::entry::{Entry, EntryKind, Role, Text};
use crate::error::Error;
use crate::fragment::Fragment;
use crate::log::{Counted, Log};
use crate::tokens::{Count, Tokens};
use std::fmt::Debug;

/// A text that a source has found, and what it is called there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Document {
    /// Where it is from: a path, a title.
    pub title: Text,
    /// What it says.
    pub text: Text,
}

/// Somewhere else that something may come back from.
pub trait Source: Debug + Send + Sync {
    /// Returns its name; what came from it is told by that.
    fn name(&self) -> &str;
    /// Returns what answers a query, within so many tokens, in the order in which it is to be read.
    fn find(&self, query: &Query, budget: Tokens, counter: &dyn Count) -> Vec<Document>;
}

/// Returns the prompt piece that shows what a source has for a query; none where it has nothing.
pub fn retrieved(source: &dyn Source, query: &Query, budget: Tokens, counter: &dyn Count) -> Option<Fragment> {
    let found = source.find(query, budget, counter);
    let texts: Vec<String> = found.iter().map(|it| format!("[{}]\n{}", it.title, it.text.trim_end())).collect();
    let content = format!("From {}:\n{}", source.name(), texts.join("\n"));
    (!texts.is_empty()).then(|| Fragment::retrieved(source.name(), content))
}

/// Texts in memory, found by their words as results of tools are: the newest last.
#[derive(Clone, Debug)]
pub struct Documents {
    name: Text,
    titles: Vec<Text>,
    texts: Log,
}

impl Documents {
    /// Returns documents under a name for all of them; a text that no page could hold is an error.
    pub fn of(
        name: impl Into<Text>,
        documents: impl IntoIterator<Item = Document>,
        counter: impl Count + 'static,
    ) -> Result<Documents, Error> {
        let (mut titles, mut texts) = (Vec::new(), Log::counted_by(counter));
        for Document { title, text } in documents {
            let entry = Entry { kind: Some(EntryKind::Injection), ..Entry::user(text) };
            texts.append(entry)?;
            titles.push(title);
        }
        Ok(Documents { name: name.into(), titles, texts })
    }
}

impl Source for Documents {
    fn name(&self) -> &str {
        &self.name
    }

    fn find(&self, query: &Query, budget: Tokens, counter: &dyn Count) -> Vec<Document> {
        let mut entries: Vec<&Counted> = self.texts.back_by(Role::User).collect();
        entries.reverse();
        let mut shelf = Shelf::default();
        entries.iter().for_each(|entry| shelf.add(entry));
        let found = shelf.find(query, &OnPage::default(), budget, counter);
        let picked = found.resolve(&entries);
        let document = |(pick, entry): (super::Pick, &Counted)| {
            let title = self.titles.get(usize::try_from(entry.seq.0).ok()?)?.clone();
            Some(Document { title, text: pick.text(entry)?.into() })
        };
        picked.into_iter().filter_map(document).collect()
    }
}
