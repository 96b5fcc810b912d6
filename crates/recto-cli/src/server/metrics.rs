//! What happened, as numbers that Prometheus reads. No words of anybody are in them, and there is a bounded number of them:
//! what a client chooses is never part of a name or a label. `docs/operate.md` says what each means.

mod number; // counters, and money
mod of_upstream; // what one provider was asked, and what that came to
mod process; // what the system says of this process
mod text; // how Prometheus reads them

use super::route;
use number::{Counter, Money};
use of_upstream::Upstreams;
use process::Process;
use recto::receipt::Receipt;
use recto::wire::Usage;
use recto_engine::store::Vitals;
use recto_engine::summarize::{Spent, Told};
use recto_engine::timing::Timing;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use text::{Kind, Text};

pub(in crate::server) use of_upstream::OfUpstream;

/// How a reply ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum End {
    /// The provider came to its end.
    Whole,
    /// The provider, or the way to it, broke off.
    BrokenOff,
    /// The client went away.
    ClientLeft,
    /// The server ended.
    Cut,
    /// The provider refused the request.
    Refused,
    /// There was no answer at all.
    Unanswered,
}

impl End {
    /// All there are, as they are spelled.
    const NAMES: [(End, &'static str); 6] = [
        (End::Whole, "whole"),
        (End::BrokenOff, "broken_off"),
        (End::ClientLeft, "client_left"),
        (End::Cut, "cut"),
        (End::Refused, "refused"),
        (End::Unanswered, "unanswered"),
    ];

    /// Returns how it is spelled.
    pub(super) fn name(self) -> &'static str {
        End::NAMES[self as usize].1
    }
}

/// What summaries come to, as it is spelled.
const SUMMARIES: [&str; 4] = ["made", "failed", "unmade", "dropped"];
/// Something that went well, or didn't.
const RESULTS: [&str; 2] = ["ok", "failed"];
/// What became of spans.
const SPANS: [&str; 3] = ["sent", "dropped", "failed"];

/// The numbers of a server.
#[derive(Debug)]
pub(crate) struct Metrics {
    /// By the place of the route in the table, and the status.
    requests: Mutex<BTreeMap<(usize, u16), u64>>,
    /// By the place of the route in the table.
    lengths: Box<[Timing]>,
    in_flight: AtomicU64,
    pub(super) request_bytes: Counter,
    pub(super) response_bytes: Counter,
    /// Requests that were refused because too many of a tenant ran.
    pub(super) crowded: Counter,
    /// From the body of a request to what is sent.
    pub(super) prepared: Timing,
    /// What became of pages: every name is one of ours.
    pages: Mutex<BTreeMap<&'static str, u64>>,
    upstreams: Upstreams,
    replies: [Counter; End::NAMES.len()],
    /// What pages were expected to cost, and what all that was said would have.
    expected_tokens: [Counter; 2],
    expected_usd: [Money; 2],
    /// Conversations that were forked because their past had changed.
    pub(super) forks: Counter,
    /// Bodies that could not be read, and were passed on as they came.
    pub(super) unreadable: Counter,
    /// Requests that were sent as they came, because their pages could not be made or used.
    pub(super) fallbacks: Counter,
    pub(super) redacted: Counter,
    /// Requests that were sent to a provider again.
    pub(super) retries: Counter,
    /// Answers that a client has heard and that could not be recorded.
    pub(super) unrecorded: Counter,
    /// Requests whose model was spoken to in another format than their client's.
    pub(super) crossed: Counter,
    /// What could not be carried over from one format to another.
    pub(super) left_out: Counter,
    /// What models asked back and were given.
    pub(super) expansions: Counter,
    /// What models asked back and were not given.
    pub(super) expansions_refused: Counter,
    summaries: [Counter; SUMMARIES.len()],
    summary_tokens: Tokens,
    summary_usd: Money,
    /// Conversations that were erased because of their age.
    pub(super) aged: Counter,
    retention: [Counter; RESULTS.len()],
    retained_at: AtomicU64,
    reloads: [Counter; RESULTS.len()],
    loaded_at: AtomicU64,
    /// What became of spans: by their place in the list above.
    pub(super) spans: [Counter; SPANS.len()],
    process: Process,
}

/// Tokens, by what they were.
#[derive(Debug, Default)]
struct Tokens([Counter; Tokens::KINDS.len()]);

impl Tokens {
    /// No token is counted under two of them.
    const KINDS: [&str; 4] = ["input", "cache_read", "cache_write", "output"];

    fn used(&self, usage: &Usage) {
        let Usage { input, cached, written, output } = *usage;
        let plain = input.0.saturating_sub(cached.0).saturating_sub(written.0);
        for (counter, tokens) in self.0.iter().zip([plain, cached.0, written.0, output.0]) {
            counter.add(tokens);
        }
    }

    fn lines(&self, name: &str, labels: &[(&str, &str)], text: &mut Text) {
        for (kind, counter) in Tokens::KINDS.iter().zip(&self.0) {
            text.line(name, &[labels, &[("kind", kind)]].concat(), counter.value());
        }
    }
}

impl Default for Metrics {
    fn default() -> Metrics {
        Metrics {
            requests: Mutex::default(),
            lengths: (0..route::count()).map(|_| Timing::default()).collect(),
            in_flight: AtomicU64::default(),
            request_bytes: Counter::default(),
            response_bytes: Counter::default(),
            crowded: Counter::default(),
            prepared: Timing::default(),
            pages: Mutex::default(),
            upstreams: Upstreams::default(),
            replies: Default::default(),
            expected_tokens: Default::default(),
            expected_usd: Default::default(),
            forks: Counter::default(),
            unreadable: Counter::default(),
            fallbacks: Counter::default(),
            crossed: Counter::default(),
            left_out: Counter::default(),
            redacted: Counter::default(),
            retries: Counter::default(),
            unrecorded: Counter::default(),
            expansions: Counter::default(),
            expansions_refused: Counter::default(),
            summaries: Default::default(),
            summary_tokens: Tokens::default(),
            summary_usd: Money::default(),
            aged: Counter::default(),
            retention: Default::default(),
            retained_at: AtomicU64::default(),
            reloads: Default::default(),
            loaded_at: AtomicU64::new(seconds_now()),
            spans: Default::default(),
            process: Process::begun(seconds_now()),
        }
    }
}

impl Metrics {
    /// Counts how a reply ended.
    pub(super) fn reply(&self, end: End) {
        self.replies[end as usize].count();
    }

    /// Counts a request that begins.
    pub(super) fn begun(&self) {
        self.in_flight.fetch_add(1, Ordering::Relaxed);
    }

    /// Counts a request that has ended, by the place of its route in the table; status 0 is none.
    pub(super) fn ended(&self, route: usize, status: u16, took: Duration) {
        self.in_flight.fetch_sub(1, Ordering::Relaxed);
        if let Some(lengths) = self.lengths.get(route) {
            lengths.took(took);
        }
        let mut requests = self.requests.lock().unwrap_or_else(PoisonError::into_inner);
        *requests.entry((route, status)).or_default() += 1;
    }

    /// Counts what became of a page.
    pub(super) fn page(&self, page: &'static str) {
        *self.pages.lock().unwrap_or_else(PoisonError::into_inner).entry(page).or_default() += 1;
    }

    /// Returns the numbers of a provider, by its name in the configuration.
    pub(super) fn upstream(&self, name: &str) -> Arc<OfUpstream> {
        self.upstreams.of(name)
    }

    /// Counts what a page was expected to cost, and what everything that was said would have.
    pub(super) fn expected(&self, receipt: &Receipt) {
        let page = receipt.calibration.map_or(receipt.ledger.used(), |it| it.expected);
        let (money, savings) = (&receipt.money, &receipt.savings);
        for (at, tokens) in [page, page + savings.less].into_iter().enumerate() {
            self.expected_tokens[at].add(tokens.0);
        }
        for (at, usd) in [money.usd, savings.usd_without].into_iter().enumerate() {
            self.expected_usd[at].add(usd);
        }
    }

    /// Counts what became of a summary.
    pub(crate) fn summary(&self, told: &Told) {
        let (at, spent) = match told {
            Told::Made(noted) => (0, noted.spent),
            Told::Failed(noted) => (1, noted.spent),
            Told::Unmade { .. } => (2, Spent::default()),
            Told::Dropped { .. } => (3, Spent::default()),
        };
        self.summaries[at].count();
        self.summary_tokens.used(&spent.usage);
        self.summary_usd.add(spent.usd);
    }

    /// Counts that it was looked for what is too old.
    pub(super) fn looked_for_old(&self, is_done: bool) {
        self.retention[usize::from(!is_done)].count();
        if is_done {
            self.retained_at.store(seconds_now(), Ordering::Relaxed);
        }
    }

    /// Counts that the configuration was read again, or could not be.
    pub(super) fn reloaded(&self, is_taken: bool) {
        self.reloads[usize::from(!is_taken)].count();
        if is_taken {
            self.loaded_at.store(seconds_now(), Ordering::Relaxed);
        }
    }

    /// Returns all numbers in the format of Prometheus.
    pub(super) fn text(&self, store: &Vitals) -> String {
        let mut text = Text::default();
        text.family("recto_build_info", Kind::Gauge, "Which Recto this is; always 1.");
        text.line("recto_build_info", &[("version", env!("CARGO_PKG_VERSION"))], 1);
        self.text_of_requests(&mut text);
        self.text_of_pages(&mut text);
        self.upstreams.text(&mut text);
        self.text_of_counters(&mut text);
        self.text_of_upkeep(&mut text);
        text_of_store(store, &mut text);
        self.process.text(&mut text);
        text.done()
    }

    fn text_of_requests(&self, text: &mut Text) {
        text.family("recto_requests_total", Kind::Counter, "Requests, by route and status; status 0: the client left.");
        for ((route, status), count) in &*self.requests.lock().unwrap_or_else(PoisonError::into_inner) {
            let labels = [("route", route::name(*route)), ("status", &status.to_string())];
            text.line("recto_requests_total", &labels, *count);
        }
        text.family("recto_request_seconds", Kind::Histogram, "From the head of a request to the end of its answer.");
        // Several methods may share a path.
        let mut shown: BTreeMap<&str, Vec<&Timing>> = BTreeMap::new();
        for (at, lengths) in self.lengths.iter().enumerate() {
            shown.entry(route::name(at)).or_default().push(lengths);
        }
        for (route, lengths) in shown {
            text.histogram("recto_request_seconds", &[("route", route)], &lengths);
        }
        let in_flight = self.in_flight.load(Ordering::Relaxed);
        text.single("recto_requests_in_flight", Kind::Gauge, "Requests whose answer has not ended.", in_flight);
        for (name, help, counter) in [
            ("recto_request_bytes_total", "Bodies of requests, in bytes.", &self.request_bytes),
            ("recto_response_bytes_total", "Bodies of answers, in bytes.", &self.response_bytes),
            ("recto_crowded_total", "Requests refused because too many of a tenant ran.", &self.crowded),
        ] {
            text.single(name, Kind::Counter, help, counter.value());
        }
    }

    fn text_of_pages(&self, text: &mut Text) {
        text.family(
            "recto_prepare_seconds",
            Kind::Histogram,
            "From the body of a request to what is sent: Recto's own time.",
        );
        text.histogram("recto_prepare_seconds", &[], &[&self.prepared]);
        text.family("recto_pages_total", Kind::Counter, "What became of pages; see x-recto-page.");
        for (page, count) in &*self.pages.lock().unwrap_or_else(PoisonError::into_inner) {
            text.line("recto_pages_total", &[("page", page)], *count);
        }
        let help = "Input that pages were expected to have, and that of everything said: the difference is saved.";
        text.family("recto_expected_input_tokens_total", Kind::Counter, help);
        for (of, counter) in ["page", "history"].iter().zip(&self.expected_tokens) {
            text.line("recto_expected_input_tokens_total", &[("of", of)], counter.value());
        }
        let help = "What input was expected to cost by list prices, and that of everything said.";
        text.family("recto_expected_input_usd_total", Kind::Counter, help);
        for (of, money) in ["page", "history"].iter().zip(&self.expected_usd) {
            text.line("recto_expected_input_usd_total", &[("of", of)], money.value());
        }
    }

    fn text_of_counters(&self, text: &mut Text) {
        text.family("recto_replies_total", Kind::Counter, "Replies of providers, by how they ended.");
        for (end, name) in End::NAMES {
            text.line("recto_replies_total", &[("end", name)], self.replies[end as usize].value());
        }
        for (name, help, counter) in [
            ("recto_forks_total", "Conversations that were forked because their past had changed.", &self.forks),
            ("recto_unreadable_total", "Bodies that were passed on without being understood.", &self.unreadable),
            ("recto_fallbacks_total", "Requests sent as they came, for want of a page.", &self.fallbacks),
            ("recto_crossed_total", "Requests whose model was asked in another format.", &self.crossed),
            ("recto_left_out_total", "What could not be carried over to another format.", &self.left_out),
            ("recto_redacted_total", "Requests in which something was sent as a placeholder.", &self.redacted),
            ("recto_retries_total", "Requests that were sent to a provider again.", &self.retries),
            ("recto_unrecorded_total", "Answers that could not be recorded.", &self.unrecorded),
            ("recto_expansions_total", "What models asked back and were given.", &self.expansions),
            ("recto_expansions_refused_total", "What models asked back and were not given.", &self.expansions_refused),
        ] {
            text.single(name, Kind::Counter, help, counter.value());
        }
        labelled(
            text,
            "recto_summaries_total",
            "Summaries, by what became of them.",
            "result",
            &SUMMARIES,
            &self.summaries,
        );
        text.family("recto_summary_tokens_total", Kind::Counter, "Tokens that summaries used, by what they were.");
        self.summary_tokens.lines("recto_summary_tokens_total", &[], text);
        let help = "What summaries cost by list prices.";
        text.single("recto_summary_usd_total", Kind::Counter, help, self.summary_usd.value());
    }

    fn text_of_upkeep(&self, text: &mut Text) {
        let help = "Conversations that were erased because of their age.";
        text.single("recto_retention_erased_total", Kind::Counter, help, self.aged.value());
        let help = "How often it was looked for what is too old.";
        labelled(text, "recto_retention_runs_total", help, "result", &RESULTS, &self.retention);
        let help = "When that was last done to the end; 0: never.";
        let at = self.retained_at.load(Ordering::Relaxed);
        text.single("recto_retention_success_timestamp_seconds", Kind::Gauge, help, at);
        let help = "How often the configuration was read again.";
        labelled(text, "recto_config_reloads_total", help, "result", &RESULTS, &self.reloads);
        let help = "When the configuration that holds was read.";
        let at = self.loaded_at.load(Ordering::Relaxed);
        text.single("recto_config_loaded_timestamp_seconds", Kind::Gauge, help, at);
        let help = "Spans for an OpenTelemetry collector, by what became of them.";
        labelled(text, "recto_spans_total", help, "result", &SPANS, &self.spans);
    }
}

fn labelled(text: &mut Text, name: &str, help: &str, label: &str, values: &[&str], counters: &[Counter]) {
    text.family(name, Kind::Counter, help);
    for (value, counter) in values.iter().zip(counters) {
        text.line(name, &[(label, value)], counter.value());
    }
}

fn text_of_store(store: &Vitals, text: &mut Text) {
    let name = "recto_store_write_seconds";
    text.family(name, Kind::Histogram, "How long writes took, from being asked for to being on disk or refused.");
    if let Some(writes) = &store.writes {
        text.histogram(name, &[], &[writes]);
    }
    text.family("recto_store_writes_waiting", Kind::Gauge, "Writes that wait for their turn (SQLite).");
    if let Some(waiting) = store.writes_waiting {
        text.line("recto_store_writes_waiting", &[], waiting as u64);
    }
    text.family("recto_store_connections", Kind::Gauge, "Connections to the database (PostgreSQL), by what they do.");
    let states = store.connections.map(|it| [("busy", it.busy), ("idle", it.idle)]);
    for (state, count) in states.into_iter().flatten() {
        text.line("recto_store_connections", &[("state", state)], count as u64);
    }
    text.family("recto_store_connections_max", Kind::Gauge, "The most connections to the database (PostgreSQL).");
    if let Some(connections) = store.connections {
        text.line("recto_store_connections_max", &[], connections.max as u64);
    }
}

fn seconds_now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ends_are_counted_each_under_its_own_name() {
        let metrics = Metrics::default();
        for (at, (end, _)) in End::NAMES.into_iter().enumerate() {
            (0..=at).for_each(|_| metrics.reply(end));
            assert_eq!(End::NAMES[at].1, end.name());
        }
        let text = metrics.text(&Vitals::default());
        for (at, (_, name)) in End::NAMES.into_iter().enumerate() {
            assert!(text.contains(&format!("recto_replies_total{{end=\"{name}\"}} {}\n", at + 1)), "{text}");
        }
    }
}
