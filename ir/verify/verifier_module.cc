// Rules that hold between instructions: bodies of fusions and asynchronous calls, shardings of loops and branches,
// composite calls, original values, ends of transfers, layouts of reductions over devices
// (xla/service/hlo_verifier.cc, xla/hlo/ir/hlo_instruction.cc).
#include <charconv>
#include <map>
#include <optional>

#include "ir/sharding/sharding.h"
#include "ir/verify/verifier.h"
#include "ir/verify/verifier_rules.h"

namespace hlo {
namespace {

using Told = std::function<void(std::string_view rule, InstId, std::string)>;

// Of `{a="b",c="d"}` what stands behind `key=`, quotes taken off.
std::optional<std::string_view> attribute_of(std::string_view text, std::string_view key) {
  for (size_t at = text.find(key); at != std::string_view::npos; at = text.find(key, at + 1)) {
    if (at && text[at - 1] != '{' && text[at - 1] != ',' && text[at - 1] != ' ' && text[at - 1] != '"') continue;
    size_t from = at + key.size();
    if (from < text.size() && text[from] == '"') ++from;
    if (from + 1 >= text.size() || text[from] != '=') continue;
    ++from;
    if (text[from] != '"') return text.substr(from, text.find_first_of(",}", from) - from);
    size_t end = from + 1;
    while (end < text.size() && text[end] != '"') end += text[end] == '\\' ? 2 : 1;
    return text.substr(from + 1, std::min(end, text.size()) - from - 1);
  }
  return std::nullopt;
}

class BetweenInstructions {
 public:
  BetweenInstructions(const Module& m, const Told& told) : m_(m), u_(m.u()), told_(told) {}

  void run() {
    for (CompId c : m_.computations())
      for (InstId i : m_.comp(c).order)
        if (m_.alive(i)) instruction(i);
  }

 private:
  void instruction(InstId i) {
    const AttrSet& a = m_.attrs(i);
    if (StrId origin = a.text(Attr::origin); origin.valid()) original_value(i, u_.text(origin));
    switch (m_.op(i)) {
      case Opcode::Call:
        return composite(i);
      case Opcode::Fusion:
        return fusion(i);
      case Opcode::AsyncStart:
        return async_body(i);
      case Opcode::While: {
        const Computation &body = m_.comp(a.comp(Attr::body)), &condition = m_.comp(a.comp(Attr::condition));
        return one_sharding(i, {i, body.root, body.params[0], condition.params[0]});
      }
      case Opcode::Conditional: {
        std::vector<InstId> all = {i};
        for (CompId c : a.called) all.push_back(m_.comp(c).root);
        return one_sharding(i, all);
      }
      case Opcode::Send:
      case Opcode::Recv:
        one_channel(i);
        return transfer(i);
      case Opcode::AllReduce:
      case Opcode::AllReduceStart:
        if (!reduction_.valid()) reduction_ = i;
        if (a.flag(Attr::constrain_layout) != m_.attrs(reduction_).flag(Attr::constrain_layout))
          told_("layouts", i,
                fmt::format("and {}: one constrains its layout, the other does not", m_.inst_name(reduction_)));
        return;
      default:
        return;
    }
  }

  void composite(InstId i) {
    if (!m_.attrs(i).flag(Attr::is_composite)) return;
    StrId text = m_.attrs(i).text(Attr::frontend_attributes);
    std::string_view all = text.valid() ? std::string_view(u_.text(text)) : std::string_view();
    auto name = attribute_of(all, "composite.name"), attributes = attribute_of(all, "composite.attributes"),
         version = attribute_of(all, "composite.version");
    if (!name || name->empty())
      return told_("calls", i, "is a composite without composite.name in frontend_attributes");
    if (attributes && attributes->empty()) return told_("calls", i, "is a composite of empty composite.attributes");
    if (!version) return;
    int64_t number = -1;
    auto [end, code] = std::from_chars(version->data(), version->data() + version->size(), number);
    if (code != std::errc() || end != version->data() + version->size() || number < 0)
      told_("calls", i, fmt::format("is a composite of version '{}', which is no count", *version));
  }

  void fusion(InstId i) {
    const Computation& body = m_.comp(m_.attrs(i).comp(Attr::calls));
    for (InstId inner : body.order) {
      if (!m_.alive(inner)) continue;
      bool used = !m_.users(inner).empty();
      if (inner == body.root && used)
        return told_("fusion", i, fmt::format("continues after its root {}", m_.inst_name(inner)));
      if (inner != body.root && !used && !m_.has_side_effect(inner))
        return told_("fusion", i, fmt::format("holds {}, which nothing uses", m_.inst_name(inner)));
    }
  }

  // Several operations at once are sends and receives alone, a group of collectives, or what waits for values; what
  // runs on a thread of its own is that thread's business.
  void async_body(InstId i) {
    const Computation& body = m_.comp(m_.attrs(i).comp(Attr::calls));
    StrId text = m_.attrs(i).text(Attr::frontend_attributes);
    if (body.thread.valid() || (text.valid() && attribute_of(u_.text(text), "_collectives_group"))) return;
    bool transfers = true;
    size_t others = 0;
    for (InstId inner : body.order) {
      if (!m_.alive(inner) || m_.op(inner) == Opcode::Parameter) continue;
      Opcode op = m_.op(inner);
      transfers &= op == Opcode::Send || op == Opcode::Recv || op == Opcode::SendDone || op == Opcode::RecvDone ||
                   op == Opcode::Tuple || op == Opcode::GetTupleElement;
      others += inner != body.root && op != Opcode::GetTupleElement;
    }
    if (others && !transfers)
      told_("calls", i, fmt::format("starts {} more operations than the root of its computation", others));
  }

  void one_sharding(InstId i, const std::vector<InstId>& all) {
    InstId first;
    for (InstId at : all) {
      StrId text = m_.attrs(at).text(Attr::sharding);
      if (!text.valid()) continue;
      if (!first.valid()) {
        first = at;
        continue;
      }
      std::string one = without_metadata(u_.text(m_.attrs(first).text(Attr::sharding))),
                  other = without_metadata(u_.text(text));
      if (one != other)
        return told_("sharding", i,
                     fmt::format("shards what it carries as {} at {} and as {} at {}", one, m_.inst_name(first), other,
                                 m_.inst_name(at)));
    }
  }

  void transfer(InstId i) {
    for (InstId user : m_.users(i)) {
      if (m_.op(user) != Opcode::SendDone && m_.op(user) != Opcode::RecvDone) continue;
      const AttrSet &mine = m_.attrs(i), &its = m_.attrs(user);
      if (mine.flag(Attr::is_host_transfer) != its.flag(Attr::is_host_transfer))
        told_("pairs", i,
              fmt::format("and its end {}: only one of them is a transfer with the host", m_.inst_name(user)));
      else if (mine.has(Attr::channel_id) && its.has(Attr::channel_id) &&
               mine.integer(Attr::channel_id) != its.integer(Attr::channel_id))
        told_("pairs", i,
              fmt::format("has channel {}, its end {} channel {}", mine.integer(Attr::channel_id), m_.inst_name(user),
                          its.integer(Attr::channel_id)));
    }
  }

  // Transfers with the host on one channel are one, but for what they send.
  void one_channel(InstId i) {
    const AttrSet& a = m_.attrs(i);
    if (!a.flag(Attr::is_host_transfer) || !a.has(Attr::channel_id)) return;
    InstId first = host_.emplace(a.integer(Attr::channel_id), i).first->second;
    if (first == i) return;
    bool same = m_.op(first) == m_.op(i) && m_[first].attrs == m_[i].attrs &&
                m_.operand_count(first) == m_.operand_count(i) && u_.compatible(m_.shape_id(first), m_.shape_id(i));
    for (size_t k = 0; same && k < m_.operand_count(i); ++k)
      same = u_.compatible(m_.shape_id(m_.operand(first, k)), m_.shape_id(m_.operand(i, k)));
    if (!same)
      told_("pairs", i,
            fmt::format("and {} are unlike transfers with the host on channel {}", m_.inst_name(first),
                        a.integer(Attr::channel_id)));
  }

  // `{({"a"}, ({"b"}, {"c" {0}}))}`: a value for each leaf. What has another form is left alone.
  void original_value(InstId i, std::string_view text) {
    if (!text.starts_with("{(") && !text.starts_with("{{")) return;
    size_t at = 1;
    bool known = true;
    bool fits = original_part(text, at, m_.shape_id(i), known);
    if (known && !fits)
      told_("origin", i,
            fmt::format("has an original value of another form than {}", u_.shape_text_plain(m_.shape_id(i))));
  }
  bool original_part(std::string_view text, size_t& at, ShapeId s, bool& known) const {
    auto space = [&] {
      while (at < text.size() && text[at] == ' ') ++at;
    };
    space();
    const Shape& shape = u_[s];
    if (at < text.size() && text[at] == '{') {
      int depth = 0;
      do {
        if (text[at] == '"')
          for (++at; at < text.size() && text[at] != '"'; ++at)
            if (text[at] == '\\') ++at;
        if (at < text.size()) depth += text[at] == '{' ? 1 : text[at] == '}' ? -1 : 0;
        ++at;
      } while (at < text.size() && depth > 0);
      return !shape.is_tuple();
    }
    if (at >= text.size() || text[at] != '(') return known = false, true;
    if (!shape.is_tuple()) return false;
    ++at;
    for (size_t k = 0;; ++k) {
      space();
      if (at < text.size() && text[at] == ')') {
        ++at;
        return k == shape.elements.size();
      }
      if (k && at < text.size() && text[at] == ',') ++at;
      space();
      if (at < text.size() && text[at] == ')') continue;
      if (k >= shape.elements.size()) return false;
      if (!original_part(text, at, shape.elements[k], known) || !known) return false;
    }
  }

  const Module& m_;
  Universe& u_;
  const Told& told_;
  InstId reduction_;
  std::map<int64_t, InstId> host_;  // by channel, the first transfer
};

}  // namespace

std::string_view verify_hint(std::string_view rule) {
  static const std::map<std::string_view, std::string_view> kHints = {
      {"aliasing", "both ends are there, of one size, and each is named once"},
      {"bitcast", "a bitcast keeps the bytes; convert and reshape do not"},
      {"buffers", "custom-calls to Pin, CreateBuffer and Unpin make and end buffers; between them each has one writer"},
      {"calls", "what a computation takes and returns is what its caller passes and gives"},
      {"collectives",
       "replica_groups name each of n devices once, 0 to n-1; n is replica_count, num_partitions or their product, as "
       "channel_id and use_global_device_ids say"},
      {"entry", "entry_computation_layout repeats the entry's parameters and result"},
      {"fusion", "a fusion's body is its own, and all in it leads to its root"},
      {"layouts", "--layouts=free leaves layouts out"},
      {"origin", "an original value has a part for each leaf of the result"},
      {"pairs", "a start is read by its own done alone, a done reads its own start"},
      {"sharding",
       "devices=[2,2]<=[4] has a number of tiles for each dimension of the array, and as many tiles as devices, each "
       "of them once"},
      {"threads", "async-start alone calls what runs on another thread"},
  };
  auto at = kHints.find(rule);
  return at == kHints.end() ? std::string_view() : at->second;
}

void verify_between(const Module& m, const Told& told) { BetweenInstructions(m, told).run(); }

}  // namespace hlo
