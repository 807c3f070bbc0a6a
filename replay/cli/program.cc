#include "hlo/command_line.h"

int main(int argc, char** argv) { return hlo::command_line(argc, argv); }
