//! What every store holds to: how large things may be, and in which order they come.

use super::{AccessKey, Batch};
use crate::error::{Error, Kind};
use recto::Seq;
use recto::log::SEQ_MAX;

/// The most entries that one append takes.
pub const BATCH_ENTRIES_MAX: usize = 10_000;
/// The most rows that one read returns.
pub const ROWS_MAX: usize = 10_000;
/// How many forks may stand on each other; a deeper one is written out.
pub const FORK_DEPTH_MAX: usize = 16;
/// The longest stored receipt, in bytes.
pub const RECEIPT_BYTES_MAX: usize = 2_048;
/// The longest name of a tenant, conversation, reader or key, in bytes.
pub const NAME_BYTES_MAX: usize = 512;
/// How many conversations are found for one prefix.
pub const LINKS_MAX: usize = 64;
/// The most keys, revoked ones included.
pub const KEYS_MAX: usize = 10_000;
/// Texts of at least so many bytes are kept apart from their entries, once for each conversation.
pub const LARGE_BYTES_MIN: usize = 16 * 1024;

/// Refuses a name that is too long.
pub(crate) fn check_name(what: &str, name: &str) -> Result<(), Error> {
    if name.len() > NAME_BYTES_MAX {
        let what = format!("the name of a {what} has {} bytes, at most {NAME_BYTES_MAX}", name.len());
        return Err(Kind::TooLarge { what }.into());
    }
    Ok(())
}

/// Refuses a key that is one too many, or whose names are too long.
pub(crate) fn check_key(key: &AccessKey, there: usize) -> Result<(), Error> {
    check_name("key", &key.name)?;
    check_name("tenant", key.tenant.as_str())?;
    key.policy.as_ref().map_or(Ok(()), |policy| check_name("policy", policy))?;
    if there >= KEYS_MAX {
        return Err(Kind::TooLarge { what: format!("more than {KEYS_MAX} keys") }.into());
    }
    Ok(())
}

/// Refuses a receipt that is too long.
pub(crate) fn check_receipt(receipt: &str) -> Result<(), Error> {
    if receipt.len() > RECEIPT_BYTES_MAX {
        let what = format!("a receipt has {} bytes, at most {RECEIPT_BYTES_MAX}", receipt.len());
        return Err(Kind::TooLarge { what }.into());
    }
    Ok(())
}

/// Refuses an append that is too large.
pub(crate) fn check_batch(batch: &Batch) -> Result<(), Error> {
    if batch.rows.len() > BATCH_ENTRIES_MAX {
        let what = format!("an append of {} entries, at most {BATCH_ENTRIES_MAX}", batch.rows.len());
        return Err(Kind::TooLarge { what }.into());
    }
    batch.records.iter().try_for_each(|record| check_name("record", &record.key))?;
    batch.key.as_ref().map_or(Ok(()), |(key, _)| check_name("key", key))
}

/// Refuses a batch of somebody whose knowledge of the conversation has become old.
pub(crate) fn check_version(batch: &Batch, version: u64) -> Result<(), Error> {
    match batch.version {
        Some(expected) if expected != version => {
            let what = format!("the conversation has version {version}, not {expected}");
            Err(Kind::Conflict { what, hint: "read again, then append".into() }.into())
        }
        _ => Ok(()),
    }
}

/// Checks that numbers go on one by one from the next.
pub(crate) fn check_dense(what: &str, next: u64, numbers: impl Iterator<Item = u64>) -> Result<(), Error> {
    for (expected, number) in (next..).zip(numbers) {
        if number != expected {
            return Err(Kind::Defect { what: format!("{what} {number} was given where {expected} is the next") }.into());
        }
    }
    Ok(())
}

/// Returns where an entry goes that comes behind a place, if the caller has no other.
pub(crate) fn next_place(head: Option<Seq>, given: Option<Seq>) -> Result<Seq, Error> {
    let next = head.map_or(Seq(0), Seq::next);
    let seq = given.unwrap_or(next);
    if seq < next {
        let what = format!("place {seq} is not behind all others; the next one is {next}");
        return Err(Kind::Conflict { what, hint: "read again, then append behind the newest".into() }.into());
    }
    if seq > SEQ_MAX {
        return Err(Kind::TooLarge { what: format!("place {seq} is beyond {SEQ_MAX}, the last one") }.into());
    }
    Ok(seq)
}
