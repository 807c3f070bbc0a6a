"""Modules changed and built."""
import unittest

import hlo_replay as hlo
from test_module import TEXT


class Editing(unittest.TestCase):
    def setUp(self):
        self.m = hlo.parse(TEXT)

    def test_replace_and_remove(self):
        m = self.m
        total, a = m["sum"], m["a"]
        total.replace_all_uses_with(a)
        self.assertEqual([o.name for o in m["product"].operands], ["a", "wide"])
        total.remove()
        self.assertFalse(total.alive)
        self.assertNotIn("sum", m)
        self.assertEqual(m.verify(), [])
        for read in (lambda: total.name, lambda: total.operands, lambda: total.text, lambda: total.users,
                     lambda: total.shape, lambda: total.remove(), lambda: total.set_operand(0, a)):
            with self.assertRaises(hlo.UsageError):
                read()
        self.assertIn("removed", repr(total))

    def test_what_is_used_is_not_removed(self):
        with self.assertRaises(hlo.UsageError):
            self.m["sum"].remove()
        with self.assertRaises(hlo.UsageError):
            self.m["product"].remove()

    def test_operands(self):
        m = self.m
        m["sum"].operands = [m["b"], m["b"]]
        self.assertEqual(m["sum"].text.count("b"), 2 + m["sum"].text.split("add")[0].count("b"))
        m["sum"].set_operand(0, m["a"])
        self.assertEqual([o.name for o in m["sum"].operands], ["a", "b"])
        with self.assertRaises(hlo.UsageError):
            m["sum"].operands = [m["b"]]
        with self.assertRaises(hlo.UsageError):
            m["sum"].set_operand(2, m["a"])
        self.assertRaises((TypeError, hlo.UsageError, OverflowError), m["sum"].set_operand, -1, m["a"])
        self.assertRaises((TypeError, hlo.UsageError, OverflowError), m["sum"].set_operand, 2**70, m["a"])

    def test_strangers_are_refused(self):
        other = hlo.parse(TEXT)
        with self.assertRaises(hlo.UsageError):
            self.m["sum"].set_operand(0, other["a"])
        with self.assertRaises(hlo.UsageError):
            self.m["sum"].replace_all_uses_with(other["sum"])
        with self.assertRaises(hlo.UsageError):
            self.m.entry = other.entry
        self.assertEqual(self.m.print(), other.print())

    def test_names_and_attributes(self):
        m = self.m
        m["sum"].name = "total"
        self.assertIn("total", m)
        with self.assertRaises(hlo.UsageError):
            m["a"].name = "b"
        m["a"].metadata = '{op_name="new"}'
        self.assertEqual(m["a"].op_name, "new")
        m["a"].metadata = ""
        self.assertEqual(m["a"].metadata, "")
        m["total"].set_attribute("frontend_attributes", '{mine="1"}')
        self.assertIn("frontend_attributes", m["total"].attributes)
        m["total"].erase_attribute("frontend_attributes")
        self.assertEqual(m["total"].attributes, {})
        with self.assertRaises(hlo.InputError):
            m["total"].set_attribute("dimensions", "{0}")
        with self.assertRaises(hlo.InputError):
            m["wide"].set_attribute("dimensions", "{zero}")
        m.name = "renamed"
        self.assertTrue(m.print().startswith("HloModule renamed"))

    def test_edit_while_iterating(self):
        seen = 0
        for i in self.m:
            if i.alive and i.name == "sum":
                i.replace_all_uses_with(self.m["a"])
                i.remove()
            seen += 1
        self.assertEqual(seen, 6)
        self.assertEqual(len(self.m), 5)

    def test_clones_are_apart(self):
        copy = self.m.clone()
        self.assertEqual(copy["sum"].id, self.m["sum"].id)
        copy["sum"].name = "elsewhere"
        self.assertIn("sum", self.m)
        self.assertNotEqual(copy, self.m)


class Building(unittest.TestCase):
    def test_from_nothing(self):
        m = hlo.Module("made")
        with self.assertRaises(hlo.UsageError):
            m.entry  # pylint: disable=pointless-statement
        m.entry = m.add_computation("main (x: f32[3]) -> f32[3] {\n  x = f32[3] parameter(0)\n  ROOT r = f32[3] negate(x)\n}")
        twice = m.entry.add("twice = add(x, r)")
        self.assertEqual(str(twice.shape), "f32[3]{0}")
        m.entry.root = twice
        self.assertTrue(twice.is_root)
        self.assertEqual(m.verify(), [])
        self.assertEqual(hlo.parse(m.print()).print(), m.print())

    def test_called_computations(self):
        m = hlo.parse(TEXT)
        m.add_computation("plus (p: f32[], q: f32[]) -> f32[] {\n  p = f32[] parameter(0)\n  q = f32[] parameter(1)\n"
                          "  ROOT s = f32[] add(p, q)\n}")
        r = m.entry.add("ROOT all = f32[] reduce(product, two), dimensions={0}, to_apply=plus")
        self.assertEqual([c.name for c in r.called_computations], ["plus"])
        self.assertEqual([i.name for i in m.computation("plus").callers], ["all"])
        self.assertEqual(m.entry.root, r)
        self.assertEqual([f.rule for f in m.verify()], ["entry"])  # the result's layout is still the old one

    def test_nonsense_is_refused_and_leaves_nothing(self):
        m = hlo.parse(TEXT)
        before = m.print()
        for line in ("", "x", "x = ", "x = add(a)", "x = add(a, nobody)", "x = f32[4] frobnicate(a)", "x = f32[-1] add(a, b)",
                     "x = f32[99999999999999999999] add(a, b)", "x = add(a, b)\ny = add(a, b)", "\0", "x = add(a, b), dimensions={"):
            with self.assertRaises(hlo.Error, msg=line):
                m.entry.add(line)
        for text in ("", "f {", "f () -> f32[] { }", "ENTRY {", "main (x: f32[]) -> f32[] { ROOT x = f32[] parameter(7) }"):
            with self.assertRaises(hlo.Error, msg=text):
                m.add_computation(text)
        self.assertEqual(m.print(), before)


if __name__ == "__main__":
    unittest.main()
