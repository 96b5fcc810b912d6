use super::Inspected;
use super::browser::{Browser, send};
use serde_json::Value;

/// The modules of the page, checked where they run.
const MODULES: &str = include_str!("modules.js");

#[test]
fn the_arithmetic_of_the_page_comes_out() {
    let Some(browser) = Browser::start("inspector, arithmetic") else { return };
    let inspected = Inspected::demo();
    browser.goes(&inspected.at(""));
    let found = browser.runs(&format!("const base = '/assets'; {MODULES}"));
    assert_eq!(found["wrong"], Value::Array(Vec::new()), "{found:#}");
    assert!(found["checks"].as_u64() > Some(60), "{found}");
    // The same with a wrong expectation, so that it is known to be able to fail.
    let wrong = MODULES.replace("'1\\u202f234\\u202f567'", "'1234567'");
    assert_ne!(wrong, MODULES);
    let found = browser.runs(&format!("const base = '/assets'; {wrong}"));
    assert_eq!(found["wrong"].as_array().map(Vec::len), Some(1), "{found}");
}

#[test]
fn every_view_shows_the_bundled_conversation() {
    let Some(browser) = Browser::start("inspector, views") else { return };
    let inspected = Inspected::demo();
    for scheme in ["light", "dark"] {
        browser.prefers(scheme);
        browser.goes(&inspected.at(""));
        browser.until("document.querySelectorAll('.conversation').length === 1");
        browser.says("194 entries");
        browser.until("document.querySelector('#live.on')");
        browser.pictures(&format!("conversations-{scheme}"));

        browser.goes(&inspected.at("#/c/late-fees/main/page/76"));
        browser.until("document.querySelectorAll('.entry').length > 3");
        browser.says("read 183 messages under the policy default");
        browser.presses(&["n", "n", "n"]);
        browser
            .until("document.activeElement.dataset.seq === '6' && document.querySelector('[data-seq=\"6\"] .words')");
        let row = browser.runs("return document.activeElement.innerText");
        for words in ["changed", "11\u{202f}952 → 16", "excerpt", "307 of 307 lines left out", "nightly 1187 started"]
        {
            assert!(row.as_str().unwrap().contains(words), "{words}: {row}");
        }
        browser.pictures(&format!("page-{scheme}"));
        browser.presses(&["c"]);
        browser.says("cache line");

        browser.goes(&inspected.at("#/c/late-fees/main/turn/10"));
        for words in ["Where the tokens go", "a window of 32\u{202f}000", "The prefix broke at entry #3", "excerpt"] {
            browser.says(words);
        }
        browser.clicks("button", "Show the exact request");
        browser.says("byte for byte as the page was made then");
        browser.pictures(&format!("turn-{scheme}"));

        browser.goes(&inspected.at("#/c/late-fees/main/money"));
        for words in ["Input, with everything", "Money so far", "When reductions were applied", "Rent"] {
            browser.says(words);
        }
        browser.until("document.querySelectorAll('.chart svg .series').length >= 5");
        browser.pictures(&format!("money-{scheme}"));

        browser.goes(&inspected.at("#/c/late-fees/main/sessions"));
        browser.says("No provider remembers this conversation");
        browser.pictures(&format!("sessions-{scheme}"));
    }
    browser.is_quiet();
}

#[test]
fn the_bytes_that_are_shown_are_those_of_the_request() {
    let Some(browser) = Browser::start("inspector, bytes") else { return };
    let inspected = Inspected::demo();
    let path = "/api/v1/conversations/late-fees/readers/main/turns/3/request";
    let (status, _, bytes) = send(&inspected.url, "GET", path, &[], &Value::Null).unwrap();
    assert_eq!(status, 200);
    browser.goes(&inspected.at("#/c/late-fees/main/turn/3"));
    browser.clicks("button", "Show the exact request");
    browser.until("document.querySelector('.bytes')?.textContent.length > 1000");
    let shown = browser.runs("return document.querySelector('.bytes').textContent");
    let shown = shown.as_str().unwrap();
    assert!(String::from_utf8(bytes).unwrap().starts_with(shown), "{shown}");
}

#[test]
fn a_copied_command_sends_the_bytes_of_the_request() {
    let Some(browser) = Browser::start("inspector, curl") else { return };
    let inspected = Inspected::demo();
    let path = "/api/v1/conversations/late-fees/readers/main/turns/3/request";
    let (_, _, bytes) = send(&inspected.url, "GET", path, &[], &Value::Null).unwrap();
    browser.allows_copying();
    browser.goes(&inspected.at("#/c/late-fees/main/turn/3"));
    browser.clicks("button", "Show the exact request");
    browser.clicks("button", "Copy as curl");
    browser.says("Command copied");
    let command = browser.runs("return navigator.clipboard.readText()");
    let command = command.as_str().unwrap();
    assert!(command.starts_with("curl https://api.openai.com/v1/chat/completions"), "{command}");
    // A shell takes it apart as it would for curl; the last word is the body.
    let script = format!("curl() {{ for word; do :; done; printf %s \"$word\"; }}\n{command}\n");
    let ran = std::process::Command::new("sh").arg("-c").arg(script).env_clear().output().unwrap();
    assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
    assert!(ran.stdout == bytes, "{} bytes, not {}", ran.stdout.len(), bytes.len());
    browser.is_quiet();
}

#[test]
fn a_page_that_cannot_be_shown_says_what_to_do() {
    let Some(browser) = Browser::start("inspector, failures") else { return };
    let inspected = Inspected::empty();
    browser.goes(&inspected.at(""));
    browser.says("No conversation yet");
    browser.says(&format!("OPENAI_BASE_URL={}/v1", inspected.url));
    browser.goes(&inspected.at("#/c/nowhere/main"));
    browser.says("no conversation \"nowhere\"");
    browser.until("[...document.querySelectorAll('button')].some((it) => it.textContent === 'Try again')");
}

#[test]
fn a_narrow_screen_needs_no_sideways_scrolling() {
    let Some(browser) = Browser::start("inspector, narrow") else { return };
    let inspected = Inspected::demo();
    browser.sized(390, 844);
    let views = ["", "#/c/late-fees/main/page/76", "#/c/late-fees/main/turn/76", "#/c/late-fees/main/money"];
    for (at, view) in views.iter().chain(&["#/c/late-fees/main/what-if/76", "#/c/late-fees/main/sessions"]).enumerate()
    {
        browser.goes(&inspected.at(view));
        browser.until("document.querySelector('.conversation, .entry .words, .card, .what-if, .empty')");
        let wide = browser.runs(
            "return [...document.querySelectorAll('main, .view, .body, .scroller, .sheet')].filter((it) => it.scrollWidth > it.clientWidth + 1).map((it) => `${it.className} ${it.scrollWidth} > ${it.clientWidth}`)",
        );
        assert_eq!(wide, Value::Array(Vec::new()), "{view}");
        browser.pictures(&format!("narrow-{at}"));
    }
    browser.is_quiet();
}
