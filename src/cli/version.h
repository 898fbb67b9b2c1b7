#pragma once

namespace hdetach::cli {

const char* version();  // "0.1.0"
const char* commit();   // git describe of the source, or "unknown"

}  // namespace hdetach::cli
