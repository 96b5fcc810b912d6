//! Drop images: pictures go, but for the newest.
//!
//! Of every picture but the newest few, a line stays that names it. It must not run where the model compares pictures
//! over many turns.

use super::Reduce;
use crate::edit::{Change, Edit, PartAt, Reason};
use crate::entry::{Part, Piece};
use crate::item::{Item, result_text};
use crate::policy::Pass;
use crate::reader::Decided;
use crate::request::Request;
use crate::tokens::Tokens;
use crate::view::View;
use serde::{Deserialize, Serialize};

/// The pass and its numbers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DropImages {
    /// How many pictures stay, counted from the newest.
    pub keep: usize,
}

/// A picture on the page: where, what stands for it, and what that saves.
struct Picture {
    at: PartAt,
    instead: String,
    before: Tokens,
}

impl Reduce for DropImages {
    fn name(&self) -> &str {
        "drop-images"
    }

    fn propose(&self, view: &View<'_>, request: &Request<'_>) -> Vec<Edit> {
        let decided = Decided { reader: request.reader, more: &[] };
        let mut pictures: Vec<Picture> = view.editable().flat_map(pictures).collect();
        pictures.sort_by_key(|picture| picture.at);
        pictures.truncate(pictures.len().saturating_sub(self.keep));
        let edits = pictures.into_iter().filter(|picture| !decided.touched(picture.at)).map(|picture| {
            let after = view.count(&picture.instead);
            let change = Change::Replace { at: picture.at, text: picture.instead.into() };
            let why = Reason::NotNewest { keep: self.keep };
            Edit { change, by: "drop-images".into(), why, before: picture.before, after, due: None }
        });
        edits.filter(|edit| edit.after < edit.before).collect()
    }

    fn data(&self) -> Option<Pass> {
        Some(Pass::DropImages(self.clone()))
    }
}

fn pictures(item: &Item<'_>) -> Vec<Picture> {
    let own = item
        .parts()
        .iter()
        .enumerate()
        .filter(|(part, it)| matches!(it, Part::Image(_)) && item.changed_part(*part).is_none());
    let own = own.map(|(part, _)| {
        let at = PartAt { seq: item.seq(), part };
        Picture { at, instead: format!("[image left out, handle {at}]"), before: item.part_cost(part) }
    });
    let has_picture = |it: &crate::item::ResultOf<'_>| it.result.content.iter().any(|it| matches!(it, Piece::Image(_)));
    let results = item.results().filter(|it| !it.is_changed).filter(has_picture);
    let results = results.map(|it| {
        let instead = format!("{}\n[image left out, handle {}]", result_text(it.result), it.at);
        Picture { at: it.at, instead, before: it.cost }
    });
    own.chain(results).collect()
}
