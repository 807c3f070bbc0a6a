#include "replay/record/files/like_modules.h"

#include <algorithm>
#include <filesystem>
#include <map>

#include "ir/base/hash.h"
#include "ir/print/print.h"
#include "replay/os/confined_path.h"
#include "replay/os/files.h"
#include "replay/os/interrupt.h"
#include "replay/record/files/dump_names.h"
#include "replay/record/files/input.h"

namespace hlo {
namespace {

bool is_text(const std::string& file) { return file.ends_with(".txt") || file.ends_with(".hlo"); }

size_t defining_lines(std::string_view text) {
  size_t out = 0;
  for (size_t at = text.find(" = "); at != std::string_view::npos; at = text.find(" = ", at)) {
    ++out;
    at = std::min(text.find('\n', at), text.size());
  }
  return out;
}

// Another file may have values that the text elides, which then are part of the program.
bool has_values_elsewhere(const Recording& r, const std::string& file) {
  std::error_code error;
  const std::string proto = proto_beside(file);
  if (!proto.empty() && std::filesystem::exists(r.folder + "/" + proto, error)) return true;
  return std::any_of(r.other_files.begin(), r.other_files.end(),
                     [](const std::string& name) { return name.find("snapshot") != std::string::npos; });
}

// The module without its name, those of what it holds, ids and metadata. Nothing where it is like no other.
std::optional<uint64_t> without_names(const Recording& r, const std::string& file) {
  try {
    const std::unique_ptr<Module> m = load(confined_path(r.folder, file));
    if (!m->elided_constants().empty() && has_values_elsewhere(r, file)) return std::nullopt;
    PrintOptions options = PrintOptions::Canonical();
    options.metadata = options.stack_tables = false, options.large_constants = true;
    std::string text = print_module(*m, options);
    if (const std::string head = "HloModule " + std::string(m->name()); text.starts_with(head))
      text.erase(0, head.size());
    return hash_bytes(text);
  } catch (const Failure&) {
    if (interrupted()) throw;
    return std::nullopt;
  }
}

// What tells modules apart before anything is parsed.
std::string outline(const Recording& r, const OrderedModule& o) {
  std::string out = std::to_string(o.instructions);
  for (const StageRow& row : r.rows)
    if (is_text(row.file)) out += "\n" + row.name();
  return out;
}

}  // namespace

std::vector<OrderedModule> largest_first(const std::vector<Recording>& run) {
  std::vector<OrderedModule> out;
  std::map<std::string, std::vector<size_t>> outlines;  // to places in `run`
  for (size_t k = 0; k < run.size(); ++k) {
    OrderedModule o;
    o.module = k;
    for (const StageRow& row : run[k].rows)
      if (is_text(row.file) && o.stages++ == 0) {
        try {
          o.instructions = defining_lines(read_file(confined_path(run[k].folder, row.file)));
        } catch (const Failure&) {  // whoever judges it tells
          if (interrupted()) throw;
        }
      }
    outlines[outline(run[k], o)].push_back(k);
    out.push_back(o);
  }
  for (const auto& [text, alike] : outlines) {
    if (alike.size() < 2) continue;
    std::map<std::vector<uint64_t>, size_t> first;
    for (size_t k : alike) {
      std::vector<uint64_t> prints;
      bool known = out[k].stages > 1;
      for (const StageRow& row : run[k].rows) {
        if (!known) break;
        if (!is_text(row.file)) continue;
        const std::optional<uint64_t> print = without_names(run[k], row.file);
        known = print.has_value();
        if (print) prints.push_back(*print);
      }
      if (!known) continue;
      if (auto [at, fresh] = first.try_emplace(prints, k); !fresh) out[k].like = at->second;
    }
  }
  std::stable_sort(out.begin(), out.end(),
                   [](const OrderedModule& a, const OrderedModule& b) { return a.instructions > b.instructions; });
  return out;
}

}  // namespace hlo
