#include "replay/report/kernels/emitted_kernels.h"

#include <algorithm>
#include <cctype>
#include <functional>

#include "ir/base/check.h"
#include "ir/base/checked.h"
#include "ir/eval/value.h"
#include "ir/leaves.h"
#include "ir/types/element_type.h"
#include "replay/os/confined_path.h"

namespace hlo {
namespace {

constexpr std::string_view kFinal = "gpu_after_optimizations.txt";

std::string with_shape_index(std::string_view name, const Dims& index) {
  return index.empty() ? std::string(name) : fmt::format("{}{{{}}}", name, fmt::join(index, ","));
}

// `module_0001.jit_f` of its final module's file, with what is before it.
std::string dump_prefix(const std::string& module_file) {
  const size_t end = module_file.rfind(".sm_");
  return module_file.substr(0, end == std::string::npos ? module_file.size() - kFinal.size() - 1 : end);
}

bool is_ptx_of(const std::string& file, const std::string& prefix) {
  if (!file.starts_with(prefix + ".") || !file.ends_with(".ptx")) return false;
  if (file.size() == prefix.size() + 4) return true;
  const std::string number = file.substr(prefix.size() + 1, file.size() - prefix.size() - 5);
  return number.find_first_not_of("0123456789") == std::string::npos;
}

// A kernel's own name for an instruction, where no metadata says whose it is.
std::string function_name(std::string_view instruction) {
  std::string out(instruction);
  for (char& c : out)
    if (!std::isalnum(static_cast<unsigned char>(c)) && c != '_') c = '_';
  return out;
}

class EmittedJoiner {
 public:
  EmittedJoiner(const Module& m, EmittedProgram& out) : m_(m), out_(out) {
    for (CompId c : m.computations())
      for (InstId i : m.live_order(c)) by_name_.emplace(m.inst_name(i), i);
    for (CompId c : m.nonfusion_computations())
      for (InstId i : m.live_order(c)) by_function_.emplace(function_name(m.inst_name(i)), i);
  }

  void add_ptx(const std::string& file, std::string text) {
    for (PtxEntry& e : read_ptx_entries(text)) {
      auto [at, fresh] = entries_.emplace(e.name, std::pair(file, e));
      if (!fresh) twice_.insert(e.name);
    }
    out_.ptx.emplace(file, std::move(text));
  }

  std::vector<EmittedThunk> join(const std::vector<ThunkLine>& lines, const std::map<int64_t, std::string>& names) {
    std::vector<EmittedThunk> list;
    for (const ThunkLine& line : lines) {
      EmittedThunk t;
      t.id = line.id, t.kind = line.kind, t.kernel = line.kernel;
      t.grid = line.grid, t.threads = line.threads, t.shared_bytes = line.shared_bytes;
      if (auto at = names.find(line.id); at != names.end()) t.instruction = at->second;
      if (auto at = by_name_.find(t.instruction); at != by_name_.end()) t.inst = at->second;
      if (!t.inst.valid() && t.instruction.empty() && t.is_kernel())
        if (auto at = by_function_.find(t.kernel); at != by_function_.end())
          t.inst = at->second, t.instruction = m_.inst_name(at->second);
      for (const auto& [label, inner] : line.nested) t.nested.push_back({label, join(inner, names)});
      if (t.is_kernel()) try {
          join_kernel(t);
        } catch (const Failure& e) {
          t.problem = e.what();
        }
      list.push_back(std::move(t));
    }
    return list;
  }

  void tell_unused() {
    for (const auto& [name, entry] : entries_)
      if (!used_.contains(name)) out_.unused.push_back(entry.first + ": " + name);
  }

 private:
  template <class... T>
  [[noreturn]] static void refuse(fmt::format_string<T...> f, T&&... args) {
    fail(FailureKind::kUnsupported, "{}", fmt::format(f, std::forward<T>(args)...));
  }

  void join_kernel(EmittedThunk& t) {
    auto at = entries_.find(t.kernel);
    if (at == entries_.end()) refuse("no PTX of the dump holds an entry {}", t.kernel);
    used_.insert(t.kernel);
    if (twice_.contains(t.kernel)) refuse("two PTX entries have the name {}", t.kernel);
    const PtxEntry& e = at->second.second;
    t.file = at->second.first, t.parameters = e.parameters;
    if (!e.whole) refuse("{} ends inside of {}: the file is cut", t.file, t.kernel);
    if (!t.inst.valid())
      refuse("{}", t.instruction.empty() ? fmt::format("the dump does not say whose kernel {} is", t.kernel)
                                         : fmt::format("{} has no instruction {}", out_.module_file, t.instruction));
    if (e.threads[0] && e.threads != t.threads)
      refuse("{} wants {} threads (.reqntid), the thunk launches {}", t.kernel, fmt::join(e.threads, "x"),
             fmt::join(t.threads, "x"));
    if (e.most_threads[0] &&
        t.threads[0] * t.threads[1] * t.threads[2] > e.most_threads[0] * e.most_threads[1] * e.most_threads[2])
      refuse("{} takes {} threads (.maxntid), the thunk launches {}", t.kernel, fmt::join(e.most_threads, "x"),
             fmt::join(t.threads, "x"));
    arguments(t);
  }

  // Operands, then the arrays of the result, in the order of XLA's KernelArguments; older emitters pass arrays that
  // share their bytes once.
  void arguments(EmittedThunk& t) {
    const Universe& u = m_.u();
    for (InstId o : m_.operands(t.inst)) {
      if (!u[m_.shape_id(o)].is_array())
        refuse("its operand {} is no array, but {}", m_.inst_name(o), u.shape_text(m_.shape_id(o)));
      t.arguments.push_back({static_cast<int>(t.arguments.size()), {}, m_.shape_id(o), out_.slices->of(o, {})});
    }
    each_leaf(u, m_.shape_id(t.inst), [&](const Dims& index, ShapeId leaf) {
      if (u[leaf].is_array()) t.arguments.push_back({-1, index, leaf, out_.slices->of(t.inst, index)});
    });
    if (t.arguments.size() != t.parameters.size()) {
      std::vector<EmittedArgument> once;
      for (const EmittedArgument& a : t.arguments)
        if (std::none_of(once.begin(), once.end(), [&](const EmittedArgument& b) { return a.slice == b.slice; }))
          once.push_back(a);
      if (once.size() != t.parameters.size())
        refuse(
            "{} has {} parameters, {} has {} operands and results: it is another module's, or takes what the dump "
            "does not record",
            t.kernel, t.parameters.size(), t.instruction, t.arguments.size());
      t.arguments = std::move(once);
    }
  }

  const Module& m_;
  EmittedProgram& out_;
  std::map<std::string, InstId, std::less<>> by_name_, by_function_;
  std::map<std::string, std::pair<std::string, PtxEntry>> entries_;
  std::set<std::string> twice_, used_;
};

std::string wanted_file(const Recording& r, const std::string& name) {
  bool missing = false;
  if (std::string why = why_not_confined(r.folder, name, &missing); !why.empty())
    fail(missing ? FailureKind::kUsage : FailureKind::kIo,
         "--kernels=dump: {}/{}: {}; it is written with --xla_dump_to next to the final module", r.folder, name, why);
  return read_confined(r.folder, name);
}

}  // namespace

// --- where arrays lie ---

XlaSlices::XlaSlices(const Module& m, BufferFile file, const std::string& label)
    : m_(m), file_(std::move(file)), label_(label) {
  std::set<int64_t> numbers;
  for (size_t k = 0; k < file_.allocations.size(); ++k) {
    const BufferFile::Part& a = file_.allocations[k];
    if (!numbers.insert(a.number).second) fail(FailureKind::kIo, "{}: two allocations {}", label, a.number);
    for (const BufferFile::Value& v : a.values) {
      if (v.offset > a.size || v.size > a.size - v.offset)
        fail(FailureKind::kIo, "{}: {} ({} bytes at {}) leaves allocation {}, which has {}", label,
             with_shape_index(v.instruction, v.index), v.size, v.offset, a.number, a.size);
      if (!places_.emplace(std::pair(v.instruction, v.index), XlaSlice{k, v.offset, v.size}).second)
        fail(FailureKind::kIo, "{}: {} is there twice", label, with_shape_index(v.instruction, v.index));
    }
  }
  for (CompId c : m.nonfusion_computations())
    for (InstId i : m.live_order(c))
      for (CompId called : m.called(i)) callers_.emplace(called, i);
}

std::optional<XlaSlice> XlaSlices::found(InstId i, Dims index) const {
  // Every step goes to an operand or a caller; a module has no more of them than instructions.
  for (size_t steps = 0; steps < 100000; ++steps) {
    if (auto at = places_.find({std::string(m_.inst_name(i)), index}); at != places_.end()) return at->second;
    const auto operands = m_.operands(i);
    switch (m_.op(i)) {
      case Opcode::Bitcast:
      case Opcode::While:
      case Opcode::OptBarrier:
      case Opcode::AddDependency:
      case Opcode::Domain:
        i = operands[0];
        break;
      case Opcode::GetTupleElement:
        index.insert(index.begin(), m_.attrs(i).integer(Attr::index));
        i = operands[0];
        break;
      case Opcode::Tuple:
        if (index.empty() || index[0] < 0 || static_cast<size_t>(index[0]) >= operands.size()) return std::nullopt;
        i = operands[static_cast<size_t>(index[0])];
        index.erase(index.begin());
        break;
      case Opcode::Parameter: {
        auto caller = callers_.find(m_.parent(i));
        if (caller == callers_.end()) return std::nullopt;
        const auto given = m_.operands(caller->second);
        const int64_t n = m_.parameter_number(i);
        const bool branch = m_.op(caller->second) == Opcode::Conditional;
        if (!branch && m_.op(caller->second) != Opcode::While && m_.op(caller->second) != Opcode::Call)
          return std::nullopt;
        size_t which = static_cast<size_t>(n);
        if (branch) {
          const auto called = m_.called(caller->second);
          which = static_cast<size_t>(std::find(called.begin(), called.end(), m_.parent(i)) - called.begin()) + 1;
        }
        if (which >= given.size()) return std::nullopt;
        i = given[which];
        break;
      }
      case Opcode::Call:
      case Opcode::Conditional:
        if (m_.called(i).empty()) return std::nullopt;
        i = m_.comp(m_.called(i)[0]).root;
        break;
      default:
        return std::nullopt;
    }
  }
  return std::nullopt;
}

XlaSlice XlaSlices::of(InstId i, const Dims& index) const {
  ShapeId shape = m_.shape_id(i);
  for (int64_t k : index) shape = m_.u()[shape].elements[static_cast<size_t>(k)];
  const Shape& s = m_.u()[shape];
  const std::string name = with_shape_index(m_.inst_name(i), index);
  std::optional<XlaSlice> at = found(i, index);
  if (!at) fail(FailureKind::kUnsupported, "{} has no place for {}", label_, name);
  if (type_bits(s.type) < 8 && s.type != ElementType::Pred)
    fail(FailureKind::kUnsupported, "{} has elements of less than a byte", name);
  const Checked bytes = array_bytes(s);
  if (!bytes.fits() || bytes.capped() > at->size)
    fail(FailureKind::kUnsupported, "{} gives {} {} bytes, {} takes {}", label_, name, at->size,
         m_.u().shape_text(shape), bytes.capped());
  return {at->allocation, at->offset, bytes.capped()};
}

// --- the dump ---

std::string emitted_module_file(const Recording& r) {
  for (const StageRow& row : r.rows)
    if (row.file.ends_with(kFinal)) return row.file;
  fail(FailureKind::kUsage, "{} holds no …{} of module {}: --kernels=dump wants a GPU's final module", r.folder, kFinal,
       r.module_name);
}

EmittedProgram read_emitted(const Recording& r, const std::string& module_file, const Module& m) {
  const std::string prefix = dump_prefix(module_file);
  EmittedProgram out;
  out.folder = r.folder, out.module_file = module_file;
  const std::string buffers = module_file.substr(0, module_file.size() - 4) + "-buffer-assignment.txt";
  out.slices = std::make_unique<XlaSlices>(m, read_buffer_file(wanted_file(r, buffers), buffers), buffers);
  EmittedJoiner joiner(m, out);
  for (const std::string& f : r.other_files)
    if (is_ptx_of(f, prefix)) joiner.add_ptx(f, read_confined(r.folder, f));
  if (out.ptx.empty())
    fail(FailureKind::kUsage,
         "--kernels=dump: {} holds no {}.ptx or {}.N.ptx: XLA writes them with "
         "--xla_dump_emitter_re=.* (older releases: --xla_gpu_dump_llvmir, --xla_dump_hlo_as_text)",
         r.folder, prefix, prefix);
  std::string sequence = prefix + ".thunk_sequence_after_thunk_passes.txt";
  if (!why_not_confined(r.folder, sequence).empty()) sequence = prefix + ".thunk_sequence.txt";
  const std::vector<ThunkLine> lines = read_thunk_file(wanted_file(r, sequence), sequence);
  const std::string metadata = prefix + ".thunk_metadata.txt";
  std::map<int64_t, std::string> names;
  bool missing = false;
  if (why_not_confined(r.folder, metadata, &missing).empty() || !missing)
    names = read_thunk_metadata(wanted_file(r, metadata), metadata);
  out.thunks = joiner.join(lines, names);
  joiner.tell_unused();
  return out;
}

}  // namespace hlo
