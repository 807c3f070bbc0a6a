"""Recordings: opened, asked, compared, bisected, reduced."""
import pathlib
import tempfile
import unittest

import numpy as np

import hlo_replay as hlo
from test_module import ROOT, TEXT


class Recorded(unittest.TestCase):
    """One folder for all of them."""

    @classmethod
    def setUpClass(cls):
        cls.made = tempfile.TemporaryDirectory()
        cls.folder = pathlib.Path(cls.made.name) / "out"
        cls.module = hlo.parse(ROOT / "testdata" / "mnist_softmax.hlo")
        hlo.replay(cls.module, out=cls.folder)

    @classmethod
    def tearDownClass(cls):
        cls.made.cleanup()

    def setUp(self):
        self.r = hlo.open(self.folder)

    def test_opened(self):
        r = self.r
        self.assertEqual([m.module_name for m in r.modules], ["cluster_mnist_softmax"])
        self.assertEqual(r.stages[0].name, "before_optimizations")
        self.assertEqual(r.stages[-1].name, "after_optimizations")
        self.assertIn("HloModule", r.stages[0].text)
        self.assertEqual(len(r.stages[0].module), 22)
        self.assertEqual(r.stage("before_optimizations").index, 0)
        self.assertEqual(r.stage(-1).name, "after_optimizations")
        with self.assertRaises(hlo.UsageError):
            r.stage("no such stage")
        for wrong in (10**6, -10**6, 10**30):
            with self.assertRaises((hlo.UsageError, OverflowError)):
                r.stage(wrong)
        self.assertIn("22", repr(r.stages[0]))

    def test_stages_share_ids(self):
        first, last = self.r.stages[0].module, self.r.stages[-1].module
        self.assertEqual(first["images"].id, last["images"].id)
        self.assertEqual(first["images"].name, "images")

    def test_stage_modules_run(self):
        inputs = self.module.seeded_inputs(1)
        want = self.r.stages[0].module.run(*inputs)
        for stage in (self.r.stages[-1], next(s for s in self.r.stages if s.changed)):
            got = stage.module.run(*inputs)
            for a, b in zip(np.atleast_1d(want) if isinstance(want, np.ndarray) else want, got if isinstance(got, tuple) else [got]):
                np.testing.assert_allclose(a, b, rtol=1e-4)

    def test_table(self):
        t = self.r.table()
        self.assertEqual(len({len(c) for c in t.values()}), 1)
        self.assertIn("pass", t)
        self.assertEqual(t["name"][0], "before_optimizations")

    def test_diff(self):
        d = self.r.diff("before_optimizations", "after_optimizations")
        self.assertFalse(d.same)
        self.assertTrue(d)
        self.assertGreater(d.removed + d.added + d.modified, 0)
        self.assertTrue(d.differences["sign"])
        same = self.r.diff(0, 0)
        self.assertTrue(same.same)
        self.assertFalse(same)
        self.assertEqual(hlo.diff(self.module, hlo.parse(self.module.print())).same, True)
        self.assertEqual(hlo.diff(self.module, hlo.parse(TEXT)).same, False)

    def test_explain(self):
        e = self.r.explain("fusion")
        self.assertEqual(e.name, "fusion")
        self.assertIn("made from", " ".join(e.events["what"]))
        with self.assertRaises(hlo.UsageError):
            self.r.explain("nobody")
        with self.assertRaises(hlo.Error):
            self.r.explain("--help")

    def test_cost_memory_summary(self):
        c = self.r.cost()
        self.assertGreater(c.seconds, 0)
        self.assertEqual(c.instructions["name"][0], "dot")
        self.assertGreater(self.r.cost(device="A100").seconds, 0)
        with self.assertRaises(hlo.Error):
            self.r.cost(device="Pentium")
        m = self.r.memory()
        self.assertGreater(m.allocated, 0)
        self.assertIn("images", m.alive["name"])
        s = self.r.summary()
        self.assertGreater(len(s.rows["key"]), 0)
        self.assertIn("runs", self.r.summary(by="pass").rows)
        with self.assertRaises(hlo.Error):
            self.r.summary(by="colour")
        self.assertGreater(self.module.cost().flops, 0)
        self.assertGreater(self.module.memory().arguments, 0)

    def test_memory_as_a_task(self):
        dump = hlo.open(ROOT / "testdata" / "memory")
        plain = dump.memory()
        self.assertEqual((plain.log, plain.stages["stage"], plain.changes["pass"], plain.levers["kind"]), (None, [], [], []))
        log = pathlib.Path(self.made.name) / "train.log"
        log.write_text("RESOURCE_EXHAUSTED: Out of memory while trying to allocate 368.00MiB.\n")
        m = dump.memory(log=log, stages=True)
        self.assertEqual(m.allocated, plain.allocated)
        self.assertEqual((m.log.complaints["kind"], m.log.complaints["allocations"][0][0]["kind"]), (["allocation"], "temporary"))
        self.assertEqual(m.stages["stage"][-1], "after_optimizations")
        self.assertTrue(all(x != y for x, y in zip(m.changes["before_bytes"], m.changes["after_bytes"])))
        self.assertTrue(dump.memory_log(log))
        log.write_text("all is well\n")
        self.assertFalse(dump.memory_log(log))
        with self.assertRaises(hlo.Error):
            dump.memory(log=log.with_name("nowhere.log"))
        levers = dump.memory(tries=True).levers
        self.assertIn("donate", levers["kind"])
        self.assertTrue(any(levers["helps"]))

    def test_view(self):
        with tempfile.TemporaryDirectory() as made:
            page = self.r.view(pathlib.Path(made) / "page.html")
            self.assertTrue(page.exists())
            self.assertEqual(page.suffix, ".html")

    def test_closed(self):
        stage, module = self.r.stages[0], self.r.stages[0].module
        self.r.close()
        self.r.close()
        for ask in (lambda: self.r.stages, lambda: self.r.diff(0, 1), lambda: self.r.explain("fusion"), lambda: stage.text,
                    lambda: stage.module, self.r.cost, self.r.memory, self.r.summary, self.r.table):
            with self.assertRaisesRegex(hlo.UsageError, "closed"):
                ask()
        self.assertEqual(len(module), 22)
        with hlo.open(self.folder) as r:
            self.assertTrue(r.stages)
        with self.assertRaises(hlo.UsageError):
            r.stages  # pylint: disable=pointless-statement

    def test_what_is_no_recording(self):
        with tempfile.TemporaryDirectory() as empty, self.assertRaises(hlo.InputError):
            hlo.open(empty)
        for nothing in ("/nowhere", "", "\0"):
            with self.assertRaises((hlo.Error, ValueError)):
                hlo.open(nothing)
        for wrong in (None, 7, [], b"\xff"):
            with self.assertRaises((TypeError, hlo.Error)):
                hlo.open(wrong)

    def test_damaged_files_are_told(self):
        with tempfile.TemporaryDirectory() as made:
            folder = pathlib.Path(made) / "out"
            hlo.replay(self.module, out=folder)
            for path in folder.glob("*.txt"):
                path.write_text("HloModule broken {")
            for path in folder.glob("*.hlol"):
                path.write_bytes(path.read_bytes()[:100])
            with self.assertRaises(hlo.Error):
                hlo.open(folder).stages[0].module  # pylint: disable=expression-not-assigned


class Answers(unittest.TestCase):
    """What the command line answers, as typed results."""

    @classmethod
    def setUpClass(cls):
        cls.made = tempfile.TemporaryDirectory()
        cls.folder = pathlib.Path(cls.made.name) / "out"
        cls.module = hlo.parse(ROOT / "testdata" / "mnist_softmax.hlo")
        cls.r = hlo.replay(cls.module, out=cls.folder)
        cls.inputs = cls.module.seeded_inputs(7)
        cls.outputs = cls.module.run(*cls.inputs)
        cls.outputs = cls.outputs if isinstance(cls.outputs, tuple) else (cls.outputs,)

    @classmethod
    def tearDownClass(cls):
        cls.made.cleanup()

    def columns(self, table, *names):
        self.assertEqual(len({len(c) for c in table.values()}), 1)
        for name in names:
            self.assertIn(name, table)

    def test_search(self):
        found = self.r.search(opcode="fusion")
        self.assertTrue(found and found.found == len(found))
        self.columns(found.table(), "instruction", "shape", "source")
        self.assertFalse(self.r.search("no such name"))

    def test_times_and_choices(self):
        self.assertIsInstance(self.r.compile_time().told, bool)
        self.columns(self.r.tuned().table(), "instruction", "chosen")
        with self.assertRaises(hlo.Error):
            self.r.profile("/nowhere.xplane.pb")

    def test_run_and_check(self):
        ran = self.r.exec(0, seed=7)
        self.assertEqual(ran.inputs, "seed 7")
        self.assertAlmostEqual(ran.table()["max"][0], float(self.outputs[0].max()), places=5)
        with self.assertRaises(hlo.UsageError):
            self.r.check()
        with self.assertRaises(hlo.UsageError):
            self.r.exec(0, seed=7, inputs="a.npz")

    def test_its_own_inputs(self):
        with tempfile.TemporaryDirectory() as made:
            folder = pathlib.Path(made) / "out"
            r = hlo.replay(self.module, out=folder)
            stem = f"module_0001.{r.module_name}"
            np.savez(folder / f"{stem}.arguments.npz", **{f"p{k}": a for k, a in enumerate(self.inputs)})
            np.savez(folder / f"{stem}.results.npz", **{f"o{k}": a for k, a in enumerate(self.outputs)})
            own = f"{stem}.arguments.npz, of the first call"
            self.assertEqual((r.exec(0).inputs, r.check().inputs, r.bisect().inputs), (own, own, own))
            self.assertIn(r.check().verdict, ("right", "rounding"))
            self.assertEqual(r.exec(0, seed=1).inputs, "seed 1")
            self.assertIsNone(r.captured)
            np.savez(folder / f"{stem}.arguments.npz", p0=np.zeros(3, np.float32))
            for ask in (r.check, r.bisect, r.exec):
                with self.assertRaisesRegex(hlo.UsageError, "does not fit module"):
                    ask()
            (folder / "capture.json").write_text('{"version": 99}')
            with self.assertRaisesRegex(hlo.InputError, "another release"):
                r.captured  # pylint: disable=pointless-statement
            with self.assertRaisesRegex(hlo.UsageError, "another release"):
                r.bisect()

    def test_triage(self):
        t = self.r.triage(time_limit=10)
        self.columns(t.table(), "rung", "outcome")
        self.assertIsNone(t.report)

    def test_another_recording(self):
        self.assertTrue(self.r.diff(hlo.open(self.folder)).same)
        other = hlo.replay(self.module, disabled=["fusion"])
        self.assertFalse(self.r.diff(other).same)

    def test_old_spellings_warn(self):
        for ask in (lambda: self.r.name, lambda: self.r.text(), lambda: self.r.stages[0]["name"], lambda: self.r[0],
                    lambda: self.r.stages[0].get("pass"), lambda: self.r.bisect()["found"], lambda: self.r.triage(time_limit=5).passname):
            with self.assertWarns(DeprecationWarning):
                ask()


class SeveralModules(unittest.TestCase):
    def test_a_run(self):
        with tempfile.TemporaryDirectory() as made:
            for name in ("first", "second"):
                hlo.replay(hlo.parse(TEXT.replace("small", f"jit_{name}")), out=pathlib.Path(made) / name)
            run = hlo.open(made)
            self.assertEqual([m.module_name for m in run.modules], ["jit_first", "jit_second"])
            self.assertEqual(run["second"].module_name, "jit_second")
            self.assertEqual(run["jit_first"].stages[0].module.name, "jit_first")
            self.assertEqual(len(run), 2)
            self.assertIn("2 modules", repr(run))
            self.assertIn("jit_second", run._repr_html_())
            for ask in (lambda: run.stages, lambda: run.explain("sum"), run.cost, lambda: run["third"], lambda: run.module_name):
                with self.assertRaisesRegex(hlo.UsageError, "jit_first"):
                    ask()
            self.assertGreater(run["first"].cost().seconds, 0)
            self.assertGreater(run["first"].memory().allocated, 0)
            self.assertEqual(len(run.summary(by="module").rows["key"]), 2)
            self.assertFalse(run["second"].bisect().found)
            self.assertTrue(run["second"].view(pathlib.Path(made) / "page.html").exists())
            part = run["first"]
            run.close()
            with self.assertRaisesRegex(hlo.UsageError, "closed"):
                part.stages  # pylint: disable=pointless-statement


class Searching(unittest.TestCase):
    def test_bisect_by_values(self):
        m = hlo.parse(ROOT / "testdata" / "mnist_softmax.hlo")
        b = hlo.replay(m).bisect()
        self.assertFalse(b.found)

    def test_bisect_by_a_callable(self):
        r = hlo.replay(hlo.parse(ROOT / "testdata" / "mnist_softmax.hlo"))
        asked = []

        def no_fusion(module):
            asked.append(len(module))
            return not any(i.opcode == "fusion" for i in module)

        b = r.bisect(oracle=no_fusion)
        self.assertTrue(b.found)
        self.assertEqual(b.pass_name, "fusion")
        self.assertLess(len(asked), 12)
        self.assertNotIn("fusion(", r.stage(b.good).text)
        self.assertIn("fusion(", r.stage(b.bad).text)
        self.assertFalse(r.bisect(oracle=lambda module: True).found)

    def test_oracles_that_raise_come_through(self):
        class Mine(Exception):
            pass

        def raising(_):
            raise Mine("my own")

        r = hlo.replay(hlo.parse(ROOT / "testdata" / "mnist_softmax.hlo"))
        with self.assertRaisesRegex(Mine, "my own"):
            r.bisect(oracle=raising)
        with self.assertRaisesRegex(Mine, "my own"):
            hlo.parse(TEXT).reduce(raising)
        with self.assertRaises(TypeError):
            r.bisect(oracle=7)
        with self.assertRaises(TypeError):
            r.bisect(oracle=lambda module: "perhaps")

    def test_reduce(self):
        m = hlo.parse(ROOT / "testdata" / "mnist_softmax.hlo")
        small = m.reduce(lambda c: any(i.opcode == "exponential" for i in c))
        self.assertLess(len(small), 6)
        self.assertTrue(any(i.opcode == "exponential" for i in small))
        self.assertEqual(len(m), 22)
        with self.assertRaises(hlo.UsageError):
            m.reduce(lambda c: False)
        r = hlo.replay(m)
        self.assertLess(len(r.reduce(lambda c: any(i.opcode == "dot" for i in c), stage=0)), 6)


if __name__ == "__main__":
    unittest.main()
