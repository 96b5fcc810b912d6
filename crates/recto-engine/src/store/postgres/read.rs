//! Reading entries: newest first, in order, one by one, and sums without reading.

use super::fault;
use super::found::{Found, Sketch, with};
use super::pool::{Db, Statement};
use super::value::{digest, number, shared, text, values, whole};
use crate::error::Error;
use crate::store::sqlite::found::{digest as read_digest, integer, place};
use crate::store::{Back, ConversationId, ROWS_MAX, Row, Tenant};
use recto::digest::Digest;
use recto::entry::Text;
use recto::log::Tally;
use recto::{Seq, Tokens};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use tokio_postgres::Row as Answer;

/// How many entries are read at once when it is not known how many are needed: at first, how many times more each time,
/// and at most.
const PAGE_FIRST: usize = 64;
const PAGE_FACTOR: usize = 4;
const PAGE_MAX: usize = 4_096;
/// What an entry is taken to cost when it is guessed how many are needed.
const ROW_TOKENS: u64 = 256;
/// How many places a search asks for at once, and how often: sixteen parts of what is left each time.
const SEARCH_PARTS: i64 = 16;
const SEARCH_STEPS_MAX: usize = 20;

/// Selects entries with their words.
macro_rules! entries {
    ($which:literal) => {
        concat!(
            "SELECT seq, strand, tally, cost, hash, bytes, large, erased, body, counts FROM entry \
             WHERE tenant = $1 AND conversation = $2 ",
            $which
        )
    };
}

const BACK: &str = entries!("AND seq <= $3 ORDER BY seq DESC LIMIT $4");
const FORTH: &str = entries!("AND seq BETWEEN $3 AND $4 ORDER BY seq LIMIT $5");
const SOME: &str = entries!("AND seq = ANY($3)");
const OUTLINE: &str = "
    SELECT seq, strand, tally, cost FROM entry WHERE tenant = $1 AND conversation = $2 AND seq <= $3
    ORDER BY seq DESC LIMIT $4";
const CONTENT: &str = "
    SELECT hash, body FROM content WHERE tenant = $1 AND conversation = $2 AND hash = ANY($3)";

/// Stands for the name of the schema in statements that stand alone.
const SCHEMA_MARK: &str = "@schema";
/// The newest entries, and behind them, in the same columns and without a place, what must be known of the conversation:
/// one statement sees one moment.
const NEWEST: &str = "
    (SELECT seq, strand, tally, cost, hash, bytes, large, erased, body, counts FROM @schema.entry
     WHERE tenant = $1 AND conversation = $2 AND seq <= $3 ORDER BY seq DESC LIMIT $4)
    UNION ALL
    SELECT NULL, state, strands, 0, NULL, 0, NULL, 0, chain, '' FROM @schema.conversation
    WHERE tenant = $1 AND conversation = $2";
/// Where the conversation's state, strands and chain stand there.
const SKETCH: [usize; 3] = [1, 2, 8];
const CONTENT_ALONE: &str = "
    SELECT hash, body FROM @schema.content WHERE tenant = $1 AND conversation = $2 AND hash = ANY($3)";

/// What an entry's row says without its words.
struct Outline {
    link: usize,
    seq: i64,
    strand: usize,
    tally: String,
    cost: Tokens,
}

/// Statements that stand alone, with the name of the schema.
pub(super) struct Alone {
    newest: String,
    content: String,
}

impl Alone {
    pub(super) fn of(schema: &str) -> Alone {
        let within = |sql: &str| sql.replace(SCHEMA_MARK, schema);
        Alone { newest: within(NEWEST), content: within(CONTENT_ALONE) }
    }
}

/// Finds a conversation, and reads its rows from the newest back with statements that stand alone, mostly with one. What
/// was said is final, so that several tell the same as one would; each looks whether the conversation is still there.
/// Returns nothing if it goes on from another one whose rows are needed too.
pub(super) async fn newest(
    db: &Db,
    alone: &Alone,
    (tenant, id): (&Tenant, &ConversationId),
    back: &Back,
) -> Result<Option<Vec<Row>>, Error> {
    let mut room = Room::of(back);
    let (mut at, mut page, mut taken) = (newest_place(back), room.page(), Vec::new());
    let strands = loop {
        let limit = page.min(room.rows);
        let (sketch, rows) = part(db, alone, (tenant, id), at, limit).await?;
        let is_last = rows.len() < limit;
        for row in rows {
            if room.is_full() {
                break;
            }
            at = number(&row, 0)? - 1;
            room.take(Tokens(whole(&row, 3)?));
            taken.push((0, row));
        }
        if room.is_full() || is_last && sketch.is_alone {
            break sketch.strands;
        }
        if is_last {
            return Ok(None);
        }
        page = (page * PAGE_FACTOR).min(PAGE_MAX);
    };
    let mut texts = BTreeMap::new();
    let wanted = large(&taken)?.remove(&0).unwrap_or_default();
    if !wanted.is_empty() {
        let asked = values![tenant.as_str(), id.as_str(), Vec::from_iter(wanted.iter().copied())];
        for row in &db.rows(&alone.content, asked).await? {
            texts.insert((0, digest(row, 0)?), shared(row, 1)?);
        }
    }
    // A text may have been erased since; then the rows are read again, with their texts.
    if texts.len() < wanted.len() {
        return Ok(None);
    }
    let tally = |text: &str, seq| strands.tally(text, seq);
    taken.iter().map(|(link, row)| read(tally, *link, row, &texts)).collect::<Result<_, _>>().map(Some)
}

/// Reads some rows back from a place, the newest first, and what must be known of their conversation.
async fn part(
    db: &Db,
    alone: &Alone,
    (tenant, id): (&Tenant, &ConversationId),
    at: i64,
    limit: usize,
) -> Result<(Sketch, Vec<Answer>), Error> {
    let mut rows = db.rows(&alone.newest, values![tenant.as_str(), id.as_str(), at, limit]).await?;
    // The parts of a statement come one after the other, but nobody promises that.
    let place = |row: &Answer| row.try_get::<_, Option<i64>>(0).ok().flatten();
    rows.sort_by_key(|row| Reverse(place(row)));
    let own = rows.pop_if(|row| place(row).is_none());
    Ok((Sketch::of(own.as_ref(), SKETCH, id)?, rows))
}

/// Reads the rows of a conversation from the newest back.
pub(super) async fn back(db: &Db, found: &Found, back: &Back) -> Result<Vec<Row>, Error> {
    let mut room = Room::of(back);
    if back.strands.is_empty() {
        all_back(db, found, newest_place(back), room).await
    } else {
        let wanted = wanted(db, found, newest_place(back), &back.strands, &mut room).await?;
        some(db, found, wanted).await
    }
}

fn newest_place(back: &Back) -> i64 {
    back.below.map_or(i64::MAX, |below| integer(below.0)).saturating_sub(1)
}

/// How many more rows and tokens may be read.
struct Room {
    rows: usize,
    tokens: Tokens,
}

impl Room {
    fn of(back: &Back) -> Room {
        Room { rows: back.rows.min(ROWS_MAX), tokens: back.tokens }
    }

    fn is_full(&self) -> bool {
        self.rows == 0 || self.tokens == Tokens(0)
    }

    /// How many rows are likely needed.
    fn page(&self) -> usize {
        let likely = usize::try_from(self.tokens.0 / ROW_TOKENS).unwrap_or(usize::MAX);
        likely.clamp(PAGE_FIRST, PAGE_MAX).min(self.rows)
    }

    fn take(&mut self, cost: Tokens) {
        self.rows -= 1;
        self.tokens = Tokens(self.tokens.0.saturating_sub(cost.0));
    }
}

async fn all_back(db: &Db, found: &Found, newest: i64, mut room: Room) -> Result<Vec<Row>, Error> {
    let mut taken = Vec::new();
    let mut page = room.page();
    for (link, it) in found.chain.iter().enumerate() {
        let mut at = it.upto.min(newest);
        while !room.is_full() {
            let limit = page.min(room.rows);
            let rows = db.rows(BACK, with(found.key_of(it), values![at, limit])).await?;
            let is_last = rows.len() < limit;
            for row in rows {
                if room.is_full() {
                    break;
                }
                at = number(&row, 0)? - 1;
                room.take(Tokens(whole(&row, 3)?));
                taken.push((link, row));
            }
            if is_last {
                break;
            }
            page = (page * PAGE_FACTOR).min(PAGE_MAX);
        }
    }
    full(db, found, taken).await
}

/// Finds the rows of some strands: by walking back, and over what lies between by the tallies.
async fn wanted(
    db: &Db,
    found: &Found,
    newest: i64,
    strands: &[usize],
    room: &mut Room,
) -> Result<Vec<(usize, i64)>, Error> {
    let (mut at, mut page, mut wanted) = (newest, PAGE_FIRST, Vec::new());
    while !room.is_full() {
        let outlines = outlines(db, found, at, page).await?;
        let Some(last) = outlines.last() else { break };
        at = last.seq - 1;
        page = (page * PAGE_FACTOR).min(PAGE_MAX);
        let mut is_any = false;
        for it in outlines.iter().filter(|it| strands.contains(&it.strand)) {
            is_any = true;
            if room.is_full() {
                break;
            }
            room.take(it.cost);
            wanted.push((it.link, it.seq));
        }
        if !is_any {
            let tally = found.tally(&last.tally, last.seq)?;
            let next = strands.iter().filter_map(|&strand| tally.strands().get(strand)).map(|it| it.last).max();
            let Some(next) = next else { break };
            (at, page) = (integer(next.0), PAGE_FIRST);
        }
    }
    Ok(wanted)
}

/// Reads rows that are known to be there, and returns them in the order of the list.
async fn some(db: &Db, found: &Found, wanted: Vec<(usize, i64)>) -> Result<Vec<Row>, Error> {
    let mut of_links: BTreeMap<usize, Vec<i64>> = BTreeMap::new();
    for (link, seq) in &wanted {
        of_links.entry(*link).or_default().push(*seq);
    }
    let asked = of_links
        .iter()
        .map(|(link, seqs)| Statement::new(SOME, with(found.key_of(&found.chain[*link]), values![seqs.clone()])));
    let answers = db.all(asked.collect()).await?;
    let mut rows = Vec::new();
    for (link, answer) in of_links.keys().zip(answers) {
        rows.extend(answer.into_iter().map(|row| (*link, row)));
    }
    let mut read: BTreeMap<i64, Row> =
        full(db, found, rows).await?.into_iter().map(|row| (integer(row.seq.0), row)).collect();
    wanted.iter().map(|(_, seq)| read.remove(seq).ok_or_else(|| lost(*seq))).collect()
}

/// Reads rows in order.
pub(super) async fn forth(db: &Db, found: &Found, from: Seq, rows: usize) -> Result<Vec<Row>, Error> {
    let rows_max = rows.min(ROWS_MAX);
    let mut read = Vec::new();
    // The oldest first: those furthest down the chain.
    for (link, it) in found.chain.iter().enumerate().rev().filter(|(_, it)| it.upto >= integer(from.0)) {
        let values = values![integer(from.0), it.upto, rows_max - read.len()];
        let rows = db.rows(FORTH, with(found.key_of(it), values)).await?;
        read.extend(rows.into_iter().map(|row| (link, row)));
    }
    full(db, found, read).await
}

/// Reads single rows.
pub(super) async fn rows(db: &Db, found: &Found, seqs: &[Seq]) -> Result<Vec<Row>, Error> {
    let seqs: BTreeSet<i64> = seqs.iter().map(|seq| integer(seq.0)).collect();
    let asked = found.chain.iter().map(|link| {
        let seqs: Vec<i64> = seqs.iter().copied().filter(|seq| *seq <= link.upto).collect();
        Statement::new(SOME, with(found.key_of(link), values![seqs]))
    });
    let answers = db.all(asked.collect()).await?;
    let mut read = BTreeMap::new();
    for (link, answer) in answers.into_iter().enumerate() {
        for row in answer {
            // The nearest conversation of the chain counts.
            read.entry(number(&row, 0)?).or_insert((link, row));
        }
    }
    full(db, found, read.into_values().collect()).await
}

/// Returns, for each place, what the log held up to and with it.
pub(super) async fn tallies(db: &Db, found: &Found, at: &[i64]) -> Result<Vec<Tally>, Error> {
    let asked = at.iter().flat_map(|at| found.chain.iter().map(move |link| (link, *at)));
    let asked =
        asked.map(|(link, at)| Statement::new(OUTLINE, with(found.key_of(link), values![link.upto.min(at), 1_i64])));
    let answers = db.all(asked.collect()).await?;
    let mut tallies = Vec::new();
    for of_place in answers.chunks(found.chain.len()) {
        tallies.push(match of_place.iter().find_map(|rows| rows.first()) {
            Some(row) => found.tally(&text(row, 2)?, number(row, 0)?)?,
            None => Tally::default(),
        });
    }
    Ok(tallies)
}

/// Returns what the log held up to and with a place.
pub(super) async fn tally(db: &Db, found: &Found, at: i64) -> Result<Tally, Error> {
    Ok(tallies(db, found, &[at]).await?.pop().unwrap_or_default())
}

/// Returns a strand's oldest entry at or after a place.
pub(super) async fn first(db: &Db, found: &Found, strand: usize, from: Seq) -> Result<Option<Seq>, Error> {
    let from = integer(from.0);
    let Some(whole) = found.conversation.tally.strands().get(strand) else { return Ok(None) };
    let entries = |tally: &Tally| tally.strands().get(strand).map_or(0, |it| it.sums.entries);
    let wanted = entries(&tally(db, found, from - 1).await?) + 1;
    if whole.sums.entries < wanted {
        return Ok(None);
    }
    // At `high` there are enough entries, below `low` there are too few.
    let (mut low, mut high) = (from, integer(whole.last.0));
    for _ in 0..SEARCH_STEPS_MAX {
        if low >= high {
            break;
        }
        let part = ((high - low) / SEARCH_PARTS).max(1);
        let places: Vec<i64> = (1..SEARCH_PARTS).map(|at| low + at * part - 1).filter(|at| *at < high).collect();
        for (place, tally) in places.iter().zip(tallies(db, found, &places).await?) {
            match tally.strands().get(strand) {
                Some(it) if it.sums.entries == wanted => return Ok(Some(it.last)),
                Some(it) if it.sums.entries > wanted => {
                    high = high.min(integer(it.last.0) - 1);
                    break;
                }
                _ => low = low.max(place + 1),
            }
        }
    }
    Ok(place(high))
}

/// Reads texts by their digests, of this conversation or of one that it goes on from.
pub(super) async fn contents(db: &Db, found: &Found, digests: &[Digest]) -> Result<Vec<(Digest, Text)>, Error> {
    let asked =
        found.chain.iter().map(|link| Statement::new(CONTENT, with(found.key_of(link), values![digests.to_vec()])));
    let mut contents = BTreeMap::new();
    for row in db.all(asked.collect()).await?.iter().flatten() {
        contents.entry(digest(row, 0)?).or_insert(shared(row, 1)?);
    }
    Ok(contents.into_iter().collect())
}

/// Reads the next few outlines back from a place, of one conversation of the chain.
async fn outlines(db: &Db, found: &Found, at: i64, rows: usize) -> Result<Vec<Outline>, Error> {
    for (link, it) in found.chain.iter().enumerate() {
        let rows = db.rows(OUTLINE, with(found.key_of(it), values![it.upto.min(at), rows])).await?;
        if !rows.is_empty() {
            return rows.iter().map(|row| outline(link, row)).collect();
        }
    }
    Ok(Vec::new())
}

fn outline(link: usize, row: &Answer) -> Result<Outline, Error> {
    let cost = Tokens(whole(row, 3)?);
    Ok(Outline { link, seq: number(row, 0)?, strand: strand(row)?, tally: text(row, 2)?, cost })
}

fn strand(row: &Answer) -> Result<usize, Error> {
    usize::try_from(number(row, 1)?).map_err(|_| fault::corrupt("an entry of no strand"))
}

/// Reads rows with the large texts that they refer to, each text once.
async fn full(db: &Db, found: &Found, rows: Vec<(usize, Answer)>) -> Result<Vec<Row>, Error> {
    let mut texts = BTreeMap::new();
    for (link, digests) in large(&rows)? {
        let values = with(found.key_of(&found.chain[link]), values![Vec::from_iter(digests)]);
        for row in &db.rows(CONTENT, values).await? {
            texts.insert((link, digest(row, 0)?), shared(row, 1)?);
        }
    }
    let tally = |text: &str, seq| found.tally(text, seq);
    rows.iter().map(|(link, row)| read(tally, *link, row, &texts)).collect()
}

/// Returns the large texts that rows refer to, of each conversation of the chain.
fn large(rows: &[(usize, Answer)]) -> Result<BTreeMap<usize, BTreeSet<Digest>>, Error> {
    let mut wanted: BTreeMap<usize, BTreeSet<Digest>> = BTreeMap::new();
    for (link, row) in rows {
        let large: &[u8] = row.try_get(6)?;
        for hash in large.chunks(16) {
            wanted.entry(*link).or_default().insert(read_digest(hash)?);
        }
    }
    Ok(wanted)
}

fn read(
    tally: impl Fn(&str, i64) -> Result<Tally, Error>,
    link: usize,
    row: &Answer,
    texts: &BTreeMap<(usize, Digest), Text>,
) -> Result<Row, Error> {
    let seq = number(row, 0)?;
    let mut large = Vec::new();
    for hash in row.try_get::<_, &[u8]>(6)?.chunks(16) {
        let hash = read_digest(hash)?;
        let missing = || fault::corrupt(format!("entry #{seq} refers to text {hash}, which is gone"));
        large.push((hash, texts.get(&(link, hash)).ok_or_else(missing)?.clone()));
    }
    Ok(Row {
        seq: place(seq).ok_or_else(|| lost(seq))?,
        strand: strand(row)?,
        tally: tally(&text(row, 2)?, seq)?,
        hash: digest(row, 4)?,
        bytes: whole(row, 5)?,
        large,
        is_erased: number(row, 7)? != 0,
        body: text(row, 8)?,
        counts: text(row, 9)?,
    })
}

fn lost(seq: i64) -> Error {
    fault::corrupt(format!("entry #{seq} can't be read back"))
}
