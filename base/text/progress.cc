#include "base/text/progress.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/text/table.h"
#include "base/text/units.h"

namespace optrail {
namespace {

constexpr int kBarWidth = 20;
constexpr absl::string_view kEraseLine = "\r\x1b[K";

int StandardErrorWidth() {
  winsize size = {};
  if (ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0) {
    return size.ws_col;
  }
  return 80;
}

// At most `width` columns; `text` is escaped already.
std::string Cut(const std::string& text, int width) {
  if (DisplayWidth(text) <= width) return text;
  std::string result = text;
  while (!result.empty() && DisplayWidth(result) > width) {
    // Whole code points: continuation bytes go with the byte before them.
    while (result.size() > 1 &&
           (static_cast<unsigned char>(result.back()) & 0xc0) == 0x80) {
      result.pop_back();
    }
    result.pop_back();
  }
  return result;
}

}  // namespace

Progress::Progress(std::string title, int64_t total, ProgressOptions options,
                   Clock* clock)
    : title_(EscapeForTerminal(title)),
      total_(total),
      options_(std::move(options)),
      clock_(clock),
      start_ns_(clock->NowNs()) {
  if (options_.is_terminal < 0) options_.is_terminal = isatty(STDERR_FILENO);
  if (options_.width <= 0) options_.width = StandardErrorWidth();
  if (!options_.sink) {
    options_.sink = [](absl::string_view text) {
      std::fwrite(text.data(), 1, text.size(), stderr);
      std::fflush(stderr);
    };
  }
}

Progress::~Progress() { Finish(); }

void Progress::Update(int64_t done, absl::string_view detail) {
  if (finished_) return;
  done_ = done;
  detail_ = EscapeForTerminal(detail);
  const absl::Duration interval =
      options_.is_terminal ? options_.terminal_interval : options_.log_interval;
  // A log gets its first line only after one interval: short jobs stay silent
  // until they finish.
  const int64_t since_ns = drawn_ || !options_.is_terminal
                               ? (drawn_ ? last_draw_ns_ : start_ns_)
                               : -1;
  stale_ = true;
  if (since_ns < 0 ||
      clock_->NowNs() - since_ns >= absl::ToInt64Nanoseconds(interval)) {
    Draw();
  }
}

void Progress::Finish() {
  if (finished_) return;
  if (stale_) Draw();
  finished_ = true;
  if (visible_) options_.sink("\n");
  visible_ = false;
}

void Progress::Clear() {
  if (visible_) options_.sink(kEraseLine);
  visible_ = false;
  stale_ = true;
  drawn_ = false;
}

std::string Progress::Line() const {
  std::string line = title_;
  const int64_t elapsed_ns = clock_->NowNs() - start_ns_;
  if (total_ > 0) {
    const double share = std::clamp(
        static_cast<double>(done_) / static_cast<double>(total_), 0.0, 1.0);
    const auto filled = static_cast<size_t>(share * kBarWidth);
    absl::StrAppend(&line, "  [", std::string(filled, '#'),
                    std::string(kBarWidth - filled, '-'), "]");
    absl::StrAppendFormat(&line, "  %3.0f%%", 100 * share);
    if (options_.counts) absl::StrAppend(&line, "  ", done_, "/", total_);
    if (done_ > earlier_ && done_ < total_) {
      absl::StrAppend(&line, "  ETA ",
                      FormatDurationNs(static_cast<double>(elapsed_ns) *
                                       static_cast<double>(total_ - done_) /
                                       static_cast<double>(done_ - earlier_)));
    } else if (done_ >= total_) {
      absl::StrAppend(&line, "  in ",
                      FormatDurationNs(static_cast<double>(elapsed_ns)));
    }
  } else {
    absl::StrAppend(&line, "  ", done_, "  ",
                    FormatDurationNs(static_cast<double>(elapsed_ns)));
  }
  if (!detail_.empty()) absl::StrAppend(&line, "  ", detail_);
  return line;
}

void Progress::Draw() {
  drawn_ = true;
  stale_ = false;
  last_draw_ns_ = clock_->NowNs();
  if (options_.quiet) return;
  if (options_.is_terminal) {
    // The last column stays free: some terminals wrap when it is written.
    options_.sink(absl::StrCat(kEraseLine, Cut(Line(), options_.width - 1)));
    visible_ = true;
  } else {
    options_.sink(absl::StrCat(Line(), "\n"));
  }
}

}  // namespace optrail
