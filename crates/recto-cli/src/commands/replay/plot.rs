//! Cost and recall of policies as a picture: an SVG file that needs nothing else, light or dark as its reader likes.

use super::report::Report;
use std::fmt::Write;

const WIDTH: f64 = 760.0;
const HEIGHT: f64 = 480.0;
const LEFT: f64 = 70.0;
const RIGHT: f64 = 30.0;
const TOP: f64 = 50.0;
const BOTTOM: f64 = 60.0;
/// About how many lines of the grid there are in each direction.
const GRID_LINES: f64 = 6.0;
/// An axis shows at least this much.
const SPAN_MIN: f64 = 0.01;
/// How far apart labels stand, from line to line.
const LABEL_HEIGHT: f64 = 16.0;
/// What a character of a label takes, at most.
const CHAR_WIDTH: f64 = 8.0;
/// How much of a name a label shows, in characters.
const LABEL_CHARS_MAX: usize = 32;

const STYLE: &str = "\
:root{--ground:#fff;--ink:#1f2328;--faint:#d0d7de;--grey:#59636e;--point:#0969da;--full:#8250df}
@media(prefers-color-scheme:dark){
:root{--ground:#0d1117;--ink:#e6edf3;--faint:#30363d;--grey:#9198a1;--point:#58a6ff;--full:#bc8cff}}
text{font:13px system-ui,sans-serif;fill:var(--ink);paint-order:stroke;stroke:var(--ground);stroke-width:3px}
.tick{fill:var(--grey);font-size:12px}.title{font-size:15px;font-weight:600}
.ground{fill:var(--ground)}.grid{stroke:var(--faint)}.lead{stroke:var(--grey)}
.point{fill:var(--point)}.full{fill:var(--full)}";

struct Point<'r> {
    name: &'r str,
    class: &'static str,
    cost: f64,
    recall: f64,
}

/// What an axis shows, and where its lines are.
struct Axis {
    low: f64,
    high: f64,
    step: f64,
}

impl Axis {
    /// An axis that reaches at least from one number to another, in round steps.
    fn over(low: f64, high: f64) -> Axis {
        let low = low.min(high - SPAN_MIN);
        let rough = (high - low) / GRID_LINES;
        let magnitude = 10_f64.powf(rough.log10().floor());
        let step =
            [1.0, 2.0, 5.0].into_iter().map(|it| it * magnitude).find(|it| *it >= rough).unwrap_or(10.0 * magnitude);
        // A hair more than a whole step is one.
        let steps = |at: f64| (at / step * 1e6).round() / 1e6;
        Axis { low: steps(low).floor() * step, high: steps(high).ceil() * step, step }
    }

    /// Returns where a number lies, from 0 to 1.
    fn at(&self, number: f64) -> f64 {
        (number - self.low) / (self.high - self.low)
    }

    fn lines(&self) -> impl Iterator<Item = f64> {
        let count = ((self.high - self.low) / self.step).round() as u32;
        (0..=count).map(|line| self.low + f64::from(line) * self.step)
    }

    fn told(&self, number: f64) -> String {
        let digits = (-self.step.log10().floor()).clamp(0.0, 6.0) as usize;
        format!("{number:.digits$}")
    }
}

/// A label's box.
struct Label {
    left: f64,
    right: f64,
    y: f64,
}

/// Returns the picture of a report.
pub(super) fn svg(report: &Report) -> String {
    let mut points = vec![Point { name: "full history", class: "full", cost: 1.0, recall: 1.0 }];
    points.extend(report.outcomes.iter().map(|outcome| {
        let measured = &outcome.total.measured;
        Point { name: &outcome.policy, class: "point", cost: measured.cost, recall: measured.recall }
    }));
    let most = points.iter().map(|point| point.cost).fold(1.0, f64::max);
    let least = points.iter().map(|point| point.recall).fold(1.0, f64::min);
    let (x, y) = (Axis::over(0.0, most), Axis::over(least.min(0.95), 1.0));
    let conversations = report.outcomes.first().map_or(0, |outcome| outcome.total.conversations);
    let title = format!("Cost and recall, {}, conversations: {conversations}", report.about.target);
    let mut out = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" role=\"img\">\n\
         <title>{}</title>\n<style>{STYLE}</style>\n<rect class=\"ground\" width=\"{WIDTH}\" height=\"{HEIGHT}\"/>\n",
        escaped(&title)
    );
    text(&mut out, (LEFT, 28.0), "title", "start", &title);
    draw_axes(&mut out, &x, &y);
    draw_points(&mut out, &points, &x, &y);
    out.push_str("</svg>\n");
    out
}

fn across(x: &Axis, cost: f64) -> f64 {
    LEFT + x.at(cost) * (WIDTH - LEFT - RIGHT)
}

fn down(y: &Axis, recall: f64) -> f64 {
    HEIGHT - BOTTOM - y.at(recall) * (HEIGHT - TOP - BOTTOM)
}

fn draw_axes(out: &mut String, x: &Axis, y: &Axis) {
    for cost in x.lines() {
        let at = across(x, cost);
        line(out, (at, TOP), (at, HEIGHT - BOTTOM), "grid");
        text(out, (at, HEIGHT - BOTTOM + 18.0), "tick", "middle", &x.told(cost));
    }
    for recall in y.lines() {
        let at = down(y, recall);
        line(out, (LEFT, at), (WIDTH - RIGHT, at), "grid");
        text(out, (LEFT - 8.0, at + 4.0), "tick", "end", &y.told(recall));
    }
    text(out, (WIDTH - RIGHT, HEIGHT - 16.0), "tick", "end", "cost, full history = 1");
    text(out, (LEFT - 8.0, TOP - 10.0), "tick", "end", "recall");
}

fn draw_points(out: &mut String, points: &[Point<'_>], x: &Axis, y: &Axis) {
    let mut labels: Vec<Label> = Vec::new();
    for point in points {
        let (px, py) = (across(x, point.cost), down(y, point.recall));
        let told = format!("{}: cost {:.3}, recall {:.4}", point.name, point.cost, point.recall);
        put(out, format_args!("<circle class=\"{}\" cx=\"{px:.1}\" cy=\"{py:.1}\" r=\"5\">", point.class));
        put(out, format_args!("<title>{}</title></circle>\n", escaped(&told)));
        let name: String = point.name.chars().take(LABEL_CHARS_MAX).collect();
        let width = name.chars().count() as f64 * CHAR_WIDTH;
        let is_left = px + 10.0 + width > WIDTH - 4.0;
        let (from, anchor) = if is_left { (px - 10.0, "end") } else { (px + 10.0, "start") };
        let (left, right) = if is_left { (from - width, from) } else { (from, from + width) };
        let label = Label { left, right, y: free_line(&labels, left, right, py + 4.0) };
        if label.y - py > LABEL_HEIGHT {
            line(out, (px, py), (from, label.y - 4.0), "lead");
        }
        text(out, (from, label.y), "label", anchor, &name);
        labels.push(label);
    }
}

/// The nearest line from `y` down that no label takes.
fn free_line(labels: &[Label], left: f64, right: f64, y: f64) -> f64 {
    let mut y = y;
    // Every label can be in the way once.
    for _ in labels {
        let in_the_way =
            labels.iter().find(|it| it.left < right && left < it.right && (it.y - y).abs() < LABEL_HEIGHT - 0.5);
        match in_the_way {
            Some(label) => y = label.y + LABEL_HEIGHT,
            None => break,
        }
    }
    y
}

fn line(out: &mut String, from: (f64, f64), to: (f64, f64), class: &str) {
    let ((x1, y1), (x2, y2)) = (from, to);
    put(out, format_args!("<line class=\"{class}\" x1=\"{x1:.1}\" y1=\"{y1:.1}\" x2=\"{x2:.1}\" y2=\"{y2:.1}\"/>\n"));
}

fn text(out: &mut String, at: (f64, f64), class: &str, anchor: &str, text: &str) {
    let ((x, y), text) = (at, escaped(text));
    put(
        out,
        format_args!("<text class=\"{class}\" x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"{anchor}\">{text}</text>\n"),
    );
}

fn put(out: &mut String, what: std::fmt::Arguments<'_>) {
    out.write_fmt(what).expect("a string takes everything");
}

/// A text as XML takes it; names come from files.
fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            c if c.is_control() || matches!(c, '\u{fffe}' | '\u{ffff}') => out.push('\u{fffd}'),
            c => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn axes_have_round_steps_and_hold_everything() {
        for (low, high) in [(0.0, 1.0), (0.0, 1.2), (0.31, 1.0), (0.95, 1.0), (0.0, 37.0), (0.9999, 1.0), (1.0, 1.0)] {
            let axis = Axis::over(low, high);
            let lines: Vec<f64> = axis.lines().collect();
            assert!(axis.low <= low + 1e-9 && axis.high >= high - 1e-9, "{low} to {high}: {lines:?}");
            assert!((2..=12).contains(&lines.len()), "{low} to {high}: {lines:?}");
        }
        let told = |axis: &Axis| axis.lines().map(|line| axis.told(line)).collect::<Vec<_>>().join(" ");
        assert_eq!(told(&Axis::over(0.0, 1.0)), "0.0 0.2 0.4 0.6 0.8 1.0");
        assert_eq!(told(&Axis::over(0.95, 1.0)), "0.95 0.96 0.97 0.98 0.99 1.00");
    }

    #[test]
    fn labels_do_not_cover_each_other() {
        let mut labels: Vec<Label> = Vec::new();
        for nth in 0..20 {
            let y = free_line(&labels, 0.0, 10.0, f64::from(nth % 3));
            assert!(labels.iter().all(|it| (it.y - y).abs() >= LABEL_HEIGHT - 0.5));
            labels.push(Label { left: 0.0, right: 10.0, y });
        }
        assert_eq!(free_line(&labels, 11.0, 20.0, 1.0), 1.0);
    }

    #[test]
    fn names_cannot_break_the_picture() {
        assert_eq!(escaped("a<b>&\"\u{1b}"), "a&lt;b&gt;&amp;&quot;\u{fffd}");
    }
}
