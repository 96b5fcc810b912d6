//! Where a provider is, what goes with each request, and whose certificates are trusted.

use super::{Key, Settings};
use crate::error::Error;
use recto::wire::Wire;
use reqwest::header::{
    AUTHORIZATION, CONNECTION, CONTENT_LENGTH, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue, TRANSFER_ENCODING,
};
use reqwest::{Client, Url, redirect, retry};
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use rustls::{ClientConfig, RootCertStore, crypto};
use rustls_platform_verifier::Verifier;
use std::path::Path;
use std::sync::Arc;

/// The most certificates that a file may hold.
const CERTIFICATES_MAX: usize = 1_000;
/// The most connections to a provider that are kept open for later.
const IDLE_CONNECTIONS_MAX: usize = 256;
/// Headers that say where a body ends. Whoever sends a body says so itself.
const FRAMING: [HeaderName; 3] = [CONNECTION, CONTENT_LENGTH, TRANSFER_ENCODING];
const ANTHROPIC_VERSION: &str = "2023-06-01";

/// Reads the base URL, under which every path of the wire stands.
///
/// It is what the provider documents: with OpenAI's formats and Gemini's it has the version in it, with Anthropic's it
/// hasn't. Where the version is left out of the first, because there is no path at all, or stands in the second, it means
/// the same. Ollama's stands under `/api`, be that written or not.
pub(super) fn root(settings: &Settings) -> Result<Url, Error> {
    let name = &settings.name;
    let wrong = |what: String, hint: &str| Error::from(recto::Error::settings(format!("{what} of {name}"), hint));
    let example = "write it like https://api.openai.com/v1";
    let mut url: Url = settings.url.parse().map_err(|_| wrong("can't read the URL".into(), example))?;
    if !url.username().is_empty() || url.password().is_some() {
        return Err(wrong("there is a password in the URL".into(), "name the variable with the key in `key_env`"));
    }
    if url.query().is_some() || url.fragment().is_some() {
        return Err(wrong("there is more than a path in the URL".into(), example));
    }
    match url.scheme() {
        "https" => {}
        "http" if is_loopback(&url) || settings.plain_http => {}
        "http" => {
            let hint = "use https, or allow it with `plain_http = true` if nobody else can listen";
            return Err(wrong("everything would go unencrypted to the URL".into(), hint));
        }
        _ => return Err(wrong("can't use the URL".into(), "it begins with https://")),
    }
    let path = url.path().trim_end_matches('/').to_string();
    let missing = match settings.wire {
        Wire::Anthropic if !path.ends_with("/v1") => "/v1",
        Wire::OpenaiChat | Wire::OpenaiResponses if path.is_empty() => "/v1",
        Wire::Gemini if path.is_empty() => "/v1beta",
        Wire::Ollama if !path.ends_with("/api") => "/api",
        _ => "",
    };
    url.set_path(&format!("{path}{missing}"));
    Ok(url)
}

/// Returns whether a URL leads to this machine.
fn is_loopback(url: &Url) -> bool {
    let host = url.host_str().unwrap_or_default();
    let address: Option<std::net::IpAddr> = host.trim_matches(['[', ']']).parse().ok();
    host == "localhost" || address.is_some_and(|address| address.is_loopback())
}

/// Returns what goes with everything that we ask ourselves; what comes later wins.
pub(super) fn headers(settings: &Settings, more: [&HeaderMap; 2]) -> HeaderMap {
    let mut headers = HeaderMap::from_iter([(CONTENT_TYPE, HeaderValue::from_static("application/json"))]);
    if settings.wire == Wire::Anthropic {
        let version = HeaderName::from_static("anthropic-version");
        headers.insert(version, HeaderValue::from_static(ANTHROPIC_VERSION));
    }
    more.into_iter().for_each(|more| replace(&mut headers, more));
    headers
}

/// Returns the header with our key, if there is one.
pub(super) fn credential(settings: &Settings, key: Option<&Key>) -> Result<HeaderMap, Error> {
    let Some(Key(key)) = key else { return Ok(HeaderMap::new()) };
    let (name, text) = match settings.wire {
        Wire::Anthropic => (HeaderName::from_static("x-api-key"), key.clone()),
        Wire::Gemini => (HeaderName::from_static("x-goog-api-key"), key.clone()),
        Wire::OpenaiChat | Wire::OpenaiResponses | Wire::Ollama => (AUTHORIZATION, format!("Bearer {key}")),
    };
    let value = value(&text).ok_or_else(|| {
        let variable = settings.key_env.as_deref().unwrap_or_default();
        let what = format!("the key in {variable} holds characters that no key has");
        recto::Error::settings(what, format!("set {variable} again"))
    })?;
    Ok(HeaderMap::from_iter([(name, value)]))
}

/// Returns the headers of the settings.
pub(super) fn extra(settings: &Settings) -> Result<HeaderMap, Error> {
    let mut headers = HeaderMap::new();
    extend(&mut headers, settings.headers.iter().map(|(name, value)| (name.as_str(), value.as_str())))?;
    Ok(headers)
}

/// Adds headers of which each stands once; those that are there already are replaced.
pub(super) fn replace(headers: &mut HeaderMap, more: &HeaderMap) {
    for (name, value) in more {
        headers.insert(name.clone(), value.clone());
    }
}

/// Adds headers; those that are there already are replaced.
pub(super) fn extend<'h>(
    headers: &mut HeaderMap,
    more: impl IntoIterator<Item = (&'h str, &'h str)>,
) -> Result<(), Error> {
    for (name, text) in more {
        let header = name.parse::<HeaderName>().ok().filter(|name| !FRAMING.contains(name)).zip(value(text));
        let (header, value) = header.ok_or_else(|| {
            let hint =
                "names are letters, digits and dashes, values one line; where a body ends is not for them to say";
            recto::Error::settings(format!("can't send the header {name:?}"), hint)
        })?;
        headers.insert(header, value);
    }
    Ok(())
}

fn value(text: &str) -> Option<HeaderValue> {
    let mut value = HeaderValue::from_str(text).ok()?;
    value.set_sensitive(true);
    Some(value)
}

/// Returns a client that follows no redirect, repeats nothing by itself, and takes no proxy to this machine.
pub(super) fn client(settings: &Settings, base: &Url) -> Result<Client, Error> {
    let builder = Client::builder()
        .user_agent(concat!("recto/", env!("CARGO_PKG_VERSION")))
        .redirect(redirect::Policy::none())
        .retry(retry::never())
        .connect_timeout(settings.limits.connect)
        .pool_max_idle_per_host(IDLE_CONNECTIONS_MAX)
        .tls_backend_preconfigured(encryption(settings, base)?);
    let builder = if is_loopback(base) { builder.no_proxy() } else { builder };
    builder.build().map_err(|error| unusable(settings, &error))
}

/// Returns whom to trust: those whom the system trusts, and those in the file.
fn encryption(settings: &Settings, base: &Url) -> Result<ClientConfig, Error> {
    let provider = Arc::new(crypto::ring::default_provider());
    let builder = ClientConfig::builder_with_provider(Arc::clone(&provider));
    let builder = builder.with_safe_default_protocol_versions().map_err(|error| unusable(settings, &error))?;
    if base.scheme() != "https" {
        return Ok(builder.with_root_certificates(RootCertStore::empty()).with_no_client_auth());
    }
    let own = settings.ca.as_deref().map(certificates).transpose()?.unwrap_or_default();
    let verifier = Verifier::new_with_extra_roots(own, provider).map_err(|error| unusable(settings, &error))?;
    Ok(builder.dangerous().with_custom_certificate_verifier(Arc::new(verifier)).with_no_client_auth())
}

fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, Error> {
    let wrong = |why: &str| {
        let what = format!("can't use {} as certificates: {why}", path.display());
        Error::from(recto::Error::settings(what, "name a PEM file with certificates of authorities"))
    };
    let found = CertificateDer::pem_file_iter(path).map_err(|error| wrong(&error.to_string()))?;
    let found: Result<Vec<_>, _> = found.take(CERTIFICATES_MAX).collect();
    match found {
        Ok(found) if found.is_empty() => Err(wrong("there is none in it")),
        Ok(found) => Ok(found),
        Err(error) => Err(wrong(&error.to_string())),
    }
}

fn unusable(settings: &Settings, error: &dyn std::error::Error) -> Error {
    let what = format!("can't prepare for {}: {error}", settings.name);
    recto::Error::settings(what, "check the certificates of this system, or name some with `ca`").into()
}
