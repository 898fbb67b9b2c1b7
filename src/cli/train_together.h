// hdetach train together: the runs of a sweep that train side by side on one GPU.
#pragma once

namespace CLI {
class App;
}

namespace hdetach::cli {

void add_together(CLI::App& train);

}  // namespace hdetach::cli
