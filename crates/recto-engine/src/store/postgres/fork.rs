//! Making conversations, and forks that share the past of another instead of copying it.

use super::found::{FIRST_VERSION, Found, Link, with, write_chain};
use super::lens::{self, Lens};
use super::pool::{Db, Statement};
use super::read;
use super::transaction::Plan;
use super::value::{Value, digest, number, shared, values};
use super::write::put_reader_named;
use crate::error::{Error, Kind};
use crate::store::bounds::check_name;
use crate::store::sqlite::found::{digest as read_digest, integer, integer_or_none, write_strands, write_tally};
use crate::store::{
    Conversation, ConversationId, FORK_DEPTH_MAX, ForkPoint, NewConversation, ReaderName, ReaderRow, Tenant, Upto,
};
use recto::Seq;
use recto::digest::Digest;
use std::collections::BTreeMap;

const EXISTS: &str = "SELECT state FROM conversation WHERE tenant = $1 AND conversation = $2";
const MAKE: &str = "
    INSERT INTO conversation
        (tenant, conversation, state, epoch, version, seq, tally, strands, tokenizer, title, meta, parent, upto, chain,
        created, updated)
    VALUES ($1, $2, 0, 0, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $13)";
const FORKS: &str = "
    SELECT conversation FROM conversation WHERE tenant = $1 AND parent = $2 AND state <> 2 ORDER BY conversation";

const COPY_ENTRIES: &str = "
    INSERT INTO entry (tenant, conversation, seq, strand, cost, tally, erased, hash, bytes, large, body, counts)
    SELECT tenant, $3, seq, strand, cost, tally, erased, hash, bytes, large, body, counts
    FROM entry WHERE tenant = $1 AND conversation = $2 AND seq <= $4";
const LARGE: &str = "
    SELECT large FROM entry WHERE tenant = $1 AND conversation = $2 AND seq <= $3 AND length(large) > 0";
const KEPT_CONTENTS: &str = "SELECT hash FROM content WHERE tenant = $1 AND conversation = $2 AND kept = 1";
const COPY_CONTENTS: &str = "
    INSERT INTO content (tenant, conversation, hash, refs, kept, body)
    SELECT c.tenant, $3, c.hash, n.refs, n.kept, c.body
    FROM content c JOIN unnest($4::BYTEA[], $5::BIGINT[], $6::BIGINT[]) AS n (hash, refs, kept) ON n.hash = c.hash
    WHERE c.tenant = $1 AND c.conversation = $2";
const COPY_DECISIONS: &str = "
    INSERT INTO decision (tenant, conversation, reader, ordinal, turn, kind, about, body)
    SELECT tenant, $3, reader, ordinal, turn, kind, about, body
    FROM decision WHERE tenant = $1 AND conversation = $2 AND reader = $4 AND ordinal > $5 AND ordinal <= $6";
const COPY_TURNS: &str = "
    INSERT INTO turn (tenant, conversation, reader, turn, head, spared, receipt, at)
    SELECT tenant, $3, reader, turn, head, spared, receipt, at
    FROM turn WHERE tenant = $1 AND conversation = $2 AND reader = $4 AND turn >= $5 AND turn < $6";

/// Makes a conversation, and tells it as it was made.
pub(super) async fn make<'v>(
    db: Db,
    tenant: &'v Tenant,
    new: &'v NewConversation,
) -> Result<Plan<'v, Conversation>, Error> {
    let (made, statements) = create(&db, tenant, new).await?;
    Ok(Plan::writes(made.conversation, integer(FIRST_VERSION), statements))
}

/// Returns a conversation as it will be, and what makes it.
pub(super) async fn create<'v>(
    db: &Db,
    tenant: &'v Tenant,
    new: &'v NewConversation,
) -> Result<(Found, Vec<Statement<'v>>), Error> {
    check_name("tenant", tenant.as_str())?;
    check_name("conversation", new.id.as_str())?;
    if let Some(row) = db.row(EXISTS, values![tenant.as_str(), new.id.as_str()]).await? {
        let was = if number(&row, 0)? == 0 { "" } else { ", though erased," };
        return Err(Kind::Exists { what: format!("conversation {:?}{was}", new.id.as_str()) }.into());
    }
    let mut made = Found::made(tenant, new);
    let mut statements = Vec::new();
    match &new.from {
        None => statements.push(put(tenant, new, &made)?),
        Some(from) => fork(db, tenant, new, from, &mut made, &mut statements).await?,
    }
    Ok((made, statements))
}

fn put<'v>(tenant: &'v Tenant, new: &'v NewConversation, made: &Found) -> Result<Statement<'v>, Error> {
    let tally = &made.conversation.tally;
    let head = integer_or_none(tally.head());
    let from = made.conversation.from.as_ref();
    let upto = from.map_or(-1, |from| integer_or_none(from.upto));
    let parent = new.from.as_ref().map(|from| from.conversation.as_str());
    let chain = write_chain(&made.chain[1..])?;
    let mut row = values![tenant.as_str(), new.id.as_str(), FIRST_VERSION, head, write_tally(tally, head)];
    row.extend(values![write_strands(tally)?, &*new.tokenizer, &*new.title, &*new.meta, parent, upto, chain, new.at.0]);
    Ok(Statement::new(MAKE, row))
}

async fn fork<'v>(
    db: &Db,
    tenant: &'v Tenant,
    new: &'v NewConversation,
    from: &'v ForkPoint,
    made: &mut Found,
    statements: &mut Vec<Statement<'v>>,
) -> Result<(), Error> {
    // Locked, it can't be erased meanwhile, and nobody erases entries of it without finding the fork.
    let parent = Found::locked(db, tenant, &from.conversation).await?;
    let head = parent.conversation.tally.head();
    if let Some(upto) = from.upto.filter(|upto| Some(*upto) > head) {
        let what = format!("entry {upto} in conversation {:?}", from.conversation.as_str());
        return Err(Kind::NotFound { what }.into());
    }
    made.conversation.tally = read::tally(db, &parent, integer_or_none(from.upto)).await?;
    // A free place is nobody's: the fork may fill it itself.
    let shared = made.conversation.tally.head();
    let upto = integer_or_none(shared);
    made.conversation.from = Some(ForkPoint { conversation: from.conversation.clone(), upto: shared });
    let is_copied = parent.chain.len() > FORK_DEPTH_MAX;
    if !is_copied {
        let stood = parent.chain.iter().map(|link| Link { id: link.id.clone(), upto: link.upto.min(upto) });
        made.chain.extend(stood);
    }
    statements.push(put(tenant, new, made)?);
    let own = || values![tenant.as_str(), new.id.as_str()];
    if is_copied {
        copy_entries(db, &parent, upto, &new.id, statements).await?;
    }
    for (name, row) in lens::all(db, &parent).await? {
        let start = start(db, &parent, &name, row, from.upto).await?;
        let mut lens = Lens::from(&name, start);
        if is_copied {
            copy_reader(db, &parent, &name, lens, &new.id, statements).await?;
            lens.start = ReaderRow::default();
        }
        statements.push(put_reader_named(own(), &lens, name.to_string()));
    }
    Ok(())
}

/// Returns where a reader stands when its conversation is forked: after the calls that saw no more than is shared.
async fn start(
    db: &Db,
    parent: &Found,
    name: &ReaderName,
    row: ReaderRow,
    upto: Option<Seq>,
) -> Result<ReaderRow, Error> {
    let stretches = lens::stretches(db, parent, name, Upto::NOW).await?;
    let beyond = upto.map_or(Seq(0), Seq::next);
    let firsts = lens::first_with(db, parent, &stretches, row.turns, &[beyond]).await?;
    let turns = firsts.first().copied().unwrap_or(row.turns);
    let ordinal = match upto == parent.conversation.tally.head() {
        true => row.ordinal,
        false => lens::newest_before(db, parent, &stretches, turns).await?,
    };
    Ok(ReaderRow { turns, ordinal })
}

/// Returns the conversations that go on from one.
pub(super) async fn forks(db: &Db, tenant: &Tenant, id: &ConversationId) -> Result<Vec<ConversationId>, Error> {
    let rows = db.rows(FORKS, values![tenant.as_str(), id.as_str()]).await?;
    rows.iter().map(|row| Ok(shared(row, 0)?.into())).collect()
}

/// Begins the values of a statement that copies rows of a conversation to another.
fn copy<'v>(found: &Found, of: &ConversationId, to: &'v ConversationId) -> Vec<Value<'v>> {
    values![found.tenant.to_string(), of.to_string(), to.as_str()]
}

async fn copy_entries<'v>(
    db: &Db,
    parent: &Found,
    upto: i64,
    to: &'v ConversationId,
    statements: &mut Vec<Statement<'v>>,
) -> Result<(), Error> {
    // Each text goes along once, from the nearest conversation that has it, with all who hold on to it.
    let mut contents: BTreeMap<Digest, (usize, i64, i64)> = BTreeMap::new();
    for (at, link) in parent.chain.iter().enumerate() {
        let upto = link.upto.min(upto);
        statements.push(Statement::new(COPY_ENTRIES, with(copy(parent, &link.id, to), values![upto])));
        for row in db.rows(LARGE, with(parent.key_of(link), values![upto])).await? {
            for hash in row.try_get::<_, &[u8]>(0)?.chunks(16) {
                contents.entry(read_digest(hash)?).or_insert((at, 0, 0)).1 += 1;
            }
        }
        for row in db.rows(KEPT_CONTENTS, parent.key_of(link)).await? {
            contents.entry(digest(&row, 0)?).or_insert((at, 0, 0)).2 = 1;
        }
    }
    for (at, link) in parent.chain.iter().enumerate() {
        let of_link: Vec<(Digest, i64, i64)> = contents
            .iter()
            .filter(|(_, (of, _, _))| *of == at)
            .map(|(digest, (_, refs, kept))| (*digest, *refs, *kept))
            .collect();
        if !of_link.is_empty() {
            let digests: Vec<Digest> = of_link.iter().map(|it| it.0).collect();
            let (refs, kept): (Vec<i64>, Vec<i64>) = of_link.iter().map(|it| (it.1, it.2)).unzip();
            let values = with(copy(parent, &link.id, to), values![digests, refs, kept]);
            statements.push(Statement::new(COPY_CONTENTS, values));
        }
    }
    Ok(())
}

async fn copy_reader<'v>(
    db: &Db,
    parent: &Found,
    name: &ReaderName,
    lens: Lens,
    to: &'v ConversationId,
    statements: &mut Vec<Statement<'v>>,
) -> Result<(), Error> {
    let upto = Upto { turn: lens.start.turns, ordinal: lens.start.ordinal };
    for it in lens::stretches(db, parent, name, upto).await? {
        let key = || with(copy(parent, it.id(), to), values![it.lens.key]);
        let (ordinals, turns) = (it.ordinals, it.turns);
        statements.push(Statement::new(COPY_DECISIONS, with(key(), values![ordinals.0, ordinals.1])));
        statements.push(Statement::new(COPY_TURNS, with(key(), values![turns.0, turns.1])));
    }
    Ok(())
}
