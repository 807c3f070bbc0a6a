"""What fuzz_commands.py does to its inputs: bytes, tokens, protos, archives, folders."""
import gzip
import io
import os
import re
import warnings
import zipfile
import zlib

NUMBERS = ["0", "1", "-1", "2", "3", "7", "127", "255", "256", "65535", "65536", "2147483647", "2147483648", "-2147483648",
           "4294967296", "9223372036854775807", "-9223372036854775808", "18446744073709551615", "4611686018427387904",
           "1e308", "-1e-400", "nan", "-inf", "0x7fffffff", "99999999999999999999999"]
WORDS = ["f32", "f64", "bf16", "f16", "s8", "u8", "s4", "pred", "c64", "f8e4m3fn", "s64", "token[]", "parameter", "constant",
         "tuple", "get-tuple-element", "add", "dot", "reduce", "while", "conditional", "call", "fusion", "custom-call", "sort",
         "scatter", "gather", "dynamic-slice", "convolution", "broadcast", "reshape", "transpose", "iota", "pad", "ROOT",
         "ENTRY", "HloModule", "dimensions", "to_apply", "calls", "body", "condition", "metadata", "sharding", "{}", "{0}",
         "[]", "()", "{...}", "null", "true", "\"\"", "../../x", "/dev/null", "<script>", "{{recording}}", "\\", "\n"]


def mutate_bytes(rng, data, other):
    """A few changes that know nothing of the format."""
    data = bytearray(data)
    for _ in range(rng.choice([1, 1, 2, 3, 8])):
        if not data:
            return bytes(rng.randbytes(rng.randrange(40)))
        at = rng.randrange(len(data))
        some = rng.choice([1, 2, 4, 16, 64, 1024])
        kind = rng.randrange(8)
        if kind == 0:
            data[at] ^= 1 << rng.randrange(8)
        elif kind == 1:
            data[at] = rng.choice([0, 1, 0x7f, 0x80, 0xff, rng.randrange(256)])
        elif kind == 2:
            del data[at:at + some]
        elif kind == 3:
            data[at:at] = data[at:at + some]
        elif kind == 4:
            data[at:at] = rng.randbytes(some % 65)
        elif kind == 5:
            del data[at:]
        elif kind == 6:
            data[at:at + 8] = rng.choice([b"\xff" * 8, b"\x00" * 8, b"\xff" * 7 + b"\x7f", b"\x80" * 9 + b"\x01"])
        elif other:
            start = rng.randrange(len(other))
            data[at:at + some] = other[start:start + some]
    return bytes(data)


def mutate_text(rng, data, other):
    """Changes of tokens, numbers and lines: what is left is often still read."""
    text = data.decode("utf-8", "surrogateescape")
    chance = rng.random()
    if chance < 0.1:
        return mutate_bytes(rng, data, other)
    if chance < 0.6 and ("HloModule" in text or "parameter(" in text):
        for _ in range(rng.choice([1, 1, 2, 3])):
            text = mutate_gently(rng, text)
        return text.encode("utf-8", "surrogateescape")
    for _ in range(rng.choice([1, 1, 1, 2, 4])):
        kind = rng.randrange(10)
        tokens = list(re.finditer(r"-?\d+(?:\.\d+)?(?:e[-+]?\d+)?|[A-Za-z_%][\w.\-]*|[^\s\w]", text))
        if not tokens:
            break
        numbers = [t for t in tokens if t[0].lstrip("-")[:1].isdigit()]
        t = rng.choice(tokens)
        if kind <= 2 and numbers:
            t = rng.choice(numbers)
            near = str(int(float(t[0])) + rng.choice([-1, 1, 2])) if abs(float(t[0])) < 1e15 else "0"
            text = text[:t.start()] + (near if rng.random() < 0.5 else rng.choice(NUMBERS)) + text[t.end():]
        elif kind == 3:
            text = text[:t.start()] + rng.choice(WORDS) + text[t.end():]
        elif kind == 4:
            text = text[:t.start()] + text[t.end():]
        elif kind == 5:
            text = text[:t.start()] + rng.choice(tokens)[0] + text[t.end():]
        elif kind == 6:
            text = text[:t.start()] + t[0] * rng.choice([2, 3, 50]) + text[t.end():]
        else:
            lines = text.split("\n")
            a, b = rng.randrange(len(lines)), rng.randrange(len(lines))
            if kind == 7:
                lines[a], lines[b] = lines[b], lines[a]
            elif kind == 8:
                del lines[a]
            else:
                lines.insert(b, lines[a])
            text = "\n".join(lines)
    return text.encode("utf-8", "surrogateescape")


def is_text(data):
    return b"\0" not in data[:4096] and data[:2] != b"\x1f\x8b" and data[:4] != b"PK\x03\x04"


UNARY = ["abs", "negate", "exponential", "log", "tanh", "sqrt", "not", "floor", "sign", "cosine", "is-finite", "convert", "copy",
         "real", "imag", "popcnt", "reverse", "reshape", "bitcast", "transpose"]
BINARY = ["add", "subtract", "multiply", "divide", "maximum", "minimum", "power", "remainder", "and", "or", "xor", "atan2",
          "shift-left", "shift-right-logical", "complex", "compare", "dot", "concatenate"]
TYPES = ["f32", "f64", "bf16", "f16", "s8", "u8", "s4", "u4", "pred", "c64", "c128", "f8e4m3fn", "f4e2m1fn", "s64", "u64", "s32", "u2"]


def mutate_gently(rng, text):
    """Changes after which a module often still verifies: the same one everywhere a thing is named."""
    kind = rng.randrange(6)
    if kind == 0:  # one element type in place of another
        found = sorted(set(re.findall(r"\b(?:[suf]\d+\w*|bf16|pred|c64|c128)(?=\[)", text)))
        if found:
            return re.sub(rf"\b{rng.choice(found)}(?=\[)", rng.choice(TYPES), text)
    if kind == 1:  # one size in place of another
        found = sorted(set(re.findall(r"(?<=[\[,])\d+(?=[\],])", text)))
        if found:
            return re.sub(rf"(?<=[\[,]){rng.choice(found)}(?=[\],])", rng.choice(["0", "1", "2", "3", "5", "16", "100000", "4294967296"]), text)
    if kind == 2:  # an operation of as many operands
        for group in rng.sample([UNARY, BINARY], 2):
            places = list(re.finditer(rf" ({'|'.join(group)})(?=\()", text))
            if places:
                at = rng.choice(places)
                return text[:at.start(1)] + rng.choice(group) + text[at.end(1):]
    if kind == 3:  # a number of an attribute
        places = list(re.finditer(r"(?<=[{,=x_])-?\d+(?=[,}x_\s])", text))
        if places:
            at = rng.choice(places)
            return text[:at.start()] + rng.choice([str(int(at[0]) + 1), "0", "1", "-1", "2", rng.choice(NUMBERS)]) + text[at.end():]
    if kind == 4:  # an attribute less
        places = list(re.finditer(r", [a-z_]+=(?:\{[^{}]*\}|[\w%.]+)", text))
        if places:
            at = rng.choice(places)
            return text[:at.start()] + text[at.end():]
    names = sorted(set(re.findall(r"(?<=[(,] )%?[a-z][\w.\-]*|(?<=\()%?[a-z][\w.\-]*(?=[,)])", text)))  # another operand
    if len(names) > 1:
        places = list(re.finditer(rf"(?<=[( ]){re.escape(rng.choice(names))}(?=[,)])", text))
        if places:
            at = rng.choice(places)
            return text[:at.start()] + rng.choice(names) + text[at.end():]
    return text


# Protos by their wire format, so that what encloses a change keeps its length right.

def varint(value):
    value &= 2**64 - 1
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    return bytes(out) + bytes([value])


def read_varint(data, at):
    value = shift = 0
    while True:
        byte = data[at]  # IndexError: not a message
        at += 1
        value |= (byte & 127) << shift
        shift += 7
        if byte < 128:
            return value, at
        if shift > 63:
            raise IndexError


def fields_of(data):
    """[(number, wire type, value)], or IndexError where the bytes are no message."""
    at, fields = 0, []
    while at < len(data):
        key, at = read_varint(data, at)
        number, wire = key >> 3, key & 7
        if not number or wire not in (0, 1, 2, 5):
            raise IndexError
        if wire == 0:
            value, at = read_varint(data, at)
        else:
            size = {1: 8, 5: 4}.get(wire)
            if size is None:
                size, at = read_varint(data, at)
            if at + size > len(data):
                raise IndexError
            value, at = data[at:at + size], at + size
        fields.append((number, wire, value))
    return fields


def bytes_of(fields):
    out = b""
    for number, wire, value in fields:
        out += varint(number << 3 | wire)
        out += varint(value) if wire == 0 else (varint(len(value)) if wire == 2 else b"") + value
    return out


def mutate_message(rng, data, other, depth=0):
    fields = fields_of(data)
    if not fields:
        return data
    kind, k = rng.randrange(12 + 4 * depth), rng.randrange(len(fields))
    number, wire, value = fields[k]
    if kind == 0:
        del fields[k]
    elif kind == 1:
        fields.insert(rng.randrange(len(fields) + 1), fields[k])
    elif kind == 2:
        fields[k] = (rng.randrange(1, 40), wire, value)
    elif wire == 0:
        fields[k] = (number, wire, rng.choice([0, 1, 2, value + 1, value - 1, -1, 2**31 - 1, 2**31, 2**32, 2**62, 2**63 - 1, 2**63]))
    elif wire == 2:
        try:
            fields[k] = (number, wire, mutate_message(rng, value, other, depth + 1))
        except IndexError:
            fields[k] = (number, wire, rng.choice([mutate_bytes, mutate_text])(rng, value, other))
    else:
        fields[k] = (number, wire, mutate_bytes(rng, value, other)[:len(value)].ljust(len(value), b"\0"))
    return bytes_of(fields)


def mutate_archive(rng, data, other):
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        members = [(name, archive.read(name)) for name in archive.namelist()]
    for _ in range(rng.choice([1, 1, 2])):
        k = rng.randrange(len(members))
        name, content = members[k]
        kind = rng.randrange(5)
        if kind < 3:
            head = content[:128]  # the header decides how the rest is read
            members[k] = (name, mutate_bytes(rng, head, other) + content[128:] if rng.random() < 0.4 else
                          mutate_text(rng, head, other) + content[128:])
        elif kind == 3:
            members[k] = (rng.choice(["p0.npy", "p9.npy", "o0.npy", "../x.npy", "x", ""]) or "p.npy", content)
        else:
            members.append((name, content[:rng.randrange(len(content) + 1)]))
    out = io.BytesIO()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the same name twice is wanted
        with zipfile.ZipFile(out, "w", rng.choice([zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED])) as archive:
            for name, content in members:
                archive.writestr(zipfile.ZipInfo(name), content)
    return out.getvalue()


def mutate_file(rng, data, other):
    if rng.random() < 0.6:  # what is packed; else the packing
        try:
            if data[:2] == b"\x1f\x8b":
                return gzip.compress(mutate_file(rng, gzip.decompress(data), other), 1, mtime=0)
            if data[:4] == b"PK\x03\x04":
                return mutate_archive(rng, data, other)
        except (OSError, EOFError, zlib.error, zipfile.BadZipFile, NotImplementedError, RuntimeError):
            pass  # damaged by an earlier change
    if is_text(data):
        return mutate_text(rng, data, other)
    try:
        return mutate_message(rng, data, other) if rng.random() < 0.8 else mutate_bytes(rng, data, other)
    except IndexError:
        return mutate_bytes(rng, data, other)


def mutate_folder(rng, folder):
    """One file's content, mostly; else a name, a link, a missing file, a folder or pipe where a file was."""
    files = sorted(p for p in folder.rglob("*") if p.is_file())
    for _ in range(rng.choice([1, 1, 2, 4])):
        files = [f for f in files if f.is_file() and not f.is_symlink()]
        if not files:
            return
        named = [f for f in files if f.name == "recording.json"]
        f = named[0] if named and rng.random() < 0.5 else rng.choice(files)
        kind = rng.randrange(14)
        if kind < 8:
            f.write_bytes(mutate_file(rng, f.read_bytes(), rng.choice(files).read_bytes()))
        elif kind == 8:
            f.unlink()
        elif kind == 9:
            f.rename(f.with_name(mutate_text(rng, f.name.encode(), b"x").decode("utf-8", "ignore").replace("/", "_")
                                 .replace("\0", "")[:200].strip(".") or "x"))
        elif kind == 10:
            f.write_bytes(b"")
        elif kind == 11:
            f.unlink()
            f.symlink_to(rng.choice(["/dev/null", "/etc/hostname", "nowhere", ".", "/dev/zero", rng.choice(files).name]))
        elif kind == 12:
            f.unlink()
            f.mkdir()
        else:
            f.unlink()
            os.mkfifo(f)
