// Runs a command as an older kernel would: the given system calls fail with ENOSYS.
//
//   deny_syscalls NR[,NR...] -- COMMAND [ARGUMENT]...
//
// Exit status 125 for a usage error or where seccomp is missing; else the command's own.
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <cstddef>
#include <cstdio>
#include <cstring>
#include <string_view>
#include <vector>

namespace {

constexpr int kFailed = 125;

sock_filter statement(unsigned code, unsigned value) {
  return {static_cast<unsigned short>(code), 0, 0, value};
}

sock_filter jump_if_equal(unsigned value, unsigned char when_equal) {
  return {BPF_JMP | BPF_JEQ | BPF_K, when_equal, 0, value};
}

std::vector<unsigned> parse(std::string_view text) {
  std::vector<unsigned> numbers;
  while (!text.empty()) {
    unsigned number = 0;
    const auto parsed = std::from_chars(text.data(), text.data() + text.size(), number);
    if (parsed.ec != std::errc()) return {};
    numbers.push_back(number);
    text.remove_prefix(static_cast<size_t>(parsed.ptr - text.data()));
    if (text.starts_with(',')) text.remove_prefix(1);
  }
  return numbers;
}

}  // namespace

int main(int argc, char** argv) {
  const std::vector<unsigned> numbers =
      argc > 3 && std::string_view(argv[2]) == "--" ? parse(argv[1]) : std::vector<unsigned>();
  if (numbers.empty()) {
    std::fprintf(stderr, "usage: deny_syscalls NR[,NR...] -- COMMAND [ARGUMENT]...\n");
    return kFailed;
  }
  std::vector<sock_filter> filter = {
      statement(BPF_LD | BPF_W | BPF_ABS, static_cast<unsigned>(offsetof(seccomp_data, nr)))};
  for (const unsigned number : numbers) {
    filter.push_back(jump_if_equal(number, 0));
    filter.back().jf = 1;
    filter.push_back(statement(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOSYS));
  }
  filter.push_back(statement(BPF_RET | BPF_K, SECCOMP_RET_ALLOW));
  const sock_fprog program{static_cast<unsigned short>(filter.size()), filter.data()};
  // Root may do without it, and a test may want to see it unset.
  if (::geteuid() != 0 && ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) return kFailed;
  if (::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program, 0, 0) != 0) {
    std::fprintf(stderr, "deny_syscalls: seccomp: %s\n", std::strerror(errno));
    return kFailed;
  }
  ::execvp(argv[3], argv + 3);
  std::fprintf(stderr, "deny_syscalls: %s: %s\n", argv[3], std::strerror(errno));
  return kFailed;
}
