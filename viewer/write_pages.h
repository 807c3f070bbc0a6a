// The pages of a recording: its stages in the formats that are asked for, and the index that steps through them.
#pragma once
#include <set>
#include <string>

#include "replay/files.h"
#include "replay/record/recording.h"

namespace hlo {

struct Pages {
  Recording recording;  // as it was written: rows without what could not be read
  bool page = false;    // an index.html
};

// The pages of one module, into a folder that the caller commits. `formats` of text, dot, page, html, svg, png; `hint`:
// how to get drawings. Throws Failure: kUsage where it is interrupted.
Pages write_pages(const Recording& given, const std::set<std::string>& formats, const std::string& hint,
                  OutputFolder& out);

}  // namespace hlo
