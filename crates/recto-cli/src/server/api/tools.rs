//! What a model may use of all that: a few tools, none of which changes anything. Each does what a route does, with the
//! same function, and tells the answer as text: bounded, with a way to go on, and with the words of others fenced.

mod told; // answers as text

use super::asked::{Asked, limited};
use super::conversations::{self, ListGiven, Listing};
use super::decisions::{self, ExpandGiven};
use super::entries::{self, Direction, EntriesGiven};
use super::pages;
use super::problem::Problem;
use super::search::{self, SearchAllGiven, SearchGiven};
use super::shape::{Shape, Shapes, alone};
use super::turns::{self, BodyGiven};
use crate::clock;
use crate::entries::whole;
use crate::server::Server;
use crate::server::auth::Caller;
use axum::body::Bytes;
use axum::http::Request;
use recto::entry::Text;
use recto::{Seq, Tokens};
use recto_engine::{Engine, Store};
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};
use std::sync::Arc;
use told::{Item, Sheet};

pub(in crate::server) use told::Told;

/// Who reads, if nothing is said.
const READER: &str = "main";
/// How many conversations, entries and messages are told at once.
const LIST_USUAL: usize = 20;
const LIST_MAX: usize = 100;
const READ_USUAL: usize = 20;
const READ_MAX: usize = 100;
/// How many tokens are told of the one conversation that is searched.
const SEARCH_BUDGET: Tokens = Tokens(1_000);

/// Something that a model may use.
#[derive(Clone, Copy)]
pub(in crate::server) struct Tool {
    pub(in crate::server) name: &'static str,
    pub(in crate::server) title: &'static str,
    /// What it does, for the model that chooses.
    pub(in crate::server) about: &'static str,
    takes: fn(&mut Shapes) -> Value,
    verb: Verb,
}

#[derive(Clone, Copy)]
enum Verb {
    List,
    Read,
    Search,
    Expand,
    Explain,
}

given! {
    /// Which conversations.
    struct ListAsked {
        /// Only those with this in their name or title, in any case.
        search: Option<String>,
        /// Where to go on: the `after` that the answer before names.
        after: Option<String>,
        /// At most so many: 20, up to 100.
        limit: Option<u64>,
    }
}

given! {
    /// What to read.
    struct ReadAsked {
        /// The name of the conversation, as `list` tells it.
        conversation: String,
        /// The entry to begin with, such as 42 for m42: 0 if it is left out, or backwards the newest. With `turn`, the message of the page, from 0.
        from: Option<u64>,
        /// At most so many entries or messages: 20, up to 100.
        limit: Option<u64>,
        /// `forward`, or `back` for the newest first. Not with `turn`.
        order: Option<Direction>,
        /// The number of a model call: reads the page that its model was sent, instead of the entries.
        turn: Option<u64>,
        /// Whose page: `main` if it is left out.
        reader: Option<String>,
        /// How many characters of the first entry or message to pass over.
        skip: Option<u64>,
    }
}

given! {
    /// What to look for.
    struct SearchAsked {
        /// A question, a few words, a name.
        words: String,
        /// The conversation to search; all, if it is left out.
        conversation: Option<String>,
        /// At most so many tokens of each conversation: 1000 of one, 300 of each of all; up to 16000.
        budget: Option<Tokens>,
        /// Where to go on in all of them: the `after` that the answer before names.
        after: Option<String>,
    }
}

given! {
    /// What to bring back.
    struct ExpandAsked {
        /// The name of the conversation, as `list` tells it.
        conversation: String,
        /// The handle that the marker names, such as m42 or m42.1.
        handle: String,
        /// First and last line, from 1: only these are told.
        lines: Option<[usize; 2]>,
        /// First and last item of a JSON array, from 0: only these are told.
        items: Option<[usize; 2]>,
        /// Only lines that hold this text are told, and a few around them.
        search: Option<Text>,
        /// For whose page it was left out: `main` if nothing is said.
        reader: Option<String>,
    }
}

given! {
    /// Which page to explain.
    struct ExplainAsked {
        /// The name of the conversation, as `list` tells it.
        conversation: String,
        /// The number of the model call, from 0. Left out, it is the newest; where none was made, the page that the next one would get.
        turn: Option<u64>,
        /// Whose page: `main` if it is left out.
        reader: Option<String>,
        /// The line of the explanation to begin with: 0 if it is left out.
        from: Option<u64>,
    }
}

/// All there are.
pub(in crate::server) static TOOLS: [Tool; 5] = [
    Tool {
        name: "list",
        title: "List conversations",
        about: "Lists the conversations that are kept, the newest first: name, title, and how many entries, tokens and \
                model calls each has. Begin here if you don't know the name of a conversation.",
        takes: ListAsked::shape,
        verb: Verb::List,
    },
    Tool {
        name: "read",
        title: "Read a conversation",
        about: "Reads a kept conversation: its entries as they were said, or with `turn` the page that the model was sent \
                at that call. Secrets are replaced. Where something is cut, the answer says how to read on.",
        takes: ReadAsked::shape,
        verb: Verb::Read,
    },
    Tool {
        name: "search",
        title: "Search conversations",
        about: "Finds what was said about something, in one conversation or in all, by its words: a question, a name, an \
                identifier. Tells the stretches that answer best, with the entry each stands in, which `read` shows whole.",
        takes: SearchAsked::shape,
        verb: Verb::Search,
    },
    Tool {
        name: "expand",
        title: "Bring back what was left out",
        about: "Brings back what a page shortened or left out, by the handle that its marker names: m42 in \
                \"[… first 500 of 5000 characters of read result; recto_expand m42]\". Of something long, ask for \
                lines, for items of a JSON array, or search for a text. The pages stay as they are.",
        takes: ExpandAsked::shape,
        verb: Verb::Expand,
    },
    Tool {
        name: "explain",
        title: "Explain a page",
        about: "Tells the receipt of a model call: what of the conversation its page showed, shortened or left out, which \
                pass decided that and why, and what it cost in tokens and dollars.",
        takes: ExplainAsked::shape,
        verb: Verb::Explain,
    },
];

impl Tool {
    /// Returns the tool of this name.
    pub(in crate::server) fn named(name: &str) -> Option<&'static Tool> {
        TOOLS.iter().find(|tool| tool.name == name)
    }

    /// Returns the schema of its arguments.
    pub(in crate::server) fn schema(&self) -> Map<String, Value> {
        match alone(self.takes, &mut Shapes::new()) {
            Value::Object(schema) => schema,
            _ => Map::new(),
        }
    }
}

/// Why a tool could not do what it was asked.
#[derive(Debug)]
pub(in crate::server) struct Refused {
    pub(in crate::server) code: String,
    /// One word for programs.
    pub(in crate::server) kind: &'static str,
    /// What the model reads.
    pub(in crate::server) text: String,
}

/// Whoever has tools used.
pub(in crate::server) struct Asker<S> {
    pub(in crate::server) server: Arc<Server<S>>,
    pub(in crate::server) caller: Caller,
}

impl<S: Store> Asker<S> {
    /// Uses a tool.
    pub(in crate::server) async fn uses(&self, tool: &Tool, arguments: Map<String, Value>) -> Result<Told, Refused> {
        let told = match tool.verb {
            Verb::List => self.list(taken(tool, arguments)?).await,
            Verb::Read => self.read(taken(tool, arguments)?).await,
            Verb::Search => self.search(taken(tool, arguments)?).await,
            Verb::Expand => self.expand(taken(tool, arguments)?).await,
            Verb::Explain => self.explain(taken(tool, arguments)?).await,
        };
        told.map_err(|problem| {
            if let Some(line) = problem.for_log() {
                self.server.tell(|| line.to_string());
            }
            match tool.verb {
                Verb::List => problem.into(),
                _ if problem.is("not_found") => {
                    problem.hinting("`list` names the conversations that there are, and how many calls each has").into()
                }
                Verb::Expand if problem.is("not_expanded") => {
                    problem.hinting("`read` tells entries as they were said, whether pages show them or not").into()
                }
                _ => problem.into(),
            }
        })
    }

    /// Returns a request as if it had come over HTTP.
    fn asked(&self, names: &[(&str, String)], body: &'static str) -> Asked<S> {
        let (parts, ()) = Request::new(()).into_parts();
        let names = names.iter().map(|(name, value)| ((*name).to_string(), value.clone())).collect();
        let body = Bytes::from_static(body.as_bytes());
        Asked {
            server: self.server.clone(),
            setup: self.server.setup(),
            caller: self.caller.clone(),
            names,
            parts,
            body,
        }
    }

    /// The same about a reader of a conversation.
    fn about(&self, conversation: &str, reader: Option<&str>) -> Asked<S> {
        let reader = reader.unwrap_or(READER).to_string();
        self.asked(&[("conversation", conversation.to_string()), ("reader", reader)], r#"{"body_as":"none"}"#)
    }

    async fn list(&self, given: ListAsked) -> Result<Told, Problem> {
        let limit = limited(given.limit, LIST_USUAL, LIST_MAX)?;
        let (after, asked) = (given.after, self.asked(&[], ""));
        let search = given.search.clone();
        let given = ListGiven { search, prefix: None, order: None, after, limit: Some(limit as u64) };
        let listed = conversations::listed(&asked, given).await?;
        let mut sheet = Sheet::headed(match listed.conversations.len() {
            0 => "no conversations".to_string(),
            count => format!("{count} conversations, the newest first, one on a line"),
        });
        let lines: Vec<String> = listed.conversations.iter().map(line).collect();
        let shown = sheet.lines(&lines, 0);
        let last = listed.conversations.get(shown.saturating_sub(1)).filter(|_| shown < lines.len());
        let next = last.map(|it| conversations::mark(it.updated, &it.conversation)).or(listed.next);
        if !listed.is_complete {
            sheet.note("there are more conversations than were looked through; `search` narrows it down");
        }
        Ok(sheet.told("list", next.map(|after| json!({"after": after, "limit": limit}))))
    }

    async fn read(&self, given: ReadAsked) -> Result<Told, Problem> {
        let limit = limited(given.limit, READ_USUAL, READ_MAX)?;
        let ReadAsked { conversation, from, order, turn, reader, skip, .. } = given;
        let mut asked = self.about(&conversation, reader.as_deref());
        let (head, items, next) = match turn {
            None => {
                let given = EntriesGiven { from, limit: Some(limit as u64), order };
                let told = entries::told(&asked, given).await?;
                let items: Vec<Item> = told.entries.iter().map(entry).collect();
                (format!("entries of {conversation:?}"), items, told.next.map(|next| next.0))
            }
            Some(_) if order.is_some() => return Err(Problem::bad("order: a page is read from its first message on")),
            Some(turn) => {
                asked.names.push(("turn".into(), turn.to_string()));
                let page = turns::told(&asked, BodyGiven { body_as: None }).await?.page;
                let (first, count) = (from.unwrap_or(0), page.messages.len() as u64);
                let messages = (0_u64..).zip(&page.messages).filter(|(at, _)| *at >= first).take(limit);
                let items: Vec<Item> = messages.map(|(at, it)| message(at, it)).collect();
                let next = Some(first.saturating_add(items.len() as u64)).filter(|next| *next < count);
                let tools = page.tools.len();
                (format!("page of call {turn} of {conversation:?}: {count} messages, {tools} tools"), items, next)
            }
        };
        let mut sheet = Sheet::headed(if items.is_empty() { format!("{head}: none from there on") } else { head });
        let again = json!({"conversation": conversation, "turn": turn, "reader": reader, "order": order});
        let skip = usize::try_from(skip.unwrap_or(0)).unwrap_or(usize::MAX);
        let next = sheet.items(&items, limit, skip, &again).or(next);
        Ok(sheet.told("read", next.map(|from| with(&again, &[("from", from.into()), ("limit", limit.into())]))))
    }

    async fn search(&self, given: SearchAsked) -> Result<Told, Problem> {
        let SearchAsked { words, conversation, budget, after } = given;
        let found = match &conversation {
            Some(name) => {
                if after.is_some() {
                    return Err(Problem::bad("after: one conversation is searched at once"));
                }
                let given = SearchGiven { words: words.clone(), budget: Some(budget.unwrap_or(SEARCH_BUDGET)) };
                search::found(&self.about(name, None), given).await?
            }
            None => {
                let given = SearchAllGiven { words: words.clone(), budget, after, limit: None };
                search::found_everywhere(&self.asked(&[], ""), given).await?
            }
        };
        let mut sheet = Sheet::headed(match found.found.len() {
            0 => "nothing was found".to_string(),
            count => format!("{count} stretches were found, in the order in which they were said"),
        });
        let items = found.found.iter().map(|it| {
            let who = it.author.as_deref().map_or(it.role.to_string(), |author| format!("{} {author:?}", it.role));
            Item {
                at: it.seq.0,
                name: format!("m{} of {:?}, {who}", it.seq.0, it.conversation.as_str()),
                text: it.text.clone(),
            }
        });
        let items: Vec<Item> = items.collect();
        sheet.stretches(&items);
        if found.cut > 0 {
            sheet.note(&format!("{} of the words stand at more places than were looked at", found.cut));
        }
        if found.behind > 0 {
            sheet.note(&format!("{} of the newest entries can't be found yet", found.behind));
        }
        Ok(sheet.told("search", found.next.map(|next| json!({"words": words, "budget": budget, "after": next}))))
    }

    async fn expand(&self, given: ExpandAsked) -> Result<Told, Problem> {
        let ExpandAsked { conversation, handle, lines, items, search, reader } = given;
        let asked = self.about(&conversation, reader.as_deref());
        let given = ExpandGiven {
            handle: Some(handle),
            message_index: None,
            lines,
            items,
            search,
            reason: None,
            in_place: Some(false),
            policy: None,
            model: None,
            wire: None,
            window: None,
            reserve: None,
        };
        let told = decisions::expanded(&asked, &given).await?;
        let mut sheet = Sheet::headed(format!("{} of {conversation:?}", told.handle));
        sheet.whole(&told.text, "ask for `lines`, `items` or a `search`, or have `read` tell the entry with `skip`");
        Ok(sheet.told("expand", None))
    }

    async fn explain(&self, given: ExplainAsked) -> Result<Told, Problem> {
        let ExplainAsked { conversation, turn, reader, from } = given;
        let mut asked = self.about(&conversation, reader.as_deref());
        let turn = match turn {
            Some(turn) => Some(turn),
            None => newest(&asked).await?,
        };
        let (head, text) = match turn {
            None => {
                let page = pages::previewed(&asked, asked.body()?).await?;
                (format!("no call of {conversation:?} yet; the next one would get this page"), page.receipt.to_string())
            }
            Some(turn) => {
                asked.names.push(("turn".into(), turn.to_string()));
                let call = turns::told(&asked, BodyGiven { body_as: None }).await?;
                let said = |(usage, usd): (recto::wire::Usage, f64)| {
                    format!("; the provider reported {} tokens of input, {usd:.6} USD", usage.input)
                };
                let used = call.used.zip(call.usd_billed).map_or(String::new(), said);
                let head = format!("call {turn} of {conversation:?}, {}{used}", clock::minute(call.at));
                (head, call.receipt.to_string())
            }
        };
        let mut sheet = Sheet::headed(head);
        let lines: Vec<String> = text.lines().map(String::from).collect();
        let first = usize::try_from(from.unwrap_or(0)).unwrap_or(usize::MAX).min(lines.len());
        let upto = first + sheet.lines(&lines[first..], first);
        let again = json!({"conversation": conversation, "turn": turn, "reader": reader, "from": upto});
        Ok(sheet.told("explain", (upto < lines.len()).then_some(again)))
    }
}

/// The number of a reader's newest call.
async fn newest<S: Store>(asked: &Asked<S>) -> Result<Option<u64>, Problem> {
    let ((at, _), reader) = (asked.conversation().await?, asked.reader()?);
    let engine: &Engine<S> = asked.engine();
    let row = engine.readers(&at).await?.into_iter().find(|(name, _)| *name == reader);
    Ok(row.and_then(|(_, row)| row.turns.checked_sub(1)))
}

/// Reads the arguments of a tool.
fn taken<T: DeserializeOwned>(tool: &Tool, arguments: Map<String, Value>) -> Result<T, Refused> {
    serde_json::from_value(Value::Object(arguments)).map_err(|error| {
        let schema = tool.schema();
        let known: Vec<&str> =
            schema["properties"].as_object().into_iter().flatten().map(|(name, _)| &**name).collect();
        Problem::bad(format!("the arguments: {error}"))
            .hinting(format!("{} takes: {}", tool.name, known.join(", ")))
            .into()
    })
}

/// A conversation on one line.
fn line(it: &Listing) -> String {
    let readers = it.readers.iter().map(|it| (it.reader.to_string(), Value::from(it.turns)));
    let readers: Map<String, Value> = readers.collect();
    json!({
        "conversation": it.conversation, "title": it.title, "entries": it.entries, "tokens": it.tokens,
        "calls_by_reader": readers, "updated": clock::minute(it.updated),
    })
    .to_string()
}

fn entry(row: &entries::Row) -> Item {
    let Seq(at) = row.seq;
    let author = row.entry.author.as_deref().map_or(String::new(), |author| format!(" {author:?}"));
    let erased = if row.entry.erased.is_some() { ", erased" } else { "" };
    let name = format!("m{at} {}{author}, {} tokens{erased}", row.entry.role, row.tokens.0);
    Item { at, name, text: whole(&row.entry.parts) }
}

fn message(at: u64, message: &pages::MessageShown) -> Item {
    let shows = match (&message.seq, &message.fragment) {
        (Some(seq), _) => format!(" m{}", seq.0),
        (None, Some(fragment)) => format!(" fragment {fragment:?}"),
        (None, None) => String::new(),
    };
    let name = format!("message {at}: {}{shows}, {} tokens", message.role, message.cost.0);
    Item { at, name, text: whole(&message.parts) }
}

/// Returns an object with more fields.
fn with(object: &Value, fields: &[(&str, Value)]) -> Value {
    let mut object = object.clone();
    for (name, value) in fields {
        object[*name] = value.clone();
    }
    object
}

impl From<Problem> for Refused {
    fn from(problem: Problem) -> Refused {
        let (code, kind, text) = problem.for_model();
        Refused { code, kind, text }
    }
}
