//! The store as a file: exports, backups, checks, and files that are no stores.

use crate::import::Stored;
use crate::run::{FIXTURE, Folder, SMALL, fails, mentions, succeeds};
use serde_json::Value;
use std::fs;

/// Where SQLite keeps the number of the schema.
const SCHEMA_AT: usize = 60;

#[test]
fn an_export_reads_back_byte_for_byte() {
    let stored = Stored::with_chat();
    stored.run(&["import", FIXTURE]);
    stored.run(&["pin", "chat", "1-2"]);
    stored.run(&["pin", "chat", "3"]);
    stored.run(&["revert", "chat", "1"]);
    stored.run(&["erase", "chat", "--entries", "4", "--yes"]);
    stored.run(&["import", &stored.folder.at("chat.json"), "--as", "../Odd name"]);
    stored.run(&["fork", "chat", "forked", "--at", "2"]);
    let folder = stored.folder.at("exports");
    let output = stored.json(&["export", "--all", "-o", &folder]);
    let rows = output["exported"].as_array().unwrap();
    assert_eq!(rows.len(), 4);
    let mut names: Vec<String> =
        fs::read_dir(&folder).unwrap().map(|it| it.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    assert_eq!(names, ["%2E.%2F%4Fdd%20name.jsonl", "chat.jsonl", "forked.jsonl", "late-fees.chat.jsonl"]);

    let other = Stored::new();
    let imported = other.json(&["import", &folder]);
    assert_eq!(imported["imported"].as_array().map(Vec::len), Some(4));
    for row in rows {
        let (name, file) = (row["conversation"].as_str().unwrap(), row["file"].as_str().unwrap());
        let before = fs::read_to_string(file).unwrap();
        assert_eq!(other.run(&["export", name]).stdout, before, "{name}");
        assert_eq!(before.lines().filter(|line| line.starts_with("{\"entry\"")).count() as u64, row["entries"]);
    }
    let again = other.json(&["import", &folder]);
    let added = again["imported"].as_array().unwrap().iter().map(|row| row["added"].as_u64().unwrap());
    assert_eq!(added.sum::<u64>(), 0);
    let renamed = other.json(&["import", &format!("{folder}/chat.jsonl"), "--as", "renamed"]);
    assert_eq!(renamed["imported"][0]["conversation"], "renamed");
}

#[test]
fn an_export_that_is_cut_off_or_changed_is_refused() {
    let stored = Stored::with_chat();
    let whole = stored.run(&["export", "chat"]).stdout;
    let other = Stored::new();
    let cut: String = whole.lines().take(4).map(|line| format!("{line}\n")).collect();
    let file = other.folder.file("cut.jsonl", cut);
    let ran = other.any(&["import", &file]);
    assert_eq!(ran.code, Some(3));
    mentions(&ran.stderr, &["the export breaks off", "error[R0357]"]);
    // What was read so far stays, and the whole file goes on from there.
    let file = other.folder.file("whole.jsonl", &whole);
    assert_eq!(other.json(&["import", &file])["imported"][0]["conversation"], "chat");
    assert_eq!(other.run(&["export", "chat"]).stdout, whole);
    let file = other.folder.file("changed.jsonl", whole.replace("It is empty.", "It is full."));
    let ran = other.any(&["import", &file]);
    assert_eq!(ran.code, Some(3));
    mentions(&ran.stderr, &["[R0352]", "--as NAME"]);
    let file = other.folder.file("newer.jsonl", whole.replacen("\"recto\":1", "\"recto\":99", 1));
    mentions(&other.any(&["import", &file]).stderr, &["version 99"]);
}

#[test]
fn an_export_goes_to_a_file_or_to_stdout() {
    let stored = Stored::with_chat();
    let out = stored.folder.at("out.jsonl");
    let told = stored.json(&["export", "chat", "-o", &out]);
    assert_eq!((&told["exported"][0]["file"], &told["exported"][0]["entries"]), (&out.as_str().into(), &6.into()));
    assert_eq!(fs::read_to_string(&out).unwrap(), stored.run(&["export", "chat"]).stdout);
    mentions(&stored.fails(2, &["export", "chat", "--json"]), &["error[R0204]", "-o"]);
    mentions(&stored.fails(3, &["export", "chat", "-o", &stored.store.clone()]), &["error[R0306]"]);
    mentions(&stored.fails(3, &["export", "gone", "-o", &out]), &["error[R0350]"]);
    assert_eq!(stored.any(&["export"]).code, Some(2));
    assert_eq!(stored.any(&["export", "chat", "--all"]).code, Some(2));
}

#[test]
fn a_backup_is_a_store_and_is_restored() {
    let stored = Stored::with_chat();
    let before = stored.run(&["export", "chat"]).stdout;
    let copy = stored.folder.at("copy.db");
    let told = stored.json(&["backup", &copy]);
    assert_eq!(told["bytes"].as_u64(), Some(fs::metadata(&copy).unwrap().len()));
    mentions(&stored.fails(3, &["backup", &copy]), &["error[R0351]", "copy.db"]);
    stored.run(&["backup", &copy, "--replace"]);
    assert_eq!(succeeds(&["export", "chat", "--store", &copy]).stdout, before);

    stored.run(&["erase", "chat", "--yes"]);
    mentions(&stored.fails(3, &["restore", &copy]), &["error[R0351]", "--replace"]);
    let told = stored.json(&["restore", &copy, "--replace"]);
    assert_eq!(told["store"], stored.store.as_str());
    assert_eq!(stored.run(&["export", "chat"]).stdout, before);
    mentions(&stored.fails(1, &["restore", &stored.folder.at("chat.json"), "--replace"]), &["error[R0109]"]);
    mentions(&stored.fails(1, &["restore", "gone.db", "--replace"]), &["error[R0101]: cannot read gone.db"]);
    assert_eq!(stored.run(&["export", "chat"]).stdout, before, "what can't be restored replaces nothing");
}

#[test]
fn a_sound_store_is_told_as_sound() {
    let stored = Stored::with_chat();
    let report = stored.json(&["doctor"]);
    assert_eq!((&report["conversations"], &report["entries"]), (&1.into(), &6.into()));
    assert_eq!(
        (&report["store"], report["findings"].as_array().map(Vec::len)),
        (&stored.store.as_str().into(), Some(0))
    );
    mentions(&stored.run(&["doctor"]).stdout, &["schema", "bytes of the file", "all is well"]);
}

/// A store as an older version left it.
fn older(schema: u8) -> (Stored, Vec<u8>) {
    let stored = Stored::new();
    let fixture = format!("{}/../recto-engine/fixtures/schema-{schema}.db", env!("CARGO_MANIFEST_DIR"));
    let bytes = fs::read(fixture).unwrap();
    fs::write(&stored.store, &bytes).unwrap();
    (stored, bytes)
}

/// Brings one up to date. Its rows were written by tests of stores, under hashes of other bytes: that is found, and
/// nothing else.
fn brought_up_to_date(stored: &Stored) -> (Value, String) {
    let ran = stored.any(&["doctor", "--upgrade", "--json"]);
    let told: Value = serde_json::from_str(&ran.stdout).unwrap();
    let findings: Vec<&str> =
        told["findings"].as_array().unwrap().iter().map(|it| it["what"].as_str().unwrap()).collect();
    assert!(findings.iter().all(|what| what.ends_with("is not the one that was appended")), "{findings:?}");
    assert_eq!((ran.code, findings.len() as u64), (Some(1), told["entries"].as_u64().unwrap()), "{}", ran.stderr);
    (told, ran.stderr)
}

fn schema_of(file: &str) -> u32 {
    let bytes = fs::read(file).unwrap();
    u32::from_be_bytes(bytes[SCHEMA_AT..SCHEMA_AT + 4].try_into().unwrap())
}

#[test]
fn an_older_store_is_copied_before_it_is_brought_up_to_date() {
    let newest = schema_of(&Stored::with_chat().store);
    for schema in 1..newest as u8 {
        let (stored, _) = older(schema);
        let (told, said) = brought_up_to_date(&stored);
        let copy = format!("{}.schema-{schema}", stored.store);
        mentions(&said, &[&format!("schema {schema} is brought to {newest}"), &copy]);
        let upgraded = &told["upgraded"];
        assert_eq!((&upgraded["from"], &upgraded["file"]), (&schema.into(), &copy.as_str().into()));
        assert_eq!(upgraded["bytes"].as_u64(), Some(fs::metadata(&copy).unwrap().len()));
        assert_eq!((schema_of(&copy), &told["schema"]), (u32::from(schema), &newest.into()));
        assert!(told["entries"].as_u64().unwrap() > 0, "{told}");
        // What the copy holds is what the store holds.
        let holds =
            |told: &Value| ["conversations", "entries", "decisions", "calls", "findings"].map(|it| told[it].clone());
        let restored = stored.folder.at("restored.db");
        succeeds(&["restore", &copy, "--store", &restored]);
        let again = Stored { store: restored, ..Stored::new() };
        assert_eq!(holds(&brought_up_to_date(&again).0), holds(&told));
        assert_eq!(schema_of(&copy), u32::from(schema), "it stays as it was");
        assert_eq!(brought_up_to_date(&stored).0["upgraded"], Value::Null);
    }
}

#[test]
fn an_upgrade_that_was_interrupted_begins_again_and_replaces_no_copy() {
    let (stored, _) = older(2);
    let copy = format!("{}.schema-2", stored.store);
    // One that was killed while it copied, and one that was killed after that.
    fs::write(format!("{copy}-2.part"), "half of it").unwrap();
    fs::write(&copy, "an earlier copy").unwrap();
    let told = brought_up_to_date(&stored).0;
    assert_eq!(told["upgraded"]["file"], format!("{copy}-2").as_str());
    assert_eq!(fs::read_to_string(&copy).unwrap(), "an earlier copy");
    assert!(!stored.folder.names().iter().any(|name| name.ends_with(".part")), "{:?}", stored.folder.names());
    assert_eq!(schema_of(&format!("{copy}-2")), 2);
}

#[test]
fn what_can_not_be_copied_is_left_as_it_is() {
    let (stored, bytes) = older(3);
    fs::write(&stored.store, &bytes[..bytes.len() - 2_000]).unwrap();
    let cut = fs::read(&stored.store).unwrap();
    assert_eq!(stored.any(&["doctor", "--upgrade"]).code, Some(1));
    assert_eq!(fs::read(&stored.store).unwrap(), cut, "a damaged store is not touched");
    assert!(stored.folder.names().iter().all(|name| !name.contains("schema-")), "{:?}", stored.folder.names());
    mentions(&fails(3, &["doctor", "--upgrade", "--store", "gone.db"]), &["there is no store"]);
    let told = fails(3, &["doctor", "--upgrade", "--store", "postgres://recto@127.0.0.1:1/recto"]);
    mentions(&told, &["is for stores in a file", "pg_dump", "make a dump first"]);
}

#[test]
fn damage_is_found_and_told() {
    let stored = Stored::with_chat();
    let mut file = fs::read(&stored.store).unwrap();
    let at = file.windows(12).position(|bytes| bytes == b"It is empty.").unwrap();
    file[at..at + 2].copy_from_slice(b"Is");
    fs::write(&stored.store, file).unwrap();
    let ran = stored.any(&["doctor", "--json"]);
    assert_eq!(ran.code, Some(1));
    let report: Value = serde_json::from_str(&ran.stdout).unwrap();
    assert_eq!(report["findings"][0]["conversation"], "chat");
    mentions(
        &ran.stderr,
        &["error[R0112]", "the body of entry #4 is not the one that was appended", "restore a backup"],
    );
}

#[test]
fn a_file_that_is_no_store_is_refused_and_left_alone() {
    let folder = Folder::new();
    let chat = folder.file("chat.json", SMALL);
    for args in [&["list"][..], &["import", &chat], &["doctor"]] {
        let told = fails(1, &[args, &["--store", &chat]].concat());
        mentions(&told, &["error[R0109]: cannot open the store", "not a store of Recto", "name another file"]);
    }
    assert_eq!(fs::read_to_string(&chat).unwrap(), SMALL);
    assert_eq!(folder.names(), ["chat.json"]);
}

#[test]
fn a_store_of_a_newer_version_is_refused_and_left_alone() {
    let stored = Stored::with_chat();
    let mut file = fs::read(&stored.store).unwrap();
    file[SCHEMA_AT..SCHEMA_AT + 4].copy_from_slice(&9_999_u32.to_be_bytes());
    fs::write(&stored.store, &file).unwrap();
    let chat = stored.folder.at("chat.json");
    for args in [&["list"][..], &["import", &chat], &["erase", "chat", "--yes"]] {
        mentions(&stored.fails(1, args), &["error[R0110]", "schema 9999", "newer"]);
    }
    assert_eq!(fs::read(&stored.store).unwrap(), file);
}

/// Whoever may do everything isn't kept from writing.
#[cfg(target_os = "linux")]
fn is_almighty(folder: &Folder) -> bool {
    use std::os::unix::fs::PermissionsExt;
    let file = folder.file("locked", "");
    fs::set_permissions(&file, fs::Permissions::from_mode(0o400)).unwrap();
    fs::OpenOptions::new().write(true).open(&file).is_ok()
}

#[cfg(target_os = "linux")]
#[test]
fn a_store_that_is_read_only_can_be_read() {
    use std::os::unix::fs::PermissionsExt;
    let stored = Stored::with_chat();
    if is_almighty(&stored.folder) {
        return recto_testkit::shared::skipped("a read-only store: this user may write everywhere");
    }
    let mode = |path: &str, mode: u32| fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    let folder = stored.folder.path.to_str().unwrap().to_string();
    mode(&stored.store, 0o400);
    mode(&folder, 0o500);
    let (listed, refused) = (stored.any(&["list"]), stored.any(&["pin", "chat", "1"]));
    mode(&folder, 0o700);
    assert_eq!(listed.code, Some(0), "{}", listed.stderr);
    mentions(&listed.stdout, &["chat"]);
    assert_eq!(refused.code, Some(1));
    mentions(&refused.stderr, &["error[R0108]", "permissions"]);
}
