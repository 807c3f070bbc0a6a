#!/usr/bin/env python3
"""Writes replay/report/kernels/expected.def, what kernels reach by measurement, from profiles joined to their dumps.

  expected_table.py HLO_REPLAY DUMPS [--write]

DUMPS holds NAME/dump, NAME/vm.xplane.pb and NAME/NAME.profile.json (seconds a call, by the host's clock) of NAME. Of each
class of kernels: microseconds of a launch, a factor on what the kernel needs at the card's full rates (`work_seconds` of
`cost --json`), so that a larger kernel is never foretold to take less, and how many launches a library's call is. Medians. Of the host
four: microseconds of a call, of a launch where the host is the slower one, and between two kernels, plain and in a graph."""
import argparse
import collections
import json
import pathlib
import statistics
import subprocess

ROOT = pathlib.Path(__file__).resolve().parents[3]
SMALL, LARGE = 1e-6, 2e-6  # seconds of work: a launch's cost is seen below, the factor above
FEWEST = 2  # kernels of a row
# Microseconds of a launch, factor on what is needed at full rates, launches that one call of a library is.
Row = collections.namedtuple("Row", "fixed factor parts kernels programs")


def asked(program, *words):
    return json.loads(subprocess.run([program, *words, "--json"], capture_output=True, text=True, check=True).stdout)


def program_of(program, folder):
    """What one call of a program ran: {"kernels": […], "expected": what `cost` says of its launches, "step", "within"}."""
    profile, dump = folder / "vm.xplane.pb", folder / "dump"
    told = asked(program, "profile", profile, dump, "--by=module", "--most=1000")
    ran = max(told["rows"], key=lambda r: r["seconds"])["key"]
    modules = [m for m in told["modules"] if m["name"] == ran]
    chosen = max(modules, key=lambda m: m["seconds"])
    where = f"{dump}:{chosen['selector']}" if len(told["modules"]) > 1 else str(dump)
    cost = asked(program, "cost", where, f"--profile={profile}")
    device = told["devices"][0]
    spans = {}
    for i in asked(program, "profile", profile, dump, "--most=1000000")["instructions"]:
        if i["module"] == ran:
            spans[i["instruction"]] = spans.get(i["instruction"], 0) + i["count"] / device["runs"]
    # `calls`: launches by the schedule; `parts`: kernels that each of them is, of a library's call several.
    kernels = [dict(row=k["expected"]["row"], work_seconds=k["expected"]["work_seconds"], calls=k["expected"]["calls"],
                    nodes=k["expected"]["nodes"], times=k["times"], took=k["measured_seconds"] / k["times"],
                    library=k["expected"]["library"], bound=k["least_seconds"] / k["times"],
                    parts=max(1, round(spans.get(k["name"], 0) / k["times"] / k["expected"]["calls"]) if k["expected"]["library"] else 1))
               for k in cost["instructions"] if k["measured_seconds"] and k["expected"]["calls"] > 0]
    step = json.loads((folder / f"{folder.name}.profile.json").read_text())["step_s"]["min"]
    return {"name": folder.name, "kernels": kernels, "expected": cost["expected"], "step": step, "least": cost["least_seconds"],
            "within": device["between_within_runs"] / device["runs"], "took": sum(k["took"] * k["times"] for k in kernels)}


def programs_of(program, dumps):
    return [program_of(program, f) for f in sorted(dumps.iterdir()) if (f / "vm.xplane.pb").exists()]


def factor_of(kernels, fixed, parts):
    """Measured without its launches over what is needed at full rates: of each program its sum, of programs the median."""
    took, work = {}, {}
    for k in kernels:
        if k["work_seconds"] >= LARGE:
            name = k["program"]
            took[name] = took.get(name, 0) + k["times"] * max(k["took"] - k["calls"] * parts * fixed, 0)
            work[name] = work.get(name, 0) + k["times"] * k["work_seconds"]
    return statistics.median(took[name] / work[name] for name in took) if took else None


def families(rows):
    """`product/cuBLAS` of all types, for a type that has no row: kernels of each part of a name that is no row itself."""
    out = dict(rows)
    for row, kernels in rows.items():
        while "/" in row:
            row = row.rpartition("/")[0]
            if row not in rows:
                out[row] = out.get(row, []) + kernels
    return out


def fit(programs):
    """({row: Row}, (call, launch, gap, node) in microseconds)."""
    rows = {}
    for p in programs:
        for k in p["kernels"]:
            rows.setdefault(k["row"], []).append(dict(k, program=p["name"]))
    rows = {row: kernels for row, kernels in families(rows).items() if len(kernels) >= FEWEST}
    out, fixed = {}, 2e-6
    for library, name in ((False, "kernel"), (True, "library call")):
        mine = {row: kernels for row, kernels in rows.items() if kernels[0]["library"] == library}
        every = [k for p in programs for k in p["kernels"] if k["library"] == library]
        small = [k for k in every if k["work_seconds"] < SMALL]
        # Of no small library call the compiled kernels' launch.
        fixed = statistics.median(k["took"] / k["calls"] / k["parts"] for k in small) if small else fixed
        parts = {row: min(k["parts"] for k in kernels) for row, kernels in mine.items()}
        factors = {row: factor_of(kernels, fixed, parts[row]) for row, kernels in mine.items()}
        general = statistics.median(f for f in factors.values() if f is not None)
        out[name] = Row(fixed * 1e6, general, 1, len(every), len(programs))
        for row, kernels in sorted(mine.items()):
            factor = general if factors[row] is None else factors[row]
            small = [k for k in kernels if k["work_seconds"] < SMALL]
            launch = statistics.median(max(k["took"] - factor * k["work_seconds"], 0) / k["calls"] / parts[row]
                                       for k in small) if len(small) >= FEWEST else fixed
            out[row] = Row(launch * 1e6, factor, parts[row], len(kernels), len({k["program"] for k in kernels}))
    return out, host(programs)


def row_of(k, table):
    """The row that foretells a kernel: its own, its family's, or that of all."""
    row = k["row"]
    while row not in table and "/" in row:
        row = row.rpartition("/")[0]
    return table.get(row) or table["library call" if k["library"] else "kernel"]


def host(programs):
    def nodes(p):
        return sum(k["times"] * k["parts"] for k in p["kernels"] if k["nodes"])

    def plain(p):
        return sum(k["times"] * k["parts"] * k["calls"] for k in p["kernels"] if not k["nodes"]) + p["expected"]["graphs"]

    graphs = [p for p in programs if nodes(p) > 10 * plain(p)]
    node = statistics.median(p["within"] / nodes(p) for p in graphs)
    call = statistics.median(max(p["step"] - p["took"] - nodes(p) * node, 0) for p in graphs)
    # The fastest host that was seen: a slower one waited for the device.
    paced = [p for p in programs if plain(p) > 10]
    launch = min((p["step"] - call) / plain(p) for p in paced)
    gap = statistics.median(max(p["step"] - call - p["took"] - nodes(p) * node, 0) / plain(p)
                            for p in paced if (p["step"] - call) / plain(p) > 1.3 * launch)
    return tuple(1e6 * s for s in (call, launch, gap, node))


def seconds_of(k, table):
    """Of one run."""
    row = row_of(k, table)
    return k["calls"] * row.parts * row.fixed * 1e-6 + row.factor * k["work_seconds"]


def foretell(p, table, times):
    """Seconds of a call by the table, as replay/report/kernels/expected.cc sums them: (all, kernels, between)."""
    call, launch, gap, node = (t * 1e-6 for t in times)
    kernels = sum(k["times"] * seconds_of(k, table) for k in p["kernels"])
    nodes = sum(k["times"] * k["nodes"] * row_of(k, table).parts for k in p["kernels"])
    starts = sum(k["times"] * (k["calls"] - k["nodes"]) * row_of(k, table).parts for k in p["kernels"]) + p["expected"]["graphs"]
    between = max(starts * gap + nodes * node, starts * launch - kernels)
    return call + kernels + between, kernels, between


def written(table, times):
    lines = ["// EXPECTED(row, microseconds of a launch, factor on what the kernel needs at full rates, launches of a call, kernels,",
             "// programs)",
             "// EXPECTED_HOST(microseconds of a call, of a launch by the host, between kernels, between those of a graph)",
             "// Written by tests/dev/figures/expected_table.py."]
    lines += [f'EXPECTED("{name}", {row.fixed:.3g}, {row.factor:.3g}, {row.parts:g}, {row.kernels}, {row.programs})'
              for name, row in sorted(table.items())]
    return "\n".join(lines + ["EXPECTED_HOST({:.3g}, {:.3g}, {:.3g}, {:.3g})".format(*times)]) + "\n"


def main():
    words = argparse.ArgumentParser()
    words.add_argument("program")
    words.add_argument("dumps", type=pathlib.Path)
    words.add_argument("--write", action="store_true")
    a = words.parse_args()
    text = written(*fit(programs_of(a.program, a.dumps)))
    print(text, end="")
    if a.write:
        (ROOT / "replay/report/kernels/expected.def").write_text(text)


if __name__ == "__main__":
    main()
