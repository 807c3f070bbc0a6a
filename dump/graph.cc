#include "dump/graph.h"

#include <graphviz/cgraph.h>
#include <graphviz/gvc.h>

#include <algorithm>
#include <deque>
#include <unordered_map>

#include "dump/palette.h"
#include "ir/base/stack_guard.h"
#include "ir/print.h"

namespace hlo {
namespace {

char* c(const char* text) { return const_cast<char*>(text); }  // the C interface takes char* and does not write to it
char* c(const std::string& text) { return const_cast<char*>(text.c_str()); }

GVC_t* context() {
  static GVC_t* const kContext = gvContext();
  return kContext;
}

std::string escaped(std::string_view text) {
  std::string out;
  for (char ch : text) {
    switch (ch) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '"':
        out += "&quot;";
        break;
      default:
        out += ch;
    }
  }
  return out;
}

std::string cut(std::string_view text, size_t most) {
  return text.size() <= most ? std::string(text) : std::string(text.substr(0, most - 1)) + "…";
}

}  // namespace

struct Graph::Impl {
  const Module& m;
  const Universe& u;
  const GraphOptions& options;
  Agraph_t* graph = nullptr;
  bool laid_out = false;
  std::unordered_map<InstId, Agnode_t*> nodes;
  std::unordered_set<InstId> visible;  // empty: all
  std::unordered_map<CompId, Agraph_t*> clusters;

  Impl(const Module& module, const GraphOptions& o) : m(module), u(module.u()), options(o) {}

  void set(void* object, const char* key, const std::string& value) { agsafeset(object, c(key), c(value), c("")); }
  void set_html(void* object, const std::string& value) {
    char* html = agstrdup_html(graph, c(value));
    agsafeset(object, c("label"), html, c(""));
    agstrfree(graph, html);
  }

  // A computation of one operation on its parameters is told by name in its user.
  bool trivial(CompId comp) const {
    const Computation& body = m.comp(comp);
    return m.size(comp) == body.params.size() + 1 && m.op(body.root) != Opcode::Parameter;
  }
  bool inlined(InstId i) const {
    if (m.op(i) != Opcode::Constant || m.is_root(i)) return false;
    return true;
  }
  bool shown(InstId i) const { return visible.empty() || visible.contains(i); }

  std::string constant_text(InstId i) const {
    const Literal& lit = m.literal(i);
    if (m.shape(i).is_array() && m.shape(i).elements_count() <= 8) {
      std::string text = literal_text(u, m.literal_id(i), false);
      if (text.size() <= 64 && !lit.elided) return text;
    }
    return fmt::format("constant {}", u.shape_text_plain(m.shape_id(i)));
  }

  void node(Agraph_t* where, InstId i) {
    std::string id = fmt::format("n{}", i.value);
    Agnode_t* n = agnode(where, c(id), 1);
    nodes[i] = n;
    Colour colour = colour_of(m, i);
    std::string name(m.inst_name(i)), op(op_text(m.op(i)));
    std::string label =
        "<B>" + escaped(m.op(i) == Opcode::Parameter ? fmt::format("Parameter {}", m.parameter_number(i)) : name) +
        "</B>";
    if (m.op(i) == Opcode::Parameter)
      label += "<BR/>" + escaped(name);
    else if (!name.starts_with(op))
      label += "<BR/>" + escaped(op);
    if (m.op(i) == Opcode::Constant) label += "<BR/>" + escaped(constant_text(i));
    const AttrSet& a = m.attrs(i);
    if (StrId target = a.text(Attr::custom_call_target); target.valid())
      label += "<BR/>" + escaped(cut(u.text(target), 60));
    for (CompId callee : a.called)
      if (m.op(i) != Opcode::Fusion && trivial(callee))
        label += "<BR/>Subcomputation: <B>" + escaped(op_text(m.op(m.comp(callee).root))) + "</B>";
    for (Attr key : {Attr::dimensions, Attr::index, Attr::direction, Attr::feature_group_count})
      if (const AttrValue* v = a.find(key)) {
        std::string text;
        if (const Dims* d = std::get_if<Dims>(v)) {
          for (int64_t x : *d) text += (text.empty() ? "" : ",") + std::to_string(x);
          text = "{" + text + "}";
        } else if (const int64_t* n64 = std::get_if<int64_t>(v)) {
          text = std::to_string(*n64);
        } else if (const StrId* s = std::get_if<StrId>(v)) {
          text = u.text(*s);
        }
        label += fmt::format("<BR/>{}={}", attr_text(key), escaped(text));
      }
    auto ops = m.operands(i);
    for (size_t k = 0; k < ops.size() && k < 32; ++k)
      if (inlined(ops[k]))
        label += fmt::format("<BR/><B>operand {}</B> = {}", k, escaped(cut(constant_text(ops[k]), 64)));
    const Shape& s = m.shape(i);
    label += "<BR/>" + escaped(cut(s.rank() > 1 ? u.shape_text(m.shape_id(i)) : u.shape_text_plain(m.shape_id(i)), 64));
    set_html(n, label);
    set(n, "shape", m.op(i) == Opcode::While ? "ellipse" : "rect");
    bool added = options.added.contains(m[i].name), modified = options.modified.contains(m[i].name);
    set(n, "style", "filled");
    set(n, "fillcolor", std::string(colour.fill));
    set(n, "color", added ? "#00a040" : modified ? "#e65100" : std::string(colour.stroke));
    set(n, "penwidth", added || modified ? "4" : "1");
    set(n, "fontcolor", std::string(colour.text));
    set(n, "id", fmt::format("i{}", i.value));
    set(n, "class", added ? "added" : modified ? "modified" : "same");
    const Metadata& meta = u[m[i].meta];
    std::string tip = fmt::format("{} = {} {}", name, u.shape_text(m.shape_id(i)), op);
    if (StrId t(meta.op_name); t.valid()) tip += fmt::format("\nop_name: {}", u.text(t));
    if (StrId t(meta.op_type); t.valid()) tip += fmt::format("\nop_type: {}", u.text(t));
    if (StrId t(meta.source_file); t.valid()) tip += fmt::format("\nsource: {}:{}", u.text(t), meta.source_line);
    set(n, "tooltip", tip);
    if (m.is_root(i) && m.parent(i) == m.entry()) {
      Agnode_t* r = agnode(where, c("root"), 1);
      set(r, "label", "ROOT");
      set(r, "shape", "circle");
      set(r, "style", "filled");
      set(r, "fillcolor", "#bcaaa4");
      set(r, "tooltip", "the module's result");
      Agedge_t* e = agedge(graph, n, r, nullptr, 1);
      set(e, "arrowhead", "normal");
    }
  }

  void computation(Agraph_t* where, CompId comp) {
    check_stack("computations call each other");
    for (InstId i : m.post_order(comp)) {
      if (!shown(i)) continue;
      if (m.op(i) == Opcode::Fusion) {
        CompId body = m.called(i)[0];
        if (clusters.contains(body)) continue;  // the verifier takes no second fusion of one body
        Agraph_t* cluster = agsubg(where, c(fmt::format("cluster_{}", body.value)), 1);
        set(cluster, "label",
            fmt::format("Fused expression for {}{}", m.inst_name(i),
                        m.attrs(i).text(Attr::kind).valid()
                            ? " (" + std::string(u.text(m.attrs(i).text(Attr::kind))) + ")"
                            : ""));
        bool added = options.added.contains(m[i].name), modified = options.modified.contains(m[i].name);
        set(cluster, "style", "rounded,filled");
        set(cluster, "fillcolor", "#f5f5f5");
        set(cluster, "color", added ? "#00a040" : modified ? "#e65100" : "#c2c2c2");
        set(cluster, "tooltip", std::string(m.inst_name(i)));
        clusters[body] = cluster;
        computation(cluster, body);
        continue;
      }
      if (inlined(i)) continue;
      node(where, i);
      for (CompId callee : m.called(i)) {
        if (trivial(callee) || clusters.contains(callee)) continue;
        Agraph_t* cluster = agsubg(graph, c(fmt::format("cluster_{}", callee.value)), 1);
        set(cluster, "label", fmt::format("Subcomputation for {}: {}", m.inst_name(i), m.comp_name(callee)));
        set(cluster, "style", "rounded");
        set(cluster, "color", "#000000");
        clusters[callee] = cluster;
        computation(cluster, callee);
      }
    }
  }

  // The node that stands for a value: of a fusion, its body's root.
  Agnode_t* node_of(InstId i) {
    while (m.op(i) == Opcode::Fusion) i = m.comp(m.called(i)[0]).root;
    auto found = nodes.find(i);
    return found == nodes.end() ? nullptr : found->second;
  }

  void edge(InstId from, Agnode_t* to, size_t operand, size_t count) {
    Agnode_t* a = node_of(from);
    if (!a || !to) return;
    Agedge_t* e = agedge(graph, a, to, nullptr, 1);
    if (!e) return;
    bool small = m.shape(from).is_array() && m.shape(from).elements_count() < 4096;
    set(e, "arrowhead", small ? "empty" : "normal");
    if (count > 1) set(e, "headlabel", std::to_string(operand));
    set(e, "tooltip", u.shape_text(m.shape_id(from)));
  }

  void edges(CompId comp) {
    check_stack("computations call each other");
    for (InstId i : m.post_order(comp)) {
      if (!shown(i)) continue;
      auto ops = m.operands(i);
      if (m.op(i) == Opcode::Fusion) {
        CompId body = m.called(i)[0];
        for (size_t k = 0; k < ops.size(); ++k) {
          auto p = nodes.find(m.comp(body).params[k]);
          if (p != nodes.end() && shown(ops[k])) {
            if (inlined(ops[k])) continue;
            edge(ops[k], p->second, k, 1);
          }
        }
        if (drawn_edges.insert(body).second) edges(body);
        continue;
      }
      auto n = nodes.find(i);
      if (n == nodes.end()) continue;
      for (size_t k = 0; k < ops.size(); ++k)
        if (!inlined(ops[k])) edge(ops[k], n->second, k, ops.size());
      for (InstId p : m.control_preds(i))
        if (Agnode_t* from = node_of(p)) {
          Agedge_t* e = agedge(graph, from, n->second, nullptr, 1);
          set(e, "style", "dotted");
          set(e, "color", "#808080");
          set(e, "label", "ctrl");
        }
      for (CompId callee : m.called(i)) {
        if (trivial(callee)) continue;
        if (Agnode_t* root = node_of(m.comp(callee).root)) {
          Agedge_t* e = agedge(graph, root, n->second, nullptr, 1);
          set(e, "style", "dashed");
          set(e, "ltail", fmt::format("cluster_{}", callee.value));
        }
        if (drawn_edges.insert(callee).second) edges(callee);
      }
    }
  }
  std::unordered_set<CompId> drawn_edges;

  // What changed and what lies within three steps of it; the result and its neighbours when nothing did.
  void neighbourhood(size_t most) {
    std::deque<std::pair<InstId, int>> queue;
    for (CompId comp : m.computations())
      for (InstId i : m.comp(comp).order)
        if (m.alive(i) && (options.added.contains(m[i].name) || options.modified.contains(m[i].name)) &&
            queue.size() < most / 4)
          queue.push_back({i, 0});
    if (queue.empty()) queue.push_back({m.comp(m.entry()).root, -40});
    while (!queue.empty() && visible.size() < most) {
      auto [i, distance] = queue.front();
      queue.pop_front();
      if (!visible.insert(i).second || distance >= 3) continue;
      for (InstId o : m.operands(i)) queue.push_back({o, distance + 1});
      if (m.user_count(i) <= 16)
        for (InstId user : m.users(i)) queue.push_back({user, distance + 1});
      if (m.op(i) == Opcode::Fusion)
        for (InstId b : m.comp(m.called(i)[0]).order)
          if (m.alive(b)) visible.insert(b);
    }
    // An instruction inside a computation is drawn only with the instruction that calls it.
    auto callers = m.callers();
    for (bool again = true; again;) {
      again = false;
      for (InstId i : std::vector<InstId>(visible.begin(), visible.end()))
        for (InstId caller : callers[m.parent(i).value]) again |= visible.insert(caller).second;
    }
  }
};

Graph::Graph(const Module& m, const GraphOptions& options) : impl_(new Impl(m, options)) {
  std::string name = "HloModule";
  impl_->graph = agopen(c(name), Agdirected, nullptr);
  Agraph_t* g = impl_->graph;
  size_t total = m.instruction_count();
  partial_ = total > options.most_nodes;
  if (partial_) impl_->neighbourhood(300);
  impl_->set(g, "rankdir", "TB");
  impl_->set(g, "compound", "true");
  std::string title = options.title.empty() ? m.name : options.title;
  if (partial_)
    title += fmt::format("\n{} of {} instructions: the neighbourhood of what changed", impl_->visible.size(), total);
  impl_->set(g, "label", title);
  impl_->set(g, "labelloc", "t");
  impl_->set(g, "fontname", "DejaVu Sans");
  agattr(g, AGNODE, c("fontname"), c("DejaVu Sans"));
  agattr(g, AGNODE, c("fontsize"), c("10"));
  agattr(g, AGEDGE, c("fontname"), c("DejaVu Sans"));
  agattr(g, AGEDGE, c("fontsize"), c("8"));
  impl_->computation(g, m.entry());
  impl_->edges(m.entry());
  drawn_ = impl_->nodes.size();
}

Graph::~Graph() {
  if (impl_->laid_out) gvFreeLayout(context(), impl_->graph);
  agclose(impl_->graph);
  delete impl_;
}

std::string Graph::dot() const {
  char* data = nullptr;
  size_t size = 0;
  FILE* file = open_memstream(&data, &size);
  agwrite(impl_->graph, file);
  fclose(file);
  std::string out(data, size);
  free(data);
  return out;
}

std::string Graph::render(const std::string& format) {
  if (!impl_->laid_out) {
    // Few rounds of crossing reduction: drawings of a pipeline are many and looked at briefly.
    impl_->set(impl_->graph, "mclimit", "0.3");
    impl_->set(impl_->graph, "nslimit", "2");
    impl_->set(impl_->graph, "searchsize", "10");
    if (gvLayout(context(), impl_->graph, "dot")) fail(FailureKind::kInternal, "Graphviz could not lay the graph out");
    impl_->laid_out = true;
  }
  char* data = nullptr;
  unsigned size = 0;
  if (gvRenderData(context(), impl_->graph, format.c_str(), &data, &size))
    fail(FailureKind::kUnsupported, "Graphviz has no renderer for {}", format);
  std::string out(data, size);
  gvFreeRenderData(data);
  return out;
}

std::string render_dot(const std::string& dot, const std::string& format) {
  Agraph_t* graph = agmemread(dot.c_str());
  if (!graph) fail(FailureKind::kUnsupported, "Graphviz cannot read the drawing");
  char* data = nullptr;
  unsigned size = 0;
  bool failed = gvLayout(context(), graph, "dot") != 0;
  if (!failed) {
    failed = gvRenderData(context(), graph, format.c_str(), &data, &size) != 0;
    gvFreeLayout(context(), graph);
  }
  std::string out = failed ? std::string() : std::string(data, size);
  if (data) gvFreeRenderData(data);
  agclose(graph);
  if (failed) fail(FailureKind::kUnsupported, "Graphviz cannot draw that as {}", format);
  return out;
}

}  // namespace hlo
