//! Pages of a conversation that is kept: previews, of which nothing is recorded.

use super::{Asked, Subject, Which};
use crate::args::PageArgs;
use crate::beside::Beside;
use crate::codes::Code;
use crate::failure::Failure;
use crate::kept::Kept;
use crate::settings::Settings;
use crate::talk;
use recto::{Compiled, Entry, Log, Role, Seq, Target};
use recto_engine::store::ReaderRow;
use recto_engine::{At, Call, Conversation, ReaderName};

/// The reader, if none is named.
const READER: &str = "main";
/// How many entries are read at once.
const PAGE_ROWS: usize = 1_000;
/// Longer conversations are not gone through call by call to find the page that comes next.
const REPLAYED_ENTRIES_MAX: u64 = 1_000;

/// Returns the call that a reader would make next, with what the conversation keeps beside its entries.
pub(crate) fn call(reader: &str, conversation: &Conversation, settings: &Settings) -> Call {
    let beside = Beside::of_meta(&conversation.meta);
    let asked = beside.asked();
    let own = asked.as_ref().filter(|asked| asked.wire == settings.target.wire);
    Call {
        tools: beside.tools,
        format: asked.as_ref().and_then(|asked| asked.format.clone()),
        marks: own.map(|asked| asked.marks.clone()).unwrap_or_default(),
        reserve: settings.reserve,
        facts: settings.facts.clone(),
        ..Call::new(reader, settings.policy.clone(), settings.target.clone())
    }
}

/// Makes the page that was asked for.
pub(super) fn page(kept: &Kept, args: &PageArgs, which: Which<'_>, settings: &Settings) -> Result<Asked, Failure> {
    if args.conversation.is_some() {
        return Err(Failure::of(Code::Conflict, "--conversation cannot be used with a conversation that is kept")
            .hinting("it picks one of a file's; a kept one is named alone"));
    }
    let name = args.file.to_string_lossy();
    let at = kept.at(&name);
    let (engine, reader) = (&kept.engine, ReaderName::from(args.reader.as_deref().unwrap_or(READER)));
    let conversation = kept.conversation(&name)?;
    let row = kept.run(engine.readers(&at))?.into_iter().find(|(it, _)| *it == reader).map(|(_, row)| row);
    let ReaderRow { turns: calls, ordinal: decisions } = row.unwrap_or_default();
    let end = match conversation.tally.head() {
        Some(head) => kept.run(engine.read(&at, head, 1))?.first().map(|entry| entry.role()),
        None => None,
    };
    let is_answered = end == Some(Role::Assistant);
    let is_long = conversation.tally.sums().entries > REPLAYED_ENTRIES_MAX;
    let past = match which {
        Which::Before(turn) if calls > 0 => Some(turn as u64),
        Which::Next if calls > 0 && is_answered => {
            let last = calls - 1;
            talk::note(&format!(
                "the conversation ends with an assistant message; this is the page of the last call ({last})"
            ));
            Some(last)
        }
        _ => None,
    };
    if let Some(turn) = past {
        return again(kept, &at, &reader, turn, &conversation);
    }
    let has_nothing = calls == 0 && decisions == 0;
    let is_replayed = match which {
        Which::Before(_) => true,
        Which::Next if end.is_none() || is_answered => !is_long,
        Which::Next | Which::Saying(_) => has_nothing && !is_long,
    };
    if is_long && has_nothing && !is_replayed {
        talk::note(&format!(
            "no calls are recorded, and more than {REPLAYED_ENTRIES_MAX} entries are not gone through call by call: \
             this is the page of a first call, to which nothing is old"
        ));
    }
    if is_replayed {
        if decisions > 0 {
            talk::note("what was decided since stands on the next page only; --input asks for that");
        }
        return replayed(kept, &at, &conversation, settings)?.page(which, settings);
    }
    let mut call = call(reader.as_str(), &conversation, settings);
    if let Which::Saying(text) = which {
        call.input = Some(Entry::user(text));
    }
    let compiled = kept.run(engine.preview(&at, &call))?;
    Ok(asked(&conversation, None, settings.target.clone(), compiled))
}

/// The page of a recorded call, as it was made then.
fn again(kept: &Kept, at: &At, reader: &ReaderName, turn: u64, conversation: &Conversation) -> Result<Asked, Failure> {
    let again = kept.run(kept.engine.again(at, reader, turn))?;
    if !again.agrees {
        talk::note(&format!("warning: this is not byte for byte the page that call {turn} was made with"));
    }
    Ok(asked(conversation, Some(turn as usize), again.target, again.compiled))
}

fn asked(conversation: &Conversation, turn: Option<usize>, target: Target, compiled: Compiled) -> Asked {
    let given = Beside::of_meta(&conversation.meta).asked();
    Asked { name: conversation.id.to_string(), turn, given, target, compiled }
}

/// The whole conversation, counted by the target's tokenizer, as if it had been read from a file.
fn replayed(kept: &Kept, at: &At, conversation: &Conversation, settings: &Settings) -> Result<Subject, Failure> {
    let mut log = Log::counted_by(settings.target.tokenizer);
    let mut next = Seq(0);
    loop {
        let some = kept.run(kept.engine.read(at, next, PAGE_ROWS))?;
        let Some(last) = some.last() else { break };
        next = last.seq.next();
        for entry in &some {
            log.append_at(entry.seq, entry.original().clone())?;
        }
    }
    let beside = Beside::of_meta(&conversation.meta);
    let given = beside.asked();
    Subject::of_log(conversation.id.to_string(), log, beside.tools, given, settings)
}
