//! The tools of common agents: one row for a way of calling a deed. The first row that applies counts.

use super::{Deed, Rule, matches};
use serde_json::{Map, Value};
use std::sync::OnceLock;

/// Arguments that hold a file.
const FILE: &str = "file_path|absolute_path|path|filepath|filePath|target_file|filename|notebook_path|relative_path";
/// Arguments that hold a command.
const COMMAND: &str = "command|cmd|script";
/// Arguments with which a read shows some lines only.
const LINES: &[&str] = &[
    "offset",
    "limit",
    "view_range",
    "range",
    "lines",
    "start_line",
    "end_line",
    "start_line_one_indexed",
    "end_line_one_indexed_inclusive",
    "line_start",
    "line_end",
    "line_number",
    "head",
    "tail",
    "pages",
];

/// Names, deed, where the target is, what makes it partial, and which command it must be.
type Row = (&'static [&'static str], Deed, &'static str, &'static [&'static str], &'static str);

const ROWS: &[Row] = &[
    // Editors with several commands: SWE-agent, OpenHands, Anthropic's text editor.
    (&["str_replace_editor", "str_replace_based_edit_tool"], Deed::Read, "path", LINES, "view"),
    (&["str_replace_editor", "str_replace_based_edit_tool"], Deed::Write, "path", &[], "create"),
    (&["str_replace_editor", "str_replace_based_edit_tool"], Deed::Edit, "path", &[], ""),
    // Claude Code, Gemini and Qwen CLI, Cline, Roo, opencode, pi, and servers of files.
    (&["read", "read_file", "view", "view_file", "cat"], Deed::Read, FILE, LINES, ""),
    (&["read_text_file", "get_file_contents", "document_reader", "notebookread"], Deed::Read, FILE, LINES, ""),
    (&["write", "write_file", "write_to_file", "create_file", "save_file"], Deed::Write, FILE, &["mode"], ""),
    (&["edit", "multiedit", "edit_file", "replace", "replace_in_file", "notebookedit"], Deed::Edit, FILE, &[], ""),
    (&["search_replace", "str_replace", "insert_content", "apply_diff"], Deed::Edit, FILE, &[], ""),
    (&["apply_patch"], Deed::Edit, "input|patch|patch_text|patchText", &[], ""),
    (&["grep", "grep_search", "search_files", "search_file_content", "codebase_search"], Deed::Search, FILE, &[], ""),
    (&["glob", "ls", "list", "list_dir", "list_directory", "list_files", "find", "tree"], Deed::Search, FILE, &[], ""),
    (&["bash", "shell", "powershell", "execute_bash", "exec_command"], Deed::Run, COMMAND, &[], ""),
    (&["local_shell", "container.exec", "exec", "start_process"], Deed::Run, COMMAND, &[], ""),
    (&["run_shell_command", "execute_command", "run_terminal_cmd", "run_command"], Deed::Run, COMMAND, &[], ""),
    // SWE-agent's own commands: a window of a file, and files that are created empty.
    (&["open"], Deed::Read, "path|file", &["path", "file"], ""),
    (&["create"], Deed::Write, "filename|path", &[], ""),
    (&["find_file", "search_dir", "search_file"], Deed::Search, "dir|file", &[], ""),
    // Tools that look something up say so in their names.
    (&["webfetch", "web_fetch", "fetch", "websearch", "web_search"], Deed::Search, "url", &[], ""),
    (&["get_*", "get-*", "list_*", "list-*", "search_*", "search-*", "fetch_*"], Deed::Search, "", &[], ""),
    (&["_fetch_*", "_get_*", "_list_*", "_search_*", "read_*", "lookup_*", "query_*"], Deed::Search, "", &[], ""),
    (&["find_*", "find-*", "search", "route"], Deed::Search, "", &[], ""),
];

fn rules() -> &'static [Rule] {
    static RULES: OnceLock<Vec<Rule>> = OnceLock::new();
    RULES.get_or_init(|| {
        let of_row = |&(names, does, target, partial, command): &Row| {
            let with = (!command.is_empty()).then(|| ("command".into(), command.into()));
            names.iter().map(move |&tool| Rule {
                tool: tool.into(),
                does,
                target: (!target.is_empty()).then(|| target.into()),
                whole_unless: partial.iter().map(|&name| name.into()).collect(),
                with: with.clone().into_iter().collect(),
            })
        };
        ROWS.iter().flat_map(of_row).collect()
    })
}

/// Returns whether any row could apply to a tool.
pub(super) fn knows(name: &str) -> bool {
    // One look at their first letters tells most of them apart.
    let first = name.as_bytes().first();
    let may_match = |tool: &[u8]| tool.first() == first || tool.first() == Some(&b'*');
    let mut rows = rules().iter().filter(|rule| may_match(rule.tool.as_bytes()));
    is_dispatcher(name) || rows.any(|rule| matches(&rule.tool, name))
}

/// Returns whether a tool is one that calls others by name.
pub(super) fn is_dispatcher(name: &str) -> bool {
    matches!(name, "execute-tool" | "execute_tool" | "call_tool" | "use_mcp_tool")
}

/// Returns the row that applies to a call.
pub(super) fn find(name: &str, arguments: &Map<String, Value>) -> Option<&'static Rule> {
    rules().iter().find(|rule| rule.applies(name, arguments))
}
