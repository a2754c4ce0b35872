#include "suites/tune/search_within.h"

#include <memory>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/status_macros.h"
#include "ops/core/backend_space.h"

namespace optrail::suites {
namespace {

// The value as expressions and as `set` write it.
struct ValueTexts {
  std::string in_expression, in_set;
};

ValueTexts TextsOf(const proto::KnobValue& value) {
  if (value.has_bool_()) {
    const char* const text = value.bool_() ? "true" : "false";
    return {text, absl::StrCat("bool: ", text)};
  }
  if (value.has_variant()) {
    return {absl::StrCat("'", value.variant(), "'"),
            absl::StrCat("variant: \"", value.variant(), "\"")};
  }
  return {absl::StrCat(value.int_()), absl::StrCat("int: ", value.int_())};
}

}  // namespace

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
  std::string defaults;
  for (const proto::KnobValue& value : around.set()) {
    const ValueTexts texts = TextsOf(value);
    absl::StrAppend(&defaults, " set { knob: \"", value.knob(), "\" ",
                    texts.in_set, " }");
    if (absl::c_linear_search(within.knobs, value.knob())) continue;
    absl::StrAppend(&text, "\nconstraint { expr: \"", value.knob(),
                    " == ", texts.in_expression,
                    "\" why: \"the search is within other knobs\" }");
  }
  absl::StrAppend(&text, "\ndefault_where { expr: \"true\" why: ",
                  "\"the search is around this config\"", defaults, " }\n");
  OPTRAIL_ASSIGN_OR_RETURN(tuning::Space part,
                           tuning::Space::Parse(text, file.path));
  tuning::BindOptions options;
  options.threads = task.task.threads();
  OPTRAIL_ASSIGN_OR_RETURN(auto bound,
                           part.Bind(task.task.shape(), hardware, options));
  space->space = std::make_unique<tuning::Space>(std::move(part));
  space->bound = std::move(bound);
  return text;
}

}  // namespace optrail::suites
