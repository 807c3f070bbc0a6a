// Lineages and their store: what is written is read again, what is damaged says so, and no file crashes the reader.
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <random>

#include "ir/print/print.h"
#include "parser/parser.h"
#include "passes/pipelines/pipelines.h"
#include "replay/os/files.h"
#include "replay/record/match/match.h"
#include "replay/record/recording/store.h"
#include "replay/record/recording/store_format.h"
#include "tests/common/random_module.h"

namespace hlo {
namespace {

std::string exact_text(const Module& m) {
  PrintOptions o;
  o.lossless = true;
  return print_module(m, o);
}

// A replay in memory: the lineage, the rows, and each stage's text as it was.
struct Replayed {
  Recording recording;
  std::shared_ptr<Lineage> lineage;
  std::vector<std::string> texts;
};

Replayed replayed(const std::string& text, const std::string& pipeline) {
  Replayed out;
  auto universe = std::make_shared<Universe>();
  auto m = parse_module(text, universe, {});
  out.recording.source = "hlo-replay", out.recording.module_name = m->name(), out.recording.pipeline = pipeline;
  out.lineage = std::make_shared<Lineage>(universe);
  auto add = [&](const Module& now, StageRow row) {
    row.stage = static_cast<int>(out.lineage->add(const_cast<Module&>(now)));
    out.texts.push_back(exact_text(now));
    out.recording.rows.push_back(std::move(row));
  };
  StageRow input;
  input.kind = StageRow::kInput;
  add(*m, input);
  PipelineOptions options;
  options.observe = [&](const Module& now, const PassEvent& e) {
    if (e.kind != PassEvent::kPass || !e.changed) return;
    StageRow row;
    row.pipeline = e.pipeline, row.pass = e.pass, row.changed = true, row.notes = e.notes, row.rewrites = e.rewrites;
    add(now, row);
  };
  run_pipeline(*m, *find_pipeline(pipeline), options);
  return out;
}

void expect_same_stages(const Replayed& was, const Lineage& now, size_t stages, const std::string& what) {
  ASSERT_GE(now.size(), stages) << what;
  for (size_t k = 0; k < stages; ++k) ASSERT_EQ(exact_text(*now.module(k)), was.texts[k]) << what << ", stage " << k;
}

void round_trip(const std::string& text, const std::string& pipeline, const std::string& what) {
  Replayed r = replayed(text, pipeline);
  expect_same_stages(r, *r.lineage, r.texts.size(), what + ", in memory");
  std::string bytes = store_bytes(r.recording, *r.lineage);
  StoredRecording stored = read_store(bytes, "store");
  EXPECT_TRUE(stored.lost.empty()) << what << ": " << stored.lost[0];
  ASSERT_EQ(stored.lineage->size(), r.texts.size()) << what;
  expect_same_stages(r, *stored.lineage, r.texts.size(), what);
  for (size_t k = 0; k < r.texts.size(); ++k) {
    EXPECT_EQ(stored.lineage->heirs(k).size(), r.lineage->heirs(k).size()) << what;
    StageDiff a = stored.lineage->changes(k), b = r.lineage->changes(k);
    EXPECT_EQ(a.added.size(), b.added.size()) << what;
    EXPECT_EQ(a.removed.size(), b.removed.size()) << what;
    EXPECT_EQ(a.modified.size(), b.modified.size()) << what;
    const std::vector<Note>&x = stored.recording.rows[k].notes, &y = r.recording.rows[k].notes;
    ASSERT_EQ(x.size(), y.size()) << what;
    for (size_t n = 0; n < x.size(); ++n) EXPECT_TRUE(x[n].rule == y[n].rule && x[n].names == y[n].names) << what;
  }
  // What was read is written as it was.
  EXPECT_EQ(store_bytes(stored.recording, *stored.lineage), bytes) << what;
}

std::string testdata(const std::string& name) { return read_file(std::string(HLO_TESTDATA) + "/" + name); }

TEST(Store, KeepsReplaysOfRandomModules) {
  for (uint64_t seed = 1; seed <= 24; ++seed)
    for (const char* pipeline : {"xla-2019", "xla-gpu"})
      round_trip(random_module(seed, 40), pipeline, fmt::format("seed {}, {}", seed, pipeline));
}

TEST(Store, KeepsReplaysOfRealModules) {
  for (const char* name : {"mobilenet_v1.hlo", "modules/llama_block.hlo", "modules/mixed.hlo"})
    for (const char* pipeline : {"xla-2019", "xla-gpu"}) round_trip(testdata(name), pipeline, name);
  const std::string corpus = std::string(HLO_TESTDATA) + "/../../shared/corpus/";
  for (const char* name :
       {"xla__cpubench__mha_block_1x12x128x64_bf16.hlo.txt", "rocm__resnet50__infer__1gpu__predict_step_m1589.hlo.txt",
        "xla__cpubench__topk_logits_k10_1x50000_bf16.hlo.txt"})
    if (std::filesystem::exists(corpus + name)) round_trip(read_file(corpus + name), "xla-gpu", name);
}

// Either refused in words, or read in front of the damage with a word about the rest.
void expect_told(const Replayed& r, const std::string& bytes, const std::string& what) {
  try {
    StoredRecording stored = read_store(bytes, "store");
    EXPECT_FALSE(stored.lost.empty()) << what;
    expect_same_stages(r, *stored.lineage, stored.lineage->size(), what);
  } catch (const Failure& e) {
    EXPECT_TRUE(std::string_view(e.what()).starts_with("store")) << what << ": " << e.what();
  }
}

struct Section {
  std::string tag;
  size_t entry, offset, size;
};
std::vector<Section> sections_of(const std::string& bytes) {
  auto at = [&](size_t k, int n) {
    uint64_t v = 0;
    for (int b = 0; b < n; ++b) v |= uint64_t{static_cast<unsigned char>(bytes[k + static_cast<size_t>(b)])} << 8 * b;
    return static_cast<size_t>(v);
  };
  std::vector<Section> out;
  for (size_t k = 0; k < at(12, 4); ++k) {
    size_t entry = kStoreHead + k * kStoreEntry;
    out.push_back({bytes.substr(entry, 4), entry, at(entry + 8, 8), at(entry + 16, 8)});
  }
  return out;
}

// With the checksums of what now stands there: a hostile file, not a damaged one.
void seal(std::string& bytes) {
  auto put = [&](size_t k, uint32_t v) {
    for (size_t b = 0; b < 4; ++b) bytes[k + b] = static_cast<char>(v >> 8 * b);
  };
  std::vector<Section> all = sections_of(bytes);
  for (const Section& s : all)
    if (s.offset <= bytes.size() && s.size <= bytes.size() - s.offset)
      put(s.entry + 24, checksum_of(std::string_view(bytes).substr(s.offset, s.size)));
  size_t end = kStoreHead + all.size() * kStoreEntry;
  put(end, checksum_of(std::string_view(bytes).substr(0, end)));
}

TEST(Store, TruncatedFilesAreReadInFrontOfTheCut) {
  Replayed r = replayed(testdata("modules/softmax.hlo"), "xla-2019");
  const std::string bytes = store_bytes(r.recording, *r.lineage);
  ASSERT_GT(r.texts.size(), 3u);
  for (const Section& s : sections_of(bytes))
    for (size_t cut : {s.offset, s.offset + s.size / 2, s.offset + s.size})
      if (cut < bytes.size()) expect_told(r, bytes.substr(0, cut), fmt::format("{} cut at {}", s.tag, cut));
  for (size_t cut = 0; cut < kStoreHead + 4; ++cut) expect_told(r, bytes.substr(0, cut), fmt::format("cut at {}", cut));
  // A cut in the last stage leaves the others, and what is lost is said.
  std::vector<Section> all = sections_of(bytes);
  StoredRecording most = read_store(bytes.substr(0, all[all.size() - 2].offset + 1), "store");
  EXPECT_EQ(most.lineage->size(), r.texts.size() - 1);
  ASSERT_FALSE(most.lost.empty());
  EXPECT_NE(most.lost[0].find("cut off"), std::string::npos) << most.lost[0];
  // Without the heirs of a stage nothing is decided there.
  std::string without = bytes;
  without[all.back().offset] = static_cast<char>(without[all.back().offset] ^ 1);
  StoredRecording undecided = read_store(without, "store");
  size_t last = undecided.lineage->size() - 1;
  ASSERT_EQ(last, r.texts.size() - 1);
  EXPECT_TRUE(undecided.lineage->heirs(last).empty());
  for (InstId i : undecided.lineage->changes(last).removed) EXPECT_FALSE(undecided.lineage->decided(last, i));
}

TEST(Store, FlippedBitsAreSeen) {
  Replayed r = replayed(testdata("modules/softmax.hlo"), "xla-2019");
  const std::string bytes = store_bytes(r.recording, *r.lineage);
  const size_t padding = kStoreHead + sections_of(bytes).size() * kStoreEntry + 4;  // four bytes that nobody reads
  std::mt19937 random(7);
  for (int k = 0; k < 400; ++k) {
    std::string bad = bytes;
    size_t at = random() % bad.size();
    if (at >= padding && at < padding + 4) continue;
    bad[at] = static_cast<char>(bad[at] ^ (1 << random() % 8));
    expect_told(r, bad, fmt::format("flip at {}", at));
  }
}

TEST(Store, OtherVersionsAreRefused) {
  Replayed r = replayed(testdata("add.hlo"), "xla-2019");
  std::string bytes = store_bytes(r.recording, *r.lineage);
  bytes[8] = 2;
  try {
    read_store(bytes, "store");
    FAIL() << "version 2 is read";
  } catch (const Failure& e) {
    EXPECT_EQ(e.kind(), FailureKind::kUnsupported);
    EXPECT_EQ(std::string(e.what()), "store has version 2, this program reads 1");
  }
  EXPECT_THROW(read_store("HloModule x", "store"), Failure);
  EXPECT_THROW(read_store("", "store"), Failure);
}

// Bytes changed by chance under right checksums: refused, or modules that can be walked over and printed.
TEST(Store, HostileFilesDoNotCrash) {
  size_t refused = 0, read = 0;
  for (const char* name : {"modules/softmax.hlo", "modules/gather.hlo", "linear_regression_loop.hlo"}) {
    Replayed r = replayed(testdata(name), "xla-2019");
    const std::string bytes = store_bytes(r.recording, *r.lineage);
    std::vector<Section> all = sections_of(bytes);
    std::mt19937 random(11);
    for (int k = 0; k < 2500; ++k) {
      std::string bad = bytes;
      const Section& s = all[random() % all.size()];
      if (!s.size) continue;
      for (uint32_t n = random() % 3 + 1; n > 0; --n) {
        char& c = bad[s.offset + random() % s.size];
        c = static_cast<char>(random() % 2 ? random() : static_cast<uint32_t>(c) + random() % 3 - 1);
      }
      seal(bad);
      try {
        StoredRecording stored = read_store(bad, "store");
        for (size_t stage = 0; stage < stored.lineage->size(); ++stage) {
          exact_text(*stored.lineage->module(stage));
          stored.lineage->changes(stage);
        }
        store_bytes(stored.recording, *stored.lineage);
        ++read;
      } catch (const Failure& e) {
        EXPECT_NE(e.kind(), FailureKind::kInternal) << e.what();
        ++refused;
      }
    }
  }
  EXPECT_GT(refused, 1000u);
  EXPECT_GT(read, 100u);
}

InstId named(const Module& m, std::string_view name) {
  for (CompId c : m.computations())
    for (InstId i : m.live_order(c))
      if (m.inst_name(i) == name) return i;
  return {};
}

const char* const kSmall = R"(HloModule small

ENTRY e {
  p = f32[4] parameter(0)
  a = f32[4] add(p, p)
  b = f32[4] multiply(a, a)
  ROOT r = f32[4] negate(b)
}
)";

TEST(Lineage, HeirsOfAPassLeadToWhatLives) {
  auto universe = std::make_shared<Universe>();
  auto m = parse_module(kSmall, universe, {});
  Lineage lineage(universe);
  lineage.add(*m);
  InstId a = named(*m, "a"), b = named(*m, "b"), p = named(*m, "p");
  // Through one that comes and goes.
  InstId between = m->add(m->entry(), {.op = Opcode::Subtract, .shape = m->shape_id(a), .operands = {p, p}});
  m->replace(a, between);
  InstId end = m->add(m->entry(), {.op = Opcode::Maximum, .shape = m->shape_id(b), .operands = {p, p}});
  m->replace(between, end);
  InstId x = m->clone_inst(b, m->entry(), m->operands(b)), y = m->clone_inst(b, m->entry(), m->operands(b));
  lineage.add(*m);
  auto heirs = lineage.heirs(1);
  ASSERT_EQ(heirs.size(), 3u);
  EXPECT_TRUE(heirs[0].from == a && heirs[0].to == end && heirs[0].kind == HeirKind::kReplaced);
  EXPECT_TRUE(heirs[1].from == b && heirs[1].to == x && heirs[1].kind == HeirKind::kCloned);
  EXPECT_TRUE(heirs[2].from == b && heirs[2].to == y && heirs[2].kind == HeirKind::kCloned);
  EXPECT_TRUE(lineage.decided(1, a));
}

TEST(Lineage, ImportedStagesShareWhatDidNotChange) {
  auto universe = std::make_shared<Universe>();
  Lineage lineage(universe);
  auto first = parse_module(kSmall, universe, {});
  lineage.add(*first, {});
  std::string text = kSmall;
  text.replace(text.find("multiply"), 8, "divide");
  auto second = parse_module(text, universe, {});
  StageMatch match = match_stages(*lineage.module(0), *second);
  lineage.add(*second, match);
  EXPECT_EQ(exact_text(*lineage.module(0)), exact_text(*first));
  EXPECT_EQ(exact_text(*lineage.module(1)), exact_text(*second));
  InstId p = named(*lineage.module(0), "p");
  EXPECT_EQ(p, named(*lineage.module(1), "p"));
  EXPECT_EQ(lineage.stage(0).record(p), lineage.stage(1).record(p));
  EXPECT_LE(lineage.recorder().records(), 6u);  // four, and what was made of the multiply and of its reader
}

}  // namespace
}  // namespace hlo
