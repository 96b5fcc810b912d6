//! Where the store is: what the command line, the environment or a file says, else a place in the user's data folder.

use super::lookup::users_folder;
use super::{Config, Origin, Set};
use std::env;
use std::path::{Path, PathBuf};

const NAME: &str = "recto.db";
const VARIABLE: &str = "RECTO_STORE";

impl Config {
    /// Returns the file in which conversations are kept, and what says so; `None` if nothing says where the user's data
    /// folder is.
    pub(crate) fn store(&self, option: Option<&Path>) -> Option<Set<PathBuf>> {
        if let Some(path) = option {
            return Some(Set { value: path.into(), origin: Origin::Option("--store") });
        }
        if let Some(path) = env::var_os(VARIABLE).filter(|path| !path.is_empty()) {
            return Some(Set { value: path.into(), origin: Origin::Environment(VARIABLE) });
        }
        if let Some(set) = &self.layer.store {
            return Some(Set { value: set.as_path(), origin: set.origin.clone() });
        }
        let folder = users_folder("XDG_DATA_HOME", ".local/share")?;
        Some(Set { value: folder.join(NAME), origin: Origin::Default })
    }
}
