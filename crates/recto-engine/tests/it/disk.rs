//! A disk that is really full: a small file system of its own, in a process of its own.

use crate::child::{setting, tell};
use crate::engine::block_on;
use crate::folder::TempFolder;
use recto::{Entry, Seq};
use recto_engine::store::sqlite::Sqlite;
use recto_engine::{Append, At, Engine, Opening, Tenant};
use recto_testkit::shared::skipped;
use std::path::Path;
use std::process::Command;

const DISK: &str = "3m";
/// What lies on the disk besides, and can be taken away.
const BALLAST_BYTES: usize = 1 << 20;
/// More appends than the disk can hold.
const APPENDS_MAX: u64 = 10_000;

#[test]
fn when_the_disk_is_full_nothing_is_acknowledged_that_is_not_there_and_later_it_goes_on() {
    let is_permitted = Command::new("unshare").args(["-rm", "true"]).output().is_ok_and(|done| done.status.success());
    if !is_permitted {
        return skipped("a full disk: `unshare -rm` is not there (util-linux) or not permitted");
    }
    let folder = TempFolder::new();
    let mount = format!("mount -t tmpfs -o size={DISK} tmpfs \"$1\" && exec \"$2\" disk::child --exact --nocapture");
    let done = Command::new("unshare")
        .args(["-rm", "sh", "-c", &mount, "sh"])
        .arg(folder.path())
        .arg(std::env::current_exe().expect("a test knows its own binary"))
        .env("RECTO_FULL_DISK", folder.path())
        .output()
        .expect("it can be started");
    let told = String::from_utf8_lossy(&done.stdout);
    assert!(done.status.success(), "{told}\n{}", String::from_utf8_lossy(&done.stderr));
    assert!(told.contains("told: it was full"), "{told}");
}

/// What happens on the small disk; only for a parent that says where.
#[test]
fn child() {
    let Some(folder) = setting("RECTO_FULL_DISK") else { return };
    block_on(fill(Path::new(&folder)));
}

async fn fill(disk: &Path) {
    let (file, ballast) = (disk.join("recto.db"), disk.join("ballast"));
    std::fs::write(&ballast, vec![1; BALLAST_BYTES]).expect("there is room at first");
    let at = At::new(&Tenant::default(), "talk");
    let words = |number: u64| Entry::user(format!("{number} {}", "word ".repeat(400)));
    let engine = Engine::over(Sqlite::open(&file).expect("there is room at first"));
    engine.open(&at, Opening::default()).await.expect("there is room at first");
    let (mut acknowledged, mut refused) = (0, None);
    while refused.is_none() {
        match engine.append(&at, Append::after(head(acknowledged), [words(acknowledged)])).await {
            Ok(_) => acknowledged += 1,
            Err(error) => refused = Some(error),
        }
        assert!(acknowledged < APPENDS_MAX, "the disk takes anything");
    }
    let refused = refused.expect("the loop has ended");
    assert!(refused.is_full(), "{refused:?}");
    assert!(acknowledged > 100, "only {acknowledged} entries went in");
    let read = engine.read(&at, Seq(0), APPENDS_MAX as usize).await.expect("it can be read");
    assert_eq!(read.len() as u64, acknowledged);
    // The same engine goes on once there is room.
    std::fs::remove_file(&ballast).expect("it is ours");
    engine.append(&at, Append::after(head(acknowledged), [words(acknowledged)])).await.expect("there is room");
    drop(engine);
    let engine = Engine::over(Sqlite::open(&file).expect("the next start works"));
    let read = engine.read(&at, Seq(0), APPENDS_MAX as usize).await.expect("it can be read");
    assert_eq!(read.len() as u64, acknowledged + 1);
    assert!(engine.check(|_| ()).await.expect("it can be checked").findings.is_empty());
    tell(&format!("it was full after {acknowledged}"));
}

fn head(acknowledged: u64) -> Option<Seq> {
    acknowledged.checked_sub(1).map(Seq)
}
