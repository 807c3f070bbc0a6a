// Recordings of folders that other programs wrote.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "replay/record/recording/recording.h"

namespace hlo {

// The regular files of a dump folder; those that lead elsewhere, or that nobody can read, into `problems`.
std::vector<std::string> files_of(const std::string& folder, std::vector<std::string>* problems);

// Stages under XLA's file names; empty where there are none.
std::vector<Recording> open_xla(const std::string& folder);

// Which pass changed how much: by its lineage. Nothing for recordings of ours, which have the
// counts.
void count_changes(Recording* recording);

// What TensorFlow wrote in 2018: hlo_graph_0.dot, hlo_graph_1.dot …, and on its console which is which:
// `computation cluster_0[…].v82 [CPU: after inline, before algsimp]: /tmp/hlo_graph_3.dot`. Graphs only, no texts.
std::vector<Recording> open_graphs(const std::string& folder);

// Reads the texts of a recording's stages and matches each with the one before; fills in the rows' `stage` and counts,
// and what could not be read into `problems`. Throws Failure(kIo) where no stage can be read, kUsage when interrupted.
std::shared_ptr<Lineage> import_stages(Recording& recording);

}  // namespace hlo
