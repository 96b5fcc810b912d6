//! Models and what is known about them: the built-in catalogue, and what files add to it or correct in it.

use crate::clock::days_since;
use crate::codes::Code;
use crate::config::Origin;
use crate::failure::Failure;
use crate::source;
use crate::talk;
use recto::Target;
use recto::entry::Millis;
use recto::error::Place;
use recto::nearest::nearest;
use recto::target::{Catalogue, PRICES_STALE_AFTER_DAYS, Prices};
use std::path::{Path, PathBuf};

/// The target for comparing policies, whose facts are what they are by agreement.
pub(crate) const EVAL: &str = "eval";
/// How many near names are told where one is unknown.
const NEAR_MAX: usize = 3;

/// All models, with those of the configuration files.
#[derive(Clone, Debug, Default)]
pub(crate) struct Models {
    /// `None` is the built-in catalogue as it is.
    catalogue: Option<Catalogue>,
    /// The models that files speak of, by name, each with the nearest place.
    pub(crate) own: Vec<Own>,
}

/// A model that a configuration file speaks of.
#[derive(Clone, Debug)]
pub(crate) struct Own {
    pub(crate) name: String,
    pub(crate) origin: Origin,
}

/// What one configuration file says about models.
#[derive(Debug)]
pub(crate) struct FileModels {
    pub(crate) path: PathBuf,
    pub(crate) catalogue: Catalogue,
    /// Where it speaks of which model.
    pub(crate) places: Vec<(String, Place)>,
    /// Where it begins to speak of any.
    pub(crate) first: Place,
}

impl Models {
    /// Returns what files say together with what is built in; the nearest file comes first, and wins.
    pub(crate) fn of(files: &[FileModels]) -> Result<Models, Failure> {
        let mut models = Models::default();
        for file in files.iter().rev() {
            let all = models.catalogue().with(&file.catalogue).map_err(|error| {
                let failure = file.refused(&error.to_string());
                error.hint().into_iter().fold(failure, Failure::hinting)
            })?;
            for (name, _) in &file.places {
                if let Some(what) = wrong_with(name, &all) {
                    return Err(file.refused(&what));
                }
            }
            models.catalogue = Some(all);
        }
        for file in files {
            for (name, place) in &file.places {
                if !models.own.iter().any(|own| own.name == *name) {
                    let origin = Origin::File { path: file.path.clone(), place: *place };
                    models.own.push(Own { name: name.clone(), origin });
                }
            }
        }
        models.own.sort_by(|one, other| one.name.cmp(&other.name));
        Ok(models)
    }

    /// Returns everything that is known.
    pub(crate) fn catalogue(&self) -> &Catalogue {
        self.catalogue.as_ref().unwrap_or(Catalogue::built_in())
    }
}

impl FileModels {
    fn refused(&self, what: &str) -> Failure {
        let speaks_of = |name: &str| what.starts_with(&format!("model {name:?} "));
        let found = self.places.iter().find(|(name, _)| speaks_of(name));
        let Place { line, column } = found.map_or(self.first, |(_, place)| *place);
        Failure::of(Code::BadKeyValue, format!("line {line}, column {column}: {what}"))
            .during(format!("cannot use {}", self.path.display()))
    }
}

/// Reads a catalogue of one's own, and returns it over another.
pub(crate) fn read_over(path: &Path, lower: &Catalogue) -> Result<Catalogue, Failure> {
    let text = source::text(path, &source::MODELS)?;
    let failed = |failure: Failure| failure.during(format!("cannot use models of {}", source::shown(path)));
    let refused = |what: String| failed(Failure::of(Code::BadModels, what));
    let own = Catalogue::parse(&text)
        .map_err(|error| failed(suggesting_field(Failure::of_core(Code::BadModels, &error), &error.to_string())))?;
    let all = lower.with(&own).map_err(|error| failed(Failure::of_core(Code::BadModels, &error)))?;
    match names(&own).filter_map(|name| wrong_with(name, &all)).next() {
        Some(what) => Err(refused(what)),
        None if own.names().filter(|name| *name == EVAL).count() > 1 => {
            Err(refused(wrong_with(EVAL, &all).unwrap_or_default()))
        }
        None => Ok(all),
    }
}

/// Returns the names of the models of a catalogue that are facts, not agreements.
pub(crate) fn names(catalogue: &Catalogue) -> impl Iterator<Item = &str> {
    catalogue.names().filter(|name| *name != EVAL)
}

/// What can't be true of a model that a file speaks of.
fn wrong_with(name: &str, all: &Catalogue) -> Option<String> {
    if name == EVAL {
        return Some(format!("model {EVAL:?} is what it is, and can't be changed"));
    }
    if name.trim().is_empty() {
        return Some(format!("model {name:?} has no name"));
    }
    let target = all.target(name)?;
    let Prices { input, cached, write, output, long, .. } = &target.prices;
    let long = long.map(|long| [long.input, long.cached, long.output, long.write.unwrap_or(0.0)]).unwrap_or_default();
    let all = [*input, *cached, *output, write.unwrap_or(0.0)].into_iter().chain(long);
    if let Some(price) = all.into_iter().find(|price| !(price.is_finite() && *price >= 0.0)) {
        return Some(format!("model {name:?} can't have a price of {price}"));
    }
    let counted = target.calibration;
    let is_sound = counted.factor.is_finite() && counted.factor > 0.0 && counted.worst.is_finite();
    (!is_sound || counted.worst < counted.factor).then(|| {
        format!(
            "model {name:?} can't be counted by a factor of {}, at worst {}: both are above 0, and the worst is not less",
            counted.factor, counted.worst
        )
    })
}

/// Serde names a wrong field and the right ones in backticks: adds the one that was probably meant.
pub(crate) fn suggesting_field(failure: Failure, message: &str) -> Failure {
    let mut words = message.split('`').skip(1).step_by(2);
    match words.next() {
        Some(wrong) if message.contains("unknown field") => failure.suggesting(wrong, words),
        _ => failure,
    }
}

/// What is assumed about a model that nobody described, and that the user did not give otherwise.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Assumed {
    pub(crate) window: bool,
    pub(crate) wire: bool,
}

/// Returns what to say about a model of which nothing is known.
pub(crate) fn unknown(target: &Target, assumed: Assumed, catalogue: &Catalogue) -> Vec<String> {
    let name = &*target.name;
    let mut facts = Vec::new();
    if assumed.window {
        let window = target.window.map_or("without end".into(), |window| format!("of {window} tokens"));
        facts.push(format!("a window {window}"));
    }
    if assumed.wire {
        facts.push(format!("the wire {}", target.wire));
    }
    let counted = target.calibration;
    facts.push(format!("tokens counted by {}, times {} to {}", target.tokenizer, counted.factor, counted.worst));
    facts.push("no prices".into());
    let near = nearest(name, names(catalogue), NEAR_MAX).join(", ");
    vec![
        format!("warning: nothing is known about model {name:?}; assumed: {}", facts.join("; ")),
        format!("hint: the nearest known models: {near}"),
        format!("hint: give its facts under [models.{name:?}] in recto.toml, or its window with --window"),
    ]
}

/// Returns how many days ago prices were read off, if that is too long.
pub(crate) fn stale_days(target: &Target, now: Millis) -> Option<i64> {
    let is_priced = *target.name != *EVAL && target.prices != Prices::default();
    let days = days_since(&target.prices.as_of, now).filter(|_| is_priced)?;
    (days > PRICES_STALE_AFTER_DAYS).then_some(days)
}

/// Says on stderr that a model's prices may not hold any more.
pub(crate) fn note_stale(target: &Target, now: Millis) {
    if let Some(days) = stale_days(target, now) {
        let (name, as_of) = (&target.name, &target.prices.as_of);
        talk::note(&format!(
            "warning: prices of {name} were read off on {as_of}, {days} days ago, and may have changed\nhint: give newer \
             ones under [models.{:?}] in recto.toml; `recto models {name}` prints them",
            &**name
        ));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DAY_MS: i64 = 86_400_000;

    #[test]
    fn prices_are_stale_after_so_many_days_and_no_earlier() {
        let catalogue =
            Catalogue::parse("as_of = '1970-01-11'\n[models.m]\nprices={input=1,cached=1,output=1}").unwrap();
        let priced = catalogue.target("m").unwrap();
        let days = |day: i64| stale_days(&priced, Millis(day * DAY_MS));
        assert_eq!((days(0), days(10), days(10 + 90), days(10 + 91)), (None, None, None, Some(91)));
        let far = Millis(99_999 * DAY_MS);
        assert_eq!(stale_days(&Target::eval(), far), None, "prices by agreement stay");
        assert_eq!(stale_days(&Target::unknown("x"), far), None, "no prices can't be stale");
    }

    #[test]
    fn facts_that_cannot_be_true_are_refused() {
        let wrong = |facts: &str| {
            let own = Catalogue::parse(&format!("[models.m]\n{facts}")).unwrap();
            wrong_with("m", &Catalogue::built_in().with(&own).unwrap())
        };
        assert_eq!(wrong("prices = {input = 1, cached = 0, output = 0}\nfactor = 1.1\nworst_factor = 1.1"), None);
        for facts in [
            "prices = {input = -1, cached = 0, output = 0}",
            "prices = {input = 1, cached = nan, output = 0}",
            "prices = {input = 1, cached = 1, output = 1}\n\
             long_prices = {above = 1, input = inf, cached = 1, output = 1}",
            "factor = 0.0",
            "factor = 2.0\nworst_factor = 1.0",
        ] {
            assert!(wrong(facts).is_some(), "{facts}");
        }
    }

    #[test]
    fn what_is_assumed_is_told_unless_it_was_given() {
        let target = Target::unknown("gpt4o");
        let told = |assumed: Assumed| unknown(&target, assumed, Catalogue::built_in()).join("\n");
        let all = told(Assumed { window: true, wire: true });
        for word in ["\"gpt4o\"", "a window of 32 000 tokens", "the wire openai_chat", "times 1.2 to ", "gpt-4o, "] {
            assert!(all.contains(word), "{word} in {all}");
        }
        let less = told(Assumed { window: false, wire: false });
        assert!(!less.contains("a window") && !less.contains("the wire"), "{less}");
    }
}
