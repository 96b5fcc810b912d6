//! What a program holds that really remembers: Claude Code and Codex themselves, driven by `recto run`.

use super::Inspected;
use super::browser::Browser;
use crate::run_command::Place;
use crate::run_command::programs::{Program, calling};
use serde_json::Value;

/// Results keep twenty characters after a call, at once, and the provider's session goes on.
const POLICY: &str = "schema_version = 1\nname = 'forgetful'\napply = 'immediately'\nstale = 'keep'\n\
                      [[reduce]]\n[reduce.expire]\nafter = 1\naction = { first_chars = 20 }\n";
/// What a command says, so long that shortening it makes a difference.
const WORDS: &str = "a long result that nobody needs for long, said again and again, ";

#[test]
fn what_a_program_holds_is_shown_and_what_of_it_is_stale() {
    let Some(browser) = Browser::start("inspector, sessions") else { return };
    let Some(place) = Place::of_programs("inspector, sessions") else { return };
    let policy = place.folder.file("forgetful.toml", POLICY);
    let more = ["--policy", &policy];
    for program in Program::ALL {
        place.server.push(calling(program, &format!("echo {}", WORDS.repeat(12).trim())));
        place.says(program.name(), "Say it.", "I did.", &more);
    }
    let inspected = Inspected::of(place.command(&["serve", "--listen", "127.0.0.1:0"]));
    browser.goes(&inspected.at("#/c/talk/main/sessions"));
    browser.until("document.querySelectorAll('.session').length === 2");
    let seen = |program: Program| {
        let found = browser.until(&format!(
            "[...document.querySelectorAll('.session')].find((it) => it.querySelector('h2').textContent.includes('{}'))?.innerText",
            program.key()
        ));
        found.as_str().unwrap().to_string()
    };
    let told = || inspected.api("GET", "/conversations/talk/sessions", &Value::Null)["sessions"].clone();
    // The one that spoke last has everything; the other has not heard what was said since.
    let last = seen(Program::Codex);
    assert!(last.contains("It holds everything, up to #"), "{last}");
    let first = seen(Program::ClaudeCode);
    assert!(first.contains("The rest is told at the next call."), "{first}");
    assert!(first.contains("Nothing of it is stale.") && last.contains("Nothing of it is stale."), "{first}\n{last}");
    for session in told().as_array().unwrap() {
        let id = session["id"].as_str().unwrap();
        assert!(first.contains(id) || last.contains(id), "{id}");
    }
    browser.pictures("sessions-held");

    // While one looks, calls go on; what the program still reads in full is seen without loading anything again.
    browser.until("document.querySelector('#live.on')");
    browser.runs("window.isSamePage = true");
    for nth in 0..3 {
        place.says(Program::Codex.name(), &format!("Go on, {nth}."), "Yes.", &more);
    }
    browser.until("document.body.innerText.includes('tokens are stale')");
    let sessions = told();
    for session in sessions.as_array().unwrap() {
        // The other one was not called since, so nobody has looked at what it reads.
        let is_called = session["provider"] == Program::Codex.key();
        assert_eq!(!session["stale"].as_array().unwrap().is_empty(), is_called, "{sessions:#}");
    }
    browser.until("document.querySelector('.session .compare')");
    assert_eq!(browser.runs("return window.isSamePage"), Value::Bool(true));
    browser.pictures("sessions-stale");
    browser.is_quiet();
}
