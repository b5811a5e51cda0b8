#include "supervisor/mime_type.h"

#include <algorithm>
#include <array>
#include <string>

namespace pyplaypen::supervisor {
namespace {

struct Row {
  std::string_view extension;
  std::string_view type;
};

// What Python's mimetypes module knows of common files, and of newer ones (parquet, webp, toml)
// what IANA has registered since. Ordered by extension.
constexpr std::array kTypes = {
    Row{"7z", "application/x-7z-compressed"},
    Row{"aac", "audio/aac"},
    Row{"arrow", "application/vnd.apache.arrow.file"},
    Row{"avi", "video/x-msvideo"},
    Row{"avif", "image/avif"},
    Row{"bmp", "image/bmp"},
    Row{"bz2", "application/x-bzip2"},
    Row{"c", "text/plain"},
    Row{"css", "text/css"},
    Row{"csv", "text/csv"},
    Row{"doc", "application/msword"},
    Row{"docx", "application/vnd.openxmlformats-officedocument.wordprocessingml.document"},
    Row{"eps", "application/postscript"},
    Row{"epub", "application/epub+zip"},
    Row{"feather", "application/vnd.apache.arrow.file"},
    Row{"flac", "audio/flac"},
    Row{"geojson", "application/geo+json"},
    Row{"gif", "image/gif"},
    Row{"gz", "application/gzip"},
    Row{"h", "text/plain"},
    Row{"h5", "application/x-hdf5"},
    Row{"heic", "image/heic"},
    Row{"htm", "text/html"},
    Row{"html", "text/html"},
    Row{"ico", "image/vnd.microsoft.icon"},
    Row{"ics", "text/calendar"},
    Row{"ipynb", "application/x-ipynb+json"},
    Row{"jpe", "image/jpeg"},
    Row{"jpeg", "image/jpeg"},
    Row{"jpg", "image/jpeg"},
    Row{"js", "text/javascript"},
    Row{"json", "application/json"},
    Row{"jsonl", "application/x-ndjson"},
    Row{"log", "text/plain"},
    Row{"md", "text/markdown"},
    Row{"mjs", "text/javascript"},
    Row{"mov", "video/quicktime"},
    Row{"mp3", "audio/mpeg"},
    Row{"mp4", "video/mp4"},
    Row{"mpeg", "video/mpeg"},
    Row{"mpg", "video/mpeg"},
    Row{"ndjson", "application/x-ndjson"},
    Row{"ods", "application/vnd.oasis.opendocument.spreadsheet"},
    Row{"odt", "application/vnd.oasis.opendocument.text"},
    Row{"oga", "audio/ogg"},
    Row{"ogg", "audio/ogg"},
    Row{"opus", "audio/opus"},
    Row{"parquet", "application/vnd.apache.parquet"},
    Row{"pbm", "image/x-portable-bitmap"},
    Row{"pdf", "application/pdf"},
    Row{"pgm", "image/x-portable-graymap"},
    Row{"png", "image/png"},
    Row{"pnm", "image/x-portable-anymap"},
    Row{"ppm", "image/x-portable-pixmap"},
    Row{"ppt", "application/vnd.ms-powerpoint"},
    Row{"pptx", "application/vnd.openxmlformats-officedocument.presentationml.presentation"},
    Row{"ps", "application/postscript"},
    Row{"py", "text/x-python"},
    Row{"rtf", "application/rtf"},
    Row{"sh", "application/x-sh"},
    Row{"sqlite", "application/vnd.sqlite3"},
    Row{"sqlite3", "application/vnd.sqlite3"},
    Row{"svg", "image/svg+xml"},
    Row{"tar", "application/x-tar"},
    Row{"tex", "application/x-tex"},
    Row{"tgz", "application/gzip"},
    Row{"tif", "image/tiff"},
    Row{"tiff", "image/tiff"},
    Row{"toml", "application/toml"},
    Row{"tsv", "text/tab-separated-values"},
    Row{"txt", "text/plain"},
    Row{"wasm", "application/wasm"},
    Row{"wav", "audio/x-wav"},
    Row{"webm", "video/webm"},
    Row{"webp", "image/webp"},
    Row{"xls", "application/vnd.ms-excel"},
    Row{"xlsx", "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"},
    Row{"xml", "text/xml"},
    Row{"xz", "application/x-xz"},
    Row{"yaml", "application/yaml"},
    Row{"yml", "application/yaml"},
    Row{"zip", "application/zip"},
    Row{"zst", "application/zstd"},
};

static_assert(std::is_sorted(kTypes.begin(), kTypes.end(),
                             [](const Row& a, const Row& b) { return a.extension < b.extension; }));

}  // namespace

std::string_view mime_type_of(std::string_view name) {
  const size_t dot = name.rfind('.');
  std::string extension(dot == std::string_view::npos ? std::string_view() : name.substr(dot + 1));
  for (char& c : extension)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  const auto* const row = std::lower_bound(
      kTypes.begin(), kTypes.end(), extension,
      [](const Row& a, const std::string& wanted) { return a.extension < wanted; });
  const bool known = row != kTypes.end() && row->extension == extension;
  return known ? row->type : "application/octet-stream";
}

}  // namespace pyplaypen::supervisor
