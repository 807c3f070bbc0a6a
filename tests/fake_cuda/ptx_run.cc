#include <cfenv>
#include <span>

#include "tests/fake_cuda/ptx_thread.h"

namespace fake {

uint64_t raw(Thread& t, const Operand& o) {
  switch (o.kind) {
    case Operand::kRegister:
      return t.top().regs[static_cast<size_t>(o.reg)];
    case Operand::kImmediate:
      return o.value;
    case Operand::kAddress:
      return address(t, o);
    case Operand::kSpecial: {
      auto d = static_cast<size_t>(o.value & 3);
      switch (o.value >> 2) {
        case 0:
          return t.tid[d];
        case 1:
          return t.ctaid[d];
        case 2:
          return t.grid->threads[d];
        case 3:
          return t.grid->blocks[d];
        default:
          return static_cast<uint64_t>(t.lane);
      }
    }
    default:
      throw Fault(719, "an operand without a value");
  }
}

float to_float(Half h) {
  uint32_t sign = (h.bits & 0x8000u) << 16, exponent = (h.bits >> 10) & 31, mantissa = h.bits & 1023;
  if (exponent == 31) return std::bit_cast<float>(sign | 0x7f800000u | (mantissa << 13));
  if (exponent == 0) {
    float v = std::ldexp(static_cast<float>(mantissa), -24);
    return sign ? -v : v;
  }
  return std::bit_cast<float>(sign | ((exponent + 112) << 23) | (mantissa << 13));
}

// To the nearest, ties to even.
Half to_half(double v) {
  auto sign = static_cast<uint16_t>(std::signbit(v) ? 0x8000 : 0);
  double a = std::fabs(v);
  if (std::isnan(v)) return {0x7fff};
  if (a >= 65520) return {static_cast<uint16_t>(sign | 0x7c00)};
  int exponent = 0;
  std::frexp(a, &exponent);
  int step = std::max(exponent - 11, -24);  // of the last place
  double scaled = std::nearbyint(std::ldexp(a, -step));
  auto n = static_cast<uint32_t>(scaled);
  if (n == 0) return {sign};
  if (step == -24) return {static_cast<uint16_t>(sign | n)};  // also 1024, the least normal one
  if (n == 2048) n = 1024, ++step;
  return {static_cast<uint16_t>(sign | (static_cast<uint32_t>(step + 25) << 10) | (n - 1024))};
}

Brain to_brain(float v) {
  const auto word = std::bit_cast<uint32_t>(v);
  if (std::isnan(v)) return {0x7fff};
  return {static_cast<uint16_t>((word + 0x7fff + (word >> 16 & 1)) >> 16)};
}

Rounded::Rounded(int mode) : changed_(mode != kNearest) {
  constexpr int kModes[] = {FE_TONEAREST, FE_TOWARDZERO, FE_DOWNWARD, FE_UPWARD};
  if (changed_) std::fesetround(kModes[mode]);
}
Rounded::~Rounded() {
  if (changed_) std::fesetround(FE_TONEAREST);
}

// --- control ---

void branch(Thread& t, const Instruction& i) { t.top().pc = static_cast<size_t>(i.target); }

void leave(Thread& t, const Instruction& /*i*/) {
  if (t.frames.size() == 1) {
    t.state = Thread::kEnded;
    return;
  }
  Frame done = std::move(t.frames.back());
  t.frames.pop_back();
  // Results go where the caller wants them.
  const Operand& results = done.call->operands[0];
  size_t k = 0;
  for (const auto& [name, v] : done.function->slots) {
    if (!name.starts_with("func_retval")) continue;
    const Variable& to = t.top().function->slots.at(results.list[k++].name);
    std::memcpy(t.top().params.data() + to.offset, done.params.data() + v.offset, static_cast<size_t>(v.size));
  }
}

Frame frame_of(const Function* f) {
  Frame out;
  out.function = f;
  out.regs.resize(f->registers.size());
  out.params.resize(static_cast<size_t>(f->param_bytes) + 16);
  out.local.resize(static_cast<size_t>(f->local_bytes) + 16);
  return out;
}

void call(Thread& t, const Instruction& i) {
  const Function* f = t.grid->module->function(i.operands[1].name);
  if (!f) throw Fault(719, i.text + ": no such function");
  if (t.frames.size() > 64) throw Fault(719, i.text + ": calls too deep");
  Frame next = frame_of(f);
  next.call = &i;
  for (size_t k = 0; k < f->params.size(); ++k) {
    const Variable &to = f->params[k], &from = t.top().function->slots.at(i.operands[2].list[k].name);
    std::memcpy(next.params.data() + to.offset, t.top().params.data() + from.offset, static_cast<size_t>(to.size));
  }
  t.frames.push_back(std::move(next));
}

void meet(Thread& t, const Instruction& i) { t.state = Thread::kMeeting, t.waiting = &i; }

namespace {

void trap(Thread&, const Instruction& i) { throw Fault(719, i.text); }
void nothing(Thread&, const Instruction&) {}
void barrier(Thread& t, const Instruction& i) { t.state = Thread::kBarrier, t.waiting = &i; }

enum Shuffle { kDownwards, kUpwards, kButterfly, kIndexed };
void shuffle(Thread& t, const Instruction& i) {
  auto by = static_cast<int>(get<uint32_t>(t, at(i, 2)) & 31);
  auto clamp = get<uint32_t>(t, at(i, 3));
  int segment = static_cast<int>((clamp >> 8) & 31), most = static_cast<int>(clamp & 31);
  int low = t.lane & segment, high = low | (most & ~segment), from = t.lane;
  switch (i.compare) {
    case kDownwards:
      from = t.lane + by;
      t.in_range = from <= high;
      break;
    case kUpwards:
      from = t.lane - by;
      t.in_range = from >= high;
      break;
    case kButterfly:
      from = t.lane ^ by;
      t.in_range = from <= high;
      break;
    default:
      from = low | (by & ~segment);
      t.in_range = from <= high;
  }
  t.sent = get<uint32_t>(t, at(i, 1));
  t.from = t.in_range ? from : t.lane;
  meet(t, i);
}

// --- what a warp does together ---

void shuffled(Thread* lanes, size_t count, const Instruction& i) {
  for (size_t k = 0; k < count; ++k) {
    Thread& t = lanes[k];
    if (static_cast<size_t>(t.from) >= count) throw Fault(719, i.text + ": it asks for a lane that is not there");
    const uint32_t v = lanes[t.from].sent;
    t.top().regs[static_cast<size_t>(at(i, 0).reg)] = v;
    if (at(i, 0).second >= 0) t.top().regs[static_cast<size_t>(at(i, 0).second)] = t.in_range;
  }
}

// One lane of the mask, the lowest; nobody is asked which it is.
void elected(Thread* lanes, size_t count, const Instruction& i) {
  const auto mask = get<uint32_t>(lanes[0], at(i, 1));
  const auto leader = static_cast<uint32_t>(std::countr_zero(mask));
  for (size_t k = 0; k < count; ++k) {
    set(lanes[k], at(i, 0), leader);
    lanes[k].top().regs[static_cast<size_t>(at(i, 0).second)] = k == leader;
  }
}

// Rows of eight 16-bit numbers: of matrix m row r is where lane 8m + r says. Lane l has elements 2(l % 4) and the next
// of row l / 4 of each matrix in a register; transposed: of column l / 4.
void matrices(Thread* lanes, size_t count, const Instruction& i) {
  if (count != 32) throw Fault(719, i.text + ": a warp of fewer than 32 lanes");
  const bool store = i.together == kMatrixStored;
  const std::vector<Operand>& registers = at(i, store ? 1 : 0).list;
  const size_t n = registers.size();
  std::vector<char*> rows(8 * n);
  for (size_t r = 0; r < rows.size(); ++r) rows[r] = host_address(lanes[r], i, at(i, store ? 0 : 1), 16);
  for (size_t m = 0; m < n; ++m)
    for (size_t l = 0; l < 32; ++l) {
      const auto reg = static_cast<size_t>(registers[m].reg);
      uint32_t word = store ? static_cast<uint32_t>(lanes[l].top().regs[reg]) : 0;
      for (size_t h = 0; h < 2; ++h) {
        size_t row = l / 4, column = 2 * (l % 4) + h;
        if (i.flag) std::swap(row, column);
        char* place = rows[8 * m + row] + 2 * column;
        if (store) {
          const auto part = static_cast<uint16_t>(word >> 16 * h);
          std::memcpy(place, &part, 2);
        } else {
          uint16_t part;
          std::memcpy(&part, place, 2);
          word |= static_cast<uint32_t>(part) << 16 * h;
        }
      }
      if (!store) lanes[l].top().regs[reg] = word;
    }
}

// --- the grid ---

void run_until_meeting(Thread& t, int64_t& budget) {
  while (t.state == Thread::kReady) {
    Frame& top = t.top();
    if (top.pc >= top.function->code.size()) {
      leave(t, {});
      continue;
    }
    const Instruction& i = top.function->code[top.pc++];
    if (i.guard >= 0 && (top.regs[static_cast<size_t>(i.guard)] != 0) == i.guard_not) continue;
    i.run(t, i);
    if (--budget < 0) throw Fault(702, "a kernel that does not end: " + i.text);
  }
}

void run_block(std::vector<Thread>& threads, std::span<char> shared) {
  int64_t budget = int64_t{1} << 34;
  // What nobody wrote is told apart from zeros.
  std::fill(shared.begin(), shared.end(), char(0xcd));
  while (true) {
    for (size_t first = 0; first < threads.size(); first += 32) {
      size_t last = std::min(first + 32, threads.size());
      while (true) {
        for (size_t k = first; k < last; ++k) run_until_meeting(threads[k], budget);
        bool any = false, all = true;
        const Instruction* where = nullptr;
        for (size_t k = first; k < last; ++k) {
          bool here = threads[k].state == Thread::kMeeting;
          any |= here, all &= here;
          if (!here) continue;
          if (where && where != threads[k].waiting)
            throw Fault(719, where->text + ": lanes of a warp stand at " + threads[k].waiting->text);
          where = threads[k].waiting;
        }
        if (!any) break;
        if (!all) throw Fault(719, where->text + ": not all lanes of the warp are there");
        together(threads.data() + first, last - first, *where);
        for (size_t k = first; k < last; ++k) threads[k].state = Thread::kReady;
      }
    }
    size_t waiting = 0, ended = 0;
    const Instruction* where = nullptr;
    for (Thread& t : threads) {
      ended += t.state == Thread::kEnded;
      if (t.state != Thread::kBarrier) continue;
      ++waiting;
      if (where && where != t.waiting) throw Fault(719, "threads of a block wait at two barriers");
      where = t.waiting;
    }
    if (!waiting) return;
    if (ended) throw Fault(719, where->text + ": not all threads of the block are there");
    for (Thread& t : threads) t.state = Thread::kReady;
  }
}

}  // namespace

void together(Thread* lanes, size_t count, const Instruction& i) {
  switch (i.together) {
    case kShuffled:
      return shuffled(lanes, count, i);
    case kElected:
      return elected(lanes, count, i);
    default:
      return matrices(lanes, count, i);
  }
}

Execute control_of(Instruction& i, const Words& words) {
  const std::string& op = words[0];
  if (op == "bra") return branch;
  if (op == "ret" || op == "exit") return leave;
  if (op == "trap") return trap;
  if (op == "call") return call;
  if (op == "bar" || op == "barrier") {
    if (has(words, "cluster")) return nullptr;
    return has(words, "warp") ? nothing : barrier;
  }
  // Programmatic launches: kernels run one behind the other here.
  if (op == "membar" || op == "fence" || op == "griddepcontrol") return nothing;
  if (op == "elect") {
    i.together = kElected;
    return meet;
  }
  if (op == "shfl") {
    i.compare = has(words, "down")   ? kDownwards
                : has(words, "up")   ? kUpwards
                : has(words, "bfly") ? kButterfly
                                     : kIndexed;
    i.together = kShuffled;
    return shuffle;
  }
  return nullptr;
}

Module::Module(const std::string& text) { parse_ptx(*this, text); }

bool Module::has_global(uint64_t at, int64_t bytes) const {
  for (const auto& [name, data] : globals) {
    auto start = reinterpret_cast<uint64_t>(data.data());
    if (at >= start && at + static_cast<uint64_t>(bytes) <= start + data.size()) return true;
  }
  return false;
}

const Function* Module::function(const std::string& name) const {
  auto at = functions.find(name);
  return at == functions.end() ? nullptr : at->second.get();
}

void run(const Grid& g) {
  uint64_t n = uint64_t{g.threads[0]} * g.threads[1] * g.threads[2];
  if (n == 0 || n > 1024) throw Fault(1, "a block of " + std::to_string(n) + " threads");
  if (g.function->most_threads && n > static_cast<uint64_t>(g.function->most_threads))
    throw Fault(1, "more threads than .maxntid says");
  if (g.function->exact_threads && n != static_cast<uint64_t>(g.function->exact_threads))
    throw Fault(1, "other threads than .reqntid says");
  if (g.function->shared_bytes > 48 << 10) throw Fault(1, "more static shared memory than 48 KiB");
  const auto shared_bytes = static_cast<size_t>(g.function->shared_bytes) + g.dynamic_shared;
  std::vector<char> room(shared_bytes + 1024);
  // Swizzles go by addresses.
  char* shared = room.data() + (1024 - reinterpret_cast<uintptr_t>(room.data()) % 1024) % 1024;
  std::vector<Thread> threads(static_cast<size_t>(n));
  for (uint32_t z = 0; z < g.blocks[2]; ++z)
    for (uint32_t y = 0; y < g.blocks[1]; ++y)
      for (uint32_t x = 0; x < g.blocks[0]; ++x) {
        for (size_t k = 0; k < threads.size(); ++k) {
          Thread& t = threads[k];
          t.grid = &g, t.shared = shared, t.shared_bytes = shared_bytes, t.state = Thread::kReady,
          t.lane = static_cast<int>(k % 32);
          t.ctaid[0] = x, t.ctaid[1] = y, t.ctaid[2] = z;
          t.tid[0] = static_cast<uint32_t>(k % g.threads[0]);
          t.tid[1] = static_cast<uint32_t>(k / g.threads[0] % g.threads[1]);
          t.tid[2] = static_cast<uint32_t>(k / g.threads[0] / g.threads[1]);
          if (t.frames.empty())
            t.frames.push_back(frame_of(g.function));
          else
            t.frames.resize(1), t.frames[0].pc = 0;
          std::copy(g.params.begin(), g.params.end(), t.frames[0].params.begin());
        }
        run_block(threads, {shared, shared_bytes});
      }
}

}  // namespace fake
