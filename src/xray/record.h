// What an x-ray found, as a line of JSON: RUN/xray.jsonl holds them, hdetach xray prints them.
// Torch-free.
//
//   {"epoch":10,"update":1280,"weight_scale":null,"detach":0.25,"steps":120,
//    "orders":["0","1","2","3","rest"],
//    "weights":{"norm":..,"by_order":[..],"cell_share":..},
//    "states":{"lags":[0,1,2,4,..],"norm":[..],"by_order":[[..],..],"cell_share":[..]}}
//
// Numbers have six digits, which do not depend on the number of threads; one that is not finite is
// null.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace hdetach::xray {

// The norm of a gradient, and those of its parts.
struct Split {
  double norm = 0;
  std::vector<double> by_order;
  // The norm of order 0 over the sum of the norms of all orders; NaN where nothing flows or a norm
  // is not finite.
  double cell_share = 0;
};
Split make_split(double norm, std::vector<double> by_order);

struct Record {
  std::optional<int64_t> epoch, update;  // of a run that has trained
  std::optional<double> weight_scale;    // of a random network
  double detach = 0;
  int64_t steps = 0;
  std::vector<std::string> orders;  // "0", "1", .., "rest"
  Split weights;                    // every loss, into all weights of the LSTM
  std::vector<int64_t> lags;        // in steps before the last loss
  std::vector<Split> states;        // the last loss alone, into the states so long before it
};

std::string to_json(const Record& record);
// `place` ("xray.jsonl:3") stands in the messages. Throws std::runtime_error.
Record parse_record(const std::string& line, const std::string& place);

std::vector<std::string> order_names(int64_t highest);
// 0, 1, 2, 4, .. and the first step.
std::vector<int64_t> usual_lags(int64_t steps);

}  // namespace hdetach::xray
