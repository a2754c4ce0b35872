#ifndef OPTRAIL_TRACKER_NOTIFY_ANNOTATIONS_H_
#define OPTRAIL_TRACKER_NOTIFY_ANNOTATIONS_H_

// Lines that a CI service turns into annotations beside the log.
//
//   std::cerr << Annotations(*ParseAnnotationStyle("github"), notes);
//
// Texts are escaped: a benchmark's name can neither end a command nor begin
// another one.

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace optrail::tracker {

enum class AnnotationStyle {
  kGithub,    // ::error title=...::...
  kAzure,     // ##vso[task.logissue type=error]...
  kTeamcity,  // ##teamcity[buildProblem description='...']
};

// InvalidArgument that says which there are.
absl::StatusOr<AnnotationStyle> ParseAnnotationStyle(absl::string_view name);

struct Annotation {
  bool is_error = true;  // else a warning
  std::string title;
  std::string text;
};

// A line each, of the first `limit`; one more says how many there are beyond.
std::string Annotations(AnnotationStyle style,
                        const std::vector<Annotation>& annotations,
                        int limit = 10);

}  // namespace optrail::tracker

#endif  // OPTRAIL_TRACKER_NOTIFY_ANNOTATIONS_H_
