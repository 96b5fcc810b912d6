//! Many rows in one statement: entries, and the large texts that they refer to.

use super::found::{Found, with};
use super::pool::Statement;
use super::value::{Value, values};
use crate::store::NewRow;
use crate::store::sqlite::found::{integer, write_tally};
use recto::Seq;
use recto::digest::Digest;
use recto::entry::Text;
use std::borrow::Cow;
use std::collections::BTreeMap;

/// The most rows, and about the most bytes, that one statement inserts.
const INSERT_ROWS: usize = 1_000;
const INSERT_BYTES: usize = 8 << 20;

const PUT_ENTRIES: &str = "
    INSERT INTO entry
        (tenant, conversation, seq, strand, cost, tally, erased, hash, bytes, large, body, counts)
    SELECT $1, $2, e.* FROM
        unnest($3::BIGINT[], $4::BIGINT[], $5::BIGINT[], $6::TEXT[], $7::BIGINT[], $8::BYTEA[], $9::BIGINT[],
            $10::BYTEA[], $11::TEXT[], $12::TEXT[]) AS e";
const REFER: &str = "
    UPDATE content SET refs = refs + c.more, kept = greatest(kept, c.keep)
    FROM unnest($3::BYTEA[], $4::BIGINT[], $5::BIGINT[]) AS c (digest, more, keep)
    WHERE tenant = $1 AND conversation = $2 AND hash = c.digest AND (c.more > 0 OR kept < c.keep)";
const PUT_CONTENTS: &str = "
    INSERT INTO content (tenant, conversation, hash, refs, kept, body)
    SELECT $1, $2, c.* FROM unnest($3::BYTEA[], $4::BIGINT[], $5::BIGINT[], $6::TEXT[]) AS c";

/// Entries that one statement inserts.
#[derive(Default)]
pub(super) struct Entries<'v> {
    pub(super) seqs: Vec<i64>,
    strands: Vec<i64>,
    costs: Vec<i64>,
    tallies: Vec<String>,
    erased: Vec<i64>,
    hashes: Vec<Digest>,
    bytes: Vec<i64>,
    large: Vec<Vec<u8>>,
    bodies: Vec<Cow<'v, str>>,
    counts: Vec<Cow<'v, str>>,
    length: usize,
}

impl<'v> Entries<'v> {
    pub(super) fn push(&mut self, found: &mut Found, seq: Seq, row: &'v NewRow) {
        let strand = found.conversation.tally.add(seq, &row.entry, row.cost);
        let seq = integer(seq.0);
        self.seqs.push(seq);
        self.strands.push(integer(strand as u64));
        self.costs.push(integer(row.cost.0));
        self.tallies.push(write_tally(&found.conversation.tally, seq));
        self.erased.push(i64::from(row.is_erased));
        self.hashes.push(row.hash);
        self.bytes.push(integer(row.bytes));
        self.large.push(row.large.iter().flat_map(|(digest, _)| digest.to_bytes()).collect());
        self.bodies.push(Cow::Borrowed(&row.body));
        self.counts.push(Cow::Borrowed(&row.counts));
        self.length += row.body.len() + row.counts.len();
    }

    pub(super) fn is_full(&self) -> bool {
        self.seqs.len() >= INSERT_ROWS || self.length >= INSERT_BYTES
    }

    pub(super) fn statement(self, key: Vec<Value<'v>>) -> Statement<'v> {
        let mut row = values![
            self.seqs,
            self.strands,
            self.costs,
            self.tallies,
            self.erased,
            self.hashes,
            self.bytes,
            self.large
        ];
        row.extend([Value::Texts(self.bodies), Value::Texts(self.counts)]);
        Statement::new(PUT_ENTRIES, with(key, row))
    }
}

/// A text that is held on to.
#[derive(Default)]
pub(super) struct Content {
    pub(super) refs: i64,
    pub(super) kept: i64,
    pub(super) text: Text,
}

/// Writes the texts that are not there yet, and notes who holds on to those that are.
pub(super) fn put_contents<'v>(
    key: impl Fn() -> Vec<Value<'v>>,
    contents: &BTreeMap<Digest, Content>,
    there: &[Digest],
    statements: &mut Vec<Statement<'v>>,
) {
    let (known, new): (Vec<_>, Vec<_>) = contents.iter().partition(|(digest, _)| there.contains(digest));
    if !known.is_empty() {
        let (digests, held): (Vec<Digest>, Vec<&Content>) = known.into_iter().map(|(it, held)| (*it, held)).unzip();
        let (refs, kept): (Vec<i64>, Vec<i64>) = held.iter().map(|it| (it.refs, it.kept)).unzip();
        statements.push(Statement::new(REFER, with(key(), values![digests, refs, kept])));
    }
    for some in new.chunk_by_bytes(|(_, content)| content.text.len()) {
        let digests: Vec<Digest> = some.iter().map(|(digest, _)| **digest).collect();
        let (refs, kept): (Vec<i64>, Vec<i64>) = some.iter().map(|(_, it)| (it.refs, it.kept)).unzip();
        let texts: Vec<String> = some.iter().map(|(_, it)| it.text.to_string()).collect();
        statements.push(Statement::new(PUT_CONTENTS, with(key(), values![digests, refs, kept, texts])));
    }
}

/// Cuts a list into pieces that one statement takes.
pub(super) trait ChunkByBytes<T> {
    fn chunk_by_bytes(&self, length: impl Fn(&T) -> usize) -> Vec<&[T]>;
}

impl<T> ChunkByBytes<T> for [T] {
    fn chunk_by_bytes(&self, length: impl Fn(&T) -> usize) -> Vec<&[T]> {
        let mut pieces = Vec::new();
        let (mut from, mut bytes) = (0, 0);
        for (at, it) in self.iter().enumerate() {
            let more = length(it);
            if at > from && (bytes + more > INSERT_BYTES || at - from >= INSERT_ROWS) {
                pieces.push(&self[from..at]);
                (from, bytes) = (at, 0);
            }
            bytes += more;
        }
        if from < self.len() {
            pieces.push(&self[from..]);
        }
        pieces
    }
}
