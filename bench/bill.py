"""What calls cost and what pages forget, on recorded conversations: Recto's policies, the peers' own code, and the
rules that the scorer knows, all scored by the same programs from the pages alone.

The conversations and the scorers (`eval/score.py`, `eval/recall.py`) are no part of this repository; RECTO_SHARED names
the folder with them.
"""
import json
import os
import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

from measure import ROOT, Part, say, table

MIN_TOKENS = 30_000
# A line of so many bytes may hold so many tokens; the scorer leaves out those that don't.
MIN_BYTES = 4 * MIN_TOKENS
TIGHT, WIDE = 32_000, 100_000
POLICIES = ["safe", "default", "careful", "frugal", "first_chars"]
WINDOWS = [("default", TIGHT), ("default", WIDE), ("safe", WIDE)]
TRIMMED = [("python", "langchain trim_messages"), ("python", "langchain context editing"),
           ("node", "mastra TokenLimiter"), ("node", "mastra TokenLimiter, contiguous"),
           ("python", "llama-index memory")]
TALKS = "locomo.dialogue.jsonl"
BUDGETS = [4_000, 8_000]
RECALLED = [("python", "langchain trim_messages"), ("node", "mastra TokenLimiter, contiguous"),
            ("python", "llama-index memory")]
FIGURES = ("cost", "tokens", "cached", "recall", "names", "numbers", "quoted", "phrases", "lines", "peak")
QUICK_CONVERSATIONS = 3


def bill(peers, folder):
    shared = os.environ.get("RECTO_SHARED", os.path.join(os.path.dirname(ROOT), "shared"))
    data = os.path.join(shared, "data", "conversations")
    if not os.path.isdir(data):
        return Part("Bill and recall", "SKIPPED: no transcripts in RECTO_SHARED.")
    scorers = Scorers(peers, folder, shared, data)
    cost, losses = costs(scorers)
    found, missed = recalls(scorers)
    return Part("Bill and recall", f"{cost}\n\n### Evidence brought back\n\n{found}",
                {"bill": scorers.bill, "recall": scorers.found}, losses + missed)


class Scorers:
    """Programs that score pages, and who makes the pages."""

    def __init__(self, peers, folder, shared, data):
        self.peers, self.folder = peers, folder
        self.score, self.recall = (os.path.join(shared, "eval", name) for name in ("score.py", "recall.py"))
        self.long = os.path.join(folder, "long.jsonl")
        self.talks = os.path.join(data, TALKS)
        self.bill, self.found, self.about = {}, {}, ""
        self.choose(data)

    def choose(self, data):
        """Puts the conversations that are long enough into one file."""
        found = []
        for name in sorted(os.listdir(data)):
            with open(os.path.join(data, name), encoding="utf-8") as file:
                found += [line for line in file if len(line.encode()) >= MIN_BYTES]
        with open(self.long, "w", encoding="utf-8") as out:
            out.writelines(found[:QUICK_CONVERSATIONS] if self.peers.options.quick else found)

    def replayed(self, policy, window=None):
        """Recto's pages under a policy. It writes none if some don't fit; then there is what it says of the rest."""
        pages = self.file(f"recto-{policy}-{window}")
        command = [self.peers.options.recto, "replay", self.long, "--for", "eval", "--min-tokens", str(MIN_TOKENS),
                   "--policy", policy, "--pages", pages, "--json"]
        if window:
            command += ["--window", str(window), "--reserve", "0"]
        done = subprocess.run(command, text=True, capture_output=True, check=False)
        if done.returncode == 0:
            return self.scored(pages)
        if not done.stdout:
            raise RuntimeError(done.stderr.strip()[-300:])
        return own_score(json.loads(done.stdout))

    def edited(self, language, peer, budget):
        """A peer's pages."""
        pages = self.file(f"{peer}-{budget}")
        self.make(language, {"peer": peer, "budget": budget, "conversations": self.long, "out": pages})
        return self.scored(pages)

    def make(self, language, job):
        command = [*self.peers.command(language, "pages"), json.dumps(job)]
        subprocess.run(command, cwd=self.peers.options.node, check=True, stdout=subprocess.DEVNULL)

    def scored(self, pages):
        """The figures of pages; those that weren't made are left out of them, and counted."""
        done = self.run(self.score, "--min-tokens", str(MIN_TOKENS), "--pages", pages, self.long)
        os.remove(pages)
        missing = re.search(r"^(\d+) pages are missing", done, re.M)
        row = next(line for line in done.splitlines() if line.startswith("compiled pages"))
        return figures(row) | {"refused": int(missing[1]) if missing else 0}

    def rules(self):
        """Every rule that the scorer knows itself, and what it says about the conversations."""
        self.about, _, *rows = self.run(self.score, "--min-tokens", str(MIN_TOKENS), self.long).splitlines()
        return {row[:32].strip(): figures(row) | {"refused": 0} for row in rows}

    def run(self, *command):
        # It fails where pages are missing, and has told so; without any figures it really failed.
        done = subprocess.run([sys.executable, *command], text=True, capture_output=True, check=False)
        if not done.stdout:
            raise RuntimeError(done.stderr.strip()[-300:])
        return done.stdout

    def file(self, name):
        return os.path.join(self.folder, re.sub(r"\W+", "-", name) + ".jsonl")


def own_score(told):
    """What Recto says of its pages, which it scores as the scorer does."""
    measured, full = told["total"]["measured"], told["full"]
    score, lines = measured["score"], measured["score"]["references"]["lines"]
    return {"cost": measured["cost"], "recall": measured["recall"], "tokens": score["tokens"] / full["tokens"],
            "cached": score["cached"] / score["tokens"], "lines": lines["kept"] / lines["all"], "peak": score["peak"],
            "refused": told["total"]["overflows"]}


def figures(row):
    return dict(zip(FIGURES, map(float, row[32:].split())))


def costs(scorers):
    """What each costs and forgets. Nothing here is timed, so two go on at once."""
    jobs = {f"**Recto**, `{policy}`": (scorers.replayed, policy) for policy in POLICIES}
    jobs |= {f"**Recto**, `{policy}` in {window:,}": (scorers.replayed, policy, window) for policy, window in WINDOWS}
    jobs |= {f"{peer}, {budget:,}": (scorers.edited, language, peer, budget)
             for language, peer in TRIMMED for budget in (TIGHT, WIDE)}
    jobs["vercel pruneMessages"] = (scorers.edited, "node", "vercel pruneMessages", 0)
    with ThreadPoolExecutor(2) as pool:
        rules = pool.submit(scorers.rules)
        waiting = {name: pool.submit(*job) for name, job in jobs.items()}
        for name, job in waiting.items():
            scorers.bill[name] = outcome(name, job)
        rules = {f"rule: {name}": value for name, value in rules.result().items()}
    whole = {"the whole history": rules.pop("rule: full history")}
    scorers.bill = whole | scorers.bill | rules
    rows = [[name, *cells(value)] for name, value in scorers.bill.items()]
    head = ["", "cost", "tokens", "cached", "recall", "whole lines", "longest page", "calls without a page"]
    return bill_text(scorers.about) + table(head, rows), bill_losses(scorers.bill)


def outcome(name, job):
    try:
        value = job.result()
    except (RuntimeError, OSError, StopIteration, subprocess.CalledProcessError) as error:
        say(f"bill: {name} can't be scored: {error}")
        return {"refused": 0}
    say(f"bill: {name} is scored")
    return value


def cells(value):
    if "cost" not in value:
        return ["", "", "", "", "", "", value["refused"] or "not measured"]
    shares = [f"{value[key]:.3f}" for key in ("cost", "tokens", "cached")]
    return [*shares, f"{value['recall']:.4f}", f"{value['lines']:.4f}", f"{value['peak']:,.0f}", value["refused"] or ""]


def bill_text(about):
    return (f"Recorded conversations of agents, replayed call by call: {about}. Pages are made by each one's own code "
            "and scored by one program that sees nothing else. A token is four bytes. Cost is that of all calls "
            "beside sending the whole history: a token that stood unchanged at the beginning of the page before "
            "counts 0.1, any other 1.25. Recall is how much of what the agent took up again (names, numbers, "
            "quoted texts, phrases, whole lines; the mean of the five) stood on the page that led to it.\n\nBehind "
            "a name is the budget, or the trigger of context editing. Where instructions and the newest result "
            "alone are over the budget, Recto and Mastra refuse the call, and it is left out of the figures, "
            "which are Recto's own in that row; others send less, or more. LangChain and LlamaIndex don't count "
            "reasoning, nor LlamaIndex calls, so their pages may be longer than the budget. LangChain's trim may "
            "begin at an answer here, since it would often keep nothing if it had to begin at the user's words; "
            "LlamaIndex always begins there. *Rules* are the scorer's own.\n\n")


def bill_losses(rows):
    """Who costs less than the usual policy, or keeps more; each with what it gives for that."""
    own = rows.get("**Recto**, `default`", {})
    if "cost" not in own:
        return []
    beside = f"Recto's `default` costs {own['cost']:.3f} and keeps {own['recall']:.4f}"
    others = {name: value for name, value in rows.items() if "Recto" not in name and "cost" in value}
    cheaper = [(name, value, "costs less") for name, value in others.items() if value["cost"] < own["cost"]]
    keeping = [(name, value, "forgets less") for name, value in others.items() if value["recall"] > own["recall"]]
    losses = [f"bill: {name} {how}: cost {value['cost']:.3f}, recall {value['recall']:.4f}; {beside}"
              for name, value, how in cheaper + keeping]
    losses += [f"bill: {name} refuses {value['refused']} calls" for name, value in rows.items()
               if "Recto" in name and value["refused"]]
    return losses


def recalls(scorers):
    """Dialogues with questions: is the evidence on the page?"""
    pages = scorers.file("recto-questions")
    command = [scorers.peers.options.recto, "replay", "--questions", scorers.talks, "--for", "eval", "--pages", pages]
    command += [word for budget in BUDGETS for word in ("--budget", str(budget))]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    scorers.found["**Recto**"] = evidence(scorers, pages)
    for language, peer in RECALLED:
        pages = scorers.file(f"{peer}-questions")
        for budget in BUDGETS:
            job = {"peer": peer, "budget": budget, "conversations": scorers.talks, "out": pages, "questions": True}
            scorers.make(language, job)
        scorers.found[peer] = evidence(scorers, pages)
        say(f"recall: {peer} is scored")
    about, references = references_of(scorers)
    scorers.found |= references
    text = (f"LoCoMo: {about}. The page has what comes back for a question within so many tokens of history (of four "
            "bytes); the share of evidence utterances on it, and of questions with all their evidence.\n\n")
    head = ["", *(f"{budget:,} tokens: {what}" for budget in BUDGETS for what in ("evidence", "complete"))]
    cell = lambda value, budget: ([f"{share:.3f}" for share in value["shares"][str(budget)]]
                                  if str(budget) in value["shares"] else ["", ""])
    rows = [[name + value["note"], *(share for budget in BUDGETS for share in cell(value, budget))]
            for name, value in scorers.found.items()]
    own = scorers.found["**Recto**"]["shares"]
    losses = [f"recall, {int(budget):,} tokens: {name} has {share[0]:.3f} of the evidence, Recto {own[budget][0]:.3f}"
              for name, value in scorers.found.items() for budget, share in value["shares"].items()
              if budget in own and share[0] > own[budget][0]]
    return text + table(head, rows), losses


def evidence(scorers, pages):
    """Shares of evidence and of complete questions for each budget, from pages."""
    told = scorers.run(scorers.recall, "--pages", pages, scorers.talks)
    os.remove(pages)
    over = sum(map(int, re.findall(r"(\d+) over budget", told)))
    return {"shares": shares(told, "compiled pages"), "note": f" ({over} pages over their budget)" if over else ""}


def references_of(scorers):
    told = scorers.run(scorers.recall, scorers.talks)
    named = lambda name: {"shares": shares(told, name), "note": ""}
    return told.splitlines()[0], {"rule: the newest utterances": named("tail"), "rule: plain BM25": named("bm25")}


def shares(told, name):
    rows = (line[24:].split() for line in told.splitlines() if line[:24].strip() == name)
    return {budget: [float(found), float(complete)] for budget, found, complete in rows}
