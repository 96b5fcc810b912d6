//! Tokens and money of the longest conversations, call by call, with and without Recto.

use super::super::curves::{self, Chart, NARROW, Series, WIDE};
use super::super::draw::{escaped, put};
use super::super::report::{Call, Report};
use super::parts::{self, Cell, name, short, table, usd};
use recto::Tokens;
use std::cmp::Reverse;

/// How many conversations are drawn: the longest.
const DRAWN_MAX: usize = 12;
/// How many calls a table of numbers tells.
const ROWS_MAX: usize = 60;
const WHOLE: &str = "whole history";
/// What stands at the end of its line.
const WHOLE_MARK: &str = "all";

/// The calls of one conversation: with the whole history, and under each policy.
struct Calls<'r> {
    name: String,
    whole: &'r [Call],
    policies: Vec<(&'r str, &'r [Call])>,
}

/// Returns the section.
pub(super) fn section(report: &Report) -> String {
    let mut longest: Vec<usize> = (0..report.whole.len()).collect();
    longest.sort_by_key(|at| Reverse(report.whole[*at].iter().map(|call| call.tokens).sum::<Tokens>()));
    let left_out = longest.len().saturating_sub(DRAWN_MAX);
    longest.truncate(DRAWN_MAX);
    let mut out = String::from(
        "<p class=\"meta\">The dashed line is the whole history at every call: what an agent sends that forgets nothing, \
         priced as if no window ended it. A line is broken where a page does not fit. Point at a call for its numbers.</p>\n",
    );
    if left_out > 0 {
        put(
            &mut out,
            format_args!(
                "<p class=\"meta\">The {DRAWN_MAX} longest conversations are drawn; {left_out} are not.</p>\n"
            ),
        );
    }
    for (nth, at) in longest.into_iter().enumerate() {
        let calls = Calls {
            name: name(&report.outcomes[0].conversations[at].conversation),
            whole: &report.whole[at],
            policies: report.outcomes.iter().map(|it| (&*it.policy, &*it.conversations[at].calls)).collect(),
        };
        let is_open = if nth == 0 { " open" } else { "" };
        let told = format!("{}, {}", calls.name, parts::plural(calls.whole.len(), "call"));
        put(&mut out, format_args!("<details class=\"talk\"{is_open}><summary>{}</summary>\n<div>\n", escaped(&told)));
        calls.draw(report, &mut out);
        out.push_str("</div></details>\n");
    }
    parts::section("calls", "Over the calls", &out)
}

impl<'r> Calls<'r> {
    fn draw(&self, report: &Report, out: &mut String) {
        let tokens = Chart {
            label: format!("Tokens of each call of {}, under each policy and with the whole history", self.name),
            series: self.series(|calls| calls.iter().map(|call| (call.turn, call.tokens.0 as f64)).collect()),
            limit: report.about.window.map(|window| window.0 as f64),
            told: short,
            tick: |_, number| short(number),
        };
        let money = Chart {
            label: format!("Money that the calls of {} have cost so far", self.name),
            series: self.series(so_far),
            limit: None,
            told: usd,
            tick: |axis, number| format!("${}", axis.told(number)),
        };
        figure(out, "Tokens of each call", &tokens);
        if report.about.has_prices {
            figure(out, "Money so far", &money);
        }
        out.push_str("<details class=\"numbers\"><summary>As numbers</summary>\n");
        numbers(out, "Tokens of each call", &tokens, |number| Tokens(number as u64).to_string());
        if report.about.has_prices {
            numbers(out, "Money so far", &money, usd);
        }
        out.push_str("</details>\n");
    }

    fn series(&self, points: impl Fn(&[Call]) -> Vec<(usize, f64)>) -> Vec<Series<'r>> {
        let (mark, class) = (WHOLE_MARK.to_string(), "line whole".to_string());
        let mut all = vec![Series { name: WHOLE, mark, class, points: points(self.whole) }];
        all.extend(self.policies.iter().enumerate().map(|(at, (name, calls))| {
            let mark = if self.policies.len() > 1 { (at + 1).to_string() } else { "page".into() };
            Series { name, mark, class: curves::class(at), points: points(calls) }
        }));
        all
    }
}

/// What calls have cost together, up to each.
fn so_far(calls: &[Call]) -> Vec<(usize, f64)> {
    let mut sum = 0.0;
    let add = |call: &Call| {
        sum += call.usd;
        (call.turn, sum)
    };
    calls.iter().map(add).collect()
}

fn figure(out: &mut String, heading: &str, chart: &Chart<'_>) {
    put(out, format_args!("<figure>\n<figcaption><b>{}</b>", escaped(heading)));
    for series in &chart.series {
        let key = if series.name == WHOLE { WHOLE.into() } else { format!("{} {}", series.mark, name(series.name)) };
        let class = escaped(&series.class);
        put(
            out,
            format_args!(
                "<span class=\"key\"><svg viewBox=\"0 0 30 10\" aria-hidden=\"true\"><path class=\"{class}\" d=\"M2 5H28\"/></svg>{}</span>",
                escaped(&key)
            ),
        );
    }
    out.push_str("</figcaption>\n");
    out.push_str(&chart.drawing("wide", &WIDE));
    out.push_str(&chart.drawing("narrow", &NARROW));
    out.push_str("</figure>\n");
}

fn numbers(out: &mut String, heading: &str, chart: &Chart<'_>, told: impl Fn(f64) -> String) {
    let turns: Vec<usize> = chart.series[0].points.iter().map(|point| point.0).collect();
    let step = turns.len().div_ceil(ROWS_MAX).max(1);
    let names: Vec<String> = chart.series.iter().map(|series| name(series.name)).collect();
    let heads: Vec<&str> = std::iter::once("call").chain(names.iter().map(String::as_str)).collect();
    let rows = turns.iter().step_by(step).map(|turn| {
        let number = |series: &Series<'_>| {
            let at = series.points.binary_search_by_key(turn, |point| point.0);
            Cell::Number(at.map_or("–".into(), |at| told(series.points[at].1)))
        };
        std::iter::once(Cell::Words(turn.to_string())).chain(chart.series.iter().map(number)).collect()
    });
    let rows: Vec<Vec<Cell>> = rows.collect();
    let which = if step == 1 { String::new() } else { format!(", one call of {step}") };
    put(out, format_args!("<h3>{}</h3>\n", escaped(&format!("{heading}{which}"))));
    out.push_str(&table(&chart.label, &heads, &rows));
}
