// What the engine's tests share: a recording that is made in the test, questions as JSON.
#pragma once
#include <gtest/gtest.h>

#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "parser/parser.h"
#include "replay/os/files.h"
#include "replay/replayer/replayer.h"
#include "viewer/engine/engine.h"

namespace hlo {

using nlohmann::json;

inline constexpr const char* kModule =
    R"(HloModule jit_f, entry_computation_layout={(f32[8,16]{1,0}, f32[16,4]{1,0})->f32[8]{0}}

add {
  x = f32[] parameter(0)
  y = f32[] parameter(1)
  ROOT s = f32[] add(x, y)
}

ENTRY main {
  a = f32[8,16]{1,0} parameter(0)
  b = f32[16,4]{1,0} parameter(1)
  zero = f32[] constant(0)
  zeros = f32[8,16]{1,0} broadcast(zero), dimensions={}
  plus = f32[8,16]{1,0} add(a, zeros), metadata={op_name="jit(f)/layer/plus" source_file="model.py" source_line=7}
  dot = f32[8,4]{1,0} dot(plus, b), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  exp = f32[8,4]{1,0} exponential(dot), metadata={op_name="jit(f)/layer/exp"}
  neg = f32[8,4]{1,0} negate(exp)
  ROOT sum = f32[8]{0} reduce(neg, zero), dimensions={1}, to_apply=add
}
)";

inline json ask(PageEngine& engine, const json& question) { return json::parse(engine.answer(question.dump())); }

// The answer, which must be none of failure.
inline json answered(PageEngine& engine, const json& question) {
  json out = ask(engine, question);
  EXPECT_FALSE(out.contains("error")) << question << "\n" << out.dump(1).substr(0, 2000);
  return out;
}
inline std::string refused(PageEngine& engine, const json& question) {
  json out = ask(engine, question);
  EXPECT_TRUE(out.contains("error")) << question << "\n" << out.dump(1).substr(0, 400);
  return out.contains("error") ? out["error"].value("message", "") : "";
}

inline json at(int module, int state) { return {{"module", module}, {"state", state}}; }

// A recording of a module's way through a pipeline, in a folder that is gone with the object.
class Recorded {
 public:
  explicit Recorded(const std::string& text, const std::string& pipeline = "xla-2019") {
    auto m = parse_module(text, std::make_shared<Universe>());
    ReplayOptions options;
    options.pipeline = pipeline;
    options.formats = {"text", "buffers", "thunks"};
    OutputFolder out(path(), false);
    replay(*m, options, out);
    out.commit();
  }
  std::string path() const { return folder_.path() + "/out"; }

 private:
  TemporaryFolder folder_;
};

class EngineTest : public testing::Test {
 protected:
  static void SetUpTestSuite() { recorded_ = std::make_unique<Recorded>(kModule); }
  static void TearDownTestSuite() { recorded_.reset(); }
  void SetUp() override { engine_.open(recorded_->path()); }

  int states() { return answered(engine_, {{"method", "modules"}})["modules"][0]["states"]; }
  // The id of an instruction by name.
  int id_of(int state, const std::string& name) {
    json hits = answered(engine_, {{"method", "search"}, {"at", at(0, state)}, {"query", "name:" + name}})["hits"];
    for (const json& hit : hits)
      if (hit["name"] == name) return hit["id"];
    ADD_FAILURE() << "no " << name << " in state " << state;
    return 0;
  }

  inline static std::unique_ptr<Recorded> recorded_;
  PageEngine engine_;
};

}  // namespace hlo
