// Feeds a corpus to LLVMFuzzerTestOneInput without a fuzzer: each file as it is, each of its
// beginnings, and each with one byte changed. What goes wrong aborts, as under a fuzzer.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

namespace {

// Beyond this a file is run as it is only: the changed copies take time quadratic in its size.
constexpr size_t kMostBytesToVary = 4096;

// Always a heap block of the exact size, so that a sanitizer sees a read beyond it.
size_t runs = 0;
void run(const std::string& bytes) {
  const std::vector<uint8_t> exact(bytes.begin(), bytes.end());
  LLVMFuzzerTestOneInput(exact.data(), exact.size());
  ++runs;
}

void vary(const std::string& bytes) {
  for (size_t length = 0; length < bytes.size(); ++length) run(bytes.substr(0, length));
  for (size_t at = 0; at < bytes.size(); ++at) {
    for (const int byte : {0x00, 0x1f, 0x22, 0x30, 0x5c, 0x5d, 0x7f, 0x80, 0xed, 0xff}) {
      std::string changed = bytes;
      changed[at] = static_cast<char>(byte);
      run(changed);
    }
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: %s CORPUS_DIRECTORY\n", argv[0]);
    return 2;
  }
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::directory_iterator(argv[1]))
    files.push_back(entry.path());
  std::sort(files.begin(), files.end());
  for (const auto& path : files) {
    std::ostringstream text;
    text << std::ifstream(path, std::ios::binary).rdbuf();
    const std::string bytes = text.str();
    run(bytes);
    if (bytes.size() <= kMostBytesToVary) vary(bytes);
  }
  std::printf("%zu inputs from %zu files\n", runs, files.size());
  return files.empty() ? 1 : 0;
}
