#ifndef OPTRAIL_SUITES_TUNE_SCREEN_H_
#define OPTRAIL_SUITES_TUNE_SCREEN_H_

// Screen spares a search calls that take long: a config meets the best so far
// on a smaller problem first (ops/core/smaller_shape.h), and is called on the
// whole only if it was not clearly slower there.
//
//   Screen screen(evaluator);
//   const Screened seen = screen.Compare(config, best, best_ns, options);
//   if (!seen.hopeless) Measure(config);
//
// It refuses; it never accepts: whatever wins was read on the whole. How well
// the smaller problem ranks is measured in docs/method/tuning_sessions.md.

#include <cstdint>
#include <string>

#include "suites/worker/evaluator.h"
#include "tuning/proto/config.pb.h"

namespace optrail::suites {

// What is this many times slower than the best on the smaller problem is not
// called on the whole.
inline constexpr double kScreenedOut = 1.1;

struct Screened {
  bool hopeless = false;
  // Time of the config over that of the best; 1 if it is not known.
  double ratio = 1;
  // They mean what they mean in an Evaluation.
  int64_t elapsed_ns = 0;
  int64_t unpaid_ns = 0;
};

class Screen {
 public:
  // `whole` must outlive this.
  explicit Screen(Evaluator& whole) : whole_(whole) {}

  // `options` are those of a reading of the whole.
  Screened Compare(const proto::Config& config, const proto::Config& best,
                   double best_ns, EvaluationOptions options);

 private:
  Evaluator& whole_;
  // The best one's reading there, taken again from time to time.
  std::string best_;
  double best_there_ns_ = 0;
  int compared_ = 0;  // since then
};

}  // namespace optrail::suites

#endif  // OPTRAIL_SUITES_TUNE_SCREEN_H_
