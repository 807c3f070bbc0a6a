#include "replay/judge/arguments/session.h"

#include <algorithm>
#include <map>

#include "ir/eval/widen.h"
#include "ir/program/buffer.h"
#include "replay/compare/shards.h"
#include "replay/judge/arguments/fit.h"
#include "replay/judge/arguments/npz.h"
#include "replay/os/files.h"
#include "replay/os/progress.h"

namespace hlo {
namespace {

// Arrays p0, p1 … in the place of arguments; what the file leaves out stays as it is, other names are not ours.
void take_arrays(const Universe& u, std::vector<Value>& arguments, const std::string& path) {
  std::map<std::string, NamedArray> given;
  std::vector<ShapeId> leaves;
  for (const Value& v : arguments) leaf_shapes(u, v.shape, leaves);
  for (NamedArray& array : read_npz(path, bytes_of_leaves(u, leaves, 'p'))) given[array.name] = std::move(array);
  size_t leaf = 0, taken = 0;
  auto replace = [&](auto&& self, Value& v) -> void {
    if (u[v.shape].is_tuple()) {
      for (Value& e : v.elements) self(self, e);
      return;
    }
    auto found = given.find(fmt::format("p{}", leaf++));
    if (found == given.end()) return;
    v = from_array(u, found->second, v.shape);
    given.erase(found);
    ++taken;
  };
  for (Value& v : arguments) replace(replace, v);
  for (const auto& [name, array] : given)
    if (name.size() > 1 && name[0] == 'p' && name.find_first_not_of("0123456789", 1) == std::string::npos)
      fail(FailureKind::kUsage, "{} holds an array {}, the module's parameters have {} leaves: p0 … p{}", path, name,
           leaf, leaf - 1);
  if (!taken && leaf) fail(FailureKind::kUsage, "{} holds none of the arrays p0 … p{}", path, leaf - 1);
}

}  // namespace

Session::Session(const Module& shapes, const InputOptions& o) : u_(shapes.u()), keep_(shapes.universe()) {
  check_memory(shapes);
  arguments_ = o.given.empty() ? seeded_arguments(shapes, o.seed, o.positive) : o.given;
  // A snapshot brings its own inputs.
  if (o.file.empty() && !o.snapshot.empty()) {
    if (o.snapshot.size() != arguments_.size())
      fail(FailureKind::kUsage, "{}: the snapshot holds {} arguments for {} parameters", o.label, o.snapshot.size(),
           arguments_.size());
    for (size_t i = 0; i < arguments_.size(); ++i) {
      ShapeId given = u_[o.snapshot[i]].shape;
      if (!u_.compatible(given, arguments_[i].shape))
        fail(FailureKind::kUsage, "{}: argument {} of the snapshot is a {}, the parameter a {}", o.label, i,
             u_.shape_text_plain(given), u_.shape_text_plain(arguments_[i].shape));
      arguments_[i] = value_of_literal(u_, o.snapshot[i]);
    }
  }
  if (o.file.ends_with(".npz") || o.file.ends_with(".npy"))
    take_arrays(u_, arguments_, o.file);
  else if (!o.file.empty())
    arguments_ = literal_arguments(shapes, read_file(o.file), o.file);
  if (o.fit) fit_arguments(shapes, o.unique_keys, &arguments_);
  result_shape_ = shapes.shape_id(shapes.comp(shapes.entry()).root);
  take_shardings(shapes);
}

bool Session::take_shardings(const Module& stage) {
  const Computation& entry = stage.comp(stage.entry());
  if (entry.params.size() != arguments_.size() || !u_.compatible(stage.shape_id(entry.root), result_shape_))
    return false;
  for (size_t k = 0; k < entry.params.size(); ++k)
    if (!u_.compatible(stage.shape_id(entry.params[k]), arguments_[k].shape)) return false;
  shardings_.resize(entry.params.size());
  auto take = [&](InstId i, std::string* into) {
    const std::string_view told = u_.text(stage.attrs(i).text(Attr::sharding));
    if (!told.empty()) *into = told;
  };
  for (size_t k = 0; k < entry.params.size(); ++k) take(entry.params[k], &shardings_[k]);
  take(entry.root, &output_sharding_);
  return true;
}

std::string_view Session::sharding_of(const Module& m, size_t parameter) const {
  const std::string_view own = u_.text(m.attrs(m.comp(m.entry()).params[parameter]).text(Attr::sharding));
  return own.empty() && parameter < shardings_.size() ? shardings_[parameter] : own;
}

std::string_view Session::result_sharding(const Module& m) const {
  const std::string_view own = u_.text(m.attrs(m.comp(m.entry()).root).text(Attr::sharding));
  return own.empty() ? output_sharding_ : own;
}

Value Session::run(const Module& m, const ExecutorInfo& executor, const EvalOptions& options, int repeat, bool high,
                   Execution* times) const {
  const Computation& entry = m.comp(m.entry());
  if (entry.params.size() != arguments_.size())
    fail(FailureKind::kUsage, "the module takes {} arguments, {} were given", entry.params.size(), arguments_.size());
  int64_t devices = devices_needed(m);
  // After partitioning, parameters are shares of what they were, even where nobody talks to anybody.
  for (size_t i = 0; i < arguments_.size(); ++i)
    if (!u_.compatible(m.shape_id(entry.params[i]), arguments_[i].shape)) devices = std::max(devices, device_count(m));
  if (devices > kMostDevices)
    fail(FailureKind::kUnsupported, "the module runs on {} devices, at most {} are simulated", devices, kMostDevices);
  std::vector<std::vector<Value>> each(static_cast<size_t>(devices));
  for (size_t i = 0; i < arguments_.size(); ++i) {
    ShapeId local = m.shape_id(entry.params[i]);
    bool same = u_.compatible(local, arguments_[i].shape);
    for (int64_t d = 0; d < devices; ++d) {
      int64_t partition = d % std::max<int64_t>(m.config().num_partitions, 1);
      each[static_cast<size_t>(d)].push_back(same ? arguments_[i]
                                                  : shard_of(u_, arguments_[i], local, sharding_of(m, i), partition));
    }
  }
  std::unique_ptr<Module> wide;
  if (high) {
    wide = widened_module(m);
    for (auto& list : each)
      for (Value& v : list) v = widened_value(u_, v);
  }
  Progress progress(fmt::format("running {}, {} instructions", m.name(), m.instruction_count()));
  Execution e = executor.run(wide ? *wide : m, each, repeat, options);
  if (times)
    times->compile_s = e.compile_s, times->run_s = e.run_s, times->compiled = e.compiled, times->notes = e.notes;
  if (e.results.size() == 1) return std::move(e.results[0]);
  // Replicas hold the same; the partitions' shares make the whole.
  e.results.resize(static_cast<size_t>(std::max<int64_t>(m.config().num_partitions, 1)));
  ShapeId whole = high ? widened_shape(u_, result_shape_) : result_shape_;
  return assembled(u_, e.results, whole, result_sharding(m));
}

void take_shardings(Session* session, const Module& first, size_t stages,
                    const std::function<std::unique_ptr<Module>(size_t)>& load) {
  if (first.config().num_partitions < 2) return;
  for (size_t k = 1; k < stages; ++k) {
    try {
      if (!session->take_shardings(*load(k))) return;
    } catch (const Failure&) {  // who judges it says so
    }
  }
}

}  // namespace hlo
