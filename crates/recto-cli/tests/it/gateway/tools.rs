//! Claude Code and Codex themselves, whose models use the tools of `recto mcp` and of `/mcp`.

use super::programs::{Program, Seat};
use super::world::{Between, World};
use crate::run::Folder;
use recto_testkit::fake::Reply;
use recto_testkit::shared::skipped;
use serde_json::{Value, json};
use std::fs;
use std::process::{Command, Stdio};

/// What an earlier conversation says, and nobody else.
const KNOWN: &str = "The zebra is kept in the northern stable.";
/// What the user says: too little for a program to have a title made of it.
const QUESTION: &str = "WORDS-0.";

/// How a program reaches the tools.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    Stdio,
    Http,
}

/// A world that remembers an earlier conversation, and has a server that nobody but the tools is asked of.
fn world() -> World {
    let world = World::new(Between::Recto("none"));
    let chat = json!({"messages": [
        {"role": "user", "content": "Where is the zebra kept?"}, {"role": "assistant", "content": KNOWN}]});
    let file = world.folder.file("earlier.json", chat.to_string());
    world.run(&["import", &file]);
    world
}

/// What a program is told of the tools.
fn server(world: &World, way: Way) -> Value {
    match way {
        Way::Stdio => json!({
            "command": env!("CARGO_BIN_EXE_recto"), "args": ["mcp"],
            "env": {"RECTO_STORE": world.folder.at("kept.db"), "RECTO_CONFIG": world.folder.at("recto.toml")},
        }),
        Way::Http => json!({"type": "http", "url": format!("{}/mcp", world.url())}),
    }
}

/// Runs Claude Code once, with the tools.
fn claude_code(path: &str, desk: &Folder, world: &World, way: Way) -> String {
    let config = json!({"mcpServers": {"recto": server(world, way)}});
    let config = desk.file("mcp.json", config.to_string());
    let mut command = Command::new(path);
    command.current_dir(desk.path.join("work")).env_clear().env("PATH", "/usr/bin:/bin").env("HOME", desk.at("home"));
    command.env("ANTHROPIC_API_KEY", "sk-test").env("ANTHROPIC_BASE_URL", world.fake.url());
    command.env("CLAUDE_CODE_MAX_RETRIES", "0").env("ENABLE_TOOL_SEARCH", "false").stdin(Stdio::null());
    command.args(["-p", "--model", "claude-sonnet-4-6", "--output-format", "json", "--strict-mcp-config"]);
    command.args(["--mcp-config", &config, "--allowedTools", "mcp__recto__search,mcp__recto__read", "--", QUESTION]);
    let output = command.output().unwrap();
    let [stdout, stderr] = [&output.stdout, &output.stderr].map(|it| String::from_utf8_lossy(it).into_owned());
    assert!(output.status.success(), "{stdout}{stderr}");
    serde_json::from_str::<Value>(&stdout).unwrap()["result"].as_str().unwrap().into()
}

/// Runs Codex once, with the tools.
fn codex(path: &str, desk: &Folder, world: &World, way: Way) -> String {
    let seat = Seat { program: Program::Codex, path: path.into(), desk, home: "home", url: world.fake.url() };
    seat.configure();
    let server = server(world, way);
    let lines = match way {
        Way::Stdio => format!(
            "command = {}\nargs = [\"mcp\"]\n[mcp_servers.recto.env]\nRECTO_STORE = {}\nRECTO_CONFIG = {}\n",
            server["command"], server["env"]["RECTO_STORE"], server["env"]["RECTO_CONFIG"]
        ),
        Way::Http => format!("url = {}\n", server["url"]),
    };
    let file = desk.path.join("home/config.toml");
    let config = fs::read_to_string(&file).unwrap() + "[mcp_servers.recto]\n" + &lines;
    fs::write(&file, config).unwrap();
    seat.says(None, QUESTION).1
}

/// Returns a program and its desk, or says loudly that the test is skipped.
fn program(program: Program, test: &str) -> Option<String> {
    let path = std::env::var(program.variable()).ok();
    if path.is_none() {
        skipped(&format!("{test}: no {program:?} (set {} to its native program)", program.variable()));
    }
    path
}

fn desk() -> Folder {
    let desk = Folder::new();
    fs::create_dir(desk.path.join("work")).unwrap();
    desk
}

#[test]
fn the_model_of_claude_code_searches_what_was_said_before() {
    let Some(path) = program(Program::ClaudeCode, "the_model_of_claude_code_searches_what_was_said_before") else {
        return;
    };
    for way in [Way::Stdio, Way::Http] {
        let (desk, mut world) = (desk(), world());
        world.fake.push(Reply::default().call("mcp__recto__search", &json!({"words": "zebra"}).to_string()));
        world.fake.push(Reply::default().text("In the stable."));
        assert_eq!(claude_code(&path, &desk, &world, way), "In the stable.");
        let calls = world.calls();
        assert_eq!(calls.len(), 2, "{way:?}");
        let told = |at: usize| String::from_utf8_lossy(&calls[at].request.body).into_owned();
        assert!(told(0).contains("mcp__recto__search"), "{way:?}: {}", told(0));
        assert!(!told(0).contains(KNOWN), "the control: {way:?}");
        assert!(told(1).contains(KNOWN) && told(1).contains("m1 of "), "{way:?}: {}", told(1));
        assert!(told(1).contains("<untrusted>"), "{way:?}: {}", told(1));
        world.stop();
    }
}

/// Codex has its model look for tools first, in a way that the provider here doesn't script; that it has asked the server
/// shows in what its model is told.
#[test]
fn codex_tells_its_model_what_can_be_looked_up() {
    let Some(path) = program(Program::Codex, "codex_tells_its_model_what_can_be_looked_up") else { return };
    for way in [Way::Stdio, Way::Http] {
        let (desk, mut world) = (desk(), world());
        world.fake.push(Reply::default().text("So it is."));
        assert_eq!(codex(&path, &desk, &world, way), "So it is.");
        let calls = world.calls();
        let told = String::from_utf8_lossy(&calls[0].request.body).into_owned();
        assert!(told.contains("Recto keeps conversations of agents"), "{way:?}: {told}");
        world.stop();
    }
}
