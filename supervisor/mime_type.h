// The type of a file by its name.
#pragma once

#include <string_view>

namespace pyplaypen::supervisor {

// By the extension, whatever its case, as `python -m mimetypes` names it; application/octet-stream
// where none is known. A compressed file is named for its compression (data.csv.gz:
// application/gzip).
std::string_view mime_type_of(std::string_view name);

}  // namespace pyplaypen::supervisor
