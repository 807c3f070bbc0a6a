"""Folders and files that are written: nothing of the user's is lost, with --force, too, nor by two runs or a kill."""
import json
import os
import pathlib
import random
import shutil
import signal
import subprocess
import sys
import time

from tool import SANITIZED, run

MODULE = ("HloModule m\n\nENTRY e {\n  p = f32[4] parameter(0)\n  q = f32[4] parameter(1)\n  a = f32[4] OP(p, q)\n"
          "  b = f32[4] multiply(a, a)\n  ROOT r = f32[4] dot(b, q), lhs_contracting_dims={}, rhs_contracting_dims={}, "
          "lhs_batch_dims={0}, rhs_batch_dims={0}\n}\n")
KILLS = int(os.environ.get("HLO_KILLS", "4" if SANITIZED else "12"))


def snapshot(folder):
    """What lies below a folder, with its contents."""
    return {str(p.relative_to(folder)): os.readlink(p) if p.is_symlink() else p.read_bytes() if p.is_file() else None
            for p in sorted(pathlib.Path(folder).rglob("*"))}


def program(folder):
    """A program that dumps as XLA does."""
    path = folder / "dumps.py"
    path.write_text(
        "import os, pathlib, re, tempfile\n"
        "unasked = tempfile.TemporaryDirectory()\n"
        "d = pathlib.Path((re.findall(r'--xla_dump_to=(\\S+)', os.environ['XLA_FLAGS']) or [unasked.name])[-1])\n"
        "d.mkdir(exist_ok=True)\n"
        "text = 'HloModule m\\nENTRY e {\\n  p = f32[4] parameter(0)\\n  ROOT r = f32[4] %s(p)\\n}\\n'\n"
        "(d / 'module_0000.m.before_optimizations.txt').write_text(text % 'negate')\n"
        "(d / 'module_0000.m.0001.optimization.after_cse.before_x.txt').write_text(text % 'abs')\n"
        "raise SystemExit(1 if 'fail' in __import__('sys').argv and 'disable_hlo_passes' not in os.environ['XLA_FLAGS'] else 0)\n")
    return path


def commands(tool, data, tmp):
    """Each command with a folder of its own making: (name, the option in front of the folder, words)."""
    module, tanh = tmp / "m.hlo", tmp / "pair"
    if not module.exists():
        module.write_text(MODULE.replace("OP", "add"))
        tanh.mkdir()
        for number, op in (("before_optimizations", "add"), ("0001.p.after_x.before_y", "subtract")):
            (tanh / f"module_0000.m.{number}.txt").write_text(MODULE.replace("OP", op))
        run(tool, "replay", module, "-o", tmp / "recorded").expect(0)
    dumps = program(tmp)
    yield "replay", "-o", ["replay", module]
    yield "reduce", "-o", ["reduce", module, "--check=grep -q dot {} && exit 1 || exit 0", "--most=5"]
    yield "isolate", "-o", ["isolate", module]
    yield "exec --trace", "--trace", ["exec", module]
    yield "view --formats", "-o", ["view", tmp / "recorded", "--formats=text,page"]
    yield "bisect", "-o", ["bisect", tanh]
    yield "bisect --program", "-o", ["bisect", f"--program={sys.executable} {dumps} fail"]
    yield "capture", "-o", ["capture", "PROGRAM", "--", sys.executable, dumps]


def asked(tool, option, words, folder, *more, **how):
    """`capture` has its options in front of the program."""
    words = list(words)
    where = words.index("PROGRAM") if "PROGRAM" in words else len(words)
    words[where:where + 1] = [f"{option}={folder}" if option.startswith("--") else option,
                              *([] if option.startswith("--") else [folder]), *more]
    return run(tool, *words, **how)


def refused_folders(tool, data, tmp):
    """A folder that is not ours stays as it is, for every command, with --force, too; so do those never to be written."""
    home = tmp / "home" / "me"
    home.mkdir(parents=True)
    env = dict(os.environ, HOME=str(home))
    for name, option, words in list(commands(tool, data, tmp)):
        project = tmp / "project"
        (project / "src").mkdir(parents=True)
        (project / "thesis.tex").write_text("three years\n")
        (project / "src" / "m.hlo").write_text("HloModule mine\n")
        was = snapshot(project)
        for more in ([], ["--force"]):
            result = asked(tool, option, words, project, *more, env=env).expect(2, "--force", "thesis.tex")
            assert snapshot(project) == was, f"{name} {more}: {result.err}"
        # A link to it is it.
        (tmp / "link").symlink_to(project)
        asked(tool, option, words, tmp / "link", "--force", env=env).expect(2, "thesis.tex")
        assert (tmp / "link").is_symlink() and snapshot(project) == was, name
        # Where it works, above that, home, above that, the root, where something is mounted.
        for folder, why in ((project, "working folder"), (tmp, "folder, or holds it"), (".", "working folder"),
                            ("..", "working folder")):
            asked(tool, option, words, folder, "--force", env=env, cwd=project / "src" if folder == ".." else project).expect(2, why)
        for folder, why in ((home, "home"), (home.parent, "home"), ("/", "root"), ("/proc", "mounted")):
            asked(tool, option, words, folder, "--force", env=env, cwd="/usr").expect(2, why)
        # A file, and a link that leads nowhere.
        (tmp / "file").write_text("mine\n")
        asked(tool, option, words, tmp / "file", "--force", env=env).expect(2, "no folder")
        assert (tmp / "file").read_text() == "mine\n", name
        (tmp / "nowhere").symlink_to(tmp / "not_there")
        asked(tool, option, words, tmp / "nowhere", "--force", env=env).expect(2, "leads nowhere")
        assert (tmp / "nowhere").is_symlink() and not (tmp / "not_there").exists(), name
        for left in ("link", "nowhere", "file"):
            (tmp / left).unlink()
        shutil.rmtree(project)
    assert not [p.name for p in tmp.iterdir() if ".hlo-replay." in p.name], list(tmp.iterdir())


def inputs_stay(tool, data, tmp):
    """A folder that is the input, or holds it, is not replaced by what is made of it."""
    for name, option, words in list(commands(tool, data, tmp)):
        ours = tmp / "ours"
        run(tool, "replay", tmp / "m.hlo", "-o", ours, "--force").expect(0)
        was = snapshot(ours)
        if name in ("view --formats", "bisect"):
            asked(tool, option, [words[0], ours, *words[2:]], ours, "--force").expect(2, "the command reads")
        elif name == "bisect --program":
            (ours / "dumps.py").write_text((tmp / "dumps.py").read_text())
            was = snapshot(ours)
            asked(tool, option, [words[0], f"--program={sys.executable} {ours}/dumps.py fail"], ours, "--force").expect(2, "the command reads")
        elif name == "capture":
            asked(tool, option, [*words[:-1], ours / "dumps.py"], ours, "--force").expect(2, "the command reads")
        else:
            stage = next(ours.glob("*before_optimizations.txt"))
            asked(tool, option, [words[0], stage, *words[2:]], ours, "--force").expect(2, "the command reads")
            asked(tool, option, [words[0], f"{ours}:before_optimizations", *words[2:]], ours, "--force").expect(2, "the command reads")
        assert snapshot(ours) == was, name
    # Of what it runs with, too.
    (tmp / "runs").mkdir()
    made = run(tool, "exec", tmp / "m.hlo", "--trace", tmp / "traced").expect(0)
    run(tool, "exec", tmp / "m.hlo", "--out", tmp / "traced" / "in.npz").expect(0)
    run(tool, "exec", tmp / "m.hlo", "--inputs", tmp / "traced" / "in.npz", "--trace", tmp / "traced", "--force").expect(2, "in.npz")
    assert (tmp / "traced" / "in.npz").exists() and made


def notes_stay(tool, data, tmp):
    """What a user puts beside ours keeps its name; ours is replaced."""
    for name, option, words in list(commands(tool, data, tmp)):
        out = tmp / "out"
        code = asked(tool, option, words, out).code
        assert code in (0, 1) and out.is_dir(), name
        marker = json.loads((out / ".hlo-replay").read_text())
        made = snapshot(out)
        assert marker["version"] == 1 and marker["command"] == words[0] and \
            set(marker["files"]) == {n for n, what in made.items() if what is not None}, (name, marker)
        (out / "notes").mkdir(mode=0o750)
        (out / "empty").mkdir()
        (out / "notes" / "day1.md").write_text("it is the third stage\n")
        (out / "notes.md").write_text("mine\n")
        (out / "to_me").symlink_to("notes.md")
        (out / "to_nowhere").symlink_to("/not/there")
        os.mkfifo(out / "pipe")
        out.chmod(0o700)
        asked(tool, option, words, out).expect(2, "--force")
        (out / next(iter(sorted(set(marker["files"]) - {".hlo-replay"})))).unlink()  # and what of ours is gone comes again
        result = asked(tool, option, words, out, "--force")
        assert result.code == code, (name, result.err)
        assert (out / "notes.md").read_text() == "mine\n" and (out / "notes" / "day1.md").exists() and \
            (out / "empty").is_dir() and os.readlink(out / "to_me") == "notes.md" and \
            os.readlink(out / "to_nowhere") == "/not/there" and (out / "pipe").is_fifo(), (name, list(out.iterdir()))
        assert (out / "notes").stat().st_mode & 0o777 == 0o750 and out.stat().st_mode & 0o777 == 0o700, name
        (out / "pipe").unlink()
        now = snapshot(out)
        assert set(made) <= set(now) and json.loads((out / ".hlo-replay").read_text())["files"] == marker["files"], name
        shutil.rmtree(out)
        assert not [p.name for p in tmp.iterdir() if ".hlo-replay." in p.name], list(tmp.iterdir())


def links_of_ours(tool, tmp):
    """Where ours has become a link, the link goes and not what it leads to; a list does not lead out."""
    out, mine = tmp / "linked", tmp / "mine"
    run(tool, "replay", tmp / "m.hlo", "-o", out, "--formats=text").expect(0)
    mine.mkdir()
    (mine / "recording.json").write_text("mine")
    (out / "recording.json").unlink()
    (out / "recording.json").symlink_to(mine / "recording.json")
    marker = json.loads((out / ".hlo-replay").read_text())
    marker["files"] += ["../mine/recording.json", str(mine / "recording.json"), "sub/recording.json"]
    (out / ".hlo-replay").write_text(json.dumps(marker))
    (out / "sub").symlink_to(mine)
    run(tool, "replay", tmp / "m.hlo", "-o", out, "--formats=text", "--force").expect(0)
    assert (mine / "recording.json").read_text() == "mine" and (out / "sub").is_symlink() and \
        not (out / "recording.json").is_symlink()


def collisions(tool, tmp):
    """A user's file with the name of a new one of ours: said, and both stay."""
    out = tmp / "collide"
    for kind in ("file", "folder", "link"):
        run(tool, "replay", tmp / "m.hlo", "-o", out, "--formats=text").expect(0)
        mine = out / "index.html"
        if kind == "file":
            mine.write_text("my own page\n")
        elif kind == "folder":
            mine.mkdir()
            (mine / "x").write_text("x")
        else:
            mine.symlink_to("/not/there")
        was = snapshot(out)
        said = run(tool, "replay", tmp / "m.hlo", "-o", out, "--formats=text,page", "--force").expect(2, "index.html", "is kept in").err
        kept = pathlib.Path(said.split("is kept in ")[1].split()[0])
        assert snapshot(out) == was and (kept / "recording.json").exists() and (kept / "index.html").is_file(), kind
        shutil.rmtree(kept)
        shutil.rmtree(out)


def damaged_markers(tool, tmp):
    out = tmp / "marked"
    for text in ("", "{", "[]", '{"version": 1}', '{"version": 2, "files": []}', '{"version": 1, "files": {}}', "\0\0"):
        out.mkdir()
        (out / ".hlo-replay").write_text(text)
        (out / "mine").write_text("mine")
        run(tool, "replay", tmp / "m.hlo", "-o", out, "--force").expect(2, ".hlo-replay")
        assert (out / "mine").exists()
        shutil.rmtree(out)
    # A marker of no use to hide behind: a pipe, a link.
    out.mkdir()
    (out / "mine").write_text("mine")
    os.mkfifo(out / ".hlo-replay")
    run(tool, "replay", tmp / "m.hlo", "-o", out, "--force").expect(2, "mine")
    shutil.rmtree(out)


def older_recordings(tool, tmp):
    """Recordings older than the marker are known by their files; with anything else beside they are the user's."""
    for formats in ("text", "text,dot,page,buffers,thunks", "dot,json,proto", "text,svg,html"):
        out = tmp / "older"
        made = run(tool, "replay", tmp / "m.hlo", "-o", out, f"--formats={formats}", "--every-pass" if "text" in formats else "--no-verify")
        if made.code:  # no Graphviz
            continue
        (out / ".hlo-replay").unlink()
        run(tool, "replay", tmp / "m.hlo", "-o", out).expect(2, "--force")
        run(tool, "replay", tmp / "m.hlo", "-o", out, "--force", "--formats=text").expect(0)
        assert (out / ".hlo-replay").exists() and not list(out.glob("*.dot")) and not list(out.glob("*.pb")), formats
        (out / ".hlo-replay").unlink()
        (out / "module_0001.m.notes.txt").write_text("mine\n")
        run(tool, "replay", tmp / "m.hlo", "-o", out, "--force").expect(2, "module_0001.m.notes.txt")
        assert (out / "module_0001.m.notes.txt").exists()
        shutil.rmtree(out)
    # XLA's dump, and a folder that only looks like one of ours.
    (tmp / "like").mkdir()
    (tmp / "like" / "recording.json").write_text('{"source": "hlo-replay", "stages": [], "files": ["thesis.tex"]}')
    (tmp / "like" / "lineage.hlol").write_text("mine")
    (tmp / "like" / "thesis.tex").write_text("mine")
    for folder in ("pair", "like"):
        was = snapshot(tmp / folder)
        run(tool, "replay", tmp / "m.hlo", "-o", tmp / folder, "--force").expect(2)
        assert snapshot(tmp / folder) == was


def appears(tool, data, tmp):
    """What appears under the name while a command runs stays; what was made is kept beside, and named."""
    program_file = tmp / "appears.py"
    for kind in ("empty", "folder", "file", "link", "ours"):
        out = tmp / f"late_{kind}"
        act = {"empty": "o.mkdir()", "folder": "o.mkdir(); (o / 'mine').write_text('mine')", "file": "o.write_text('mine')",
               "link": "o.symlink_to('/not/there')",
               "ours": f"import subprocess; subprocess.run([{str(tool)!r}, 'replay', {str(tmp / 'm.hlo')!r}, '-o', str(o)], check=True, stdout=subprocess.DEVNULL)"}[kind]
        program_file.write_text((tmp / "dumps.py").read_text() + "\n")
        text = program_file.read_text().replace("raise SystemExit", f"o = pathlib.Path({str(out)!r})\n{act}\nraise SystemExit")
        program_file.write_text(text)
        result = run(tool, "capture", "-o", out, "--", sys.executable, program_file)
        if kind == "empty":
            result.expect(0)
            assert (out / "module_0000.m.before_optimizations.txt").exists()
            continue
        result.expect(2, "is kept in")
        kept = pathlib.Path(result.err.split("is kept in ")[1].split()[0])
        assert (kept / "module_0000.m.before_optimizations.txt").exists() and kept.parent == tmp, result.err
        assert {"folder": lambda: (out / "mine").exists(), "file": lambda: out.read_text() == "mine",
                "link": out.is_symlink, "ours": lambda: (out / "recording.json").exists()}[kind](), kind
        # And later runs leave it alone.
        run(tool, "replay", tmp / "m.hlo", "-o", tmp / "other").expect(0)
        shutil.rmtree(tmp / "other")
        assert (kept / "module_0000.m.before_optimizations.txt").exists()


def two_runs(tool, tmp):
    """Of two runs into one new folder one wins; the other fails, and its work is kept."""
    big = tmp / "big.hlo"
    lines = "\n".join(f"  a{k} = f32[4] add(a{k - 1}, a{k - 1})" for k in range(1, 400))
    big.write_text(f"HloModule m\n\nENTRY e {{\n  a0 = f32[4] parameter(0)\n{lines}\n  ROOT r = f32[4] negate(a399)\n}}\n")
    for k in range(3):
        out = tmp / f"both{k}"
        runs = [subprocess.Popen([tool, "replay", str(big), "-o", str(out), "--formats=text"], stdout=subprocess.PIPE,
                                 stderr=subprocess.PIPE, text=True) for _ in range(2)]
        said = [child.communicate(timeout=100) for child in runs]
        codes = sorted(child.returncode for child in runs)
        assert codes == [0, 2], (codes, said)
        error = next(err for child, (_, err) in zip(runs, said) if child.returncode == 2)
        assert (out / "recording.json").exists()
        if "is kept in" in error:
            kept = pathlib.Path(error.split("is kept in ")[1].split()[0])
            assert set(snapshot(kept)) == set(snapshot(out)), "the other one's work is whole"
        else:
            assert "exists already" in error, error  # it came when the first was done


def kills(tool, tmp):
    """Killed at any moment of a replacement: notes are there, and a whole recording, old or new."""
    out = tmp / "killed"
    words = [tool, "replay", str(tmp / "m.hlo"), "-o", str(out), "--formats=text,page,buffers"]
    start = time.monotonic()
    subprocess.run(words, check=True, stdout=subprocess.DEVNULL)
    takes = time.monotonic() - start
    notes = {"notes.md": "mine\n", "deep/er/notes.md": "mine, too\n"}
    for name, text in notes.items():
        (out / name).parent.mkdir(parents=True, exist_ok=True)
        (out / name).write_text(text)
    chance = random.Random(7)
    ended = 0
    for k in range(KILLS):
        child = subprocess.Popen([*words, "--force"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        if k % 2:  # the end is where it is replaced: wait until its folder has the marker
            until = time.monotonic() + takes * 3
            while child.poll() is None and time.monotonic() < until and not list(tmp.glob("killed.*/.hlo-replay")):
                pass
            time.sleep(chance.uniform(0, 0.004))
        else:
            time.sleep(chance.uniform(0, takes * 1.1))
        child.send_signal(signal.SIGKILL)
        ended += child.wait() == -signal.SIGKILL
        for name, text in notes.items():
            assert (out / name).read_text() == text, f"kill {k}: {name}"
        marker = json.loads((out / ".hlo-replay").read_text())
        assert all((out / f).is_file() for f in marker["files"]) and "recording.json" in marker["files"], f"kill {k}"
        json.loads((out / "recording.json").read_text())
    assert ended, "none was killed"
    if os.environ.get("HLO_KILLS"):
        print(f"{ended} of {KILLS} were killed; left beside: {len(list(tmp.glob('killed.*')))}")
    subprocess.run([*words, "--force"], check=True, stdout=subprocess.DEVNULL)
    assert [p.name for p in tmp.glob("killed*")] == ["killed"], list(tmp.glob("killed*"))
    for name, text in notes.items():
        assert (out / name).read_text() == text


def late_files(tool, tmp):
    """What a dead run left in the middle of a replacement: only what is ours, or lies in the folder, too, goes."""
    out = tmp / "late"
    run(tool, "replay", tmp / "m.hlo", "-o", out, "--formats=text").expect(0)
    old = tmp / "late.old.hlo-replay.abc123"
    shutil.copytree(out, old)
    (out / "notes.md").write_text("mine\n")
    os.link(out / "notes.md", old / "notes.md")
    (old / "newer.md").write_text("only here\n")
    run(tool, "replay", tmp / "m.hlo", "-o", out, "--formats=text", "--force").expect(0)
    assert (out / "notes.md").read_text() == "mine\n" and (old / "newer.md").read_text() == "only here\n"
    assert set(snapshot(old)) == {".hlo-replay", "newer.md"}, snapshot(old).keys()


def single_files(tool, data, tmp):
    """A file that is written: never over a folder or an input, over another only with --force."""
    module, other, folder = tmp / "m.hlo", tmp / "o.hlo", tmp / "a_folder"
    other.write_text(MODULE.replace("OP", "subtract"))
    folder.mkdir()
    (folder / "mine").write_text("mine")
    was = module.read_bytes()
    page = lambda *words: [[*words, "--force"], [*words]]
    for words in [["view", module, "-o"], ["diff", module, other, "--html"], ["link", module, other, "-o"],
                  ["link", module, other, "--emit"], ["exec", module, "--profile"]]:
        mine = tmp / "mine.json" if words[0] in ("link", "exec") else tmp / "mine.html"
        mine.write_text("mine\n")
        run(tool, *words, mine).expect(2, "--force")
        assert mine.read_text() == "mine\n", words
        for more in ([], ["--force"]):
            run(tool, *words, folder if words[0] != "exec" else f"{folder}.json", *more)
            assert (folder / "mine").exists(), words
            run(tool, *words, module, *more).expect(2)
            assert module.read_bytes() == was, words
        if words[0] in ("link", "exec"):
            shutil.rmtree(f"{folder}.json", ignore_errors=True)
            pathlib.Path(f"{folder}.json").unlink(missing_ok=True)
        code = run(tool, *words, mine, "--force").code
        assert code in (0, 1) and mine.read_text() != "mine\n", words
    assert page
    # Results over what they come from.
    for words in (["convert", module, module], ["exec", module, "--out", module], ["extract", module, "a", "-o", module],
                  ["extract", module, "a", "--inputs-out", module]):
        run(tool, *words).expect(2, "the command reads")
        assert module.read_bytes() == was, words


def cases(tool, data, tmp):
    list(commands(tool, data, tmp))
    yield "folders of others", lambda: refused_folders(tool, data, tmp)
    yield "folders that are read", lambda: inputs_stay(tool, data, tmp)
    yield "notes beside what is ours", lambda: notes_stay(tool, data, tmp)
    yield "links in the place of ours", lambda: links_of_ours(tool, tmp)
    yield "notes that are in the way", lambda: collisions(tool, tmp)
    yield "markers that are damaged", lambda: damaged_markers(tool, tmp)
    yield "recordings without a marker", lambda: older_recordings(tool, tmp)
    yield "what appears meanwhile", lambda: appears(tool, data, tmp)
    yield "two runs into one folder", lambda: two_runs(tool, tmp)
    yield "kills while a folder is replaced", lambda: kills(tool, tmp)
    yield "what a killed replacement left", lambda: late_files(tool, tmp)
    yield "files that are written", lambda: single_files(tool, data, tmp)
