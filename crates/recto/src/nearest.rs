//! What was probably meant: names near a wrong one.

/// How much of a name is compared, in characters.
const COMPARED_MAX: usize = 80;

/// Returns up to `most` of the names, the nearest first.
pub fn nearest<'n>(wrong: &str, names: impl IntoIterator<Item = &'n str>, most: usize) -> Vec<&'n str> {
    let mut ranked: Vec<(usize, &str)> = names.into_iter().map(|name| (distance(wrong, name), name)).collect();
    ranked.sort();
    ranked.dedup();
    ranked.into_iter().map(|(_, name)| name).take(most).collect()
}

/// Returns the one name that is so near that it was probably meant.
pub fn probably<'n>(wrong: &str, names: impl IntoIterator<Item = &'n str>) -> Option<&'n str> {
    let allowed = (wrong.chars().count() / 2).max(1);
    nearest(wrong, names, 1).into_iter().find(|name| distance(wrong, name) <= allowed)
}

/// How many letters must be added, left out or changed, whatever their case.
fn distance(one: &str, other: &str) -> usize {
    let letters = |text: &str| text.chars().flat_map(char::to_lowercase).take(COMPARED_MAX).collect::<Vec<_>>();
    let (one, other) = (letters(one), letters(other));
    let mut row: Vec<usize> = (0..=other.len()).collect();
    for (at, a) in one.iter().enumerate() {
        let mut diagonal = row[0];
        row[0] = at + 1;
        for (nth, b) in other.iter().enumerate() {
            let changed = diagonal + usize::from(a != b);
            diagonal = row[nth + 1];
            row[nth + 1] = changed.min(row[nth] + 1).min(diagonal + 1);
        }
    }
    row[other.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_name_comes_first() {
        let names = ["none", "safe", "first_chars"];
        assert_eq!(nearest("sfae", names, 2), ["safe", "none"]);
        assert_eq!(probably("SAVE", names), Some("safe"));
        assert_eq!(probably("firstchars", names), Some("first_chars"));
        assert_eq!(probably("xyz", names), None);
        assert_eq!((distance("", "abc"), distance("kitten", "sitting")), (3, 3));
    }
}
