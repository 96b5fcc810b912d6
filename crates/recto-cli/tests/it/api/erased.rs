//! What somebody erases while somebody else goes through everything.

use super::live::Live;
use serde_json::{Value, json};
use std::thread::{self, JoinHandle};

/// So many that everybody meets some that are about to go.
const ERASED: usize = 150;

/// Makes conversations, and has all but one erased, those first that lists and searches come to last.
fn erasing(live: &Live) -> JoinHandle<()> {
    for nth in (0..ERASED).rev() {
        live.talk(&format!("n{nth:03}"), "zebra", 0);
        let entries = json!([{"role": "user", "text": format!("A zebra, number {nth}.")}]);
        live.post(&format!("/conversations/n{nth:03}/entries"), json!({"entries": entries}));
    }
    live.talk("kept", "zebra", 1);
    let client = live.client();
    thread::spawn(move || {
        for nth in (0..ERASED).rev() {
            let answer = client.ask("DELETE", &format!("/api/v1/conversations/n{nth:03}"), &[], "");
            assert_eq!(answer.status, 200, "{}", answer.text());
        }
    })
}

fn has_kept(told: &Value, list: &str) -> bool {
    told[list].as_array().unwrap().iter().any(|it| it["conversation"] == "kept")
}

#[test]
fn lists_and_searches_pass_over_what_is_erased_meanwhile() {
    let live = Live::new();
    let erasing = erasing(&live);
    let mut listed = Vec::new();
    while !erasing.is_finished() {
        let told = live.get("/conversations?limit=200");
        assert!(has_kept(&told, "conversations"), "{told}");
        listed.push(told["conversations"].as_array().unwrap().len());
        assert!(has_kept(&live.get("/search?words=zebra"), "found"));
    }
    erasing.join().unwrap();
    assert!(listed.iter().any(|rows| (2..=ERASED).contains(rows)), "nobody listed while some were erased: {listed:?}");
    assert_eq!(live.get("/conversations")["conversations"].as_array().unwrap().len(), 1);
    live.ends();
}

#[test]
fn commands_pass_over_what_a_server_erases_meanwhile() {
    let live = Live::new();
    let erasing = erasing(&live);
    let folder = live.place.folder.at("exported");
    let commands: [&[&str]; 4] =
        [&["list", "--limit", "1000"], &["search", "zebra"], &["export", "--all", "-o", &folder], &["doctor"]];
    let mut rounds = 0;
    while !erasing.is_finished() {
        for args in commands {
            let output = live.place.command(args).output().unwrap();
            let told = [&output.stdout, &output.stderr].map(|it| String::from_utf8_lossy(it)).concat();
            assert!(output.status.success(), "{args:?}: {told}");
            assert!(args[0] == "doctor" || told.contains("kept"), "{args:?}: {told}");
        }
        rounds += 1;
    }
    erasing.join().unwrap();
    assert!(rounds > 1);
    live.ends();
}
