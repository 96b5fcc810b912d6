#!/usr/bin/env python3
"""Measures Recto beside its peers in one run, in turns, and writes docs/benchmarks.md. `scripts/bench` installs the
peers and calls this; see `scripts/bench --help`.

Everything that is told of time is a ratio of medians with its spread over the rounds: machines differ, and this one is
not alone.
"""
import argparse
import hashlib
import json
import os
import platform
import re
import shutil
import subprocess
import sys
import tempfile
import traceback

import verdict
from bill import bill
from footprint import footprint
from gateway import gateway
from measure import HERE, ROOT, Part, Peers, busy_share, say
from speed import compiling, counting, storing

SIZES = (100, 1_000, 10_000, 100_000)
SIZES_QUICK = (100, 1_000)
ROUNDS = 7
ROUNDS_QUICK = 2
# How long the machine is watched before each part, and what it may do besides without being told so at once.
BUSY_SECONDS = 2
BUSY_SHARE_MAX = 0.1
PARTS = {"count": counting, "compile": compiling, "store": storing, "gateway": gateway, "bill": bill,
         "footprint": footprint}
COSTS = os.path.join(HERE, "costs.md")


class Kept:
    """Parts that a run has finished, kept until it is over: one that was interrupted can go on, if nothing changed."""

    def __init__(self, options):
        self.folder = options.kept
        self.of = identity(options)
        if not options.resume:
            self.forget()
        os.makedirs(self.folder, exist_ok=True)

    def read(self, name):
        try:
            with open(self.file(name), encoding="utf-8") as file:
                found = json.load(file)
        except FileNotFoundError:
            return None
        return Part(**found["part"]) if found["of"] == self.of else None

    def write(self, name, part):
        with open(self.file(name), "w", encoding="utf-8") as out:
            json.dump({"of": self.of, "part": vars(part)}, out)

    def forget(self):
        shutil.rmtree(self.folder, ignore_errors=True)

    def file(self, name):
        return os.path.join(self.folder, f"{name}.json")


def identity(options):
    """What must be the same for figures to stand side by side: the programs, the peers, and how they are asked."""
    digest = hashlib.sha256(repr((options.versions, options.rounds, options.sizes, options.quick)).encode())
    for path in [options.recto, options.rust, *(os.path.join(HERE, name) for name in sorted(os.listdir(HERE)))]:
        if os.path.isfile(path) and not path.endswith(".md"):
            with open(path, "rb") as file:
                digest.update(hashlib.sha256(file.read()).digest())
    return digest.hexdigest()


def measured(options, wanted):
    """All parts, one after the other; one that fails doesn't keep the others from being measured."""
    kept, parts, missing = Kept(options), {}, []
    with tempfile.TemporaryDirectory(prefix="recto-bench-") as folder:
        for at, name in enumerate(wanted):
            say(f"{name}: part {at + 1} of {len(wanted)}")
            part = kept.read(name) if options.resume else None
            if part is None:
                own = os.path.join(folder, name)
                os.makedirs(own)
                busy = busy_share(BUSY_SECONDS)
                if busy > BUSY_SHARE_MAX:
                    say(f"the machine is {100 * busy:.0f} % busy with other things: slow peers will look too slow")
                try:
                    part = PARTS[name](Peers(options), own)
                    part.busy = busy
                    kept.write(name, part)
                except Exception as error:  # whatever it is, the other parts can be measured
                    traceback.print_exc()
                    missing.append(f"{name} ({type(error).__name__}: {error})")
                    continue
                finally:
                    shutil.rmtree(own, ignore_errors=True)
            parts[name] = part
            print(f"\n## {part.title}\n\n{part.text}", flush=True)
    return kept, parts, missing


def conclusions(parts, missing):
    """What the figures say, and the costs of the hot paths where somebody has written them down."""
    facts = {name: part.facts for name, part in parts.items()}
    losses = [loss for part in parts.values() for loss in part.losses]
    sections = [("Targets", verdict.targets(facts)), ("Where Recto loses", verdict.behind(losses, missing))]
    if os.path.exists(COSTS):
        with open(COSTS, encoding="utf-8") as file:
            sections.append(("The three largest costs of each hot path", file.read().strip()))
    return sections


def machine():
    with open("/proc/cpuinfo", encoding="utf-8") as file:
        model = next((line.split(":")[1].strip() for line in file if line.startswith("model name")), "unknown")
    said = lambda *command: subprocess.run(command, text=True, stdout=subprocess.PIPE, check=True).stdout.strip()
    return (f"{model}, {os.cpu_count()} cores, Linux {platform.release().split('-')[0]}; {said('rustc', '--version')}, "
            f"Node {said('node', '--version')}, Python {platform.python_version()}")


def besides(parts):
    """What else the machine did: long calls are interrupted more often than short ones, and that flatters the quick."""
    shares = [part.busy for part in parts.values()]
    return f"Before the parts, {100 * min(shares):.0f} to {100 * max(shares):.0f} % of it was busy with other things"


def head(options, parts):
    listed = ", ".join(re.sub(r"@(?=[\d])", " ", peer).replace("==", " ") for peer in options.versions.split())
    run = "one run, which was interrupted and went on" if options.resume else "one run"
    by_hand = "but for the last section, nothing in it is" if os.path.exists(COSTS) else "nothing in it is"
    return (f"# Measured beside its peers\n\nWritten by `scripts/bench` from {run}; {by_hand} typed by hand. Times are "
            "ratios: Recto and its peers are given the same inputs and asked in turns, each figure is the median of "
            f"{options.rounds} rounds of medians, and behind it stands the spread over the rounds. Peers run their own "
            "code as their documentation shows it, at the versions below.\n\n"
            f"Machine: {machine()}. {besides(parts)}.\n\nPeers: {listed}.\n\n")


def arguments():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("parts", nargs="*", choices=[[], *PARTS], help="which tables; all, if none is named")
    parser.add_argument("--quick", action="store_true", help="a short trial: few rounds, small sizes")
    parser.add_argument("--rounds", type=int, help="how often each is asked")
    parser.add_argument("--resume", action="store_true", help="go on with a run that was interrupted")
    parser.add_argument("--python", required=True)
    parser.add_argument("--node", required=True)
    parser.add_argument("--rust", required=True)
    parser.add_argument("--recto", required=True)
    parser.add_argument("--kept", required=True, help="folder for what an interrupted run has finished")
    parser.add_argument("--vocabulary")
    parser.add_argument("--versions", default="")
    parser.add_argument("--out", default=os.path.join(ROOT, "docs", "benchmarks.md"))
    options = parser.parse_args()
    is_trial = bool(options.parts) or options.quick or options.rounds is not None
    # A trial must not take the place of a whole run that was interrupted.
    options.kept += "-trial" if is_trial else ""
    options.rounds = options.rounds or (ROUNDS_QUICK if options.quick else ROUNDS)
    options.sizes = SIZES_QUICK if options.quick else SIZES
    return options, is_trial


def main():
    options, is_trial = arguments()
    kept, parts, missing = measured(options, options.parts or list(PARTS))
    sections = conclusions(parts, missing)
    for title, text in sections:
        print(f"\n## {title}\n\n{text}", flush=True)
    if is_trial:
        say("this was a trial or only some parts, so docs/benchmarks.md stays as it is")
        return 1 if missing else 0
    if missing:
        say(f"docs/benchmarks.md stays as it is, since not all was measured: {', '.join(missing)}; --resume goes on")
        return 1
    told = [*((part.title, part.text) for part in parts.values()), *sections]
    with open(options.out, "w", encoding="utf-8") as out:
        out.write(head(options, parts) + "\n".join(f"## {title}\n\n{text}\n" for title, text in told))
    kept.forget()
    say("docs/benchmarks.md is written")
    return 0


if __name__ == "__main__":
    sys.exit(main())
