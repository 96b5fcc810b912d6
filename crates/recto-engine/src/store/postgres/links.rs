//! Finding places of logs by what identifies everything up to them.

use super::pool::{Db, Statement};
use super::value::{number, shared, values};
use crate::error::Error;
use crate::store::sqlite::found::place;
use crate::store::{LINKS_MAX, Link, Tenant};
use recto::digest::Digest;

/// How many prefixes are asked for at once.
const ASKED_MAX: usize = 16;
/// Of conversations that share a prefix, so many of the newest are looked at.
const LOOKED_AT: usize = 256;

const LINKED: &str = "
    SELECT l.conversation, l.seq, c.seq
    FROM (
        SELECT conversation, made, seq FROM link WHERE tenant = $1 AND prefix = $2
        ORDER BY made DESC, conversation DESC LIMIT $3
    ) l
    JOIN conversation c ON c.tenant = $1 AND c.conversation = l.conversation
    WHERE c.state = 0 ORDER BY (c.seq = l.seq) DESC, l.made DESC, l.conversation DESC LIMIT $4";

/// Finds the places that the first known one of some prefixes stands for.
pub(super) async fn linked(db: Db, tenant: &Tenant, prefixes: &[Digest]) -> Result<Vec<Link>, Error> {
    for some in prefixes.chunks(ASKED_MAX) {
        let question = |prefix| Statement::new(LINKED, values![tenant.as_str(), prefix, LOOKED_AT, LINKS_MAX]);
        let answers = db.all(some.iter().copied().map(question).collect()).await?;
        for (&prefix, rows) in some.iter().zip(&answers) {
            let mut found = Vec::new();
            for row in rows {
                let Some(seq) = place(number(row, 1)?) else { continue };
                found.push(Link { prefix, conversation: shared(row, 0)?.into(), seq, head: place(number(row, 2)?) });
            }
            if !found.is_empty() {
                return Ok(found);
            }
        }
    }
    Ok(Vec::new())
}
