#!/usr/bin/env python3
"""The page's speed: speed_test.py HLO-REPLAY SOURCE prints a table and fails where a limit is passed.

Of pages as files, so by the WebAssembly engine where the program has it inside. A module of 60,000 instructions is made
here (blocks of layers, each of repeated parts); a dump or recording may be named in HLO_SPEED_RECORDING.
HLO_PAGE_ADDRESS: a page that shows the large module already. HLO_SPEED_SERVE=1: by `view --serve` instead."""
import contextlib
import os
import subprocess
import sys
import tempfile
import time

try:
    import playwright  # noqa: F401
except ImportError:
    print("skipped: no Playwright (tests/dev/setup.sh browser)")
    sys.exit(77)
from browser import Browser, duration, served

FRAMES = """async () => {
  const canvas = document.querySelector('.graph-view .graph-canvas'), box = canvas.getBoundingClientRect(), least = [];
  const wheel = (dx, dy) => canvas.dispatchEvent(new WheelEvent('wheel', { deltaX: dx, deltaY: dy, clientX: box.left + box.width / 2, clientY: box.top + box.height / 2, bubbles: true, cancelable: true }));
  for (let level = 0; level < 6; level++) {
    for (const move of [i => wheel(0, i % 40 < 20 ? -20 : 20), i => wheel(i % 40 < 20 ? 25 : -25, 0)]) {
      const start = performance.now(), from = (await hloReplay.state()).frames;
      for (let i = 0; performance.now() - start < 800; i++) { move(i); await new Promise(next => requestAnimationFrame(next)); }
      least.push(((await hloReplay.state()).frames - from) / (performance.now() - start) * 1000);
    }
    for (let i = 0; i < 6; i++) wheel(0, -100);
    await new Promise(next => setTimeout(next, 200));
  }
  return Math.min(...least);
}"""


def large_module(count):
    lines = ["HloModule large", "", "ENTRY main {", "  p0 = f32[128]{0} parameter(0)", "  p1 = f32[128]{0} parameter(1)"]
    before = ["p0", "p1"]
    opcodes = ["add", "multiply", "subtract", "maximum"]
    for i in range(count):
        layer, part = i // 600, i // 60 % 10
        opcode = opcodes[(i * i + i // 7 + layer * 3) % 4] if i % 5 else "tanh"
        second = before[-2 - i * 7 % min(len(before) - 1, 40)]
        operands = before[-1] if opcode == "tanh" else f"{before[-1]}, {second}"
        root = "ROOT " if i + 1 == count else ""
        lines.append(f'  {root}v{i} = f32[128]{{0}} {opcode}({operands}), metadata={{op_name="jit(f)/layer_{layer}/part_{part}/{opcode}"}}')
        before = (before + [f"v{i}"])[-50:]
    return "\n".join(lines + ["}", ""])


def written(binary, spec, folder):
    """The address of SPEC's page, its bytes, and the seconds that it took to be made."""
    page = os.path.join(folder, f"page_{len(os.listdir(folder))}.html")
    begin = time.monotonic()
    subprocess.run([binary, "view", spec, "-o", page], check=True, stdout=subprocess.DEVNULL)
    return "file://" + page, os.path.getsize(page), time.monotonic() - begin


def main():
    binary = sys.argv[1]
    inside = not os.environ.get("HLO_SPEED_SERVE")
    failed = 0

    def told(what, value, limit, unit="ms", at_least=False):
        nonlocal failed
        good = value >= limit if at_least else value < limit
        failed += not good
        print(f"{what:45} {value:8.0f} {unit:4} {'≥' if at_least else '<'} {limit} {'' if good else 'TOO SLOW'}", flush=True)

    with tempfile.TemporaryDirectory() as folder, contextlib.ExitStack() as stack:
        browser = stack.enter_context(Browser())
        address = os.environ.get("HLO_PAGE_ADDRESS")
        if not address:
            path = os.path.join(folder, "large.hlo")
            with open(path, "w", encoding="utf-8") as file:
                file.write(large_module(60000))
            address = written(binary, path, folder)[0] if inside else stack.enter_context(served(binary, path))
        with browser.page(address) as page:
            told("60,000 instructions: first view", duration(page, "hlo:open"), 3000)
            page.evaluate("() => hloReplay.expand('all')")
            told("60,000 instructions: all open", duration(page, "hlo:layout"), 5000)
            told("60,000 instructions: panning and zooming", page.evaluate(FRAMES), 50, "/s", at_least=True)
            page.evaluate("() => hloReplay.search('op:tanh scope:layer_7')")
            told("60,000 instructions: search", duration(page, "hlo:search"), 100)
        recording = os.environ.get("HLO_SPEED_RECORDING")
        if recording:
            if inside:
                address, size, seconds = written(binary, recording, folder)
                told("recording: page", size / 1e6, 12, "MB")
                told("recording: page made", seconds * 1000, 5000)
            else:
                address = stack.enter_context(served(binary, recording))
            with browser.page(address) as page:
                told("recording: first view", duration(page, "hlo:open"), 1500)
                page.wait_for_function("() => !document.querySelector('.card [aria-busy]')")
                page.keyboard.press("g")
                page.wait_for_function("() => hloReplay.state().then(s => s.view === 'graph' && s.boxes > 0)")
                times = []
                for stage in range(len(page.evaluate("() => hloReplay.stages()"))):
                    page.evaluate("n => hloReplay.goto(n)", stage)
                    times.append(duration(page, "hlo:stage"))
                times.sort()
                told("recording: step to a stage, middle", times[len(times) // 2], 100)
                told("recording: step to a stage, slowest", times[-1], 250)
                page.evaluate("() => hloReplay.search('op:fusion bytes>1M')")
                told("recording: search", duration(page, "hlo:search"), 100)
                page.evaluate("() => hloReplay.goto(0)")
                page.evaluate("() => hloReplay.run(['algsimp'])")
                told("recording: algsimp on its first stage", duration(page, "hlo:run"), 500)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
