//! Names that every provider accepts: one pure function for call ids, one for tool names, used on both sides of a call.

use crate::digest::Digest;
use crate::entry::{Call, Part};
use std::borrow::Cow;
use std::collections::{HashMap, HashSet};

/// The longest id of a call: what the strictest provider takes.
pub const CALL_ID_MAX: usize = 40;
/// The longest name of a tool.
pub const TOOL_NAME_MAX: usize = 64;
/// What a digest adds to a name that was cut: an underscore and twelve digits.
const DIGEST_CHARS: usize = 13;

/// Returns the id of a call as every provider takes it: itself where it fits.
pub fn call_id(id: &str) -> Cow<'_, str> {
    accepted(id, CALL_ID_MAX, is_plain)
}

/// Returns the name of a tool as every provider takes it: itself where it fits.
pub fn tool_name(name: &str) -> Cow<'_, str> {
    if name.starts_with(|c: char| c.is_ascii_digit() || c == '-') {
        // One provider wants a letter at the beginning.
        let digest = Digest::of(name.as_bytes()).to_string();
        let kept: String = name.chars().filter(|c| is_plain(*c)).take(TOOL_NAME_MAX - DIGEST_CHARS - 2).collect();
        return Cow::Owned(format!("t_{kept}_{}", &digest[..DIGEST_CHARS - 1]));
    }
    accepted(name, TOOL_NAME_MAX, is_plain)
}

fn is_plain(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_' || c == '-'
}

/// Returns a name that a provider accepts: itself where it fits, else what can be kept of it and a digest, so that
/// different names stay different and both sides of a call agree.
pub(crate) fn accepted<'n>(name: &'n str, longest: usize, takes: impl Fn(char) -> bool) -> Cow<'n, str> {
    if !name.is_empty() && name.len() <= longest && name.chars().all(&takes) {
        return Cow::Borrowed(name);
    }
    let digest = Digest::of(name.as_bytes()).to_string();
    let kept: String = name.chars().filter(|c| takes(*c)).take(longest - DIGEST_CHARS).collect();
    Cow::Owned(format!("{kept}_{}", &digest[..DIGEST_CHARS - 1]))
}

/// The ids of a body's calls, unlike each other even where a conversation uses one again in a later step. They depend
/// on what stands before them alone, so that a page that goes on keeps them.
#[derive(Debug, Default)]
pub(crate) struct Ids<'p> {
    taken: HashSet<Cow<'p, str>>,
    /// Those of the newest step, by the ids they have in the log.
    step: HashMap<&'p str, Cow<'p, str>>,
}

impl<'p> Ids<'p> {
    /// Gives ids to the calls of a step.
    pub(crate) fn begin(&mut self, parts: &'p [Part]) {
        self.step.clear();
        let calls = parts.iter().filter_map(|part| if let Part::Call(call) = part { Some(call) } else { None });
        for Call { id, .. } in calls {
            let mut given = call_id(id.as_str());
            let mut nth = 2;
            while self.taken.contains(&given) {
                // Not with an underscore: one program takes that for a piece of the other call.
                given = Cow::Owned(call_id(&format!("{}-{nth}", id.as_str())).into_owned());
                nth += 1;
            }
            self.taken.insert(given.clone());
            self.step.insert(id.as_str(), given);
        }
    }

    /// Returns the id of a call of the newest step, or of its result.
    pub(crate) fn of(&self, id: &'p str) -> Cow<'p, str> {
        self.step.get(id).cloned().unwrap_or_else(|| call_id(id))
    }
}

/// Returns the id of a call to which its provider gave none: the nth of its name within its step.
pub(crate) fn made_id(name: &str, nth: usize) -> String {
    let name = if name.is_empty() { "call" } else { name };
    if nth == 1 { name.to_string() } else { format!("{name}-{nth}") }
}

/// Says of each call of a step whether its id was made of its name, so that its provider never saw it.
pub(crate) fn are_made<'c>(calls: impl IntoIterator<Item = &'c Call>) -> Vec<bool> {
    let mut seen: HashMap<&str, usize> = HashMap::new();
    let is_made = |call: &'c Call| {
        let nth = seen.entry(&call.name).or_default();
        let is_made = made_id(&call.name, *nth + 1) == call.id.as_str();
        *nth += usize::from(is_made);
        is_made
    };
    calls.into_iter().map(is_made).collect()
}

/// The calls of a step that wait for results, where neither must have an id: they are matched by name and order.
#[derive(Debug, Default)]
pub(crate) struct Awaited {
    calls: Vec<Waiting>,
    /// The names of which ids were made since the step began.
    made: Vec<String>,
}

#[derive(Debug)]
struct Waiting {
    id: String,
    name: String,
    is_made: bool,
}

impl Awaited {
    /// Returns the id of a call: its own, or one made of its name.
    pub(crate) fn call(&mut self, id: Option<String>, name: &str) -> String {
        let (id, is_made) = match id.filter(|id| !id.is_empty()) {
            Some(id) => (id, false),
            None => (self.make(name), true),
        };
        self.calls.push(Waiting { id: id.clone(), name: name.into(), is_made });
        id
    }

    /// Returns the id of the call that a result answers.
    pub(crate) fn answer(&mut self, id: Option<String>, name: Option<&str>) -> String {
        let id = id.filter(|id| !id.is_empty());
        let is_same = |it: &Waiting| name.is_none_or(|name| it.name == name);
        let at = match &id {
            Some(id) => {
                let own = self.calls.iter().position(|it| it.id == *id);
                own.or_else(|| self.calls.iter().position(|it| it.is_made && name.is_some() && is_same(it)))
            }
            None => self.calls.iter().position(is_same),
        };
        match (at, id) {
            (Some(at), _) => self.calls.remove(at).id,
            (None, Some(id)) => id,
            (None, None) => self.make(name.unwrap_or_default()),
        }
    }

    fn make(&mut self, name: &str) -> String {
        self.made.push(name.into());
        made_id(name, self.made.iter().filter(|it| *it == name).count())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_fit_stay_and_others_stay_different() {
        assert_eq!(call_id("call_a-1"), "call_a-1");
        assert_eq!(tool_name("read_file"), "read_file");
        let odd = ["", "a b", "a.b", "a\u{e9}b", &"x".repeat(41), &"x".repeat(42), "1st", "-x"];
        let ids: HashSet<String> = odd.iter().map(|id| call_id(id).into_owned()).collect();
        let names: HashSet<String> = odd.iter().map(|name| tool_name(name).into_owned()).collect();
        assert_eq!((ids.len(), names.len()), (odd.len(), odd.len()));
        assert!(ids.iter().all(|id| id.len() <= CALL_ID_MAX && id.chars().all(is_plain)));
        let is_good = |name: &String| name.len() <= TOOL_NAME_MAX && !name.starts_with(|c: char| c.is_ascii_digit());
        assert!(names.iter().all(is_good), "{names:?}");
    }

    #[test]
    fn calls_and_results_without_ids_are_matched_by_name_and_order() {
        let mut awaited = Awaited::default();
        let given = |id: &str| Some(id.to_string());
        let calls = [awaited.call(None, "look"), awaited.call(given("x"), "look"), awaited.call(None, "look")];
        assert_eq!(calls, ["look", "x", "look-2"]);
        let step = calls.map(|id| Call::new(id, "look", "{}"));
        assert_eq!(are_made(&step), [true, false, true]);
        assert_eq!(awaited.answer(given("x"), Some("look")), "x");
        assert_eq!(awaited.answer(None, Some("look")), "look");
        // A client made up an id that nobody else knows.
        assert_eq!(awaited.answer(given("own"), Some("look")), "look-2");
        assert_eq!(awaited.answer(given("own"), Some("look")), "own");
        // Without the step, results count for themselves.
        let mut alone = Awaited::default();
        assert_eq!([(); 2].map(|()| alone.answer(None, Some("look"))), ["look", "look-2"]);
        assert_eq!(alone.answer(None, None), "call");
    }

    #[test]
    fn an_id_that_recurs_gets_another_in_the_later_step() {
        let step = |id: &str| vec![Part::Call(Call::new(id, "look", "{}"))];
        let (one, two, three) = (step("a"), step("a"), step("a-2"));
        let mut ids = Ids::default();
        ids.begin(&one);
        assert_eq!(ids.of("a"), "a");
        ids.begin(&two);
        assert_eq!(ids.of("a"), "a-2");
        ids.begin(&three);
        assert_eq!(ids.of("a-2"), "a-2-2");
    }
}
