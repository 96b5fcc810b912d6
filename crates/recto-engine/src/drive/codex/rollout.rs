//! The files in which Codex keeps its sessions: `sessions/YYYY/MM/DD/rollout-<time>-<session>.jsonl`.

use super::{is_uuid, program};
use crate::drive::{self, Found};
use crate::error::{Error, Kind};
use recto::digest::Digest;
use recto::entry::{Entry, Millis, Text};
use recto::transcript::codex::{self, Begun, Since};
use recto::transcript::time;
use serde::{Deserialize, Serialize};
use std::fs::{DirBuilder, File, OpenOptions};
use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

/// The most folders in which a rollout is looked for: those of every day of a lifetime.
const FOLDERS_MAX: usize = 40_000;
/// The most files that are looked at in one of them.
const FILES_MAX: usize = 100_000;
/// The most that is read at once, in bytes.
const BYTES_MAX: u64 = 512 * 1024 * 1024;
/// The longest first line, in bytes.
const HEAD_BYTES_MAX: u64 = 16 * 1024 * 1024;
/// How much of what stands before a mark identifies it, in bytes.
const TAIL_BYTES: u64 = 4096;

/// How far a rollout is known: so many bytes, and what identifies the last of them.
#[derive(Serialize, Deserialize)]
struct Mark {
    bytes: u64,
    tail: Digest,
}

/// Why a rollout can't be read.
enum Unread {
    Missing,
    /// The program went on from an earlier place, in another file.
    Elsewhere,
    Corrupt(String),
}

impl From<io::Error> for Unread {
    fn from(error: io::Error) -> Unread {
        Unread::Corrupt(error.to_string())
    }
}

impl Unread {
    fn why(self, session: &str) -> String {
        match self {
            Unread::Missing => format!("there is no session {session}"),
            Unread::Elsewhere => format!("session {session} went on from an earlier place"),
            Unread::Corrupt(why) => why,
        }
    }
}

/// Returns what a session's rollout says since a mark.
pub(super) fn look(home: &Path, session: &str, mark: Option<&str>) -> Found {
    match looked(home, session, mark) {
        Ok(since) => Found::There(since),
        Err(Unread::Missing) => Found::Missing,
        Err(Unread::Elsewhere) => Found::Elsewhere,
        Err(Unread::Corrupt(why)) => Found::Corrupt(why),
    }
}

fn looked(home: &Path, session: &str, mark: Option<&str>) -> Result<drive::Since, Unread> {
    let path = find(home, session)?;
    head(&path)?;
    let start = mark.map_or(Ok(0), |mark| place_of(&path, mark))?;
    let (since, mark) = read_at(&path, start)?;
    // Turns are taken back from before a place only if something stands before it.
    if since.goes_back && start > 0 {
        return Err(Unread::Elsewhere);
    }
    let Since { entries, is_answered, .. } = since;
    Ok(drive::Since { entries, mark: Some(mark), is_answered, rewind_to: None })
}

/// Returns what a session's rollout says behind its first bytes, and a mark of its end.
pub(super) fn read(home: &Path, session: &str, start: u64) -> Result<(Since, Text), String> {
    find(home, session).and_then(|path| read_at(&path, start)).map_err(|unread| unread.why(session))
}

/// Returns how a session was begun, and how many bytes of its rollout are known; without a mark, all of them.
pub(super) fn known(home: &Path, session: &str, mark: Option<&str>) -> Result<(Begun, u64), String> {
    let found = find(home, session).and_then(|path| {
        let bytes = match mark {
            Some(mark) => place_of(&path, mark)?,
            None => std::fs::metadata(&path)?.len(),
        };
        Ok((head(&path)?, bytes))
    });
    found.map_err(|unread| unread.why(session))
}

/// The place that a mark stands for, if the rollout is the same up to there.
fn place_of(path: &Path, mark: &str) -> Result<u64, Unread> {
    let mark: Mark = serde_json::from_str(mark).map_err(|_| Unread::Elsewhere)?;
    let mut file = File::open(path)?;
    let is_same = file.metadata()?.len() >= mark.bytes && tail(&mut file, mark.bytes)? == mark.tail;
    is_same.then_some(mark.bytes).ok_or(Unread::Elsewhere)
}

/// Writes the rollout of a session that nobody has begun, whole or not at all, and returns a mark of its end.
pub(super) fn seed(home: &Path, entries: &[Entry], session: &str, workspace: &Path) -> Result<Text, Error> {
    if !is_uuid(session) {
        return Err(program(format!("{session:?} can't be a session of Codex"), "name it by a UUID"));
    }
    match find(home, session) {
        Err(Unread::Missing) => {}
        _ => return Err(Kind::Exists { what: format!("session {session} of Codex") }.into()),
    }
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_millis();
    let now = Millis(i64::try_from(now).unwrap_or(i64::MAX));
    let written = time::written(now);
    let (date, name) = (written[..10].replace('-', "/"), written[..19].replace(':', "-"));
    let folder = home.join("sessions").join(date);
    let path = folder.join(format!("rollout-{name}-{session}.jsonl"));
    let text = codex::session(entries, session, &workspace.to_string_lossy(), now);
    placed(&folder, &path, text.as_bytes()).map_err(|error| match error.kind() {
        io::ErrorKind::AlreadyExists => Kind::Exists { what: format!("session {session} of Codex") },
        _ => Kind::Io { what: format!("{} can't be written", path.display()), why: error.to_string() },
    })?;
    let bytes = text.as_bytes();
    let from = bytes.len().saturating_sub(TAIL_BYTES as usize);
    Ok(told(&Mark { bytes: bytes.len() as u64, tail: Digest::of(&bytes[from..]) }))
}

/// Makes a file under a name that nobody has, once all of it is on the disk.
fn placed(folder: &Path, path: &Path, bytes: &[u8]) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
    // No name of a rollout, so the program never finds it half-written.
    let draft = path.with_extension("draft");
    let written = || -> io::Result<()> {
        let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&draft)?;
        file.write_all(bytes)?;
        file.sync_all()?;
        std::fs::hard_link(&draft, path)
    };
    let done = written();
    drop(std::fs::remove_file(&draft));
    done
}

fn told(mark: &Mark) -> Text {
    serde_json::to_string(mark).expect("a number and a text can be written").into()
}

/// Reads what stands behind the first bytes.
fn read_at(path: &Path, start: u64) -> Result<(Since, Text), Unread> {
    let mut file = File::open(path)?;
    let left = file.metadata()?.len().checked_sub(start).ok_or(Unread::Elsewhere)?;
    if left > BYTES_MAX {
        let what = format!("{} has {} MiB to read; at most {} are", path.display(), left >> 20, BYTES_MAX >> 20);
        return Err(Unread::Corrupt(what));
    }
    file.seek(SeekFrom::Start(start))?;
    let mut bytes = Vec::new();
    (&mut file).take(left).read_to_end(&mut bytes)?;
    let text = match std::str::from_utf8(&bytes) {
        Ok(text) => text,
        // It ends in the middle of a letter, and so does its last line.
        Err(error) if error.error_len().is_none() => {
            std::str::from_utf8(&bytes[..error.valid_up_to()]).expect("it was found valid up to there")
        }
        Err(_) => return Err(Unread::Corrupt(format!("{} holds bytes that are no text", path.display()))),
    };
    let since = codex::since(text)
        .map_err(|error| Unread::Corrupt(format!("{}, behind byte {start}: {error}", path.display())))?;
    let bytes = start + since.bytes as u64;
    let tail = tail(&mut file, bytes)?;
    Ok((since, told(&Mark { bytes, tail })))
}

/// What identifies the bytes before a place.
fn tail(file: &mut File, end: u64) -> io::Result<Digest> {
    let start = end.saturating_sub(TAIL_BYTES);
    file.seek(SeekFrom::Start(start))?;
    let mut bytes = Vec::new();
    file.take(end - start).read_to_end(&mut bytes)?;
    Ok(Digest::of(&bytes))
}

/// How a session was begun, from the first line of its rollout.
fn head(path: &Path) -> Result<Begun, Unread> {
    let mut line = Vec::new();
    BufReader::new(File::open(path)?.take(HEAD_BYTES_MAX)).read_until(b'\n', &mut line)?;
    let begun = codex::begun(&String::from_utf8_lossy(&line));
    begun.ok_or_else(|| Unread::Corrupt(format!("{} doesn't begin as a session of Codex does", path.display())))
}

/// Finds the rollout of a session: the newest days are looked at first.
fn find(home: &Path, session: &str) -> Result<PathBuf, Unread> {
    if !is_uuid(session) {
        return Err(Unread::Missing);
    }
    let mut folders = 0;
    for year in newest_first(&home.join("sessions"))? {
        for month in newest_first(&year)? {
            for day in newest_first(&month)? {
                folders += 1;
                if folders > FOLDERS_MAX {
                    let what = format!("more than {FOLDERS_MAX} folders in {}", home.join("sessions").display());
                    return Err(Unread::Corrupt(what));
                }
                if let Some(path) = found_in(&day, session)? {
                    return Ok(path);
                }
            }
        }
    }
    Err(Unread::Missing)
}

fn found_in(folder: &Path, session: &str) -> Result<Option<PathBuf>, Unread> {
    let mut found = None;
    for path in newest_first(folder)? {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let rest = name.strip_prefix("rollout-").and_then(|name| name.split_once(session)).map(|(_, rest)| rest);
        match rest {
            Some(".jsonl") => found = Some(path),
            Some(".jsonl.zst") => {
                return Err(Unread::Corrupt(format!("{} is compressed, and can't be read here", path.display())));
            }
            Some(rest) if rest.starts_with('_') => return Err(Unread::Elsewhere),
            _ => {}
        }
    }
    Ok(found)
}

/// What a folder holds, by name, the last one first; nothing if there is no such folder.
fn newest_first(folder: &Path) -> Result<Vec<PathBuf>, Unread> {
    let entries = match std::fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(error) if [io::ErrorKind::NotFound, io::ErrorKind::NotADirectory].contains(&error.kind()) => {
            return Ok(Vec::new());
        }
        Err(error) => return Err(error.into()),
    };
    let mut paths = Vec::new();
    for entry in entries {
        paths.push(entry?.path());
        if paths.len() > FILES_MAX {
            return Err(Unread::Corrupt(format!("more than {FILES_MAX} files in {}", folder.display())));
        }
    }
    paths.sort_unstable_by(|one, other| other.cmp(one));
    Ok(paths)
}
