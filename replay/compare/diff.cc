#include "replay/compare/diff.h"

#include <algorithm>
#include <dtl/dtl.hpp>
#include <map>
#include <unordered_map>
#include <unordered_set>

#include "ir/base/hash.h"
#include "ir/print/print.h"
#include "ir/query/fingerprint.h"
#include "replay/compare/match.h"

namespace hlo {
namespace {

std::string header_of(const Module& m) {
  const Universe& u = m.u();
  std::string text = m.config().is_scheduled ? "scheduled " : "";
  for (ShapeId s : m.config().entry_params) text += u.shape_text(s) + ",";
  return text + u.shape_text(m.config().entry_result) + m.config().input_output_alias;
}

// `, a={…}, b=c` in parts; strings and braces hold commas of their own.
std::map<std::string, std::string> attribute_texts(const Module& m, InstId i) {
  PrintOptions o;
  o.control = false;
  std::map<std::string, std::string> out;
  std::string text = print_attributes(m, i, o);
  size_t at = 0;
  while (at < text.size()) {
    if (text[at] == ',' || text[at] == ' ') {
      ++at;
      continue;
    }
    size_t eq = text.find('=', at), end = eq;
    if (eq == std::string::npos) break;
    int depth = 0;
    for (++end; end < text.size() && (depth > 0 || text[end] != ','); ++end) {
      if (text[end] == '"') {
        end = closing_quote(text, end);
        if (end == std::string::npos) end = text.size() - 1;
      } else if (std::string_view("{([").find(text[end]) != std::string_view::npos) {
        ++depth;
      } else if (std::string_view("})]").find(text[end]) != std::string_view::npos) {
        --depth;
      }
    }
    out[text.substr(at, eq - at)] = text.substr(eq + 1, end - eq - 1);
    at = end;
  }
  return out;
}

class Differ {
 public:
  Differ(const Module& a, const Module& b, Matching match, ModuleDiff& out,
         UnreadElements unread = UnreadElements::kCount)
      : a_(a),
        b_(b),
        u_(a.u()),
        out_(out),
        match_(std::move(match)),
        moved_from_(a.inst_slots()),
        moved_to_(b.inst_slots()) {
    if (unread == UnreadElements::kCount) return;
    for (int s = 0; s < 2; ++s)
      for (const Module& m = s == 0 ? a_ : b_; CompId c : m.computations()) unread_[s].merge(unread_elements(m, c));
  }

  void run() {
    out_.names_agree = match_.names_agree();
    header();
    for (auto [x, y] : match_.moved()) moved_from_[x.value] = true, moved_to_[y.value] = true;
    for (CompId c : order_of(a_)) {
      CompId partner = match_.second(c);
      if (partner.valid() && match_.identical(c)) continue;
      for (InstId i : a_.post_order(c)) {
        InstId other = match_.second(i);
        if (other.valid())
          changed(i, other);
        else if (!moved_from_[i.value])
          alone(i, true);
      }
    }
    for (auto [x, y] : match_.moved()) moved(x, y);
    for (CompId c : order_of(b_)) {
      CompId partner = match_.first(c);
      if (partner.valid() && match_.identical(partner)) continue;
      for (InstId i : b_.post_order(c))
        if (!match_.first(i).valid() && !moved_to_[i.value]) alone(i, false);
    }
  }

 private:
  // The entry first: that is where a reader starts.
  static std::vector<CompId> order_of(const Module& m) {
    std::vector<CompId> list = m.computation_post_order();
    std::reverse(list.begin(), list.end());
    return list;
  }

  std::string text(const Module& m, InstId i) const {
    PrintOptions o;
    o.metadata = false;
    return print_instruction(m, i, o);
  }

  // Differences of one kind, but for names, make one line.
  void line(ModuleDiff::Line l, const std::string& kind) {
    std::string key = std::string(1, l.sign) + kind;
    auto [at, fresh] = groups_.try_emplace(key, out_.lines.size());
    std::string name = l.name.empty() ? l.other : l.name;
    if (fresh) {
      out_.lines.push_back(std::move(l));
    } else {
      ++out_.lines[at->second].count;
    }
    out_.lines[at->second].names.push_back(name);
  }

  void header() {
    ModuleDiff::Line l;
    l.kind = ModuleDiff::Line::kModule;
    if (a_.config().is_scheduled != b_.config().is_scheduled)
      l.what.push_back(a_.config().is_scheduled ? "scheduled → not scheduled" : "not scheduled → scheduled");
    const auto &pa = a_.config().entry_params, &pb = b_.config().entry_params;
    for (size_t k = 0; k < std::max(pa.size(), pb.size()); ++k) {
      auto shape = [&](const std::vector<ShapeId>& list) {
        return k < list.size() ? u_.shape_text(list[k]) : std::string("none");
      };
      if (shape(pa) != shape(pb)) l.what.push_back(fmt::format("entry parameter {}: {} → {}", k, shape(pa), shape(pb)));
    }
    auto result = [&](const Module& m) {
      return m.config().entry_result.valid() ? u_.shape_text(m.config().entry_result) : std::string("none");
    };
    if (result(a_) != result(b_)) l.what.push_back(fmt::format("entry result: {} → {}", result(a_), result(b_)));
    if (a_.config().input_output_alias != b_.config().input_output_alias)
      l.what.push_back(
          fmt::format("input_output_alias: {} → {}", a_.config().input_output_alias, b_.config().input_output_alias));
    if (l.what.empty()) return;
    l.name = a_.name(), l.other = b_.name(), l.place = "module";
    line(std::move(l), "module");
  }

  void alone(InstId i, bool first) {
    const Module& m = first ? a_ : b_;
    // A new computation has parameters; that says nothing of its own.
    CompId partner = first ? match_.second(m.parent(i)) : match_.first(m.parent(i));
    if (m.op(i) == Opcode::Parameter && !partner.valid()) return;
    if (unread_[first ? 0 : 1].contains(i)) {
      ++out_.unread;
      return;
    }
    ModuleDiff::Line l;
    l.kind = first ? ModuleDiff::Line::kOnlyFirst : ModuleDiff::Line::kOnlySecond;
    l.sign = first ? '-' : '+';
    (first ? l.name : l.other) = m.inst_name(i);
    l.place = m.comp_name(m.parent(i));
    (first ? l.first : l.second) = text(m, i);
    ++(first ? out_.removed : out_.added);
    std::string kind = fmt::format("{} {}", op_text(m.op(i)), u_.shape_text(m.shape_id(i)));
    for (const auto& [key, value] : attribute_texts(m, i))
      if (!names_computation(m, i, key)) kind += key + value;
    line(std::move(l), kind);
  }

  void moved(InstId x, InstId y) {
    ModuleDiff::Line l;
    l.kind = ModuleDiff::Line::kMoved, l.sign = '>';
    l.name = a_.inst_name(x), l.other = b_.inst_name(y);
    l.place = fmt::format("{} → {}", a_.comp_name(a_.parent(x)), b_.comp_name(b_.parent(y)));
    l.first = text(a_, x), l.second = text(b_, y);
    if (a_.shape_id(x) != b_.shape_id(y)) l.what.push_back(shapes(x, y));
    ++out_.moved;
    // fused_computation.3 and fused_computation.17 are the same kind of place.
    std::string kind = fmt::format("{} {} {} {}", op_text(a_.op(x)), u_.shape_text(b_.shape_id(y)),
                                   root_of(a_.comp_name(a_.parent(x))), root_of(b_.comp_name(b_.parent(y))));
    line(std::move(l), kind);
  }

  // The name without its numbers.
  static std::string_view root_of(std::string_view name) {
    size_t end = name.size();
    while (end > 0 &&
           (isdigit(static_cast<unsigned char>(name[end - 1])) || name[end - 1] == '.' || name[end - 1] == '_'))
      --end;
    return end ? name.substr(0, end) : name;
  }

  static bool names_computation(const Module& m, InstId i, const std::string& key) {
    for (const auto& [k, value] : m.attrs(i).list)
      if (attr_text(k) == key)
        return std::holds_alternative<CompId>(value) || std::holds_alternative<std::vector<CompId>>(value);
    return key == "true_computation" || key == "false_computation" || key == "branch_computations";
  }

  std::string shapes(InstId x, InstId y) const {
    const Shape &s = a_.shape(x), &t = b_.shape(y);
    if (u_.shape_text_plain(a_.shape_id(x)) != u_.shape_text_plain(b_.shape_id(y)) || !s.is_array())
      return fmt::format("shape: {} → {}", u_.shape_text(a_.shape_id(x)), u_.shape_text(b_.shape_id(y)));
    auto layout = [&](const Shape& shape, ShapeId id) {
      return shape.has_layout ? u_.shape_text(id).substr(u_.shape_text_plain(id).size()) : std::string("none");
    };
    return fmt::format("layout: {} → {}", layout(s, a_.shape_id(x)), layout(t, b_.shape_id(y)));
  }

  void changed(InstId x, InstId y) {
    ModuleDiff::Line l;
    std::string kind = std::string(op_text(a_.op(x)));
    if (a_.op(x) != b_.op(y)) l.what.push_back(fmt::format("opcode: {} → {}", op_text(a_.op(x)), op_text(b_.op(y))));
    if (a_.shape_id(x) != b_.shape_id(y)) l.what.push_back(shapes(x, y));
    if (a_.op(x) == Opcode::Constant && b_.op(y) == Opcode::Constant && a_.literal_id(x) != b_.literal_id(y) &&
        a_.shape_id(x) == b_.shape_id(y))
      l.what.push_back(fmt::format("literal: {} → {}", literal_text(u_, a_.literal_id(x), false),
                                   literal_text(u_, b_.literal_id(y), false)));
    if (a_[x].attrs != b_[y].attrs) attributes(x, y, l);
    for (const std::string& w : l.what) kind += w + ";";
    std::vector<InstId> ox(a_.operands(x).begin(), a_.operands(x).end()),
        oy(b_.operands(y).begin(), b_.operands(y).end());
    if (ox.size() != oy.size()) {
      l.what.push_back(fmt::format("operands: {} → {}", ox.size(), oy.size()));
      kind += l.what.back();
    }
    for (size_t k = 0; k < ox.size() && k < oy.size(); ++k) {
      if (match_.second(ox[k]) == oy[k] || match_.same_value(ox[k], oy[k])) continue;
      l.what.push_back(fmt::format("operand {}: {} → {}", k, a_.inst_name(ox[k]), b_.inst_name(oy[k])));
      kind += fmt::format("operand {}: {} → {};", k, op_text(a_.op(ox[k])), op_text(b_.op(oy[k])));
    }
    size_t cx = a_.control_preds(x).size(), cy = b_.control_preds(y).size();
    if (cx != cy) l.what.push_back(fmt::format("control predecessors: {} → {}", cx, cy)), kind += l.what.back();
    if (a_.is_root(x) != b_.is_root(y)) l.what.push_back(a_.is_root(x) ? "root → not root" : "not root → root");
    if (l.what.empty()) return;
    if (l.what.size() == 1) kind += l.what[0].starts_with("root") || l.what[0].starts_with("not root") ? l.what[0] : "";
    l.name = a_.inst_name(x), l.other = b_.inst_name(y), l.place = a_.comp_name(a_.parent(x));
    l.first = text(a_, x), l.second = text(b_, y);
    ++out_.modified;
    line(std::move(l), kind);
  }

  // Long values (backend configs) differ in a word: what they share is left out.
  static std::string parting(const std::string& key, const std::string& one, const std::string& two) {
    constexpr size_t kLong = 60, kKeep = 24;
    if (one.size() < kLong || two.size() < kLong) return fmt::format("{}: {} → {}", key, one, two);
    size_t head = 0, tail = 0, most = std::min(one.size(), two.size());
    while (head < most && one[head] == two[head]) ++head;
    while (tail < most - head && one[one.size() - 1 - tail] == two[two.size() - 1 - tail]) ++tail;
    head -= std::min(head, kKeep), tail -= std::min(tail, kKeep / 2);
    auto part = [&](const std::string& text) {
      return fmt::format("{}{}{}", head ? "…" : "", text.substr(head, text.size() - head - tail), tail ? "…" : "");
    };
    return fmt::format("{}: {} → {}", key, part(one), part(two));
  }

  void attributes(InstId x, InstId y, ModuleDiff::Line& l) const {
    auto ta = attribute_texts(a_, x), tb = attribute_texts(b_, y);
    for (const char* no_matter : {"frontend_attributes", "origin", "statistics"})
      ta.erase(no_matter), tb.erase(no_matter);
    std::map<std::string, std::string> keys = ta;
    keys.insert(tb.begin(), tb.end());
    for (const auto& [key, unused] : keys) {
      auto va = ta.find(key), vb = tb.find(key);
      std::string one = va == ta.end() ? "none" : va->second, two = vb == tb.end() ? "none" : vb->second;
      if (names_computation(a_, x, key) && names_computation(b_, y, key)) continue;
      if (one != two) l.what.push_back(parting(key, one, two));
    }
    // Callees that are partners tell their differences themselves.
    const auto &ca = a_.called(x), &cb = b_.called(y);
    if (ca.size() != cb.size()) l.what.push_back(fmt::format("called computations: {} → {}", ca.size(), cb.size()));
    for (size_t k = 0; k < ca.size() && k < cb.size(); ++k)
      if (match_.second(ca[k]) != cb[k])
        l.what.push_back(fmt::format("calls {} → {}", a_.comp_name(ca[k]), b_.comp_name(cb[k])));
  }

  const Module &a_, &b_;
  const Universe& u_;
  ModuleDiff& out_;
  Matching match_;
  std::vector<bool> moved_from_, moved_to_;
  std::unordered_set<InstId> unread_[2];  // that do not count
  std::unordered_map<std::string, size_t> groups_;
};

}  // namespace

bool same_structure(const Module& a, const Module& b, UnreadElements unread) {
  if (header_of(a) != header_of(b)) return false;
  Fingerprints::Options options;
  options.any_order = true, options.unread_elements = unread == UnreadElements::kCount;
  return Fingerprints(a, options).computation(a.entry()) == Fingerprints(b, options).computation(b.entry());
}

ModuleDiff diff_modules(const Module& a, const Module& b, UnreadElements unread) {
  ModuleDiff out;
  out.same = same_structure(a, b, unread);
  out.same_text = out.same && print_module(a) == print_module(b);
  if (!out.same) Differ(a, b, Matching(a, b), out, unread).run();
  return out;
}

ModuleDiff diff_modules(const Module& a, const Module& b, std::span<const Heir> heirs) {
  ModuleDiff out;
  out.same = same_structure(a, b);
  out.same_text = out.same && print_module(a) == print_module(b);
  if (!out.same) Differ(a, b, Matching(a, b, heirs), out).run();
  return out;
}

std::vector<TextDiffLine> diff_texts(const std::string& a, const std::string& b, size_t context) {
  auto split = [](const std::string& text) {
    std::vector<std::string> out;
    for (size_t at = 0; at < text.size();) {
      size_t end = std::min(text.find('\n', at), text.size());
      out.push_back(text.substr(at, end - at));
      at = end + 1;
    }
    return out;
  };
  dtl::Diff<std::string> diff(split(a), split(b));
  diff.onHuge();
  diff.compose();
  auto script = diff.getSes().getSequence();
  std::vector<TextDiffLine> out;
  std::vector<bool> shown(script.size(), false);
  for (size_t k = 0; k < script.size(); ++k)
    if (script[k].second.type != dtl::SES_COMMON)
      for (size_t near = k - std::min(k, context); near < script.size() && near <= k + context; ++near)
        shown[near] = true;
  for (size_t k = 0; k < script.size(); ++k) {
    if (!shown[k]) continue;
    if (!out.empty() && !shown[k - 1]) out.push_back({'@', ""});
    auto type = script[k].second.type;
    out.push_back({type == dtl::SES_COMMON ? ' ' : type == dtl::SES_ADD ? '+' : '-', script[k].first});
  }
  return out;
}

}  // namespace hlo
