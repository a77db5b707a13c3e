#!/usr/bin/env python3
"""Grouping accuracy of template mining on the loghub 2k samples.

Usage: loghub.py BIN_DIR [DATA_DIR] [--json]

Runs `culprit templates --lines FILE` on the raw <System>_2k.log of each folder of DATA_DIR (default:
$CULPRIT_DATA/loghub) and compares the groups with the EventTemplate column of
<System>_2k.log_structured.csv. A message counts as right only if the messages that share its id are exactly
those that share its EventTemplate.
Exit status: 0 measured, 2 something was missing.
"""
import argparse
import collections
import csv
import json
import os
import pathlib
import subprocess
import sys

# Published grouping accuracy (uncorrected templates, settings per set): Drain, He et al.,
# ICWS 2017; Brain, Yu et al., TSC 2023.
PUBLISHED = {
    "Apache": (1.000, 1.000), "BGL": (0.963, 0.986), "HDFS": (0.998, 0.998), "HPC": (0.887, 0.945),
    "Linux": (0.690, 0.996), "OpenSSH": (0.788, 1.000), "Spark": (0.920, 0.998), "Zookeeper": (0.967, 0.988),
}


def fail(text):
    print("loghub.py: " + text, file=sys.stderr)
    sys.exit(2)


def predicted(binary, log):
    run = subprocess.run([str(binary), "templates", "--lines", str(log)], capture_output=True, check=False)
    if run.returncode != 0:
        error = run.stderr.decode(errors="replace").strip()
        fail(f"{binary} templates --lines {log}: exit {run.returncode}: {error}")
    return run.stdout.decode(errors="replace").splitlines()


def truth(path):
    with open(path, encoding="utf-8", errors="replace", newline="") as file:
        return [row["EventTemplate"] for row in csv.DictReader(file)]


def groups(labels):
    out = collections.defaultdict(list)
    for index, label in enumerate(labels):
        out[label].append(index)
    return out


def grouping_accuracy(got, want):
    want_groups = groups(want)
    right = sum(len(lines) for lines in groups(got).values() if want_groups[want[lines[0]]] == lines)
    return right / len(want)


def measure(binary, folder):
    name = folder.name
    want = truth(folder / f"{name}_2k.log_structured.csv")
    got = predicted(binary, folder / f"{name}_2k.log")
    if len(got) != len(want):
        fail(f"{name}: {len(got)} ids for {len(want)} lines")
    drain, brain = PUBLISHED.get(name, (None, None))
    return {"set": name, "lines": len(want), "templates": len(set(got)), "templates_true": len(set(want)),
            "ga": round(grouping_accuracy(got, want), 4), "drain": drain, "brain": brain}


def mean_row(rows):
    def mean(key):
        values = [row[key] for row in rows if row[key] is not None]
        return round(sum(values) / len(values), 4) if values else None
    return {"set": "mean", "lines": sum(row["lines"] for row in rows),
            "templates": sum(row["templates"] for row in rows),
            "templates_true": sum(row["templates_true"] for row in rows),
            "ga": mean("ga"), "drain": mean("drain"), "brain": mean("brain")}


def main():
    parser = argparse.ArgumentParser(description="Grouping accuracy on loghub's 2k samples.")
    parser.add_argument("bin_dir", type=pathlib.Path)
    parser.add_argument("data_dir", type=pathlib.Path, nargs="?")
    parser.add_argument("--json", action="store_true", help="one JSON object a row")
    args = parser.parse_args()
    data = args.data_dir
    if data is None:
        if "CULPRIT_DATA" not in os.environ:
            fail("DATA_DIR is missing and CULPRIT_DATA is not set")
        data = pathlib.Path(os.environ["CULPRIT_DATA"]) / "loghub"
    binary = args.bin_dir / "culprit"
    if not binary.exists():
        fail(f"{binary}: no such file")
    folders = sorted(p.parent for p in data.glob("*/*_2k.log_structured.csv"))
    if not folders:
        fail(f"{data}: no <System>/<System>_2k.log_structured.csv")
    rows = [measure(binary, folder) for folder in folders]
    rows.append(mean_row(rows))
    if args.json:
        for row in rows:
            print(json.dumps(row))
        return
    def cell(value):
        return "    -" if value is None else f"{value:.3f}"
    print("set          found  true     GA  Drain  Brain   (Drain and Brain: published, settings per set)")
    for row in rows:
        print(f"{row['set']:<11} {row['templates']:>6} {row['templates_true']:>5}  {row['ga']:.4f}"
              f"  {cell(row['drain'])}  {cell(row['brain'])}")


if __name__ == "__main__":
    main()
