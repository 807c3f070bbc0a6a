"""What notebooks show: self-contained, escaped, useful."""
import html.parser
import pathlib
import re
import tempfile
import unittest

import hlo_replay as hlo
from test_module import ROOT

EVIL = "<script>alert(1)</script>"
EVIL_TEXT = """HloModule bad

ENTRY main {
  a = f32[4] parameter(0), metadata={op_name="<script>alert(1)</script><img src=x onerror=alert(1)>"}
  ROOT b = f32[4] negate(a), frontend_attributes={x="<script>alert(1)</script>"}, metadata={op_name="&quot;<b>"}
}
"""


class Page(html.parser.HTMLParser):
    """Collects tags, whether they are balanced, and all addresses."""

    ALONE = {"br", "img", "hr", "input", "meta", "link"}

    def __init__(self, text):
        super().__init__()
        self.tags, self.open, self.addresses, self.handlers, self.balanced = set(), [], [], [], True
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.tags.add(tag)
        self.addresses += [value for name, value in attrs if name in ("src", "href", "data", "action")]
        self.handlers += [name for name, _ in attrs if name.startswith("on")]
        if tag not in self.ALONE:
            self.open.append(tag)

    def handle_endtag(self, tag):
        self.balanced &= bool(self.open) and self.open.pop() == tag


class Shown(unittest.TestCase):
    def check(self, shown, *words):
        text = shown._repr_html_()
        page = Page(text)
        self.assertTrue(page.balanced and not page.open, f"{type(shown).__name__}: tags not closed: {page.open}")
        self.assertFalse(page.tags & {"script", "iframe", "object", "img", "link", "b"}, page.tags)
        self.assertEqual((page.addresses, page.handlers), ([], []))
        self.assertNotRegex(text, r"url\(|@import|https?:")
        self.assertLess(len(text), 400_000)
        for word in words:
            self.assertIn(word, text)
        text.encode()

    def test_everything(self):
        m = hlo.parse(ROOT / "testdata" / "mobilenet_v1.hlo")
        r = hlo.replay(m)
        self.check(m, "parameter", "119 instructions")
        self.check(r, "fusion", "before_optimizations")
        self.check(r.stages[0], "before_optimizations", "119")
        self.check(next(s for s in r.stages if s.changed), "→")
        self.check(r.diff(0, -1), "removed")
        self.check(r.explain("fusion"), "made from")
        self.check(r.cost(), "at least")
        self.check(r.memory(), "allocated")
        self.check(r.summary(), "line")
        self.check(r.summary(by="pass"), "fusion")
        self.check(r.bisect(), "no bad stage")

    def test_markup_in_names_stays_text(self):
        m = hlo.parse(EVIL_TEXT)
        r = hlo.replay(m)
        for shown in (m, r, r.stages[0], r.diff(0, -1), r.explain("b"), r.cost(), r.memory(), r.summary(by="scope")):
            self.check(shown)
            self.assertNotIn("<script", shown._repr_html_())
        self.assertIn("&lt;script&gt;", m._repr_html_())

    def test_a_folder_with_a_bad_name(self):
        with tempfile.TemporaryDirectory() as made:
            folder = pathlib.Path(made) / "<script>alert(1)<"
            hlo.replay(hlo.parse(EVIL_TEXT), out=folder)
            self.check(hlo.open(folder))

    def test_bytes_of_no_encoding(self):
        m = hlo.parse(EVIL_TEXT.encode().replace(b"&quot;", b"\xff\xfe"))
        self.check(m)
        self.assertIn("\udcff", m["b"].op_name)

    def test_large_modules_stay_small(self):
        lines = "".join(f"  n{k} = f32[4] negate({f'n{k - 1}' if k else 'a'})\n" for k in range(20000))
        m = hlo.parse("HloModule big\nENTRY e {\n  a = f32[4] parameter(0)\n" + lines + "  ROOT r = f32[4] negate(n19999)\n}")
        self.check(m, "20,002 instructions")
        self.assertLess(len(re.sub("<[^>]*>", "", m._repr_html_())), 40_000)


if __name__ == "__main__":
    unittest.main()
