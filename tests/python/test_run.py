"""Modules run on numpy's arrays, and on ml_dtypes'."""
import unittest

import ml_dtypes
import numpy as np

import hlo_replay as hlo
from test_module import TEXT


def unary(element_type, operation="negate", n=4):
    b = hlo.Builder(hlo.Module("f"), "main")
    x = b.parameter(f"{element_type}[{n}]")
    return b.build(b.op(operation, [x])).module


class Running(unittest.TestCase):
    def test_values(self):
        m = hlo.parse(TEXT)
        a, b = np.arange(4, dtype=np.float32), np.ones(4, np.float32)
        for backend in ("eval", "host"):
            out = m.run(a, b, backend=backend)
            self.assertEqual(out.dtype, np.float32)
            np.testing.assert_array_equal(out, (a + b) * 2)
        self.assertIn("host", hlo.backends())

    def test_lists_and_numbers_are_taken_where_they_fit(self):
        m = hlo.parse(TEXT)
        np.testing.assert_array_equal(m.run([1, 2, 3, 4], (0.5, 0, 0, 0)), [3, 4, 6, 8])
        with self.assertRaises(hlo.UsageError):
            unary("s8").run([1, 2, 3, 1000])
        with self.assertRaises(hlo.UsageError):
            unary("s32").run([1, 2, 3, 0.5])

    def test_narrow_types(self):
        for name, of in (("bf16", ml_dtypes.bfloat16), ("f8e4m3fn", ml_dtypes.float8_e4m3fn),
                         ("f8e5m2", ml_dtypes.float8_e5m2), ("f16", np.float16), ("f64", np.float64)):
            out = unary(name).run(np.array([1, -2, 0.5, 4], of))
            self.assertEqual(out.dtype, np.dtype(of), name)
            np.testing.assert_array_equal(out.astype(np.float32), [-1, 2, -0.5, -4])
        out = unary("s4").run(np.array([1, -2, 7, 0], ml_dtypes.int4))
        self.assertEqual(out.dtype, np.dtype(ml_dtypes.int4))
        np.testing.assert_array_equal(out.astype(np.int8), [-1, 2, -7, 0])
        out = unary("u4", "not").run(np.array([0, 15, 1, 2], ml_dtypes.uint4))
        np.testing.assert_array_equal(out.astype(np.int8), [15, 0, 14, 13])
        np.testing.assert_array_equal(unary("pred", "not").run(np.array([True, False, True, True])),
                                      [False, True, False, False])
        np.testing.assert_array_equal(unary("c64").run(np.array([1j, 1, 2 - 1j, 0], np.complex64)), [-1j, -1, -2 + 1j, 0])

    def test_every_array_type_has_a_dtype(self):
        for name in ("s1", "s2", "u1", "u2", "u8", "u16", "u32", "u64", "s16", "s64", "f4e2m1fn", "f6e2m3fn", "f6e3m2fn",
                     "f8e3m4", "f8e4m3", "f8e4m3b11fnuz", "f8e4m3fnuz", "f8e5m2fnuz", "f8e8m0fnu", "c128"):
            m = hlo.parse(f"HloModule m\nENTRY e {{\n  ROOT x = {name}[2] parameter(0)\n}}")
            want = np.zeros(2, m.input_shapes[0].dtype)
            out = m.run(want)
            self.assertEqual(out.dtype, want.dtype, name)

    def test_layouts_views_and_order_do_not_matter(self):
        m = hlo.parse("HloModule m\nENTRY e {\n  x = f32[2,3]{0,1} parameter(0)\n  ROOT y = f32[3,2]{1,0} transpose(x), "
                      "dimensions={1,0}\n}")
        x = np.arange(12, dtype=np.float32).reshape(2, 6)[:, ::2]
        np.testing.assert_array_equal(m.run(x), x.T)
        np.testing.assert_array_equal(m.run(np.asfortranarray(x)), x.T)

    def test_tuples_go_in_and_come_out(self):
        m = hlo.parse("""HloModule m
ENTRY e {
  p = (f32[2], (s32[], f32[0,3])) parameter(0)
  a = f32[2] get-tuple-element(p), index=0
  b = (s32[], f32[0,3]) get-tuple-element(p), index=1
  ROOT r = ((s32[], f32[0,3]), f32[2], ()) tuple(b, a, n)
}""".replace("  ROOT", "  n = () tuple()\n  ROOT"))
        out = m.run((np.ones(2, np.float32), (np.int32(7), np.zeros((0, 3), np.float32))))
        self.assertIsInstance(out, tuple)
        self.assertEqual(int(out[0][0]), 7)
        self.assertEqual(out[0][0].shape, ())
        self.assertEqual(out[0][1].shape, (0, 3))
        np.testing.assert_array_equal(out[1], [1, 1])
        self.assertEqual(out[2], ())

    def test_what_does_not_fit_is_refused(self):
        m = hlo.parse(TEXT)
        good = np.zeros(4, np.float32)
        for bad in ((), (good,), (good, good, good), (good, np.zeros(5, np.float32)), (good, np.zeros(4)),
                    (good, np.zeros((4, 1), np.float32)), (good, "four"), (good, None), (good, object()), (good, (good,)),
                    (good, {}), (good, np.array(["a"] * 4)), (good, np.array([None] * 4))):
            with self.assertRaises((hlo.UsageError, TypeError), msg=repr(bad)):
                m.run(*bad)
        with self.assertRaises(hlo.UsageError):
            m.run(good, good, backend="quantum")

    def test_results_are_their_own(self):
        b = hlo.Builder(hlo.Module("f"), "main")
        x = b.parameter("f32[4]")
        m = b.build(x).module
        given = np.zeros(4, np.float32)
        out = m.run(given)
        given[:] = 1
        np.testing.assert_array_equal(out, np.zeros(4))

    def test_seeded_inputs(self):
        m = hlo.parse(TEXT)
        first = m.seeded_inputs(1)
        self.assertEqual([x.shape for x in first], [(4,), (4,)])
        np.testing.assert_array_equal(first[0], m.seeded_inputs(1)[0])
        self.assertTrue((first[0] != m.seeded_inputs(2)[0]).any())
        m.run(*first)

    def test_unsupported_is_said_by_name(self):
        m = hlo.parse('HloModule m\nENTRY e {\n  x = f32[2] parameter(0)\n  ROOT y = f32[2] custom-call(x), '
                      'custom_call_target="nobody_knows"\n}')
        with self.assertRaisesRegex(hlo.UnsupportedError, "nobody_knows"):
            m.run(np.zeros(2, np.float32))

    def test_too_large_is_refused(self):
        m = hlo.parse("HloModule m\nENTRY e {\n  x = f32[] parameter(0)\n  ROOT y = f32[1000000000,1000000000] broadcast(x), "
                      "dimensions={}\n}")
        with self.assertRaises(hlo.UnsupportedError):
            m.run(np.float32(0))

    def test_several_devices(self):
        m = hlo.parse("""HloModule m, replica_count=2
add { x = f32[] parameter(0) y = f32[] parameter(1) ROOT s = f32[] add(x, y) }
ENTRY e {
  x = f32[2] parameter(0)
  ROOT y = f32[2] all-reduce(x), replica_groups={{0,1}}, to_apply=add
}""")
        with self.assertRaises(hlo.UsageError):
            m.run(np.ones(3, np.float32))
        np.testing.assert_array_equal(m.run(np.ones(2, np.float32)), [2, 2])


if __name__ == "__main__":
    unittest.main()
