#!/usr/bin/env python3
"""Compares fornax-bench with PyTorch on this machine, workload by workload.

Both sides run in turn, group by group, for several rounds; the best of the rounds counts. A ratio
is ours / PyTorch's, so below 1 is faster:
  cpu    cpu_min_ms (CPU time of all threads, best repetition) at 1 thread
  wall   median_ms at 2 threads, waiting threads asleep
  micro  cpu_min_ns_per_op against libtorch called from C++; Python's figure stands beside it
PyTorch is installed into an environment of its own unless --peer-python names one.
"""

import argparse
import fnmatch
import json
import math
import os
import pathlib
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
TORCH = ["torch==2.15.0", "torchvision==0.29.2", "numpy"]
# Target: group -> (geometric mean, none above).
TARGETS = {
    "micro": (0.25, None),
    "ew": (0.7, 1.1),
    "red": (0.6, 1.1),
    "row": (0.8, 1.1),
    "mm": (None, 1.1),
    "conv": (None, 1.1),
    "train": (None, 0.75),
}
# Groups whose targets leave some workloads out.
TARGET_PATTERNS = {
    "mm": ["mm.f32*", "mm.bf16*"],
    "train": ["train.fmnist_cnn", "train.mlp3"],
}
RESULTS_BEGIN, RESULTS_END = "<!-- results: begin -->", "<!-- results: end -->"


def parse_arguments():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--peer", type=pathlib.Path, default=ROOT.parent / "shared/bench/peer",
                        help="folder of torch_bench.py and cpp/micro.cpp")
    parser.add_argument("--peer-python", type=pathlib.Path, help="a Python that has PyTorch")
    parser.add_argument("--ours", type=pathlib.Path, default=ROOT / "build/release/bin/fornax-bench")
    parser.add_argument("--workloads", default="*", help="shell patterns, comma-separated")
    parser.add_argument("--skip", default="")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--reps", type=int, default=10)
    parser.add_argument("--max-seconds", type=float, default=1.0)
    parser.add_argument("--no-wall", action="store_true", help="leave out the runs at 2 threads")
    parser.add_argument("--json", type=pathlib.Path, help="write all figures here")
    parser.add_argument("--markdown", type=pathlib.Path,
                        help="replace the results in this file, between its two markers")
    return parser.parse_args()


def peer_python(arguments):
    """The interpreter of an environment that has PyTorch, made on the first use."""
    if arguments.peer_python:
        return arguments.peer_python
    venv = ROOT / "build/peer-venv"
    python = venv / "bin/python"
    if not (venv / "complete").exists():
        print("installing PyTorch into build/peer-venv (5.5 GB) ...", file=sys.stderr)
        subprocess.run([sys.executable, "-m", "venv", venv], check=True)
        subprocess.run([python, "-m", "pip", "install", "--quiet", *TORCH], check=True)
        (venv / "complete").touch()
    return python


def group_of(name):
    return name.split(".")[0]


def matches(name, patterns):
    return any(fnmatch.fnmatch(name, p) for p in patterns.split(",") if p)


def listed(command):
    text = subprocess.run([*command, "--list"], check=True, capture_output=True, text=True).stdout
    return [line.split()[0] for line in text.splitlines() if line.strip()]


def common_workloads(arguments, python):
    theirs = set(listed([python, arguments.peer / "torch_bench.py"]))
    return [
        name for name in listed([arguments.ours])
        if name in theirs and matches(name, arguments.workloads)
        and not matches(name, arguments.skip) and name != "startup.size"
    ]


class Side:
    """Runs one program and keeps the best figures of each workload."""

    def __init__(self, command, arguments):
        self.command = [str(part) for part in command]
        self.flags = ["--reps", str(arguments.reps), "--max-seconds", str(arguments.max_seconds)]
        self.best = {}

    def run(self, names, threads):
        with tempfile.TemporaryDirectory() as folder:
            file = pathlib.Path(folder) / "records.json"
            environment = {k: v for k, v in os.environ.items() if not k.startswith("OMP_")}
            subprocess.run(
                [*self.command, *self.flags, "--workloads", ",".join(names), "--json", str(file),
                 "--threads", str(threads), "--passive"],
                check=True, stdout=subprocess.DEVNULL, env=environment)
            for record in json.loads(file.read_text()):
                self.keep(record, threads)

    def keep(self, record, threads):
        kept = self.best.setdefault(record["name"], {})
        if "error" in record:
            kept["error"] = record["error"]
            return
        keys = ["cpu_min_ms", "cpu_min_ns_per_op"] if threads == 1 else ["median_ms"]
        if record["name"].startswith("startup."):
            keys = ["median_ms"]
        for key in keys:
            if key in record:
                kept[key] = min(record[key], kept.get(key, math.inf))
        kept.setdefault("check", record.get("check"))


class Libtorch:
    """The C++ program of micro.*, built against the peer's own libraries."""

    def __init__(self, arguments, python):
        self.program = ROOT / "build/peer-micro"
        self.best = {}
        source = arguments.peer / "cpp/micro.cpp"
        if not self.program.exists():
            subprocess.run(["bash", arguments.peer / "cpp/build.sh", source, self.program],
                           check=True, env=dict(os.environ, PY=str(python)))

    def run(self):
        text = subprocess.run([self.program], check=True, capture_output=True, text=True).stdout
        for record in map(json.loads, text.splitlines()):
            ns = record["cpu_min_ns_per_op"]
            self.best[record["name"]] = min(ns, self.best.get(record["name"], math.inf))


def run_rounds(arguments, python, names):
    ours = Side([arguments.ours], arguments)
    theirs = Side([python, arguments.peer / "torch_bench.py"], arguments)
    groups = {}
    for name in names:
        groups.setdefault(group_of(name), []).append(name)
    libtorch = Libtorch(arguments, python) if "micro" in groups else None
    for number in range(arguments.rounds):
        for group, members in groups.items():
            print(f"round {number + 1}: {group}", file=sys.stderr)
            sides = [ours, theirs] if number % 2 == 0 else [theirs, ours]
            wall = not arguments.no_wall and group not in ("micro", "startup")
            for threads in [1, 2] if wall else [1]:
                for side in sides:
                    side.run(members, threads)
            if group == "micro":
                libtorch.run()
    return ours.best, theirs.best, libtorch.best if libtorch else {}


def ns_per_op(record):
    return record.get("cpu_min_ns_per_op", record.get("cpu_min_ms", math.nan) * 1e6)


def ratio(a, b):
    return a / b if a is not None and b else None


def compare_one(name, ours, theirs, libtorch):
    row = {"name": name, "group": group_of(name)}
    error = ours.get("error") or theirs.get("error")
    if error:
        return dict(row, error=error)
    if row["group"] == "micro":
        row.update(unit="ns", ours=ns_per_op(ours), theirs=libtorch.get(name),
                   python=ns_per_op(theirs))
    elif row["group"] == "startup":
        row.update(unit="ms", ours=ours["median_ms"], theirs=theirs["median_ms"])
    else:
        row.update(unit="ms", ours=ours["cpu_min_ms"], theirs=theirs["cpu_min_ms"],
                   wall=ratio(ours.get("median_ms"), theirs.get("median_ms")))
    row["ratio"] = ratio(row["ours"], row["theirs"])
    if ours.get("check") and theirs.get("check"):
        a, b = ours["check"][0], theirs["check"][0]
        row["check_differs"] = abs(a - b) > 1e-4 * abs(b)
        row["checks"] = [a, b]
    return row


def geometric_mean(values):
    return math.exp(sum(map(math.log, values)) / len(values)) if values else None


def number(value, digits=3):
    if value is None or math.isnan(value):
        return "-"
    return f"{value:.{digits}g}" if value < 1000 else f"{value:.0f}"


def missed_targets(rows):
    for group, (mean_target, worst_target) in TARGETS.items():
        patterns = ",".join(TARGET_PATTERNS.get(group, [group + ".*"]))
        kept = [r for r in rows if r.get("ratio") and matches(r["name"], patterns)]
        mean = geometric_mean([r["ratio"] for r in kept])
        if mean_target and mean and mean > mean_target:
            yield f"{group}.*: geometric mean {mean:.3f}, target {mean_target}"
        for r in kept:
            if worst_target and r["ratio"] > worst_target:
                yield f"{r['name']}: {r['ratio']:.2f}, target {worst_target}"


def results_text(rows):
    """The tables, in Markdown."""
    lines = []
    for group in dict.fromkeys(r["group"] for r in rows):
        members = [r for r in rows if r["group"] == group]
        micro = group == "micro"
        last = "Python, ns" if micro else "wall ratio, 2 threads"
        peer = "libtorch" if micro else "PyTorch"
        unit = members[0].get("unit", "ms")
        lines += [f"### {group}.*", "",
                  f"| workload | fornax, {unit} | {peer}, {unit} | ratio | {last} |",
                  "|---|---:|---:|---:|---:|"]
        for r in members:
            if "error" in r:
                lines.append(f"| {r['name']} | failed: {r['error']} | | | |")
                continue
            beside = number(r.get("python") if micro else r.get("wall"))
            lines.append(f"| {r['name']} | {number(r['ours'])} | {number(r['theirs'])} "
                         f"| {number(r['ratio'])} | {beside} |")
        known = [r["ratio"] for r in members if r.get("ratio")]
        if len(known) > 1:
            lines.append(f"| **geometric mean** | | | **{number(geometric_mean(known))}** | |")
        lines.append("")
    worst = sorted((r for r in rows if r.get("ratio")), key=lambda r: -r["ratio"])[:10]
    lines += ["### Worst ten", "", "| workload | ratio |", "|---|---:|"]
    lines += [f"| {r['name']} | {number(r['ratio'])} |" for r in worst]
    missed = list(missed_targets(rows))
    lines += ["", "### Missed targets", ""]
    lines += [f"* {m}" for m in missed] or ["None of the workloads above misses its target."]
    wrong = [r for r in rows if r.get("check_differs")]
    if wrong:
        lines += ["", "### Results that differ", ""]
        lines += [f"* {r['name']}: {r['checks'][0]} against {r['checks'][1]}" for r in wrong]
    return "\n".join(lines) + "\n"


def machine():
    """The machine in words: cores, vector extensions, memory."""
    info = pathlib.Path("/proc/cpuinfo").read_text()
    flags = next((l for l in info.splitlines() if l.startswith("flags")), "").split()
    wanted = ["avx2", "fma", "avx512f", "avx512bw", "avx512_bf16", "avx512_fp16", "avx512_vnni",
              "amx_bf16", "amx_int8"]
    memory = pathlib.Path("/proc/meminfo").read_text().split()[1]
    return (f"{len(os.sched_getaffinity(0))} CPUs ({', '.join(f for f in wanted if f in flags)}), "
            f"{int(memory) / 2**20:.0f} GiB of memory")


def write_markdown(file, text):
    page = file.read_text()
    head, rest = page.split(RESULTS_BEGIN)
    tail = rest.split(RESULTS_END)[1]
    file.write_text(f"{head}{RESULTS_BEGIN}\nMeasured on {machine()}.\n\n{text}{RESULTS_END}{tail}")


def main():
    arguments = parse_arguments()
    if not (arguments.peer / "torch_bench.py").exists():
        sys.exit(f"compare.py: no torch_bench.py in {arguments.peer}; give its folder with --peer")
    if not arguments.ours.exists():
        sys.exit(f"compare.py: {arguments.ours} is missing; build it, or name it with --ours")
    python = peer_python(arguments)
    names = common_workloads(arguments, python)
    if not names:
        sys.exit("compare.py: no workload matches on both sides")
    ours, theirs, libtorch = run_rounds(arguments, python, names)
    rows = [compare_one(n, ours.get(n, {"error": "no record"}),
                        theirs.get(n, {"error": "no record"}), libtorch) for n in names]
    text = results_text(rows)
    print(text)
    if arguments.json:
        arguments.json.write_text(json.dumps(rows, indent=1) + "\n")
    if arguments.markdown:
        write_markdown(arguments.markdown, text)


if __name__ == "__main__":
    main()
