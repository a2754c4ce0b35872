#ifndef OPTRAIL_REPORTS_JUDGE_SERIES_H_
#define OPTRAIL_REPORTS_JUDGE_SERIES_H_

// Gives a series its change points and its verdict; see build_report_data.h.

#include "reports/report_data.h"

namespace optrail::reports {

struct JudgeOptions {
  double min_effect = 0.03;  // relative
  int recent_points = 30;
};

// Reads points and epochs; sets change_points, verdict, verdict_detail, ratio
// with its interval and minimum_detectable_effect. Never says kMissing.
void JudgeSeries(const JudgeOptions& options, Series& series);

}  // namespace optrail::reports

#endif  // OPTRAIL_REPORTS_JUDGE_SERIES_H_
