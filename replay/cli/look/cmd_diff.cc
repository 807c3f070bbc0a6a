// diff: two modules, two stages, or two folders stage by stage.
#include <algorithm>
#include <dtl/dtl.hpp>
#include <filesystem>
#include <map>

#include "ir/print/print.h"
#include "parser/parser.h"
#include "parser/proto/proto_reader.h"
#include "replay/cli/command.h"
#include "replay/cli/json_output.h"
#include "replay/cli/other_files.h"
#include "replay/compare/diff.h"
#include "replay/judge/arguments/elided.h"
#include "replay/judge/diverge.h"
#include "replay/os/confined_path.h"
#include "replay/os/files.h"
#include "replay/os/terminal.h"
#include "replay/record/files/run.h"
#include "replay/report/measured/profile.h"
#include "replay/report/overview/answers.h"
#include "viewer/pages.h"

namespace hlo {
namespace {

std::string clipped(const std::string& text) {
  constexpr size_t kMost = 240;
  if (text.size() <= kMost) return text;
  size_t end = kMost;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0) == 0x80) --end;  // not inside a character
  return text.substr(0, end) + " …";
}

struct Stage {
  std::string name, file;
};

std::vector<Stage> stages_of(const Recording& r) {
  std::vector<Stage> out;
  for (const StageRow& row : r.rows)
    if (row.file.ends_with(".txt") || row.file.ends_with(".hlo")) out.push_back({row.name(), row.file});
  return out;
}

std::unique_ptr<Module> parsed(const std::string& path, const std::string& text,
                               const std::shared_ptr<Universe>& universe) {
  ParseOptions o;
  o.file = path;
  return parse_text(text, universe, o);
}

// What a page or a JSON object is made of, and the last line.
struct Outcome {
  bool same = true;
  std::string first, second;  // labels
  ModuleDiff diff;
  std::string last;
  Json json;
  size_t unread_stages = 0;  // that differ in elements of tuples that nobody reads alone
};

// Passes that choose back ends and tiles, since 2026 and before.
constexpr std::string_view kAutotuners[] = {"config-assigner", "autotuner", "gemm-fusion-autotuner"};

// Two recordings, their stages paired by name in order: the first place where they part.
Outcome diff_recordings(const Recording& a, const Recording& b) {
  std::vector<Stage> sa = stages_of(a), sb = stages_of(b);
  std::vector<std::string> na, nb;
  for (const Stage& s : sa) na.push_back(s.name);
  for (const Stage& s : sb) nb.push_back(s.name);
  dtl::Diff<std::string> names(na, nb);
  names.compose();
  Outcome out;
  size_t i = 0, j = 0, pairs = 0;
  const Stage *last_a = nullptr, *last_b = nullptr;
  // A stage that one side alone has, with where the other side stood: its twin may come later, so what both have
  // decides whether they part, and these say where.
  struct Lone {
    const Stage *a, *b;
    bool first;
  };
  std::vector<Lone> lone;
  auto compare = [&](const Stage& x, const Stage& y) {
    std::string pa = confined_path(a.folder, x.file), pb = confined_path(b.folder, y.file);
    std::string ta = read_file(pa), tb = read_file(pb);
    if (ta == tb) return true;
    auto universe = std::make_shared<Universe>();
    auto ma = parsed(pa, ta, universe), mb = parsed(pb, tb, universe);
    if (same_structure(*ma, *mb)) return true;
    // Releases differ in whether they print elements that nobody reads: a note, no difference.
    if (same_structure(*ma, *mb, UnreadElements::kIgnore)) {
      ++out.unread_stages;
      return true;
    }
    out.same = false, out.diff = diff_modules(*ma, *mb, UnreadElements::kIgnore);
    out.first = fmt::format("{} ({})", x.name, x.file), out.second = fmt::format("{} ({})", y.name, y.file);
    return false;
  };
  for (const auto& [element, info] : names.getSes().getSequence()) {
    if (interrupted()) fail(FailureKind::kUsage, "interrupted");
    if (info.type != dtl::SES_ADD) last_a = &sa[i++];
    if (info.type != dtl::SES_DELETE) last_b = &sb[j++];
    if (info.type != dtl::SES_COMMON) {
      lone.push_back({last_a, last_b, info.type == dtl::SES_DELETE});
      continue;
    }
    ++pairs;
    if (!compare(*last_a, *last_b)) break;
    lone.clear();
  }
  if (out.same && last_a && last_b && !lone.empty()) compare(*last_a, *last_b);
  size_t stages = std::max(sa.size(), sb.size());
  if (out.same) {
    out.last = na == nb ? fmt::format("same: {} stages", stages)
                        : fmt::format("same at {} stages that both have, and at the end; {} and {} in all", pairs,
                                      sa.size(), sb.size());
    if (out.unread_stages)
      out.last +=
          fmt::format("; note: in {} of them one side alone has get-tuple-elements without users", out.unread_stages);
    out.json = {{"same", true}, {"stages", pairs}};
    return out;
  }
  out.last = "first stage that differs: " + (out.first == out.second ? out.first : out.first + " and " + out.second);
  for (const Lone& l : lone) {
    if (!l.a || !l.b || compare(*l.a, *l.b)) continue;
    const Stage& own = l.first ? *l.a : *l.b;
    const char* side = l.first ? "first" : "second";
    out.last = fmt::format("first stage that differs: {} ({}), which the {} alone has", own.name, own.file, side);
    out.json["only_in"] = side;
    break;
  }
  // Its pass asks a device, not the program.
  const bool asked = std::any_of(std::begin(kAutotuners), std::end(kAutotuners), [&](std::string_view pass) {
    return out.first.find(fmt::format("after_{}", pass)) != std::string::npos;
  });
  if (asked)
    out.last += fmt::format(
        "\nthat is what the autotuner chose: `hlo-replay tuned {} {}` shows it, and what it does to numbers", a.folder,
        b.folder);
  out.json.update(diff_json(out.diff));
  out.json["first_stage"] = out.first, out.json["second_stage"] = out.second, out.json["stages_before"] = pairs - 1;
  return out;
}

}  // namespace

std::string first_difference(const Recording& a, const Recording& b, ModuleDiff* diff) {
  Outcome o = diff_recordings(a, b);
  *diff = std::move(o.diff);
  return o.last;
}

void show_module_diff(const ModuleDiff& d, size_t most) {
  std::string place;
  size_t shown = 0;
  for (const auto& l : d.lines) {
    if (shown == most) {
      fmt::print("… and {} more kinds of difference (--most)\n", d.lines.size() - most);
      break;
    }
    ++shown;
    if (l.place != place) fmt::print("{}:\n", place = l.place);
    std::string more =
        l.count > 1
            ? fmt::format(
                  "   [× {}: {}{}]", l.count,
                  fmt::join(l.names.begin(),
                            l.names.begin() + std::min<ptrdiff_t>(static_cast<ptrdiff_t>(l.names.size()), 4), ", "),
                  l.names.size() > 4 ? ", …" : "")
            : "";
    switch (l.kind) {
      case ModuleDiff::Line::kOnlyFirst:
        fmt::print("- {}{}\n", clipped(l.first), more);
        break;
      case ModuleDiff::Line::kOnlySecond:
        fmt::print("+ {}{}\n", clipped(l.second), more);
        break;
      case ModuleDiff::Line::kMoved:
        fmt::print("> {}{}{}\n", clipped(l.second),
                   l.what.empty() ? "" : fmt::format("   ({})", fmt::join(l.what, "; ")), more);
        break;
      default:
        fmt::print("~ {}{}{}\n", l.name, l.other == l.name || l.other.empty() ? "" : " = " + l.other, more);
        for (const std::string& w : l.what) fmt::print("    {}\n", clipped(w));
        if (!l.first.empty()) fmt::print("    - {}\n    + {}\n", clipped(l.first), clipped(l.second));
    }
  }
  if (!d.names_agree) fmt::print("names differ throughout: instructions were matched by structure alone\n");
}

namespace {

// Two traces: where the time went in the one and in the other.
int diff_profiles(const DiffArgs& a) {
  auto read = [](const std::string& file) {
    std::string text = read_file(file);
    return read_trace(text.starts_with("\x1f\x8b") ? gunzip(text, file) : text, file);
  };
  TraceTimes x = read(a.a), y = read(a.b);
  Json json{{"kind", "profile"}, {"first_s", x.all}, {"second_s", y.all}};
  auto table = [&](const char* title, const std::map<std::string, double>& p, const std::map<std::string, double>& q) {
    std::map<std::string, std::pair<double, double>> both;
    for (const auto& [k, v] : p) both[k].first = v;
    for (const auto& [k, v] : q) both[k].second = v;
    std::vector<std::pair<std::string, std::pair<double, double>>> rows(both.begin(), both.end());
    std::stable_sort(rows.begin(), rows.end(), [](const auto& s, const auto& t) {
      return std::abs(s.second.second - s.second.first) > std::abs(t.second.second - t.second.first);
    });
    Json list = Json::array();
    if (!a.json) fmt::print("{:>12} {:>12} {:>12} {:>7}  by {}\n", "first ms", "second ms", "more ms", "ratio", title);
    for (size_t k = 0; k < rows.size(); ++k) {
      auto [s, t] = rows[k].second;
      list.push_back({{"name", rows[k].first}, {"first_s", s}, {"second_s", t}});
      if (!a.json && k < a.most)
        fmt::print("{:>12.4f} {:>12.4f} {:>+12.4f} {:>7}  {}\n", s * 1e3, t * 1e3, (t - s) * 1e3,
                   s > 0 ? fmt::format("{:.2f}", t / s) : "new", rows[k].first);
    }
    json[std::string("by_") + title] = list;
  };
  table("class", x.by_class, y.by_class);
  table("op_name", x.by_op, y.by_op);
  double ratio = x.all > 0 ? y.all / x.all : 0;
  bool same = ratio > 0.95 && ratio < 1.05;
  json["ratio"] = ratio, json["same"] = same;
  if (a.json)
    print_json(json);
  else
    fmt::print("{}: {:.4f} ms and {:.4f} ms, the second takes {:.2f} times the first\n",
               same ? "same within 5 %" : "different", x.all * 1e3, y.all * 1e3, ratio);
  return same ? kYes : kNo;
}

// Two stages of one recording are compared by id. False where they are something else.
bool stages_of_one_recording(const std::string& a, const std::string& b, std::unique_ptr<Module>* first,
                             std::unique_ptr<Module>* second, ModuleDiff* diff) {
  auto sa = split_selector(a), sb = split_selector(b);
  if (!sa || !sb || sa->folder != sb->folder || sa->parts.empty() || sb->parts.empty()) return false;
  StageChoice x = select_stage(*sa), y = select_stage(*sb);
  if (x.module.folder != y.module.folder || x.module.module_number != y.module.module_number) return false;
  const Lineage& lineage = x.module.lineage();
  int i = x.module.rows[x.row].stage, j = x.module.rows[y.row].stage;
  if (i < 0 || j < 0) return false;  // one that cannot be read: the text says why
  *first = lineage.module(static_cast<size_t>(i)), *second = lineage.module(static_cast<size_t>(j));
  std::vector<Heir> heirs;
  if (i < j) heirs = lineage.heirs_between(static_cast<size_t>(i), static_cast<size_t>(j));
  if (j < i) {
    heirs = lineage.heirs_between(static_cast<size_t>(j), static_cast<size_t>(i));
    for (Heir& h : heirs) std::swap(h.from, h.to);
  }
  *diff = diff_modules(**first, **second, heirs);
  return true;
}

std::vector<Outcome> diff_folders(const DiffArgs& a) {
  std::vector<Outcome> found;
  if (a.run) fail(FailureKind::kUsage, "--run takes two modules; hlo-replay bisect DIR runs the stages of a folder");
  std::vector<Recording> ra = select_modules(a.a), rb = select_modules(a.b);
  // Modules of one name belong together, in order.
  std::map<std::string, std::vector<const Recording*>> named;
  for (const Recording& r : rb) named[r.module_name].push_back(&r);
  std::map<std::string, size_t> taken;
  size_t lonely = 0;
  for (const Recording& r : ra) {
    auto& list = named[r.module_name];
    size_t k = taken[r.module_name]++;
    const Recording* other = k < list.size() ? list[k] : ra.size() == 1 && rb.size() == 1 ? &rb[0] : nullptr;
    if (!other) {
      ++lonely;
      if (!a.json) fmt::print("module {} is in {} only\n", r.module_name, a.a);
      continue;
    }
    found.push_back(diff_recordings(r, *other));
    found.back().json["module"] = r.module_name;
    if (ra.size() > 1) found.back().last = r.module_name + ": " + found.back().last;
  }
  if (found.empty()) fail(FailureKind::kUsage, "the folders have no module in common");
  if (lonely) found.back().json["modules_without_partner"] = lonely;
  return found;
}

void diff_by_text(const DiffArgs& a, const Module& ma, const Module& mb, Outcome& o) {
  std::vector<TextDiffLine> lines = diff_texts(lossless_text(ma), lossless_text(mb), 2);
  o.same = lines.empty();
  Json list = Json::array();
  size_t minus = 0, plus = 0;
  for (const auto& l : lines) {
    minus += l.sign == '-', plus += l.sign == '+';
    if (a.json)
      list.push_back(std::string(1, l.sign) + l.text);
    else if (l.sign == '@')
      fmt::print("@@\n");
    else
      fmt::print("{}{}\n", l.sign, l.text);
  }
  o.last =
      o.same ? "same text" : fmt::format("different: {} lines only in the first, {} only in the second", minus, plus);
  o.json["text"] = list, o.json["same"] = o.same;
  o.diff.lines.clear();
}

void diff_by_running(const DiffArgs& a, Module& ma, Module& mb, Outcome& o) {
  InputOptions inputs = input_options(a.how);
  inputs.label = inputs.place = a.a;
  std::string elided;
  ElidedConstants::settle_pair(ma, mb, inputs, a.b, &elided);
  if (!elided.empty()) complain("note: " + elided), o.json["elided"] = elided;
  check_supported(ma);
  Session session(ma, inputs);
  JudgeOptions by;
  by.backend = a.how.backend, by.eval = eval_options(a.how), by.tolerance = a.how.tolerance;
  Judgement j = make_judge(by, ma, &session)(mb);
  o.same = j.verdict == Verdict::kGood;
  o.json["results_equal"] = o.same;
  std::string where;
  if (!o.same) {
    o.json["results"] = j.detail;
    Divergence w = first_divergence(ma, mb, session, eval_options(a.how), a.how.tolerance);
    if (w.found) {
      where = fmt::format("; the first value that differs is {}: {}", mb.inst_name(w.bad), w.difference);
      o.json["first_value_that_differs"] = {{"name", mb.inst_name(w.bad)}, {"difference", w.difference}};
    }
  }
  o.last += o.same ? "; results equal" : fmt::format("; results differ: {}{}", j.detail, where);
}

Outcome diff_two(const DiffArgs& a) {
  auto universe = std::make_shared<Universe>();
  // What is run is verified first; what is only compared may be broken.
  auto loaded = [&](const std::string& file) {
    const LoadOptions options{.universe = universe};
    return a.run ? load_verified(file, !a.how.no_verify, nullptr, options) : load(file, options);
  };
  std::unique_ptr<Module> ma, mb;
  Outcome o;
  o.first = a.a, o.second = a.b;
  if (a.run || !stages_of_one_recording(a.a, a.b, &ma, &mb, &o.diff)) {
    ma = loaded(a.a), mb = loaded(a.b);
    o.diff = diff_modules(*ma, *mb);
  }
  o.same = o.diff.same, o.last = in_words(o.diff), o.json = diff_json(o.diff);
  if (a.by == "text") diff_by_text(a, *ma, *mb, o);
  if (a.run) diff_by_running(a, *ma, *mb, o);
  return o;
}

int show_outcomes(const DiffArgs& a, const std::vector<Outcome>& found, bool same) {
  if (a.json) {
    Json list = Json::array();
    for (const Outcome& o : found) list.push_back(complete_difference(complete(o.json, {{"verdict", o.last}})));
    const std::string all = same ? "same" : "different";
    Json out = list[0];  // of several modules this object tells of all, `modules` of each
    if (found.size() > 1) out = complete_difference({{"same", same}, {"verdict", all}, {"modules", list}});
    out["modules_without_partner"] = found.back().json.value("modules_without_partner", 0);
    if (!a.compilations.is_null()) out["compilations"] = a.compilations;
    print_json(out);
    return same ? kYes : kNo;
  }
  for (const Outcome& o : found) {
    show_module_diff(o.diff, a.most);
    if (!o.same && o.json.contains("first_stage")) fmt::print("{}\n", in_words(o.diff));
    fmt::print("{}\n", o.last);
  }
  if (found.size() > 1)
    fmt::print("{}\n",
               same ? fmt::format("same: {} modules", found.size())
                    : fmt::format("{} of {} modules differ",
                                  std::count_if(found.begin(), found.end(), [](const Outcome& o) { return !o.same; }),
                                  found.size()));
  return same ? kYes : kNo;
}

}  // namespace

int cmd_diff(const DiffArgs& a) {
  if (a.engine.installed()) return diff_installed(a);
  if (a.b.empty()) fail(FailureKind::kUsage, "diff takes two, or one with --engine=installed and --flags-a, --flags-b");
  check_output_file(a.html, a.force, {a.a, a.b});
  if (a.profile) return diff_profiles(a);
  int code = kYes;
  if (diff_other_files(a, &code)) return code;
  std::vector<Outcome> found;
  if (a.by != "structure" && a.by != "text") fail(FailureKind::kUsage, "--by is structure or text, not '{}'", a.by);
  // Of a folder beside something else the else is at fault where it cannot be read.
  if (const bool first = names_modules(a.a); first != names_modules(a.b)) load(first ? a.b : a.a);
  if (names_modules(a.a) && names_modules(a.b))
    found = diff_folders(a);
  else
    found.push_back(diff_two(a));
  bool same = std::all_of(found.begin(), found.end(), [](const Outcome& o) { return o.same; });
  const Outcome& worst = *std::find_if(found.begin(), found.end() - 1, [](const Outcome& o) { return !o.same; });
  if (!a.html.empty()) {
    write_output_file(a.html, diff_page(worst.first, worst.second, worst.last, worst.diff), a.force);
  }
  return show_outcomes(a, found, same);
}

}  // namespace hlo
