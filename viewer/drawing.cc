#include "viewer/drawing.h"

#include <poll.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdlib>

#include "ir/base/check.h"
#include "replay/os/interrupt.h"
#include "replay/os/terminal.h"
#include "viewer/pages.h"

namespace hlo {
namespace {

constexpr size_t kDrawersAtOnce = 2;
constexpr rlim_t kBudgetSeconds = 2;                     // of a processor
constexpr auto kBudgetWaited = std::chrono::seconds(6);  // on a busy machine, or where it waits for something
constexpr size_t kFewNodes = 60;

int run_job(const std::function<void()>& job) {
  try {
    job();
    return 0;
  } catch (const std::exception& e) {
    complain("error: " + std::string(e.what()));
    return 1;
  }
}

// Is the job, done in a child, through within the budget? Throws where it fails otherwise.
bool within_budget(const std::function<void()>& job) {
  pid_t child = fork_tied();
  if (child < 0) fail(FailureKind::kIo, "a drawing: cannot start a process");
  if (child == 0) {
    const rlimit none{0, 0}, budget{kBudgetSeconds, kBudgetSeconds + 1};
    ::setrlimit(RLIMIT_CORE, &none);
    ::setrlimit(RLIMIT_CPU, &budget);
    // So that Graphviz opens no file that a graph names.
    ::setenv("SERVER_NAME", "none", 1);
    ::_exit(run_job(job));
  }
  int status = 0, fd = static_cast<int>(::syscall(SYS_pidfd_open, child, 0));
  const auto end = std::chrono::steady_clock::now() + kBudgetWaited;
  bool late = false;
  while (::waitpid(child, &status, WNOHANG) == 0) {
    late = std::chrono::steady_clock::now() > end;
    if (late) {
      ::kill(child, SIGKILL);
      ::waitpid(child, &status, 0);
      break;
    }
    pollfd one{fd, POLLIN, 0};
    ::poll(&one, fd >= 0 ? 1 : 0, fd >= 0 ? 100 : 5);
  }
  if (fd >= 0) ::close(fd);
  if (late || WIFSIGNALED(status)) return false;  // Graphviz dies of some graphs, too
  if (WEXITSTATUS(status) != 0) fail(FailureKind::kIo, "a stage could not be drawn");
  return true;
}

std::string no_drawing(const std::string& words) {
  std::string label;
  for (char c : words) label += c == '"' || c == '\\' ? std::string{'\\', c} : std::string(1, c);
  return "digraph none { n [shape=box, fontname=\"DejaVu Sans\", label=\"" + label + "\"] }";
}

// The pictures of one stage, of a graph that `rendered` gives as svg or png.
void put_pictures(OutputFolder& out, const StageDrawing& d, const std::string& note,
                  const std::function<std::string(const char*)>& rendered) {
  if (d.formats.contains("png")) out.write(d.base + ".png", rendered("png"));
  if (!d.formats.contains("svg") && !d.formats.contains("html")) return;
  std::string svg = rendered("svg");
  if (d.formats.contains("svg")) out.write(d.base + ".svg", svg);
  if (d.formats.contains("html")) out.write(d.base + ".html", stage_page(d.row, svg, d.removed, note));
}

void put_placeholder(OutputFolder& out, const StageDrawing& d, const std::string& size) {
  std::string note = fmt::format("{}: no drawing within {} s.{}", size, kBudgetSeconds,
                                 d.command.empty() ? "" : " " + d.command + " draws it, however long that takes.");
  put_pictures(out, d, note, [&](const char* f) { return render_dot(no_drawing(note), f); });
}

bool pictures(const StageDrawing& d) {
  return d.formats.contains("svg") || d.formats.contains("png") || d.formats.contains("html");
}

// Graphviz may take for ever, and dies of some graphs.
void require_children() {
  if (!may_fork())
    fail(FailureKind::kUnsupported,
         "svg, png and html are drawn in children of the program hlo-replay, not in this process: `hlo-replay view`");
}

}  // namespace

Drawers::~Drawers() {
  for (pid_t child : children_) ::kill(child, SIGKILL);
  for (pid_t child : children_) ::waitpid(child, nullptr, 0);
}

void Drawers::start(const std::function<void()>& job) {
  ++begun_;
  if (!may_fork()) return job();
  if (children_.size() >= kDrawersAtOnce) reap(false);
  pid_t child = fork_tied();
  if (child < 0) fail(FailureKind::kIo, "a drawing: cannot start a process");
  if (child == 0) ::_exit(run_job(job));
  children_.push_back(child);
}

void Drawers::draw(const Module& m, const StageDrawing& d) {
  if (pictures(d)) require_children();
  start([&] {
    {
      Graph graph(m, d.options);
      if (d.formats.contains("dot")) out_.write(d.base + ".dot", graph.dot());
      if (!pictures(d)) return;
    }
    GraphOptions options = d.options;
    for (bool few : {false, true}) {
      if (few) options.most_nodes = 0, options.neighbourhood = kFewNodes;
      bool done = within_budget([&] {
        Graph graph(m, options);
        std::string note;
        if (few)
          note = fmt::format(
              "The whole takes longer than {} s to draw: this is the neighbourhood of what changed, {} of "
              "{} instructions.{}",
              kBudgetSeconds, graph.drawn(), m.instruction_count(),
              d.command.empty() ? "" : " " + d.command + " draws all, however long that takes.");
        else if (graph.partial())
          note = "The module is large: this is the neighbourhood of what changed.";
        put_pictures(out_, d, note, [&](const char* f) { return graph.render(f); });
      });
      if (done) return;
    }
    put_placeholder(out_, d, fmt::format("{} instructions", m.instruction_count()));
  });
}

void Drawers::draw_dot(const std::string& dot, const StageDrawing& d) {
  if (d.formats.contains("dot")) out_.write(d.base + ".dot", dot);
  if (!pictures(d)) return;
  require_children();
  start([&] {
    if (!within_budget([&] { put_pictures(out_, d, "", [&](const char* f) { return render_dot(dot, f); }); }))
      put_placeholder(out_, d, fmt::format("A graph of {} bytes", dot.size()));
  });
}

void Drawers::reap(bool all) {
  bool failed = false;
  while (!children_.empty()) {
    int status = 0;
    pid_t done = ::waitpid(children_.front(), &status, 0);
    if (done < 0 && errno == EINTR) continue;
    children_.erase(children_.begin());
    failed |= status != 0;
    if (!all) break;
  }
  if (interrupted()) fail(FailureKind::kIo, "interrupted; nothing was written");
  if (failed) fail(FailureKind::kIo, "a stage could not be drawn");
}

void Drawers::wait() { reap(true); }

}  // namespace hlo
