#ifndef OPTRAIL_BASE_TEXT_JSON_H_
#define OPTRAIL_BASE_TEXT_JSON_H_

// JSON that came from somebody else.
//
//   OPTRAIL_ASSIGN_OR_RETURN(const nlohmann::json json,
//                            ParseJson(content, "bench.json"));
//
// What is refused, with file, line and column: what is no JSON, text that is
// no UTF-8, numbers beyond a double, and nesting deeper than a limit: copying,
// printing and destroying a value recurse, so a small hostile file could
// overflow the stack long after it was read.
//
// It is not the place to write JSON: nlohmann::json::dump does.

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "nlohmann/json.hpp"

namespace optrail {

struct JsonOptions {
  int max_depth = 64;
  // Some tools write NaN, Infinity and -Infinity as they are, which is no
  // JSON. As the texts "NaN", ... they can be reported with their field.
  bool quote_non_finite = false;
  // Refuses an object with the same key twice, of which the later would win:
  // for formats whose keys are names.
  bool unique_keys = false;
};

// `name` stands for the file in errors, which are InvalidArgument.
absl::StatusOr<nlohmann::json> ParseJson(absl::string_view text,
                                         absl::string_view name,
                                         const JsonOptions& options = {});

// What is wrong, by an exception of the parser or of a missing field, without
// the number that the library gives its errors.
std::string JsonReason(const nlohmann::json::exception& error);

// A value as a message shows it: one line, valid UTF-8, at most `max_bytes`.
std::string ShortJson(const nlohmann::json& value, size_t max_bytes = 60);

}  // namespace optrail

#endif  // OPTRAIL_BASE_TEXT_JSON_H_
