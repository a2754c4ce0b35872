#include "base/text/closest.h"

#include <algorithm>
#include <numeric>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

namespace optrail {

int EditDistance(absl::string_view a, absl::string_view b) {
  constexpr size_t kLimit = 256;
  a = a.substr(0, kLimit);
  b = b.substr(0, kLimit);
  std::vector<int> row(b.size() + 1);
  std::iota(row.begin(), row.end(), 0);
  for (size_t i = 0; i < a.size(); ++i) {
    int diagonal = row[0];
    row[0] = static_cast<int>(i) + 1;
    for (size_t j = 0; j < b.size(); ++j) {
      const int substituted = diagonal + (a[i] != b[j]);
      diagonal = row[j + 1];
      row[j + 1] = std::min({substituted, diagonal + 1, row[j] + 1});
    }
  }
  return row.back();
}

std::string Closest(absl::string_view typed,
                    const std::vector<std::string>& names) {
  const int most = 1 + static_cast<int>(typed.size()) / 3;
  const std::string* best = nullptr;
  int best_distance = most + 1;
  const auto consider = [&](const std::string& name, int distance) {
    if (distance >= best_distance) return;
    best = &name;
    best_distance = distance;
  };
  for (const std::string& name : names) {
    // A word of nothing but changes resembles nothing.
    if (const int distance = EditDistance(typed, name);
        distance < static_cast<int>(std::max(typed.size(), name.size()))) {
      consider(name, distance);
    }
    const std::vector<absl::string_view> parts = absl::StrSplit(name, '_');
    if (typed.size() > 2 &&
        (absl::StartsWith(name, typed) ||
         std::find(parts.begin(), parts.end(), typed) != parts.end())) {
      consider(name, most);
    }
  }
  return best == nullptr ? "" : *best;
}

std::string DidYouMean(absl::string_view typed,
                       const std::vector<std::string>& names,
                       absl::string_view prefix) {
  const std::string name = Closest(typed, names);
  if (name.empty()) return "";
  return absl::StrCat("; did you mean ", prefix, name, "?");
}

std::string JoinWithOr(const std::vector<std::string>& names) {
  std::string text;
  for (size_t i = 0; i < names.size(); ++i) {
    absl::StrAppend(&text,
                    i == 0                  ? ""
                    : i + 1 == names.size() ? " or "
                                            : ", ",
                    names[i]);
  }
  return text;
}

std::string ExpectedOneOf(absl::string_view typed,
                          const std::vector<std::string>& names) {
  return absl::StrCat("expected ", JoinWithOr(names), DidYouMean(typed, names));
}

}  // namespace optrail
