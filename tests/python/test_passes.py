"""Passes and pipelines."""
import pathlib
import unittest

import hlo_replay as hlo
from test_module import ROOT, TEXT


class Passes(unittest.TestCase):
    def test_there_are_passes(self):
        by_name = {p.name: p for p in hlo.passes()}
        self.assertIn("algsimp", by_name)
        self.assertTrue(by_name["algsimp"].summary)
        self.assertIn("xla-2019", hlo.pipelines())

    def test_running_one(self):
        m = hlo.parse(TEXT.replace("add(a, b)", "add(a, a)"))
        done = m.passes.run("dce")
        self.assertTrue(done.changed is False or done.changed is True)
        self.assertIn("dce", dir(m.passes))
        self.assertIn("dce", m.passes)
        self.assertGreater(len(m.passes), 40)
        m.entry.add("dead = f32[4] negate(a)")
        done = m.passes.dce()
        self.assertTrue(done.changed)
        self.assertNotIn("dead", m)
        self.assertGreaterEqual(done.rewrites, 1)

    def test_several_with_options(self):
        m = hlo.parse(ROOT / "testdata" / "mnist_softmax.hlo")
        done = m.passes.run("algsimp,dce,fusion")
        self.assertEqual(m.verify(), [])
        self.assertTrue(done.changed)

    def test_unknown_ones_are_refused(self):
        m = hlo.parse(TEXT)
        with self.assertRaisesRegex(hlo.UsageError, "algsimp"):
            m.passes.run("algsinp")
        with self.assertRaises(hlo.UsageError):
            m.passes.run("algsimp", no_such_option=1)
        with self.assertRaises(hlo.UsageError):
            m.passes.run("algsimp", fuel=-1)
        with self.assertRaises(AttributeError):
            m.passes.no_such_pass()
        self.assertEqual(m.print(), hlo.parse(TEXT).print())


class Replays(unittest.TestCase):
    def test_in_memory(self):
        m = hlo.parse(ROOT / "testdata" / "mnist_softmax.hlo")
        before = m.print()
        seen = []
        r = hlo.replay(m, progress=lambda done, of, what: seen.append((done, of, what)))
        self.assertEqual(m.print(), before)  # the module given is left as it is
        self.assertTrue(seen)
        self.assertEqual(r.source, "hlo-replay")
        self.assertEqual(r.pipeline, "xla-2019")
        fusion = [s for s in r.stages if s.changed and s.pass_name == "fusion"]
        self.assertTrue(fusion)
        self.assertIn("fusion", fusion[0].text)

    def test_options(self):
        m = hlo.parse(ROOT / "testdata" / "mnist_softmax.hlo")
        r = hlo.replay(m, only=["algsimp", "dce"])
        self.assertEqual({s.pass_name for s in r.stages if s.changed and s.pass_name} - {"algsimp", "dce"}, set())
        self.assertNotIn("fusion", {s.pass_name for s in hlo.replay(m, disabled=["fusion"]).stages if s.changed})
        for wrong in ({"pipeline": "no-such"}, {"only": ["no-such"]}, {"disabled": ["no-such"]}, {"fuel": {"no-such": 1}},
                      {"fuel": {"dce": -1}}):
            with self.assertRaises((hlo.UsageError, OverflowError, TypeError), msg=wrong):
                hlo.replay(m, **wrong)

    def test_into_a_folder(self):
        import tempfile
        with tempfile.TemporaryDirectory() as made:
            out = pathlib.Path(made) / "out"
            r = hlo.replay(hlo.parse(ROOT / "testdata" / "mnist_softmax.hlo"), out=out)
            self.assertTrue((out / "index.html").exists())
            again = hlo.open(out)
            self.assertEqual([s.name for s in again.stages], [s.name for s in r.stages])
            with self.assertRaises(hlo.Error):
                hlo.replay(hlo.parse(TEXT), out=out)  # not overwritten

    def test_progress_that_raises_comes_through(self):
        class Mine(Exception):
            pass

        def no(*_):
            raise Mine("stop here")

        with self.assertRaisesRegex(Mine, "stop here"):
            hlo.replay(hlo.parse(ROOT / "testdata" / "mobilenet_v1.hlo"), progress=no)

    def test_progress_that_says_no(self):
        with self.assertRaises(hlo.StoppedError):
            hlo.replay(hlo.parse(ROOT / "testdata" / "mobilenet_v1.hlo"), progress=lambda *_: False)


if __name__ == "__main__":
    unittest.main()
