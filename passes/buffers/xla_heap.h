// XLA's heap simulator (xla/service/heap_simulator/heap_simulator.cc): places for values in one block of memory.
#pragma once
#include <cstdint>
#include <unordered_map>
#include <vector>

namespace hlo {

struct HeapValue {
  int buffer = 0;  // values of one buffer have one place
  int64_t size = 0;
  int64_t from = 0, to = 0;   // when it is there, by positions of the schedule, both included
  int64_t id = 0;             // in XLA's order of values
  std::vector<int> operands;  // buffers whose place it may take where they end as it begins, as XLA asks for them
};
struct Heap {
  int64_t size = 0;
  std::unordered_map<int, int64_t> offsets;  // by buffer
};
// The better one of XLA's two packings: by size, or by how long a buffer is there.
Heap simulate_heap(std::vector<HeapValue> values);

}  // namespace hlo
