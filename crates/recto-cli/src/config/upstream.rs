//! Which provider answers for a model, and how it is reached.

use super::{Config, Origin, Set};
use crate::codes::Code;
use crate::failure::Failure;
use recto::Target;
use recto::error::Place;
use recto::wire::Wire;
use recto_engine::upstream::{ClientKey, Remember, Settings, Upstream};
use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;
use std::time::Duration;

/// What is there without any file: its name, its URL, its format, and the variable with its key, if it wants one.
const BUILT_IN: [(&str, &str, Wire, Option<&str>); 4] = [
    ("openai", "https://api.openai.com/v1", Wire::OpenaiResponses, Some("OPENAI_API_KEY")),
    ("anthropic", "https://api.anthropic.com", Wire::Anthropic, Some("ANTHROPIC_API_KEY")),
    ("google", "https://generativelanguage.googleapis.com/v1beta", Wire::Gemini, Some("GEMINI_API_KEY")),
    ("ollama", "http://localhost:11434", Wire::Ollama, None),
];

/// What is said about one provider.
#[derive(Clone, Debug)]
pub(crate) struct UpstreamLayer {
    /// Its name, and where the nearest file speaks of it.
    pub(crate) name: Set<String>,
    pub(crate) url: Option<Set<String>>,
    pub(crate) wire: Option<Set<Wire>>,
    pub(crate) key_env: Option<Set<String>>,
    pub(crate) client_key: Option<Set<ClientKey>>,
    /// What goes with every request, by its name in small letters.
    pub(crate) headers: BTreeMap<String, Hidden>,
    pub(crate) remember: Option<Set<Remember>>,
    pub(crate) ca: Option<Set<String>>,
    /// Patterns of the models that go there.
    pub(crate) models: Option<Set<Vec<String>>>,
    pub(crate) plain_http: Option<Set<bool>>,
    pub(crate) timeout_seconds: Option<Set<u32>>,
    pub(crate) forward_timeout_seconds: Option<Set<u32>>,
    pub(crate) retries: Option<Set<u32>>,
}

/// A text that is never shown.
#[derive(Clone)]
pub(crate) struct Hidden(pub(crate) String);

impl fmt::Debug for Hidden {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("[hidden]")
    }
}

impl UpstreamLayer {
    /// Returns one of which nothing is said but its name.
    pub(super) fn named(name: Set<String>) -> UpstreamLayer {
        UpstreamLayer {
            name,
            url: None,
            wire: None,
            key_env: None,
            client_key: None,
            headers: BTreeMap::new(),
            remember: None,
            ca: None,
            models: None,
            plain_http: None,
            timeout_seconds: None,
            forward_timeout_seconds: None,
            retries: None,
        }
    }

    /// Returns what holds when this layer lies over another of the same name.
    pub(super) fn over(self, lower: UpstreamLayer) -> UpstreamLayer {
        UpstreamLayer {
            name: self.name,
            url: self.url.or(lower.url),
            wire: self.wire.or(lower.wire),
            key_env: self.key_env.or(lower.key_env),
            client_key: self.client_key.or(lower.client_key),
            headers: lower.headers.into_iter().chain(self.headers).collect(),
            remember: self.remember.or(lower.remember),
            ca: self.ca.or(lower.ca),
            models: self.models.or(lower.models),
            plain_http: self.plain_http.or(lower.plain_http),
            timeout_seconds: self.timeout_seconds.or(lower.timeout_seconds),
            forward_timeout_seconds: self.forward_timeout_seconds.or(lower.forward_timeout_seconds),
            retries: self.retries.or(lower.retries),
        }
    }

    /// Lays upper layers over lower ones, name by name. The upper ones come first.
    pub(super) fn all_over(upper: Vec<UpstreamLayer>, mut lower: Vec<UpstreamLayer>) -> Vec<UpstreamLayer> {
        let lay = |it: UpstreamLayer| match lower.iter().position(|below| below.name.value == it.name.value) {
            Some(at) => it.over(lower.remove(at)),
            None => it,
        };
        let mut all: Vec<UpstreamLayer> = upper.into_iter().map(lay).collect();
        all.extend(lower);
        all
    }

    /// Says what is missing, or doesn't go together.
    fn check(&self) -> Result<(), Failure> {
        let name = &self.name.value;
        let missing = |key: &str, hint: &str| {
            refused(&self.name.origin, format!("upstream {name:?} has no {key}")).hinting(hint.to_string())
        };
        if self.url.is_none() {
            return Err(missing("url", "give what the provider documents as its base URL"));
        }
        let Some(wire) = &self.wire else {
            let names = Wire::ALL.map(Wire::name).join(", ");
            return Err(missing("wire", &format!("give the format that it speaks, one of: {names}")));
        };
        match &self.remember {
            Some(Set { value, origin }) if *value != Remember::No && wire.value != Wire::OpenaiResponses => {
                let what = format!("remember can't be {:?} with wire {:?}", value.name(), wire.value.name());
                Err(refused(origin, what).hinting("only openai_responses keeps the history"))
            }
            _ => Ok(()),
        }
    }

    /// Returns whether clients of a format can talk to it in their own.
    fn speaks_like(&self, wire: Wire) -> bool {
        self.wire.as_ref().is_some_and(|set| is_alike(set.value, wire))
    }

    /// Returns whether a file speaks of it.
    fn is_named(&self) -> bool {
        !matches!(self.name.origin, Origin::Default)
    }

    /// Returns whether it takes a model: by a pattern, or because it is the model's provider.
    fn takes(&self, target: &Target) -> Option<By> {
        match &self.models {
            Some(Set { value, .. }) => {
                value.iter().any(|pattern| matches(pattern, &target.name)).then_some(By::Pattern)
            }
            None => (*self.name.value == *target.provider).then_some(By::Provider),
        }
    }

    /// Returns how it is reached.
    pub(crate) fn settings(&self) -> Settings {
        fn of<T: Clone>(set: &Option<Set<T>>) -> Option<T> {
            set.as_ref().map(|set| set.value.clone())
        }
        let url = of(&self.url).unwrap_or_default();
        let mut settings = Settings::new(&self.name.value, &url, of(&self.wire).unwrap_or(Wire::OpenaiChat));
        settings.key_env = of(&self.key_env);
        settings.client_key = of(&self.client_key);
        settings.headers = self.headers.iter().map(|(name, Hidden(value))| (name.clone(), value.clone())).collect();
        settings.remember = of(&self.remember).unwrap_or_default();
        settings.ca = self.ca.as_ref().map(Set::as_path);
        settings.plain_http = of(&self.plain_http).unwrap_or(settings.plain_http);
        settings.retries_max = of(&self.retries).unwrap_or(settings.retries_max);
        let limits = &mut settings.limits;
        let seconds = |set: &Option<Set<u32>>| of(set).map(|seconds| Duration::from_secs(seconds.into()));
        if let Some(patience) = seconds(&self.timeout_seconds) {
            (limits.first_byte, limits.silence, limits.whole) = (patience, patience, patience);
        }
        limits.forwarded = seconds(&self.forward_timeout_seconds).unwrap_or(limits.forwarded);
        settings
    }

    /// Returns how it is reached for clients who may bring keys of their own: a key must be there only if somebody
    /// asked for it.
    pub(crate) fn forwarding(&self) -> Settings {
        let is_asked_for = self.key_env.as_ref().is_some_and(|set| !matches!(set.origin, Origin::Default));
        let settings = self.settings();
        Settings { key_required: is_asked_for && settings.client_key != Some(ClientKey::Pass), ..settings }
    }
}

/// Why a model goes to a provider; what was said of the model itself comes first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum By {
    Pattern,
    Provider,
}

impl Config {
    /// Returns all providers: those of the files, the nearest first, and then those that are built in.
    pub(crate) fn upstreams(&self) -> Vec<UpstreamLayer> {
        let set = |value: &str| Some(Set { value: value.to_string(), origin: Origin::Default });
        let built_in = BUILT_IN.map(|(name, url, wire, key_env)| UpstreamLayer {
            url: set(url),
            wire: Some(Set { value: wire, origin: Origin::Default }),
            key_env: key_env.and_then(set),
            ..UpstreamLayer::named(Set { value: name.into(), origin: Origin::Default })
        });
        UpstreamLayer::all_over(self.layer.upstreams.clone(), built_in.into())
    }

    /// Says what is wrong with what the files say together.
    pub(super) fn check_upstreams(&self) -> Result<(), Failure> {
        self.upstreams().iter().try_for_each(UpstreamLayer::check)
    }

    /// Returns who answers for a model in a format: the first whose `models` name it, else the one that is called as its
    /// provider, else the first of all that speak like that.
    pub(crate) fn upstream_speaking(&self, wire: Wire, target: &Target) -> Option<UpstreamLayer> {
        let all = self.upstreams();
        let own: Vec<&UpstreamLayer> = all.iter().filter(|it| it.speaks_like(wire)).collect();
        let by = |wanted: By| own.iter().find(|it| it.takes(target) == Some(wanted));
        by(By::Pattern).or_else(|| by(By::Provider)).or(own.first()).copied().cloned()
    }

    /// Returns who answers for a model that a client asks for in a format. As [`Config::upstream_speaking`], but where
    /// nobody of that format names the model or is called as its provider, one of another format is asked who does or is;
    /// a provider that is only built in gives way to one of the client's format that a file names, which may well answer
    /// for all models.
    pub(crate) fn upstream_asked(&self, wire: Wire, target: &Target) -> Option<UpstreamLayer> {
        let own = self.upstream_speaking(wire, target);
        if own.as_ref().is_some_and(|own| own.takes(target).is_some()) {
            return own;
        }
        let all = self.upstreams();
        let other = |wanted: By| all.iter().find(|it| !it.speaks_like(wire) && it.takes(target) == Some(wanted));
        let is_own_named = own.as_ref().is_some_and(UpstreamLayer::is_named);
        let provider = || other(By::Provider).filter(|it| it.is_named() || !is_own_named);
        other(By::Pattern).or_else(provider).cloned().or(own)
    }

    /// Returns who answers for a model: the first whose `models` name it, else the one that is called as its provider.
    pub(crate) fn upstream_layer_for(&self, target: &Target) -> Result<UpstreamLayer, Failure> {
        let all = self.upstreams();
        let by = |wanted: By| all.iter().find(|it| it.takes(target) == Some(wanted));
        by(By::Pattern).or_else(|| by(By::Provider)).cloned().ok_or_else(|| {
            let (model, provider) = (&*target.name, &*target.provider);
            let what = format!("no upstream answers for model {model:?}");
            Failure::of(Code::NoUpstream, what)
                .hinting(format!("add `models = [{model:?}]` to an [upstream.NAME] in recto.toml"))
                .hinting(format!("or call it as the model's provider: [upstream.{provider}]"))
        })
    }

    /// Prepares for whoever answers for a model.
    pub(crate) fn upstream_for(&self, target: &Target) -> Result<Upstream, Failure> {
        let found = self.upstream_layer_for(target)?;
        Upstream::of(found.settings()).map_err(|error| found.name.blamed(error.into()))
    }
}

/// Returns whether whoever speaks one of these formats is talked to in the other, too: OpenAI's servers have both of
/// theirs.
pub(crate) fn is_alike(one: Wire, other: Wire) -> bool {
    let is_openai = |wire: Wire| matches!(wire, Wire::OpenaiChat | Wire::OpenaiResponses);
    one == other || (is_openai(one) && is_openai(other))
}

/// Returns whether a name matches a pattern, in which `*` stands for anything.
pub(super) fn matches(pattern: &str, name: &str) -> bool {
    let Some((start, rest)) = pattern.split_once('*') else { return pattern == name };
    let Some(mut left) = name.strip_prefix(start) else { return false };
    let (middle, end) = rest.rsplit_once('*').map_or((None, rest), |(middle, end)| (Some(middle), end));
    for piece in middle.into_iter().flat_map(|middle| middle.split('*')) {
        let Some(at) = left.find(piece) else { return false };
        left = &left[at + piece.len()..];
    }
    left.ends_with(end)
}

/// Something that a file says and that can't be used, with its place.
pub(super) fn refused(origin: &Origin, what: String) -> Failure {
    let Origin::File { path, place: Place { line, column } } = origin else {
        return Failure::of(Code::BadKeyValue, what);
    };
    let path: &Path = path;
    Failure::of(Code::BadKeyValue, format!("line {line}, column {column}: {what}"))
        .during(format!("cannot use {}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Layer;
    use std::path::PathBuf;

    fn config(text: &str) -> Config {
        let content = super::super::file::of(Path::new("recto.toml"), text).unwrap();
        let config = Config { layer: content.layer, ..Config::default() };
        config.check_upstreams().unwrap();
        config
    }

    fn target(name: &str) -> Target {
        Target::named(name).unwrap_or_else(|| Target::unknown(name))
    }

    fn answers(config: &Config, model: &str) -> String {
        match config.upstream_for(&target(model)) {
            Ok(upstream) => upstream.name().to_string(),
            Err(failure) => failure.parts().1,
        }
    }

    #[test]
    fn patterns_match_as_people_expect() {
        for (pattern, name, is_match) in [
            ("gpt-4o", "gpt-4o", true),
            ("gpt-4o", "gpt-4o-mini", false),
            ("gpt-*", "gpt-4o", true),
            ("*", "", true),
            ("*-mini", "gpt-4o-mini", true),
            ("*-mini", "gpt-4o-mini-x", false),
            ("a*b*c", "abc", true),
            ("a*b*c", "axxbyyc", true),
            ("a*b*c", "acb", false),
            ("ab*ba", "aba", false),
            ("**", "x", true),
        ] {
            assert_eq!(matches(pattern, name), is_match, "{pattern} {name}");
        }
    }

    #[test]
    fn a_model_goes_to_whom_its_pattern_names_else_to_its_provider() {
        let url = "url = 'http://127.0.0.1:1'\nwire = 'openai_chat'";
        let text = format!(
            "[upstream.home]\n{url}\nmodels = ['llama-*', 'gpt-4.1']\n[upstream.deepseek]\n{url}\n[upstream.openai]\n\
             key_env = 'CARGO_PKG_NAME'\n[upstream.late]\n{url}\nmodels = ['llama-*']"
        );
        let config = config(&text);
        assert_eq!(answers(&config, "llama-9"), "home");
        assert_eq!(answers(&config, "gpt-4.1"), "home");
        assert_eq!(answers(&config, "gpt-4o"), "openai");
        assert_eq!(answers(&config, "deepseek-v4-pro"), "deepseek");
        let gemini = config.upstream_layer_for(&target("gemini-3.8-flash")).unwrap().settings();
        assert_eq!(
            (&*gemini.name, gemini.wire, gemini.key_env.as_deref()),
            ("google", Wire::Gemini, Some("GEMINI_API_KEY"))
        );
        assert_eq!(answers(&config, "nobody"), "no upstream answers for model \"nobody\"");
        let upstream = config.upstream_for(&target("gpt-4o")).unwrap();
        assert_eq!(upstream.wire(), Wire::OpenaiResponses, "what a file leaves out is built in");
    }

    #[test]
    fn a_client_is_answered_in_another_format_only_where_its_own_has_no_better_claim() {
        let asked = |text: &str, wire: Wire, model: &str| {
            config(text).upstream_asked(wire, &target(model)).map(|it| it.name.value).unwrap_or_default()
        };
        let (chat, messages) = (Wire::OpenaiChat, Wire::Anthropic);
        assert_eq!(asked("", chat, "claude-opus-5-5"), "anthropic", "it is the provider's");
        assert_eq!(asked("", messages, "gpt-4o"), "openai");
        assert_eq!([asked("", chat, "gpt-4o"), asked("", messages, "claude-opus-5-5")], ["openai", "anthropic"]);
        assert_eq!([asked("", chat, "nobody"), asked("", messages, "nobody")], ["openai", "anthropic"]);
        let all = "[upstream.all]\nurl = 'http://127.0.0.1:1'\nwire = 'openai_chat'\n";
        assert_eq!(asked(all, chat, "claude-opus-5-5"), "all", "it may well answer for all models");
        let own = format!("{all}[upstream.anthropic]\nretries = 1\n");
        assert_eq!(asked(&own, chat, "claude-opus-5-5"), "anthropic", "a file names that, too");
        assert_eq!(asked(&format!("{all}models = ['*']\n"), messages, "claude-opus-5-5"), "anthropic");
        let both = format!("{all}models = ['x-*']\n[upstream.own]\nurl = 'http://127.0.0.1:1'\nwire = 'anthropic'\n");
        assert_eq!(asked(&format!("{both}models = ['x-*']\n"), messages, "x-1"), "own", "its own format comes first");
        assert_eq!(asked(&format!("{both}models = ['y-*']\n"), chat, "y-1"), "own", "it alone names the model");
    }

    #[test]
    fn what_is_set_is_what_holds() {
        let text = "[upstream.openai]\nremember = 'conversation'\nca = 'own.pem'\ntimeout_seconds = 7\nretries = 0\n\
                    url = 'http://example.com'\nplain_http = true\nclient_key = 'pass'\n\
                    forward_timeout_seconds = 9\n[upstream.openai.headers]\nX-Team = 'secret-value'";
        let config = config(text);
        let settings = config.upstreams()[0].settings();
        assert_eq!(settings.url, "http://example.com");
        assert_eq!((settings.remember, settings.retries_max), (Remember::Conversation, 0));
        let limits = settings.limits;
        assert_eq!([limits.first_byte, limits.silence, limits.whole], [Duration::from_secs(7); 3]);
        assert_eq!((limits.forwarded, settings.client_key), (Duration::from_secs(9), Some(ClientKey::Pass)));
        assert_eq!(settings.headers, [("x-team".to_string(), "secret-value".to_string())].into());
        assert!(!format!("{:?}", config.layer.upstreams).contains("secret-value"));
        assert_eq!((settings.ca, settings.plain_http), (Some(PathBuf::from("own.pem")), true));
        assert_eq!(settings.key_env.as_deref(), Some("OPENAI_API_KEY"));
        assert_eq!(config.upstreams().len(), 4);
    }

    #[test]
    fn clients_may_bring_the_key_of_an_upstream_unless_a_file_names_one() {
        let text = "[upstream.openai]\nretries = 1\n[upstream.anthropic]\nkey_env = 'RECTO_NO_SUCH_KEY'";
        let required = |text: &str, model: &str| {
            let layer = config(text).upstream_layer_for(&target(model)).unwrap();
            assert!(layer.settings().key_required, "whoever asks by himself needs it");
            layer.forwarding().key_required
        };
        assert!(!required(text, "gpt-4o"));
        assert!(required(text, "claude-opus-4-6"));
        assert!(!required(&format!("{text}\nclient_key = 'pass'"), "claude-opus-4-6"));
    }

    #[test]
    fn headers_of_a_nearer_file_are_added_to_those_of_a_farther_one() {
        let nearer = config("[upstream.openai.headers]\nx-one = 'near'\n");
        let farther = config("[upstream.openai.headers]\nX-One = 'far'\nX-Two = 'far'");
        let all = Config { layer: nearer.layer.over(farther.layer), ..Config::default() }.upstreams();
        let headers: Vec<(String, String)> = all[0].settings().headers.into_iter().collect();
        assert_eq!(headers, [("x-one", "near"), ("x-two", "far")].map(|(name, value)| (name.into(), value.into())));
    }

    #[test]
    fn a_nearer_file_wins_key_by_key_and_comes_first() {
        let nearer = config("[upstream.a]\nurl='https://a.example'\nwire='anthropic'\n[upstream.openai]\nretries = 1");
        let farther = config(
            "[upstream.b]\nurl='https://b.example'\nwire='anthropic'\n[upstream.openai]\nretries = 2\n\
                              key_env = 'FAR'",
        );
        let layer: Layer = nearer.layer.over(farther.layer);
        let all = Config { layer, ..Config::default() }.upstreams();
        let names: Vec<&str> = all.iter().map(|it| it.name.value.as_str()).collect();
        assert_eq!(names, ["a", "openai", "b", "anthropic", "google", "ollama"]);
        let openai = all[1].settings();
        assert_eq!((openai.retries_max, openai.key_env.as_deref()), (1, Some("FAR")));
    }
}
