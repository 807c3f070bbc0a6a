// Chosen elements of what several devices have against the whole evaluator, which runs all of them.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "ir/eval/evaluator.h"
#include "ir/eval/widen.h"
#include "ir/types/literal.h"
#include "parser/parser.h"
#include "replay/judge/chosen/elements/device_classes.h"
#include "replay/judge/chosen/elements/elements.h"
#include "replay/judge/chosen/walk/expression_walk.h"

namespace hlo {
namespace {

// Reducers, and what devices send each other by each kind of message; groups of two and of four of eight devices.
constexpr const char* kMessages = R"(HloModule m, replica_count=1, num_partitions=8

add { a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT s = f32[] add(a, b) }

most { a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT s = f32[] maximum(a, b) }

scatter { q = f32[8,3]{1,0} parameter(0)
  ROOT rs = f32[4,3]{1,0} reduce-scatter(q), channel_id=9, replica_groups={{0,1},{3,2},{4,5},{7,6}}, use_global_device_ids=true, dimensions={0}, to_apply=add }

ENTRY e {
  p = f32[8,3]{1,0} parameter(0)
  t = f32[3,8]{1,0} transpose(p), dimensions={1,0}
  sum = f32[8,3]{1,0} all-reduce(p), channel_id=1, replica_groups={{0,1,2,3},{7,6,5,4}}, use_global_device_ids=true, to_apply=add
  turned = f32[3,8]{1,0} all-reduce(t), channel_id=2, replica_groups=[4,2]<=[8], use_global_device_ids=true, to_apply=most
  two = (f32[8,3]{1,0}, f32[3,8]{1,0}) all-reduce(p, t), channel_id=3, replica_groups={}, use_global_device_ids=true, to_apply=add
  two.0 = f32[8,3]{1,0} get-tuple-element(two), index=0
  two.1 = f32[3,8]{1,0} get-tuple-element(two), index=1
  rows = f32[16,3]{1,0} all-gather(p), channel_id=4, replica_groups=[4,2]<=[2,4]T(1,0), use_global_device_ids=true, dimensions={0}
  columns = f32[8,12]{1,0} all-gather(p), channel_id=5, replica_groups={{3,1,0,2},{4,5,6,7}}, use_global_device_ids=true, dimensions={1}
  part = f32[2,3]{1,0} reduce-scatter(p), channel_id=6, replica_groups=[2,4]<=[8], use_global_device_ids=true, dimensions={0}, to_apply=add
  given = f32[8,3]{1,0} all-to-all(p), channel_id=7, replica_groups={{0,1,2,3},{4,5,6,7}}, dimensions={0}
  arrays = (f32[8,3]{1,0}, f32[8,3]{1,0}) all-to-all(p, sum), channel_id=8, replica_groups={{0,4},{1,5},{2,6},{3,7}}
  arrays.0 = f32[8,3]{1,0} get-tuple-element(arrays), index=0
  arrays.1 = f32[8,3]{1,0} get-tuple-element(arrays), index=1
  begun = ((f32[8,3]{1,0}), f32[4,3]{1,0}) async-start(p), calls=scatter
  ended = f32[4,3]{1,0} async-done(begun), calls=scatter
  moved = f32[8,3]{1,0} collective-permute(p), channel_id=10, source_target_pairs={{0,1},{1,2},{2,3},{5,0}}
  sent = (f32[3,8]{1,0}, f32[3,8]{1,0}, u32[], u32[]) collective-permute-start(t), channel_id=11, source_target_pairs={{7,0},{0,7}}
  got = f32[3,8]{1,0} collective-permute-done(sent)
  told = f32[8,3]{1,0} collective-broadcast(p), channel_id=12, replica_groups={{5,0,1},{2,3}}
  id = u32[] partition-id()
  table = s32[8]{0} constant({0, 2, 4, 6, 6, 4, 2, 0})
  one = s32[1]{0} dynamic-slice(table, id), dynamic_slice_sizes={1}
  row = s32[] reshape(one)
  zero = s32[] constant(0)
  own = f32[2,3]{1,0} dynamic-slice(sum, row, zero), dynamic_slice_sizes={2,3}
  gathering = (f32[2,3]{1,0}, f32[16,3]{1,0}) all-gather-start(own), channel_id=13, replica_groups=[1,8]<=[8], use_global_device_ids=true, dimensions={0}
  gathered = f32[16,3]{1,0} all-gather-done(gathering)
  summing = f32[16,3]{1,0} all-reduce-start(gathered), channel_id=14, replica_groups={{0,2,4,6},{1,3,5,7}}, use_global_device_ids=true, to_apply=add
  summed = f32[16,3]{1,0} all-reduce-done(summing)
  ROOT out = (f32[8,3], f32[3,8], f32[8,3], f32[3,8], f32[16,3], f32[8,12], f32[2,3], f32[8,3], f32[8,3], f32[8,3], f32[4,3], f32[8,3], f32[3,8], f32[8,3], u32[], f32[2,3], f32[16,3]) tuple(sum, turned, two.0, two.1, rows, columns, part, given, arrays.0, arrays.1, ended, moved, got, told, id, own, summed)
}
)";

// All elements of each result, of each device, from the parameters.
void check_devices(const std::string& text, const std::vector<int64_t>& classes) {
  const std::unique_ptr<Module> narrow = parse_module(text, std::make_shared<Universe>(), {"devices", 20});
  const std::shared_ptr<const Module> m = widened_module(*narrow);
  Universe& u = m->u();
  const int64_t devices = devices_needed(*m);
  std::vector<std::vector<Value>> arguments;
  for (int64_t d = 0; d < devices; ++d) {
    arguments.emplace_back();
    for (const Value& v : seeded_arguments(*narrow, static_cast<uint64_t>(d) + 1, false))
      arguments.back().push_back(widened_value(u, v));
  }
  const std::vector<Value> results = run_devices(*m, arguments, {});
  Expressions all;
  all.devices().set_devices(devices);
  const ExprStage stage = ExpressionWalk(all, m, nullptr).run();
  std::vector<ExprId> leaves;
  stage.result.leaves(&leaves);
  ChosenElements::Options options;
  options.devices = &all.devices();
  auto leaf = [&](ExprId e, std::span<const int64_t> indices, char* out) {
    const Expr& x = all[e];
    ASSERT_EQ(x.kind, Expr::kParameter);
    const Shape& s = u[x.shape];
    const auto width = static_cast<size_t>(storage_bytes(s.type));
    for (int64_t i : indices) {
      const Value& v = arguments[static_cast<size_t>(i / s.elements_count())][x.leaf];
      std::memcpy(out, v.bytes() + static_cast<size_t>(i % s.elements_count()) * width, width), out += width;
    }
  };
  for (size_t k = 0; k < leaves.size(); ++k) {
    ChosenElements elements(all.all(), leaf, options);
    const Shape& s = u[results[0].elements[k].shape];
    const auto width = static_cast<size_t>(storage_bytes(s.type));
    std::vector<int64_t> at;
    for (int64_t i = 0; i < devices * s.elements_count(); ++i) at.push_back(i);
    const std::vector<char> got = elements.at(leaves[k], at);
    EXPECT_TRUE(elements.uninterpreted().empty()) << k;
    for (int64_t i : at) {
      const char* want = results[static_cast<size_t>(i / s.elements_count())].elements[k].bytes() +
                         static_cast<size_t>(i % s.elements_count()) * width;
      const char* is = got.data() + static_cast<size_t>(i) * width;
      if (is_float(s.type) ? std::fabs(load_double(s.type, is) - load_double(s.type, want)) < 1e-12
                           : std::memcmp(is, want, width) == 0)
        continue;
      ADD_FAILURE() << "result " << k << " element " << i;
      break;
    }
    if (k < classes.size()) {
      std::vector<uint32_t> first = all.devices().first_of(leaves[k]);
      std::sort(first.begin(), first.end());
      EXPECT_EQ(std::unique(first.begin(), first.end()) - first.begin(), classes[k]) << "different values of " << k;
    }
  }
}

TEST(DeviceElements, Messages) {
  // How many different values the eight devices have of each result.
  check_devices(kMessages, {2, 4, 1, 1, 4, 2, 8, 8, 5, 5, 8, 5, 3, 3, 8, 8, 1});
}

// Two replicas of two partitions: what a group's numbers mean goes by the channel and the kind.
TEST(DeviceElements, Replicas) {
  check_devices(R"(HloModule m, replica_count=2, num_partitions=2
add { a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT s = f32[] add(a, b) }

ENTRY e {
  p = f32[4]{0} parameter(0)
  replicas = f32[4]{0} all-reduce(p), replica_groups={{0,1}}, to_apply=add
  both = f32[4]{0} all-reduce(p), channel_id=1, replica_groups={{0,1}}, to_apply=add
  alone = f32[4]{0} all-reduce(p), channel_id=2, replica_groups={{0},{1}}, to_apply=add
  partitions = f32[4]{0} all-to-all(p), channel_id=3, replica_groups={{0,1}}, dimensions={0}
  permuted = f32[4]{0} collective-permute(p), source_target_pairs={{0,1},{1,0}}
  replica = u32[] replica-id()
  partition = u32[] partition-id()
  ROOT out = (f32[4], f32[4], f32[4], f32[4], f32[4], u32[], u32[]) tuple(replicas, both, alone, partitions, permuted, replica, partition)
}
)",
                {2, 1, 2, 4, 4, 2, 2});
}

}  // namespace
}  // namespace hlo
