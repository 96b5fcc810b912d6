use super::Inspected;
use super::browser::Browser;
use serde_json::{Value, json};

/// Words that would like to be code, or to be read otherwise than they are.
pub(super) const CORPUS: [&str; 14] = [
    "<img src=x onerror=\"window.canary=1\">",
    "<script>window.canary=1</script>",
    "\"><svg onload=window.canary=1>",
    "'-window.canary=1-'",
    "</title><script>window.canary=1</script>",
    "javascript:window.canary=1",
    "{{constructor.constructor('window.canary=1')()}}",
    "${window.canary=1}",
    "<iframe srcdoc=\"<script>parent.canary=1</script>\"></iframe>",
    "<a href=javascript:window.canary=1 autofocus onfocus=window.canary=1>x</a>",
    "\u{202e}evil\u{2066}txt.exe\u{200b}",
    "%3Cscript%3Ewindow.canary=1%3C/script%3E",
    "..%2f..%2f",
    "__proto__",
];

/// Writes hostile words wherever words can be.
fn written(inspected: &Inspected, at: usize, words: &str) -> String {
    let name = format!("h{at} {words}");
    let path = format!("/conversations/{}", encoded(&name));
    inspected.api("POST", "/conversations", &json!({"conversation": name, "title": words, "meta": {words: words}}));
    let entries = json!([
        {"role": "system", "text": words},
        {"role": "user", "text": words, "author": words, "section": words},
        {"role": "assistant", "author": words, "parts": [
            {"type": "text", "text": words}, {"type": "reasoning", "text": words},
            {"type": "call", "id": words, "name": words, "arguments": {"string": words}}]},
        {"role": "tool", "parts": [{"type": "result", "call": words, "content": [{"type": "text", "text": words}], "is_error": true}]},
        {"role": "user", "text": format!("{words}\n{words}")},
    ]);
    for entry in entries.as_array().unwrap() {
        let append = |entry: &Value| {
            let body = json!({"entries": [entry]});
            let url = &inspected.url;
            super::asks(url, "POST", &format!("/api/v1{path}/entries"), &[], &body)
        };
        let (status, answer) = append(entry);
        if status >= 300 {
            // Some words are no author or section; without them it is taken.
            let mut plain = entry.clone();
            plain.as_object_mut().unwrap().retain(|field, _| field != "author" && field != "section");
            let (status, again) = append(&plain);
            assert!(status < 300, "{answer} {again}");
        }
    }
    let reader = format!("{path}/readers/{}", encoded(words));
    let page = inspected.api(
        "POST",
        &format!("{reader}/compile"),
        &json!({
        "model": "gpt-4o", "fragments": [{"id": words, "content": words}], "input": {"role": "user", "text": words}}),
    );
    let reply = json!([{"role": "assistant", "text": words}]);
    inspected.api("POST", &format!("{reader}/acknowledge"), &json!({"ticket": page["ticket"], "entries": reply}));
    inspected.api("POST", &format!("{reader}/pins"), &json!({"first": 1, "last": 1}));
    format!("#/c/{}/{}", encoded(&name), encoded(words))
}

fn encoded(text: &str) -> String {
    text.bytes()
        .map(|byte| if byte.is_ascii_alphanumeric() { char::from(byte).to_string() } else { format!("%{byte:02X}") })
        .collect()
}

#[test]
fn hostile_words_run_nothing_in_any_field() {
    let Some(browser) = Browser::start("inspector, hostile words") else { return };
    let inspected = Inspected::empty();
    let places: Vec<String> = CORPUS.iter().enumerate().map(|(at, words)| written(&inspected, at, words)).collect();
    browser.goes(&inspected.at(""));
    browser.until(&format!("document.querySelectorAll('.conversation').length === {}", CORPUS.len()));
    browser.says("<img src=x onerror=\"window.canary=1\">");
    browser.says("\u{27e8}U+202E\u{27e9}evil\u{27e8}U+2066\u{27e9}txt.exe\u{27e8}U+200B\u{27e9}");
    browser.pictures("hostile");
    let intact = || {
        browser.runs("return [window.canary ?? null, document.querySelectorAll('main script, main iframe, main img, main a[href^=javascript]').length]")
    };
    assert_eq!(intact(), json!([null, 0]));
    for (place, words) in places.iter().zip(CORPUS) {
        for view in ["page/0", "turn/0", "money", "what-if/0", "sessions"] {
            browser.goes(&inspected.at(&format!("{place}/{view}")));
            browser.until("document.querySelector('.entry .words, .card, .what-if, .empty')");
            assert_eq!(intact(), json!([null, 0]), "{words}: {view}");
        }
        browser.goes(&inspected.at(&format!("{place}/page/0")));
        browser.until("document.querySelector('.entry[data-seq=\"2\"] .words')");
        browser.runs("document.querySelector('.entry[data-seq=\"2\"]').click()");
        browser.until("document.querySelector('.drawer:not([hidden]) pre.words')");
        assert_eq!(intact(), json!([null, 0]), "{words}: entry");
    }
    browser.is_quiet();
    // The same words do run where somebody takes them for markup, so the canary can sing.
    browser.goes("data:text/html,<body></body>");
    let sings = |words: &str| {
        browser.runs(&format!(
        "delete window.canary; document.body.innerHTML = {}; await new Promise((next) => setTimeout(next, 200)); return window.canary ?? null", json!(words)))
    };
    assert_eq!(sings(CORPUS[0]), json!(1));
    // And where the page's own policy holds, even that would not help them.
    browser.goes(&inspected.at(""));
    browser.until("document.querySelector('.conversation')");
    assert_eq!(sings(CORPUS[0]), json!(null));
    assert!(browser.complaints().iter().any(|line| line.contains("Content Security Policy")));
}
