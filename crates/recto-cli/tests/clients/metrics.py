"""Reads numbers in the text format of Prometheus with the project's own parser, from stdin.

What the parser lets through and a server would stumble over is an error, too. Prints all families as JSON.
"""

import json
import math
import sys

from prometheus_client.parser import text_string_to_metric_families


def check_histogram(family):
    rows = {}
    for sample in family.samples:
        labels = dict(sample.labels)
        bound = labels.pop("le", None)
        row = rows.setdefault(tuple(sorted(labels.items())), {"buckets": [], "count": None, "sum": None})
        if sample.name.endswith("_bucket"):
            row["buckets"].append((float(bound), sample.value))
        else:
            row[sample.name.rsplit("_", 1)[1]] = sample.value
    for labels, row in rows.items():
        bounds = [bound for bound, _ in row["buckets"]]
        counts = [count for _, count in row["buckets"]]
        assert bounds == sorted(bounds) and bounds[-1] == math.inf, (family.name, labels, bounds)
        assert counts == sorted(counts) and counts[-1] == row["count"], (family.name, labels, counts)
        assert row["sum"] >= 0, (family.name, labels)


def main():
    families, seen = {}, set()
    for family in text_string_to_metric_families(sys.stdin.read()):
        assert family.name not in families, f"{family.name} comes twice"
        assert family.documentation, f"{family.name} says nothing"
        assert family.type in ("counter", "gauge", "histogram"), (family.name, family.type)
        for sample in family.samples:
            series = (sample.name, tuple(sorted(sample.labels.items())))
            assert series not in seen, f"{series} comes twice"
            seen.add(series)
            assert family.type == "gauge" or sample.value >= 0, series
            if family.type == "counter":
                assert sample.name.endswith("_total"), sample.name
        if family.type == "histogram":
            check_histogram(family)
        samples = [[sample.name, sample.labels, sample.value] for sample in family.samples]
        families[family.name] = {"type": family.type, "samples": samples}
    json.dump(families, sys.stdout)


main()
