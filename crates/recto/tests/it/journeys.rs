//! One log, any brain: sessions of other programs compile for every provider.

use recto::receipt::Fate;
use recto::transcript::{self, Conversation};
use recto::{Log, Policy, Reader, Request, Role, Target, Tokenizer, compile_once};
use recto_testkit::fake::{self, Api};
use recto_testkit::shared;
use std::path::{Path, PathBuf};

fn files(folder: &Path) -> Vec<PathBuf> {
    let mut files: Vec<PathBuf> = std::fs::read_dir(folder).unwrap().map(|it| it.unwrap().path()).collect();
    files.retain(|file| file.extension().is_some_and(|it| it == "jsonl"));
    files.sort();
    files
}

fn conversations(file: &Path) -> Vec<Conversation> {
    let text = std::fs::read_to_string(file).unwrap();
    transcript::read(&text).unwrap_or_else(|error| panic!("{}: {error}", file.display()))
}

/// Compiles a conversation for a model, at several places of it, and has the body judged.
fn compiles_for(conversation: &Conversation, model: &str, name: &str) -> usize {
    let target = Target::named(model).unwrap();
    let log: Log = conversation.clone().into_log(Tokenizer::O200k).unwrap();
    let (reader, policy) = (Reader::new("main"), Policy::safe());
    let ends: Vec<_> = log.back_by(Role::User).map(|entry| entry.seq).take(3).chain(log.head()).collect();
    let mut left_behind = 0;
    for end in ends {
        let log = log.until(Some(end));
        let compiled = compile_once(&Request::new(&log, &reader, &policy, &target)).unwrap();
        let body = target.wire.encode(&compiled.page, &target);
        assert_eq!(target.wire.validate(&body), [], "{name} for {model}");
        fake::check(Api::of(target.wire), &body).unwrap_or_else(|refusal| panic!("{name} for {model}: {refusal:?}"));
        let rows = compiled.receipt.fates.iter();
        left_behind += rows
            .filter(|row| {
                row.fate == Fate::Changed && (&*row.by == "bind" || row.why.to_string().contains("reasoning"))
            })
            .count();
    }
    left_behind
}

#[test]
fn sessions_of_claude_code_compile_for_every_wire() {
    let Some(folder) = shared::folder("data/raw/claude-code", "Claude Code sessions for every provider") else {
        return;
    };
    let (mut seen, mut left_behind) = (0, 0);
    for file in files(&folder) {
        for conversation in conversations(&file) {
            for model in ["gpt-4o", "gpt-6-sol", "claude-opus-5-5", "claude-opus-4-8", "gemini-3.8-flash"] {
                left_behind += compiles_for(&conversation, model, &file.display().to_string());
            }
            seen += 1;
        }
    }
    assert!(seen >= 8, "only {seen} sessions");
    assert!(left_behind > 0, "no receipt names reasoning that stayed behind");
}

#[test]
fn sessions_of_codex_compile_for_anthropic() {
    let Some(folder) = shared::folder("data/raw/codex-rollout", "Codex sessions for Anthropic") else { return };
    for file in files(&folder) {
        for conversation in conversations(&file) {
            for model in ["claude-opus-5-5", "claude-haiku-4-5", "gpt-5.2"] {
                compiles_for(&conversation, model, &file.display().to_string());
            }
        }
    }
}
