#include "replay/diff.h"

#include <map>

#include "ir/fingerprint.h"
#include "ir/print.h"
#include "replay/recording.h"

namespace hlo {

ModuleDiff diff_modules(const Module& a, const Module& b) {
  ModuleDiff out;
  Fingerprints fa(a), fb(b);
  const Universe& u = a.u();
  auto layout = [&](const Module& m) {
    std::string text = m.config.is_scheduled ? "scheduled " : "";
    for (ShapeId s : m.config.entry_params) text += u.shape_text(s) + ",";
    return text + u.shape_text(m.config.entry_result) + m.config.input_output_alias;
  };
  out.same = fa.computation(a.entry()) == fb.computation(b.entry()) && layout(a) == layout(b);
  out.same_text = out.same && print_module(a) == print_module(b);
  if (out.same) return out;
  auto by_name = [](const Module& m) {
    std::map<std::string, InstId> map;
    for (CompId c : m.computations())
      for (InstId i : m.comp(c).order)
        if (m.alive(i)) map.emplace(m.inst_name(i), i);
    return map;
  };
  PrintOptions print;
  print.metadata = false;
  auto ma = by_name(a), mb = by_name(b);
  StageIndex ia(a), ib(b);
  auto d = StageIndex::compare(ia, ib);
  auto line = [&](char sign, StrId name) {
    ModuleDiff::Line l{sign, std::string(u.text(name)), "", ""};
    if (auto f = ma.find(l.name); f != ma.end()) l.first = print_instruction(a, f->second, print);
    if (auto f = mb.find(l.name); f != mb.end()) l.second = print_instruction(b, f->second, print);
    out.lines.push_back(std::move(l));
  };
  for (StrId n : d.removed) line('-', n);
  for (StrId n : d.added) line('+', n);
  for (StrId n : d.modified) line('~', n);
  return out;
}

}  // namespace hlo
