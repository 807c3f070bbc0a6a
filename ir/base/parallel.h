// A pool of workers for loops whose parts do not touch each other: results do not depend on how many there are.
#pragma once
#include <cstdint>
#include <functional>

namespace hlo {

// Calls body(i) for every i in [0, count), in parts, on all cores; returns when all are done. The first exception (by
// index) is thrown again. Within a body it runs in place.
void parallel_for(int64_t count, const std::function<void(int64_t)>& body);

// The same for [0, n) in ranges of `grain`, the last of what is left: body(first, last).
void parallel_ranges(int64_t n, int64_t grain, const std::function<void(int64_t, int64_t)>& body);

// How many threads work (HLO_THREADS, else the machine's).
int worker_count();

// From now on loops run in place, and libraries loaded from now on start no threads either: a process that is about to
// fork copies of itself (which keep the calling thread alone) needs this before its first loop.
void work_alone();

}  // namespace hlo
