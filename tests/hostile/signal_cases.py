"""Runs that are asked to end, or killed: they end at once, and leave neither files nor processes."""
import os
import pathlib
import signal
import subprocess
import sys
import time

from tool import SANITIZED

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "dev"))
from transformer import transformer  # pylint: disable=wrong-import-position

WITHIN = 2.0 * (4 if SANITIZED else 1)  # seconds; asked for is one, on a machine that does nothing else

LOOP = """HloModule loop

cond { s = (s32[], f32[64,64]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  n = s32[] constant(2000000000)
  ROOT c = pred[] compare(i, n), direction=LT }

body { s = (s32[], f32[64,64]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  x = f32[64,64] get-tuple-element(s), index=1
  one = s32[] constant(1)
  j = s32[] add(i, one)
  y = f32[64,64] dot(x, x), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  ROOT t = (s32[], f32[64,64]) tuple(j, y) }

ENTRY e { i = s32[] constant(0)
  x = f32[64,64] parameter(0)
  t = (s32[], f32[64,64]) tuple(i, x)
  w = (s32[], f32[64,64]) while(t), condition=cond, body=body
  ROOT r = f32[64,64] get-tuple-element(w), index=1 }
"""
# One instruction that takes long and looks at nothing meanwhile.
PRODUCT = """HloModule product

ENTRY e { a = f32[9000,9000] parameter(0)
  b = f32[9000,9000] parameter(1)
  ROOT r = f32[9000,9000] dot(a, b), lhs_contracting_dims={1}, rhs_contracting_dims={0} }
"""


def marked(mark):
    """Processes that this run started, by what their environment holds."""
    out = []
    for path in pathlib.Path("/proc").glob("[0-9]*/environ"):
        try:
            if f"HLO_MARK={mark}".encode() in path.read_bytes() and int(path.parent.name) != os.getpid():
                state = (path.parent / "stat").read_text().rsplit(")", 1)[1].split()[0]
                if state != "Z":
                    out.append((path.parent / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace"))
        except OSError:
            continue
    return out


class Run:
    """One command in an empty folder of its own, with its own folder for temporary files."""

    def __init__(self, tmp, name, command, before=0.7):
        self.folder, self.mark = tmp / name, f"{os.getpid()}-{name}"
        (self.folder / "tmp").mkdir(parents=True)
        env = dict(os.environ, TMPDIR=str(self.folder / "tmp"), HLO_MARK=self.mark)
        self.command = command
        self.child = subprocess.Popen([str(w) for w in command], cwd=self.folder, env=env, stdin=subprocess.DEVNULL,
                                      stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True)
        time.sleep(before)
        self.early = self.child.poll()

    def end(self, number, code):
        assert self.early is None, f"{self.command}: ended by itself with {self.early}: {self.child.communicate()}"
        start = time.monotonic()
        self.child.send_signal(number)
        try:
            err = self.child.communicate(timeout=20)[1].decode(errors="replace")
        except subprocess.TimeoutExpired:
            os.killpg(self.child.pid, signal.SIGKILL)
            raise AssertionError(f"{self.command}: no end within 20 s") from None
        seconds = time.monotonic() - start
        assert self.child.returncode == code, f"{self.command}: {self.child.returncode}: {err}"
        assert seconds < WITHIN, f"{self.command}: {seconds:.2f} s to the end"
        for _ in range(20):
            left = marked(self.mark)
            if not left:
                break
            time.sleep(0.1)
        assert not left, f"{self.command} leaves {left}"
        return err

    def files(self):
        return sorted(str(p.relative_to(self.folder)) for p in self.folder.rglob("*") if p != self.folder / "tmp")


def long_commands(tool, data, tmp):
    (tmp / "loop.hlo").write_text(LOOP)
    (tmp / "product.hlo").write_text(PRODUCT)
    model = tmp / "transformer.hlo"
    model.write_text(transformer(12)[0])
    lines = "\n".join(f"  a{k} = f32[4]{{0}} add(a{k - 1}, a{k // 2}), metadata={{op_name=\"n{k}\"}}" for k in range(1, 600000))
    (tmp / "large.hlo").write_text(f"HloModule m\n\nENTRY e {{\n  a0 = f32[4] parameter(0)\n{lines}\n  ROOT r = f32[4]{{0}} negate(a599999)\n}}\n")
    plain = data / "plain.hlo"
    yield "exec of a loop", [tool, "exec", tmp / "loop.hlo", "--out=o.npz"]
    yield "exec of one long step", [tool, "exec", tmp / "product.hlo", "--out=o.npz"]
    yield "exec on the host", [tool, "exec", tmp / "loop.hlo", "--backend=host"]
    yield "replay with drawings", [tool, "replay", model, "-o", "out", "--formats=html,text"]
    yield "one drawing", [tool, "convert", model, "x.svg"]
    yield "reading and passes", [tool, "opt", "--passes=" + ",".join(["cse", "dce", "algsimp"] * 50), tmp / "large.hlo"]
    yield "reduce by a command", [tool, "reduce", plain, "--check=sleep 30; sleep 31; false"]
    yield "reduce by numbers", [tool, "reduce", tmp / "loop.hlo", "--passes=algsimp"]
    yield "bisect by a command", [tool, "bisect", model, "--check=sleep 30; sleep 31"]
    yield "bisect a program", [tool, "bisect", "--program=sleep 30; sleep 31"]
    yield "capture", [tool, "capture", "-o", "dump", "--", "sh", "-c", "sleep 30; sleep 31"]
    # A program that does not listen.
    yield "capture a deaf one", [tool, "capture", "-o", "dump", "--", "sh", "-c", "trap '' TERM INT; sleep 30; sleep 31"]


def asked(tool, data, tmp, number, every):
    for k, (name, command) in enumerate(long_commands(tool, data, tmp)):
        if k % every:
            continue
        run = Run(tmp, f"{number.name}{k}", command)
        run.end(number, 2)
        assert not run.files(), f"{name}: {run.files()}"


def jobs(tool, data, tmp):
    """reduce -j by SIGTERM, and by SIGKILL: nobody is left who waits for what never comes."""
    (tmp / "jobs.hlo").write_text(transformer(1)[0])
    # Bad as long as there is a dot, and slow.
    check = "--check=sleep 0.3; ! grep -q 'dot(' {}"
    for name, number, code in (("term", signal.SIGTERM, 2), ("kill", signal.SIGKILL, -9)):
        run = Run(tmp, f"jobs{name}", [tool, "reduce", tmp / "jobs.hlo", "-j", "4", check, "-o", "red"], before=3)
        run.end(number, code)
        if code == 2:
            assert not run.files(), run.files()
    # What the killed one left does not keep the next from its work, and goes.
    folder = run.folder
    subprocess.run([tool, "reduce", data / "plain.hlo", "--check=false", "-o", "red"], cwd=folder, check=True,
                   capture_output=True, env=dict(os.environ, TMPDIR=str(folder / "tmp")))
    assert not [f for f in run.files() if "hlo-replay." in f], run.files()


def killed(tool, data, tmp):
    """By SIGKILL, which nobody can answer: its programs and drawings end with it."""
    commands = dict(long_commands(tool, data, tmp))
    for k, name in enumerate(("replay with drawings", "reduce by a command", "bisect a program", "capture")):
        Run(tmp, f"killed{k}", commands[name]).end(signal.SIGKILL, -9)


def replaced(tool, data, tmp):
    """A folder that is replaced is there at every moment, old or new."""
    folder = tmp / "replaced"
    folder.mkdir()
    subprocess.run([tool, "replay", data / "plain.hlo", "-o", "out"], cwd=folder, check=True, capture_output=True)
    stop = time.monotonic() + 1.5
    while time.monotonic() < stop:
        child = subprocess.Popen([tool, "replay", data / "plain.hlo", "-o", "out", "--force"], cwd=folder,
                                 stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        while child.poll() is None:
            assert (folder / "out" / "recording.json").exists()
    assert child.returncode == 0 and [p.name for p in folder.iterdir()] == ["out"]


def hang_up(tool, tmp):
    (tmp / "loop.hlo").write_text(LOOP)
    run = Run(tmp, "hup", [tool, "exec", tmp / "loop.hlo", "--trace=t"])
    run.end(signal.SIGHUP, 2)
    assert not run.files(), run.files()


def progress(tool, tmp):
    """On a terminal, what takes more than a second says what it is at; elsewhere nothing is shown."""
    (tmp / "loop.hlo").write_text(LOOP)
    ours, its = os.openpty()
    child = subprocess.Popen([tool, "exec", tmp / "loop.hlo"], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=its)
    time.sleep(2.5)
    child.send_signal(signal.SIGINT)
    child.wait(timeout=10)
    said = os.read(ours, 100000).decode(errors="replace")
    assert "running loop" in said and "error: " in said, said
    os.close(ours)
    os.close(its)


def cases(tool, data, tmp):
    yield "SIGTERM in every long command", lambda: asked(tool, data, tmp, signal.SIGTERM, 1)
    yield "SIGINT in some", lambda: asked(tool, data, tmp, signal.SIGINT, 3)
    yield "a hang-up", lambda: hang_up(tool, tmp)
    yield "reduce with jobs", lambda: jobs(tool, data, tmp)
    yield "SIGKILL", lambda: killed(tool, data, tmp)
    yield "a folder that is replaced", lambda: replaced(tool, data, tmp)
    yield "progress", lambda: progress(tool, tmp)
