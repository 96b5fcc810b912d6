//! The inspector in a real browser, over a real server.
//!
//! Chromium is driven over WebDriver; `RECTO_CHROMIUM` and `RECTO_CHROMEDRIVER` name other programs than those in the
//! path. Pictures of what was seen are left in `target/inspector`.

mod browser; // a browser that is told what to do
mod changes; // what can be changed, and what changes by itself
mod doors; // signing in
mod hostile; // words that would like to be code
mod keyboard; // without a mouse
mod report; // the file that `recto replay` writes
mod sessions; // what providers hold that remember
mod speed; // long conversations
mod views; // what each view shows

use crate::run::{Folder, TODAY, isolated};
use browser::asks;
use recto_testkit::fake::Server;
use serde_json::Value;
use std::io::{BufRead, BufReader};
use std::process::{Child, Command};

/// A server that is looked at.
struct Inspected {
    _child: Running,
    url: String,
    folder: Folder,
}

impl Inspected {
    /// The bundled conversation, and nothing else.
    fn demo() -> Inspected {
        Inspected::serving(Folder::new(), &["--demo"])
    }

    /// A store of its own, and a provider behind it.
    fn before(fake: &Server) -> Inspected {
        let folder = Folder::new();
        let url = fake.url();
        let config = format!("[upstream.fake]\nurl = '{url}/v1'\nwire = 'openai_chat'\nmodels = ['*']\nretries = 0\n");
        folder.file("recto.toml", config);
        Inspected::serving(folder, &["--policy", "none"])
    }

    /// A store of its own.
    fn empty() -> Inspected {
        Inspected::serving(Folder::new(), &[])
    }

    /// A store of its own, with a key; returned as well.
    fn guarded() -> (Inspected, String) {
        let folder = Folder::new();
        let made = command(&folder, &["keys", "add", "looking"]).output().unwrap();
        assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
        let key = String::from_utf8(made.stdout).unwrap().trim().to_string();
        (Inspected::serving(folder, &[]), key)
    }

    fn serving(folder: Folder, more: &[&str]) -> Inspected {
        let serve = command(&folder, &[&["serve", "--listen", "127.0.0.1:0"], more].concat());
        Inspected { folder, ..Inspected::of(serve) }
    }

    /// Whatever a command serves, over a store that somebody else keeps.
    fn of(mut serve: Command) -> Inspected {
        let mut child = serve.spawn().unwrap();
        let mut url = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut url).unwrap();
        Inspected { _child: Running(child), url: url.trim().into(), folder: Folder::new() }
    }

    /// Returns the address of a view.
    fn at(&self, view: &str) -> String {
        format!("{}/{view}", self.url)
    }

    /// Asks the API, which must do it.
    #[track_caller]
    fn api(&self, method: &str, path: &str, body: &Value) -> Value {
        let body = if method == "GET" { Value::Null } else { body.clone() };
        let (status, answer) = asks(&self.url, method, &format!("/api/v1{path}"), &[], &body);
        assert!((200..300).contains(&status), "{method} {path}: {status} {answer}");
        answer
    }
}

/// A process that ends with the value.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        drop(self.0.kill());
        drop(self.0.wait());
    }
}

fn command(folder: &Folder, args: &[&str]) -> Command {
    let mut command = isolated(Command::new(env!("CARGO_BIN_EXE_recto")));
    command.args(args).current_dir(&folder.path).env("RECTO_TODAY", TODAY);
    if !args.contains(&"--demo") {
        command.env("RECTO_STORE", folder.at("kept.db"));
    }
    if folder.names().iter().any(|name| name == "recto.toml") {
        command.env("RECTO_CONFIG", folder.at("recto.toml"));
    }
    command
}
