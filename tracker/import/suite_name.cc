#include "tracker/import/suite_name.h"

#include "absl/strings/ascii.h"
#include "absl/strings/str_replace.h"
#include "base/file/file.h"
#include "re2/re2.h"

namespace optrail::tracker {
namespace {

bool IsChangingPart(absl::string_view part) {
  // Digits, perhaps of a date and time or after a "v", "run", "r" or "pr"; or
  // a hash, which has a digit ("feedbeef" alone is rarer than the word).
  static const RE2* const kNumber =
      new RE2("(?i)(v|r|run|pr|build|attempt)?[0-9]+([tT]?[0-9]+[zZ]?)?");
  static const RE2* const kHash = new RE2("[0-9a-f]{7,64}");
  static const RE2* const kDigit = new RE2("[0-9]");
  return RE2::FullMatch({part.data(), part.size()}, *kNumber) ||
         (RE2::FullMatch({part.data(), part.size()}, *kHash) &&
          RE2::PartialMatch({part.data(), part.size()}, *kDigit));
}

absl::string_view WithoutExtension(absl::string_view name) {
  // ".json", ".txt.gz", ...; not the ".2" of "run.2", which is a number.
  static const RE2* const kExtension =
      new RE2("(?i).+?((?:\\.(?:json|csv|txt|log|out|bench|gz|exe))+)");
  re2::StringPiece extension;
  if (RE2::FullMatch({name.data(), name.size()}, *kExtension, &extension)) {
    name.remove_suffix(extension.size());
  }
  return name;
}

}  // namespace

std::string StableSuiteName(absl::string_view path) {
  const absl::string_view name = WithoutExtension(FileNameOf(path));
  constexpr absl::string_view kSeparators = "-_. ";
  std::string kept;
  char separator = 0;
  for (size_t start = 0; start <= name.size();) {
    size_t end = name.find_first_of(kSeparators, start);
    if (end == absl::string_view::npos) end = name.size();
    const absl::string_view part = name.substr(start, end - start);
    if (!part.empty() && !IsChangingPart(part)) {
      if (!kept.empty()) kept.push_back(separator);
      kept.append(part.data(), part.size());
    }
    if (end < name.size()) separator = name[end];
    start = end + 1;
  }
  if (name.size() == FileNameOf(path).size()) return kept;  // a program
  // "bench12.json": the number of a run without a separator before it.
  static const RE2* const kNumbered = new RE2("(.*?[A-Za-z]{3,})[0-9]+");
  std::string stem;
  if (RE2::FullMatch(kept.empty() ? std::string(name) : kept, *kNumbered,
                     &stem)) {
    return stem;
  }
  return kept;
}

std::string HardwareIdPart(absl::string_view model) {
  const std::string plain =
      absl::StrReplaceAll(model, {{"(R)", " "}, {"(TM)", " "}, {"@", " "}});
  std::string id;
  for (const char c : plain) {
    if (absl::ascii_isalnum(c)) {
      id.push_back(absl::ascii_tolower(c));
    } else if (!id.empty() && id.back() != '-') {
      id.push_back('-');
    }
    if (id.size() == 60) break;
  }
  while (!id.empty() && id.back() == '-') id.pop_back();
  return id;
}

}  // namespace optrail::tracker
