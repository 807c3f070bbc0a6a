"""Folders of strangers: what recording.json and file names may reach, and what pages let run."""
import base64
import hashlib
import html.parser
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import time

from tool import run

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "dev"))
from transformer import transformer  # pylint: disable=wrong-import-position
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "common"))
from command_line import page_files

MODULE = "HloModule m\n\nENTRY e {\n  p = f32[4] parameter(0)\n  ROOT r = f32[4] OP(p, p)\n}\n"
ATTACK = "\"><img src=x onerror=document.title='pwned'></script><script>document.title='pwned'</script>{{recording}}{{policy}}"


def recording(folder, first="a.txt", files=(), words="x"):
    """A recording of two stages, the first one's file called so."""
    folder.mkdir(parents=True)
    stage = {"kind": "pass", "name": "n", "pipeline": words, "pass": words, "changed": True, "instructions_before": 1,
             "instructions_after": 2, "added": 1, "removed": 0, "modified": 0,
             "notes": [{"rule": words, "instructions": [words, words], "text": words}]}
    (folder / "recording.json").write_text(json.dumps({
        "version": 1, "source": "hlo-replay", "module": words, "module_number": 1, "pipeline": words,
        "stages": [dict(stage, kind="input", number=0, file=first), dict(stage, number=1, file="b.txt")],
        "files": list(files)}))
    (folder / "b.txt").write_text(MODULE.replace("OP", "multiply"))
    if "/" not in first and first not in ("", ".", ".."):
        (folder / first).write_text(MODULE.replace("OP", "add"))
    return folder


def listing(folder):
    return sorted(str(p.relative_to(folder)) for p in folder.rglob("*"))


def names_that_leave(tool, tmp):
    """A recording that names what is not its own is refused by every command, and nothing is written."""
    for k, name in enumerate(["../.bashrc", "a/../../.bashrc", "/etc/passwd", "../../../../../../dev/zero", "..", ".", "a//b"]):
        base = tmp / f"leave{k}"
        folder = recording(base / "dump", name)
        (base / ".bashrc").write_text("mine\n")
        (base / "out").mkdir()
        before = listing(base)
        for command in (["view", folder, "-o", base / "out" / "page.html"], ["print", f"{folder}:1:0000"],
                        ["view", folder, "-o", base / "out" / "pages", "--formats=text,page"], ["open", folder], ["exec", folder, "--all-stages"], ["bisect", folder], ["diff", folder, folder],
                        ["explain", folder, "r"], ["link", folder]):
            run(tool, *command).expect(2, "leads out of the folder")
        assert listing(base) == before and (base / ".bashrc").read_text() == "mine\n"
    folder = recording(tmp / "leavefiles" / "dump", files=["../x-buffer-assignment.txt"])
    run(tool, "explain", folder, "r").expect(2, "leads out of the folder")


def links_that_leave(tool, tmp):
    folder = recording(tmp / "links" / "dump", "l.txt")
    (folder / "l.txt").unlink()
    (tmp / "links" / "secret.txt").write_text("HloModule secret_of_mine\n")
    (folder / "l.txt").symlink_to("../secret.txt")
    for command in (["print", f"{folder}:1:0000"], ["open", folder], ["exec", folder, "--all-stages"], ["view", folder]):
        result = run(tool, *command)
        said = result.out + result.err
        assert "leads out of the folder" in said or command[0] == "view", said
        assert "secret_of_mine" not in said
    if (page := tmp / "links" / "dump.html").exists():
        assert not any("secret_of_mine" in str(value) for value in page_files(page).values())
    # One that stays inside is as good as a file.
    (folder / "l.txt").unlink()
    (folder / "l.txt").symlink_to("b.txt")
    run(tool, "print", f"{folder}:1:0000").expect(0)
    # A folder as XLA dumps it.
    dump = tmp / "links" / "xla"
    dump.mkdir()
    (dump / "module_0001.m.before_optimizations.txt").write_text(MODULE.replace("OP", "add"))
    last = dump / "module_0001.m.after_optimizations.txt"
    last.symlink_to("/etc/passwd")
    shown = run(tool, "open", dump).expect(0, "leads out of the folder")
    assert "root:" not in shown.out + shown.err
    # Stores of files name what they keep by content (git-annex, DVC, hubs), or as it was named (Bazel, a folder of links).
    (tmp / "links" / "cache" / "5d").mkdir(parents=True)
    hashed = "41402abc4b2a76b9719d911017c592"
    for stored in (f"5d/{hashed}", f"SHA256E-s99--5d{hashed}.txt", last.name):
        last.unlink()
        (tmp / "links" / "cache" / stored).write_text(MODULE.replace("OP", "multiply"))
        last.symlink_to(tmp / "links" / "cache" / stored)
        assert "leads out" not in run(tool, "open", dump).expect(0).err
        run(tool, "print", f"{dump}:after_optimizations").expect(0, "multiply")
    run(tool, "diff", f"{dump}:before_optimizations", f"{dump}:after_optimizations").expect(1)
    run(tool, "view", dump, "-o", tmp / "links" / "xla.html").expect(0)
    run(tool, "bisect", dump).expect(1, "multiply")
    (tmp / "links" / "of_links").symlink_to(dump)
    run(tool, "print", f"{tmp}/links/of_links:after_optimizations").expect(0, "multiply")
    # What leads to no regular file is passed over.
    for where in ("/dev/zero", "/not/there", "module_0001.m.after_optimizations.txt", "/proc"):
        last.unlink()
        last.symlink_to(where)
        run(tool, "open", dump).expect(0)
    # A recording that names such a link is a stranger's: nothing leads out of it.
    last.unlink()
    last.symlink_to(tmp / "links" / "cache" / last.name)
    (dump / "recording.json").write_text(json.dumps({"version": 1, "source": "xla", "module": "m", "module_number": 1, "pipeline": "", "stages": [
        {"kind": "input", "name": "after_optimizations", "changed": True, "instructions_before": 1, "instructions_after": 1,
         "added": 0, "removed": 0, "modified": 0, "file": last.name}], "files": []}))
    assert "multiply" not in run(tool, "print", f"{dump}:after_optimizations").expect(2).out


def named_pipes(tool, tmp):
    """A module may come by a pipe that the user names."""
    module = tmp / "piped.hlo"
    module.write_text(MODULE.replace("OP", "add"))
    bash = lambda line: subprocess.run(["bash", "-c", line, "sh", tool, str(module), str(tmp / "piped")], capture_output=True,
                                       text=True, timeout=60)
    plain = run(tool, "print", module).expect(0).out
    for line in ('"$1" print <(cat "$2")', 'cat "$2" | "$1" print /dev/stdin', '"$1" print /dev/stdin < "$2"', 'cat "$2" | "$1" print -'):
        said = bash(line)
        assert said.returncode == 0 and said.stdout == plain, (line, said)
    mkfifo = 'rm -f "$3.fifo"; mkfifo "$3.fifo"; (cat "$2" > "$3.fifo") & '
    for command in ("stats", "verify", "cost", "exec", "memory", "view -o $3.html", "replay --formats=text -o $3.replay"):
        for line in (f'cat "$2" | "$1" {command} /dev/stdin', f'cat "$2" | "$1" {command} -', mkfifo + f'"$1" {command} "$3.fifo"'):
            said = bash(line.replace("$3.replay", "$3.replay --force"))
            assert said.returncode == 0, (line, said)
    said = bash('"$1" diff <(cat "$2") <(sed s/add/subtract/ "$2")')
    assert said.returncode == 1 and "subtract" in said.stdout, said


def pipes(tool, tmp):
    """What would never end is not opened."""
    folder = tmp / "fifo"
    folder.mkdir()
    os.mkfifo(folder / "recording.json")
    (folder / "module_0001.m.before_optimizations.txt").write_text(MODULE.replace("OP", "add"))
    stage = recording(tmp / "fifostage", "f.txt")
    (stage / "f.txt").unlink()
    os.mkfifo(stage / "f.txt")
    for where, code in ((folder, 2), (stage, None)):
        for command in (["open", where], ["view", where], ["print", f"{where}:1:0000"], ["exec", where, "--all-stages"],
                        ["bisect", where], ["diff", where, where], ["explain", where, "r"], ["link", where]):
            result = run(tool, *command, seconds=10)
            assert code is None or result.code == code, result.err
            assert "no regular file" in result.out + result.err or code is None and command[0] in ("view", "explain"), \
                result.out + result.err


# --- pages ---

class Page(html.parser.HTMLParser):
    """Everything in a page that could run, load or lead anywhere."""

    def __init__(self, text, beside):
        super().__init__()
        self.bad, self.policy, self.scripts, self.title, self.open = [], None, [], "", None
        self.beside = beside  # files that it may lead to: ./NAME
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        attrs = dict(attrs)
        self.open = (tag, attrs)
        if tag == "a" and set(attrs) == {"href"} and attrs["href"] in self.beside:
            return
        if tag == "meta" and attrs.get("http-equiv") == "Content-Security-Policy":
            self.policy = attrs["content"]
        if tag in ("img", "object", "embed", "link", "base", "foreignobject", "image", "use", "animate", "a", "form"):
            self.bad.append((tag, attrs))
        for name, value in attrs.items():
            if name.startswith("on") or (name in ("src", "href", "xlink:href", "srcdoc") and value):
                self.bad.append((tag, name, value))

    def handle_data(self, data):
        tag, attrs = self.open or ("", {})
        if tag == "script" and attrs.get("type") not in ("application/json", "text/plain"):
            self.scripts.append(data)
        if tag == "title" and not self.title:
            self.title = data

    def handle_endtag(self, tag):
        self.open = None


def check_page(path):
    page = Page(path.read_text(), {f"./{p.name}" for p in path.parent.glob("*.html")})
    assert not page.bad, f"{path.name}: {page.bad}"
    assert len(page.scripts) == 1, f"{path.name}: {len(page.scripts)} scripts"
    hashed = base64.b64encode(hashlib.sha256(page.scripts[0].encode()).digest()).decode()
    policy = dict((part.split()[0], part.split()[1:]) for part in page.policy.split(";"))
    assert policy["default-src"] == ["'none'"] and \
        [s for s in policy["script-src"] if s != "'wasm-unsafe-eval'"] == [f"'sha256-{hashed}'"], page.policy
    assert policy.get("connect-src", ["'none'"]) == ["'none'"], page.policy
    assert "javascript:" not in page.scripts[0]


def pages_of(folder):
    pages = list(folder.glob("*.html"))
    assert pages
    for page in pages:
        check_page(page)


def hostile_pages(tool, data, tmp):
    """Folders that hold hostile names, as pages: (folder)."""
    out = tmp / "pages"
    out.mkdir()

    def view(folder, name):
        run(tool, "view", folder, "-o", out / name, "--formats=text,html,dot").expect(0)
        return out / name

    yield view(recording(tmp / "rec_tmpl", words=ATTACK), "rec_tmpl")
    yield view(recording(tmp / "rec_js", "javascript:(parent.document.title='pwned').txt"), "rec_js")
    yield view(recording(tmp / "rec_files", files=["javascript:document.title='pwned'", "a.txt"]), "rec_files")
    names = tmp / "dump_fname"
    names.mkdir()
    attack = "{{recording}}<img src=x onerror=document.title=`pwned`>"
    (names / f"module_0001.{attack}.before_optimizations.txt").write_text(MODULE.replace("OP", "add"))
    (names / f"module_0001.{attack}.0001.pipe.after_algsimp.before_dce.txt").write_text(MODULE.replace("OP", "multiply"))
    yield view(names, "dump_fname")
    graph = tmp / "dot_js"
    graph.mkdir()
    (graph / "hlo_graph_0.dot").write_text(
        'digraph G { label="<img src=x onerror=document.title=1>"; a [label="x" URL="javascript:top.document.title=\'pwned\'" '
        'tooltip="\\"><img src=x onerror=document.title=1>" id="x\\" onload=\\"document.title=1" class="c\\" onclick=\\"document.title=1"]; '
        'b [label=<<B>b</B>> href="javascript:alert(1)" target="\\" onclick=\\"x" image="/etc/passwd"]; '
        'a->b [label="</svg><script>document.title=\'pwned\'</script>" edgeURL="javascript:alert(2)"]; '
        'c [style=filled fillcolor="red:blue"]; }')
    (graph / "log.txt").write_text("computation m [after <script>x</script>, before y]: /tmp/hlo_graph_0.dot\n")
    yield view(graph, "dot_js")
    run(tool, "replay", data / "pm_tmpl_rec.pb", "-o", out / "replayed", "--formats=text,html").expect(0)
    yield out / "replayed"
    (out / "profile").mkdir()
    run(tool, "exec", data / "pm_tmpl_prof.pb", f"--profile={out}/profile/p.html").expect(0)
    run(tool, "diff", data / "pm_tmpl_prof.pb", data / "pm_tmpl_rec.pb", f"--html={out}/profile/d.html")
    run(tool, "link", data / "pm_tmpl_prof.pb", data / "pm_tmpl_rec.pb", "-o", f"{out}/profile/l.html")
    yield out / "profile"


def pages(tool, data, tmp):
    for folder in hostile_pages(tool, data, tmp):
        pages_of(folder)
    drawn = (tmp / "pages" / "dot_js" / "hlo_graph_0.html").read_text()
    assert "<svg" in drawn and "javascript:" not in drawn and "/etc/passwd" not in drawn
    chromium = shutil.which("chromium")
    if chromium and os.environ.get("HLO_CHROMIUM"):
        in_chromium(chromium, tmp / "pages")


def in_chromium(chromium, folder):
    """The same in a browser: its titles stay, its script runs."""
    for page in sorted(folder.rglob("*.html")):
        dom = subprocess.run([chromium, "--headless", "--no-sandbox", "--disable-gpu", "--virtual-time-budget=2000",
                              "--dump-dom", page.as_uri()], capture_output=True, text=True, timeout=60).stdout
        title = re.search("<title>(.*?)</title>", dom, re.S)
        assert "pwned" not in title.group(1).replace("document.title=", "").replace("'pwned'", "").replace(
            "`pwned`", ""), f"{page}: {title.group(0)}"
        if 'id="hlo-data"' in dom:
            assert "<div" in dom[dom.index('id="app"') + 8:], f"{page}: its own script did not run"


# --- other outputs ---

def full_disk(tool, data, tmp):
    """What did not get through is no success."""
    model = data / "plain.hlo"
    out = tmp / "full"
    out.mkdir()
    for command in (["print", model], ["verify", model], ["stats", "--json", model], ["opt", "--passes=dce", model],
                    ["fmt", model], ["convert", model, "-"], ["replay", model, "-o", out / "r"], ["open", out / "r"],
                    ["exec", model], ["--help"], ["--version"], ["extract", model, "n"], ["cost", model]):
        with open("/dev/full", "wb") as full:
            result = run(tool, *command, stdout=full)
        assert result.code == 2 and "cannot write to standard output" in result.err, f"{command}: {result.code} {result.err}"
        # Without a standard output at all.
        closed = subprocess.run(["sh", "-c", 'exec "$@" >&-', "sh", tool, *map(str, command)], capture_output=True,
                                text=True, timeout=60)
        assert closed.returncode == 2 and "standard output" in closed.stderr or "exists already" in closed.stderr, \
            f"{command}: {closed.returncode} {closed.stderr}"
    # And where even the complaint cannot be told.
    for command in (["print", tmp / "none"], ["verify", tmp / "none"], ["nonsense"]):
        with open("/dev/full", "wb") as full:
            code = subprocess.run([tool, *map(str, command)], stdout=full, stderr=full, timeout=60).returncode
        assert code == 2, f"{command}: {code}"
    # A device is written to, not replaced.
    run(tool, "link", model, model, "-o", "/dev/full").expect(2)
    assert pathlib.Path("/dev/full").is_char_device()


def reader_gone(tool, data, tmp):
    """`| head` ends quietly; where SIGPIPE is ignored it is an error."""
    long = tmp / "long.hlo"
    lines = "\n".join(f"  a{k} = f32[4] add(a{k - 1}, a{k - 1})" for k in range(1, 6000))
    long.write_text(f"HloModule m\n\nENTRY e {{\n  a0 = f32[4] parameter(0)\n{lines}\n  ROOT r = f32[4] negate(a5999)\n}}\n")
    for prefix, code in (("", 141), ("trap '' PIPE; ", 2)):
        script = f'{prefix}"$1" print "$2" | head -1; echo "${{PIPESTATUS[0]}}"'
        result = subprocess.run(["bash", "-c", script, "sh", tool, str(long)], capture_output=True, text=True, timeout=60)
        assert result.stdout.splitlines()[-1] == str(code), result
        assert bool(result.stderr) == (code == 2), result.stderr


def long_names(tool, tmp):
    for length in (119, 121, 180, 5000):
        module = tmp / f"long{length}.hlo"
        module.write_text(MODULE.replace("HloModule m", "HloModule " + "n" * length).replace("OP", "add"))
        run(tool, "replay", module, "-o", tmp / f"long{length}").expect(0)
        run(tool, "exec", f"{tmp}/long{length}:before_optimizations").expect(0)


def control_bytes(tool, tmp):
    folder = tmp / "control"
    folder.mkdir()
    (folder / "module_0001.m\x1b]0;pwned\x07.before_optimizations.txt").write_text(MODULE.replace("OP", "add"))
    (folder / "module_0001.m\x1b]0;pwned\x07.0001.p\x1b[2J.after_x\x9b.txt").write_text(MODULE.replace("OP", "add"))
    (folder / "module_0001.m\x1b]0;pwned\x07.other\x1b.txt").write_text("x")
    (folder / "module_0002.m.before_optimizations.txt").write_text(MODULE.replace("OP", "add"))
    (folder / "module_0002.m.0001.p.after_x.txt").write_text(MODULE.replace("OP", "multiply"))
    ours = recording(tmp / "control_ours", words="\x1b[2J\x07x\x9b")
    for command in (["open", folder], ["print", f"{folder}:\x1b"], ["print", f"{tmp}/\x1b[2J"], ["view", folder],
                    ["explain", folder, "r"], ["exec", folder, "--all-stages"], ["bisect", folder], ["open", ours],
                    ["explain", ours, "r"], ["explain", ours, "--pass", "x"], ["exec", ours, "--all-stages"],
                    ["bisect", ours], ["diff", ours, folder], ["link", folder]):
        result = run(tool, *command)
        assert "\x1b" not in result.out + result.err and "\x07" not in result.out + result.err, result.out + result.err


def left_over(tool, data, tmp):
    """What dead runs left blocks nobody and goes; what is another's stays."""
    out = tmp / "leftover"
    for ending in (".tmp%d" % os.getpid(), ".tmp.hlo-replay.abc123", ".old.hlo-replay.abc123", ".tmp.hlo-replay.mine"):
        pathlib.Path(f"{out}{ending}").mkdir()
    for k in range(2):
        run(tool, "replay", data / "plain.hlo", "-o", out, *(["--force"] if k else [])).expect(0)
    left = sorted(p.name for p in tmp.glob("leftover.*"))
    assert left == ["leftover.tmp%d" % os.getpid(), "leftover.tmp.hlo-replay.mine"] or \
        left == ["leftover.tmp.hlo-replay.mine", "leftover.tmp%d" % os.getpid()], left


def read_only(tool, data, tmp):
    if os.geteuid() == 0 and not os.path.isdir("/sys/kernel"):
        return
    where = "/sys/kernel" if os.geteuid() == 0 else "/"
    result = run(tool, "convert", data / "plain.hlo", f"{where}/hlo_replay_x.hlo").expect(2)
    assert "No such file" not in result.err, result.err


def transformer_model(tool, tmp):
    """1,260 instructions: the first page soon, drawings within their budgets."""
    module, instructions = transformer(12)
    assert instructions == 1260
    (tmp / "transformer.hlo").write_text(module)
    out = tmp / "transformer"
    run(tool, "replay", tmp / "transformer.hlo", "-o", out, seconds=60).expect(0)
    check_page(out / "index.html")
    data = json.loads((out / "recording.json").read_text())
    assert len(data["stages"]) > 60 and all((out / s["file"]).exists() for s in data["stages"] if "file" in s)
    assert not [p for p in out.iterdir() if p.suffix in (".svg", ".png") or p.suffix == ".html" and p.name != "index.html"]
    # Two stages drawn: whole or less, and then it says so.
    run(tool, "replay", tmp / "transformer.hlo", "-o", tmp / "drawn", "--stop-after=0001", "--formats=html", seconds=60).expect(0)
    for page in (tmp / "drawn").glob("module_*.html"):
        check_page(page)
        assert "<svg" in page.read_text()


def endless_drawing(tool, tmp):
    """A graph that Graphviz does not get done with."""
    folder = tmp / "endless"
    folder.mkdir()
    (folder / "hlo_graph_0.dot").write_text("digraph G { a [shape=polygon sides=20000000]; b [peripheries=20000000]; a->b }")
    start = time.monotonic()
    run(tool, "view", folder, seconds=60).expect(0)
    assert "no drawing within" in (tmp / "endless.view" / "hlo_graph_0.html").read_text()
    assert time.monotonic() - start < 30


def cases(tool, data, tmp):
    yield "a transformer's first page", lambda: transformer_model(tool, tmp)
    yield "a drawing without end", lambda: endless_drawing(tool, tmp)
    yield "names of a recording that leave its folder", lambda: names_that_leave(tool, tmp)
    yield "links that leave the folder", lambda: links_that_leave(tool, tmp)
    yield "a module by a pipe", lambda: named_pipes(tool, tmp)
    yield "pipes in a folder", lambda: pipes(tool, tmp)
    yield "pages of hostile names", lambda: pages(tool, data, tmp)
    yield "standard output that takes nothing", lambda: full_disk(tool, data, tmp)
    yield "a reader that goes", lambda: reader_gone(tool, data, tmp)
    yield "long module names", lambda: long_names(tool, tmp)
    yield "control bytes in names", lambda: control_bytes(tool, tmp)
    yield "what dead runs left", lambda: left_over(tool, data, tmp)
    yield "a folder that cannot be written", lambda: read_only(tool, data, tmp)
