#!/usr/bin/env python3
"""The options of each command in docs/commands.md, written from the command's own --help: commands_page.py HLO_REPLAY [--check]

Below `<!-- help: NAME -->` come the synopsis, a table of options and what the help says after its examples, up to `<!-- end -->`.
An option with the same text in four commands and more is listed once, below `<!-- help: shared -->`; options of a group (`An installed
XLA`) below `<!-- help: GROUP -->`. --check changes nothing: exit 1 where the page is another, a command has no section, or a section
no command."""
import concurrent.futures
import pathlib
import re
import subprocess
import sys

PAGE = pathlib.Path(__file__).resolve().parents[3] / "docs" / "commands.md"
SHARED_FROM = 4
FIRST = "Options"  # the help's name of the group that is the command's own
BLOCK = re.compile(r"<!-- help: (.+?) -->\n(.*?)<!-- end -->", re.S)


class Help:
    """One command's help: usage, groups {title: [(names, text)]}, and the sentences after the examples."""

    def __init__(self, text):
        lines = text.split("\n")
        self.usage = next(line for line in lines if line.startswith("Usage: ")).removeprefix("Usage: ")
        self.groups, self.after = {}, []
        title, k = "", 0
        while k < len(lines):
            line = lines[k]
            k += 1
            if re.match(r"\S.*:$", line):
                title = line[:-1]
            elif not line.startswith("  "):
                if title.startswith("Example") and line and not line.startswith("Usage"):
                    self.after.append(line)
            elif not title.startswith(("Example", "Lessons", "Usage")):
                names, _, text = line.strip().partition("  ")
                if not text and k < len(lines) and lines[k].startswith(" " * 20):  # the text has a line of its own
                    text = lines[k]
                    k += 1
                names, text = self.tidy(names, text.strip())
                self.groups.setdefault(title, []).append((names, text))

    @staticmethod
    def tidy(names, text):
        """The option's names with the kind of value, without what CLI11 says of ranges."""
        if match := re.search(r" Needs: \S+(?: (?!-)\S+)*$", names):
            names = names[:match.start()]
        names, _, kind = names.partition(" ")
        if needs := re.match(r"Needs: (\S+)\s*(.*)", kind):
            kind, text = "", text or needs[2]
        kind = re.sub(r"^(TEXT|INT|UINT|FLOAT)(:.*?)?(?=( \.\.\.| REQUIRED| x \d)*$)", lambda m: m[1] + (m[2] if m[2] and "{" in m[2] else ""), kind)
        kind = kind.replace(" REQUIRED", "").replace("UINT", "N").replace("INT", "N").replace("FLOAT", "X").replace("TEXT", "…")
        kind = re.sub(r"^…:\{(.*)\}$", r"\1", kind).replace(" ...", " (repeat)")
        kind = re.sub(r" in \[.*\]|:(NON)?(POSITIVE|NEGATIVE)", "", kind)
        return names + (f"={kind}" if kind and names.startswith("-") else ""), text

    def options(self, title):
        return [(n, t) for n, t in self.groups.get(title, []) if not n.startswith("-h,")]


def row(names, text):
    cell = names.replace("|", "\\|")
    return f"| `{cell}` | {text.replace('|', chr(92) + '|').replace('<', '&lt;')} |"


def table(options):
    return ["| option | what |", "| --- | --- |", *(row(n, t) for n, t in options), ""] if options else []


def bare(names):
    return re.sub(r"=.*", "", names)


def help_texts(tool):
    """{command: its --help}; '' is the program's own."""
    def ask(*words):
        return subprocess.run([tool, *words, "--help"], capture_output=True, text=True, check=True).stdout

    top = ask()
    names = re.findall(r"^  ([a-z][a-z-]*) ", top.split("Subcommands:", 1)[1].split("\n\n", 1)[0], re.M)
    with concurrent.futures.ThreadPoolExecutor() as pool:
        return {"": top, **dict(zip(names, pool.map(ask, names)))}


def sections(texts):
    helps = {name: Help(text) for name, text in texts.items() if name}
    users = {}
    for name, one in helps.items():
        for option in one.options(FIRST):
            users.setdefault(option, []).append(name)
    shared = [option for option, by in users.items() if len(by) >= SHARED_FROM]
    many = {title: one for one in helps.values() for title in one.groups
            if title not in (FIRST, "Positionals") and sum(title in other.groups for other in helps.values()) >= 2}
    out = {"shared": ["| option | what | commands |", "| --- | --- | --- |",
                      *(row(n, t)[:-1] + f"| {', '.join(users[(n, t)])} |" for n, t in sorted(shared)), ""]}
    for title, one in many.items():
        out[title] = table(one.options(title))
    for name, one in helps.items():
        own = [o for o in one.options(FIRST) if o not in shared]
        lines = ["```text", f"hlo-replay {one.usage}", "```", "", *table(one.options("Positionals") + own)]
        for title in one.groups:
            if title not in (FIRST, "Positionals") and title not in many:
                lines += [f"{title}:", "", *table(one.options(title))]
        also = [f"`{bare(n)}`" for n, t in one.options(FIRST) if (n, t) in shared]
        groups = [f"options for [{title[0].lower() + title[1:]}](#{title.lower().replace(' ', '-')})" for title in one.groups if title in many]
        if also:
            also = [", ".join(also) + " ([options of several commands](#options-of-several-commands))"]
        if also or groups:
            lines += ["Also " + "; ".join(also + groups) + ".", ""]
        if one.after:
            lines += [" ".join(one.after), ""]
        out[name] = lines
    return out


def faults(texts, write=False):
    """What is wrong with the page; with `write` its tables are written first."""
    found, text = sections(texts), PAGE.read_text()
    there = [m[1] for m in BLOCK.finditer(text)]
    out = [f"docs/commands.md has no `<!-- help: {n} -->`" for n in found if n not in there]
    out += [f"docs/commands.md: `{n}` is no command" for n in there if n not in found]
    new = BLOCK.sub(lambda m: f"<!-- help: {m[1]} -->\n" + "\n".join(found.get(m[1], [])) + "\n<!-- end -->", text)
    if write:
        PAGE.write_text(new)
    elif new != text:
        line = next((k for k, (a, b) in enumerate(zip(text.split("\n"), new.split("\n")), 1) if a != b), 0)
        out.append(f"docs/commands.md:{line} is not what --help says: python3 tests/dev/docs/commands_page.py build/bin/hlo-replay")
    return out


def main():
    found = faults(help_texts(sys.argv[1]), write="--check" not in sys.argv)
    print(*found, sep="\n")
    sys.exit(bool(found))


if __name__ == "__main__":
    main()
