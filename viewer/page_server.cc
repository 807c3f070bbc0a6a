#include "viewer/page_server.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <cstring>
#include <map>
#include <optional>
#include <vector>

#include "ir/base/check.h"
#include "replay/os/interrupt.h"
#include "viewer/engine/engine.h"

namespace hlo {
namespace {

using Clock = std::chrono::steady_clock;

constexpr size_t kHeaderMost = size_t{16} << 10;
constexpr size_t kQuestionMost = size_t{64} << 20;  // a module's text may come with it
constexpr size_t kFileMost = size_t{1} << 30;       // of a dump that is dropped on the page
constexpr size_t kConnectionsMost = 64;
constexpr std::chrono::seconds kIdleMost{20};  // without a byte
constexpr int kWaitMs = 200;                   // how late an interrupt is seen

class Socket {
 public:
  explicit Socket(int file = -1) : file_(file) {}
  Socket(Socket&& other) noexcept : file_(std::exchange(other.file_, -1)) {}
  Socket& operator=(Socket&& other) noexcept {
    std::swap(file_, other.file_);
    return *this;
  }
  ~Socket() {
    if (file_ >= 0) ::close(file_);
  }
  int file() const { return file_; }

 private:
  int file_;
};

struct Request {
  std::string method, target;
  std::multimap<std::string, std::string> headers;  // names in lower case
  size_t body_at = 0, body_size = 0;
  std::string_view header(const std::string& name) const {
    auto at = headers.find(name);
    return at == headers.end() ? std::string_view() : std::string_view(at->second);
  }
};

struct Reply {
  int status = 200;
  std::string type = "application/json", body;
};

Reply refusal(int status, const std::string& why) { return {status, "text/plain; charset=utf-8", why + "\n"}; }

// A length in digits alone, as HTTP has it.
std::optional<size_t> length_of(std::string_view text) {
  size_t value = 0;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || text.empty()) return std::nullopt;
  return value;
}

// The lines in front of the body; nothing where they are no HTTP/1.1 or mean several things at once.
std::optional<Request> parsed_head(std::string_view head) {
  Request out;
  size_t end = head.find("\r\n");
  std::string_view line = head.substr(0, end);
  size_t first = line.find(' '), last = line.rfind(' ');
  if (first == std::string_view::npos || first == last || !line.substr(last + 1).starts_with("HTTP/1."))
    return std::nullopt;
  out.method = line.substr(0, first), out.target = line.substr(first + 1, last - first - 1);
  while (end < head.size()) {
    size_t next = head.find("\r\n", end + 2);
    line = head.substr(end + 2, next == std::string_view::npos ? next : next - end - 2);
    end = next == std::string_view::npos ? head.size() : next;
    if (line.empty()) continue;
    size_t colon = line.find(':');
    if (colon == std::string_view::npos || colon == 0 || line[0] == ' ' || line[0] == '\t') return std::nullopt;
    std::string name(line.substr(0, colon));
    for (char& c : name)
      if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
    std::string_view value = line.substr(colon + 1);
    while (!value.empty() && (value.front() == ' ' || value.front() == '\t')) value.remove_prefix(1);
    while (!value.empty() && (value.back() == ' ' || value.back() == '\t')) value.remove_suffix(1);
    out.headers.emplace(std::move(name), value);
  }
  for (const char* once : {"host", "origin", "content-length", "transfer-encoding"})
    if (out.headers.count(once) > 1) return std::nullopt;
  return out;
}

// `%2F` and the like; nothing where it is cut off.
std::optional<std::string> decoded(std::string_view text) {
  std::string out;
  for (size_t k = 0; k < text.size(); ++k) {
    if (text[k] != '%') {
      out += text[k];
      continue;
    }
    unsigned value = 0;
    const char* at = text.data() + k + 1;
    if (k + 2 >= text.size() || std::from_chars(at, at + 2, value, 16).ptr != at + 2) return std::nullopt;
    out += static_cast<char>(value);
    k += 2;
  }
  return out;
}

std::string new_token() {
  std::array<unsigned char, 16> bytes{};
  if (::getrandom(bytes.data(), bytes.size(), 0) != static_cast<ssize_t>(bytes.size()))
    fail(FailureKind::kIo, "no random numbers are to be had from the system");
  std::string out;
  for (unsigned char b : bytes) out += fmt::format("{:02x}", b);
  return out;
}

// How long it takes tells nothing about where they differ.
bool same_secret(std::string_view a, std::string_view b) {
  unsigned different = a.size() != b.size();
  for (size_t k = 0; k < std::min(a.size(), b.size()); ++k) different |= static_cast<unsigned char>(a[k] ^ b[k]);
  return different == 0;
}

struct Connection {
  Socket socket;
  std::string in;
  std::optional<Request> request;
  Clock::time_point heard = Clock::now();
};

class PageServer {
 public:
  PageServer(const std::string& html, PageEngine& engine, uint16_t port)
      : html_(html), engine_(engine), token_(new_token()) {
    listener_ = Socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    int yes = 1;
    sockaddr_in address{};
    address.sin_family = AF_INET, address.sin_port = htons(port), address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    auto* as_any = reinterpret_cast<sockaddr*>(&address);
    if (listener_.file() < 0 || ::setsockopt(listener_.file(), SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes) != 0 ||
        ::bind(listener_.file(), as_any, sizeof address) != 0 || ::listen(listener_.file(), 16) != 0 ||
        ::getsockname(listener_.file(), as_any, &size) != 0)
      fail(FailureKind::kIo, "cannot serve on port {} of 127.0.0.1: {}", port, std::strerror(errno));
    port_ = ntohs(address.sin_port);
  }
  std::string url() const { return fmt::format("http://127.0.0.1:{}/{}/", port_, token_); }

  void run() {
    std::vector<pollfd> waiting;
    while (!interrupted()) {
      waiting.assign(1, {listener_.file(), POLLIN, 0});
      for (const Connection& c : connections_) waiting.push_back({c.socket.file(), POLLIN, 0});
      if (::poll(waiting.data(), waiting.size(), kWaitMs) < 0 && errno != EINTR)
        fail(FailureKind::kIo, "cannot wait for requests: {}", std::strerror(errno));
      std::vector<Connection> still;
      for (size_t k = 0; k < connections_.size(); ++k)
        if (!interrupted() && keeps(connections_[k], waiting[k + 1].revents))
          still.push_back(std::move(connections_[k]));
      connections_ = std::move(still);
      if (waiting[0].revents & POLLIN) accept_one();
    }
  }

 private:
  void accept_one() {
    Socket s(::accept4(listener_.file(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (s.file() < 0) return;
    if (connections_.size() >= kConnectionsMost) return;
    connections_.push_back({std::move(s), {}, std::nullopt, Clock::now()});
  }
  // Reads on; false when it is over.
  bool keeps(Connection& c, short events) {
    if (!events) return Clock::now() - c.heard < kIdleMost;
    std::array<char, 65536> buffer;
    ssize_t got = ::recv(c.socket.file(), buffer.data(), buffer.size(), 0);
    if (got < 0) return errno == EAGAIN || errno == EINTR;
    if (got == 0) return false;
    c.heard = Clock::now();
    c.in.append(buffer.data(), static_cast<size_t>(got));
    if (!c.request) {
      size_t end = c.in.find("\r\n\r\n");
      if (end == std::string::npos ? c.in.size() > kHeaderMost : end > kHeaderMost)
        return send(c, refusal(431, "the header is too long"));
      if (end == std::string::npos) return true;
      c.request = parsed_head(std::string_view(c.in).substr(0, end));
      if (!c.request) return send(c, refusal(400, "that is no request"));
      c.request->body_at = end + 4;
      // What is refused is so before its body comes.
      if (std::optional<Reply> no = refused(*c.request)) return send(c, *no);
    }
    if (c.in.size() < c.request->body_at + c.request->body_size) return true;
    return send(c, answer(*c.request, c.in));
  }

  std::optional<Reply> refused(Request& r) const {
    const std::string own[] = {fmt::format("127.0.0.1:{}", port_), fmt::format("localhost:{}", port_)};
    std::string_view host = r.header("host"), origin = r.header("origin"), site = r.header("sec-fetch-site");
    if (std::find(std::begin(own), std::end(own), host) == std::end(own))
      return refusal(403, "this is for 127.0.0.1 alone");
    if (r.headers.contains("origin") && origin != "http://" + std::string(host))
      return refusal(403, "pages from elsewhere may not ask");
    if (!site.empty() && site != "same-origin" && site != "none")
      return refusal(403, "pages from elsewhere may not ask");
    std::string_view target = r.target;
    if (!target.starts_with("/") || target.size() < token_.size() + 2 ||
        !same_secret(target.substr(1, token_.size()), token_) || target[token_.size() + 1] != '/')
      return refusal(404, "there is nothing here");
    if (r.headers.contains("transfer-encoding")) return refusal(411, "a body's length must be given before it");
    std::optional<size_t> length = size_t{0};
    if (r.headers.contains("content-length")) length = length_of(r.header("content-length"));
    if (!length) return refusal(400, "that is no length");
    r.target = std::string(target.substr(token_.size() + 2));
    if (*length > (r.target.starts_with("put?") ? kFileMost : kQuestionMost)) return refusal(413, "that is too much");
    r.body_size = *length;
    return std::nullopt;
  }
  Reply answer(const Request& r, std::string_view in) {
    std::string_view body = in.substr(r.body_at, r.body_size);
    if (r.method == "GET" && r.target.empty()) return {200, "text/html; charset=utf-8", html_};
    if (r.method != "POST") return refusal(r.method == "GET" ? 404 : 405, "there is nothing here");
    if (r.target == "ask") return {200, "application/json", engine_.answer(body)};
    if (!r.target.starts_with("put?name=")) return refusal(404, "there is nothing here");
    std::optional<std::string> name = decoded(std::string_view(r.target).substr(9));
    if (!name) return refusal(400, "that is no name");
    try {
      engine_.put(*name, std::string(body));
    } catch (const Failure& e) {
      return refusal(400, e.what());
    }
    return {200, "application/json", "{}"};
  }
  // All of it, for as long as the other side reads on. False: the connection is over.
  static bool send(Connection& c, const Reply& reply) {
    std::string out = fmt::format(
        "HTTP/1.1 {} {}\r\nContent-Type: {}\r\nContent-Length: {}\r\nConnection: close\r\nCache-Control: no-store\r\n"
        "X-Content-Type-Options: nosniff\r\nReferrer-Policy: no-referrer\r\nX-Frame-Options: DENY\r\n"
        "Cross-Origin-Resource-Policy: same-origin\r\n\r\n",
        reply.status, reply.status == 200 ? "OK" : "No", reply.type, reply.body.size());
    out += reply.body;
    std::string_view left = out;
    for (auto heard = Clock::now(); !left.empty() && !interrupted() && Clock::now() - heard < kIdleMost;) {
      ssize_t sent = ::send(c.socket.file(), left.data(), left.size(), MSG_NOSIGNAL);
      if (sent > 0) {
        left.remove_prefix(static_cast<size_t>(sent)), heard = Clock::now();
      } else if (errno == EAGAIN || errno == EINTR) {
        pollfd ready{c.socket.file(), POLLOUT, 0};
        ::poll(&ready, 1, kWaitMs);
      } else {
        return false;
      }
    }
    // Closed at once, what is still coming in would take the answer with it.
    ::shutdown(c.socket.file(), SHUT_WR);
    std::array<char, 4096> rest;
    pollfd more{c.socket.file(), POLLIN, 0};
    for (int k = 0; k < 16 && ::poll(&more, 1, 20) > 0 && ::recv(c.socket.file(), rest.data(), rest.size(), 0) > 0; ++k)
      ;
    return false;
  }

  const std::string& html_;
  PageEngine& engine_;
  std::string token_;
  Socket listener_;
  uint16_t port_ = 0;
  std::vector<Connection> connections_;
};

}  // namespace

void serve_page(const std::string& html, PageEngine& engine, const PageServerOptions& options) {
  PageServer server(html, engine, options.port);
  if (options.ready) options.ready(server.url());
  server.run();
}

}  // namespace hlo
