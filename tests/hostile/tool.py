"""Runs the command line on hostile input: bounded in time, memory and processes."""
import os
import resource
import signal
import subprocess

SANITIZED = os.environ.get("HLO_SANITIZED") == "1"  # address sanitizer reserves terabytes: no limit of address space


class Result:
    def __init__(self, code, out, err):
        self.code, self.out, self.err = code, out, err

    def expect(self, code, *words):
        """The exit code, and words that standard error or output must hold."""
        said = self.out + self.err
        assert self.code == code, f"exit {self.code}, not {code}: {said[-600:]}"
        for word in words:
            assert word in said, f"{word!r} is missing in: {said[-600:]}"
        return self


def run(tool, *args, seconds=20, gigabytes=6, stdin=subprocess.DEVNULL, stdout=None, cwd=None, env=None):
    """One command; a signal, a hang or a raw C++ message is an AssertionError, whatever the caller expects."""

    def limits():
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        if not SANITIZED:
            resource.setrlimit(resource.RLIMIT_AS, (int(gigabytes * 2**30), int(gigabytes * 2**30)))

    child = subprocess.Popen([tool, *map(str, args)], stdin=stdin, stdout=stdout or subprocess.PIPE,
                             stderr=subprocess.PIPE, cwd=cwd, env=env, preexec_fn=limits, start_new_session=True)
    try:
        out, err = child.communicate(timeout=seconds * (5 if SANITIZED else 1))
    except subprocess.TimeoutExpired:
        os.killpg(child.pid, signal.SIGKILL)
        child.communicate()
        raise AssertionError(f"no end after {seconds} s: {' '.join(map(str, args))}") from None
    result = Result(child.returncode, (out or b"").decode(errors="replace"), err.decode(errors="replace"))
    said = f"{' '.join(map(str, args))}: {result.err[-600:]}"
    assert result.code in (0, 1, 2), f"exit {result.code}: {said}"
    for raw in ("std::", "basic_string", "vector::", "AddressSanitizer", "runtime error:"):
        assert raw not in result.err, f"a raw message: {said}"
    return result
