#!/usr/bin/env python3
"""../shared/oracle/agreement.py, with the passes judged, too, whose pipelines are called like them:

  ORACLE_PYTHON agreement_all.py --tool "hlo-replay opt --passes={pass} --call-site={pipeline} {file}" DUMPDIR…

It leaves them out (layout_normalization, autotuner) as it takes their stages for those of the pipelines. copy-insertion is
judged by the stage behind the whole pass: behind its last step XLA takes out copies once more. All options are its own."""
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[4] / "shared" / "oracle"))
import agreement
import xla

BOTH = {"layout_normalization", "autotuner"}  # no pipeline of these names runs within another one
runs = xla.pass_runs


def changes(directory):
    stages = [stage for stage in xla.stage_files(directory) if stage[4]]
    pipelines = {stage[2] for stage in stages} - BOTH
    for earlier, later in zip(stages, stages[1:]):
        if earlier[0] == later[0] and later[3] != "pipeline-start" and later[3] not in pipelines:
            yield later[3], later[2], earlier[5], later[5]


def pass_runs(directory):
    for run in runs(directory):
        if run["pipeline"].replace(" ", "_") in BOTH:
            run["pipeline"] = run["pipeline"].replace("_", " ") + " "
        yield run


def copy_steps(directory):
    stages = xla.stage_files(directory)
    for at, stage in enumerate(stages):
        if stage[3] == "copy-insertion" and stage[4]:
            first = at - 1
            while first >= 0 and not stages[first][4]:  # its own steps
                first -= 1
            if first >= 0 and stages[first][0] == stage[0]:
                yield "copy-insertion", stage[2], stages[first][5], stage[5]


xla.changes, xla.pass_runs, xla.copy_steps = changes, pass_runs, copy_steps
agreement.main()
