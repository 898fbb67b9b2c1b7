#include "report/attention_picture.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <stdexcept>

#include "report/markup.h"

namespace hdetach::report {
namespace {

constexpr double kPanel = 224;          // the longer side of an image
constexpr double kGap = 14, kTop = 58;  // between panels; above them
constexpr double kBelow = 46;           // a panel, for its word
constexpr int64_t kColumns = 5;

std::string base64(const std::string& bytes) {
  constexpr char kDigits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string out;
  for (size_t at = 0; at < bytes.size(); at += 3) {
    uint32_t three = 0;
    for (size_t i = at; i < at + 3; ++i) {
      three = three << 8 | (i < bytes.size() ? static_cast<unsigned char>(bytes[i]) : 0);
    }
    for (size_t digit = 0; digit < 4; ++digit) {
      out += at + digit <= bytes.size() ? kDigits[three >> (18 - 6 * digit) & 63] : '=';
    }
  }
  return out;
}

int64_t side_of(const std::vector<float>& attention) {
  const auto side = std::llround(std::sqrt(static_cast<double>(attention.size())));
  if (side < 1 || side * side != static_cast<int64_t>(attention.size())) {
    throw std::runtime_error(fmt::format(
        "attention to {} positions cannot be drawn: they are no square", attention.size()));
  }
  return side;
}

// A rectangle for each position that is worth seeing. Those at an edge reach beyond it: what is
// smoothed and cut there does not fade.
std::string heat(const std::vector<float>& attention, float peak) {
  constexpr int64_t kBeyond = 2;
  const int64_t side = side_of(attention);
  const auto from = [](int64_t at) { return at == 0 ? -kBeyond : at; };
  const auto to = [&](int64_t at) { return at + 1 == side ? side + kBeyond : at + 1; };
  std::string out;
  for (int64_t y = 0; y < side; ++y) {
    for (int64_t x = 0; x < side; ++x) {
      const double strength = attention[y * side + x] / peak;
      if (!(strength >= 0.0005)) continue;  // nor where it is not a number
      out += fmt::format(R"(<rect x="{}" y="{}" width="{}" height="{}" fill-opacity="{:.3f}"/>)",
                         from(x), from(y), to(x) - from(x), to(y) - from(y), strength);
    }
  }
  return out;
}

// Positions and sizes in pixels.
struct Layout {
  double width, height;  // of a panel
  int64_t columns, rows;

  Layout(const AttentionPicture& picture) {
    const auto w = static_cast<double>(picture.width), h = static_cast<double>(picture.height);
    width = kPanel * w / std::max(w, h);
    height = kPanel * h / std::max(w, h);
    const auto panels = static_cast<int64_t>(picture.words.size()) + 1;
    columns = std::min(panels, kColumns);
    rows = (panels + kColumns - 1) / kColumns;
  }
  double left(int64_t panel) const { return kGap + (panel % columns) * (width + kGap); }
  double top(int64_t panel) const { return kTop + (panel / columns) * (height + kBelow); }
};

std::string image(const AttentionPicture& picture) {
  if (picture.jpeg.empty()) return R"(<rect width="1" height="1" fill="#b4b4b8"/>)";
  // The network saw the image without the orientation that a camera may have noted.
  return fmt::format(R"(<image width="1" height="1" preserveAspectRatio="none" )"
                     R"(style="image-orientation:none" href="data:image/jpeg;base64,{}"/>)",
                     base64(picture.jpeg));
}

std::string panel(const Layout& layout, const std::string& word,
                  const std::vector<float>& attention) {
  const float peak = *std::max_element(attention.begin(), attention.end());
  const std::string size =
      fmt::format(R"(width="{:.1f}" height="{:.1f}")", layout.width, layout.height);
  const int64_t side = side_of(attention);
  return fmt::format(
      R"(<use href="#image" {0}/><rect {0} opacity=".45"/>
<svg {0} viewBox="0 0 {1} {1}" preserveAspectRatio="none"><g class="heat">{2}</g></svg>
<text x="{3:.1f}" y="{4:.1f}" class="word">{5}<tspan class="peak" dx="6">{6:.1f}%</tspan></text>)",
      size, side, heat(attention, peak), layout.width / 2, layout.height + 21, escaped(word),
      100 * peak);
}

}  // namespace

std::string to_svg(const AttentionPicture& picture) {
  const Layout layout(picture);
  std::string caption;
  for (const std::string& word : picture.words) caption += (caption.empty() ? "" : " ") + word;
  // A caption may be wider than its panels: a letter of it has some 11 pixels.
  const double width = std::max(layout.left(layout.columns - 1) + layout.width + kGap,
                                2 * kGap + 11 * static_cast<double>(caption.size()));
  const double height = kTop + layout.rows * (layout.height + kBelow);
  std::string out = fmt::format(
      R"(<svg xmlns="http://www.w3.org/2000/svg" width="{0:.0f}" height="{1:.0f}" viewBox="0 0 {0:.0f} {1:.0f}">
<title>{2}</title>
<style>
text {{ font: 16px system-ui, sans-serif; fill: #18181b; }}
.caption {{ font-size: 20px; font-weight: 600; }} .of, .peak {{ font-size: 12px; fill: #71717a; }}
.word {{ text-anchor: middle; }} .heat {{ fill: #ff6a1a; opacity: .8; filter: url(#smooth); }}
</style>
<defs>
<filter id="smooth" color-interpolation-filters="sRGB"><feGaussianBlur stdDeviation=".55"/></filter>
<symbol id="image" viewBox="0 0 1 1" preserveAspectRatio="none">{3}</symbol>
</defs>
<rect width="100%" height="100%" fill="#fff"/>
<text x="{4}" y="28" class="caption">{5}</text>
<text x="{4}" y="47" class="of">{2}; beside each word the largest share of its attention</text>
)",
      width, height, escaped(picture.title), image(picture), kGap, escaped(caption));
  out += fmt::format(R"(<use href="#image" x="{:.1f}" y="{:.1f}" width="{:.1f}" height="{:.1f}"/>)",
                     layout.left(0), layout.top(0), layout.width, layout.height) +
         "\n";
  for (size_t i = 0; i < picture.words.size(); ++i) {
    const auto place = static_cast<int64_t>(i) + 1;
    out += fmt::format("<g transform=\"translate({:.1f} {:.1f})\">\n{}\n</g>\n", layout.left(place),
                       layout.top(place), panel(layout, picture.words[i], picture.attention[i]));
  }
  return out + "</svg>\n";
}

}  // namespace hdetach::report
