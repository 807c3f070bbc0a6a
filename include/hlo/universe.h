// What modules share: names, shapes, attributes and constants, each kept once.
#pragma once
#include <cstddef>
#include <memory>

#include "hlo/export.h"

HLO_API_BEGIN

// A handle; copies are the same universe. It lives as long as anything made in it.
//
// One thread at a time works on what lies in a universe, and several may read at once while nobody works. Calls that
// change or make something, verify, run or compare are work; asking instructions and printing are reading. A call
// that finds another thread at it throws Error(usage): nothing waits and nothing races. Other universes are not
// concerned: a thread that works by itself takes one of its own.
class HLO_EXPORT Universe {
 public:
  Universe();
  bool operator==(const Universe& other) const { return body_ == other.body_; }
  // How many there are: what a program that runs for long may watch, since nothing is ever taken out.
  size_t strings() const;
  size_t shapes() const;

 private:
  friend struct Access;
  std::shared_ptr<struct UniverseBody> body_;
};

HLO_API_END
