#include "base/text/wrapped_stream.h"

#include "absl/strings/match.h"
#include "absl/strings/string_view.h"
#include "base/text/prose.h"

namespace optrail {
namespace {

bool HasColumns(absl::string_view line) {
  const size_t start = line.find_first_not_of(' ');
  return start != absl::string_view::npos &&
         absl::StrContains(line.substr(start), "  ");
}

// GitHub ("::error ..."), Azure and TeamCity ("##...") read whole lines.
bool IsForCiService(absl::string_view line) {
  return absl::StartsWith(line, "::") || absl::StartsWith(line, "##");
}

}  // namespace

WrappedStream::WrappedStream(std::ostream& stream, int width)
    : stream_(stream), width_(width), target_(stream.rdbuf()) {
  if (width_ > 0) stream_.rdbuf(this);
}

WrappedStream::~WrappedStream() {
  if (width_ <= 0) return;
  stream_.rdbuf(target_);
  stream_ << line_;
}

int WrappedStream::overflow(int character) {
  if (character == traits_type::eof()) return traits_type::not_eof(character);
  const char text = traits_type::to_char_type(character);
  return xsputn(&text, 1) == 1 ? character : traits_type::eof();
}

std::streamsize WrappedStream::xsputn(const char* text, std::streamsize size) {
  const std::lock_guard<std::mutex> lock(mutex_);
  line_.append(text, static_cast<size_t>(size));
  Write();
  return size;
}

void WrappedStream::Write() {
  const size_t end = line_.rfind('\n') + 1;  // 0 for none
  absl::string_view whole(line_);
  whole = whole.substr(0, end);
  while (!whole.empty()) {
    const absl::string_view line = whole.substr(0, whole.find('\n'));
    whole.remove_prefix(line.size() + 1);
    const bool is_prose = !HasColumns(line) && !IsForCiService(line) &&
                          !absl::StrContains(line, '\r');
    const std::string out =
        is_prose ? WrapProse(line, width_) : std::string(line);
    target_->sputn(out.data(), static_cast<std::streamsize>(out.size()));
    target_->sputc('\n');
  }
  line_.erase(0, end);
  if (absl::StrContains(line_, '\r')) {
    target_->sputn(line_.data(), static_cast<std::streamsize>(line_.size()));
    line_.clear();
  }
  target_->pubsync();
}

}  // namespace optrail
