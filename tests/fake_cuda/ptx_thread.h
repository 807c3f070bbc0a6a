// What the parts of the interpreter share: a thread's state, operands, and who knows which instruction.
#pragma once
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <string>
#include <type_traits>
#include <vector>

#include "tests/fake_cuda/ptx.h"

namespace fake {

struct Frame {
  const Function* function;
  std::vector<uint64_t> regs;
  std::vector<char> params, local;
  size_t pc = 0;
  const Instruction* call = nullptr;  // of the caller, that returns here
};

struct Thread {
  const Grid* grid = nullptr;
  std::vector<Frame> frames;
  // The block's shared memory: addresses of that space are offsets in it, as on a card.
  char* shared = nullptr;
  uint64_t shared_bytes = 0;
  uint32_t tid[3] = {}, ctaid[3] = {};
  // kMeeting: at an instruction that the lanes of a warp do together.
  enum State { kReady, kMeeting, kBarrier, kEnded } state = kReady;
  bool carry = false;
  int lane = 0;
  // Of a shuffle: what this lane brought and asks for.
  uint32_t sent = 0;
  int from = 0;
  bool in_range = true;
  const Instruction* waiting = nullptr;
  Frame& top() { return frames.back(); }
};

// --- operands ---

inline const Operand& at(const Instruction& i, size_t k) { return i.operands.at(k); }

// In the space that the operand names; of shared memory an offset.
inline uint64_t address(Thread& t, const Operand& o) {
  if (o.reg >= 0) return t.top().regs[static_cast<size_t>(o.reg)] + o.value;
  if (o.frame == 0) return reinterpret_cast<uint64_t>(t.top().params.data()) + o.value;
  if (o.frame == 1) return reinterpret_cast<uint64_t>(t.top().local.data()) + o.value;
  return o.value;
}

// Where so many bytes of an operand lie on the host, checked. Throws Fault.
char* host_address(Thread& t, const Instruction& i, const Operand& o, int64_t bytes);

uint64_t raw(Thread& t, const Operand& o);

struct Half {
  uint16_t bits;
};
struct Brain {
  uint16_t bits;
};
float to_float(Half h);
inline float to_float(Brain b) { return std::bit_cast<float>(static_cast<uint32_t>(b.bits) << 16); }
// To the nearest, ties to even.
Half to_half(double v);
Brain to_brain(float v);
inline void narrowed(double v, Half* out) { *out = to_half(v); }
inline void narrowed(double v, Brain* out) { *out = to_brain(static_cast<float>(v)); }

template <class T>
T get(Thread& t, const Operand& o) {
  uint64_t v = raw(t, o);
  if constexpr (std::is_same_v<T, float>)
    return std::bit_cast<float>(static_cast<uint32_t>(v));
  else if constexpr (std::is_same_v<T, double>)
    return std::bit_cast<double>(v);
  else if constexpr (std::is_same_v<T, Half> || std::is_same_v<T, Brain>)
    return T{static_cast<uint16_t>(v)};
  else if constexpr (std::is_same_v<T, bool>)
    return v != 0;
  else
    return static_cast<T>(v);
}

template <class T>
uint64_t bits(T v) {
  if constexpr (std::is_same_v<T, float>)
    return std::bit_cast<uint32_t>(v);
  else if constexpr (std::is_same_v<T, double>)
    return std::bit_cast<uint64_t>(v);
  else if constexpr (std::is_same_v<T, Half> || std::is_same_v<T, Brain>)
    return v.bits;
  else if constexpr (std::is_same_v<T, bool>)
    return v;
  else
    return static_cast<std::make_unsigned_t<T>>(v);
}

template <class T>
void set(Thread& t, const Operand& o, T v) {
  if (o.reg >= 0) t.top().regs[static_cast<size_t>(o.reg)] = bits(v);  // `_` is nobody's
}

template <class T>
T flushed(T v, bool ftz) {
  if (ftz && std::fpclassify(v) == FP_SUBNORMAL) return std::copysign(T(0), v);
  return v;
}

enum Rounding { kNearest, kZero, kDown, kUp };
class Rounded {
 public:
  explicit Rounded(int mode);
  ~Rounded();
  Rounded(const Rounded&) = delete;
  Rounded& operator=(const Rounded&) = delete;

 private:
  bool changed_;
};

// --- instructions ---

// The words of an instruction's name between its dots.
using Words = std::vector<std::string>;
inline bool has(const Words& words, const char* s) { return std::find(words.begin(), words.end(), s) != words.end(); }
inline int bytes_of(const std::string& type) {
  size_t digit = type.find_first_of("0123456789");
  return digit == std::string::npos ? 1 : atoi(type.c_str() + digit) / 8;
}

#define INTEGER_TYPES(function)                          \
  (type == "s16"                    ? function<int16_t>  \
   : type == "u16" || type == "b16" ? function<uint16_t> \
   : type == "s32"                  ? function<int32_t>  \
   : type == "u32" || type == "b32" ? function<uint32_t> \
   : type == "s64"                  ? function<int64_t>  \
   : type == "u64" || type == "b64" ? function<uint64_t> \
                                    : static_cast<Execute>(nullptr))

// What runs an instruction of that name, null where the part does not know it. `i` gets what the name says besides.
Execute arithmetic_of(Instruction& i, const Words& words);
Execute bits_of(Instruction& i, const Words& words);
Execute conversion_of(Instruction& i, const Words& words);
Execute memory_of(Instruction& i, const Words& words);
Execute control_of(Instruction& i, const Words& words);

void branch(Thread& t, const Instruction& i);
void call(Thread& t, const Instruction& i);
void leave(Thread& t, const Instruction& i);
Frame frame_of(const Function* f);

// --- what a warp does together ---

enum Together { kNotTogether, kShuffled, kElected, kMatrixLoaded, kMatrixStored };
void meet(Thread& t, const Instruction& i);
// All lanes of a warp stand at `i`. Throws Fault.
void together(Thread* lanes, size_t count, const Instruction& i);

// Module::Module's parser.
void parse_ptx(Module& m, const std::string& text);

}  // namespace fake
