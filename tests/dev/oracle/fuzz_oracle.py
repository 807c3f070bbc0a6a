#!/usr/bin/env python3
"""Mutants of HLO texts, judged by XLA's parser and by ours: tests/dev/oracle/fuzz_oracle.py TOOL CASES.json|FILE… [--count N] [--seed S].
CASES.json is a list of {"text"}. Prints each kind of disagreement once; what aborts XLA is not compared."""
import argparse
import collections
import json
import pathlib
import random
import re
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import oracle_batch

parser = argparse.ArgumentParser()
parser.add_argument("tool")
parser.add_argument("files", nargs="+")
parser.add_argument("--python", required=True, help="the reference's interpreter (shared/oracle/setup.sh prints it)")
parser.add_argument("--count", type=int, default=1000)
parser.add_argument("--seed", type=int, default=1)
parser.add_argument("--show", type=int, default=60)
args = parser.parse_args()
rng = random.Random(args.seed)
texts = []
for f in args.files:
    if f.endswith(".json"):
        texts += [c["text"] for c in json.load(open(f))]
    else:
        texts.append(open(f).read())
token = re.compile(r'"(?:[^"\\]|\\.)*"|[A-Za-z_][\w.\-]*|-?\d+(?:\.\d+)?|->|<=|\.\.\.|[^\w\s]|\s+')
pool = collections.Counter()
for t in texts:
    pool.update(token.findall(t))
pool = [w for w in pool if not w.isspace()]


def mutate(text):
    words = token.findall(text)
    # Mostly in the last third: the examples' own part.
    for _ in range(rng.choice((1, 1, 1, 2))):
        low = rng.choice((0, len(words) * 2 // 3))
        i = rng.randrange(low, len(words))
        kind = rng.randrange(8)
        if kind == 0:
            del words[i]
        elif kind == 1:
            words.insert(i, rng.choice(pool))
        elif kind == 2:
            words[i] = rng.choice(pool)
        elif kind == 3:
            words.insert(i, words[rng.randrange(len(words))])
        elif kind == 4:
            j = rng.randrange(low, len(words))
            words[i], words[j] = words[j], words[i]
        elif kind == 5:
            numbers = [k for k in range(low, len(words)) if re.fullmatch(r"-?\d+", words[k])]
            if numbers:
                words[rng.choice(numbers)] = rng.choice(["0", "1", "2", "3", "-1", "5", "7", "16", "4294967296"])
        elif kind == 6:
            w = words[i]
            if len(w) > 1:
                k = rng.randrange(len(w))
                words[i] = w[:k] + rng.choice("axX_.-0 1%{}()[],=\"'/") + w[k + rng.randrange(2):]
        else:
            words[i:i + rng.randrange(1, 4)] = []
        if not words:
            break
    return "".join(words)


oracle = oracle_batch.Oracle(args.python)
kinds = collections.Counter()
compared = agreed = 0
for n in range(args.count):
    text = mutate(rng.choice(texts))
    answer = oracle.ask(text, ["default", "short"])
    if answer.get("abort"):
        kinds["aborts XLA"] += 1
    ours = {}
    done = None
    for style in ("default", "short"):
        done = subprocess.run([args.tool, "print", "--style=" + style, "-"], input=text, capture_output=True, text=True)
        if done.returncode not in (0, 2):
            print("CRASH", done.returncode, text, done.stderr)
        if done.returncode:
            break
        ours[style] = done.stdout
    if answer.get("abort"):
        continue
    compared += 1
    if (done.returncode == 0) != answer["ok"]:
        why = (done.stderr.split("error: ")[-1].split("\n")[0] if done.returncode else re.sub(r".*?error: ", "", answer["error"].replace("\n", " "), count=1))[:110]
        key = re.sub(r"\d+|'[^']*'", "#", ("XLA accepts; ours: " if answer["ok"] else "XLA refuses: ") + why)[:70]
        kinds[key] += 1
        if kinds[key] <= 2 and len(kinds) < args.show:
            caret = done.stderr.split("\n")[1] if done.returncode else " ".join(answer["error"].split("\n")[2:4])
            print(f"#{n} {'XLA accepts; ours: ' if answer['ok'] else 'XLA refuses: '}{why}\n      {caret.strip()[:200]}")
    elif answer["ok"] and ours != answer["prints"]:
        for style in ours:
            if ours[style] != answer["prints"][style]:
                a, b = answer["prints"][style].split("\n"), ours[style].split("\n")
                k = next((k for k, (x, y) in enumerate(zip(a, b)) if x != y), -1)
                kinds["print"] += 1
                if kinds["print"] < args.show:
                    print(f"#{n} PRINT {style}\n      xla  {a[k][-300:]}\n      ours {b[k][-300:]}")
                break
    else:
        agreed += 1
print(f"{compared} compared, {agreed} agree ({100 * agreed / max(compared, 1):.2f} %)")
for key, count in kinds.most_common(40):
    print(f"{count:6} {key}")
