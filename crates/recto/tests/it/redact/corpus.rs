//! Texts in which nothing is to be found, though much in them looks like it.

use super::made_up::{ALNUM, BASE64, DIGITS, HEX, letters};
use super::{Redactor, found};
use recto_testkit::shared;
use std::path::Path;

/// The files that hold made-up values on purpose.
const NAMED: [&str; 8] = [
    "crates/recto-cli/tests/it/database.rs",
    "crates/recto-engine/tests/it/postgres.rs",
    "crates/recto/benches/redact.rs",
    "crates/recto/src/redact.rs",
    "crates/recto/tests/it/redact.rs",
    "crates/recto/tests/it/redact/laws.rs",
    "crates/recto/tests/it/redact/measured.rs",
    "crates/recto/tests/it/redact/pages.rs",
];
/// How many secrets may be found in a megabyte of transcripts from which secrets were removed.
const HITS_PER_MEGABYTE_MAX: usize = 1;

#[track_caller]
fn check_nothing(text: &str) {
    assert_eq!(found(&Redactor::all(), text), [], "in {text:?}");
}

#[test]
fn ids_hashes_and_blobs_stay() {
    for seed in 0..50 {
        let hex = |length| letters(length, HEX, seed);
        let uuid = format!("{}-{}-4{}-a{}-{}", hex(8), hex(4), hex(3), hex(3), hex(12));
        for text in [
            uuid.clone(),
            format!("request_token: {uuid}"),
            format!("{{\"id\": \"{uuid}\", \"session_id\": \"{uuid}\"}}"),
            format!("commit {}\nMerge: {} {}", hex(40), hex(7), hex(7)),
            format!("checksum = \"{}\"", hex(64)),
            format!("sha256:{}  file.tar.gz", hex(64)),
            format!("\"integrity\": \"sha512-{}==\"", letters(86, BASE64, seed)),
            format!("data:image/png;base64,{}", letters(5_000, BASE64, seed)),
            format!("<img src=\"data:image/png;base64,{}\">", letters(300, BASE64, seed)),
            format!("toolu_{} call_{} msg_{} req_{}", letters(24, ALNUM, seed), hex(24), hex(24), hex(24)),
            format!("etag: W/\"{}\"", hex(32)),
            format!("next_page_token={}", letters(60, ALNUM, seed)),
            format!("cache_key = \"{}\"; public_key = \"{}\"", hex(32), letters(44, BASE64, seed)),
            format!("https://host.io/a/{}?v={}", hex(32), letters(12, ALNUM, seed)),
            format!("id={}", letters(18, DIGITS, seed)),
        ] {
            check_nothing(&text);
        }
    }
}

#[test]
fn code_and_settings_without_values_stay() {
    for text in [
        "let token = tokens.next().unwrap();",
        "password: string; // at least 8 characters",
        "def login(user: str, password: str = None) -> Token2:",
        "const apiKey = process.env.OPENAI_API_KEY;",
        "api_key = os.environ[\"ANTHROPIC_API_KEY_V2\"]",
        "token: ${{ secrets.GITHUB_TOKEN }}",
        "password=<your-password-1>",
        "password = \"changeme123\"",
        "PASSWORD=xxxxxxxx12345678",
        "secret: \"{{ vault.secret2 }}\"",
        "client_secret: \"your-client-secret-0123456789\"",
        "AWS_ACCESS_KEY_ID=AKIAIOSFODNN7EXAMPLE",
        "export OPENAI_API_KEY=sk-...",
        "sk-xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx",
        "ghp_xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx",
        "max_tokens: 4096, token_count=128000, tokenizer=\"o200k_base\"",
        "secretName: my-app-tls-2024\nsecretKeyRef:\n  key: password",
        "task-list-item sk-fading-circle12 disk-usage-2024-report-final",
        "TOKEN_TYPE_IDENTIFIER2 = TokenKind::Identifier2",
        "if password == other.password1 { return }",
        "--- PASS: TestLoad_Accepts2Keys (0.01s)",
        "PWD=/srv/app2/releases/20240101",
        "npm_config_registry npm_package_dependencies_typescript_eslint",
        "hf_hub_download(repo_id, filename)",
        "Bearer authentication is required for all of these endpoints2",
        "-----BEGIN PRIVATE KEY-----\n...\n-----END PRIVATE KEY-----",
        "starts_with(\"-----BEGIN RSA PRIVATE KEY-----\")",
        "eyJ is how {\" begins: eyJ.eyJ.eyJ",
        "postgres://user:${DB_PASSWORD}@host/db",
    ] {
        check_nothing(text);
    }
}

#[test]
fn numbers_dates_and_versions_stay() {
    for text in [
        "2024-01-02T03:04:05.678901+02:00 2024-01-02 03:04:05 +0000",
        "01/02/2024 10:30, 02-03-2024 11:45, 20240102030405",
        "1700000000 1700000000000 1700000000000000",
        "v1.2.3 10.0.0.1:8080 192.168.100.200/24 1.2.3-rc.4+build.567",
        "+1,234 -5,678 +12345678 @@ -10,7 +10,9 @@",
        "0.1234567890123456 4.111111111111111 -415.555",
        "00 01 02 03 04 05 06 07 08 09 0a 0b 0c 0d 0e 0f",
        "30 09 02 03 01 00 01 ff",
        "4111111111111112 1234567812345670 0000000000000000",
        "DE89370400440532013001 XX82WEST12345698765432",
        "[+51894 (175 files)]",
        "lines 100-200, 415-555, pages 0123-0456",
        "0x1f600 1e10 123_456_789 12:34:56:78",
        "ISBN 978-3-16-148410-0",
        "+262142-12-31",
    ] {
        check_nothing(text);
    }
}

#[test]
fn what_only_looks_like_an_address_stays() {
    for text in [
        "lodash@4.17.21 @types/node@20.1.0 react@next actions/checkout@v4",
        "git@github.com:org/repo.git ssh://git@host.io/x",
        "icon@2x.png getty@tty1.service a @ b.dot(c) x@np.linalg.inv(y)",
        "someone@example.com noreply@company.io me@host.test user@localhost",
        "@app.route @media.print",
    ] {
        check_nothing(text);
    }
}

#[test]
fn in_the_code_of_this_repository_nothing_is_found_but_what_is_named() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let (mut folders, mut files) = (vec![root.join("crates"), root.join("docs")], vec![root.join("Cargo.lock")]);
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).expect("a folder of the repository can be listed").flatten() {
            let path = entry.path();
            let is_text = path.extension().is_some_and(|end| end == "rs" || end == "md" || end == "toml");
            match path.is_dir() {
                true => folders.push(path),
                false => files.extend(is_text.then_some(path)),
            }
        }
    }
    assert!(files.len() > 100, "the repository was read");
    for file in files {
        let text = std::fs::read_to_string(&file).expect("a file of the repository can be read");
        let found = found(&Redactor::all(), &text);
        let is_named = NAMED.iter().any(|name| file == root.join(name));
        assert_eq!(!found.is_empty(), is_named, "{}: {found:?}", file.display());
    }
}

#[test]
fn in_transcripts_without_secrets_hardly_any_are_found() {
    let Some(folder) = shared::folder("data/conversations", "redact") else { return };
    let read = |file: &std::path::PathBuf| std::fs::read_to_string(file).expect("shared data can be read");
    let texts: Vec<String> = shared::jsonl(&folder).iter().map(read).collect();
    let hits: usize = texts.iter().map(|text| Redactor::secrets().spans(text).len()).sum();
    let megabytes = texts.iter().map(String::len).sum::<usize>() / 1_000_000;
    assert!(megabytes > 10 && hits < HITS_PER_MEGABYTE_MAX * megabytes, "{hits} hits in {megabytes} MB");
}
