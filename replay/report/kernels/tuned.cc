#include "replay/report/kernels/tuned.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <unordered_map>

#include "ir/query/source_lines.h"
#include "parser/proto/tuning_results.h"
#include "replay/os/confined_path.h"
#include "replay/os/files.h"
#include "replay/record/files/input.h"

namespace hlo {
namespace fs = std::filesystem;
namespace {

// The pipeline that asks the autotuner: `config-assigner` since 2026, `autotuner`, `gemm-fusion-autotuner` and the like
// before.
bool tunes(const StageRow& r) {
  return r.pipeline == "config-assigner" || r.pipeline.find("autotun") != std::string::npos ||
         r.pass.find("autotuner") != std::string::npos;
}

std::string base_backend(const std::string& backend) {
  return backend.ends_with("_FISSION") ? backend.substr(0, backend.size() - 8) : backend;
}

std::string value_text(const nlohmann::json& j) { return j.is_string() ? j.get<std::string>() : j.dump(); }

// Do both say the same, as far as both tell?
bool agree(const TuningConfig& file, const TuningConfig& module) {
  if (module.backend == "UNSPECIFIED_BACKEND" || file.backend == "UNSPECIFIED_BACKEND") return true;
  if (base_backend(file.backend) != base_backend(module.backend)) return false;
  for (const char* key :
       {"num_stages", "num_warps", "num_ctas", "is_tma_allowed", "algorithm", "algo_id", "block_k", "tuning_knobs"}) {
    auto a = file.settings.find(key), b = module.settings.find(key);
    if (a == file.settings.end() || b == module.settings.end()) continue;
    if (value_text(*a) != value_text(*b)) return false;
  }
  return file.kind != module.kind || file.tiles() == module.tiles();
}

// The array that a kernel writes: of a call with scratch its first.
ShapeId written(const Module& m, InstId i) {
  const Shape& s = m.shape(i);
  return s.is_tuple() && !s.elements.empty() && m.op(i) == Opcode::CustomCall ? s.elements[0] : m.shape_id(i);
}

// Kernels by name, in order.
std::vector<InstId> choosable(const Module& m) {
  std::vector<InstId> out;
  for (CompId c : m.nonfusion_computations())
    for (InstId i : m.live_order(c))
      if (kernel_choice(m, i)) out.push_back(i);
  return out;
}

// What stands in the place of fusions that were taken apart: the one new call that writes the same array for the same
// operation of the program, where no other is like it.
class Successors {
 public:
  Successors(const Module& before, const Module& after) : before_(before) {
    std::set<std::string, std::less<>> old;
    for (InstId i : choosable(before)) old.insert(std::string(before.inst_name(i)));
    for (InstId i : choosable(after)) {
      by_name_.emplace(after.inst_name(i), i);
      if (!old.contains(after.inst_name(i)) && after.op(i) == Opcode::CustomCall) new_[sign(after, i)].push_back(i);
    }
    for (InstId i : choosable(before))
      if (!by_name_.contains(std::string(before.inst_name(i)))) ++gone_[sign(before, i)];
  }
  // Not valid where it is not told.
  InstId of(InstId i) const {
    if (auto same = by_name_.find(std::string(before_.inst_name(i))); same != by_name_.end()) return same->second;
    const std::string signature = sign(before_, i);
    auto found = new_.find(signature);
    return found != new_.end() && found->second.size() == 1 && gone_.at(signature) == 1 ? found->second[0] : InstId();
  }

 private:
  static std::string sign(const Module& m, InstId i) {
    return m.u().shape_text(written(m, i)) + " " + op_name_of(m, i);
  }
  const Module& before_;
  std::map<std::string, InstId> by_name_;
  std::map<std::string, std::vector<InstId>> new_;
  std::map<std::string, size_t> gone_;
};

struct IndexedFile {
  const TuningResults* file;
  TuningIndex index;
};

void add_result(TunedKernel* k, const std::vector<IndexedFile>& files) {
  for (const IndexedFile& f : files) {
    const TuningChoice* c = f.index.of_key(k->key);
    if (!c) continue;
    k->result = c, k->file = f.file;
    if (!k->chosen)
      k->chosen = c->config;  // the module does not show where it went
    else
      k->agrees = agree(c->config, *k->chosen);
    return;
  }
}

}  // namespace

TunedModule tuned_module(const Module* before, const Module& after, const std::vector<TuningResults>& files) {
  TunedModule out;
  out.name = after.name();
  const Module& m = before ? *before : after;
  std::optional<Successors> successors;
  if (before) successors.emplace(*before, after);
  std::vector<IndexedFile> indexed;
  for (const TuningResults& f : files) indexed.push_back({&f, TuningIndex(f)});
  for (InstId i : choosable(m)) {
    TunedKernel k;
    k.name = m.inst_name(i), k.op_name = op_name_of(m, i);
    k.content = kernel_content_key(m, i), k.sum = kernel_sum(m, i);
    if (!before) {
      k.chosen = kernel_choice(m, i);
      out.kernels.push_back(std::move(k));
      continue;
    }
    k.key = tuning_key(m, i), k.before = kernel_choice(m, i);
    if (InstId now = successors->of(i); now.valid()) {
      k.chosen = kernel_choice(after, now);
      if (after.inst_name(now) != k.name) k.became = after.inst_name(now);
    }
    add_result(&k, indexed);
    out.kernels.push_back(std::move(k));
  }
  return out;
}

TunedModule tuned_module(const Recording& r, const std::vector<TuningResults>& files) {
  std::optional<size_t> first, last;
  bool own = false;
  for (size_t i = 0; i < r.rows.size(); ++i) {
    if (!tunes(r.rows[i])) continue;
    if (!first) first = i;
    // Behind its own pass; what converts tiles later hides those of the sum.
    if (!last || !own) last = i;
    if (const std::string& pass = r.rows[i].pass;
        pass == "config-assigner" || pass.find("autotuner") != std::string::npos)
      last = i, own = true;
  }
  std::string before_file, before_name;
  if (first) {
    // Its own start is the module in front of it; of another row, what the one before left.
    const size_t at = r.rows[*first].kind == StageRow::kPipelineStart || !*first ? *first : *first - 1;
    before_file = r.text_file(at), before_name = r.rows[at].name();
  }
  size_t end = last ? *last : r.rows.size() ? r.rows.size() - 1 : 0;
  for (size_t i = 0; i < r.rows.size(); ++i)
    if (!first && r.rows[i].next == "config_assignment" && !r.rows[i].file.empty())
      before_file = r.rows[i].file, before_name = r.rows[i].name();
  const std::string after_file = r.text_file(end);
  if (after_file.empty()) fail(FailureKind::kIo, "{}: no stage of it has a text", r.module_name);
  auto read = [&](const std::string& file) {
    ParseOptions o;
    o.file = r.folder + "/" + file;
    return parse_text(read_confined(r.folder, file), std::make_shared<Universe>(), o);
  };
  std::unique_ptr<Module> before;
  if (!before_file.empty()) before = read(before_file);
  const std::unique_ptr<Module> after = read(after_file);
  TunedModule out = tuned_module(before.get(), *after, files);
  out.stage = r.rows[end].name();
  if (before) out.before_stage = before_name;
  return out;
}

bool shows_tuning(const Recording& r) {
  return std::any_of(r.rows.begin(), r.rows.end(),
                     [](const StageRow& row) { return tunes(row) || row.next == "config_assignment"; });
}

std::vector<TunedInWords> choices_in_words(const std::string& folder, const std::vector<Recording>& modules,
                                           std::vector<std::string>* problems) {
  std::vector<TunedInWords> out;
  std::vector<TuningResults> files;
  bool looked = false;
  for (const Recording& r : modules) {
    if (!shows_tuning(r)) continue;
    if (!looked) files = tuning_files(folder, modules, problems), looked = true;
    TunedModule m;
    try {
      m = tuned_module(r, files);
    } catch (const Failure& e) {
      problems->emplace_back(e.what());
      continue;
    }
    for (const TunedKernel& k : m.kernels) {
      if (!k.chosen) continue;
      const std::string how = k.chosen->in_words();
      std::string line =
          fmt::format("{}: {}{}{} ({}", k.name, k.chosen->backend_in_words(), how.empty() ? "" : ": ", how, m.stage);
      if (k.result) line += fmt::format("; {}:{}{}", k.file->file, k.result->line, k.agrees ? "" : " says otherwise");
      if (!k.became.empty()) line += "; now " + k.became;
      out.push_back({k.name, k.became, line + ")"});
    }
  }
  return out;
}

std::vector<std::string> choice_in_words(const std::string& folder, const std::vector<Recording>& modules,
                                         const std::vector<std::string>& names) {
  std::vector<std::string> out, problems;
  auto named = [&](const std::string& name) {
    return !name.empty() && std::find(names.begin(), names.end(), name) != names.end();
  };
  for (const TunedInWords& k : choices_in_words(folder, modules, &problems))
    if (named(k.name) || named(k.became)) out.push_back(k.text);
  for (const std::string& p : problems) out.push_back("not readable: " + p);
  return out;
}

std::vector<TuningResults> tuning_files(const std::string& folder, const std::vector<Recording>& modules,
                                        std::vector<std::string>* problems) {
  std::vector<TuningResults> out;
  auto take = [&](const std::string& label, auto&& bytes) {
    try {
      TuningResults r = read_tuning_results(bytes(), label);
      if (!r.choices.empty()) out.push_back(std::move(r));
    } catch (const Failure& e) {
      problems->push_back(e.what());
    }
  };
  for (const Recording& r : modules)
    for (const std::string& file : r.other_files)
      if (file.ends_with("autotune_results.pbtxt") || file.ends_with("autotune_results.pb"))
        take(r.folder + "/" + file, [&] { return read_confined(r.folder, file); });
  auto likely = [](const std::string& path) {
    std::string begin(size_t{1} << 16, '\0');
    std::ifstream in(path, std::ios::binary);
    in.read(begin.data(), static_cast<std::streamsize>(begin.size()));
    begin.resize(static_cast<size_t>(std::max<std::streamsize>(0, in.gcount())));
    return looks_like_tuning_results(begin);
  };
  std::error_code error;
  fs::path where = fs::absolute(folder, error).lexically_normal();
  if (!where.has_filename()) where = where.parent_path();
  constexpr uintmax_t kLargest = uintmax_t{64} << 20;
  std::vector<std::string> beside;
  for (const auto& entry : fs::directory_iterator(where.parent_path(), error))
    if (entry.is_regular_file(error) && !entry.is_symlink(error) && entry.file_size(error) <= kLargest &&
        (entry.path().extension() == ".pbtxt" || entry.path().extension() == ".textproto"))
      beside.push_back(entry.path().string());
  std::sort(beside.begin(), beside.end());
  for (const std::string& path : beside)
    if (likely(path)) take(path, [&] { return read_file(path); });
  return out;
}

TuningResults tuning_of_run(const std::vector<TunedModule>& modules) {
  TuningResults out;
  std::set<std::string> known;
  for (const TunedModule& m : modules)
    for (const TunedKernel& k : m.kernels) {
      const std::optional<TuningConfig> config = k.result ? k.result->config : k.chosen;
      if (!config || config->backend == "UNSPECIFIED_BACKEND" || !known.insert(k.content).second) continue;
      TuningChoice& c = out.choices.emplace_back();
      c.key = k.key, c.content = k.content, c.config = *config;
      // A fusion that was taken apart: the module shows the call alone.
      if (!k.became.empty() && config->backend == "CUBLASLT") c.config.backend = "CUBLASLT_FISSION";
    }
  return out;
}

std::vector<std::pair<const TuningResults*, const TuningChoice*>> unused_choices(
    const std::vector<TuningResults>& files, const std::vector<TunedModule>& modules) {
  std::set<const TuningChoice*> used;
  for (const TunedModule& m : modules)
    for (const TunedKernel& k : m.kernels)
      if (k.result) used.insert(k.result);
  std::vector<std::pair<const TuningResults*, const TuningChoice*>> out;
  for (const TuningResults& f : files)
    for (const TuningChoice& c : f.choices)
      if (!used.contains(&c)) out.emplace_back(&f, &c);
  return out;
}

}  // namespace hlo
