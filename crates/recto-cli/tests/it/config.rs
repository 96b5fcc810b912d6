use crate::run::{Folder, Ran, SMALL, isolated, mentions};
use expect_test::{Expect, expect};
use serde_json::Value;
use std::fs;
use std::path::Path;
use std::process::Command;

/// A user's folder, and a folder of work with one inside it. Outside of them no file is meant to be found.
pub(crate) struct Places {
    pub(crate) folder: Folder,
}

impl Places {
    pub(crate) fn new() -> Places {
        let folder = Folder::new();
        for name in ["user/recto", "project/inner"] {
            fs::create_dir_all(folder.path.join(name)).unwrap();
        }
        folder.file("project/inner/chat.json", SMALL);
        Places { folder }
    }

    fn command(&self, args: &[&str]) -> Command {
        let mut command = isolated(Command::new(env!("CARGO_BIN_EXE_recto")));
        command.env_remove("RECTO_CONFIG").env("XDG_CONFIG_HOME", self.folder.path.join("user"));
        command.current_dir(self.folder.path.join("project/inner")).args(args);
        command
    }

    pub(crate) fn run(&self, args: &[&str]) -> Ran {
        Ran::from(self.command(args).output().unwrap())
    }

    /// What `recto config --json` says.
    pub(crate) fn settings(&self, args: &[&str]) -> Value {
        let ran = self.run(&[&["config", "--json"], args].concat());
        assert_eq!((ran.code, &*ran.stderr), (Some(0), ""));
        serde_json::from_str(&ran.stdout).unwrap()
    }

    fn receipt(&self, args: &[&str]) -> Value {
        let ran = self.run(&[&["explain", "chat.json", "--json"], args].concat());
        assert_eq!(ran.code, Some(0), "{}", ran.stderr);
        serde_json::from_str(&ran.stdout).unwrap()
    }
}

/// What a file that can't be used is told to be.
#[track_caller]
pub(crate) fn check(content: impl AsRef<[u8]>, told: Expect) {
    let places = Places::new();
    places.folder.file("project/inner/own.toml", content);
    let run = |command: &[&str]| {
        let ran = places.run(&[command, &["--config", "own.toml"]].concat());
        assert_eq!((ran.code, &*ran.stdout), (Some(3), ""), "{}", ran.stderr);
        ran.stderr
    };
    let by_config = run(&["config"]);
    told.assert_eq(&by_config);
    for command in ["compile", "explain", "replay"] {
        assert_eq!(run(&[command, "chat.json"]), by_config);
    }
}

#[test]
fn the_nearer_file_wins_key_by_key_and_options_win_over_all() {
    let places = Places::new();
    places.folder.file("user/recto/recto.toml", "[defaults]\nfor = 'gpt-4.1'\nwindow = '64k'\nreserve = 100\n");
    places.folder.file("project/recto.toml", "\n[defaults]\nwindow = 48_000\npolicy = 'none'\n[output]\ncolor='never'");
    places.folder.file("project/inner/recto.toml", "defaults.window = \"32k\"");
    let found = places.settings(&["--policy", "first_chars"]);
    let told = |key: &str| {
        let it = &found["defaults"][key];
        let file = it["file"].as_str().unwrap_or_default();
        let file = file.replace(places.folder.path.to_str().unwrap(), "");
        format!("{} {} {file}:{}", it["value"], it["origin"], it["line"])
    };
    assert_eq!(told("for"), "\"gpt-4.1\" \"file\" /user/recto/recto.toml:2");
    assert_eq!(told("window"), "32000 \"file\" /project/inner/recto.toml:1");
    assert_eq!(told("reserve"), "100 \"file\" /user/recto/recto.toml:4");
    assert_eq!(told("policy"), "\"first_chars\" \"option\" :null");
    assert_eq!((&found["output"]["color"]["value"], &found["output"]["color"]["line"]), (&"never".into(), &6.into()));
    assert_eq!(found["chosen_by"], "search");
    let files = found["files"].as_array().unwrap();
    let found: Vec<_> = files.iter().filter(|it| it["found"] == true).map(|it| it["path"].as_str().unwrap()).collect();
    assert_eq!(found.len(), 3);
    assert!(found[0].ends_with("inner/recto.toml") && found[2].ends_with("user/recto/recto.toml"), "{found:?}");
    assert!(files.len() > 4, "folders without a file are told, too");

    let receipt = places.receipt(&["--for", "gpt-4o"]);
    assert_eq!((&receipt["target"], &receipt["policy"]), (&"gpt-4o".into(), &"none".into()));
    assert_eq!((&receipt["ledger"]["window"], &receipt["ledger"]["reserve_out"]), (&32_000.into(), &100.into()));
    assert_eq!(places.receipt(&["--window", "9k"])["ledger"]["window"], 9_000);
}

#[test]
fn a_file_that_is_named_is_read_alone() {
    let places = Places::new();
    places.folder.file("project/recto.toml", "[defaults]\nwindow = 48_000\nreserve = 7");
    let own = places.folder.file("own.toml", "[defaults]\nfor = 'gpt-4.1'");
    let by_option = places.receipt(&["--config", &own]);
    assert_eq!((&by_option["target"], &by_option["ledger"]["window"]), (&"gpt-4.1".into(), &1_047_576.into()));
    let with = |file: &str, args: &[&str]| Ran::from(places.command(args).env("RECTO_CONFIG", file).output().unwrap());
    let by_variable = with(&own, &["config"]);
    mentions(&by_variable.stdout, &["gpt-4.1", "own.toml:2", "the file that RECTO_CONFIG names", "the model's"]);
    let both = with("gone.toml", &["config", "--config", &own]);
    mentions(&both.stdout, &["gpt-4.1", "the file that --config names"]);
    let empty = with("", &["config"]);
    mentions(&empty.stdout, &["48 000", "files, the nearest first"]);
    let built_in = with("/dev/null", &["config"]).stdout.split_whitespace().collect::<Vec<_>>().join(" ");
    mentions(&built_in, &["gpt-4o default"]);

    let gone = with("gone.toml", &["explain", "chat.json"]);
    assert_eq!((gone.code, &*gone.stdout), (Some(1), ""));
    mentions(&gone.stderr, &["error[R0101]: cannot read gone.toml", "RECTO_CONFIG names this file"]);
    let gone = places.run(&["--config", "gone.toml", "explain", "chat.json"]);
    assert_eq!(gone.code, Some(1));
    mentions(&gone.stderr, &["error[R0101]: cannot read gone.toml"]);
    mentions(&places.run(&["config", "--config", "."]).stderr, &["error[R0301]", "name a TOML file in it"]);
}

#[test]
fn the_users_folder_is_in_the_home_unless_xdg_says_otherwise() {
    let places = Places::new();
    fs::create_dir_all(places.folder.path.join("own/.config/recto")).unwrap();
    places.folder.file("own/.config/recto/recto.toml", "[defaults]\nwindow = '11k'");
    for xdg in [None, Some(""), Some("relative")] {
        let mut command = places.command(&["config"]);
        command.env_remove("XDG_CONFIG_HOME").env("HOME", places.folder.path.join("own"));
        xdg.map(|value| command.env("XDG_CONFIG_HOME", value));
        mentions(&Ran::from(command.output().unwrap()).stdout, &["11 000"]);
    }
}

#[test]
fn a_file_that_two_ways_lead_to_is_looked_at_once() {
    let places = Places::new();
    let user = places.folder.file("user/recto/recto.toml", "[defaults]\nwindow = '11k'");
    let mut command = places.command(&["config"]);
    command.current_dir(Path::new(&user).parent().unwrap());
    let told = Ran::from(command.output().unwrap()).stdout;
    assert_eq!(told.matches("user/recto/recto.toml\n").count(), 1, "{told}");
}

#[test]
fn a_policy_is_relative_to_the_file_that_names_it() {
    let places = Places::new();
    places.folder.file("project/mine.json", r#"{"schema_version":1,"name":"mine","reduce":[]}"#);
    places.folder.file("project/recto.toml", "[defaults]\npolicy = 'mine.json'");
    assert_eq!(places.receipt(&[])["policy"], "mine");
    let shown = places.settings(&[])["defaults"]["policy"]["value"].clone();
    assert!(shown.as_str().unwrap().ends_with("/project/mine.json"), "{shown}");
    let ran = places.run(&["explain", "chat.json", "--policy", "mine.json"]);
    assert_eq!(ran.code, Some(1), "an option is relative to the current folder");
    places.folder.file("project/recto.toml", "[defaults]\npolicy = 'mine'");
    places.folder.file("project/mine", r#"{"schema_version":1,"name":"nameless","reduce":[]}"#);
    assert_eq!(places.receipt(&[])["policy"], "nameless");
    assert_eq!(places.receipt(&["--policy", "none"])["policy"], "none");
}

#[test]
fn names_that_nobody_knows_are_told_with_their_place() {
    let places = Places::new();
    places.folder.file("own.toml", "[defaults]\nfor = 'gpt4o'\npolicy = 'safe'");
    let run = |args: &[&str]| places.run(&[&["explain", "chat.json", "--config", "../../own.toml"], args].concat());
    let ran = run(&[]);
    assert_eq!(ran.code, Some(0));
    let told =
        "warning: nothing is known about model \"gpt4o\"; assumed: a window of 32 000 tokens; the wire openai_chat; ";
    mentions(&ran.stderr, &[told, "(set in ../../own.toml, line 2, column 7)\n", "nearest known models: gpt-4o, "]);
    places.folder.file("own.toml", "[defaults]\nfor = 'gpt4o'\npolicy = 'sfae'");
    assert!(run(&[]).stderr.starts_with("error[R0321]"), "what fails is told alone");
    mentions(&run(&["--for", "gpt-4o"]).stderr, &["error[R0321]", "line 3, column 10", "did you mean \"safe\"?"]);
    assert_eq!(run(&["--for", "gpt-4o", "--policy", "safe"]).code, Some(0));
    places.folder.file("own.toml", "[defaults]\npolicy = 'gone.json'");
    mentions(&run(&[]).stderr, &["cannot read ../../gone.json", "set in ../../own.toml, line 2"]);
}

#[test]
fn malformed_toml_is_told_with_its_place() {
    check(
        "[defaults]\nfor = \"gpt-4o\nwindow = 1",
        expect![[r#"
        error[R0330]: cannot use own.toml
        cause: line 2, column 14: invalid basic string, expected `"`
        hint: the file is not valid TOML here
    "#]],
    );
    check(
        "[defaults\nfor = 1",
        expect![[r#"
        error[R0330]: cannot use own.toml
        cause: line 1, column 10: unclosed table, expected `]`
        hint: the file is not valid TOML here
    "#]],
    );
    check(
        "[defaults]\nfor = 'é' x",
        expect![[r#"
        error[R0330]: cannot use own.toml
        cause: line 2, column 11: unexpected key or value, expected newline, `#`
        hint: the file is not valid TOML here
    "#]],
    );
    check(
        "[defaults]\nfor = 'a'\nfor = 'b'",
        expect![[r#"
        error[R0330]: cannot use own.toml
        cause: line 3, column 1: duplicate key
        hint: the file is not valid TOML here
    "#]],
    );
    check(
        b"[defaults]\nfor = '\xff'",
        expect![[r#"
        error[R0304]: cannot read own.toml
        cause: line 2, column 8: byte 0xFF is not valid UTF-8
        hint: convert it to UTF-8
    "#]],
    );
}

#[test]
fn unknown_keys_are_told_with_what_was_probably_meant() {
    check(
        "[defaults]\nwindwo = 1",
        expect![[r#"
        error[R0331]: cannot use own.toml
        cause: line 2, column 1: unknown key "windwo" in [defaults]
        hint: did you mean "window"?
        hint: known keys of [defaults]: for, wire, window, reserve, policy
    "#]],
    );
    check(
        "[default]\nwindow = 1",
        expect![[r#"
            error[R0331]: cannot use own.toml
            cause: line 1, column 2: unknown key "default"
            hint: did you mean "defaults"?
            hint: known tables: [defaults], [store], [server], [output], [log], [retention], [tracing], [summarizer], [upstream], [programs], [models], [profiles]
        "#]],
    );
    check(
        "window = 1",
        expect![[r#"
        error[R0331]: cannot use own.toml
        cause: line 1, column 1: unknown key "window"
        hint: "window" belongs under [defaults]
    "#]],
    );
    check(
        "[defaults]\ncolor = 'auto'",
        expect![[r#"
        error[R0331]: cannot use own.toml
        cause: line 2, column 1: unknown key "color" in [defaults]
        hint: "color" belongs under [output]
    "#]],
    );
    check(
        "[defaults]\nfor = 'gpt-4o'\n\n  xyzzy.a.b = 1 # é",
        expect![[r#"
        error[R0331]: cannot use own.toml
        cause: line 4, column 3: unknown key "xyzzy" in [defaults]
        hint: known keys of [defaults]: for, wire, window, reserve, policy
    "#]],
    );
    check(
        "zebra = 1\napple = 2",
        expect![[r#"
            error[R0331]: cannot use own.toml
            cause: line 1, column 1: unknown key "zebra"
            hint: known tables: [defaults], [store], [server], [output], [log], [retention], [tracing], [summarizer], [upstream], [programs], [models], [profiles]
        "#]],
    );
}

#[test]
fn wrong_values_are_told_with_what_is_expected() {
    check(
        "[defaults]\nfor = 4",
        expect![[r#"
        error[R0332]: cannot use own.toml
        cause: line 2, column 7: for is an integer
        hint: expected a string
    "#]],
    );
    check(
        "[defaults]\npolicy = ''",
        expect![[r#"
        error[R0332]: cannot use own.toml
        cause: line 2, column 10: policy is empty
        hint: expected a string
    "#]],
    );
    check(
        "[defaults]\nwindow = true",
        expect![[r#"
        error[R0332]: cannot use own.toml
        cause: line 2, column 10: window is a boolean
        hint: expected a number of tokens such as 32000 or "32k"
    "#]],
    );
    check(
        "[defaults]\nwindow = -1",
        expect![[r#"
        error[R0332]: cannot use own.toml
        cause: line 2, column 10: window can't be -1
        hint: expected a number of tokens such as 32000 or "32k"
    "#]],
    );
    check(
        "[defaults]\nreserve = '8 kb'",
        expect![[r#"
        error[R0332]: cannot use own.toml
        cause: line 2, column 11: reserve can't be '8 kb'
        hint: expected a number of tokens such as 32000 or "32k"
    "#]],
    );
    check(
        "[defaults]\nreserve = 1.5",
        expect![[r#"
        error[R0332]: cannot use own.toml
        cause: line 2, column 11: reserve is a float
        hint: expected a number of tokens such as 32000 or "32k"
    "#]],
    );
}

#[test]
fn wires_are_known_by_name() {
    check(
        "[defaults]\nwire = 'antropic'",
        expect![[r#"
        error[R0332]: cannot use own.toml
        cause: line 2, column 8: wire can't be "antropic"
        hint: did you mean "anthropic"?
        hint: expected one of: openai_chat, openai_responses, anthropic, gemini, ollama
    "#]],
    );
    check(
        "[defaults]\nwire = 1",
        expect![[r#"
        error[R0332]: cannot use own.toml
        cause: line 2, column 8: wire is an integer
        hint: expected one of: openai_chat, openai_responses, anthropic, gemini, ollama
    "#]],
    );
}

#[test]
fn mistakes_in_models_are_told_with_their_place() {
    check(
        "[models.mine]\nlike = 'gpt-4o'\nwindwo = 1",
        expect![[r#"
        error[R0331]: cannot use own.toml
        cause: line 3, column 1: unknown field `windwo`, expected one of `like`, `provider`, `wire`, `window`, `input_max`, `output_max`, `tokenizer`, `is_counted_exactly`, `factor`, `worst_factor`, `message_overhead`, `request_overhead`, `tools_overhead`, `prices`, `long_prices`, `cache`, `memory`, `reasoning`, `reads`, `edits_past`, `late_system`, `merges`, `result_images`, `tells_errors`, `chat_tools`
        hint: did you mean "window"?
    "#]],
    );
    check(
        "[models.mine]\nwindow = '8k'",
        expect![[r#"
        error[R0332]: cannot use own.toml
        cause: line 2, column 10: invalid type: string "8k", expected u64
    "#]],
    );
    check(
        "models = 7",
        expect![[r#"
        error[R0332]: cannot use own.toml
        cause: line 1, column 10: models is an integer
        hint: expected a table: [models]
    "#]],
    );
    check(
        "[defaults]\nfor = 'a'\n[models.b]\n[models.a]\nlike = 'gpt4o'",
        expect![[r#"
            error[R0332]: cannot use own.toml
            cause: line 4, column 9: model "a" is like "gpt4o", which leads nowhere
            hint: name a profile or a model that there is, and none that is like itself
        "#]],
    );
    check(
        "[profiles.p]\nlike = 'nobody'\n[models.a]\nlike = 'p'",
        expect![[r#"
            error[R0332]: cannot use own.toml
            cause: line 3, column 9: model "a" is like "p", which leads nowhere
            hint: name a profile or a model that there is, and none that is like itself
        "#]],
    );
    check(
        "models.mine.prices = { input = -1, cached = 0, output = 0 }",
        expect![[r#"
            error[R0332]: cannot use own.toml
            cause: line 1, column 8: model "mine" can't have a price of -1
        "#]],
    );
    check(
        "[models.eval]\nwindow = 1",
        expect![[r#"
            error[R0332]: cannot use own.toml
            cause: line 1, column 9: model "eval" is what it is, and can't be changed
        "#]],
    );
    check(
        "[models.mine]\nprices = { input = 1 }",
        expect![[r#"
        error[R0332]: cannot use own.toml
        cause: line 2, column 10: missing field `cached`
    "#]],
    );
}

#[test]
fn models_of_several_files_are_merged_and_the_nearer_wins() {
    let places = Places::new();
    let far = "[profiles.house]\nlike = 'openai-chat'\nwindow = 9_000\n[models.mine]\nlike = 'house'\noutput_max = 70\n\
               [models.other]\nlike = 'gpt-4o'";
    places.folder.file("user/recto/recto.toml", far);
    places.folder.file("project/recto.toml", "[defaults]\nfor = 'mine'\n[models.mine]\nwindow = 8_000");
    let receipt = places.receipt(&[]);
    assert_eq!((&receipt["target"], &receipt["ledger"]["window"]), (&"mine".into(), &8_000.into()));
    assert_eq!(receipt["ledger"]["reserve_out"], 70, "the farther file's facts stay");
    assert_eq!(places.receipt(&["--for", "other"])["ledger"]["window"], 128_000);
    let shown = places.run(&["config"]).stdout;
    mentions(&shown, &["models: 2 of your own\n  mine  ", "/project/recto.toml:3\n  other  ", "recto.toml:7\n"]);
    let own = &places.settings(&[])["models"]["own"];
    assert_eq!((&own[0]["name"], &own[0]["line"], &own[1]["name"]), (&"mine".into(), &3.into(), &"other".into()));
    mentions(&places.run(&["config", "--config", "/dev/null"]).stdout, &["models: none of your own\n"]);
    let listed = places.run(&["models"]).stdout;
    mentions(&listed, &["\nmine ", "with facts of your own:\n  mine (", "/project/recto.toml)\n  other ("]);
    mentions(&places.run(&["models", "mine"]).stdout, &["8 000 tokens", "/project/recto.toml, and what is built in"]);
}

#[test]
fn colours_and_tables_have_values_of_their_own() {
    check(
        "[output]\ncolor = 'alway'",
        expect![[r#"
        error[R0332]: cannot use own.toml
        cause: line 2, column 9: color can't be "alway"
        hint: did you mean "always"?
        hint: expected "auto", "always" or "never"
    "#]],
    );
    check(
        "[[output]]\ncolor = 'auto'",
        expect![[r#"
        error[R0332]: cannot use own.toml
        cause: line 1, column 1: output is an array
        hint: expected a table: [output]
    "#]],
    );
    check(
        "defaults = 7",
        expect![[r#"
        error[R0332]: cannot use own.toml
        cause: line 1, column 12: defaults is an integer
        hint: expected a table: [defaults]
    "#]],
    );
}

#[test]
fn sizes_are_numbers_or_strings() {
    let places = Places::new();
    for (written, size) in [("32_000", 32_000), ("0x10", 16), ("'1m'", 1_000_000), ("\"8K\"", 8_000), ("0", 0)] {
        places.folder.file("project/recto.toml", format!("\u{feff}[defaults]\r\nwindow = {written}\r\n"));
        assert_eq!(places.settings(&[])["defaults"]["window"]["value"], size, "{written}");
    }
    assert_eq!(places.receipt(&[])["ledger"]["window"], Value::Null, "0 is unbounded");
}

#[test]
fn large_and_deep_files_are_refused() {
    let places = Places::new();
    places.folder.file("project/recto.toml", format!("#{}", "x".repeat(1 << 20)));
    let ran = places.run(&["config"]);
    assert_eq!(ran.code, Some(3));
    mentions(&ran.stderr, &["error[R0303]", "at most 1 MiB are read"]);
    places.folder.file("project/recto.toml", format!("a = {}{}", "[".repeat(9_999), "]".repeat(9_999)));
    mentions(&places.run(&["config"]).stderr, &["error[R0330]", "line 1"]);
}

#[test]
fn a_broken_file_stops_no_command_that_helps_to_mend_it() {
    let places = Places::new();
    places.folder.file("project/recto.toml", "broken");
    assert_eq!(places.run(&["config"]).code, Some(3));
    for args in [&["help", "R0330"][..], &["help", "config"], &["demo"], &["man"], &["completions", "bash"]] {
        assert_eq!(places.run(args).code, Some(0), "{args:?}");
    }
}

#[test]
fn names_of_folders_do_not_steer_the_terminal() {
    let places = Places::new();
    let odd = places.folder.path.join("project/\u{1b}[31m");
    fs::create_dir(&odd).unwrap();
    fs::write(odd.join("recto.toml"), "[defaults]\nwindow = 1").unwrap();
    let ran = Ran::from(places.command(&["config"]).current_dir(&odd).output().unwrap());
    mentions(&ran.stdout, &["\\u{1b}[31m/recto.toml:2"]);
    assert!(!ran.stdout.contains('\u{1b}'));
}
