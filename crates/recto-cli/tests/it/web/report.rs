//! `recto replay --html`: a file that is looked at as any other, without a server.

use super::browser::Browser;
use super::hostile::CORPUS;
use super::{Inspected, command};
use crate::run::{FIXTURE, Folder, SMALL};
use serde_json::{Value, json};
use std::fs;

/// Replays what there is, writes the report, and returns what the command says as JSON.
fn reported(folder: &Folder, args: &[&str]) -> Value {
    let out = folder.at("report.html");
    let ran = command(folder, &[&["replay", "--json", "--html", &out], args].concat()).output().unwrap();
    assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
    serde_json::from_slice(&ran.stdout).unwrap()
}

fn opened(browser: &Browser, folder: &Folder) {
    browser.goes(&format!("file://{}", folder.at("report.html")));
    browser.until("document.querySelector('footer')");
}

#[test]
fn a_report_shows_what_policies_cost_and_asks_nobody_for_anything() {
    let Some(browser) = Browser::start("report") else { return };
    let folder = Folder::new();
    let told = reported(&folder, &[FIXTURE, "--window", "32k", "--policy", "default,careful,frugal,first_chars"]);
    for scheme in ["light", "dark"] {
        browser.prefers(scheme);
        opened(&browser, &folder);
        let ground = browser.runs("return getComputedStyle(document.body).backgroundColor");
        let expected = if scheme == "light" { "rgb(250, 248, 244)" } else { "rgb(22, 23, 24)" };
        assert_eq!(ground, expected, "the style has the digest that the page's policy names");
        browser.pictures(&format!("report-{scheme}"));
        browser.runs("document.querySelector('#calls').scrollIntoView()");
        browser.pictures(&format!("report-{scheme}-calls"));
    }
    for outcome in told["policies"].as_array().unwrap() {
        let (name, measured) = (outcome["policy"].as_str().unwrap(), &outcome["total"]["measured"]);
        let cells = browser.runs(&format!(
            "const row = [...document.querySelectorAll('#policies ~ .scroll tbody tr')].find((it) => it.cells[0].textContent.endsWith({})); return [...row.cells].map((it) => it.firstChild.textContent)",
            json!(name)
        ));
        let (cost, recall) = (measured["cost"].as_f64().unwrap(), measured["recall"].as_f64().unwrap());
        assert_eq!((&cells[1], &cells[2]), (&json!(format!("{cost:.3}")), &json!(format!("{recall:.4}"))), "{cells}");
        let tokens = cells[3].as_str().unwrap().replace(' ', "");
        assert_eq!(tokens, outcome["total"]["tokens"].to_string(), "{cells}");
    }
    // One line for each policy and one for the whole history, on both charts.
    assert_eq!(browser.runs("return document.querySelectorAll('figure svg.wide path.line').length"), json!(10));
    let loaded = browser.runs("return [performance.getEntriesByType('resource').length, document.scripts.length]");
    assert_eq!(loaded, json!([0, 0]));
    let nameless = browser.runs(
        "const named = (it) => it.getAttribute('aria-label') || it.getAttribute('aria-labelledby') || it.textContent.trim();
         return [...document.querySelectorAll('svg:not([aria-hidden]), table, section, summary, [tabindex], h1, h2')].filter((it) => !named(it)).map((it) => it.outerHTML.slice(0, 100))",
    );
    assert_eq!(nameless, json!([]));
    browser.is_quiet();
}

#[test]
fn a_report_can_be_read_on_a_narrow_screen_and_without_a_mouse() {
    let Some(browser) = Browser::start("report, narrow") else { return };
    let folder = Folder::new();
    let talk = |id: &str| format!("{{\"id\":\"{id}\",{}\n", &SMALL.replace('\n', "")[1..]);
    let long = "a name without any place to break it ".repeat(4).replace(' ', "_");
    let file = folder.file("talks.jsonl", [talk("first"), talk(&long)].concat());
    reported(&folder, &[FIXTURE, &file, "--policy", "default,none"]);
    browser.sized(390, 844);
    opened(&browser, &folder);
    let wide = "document.documentElement.scrollWidth - document.documentElement.clientWidth";
    assert_eq!(browser.runs(&format!("return {wide}")), json!(0));
    let small = browser.runs("return [...document.querySelectorAll('figure svg')].filter((it) => it.checkVisibility()).flatMap((it) => [...it.querySelectorAll('text')].map((text) => text.getBoundingClientRect().height)).reduce((a, b) => Math.min(a, b))");
    assert!(small.as_f64() > Some(11.0), "letters of {small} pixels");
    browser.pictures("report-narrow");
    browser.runs("document.querySelector('details:not([open]) > summary').focus()");
    browser.presses(&[super::browser::ENTER]);
    browser.until("document.activeElement.parentElement.open");
    browser.runs("document.activeElement.scrollIntoView()");
    browser.pictures("report-narrow-opened");
    assert_eq!(browser.runs(&format!("return {wide}")), json!(0), "with everything that was opened");
    browser.is_quiet();
}

/// The whole history is what the policy `none` sends where no window ends it; so they must come to the same.
#[test]
fn the_whole_history_is_what_an_agent_sends_that_forgets_nothing() {
    let Some(browser) = Browser::start("report, whole history") else { return };
    let folder = Folder::new();
    let told = reported(&folder, &[FIXTURE, "--policy", "none", "--window", "0"]);
    opened(&browser, &folder);
    let cards = browser.runs("return [...document.querySelectorAll('.card b')].map((it) => it.textContent)");
    assert_eq!(cards[0], cards[1], "{cards}");
    assert_eq!(cards[0], json!(format!("${:.4}", told["total"]["usd"].as_f64().unwrap())));
    let lines = browser
        .runs("return [...document.querySelectorAll('figure svg.wide path.line')].map((it) => it.getAttribute('d'))");
    assert_eq!((&lines[0], &lines[2]), (&lines[1], &lines[3]), "tokens and money, call by call");
    browser.says("as much");
}

#[test]
fn hostile_words_run_nothing_in_a_report() {
    let Some(browser) = Browser::start("report, hostile words") else { return };
    let folder = Folder::new();
    let talks: String = CORPUS.iter().map(|words| {
        let messages = json!([{"role": "system", "content": words}, {"role": "user", "content": words}, {"role": "assistant", "content": words}, {"role": "user", "content": words}]);
        format!("{}\n", json!({"id": words, "messages": messages}))
    }).collect();
    let file = folder.file("talks.jsonl", talks);
    let policies: Vec<String> = CORPUS
        .iter()
        .take(5)
        .enumerate()
        .map(|(at, words)| folder.file(&format!("p{at}.json"), json!({"schema_version": 1, "name": words}).to_string()))
        .collect();
    reported(&folder, &[&file, "--for", CORPUS[0], "--policy", &policies.join(",")]);
    opened(&browser, &folder);
    browser.runs("document.querySelectorAll('details').forEach((it) => { it.open = true; })");
    for words in [
        CORPUS[0],
        CORPUS[1],
        CORPUS[8],
        "\u{27e8}U+202E\u{27e9}evil\u{27e8}U+2066\u{27e9}txt.exe\u{27e8}U+200B\u{27e9}",
    ] {
        browser.says(words);
    }
    let elements = "document.querySelectorAll('script, iframe, img, object, embed, link, form, base, a').length";
    assert_eq!(browser.runs(&format!("return [window.canary ?? null, {elements}]")), json!([null, 0]));
    browser.pictures("report-hostile");
    browser.is_quiet();

    // Were the words not escaped, they would be markup; and then the policy of the page would stand in their way.
    let text = fs::read_to_string(folder.at("report.html")).unwrap();
    let markup = text.replace("&lt;", "<").replace("&gt;", ">").replace("&quot;", "\"");
    folder.file("report.html", &markup);
    opened(&browser, &folder);
    assert_eq!(browser.runs("return window.canary ?? null"), json!(null));
    assert!(browser.complaints().iter().any(|line| line.contains("Content Security Policy")));
    folder.file("report.html", markup.replacen("Content-Security-Policy", "none", 1));
    opened(&browser, &folder);
    browser.until("window.canary === 1");
}

/// What the inspector writes out, so does a report: both must agree on every letter that is not seen.
#[test]
fn letters_that_are_not_seen_are_written_as_in_the_inspector() {
    let Some(browser) = Browser::start("report, letters") else { return };
    let ranges = [0..0x0300, 0x0340..0x0350, 0x0600..0x0620, 0x1150..0x1168, 0x17b0..0x17b8, 0x1800..0x1814];
    let more = [
        0x2000..0x2080,
        0x3160..0x3168,
        0xfef8..0xff02,
        0xffa0..0xffa2,
        0xfff0..0xfffe,
        0x1d170..0x1d180,
        0xe0000..0xe0080,
    ];
    let letters: Vec<char> = ranges.into_iter().chain(more).flatten().filter_map(char::from_u32).collect();
    let names: Vec<String> =
        letters.chunks(35).map(|some| some.iter().map(|letter| format!("a{letter}")).collect()).collect();
    let folder = Folder::new();
    let messages = json!([{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}]);
    let talks: String = names.iter().map(|name| format!("{}\n", json!({"id": name, "messages": messages}))).collect();
    reported(&folder, &[&folder.file("talks.jsonl", talks)]);
    opened(&browser, &folder);
    let shown = browser
        .runs("return [...document.querySelectorAll('#conversations ~ .scroll tbody th')].map((it) => it.textContent)");
    let inspected = Inspected::empty();
    browser.goes(&inspected.at(""));
    let expected = browser.runs(&format!("const {{ visible }} = await import('/assets/text.js'); return {}.map((name) => visible(name.replace(/\\n/g, ' ')))", json!(names)));
    assert_eq!(shown.as_array().unwrap().len(), names.len());
    for (shown, expected) in shown.as_array().unwrap().iter().zip(expected.as_array().unwrap()) {
        assert_eq!(shown, expected);
    }
}
