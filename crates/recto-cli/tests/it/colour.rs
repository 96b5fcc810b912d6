use crate::run::{FIXTURE, Folder, Ran, command, recto};
use std::process::Command;

const ARGS: [&str; 6] = ["explain", FIXTURE, "--window", "20k", "--policy", "first_chars"];

fn always(folder: &Folder) -> String {
    folder.file("always.toml", "[output]\ncolor = 'always'")
}

/// What is left of a text without its colours.
fn plain(text: &str) -> String {
    let mut parts = text.split('\u{1b}');
    let mut plain = parts.next().unwrap().to_string();
    for part in parts {
        let (code, rest) = part.split_once('m').unwrap();
        assert!(code.starts_with('['), "{code}");
        plain.push_str(rest);
    }
    plain
}

#[test]
fn only_the_fates_of_a_receipt_are_coloured_and_the_words_stay() {
    let folder = Folder::new();
    let without = recto(&ARGS);
    assert!(!without.stdout.contains('\u{1b}'), "a pipe is no terminal");
    let always = always(&folder);
    let with = recto(&[&ARGS[..], &["--config", &always]].concat());
    assert_eq!(plain(&with.stdout), without.stdout);
    for word in ["\u{1b}[32mshown\u{1b}[0m", "\u{1b}[33mchanged\u{1b}[0m", "\u{1b}[31mnot shown\u{1b}[0m"] {
        assert!(with.stdout.contains(word), "{word:?} in\n{}", with.stdout);
    }
    let rows = without.stdout.lines().filter(|line| line.starts_with("  #")).count();
    assert_eq!(with.stdout.matches("\u{1b}[0m").count(), rows, "each row has one fate");
    let json = [&ARGS[..], &["--json", "--config", &always]].concat();
    assert!(!recto(&json).stdout.contains('\u{1b}'));
}

#[test]
fn labels_of_errors_and_hints_are_coloured() {
    let folder = Folder::new();
    let args = ["explain", FIXTURE, "--policy", "sfae", "--config", &always(&folder)];
    let with = recto(&args);
    assert!(with.stderr.starts_with("\u{1b}[1;31merror[R0321]:\u{1b}[0m unknown policy"), "{:?}", with.stderr);
    assert!(with.stderr.contains("\n\u{1b}[36mhint:\u{1b}[0m did you mean"), "{:?}", with.stderr);
    assert_eq!(plain(&with.stderr), recto(&args[..4]).stderr);
}

#[test]
fn the_environment_can_forbid_colour() {
    let folder = Folder::new();
    let always = always(&folder);
    let run = |name: &str, value: &str, args: &[&str]| {
        let mut command = command(&[args, &["--config", &always]].concat());
        Ran::from(command.env(name, value).output().unwrap()).stdout
    };
    for (name, value, is_coloured) in
        [("NO_COLOR", "1", false), ("NO_COLOR", "", true), ("TERM", "dumb", false), ("TERM", "xterm", true)]
    {
        assert_eq!(run(name, value, &ARGS).contains('\u{1b}'), is_coloured, "{name}={value}");
    }
    let told = |name: &str, value: &str| run(name, value, &["config"]).split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(told("NO_COLOR", "1").contains("never environment: NO_COLOR"));
    assert!(told("TERM", "dumb").contains("never environment: TERM"));
}

/// `script` runs a command on a terminal of its own.
#[cfg(target_os = "linux")]
#[test]
fn a_terminal_gets_colour_unless_the_settings_say_never() {
    use recto_testkit::shared;
    if Command::new("script").arg("--version").output().is_err() {
        return shared::skipped("colour on a terminal: no `script` (package bsdutils or util-linux)");
    }
    let folder = Folder::new();
    let never = folder.file("never.toml", "[output]\ncolor = 'never'");
    let on_terminal = |config: &str, term: &str| {
        let recto = env!("CARGO_BIN_EXE_recto");
        let line = format!("'{recto}' explain '{FIXTURE}' --window 12k; '{recto}' explain gone.json; '{recto}' --help");
        let mut command = crate::run::isolated(Command::new("script"));
        command.args(["-q", "-c", &line, "/dev/null"]).env("RECTO_CONFIG", config).env("TERM", term);
        Ran::from(command.output().unwrap()).stdout
    };
    let auto = on_terminal("/dev/null", "xterm");
    assert!(auto.contains("\u{1b}[31mnot shown\u{1b}[0m"), "{auto:?}");
    assert!(auto.contains("\u{1b}[1;31merror[R0101]:\u{1b}[0m cannot read"), "{auto:?}");
    assert!(!on_terminal("/dev/null", "dumb").contains('\u{1b}'));
    let never = on_terminal(&never, "xterm");
    assert!(never.contains("not shown") && never.contains("Usage:") && !never.contains('\u{1b}'), "{never:?}");
}

/// What `recto explain` says on a terminal of so many columns.
#[cfg(target_os = "linux")]
fn explained(columns: usize, variable: (&str, &str)) -> Option<String> {
    use recto_testkit::shared;
    if Command::new("script").arg("--version").output().is_err() {
        shared::skipped("bars on a terminal: no `script` (package bsdutils or util-linux)");
        return None;
    }
    let recto = env!("CARGO_BIN_EXE_recto");
    let line = format!("stty cols {columns} rows 40; '{recto}' explain '{FIXTURE}' --window 20k --policy first_chars");
    let mut command = crate::run::isolated(Command::new("script"));
    command.args(["-q", "-c", &line, "/dev/null"]).env("TERM", "xterm").env(variable.0, variable.1);
    Some(Ran::from(command.output().unwrap()).stdout.replace('\r', ""))
}

#[cfg(target_os = "linux")]
#[test]
fn a_terminal_gets_bars_and_lines_that_fit_and_loses_no_word() {
    use unicode_width::UnicodeWidthStr;
    let piped = recto(&ARGS).stdout;
    assert!(!piped.contains('█'), "a pipe gets no bars");
    for columns in [28, 36, 60, 80, 132] {
        let Some(text) = explained(columns, ("LANG", "C.UTF-8")) else { return };
        assert!(text.contains("\u{1b}[31mnot shown\u{1b}[0m"), "{columns}: {text:?}");
        let text = plain(&text);
        let wide = text.lines().filter(|line| line.width() > columns && line.split_whitespace().count() > 1);
        assert_eq!(wide.collect::<Vec<_>>(), Vec::<&str>::new(), "{columns}");
        // Every bar stands beside its word and its number.
        for name in ["results", "assistant", "reserved", "left", "shown", "changed", "not shown"] {
            let is_told =
                |line: &str| line.trim_start().starts_with(name) && line.contains(|c: char| c.is_ascii_digit());
            assert!(text.lines().any(is_told), "{columns}: no {name} in\n{text}");
        }
        assert_eq!(text.contains('█'), columns > 28, "{columns}: {text}");
        // Without the bars it says what a pipe is told, word for word.
        let words = |text: &str| text.split_whitespace().map(String::from).collect::<Vec<_>>();
        let (head, table) = (piped.split("\n\n").next().unwrap(), &piped[piped.find("  entries").unwrap()..]);
        let (all, head, table) = (words(&text), words(head), words(table));
        assert!(all.starts_with(&head) && all.ends_with(&table), "{columns}: {text}");
    }
    let colourless = explained(80, ("NO_COLOR", "1")).unwrap();
    assert!(colourless.contains('█') && !colourless.contains('\u{1b}'), "{colourless:?}");
}
