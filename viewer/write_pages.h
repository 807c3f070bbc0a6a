// A folder of a recording: its stages in the formats that are asked for, and the page of all beside them.
#pragma once
#include <set>
#include <string>

#include "replay/os/files.h"
#include "replay/record/recording/recording.h"

namespace hlo {

struct Pages {
  Recording recording;  // as it was written: rows without what could not be read
  bool page = false;    // an index.html
};

// The files of one module, into a folder that the caller commits. `formats` of text, dot, page, html, svg, png; page
// and html: index.html. Throws Failure: kUsage where it is interrupted.
Pages write_pages(const Recording& given, const std::set<std::string>& formats, OutputFolder& out);

}  // namespace hlo
