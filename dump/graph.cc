#include "dump/graph.h"

#include <algorithm>
#include <deque>
#include <memory>
#include <unordered_map>

#include "dump/palette.h"
#include "dump/xml_text.h"
#include "ir/base/stack_guard.h"
#include "ir/print/print.h"
#include "ir/query/source_lines.h"

namespace hlo {
namespace {

// A value as DOT writes it; what stands there is what is shown, so a backslash escapes nothing.
std::string dot_quoted(std::string_view text) {
  std::string out = "\"";
  for (char ch : text) {
    if (ch == '"' || ch == '\\') out += '\\';
    if (ch) out += ch;
  }
  return out + "\"";
}

}  // namespace

// The attributes of a node, an edge or a graph.
struct DotAttributes {
  std::string text;

  void put(std::string_view key, std::string_view value) {
    if (!text.empty()) text += ", ";
    text.append(key).append("=").append(value);
  }
  void set(std::string_view key, std::string_view value) { put(key, dot_quoted(value)); }
  void markup(std::string_view key, std::string_view value) { put(key, fmt::format("<{}>", value)); }
};

// What a graph or a cluster holds, in order: order decides how dot lays out.
struct DotGraph {
  std::string name;
  DotAttributes attributes;
  std::vector<std::string> statements;  // an empty one stands for the next cluster
  std::vector<std::unique_ptr<DotGraph>> clusters;

  DotGraph* cluster(std::string called) {
    statements.emplace_back();
    clusters.push_back(std::make_unique<DotGraph>());
    clusters.back()->name = std::move(called);
    return clusters.back().get();
  }
  void write(std::string* out, int depth) const {
    check_stack("drawings nested");
    std::string indent(static_cast<size_t>(depth) * 2, ' ');
    if (!attributes.text.empty()) *out += fmt::format("{}graph [{}];\n", indent, attributes.text);
    size_t next = 0;
    for (const std::string& statement : statements) {
      if (!statement.empty()) {
        *out += fmt::format("{}{};\n", indent, statement);
        continue;
      }
      const DotGraph& inner = *clusters[next++];
      *out += fmt::format("{}subgraph {} {{\n", indent, inner.name);
      inner.write(out, depth + 1);
      *out += fmt::format("{}}}\n", indent);
    }
  }
};

namespace {

std::string label_text(std::string_view text) {
  std::string out;
  for (char ch : text) {
    if (ch == '\\') out += ch;                               // of two, one is shown; of one and N, the node's name
    out += static_cast<unsigned char>(ch) < ' ' ? ' ' : ch;  // markup has no control characters
  }
  return xml_escaped(out);
}

std::string cut(std::string_view text, size_t most) {
  return text.size() <= most ? std::string(text) : std::string(text.substr(0, most - 1)) + "…";
}

}  // namespace

struct Graph::Impl {
  const Module& m;
  const Universe& u;
  const GraphOptions& options;
  DotGraph graph;
  std::string edge_lines;
  std::unordered_set<InstId> nodes;    // those that are drawn
  std::unordered_set<InstId> visible;  // empty: all
  std::unordered_set<CompId> clusters;

  Impl(const Module& module, const GraphOptions& o) : m(module), u(module.u()), options(o) {}

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

  void node(DotGraph* where, InstId i) {
    nodes.insert(i);
    DotAttributes n;
    Colour colour = colour_of(m, i);
    std::string name(m.inst_name(i)), op(op_text(m.op(i)));
    std::string label =
        "<B>" + label_text(m.op(i) == Opcode::Parameter ? fmt::format("Parameter {}", m.parameter_number(i)) : name) +
        "</B>";
    if (m.op(i) == Opcode::Parameter)
      label += "<BR/>" + label_text(name);
    else if (!name.starts_with(op))
      label += "<BR/>" + label_text(op);
    if (m.op(i) == Opcode::Constant) label += "<BR/>" + label_text(constant_text(i));
    const AttrSet& a = m.attrs(i);
    if (StrId target = a.text(Attr::custom_call_target); target.valid())
      label += "<BR/>" + label_text(cut(u.text(target), 60));
    for (CompId callee : a.called)
      if (m.op(i) != Opcode::Fusion && trivial(callee))
        label += "<BR/>Subcomputation: <B>" + label_text(op_text(m.op(m.comp(callee).root))) + "</B>";
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
        label += fmt::format("<BR/>{}={}", attr_text(key), label_text(text));
      }
    auto ops = m.operands(i);
    for (size_t k = 0; k < ops.size() && k < 32; ++k)
      if (inlined(ops[k]))
        label += fmt::format("<BR/><B>operand {}</B> = {}", k, label_text(cut(constant_text(ops[k]), 64)));
    const Shape& s = m.shape(i);
    label +=
        "<BR/>" + label_text(cut(s.rank() > 1 ? u.shape_text(m.shape_id(i)) : u.shape_text_plain(m.shape_id(i)), 64));
    n.markup("label", label);
    n.set("shape", m.op(i) == Opcode::While ? "ellipse" : "rect");
    bool added = options.added.contains(m[i].name), modified = options.modified.contains(m[i].name);
    n.set("style", "filled");
    n.set("fillcolor", std::string(colour.fill));
    n.set("color", added ? "#00a040" : modified ? "#e65100" : std::string(colour.stroke));
    n.set("penwidth", added || modified ? "4" : "1");
    n.set("fontcolor", std::string(colour.text));
    n.set("id", fmt::format("i{}", i.value));
    n.set("class", added ? "added" : modified ? "modified" : "same");
    const Metadata& meta = u[m[i].meta];
    std::string tip = fmt::format("{} = {} {}", name, u.shape_text(m.shape_id(i)), op);
    if (StrId t(meta.op_name); t.valid()) tip += fmt::format("\nop_name: {}", u.text(t));
    if (StrId t(meta.op_type); t.valid()) tip += fmt::format("\nop_type: {}", u.text(t));
    if (SourceLine line = source_line(m, i); line.known()) tip += "\nsource: " + line.text();
    n.set("tooltip", tip);
    where->statements.push_back(fmt::format("n{} [{}]", i.value, n.text));
    if (!m.is_root(i) || m.parent(i) != m.entry()) return;
    DotAttributes r;
    r.set("label", "ROOT");
    r.set("shape", "circle");
    r.set("style", "filled");
    r.set("fillcolor", "#bcaaa4");
    r.set("tooltip", "the module's result");
    where->statements.push_back(fmt::format("root [{}]", r.text));
    edge_lines += fmt::format("  n{} -> root [arrowhead=\"normal\"];\n", i.value);
  }

  void computation(DotGraph* where, CompId comp) {
    check_stack("drawings nested");
    for (InstId i : m.post_order(comp)) {
      if (!shown(i)) continue;
      if (m.op(i) == Opcode::Fusion) {
        CompId body = m.called(i)[0];
        if (!clusters.insert(body).second) continue;
        DotGraph* cluster = where->cluster(fmt::format("cluster_{}", body.value));
        cluster->attributes.set("label", fmt::format("Fused expression for {}{}", m.inst_name(i),
                                                     m.attrs(i).text(Attr::kind).valid()
                                                         ? " (" + std::string(u.text(m.attrs(i).text(Attr::kind))) + ")"
                                                         : ""));
        bool added = options.added.contains(m[i].name), modified = options.modified.contains(m[i].name);
        cluster->attributes.set("style", "rounded,filled");
        cluster->attributes.set("fillcolor", "#f5f5f5");
        cluster->attributes.set("color", added ? "#00a040" : modified ? "#e65100" : "#c2c2c2");
        cluster->attributes.set("tooltip", std::string(m.inst_name(i)));
        computation(cluster, body);
        continue;
      }
      if (inlined(i)) continue;
      node(where, i);
      for (CompId callee : m.called(i)) {
        if (trivial(callee) || !clusters.insert(callee).second) continue;
        DotGraph* cluster = graph.cluster(fmt::format("cluster_{}", callee.value));
        cluster->attributes.set("label", fmt::format("Subcomputation for {}: {}", m.inst_name(i), m.comp_name(callee)));
        cluster->attributes.set("style", "rounded");
        cluster->attributes.set("color", "#000000");
        computation(cluster, callee);
      }
    }
  }

  // The node that stands for a value: of a fusion, its body's root.
  InstId node_of(InstId i) {
    while (m.op(i) == Opcode::Fusion) i = m.comp(m.called(i)[0]).root;
    return nodes.contains(i) ? i : InstId{};
  }

  void line(InstId from, InstId to, const DotAttributes& e) {
    edge_lines += fmt::format("  n{} -> n{} [{}];\n", from.value, to.value, e.text);
  }
  void edge(InstId from, InstId to, size_t operand, size_t count) {
    InstId a = node_of(from);
    if (!a.valid()) return;
    DotAttributes e;
    bool small = m.shape(from).is_array() && m.shape(from).elements_count() < 4096;
    e.set("arrowhead", small ? "empty" : "normal");
    if (count > 1) e.set("headlabel", std::to_string(operand));
    e.set("tooltip", u.shape_text(m.shape_id(from)));
    line(a, to, e);
  }

  void edges(CompId comp) {
    check_stack("drawings nested");
    for (InstId i : m.post_order(comp)) {
      if (!shown(i)) continue;
      auto ops = m.operands(i);
      if (m.op(i) == Opcode::Fusion) {
        CompId body = m.called(i)[0];
        for (size_t k = 0; k < ops.size(); ++k) {
          InstId p = m.comp(body).params[k];
          if (nodes.contains(p) && shown(ops[k]) && !inlined(ops[k])) edge(ops[k], p, k, 1);
        }
        if (drawn_edges.insert(body).second) edges(body);
        continue;
      }
      if (!nodes.contains(i)) continue;
      for (size_t k = 0; k < ops.size(); ++k)
        if (!inlined(ops[k])) edge(ops[k], i, k, ops.size());
      for (InstId p : m.control_preds(i))
        if (InstId from = node_of(p); from.valid()) {
          DotAttributes e;
          e.set("style", "dotted");
          e.set("color", "#808080");
          e.set("label", "ctrl");
          line(from, i, e);
        }
      for (CompId callee : m.called(i)) {
        if (trivial(callee)) continue;
        if (InstId root = node_of(m.comp(callee).root); root.valid()) {
          DotAttributes e;
          e.set("style", "dashed");
          e.set("ltail", fmt::format("cluster_{}", callee.value));
          line(root, i, e);
        }
        if (drawn_edges.insert(callee).second) edges(callee);
      }
    }
  }
  std::unordered_set<CompId> drawn_edges;

  std::string text(std::string_view limits) const {
    std::string out = "digraph HloModule {\n";
    out += limits;
    graph.write(&out, 1);
    return out + edge_lines + "}\n";
  }

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
  DotAttributes& g = impl_->graph.attributes;
  size_t total = m.instruction_count();
  partial_ = total > options.most_nodes;
  if (partial_) impl_->neighbourhood(options.neighbourhood);
  g.set("rankdir", "TB");
  g.set("compound", "true");
  std::string title = options.title.empty() ? m.name() : options.title;
  if (partial_)
    title += fmt::format("\n{} of {} instructions: the neighbourhood of what changed", impl_->visible.size(), total);
  g.set("label", title);
  g.set("labelloc", "t");
  g.set("fontname", "DejaVu Sans");
  impl_->graph.statements = {R"(node [fontname="DejaVu Sans", fontsize="10"])",
                             R"(edge [fontname="DejaVu Sans", fontsize="8"])"};
  impl_->computation(&impl_->graph, m.entry());
  impl_->edges(m.entry());
  drawn_ = impl_->nodes.size();
}

Graph::~Graph() = default;

std::string Graph::dot() const { return impl_->text({}); }

std::string Graph::render(const std::string& format) const {
  // Few rounds of crossing reduction: drawings of a pipeline are many and looked at briefly.
  return render_dot(impl_->text("  graph [mclimit=\"0.3\", nslimit=\"2\", searchsize=\"10\"];\n"), format);
}

}  // namespace hlo
