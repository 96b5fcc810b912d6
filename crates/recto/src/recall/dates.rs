//! Dates: which a question asks about, and when something was said.

use super::terms::words;
use crate::entry::Millis;
use crate::transcript::time;

/// The first so many bytes of a text are looked through for dates.
const BYTES_MAX: usize = 16 * 1024;
const MONTHS: [&str; 12] = [
    "january",
    "february",
    "march",
    "april",
    "may",
    "june",
    "july",
    "august",
    "september",
    "october",
    "november",
    "december",
];
/// Words that place something in time, beside names of months, years and weekdays.
const TIME_WORDS: [&str; 27] = [
    "afternoon",
    "ago",
    "birthday",
    "day",
    "days",
    "evening",
    "last",
    "month",
    "months",
    "morning",
    "next",
    "night",
    "recently",
    "since",
    "summer",
    "today",
    "tomorrow",
    "tonight",
    "week",
    "weekend",
    "weekends",
    "weeks",
    "winter",
    "year",
    "years",
    "yesterday",
    "yrs",
];
const WEEKDAYS: [&str; 7] = ["monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"];

/// A date that a text names, as far as it does.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Named {
    year: Option<i64>,
    /// From 1.
    month: Option<i64>,
    day: Option<i64>,
}

/// A day of the calendar.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Day {
    pub(super) year: i64,
    /// From 1.
    pub(super) month: i64,
    pub(super) day: i64,
}

impl Day {
    pub(super) fn of(at: Millis) -> Day {
        let (year, month, day) = time::date(at.0.div_euclid(time::DAY));
        Day { year, month, day }
    }

    /// Returns the day that a text names in full; none if it names none.
    pub(super) fn named(text: &str) -> Option<Day> {
        let full = |it: &Named| Some(Day { year: it.year?, month: it.month?, day: it.day? });
        named(text).iter().find_map(full)
    }

    pub(super) fn number(self) -> i64 {
        time::days(self.year, self.month, self.day)
    }

    fn month_number(self) -> i64 {
        self.year * 12 + self.month
    }

    /// Returns it as people write it.
    pub(super) fn written(self) -> String {
        let month = &MONTHS[(self.month.clamp(1, 12) - 1) as usize];
        format!("{} {}{} {}", self.day, month[..1].to_uppercase(), &month[1..], self.year)
    }
}

/// Returns the dates that a text names.
pub(super) fn named(text: &str) -> Vec<Named> {
    let text = &text[..text.floor_char_boundary(BYTES_MAX)];
    let words: Vec<&str> = words(text).map(|(_, word)| word).collect();
    let mut found = Vec::new();
    let mut at = 0;
    while at < words.len() {
        let (date, used) = date_at(&words, at);
        found.extend(date);
        at += used;
    }
    found
}

/// The date that begins with a word, if one does, and how many words it has.
fn date_at(words: &[&str], at: usize) -> (Option<Named>, usize) {
    let word = |nth: usize| words.get(at + nth).copied().unwrap_or_default();
    let (year_0, year_1, year_2) = (year(word(0)), year(word(1)), year(word(2)));
    // The time may follow the day without a space.
    let day_2 = word(2).split('T').next().and_then(|day| number(day, 31));
    if let (Some(year), Some(month), Some(day)) = (year_0, number(word(1), 12), day_2) {
        return (Some(Named { year: Some(year), month: Some(month), day: Some(day) }), 3);
    }
    if let (Some(day), Some(month)) = (day(word(0)), month(word(1))) {
        return (Some(Named { year: year_2, month: Some(month), day: Some(day) }), 2 + usize::from(year_2.is_some()));
    }
    if let Some(month) = month(word(0)) {
        if let Some(day) = day(word(1)) {
            let used = 2 + usize::from(year_2.is_some());
            return (Some(Named { year: year_2, month: Some(month), day: Some(day) }), used);
        }
        // "May" alone is also a verb: capitals tell.
        if year_1.is_some()
            || word(0).starts_with(|c: char| c.is_uppercase()) && !word(0).eq_ignore_ascii_case("may")
            || word(0) == "May" && at > 0
        {
            return (Some(Named { year: year_1, month: Some(month), day: None }), 1 + usize::from(year_1.is_some()));
        }
    }
    (year_0.map(|year| Named { year: Some(year), month: None, day: None }), 1)
}

fn month(word: &str) -> Option<i64> {
    let word = word.to_lowercase();
    let is_it = |month: &&str| {
        **month == *word || word.len() == 3 && month.starts_with(&*word) || word == "sept" && **month == *"september"
    };
    MONTHS.iter().position(is_it).map(|at| at as i64 + 1)
}

fn number(word: &str, most: i64) -> Option<i64> {
    word.parse().ok().filter(|number| word.len() <= 2 && (1..=most).contains(number))
}

fn day(word: &str) -> Option<i64> {
    let digits = ["st", "nd", "rd", "th"].iter().find_map(|end| word.strip_suffix(end)).unwrap_or(word);
    number(digits, 31)
}

fn year(word: &str) -> Option<i64> {
    word.parse().ok().filter(|year| word.len() == 4 && (1900..2100).contains(year))
}

/// Returns how well a day answers to the dates that a question names, from 0 to 1. What happened is told on the day or
/// soon after.
pub(super) fn nearness(asked: &[Named], said: Day) -> f64 {
    asked.iter().map(|it| near(*it, said)).fold(0.0, f64::max)
}

fn near(asked: Named, said: Day) -> f64 {
    match asked {
        Named { year, month: Some(month), day: Some(day) } => {
            let years = year.map_or([said.year - 1, said.year, said.year + 1], |year| [year; 3]);
            let after = years.map(|year| said.number() - Day { year, month, day }.number());
            after.into_iter().map(by_days).fold(0.0, f64::max)
        }
        Named { year, month: Some(month), day: None } => {
            let years = year.map_or([said.year - 1, said.year, said.year + 1], |year| [year; 3]);
            let after = years.map(|year| said.month_number() - Day { year, month, day: 1 }.month_number());
            if after.contains(&0) {
                1.0
            } else if after.contains(&1) {
                0.5
            } else {
                0.0
            }
        }
        Named { year: Some(year), .. } if year == said.year => 0.5,
        _ => 0.0,
    }
}

fn by_days(after: i64) -> f64 {
    match after {
        0..=1 => 1.0,
        2..=9 => 0.6,
        10..=20 | -3..=-1 => 0.3,
        _ => 0.0,
    }
}

/// Returns whether a text places something in time.
pub(super) fn has_time(text: &str) -> bool {
    words(text).any(|(_, word)| {
        let lower = word.to_lowercase();
        TIME_WORDS.binary_search(&&*lower).is_ok()
            || WEEKDAYS.contains(&&*lower)
            || year(word).is_some()
            || month(word).is_some() && word.starts_with(|c: char| c.is_uppercase())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_read_as_people_write_them() {
        let full = Day { year: 2023, month: 5, day: 8 };
        for text in
            ["1:56 pm on 8 May, 2023", "May 8, 2023", "on 2023-05-08T10:00", "the 8th May 2023?", "Sun 8 May 2023"]
        {
            assert_eq!(Day::named(text), Some(full), "{text}");
        }
        assert_eq!(Day::named("in May 2023"), None);
        assert_eq!(named("Where was she in May?").len(), 1);
        assert_eq!(named("May I go? it may rain"), []);
        assert_eq!(named("in 2022 or 2023").len(), 2);
        assert_eq!(full.written(), "8 May 2023");
        assert_eq!(Day::of(Millis(1_683_500_000_000)).written(), "7 May 2023");
    }

    #[test]
    fn what_happened_is_told_on_the_day_or_soon_after() {
        let said = |day| Day { year: 2023, month: 5, day };
        let near = |question: &str, day| nearness(&named(question), said(day));
        assert_eq!([7, 8, 9, 12, 20, 30].map(|day| near("on 8 May, 2023", day)), [0.3, 1.0, 1.0, 0.6, 0.3, 0.0]);
        assert_eq!(
            [near("on 8 May", 8), near("in May 2023", 30), near("in April", 30), near("in 2023", 1)],
            [1.0, 1.0, 0.5, 0.5]
        );
        assert_eq!([near("who?", 8), near("in 2022", 8)], [0.0, 0.0]);
    }

    #[test]
    fn words_of_time_are_known() {
        assert!(TIME_WORDS.is_sorted());
        assert!(has_time("We met last week.") && has_time("in June") && !has_time("We met there."));
    }
}
