#include "suites/tune/search_within.h"

#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/status_macros.h"
#include "ops/core/backend_space.h"
#include "tuning/space/space_change.h"

namespace optrail::suites {
absl::StatusOr<std::string> RestrictTo(const SearchWithin& within,
                                       const TaskEntry& task,
                                       const proto::Hardware& hardware,
                                       TaskSpace* space) {
  if (space->configs != nullptr) {
    return absl::InvalidArgumentError(
        "configs that no space lists cannot be searched by knob");
  }
  const std::vector<std::string> names = space->space->knob_names();
  for (const std::string& knob : within.knobs) {
    if (!absl::c_linear_search(names, knob)) {
      return absl::InvalidArgumentError(absl::StrCat(
          "knob ", knob, ": expected one of ", absl::StrJoin(names, ", ")));
    }
  }
  OPTRAIL_RETURN_IF_ERROR(space->bound->Validate(within.around));
  OPTRAIL_ASSIGN_OR_RETURN(const proto::Config around,
                           space->bound->Complete(within.around));
  const ops::EmbeddedFile& file = ops::SpaceFileOf(*task.backend);
  std::string text = file.contents;
  for (const proto::KnobValue& value : around.set()) {
    if (absl::c_linear_search(within.knobs, value.knob())) continue;
    absl::StrAppend(&text, "\nconstraint { expr: \"", tuning::EqualsText(value),
                    "\" why: \"the search is within other knobs\" }");
  }
  text = tuning::WithDefault(text, around);
  OPTRAIL_RETURN_IF_ERROR(ReplaceSpace(text, task, hardware, space));
  return text;
}

absl::Status ReplaceSpace(const std::string& text, const TaskEntry& task,
                          const proto::Hardware& hardware, TaskSpace* space) {
  OPTRAIL_ASSIGN_OR_RETURN(
      ops::BackendConfigs other,
      ops::BindSpace(text, ops::SpaceFileOf(*task.backend).path,
                     task.task.shape(), task.task.threads(), hardware));
  space->space = std::move(other.space);
  space->bound = std::move(other.bound);
  return absl::OkStatus();
}

}  // namespace optrail::suites
