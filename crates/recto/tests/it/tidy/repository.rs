//! The files of the repository and the lines of its manifests.

use std::borrow::Cow;
use std::fs;
use std::path::Path;

use super::code::{matches, tokens};

/// One file of the repository, its path relative to the root and with `/` between folders.
pub(super) struct File {
    pub(super) path: String,
    pub(super) bytes: Vec<u8>,
}

impl File {
    pub(super) fn text(&self) -> Cow<'_, str> {
        String::from_utf8_lossy(&self.bytes)
    }

    pub(super) fn offence(&self, line: usize, todo: &str) -> String {
        format!("{}:{line}: {todo}", self.path)
    }

    pub(super) fn is_rust(&self) -> bool {
        self.path.starts_with("crates/") && self.path.ends_with(".rs")
    }

    pub(super) fn is_source(&self) -> bool {
        self.path.split('/').nth(2) == Some("src")
    }

    pub(super) fn crate_name(&self) -> &str {
        self.path.split('/').nth(1).unwrap_or("")
    }

    /// Splits `a/b/c.rs` and `a/b/c/mod.rs` into `a/b` and `c`.
    fn folder_and_module(&self) -> Option<(&str, &str)> {
        let path = self.path.strip_suffix("/mod.rs").or(self.path.strip_suffix(".rs"))?;
        path.rsplit_once('/')
    }

    pub(super) fn is_declared(&self, files: &[File]) -> bool {
        let Some((folder, module)) = self.folder_and_module() else { return false };
        let parents = ["/lib.rs", "/main.rs", "/mod.rs", ".rs"].map(|end| format!("{folder}{end}"));
        files
            .iter()
            .filter(|file| parents.contains(&file.path))
            .any(|parent| matches(&tokens(&parent.text()), &format!("mod {module};")).next().is_some())
    }

    pub(super) fn child_has_docs(&self, module: &str, files: &[File]) -> bool {
        let Some((folder, own)) = self.folder_and_module() else { return false };
        let folders = [folder.to_owned(), format!("{folder}/{own}")];
        files.iter().any(|file| {
            let is_child = file
                .folder_and_module()
                .is_some_and(|(in_folder, name)| name == module && folders.iter().any(|it| it == in_folder));
            is_child && tokens(&file.text()).first().is_some_and(|token| token.text == "//!")
        })
    }
}

/// Reads every file but those that git ignores, builds, and fixtures, which are kept byte for byte.
pub(super) fn repository() -> Vec<File> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let ignored = fs::read_to_string(root.join(".gitignore")).unwrap_or_default();
    let mut skipped = vec![".git", "fixtures"];
    skipped.extend(ignored.lines().map(|line| line.trim_matches('/')));
    let mut files = Vec::new();
    read_folder(&root, "", &skipped, &mut files);
    files.sort_by(|left, right| left.path.cmp(&right.path));
    files
}

fn read_folder(folder: &Path, prefix: &str, skipped: &[&str], files: &mut Vec<File>) {
    for entry in fs::read_dir(folder).expect("a folder of the repository can be listed") {
        let entry = entry.expect("an entry of the repository can be read");
        let kind = entry.file_type().expect("an entry of the repository has a kind");
        let name = entry.file_name().into_string().expect("names in the repository are UTF-8");
        let is_build = entry.path().join("CACHEDIR.TAG").exists();
        if skipped.contains(&name.as_str()) || is_build {
            continue;
        }
        let path = format!("{prefix}{name}");
        if kind.is_dir() {
            read_folder(&entry.path(), &format!("{path}/"), skipped, files);
        } else if kind.is_file() {
            let bytes = fs::read(entry.path()).expect("a file of the repository can be read");
            files.push(File { path, bytes });
        }
    }
}

pub(super) fn crate_manifests(files: &[File]) -> impl Iterator<Item = &File> {
    files.iter().filter(|it| it.path.starts_with("crates/") && it.path.ends_with("/Cargo.toml"))
}

/// One `key = value` line of a manifest.
pub(super) struct Setting {
    pub(super) section: String,
    pub(super) key: String,
    pub(super) value: String,
    pub(super) line: usize,
}

impl Setting {
    pub(super) fn is(&self, section: &str, key: &str, value: &str) -> bool {
        self.section == section && self.key == key && self.value == value
    }
}

pub(super) fn settings(manifest: &str) -> Vec<Setting> {
    let mut section = String::new();
    let mut settings = Vec::new();
    for (index, line) in manifest.lines().enumerate() {
        let line = line.trim();
        if line.starts_with('[') && line.ends_with(']') {
            section = line.trim_matches(['[', ']']).trim().to_owned();
        } else if let (false, Some((key, value))) = (line.starts_with('#'), line.split_once('=')) {
            let (key, value) = (key.trim().to_owned(), value.trim().to_owned());
            settings.push(Setting { section: section.clone(), key, value, line: index + 1 });
        }
    }
    settings
}
