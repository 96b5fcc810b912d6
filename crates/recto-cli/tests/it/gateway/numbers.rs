//! The numbers at `/metrics`: read by Prometheus' own parser, true, and no more of them than there are things to count.
//! `RECTO_PROMETHEUS` is a Python that has the package prometheus-client.

use super::asking::{Client, Talk, path};
use super::world::{Between, World};
use recto::wire::Wire;
use recto_testkit::fake::{Exchange, Reply};
use recto_testkit::shared::skipped;
use serde_json::{Value, json};
use std::io::Write;
use std::process::{Command, Stdio};

/// What the parser has read.
struct Numbers(Value);

impl Numbers {
    /// Reads numbers with the real parser, or says loudly that the test is skipped.
    fn read(text: &str) -> Option<Numbers> {
        let Some(python) = std::env::var_os("RECTO_PROMETHEUS") else {
            skipped("numbers of the server: no parser of Prometheus (set RECTO_PROMETHEUS)");
            return None;
        };
        let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/clients/metrics.py");
        let mut command = Command::new(python);
        command.arg(script).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        child.stdin.take().unwrap().write_all(text.as_bytes()).unwrap();
        let output = child.wait_with_output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{said}\n{text}");
        Some(Numbers(serde_json::from_slice(&output.stdout).unwrap()))
    }

    /// The value of one series.
    #[track_caller]
    fn value(&self, name: &str, labels: Value) -> f64 {
        let families = self.0.as_object().unwrap().values();
        let mut samples = families.flat_map(|family| family["samples"].as_array().unwrap());
        let found = samples.find(|sample| sample[0] == name && sample[1] == labels);
        found.unwrap_or_else(|| panic!("no {name} {labels}"))[2].as_f64().unwrap()
    }
}

/// How many series there are.
fn series(text: &str) -> usize {
    text.lines().filter(|line| !line.starts_with('#')).count()
}

fn used(call: &Exchange, pointer: &str) -> f64 {
    call.usage.pointer(pointer).and_then(Value::as_f64).unwrap_or_else(|| panic!("{pointer} in {}", call.usage))
}

#[test]
fn prometheus_reads_the_numbers_and_they_are_those_of_the_provider() {
    let mut world = World::new(Between::Recto("safe"));
    let client = Client::of(&world);
    let mut talk = Talk::new(Wire::OpenaiChat).user("One.");
    for words in ["Two.", "Three.", "Four."] {
        world.fake.push(Reply::default().text(words));
        talk = talk.clone().heard(&client.asks(&talk)).user(words);
    }
    world.fake.push(Reply::default().text("Streamed."));
    let talk = talk.beside("stream_options", json!({"include_usage": true}));
    assert!(client.streams(&talk).whole().is_whole);
    // The same history with another past is a fork.
    let mut changed = talk.clone();
    changed.beside.as_object_mut().unwrap().remove("stream_options");
    changed.list[2]["content"] = "Otherwise.".into();
    world.fake.push(Reply::default().text("Forked."));
    assert_eq!(client.asks(&changed).status, 200);
    world.fake.push(Reply::error(429, json!({"error": {"message": "slow down", "type": "rate_limit_error"}})));
    assert_eq!(client.asks(&Talk::new(Wire::OpenaiChat).user("Refused.")).status, 429);
    let text = client.metrics();
    let calls: Vec<Exchange> = world.calls();
    let Some(numbers) = Numbers::read(&text) else { return };

    let upstream = "fake_openai_chat";
    let answered = |status: &str| json!({"upstream": upstream, "status": status});
    assert_eq!(numbers.value("recto_upstream_requests_total", answered("200")), 5.0);
    assert_eq!(numbers.value("recto_upstream_requests_total", answered("429")), 1.0);
    assert_eq!(numbers.value("recto_upstream_seconds_count", json!({"upstream": upstream})), 6.0);
    let good: Vec<&Exchange> = calls.iter().take(5).collect();
    let sum = |pointer: &str| good.iter().map(|call| used(call, pointer)).sum::<f64>();
    let tokens = |kind: &str| numbers.value("recto_upstream_tokens_total", json!({"upstream": upstream, "kind": kind}));
    assert_eq!(tokens("input") + tokens("cache_read") + tokens("cache_write"), sum("/prompt_tokens"));
    assert_eq!(tokens("cache_read"), sum("/prompt_tokens_details/cached_tokens"));
    assert_eq!(tokens("output"), sum("/completion_tokens"));
    assert!(numbers.value("recto_upstream_usd_total", json!({"upstream": upstream})) > 0.0);
    let sent: usize = calls.iter().map(|call| call.request.body.len()).sum();
    assert_eq!(numbers.value("recto_upstream_request_bytes_total", json!({"upstream": upstream})), sent as f64);
    let expected = |name: &str, of: &str| numbers.value(name, json!({"of": of}));
    for name in ["recto_expected_input_tokens_total", "recto_expected_input_usd_total"] {
        assert!(expected(name, "page") > 0.0 && expected(name, "history") >= expected(name, "page"), "{name}");
    }
    let of_route = json!({"route": path(Wire::OpenaiChat), "status": "200"});
    assert_eq!(numbers.value("recto_requests_total", of_route), 5.0);
    assert_eq!(numbers.value("recto_request_seconds_count", json!({"route": path(Wire::OpenaiChat)})), 6.0);
    assert_eq!(numbers.value("recto_prepare_seconds_count", json!({})), 6.0);
    assert_eq!(
        (numbers.value("recto_forks_total", json!({})), numbers.value("recto_requests_in_flight", json!({}))),
        (1.0, 1.0)
    );
    assert!(numbers.value("recto_store_write_seconds_count", json!({})) >= 10.0);
    assert_eq!(numbers.value("recto_store_writes_waiting", json!({})), 0.0);
    assert_eq!(numbers.value("recto_build_info", json!({"version": env!("CARGO_PKG_VERSION")})), 1.0);
    assert!(numbers.value("process_resident_memory_bytes", json!({})) > 1e6);
    world.stop();
}

#[test]
fn what_clients_choose_makes_no_numbers_of_its_own() {
    let mut world = World::new(Between::Recto("safe"));
    let client = Client::of(&world);
    let hostile = |at: usize| {
        let word = format!("hostile{at}");
        let client = client.with("x-recto-conversation", &word).with("x-recto-reader", &word).with("user-agent", &word);
        world.fake.push(Reply::default().text("Yes."));
        let talk = Talk::new(Wire::OpenaiChat).user(&word).beside("model", json!(format!("{word}\"}}\n{word}")));
        client.asks(&talk);
        for path in [format!("/{word}"), format!("/v1/models/{word}"), format!("/api/v1/conversations/{word}")] {
            client.gets(&path);
        }
        client.with("x-recto-policy", &word).asks(&talk);
        client.sends(&format!("/v1/messages?{word}"), format!("{{\"{word}\"")).whole();
    };
    hostile(0);
    client.metrics();
    let few = series(&client.metrics());
    (1..40).for_each(hostile);
    let text = client.metrics();
    assert!(!text.contains("hostile"), "{text}");
    assert_eq!(series(&text), few, "{text}");
    // The control: something else that is counted does make some.
    client.gets("/ready");
    assert!(series(&client.metrics()) > few);
    Numbers::read(&text);
    world.stop();
}

#[test]
fn a_database_has_its_connections_counted() {
    let mut world = World::new(Between::OnPostgres("safe"));
    let client = Client::of(&world);
    world.fake.push(Reply::default().text("Yes."));
    assert_eq!(client.asks(&Talk::new(Wire::OpenaiChat).user("Hi.")).status, 200);
    let text = client.metrics();
    let value = |name: &str| -> u64 {
        let line = text.lines().find(|line| line.starts_with(name)).unwrap_or_else(|| panic!("{name} in {text}"));
        line.rsplit(' ').next().unwrap().parse().unwrap()
    };
    let (busy, idle) =
        (value("recto_store_connections{state=\"busy\"}"), value("recto_store_connections{state=\"idle\"}"));
    let most = value("recto_store_connections_max");
    assert!(idle >= 1 && busy + idle <= 2 * most && busy <= most, "{text}");
    assert!(value("recto_store_write_seconds_count") >= 2, "{text}");
    world.stop();
}

/// The page for operators lists all numbers with their types, and no others.
#[test]
fn the_page_for_operators_lists_all_numbers() {
    let mut world = World::new(Between::Recto("none"));
    let text = Client::of(&world).metrics();
    let mut told: Vec<(String, String)> = text
        .lines()
        .filter_map(|line| line.strip_prefix("# TYPE ")?.split_once(' '))
        .map(|(name, kind)| (name.into(), kind.into()))
        .collect();
    let page = include_str!("../../../../../docs/operate.md");
    let mut listed: Vec<(String, String)> = page
        .lines()
        .filter_map(|line| {
            let mut cells = line.strip_prefix("| `")?.split('|');
            let name = cells.next()?.trim().trim_end_matches('`').split('{').next()?.to_string();
            let kind = cells.next()?.trim().to_string();
            ["counter", "gauge", "histogram"].contains(&&*kind).then_some((name, kind))
        })
        .collect();
    told.sort();
    listed.sort();
    assert_eq!(listed, told);
    world.stop();
}
