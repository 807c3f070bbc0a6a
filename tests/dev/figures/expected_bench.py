#!/usr/bin/env python3
"""How well `expected` foretells a call: each program by a table that was fitted without it (leave-one-out).

  expected_bench.py HLO_REPLAY DUMPS [--kernels]

DUMPS as for expected_table.py. Prints expected over measured (best call by the host's clock), and measured over bound by
class; --kernels: the rows that are furthest off, too."""
import argparse
import collections
import pathlib

import expected_table


def by_class(programs):
    sums = collections.defaultdict(lambda: [0, 0.0, 0.0])
    for p in programs:
        for k in p["kernels"]:
            row = sums[k["row"]]
            row[0] += 1
            row[1] += k["took"] * k["times"]
            row[2] += k["bound"] * k["times"]
    print(f"\n{'class':<34} {'kernels':>7} {'measured':>10} {'over bound':>10}")
    for row, (count, took, bound) in sorted(sums.items(), key=lambda r: -r[1][1]):
        print(f"{row:<34} {count:>7} {took * 1e3:>7.3f} ms {took / bound if bound else 0:>10.2f}")


def show_rows(p, table):
    rows = collections.defaultdict(lambda: [0.0, 0.0])
    for k in p["kernels"]:
        rows[k["row"]][0] += k["times"] * expected_table.seconds_of(k, table)
        rows[k["row"]][1] += k["times"] * k["took"]
    for row, (told, took) in sorted(rows.items(), key=lambda r: -abs(r[1][0] - r[1][1]))[:5]:
        print(f"    {row:<30} {told * 1e3:8.3f} ms for {took * 1e3:8.3f}{'' if row in table else '  (no row without it)'}")


def main():
    words = argparse.ArgumentParser()
    words.add_argument("program")
    words.add_argument("dumps", type=pathlib.Path)
    words.add_argument("--kernels", action="store_true")
    a = words.parse_args()
    programs = expected_table.programs_of(a.program, a.dumps)
    within = 0
    print(f"{'program':<18} {'at least':>10} {'expected':>10} {'measured':>10} {'ratio':>6} {'kernels alone':>14} {'all fitted':>11}")
    whole = expected_table.fit(programs)
    for p in programs:
        table, times = expected_table.fit([o for o in programs if o is not p])
        told, kernels, _ = expected_table.foretell(p, table, times)
        within += abs(told / p["step"] - 1) <= 0.3
        print(f"{p['name']:<18} {p['least'] * 1e3:>7.3f} ms {told * 1e3:>7.3f} ms {p['step'] * 1e3:>7.3f} ms {told / p['step']:>6.2f} "
              f"{kernels / p['took']:>14.2f} {expected_table.foretell(p, *whole)[0] / p['step']:>11.2f}")
        if a.kernels:
            show_rows(p, table)
    print(f"{within} of {len(programs)} within 30 %, each by a table fitted without it")
    by_class(programs)


main()
