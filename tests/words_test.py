#!/usr/bin/env python3
"""The words of docs/HACKING.md ("Words") that nothing a user reads may have: words_test.py HLO_REPLAY SOURCE_FOLDER [--list]

Read are README.md, CHANGELOG.md, docs/*.md, the help text of every command, and what the program prints: literals with a blank in the
sources of C++ (SOURCES), literals of the page's TypeScript (viewer/page) but names of classes, literals and docstrings of python/,
descriptions of docs/schemas. Left out are code spans, blocks that are no
shell (outputs are the commands' own), names in capitals, the files of EXCEPT and the literals of VALUES. The tables of options in
docs/commands.md are compared with --help, too (tests/dev/docs/commands_page.py --check). Exit 1 with file, line and replacement of each."""
import ast
import pathlib
import re
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parent / "dev" / "docs"))
import commands_page

EXCEPT = {"PROGRESS.md": "the state of the work", "faults.md": "reports as they came"}
SHELL = ("sh", "bash")
SOURCES = ("parser", "ir", "passes", "dump", "gpu_exec", "replay", "include", "python/src", "viewer")
VALUES = {"not judged"}  # of --json, which keeps its values
CPP = re.compile(r'//[^\n]*|/\*.*?\*/|#include[^\n]*|R"(\w*)\((?P<raw>.*?)\)\1"|"(?P<text>(?:[^"\\\n]|\\.)*)"|\'(?:[^\'\\\n]|\\.)+\'', re.S)


def table(page):
    """(pattern, what to write instead) of each row below the heading `Words`."""
    section = page.split("\n## Words\n", 1)[1].split("\n## ", 1)[0]
    rows = [re.split(r"(?<!\\)\|", line)[1:-1] for line in section.split("\n") if line.startswith("| ")][1:]
    found = []
    for words, instead, pattern in (cell for cell in rows if not set(cell[0].strip()) <= {"-"}):
        pattern = pattern.strip().strip("`").replace("\\|", "|")
        pattern = pattern or r"\b(" + "|".join(re.escape(w.strip()) for w in words.split(",")) + r")\b"
        found.append((re.compile(pattern, re.I), instead.strip()))
    return found


def blank(match):
    return re.sub(r"[^\n]", " ", match.group(0))


def prose(text):
    """The text with what is no prose blanked, lines kept."""
    lines, fence, shell = text.split("\n"), "", False
    for k, line in enumerate(lines):
        mark = re.match(r" *(```+|~~~+)\s*([\w.]*)", line)
        if mark and (not fence or line.strip() == fence):
            fence, shell = ("", False) if fence else (mark[1], mark[2].partition(".")[0] in SHELL)
            lines[k] = ""
        elif fence and not shell:
            lines[k] = ""
    text = re.sub(r"``.+?``|`[^`\n]*`", blank, "\n".join(lines))
    return re.sub(r"\]\([^)]*\)|<!--.*?-->", blank, text, flags=re.S)


def places(name, text, words):
    for number, line in enumerate(text.split("\n"), 1):
        for pattern, instead in words:
            for match in pattern.finditer(line):
                if not (match.group(0).isupper() and len(match.group(0)) > 1):
                    around = line[max(0, match.start() - 30):match.end() + 30].strip()
                    yield f"{name}:{number}: '{match.group(0)}' in '{around}': {instead}"


def cpp_literals(text):
    """(line, text) of each literal with a blank; what is in comments is no literal."""
    for match in CPP.finditer(text):
        value = match["raw"] if match["raw"] is not None else match["text"]
        if value and " " in value and value not in VALUES:
            yield text.count("\n", 0, match.start()) + 1, value.replace("\\n", "  ")


SCRIPT = re.compile(r"""//[^\n]*|/\*.*?\*/|(?P<quote>['"])(?P<text>(?:[^\\\n]|\\.)*?)(?P=quote)|(?P<open>`)|(?P<brace>[{}])|"""
                    r"""(?<=[(,=:\[!&|?;{}>])\s*/(?![/*])(?:[^\\/\n\[]|\\.|\[(?:[^\]\\\n]|\\.)*\])+/""", re.S)


def script_literals(text):
    """(line, text) of each literal of TypeScript with a blank, of a template each part between `${…}`. A list of classes is none."""
    found, depths, at = [], [], 0  # depths: of the braces open in each `${…}` around

    def literal(start, value):
        if " " in value and not re.search(r"\b(class: |className = )$", text[:start][-20:]):
            found.append((text.count("\n", 0, start) + 1, value.replace("\\n", "  ")))

    def template(start):
        """From behind a '`' or the '}' of a part to what ends the part."""
        end = re.compile(r"(?:[^\\`$]|\\.|\$(?!\{))*(`|\$\{)", re.S).match(text, start)
        literal(start - 1, text[start:end.start(1)])
        if end[1] == "${":
            depths.append(0)
        return end.end()

    while match := SCRIPT.search(text, at):
        at = match.end()
        if match["text"] is not None:
            literal(match.start(), match["text"])
        elif match["open"]:
            at = template(at)
        elif match["brace"] == "{" and depths:
            depths[-1] += 1
        elif match["brace"] == "}" and depths:
            if depths[-1] == 0:
                depths.pop()
                at = template(at)
            else:
                depths[-1] -= 1
    return found


def markup_texts(text):
    """Of a page what is between its tags, a line each."""
    shown = re.sub(r"<!--.*?-->|<(style|script).*?</\1>|<[^>]*>", blank, text, flags=re.S)
    return [(number, line) for number, line in enumerate(shown.split("\n"), 1) if line.strip()]


def python_literals(text):
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and " " in node.value:
            yield node.lineno, prose(node.value)


def descriptions(text):
    """Of a schema's, a line each."""
    for number, line in enumerate(text.split("\n"), 1):
        if '"description": ' in line:
            yield number, line


def printed(source, words):
    """Places in what the program prints."""
    anything = re.compile("|".join(pattern.pattern for pattern, _ in words), re.I)
    files = [(f, cpp_literals) for top in SOURCES for end in ("cc", "h", "def") for f in (source / top).rglob(f"*.{end}")]
    files += [(f, python_literals) for f in (source / "python").rglob("*.py")]
    files += [(f, script_literals) for f in (source / "viewer/page").rglob("*.ts")] + [(source / "viewer/page/page.html", markup_texts)]
    files += [(f, descriptions) for f in (source / "docs/schemas").glob("*.json")]
    for file, literals in sorted(files):
        text = file.read_text()
        if not anything.search(text):
            continue
        for first, value in literals(text):
            if anything.search(value):
                for place in places(file.relative_to(source), "\n" * (first - 1) + value, words):
                    yield place


def main():
    tool, source = sys.argv[1], pathlib.Path(sys.argv[2])
    hacking = (source / "docs/HACKING.md").read_text()
    words = table(hacking)
    found = []
    for page in [source / "README.md", source / "CHANGELOG.md", *sorted((source / "docs").glob("*.md"))]:
        if page.name in EXCEPT:
            continue
        text = page.read_text()
        if page.name == "HACKING.md":  # the table itself
            text = re.sub(r"\n## Words\n.*?(?=\n## )", blank, text, flags=re.S)
        found += places(page.relative_to(source), prose(text), words)
    texts = commands_page.help_texts(tool)
    for name, text in texts.items():
        found += places(f"hlo-replay {name} --help", text, words)
    found += commands_page.faults(texts)
    found += printed(source, words)
    sample = [value for _, value in cpp_literals('a("it is told", \'"\', "told", R"(it\nlies so)"); // "it stands"\n')]
    if sample != ["it is told", "it\nlies so"]:
        found.append(f"the test itself: {sample}")
    sample = script_literals("a('it is told', /'/, \"it's so\", `in ${f({ b: 'x y' }, `c ${d} e`)} all`) // 'it stands'\nh({ class: 'a card' }, `one\n  two`)")
    if sample != [(1, "it is told"), (1, "it's so"), (1, "in "), (1, "x y"), (1, "c "), (1, " e"), (1, " all"), (2, "one\n  two")]:
        found.append(f"the test itself: {sample}")
    wrong = list(places("sample", prose("It stands `beside`.\n```console\nbehind\n```\n```sh\nls # behind\n```\nTOLD\n"), words))
    if len(words) < 30 or len(wrong) != 2:
        found.append(f"the test itself: {len(words)} words, {wrong}")
    print(*found, sep="\n")
    print(f"{len(words)} words, {len(found)} places")
    sys.exit(bool(found))


if __name__ == "__main__":
    main()
