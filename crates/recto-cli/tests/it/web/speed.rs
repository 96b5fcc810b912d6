use super::browser::{Browser, END, ENTER};
use super::{Inspected, command};
use crate::run::Folder;
use serde_json::{Value, json};

/// How many entries are appended at once.
const BATCH: usize = 1_000;
/// How much longer the first look at a long conversation may take.
const RATIO_MAX: f64 = 3.0;
/// How often each is measured; the quickest counts.
const ROUNDS: usize = 5;

/// What opening a very long conversation may ask for: the page itself is as long as the window lets it be.
const LONG: usize = 100_000;
const REQUESTS_MAX: u64 = 8;
const BYTES_MAX: u64 = 1_000_000;
/// How many rows of a list may be drawn, and how many elements any view may have.
const ROWS_MAX: u64 = 60;
const ELEMENTS_MAX: u64 = 1_500;

/// Who says what, at a place.
fn said(at: usize) -> (&'static str, String) {
    let role = if at.is_multiple_of(2) { "user" } else { "assistant" };
    (role, format!("Entry {at}. {}", "Some words that fill a line or two. ".repeat(4)))
}

fn filled(inspected: &Inspected, name: &str, entries: usize) {
    inspected.api("POST", "/conversations", &json!({"conversation": name}));
    let entry = |at: usize| {
        let (role, words) = said(at);
        json!({"role": role, "text": words})
    };
    for first in (0..entries).step_by(BATCH) {
        let batch: Vec<Value> = (first..(first + BATCH).min(entries)).map(entry).collect();
        inspected.api("POST", &format!("/conversations/{name}/entries"), &json!({"entries": batch}));
    }
}

/// Opens a conversation anew, and returns after how many milliseconds its first entries stood there.
fn opened(browser: &Browser, inspected: &Inspected, name: &str) -> f64 {
    browser.goes("about:blank");
    browser.goes(&inspected.at(&format!("#/c/{name}/main")));
    browser.until("document.querySelector('.entry .words')");
    let mark = browser.until("performance.getEntriesByName('recto:entries')[0]?.startTime");
    mark.as_f64().unwrap()
}

#[test]
fn a_long_conversation_is_seen_about_as_soon_as_a_short_one() {
    let Some(browser) = Browser::start("inspector, speed") else { return };
    let inspected = Inspected::empty();
    filled(&inspected, "short", 50);
    filled(&inspected, "long", 5_000);
    let mut best = [f64::MAX; 2];
    for _ in 0..ROUNDS {
        for (at, name) in ["short", "long"].iter().enumerate() {
            best[at] = best[at].min(opened(&browser, &inspected, name));
        }
    }
    let [short, long] = best;
    assert!(long <= short * RATIO_MAX, "{long:.0} ms against {short:.0} ms");
    // Only what is in sight is drawn, wherever one looks.
    browser.until("document.querySelector('.legend .fate')");
    browser.presses(&["j", END]);
    browser.until("document.querySelector('.entry[data-seq=\"4999\"] .words')");
    let drawn = browser.runs("return document.querySelectorAll('.entry').length");
    assert!(drawn.as_u64() < Some(60), "{drawn} rows");
}

/// A store with a conversation of so many messages, imported at once.
fn imported(entries: usize) -> Folder {
    let folder = Folder::new();
    let message = |at: usize| {
        let (role, words) = said(at);
        json!({"role": role, "content": words})
    };
    let messages: Vec<Value> = (0..entries).map(message).collect();
    let file = folder.file("endless.json", json!({"messages": messages}).to_string());
    let ran = command(&folder, &["import", &file]).output().unwrap();
    assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
    folder
}

#[test]
fn a_hundred_thousand_entries_are_looked_at_in_small_parts() {
    let Some(browser) = Browser::start("inspector, endless") else { return };
    let inspected = Inspected::serving(imported(LONG), &[]);
    browser.goes(&inspected.at("#/c/endless/main"));
    browser.until("document.querySelector('.entry .words') && document.querySelector('.legend .fate')");
    browser.says("100\u{202f}000 entries");
    let asked = "performance.getEntriesByType('resource').filter((it) => it.name.includes('/api/'))";
    let asked = || {
        browser.runs(&format!(
            "const all = {asked}; return [all.length, all.reduce((sum, it) => sum + it.decodedBodySize, 0)]"
        ))
    };
    let rows = || browser.runs("return document.querySelectorAll('.entry, .run').length").as_u64();
    let first = asked();
    assert!(first[0].as_u64() <= Some(REQUESTS_MAX) && first[1].as_u64() <= Some(BYTES_MAX), "{first}");
    assert!(rows() <= Some(ROWS_MAX));
    // Both ends, and the middle of what is not on the page: it is one row until somebody looks at it.
    browser.presses(&["j", END]);
    browser.until("document.querySelector('.entry[data-seq=\"99999\"] .words')");
    assert!(rows() <= Some(ROWS_MAX));
    browser.runs("document.querySelector('.scroller').scrollTop = 0");
    browser.until("document.querySelector('.run button')");
    browser.pictures("endless");
    browser.runs("document.querySelector('.run button').focus()");
    browser.presses(&[ENTER]);
    browser.runs("const list = document.querySelector('.scroller'); list.scrollTop = list.scrollHeight / 2");
    browser.until("[...document.querySelectorAll('.entry .said .words')].some((it) => { const at = Number(it.textContent.match(/Entry (\\d+)/)?.[1]); return at > 3_000 && at < 95_000; })");
    assert!(rows() <= Some(ROWS_MAX));
    let then = asked();
    assert!(then[1].as_u64() <= Some(2 * BYTES_MAX), "{then}");
    for view in ["turn/next", "money", "what-if/next", "sessions"] {
        browser.goes(&inspected.at(&format!("#/c/endless/main/{view}")));
        browser.until("document.querySelector('.card, .what-if, .empty')");
        let elements = browser.runs("return document.querySelectorAll('*').length").as_u64();
        assert!(elements <= Some(ELEMENTS_MAX), "{view}: {elements:?}");
    }
    browser.is_quiet();
}

#[test]
fn thousands_of_conversations_are_listed_a_page_at_a_time() {
    let Some(browser) = Browser::start("inspector, many") else { return };
    let folder = Folder::new();
    let talk = |at: usize| json!({"id": format!("talk-{at:04}"), "messages": [{"role": "user", "content": format!("Question {at}?")}]});
    let talks: String = (0..3_000).map(|at| format!("{}\n", talk(at))).collect();
    let file = folder.file("talks.jsonl", talks);
    let ran = command(&folder, &["import", &file]).output().unwrap();
    assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
    let inspected = Inspected::serving(folder, &[]);
    browser.goes(&inspected.at(""));
    browser.until("document.querySelector('.conversation')");
    let bytes = browser.runs("return performance.getEntriesByType('resource').filter((it) => it.name.includes('/api/')).reduce((sum, it) => sum + it.decodedBodySize, 0)");
    assert!(bytes.as_u64() <= Some(200_000), "{bytes} bytes");
    let rows = || browser.runs("return document.querySelectorAll('.conversation').length").as_u64();
    assert!(rows() <= Some(ROWS_MAX), "{:?}", rows());
    browser.runs("const list = document.querySelector('.scroller'); list.scrollTop = list.scrollHeight");
    browser.until("[...document.querySelectorAll('.conversation')].some((it) => Number(it.dataset.index) > 40)");
    assert!(rows() <= Some(ROWS_MAX), "{:?}", rows());
    browser.presses(&["/"]);
    browser.presses(&["2", "9", "9", "8"]);
    browser.until("document.querySelectorAll('.conversation').length === 1 && document.querySelector('.conversation').textContent.includes('Question 2998?')");
    browser.is_quiet();
}
