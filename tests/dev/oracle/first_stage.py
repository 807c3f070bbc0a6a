"""Where a dump's replay starts."""


def first_of_one_device(dump):
    """The .hlo.pb of a program's input; of one for several devices that in which each has its part: partitioning is not replayed."""
    text, source, part = (next(iter(sorted(dump.glob(f"*{stage}"))), None)
                          for stage in ("before_optimizations.txt", "before_optimizations.hlo.pb", "after_spmd_partitioner.hlo.pb"))
    return part if part and text and "num_partitions=" in text.open().readline() else source


def replay_options(source):
    """Leaves out what XLA ran before that stage."""
    return ["--from=host_compute_asyncifier"] if "after_spmd_partitioner" in source.name else []
