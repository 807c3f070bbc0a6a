// The one guard of recursion: what descends into nested input (parser, evaluator, emitter, drawings) asks it at every
// level, so that input nested without end is refused while there is stack left to say so.
#pragma once
#ifdef __EMSCRIPTEN__
#include <emscripten/stack.h>
#else
#include <pthread.h>
#endif

#include <cstddef>
#include <cstdint>

#include "ir/base/check.h"

namespace hlo {

#ifdef __EMSCRIPTEN__
// Of a browser's two stacks, C++ sees the one in its memory, and nobody the machine's, of which a worker has 500 kB and
// which ends the engine when it is used up. The one is a measure of the other (docs/engine.md): so much of it may be
// used.
inline constexpr size_t kStackInPages = size_t{160} << 10;
inline uintptr_t stack_end() { return emscripten_stack_get_base() - kStackInPages; }
inline constexpr size_t kStackReserve = size_t{8} << 10;
#else
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
inline constexpr size_t kStackReserve = size_t{256} << 10;
#endif

// Throws Failure(kUnsupported, "`what` too deep for this machine's stack") where less than `reserve` bytes are left:
// enough for the deepest chain of functions between two calls of this one, and for unwinding.
inline void check_stack(const char* what, size_t reserve = kStackReserve) {
  auto here = reinterpret_cast<uintptr_t>(__builtin_frame_address(0));
  if (here < stack_end() + reserve) [[unlikely]]
    fail(FailureKind::kUnsupported, "{} too deep for this machine's stack", what);
}

}  // namespace hlo
