//! Style as tests, over every crate of the workspace: what matters fails a build, the rest is taste.
//!
//! A rule is a function from the repository's files to its offences, each with the place and what to
//! do. Rules read Rust as tokens, so that strings and comments are never taken for code.

mod code;
mod repository;

use std::collections::BTreeSet;

use code::{Function, Token, functions, group_end, matches, tokens, unit_tests_at};
use repository::{File, Setting, crate_manifests, repository, settings};

const FILE_LINES_MAX: usize = 600;
const FUNCTION_LINES_MAX: usize = 70;
const ARCHITECTURE_LINES_MAX: usize = 150;

/// The last word of a name, in lower case and without a plural `s`.
const EMPTY_WORDS: [&str; 6] = ["manager", "helper", "handler", "util", "common", "base"];
const NAMING_KEYWORDS: [&str; 7] = ["struct", "enum", "union", "trait", "type", "fn", "mod"];
const ITEM_KEYWORDS: [&str; 12] =
    ["struct", "enum", "union", "trait", "type", "fn", "mod", "const", "static", "unsafe", "async", "extern"];

/// Each crate and the workspace crates it may depend on.
const ARROWS: [(&str, &[&str]); 4] = [
    ("recto", &[]),
    ("recto-engine", &["recto"]),
    ("recto-cli", &["recto", "recto-engine"]),
    ("recto-testkit", &["recto"]),
];
const CORE_DEPENDENCIES: [&str; 7] = ["blake3", "jiff", "minijinja", "serde", "serde_json", "tiktoken-fast", "toml"];

const IMPURE_MODULES: [&str; 7] = ["env", "fs", "net", "os", "process", "thread", "time"];
const IMPURE_CODE: [&str; 16] = [
    "async",
    "await",
    "Instant",
    "Mutex",
    "OsRng",
    "rand::",
    "RandomState",
    "RwLock",
    "static mut",
    "std::sync::atomic",
    "stderr(",
    "stdin(",
    "stdout(",
    "SystemTime",
    "thread::",
    "thread_local",
];

const FORBIDDEN_CODE: [(&str, &str); 6] = [
    ("#[allow(", "use #[expect(lint, reason = \"…\")], or do what the lint says"),
    ("#![allow(", "use #[expect(lint, reason = \"…\")], or do what the lint says"),
    ("#[ignore", "assert today's behaviour and say why it is wrong"),
    ("todo!", "finish it, or return an error that says it is not supported"),
    ("thread::sleep", "wait for the event itself"),
    ("unimplemented!", "finish it, or return an error that says it is not supported"),
];

#[test]
fn files_and_functions_fit_in_the_head() {
    check(sizes);
}

#[test]
fn names_say_what_a_thing_does() {
    check(names);
}

#[test]
fn every_public_item_has_docs() {
    check(docs);
}

#[test]
fn every_crate_takes_the_lints_of_the_workspace() {
    check(lints);
}

#[test]
fn dependencies_are_allowed_and_arrows_never_turn() {
    check(dependencies);
}

#[test]
fn no_file_is_forgotten_and_each_crate_has_one_test_binary() {
    check(forgotten_files);
}

#[test]
fn the_core_has_no_async_io_clock_randomness_or_global_state() {
    check(purity);
}

#[test]
fn nothing_is_allowed_ignored_postponed_or_slept_over() {
    check(forbidden_code);
}

#[test]
fn the_architecture_is_a_short_read() {
    check(architecture);
}

#[test]
fn every_file_is_utf8_with_unix_lines() {
    check(line_ends);
}

#[test]
fn no_path_of_one_machine_is_written_down() {
    check(machine_paths);
}

#[track_caller]
fn check(rule: fn(&[File]) -> Vec<String>) {
    let files = repository();
    assert!(files.iter().any(|file| file.path == file!()), "{} was not read", file!());
    let offences = rule(&files);
    assert!(offences.is_empty(), "{} to do:\n{}", offences.len(), offences.join("\n"));
}

fn sizes(files: &[File]) -> Vec<String> {
    let mut offences = Vec::new();
    for file in files.iter().filter(|file| file.is_rust()) {
        let text = file.text();
        let tokens = tokens(&text);
        let lines = match unit_tests_at(&tokens) {
            Some(at) => tokens[at].line - 1,
            None => text.lines().count(),
        };
        if lines > FILE_LINES_MAX {
            let todo = format!("{lines} lines without tests, at most {FILE_LINES_MAX}: split it");
            offences.push(file.offence(1, &todo));
        }
        for Function { name, first_line, last_line } in functions(&tokens) {
            let lines = last_line - first_line + 1;
            if lines > FUNCTION_LINES_MAX {
                let todo = format!("`{name}` has {lines} lines, at most {FUNCTION_LINES_MAX}: split it");
                offences.push(file.offence(first_line, &todo));
            }
        }
    }
    offences
}

fn names(files: &[File]) -> Vec<String> {
    let mut offences = Vec::new();
    for file in files.iter().filter(|file| file.is_rust()) {
        for pair in tokens(&file.text()).windows(2) {
            let [keyword, name] = pair else { continue };
            if NAMING_KEYWORDS.contains(&keyword.text)
                && EMPTY_WORDS.contains(&last_word(name.text).trim_end_matches('s'))
            {
                let todo = format!("`{}` says nothing: name what it does", name.text);
                offences.push(file.offence(name.line, &todo));
            }
        }
    }
    offences
}

fn last_word(name: &str) -> String {
    let word = name.rsplit('_').next().unwrap_or(name);
    let start = word.rfind(|letter: char| letter.is_uppercase()).unwrap_or(0);
    word[start..].to_lowercase()
}

fn docs(files: &[File]) -> Vec<String> {
    let mut offences = Vec::new();
    for file in files.iter().filter(|file| file.is_rust() && file.is_source()) {
        let text = file.text();
        let tokens = tokens(&text);
        let end = unit_tests_at(&tokens).unwrap_or(tokens.len());
        for at in matches(&tokens[..end], "pub") {
            let next = |steps: usize| tokens.get(at + steps).map_or("", |token| token.text);
            // A macro's `pub struct $name` gets its docs from the call; `missing_docs` sees them.
            let documented = next(2) == "$"
                || has_outer_docs(&tokens, at)
                || next(1) == "mod" && (next(4) == "//!" || file.child_has_docs(next(2), files));
            if ITEM_KEYWORDS.contains(&next(1)) && !documented {
                let todo = format!("`pub {} {}` has no doc comment: add one", next(1), next(2));
                offences.push(file.offence(tokens[at].line, &todo));
            }
        }
    }
    offences
}

/// Walks back over the attributes in front of an item.
fn has_outer_docs(tokens: &[Token<'_>], item: usize) -> bool {
    let mut at = item;
    while at > 0 && tokens[at - 1].text == "]" {
        let Some(open) = (1..at).rev().find(|&open| tokens[open].text == "[" && group_end(tokens, open) == at - 1)
        else {
            return false;
        };
        if tokens[open + 1].text == "doc" {
            return true;
        }
        at = open - 1;
    }
    at > 0 && tokens[at - 1].text == "///"
}

fn lints(files: &[File]) -> Vec<String> {
    let mut offences = Vec::new();
    for file in crate_manifests(files) {
        let settings = settings(&file.text());
        if !settings.iter().any(|it| it.is("lints", "workspace", "true")) {
            offences.push(file.offence(1, "add `workspace = true` under `[lints]`"));
        }
    }
    for file in files.iter().filter(|file| file.path == "Cargo.toml") {
        let settings = settings(&file.text());
        let has = |key, value| settings.iter().any(|it| it.is("workspace.lints.rust", key, value));
        if !has("unsafe_code", "\"forbid\"") {
            offences.push(file.offence(1, "set `unsafe_code = \"forbid\"`"));
        }
        if !has("missing_docs", "\"warn\"") && !has("missing_docs", "\"deny\"") {
            offences.push(file.offence(1, "set `missing_docs = \"warn\"`"));
        }
    }
    offences
}

fn dependencies(files: &[File]) -> Vec<String> {
    let mut offences = Vec::new();
    for file in crate_manifests(files) {
        let name = file.crate_name();
        let Some((_, targets)) = ARROWS.iter().find(|(from, _)| *from == name) else {
            offences.push(file.offence(1, "a new crate: draw its arrows in `ARROWS`"));
            continue;
        };
        for setting in settings(&file.text()) {
            if let Some(todo) = dependency_offence(name, targets, &setting) {
                offences.push(file.offence(setting.line, &todo));
            }
        }
    }
    offences
}

fn dependency_offence(from: &str, targets: &[&str], setting: &Setting) -> Option<String> {
    let Setting { section, key, value, .. } = setting;
    if section.contains("dependencies.") {
        return Some(format!("write `[{section}]` as one line of its table"));
    }
    if !section.ends_with("dependencies") {
        return None;
    }
    let name = key.split('.').next().unwrap_or(key);
    let for_tests = section.ends_with("dev-dependencies");
    let ours = ARROWS.iter().any(|(to, _)| *to == name);
    if name == "recto-testkit" {
        return (!for_tests).then(|| format!("`{name}` is for tests: a dev-dependency"));
    }
    // Tests of a crate may ask for more of its features.
    let is_itself = for_tests && name == from;
    if ours && !is_itself && !targets.contains(&name) {
        return Some(format!("`{from}` must not depend on `{name}`: arrows never turn"));
    }
    if from == "recto" && !ours && !for_tests && !CORE_DEPENDENCIES.contains(&name) {
        return Some(format!("the core takes no `{name}`: do without, or move the code out"));
    }
    let inherited = *key == format!("{name}.workspace") && value == "true" || value.contains("workspace = true");
    (!inherited).then(|| format!("versions live in the workspace: `{name}.workspace = true`"))
}

fn forgotten_files(files: &[File]) -> Vec<String> {
    let mut offences = Vec::new();
    for file in files.iter().filter(|file| file.is_rust()) {
        match file.path.split('/').collect::<Vec<_>>()[..] {
            ["crates", _, "tests", _] => {
                offences.push(file.offence(1, "a second test binary: move it to `tests/it/`"));
            }
            ["crates", _, "tests", folder, "main.rs"] if folder != "it" => {
                offences.push(file.offence(1, "a second test binary: move it to `tests/it/`"));
            }
            ["crates", _, "src", "lib.rs" | "main.rs"] | ["crates", _, "src", "bin", ..] => {}
            ["crates", _, "tests", "it", "main.rs"] => {}
            ["crates", _, "src" | "tests", ..] if !file.is_declared(files) => {
                offences.push(file.offence(1, "no `mod` declares it: declare or delete it"));
            }
            _ => {}
        }
    }
    for file in crate_manifests(files) {
        for setting in settings(&file.text()).iter().filter(|it| it.section == "test") {
            offences.push(file.offence(setting.line, "no `[[test]]`: `tests/it/` is the one"));
        }
    }
    offences
}

fn purity(files: &[File]) -> Vec<String> {
    let mut offences = Vec::new();
    for file in files.iter().filter(|file| file.is_rust() && file.is_source()) {
        if file.crate_name() != "recto" {
            continue;
        }
        let text = file.text();
        let tokens = tokens(&text);
        let code = &tokens[..unit_tests_at(&tokens).unwrap_or(tokens.len())];
        let mut found = std_modules(code)
            .filter(|module| IMPURE_MODULES.contains(&module.text))
            .map(|module| (module.line, format!("std::{}", module.text)))
            .collect::<BTreeSet<_>>();
        for pattern in IMPURE_CODE {
            found.extend(matches(code, pattern).map(|at| (code[at].line, pattern.to_owned())));
        }
        offences.extend(
            found.into_iter().map(|(line, what)| {
                file.offence(line, &format!("`{what}` in the core: take it as data, or move it out"))
            }),
        );
    }
    offences
}

/// The modules named after `std::`, those in `std::{…}` included.
fn std_modules<'a>(tokens: &'a [Token<'a>]) -> impl Iterator<Item = Token<'a>> {
    matches(tokens, "std::").flat_map(|at| {
        let first = at + 3;
        let in_braces = tokens.get(first).is_some_and(|token| token.text == "{");
        let last = if in_braces { group_end(tokens, first) } else { first };
        let mut modules = Vec::new();
        let mut next = first;
        while next <= last && next < tokens.len() {
            match tokens[next].text {
                "{" if next > first => next = group_end(tokens, next),
                _ if next == first || matches!(tokens[next - 1].text, "{" | ",") => {
                    modules.push(tokens[next]);
                }
                _ => {}
            }
            next += 1;
        }
        modules
    })
}

fn forbidden_code(files: &[File]) -> Vec<String> {
    let mut offences = Vec::new();
    for file in files.iter().filter(|file| file.is_rust()) {
        let text = file.text();
        let tokens = tokens(&text);
        for (pattern, todo) in FORBIDDEN_CODE {
            for at in matches(&tokens, pattern) {
                offences.push(file.offence(tokens[at].line, &format!("`{pattern}`: {todo}")));
            }
        }
    }
    offences
}

fn architecture(files: &[File]) -> Vec<String> {
    let Some(file) = files.iter().find(|file| file.path == "ARCHITECTURE.md") else {
        return vec!["ARCHITECTURE.md:1: it is missing: write it".to_owned()];
    };
    let lines = file.text().lines().count();
    let too_long = format!("{lines} lines, at most {ARCHITECTURE_LINES_MAX}: shorten it");
    (lines > ARCHITECTURE_LINES_MAX).then(|| file.offence(1, &too_long)).into_iter().collect()
}

fn line_ends(files: &[File]) -> Vec<String> {
    let mut offences = Vec::new();
    for file in files.iter().filter(|file| !file.path.ends_with(".png")) {
        if std::str::from_utf8(&file.bytes).is_err() {
            offences.push(file.offence(1, "not UTF-8: convert it, or move it to `fixtures/`"));
            continue;
        }
        let text = file.text();
        for (index, line) in text.split('\n').enumerate() {
            if line.contains('\r') {
                offences.push(file.offence(index + 1, "a carriage return: end lines with \\n"));
            }
            if file.is_rust() && line.contains('\t') {
                offences.push(file.offence(index + 1, "a tab: use spaces, or \\t in a string"));
            }
        }
        if !text.is_empty() && !text.ends_with('\n') {
            offences.push(file.offence(text.lines().count(), "no line end at the end: add one"));
        }
    }
    offences
}

fn machine_paths(files: &[File]) -> Vec<String> {
    let needles = ["home", "root", "work", "Users"].map(|folder| format!("/{folder}/"));
    let mut offences = Vec::new();
    for file in files {
        for (index, line) in file.text().lines().enumerate() {
            for needle in &needles {
                // After a word it is the middle of a longer path, which any machine may have.
                let absolute = line.match_indices(needle.as_str()).any(|(at, _)| {
                    !line[..at].ends_with(|before: char| before.is_alphanumeric() || "._-~*}".contains(before))
                });
                if absolute {
                    let todo = format!("`{needle}…` is a path of one machine: make it relative");
                    offences.push(file.offence(index + 1, &todo));
                }
            }
        }
    }
    offences
}

#[cfg(test)]
mod tests {
    use super::*;

    fn offences(rule: fn(&[File]) -> Vec<String>, files: &[(&str, &str)]) -> String {
        let files: Vec<File> = files
            .iter()
            .map(|(path, text)| File { path: (*path).to_owned(), bytes: text.as_bytes().to_vec() })
            .collect();
        rule(&files).join("\n")
    }

    #[track_caller]
    fn check_lib(rule: fn(&[File]) -> Vec<String>, code: &str, expected: &str) {
        let found = offences(rule, &[("crates/recto/src/lib.rs", code)]);
        assert_eq!(found.replace("crates/recto/src/lib.rs:", ""), expected);
    }

    #[test]
    fn long_files_and_functions_are_found() {
        let body = "    let _ = \"}\";\n".repeat(FUNCTION_LINES_MAX - 2);
        check_lib(sizes, &format!("fn fits() {{\n{body}}}\n"), "");
        check_lib(sizes, &format!("\nfn long() {{\n\n{body}}}\n"), "2: `long` has 71 lines, at most 70: split it");
        let full = "// x\n".repeat(FILE_LINES_MAX);
        check_lib(sizes, &format!("{full}#[cfg(test)]\nmod tests {{\n{full}}}\n"), "");
        check_lib(sizes, &format!("{full}// x\n"), "1: 601 lines without tests, at most 600: split it");
    }

    #[test]
    fn empty_names_are_found() {
        check_lib(
            names,
            "struct StoreManager;\nmod utils {}\nfn base() { set_handler(); }\nfn parse_helper() {}\n",
            "1: `StoreManager` says nothing: name what it does\n\
             2: `utils` says nothing: name what it does\n\
             3: `base` says nothing: name what it does\n\
             4: `parse_helper` says nothing: name what it does",
        );
        check_lib(names, "struct Database; fn handle() {} mod utility {} fn common_prefix() {}", "");
    }

    #[test]
    fn missing_docs_are_found() {
        check_lib(
            docs,
            "/// A.\n#[derive(Debug)]\npub struct A(pub [u8; 2]);\n#[must_use]\npub fn b() {}\n\
             pub use a::b;\npub(crate) fn c() {}\n#[doc = \"d\"]\npub mod d {}\npub mod e;\n\
             pub mod f {\n//! F.\n}\n",
            "5: `pub fn b` has no doc comment: add one\n10: `pub mod e` has no doc comment: add one",
        );
        check_lib(docs, "macro_rules! m { () => { $(#[$docs])* pub struct $name; } }\n", "");
        let lib = ("crates/recto/src/lib.rs", "pub mod e;\n");
        assert_eq!(offences(docs, &[lib, ("crates/recto/src/e.rs", "//! E.\n")]), "");
    }

    #[test]
    fn missing_lints_are_found() {
        let found = offences(
            lints,
            &[
                ("Cargo.toml", "[workspace.lints.rust]\nunsafe_code = \"warn\"\n"),
                ("crates/recto/Cargo.toml", "[lints.rust]\nunsafe_code = \"forbid\"\n"),
            ],
        );
        assert_eq!(
            found,
            "crates/recto/Cargo.toml:1: add `workspace = true` under `[lints]`\n\
             Cargo.toml:1: set `unsafe_code = \"forbid\"`\n\
             Cargo.toml:1: set `missing_docs = \"warn\"`"
        );
    }

    #[test]
    fn wrong_dependencies_are_found() {
        let core = "[dependencies]\nserde.workspace = true\nrand.workspace = true\nblake3 = \"1\"\n\
                    recto-engine = { workspace = true }\nrecto-testkit.workspace = true\n\
                    [dev-dependencies]\nproptest.workspace = true\nrecto-cli.workspace = true\n\
                    recto-testkit = { path = \"../recto-testkit\" }\n[dependencies.serde_json]\nversion = \"1\"\n";
        let found = offences(dependencies, &[("crates/recto/Cargo.toml", core), ("crates/recto-new/Cargo.toml", "")]);
        assert_eq!(
            found.replace("crates/recto/Cargo.toml:", ""),
            "3: the core takes no `rand`: do without, or move the code out\n\
             4: versions live in the workspace: `blake3.workspace = true`\n\
             5: `recto` must not depend on `recto-engine`: arrows never turn\n\
             6: `recto-testkit` is for tests: a dev-dependency\n\
             9: `recto` must not depend on `recto-cli`: arrows never turn\n\
             12: write `[dependencies.serde_json]` as one line of its table\n\
             crates/recto-new/Cargo.toml:1: a new crate: draw its arrows in `ARROWS`"
        );
    }

    #[test]
    fn forgotten_files_are_found() {
        let found = offences(
            forgotten_files,
            &[
                ("crates/a/src/lib.rs", "mod wire;\n// mod lost;\n"),
                ("crates/a/src/lost.rs", ""),
                ("crates/a/src/wire.rs", "mod json;\n"),
                ("crates/a/src/wire/json.rs", ""),
                ("crates/a/src/wire/lost.rs", ""),
                ("crates/a/tests/it/main.rs", "mod laws;\nmod deep;\n"),
                ("crates/a/tests/it/laws.rs", ""),
                ("crates/a/tests/it/lost.rs", ""),
                ("crates/a/tests/it/deep/mod.rs", ""),
                ("crates/a/tests/more.rs", ""),
                ("crates/a/tests/other/main.rs", ""),
                ("crates/a/Cargo.toml", "[[test]]\nname = \"x\"\n"),
            ],
        );
        assert_eq!(
            found,
            "crates/a/src/lost.rs:1: no `mod` declares it: declare or delete it\n\
             crates/a/src/wire/lost.rs:1: no `mod` declares it: declare or delete it\n\
             crates/a/tests/it/lost.rs:1: no `mod` declares it: declare or delete it\n\
             crates/a/tests/more.rs:1: a second test binary: move it to `tests/it/`\n\
             crates/a/tests/other/main.rs:1: a second test binary: move it to `tests/it/`\n\
             crates/a/Cargo.toml:2: no `[[test]]`: `tests/it/` is the one"
        );
    }

    #[test]
    fn impure_code_is_found_in_the_core_only() {
        let code = "use std::fs;\nuse std::{\n    fmt::{self, Debug},\n    time::Duration,\n};\n\
                    async fn a() {}\n// std::env\nconst S: &str = \"SystemTime\";\nstatic mut X: u8 = 0;\n\
                    let thread = 1;\nthread::spawn(x);\n#[cfg(test)]\nmod tests { use std::env; }\n";
        check_lib(
            purity,
            code,
            "1: `std::fs` in the core: take it as data, or move it out\n\
             4: `std::time` in the core: take it as data, or move it out\n\
             6: `async` in the core: take it as data, or move it out\n\
             9: `static mut` in the core: take it as data, or move it out\n\
             11: `thread::` in the core: take it as data, or move it out",
        );
        assert_eq!(offences(purity, &[("crates/recto-engine/src/lib.rs", code)]), "");
    }

    #[test]
    fn forbidden_code_is_found_outside_strings() {
        let code = "#[allow(dead_code)]\nfn a() { \"todo!\"; todo!() }\n#[test]\n#[ignore]\nfn b() {}\n";
        check_lib(
            forbidden_code,
            code,
            "1: `#[allow(`: use #[expect(lint, reason = \"…\")], or do what the lint says\n\
             4: `#[ignore`: assert today's behaviour and say why it is wrong\n\
             2: `todo!`: finish it, or return an error that says it is not supported",
        );
    }

    #[test]
    fn a_long_or_missing_architecture_is_found() {
        assert_eq!(offences(architecture, &[]), "ARCHITECTURE.md:1: it is missing: write it");
        assert_eq!(offences(architecture, &[("ARCHITECTURE.md", &"a\n".repeat(150))]), "");
        assert_eq!(
            offences(architecture, &[("ARCHITECTURE.md", &"a\n".repeat(151))]),
            "ARCHITECTURE.md:1: 151 lines, at most 150: shorten it"
        );
    }

    #[test]
    fn wrong_bytes_are_found() {
        check_lib(
            line_ends,
            "a\r\n\tb\nc",
            "1: a carriage return: end lines with \\n\n\
             2: a tab: use spaces, or \\t in a string\n\
             3: no line end at the end: add one",
        );
        let latin = File { path: "a.md".to_owned(), bytes: vec![0xe9, b'\n'] };
        assert_eq!(line_ends(&[latin]), ["a.md:1: not UTF-8: convert it, or move it to `fixtures/`"]);
    }

    #[test]
    fn paths_of_one_machine_are_found() {
        let [home, root] = ["home", "root"].map(|folder| format!("/{folder}/"));
        let text = format!("see {home}me\nsrc{root}x\n`{root}y`\n");
        check_lib(
            machine_paths,
            &text,
            &format!(
                "1: `{home}…` is a path of one machine: make it relative\n\
                 3: `{root}…` is a path of one machine: make it relative"
            ),
        );
    }
}
