#include "replay/os/rename.h"

#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>
#if __has_include(<linux/fs.h>)
#include <linux/fs.h>
#endif

#include <atomic>
#include <cerrno>

#include "replay/os/output_folder.h"

namespace hlo {
namespace {

std::atomic<bool> g_plain_renames{false};

int rename_by_flag([[maybe_unused]] const std::string& from, [[maybe_unused]] const std::string& to,
                   [[maybe_unused]] unsigned flag) {
#ifdef RENAME_EXCHANGE
  if (g_plain_renames) return ENOSYS;
  return ::syscall(SYS_renameat2, AT_FDCWD, from.c_str(), AT_FDCWD, to.c_str(), flag) == 0 ? 0 : errno;
#else
  return ENOSYS;
#endif
}

}  // namespace

#ifndef RENAME_EXCHANGE
constexpr unsigned RENAME_EXCHANGE = 2, RENAME_NOREPLACE = 1;
#endif

int rename_swapping(const std::string& a, const std::string& b) { return rename_by_flag(a, b, RENAME_EXCHANGE); }
int rename_to_new(const std::string& from, const std::string& to) { return rename_by_flag(from, to, RENAME_NOREPLACE); }
bool not_known(int why) { return why == ENOSYS || why == EINVAL || why == ENOTSUP || why == EOPNOTSUPP; }

void use_plain_renames(bool plain) { g_plain_renames = plain; }

}  // namespace hlo
