//! What whoever runs a server says: its log, what becomes too old, where traces go.

use super::upstream::matches;
use super::{Config, Set};
use crate::talk::{self, Level, Spelling};
use recto::entry::Millis;

const DAY_MS: i64 = 24 * 60 * 60 * 1_000;
/// Names a collector of traces, as OpenTelemetry has it.
const COLLECTOR: &str = "OTEL_EXPORTER_OTLP_ENDPOINT";

/// What is said about the log.
#[derive(Clone, Debug, Default)]
pub(crate) struct LogLayer {
    pub(crate) format: Option<Set<Spelling>>,
    pub(crate) level: Option<Set<Level>>,
    pub(crate) requests: Option<Set<bool>>,
}

/// What is said about what becomes too old.
#[derive(Clone, Debug, Default)]
pub(crate) struct RetentionLayer {
    pub(crate) days: Option<Set<u32>>,
    pub(crate) keep: Option<Set<Vec<String>>>,
}

/// What is said about traces.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct TracingLayer {
    pub(crate) endpoint: Option<Set<String>>,
}

/// When conversations go by themselves, and which never do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Retention {
    /// So many days after something was last written to them; nothing, if they stay.
    pub(crate) days: Option<u32>,
    /// Patterns of names that stay.
    pub(crate) keep: Vec<String>,
}

impl LogLayer {
    pub(super) fn over(self, lower: LogLayer) -> LogLayer {
        LogLayer {
            format: self.format.or(lower.format),
            level: self.level.or(lower.level),
            requests: self.requests.or(lower.requests),
        }
    }
}

impl RetentionLayer {
    pub(super) fn over(self, lower: RetentionLayer) -> RetentionLayer {
        RetentionLayer { days: self.days.or(lower.days), keep: self.keep.or(lower.keep) }
    }
}

impl TracingLayer {
    pub(super) fn over(self, lower: TracingLayer) -> TracingLayer {
        TracingLayer { endpoint: self.endpoint.or(lower.endpoint) }
    }
}

impl Retention {
    /// Returns since when something must have been written to a conversation, so many days before now.
    pub(crate) fn since(days: u32, now: Millis) -> Millis {
        Millis(now.0.saturating_sub(i64::from(days) * DAY_MS))
    }

    /// Returns whether a conversation stays whatever its age.
    pub(crate) fn keeps(&self, name: &str) -> bool {
        self.keep.iter().any(|pattern| matches(pattern, name))
    }
}

impl Config {
    /// Returns how a server's log is spelled, and how much is said.
    pub(crate) fn log(&self) -> (Spelling, Level) {
        let LogLayer { format, level, .. } = &self.layer.log;
        let spelling = format.as_ref().map_or(Spelling::default(), |set| set.value);
        (spelling, level.as_ref().map_or(Level::default(), |set| set.value))
    }

    /// Has this process say everything in that way.
    pub(crate) fn speak_as_configured(&self) {
        let (spelling, level) = self.log();
        talk::speak(spelling, level);
    }

    /// Returns whether each request is told of.
    pub(crate) fn tells_requests(&self) -> bool {
        self.layer.log.requests.as_ref().is_some_and(|set| set.value)
    }

    /// Returns when conversations go by themselves.
    pub(crate) fn retention(&self) -> Retention {
        let RetentionLayer { days, keep } = &self.layer.retention;
        Retention {
            days: days.as_ref().map(|set| set.value),
            keep: keep.as_ref().map(|set| set.value.clone()).unwrap_or_default(),
        }
    }

    /// Returns where traces go, if they go anywhere: what the environment says, else what a file does.
    pub(crate) fn collector(&self) -> Option<String> {
        let named = std::env::var(COLLECTOR).ok().filter(|url| !url.is_empty());
        named.or_else(|| self.layer.tracing.endpoint.as_ref().map(|set| set.value.clone()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    fn config(text: &str) -> Result<Config, String> {
        let content = super::super::file::of(Path::new("recto.toml"), text).map_err(|failure| failure.parts().1)?;
        Ok(Config { layer: content.layer, ..Config::default() })
    }

    #[test]
    fn an_operators_tables_are_read() {
        let text = "[log]\nformat = 'json'\nlevel = 'warn'\nrequests = true\n[retention]\ndays = 90\nkeep = ['audit-*']\n\
                    [tracing]\nendpoint = 'http://127.0.0.1:4318'";
        let config = config(text).unwrap();
        assert_eq!((config.log(), config.tells_requests()), ((Spelling::Json, Level::Warn), true));
        let retention = config.retention();
        assert_eq!(retention.days, Some(90));
        assert!(retention.keeps("audit-7") && !retention.keeps("my-audit-7"));
        assert_eq!(config.layer.tracing.endpoint.map(|set| set.value), Some("http://127.0.0.1:4318".into()));
        let usual = Config::default();
        assert_eq!((usual.log(), usual.tells_requests()), ((Spelling::Text, Level::Info), false));
        assert_eq!(usual.retention(), Retention { days: None, keep: Vec::new() });
    }

    #[test]
    fn what_they_can_not_mean_is_refused() {
        for wrong in [
            "[log]\nformat = 'xml'",
            "[log]\nlevel = 3",
            "[log]\nrequests = 'yes'",
            "[retention]\ndays = 0",
            "[retention]\ndays = '90d'",
            "[retention]\nhours = 3",
            "[tracing]\nendpoint = 7",
            "[tracing]\nendpoint = 'collector:4318'",
        ] {
            assert!(config(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn an_age_is_counted_back_from_now() {
        let now = Millis(100 * DAY_MS + 5);
        assert_eq!(Retention::since(90, now), Millis(10 * DAY_MS + 5));
        assert!(Retention::since(u32::MAX, now).0 < 0);
    }
}
