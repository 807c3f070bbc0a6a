// What long work is at, on a terminal: one line on standard error, from the second second on. A thread of its own
// paints it, so that a single long step shows, too. Elsewhere than on a terminal nothing is written.
#pragma once
#include <cstddef>
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
};

}  // namespace hlo
