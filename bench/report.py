#!/usr/bin/env python3
"""Judges the samples of pyplaypen-bench: percentiles, ratios beside the goals, a page that shows them.

  report.py SAMPLES.json [--json OUT.json] [--plot OUT.svg] [--strict]

SAMPLES may also be an OUT.json of an earlier run. The status is 1 when something did not run and,
with --strict, when a goal is missed.
"""
import argparse
import json
import os
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import plot


def percentile(values, p):
    """`values` sorted; the nearest rank."""
    return values[min(len(values) - 1, int(len(values) * p / 100))]


def summary(item):
    values = sorted(v for samples in item["rounds"] for v in samples)
    if not values:
        return None
    return {
        "unit": item["unit"],
        "n": len(values),
        "min": values[0],
        "p10": percentile(values, 10),
        "p50": percentile(values, 50),
        "p90": percentile(values, 90),
        "p99": percentile(values, 99),
        "round_p50": [percentile(sorted(samples), 50) for samples in item["rounds"] if samples],
    }


def summarize(samples):
    """Samples -> what is kept of them; the snippets also as one, "call/snippets"."""
    items = {}
    failures = {}
    pooled = []
    for name, item in samples["items"].items():
        if name.startswith("call/snippet/"):
            pooled.append(item["rounds"])
        if "failure" in item:
            failures[name] = item["failure"]
        if found := summary(item):
            items[name] = found
    if pooled:
        rounds = [[v for item in pooled for v in item[r]] for r in range(min(map(len, pooled)))]
        items["call/snippets"] = summary({"unit": "us", "rounds": rounds})
    keep = {key: value for key, value in samples.items() if key not in ("items", "growth")}
    return {**keep, "items": items, "failures": failures, "growth": samples.get("growth", [])}


class Goals:
    """docs/performance.md has the list; each is a ratio of two things measured in this run."""

    def __init__(self, results):
        self.items = results["items"]
        self.growth = results["growth"]
        self.rows = []

    def add(self, what, value, bound, at_most, quiet=None, note=""):
        met = value <= bound if at_most else value >= bound
        self.rows.append({"goal": what, "ratio": value, "bound": bound, "at_most": at_most, "met": met,
                          "quiet": quiet, "note": note})

    def ratio(self, what, ours, floor, bound, at_most=True, note=""):
        if ours not in self.items or floor not in self.items:
            return
        a, b = self.items[ours], self.items[floor]
        # Of the undisturbed tenth of the samples: what a busy machine hides.
        best = "p10" if a["unit"] == "us" else "p90"
        self.add(what, a["p50"] / b["p50"], bound, at_most, a[best] / b[best], note or f"{text(a)} : {text(b)}")

    def against_ping_pong(self, what, ours, bound):
        """Beside the byte that goes at once, the one that goes after the pause that the call had: cores that
        sleep wake up for both."""
        note = ""
        rested = self.items.get("floor/ping_pong_after_pause")
        if rested and ours in self.items and "floor/ping_pong" in self.items:
            note = (f"{text(self.items[ours])} : {text(self.items['floor/ping_pong'])}; "
                    f"{self.items[ours]['p50'] / rested['p50']:.1f} after the same rest")
        self.ratio(f"{what} : ping-pong", ours, "floor/ping_pong", bound, note=note)

    def judge(self):
        self.against_ping_pong("1+1, a spare ready", "call/ready", 5)
        if ready := self.items.get("call/ready"):
            self.add("its p99 : its p50", ready["p99"] / ready["p50"], 5, True,
                     note=f"{ready['p99']:.0f} us : {ready['p50']:.0f} us")
        self.against_ping_pong("30 unseen snippets", "call/snippets", 15)
        self.against_ping_pong("numpy preloaded and used", "call/numpy", 20)
        self.ratio("1+1, none ready : bare fork, confine, eval, exit", "call/none_ready",
                   "floor/bare_fork_reaped", 1.5)
        sustained = [f"sustained/poll/{n}" for n in (2, 4, 8) if f"sustained/poll/{n}" in self.items]
        if sustained:
            best = max(sustained, key=lambda name: self.items[name]["p50"])
            self.ratio(f"sustained, {best.rpartition('/')[2]} at a time : bare fork, eval, exit, 2 at a time",
                       best, "floor/bare_fork_rate/2", 0.7, at_most=False)
        self.ratio("run -- true : timeout 5 true", "run/pyplaypen", "run/timeout", 1.3)
        self.ratio("run --confine-writes : timeout", "run/pyplaypen_confine_writes", "run/timeout", 1.5)
        self.ratio("run --unshare all -- true : bwrap --unshare-all true", "run/pyplaypen_unshare_all",
                   "run/bwrap_unshare_all", 1)
        self.ratio("stdout through execute : cat | cat", "call/stdout", "floor/cat", 0.5, at_most=False)
        if growth := self.items.get("call/stdout_host_growth"):
            self.add("host memory while 1 GB is printed, kB", growth["p90"], 1024, True)
        if "call/value_1mb" in self.items and "floor/json_1mb" in self.items:
            ours, floor = self.items["call/value_1mb"], self.items["floor/json_1mb"]
            self.add("1 MB value, speed : json.dumps + loads", floor["p50"] / ours["p50"], 0.8, False,
                     floor["p10"] / ours["p10"], f"{text(floor)} : {text(ours)}")
        self.judge_growth()
        return self.rows

    def judge_growth(self):
        if len(self.growth) < 4:
            return
        # Quarters, not single rows: a child that is being made is a descriptor more at that moment, and
        # a neighbour that starts to compile makes all calls slower from then on.
        quarter = len(self.growth) // 4
        early, late = self.growth[1:1 + quarter], self.growth[-quarter:]
        calls = f"last : first quarter of {self.growth[-1]['calls']:,} calls"
        least = lambda rows, key: min(row[key] for row in rows)
        median = lambda rows: percentile(sorted(row["p50_us"] for row in rows), 50)
        self.add(f"time, {calls}", median(late) / median(early), 1.15, True,
                 least(late, "p50_us") / least(early, "p50_us"))
        for key, what, bound in (("host_kb", "host memory", 1.05), ("zygote_kb", "zygote memory", 1.05),
                                 ("keepers_kb", "keepers' memory", 1.1), ("host_fds", "host descriptors", 1),
                                 ("zygote_fds", "zygote descriptors", 1),
                                 ("keepers_fds", "keepers' descriptors", 1),
                                 ("temp_entries", "temporary entries", 1)):
            if least(early, key):
                self.add(f"{what}, {calls}", least(late, key) / least(early, key), bound, True)


def text(item):
    value = item["p50"]
    if item["unit"] != "us":
        return f"{value:,.0f} {item['unit']}"
    return f"{value / 1000:,.1f} ms" if value >= 10_000 else f"{value:,.0f} us"


def number(value):
    return f"{value:10,.{1 if value >= 10 else 3}f}"


def print_items(results):
    print(f"{'':38} {'unit':>5} {'n':>6} {'min':>10} {'p10':>10} {'p50':>10} {'p90':>10} {'p99':>10}")
    for name, item in results["items"].items():
        print(f"{name:38} {item['unit']:>5} {item['n']:6} " +
              " ".join(number(item[key]) for key in ("min", "p10", "p50", "p90", "p99")))
    for name, why in {**results["skipped"], **results["failures"]}.items():
        print(f"{name}: not measured: {why}")
    for preload, processes in results.get("memory", {}).items():
        print(f"memory, preload {preload}: " + "; ".join(
            f"{process} PSS {kb['pss_kb'] / 1024:.1f} MB, private {kb['private_kb'] / 1024:.1f} MB"
            for process, kb in processes.items()))
    for item, stages in results.get("stages_us", {}).items():
        print(f"stages, {item}: " + ", ".join(f"{stage} {us:.0f} us" for stage, us in stages.items()))


def print_goals(goals):
    for goal in goals:
        sign = "<=" if goal["at_most"] else ">="
        quiet = f"  ({goal['quiet']:.2f} of the undisturbed samples)" if goal["quiet"] else ""
        note = f"  [{goal['note']}]" if goal["note"] else ""
        print(f"{'pass' if goal['met'] else 'MISS'}  {goal['ratio']:8.2f} {sign} {goal['bound']:<6} "
              f"{goal['goal']}{note}{quiet}")


def commit():
    try:
        found = subprocess.run(["git", "describe", "--always", "--dirty"], capture_output=True, text=True, check=True)
        return found.stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return ""


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("samples")
    parser.add_argument("--json")
    parser.add_argument("--plot")
    parser.add_argument("--strict", action="store_true")
    options = parser.parse_args()
    with open(options.samples, encoding="utf-8") as file:
        results = json.load(file)
    if "goals" not in results:
        results = summarize(results)
        results["commit"] = commit()
    results["goals"] = Goals(results).judge()
    print_items(results)
    print()
    print_goals(results["goals"])
    if options.json:
        with open(options.json, "w", encoding="utf-8") as file:
            json.dump(results, file, indent=1)
    if options.plot:
        with open(options.plot, "w", encoding="utf-8") as file:
            file.write(plot.page(results))
    if results["failures"]:
        return 1
    return 1 if options.strict and not all(goal["met"] for goal in results["goals"]) else 0


if __name__ == "__main__":
    sys.exit(main())
