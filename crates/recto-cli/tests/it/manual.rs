use crate::run::{Folder, isolated, mentions, recto, succeeds};
use recto_testkit::shared;
use std::fs;
use std::process::Command;

pub(crate) const COMMANDS: [&str; 33] = [
    "backup",
    "compile",
    "completions",
    "config",
    "convert",
    "decisions",
    "demo",
    "doctor",
    "erase",
    "expand",
    "explain",
    "export",
    "fork",
    "help",
    "import",
    "keys",
    "list",
    "man",
    "mcp",
    "migrate",
    "models",
    "pin",
    "policy",
    "replay",
    "restore",
    "revert",
    "run",
    "search",
    "serve",
    "show",
    "summarize",
    "turns",
    "validate",
];
const NESTED: [&str; 6] = ["keys-add", "keys-list", "keys-revoke", "policy-check", "policy-list", "policy-show"];

#[test]
fn the_help_lists_exactly_these_commands() {
    let help = succeeds(&["--help"]).stdout;
    let (_, list) = help.split_once("Commands:\n").unwrap();
    let (list, _) = list.split_once("\n\n").unwrap();
    let named =
        list.lines().filter(|line| !line.starts_with("   ")).map(|line| line.split_whitespace().next().unwrap());
    let mut named: Vec<&str> = named.collect();
    named.sort_unstable();
    assert_eq!(named, COMMANDS);
}

#[test]
fn help_on_commands_is_as_the_commands_give_it() {
    for command in COMMANDS {
        assert_eq!(succeeds(&["help", command]).stdout, succeeds(&[command, "--help"]).stdout, "{command}");
    }
    assert_eq!(succeeds(&["help"]).stdout, succeeds(&["--help"]).stdout);
    assert_eq!(succeeds(&["help", "r0301"]).stdout, succeeds(&["help", "R0301"]).stdout);
}

#[test]
fn help_on_something_unknown_suggests_the_nearest() {
    for (topic, meant) in [("compil", "compile"), ("R031", "R0301"), ("error", "errors")] {
        let ran = recto(&["help", topic]);
        assert_eq!((ran.code, &*ran.stdout), (Some(2), ""));
        mentions(&ran.stderr, &["error[R0201]", &format!("did you mean {meant:?}?")]);
    }
}

#[test]
fn no_command_at_all_is_answered_with_the_help() {
    let ran = recto(&[]);
    assert_eq!((ran.code, &*ran.stdout), (Some(2), ""));
    mentions(&ran.stderr, &["Usage: recto", "error[R0203]: no command was given\n"]);
}

#[test]
fn completions_name_every_command_in_every_shell() {
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let script = succeeds(&["completions", shell]).stdout;
        mentions(&script, &COMMANDS);
        mentions(&script, &["config", "window", "policy"]);
    }
    let ran = recto(&["completions", "cmd"]);
    assert_eq!(ran.code, Some(2));
    mentions(&ran.stderr, &["error[R0202]", "bash, elvish, fish, powershell, zsh"]);
}

#[test]
fn bash_completes_commands_and_options() {
    if Command::new("bash").arg("--version").output().is_err() {
        return shared::skipped("completions in bash: no bash");
    }
    let folder = Folder::new();
    let script = folder.file("recto.bash", succeeds(&["completions", "bash"]).stdout);
    let completed = |words: &[&str]| {
        let line = format!(
            "source '{script}'; COMP_WORDS=({}); COMP_CWORD={}; _recto recto '{}' '{}'; echo \"${{COMPREPLY[@]}}\"",
            words.join(" "),
            words.len() - 1,
            words[words.len() - 1],
            words[words.len() - 2],
        );
        let output = isolated(Command::new("bash")).args(["--norc", "-c", &line]).output().unwrap();
        String::from_utf8(output.stdout).unwrap()
    };
    assert_eq!(completed(&["recto", "exp"]), "explain expand export\n");
    assert_eq!(completed(&["recto", "replay", "--pa"]), "--pages\n");
    assert_eq!(completed(&["recto", "convert", "--to", "claude"]), "claude_code\n");
    assert_eq!(completed(&["recto", "validate", "--wire", "openai_r"]), "openai_responses\n");
}

#[test]
fn the_manual_has_a_page_for_every_command() {
    let folder = Folder::new();
    let main = succeeds(&["man"]).stdout;
    mentions(&main, &[".TH recto 1", ".SH NAME", "Exit codes:", "recto\\-replay(1)"]);
    let ran = succeeds(&["man", &folder.at("share/man1")]);
    assert_eq!(ran.stdout, "");
    mentions(&ran.stderr, &["40 pages written to"]);
    let mut expected: Vec<String> =
        COMMANDS.iter().chain(&NESTED).map(|command| format!("recto-{command}.1")).collect();
    expected.push("recto.1".into());
    expected.sort();
    let mut names: Vec<String> = fs::read_dir(folder.at("share/man1"))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    assert_eq!(names, expected);
    let page = |name: &str| fs::read_to_string(folder.at(&format!("share/man1/{name}.1"))).unwrap();
    assert_eq!(page("recto"), main);
    mentions(&page("recto-replay"), &[".TH recto-replay 1", "\\-\\-pages", "\\-\\-config", "Examples:"]);
    // What stands in columns must not be filled.
    mentions(&page("recto-config"), &[".nf\n", "\n  [output]\n"]);
}

#[test]
fn roff_finds_nothing_wrong_with_the_manual() {
    if Command::new("groff").arg("--version").output().is_err() {
        return shared::skipped("manual pages read by groff: no groff");
    }
    let folder = Folder::new();
    succeeds(&["man", &folder.at("man1")]);
    for command in COMMANDS.into_iter().chain(NESTED) {
        let page = folder.at(&format!("man1/recto-{command}.1"));
        let output = Command::new("groff").args(["-man", "-Tutf8", "-K", "utf8", "-ww", "-z", &page]).output().unwrap();
        assert_eq!(
            (output.status.success(), String::from_utf8_lossy(&output.stderr).as_ref()),
            (true, ""),
            "{command}"
        );
    }
}

#[test]
fn pages_that_cannot_be_written_are_told() {
    let folder = Folder::new();
    let file = folder.file("file", "");
    let ran = recto(&["man", &format!("{file}/man1")]);
    assert_eq!((ran.code, &*ran.stdout), (Some(1), ""));
    mentions(&ran.stderr, &["error[R0102]: cannot write"]);
}
