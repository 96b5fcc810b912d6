use super::Inspected;
use super::browser::{Browser, DOWN, END, ENTER, ESCAPE, TAB};
use serde_json::json;

#[test]
fn everything_can_be_done_with_the_keyboard() {
    let Some(browser) = Browser::start("inspector, keyboard") else { return };
    let inspected = Inspected::demo();
    browser.goes(&inspected.at(""));
    browser.until("document.querySelector('.conversation')");
    // The first thing that the tabulator reaches leads past the header.
    browser.presses(&[TAB]);
    browser.until("document.activeElement.id === 'skip'");
    browser.presses(&["/", "l", "a", "t", "e"]);
    browser.until("document.activeElement.id === 'search' && document.activeElement.value === 'late'");
    browser.presses(&[DOWN]);
    browser.until("document.activeElement.classList.contains('conversation')");
    assert_eq!(
        browser.runs("return getComputedStyle(document.activeElement).outlineStyle"),
        json!("solid"),
        "what has the focus is seen"
    );
    browser.presses(&[ENTER]);
    browser.until("location.hash.startsWith('#/c/late-fees/main')");
    browser.until("document.querySelector('.entry.fate-changed .words')");

    browser.presses(&["n"]);
    browser.until("document.activeElement.dataset.seq === '3'");
    browser.presses(&[ENTER]);
    browser.until("document.querySelector('.drawer:not([hidden])')?.contains(document.activeElement)");
    browser.until("document.querySelector('.drawer .decided')");
    browser.presses(&["p"]);
    browser.says("#3 is pinned from the next page on");
    browser.presses(&[ESCAPE]);
    browser.until("document.querySelector('.drawer').hidden && document.activeElement.dataset.seq === '3'");
    browser.presses(&[DOWN, "j"]);
    browser.until("document.activeElement.dataset.seq === '5'");
    browser.presses(&[END]);
    browser.until("document.activeElement.dataset.seq === '191'");

    browser.presses(&["["]);
    browser.until("location.hash.endsWith('/page/79')");
    browser.presses(&["]"]);
    browser.until("location.hash.endsWith('/page/80')");
    for (key, tab) in [("2", "turn"), ("3", "money"), ("4", "what-if"), ("5", "sessions"), ("1", "page")] {
        browser.presses(&[key]);
        browser.until(&format!("location.hash.includes('/{tab}') && document.querySelector('.tabs [aria-current]')"));
    }
    browser.presses(&["?"]);
    browser.until("document.querySelector('dialog[open]')");
    browser.presses(&[ESCAPE]);
    browser.until("!document.querySelector('dialog[open]')");
    let scheme = "document.documentElement.dataset.theme";
    browser.presses(&["t"]);
    browser.until(&format!("{scheme} === 'light'"));
    browser.presses(&["t"]);
    browser.until(&format!("{scheme} === 'dark'"));
    browser.goes(&inspected.at("?again"));
    browser.until(&format!("{scheme} === 'dark'"));
    browser.is_quiet();
}

#[test]
fn everything_that_can_be_used_has_a_name() {
    let Some(browser) = Browser::start("inspector, names") else { return };
    let inspected = Inspected::demo();
    for view in ["page/76", "turn/76", "money", "what-if/76", "sessions"] {
        browser.goes(&inspected.at(&format!("#/c/late-fees/main/{view}")));
        browser.until("document.querySelector('.entry .words, .card, .what-if, .empty')");
        let nameless = browser.runs(
            "const named = (it) => it.getAttribute('aria-label') || it.textContent.trim() || it.labels?.length || it.getAttribute('aria-labelledby');
             return [...document.querySelectorAll('a, button, input, select, [tabindex], [role=img], [role=list], nav, dialog, aside')]
                 .filter((it) => it.id !== 'main' && !named(it)).map((it) => it.outerHTML.slice(0, 120))",
        );
        assert_eq!(nameless, json!([]), "{view}");
        let landmarks =
            browser.runs("return ['header', 'main', 'nav', 'h1'].filter((it) => !document.querySelector(it))");
        assert_eq!(landmarks, json!([]), "{view}");
    }
}
