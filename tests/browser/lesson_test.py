#!/usr/bin/env python3
"""`lesson`: the command, and the page as a reader goes through it. lesson_test.py HLO-REPLAY [WORD…] runs the cases whose
names hold a word. Needs Playwright and Chromium, and a program with the engine; 77 where they are not here."""
import json
import os
import pathlib
import subprocess
import sys
import tempfile

try:
    import playwright  # noqa: F401
except ImportError:
    print("skipped: no Playwright (tests/dev/setup.sh browser)")
    sys.exit(77)
from browser import CHROMIUM, Browser

TOOL = os.path.abspath(sys.argv[1])


def run(*args, code=0, cwd=None):
    done = subprocess.run([TOOL, *map(str, args)], capture_output=True, text=True, timeout=120, cwd=cwd)
    assert done.returncode == code, f"{args}: {done.returncode}\n{done.stdout}{done.stderr}"
    return done


def wait(page, selector, word=""):
    page.locator(selector, has_text=word).first.wait_for(timeout=20_000)
    return page.locator(selector).first.inner_text()


def quiet(page, what):
    assert not page.errors, f"{what}: {page.errors}"
    assert not page.requests, f"{what}: {page.requests}"
    assert not page.locator(".notice").count(), f"{what}: {page.locator('.notices').inner_text()}"


def case_command(_, tmp, page_file):
    told = json.loads(run("lesson", "fusion", "-o", tmp / "f.html", "--json").stdout)
    names = [one["name"] for one in told["lessons"]]
    assert names == ["reading", "simplify", "fusion", "thunks"] and told["lesson"] == "fusion", told
    wrong = run("lesson", "fussion", "-o", tmp / "no.html", code=2)
    assert "there is no lesson 'fussion'; there are reading, simplify, fusion, thunks" in wrong.stderr, wrong.stderr
    assert not (tmp / "no.html").exists()
    assert "is a folder" in run("lesson", "-o", tmp, code=2).stderr
    assert run("lesson", cwd=tmp).stdout == "open lessons.html\n"
    assert (tmp / "lessons.html").read_bytes() == page_file.read_bytes(), "the same page each time"
    help_text = run("lesson", "--help").stdout
    assert "hlo-replay lesson fusion --open" in help_text and "From HLO to thunks" in help_text, help_text


def case_walk(browser, tmp, _):
    """The fusion lesson by keyboard from its first step to its last: each shows its title, its module and no fault."""
    run("lesson", "fusion", "-o", tmp / "f.html")
    with browser.page((tmp / "f.html").as_uri()) as page:
        steps, titles = page.locator(".step").count(), []
        assert steps >= 10, steps
        for step in range(1, steps + 1):
            wait(page, ".lesson-name", f"Fusion · {step} of {steps}")
            titles.append(page.locator("h1").inner_text())
            assert page.evaluate("() => location.hash").startswith(f"#lesson=fusion&step={step}")
            wait(page, ".question" if page.locator(".question").count() else ".lesson-text")
            page.wait_for_timeout(150)
            if step < steps:
                page.keyboard.press("ArrowRight")
        assert len(set(titles)) == steps, titles
        page.go_back()
        wait(page, ".lesson-name", f"Fusion · {steps - 1} of {steps}")
        quiet(page, "the walk")


def case_question(browser, _, page_file):
    with browser.page(page_file.as_uri() + "#lesson=fusion&step=2") as page:
        wait(page, ".question h3", "How much do the three kernels")
        wait(page, ".desk .code-line", "tanh")
        assert not page.locator(".kernels").count(), "the table would answer the question"
        page.fill(".question input", "20 MiB")
        page.click(".question .primary")
        told = wait(page, ".verdict.is-wrong")
        assert "Those are the five arrays" in told and "The engine finds 33,554,432 bytes, 32 MiB." in told, told
        assert "32.0 MiB" in wait(page, ".kernels", "together")
        page.fill(".question input", "hello")
        page.keyboard.press("Enter")
        wait(page, ".verdict.is-wrong", "A number is wanted")
        page.fill(".question input", "33,554,432")
        page.keyboard.press("Enter")
        assert "eight arrays of 4 MiB" in wait(page, ".verdict.is-right", "Right.")
        page.click(".next")
        wait(page, "h1", "One kernel instead of three")
        quiet(page, "a question")


def case_choice(browser, _, page_file):
    with browser.page(page_file.as_uri() + "#lesson=fusion&step=9") as page:
        wait(page, ".question .option", "Yes")
        page.keyboard.press("1")
        assert "dot does not fuse" in wait(page, ".verdict.is-wrong"), "the engine's own reason"
        page.keyboard.press("2")
        wait(page, ".verdict.is-right", "Right.")
        quiet(page, "a choice")


def case_edit(browser, _, page_file):
    with browser.page(page_file.as_uri() + "#lesson=fusion&step=10") as page:
        wait(page, ".desk .CodeMirror", "reduce")
        page.click(".run")
        assert "The engine finds 2 kernels." in wait(page, ".verdict.is-wrong"), "unchanged it is two"
        page.click(".desk-tabs [role=tab] >> text=Change it")
        page.evaluate("() => document.querySelector('.desk .CodeMirror').CodeMirror.setValue('HloModule m\\n\\nENTRY e {\\n  ROOT x = f32[4]{0} negate(y)\\n}\\n')")
        page.click(".run")
        assert "Line 4" in wait(page, ".said [role=alert]"), "where the text is wrong"
        page.click(".desk-editor >> text=As it was")
        page.click(".run")
        page.click("text=Show a solution")
        wait(page, ".desk .CodeMirror", "constant(1024)")
        page.click(".run")
        wait(page, ".verdict.is-right", "Right.")
        wait(page, ".desk .code-line", "fused_computation")
        page.click("text=In the whole page")
        page.locator("#tab-graph[aria-selected=true]").wait_for(timeout=20_000)
        page.go_back()
        wait(page, "h1", "Make it one kernel")
        quiet(page, "an edit")


def case_predict(browser, _, page_file):
    with browser.page(page_file.as_uri() + "#lesson=fusion&step=12") as page:
        for at in range(20):
            wait(page, ".predict h3", f"{at + 1}. Is ")
            wait(page, ".desk-tabs", f"decision {at + 1}")
            page.keyboard.press("f")
            wait(page, ".verdict", "XLA")
            page.keyboard.press("Enter")
        assert wait(page, ".predict .score") == "10 right of 20"
        assert page.evaluate("() => location.hash").endswith("&said=" + "f" * 20)
        page.reload()
        page.evaluate("() => hloReplay.ready")
        assert wait(page, ".predict .score") == "10 right of 20", "the address has it"
        quiet(page, "predictions")


def case_list(browser, _, page_file):
    for scheme in ("light", "dark"):
        with browser.page(page_file.as_uri(), color_scheme=scheme) as page:
            assert page.locator(".course li").count() == 4
            page.click(".course >> text=Simplification")
            wait(page, ".lesson-name", "Simplification · 1 of ")
            page.click(".title >> text=Lessons")
            wait(page, "h1", "Lessons")
            quiet(page, scheme)
    with browser.page(page_file.as_uri() + "#lesson=<b>no</b>&step=99") as page:
        assert "There is no lesson <b>no</b>" in page.locator(".lesson-text").inner_text()
    with browser.page(page_file.as_uri() + "#lesson=thunks&step=99") as page:
        wait(page, ".lesson-name", "7 of 7")
        quiet(page, "a step that is not there")


def main():
    if not os.path.exists(CHROMIUM):
        print("skipped: no Chromium (tests/dev/setup.sh browser)")
        return 77
    failed = 0
    with tempfile.TemporaryDirectory() as directory:
        os.environ["HLO_REPLAY_CACHE"] = directory + "/cache"
        page_file = pathlib.Path(directory) / "all.html"
        made = subprocess.run([TOOL, "lesson", "-o", page_file], capture_output=True, text=True, timeout=60)
        if made.returncode == 2 and "understood other questions" in made.stderr:
            print("skipped: the page's engine is of another protocol.ts (tests/dev/engine_made.sh)")
            return 77
        with Browser() as browser:
            for name, case in [(n, c) for n, c in globals().items() if n.startswith("case_")]:
                if sys.argv[2:] and not any(word in name for word in sys.argv[2:]):
                    continue
                folder = pathlib.Path(directory) / name
                folder.mkdir()
                try:
                    case(browser, folder, page_file)
                    print(f"{name}: passed", flush=True)
                except Exception as e:  # pylint: disable=broad-exception-caught
                    failed += 1
                    print(f"{name}: FAILED {type(e).__name__} {str(e)[:1500]}, line {e.__traceback__.tb_next.tb_lineno}", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
