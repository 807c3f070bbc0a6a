// All C++ tests in one program, which holds the tool once. Called by the name of a test (build/tests/NAME is a link to
// it), it runs those of NAME.cc; by its own name, all.
#include <gtest/gtest.h>

#include <filesystem>
#include <string>

namespace {

// The tests of `file`, or (`!of`) all others, as patterns: `Suite.*` where all of a suite are, else `Suite.Test`.
std::string patterns(const std::string& file, bool of) {
  std::string out;
  const testing::UnitTest& unit = *testing::UnitTest::GetInstance();
  for (int s = 0; s < unit.total_test_suite_count(); ++s) {
    const testing::TestSuite& suite = *unit.GetTestSuite(s);
    std::string some;
    bool all = true;
    for (int t = 0; t < suite.total_test_count(); ++t) {
      const testing::TestInfo& test = *suite.GetTestInfo(t);
      if ((std::filesystem::path(test.file()).stem() == file) != of)
        all = false;
      else
        some += std::string(":") + suite.name() + "." + test.name();
    }
    out += all ? std::string(":") + suite.name() + ".*" : some;
  }
  return out.empty() ? out : out.substr(1);
}

}  // namespace

int main(int argc, char** argv) {
  std::string called = std::filesystem::path(argv[0]).stem();
  testing::InitGoogleTest(&argc, argv);
  if (called == "hlo_tests") return RUN_ALL_TESTS();
  std::string own = patterns(called, true), filter = GTEST_FLAG_GET(filter);
  if (own.empty()) {
    fprintf(stderr, "no test is of %s.cc\n", called.c_str());
    return 2;
  }
  if (filter == "*")
    filter = own;
  else
    filter += (filter.find('-') == std::string::npos ? "-" : ":") + patterns(called, false);
  GTEST_FLAG_SET(filter, filter);
  return RUN_ALL_TESTS();
}
