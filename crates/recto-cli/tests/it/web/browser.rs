//! A browser that is told what to do, over WebDriver: JSON over plain HTTP.

use crate::run::Folder;
use recto_testkit::shared::skipped;
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::PathBuf;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::Duration;

/// How long something may take to be seen.
const PATIENCE: Duration = Duration::from_secs(60);
/// What keeps the browser to itself: no window, no sandbox that needs rights, nothing fetched from anywhere.
const FLAGS: [&str; 12] = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--disable-dev-shm-usage",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-extensions",
    "--no-proxy-server",
    "--hide-scrollbars",
];
/// What keys are called.
pub(super) const ENTER: &str = "\u{E007}";
pub(super) const ESCAPE: &str = "\u{E00C}";
pub(super) const TAB: &str = "\u{E004}";
pub(super) const DOWN: &str = "\u{E015}";
pub(super) const END: &str = "\u{E010}";

/// A browser with one page.
pub(super) struct Browser {
    driver: Child,
    url: String,
    session: String,
    /// Whoever speaks must be heard to the end.
    _said: BufReader<ChildStdout>,
    _profile: Folder,
}

impl Browser {
    /// Starts one, or says loudly that the test is skipped.
    pub(super) fn start(test: &str) -> Option<Browser> {
        let program = |variable: &str, names: &[&str]| {
            let named = std::env::var_os(variable).map(PathBuf::from);
            named.or_else(|| names.iter().find_map(|name| in_path(name)))
        };
        let chromium = program("RECTO_CHROMIUM", &["chromium", "chromium-browser", "google-chrome"]);
        let driver = program("RECTO_CHROMEDRIVER", &["chromedriver"]);
        let (Some(chromium), Some(driver)) = (chromium, driver) else {
            skipped(&format!("{test}: no chromium and chromedriver (Debian: chromium, chromium-driver)"));
            return None;
        };
        let mut driver = Command::new(driver)
            .arg("--port=0")
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut said = BufReader::new(driver.stdout.take().unwrap());
        let port = loop {
            let mut line = String::new();
            assert_ne!(said.read_line(&mut line).unwrap(), 0, "the driver does not say where it listens");
            // It says first which port it was asked for.
            if let Some((_, port)) = line.trim().trim_end_matches('.').split_once("successfully on port ") {
                break port.to_string();
            }
        };
        let url = format!("http://127.0.0.1:{port}");
        let profile = Folder::new();
        let folder = format!("--user-data-dir={}", profile.path.display());
        let args: Vec<&str> = FLAGS.into_iter().chain([&*folder]).collect();
        let options = json!({"binary": chromium.to_str().unwrap(), "args": args});
        let wanted = json!({"goog:chromeOptions": options, "goog:loggingPrefs": {"browser": "ALL"}});
        let mut browser = Browser { driver, url, session: String::new(), _said: said, _profile: profile };
        let made = browser.tells("POST", "/session", &json!({"capabilities": {"alwaysMatch": wanted}}));
        browser.session = format!("/session/{}", made["sessionId"].as_str().unwrap());
        browser.tells("POST", &browser.path("/timeouts"), &json!({"script": PATIENCE.as_millis() as u64}));
        browser.sized(1440, 900);
        Some(browser)
    }

    fn path(&self, rest: &str) -> String {
        format!("{}{rest}", self.session)
    }

    #[track_caller]
    fn tells(&self, method: &str, path: &str, body: &Value) -> Value {
        let (status, mut answer) = asks(&self.url, method, path, &[], body);
        assert_eq!(status, 200, "{method} {path}: {answer}");
        answer["value"].take()
    }

    /// Opens an address; only another place of the same page is not loaded anew.
    #[track_caller]
    pub(super) fn goes(&self, url: &str) {
        self.tells("POST", &self.path("/url"), &json!({"url": url}));
    }

    /// Gives the page so much room.
    #[track_caller]
    pub(super) fn sized(&self, width: u32, height: u32) {
        let params = json!({"width": width, "height": height, "deviceScaleFactor": 1, "mobile": false});
        self.commands("Emulation.setDeviceMetricsOverride", &params);
    }

    /// Prefers dark or light colours.
    #[track_caller]
    pub(super) fn prefers(&self, scheme: &str) {
        let feature = json!({"name": "prefers-color-scheme", "value": scheme});
        self.commands("Emulation.setEmulatedMedia", &json!({"features": [feature]}));
    }

    /// Lets pages use the clipboard.
    #[track_caller]
    pub(super) fn allows_copying(&self) {
        let wanted = json!({"permissions": ["clipboardReadWrite", "clipboardSanitizedWrite"]});
        self.commands("Browser.grantPermissions", &wanted);
    }

    #[track_caller]
    fn commands(&self, command: &str, params: &Value) {
        self.tells("POST", &self.path("/goog/cdp/execute"), &json!({"cmd": command, "params": params}));
    }

    /// Runs the body of a function in the page, and returns what it returns.
    #[track_caller]
    pub(super) fn runs(&self, body: &str) -> Value {
        let script = format!("return (async () => {{ {body} }})()");
        self.tells("POST", &self.path("/execute/sync"), &json!({"script": script, "args": []}))
    }

    /// Waits until an expression is true of the page, and returns its value.
    #[track_caller]
    pub(super) fn until(&self, expression: &str) -> Value {
        let limit = PATIENCE.as_millis() / 2;
        let found = self.runs(&format!(
            "const start = performance.now();
             for (;;) {{
                 let value = null;
                 try {{ value = {expression}; }} catch {{ /* Not yet. */ }}
                 if (value) return value;
                 if (performance.now() - start > {limit}) return null;
                 await new Promise((next) => setTimeout(next, 20));
             }}"
        ));
        assert!(!found.is_null(), "not seen: {expression}\n{}", self.words());
        found
    }

    /// Waits until the page says something.
    #[track_caller]
    pub(super) fn says(&self, words: &str) {
        self.until(&format!("document.body.innerText.includes({})", Value::from(words)));
    }

    /// Returns everything that can be read on the page.
    #[track_caller]
    pub(super) fn words(&self) -> String {
        self.runs("return document.body.innerText").as_str().unwrap_or_default().into()
    }

    /// Clicks the first element that a selector finds, and that says these words.
    #[track_caller]
    pub(super) fn clicks(&self, selector: &str, words: &str) {
        let (selector, words) = (Value::from(selector), Value::from(words));
        self.until(&format!(
            "(() => {{ const found = [...document.querySelectorAll({selector})].find((it) => !it.disabled && it.checkVisibility() && it.textContent.includes({words})); found?.click(); return Boolean(found); }})()"
        ));
    }

    /// Presses keys, one after the other.
    #[track_caller]
    pub(super) fn presses(&self, keys: &[&str]) {
        let press = |key: &&str| [json!({"type": "keyDown", "value": key}), json!({"type": "keyUp", "value": key})];
        let actions: Vec<Value> = keys.iter().flat_map(press).collect();
        let keyboard = json!({"type": "key", "id": "keyboard", "actions": actions});
        self.tells("POST", &self.path("/actions"), &json!({"actions": [keyboard]}));
    }

    /// Keeps a picture of what is seen.
    #[track_caller]
    pub(super) fn pictures(&self, name: &str) {
        let picture = self.tells("GET", &self.path("/screenshot"), &Value::Null);
        let bytes = base64(picture.as_str().unwrap());
        assert!(bytes.starts_with(b"\x89PNG"));
        let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("../inspector");
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::write(folder.join(format!("{name}.png")), bytes).unwrap();
    }

    /// Fails if the page complained about anything since it was asked last.
    #[track_caller]
    pub(super) fn is_quiet(&self) {
        let log = self.complaints();
        assert!(log.is_empty(), "{log:#?}");
    }

    /// What the page complained about since it was asked last.
    #[track_caller]
    pub(super) fn complaints(&self) -> Vec<String> {
        let log = self.tells("POST", &self.path("/se/log"), &json!({"type": "browser"}));
        log.as_array().unwrap().iter().map(|line| line["message"].to_string()).collect()
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        if !self.session.is_empty() && !std::thread::panicking() {
            asks(&self.url, "DELETE", &self.session, &[], &Value::Null);
        }
        if std::thread::panicking() {
            // Its browser must go, too; the driver ends it when it is asked to.
            drop(send(&self.url, "GET", "/shutdown", &[], &Value::Null));
        }
        drop(self.driver.kill());
        drop(self.driver.wait());
    }
}

fn in_path(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path).map(|folder| folder.join(name)).find(|place| place.is_file())
}

/// Asks a server on this machine, and returns the status and the JSON of the answer.
#[track_caller]
pub(super) fn asks(url: &str, method: &str, path: &str, headers: &[&str], body: &Value) -> (u16, Value) {
    let (status, _, body) = send(url, method, path, headers, body).unwrap();
    (status, serde_json::from_slice(&body).unwrap_or_default())
}

/// Asks a server on this machine, and returns the status, the head and the body of the answer.
pub(super) fn send(
    url: &str,
    method: &str,
    path: &str,
    headers: &[&str],
    body: &Value,
) -> std::io::Result<(u16, String, Vec<u8>)> {
    let host = url.trim_start_matches("http://");
    let body = if body.is_null() { String::new() } else { body.to_string() };
    let lines: String = headers.iter().map(|line| format!("{line}\r\n")).collect();
    let mut stream = TcpStream::connect(host)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    let length = body.len();
    let head = format!("{method} {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n{lines}");
    stream.write_all(format!("{head}Content-Length: {length}\r\n\r\n{body}").as_bytes())?;
    let mut reader = BufReader::new(stream);
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        if reader.read_line(&mut head)? == 0 {
            break;
        }
    }
    let status = head.split(' ').nth(1).and_then(|status| status.parse().ok()).unwrap_or_default();
    let head = head.to_lowercase();
    let length = head.lines().find_map(|line| line.strip_prefix("content-length:")?.trim().parse::<u64>().ok());
    let mut bytes = Vec::new();
    match length {
        Some(length) => reader.take(length).read_to_end(&mut bytes)?,
        None => reader.read_to_end(&mut bytes)?,
    };
    if head.contains("transfer-encoding: chunked") {
        bytes = unchunked(&bytes);
    }
    Ok((status, head, bytes))
}

fn unchunked(mut bytes: &[u8]) -> Vec<u8> {
    let mut whole = Vec::new();
    while let Some(end) = bytes.windows(2).position(|it| it == b"\r\n") {
        let size = std::str::from_utf8(&bytes[..end]).ok().and_then(|it| usize::from_str_radix(it.trim(), 16).ok());
        let Some(size) = size.filter(|size| *size > 0) else { break };
        whole.extend_from_slice(&bytes[end + 2..end + 2 + size]);
        bytes = &bytes[end + 2 + size + 2..];
    }
    whole
}

fn base64(text: &str) -> Vec<u8> {
    const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let values = text.bytes().filter_map(|byte| LETTERS.iter().position(|letter| *letter == byte));
    let (mut bytes, mut bits, mut held) = (Vec::new(), 0_u32, 0);
    for value in values {
        bits = (bits << 6 | value as u32) & 0xffff;
        held += 6;
        if held >= 8 {
            held -= 8;
            bytes.push((bits >> held) as u8);
        }
    }
    bytes
}
