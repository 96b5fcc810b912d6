"""How fast: counting tokens, compiling a page, and storing a turn, each beside the peers that do the same."""
import base64
import contextlib
import glob
import hashlib
import json
import os
import sqlite3
import statistics

from measure import (CALL_SECONDS_MAX, ROOT, SLOW_ROUNDS, SLOW_SECONDS, Part, TooSlow, exponent, in_turns, number,
                     ratio, say, table, times_text)

BUDGET = 100_000
STORED = (100, 1_000)
STORED_TURNS = 10
TEXT_BYTES = 200_000

COMPILE = [("python", "langchain trim_messages", "yes"), ("python", "langchain context editing", "no"),
           ("node", "mastra TokenLimiter", "yes"), ("node", "mastra TokenLimiter, contiguous", "yes"),
           ("python", "llama-index memory", "yes, texts only"),
           ("node", "vercel pruneMessages", "no"), ("python", "openai-agents session", "no"),
           ("python", "semantic-kernel truncation", "no, by messages")]
STORE = [("rust", "recto"), ("python", "openai-agents session"), ("python", "langgraph checkpointer")]
COUNT = [("rust", "recto"), ("rust", "tiktoken-rs"), ("rust", "bpe-openai"), ("node", "gpt-tokenizer"),
         ("python", "tokenizers"), ("rust", "recto tokenx"), ("rust", "recto bytes4"), ("node", "tokenx")]
EXACT = ("recto", "tiktoken-rs", "bpe-openai", "gpt-tokenizer", "tokenizers")


def talk(messages):
    """A history of an agent: its user asks, it calls a tool three times, and says what it found."""
    words = "value index buffer token entry error while store page none some let match " * 10
    said = lambda at: f"message {at} {words}"
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


def compiling(peers, folder):
    """The page of a history within a budget."""
    sizes = peers.options.sizes
    times = {name: {} for _, name, _ in [("", "recto", ""), *COMPILE]}
    for size in sizes:
        file = os.path.join(folder, f"talk-{size}.json")
        with open(file, "w", encoding="utf-8") as out:
            json.dump(talk(size), out)
        workers = compilers(peers, folder, file, size, times)
        for name, rounds in in_turns(workers, peers.options.rounds).items():
            times[name][size] = rounds
        for worker in workers:
            worker.end()
        os.remove(file)
        say(f"compile: {size:,} messages are measured")
    facts = {"ratios": {}, "growth": {"recto": growth(times["recto"], sizes)}}
    rows = [["**Recto**, with the provider's JSON", "yes"] + ["1 ×"] * len(sizes) + [facts["growth"]["recto"]]]
    for _, name, honours in COMPILE:
        facts["growth"][name] = growth(times[name], sizes)
        ratios = {size: beside(times[name].get(size), times["recto"][size]) for size in sizes}
        facts["ratios"][name] = {str(size): value for size, value in ratios.items()}
        rows.append([name, honours, *(told(ratios[size]) for size in sizes), facts["growth"][name]])
    text = ("Time for one call, as a multiple of Recto's, for histories of so many messages and a budget of "
            f"{BUDGET:,} tokens; growth is the exponent of time over messages from 1,000 on. Recto counts when "
            "something is appended, and its time includes plan, page, receipt and the provider's JSON; peers hand back "
            "a list. LangChain and LlamaIndex count four characters a token, Mastra estimates, Recto counts exactly. "
            f"Who takes over {SLOW_SECONDS:.0f} s for a call is asked in {SLOW_ROUNDS} rounds, and nobody is waited "
            f"for longer than {CALL_SECONDS_MAX:.0f} s: \"over\" is a lower bound.\n\n")
    losses = [f"compile, {size:,} messages: {name} takes {times_text(value)} Recto's time (token budget: {honours})"
              for _, name, honours in COMPILE for size in sizes
              for value in [facts["ratios"][name][str(size)]] if isinstance(value, list) and value[0] < 1]
    head = ["", "keeps to a token budget", *(f"{size:,}" for size in sizes), "growth"]
    return Part("Compile", text + table(head, rows), facts, losses)


def compilers(peers, folder, file, size, times):
    """Workers that are ready to be asked; of one that is too slow, only that is noted."""
    workers = []
    for language, name, _ in [("rust", "recto", ""), *COMPILE]:
        worker = peers.start(language, name)
        try:
            workers.append(worker.prepare(task="compile", file=file, folder=folder, messages=size, budget=BUDGET))
        except TooSlow as error:
            times[name][size] = CALL_SECONDS_MAX
            say(f"compile, {size:,} messages: {error}")
        except (RuntimeError, OSError) as error:
            say(f"compile, {size:,} messages: {name} can't be measured: {error}")
    return workers


def beside(times, base):
    """A ratio with its spread, a lower bound, or nothing."""
    if times is None:
        return None
    return times / statistics.median(base) if isinstance(times, float) else ratio(times, base)


def told(value):
    if value is None:
        return "not measured"
    return f"over {number(value)} ×" if isinstance(value, float) else times_text(value)


def growth(times, sizes):
    """The exponent from 1,000 messages on, of those sizes that were measured."""
    measured = [size for size in sizes if size >= 1_000 and isinstance(times.get(size), list)]
    if len(measured) < 2:
        return ""
    return f"{exponent(measured, [statistics.median(times[size]) for size in measured]):.2f}"


def storing(peers, folder):
    """A turn of two messages behind a history, on disk."""
    facts = {name: {} for _, name in STORE}
    for size in STORED:
        workers = []
        for language, name in STORE:
            own = os.path.join(folder, f"store-{size}-{name.replace(' ', '-')}")
            os.makedirs(own)
            workers.append(peers.start(language, name).prepare(task="store", folder=own, messages=size))
            workers[-1].folder = own
        before = {worker.name: (worker.ask({"measure": 1})["came"]["written"], kept_bytes(worker.folder))
                  for worker in workers}
        for worker in workers:
            worker.repeats = STORED_TURNS
        times = in_turns(workers, peers.options.rounds)
        for worker in workers:
            written, kept = before[worker.name]
            turns = worker.repeats * peers.options.rounds
            facts[worker.name][str(size)] = {
                "time": ratio(times[worker.name], times["recto"]), "median": statistics.median(times[worker.name]),
                "written": (worker.came["written"] - written) / turns,
                "kept": (kept_bytes(worker.folder) - kept) / turns}
            worker.end()
        say(f"store: {size:,} messages are measured")
    text = ("A turn of two messages of 800 bytes behind a history, on disk when it returns. Recto waits for the disk "
            "(`synchronous=FULL`); the peers keep their own settings. Growth is the exponent over messages, of time "
            "and of bytes written.\n\n")
    head = [""]
    for size in STORED:
        head += [f"time at {size:,} messages", "bytes written a turn", "database grows by"]
    head += ["growth, time", "growth, bytes"]
    told = table(head, [store_row(name, facts) for _, name in STORE])
    return Part("Store", text + told, facts, store_losses(facts))


def kept_bytes(folder):
    """The size of a database without its log, as if all in that had been moved over: that happens only now and then."""
    total = 0
    for path in glob.glob(os.path.join(folder, "*.db")):
        with contextlib.closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as database:
            pages, size = (database.execute(f"PRAGMA {name}").fetchone()[0] for name in ("page_count", "page_size"))
            total += pages * size
    return total


def store_row(name, facts):
    at = [facts[name][str(size)] for size in STORED]
    row = [f"**{name}**" if name == "recto" else name]
    for cell in at:
        time = "1 ×" if name == "recto" else times_text(cell["time"])
        row += [time, f"{cell['written']:,.0f}", f"{cell['kept']:,.0f}"]
    grown = lambda kind: f"{exponent(STORED, [max(1e-9, cell[kind]) for cell in at]):.2f}"
    return [*row, grown("median"), grown("written")]


def store_losses(facts):
    for _, name in STORE[1:]:
        for size in STORED:
            own, peer = facts["recto"][str(size)], facts[name][str(size)]
            if peer["time"][0] < 1:
                yield f"store, {size:,} messages: a turn takes {name} {times_text(peer['time'])} Recto's time"
            for kind, called in (("written", "writes"), ("kept", "lets its database grow by")):
                if peer[kind] < own[kind]:
                    bytes_each = f"{peer[kind]:,.0f} bytes a turn, Recto {own[kind]:,.0f}"
                    yield f"store, {size:,} messages: {name} {called} {bytes_each}"


def texts():
    """One text for each kind; nothing in it is there twice, but for what people write twice."""
    def files(*patterns):
        out = []
        for name in sorted(name for pattern in patterns for name in glob.glob(os.path.join(ROOT, pattern))):
            with open(name, encoding="utf-8") as file:
                out.append(file.read())
        return "\n".join(out)
    noise = b"".join(hashlib.sha256(str(at).encode()).digest() for at in range(TEXT_BYTES // 32))
    kinds = {"prose": files("README.md", "ARCHITECTURE.md", "CHANGELOG.md", "docs/*.md"),
             "code": files("crates/recto/src/*.rs"), "json": files("fixtures/late-fees.chat.json"),
             "chinese": chinese(), "base64": base64.encodebytes(noise).decode()}
    return {kind: text.encode()[:TEXT_BYTES].decode(errors="ignore") for kind, text in kinds.items()}


def chinese():
    """Sentences of common words in no order; any generator does."""
    words = ("我们 模型 每次 之前 决定 应该 什么 并且 说明 省略 因为 为什么 历史 消息 工具 结果 文件 代码 错误 服务器 数据库 "
             "已经 没有 可以 需要 问题 时间 今天 昨天 用户 系统 开始 结束 重新 运行 测试 通过 失败 这个 那个 但是 所以 如果 "
             "他们 知道 觉得 看到 使用 方法 例如 北京 上海 天气 朋友 工作 学习 喜欢 吃饭 电影 音乐").split()
    seed, out = 7, []
    while len(out) < TEXT_BYTES // 6:
        seed = (seed * 6_364_136_223_846_793_005 + 1_442_695_040_888_963_407) % (1 << 64)
        out.append(words[(seed >> 33) % len(words)] + ("。" if seed >> 60 == 0 else "，" if seed >> 60 == 1 else ""))
    return "".join(out)


def counting(peers, folder):
    """Tokens of a text: how fast, which ones, and how far estimates are off."""
    facts = {"unseen": {}, "again": {}, "off": {}, "ids": {}}
    kinds = texts()
    for kind, text in kinds.items():
        path, [first, *parts] = written_down(folder, kind, text, peers.options.rounds + 1)
        workers = counters(peers, first)
        unseen = first_sight(workers, parts)
        for worker in workers:
            worker.ask({"text": path})
            worker.warm()
        again = in_turns(workers, peers.options.rounds)
        ids = {worker.name: token_ids(worker, folder) for worker in workers if worker.name in EXACT}
        exact = next(worker.came["tokens"] for worker in workers if worker.name == "recto")
        for worker in workers:
            name = worker.name
            facts["unseen"].setdefault(name, {})[kind] = ratio(unseen[name], unseen["recto"])
            facts["again"].setdefault(name, {})[kind] = ratio(again[name], again["recto"])
            facts["off"].setdefault(name, {})[kind] = (worker.came["tokens"] - exact) / exact
            if name in EXACT:
                facts["ids"].setdefault(name, {})[kind] = ids[name] == ids["recto"]
            worker.end()
        say(f"count: {kind} is measured")
    return Part("Counting", count_text(facts, list(kinds)), facts, count_losses(facts))


def written_down(folder, kind, text, count):
    """The text as one file, and in so many parts."""
    size, paths = len(text) // count, []
    for at in range(count):
        paths.append(os.path.join(folder, f"{kind}-{at}.txt"))
        with open(paths[-1], "w", encoding="utf-8") as out:
            out.write(text[at * size:(at + 1) * size])
    whole = os.path.join(folder, f"{kind}.txt")
    with open(whole, "w", encoding="utf-8") as out:
        out.write(text)
    return whole, paths


def first_sight(workers, parts):
    """Each part once, as texts are when they are said: tokenizers remember words."""
    times = {worker.name: [] for worker in workers}
    for part in parts:
        for worker in workers:
            worker.ask({"text": part})
            times[worker.name].append(worker.once())
    return times


def counters(peers, path):
    """Workers that have read a first text, and loaded what they need for that."""
    vocabulary, workers = peers.options.vocabulary, []
    for language, name in COUNT:
        if name == "tokenizers" and not (vocabulary and os.path.exists(vocabulary)):
            continue
        workers.append(peers.start(language, name).prepare(task="count", file=path, vocabulary=vocabulary))
    return workers


def token_ids(worker, folder):
    path = os.path.join(folder, "ids.json")
    worker.ask({"ids": path})
    with open(path, encoding="utf-8") as file:
        return json.load(file)


def count_text(facts, kinds):
    rows = lambda names, cell: table(["", *kinds], [[f"**{name}**" if name == "recto" else name,
                                                     *(cell(name, kind) for kind in kinds)] for name in names])
    names = [name for _, name in COUNT if name in facts["again"]]
    time = lambda which, name, kind: "1 ×" if name == "recto" else times_text(facts[which][name][kind])
    times = lambda which: rows(names, lambda name, kind: time(which, name, kind))
    same = rows([name for name in facts["ids"] if name != "recto"],
                lambda name, kind: "the same" if facts["ids"][name][kind] else "**differ**")
    off = rows(names, lambda name, kind: f"{100 * facts['off'][name][kind]:+.1f} %")
    missing = [name for _, name in COUNT if name not in names]
    return ("Counting by `o200k_base`, as a multiple of Recto's time; the last three only estimate."
            + (f" Not measured: {', '.join(missing)}." if missing else "")
            + " Tokenizers remember words that they have met, so texts are timed twice. First parts of them, each of "
            "which is counted once and was never seen before, as what is said in a conversation:\n\n"
            f"{times('unseen')}\n\nThen {TEXT_BYTES // 1000} KB again and again:\n\n"
            f"{times('again')}\n\nThe ids of all tokens, one by one, beside Recto's:\n\n{same}\n\n"
            f"How far the count is from `o200k_base`:\n\n{off}")


def count_losses(facts):
    for which, called in (("unseen", "unseen "), ("again", "once more ")):
        ours = facts[which].get("recto tokenx", {})
        for name, own in facts[which].items():
            for kind, value in own.items():
                if name in EXACT and value[0] < 1:
                    yield f"counting {called}{kind}: {name} takes {times_text(value)} Recto's time"
                # What only estimates is compared with Recto's estimate by the same rules.
                if name == "tokenx" and kind in ours and value[0] < ours[kind][0]:
                    yield (f"estimating {called}{kind}: tokenx takes {number(value[0] / ours[kind][0])} × the time of "
                           "Recto's estimate by the same rules")
