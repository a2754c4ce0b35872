#ifndef OPTRAIL_TUNING_SEARCH_ACQUISITION_H_
#define OPTRAIL_TUNING_SEARCH_ACQUISITION_H_

// How much a model hopes for from a candidate of which it believes a normal
// distribution: `gap` is the best value so far less the candidate's mean
// (positive: better than the best), `sd` its standard deviation, above zero.
// Values are to be minimised.

namespace optrail::tuning {

// Expected improvement, E[max(0, gap + sd * z)] for standard normal z (Jones,
// Schonlau and Welch, "Efficient global optimization", 1998, equation 15).
double ExpectedImprovementOf(double gap, double sd);

// Its logarithm, also where the improvement itself underflows to zero, so that
// hopeless candidates still have an order (Ament et al., "Unexpected
// improvements to expected improvement", 2023).
double LogExpectedImprovementOf(double gap, double sd);

}  // namespace optrail::tuning

#endif  // OPTRAIL_TUNING_SEARCH_ACQUISITION_H_
