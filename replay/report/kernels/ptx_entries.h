// The kernels of a PTX text (what XLA dumps as .ptx): their names, parameters and what they say of their launch. The
// code itself is the driver's.
#pragma once
#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "ir/types/shape.h"

namespace hlo {

struct PtxEntry {
  struct Parameter {
    int64_t bytes = 0, align = 1;
    bool pointer = false;  // eight bytes that are no array
  };
  std::string name;
  std::vector<Parameter> parameters;
  std::array<int64_t, 3> threads{};       // .reqntid; nought where it says nothing
  std::array<int64_t, 3> most_threads{};  // .maxntid
  bool whole = false;                     // its body ends in this text
  size_t line = 0;
  int64_t block() const;  // threads, at most; 0 where it does not say
};

// All of a text, in order; a text without any has none. Never throws: what is no PTX has no entries, and parameters
// that cannot be read have no bytes.
std::vector<PtxEntry> read_ptx_entries(std::string_view text);

}  // namespace hlo
