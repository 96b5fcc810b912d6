//! What went wrong, why, what to do about it, and the exit code.

use crate::codes::Code;
use crate::paint::Paint;
use crate::talk::harmless;
use recto::nearest::probably;
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
    Coded(Code),
    /// The user's own wish, so it has no code.
    Interrupted,
    /// Nobody reads the output any more: no failure, but the end.
    PipeClosed,
}

impl Failure {
    /// Returns a failure of the kind that the code stands for.
    pub(crate) fn of(code: Code, what: impl Into<String>) -> Failure {
        Failure { kind: Kind::Coded(code), chain: vec![what.into()], hints: Vec::new() }
    }

    /// Returns what the core says as a failure with this code, unless the page doesn't fit or the core is at fault.
    pub(crate) fn of_core(code: Code, error: &recto::Error) -> Failure {
        let code = match error {
            error if error.overflow().is_some() => Code::Overflow,
            error if error.is_defect() => Code::Defect,
            _ => code,
        };
        Failure { kind: Kind::Coded(code), chain: vec![error.to_string()], hints: error.hint().into_iter().collect() }
    }

    /// Returns the end that Ctrl-C asked for.
    pub(crate) fn interrupted() -> Failure {
        Failure { kind: Kind::Interrupted, chain: Vec::new(), hints: Vec::new() }
    }

    /// Returns the failure to write to stdout.
    pub(crate) fn stdout(error: &io::Error) -> Failure {
        match error.kind() {
            io::ErrorKind::BrokenPipe => Failure { kind: Kind::PipeClosed, chain: Vec::new(), hints: Vec::new() },
            _ => Failure::of(Code::CannotPrint, "cannot write to stdout").because(error.to_string()),
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

    /// Adds what was probably meant, if something known is near.
    #[must_use]
    pub(crate) fn suggesting<'n>(self, wrong: &str, known: impl IntoIterator<Item = &'n str>) -> Failure {
        match probably(wrong, known) {
            Some(name) => self.hinting(format!("did you mean {name:?}?")),
            None => self,
        }
    }

    /// Returns whether one file is to blame, so that others may do.
    pub(crate) fn is_about_input(&self) -> bool {
        let of_one = |code: Code| matches!(code, Code::CannotRead | Code::InUse);
        matches!(self.kind, Kind::Coded(code) if of_one(code) || code.exit_code() == Code::BadTranscript.exit_code())
    }

    /// Returns whether there is such a thing already.
    pub(crate) fn is_exists(&self) -> bool {
        self.kind == Kind::Coded(Code::Exists)
    }

    /// Returns whether there is no such thing.
    pub(crate) fn is_not_found(&self) -> bool {
        self.kind == Kind::Coded(Code::NotFound)
    }

    /// Passes over what is gone, as [`recto_engine::Error::unless_gone`] does.
    pub(crate) fn unless_gone<T>(asked: Result<T, Failure>) -> Result<Option<T>, Failure> {
        match asked {
            Err(failure) if matches!(failure.kind, Kind::Coded(Code::NotFound | Code::Erased)) => Ok(None),
            asked => asked.map(Some),
        }
    }

    /// Returns its code, if it has one.
    pub(crate) fn code(&self) -> Option<Code> {
        match self.kind {
            Kind::Coded(code) => Some(code),
            Kind::Interrupted | Kind::PipeClosed => None,
        }
    }

    /// Returns its code, what went wrong with its causes, and what to do about it.
    pub(crate) fn parts(&self) -> (Option<String>, String, &[String]) {
        let code = self.code().map(|code| code.to_string());
        (code, self.chain.join(": "), &self.hints)
    }

    /// Returns the exit code, as `recto --help` lists them.
    pub(crate) fn exit_code(&self) -> ExitCode {
        ExitCode::from(match self.kind {
            Kind::PipeClosed => 0,
            Kind::Coded(code) => code.exit_code(),
            Kind::Interrupted => INTERRUPTED,
        })
    }

    /// Returns what to say on stderr, safe for a terminal.
    pub(crate) fn told(&self, paint: Paint) -> String {
        let mut lines = Vec::new();
        let error = match self.kind {
            Kind::Coded(code) => format!("error[{code}]:"),
            Kind::Interrupted | Kind::PipeClosed => "error:".into(),
        };
        let labels = std::iter::once(paint.error(&error)).chain(std::iter::repeat("cause:".into()));
        lines.extend(labels.zip(&self.chain).map(|(label, what)| format!("{label} {}", harmless(what))));
        lines.extend(self.hints.iter().map(|hint| format!("{} {}", paint.hint("hint:"), harmless(hint))));
        if self.kind == Kind::Interrupted {
            lines.push("interrupted".into());
        }
        lines.join("\n")
    }
}

impl From<recto::Error> for Failure {
    fn from(error: recto::Error) -> Failure {
        let code = if error.is_settings() { Code::BadSettings } else { Code::BadConversation };
        Failure::of_core(code, &error)
    }
}

impl From<recto_engine::Error> for Failure {
    fn from(error: recto_engine::Error) -> Failure {
        if let Some(core) = error.core() {
            let code = if core.is_settings() { Code::BadSettings } else { Code::BadConversation };
            return Failure::of_core(code, core);
        }
        let code = match &error {
            error if error.is_not_found() => Code::NotFound,
            error if error.is_exists() => Code::Exists,
            error if error.is_conflict() => Code::Differs,
            error if error.is_erased() => Code::Erased,
            error if !error.forks().is_empty() => Code::HasForks,
            error if error.is_input() => Code::TooMuch,
            error if error.is_unreachable() => Code::StoreUnreachable,
            error if error.is_indeterminate() => Code::Indeterminate,
            error if error.is_busy() => Code::StoreBusy,
            error if error.is_full() => Code::StoreFull,
            error if error.is_read_only() => Code::StoreReadOnly,
            error if error.is_newer() => Code::StoreNewer,
            error if error.is_corrupt() => Code::StoreUnusable,
            error if error.is_in_use() => Code::InUse,
            error if error.is_program() => Code::ProgramFailed,
            error if error.is_refused() => Code::ProviderRefused,
            error if error.is_timed_out() => Code::TimedOut,
            error if error.is_defect() => Code::Defect,
            _ => Code::StoreFailed,
        };
        Failure { kind: Kind::Coded(code), chain: vec![error.to_string()], hints: error.hint().into_iter().collect() }
    }
}

/// Returns the failure to start what waits for others.
pub(crate) fn cannot_start(error: &io::Error) -> Failure {
    Failure::of(Code::StoreFailed, "cannot wait for others").because(error.to_string())
}

/// Returns the failure to read something at this place.
pub(crate) fn cannot_read(place: impl fmt::Display, error: &io::Error) -> Failure {
    Failure::of(Code::CannotRead, format!("cannot read {place}")).because(error.to_string())
}

/// Returns the failure to write something at this place.
pub(crate) fn cannot_write(place: impl fmt::Display, error: &io::Error) -> Failure {
    Failure::of(Code::CannotWrite, format!("cannot write {place}")).because(error.to_string())
}
