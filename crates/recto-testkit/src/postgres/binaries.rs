//! Where PostgreSQL is, and as whom it runs: it refuses to run as root.

use super::{USER, broken, run};
use std::ffi::OsStr;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::Command;

const FOLDERS: &str = "/usr/lib/postgresql";
const PROGRAMS: [&str; 4] = ["initdb", "postgres", "pg_basebackup", "psql"];
/// Whose rights root takes instead, the first that exists.
const USERS: [&str; 2] = ["postgres", "nobody"];
/// Since this version a cluster can be sorted by a language that the system doesn't have.
const ICU_MAJOR_MIN: u32 = 15;

#[derive(Debug, Clone)]
pub(super) struct Binaries {
    folder: PathBuf,
    major: u32,
    /// The ids of another user and group, for root.
    other: Option<(u32, u32)>,
}

impl Binaries {
    /// Finds the newest version. Without one a test fails, since nobody would notice that it did nothing.
    pub(super) fn find() -> Binaries {
        let installed = std::fs::read_dir(FOLDERS).into_iter().flatten().flatten();
        let paths = std::env::var_os("PATH").unwrap_or_default();
        let Some((major, folder)) = installed
            .map(|entry| entry.path().join("bin"))
            .chain(std::env::split_paths(&paths))
            .filter(|folder| PROGRAMS.iter().all(|program| folder.join(program).is_file()))
            .map(|folder| (major(&folder), folder))
            .max()
        else {
            broken("PostgreSQL is missing: install the package `postgresql`, as scripts/test does")
        };
        let other = rustix::process::geteuid().is_root().then(other_user);
        Binaries { folder, major, other }
    }

    pub(super) fn path(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    /// Returns a command that runs without the rights of root.
    pub(super) fn as_user(&self, program: impl AsRef<OsStr>) -> Command {
        let Some((user, group)) = self.other else { return Command::new(program) };
        let mut command = Command::new("setpriv");
        command.args([&format!("--reuid={user}"), &format!("--regid={group}"), "--clear-groups", "--"]).arg(program);
        command
    }

    /// Gives a folder or file to whom the server runs as.
    pub(super) fn give(&self, path: &Path) {
        if let Some((user, group)) = self.other {
            std::os::unix::fs::chown(path, Some(user), Some(group)).expect("root may give away what it made");
        }
    }

    /// Copies a cluster that is made once for all tests, since making one takes a second.
    pub(super) fn copy_template(&self, data: &Path) {
        let beside = std::env::current_exe().expect("a test knows its own binary");
        let folder = beside.parent().expect("it is in a folder");
        let user = self.other.map_or_else(|| "own".to_owned(), |(user, _)| user.to_string());
        let template = folder.join(format!("postgres-{}-{user}", self.major));
        let lock = File::create(template.with_extension("lock")).expect("a file can be made beside the tests");
        lock.lock().expect("a file can be locked");
        if !template.is_dir() {
            self.make(data);
            // Under another name first: half a copy is never taken for a whole one.
            let draft = template.with_extension("draft");
            let _ = std::fs::remove_dir_all(&draft);
            copy(data, &draft);
            std::fs::rename(&draft, &template).expect("it can be renamed in its folder");
            return;
        }
        drop(lock);
        copy(&template, data);
    }

    fn make(&self, data: &Path) {
        let mut command = self.as_user(self.path("initdb"));
        command.arg("-D").arg(data).args(["-U", USER, "-A", "trust", "-E", "UTF8", "--no-sync", "--locale=C.UTF-8"]);
        if self.major >= ICU_MAJOR_MIN {
            command.args(["--locale-provider=icu", "--icu-locale=en-US"]);
        }
        run(command.current_dir(data.parent().expect("it is in a folder")));
    }
}

fn copy(from: &Path, to: &Path) {
    run(Command::new("cp").args(["-a", "--reflink=auto"]).args([from, to]));
}

fn major(folder: &Path) -> u32 {
    let said = run(Command::new(folder.join("postgres")).arg("--version"));
    let number = said.split(' ').find_map(|word| word.split(['.', 'b', 'd', 'r']).next()?.parse().ok());
    number.unwrap_or_else(|| broken(&format!("{said:?} is no version")))
}

fn other_user() -> (u32, u32) {
    let id = |kind: &str, name: &str| {
        let out = Command::new("id").args([kind, name]).output().ok()?;
        String::from_utf8_lossy(&out.stdout).trim().parse().ok()
    };
    let ids = |name: &&str| Some((id("-u", name)?, id("-g", name)?));
    USERS.iter().find_map(ids).unwrap_or_else(|| broken("PostgreSQL can't run as root, and there is nobody else"))
}
