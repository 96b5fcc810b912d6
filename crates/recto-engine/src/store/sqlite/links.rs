//! Finding places of logs by what identifies everything up to them.

use super::db::Db;
use super::found::{blob, place};
use crate::error::Error;
use crate::store::{LINKS_MAX, Link, Tenant};
use recto::digest::Digest;
use rusqlite::params;

/// Of conversations that share a prefix, the newest 256 are looked at. The second bound is [`LINKS_MAX`].
const LINKED: &str = "
    SELECT c.id, l.seq, h.seq
    FROM (SELECT n, seq FROM link WHERE tenant = ?1 AND prefix = ?2 ORDER BY n DESC LIMIT 256) l
    CROSS JOIN conversation c ON c.n = l.n CROSS JOIN head h ON h.n = l.n
    WHERE c.state = 0 ORDER BY h.seq = l.seq DESC LIMIT 64";
const _: () = assert!(LINKS_MAX == 64);

/// Finds the places that the first known one of some prefixes stands for.
pub(super) fn linked(db: &Db<'_>, tenant: &Tenant, prefixes: &[Digest]) -> Result<Vec<Link>, Error> {
    let mut statement = db.prepare_cached(LINKED)?;
    for &prefix in prefixes {
        let mut found = Vec::new();
        let mut rows = statement.query(params![tenant.as_str(), blob(prefix)])?;
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
