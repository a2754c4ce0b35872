// OnlineDetector's state as text: its version, then numbers in hexadecimal or
// decimal, all separated by single spaces. Doubles are written as their bits.

#include <cstring>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "tracker/detect/online.h"

namespace optrail::tracker {
namespace {

constexpr absl::string_view kVersion = "optrail-online-3";
constexpr int64_t kMostEntries = 1 << 24;

class Writer {
 public:
  void Integer(int64_t value) { absl::StrAppend(&text_, " ", value); }
  void Double(double value) {
    uint64_t bits;
    std::memcpy(&bits, &value, sizeof bits);
    absl::StrAppend(&text_, " ", absl::Hex(bits));
  }
  void Change(const ChangePoint& change) {
    Integer(change.index);
    Integer(change.earliest);
    Integer(change.latest);
    for (const double field :
         {change.confidence, change.level_before, change.level_after,
          change.relative_change, change.relative_change_low,
          change.relative_change_high}) {
      Double(field);
    }
  }
  std::string Text() const { return absl::StrCat(kVersion, text_); }

 private:
  std::string text_;
};

// Reads what Writer wrote. After the first word that does not fit, everything
// reads as 0 and ok() is false.
class Reader {
 public:
  explicit Reader(absl::string_view text) : words_(absl::StrSplit(text, ' ')) {
    ok_ = Word() == kVersion;
  }

  bool ok() const { return ok_; }
  bool AtEnd() const { return next_ == words_.size(); }

  int64_t Integer(int64_t low, int64_t high) {
    int64_t value = 0;
    ok_ = ok_ && absl::SimpleAtoi(Word(), &value) && value >= low &&
          value <= high;
    return ok_ ? value : 0;
  }
  double Double() {
    uint64_t bits = 0;
    ok_ = ok_ && absl::SimpleHexAtoi(Word(), &bits);
    double value = 0;
    if (ok_) std::memcpy(&value, &bits, sizeof value);
    return value;
  }
  ChangePoint Change() {
    ChangePoint change;
    change.index = static_cast<int>(Integer(0, INT32_MAX));
    change.earliest = static_cast<int>(Integer(0, change.index));
    change.latest = static_cast<int>(Integer(change.index, INT32_MAX));
    for (double* field :
         {&change.confidence, &change.level_before, &change.level_after,
          &change.relative_change, &change.relative_change_low,
          &change.relative_change_high}) {
      *field = Double();
    }
    return change;
  }

 private:
  absl::string_view Word() {
    return next_ < words_.size() ? words_[next_++] : absl::string_view();
  }

  std::vector<absl::string_view> words_;
  size_t next_ = 0;
  bool ok_ = true;
};

}  // namespace

std::string OnlineDetector::Serialize() const {
  Writer writer;
  writer.Integer(size_);
  writer.Integer(window_.size());
  for (const Point& point : window_) {
    writer.Integer(point.index);
    writer.Double(point.value);
  }
  writer.Integer(regime_.known);
  writer.Double(regime_.level);
  writer.Double(regime_.scale);
  writer.Double(regime_.suspicion);
  writer.Integer(regime_.loss.size());
  for (const int32_t loss : regime_.loss) writer.Integer(loss);
  writer.Integer(sightings_.size());
  for (const Sighting& sighting : sightings_) {
    writer.Integer(sighting.index);
    writer.Integer(sighting.looks);
  }
  writer.Integer(confirmed_.size());
  for (const ChangePoint& change : confirmed_) writer.Change(change);
  writer.Integer(returns_.size());
  for (const ChangePoint& change : returns_) writer.Change(change);
  writer.Integer(provisional_.has_value());
  if (provisional_) writer.Change(*provisional_);
  return writer.Text();
}

absl::StatusOr<OnlineDetector> OnlineDetector::Parse(absl::string_view text) {
  Reader reader(text);
  OnlineDetector detector;
  detector.size_ = reader.Integer(0, INT32_MAX);
  const int64_t points = reader.Integer(0, kLookBackPoints);
  for (int64_t i = 0; i < points && reader.ok(); ++i) {
    const int64_t index = reader.Integer(
        i > 0 ? detector.window_.back().index + 1 : 0, detector.size_ - 1);
    const double value = reader.Double();
    detector.window_.push_back({index, value});
  }
  Regime& regime = detector.regime_;
  regime.known = reader.Integer(0, 1) != 0;
  regime.level = reader.Double();
  regime.scale = reader.Double();
  regime.suspicion = reader.Double();
  const int64_t losses = reader.Integer(0, 4096);
  for (int64_t i = 0; i < losses && reader.ok(); ++i) {
    regime.loss.push_back(static_cast<int32_t>(reader.Integer(0, 1 << 20)));
  }
  const int64_t sightings = reader.Integer(0, kLookBackPoints);
  for (int64_t i = 0; i < sightings && reader.ok(); ++i) {
    const int64_t index = reader.Integer(0, detector.size_ - 1);
    const int looks = static_cast<int>(reader.Integer(0, INT32_MAX));
    detector.sightings_.push_back({index, looks});
  }
  const int64_t confirmed = reader.Integer(0, kMostEntries);
  for (int64_t i = 0; i < confirmed && reader.ok(); ++i) {
    detector.confirmed_.push_back(reader.Change());
  }
  const int64_t returns = reader.Integer(0, kMostEntries);
  for (int64_t i = 0; i < returns && reader.ok(); ++i) {
    detector.returns_.push_back(reader.Change());
  }
  if (reader.Integer(0, 1) != 0) detector.provisional_ = reader.Change();
  if (!reader.ok() || !reader.AtEnd() ||
      (regime.known && (regime.loss.size() % 2 == 0 || !(regime.scale > 0)))) {
    return absl::InvalidArgumentError(
        absl::StrCat("not a state of the online detector (", kVersion, "): \"",
                     text.substr(0, 40), "...\""));
  }
  return detector;
}

}  // namespace optrail::tracker
