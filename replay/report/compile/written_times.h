// When XLA wrote the files of a dump, by the times that the files have or (--xla_dump_include_timestamp) their names.
// Copies have times of their own: they are told apart by the order in which XLA writes, and by the times of passes.
#pragma once
#include <string>
#include <vector>

#include "replay/record/recording/recording.h"

namespace hlo {

struct WrittenFile {
  std::string file;    // below the folder
  double seconds = 0;  // since the first stage was written
};

struct WrittenTimes {
  std::string why_not;             // why nothing is known; else empty
  double passes = 0;               // seconds from the first stage to the last one
  double behind = -1;              // from there to the last file that the compiler wrote; -1: it wrote none
  bool whole_seconds = false;      // the times are no finer: all of these are right to a second
  std::vector<WrittenFile> files;  // what it wrote behind the last stage, in order of time
};

// Of a folder that XLA dumped. Opens no file but the record of passes.
WrittenTimes written_times(const Recording& r);

}  // namespace hlo
