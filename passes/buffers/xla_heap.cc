#include "passes/buffers/xla_heap.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <tuple>

#include "passes/buffers/buffer_values.h"

namespace hlo {
namespace {

class HeapSimulation {
 public:
  explicit HeapSimulation(std::vector<HeapValue> values) : values_(std::move(values)) {
    in_time();
    one_at_a_time();
    in_time();
  }

  Heap run() {
    std::map<int64_t, std::pair<std::vector<size_t>, std::vector<size_t>>> steps;  // what begins and what ends
    for (size_t k = 0; k < values_.size(); ++k) {
      steps[values_[k].from].first.push_back(k);
      steps[values_[k].to].second.push_back(k);
    }
    pieces_.resize(values_.size());
    for (auto& [position, step] : steps) {
      for (size_t k : step.first) begin(k, &step.second);
      for (size_t k : step.second) end(k);
    }
    return better();
  }

 private:
  void in_time() {
    std::sort(values_.begin(), values_.end(), [](const HeapValue& a, const HeapValue& b) {
      return std::tuple(a.from, a.to, a.id) < std::tuple(b.from, b.to, b.id);
    });
  }
  // Values of one buffer hand it on: each ends where the next begins.
  void one_at_a_time() {
    std::unordered_map<int, size_t> last;
    for (size_t k = 0; k < values_.size(); ++k) {
      ++count_[values_[k].buffer];
      auto [at, first] = last.try_emplace(values_[k].buffer, k);
      if (first) continue;
      HeapValue &a = values_[at->second], &b = values_[k];
      b.to = std::max(a.to, b.to), a.to = std::min(a.to, b.from);
      at->second = k;
    }
  }
  bool alone(int buffer) const { return count_.at(buffer) == 1; }

  // Time is counted by what begins and what ends, not by positions.
  void begin(size_t k, std::vector<size_t>* ending) {
    const HeapValue& v = values_[k];
    auto [at, fresh] = block_of_.try_emplace(v.buffer, blocks_.size());
    if (fresh) {
      auto giver = ending->end();
      for (int operand : v.operands) {
        if (!alone(v.buffer)) break;
        giver = std::find_if(ending->begin(), ending->end(), [&](size_t x) { return values_[x].buffer == operand; });
        if (giver != ending->end() && alone(operand)) break;
        giver = ending->end();
      }
      if (giver != ending->end()) {
        end(*giver);
        at->second = block_of_.at(values_[*giver].buffer);
        ending->erase(giver);
      } else {
        blocks_.push_back({v.size, 0, {}});
        first_.push_back(k);
      }
    }
    HeapBlock& block = blocks_[at->second];
    block.size = std::max(block.size, v.size);
    pieces_[k] = {at->second, block.times.size()};
    block.times.emplace_back(time_++, 0);
  }
  void end(size_t k) {
    const auto [block, piece] = pieces_[k];
    blocks_[block].times[piece].second = time_++;
  }

  Heap better() {
    // How long the one is there that the place was made for, and all that have it.
    auto own = [&](size_t b) { return blocks_[b].times[0].second - blocks_[b].times[0].first; };
    auto whole = [&](size_t b) {
      int64_t last = 0;
      for (const auto& [from, to] : blocks_[b].times) last = std::max(last, to);
      return last - blocks_[b].times[0].first;
    };
    std::vector<std::pair<std::tuple<int64_t, int64_t, int64_t>, int>> by_size, by_time;
    for (size_t b = 0; b < blocks_.size(); ++b) {
      const int64_t id = values_[first_[b]].id;
      by_size.push_back({{-blocks_[b].size, -own(b), id}, static_cast<int>(b)});
      by_time.push_back({{-whole(b), -blocks_[b].size, id}, static_cast<int>(b)});
    }
    Heap best;
    for (auto* list : {&by_size, &by_time}) {
      std::sort(list->begin(), list->end());
      std::vector<int> order;
      for (const auto& entry : *list) order.push_back(entry.second);
      const int64_t size = best_fit(blocks_, order);
      if (list == &by_time && size >= best.size) break;
      best.size = size;
      for (const auto& [buffer, b] : block_of_) best.offsets[buffer] = blocks_[b].offset;
    }
    return best;
  }

  std::vector<HeapValue> values_;
  std::unordered_map<int, size_t> count_;     // values of each buffer
  std::unordered_map<int, size_t> block_of_;  // by buffer
  std::vector<HeapBlock> blocks_;
  std::vector<size_t> first_;                      // the value that each block was made for
  std::vector<std::pair<size_t, size_t>> pieces_;  // of each value: its block, and which of its times
  int64_t time_ = 0;
};

}  // namespace

Heap simulate_heap(std::vector<HeapValue> values) { return HeapSimulation(std::move(values)).run(); }

}  // namespace hlo
