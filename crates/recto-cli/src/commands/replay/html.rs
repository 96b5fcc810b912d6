//! A report to look at: one HTML file that asks nobody for anything and runs nothing.
//!
//! Names and texts come from files; whatever is put between tags goes through [`escaped`].

mod over_calls; // tokens and money, call by call
mod parts; // cards, tables and numbers as they are written

use super::draw::{Frame, escaped};
use super::plot;
use super::report::{LeftOut, Outcome, Report};
use parts::{Cell, card, less, name, plural, section, short, table, usd};
use recto::Tokens;
use recto::replay::recall::Kind;

/// How many conversations are listed.
const ROWS_MAX: usize = 500;
/// How many passes are told of a policy, those that left out most first.
const PASSES_MAX: usize = 12;
/// How many policies have a card of their own.
const CARDS_MAX: usize = 7;

const VERSION: &str = env!("CARGO_PKG_VERSION");
/// What the words of a report mean.
const WORDS: &str = "\
<dt>tokens</dt><dd>The whole input of all calls, as the model's provider would count it.</dd>
<dt>cached</dt><dd>What of it stood unchanged at the beginning of the page of the call before.</dd>
<dt>money</dt><dd>What that input costs at the model's prices, if the provider's cache holds all it can.</dd>
<dt>cost</dt><dd>No money, but a share of the full history: a token is four bytes, a cached one counts 0.1 and any other 1.25.</dd>
<dt>recall</dt><dd>The mean over names, numbers, quoted texts, phrases of four words and whole lines that a reply took from \
the history: how many of them stood on the page that led to it. With the full history it is 1.</dd>
";

const STYLE: &str = include_str!("report.css");
/// Nothing is loaded, nothing runs, and only this style counts. Its digest is what `openssl dgst -sha256 -binary report.css |
/// base64` says; with another one, no browser would take the style.
const STYLE_DIGEST: &str = "sha256-XaEWKu8cpxVatW/AMY3+JBDx9BEfLhK7a6vZGyLcQRY=";

const PLOT_WIDE: Frame = Frame { width: 860.0, height: 420.0, left: 58.0, right: 24.0, top: 34.0, bottom: 56.0 };
const PLOT_NARROW: Frame = Frame { width: 350.0, height: 330.0, left: 44.0, right: 16.0, top: 34.0, bottom: 56.0 };

/// What the calls of a policy cost, beside the same calls with the whole history.
#[derive(Clone, Copy, Default)]
struct Beside {
    tokens: Tokens,
    cached: Tokens,
    usd: f64,
}

/// Returns the report.
pub(super) fn page(report: &Report) -> String {
    let title = title(report);
    let body = match report.outcomes[0].conversations.len() {
        0 => section("nothing", "Nothing was replayed", "<p>No conversation is long enough.</p>"),
        _ => [
            cards(report),
            cost_and_recall(report),
            policies(report),
            left_out(report),
            references(report),
            over_calls::section(report),
            conversations(report),
        ]
        .concat(),
    };
    format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src '{STYLE_DIGEST}'; base-uri 'none'; form-action 'none'\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta name=\"color-scheme\" content=\"light dark\">\n<meta name=\"referrer\" content=\"no-referrer\">\n\
         <title>{title}</title>\n<style>{STYLE}</style>\n</head>\n<body>\n\
         <header>\n<p class=\"brand\">RECTO</p>\n<h1>{title}</h1>\n{}</header>\n<main>\n{body}{}</main>\n\
         <footer>Made by recto {VERSION}. Tokens and money are those of the input.</footer>\n</body>\n</html>\n",
        introduction(report),
        reading(report),
        title = escaped(&title),
    )
}

fn title(report: &Report) -> String {
    let what = match &report.outcomes[0].conversations[..] {
        [only] => name(&only.conversation),
        all => plural(all.len(), "conversation"),
    };
    match &report.outcomes[..] {
        [only] => format!("{what} under {}", name(&only.policy)),
        several => format!("{what} under {} policies", several.len()),
    }
}

fn introduction(report: &Report) -> String {
    let about = &report.about;
    let window = about.window.map_or("an unbounded window".into(), |window| format!("a window of {window} tokens"));
    let calls = about.full.calls as usize;
    let told = format!("{} with {window}, {}.", about.target, plural(calls, "call"));
    let mut out = format!("<p class=\"meta\">{}</p>\n", escaped(&told));
    if let Some(told) = verdict(report) {
        out.push_str(&format!("<p class=\"verdict\">{}</p>\n", escaped(&told)));
    }
    out
}

/// What a reader would like to know first.
fn verdict(report: &Report) -> Option<String> {
    let cost = |it: &&Outcome| it.total.measured.cost;
    let recall = |it: &&Outcome| it.total.measured.recall;
    let cheapest = report.outcomes.iter().min_by(|one, other| cost(one).total_cmp(&cost(other)))?;
    let surest = report.outcomes.iter().max_by(|one, other| recall(one).total_cmp(&recall(other)))?;
    let told = |it: &Outcome| {
        let (cost, recall) = (100.0 * it.total.measured.cost, 100.0 * it.total.measured.recall);
        format!("costs {cost:.1} % of the full history and keeps {recall:.1} % of what the agent took up again")
    };
    Some(match report.outcomes.len() {
        1 => format!("It {}.", told(cheapest)),
        _ if cheapest.policy == surest.policy => {
            format!("{}, the cheapest, {}; no other keeps more.", name(&cheapest.policy), told(cheapest))
        }
        _ => format!(
            "{}, the cheapest, {}; {}, which keeps most, {}.",
            name(&cheapest.policy),
            told(cheapest),
            name(&surest.policy),
            told(surest)
        ),
    })
}

fn cards(report: &Report) -> String {
    let whole = whole_of(report, None);
    let mut out = String::from("<div class=\"cards\">\n");
    let (calls, has_prices) = (report.about.full.calls as usize, report.about.has_prices);
    let [tokens, told] = [format!("{} tokens", short(whole.tokens.0 as f64)), format!("in {}", plural(calls, "call"))];
    match has_prices {
        true => out.push_str(&card("Whole history", &usd(whole.usd), &format!("{tokens} {told}"), "")),
        false => out.push_str(&card("Whole history", &tokens, &told, "")),
    }
    for (at, outcome) in report.outcomes.iter().enumerate().take(CARDS_MAX) {
        let (spent, beside) = (&outcome.total.spent, whole_of(report, Some(at)));
        let told = format!("{} tokens", short(spent.tokens.0 as f64));
        let (number, remark, is_less) = match has_prices {
            true => (usd(spent.usd), format!("{told}, {}", less(spent.usd, beside.usd)), spent.usd <= beside.usd),
            false => (told, less(spent.tokens.0 as f64, beside.tokens.0 as f64), spent.tokens <= beside.tokens),
        };
        out.push_str(&card(&name(&outcome.policy), &number, &remark, if is_less { "good" } else { "bad" }));
    }
    out + "</div>\n"
}

/// What calls cost with the whole history: all of them, or those that a policy made.
fn whole_of(report: &Report, policy: Option<usize>) -> Beside {
    let mut sum = Beside::default();
    for (at, whole) in report.whole.iter().enumerate() {
        let made = policy.map(|policy| &report.outcomes[policy].conversations[at].calls);
        let is_made = |turn: usize| made.is_none_or(|made| made.binary_search_by_key(&turn, |call| call.turn).is_ok());
        for call in whole.iter().filter(|call| is_made(call.turn)) {
            sum.tokens += call.tokens;
            sum.cached += call.cached;
            sum.usd += call.usd;
        }
    }
    sum
}

fn cost_and_recall(report: &Report) -> String {
    let content = format!(
        "<p class=\"meta\">Up is better, left is cheaper. Cost is a share of the full history, sent at every call, and is the \
         same for every model; recall is how much of what the agent took up again stood on the page that led to it.</p>\n\
         <figure>\n{}{}</figure>\n",
        plot::drawing(report, "wide", &PLOT_WIDE),
        plot::drawing(report, "narrow", &PLOT_NARROW),
    );
    section("frontier", "Cost and recall", &content)
}

fn policies(report: &Report) -> String {
    let is_several = report.outcomes.len() > 1;
    let has_overflow = report.outcomes.iter().any(|outcome| outcome.total.overflows > 0);
    let mut heads = vec!["policy", "cost", "recall", "tokens", "cached"];
    heads.extend(report.about.has_prices.then_some("money"));
    heads.push("longest page");
    heads.extend(has_overflow.then_some("don't fit"));
    heads.extend(is_several.then_some("beaten by"));
    let row = |(at, outcome): (usize, &Outcome)| {
        let (total, beside) = (&outcome.total, whole_of(report, Some(at)));
        let (spent, measured) = (&total.spent, &total.measured);
        let label = if is_several { format!("{} {}", at + 1, name(&outcome.policy)) } else { name(&outcome.policy) };
        let cached = spent.cached.0 as f64 / spent.tokens.0.max(1) as f64;
        let mut cells = vec![
            Cell::Words(label),
            Cell::Share(format!("{:.3}", measured.cost), measured.cost),
            Cell::Share(format!("{:.4}", measured.recall), measured.recall),
            Cell::Remarked(spent.tokens.to_string(), less(spent.tokens.0 as f64, beside.tokens.0 as f64)),
            Cell::Share(format!("{:.1} %", 100.0 * cached), cached),
        ];
        let money = || Cell::Remarked(usd(spent.usd), less(spent.usd, beside.usd));
        cells.extend(report.about.has_prices.then(money));
        cells.push(Cell::Number(spent.peak.to_string()));
        cells.extend(has_overflow.then(|| Cell::Number(plural(total.overflows, "page"))));
        cells.extend(is_several.then(|| Cell::Words(beaten_by(report, at))));
        cells
    };
    let rows: Vec<Vec<Cell>> = report.outcomes.iter().enumerate().map(row).collect();
    let note = "<p class=\"meta\">Less and more are beside the same calls with the whole history. A policy is beaten by one that \
                costs no more and keeps no less.</p>\n";
    section("policies", "Policies", &format!("{}{note}", table("Policies", &heads, &rows)))
}

/// Which policies cost no more and keep no less, and one of both better.
fn beaten_by(report: &Report, at: usize) -> String {
    let own = &report.outcomes[at].total.measured;
    let better = |other: &Outcome| {
        let it = &other.total.measured;
        it.cost <= own.cost && it.recall >= own.recall && (it.cost < own.cost || it.recall > own.recall)
    };
    let all: Vec<String> = report.outcomes.iter().filter(|it| better(it)).map(|it| name(&it.policy)).collect();
    if all.is_empty() { "none".into() } else { all.join(", ") }
}

fn left_out(report: &Report) -> String {
    let row = |outcome: &Outcome| {
        let LeftOut { shown, changed, not_shown, by } = &outcome.total.left;
        let mut by: Vec<_> = by.iter().collect();
        by.sort_by_key(|(_, (_, less))| std::cmp::Reverse(*less));
        let rest = by.len().saturating_sub(PASSES_MAX);
        let told = by
            .iter()
            .take(PASSES_MAX)
            .map(|(pass, (entries, less))| format!("{pass}: {entries} entries, {less} tokens less"));
        let mut told: Vec<String> = told.collect();
        told.extend((rest > 0).then(|| format!("and {rest} more")));
        let told = if told.is_empty() { "nothing".into() } else { told.join("; ") };
        let count = |entries: &u64| Cell::Number(Tokens(*entries).to_string());
        vec![Cell::Words(name(&outcome.policy)), count(shown), count(changed), count(not_shown), Cell::Words(told)]
    };
    let rows: Vec<Vec<Cell>> = report.outcomes.iter().map(row).collect();
    let heads = ["policy", "shown", "changed", "not shown", "by which pass"];
    let note = "<p class=\"meta\">Entries of the log, as they fared on the last page of each conversation.</p>\n";
    section(
        "left-out",
        "What was left out",
        &format!("{note}{}", table("What was left out on the last pages", &heads, &rows)),
    )
}

fn references(report: &Report) -> String {
    let heads: Vec<&str> = std::iter::once("policy").chain(Kind::ALL.map(Kind::name)).collect();
    let row = |outcome: &Outcome| {
        let kinds = outcome.total.measured.score.references;
        let kept = kinds.iter().map(|it| {
            Cell::Remarked(format!("{:.4}", it.share()), format!("{} of {}", Tokens(it.kept), Tokens(it.all)))
        });
        std::iter::once(Cell::Words(name(&outcome.policy))).chain(kept).collect()
    };
    let rows: Vec<Vec<Cell>> = report.outcomes.iter().map(row).collect();
    section(
        "references",
        "What was kept of what came up again",
        &table("References that were kept, by kind", &heads, &rows),
    )
}

fn conversations(report: &Report) -> String {
    let count = report.outcomes[0].conversations.len();
    if count == 1 {
        return String::new();
    }
    let mut rows: Vec<Vec<Cell>> = Vec::new();
    for at in 0..count.min(ROWS_MAX / report.outcomes.len().max(1)).max(1) {
        for outcome in &report.outcomes {
            let it = &outcome.conversations[at];
            let mut cells = vec![Cell::Words(name(&it.conversation)), Cell::Words(name(&outcome.policy))];
            cells.push(Cell::Number(Tokens(it.spent.calls as u64).to_string()));
            cells.push(Cell::Number(it.spent.tokens.to_string()));
            cells.extend(report.about.has_prices.then(|| Cell::Number(usd(it.spent.usd))));
            cells.push(Cell::Share(format!("{:.3}", it.measured.cost), it.measured.cost));
            cells.push(Cell::Share(format!("{:.4}", it.measured.recall), it.measured.recall));
            rows.push(cells);
        }
    }
    let mut heads = vec!["conversation", "policy", "calls", "tokens"];
    heads.extend(report.about.has_prices.then_some("money"));
    heads.extend(["cost", "recall"]);
    let told = rows.len() / report.outcomes.len().max(1);
    let rest = match count - told {
        0 => String::new(),
        rest => format!("<p class=\"meta\">{rest} more are not listed; <code>--json</code> tells them all.</p>\n"),
    };
    section("conversations", "Conversations", &format!("{}{rest}", table("Conversations", &heads, &rows)))
}

/// What the words mean, and what a reader must know to trust the numbers.
fn reading(report: &Report) -> String {
    let mut notes: Vec<String> = Vec::new();
    let overflows: usize = report.outcomes.iter().map(|it| it.total.overflows).sum();
    if overflows > 0 {
        notes.push(format!("Pages that do not fit: {overflows}. Cost, recall, tokens and money leave them out."));
    }
    if report.about.left_out > 0 {
        notes.push(format!("Conversations that were left out because they are short: {}.", report.about.left_out));
    }
    for outcome in &report.outcomes {
        notes.extend(outcome.total.summaries.map(|bill| format!("{}: {}.", name(&outcome.policy), bill.told())));
    }
    if !report.about.has_prices {
        notes.push("Nothing is known about what the model costs.".into());
    }
    let notes: String = notes.iter().map(|note| format!("<li>{}</li>\n", escaped(note))).collect();
    let notes = if notes.is_empty() { notes } else { format!("<ul class=\"notes\">\n{notes}</ul>\n") };
    section("reading", "How to read this", &format!("{notes}<dl>\n{WORDS}</dl>\n"))
}
