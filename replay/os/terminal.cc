#include "replay/os/terminal.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <iostream>

namespace hlo {
namespace {

bool g_pipe_signal_was_default = false;

// Of a pipe or socket.
bool reader_has_gone() {
  pollfd out{STDOUT_FILENO, POLLOUT, 0};
  return ::poll(&out, 1, 0) == 1 && (out.revents & POLLERR) != 0;
}

}  // namespace

std::string printable(std::string_view text) {
  std::string out;
  for (size_t k = 0; k < text.size(); ++k) {
    auto c = static_cast<unsigned char>(text[k]);
    // C0, DEL, and C1 as UTF-8 writes it.
    bool second = c == 0xc2 && k + 1 < text.size() && (static_cast<unsigned char>(text[k + 1]) & 0xe0) == 0x80;
    if ((c < 0x20 && c != '\n' && c != '\t') || c == 0x7f)
      out += fmt::format("\\x{:02x}", c);
    else if (second)
      out += fmt::format("\\x{:02x}", static_cast<unsigned char>(text[++k]));
    else
      out += text[k];
  }
  return out;
}

void open_standard_streams() {
  for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; ++fd)
    if (::fcntl(fd, F_GETFD) < 0) (void)!::open("/dev/null", fd == STDERR_FILENO ? O_WRONLY : O_RDONLY);
  struct sigaction now {};
  ::sigaction(SIGPIPE, nullptr, &now);
  g_pipe_signal_was_default = now.sa_handler == SIG_DFL;
  std::signal(SIGPIPE, SIG_IGN);  // what has been made beside is to be removed first
}

int end_of_output(int code) {
  errno = 0;
  bool good = static_cast<bool>(std::cout.flush());
  int why = errno;
  if (std::fflush(stdout) != 0) why = errno;
  good = good && !std::ferror(stdout) && !why;
  if (good) return code;
  if (reader_has_gone() && g_pipe_signal_was_default) {
    std::signal(SIGPIPE, SIG_DFL);
    ::raise(SIGPIPE);
  }
  complain(
      fmt::format("error: cannot write to standard output: {}", why ? std::strerror(why) : "the device took no more"));
  return 2;
}

void complain(std::string_view message) {
  std::string line = printable(message) + "\n";
  std::string_view rest = line;
  while (!rest.empty()) {
    ssize_t n = ::write(STDERR_FILENO, rest.data(), rest.size());
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return;
    rest.remove_prefix(static_cast<size_t>(n));
  }
}

}  // namespace hlo
