// Being told how far long work is, and ending it.
#pragma once
#include <cstddef>
#include <functional>
#include <memory>
#include <string_view>

#include "hlo/export.h"

HLO_API_BEGIN

struct Progress {
  std::string_view what;     // in words: `reading model.hlo`; valid during the call
  size_t done = 0, all = 0;  // all 0: nobody knows how many
};

// While one lives, long work of the library on this thread asks `callback` from time to time, on this thread: false
// ends the work with Error(interrupted), an exception ends it and comes out of the call as it is. What the call would
// have changed or written is then left as it was before, but for a module that a pass was changing (its documentation
// says so). Of several the innermost is asked. Not to be handed to another thread.
class HLO_EXPORT Watch {
 public:
  // `seconds`: the least time between two calls; 0: as often as there is an occasion.
  explicit Watch(std::function<bool(const Progress&)> callback, double seconds = 0.05);
  ~Watch();
  Watch(const Watch&) = delete;
  Watch& operator=(const Watch&) = delete;

 private:
  std::unique_ptr<struct WatchBody> body_;
};

HLO_API_END
