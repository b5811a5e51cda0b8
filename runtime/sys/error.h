// A failed system call as an exception that names the call and what it was given.
#pragma once

#include <cerrno>
#include <string>
#include <string_view>
#include <system_error>

namespace pyplaypen::sys {

// what() reads "openat(/tmp/x): No such file or directory"; code() is the errno.
class Error : public std::system_error {
 public:
  Error(int error_number, std::string_view call, std::string_view operand = {});
};

[[noreturn]] void throw_errno(std::string_view call, std::string_view operand = {});

// Gives back a call's result, or throws Error from errno when it is negative.
template <typename Result>
Result check(Result result, std::string_view call, std::string_view operand = {}) {
  if (result < 0) throw_errno(call, operand);
  return result;
}

// Repeats a call that a signal interrupted.
template <typename Call>
auto retry_eintr(Call call) {
  auto result = call();
  while (result < 0 && errno == EINTR) result = call();
  return result;
}

}  // namespace pyplaypen::sys
