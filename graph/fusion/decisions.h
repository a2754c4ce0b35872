#ifndef OPTRAIL_GRAPH_FUSION_DECISIONS_H_
#define OPTRAIL_GRAPH_FUSION_DECISIONS_H_

// FusionDecisions are what measurements said about fusion rules on one
// hardware: a file that is reviewed like tuned configs.
//
//   OPTRAIL_ASSIGN_OR_RETURN(
//       FusionDecisions decisions,
//       FusionDecisions::Load(".optrail/fusion", "amd-epyc-zen4-2c"));
//   const proto::FusionDecision* known = decisions.Find(rule, site, threads);
//   if (known == nullptr) decisions.Add(measured);
//   OPTRAIL_RETURN_IF_ERROR(decisions.Save());
//
// The file is FOLDER/HARDWARE.textproto, written as a whole, so that nobody
// reads half of it. Save adds to what the file holds by then, under a lock, so
// that two processes at once keep each other's decisions. Not thread-safe.

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "graph/proto/fusion.pb.h"

namespace optrail::graph {

class FusionDecisions {
 public:
  // Empty where there is no file. InvalidArgument names file, line and field of
  // one that cannot be read.
  static absl::StatusOr<FusionDecisions> Load(const std::string& folder,
                                              const std::string& hardware_id);

  // nullptr if there is none.
  const proto::FusionDecision* Find(absl::string_view rule,
                                    absl::string_view site, int threads) const;
  // In place of an older one.
  void Add(proto::FusionDecision decision);
  const proto::FusionDecisions& all() const { return decisions_; }

  // Adds what was added since Load to the file, sorted by rule and site. Errors
  // name the file.
  absl::Status Save();
  const std::string& path() const { return path_; }

 private:
  absl::Status Read();
  void Put(const proto::FusionDecision& decision);

  std::string path_;
  std::string hardware_id_;
  proto::FusionDecisions decisions_;
  std::vector<proto::FusionDecision> added_;
};

}  // namespace optrail::graph

#endif  // OPTRAIL_GRAPH_FUSION_DECISIONS_H_
