#include "viewer/layout/svg.h"

#include <algorithm>

#include "dump/palette.h"
#include "dump/xml_text.h"
#include "viewer/layout/labels.h"

namespace hlo {
namespace {

std::string_view mark_colour(Mark mark) {
  switch (mark) {
    case Mark::kNew:
      return "#00a040";
    case Mark::kFused:
      return "#6a3fb5";
    case Mark::kChanged:
      return "#e65100";
    case Mark::kLeaves:
      return "#c62828";
    default:
      return "";
  }
}

// Markup has no control characters; text that has them is shown without.
std::string printable(std::string_view text, size_t letters) {
  std::string out;
  for (char c : shown_text(text, letters)) out += static_cast<unsigned char>(c) < ' ' ? ' ' : c;
  return xml_escaped(out);
}

struct SvgWriter {
  const Module& m;
  const Drawing& d;
  std::string out;

  template <class... Args>
  void put(fmt::format_string<Args...> text, Args&&... args) {
    fmt::format_to(std::back_inserter(out), text, std::forward<Args>(args)...);
  }
  void frame(const DrawnBox& b, std::string_view fill, std::string_view stroke, float round) {
    std::string_view mark = mark_colour(b.change);
    put(R"(<rect x="{:.1f}" y="{:.1f}" width="{:.1f}" height="{:.1f}" rx="{}" fill="{}" stroke="{}"{}/>)", b.x, b.y,
        b.w, b.h, round, fill, mark.empty() ? stroke : mark, mark.empty() ? "" : R"( stroke-width="2.5")");
  }
  void title(const DrawnBox& b) {
    put("<title>{}{}{}</title>", printable(b.label, 300), b.opcode.empty() ? "" : "\n" + b.opcode,
        "\n" + printable(b.detail, 300));
  }
  void open_box(const DrawnBox& b, size_t depth) {
    put("<g>"), title(b);
    frame(b, depth % 2 ? "#f4f6f8" : "#fdfdfd", "#b8c0c8", 8);
    put(R"(<text x="{:.1f}" y="{:.1f}" font-size="12" font-weight="bold" fill="#37474f">{}{}</text></g>)", b.x + 9,
        b.y + 16, printable(b.label, static_cast<size_t>(std::max(4.0f, (b.w - 20) / 6.6f))),
        b.times > 1 ? fmt::format(" ×{}", b.times) : "");
    out += '\n';
  }
  void box(const DrawnBox& b) {
    Colour colour{"group", "#e3ecf5", "#8aa4bd", "#000000"};
    if (b.id.valid())
      colour = colour_of(m, b.id);
    else if (b.cls == DrawnClass::kParameter)
      colour = {"parameters", "#ffe0b2", "#cbae82", "#000000"};
    put("<g>"), title(b);
    if (b.times > 1)
      for (int k = 2; k > 0; --k) {
        DrawnBox behind = b;
        behind.x += static_cast<float>(3 * k), behind.y += static_cast<float>(3 * k);
        frame(behind, colour.fill, colour.stroke, 6);
      }
    frame(b, colour.fill, colour.stroke, b.kind == BoxKind::kFolded ? 6 : 3);
    auto letters = static_cast<size_t>(std::max(3.0f, (b.w - 6) / 6.2f));
    float middle = b.x + b.w / 2, top = b.y + (b.h - 28) / 2;
    std::string label =
        b.times > 1 ? fmt::format("{} ×{}", printable(b.label, letters - 4), b.times) : printable(b.label, letters);
    put(R"(<text x="{:.1f}" y="{:.1f}" text-anchor="middle" fill="{}"{}>{}{}</text>)", middle, top + 11.5, colour.text,
        R"( font-weight="bold")", b.kind == BoxKind::kFolded ? "▸ " : "", label);
    put(R"(<text x="{:.1f}" y="{:.1f}" text-anchor="middle" font-size="10" fill="{}">{}</text></g>)", middle,
        top + 24.5, colour.text, printable(b.detail, letters + 3));
    out += '\n';
  }
  void edge(size_t e) {
    const std::vector<float>& p = d.edges.points;
    bool stub = !d.edges.label[e].empty();
    put(R"(<path d=")");
    uint32_t begin = d.edges.start[e], end = d.edges.start[e + 1];
    for (uint32_t k = begin; k + 1 < end; k += 2) {
      bool slanted = k > begin && std::abs(p[k] - p[k - 2]) > 0.5f;
      float middle = k > begin ? (p[k + 1] + p[k - 1]) / 2 : 0;
      if (slanted)
        put("C{:.1f} {:.1f} {:.1f} {:.1f} {:.1f} {:.1f}", p[k - 2], middle, p[k], middle, p[k], p[k + 1]);
      else
        put("{}{:.1f} {:.1f}", k == begin ? "M" : "L", p[k], p[k + 1]);
    }
    put(R"("{}/>)", stub ? R"( stroke-dasharray="2 2")" : "");
    if (end >= begin + 4)
      put(R"(<path d="M{:.1f} {:.1f}l-3 -6h6z" fill="#78909c" stroke="none"/>)", p[end - 2], p[end - 1]);
    if (stub)
      put(R"(<text x="{:.1f}" y="{:.1f}" font-size="8" fill="#546e7a" stroke="none">{}</text>)", p[begin] + 3,
          p[begin + 1] + 3, printable(d.edges.label[e], 24));
    out += '\n';
  }
};

}  // namespace

std::string drawing_svg(const Module& m, const Drawing& d) {
  SvgWriter w{m, d, {}};
  w.put(R"(<svg xmlns="http://www.w3.org/2000/svg" viewBox="-8 -8 {:.0f} {:.0f}" width="{:.0f}" height="{:.0f}" )",
        d.width + 16, d.height + 16, d.width + 16, d.height + 16);
  w.put(R"(font-family="DejaVu Sans, Helvetica, Arial, sans-serif" font-size="11">)");
  w.put(R"(<rect x="-8" y="-8" width="{:.0f}" height="{:.0f}" fill="#ffffff"/>)", d.width + 16, d.height + 16);
  w.out += '\n';
  std::vector<size_t> depth(d.boxes.size(), 0);
  for (size_t k = 0; k < d.boxes.size(); ++k) {
    if (d.boxes[k].parent != DrawnBox::kNoBox) depth[k] = depth[d.boxes[k].parent] + 1;
    if (d.boxes[k].kind == BoxKind::kOpen) w.open_box(d.boxes[k], depth[k]);
  }
  w.out += R"(<g fill="none" stroke="#78909c" stroke-width="1">)"
           "\n";
  for (size_t e = 0; e < d.edges.size(); ++e) w.edge(e);
  w.out += "</g>\n";
  for (const DrawnBox& b : d.boxes)
    if (b.kind != BoxKind::kOpen) w.box(b);
  w.out += "</svg>\n";
  return w.out;
}

}  // namespace hlo
