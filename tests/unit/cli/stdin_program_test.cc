#include "cli/stdin_program.h"

#include <gtest/gtest.h>

#include <sstream>
#include <vector>

namespace pyplaypen::cli {
namespace {

bool reads(const std::string& command) {
  std::istringstream words(command);
  std::vector<std::string> argv;
  for (std::string word; words >> word;) argv.push_back(word);
  return reads_program_from_stdin(argv);
}

TEST(StdinProgram, ABareInterpreterReadsIt) {
  for (const char* const command :
       {"python3", "/usr/bin/python3.11", "python -", "python3 -u", "python3 -W ignore -", "python -Xdev",
        "sh", "bash -x", "bash -s", "sh -s argument", "bash -o pipefail", "node", "node -", "perl -w", "ruby",
        "pypy3", "python3 -i -"})
    EXPECT_TRUE(reads(command)) << command;
}

TEST(StdinProgram, AProgramOfItsOwnDoesNot) {
  for (const char* const command :
       {"python3 script.py", "python3 script.py -", "python3 -c pass", "python3 -m pytest -", "python3 -uc pass",
        "python3 -W ignore script.py", "python3 -Wignore script.py", "python3 --version", "python3 -V",
        "bash -c true", "bash -xc true", "sh script", "bash -o pipefail script", "bash --version",
        "node script.js", "node --eval 1", "perl -e 1", "ruby -e 1"})
    EXPECT_FALSE(reads(command)) << command;
}

TEST(StdinProgram, OtherProgramsMayReadWhatTheyLike) {
  for (const char* const command : {"cat", "cat -", "tar -cf - .", "pythonic", "./python3-config", "true", ""})
    EXPECT_FALSE(reads(command)) << command;
}

}  // namespace
}  // namespace pyplaypen::cli
