"""Modules: read, walked, printed, verified, as columns."""
import gc
import pathlib
import unittest

import numpy as np

import hlo_replay as hlo

ROOT = pathlib.Path(__file__).resolve().parents[2]
TEXT = """HloModule small, entry_computation_layout={(f32[4]{0}, f32[4]{0})->f32[4]{0}}

ENTRY main {
  a = f32[4]{0} parameter(0), metadata={op_name="jit(f)/a" source_file="f.py" source_line=7}
  b = f32[4]{0} parameter(1)
  sum = f32[4]{0} add(a, b)
  two = f32[] constant(2)
  wide = f32[4]{0} broadcast(two), dimensions={}
  ROOT product = f32[4]{0} multiply(sum, wide)
}
"""


class Reading(unittest.TestCase):
    def test_text_bytes_and_path_give_the_same(self):
        path = ROOT / "testdata" / "mnist_softmax.hlo"
        by_path, by_text, by_bytes = hlo.parse(path), hlo.parse(path.read_text()), hlo.parse(path.read_bytes())
        self.assertEqual(by_path.print(), by_text.print())
        self.assertEqual(by_path.print(), by_bytes.print())
        self.assertEqual(by_path.name, "cluster_mnist_softmax")

    def test_proto_and_back(self):
        m = hlo.parse(ROOT / "testdata" / "mnist_softmax.hlo")
        for form in ("pb", "pb.gz"):
            data = m.to_proto(form)
            self.assertIsInstance(data, bytes)
            self.assertEqual(len(hlo.parse(data)), len(m))
        self.assertIn(b"cluster_mnist_softmax", m.to_proto("pbtxt"))
        with self.assertRaises(hlo.UsageError):
            m.to_proto("xml")

    def test_several(self):
        parts = hlo.parse_all(TEXT + "\n// -----\n\n" + TEXT.replace("small", "other"))
        self.assertEqual([m.name for m in parts], ["small", "other"])
        with self.assertRaises(hlo.UsageError):
            hlo.parse(TEXT + "\n// -----\n\n" + TEXT)

    def test_errors_have_places_and_hints(self):
        with self.assertRaises(hlo.ParseError) as caught:
            hlo.parse(TEXT.replace("add(a, b)", "ad(a, b)"), label="mine.hlo")
        error = caught.exception
        self.assertEqual(error.kind, "bad_input")
        self.assertTrue(error.place.startswith("mine.hlo:6:"), error.place)
        self.assertIn("add", error.hint)
        self.assertGreaterEqual(len(error.diagnostics), 1)
        self.assertEqual(error.diagnostics[0]["line"], 6)
        self.assertIsInstance(error, hlo.Error)
        self.assertIsInstance(error, ValueError)

    def test_missing_file(self):
        with self.assertRaises(hlo.InputError):
            hlo.parse(pathlib.Path("/nowhere/at/all.hlo"))

    def test_permissive(self):
        odd = TEXT.replace("add(a, b)", "add(a, b), colour=blue")
        with self.assertRaises(hlo.ParseError):
            hlo.parse(odd)
        self.assertEqual(len(hlo.parse(odd, permissive=True)), 6)


class Walking(unittest.TestCase):
    def setUp(self):
        self.m = hlo.parse(TEXT)

    def test_instructions(self):
        m = self.m
        self.assertEqual([i.name for i in m], ["a", "b", "sum", "two", "wide", "product"])
        self.assertEqual([i.opcode for i in m.entry.post_order][-1], "multiply")
        self.assertEqual(len(m), 6)
        self.assertIn("sum", m)
        self.assertNotIn("nothing", m)
        total = m["sum"]
        self.assertEqual([o.name for o in total.operands], ["a", "b"])
        self.assertEqual([u.name for u in total.users], ["product"])
        self.assertEqual(m["%sum"], total)
        self.assertEqual(m.instruction(total.id), total)
        self.assertEqual(hash(m["sum"]), hash(total))
        self.assertNotEqual(m["a"], m["b"])
        self.assertTrue(m.entry.root.is_root)
        self.assertEqual(m["wide"].attributes, {"dimensions": "{}"})
        self.assertEqual([p.parameter_number for p in m.entry.parameters], [0, 1])
        self.assertIsNone(total.parameter_number)

    def test_unknown_names_are_refused(self):
        with self.assertRaisesRegex(hlo.UsageError, "prodct"):
            self.m["prodct"]  # pylint: disable=pointless-statement
        with self.assertRaisesRegex(hlo.UsageError, "main"):
            self.m.computation("mian")

    def test_shapes(self):
        s = self.m["sum"].shape
        self.assertEqual((s.element_type, s.dims, str(s), s.bytes), ("f32", (4,), "f32[4]{0}", 16))
        self.assertEqual(s.dtype, np.dtype("float32"))
        self.assertEqual(s.minor_to_major, (0,))
        self.assertEqual(s, self.m["a"].shape)
        self.assertEqual([str(x) for x in self.m.input_shapes], ["f32[4]{0}", "f32[4]{0}"])
        self.assertEqual([str(x) for x in self.m.output_shapes], ["f32[4]{0}"])

    def test_metadata(self):
        a = self.m["a"]
        self.assertEqual(a.op_name, "jit(f)/a")
        self.assertEqual([(f.file, f.line) for f in a.source], [("f.py", 7)])
        self.assertIn("op_name=", a.metadata)
        self.assertEqual(self.m["b"].source, [])

    def test_literals(self):
        self.assertEqual(self.m["two"].literal, np.float32(2))
        self.assertIsNone(self.m["sum"].literal)

    def test_columns(self):
        c = self.m.columns()
        self.assertEqual(list(c["name"]), ["a", "b", "sum", "two", "wide", "product"])
        self.assertEqual(list(c["opcode"]), ["parameter", "parameter", "add", "constant", "broadcast", "multiply"])
        self.assertEqual(list(c["bytes"]), [16, 16, 16, 4, 16, 16])
        self.assertEqual(list(c["operand_count"]), [0, 0, 2, 0, 1, 2])
        self.assertEqual(list(c["user_count"]), [1, 1, 1, 1, 1, 0])
        self.assertEqual(list(c["is_root"]), [False] * 5 + [True])
        self.assertEqual(len({len(column) for column in c.values()}), 1)
        self.assertTrue(all(isinstance(column, np.ndarray) for column in c.values()))
        e = self.m.edges()
        self.assertEqual([len(column) for column in e.values()], [5, 5, 5])

    def test_columns_agree_with_objects(self):
        m = hlo.parse(ROOT / "testdata" / "mobilenet_v1.hlo")
        c = m.columns()
        self.assertEqual(list(c["name"]), [i.name for i in m])
        self.assertEqual(list(c["user_count"]), [len(i.users) for i in m])
        self.assertEqual(list(c["computation"]), [i.computation.name for i in m])
        self.assertEqual(list(c["element_type"]), [i.shape.element_type for i in m])

    def test_instructions_keep_their_module_alive(self):
        total = hlo.parse(TEXT)["sum"]
        users = iter(hlo.parse(TEXT).instructions)
        shape = hlo.parse(TEXT)["sum"].shape
        value = hlo.parse(TEXT)["two"].literal
        names = hlo.parse(TEXT).columns()["id"]
        gc.collect()
        self.assertEqual(total.operands[0].name, "a")
        self.assertEqual([i.name for i in users][0], "a")
        self.assertEqual(str(shape), "f32[4]{0}")
        self.assertEqual(float(value), 2)
        self.assertEqual(len(names), 6)


class Telling(unittest.TestCase):
    def test_print(self):
        m = hlo.parse(TEXT)
        self.assertEqual(hlo.parse(m.print()).print(), m.print())
        self.assertNotEqual(m.print("short"), m.print("long"))
        self.assertNotIn("metadata=", m.print(metadata=False))
        self.assertEqual(str(m), m.print())
        with self.assertRaises(hlo.UsageError):
            m.print("pretty")

    def test_verify(self):
        self.assertEqual(hlo.parse(TEXT).verify(), [])
        broken = hlo.parse(TEXT.replace("sum = f32[4]{0} add", "sum = f32[5]{0} add"), permissive=True)
        findings = broken.verify()
        self.assertEqual(findings[0].rule, "shapes")
        self.assertIn("sum", findings[0].message)
        self.assertEqual(broken.instruction(findings[0].instruction).name, "sum")

    def test_repr(self):
        m = hlo.parse(TEXT)
        self.assertEqual(repr(m), "<Module small: 6 instructions in 1 computations>")
        self.assertIn("add", repr(m["sum"]))
        self.assertEqual(repr(m.entry), "<Computation main>")


if __name__ == "__main__":
    unittest.main()
