"""Threads, Ctrl-C, and what must not end the interpreter."""
import _thread
import gc
import pathlib
import subprocess
import sys
import threading
import time
import unittest
import warnings

import numpy as np

import hlo_replay as hlo
from test_module import TEXT

LOOP = """HloModule forever
cond { s = (s32[], f32[64,64]) parameter(0) i = s32[] get-tuple-element(s), index=0 n = s32[] constant(100000000) ROOT l = pred[] compare(i, n), direction=LT }
body { s = (s32[], f32[64,64]) parameter(0) i = s32[] get-tuple-element(s), index=0 x = f32[64,64] get-tuple-element(s), index=1
  one = s32[] constant(1) j = s32[] add(i, one) y = f32[64,64] negate(x) ROOT t = (s32[], f32[64,64]) tuple(j, y) }
ENTRY e { z = s32[] constant(0) x = f32[64,64] parameter(0) t = (s32[], f32[64,64]) tuple(z, x)
  w = (s32[], f32[64,64]) while(t), condition=cond, body=body ROOT r = f32[64,64] get-tuple-element(w), index=1 }"""
# One operation that nothing interrupts from inside.
SLOW = """HloModule slow
f { x = f64[] parameter(0) y = f64[] parameter(1) ROOT s = f64[] atan2(x, y) }
ENTRY e { x = f64[4000,1000] parameter(0) z = f64[] constant(0) ROOT r = f64[] reduce(x, z), dimensions={0,1}, to_apply=f }"""


def interrupted_after(seconds, work):
    """Seconds from Ctrl-C to KeyboardInterrupt."""
    pressed = []

    def press():
        pressed.append(time.monotonic())
        _thread.interrupt_main()

    timer = threading.Timer(seconds, press)
    timer.start()
    try:
        work()
    except KeyboardInterrupt:
        return time.monotonic() - pressed[0]
    finally:
        timer.cancel()
    raise AssertionError("not interrupted")


class Interrupts(unittest.TestCase):
    def test_a_loop_that_never_ends(self):
        m = hlo.parse(LOOP)
        x = np.zeros((64, 64), np.float32)
        self.assertLess(interrupted_after(0.3, lambda: m.run(x)), 1.0)
        self.assertEqual(m.name, "forever")  # and the module can be used again

    def test_other_threads_run_meanwhile(self):
        m, count, stop = hlo.parse(LOOP), [0], threading.Event()

        def counting():
            while not stop.is_set():
                count[0] += 1
                time.sleep(0.01)

        thread = threading.Thread(target=counting)
        thread.start()
        interrupted_after(0.4, lambda: m.run(np.zeros((64, 64), np.float32)))
        stop.set()
        thread.join()
        self.assertGreater(count[0], 10)

    def test_one_long_operation(self):
        # In a process of its own: the operation goes on until the process ends, which it must not keep from ending well.
        script = (f"import _thread, sys, threading, time, numpy as np\nsys.path[:0] = {sys.path!r}\nimport hlo_replay as hlo\n"
                  f"m = hlo.parse({SLOW!r})\nx = np.ones((4000, 1000))\n"
                  "t = []\ndef press():\n  t.append(time.monotonic())\n  _thread.interrupt_main()\n"
                  "threading.Timer(0.5, press).start()\n"
                  "try:\n  m.run(x)\n  print('done', t)\nexcept KeyboardInterrupt:\n  print('late' if time.monotonic() - t[0] > 1 else 'soon')\n"
                  "try:\n  m.run(x)\nexcept hlo.UsageError as e:\n  print('busy')\n")
        done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=100, check=False)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertIn(done.stdout.split(), (["soon", "busy"], ["soon"], ["done", "[]"]))

    def test_callbacks_that_are_interrupted(self):
        m = hlo.parse(TEXT)

        def slow(_):
            time.sleep(0.05)
            return True

        self.assertLess(interrupted_after(0.2, lambda: [m.reduce(slow) for _ in range(1000)]), 1.0)


class Threads(unittest.TestCase):
    def test_two_threads_on_one_universe(self):
        m = hlo.parse(LOOP)
        x = np.zeros((64, 64), np.float32)
        said = []

        def other():
            time.sleep(0.3)
            for ask in (lambda: m.run(x), m.verify, lambda: m["r"].set_attribute("frontend_attributes", '{a="b"}'),
                        m.print, m.columns, lambda: list(m), lambda: m["r"].users):
                try:
                    ask()
                    said.append("answered")
                except hlo.UsageError:
                    said.append("refused")
            _thread.interrupt_main()

        thread = threading.Thread(target=other)
        thread.start()
        with self.assertRaises(KeyboardInterrupt):
            m.run(x)
        thread.join()
        self.assertEqual(len(said), 7)
        self.assertEqual(said[:3], ["refused"] * 3)

    def test_threads_with_modules_of_their_own(self):
        outs = [None] * 8

        def work(k):
            m = hlo.parse(TEXT)
            for _ in range(20):
                m.clone().passes.run("algsimp,dce")
                outs[k] = m.run(np.full(4, k, np.float32), np.zeros(4, np.float32))

        threads = [threading.Thread(target=work, args=(k,)) for k in range(8)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        for k, out in enumerate(outs):
            np.testing.assert_array_equal(out, np.full(4, 2 * k))

    def test_threads_that_fight_over_one_module(self):
        m, errors = hlo.parse(TEXT), []

        def fight():
            for _ in range(200):
                try:
                    m.run(np.zeros(4, np.float32), np.zeros(4, np.float32))
                    m["sum"].set_attribute("frontend_attributes", '{a="b"}')
                    m.columns()
                except hlo.UsageError:
                    pass
                except BaseException as e:  # pylint: disable=broad-except
                    errors.append(e)

        threads = [threading.Thread(target=fight) for _ in range(4)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        self.assertEqual(errors, [])
        self.assertEqual(m.verify(), [])


class Nonsense(unittest.TestCase):
    def test_wrong_types_everywhere(self):
        m = hlo.parse(TEXT)
        things = (None, 0, -1, 2**63, -2**70, 1.5, float("nan"), "", "\0", "a" * 10000, b"", [], {}, (), object(), int, m,
                  m["a"], m.entry, lambda *_: 1 / 0, np.zeros(3), ["a"], [m["a"]])
        targets = []
        for owner in (hlo, m, m["sum"], m.entry, m["a"].shape, m.passes, hlo.Builder(hlo.Module("b"), "c"), hlo.Module):
            for name in dir(owner):
                if not name.startswith("_") and name not in ("main", "remove", "build"):
                    targets.append((owner, name))
        for owner, name in targets:
            for thing in things:
                for args in ((thing,), (thing, thing)):
                    try:
                        attribute = getattr(owner, name)
                        if callable(attribute):
                            attribute(*args)
                        elif owner not in (hlo, hlo.Module):
                            setattr(owner, name, thing)
                    except Exception:  # pylint: disable=broad-except
                        pass
        gc.collect()
        self.assertEqual(len(hlo.parse(TEXT)), 6)

    def test_objects_that_nobody_made(self):
        for of in (hlo.Instruction, hlo.Computation, hlo.Shape, hlo.Finding):
            with self.assertRaises(TypeError):
                of()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # nanobind says so besides
            for of in (hlo.Module, hlo.Instruction, hlo.Computation, hlo.Shape, hlo.Finding):
                raw = of.__new__(of)
                with self.assertRaises(TypeError):
                    repr(raw.name if hasattr(of, "name") else raw.message if hasattr(of, "message") else raw.dims)

    def test_bytes_that_are_nothing(self):
        rng = np.random.default_rng(1)
        text = TEXT.encode()
        for _ in range(300):
            cut = bytearray(text)
            for _ in range(3):
                cut[rng.integers(len(cut))] = rng.integers(256)
            try:
                m = hlo.parse(bytes(cut))
                repr(m), m.print(), m.columns(), m._repr_html_(), [repr(i) for i in m]
            except hlo.Error:
                pass

    def test_deep_texts(self):
        for text in ("HloModule m\nENTRY e { ROOT x = " + "(" * 100000, "{" * 100000, "HloModule m" + ", a={" * 50000):
            with self.assertRaises(hlo.Error):
                hlo.parse(text)

    def test_paths(self):
        with self.assertRaises((hlo.Error, ValueError)):
            hlo.parse(pathlib.Path("a\0b"))
        with self.assertRaises(hlo.Error):
            hlo.parse(pathlib.Path("/"))


if __name__ == "__main__":
    unittest.main()
