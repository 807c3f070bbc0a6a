// Checks of our own invariants and the one exception that carries a diagnostic to the command line.
#pragma once
#include <fmt/format.h>

#include <stdexcept>
#include <string>
#include <utility>

namespace hlo {

// What went wrong decides the exit code: all of these are 2; a "no" (differs, refused by the verifier) is no failure.
enum class FailureKind { kUsage, kSyntax, kInvalid, kUnsupported, kIo, kInternal };

// Thrown where work on a module cannot go on. `where` is "file:line:col" when the place is known.
class Failure : public std::runtime_error {
 public:
  Failure(FailureKind kind, const std::string& message) : std::runtime_error(message), kind_(kind) {}
  FailureKind kind() const { return kind_; }

 private:
  FailureKind kind_;
};

// The file's name without its folders: no path of the build machine ends up in the binary's messages.
constexpr const char* base_name(const char* path) {
  const char* last = path;
  for (const char* at = path; *at; ++at)
    if (*at == '/') last = at + 1;
  return last;
}

template <class... Args>
[[noreturn]] void fail(FailureKind kind, fmt::format_string<Args...> text, Args&&... args) {
  throw Failure(kind, fmt::format(text, std::forward<Args>(args)...));
}

#define HLO_CHECK(condition, ...)                                                                                      \
  do {                                                                                                                 \
    if (!(condition)) [[unlikely]]                                                                                     \
      ::hlo::fail(::hlo::FailureKind::kInternal, "{}:{}: check '{}' failed: {}", ::hlo::base_name(__FILE__), __LINE__, \
                  #condition, fmt::format("" __VA_ARGS__));                                                            \
  } while (false)

// The same, where asking costs too much for what users run: under sanitizers.
#ifdef __SANITIZE_ADDRESS__
#define HLO_DCHECK(condition, ...) HLO_CHECK(condition, __VA_ARGS__)
#else
#define HLO_DCHECK(condition, ...) static_cast<void>(0)
#endif

}  // namespace hlo
