//! What a report is put together from. Plain texts go in, and are escaped here.

use super::super::draw::{escaped, put};
use recto::Tokens;

/// How much of a name is shown, in characters.
const NAME_CHARS_MAX: usize = 80;

/// A cell of a table.
pub(super) enum Cell {
    /// Words, on the left.
    Words(String),
    /// A number, on the right.
    Number(String),
    /// A number with a small remark below.
    Remarked(String, String),
    /// A number that is a share of one, with a bar below.
    Share(String, f64),
}

/// A name on one line, not too long.
pub(super) fn name(text: &str) -> String {
    let mut chars = text.chars().map(|c| if c == '\n' { ' ' } else { c });
    let mut short: String = chars.by_ref().take(NAME_CHARS_MAX).collect();
    if chars.next().is_some() {
        short.push('…');
    }
    short
}

/// How many of something.
pub(super) fn plural(count: usize, one: &str) -> String {
    let number = Tokens(count as u64);
    if count == 1 { format!("{number} {one}") } else { format!("{number} {one}s") }
}

/// An amount of money.
pub(super) fn usd(amount: f64) -> String {
    let digits = if amount == 0.0 || amount.abs() >= 10.0 { 2 } else { 4 };
    format!("{}${:.digits$}", if amount < 0.0 { "−" } else { "" }, amount.abs())
}

/// About how many tokens.
pub(super) fn short(tokens: f64) -> String {
    let (number, unit) = match tokens {
        it if it >= 1e6 => (it / 1e6, "M"),
        it if it >= 1e3 => (it / 1e3, "k"),
        it => (it, ""),
    };
    let told = format!("{number:.1}");
    format!("{}{unit}", told.trim_end_matches('0').trim_end_matches('.'))
}

/// How much less than something.
pub(super) fn less(now: f64, before: f64) -> String {
    match 100.0 * (1.0 - now / before) {
        _ if before <= 0.0 => String::new(),
        it if it.abs() < 0.05 => "as much".into(),
        it if it > 0.0 => format!("{it:.1} % less"),
        it => format!("{:.1} % more", -it),
    }
}

pub(super) fn section(id: &str, heading: &str, content: &str) -> String {
    let heading = escaped(heading);
    format!("<section aria-labelledby=\"{id}\">\n<h2 id=\"{id}\">{heading}</h2>\n{content}</section>\n")
}

/// A number that stands out; `class` says whether it is good or bad.
pub(super) fn card(label: &str, number: &str, remark: &str, class: &str) -> String {
    let [label, number, remark] = [label, number, remark].map(escaped);
    format!("<div class=\"card {class}\"><span>{label}</span><b>{number}</b><span>{remark}</span></div>\n")
}

/// A table whose first column names its rows. A narrow screen scrolls it, and nothing else.
pub(super) fn table(caption: &str, heads: &[&str], rows: &[Vec<Cell>]) -> String {
    let label = escaped(caption);
    let mut out = format!(
        "<div class=\"scroll\" role=\"region\" aria-label=\"{label}\" tabindex=\"0\"><table><caption>{label}</caption>\n<thead><tr>"
    );
    for (at, head) in heads.iter().enumerate() {
        let is_number = rows.first().and_then(|row| row.get(at)).is_some_and(|cell| !matches!(cell, Cell::Words(_)));
        let class = if is_number { " class=\"number\"" } else { "" };
        put(&mut out, format_args!("<th scope=\"col\"{class}>{}</th>", escaped(head)));
    }
    out.push_str("</tr></thead>\n<tbody>\n");
    for row in rows {
        out.push_str("<tr>");
        row.iter().enumerate().for_each(|(at, cell)| cell.add_to(&mut out, at == 0));
        out.push_str("</tr>\n");
    }
    out.push_str("</tbody></table></div>\n");
    out
}

impl Cell {
    fn add_to(&self, out: &mut String, is_name: bool) {
        let (tag, scope) = if is_name { ("th", " scope=\"row\"") } else { ("td", "") };
        match self {
            Cell::Words(words) => put(out, format_args!("<{tag}{scope}>{}</{tag}>", escaped(words))),
            Cell::Number(told) => {
                put(out, format_args!("<{tag}{scope} class=\"number\">{}</{tag}>", escaped(told)));
            }
            Cell::Remarked(told, remark) => {
                let [told, remark] = [told, remark].map(|text| escaped(text));
                put(out, format_args!("<{tag} class=\"number\">{told}<small>{remark}</small></{tag}>"));
            }
            Cell::Share(told, share) => {
                let width = 100.0 * share.clamp(0.0, 1.0);
                put(
                    out,
                    format_args!("<{tag} class=\"number\">{}<svg class=\"bar\" aria-hidden=\"true\">", escaped(told)),
                );
                put(out, format_args!("<rect width=\"100%\" height=\"100%\" rx=\"2\"/>"));
                put(
                    out,
                    format_args!("<rect class=\"part\" width=\"{width:.1}%\" height=\"100%\" rx=\"2\"/></svg></{tag}>"),
                );
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_read_well() {
        assert_eq!(
            [0.0, 12.0, 999.0, 1_000.0, 12_345.0, 2_000_000.0].map(short),
            ["0", "12", "999", "1k", "12.3k", "2M"]
        );
        assert_eq!([0.0, 0.01234, 12.345, -0.5].map(usd), ["$0.00", "$0.0123", "$12.35", "−$0.5000"]);
        assert_eq!(less(30.0, 100.0), "70.0 % less");
        assert_eq!(
            (less(150.0, 100.0), less(100.0, 100.0), less(1.0, 0.0)),
            ("50.0 % more".into(), "as much".into(), String::new())
        );
    }

    #[test]
    fn long_names_are_cut_and_say_so() {
        assert_eq!(name("a\nb"), "a b");
        assert_eq!(name(&"é".repeat(200)), format!("{}…", "é".repeat(NAME_CHARS_MAX)));
    }
}
