#ifndef OPTRAIL_REPORTS_INERT_JSON_H_
#define OPTRAIL_REPORTS_INERT_JSON_H_

// JSON text that may stand inside an HTML script element.

#include <string>

#include "nlohmann/json.hpp"

namespace optrail::reports {

// Pure ASCII without '<', '>' and '&', so that no "</script>" or "<!--" in a
// name ends the element; invalid UTF-8 becomes U+FFFD, NaN and infinity null.
// `indent` below zero: one line.
inline std::string DumpInert(const nlohmann::ordered_json& json,
                             int indent = -1) {
  const std::string text =
      json.dump(indent, ' ', /*ensure_ascii=*/true,
                nlohmann::ordered_json::error_handler_t::replace);
  // Outside of strings JSON has none of these characters.
  std::string inert;
  inert.reserve(text.size());
  for (const char c : text) {
    switch (c) {
      case '<':
        inert += "\\u003c";
        break;
      case '>':
        inert += "\\u003e";
        break;
      case '&':
        inert += "\\u0026";
        break;
      default:
        inert += c;
    }
  }
  return inert;
}

}  // namespace optrail::reports

#endif  // OPTRAIL_REPORTS_INERT_JSON_H_
