use crate::run::{FIXTURE, Folder, SMALL, command, fails, mentions, recto_reading, succeeds};
use expect_test::expect;
use serde_json::Value;

const MINE: &str = "schema_version = 1\nname = 'mine'\n[[reduce]]\ndrop_reasoning = {}\n";

#[test]
fn the_list_names_every_built_in_policy() {
    let listed = succeeds(&["policy", "list"]).stdout;
    let json: Value = serde_json::from_str(&succeeds(&["policy", "list", "--json"]).stdout).unwrap();
    assert_eq!(json["default"], "default");
    let policies = json["policies"].as_array().unwrap();
    assert_eq!(policies.len(), recto::Policy::presets().len());
    for policy in policies {
        let (name, about) = (policy["name"].as_str().unwrap(), policy["about"].as_str().unwrap());
        mentions(&listed, &[name, about]);
        mentions(&succeeds(&["policy", "show", name]).stdout, &[&format!("name = \"{name}\"")]);
    }
}

#[test]
fn what_is_shown_can_be_read_again() {
    let folder = Folder::new();
    for preset in recto::Policy::presets() {
        let toml = folder.file("it.toml", succeeds(&["policy", "show", &preset.name]).stdout);
        let json = succeeds(&["policy", "show", &preset.name, "--json"]).stdout;
        assert_eq!(recto::Policy::from_json(&json).unwrap(), preset);
        assert_eq!(succeeds(&["policy", "show", &toml, "--json"]).stdout, json);
        // Other names than *.toml and *.json are known by how they begin.
        for (name, content) in [("it.json", &json), ("bare", &json), ("it.policy", &preset.to_toml())] {
            let file = folder.file(name, content);
            assert_eq!(succeeds(&["policy", "show", &file]).stdout, preset.to_toml());
            assert_eq!(succeeds(&["policy", "check", &file]).stdout, format!("{file}: ok\n"));
        }
    }
    let ran = recto_reading(MINE, &["policy", "check", "-"]);
    assert_eq!((ran.code, &*ran.stdout, &*ran.stderr), (Some(0), "stdin: ok\n", ""));
}

#[test]
fn a_mistake_is_told_with_its_place_and_what_was_meant() {
    let folder = Folder::new();
    let check = |name: &str, content: &str| {
        let file = folder.file(name, content);
        let told = fails(3, &["policy", "check", &file]);
        for command in ["compile", "explain", "replay"] {
            assert_eq!(fails(3, &[command, FIXTURE, "--policy", &file]), told);
        }
        assert_eq!(fails(3, &["policy", "show", &file]), told);
        told.replace(&file, name)
    };
    expect![[r#"
        error[R0322]: cannot use policy slip.toml
        cause: line 4, column 1: policy: unknown field `expier`, expected one of `identical`, `superseded`, `similar`, `irrelevant`, `expire`, `excerpt`, `fold`, `fit_window`, `token_limit`, `recent`, `drop_reasoning`, `cap_output`, `drop_images`, `when`, `sparing`, `keep_last`, `until_fits`
        hint: did you mean `expire`?
    "#]]
    .assert_eq(&check("slip.toml", "schema_version = 1\nname = 'm'\n[[reduce]]\nexpier = {}\n"));
    expect![[r#"
        error[R0322]: cannot use policy zero.json
        cause: line 2, column 37: recent: messages is 0
        hint: say how many messages stay
    "#]]
    .assert_eq(&check(
        "zero.json",
        "{\"schema_version\": 1, \"name\": \"m\",\n \"reduce\": [{\"recent\": {\"messages\": 0}}]}",
    ));
    mentions(&fails(1, &["policy", "check", &folder.at("gone.toml")]), &["cannot read", "gone.toml"]);
    mentions(&fails(3, &["policy", "check", folder.path.to_str().unwrap()]), &["is a folder", "TOML or JSON file"]);
}

#[test]
fn an_unknown_name_suggests_the_nearest() {
    let told = fails(3, &["policy", "show", "first-chars"]);
    mentions(&told, &["error[R0321]: unknown policy \"first-chars\"", "did you mean \"first_chars\"?"]);
    mentions(&fails(2, &["policy"]), &["Usage: recto policy", "no command was given"]);
}

#[test]
fn a_toml_policy_counts_on_the_command_line_and_in_the_configuration() {
    let folder = Folder::new();
    let (mine, chat) = (folder.file("mine.toml", MINE), folder.file("chat.json", SMALL));
    let receipt = |args: &[&str]| -> Value {
        serde_json::from_str(&succeeds(&[&["explain", &chat, "--json"], args].concat()).stdout).unwrap()
    };
    assert_eq!(receipt(&["--policy", &mine])["policy"], "mine");
    let config = folder.file("recto.toml", "[defaults]\npolicy = 'mine.toml'\n");
    assert_eq!(receipt(&["--config", &config])["policy"], "mine");
    for command in ["compile", "replay"] {
        succeeds(&[command, &chat, "--policy", &mine]);
    }
}

#[test]
fn policies_are_told_of_even_if_the_configuration_is_broken() {
    let folder = Folder::new();
    let config = folder.file("recto.toml", "[defaults");
    let output = command(&["policy", "list", "--config", &config]).output().unwrap();
    assert_eq!(output.status.code(), Some(0));
}
