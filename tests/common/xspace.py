"""XSpace protos written by hand (tsl/profiler/protobuf/xplane.proto), for tests of profiles."""


def varint(n):
    out = b""
    while n >= 0x80:
        out, n = out + bytes([n & 0x7f | 0x80]), n >> 7
    return out + bytes([n])


def field(number, value):
    """One field of protobuf's wire format: a number, a text, or a message that is written already."""
    if isinstance(value, int):
        return varint(number << 3) + varint(value & (1 << 64) - 1)
    value = value.encode() if isinstance(value, str) else value
    return varint(number << 3 | 2) + varint(len(value)) + value


def plane(name, lines=(), events=(), stats=()):
    """An XPlane. events: (id, name, display name, stats); stats: names by id from 1; lines: (name, begin ns, events)."""
    out = field(2, name)
    for line_name, begin, spans in lines:
        body = field(2, line_name) + field(3, begin)
        for metadata, offset, duration, own in spans:
            body += field(4, field(1, metadata) + field(2, offset) + field(3, duration) + b"".join(field(4, s) for s in own))
        out += field(3, body)
    for number, name_, display, own in events:
        out += field(4, field(1, number) + field(2, field(1, number) + field(2, name_) + field(4, display) + b"".join(field(5, s) for s in own)))
    for number, stat in enumerate(stats, 1):
        out += field(5, field(1, number) + field(2, field(1, number) + field(2, stat)))
    return field(1, out)


STATS = ["hlo_op", "hlo_module", "program_id", "cuda_graph_id", "cuda_graph_node_id", "correlation_id", "kernel_details", "memcpy_details", "Memset_details"]
DETAILS = "regs:32 static_shared:1024 dynamic_shared:2048 grid:256,1,1 block:128,1,1 occ_pct:50"


def kernel(name, op, at, took, graph=None, node=None, launch=None, module="jit_g", stream=1, details=None):
    """A kernel of a GPU, times in microseconds."""
    return {"name": name, "op": op, "at": at, "took": took, "graph": graph, "node": node, "launch": launch, "module": module,
            "stream": stream, "details": details or DETAILS}


def gpu(kernels, number=0, program=7):
    """A GPU's plane of such kernels, a line for each stream."""
    names = sorted({k["name"] for k in kernels})
    stat = {name: i for i, name in enumerate(STATS, 1)}
    text = lambda key, value: field(1, stat[key]) + field(5, value)  # noqa: E731
    count = lambda key, value: field(1, stat[key]) + field(4, value)  # noqa: E731
    lines = []
    for stream in sorted({k["stream"] for k in kernels}):
        spans = []
        for k in (k for k in kernels if k["stream"] == stream):
            kind = "memcpy_details" if k["name"].startswith("Memcpy") else "Memset_details" if k["name"].startswith("Memset") else "kernel_details"
            own = [text("hlo_op", k["op"]), text("hlo_module", k["module"]), count("program_id", program),
                   text(kind, k["details"] if kind == "kernel_details" else "size:4")]
            own += [count(key, k[name]) for key, name in (("cuda_graph_id", "graph"), ("cuda_graph_node_id", "node"), ("correlation_id", "launch")) if k[name] is not None]
            spans.append((names.index(k["name"]) + 1, int(k["at"] * 1e6), int(k["took"] * 1e6), own))
        lines.append((f"Stream #{stream}(Compute)", 1_700_000_000_000_000_000, spans))
    return plane(f"/device:GPU:{number}", lines, [(i, name, "", []) for i, name in enumerate(names, 1)], STATS)
