//! What the server knows without any conversation: its version, policies and models.

use super::asked::{Asked, checked_name, json, limited};
use super::problem::Problem;
use super::settings;
use super::shape::{Shape, Shapes, reference};
use crate::clock;
use crate::models;
use crate::settings::POLICY;
use axum::response::Response;
use recto::target::Catalogue;
use recto::{Policy, Target};
use recto_engine::Store;
use serde_json::{Map, Value};

/// How many models one page holds.
const MODELS_USUAL: usize = 200;
const MODELS_MAX: usize = 1_000;

told! {
    /// The version, and who asks.
    struct VersionTold {
        /// The version of Recto.
        version: String,
        /// Whose conversations the key opens.
        tenant: String,
        /// The policy of requests that name none.
        policy: String,
        /// The model of requests that name none.
        model: String,
    }
}

told! {
    /// The policies there are.
    struct PoliciesTold {
        /// All of them.
        policies: Vec<Preset>,
        /// The one of requests that name none.
        default: String,
    }
}

told! {
    /// A policy, in short.
    struct Preset {
        /// Its name.
        name: String,
        /// What it is for.
        about: String,
        /// Where it comes from.
        origin: FromWhere,
    }
}

words! {
    /// Where facts come from.
    enum FromWhere {
        /// They come with Recto.
        #[default]
        BuiltIn = "built_in",
        /// The server's configuration gives them.
        Configured = "configured",
    }
}

given! {
    /// Which models.
    struct ModelsGiven {
        /// Only those whose names come after this one.
        after: Option<String>,
        /// At most so many: 200, up to 1000.
        limit: Option<u64>,
    }
}

told! {
    /// Models that are known.
    struct ModelsTold {
        /// When the built-in prices were read off.
        as_of: String,
        /// The models, by name.
        models: Vec<ModelTold>,
        /// Where to go on, if there are more.
        next: Option<String>,
    }
}

/// A model, with all facts about it and where they come from.
#[derive(Debug, serde::Serialize)]
pub(super) struct ModelTold(Map<String, Value>);

impl Shape for ModelTold {
    fn shape(shapes: &mut Shapes) -> Value {
        // The facts of the core stand beside our own, as the command prints them.
        Target::shape(shapes);
        reference("Model")
    }
}

/// Tells the version, and who asks.
pub(super) fn version<S: Store>(asked: &Asked<S>) -> Result<Response, Problem> {
    json(&VersionTold {
        version: env!("CARGO_PKG_VERSION").into(),
        tenant: asked.caller.tenant.to_string(),
        policy: settings::usual(asked)?.name.to_string(),
        model: settings::model(&asked.setup.config).into(),
    })
}

/// Lists policies.
pub(super) fn policies<S: Store>(asked: &Asked<S>) -> Result<Response, Problem> {
    let built_in = Policy::preset_names().map(|(name, about)| Preset {
        name: name.into(),
        about: about.into(),
        origin: FromWhere::BuiltIn,
    });
    let configured = settings::configured(&asked.setup.config).map(|policy| Preset {
        name: policy.name.to_string(),
        about: "as the server is configured".into(),
        origin: FromWhere::Configured,
    });
    let default = settings::usual(asked).map_or(POLICY.to_string(), |policy| policy.name.to_string());
    json(&PoliciesTold { policies: built_in.chain(configured).collect(), default })
}

/// Returns one policy.
pub(super) fn policy<S: Store>(asked: &Asked<S>) -> Result<Response, Problem> {
    json(&settings::named(&asked.setup.config, asked.named("policy").unwrap_or_default())?)
}

/// Lists models.
pub(super) fn models<S: Store>(asked: &Asked<S>) -> Result<Response, Problem> {
    let ModelsGiven { after, limit } = asked.query()?;
    let limit = limited(limit, MODELS_USUAL, MODELS_MAX)?;
    let catalogue = asked.setup.config.models.catalogue();
    let is_after = |name: &&str| after.as_deref().is_none_or(|after| *name > after);
    let mut names: Vec<&str> = catalogue.names().filter(is_after).collect();
    names.sort_unstable();
    let more = names.len() > limit;
    names.truncate(limit);
    let models = names.iter().filter_map(|name| Some(told_of(asked, catalogue.target(name)?, true))).collect();
    let next = names.last().filter(|_| more).map(ToString::to_string);
    json(&ModelsTold { as_of: Catalogue::built_in().as_of().to_string(), models, next })
}

/// Tells what is known about one model.
pub(super) fn model<S: Store>(asked: &Asked<S>) -> Result<Response, Problem> {
    let name = checked_name("model", asked.named("model").unwrap_or_default())?;
    let found = asked.setup.config.models.catalogue().target(name);
    let known = found.is_some();
    json(&told_of(asked, found.unwrap_or_else(|| Target::unknown(name)), known))
}

fn told_of<S: Store>(asked: &Asked<S>, target: Target, known: bool) -> ModelTold {
    let own = asked.setup.config.models.own.iter().any(|own| *own.name == *target.name);
    let origin = if own { FromWhere::Configured } else { FromWhere::BuiltIn };
    let stale_days = models::stale_days(&target, clock::now());
    let mut facts = serde_json::to_value(&target).ok().and_then(|it| it.as_object().cloned()).unwrap_or_default();
    facts.insert("known".into(), known.into());
    facts.insert("stale_days".into(), stale_days.into());
    facts.insert("origin".into(), serde_json::to_value(origin).unwrap_or_default());
    ModelTold(facts)
}
