// The page's engine as native code, asked by lines as engine_ask.js is: {"put":NAME,"file":PATH} or a question a line,
// its answer a line behind milliseconds and 0.
#include <fmt/format.h>

#include <chrono>
#include <iostream>
#include <nlohmann/json.hpp>
#include <string>

#include "replay/os/files.h"
#include "viewer/engine/engine.h"

int main() {
  hlo::PageEngine engine;
  for (std::string line; std::getline(std::cin, line);) {
    const auto asked = nlohmann::json::parse(line);
    const auto from = std::chrono::steady_clock::now();
    std::string answer = "{}";
    if (!asked.contains("put")) {
      answer = engine.answer(line);
    } else {
      try {
        engine.put(asked["put"], hlo::read_file(asked["file"]));
      } catch (const std::exception& e) {
        answer = nlohmann::json{{"error", {{"message", e.what()}}}}.dump();
      }
    }
    const std::chrono::duration<double, std::milli> took = std::chrono::steady_clock::now() - from;
    fmt::print("{:.1f} 0 {}\n", took.count(), answer);
    std::fflush(stdout);
  }
}
