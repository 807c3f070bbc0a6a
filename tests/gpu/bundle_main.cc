// One binary for machines with a card: the tool, and its tests behind --run-tests.
#include <gtest/gtest.h>

#include <cstring>

int hlo_replay_main(int argc, char** argv);

int main(int argc, char** argv) {
  if (argc < 2 || std::strcmp(argv[1], "--run-tests") != 0) return hlo_replay_main(argc, argv);
  testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
