#ifndef OPTRAIL_TUNING_STORE_STORE_ENTRIES_H_
#define OPTRAIL_TUNING_STORE_STORE_ENTRIES_H_

// StoreEntries are the tuned configs of a store, with the index that lookups
// use, and private to it: TunedConfigStore::Lookup says what is found. Filled
// by Add(), then Index() once; after that it is immutable, and lookups are
// thread-safe.

#include <atomic>
#include <cstdint>
#include <deque>
#include <map>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/types/optional.h"
#include "tuning/proto/config.pb.h"
#include "tuning/proto/store.pb.h"
#include "tuning/proto/trial.pb.h"
#include "tuning/store/bucket.h"
#include "tuning/store/store.h"

namespace optrail::tuning {

class StoreEntries {
 public:
  // The remembered answer of the predicate.
  enum Validity : uint8_t { kUnknown, kValid, kInvalid };

  struct Entry {
    std::string operator_name;
    std::string hardware_id;
    proto::DeviceKind device_kind = proto::DEVICE_KIND_UNSPECIFIED;
    bool from_overlay = false;
    proto::TunedConfig tuned;
    proto::Shape shape;
    proto::Config config;
    absl::optional<Bucket> bucket;
    mutable std::atomic<uint8_t> validity{kUnknown};
  };

  // `tuned` is as ParseTunedConfigs returns it. By operator, device kind and
  // hardware, and sorted by key within these.
  void Add(const std::string& operator_name, proto::DeviceKind device_kind,
           const std::string& hardware_id, const proto::TunedConfig& tuned,
           bool from_overlay);
  void Index();

  LookupResult Lookup(const LookupRequest& request) const;
  bool Covers(const LookupRequest& request, const Bucket& range) const;
  const std::deque<Entry>& all() const { return entries_; }

 private:
  struct Candidate {
    int foreign;  // 0 on this hardware, else the smaller the nearer
    double distance;
    double shape_distance;
    const Entry* entry;
  };

  // Returns the entries of the operator.
  const std::vector<const Entry*>& EntriesOf(absl::string_view op) const;
  const Entry* FindExact(const LookupRequest& request) const;
  absl::optional<LookupResult> FindBucket(const LookupRequest& request) const;
  // The entries of the operator that may stand in, the nearest first;
  // `another_maker` gets the first that is of another maker's hardware.
  std::vector<Candidate> CandidatesFor(const LookupRequest& request,
                                       const Entry* refused,
                                       const Entry** another_maker) const;
  LookupResult FindNearest(const LookupRequest& request,
                           const Entry* refused) const;

  // A deque, because entries hold an atomic and can't move.
  std::deque<Entry> entries_;
  // Open addressing over indices into entries_; its size is a power of two, at
  // most half full. -1 is free.
  std::vector<int32_t> table_;
  std::map<std::string, std::vector<const Entry*>, std::less<>> by_operator_;
};

// Says what was looked up, for people.
std::string DescribeRequest(const LookupRequest& request);

}  // namespace optrail::tuning

#endif  // OPTRAIL_TUNING_STORE_STORE_ENTRIES_H_
