//! One conversation, counted by its target's tokenizer, and the page of it that was asked for.

mod stored; // of a conversation that is kept

use crate::args::PageArgs;
use crate::codes::Code;
use crate::config::Config;
use crate::failure::{Failure, cannot_read};
use crate::kept::Kept;
use crate::settings::Settings;
use crate::{source, talk};
use recto::entry::Text;
use recto::format::ResponseFormat;
use recto::log::Counted;
use recto::tool::Tools;
use recto::transcript::{self, Conversation};
use recto::{Compiled, Entry, Log, Replay, Role, Target};
use std::{fs, io};

pub(crate) use stored::call;

/// A conversation whose pages are to be made.
#[derive(Debug)]
pub(crate) struct Subject {
    pub(crate) name: String,
    pub(crate) log: Log,
    pub(crate) tools: Option<Tools>,
    format: Option<ResponseFormat>,
    given: Option<transcript::Asked>,
}

/// Which page is meant.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Which<'a> {
    /// The one before this assistant message, from 0.
    Before(usize),
    /// The one for the user's next words.
    Saying(&'a str),
    /// The one for whatever answers the end of the conversation.
    Next,
}

/// A page that was asked for.
#[derive(Debug)]
pub(crate) struct Asked {
    pub(crate) name: String,
    /// Which assistant message it leads to; `None` if that is yet to come.
    pub(crate) turn: Option<usize>,
    /// Where the conversation is a client's request: what else that asked for.
    pub(crate) given: Option<transcript::Asked>,
    /// The model that it is for.
    pub(crate) target: Target,
    pub(crate) compiled: Compiled,
}

impl Subject {
    /// Counts a conversation.
    pub(crate) fn of(name: String, mut conversation: Conversation, settings: &Settings) -> Result<Subject, Failure> {
        let tools = std::mem::take(&mut conversation.tools);
        let given = conversation.asked.take();
        let log = conversation.into_log(settings.target.tokenizer).map_err(|error| unusable(&name, &error))?;
        Subject::of_log(name, log, tools, given, settings)
    }

    /// Returns a conversation whose entries are counted, with what goes with it.
    fn of_log(
        name: String,
        log: Log,
        tools: Vec<Text>,
        given: Option<transcript::Asked>,
        settings: &Settings,
    ) -> Result<Subject, Failure> {
        let tools = (!tools.is_empty()).then(|| Tools::counted(tools, &settings.target.tokenizer));
        let format = given.as_ref().and_then(|given| given.format.as_deref()).map(ResponseFormat::parse).transpose();
        let format = format.map_err(|error| unusable(&name, &error))?.flatten();
        Ok(Subject { name, log, tools, format, given })
    }

    /// Returns its calls, none of them made yet.
    pub(crate) fn replay<'a>(&'a self, settings: &'a Settings) -> Replay<'a> {
        let replay = Replay::new(&self.log, &settings.policy, &settings.target);
        let own = self.given.as_ref().filter(|given| given.wire == settings.target.wire);
        let marks = own.map(|given| &*given.marks).unwrap_or_default();
        let replay = replay.with_tools(self.tools.as_ref()).with_format(self.format.as_ref()).with_marks(marks);
        replay.with_reserve(settings.reserve).with_facts(settings.facts.as_ref())
    }

    /// Makes one page, after all calls before it.
    pub(crate) fn page(&self, which: Which<'_>, settings: &Settings) -> Result<Asked, Failure> {
        let mut replay = self.replay(settings);
        let end = self.log.back().next().map(Counted::role);
        let (turn, compiled) = match (which, end) {
            (Which::Before(turn), _) => (Some(turn), self.before(turn, &mut replay)?),
            (Which::Saying(text), _) => {
                let input = self.log.draft(Entry::user(text))?;
                (None, replay.after_all(Some(&input))?)
            }
            (Which::Next, None) => {
                return Err(Failure::of(Code::NoMessages, "the conversation has no messages")
                    .hinting("say something with --input"));
            }
            (Which::Next, Some(Role::Assistant)) => {
                let last = replay.turns() - 1;
                talk::note(&format!(
                    "the conversation ends with an assistant message; this is the page before it (turn {last})"
                ));
                (Some(last), self.before(last, &mut replay)?)
            }
            (Which::Next, Some(_)) => (None, replay.after_all(None)?),
        };
        let (given, target) = (self.given.clone(), settings.target.clone());
        Ok(Asked { name: self.name.clone(), turn, given, target, compiled })
    }

    fn before(&self, turn: usize, replay: &mut Replay<'_>) -> Result<Compiled, Failure> {
        let turns = replay.turns();
        if turn >= turns {
            let failure =
                Failure::of(Code::NoTurn, format!("no turn {turn}: assistant messages in the conversation: {turns}"));
            return Err(match turns.checked_sub(1) {
                Some(last) => failure.hinting(format!("turns are counted from 0 to {last}")),
                None => failure.hinting("leave --turn out for the page of the first one"),
            });
        }
        match replay.find(|replayed| replayed.turn == turn) {
            Some(replayed) => Ok(replayed.compiled?),
            None => Err(Failure::of(Code::NoPage, format!("turn {turn} has no page"))
                .because("the conversation begins with this assistant message, so there was nothing to send")
                .hinting("say something with --input, or take a later --turn")),
        }
    }
}

fn unusable(name: &str, error: &recto::Error) -> Failure {
    Failure::of_core(Code::BadConversation, error).during(format!("conversation {name:?} cannot be used"))
}

/// Reads what the arguments name, and makes the page they ask for.
pub(crate) fn asked(args: &PageArgs, settings: &Settings, config: &Config) -> Result<Asked, Failure> {
    let which = match (args.turn, args.input.as_deref()) {
        (Some(turn), _) => Which::Before(turn),
        (None, Some(text)) => Which::Saying(text),
        (None, None) => Which::Next,
    };
    match kept(args, config)? {
        Some(kept) => stored::page(&kept.showing_summaries(config), args, which, settings),
        None => of_file(args, which, settings),
    }
}

fn of_file(args: &PageArgs, which: Which<'_>, settings: &Settings) -> Result<Asked, Failure> {
    if args.reader.is_some() {
        return Err(Failure::of(Code::Conflict, "--reader cannot be used with a file")
            .hinting("files have no readers; `recto import` keeps conversations that do"));
    }
    let all = source::conversations(&args.file)?;
    let picked = source::pick(all, args.conversation.as_deref(), &args.file)?;
    source::note_replaced(&args.file, &picked.conversation);
    Subject::of(picked.name, picked.conversation, settings)?.page(which, settings)
}

/// The store, if a conversation in it is meant: always with `--store`, else where there is no such file.
fn kept(args: &PageArgs, config: &Config) -> Result<Option<Kept>, Failure> {
    if args.store.store.is_some() {
        return Kept::open(&args.store, config).map(Some);
    }
    let Err(error) = fs::metadata(&args.file) else { return Ok(None) };
    if source::is_stdin(&args.file) || error.kind() != io::ErrorKind::NotFound {
        return Ok(None);
    }
    match Kept::holding(&args.file.to_string_lossy(), &args.store, config)? {
        Ok(kept) => Ok(Some(kept)),
        Err(why) => Err(cannot_read(source::shown(&args.file), &error).hinting(why)),
    }
}
