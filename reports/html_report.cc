#include "reports/html_report.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "base/check.h"
#include "reports/page_data.h"
#include "reports/ui/assets.h"

namespace optrail::reports {
namespace {

// For the page's title, the only text of the data outside of its JSON. Control
// characters (a NUL among them) are no HTML.
std::string EscapeHtml(absl::string_view text) {
  std::string escaped;
  for (const char c : text) {
    switch (c) {
      case '&':
        escaped += "&amp;";
        break;
      case '<':
        escaped += "&lt;";
        break;
      case '>':
        escaped += "&gt;";
        break;
      case '"':
        escaped += "&quot;";
        break;
      case '\'':
        escaped += "&#39;";
        break;
      default:
        escaped += static_cast<unsigned char>(c) < 0x20 || c == 0x7f ? ' ' : c;
    }
  }
  return escaped;
}

// "'sha256-...'", as a content security policy names a script.
std::string ScriptSource(absl::string_view sha256_hex) {
  return absl::StrCat(
      "'sha256-", absl::Base64Escape(absl::HexStringToBytes(sha256_hex)), "'");
}

std::string ContentSecurityPolicy() {
  return absl::StrCat(
      "default-src 'none'; script-src ",
      ScriptSource(assets::kEchartsSha256Hex), " ",
      ScriptSource(assets::kScriptSha256Hex),
      "; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; "
      "form-action 'none'");
}

// Replaces each {{name}} of `text` once. What is put in is not looked at again,
// so that data cannot name a placeholder.
std::string Fill(
    absl::string_view text,
    const std::vector<std::pair<absl::string_view, absl::string_view>>&
        values) {
  size_t bytes = text.size();
  for (const auto& [name, value] : values) bytes += value.size();
  std::string filled;
  filled.reserve(bytes);
  size_t done = 0;
  while (true) {
    const size_t begin = text.find("{{", done);
    if (begin == absl::string_view::npos) break;
    const size_t end = text.find("}}", begin);
    OPTRAIL_CHECK(end != absl::string_view::npos) << "open placeholder";
    const absl::string_view name = text.substr(begin + 2, end - begin - 2);
    const auto found =
        std::find_if(values.begin(), values.end(),
                     [&](const auto& value) { return value.first == name; });
    OPTRAIL_CHECK(found != values.end()) << "placeholder " << name;
    absl::StrAppend(&filled, text.substr(done, begin - done), found->second);
    done = end + 2;
  }
  absl::StrAppend(&filled, text.substr(done));
  return filled;
}

std::string EscapedTitle(const std::string& title) {
  return EscapeHtml(title.empty() ? "Optrail report" : title);
}

}  // namespace

int64_t DataBytes(const std::string& title, const HtmlReportOptions& options) {
  const int64_t frame_bytes =
      assets::kTemplate.size() + assets::kStyle.size() +
      assets::kEcharts.size() + assets::kEchartsLicense.size() +
      assets::kScript.size() + EscapedTitle(title).size() +
      ContentSecurityPolicy().size();
  return options.max_bytes - frame_bytes;
}

std::string WriteHtmlReport(const ReportData& data,
                            const HtmlReportOptions& options) {
  const std::string json = PageJson(data, DataBytes(data.title, options));
  return Fill(assets::kTemplate, {{"csp", ContentSecurityPolicy()},
                                  {"title", EscapedTitle(data.title)},
                                  {"style", assets::kStyle},
                                  {"data", json},
                                  {"echarts_license", assets::kEchartsLicense},
                                  {"echarts", assets::kEcharts},
                                  {"script", assets::kScript}});
}

}  // namespace optrail::reports
