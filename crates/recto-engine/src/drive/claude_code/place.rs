//! Where the program keeps its sessions, and files that are written for it.

use crate::error::{Error, Kind};
use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind, Read, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// The largest session file that is read, in bytes.
const FILE_BYTES_MAX: u64 = 512 * 1024 * 1024;
/// The longest name of a project folder, before what tells it from others that begin alike.
const NAME_CHARS_MAX: usize = 200;
/// Only the user may read what was said.
const FILE_MODE: u32 = 0o600;
const FOLDER_MODE: u32 = 0o700;

/// Returns where a session of a workspace is kept.
pub(super) fn of(session: &str, workspace: &Path, environment: &BTreeMap<String, String>) -> Result<PathBuf, Error> {
    let is_name = |it: char| it.is_ascii_alphanumeric() || it == '-' || it == '_';
    if session.is_empty() || !session.chars().all(is_name) {
        let what = format!("{session:?} is no name of a session");
        return Err(Kind::Program { what, hint: "Claude Code names its sessions by UUIDs".into() }.into());
    }
    let settings = environment.get("CLAUDE_CONFIG_DIR").map(PathBuf::from);
    let Some(settings) = settings.or_else(|| Some(Path::new(environment.get("HOME")?).join(".claude"))) else {
        let hint = "give the program HOME or CLAUDE_CONFIG_DIR".to_string();
        return Err(Kind::Program { what: "nobody can say where Claude Code keeps its sessions".into(), hint }.into());
    };
    let project = project_name(&real(workspace)?);
    Ok(settings.join("projects").join(project).join(format!("{session}.jsonl")))
}

/// Returns the real path of a workspace.
pub(super) fn real(workspace: &Path) -> Result<String, Error> {
    let real = fs::canonicalize(workspace).map_err(|error| {
        let what = format!("{} can't be worked in: {error}", workspace.display());
        Kind::Program { what, hint: "name a folder that exists".into() }
    })?;
    Ok(real.to_string_lossy().into_owned())
}

/// The program's name of a project: what is no letter or digit of ASCII is a dash, and a long name is cut off and told
/// apart by a number. It counts in units of UTF-16.
fn project_name(path: &str) -> String {
    let unit = |unit: u16| u8::try_from(unit).map(char::from).ok().filter(char::is_ascii_alphanumeric).unwrap_or('-');
    let name: String = path.encode_utf16().map(unit).collect();
    if name.len() <= NAME_CHARS_MAX {
        return name;
    }
    let hash = path.encode_utf16().fold(0_i32, |hash, unit| hash.wrapping_mul(31).wrapping_add(unit.into()));
    format!("{}-{}", &name[..NAME_CHARS_MAX], base_36(hash.unsigned_abs()))
}

fn base_36(mut number: u32) -> String {
    let mut digits = Vec::new();
    loop {
        digits.extend(char::from_digit(number % 36, 36));
        number /= 36;
        if number == 0 {
            return digits.into_iter().rev().collect();
        }
    }
}

/// Reads a session file; `None` if there is none.
pub(super) fn read(path: &Path) -> Result<Option<String>, Error> {
    let broken = |why: String| Error::from(Kind::Io { what: format!("{} can't be read", path.display()), why });
    let file = match File::open(path) {
        Ok(file) => file,
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => return Ok(None),
        Err(error) => return Err(broken(error.to_string())),
    };
    let mut text = String::new();
    let read = file.take(FILE_BYTES_MAX + 1).read_to_string(&mut text).map_err(|error| broken(error.to_string()))?;
    if read as u64 > FILE_BYTES_MAX {
        return Err(broken(format!("it has more than {} MiB", FILE_BYTES_MAX >> 20)));
    }
    Ok(Some(text))
}

/// Writes a session file, whole or not at all, and never over another one.
pub(super) fn write(path: &Path, text: &str) -> Result<(), Error> {
    if path.exists() {
        return Err(Kind::Exists { what: format!("a session file {}", path.display()) }.into());
    }
    let aside = path.with_extension("jsonl.new");
    let written = || {
        fs::DirBuilder::new().recursive(true).mode(FOLDER_MODE).create(path.parent().unwrap_or(path))?;
        create(&aside, text)?;
        fs::rename(&aside, path)
    };
    written().map_err(|error| {
        // What was begun would only stand in the way.
        drop(fs::remove_file(&aside));
        Kind::Io { what: format!("{} can't be written", path.display()), why: error.to_string() }.into()
    })
}

fn create(path: &Path, text: &str) -> io::Result<()> {
    let mut file = OpenOptions::new().write(true).create(true).truncate(true).mode(FILE_MODE).open(path)?;
    file.write_all(text.as_bytes())?;
    file.sync_all()
}

/// How instructions are handed over.
pub(super) enum Prompt<'i> {
    None,
    Argument(&'i str),
    /// In a file that is gone when this is.
    File(PathBuf),
}

impl<'i> Prompt<'i> {
    /// Returns instructions as an argument or, if they are too long for one, in a file that is named after `unique`.
    pub(super) fn of(instructions: &'i str, unique: &str, bytes_max: usize) -> Result<Prompt<'i>, Error> {
        if instructions.is_empty() {
            return Ok(Prompt::None);
        }
        if instructions.len() <= bytes_max && !instructions.contains('\0') {
            return Ok(Prompt::Argument(instructions));
        }
        let name: String = unique.chars().filter(char::is_ascii_alphanumeric).collect();
        let path = std::env::temp_dir().join(format!("recto-{}-{name}.txt", std::process::id()));
        // Made before it is written, so that it is removed even if that fails.
        let prompt = Prompt::File(path.clone());
        let failed = |error: io::Error| Kind::Io { what: format!("{}", path.display()), why: error.to_string() };
        create(&path, instructions).map_err(failed)?;
        Ok(prompt)
    }
}

impl Drop for Prompt<'_> {
    fn drop(&mut self) {
        if let Prompt::File(path) = self {
            // It lies among temporary files: one that can't be removed does no harm.
            drop(fs::remove_file(path));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn projects_are_named_as_the_program_names_them() {
        assert_eq!(project_name("/tmp/a_b.c/Ü/𝄞"), "-tmp-a-b-c-----");
        let long = format!("/{}", "x".repeat(220));
        assert_eq!(project_name(&long), format!("-{}-{}", "x".repeat(199), base_36(hash_of(&long))));
        assert_eq!(base_36(0), "0");
        assert_eq!(base_36(2_147_483_648), "zik0zk");
    }

    /// The usual hash of strings, in 64 bits and cut down at each step.
    fn hash_of(text: &str) -> u32 {
        let cut = |hash: i64| (hash as u32).cast_signed() as i64;
        let hash = text.bytes().fold(0_i64, |hash, byte| cut((hash << 5) - hash + i64::from(byte)));
        u32::try_from(hash.abs()).expect("32 bits")
    }
}
