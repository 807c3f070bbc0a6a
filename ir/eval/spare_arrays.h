// Storage of large arrays that nobody has any more, to be had again: its pages have been touched, which costs more than
// to fill them.
#pragma once
#include <cstddef>
#include <memory>
#include <vector>

namespace hlo {

// While there is one, storage of large arrays is kept; with the last one it goes. A process that does other things,
// too, is not to sit on it.
class KeepsSpareArrays {
 public:
  KeepsSpareArrays();
  ~KeepsSpareArrays();
  KeepsSpareArrays(const KeepsSpareArrays&) = delete;
  KeepsSpareArrays& operator=(const KeepsSpareArrays&) = delete;
};

// Storage that comes back here when its last owner lets it go, where it is large; no more than was in use at once is
// kept, and no more than 1 GiB. `zero`: else its bytes are whatever they are. Throws std::bad_alloc.
std::shared_ptr<std::vector<char>> array_storage(size_t bytes, bool zero);

// Bytes that nobody has.
size_t spare_array_bytes();

}  // namespace hlo
