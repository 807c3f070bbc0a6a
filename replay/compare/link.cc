#include "replay/compare/link.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <unordered_map>

#include "ir/print/print.h"
#include "ir/sharding/aliasing.h"
#include "replay/compare/graphdef.h"

namespace hlo {
namespace {

// Pairs of leaves of one shape that are looked at for two modules; above it only their diagonals' starts matter and the
// pair is left out with a note.
constexpr size_t kMostPairs = 4'000'000;

// `state.params['dense1']['kernel']` → state params dense1 kernel.
std::vector<std::string> path_of(const std::string& name) {
  std::vector<std::string> out;
  std::string part;
  auto flush = [&] {
    if (!part.empty()) out.push_back(part);
    part.clear();
  };
  for (char c : name) {
    if (isalnum(static_cast<unsigned char>(c)) || c == '_')
      part += c;
    else
      flush();
  }
  flush();
  return out;
}

// The share of the longer path that both end in; nearly all where the shorter one is the end of the longer.
double similarity(const std::vector<std::string>& a, const std::vector<std::string>& b) {
  if (a.empty() || b.empty()) return 0;
  size_t n = 0;
  while (n < a.size() && n < b.size() && a[a.size() - 1 - n] == b[b.size() - 1 - n]) ++n;
  double share = static_cast<double>(n) / static_cast<double>(std::max(a.size(), b.size()));
  return n >= 2 && n == std::min(a.size(), b.size()) ? std::max(share, 0.95) : share;
}

bool generic(const std::string& name) {
  // arg0.1, Arg_0.1, p0, param_0.3, parameter.5, XLA_Args and the like tell nothing.
  std::string low;
  for (char c : name) {
    if (isalpha(static_cast<unsigned char>(c)))
      low += static_cast<char>(tolower(c));
    else if (!isdigit(static_cast<unsigned char>(c)) && std::string_view("_.[]").find(c) == std::string_view::npos)
      return false;
  }
  if (name.find('[') != std::string::npos) return low == "args" || low == "arg";
  static const std::set<std::string> kWords = {"",       "arg",       "args",    "p",          "param",
                                               "params", "parameter", "xlaargs", "xlaretvals", "input"};
  return kWords.contains(low);
}

void leaves_of(const Universe& u, ShapeId shape, Dims index, size_t number, std::vector<LinkLeaf>& out) {
  if (u[shape].is_tuple()) {
    for (size_t k = 0; k < u[shape].elements.size(); ++k) {
      Dims inner = index;
      inner.push_back(static_cast<int64_t>(k));
      leaves_of(u, u[shape].elements[k], inner, number, out);
    }
    return;
  }
  LinkLeaf leaf;
  leaf.shape = shape, leaf.index = std::move(index), leaf.parameter = number;
  out.push_back(std::move(leaf));
}

void literal_leaves(const Universe& u, LitId lit, std::vector<LinkLeaf>& leaves, size_t& at) {
  if (!lit.valid()) return;
  const Literal& l = u[lit];
  if (l.elided) return;
  if (!l.elements.empty()) {
    for (LitId e : l.elements) literal_leaves(u, e, leaves, at);
    return;
  }
  if (at < leaves.size()) leaves[at++].bytes = l.bytes;
}

Links::Leaves read_leaves(const LinkModule& lm) {
  const Module& m = *lm.module;
  const Universe& u = m.u();
  Links::Leaves out;
  const auto& params = m.comp(m.entry()).params;
  for (size_t k = 0; k < params.size(); ++k) {
    size_t first = out.parameters.size();
    leaves_of(u, m.shape_id(params[k]), {}, k, out.parameters);
    const Metadata& d = u[m[params[k]].meta];
    std::string name = d.op_name == StrId::kNone ? "" : std::string(u.text(StrId(d.op_name)));
    if (name.empty() || generic(name))
      name = generic(std::string(m.inst_name(params[k]))) ? "" : m.inst_name(params[k]);
    // jax escapes quotes of keys.
    std::erase(name, '\\');
    StrId sharding = m.attrs(params[k]).text(Attr::sharding);
    for (size_t l = first; l < out.parameters.size(); ++l) {
      LinkLeaf& leaf = out.parameters[l];
      leaf.name = name, leaf.path = path_of(name);
      for (int64_t i : leaf.index)
        if (!name.empty()) leaf.path.push_back(std::to_string(i));
      if (sharding.valid() && out.parameters.size() - first == 1) leaf.sharding = u.text(sharding);
    }
    if (k < lm.arguments.size()) {
      size_t at = first;
      literal_leaves(u, lm.arguments[k], out.parameters, at);
    }
  }
  InstId root = m.comp(m.entry()).root;
  leaves_of(u, m.shape_id(root), {}, 0, out.results);
  size_t at = 0;
  literal_leaves(u, lm.result, out.results, at);
  return out;
}

size_t leaf_at(const std::vector<LinkLeaf>& leaves, size_t parameter, const Dims& index) {
  for (size_t k = 0; k < leaves.size(); ++k)
    if (leaves[k].parameter == parameter && leaves[k].index == index) return k;
  return SIZE_MAX;
}

// Results that the module itself tells about: parameters handed through, buffers that are updated in place.
void name_results(const LinkModule& lm, Links::Leaves& l, std::map<size_t, size_t>& aliased) {
  const Module& m = *lm.module;
  auto take = [&](size_t result, size_t parameter) {
    if (result == SIZE_MAX || parameter == SIZE_MAX) return;
    if (l.results[result].name.empty())
      l.results[result].name = l.parameters[parameter].name, l.results[result].path = l.parameters[parameter].path;
  };
  for (const AliasEntry& e : parse_aliases(m.config().input_output_alias)) {
    if (e.number < 0) continue;
    size_t result = leaf_at(l.results, 0, e.output),
           parameter = leaf_at(l.parameters, static_cast<size_t>(e.number), e.index);
    if (result == SIZE_MAX || parameter == SIZE_MAX) continue;
    aliased[result] = parameter;
    take(result, parameter);
  }
  InstId root = m.comp(m.entry()).root;
  auto through = [&](InstId value, const Dims& index) {
    if (m.op(value) == Opcode::Parameter)
      take(leaf_at(l.results, 0, index), leaf_at(l.parameters, static_cast<size_t>(m.parameter_number(value)), {}));
  };
  if (m.op(root) != Opcode::Tuple) {
    through(root, {});
    return;
  }
  auto operands = m.operands(root);
  for (size_t k = 0; k < operands.size(); ++k) through(operands[k], {static_cast<int64_t>(k)});
}

struct Candidate {
  size_t result, parameter;
  double score;
  std::vector<std::string> evidence;
  bool proven = false;
};

class Linker {
 public:
  Linker(const std::vector<LinkModule>& modules, const GraphDef* graph)
      : modules_(modules), u_(modules.at(0).module->u()), graph_(graph) {}

  Links run() {
    size_t n = modules_.size();
    aliased_.resize(n);
    for (size_t k = 0; k < n; ++k) {
      out_.leaves.push_back(read_leaves(modules_[k]));
      name_results(modules_[k], out_.leaves[k], aliased_[k]);
    }
    if (graph_) read_graph();
    // Names travel: a result that feeds a named parameter bears its name when the next is looked for.
    for (size_t k = 0; k < n; ++k) loops(k);  // by names of its own only
    size_t loops_end = out_.edges.size();
    for (int round = 0; round < 3; ++round) {
      out_.edges.resize(loops_end);
      for (size_t k = 0; k < n; ++k) into(k);
      bool news = false;
      for (const LinkEdge& e : out_.edges) {
        LinkLeaf& r = out_.leaves[e.from].results[e.result];
        const LinkLeaf& p = out_.leaves[e.to].parameters[e.parameter];
        if (e.confidence > 0.8 && r.name.empty() && !p.name.empty()) r.name = p.name, r.path = p.path, news = true;
      }
      if (!news) break;
    }
    roles();
    std::stable_sort(out_.edges.begin(), out_.edges.end(), [](const LinkEdge& x, const LinkEdge& y) {
      return std::tuple(x.to, x.parameter, -x.confidence) < std::tuple(y.to, y.parameter, -y.confidence);
    });
    return std::move(out_);
  }

 private:
  // Pairs of results of `a` and parameters of `b`, with what speaks for them.
  std::vector<Candidate> candidates(size_t a, size_t b) {
    const auto &rs = out_.leaves[a].results, &ps = out_.leaves[b].parameters;
    std::unordered_map<std::string, std::vector<uint32_t>> by_shape;
    for (size_t j = 0; j < ps.size(); ++j)
      if (!u_[ps[j].shape].is_token()) by_shape[u_.shape_text_plain(ps[j].shape)].push_back(static_cast<uint32_t>(j));
    size_t pairs = 0;
    for (const LinkLeaf& r : rs)
      if (auto at = by_shape.find(u_.shape_text_plain(r.shape)); at != by_shape.end()) pairs += at->second.size();
    if (pairs > kMostPairs) {
      out_.notes.push_back(fmt::format("{} → {}: {} pairs of equal shape are too many to weigh; left out",
                                       modules_[a].label, modules_[b].label, pairs));
      return {};
    }
    // Leaves of a tree keep their order: pairs in a row, (i, j), (i+1, j+1) …, support each other, the more so the more
    // different their shapes are.
    std::unordered_map<uint64_t, std::pair<size_t, size_t>> run;  // pair → length, distinct shapes
    auto key = [](size_t i, size_t j) { return static_cast<uint64_t>(i) << 32 | j; };
    auto same = [&](size_t i, size_t j) {
      return u_.shape_text_plain(rs[i].shape) == u_.shape_text_plain(ps[j].shape);
    };
    std::vector<Candidate> out;
    for (size_t i = 0; i < rs.size(); ++i) {
      auto at = by_shape.find(u_.shape_text_plain(rs[i].shape));
      if (at == by_shape.end()) continue;
      for (uint32_t j : at->second) {
        if (!run.contains(key(i, j))) {
          size_t length = 0;
          std::set<std::string> shapes;
          while (i + length < rs.size() && j + length < ps.size() && same(i + length, j + length))
            shapes.insert(u_.shape_text_plain(rs[i + length++].shape));
          for (size_t k = 0; k < length; ++k) run[key(i + k, j + k)] = {length, shapes.size()};
        }
        out.push_back(weighed(a, b, i, j, run[key(i, j)]));
      }
    }
    std::erase_if(out, [](const Candidate& c) { return c.score <= 0; });
    return out;
  }

  Candidate weighed(size_t a, size_t b, size_t i, size_t j, std::pair<size_t, size_t> run) const {
    const LinkLeaf &r = out_.leaves[a].results[i], &p = out_.leaves[b].parameters[j];
    Candidate c{i, j, 1, {}};
    auto [length, distinct] = run;
    const Shape& shape = u_[r.shape];
    // Numbers of one element are everywhere: steps, rates, losses.
    if (shape.elements_count() <= 1) c.score = 0.2;
    if (length > 1) {
      double row = 1 + static_cast<double>(length - 1) * std::log2(1.0 + static_cast<double>(distinct)) / 2;
      c.score *= row * row * row * row;
      c.evidence.push_back(fmt::format("{} leaves in a row agree", length));
    }
    if (double s = similarity(r.path, p.path); s > 0) {
      c.score *= (1 + 4 * s) * (1 + 4 * s) * (1 + 4 * s);
      c.evidence.push_back(s == 1 ? fmt::format("both are {}", p.name)
                                  : fmt::format("names end alike: {}, {}", r.name, p.name));
    } else if (!r.path.empty() && !p.path.empty()) {
      c.score *= 0.3;
    }
    if (u_.shape_text(r.shape) != u_.shape_text(p.shape)) {
      c.score *= 0.5;
      c.evidence.push_back("layouts differ");
    }
    if (!p.sharding.empty() && !r.sharding.empty()) c.score *= p.sharding == r.sharding ? 1.5 : 0.3;
    if (a == b) {
      if (auto at = aliased_[a].find(i); at != aliased_[a].end() && at->second == j) {
        c.score *= 100;
        c.evidence.push_back("updated in place");
      }
    }
    if (!r.bytes.empty() && !p.bytes.empty()) {
      if (r.bytes == p.bytes) {
        // A few bytes agree by chance.
        c.score *= r.bytes.size() >= 16 ? 1e6 : 20;
        c.proven = r.bytes.size() >= 16 &&
                   std::count(r.bytes.begin(), r.bytes.end(), r.bytes[0]) != static_cast<ptrdiff_t>(r.bytes.size());
        c.evidence.push_back("recorded values are the same");
      } else {
        c.score = 0;
      }
    }
    return c;
  }

  // From one step to the next.
  void loops(size_t k) {
    // Only a module that hands state on loops: several leaves in a row, or in place.
    std::vector<Candidate> all = candidates(k, k);
    std::vector<double> row(out_.leaves[k].parameters.size(), 0), column(out_.leaves[k].results.size(), 0);
    for (const Candidate& c : all) row[c.parameter] += c.score, column[c.result] += c.score;
    for (Candidate& c : all) {
      double confidence = c.score / (std::max(row[c.parameter], column[c.result]) + 1);
      if (confidence <= 0.5) continue;
      LinkEdge e{k, k, c.result, c.parameter, confidence, false, true, std::move(c.evidence)};
      // Where nothing names its results, the loop does.
      LinkLeaf& r = out_.leaves[k].results[c.result];
      const LinkLeaf& p = out_.leaves[k].parameters[c.parameter];
      if (confidence > 0.8 && r.name.empty()) r.name = p.name, r.path = p.path;
      out_.edges.push_back(std::move(e));
    }
  }

  void into(size_t b) {
    struct From {
      size_t module;
      Candidate c;
      double weight;
    };
    std::vector<std::vector<From>> by_parameter(out_.leaves[b].parameters.size());
    std::map<std::pair<size_t, size_t>, double> column;  // (module, result) → sum over parameters of b
    for (size_t a = 0; a < modules_.size(); ++a) {
      if (a == b) continue;
      if (graph_ && both_known(a, b)) {
        proven(a, b);
        continue;
      }
      for (Candidate& c : candidates(a, b)) {
        // What runs before it, the later the likelier; modules are compiled as they are first needed.
        double weight = c.score * (a < b ? 1 : 0.15);
        size_t parameter = c.parameter;
        column[{a, c.result}] += weight;
        by_parameter[parameter].push_back({a, std::move(c), weight});
      }
    }
    for (size_t j = 0; j < by_parameter.size(); ++j) {
      auto& list = by_parameter[j];
      // Of earlier modules that fit about as well, the last one has overwritten what the others made.
      for (From& f : list)
        for (const From& other : list)
          if (f.module < b && other.module < b && other.module > f.module && other.c.score >= 0.5 * f.c.score) {
            f.weight *= 0.3;
            break;
          }
      double sum = 0;
      for (const From& f : list) sum += f.weight;
      for (From& f : list) {
        double rivals = std::max(sum, column[{f.module, f.c.result}]);
        double confidence = f.c.proven ? 1 : f.weight / (rivals + 1);
        if (confidence < 0.1) continue;
        LinkEdge e{f.module, b, f.c.result, j, confidence, false, false, f.c.evidence};
        double best = 0;
        for (const From& other : list)
          if (&other != &f) best = std::max(best, other.weight);
        for (size_t k = 0; k < by_parameter.size(); ++k)
          for (const From& other : by_parameter[k])
            if (k != j && other.module == f.module && other.c.result == f.c.result) best = std::max(best, other.weight);
        e.ambiguous = !f.c.proven && best >= 0.5 * f.weight;
        out_.edges.push_back(std::move(e));
      }
    }
  }

  // Modules are called as the clusters they are made of: cluster_0__XlaCompiledKernel_true__… .
  static bool is_cluster(const std::string& module, const std::string& cluster) {
    if (!module.starts_with(cluster)) return false;
    return module.size() == cluster.size() ||
           std::string_view("_[.").find(module[cluster.size()]) != std::string_view::npos;
  }

  void read_graph() {
    graph_edges_ = cluster_edges(*graph_);
    std::set<std::string> names;
    for (const GraphDefNode& n : graph_->nodes)
      if (std::string c = cluster_of(n); !c.empty()) names.insert(c);
    for (const LinkModule& m : modules_) {
      std::string found;
      for (const std::string& c : names)
        if (is_cluster(m.module->name(), c) && c.size() > found.size()) found = c;
      clusters_.push_back(found);
      if (found.empty()) out_.notes.push_back(fmt::format("the graph has no cluster for {}", m.label));
    }
  }

  bool both_known(size_t a, size_t b) const { return !clusters_[a].empty() && !clusters_[b].empty(); }

  void proven(size_t a, size_t b) {
    std::vector<Candidate> all = candidates(a, b);
    bool loose = false;
    for (const ClusterEdge& g : graph_edges_) {
      if (g.from != clusters_[a] || g.to != clusters_[b]) continue;
      if (g.output < 0 || g.input < 0) {
        loose = true;
        continue;
      }
      size_t i = static_cast<size_t>(g.output), j = static_cast<size_t>(g.input);
      if (i >= out_.leaves[a].results.size() || j >= out_.leaves[b].parameters.size()) {
        out_.notes.push_back(fmt::format("the graph links output {} of {} to input {} of {}, which the modules lack",
                                         g.output, g.from, g.input, g.to));
        continue;
      }
      out_.edges.push_back({a, b, i, j, 1, false, false, {"the graph has it: " + g.tensor}});
    }
    if (!loose) return;
    // The graph tells that they are linked, not where: what fits shares the certainty.
    double sum = 0;
    for (const Candidate& c : all) sum += c.score;
    for (const Candidate& c : all) {
      LinkEdge e{a, b, c.result, c.parameter, c.score / sum, all.size() > 1, false, c.evidence};
      e.evidence.push_back("the graph links the clusters");
      out_.edges.push_back(std::move(e));
    }
  }

  void roles() {
    for (size_t k = 0; k < modules_.size(); ++k) {
      auto& l = out_.leaves[k];
      l.roles.assign(l.parameters.size(), "input");
      for (const LinkEdge& e : out_.edges)
        if (e.to == k && e.confidence > 0.5 && !e.loop) l.roles[e.parameter] = "linked";
      for (size_t j = 0; j < l.parameters.size(); ++j)
        for (const std::string& part : l.parameters[j].path)
          for (const char* word :
               {"params", "kernel", "bias", "weights", "weight", "variables", "batch_stats", "scale"})
            if (part == word) l.roles[j] = "weights";
      for (const LinkEdge& e : out_.edges)
        if (e.loop && e.to == k) l.roles[e.parameter] = "state";
    }
  }

  const std::vector<LinkModule>& modules_;
  const Universe& u_;
  const GraphDef* graph_;
  Links out_;
  std::vector<std::map<size_t, size_t>> aliased_;
  std::vector<ClusterEdge> graph_edges_;
  std::vector<std::string> clusters_;
};

// All computations of `from`, as they are, in `into`; the entry's counterpart.
CompId imported(Module& into, const Module& from) {
  Universe& u = into.u();
  std::unordered_map<CompId, CompId> comps;
  for (CompId c : from.computation_post_order()) {
    CompId to = into.add_computation(from.comp_name(c));
    into.set_thread(to, from.comp(c).thread);
    comps[c] = to;
    std::unordered_map<InstId, InstId> insts;
    for (InstId i : from.post_order(c)) {
      AttrSet attrs = from.attrs(i);
      for (auto& [key, value] : attrs.list) {
        if (CompId* one = std::get_if<CompId>(&value)) *one = comps.at(*one);
        if (auto* many = std::get_if<std::vector<CompId>>(&value))
          for (CompId& one : *many) one = comps.at(one);
      }
      attrs.finish();
      std::vector<InstId> operands;
      for (InstId o : from.operands(i)) operands.push_back(insts.at(o));
      bool payload = from.op(i) == Opcode::Constant || from.op(i) == Opcode::Parameter;
      InstId copy = into.add(to, {.op = from.op(i),
                                  .shape = from.shape_id(i),
                                  .operands = operands,
                                  .attrs = from[i].attrs.valid() ? u.attrs(std::move(attrs)) : AttrsId(),
                                  .meta = from[i].meta,
                                  .name = from.inst_name(i),
                                  .payload = payload ? from[i].operand[0] : 0});
      insts[i] = copy;
      for (InstId p : from.control_preds(i)) into.add_control(insts.at(p), copy);
    }
    std::vector<InstId> params;
    for (InstId p : from.comp(c).params) params.push_back(insts.at(p));
    into.set_params(to, std::move(params));
    into.set_root(to, insts.at(from.comp(c).root));
  }
  return comps.at(from.entry());
}

}  // namespace

Links link_modules(const std::vector<LinkModule>& modules, const GraphDef* graph) {
  return Linker(modules, graph).run();
}

namespace {

// Who feeds which parameter, by module and number; and which results are used so.
struct Feeds {
  std::map<std::pair<size_t, size_t>, const LinkEdge*> by;
  std::set<std::pair<size_t, size_t>> used;
};

// Throws Failure(kUsage) where they cannot.
Feeds feeds_of(const std::vector<LinkModule>& modules, const Links& links, const std::vector<LinkEdge>& edges) {
  Feeds out;
  const Universe& u = modules.at(0).module->u();
  for (const LinkEdge& e : edges) {
    const LinkLeaf &r = links.leaves[e.from].results[e.result], &p = links.leaves[e.to].parameters[e.parameter];
    if (e.from >= e.to)
      fail(FailureKind::kUsage, "{} o{} cannot feed {} p{}: modules run in the order in which they were given",
           modules[e.from].label, e.result, modules[e.to].label, e.parameter);
    if (u.shape_text_plain(r.shape) != u.shape_text_plain(p.shape))
      fail(FailureKind::kUsage, "{} o{} is {}, {} p{} is {}", modules[e.from].label, e.result,
           u.shape_text_plain(r.shape), modules[e.to].label, e.parameter, u.shape_text_plain(p.shape));
    if (!out.by.emplace(std::pair(e.to, e.parameter), &e).second)
      fail(FailureKind::kUsage, "{} p{} has two sources", modules[e.to].label, e.parameter);
    out.used.insert({e.from, e.result});
  }
  return out;
}

}  // namespace

std::unique_ptr<Module> stitched(const std::vector<LinkModule>& modules, const Links& links,
                                 const std::vector<LinkEdge>& edges, const std::string& name) {
  const Feeds feeds = feeds_of(modules, links, edges);
  auto out = std::make_unique<Module>(modules[0].module->universe());
  Module& m = *out;
  Universe& w = m.u();
  m.set_module_name(sanitized_name(name));
  m.edit_config().replica_count = modules[0].module->config().replica_count;
  m.edit_config().num_partitions = modules[0].module->config().num_partitions;
  std::vector<CompId> bodies;
  for (const LinkModule& lm : modules) {
    if (lm.module->config().replica_count != m.config().replica_count ||
        lm.module->config().num_partitions != m.config().num_partitions)
      fail(FailureKind::kUnsupported, "{} and {} run on different numbers of devices", modules[0].label, lm.label);
    bodies.push_back(imported(m, *lm.module));
  }
  CompId entry = m.add_computation("main");
  m.set_entry(entry);
  std::vector<std::vector<InstId>> results(modules.size());
  int64_t number = 0;
  for (size_t k = 0; k < modules.size(); ++k) {
    size_t leaf = 0;
    const auto& body_params = m.comp(bodies[k]).params;
    std::vector<InstId> arguments;
    for (InstId p : std::vector<InstId>(body_params.begin(), body_params.end())) {
      auto build = [&](auto&& self, ShapeId shape) -> InstId {
        if (w[shape].is_tuple()) {
          std::vector<InstId> parts;
          for (ShapeId e : std::vector<ShapeId>(w[shape].elements)) parts.push_back(self(self, e));
          return m.add(entry, {.op = Opcode::Tuple, .shape = shape, .operands = parts});
        }
        size_t at = leaf++;
        if (auto f = feeds.by.find({k, at}); f != feeds.by.end()) {
          InstId value = results[f->second->from][f->second->result];
          if (m.shape_id(value) == shape) return value;
          return m.add(entry, {.op = Opcode::Copy, .shape = shape, .operands = {value}});  // another layout
        }
        return m.parameter(entry, number++, shape, m.inst_name(p));
      };
      arguments.push_back(build(build, m.shape_id(p)));
    }
    InstId call =
        m.add(entry, {.op = Opcode::Call, .shape = m.shape_id(m.comp(bodies[k]).root), .operands = arguments});
    m.set_attr(call, Attr::to_apply, bodies[k]);
    auto take = [&](auto&& self, InstId value) -> void {
      ShapeId shape = m.shape_id(value);
      if (!w[shape].is_tuple()) {
        results[k].push_back(value);
        return;
      }
      for (size_t e = 0; e < w[shape].elements.size(); ++e) {
        InstId gte = m.add(entry, {.op = Opcode::GetTupleElement, .shape = w[shape].elements[e], .operands = {value}});
        m.set_attr(gte, Attr::index, static_cast<int64_t>(e));
        self(self, gte);
      }
    };
    take(take, call);
  }
  std::vector<InstId> outputs;
  std::vector<ShapeId> shapes;
  for (size_t k = 0; k < modules.size(); ++k)
    for (size_t r = 0; r < results[k].size(); ++r)
      if (!feeds.used.contains({k, r})) outputs.push_back(results[k][r]), shapes.push_back(m.shape_id(results[k][r]));
  InstId root = outputs.size() == 1
                    ? outputs[0]
                    : m.add(entry, {.op = Opcode::Tuple, .shape = w.tuple(shapes), .operands = outputs});
  m.set_root(entry, root);
  m.edit_config().has_entry_layout = true;
  for (InstId p : m.comp(entry).params) m.edit_config().entry_params.push_back(m.shape_id(p));
  m.edit_config().entry_result = m.shape_id(root);
  m.cleanup();
  return out;
}

std::string leaf_text(const LinkLeaf& leaf, const Universe& u) {
  return leaf.name.empty() ? u.shape_text_plain(leaf.shape)
                           : fmt::format("{} {}", u.shape_text_plain(leaf.shape), leaf.name);
}

}  // namespace hlo
