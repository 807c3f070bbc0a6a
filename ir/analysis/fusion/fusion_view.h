// What a kernel would hold: one instruction, a fusion's body, or a producer in its consumer as if they were fused
// already, without touching the module (xla/hlo/utils/hlo_traversal.h, HloFusionAdaptor).
#pragma once
#include <vector>

#include "ir/module.h"

namespace hlo {

class FusionView {
 public:
  FusionView(const Module& m, InstId consumer);
  // The producer is an operand of the consumer. `output`: what it gives is a further result of the kernel.
  FusionView(const Module& m, InstId producer, InstId consumer, bool output = false);

  const Module& module() const { return m_; }
  // What is computed inside; parameters of bodies are none of it, nor the tuple of results.
  const std::vector<InstId>& nodes() const { return nodes_; }
  const std::vector<InstId>& roots() const { return roots_; }
  bool contains(InstId i) const;
  // Operand n, seen through parameters and through the consumer's use of the producer; outside: what the kernel reads.
  InstId operand(InstId i, size_t n) const { return resolve(m_.operand(i, n)); }
  // Inside alone, each once; of what is outside, too.
  std::vector<InstId> users(InstId i) const;
  // What is read from outside, the producer's operands first, each once, with its first place among both operands.
  struct Read {
    InstId inst;
    int64_t in_producer = -1, in_consumer = -1;  // -1: it is none of them
  };
  std::vector<Read> reads() const;
  // Calls it with what is read from outside, with some of it more than once.
  template <class See>
  void each_read(See see) const {
    for (InstId of : {producer_, consumer_})
      if (of.valid())
        for (InstId o : m_.operands(of))
          if (o != producer_) see(o);
  }

 private:
  InstId resolve(InstId i) const;
  void take(InstId i);
  void add_roots(InstId of);
  void add_users(InstId i, std::vector<InstId>* out) const;
  void add_readers(InstId of, CompId body, InstId operand, std::vector<InstId>* out) const;

  const Module& m_;
  InstId producer_, consumer_;
  CompId producer_body_, consumer_body_;
  std::vector<InstId> nodes_, roots_;
};

// As XLA's HloInstruction::IsElementwise says it: fusions of such alone and constants among them.
bool is_elementwise(const Module& m, InstId i);
// A bitcast whose elements keep their width.
bool is_plain_bitcast(const Module& m, InstId i);
// Bits of an element in memory: a predicate takes a byte.
int element_bits(ElementType type);
// Elements of an array, of a tuple's first array.
int64_t first_elements(const Module& m, InstId i);

}  // namespace hlo
