#include <span>

#include "cli/cli.h"

int main(int argc, char** argv) {
  return pyplaypen::cli::run(std::span<char* const>(argv, static_cast<size_t>(argc)));
}
