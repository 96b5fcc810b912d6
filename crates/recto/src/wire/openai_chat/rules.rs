//! Rules that depend on the model, and those of strict schemas.

use serde_json::Value;

/// How deep a schema is looked into.
const DEPTH_MAX: usize = 64;

/// What a model's name tells about it; an unknown one tells nothing.
#[derive(Default)]
pub(crate) struct Model {
    /// It thinks before it answers, and takes no setting of chance.
    pub(crate) reasons: bool,
    /// It takes functions in this format only without reasoning.
    pub(super) takes_functions_only_plainly: bool,
}

impl Model {
    pub(crate) fn named(name: &str) -> Model {
        if name.contains("-chat") {
            return Model::default();
        }
        if let Some(rest) = name.strip_prefix('o') {
            let number = rest.split('-').next().unwrap_or_default();
            let is_numbered = number.len() == 1 && number.bytes().all(|byte| byte.is_ascii_digit());
            return Model { reasons: is_numbered, takes_functions_only_plainly: false };
        }
        match name.strip_prefix("gpt-").and_then(version) {
            Some(version) => Model { reasons: version >= (5, 0), takes_functions_only_plainly: version >= (5, 4) },
            None => Model::default(),
        }
    }
}

/// The version that a name begins with: one digit, perhaps a point and a number, and then nothing or a dash.
fn version(rest: &str) -> Option<(u32, u32)> {
    let number = rest.split('-').next()?;
    let (major, minor) = number.split_once('.').unwrap_or((number, "0"));
    let is_one = major.len() == 1;
    is_one.then(|| Some((major.parse().ok()?, minor.parse().ok()?))).flatten()
}

/// Says why a schema isn't strict: every object in it lists all its properties as required and takes no others.
pub(super) fn unfit(schema: &Value) -> Option<String> {
    look(schema, &mut Vec::new())
}

fn look<'s>(schema: &'s Value, path: &mut Vec<&'s str>) -> Option<String> {
    if path.len() > DEPTH_MAX {
        return None;
    }
    let fields = schema.as_object()?;
    let context = |path: &[&str]| {
        let names: Vec<String> = path.iter().map(|name| format!("'{name}'")).collect();
        format!("In context=({})", names.join(", "))
    };
    let is_object =
        |kind: &Value| kind == "object" || kind.as_array().is_some_and(|list| list.iter().any(|it| it == "object"));
    let properties = fields.get("properties").and_then(Value::as_object);
    if fields.get("type").is_some_and(is_object) || properties.is_some() {
        if fields.get("additionalProperties") != Some(&Value::Bool(false)) {
            let what = "'additionalProperties' is required to be supplied and to be false.";
            return Some(format!("{}, {what}", context(path)));
        }
        let required = fields.get("required").and_then(Value::as_array);
        let is_listed = |name: &str| required.is_some_and(|list| list.iter().any(|it| it == name));
        if let Some(name) = properties.and_then(|it| it.keys().find(|name| !is_listed(name))) {
            let what = "'required' is required to be supplied and to be an array including every key in properties.";
            return Some(format!("{}, {what} Missing '{name}'.", context(path)));
        }
    }
    for holder in ["properties", "$defs", "definitions"] {
        for (name, inner) in fields.get(holder).and_then(Value::as_object).into_iter().flatten() {
            if let Some(what) = within(inner, path, &[holder, name]) {
                return Some(what);
            }
        }
    }
    if let Some(what) = fields.get("items").and_then(|inner| within(inner, path, &["items"])) {
        return Some(what);
    }
    let choices = fields.get("anyOf").and_then(Value::as_array).into_iter().flatten();
    choices.into_iter().find_map(|inner| within(inner, path, &["anyOf"]))
}

fn within<'s>(schema: &'s Value, path: &mut Vec<&'s str>, names: &[&'s str]) -> Option<String> {
    let before = path.len();
    path.extend(names);
    let found = look(schema, path);
    path.truncate(before);
    found
}
