// One binary for machines with a card: the tool, and its tests behind --run-tests.
#include <gtest/gtest.h>

#include <cstring>

#include "hlo/command_line.h"

int main(int argc, char** argv) {
  if (argc < 2 || std::strcmp(argv[1], "--run-tests") != 0) return hlo::command_line(argc, argv);
  testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
