// The command line as a function: what the program `hlo-replay` is.
#pragma once
#include "hlo/export.h"

HLO_API_BEGIN

// Runs one command as the program does and returns its exit code. It is a program's main and takes the process as its
// own: standard streams, signal handlers and the allocator's settings are set. Not for a process that does other
// things.
HLO_EXPORT int command_line(int argc, char** argv);

HLO_API_END
