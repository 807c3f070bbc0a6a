#!/usr/bin/env python3
"""Pages that `view` and `replay -o` write, opened from the file system; and `view --serve` as others may ask it.

view_test.py HLO-REPLAY SOURCE [WORD…] runs the cases whose names hold a word. Needs Playwright and Chromium; 77 where
they are not here."""
import base64
import contextlib
import html
import http.client
import io
import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import tarfile
import tempfile
import time
import urllib.parse

try:
    import playwright  # noqa: F401
except ImportError:
    print("skipped: no Playwright (tests/dev/setup.sh browser)")
    sys.exit(77)
from browser import CHROMIUM, Browser, served, state

TOOL, SOURCE = os.path.abspath(sys.argv[1]), pathlib.Path(sys.argv[2])
MODULE = """HloModule NAME

ENTRY e {
  x = f32[4]{0} parameter(0)
  n = f32[4]{0} negate(x), metadata={op_name="OP"}
  ROOT r = f32[4]{0} add(n, x)
}
"""
ATTACKS = ["</script><script>window.pwned=1</script>", "<img src=x onerror=window.pwned=1>", "\" onload=\"window.pwned=1",
           "'; window.pwned=1; '", "<!--<script>", "\u202egnp.exe\u202c", "{{data}}", "${window.pwned=1}"]


def run(*args, code=0):
    done = subprocess.run([TOOL, *map(str, args)], capture_output=True, text=True, timeout=120)
    assert code is None or done.returncode == code, f"{args}: {done.returncode}\n{done.stdout}{done.stderr}"
    return done


def quiet(page, what):
    assert not page.errors, f"{what}: {page.errors}"
    assert not page.requests, f"{what}: {page.requests}"
    assert page.evaluate("() => window.pwned ?? null") is None, f"{what}: something ran"


def carried(path):
    """The archive of a page."""
    data = re.search('id="hlo-data">([A-Za-z0-9+/=]*)<', path.read_text()).group(1)
    with tarfile.open(fileobj=io.BytesIO(base64.b64decode(data)), mode="r:gz") as archive:
        return {f.name: archive.extractfile(f).read() for f in archive}


def repacked(page, to, files, worker=lambda text: text):
    """The page with another archive, and its worker's script changed."""
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz", format=tarfile.USTAR_FORMAT) as archive:
        for name, data in files.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(data)
            archive.addfile(entry, io.BytesIO(data))
    text = re.sub('(id="hlo-data">)[A-Za-z0-9+/=]*', lambda m: m[1] + base64.b64encode(packed.getvalue()).decode(), page.read_text())
    to.write_text(re.sub('(id="hlo-worker">)(.*?)(</script>)', lambda m: m[1] + worker(m[2]) + m[3], text, flags=re.S))
    return to


def module(name="m", op="p", root="add"):
    return MODULE.replace("NAME", name).replace("OP", op).replace("add(", root + "(")


def dump_of(folder, name, op="p"):
    folder.mkdir(parents=True)
    stages = ["before_optimizations", "0001.pipe.after_pass1.before_x", "0002.pipe.after_pass2.before_x"]
    for stage, root in zip(stages, ("add", "multiply", "subtract")):
        (folder / f"module_0001.{name}.{stage}.txt").write_text(module("m", op, root))
    return folder


def case_file_opens(browser, tmp):
    page_file = tmp / "m.html"
    said = run("view", SOURCE / "testdata/mobilenet_v1.hlo", "-o", page_file)
    assert said.stdout == f"open {page_file}\n", said.stdout
    assert [p.name for p in tmp.iterdir()] == ["m.html"], "nothing is left beside"
    with browser.page(page_file.as_uri()) as page:
        quiet(page, "a module's page")
        assert state(page)["boxes"] > 5, state(page)
        assert "cluster_1992353871243790009" in page.title(), page.title()
    run("view", SOURCE / "testdata/mobilenet_v1.hlo", "-o", tmp / "again.html")
    assert (tmp / "again.html").read_bytes() == page_file.read_bytes(), "the same input gives the same page"


def case_replay_index(browser, tmp):
    run("replay", SOURCE / "testdata/mnist_softmax.hlo", "-o", tmp / "out")
    with browser.page((tmp / "out" / "index.html").as_uri()) as page:
        stages = page.evaluate("() => hloReplay.stages()")
        assert len(stages) > 3, stages
        page.evaluate("() => hloReplay.goto(0)")
        assert state(page)["stage"] == 0
        quiet(page, "index.html")


def case_measured(browser, tmp):
    """A profile beside the folder: its times come first, on the page by itself and where it is served."""
    sys.path.insert(0, str(SOURCE / "tests/common"))
    from xspace import gpu, kernel
    a = "f32[64,64]{1,0}"
    text = f"""HloModule jit_g, is_scheduled=true
f {{ p = {a} parameter(0) ROOT n = {a} negate(p) }}
g {{ q = {a} parameter(0) ROOT e = {a} exponential(q) }}
ENTRY main {{
  x = {a} parameter(0)
  loop_negate_fusion.1 = {a} fusion(x), kind=kLoop, calls=f
  ROOT loop_exp_fusion.2 = {a} fusion(loop_negate_fusion.1), kind=kLoop, calls=g
}}
"""
    dump = tmp / "dump"
    dump.mkdir()
    (dump / "module_0001.jit_g.sm_9.0a_gpu_after_optimizations.txt").write_text(text)
    (tmp / "vm.xplane.pb").write_bytes(gpu([kernel("loop_negate_fusion_1", "loop_negate_fusion.1", run * 1000, 5) for run in range(2)] +
                                           [kernel("loop_exp_fusion_2", "loop_exp_fusion.2", run * 1000 + 8, 7) for run in range(2)]))
    run("view", dump, "-o", tmp / "m.html")
    inside = json.loads(carried(tmp / "m.html")["page.json"])["engine"] == "inside"
    with contextlib.ExitStack() as stack:
        for address in ([(tmp / "m.html").as_uri()] if inside else []) + [stack.enter_context(served(TOOL, str(dump)))]:
            page = stack.enter_context(browser.page(address))
            page.evaluate("() => hloReplay.select('loop_exp_fusion.2')")
            page.wait_for_selector(".cost .measured")
            assert "measured 7.00 µs, 46.7 %" in page.inner_text(".cost .measured").replace("us", "µs"), page.inner_text(".cost")
            assert "expected" in page.inner_text(".cost") and "at least" in page.inner_text(".cost"), page.inner_text(".cost")
            facts = page.inner_text(".facts.kernel")
            assert all(word in facts for word in ("loop_exp_fusion_2", "256 × 1 × 1", "128 × 1 × 1", "32", "at most 50.0 %")), facts
            page.keyboard.press("l")
            page.wait_for_selector(".view:not([hidden]) .dot.measured")
            roof = page.inner_text("[aria-label=Roofline]")
            assert "the average of 2 runs on vm:0, by vm.xplane.pb" in roof and roof.index("loop_exp_fusion.2") < roof.index("loop_negate_fusion.1"), roof
            page.keyboard.press("o")
            page.wait_for_selector(".view:not([hidden]) .primer")
            page.wait_for_function("() => !document.querySelector('.card [aria-busy]')")
            assert "one call, measured: 12.000 us of kernels and 3.000 us between them" in page.text_content("[aria-label=Overview]"), page.text_content("[aria-label=Overview]")
            first = page.inner_text(".first-page").replace("us", "µs")
            assert all(word in first for word in ("15.0 µs\none call, measured", "between kernels\n3.00 µs\n20 %", "12.0 µs\n80 %", "the average of 2 runs on vm:0")), first
            quiet(page, "a page with a profile")


def case_hostile_names(browser, tmp):
    for k, attack in enumerate(ATTACKS):
        folder = dump_of(tmp / f"hostile{k}", attack.replace("/", "_"), attack.replace('"', '\\"'))
        run("view", folder, "-o", tmp / f"{k}.html")
        with browser.page((tmp / f"{k}.html").as_uri()) as page:
            page.evaluate("() => hloReplay.goto(1)")
            page.keyboard.press("t")
            page.wait_for_timeout(200)
            quiet(page, f"a name like {attack}")


def case_long_names(browser, tmp):
    long = "n" * 1_000_000
    text = module(op="o" * 1_000_000).replace("n = ", long + " = ").replace("add(n,", f"add({long},")
    (tmp / "long.hlo").write_text(text)
    run("view", tmp / "long.hlo", "-o", tmp / "long.html")
    with browser.page((tmp / "long.html").as_uri()) as page:
        page.keyboard.press("t")
        page.wait_for_timeout(500)
        quiet(page, "a name of 1 MB")


def case_damaged(browser, tmp):
    """A dump whose last stage is cut off, and a recording whose store is."""
    folder = dump_of(tmp / "cut", "m")
    (folder / "module_0001.m.0003.pipe.after_pass3.before_x.txt").write_text("HloModule m\nENTRY e {")
    said = run("view", folder, "-o", tmp / "cut.html")
    assert "after_pass3" in said.stderr, said.stderr
    run("replay", SOURCE / "testdata/mnist_softmax.hlo", "-o", tmp / "out")
    store = tmp / "out" / "lineage.hlol"
    store.write_bytes(store.read_bytes()[: store.stat().st_size // 2])
    run("view", tmp / "out", "-o", tmp / "store.html")
    for name in ("cut.html", "store.html"):
        notices = json.loads(carried(tmp / name)["page.json"])["notices"]
        assert notices, f"{name} says what is wrong"
        with browser.page((tmp / name).as_uri()) as page:
            assert page.evaluate("() => hloReplay.stages()"), name
            assert notices[0][:40] in page.locator("body").inner_text(), f"{name}: {notices[0]} is shown"
            quiet(page, name)


def case_without_texts(browser, tmp):
    """What a page carries of a foreign dump is a folder that opens by itself."""
    run("view", dump_of(tmp / "dump", "m"), "-o", tmp / "m.html")
    files = carried(tmp / "m.html")
    if "answers.json" in files:
        assert sum('"method":"text"' in q for q in json.loads(files["answers.json"])) == 3, files["answers.json"][:300]
        return
    for name, data in files.items():
        (tmp / "kept" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp / "kept" / name).write_bytes(data)
    kept = json.loads(run("open", tmp / "kept" / "module_0001", "--json").stdout)["modules"][0]
    assert kept["source"] == "xla" and not kept.get("problems"), kept
    explained = run("explain", tmp / "kept" / "module_0001", "r").stdout
    assert "subtract" in explained, explained


def case_empty_bench(browser, tmp):
    run("view", "-o", tmp / "empty.html")
    with browser.page((tmp / "empty.html").as_uri()) as page:
        quiet(page, "an empty bench")
        assert page.locator("body").inner_text().strip(), "it shows something"


DROP = """files => {
  const transfer = new DataTransfer();
  for (const [name, text] of files) transfer.items.add(new File([text], name));
  for (const type of ['dragenter', 'dragover', 'drop'])
    document.body.dispatchEvent(new DragEvent(type, { dataTransfer: transfer, bubbles: true, cancelable: true }));
}"""


def drop_on(browser, address, what):
    files = [[f"module_0001.dropped.{stage}.txt", module("dropped", "p", root)]
             for stage, root in (("before_optimizations", "add"), ("0001.p.after_dce.before_x", "multiply"))]
    with browser.page(address) as page:
        page.evaluate(DROP, files)
        for _ in range(100):
            stages = page.evaluate("() => Promise.resolve().then(() => hloReplay.stages()).catch(() => [])")
            if any(s.get("pass") == "dce" for s in stages):
                break
            page.wait_for_timeout(100)
        else:
            raise AssertionError(f"a dump dropped on a page {what}: {stages}")
        page.requests = [r for r in page.requests if not r.startswith(address)]
        quiet(page, f"a dump dropped on a page {what}")


def case_engine_of_other_sources(browser, tmp):
    """A page says that its engine is older than the tool, and refuses one that understands other questions."""
    (tmp / "m.hlo").write_text(module())
    run("view", tmp / "m.hlo", "-o", tmp / "m.html")
    files = carried(tmp / "m.html")
    about = json.loads(files["page.json"])
    if about["engine"] != "inside":
        return
    told = "engine made from older sources than this tool"
    assert about.get("engine_older", False) == (json.loads(run("--version", "--json").stdout)["page_engine"] == "older"), about
    for older in (True, False):
        files["page.json"] = json.dumps({**about, "engine_older": older}).encode()
        with browser.page(repacked(tmp / "m.html", tmp / f"{older}.html", files).as_uri()) as page:
            assert (told in page.inner_text(".header")) == older, page.inner_text(".header")
            quiet(page, f"older: {older}")
    def other(text):
        out, times = re.subn(r"(protocol:)\w+", r"\g<1>0", text)
        assert times == 1, times
        return out
    with browser.page(repacked(tmp / "m.html", tmp / "other.html", files, other).as_uri(), ready=False) as page:
        page.wait_for_selector(".notice.error")
        words = page.inner_text(".notices")
        assert "it answers version 0 of a page's questions, and this page asks version" in words, words


def case_drop(browser, tmp):
    run("view", "-o", tmp / "empty.html")
    if json.loads(carried(tmp / "empty.html")["page.json"])["engine"] == "inside":
        drop_on(browser, (tmp / "empty.html").as_uri(), "from a file")
    (tmp / "first.hlo").write_text(module("first"))
    with served(TOOL, tmp / "first.hlo") as address:
        drop_on(browser, address, "that is served")


def ask(address, method="GET", path="", body=None, **headers):
    """Status and body. `headers` take the place of what is usual; None leaves one out."""
    parts = urllib.parse.urlparse(address)
    connection = http.client.HTTPConnection(parts.hostname, parts.port, timeout=10)
    connection.putrequest(method, path if path.startswith("/") else parts.path + path, skip_host=True, skip_accept_encoding=True)
    usual = {"Host": parts.netloc, "Content-Length": None if body is None else str(len(body))}
    for name, value in {**usual, **{k.replace("_", "-"): v for k, v in headers.items()}}.items():
        if value is not None:
            connection.putheader(name, value)
    connection.endheaders(None if headers else body)
    if headers and body is not None:
        try:
            connection.send(body)
        except OSError:
            pass  # refused before its body came
    reply = connection.getresponse()
    return reply.status, reply.read()


def case_serve(browser, tmp):
    (tmp / "m.hlo").write_text(module())
    modules = json.dumps({"method": "modules"}).encode()
    with served(TOOL, tmp / "m.hlo") as address:
        parts = urllib.parse.urlparse(address)
        assert parts.hostname == "127.0.0.1" and len(parts.path) == 34, address
        with browser.page(address) as page:
            assert page.evaluate("() => hloReplay.stages()")
            assert not page.errors, page.errors
        status, body = ask(address, "POST", "ask", modules, Origin=f"http://{parts.netloc}")
        assert status == 200 and json.loads(body)["modules"][0]["name"] == "m", body
        for wanted, how in [
            (403, {"Host": "evil.example"}), (403, {"Host": f"evil.example:{parts.port}"}), (403, {"Host": "127.0.0.1"}),
            (403, {"Host": None}), (403, {"Origin": "https://evil.example"}), (403, {"Origin": "null"}),
            (403, {"Origin": f"http://127.0.0.1:{parts.port + 1}"}), (403, {"Origin": f"http://localhost:{parts.port}"}),
            (403, {"Sec_Fetch_Site": "cross-site"}), (413, {"Content_Length": str(10**12)}), (400, {"Content_Length": "-1"}),
            (400, {"Content_Length": "1e3"}), (411, {"Transfer_Encoding": "chunked"}), (431, {"X": "y" * 20000}),
        ]:
            status, body = ask(address, "POST", "ask", modules, **how)
            assert status == wanted and b"modules" not in body, (wanted, how, status, body)
        for path in ("/", "/ask", "/" + "0" * 32 + "/ask", parts.path[:-1], parts.path[:-2] + "/ask", "/.." + parts.path + "ask"):
            status, body = ask(address, "POST", path, modules)
            assert status == 404, (path, status)
        assert ask(address, "GET", "ask")[0] == 404 and ask(address, "DELETE", "")[0] == 405
        assert ask(address, "POST", "put?name=" + urllib.parse.quote("../x", safe=""), b"x")[0] == 400
        assert b'"error"' in ask(address, "POST", "ask", b"{no json")[1]
        status, body = ask(address)
        assert status == 200 and "connect-src 'self'" in html.unescape(body.decode())


def case_serve_ends(browser, tmp):
    (tmp / "m.hlo").write_text(module())
    program = subprocess.Popen([TOOL, "view", tmp / "m.hlo", "--serve"], stdout=subprocess.PIPE, text=True)
    with program.stdout:
        assert program.stdout.readline().startswith("open http://127.0.0.1:")
        start = time.monotonic()
        program.send_signal(signal.SIGINT)
        program.wait(5)
        assert time.monotonic() - start < 1.2, "Ctrl-C ends it within a second"


def case_refused(browser, tmp):
    for args in (["view", tmp / "nothing"], ["view", "-o", tmp], ["view", "--serve=70000"], ["view", "--serve=x"],
                 ["view", "--serve", "-o", tmp / "x.html"], ["view", "--formats=svg"]):
        said = run(*args, code=2)
        assert said.stderr.startswith("error: "), said.stderr
    assert not list(tmp.iterdir())


def case_demo(browser, tmp):
    """docs/demo.html's fault is found by its button, and the page made twice is the same."""
    sys.path.insert(0, os.path.join(SOURCE, "tests/dev/docs"))
    import demo_page
    def made(name):
        subprocess.run([sys.executable, demo_page.__file__, TOOL, tmp / name], check=True, stdout=subprocess.DEVNULL)
        return (tmp / name).read_bytes()
    first = made("demo.html")
    assert first == made("again.html"), "made twice, two pages"
    assert len(first) < 5e6, len(first)
    with contextlib.ExitStack() as stack:
        inside = json.loads(carried(tmp / "demo.html")["page.json"])["engine"] == "inside"
        address = (tmp / "demo.html").as_uri() if inside else stack.enter_context(served(TOOL, demo_page.make_dump(TOOL, str(tmp))))
        page = stack.enter_context(browser.page(address))
        page.click("text=Find the fault")
        page.wait_for_selector(".fault .guilty")
        assert "transpose-folding" in page.inner_text(".fault h2"), page.inner_text(".fault")
        assert "hij,jhd->ihd" in page.inner_text(".fault .guilty"), page.inner_text(".fault")
        assert "rhs_contracting_dims={2}" not in page.inner_text(".fault pre.came"), page.inner_text(".fault")
        page.wait_for_function("() => hloReplay.state().then(s => s.op === 'dot.3' && s.view === 'graph')")
        found = state(page)
        stages = page.evaluate("() => hloReplay.stages()")
        assert stages[found["stage"]]["pass"] == "transpose-folding", (found, stages[found["stage"]])
        page.click(".fault [aria-label=Dismiss]")
        assert not page.is_visible(".fault")
        quiet(page, "the demonstration")


def main():
    if not os.path.exists(CHROMIUM):
        print("skipped: no Chromium (tests/dev/setup.sh browser)")
        return 77
    failed = 0
    cases = [(name, case) for name, case in globals().items() if name.startswith("case_")]
    with Browser() as browser, tempfile.TemporaryDirectory() as directory:
        os.environ["HLO_REPLAY_CACHE"] = directory + "/cache"
        for name, case in cases:
            if sys.argv[3:] and not any(word in name for word in sys.argv[3:]):
                continue
            folder = pathlib.Path(directory) / name
            folder.mkdir()
            try:
                case(browser, folder)
                print(f"{name}: passed", flush=True)
            except Exception as e:  # pylint: disable=broad-exception-caught
                failed += 1
                print(f"{name}: FAILED {type(e).__name__} {str(e)[:1500]}, line {e.__traceback__.tb_next.tb_lineno}", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
