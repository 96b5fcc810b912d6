//! Providers and programs in `recto.toml`.

use crate::config::{Places, check};
use crate::run::mentions;
use expect_test::expect;

#[test]
fn providers_and_programs_are_told_with_where_they_come_from() {
    let places = Places::new();
    let far = "[upstream.openai]\nretries = 0\nkey_env = 'MY_KEY'\n[programs.codex]\nmodel = 'gpt-5.5'\npath = 'codex'";
    let near = "[upstream.home]\nurl = 'http://localhost:11434/v1'\nwire = 'openai_chat'\nmodels = ['llama-*', 'qwen*']\n\
                [programs.codex]\nmodel = 'gpt-5.4'\n[upstream.openai]\nremember = 'response'";
    places.folder.file("user/recto/recto.toml", far);
    places.folder.file("project/recto.toml", near);
    let told = places.settings(&[]);
    let names: Vec<&str> = told["upstream"].as_array().unwrap().iter().map(|it| it["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["home", "openai", "anthropic", "google", "ollama"]);
    let openai = &told["upstream"][1];
    let values = ["url", "wire", "key_env", "remember", "retries"].map(|key| openai[key].to_string()).join(" ");
    let expected = r#""https://api.openai.com/v1" "openai_responses" "MY_KEY" "response" 0"#;
    assert_eq!(values, expected, "the nearer file wins key by key, and what none says is built in");
    assert_eq!((&openai["origin"], &openai["line"]), (&"file".into(), &7.into()));
    assert_eq!(told["upstream"][2]["origin"], "default");
    let codex = &told["programs"][1];
    assert_eq!((&codex["name"], &codex["model"]), (&"codex".into(), &"gpt-5.4".into()));
    assert!(codex["path"].as_str().unwrap().ends_with("user/recto/codex"), "relative to the file that names it");
    let shown = places.run(&["config"]).stdout;
    mentions(&shown, &["home ", "http://localhost:11434/v1", "llama-*, qwen*", "MY_KEY", "of anthropic"]);
    mentions(&shown, &["  claude_code  looked for on PATH; its own model; a turn at most 3600 s", "model gpt-5.4"]);
}

#[test]
fn headers_of_providers_are_told_by_their_names_alone() {
    let places = Places::new();
    let text = "[upstream.openai]\nclient_key = 'pass'\nforward_timeout_seconds = 60\n[upstream.openai.headers]\n\
                OpenAI-Organization = 'org-secret'\nx-team = 'team-secret'";
    places.folder.file("project/recto.toml", text);
    let told = places.settings(&[]);
    let openai = &told["upstream"][0];
    assert_eq!(openai["headers"].to_string(), r#"["openai-organization","x-team"]"#);
    assert_eq!((&openai["client_key"], &openai["forward_timeout_seconds"]), (&"pass".into(), &60.into()));
    assert!(told["upstream"][1]["client_key"].is_null());
    assert!(!format!("{told} {}", places.run(&["config"]).stdout).contains("secret"));
    check(
        "[upstream.openai.headers]\nx-team = 7",
        expect![[r#"
            error[R0332]: cannot use own.toml
            cause: line 2, column 10: x-team is an integer
            hint: expected a string
        "#]],
    );
    check(
        "[upstream.openai]\nclient_key = 'replaced'",
        expect![[r#"
            error[R0332]: cannot use own.toml
            cause: line 2, column 14: client_key can't be "replaced"
            hint: did you mean "replace"?
            hint: expected one of: pass, replace
        "#]],
    );
}

#[test]
fn mistakes_in_providers_are_told_with_their_place() {
    check(
        "[upstream.mine]\nurl = 'https://example.com/v1'\nwire = 'openai_chat'\nkey = 'sk-1'",
        expect![[r#"
        error[R0331]: cannot use own.toml
        cause: line 4, column 1: unknown key "key" in [upstream.mine]
        hint: known keys of [upstream.mine]: url, wire, key_env, client_key, headers, remember, ca, models, plain_http, timeout_seconds, forward_timeout_seconds, retries
    "#]],
    );
    check(
        "[upstream.mine]\nkey_env = 'sk-secret-1'",
        expect![[r#"
        error[R0332]: cannot use own.toml
        cause: line 2, column 11: key_env is not the name of a variable
        hint: put the key into a variable of the environment, and the name of that variable here
    "#]],
    );
    check(
        "[upstream.mine]\nurl = 'https://example.com/v1'",
        expect![[r#"
        error[R0332]: cannot use own.toml
        cause: line 1, column 11: upstream "mine" has no wire
        hint: give the format that it speaks, one of: openai_chat, openai_responses, anthropic, gemini, ollama
    "#]],
    );
    check(
        "\n[upstream.mine]\nwire = 'anthropic'",
        expect![[r#"
        error[R0332]: cannot use own.toml
        cause: line 2, column 11: upstream "mine" has no url
        hint: give what the provider documents as its base URL
    "#]],
    );
    check(
        "[upstream.openai]\nremember = 'respones'",
        expect![[r#"
        error[R0332]: cannot use own.toml
        cause: line 2, column 12: remember can't be "respones"
        hint: did you mean "response"?
        hint: expected one of: no, response, conversation
    "#]],
    );
    check(
        "[upstream.anthropic]\nremember = 'response'",
        expect![[r#"
        error[R0332]: cannot use own.toml
        cause: line 2, column 12: remember can't be "response" with wire "anthropic"
        hint: only openai_responses keeps the history
    "#]],
    );
}

#[test]
fn values_of_providers_have_their_kinds_and_bounds() {
    check(
        "[upstream.openai]\nretries = 11",
        expect![[r#"
        error[R0332]: cannot use own.toml
        cause: line 2, column 11: retries can't be 11
        hint: expected a number from 0 to 10
    "#]],
    );
    check(
        "[upstream.openai]\ntimeout_seconds = '9'",
        expect![[r#"
        error[R0332]: cannot use own.toml
        cause: line 2, column 19: timeout_seconds is a string
        hint: expected a number from 1 to 86400
    "#]],
    );
    check(
        "[upstream.openai]\nmodels = 'gpt-*'",
        expect![[r#"
        error[R0332]: cannot use own.toml
        cause: line 2, column 10: models is a string
        hint: expected an array of strings
    "#]],
    );
    check(
        "[upstream.openai]\nmodels = ['a', 7]",
        expect![[r#"
        error[R0332]: cannot use own.toml
        cause: line 2, column 16: an item of models is an integer
        hint: expected a string
    "#]],
    );
    check(
        "[upstream.openai]\nplain_http = 1",
        expect![[r#"
        error[R0332]: cannot use own.toml
        cause: line 2, column 14: plain_http is an integer
        hint: expected true or false
    "#]],
    );
    check(
        "[upstream]\nopenai = 'x'",
        expect![[r#"
        error[R0332]: cannot use own.toml
        cause: line 2, column 10: upstream.openai is a string
        hint: expected a table: [upstream.openai]
    "#]],
    );
}

#[test]
fn mistakes_in_programs_are_told_with_their_place() {
    check(
        "[programs.claud_code]\nmodel = 'x'",
        expect![[r#"
        error[R0331]: cannot use own.toml
        cause: line 1, column 11: unknown program "claud_code"
        hint: did you mean "claude_code"?
        hint: known: claude_code, codex
    "#]],
    );
    check(
        "[programs.codex]\nmodell = 'x'",
        expect![[r#"
        error[R0331]: cannot use own.toml
        cause: line 2, column 1: unknown key "modell" in [programs.codex]
        hint: did you mean "model"?
        hint: known keys of [programs.codex]: path, model, arguments, turn_limit_seconds, silence_limit_seconds
    "#]],
    );
    check(
        "[programs.codex]\narguments = '-c'",
        expect![[r#"
        error[R0332]: cannot use own.toml
        cause: line 2, column 13: arguments is a string
        hint: expected an array of strings
    "#]],
    );
    check(
        "[programs.codex]\nturn_limit_seconds = 0",
        expect![[r#"
        error[R0332]: cannot use own.toml
        cause: line 2, column 22: turn_limit_seconds can't be 0
        hint: expected a number from 1 to 86400
    "#]],
    );
}
