// What stands behind the handles of include/hlo/, and the one way from there to the code below: `call` tells failures
// as Error, `Reading` and `Working` see to it that one thread at a time works in a universe.
#pragma once
#ifndef HLO_LIBRARY_SOURCE
#error "the build defines it for the sources of replay/library (hlo/export.h says what for)"
#endif

#include <atomic>
#include <exception>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

#include "hlo/array.h"
#include "hlo/error.h"
#include "hlo/module.h"
#include "hlo/progress.h"
#include "hlo/universe.h"
#include "ir/base/check.h"
#include "ir/eval/value.h"
#include "ir/module.h"

namespace hlo::api {

struct UniverseBody {
  std::shared_ptr<hlo::Universe> u;
  // Who works, as a thread's mark; 0: nobody. How many calls of that thread, one inside of another.
  std::atomic<uintptr_t> worker{0};
  std::atomic<int> readers{0};
  int depth = 0;
};

struct ModuleBody {
  std::shared_ptr<UniverseBody> universe;
  std::unique_ptr<hlo::Module> m;
  bool of_2019 = false;  // read from a text of that time
  // Held by calls that hold ids or lists of the module while they ask callbacks: those may read it, not edit it.
  std::atomic<int> busy{0};
  std::mutex lists;  // users are listed when they are first asked for
  // Instructions by name, of the module as it was after so many edits.
  std::unordered_map<StrId, InstId> by_name;
  uint64_t by_name_at = UINT64_MAX;
};

class Recording;
struct RunBody;

struct Access {
  static const std::shared_ptr<UniverseBody>& body(const Universe& u) { return u.body_; }
  static Universe universe(std::shared_ptr<UniverseBody> body) {
    Universe u{};
    u.body_ = std::move(body);
    return u;
  }
  static const std::shared_ptr<ModuleBody>& body(const Module& m) { return m.body_; }
  static const std::shared_ptr<ModuleBody>& body(const Instruction& i) { return i.body_; }
  static const std::shared_ptr<ModuleBody>& body(const Computation& c) { return c.body_; }
  static Module module(std::shared_ptr<ModuleBody> body) { return Module(std::move(body)); }
  static Instruction instruction(std::shared_ptr<ModuleBody> body, InstId id) {
    return Instruction(std::move(body), id.value);
  }
  static Computation computation(std::shared_ptr<ModuleBody> body, CompId id) {
    return Computation(std::move(body), id.value);
  }
  // Shares the value's bytes.
  static Array array(const hlo::Universe& u, const Value& v);
  static Recording recording(std::shared_ptr<RunBody> run);
  static Module adopt(const std::shared_ptr<UniverseBody>& universe, std::unique_ptr<hlo::Module> m,
                      bool of_2019 = false);
};

[[noreturn]] void refuse(ErrorKind kind, const std::string& message);

// An exception of a callback's on its way through code of ours: it comes out of the call as it went in.
struct Foreign {
  std::exception_ptr exception;
};

// Throws what a failed call is to throw, in the place of the exception at hand.
[[noreturn]] void rethrow_as_error();
// Throws where a Watch of this thread has ended the work of this call.
void check_ended();

// The entry of a call. Of calls within calls (out of callbacks) each is one.
template <class Body>
auto call(Body&& body) {
  try {
    if constexpr (std::is_void_v<decltype(body())>) {
      body();
      check_ended();
    } else {
      auto value = body();
      check_ended();
      return value;
    }
  } catch (...) {
    rethrow_as_error();
  }
}

// Guards; their constructors throw Error(usage) where another thread is at it.
class Reading {
 public:
  explicit Reading(UniverseBody& body);
  ~Reading();
  Reading(const Reading&) = delete;
  Reading& operator=(const Reading&) = delete;

 private:
  UniverseBody& body_;
};
class Working {
 public:
  explicit Working(UniverseBody& body);
  ~Working();
  Working(const Working&) = delete;
  Working& operator=(const Working&) = delete;

 private:
  UniverseBody& body_;
};
// Working, and the module is to be changed: not by a callback of a call that is about this module.
class Editing {
 public:
  explicit Editing(ModuleBody& body);

 private:
  Working working_;
};
// While a call holds ids of the module over callbacks.
class Busy {
 public:
  explicit Busy(ModuleBody& body) : body_(body) { ++body_.busy; }
  ~Busy() { --body_.busy; }
  Busy(const Busy&) = delete;
  Busy& operator=(const Busy&) = delete;

 private:
  ModuleBody& body_;
};

// Throws Error(usage) where the two are of different universes or modules.
void require_same(const UniverseBody& a, const UniverseBody& b);

Shape shape_of(const hlo::Universe& u, ShapeId id);

// Instructions and computations of HLO text into a module that is there (lines.cc). Throw Failure(kSyntax).
InstId add_line(ModuleBody& body, CompId into, std::string_view line);
CompId add_computation_text(ModuleBody& body, std::string_view text);
// The set of attributes and the metadata of `inst` with that one in it.
void set_attribute_text(ModuleBody& body, InstId inst, std::string_view key, std::string_view text);
// Invalid where there is none. Keeps ModuleBody::by_name.
InstId find_instruction(ModuleBody& body, std::string_view name);
std::vector<std::pair<std::string, std::string>> attribute_texts(const hlo::Module& m, InstId inst);

}  // namespace hlo::api
