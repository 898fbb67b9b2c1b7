#include "xray/record.h"

#include <fmt/core.h>

#include <cmath>
#include <cstdlib>
#include <limits>
#include <nlohmann/json.hpp>
#include <numeric>
#include <utility>

#include "formats/json_object.h"

namespace hdetach::xray {
namespace {

using OrderedJson = nlohmann::ordered_json;

OrderedJson six_digits(double value) {
  if (!std::isfinite(value)) return nullptr;
  return std::strtod(fmt::format("{:.5e}", value).c_str(), nullptr);
}

OrderedJson six_digits(const std::vector<double>& values) {
  OrderedJson list = OrderedJson::array();
  for (const double value : values) list.push_back(six_digits(value));
  return list;
}

template <class T>
OrderedJson or_null(const std::optional<T>& value) {
  return value ? OrderedJson(*value) : OrderedJson(nullptr);
}

double number_of(const JsonObject& json, const nlohmann::json& value) {
  if (value.is_null()) return std::numeric_limits<double>::quiet_NaN();
  if (!value.is_number()) json.fail("a norm is not a number");
  return value.get<double>();
}

std::vector<double> norms_of(const JsonObject& json, const nlohmann::json& list, size_t count) {
  if (!list.is_array() || list.size() != count) json.fail("by_order does not fit orders");
  std::vector<double> out;
  for (const nlohmann::json& value : list) out.push_back(number_of(json, value));
  return out;
}

}  // namespace

Split make_split(double norm, std::vector<double> by_order) {
  const double sum = std::accumulate(by_order.begin(), by_order.end(), 0.0);
  const bool tells = sum > 0 && std::isfinite(sum);
  const double share = tells ? by_order[0] / sum : std::numeric_limits<double>::quiet_NaN();
  return {norm, std::move(by_order), share};
}

std::string to_json(const Record& record) {
  OrderedJson json;
  json["epoch"] = or_null(record.epoch);
  json["update"] = or_null(record.update);
  json["weight_scale"] = or_null(record.weight_scale);
  json["detach"] = record.detach;
  json["steps"] = record.steps;
  json["orders"] = record.orders;
  json["weights"]["norm"] = six_digits(record.weights.norm);
  json["weights"]["by_order"] = six_digits(record.weights.by_order);
  json["weights"]["cell_share"] = six_digits(record.weights.cell_share);
  OrderedJson& states = json["states"];
  states["lags"] = record.lags;
  for (const char* key : {"norm", "by_order", "cell_share"}) states[key] = OrderedJson::array();
  for (const Split& split : record.states) {
    states["norm"].push_back(six_digits(split.norm));
    states["by_order"].push_back(six_digits(split.by_order));
    states["cell_share"].push_back(six_digits(split.cell_share));
  }
  return json.dump();
}

Record parse_record(const std::string& line, const std::string& place) {
  const JsonObject json(line, place);
  Record record;
  if (json.has("epoch")) record.epoch = json.whole("epoch");
  if (json.has("update")) record.update = json.whole("update");
  if (json.has("weight_scale")) record.weight_scale = json.number("weight_scale");
  record.detach = json.number("detach");
  record.steps = json.whole("steps");
  for (const nlohmann::json& name : json.list("orders")) {
    if (!name.is_string()) json.fail("orders has something that is not a text");
    record.orders.push_back(name.get<std::string>());
  }
  const size_t orders = record.orders.size();
  const JsonObject weights(json.object("weights"), place), states(json.object("states"), place);
  record.weights = {weights.number("norm"), norms_of(json, weights.list("by_order"), orders),
                    weights.number("cell_share")};
  for (const nlohmann::json& lag : states.list("lags")) {
    if (!lag.is_number_integer()) json.fail("a lag is not a whole number");
    record.lags.push_back(lag.get<int64_t>());
  }
  const nlohmann::json &norms = states.list("norm"), &by_order = states.list("by_order"),
                       &shares = states.list("cell_share");
  for (const nlohmann::json* list : {&norms, &by_order, &shares}) {
    if (list->size() != record.lags.size()) json.fail("states has not one entry a lag");
  }
  for (size_t i = 0; i < norms.size(); ++i) {
    record.states.push_back({number_of(json, norms[i]), norms_of(json, by_order[i], orders),
                             number_of(json, shares[i])});
  }
  return record;
}

std::vector<std::string> order_names(int64_t highest) {
  std::vector<std::string> names;
  for (int64_t order = 0; order <= highest; ++order) names.push_back(std::to_string(order));
  names.push_back("rest");
  return names;
}

std::vector<int64_t> usual_lags(int64_t steps) {
  std::vector<int64_t> lags = {0};
  for (int64_t lag = 1; lag < steps - 1; lag *= 2) lags.push_back(lag);
  if (steps > 1) lags.push_back(steps - 1);
  return lags;
}

}  // namespace hdetach::xray
