#include "cli/version.h"

#include "hdetach_version.h"

namespace hdetach::cli {

const char* version() { return HDETACH_VERSION; }
const char* commit() { return HDETACH_COMMIT; }

}  // namespace hdetach::cli
