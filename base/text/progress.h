#ifndef OPTRAIL_BASE_TEXT_PROGRESS_H_
#define OPTRAIL_BASE_TEXT_PROGRESS_H_

// One line that says how far a long job is and when it will be done:
//
//   tuning matmul  [#######-----------]  37%  74/200  ETA 1 min 12 s  best 81
//   us
//
//   Progress progress("tuning matmul", 200);
//   for (...) progress.Update(done, absl::StrCat("best ", best));
//
// On a terminal the line is redrawn in place, at most ten times a second;
// elsewhere (a CI log) a plain line comes now and then. It goes to standard
// error, so that results on standard output stay clean. It is not a log.

#include <cstdint>
#include <functional>
#include <string>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "base/clock.h"

namespace optrail {

struct ProgressOptions {
  bool quiet = false;  // shows nothing
  // Unset (-1): asks standard error.
  int is_terminal = -1;
  // "74/200" beside the share, where the units say something to people.
  bool counts = true;
  int width = 0;  // of the terminal; 0: asks it
  absl::Duration terminal_interval = absl::Milliseconds(100);
  absl::Duration log_interval = absl::Seconds(30);
  // Takes the text; unset: standard error.
  std::function<void(absl::string_view)> sink;
};

class Progress {
 public:
  // `total` is the amount of work in units of the caller's choice; 0: unknown,
  // so neither bar nor ETA.
  Progress(std::string title, int64_t total, ProgressOptions options = {},
           Clock* clock = Clock::Real());
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;
  // Calls Finish.
  ~Progress();

  void Update(int64_t done, absl::string_view detail = "");
  // Changes the amount of work; shows with the next Update.
  void SetTotal(int64_t total) { total_ = total; }
  int64_t total() const { return total_; }
  // Of what is done this much was before: it took none of this job's time, so
  // the ETA leaves it out.
  void SetEarlier(int64_t done) { earlier_ = done; }

  // Draws the last state, ends the line. Later calls do nothing.
  void Finish();
  // Removes the line (terminals only), so that other output can come between;
  // the next Update draws it again.
  void Clear();

 private:
  std::string Line() const;
  void Draw();

  const std::string title_;
  int64_t total_;
  ProgressOptions options_;
  Clock* const clock_;
  const int64_t start_ns_;
  int64_t last_draw_ns_ = 0;
  bool drawn_ = false;    // something was ever drawn
  bool visible_ = false;  // the line is on the terminal now
  bool stale_ = false;    // the last update was not drawn
  bool finished_ = false;
  int64_t done_ = 0;
  int64_t earlier_ = 0;
  std::string detail_;
};

}  // namespace optrail

#endif  // OPTRAIL_BASE_TEXT_PROGRESS_H_
