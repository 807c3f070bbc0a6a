// The Model Context Protocol over standard input and output: JSON-RPC 2.0, one message a line. Revisions with a
// handshake (2024-11-05 to 2025-11-25) and without one (2026-07-28). What the tools do is not known here.
#pragma once
#include <atomic>
#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace hlo::mcp {

using Json = nlohmann::ordered_json;

struct Answer {
  std::string text;
  bool failed = false;  // the tool could not do it; `text` says why
};

struct Tool {
  std::string name, title, description;
  Json schema;            // of the arguments, as JSON Schema
  bool read_only = true;  // writes nothing that a user would find
  // Called on a thread of its own; heeds `stop`, which is set when the request is cancelled. What it throws becomes a
  // failed answer.
  std::function<Answer(const Json& arguments, const std::atomic<bool>& stop)> call;
};

struct ServerOptions {
  std::string name, version, instructions;
  size_t most_bytes = size_t{4} << 20;  // of a message; longer ones are refused
  size_t workers = 2;                   // tools that work at once
  size_t queue = 64;                    // requests that wait; more are refused
};

// Serves until `in` ends (work under way then has a few seconds to be done) or the process is asked to end.
void serve(int in, int out, std::vector<Tool> tools, const ServerOptions& options);

}  // namespace hlo::mcp
