//! What pictures are drawn with: axes in round steps, labels that keep apart, and SVG that no name can break out of.

use std::fmt::{Arguments, Write};

/// About how many lines of the grid there are in each direction.
const GRID_LINES: f64 = 6.0;
/// An axis shows at least this much.
const SPAN_MIN: f64 = 0.01;
/// How far apart labels stand, from line to line.
pub(super) const LABEL_HEIGHT: f64 = 16.0;

/// How large a picture is, and how far from its edges its axes are.
pub(super) struct Frame {
    pub(super) width: f64,
    pub(super) height: f64,
    pub(super) left: f64,
    pub(super) right: f64,
    pub(super) top: f64,
    pub(super) bottom: f64,
}

impl Frame {
    /// Begins a picture within a page.
    pub(super) fn begin(&self, class: &str, label: &str) -> String {
        let (Frame { width, height, .. }, label) = (self, escaped(label));
        format!("<svg class=\"{class}\" viewBox=\"0 0 {width} {height}\" role=\"img\" aria-label=\"{label}\">\n")
    }

    /// Where the lowest line is.
    pub(super) fn floor(&self) -> f64 {
        self.height - self.bottom
    }

    /// Where the last line on the right is.
    pub(super) fn wall(&self) -> f64 {
        self.width - self.right
    }

    /// Where a number of the axis to the right stands.
    pub(super) fn across(&self, x: &Axis, number: f64) -> f64 {
        self.left + x.at(number) * (self.wall() - self.left)
    }

    /// Where a number of the axis upwards stands.
    pub(super) fn down(&self, y: &Axis, number: f64) -> f64 {
        self.floor() - y.at(number) * (self.floor() - self.top)
    }
}

/// What an axis shows, and where its lines are.
pub(super) struct Axis {
    low: f64,
    high: f64,
    step: f64,
}

impl Axis {
    /// An axis that reaches at least from one number to another, in round steps.
    pub(super) fn over(low: f64, high: f64) -> Axis {
        Axis::with_lines(low.min(high - SPAN_MIN), high, GRID_LINES)
    }

    /// An axis from 0 up, with about so many lines.
    pub(super) fn from_zero(high: f64, lines: f64) -> Axis {
        Axis::with_lines(0.0, if high > 0.0 { high } else { 1.0 }, lines)
    }

    fn with_lines(low: f64, high: f64, lines: f64) -> Axis {
        let rough = (high - low) / lines;
        let magnitude = 10_f64.powf(rough.log10().floor());
        let step =
            [1.0, 2.0, 5.0].into_iter().map(|it| it * magnitude).find(|it| *it >= rough).unwrap_or(10.0 * magnitude);
        // A hair more than a whole step is one.
        let steps = |at: f64| (at / step * 1e6).round() / 1e6;
        Axis { low: steps(low).floor() * step, high: steps(high).ceil() * step, step }
    }

    /// Returns where a number lies, from 0 to 1.
    pub(super) fn at(&self, number: f64) -> f64 {
        (number - self.low) / (self.high - self.low)
    }

    pub(super) fn lines(&self) -> impl Iterator<Item = f64> {
        let count = ((self.high - self.low) / self.step).round() as u32;
        (0..=count).map(|line| self.low + f64::from(line) * self.step)
    }

    pub(super) fn told(&self, number: f64) -> String {
        let digits = (-self.step.log10().floor()).clamp(0.0, 6.0) as usize;
        format!("{number:.digits$}")
    }
}

/// A label's box.
pub(super) struct Label {
    pub(super) left: f64,
    pub(super) right: f64,
    pub(super) y: f64,
}

/// The nearest line from `y` down that no label takes.
pub(super) fn free_line(labels: &[Label], left: f64, right: f64, y: f64) -> f64 {
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

/// Draws a straight line.
pub(super) fn line(out: &mut String, from: (f64, f64), to: (f64, f64), class: &str) {
    let ((x1, y1), (x2, y2)) = (from, to);
    put(out, format_args!("<line class=\"{class}\" x1=\"{x1:.1}\" y1=\"{y1:.1}\" x2=\"{x2:.1}\" y2=\"{y2:.1}\"/>\n"));
}

/// Writes a line of text; `anchor` says which end of it stands at the place.
pub(super) fn text(out: &mut String, at: (f64, f64), class: &str, anchor: &str, text: &str) {
    let ((x, y), text) = (at, escaped(text));
    put(
        out,
        format_args!("<text class=\"{class}\" x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"{anchor}\">{text}</text>\n"),
    );
}

pub(super) fn put(out: &mut String, what: Arguments<'_>) {
    out.write_fmt(what).expect("a string takes everything");
}

/// A text as HTML and XML take it; names come from files. Letters that can't be seen, or that change how others are
/// read, are written out, as the inspector writes them.
pub(super) fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut before = ' ';
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            '\t' | '\n' => out.push(c),
            '\0'..='\x1f' => out.extend(char::from_u32(0x2400 + u32::from(c))),
            '\x7f' => out.push('\u{2421}'),
            c if is_unseen(c, before) => put(&mut out, format_args!("\u{27e8}U+{:04X}\u{27e9}", u32::from(c))),
            c => out.push(c),
        }
        before = c;
    }
    out
}

/// Direction marks, letters without width, tags; joiners only where they join nothing.
fn is_unseen(c: char, before: char) -> bool {
    matches!(c,
        '\u{80}'..='\u{9f}' | '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}'
        | '\u{180b}'..='\u{180f}' | '\u{200b}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}'
        | '\u{2060}'..='\u{206f}' | '\u{3164}' | '\u{feff}' | '\u{ffa0}' | '\u{fff0}'..='\u{fffb}' | '\u{fffe}'
        | '\u{ffff}' | '\u{1d173}'..='\u{1d17a}' | '\u{e0000}'..='\u{e0fff}')
        || (matches!(c, '\u{200c}' | '\u{200d}') && matches!(before, ' '..='~'))
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
        assert_eq!(escaped("a<b>&\"'\u{1b}"), "a&lt;b&gt;&amp;&quot;&#39;\u{241b}");
        assert_eq!(escaped("\u{202e}evil\u{2066}"), "\u{27e8}U+202E\u{27e9}evil\u{27e8}U+2066\u{27e9}");
        assert_eq!(escaped("a\u{200d}b 👩\u{200d}👧"), "a\u{27e8}U+200D\u{27e9}b 👩\u{200d}👧");
    }
}
