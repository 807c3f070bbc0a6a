// What a module comes to by one XLA or another, under one set of flags or another: the questions of a bisection over
// compilations. Answers are kept on disk by the content of the question, so that a search that was cut off goes on.
#pragma once
#include <functional>
#include <map>
#include <optional>
#include <string>

#include "replay/hunt/guilty.h"
#include "replay/installed/ask.h"
#include "replay/judge/judge.h"

namespace hlo {

enum class XlaBy { kValue, kMemory, kTime, kKernels, kCompileTime, kCrash };
// Throws Failure(kUsage) with the words that there are.
XlaBy xla_by(const std::string& word);

// What may differ between two compilations of one module.
struct XlaSetting {
  std::string engine;  // installed, installed:PYTHON or installed:VERSION
  std::string flags;
  Names disabled;  // passes
};

struct XlaMeasured {
  bool known = false;  // else `words` say why not
  bool good = true;    // by value or crash
  double figure = 0;   // kernels, bytes, seconds
  double noise = 0;    // of a figure that was measured: half the spread of its runs; 0: it is exact
  std::string words;   // "12 kernels", "o0[3] is 1.5, must be 2"
};

class XlaMeasure {
 public:
  // `base`: the module, its target and what all compilations share. `value`: what XLA's results are judged by, given an
  // .npz of outputs (run on this CPU) or else a folder with the dump; by value only. `value_key`: what that depends on.
  XlaMeasure(XlaBy by, XlaQuestion base, ReleaseOptions releases, std::string value_key,
             std::function<Judgement(const std::string& outputs, const std::string& dump)> value);
  // Asked once; the reference stays. Throws Failure where an interpreter is not to be had.
  const XlaMeasured& of(const XlaSetting& s);
  // A compilation with every stage in `folder`. Throws nothing for what XLA does.
  XlaAnswer with_stages(const XlaSetting& s, const std::string& folder);
  const Interpreter& interpreter(const std::string& engine);
  XlaQuestion question(const XlaSetting& s) const;
  // Defaults of its flags; empty, and why, where it does not tell them.
  std::map<std::string, std::string> flag_defaults(const std::string& engine, std::string* why);
  size_t asked() const { return asked_; }      // compilations that were made
  size_t remembered() const { return kept_; }  // answers that were on disk

 private:
  std::string key(const XlaSetting& s);
  XlaMeasured measure(const XlaSetting& s);
  const XlaBy by_;
  const XlaQuestion base_;
  const ReleaseOptions releases_;
  const std::string value_key_;
  const std::function<Judgement(const std::string&, const std::string&)> value_;
  std::map<std::string, Interpreter> interpreters_;
  std::map<std::string, std::string> versions_;  // of interpreters, by their program
  std::map<std::string, XlaMeasured> known_;
  size_t asked_ = 0, kept_ = 0;
  double limit_ = 0;  // seconds; 0: none was answered yet
};

}  // namespace hlo
