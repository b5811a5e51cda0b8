// Faults from outside: a process and all that it starts run with some of their system calls handed to the
// test first, which lets them pass, fails them, or kills who makes them (man 2 seccomp_unotify). So a
// fault is put at an exact step of a real zygote, keeper or child, and none of them has a hook for it.
#pragma once

#include <sys/types.h>

#include <functional>
#include <string>
#include <vector>

namespace pyplaypen::testing {

// Behind a Sandbox, by descent: its zygote, what that forked, what those forked.
enum class Role { kOther, kZygote, kKeeper, kChild };

struct Intercepted {
  pid_t pid = 0;
  Role role = Role::kOther;
  long number = 0;                   // SYS_*
  unsigned long arguments[6] = {};
};

// What becomes of it.
struct Verdict {
  enum class Kind { kPass, kFail, kKill } kind = Kind::kPass;
  int error = 0;  // errno, for kFail
};

inline constexpr Verdict kPass{};
inline constexpr Verdict kKill{Verdict::Kind::kKill, 0};
inline Verdict fail_with(int error) { return {Verdict::Kind::kFail, error}; }

// Whether this kernel, and who runs the test, can do it; the reason to skip, or empty.
std::string cannot_intercept();

// Runs `body` in a forked child, `numbers` being the calls that `judge` gets to see; it runs here, one call
// at a time. A failed expectation in either fails the test.
void intercept(const std::vector<long>& numbers, const std::function<Verdict(const Intercepted&)>& judge,
               const std::function<void()>& body);

}  // namespace pyplaypen::testing
