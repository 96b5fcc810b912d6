//! The text format of Prometheus, version 0.0.4.

use recto_engine::timing::{Timed, Timing};
use std::fmt::{Display, Write};

/// What a family of numbers is.
#[derive(Clone, Copy, Debug)]
pub(super) enum Kind {
    Counter,
    Gauge,
    Histogram,
}

/// Numbers, family by family.
#[derive(Debug, Default)]
pub(super) struct Text(String);

impl Text {
    /// Begins a family.
    pub(super) fn family(&mut self, name: &str, kind: Kind, help: &str) {
        let kind = match kind {
            Kind::Counter => "counter",
            Kind::Gauge => "gauge",
            Kind::Histogram => "histogram",
        };
        let _ = writeln!(self.0, "# HELP {name} {help}\n# TYPE {name} {kind}");
    }

    /// Writes one number of a family.
    pub(super) fn line(&mut self, name: &str, labels: &[(&str, &str)], value: impl Display) {
        self.0.push_str(name);
        for (at, (label, value)) in labels.iter().enumerate() {
            let _ = write!(self.0, "{}{label}=\"", if at == 0 { '{' } else { ',' });
            for c in value.chars() {
                match c {
                    '\\' => self.0.push_str("\\\\"),
                    '"' => self.0.push_str("\\\""),
                    '\n' => self.0.push_str("\\n"),
                    c => self.0.push(c),
                }
            }
            self.0.push('"');
        }
        let _ = writeln!(self.0, "{} {value}", if labels.is_empty() { "" } else { "}" });
    }

    /// Writes a family that is one number.
    pub(super) fn single(&mut self, name: &str, kind: Kind, help: &str, value: impl Display) {
        self.family(name, kind, help);
        self.line(name, &[], value);
    }

    /// Writes the lengths of several together; those that never were are left out.
    pub(super) fn histogram(&mut self, name: &str, labels: &[(&str, &str)], of: &[&Timing]) {
        let Some(all) = of.iter().map(|timing| timing.counted()).reduce(together) else { return };
        if all.count == 0 {
            return;
        }
        let bucket = format!("{name}_bucket");
        for (bound, count) in all.upto {
            self.line(&bucket, &[labels, &[("le", &bound.to_string())]].concat(), count);
        }
        self.line(&bucket, &[labels, &[("le", "+Inf")]].concat(), all.count);
        self.line(&format!("{name}_sum"), labels, all.seconds);
        self.line(&format!("{name}_count"), labels, all.count);
    }

    /// Returns all of it.
    pub(super) fn done(self) -> String {
        self.0
    }
}

fn together(one: Timed, other: Timed) -> Timed {
    let upto = one.upto.into_iter().zip(other.upto).map(|((bound, one), (_, other))| (bound, one + other)).collect();
    Timed { upto, count: one.count + other.count, seconds: one.seconds + other.seconds }
}
