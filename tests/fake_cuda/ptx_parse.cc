#include <cstdlib>
#include <set>

#include "tests/fake_cuda/ptx_thread.h"

namespace fake {
namespace {

std::vector<std::string> split(const std::string& s, char by) {
  std::vector<std::string> out;
  size_t from = 0;
  for (size_t k = 0; k <= s.size(); ++k)
    if (k == s.size() || s[k] == by) out.push_back(s.substr(from, k - from)), from = k + 1;
  return out;
}
std::string trimmed(const std::string& s) {
  size_t a = s.find_first_not_of(" \t\n\r"), b = s.find_last_not_of(" \t\n\r");
  return a == std::string::npos ? "" : s.substr(a, b - a + 1);
}
// By commas that stand in no brackets.
std::vector<std::string> arguments(const std::string& s) {
  std::vector<std::string> out;
  int depth = 0;
  size_t from = 0;
  for (size_t k = 0; k <= s.size(); ++k) {
    if (k < s.size() && (s[k] == '{' || s[k] == '[' || s[k] == '(')) ++depth;
    if (k < s.size() && (s[k] == '}' || s[k] == ']' || s[k] == ')')) --depth;
    if (k == s.size() || (s[k] == ',' && depth == 0)) {
      if (std::string one = trimmed(s.substr(from, k - from)); !one.empty()) out.push_back(one);
      from = k + 1;
    }
  }
  return out;
}

struct Parser {
  explicit Parser(Module& module) : m(module) {}
  Module& m;
  Function* f = nullptr;
  std::set<std::string> named;  // registers without a percent sign
  int line = 1, last_scope = 0;
  std::vector<int> scopes;  // braces that are open, each with a number of its own

  [[noreturn]] void refuse(const std::string& what) const {
    throw std::runtime_error("ptx line " + std::to_string(line) + ": " + what);
  }

  // `.align 4 .b8 name[24]`, `.reg .b32 %r<9>`, `.b64 name`: size and name.
  Variable variable(const std::string& text) const {
    Variable v;
    std::vector<std::string> words;
    for (std::string& w : split(text, ' '))
      for (std::string& x : split(w, '\t'))
        if (!trimmed(x).empty()) words.push_back(trimmed(x));
    int64_t width = 1;
    for (size_t k = 0; k < words.size(); ++k) {
      if (words[k] == ".align") {
        v.align = atoi(words[++k].c_str());
      } else if (words[k][0] == '.') {
        if (words[k].find_first_of("0123456789") != std::string::npos) width = bytes_of(words[k]);
      } else {
        v.name = words[k];
      }
    }
    v.align = std::max(v.align, width);
    int64_t n = 1;
    if (size_t b = v.name.find('['); b != std::string::npos) {
      n = atoll(v.name.c_str() + b + 1);
      v.name = v.name.substr(0, b);
    }
    v.size = width * n;
    return v;
  }
  static int64_t place(int64_t& end, Variable& v) {
    v.offset = (end + v.align - 1) / v.align * v.align;
    end = v.offset + v.size;
    return v.offset;
  }

  int reg(const std::string& name) {
    auto [at, fresh] = f->registers.emplace(name, static_cast<int>(f->registers.size()));
    return at->second;
  }

  Operand operand(const std::string& s) {
    Operand o;
    if (s[0] == '{') {
      o.kind = Operand::kVector;
      for (const std::string& x : arguments(s.substr(1, s.size() - 2))) o.list.push_back(operand(x));
      return o;
    }
    if (s[0] == '[') {
      std::string inner = trimmed(s.substr(1, s.size() - 2));
      size_t plus = inner.find('+');
      std::string base = trimmed(inner.substr(0, plus));
      int64_t offset = plus == std::string::npos ? 0 : atoll(inner.c_str() + plus + 1);
      o = base[0] == '%' ? operand(base) : symbol(base);
      o.kind = Operand::kAddress;
      o.value += static_cast<uint64_t>(offset);
      return o;
    }
    if (s[0] == '%') {
      static const std::map<std::string, int> kSpecial = {{"%tid", 0}, {"%ctaid", 1}, {"%ntid", 2}, {"%nctaid", 3}};
      if (s == "%laneid") {
        o.kind = Operand::kSpecial, o.value = 16;
        return o;
      }
      if (size_t dot = s.find('.'); dot != std::string::npos) {
        auto at = kSpecial.find(s.substr(0, dot));
        if (at == kSpecial.end()) refuse("unknown register " + s);
        o.kind = Operand::kSpecial;
        o.value = static_cast<uint64_t>(at->second) << 2 | static_cast<uint64_t>(s[dot + 1] - 'x');
        return o;
      }
      o.kind = Operand::kRegister;
      size_t bar = s.find('|');
      o.reg = reg(s.substr(0, bar));
      if (bar != std::string::npos) o.second = reg(s.substr(bar + 1));
      return o;
    }
    if (s == "_") return o;
    if (named.contains(s)) {
      o.kind = Operand::kRegister, o.reg = reg(s);
      return o;
    }
    if (isdigit(static_cast<unsigned char>(s[0])) || s[0] == '-') {
      o.kind = Operand::kImmediate;
      if (s.starts_with("0f") || s.starts_with("0F"))
        o.value = strtoull(s.c_str() + 2, nullptr, 16);
      else if (s.starts_with("0d") || s.starts_with("0D"))
        o.value = strtoull(s.c_str() + 2, nullptr, 16);
      else
        o.value = s[0] == '-' ? static_cast<uint64_t>(strtoll(s.c_str(), nullptr, 0)) : strtoull(s.c_str(), nullptr, 0);
      return o;
    }
    return symbol(s);
  }

  // Something in memory, or a name.
  Operand symbol(const std::string& name) {
    Operand o;
    o.name = name;
    o.kind = Operand::kAddress;
    if (f && f->slots.contains(name)) {
      o.frame = 0, o.value = static_cast<uint64_t>(f->slots[name].offset);
    } else if (f && f->locals.contains(name)) {
      o.frame = 1, o.value = static_cast<uint64_t>(f->locals[name].offset);
    } else if (f && f->shared.contains(name)) {
      o.frame = 2, o.value = static_cast<uint64_t>(f->shared[name].offset);
    } else if (m.globals.contains(name)) {
      o.value = reinterpret_cast<uint64_t>(m.globals[name].data());
    } else {
      o.kind = Operand::kName;
    }
    return o;
  }

  static std::string label(const std::string& name, int scope) { return name + "@" + std::to_string(scope); }

  void instruction(std::string s) {
    Instruction i;
    i.text = s, i.line = line;
    std::replace(i.text.begin(), i.text.end(), '\t', ' ');
    if (s[0] == '@') {
      size_t end = s.find_first_of(" \t");
      i.guard_not = s[1] == '!';
      i.guard = reg(s.substr(i.guard_not ? 2 : 1, end - (i.guard_not ? 2 : 1)));
      s = trimmed(s.substr(end));
    }
    size_t end = s.find_first_of(" \t\n");
    std::string name = s.substr(0, end), rest = end == std::string::npos ? "" : trimmed(s.substr(end));
    std::vector<std::string> part = split(name, '.');
    i.ftz = has(part, "ftz");
    i.rounding = has(part, "rz") || has(part, "rzi")   ? kZero
                 : has(part, "rm") || has(part, "rmi") ? kDown
                 : has(part, "rp") || has(part, "rpi") ? kUp
                                                       : kNearest;
    i.width = bytes_of(part.back());
    for (auto* of : {arithmetic_of, bits_of, conversion_of, memory_of, control_of})
      if ((i.run = of(i, part))) break;
    if (!i.run) refuse(name + " is not emulated, in '" + i.text + "'");
    if (i.run == branch) {
      // A label of the innermost braces that have one.
      Operand o;
      o.kind = Operand::kName, o.name = rest;
      for (auto scope = scopes.rbegin(); scope != scopes.rend(); ++scope) {
        o.list.emplace_back();
        o.list.back().name = label(rest, *scope);
      }
      i.operands.push_back(o);
    } else if (i.run == call) {
      // (results), name, (arguments): either list may be missing.
      std::vector<std::string> list = arguments(rest);
      Operand results, callee, args;
      results.kind = args.kind = Operand::kVector;
      auto names = [](const std::string& t) {
        std::vector<Operand> out;
        for (const std::string& x : arguments(t.substr(1, t.size() - 2))) {
          Operand o;
          o.kind = Operand::kName, o.name = x;
          out.push_back(o);
        }
        return out;
      };
      size_t k = 0;
      if (list[k][0] == '(') results.list = names(list[k++]);
      callee.kind = Operand::kName, callee.name = list[k++];
      if (k < list.size()) args.list = names(list[k]);
      i.operands = {results, callee, args};
    } else {
      for (const std::string& a : arguments(rest)) i.operands.push_back(operand(a));
      for (Operand& o : i.operands)
        if (o.kind == Operand::kName) refuse("nothing is called " + o.name + " in '" + i.text + "'");
    }
    f->code.push_back(std::move(i));
  }

  // A statement without its semicolon.
  void statement(const std::string& s) {
    if (s.starts_with(".reg")) {
      // Registers get their places when they are used; those of libdevice's own assembly have names like other things.
      for (const std::string& list : split(s.substr(4), ','))
        if (std::string declared = variable(list).name; declared[0] != '%') named.insert(declared);
      return;
    }
    if (s.starts_with(".local")) {
      Variable v = variable(s.substr(6));
      place(f->local_bytes, v);
      f->locals[v.name] = v;
      return;
    }
    if (s.starts_with(".param")) {
      Variable v = variable(s.substr(6));
      if (!f->slots.contains(v.name)) {
        place(f->param_bytes, v);
        f->slots[v.name] = v;
      }
      return;
    }
    if (s.starts_with(".shared")) {
      for (const Variable& v : m.shared)
        if (!v.size) refuse("static beside dynamic shared memory is not emulated");
      Variable v = variable(s.substr(7));
      place(f->shared_bytes, v);
      f->shared[v.name] = v;
      return;
    }
    if (s.starts_with(".pragma") || s.starts_with(".loc")) return;
    if (s[0] == '.') refuse("unknown directive '" + s + "'");
    instruction(s);
  }

  void global(const std::string& s) {
    size_t equals = s.find('=');
    std::string head = s.substr(0, equals);
    bool is_shared = head.find(".shared") != std::string::npos;
    for (const char* word : {".visible", ".extern", ".weak", ".global", ".const", ".shared"})
      if (size_t at = head.find(word); at != std::string::npos) head.erase(at, std::string(word).size());
    Variable v = variable(head);
    if (is_shared) {
      // Several functions may use it: each has room for it.
      m.shared.push_back(v);
      return;
    }
    std::vector<char> bytes(static_cast<size_t>(v.size));
    if (equals != std::string::npos) {
      std::string list = trimmed(s.substr(equals + 1));
      int64_t width = 1;
      for (const std::string& w : split(head, ' '))
        if (w.size() > 1 && w[0] == '.' && w != ".align" && w.find_first_of("0123456789") != std::string::npos)
          width = bytes_of(trimmed(w));
      if (list[0] == '{') list = list.substr(1, list.size() - 2);
      size_t k = 0;
      for (const std::string& x : arguments(list)) {
        uint64_t n = operand(x).value;
        if (k + static_cast<size_t>(width) <= bytes.size())
          std::memcpy(bytes.data() + k, &n, static_cast<size_t>(width));
        k += static_cast<size_t>(width);
      }
    }
    m.globals[v.name] = std::move(bytes);
  }

  // `.visible .entry name(params) .maxntid 128`, `.func (.param .b64 func_retval0) name(params)`.
  void header(const std::string& s) {
    bool entry = s.find(".entry") != std::string::npos;
    size_t at = s.find(entry ? ".entry" : ".func") + (entry ? 6 : 5);
    std::string rest = trimmed(s.substr(at));
    std::string results;
    if (rest[0] == '(') {
      size_t close = rest.find(')');
      results = rest.substr(1, close - 1);
      rest = trimmed(rest.substr(close + 1));
    }
    size_t open = rest.find('(');
    std::string name = trimmed(rest.substr(0, open));
    auto& slot = m.functions[name];
    slot = std::make_unique<Function>();
    f = slot.get();
    f->name = name, f->entry = entry;
    for (Variable v : m.shared) {
      place(f->shared_bytes, v);
      f->shared[v.name] = v;
    }
    for (const std::string& r : arguments(results)) {
      Variable v = variable(r.substr(6));
      place(f->param_bytes, v);
      f->slots[v.name] = v;
    }
    size_t close = rest.find(')', open == std::string::npos ? 0 : open);
    if (open != std::string::npos) {
      // `.ptr .global .align 16` belongs to what it points to.
      for (std::string p : arguments(rest.substr(open + 1, close - open - 1))) {
        p = p.substr(6);
        if (size_t ptr = p.find(".ptr"); ptr != std::string::npos) {
          size_t last = p.find_last_of(" \t");
          p = p.substr(0, ptr) + p.substr(last);
        }
        Variable v = variable(p);
        place(f->param_bytes, v);
        f->slots[v.name] = v;
        f->params.push_back(v);
      }
    }
    f->most_threads = threads(rest, ".maxntid"), f->exact_threads = threads(rest, ".reqntid");
  }

  // `.reqntid 128, 2, 1`: their product; 0 where it is not said.
  static int threads(const std::string& header, const char* word) {
    size_t at = header.find(word);
    if (at == std::string::npos) return 0;
    int n = 1;
    for (const char* p = header.c_str() + at + std::string(word).size(); *p;) {
      char* end = nullptr;
      n *= static_cast<int>(strtol(p, &end, 10));
      p = end;
      while (*p == ' ' || *p == '\t') ++p;
      if (*p++ != ',') break;
    }
    return n;
  }

  void finish() {
    for (Instruction& i : f->code) {
      if (i.run != branch) continue;
      for (const Operand& o : i.operands[0].list)
        if (auto at = f->labels.find(o.name); at != f->labels.end() && i.target < 0) i.target = at->second;
      if (i.target < 0) refuse("no label " + i.operands[0].name);
    }
    f = nullptr;
  }

  void parse(const std::string& text) {
    std::string now;
    int depth = 0, vector = 0;
    bool in_global_list = false;
    for (size_t k = 0; k < text.size(); ++k) {
      char c = text[k];
      if (c == '/' && k + 1 < text.size() && text[k + 1] == '/') {
        while (k < text.size() && text[k] != '\n') ++k;
        ++line;
        now += '\n';
        continue;
      }
      if (c == '\n') ++line;
      // `ld.param::entry`: no label.
      if (c == ':' && k + 1 < text.size() && text[k + 1] == ':') {
        now += "::", ++k;
        continue;
      }
      std::string s = c == '{' || c == '}' || c == ';' || c == ':' || c == '\n' ? trimmed(now) : std::string();
      if (depth == 0) {
        if (c == '\n' && (s.starts_with(".version") || s.starts_with(".target") || s.starts_with(".address_size"))) {
          if (s.starts_with(".target")) m.target = trimmed(s.substr(7));
          now.clear();
          continue;
        }
        if (c == '{' && now.find('=') == std::string::npos) {
          header(s);
          now.clear(), depth = 1, scopes = {++last_scope};
          continue;
        }
        if (c == '{') in_global_list = true;
        if (c == '}') in_global_list = false;
        if (c == ';' && !in_global_list) {
          // A declaration of a function is told again with its body.
          if (s.find(".func") == std::string::npos && !s.empty()) global(s);
          now.clear();
          continue;
        }
        now += c;
        continue;
      }
      if (c == '{' && s.empty()) {
        ++depth;
        scopes.push_back(++last_scope);
        now.clear();
        continue;
      }
      if (c == '{') ++vector;
      if (c == '}' && vector) {
        --vector;
        now += c;
        continue;
      }
      if (c == '}') {
        scopes.pop_back();
        if (--depth == 0) finish();
        now.clear();
        continue;
      }
      if (c == ';') {
        if (!s.empty()) statement(s);
        now.clear();
        continue;
      }
      if (c == ':' && !s.empty() && s.find_first_of(" \t") == std::string::npos) {
        f->labels[label(s, scopes.back())] = static_cast<int>(f->code.size());
        now.clear();
        continue;
      }
      now += c;
    }
    if (depth) refuse("the text ends inside a function");
  }
};

}  // namespace

void parse_ptx(Module& m, const std::string& text) { Parser(m).parse(text); }

}  // namespace fake
