"""hlo-replay as a Python package: the command, and where its program lies."""
import os
import sys

PROGRAM = os.path.join(os.path.dirname(os.path.abspath(__file__)), "bin", "hlo-replay")


def main():
    os.execv(PROGRAM, ["hlo-replay", *sys.argv[1:]])
