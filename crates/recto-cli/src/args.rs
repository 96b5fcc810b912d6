//! What can be asked for on the command line.

mod keys; // who may ask the server
#[cfg(feature = "mcp")]
mod mcp; // the store for agents' programs
mod pages; // which pages, of which conversations
mod run; // carrying a conversation on
mod search; // what to look for, and where
mod serve; // the server
mod settings; // for which model, by which policy
mod stored; // what can be done with conversations that are kept
mod summarize; // summaries by hand
mod values; // how values are spelled

use clap::{Parser, Subcommand, ValueHint};
use clap_complete::Shell;
use std::path::PathBuf;

pub(crate) use keys::{AddKeyArgs, KeysCommand, ListKeysArgs, RevokeKeyArgs};
#[cfg(feature = "mcp")]
pub(crate) use mcp::McpArgs;
pub(crate) use pages::{ConvertArgs, PageArgs, ReplayArgs, ValidateArgs};
pub(crate) use run::RunArgs;
pub(crate) use search::SearchArgs;
pub(crate) use serve::ServeArgs;
pub(crate) use settings::{ConfigArgs, ModelsArgs, PolicyCommand, SettingsArgs, TargetArgs};
pub(crate) use stored::{
    BackupArgs, DecisionsArgs, DoctorArgs, EraseArgs, ExpandArgs, ExportArgs, ForkArgs, ImportArgs, ListArgs,
    MigrateArgs, PinArgs, RestoreArgs, RevertArgs, ShowArgs, StoreArgs, TurnsArgs,
};
pub(crate) use summarize::SummarizeArgs;
pub(crate) use values::{address, tokens};

const AFTER_HELP: &str = "\
Examples:
  recto demo
  recto explain chat.json --window 32k
  recto compile chat.json --input 'And in March?' > body.json
  recto replay transcripts/ --policy safe,first_chars --plot costs.svg
  recto convert session.jsonl --to openai_responses > body.json
  recto import transcripts/ && recto list
  recto run --with claude-code monday 'Go on.'
  recto serve

Data goes to stdout, everything else to stderr. After an error stdout is empty, except for what
`replay` could do before it (pages that `--pages -` wrote, and the table if some pages don't fit),
for what `import` could import if it refused some files, for the beginning of an export, and for
what `validate` and `doctor` find.

Configuration: `recto.toml` in the current folder and in those around it, and in the user's folder
($XDG_CONFIG_HOME/recto, else ~/.config/recto), are read by compile, explain, replay, convert,
models, config and all commands that use the store; the others heed only its colour. The nearer file
wins key by key, options win over all files. RECTO_CONFIG names a file to read instead of all these.
See `recto help config`.

The store is one file: the one that --store names, else RECTO_STORE, else `path` under [store] in
the configuration, else recto/recto.db in the user's data folder ($XDG_DATA_HOME, else
~/.local/share). `import` makes it. It is for its owner's eyes alone. In its place an address like
postgres://recto@db1,db2/recto names a PostgreSQL database that many servers may use; its password
may stand in PGPASSWORD.

Recto reports nothing to anybody. Only `recto run` and `recto serve` talk to others: to the model or
the program that they are given, and to who asks; all other commands open no connections, but to
the database that is named as the store.

Every error has a code: `recto help R0301` explains one, `recto help errors` lists them.

Exit codes:
    0  done; also if whoever read the output went away early
    1  something else failed, such as reading or writing a file, or a defect in Recto
    2  wrong usage of the command line
    3  bad input or settings: a malformed file, an unknown policy, a turn that doesn't exist
    4  the page does not fit; of `replay`: some pages don't, the others were written
  130  interrupted";

const COMPLETIONS_AFTER_HELP: &str = "\
Examples:
  recto completions bash > ~/.local/share/bash-completion/completions/recto
  recto completions zsh > ~/.zfunc/_recto       with ~/.zfunc in $fpath
  recto completions fish > ~/.config/fish/completions/recto.fish";

const MAN_AFTER_HELP: &str = "\
Examples:
  recto man | man -l -
  recto man ~/.local/share/man/man1";

/// Compiles an agent's history into the page its model reads, and says what was left out and why.
#[derive(Debug, Parser)]
#[command(name = "recto", version, after_help = AFTER_HELP, max_term_width = 100)]
#[command(subcommand_required = true, arg_required_else_help = true)]
#[command(disable_help_subcommand = true)]
pub(crate) struct Cli {
    /// Read this configuration file, and no other; /dev/null is none.
    #[arg(long, global = true, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) config: Option<PathBuf>,

    #[command(subcommand)]
    pub(crate) command: Command,
}

/// What to do.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Print the request body of the next model call, or of a past one.
    #[command(after_help = pages::COMPILE_AFTER_HELP)]
    Compile(PageArgs),
    /// Print the receipt of a page: what is shown, changed or left out, why, and what it costs.
    #[command(after_help = pages::EXPLAIN_AFTER_HELP)]
    Explain(PageArgs),
    /// Walk through conversations call by call, and sum up what their pages cost and forget.
    #[command(after_help = pages::REPLAY_AFTER_HELP)]
    Replay(ReplayArgs),
    /// Write a conversation in another format: a request body, or a session that another program resumes.
    #[command(after_help = pages::CONVERT_AFTER_HELP)]
    Convert(ConvertArgs),
    /// Say whether a request body keeps its provider's rules, or which ones it breaks, and where.
    #[command(after_help = pages::VALIDATE_AFTER_HELP)]
    Validate(ValidateArgs),
    /// Carry a kept conversation on, with Claude Code, Codex or a model.
    #[command(after_help = run::RUN_AFTER_HELP)]
    Run(RunArgs),
    /// Take the requests of agents, and send pages instead: change their base URL, and nothing else.
    #[command(after_help = serve::SERVE_AFTER_HELP)]
    Serve(ServeArgs),
    /// Let an agent's program look into the store, by the Model Context Protocol.
    #[cfg(feature = "mcp")]
    #[command(after_help = mcp::MCP_AFTER_HELP)]
    Mcp(McpArgs),
    /// Make, list or revoke keys for the server.
    #[command(after_help = keys::KEYS_AFTER_HELP, disable_help_subcommand = true)]
    Keys {
        #[command(subcommand)]
        command: KeysCommand,
    },
    /// Keep conversations: of files, folders or exports; what is there already is not added again.
    #[command(after_help = stored::IMPORT_AFTER_HELP)]
    Import(ImportArgs),
    /// List the conversations that are kept.
    #[command(after_help = stored::LIST_AFTER_HELP)]
    List(ListArgs),
    /// Print the entries of a kept conversation, one line each, or one of them whole.
    #[command(after_help = stored::SHOW_AFTER_HELP)]
    Show(ShowArgs),
    /// Find what was said about something, in kept conversations or files.
    #[command(after_help = search::SEARCH_AFTER_HELP)]
    Search(SearchArgs),
    /// List the recorded calls of a kept conversation, and what their pages came to.
    #[command(after_help = stored::TURNS_AFTER_HELP)]
    Turns(TurnsArgs),
    /// Have a model make the summaries that would help the next page of a kept conversation.
    #[command(after_help = summarize::SUMMARIZE_AFTER_HELP)]
    Summarize(SummarizeArgs),
    /// Print what the next page of a kept conversation would not show, by its handle.
    #[command(after_help = stored::EXPAND_AFTER_HELP)]
    Expand(ExpandArgs),
    /// Keep entries from ever being shortened or left out for a reader.
    #[command(after_help = stored::PIN_AFTER_HELP)]
    Pin(PinArgs),
    /// List what was decided about a reader's pages.
    #[command(after_help = stored::DECISIONS_AFTER_HELP)]
    Decisions(DecisionsArgs),
    /// Take a decision back.
    #[command(after_help = stored::REVERT_AFTER_HELP)]
    Revert(RevertArgs),
    /// Begin a second conversation that shares the beginning of one.
    #[command(after_help = stored::FORK_AFTER_HELP)]
    Fork(ForkArgs),
    /// Write everything that is kept of a conversation, or of all, in a form that `import` reads back.
    #[command(after_help = stored::EXPORT_AFTER_HELP)]
    Export(ExportArgs),
    /// Erase a conversation, or the words of single entries, for good.
    #[command(after_help = stored::ERASE_AFTER_HELP)]
    Erase(EraseArgs),
    /// Copy the store to a file, while others may go on writing.
    #[command(after_help = stored::BACKUP_AFTER_HELP)]
    Backup(BackupArgs),
    /// Put a backup where the store is to be.
    #[command(after_help = stored::RESTORE_AFTER_HELP)]
    Restore(RestoreArgs),
    /// Check the whole store, and say what is wrong with it.
    #[command(after_help = stored::DOCTOR_AFTER_HELP)]
    Doctor(DoctorArgs),
    /// Carry everything that a store keeps over to PostgreSQL, and compare it there.
    #[command(after_help = stored::MIGRATE_AFTER_HELP)]
    Migrate(MigrateArgs),
    /// List the known models, or tell everything about one.
    #[command(after_help = settings::MODELS_AFTER_HELP)]
    Models(ModelsArgs),
    /// Show on a bundled conversation what pages and receipts look like.
    Demo,
    /// Print the settings that hold here, where each comes from, and which files were looked for.
    #[command(after_help = settings::CONFIG_AFTER_HELP)]
    Config(ConfigArgs),
    /// List the built-in policies, show one, or check a policy file.
    #[command(after_help = settings::POLICY_AFTER_HELP, disable_help_subcommand = true)]
    Policy {
        #[command(subcommand)]
        command: PolicyCommand,
    },
    /// Print a script that completes commands and options in a shell.
    #[command(after_help = COMPLETIONS_AFTER_HELP)]
    Completions {
        /// The shell that reads the script.
        shell: Shell,
    },
    /// Print the manual page of `recto`, or write the pages of all commands to a folder.
    #[command(after_help = MAN_AFTER_HELP)]
    Man {
        /// Write recto.1 and recto-COMMAND.1 to this folder instead; it is made if it isn't there.
        #[arg(value_hint = ValueHint::DirPath)]
        dir: Option<PathBuf>,
    },
    /// Print help on a command or an error code, or list all error codes.
    Help {
        /// A command, an error code such as R0301, or `errors` for the list of codes.
        topic: Option<String>,
    },
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn prepared_texts_are_narrow_enough_not_to_be_wrapped() {
        let mut all = Cli::command();
        let texts = all.get_subcommands_mut().filter_map(|it| it.get_after_help().map(ToString::to_string));
        let texts: Vec<String> = texts.chain([AFTER_HELP.to_string()]).collect();
        assert!(texts.len() > 20);
        for text in texts {
            let wide: Vec<&str> = text.lines().filter(|line| line.chars().count() > 100).collect();
            assert_eq!(wide, [""; 0]);
        }
    }

    #[test]
    fn the_help_names_every_built_in_policy() {
        let help = Cli::command().find_subcommand_mut("compile").unwrap().render_long_help().to_string();
        for policy in recto::Policy::presets() {
            assert!(help.contains(&*policy.name), "{}", policy.name);
        }
        for default in [crate::settings::MODEL, crate::settings::POLICY] {
            assert!(help.contains(&format!("[default: {default}]")), "{default}");
        }
    }
}
