//! Who makes summaries: `[summarizer]`.

use super::upstream::refused;
use super::{Config, Set, UpstreamLayer};
use crate::failure::Failure;
use crate::{settings, source};
use recto::entry::Text;
use recto::wire::Wire;
use recto::{Target, Tokens};
use recto_engine::summarize::{AT_ONCE_MAX, MODELS_MAX, Mode, Settings, Summarizer};
use recto_engine::upstream::Upstream;
use std::collections::BTreeMap;
use std::ops::RangeInclusive;
use std::time::Duration;

/// The keys of the table.
pub(super) const KEYS: &[&str] = &[
    "upstream",
    "url",
    "wire",
    "key_env",
    "models",
    "mode",
    "wait_seconds",
    "timeout_seconds",
    "background",
    "output_tokens",
    "prompts",
];
pub(super) const WAIT_SECONDS: RangeInclusive<u32> = 0..=3_600;
pub(super) const AT_ONCE: RangeInclusive<u32> = 1..=AT_ONCE_MAX as u32;
/// How a prompt's value ends if it names a file; any other is the prompt itself.
const FILES: [&str; 2] = [".md", ".txt"];
/// What a summarizer of its own address is called.
const NAME: &str = "summarizer";

/// What is said about it.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct SummarizerLayer {
    pub(crate) upstream: Option<Set<String>>,
    pub(crate) url: Option<Set<String>>,
    pub(crate) wire: Option<Set<Wire>>,
    pub(crate) key_env: Option<Set<String>>,
    pub(crate) models: Option<Set<Vec<String>>>,
    pub(crate) mode: Option<Set<Mode>>,
    pub(crate) wait_seconds: Option<Set<u32>>,
    pub(crate) timeout_seconds: Option<Set<u32>>,
    pub(crate) background: Option<Set<u32>>,
    pub(crate) output_tokens: Option<Set<Tokens>>,
    pub(crate) prompts: BTreeMap<String, Set<String>>,
}

impl SummarizerLayer {
    /// Returns what holds when this layer lies over another.
    pub(super) fn over(self, lower: SummarizerLayer) -> SummarizerLayer {
        // Who is asked is said as a whole.
        let is_told = self.upstream.is_some() || self.url.is_some();
        let (upstream, url) = if is_told { (self.upstream, self.url) } else { (lower.upstream, lower.url) };
        SummarizerLayer {
            upstream,
            url,
            wire: self.wire.or(lower.wire),
            key_env: self.key_env.or(lower.key_env),
            models: self.models.or(lower.models),
            mode: self.mode.or(lower.mode),
            wait_seconds: self.wait_seconds.or(lower.wait_seconds),
            timeout_seconds: self.timeout_seconds.or(lower.timeout_seconds),
            background: self.background.or(lower.background),
            output_tokens: self.output_tokens.or(lower.output_tokens),
            prompts: lower.prompts.into_iter().chain(self.prompts).collect(),
        }
    }
}

impl Config {
    /// Says what is wrong with what the files say together.
    pub(super) fn check_summarizer(&self) -> Result<(), Failure> {
        let Some(upstream) = self.summarizer_upstream()? else { return Ok(()) };
        let layer = &self.layer.summarizer;
        let mode = layer.mode.as_ref().map_or(Mode::Separate, |set| set.value);
        match &layer.models {
            Some(Set { value, origin }) if value.len() > MODELS_MAX => {
                let what = format!("[summarizer] names {} models", value.len());
                Err(refused(origin, what).hinting(format!("at most {MODELS_MAX} are asked")))
            }
            Some(Set { value, .. }) if !value.is_empty() => Ok(()),
            _ if mode == Mode::Same => Ok(()),
            models => {
                let origin = models.as_ref().map_or(&upstream.name.origin, |set| &set.origin);
                Err(refused(origin, "[summarizer] has no models".into())
                    .hinting("give `models = [\"…\"]`, the preferred one first; the next is asked where one fails"))
            }
        }
    }

    /// Returns who is asked for summaries, if anybody is.
    fn summarizer_upstream(&self) -> Result<Option<UpstreamLayer>, Failure> {
        let SummarizerLayer { upstream, url, wire, key_env, .. } = &self.layer.summarizer;
        match (upstream, url) {
            (Some(upstream), Some(url)) => {
                let later = if matches!(&url.origin, super::Origin::File { .. }) { url } else { upstream };
                let what = "[summarizer] has both upstream and url".into();
                Err(refused(&later.origin, what).hinting("name an [upstream.NAME], or give url and wire"))
            }
            (Some(name), None) => {
                let all = self.upstreams();
                let found = all.iter().find(|it| it.name.value == name.value).cloned();
                let names = all.iter().map(|it| it.name.value.as_str());
                found.map(Some).ok_or_else(|| {
                    refused(&name.origin, format!("there is no upstream {:?}", name.value))
                        .suggesting(&name.value, names)
                        .hinting(format!("add [upstream.{}] with its url and wire", name.value))
                })
            }
            (None, Some(url)) => {
                let Some(wire) = wire else {
                    let names = Wire::ALL.map(Wire::name).join(", ");
                    return Err(refused(&url.origin, "[summarizer] has a url, and no wire".into())
                        .hinting(format!("give the format that it speaks, one of: {names}")));
                };
                let named = UpstreamLayer::named(Set { value: NAME.into(), origin: url.origin.clone() });
                let (url, wire, key_env) = (Some(url.clone()), Some(wire.clone()), key_env.clone());
                Ok(Some(UpstreamLayer { url, wire, key_env, ..named }))
            }
            (None, None) => match self.layer.summarizer.first_set() {
                Some(origin) => Err(refused(&origin, "[summarizer] says nobody to ask".into())
                    .hinting("give `upstream`, the name of an [upstream.NAME], or url and wire")),
                None => Ok(None),
            },
        }
    }

    /// Prepares for whoever makes summaries, if anybody does.
    pub(crate) fn summarizer(&self) -> Result<Option<Summarizer>, Failure> {
        let Some(found) = self.summarizer_upstream()? else { return Ok(None) };
        let upstream = Upstream::of(found.settings()).map_err(|error| found.name.blamed(error.into()))?;
        let layer = &self.layer.summarizer;
        let names = layer.models.as_ref().map(|set| &*set.value).unwrap_or_default();
        let target = |name: &String| {
            let known = self.models.catalogue().target(name).unwrap_or_else(|| Target::unknown(name));
            settings::over(known, upstream.wire())
        };
        let Numbers { mode, wait, timeout, at_once, output_tokens } = layer.numbers();
        let models = names.iter().map(target).collect();
        let usual = Settings::new(upstream.clone(), models);
        let mut settings = Settings { mode, wait, timeout, at_once, output_tokens, ..usual };
        for (name, value) in &layer.prompts {
            settings.prompts.insert(name.as_str().into(), prompt(value)?);
        }
        Ok(Some(Summarizer::of(settings)?))
    }
}

/// What is said about who makes summaries, for people.
#[derive(Clone, Debug)]
pub(crate) struct SummarizerTold {
    pub(crate) upstream: String,
    pub(crate) url: Option<String>,
    pub(crate) models: Vec<String>,
    pub(crate) numbers: Numbers,
    pub(crate) prompts: Vec<String>,
}

/// How summaries are asked for, and within which bounds.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Numbers {
    pub(crate) mode: Mode,
    pub(crate) wait: Duration,
    pub(crate) timeout: Duration,
    pub(crate) at_once: usize,
    pub(crate) output_tokens: Tokens,
}

impl Config {
    /// Returns what is said about who makes summaries; nobody is prepared for.
    pub(crate) fn summarizer_told(&self) -> Option<SummarizerTold> {
        let found = self.summarizer_upstream().ok()??;
        let layer = &self.layer.summarizer;
        Some(SummarizerTold {
            upstream: found.name.value,
            url: found.url.map(|set| set.value),
            models: layer.models.as_ref().map(|set| set.value.clone()).unwrap_or_default(),
            numbers: layer.numbers(),
            prompts: layer.prompts.keys().cloned().collect(),
        })
    }
}

impl SummarizerLayer {
    fn numbers(&self) -> Numbers {
        let seconds = |set: &Option<Set<u32>>, usual: Duration| {
            set.as_ref().map_or(usual, |set| Duration::from_secs(set.value.into()))
        };
        Numbers {
            mode: self.mode.as_ref().map_or(Mode::Separate, |set| set.value),
            wait: seconds(&self.wait_seconds, Settings::WAIT),
            timeout: seconds(&self.timeout_seconds, Settings::TIMEOUT),
            at_once: self.background.as_ref().map_or(Settings::AT_ONCE, |set| set.value as usize),
            output_tokens: self.output_tokens.as_ref().map_or(Settings::OUTPUT_TOKENS, |set| set.value),
        }
    }

    /// Where something is said of it, if anything is.
    fn first_set(&self) -> Option<super::Origin> {
        let SummarizerLayer { wire, key_env, models, mode, wait_seconds, timeout_seconds, .. } = self;
        let some = [
            wire.as_ref().map(|set| &set.origin),
            key_env.as_ref().map(|set| &set.origin),
            models.as_ref().map(|set| &set.origin),
            mode.as_ref().map(|set| &set.origin),
            wait_seconds.as_ref().map(|set| &set.origin),
            timeout_seconds.as_ref().map(|set| &set.origin),
            self.background.as_ref().map(|set| &set.origin),
            self.output_tokens.as_ref().map(|set| &set.origin),
            self.prompts.values().next().map(|set| &set.origin),
        ];
        some.into_iter().flatten().next().cloned()
    }
}

/// A prompt: the file that the value names, or the value itself.
fn prompt(value: &Set<String>) -> Result<Text, Failure> {
    if !FILES.iter().any(|end| value.value.ends_with(end)) {
        return Ok(value.value.as_str().into());
    }
    let text = source::file_text(&value.as_path(), &source::CONFIG).map_err(|failure| value.blamed(failure))?;
    Ok(text.into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    fn config(text: &str) -> Result<Config, Failure> {
        let content = super::super::file::of(Path::new("recto.toml"), text)?;
        let config = Config { layer: content.layer, ..Config::default() };
        config.check_summarizer()?;
        Ok(config)
    }

    const REACHED: &str = "url = 'http://127.0.0.1:1/v1'\nwire = 'openai_chat'";

    #[test]
    fn what_is_set_is_what_holds() {
        let text = format!(
            "[summarizer]\n{REACHED}\nmodels = ['gpt-4.1', 'mine']\nmode = 'same'\nwait_seconds = 3\n\
             timeout_seconds = 9\nbackground = 2\noutput_tokens = '1k'\n[summarizer.prompts]\nbrief = 'Be brief.'"
        );
        let summarizer = config(&text).unwrap().summarizer().unwrap().unwrap();
        let settings = summarizer.settings();
        let models: Vec<&str> = settings.models.iter().map(|it| &*it.name).collect();
        assert_eq!((models, settings.mode), (vec!["gpt-4.1", "mine"], Mode::Same));
        assert_eq!((settings.wait, settings.timeout), (Duration::from_secs(3), Duration::from_secs(9)));
        assert_eq!((settings.at_once, settings.output_tokens), (2, Tokens(1_000)));
        assert_eq!(settings.prompts["brief"], "Be brief.".into());
        assert_eq!(settings.upstream.name(), "summarizer");
        assert!(Config::default().summarizer().unwrap().is_none(), "nobody is asked unless somebody says so");
    }

    #[test]
    fn what_does_not_go_together_is_refused_with_its_place() {
        for (text, what) in [
            (REACHED.to_string(), "line 2, column 7: [summarizer] has no models"),
            (format!("{REACHED}\nmodels = []"), "line 4, column 10: [summarizer] has no models"),
            ("models = ['a']".into(), "line 2, column 10: [summarizer] says nobody to ask"),
            (
                "url = 'http://127.0.0.1:1'\nmodels = ['a']".into(),
                "line 2, column 7: [summarizer] has a url, and no wire",
            ),
            ("upstream = 'opena'\nmodels = ['a']".into(), "line 2, column 12: there is no upstream \"opena\""),
            (format!("upstream = 'openai'\n{REACHED}"), "line 3, column 7: [summarizer] has both upstream and url"),
            (format!("{REACHED}\nmodels = ['a']\nmode = 'sam'"), "line 5, column 8: mode can't be \"sam\""),
            (format!("{REACHED}\nbackground = 0"), "line 4, column 14: background can't be 0"),
            (format!("{REACHED}\nmodel = 'a'"), "line 4, column 1: unknown key \"model\" in [summarizer]"),
            (format!("{REACHED}\nprompts = 'a'"), "line 4, column 11: prompts is a string"),
        ] {
            let failure = config(&format!("[summarizer]\n{text}")).unwrap_err();
            assert_eq!(failure.parts().1, format!("cannot use recto.toml: {what}"), "{text}");
        }
    }
}
