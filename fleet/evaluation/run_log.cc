#include "fleet/evaluation/run_log.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/file/file.h"

namespace optrail::fleet {

RunLog::RunLog(const std::string& folder, std::ostream* progress)
    : progress_(progress) {
  if (!folder.empty()) events_.open(JoinPath(folder, "events"));
}

void RunLog::Note(absl::string_view what) {
  if (!events_.is_open()) return;
  events_ << absl::StrFormat("%8.2f s: %s\n",
                             absl::ToDoubleSeconds(absl::Now() - begun_), what)
          << std::flush;
}

void RunLog::SayProgress(int done, int all, absl::string_view state) {
  if (progress_ == nullptr) return;
  std::string left;
  if (done > 0 && done < all) {
    left = absl::StrCat(
        "; about ",
        absl::FormatDuration(absl::Ceil(
            (absl::Now() - begun_) / done * (all - done), absl::Seconds(10))),
        " left");
  }
  *progress_ << absl::StrCat("faults: ", done, " of ", all, ", ", state, left,
                             "\n")
             << std::flush;
}

}  // namespace optrail::fleet
