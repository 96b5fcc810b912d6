use crate::run::{Folder, Ran, SMALL, command, fails, mentions, recto, recto_reading, succeeds};
use recto::target::Catalogue;
use serde_json::Value;

fn json(args: &[&str]) -> Value {
    let ran = succeeds(&[&["models", "--json"], args].concat());
    serde_json::from_str(&ran.stdout).unwrap()
}

/// Runs on another day.
fn on(day: &str, args: &[&str]) -> Ran {
    let ran = Ran::from(command(args).env("RECTO_TODAY", day).output().unwrap());
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    ran
}

#[test]
fn every_known_model_is_listed() {
    let ran = succeeds(&["models"]);
    assert_eq!(ran.stderr, "");
    let listed = json(&[]);
    let models = listed["models"].as_array().unwrap();
    let names: Vec<&str> = Catalogue::built_in().names().collect();
    assert_eq!(models.len(), names.len());
    for (model, name) in models.iter().zip(names) {
        assert_eq!(
            (&model["name"], &model["origin"], &model["known"]),
            (&name.into(), &"built_in".into(), &true.into())
        );
        assert!(ran.stdout.lines().any(|line| line.starts_with(&format!("{name} "))), "{name}");
        assert_eq!(json(&[name]), *model);
    }
    let row = ran.stdout.lines().find(|line| line.starts_with("claude-sonnet-5-5 ")).unwrap();
    mentions(
        row,
        &["anthropic", "1 000 000", "128 000", "0.1", "2.5", "×1.5, ×2.2", "512", "reasoning bound to its prefix"],
    );
    let row = ran.stdout.lines().find(|line| line.starts_with("gpt-5.2 ")).unwrap();
    mentions(row, &["openai_responses", "400 000", "1.75", "0.175", "14", "exact", "1 024", "input at most 272 000"]);
    assert!(!row.contains("bound"), "{row}");
    mentions(&ran.stdout, &["read off on ", Catalogue::built_in().as_of()]);
}

#[test]
fn one_model_is_told_fact_by_fact() {
    let ran = succeeds(&["models", "claude-haiku-5-5"]);
    assert_eq!(ran.stderr, "");
    mentions(
        &ran.stdout,
        &["claude-haiku-5-5\n", "1 000 000 tokens\n", "input 0.1, cached 0.01, written to the cache 0.125"],
    );
    mentions(&ran.stdout, &["above 100 000 of input", "from 512 tokens on", "bound to its prefix", "built in\n"]);
    mentions(&succeeds(&["models", "claude-opus-5"]).stdout, &["reads reasoning of", "claude-opus-4*"]);
    let ran = succeeds(&["models", "claud-opus-5"]);
    mentions(&ran.stderr, &["nothing is known about model \"claud-opus-5\"", "claude-opus-5"]);
    mentions(&ran.stdout, &["32 000 tokens", "nobody: they are assumed"]);
    assert_eq!(json(&["claud-opus-5"])["known"], false);
}

#[test]
fn a_file_adds_and_corrects_and_its_changes_are_told() {
    let folder = Folder::new();
    let toml = "as_of = '2026-11-01'\n[models.\"gpt-5.2\"]\nwindow = 500_000\n\
                prices = { input = 2, cached = 0.2, output = 14 }\n[models.mine]\nlike = 'gpt-5.2'\noutput_max = 9\n";
    let toml = folder.file("mine.toml", toml);
    let same = r#"{"models": {"mine": {"output_max": 10}}}"#;
    let same = folder.file("more.json", same);
    let ran = succeeds(&["models", "--from", &toml, "--from", &same]);
    mentions(&ran.stdout, &[&format!("{toml} changes:\n  gpt-5.2: prices.as_of 2026-11-15 → 2026-11-01; ")]);
    mentions(&ran.stdout, &["prices.input 1.75 → 2.0", "window 400000 → 500000\n  mine: new\n"]);
    mentions(&ran.stdout, &[&format!("{same} changes:\n  mine: output_max 9 → 10\n"), "\nmine "]);
    let all = json(&["--from", &toml, "--from", &same]);
    let mine = all["models"].as_array().unwrap().iter().find(|it| it["name"] == "mine").unwrap();
    assert_eq!(
        (&mine["window"], &mine["output_max"], &mine["file"]),
        (&500_000.into(), &10.into(), &same.as_str().into())
    );
    assert_eq!(all["changes"][0]["models"][1]["is_new"], true);
    assert_eq!(all["changes"][1]["models"][0]["facts"][0]["before"], 9);
    let one = succeeds(&["models", "mine", "--from", &toml, "--from", &same]).stdout;
    mentions(&one, &["500 000 tokens", "10 tokens", "2026-11-01", &format!("\n{same}:\n  mine: output_max 9 → 10\n")]);
    let nothing = folder.file("nothing.toml", "");
    mentions(&succeeds(&["models", "--from", &nothing]).stdout, &["nothing.toml changes nothing\n"]);
    let ran = recto_reading("[models.piped]\nwindow = 7", &["models", "piped", "--from", "-"]);
    mentions(&ran.stdout, &["7 tokens", "stdin, and what is built in"]);
}

#[test]
fn files_that_cannot_be_used_are_told_with_their_place() {
    let folder = Folder::new();
    for (content, words) in [
        ("[models.m]\nwindwo = 1", &["line 2, column 1", "unknown field `windwo`", "did you mean \"window\"?"][..]),
        ("[models.m]\nwindow = 'x'", &["line 2, column 10", "invalid type"]),
        ("[models.m\n", &["line 1, column "]),
        ("{\"models\": {\"m\":\n {\"wire\": \"x\"}}}", &["line 2, column ", "unknown variant `x`"]),
        ("{\"models\": ", &["line 1, column "]),
        ("[models.m]\nlike = 'gpt-99'", &["model \"m\" is like \"gpt-99\", which leads nowhere", "hint: "]),
        ("[models.m]\nlike = 'm'", &["leads nowhere"]),
        ("[models.m]\nfactor = 0.0", &["model \"m\" can't be counted by a factor of 0"]),
        ("[models.eval]\nwindow = 1", &["model \"eval\" is what it is"]),
    ] {
        let file = folder.file("own", content);
        let told = fails(3, &["models", "--from", &file]);
        mentions(&told, &["error[R0324]: cannot use models of "]);
        mentions(&told, words);
    }
    mentions(&fails(1, &["models", "--from", &folder.at("gone.toml")]), &["cannot read", "gone.toml"]);
    mentions(&fails(3, &["models", "--from", folder.path.to_str().unwrap()]), &["is a folder"]);
}

#[test]
fn stale_prices_are_said_once() {
    let folder = Folder::new();
    let chat = folder.file("chat.json", SMALL);
    assert_eq!(on("2027-02-13", &["explain", &chat]).stderr, "", "90 days are not too many");
    for command in ["compile", "explain", "replay"] {
        let told = on("2027-02-14", &[command, &chat]).stderr;
        let warning = "warning: prices of gpt-4o were read off on 2026-11-15, 91 days ago, and may have changed\n";
        assert_eq!(told.matches(warning).count(), 1, "{told}");
        assert!(!on("2027-02-14", &[command, &chat, "--for", "eval"]).stderr.contains("warning"));
    }
    let listed = on("2027-02-14", &["models"]);
    mentions(&listed.stderr, &["more than 90 days ago, and may have changed: ", " more\n"]);
    let listed: Value = serde_json::from_str(&on("2027-02-14", &["models", "--json"]).stdout).unwrap();
    assert!(listed["models"].as_array().unwrap().iter().all(|it| (it["stale_days"] == 91) == (it["name"] != "eval")));
    mentions(&on("2027-02-14", &["models", "gpt-4o"]).stderr, &["prices of gpt-4o were read off"]);
    // Newer prices of one's own are not stale.
    let own = "[models.\"gpt-4o\"]\nprices = { input = 1, cached = 1, output = 1, as_of = '2027-02-01' }";
    let own = folder.file("recto.toml", own);
    assert_eq!(on("2027-02-14", &["explain", &chat, "--config", &own]).stderr, "");
}

#[test]
fn names_in_files_do_not_steer_the_terminal() {
    let folder = Folder::new();
    let odd = folder.file("odd.toml", "[models.\"\\u001b[31m\"]\nprovider = \"\\u001b[32m\"");
    for args in [&["models", "--from", &odd][..], &["models", "\u{1b}[31m", "--from", &odd]] {
        let ran = recto(args);
        assert_eq!(ran.code, Some(0));
        assert!(!ran.stdout.contains('\u{1b}') && !ran.stderr.contains('\u{1b}'), "{:?}", ran.stdout);
    }
}

#[test]
fn the_help_names_keys_that_there_are() {
    let folder = Folder::new();
    let help = succeeds(&["help", "models"]).stdout;
    let (_, example) = help.split_once("recto.toml takes the same tables:\n").unwrap();
    let (example, _) = example.split_once("docs/formats.md").unwrap();
    let file = folder.file("example.toml", example);
    mentions(&succeeds(&["models", "--from", &file]).stdout, &["example.toml changes:\n  my-model: new"]);
}

#[test]
fn the_page_of_formats_tells_of_every_key() {
    let folder = Folder::new();
    let told = fails(3, &["models", "--from", &folder.file("x.toml", "[models.m]\nx = 1")]);
    let (_, listed) = told.split_once("expected one of ").unwrap();
    let (listed, _) = listed.split_once('\n').unwrap();
    let page = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/formats.md")).unwrap();
    let (_, section) = page.split_once("\n## Models\n").unwrap();
    let (section, _) = section.split_once("\n## ").unwrap();
    let keys: Vec<&str> = listed.split(", ").collect();
    assert!(keys.len() > 20, "{keys:?}");
    mentions(section, &keys);
    let unknown = recto::calibration::Calibration::unknown();
    mentions(section, &[&format!("`factor`, `worst_factor` | {}, {} |", unknown.factor, unknown.worst)]);
    let example = section.split_once("```toml\n").unwrap().1.split_once("```").unwrap().0;
    let file = folder.file("example.toml", example);
    mentions(&succeeds(&["models", "--from", &file]).stdout, &["example.toml changes:\n  house-large: new"]);
}
