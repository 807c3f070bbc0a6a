#include "tests/fake_cuda/ptx_thread.h"

namespace fake {
namespace {

template <class T>
void load_memory(Thread& t, const Instruction& i) {
  const Operand& to = at(i, 0);
  size_t n = to.kind == Operand::kVector ? to.list.size() : 1;
  const char* a = host_address(t, i, at(i, 1), static_cast<int64_t>(n * sizeof(T)));
  for (size_t k = 0; k < n; ++k) {
    T v;
    std::memcpy(&v, a + k * sizeof(T), sizeof(T));
    const Operand& one = to.kind == Operand::kVector ? to.list[k] : to;
    // Signed ones are extended, as a register that is wider shows.
    if constexpr (std::is_signed_v<T> && std::is_integral_v<T>)
      t.top().regs[static_cast<size_t>(one.reg)] = static_cast<uint64_t>(static_cast<int64_t>(v));
    else
      set(t, one, v);
  }
}

template <class T>
void store_memory(Thread& t, const Instruction& i) {
  const Operand& from = at(i, 1);
  size_t n = from.kind == Operand::kVector ? from.list.size() : 1;
  char* a = host_address(t, i, at(i, 0), static_cast<int64_t>(n * sizeof(T)));
  for (size_t k = 0; k < n; ++k) {
    T v = get<T>(t, from.kind == Operand::kVector ? from.list[k] : from);
    std::memcpy(a + k * sizeof(T), &v, sizeof(T));
  }
}

// --- atomics ---

enum Atomic { kAtomicAdd, kAtomicMin, kAtomicMax, kAtomicAnd, kAtomicOr, kAtomicXor, kAtomicExch, kAtomicCas };
template <class T>
T sum_of(T a, T b) {
  if constexpr (std::is_integral_v<T>)
    return static_cast<T>(static_cast<uint64_t>(a) + static_cast<uint64_t>(b));
  else
    return a + b;
}
template <class T>
void atomic(Thread& t, const Instruction& i) {
  // `width` 0: red, without a destination.
  size_t first = i.width ? 1 : 0;
  char* a = host_address(t, i, at(i, first), sizeof(T));
  T old, next{};
  std::memcpy(&old, a, sizeof(T));
  T v = get<T>(t, at(i, first + 1));
  if (i.compare == kAtomicAdd) next = sum_of(old, v);
  if (i.compare == kAtomicExch) next = v;
  if (i.compare == kAtomicMin) next = old < v ? old : v;
  if (i.compare == kAtomicMax) next = old > v ? old : v;
  if constexpr (std::is_integral_v<T>) {
    if (i.compare == kAtomicAnd) next = static_cast<T>(old & v);
    if (i.compare == kAtomicOr) next = static_cast<T>(old | v);
    if (i.compare == kAtomicXor) next = static_cast<T>(old ^ v);
    if (i.compare == kAtomicCas) next = old == v ? get<T>(t, at(i, first + 2)) : old;
  }
  std::memcpy(a, &next, sizeof(T));
  if (i.width) set(t, at(i, 0), old);
}

#define MEMORY_TYPES(function)                           \
  (type == "s8"                     ? function<int8_t>   \
   : type == "u8" || type == "b8"   ? function<uint8_t>  \
   : type == "s16"                  ? function<int16_t>  \
   : type == "u16" || type == "b16" ? function<uint16_t> \
   : type == "s32"                  ? function<int32_t>  \
   : type == "u32" || type == "b32" ? function<uint32_t> \
   : type == "s64"                  ? function<int64_t>  \
   : type == "u64" || type == "b64" ? function<uint64_t> \
   : type == "f32"                  ? function<float>    \
   : type == "f64"                  ? function<double>   \
                                    : static_cast<Execute>(nullptr))

}  // namespace

char* host_address(Thread& t, const Instruction& i, const Operand& o, int64_t bytes) {
  const uint64_t a = address(t, o);
  if (bytes > 0 && a % static_cast<uint64_t>(bytes)) throw Fault(716, i.text + ": a misaligned access");
  if (i.space == Instruction::kShared) {
    if (a > t.shared_bytes || static_cast<uint64_t>(bytes) > t.shared_bytes - a)
      throw Fault(700, i.text + ": an access outside of the block's shared memory");
    return t.shared + a;
  }
  if (i.space == Instruction::kGlobal && !t.grid->module->has_global(a, bytes) && !t.grid->allowed(a, bytes))
    throw Fault(700, i.text + ": an access outside of all allocations");
  return reinterpret_cast<char*>(a);
}

Execute memory_of(Instruction& i, const Words& words) {
  const std::string &op = words[0], &type = words.back();
  i.space = has(words, "global")                                ? Instruction::kGlobal
            : has(words, "shared") || has(words, "shared::cta") ? Instruction::kShared
                                                                : Instruction::kGeneric;
  if (op == "ld" || op == "ldu") return MEMORY_TYPES(load_memory);
  if (op == "st") return MEMORY_TYPES(store_memory);
  if (op == "atom" || op == "red") {
    static const std::map<std::string, int> kHow = {{"add", kAtomicAdd},   {"min", kAtomicMin}, {"max", kAtomicMax},
                                                    {"and", kAtomicAnd},   {"or", kAtomicOr},   {"xor", kAtomicXor},
                                                    {"exch", kAtomicExch}, {"cas", kAtomicCas}};
    i.compare = -1;
    for (const std::string& w : words)
      if (auto how = kHow.find(w); how != kHow.end()) i.compare = how->second;
    if (i.compare < 0) return nullptr;
    i.width = op == "atom";
    if (type == "f32") return atomic<float>;
    if (type == "f64") return atomic<double>;
    return INTEGER_TYPES(atomic);
  }
  if (op == "ldmatrix" || op == "stmatrix") {
    // Eight by eight of 16 bits, one, two or four of them.
    if (!has(words, "m8n8") || type != "b16") return nullptr;
    i.together = op == "ldmatrix" ? kMatrixLoaded : kMatrixStored;
    i.flag = has(words, "trans");
    return meet;
  }
  return nullptr;
}

}  // namespace fake
