"""Processor time of a call through the gateway, told by its own benchmark, `cargo bench -p recto-cli`."""
import os
import re
import signal
import subprocess
import threading

from measure import ROOT, Part, number, say, spread, table, times_text

COMMAND = ["cargo", "bench", "--locked", "-p", "recto-cli", "--bench", "gateway"]
CASES = ["small", "crowd", "short", "long", "growing", "streamed", "streams"]
# It sums its rounds up, so it runs more than once; a minute of streams tells nothing new the second time.
RUNS = 2
RUNS_QUICK = 1
RUN_SECONDS_MAX = 900

CASE = re.compile(r"^(?P<name>\w+): (?P<about>.*?):? (?P<ratio>[\d.]+) x, at most (?P<most>[\d.]+)")
FIRST = re.compile(r"the first call of each: (?P<ours>[\d.]+[mµn]?s), (?P<bare>[\d.]+[mµn]?s)")
RECORDS = re.compile(r"a proxy that only records: (?P<ratio>[\d.]+) x")
LITELLM = re.compile(r"^litellm, (?P<name>\w+): (?P<ratio>[\d.]+) x")
UNITS = {"ns": 1e-9, "µs": 1e-6, "ms": 1e-3, "s": 1.0}


def gateway(peers, folder):
    quick = peers.options.quick
    found = Found()
    # What is built is not measured, and must not be waited for while something is.
    subprocess.run([*COMMAND, "--no-run"], cwd=ROOT, check=True, stdout=subprocess.DEVNULL)
    runs = RUNS_QUICK if quick else RUNS
    for run in range(runs):
        cases = ["small"] if quick else CASES if run == 0 else CASES[:-1]
        found.read(lines(cases))
        say(f"gateway: run {run + 1} of {runs} is over")
    if not found.cases:
        raise RuntimeError("the gateway's benchmark told nothing")
    return Part("Gateway", text(runs) + table(HEAD, found.rows()), found.facts(), found.losses())


def lines(cases):
    """What it prints, case by case. It fails where a ratio is out of bounds; that is a figure like others here."""
    running = subprocess.Popen([*COMMAND, "--", *cases], cwd=ROOT, text=True, stdout=subprocess.PIPE,
                               start_new_session=True)
    timer = threading.Timer(RUN_SECONDS_MAX, end, [running])
    timer.start()
    try:
        for line in running.stdout:
            if " x" in line:
                say(f"gateway: {line.split(':')[0]} is measured")
            yield line
    finally:
        timer.cancel()
        end(running)
        running.wait()


def end(running):
    """Ends it and the servers that it has started."""
    try:
        os.killpg(running.pid, signal.SIGKILL)
    except ProcessLookupError:
        pass  # all of them have ended


class Found:
    """Ratios of each case, one for each run."""

    def __init__(self):
        self.cases, self.litellm = {}, {}

    def read(self, told):
        for line in told:
            if case := CASE.match(line):
                kept = self.cases.setdefault(case["name"], {"about": case["about"], "most": float(case["most"]),
                                                            "ratios": [], "first": [], "records": []})
                kept["ratios"].append(float(case["ratio"]))
                if first := FIRST.search(line):
                    kept["first"].append(seconds(first["ours"]) / seconds(first["bare"]))
                if records := RECORDS.search(line):
                    kept["records"].append(float(records["ratio"]))
            elif other := LITELLM.match(line):
                self.litellm.setdefault(other["name"], []).append(float(other["ratio"]))

    def rows(self):
        told = lambda ratios: times_text(spread(ratios)) if ratios else ""
        for name, case in self.cases.items():
            within = "" if spread(case["ratios"])[0] <= case["most"] else ", **missed**"
            yield [name, case["about"], told(case["ratios"]), f"{number(case['most'])} ×{within}",
                   told(case["first"]), told(case["records"]), told(self.litellm.get(name, []))]

    def facts(self):
        return {"cases": {name: spread(case["ratios"]) for name, case in self.cases.items()},
                "litellm": {name: spread(ratios) for name, ratios in self.litellm.items()}}

    def losses(self):
        for name, case in self.cases.items():
            value = spread(case["ratios"])
            if name != "streams" and value[0] > 1:
                yield f"gateway, {name}: a call takes Recto {times_text(value)} the processor time of a bare proxy"
        for name, ratios in self.litellm.items():
            if spread(ratios)[0] < 1:
                yield f"gateway, {name}: a call takes LiteLLM {times_text(spread(ratios))} Recto's processor time"


HEAD = ["", "", "Recto beside a bare proxy", "at most", "the first call of each",
        "a proxy that only records, beside the bare one", "LiteLLM beside Recto"]


def text(runs):
    without = "" if os.environ.get("RECTO_LITELLM") else " LiteLLM could not be installed and was not measured."
    return ("Processor time a call of the process in the middle, beside a bare axum + reqwest proxy in the same run "
            "(of streams: memory afterwards beside before), and LiteLLM's proxy beside Recto. The spread is over "
            f"runs of five rounds each, of which there were {runs}.{without}\n\n")


def seconds(told):
    value, unit = re.fullmatch(r"([\d.]+)(\D+)", told).groups()
    return float(value) * UNITS[unit]
