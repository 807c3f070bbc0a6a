// All C++ tests in one program, which holds the tool once. Called by the name of a test (build/tests/NAME is a link to
// it), it runs those of NAME.cc; by its own name, all.
#include <gtest/gtest.h>

#include <filesystem>
#include <string>

namespace {

// `-Suite.Test:…` over the tests of other files than `file`; whether `file` has any.
bool others(const std::string& file, std::string* pattern) {
  bool any = false;
  const testing::UnitTest& unit = *testing::UnitTest::GetInstance();
  for (int s = 0; s < unit.total_test_suite_count(); ++s) {
    const testing::TestSuite& suite = *unit.GetTestSuite(s);
    for (int t = 0; t < suite.total_test_count(); ++t) {
      const testing::TestInfo& test = *suite.GetTestInfo(t);
      if (std::filesystem::path(test.file()).stem() == file)
        any = true;
      else
        *pattern += std::string(":") + suite.name() + "." + test.name();
    }
  }
  return any;
}

}  // namespace

int main(int argc, char** argv) {
  std::string called = std::filesystem::path(argv[0]).stem();
  testing::InitGoogleTest(&argc, argv);
  if (called == "hlo_tests") return RUN_ALL_TESTS();
  std::string pattern;
  if (!others(called, &pattern)) {
    fprintf(stderr, "no test is of %s.cc\n", called.c_str());
    return 2;
  }
  std::string filter = GTEST_FLAG_GET(filter);
  if (!pattern.empty()) {
    if (filter.find('-') == std::string::npos)
      filter += "-" + pattern.substr(1);
    else
      filter += pattern;
  }
  GTEST_FLAG_SET(filter, filter);
  return RUN_ALL_TESTS();
}
