#include <atomic>
#include <cstring>

#include "ir/base/parallel.h"
#include "ir/eval/evaluator.h"
#include "ir/types/tiling.h"

namespace hlo {

// An element of the result is the one of the operand that lies at its place in memory.
Value Evaluator::tiled_bitcast(InstId inst, const Value& in) {
  const ShapeId out_id = m_.shape_id(inst);
  const Shape &from = u_[in.shape], &to = u_[out_id];
  if (type_bits(from.type) != type_bits(to.type) || storage_bytes(from.type) != storage_bytes(to.type))
    refuse(inst, "a bitcast of a tiled layout to elements of another size");
  // libtpu's last stages leave tiles out of some arrays on the chip: how those lie nobody knows.
  if (from.layout.rest.starts_with("T(") != to.layout.rest.starts_with("T(") && from.elements_count() > 1)
    refuse(inst, "a bitcast between an array in tiles and one whose tiles are not known");
  const std::optional<TiledOrder> operand = TiledOrder::of(from), result = TiledOrder::of(to);
  if (!operand || !result) refuse(inst, "a bitcast of a layout whose order in memory is unknown");
  if (operand->same_as(*result)) {
    Value out = in;
    out.shape = out_id;
    return out;
  }
  Value out = make(out_id);
  const auto width = static_cast<size_t>(storage_bytes(to.type));
  std::atomic<bool> filling = false;
  parallel_ranges(to.elements_count(), 1 << 14, [&](int64_t first, int64_t last) {
    Dims index(to.dims.size());
    for (int64_t rest = first, d = to.rank(); d-- > 0; rest /= to.dims[static_cast<size_t>(d)])
      index[static_cast<size_t>(d)] = rest % to.dims[static_cast<size_t>(d)];
    for (int64_t k = first; k < last; ++k) {
      const int64_t place = result->place(index);
      const int64_t source = place < operand->places() ? operand->element_at(place) : -1;
      if (source < 0) {
        filling = true;
        return;
      }
      std::memcpy(out.data->data() + static_cast<size_t>(k) * width, in.bytes() + static_cast<size_t>(source) * width,
                  width);
      for (size_t d = index.size(); d-- > 0;) {
        if (++index[d] < to.dims[d]) break;
        index[d] = 0;
      }
    }
  });
  if (filling) refuse(inst, "a bitcast that reads what fills up tiles, which has no value");
  return out;
}

}  // namespace hlo
