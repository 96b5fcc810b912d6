//! Cost and recall of policies as a picture: an SVG file that needs nothing else, light or dark as its reader likes.

use super::draw::{Axis, Frame, LABEL_HEIGHT, Label, escaped, free_line, line, put, text};
use super::report::Report;

const WIDE: Frame = Frame { width: 760.0, height: 480.0, left: 70.0, right: 30.0, top: 50.0, bottom: 60.0 };
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

/// Returns the picture of a report, as a file.
pub(super) fn svg(report: &Report) -> String {
    let (Frame { width, height, .. }, title) = (WIDE, title(report));
    let mut out = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" role=\"img\">\n\
         <title>{}</title>\n<style>{STYLE}</style>\n<rect class=\"ground\" width=\"{width}\" height=\"{height}\"/>\n",
        escaped(&title)
    );
    text(&mut out, (WIDE.left, 28.0), "title", "start", &title);
    draw(&mut out, report, &WIDE);
    out.push_str("</svg>\n");
    out
}

/// Returns the picture of a report within a page that has a style for it.
pub(super) fn drawing(report: &Report, class: &str, frame: &Frame) -> String {
    let mut out = frame.begin(class, &title(report));
    draw(&mut out, report, frame);
    out.push_str("</svg>\n");
    out
}

fn title(report: &Report) -> String {
    let conversations = report.outcomes.first().map_or(0, |outcome| outcome.total.conversations);
    format!("Cost and recall, {}, conversations: {conversations}", report.about.target)
}

fn draw(out: &mut String, report: &Report, frame: &Frame) {
    let mut points = vec![Point { name: "full history", class: "full", cost: 1.0, recall: 1.0 }];
    points.extend(report.outcomes.iter().map(|outcome| {
        let measured = &outcome.total.measured;
        Point { name: &outcome.policy, class: "point", cost: measured.cost, recall: measured.recall }
    }));
    let most = points.iter().map(|point| point.cost).fold(1.0, f64::max);
    let least = points.iter().map(|point| point.recall).fold(1.0, f64::min);
    let (x, y) = (Axis::over(0.0, most), Axis::over(least.min(0.95), 1.0));
    draw_axes(out, frame, &x, &y);
    draw_points(out, frame, &points, &x, &y);
}

fn draw_axes(out: &mut String, frame: &Frame, x: &Axis, y: &Axis) {
    for cost in x.lines() {
        let at = frame.across(x, cost);
        line(out, (at, frame.top), (at, frame.floor()), "grid");
        text(out, (at, frame.floor() + 18.0), "tick", "middle", &x.told(cost));
    }
    for recall in y.lines() {
        let at = frame.down(y, recall);
        line(out, (frame.left, at), (frame.wall(), at), "grid");
        text(out, (frame.left - 8.0, at + 4.0), "tick", "end", &y.told(recall));
    }
    text(out, (frame.wall(), frame.height - 16.0), "tick", "end", "cost, full history = 1");
    text(out, (frame.left - 8.0, frame.top - 10.0), "tick", "end", "recall");
}

fn draw_points(out: &mut String, frame: &Frame, points: &[Point<'_>], x: &Axis, y: &Axis) {
    let mut labels: Vec<Label> = Vec::new();
    for point in points {
        let (px, py) = (frame.across(x, point.cost), frame.down(y, point.recall));
        let told = format!("{}: cost {:.3}, recall {:.4}", point.name, point.cost, point.recall);
        put(out, format_args!("<circle class=\"{}\" cx=\"{px:.1}\" cy=\"{py:.1}\" r=\"5\">", point.class));
        put(out, format_args!("<title>{}</title></circle>\n", escaped(&told)));
        let name: String = point.name.chars().take(LABEL_CHARS_MAX).collect();
        let width = name.chars().count() as f64 * CHAR_WIDTH;
        let is_left = px + 10.0 + width > frame.width - 4.0;
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
