#include "replay/judge/arguments/own_constants.h"

#include <algorithm>
#include <filesystem>

#include "ir/types/literal.h"
#include "replay/os/confined_path.h"
#include "replay/os/interrupt.h"
#include "replay/record/files/dump_names.h"
#include "replay/record/files/input.h"
#include "replay/record/files/run.h"

namespace hlo {
namespace fs = std::filesystem;
namespace {

constexpr size_t kMostSnapshots = 4;  // those of further runs have the same constants

bool same_type_and_dims(const Shape& a, const Shape& b) {
  return a.is_array() && b.is_array() && a.type == b.type && a.dims == b.dims;
}

bool is_snapshot(const std::string& name) {
  return name.find("snapshot") != std::string::npos &&
         (name.ends_with(".pb") || name.ends_with(".pb.gz") || name.ends_with(".pbtxt") || name.ends_with(".txt"));
}

// Snapshots of a module by its number, which XLA's files begin with.
std::vector<std::string> snapshots_of(const std::string& folder, int module) {
  std::vector<std::string> out;
  std::error_code error;
  for (fs::directory_iterator at(folder, error), end; !error && at != end; at.increment(error)) {
    const std::string name = at->path().filename().string();
    DumpName parsed;
    if (is_snapshot(name) && parse_name(name, &parsed) && parsed.module == module) out.push_back(name);
  }
  std::sort(out.begin(), out.end());
  if (out.size() > kMostSnapshots) out.resize(kMostSnapshots);
  return out;
}

}  // namespace

void OwnConstants::read(const std::string& folder, const std::string& file) {
  if (!read_.insert(file).second) return;
  std::unique_ptr<Module> m;
  try {
    LoadOptions options;
    options.universe = universe_;
    m = load(confined_path(folder, file), options);
  } catch (const Failure& e) {
    if (interrupted()) throw;
    const std::string what = e.what();
    problems_.push_back(file + ": " + what.substr(0, what.find('\n')));
    return;
  }
  for (CompId c : m->computations())
    for (InstId i : m->live_order(c)) {
      if (m->op(i) != Opcode::Constant || m->literal(i).elided || !m->shape(i).is_array()) continue;
      Known k{value_of_literal(m->u(), m->literal_id(i)), file, false};
      auto [at, fresh] = known_.try_emplace(std::string(m->inst_name(i)), k);
      if (fresh) continue;
      const Value& other = at->second.value;
      const bool alike = same_type_and_dims(m->u()[other.shape], m->shape(i)) && other.data && k.value.data &&
                         *other.data == *k.value.data;
      at->second.doubtful |= !alike;
    }
}

bool OwnConstants::knows_all(const Module& wanted) const {
  const std::vector<InstId> elided = wanted.elided_constants();
  return std::all_of(elided.begin(), elided.end(),
                     [&](InstId i) { return known_.find(wanted.inst_name(i)) != known_.end(); });
}

void OwnConstants::read_dump(const std::string& folder, const std::vector<std::string>& texts, const Module& wanted) {
  std::error_code error;
  for (const std::string& text : texts) {
    if (knows_all(wanted)) return;
    const std::string proto = proto_beside(text);
    if (!proto.empty() && fs::is_regular_file(fs::path(folder) / proto, error)) read(folder, proto);
  }
  DumpName module;
  if (texts.empty() || !parse_name(texts[0], &module)) return;
  for (const std::string& snapshot : snapshots_of(folder, module.module)) {
    if (knows_all(wanted)) return;
    read(folder, snapshot);
  }
}

const Value* OwnConstants::find(const Module& m, InstId constant) {
  auto at = known_.find(m.inst_name(constant));
  if (at == known_.end() || at->second.doubtful ||
      !same_type_and_dims(m.u()[at->second.value.shape], m.shape(constant)))
    return nullptr;
  if (std::find(used_.begin(), used_.end(), at->second.file) == used_.end()) used_.push_back(at->second.file);
  return &at->second.value;
}

std::string take_own_values(Module& m, const std::string& spec) {
  if (spec.empty() || m.elided_constants().empty()) return {};
  size_t taken = 0;
  OwnConstants own(m.universe());
  std::optional<StageChoice> stage;
  try {
    stage = stage_of(spec);
  } catch (const Failure&) {  // a file whose name looks like a stage's
    if (interrupted()) throw;
  }
  if (stage) {
    const Recording& r = stage->module;
    std::vector<std::string> texts{stage->file};  // its own first
    for (size_t k = 0; k < r.rows.size(); ++k)
      if (const std::string& text = r.rows[k].file; !text.empty() && text != stage->file) texts.push_back(text);
    own.read_dump(r.folder, texts, m);
    // The first text may have what later ones elide, as it stands.
    if (!own.knows_all(m) && !r.rows.empty() && r.rows[0].file != stage->file && r.rows[0].file.ends_with(".txt"))
      own.read(r.folder, r.rows[0].file);
  } else if (const fs::path path(spec); !proto_beside(path.filename().string()).empty()) {
    const std::string folder = path.has_parent_path() ? path.parent_path().string() : ".";
    own.read_dump(folder, {path.filename().string()}, m);
  }
  for (InstId i : m.elided_constants())
    if (const Value* known = own.find(m, i)) {
      Value v = *known;
      v.shape = m.shape_id(i);
      m.set_literal(i, m.u().literal(literal_of_value(m.u(), v)));
      ++taken;
    }
  std::string out;
  if (taken)
    out = fmt::format("{} elided constant{} ({{...}}) of {} {} own value{}, from {}", taken, taken == 1 ? "" : "s",
                      spec, taken == 1 ? "has its" : "have their", taken == 1 ? "" : "s", fmt::join(own.files(), ", "));
  for (const std::string& p : own.problems()) out += (out.empty() ? "" : "; ") + p;
  return out;
}

}  // namespace hlo
