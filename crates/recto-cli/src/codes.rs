//! Every failure has a code that stays: this table says what it means, shows it, and says what to do.
//!
//! `recto help CODE` prints an entry, and `docs/errors.md` holds them all. The first two digits are the exit code. A
//! code is never given to something else, and a retired one is not used again.

use std::fmt;

/// What a code stands for.
#[derive(Debug)]
pub(crate) struct Meaning {
    number: u16,
    /// The failure in a few words.
    pub(crate) title: &'static str,
    /// When it happens, and why it is a failure.
    explanation: &'static str,
    /// A command and what it says on stderr, `…` for the rest of a line; without `$` only the latter, where no command
    /// makes it happen.
    example: &'static str,
    /// What to do about it.
    remedy: &'static str,
}

macro_rules! codes {
    ($($name:ident = $number:literal, $title:literal, $explanation:literal, $example:literal, $remedy:literal;)*) => {
        /// The code of a failure.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub(crate) enum Code {
            $(#[doc = $title] $name = $number,)*
        }

        /// All codes, in order.
        pub(crate) const TABLE: &[Meaning] = &[$(Meaning {
            number: $number,
            title: $title,
            explanation: $explanation,
            example: $example,
            remedy: $remedy,
        },)*];
    };
}

codes! {
    CannotRead = 101, "a file cannot be read",
        "The system refused to open, list or read it; the cause is what the system said.",
        "$ recto explain gone.json\nerror[R0101]: cannot read gone.json\ncause: No such file or directory (os error 2)",
        "Check the name, the folder it is relative to, and who may read it.";
    CannotWrite = 102, "a file cannot be written",
        "The system refused to create, write or move it; the cause is what the system said. Nothing half-written stays, \
         and what stood there before still does.",
        "$ recto replay chat.json --pages gone/pages.jsonl\nerror[R0102]: cannot write gone/pages.jsonl\n\
         cause: No such file or directory (os error 2)",
        "Check that the folder exists, that you may write to it, and that the disk has room.";
    CannotPrint = 103, "the output cannot be written",
        "Standard output took only a part of it, or nothing. That whoever reads the output goes away early, as `head` \
         does, is no failure.",
        "$ recto demo > /dev/full\nerror[R0103]: cannot write to stdout\ncause: No space left on device (os error 28)",
        "Send the output elsewhere, or make room where it goes.";
    CannotWatch = 104, "Ctrl-C cannot be watched for",
        "The system refused to let the command know of an interrupt, so it could not tidy up after one. It does not \
         start.",
        "error[R0104]: cannot watch for Ctrl-C\ncause: Resource temporarily unavailable (os error 11)",
        "Try again when the system has resources to spare.";
    Defect = 105, "a defect in Recto",
        "Something that holds by construction did not, and was noticed before anything invalid got out.",
        "error[R0105]: the page would be invalid: call \"c1\" has no result",
        "Please report it with the command, and if you can with the conversation that caused it.";
    StoreBusy = 106, "the store is in use",
        "Another process was writing to it for longer than Recto waits. Nothing was written.",
        "error[R0106]: database is locked\nhint: another process is writing; try again",
        "Try again when the other process is done.";
    StoreFull = 107, "no space left for the store",
        "The disk is full, or a limit is reached. What was acknowledged before is there; nothing of this was written.",
        "error[R0107]: no space left: database or disk is full\nhint: make space, then try again; nothing was written",
        "Make space, or move the store with `recto backup` and `recto restore`.";
    StoreReadOnly = 108, "the store can't be written to",
        "The file, its folder or the whole file system is read-only for you. It can still be read.",
        "error[R0108]: can't be written to: recto.db\nhint: check the permissions of the file and its folder",
        "Check who owns the file and its folder, or name another store with `--store`.";
    StoreUnusable = 109, "the store is damaged, or no store at all",
        "The file is not a store of Recto, or what it holds can't be read back as it was written.",
        "$ recto list --store chat.json\nstore: chat.json\nerror[R0109]: cannot open the store chat.json\ncause: not a store of Recto: chat.json\n\
         hint: name another file, or none for the usual one",
        "If it should be a store, keep a copy, see what `recto doctor` says, and restore a backup.";
    StoreNewer = 110, "a newer version of Recto wrote the store",
        "Its schema is one that this version does not know. Nothing was changed.",
        "$ recto list --store newer.db\nstore: newer.db\nerror[R0110]: cannot open the store newer.db\n\
         cause: the store has schema 9999; this version of Recto …",
        "Use the version of Recto that wrote it, or a newer one.";
    StoreFailed = 111, "reading or writing the store failed",
        "The system refused something that is none of the above; the message is what it said.",
        "error[R0111]: the store: disk I/O error",
        "Check the disk; then try again.";
    Damaged = 112, "the check of a store found damage",
        "`recto doctor` prints everything that it found on stdout.",
        "error[R0112]: the store is damaged; findings: 1\ncause: conversation \"monday\": the sums of entry #3 do not \
         follow from those before it",
        "Keep a copy of the file. Restore a backup; or export what can still be read, and import it into a new store.";
    InUse = 113, "another call goes on with the session",
        "A provider that remembers is told one thing after the other. Nothing was sent.",
        "error[R0113]: Codex is still at work on an earlier call, as process 4711\nhint: wait until it has ended, then try \
         again",
        "Wait until the other call has ended, then try again.";
    ProgramFailed = 114, "a program could not be run, or did not do what was asked",
        "The program is missing, too old, or ended without an answer. What it said is in the message; nothing counts as \
         sent.",
        "$ recto run --with codex sunday Hi --config gone.toml\nerror[R0114]: there is no program gone\nhint: install it, \
         or say where it is",
        "Do what the hint says, then try again. `recto config` shows which program is run.";
    ProviderRefused = 115, "a provider refused a request, or could not be reached",
        "The message is what the provider said, or why there was no connection. Nothing counts as sent.",
        "$ recto run --with gpt-4o sunday Hi --store kept.db --config closed.toml\nstore: kept.db\nerror[R0115]: can't reach \
         closed at http://127.0.0.1:1/v1: …\nhint: check `url`, the network, and HTTPS_PROXY",
        "Do what the hint says, then try again. `recto config` shows where requests go.";
    TimedOut = 116, "something took longer than it may",
        "A provider or a program gave no sign for too long, and was given up. Nothing counts as sent.",
        "$ recto run --with codex sunday Hi --store kept.db --config slow.toml\nCodex 0.200.0\nstore: kept.db\nerror[R0116]: \
         slow printed nothing for 1s and was ended\nhint: check that it reaches its provider, or raise the limit",
        "Try again, or raise the limit in recto.toml: `recto help config` names the keys.";
    CannotListen = 117, "the server cannot listen",
        "The system refused the address; most often another server listens there already. The cause is what the system \
         said.",
        "error[R0117]: cannot listen at 127.0.0.1:7676\ncause: Address already in use (os error 98)\nhint: another server \
         may listen there already; --listen names another address, and port 0 is any that is free",
        "End the other server, or take another address with `--listen` or `listen` under [server] in recto.toml.";
    StoreUnreachable = 118, "the store can't be reached",
        "The server that keeps the store did not answer, or the connection to it was lost and could not be made again in \
         time. Nothing was written.",
        "error[R0118]: the store can't be reached: postgres://recto@db1/recto?schema=recto: error connecting to …\n\
         hint: check that the server runs and can be reached, then try again",
        "Check the address, the network and the server; then try again.";
    Indeterminate = 119, "it is not known whether something was written",
        "The connection to the server that keeps the store was lost at the very moment of a commit, and what became of \
         it could not be found out in time.",
        "error[R0119]: it is not known whether it was written: the answer to a commit was lost; …\n\
         hint: look whether it is there before you try again; a repeat with the same key is safe",
        "When the server is back, look whether it is there before you do it again.";
    UnknownArgument = 201, "an unknown command, option or topic",
        "The command line holds a word that means nothing at its place.",
        "$ recto explian chat.json\nerror[R0201]: unrecognized subcommand 'explian'",
        "Look at the suggestion below the error, or at `recto help` and `recto help COMMAND`.";
    BadValue = 202, "a value that an option does not take",
        "The option is known, but what is given to it is not of its kind.",
        "$ recto explain chat.json --window lots\nerror[R0202]: invalid value 'lots' for '--window <N>': expected a \
         number of tokens such as 32000, 32_000, 32k or 1m",
        "Give a value of the kind that the error names; `recto help COMMAND` describes every option.";
    MissingArgument = 203, "something is missing on the command line",
        "A command needs a file, an option a value, or `recto` itself a command.",
        "$ recto compile\nerror[R0203]: the following required arguments were not provided:\n  <FILE|NAME>",
        "Add what the error names.";
    Conflict = 204, "options that exclude each other",
        "Both options are known, but together they ask for two different things.",
        "$ recto compile chat.json --turn 1 --input Why?\nerror[R0204]: the argument '--turn <K>' cannot be used with \
         '--input <TEXT>'",
        "Leave one of them out.";
    NotConfirmed = 205, "an erase that nobody has confirmed",
        "What is erased can't be had back, so `recto erase` asks on a terminal, and needs `--yes` elsewhere. Nothing was \
         erased.",
        "$ recto erase monday --store kept.db\nstore: kept.db\nerror[R0205]: nothing was erased: conversation \"monday\" with \
         its 1 entries\nhint: say --yes if it is to go for good",
        "Say `--yes`, or answer `yes` on a terminal, if you are sure.";
    IsFolder = 301, "a folder where a file is meant",
        "A single file is read or written here. Only `recto replay` and `recto import` take folders to read.",
        "$ recto explain chats\nerror[R0301]: chats is a folder\nhint: name one of its files; `recto replay` and `recto \
         import` take folders",
        "Name a file.";
    NoTranscripts = 302, "a folder without transcripts",
        "`recto replay` and `recto import` read the *.json, *.jsonl and *.traj that lie directly in a folder, and there are none.",
        "$ recto replay empty\nerror[R0302]: no *.json, *.jsonl or *.traj in empty",
        "Name the folder in which they lie, or the files themselves.";
    TooLarge = 303, "a file that is too large",
        "Transcripts are read up to 1024 MiB, policies and configuration files up to 1 MiB.",
        "$ recto explain huge.json\nerror[R0303]: huge.json is too large: at most 1024 MiB are read\n\
         hint: split it into several files",
        "Split it. One conversation a line (JSONL) is easily parted between two lines.";
    NotUtf8 = 304, "a file that is not UTF-8",
        "Every file that Recto reads is text in UTF-8. The place of the first wrong byte is told; nothing is guessed.",
        "$ recto explain latin1.json\nerror[R0304]: cannot read latin1.json\ncause: line 1, column 31: byte 0xE9 is not \
         valid UTF-8\nhint: convert it to UTF-8",
        "Convert it, for example with `iconv -f LATIN1 -t UTF-8`.";
    StdinTwice = 305, "standard input is asked for twice",
        "`-` stands for standard input, which has an end: a second reading would find nothing.",
        "$ recto replay - -\nerror[R0305]: stdin can be read only once\nhint: give `-` a single time",
        "Give `-` once.";
    OverInput = 306, "output that would replace the input",
        "`--pages` or `--output` names a file that is also to be read.",
        "$ recto replay chat.json --pages chat.json\nerror[R0306]: chat.json is one of the files to read\n\
         hint: write the pages to another file",
        "Write to another file.";
    BadTranscript = 310, "a transcript that cannot be read",
        "It is not JSON, or not the JSON of a conversation in any format that Recto reads. The cause names the line and the column. Nothing \
         of the file is used unless all of it can be read.",
        "$ recto explain broken.json\nerror[R0310]: cannot read broken.json\ncause: line 1, column 10: messages[0]: \
         unknown role \"usr\"\nhint: known roles: system, developer, user, assistant, tool",
        "Correct the file at that place, or whatever wrote it.";
    BadConversation = 311, "a conversation that no page can hold",
        "It can be read, but what it says contradicts itself, and no provider would take it.",
        "$ recto explain twice.json\nerror[R0311]: conversation \"twice\" cannot be used\ncause: messages[0]: assistant \
         entry: call id \"c\" stands twice in one step",
        "Correct the message that the cause names.";
    SeveralConversations = 312, "several conversations where one is meant",
        "A page belongs to one conversation, and the file has more.",
        "$ recto explain two.jsonl\nerror[R0312]: two.jsonl has 2 conversations\nhint: pick one with --conversation: \
         monday, tuesday",
        "Pick one with `--conversation ID`, or take `recto replay`, which takes them all.";
    NoConversation = 313, "no conversation has this id",
        "`--conversation` names none of those that were read. Conversations without an id are called after their file: \
         FILE, or FILE#1, FILE#2, …",
        "$ recto explain two.jsonl --conversation mondya\nerror[R0313]: no conversation \"mondya\"\nhint: the nearest \
         ids: monday, tuesday",
        "Take one of the ids that the hint names.";
    SameId = 314, "several conversations have this id",
        "An id that stands for two conversations can't pick one.",
        "$ recto explain same.jsonl --conversation monday\nerror[R0314]: 2 conversations of same.jsonl have this id\n\
         hint: ids must differ to be picked by",
        "Give them ids that differ, or put them into files of their own.";
    NoMessages = 315, "a conversation without messages",
        "There is nothing to answer, so there is no page.",
        "$ recto compile silent.json\nerror[R0315]: the conversation has no messages\nhint: say something with --input",
        "Say something with `--input`.";
    NoTurn = 316, "no such turn",
        "`--turn K` is the page that led to assistant message K, counted from 0, and the conversation has fewer.",
        "$ recto compile chat.json --turn 9\nerror[R0316]: no turn 9: assistant messages in the conversation: 2\n\
         hint: turns are counted from 0 to 1",
        "Take a turn in the range that the hint names, or leave `--turn` out for the next page.";
    NoPage = 317, "a turn without a page",
        "The conversation begins with this assistant message: nothing was sent before it.",
        "$ recto compile greeting.json --turn 0\nerror[R0317]: turn 0 has no page",
        "Take a later `--turn`, or say something with `--input`.";
    BadFields = 318, "fields of a request that its provider refuses",
        "A request's fields beside its messages pass through as they are. With these the body would break a rule of its \
         provider; without them it would not. The causes name them.",
        "$ recto compile fields.json --for gpt-5.2 --wire openai_chat\nerror[R0318]: fields of the request itself make it one that openai_chat refuses\n\
         cause: temperature: gpt-5.2 takes only the default, 1",
        "Remove or correct the fields that the causes name, or take a model or a wire that they are meant for.";
    UnknownModel = 320, "an unknown model",
        "`--for` names no model at all. A name that Recto knows nothing about is no failure: what is safe is assumed, and \
         said.",
        "$ recto explain chat.json --for ''\nerror[R0320]: unknown model \"\"\nhint: name a model; `recto models` lists \
         those that are known",
        "Name a model. Facts about one that isn't known can be given in recto.toml; see `recto help models`.";
    UnknownPolicy = 321, "an unknown policy",
        "`--policy`, or `policy` in a configuration file, is neither a built-in policy nor a file.",
        "$ recto explain chat.json --policy first-chars\nerror[R0321]: unknown policy \"first-chars\"\nhint: did you \
         mean \"first_chars\"?",
        "Take one of the built-in policies that the hint lists, or name a TOML or JSON file.";
    BadPolicy = 322, "a policy that cannot be used",
        "The file is neither TOML nor JSON, no policy, or has numbers that can't work. The cause names the line and the \
         column.",
        "$ recto explain chat.json --policy chat.json\nerror[R0322]: cannot use policy chat.json\ncause: line 1, column …",
        "Correct the file at the place that the cause names; `recto policy check FILE` looks at it alone.";
    BadSettings = 323, "settings that cannot work",
        "Each of them is known, but together they leave nothing to do: a reserve that takes the whole window, for \
         example.",
        "$ recto compile chat.json --window 2k --reserve 2k\nerror[R0323]: a reserve of …",
        "Do what the hint says: usually a larger `--window` or a smaller `--reserve`.";
    BadModels = 324, "a file of models that cannot be used",
        "The file is neither TOML nor JSON, has keys that mean nothing, or facts that can't be true. The cause names the \
         line and the column, or the model.",
        "$ recto models --from llama.toml\nerror[R0324]: cannot use models of llama.toml\ncause: line 2, column 1: unknown \
         field `windwo`, …\nhint: did you mean \"window\"?",
        "Correct the file at that place; `recto help models` and docs/formats.md tell which keys there are.";
    NoUpstream = 325, "no provider answers for a model",
        "Models of OpenAI, Anthropic, Google and Ollama have theirs built in; all others go where recto.toml says.",
        "$ recto run --with glm-5.3 sunday Hi\nerror[R0325]: no upstream answers for model \"glm-5.3\"\nhint: add `models = \
         [\"glm-5.3\"]` to an [upstream.NAME] in recto.toml",
        "Add an [upstream.NAME] to recto.toml, as `recto help config` shows.";
    Unguarded = 326, "an address that others reach, and no keys",
        "Whoever reaches the server could read and write everything, so it does not start.",
        "$ recto serve --listen 0.0.0.0:0 --store kept.db\nstore: kept.db\nerror[R0326]: 0.0.0.0:0 can be reached by others, and \
         there are no keys\nhint: make a key with `recto keys add NAME`, or listen at 127.0.0.1",
        "Make a key with `recto keys add`, or listen at an address of this machine alone.";
    BadToml = 330, "a configuration file that is not TOML",
        "The file breaks TOML's own rules at the place that is told.",
        "$ recto explain chat.json --config open.toml\nerror[R0330]: cannot use open.toml\ncause: line 2, column 14: \
         invalid basic string, expected `\"`",
        "Correct the file at that place. `recto config` shows which files are read.";
    UnknownKey = 331, "an unknown key in a configuration file",
        "A key that means nothing is refused, because it is more often a slip than a wish.",
        "$ recto explain chat.json --config slip.toml\nerror[R0331]: cannot use slip.toml\ncause: line 2, column 1: \
         unknown key \"windwo\" in [defaults]\nhint: did you mean \"window\"?",
        "Take the key that the hint names, or remove the line.";
    BadKeyValue = 332, "a wrong value in a configuration file",
        "The key is known, but its value is of another kind.",
        "$ recto explain chat.json --config wrong.toml\nerror[R0332]: cannot use wrong.toml\ncause: line 2, column 10: \
         window is a boolean",
        "Give a value of the kind that the hint names.";
    BrokenRules = 340, "a request body that breaks rules",
        "The provider would refuse it. `recto validate` prints every rule that it breaks, each with its place.",
        "$ recto validate --wire openai_chat nobody.json > violations.txt\nerror[R0340]: nobody.json breaks 2 rules of \
         openai_chat",
        "Correct what the lines on stdout name, or check it by another provider's rules with `--wire`.";
    NotFound = 350, "nothing of this name is kept",
        "The store has no such conversation, entry or call.",
        "$ recto show wednesday --store kept.db\nstore: kept.db\nerror[R0350]: no conversation \"wednesday\"",
        "`recto list` lists the conversations, `recto show NAME` their entries, `recto turns NAME` their calls.";
    Exists = 351, "something of this name is there already",
        "A name is given once, also after an erase; and a file that stands there is not replaced unasked.",
        "$ recto fork monday monday --store kept.db\nstore: kept.db\nerror[R0351]: conversation \"monday\" exists already",
        "Take another name; of files, `--replace` replaces one.";
    Differs = 352, "what is kept differs from what was expected",
        "An import has another past than the conversation of its name, or somebody else has written meanwhile.",
        "error[R0352]: conversation \"monday\" was not imported\ncause: entry #3 of conversation \"monday\" is another than the \
         one to import\nhint: import it under another name: --as NAME",
        "Import it under another name with `--as`, or try again.";
    Erased = 353, "the conversation was erased",
        "Nothing is left of it but its name, which is not taken again.",
        "$ recto show saturday --store kept.db\nstore: kept.db\nerror[R0353]: conversation \"saturday\" was erased",
        "Import it under another name, if there is still a file.";
    HasForks = 354, "other conversations go on from it",
        "They share what would be erased. The error names them.",
        "$ recto erase sunday --yes --store kept.db\nstore: kept.db\nerror[R0354]: other conversations go on from \
         \"sunday\": sunday-again",
        "Erase them first, or all together with `--with-forks`.";
    TooMuch = 355, "more at once than is taken",
        "Names, batches and lists of entries have bounds.",
        "$ recto erase monday --entries 0-1000000 --yes --store kept.db\nerror[R0355]: more than 1000 entries at once\n\
         hint: erase them in several goes, or the whole conversation",
        "Do it in several goes.";
    NoStore = 356, "there is no store",
        "Conversations are kept in a file that `recto import` makes, and there is none where it was looked for.",
        "$ recto list --store gone.db\nerror[R0356]: there is no store at gone.db\nhint: `recto import FILE` makes it; \
         --store names another",
        "Import something, or name the store with `--store`, RECTO_STORE or `path` under [store] in recto.toml.";
    NotImported = 357, "something was not imported",
        "The files that stderr names were refused, each with the reason; all others are kept.",
        "$ recto import broken.json --store kept.db\nstore: kept.db\nbroken.json: not imported [R0310]: …\n  hint: …\n\
         error[R0357]: not imported: 1 of 1",
        "Do what is said for each of them, and import again: what is kept already is not added twice.";
    Refused = 358, "what was asked for can't be expanded",
        "The page shows it already, or there is nothing of that handle, or not so many lines or items.",
        "$ recto expand monday m0 --store kept.db\nstore: kept.db\nerror[R0358]: …",
        "`recto explain NAME` tells what the page shows, changes and leaves out.";
    BadRequest = 370, "a request that the server can't take",
        "The HTTP API was sent JSON that is none, an unknown field or parameter, or a value that is not of its kind. The \
         detail says which, and where. Nothing was done.",
        "error[R0370]: the body: unknown field `texts`, expected one of `id`, `section`, … at line 1 column 42",
        "Send what docs/api.md and `/openapi.json` describe.";
    NotLetIn = 371, "who asks is not let in",
        "The server needs a key of Recto, or the one that was sent is unknown or was revoked; or the request names another \
         host, or comes from a page of another server.",
        "error[R0371]: the key is unknown or was revoked; `recto keys add` makes one",
        "Make a key with `recto keys add NAME`, and send it once; `hosts` under [server] in recto.toml lists other names.";
    Crowded = 372, "too much at once",
        "So many requests, replays or streams of one tenant run already. Nothing was done.",
        "error[R0372]: too many requests of this tenant run at once; wait for one",
        "Wait for one to end, then try again; `requests_per_tenant` under [server] in recto.toml allows more.";
    Overflow = 401, "the page does not fit",
        "What may never go is larger than the window less its reserve, or the policy may not leave out enough. The \
         breakdown says what takes the room; nothing is cut in silence.",
        "$ recto compile chat.json --window 20 --reserve 10\nerror[R0401]: the page does not fit: …",
        "Do what the hint says: a larger window, a smaller reserve, or a policy that leaves more out.";
    SomeOverflow = 402, "some pages of a replay do not fit",
        "The table tells of those that do, and `--pages` holds them. The causes are the first of the others, with their \
         breakdown.",
        "$ recto replay chat.json --window 20 --reserve 10 > table.txt\nerror[R0402]: pages that do not fit: …",
        "As for R0401; `--json` lists every page that does not fit.";
}

impl Code {
    /// Returns the exit code that goes with it.
    pub(crate) fn exit_code(self) -> u8 {
        exit_code(self as u16)
    }
}

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "R{:04}", *self as u16)
    }
}

impl Meaning {
    /// Returns what a code stands for, written as `R0301` in any case.
    pub(crate) fn of(code: &str) -> Option<&'static Meaning> {
        TABLE.iter().find(|meaning| meaning.code().eq_ignore_ascii_case(code))
    }

    /// Returns the code as it is shown.
    pub(crate) fn code(&self) -> String {
        format!("R{:04}", self.number)
    }

    /// Returns the exit code that goes with it.
    pub(crate) fn exit_code(&self) -> u8 {
        exit_code(self.number)
    }
}

fn exit_code(number: u16) -> u8 {
    u8::try_from(number / 100).unwrap_or(1)
}

impl fmt::Display for Meaning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}: {} (exit code {})\n", self.code(), self.title, self.exit_code())?;
        writeln!(f, "{}\n\nExample:", wrapped(self.explanation))?;
        for line in self.example.lines() {
            writeln!(f, "  {line}")?;
        }
        write!(f, "\nWhat to do:\n{}", wrapped(self.remedy))
    }
}

/// Breaks lines between words so that they stay readable.
fn wrapped(text: &str) -> String {
    const WIDTH: usize = 96;
    let mut lines: Vec<String> = Vec::new();
    for word in text.split(' ') {
        match lines.last_mut() {
            Some(line) if line.chars().count() + 1 + word.chars().count() <= WIDTH => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.into()),
        }
    }
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    const PAGE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/errors.md");
    const INTRO: &str = "\
# Errors

Every failure of the `recto` command has a code that stays the same from version to version, shown as
`error[R0301]: …`. `recto help R0301` prints what stands here. The first two digits are the exit code; an interrupted
command ends with 130 and has no code.

| code | exit code | title |
|---|---|---|
";

    fn markdown() -> String {
        let mut text = INTRO.to_string();
        for it in TABLE {
            let code = it.code();
            text += &format!("| [{code}](#{}) | {} | {} |\n", code.to_lowercase(), it.exit_code(), it.title);
        }
        for it in TABLE {
            text += &format!("\n## {}\n\n**{}** (exit code {})\n\n", it.code(), capital(it.title), it.exit_code());
            text += &format!("{}\n\n```text\n{}\n```\n\n{}\n", it.explanation, it.example, it.remedy);
        }
        text
    }

    fn capital(title: &str) -> String {
        let (first, rest) = title.split_at(1);
        first.to_uppercase() + rest
    }

    #[test]
    fn the_page_of_errors_says_what_the_table_says() {
        if std::env::var_os("RECTO_BLESS").is_some() {
            fs::write(PAGE, markdown()).unwrap();
        }
        let page = fs::read_to_string(PAGE).unwrap_or_default();
        assert!(
            page == markdown(),
            "docs/errors.md differs from the table: `RECTO_BLESS=1 cargo test -p recto-cli --bins` writes it again"
        );
    }

    #[test]
    fn codes_ascend_and_examples_show_their_own() {
        assert!(TABLE.windows(2).all(|pair| pair[0].number < pair[1].number));
        for it in TABLE {
            assert!(it.example.contains(&format!("error[{}]: ", it.code())), "{}", it.code());
            assert!((1..=4).contains(&it.exit_code()), "{}", it.code());
            assert!(it.explanation.ends_with(['.', '…']) && it.remedy.ends_with('.'), "{}", it.code());
            assert!(it.title.starts_with(char::is_lowercase) || it.title.starts_with("Ctrl-C"), "{}", it.code());
        }
        assert_eq!((Code::IsFolder.to_string(), Code::IsFolder.exit_code()), ("R0301".into(), 3));
        assert_eq!(Meaning::of("r0301").map(|it| it.title), Some("a folder where a file is meant"));
        assert!(Meaning::of("R0300").is_none());
    }
}
