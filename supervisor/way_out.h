// What a person can do about a system that has run out of something.
#pragma once

#include <string>

namespace pyplaypen::supervisor {

// `sentence`, and after a semicolon the way out of `error_number`, where there is a usual one.
std::string with_way_out(std::string sentence, int error_number);

// The same for one about a directory of ours, where errno may also mean that TMPDIR is no good.
std::string with_way_out_of_tmpdir(std::string sentence, int error_number);

}  // namespace pyplaypen::supervisor
