#include "tuning/proto/session_text.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "tuning/proto/canonical.h"

namespace optrail::tuning {

std::string SessionTaskText(const proto::Session& session) {
  std::string text = TaskText(session.task());
  absl::string_view id = session.task().kernel_id();
  // Long enough that two programs of a history hardly share it.
  constexpr size_t kShown = 8;
  if (session.has_command() && absl::ConsumePrefix(&id, "command-")) {
    absl::StrAppend(&text, "/id=", id.substr(0, kShown));
  }
  return text;
}

}  // namespace optrail::tuning
