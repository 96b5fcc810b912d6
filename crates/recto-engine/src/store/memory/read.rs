//! The verbs that read.

use super::held::Tenancy;
use crate::error::Error;
use crate::store::*;
use recto::Tokens;
use std::collections::BTreeSet;
use std::ops::Bound;

impl Tenancy {
    pub(super) fn linked(&self, prefixes: Vec<Digest>) -> Vec<Link> {
        let found = |prefix: Digest| {
            let from = (prefix, ConversationId::from(""));
            let all = self.links.range(from..).take_while(|((it, _), _)| *it == prefix);
            let mut links: Vec<Link> = all
                .filter_map(|((_, id), seq)| {
                    let held = self.live(id).ok()?;
                    Some(Link { prefix, conversation: id.clone(), seq: *seq, head: held.tally.head() })
                })
                .collect();
            links.sort_by_key(|link| link.head != Some(link.seq));
            links.truncate(LINKS_MAX);
            links
        };
        prefixes.into_iter().map(found).find(|links| !links.is_empty()).unwrap_or_default()
    }

    pub(super) fn list(&self, after: Option<&ConversationId>, rows: usize) -> Vec<Conversation> {
        let from = after.map_or(Bound::Unbounded, Bound::Excluded);
        let behind = self.conversations.range::<ConversationId, _>((from, Bound::Unbounded));
        let left = behind.filter(|(_, held)| held.state != State::Erased);
        left.take(rows.min(ROWS_MAX)).map(|(id, held)| held.row(id)).collect()
    }

    pub(super) fn back(&self, id: &ConversationId, back: &Back) -> Result<Vec<Row>, Error> {
        let mut read = Tokens(0);
        let mut rows = Vec::new();
        for (_, held, seq, row) in self.rows_back(id, back.below)? {
            if rows.len() >= back.rows.min(ROWS_MAX) || read >= back.tokens {
                break;
            }
            if back.strands.is_empty() || back.strands.contains(&row.strand) {
                read += row.cost;
                rows.push(held.read(seq, row));
            }
        }
        Ok(rows)
    }

    pub(super) fn forth(&self, id: &ConversationId, from: Seq, rows: usize) -> Result<Vec<Row>, Error> {
        let mut behind: Vec<_> = self.rows_back(id, None)?.take_while(|(_, _, seq, _)| *seq >= from).collect();
        behind.reverse();
        Ok(behind.into_iter().take(rows.min(ROWS_MAX)).map(|(_, held, seq, row)| held.read(seq, row)).collect())
    }

    pub(super) fn rows(&self, id: &ConversationId, seqs: Vec<Seq>) -> Result<Vec<Row>, Error> {
        let mut rows = Vec::new();
        for seq in BTreeSet::from_iter(seqs) {
            let newest = self.rows_back(id, Some(seq.next()))?.next();
            rows.extend(newest.filter(|it| it.2 == seq).map(|(_, held, seq, row)| held.read(seq, row)));
        }
        self.live(id).map(|_| rows)
    }

    pub(super) fn tallies(&self, id: &ConversationId, at: &[Seq]) -> Result<Vec<Tally>, Error> {
        self.live(id)?;
        at.iter().map(|&at| self.tally_at(id, at)).collect()
    }

    pub(super) fn first(&self, id: &ConversationId, strand: usize, from: Seq) -> Result<Option<Seq>, Error> {
        let behind = self.rows_back(id, None)?.take_while(|(_, _, seq, _)| *seq >= from);
        Ok(behind.filter(|(.., row)| row.strand == strand).map(|(_, _, seq, _)| seq).last())
    }

    pub(super) fn decisions(
        &self,
        id: &ConversationId,
        reader: &ReaderName,
        upto: Upto,
        which: &Decisions,
    ) -> Result<Vec<DecisionRow>, Error> {
        let all = self.all_decisions(id, reader)?.into_iter().filter(|row| row.ordinal <= upto.ordinal);
        if let Decisions::After { ordinal, rows } = which {
            let newer = all.filter(|row| row.ordinal > *ordinal);
            return Ok(newer.take((*rows).min(ROWS_MAX)).cloned().collect());
        }
        let (reverts, all): (Vec<_>, Vec<_>) = all.partition(|row| row.kind == DecisionKind::Revert);
        let mut chosen: Vec<&DecisionRow> = match which {
            Decisions::Floors(floors) => {
                let newest = all.into_iter().rev().filter(|row| row.kind == DecisionKind::Floor);
                newest.take(*floors).collect()
            }
            _ => {
                let newest_cut = all.iter().rev().find(|row| row.kind == DecisionKind::Cut).map(|row| row.ordinal);
                let is_newest_cut = |row: &DecisionRow| Some(row.ordinal) == newest_cut;
                all.into_iter().filter(|row| is_asked(row, which, is_newest_cut(row))).collect()
            }
        };
        let ordinals: BTreeSet<u64> = chosen.iter().map(|row| row.ordinal).collect();
        chosen.extend(reverts.into_iter().filter(|revert| ordinals.contains(&revert.about)));
        chosen.sort_by_key(|row| row.ordinal);
        Ok(chosen.into_iter().cloned().collect())
    }

    pub(super) fn turns(
        &self,
        id: &ConversationId,
        reader: &ReaderName,
        upto: Upto,
        which: &Turns,
    ) -> Result<Vec<TurnRow>, Error> {
        let all: Vec<_> = self.all_turns(id, reader)?.into_iter().filter(|row| row.turn < upto.turn).collect();
        let first_with = |seq: &Seq| all.iter().find(|row| row.head >= Some(*seq)).map(|row| row.turn);
        let asked: Vec<&TurnRow> = match which {
            Turns::From(seq) => all.into_iter().filter(|row| row.head >= Some(*seq)).collect(),
            Turns::FirstWith(seqs) => {
                let first: BTreeSet<u64> = seqs.iter().filter_map(first_with).collect();
                all.into_iter().filter(|row| first.contains(&row.turn)).collect()
            }
            Turns::One(turn) => all.into_iter().filter(|row| row.turn == *turn).collect(),
            Turns::Since { turn, rows } => {
                all.into_iter().filter(|row| row.turn >= *turn).take((*rows).min(ROWS_MAX)).collect()
            }
        };
        Ok(asked.into_iter().cloned().collect())
    }

    pub(super) fn contents(&self, id: &ConversationId, digests: Vec<Digest>) -> Result<Vec<(Digest, Text)>, Error> {
        let mut contents = Vec::new();
        for digest in BTreeSet::from_iter(digests) {
            contents.extend(self.content(id, &digest)?.map(|text| (digest, text)));
        }
        self.live(id).map(|_| contents)
    }
}

fn is_asked(row: &DecisionRow, which: &Decisions, is_newest_cut: bool) -> bool {
    match which {
        Decisions::Floors(_) | Decisions::After { .. } => true,
        Decisions::About(seqs) => seqs.contains(&Seq(row.about)),
        Decisions::Standing { from, turn, since } => match row.kind {
            DecisionKind::Entry => row.about >= from.0,
            DecisionKind::Expand => row.about >= from.0 || row.ordinal > *since,
            DecisionKind::Pin => true,
            DecisionKind::Cut => row.turn >= *turn || is_newest_cut,
            DecisionKind::Floor | DecisionKind::Revert => false,
        },
    }
}
