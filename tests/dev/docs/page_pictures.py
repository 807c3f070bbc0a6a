#!/usr/bin/env python3
"""Pictures of the page for docs/: page_pictures.py HLO-REPLAY OUT [WORD…]. Needs Playwright and Chromium
(tests/dev/setup.sh browser); dumps come from ../shared/dumps, and what is not there is left out."""
import os
import pathlib
import subprocess
import sys
import tempfile

SOURCE = pathlib.Path(__file__).resolve().parents[3]
sys.path.insert(0, str(SOURCE / "tests/browser"))
from browser import Browser  # noqa: E402

DUMPS = SOURCE / "../shared/dumps"
# Name; what is shown: a module that is replayed, or a dump's archive; the pass whose stage is shown (the last where
# none is named); the query whose first hit is chosen; the view.
PICTURES = [
    ("overview", "rocm__llama3_8b__train__allgpu__train_step_m0099", "", "", "overview"),
    ("mobilenet_v1", "testdata/mobilenet_v1.hlo", "batchnorm_expander", "", "graph"),
    ("resnet50", "rocm__resnet50__train__allgpu__train_step_m1654", "cudnn-fused-convolution-rewriter", "", "graph"),
    ("llama_train", "rocm__llama3_8b__train__allgpu__train_step_m0099", "priority-fusion", "", "graph"),
    ("stable_diffusion", "rocm__stable_diffusion_1_5__infer__1gpu__fun_m0047", "gemm-fusion-swap-operands", "", "graph"),
    ("gemma2", "xla__cpubench__gemma2_2b_keras_jax", "", "", "graph"),
    ("fault", "docs/demo.html", "", "", "graph"),
]
MOST_BYTES = 300_000


def page_of(binary, what, folder):
    """The page of a module or a dump; None where that is not here."""
    if what.endswith(".html"):
        return SOURCE / what
    page = folder / f"{pathlib.Path(what).name}.html"
    if page.exists():
        return page
    if what.endswith(".hlo"):
        shown = folder / "replayed"
        subprocess.run([binary, "replay", str(SOURCE / what), "--pipeline=xla-gpu", "-o", str(shown)], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    else:
        archive = DUMPS / f"{what}.tar.zst"
        if not archive.exists():
            return None
        subprocess.run(["tar", "--zstd", "-xf", str(archive), "-C", str(folder)], check=True)
        shown = folder / what
    subprocess.run([binary, "view", str(shown), "-o", str(page)], check=True, stdout=subprocess.DEVNULL)
    return page


def shoot(browser, page_file, name, made_by, query, view, out, theme):
    with browser.page(f"{page_file.as_uri()}#view={view}", viewport={"width": 1120, "height": 660} if view == "overview" else {"width": 1400, "height": 860}, color_scheme=theme, reduced_motion="reduce") as page:
        stages = page.evaluate("() => hloReplay.stages()")
        if made_by:
            page.evaluate("n => hloReplay.goto(n)", next(s["stage"] for s in stages if s["pass"] == made_by))
        if query:
            hit = page.evaluate("q => hloReplay.search(q)", query)[0]
            page.keyboard.press("Escape")
            page.evaluate("name => hloReplay.select(name)", hit)
            page.keyboard.press("g")
        if name == "fault":
            page.click(".notice [aria-label=Dismiss]")
            page.click("text=Find the fault")
            page.wait_for_selector(".fault .guilty")
        if view == "overview":
            page.wait_for_function("() => !document.querySelector('.card [aria-busy]')")
        page.wait_for_timeout(2500)   # what the pass did is told a moment later
        if page.errors:
            raise SystemExit(f"{name}: {page.errors}")
        picture = out / f"page_{name}{'' if theme == 'light' else '_dark'}.png"
        page.screenshot(path=str(picture))
        if picture.stat().st_size > MOST_BYTES:
            raise SystemExit(f"{picture.name} has {picture.stat().st_size} bytes")
        print(picture.name, picture.stat().st_size)


def main():
    binary, out = os.path.abspath(sys.argv[1]), pathlib.Path(sys.argv[2])
    words, theme = sys.argv[3:], os.environ.get("HLO_THEME", "light")
    with tempfile.TemporaryDirectory() as folder, Browser() as browser:
        os.environ.setdefault("HLO_REPLAY_CACHE", folder + "/cache")
        for name, what, made_by, query, view in PICTURES:
            if words and not any(word in name for word in words):
                continue
            page_file = page_of(binary, what, pathlib.Path(folder))
            if page_file is None:
                print(f"{name}: {what} is not here")
                continue
            shoot(browser, page_file, name, made_by, query, view, out, theme)


if __name__ == "__main__":
    main()
