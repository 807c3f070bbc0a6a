// Another batch size: a module of three times the batch, run on the same inputs three times over, gives the same
// results three times over; modules by chance get another batch that verifies, or are refused.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <map>

#include "ir/eval/evaluator.h"
#include "ir/verify/verifier.h"
#include "parser/parser.h"
#include "replay/judge/arguments/inputs.h"
#include "replay/os/files.h"
#include "replay/report/what_if/batch.h"
#include "tests/common/random_module.h"

namespace hlo {
namespace {

std::unique_ptr<Module> batch_module(const std::string& text) {
  return parse_module(text, std::make_shared<Universe>(), {});
}

// Its members once more and again, along the first dimension; as it is where the shape is the same.
Value three_times(const Universe& u, const Value& v, ShapeId wide) {
  if (v.shape == wide) return v;
  Value out;
  out.shape = wide, out.data = new_array(u, wide);
  EXPECT_EQ(out.data->size(), 3 * v.data->size());
  for (size_t n = 0; n < 3; ++n)
    std::copy(v.data->begin(), v.data->end(), out.data->begin() + static_cast<ptrdiff_t>(n * v.data->size()));
  return out;
}

class Batches : public testing::TestWithParam<const char*> {};

// None of these has an operation over the batch.
TEST_P(Batches, GiveEachMemberItsOwn) {
  auto m = batch_module(read_file(fmt::format("{}/{}", HLO_TESTDATA, GetParam())));
  BatchChange change;
  with_batch(*m, "", 1, &change);
  auto wide = with_batch(*m, "", 3 * change.from, &change);
  EXPECT_EQ(change.to, 3 * change.from);
  EXPECT_FALSE(change.parameters.empty());
  const std::vector<Value> arguments = seeded_arguments(*m, 1, false);
  std::vector<Value> tiled;
  const std::vector<InstId>& params = wide->comp(wide->entry()).params;
  for (size_t k = 0; k < arguments.size(); ++k)
    tiled.push_back(three_times(m->u(), arguments[k], wide->shape_id(params[k])));
  // A library may sum products of more rows in another order.
  EvalOptions exact;
  exact.exact = true;
  std::vector<Value> was, is;
  flatten(m->u(), Evaluator(*m, exact).run(arguments), &was);
  flatten(m->u(), Evaluator(*wide, exact).run(tiled), &is);
  ASSERT_EQ(was.size(), is.size());
  for (size_t k = 0; k < was.size(); ++k) {
    ASSERT_NE(was[k].shape, is[k].shape);
    EXPECT_EQ(*three_times(m->u(), was[k], is[k].shape).data, *is[k].data) << GetParam() << ", result " << k;
  }
}
INSTANTIATE_TEST_SUITE_P(Modules, Batches,
                         testing::Values("modules/layer_norm.hlo", "modules/softmax.hlo", "modules/llama_block.hlo",
                                         "modules/row.hlo", "modules/sortkv.hlo", "modules/topk.hlo"));

TEST(Batch, OfOneTakesWhatHasNone) {
  // The bias and the table get a batch by being repeated; the rows of one member become those of all.
  auto m = batch_module(R"(HloModule one
ENTRY e {
  x = f32[1,4,6] parameter(0)
  b = f32[6] parameter(1)
  rows = f32[4,6] reshape(x)
  n = f32[4,6] negate(rows)
  back = f32[1,4,6] reshape(n)
  row = f32[1,6] reshape(b)
  wide = f32[1,4,6] broadcast(row), dimensions={0,2}
  table = f32[1,4,6] constant({{{1,2,3,4,5,6},{1,1,1,1,1,1},{2,2,2,2,2,2},{0,1,0,1,0,1}}})
  s = f32[1,4,6] add(back, wide)
  ROOT r = f32[1,4,6] add(s, table)
})");
  BatchChange change;
  auto wide = with_batch(*m, "", 3, &change);
  EXPECT_EQ(change.parameters, std::vector<std::string>{"x"});
  std::vector<Value> arguments = seeded_arguments(*m, 1, false), tiled = arguments;
  tiled[0] = three_times(m->u(), arguments[0], wide->shape_id(wide->comp(wide->entry()).params[0]));
  const Value was = Evaluator(*m).run(arguments), is = Evaluator(*wide).run(tiled);
  EXPECT_EQ(*three_times(m->u(), was, is.shape).data, *is.data);
}

TEST(Batch, ByChance) {
  size_t changed = 0;
  std::map<std::string, size_t> refused;
  const char* wanted = std::getenv("HLO_RANDOM");
  for (int64_t k = 1; k <= (wanted ? std::atoll(wanted) : 1000); ++k) {
    auto m = batch_module(random_module(static_cast<uint64_t>(k), 6 + static_cast<int>(k % 20)));
    for (int64_t to : {int64_t{1}, int64_t{5}}) try {
        BatchChange change;
        auto other = with_batch(*m, "0", to, &change);
        EXPECT_TRUE(verify_module(*other).empty());
        ++changed;
        // And back again to the same types.
        auto same = with_batch(*m, "0", change.from, &change);
        for (CompId c : m->computations())
          for (InstId i : m->live_order(c)) EXPECT_EQ(same->shape_id(i), m->shape_id(i)) << "seed " << k;
      } catch (const Failure& e) {
        const bool told = e.kind() == FailureKind::kUsage || e.kind() == FailureKind::kUnsupported;
        EXPECT_TRUE(told) << "seed " << k << ": " << e.what();
        std::string why = e.what();
        ++refused[why.substr(why.find(':') + 1).substr(0, 60)];
      }
  }
  EXPECT_GT(changed, 50u);
  for (const auto& [why, n] : refused) RecordProperty(fmt::format("refused {}", n), why);
}

}  // namespace
}  // namespace hlo
