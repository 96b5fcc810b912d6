//! Mistakes in policy files: each is refused at its place, with what to do about it.

use recto::error::Place;
use recto::{Error, Policy};

/// The text up to the place of the mistake, the rest of it, words of the message, and words of the hint.
type Mistake = (&'static str, &'static str, &'static str, &'static str);

const DESCRIBED: &str = "docs/formats.md";

const TOML: [Mistake; 24] = [
    ("schema_version = 1\nname = 'm'\n", "reduec = []\n", "unknown field `reduec`", "`reduce`"),
    ("schema_version = 1\nname = 'm'\n[select]\n", "sectoins = 'all'\n", "unknown field `sectoins`", "`sections`"),
    ("schema_version = 1\nname = 'm'\n[pins]\n", "word = ['a']\n", "unknown field `word`", "`words`"),
    ("schema_version = 1\nname = 'm'\n[[reduce]]\n", "fit_windwo = {}\n", "unknown field `fit_windwo`", "`fit_window`"),
    (
        "schema_version = 1\nname = 'm'\n[[reduce]]\nkeep_last = 2\n[reduce.",
        "expier]\nafter = 1\n",
        "unknown field `expier`",
        "`expire`",
    ),
    (
        "schema_version = 1\nname = 'm'\n[[reduce]]\n[reduce.fit_window]\n",
        "triger_percent = 90\n",
        "unknown field `triger_percent`",
        "`trigger_percent`",
    ),
    (
        "schema_version = 1\nname = 'm'\n[[reduce]]\ndrop_reasoning = {}\nwhen = { ",
        "over_precent = 90 }\n",
        "unknown variant `over_precent`",
        "`over_percent`",
    ),
    (
        "schema_version = 1\nname = 'm'\n[[reduce]]\nrecent = { messages = 4, grain = ",
        "'mesage' }\n",
        "unknown variant `mesage`",
        "`message`",
    ),
    ("schema_version = 1\nname = 'm'\n[select]\nstatus = ", "'exclud'\n", "unknown variant `exclud`", "`exclude`"),
    (
        "schema_version = 1\nname = 'm'\n[select]\ntrace = ",
        "'curent_run'\n",
        "unknown variant `curent_run`",
        "`current_run`",
    ),
    ("schema_version = 1\nname = 'm'\n[select]\nsections = ", "'rankd'\n", "unknown variant `rankd`", "`ranked`"),
    ("schema_version = 1\nname = ", "7\n", "invalid type: integer `7`", DESCRIBED),
    ("schema_version = 1\nname = 'm'\nreduce = ", "'expire'\n", "invalid type: string", DESCRIBED),
    (
        "schema_version = 1\nname = 'm'\n[[reduce]]\n[reduce.cap_output]\nchars = ",
        "-5\n",
        "invalid value: integer `-5`",
        DESCRIBED,
    ),
    (
        "schema_version = 1\nname = 'm'\n[[reduce]]\ntoken_limit = ",
        "{ slack = 1 }\n",
        "missing field `tokens`",
        DESCRIBED,
    ),
    (
        "schema_version = 1\nname = 'm'\n[[reduce]]\nfit_window = {}\n",
        "recent = { messages = 3 }\n",
        "names two passes: fit-window and recent",
        "one pass",
    ),
    ("schema_version = 1\nname = 'm'\n", "[[reduce]]\nkeep_last = 3\n", "names no pass", "one pass"),
    (
        "schema_version = 1\nname = 'm'\n[[reduce]]\ndrop_reasoning = {}\n[[reduce]]\nfit_window = { target_percent = ",
        "90, trigger_percent = 80 }\n",
        "fit_window: trigger_percent 80, target_percent 90",
        "must not lie above the trigger",
    ),
    (
        "schema_version = 1\nname = 'm'\n[[reduce]]\n[reduce.expire]\nafter = 4\naction = { first_chars = ",
        "0 }\n",
        "expire: first_chars is 0",
        "how many characters",
    ),
    (
        "schema_version = 1\nname = 'm'\n[select]\nsections = ['summary', 'messages', ",
        "'summary']\n",
        "selects section summary twice",
        "once",
    ),
    ("schema_version = ", "2\nname = 'm'\nfuture = true\n", "schema_version 2", "reads schema_version 1"),
    ("schema_version = 1\nname = \"m", "\n", "invalid basic string", DESCRIBED),
    ("schema_version = 1\nname = 'm'\n[select", "\nstatus = 'note'\n", "unclosed table", DESCRIBED),
    ("schema_version = 1\nname = 'm'\n", "name = 'n'\n", "duplicate key", "once"),
];

const JSON: [Mistake; 23] = [
    ("{\"schema_version\":1,\n ", "\"nmae\":\"m\"}", "unknown field `nmae`", "`name`"),
    (
        "{\"schema_version\":1,\"name\":\"m\",\n\"select\":{",
        "\"staus\":\"note\"}}",
        "unknown field `staus`",
        "`status`",
    ),
    ("{\"schema_version\":1,\"name\":\"m\",\n\"pins\":{", "\"longst\" : 5}}", "unknown field `longst`", "`longest`"),
    ("{\"schema_version\":1,\"name\":\"é\",\"reduce\":[{", "\"recnet\":{}}]}", "unknown field `recnet`", "`recent`"),
    (
        "{\"schema_version\":1,\"name\":\"m\",\"reduce\":[\n{\"expire\":{\"after\":1,\"action\":",
        "\"remvoe\"}}]}",
        "unknown variant `remvoe`",
        "`remove`",
    ),
    (
        "{\"schema_version\":1,\"name\":\"m\",\"reduce\":[\n{\"drop_images\":{",
        "\"kep\":1}}]}",
        "unknown field `kep`",
        "`keep`",
    ),
    (
        "{\"schema_version\":1,\"name\":\"m\",\"reduce\":[\n{\"drop_reasoning\":{},\"sparing\":",
        "\"error\"}]}",
        "unknown variant `error`",
        "`errors`",
    ),
    (
        "{\"schema_version\":1,\"name\":\"m\",\"reduce\":[\n{\"fit_window\":{\"grain\":",
        "\"exchang\"}}]}",
        "unknown variant `exchang`",
        "`exchange`",
    ),
    (
        "{\"schema_version\":1,\"name\":\"m\",\"select\":{\"authors\":",
        "\"nmaed\"}}",
        "unknown variant `nmaed`",
        "`named`",
    ),
    ("{\"schema_version\":1,\"name\":\"m\",\"select\":{\"trace\":", "\"al\"}}", "unknown variant `al`", "`all`"),
    ("{\"schema_version\":1,\"name\":", "[\"m\"]}", "invalid type: sequence", DESCRIBED),
    (
        "{\"schema_version\":1,\"name\":\"m\",\"select\":{\"sections\":",
        "{\"all\":true}}}",
        "invalid type: map",
        DESCRIBED,
    ),
    (
        "{\"schema_version\":1,\"name\":\"m\",\"reduce\":[{\"recent\":{\"messages\":",
        "-1}}]}",
        "invalid value: integer `-1`",
        DESCRIBED,
    ),
    (
        "{\"schema_version\":1,\"name\":\"m\",\"reduce\":[{\"recent\":",
        "{\"slack\":2}}]}",
        "missing field `messages`",
        DESCRIBED,
    ),
    ("", "{\"schema_version\":1}", "missing field `name`", DESCRIBED),
    (
        "{\"schema_version\":1,\"name\":\"m\",\"reduce\":[\n{\"drop_reasoning\":{}},\n{\"recent\":{\"messages\":3},",
        "\"drop_images\":{\"keep\":1}}\n]}",
        "names two passes: recent and drop-images",
        "one pass",
    ),
    (
        "{\"schema_version\":1,\"name\":\"m\",\"reduce\":[\n{\"drop_reasoning\":{}},\n",
        "{\"until_fits\":true},\n{\"fit_window\":{}}]}",
        "names no pass",
        "one pass",
    ),
    (
        "{\"schema_version\":1,\"name\":\"m\",\"reduce\":[\n{\"fit_window\":{\"trigger_percent\":",
        "101}}]}",
        "fit_window: trigger_percent 101",
        "at most 100",
    ),
    (
        "{\"schema_version\":1,\"name\":\"m\",\"reduce\":[\n{\"keep_last\":1,\"cap_output\":{\"chars\": ",
        "0}}]}",
        "cap_output: chars is 0",
        "how many characters",
    ),
    (
        "{\"schema_version\":1,\"name\":\"m\",\"reduce\":[\n{\"recent\":{\"slack\":0,\"messages\":",
        "0}}]}",
        "recent: messages is 0",
        "how many messages",
    ),
    ("{\"name\":\"m\",\n \"schema_version\": ", "3}", "schema_version 3", "reads schema_version 1"),
    ("{\"schema_version\":1,\"name\":\"m\",", "\"name\":\"n\"}", "duplicate field `name`", "once"),
    ("{\"schema_version\":1,\"name\":\"", "m", "EOF while parsing a string", DESCRIBED),
];

fn check(read: fn(&str) -> Result<Policy, Error>, mistakes: &[Mistake]) {
    for (before, rest, what, hint) in mistakes {
        let text = format!("{before}{rest}");
        let Err(error) = read(&text) else { panic!("it was taken:\n{text}") };
        let line = before.split('\n').count();
        let column = before.rsplit('\n').next().unwrap_or_default().chars().count() + 1;
        assert_eq!(error.place(), Some(Place { line, column }), "{error:?} in:\n{text}");
        assert!(error.to_string().contains(what), "no {what:?} in {error:?}");
        assert!(error.hint().is_some_and(|it| it.contains(hint)), "no {hint:?} in {error:?}");
        assert!(!error.to_string().contains('\n'), "{error:?}");
    }
}

#[test]
fn mistakes_in_toml_are_refused_at_their_place() {
    check(Policy::from_toml, &TOML);
}

#[test]
fn mistakes_in_json_are_refused_at_their_place() {
    check(Policy::from_json, &JSON);
}

#[test]
fn a_document_of_any_form_is_refused_without_panic() {
    let whole = serde_json::to_string_pretty(&Policy::first_chars()).unwrap();
    let texts = ["", "{", "[]", "{{", "}", "\"", "{\"a\"", "{\"é\": [", "[[[]", "null", "{\"reduce\":[[{}]]}"];
    let cut = (0..whole.len()).map(|end| &whole[..end]);
    for text in texts.into_iter().chain(cut) {
        let error = Policy::from_json(text).unwrap_err();
        assert!(error.place().is_some() && error.hint().is_some(), "{error:?}");
        // JSON that breaks off is no TOML either, but for the empty text.
        Policy::from_toml(text).unwrap_err();
    }
    let toml = Policy::first_chars().to_toml();
    for end in 0..toml.len() {
        drop(Policy::from_toml(&toml[..end]));
    }
}

fn described() -> String {
    std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/formats.md")).unwrap()
}

#[test]
fn the_example_in_the_documentation_is_a_policy() {
    let page = described();
    let (_, example) = page.split_once("```toml\n").unwrap();
    let (example, _) = example.split_once("```").unwrap();
    let policy = Policy::from_toml(example).unwrap();
    assert_eq!((&*policy.name, policy.reduce.len()), ("mine", 2));
    assert_eq!(Policy::from_toml(&policy.to_toml()).unwrap(), policy);
    let json = serde_json::to_string(&policy).unwrap();
    assert_eq!(Policy::from_json(&json).unwrap(), policy);
    assert_eq!(policy.reduce[1], Policy::safe().reduce[0]);
}

#[test]
fn the_example_of_blocks_in_the_documentation_is_a_policy() {
    let page = described();
    let (_, example) = page.split_once("### Blocks").unwrap().1.split_once("```toml\n").unwrap();
    let policy = Policy::from_toml(example.split_once("```").unwrap().0).unwrap();
    assert_eq!(
        policy.blocks.iter().map(|block| block.name()).collect::<Vec<_>>(),
        ["identity", "profile", "shared_memory", "hours", "this_moment"]
    );
    assert_eq!(Policy::from_toml(&policy.to_toml()).unwrap(), policy);
}

/// What may stand where something else stands is in the message; so no key can be forgotten.
#[test]
fn the_documentation_names_every_key_and_word() {
    let page = described();
    let passes = [
        "excerpt",
        "expire",
        "fold",
        "fit_window",
        "token_limit",
        "recent",
        "drop_reasoning",
        "cap_output",
        "drop_images",
    ];
    let step = |inner: String| format!("\"reduce\":[{{{inner}}}]");
    let mut wrong = vec!["\"zz\":1".to_string(), step("\"zz\":1".into())];
    let repeats = ["identical", "superseded", "similar", "irrelevant"];
    wrong.extend(repeats.map(|pass| step(format!("\"{pass}\":{{\"zz\":1}}"))));
    wrong.push(step("\"superseded\":{\"rules\":[{\"zz\":1}]}".into()));
    wrong.push(step("\"superseded\":{\"rules\":[{\"does\":\"zz\"}]}".into()));
    wrong.extend(passes.map(|pass| step(format!("\"{pass}\":{{\"zz\":1}}"))));
    wrong.extend(["select", "pins", "patience", "prompts"].map(|table| format!("\"{table}\":{{\"zz\":1}}")));
    wrong.extend(["sections", "status", "trace", "authors"].map(|key| format!("\"select\":{{\"{key}\":\"zz\"}}")));
    wrong.extend(["when", "sparing"].map(|key| step(format!("\"{key}\":\"zz\""))));
    wrong.extend(["full", "resumed"].map(|key| format!("\"prompts\":{{\"{key}\":\"zz\"}}")));
    wrong.push("\"stale\":\"zz\"".into());
    wrong.push(step("\"expire\":{\"action\":\"zz\"}".into()));
    wrong.push(step("\"recent\":{\"grain\":\"zz\"}".into()));
    let block = |inner: &str| format!("\"blocks\":[{{{inner}}}]");
    wrong.extend(["\"zz\":1", "\"role\":\"zz\"", "\"stability\":\"zz\"", "\"priority\":\"zz\""].map(block));
    let kinds = ["identity", "capabilities", "shared_memory", "profile", "mood", "todos", "template"];
    wrong.extend(kinds.map(|kind| block(&format!("\"{kind}\":{{\"zz\":1}}"))));
    wrong.push(block("\"shared_memory\":{\"merge\":\"zz\"}"));
    wrong.push(block("\"capabilities\":{\"detail\":\"zz\"}"));
    wrong.push("\"forged\":\"zz\"".into());
    let mut words = 0;
    for wrong in wrong {
        let told = Policy::from_json(&format!("{{{wrong}}}")).unwrap_err().to_string();
        assert!(told.contains("unknown "), "{told}");
        for word in told.split('`').skip(1).step_by(2).filter(|word| *word != "zz") {
            let is_named = page.split(|c: char| !c.is_alphanumeric() && c != '_').any(|it| it == word);
            assert!(is_named, "docs/formats.md doesn't name {word:?}");
            words += 1;
        }
    }
    assert!(words > 50, "only {words}");
}
