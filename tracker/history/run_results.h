#ifndef OPTRAIL_TRACKER_HISTORY_RUN_RESULTS_H_
#define OPTRAIL_TRACKER_HISTORY_RUN_RESULTS_H_

// RunResults is a run of a history of which only the results that somebody asks
// for are parsed. A run may hold ten thousand results, of which the explanation
// of a change wants one:
//
//   OPTRAIL_ASSIGN_OR_RETURN(const auto results,
//                            RunResults::Read(history, run_id));
//   const proto::BenchmarkResult* const result = results->Find(key);
//   if (result != nullptr) Use(results->run().hardware(), *result);
//
// The checksum covers all of the record. Whether a result is a valid message
// and what a measurement can be is checked when it is asked for.
//
// Thread safety: none.

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "tracker/history/history.h"
#include "tracker/proto/run.pb.h"

namespace optrail::tracker {

class RunResults {
 public:
  RunResults(const RunResults&) = delete;
  RunResults& operator=(const RunResults&) = delete;
  // NotFound if there is no run with this id; DataLoss, naming file and reason,
  // if it is damaged.
  static absl::StatusOr<std::unique_ptr<RunResults>> Read(
      const History& history, absl::string_view run_id);

  // The run without results.
  const proto::Run& run() const { return run_; }
  // The first result of the benchmark among those whose key is stored in the
  // same way, which lives as long as this; null if there is none, or none that
  // is whole.
  const proto::BenchmarkResult* Find(const proto::BenchmarkKey& key);

  // How much memory the record takes as it is stored.
  int64_t bytes() const { return static_cast<int64_t>(bytes_.size()); }
  // How many results were parsed.
  int parsed() const { return static_cast<int>(parsed_.size()); }

 private:
  RunResults() = default;
  absl::Status Decode(const std::string& dir, const std::string& path);
  void AddTexts();

  std::string bytes_;
  proto::Run run_;
  std::vector<absl::string_view> results_;  // parts of bytes_
  // The first result whose key is stored so. One program stores a key always
  // in the same way.
  absl::flat_hash_map<absl::string_view, size_t> by_stored_key_;
  // The same by canonical text, once a key is stored in another way.
  std::unordered_map<std::string, size_t> by_text_;
  bool has_texts_ = false;
  // By place; each run holds one result, or none where it is not whole.
  std::map<size_t, proto::Run> parsed_;
};

}  // namespace optrail::tracker

#endif  // OPTRAIL_TRACKER_HISTORY_RUN_RESULTS_H_
