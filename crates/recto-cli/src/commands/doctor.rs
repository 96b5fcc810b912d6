//! `recto doctor`: whether the store is whole, and what is wrong with it.

use crate::args::DoctorArgs;
use crate::codes::Code;
use crate::config::Config;
use crate::failure::Failure;
use crate::kept::{self, Kept};
use crate::progress::Progress;
use crate::table::{self, Side};
use crate::talk;
use recto_engine::store::sqlite::{Copied, Finding, Report, Sqlite};
use serde::Serialize;

/// How many findings are told with the failure; all of them stand on stdout.
const CAUSES_MAX: usize = 3;

/// Checks the whole store.
pub(crate) fn run(args: &DoctorArgs, config: &Config) -> Result<(), Failure> {
    let upgraded = if args.upgrade { copied(args, config)? } else { None };
    let kept = Kept::open(&args.store, config).map_err(|failure| match &upgraded {
        Some(copied) => failure.hinting(format!("the store as it was is {}", copied.file.display())),
        None => failure,
    })?;
    let progress = Progress::on_stderr("entries");
    let report = kept.run(kept.engine.check(move |entries| progress.at(entries)))?;
    if args.output.json {
        let upgraded = args.upgrade.then(|| upgraded.as_ref().map(Upgraded::of));
        talk::json(&Output { store: kept.engine.store().to_string(), report: &report, upgraded })?;
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
    #[serde(skip_serializing_if = "Option::is_none")]
    upgraded: Option<Option<Upgraded>>,
}

#[derive(Serialize)]
struct Upgraded {
    from: i64,
    to: i64,
    file: String,
    bytes: u64,
}

impl Upgraded {
    fn of(copied: &Copied) -> Upgraded {
        let Copied { from, to, file, bytes } = copied;
        Upgraded { from: *from, to: *to, file: file.display().to_string(), bytes: *bytes }
    }
}

/// Copies a store that is older than this version, before anything opens it.
fn copied(args: &DoctorArgs, config: &Config) -> Result<Option<Copied>, Failure> {
    let place = kept::place(&args.store, config)?;
    let Some(path) = place.file() else {
        return Err(kept::no_file("`recto doctor --upgrade`")
            .hinting("make a dump first; then any command of this version brings the tables up to date"));
    };
    if !path.exists() {
        return Err(kept::missing(path));
    }
    let copied = Sqlite::copy_before_upgrade(path)
        .map_err(|error| Failure::from(error).during(format!("{} was not brought up to date", path.display())))?;
    match &copied {
        Some(Copied { from, to, file, bytes }) => talk::note(&format!(
            "schema {from} is brought to {to}; the store as it was is {}: {bytes} bytes, compared",
            file.display()
        )),
        None => talk::note("the store is up to date; nothing was copied"),
    }
    Ok(copied)
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
    let erasing = (report.erasing > 0).then(|| row("being erased", report.erasing.to_string()));
    let rows: Vec<[String; 2]> = counted.into_iter().chain(erasing).chain(bytes).collect();
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
