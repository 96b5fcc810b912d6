//! What becomes of what a summary is to stand for: the summary, if there is one; a want, if somebody could make one; else
//! its beginning.

use super::stub::Stub;
use super::{Due, Said};
use crate::edit::{Edit, Reason};
use crate::expiry::ExpiryAction;
use crate::note::{Note, Want};
use crate::policy::Apply;
use crate::request::Request;
use crate::view::View;

/// Why there is no summary where nobody makes any.
const NOBODY: &str = "nobody makes summaries here";

/// What becomes of something that has expired.
pub(super) enum Outcome {
    /// It is shortened.
    Edit(Box<Edit>),
    /// It waits for a summary.
    Want(Want),
}

impl From<Edit> for Outcome {
    fn from(edit: Edit) -> Outcome {
        Outcome::Edit(Box::new(edit))
    }
}

impl Due {
    /// What becomes of a text, if anything does.
    pub(super) fn outcome(
        &self,
        said: &Said<'_>,
        stub: Stub<'_>,
        view: &View<'_>,
        request: &Request<'_>,
    ) -> Option<Outcome> {
        let ExpiryAction::Summary { chars } = self.expiry.action else {
            return self.shortened(said.text, said.cost, &stub, view).map(Outcome::from);
        };
        // What has no more than a summary would have needs none.
        said.words.char_indices().nth(chars as usize)?;
        let want = Want::of_part(self.at, said.words, stub.prompt.clone(), chars);
        match request.notes.map(|notes| notes.get(want.key)) {
            None => self.beginning(NOBODY, chars, said, &stub, view),
            Some(Some(Note::Failed { why })) => self.beginning(why, chars, said, &stub, view),
            Some(Some(Note::Made { text, model })) => {
                let of = said.words.chars().count();
                let (age, limit, shown) = (self.age, self.expiry.after, text.chars().count());
                let why = Reason::Condensed { age, limit, shown, of, model: model.clone() };
                let short = stub.summary(text, of);
                // A late result says at its own place what it answers.
                let told = said.text.strip_suffix(said.words).filter(|_| said.text.len() > said.words.len());
                self.replaced(format!("{}{short}", told.unwrap_or_default()), why, said.cost, view).map(Outcome::from)
            }
            Some(None) => Some(Outcome::Want(Want { is_urgent: request.policy.apply == Apply::Immediately, ..want })),
        }
    }

    /// The edit that leaves the beginning, because there is no summary.
    fn beginning(&self, why: &str, chars: u32, said: &Said<'_>, stub: &Stub<'_>, view: &View<'_>) -> Option<Outcome> {
        let (short, of) = stub.first(said.text, chars as usize)?;
        let (age, limit) = (self.age, self.expiry.after);
        let why = Reason::NotCondensed { age, limit, shown: chars as usize, of, why: why.into() };
        self.replaced(short, why, said.cost, view).map(Outcome::from)
    }
}
