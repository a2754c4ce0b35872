#ifndef OPTRAIL_TRACKER_DETECT_ONLINE_H_
#define OPTRAIL_TRACKER_DETECT_ONLINE_H_

// Change points while the points arrive.
//
//   OnlineDetector detector;
//   for (const double value : values) {
//     const OnlineUpdate update = detector.Append(value);
//     for (const ChangePoint& change : update.confirmed) Alert(change);
//   }
//
// It is a left fold with bounded look-back: the state holds the last
// kLookBackPoints values, what is known of the current level, and the changes
// confirmed so far. Folding a series from its beginning gives the same state
// wherever it was interrupted; so a full analysis is the fold replayed, and a
// point that arrives out of order is worked in by replaying from a copy of the
// state taken before its place.
//
// A shift is marked as provisional as soon as a few points speak for it,
// usually at its third, or when a look at the whole look-back (every fifth
// point) sees it. A mark may be withdrawn. It is confirmed when enough
// points have come to tell it from a burst or a ramp, which is soon where the
// series was steady; what is confirmed stays as it is, whatever comes. A shift
// between levels that the series has shifted between before (a processor with
// two frequencies, a machine that is restarted every night) is no news but a
// return: told apart, and never confirmed.

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/types/optional.h"
#include "absl/types/span.h"
#include "tracker/detect/detect.h"

namespace optrail::proto {
class FoldState;
}  // namespace optrail::proto

namespace optrail::tracker {

struct OnlineUpdate {
  // Changes confirmed by this point; usually none.
  std::vector<ChangePoint> confirmed;
  // This point put up a provisional mark, or took the last one down without
  // confirming it.
  bool marked = false;
  bool withdrawn = false;
};

class OnlineDetector {
 public:
  static constexpr int kLookBackPoints = 200;
  // With fewer points hardly anything is ever confirmed.
  static constexpr int kFewestPoints = 20;
  // Raised when the same values give another answer than before: a state of
  // another version is not gone on from.
  static constexpr int kVersion = 1;

  // Takes the next value of the series, in about 5 us. NaN and infinity keep
  // their place in the count and have no say, and looks don't count them.
  OnlineUpdate Append(double value);

  // The same as so many NaN.
  void Skip(int64_t points) { size_ += points; }

  // Returns the state that Resume needs beside the `values` that were appended
  // so far.
  proto::FoldState State(absl::Span<const double> values) const;
  // Makes a new detector the one that has taken the first state.size() of
  // `values`. False, and nothing is changed, unless the state is of exactly
  // these.
  bool Resume(const proto::FoldState& state, absl::Span<const double> values);

  // Values appended so far.
  int64_t size() const { return size_; }
  // Ascending by index; grows at its end only.
  const std::vector<ChangePoint>& confirmed() const { return confirmed_; }
  // Shifts back to where the series had been, ascending; grows at its end only.
  const std::vector<ChangePoint>& returns() const { return returns_; }
  // The shift that is suspected now, after all others.
  const absl::optional<ChangePoint>& provisional() const {
    return provisional_;
  }

 private:
  struct Point {
    int64_t index;
    double value;
  };
  // The last analysis of the present.
  struct Regime {
    bool known = false;
    double level = 0;
    int64_t begin = 0;  // the point that the level begins with
    double scale = 0;
    double suspicion = 0;       // evidence that a provisional mark needs
    std::vector<int32_t> loss;  // of a point, by its distance; see noise.h
  };
  // A change seen by the last look, on its way to confirmation.
  struct Sighting {
    int64_t index;
    int looks;
  };

  // Every so many points the look-back is analysed.
  static constexpr int kPointsPerLook = 5;
  // A mark not confirmed by then was wrong.
  static constexpr int kPatiencePoints = 40;

  // Without and with memory; computed when needed.
  using SharpStepsOfLook = std::array<absl::optional<std::vector<int>>, 2>;

  static std::vector<double> ValuesOf(absl::Span<const Point> points);
  void Look(OnlineUpdate& update);
  absl::optional<ChangePoint> FindSuddenInWindow() const;
  // From places in window_ that count from `begin` to places in the series.
  void PlaceInSeries(size_t begin, ChangePoint& change) const;
  // Whether nothing but a change explains `found`, a place in the window, that
  // has enough points after it.
  bool IsSure(absl::Span<const double> values, const ChangePoint& found,
              const Analysis& analysis, SharpStepsOfLook& sharp) const;
  // Returns whether it is worth a provisional mark.
  bool IsSuspect(absl::Span<const double> values, const ChangePoint& found,
                 const ChangePoint& in_series, double scale) const;
  // Puts up, moves or takes down the mark after a look that saw `suspect`.
  void UpdateMark(const absl::optional<ChangePoint>& suspect,
                  OnlineUpdate& update);
  // What is sure now: a confirmed change, or a return.
  void Settle(const ChangePoint& change, OnlineUpdate& update);
  bool IsReturn(const ChangePoint& change) const;
  // Returns whether ranks tell the points from window_[middle] on from those
  // before, as far back as the level reaches.
  bool RanksTell(absl::Span<const double> values, int middle) const;
  // `looked_at` are the points of the look that gave the other two.
  void UpdateRegime(absl::Span<const Point> looked_at,
                    absl::Span<const double> values, const Analysis& analysis);
  // Finds again what the last look found of the regime: no state holds it.
  void RepeatLastLook();
  absl::optional<ChangePoint> Suspect() const;
  // Returns whether the noise before window_[middle], as far back as the level
  // reaches, has memory.
  bool HasMemory(absl::Span<const double> values, int middle) const;
  // Returns whether the few points of the level and of what follows `found`, a
  // place in the window, walk: neighbours on either side differ by less than
  // others.
  bool MayBeWalk(absl::Span<const double> values, const ChangePoint& found,
                 double scale) const;
  // Whether the level before `found`, a place in the window, has made no such
  // step by itself, and nothing has since: a sawtooth and a level that
  // alternates do.
  bool IsUncommon(absl::Span<const double> values, const ChangePoint& found,
                  double scale) const;
  // Where the last shift was, whatever it was.
  int64_t LastShift() const;
  // How many points the window has after it.
  int PointsOfLevel() const;

  int64_t size_ = 0;
  int64_t values_ = 0;  // of them finite
  std::vector<Point> window_;
  // The points of the last look, until a resumed fold repeats it.
  std::vector<Point> last_look_;
  Regime regime_;
  std::vector<Sighting> sightings_;
  std::vector<ChangePoint> confirmed_;
  std::vector<ChangePoint> returns_;
  absl::optional<ChangePoint> provisional_;
};

struct OnlineResult {
  std::vector<ChangePoint> confirmed;
  std::vector<ChangePoint> returns;
  absl::optional<ChangePoint> provisional;
};
// The fold over a whole series. A point without a usable value (a crash, too
// noisy a machine) is NaN: it keeps its place in the count and has no say.
OnlineResult DetectOnline(absl::Span<const double> values);

}  // namespace optrail::tracker

#endif  // OPTRAIL_TRACKER_DETECT_ONLINE_H_
