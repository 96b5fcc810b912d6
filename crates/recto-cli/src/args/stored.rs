//! What can be done with conversations that are kept.

use super::settings::SettingsArgs;
use super::values::{age, range, seq, span, tokenizer_names};
use clap::builder::NonEmptyStringValueParser;
use clap::{ArgGroup, Args, ValueHint};
use recto::entry::Seq;
use recto::{Span, Tokenizer};
use std::ops::RangeInclusive;
use std::path::PathBuf;

pub(super) const IMPORT_AFTER_HELP: &str = "\
Examples:
  recto import chat.json
  recto import ~/.claude/projects/my-project/
  recto import session.jsonl --as monday
  recto import backup/*.jsonl --json

PATH is a file as `recto compile` reads it, an export of `recto export`, a folder of such files
(*.json, *.jsonl and *.traj), or `-` for stdin. A conversation is kept under its own id; one
without an id under the name of its file, and where the file has several, with # and what it is
called there, such as #task7-trial0, or #1, #2, ….

What is there already is compared and not added again: a file can be imported as often as it grows.
If what was said earlier has changed, the file is refused, and the others are imported all the same;
`--as` keeps it under another name. After Ctrl-C everything that was added stays, and the same
command goes on from there.

With --json one object is printed:
  imported   for each conversation: file, conversation (its name), known and added: entries
  failures   for each refused one: file, conversation (null: the whole file), code, error, hints";

pub(super) const LIST_AFTER_HELP: &str = "\
Examples:
  recto list
  recto list --after monday --limit 20
  recto list --json

Tokens are counted by the conversation's own tokenizer. Where a conversation has no title, what its
user said first stands there. Times are UTC.

With --json one object is printed:
  conversations  for each: conversation (its name), entries, tokens, tokenizer, created and updated
                 (milliseconds since 1970), title, from: of a fork, the conversation and the last
                 entry that both have; else null
  more           whether there are more after these";

pub(super) const SHOW_AFTER_HELP: &str = "\
Examples:
  recto show monday
  recto show monday --from 100 --count 20
  recto show monday m42                   one entry, whole

What is marked as secret is not shown; `recto export` has everything.

With --json one object is printed:
  conversation  its name
  entries       for each: seq (its place), tokens, and entry: all that is known of it
  more          whether there are more after these
With a handle it is the object of that entry alone.";

pub(super) const TURNS_AFTER_HELP: &str = "\
Examples:
  recto turns monday
  recto turns monday --reader critic --json

Calls are recorded by hosts that use the engine; a conversation that was only imported has none.
`recto compile NAME --turn K` makes the page of call K again.

With --json one object is printed:
  conversation, reader
  calls    for each: turn, at (milliseconds since 1970), totals: what its page came to, reported:
           the tokens that its provider counted, provider: whose session it went on with, if one
           remembers, and ticket
  more     whether there are more after these";

pub(super) const EXPAND_AFTER_HELP: &str = "\
Examples:
  recto expand monday m42
  recto expand monday m42 --lines 100-140
  recto expand monday m6 --search 'ERROR replay'
  recto expand monday m42 --in-place --reason 'the list is needed again'

Prints what the next page would not show; the options for model and policy say which page that is.
With --in-place it stands on that reader's next pages again, which is recorded as a decision;
without it nothing changes.

With --json one object is printed:
  handle, text, in_place   what was asked for, its text, and whether pages show it from now on
  tokens_before, tokens_after
                           what it costs on the page, now and in place";

pub(super) const PIN_AFTER_HELP: &str = "\
Examples:
  recto pin monday 7
  recto pin monday 3-9 --reader critic
  recto pin monday 3-9 --remove

Pinned entries are never shortened or left out on that reader's pages. --remove takes back every pin
that touches them.

With --json one object is printed: conversation, reader, first, last, and pinned (true), or removed:
how many pins were taken back.";

pub(super) const REVERT_AFTER_HELP: &str = "\
Examples:
  recto decisions monday
  recto revert monday 12

The decision stays on record, and what it touched is not reduced again for that reader.

With --json one object is printed: conversation, reader, reverted: the decision's number.";

pub(super) const DECISIONS_AFTER_HELP: &str = "\
Examples:
  recto decisions monday
  recto decisions monday --reader critic --json

What was decided about a reader's pages: what is shortened, left out, pinned or shown again, by
which pass and why. `recto revert NAME ORDINAL` takes one back.

With --json one object is printed: conversation, reader, and decisions: for each its ordinal, turn
(the call before which it was made), edit, policy, and reverted if it was taken back.";

pub(super) const FORK_AFTER_HELP: &str = "\
Examples:
  recto fork monday monday-again
  recto fork monday what-if --at 41

Both share what was said up to there; nothing is copied.

With --json one object is printed: conversation (the new one's name), from, upto (the last entry
that both have; null: none), entries.";

pub(super) const EXPORT_AFTER_HELP: &str = "\
Examples:
  recto export monday > monday.jsonl
  recto export monday -o monday.jsonl
  recto export --all -o everything/

An export holds everything that is kept of a conversation, one JSON object a line: entries with all
their fields, secrets included, decisions, calls and records. `recto import` reads it back, and what
is exported then is the same byte for byte. docs/store.md tells more of them.

With --all every conversation gets a file in the folder, NAME.jsonl; characters that a file name
can't have everywhere are written as %XX. A file that stands there already is replaced.

With --json, which needs -o or --all, one object is printed:
  exported   for each: conversation, file, entries";

pub(super) const ERASE_AFTER_HELP: &str = "\
Examples:
  recto erase monday
  recto erase monday --with-forks --yes
  recto erase monday --entries 3,5-9 --yes
  recto erase --older-than 90d --dry-run

Nothing of what was said is left in the store's files; of a conversation its name stays, so that it
isn't taken again, of an entry its place, length and hash. Forks share entries: what is erased in
one is erased in all. Backups and exports are files of their own, and are not touched.

With --older-than, a conversation stays while one that goes on from it is not that old, and so does
one whose name is in `keep` under [retention] in the configuration. `recto serve` does the same each
hour where `days` is set there.

On a terminal it asks first; elsewhere it needs --yes.

With --json one object is printed: conversations: the names of those that are gone, and entries: how
many entries lost their words. With --older-than: dry_run; conversations, for each its tenant,
conversation and updated; and sums: looked, conversations, entries, held (by those that go on from
them) and kept (by name).";

pub(super) const BACKUP_AFTER_HELP: &str = "\
Examples:
  recto backup monday.db
  recto backup --replace latest.db

A backup is a store itself, as it is at one moment; others may go on writing. It is for its owner's
eyes alone (mode 0600), like the store.

With --json one object is printed: file, bytes.";

pub(super) const RESTORE_AFTER_HELP: &str = "\
Examples:
  recto restore monday.db
  recto restore monday.db --replace       in the place of the store that is there
  recto restore monday.db --store other.db

The backup is checked first. Nobody may use the store meanwhile.

With --json one object is printed: file, store.";

pub(super) const DOCTOR_AFTER_HELP: &str = "\
Examples:
  recto doctor
  recto doctor --store other.db --json
  recto doctor --upgrade                  before a new version is started on an old store

Reads the whole store: whether the file is whole, and whether entries, sums, texts, decisions and
calls agree with each other. Others may write meanwhile. Nothing is changed, but that a store of an
older version is brought up to date, and an erase that was cut off is finished, as every command
does. With findings the exit code is 1.

With --upgrade a copy of an older store is made first, beside it and named after its schema, such
as recto.db.schema-3; it is compared with the store, and never replaces another. Stop all servers
before. Interrupted, it can be run again. A copy is put back with `recto restore FILE --replace`
by the version that wrote it. Of a store in a database, make a dump with the database's own tools
instead.

With --json one object is printed: store, schema, conversations, entries, decisions, calls, erasing
(conversations whose erase is under way), file_bytes, log_bytes, findings: for each its conversation
(null: the file) and what; and is_cut: whether there were more findings than are told. With
--upgrade also upgraded: from, to, file and bytes of the copy; null if the store was up to date.";

pub(super) const MIGRATE_AFTER_HELP: &str = "\
Examples:
  recto migrate --from sqlite:recto.db --to postgres://recto@db1,db2/recto
  recto migrate --from postgres://db1/recto --to 'postgres://db2/recto?schema=other' --json

Everything comes along as it is: conversations of all tenants with their forks, entries, readers,
decisions, calls, sessions and summaries, what clients are known by, keys of appends, access keys,
and the names of what was erased. Each conversation is read again on both sides and must have the
same digest.

Nobody may use either store meanwhile. After Ctrl-C, a kill or a lost connection the same command
goes on where it was; what is there already is compared, and one that differs is refused. The way
back to a file is `recto export` and `recto import`.

With --json one object is printed: conversations, rows and keys that were carried, and known:
conversations that were there already.";

/// Where conversations are kept.
#[derive(Clone, Debug, Default, Args)]
pub(crate) struct StoreArgs {
    /// The file, or the address of the database, in which conversations are kept [default: recto/recto.db in the user's
    /// data folder]
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) store: Option<PathBuf>,
}

/// Whose pages are meant.
#[derive(Debug, Args)]
pub(crate) struct ReaderArgs {
    /// The reader whose pages are meant.
    #[arg(long, value_name = "NAME", default_value = "main", value_parser = NonEmptyStringValueParser::new())]
    pub(crate) reader: String,
}

/// How much of a list is printed.
#[derive(Debug, Args)]
pub(crate) struct OutputArgs {
    /// Print JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

/// What to import.
#[derive(Debug, Args)]
pub(crate) struct ImportArgs {
    /// Files, exports, folders of such files (*.json, *.jsonl and *.traj), or `-` for stdin.
    #[arg(required = true, value_name = "PATH", value_hint = ValueHint::AnyPath)]
    pub(crate) paths: Vec<PathBuf>,

    /// Keep it under this name; for a single conversation.
    #[arg(long = "as", value_name = "NAME", value_parser = NonEmptyStringValueParser::new())]
    pub(crate) name: Option<String>,

    /// What counts the tokens of new conversations [default: as the configured model counts, else o200k]
    #[arg(long, value_name = "NAME", value_parser = tokenizer_names())]
    pub(crate) tokenizer: Option<Tokenizer>,

    #[command(flatten)]
    pub(crate) store: StoreArgs,

    #[command(flatten)]
    pub(crate) output: OutputArgs,
}

/// Which conversations to list.
#[derive(Debug, Args)]
pub(crate) struct ListArgs {
    /// Only those whose names come after this one.
    #[arg(long, value_name = "NAME")]
    pub(crate) after: Option<String>,

    /// At most so many.
    #[arg(long, value_name = "N", default_value_t = 1_000, value_parser = clap::value_parser!(u64).range(1..=1_000_000))]
    pub(crate) limit: u64,

    #[command(flatten)]
    pub(crate) store: StoreArgs,

    #[command(flatten)]
    pub(crate) output: OutputArgs,
}

/// Which entries to show.
#[derive(Debug, Args)]
pub(crate) struct ShowArgs {
    /// The conversation.
    pub(crate) name: String,

    /// One entry, whole: its handle or its place, such as m42 or 42.
    #[arg(conflicts_with_all = ["from", "count"], value_parser = seq)]
    pub(crate) handle: Option<Seq>,

    /// From this entry on.
    #[arg(long, value_name = "SEQ", default_value = "0", value_parser = seq)]
    pub(crate) from: Seq,

    /// At most so many entries.
    #[arg(long, value_name = "N", default_value_t = 1_000, value_parser = clap::value_parser!(u64).range(1..=1_000_000))]
    pub(crate) count: u64,

    #[command(flatten)]
    pub(crate) store: StoreArgs,

    #[command(flatten)]
    pub(crate) output: OutputArgs,
}

/// Which calls to list.
#[derive(Debug, Args)]
pub(crate) struct TurnsArgs {
    /// The conversation.
    pub(crate) name: String,

    #[command(flatten)]
    pub(crate) reader: ReaderArgs,

    /// From this call on.
    #[arg(long, value_name = "K", default_value_t = 0)]
    pub(crate) from: u64,

    /// At most so many calls.
    #[arg(long, value_name = "N", default_value_t = 1_000, value_parser = clap::value_parser!(u64).range(1..=1_000_000))]
    pub(crate) count: u64,

    #[command(flatten)]
    pub(crate) store: StoreArgs,

    #[command(flatten)]
    pub(crate) output: OutputArgs,
}

/// What to show again.
#[derive(Debug, Args)]
#[command(group = ArgGroup::new("range").args(["lines", "items", "search"]))]
pub(crate) struct ExpandArgs {
    /// The conversation.
    pub(crate) name: String,

    /// The handle that stands on the page, such as m42 or m42.1.
    pub(crate) handle: String,

    /// Only these lines, from 1, such as 10-20.
    #[arg(long, value_name = "A-B", value_parser = range)]
    pub(crate) lines: Option<RangeInclusive<usize>>,

    /// Only these items of a JSON array, from 0, such as 0-4.
    #[arg(long, value_name = "A-B", value_parser = range)]
    pub(crate) items: Option<RangeInclusive<usize>>,

    /// Only the lines that hold this text, and a few around them.
    #[arg(long, value_name = "TEXT", value_parser = NonEmptyStringValueParser::new())]
    pub(crate) search: Option<String>,

    /// Why, for the record.
    #[arg(long, value_name = "TEXT")]
    pub(crate) reason: Option<String>,

    /// Show it again on the reader's next pages.
    #[arg(long)]
    pub(crate) in_place: bool,

    #[command(flatten)]
    pub(crate) reader: ReaderArgs,

    #[command(flatten)]
    pub(crate) settings: SettingsArgs,

    #[command(flatten)]
    pub(crate) store: StoreArgs,

    #[command(flatten)]
    pub(crate) output: OutputArgs,
}

/// What to pin.
#[derive(Debug, Args)]
pub(crate) struct PinArgs {
    /// The conversation.
    pub(crate) name: String,

    /// One entry, or a stretch of them, such as 7 or 3-9.
    #[arg(value_name = "SEQ[-SEQ]", value_parser = span)]
    pub(crate) span: Span,

    /// Take back every pin that touches them.
    #[arg(long)]
    pub(crate) remove: bool,

    #[command(flatten)]
    pub(crate) reader: ReaderArgs,

    #[command(flatten)]
    pub(crate) store: StoreArgs,

    #[command(flatten)]
    pub(crate) output: OutputArgs,
}

/// Which decision to take back.
#[derive(Debug, Args)]
pub(crate) struct RevertArgs {
    /// The conversation.
    pub(crate) name: String,

    /// The decision's number; `recto decisions` lists them.
    pub(crate) ordinal: u64,

    #[command(flatten)]
    pub(crate) reader: ReaderArgs,

    #[command(flatten)]
    pub(crate) store: StoreArgs,

    #[command(flatten)]
    pub(crate) output: OutputArgs,
}

/// Whose decisions to list.
#[derive(Debug, Args)]
pub(crate) struct DecisionsArgs {
    /// The conversation.
    pub(crate) name: String,

    #[command(flatten)]
    pub(crate) reader: ReaderArgs,

    #[command(flatten)]
    pub(crate) store: StoreArgs,

    #[command(flatten)]
    pub(crate) output: OutputArgs,
}

/// Where to fork.
#[derive(Debug, Args)]
pub(crate) struct ForkArgs {
    /// The conversation.
    pub(crate) name: String,

    /// What the fork is called.
    #[arg(value_parser = NonEmptyStringValueParser::new())]
    pub(crate) new: String,

    /// The last entry that both have [default: the newest]
    #[arg(long, value_name = "SEQ", value_parser = seq)]
    pub(crate) at: Option<Seq>,

    #[command(flatten)]
    pub(crate) store: StoreArgs,

    #[command(flatten)]
    pub(crate) output: OutputArgs,
}

/// What to export.
#[derive(Debug, Args)]
pub(crate) struct ExportArgs {
    /// The conversation.
    #[arg(required_unless_present = "all", conflicts_with = "all")]
    pub(crate) name: Option<String>,

    /// All conversations, each to a file of its own.
    #[arg(long)]
    pub(crate) all: bool,

    /// Write to this file instead of stdout; with --all, to this folder [default: the current one]
    #[arg(short, long, value_name = "OUT", value_hint = ValueHint::AnyPath)]
    pub(crate) output: Option<PathBuf>,

    /// Show secrets and personal data as placeholders; such an export is for reading, not for importing.
    #[arg(long)]
    pub(crate) redacted: bool,

    #[command(flatten)]
    pub(crate) store: StoreArgs,

    /// Print JSON, where the export itself goes to a file.
    #[arg(long)]
    pub(crate) json: bool,
}

/// What to erase.
#[derive(Debug, Args)]
pub(crate) struct EraseArgs {
    /// The conversation.
    #[arg(required_unless_present = "older_than", conflicts_with = "older_than")]
    pub(crate) name: Option<String>,

    /// All conversations of all tenants to which nothing was written for so long, such as 90d, 12w or 36h.
    #[arg(long, value_name = "AGE", value_parser = age, conflicts_with_all = ["with_forks", "entries"])]
    pub(crate) older_than: Option<i64>,

    /// Only tell which ones would go.
    #[arg(long, requires = "older_than")]
    pub(crate) dry_run: bool,

    /// Erase the conversations that go on from it, too.
    #[arg(long, conflicts_with = "entries")]
    pub(crate) with_forks: bool,

    /// Only the words of these entries, such as 3,5-9.
    #[arg(long, value_name = "SEQS", value_delimiter = ',', value_parser = span)]
    pub(crate) entries: Vec<Span>,

    /// Don't ask.
    #[arg(long)]
    pub(crate) yes: bool,

    #[command(flatten)]
    pub(crate) store: StoreArgs,

    #[command(flatten)]
    pub(crate) output: OutputArgs,
}

/// Where to write a backup.
#[derive(Debug, Args)]
pub(crate) struct BackupArgs {
    /// The file to write.
    #[arg(value_hint = ValueHint::FilePath)]
    pub(crate) file: PathBuf,

    /// Replace a file that stands there.
    #[arg(long)]
    pub(crate) replace: bool,

    #[command(flatten)]
    pub(crate) store: StoreArgs,

    #[command(flatten)]
    pub(crate) output: OutputArgs,
}

/// What to restore.
#[derive(Debug, Args)]
pub(crate) struct RestoreArgs {
    /// The backup.
    #[arg(value_hint = ValueHint::FilePath)]
    pub(crate) file: PathBuf,

    /// Replace the store that is there.
    #[arg(long)]
    pub(crate) replace: bool,

    #[command(flatten)]
    pub(crate) store: StoreArgs,

    #[command(flatten)]
    pub(crate) output: OutputArgs,
}

/// Which store to check.
#[derive(Debug, Args)]
pub(crate) struct DoctorArgs {
    /// Copy a store of an older version before it is brought up to date, and check it after that.
    #[arg(long)]
    pub(crate) upgrade: bool,

    #[command(flatten)]
    pub(crate) store: StoreArgs,

    #[command(flatten)]
    pub(crate) output: OutputArgs,
}

/// What to carry where.
#[derive(Debug, Args)]
pub(crate) struct MigrateArgs {
    /// The store to read: a file, as sqlite:FILE or its name alone, or the address of a database.
    #[arg(long, value_name = "STORE")]
    pub(crate) from: String,

    /// The address of the database to carry it to.
    #[arg(long, value_name = "ADDRESS")]
    pub(crate) to: String,

    #[command(flatten)]
    pub(crate) output: OutputArgs,
}
