#!/usr/bin/env python3
"""Rates of this GPU by torch's calls of cuBLAS and copies of its memory, a row a size and type: sweep.py

Products of square matrices of random numbers (nothing is faster on zeros), copies from memory to memory (bytes read and
written). Each the median of nine timed by events behind three others."""
import statistics

import torch


def seconds(work, repeat=1):
    for _ in range(3):
        work()
    out = []
    for _ in range(9):
        start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        start.record()
        for _ in range(repeat):
            work()
        end.record()
        end.synchronize()
        out.append(start.elapsed_time(end) / 1e3 / repeat)
    return statistics.median(out)


def product(kind, n):
    make = lambda: torch.randn(n, n, device="cuda")
    if kind in ("f32", "tf32"):
        torch.backends.cuda.matmul.allow_tf32 = kind == "tf32"
        a, b = make(), make()
        return lambda: torch.mm(a, b)
    if kind == "s8":
        a, b = (torch.randint(-127, 127, (n, n), dtype=torch.int8, device="cuda") for _ in range(2))
        return lambda: torch._int_mm(a, b.t())
    if kind == "f8e4m3":
        one = torch.ones((), device="cuda")
        a, b = make().to(torch.float8_e4m3fn), make().to(torch.float8_e4m3fn)
        return lambda: torch._scaled_mm(a, b.t(), scale_a=one, scale_b=one, out_dtype=torch.bfloat16)
    a, b = (make().to({"f64": torch.float64, "bf16": torch.bfloat16, "f16": torch.float16}[kind]) for _ in range(2))
    return lambda: torch.mm(a, b)


print(torch.cuda.get_device_name(0), torch.__version__)
for kind in ("f64", "f32", "tf32", "bf16", "f16", "f8e4m3", "s8"):
    for n in (256, 512, 1024, 2048, 4096, 8192, 16384):
        if kind in ("f64", "f32") and n > 8192:
            continue
        try:
            taken = seconds(product(kind, n), 10 if n <= 2048 else 1)
            print(f"product {kind} {n}: {taken * 1e6:.1f} us, {2 * n**3 / taken / 1e12:.1f} TFLOP/s", flush=True)
        except RuntimeError as e:
            print(f"product {kind} {n}: {str(e).splitlines()[0][:100]}", flush=True)
for size in (1 << 20, 1 << 22, 1 << 24, 1 << 25, 1 << 26, 1 << 28, 1 << 30, 1 << 32, 1 << 33):
    a, b = torch.empty(size, dtype=torch.uint8, device="cuda"), torch.empty(size, dtype=torch.uint8, device="cuda")
    taken = seconds(lambda: b.copy_(a), 20 if size <= 1 << 26 else 1)
    print(f"copy {size >> 20} MiB: {taken * 1e6:.1f} us, {2 * size / taken / 1e12:.2f} TB/s", flush=True)
    del a, b
