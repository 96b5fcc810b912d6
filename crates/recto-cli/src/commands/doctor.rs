//! `recto doctor`: whether the store is whole, and what is wrong with it.

use crate::args::DoctorArgs;
use crate::codes::Code;
use crate::config::Config;
use crate::failure::Failure;
use crate::kept::Kept;
use crate::progress::Progress;
use crate::table::{self, Side};
use crate::talk;
use recto_engine::store::sqlite::{Finding, Report};
use serde::Serialize;

/// How many findings are told with the failure; all of them stand on stdout.
const CAUSES_MAX: usize = 3;

/// Checks the whole store.
pub(crate) fn run(args: &DoctorArgs, config: &Config) -> Result<(), Failure> {
    let kept = Kept::open(&args.store, config)?;
    let progress = Progress::on_stderr("entries");
    let report = kept.run(kept.engine.check(move |entries| progress.at(entries)))?;
    if args.output.json {
        talk::json(&Output { store: kept.engine.store().to_string(), report: &report })?;
    } else {
        talk::text(&told(&report))?;
    }
    let causes = report.findings.iter().take(CAUSES_MAX).map(found);
    match report.findings.len() {
        0 => Ok(()),
        several => {
            let failure = Failure::of(Code::Damaged, format!("the store is damaged; findings: {several}"));
            Err(causes
                .fold(failure, Failure::because)
                .hinting("keep a copy, then restore a backup, or export what can be read and import it elsewhere"))
        }
    }
}

/// What `--json` prints; `recto doctor --help` tells its shape.
#[derive(Serialize)]
struct Output<'a> {
    store: String,
    #[serde(flatten)]
    report: &'a Report,
}

fn told(report: &Report) -> String {
    let row = |what: &str, number: String| [what.to_string(), number];
    let counted = [
        row("schema", report.schema.to_string()),
        row("conversations", report.conversations.to_string()),
        row("entries", report.entries.to_string()),
        row("decisions", report.decisions.to_string()),
        row("calls", report.calls.to_string()),
    ];
    let bytes = [("bytes of the file", report.file_bytes), ("bytes of its log", report.log_bytes)];
    let bytes = bytes.into_iter().filter_map(|(what, bytes)| Some(row(what, bytes?.to_string())));
    let rows: Vec<[String; 2]> = counted.into_iter().chain(bytes).collect();
    let mut lines = vec![table::aligned(&rows, [Side::Left, Side::Right]), String::new()];
    match report.findings.as_slice() {
        [] => lines.push("all is well".into()),
        findings => lines.extend(findings.iter().map(found)),
    }
    lines.extend(report.is_cut.then(|| "and more".into()));
    lines.join("\n")
}

fn found(finding: &Finding) -> String {
    match &finding.conversation {
        Some(conversation) => format!("conversation {:?}: {}", conversation.as_str(), finding.what),
        None => finding.what.clone(),
    }
}
