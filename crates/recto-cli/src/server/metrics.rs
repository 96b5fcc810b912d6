//! What happened, as numbers that Prometheus reads. No words of anybody are in them, and there is a bounded number of them.

use super::route;
use std::collections::BTreeMap;
use std::fmt::Write;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

/// A number that only rises.
#[derive(Debug, Default)]
pub(super) struct Counter(AtomicU64);

impl Counter {
    /// Counts one more.
    pub(super) fn count(&self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }

    fn value(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

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
}

/// The numbers of a server.
#[derive(Debug, Default)]
pub(super) struct Metrics {
    /// By the place of the route in the table, and the status.
    requests: Mutex<BTreeMap<(usize, u16), u64>>,
    in_flight: AtomicU64,
    replies: [Counter; End::NAMES.len()],
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
    pub(super) fn ended(&self, route: usize, status: u16) {
        self.in_flight.fetch_sub(1, Ordering::Relaxed);
        let mut requests = self.requests.lock().unwrap_or_else(PoisonError::into_inner);
        *requests.entry((route, status)).or_default() += 1;
    }

    /// Returns all numbers in the format of Prometheus.
    pub(super) fn text(&self) -> String {
        let mut text = String::new();
        family(&mut text, "recto_requests_total", "counter", "Requests, by route and status.");
        for ((route, status), count) in &*self.requests.lock().unwrap_or_else(PoisonError::into_inner) {
            let route = route::name(*route);
            line(&mut text, &format!("recto_requests_total{{route=\"{route}\",status=\"{status}\"}}"), *count);
        }
        family(&mut text, "recto_requests_in_flight", "gauge", "Requests whose answer has not ended.");
        line(&mut text, "recto_requests_in_flight", self.in_flight.load(Ordering::Relaxed));
        family(&mut text, "recto_replies_total", "counter", "Replies of providers, by how they ended.");
        for (end, name) in End::NAMES {
            line(&mut text, &format!("recto_replies_total{{end=\"{name}\"}}"), self.replies[end as usize].value());
        }
        let counters = [
            ("recto_forks_total", "Conversations that were forked because their past had changed.", &self.forks),
            ("recto_unreadable_total", "Bodies that were passed on without being understood.", &self.unreadable),
            ("recto_fallbacks_total", "Requests sent as they came, for want of a page.", &self.fallbacks),
            ("recto_redacted_total", "Requests in which something was sent as a placeholder.", &self.redacted),
            ("recto_retries_total", "Requests that were sent to a provider again.", &self.retries),
            ("recto_unrecorded_total", "Answers that could not be recorded.", &self.unrecorded),
            ("recto_crossed_total", "Requests whose model was asked in another format.", &self.crossed),
            ("recto_left_out_total", "What could not be carried over to another format.", &self.left_out),
            ("recto_expansions_total", "What models asked back and were given.", &self.expansions),
            ("recto_expansions_refused_total", "What models asked back and were not given.", &self.expansions_refused),
        ];
        for (name, help, counter) in counters {
            family(&mut text, name, "counter", help);
            line(&mut text, name, counter.value());
        }
        text
    }
}

fn family(text: &mut String, name: &str, kind: &str, help: &str) {
    let _ = writeln!(text, "# HELP {name} {help}\n# TYPE {name} {kind}");
}

fn line(text: &mut String, name: &str, value: u64) {
    let _ = writeln!(text, "{name} {value}");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ends_are_counted_each_under_its_own_name() {
        let metrics = Metrics::default();
        for (at, (end, _)) in End::NAMES.into_iter().enumerate() {
            (0..=at).for_each(|_| metrics.reply(end));
        }
        let text = metrics.text();
        for (at, (_, name)) in End::NAMES.into_iter().enumerate() {
            assert!(text.contains(&format!("recto_replies_total{{end=\"{name}\"}} {}\n", at + 1)), "{text}");
        }
    }
}
