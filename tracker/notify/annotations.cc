#include "tracker/notify/annotations.h"

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "base/table.h"

namespace optrail::tracker {
namespace {

// What only a terminal or a reader could be fooled by goes first, then what
// each service's own syntax would take for its end.
std::string GithubText(absl::string_view text) {
  return absl::StrReplaceAll(EscapeForTerminal(text), {{"%", "%25"}});
}

std::string GithubTitle(absl::string_view text) {
  return absl::StrReplaceAll(GithubText(text), {{":", "%3A"}, {",", "%2C"}});
}

std::string AzureText(absl::string_view text) {
  return absl::StrReplaceAll(EscapeForTerminal(text),
                             {{"%", "%AZP25"}, {"]", "%5D"}, {";", "%3B"}});
}

std::string TeamcityText(absl::string_view text) {
  return absl::StrReplaceAll(
      EscapeForTerminal(text),
      {{"|", "||"}, {"'", "|'"}, {"[", "|["}, {"]", "|]"}});
}

std::string Line(AnnotationStyle style, const Annotation& note) {
  switch (style) {
    case AnnotationStyle::kGithub:
      return absl::StrCat("::", note.is_error ? "error" : "warning",
                          " title=", GithubTitle(note.title),
                          "::", GithubText(note.text), "\n");
    case AnnotationStyle::kAzure:
      return absl::StrCat(
          "##vso[task.logissue type=", note.is_error ? "error" : "warning", "]",
          AzureText(note.title), ": ", AzureText(note.text), "\n");
    case AnnotationStyle::kTeamcity:
      if (note.is_error) {
        return absl::StrCat("##teamcity[buildProblem description='",
                            TeamcityText(note.title), ": ",
                            TeamcityText(note.text), "']\n");
      }
      return absl::StrCat("##teamcity[message text='", TeamcityText(note.title),
                          ": ", TeamcityText(note.text),
                          "' status='WARNING']\n");
  }
  return "";
}

}  // namespace

absl::StatusOr<AnnotationStyle> ParseAnnotationStyle(absl::string_view name) {
  if (name == "github") return AnnotationStyle::kGithub;
  if (name == "azure") return AnnotationStyle::kAzure;
  if (name == "teamcity") return AnnotationStyle::kTeamcity;
  return absl::InvalidArgumentError(absl::StrCat(
      "--annotations=", name, ": expected github, azure or teamcity"));
}

std::string Annotations(AnnotationStyle style,
                        const std::vector<Annotation>& annotations, int limit) {
  std::string lines;
  const int count = static_cast<int>(annotations.size());
  for (int i = 0; i < count && i < limit; ++i) {
    absl::StrAppend(&lines, Line(style, annotations[i]));
  }
  if (count > limit) {
    absl::StrAppend(
        &lines,
        Line(style, {false, "optrail",
                     absl::StrCat(count - limit, " more are not annotated")}));
  }
  return lines;
}

}  // namespace optrail::tracker
