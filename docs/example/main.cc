// Reads a module, takes it through a pass and a pipeline, runs it, and says what it found.
#include <hlo/hlo.h>

#include <iostream>

int main() try {
  hlo::Module module = hlo::Module::parse(R"(HloModule twice

ENTRY main {
  x = f32[4] parameter(0)
  unused = f32[4] negate(x)
  one = f32[] constant(1)
  ones = f32[4] broadcast(one), dimensions={}
  same = f32[4] multiply(x, ones)
  ROOT sum = f32[4] add(same, same)
})");
  for (const hlo::Instruction& i : module.instructions())
    std::cout << i.name() << " is a " << i.opcode() << " of shape " << i.shape_text() << "\n";

  // One pass, which changes the module.
  hlo::PassResult dce = hlo::run_pass(module, "dce");
  std::cout << "dce: " << dce.rewrites << " rewrite\n";

  // A pipeline, over a copy: every stage is kept.
  hlo::Recording recording = hlo::replay(module);
  for (const hlo::Stage& stage : recording.stages())
    if (stage.changed())
      std::cout << stage.name() << ": " << stage.instructions_before() << " -> " << stage.instructions_after() << "\n";

  // Before and after, on the exact interpreter, give the same.
  const float x[] = {1, 2, 3, 4};
  const std::vector<hlo::Array> inputs = {hlo::Array("f32", {4}, x, sizeof x)};
  hlo::RunResult before = hlo::run(module, inputs);
  hlo::RunResult after = hlo::run(recording.stages().back().module(), inputs);
  std::cout << before.outputs[0].text()
            << (hlo::compare(before.outputs, after.outputs).equal ? " both times\n" : "?\n");

  // What goes wrong is an hlo::Error that says where.
  try {
    hlo::Module::parse("HloModule m\n\nENTRY e {\n  ROOT a = f32[] ad(b)\n}\n");
  } catch (const hlo::Error& e) {
    std::cout << "line " << e.place().line << ": " << e.hint() << "\n";
  }
  return 0;
} catch (const hlo::Error& e) {
  std::cerr << hlo::word(e.kind()) << ": " << e.what() << "\n";
  return 2;
}
