// Which instruction of a stage is which of the one before (replay/record/match/match.h), and folders of XLA's as
// recordings: names of stages, files of several runs, what is kept between runs.
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "ir/print/print.h"
#include "parser/parser.h"
#include "replay/os/files.h"
#include "replay/record/files/dump_names.h"
#include "replay/record/match/match.h"
#include "replay/record/recording/cache.h"
#include "replay/record/recording/import.h"

namespace hlo {
namespace {

namespace fs = std::filesystem;

// Two stages, and what lives on as what, by name.
class Pair {
 public:
  Pair(const std::string& before, const std::string& after, const MatchOptions& options = hidden())
      : a_(parse_module(before, universe_)),
        b_(parse_module(after, universe_)),
        match_(match_stages(*a_, *b_, options)) {}

  static MatchOptions hidden() {
    MatchOptions options;
    options.use_metadata = false;
    return options;
  }
  // `same x`, or `cloned x, derived y`, sorted; empty: new.
  std::string origin(const std::string& name) const {
    InstId y = find(*b_, name);
    if (InstId x = match_.same[y.value]; x.valid()) return "same " + std::string(a_->inst_name(x));
    std::vector<std::string> all;
    for (const Heir& h : match_.heirs)
      if (h.to == y) all.push_back(word(h.kind) + " " + std::string(a_->inst_name(h.from)));
    return joined(all);
  }
  std::string heirs(const std::string& name) const {
    InstId x = find(*a_, name);
    std::vector<std::string> all;
    for (const Heir& h : match_.heirs)
      if (h.from == x) all.push_back(word(h.kind) + " " + std::string(b_->inst_name(h.to)));
    return joined(all);
  }
  bool undecided(const std::string& name) const { return match_.undecided[find(*a_, name).value]; }

 private:
  static std::string word(HeirKind kind) {
    return kind == HeirKind::kReplaced ? "replaced" : kind == HeirKind::kCloned ? "cloned" : "derived";
  }
  static std::string joined(std::vector<std::string> all) {
    std::sort(all.begin(), all.end());
    std::string out;
    for (const std::string& one : all) out += (out.empty() ? "" : ", ") + one;
    return out;
  }
  static InstId find(const Module& m, const std::string& name) {
    for (CompId c : m.computations())
      for (InstId i : m.comp(c).order)
        if (m.alive(i) && m.inst_name(i) == name) return i;
    ADD_FAILURE() << "no " << name;
    return m.comp(m.entry()).root;
  }
  std::shared_ptr<Universe> universe_ = std::make_shared<Universe>();
  std::unique_ptr<Module> a_, b_;
  StageMatch match_;
};

TEST(Ancestors, WhatStaysAndWhatIsRenamed) {
  Pair p(R"(HloModule m
ENTRY e {
  p = f32[4] parameter(0)
  add.5 = f32[4] add(p, p)
  mul.3 = f32[4] multiply(add.5, p)
  ROOT neg.1 = f32[4] negate(mul.3)
})",
         R"(HloModule m
ENTRY e {
  p = f32[4] parameter(0)
  add.5.0 = f32[4] add(p, p)
  mul.3.0 = f32[4] multiply(add.5.0, p)
  ROOT neg.1 = f32[4] negate(mul.3.0)
})");
  EXPECT_EQ(p.origin("add.5.0"), "same add.5");
  EXPECT_EQ(p.origin("mul.3.0"), "same mul.3");
  EXPECT_EQ(p.origin("neg.1"), "same neg.1");
}

TEST(Ancestors, AProducerInTwoFusions) {
  Pair p(R"(HloModule m
ENTRY e {
  p = f32[8] parameter(0)
  q = f32[8] parameter(1)
  exp.1 = f32[8] exponential(p)
  add.2 = f32[8] add(exp.1, q)
  mul.3 = f32[8] multiply(exp.1, q)
  ROOT t = (f32[8], f32[8]) tuple(add.2, mul.3)
})",
         R"(HloModule m
f1 {
  a = f32[8] parameter(0)
  b = f32[8] parameter(1)
  k = f32[8] exponential(a)
  ROOT r = f32[8] add(k, b)
}
f2 {
  c = f32[8] parameter(0)
  d = f32[8] parameter(1)
  l = f32[8] exponential(c)
  ROOT s = f32[8] multiply(l, d)
}
ENTRY e {
  p = f32[8] parameter(0)
  q = f32[8] parameter(1)
  one = f32[8] fusion(p, q), kind=kLoop, calls=f1
  two = f32[8] fusion(p, q), kind=kLoop, calls=f2
  ROOT t = (f32[8], f32[8]) tuple(one, two)
})");
  EXPECT_EQ(p.heirs("exp.1"), "cloned k, cloned l");
  EXPECT_EQ(p.origin("r"), "cloned add.2");
  EXPECT_EQ(p.origin("one"), "replaced add.2");
  EXPECT_EQ(p.origin("two"), "replaced mul.3");
}

TEST(Ancestors, CallsInlinedAndLoopsUnrolled) {
  Pair p(R"(HloModule m
f {
  a = f32[4] parameter(0)
  sin.1 = f32[4] sine(a)
  ROOT cos.1 = f32[4] cosine(sin.1)
}
body {
  s = (s32[], f32[4]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  v = f32[4] get-tuple-element(s), index=1
  one = s32[] constant(1)
  next = s32[] add(i, one)
  tanh.1 = f32[4] tanh(v)
  ROOT out = (s32[], f32[4]) tuple(next, tanh.1)
}
cond {
  s.1 = (s32[], f32[4]) parameter(0)
  i.1 = s32[] get-tuple-element(s.1), index=0
  end = s32[] constant(1)
  ROOT lt = pred[] compare(i.1, end), direction=LT
}
ENTRY e {
  p = f32[4] parameter(0)
  c = f32[4] call(p), to_apply=f
  zero = s32[] constant(0)
  init = (s32[], f32[4]) tuple(zero, c)
  w = (s32[], f32[4]) while(init), condition=cond, body=body
  ROOT r = f32[4] get-tuple-element(w), index=1
})",
         R"(HloModule m
ENTRY e {
  p = f32[4] parameter(0)
  x = f32[4] sine(p)
  y = f32[4] cosine(x)
  ROOT z = f32[4] tanh(y)
})");
  EXPECT_EQ(p.origin("x"), "cloned sin.1");
  EXPECT_EQ(p.origin("y").substr(0, 12), "cloned cos.1");
  EXPECT_EQ(p.origin("z").substr(0, 13), "cloned tanh.1");
}

// simplify-while-loops tells one counter by another: the new body reads a tuple in its parameter's place, in which one
// element is an addition and all others are the parameter's own.
TEST(Ancestors, ABodyThatReadsACounterAsAnAddition) {
  Pair p(R"(HloModule m
body {
  s = (s32[], s32[], f32[8], f32[8]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  j = s32[] get-tuple-element(s), index=1
  u = f32[8] get-tuple-element(s), index=2
  v = f32[8] get-tuple-element(s), index=3
  one = s32[] constant(1)
  inext = s32[] add(i, one)
  jnext = s32[] add(j, one)
  piece = f32[2] dynamic-slice(u, j), dynamic_slice_sizes={2}
  sine.1 = f32[2] sine(piece)
  put.1 = f32[8] dynamic-update-slice(v, sine.1, j)
  ROOT out = (s32[], s32[], f32[8], f32[8]) tuple(inext, jnext, u, put.1)
}
cond {
  s.1 = (s32[], s32[], f32[8], f32[8]) parameter(0)
  i.1 = s32[] get-tuple-element(s.1), index=0
  end = s32[] constant(3)
  ROOT lt = pred[] compare(i.1, end), direction=LT
}
ENTRY e {
  p = f32[8] parameter(0)
  q = f32[8] parameter(1)
  k = s32[] parameter(2)
  zero = s32[] constant(0)
  init = (s32[], s32[], f32[8], f32[8]) tuple(zero, k, p, q)
  w = (s32[], s32[], f32[8], f32[8]) while(init), condition=cond, body=body
  ROOT r = f32[8] get-tuple-element(w), index=3
})",
         R"(HloModule m
body.clone {
  t = (s32[], s32[], f32[8], f32[8]) parameter(0)
  i.c = s32[] get-tuple-element(t), index=0
  j.c = s32[] get-tuple-element(t), index=1
  stride = s32[] constant(1)
  far = s32[] multiply(i.c, stride)
  told = s32[] add(j.c, far)
  u.c = f32[8] get-tuple-element(t), index=2
  v.c = f32[8] get-tuple-element(t), index=3
  whole = (s32[], s32[], f32[8], f32[8]) tuple(i.c, told, u.c, v.c)
  in.i = s32[] get-tuple-element(whole), index=0
  in.j = s32[] get-tuple-element(whole), index=1
  in.u = f32[8] get-tuple-element(whole), index=2
  in.v = f32[8] get-tuple-element(whole), index=3
  step = s32[] constant(1)
  further = s32[] add(in.i, step)
  part = f32[2] dynamic-slice(in.u, in.j), dynamic_slice_sizes={2}
  wave = f32[2] sine(part)
  set = f32[8] dynamic-update-slice(in.v, wave, in.j)
  ROOT back = (s32[], s32[], f32[8], f32[8]) tuple(further, j.c, in.u, set)
}
cond.clone {
  t.1 = (s32[], s32[], f32[8], f32[8]) parameter(0)
  i.d = s32[] get-tuple-element(t.1), index=0
  stop = s32[] constant(3)
  ROOT less = pred[] compare(i.d, stop), direction=LT
}
ENTRY e {
  p = f32[8] parameter(0)
  q = f32[8] parameter(1)
  k = s32[] parameter(2)
  zero = s32[] constant(0)
  init = (s32[], s32[], f32[8], f32[8]) tuple(zero, k, p, q)
  w.1 = (s32[], s32[], f32[8], f32[8]) while(init), condition=cond.clone, body=body.clone
  ROOT r = f32[8] get-tuple-element(w.1), index=3
})");
  EXPECT_EQ(p.origin("told"), "derived j");
  EXPECT_EQ(p.origin("part"), "cloned piece");
  EXPECT_EQ(p.origin("wave"), "cloned sine.1");
  EXPECT_EQ(p.origin("set"), "cloned put.1");
  EXPECT_EQ(p.origin("further"), "cloned inext");
}

// A fusion that was taken apart into another one, beside a value that changed: its body's instructions live on one by
// one, also where the body that nobody calls any more was left.
TEST(Ancestors, AFusionTakenApart) {
  const std::string soft = R"(
soft {
  a = f32[4] parameter(0)
  sine.1 = f32[4] sine(a)
  ROOT cos.1 = f32[4] cosine(sine.1)
})";
  for (bool left : {false, true}) {
    Pair p("HloModule m" + soft + R"(
ENTRY e {
  p = f32[4] parameter(0)
  q = f32[4] parameter(1)
  sum = f32[4] add(p, q)
  f = f32[4] fusion(sum), kind=kLoop, calls=soft
  ROOT r = f32[4] multiply(f, q)
})",
           "HloModule m" + (left ? soft : "") + R"(
all {
  x = f32[4] parameter(0)
  y = f32[4] parameter(1)
  wave = f32[4] sine(x)
  bent = f32[4] cosine(wave)
  ROOT product = f32[4] multiply(bent, y)
}
ENTRY e {
  p = f32[4] parameter(0)
  q = f32[4] parameter(1)
  less = f32[4] subtract(p, q)
  ROOT g = f32[4] fusion(less, q), kind=kLoop, calls=all
})");
    EXPECT_EQ(p.origin("product"), "replaced r") << left;
    EXPECT_EQ(p.origin("bent"), "replaced cos.1, replaced f") << left;
    EXPECT_EQ(p.origin("wave"), "replaced sine.1") << left;
  }
}

// A fusion whose root only moves is what it moves as well.
TEST(Ancestors, AFusionThatEndsByATranspose) {
  Pair p(R"(HloModule m
ENTRY e {
  p = f32[4,2] parameter(0)
  q = f32[4,2] parameter(1)
  product = f32[4,2] multiply(p, q)
  ROOT turned = f32[2,4] transpose(product), dimensions={1,0}
})",
         R"(HloModule m
both {
  x = f32[4,2] parameter(0)
  y = f32[4,2] parameter(1)
  mul.1 = f32[4,2] multiply(x, y)
  ROOT t.1 = f32[2,4] transpose(mul.1), dimensions={1,0}
}
ENTRY e {
  p = f32[4,2] parameter(0)
  q = f32[4,2] parameter(1)
  ROOT f = f32[2,4] fusion(p, q), kind=kInput, calls=both
})");
  EXPECT_EQ(p.origin("f"), "derived product, replaced turned");
}

// Two dots alike but for what they read: each one's heir is its own.
TEST(Ancestors, DotsRewritten) {
  Pair p(R"(HloModule m
ENTRY e {
  p = f32[4,4] parameter(0)
  q = f32[4,4] parameter(1)
  dot.1 = f32[4,4] dot(p, q), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  dot.2 = f32[4,4] dot(dot.1, q), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  ROOT t = (f32[4,4], f32[4,4]) tuple(dot.1, dot.2)
})",
         R"(HloModule m
ENTRY e {
  p = f32[4,4] parameter(0)
  q = f32[4,4] parameter(1)
  gemm.1 = f32[4,4] custom-call(p, q), custom_call_target="__cublas$gemm"
  gemm.2 = f32[4,4] custom-call(gemm.1, q), custom_call_target="__cublas$gemm"
  ROOT t = (f32[4,4], f32[4,4]) tuple(gemm.1, gemm.2)
})");
  EXPECT_EQ(p.origin("gemm.1"), "replaced dot.1");
  EXPECT_EQ(p.origin("gemm.2"), "replaced dot.2");
  EXPECT_EQ(p.heirs("dot.1"), "replaced gemm.1");
}

// A square iota that a normalization of layouts turned, and one that was only laid out anew: their reader tells.
TEST(Ancestors, IotasTurnedWithTheirLayout) {
  const std::string before = R"(HloModule m
ENTRY e {
  x = f32[8,8]{0,1} parameter(0)
  i.1 = s32[8,8]{0,1} iota(), iota_dimension=1
  i.2 = s32[8,8]{0,1} iota(), iota_dimension=0
  c.1 = pred[8,8]{0,1} compare(i.1, i.2), direction=LE
  n = f32[8,8]{0,1} negate(x)
  ROOT s = f32[8,8]{0,1} select(c.1, x, n)
})";
  auto after = [](int first) {
    return fmt::format(R"(HloModule m
ENTRY e {{
  x = f32[8,8]{{0,1}} parameter(0)
  i.7 = s32[8,8]{{1,0}} iota(), iota_dimension={}
  i.8 = s32[8,8]{{1,0}} iota(), iota_dimension={}
  c.7 = pred[8,8]{{1,0}} compare(i.7, i.8), direction=LE
  b = f32[8,8]{{1,0}} bitcast(x)
  n.7 = f32[8,8]{{1,0}} negate(b)
  s.7 = f32[8,8]{{1,0}} select(c.7, b, n.7)
  ROOT r = f32[8,8]{{0,1}} bitcast(s.7)
}})",
                       first, 1 - first);
  };
  Pair turned(before, after(0));
  EXPECT_NE(turned.origin("i.7").find(" i.1"), std::string::npos) << turned.origin("i.7");
  EXPECT_NE(turned.origin("i.8").find(" i.2"), std::string::npos) << turned.origin("i.8");
  EXPECT_EQ(turned.origin("i.7").find(" i.2"), std::string::npos) << turned.origin("i.7");
  Pair laid_anew(before, after(1));
  EXPECT_NE(laid_anew.origin("i.7").find(" i.1"), std::string::npos) << laid_anew.origin("i.7");
  EXPECT_NE(laid_anew.origin("i.8").find(" i.2"), std::string::npos) << laid_anew.origin("i.8");
}

TEST(Ancestors, DeadIsNotUndecided) {
  Pair p(R"(HloModule m
ENTRY e {
  p = f32[4] parameter(0)
  dead = f32[4] cosine(p)
  zero = f32[] constant(0)
  zeros = f32[4] broadcast(zero), dimensions={}
  sum = f32[4] add(p, zeros)
  ROOT r = f32[4] negate(sum)
})",
         R"(HloModule m
ENTRY e {
  p = f32[4] parameter(0)
  ROOT r = f32[4] negate(p)
})");
  EXPECT_EQ(p.heirs("dead"), "");
  EXPECT_FALSE(p.undecided("dead"));
  EXPECT_EQ(p.heirs("sum"), "replaced p");
}

// The same in every order of questions, and for a module against itself.
TEST(Ancestors, OneStageTwice) {
  const std::string text = R"(HloModule m
ENTRY e {
  p = (f32[4], f32[4]) parameter(0)
  x = f32[4] add(p#0, p#1)
  ROOT y = f32[4] multiply(p#0, x)
})";
  MatchOptions nameless = Pair::hidden();
  nameless.use_names = false;
  for (const MatchOptions& options : {Pair::hidden(), nameless}) {
    Pair p(text, text, options);
    for (const char* name : {"p", "p_0", "p_1", "x", "y"}) EXPECT_EQ(p.origin(name), std::string("same ") + name);
  }
}

class Folder {
 public:
  Folder() : path_(fs::temp_directory_path() / ("ancestors_" + unique_ending())) { fs::create_directories(path_); }
  ~Folder() { fs::remove_all(path_); }
  void put(const std::string& name, const std::string& op = "negate") const {
    std::ofstream(path_ / name) << "HloModule f\n\nENTRY e {\n  p = f32[4] parameter(0)\n  ROOT r = f32[4] " << op
                                << "(p)\n}\n";
  }
  std::string path() const { return path_.string(); }

 private:
  fs::path path_;
};

std::vector<std::string> stage_names(const Recording& r) {
  std::vector<std::string> out;
  for (const StageRow& row : r.rows) out.push_back(row.name());
  return out;
}

// A pipeline of the CPU's is called after_layout_assignment.
TEST(Dumps, NamesOfPipelinesThatBeginWithAfter) {
  auto read = [](const char* file) {
    DumpName n;
    EXPECT_TRUE(parse_name(file, &n)) << file;
    return n.stage ? fmt::format("{} {} {} {} {}", n.name, n.number, n.pipeline, n.pass, n.next) : "no stage " + n.rest;
  };
  EXPECT_EQ(read("module_0018.jit_step.0038.after_layout_assignment.after_pipeline-start.before_pipeline-end.txt"),
            "jit_step 38 after_layout_assignment pipeline-start pipeline-end");
  EXPECT_EQ(read("module_0018.f.after_g.0038.after_x.after_dce.txt"), "f.after_g 38 after_x dce ");
  EXPECT_EQ(read("module_0018.jit_step.0039.HLO_passes.after_after_layout_assignment.before_dce.txt"),
            "jit_step 39 HLO_passes after_layout_assignment dce");
  EXPECT_EQ(read("module_0018.f.1234.variant.after_optimizations.txt"),
            "no stage f.1234.variant.after_optimizations.txt");
}

TEST(Dumps, StagesWithoutNumbersHaveTheirPlace) {
  Folder d;
  for (const char* name :
       {"module_0001.f.before_optimizations.txt", "module_0001.f.after_spmd_partitioner.txt",
        "module_0001.f.before_config_assignment.txt", "module_0001.f.sm_9.0a_gpu_after_optimizations.txt",
        "module_0001.f.0000.sharding-removal.after_pipeline-start.before_dce.txt",
        "module_0001.f.0001.host-compute.after_pipeline-start.before_x.txt",
        "module_0001.f.0002.optimization.after_pipeline-start.before_x.txt",
        "module_0001.f.0003.fusion.after_cse.before_dce.txt",
        "module_0001.f.0004.autotuner.after_pipeline-start.before_autotuner.txt"})
    d.put(name);
  auto all = open_folder(d.path());
  ASSERT_EQ(all.size(), 1u);
  EXPECT_EQ(stage_names(all[0]),
            (std::vector<std::string>{
                "before_optimizations", "sharding-removal.after_pipeline-start", "host-compute.after_pipeline-start",
                "after_spmd_partitioner", "optimization.after_pipeline-start", "fusion.after_cse",
                "before_config_assignment", "autotuner.after_pipeline-start", "after_optimizations"}));
  EXPECT_TRUE(all[0].problems.empty());
}

TEST(Dumps, SeveralRunsInOneFolderAreToldApart) {
  Folder names;
  for (const char* module : {"f", "f.long"})
    for (const char* file : {"before_optimizations.txt", "0000.fusion.after_cse.before_dce.txt", "thunk_sequence.txt"})
      names.put(std::string("module_0001.") + module + "." + file);
  auto all = open_folder(names.path());
  ASSERT_EQ(all.size(), 2u);
  EXPECT_EQ(all[0].module_name, "f");
  EXPECT_EQ(all[1].module_name, "f.long");
  EXPECT_EQ(all[1].other_files, std::vector<std::string>{"module_0001.f.long.thunk_sequence.txt"});
  EXPECT_FALSE(all[0].problems.empty());

  Folder numbers;
  numbers.put("module_0001.f.0007.fusion.after_cse.before_dce.txt");
  numbers.put("module_0001.f.0007.simplification.after_algsimp.before_dce.txt");
  all = open_folder(numbers.path());
  ASSERT_EQ(all.size(), 1u);
  ASSERT_FALSE(all[0].problems.empty());
  EXPECT_NE(all[0].problems[0].find("two runs"), std::string::npos);

  Folder times;
  int64_t time = 1690000000000000;
  for (int run = 0; run < 2; ++run)
    for (const char* file : {"before_optimizations.txt", "0000.fusion.after_cse.before_dce.txt",
                             "0001.fusion.after_dce.before_x.txt", "after_optimizations.txt"})
      times.put(std::to_string(time += 1000) + ".module_0001.f." + file);
  all = open_folder(times.path());
  ASSERT_EQ(all.size(), 2u);
  for (const Recording& r : all) EXPECT_EQ(r.rows.size(), 4u);
}

TEST(Dumps, ImportsAreKept) {
  Folder d, cache;
  ::setenv("HLO_REPLAY_CACHE", cache.path().c_str(), 1);
  d.put("module_0001.f.before_optimizations.txt");
  d.put("module_0001.f.0000.fusion.after_cse.before_dce.txt", "cosine");
  auto open = [&] {
    Recording r = open_folder(d.path())[0];
    Lineage& lineage = r.lineage();
    EXPECT_EQ(lineage.size(), 2u);
    EXPECT_EQ(r.rows[1].stage, 1);
    EXPECT_EQ(r.rows[1].after, 2u);
    return print_module(*lineage.module(1));
  };
  auto entries = [&] {
    std::vector<fs::path> out;
    for (const auto& entry : fs::directory_iterator(cache.path())) out.push_back(entry.path());
    return out;
  };
  const std::string first = open();
  ASSERT_EQ(entries().size(), 1u);
  EXPECT_EQ(open(), first);
  EXPECT_EQ(entries().size(), 1u);
  // Damaged: made anew.
  const fs::path kept = entries()[0];
  const auto size = fs::file_size(kept);
  fs::resize_file(kept, size / 2);
  EXPECT_EQ(open(), first);
  EXPECT_EQ(fs::file_size(kept), size);
  // Another content: another entry, and its own answer.
  d.put("module_0001.f.0000.fusion.after_cse.before_dce.txt", "tanh");
  EXPECT_NE(open(), first);
  EXPECT_EQ(entries().size(), 2u);
  // Nowhere.
  ::setenv("HLO_REPLAY_CACHE", "", 1);
  EXPECT_NE(open(), first);
  ::unsetenv("HLO_REPLAY_CACHE");
  size_t files = 0;
  for ([[maybe_unused]] const auto& entry : fs::directory_iterator(d.path())) ++files;
  EXPECT_EQ(files, 2u);
}

}  // namespace
}  // namespace hlo
