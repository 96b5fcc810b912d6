//! `recto summarize`, and summaries in `recto run` and `recto replay`.

use crate::run::{Folder, Ran, TODAY, isolated, mentions};
use recto_testkit::fake::{Reply, Server};
use serde_json::{Value, json};
use std::process::Command;

/// Exchanges are folded as soon as there are two of them.
const POLICY: &str = "schema_version = 1\nname = 'small'\napply = 'immediately'\n[[reduce]]\nfold = { over = 400, want_percent = 60, \
                      target_percent = 50, step = 2, keep_last = 1, chars = 300, keep_first_request = false }\n\
                      [[reduce]]\nfit_window = {}\n";
const NOTE: &str = r#"{"intent": "INTENT.", "constraints": [], "done": ["DONE."]}"#;

/// A store, a configuration, a provider that carries conversations on, and one that makes summaries.
struct Place {
    folder: Folder,
    talking: Server,
    summing: Server,
}

impl Place {
    fn new() -> Place {
        Place::with("")
    }

    fn with(lines: &str) -> Place {
        let place = Place { folder: Folder::new(), talking: Server::start(), summing: Server::start() };
        let (talking, summing) = (place.talking.url(), place.summing.url());
        let reached = "wire = 'openai_chat'\nretries = 0";
        place.folder.file("small.toml", POLICY);
        place.folder.file(
            "recto.toml",
            format!(
                "[upstream.talking]\nurl = '{talking}/v1'\n{reached}\nmodels = ['gpt-4o']\n\
                 [upstream.summing]\nurl = '{summing}/v1'\n{reached}\nmodels = []\n\
                 [summarizer]\nupstream = 'summing'\nmodels = ['gpt-4.1']\n{lines}\n"
            ),
        );
        place
    }

    fn command(&self, args: &[&str]) -> Command {
        let mut command = isolated(Command::new(env!("CARGO_BIN_EXE_recto")));
        command.args(args).current_dir(&self.folder.path).env("RECTO_TODAY", TODAY);
        command.env("RECTO_CONFIG", self.folder.at("recto.toml")).env("RECTO_STORE", self.folder.at("kept.db"));
        command
    }

    fn run(&self, args: &[&str]) -> Ran {
        self.command(args).output().unwrap().into()
    }

    #[track_caller]
    fn does(&self, args: &[&str]) -> Ran {
        let ran = self.run(args);
        assert_eq!(ran.code, Some(0), "{args:?}: {}{}", ran.stdout, ran.stderr);
        ran
    }

    /// Carries a conversation on for some turns, under the policy.
    fn talks(&self, policy: &str, turns: std::ops::Range<usize>) {
        for turn in turns {
            self.talking.push(Reply::default().text(&format!("ANSWER-{turn}. {}", "and so on ".repeat(20))));
            let words = format!("WORDS-{turn}. {}", "on and on ".repeat(20));
            self.does(&["run", "--with", "gpt-4o", "talk", &words, "--policy", policy]);
        }
    }

    fn last_body(&self) -> String {
        let last = self.talking.log().pop().expect("a call");
        assert!(last.refusal.is_none(), "{:?}", last.refusal);
        last.request.json().to_string()
    }

    fn summaries(&self) -> usize {
        assert!(self.summing.log().iter().all(|it| it.refusal.is_none()), "{:?}", self.summing.log());
        self.summing.log().len()
    }
}

fn json_of(ran: &Ran) -> Value {
    serde_json::from_str(&ran.stdout).unwrap()
}

#[test]
fn a_conversation_that_grows_long_goes_on_with_a_note_that_is_made_once() {
    let place = Place::new();
    place.summing.push(Reply::default().text(NOTE));
    place.talks("small.toml", 0..4);
    assert_eq!(place.summaries(), 1, "what it is of has not changed");
    let body = place.last_body();
    assert!(body.contains("INTENT.") && !body.contains("WORDS-0."), "{body}");
    assert!(body.contains("WORDS-3."), "{body}");
}

#[test]
fn summaries_are_made_by_hand_and_then_there_are_none_to_make() {
    let place = Place::new();
    place.talks("none", 0..3);
    let dry = place.does(&["summarize", "talk", "--policy", "small.toml", "--dry-run"]);
    mentions(&dry.stdout, &["You write a note on the earlier part", "WORDS-0.", "range: m0 to m"]);
    assert_eq!(place.summaries(), 0, "nobody was asked");
    place.summing.push(Reply::default().text(NOTE));
    let made = json_of(&place.does(&["summarize", "talk", "--policy", "small.toml", "--json"]));
    let row = &made["summaries"][0];
    assert_eq!((&row["state"], &row["model"]), (&json!("made"), &json!("gpt-4.1")), "{made:#}");
    assert!(row["usd"].as_f64().unwrap() > 0.0 && made["usd"] == row["usd"], "{made:#}");
    assert_eq!(place.summaries(), 1);
    let again = place.does(&["summarize", "talk", "--policy", "small.toml"]);
    mentions(&again.stdout, &["nothing is wanted"]);
    assert_eq!(place.summaries(), 1);
    // The next call finds it.
    place.talks("small.toml", 3..4);
    assert!(place.last_body().contains("INTENT."));
    assert_eq!(place.summaries(), 1);
}

#[test]
fn what_fails_is_told_and_can_be_tried_once_more() {
    let place = Place::new();
    place.talks("none", 0..3);
    place.summing.push(Reply::default().text("<html>Log in</html>"));
    let failed = place.run(&["summarize", "talk", "--policy", "small.toml"]);
    assert_ne!(failed.code, Some(0));
    mentions(&failed.stderr, &["summaries that could not be made: 1 of 1", "web page", "--retry"]);
    mentions(&failed.stdout, &["failed"]);
    place.summing.push(Reply::default().text(NOTE));
    let made = place.does(&["summarize", "talk", "--policy", "small.toml", "--retry", "--model", "gpt-4o"]);
    mentions(&made.stdout, &["made", "gpt-4o"]);
    assert_eq!(place.summaries(), 2);
}

#[test]
fn without_a_summarizer_the_command_says_what_to_do() {
    let place = Place::new();
    place.talks("none", 0..1);
    place.folder.file("recto.toml", "");
    let refused = place.run(&["summarize", "talk"]);
    assert_ne!(refused.code, Some(0));
    mentions(&refused.stderr, &["nobody is named who makes summaries", "[summarizer]"]);
}

#[test]
fn a_replay_has_the_summaries_made_that_its_policy_wants_and_bills_them() {
    let place = Place::new();
    let messages: Vec<Value> = (0..8)
        .flat_map(|turn| {
            let long = "on and on ".repeat(30);
            [("user", format!("WORDS-{turn}. {long}")), ("assistant", format!("ANSWER-{turn}. {long}"))]
        })
        .map(|(role, text)| json!({"role": role, "content": text}))
        .collect();
    let file = place.folder.file("chat.json", json!({"messages": messages}).to_string());
    (0..20).for_each(|_| place.summing.push(Reply::default().text(NOTE)));
    let url = format!("{}/v1", place.summing.url());
    let args = ["replay", &file, "--policy", "small.toml,none", "--summarizer", &url, "--summarizer-model", "gpt-4.1"];
    let told = json_of(&place.does(&[&args[..], &["--json"]].concat()));
    let (folding, none) = (&told["policies"][0]["total"], &told["policies"][1]["total"]);
    let asked = place.summaries();
    assert!(asked > 1 && folding["summaries"]["made"] == asked, "{asked}: {folding:#}");
    assert_eq!(none["summaries"]["made"], 0, "{none:#}");
    let spent = folding["summaries"]["usd"].as_f64().unwrap();
    assert!(spent > 0.0 && folding["usd"].as_f64().unwrap() > spent, "{folding:#}");
    assert!(folding["tokens"].as_u64() < none["tokens"].as_u64(), "{told:#}");
    let text = place.does(&args).stdout;
    mentions(&text, &[&format!("small: summaries: {asked} made"), "USD"]);
    assert_eq!(place.summaries(), 2 * asked, "each run asks anew");
}

#[test]
fn the_configuration_shows_who_makes_summaries() {
    let place = Place::with("mode = 'same'\n[summarizer.prompts]\nbrief = 'Be brief.'");
    let told = json_of(&place.does(&["config", "--json"]));
    let expected = json!({
        "upstream": "summing", "url": format!("{}/v1", place.summing.url()), "models": ["gpt-4.1"], "mode": "same",
        "wait_seconds": 20, "timeout_seconds": 120, "background": 4, "output_tokens": 4096, "prompts": ["brief"],
    });
    assert_eq!(told["summarizer"], expected);
    mentions(&place.does(&["config"]).stdout, &["summarizer: summing at ", "models: gpt-4.1; mode same"]);
}
