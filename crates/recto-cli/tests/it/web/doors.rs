use super::Inspected;
use super::browser::{Browser, asks, send};
use serde_json::{Value, json};

#[test]
fn a_key_is_pasted_once_and_then_it_is_looked_only() {
    let Some(browser) = Browser::start("inspector, signing in") else { return };
    let (inspected, key) = Inspected::guarded();
    let header = format!("x-recto-key: {key}");
    let with_key = |method: &str, path: &str, body: &Value| {
        let (status, answer) = asks(&inspected.url, method, &format!("/api/v1{path}"), &[&header], body);
        assert!((200..300).contains(&status), "{method} {path}: {status} {answer}");
        answer
    };
    with_key("POST", "/conversations", &json!({"conversation": "behind"}));
    let said = json!({"entries": [{"role": "user", "text": "Only for those with a key."}]});
    with_key("POST", "/conversations/behind/entries", &said);

    browser.goes(&inspected.at(""));
    browser.says("Who is looking?");
    assert!(!browser.words().contains("behind"));
    browser.runs("document.querySelector('#key').value = 'recto_0'; document.querySelector('.door').requestSubmit()");
    browser.says("That key opens nothing here");
    let typed = format!(
        "document.querySelector('#key').value = {}; document.querySelector('.door').requestSubmit()",
        json!(key)
    );
    browser.runs(&typed);
    browser.says("Only for those with a key.");
    assert_eq!(browser.runs("return document.cookie"), json!(""), "no script can read it");
    browser.goes(&inspected.at("#/c/behind/main"));
    browser.until("document.querySelector('.entry .words')");
    browser.pictures("signed-in");

    // Pinning changes something, so the key is asked for.
    browser.until("document.querySelector('.entry[data-seq=\"0\"]').click() ?? true");
    browser.clicks(".drawer button", "Pin");
    browser.says("A key is needed");
    browser.runs(&format!(
        "const field = document.querySelector('#key-again'); field.value = {}; field.form.requestSubmit()",
        json!(key)
    ));
    browser.says("is pinned from the next page on");

    browser.clicks("button", "Sign out");
    browser.says("Who is looking?");
}

#[test]
fn a_session_opens_what_there_is_to_see_and_changes_nothing() {
    let (inspected, key) = Inspected::guarded();
    let session = |headers: &[&str], body: &Value| send(&inspected.url, "POST", "/session", headers, body).unwrap();
    let (status, head, _) = session(&[], &json!({"key": key}));
    assert_eq!(status, 200, "{head}");
    let cookie = head.lines().find_map(|line| line.strip_prefix("set-cookie: ")).unwrap();
    assert!(cookie.contains("httponly") && cookie.contains("samesite=strict"), "{cookie}");
    let cookie = format!("Cookie: {}", cookie.split(';').next().unwrap());
    let asked = |method: &str, path: &str, more: &[&str], body: &Value| {
        asks(&inspected.url, method, path, &[&[&*cookie], more].concat(), body).0
    };
    let none = &Value::Null;
    assert_eq!(asked("GET", "/api/v1/conversations", &[], none), 200);
    assert_eq!(asks(&inspected.url, "GET", "/api/v1/conversations", &[], none).0, 401, "only with it");
    // Nothing that changes anything, nothing of the gateway, and nobody else's page.
    assert_eq!(asked("POST", "/api/v1/conversations", &[], &json!({"conversation": "mine"})), 403);
    assert_eq!(asked("DELETE", "/api/v1/conversations/any", &[], none), 403);
    assert_eq!(asked("POST", "/v1/chat/completions", &[], &json!({"model": "gpt-4o", "messages": []})), 401);
    assert_eq!(asked("GET", "/v1/models", &[], none), 401);
    assert_eq!(asked("GET", "/metrics", &[], none), 401);
    assert_eq!(asked("GET", "/api/v1/conversations", &["Origin: http://localhost:3000"], none), 403);
    assert_eq!(asked("GET", "/api/v1/conversations", &["Sec-Fetch-Site: same-site"], none), 401);
    assert_eq!(session(&["Origin: http://evil.test"], &json!({"key": key})).0, 403);
    assert_eq!(session(&[], &json!({"key": "recto_0"})).0, 401);
    assert_eq!(session(&[], &json!({"keys": key})).0, 400);
    // A key that is revoked ends its sessions; so does signing out.
    assert_eq!(session(&[&cookie], &json!({})).0, 200);
    assert_eq!(asked("GET", "/api/v1/conversations", &[], none), 401);
}

#[test]
fn a_session_ends_with_the_key_it_was_begun_with() {
    let (inspected, key) = Inspected::guarded();
    let (status, head, _) = send(&inspected.url, "POST", "/session", &[], &json!({"key": key})).unwrap();
    assert_eq!(status, 200);
    let cookie = head.lines().find_map(|line| line.strip_prefix("set-cookie: ")).unwrap();
    let cookie = format!("Cookie: {}", cookie.split(';').next().unwrap());
    let looks = || asks(&inspected.url, "GET", "/api/v1/conversations", &[&cookie], &Value::Null).0;
    assert_eq!(looks(), 200);
    // Without any key left, everybody on this machine could look.
    let another = super::command(&inspected.folder, &["keys", "add", "another"]).output().unwrap();
    assert!(another.status.success(), "{}", String::from_utf8_lossy(&another.stderr));
    let revoked = super::command(&inspected.folder, &["keys", "revoke", "looking"]).output().unwrap();
    assert!(revoked.status.success(), "{}", String::from_utf8_lossy(&revoked.stderr));
    let start = std::time::Instant::now();
    while looks() == 200 {
        assert!(start.elapsed().as_secs() < 30, "it is still open");
    }
    assert_eq!(looks(), 401);
}

#[test]
fn the_files_say_what_a_page_may_do() {
    let inspected = Inspected::empty();
    let get = |path: &str, headers: &[&str]| send(&inspected.url, "GET", path, headers, &Value::Null).unwrap();
    for path in ["/", "/assets/app.js", "/assets/app.css", "/assets/icon.svg"] {
        let (status, head, body) = get(path, &[]);
        assert_eq!(status, 200, "{path}");
        assert!(!body.is_empty());
        for line in [
            "content-security-policy: default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; \
             img-src 'self' data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'\r\n",
            "x-content-type-options: nosniff\r\n",
            "referrer-policy: no-referrer\r\n",
            "cache-control: no-cache\r\n",
        ] {
            assert!(head.contains(line), "{path}: no {line:?} in {head}");
        }
        let tag = head.lines().find_map(|line| line.strip_prefix("etag: ")).unwrap();
        assert_eq!(get(path, &[&format!("If-None-Match: {tag}")]).0, 304, "{path}");
    }
    for path in ["/assets/", "/assets/nothing.js", "/assets/..%2FCargo.toml", "/index.html"] {
        assert_eq!(get(path, &[]).0, 404, "{path}");
    }
    assert_eq!(get("/", &["Host: evil.test"]).0, 400, "two hosts");
    assert_eq!(get("/", &["Origin: http://evil.test"]).0, 403);
}

#[test]
fn files_can_be_worked_on_in_a_folder() {
    let folder = crate::run::Folder::new();
    let files = crate::run::Folder::new();
    files.file("index.html", "<p>My own page");
    let more = ["--web-dir", files.path.to_str().unwrap()];
    let inspected = Inspected::serving(folder, &more);
    let get = |path: &str| send(&inspected.url, "GET", path, &[], &Value::Null).unwrap();
    assert_eq!(get("/").2, b"<p>My own page");
    files.file("index.html", "<p>Once more");
    assert_eq!(get("/").2, b"<p>Once more");
    assert_eq!(get("/assets/app.js").0, 404, "it is not there");
}
