#!/usr/bin/env python3
"""Measures Recto beside its peers in one run, in turns, and writes docs/benchmarks.md. `scripts/bench` installs the peers
and calls this; see `scripts/bench --help`.

Everything that is told is a ratio of medians with its spread over the rounds: machines differ, and this one is not alone.
"""
import argparse
import base64
import json
import math
import os
import platform
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(HERE)
BUDGET = 100_000
SIZES = (100, 1_000, 10_000, 100_000)
STORED = (100, 1_000)
ROUNDS = 7
# How long a worker may take for one question; then it is asked for fewer repetitions.
PATIENCE_SECONDS = 0.4
REPEATS_MAX = 200


class Worker:
    """A process that does one thing again and again."""

    def __init__(self, name, command, folder=None):
        self.name = name
        self.process = subprocess.Popen(command, cwd=folder, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.repeats = 1
        self.came = None

    def ask(self, question):
        self.process.stdin.write(json.dumps(question) + "\n")
        self.process.stdin.flush()
        line = self.process.stdout.readline()
        if not line:
            raise RuntimeError(f"{self.name} has ended with {self.process.wait()}")
        return json.loads(line)

    def prepare(self, **task):
        self.ask(task)
        # The first runs warm up, and tell how often it can be asked to.
        slow = max(self.ask({"measure": 1})["seconds"][0], 1e-7)
        self.repeats = max(1, min(REPEATS_MAX, int(PATIENCE_SECONDS / slow)))
        return self

    def median(self):
        answer = self.ask({"measure": self.repeats})
        self.came = answer["came"]
        return statistics.median(answer["seconds"])

    def end(self):
        self.process.stdin.close()
        self.process.wait(timeout=60)


class Peers:
    """How each peer is started."""

    def __init__(self, options):
        self.options = options

    def start(self, language, name):
        if language == "rust":
            return Worker(name, [self.options.rust, name])
        if language == "python":
            return Worker(name, [self.options.python, os.path.join(HERE, "peers.py"), name])
        return Worker(name, ["node", "--max-old-space-size=8192", os.path.join(HERE, "peers.mjs"), name],
                      self.options.node)


def in_turns(workers, rounds=ROUNDS):
    """Medians of each worker, round by round, so that whatever else the machine does meets all of them alike."""
    times = {worker.name: [] for worker in workers}
    for _ in range(rounds):
        for worker in workers:
            times[worker.name].append(worker.median())
    return times


def ratio(times, base):
    """How many times as long as the base, with the spread over the rounds."""
    ratios = sorted(a / b for a, b in zip(times, base))
    return statistics.median(ratios), ratios[0], ratios[-1]


def times_text(value):
    middle, low, high = value
    digits = 0 if middle >= 100 else 1 if middle >= 10 else 2
    return f"{middle:,.{digits}f} × ({low:,.{digits}f}–{high:,.{digits}f})"


def table(head, rows):
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    return "\n".join(lines + ["| " + " | ".join(str(cell) for cell in row) + " |" for row in rows])


def exponent(sizes, medians):
    """The slope of time over size, both as logarithms."""
    xs, ys = [math.log(size) for size in sizes], [math.log(value) for value in medians]
    x, y = statistics.mean(xs), statistics.mean(ys)
    return sum((a - x) * (b - y) for a, b in zip(xs, ys)) / sum((a - x) ** 2 for a in xs)


def talk(messages):
    """A history of an agent: its user asks, it calls a tool three times, and says what it found."""
    said = lambda at: f"message {at} " + "value index buffer token entry error while store page none some let match " * 10
    body = [{"role": "system", "content": "You are an agent that reads files."}]
    while len(body) < messages:
        at = len(body)
        body.append({"role": "user", "content": said(at)[:800]})
        for step in range(3):
            call = f"call_{at}_{step}"
            function = {"name": "read_file", "arguments": json.dumps({"path": f"src/{at}_{step}.rs"})}
            body.append({"role": "assistant", "content": said(at + step)[:200],
                         "tool_calls": [{"id": call, "type": "function", "function": function}]})
            body.append({"role": "tool", "tool_call_id": call, "content": said(at * 7 + step)[:800]})
        body.append({"role": "assistant", "content": said(at + 9)[:800]})
    return {"model": "gpt-4o", "messages": body}


COMPILE = [("python", "langchain trim_messages", "yes"), ("python", "langchain context editing", "no"),
           ("node", "mastra TokenLimiter", "yes"), ("node", "mastra TokenLimiter, contiguous", "yes"),
           ("python", "llama-index memory", "yes, texts only"),
           ("node", "vercel pruneMessages", "no"), ("python", "openai-agents session", "no"),
           ("python", "semantic-kernel truncation", "no, by messages")]


def compiling(peers, folder):
    """The page of a history within a budget."""
    times = {}
    for size in SIZES:
        file = os.path.join(folder, f"talk-{size}.json")
        with open(file, "w", encoding="utf-8") as out:
            json.dump(talk(size), out)
        workers = []
        for language, name, _ in [("rust", "recto", "")] + COMPILE:
            try:
                worker = peers.start(language, name)
                workers.append(worker.prepare(task="compile", file=file, folder=folder, messages=size, budget=BUDGET))
                say(f"compile, {size} messages: {name} is ready")
            except (RuntimeError, OSError) as error:
                say(f"compile, {size} messages: {name} can't be measured: {error}")
        for name, rounds in in_turns(workers).items():
            times.setdefault(name, {})[size] = rounds
        for worker in workers:
            worker.end()
    medians = lambda name: [statistics.median(times[name][size]) for size in SIZES]
    grown = lambda name: f"{exponent(SIZES[1:], medians(name)[1:]):.2f}"
    rows = [["**Recto**, with the provider's JSON", "yes"] + ["1 ×"] * len(SIZES) + [grown("recto")]]
    for _, name, honours in COMPILE:
        if len(times.get(name, {})) < len(SIZES):
            rows.append([name, honours] + ["not measured"] * len(SIZES) + [""])
            continue
        ratios = [times_text(ratio(times[name][size], times["recto"][size])) for size in SIZES]
        rows.append([name, honours] + ratios + [grown(name)])
    text = ("Time for one call, as a multiple of Recto's, for histories of so many messages and a budget of "
            f"{BUDGET:,} tokens; growth is the exponent of time over messages from 1,000 on. Recto counts when something "
            "is appended, and its time includes plan, page, receipt and the provider's JSON; peers hand back a list.\n\n")
    return "Compile", text + table(["", "keeps to a token budget"] + [f"{size:,}" for size in SIZES] + ["growth"], rows)


def storing(peers, folder):
    """A turn of two messages behind a history, on disk."""
    contenders = [("rust", "recto"), ("python", "openai-agents session"), ("python", "langgraph checkpointer")]
    cells = {name: [] for _, name in contenders}
    for size in STORED:
        workers = []
        for language, name in contenders:
            own = os.path.join(folder, f"store-{size}-{name.replace(' ', '-')}")
            os.makedirs(own)
            workers.append(peers.start(language, name).prepare(task="store", folder=own, messages=size))
        before = {worker.name: worker.ask({"measure": 1})["came"] for worker in workers}
        for worker in workers:
            worker.repeats = 10
        times = in_turns(workers)
        for worker in workers:
            turns = worker.repeats * ROUNDS
            written = (worker.came["written"] - before[worker.name]["written"]) / turns
            kept = lambda came: came["file_bytes"] + came["log_bytes"]
            grown = (kept(worker.came) - kept(before[worker.name])) / turns
            cells[worker.name].append((ratio(times[worker.name], times["recto"]), written, grown))
            worker.end()
    rows = []
    for _, name in contenders:
        row = [f"**{name}**" if name == "recto" else name]
        for value, written, grown in cells[name]:
            row += [times_text(value) if name != "recto" else "1 ×", f"{written:,.0f}", f"{grown:,.0f}"]
        rows.append(row)
    head = [""]
    for size in STORED:
        head += [f"time at {size:,} messages", "bytes written a turn", "file grows by"]
    text = ("A turn of two messages of 800 bytes behind a history, on disk when it returns. Recto waits for the disk "
            "(`synchronous=FULL`); the peers keep their own settings.\n\n")
    return "Store", text + table(head, rows)


def texts(folder):
    """One text for each kind."""
    def files(*names):
        out = []
        for name in names:
            with open(os.path.join(ROOT, name), encoding="utf-8") as file:
                out.append(file.read())
        return "\n".join(out)
    chinese = "".join("我们在每次调用模型之前决定它应该读什么并且说明省略了什么以及为什么。"[(at * 7) % 30:] for at in range(2_000))
    noise = "\n".join(base64.b64encode(bytes((at * 73 + line * 31) % 256 for at in range(57))).decode() for line in range(900))
    kinds = {"prose": files("README.md", "ARCHITECTURE.md", "docs/gateway.md"), "code": files("crates/recto/src/log.rs", "crates/recto/src/view.rs"),
             "json": files("fixtures/late-fees.chat.json"), "chinese": chinese, "base64": noise}
    paths = {}
    for kind, text in kinds.items():
        paths[kind] = os.path.join(folder, f"{kind}.txt")
        with open(paths[kind], "w", encoding="utf-8") as out:
            out.write((text * (1 + 200_000 // len(text.encode())))[:200_000])
    return paths


COUNT = [("rust", "recto"), ("rust", "tiktoken-rs"), ("rust", "bpe-openai"), ("node", "gpt-tokenizer"),
         ("python", "tokenizers"), ("rust", "recto tokenx"), ("rust", "recto bytes4"), ("node", "tokenx")]


def counting(peers, folder):
    """Tokens of a text."""
    rows, errors = {name: [] for _, name in COUNT}, {name: [] for _, name in COUNT}
    vocabulary = peers.options.vocabulary
    paths = texts(folder)
    for kind, path in paths.items():
        workers = []
        for language, name in COUNT:
            if name == "tokenizers" and not (vocabulary and os.path.exists(vocabulary)):
                continue
            workers.append(peers.start(language, name).prepare(task="count", file=path, vocabulary=vocabulary))
        times = in_turns(workers)
        exact = next(worker.came["tokens"] for worker in workers if worker.name == "recto")
        for worker in workers:
            rows[worker.name].append(times_text(ratio(times[worker.name], times["recto"])))
            errors[worker.name].append(f"{100 * (worker.came['tokens'] - exact) / exact:+.1f} %")
            worker.end()
    head = [""] + list(paths)
    cells = [[f"**{name}**" if name == "recto" else name] + (row or ["not measured"] * len(paths)) for name, row in rows.items()]
    wrong = [[name] + row for name, row in errors.items() if row]
    text = "Counting texts of 200 KB by `o200k_base`, as a multiple of Recto's time; the last three only estimate.\n\n"
    return "Counting", (text + table(head, cells) + "\n\nHow far the count is from `o200k_base`:\n\n" + table(head, wrong))


def gateway(peers, folder):
    """Processor time of a call beside a bare proxy, told by its own benchmark."""
    command = ["cargo", "bench", "--locked", "-p", "recto-cli", "--bench", "gateway"]
    done = subprocess.run(command, cwd=ROOT, text=True, stdout=subprocess.PIPE, env=dict(os.environ))
    lines = [line for line in done.stdout.splitlines() if " x, at most " in line or line.startswith("litellm")]
    return "Gateway", ("Processor time a call of the process in the middle, beside a bare axum + reqwest proxy in the "
                       "same run; what is missed is out of bounds.\n\n" + "\n".join(f"- {line}" for line in lines))


def bill(peers, folder):
    """What every policy costs and forgets on real transcripts: a table that tests keep, copied, not measured again."""
    shared = os.environ.get("RECTO_SHARED", os.path.join(os.path.dirname(ROOT), "shared"))
    data = os.path.join(shared, "data", "conversations")
    if not os.path.isdir(data):
        return "Bill and recall", "SKIPPED: no transcripts in RECTO_SHARED."
    with open(os.path.join(ROOT, "docs", "frontier.md"), encoding="utf-8") as file:
        start = file.read()
    first = start[start.find("|"):]
    return "Bill and recall", ("Not measured in this run: copied from docs/frontier.md. Peers are not in it.\n\n"
                               + first[:first.find("\n\n")])


def footprint(peers, folder):
    """What it takes to have it."""
    recto = peers.options.recto
    size = os.path.getsize(recto)
    stripped = os.path.join(folder, "stripped")
    shutil.copy(recto, stripped)
    subprocess.run(["strip", stripped], check=True)
    starts = []
    for _ in range(20):
        starts.append(min(started([recto, "--version"]) / started(["/bin/true"]) for _ in range(3)))
    rows = [["the command, as it is built", f"{size / 1e6:.1f} MB"],
            ["the command, stripped", f"{os.path.getsize(stripped) / 1e6:.1f} MB"],
            ["a start, beside `/bin/true`", f"{statistics.median(starts):.1f} × ({min(starts):.1f}–{max(starts):.1f})"]]
    return "Footprint", table(["", ""], rows)


def started(command):
    begin = time.perf_counter()
    subprocess.run(command, stdout=subprocess.DEVNULL, check=True)
    return time.perf_counter() - begin


PARTS = {"count": counting, "compile": compiling, "store": storing, "gateway": gateway, "bill": bill,
         "footprint": footprint}


def say(text):
    print(text, file=sys.stderr, flush=True)


def machine():
    with open("/proc/cpuinfo", encoding="utf-8") as file:
        model = next((line.split(":")[1].strip() for line in file if line.startswith("model name")), "unknown")
    rust = subprocess.run(["rustc", "--version"], text=True, stdout=subprocess.PIPE, check=True).stdout.strip()
    node = subprocess.run(["node", "--version"], text=True, stdout=subprocess.PIPE, check=True).stdout.strip()
    return f"{model}, {os.cpu_count()} cores, Linux {platform.release().split('-')[0]}; {rust}, Node {node}, Python {platform.python_version()}"


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("parts", nargs="*", choices=[[], *PARTS], help="which tables; all, if none is named")
    parser.add_argument("--python", required=True)
    parser.add_argument("--node", required=True)
    parser.add_argument("--rust", required=True)
    parser.add_argument("--recto", required=True)
    parser.add_argument("--vocabulary")
    parser.add_argument("--versions", default="")
    parser.add_argument("--out", default=os.path.join(ROOT, "docs", "benchmarks.md"))
    options = parser.parse_args()
    sections = []
    with tempfile.TemporaryDirectory() as folder:
        for part in options.parts or PARTS:
            title, text = PARTS[part](Peers(options), folder)
            print(f"\n## {title}\n\n{text}", flush=True)
            sections.append(f"## {title}\n\n{text}\n")
    if options.parts:
        return say("only some parts were measured, so docs/benchmarks.md stays as it is")
    head = ("# Measured beside its peers\n\nWritten by `scripts/bench` from one run; nothing in it is typed by hand. But for "
            "the bill, each figure is a ratio of medians, taken in turns in the same run, with its spread over "
            f"{ROUNDS} rounds.\n\nMachine: {machine()}.\n\nPeers: {options.versions}.\n\n")
    with open(options.out, "w", encoding="utf-8") as out:
        out.write(head + "\n".join(sections))


if __name__ == "__main__":
    main()
