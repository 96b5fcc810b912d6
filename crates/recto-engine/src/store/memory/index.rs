//! Which entries hold a term.

use super::held::{Held, Tenancy};
use crate::error::Error;
use crate::store::*;
use std::collections::{BTreeMap, BTreeSet};

/// Where terms stand, as far as that was worked out.
#[derive(Debug, Default)]
pub(super) struct Words {
    holding: BTreeMap<Text, BTreeSet<Seq>>,
    upto: Option<Seq>,
    texts: u64,
}

impl Held {
    /// How far its index has come; what is another conversation's is in that one's.
    fn reached(&self) -> Indexed {
        let shared = self.from.as_ref().and_then(|from| from.upto);
        Indexed { upto: self.words.upto.max(shared), texts: self.words.texts }
    }
}

impl Tenancy {
    pub(super) fn index(&mut self, id: &ConversationId, texts: Vec<Termed>) -> Result<Indexed, Error> {
        let held = self.live_mut(id)?;
        let upto = held.reached().upto;
        for Termed { seq, terms } in texts.into_iter().filter(|it| Some(it.seq) > upto) {
            held.words.texts += u64::from(!terms.is_empty());
            held.words.upto = held.words.upto.max(Some(seq));
            for term in terms {
                held.words.holding.entry(term).or_default().insert(seq);
            }
        }
        Ok(held.reached())
    }

    pub(super) fn indexed(&self, id: &ConversationId) -> Result<Indexed, Error> {
        Ok(self.live(id)?.reached())
    }

    pub(super) fn postings(&self, id: &ConversationId, terms: &[Text], most: usize) -> Result<Vec<Posting>, Error> {
        let find = |term: &Text| -> Result<Posting, Error> {
            let (mut posting, mut at, mut upto) = (Posting::default(), Some(id.clone()), None);
            while let Some(id) = at {
                let held = self.live(&id)?;
                let places = held.words.holding.get(term).into_iter().flatten().rev();
                for seq in places.filter(|seq| upto.is_none_or(|upto: Option<Seq>| Some(**seq) <= upto)) {
                    if posting.seqs.len() == most {
                        posting.is_cut = true;
                        break;
                    }
                    posting.seqs.push(*seq);
                }
                let from = held.from.as_ref();
                upto = from.map(|from| upto.map_or(from.upto, |upto: Option<Seq>| upto.min(from.upto)));
                at = from.map(|from| from.conversation.clone());
            }
            Ok(posting)
        };
        terms.iter().map(find).collect()
    }
}
