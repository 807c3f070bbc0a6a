#include "replay/mcp/server.h"

#include <fmt/format.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>

#include "replay/os/interrupt.h"

namespace hlo::mcp {
namespace {

constexpr int kParseError = -32700, kInvalidRequest = -32600, kNoMethod = -32601, kInvalidParams = -32602,
              kBusy = -32000, kUnsupportedVersion = -32022;
// Oldest first.
constexpr std::array<const char*, 4> kHandshake{"2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"};
constexpr const char* kStateless = "2026-07-28";
constexpr const char* kVersionKey = "io.modelcontextprotocol/protocolVersion";
constexpr const char* kCapabilitiesKey = "io.modelcontextprotocol/clientCapabilities";
constexpr int kMostDepth = 64;  // of a message; arguments of tools are flat
constexpr auto kGrace = std::chrono::seconds(5);
constexpr auto kProgress = std::chrono::seconds(1);

struct RpcError {
  int code;
  std::string message;
  Json data;
};

// Deep messages would recurse in whoever reads or frees them.
bool too_deep(std::string_view line) {
  int depth = 0;
  bool quoted = false;
  for (size_t k = 0; k < line.size(); ++k) {
    const char c = line[k];
    if (quoted) {
      if (c == '\\')
        ++k;
      else if (c == '"')
        quoted = false;
    } else if (c == '"') {
      quoted = true;
    } else if (c == '{' || c == '[') {
      if (++depth > kMostDepth) return true;
    } else if (c == '}' || c == ']') {
      --depth;
    }
  }
  return false;
}

struct Work {
  Json id, arguments, token;  // token: null where no progress was asked for
  const Tool* tool = nullptr;
  bool stateless = false, running = false, done = false;
  std::chrono::steady_clock::time_point start = std::chrono::steady_clock::now(), told = start;
  std::atomic<bool> stop{false};
};

class Server {
 public:
  Server(int in, int out, std::vector<Tool> tools, const ServerOptions& options)
      : in_(in), out_(out), tools_(std::move(tools)), options_(options) {}

  void run() {
    std::vector<std::thread> threads;
    for (size_t k = 0; k < options_.workers; ++k) threads.emplace_back([this] { work(); });
    read_all();
    finish();
    for (std::thread& t : threads) t.join();
  }

 private:
  // --- messages out ---
  void send(const Json& message) {
    std::string line = message.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
    const std::lock_guard<std::mutex> lock(out_mutex_);
    for (size_t at = 0; at < line.size() && !gone_;) {
      ssize_t n = ::write(out_, line.data() + at, line.size() - at);
      if (n > 0)
        at += static_cast<size_t>(n);
      else if (errno != EINTR)
        gone_ = true;  // nobody reads any more
    }
  }
  void send_error(const Json& id, const RpcError& e) {
    Json error{{"code", e.code}, {"message", e.message}};
    if (!e.data.is_null()) error["data"] = e.data;
    send({{"jsonrpc", "2.0"}, {"id", id}, {"error", error}});
  }
  void send_result(const Json& id, Json result, bool stateless) {
    if (stateless) result["resultType"] = "complete";
    send({{"jsonrpc", "2.0"}, {"id", id}, {"result", std::move(result)}});
  }

  // --- messages in ---
  void read_all() {
    std::string buffer;
    bool skipping = false;  // the rest of a line that is too long
    std::vector<char> piece(size_t{64} << 10);
    while (!interrupted() && !gone_) {
      pollfd one{in_, POLLIN, 0};
      int ready = ::poll(&one, 1, 250);
      tell_progress();
      if (ready <= 0) continue;
      ssize_t n = ::read(in_, piece.data(), piece.size());
      if (n < 0 && errno == EINTR) continue;
      if (n <= 0) break;
      std::string_view rest(piece.data(), static_cast<size_t>(n));
      while (!rest.empty()) {
        size_t end = rest.find('\n');
        if (!skipping) buffer += rest.substr(0, end);
        if (buffer.size() > options_.most_bytes) {
          send_error(nullptr,
                     {kInvalidRequest, fmt::format("a message of more than {} bytes", options_.most_bytes), {}});
          std::string().swap(buffer);
          skipping = true;
        }
        if (end == std::string_view::npos) break;
        rest.remove_prefix(end + 1);
        if (!skipping) line(buffer);
        skipping = false;
        buffer.clear();
      }
    }
    if (!buffer.empty() && !interrupted()) line(buffer);
  }

  void line(std::string_view text) {
    if (text.find_first_not_of(" \t\r") == std::string_view::npos) return;
    if (too_deep(text)) return send_error(nullptr, {kInvalidRequest, "a message that is nested too deeply", {}});
    Json message = Json::parse(text, nullptr, false);
    if (message.is_discarded()) return send_error(nullptr, {kParseError, "no JSON", {}});
    if (message.is_array())
      return send_error(nullptr, {kInvalidRequest, "batches are not taken: one message a line", {}});
    if (!message.is_object()) return send_error(nullptr, {kInvalidRequest, "a message is an object", {}});
    auto found = message.find("id");
    const bool request = found != message.end();
    Json id = request && (found->is_string() || found->is_number_integer()) ? *found : Json();
    auto method = message.find("method");
    if (method == message.end() && request && (message.contains("result") || message.contains("error"))) return;
    if (message.value("jsonrpc", Json()) != "2.0" || method == message.end() || !method->is_string())
      return send_error(id, {kInvalidRequest, "a JSON-RPC 2.0 message has jsonrpc \"2.0\" and a method", {}});
    Json params = message.value("params", Json::object());
    if (!request) return notification(method->get<std::string>(), params);
    if (id.is_null()) return send_error(id, {kInvalidRequest, "an id is a string or an integer", {}});
    try {
      answer(id, method->get<std::string>(), params);
    } catch (const RpcError& e) {
      send_error(id, e);
    }
  }

  void notification(const std::string& method, const Json& params) {
    if (method != "notifications/cancelled" || !params.is_object() || !params.contains("requestId")) return;
    const std::lock_guard<std::mutex> lock(mutex_);
    for (const auto& w : works_)
      if (w->id == params["requestId"]) w->stop = true;
  }

  // Is it a request of the revision without a handshake? Throws RpcError where it is of one that is not known.
  static bool stateless_request(const std::string& method, const Json& params) {
    const Json meta = params.is_object() ? params.value("_meta", Json()) : Json();
    const bool says = meta.is_object() && meta.contains(kVersionKey);
    if (!says && method != "server/discover") return false;
    if (!says || !meta.contains(kCapabilitiesKey))
      throw RpcError{kInvalidParams, fmt::format("params._meta needs {} and {}", kVersionKey, kCapabilitiesKey), {}};
    if (!meta[kVersionKey].is_string()) throw RpcError{kInvalidParams, fmt::format("{} is a string", kVersionKey), {}};
    if (meta[kVersionKey] != kStateless)
      throw RpcError{kUnsupportedVersion,
                     "Unsupported protocol version",
                     {{"supported", Json::array({kStateless})}, {"requested", meta[kVersionKey]}}};
    return true;
  }

  void answer(const Json& id, const std::string& method, const Json& params) {
    if (!params.is_object()) throw RpcError{kInvalidParams, "params is an object", {}};
    const bool stateless = stateless_request(method, params);
    const Json about{{"name", options_.name}, {"version", options_.version}};
    const Json capabilities{{"tools", Json::object()}};
    if (method == "initialize") {
      const Json wanted = params.value("protocolVersion", Json());
      std::string version = kHandshake.back();
      for (const char* v : kHandshake)
        if (wanted == v) version = v;
      return send_result(id,
                         {{"protocolVersion", version},
                          {"capabilities", capabilities},
                          {"serverInfo", about},
                          {"instructions", options_.instructions}},
                         false);
    }
    if (method == "server/discover")
      return send_result(id,
                         {{"supportedVersions", Json::array({kStateless})},
                          {"capabilities", capabilities},
                          {"instructions", options_.instructions},
                          {"ttlMs", 3600000},
                          {"cacheScope", "private"},
                          {"_meta", {{"io.modelcontextprotocol/serverInfo", about}}}},
                         true);
    if (method == "ping") return send_result(id, Json::object(), stateless);
    if (method == "tools/list") return list_tools(id, stateless);
    if (method == "tools/call") return call_tool(id, params, stateless);
    throw RpcError{kNoMethod, fmt::format("no method '{}'", method.substr(0, 200)), {}};
  }

  void list_tools(const Json& id, bool stateless) {
    Json list = Json::array();
    for (const Tool& t : tools_)
      list.push_back({{"name", t.name},
                      {"title", t.title},
                      {"description", t.description},
                      {"inputSchema", t.schema},
                      {"annotations", {{"readOnlyHint", t.read_only}, {"openWorldHint", false}}}});
    Json result{{"tools", list}};
    if (stateless) result["ttlMs"] = 3600000, result["cacheScope"] = "private";
    send_result(id, std::move(result), stateless);
  }

  void call_tool(const Json& id, const Json& params, bool stateless) {
    const Json name = params.value("name", Json());
    auto tool = std::find_if(tools_.begin(), tools_.end(), [&](const Tool& t) { return name == t.name; });
    if (tool == tools_.end())
      throw RpcError{kInvalidParams,
                     "Unknown tool: " + name.dump(-1, ' ', false, Json::error_handler_t::replace).substr(0, 200),
                     {}};
    auto w = std::make_shared<Work>();
    w->id = id, w->tool = &*tool, w->stateless = stateless;
    w->arguments = params.value("arguments", Json::object());
    if (!w->arguments.is_object()) throw RpcError{kInvalidParams, "arguments is an object", {}};
    if (const Json meta = params.value("_meta", Json()); meta.is_object())
      w->token = meta.value("progressToken", Json());
    const std::lock_guard<std::mutex> lock(mutex_);
    if (std::any_of(works_.begin(), works_.end(), [&](const auto& o) { return o->id == id; }))
      throw RpcError{kInvalidRequest, "a request of that id is under way", {}};
    if (works_.size() >= options_.queue + options_.workers) throw RpcError{kBusy, "too many requests wait", {}};
    works_.push_back(std::move(w));
    changed_.notify_one();
  }

  void tell_progress() {
    const auto now = std::chrono::steady_clock::now();
    const std::lock_guard<std::mutex> lock(mutex_);
    for (const auto& w : works_) {
      if (w->token.is_null() || w->stop || now - w->told < kProgress) continue;
      w->told = now;
      const double seconds = std::chrono::duration<double>(now - w->start).count();
      send({{"jsonrpc", "2.0"},
            {"method", "notifications/progress"},
            {"params",
             {{"progressToken", w->token},
              {"progress", seconds},
              {"message", fmt::format("{}{}, {:.0f} s", w->tool->name, w->running ? "" : " waits", seconds)}}}});
    }
  }

  // --- work ---
  std::shared_ptr<Work> next() {
    std::unique_lock<std::mutex> lock(mutex_);
    for (;;) {
      for (const auto& w : works_)
        if (!w->running) {
          w->running = true;
          return w;
        }
      if (ending_) return nullptr;
      changed_.wait(lock);
    }
  }

  void work() {
    while (std::shared_ptr<Work> w = next()) {
      Answer a;
      try {
        if (!w->stop) a = w->tool->call(w->arguments, w->stop);
      } catch (const std::exception& e) {
        a = {e.what(), true};
      }
      {
        const std::lock_guard<std::mutex> lock(mutex_);
        std::erase(works_, w);
        changed_.notify_all();
      }
      // Of what was cancelled nothing more is heard.
      if (w->stop) continue;
      send_result(w->id, {{"content", Json::array({{{"type", "text"}, {"text", a.text}}})}, {"isError", a.failed}},
                  w->stateless);
    }
  }

  // Nothing more comes in: what is asked for has a moment to be answered.
  void finish() {
    std::unique_lock<std::mutex> lock(mutex_);
    const auto until = std::chrono::steady_clock::now() + kGrace;
    while (!works_.empty() && !interrupted() && !gone_ && std::chrono::steady_clock::now() < until)
      changed_.wait_for(lock, std::chrono::milliseconds(100));
    for (const auto& w : works_) w->stop = true;
    ending_ = true;
    changed_.notify_all();
  }

  const int in_, out_;
  const std::vector<Tool> tools_;
  const ServerOptions options_;
  std::mutex out_mutex_, mutex_;
  std::condition_variable changed_;
  std::deque<std::shared_ptr<Work>> works_;  // waiting and running, in order
  bool ending_ = false;
  std::atomic<bool> gone_{false};
};

}  // namespace

void serve(int in, int out, std::vector<Tool> tools, const ServerOptions& options) {
  Server(in, out, std::move(tools), options).run();
}

}  // namespace hlo::mcp
