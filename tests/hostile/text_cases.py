"""Texts and protos that broke the reader, the printer or the verifier."""
from tool import run


def cases(tool, data, tmp):
    yield "a module as it should be", lambda: run(tool, "verify", data / "plain.hlo").expect(0)
