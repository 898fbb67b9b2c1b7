#include "report/documents/wording.h"

#include <fmt/core.h>

#include <cmath>
#include <cstdlib>

namespace hdetach::report {

std::string with_commas(int64_t value) {
  std::string digits = std::to_string(std::abs(value));
  for (auto at = static_cast<int64_t>(digits.size()) - 3; at > 0; at -= 3) digits.insert(at, ",");
  return (value < 0 ? "-" : "") + digits;
}

std::string with_seeds(const std::string& name, size_t seeds) {
  return fmt::format("{} ({} seed{})", name, seeds, seeds == 1 ? "" : "s");
}

std::string comma_list(const std::vector<std::string>& names) {
  std::string out;
  for (const std::string& name : names) out += (out.empty() ? "" : ", ") + name;
  return out;
}

std::string norm_text(std::optional<double> norm) {
  if (!norm) return "-";
  if (!std::isfinite(*norm)) return "not finite";
  if (*norm < 100) return fmt::format("{:.2g}", *norm);
  if (*norm < 999.5) return fmt::format("{:.0f}", *norm);
  const std::string text = fmt::format("{:.0e}", *norm);  // "5e+27"
  const size_t e = text.find('e');
  return text.substr(0, e) + "e" + std::to_string(std::atoi(text.c_str() + e + 1));
}

std::string times_100(double part, int decimals) {
  return fmt::format("{:.{}f}", 100 * part, decimals);
}

std::string signed_points(double part, int decimals) {
  const std::string text = fmt::format("{:+.{}f}", 100 * part, decimals);
  // A difference that is rounded to nothing has no sign.
  return text.find_first_of("123456789") == std::string::npos ? text.substr(1) : text;
}

std::string spread_text(const std::optional<Spread>& spread, int decimals,
                        std::string (*text)(double part, int decimals)) {
  if (!spread) return "-";
  if (spread->count == 1) return text(spread->mean, decimals);
  return fmt::format("{} ({} to {})", text(spread->mean, decimals), text(spread->low, decimals),
                     text(spread->high, decimals));
}

}  // namespace hdetach::report
