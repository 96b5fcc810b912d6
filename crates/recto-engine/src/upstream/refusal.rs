//! Why a provider did not answer, in its own words as far as they can be shown.

use serde_json::Value;

/// The most letters of a provider's words that are shown.
const MESSAGE_CHARS_MAX: usize = 1_000;

/// What a provider says has gone wrong.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Told {
    pub(super) message: String,
    /// Its own name of the error, such as `previous_response_not_found`.
    pub(super) code: Option<String>,
}

impl Told {
    /// Reads the body of a refusal, whatever it is.
    pub(super) fn of(body: &[u8]) -> Told {
        if let Ok(body @ Value::Object(_)) = serde_json::from_slice::<Value>(body) {
            return Told::of_error(if body["error"].is_null() { &body } else { &body["error"] });
        }
        let text = String::from_utf8_lossy(body);
        let text = text.trim();
        let is_page = text.get(..1) == Some("<");
        let message = match title(text).filter(|_| is_page) {
            Some(title) => format!("a web page, {title:?}"),
            None if is_page => "a web page".into(),
            None if text.is_empty() => "without a reason".into(),
            None => shown(text),
        };
        Told { message, code: None }
    }

    /// Reads the error itself.
    pub(super) fn of_error(error: &Value) -> Told {
        let text = |value: &Value| value.as_str().filter(|text| !text.is_empty()).map(shown);
        let message = text(error).or_else(|| ["message", "detail"].into_iter().find_map(|key| text(&error[key])));
        let code = match &error["code"] {
            // Where the number is nothing but the HTTP status again, another field has the name.
            Value::Number(number) => text(&error["status"]).or_else(|| Some(number.to_string())),
            code => text(code),
        };
        let code = code.or_else(|| text(&error["details"]["error_code"])).or_else(|| text(&error["type"]));
        Told { message: message.unwrap_or_else(|| shown(&error.to_string())), code }
    }

    /// Returns the same without these keys.
    pub(super) fn without<'k>(self, keys: impl Iterator<Item = &'k str>) -> Told {
        keys.fold(self, |Told { message, code }, key| {
            let hide = |text: String| text.replace(key, "[key]");
            Told { message: hide(message), code: code.map(hide) }
        })
    }
}

/// Returns what to do about a refusal. `wait` are the seconds that the provider asks for.
pub(super) fn hint(status: u16, wait: Option<u64>, key_env: Option<&str>) -> String {
    match (status, wait, key_env) {
        (300..=399, ..) => "redirects are not followed; set `url` to where the provider really is".into(),
        (401 | 403, _, Some(variable)) => format!("check the key in {variable}, and what it may do"),
        (401 | 403, _, None) => "name the variable with the key in `key_env`".into(),
        (404, ..) => "check `url`, and the names of the model and of what the provider keeps".into(),
        (413, ..) => "use a smaller window".into(),
        (_, Some(seconds), _) => format!("the provider asks to wait {seconds} s; then ask again"),
        (408 | 429 | 500.., ..) => "wait, then ask again".into(),
        _ => "the provider's words say what it does not take".into(),
    }
}

/// The title of a web page.
fn title(page: &str) -> Option<String> {
    let (_, rest) = page.split_once("<title>")?;
    let (title, _) = rest.split_once("</title>")?;
    Some(shown(title.trim()))
}

/// A text on one line and of bounded length.
fn shown(text: &str) -> String {
    let mut letters = text.chars().map(|letter| if letter.is_control() { ' ' } else { letter });
    let mut shown: String = letters.by_ref().take(MESSAGE_CHARS_MAX).collect();
    if letters.next().is_some() {
        shown.push('…');
    }
    shown
}
