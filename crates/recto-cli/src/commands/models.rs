//! `recto models`: what is known about models, and what files change in it.

mod changes; // what a file changes
mod facts; // one model, fact by fact

use crate::args::ModelsArgs;
use crate::clock;
use crate::config::{Config, Origin};
use crate::failure::Failure;
use crate::models::{self, Assumed};
use crate::table::{self, Side};
use crate::{source, talk};
use changes::Changes;
use recto::Target;
use recto::entry::Millis;
use recto::target::{Catalogue, EditsPast, PRICES_STALE_AFTER_DAYS, Prices};
use serde::Serialize;

/// How many models with stale prices are named.
const STALE_TOLD_MAX: usize = 5;

/// Prints all models, or one.
pub(crate) fn run(args: &ModelsArgs, config: &Config) -> Result<(), Failure> {
    let mut catalogue = config.models.catalogue().clone();
    let mut changes = Vec::new();
    for path in &args.from {
        let changed = models::read_over(path, &catalogue)?;
        changes.push(Changes::between(&catalogue, &changed, source::shown(path))?);
        catalogue = changed;
    }
    let now = clock::now();
    match &args.name {
        Some(name) => one(name, &catalogue, &changes, args.json, config, now),
        None => {
            let names = catalogue.names().filter_map(|name| catalogue.target(name));
            let models = names.map(|target| Row::of(target, true, &changes, config, now)).collect();
            let output = Output { as_of: Catalogue::built_in().as_of().to_string(), models, changes };
            output.note_stale();
            if args.json { talk::json(&output) } else { talk::text(&output.table()) }
        }
    }
}

/// What `--json` prints; `recto models --help` tells its shape.
#[derive(Serialize)]
struct Output {
    as_of: String,
    models: Vec<Row>,
    changes: Vec<Changes>,
}

/// A model, and where its facts come from.
#[derive(Serialize)]
struct Row {
    #[serde(flatten)]
    target: Target,
    known: bool,
    stale_days: Option<i64>,
    #[serde(flatten)]
    origin: RowOrigin,
}

#[derive(Serialize)]
#[serde(tag = "origin", rename_all = "snake_case")]
enum RowOrigin {
    BuiltIn,
    File { file: String },
}

impl Row {
    fn of(target: Target, known: bool, changes: &[Changes], config: &Config, now: Millis) -> Row {
        let by_option = changes.iter().rev().find(|it| it.of(&target.name).is_some()).map(|it| it.file.clone());
        let own = config.models.own.iter().find(|own| *own.name == *target.name);
        let by_config = own.map(|own| match &own.origin {
            Origin::File { path, .. } => path.display().to_string(),
            other => other.to_string(),
        });
        let origin = by_option.or(by_config).map_or(RowOrigin::BuiltIn, |file| RowOrigin::File { file });
        Row { stale_days: models::stale_days(&target, now), target, known, origin }
    }

    fn cells(&self) -> [String; 12] {
        let Target { name, provider, wire, window, output_max, prices, cache, .. } = &self.target;
        let priced = |price: f64| if *prices == Prices::default() { String::new() } else { price.to_string() };
        [
            talk::harmless(name),
            talk::harmless(provider),
            wire.to_string(),
            window.map_or("unknown".into(), |window| window.to_string()),
            output_max.to_string(),
            priced(prices.input),
            priced(prices.cached),
            prices.write.map_or(String::new(), priced),
            priced(prices.output),
            counted(&self.target),
            cache.min.to_string(),
            special(&self.target),
        ]
    }
}

impl Output {
    fn table(&self) -> String {
        let heads =
            ["model", "provider", "wire", "window", "output", "in", "cached", "write", "out", "counted", "cache"];
        let mut rows = vec![std::array::from_fn(|at| heads.get(at).copied().unwrap_or("special").to_string())];
        rows.extend(self.models.iter().map(Row::cells));
        let sides = std::array::from_fn(|at| if (3..=8).contains(&at) || at == 10 { Side::Right } else { Side::Left });
        let mut parts = vec![table::aligned(&rows, sides)];
        parts.push(format!(
            "in, cached, write, out: US dollars for a million tokens; the built-in prices were read off on {}\ncounted: \
             exact, or ours times a factor, at worst the second one; cache: the shortest beginning that is cached\n`recto \
             models NAME` tells everything about one.",
            self.as_of
        ));
        parts.extend(self.own());
        parts.extend(self.changes.iter().map(Changes::told));
        parts.join("\n\n")
    }

    /// Which models are not as they are built in.
    fn own(&self) -> Option<String> {
        let own = self.models.iter().filter_map(|row| match &row.origin {
            RowOrigin::File { file } => Some(format!("  {} ({file})", row.target.name)),
            RowOrigin::BuiltIn => None,
        });
        let own: Vec<String> = own.collect();
        (!own.is_empty()).then(|| format!("with facts of your own:\n{}", own.join("\n")))
    }

    /// Says on stderr whose prices may not hold any more.
    fn note_stale(&self) {
        let stale: Vec<&str> =
            self.models.iter().filter(|row| row.stale_days.is_some()).map(|row| &*row.target.name).collect();
        if !stale.is_empty() {
            let told = stale[..stale.len().min(STALE_TOLD_MAX)].join(", ");
            let more = stale.len().saturating_sub(STALE_TOLD_MAX);
            let more = if more > 0 { format!(" and {more} more") } else { String::new() };
            talk::note(&format!(
                "warning: prices that were read off more than {PRICES_STALE_AFTER_DAYS} days ago, and may have changed: \
                 {told}{more}"
            ));
        }
    }
}

fn one(
    name: &str,
    catalogue: &Catalogue,
    changes: &[Changes],
    json: bool,
    config: &Config,
    now: Millis,
) -> Result<(), Failure> {
    let found = catalogue.target(name);
    let (known, target) = (found.is_some(), found.unwrap_or_else(|| Target::unknown(name)));
    if !known {
        talk::note(&models::unknown(&target, Assumed { window: true, wire: true }, catalogue).join("\n"));
    }
    models::note_stale(&target, now);
    let row = Row::of(target, known, changes, config, now);
    if json {
        return talk::json(&row);
    }
    let mut rows = facts::of(&row.target);
    let from = match &row.origin {
        RowOrigin::File { file } => format!("{file}, and what is built in"),
        RowOrigin::BuiltIn if known => "built in".into(),
        RowOrigin::BuiltIn => "nobody: they are assumed".into(),
    };
    if let Some(like) = catalogue.like(name) {
        rows.push(["like".into(), talk::harmless(like)]);
    }
    rows.push(["facts from".into(), talk::harmless(&from)]);
    let changed = changes.iter().filter_map(|it| Some(format!("\n{}:\n  {}", it.file, it.of(name)?.told())));
    talk::text(&format!("{}{}", table::aligned(&rows, [Side::Left; 2]), changed.collect::<String>()))
}

/// How its tokens are counted, in a word.
fn counted(target: &Target) -> String {
    if target.calibration.is_exact() {
        return "exact".into();
    }
    format!("×{}, ×{}", target.calibration.factor, target.calibration.worst)
}

/// What sets a model apart.
fn special(target: &Target) -> String {
    let mut words = Vec::new();
    if target.edits_past == EditsPast::DropsLaterReasoning {
        words.push("reasoning bound to its prefix".to_string());
    }
    if let Some(long) = target.prices.long {
        words.push(format!("dearer above {}", long.above));
    }
    if let Some(most) = target.input_max {
        words.push(format!("input at most {most}"));
    }
    words.join(", ")
}
