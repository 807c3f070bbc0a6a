#!/usr/bin/env python3
"""The words of docs/HACKING.md ("Words") that nothing a user reads may have: words_test.py HLO_REPLAY SOURCE_FOLDER [--list]

Read are README.md, CHANGELOG.md, docs/*.md and the help text of every command. Left out are code spans, blocks that are no shell
(outputs are the commands' own), names in capitals, and the files of EXCEPT. The tables of options in docs/commands.md are held to --help,
too (tests/dev/commands_page.py --check). Exit 1 with file, line and replacement of each word found."""
import pathlib
import re
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parent / "dev"))
import commands_page

EXCEPT = {"PROGRESS.md": "the state of the work", "faults.md": "reports as they came"}
SHELL = ("sh", "bash")


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
    wrong = list(places("sample", prose("It stands `beside`.\n```console\nbehind\n```\n```sh\nls # behind\n```\nTOLD\n"), words))
    if len(words) < 30 or len(wrong) != 2:
        found.append(f"the test itself: {len(words)} words, {wrong}")
    print(*found, sep="\n")
    print(f"{len(words)} words, {len(found)} places")
    sys.exit(bool(found))


if __name__ == "__main__":
    main()
