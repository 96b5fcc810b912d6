//! The inspector at `/`: files that are part of the program. It asks the API, like anybody else, and nobody but it.
//!
//! The files hold nothing that is anybody's, so they are given to everybody who may reach the server.

use super::error::{Envelope, refusal};
use axum::body::{Body, Bytes};
use axum::http::header::{
    CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, ETAG, HeaderName, IF_NONE_MATCH, REFERRER_POLICY,
    X_CONTENT_TYPE_OPTIONS,
};
use axum::http::{HeaderMap, HeaderValue, StatusCode};
use axum::response::Response;
use recto::digest::Digest;
use std::path::{Path, PathBuf};

/// The longest file that is read from a folder.
const FILE_BYTES_MAX: u64 = 4 << 20;

/// What a page of ours may do: run and show what comes from here, ask here, and nothing else.
const CONTENT_POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; \
                              img-src 'self' data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";
/// What goes with every file. Whether it is still the same is asked each time.
const HEADERS: [(HeaderName, &str); 6] = [
    (CONTENT_SECURITY_POLICY, CONTENT_POLICY),
    (X_CONTENT_TYPE_OPTIONS, "nosniff"),
    (REFERRER_POLICY, "no-referrer"),
    (CACHE_CONTROL, "no-cache"),
    (HeaderName::from_static("cross-origin-opener-policy"), "same-origin"),
    (HeaderName::from_static("cross-origin-resource-policy"), "same-origin"),
];

/// A file of the inspector.
struct File {
    name: &'static str,
    bytes: &'static [u8],
}

macro_rules! files {
    ($($name:literal)*) => {
        &[$(File { name: $name, bytes: include_bytes!(concat!("../../web/", $name)) }),*]
    };
}

/// All there are; the first is what stands at `/`.
static FILES: &[File] = files![
    "index.html" "app.css" "icon.svg" "theme.js" "app.js" "route.js" "api.js" "dom.js" "list.js" "chart.js" "signin.js"
    "conversations.js" "conversation.js" "page.js" "entry.js" "turn.js" "money.js" "whatif.js" "sessions.js"
    "text.js" "format.js" "fates.js" "ledger.js" "diff.js" "virtual.js" "plot.js" "live.js" "curl.js"
];

/// Where the files are taken from.
#[derive(Clone, Debug, Default)]
pub(crate) enum Web {
    /// The program.
    #[default]
    Program,
    /// A folder, so that they can be worked on.
    Folder(PathBuf),
}

impl Web {
    /// Answers with a file; without a name, with the page itself.
    pub(super) async fn answer(&self, name: Option<&str>, headers: &HeaderMap) -> Response {
        let wanted = name.unwrap_or(FILES[0].name);
        // Only files that are listed, so no name leads out of the folder.
        let Some(file) = FILES.iter().find(|file| file.name == wanted) else {
            return refusal(Envelope::Openai, StatusCode::NOT_FOUND, "not_found", "the inspector has no such file");
        };
        match self.bytes(file).await {
            Ok(bytes) => told(file.name, bytes, headers),
            Err(error) => {
                let message = format!("{} can't be read: {error}", file.name);
                refusal(Envelope::Openai, StatusCode::NOT_FOUND, "not_found", &message)
            }
        }
    }

    async fn bytes(&self, file: &File) -> std::io::Result<Bytes> {
        let Web::Folder(folder) = self else { return Ok(Bytes::from_static(file.bytes)) };
        let path = folder.join(file.name);
        let read = tokio::task::spawn_blocking(move || bounded(&path)).await;
        read.unwrap_or_else(|error| Err(std::io::Error::other(error))).map(Bytes::from)
    }
}

fn bounded(path: &Path) -> std::io::Result<Vec<u8>> {
    use std::io::Read;
    let mut bytes = Vec::new();
    std::fs::File::open(path)?.take(FILE_BYTES_MAX).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Returns a file, or that it is still the same.
fn told(name: &str, bytes: Bytes, headers: &HeaderMap) -> Response {
    let tag = format!("\"{}\"", Digest::of(&bytes));
    let known = headers.get(IF_NONE_MATCH).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let is_known = known.split(',').any(|one| one.trim().trim_start_matches("W/") == tag);
    let mut response = match is_known {
        true => Response::new(Body::empty()),
        false => Response::new(Body::from(bytes)),
    };
    if is_known {
        *response.status_mut() = StatusCode::NOT_MODIFIED;
    }
    let answer = response.headers_mut();
    for (header, value) in HEADERS {
        answer.insert(header, HeaderValue::from_static(value));
    }
    answer.insert(CONTENT_TYPE, HeaderValue::from_static(kind(name)));
    if let Ok(tag) = HeaderValue::try_from(tag) {
        answer.insert(ETAG, tag);
    }
    response
}

fn kind(name: &str) -> &'static str {
    match name.rsplit('.').next() {
        Some("html") => "text/html; charset=utf-8",
        Some("css") => "text/css; charset=utf-8",
        Some("js") => "text/javascript; charset=utf-8",
        Some("svg") => "image/svg+xml",
        _ => "application/octet-stream",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    /// What scripts and styles may weigh together.
    const BYTES_MAX: usize = 150_000;

    fn text(file: &File) -> &str {
        std::str::from_utf8(file.bytes).unwrap()
    }

    fn scripts() -> impl Iterator<Item = &'static File> {
        FILES.iter().filter(|file| file.name.ends_with(".js"))
    }

    #[test]
    fn every_file_of_the_folder_is_part_of_the_program() {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/web");
        let there = std::fs::read_dir(folder).unwrap().map(|it| it.unwrap().file_name().into_string().unwrap());
        let listed = FILES.iter().map(|file| file.name.to_string());
        assert_eq!(there.collect::<BTreeSet<_>>(), listed.collect());
    }

    #[test]
    fn scripts_and_styles_stay_small() {
        let weighed = FILES.iter().filter(|file| file.name.ends_with(".js") || file.name.ends_with(".css"));
        let bytes: usize = weighed.map(|file| file.bytes.len()).sum();
        assert!(bytes < BYTES_MAX, "{bytes} bytes");
    }

    #[test]
    fn no_script_reads_markup_or_makes_code_of_text() {
        let forbidden = [
            "innerHTML",
            "outerHTML",
            "insertAdjacentHTML",
            "document.write",
            "DOMParser",
            "createContextualFragment",
            "srcdoc =",
            "eval(",
            "new Function",
            "setHTML",
            "javascript:",
            "importScripts",
        ];
        for file in scripts() {
            let found: Vec<_> = forbidden.iter().filter(|word| text(file).contains(**word)).collect();
            assert!(found.is_empty(), "{}: {found:?}", file.name);
        }
    }

    #[test]
    fn nothing_is_loaded_from_elsewhere() {
        // A command that is copied, and the name of a language, lead nowhere.
        let may_name = ["curl.js", "dom.js", "icon.svg"];
        for file in FILES.iter().filter(|file| !may_name.contains(&file.name)) {
            assert!(!text(file).contains("://"), "{} names another place", file.name);
        }
        let page = text(&FILES[0]);
        assert!(!page.contains("style=") && !page.contains("<style") && !page.contains("onload"), "all is in files");
        let inline = page.matches("<script").count() - page.matches("<script src=\"/assets/").count();
        assert_eq!(inline, page.matches("<script type=\"module\" src=\"/assets/").count());
    }

    #[tokio::test]
    async fn a_file_that_is_known_is_not_sent_again() {
        let web = Web::Program;
        let first = web.answer(None, &HeaderMap::new()).await;
        assert_eq!(first.status(), 200);
        assert_eq!(first.headers()[CONTENT_SECURITY_POLICY], CONTENT_POLICY);
        let mut headers = HeaderMap::new();
        headers.insert(IF_NONE_MATCH, first.headers()[ETAG].clone());
        assert_eq!(web.answer(None, &headers).await.status(), 304);
        assert_eq!(web.answer(Some("app.css"), &headers).await.status(), 200);
    }

    #[tokio::test]
    async fn no_name_leads_out_of_the_folder() {
        let web = Web::Folder(concat!(env!("CARGO_MANIFEST_DIR"), "/web").into());
        assert_eq!(web.answer(Some("app.js"), &HeaderMap::new()).await.status(), 200);
        for name in ["../Cargo.toml", "/etc/passwd", "..", "", "app.js/", "APP.JS"] {
            assert_eq!(web.answer(Some(name), &HeaderMap::new()).await.status(), 404, "{name}");
        }
    }
}
