//! `recto replay --questions`: what questions bring back that are asked after a conversation.

use super::Pages;
use crate::args::ReplayArgs;
use crate::codes::Code;
use crate::failure::Failure;
use crate::settings::Settings;
use crate::source::{self, Named};
use crate::subject::Subject;
use crate::table::{Side, aligned};
use crate::{interrupt, talk};
use recto::replay::Questions;
use serde::Deserialize;
use std::path::{Path, PathBuf};

/// A record of a file, as far as it asks something.
#[derive(Debug, Default, Deserialize)]
struct Asking {
    #[serde(default)]
    meta: Meta,
}

#[derive(Debug, Default, Deserialize)]
struct Meta {
    #[serde(default)]
    qa: Vec<Question>,
}

#[derive(Debug, Deserialize)]
struct Question {
    question: String,
}

/// What the pages of one budget came to.
#[derive(Clone, Copy, Debug, Default)]
struct Sum {
    pages: u64,
    tokens: u64,
    longest: u64,
}

/// Asks every question of the files at every budget, and writes the pages.
pub(super) fn run(args: &ReplayArgs, settings: &Settings, files: &[PathBuf]) -> Result<(), Failure> {
    let mut pages = Pages::to(args.pages.as_deref(), files)?;
    let is_stdout_taken = matches!(pages, Pages::Stdout);
    let mut sums = vec![Sum::default(); args.budget.len()];
    for file in files {
        let text = source::text(file, &source::TRANSCRIPT)?;
        let asked = asked(file, &text)?;
        for (Named { name, conversation }, asking) in source::named(file, &text)?.into_iter().zip(asked) {
            if args.conversation.as_ref().is_some_and(|only| *only != name) {
                continue;
            }
            let subject = Subject::of(name, conversation, settings)?;
            let questions = Questions::about(&subject.log, &settings.target);
            for (budget, sum) in args.budget.iter().zip(&mut sums) {
                for (nth, it) in asking.meta.qa.iter().enumerate() {
                    interrupt::check()?;
                    let compiled = questions.page(&it.question, *budget)?;
                    pages.line(
                        &subject.name,
                        &format!("\"question\":{nth},\"budget\":{}", budget.0),
                        &compiled.page,
                    )?;
                    let tokens = compiled.receipt.ledger.used().0;
                    (sum.pages, sum.tokens, sum.longest) =
                        (sum.pages + 1, sum.tokens + tokens, sum.longest.max(tokens));
                }
            }
        }
    }
    pages.finish()?;
    let told = table(args, &sums);
    if is_stdout_taken {
        talk::note(&told)
    } else {
        talk::text(&told)?
    }
    Ok(())
}

/// What each record of a file asks.
fn asked(file: &Path, text: &str) -> Result<Vec<Asking>, Failure> {
    let records = serde_json::Deserializer::from_str(text).into_iter::<Asking>();
    records.collect::<Result<Vec<_>, _>>().map_err(|error| {
        Failure::of(Code::BadTranscript, format!("cannot read the questions of {}", source::shown(file)))
            .because(error.to_string())
            .hinting("a question stands in a record's \"meta\": {\"qa\": [{\"question\": \"…\"}]}")
    })
}

fn table(args: &ReplayArgs, sums: &[Sum]) -> String {
    let mut rows = vec![["budget", "pages", "tokens each", "longest"].map(String::from)];
    for (budget, sum) in args.budget.iter().zip(sums) {
        let each = sum.tokens / sum.pages.max(1);
        rows.push([budget.0, sum.pages, each, sum.longest].map(|number| number.to_string()));
    }
    format!("{}\n", aligned(&rows, [Side::Right; 4]))
}
