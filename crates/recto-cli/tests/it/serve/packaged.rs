//! The unit of systemd and the container's file: what they start is started here, and answers.

use super::*;
use recto_testkit::shared::skipped;
use std::path::Path;

const UNIT: &str = include_str!("../../../../../contrib/recto.service");
const CONTAINER: &str = include_str!("../../../../../contrib/Containerfile");
const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");
/// How exposed the service may be, in tenths, as systemd counts it.
const EXPOSURE_MAX: u32 = 15;

/// The values of a key of the unit, in order.
fn set(key: &str) -> Vec<&'static str> {
    UNIT.lines().filter_map(|line| line.strip_prefix(key)?.strip_prefix('=')).collect()
}

/// The instructions of the container's file, continued lines joined: a word and what follows it.
fn instructions() -> Vec<(String, String)> {
    let joined = CONTAINER.replace("\\\n", " ");
    let lines = joined.lines().filter(|line| !line.starts_with('#') && !line.is_empty());
    lines.map(|line| line.split_once(' ').unwrap()).map(|(word, rest)| (word.into(), rest.trim().into())).collect()
}

fn instruction(word: &str) -> String {
    instructions().into_iter().rev().find(|(known, _)| known == word).unwrap_or_else(|| panic!("no {word}")).1
}

fn list(json: &str) -> Vec<String> {
    serde_json::from_str(json).unwrap_or_else(|error| panic!("{error}: {json}"))
}

/// Starts what a file says, with its variables, but at a free port and in a folder of the test's own.
fn started(place: &Place, program: &str, args: &[String], variables: &[(String, String)]) -> Served {
    assert_eq!(program, "/usr/local/bin/recto");
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    let is_named = args.windows(2).position(|two| two[0] == "--listen");
    let mut args = args.clone();
    match is_named {
        Some(at) => args[at + 1] = "0.0.0.0:0",
        None => args.extend(["--listen", "127.0.0.1:0"]),
    }
    let mut command = command(&args);
    for (name, value) in variables {
        let file = Path::new(value).file_name().unwrap().to_str().unwrap();
        command.env(name, place.folder.at(file));
    }
    Served::of(command)
}

#[test]
fn the_unit_starts_a_server_that_reloads_and_ends() {
    let place = Place::new();
    let [start] = set("ExecStart")[..] else { panic!("one command") };
    let words: Vec<String> = start.split_whitespace().map(String::from).collect();
    let variables: Vec<(String, String)> =
        set("Environment").iter().map(|it| it.split_once('=').unwrap()).map(|(a, b)| (a.into(), b.into())).collect();
    assert_eq!(variables.iter().map(|(name, _)| &**name).collect::<Vec<_>>(), ["RECTO_CONFIG", "RECTO_STORE"]);
    assert_eq!(set("StateDirectory"), ["recto"], "the store lies in it");
    assert!(variables[1].1.starts_with("%S/recto/"), "{variables:?}");
    let served = started(&place, &words[0], &words[1..], &variables);
    assert_eq!(served.get("/ready").status, 200);
    assert_eq!(set("ExecReload"), ["/bin/kill -HUP $MAINPID"]);
    served.signal("HUP");
    served.until("recto_config_reloads_total{result=\"ok\"}", 1);
    let ran = served.ends();
    let is_json = |line: &str| serde_json::from_str::<Value>(line).is_ok();
    assert!(ran.stderr.lines().all(is_json), "{}", ran.stderr);
    assert!(place.folder.names().contains(&"recto.db".to_string()), "{:?}", place.folder.names());
}

#[test]
fn systemd_takes_the_unit_and_finds_it_closed() {
    if Command::new("systemd-analyze").arg("--version").output().is_err() {
        return skipped("the unit of systemd: no systemd-analyze");
    }
    let folder = Folder::new();
    let unit = UNIT.replace("/usr/local/bin/recto", env!("CARGO_BIN_EXE_recto"));
    let file = folder.file("recto.service", &unit);
    let analyze = |args: &[&str]| {
        let output = Command::new("systemd-analyze").args(args).arg(&file).output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr).into_owned() + &String::from_utf8_lossy(&output.stdout);
        (output.status.success(), said)
    };
    let (is_taken, said) = analyze(&["verify", "--man=no"]);
    assert!(is_taken && said.is_empty(), "{said}");
    let threshold = format!("--threshold={EXPOSURE_MAX}");
    let (is_closed, said) = analyze(&["security", "--offline=true", "--no-pager", &threshold]);
    assert!(is_closed, "{said}");
    // The control: without its protections it is not.
    let open: String =
        unit.lines().filter(|line| !line.starts_with("Protect")).map(|line| format!("{line}\n")).collect();
    folder.file("recto.service", open);
    assert!(!analyze(&["security", "--offline=true", "--no-pager", &threshold]).0);
}

#[test]
fn the_container_starts_a_server_that_its_health_check_finds() {
    let place = Place::new();
    assert_eq!(place.run(&["keys", "add", "first"]).code, Some(0));
    std::fs::rename(place.folder.at("kept.db"), place.folder.at("recto.db")).unwrap();
    let (entry, command) = (list(&instruction("ENTRYPOINT")), list(&instruction("CMD")));
    let all = instructions();
    let variables: Vec<(String, String)> = all
        .iter()
        .filter(|(word, _)| word == "ENV")
        .map(|(_, rest)| rest.split_once('=').unwrap())
        .map(|(name, value)| (name.into(), value.into()))
        .collect();
    let served = started(&place, &entry[0], &command, &variables);
    let check = list(instruction("HEALTHCHECK").split_once("CMD ").unwrap().1);
    let port = instruction("EXPOSE");
    assert!(command.iter().any(|arg| arg.ends_with(&format!(":{port}"))) && check[2].contains(&format!("/{port} ")));
    let health = |port: u16| {
        let script = check[2].replace("/7676 ", &format!("/{port} "));
        Command::new(&check[0]).args([&check[1], &script]).output().unwrap().status.success()
    };
    assert!(health(served.at.port()));
    let port = served.at.port();
    served.ends();
    assert!(!health(port), "who is gone is not healthy");
}

#[test]
fn the_container_is_built_from_what_there_is_and_by_nobody_special() {
    let all = instructions();
    let images: Vec<&str> =
        all.iter().filter(|(word, _)| word == "FROM").map(|(_, rest)| rest.split(' ').next().unwrap()).collect();
    assert_eq!(images.len(), 2);
    assert!(images[0].starts_with("rust:") && images[1] == "debian:bookworm-slim", "{images:?}");
    for (_, rest) in all.iter().filter(|(word, rest)| word == "COPY" && !rest.starts_with("--from")) {
        let mut paths: Vec<&str> = rest.split_whitespace().collect();
        paths.pop();
        for path in paths {
            assert!(Path::new(ROOT).join(path).exists(), "{path}");
        }
    }
    let build = &all.iter().find(|(word, rest)| word == "RUN" && rest.starts_with("cargo ")).unwrap().1;
    let manifest = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml")).unwrap();
    let (_, features) = build.split_once("--features ").unwrap();
    for feature in features.split(',') {
        assert!(manifest.contains(&format!("\n{feature} = [")), "{feature}");
    }
    assert!(build.contains("-p recto-cli") && build.contains("--locked"));
    let toolchain = std::fs::read_to_string(format!("{ROOT}/Cargo.toml")).unwrap();
    let version = images[0].trim_start_matches("rust:").split('-').next().unwrap();
    assert!(toolchain.contains(&format!("rust-version = \"{version}\"")), "{version}");
    let user: u32 = instruction("USER").parse().unwrap();
    assert!(user > 0, "not root");
}
