//! Finding places of logs by what identifies everything up to them.

use super::found::{blob, place};
use crate::error::Error;
use crate::store::{LINKS_MAX, Link, Tenant};
use recto::digest::Digest;
use rusqlite::{Connection, params};

/// How many conversations that share a prefix are looked at, the newest first.
const LOOKED_AT_MAX: i64 = 256;

const LINKED: &str = "
    SELECT c.id, l.seq, h.seq
    FROM (SELECT n, seq FROM link WHERE tenant = ?1 AND prefix = ?2 ORDER BY n DESC LIMIT ?3) l
    CROSS JOIN conversation c ON c.n = l.n CROSS JOIN head h ON h.n = l.n
    WHERE c.state = 0 ORDER BY h.seq = l.seq DESC LIMIT ?4";

/// Finds the places that the first known one of some prefixes stands for.
pub(super) fn linked(db: &Connection, tenant: &Tenant, prefixes: &[Digest]) -> Result<Vec<Link>, Error> {
    let mut statement = db.prepare_cached(LINKED)?;
    for &prefix in prefixes {
        let mut found = Vec::new();
        let mut rows = statement.query(params![tenant.as_str(), blob(prefix), LOOKED_AT_MAX, LINKS_MAX as i64])?;
        while let Some(row) = rows.next()? {
            let (id, seq, head): (String, i64, i64) = (row.get(0)?, row.get(1)?, row.get(2)?);
            let Some(seq) = place(seq) else { continue };
            found.push(Link { prefix, conversation: id.into(), seq, head: place(head) });
        }
        if !found.is_empty() {
            return Ok(found);
        }
    }
    Ok(Vec::new())
}
