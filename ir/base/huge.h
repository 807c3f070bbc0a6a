// Storage for large arrays that are read at random: pages of 2 MiB where the system grants them, which spares most
// misses of the translation buffer (parsing a module of a million instructions takes about a third less).
#pragma once
#ifndef __EMSCRIPTEN__
#include <sys/mman.h>
#endif

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <new>
#include <vector>

namespace hlo {

// Of no use in a browser, which has pages of one size and no memory to give away for alignment.
#ifdef __EMSCRIPTEN__
inline constexpr size_t kHugePage = size_t{1} << 31;
inline void wish_huge_pages(void*, size_t) {}
#else
inline constexpr size_t kHugePage = size_t{1} << 21;
inline void wish_huge_pages(void* at, size_t bytes) { ::madvise(at, bytes, MADV_HUGEPAGE); }
#endif

template <class T>
struct HugeAllocator {
  using value_type = T;

  HugeAllocator() = default;
  template <class U>
  HugeAllocator(const HugeAllocator<U>&) {}

  T* allocate(size_t count) {
    if (count > SIZE_MAX / sizeof(T) / 2) throw std::bad_alloc();
    size_t bytes = count * sizeof(T);
    if (bytes < kHugePage) return static_cast<T*>(::operator new(bytes));
    bytes = (bytes + kHugePage - 1) / kHugePage * kHugePage;
    void* at = std::aligned_alloc(kHugePage, bytes);
    if (!at) throw std::bad_alloc();
    wish_huge_pages(at, bytes);  // a wish: without it the pages are small ones
    return static_cast<T*>(at);
  }
  void deallocate(T* at, size_t count) {
    if (count * sizeof(T) < kHugePage)
      ::operator delete(at);
    else
      std::free(at);
  }
  template <class U>
  bool operator==(const HugeAllocator<U>&) const {
    return true;
  }
};

template <class T>
using HugeVector = std::vector<T, HugeAllocator<T>>;

}  // namespace hlo
