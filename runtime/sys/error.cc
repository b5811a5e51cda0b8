#include "runtime/sys/error.h"

namespace pyplaypen::sys {
namespace {

std::string describe(std::string_view call, std::string_view operand) {
  std::string text(call);
  if (!operand.empty()) text.append("(").append(operand).append(")");
  return text;
}

}  // namespace

Error::Error(int error_number, std::string_view call, std::string_view operand)
    : std::system_error(error_number, std::generic_category(), describe(call, operand)) {}

void throw_errno(std::string_view call, std::string_view operand) {
  throw Error(errno, call, operand);
}

}  // namespace pyplaypen::sys
