#ifndef OPTRAIL_TUNING_SESSION_NUMERICS_H_
#define OPTRAIL_TUNING_SESSION_NUMERICS_H_

// Numerics classes: configs of one task whose results have equal bits on fixed
// inputs. Each trial says the class of its config, as a fact beside those that
// compiling told; equal classes of two sessions are equal bits, too.
//
//   if (SameBits(NumericsOf(session, config),
//                NumericsOf(session, default_config))) {
//     // The config changes no bit of the results.
//   }
//
// Bits of other inputs may differ within a class. Where it was tested, a class
// says whether a row's bits depend on how many rows a call computes
// (tuning/proto/numerics_text.h).

#include <cstdint>
#include <string>

#include "google/protobuf/repeated_field.h"
#include "tuning/proto/config.pb.h"
#include "tuning/proto/session.pb.h"
#include "tuning/proto/trial.pb.h"

namespace optrail::tuning {

// Adds the class of results with this hash; `facts` stay sorted by name.
void AddNumerics(uint64_t bits,
                 google::protobuf::RepeatedPtrField<proto::Fact>* facts);
// The same for whether it is batch-invariant.
void AddBatchInvariance(bool is_invariant,
                        google::protobuf::RepeatedPtrField<proto::Fact>* facts);

// Adds what is known of the class of `from` to a trial that has no facts yet.
void CopyNumerics(const proto::Trial& from, proto::Trial* to);

// The text of the class; "" where nobody knows it: the device compared the
// results, the trial failed or is older than the fact.
std::string NumericsOf(const proto::Trial& trial);
std::string NumericsOf(const proto::Session& session,
                       const proto::Config& config);

}  // namespace optrail::tuning

#endif  // OPTRAIL_TUNING_SESSION_NUMERICS_H_
