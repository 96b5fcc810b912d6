//! `recto convert`: a conversation in another format.

use crate::args::ConvertArgs;
use crate::clock::{self, Moment};
use crate::config::{Config, Origin, Set};
use crate::draft::Draft;
use crate::failure::{Failure, cannot_read};
use crate::models::Assumed;
use crate::settings::{self, Found, MODEL};
use crate::{body, source, talk};
use recto::Target;
use recto::digest::Digest;
use recto::entry::Entry;
use recto::receipt::Warning;
use recto::transcript::{Conversation, Format, Session, Written};
use recto::wire::Wire;
use std::path::{Path, PathBuf};
use std::{env, fs, path};

/// Writes a conversation in the format that was asked for.
pub(crate) fn run(args: &ConvertArgs, config: &Config) -> Result<(), Failure> {
    let all = source::conversations(&args.file)?;
    let picked = source::pick(all, args.conversation.as_deref(), &args.file)?;
    let target = target(args, config)?;
    let session = session(args, &picked.conversation.entries)?;
    source::note_replaced(&args.file, &picked.conversation);
    let Written { bytes: mut written, left_out, warnings } = written(args.to, picked.conversation, &target, &session)?;
    if !written.ends_with(b"\n") {
        written.push(b'\n');
    }
    match args.output.as_deref().filter(|place| !source::is_stdin(place)) {
        None => talk::data(&written)?,
        Some(place) => {
            source::check_apart(place, std::slice::from_ref(&args.file), "write to another file")?;
            let mut draft = Draft::of(place)?;
            draft.write(&written)?;
            draft.finish()?;
        }
    }
    left_out.iter().for_each(|what| talk::note(&format!("warning: {what}")));
    warnings.iter().for_each(|warning| talk::note(&format!("warning: {warning}")));
    if let Some(place) = place_of(args.to, &session) {
        talk::note(&place);
    }
    Ok(())
}

/// Writes it, and says on stderr what has no place in the format.
fn written(to: Format, conversation: Conversation, target: &Target, session: &Session) -> Result<Written, Failure> {
    let failed = |error: recto::Error| Failure::from(error).during(format!("cannot be written as {to}"));
    let Format::Wire(wire) = to else {
        if !conversation.tools.is_empty() {
            let tools = conversation.tools.len();
            talk::note(&format!("warning: {to} has no place for definitions of tools; {tools} were left out"));
        }
        return to.write(conversation, target, session).map_err(failed);
    };
    body::note_left_out(conversation.asked.as_ref(), wire);
    let mut without = conversation.clone();
    let has_fields = without.asked.as_ref().is_some_and(|asked| asked.wire == wire && !asked.extra.is_empty());
    without.asked.iter_mut().for_each(|asked| asked.extra.clear());
    let is_valid_without = || {
        let written = to.write(without.clone(), target, session);
        has_fields && written.is_ok_and(|written| wire.validate(&written.bytes).is_empty())
    };
    let mut written = to.write(conversation, target, session).map_err(failed)?;
    // How its tokens are counted matters to nobody who gets all of it.
    written.warnings.retain(|warning| !matches!(warning, Warning::CountedBy { .. }));
    Ok(Written { bytes: body::checked(written.bytes, wire, is_valid_without)?, ..written })
}

/// The model that a request is for: the one that is named; else the configured one if it speaks the format.
fn target(args: &ConvertArgs, config: &Config) -> Result<Target, Failure> {
    let wire = match args.to {
        Format::Wire(wire) => wire,
        Format::Recto | Format::ClaudeCode | Format::Codex => Wire::OpenaiChat,
    };
    if let Some(name) = &args.model {
        let name = Set { value: name.clone(), origin: Origin::Option("--for") };
        let Found { target, is_known } = settings::target(&name, config)?;
        let target = settings::over(target, wire);
        if !is_known {
            settings::note_unknown(&name, &target, Assumed { window: false, wire: false }, config);
        }
        return Ok(target);
    }
    if let Some(name) = &config.layer.model {
        let Found { target, .. } = settings::target(name, config)?;
        if target.wire == wire {
            return Ok(target);
        }
    }
    let name = match wire {
        Wire::OpenaiChat => MODEL,
        Wire::OpenaiResponses => "gpt-5.2",
        Wire::Anthropic => "claude-sonnet-5",
        Wire::Gemini => "gemini-3.8-flash",
        // Which models there are, nobody knows but who runs them.
        Wire::Ollama => "qwen3",
    };
    if matches!(args.to, Format::Wire(_)) {
        talk::note(&format!("the request is for {name}; --for names another model"));
    }
    let name = Set { value: name.into(), origin: Origin::Default };
    Ok(settings::over(settings::target(&name, config)?.target, wire))
}

fn session(args: &ConvertArgs, entries: &[Entry]) -> Result<Session, Failure> {
    let id = match &args.session_id {
        Some(id) => id.clone(),
        None => made_id(Digest::of(talk::as_json(&entries)?.as_bytes())),
    };
    let folder = folder(args.cwd.as_deref())?;
    let at = entries.iter().filter_map(|entry| entry.at).min().unwrap_or_else(clock::now);
    Ok(Session { id: id.into(), folder: folder.to_string_lossy().into(), at })
}

/// A UUID of the kind that anybody may make by rules of their own (version 8).
fn made_id(digest: Digest) -> String {
    let mut digits: Vec<char> = digest.to_string().chars().collect();
    let variant = digits[16].to_digit(16).map_or(8, |digit| 8 | (digit & 3));
    (digits[12], digits[16]) = ('8', char::from_digit(variant, 16).unwrap_or('8'));
    let group = |from: usize, to: usize| digits[from..to].iter().collect::<String>();
    [group(0, 8), group(8, 12), group(12, 16), group(16, 20), group(20, 32)].join("-")
}

/// The whole path of the folder, without links where it is there.
fn folder(named: Option<&Path>) -> Result<PathBuf, Failure> {
    let Some(named) = named else {
        return env::current_dir().map_err(|error| cannot_read("the current folder", &error));
    };
    fs::canonicalize(named).or_else(|_| path::absolute(named)).map_err(|error| cannot_read(named.display(), &error))
}

/// Where a session must lie to be found, and how to go on with it.
fn place_of(to: Format, session: &Session) -> Option<String> {
    let Session { id, folder, at } = session;
    let (home, place, how) = match to {
        Format::ClaudeCode => {
            let name: String = folder.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '-' }).collect();
            ("~/.claude", format!("projects/{name}/{id}.jsonl"), format!("in {folder}: claude --resume {id}"))
        }
        Format::Codex => {
            let Moment { year, month, day, hour, minute, second } = Moment::of(*at);
            let date = format!("{year:04}/{month:02}/{day:02}");
            let time = format!("{}T{hour:02}-{minute:02}-{second:02}", date.replace('/', "-"));
            ("~/.codex", format!("sessions/{date}/rollout-{time}-{id}.jsonl"), format!("codex resume {id}"))
        }
        Format::Wire(_) | Format::Recto => return None,
    };
    Some(format!("to go on with it, it must be {home}/{place}; then, {how}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use recto::entry::Millis;

    #[test]
    fn ids_are_made_from_content_and_are_of_version_8() {
        for content in ["", "a", "b", "c", "d"] {
            let id = made_id(Digest::of(content.as_bytes()));
            assert_eq!(id, made_id(Digest::of(content.as_bytes())));
            let groups: Vec<usize> = id.split('-').map(str::len).collect();
            assert_eq!(groups, [8, 4, 4, 4, 12], "{id}");
            assert!(id[14..].starts_with('8') && "89ab".contains(&id[19..20]), "{id}");
        }
    }

    #[test]
    fn sessions_lie_where_their_programs_look() {
        let session = Session { id: "ID".into(), folder: "/srv/é/my_work.2".into(), at: Millis(951_827_696_789) };
        let told = |to: Format| place_of(to, &session).unwrap_or_default();
        assert!(told(Format::ClaudeCode).contains("~/.claude/projects/-srv---my-work-2/ID.jsonl;"));
        assert!(told(Format::Codex).contains("~/.codex/sessions/2000/02/29/rollout-2000-02-29T12-34-56-ID.jsonl;"));
        assert_eq!(told(Format::Recto), "");
    }
}
