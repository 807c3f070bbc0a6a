// Stages of XLA's TPU compiler: tiles, memories on the chip, floats of several precisions, the dump's own files.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <set>

#include "ir/cost/cost.h"
#include "ir/eval/evaluator.h"
#include "ir/print/print.h"
#include "ir/types/tiling.h"
#include "ir/verify/verifier.h"
#include "parser/parser.h"
#include "replay/os/files.h"
#include "replay/record/start/target.h"
#include "replay/report/memory/memory_report.h"
#include "tests/common/compare.h"

namespace hlo {
namespace {

std::shared_ptr<Module> parse(const std::string& text) {
  return parse_module("HloModule m\n" + text, std::make_shared<Universe>(), {"t", 20});
}

// Places of an array of this shape, in row-major order of its elements; "unknown".
std::string places_of(const std::string& shape) {
  auto m = parse("ENTRY e {\n  ROOT p = " + shape + " parameter(0)\n}\n");
  const Shape& s = m->shape(m->comp(m->entry()).root);
  std::optional<TiledOrder> order = TiledOrder::of(s);
  if (!order) return "unknown";
  std::string out = std::to_string(order->places()) + ":";
  Dims index(s.dims.size(), 0);
  for (int64_t k = 0; k < s.elements_count(); ++k) {
    const int64_t place = order->place(index);
    EXPECT_EQ(order->element_at(place), k) << shape;
    out += " " + std::to_string(place);
    for (size_t d = index.size(); d-- > 0; index[d] = 0)
      if (++index[d] < s.dims[d]) break;
  }
  return out;
}

TEST(Tiles, PlacesAreThoseOfXlasTiledLayout) {
  // Rows in pairs, columns in pairs; of the third row and the fifth column the tiles are filled up.
  EXPECT_EQ(places_of("f32[3,5]{1,0:T(2,2)}"), "24: 0 1 4 5 8 2 3 6 7 10 12 13 16 17 20");
  EXPECT_EQ(places_of("f32[2,3]{0,1:T(2,2)}"), "8: 0 2 4 1 3 5");
  // Tiles of tiles: of two bf16 of one column that stand below each other a word is made.
  EXPECT_EQ(places_of("bf16[4,2]{1,0:T(4,2)(2,1)}"), "8: 0 2 1 3 4 6 5 7");
  EXPECT_EQ(places_of("bf16[6]{0:T(8)(4)(2,1)}"), "8: 0 2 4 6 1 3");
  // Tiles of more dimensions than the array has, and an array without any.
  EXPECT_EQ(places_of("f32[2]{0:T(2,4)}"), "8: 0 1");
  EXPECT_EQ(places_of("f32[]{:T(128)}"), "128: 0");
  EXPECT_EQ(places_of("f32[2,2]{0,1:T(1,2)S(1)}"), "4: 0 2 1 3");
  EXPECT_EQ(places_of("f32[2,2]{0,1}"), "4: 0 2 1 3");
}

TEST(Tiles, WhatIsNotUnderstoodIsUnknown) {
  EXPECT_EQ(places_of("bf16[8,16,2]{2,1,0:T(8,*,128)(2,1)}"), "unknown");
  EXPECT_EQ(places_of("f32[8,8]{1,0:T(8,8)(3,1)}"), "unknown");
  EXPECT_EQ(places_of("f32[8,8]{1,0:T(8,8)L(2)}"), "unknown");
  EXPECT_EQ(places_of("f32[8,8]{1,0:T(8,8)SC(0:4)}"), "unknown");
}

std::string bitcast_of(const std::string& from, const std::string& values, const std::string& to) {
  auto m = parse("ENTRY e {\n  c = " + from + " constant(" + values + ")\n  ROOT b = " + to + " bitcast(c)\n}\n");
  try {
    Value v = Evaluator(*m).run({});
    return literal_text(m->u(), m->u().literal(literal_of_value(m->u(), v)), true);
  } catch (const Failure& e) {
    EXPECT_EQ(e.kind(), FailureKind::kUnsupported);
    return e.what();
  }
}

TEST(Tiles, BitcastsKeepPlaces) {
  // Another order of dimensions with the tiles of it: a transposition.
  EXPECT_EQ(bitcast_of("s32[2,3]{1,0:T(2,2)}", "{{1,2,3},{4,5,6}}", "s32[3,2]{0,1:T(2,2)}"),
            "{ { 1, 4 }, { 2, 5 }, { 3, 6 } }");
  // Into the chip's memory, and with a dimension of one more: nothing moves.
  EXPECT_EQ(bitcast_of("s32[2,3]{1,0:T(2,2)}", "{{1,2,3},{4,5,6}}", "s32[2,1,3]{2,0,1:T(2,2)S(1)}"),
            "{ { { 1, 2, 3 } }, { { 4, 5, 6 } } }");
  // Other tiles: what lay in the second row of the first tile is now in the second tile.
  EXPECT_EQ(bitcast_of("s32[2,4]{1,0:T(2,2)}", "{{1,2,3,4},{5,6,7,8}}", "s32[2,4]{1,0:T(1,2)}"),
            "{ { 1, 2, 5, 6 }, { 3, 4, 7, 8 } }");
  EXPECT_EQ(bitcast_of("s32[2,4]{1,0:T(2,2)}", "{{1,2,3,4},{5,6,7,8}}", "s32[8]{0:T(4)}"), "{1, 2, 5, 6, 3, 4, 7, 8}");
  // A part of an array whose other elements lie in the same tile.
  EXPECT_EQ(bitcast_of("s32[3]{0:T(4)}", "{1,2,3}", "s32[1]{0:T(4)}"), "{1}");
}

TEST(Tiles, BitcastsThatHaveNoValueAreRefusedByName) {
  EXPECT_NE(bitcast_of("s32[3]{0:T(4)}", "{1,2,3}", "s32[4]{0:T(4)}").find("fills up tiles"), std::string::npos);
  EXPECT_NE(bitcast_of("s32[2,2]{1,0:T(2,2)}", "{{1,2},{3,4}}", "s32[4]{0:S(1)}").find("tiles are not known"),
            std::string::npos);
  EXPECT_NE(bitcast_of("s32[4]{0:T(4)}", "{1,2,3,4}", "s16[8]{0:T(8)}").find("elements of another size"),
            std::string::npos);
  EXPECT_NE(bitcast_of("s32[1,4]{1,0:T(*,4)}", "{{1,2,3,4}}", "s32[4]{0:T(4)}").find("order in memory is unknown"),
            std::string::npos);
}

// --- costs ---

double bytes_of_root(const std::string& body) {
  auto m = parse("ENTRY e {\n" + body + "\n}\n");
  return CostAnalysis(*m).of(m->comp(m->entry()).root).bytes();
}

TEST(TpuCost, TheChipsOwnMemoryCostsNoBandwidth) {
  EXPECT_EQ(bytes_of_root("p = f32[8,128]{1,0:T(8,128)} parameter(0)\nROOT n = f32[8,128]{1,0:T(8,128)} negate(p)"),
            2 * 4096);
  EXPECT_EQ(bytes_of_root("p = f32[8,128]{1,0:T(8,128)S(1)} parameter(0)\n"
                          "ROOT n = f32[8,128]{1,0:T(8,128)} negate(p)"),
            4096);
  // A GPU's S(1) is memory of the device.
  EXPECT_EQ(bytes_of_root("p = f32[8,128]{1,0:S(1)} parameter(0)\nROOT n = f32[8,128]{1,0} negate(p)"), 2 * 4096);
  // What brings it there reads the large memory; a GPU's reads what goes to the host.
  EXPECT_EQ(bytes_of_root("p = f32[8,128]{1,0:T(8,128)} parameter(0)\n"
                          "ROOT c = (f32[8,128]{1,0:T(8,128)S(1)}, f32[8,128]{1,0:T(8,128)}, u32[]{:S(2)}) "
                          "copy-start(p)"),
            4096);
  EXPECT_EQ(bytes_of_root("p = f32[8,128]{1,0} parameter(0)\n"
                          "ROOT c = (f32[8,128]{1,0:S(5)}, f32[8,128]{1,0}, u32[]) copy-start(p)"),
            4096);
  EXPECT_EQ(bytes_of_root("p = f32[8,128]{1,0:T(8,128)} parameter(0)\n"
                          "ROOT s = f32[4,128]{1,0:T(4,128)S(1)} slice(p), slice={[0:4], [0:128]}"),
            2048);
}

TEST(TpuCost, DataSheets) {
  EXPECT_EQ(device_spec("v5e").name, "TPU v5e");
  EXPECT_EQ(device_spec("tpu v6E").name, "TPU v6e");
  EXPECT_EQ(device_spec("h100").name, "H100");
  EXPECT_THROW(device_spec("v9"), Failure);
  Cost c;
  c.add_product(393e12, Arithmetic::kBF16);
  EXPECT_NEAR(least_seconds(c, device_spec("v5e"), nullptr), 393.0 / 197, 1e-9);
  EXPECT_NEAR(least_seconds(c, device_spec("H100"), nullptr), 393.0 / 989, 1e-9);
  Cost bytes;
  bytes.add_product(393e12, Arithmetic::kS8);  // run twice as fast
  EXPECT_NEAR(least_seconds(bytes, device_spec("v5e"), nullptr), 1, 1e-9);
}

// --- the verifier: what TPU stages may do, and nobody else ---

size_t errors(const std::string& text) { return verify_module(*parse(text)).size(); }

const char* kMixed = R"(
ENTRY e {
  p = f32[8,128]{1,0:T(8,128)} parameter(0)
  q = bf16[8,128]{1,0:T(8,128)(2,1)} parameter(1)
  ROOT r = bf16[8,128]{1,0:T(8,128)(2,1)} add(p, q)
}
)";

std::string with(std::string text, const std::string& from, const std::string& to) {
  size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  for (; at != std::string::npos; at = text.find(from, at + to.size())) text.replace(at, from.size(), to);
  return text;
}

TEST(TpuVerifier, PrecisionsMixWhereLayoutsHaveTiles) {
  EXPECT_EQ(errors(kMixed), 0);
  EXPECT_EQ(errors(with(with(kMixed, ":T(8,128)(2,1)", ""), ":T(8,128)", "")), 1);
  EXPECT_EQ(errors(with(kMixed, "r = bf16[8,128]", "r = bf16[8,64]")), 1);
  EXPECT_EQ(errors(with(kMixed, "q = bf16[8,128]", "q = s32[8,128]")), 1);
}

// A fusion of mobilenet_v1's stage behind bfloat16-propagation, in which f32 pads and replaces what is bf16.
TEST(TpuVerifier, AStageOfBfloat16PropagationAndItsMalformedTwins) {
  const std::string stage = read_file(std::string(HLO_TESTDATA) + "/tpu/mixed_precision.hlo").substr(17);
  EXPECT_EQ(errors(stage), 0);
  std::string untiled = stage;
  for (const char* tiles : {":T(4,128)(2,1)", ":T(4,128)(4,1)", ":T(4,128)", "{:T(128)}"})
    untiled = with(untiled, tiles, "");
  EXPECT_GT(errors(untiled), 0);
  EXPECT_GT(errors(with(stage, "pad.101 = bf16", "pad.101 = s32")), 0);
  EXPECT_GT(errors(with(stage, "pad.101 = bf16[224,1,8,32,3]", "pad.101 = bf16[224,1,8,33,3]")), 0);
  EXPECT_GT(
      errors(with(stage, "constant.138 = f32[]{:T(128)} constant(0)", "constant.138 = s32[]{:T(128)} constant(0)")), 0);
  EXPECT_GT(errors(with(stage, "bf16[224,8,32,3]", "bf16[224,8,32,9]")), 0);
}

TEST(TpuVerifier, BitcastsKeepTheBytesThatTilesTake) {
  const std::string whole =
      "ENTRY e {\n  p = f32[8,1]{1,0:T(8,128)} parameter(0)\n  ROOT r = f32[8,100]{1,0:T(8,128)} bitcast(p)\n}\n";
  EXPECT_EQ(errors(whole), 0);
  EXPECT_EQ(errors(with(whole, "f32[8,100]", "f32[8,129]")), 1);
  // Of an array without tiles it is not told how much it takes.
  EXPECT_EQ(errors(with(with(whole, "f32[8,100]", "f32[8,129]"), "1]{1,0:T(8,128)}", "1]{1,0:S(1)}")), 0);
}

// --- a dump: mnist_softmax of testdata/, compiled by libtpu 0.0.51 for a v5e (tests/dev/oracle/tpu_dumps.py) ---

TEST(TpuDump, IsOpenedWithItsTarget) {
  std::vector<Recording> all = open_folder(std::string(HLO_TESTDATA) + "/tpu/mnist_softmax");
  ASSERT_EQ(all.size(), 1);
  Target t = target_of(all[0], "");
  EXPECT_EQ(t.in_words(), "TPU v5e, libtpu cl_1003875606");
  EXPECT_TRUE(t.spec_known);
  EXPECT_EQ(t.spec.name, "TPU v5e");
  EXPECT_EQ(target_of(all[0], "H100").spec.name, "H100");
}

// `IrToHlo.3979`: torch_xla's names have a number in them, which is no stage's.
TEST(TpuDump, ANumberInTheModulesNameIsNoStage) {
  TemporaryFolder folder;
  const std::string from = std::string(HLO_TESTDATA) + "/tpu/mnist_softmax";
  Recording plain = open_folder(from)[0];
  for (const auto& entry : std::filesystem::directory_iterator(from)) {
    std::string name = entry.path().filename();
    if (const size_t at = name.find("." + plain.module_name + "."); at != std::string::npos)
      name.replace(at + 1, plain.module_name.size(), "IrToHlo.3979.cl_1003875606");
    std::filesystem::copy_file(entry.path(), folder.path() + "/" + name);
  }
  const std::string& start = plain.rows[1].file;
  std::filesystem::copy_file(from + "/" + start, folder.path() +
                                                     "/module_0000.IrToHlo.3979.cl_1003875606.0007.tpu-tiling-rewriter."
                                                     "before_tiling_rewriter.txt");
  std::vector<Recording> all = open_folder(folder.path());
  ASSERT_EQ(all.size(), 1);
  EXPECT_EQ(all[0].module_name, "IrToHlo.3979.cl_1003875606");
  EXPECT_TRUE(all[0].problems.empty()) << all[0].problems[0];
  ASSERT_EQ(all[0].rows.size(), plain.rows.size() + 1);
  const auto row =
      std::find_if(all[0].rows.begin(), all[0].rows.end(), [](const StageRow& r) { return r.number == 7; });
  ASSERT_NE(row, all[0].rows.end());
  EXPECT_EQ(row->pipeline, "tpu-tiling-rewriter");
  EXPECT_EQ(row->kind, StageRow::kPipelineStart);
  EXPECT_EQ(row->next, "tiling_rewriter");
}

TEST(TpuDump, StagesVerifyAndGiveTheSame) {
  Recording r = open_folder(std::string(HLO_TESTDATA) + "/tpu/mnist_softmax")[0];
  const Lineage& lineage = r.lineage();
  ASSERT_EQ(lineage.size(), 4);
  auto first = lineage.module(0);
  for (size_t k = 0; k < lineage.size(); ++k) {
    auto m = lineage.module(k);
    EXPECT_TRUE(verify_module(*m).empty()) << k;
    expect_same_results(*first, *m, 1, 1e-5);
  }
}

TEST(TpuDump, NothingOfItIsLostInPrint) {
  for (const std::string& stage :
       {std::string("0021.Layout_assignment.after_layout-assignment.before_pipeline-end"),
        std::string("0031.Main_fusion.after_tpu_fusion.before_pipeline-end"), std::string("after_optimizations")}) {
    const std::string text =
        read_file(std::string(HLO_TESTDATA) + "/tpu/mnist_softmax/module_0000.cluster_mnist_softmax.cl_1003875606." +
                  stage + ".txt");
    // XLA's dump has its own order of computations, and elements of tuples as `%fusion.2#1`, which are instructions
    // here.
    auto lines = [](const std::string& s) {
      std::multiset<std::string> out;
      for (size_t at = 0, end = 0; at < s.size(); at = end + 1) {
        end = std::min(s.find('\n', at), s.size());
        if (std::string line = s.substr(at, end - at); line.find("#") == std::string::npos) out.insert(line);
      }
      return out;
    };
    const std::multiset<std::string> ours = lines(print_module(*parse_module(text, std::make_shared<Universe>()))),
                                     theirs = lines(text);
    EXPECT_TRUE(std::includes(ours.begin(), ours.end(), theirs.begin(), theirs.end())) << stage;
  }
}

TEST(TpuDump, MemoryOfTheChipIsToldApart) {
  Recording r = open_folder(std::string(HLO_TESTDATA) + "/tpu/mnist_softmax")[0];
  std::optional<MemoryReport> report = memory_from_files(r);
  ASSERT_TRUE(report.has_value());
  EXPECT_EQ(report->arguments, 372736 + 57344 + 512);
  EXPECT_EQ(report->elsewhere, 385536 + 4);
  // As libtpu's own report of the default memory says, but for the bodies of reductions, which are no kernels' memory.
  EXPECT_EQ(report->allocated, 483840 - 6 * 512);
}

}  // namespace
}  // namespace hlo
