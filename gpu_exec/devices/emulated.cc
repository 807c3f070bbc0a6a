// The emulated grid: blocks one after another, their threads taking turns on one, each with a stack of its own where
// they meet.
#include <llvm/ExecutionEngine/Orc/ExecutionUtils.h>
#include <llvm/ExecutionEngine/Orc/LLJIT.h>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>

#include "gpu_exec/devices/host_memory.h"
#include "gpu_exec/devices/jit.h"
#include "gpu_exec/emit/codegen.h"
#include "ir/base/check.h"

namespace hlo {
namespace {

constexpr size_t kStack = 64 << 10;
constexpr int kLanes = 32, kMostThreads = 1024;

using ThreadFunction = void (*)(char* const*);

// The threads of a block whose kernel has barriers or shuffles.
class Block {
 public:
  Block() {
    void* at = ::mmap(nullptr, kStack * kMostThreads, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (at == MAP_FAILED) fail(FailureKind::kUnsupported, "no memory for the stacks of {} threads", kMostThreads);
    stacks_ = static_cast<char*>(at);
  }
  ~Block() { ::munmap(stacks_, kStack * kMostThreads); }
  Block(const Block&) = delete;
  Block& operator=(const Block&) = delete;

  void run(ThreadFunction function, char* const* pointers, int threads) {
    function_ = function, pointers_ = pointers, threads_ = threads;
    for (int t = 0; t < threads; ++t) start(t);
    // A warp runs until all of its lanes wait or have ended; shuffles go on at once, a barrier when all are there.
    for (bool alive = true; alive;) {
      alive = false;
      for (int w = 0; w < threads; w += kLanes) run_warp(w);
      for (int t = 0; t < threads; ++t) {
        if (state_[t] == kBarrier) state_[t] = kReady;
        alive |= state_[t] != kEnded;
      }
    }
  }
  int current() const { return current_; }
  int32_t shuffle(int32_t value, int32_t distance) {
    sent_[current_] = value, distance_[current_] = distance;
    pause(kShuffle);
    return received_[current_];
  }
  void barrier() { pause(kBarrier); }
  void body() {
    function_(pointers_);
    state_[current_] = kEnded;
  }

 private:
  enum State : char { kReady, kShuffle, kBarrier, kEnded };
  // To the compiler getcontext returns twice: nothing else stands beside it.
  void start(int t);
  void pause(State why) {
    state_[current_] = why;
    int me = current_;
    ::swapcontext(&threads_contexts_[me], &scheduler_);
  }
  void run_warp(int first) {
    int last = std::min(first + kLanes, threads_);
    while (true) {
      for (int t = first; t < last; ++t) {
        if (state_[t] != kReady) continue;
        current_ = t;
        ::swapcontext(&scheduler_, &threads_contexts_[t]);
      }
      bool any = false;
      for (int t = first; t < last; ++t) {
        if (state_[t] != kShuffle) continue;
        any = true;
        int from = t + distance_[t];
        received_[t] = sent_[from < last ? from : t];
      }
      if (!any) return;
      for (int t = first; t < last; ++t)
        if (state_[t] == kShuffle) state_[t] = kReady;
    }
  }

  char* stacks_;
  ThreadFunction function_ = nullptr;
  char* const* pointers_ = nullptr;
  int threads_ = 0, current_ = 0;
  ucontext_t scheduler_, threads_contexts_[kMostThreads];
  State state_[kMostThreads];
  int32_t sent_[kMostThreads], received_[kMostThreads], distance_[kMostThreads];
};

thread_local Block* block = nullptr;
thread_local int32_t block_number = 0, thread_number = 0;

int32_t emulated_tid() { return block ? block->current() : thread_number; }
int32_t emulated_ctaid() { return block_number; }
int32_t emulated_shuffle_down(int32_t value, int32_t delta) { return block->shuffle(value, delta); }
void emulated_barrier() { block->barrier(); }
void thread_main() { block->body(); }

void Block::start(int t) {
  ucontext_t& c = threads_contexts_[t];
  ::getcontext(&c);
  c.uc_stack.ss_sp = stacks_ + static_cast<size_t>(t) * kStack;
  c.uc_stack.ss_size = kStack;
  c.uc_link = &scheduler_;
  ::makecontext(&c, thread_main, 0);
  state_[t] = kReady;
}

class Emulated : public HostMemoryDevice {
 public:
  std::string name() const override { return "the emulated grid"; }

  std::vector<Kernel> load(const Module& m, const std::vector<std::vector<InstId>>& kinds,
                           std::vector<std::pair<size_t, std::string>>* without) override {
    JitModules code;
    std::vector<Kernel> kernels = code.build(m, kinds, build_emulated_kernel, without);
    jits_.push_back(code.finish([](llvm::orc::LLJIT& jit) {
      llvm::orc::SymbolMap symbols;
      auto add = [&](const char* name, auto* function) {
        symbols[jit.mangleAndIntern(name)] = {llvm::orc::ExecutorAddr::fromPtr(function),
                                              llvm::JITSymbolFlags::Exported | llvm::JITSymbolFlags::Callable};
      };
      add("hlo_emulated_tid", &emulated_tid);
      add("hlo_emulated_ctaid", &emulated_ctaid);
      add("hlo_emulated_shuffle_down", &emulated_shuffle_down);
      add("hlo_emulated_barrier", &emulated_barrier);
      return jit.getMainJITDylib().define(llvm::orc::absoluteSymbols(std::move(symbols)));
    }));
    for (const Kernel& k : kernels) {
      kernels_.emplace_back();
      for (const KernelPart& p : k.parts) kernels_.back().push_back({jit_function(*jits_.back(), p.function), p});
    }
    return kernels;
  }

  void copy(char* to, const char* from, int64_t bytes) override {
    if (bytes) std::memcpy(to, from, static_cast<size_t>(bytes));
  }
  void fill(char* to, uint32_t pattern, int width, int64_t count) override {
    for (int64_t k = 0; k < count; ++k) std::memcpy(to + k * width, &pattern, static_cast<size_t>(width));
  }

  void launch(size_t kernel, size_t part, std::span<char* const> pointers, std::span<const int32_t> numbers) override {
    const auto& [address, p] = kernels_[kernel][part];
    std::vector<char*> all(pointers.begin(), pointers.end());
    all.push_back(reinterpret_cast<char*>(const_cast<int32_t*>(numbers.data())));
    auto function = reinterpret_cast<ThreadFunction>(address);
    if (p.barrier_scope != KernelPart::kNone && !block_) block_ = std::make_unique<Block>();
    for (int64_t b = 0; b < p.blocks; ++b) {
      block_number = static_cast<int32_t>(b);
      if (p.barrier_scope != KernelPart::kNone) {
        block = block_.get();
        block->run(function, all.data(), static_cast<int>(p.threads));
        block = nullptr;
        continue;
      }
      for (int64_t t = 0; t < p.threads; ++t) {
        thread_number = static_cast<int32_t>(t);
        function(all.data());
      }
    }
  }

 private:
  std::vector<std::unique_ptr<llvm::orc::LLJIT>> jits_;
  std::vector<std::vector<std::pair<void*, KernelPart>>> kernels_;
  std::unique_ptr<Block> block_;
};

}  // namespace

std::unique_ptr<Device> emulated_device() { return std::make_unique<Emulated>(); }

}  // namespace hlo
