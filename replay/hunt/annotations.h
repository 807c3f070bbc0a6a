// Annotations that the device goes by, held against what the module says: counters and trips of loops, places of
// slices.
#pragma once
#include <string>
#include <vector>

#include "ir/module.h"

namespace hlo {

struct WrongAnnotation {
  InstId inst;
  std::string words;  // `known_trip_count says n 7, the module makes it 8`
};

struct Annotations {
  std::vector<WrongAnnotation> wrong;
  size_t checked = 0, not_checked = 0;  // numbers of the annotations
};

// As XLA's while_loop_trip_count_annotator.cc and dynamic_slice_annotator.cc make them. What cannot be told of the
// module alone is not checked.
Annotations check_annotations(const Module& m);

}  // namespace hlo
