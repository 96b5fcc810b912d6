//! What one provider was asked, and what that came to.

use super::Tokens;
use super::number::{Counter, Money};
use super::text::{Kind, Text};
use recto::wire::Usage;
use recto_engine::timing::Timing;
use std::sync::{Arc, PoisonError, RwLock};

/// Statuses that are counted by themselves; others are counted by their first digit.
const STATUSES: [u16; 14] = [200, 400, 401, 403, 404, 408, 413, 422, 429, 500, 502, 503, 504, 529];
/// What stands for the others, and for there being none.
const CLASSES: [&str; 6] = ["none", "1xx", "2xx", "3xx", "4xx", "5xx"];
/// How many providers have numbers of their own. Their names are the configuration's, which may be read again and again.
const UPSTREAMS_MAX: usize = 64;
/// What stands for all others.
const OTHERS: &str = "others";

/// The numbers of a provider.
#[derive(Debug, Default)]
pub(in crate::server) struct OfUpstream {
    statuses: [Counter; STATUSES.len()],
    classes: [Counter; CLASSES.len()],
    /// From sending a request to the head of its answer.
    pub(in crate::server) waited: Timing,
    pub(in crate::server) request_bytes: Counter,
    tokens: Tokens,
    usd: Money,
}

impl OfUpstream {
    /// Counts an answer by its status; 0 is none.
    pub(in crate::server) fn answered(&self, status: u16) {
        match STATUSES.iter().position(|known| *known == status) {
            Some(at) => self.statuses[at].count(),
            None => {
                let class = usize::from(status / 100);
                self.classes[if class < CLASSES.len() { class } else { 0 }].count();
            }
        }
    }

    /// Counts what the provider reports, and what that costs.
    pub(in crate::server) fn used(&self, usage: &Usage, usd: f64) {
        self.tokens.used(usage);
        self.usd.add(usd);
    }

    fn by_status(&self) -> impl Iterator<Item = (String, u64)> {
        let known = STATUSES.iter().map(u16::to_string).zip(&self.statuses);
        let classes = CLASSES.iter().map(|class| (*class).to_string()).zip(&self.classes);
        known.chain(classes).map(|(status, counter)| (status, counter.value())).filter(|(_, count)| *count > 0)
    }
}

/// The numbers of all providers, by their names.
#[derive(Debug, Default)]
pub(super) struct Upstreams(RwLock<Vec<(String, Arc<OfUpstream>)>>);

impl Upstreams {
    pub(super) fn of(&self, name: &str) -> Arc<OfUpstream> {
        let find = |all: &[(String, Arc<OfUpstream>)], name: &str| {
            all.iter().find(|(known, _)| known == name).map(|(_, numbers)| numbers.clone())
        };
        if let Some(numbers) = find(&self.0.read().unwrap_or_else(PoisonError::into_inner), name) {
            return numbers;
        }
        let mut all = self.0.write().unwrap_or_else(PoisonError::into_inner);
        let name = if all.len() < UPSTREAMS_MAX { name } else { OTHERS };
        find(&all, name).unwrap_or_else(|| {
            let numbers = Arc::new(OfUpstream::default());
            all.push((name.to_string(), numbers.clone()));
            numbers
        })
    }

    pub(super) fn text(&self, text: &mut Text) {
        let all = self.0.read().unwrap_or_else(PoisonError::into_inner);
        let help = "Requests to providers, by what they answered; none: no answer.";
        text.family("recto_upstream_requests_total", Kind::Counter, help);
        for (name, numbers) in &*all {
            for (status, count) in numbers.by_status() {
                text.line("recto_upstream_requests_total", &[("upstream", name), ("status", &status)], count);
            }
        }
        let help = "From sending a request to a provider to the head of its answer.";
        text.family("recto_upstream_seconds", Kind::Histogram, help);
        for (name, numbers) in &*all {
            text.histogram("recto_upstream_seconds", &[("upstream", name)], &[&numbers.waited]);
        }
        text.family(
            "recto_upstream_request_bytes_total",
            Kind::Counter,
            "Bodies that were sent to providers, in bytes.",
        );
        for (name, numbers) in &*all {
            text.line("recto_upstream_request_bytes_total", &[("upstream", name)], numbers.request_bytes.value());
        }
        let help = "Tokens that providers reported, by what they were; no token is counted twice.";
        text.family("recto_upstream_tokens_total", Kind::Counter, help);
        for (name, numbers) in &*all {
            numbers.tokens.lines("recto_upstream_tokens_total", &[("upstream", name)], text);
        }
        let help = "What that costs by list prices.";
        text.family("recto_upstream_usd_total", Kind::Counter, help);
        for (name, numbers) in &*all {
            text.line("recto_upstream_usd_total", &[("upstream", name)], numbers.usd.value());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn however_many_providers_there_are_the_numbers_are_bounded() {
        let upstreams = Upstreams::default();
        for name in 0..10_000 {
            let numbers = upstreams.of(&format!("a\"\\\n{name}"));
            (0..=u16::MAX).step_by(97).for_each(|status| numbers.answered(status));
            numbers.waited.took(std::time::Duration::from_secs(1));
        }
        assert!(Arc::ptr_eq(&upstreams.of("another"), &upstreams.of("yet another")));
        let mut text = Text::default();
        upstreams.text(&mut text);
        let lines = text.done().lines().filter(|line| !line.starts_with('#')).count();
        let each = STATUSES.len() + CLASSES.len() + 16 + 1 + Tokens::KINDS.len() + 1;
        assert!(lines <= (UPSTREAMS_MAX + 1) * each, "{lines}");
    }
}
