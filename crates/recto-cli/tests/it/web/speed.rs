use super::Inspected;
use super::browser::Browser;
use serde_json::{Value, json};

/// How many entries are appended at once.
const BATCH: usize = 1_000;
/// How much longer the first look at a long conversation may take.
const RATIO_MAX: f64 = 3.0;
/// How often each is measured; the quickest counts.
const ROUNDS: usize = 5;

fn filled(inspected: &Inspected, name: &str, entries: usize) {
    inspected.api("POST", "/conversations", &json!({"conversation": name}));
    let entry = |at: usize| {
        let role = if at.is_multiple_of(2) { "user" } else { "assistant" };
        json!({"role": role, "text": format!("Entry {at}. {}", "Some words that fill a line or two. ".repeat(4))})
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
    browser.presses(&["j", super::browser::END]);
    browser.until("document.querySelector('.entry[data-seq=\"4999\"] .words')");
    let drawn = browser.runs("return document.querySelectorAll('.entry').length");
    assert!(drawn.as_u64() < Some(60), "{drawn} rows");
}
