// Commands over files that are no modules.
#pragma once
#include <string>

#include "replay/cli/command.h"
#include "replay/record/files/file_kind.h"

namespace hlo {

// Two files of one kind that are no modules: LLVM IR and PTX whatever their names are, GraphDefs node by node, other
// texts line by line. False where they may be modules. Throws where they are of different kinds.
bool diff_other_files(const DiffArgs& a, int* code);

// A GraphDef or a .dot to .dot, .svg or .png; false where `in` is neither.
bool convert_graph(const std::string& in, const std::string& out);

// A folder of GraphDefs as TensorFlow dumps them, each held against the one before it; false where it holds none.
bool open_graph_folder(const std::string& folder, bool json);

// A folder of files that hold modules (replay/record/files/held_modules.h), each with its modules; false where it holds
// none.
bool open_held_folder(const std::string& folder, bool json);

}  // namespace hlo
