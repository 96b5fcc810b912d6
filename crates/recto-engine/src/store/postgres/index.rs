//! Which entries hold a term.
//!
//! No word stands in this index, only a number for each: so every word of every language is found by the same plain index,
//! on any server that speaks the protocol. Rows go with what they were made of.

use super::found::{Found, with};
use super::pool::{Db, Statement};
use super::transaction::Plan;
use super::value::{number, values, whole};
use crate::error::Error;
use crate::store::sqlite::found::{integer, place};
use crate::store::{ConversationId, Indexed, Posting, Tenant, Termed};
use recto::digest::Digest;
use recto::entry::Text;
use std::collections::BTreeSet;

/// How many numbers one statement inserts.
const INSERT_ROWS: usize = 4_000;

const STATE: &str = "SELECT upto, texts FROM word_index WHERE tenant = $1 AND conversation = $2";
const PUT_STATE: &str = "
    INSERT INTO word_index (tenant, conversation, upto, texts) VALUES ($1, $2, $3, $4)
    ON CONFLICT (tenant, conversation) DO UPDATE SET upto = excluded.upto, texts = excluded.texts";
const PUT: &str = "
    INSERT INTO posting (tenant, conversation, term, seq)
    SELECT $1, $2, p.term, p.seq FROM unnest($3::BIGINT[], $4::BIGINT[]) AS p (term, seq)
    ON CONFLICT (tenant, conversation, term, seq) DO NOTHING";
const FIND: &str = "
    SELECT seq FROM posting WHERE tenant = $1 AND conversation = $2 AND term = $3 AND seq <= $4
    ORDER BY seq DESC LIMIT $5";
/// Forgets an entry.
pub(super) const FORGET: &str = "DELETE FROM posting WHERE tenant = $1 AND conversation = $2 AND seq = $3";

/// What stands for a term of a conversation.
fn numbered(tenant: &Tenant, id: &ConversationId, term: &str) -> i64 {
    let [a, b, c, d, e, f, g, h, ..] =
        Digest::of(format!("{}\0{}\0{term}", tenant.as_str(), id.as_str()).as_bytes()).to_bytes();
    i64::from_le_bytes([a, b, c, d, e, f, g, h])
}

/// How far it has come: up to which place, and how many entries of its own it has.
async fn state(db: &Db, found: &Found) -> Result<(i64, u64), Error> {
    let own = values![found.tenant.as_str(), found.id().as_str()];
    match db.row(STATE, own).await? {
        Some(row) => Ok((number(&row, 0)?, whole(&row, 1)?)),
        // What is another conversation's is in that one's index.
        None => Ok((found.chain.get(1).map_or(-1, |link| link.upto), 0)),
    }
}

/// Adds entries that follow those which are there; others are passed over.
pub(super) async fn add<'v>(
    db: Db,
    tenant: &'v Tenant,
    id: &'v ConversationId,
    texts: &[Termed],
) -> Result<Plan<'v, Indexed>, Error> {
    let found = Found::locked(&db, tenant, id).await?;
    let (from, mut count) = state(&db, &found).await?;
    let mut upto = from;
    let (mut terms, mut seqs) = (Vec::new(), Vec::new());
    for it in texts.iter().filter(|it| integer(it.seq.0) > from) {
        let seq = integer(it.seq.0);
        let own: BTreeSet<i64> = it.terms.iter().map(|term| numbered(tenant, id, term)).collect();
        (upto, count) = (upto.max(seq), count + u64::from(!own.is_empty()));
        seqs.extend(own.iter().map(|_| seq));
        terms.extend(own);
    }
    let own = || values![tenant.as_str(), id.as_str()];
    let rows = terms.chunks(INSERT_ROWS).zip(seqs.chunks(INSERT_ROWS));
    let mut statements: Vec<_> =
        rows.map(|(terms, seqs)| Statement::new(PUT, with(own(), values![terms.to_vec(), seqs.to_vec()]))).collect();
    statements.push(Statement::new(PUT_STATE, with(own(), values![upto, count])));
    Ok(Plan::repeats(Indexed { upto: place(upto), texts: count }, statements))
}

/// Returns how far the index has come.
pub(super) async fn reached(db: &Db, found: &Found) -> Result<Indexed, Error> {
    let (upto, texts) = state(db, found).await?;
    Ok(Indexed { upto: place(upto), texts })
}

/// Finds entries by terms, the newest first.
pub(super) async fn postings(db: &Db, found: &Found, terms: &[Text], most: usize) -> Result<Vec<Posting>, Error> {
    let mut postings = vec![Posting::default(); terms.len()];
    for link in &found.chain {
        let asked = terms.iter().zip(&postings).map(|(term, posting)| {
            let room = most - posting.seqs.len() + 1;
            let term = numbered(&found.tenant, &link.id, term);
            Statement::new(FIND, values![found.tenant.as_str(), link.id.as_str(), term, link.upto, room])
        });
        let answers = db.all(asked.collect()).await?;
        for (posting, rows) in postings.iter_mut().zip(answers) {
            for row in rows {
                if posting.seqs.len() == most {
                    posting.is_cut = true;
                } else {
                    posting.seqs.extend(place(number(&row, 0)?));
                }
            }
        }
    }
    Ok(postings)
}
