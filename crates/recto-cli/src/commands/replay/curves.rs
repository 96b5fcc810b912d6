//! Numbers over the calls of a conversation, as lines: one for each policy, and one for the whole history.

use super::draw::{Axis, Frame, Label, escaped, free_line, line, put, text};

/// How wide a stretch is of which only the highest and the lowest point are drawn, where there are more.
const STRETCH_WIDTH: f64 = 4.0;
/// Into how many stretches a chart is divided that tell their numbers where one points at them.
const STRETCHES_MAX: usize = 90;
/// How many kinds of lines there are; with more policies they come again, and their numbers tell them apart.
const KINDS: usize = 8;
const GRID_LINES: f64 = 4.0;
/// What the mark at the end of a line takes.
const MARK_WIDTH: f64 = 26.0;

/// How wide charts are: on a screen, and on a narrow one.
pub(super) const WIDE: Frame = Frame { width: 860.0, height: 280.0, left: 58.0, right: 40.0, top: 20.0, bottom: 40.0 };
pub(super) const NARROW: Frame =
    Frame { width: 350.0, height: 250.0, left: 50.0, right: 34.0, top: 20.0, bottom: 40.0 };

/// A line, with what it is called and what stands at its end.
pub(super) struct Series<'r> {
    pub(super) name: &'r str,
    pub(super) mark: String,
    pub(super) class: String,
    /// A number for each call that was made.
    pub(super) points: Vec<(usize, f64)>,
}

/// Lines over the same calls.
pub(super) struct Chart<'r> {
    pub(super) label: String,
    pub(super) series: Vec<Series<'r>>,
    /// What nothing may exceed.
    pub(super) limit: Option<f64>,
    /// How a number is written.
    pub(super) told: fn(f64) -> String,
    /// How it is written beside the axis.
    pub(super) tick: fn(&Axis, f64) -> String,
}

/// Returns the class of the line of a policy.
pub(super) fn class(policy: usize) -> String {
    format!("line kind{}", policy % KINDS)
}

impl Chart<'_> {
    /// Returns the picture.
    pub(super) fn drawing(&self, class: &str, frame: &Frame) -> String {
        let mut out = frame.begin(class, &self.label);
        let turns = self.series.iter().flat_map(|it| it.points.iter().map(|point| point.0));
        let (first, last) = turns.fold((usize::MAX, 0), |(low, high), turn| (low.min(turn), high.max(turn)));
        let first = first.min(last);
        let all = self.series.iter().flat_map(|it| it.points.iter().map(|point| point.1));
        let y = Axis::from_zero(all.fold(0.0, f64::max), GRID_LINES);
        let across = |turn: usize| {
            let share = (turn - first) as f64 / (last - first).max(1) as f64;
            frame.left + share * (frame.wall() - frame.left)
        };
        for number in y.lines() {
            let at = frame.down(&y, number);
            line(&mut out, (frame.left, at), (frame.wall(), at), "grid");
            text(&mut out, (frame.left - 8.0, at + 4.0), "tick", "end", &(self.tick)(&y, number));
        }
        for turn in stops(first, last) {
            text(&mut out, (across(turn), frame.floor() + 18.0), "tick", "middle", &turn.to_string());
        }
        text(&mut out, (frame.wall(), frame.height - 6.0), "tick", "end", "call");
        self.draw_lines(&mut out, frame, &y, &across);
        self.draw_limit(&mut out, frame, &y);
        self.draw_stretches(&mut out, frame, (first, last), &across);
        out.push_str("</svg>\n");
        out
    }

    fn draw_limit(&self, out: &mut String, frame: &Frame, y: &Axis) {
        let Some(limit) = self.limit.filter(|limit| (0.0..=1.0).contains(&y.at(*limit))) else { return };
        let at = frame.down(y, limit);
        line(out, (frame.left, at), (frame.wall(), at), "limit");
        text(out, (frame.left + 6.0, at - 5.0), "tick", "start", &format!("window {}", (self.told)(limit)));
    }

    fn draw_lines(&self, out: &mut String, frame: &Frame, y: &Axis, across: &dyn Fn(usize) -> f64) {
        let place = |(turn, number): (usize, f64)| (across(turn), frame.down(y, number));
        let mut ends: Vec<(f64, f64, &str)> = Vec::new();
        for series in &self.series {
            let path = path(&series.points, stretch(series.points.len(), frame), place);
            put(out, format_args!("<path class=\"{}\" d=\"{path}\"/>\n", escaped(&series.class)));
            ends.extend(series.points.last().map(|end| (place(*end).0, place(*end).1, &*series.mark)));
        }
        // Marks that would cover each other go down, so they come in the order of their lines.
        ends.sort_by(|one, other| one.1.total_cmp(&other.1));
        let mut marks: Vec<Label> = Vec::new();
        for (x, end, words) in ends {
            let mark = Label { left: x, right: x + MARK_WIDTH, y: free_line(&marks, x, x + MARK_WIDTH, end + 4.0) };
            text(out, (x + 6.0, mark.y), "mark", "start", words);
            marks.push(mark);
        }
    }

    /// Places that tell their numbers where one points at them, without any script.
    fn draw_stretches(&self, out: &mut String, frame: &Frame, calls: (usize, usize), across: &dyn Fn(usize) -> f64) {
        let (first, last) = calls;
        let step = (last - first + 1).div_ceil(STRETCHES_MAX).max(1);
        let half = (across((first + step).min(last)) - across(first)).max(4.0) / 2.0;
        for turn in (first..=last).step_by(step) {
            let told = self.series.iter().filter_map(|series| {
                let at = series.points.binary_search_by_key(&turn, |point| point.0).ok()?;
                Some(format!("{}: {}", series.name, (self.told)(series.points[at].1)))
            });
            let told: Vec<String> = std::iter::once(format!("call {turn}")).chain(told).collect();
            let (x, top, height) = (across(turn) - half, frame.top, frame.floor() - frame.top);
            put(
                out,
                format_args!(
                    "<rect class=\"at\" x=\"{x:.1}\" y=\"{top}\" width=\"{:.1}\" height=\"{height}\"><title>{}</title></rect>\n",
                    2.0 * half,
                    escaped(&told.join("\n"))
                ),
            );
        }
    }
}

/// How many calls lie in a stretch.
fn stretch(calls: usize, frame: &Frame) -> usize {
    (calls as f64 * STRETCH_WIDTH / frame.width).ceil() as usize
}

/// The path through points, broken where calls in between were not made.
fn path(points: &[(usize, f64)], stretch: usize, place: impl Fn((usize, f64)) -> (f64, f64)) -> String {
    let mut out = String::new();
    let mut before = None;
    for piece in points.chunk_by(|one, next| next.0 == one.0 + 1) {
        for point in thinned(piece, stretch) {
            let (x, y) = place(point);
            let letter = if before == Some(piece[0].0) { 'L' } else { 'M' };
            before = Some(piece[0].0);
            put(&mut out, format_args!("{letter}{x:.1} {y:.1}"));
        }
        if let [alone] = piece {
            // A line needs two ends to be seen.
            let (x, y) = place(*alone);
            put(&mut out, format_args!("L{x:.1} {y:.1}"));
        }
    }
    out
}

/// Of each stretch of a line the highest and the lowest point, in their order.
fn thinned(piece: &[(usize, f64)], stretch: usize) -> Vec<(usize, f64)> {
    if stretch <= 2 {
        return piece.to_vec();
    }
    let mut out = Vec::new();
    for stretch in piece.chunks(stretch) {
        let by_number = |one: &&(usize, f64), other: &&(usize, f64)| one.1.total_cmp(&other.1);
        let ends = [stretch.iter().min_by(by_number), stretch.iter().max_by(by_number)];
        let mut ends: Vec<(usize, f64)> = ends.into_iter().flatten().copied().collect();
        ends.sort_by_key(|point| point.0);
        ends.dedup();
        out.extend(ends);
    }
    out
}

/// Which calls are named below a chart: about six, in round steps.
fn stops(first: usize, last: usize) -> Vec<usize> {
    let rough = (last - first) / 5;
    let magnitude = 10_usize.pow((rough.max(1)).ilog10());
    let steps = [1, 2, 5, 10].map(|it| it * magnitude);
    let step = steps.into_iter().find(|it| *it >= rough).unwrap_or(10 * magnitude);
    (first.next_multiple_of(step)..=last).step_by(step).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_broken_where_there_is_no_page() {
        let place = |(turn, number): (usize, f64)| (turn as f64, number);
        assert_eq!(path(&[(0, 1.0), (1, 2.0), (4, 3.0)], 1, place), "M0.0 1.0L1.0 2.0M4.0 3.0L4.0 3.0");
        assert_eq!(path(&[], 1, place), "");
    }

    #[test]
    fn long_lines_keep_their_peaks() {
        let mut points: Vec<(usize, f64)> = (0..10_000).map(|turn| (turn, 5.0)).collect();
        points[7_777].1 = 9.0;
        points[3_333].1 = 1.0;
        let drawn = thinned(&points, stretch(points.len(), &WIDE));
        assert!(drawn.len() <= WIDE.width as usize / 2 && drawn.is_sorted_by_key(|point| point.0), "{}", drawn.len());
        assert!(drawn.contains(&(7_777, 9.0)) && drawn.contains(&(3_333, 1.0)));
    }

    #[test]
    fn calls_are_named_in_round_steps() {
        assert_eq!(stops(0, 80), [0, 20, 40, 60, 80]);
        assert_eq!(stops(1, 7), [1, 2, 3, 4, 5, 6, 7]);
        assert_eq!(stops(3, 3), [3]);
        assert!(stops(0, 100_000).len() <= 7);
    }
}
