//! `recto list`: the conversations that are kept.

use crate::args::ListArgs;
use crate::config::Config;
use crate::failure::Failure;
use crate::kept::Kept;
use crate::table::{self, Side};
use crate::{clock, entries, talk};
use recto::entry::Millis;
use recto::{Role, Seq, Tokens};
use recto_engine::store::ForkPoint;
use recto_engine::{Conversation, ConversationId, Tenant};
use serde::Serialize;

/// How many conversations are read at once.
const PAGE_ROWS: usize = 500;
/// How many entries are looked at for what the user said first.
const FIRST_ENTRIES: usize = 8;
/// How wide a name and a title may be.
const NAME_WIDTH_MAX: usize = 40;
const TITLE_WIDTH_MAX: usize = 60;

/// Prints the conversations that are kept, in the order of their names.
pub(crate) fn run(args: &ListArgs, config: &Config) -> Result<(), Failure> {
    let kept = Kept::open(&args.store, config)?;
    let limit = usize::try_from(args.limit).unwrap_or(usize::MAX);
    let mut found: Vec<Conversation> = Vec::new();
    let mut after = args.after.as_deref().map(ConversationId::from);
    // One more than is wanted tells whether there are more.
    while found.len() <= limit {
        let rows = PAGE_ROWS.min(limit + 1 - found.len());
        let page = kept.run(kept.engine.list(&Tenant::default(), after.as_ref(), rows))?;
        let Some(last) = page.last() else { break };
        after = Some(last.id.clone());
        found.extend(page);
    }
    let more = found.len() > limit;
    found.truncate(limit);
    let rows = found.iter().filter_map(|it| Failure::unless_gone(Row::of(&kept, it)).transpose());
    let rows = rows.collect::<Result<Vec<_>, _>>()?;
    let output = Output { conversations: rows, more };
    if args.output.json { talk::json(&output) } else { talk::text(&output.table()) }
}

/// What `--json` prints; `recto list --help` tells its shape.
#[derive(Serialize)]
struct Output {
    conversations: Vec<Row>,
    more: bool,
}

#[derive(Serialize)]
struct Row {
    conversation: ConversationId,
    entries: u64,
    tokens: Tokens,
    tokenizer: String,
    created: Millis,
    updated: Millis,
    title: String,
    from: Option<ForkPoint>,
}

impl Row {
    fn of(kept: &Kept, it: &Conversation) -> Result<Row, Failure> {
        let sums = it.tally.sums();
        let title = match it.title.trim() {
            // Words of entries are never kept as a title: they would outlive the entry when that is erased.
            "" => first_words(kept, it)?,
            title => title.into(),
        };
        Ok(Row {
            conversation: it.id.clone(),
            entries: sums.entries,
            tokens: sums.tokens,
            tokenizer: it.tokenizer.to_string(),
            created: it.created,
            updated: it.updated,
            title,
            from: it.from.clone(),
        })
    }
}

fn first_words(kept: &Kept, it: &Conversation) -> Result<String, Failure> {
    let first = kept.run(kept.engine.read(&kept.at(it.id.as_str()), Seq(0), FIRST_ENTRIES))?;
    let said = first.iter().find(|entry| entry.role() == Role::User).or(first.first());
    Ok(said.map_or(String::new(), |entry| table::cut(&entries::line_of(entry.shown()), TITLE_WIDTH_MAX)))
}

impl Output {
    fn table(&self) -> String {
        if self.conversations.is_empty() {
            return "no conversations".into();
        }
        let mut rows = vec![["conversation", "entries", "tokens", "updated", "title"].map(String::from)];
        rows.extend(self.conversations.iter().map(|row| {
            let name = table::cut(&talk::harmless(row.conversation.as_str()), NAME_WIDTH_MAX);
            let title = table::cut(&talk::harmless(&row.title.replace('\n', " ")), TITLE_WIDTH_MAX);
            [name, row.entries.to_string(), row.tokens.to_string(), clock::minute(row.updated), title]
        }));
        let lines = table::aligned(&rows, [Side::Left, Side::Right, Side::Right, Side::Left, Side::Left]);
        if !self.more {
            return lines;
        }
        let last = self.conversations.last().map_or("", |row| row.conversation.as_str());
        format!("{lines}\n\nthere are more: --limit, or --after {last:?}")
    }
}
