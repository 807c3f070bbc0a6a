// Arguments of a module for a run by an installed XLA.
#pragma once
#include <string>

#include "replay/installed/ask.h"
#include "replay/judge/arguments/session.h"

namespace hlo {

// The session's arguments as an .npz below `scratch`, and their types, which the question names.
void write_arguments(const Module& m, const Session& session, XlaQuestion& q, const std::string& scratch);

}  // namespace hlo
