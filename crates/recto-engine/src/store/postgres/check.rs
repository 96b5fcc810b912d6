//! What `recto doctor` asks: whether what is in the tables agrees with itself.

use super::Postgres;
use super::found::{BY_NAME, Found, with};
use super::lens;
use super::pool::{Db, Statement};
use super::read;
use super::schema::VERSION;
use super::value::{digest, number, shared, values};
use crate::error::{Error, Kind};
use crate::store::sqlite::check::{Report, follows};
use crate::store::sqlite::found::{integer_or_none, name_key, place};
use crate::store::{ConversationId, ReaderName, ReaderRow, Row, State, Tenant};
use recto::Seq;
use recto::digest::Digest;
use recto::log::Tally;
use std::collections::BTreeMap;
use tokio::time::Instant;

/// How many entries are looked at before the caller hears how far it has come.
const PAGE_ROWS: usize = 500;

const NEXT: &str = "
    SELECT tenant, conversation FROM conversation WHERE tenant > $1 OR tenant = $1 AND conversation > $2
    ORDER BY tenant, conversation LIMIT 1";
const FIRST: &str = "SELECT tenant, conversation FROM conversation ORDER BY tenant, conversation LIMIT 1";
const PARENT: &str = "SELECT state, seq FROM conversation WHERE tenant = $1 AND conversation = $2";
const REFS: &str = "SELECT hash, refs, kept FROM content WHERE tenant = $1 AND conversation = $2";
const DECISIONS: &str = "
    SELECT count(*), min(ordinal), max(ordinal) FROM decision
    WHERE tenant = $1 AND conversation = $2 AND reader = $3";
const TURNS: &str = "
    SELECT count(*), min(turn), max(turn) FROM turn WHERE tenant = $1 AND conversation = $2 AND reader = $3";
const FALLING: &str = "
    SELECT count(*) FROM turn a JOIN turn b ON b.tenant = a.tenant AND b.conversation = a.conversation
    AND b.reader = a.reader AND b.turn = a.turn + 1
    WHERE a.tenant = $1 AND a.conversation = $2 AND a.reader = $3 AND b.head < a.head";

impl Postgres {
    /// Checks all tables. `hash` says what identifies an entry's body, or what is left of it: it must be the row's own
    /// hash. `progress` hears how many entries were checked.
    pub async fn check(
        &self,
        hash: impl Fn(&Row) -> Digest + Send + Sync + 'static,
        mut progress: impl FnMut(u64) + Send + 'static,
    ) -> Result<Report, Error> {
        let mut report = Report { schema: VERSION, ..Report::default() };
        let mut last = None;
        while let Some((tenant, id)) = self.transactions.read(|db| next(db, last.as_ref())).await? {
            report.conversations += 1;
            // One moment for each conversation, so that what is appended meanwhile is no finding.
            let lease = self.transactions.pool.lease(Instant::now() + self.settings().wait).await?;
            lease.db.fire(&self.transactions.begin_reading);
            let checked = conversation(&lease.db, (&tenant, &id), &hash, &mut report, &mut progress).await;
            match checked {
                Err(error) if error.is_busy() => return Err(error),
                Err(error) => report.find(Some(&id), error.to_string()),
                Ok(()) => {}
            }
            lease.undo();
            last = Some((tenant, id));
        }
        Ok(report)
    }
}

async fn next(db: Db, last: Option<&(Tenant, ConversationId)>) -> Result<Option<(Tenant, ConversationId)>, Error> {
    let row = match last {
        Some((tenant, id)) => db.row(NEXT, values![tenant.as_str(), id.as_str()]).await?,
        None => db.row(FIRST, values![]).await?,
    };
    row.map(|row| Ok((shared(&row, 0)?.into(), shared(&row, 1)?.into()))).transpose()
}

async fn conversation(
    db: &Db,
    (tenant, id): (&Tenant, &ConversationId),
    hash: &(impl Fn(&Row) -> Digest + Send + Sync),
    report: &mut Report,
    progress: &mut (impl FnMut(u64) + Send),
) -> Result<(), Error> {
    let found = Found::of(&db.rows(BY_NAME, values![tenant.as_str(), id.as_str()]).await?, tenant, id)?;
    match found.conversation.state {
        State::Live => {}
        State::Erased => return Ok(()),
        State::Erasing => {
            report.erasing += 1;
            return Ok(());
        }
    }
    if let Some(from) = &found.conversation.from {
        let row = db.row(PARENT, values![tenant.as_str(), from.conversation.as_str()]).await?;
        match row.map(|row| Ok::<_, Error>((number(&row, 0)?, number(&row, 1)?))).transpose()? {
            None | Some((2, _)) => report.find(Some(id), "the conversation that it goes on from is gone"),
            Some((_, head)) if place(head) < from.upto => {
                report.find(Some(id), "it goes on from an entry that is not there");
            }
            Some(_) => {}
        }
    }
    let readers = lens::all(db, &found).await?;
    let key = (tenant.clone(), id.clone());
    let refs = entries(db, found, hash, report, progress).await?;
    let key = || values![key.0.as_str(), key.1.as_str()];
    for row in &db.rows(REFS, key()).await? {
        let (digest, told, is_kept) = (digest(row, 0)?, number(row, 1)?, number(row, 2)? != 0);
        let counted = refs.get(&digest).copied().unwrap_or(0);
        if told != counted || told == 0 && !is_kept {
            report.find(Some(id), format!("text {digest} is referred to {counted} times, and {told} are told"));
        }
    }
    for (name, row) in readers {
        reader(db, (tenant, id), &name, row, report).await?;
    }
    Ok(())
}

/// Checks entries against the running sums, and returns how often each large text is referred to.
async fn entries(
    db: &Db,
    mut found: Found,
    hash: &(impl Fn(&Row) -> Digest + Send + Sync),
    report: &mut Report,
    progress: &mut (impl FnMut(u64) + Send),
) -> Result<BTreeMap<Digest, i64>, Error> {
    let id = found.id().clone();
    let own = found.chain.remove(0);
    let upto = found.conversation.from.as_ref().and_then(|from| from.upto);
    let mut tally = match found.chain.is_empty() || upto.is_none() {
        true => Tally::default(),
        false => read::tally(db, &found, integer_or_none(upto)).await?,
    };
    found.chain = vec![own];
    let mut refs = BTreeMap::new();
    let mut from = Seq(0);
    loop {
        let rows = read::forth(db, &found, from, PAGE_ROWS).await?;
        let Some(last) = rows.last() else { break };
        from = last.seq.next();
        for row in &rows {
            if !follows(&tally, row) {
                report.find(Some(&id), format!("the sums of entry {} do not follow from those before it", row.seq));
            }
            if hash(row) != row.hash {
                report.find(Some(&id), format!("the body of entry {} is not the one that was appended", row.seq));
            }
            for (digest, text) in &row.large {
                *refs.entry(*digest).or_insert(0) += 1;
                if Digest::of(text.as_bytes()) != *digest {
                    report.find(Some(&id), format!("text {digest} of entry {} is another one", row.seq));
                }
            }
            tally = row.tally.clone();
        }
        report.entries += rows.len() as u64;
        progress(report.entries);
    }
    if tally != found.conversation.tally {
        report.find(Some(&id), "its sums are not those of its newest entry");
    }
    Ok(refs)
}

async fn reader(
    db: &Db,
    (tenant, id): (&Tenant, &ConversationId),
    name: &ReaderName,
    row: ReaderRow,
    report: &mut Report,
) -> Result<(), Error> {
    let key = || values![tenant.as_str(), id.as_str()];
    let of_reader = || with(key(), values![name_key(name.as_str())]);
    let asked = [DECISIONS, TURNS, FALLING].map(|sql| Statement::new(sql, of_reader()));
    let asked = asked.into_iter().chain([lens::question(key(), name)]).collect();
    let answers = db.all(asked).await?;
    let [decisions, turns, falling, lens] = answers.as_slice() else {
        return Err(Kind::Defect { what: "a question was not answered".into() }.into());
    };
    let start = lens::Lens::read(lens.first(), name)?.map_or(row, |lens| lens.start);
    let counted = |rows: &[tokio_postgres::Row]| -> Result<(u64, Option<i64>, Option<i64>), Error> {
        let row = rows.first().ok_or_else(|| Kind::Defect { what: "nothing was counted".into() })?;
        Ok((number(row, 0)?.unsigned_abs(), row.try_get(1)?, row.try_get(2)?))
    };
    let is = |number: Option<i64>, expected: u64| number.is_none_or(|it| u64::try_from(it) == Ok(expected));
    let (made, first, last) = counted(decisions)?;
    let is_dense = is(first, start.ordinal + 1) && is(last, row.ordinal);
    if !is_dense || made != row.ordinal.saturating_sub(start.ordinal) {
        report.find(Some(id), format!("decisions of reader {:?} are missing", name.as_str()));
    }
    report.decisions += made;
    let (calls, first, last) = counted(turns)?;
    let is_dense = is(first, start.turns) && is(last.map(|it| it + 1), row.turns);
    if !is_dense || calls != row.turns.saturating_sub(start.turns) {
        report.find(Some(id), format!("calls of reader {:?} are missing", name.as_str()));
    }
    report.calls += calls;
    if falling.first().map_or(Ok(0), |row| number(row, 0))? > 0 {
        report.find(Some(id), format!("calls of reader {:?} are out of order", name.as_str()));
    }
    Ok(())
}
