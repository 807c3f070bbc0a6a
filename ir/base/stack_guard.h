// The one guard of recursion: what descends into nested input (parser, evaluator, emitter, drawings) asks it at every
// level, so that input nested without end is refused while there is stack left to say so.
#pragma once
#include <pthread.h>

#include <cstddef>
#include <cstdint>

#include "ir/base/check.h"

namespace hlo {

// Lowest address that this thread's stack may grow to; asked of the system once a thread.
inline uintptr_t stack_end() {
  static thread_local const uintptr_t end = [] {
    pthread_attr_t attributes;
    void* base = nullptr;
    size_t size = 0;
    if (::pthread_getattr_np(::pthread_self(), &attributes)) return uintptr_t{0};
    ::pthread_attr_getstack(&attributes, &base, &size);
    ::pthread_attr_destroy(&attributes);
    return reinterpret_cast<uintptr_t>(base);
  }();
  return end;
}

// Throws Failure(kUnsupported, "`what` too deep for this machine's stack") where less than `reserve` bytes are left:
// enough for the deepest chain of functions between two calls of this one, and for unwinding.
inline void check_stack(const char* what, size_t reserve = size_t{256} << 10) {
  auto here = reinterpret_cast<uintptr_t>(__builtin_frame_address(0));
  if (here < stack_end() + reserve) [[unlikely]]
    fail(FailureKind::kUnsupported, "{} too deep for this machine's stack", what);
}

}  // namespace hlo
