#include "base/text/json.h"

#include <algorithm>
#include <functional>
#include <map>
#include <set>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

namespace optrail {
namespace {

// "12:34" of a byte that is counted from 1.
std::string LineAndColumn(absl::string_view text, size_t byte) {
  byte = std::min(byte, text.size());
  const absl::string_view before = text.substr(0, byte == 0 ? 0 : byte - 1);
  const size_t newline = before.rfind('\n');
  const size_t column = newline == absl::string_view::npos
                            ? before.size() + 1
                            : before.size() - newline;
  return absl::StrCat(1 + std::count(before.begin(), before.end(), '\n'), ":",
                      column);
}

// Length of a non-finite number that begins here, or 0.
size_t NonFinite(absl::string_view text) {
  for (const absl::string_view word :
       {"-NaN", "NaN", "-Infinity", "Infinity"}) {
    if (absl::StartsWith(text, word)) return word.size();
  }
  return 0;
}

// One walk over the text, strings skipped: quotes what is no number and finds
// the first byte (from 1; 0: none) that nests too deep.
size_t Walk(absl::string_view text, const JsonOptions& options,
            std::string* quoted) {
  int depth = 0;
  bool in_string = false;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (in_string) {
      if (c == '\\' && i + 1 < text.size()) quoted->push_back(text[i++]);
      if (c == '"') in_string = false;
      quoted->push_back(text[i]);
      continue;
    }
    if (c == '"') in_string = true;
    if ((c == '[' || c == '{') && ++depth > options.max_depth) return i + 1;
    if (c == ']' || c == '}') --depth;
    const size_t length =
        options.quote_non_finite ? NonFinite(text.substr(i)) : 0;
    if (length == 0) {
      quoted->push_back(c);
    } else {
      absl::StrAppend(quoted, "\"", text.substr(i, length), "\"");
      i += length - 1;
    }
  }
  return 0;
}

// Finds the first key that an object has twice, while a text is parsed.
class RepeatedKey {
 public:
  // nlohmann::json::parse calls it; the keys of an object are one deeper than
  // its start.
  bool operator()(int depth, nlohmann::json::parse_event_t event,
                  nlohmann::json& value) {
    if (event == nlohmann::json::parse_event_t::object_start) {
      keys_[depth + 1].clear();
    } else if (event == nlohmann::json::parse_event_t::key && !found_) {
      found_ = !keys_[depth].insert(value.get<std::string>()).second;
      if (found_) key_ = value;
    }
    return true;
  }

  bool found() const { return found_; }
  const nlohmann::json& key() const { return key_; }

 private:
  std::map<int, std::set<std::string>> keys_;  // by depth
  bool found_ = false;
  nlohmann::json key_;
};

}  // namespace

absl::StatusOr<nlohmann::json> ParseJson(absl::string_view text,
                                         absl::string_view name,
                                         const JsonOptions& options) {
  std::string quoted;
  quoted.reserve(text.size());
  if (const size_t byte = Walk(text, options, &quoted); byte != 0) {
    return absl::InvalidArgumentError(
        absl::StrCat(name, ":", LineAndColumn(text, byte), ": nests more than ",
                     options.max_depth, " deep"));
  }
  try {
    if (!options.unique_keys) return nlohmann::json::parse(quoted);
    RepeatedKey repeated;
    nlohmann::json json = nlohmann::json::parse(quoted, std::ref(repeated));
    if (!repeated.found()) return json;
    return absl::InvalidArgumentError(
        absl::StrCat(name, ": an object has the key ",
                     ShortJson(repeated.key()), " twice, expected it once"));
  } catch (const nlohmann::json::parse_error& error) {
    const bool cut_off = error.byte >= quoted.size();
    return absl::InvalidArgumentError(absl::StrCat(
        name, ":", LineAndColumn(quoted, error.byte), ": no valid JSON",
        cut_off ? "; the file ends early: was its writer interrupted?"
                : absl::StrCat(": ", JsonReason(error))));
  } catch (const nlohmann::json::exception& error) {
    return absl::InvalidArgumentError(
        absl::StrCat(name, ": no valid JSON: ", JsonReason(error)));
  }
}

std::string JsonReason(const nlohmann::json::exception& error) {
  const std::string text = error.what();
  const size_t end = text.find("] ");
  return end == std::string::npos ? text : text.substr(end + 2);
}

std::string ShortJson(const nlohmann::json& value, size_t max_bytes) {
  std::string text =
      value.dump(-1, ' ', true, nlohmann::json::error_handler_t::replace);
  if (text.size() > max_bytes) {
    text.resize(max_bytes);
    text += "...";
  }
  return text;
}

}  // namespace optrail
