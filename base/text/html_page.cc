#include "base/text/html_page.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"

namespace optrail {
namespace {

constexpr char kStyle[] =
    "body{font:15px/1.5 system-ui,sans-serif;margin:2rem auto;max-width:60rem;"
    "padding:0 1rem;color:#1a1a1a;background:#fff}"
    "table{border-collapse:collapse;width:100%;margin:1rem 0}"
    "caption{text-align:left;font-weight:600;padding:.25rem 0}"
    "th,td{border-bottom:1px solid #ccc;padding:.3rem .5rem;text-align:left;"
    "vertical-align:top;overflow-wrap:anywhere}"
    // Headers of columns and words of a few letters are never broken.
    "th[scope=col],td.k{overflow-wrap:normal}td.k{white-space:nowrap}"
    "td.n,th.n{text-align:right;white-space:nowrap}"
    "figure{margin:1rem 0;overflow-x:auto}svg{display:block;min-width:100%}"
    ".estimated{font-weight:600;border:1px solid #8a5a00;padding:.1rem .4rem}"
    "@media print{body{margin:0;max-width:none}tr,figure{break-inside:avoid}"
    "caption{break-after:avoid}}";

}  // namespace

std::string EscapeHtml(absl::string_view text) {
  return absl::StrReplaceAll(text, {{"&", "&amp;"},
                                    {"<", "&lt;"},
                                    {">", "&gt;"},
                                    {"\"", "&quot;"},
                                    {"'", "&#39;"}});
}

std::string PageText(absl::string_view title, absl::string_view body) {
  const std::string heading = EscapeHtml(title);
  return absl::StrCat(
      "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">"
      "<meta name=\"viewport\" content=\"width=device-width\">"
      "<title>",
      heading, "</title><style>", kStyle, "</style></head><body><main>\n<h1>",
      heading, "</h1>\n", body, "</main></body></html>\n");
}

}  // namespace optrail
