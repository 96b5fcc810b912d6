//! `recto summarize`: the summaries that would help the next page, made by hand.

use crate::args::SummarizeArgs;
use crate::codes::Code;
use crate::config::{Config, Origin, Set};
use crate::failure::Failure;
use crate::kept::{Kept, handles};
use crate::settings::Settings;
use crate::table::{self, Side};
use crate::{interrupt, subject, talk};
use recto::Tokens;
use recto::digest::Digest;
use recto::entry::Text;
use recto::note::{Input, Note, Want};
use recto_engine::engine::{Became, Begin};
use recto_engine::summarize::{Noted, Spent};
use recto_engine::{At, Call};
use serde::Serialize;
use std::collections::HashSet;

/// How often it is planned anew, since what was made may let the next page want more.
const ROUNDS_MAX: usize = 16;

/// Makes summaries, or prints what would be asked.
pub(crate) fn run(args: &SummarizeArgs, config: &Config) -> Result<(), Failure> {
    let mut config = config.clone();
    if !args.models.is_empty() {
        let models = Set { value: args.models.clone(), origin: Origin::Option("--model") };
        config.layer.summarizer.models = Some(models);
    }
    let settings = Settings::of(&args.settings, &config)?;
    let summarizer = config.summarizer()?.ok_or_else(nobody)?;
    interrupt::promise_checks();
    let mut kept = Kept::open(&args.store, &config)?;
    kept.engine = kept.engine.with_summarizer(summarizer);
    let at = kept.at(&args.name);
    let conversation = kept.conversation(&args.name)?;
    let call = subject::call(&args.reader.reader, &conversation, &settings);
    let made = if args.dry_run { asked(&kept, &at, &call)? } else { made(&kept, &at, &call, args.retry)? };
    let output = Output { conversation: &args.name, usd: made.iter().map(|row| row.spent.usd).sum(), summaries: made };
    match (args.output.json, args.dry_run) {
        (true, _) => talk::json(&output)?,
        (false, true) => talk::content(&output.questions())?,
        (false, false) => talk::text(&output.table())?,
    }
    output.failure().map_or(Ok(()), Err)
}

/// What would be asked.
fn asked(kept: &Kept, at: &At, call: &Call) -> Result<Vec<Row>, Failure> {
    let mut rows = Vec::new();
    for want in kept.run(kept.engine.wants(at, call))? {
        let input = kept.run(kept.engine.input_of(at, call, &want))?;
        rows.push(Row { input: Some(input.map(Question::from)), ..Row::of(&want) });
    }
    Ok(rows)
}

/// What was made. What has come of one is said at once on stderr, since each takes a while.
fn made(kept: &Kept, at: &At, call: &Call, retry: bool) -> Result<Vec<Row>, Failure> {
    let (mut rows, mut tried): (Vec<Row>, HashSet<Digest>) = (Vec::new(), HashSet::new());
    let mut summarize = |want: &Want, begin: Begin| {
        let became = kept.run(kept.engine.summarize(at, call, want, begin))?;
        let row = Row::of(want).after(became);
        talk::note(&row.told());
        rows.push(row);
        Ok::<(), Failure>(())
    };
    if retry {
        let failed = kept.run(kept.engine.noted(at))?;
        for Noted { want, .. } in failed.iter().filter(|it| matches!(it.note, Note::Failed { .. })) {
            tried.insert(want.key);
            summarize(want, Begin::Failed)?;
        }
    }
    for _ in 0..ROUNDS_MAX {
        let wants = kept.run(kept.engine.wants(at, call))?;
        let new: Vec<&Want> = wants.iter().filter(|want| tried.insert(want.key)).collect();
        if new.is_empty() {
            break;
        }
        new.into_iter().try_for_each(|want| summarize(want, Begin::New))?;
    }
    Ok(rows)
}

fn nobody() -> Failure {
    Failure::of(Code::BadSettings, "nobody is named who makes summaries")
        .hinting("say in recto.toml who does: [summarizer] with upstream and models")
        .hinting("`recto config --help` shows every key")
}

/// What `--json` prints; `recto summarize --help` tells its shape.
#[derive(Serialize)]
struct Output<'a> {
    conversation: &'a str,
    summaries: Vec<Row>,
    usd: f64,
}

#[derive(Serialize)]
struct Row {
    of: String,
    prompt: Option<Text>,
    chars: u32,
    urgent: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    state: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    model: Option<Text>,
    #[serde(skip_serializing_if = "Option::is_none")]
    text: Option<Text>,
    #[serde(skip_serializing_if = "Option::is_none")]
    why: Option<Text>,
    #[serde(flatten)]
    spent: Cost,
    #[serde(flatten)]
    input: Option<Option<Question>>,
}

#[derive(Clone, Copy, Default, Serialize)]
struct Cost {
    calls: u32,
    input: Tokens,
    cached: Tokens,
    output: Tokens,
    usd: f64,
}

#[derive(Serialize)]
struct Question {
    instructions: Text,
    text: Text,
}

impl From<Input> for Question {
    fn from(Input { instructions, text, .. }: Input) -> Question {
        Question { instructions, text }
    }
}

impl From<Spent> for Cost {
    fn from(Spent { calls, usage, usd }: Spent) -> Cost {
        Cost { calls, input: usage.input, cached: usage.cached, output: usage.output, usd }
    }
}

impl Row {
    fn of(want: &Want) -> Row {
        let of = handles(&want.subject);
        let (prompt, chars, urgent) = (want.prompt.clone(), want.chars, want.is_urgent);
        let (state, model, text, why, input) = (None, None, None, None, None);
        Row { of, prompt, chars, urgent, state, model, text, why, spent: Cost::default(), input }
    }

    fn after(self, became: Became) -> Row {
        let noted = |row: Row, Noted { note, .. }: Noted, state: &'static str| match note {
            Note::Made { text, model } => Row { state: Some(state), model: Some(model), text: Some(text), ..row },
            Note::Failed { why } => Row { state: Some("failed"), why: Some(why), ..row },
        };
        match became {
            Became::Noted(it) => {
                let spent = it.spent.into();
                Row { spent, ..noted(self, it, "made") }
            }
            Became::Known(it) => noted(self, it, "known"),
            Became::Unmade { why, spent } => Row { state: Some("unmade"), why: Some(why), spent: spent.into(), ..self },
            Became::Elsewhere => Row { state: Some("elsewhere"), ..self },
        }
    }

    /// What became of it, in a line.
    fn told(&self) -> String {
        let why = self.why.as_ref().map_or(String::new(), |why| format!(": {why}"));
        format!("{}: {}{why}", self.of, self.state.unwrap_or("asked"))
    }
}

impl Output<'_> {
    fn table(&self) -> String {
        if self.summaries.is_empty() {
            return "nothing is wanted: the policy has nothing that a summary would help, or all were made".into();
        }
        let mut rows = vec![["of", "state", "model", "input", "cached", "output", "USD"].map(String::from)];
        rows.extend(self.summaries.iter().map(|row| {
            let Cost { input, cached, output, usd, .. } = row.spent;
            [
                row.of.clone(),
                row.state.unwrap_or_default().into(),
                row.model.as_deref().unwrap_or("–").into(),
                input.to_string(),
                cached.to_string(),
                output.to_string(),
                format!("{usd:.6}"),
            ]
        }));
        let [left, right] = [Side::Left, Side::Right];
        let table = table::aligned(&rows, [left, left, left, right, right, right, right]);
        format!("{table}\n\ntogether: USD {:.6}", self.usd)
    }

    /// What would be asked, one after the other.
    fn questions(&self) -> String {
        if self.summaries.is_empty() {
            return "nothing would be asked".into();
        }
        let question = |row: &Row| {
            let prompt = row.prompt.as_deref().unwrap_or("the usual one");
            let urgent = if row.urgent { ", the next page needs it" } else { "" };
            let head = format!("== {}: about {} characters, prompt: {prompt}{urgent}", row.of, row.chars);
            match row.input.as_ref().and_then(Option::as_ref) {
                Some(Question { instructions, text }) => format!("{head}\n\n{instructions}\n\n{text}"),
                None => format!("{head}\n\nit can't be asked for: nobody knows the prompt, or its words are gone"),
            }
        };
        self.summaries.iter().map(question).collect::<Vec<_>>().join("\n\n")
    }

    /// The failure of those that could not be made.
    fn failure(&self) -> Option<Failure> {
        let missing: Vec<&Row> =
            self.summaries.iter().filter(|row| matches!(row.state, Some("failed" | "unmade"))).collect();
        let first = missing.first()?;
        let what = format!("summaries that could not be made: {} of {}", missing.len(), self.summaries.len());
        Some(Failure::of(Code::ProviderRefused, what).because(first.told()).hinting("--retry tries them once more"))
    }
}
