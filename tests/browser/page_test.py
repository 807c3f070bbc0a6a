#!/usr/bin/env python3
"""The page as a user has it: page_test.py HLO-REPLAY SOURCE [WORD…] runs the cases whose names hold a word.

Needs Playwright and Chromium; HLO_PAGE_ADDRESS, where set, is the address of a page that shows the recording already."""
import base64
import contextlib
import io
import os
import re
import subprocess
import sys
import tarfile
import tempfile
import zipfile

try:
    import playwright  # noqa: F401
except ImportError:
    print("skipped: no Playwright (tests/dev/setup.sh browser)")
    sys.exit(77)
from browser import Browser, duration, served, settled, state


def equal(found, wanted, what):
    if found != wanted:
        raise AssertionError(f"{what}: {repr(found)[:300]}, not {repr(wanted)[:300]}")


def holds(value, what):
    if not value:
        raise AssertionError(what)


def case_open(page):
    first = state(page)
    equal(first["view"], "graph", "the first view")
    holds(first["boxes"] > 20 and first["edges"] > 20, f"a drawing: {first}")
    holds(duration(page, "hlo:open") > 0, "hlo:open is measured")
    stages = page.evaluate("() => hloReplay.stages()")
    equal(first["stage"], len(stages) - 1, "the last stage is shown first")
    holds(any(s["pass"] == "algsimp" and s["changed"] for s in stages), "stages tell their passes")


def case_first_page(page):
    equal(state(page)["view"], "overview", "the view of a recording that is opened")
    page.wait_for_function("() => !document.querySelector('.card [aria-busy]')")
    told = page.inner_text(".first-page")
    for word in ("at least", "Nothing was measured", "of memory at the peak", "Findings", "peak ", "kept apart", "Thunks by stream", "All of it runs on the main stream", "our own thunks"):
        holds(word in told, f"{word!r} in {told[:600]!r}")
    equal([c.get_attribute("aria-label") for c in page.locator(".first-page svg[role=img]").all() if len(c.get_attribute("aria-label")) < 20], [], "drawings without a name")
    holds(page.locator(".of-thunks .thunk-bar").count() > 0, "a lane of the main stream")
    page.locator(".bar-row > summary").first.focus()
    page.keyboard.press("Enter")
    name = page.locator(".bar-row[open] .ops button").first.inner_text()
    page.get_by_role("button", name="source line").click()
    page.wait_for_selector(".choice[aria-pressed=true]:text('source line')")
    page.get_by_role("button", name="class", exact=True).click()
    page.locator(".bar-row > summary").first.click()
    page.locator(".bar-row[open] .ops button").first.click()
    settled(page, "an op of a bar", name, "op")
    equal(state(page)["view"], "graph", "… in the graph")
    page.go_back()
    settled(page, "back", "overview", "view")
    number = page.locator(".most-changed .number").first.inner_text()
    page.locator(".most-changed button").first.click()
    settled(page, "a pass of the first page", "graph", "view")
    holds(f"stage={number}&" in page.evaluate("location.hash"), "its stage by the number of the command line")


def case_first_page_of_a_phone(page):
    page.set_viewport_size({"width": 360, "height": 780})
    page.wait_for_function("() => !document.querySelector('.card [aria-busy]')")
    page.wait_for_timeout(100)
    equal(page.evaluate("""() => [...document.querySelectorAll('.first-page *')].filter(e => !e.closest('.modules-box') && e.getBoundingClientRect().right > innerWidth + 1)
        .map(e => e.outerHTML.slice(0, 80))"""), [], "what is wider than the screen")


def case_first_page_is_accessible(page):
    try:
        from axe_playwright_python.sync_playwright import Axe
    except ImportError:
        print("  skipped: no axe-playwright-python (tests/dev/setup.sh browser)")
        return
    page.wait_for_function("() => !document.querySelector('.card [aria-busy]')")
    for _ in range(2):   # both themes
        found = [v for v in Axe().run(page).response["violations"] if v["impact"] in ("serious", "critical")]
        equal([(v["id"], v["nodes"][0]["html"][:120], len(v["nodes"])) for v in found], [], f"findings of axe, {state(page)['theme']}")
        page.keyboard.press("x")
        page.wait_for_timeout(150)


def case_step(page):
    last = state(page)["stage"]
    page.keyboard.press("ArrowLeft")
    settled(page, "arrow left", last - 1, "stage")
    page.keyboard.press("Home")
    settled(page, "home", 0, "stage")
    page.keyboard.press("ArrowRight")
    settled(page, "arrow right", 1, "stage")
    page.evaluate("() => hloReplay.goto(3)")
    equal(state(page)["stage"], 3, "goto")
    number = next(s["number"] for s in page.evaluate("() => hloReplay.stages()") if s["stage"] == 3)
    holds(f"stage={number:04}&" in page.evaluate("location.hash"), "the address tells the stage as the files number it")
    holds(f"stage {number:04}" in page.locator(".where").inner_text(), "the path tells it so")
    holds(_waited(page, lambda: page.locator(".pass.here .number").inner_text() == f"{number:04}"), "the list of passes, too")
    page.go_back()
    settled(page, "the back button", 1, "stage")
    refused = page.evaluate("() => hloReplay.goto(4711).then(() => '', e => e.message)")
    holds("no stage 4711" in refused, f"a stage that is not there: {refused}")


def case_timeline(page):
    page.evaluate("() => { document.querySelector('.virtual[aria-label^=Passes]').scrollTop = 0; }")  # it began at the last stage
    _frames(page)
    page.locator(".pass:not(.heading)", has_text="algsimp").first.click()
    wanted = next(s["stage"] for s in page.evaluate("() => hloReplay.stages()") if s["pass"] == "algsimp")
    settled(page, "a click on a pass", wanted, "stage")
    changed = page.locator(".pass:not(.heading)").count()
    page.locator("#only-changed").click()
    holds(_waited(page, lambda: page.locator(".pass.idle").count() > 0) and changed > 0, "passes that changed nothing are shown on demand")


def case_search(page):
    names = page.evaluate("() => hloReplay.search('op:custom-call')")
    holds(names, "convolutions, calls by now, are found")
    holds(duration(page, "hlo:search") is not None, "hlo:search is measured")
    page.evaluate("n => hloReplay.select(n)", names[0])
    equal(state(page)["op"], names[0], "the selection")
    holds(names[0] in page.locator(".panel").inner_text(), "the op panel tells its name")
    holds("custom-call" in page.locator(".panel").inner_text(), "… and its opcode")
    page.keyboard.press("/")
    page.keyboard.type("op:convolution -op:convolution")
    settled(page, "what is typed is asked", "op:convolution -op:convolution", "query")
    holds(_waited(page, lambda: page.locator(".hit").count() == 0), "hits of what cannot be")
    holds(page.locator(".words").is_visible(), "the query language is explained")


def case_expand(page):
    before = state(page)
    page.evaluate("() => hloReplay.expand('all')")
    after = state(page)
    holds(after["boxes"] >= before["boxes"] and after["folded"] <= before["folded"], f"open all: {before} {after}")
    holds("open=*" in page.evaluate("location.hash"), "the address tells that all is open")
    holds(duration(page, "hlo:layout") is not None, "hlo:layout is measured")


def case_text(page):
    names = page.evaluate("() => hloReplay.search('op:custom-call')")
    page.evaluate("n => hloReplay.select(n)", names[0])
    page.keyboard.press("t")
    page.wait_for_selector(".line.selected")
    holds(names[0] in page.locator(".line.selected").inner_text(), "the line of the selected op is shown")
    link = page.locator(".line.selected .t-name").last
    name = link.inner_text().lstrip("%")
    link.click()
    settled(page, "a name in the text", name, "op")


def case_press(page):
    """A button that goes down on a row and comes up on it is a click, whatever is drawn in between."""
    names = page.evaluate("() => hloReplay.search('op:custom-call')")
    page.evaluate("n => hloReplay.select(n)", names[0])
    page.keyboard.press("t")
    page.wait_for_selector(".line.selected")
    neighbour = page.locator(".line.selected + .line .t-name").first.inner_text().lstrip("%")
    for what, meanwhile in {
        "the list is scrolled": "() => { document.querySelector('.text-view .virtual').scrollTop += 3; }",
        "the op of the next line is selected": f"() => hloReplay.select({neighbour!r})",
    }.items():
        page.evaluate("n => hloReplay.select(n)", names[0])
        page.wait_for_timeout(200)
        link = page.locator(".line.selected .t-name").last
        name = link.inner_text().lstrip("%")
        link.hover()
        page.mouse.down()
        page.evaluate(meanwhile)
        _frames(page)
        page.mouse.up()
        settled(page, f"a name pressed while {what}", name, "op")


def case_diff(page):
    page.evaluate("() => hloReplay.goto(3)")
    page.keyboard.press("d")
    page.wait_for_selector(".changes .change")
    entry = page.locator(".changes .change:not(.removed) .link").first
    name = entry.inner_text()
    entry.click()
    settled(page, "an entry of the changes", name, "op")
    equal(state(page)["view"], "graph", "it leads to the graph")
    page.evaluate("() => hloReplay.goto(3)")
    page.keyboard.press("d")
    page.wait_for_selector(".changes .change.removed")
    page.locator(".changes .change.removed .link").first.click()
    settled(page, "a removed op is shown where it still is", 2, "stage")
    holds("is not in stage" not in page.locator(".panel").inner_text(), "it is there")


def case_follow(page):
    names = page.evaluate("() => hloReplay.search('op:custom-call')")
    page.evaluate("n => hloReplay.select(n)", names[0])
    page.keyboard.press("f")
    page.wait_for_selector(".strip .cell")
    last = state(page)["stage"]
    page.wait_for_function("n => document.querySelectorAll('.strip .cell').length > n", arg=last)
    equal(page.locator(".strip .cell.here").count(), 1, "the cell of the stage shown")
    page.locator(".strip .cell.self").first.click()
    settled(page, "a cell leads to its stage", "graph", "view")
    holds(state(page)["stage"] < last, "an earlier stage")


def case_deep_link(page):
    page.evaluate("() => hloReplay.goto(0)")
    name = page.evaluate("() => hloReplay.search('op:convolution')")[0]
    page.goto("about:blank")
    page.goto(page.address + "#stage=0&op=" + name + "&view=text")
    page.evaluate("() => hloReplay.ready")
    found = state(page)
    equal((found["stage"], found["op"], found["view"]), (0, name, "text"), "what the address says")
    page.evaluate("() => hloReplay.goto(4)")
    number = next(s["number"] for s in page.evaluate("() => hloReplay.stages()") if s["stage"] == 3)
    page.evaluate(f"() => {{ location.hash = '#stage={number:04}&view=graph'; }}")
    settled(page, "a stage by the number of its file", 3, "stage")
    page.evaluate("() => { location.hash = '#stage=2&view=graph&open=%00%ZZ,<b>&m=99999&with=1.2.3'; }")
    settled(page, "a wrong address shows what there is", 2, "stage")


def case_views(page):
    for key, shown in {"o": ".primer", "m": ".drawn .area", "l": ".drawn .dot", "y": ".thunk"}.items():
        page.keyboard.press(key)
        page.wait_for_selector(f".view:not([hidden]) {shown}")
        equal(page.locator(".notice.error").all_inner_texts(), [], f"notices of view {key}")
    holds("Peak" in page.locator("[aria-label=Memory]").inner_text(), "the peak is told")
    page.keyboard.press("l")
    row = page.locator("[aria-label=Roofline] table .link").first
    name = row.inner_text()
    row.click()
    settled(page, "an op of the roofline", name, "op")


def case_mouse(page):
    page.evaluate("() => hloReplay.goto(0)")
    before = state(page)
    box = page.locator(".graph-view .graph-canvas").bounding_box()
    for y in range(20, int(box["height"]) - 40, 14):
        page.mouse.click(box["x"] + box["width"] / 2 - 20, box["y"] + y)
        page.wait_for_timeout(30)
        if state(page)["op"]:
            break
    holds(state(page)["op"], "a click selects what is under it")
    page.mouse.dblclick(box["x"] + box["width"] / 2 - 20, box["y"] + y)
    holds(_waited(page, lambda: state(page)["boxes"] != before["boxes"]), "a double click folds or opens the group")
    page.evaluate("() => hloReplay.goto(3)")
    page.keyboard.press("Escape")
    settled(page, "escape", "", "op")
    page.get_by_role("button", name="Fold", exact=True).click()
    page.wait_for_timeout(200)
    page.keyboard.press("c")
    holds(_waited(page, lambda: state(page)["op"] != ""), "c leads to a changed op")
    page.mouse.wheel(0, -300)
    holds(_waited(page, lambda: state(page)["camera"]["zoom"] != before["camera"]["zoom"]), "the wheel zooms")


def case_rewrites(page):
    stages = page.evaluate("() => hloReplay.stages()")
    page.evaluate("n => hloReplay.goto(n)", next(s["stage"] for s in stages if s["pass"] == "algsimp"))
    page.keyboard.press("r")
    page.wait_for_selector(".rewrite .rule")
    page.locator(".rewrite details").first.click()
    page.wait_for_selector(".rewrite details .change")
    total = page.locator(".rewrite").count()
    holds(total > 1, "the rewrites of algsimp are listed")
    page.keyboard.press("]")
    page.wait_for_function("() => document.querySelector('#rewrite-at')?.textContent.includes('after 1 of')")
    page.keyboard.press("]")
    page.wait_for_function("() => document.querySelector('#rewrite-at')?.textContent.includes('after 2 of')")
    equal(state(page)["view"], "graph", "a rewrite is shown in the graph")


def case_stage_told(page):
    """What the pass did, and what is slow, while no op is chosen."""
    stages = page.evaluate("() => hloReplay.stages()")
    page.evaluate("n => hloReplay.goto(n)", next(s["stage"] for s in stages if s["pass"] == "algsimp"))
    page.wait_for_selector(".stage-told .ops button")
    told = page.inner_text(".panel")
    for word in ("algsimp", "rewrites", "gone", "rules"):
        holds(word in told, f"{word!r} in {told!r}")
    page.evaluate("n => hloReplay.goto(n)", len(stages) - 1)
    page.wait_for_selector(".stage-told .slow button")
    slowest = page.inner_text(".slow button >> nth=0")
    page.click(".slow button >> nth=0")
    page.wait_for_function("name => hloReplay.state().then(s => s.op === name)", arg=slowest)


def case_find_no_fault(page):
    page.click("text=Find the fault")
    page.wait_for_function("() => ['No fault', 'No answer'].includes(document.querySelector('.fault h2')?.textContent)", timeout=60000)
    page.click(".fault [aria-label=Dismiss]")
    holds(not page.is_visible(".fault"), "the card goes away")


def case_side(page):
    page.evaluate("() => hloReplay.goto(3)")
    page.keyboard.press("s")
    canvases = page.locator(".side-view .graph-canvas")
    holds(_waited(page, lambda: canvases.count() == 2), "canvases side by side")
    pictures = [b""]

    def still():
        pictures.append(canvases.nth(1).screenshot())
        return pictures[-1] == pictures[-2]

    holds(_waited(page, still), "the right one is drawn")
    canvases.nth(0).hover()
    page.mouse.wheel(0, -400)
    holds(_waited(page, lambda: pictures[-1] != canvases.nth(1).screenshot()), "the right one moves in step with the left one")


def case_edit_and_run(page):
    page.keyboard.press("b")
    page.wait_for_selector(".CodeMirror-code .CodeMirror-line")
    page.locator(".CodeMirror").click()
    page.keyboard.press("Control+a")
    page.keyboard.insert_text("HloModule mine\n\nENTRY e {\n  x = f32[4] parameter(0)\n  zero = f32[] constant(0)\n  zeros = f32[4] broadcast(zero), dimensions={}\n  ROOT sum = f32[4] add(x, zeros)\n}\n")
    page.keyboard.press("Escape")
    page.evaluate("() => hloReplay.run(['algsimp', 'dce'])")
    holds(duration(page, "hlo:run") is not None, "hlo:run is measured")
    names = page.evaluate("() => hloReplay.search('op:add')")
    equal(names, [], "x + 0 is x")
    page.keyboard.press("Escape")
    page.evaluate("() => document.querySelector('#tab-bench').click()")
    page.get_by_role("button", name="Evaluate").click()
    page.wait_for_selector(".results table")
    page.get_by_role("button", name="Same as before?").click()
    page.wait_for_selector(".results .good")


def case_edit_at_once(page):
    """What is typed before the stage's text has come stays."""
    page.evaluate("() => { document.querySelector('#tab-bench').click(); document.querySelector('.CodeMirror').CodeMirror.setValue('HloModule mine'); }")
    page.wait_for_function("() => hloReplay.search('op:dot').then(() => true)")   # the engine has answered what was asked before
    equal(page.evaluate("() => document.querySelector('.CodeMirror').CodeMirror.getValue()"), "HloModule mine", "the text of the bench")


def case_edit_error(page):
    page.keyboard.press("b")
    page.wait_for_selector(".CodeMirror-code .CodeMirror-line")
    page.locator(".CodeMirror").click()
    page.keyboard.press("Control+a")
    page.keyboard.insert_text("HloModule broken\n\nENTRY e {\n  ROOT x = f32[4] frobnicate(y)\n}\n")
    page.keyboard.press("Control+Enter")
    page.wait_for_selector(".results [role=alert]")
    holds("frobnicate" in page.locator(".results").inner_text(), "what is wrong is said")


def case_keyboard(page):
    for key, view in {"o": "overview", "g": "graph", "t": "text", "d": "diff", "r": "rewrites", "s": "side", "n": "fusion", "m": "memory", "y": "thunks", "l": "roofline", "b": "bench"}.items():
        page.keyboard.press(key)
        settled(page, f"key {key}", view, "view")
    page.evaluate("() => document.activeElement?.blur()")
    page.keyboard.press("g")
    settled(page, "key g", "graph", "view")
    page.keyboard.press("?")
    holds(page.locator("dialog.help").is_visible(), "help is shown")
    page.keyboard.press("Escape")
    holds(not page.locator("dialog.help").is_visible(), "help goes")
    page.keyboard.press("ArrowDown")
    holds(_waited(page, lambda: state(page)["op"] != ""), "arrow down selects an op")
    one = state(page)["op"]
    for _ in range(3):
        page.keyboard.press("ArrowDown")
        page.wait_for_timeout(60)
    holds(_waited(page, lambda: state(page)["op"] != one), "arrow down goes to a user")
    page.keyboard.press("Escape")
    settled(page, "escape", "", "op")


def _frames(page):
    page.evaluate("() => new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))")


def _waited(page, condition):
    for _ in range(100):
        if condition():
            return True
        page.wait_for_timeout(50)
    return False


def case_themes(page):
    themes, pictures = [], []
    for _ in range(2):
        themes.append(state(page)["theme"])
        pictures.append(page.screenshot())
        page.keyboard.press("x")
        page.wait_for_timeout(150)
    equal(sorted(themes), ["dark", "light"], "both themes")
    holds(pictures[0] != pictures[1], "they look different")


def case_labels(page):
    bad = page.evaluate("""() => [...document.querySelectorAll('button, input, select, canvas, [role=separator]')]
        .filter(e => !(e.getAttribute('aria-label') || e.textContent.trim() || e.title || e.labels?.length || e.getAttribute('aria-hidden')))
        .map(e => e.outerHTML.slice(0, 100))""")
    equal(bad, [], "controls without a name")


def case_hostile(page):
    """Names and metadata are text, whatever they hold."""
    page.keyboard.press("b")
    page.wait_for_selector(".CodeMirror-code .CodeMirror-line")
    bad = "<img src=x onerror=\\'window.caught=1\\'></script><script>window.caught=1</script>\u202e"
    text = ('HloModule bad\n\nENTRY e {\n  x = f32[4] parameter(0)\n  ROOT y = f32[4] negate(x), metadata={op_name="%s/%s" source_file="%s" source_line=3}\n}\n'
            % (bad, "a" * 100000, bad))
    page.evaluate("t => { const e = document.querySelector('.CodeMirror').CodeMirror; e.setValue(t); }", text)
    page.keyboard.press("Escape")
    page.locator(".bench-main .primary").click()
    page.wait_for_function("() => document.querySelector('.module')?.textContent.includes('bad')")
    for key in "gotdsl":
        page.evaluate("() => document.activeElement?.blur()")
        page.keyboard.press(key)
        page.wait_for_timeout(150)
        page.evaluate("() => hloReplay.select('y')")
    holds(page.evaluate("window.caught") is None, "markup in names was run")
    equal(page.locator("img").count(), 0, "elements made of metadata")
    holds("onerror" in page.locator(".panel").inner_text(), "it is shown as text")


def case_drop(page):
    """A dropped .tar.gz, .zip and .hlo are read in the page; damaged ones are refused in words."""
    text = b"HloModule dropped\n\nENTRY e {\n  ROOT x = f32[4] parameter(0)\n}\n"
    packed, zipped = io.BytesIO(), io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz") as tar:
        entry = tarfile.TarInfo("../" + "long/" * 30 + "m.hlo")
        entry.size = len(text)
        tar.addfile(entry, io.BytesIO(text))
    with zipfile.ZipFile(zipped, "w", zipfile.ZIP_DEFLATED) as z:
        z.writestr("m.hlo", text)
    for name, content in {"m.hlo": text, "m.tar.gz": packed.getvalue(), "m.zip": zipped.getvalue()}.items():
        _drop(page, name, content)
        holds(_waited(page, lambda: page.evaluate("() => document.title").startswith("dropped")), f"{name} is shown")
        page.evaluate("() => hloReplay.goto(0)")
        page.reload()
        page.evaluate("() => hloReplay.ready")
    for name, content in {"cut.tar.gz": packed.getvalue()[:60], "cut.zip": zipped.getvalue()[:-30], "m.tar.zst": b"\x28\xb5\x2f\xfd1234"}.items():
        _drop(page, name, content)
        page.wait_for_selector(".notice.error")
        page.locator(".notice.error button").last.click()


def _drop(page, name, content):
    page.evaluate("""([name, content]) => {
        const data = new DataTransfer();
        data.items.add(new File([Uint8Array.from(atob(content), c => c.charCodeAt(0))], name));
        document.dispatchEvent(new DragEvent('drop', { dataTransfer: data, bubbles: true, cancelable: true }));
    }""", [name, base64.b64encode(content).decode()])


CASES = [(name[5:], f) for name, f in list(globals().items()) if name.startswith("case_")]


def main():
    binary, source, *words = sys.argv[1:]
    failed = 0
    with tempfile.TemporaryDirectory() as folder, contextlib.ExitStack() as stack:
        address = os.environ.get("HLO_PAGE_ADDRESS")
        if not address:
            out = os.path.join(folder, "out")
            subprocess.run([binary, "replay", os.path.join(source, "testdata/mobilenet_v1.hlo"), "--pipeline=xla-gpu", "-o", out], check=True, stdout=subprocess.DEVNULL)
            address = stack.enter_context(served(binary, out))
        browser = stack.enter_context(Browser())
        for name, case in CASES:
            if words and not any(word in name for word in words):
                continue
            with browser.page(address + ("" if name.startswith("first_page") else "#view=graph")) as page:
                try:
                    case(page)
                    equal(page.errors, [], "errors of the console")
                    equal(page.requests, [], "requests")
                    print(f"{name}: ok", flush=True)
                except Exception as error:
                    failed += 1
                    print(f"{name}: FAILED: {re.sub(chr(10) + '.*', '', str(error))}", flush=True)
                    notices = page.evaluate("() => [...document.querySelectorAll('.notice, .results')].map(n => n.textContent.slice(0, 200)).filter(t => t)")
                    print(f"  errors: {page.errors[:3]} notices: {notices[:4]}", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
