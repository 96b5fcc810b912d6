"""What every part of the benchmark is made of: workers that are asked in turns, ratios with their spread, tables."""
import json
import math
import os
import select
import statistics
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(HERE)
# How long a worker may take for one question; then it is asked for fewer repetitions.
PATIENCE_SECONDS = 0.4
REPEATS_MAX = 200
# Who takes longer for one call than the first is asked in fewer rounds, and than the second not at all: a lower bound
# is told instead.
SLOW_SECONDS = 2.0
SLOW_ROUNDS = 3
CALL_SECONDS_MAX = 20.0
TASK_SECONDS_MAX = 300.0
BEGUN = time.monotonic()


class TooSlow(Exception):
    """A worker did not answer in time."""


class Part:
    """What came of a part: its table as text, the figures that targets are judged by, where Recto is behind, and how
    busy the machine was with other things before."""

    def __init__(self, title, text, facts=None, losses=(), busy=0.0):
        self.title, self.text, self.facts, self.losses, self.busy = title, text, facts or {}, list(losses), busy


class Worker:
    """A process that does one thing again and again."""

    def __init__(self, name, command, folder=None):
        self.name = name
        self.process = subprocess.Popen(command, cwd=folder, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.repeats = 1
        self.rounds_max = None
        self.came = None

    def ask(self, question, seconds=TASK_SECONDS_MAX):
        self.process.stdin.write(json.dumps(question) + "\n")
        self.process.stdin.flush()
        if not select.select([self.process.stdout], [], [], seconds)[0]:
            self.process.kill()
            self.process.wait()
            raise TooSlow(f"{self.name} took more than {seconds:.0f} s")
        line = self.process.stdout.readline()
        if not line:
            raise RuntimeError(f"{self.name} has ended with {self.process.wait()}")
        return json.loads(line)

    def prepare(self, **task):
        self.ask(task)
        return self.warm()

    def warm(self):
        """The first call loads what is loaded late; the next tells how long one takes."""
        for _ in range(2):
            slow = max(self.ask({"measure": 1}, CALL_SECONDS_MAX)["seconds"][0], 1e-7)
        self.repeats = max(1, min(REPEATS_MAX, int(PATIENCE_SECONDS / slow)))
        self.rounds_max = SLOW_ROUNDS if slow > SLOW_SECONDS else None
        return self

    def once(self):
        return self.ask({"measure": 1})["seconds"][0]

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
        return Worker(name, [*self.command(language, "peers"), name], self.options.node)

    def command(self, language, program):
        """The command that runs a program of this folder; those of Node find their packages in the working folder."""
        if language == "rust":
            return [self.options.rust]
        if language == "python":
            return [self.options.python, os.path.join(HERE, f"{program}.py")]
        return ["node", "--max-old-space-size=8192", os.path.join(HERE, f"{program}.mjs")]


def in_turns(workers, rounds):
    """Medians of each worker, round by round, so that whatever else the machine does meets all of them alike."""
    times = {worker.name: [] for worker in workers}
    for at in range(rounds):
        for worker in workers:
            if worker.rounds_max is None or at < worker.rounds_max:
                times[worker.name].append(worker.median())
    return times


def ratio(times, base):
    """How many times as long as the base, with the spread over the rounds."""
    return spread([a / b for a, b in zip(times, base)])


def spread(ratios):
    return [statistics.median(ratios), min(ratios), max(ratios)]


def number(value):
    digits = 0 if value >= 100 else 1 if value >= 10 else 2
    return f"{value:,.{digits}f}" if value >= 0.1 or value == 0 else f"{value:.2g}"


def times_text(value):
    middle, low, high = value
    return f"{number(middle)} × ({number(low)}–{number(high)})"


def table(head, rows):
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    return "\n".join(lines + ["| " + " | ".join(str(cell) for cell in row) + " |" for row in rows])


def exponent(sizes, medians):
    """The slope of time over size, both as logarithms."""
    xs, ys = [math.log(size) for size in sizes], [math.log(value) for value in medians]
    x, y = statistics.mean(xs), statistics.mean(ys)
    return sum((a - x) * (b - y) for a, b in zip(xs, ys)) / sum((a - x) ** 2 for a in xs)


def busy_share(seconds):
    """The share of all processors that others use while nothing of this runs."""
    def used():
        with open("/proc/stat", encoding="ascii") as file:
            fields = [int(field) for field in file.readline().split()[1:9]]
        return sum(fields) - fields[3] - fields[4], sum(fields)
    begin = used()
    time.sleep(seconds)
    end = used()
    return (end[0] - begin[0]) / max(1, end[1] - begin[1])


def say(text):
    """Progress, for whoever waits; results go to stdout."""
    print(f"[{time.monotonic() - BEGUN:5.0f} s] {text}", file=sys.stderr, flush=True)
