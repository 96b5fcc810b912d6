//! A folder that is gone when the test is over.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

static NEXT: AtomicU64 = AtomicU64::new(0);

/// A folder of one test, among the temporary files.
pub(crate) struct TempFolder(PathBuf);

impl TempFolder {
    pub(crate) fn new() -> TempFolder {
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let path = std::env::temp_dir().join(format!("recto-store-{}-{number}", std::process::id()));
        let _ = fs::remove_dir_all(&path);
        fs::create_dir_all(&path).expect("a temporary folder can be made");
        TempFolder(path)
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }

    pub(crate) fn file(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    /// Returns how often some bytes stand in the files of the folder, in one piece.
    pub(crate) fn count(&self, needle: &str) -> usize {
        let files = fs::read_dir(&self.0).expect("the folder can be listed");
        let read =
            |file: std::io::Result<fs::DirEntry>| fs::read(file.expect("a file").path()).expect("it can be read");
        let in_file = |bytes: Vec<u8>| bytes.windows(needle.len()).filter(|it| *it == needle.as_bytes()).count();
        files.map(read).map(in_file).sum()
    }
}

impl Drop for TempFolder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}
