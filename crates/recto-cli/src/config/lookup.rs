//! Where configuration files are looked for.

use std::env;
use std::path::{Path, PathBuf};

const NAME: &str = "recto.toml";
const VARIABLE: &str = "RECTO_CONFIG";

/// A place where a file may be.
#[derive(Clone, Debug)]
pub(crate) struct Looked {
    pub(crate) path: PathBuf,
    pub(crate) is_found: bool,
}

/// What decided which files are read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum ChosenBy {
    /// The folders from the current one upward, and the user's.
    #[default]
    Search,
    /// `--config`.
    Option,
    /// `RECTO_CONFIG`.
    Environment,
}

/// Returns the files to read, the nearest first. One that is named counts as found: it must be there.
pub(super) fn files(option: Option<&Path>) -> (ChosenBy, Vec<Looked>) {
    let named = |path: PathBuf| vec![Looked { path, is_found: true }];
    if let Some(path) = option {
        return (ChosenBy::Option, named(path.into()));
    }
    if let Some(path) = env::var_os(VARIABLE).filter(|path| !path.is_empty()) {
        return (ChosenBy::Environment, named(path.into()));
    }
    let mut looked: Vec<Looked> = Vec::new();
    for path in upward().into_iter().chain(users()) {
        // Below the user's own folder both ways lead to the same file.
        if !looked.iter().any(|it| it.path == path) {
            looked.push(Looked { is_found: path.is_file(), path });
        }
    }
    (ChosenBy::Search, looked)
}

/// The current folder and those around it; none if it was removed meanwhile.
fn upward() -> Vec<PathBuf> {
    let here = env::current_dir().unwrap_or_default();
    here.ancestors().filter(|folder| folder.is_absolute()).map(|folder| folder.join(NAME)).collect()
}

/// The place in the user's folder. As its specification says, a relative `XDG_CONFIG_HOME` counts for nothing.
///
/// If nothing says where home is, there is none: `env::home_dir` would ask the system's directory of users, and that
/// may lie on a network.
fn users() -> Option<PathBuf> {
    users_folder("XDG_CONFIG_HOME", ".config").map(|folder| folder.join(NAME))
}

/// Returns the user's folder for something of Recto's: below the one that a variable names, else below another in the
/// user's home.
pub(super) fn users_folder(variable: &str, in_home: &str) -> Option<PathBuf> {
    let folder = |variable: &str| env::var_os(variable).map(PathBuf::from).filter(|folder| folder.is_absolute());
    let home = || folder(if cfg!(windows) { "USERPROFILE" } else { "HOME" }).map(|home| home.join(in_home));
    folder(variable).or_else(home).map(|folder| folder.join("recto"))
}
