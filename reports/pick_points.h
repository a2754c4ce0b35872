#ifndef OPTRAIL_REPORTS_PICK_POINTS_H_
#define OPTRAIL_REPORTS_PICK_POINTS_H_

// Chooses which points of a long series a report draws.
//
// Every chosen point is a real one: points are left out, never averaged. What a
// reader would miss is kept (the points named by the caller, the first, the
// last); the rest of the budget goes to the smallest and the largest value of
// equal stretches, so that the drawn envelope is that of the whole series.

#include <vector>

namespace optrail::reports {

// Ascending indices into `values`; all of them where values.size() <= limit.
// At most max(limit, must_keep.size() + 2) of them. NaN is never an extreme:
// name such points in `must_keep` if they are wanted. `must_keep` may be
// unsorted; indices out of range are ignored.
std::vector<int> PickPoints(const std::vector<double>& values,
                            const std::vector<int>& must_keep, int limit);

}  // namespace optrail::reports

#endif  // OPTRAIL_REPORTS_PICK_POINTS_H_
