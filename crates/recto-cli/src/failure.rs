//! What went wrong, why, what to do about it, and the exit code.

use std::fmt;
use std::io;
use std::process::ExitCode;

/// The exit code of an interrupted command.
pub(crate) const INTERRUPTED: u8 = 130;

/// Why a command could not do what it was asked to.
#[derive(Debug)]
pub(crate) struct Failure {
    kind: Kind,
    /// What went wrong; below it the causes, nearest first.
    chain: Vec<String>,
    hints: Vec<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Outside,
    Refused,
    Overflow,
    Interrupted,
    /// Nobody reads the output any more: no failure, but the end.
    PipeClosed,
}

impl Failure {
    /// Returns a failure of something outside: a file, a disk, a terminal.
    pub(crate) fn outside(what: impl Into<String>, cause: &impl fmt::Display) -> Failure {
        Failure { kind: Kind::Outside, chain: vec![what.into(), cause.to_string()], hints: Vec::new() }
    }

    /// Returns a refusal of input or settings.
    pub(crate) fn refused(what: impl Into<String>) -> Failure {
        Failure { kind: Kind::Refused, chain: vec![what.into()], hints: Vec::new() }
    }

    /// Returns the failure of pages that don't fit.
    pub(crate) fn overflow(what: impl Into<String>) -> Failure {
        Failure { kind: Kind::Overflow, chain: vec![what.into()], hints: Vec::new() }
    }

    /// Returns the end that Ctrl-C asked for.
    pub(crate) fn interrupted() -> Failure {
        Failure { kind: Kind::Interrupted, chain: Vec::new(), hints: Vec::new() }
    }

    /// Returns the failure to write to stdout.
    pub(crate) fn stdout(error: &io::Error) -> Failure {
        match error.kind() {
            io::ErrorKind::BrokenPipe => Failure { kind: Kind::PipeClosed, chain: Vec::new(), hints: Vec::new() },
            _ => Failure::outside("cannot write to stdout", error),
        }
    }

    /// Adds what was being done: the failure so far becomes its cause.
    #[must_use]
    pub(crate) fn during(mut self, what: impl Into<String>) -> Failure {
        self.chain.insert(0, what.into());
        self
    }

    /// Adds a cause below all others.
    #[must_use]
    pub(crate) fn because(mut self, cause: impl Into<String>) -> Failure {
        self.chain.push(cause.into());
        self
    }

    /// Adds what to do next.
    #[must_use]
    pub(crate) fn hinting(mut self, hint: impl Into<String>) -> Failure {
        self.hints.push(hint.into());
        self
    }

    /// Returns the exit code, as `recto --help` lists them.
    pub(crate) fn exit_code(&self) -> ExitCode {
        ExitCode::from(match self.kind {
            Kind::PipeClosed => 0,
            Kind::Outside => 1,
            Kind::Refused => 3,
            Kind::Overflow => 4,
            Kind::Interrupted => INTERRUPTED,
        })
    }
}

impl From<recto::Error> for Failure {
    fn from(error: recto::Error) -> Failure {
        let kind = match &error {
            error if error.overflow().is_some() => Kind::Overflow,
            error if error.is_defect() => Kind::Outside,
            _ => Kind::Refused,
        };
        Failure { kind, chain: vec![error.to_string()], hints: error.hint().into_iter().collect() }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut lines = Vec::new();
        let labels = std::iter::once("error: ").chain(std::iter::repeat("cause: "));
        lines.extend(labels.zip(&self.chain).map(|(label, what)| format!("{label}{what}")));
        lines.extend(self.hints.iter().map(|hint| format!("hint: {hint}")));
        if self.kind == Kind::Interrupted {
            lines.push("interrupted".into());
        }
        f.write_str(&lines.join("\n"))
    }
}
