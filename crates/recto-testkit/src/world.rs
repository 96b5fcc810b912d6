//! A host that lives through a story: it appends, plans, commits, compiles and acknowledges with the real functions.

use crate::story::{Event, Manner, Story, Words};
use recto::block::{Facts, Todo, TodoState};
use recto::edit::Change;
use recto::entry::{Call, CallId, Media, Part, Reasoning, Redaction, RunId, Status, ToolResult};
use recto::fragment::{Fragment, Fragments};
use recto::log::Counted;
use recto::note::{Note, Notes, Subject, Want, default_prompt};
use recto::page::{Mode, Page};
use recto::receipt::Ticket;
use recto::target::{EditsPast, LateSystem, Memory, Reasoned};
use recto::tool::Tools;
use recto::{
    Compiled, Entry, Error, Lane, Log, Plan, Policy, Reader, Request, Role, Seq, Session, Span, Target, Tokenizer,
    Tokens, Wire, compile, plan,
};
use std::borrow::Cow;

/// A fixed prompt, a todo list, something retrieved that may go, and an empty one.
fn fragments() -> Fragments {
    let list = [
        Fragment::fixed("identity", "You look things up."),
        Fragment::dynamic("todos", "- one"),
        Fragment::retrieved("found", "a document that says nothing much"),
        Fragment::dynamic("nothing", ""),
    ];
    Fragments::counted(list, &Tokenizer::Chars4).expect("the names differ")
}

/// A little of everything that blocks tell.
fn facts() -> Facts {
    let todo = Todo { text: "look it up".into(), state: TodoState::Started };
    let mut facts = Facts { now: Some(recto::entry::Millis(1_765_353_600_000)), todos: vec![todo], ..Facts::default() };
    facts.profile.insert("profile".into(), "likes short answers".into());
    facts.constraints.push("no tables".into());
    facts
}

/// Where a trace stands: `None` is talk.
fn lane(trace: Option<u8>) -> (Lane, Option<RunId>) {
    match trace {
        None => (Lane::Talk, None),
        Some(0) => (Lane::Trace, None),
        Some(run) => (Lane::Trace, Some(format!("run-{run}").into())),
    }
}

/// What no output may hold.
pub const SECRET: &str = "sk-canary-7f3a";
const LABEL: &str = "[redacted:key]";

/// A summary as a plain model would make it.
fn summary(want: &Want, request: &Request<'_>) -> Note {
    let input = want.input(request, default_prompt(want.subject), &|text| Cow::Borrowed(text));
    let input = input.expect("a want that was just named has its words");
    let answer = match want.subject {
        Subject::Part(_) | Subject::Human(_) => r#"{"summary": "it says what was looked up"}"#,
        Subject::Range(_) => r#"{"intent": "things are looked up", "constraints": ["aa"], "done": ["some of it"]}"#,
    };
    match want.accept(&input, answer) {
        Ok(text) => Note::Made { text, model: "plain".into() },
        Err(rejected) => Note::Failed { why: rejected.to_string().into() },
    }
}

/// A host and its conversation.
#[derive(Debug)]
pub struct World {
    /// The model it calls.
    pub target: Target,
    /// The policy in force.
    pub policy: Policy,
    /// What was said.
    pub log: Log,
    /// Who reads.
    pub reader: Reader,
    /// What the provider holds, if it remembers.
    pub session: Session,
    /// The tools offered.
    pub tools: Tools,
    /// Prompt pieces that go with every call.
    pub fragments: Option<Fragments>,
    /// What it knows at every call.
    pub facts: Facts,
    /// The execution under way.
    pub run: RunId,
    /// What came of the summaries that plans wanted; `None` where nobody makes any.
    pub notes: Option<Notes>,
    /// Whether redactions are left off, to show that the check for secrets finds them.
    pub careless: bool,
    reserve: Tokens,
    calls: Vec<(CallId, Option<u8>)>,
    answered: Vec<bool>,
    inputs: u64,
}

/// A call that was tried.
#[derive(Debug)]
pub struct Called {
    /// What was said with it.
    pub input: Option<Counted>,
    /// What was planned.
    pub plan: Plan,
    /// What came out.
    pub compiled: Result<Compiled, Error>,
    /// What the provider held before it.
    pub session: Session,
}

impl World {
    /// Returns the host of a story, before anything has happened.
    pub fn new(story: &Story) -> World {
        let mut target = Target::eval().with_window(Some(Tokens(story.window)));
        target.tokenizer = Tokenizer::Chars4;
        target.message_overhead = Tokens(story.overhead);
        target.memory = if story.remembers { Memory::Session } else { Memory::Stateless };
        target.instructions = story.instructions;
        target.reasoning = if story.takes_reasoning { Reasoned::Text } else { Reasoned::Dropped };
        match story.manner {
            Manner::Plain => {}
            Manner::Strict => (target.late_system, target.tells_errors) = (LateSystem::ToUser, true),
            Manner::Anthropic => {
                target = target.over(Wire::Anthropic);
                target.reasoning = Reasoned::Sealed;
                target.edits_past = EditsPast::DropsLaterReasoning;
            }
        }
        let tool = r#"{"type":"function","function":{"name":"look"}}"#;
        World {
            target,
            policy: story.policy.clone(),
            log: Log::counted_by(Tokenizer::Chars4),
            reader: Reader::new("main"),
            session: Session::default(),
            tools: Tools::counted([tool.into()], &Tokenizer::Chars4),
            fragments: story.has_fragments.then(fragments),
            facts: facts(),
            run: "run-1".into(),
            notes: None,
            careless: false,
            reserve: Tokens(story.reserve),
            calls: Vec::new(),
            answered: Vec::new(),
            inputs: 0,
        }
    }

    /// Returns the same host where summaries are made.
    #[must_use]
    pub fn with_notes(self) -> World {
        World { notes: Some(Notes::default()), ..self }
    }

    /// Lives through a story, and shows every whole page and its target to a function.
    pub fn live(mut self, story: &Story, mut see: impl FnMut(&Page, &Target)) {
        for event in &story.events {
            let Event::Call { input, succeeds } = event else {
                self.happen(event);
                continue;
            };
            let called = self.call(input.as_ref());
            let Ok(compiled) = &called.compiled else { continue };
            // A delta may begin with results of calls that the provider holds.
            if compiled.page.mode == Mode::Full {
                see(&compiled.page, &self.target);
            }
            if *succeeds {
                self.acknowledge(&called);
            }
        }
    }

    /// Lets something happen that is no call.
    pub fn happen(&mut self, event: &Event) {
        match event {
            Event::System(words) => self.append(Entry::new(Role::System, []), &[words]),
            Event::User(words) => self.append(Entry::new(Role::User, []), &[words]),
            Event::Edge(words) => self.append(Entry { edge: true, ..Entry::new(Role::User, []) }, &[words]),
            Event::Say { words, thought, status } => self.say(words, thought.as_ref(), *status),
            Event::Step { words, calls, status, trace } => self.step(words, calls, *status, *trace),
            Event::Aside { section, words, covers } => self.aside(section, words, *covers),
            Event::Picture => self.picture(),
            Event::Result { back, words, is_error, with_another } => {
                self.result(*back, words, *is_error, *with_another)
            }
            Event::AllResults(words) => self.all_results(words),
            Event::Orphan(words) => self.append_result("nobody".into(), None, words, false),
            Event::Pin { back } => {
                if let Some(seq) = self.log.head().and_then(|head| head.0.checked_sub(*back as u64)) {
                    self.reader.pin(Span::one(Seq(seq)));
                }
            }
            Event::Revert => {
                let last = self.reader.decisions().iter().rev().find(|decision| decision.reverted.is_none());
                // A call that was shown unanswered was shown unanswered: that can't be taken back.
                if let Some(last) = last.filter(|it| !matches!(it.edit.change, Change::Settle { .. })) {
                    let ordinal = last.ordinal;
                    self.reader.revert(ordinal).expect("the decision exists and was not reverted");
                }
            }
            Event::Call { .. } => {}
        }
    }

    /// Calls the model: plan, commit, compile.
    pub fn call(&mut self, input: Option<&Words>) -> Called {
        // Nobody can say nothing.
        let said = input.filter(|words| words.has_secret || !words.text.is_empty());
        let input = said.map(|words| {
            self.inputs += 1;
            let id = format!("input-{}", self.inputs);
            let entry = Entry { id: Some(id.as_str().into()), ..Entry::new(Role::User, []) };
            let entry = self.with_texts(entry, &[words]);
            self.log.draft(entry).expect("a user's text can be drafted")
        });
        let session = self.session.clone();
        let mut planned = plan(&self.request(input.as_ref())).expect("the settings are right");
        if self.summarize(&planned.wants, input.as_ref()) {
            planned = plan(&self.request(input.as_ref())).expect("the settings are right");
        }
        self.reader.commit(planned.edits.clone(), self.policy.digest());
        let compiled = compile(&self.request(input.as_ref()));
        Called { input, plan: planned, compiled, session }
    }

    /// Makes some of the summaries that are wanted; others fail, or are never made. Returns whether anything came of any.
    fn summarize(&mut self, wants: &[Want], input: Option<&Counted>) -> bool {
        let request = self.request(input);
        let made = wants.iter().filter_map(|want| {
            let note = match want.key.to_bytes()[0] % 8 {
                0 => return None,
                1 | 2 => Note::Failed { why: "the model is busy".into() },
                _ => summary(want, &request),
            };
            Some((want.key, note))
        });
        let made: Vec<_> = made.collect();
        let came = !made.is_empty();
        if let Some(notes) = &mut self.notes {
            made.into_iter().for_each(|(key, note)| notes.put(key, note));
        }
        came
    }

    /// Returns the request of a call with this input.
    pub fn request<'a>(&'a self, input: Option<&'a Counted>) -> Request<'a> {
        Request {
            tools: Some(&self.tools),
            run: Some(&self.run),
            fragments: self.fragments.as_ref(),
            facts: Some(&self.facts).filter(|_| !self.policy.blocks.is_empty()),
            input,
            reserve: Some(self.reserve),
            session: Some(&self.session),
            notes: self.notes.as_ref(),
            ..Request::new(&self.log, &self.reader, &self.policy, &self.target)
        }
    }

    /// Compiles the page of a past call again.
    pub fn again(&self, called: &Called, ticket: &Ticket) -> Compiled {
        let (log, reader) = (self.log.until(ticket.head), self.reader.as_of(ticket));
        let request = self.request(called.input.as_ref());
        let request = Request { log: &log, reader: &reader, session: Some(&called.session), ..request };
        compile(&request).expect("what fitted once fits again")
    }

    /// The call went well: its input is appended, and the reply.
    pub fn acknowledge(&mut self, called: &Called) {
        let compiled = called.compiled.as_ref().expect("only a call that has a page can go well");
        self.reader.acknowledge(&compiled.receipt.ticket).expect("the ticket is the newest");
        self.session.sent(compiled);
        if let Some(input) = &called.input {
            let seq = self.log.append(input.original().clone()).expect("it was drafted");
            self.session.acknowledge(None, [seq]);
        }
    }

    fn say(&mut self, words: &Words, thought: Option<&Words>, status: Status) {
        let mut entry = self.with_texts(Entry { status, ..Entry::new(Role::Assistant, []) }, &[words]);
        if let Some(thought) = thought {
            let text = thought.text.as_str().into();
            let parts =
                entry.parts.iter().cloned().chain([Part::Reasoning(Reasoning { text, ..Reasoning::default() })]);
            entry.parts = parts.collect();
        }
        self.log.append(entry).expect("a model may speak and think");
    }

    fn step(&mut self, words: &Words, calls: &[Words], status: Status, trace: Option<u8>) {
        let mut entry = self.with_texts(Entry { status, ..Entry::new(Role::Assistant, []) }, &[words]);
        (entry.lane, entry.run) = lane(trace);
        let mut parts = entry.parts.to_vec();
        for arguments in calls {
            // Some providers use the same ids again in every step.
            let id: CallId = format!("call_{}", self.calls.len() % 23).into();
            let (text, redaction) = self.text(arguments, parts.len());
            parts.push(Part::Call(Call::new(id.as_str(), "look", text)));
            entry.redactions.extend(redaction);
            self.calls.push((id, trace));
            self.answered.push(false);
        }
        entry.parts = parts.into();
        self.log.append(entry).expect("call ids differ within a step");
    }

    fn result(&mut self, back: usize, words: &Words, is_error: bool, with_another: bool) {
        let Some(at) = self.calls.len().checked_sub(back + 1) else { return };
        self.answered[at] = true;
        let (call, trace) = self.calls[at].clone();
        self.append_result(call.clone(), trace, words, is_error);
        if with_another {
            self.append_result(call, trace, words, is_error);
        }
    }

    fn all_results(&mut self, words: &Words) {
        let open = (0..self.calls.len()).filter(|&at| !self.answered[at]);
        let open: Vec<_> = open.map(|at| self.calls[at].clone()).collect();
        self.answered.fill(true);
        for (call, trace) in open {
            self.append_result(call, trace, words, false);
        }
    }

    fn append_result(&mut self, call: CallId, trace: Option<u8>, words: &Words, is_error: bool) {
        let (text, redaction) = self.text(words, 0);
        let result = Part::Result(ToolResult { is_error, ..ToolResult::text(call, text) });
        let (lane, run) = lane(trace);
        let redactions = redaction.into_iter().collect();
        let entry = Entry { redactions, lane, run, ..Entry::new(Role::Tool, [result]) };
        self.log.append(entry).expect("results stand in tool entries");
    }

    fn aside(&mut self, section: &str, words: &Words, covers: Option<u64>) {
        let head = self.log.head().map_or(0, |head| head.0);
        let covers = covers.filter(|_| section == "summary");
        let covers = covers.map(|back| Span { first: Seq(0), last: Seq(head.saturating_sub(back)) });
        if section == "buffer" {
            // Work on the side: a step and its result, for passes to shorten.
            let call = format!("aside-{head}");
            let step = Entry::step("", [Call::new(call.as_str(), "look", "{}")]);
            self.log.append(Entry { section: section.into(), ..step }).expect("a section takes steps");
            let (text, redaction) = self.text(words, 0);
            let result = Entry { redactions: redaction.into_iter().collect(), ..Entry::result(call.as_str(), text) };
            self.log.append(Entry { section: section.into(), ..result }).expect("a section takes results");
            return;
        }
        let entry = Entry { section: section.into(), covers, ..Entry::new(Role::User, []) };
        self.append(entry, &[words]);
    }

    fn picture(&mut self) {
        let media = Media { url: "https://example.org/a.png".into(), name: None, detail: None };
        let entry = Entry::new(Role::User, [Part::text("look"), Part::Image(media)]);
        self.log.append(entry).expect("a user may show pictures");
    }

    fn append(&mut self, entry: Entry, words: &[&Words]) {
        let entry = self.with_texts(entry, words);
        self.log.append(entry).expect("texts can be appended");
    }

    fn with_texts(&self, mut entry: Entry, words: &[&Words]) -> Entry {
        let mut parts = Vec::new();
        for words in words {
            let (text, redaction) = self.text(words, parts.len());
            parts.push(Part::text(text));
            entry.redactions.extend(redaction);
        }
        entry.parts = parts.into();
        entry
    }

    /// The text of some words, with the secret put in the middle and marked.
    fn text(&self, words: &Words, part: usize) -> (String, Option<Redaction>) {
        if !words.has_secret {
            return (words.text.clone(), None);
        }
        let middle = words.text.char_indices().nth(words.text.chars().count() / 2).map_or(0, |(at, _)| at);
        let text = format!("{}{SECRET}{}", &words.text[..middle], &words.text[middle..]);
        let (start, end) = (middle, middle + SECRET.len());
        let redaction = Redaction { part, piece: 0, start, end, label: LABEL.into() };
        (text, (!self.careless).then_some(redaction))
    }
}
