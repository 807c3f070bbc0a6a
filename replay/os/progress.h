// What long work is at, on a terminal: one line on standard error, from the second second on. A thread of its own
// paints it, so that a single long step shows, too. Elsewhere than on a terminal nothing is written, and nothing by
// programs that have not asked for it.
#pragma once
#include <cstddef>
#include <functional>
#include <string>
#include <string_view>

namespace hlo {

class Progress {
 public:
  // In words: `reading model.hlo`. Lasts as long as the object; of several the outermost shows, with the innermost's
  // words.
  explicit Progress(std::string what);
  ~Progress();  // takes the line away
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;
  // `all` 0: nobody knows how many. `detail`: what is at hand.
  void at(size_t done, size_t all, std::string_view detail = {});
  // Takes the line away before something is printed; it comes back by itself.
  static void clear();
  // Once, in the command line: from now on a terminal shows it.
  static void show();

 private:
  std::string what_;
};

// While one lives, it hears of what this thread is at; of several the innermost alone.
class ProgressSink {
 public:
  using Hear = std::function<void(std::string_view what, size_t done, size_t all)>;
  explicit ProgressSink(Hear hear);
  ~ProgressSink();
  ProgressSink(const ProgressSink&) = delete;
  ProgressSink& operator=(const ProgressSink&) = delete;

 private:
  friend class Progress;
  Hear hear_;
  ProgressSink* outer_;
};

}  // namespace hlo
