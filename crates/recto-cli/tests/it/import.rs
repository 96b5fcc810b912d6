//! Conversations that are kept: imported once, again, grown and changed.

use crate::run::{Folder, NOWHERE, Ran, SMALL, command, fails, mentions, recto, recto_reading, succeeds};
use serde_json::Value;
use std::fs;

/// A store in a folder of its own.
pub(crate) struct Stored {
    pub(crate) folder: Folder,
    pub(crate) store: String,
}

impl Stored {
    pub(crate) fn new() -> Stored {
        let folder = Folder::new();
        let store = folder.at("kept.db");
        Stored { folder, store }
    }

    /// A store that holds one small conversation, `chat`.
    pub(crate) fn with_chat() -> Stored {
        let stored = Stored::new();
        let file = stored.folder.file("chat.json", SMALL);
        stored.run(&["import", &file]);
        stored
    }

    fn args<'a>(&'a self, args: &[&'a str]) -> Vec<&'a str> {
        [args, &["--store", &self.store]].concat()
    }

    /// Runs what must succeed.
    #[track_caller]
    pub(crate) fn run(&self, args: &[&str]) -> Ran {
        let ran = succeeds(&self.args(args));
        mentions(&ran.stderr, &[&format!("store: {}\n", self.store)]);
        ran
    }

    /// Runs what must succeed, and returns what it prints as JSON.
    #[track_caller]
    pub(crate) fn json(&self, args: &[&str]) -> Value {
        serde_json::from_str(&self.run(&[args, &["--json"]].concat()).stdout).unwrap()
    }

    /// Runs what must fail with this exit code and print nothing; returns what stderr says.
    #[track_caller]
    pub(crate) fn fails(&self, code: i32, args: &[&str]) -> String {
        fails(code, &self.args(args))
    }

    pub(crate) fn any(&self, args: &[&str]) -> Ran {
        recto(&self.args(args))
    }
}

fn message(role: &str, text: &str) -> String {
    format!("{{\"role\":\"{role}\",\"content\":\"{text}\"}}")
}

fn chat(messages: &[String]) -> String {
    format!("{{\"id\":\"monday\",\"messages\":[{}]}}", messages.join(","))
}

fn counts(output: &Value) -> Vec<(&str, u64, u64)> {
    let rows = output["imported"].as_array().unwrap().iter();
    let number = |row: &Value, key: &str| row[key].as_u64().unwrap();
    rows.map(|row| (row["conversation"].as_str().unwrap(), number(row, "known"), number(row, "added"))).collect()
}

#[test]
fn a_folder_is_imported_once_however_often_it_is_asked_for() {
    let stored = Stored::new();
    fs::create_dir(stored.folder.at("chats")).unwrap();
    let said = [message("user", "Hi"), message("assistant", "Hello")];
    stored.folder.file("chats/a.json", SMALL);
    stored.folder.file("chats/b.jsonl", format!("{}\n{}\n", chat(&said), chat(&said).replace("monday", "tuesday")));
    stored.folder.file("chats/notes.txt", "no transcript");
    let folder = stored.folder.at("chats");
    let first = stored.json(&["import", &folder]);
    assert_eq!(counts(&first), [("a", 0, 6), ("monday", 0, 2), ("tuesday", 0, 2)]);
    assert_eq!(first["failures"].as_array().map(Vec::len), Some(0));
    let again = stored.json(&["import", &folder]);
    assert_eq!(counts(&again), [("a", 6, 0), ("monday", 2, 0), ("tuesday", 2, 0)]);
    let told = stored.run(&["import", &folder]).stdout;
    mentions(&told, &["conversation", "known", "added", "monday", "3 conversations, entries known 10, added 0"]);
}

#[test]
fn a_grown_transcript_adds_what_is_new_and_a_changed_one_is_refused() {
    let stored = Stored::new();
    let said = [message("user", "Hi"), message("assistant", "Hello"), message("user", "Bye")];
    let import = |messages: &[String]| stored.folder.file("chat.json", chat(messages));
    let file = import(&said[..2]);
    assert_eq!(counts(&stored.json(&["import", &file])), [("monday", 0, 2)]);
    import(&said);
    assert_eq!(counts(&stored.json(&["import", &file])), [("monday", 2, 1)]);
    // What was there before it grew is there already.
    import(&said[..1]);
    assert_eq!(counts(&stored.json(&["import", &file])), [("monday", 1, 0)]);

    let mut changed = said.clone();
    changed[0] = message("user", "Hey");
    import(&changed);
    let other = stored.folder.file("other.json", SMALL);
    let before = stored.run(&["export", "monday"]).stdout;
    let ran = stored.any(&["import", &file, &other, "--json"]);
    assert_eq!(ran.code, Some(3));
    let output: Value = serde_json::from_str(&ran.stdout).unwrap();
    assert_eq!(counts(&output), [("other", 0, 6)], "the others go on");
    let failure = &output["failures"][0];
    assert_eq!((&failure["code"], &failure["conversation"]), (&"R0352".into(), &"monday".into()));
    mentions(&failure["hints"].to_string(), &["--as NAME"]);
    mentions(&ran.stderr, &["entry #0 of conversation \"monday\"", "error[R0357]: not imported: 1 of 2"]);
    assert_eq!(stored.run(&["export", "monday"]).stdout, before);

    let imported = stored.json(&["import", &file, "--as", "monday-again"]);
    assert_eq!(counts(&imported), [("monday-again", 0, 3)]);
}

#[test]
fn one_name_is_for_one_conversation() {
    let stored = Stored::new();
    let two = stored.folder.file("two.jsonl", format!("{}\n{}\n", chat(&[]), chat(&[])));
    let one = stored.folder.file("one.json", SMALL);
    mentions(&stored.fails(3, &["import", &one, &two, "--as", "x"]), &["error[R0312]", "2 files"]);
    let ran = stored.any(&["import", &two, "--as", "x"]);
    assert_eq!(ran.code, Some(3));
    mentions(&ran.stderr, &["2 conversations", "error[R0357]"]);
}

#[test]
fn a_broken_file_does_not_hold_up_the_others() {
    let stored = Stored::new();
    let good = stored.folder.file("good.json", SMALL);
    let bad = stored.folder.file("bad.json", "[{\"role\":\"usr\",\"content\":\"Hi\"}]");
    let gone = stored.folder.at("gone.json");
    let ran = stored.any(&["import", &bad, &gone, &good]);
    assert_eq!(ran.code, Some(3));
    mentions(
        &ran.stderr,
        &["bad.json: not imported [R0310]", "gone.json: not imported [R0101]", "not imported: 2 of 3"],
    );
    mentions(&ran.stdout, &["good", "1 conversations"]);
}

#[test]
fn stdin_is_imported_and_so_are_exports_of_both_kinds() {
    let stored = Stored::new();
    let args = ["import", "-", "--json", "--store", &stored.store];
    let ran = recto_reading(SMALL, &args);
    assert_eq!(counts(&serde_json::from_str(&ran.stdout).unwrap()), [("stdin", 0, 6)], "{}", ran.stderr);
    let lines = stored.run(&["export", "stdin"]).stdout;
    let ran = recto_reading(&lines, &args);
    assert_eq!(counts(&serde_json::from_str(&ran.stdout).unwrap()), [("stdin", 6, 0)], "{}", ran.stderr);
    let chat = stored.folder.file("chat.json", SMALL);
    let context = stored.folder.at("context.json");
    succeeds(&["convert", &chat, "--to", "recto", "-o", &context]);
    assert_eq!(counts(&stored.json(&["import", &context])), [("context", 0, 6)]);
}

#[test]
fn tokens_are_counted_as_asked() {
    let stored = Stored::with_chat();
    let chat = stored.folder.at("chat.json");
    stored.run(&["import", &chat, "--as", "by-bytes", "--tokenizer", "bytes4"]);
    let list = stored.json(&["list"]);
    let tokenizers: Vec<&str> =
        list["conversations"].as_array().unwrap().iter().map(|it| it["tokenizer"].as_str().unwrap()).collect();
    assert_eq!(tokenizers, ["bytes4", "o200k"]);
    let ran = stored.any(&["import", &chat, "--tokenizer", "words"]);
    assert_eq!(ran.code, Some(2));
    mentions(&ran.stderr, &["error[R0202]", "o200k"]);
}

#[test]
fn the_store_is_found_by_option_environment_file_and_default_in_this_order() {
    let folder = Folder::new();
    let chat = folder.file("chat.json", SMALL);
    let config = folder.file("recto.toml", "[store]\npath = 'by-file.db'\n");
    let run = |config: &str, variable: &str, args: &[&str]| {
        let mut command = command(args);
        command.env("RECTO_CONFIG", config).env("RECTO_STORE", variable);
        command.env("XDG_DATA_HOME", folder.at("data")).current_dir(&folder.path);
        let ran = Ran::from(command.output().unwrap());
        assert_eq!(ran.code, Some(0), "{}", ran.stderr);
        ran
    };
    let none = "/dev/null";
    for (config, variable, place, origin) in [
        (none, "", "data/recto/recto.db", "default"),
        (&*config, "", "by-file.db", "file"),
        (&*config, "by-variable.db", "by-variable.db", "environment"),
    ] {
        let ran = run(config, variable, &["import", &chat]);
        assert!(folder.path.join(place).is_file(), "{place}");
        mentions(&ran.stderr, &["store: ", place]);
        let told: Value = serde_json::from_str(&run(config, variable, &["config", "--json"]).stdout).unwrap();
        let path = &told["store"]["path"];
        assert!(path["value"].as_str().unwrap().ends_with(place), "{path}");
        assert_eq!(path["origin"], origin);
        mentions(&run(config, variable, &["config"]).stdout, &["store.path", place]);
    }
    let told = run(&config, "by-variable.db", &["config", "--json", "--store", "mine.db"]).stdout;
    let told: Value = serde_json::from_str(&told).unwrap();
    assert_eq!(
        (&told["store"]["path"]["value"], &told["store"]["path"]["option"]),
        (&"mine.db".into(), &"--store".into())
    );
}

#[test]
fn without_a_store_nothing_is_made_but_by_import() {
    let folder = Folder::new();
    let store = folder.at("none.db");
    for args in
        [&["list"][..], &["show", "x"], &["doctor"], &["export", "--all"], &["compile", "x"], &["backup", "b.db"]]
    {
        mentions(&fails(3, &[args, &["--store", &store]].concat()), &["error[R0356]", "recto import FILE"]);
    }
    assert_eq!(folder.names(), [""; 0]);
    let mut homeless = command(&["list"]);
    homeless.env_remove("HOME").env_remove("XDG_DATA_HOME");
    let ran = Ran::from(homeless.output().unwrap());
    assert_eq!(ran.code, Some(3));
    mentions(&ran.stderr, &["error[R0356]: nothing says where the store is", "--store"]);
    let chat = folder.file("chat.json", SMALL);
    let nowhere = fails(1, &["import", &chat, "--store", &format!("{NOWHERE}/kept.db")]);
    mentions(&nowhere, &["error[R01", "cannot open the store"]);
}

#[cfg(unix)]
#[test]
fn the_store_is_for_its_owners_eyes_alone() {
    use std::os::unix::fs::PermissionsExt;
    let stored = Stored::with_chat();
    let mode = fs::metadata(&stored.store).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
}

/// What other programs leave behind, each as small as it can be.
fn of_others(folder: &Folder) -> [(String, Vec<String>); 4] {
    let run = |task: u32| {
        format!(
            r#"{{"task_id":{task},"reward":1,"trial":0,"info":{{}},"traj":[{},{}]}}"#,
            message("user", "Hi"),
            message("assistant", "Hello")
        )
    };
    let history = [message("system", "Mend."), message("user", "This."), message("assistant", "Done.")].join(",");
    let session = r#"{"type":"session","version":3,"id":"pi-1","timestamp":"2026-11-15T08:30:00Z","cwd":"/x"}
{"type":"message","id":"a","parentId":null,"timestamp":"","message":{"role":"user","content":"Hi"}}
{"type":"message","id":"b","parentId":"a","timestamp":"","message":{"role":"assistant","content":[{"type":"text","text":"Hello"}]}}
"#;
    let log = include_str!("../../../../fixtures/inspect-log.json");
    [
        (folder.file("mend.traj", format!(r#"{{"trajectory":[],"history":[{history}],"info":{{}}}}"#)), vec!["mend"]),
        (
            folder.file("runs.json", format!("[{},{},{}]", run(3), run(7), run(7))),
            vec!["runs#task3-trial0", "runs#task7-trial0", "runs#3"],
        ),
        (folder.file("session.jsonl", session), vec!["pi-1"]),
        (folder.file("log.json", log), vec!["log#2_epoch_1", "log#look_epoch_1"]),
    ]
    .map(|(file, names)| (file, names.into_iter().map(String::from).collect()))
}

#[test]
fn what_other_programs_leave_behind_is_known_by_what_it_holds() {
    let stored = Stored::new();
    let files = of_others(&stored.folder);
    for (file, names) in &files {
        let imported = stored.json(&["import", file]);
        assert_eq!(counts(&imported).iter().map(|(name, ..)| *name).collect::<Vec<_>>(), *names, "{file}");
        // The order of the file is that of the list, and each can be named to the other commands.
        for name in names {
            mentions(&succeeds(&["explain", file, "--conversation", name]).stdout, &["fate", "#0"]);
            succeeds(&["convert", file, "--conversation", name, "--to", "anthropic"]);
        }
        mentions(&succeeds(&["replay", file]).stdout, &[&names[0]]);
        let again = stored.json(&["import", file]);
        assert!(counts(&again).iter().all(|(_, known, added)| *known > 0 && *added == 0), "{file}: {again}");
    }
    let folder = stored.folder.path.to_str().unwrap();
    mentions(&succeeds(&["replay", folder]).stdout, &["mend", "runs#task3-trial0", "pi-1", "log#look_epoch_1"]);
}

#[test]
fn what_other_programs_left_damaged_is_refused_with_its_place() {
    let stored = Stored::new();
    for (file, _) in of_others(&stored.folder) {
        let whole = fs::read_to_string(&file).unwrap();
        let (head, rest) = whole.split_once(r#""role":"#).or(whole.split_once(r#""role": "#)).unwrap();
        let line = head.lines().count().max(1);
        fs::write(&file, format!("{head}\"role\":]{rest}")).unwrap();
        let told = stored.fails(3, &["import", &file]);
        mentions(&told, &["error[R0357]", &format!("line {line}, column ")]);
        let is_lines = file.ends_with("jsonl");
        fs::write(&file, &whole[..whole.len() / 4 * 3]).unwrap();
        let ran = stored.any(&["import", &file]);
        match is_lines {
            true => mentions(&ran.stderr, &["the last line is cut off, and left out"]),
            false => mentions(&ran.stderr, &["the file ends in the middle of a record"]),
        }
    }
    let archive = stored.folder.file("log.eval", b"PK\x03\x04\x14\x00\xff\xfe");
    mentions(&stored.fails(3, &["import", &archive]), &["[R0304]", "`inspect log dump FILE` writes one as JSON"]);
}
