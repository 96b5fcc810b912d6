//! `recto compile`: the request body of a page.

use crate::args::PageArgs;
use crate::codes::Code;
use crate::config::Config;
use crate::failure::Failure;
use crate::settings::Settings;
use crate::subject::Asked;
use crate::{body, subject, talk};
use recto::digest::Digest;
use recto::page::{Message, Mode, Page};
use recto::receipt::{Fate, Receipt};
use recto::{Role, Seq, Tokens};
use serde::Serialize;
use serde_json::value::RawValue;

/// Prints the body of the page that was asked for.
pub(crate) fn run(args: &PageArgs, config: &Config) -> Result<(), Failure> {
    let settings = Settings::of(&args.settings, config)?.knowing(args.facts.as_deref())?;
    let asked = subject::asked(args, &settings, config)?;
    let mut body = body::of(&asked.compiled.page, &asked.target, asked.given.as_ref())?;
    if args.json {
        let body = serde_json::from_slice(&body)
            .map_err(|error| Failure::of(Code::Defect, "the body is not JSON").because(error.to_string()))?;
        return talk::json(&Output::of(&asked, body));
    }
    body.push(b'\n');
    talk::data(&body)?;
    talk::note(&summary(&asked));
    Ok(())
}

/// What `--json` prints; `recto compile --help` tells its shape.
#[derive(Serialize)]
struct Output<'a> {
    conversation: &'a str,
    turn: Option<usize>,
    page: PageOutput,
    body: &'a RawValue,
    receipt: &'a Receipt,
}

#[derive(Serialize)]
struct PageOutput {
    mode: Mode,
    messages: Vec<MessageOutput>,
}

#[derive(Serialize)]
struct MessageOutput {
    role: Role,
    seq: Option<Seq>,
    cost: Tokens,
    digest: Digest,
}

impl<'a> Output<'a> {
    fn of(asked: &'a Asked, body: &'a RawValue) -> Output<'a> {
        let Page { mode, messages, .. } = &asked.compiled.page;
        let output = |it: &Message| MessageOutput { role: it.role, seq: it.seq, cost: it.cost, digest: it.digest };
        Output {
            conversation: &asked.name,
            turn: asked.turn,
            page: PageOutput { mode: *mode, messages: messages.iter().map(output).collect() },
            body,
            receipt: &asked.compiled.receipt,
        }
    }
}

/// What the page is, in one line.
fn summary(asked: &Asked) -> String {
    let Receipt { target, policy, ledger, fates, money, .. } = &asked.compiled.receipt;
    let entries = |fate: Fate| fates.iter().filter(|row| row.fate == fate).map(|row| row.entries).sum::<u64>();
    let window = ledger.window.map_or("an unbounded window".into(), |window| window.to_string());
    format!(
        "page for {target}, policy {policy}: messages {}, tokens {} of {window} ({} cached, {:.6} USD); entries shown {}, \
         changed {}, not shown {}",
        asked.compiled.page.messages.len(),
        ledger.used(),
        money.cached,
        money.usd,
        entries(Fate::Shown),
        entries(Fate::Changed),
        entries(Fate::NotShown),
    )
}
