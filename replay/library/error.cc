// Failures and whatever else is thrown below as Error; Watch.
#include <algorithm>
#include <chrono>
#include <new>

#include "parser/parser.h"
#include "replay/library/access.h"
#include "replay/os/interrupt.h"
#include "replay/os/progress.h"

namespace hlo::api {

const char* word(ErrorKind kind) {
  switch (kind) {
    case ErrorKind::bad_input:
      return "bad_input";
    case ErrorKind::unsupported:
      return "unsupported";
    case ErrorKind::usage:
      return "usage";
    case ErrorKind::internal:
      return "internal";
    case ErrorKind::interrupted:
      return "interrupted";
  }
  return "";
}

Error::Error(ErrorKind kind, const std::string& message, std::vector<Diagnostic> diagnostics)
    : std::runtime_error(message), kind_(kind), diagnostics_(std::move(diagnostics)) {}
Error::Error(const Error&) = default;
Error& Error::operator=(const Error&) = default;
Error::~Error() = default;

void refuse(ErrorKind kind, const std::string& message) { throw Error(kind, message); }

// --- watching ---

using WatchClock = std::chrono::steady_clock;

struct WatchBody {
  std::function<bool(const Progress&)> callback;
  WatchClock::duration least;
  WatchClock::time_point last = WatchClock::now();
  std::string what;
  size_t done = 0, all = 0;
  bool ended = false, asking = false;
  std::exception_ptr thrown;
  WatchBody* outer = nullptr;
  InterruptSource interrupts{[this] { return ask(); }};
  ProgressSink sink{[this](std::string_view text, size_t so_far, size_t of) {
    what = text, done = so_far, all = of;
    ask();
  }};

  bool ask() {
    if (ended || asking) return ended;
    const WatchClock::time_point now = WatchClock::now();
    if (now - last < least) return false;
    asking = true;  // what the callback calls itself is not watched by it
    try {
      ended = !callback(Progress{what, done, all});
    } catch (...) {
      thrown = std::current_exception();
      ended = true;
    }
    asking = false;
    last = WatchClock::now();
    return ended;
  }
};

namespace {
thread_local WatchBody* t_watch = nullptr;
}

Watch::Watch(std::function<bool(const Progress&)> callback, double seconds) : body_(std::make_unique<WatchBody>()) {
  if (!callback) refuse(ErrorKind::usage, "a Watch needs a callback");
  body_->callback = std::move(callback);
  body_->least =
      std::chrono::duration_cast<WatchClock::duration>(std::chrono::duration<double>(std::clamp(seconds, 0.0, 3600.0)));
  body_->outer = t_watch;
  t_watch = body_.get();
}
Watch::~Watch() { t_watch = body_->outer; }

void check_ended() {
  if (!t_watch || !t_watch->ended || t_watch->asking) return;
  // The next call is watched anew.
  t_watch->ended = false;
  if (std::exception_ptr thrown = std::exchange(t_watch->thrown, nullptr)) throw Foreign{thrown};
  throw Error(ErrorKind::interrupted, "interrupted");
}

// --- telling ---

namespace {

ErrorKind kind_of(FailureKind kind) {
  switch (kind) {
    case FailureKind::kSyntax:
    case FailureKind::kInvalid:
    case FailureKind::kIo:
      return ErrorKind::bad_input;
    case FailureKind::kUnsupported:
      return ErrorKind::unsupported;
    case FailureKind::kUsage:
      return ErrorKind::usage;
    case FailureKind::kInternal:
      return ErrorKind::internal;
  }
  return ErrorKind::internal;
}

// `file:line:col` at the beginning of a message.
Place place_in(std::string_view message) {
  const size_t end = message.find(": ");
  if (end == std::string_view::npos) return {};
  const std::string_view head = message.substr(0, end);
  const size_t second = head.rfind(':'), first = second == 0 || second == std::string_view::npos
                                                     ? std::string_view::npos
                                                     : head.rfind(':', second - 1);
  if (first == std::string_view::npos) return {};
  auto number = [](std::string_view digits, size_t* out) {
    if (digits.empty() || digits.size() > 12) return false;
    for (char c : digits) {
      if (c < '0' || c > '9') return false;
      *out = *out * 10 + static_cast<size_t>(c - '0');
    }
    return true;
  };
  Place place{std::string(head.substr(0, first))};
  if (!number(head.substr(first + 1, second - first - 1), &place.line) ||
      !number(head.substr(second + 1), &place.column))
    return {};
  return place;
}

Error told(const Failure& failure) {
  std::vector<Diagnostic> diagnostics;
  const Place first = place_in(failure.what());
  if (const auto* syntax = dynamic_cast<const SyntaxFailure*>(&failure))
    for (const SyntaxFailure::Entry& e : syntax->entries())
      diagnostics.push_back({{first.file, e.line, e.column}, e.message, e.hint});
  else if (first.line)
    diagnostics.push_back({first, failure.what(), ""});
  return Error(kind_of(failure.kind()), failure.what(), std::move(diagnostics));
}

}  // namespace

void rethrow_as_error() {
  try {
    // What ended because a Watch said so is told as that, whatever it was thrown as.
    std::exception_ptr now = std::current_exception();
    check_ended();
    std::rethrow_exception(now);
  } catch (const Foreign& f) {
    std::rethrow_exception(f.exception);
  } catch (const Error&) {
    throw;
  } catch (const Failure& e) {
    throw told(e);
  } catch (const std::bad_alloc&) {
    throw Error(ErrorKind::unsupported,
                "no memory is left for this (of this machine, or of a limit such as ulimit -v)");
  } catch (const std::length_error&) {
    throw Error(ErrorKind::unsupported, "this takes more memory than any machine has");
  } catch (const std::exception& e) {
    throw Error(ErrorKind::internal, e.what());
  }
}

}  // namespace hlo::api
